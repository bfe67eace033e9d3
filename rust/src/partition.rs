//! The rows of every node as one contiguous range of an index array, split in place.

/// A node's range of the row array: `[start, start + len)`. The first `active` rows are searched; the others
/// (IMM's mistakes) only travel down the tree. Both parts are in ascending row order.
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

    /// Number of rows that are searched.
    pub fn n_active(&self) -> usize {
        self.active
    }
}

/// The row array.
#[derive(Debug)]
pub struct Partition {
    rows: Vec<u32>,
}

impl Partition {
    /// All rows in one node.
    pub fn new(n_samples: usize) -> (Self, Segment) {
        let rows = (0..n_samples as u32).collect();
        (Partition { rows }, Segment { start: 0, active: n_samples, len: n_samples })
    }

    /// The rows that are searched.
    pub fn active(&self, segment: Segment) -> &[u32] {
        &self.rows[segment.start..][..segment.active]
    }

    /// The rows that only travel.
    pub fn dropped(&self, segment: Segment) -> &[u32] {
        &self.rows[segment.start + segment.active..][..segment.len - segment.active]
    }

    /// All rows of the node.
    pub fn all(&self, segment: Segment) -> &[u32] {
        &self.rows[segment.start..][..segment.len]
    }

    /// Makes every row of the node active again.
    pub fn restore(&mut self, segment: Segment) -> Segment {
        if segment.active < segment.len {
            let merged = {
                let mut dropped = self.dropped(segment).iter().copied().peekable();
                let mut merged = Vec::with_capacity(segment.len);
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

    /// Splits a node, keeping row order: `go_left[i]` for the i-th row of [`Partition::all`], and
    /// `keep(row, left)` says whether an active row stays active on its side. Returns the two sides and the
    /// rows that were active until now, in ascending order.
    pub fn split(
        &mut self,
        segment: Segment,
        go_left: &[bool],
        keep: impl Fn(u32, bool) -> bool,
    ) -> (Segment, Segment, Vec<u32>) {
        debug_assert_eq!(go_left.len(), segment.len);
        let rows = &mut self.rows[segment.start..][..segment.len];
        // Left-active rows are written in place; the others wait in three buffers.
        let mut n_left_active = 0;
        let (mut left_dropped, mut right_active, mut right_dropped) = (vec![], vec![], vec![]);
        let mut removed = vec![];
        for i in 0..segment.len {
            let (row, left) = (rows[i], go_left[i]);
            let active = i < segment.active && keep(row, left);
            if i < segment.active && !active {
                removed.push(row);
            }
            match (left, active) {
                (true, true) => {
                    rows[n_left_active] = row;
                    n_left_active += 1;
                }
                (true, false) => left_dropped.push(row),
                (false, true) => right_active.push(row),
                (false, false) => right_dropped.push(row),
            }
        }
        // Newly dropped rows came before the old ones: merge by sorting, there are few.
        left_dropped.sort_unstable();
        right_dropped.sort_unstable();
        let mut at = n_left_active;
        for part in [&left_dropped, &right_active, &right_dropped] {
            rows[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let left = Segment {
            start: segment.start,
            active: n_left_active,
            len: n_left_active + left_dropped.len(),
        };
        let right = Segment {
            start: segment.start + left.len,
            active: right_active.len(),
            len: segment.len - left.len,
        };
        (left, right, removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_stable_and_dropped_rows_travel() {
        let (mut partition, root) = Partition::new(8);
        let go_left = [true, false, true, false, true, false, true, false];
        let (left, right, removed) = partition.split(root, &go_left, |row, _| row != 2 && row != 5);
        assert_eq!(removed, [2, 5]);
        assert_eq!(partition.active(left), [0, 4, 6]);
        assert_eq!(partition.dropped(left), [2]);
        assert_eq!(partition.active(right), [1, 3, 7]);
        assert_eq!(partition.dropped(right), [5]);
        // Rows of `left` in order: 0, 4, 6 active, then 2.
        let (ll, lr, _) = partition.split(left, &[false, true, true, true], |_, _| true);
        assert_eq!(partition.all(ll), [4, 6, 2]);
        assert_eq!(partition.all(lr), [0]);
        let ll = partition.restore(ll);
        assert_eq!(partition.active(ll), [2, 4, 6]);
    }
}
