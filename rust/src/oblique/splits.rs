//! The two kinds of tests that TAO makes: oblique ones, by the node solver, and thresholds, by enumeration.

use super::logistic::design::Design;
use super::memory::Memory;
use crate::index::Index;
use crate::rows::Rows;
use crate::table::Table;
use crate::tree::Test;

/// The rows that tests are evaluated on, and how new tests are found.
#[derive(Debug, Clone, Copy)]
pub enum Splits<'a, 't> {
    /// Oblique tests.
    Oblique {
        /// The rows, on which tests are evaluated.
        rows: Rows<'a, 't>,
        /// The same rows, as the solver reads them.
        design: &'a Design,
        /// Each column's share in phi; none: 1.
        shares: Option<&'a [f64]>,
    },
    /// Threshold tests.
    Axis {
        /// The rows.
        table: &'a Table<'t>,
        /// Their index.
        index: &'a Index,
    },
}

impl<'a, 't> Splits<'a, 't> {
    /// Number of rows.
    pub fn n_samples(&self) -> usize {
        self.rows().n_samples()
    }

    /// The rows.
    fn rows(&self) -> Rows<'a, 't> {
        match *self {
            Splits::Oblique { rows, .. } => rows,
            Splits::Axis { table, .. } => Rows::Table(table),
        }
    }

    /// What a test adds to phi: the norm of its weights, or 1.
    pub fn penalty(&self, test: &Test) -> f64 {
        match (test, self) {
            (Test::Oblique(plane), Splits::Oblique { shares, .. }) => plane.norm(*shares),
            (Test::Oblique(plane), Splits::Axis { .. }) => plane.norm(None),
            _ => 1.0,
        }
    }

    /// Whether each of the rows `ids` goes right.
    pub fn sides(&self, test: &Test, ids: &[u32], memory: &Memory) -> Vec<bool> {
        match test {
            Test::Oblique(plane) => memory.sides(plane, self.rows(), ids),
            _ => test.sides(self.rows(), ids, false),
        }
    }
}
