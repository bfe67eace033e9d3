//! A tree that routes rows: its arrays are checked once, when the handle is made, so that a call on one row takes
//! microseconds.
//!
//! `ClusterTree` in `tree/cluster_tree.py` makes one on its first prediction and keeps it. Rows come in three forms:
//! C-ordered matrices of `f64` or `f32` are read where they lie, other tables by columns, sparse matrices by rows.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::convert::{Rows, TableArgument, slice};
use super::rows::RowsArgument;
use super::run::{Jobs, run_or_here};
use super::tree::{Arrays, Floats, Oblique, Sparse, array, tree_arrays};
use crate::parallel::Monitor;
use crate::rows::Csr;
use crate::tree::{Beside, ClusterTree};

/// A checked tree for rows of `n_features` columns: [`ClusterTree`]. Few rows are routed without threads.
#[pyclass(frozen, name = "Router", module = "treeclust_rs._core")]
pub struct PyRouter(pub ClusterTree);

/// The leaf of each row, of shape (n,); None if a cell is infinite, or NaN and the tree has no directions for it.
type Leaves<'py> = Option<Bound<'py, PyArray1<i64>>>;

/// Below, above, below_lower and above_lower of [`Beside`], each of shape (n_nodes,).
pub type BesideArrays = (Floats, Floats, Floats, Floats);

/// Moves the values beside cuts into NumPy arrays.
pub fn beside_arrays(py: Python<'_>, beside: Beside) -> BesideArrays {
    let Beside { below, above, below_lower, above_lower } = beside;
    (array(py, below), array(py, above), array(py, below_lower), array(py, above_lower))
}

fn leaves(py: Python<'_>, found: Option<Vec<i64>>) -> Leaves<'_> {
    found.map(|leaves| leaves.into_pyarray(py))
}

#[pymethods]
impl PyRouter {
    /// Checks the tests of a tree, and its oblique terms if it has any.
    ///
    /// # Errors
    /// `ValueError` if the arrays are not one binary tree with tests of `n_features` columns.
    #[new]
    #[pyo3(signature = (tests, n_features, oblique=None))]
    fn new(tests: Arrays<'_>, n_features: usize, oblique: Option<Oblique<'_>>) -> PyResult<Self> {
        let arrays = tree_arrays(&tests, oblique.as_ref())?;
        Ok(PyRouter(ClusterTree::new(arrays, n_features)?))
    }

    /// Number of columns of the rows that the tree is for.
    #[getter]
    fn n_features(&self) -> usize {
        self.0.n_features()
    }

    /// The same tree, which refuses rows with missing cells.
    fn of_complete_rows(&self) -> Self {
        PyRouter(self.0.of_complete_rows())
    }

    /// The leaf of every row of a table (n x d), as a node id; None if a tested cell is infinite, or NaN and
    /// the tree has no directions for missing cells.
    ///
    /// # Errors
    /// `ValueError` if the tree tests a column that the table does not have; `KeyboardInterrupt`.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        table: TableArgument<'_>,
        n_jobs: Jobs<'_>,
    ) -> PyResult<Leaves<'py>> {
        let (tree, monitor) = (&self.0, Monitor::default());
        if let Some(rows) = table.rows() {
            let n_features = table.n_features();
            let n_rows = rows.len() / n_features.max(1);
            let found = run_or_here(py, tree.is_small(n_rows), &n_jobs, &monitor, || match rows {
                Rows::F64(rows) => tree.apply_rows(rows, n_features),
                Rows::F32(rows) => tree.apply_rows(rows, n_features),
            })?;
            return Ok(leaves(py, found));
        }
        let table = table.table()?;
        let table = table.with_monitor(&monitor);
        let is_small = tree.is_small(table.n_samples());
        let found = run_or_here(py, is_small, &n_jobs, &monitor, || tree.apply(&table))?;
        Ok(leaves(py, found))
    }

    /// As `apply` for the rows of a sparse matrix, whose columns may come in any order.
    ///
    /// # Errors
    /// As `apply`; `ValueError` if the arrays are not those of a matrix.
    fn apply_sparse<'py>(
        &self,
        py: Python<'py>,
        rows: Sparse<'_>,
        n_jobs: Jobs<'_>,
    ) -> PyResult<Leaves<'py>> {
        let (indptr, indices, values, n_features) = &rows;
        let (indptr, indices, values) = (slice(indptr)?, slice(indices)?, slice(values)?);
        let is_small = self.0.is_small(indptr.len());
        let found = run_or_here(py, is_small, &n_jobs, &Monitor::default(), || {
            self.0.apply_sparse(&Csr::from_i64(indptr, indices, values, *n_features)?)
        })?;
        Ok(leaves(py, found))
    }

    /// The values beside thresholds and interval ends among `rows` (n x d, a table or a sparse matrix) that have come to the leaves
    /// `leaf_of_row`: below, above, below_lower and above_lower of [`crate::tree::Beside`], each of shape (n_nodes,).
    ///
    /// # Errors
    /// `ValueError` if there is not one leaf per row, or the tree tests a column that the table does not have;
    /// `KeyboardInterrupt`.
    fn values_beside(
        &self,
        py: Python<'_>,
        rows: RowsArgument<'_>,
        leaf_of_row: PyReadonlyArray1<'_, u32>,
        n_jobs: Jobs<'_>,
    ) -> PyResult<BesideArrays> {
        let (monitor, leaves) = (Monitor::default(), slice(&leaf_of_row)?);
        let data = rows.data(&monitor)?;
        let rows = data.rows()?;
        let is_small = self.0.is_small(leaves.len());
        let find = || self.0.values_beside(rows, leaves);
        let found = run_or_here(py, is_small, &n_jobs, &monitor, find)?;
        Ok(beside_arrays(py, found))
    }
}
