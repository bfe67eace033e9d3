//! The rows of every node as one contiguous range of an array of row numbers, split in place.
//!
//! A split moves the rows of the left child to the front of its parent's range and those of the right child behind
//! them, each in the order of the rows: O(rows of the node) and no memory per node. Rows that are not searched any more
//! (mistakes of IMM) stay in the range of their node, behind the searched ones.
//!
//! ```text
//! range of a node:   | searched rows, ascending | dropped rows, ascending |
//! after its split:   | searched | dropped || searched | dropped |
//!                      left child            right child
//! ```
//!
//! Memory: 4 bytes per row for the whole tree, and as much again while a node is split.

use crate::memory;
use crate::parallel;

/// Rows that one thread sends to their sides in one go.
const BLOCK: usize = 4096;

/// Whether what the rows of a node say nothing of, missing cells or levels that none has, goes left: to the side with
/// more rows, the left one if they are equal.
pub(crate) fn others_go_left(n_left: usize, n_right: usize) -> bool {
    n_left >= n_right
}

/// A node's range of the row array: `[start, start + len)`. The first `active` rows are searched; the others
/// (IMM's mistakes) only go down the tree. Both parts keep the order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    start: usize,
    active: usize,
    len: usize,
}

impl Segment {
    /// Number of rows, searched or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no row reaches the node.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The row array.
#[derive(Debug)]
pub struct Partition {
    rows: Vec<u32>,
}

impl Partition {
    /// The rows 0..n_samples in one node.
    pub fn new(n_samples: usize) -> (Self, Segment) {
        Partition::in_order(memory::collected(0..n_samples as u32, "the rows of the nodes"))
    }

    /// The given rows in one node; splits keep their order.
    pub fn in_order(rows: Vec<u32>) -> (Self, Segment) {
        let n = rows.len();
        (Partition { rows }, Segment { start: 0, active: n, len: n })
    }

    /// The rows that are searched.
    pub fn active(&self, segment: Segment) -> &[u32] {
        &self.rows[segment.start..][..segment.active]
    }

    /// The rows that are not searched any more, ascending.
    pub fn dropped(&self, segment: Segment) -> &[u32] {
        &self.rows[segment.start + segment.active..][..segment.len - segment.active]
    }

    /// All rows of the node.
    pub fn all(&self, segment: Segment) -> &[u32] {
        &self.rows[segment.start..][..segment.len]
    }

    /// Makes every row of the node active again, in the order of the rows; returns the segment in which they are.
    /// O(rows of the node): a merge of two ascending runs.
    pub fn restore(&mut self, segment: Segment) -> Segment {
        if segment.active < segment.len {
            let merged = {
                let mut dropped = self.dropped(segment).iter().copied().peekable();
                let mut merged = memory::reserved(segment.len, "the rows of a node");
                for &row in self.active(segment) {
                    while let Some(earlier) = dropped.next_if(|&other| other < row) {
                        merged.push(earlier);
                    }
                    merged.push(row);
                }
                merged.extend(dropped);
                merged
            };
            self.rows[segment.start..][..segment.len].copy_from_slice(&merged);
        }
        Segment { active: segment.len, ..segment }
    }

    /// Splits a node, keeping the order of rows. Returns the two sides, and the rows that were active until now.
    ///
    /// `go_left(rows, sides)` appends to `sides` whether each of some rows goes left. `keep(row, left)` is whether an
    /// active row stays active on its side.
    pub fn split(
        &mut self,
        segment: Segment,
        go_left: impl Fn(&[u32], &mut Vec<bool>) + Sync,
        keep: impl Fn(u32, bool) -> bool + Sync,
    ) -> (Segment, Segment, Vec<u32>) {
        let rows = &mut self.rows[segment.start..][..segment.len];
        // Of the blocks, see `Sides`.
        memory::room::<[u32; 5]>(rows.len(), "the sides of a cut");
        let blocks = parallel::map(rows.chunks(BLOCK).enumerate(), |(block, rows)| {
            let (start, mut sides) = (block * BLOCK, Sides::new(rows.len()));
            let mut goes_left = Vec::with_capacity(rows.len());
            go_left(rows, &mut goes_left);
            let (mut n_left, mut n_right) = (0, 0);
            for ((i, &row), &left) in (start..).zip(rows).zip(&goes_left) {
                let was_active = i < segment.active;
                if was_active && keep(row, left) {
                    // Written to both sides, counted on one: no branch to mispredict.
                    (sides.active[0][n_left], sides.active[1][n_right]) = (row, row);
                    n_left += usize::from(left);
                    n_right += usize::from(!left);
                } else {
                    sides.dropped[usize::from(!left)].push(row);
                    if was_active {
                        sides.removed.push(row);
                    }
                }
            }
            sides.active[0].truncate(n_left);
            sides.active[1].truncate(n_right);
            sides
        });
        let n_removed = blocks.iter().map(|sides| sides.removed.len()).sum();
        let mut removed = memory::reserved(n_removed, "the rows that a cut drops");
        blocks.iter().for_each(|sides| removed.extend(&sides.removed));
        let mut start = segment.start;
        let [left, right] = [0, 1].map(|side| {
            let begin = start;
            for active in blocks.iter().map(|sides| &sides.active[side]) {
                self.rows[start..][..active.len()].copy_from_slice(active);
                start += active.len();
            }
            let active = start - begin;
            for dropped in blocks.iter().map(|sides| &sides.dropped[side]) {
                self.rows[start..][..dropped.len()].copy_from_slice(dropped);
                start += dropped.len();
            }
            // Newly dropped rows come before the old ones, both in order: two runs, which a stable sort merges.
            self.rows[begin + active..start].sort();
            Segment { start: begin, active, len: start - begin }
        });
        (left, right, removed)
    }
}

/// Where the rows of one block go; the first of each pair is the left side. Each has room for all of them: vectors that
/// grow bit by bit make threads wait for each other, for memory that one gave back is another's to use again.
struct Sides {
    active: [Vec<u32>; 2],
    dropped: [Vec<u32>; 2],
    removed: Vec<u32>,
}

impl Sides {
    fn new(n_rows: usize) -> Self {
        Sides {
            active: [vec![0; n_rows], vec![0; n_rows]],
            dropped: [Vec::with_capacity(n_rows), Vec::with_capacity(n_rows)],
            removed: Vec::with_capacity(n_rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_stable_and_dropped_rows_travel() {
        let (mut partition, root) = Partition::new(8);
        let go_left = [true, false, true, false, true, false, true, false];
        let (left, right, removed) = partition.split(
            root,
            |rows, sides| sides.extend(rows.iter().map(|&row| go_left[row as usize])),
            |row, _| row != 2 && row != 5,
        );
        assert_eq!(removed, [2, 5]);
        assert_eq!(partition.active(left), [0, 4, 6]);
        assert_eq!(partition.dropped(left), [2]);
        assert_eq!(partition.active(right), [1, 3, 7]);
        assert_eq!(partition.dropped(right), [5]);
        // Rows of `left` in order: 0, 4, 6 active, then 2.
        let (ll, lr, _) = partition.split(
            left,
            |rows, sides| sides.extend(rows.iter().map(|&row| row > 0)),
            |_, _| true,
        );
        assert_eq!(partition.all(ll), [4, 6, 2]);
        assert_eq!(partition.all(lr), [0]);
        let ll = partition.restore(ll);
        assert_eq!(partition.active(ll), [2, 4, 6]);
    }
}
