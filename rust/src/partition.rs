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
//! Memory: 4 bytes per row for the whole tree, and 16 per row of a node while it is split.

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

    /// Makes every row of some nodes, none above another, active again, in the order of the rows; the segments become those
    /// in which they are. O(rows of the nodes): a merge of two ascending runs each.
    pub fn restore(&mut self, segments: &mut [&mut Segment]) {
        segments.sort_unstable_by_key(|segment| (segment.start, segment.len)); // those without rows first
        let mut rest = (0, &mut self.rows[..]);
        let mut of_node = |segment: &Segment| {
            let (start, rows) = std::mem::take(&mut rest);
            let (rows, others) = rows[segment.start - start..].split_at_mut(segment.len);
            rest = (segment.start + segment.len, others);
            (segment.active, rows)
        };
        let nodes: Vec<(usize, &mut [u32])> = segments.iter().map(|s| of_node(s)).collect();
        parallel::map(nodes, |(active, rows)| merge(rows, active));
        segments.iter_mut().for_each(|segment| segment.active = segment.len);
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
        memory::room::<[u32; 4]>(rows.len(), "the sides of a cut");
        let blocks = parallel::map(rows.chunks_mut(BLOCK).enumerate(), |(block, rows)| {
            let (start, mut sides) = (block * BLOCK, Sides::new(rows.len()));
            let mut goes_left = Vec::with_capacity(rows.len());
            go_left(rows, &mut goes_left);
            let (mut n_left, mut n_right) = (0, 0);
            for (i, &left) in goes_left.iter().enumerate() {
                let (row, was_active) = (rows[i], start + i < segment.active);
                if was_active && keep(row, left) {
                    // Written to both sides, counted on one: no branch to mispredict.
                    (rows[n_left], sides.right[n_right]) = (row, row);
                    n_left += usize::from(left);
                    n_right += usize::from(!left);
                } else {
                    sides.dropped[usize::from(!left)].push(row);
                    if was_active {
                        sides.removed.push(row);
                    }
                }
            }
            sides.right.truncate(n_right);
            (n_left, sides)
        });
        let n_removed = blocks.iter().map(|(_, sides)| sides.removed.len()).sum();
        let mut removed = memory::reserved(n_removed, "the rows that a cut drops");
        blocks.iter().for_each(|(_, sides)| removed.extend(&sides.removed));
        let mut start = segment.start;
        let [left, right] = [0, 1].map(|side| {
            let begin = start;
            for (block, (n_left, sides)) in blocks.iter().enumerate() {
                let n_active = if side == 0 {
                    let first = segment.start + block * BLOCK;
                    self.rows.copy_within(first..first + n_left, start);
                    *n_left
                } else {
                    self.rows[start..][..sides.right.len()].copy_from_slice(&sides.right);
                    sides.right.len()
                };
                start += n_active;
            }
            let active = start - begin;
            for dropped in blocks.iter().map(|(_, sides)| &sides.dropped[side]) {
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

/// Merges the first rows, so many, and the others, both ascending.
fn merge(rows: &mut [u32], n_first: usize) {
    if n_first == rows.len() {
        return;
    }
    let (first, others) = rows.split_at(n_first);
    let mut others = others.iter().copied().peekable();
    let mut merged = memory::reserved(rows.len(), "the rows of a node");
    for &row in first {
        while let Some(earlier) = others.next_if(|&other| other < row) {
            merged.push(earlier);
        }
        merged.push(row);
    }
    merged.extend(others);
    rows.copy_from_slice(&merged);
}

/// By row, of `n_rows`, the number that comes with the run it is in. Each row is in one of the runs, which are ascending.
pub(crate) fn numbers_of_rows(runs: &[(u32, &[u32])], n_rows: usize) -> Vec<u32> {
    const LEAST: usize = 1 << 14;
    let mut numbers: Vec<u32> = memory::zeros(n_rows, "the leaves of the rows");
    let share = parallel::even_share(n_rows, LEAST);
    parallel::map(numbers.chunks_mut(share).enumerate(), |(i, numbers)| {
        let start = i * share;
        let place = |end: usize, run: &[u32]| run.partition_point(|&row| (row as usize) < end);
        for &(number, run) in runs {
            for &row in &run[place(start, run)..place(start + numbers.len(), run)] {
                numbers[row as usize - start] = number;
            }
        }
    });
    numbers
}

/// Where the rows of one block go that do not stay in front of it, as the active ones of the left side do; the first of a pair
/// is the left side. Each has room for all of them: vectors that grow bit by bit make threads wait for each other, for memory
/// that one gave back is another's to use again.
struct Sides {
    /// Those that stay active.
    right: Vec<u32>,
    dropped: [Vec<u32>; 2],
    removed: Vec<u32>,
}

impl Sides {
    fn new(n_rows: usize) -> Self {
        Sides {
            right: vec![0; n_rows],
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
        let runs = [ll, lr, right].map(|node| [partition.active(node), partition.dropped(node)]);
        let runs: Vec<(u32, &[u32])> =
            (7..).zip(runs).flat_map(|(i, runs)| runs.map(|run| (i, run))).collect();
        assert_eq!(numbers_of_rows(&runs, 8), [8, 9, 7, 9, 7, 9, 7, 9]);
        let (mut right, mut ll, mut empty) = (right, ll, Segment { active: 0, len: 0, ..right });
        partition.restore(&mut [&mut right, &mut empty, &mut ll]);
        assert_eq!(partition.active(ll), [2, 4, 6]);
        assert_eq!(partition.active(right), [1, 3, 5, 7]);
        assert!(partition.dropped(ll).is_empty() && partition.dropped(right).is_empty());
        assert_eq!(partition.active(lr), [0]);
    }

    #[test]
    fn rows_have_the_number_of_their_run_on_any_number_of_threads() {
        let runs: Vec<Vec<u32>> = (0..3)
            .map(|i| (0..70_000).filter(|row| row % 1000 * (row % 1000) % 3 == i).collect())
            .collect();
        let runs: Vec<(u32, &[u32])> = (5..).zip(runs.iter().map(Vec::as_slice)).collect();
        let expected: Vec<u32> = (0..70_000).map(|row| 5 + row % 1000 * (row % 1000) % 3).collect();
        for n_threads in [1, 3] {
            let found = parallel::with_pool(n_threads, || numbers_of_rows(&runs, 70_000));
            assert_eq!(found.unwrap(), expected);
        }
    }
}
