//! The tree of CLTree: [`density_tree`]. Called by `estimators/cltree.py`.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::convert::{TableArgument, optional};
use super::run::{Jobs, run};
use super::tree::{Floats, PyTestArrays, array};
use crate::cltree;
use crate::parallel::Monitor;

/// A tree of tests with what CLTree knows of its nodes; arrays have one entry per node.
#[pyclass(frozen, get_all, extends = PyTestArrays, module = "treeclust_rs._core")]
pub struct DensityTests {
    /// Weight of the rows.
    weight: Floats,
    /// Uniform points inherited from the parent.
    points: Floats,
}

/// Grows the tree that tells rows from uniform points. `min_weight_share`: nodes with a smaller share of the weight of
/// all rows are not cut.
///
/// # Errors
/// `ValueError` if sizes disagree; `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (table, *, sample_weight, min_weight_share, n_jobs, progress))]
pub fn density_tree(
    py: Python<'_>,
    table: TableArgument<'_>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    min_weight_share: f64,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<DensityTests>> {
    let table = table.table()?;
    let weights = optional(&sample_weight)?;
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let found = run(py, &n_jobs, &monitor, progress, || {
        cltree::density_tree(&table, weights, min_weight_share, &monitor)
    })?;
    let grown = DensityTests { weight: array(py, found.weight), points: array(py, found.points) };
    Py::new(py, (grown, PyTestArrays::new(py, found.tests).0))
}
