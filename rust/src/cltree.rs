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
//! **Cost.** A node of m rows takes O(m d), for handing its rows on. A gain is convex in the numbers of points on the left, so among the cuts
//! of a block it is at most that of a corner of the block's numbers, and few blocks are opened.

use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::placement;
use crate::table::Table;
use crate::tree::{Test, TestArrays};

/// Cuts of a block that is bounded as a whole.
const BLOCK: usize = 256;
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

/// A region along one column. Its m rows have 2 m + 2 cuts: the region's lower end, just below and just above the value
/// of each row, and the upper end. Those between rows of one value are none.
struct Along<'a> {
    /// The values of the rows, ascending.
    values: &'a [f64],
    /// Weight before each row, and of all: m + 1 of them; none: every row weighs 1.
    weights: Option<Vec<f64>>,
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

impl Along<'_> {
    /// The cut of a number in `0 .. 2 m + 2`.
    fn cut(&self, cut: usize) -> Cut {
        let n_rows = cut / 2;
        let weight = match &self.weights {
            Some(weights) => weights[n_rows],
            None => n_rows as f64,
        };
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

    /// Whether a cut between two rows has rows of different values on its sides.
    fn parts(&self, cut: usize) -> bool {
        let n_left = cut / 2;
        n_left == 0 || n_left == self.values.len() || self.values[n_left - 1] < self.values[n_left]
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
        let gain_at = |cut: usize| {
            if self.parts(cut) { gain(left_of(cut)) } else { f64::NEG_INFINITY }
        };
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

/// The rows of a node in the ascending order of a column. Their cells are kept beside them: to look them up in the table
/// would take several times as long.
struct Order {
    values: Vec<f64>,
    rows: Vec<u32>,
}

impl Order {
    /// The part of the rows on one side; `len` of them.
    fn part(&self, goes_left: &[bool], is_left: bool, len: usize) -> Order {
        let mut values = memory::reserved(len, "the cells of a node");
        let mut rows = memory::reserved(len, "the rows of a node");
        for (&value, &row) in self.values.iter().zip(&self.rows) {
            if goes_left[row as usize] == is_left {
                values.push(value);
                rows.push(row);
            }
        }
        Order { values, rows }
    }
}

/// A node that grows.
struct Node {
    /// One per column; none once the node is done, and where it is not cut.
    orders: Vec<Order>,
    low: Vec<f64>,
    high: Vec<f64>,
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
    let (n, d) = (table.n_samples(), table.n_features());
    if let Some(weights) = weights {
        Error::check_len("weights", weights.len(), n, "rows")?;
    }
    let weight_of = |row: u32| weights.map_or(1.0, |weights| weights[row as usize]);
    let all: Vec<u32> = memory::collected(0..n as u32, "the rows of the table");
    let total = parallel::sum_rows(&all, 1, |row, sums| sums[0] += weight_of(row))[0];
    let one = all.iter().map(|&row| weight_of(row)).fold(f64::INFINITY, f64::min);
    let orders = parallel::try_map(0..d, |f| {
        monitor.check()?;
        let pairs = table.column(f).sort(&all);
        let values = memory::collected(pairs.iter().map(|pair| pair.0), "the cells of a column");
        let rows = memory::collected(pairs.iter().map(|pair| pair.1), "the order of a column");
        Ok(Order { values, rows })
    })?;
    let end = |value: Option<&f64>| value.copied().unwrap_or(0.0);
    let ends = |order: &Order| (end(order.values.first()), end(order.values.last()));
    let (low, high) = orders.iter().map(ends).unzip();
    let mut nodes = vec![Node { orders, low, high }];
    let (mut weight, mut points) = (vec![total], vec![total]);
    let (mut tests, mut children) = (vec![Test::Leaf], vec![[0, 1]]);
    let mut goes_left: Vec<bool> = memory::zeros(n, "the sides of the rows");
    let mut id = 0;
    while id < nodes.len() {
        let node = Node { orders: std::mem::take(&mut nodes[id].orders), ..Node::of(&nodes[id]) };
        let n_points = points[id].max(weight[id]);
        let found = parallel::try_map(0..node.orders.len(), |f| {
            monitor.check()?;
            let along = Along::new(&node, f, n_points, one, weights);
            Ok(along.and_then(|along| along.found(f)))
        })?;
        let best = found
            .into_iter()
            .flatten()
            .reduce(|best, next| if next.density < best.density { next } else { best });
        if let Some(best) = best {
            let (f, left) = (best.feature, nodes.len());
            let order = &node.orders[f];
            let n_left = order.values.partition_point(|&value| value <= best.threshold);
            for (i, &row) in order.rows.iter().enumerate() {
                goes_left[row as usize] = i < n_left;
            }
            let lens = [n_left, order.rows.len() - n_left];
            let side_weights = [best.left.weight, weight[id] - best.left.weight];
            let shares = [best.left.share, 1.0 - best.left.share];
            for (side, (side_weight, share)) in side_weights.into_iter().zip(shares).enumerate() {
                let mut child = Node { orders: vec![], ..Node::of(&node) };
                let end = if side == 0 { &mut child.high[f] } else { &mut child.low[f] };
                *end = best.value;
                if side_weight >= min_weight_share * total {
                    child.orders = parallel::map(&node.orders, |order| {
                        order.part(&goes_left, side == 0, lens[side])
                    });
                }
                nodes.push(child);
                weight.push(side_weight);
                points.push(n_points * share);
                tests.push(Test::Leaf);
                children.push([0, 1]);
            }
            tests[id] = Test::Threshold { feature: f, threshold: best.threshold };
            children[id] = [left, left + 1];
            monitor.report(left / 2 + 2, best.density);
        }
        id += 1;
    }
    let tests = TestArrays::of(tests.iter().zip(children));
    Ok(DensityTree { tests, weight, points })
}

impl Node {
    /// The box of a node, without rows.
    fn of(node: &Node) -> Node {
        Node { orders: vec![], low: node.low.clone(), high: node.high.clone() }
    }
}

impl<'a> Along<'a> {
    /// A node along a column; none if its region has no width there.
    fn new(
        node: &'a Node,
        feature: usize,
        points: f64,
        one: f64,
        weights: Option<&[f64]>,
    ) -> Option<Self> {
        let (low, high) = (node.low[feature], node.high[feature]);
        let Order { values, rows } = &node.orders[feature];
        if low >= high || rows.is_empty() {
            return None;
        }
        let weights = weights.map(|weights| {
            let mut passed: Vec<f64> = memory::reserved(rows.len() + 1, "the weights of a node");
            let mut sum = 0.0;
            passed.push(sum);
            passed.extend(rows.iter().map(|&row| {
                sum += weights[row as usize];
                sum
            }));
            passed
        });
        Some(Along { values, weights, low, high, points, one })
    }

    /// The cut of the column, its threshold beside the value in the gap on the cut's side.
    fn found(&self, feature: usize) -> Option<Found> {
        let (cut, density) = self.look_ahead()?;
        let (row, is_above) = ((cut - 1) / 2, cut % 2 == 0);
        let value = self.values[row];
        let part = |other: f64| value + GAP_SHARE * other - GAP_SHARE * value;
        let threshold = if is_above {
            let next = self.values.get(row + 1).copied().unwrap_or(self.high);
            let near = part(next);
            placement::between(value, if near > value { near } else { next })
        } else {
            let previous = if row > 0 { self.values[row - 1] } else { self.low };
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
    fn along(values: &[f64], points: f64) -> Along<'_> {
        Along { values, weights: None, low: 0.0, high: 1.0, points, one: 1.0 }
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
                    if !region.parts(cut) {
                        return 0.0;
                    }
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
