//! The tree of CLTree: dense regions against empty ones (Liu, Xia and Yu 2000, *Clustering through decision tree
//! construction*). It is pruned, and its dense regions become clusters, in `estimators/cltree.py`.
//!
//! The rows (Y points) are told from as many uniform points that do not exist (N points), which are counted and never
//! drawn: a part of a region has the share of its N points that it has of its volume.
//!
//! | paper | here |
//! |---|---|
//! | region of a node | `Node::low`, `Node::high`: a box; the root's bounds the rows |
//! | Y points of a region | its rows' weight |
//! | N points inherited from the parent | [`DensityTree::points`] |
//! | N points of a node: those inherited, or its Y points if they are more | `Along::points` |
//! | cut at a Y point | `Cut`, just below or just above a value |
//! | relative density y / n | `Along::density` |
//! | d_i_cut1, d_i_cut2, d_i_cut3; r_density_i | `first`, `second`, `third`; what `look_ahead` returns |
//!
//! **A cut** of a column is the one of the greatest information gain; then, to move it out of the dense side to where
//! rows end, the best cut of the sparser side, and the best cut between the two if it is emptier there than beyond.
//! Of all columns the one is cut whose last region is the sparsest. **Empty regions** are cut off too: both sides of
//! a value are cuts, and a region without rows counts as one with a single row, or slivers would be the sparsest.
//! **Ties:** lowest cut, first column. **Weights:** a single row is one of the least weight.
//!
//! **Cost.** A node takes time in proportion to its cells that differ from their column's most common value, for handing
//! them on and for a bound: a region of share h that holds the values with weights w_1, .., w_q, and so the gaps
//! g_0, .., g_q, has a relative density of at least 1 / (n max_j (g_(j-1) + g_j) / w_j), one without rows 1 / (n g_0).
//! Only columns are searched whose bound is not above the sparsest region found so far: few, and the tree may be as deep
//! as there are rows, one cut off at a time. A gain is convex in the numbers of points on the left, so among the cuts of
//! a block it is at most that of a corner of the block's numbers, and few blocks are opened.

use crate::error::{Error, Result};
use crate::kauri::kernel::Weights;
use crate::memory;
use crate::orders::columns_per_task;
use crate::parallel::{self, Monitor};
use crate::partition::{Partition, Segment};
use crate::placement;
use crate::table::Table;
use crate::tree::{Test, TestArrays};

/// Cuts of a block that is bounded as a whole.
const BLOCK: usize = 256;
/// Columns that are searched before the bounds of the others are compared with what was found.
const COLUMNS_AT_A_TIME: usize = 8;
/// What the bound of a density may be off by, as a share of it.
const SLACK: f64 = 1e-9;
/// Gains closer than this share of a region's points are tied, and none is smaller.
const TIE: f64 = 1e-10;
/// The share of a gap, from the value at its end, in which a threshold lies.
const GAP_SHARE: f64 = 1.0 / 8.0;

/// A grown tree. Entries are by node id, the root first, children after their parents.
#[derive(Debug, Clone, PartialEq)]
pub struct DensityTree {
    /// The tests.
    pub tests: TestArrays,
    /// Weight of the rows.
    pub weight: Vec<f64>,
    /// N points inherited from the parent; at the root the weight of all rows.
    pub points: Vec<f64>,
}

/// Where a column may be cut: what lies on the left, as a share of the region's width and as weight.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cut {
    share: f64,
    weight: f64,
}

/// A region along one column. The m values of its rows have 2 m + 2 cuts: the region's lower end, just below and just
/// above each value, and the upper end.
struct Along {
    /// The values of the rows, ascending, each once.
    values: Vec<f64>,
    /// Weight of the rows before each value, and of all: m + 1 of them.
    weights: Vec<f64>,
    low: f64,
    high: f64,
    /// N points of the region.
    points: f64,
    /// The least weight of a row.
    one: f64,
}

/// x ln x, 0 at 0.
fn x_ln_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

/// The entropy of telling `y` from `n` points, times their number.
fn information(y: f64, n: f64) -> f64 {
    x_ln_x(y + n) - x_ln_x(y) - x_ln_x(n)
}

/// A bound on the relative density of regions that have at most `share` of the width of a region with so many N points
/// for each weight of their rows, at least `one`.
fn bound(points: f64, share: f64, one: f64) -> f64 {
    (one / points).max(1.0 / (points * share * (1.0 + SLACK)))
}

impl Along {
    /// The cut of a number in `0 .. 2 m + 2`.
    fn cut(&self, cut: usize) -> Cut {
        let weight = self.weights[cut / 2];
        let share = match cut {
            0 => 0.0,
            _ if cut == self.end() => 1.0,
            // Halves: the width itself may overflow.
            _ => {
                let value = self.values[(cut - 1) / 2];
                (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
            }
        };
        Cut { share, weight }
    }

    /// The last cut.
    fn end(&self) -> usize {
        2 * self.values.len() + 1
    }

    /// Y and N points between two cuts.
    fn between(&self, a: usize, b: usize) -> (f64, f64) {
        let (a, b) = (self.cut(a), self.cut(b));
        (b.weight - a.weight, self.points * (b.share - a.share))
    }

    fn density(&self, a: usize, b: usize) -> f64 {
        let (y, n) = self.between(a, b);
        if n > 0.0 { y.max(self.one) / n } else { f64::INFINITY }
    }

    /// A bound on the relative density of all regions.
    fn least_density(&self) -> f64 {
        let share = |cut: usize| self.cut(cut).share;
        // Share of the region per weight: of gaps, then of values with the gaps on both sides.
        let empty = (0..self.end()).step_by(2).map(|gap| (share(gap + 1) - share(gap)) / self.one);
        let filled = (0..self.end() - 1).step_by(2).map(|gap| {
            let weight = self.weights[gap / 2 + 1] - self.weights[gap / 2];
            (share(gap + 3) - share(gap)) / weight.max(self.one)
        });
        bound(self.points, empty.chain(filled).fold(0.0, f64::max), self.one)
    }

    /// The cut between the cuts `a` and `b` with the greatest gain; none if none gains.
    fn best(&self, a: usize, b: usize) -> Option<usize> {
        let (y, n) = self.between(a, b);
        let all = information(y, n);
        let tie = TIE * (y + n);
        let gain = |left: (f64, f64)| {
            all - information(left.0, left.1)
                - information((y - left.0).max(0.0), (n - left.1).max(0.0))
        };
        let left_of = |cut: usize| self.between(a, cut);
        let gain_at = |cut: usize| gain(left_of(cut));
        let starts = || (a + 1..b).step_by(BLOCK);
        let mut most = starts().map(gain_at).fold(tie, f64::max);
        let bounds: Vec<f64> = starts()
            .map(|start| {
                let (low, high) = (left_of(start), left_of((start + BLOCK).min(b) - 1));
                let corners = [low, high, (low.0, high.1), (high.0, low.1)];
                corners.into_iter().map(gain).fold(f64::NEG_INFINITY, f64::max)
            })
            .collect();
        let opened = |most: f64| {
            let blocks = starts().zip(&bounds).filter(move |&(_, &bound)| bound + tie >= most);
            blocks.flat_map(move |(start, _)| start..(start + BLOCK).min(b))
        };
        most = opened(most).map(gain_at).fold(most, f64::max);
        (most > tie).then(|| opened(most).find(|&cut| gain_at(cut) >= most - tie)).flatten()
    }

    /// The cut of this column, and the relative density of the region that it borders.
    fn look_ahead(&self) -> Option<(usize, f64)> {
        let end = self.end();
        let first = self.best(0, end)?;
        let is_left = self.density(0, first) <= self.density(first, end);
        let sparser = if is_left { (0, first) } else { (first, end) };
        let Some(second) = self.best(sparser.0, sparser.1) else {
            return Some((first, self.density(sparser.0, sparser.1)));
        };
        let (inner, outer) =
            if is_left { ((second, first), (0, second)) } else { ((first, second), (second, end)) };
        let [between, beyond] = [inner, outer].map(|(a, b)| self.density(a, b));
        if between > beyond {
            return Some((second, beyond));
        }
        let Some(third) = self.best(inner.0, inner.1) else { return Some((second, between)) };
        let parts = [self.density(inner.0, third), self.density(third, inner.1)];
        Some((third, parts[0].min(parts[1])))
    }
}

/// The rows of a node in the ascending order of a column, without those of the column's common value. Their cells are
/// kept beside them: to look them up in the table would take several times as long.
#[derive(Default)]
struct Order {
    values: Vec<f64>,
    rows: Vec<u32>,
}

impl Order {
    /// The rows of all nodes, without those of the most common value; this value, and the first and the last one.
    fn without_common(sorted: &[(f64, u32)]) -> (Order, f64, [f64; 2]) {
        let runs = sorted.chunk_by(|a, b| a.0 == b.0);
        let common = runs.max_by_key(|run| run.len()).map_or(0.0, |run| run[0].0);
        let others = || sorted.iter().filter(|pair| pair.0 != common);
        let n_others = others().count();
        let mut order = Order {
            values: memory::reserved(n_others, "the cells of a column"),
            rows: memory::reserved(n_others, "the order of a column"),
        };
        order.values.extend(others().map(|pair| pair.0));
        order.rows.extend(others().map(|pair| pair.1));
        let end = |pair: Option<&(f64, u32)>| pair.map_or(0.0, |pair| pair.0);
        (order, common, [end(sorted.first()), end(sorted.last())])
    }

    /// Takes the rows of one side out, and returns them if they are wanted.
    fn take(&mut self, goes_left: &[bool], is_left: bool, is_wanted: bool) -> Order {
        let (mut taken, mut n_kept) = (Order::default(), 0);
        for i in 0..self.rows.len() {
            let (value, row) = (self.values[i], self.rows[i]);
            if goes_left[row as usize] != is_left {
                (self.values[n_kept], self.rows[n_kept]) = (value, row);
                n_kept += 1;
            } else if is_wanted {
                memory::push(&mut taken.values, value, "the cells of a node");
                memory::push(&mut taken.rows, row, "the rows of a node");
            }
        }
        self.values.truncate(n_kept);
        self.rows.truncate(n_kept);
        taken
    }
}

/// A node that grows.
struct Node {
    /// Its rows.
    segment: Segment,
    /// Their weight.
    weight: f64,
    /// One per column.
    orders: Vec<Order>,
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Node {
    /// Whether there are rows, and their region has a width along a column.
    fn has_width(&self, feature: usize) -> bool {
        !self.segment.is_empty() && self.low[feature] < self.high[feature]
    }
}

/// The cut of a node.
struct Found {
    feature: usize,
    density: f64,
    /// The value it lies beside.
    value: f64,
    threshold: f64,
    /// What lies on the left.
    left: Cut,
}

/// Grows the tree: nodes with less than `min_weight_share` of the weight of all rows are not cut.
///
/// # Errors
/// [`Error::Shape`] if sizes disagree, [`Error::Interrupted`] if the monitor was asked to stop.
pub fn density_tree(
    table: &Table<'_>,
    weights: Option<&[f64]>,
    min_weight_share: f64,
    monitor: &Monitor,
) -> Result<DensityTree> {
    let n = table.n_samples();
    if let Some(weights) = weights {
        Error::check_len("weights", weights.len(), n, "rows")?;
    }
    let (mut partition, segment) = Partition::new(n);
    let all = partition.all(segment);
    let weights = Weights(weights);
    let total = parallel::sum_rows(all, 1, |row, sums| sums[0] += weights.of(row))[0];
    let one = all.iter().map(|&row| weights.of(row)).fold(f64::INFINITY, f64::min);
    let sorted = parallel::try_map(0..table.n_features(), |f| {
        monitor.check()?;
        Ok(Order::without_common(&table.column(f).sort(all)))
    })?;
    let (mut orders, mut common, mut low, mut high) = (vec![], vec![], vec![], vec![]);
    for (order, of_column, ends) in sorted {
        orders.push(order);
        common.push(of_column);
        low.push(ends[0]);
        high.push(ends[1]);
    }
    let growth = Growth { weights, one, common, monitor };
    let mut nodes = vec![Some(Node { segment, weight: total, orders, low, high })];
    let (mut weight, mut points) = (vec![total], vec![total]);
    let (mut tests, mut children) = (vec![Test::Leaf], vec![[0, 1]]);
    let mut goes_left: Vec<bool> = memory::zeros(n, "the sides of the rows");
    let mut id = 0;
    while id < nodes.len() {
        if let Some(mut node) = nodes[id].take() {
            let n_points = points[id].max(weight[id]);
            if let Some(best) = growth.best_cut(&node, n_points)? {
                let (f, left) = (best.feature, nodes.len());
                let goes = |value: f64| value <= best.threshold;
                for &row in partition.all(node.segment) {
                    goes_left[row as usize] = goes(growth.common[f]);
                }
                for (&value, &row) in node.orders[f].values.iter().zip(&node.orders[f].rows) {
                    goes_left[row as usize] = goes(value);
                }
                let sides = |rows: &[u32], sides: &mut Vec<bool>| {
                    sides.extend(rows.iter().map(|&row| goes_left[row as usize]));
                };
                let (left_rows, right_rows, _) = partition.split(node.segment, sides, |_, _| true);
                let segments = [left_rows, right_rows];
                let side_weights = [best.left.weight, weight[id] - best.left.weight];
                let shares = [best.left.share, 1.0 - best.left.share];
                let is_cut = side_weights.map(|weight| weight >= min_weight_share * total);
                // The side of more rows keeps the memory.
                let small = usize::from(left_rows.len() > right_rows.len());
                let mut orders = [vec![], vec![]];
                if is_cut.contains(&true) {
                    let at_a_time = columns_per_task(node.segment.len());
                    orders[small] = parallel::map_some(&mut node.orders, at_a_time, |order| {
                        order.take(&goes_left, small == 0, is_cut[small])
                    });
                    orders[1 - small] = std::mem::take(&mut node.orders);
                }
                for (side, orders) in orders.into_iter().enumerate() {
                    nodes.push(is_cut[side].then(|| {
                        let (mut low, mut high) = (node.low.clone(), node.high.clone());
                        let end = if side == 0 { &mut high[f] } else { &mut low[f] };
                        *end = best.value;
                        let (segment, weight) = (segments[side], side_weights[side]);
                        Node { segment, weight, orders, low, high }
                    }));
                    weight.push(side_weights[side]);
                    points.push(n_points * shares[side]);
                    tests.push(Test::Leaf);
                    children.push([0, 1]);
                }
                tests[id] = Test::Threshold { feature: f, threshold: best.threshold };
                children[id] = [left, left + 1];
                monitor.report(left / 2 + 2, best.density);
            }
        }
        id += 1;
    }
    let tests = TestArrays::of(tests.iter().zip(children));
    Ok(DensityTree { tests, weight, points })
}

/// What is the same for all nodes.
struct Growth<'a> {
    weights: Weights<'a>,
    /// The least weight of a row.
    one: f64,
    /// By column, its most common value.
    common: Vec<f64>,
    monitor: &'a Monitor,
}

impl Growth<'_> {
    /// The cut whose last region is the sparsest, of the first such column; none if no column is cut. `points`: N points
    /// of the node.
    fn best_cut(&self, node: &Node, points: f64) -> Result<Option<Found>> {
        let at_a_time = columns_per_task(node.segment.len());
        let bounds = parallel::try_map_some(0..node.orders.len(), at_a_time, |feature| {
            self.monitor.check()?;
            let bound = node.has_width(feature).then(|| self.rough_bound(node, feature, points));
            Ok(bound.map(|bound| (bound, feature)))
        })?;
        let mut bounds: Vec<(f64, usize)> = bounds.into_iter().flatten().collect();
        bounds.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut best: Option<Found> = None;
        for columns in bounds.chunks(COLUMNS_AT_A_TIME) {
            let may_be_best = |bound: (f64, usize)| {
                best.as_ref().is_none_or(|best| bound < (best.density, best.feature))
            };
            if !may_be_best(columns[0]) {
                break;
            }
            let found = parallel::try_map(columns, |&(_, feature)| {
                self.monitor.check()?;
                let along = self.along(node, feature, points);
                let is_searched = may_be_best((along.least_density(), feature));
                Ok(if is_searched { along.found(feature) } else { None })
            })?;
            let sparser = |a: &Found, b: &Found| {
                a.density.total_cmp(&b.density).then(a.feature.cmp(&b.feature))
            };
            best = best.into_iter().chain(found.into_iter().flatten()).min_by(sparser);
        }
        Ok(best)
    }

    /// Calls `visit` with the values of a node's rows along a column, ascending, each once, and with their weights.
    fn visit_values(&self, node: &Node, feature: usize, mut visit: impl FnMut(f64, f64)) {
        let Order { values, rows } = &node.orders[feature];
        let weight_of = |rows: &[u32]| match self.weights.0 {
            None => rows.len() as f64,
            Some(_) => rows.iter().map(|&row| self.weights.of(row)).sum(),
        };
        let common = self.common[feature];
        let n_common = node.segment.len() - rows.len();
        let n_below = if n_common > 0 { values.partition_point(|&x| x < common) } else { 0 };
        let mut start = 0;
        let mut visit_to = |end: usize, visit: &mut dyn FnMut(f64, f64)| {
            while start < end {
                let value = values[start];
                let same = values[start..end].iter().take_while(|&&x| x == value).count();
                visit(value, weight_of(&rows[start..start + same]));
                start += same;
            }
        };
        if n_common > 0 {
            visit_to(n_below, &mut visit);
            let weight = match self.weights.0 {
                None => n_common as f64,
                Some(_) => (node.weight - weight_of(rows)).max(self.one),
            };
            visit(common, weight);
        }
        visit_to(values.len(), &mut visit);
    }

    /// A bound on the relative density of the regions of a column, by its widest gap. `points`: N points of the node.
    fn rough_bound(&self, node: &Node, feature: usize, points: f64) -> f64 {
        let (low, high, values) =
            (node.low[feature], node.high[feature], &node.orders[feature].values);
        let ends = [low, *values.first().unwrap_or(&high), *values.last().unwrap_or(&low), high];
        let gaps = ends.windows(2).step_by(2).chain(values.windows(2));
        let widest = gaps.map(|pair| pair[1] / 2.0 - pair[0] / 2.0).fold(0.0, f64::max);
        // A region with q values inside is narrower than q + 1 such gaps, and q + 1 <= 2 q.
        bound(points, 2.0 * widest / (high / 2.0 - low / 2.0) / self.one, self.one)
    }

    /// A node along a column. `points`: N points of the node.
    fn along(&self, node: &Node, feature: usize, points: f64) -> Along {
        let most = node.orders[feature].rows.len() + 1;
        let mut values: Vec<f64> = memory::reserved(most, "the values of a node");
        let mut weights: Vec<f64> = memory::reserved(most + 1, "the weights of a node");
        let mut sum = 0.0;
        weights.push(sum);
        self.visit_values(node, feature, |value, weight| {
            sum += weight;
            values.push(value);
            weights.push(sum);
        });
        let (low, high) = (node.low[feature], node.high[feature]);
        Along { values, weights, low, high, points, one: self.one }
    }
}

impl Along {
    /// The cut of the column, its threshold beside the value in the gap on the cut's side.
    fn found(&self, feature: usize) -> Option<Found> {
        let (cut, density) = self.look_ahead()?;
        let (place, is_above) = ((cut - 1) / 2, cut % 2 == 0);
        let value = self.values[place];
        let part = |other: f64| value + GAP_SHARE * other - GAP_SHARE * value;
        let threshold = if is_above {
            let next = self.values.get(place + 1).copied().unwrap_or(self.high);
            let near = part(next);
            placement::between(value, if near > value { near } else { next })
        } else {
            let previous = if place > 0 { self.values[place - 1] } else { self.low };
            let near = part(previous);
            placement::between(if near < value { near } else { previous }, value)
        };
        Some(Found { feature, density, value, threshold, left: self.cut(cut) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of weight 1 at the given shares of a region with so many N points.
    fn along(values: &[f64], points: f64) -> Along {
        let (mut distinct, mut weights) = (vec![], vec![0.0]);
        let mut n_rows = 0;
        for equal in values.chunk_by(|a, b| a == b) {
            n_rows += equal.len();
            distinct.push(equal[0]);
            weights.push(n_rows as f64);
        }
        Along { values: distinct, weights, low: 0.0, high: 1.0, points, one: 1.0 }
    }

    #[test]
    fn gains_by_hand() {
        // All rows in the left quarter: 4 of 8 points in all, 4 of 5 on the left.
        let region = along(&[0.0, 0.1, 0.2, 0.25], 4.0);
        let best = region.best(0, 9).unwrap();
        assert_eq!(region.cut(best), Cut { share: 0.25, weight: 4.0 });
        // In a region without rows nothing is told from anything.
        assert_eq!(region.best(best, 9), None);
        let gain = information(4.0, 4.0) - information(4.0, 1.0);
        let by_hand = 8.0 * 2.0f64.ln() - (4.0 * 1.25f64.ln() + 5.0f64.ln());
        assert!((gain - by_hand).abs() < 1e-12);
    }

    #[test]
    fn the_cut_moves_to_the_end_of_the_gap() {
        // Two clusters of 10 rows at 0..0.1 and 0.9..1: the first cut is an end of the gap, the second the other.
        let values: Vec<f64> =
            (0..20).map(|i| f64::from(i % 10) / 90.0 + if i < 10 { 0.0 } else { 0.9 }).collect();
        let region = along(&values, 20.0);
        let (cut, density) = region.look_ahead().unwrap();
        assert_eq!(region.cut(cut).weight, 10.0);
        assert!((density - 1.0 / (20.0 * 0.8)).abs() < 1e-12, "{density}");
    }

    #[test]
    fn the_best_cut_is_the_first_of_all_that_gain_most() {
        let mut state = 5u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for round in 0..60 {
            let m = 1 + below(if round < 30 { 12 } else { 1500 });
            let mut values: Vec<f64> = (0..m).map(|_| (below(10_000) as f64) / 1e4).collect();
            values.sort_by(f64::total_cmp);
            if round % 2 > 0 {
                values.iter_mut().for_each(|value| *value = (*value * 20.0).round() / 20.0);
            }
            let region = along(&values, (1 + below(2000)) as f64);
            let end = region.end();
            let (y, n) = region.between(0, end);
            let gains: Vec<f64> = (1..end)
                .map(|cut| {
                    let (left, right) = (region.between(0, cut), region.between(cut, end));
                    information(y, n) - information(left.0, left.1) - information(right.0, right.1)
                })
                .collect();
            let most = gains.iter().copied().fold(0.0, f64::max);
            let tie = TIE * (y + n);
            let first = gains.iter().position(|&gain| gain >= most - tie).map(|place| place + 1);
            assert_eq!(region.best(0, end), first.filter(|_| most > tie), "round {round}");
        }
    }
}
