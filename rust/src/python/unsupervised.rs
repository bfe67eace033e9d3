//! Threshold trees that explain no clusters: [`spread_tree`] of CUBT and [`density_tree`] of CLTree.
//!
//! Called by `estimators/cubt.py` and `estimators/cltree.py`.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::convert::{TableArgument, optional, slice2};
use super::run::{Jobs, run};
use super::tree::{Floats, PyTestArrays, array};
use crate::criterion::spread::Cells;
use crate::grow::Limits;
use crate::parallel::Monitor;
use crate::search::SearchOptions;
use crate::{cltree, cubt};

/// A tree of tests with what CLTree knows of its nodes; arrays have one entry per node. CUBT's are empty.
#[pyclass(frozen, get_all, extends = PyTestArrays, module = "treeclust_rs._core")]
pub struct GrownTests {
    /// Weight of the rows.
    weight: Floats,
    /// Uniform points inherited from the parent.
    points: Floats,
}

/// Grows the tree whose cuts take most from the spread of `cells` (n x d, near the origin), the columns in units.
/// `min_gain`: the least gain as a share of the spread of all rows. The others as for `fit_tree`.
///
/// # Errors
/// `ValueError` if sizes disagree; `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (table, cells, *, sample_weight, min_gain, max_leaves, max_depth, min_samples_leaf, n_jobs,
                    progress))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn spread_tree(
    py: Python<'_>,
    table: TableArgument<'_>,
    cells: PyReadonlyArray2<'_, f64>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    min_gain: f64,
    max_leaves: usize,
    max_depth: Option<usize>,
    min_samples_leaf: usize,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<GrownTests>> {
    let table = table.table()?;
    let d = cells.as_array().ncols();
    let cells = Cells { cells: slice2(&cells)?, d, weights: optional(&sample_weight)? };
    let limits = Limits { max_leaves, max_depth, min_samples_leaf };
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let tests = run(py, &n_jobs, &monitor, progress, || {
        cubt::spread_tree(&table, cells, min_gain, limits, SearchOptions::default(), &monitor)
    })?;
    let grown = GrownTests { weight: array(py, vec![]), points: array(py, vec![]) };
    Py::new(py, (grown, PyTestArrays::new(py, tests).0))
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
) -> PyResult<Py<GrownTests>> {
    let table = table.table()?;
    let weights = optional(&sample_weight)?;
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let found = run(py, &n_jobs, &monitor, progress, || {
        cltree::density_tree(&table, weights, min_weight_share, &monitor)
    })?;
    let grown = GrownTests { weight: array(py, found.weight), points: array(py, found.points) };
    Py::new(py, (grown, PyTestArrays::new(py, found.tests).0))
}
