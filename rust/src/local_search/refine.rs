//! Refines thresholds: tree alternating optimisation for cuts of one column (see [`crate::oblique::tao`]).
//!
//! At an inner node every row costs something on the left and something on the right, as the two subtrees stand. The
//! test with the least sum is found among all columns and cuts, the two children exchanged or not; a node that
//! could do with one child is removed. Nodes are visited from the last to the first in preorder, children before
//! parents. The costs of the rows under the labels of their leaves never rise. O(rows x columns) per node, and
//! O(rows x depth) to send rows down both sides.

use super::objective::RowCosts;
use super::ranks::Ranks;
use super::segments::Segments;
use super::sweep::{NodeRows, Sweep, Work};

/// A change by less than this share of the sum of the differences is none.
const TIE: f64 = 1e-12;

/// What it takes to send a row down the other side, in cells.
const CELLS_OF_ROUTE: usize = 4;

/// What refinement reads.
#[derive(Clone, Copy)]
pub(super) struct Refine<'a> {
    /// The table.
    pub ranks: &'a Ranks,
    /// What rows cost.
    pub costs: &'a RowCosts,
    /// What counts the cells.
    pub work: &'a Work<'a>,
    /// Number of labels.
    pub k: usize,
    /// Fewest rows of a leaf, at least 1.
    pub min_rows: usize,
    /// Whether a test that saves nothing remains: labels may settle so that it does.
    pub keeps_ties: bool,
    /// Whether columns are screened by some rows of a node first.
    pub screens: bool,
}

impl Refine<'_> {
    /// One pass over all inner nodes; returns whether anything changed.
    pub fn pass(&self, tree: &mut Segments) -> bool {
        let ids: Vec<usize> = (0..tree.nodes.len()).rev().collect();
        self.visit(tree, &ids)
    }

    /// Visits some nodes, from the last to the first; returns whether anything changed.
    pub fn visit(&self, tree: &mut Segments, descending: &[usize]) -> bool {
        let mut sweep = Sweep::new(self.work, self.screens);
        let mut changed = false;
        for &id in descending {
            if self.work.is_stopped() {
                break;
            }
            if tree.nodes.get(id).is_some_and(|node| node.cut.is_some()) {
                changed |= self.update(tree, id, &mut sweep);
            }
        }
        changed
    }

    /// Improves the test of one node.
    fn update(&self, tree: &mut Segments, id: usize, sweep: &mut Sweep<'_, 1>) -> bool {
        let rows = tree.rows_of(id);
        let differences = self.differences(tree, id);
        self.work.add(CELLS_OF_ROUTE * rows.len());
        let [left, right] = tree.children(id);
        let n_left = tree.nodes[left].len;
        // The rows on the left cost this much more there than on the right.
        let now: f64 = differences[..n_left].iter().map(|x| x[0]).sum();
        let (mut all, mut size) = (0.0, 0.0);
        for [x] in &differences {
            all += x;
            size += f64::abs(*x);
        }
        let mut best = now - TIE * size;
        let side = usize::from(all >= 0.0);
        let mut promoted = None;
        if f64::min(all, 0.0) <= if self.keeps_ties { best } else { now } {
            (best, promoted) = (f64::min(all, 0.0) - TIE * size, Some(side));
        }
        // Rows that cost the same on both sides do not matter, unless they count.
        let (mut kept, mut values) = (rows.to_vec(), differences);
        if self.min_rows == 1 {
            let is_kept: Vec<bool> = values.iter().map(|x| x[0] != 0.0).collect();
            let mut flags = is_kept.iter();
            kept.retain(|_| *flags.next().unwrap_or(&true));
            let mut flags = is_kept.iter();
            values.retain(|_| *flags.next().unwrap_or(&true));
        }
        let node = NodeRows {
            ranks: self.ranks,
            rows: &kept,
            values: &values,
            total: [all],
            min_rows: self.min_rows,
            margin: TIE * size,
            alone: None,
        };
        let found = sweep.best(&node, 0..self.ranks.n_features(), |l, r| f64::min(l[0], r[0]));
        let found = found.filter(|found| found.score < best);
        if found.is_none() && promoted.is_none() {
            return false;
        }
        let before = tree.subtree(id);
        if let Some(found) = found {
            let on_the_left = kept.iter().zip(&values);
            let on_the_left =
                on_the_left.filter(|(row, _)| self.ranks.goes_left(&found.cut, **row));
            let sum: f64 = on_the_left.map(|(_, x)| x[0]).sum();
            if sum > all - sum {
                tree.exchange(id);
            }
            tree.nodes[id].cut = Some(found.cut);
        } else {
            tree.promote(id, side);
        }
        tree.route(id, self.ranks);
        let nodes = &tree.nodes[id..id + tree.nodes[id].size];
        if nodes.iter().any(|node| node.len < self.min_rows) {
            tree.replace(id, before);
            return false;
        }
        debug_assert!(right > left);
        true
    }

    /// What each row of a node costs more on the left than on the right.
    fn differences(&self, tree: &Segments, id: usize) -> Vec<[f64; 1]> {
        let start = tree.nodes[id].start;
        let [left, right] = tree.children(id);
        let mut differences = vec![[0.0]; tree.nodes[id].len];
        for (here, there, sign) in [(left, right, 1.0), (right, left, -1.0)] {
            let leaves = &tree.nodes[here..here + tree.nodes[here].size];
            for leaf in leaves.iter().filter(|node| node.cut.is_none()) {
                for at in leaf.start..leaf.start + leaf.len {
                    let row = tree.rows[at];
                    let costs = &self.costs.costs[row as usize * self.k..][..self.k];
                    let other = self.label(tree, there, row);
                    let difference = costs[leaf.label as usize] - costs[other as usize];
                    differences[at - start] = [sign * difference];
                }
            }
        }
        differences
    }

    /// The label that a row gets under a node.
    fn label(&self, tree: &Segments, mut id: usize, row: u32) -> u32 {
        while let Some(cut) = &tree.nodes[id].cut {
            let step = if self.ranks.goes_left(cut, row) { 1 } else { 1 + tree.nodes[id + 1].size };
            id += step;
        }
        tree.nodes[id].label
    }
}
