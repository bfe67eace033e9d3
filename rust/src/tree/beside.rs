//! The values beside the cuts of a fitted tree: among the rows that reach a node, the largest on the lower side of its
//! cut and the least on the upper side.
//!
//! A cut may be moved anywhere between the two without a row of the fit changing sides: to the first of a month, or to
//! a number of 32 bits. A threshold is one cut; an interval has one at each end. Missing cells are on neither side.
//! Cost: O(tests on thresholds and intervals on the row's path) a row. The largest and the least of parts of the rows
//! do not depend on how the rows are shared out, so each thread has one part.

use super::ClusterTree;
use super::routing::{CELLS_OF_TILE, cells_of_tile, rows_of_tile};
use super::test::Test;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::rows::Rows;

/// The end of a path.
const NO_NODE: u32 = u32::MAX;
/// What memory is for.
const WHAT: &str = "the values beside cuts";

/// The values beside the cuts of a tree, an entry per node; NaN where there is no cut or no value.
#[derive(Debug, Clone, PartialEq)]
pub struct Beside {
    /// The largest value at or below a threshold or the upper end of an interval.
    pub below: Vec<f64>,
    /// The least value above it.
    pub above: Vec<f64>,
    /// The largest value below the lower end of an interval.
    pub below_lower: Vec<f64>,
    /// The least value at or above it.
    pub above_lower: Vec<f64>,
}

/// A node as the walk up from a leaf reads it: where its column is, and the values found so far.
#[derive(Clone, Copy)]
struct Cut {
    /// Place of the column among those that the tree uses.
    place: u32,
    /// The next node towards the root that is a threshold or an interval, or [`NO_NODE`].
    up: u32,
    /// Beside the upper end or the threshold.
    upper: Gap,
    /// Beside the lower end of an interval; of other tests closed.
    lower: Gap,
}

/// The largest value below a cut and the least above it; rows between them make it narrower.
#[derive(Clone, Copy)]
pub(crate) struct Gap {
    below: f64,
    above: f64,
}

impl Gap {
    /// Of a cut without rows.
    pub(crate) const OPEN: Gap = Gap { below: f64::NEG_INFINITY, above: f64::INFINITY };
    /// Where there is no cut.
    pub(crate) const CLOSED: Gap = Gap { below: f64::INFINITY, above: f64::NEG_INFINITY };

    /// Whether a value narrows the gap: few do. Missing cells do not.
    #[inline(always)]
    fn holds(self, x: f64) -> bool {
        (self.below < x) & (x < self.above)
    }

    /// Takes a value on one side of the cut.
    pub(crate) fn narrow(&mut self, x: f64, is_below: bool) {
        match is_below {
            true => self.below = self.below.max(x),
            false => self.above = self.above.min(x),
        }
    }

    /// Takes the values beside the same cut among other rows.
    pub(crate) fn narrow_to(&mut self, other: Gap) {
        self.narrow(other.below, true);
        self.narrow(other.above, false);
    }
}

impl Beside {
    /// By node, the values beside the lower end of an interval and beside its upper end or a threshold.
    pub(crate) fn of(gaps: &[[Gap; 2]]) -> Self {
        let values = |of: fn([Gap; 2]) -> f64| -> Vec<f64> {
            // Which of the two zeros comes first is up to the threads.
            let value = gaps
                .iter()
                .copied()
                .map(of)
                .map(|x| if x.is_finite() { x + 0.0 } else { f64::NAN });
            memory::collected(value, WHAT)
        };
        Beside {
            below: values(|[_, upper]| upper.below),
            above: values(|[_, upper]| upper.above),
            below_lower: values(|[lower, _]| lower.below),
            above_lower: values(|[lower, _]| lower.above),
        }
    }
}

impl ClusterTree {
    /// The values beside the tree's thresholds and interval ends among the rows of a table, which have come to the
    /// leaves `leaf_of_row`. Other tests have none.
    ///
    /// # Errors
    /// [`Error::Tree`] if the tree uses a column the table does not have; [`Error::Shape`] if there is not one leaf per
    /// row, [`Error::Value`] if a leaf is not a node; [`Error::Interrupted`].
    pub fn values_beside<'a, 't: 'a>(
        &self,
        rows: impl Into<Rows<'a, 't>>,
        leaf_of_row: &[u32],
    ) -> Result<Beside> {
        let rows = rows.into();
        self.check_width(rows.n_features())?;
        Error::check_labels(leaf_of_row, rows.n_samples(), self.tests.len())?;
        let (mut cuts, n) = (self.cuts(), leaf_of_row.len());
        let n_parts = if self.is_small(n) { 1 } else { parallel::n_threads() };
        let per_part = n.div_ceil(n_parts).max(1);
        let parts = parallel::map(leaf_of_row.chunks(per_part).enumerate(), |(part, leaves)| {
            let mut cuts = memory::collected(cuts.iter().copied(), WHAT);
            self.narrow(&mut cuts, rows, part * per_part, leaves);
            cuts
        });
        if matches!(rows, Rows::Table(table) if table.stopped()) {
            return Err(Error::Interrupted);
        }
        for part in parts {
            for (cut, part) in cuts.iter_mut().zip(part) {
                cut.upper.narrow_to(part.upper);
                cut.lower.narrow_to(part.lower);
            }
        }
        let gaps = memory::collected(cuts.iter().map(|cut| [cut.lower, cut.upper]), WHAT);
        Ok(Beside::of(&gaps))
    }

    /// The nodes before any row; `up` of a leaf is where its rows begin.
    fn cuts(&self) -> Vec<Cut> {
        let mut up = memory::filled(NO_NODE, self.tests.len(), WHAT);
        let cut = |(node, test): (usize, &Test)| {
            let (upper, lower) = match test {
                Test::Threshold { .. } => (Gap::OPEN, Gap::CLOSED),
                Test::Interval { .. } => (Gap::OPEN, Gap::OPEN),
                _ => (Gap::CLOSED, Gap::CLOSED),
            };
            let next = if upper.below < 0.0 { node as u32 } else { up[node] };
            if *test != Test::Leaf {
                self.children(node).into_iter().for_each(|child| up[child] = next);
            }
            let place = test.feature().and_then(|f| self.routes.used.binary_search(&f).ok());
            Cut { place: place.unwrap_or(0) as u32, up: up[node], upper, lower }
        };
        memory::collected(self.tests.iter().enumerate().map(cut), WHAT)
    }

    /// Narrows the gaps by the rows from `start` on, which are in the given leaves.
    fn narrow(&self, cuts: &mut [Cut], rows: Rows<'_, '_>, start: usize, leaves: &[u32]) {
        let used = &self.routes.used;
        match rows {
            Rows::Table(table) => {
                let columns: Vec<_> = used.iter().map(|&f| table.column(f)).collect();
                let (tile, mut copies) = (rows_of_tile(CELLS_OF_TILE, used.len()), vec![]);
                for (start, leaves) in (start..).step_by(tile).zip(leaves.chunks(tile)) {
                    if table.stopped() {
                        return;
                    }
                    let cells = cells_of_tile(&columns, start, leaves.len(), &mut copies);
                    self.narrow_by(cuts, leaves, |place, i| cells[place as usize][i]);
                }
            }
            Rows::Sparse(matrix) => {
                let column = |place: u32| used[place as usize] as u32;
                self.narrow_by(cuts, leaves, |place, i| matrix.cell(start + i, column(place)));
            }
        }
    }

    /// [`ClusterTree::narrow`] by `cell(place of the column, place of the row)`.
    fn narrow_by(&self, cuts: &mut [Cut], leaves: &[u32], cell: impl Fn(u32, usize) -> f64) {
        for (row, &leaf) in leaves.iter().enumerate() {
            let mut node = cuts[leaf as usize].up;
            while node != NO_NODE {
                let cut = &mut cuts[node as usize];
                let x = cell(cut.place, row);
                if cut.upper.holds(x) | cut.lower.holds(x) {
                    let [lower, upper] = self.tests[node as usize].bounds();
                    cut.upper.narrow(x, x <= upper);
                    cut.lower.narrow(x, x < lower);
                }
                node = cut.up;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TreeArrays;
    use super::*;
    use crate::table::Table;
    use ndarray::array;

    const NAN: f64 = f64::NAN;

    /// `x0 <= 0.5` above `1 <= x1 <= 2`.
    fn tree() -> ClusterTree {
        let arrays = TreeArrays {
            kind: &[1, 0, 2, 0, 0],
            feature: &[0, -2, 1, -2, -2],
            threshold: &[0.5, -2.0, NAN, -2.0, -2.0],
            lower: &[NAN, NAN, 1.0, NAN, NAN],
            upper: &[NAN, NAN, 2.0, NAN, NAN],
            children_left: &[1, -1, 3, -1, -1],
            children_right: &[2, -1, 4, -1, -1],
            levels: None,
            missing_go_to_left: Some(&[true, false, true, false, false]),
            oblique: None,
        };
        ClusterTree::new(arrays, 2).unwrap()
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|x| if x.is_nan() { NAN.to_bits() } else { x.to_bits() }).collect()
    }

    #[test]
    fn rows_that_reach_a_node_bound_its_cuts() {
        // The last two rows go left at the root and do not get to the interval, where the fourth has a missing cell.
        let x = array![[0.6, 0.25], [0.7, 1.0], [9.0, 2.0], [8.0, NAN], [0.5, 2.1], [NAN, 0.5]];
        let table = Table::from_matrix(x.view()).unwrap();
        let leaves = tree().apply(&table).unwrap().unwrap();
        let leaves: Vec<u32> = leaves.iter().map(|&leaf| leaf as u32).collect();
        let found = tree().values_beside(&table, &leaves).unwrap();
        assert_eq!(bits(&found.below), bits(&[0.5, NAN, 2.0, NAN, NAN]));
        assert_eq!(bits(&found.above), bits(&[0.6, NAN, NAN, NAN, NAN]));
        assert_eq!(bits(&found.below_lower), bits(&[NAN, NAN, 0.25, NAN, NAN]));
        assert_eq!(bits(&found.above_lower), bits(&[NAN, NAN, 1.0, NAN, NAN]));
        assert!(tree().values_beside(&table, &leaves[1..]).is_err());
        assert!(tree().values_beside(&table, &[5; 6]).is_err());
    }

    #[test]
    fn the_number_of_threads_does_not_matter() {
        let x = ndarray::Array2::from_shape_fn((50_000, 2), |(i, j)| {
            ((i * (7919 + 31 * j)) % 10_007) as f64 / 3000.0
        });
        let table = Table::from_matrix(x.view()).unwrap();
        let leaves = tree().apply(&table).unwrap().unwrap();
        let leaves: Vec<u32> = leaves.iter().map(|&leaf| leaf as u32).collect();
        let of = |n| parallel::with_pool(n, || tree().values_beside(&table, &leaves)).unwrap();
        let (one, three) = (of(1).unwrap(), of(3).unwrap());
        let bits = |b: &Beside| {
            [&b.below, &b.above, &b.below_lower, &b.above_lower].map(|values| bits(values))
        };
        assert_eq!(bits(&one), bits(&three));
        let reach = x.rows().into_iter().filter(|row| row[0] > 0.5);
        let least = reach.map(|row| row[1]).filter(|&x| x > 2.0).fold(f64::INFINITY, f64::min);
        assert_eq!(one.above[2], least);
    }
}
