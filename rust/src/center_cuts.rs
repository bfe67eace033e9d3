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
//! a suffix sum over those on the right. A row's least cost over the centers passed so far follows from the one before,
//! so that a column takes O(m log m) for sorting the m rows of a node and O(m a) for its a centers.
//!
//! Costs are regrets: less the row's least over all k centers, which no cut changes. **Ties:** cuts within `TIE` of
//! the least cost, as a share of it, are tied; the first column and the lowest threshold win.

use crate::criterion::centers::{CenterColumns, Centers, Coordinate, TableCenters};
use crate::criterion::label_cost::Regrets;
use crate::criterion::{CenterCut, RowSums};
use crate::error::Result;
use crate::grow::GrowingTree;
use crate::imm::BaseNodes;
use crate::index::Index;
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::placement;
use crate::shallow::DepthPrice;
use crate::table::Table;
use crate::tree::Test;

/// Costs closer than this share are tied.
const TIE: f64 = 1e-12;

/// What a tree of centers is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct CenterCutProblem<'a> {
    /// The cluster of every row.
    pub labels: &'a [u32],
    /// The cost of every center to every row, less the row's least; weights included.
    pub regrets: Regrets<'a>,
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
    regrets: Regrets<'a>,
    /// Values with their rows, ascending.
    rows: Vec<(f64, u32)>,
    /// Coordinates of the alive centers with their clusters, ascending.
    centers: Vec<(Coordinate, usize)>,
}

impl CenterSweep<'_> {
    /// The cuts that have an alive center on either side, in ascending order.
    fn gaps(&self) -> Vec<CenterGap> {
        let (rows, centers) = (&self.rows, &self.centers);
        let (mut n_rows, mut n_centers, mut gaps) = (0, 0, Vec::new());
        // Every step passes all rows, or all centers, of the least value that is left.
        let mut below = Coordinate::exact(f64::NEG_INFINITY);
        while n_centers < centers.len() {
            let row = rows.get(n_rows).map(|&(x, _)| Coordinate::exact(x));
            let center = centers[n_centers].0;
            let next = row.filter(|row| row.cmp(&center).is_le()).unwrap_or(center);
            let (low, high) = (below.nearest(), next.nearest());
            if n_centers > 0 && low < high {
                gaps.push(CenterGap { n_rows, n_centers, below: low, above: high });
            }
            n_rows += rows[n_rows..]
                .iter()
                .take_while(|&&(x, _)| Coordinate::exact(x).cmp(&next).is_le())
                .count();
            n_centers +=
                centers[n_centers..].iter().take_while(|(x, _)| x.cmp(&next).is_le()).count();
            below = next;
        }
        gaps
    }

    /// What the rows cost after each of the cuts. O(rows x centers).
    fn costs(&self, gaps: &[CenterGap]) -> Vec<f64> {
        let m = self.rows.len();
        let mut costs = vec![0.0; gaps.len()];
        let mut least: Vec<f64> = memory::filled(f64::INFINITY, m, "the costs of a node's rows");
        let mut gap = 0;
        for n_centers in 1..self.centers.len() {
            self.join(n_centers - 1, &mut least);
            let (mut sum, mut n_rows) = (0.0, 0);
            while let Some(cut) = gaps.get(gap).filter(|cut| cut.n_centers == n_centers) {
                sum += least[n_rows..cut.n_rows].iter().sum::<f64>();
                n_rows = cut.n_rows;
                costs[gap] = sum;
                gap += 1;
            }
        }
        least.fill(f64::INFINITY);
        for n_centers in (1..self.centers.len()).rev() {
            self.join(n_centers, &mut least);
            let (mut sum, mut n_rows) = (0.0, m);
            while gap > 0 && gaps[gap - 1].n_centers == n_centers {
                gap -= 1;
                sum += least[gaps[gap].n_rows..n_rows].iter().sum::<f64>();
                n_rows = gaps[gap].n_rows;
                costs[gap] += sum;
            }
        }
        costs
    }

    /// Takes one more center into the least costs of the rows.
    fn join(&self, center: usize, least: &mut [f64]) {
        let cluster = self.centers[center].1;
        for (least, &(_, row)) in least.iter_mut().zip(&self.rows) {
            *least = least.min(self.regrets.of(row)[cluster]);
        }
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
    let k = regrets.width();
    let d = table.n_features();
    let columns = TableCenters::new(table, index, labels, centers, k)?;
    parallel::map(0..d, |f| columns.prepare(f));
    let mut nodes = BaseNodes::new(k);
    let least_weight = depth
        .and_then(|depth| depth.weights)
        .map_or(1.0, |weights| weights.iter().copied().fold(f64::INFINITY, f64::min));
    // The columns and the sides of the tests above each node.
    let mut path: Vec<Vec<(usize, bool)>> = vec![vec![]];
    let mut id = 0;
    while id < grown.nodes.len() {
        if !nodes.is_leaf(id) {
            let rows = grown.partition.all(grown.nodes[id].segment);
            let alive = &nodes.alive[id];
            let depth = depth.map(|depth| depth.node(rows, alive, regrets, least_weight));
            let priced = |feature: usize| {
                let sweep = CenterSweep {
                    regrets,
                    rows: table.column(feature).sort(rows),
                    centers: columns.alive(alive, feature),
                };
                let gaps = sweep.gaps();
                let mut costs = sweep.costs(&gaps);
                if let Some(depth) = &depth {
                    let cuts = gaps.iter().map(|gap| (gap.n_rows, gap.n_centers));
                    let redundant = [true, false].map(|side| path[id].contains(&(feature, side)));
                    depth.add(&mut costs, &sweep.rows, cuts, redundant);
                }
                (gaps, costs)
            };
            let least = parallel::map(0..d, |feature| {
                monitor.check()?;
                Ok(priced(feature).1.into_iter().fold(f64::INFINITY, f64::min))
            });
            let least = least.into_iter().collect::<Result<Vec<f64>>>()?;
            let best = least.iter().copied().fold(f64::INFINITY, f64::min);
            let most = best + TIE * best;
            let Some(feature) = least.iter().position(|&cost| cost <= most && cost.is_finite())
            else {
                id += 1; // its centers are equal
                continue;
            };
            let (gaps, costs) = priced(feature);
            let first = costs.iter().position(|&cost| cost <= most).unwrap_or(0);
            let cut = gaps[first];
            let threshold = placement::between(cut.below, cut.above);
            let column = table.column(feature);
            let of_cut = CenterCut { n_left: cut.n_centers, mistakes: f64::NAN };
            let (left, right) = columns.split(alive, feature, of_cut);
            let go_left = |rows: &[u32], sides: &mut Vec<bool>| {
                sides.extend(rows.iter().map(|&row| column.get(row as usize) <= threshold));
            };
            let test = Test::Threshold { feature, threshold };
            grown.split_by(id, test, -best, go_left, |_, _| true);
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
