//! The tests of nodes, and the one order in which weighted sums are added up.
//!
//! The sum of an oblique test starts from the bias and takes term by term in ascending columns, each a plain
//! multiplication and a plain addition of `f64`. A fit, a prediction and an exported expression that keep to this order
//! have the same bits; cells that are 0 add nothing, so sparse rows have them too. `add_terms` is that loop for
//! sums of several rows side by side: the additions of one row wait for each other, those of several do not.

use crate::memory;
use crate::rows::Rows;

/// Rows whose sums are formed side by side: of columns that lie one after the other; and of a C-ordered matrix, whose
/// neighbouring cells are then read while they are in the nearest cache.
const TILE_OF_COLUMNS: usize = 256;
const TILE_OF_ROWS: usize = 16;

/// A weighted sum of a row's cells: `bias + sum_j weight_j * x_j`.
#[derive(Debug, Clone, PartialEq)]
pub struct Plane {
    /// Columns in ascending order with their weights, none of them 0.
    pub weights: Vec<(u32, f64)>,
    /// What the sum starts from.
    pub bias: f64,
}

impl Plane {
    /// `sum_j share_j |w_j|`, by the columns' shares; no shares: all 1.
    pub fn norm(&self, shares: Option<&[f64]>) -> f64 {
        let share = |column: u32| shares.map_or(1.0, |shares| shares[column as usize]);
        self.weights.iter().map(|&(j, w)| w.abs() * share(j)).sum()
    }

    /// The same test, its weights and its bias multiplied by `by`, which is positive.
    pub fn scaled(mut self, by: f64) -> Self {
        self.weights.iter_mut().for_each(|w| w.1 *= by);
        self.bias *= by;
        self
    }

    /// The sum of one row, of which `cell(column)` reads a cell.
    pub fn sum(&self, cell: impl Fn(u32) -> f64) -> f64 {
        let mut sum = self.bias;
        add_terms(&mut sum, self.weights.iter().copied(), |sum, column, weight| {
            *sum += weight * cell(column);
        });
        sum
    }

    /// The sums of the given rows: see [`sums`].
    pub fn sums(&self, rows: Rows<'_, '_>, ids: &[u32]) -> Vec<f64> {
        sums(rows, ids, &self.weights, self.bias)
    }
}

/// Adds term after term to sums that hold the bias: `add(sums, column, weight)` adds one term to all of them.
#[inline(always)]
pub(super) fn add_terms<S: ?Sized>(
    sums: &mut S,
    terms: impl Iterator<Item = (u32, f64)>,
    mut add: impl FnMut(&mut S, u32, f64),
) {
    for (column, weight) in terms {
        add(sums, column, weight);
    }
}

/// `bias + sum of weight * x` of the rows `ids`, for weights in ascending columns. O(cells of the rows in these
/// columns; of sparse rows: all stored cells).
pub fn sums(rows: Rows<'_, '_>, ids: &[u32], weights: &[(u32, f64)], bias: f64) -> Vec<f64> {
    let mut sums = memory::filled(bias, ids.len(), "the scores of rows");
    match rows {
        Rows::Table(table) => {
            let in_columns = weights.iter().all(|w| table.column(w.0 as usize).is_contiguous());
            let tile = if in_columns { TILE_OF_COLUMNS } else { TILE_OF_ROWS };
            for (ids, sums) in ids.chunks(tile).zip(sums.chunks_mut(tile)) {
                add_terms(sums, weights.iter().copied(), |sums, column, weight| {
                    table.column(column as usize).add_to(ids, weight, sums);
                });
            }
        }
        Rows::Sparse(csr) => {
            let mut by_column = vec![0.0; csr.n_columns()];
            for &(column, weight) in weights {
                by_column[column as usize] = weight;
            }
            for (sum, &row) in sums.iter_mut().zip(ids) {
                let (columns, cells) = csr.row(row as usize);
                for (&column, x) in columns.iter().zip(cells) {
                    *sum += by_column[column as usize] * x;
                }
            }
        }
    }
    sums
}

/// Whether a row goes left by the sum of an oblique test. A sum that is NaN (infinity minus infinity) goes right.
#[inline(always)]
pub fn is_left(sum: f64) -> bool {
    sum < 0.0
}

/// A set of level codes, one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LevelSet([u64; 4]);

impl LevelSet {
    /// Adds a code.
    pub fn insert(&mut self, code: u8) {
        self.0[usize::from(code >> 6)] |= 1 << (code & 63);
    }

    /// Whether a code is in the set.
    #[inline(always)]
    pub fn contains(&self, code: u8) -> bool {
        (self.0[usize::from(code >> 6)] >> (code & 63)) & 1 == 1
    }

    /// Whether a cell that holds a code is in the set; false for NaN and for numbers that are no code.
    #[inline(always)]
    pub fn holds(&self, x: f64) -> bool {
        let code = x as u8;
        f64::from(code) == x && self.contains(code)
    }

    /// Number of codes.
    pub fn len(&self) -> usize {
        self.0.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Whether there are no codes.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The codes, ascending.
    pub fn codes(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|&code| self.contains(code))
    }
}

impl FromIterator<u8> for LevelSet {
    fn from_iter<I: IntoIterator<Item = u8>>(codes: I) -> Self {
        let mut set = LevelSet::default();
        codes.into_iter().for_each(|code| set.insert(code));
        set
    }
}

/// The test of a node, in fits, fitted trees and files. "Left" is the side where the test holds. A missing cell (NaN)
/// goes where the node's `missing_go_to_left` says, which is kept beside the test.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// No test: a leaf.
    Leaf,
    /// `x[feature] <= threshold` goes left.
    Threshold {
        /// The column.
        feature: usize,
        /// The largest value that goes left.
        threshold: f64,
    },
    /// `lower <= x[feature] <= upper` goes left.
    Interval {
        /// The column.
        feature: usize,
        /// The smallest value that goes left.
        lower: f64,
        /// The largest value that goes left.
        upper: f64,
    },
    /// A weighted sum below 0 goes left: see [`is_left`].
    Oblique(Plane),
    /// A level of the set goes left: cells are level codes.
    Levels {
        /// The column.
        feature: usize,
        /// The codes that go left.
        left: LevelSet,
    },
    /// A missing cell goes left.
    Missing {
        /// The column.
        feature: usize,
    },
}

impl Test {
    /// The one column the test reads; none at leaves and where it is oblique.
    pub fn feature(&self) -> Option<usize> {
        match *self {
            Test::Leaf | Test::Oblique(_) => None,
            Test::Threshold { feature, .. }
            | Test::Interval { feature, .. }
            | Test::Levels { feature, .. }
            | Test::Missing { feature } => Some(feature),
        }
    }

    /// The weighted sum of an oblique test.
    pub fn plane(&self) -> Option<&Plane> {
        match self {
            Test::Oblique(plane) => Some(plane),
            _ => None,
        }
    }

    /// Number of columns the test reads: its weights, or 1; 0 at leaves.
    pub fn n_terms(&self) -> usize {
        match self {
            Test::Leaf => 0,
            Test::Oblique(plane) => plane.weights.len(),
            _ => 1,
        }
    }

    /// The interval of the values that go left, by the test's one column; all values where the test compares none, and
    /// no value where it asks for missing cells.
    pub(super) fn bounds(&self) -> [f64; 2] {
        match *self {
            Test::Threshold { threshold, .. } => [f64::NEG_INFINITY, threshold],
            Test::Interval { lower, upper, .. } => [lower, upper],
            Test::Missing { .. } => [f64::INFINITY, f64::NEG_INFINITY],
            _ => [f64::NEG_INFINITY, f64::INFINITY],
        }
    }

    /// Whether a cell of the test's one column goes left; NaN goes where `missing_left` says. True where the test reads
    /// no single column.
    #[inline]
    pub fn goes_left(&self, x: f64, missing_left: bool) -> bool {
        match self {
            Test::Leaf | Test::Oblique(_) => true,
            Test::Missing { .. } => x.is_nan(),
            _ if x.is_nan() => missing_left,
            Test::Levels { left, .. } => left.holds(x),
            _ => {
                let [lower, upper] = self.bounds();
                lower <= x && x <= upper
            }
        }
    }

    /// Whether each of the rows `ids` goes right. `missing_left`: the side of missing cells; sums have none.
    pub fn sides(&self, rows: Rows<'_, '_>, ids: &[u32], missing_left: bool) -> Vec<bool> {
        if let Test::Oblique(plane) = self {
            let sums = plane.sums(rows, ids);
            return memory::collected(sums.iter().map(|sum| !is_left(*sum)), "the sides of rows");
        }
        let Some(feature) = self.feature() else {
            return memory::zeros(ids.len(), "the sides of rows");
        };
        let mut cells = vec![];
        rows.cells(ids, feature as u32, &mut cells);
        let goes_right = cells.iter().map(|&x| !self.goes_left(x, missing_left));
        memory::collected(goes_right, "the sides of rows")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Csr;
    use crate::table::Table;
    use ndarray::array;

    #[test]
    fn sums_are_rounded_step_by_step() {
        // The numbers near 1e17 are 16 apart: the bias swallows a 3 that comes first.
        let cell = |column: u32| [3.0, 1.0][column as usize];
        let sum =
            |weights: &[(u32, f64)]| Plane { weights: weights.to_vec(), bias: 1e17 }.sum(cell);
        assert_eq!(sum(&[(0, 1.0), (1, -1e17)]), 0.0);
        assert_eq!(sum(&[(1, -1e17), (0, 1.0)]), 3.0);
        // The product is rounded before it is added: fused, the sum would be 2^-60.
        let x = 1.0 + 0.5f64.powi(30);
        let plane = Plane { weights: vec![(0, x)], bias: -1.0 - 0.5f64.powi(29) };
        assert_eq!(plane.sum(|_| x), 0.0);
    }

    #[test]
    fn a_cell_goes_left_by_value_level_or_direction() {
        let left: LevelSet = [0, 3, 64, 254].into_iter().collect();
        let cases: [(Test, &[f64], &[f64]); 4] = [
            (Test::Threshold { feature: 0, threshold: 0.5 }, &[-9.0, 0.5], &[0.5f64.next_up()]),
            (Test::Interval { feature: 0, lower: 1.0, upper: 2.0 }, &[1.0, 2.0], &[0.9, 2.1]),
            // Numbers that are no code are in no set.
            (
                Test::Levels { feature: 0, left },
                &[0.0, 3.0, 64.0, 254.0],
                &[1.0, 255.0, 256.0, -1.0, 3.5, 1e300],
            ),
            (Test::Missing { feature: 0 }, &[f64::NAN], &[0.0]),
        ];
        for (test, left, right) in cases {
            for missing_left in [false, true] {
                assert!(left.iter().all(|&x| test.goes_left(x, missing_left)), "{test:?}");
                assert!(!right.iter().any(|&x| test.goes_left(x, missing_left)), "{test:?}");
                let expected = missing_left || matches!(test, Test::Missing { .. });
                assert_eq!(test.goes_left(f64::NAN, missing_left), expected, "{test:?}");
            }
        }
        assert_eq!(left.codes().collect::<Vec<_>>(), [0, 3, 64, 254]);
        assert_eq!((left.len(), left.is_empty()), (4, false));
    }

    #[test]
    fn all_forms_of_rows_have_the_sides_of_single_cells() {
        let x = array![[0.5, 0.0], [0.6, 1.0], [-2.0, 2.0], [0.0, 2.1], [f64::MAX, f64::MAX]];
        let columns = x.t().as_standard_layout().reversed_axes().to_owned();
        let (by_row, by_column) =
            (Table::from_matrix(x.view()).unwrap(), Table::from_matrix(columns.view()).unwrap());
        let cells: Vec<f64> = x.iter().copied().collect();
        let indices: Vec<i64> = (0..10).map(|i| i % 2).collect();
        let csr = Csr::from_i64(&[0, 2, 4, 6, 8, 10], &indices, &cells, 2).unwrap();
        let tests = [
            Test::Threshold { feature: 0, threshold: 0.5 },
            Test::Interval { feature: 1, lower: 1.0, upper: 2.0 },
            Test::Oblique(Plane { weights: vec![(0, 1.0), (1, -0.5)], bias: -0.1 }),
            // The last row is infinity minus infinity.
            Test::Oblique(Plane { weights: vec![(0, 4.0), (1, -4.0)], bias: 0.0 }),
            Test::Levels { feature: 1, left: [0, 2].into_iter().collect() },
            Test::Missing { feature: 0 },
            Test::Leaf,
        ];
        for test in tests {
            let goes_left = |row: usize| match &test {
                Test::Oblique(plane) => is_left(plane.sum(|column| x[[row, column as usize]])),
                _ => test.goes_left(x[[row, test.feature().unwrap_or(0)]], false),
            };
            let ids = [4, 0, 1, 2, 3, 3];
            let expected: Vec<bool> = ids.iter().map(|&id| !goes_left(id as usize)).collect();
            for rows in [Rows::from(&by_row), Rows::from(&by_column), Rows::sparse(&csr).unwrap()] {
                assert_eq!(test.sides(rows, &ids, false), expected, "{test:?}");
            }
        }
    }
}
