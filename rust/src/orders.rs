//! The rows of every node in the order of each column.
//!
//! Each column is sorted once; a split then moves the rows of both sides apart and keeps their order, so that no node
//! sorts again. O(n d log n) for the root and O(rows x columns) per split. Memory: 4 n bytes per column.

use crate::criterion::{Cut, Gap};
use crate::error::Result;
use crate::grow::{GrowingTree, test_of};
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::partition::{Partition, Segment};
use crate::table::Table;

/// Fewest rows times columns of a task.
const MIN_CELLS_PER_TASK: usize = 16_384;

/// Returns the fewest columns of a node of `n_rows` rows that are worth a task.
pub(crate) fn columns_per_task(n_rows: usize) -> usize {
    (MIN_CELLS_PER_TASK / n_rows.max(1)).max(1)
}

/// A cut of a node along a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderCut {
    /// The column.
    pub(crate) feature: usize,
    /// Number of rows to the left, in the order of the column.
    pub(crate) n_left: usize,
    /// What the cut is worth.
    pub(crate) score: f64,
}

/// The orders of a growing tree; nodes have the segments that they have in its row array.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    columns: Vec<Partition>,
    /// By row: whether it is marked.
    goes_left: Vec<bool>,
}

impl Orders {
    /// Sorts all rows along every column, missing cells last; equal values by row.
    ///
    /// # Errors
    /// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
    pub(crate) fn new(table: &Table<'_>, monitor: &Monitor) -> Result<Self> {
        let n = table.n_samples();
        let rows: Vec<u32> = memory::collected(0..n as u32, "the rows of the nodes");
        let columns = parallel::try_map(0..table.n_features(), |feature| {
            monitor.check()?;
            let sorted = table.column(feature).sort(&rows);
            let order = sorted.iter().map(|&(_, row)| row);
            Ok(Partition::in_order(memory::collected(order, "the order of a column")).0)
        })?;
        Ok(Orders { columns, goes_left: memory::zeros(n, "the sides of the rows") })
    }

    /// The rows of a node in the order of a column.
    pub(crate) fn of(&self, feature: usize, segment: Segment) -> &[u32] {
        self.columns[feature].all(segment)
    }

    /// Splits a leaf of a tree between two neighbouring rows of different values: the first `n_left` in the order of a
    /// column go left. Returns the left child's id, which the right one follows. [`Orders::split`] must follow if a
    /// child is split further.
    pub(crate) fn split_leaf(
        &mut self,
        table: &Table<'_>,
        grown: &mut GrowingTree<'_>,
        id: usize,
        cut: OrderCut,
    ) -> usize {
        let OrderCut { feature, n_left, score } = cut;
        let order = self.of(feature, grown.nodes[id].segment);
        let at = |i: usize| table.column(feature).get(order[i] as usize);
        let upper = Gap { below: at(n_left - 1), above: at(n_left) };
        self.split_by(grown, id, feature, Cut::threshold(upper), score, |place| place < n_left)
    }

    /// [`Orders::split_leaf`] by any cut. `is_left`: whether the row at a place of the node's order along the column goes
    /// left.
    pub(crate) fn split_by(
        &mut self,
        grown: &mut GrowingTree<'_>,
        id: usize,
        feature: usize,
        cut: Cut,
        score: f64,
        is_left: impl Fn(usize) -> bool,
    ) -> usize {
        self.mark(feature, grown.nodes[id].segment, is_left);
        let test = test_of(feature, cut);
        let left = grown.split_by(id, test, score, self.sides(), |_, _| true).0;
        if let Some(missing_left) = cut.missing_left {
            grown.nodes[id].missing_left = missing_left;
        }
        left
    }

    /// Marks the rows of a node as those that go left, by their places in the order of a column.
    pub(crate) fn mark(
        &mut self,
        feature: usize,
        segment: Segment,
        is_left: impl Fn(usize) -> bool,
    ) {
        for (place, &row) in self.columns[feature].all(segment).iter().enumerate() {
            self.goes_left[row as usize] = is_left(place);
        }
    }

    /// The function by which a [`Partition`] splits: it appends whether each row is marked.
    pub(crate) fn sides(&self) -> impl Fn(&[u32], &mut Vec<bool>) + Sync {
        sides_of(&self.goes_left)
    }

    /// Moves the rows of a node that are marked and the others apart, in every column.
    pub(crate) fn split(&mut self, segment: Segment) {
        let goes_left = &self.goes_left;
        parallel::map(&mut self.columns, |order| {
            order.split(segment, sides_of(goes_left), |_, _| true)
        });
    }
}

/// Returns the function by which a [`Partition`] splits.
fn sides_of(goes_left: &[bool]) -> impl Fn(&[u32], &mut Vec<bool>) + Sync {
    |rows, sides| sides.extend(rows.iter().map(|&row| goes_left[row as usize]))
}
