//! A cut of a surrogate feature as a test of its input column.
//!
//! A feature rises to a peak and falls, so that phi(x) > theta holds on one interval of the column. The ends of the
//! interval are placed between neighbouring values of the column at the node, where rows decide; an end without rows
//! beyond it is open: then the test is a threshold. Theta lies between two values of the feature at the node, those
//! of rows that are mistakes already included. The test sends the node's rows to the same sides as the cut does.
//!
//! | symbol | here |
//! |---|---|
//! | phi, the feature, by rank of the column's distinct values | `phi` |
//! | theta, in the unit of the feature | `theta` |
//! | ranks with phi > theta, at the node and in the whole column | `at_node_inside`, `inside` |
//! | ends of the test, in the unit of the column | `lower`, `upper`, `threshold` |
//!
//! Cost: O(m + v) for m rows of the node and v distinct values of the column: the feature is evaluated once on each.

use std::ops::Range;

use super::imm::KernelImm;
use super::node_columns::NodeColumn;
use crate::criterion::CutForm;
use crate::criterion::centers::CenterColumns;
use crate::grow::{GrowingTree, narrow};
use crate::memory;
use crate::placement;
use crate::search::BestCut;
use crate::tree::Test;

impl KernelImm<'_> {
    /// Returns the cut as a test of the input column, and whether the rows above it, inside the interval, go left.
    ///
    /// - `id`: the node, a leaf of `grown`;
    /// - `best`: the cut, of a feature (`best.feature` numbers features, not columns);
    /// - `at_node`: the feature's column at the node.
    ///
    /// An interval that is open at its lower end is the threshold `x <= upper`; one that is open at its upper end is
    /// the threshold below it with the sides exchanged, so the rows inside go right.
    pub(super) fn translate(
        &self,
        grown: &GrowingTree<'_>,
        id: usize,
        best: &BestCut,
        at_node: &NodeColumn,
    ) -> (Test, bool) {
        let (feature, _) = self.surrogate.place(best.feature);
        let column = &self.surrogate.columns()[feature];
        let mut phi = Vec::new();
        self.surrogate.evaluate(best.feature, &at_node.ranks, &mut phi);
        let of_rank = |rank: u32| phi[at_node.ranks.partition_point(|&r| r < rank)];
        let dropped = grown.partition.dropped(grown.nodes[id].segment).iter();
        let dropped = dropped.map(|&row| of_rank(column.rank[row as usize]));
        let dropped: Vec<f64> = memory::collected(dropped, "the dropped rows of a node");
        let range = 2.0 * self.mistakes.columns().half_range(best.feature);
        let theta = match narrow(best.cut, &dropped, range).form {
            CutForm::Range { upper, .. } => placement::between(upper.below, upper.above),
            _ => f64::NAN, // features have neither levels nor missing values
        };
        // The run of values above the cut: of the node, and of the whole column.
        let at_node_inside = run_above(&phi, theta);
        let all = column.ranks();
        self.surrogate.evaluate(best.feature, &all, &mut phi);
        let inside = run_above(&phi, theta);
        let value = |rank: u32| column.values[rank as usize];
        let ranks = &at_node.ranks;
        let (low, high, lower, upper) = if at_node_inside.is_empty() {
            let split = ranks.partition_point(|&rank| (rank as usize) < inside.start);
            let (low, high) = (inside.start as u32, inside.end as u32 - 1);
            (low, high, split.checked_sub(1).map(|i| ranks[i]), ranks.get(split).copied())
        } else {
            let Range { start, end } = at_node_inside;
            let lower = start.checked_sub(1).map(|i| ranks[i]);
            (ranks[start], ranks[end - 1], lower, ranks.get(end).copied())
        };
        // No row of the node is outside: one end is closed by a value of another row.
        let (lower, upper) = match (lower, upper) {
            (None, None) if inside.end < column.values.len() => (None, Some(inside.end as u32)),
            (None, None) => (inside.start.checked_sub(1).map(|rank| rank as u32), None),
            ends => ends,
        };
        match (lower, upper) {
            (None, None) => (Test::Threshold { feature, threshold: value(high) }, true),
            (None, Some(after)) => {
                let threshold = placement::between(value(high), value(after));
                (Test::Threshold { feature, threshold }, true)
            }
            (Some(before), None) => {
                let threshold = placement::between(value(before), value(low));
                (Test::Threshold { feature, threshold }, false)
            }
            (Some(before), Some(after)) => {
                let lower = placement::lower_end(value(before), value(low));
                let upper = placement::between(value(high), value(after));
                (Test::Interval { feature, lower, upper }, true)
            }
        }
    }
}

/// Returns the places of the numbers above `theta`, half-open. They are consecutive, since a feature has one peak; an
/// empty range at the end if there are none. O(number of values).
fn run_above(phi: &[f64], theta: f64) -> Range<usize> {
    let start = phi.iter().position(|&x| x > theta).unwrap_or(phi.len());
    let length = phi[start..].iter().take_while(|&&x| x > theta).count();
    start..start + length
}

/// Whether a value of the test's column goes left. In the unit of the column, as the cells of the table.
pub(super) fn goes_left(test: &Test, x: f64) -> bool {
    test.goes_left(x, false)
}
