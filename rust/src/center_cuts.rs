//! Trees from centers by what cuts cost: ExGreedy (Laber and Murtinho 2021, *On the price of explainability for some
//! clustering problems*), and ExShallow, which adds a price of depth ([`crate::shallow`]).
//!
//! A node with two centers or more is split by the cut between its centers after which its rows cost least, each row
//! about the cheapest of the centers on its own side. k centers give k leaves.
//!
//! | paper | here |
//! |---|---|
//! | centers alive at the node u | [`BaseNodes::alive`] |
//! | cost of a cut | `CenterSweep::costs` |
//!
//! Unlike label costs, what a row costs on a side depends on which centers lie there, and these change along a column.
//! Between two neighbouring centers they do not: there the cost of a cut is a prefix sum over the rows on the left and
//! a suffix sum over those on the right. Of a row are needed its least costs over the first and over the last centers,
//! for every number of them: O(m a) for the m rows and a centers of a node. Columns are sorted once (`orders.rs`).
//!
//! Memory: 4 n bytes per column for the orders.
//!
//! Costs are regrets: less the row's least over all k centers, which no cut changes. **Ties:** cuts within `TIE` of
//! the least cost, as a share of it, are tied; the first column and the lowest threshold win.

use crate::criterion::CenterCut;
use crate::criterion::centers::{CenterColumns, Centers, Coordinate, TableCenters};
use crate::criterion::label_cost::RegretMatrix;
use crate::criterion::label_counts::OneHot;
use crate::error::Result;
use crate::grow::GrowingTree;
use crate::imm::BaseNodes;
use crate::index::Index;
use crate::memory;
use crate::orders::Orders;
use crate::parallel::{self, Monitor};
use crate::placement;
use crate::shallow::DepthPrice;
use crate::table::Table;
use crate::tree::Test;

/// Costs closer than this share are tied.
const TIE: f64 = 1e-12;

/// Rows whose costs are gathered before they are compared: they come from memory side by side.
const ROWS_PER_BLOCK: usize = 64;

/// What a tree of centers is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct CenterCutProblem<'a> {
    /// The cluster of every row.
    pub labels: &'a [u32],
    /// The cost of every center to every row, less the row's least; weights included.
    pub regrets: RegretMatrix<'a>,
    /// The centers, in the columns' own units.
    pub centers: Centers<'a>,
    /// ExShallow's price of depth; none: ExGreedy.
    pub depth: Option<DepthPrice<'a>>,
}

/// A cut between alive centers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CenterGap {
    /// Rows on the left, of those in the order of the column.
    n_rows: usize,
    /// Alive centers on the left, of those in the order of the column.
    n_centers: usize,
    /// The ends of the gap in which the threshold lies.
    below: f64,
    above: f64,
}

/// The rows of a node and the alive centers along a column.
struct CenterSweep<'a> {
    regrets: RegretMatrix<'a>,
    monitor: &'a Monitor,
    /// The rows in the order of the column, and their values.
    rows: &'a [u32],
    values: Vec<f64>,
    /// Coordinates of the alive centers with their clusters, ascending.
    centers: Vec<(Coordinate, usize)>,
}

impl CenterSweep<'_> {
    /// The cuts that have an alive center on either side, in ascending order.
    fn gaps(&self) -> Vec<CenterGap> {
        let (values, centers) = (&self.values, &self.centers);
        let (mut n_rows, mut n_centers, mut gaps) = (0, 0, Vec::new());
        // Every step passes all rows, or all centers, of the least value that is left.
        let mut below = Coordinate::exact(f64::NEG_INFINITY);
        while n_centers < centers.len() {
            let row = values.get(n_rows).map(|&x| Coordinate::exact(x));
            let center = centers[n_centers].0;
            let next = row.filter(|row| row.cmp(&center).is_le()).unwrap_or(center);
            let (low, high) = (below.nearest(), next.nearest());
            if n_centers > 0 && low < high {
                gaps.push(CenterGap { n_rows, n_centers, below: low, above: high });
            }
            n_rows += values[n_rows..]
                .iter()
                .take_while(|&&x| Coordinate::exact(x).cmp(&next).is_le())
                .count();
            n_centers +=
                centers[n_centers..].iter().take_while(|(x, _)| x.cmp(&next).is_le()).count();
            below = next;
        }
        gaps
    }

    /// What the rows cost after each of the cuts. O(rows x centers); the costs of a row are read once.
    fn costs(&self, gaps: &[CenterGap]) -> Result<Vec<f64>> {
        // Cuts between the same centers.
        let runs: Vec<&[CenterGap]> = gaps.chunk_by(|a, b| a.n_centers == b.n_centers).collect();
        // What the rows cost that are on the left of all cuts of a run, or on the right.
        let mut outside = vec![[0.0; 2]; runs.len()];
        // What the others cost on the left and on the right of the cuts of the one run that they are in.
        let mut inside: Vec<[f64; 2]> =
            memory::zeros(self.rows.len(), "the costs of a node's rows");
        let (mut before, mut after) =
            (vec![0.0; self.centers.len()], vec![0.0; self.centers.len()]);
        let (mut passed, mut gathered) = (0, vec![]);
        for (i, place) in inside.iter_mut().enumerate() {
            let at = i % ROWS_PER_BLOCK;
            if at == 0 {
                self.monitor.check()?;
                gathered.clear();
                for &row in self.rows[i..].iter().take(ROWS_PER_BLOCK) {
                    let regrets = self.regrets.of(row);
                    gathered.extend(self.centers.iter().map(|&(_, cluster)| regrets[cluster]));
                }
            }
            let regrets = &gathered[at * self.centers.len()..][..self.centers.len()];
            running_least(before.iter_mut().zip(regrets));
            running_least(after.iter_mut().zip(regrets.iter().rev()));
            // Of the first, and of the other centers.
            let sides = |run: &[CenterGap]| {
                let n_left = run[0].n_centers;
                [before[n_left - 1], after[self.centers.len() - n_left - 1]]
            };
            while runs.get(passed).is_some_and(|run| run[run.len() - 1].n_rows <= i) {
                passed += 1;
            }
            let (right_of, others) = runs.split_at(passed);
            for (run, sums) in right_of.iter().zip(&mut outside) {
                sums[1] += sides(run)[1];
            }
            let mut left_of = passed;
            if let Some(run) = others.first().filter(|run| run[0].n_rows <= i) {
                *place = sides(run);
                left_of += 1;
            }
            for (run, sums) in runs.iter().zip(&mut outside).skip(left_of) {
                sums[0] += sides(run)[0];
            }
        }
        let mut costs = Vec::with_capacity(gaps.len());
        for (run, [mut left, mut right]) in runs.into_iter().zip(outside) {
            let first = costs.len();
            let mut n_rows = run[0].n_rows;
            for cut in run {
                left += inside[n_rows..cut.n_rows].iter().map(|sides| sides[0]).sum::<f64>();
                n_rows = cut.n_rows;
                costs.push(left);
            }
            for (cut, cost) in run.iter().zip(&mut costs[first..]).rev() {
                right += inside[cut.n_rows..n_rows].iter().map(|sides| sides[1]).sum::<f64>();
                n_rows = cut.n_rows;
                *cost += right;
            }
        }
        Ok(costs)
    }
}

/// Writes the least of the first cost, of the first two, and so on, to the places beside them.
fn running_least<'c>(costs: impl Iterator<Item = (&'c mut f64, &'c f64)>) {
    let mut least = f64::INFINITY;
    for (place, &cost) in costs {
        if cost < least {
            least = cost;
        }
        *place = least;
    }
}

/// Splits the only leaf of `grown` until every leaf has one center.
///
/// # Errors
/// [`crate::error::Error::Shape`] if sizes disagree, [`crate::error::Error::Interrupted`] if the monitor was asked to
/// stop.
pub fn grow(
    table: &Table<'_>,
    index: &Index,
    problem: &CenterCutProblem<'_>,
    grown: &mut GrowingTree<'_>,
    monitor: &Monitor,
) -> Result<BaseNodes> {
    let CenterCutProblem { labels, regrets, centers, depth } = *problem;
    let k = regrets.k();
    let d = table.n_features();
    let rows = OneHot::new(labels, k, None)?;
    let columns = TableCenters::new(table, index, rows, centers)?;
    parallel::map(0..d, |f| columns.prepare(f));
    let mut orders = Orders::new(table, monitor)?;
    let mut nodes = BaseNodes::new(k);
    let least_weight = depth
        .and_then(|depth| depth.weights)
        .map_or(1.0, |weights| weights.iter().copied().fold(f64::INFINITY, f64::min));
    // The columns and the sides of the tests above each node.
    let mut path: Vec<Vec<(usize, bool)>> = vec![vec![]];
    let mut id = 0;
    while id < grown.nodes.len() {
        if !nodes.is_leaf(id) {
            let segment = grown.nodes[id].segment;
            let alive = &nodes.alive[id];
            let depth = depth.map(|depth| {
                let rows = grown.partition.all(segment);
                depth.node(rows, alive, regrets, least_weight)
            });
            let priced = |feature: usize| -> Result<(Vec<CenterGap>, Vec<f64>)> {
                let rows = orders.of(feature, segment);
                let mut values = Vec::new();
                table.column(feature).gather(rows, &mut values);
                let centers = columns.alive(alive, feature);
                let sweep = CenterSweep { regrets, monitor, rows, values, centers };
                let gaps = sweep.gaps();
                let mut costs = sweep.costs(&gaps)?;
                if let Some(depth) = &depth {
                    let cuts = gaps.iter().map(|gap| (gap.n_rows, gap.n_centers));
                    let redundant = [true, false].map(|side| path[id].contains(&(feature, side)));
                    depth.add(&mut costs, rows, cuts, redundant);
                }
                Ok((gaps, costs))
            };
            let least = parallel::try_map(0..d, |feature| {
                monitor.check()?;
                Ok(priced(feature)?.1.into_iter().fold(f64::INFINITY, f64::min))
            })?;
            let best = least.iter().copied().fold(f64::INFINITY, f64::min);
            let most = best + TIE * best;
            let Some(feature) = least.iter().position(|&cost| cost <= most && cost.is_finite())
            else {
                id += 1; // its centers are equal
                continue;
            };
            let (gaps, costs) = priced(feature)?;
            let first = costs.iter().position(|&cost| cost <= most).unwrap_or(0);
            let cut = gaps[first];
            let threshold = placement::between(cut.below, cut.above);
            let of_cut = CenterCut { n_left: cut.n_centers, of_levels: None, mistakes: f64::NAN };
            let (left, right) = columns.split(alive, feature, of_cut);
            let test = Test::Threshold { feature, threshold };
            orders.mark(feature, segment, |place| place < cut.n_rows);
            grown.split_by(id, test, -best, orders.sides(), |_, _| true);
            orders.split(segment);
            nodes.split(id, [left, right], f64::NAN);
            for side in [true, false] {
                path.push([&path[id][..], &[(feature, side)]].concat());
            }
            monitor.report(grown.leaves().count(), -best);
        }
        id += 1;
    }
    Ok(nodes)
}
