//! Regression trees of the columns on themselves: [`fit`]. Called by `estimators/regression.py`.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::convert::{TableArgument, optional, slice2};
use super::run::{Jobs, run};
use super::tree::PyTestArrays;
use crate::grow::Limits;
use crate::parallel::Monitor;
use crate::regression::{RegressionProblem, fit};

/// Fits a regression tree to the rows of `table` (n x d); `targets`: the table in units, C-ordered, finite, its squares
/// far from overflow. `sample_weight`: positive, one per row; None: 1 each. `min_gain`: least gain of a cut, as a share
/// of the squared distances of all rows to their mean. `progress(n_leaves, gain)` is called twice a second.
///
/// # Errors
/// `ValueError` if sizes disagree; `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (table, targets, *, sample_weight, min_gain, max_leaves, max_depth, min_samples_leaf, n_jobs,
                    progress))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_regression(
    py: Python<'_>,
    table: TableArgument<'_>,
    targets: PyReadonlyArray2<'_, f64>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    min_gain: f64,
    max_leaves: usize,
    max_depth: Option<usize>,
    min_samples_leaf: usize,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyTestArrays>> {
    let table = table.table()?;
    let problem = RegressionProblem {
        targets: slice2(&targets)?,
        weights: optional(&sample_weight)?,
        min_gain,
        limits: Limits { max_leaves, max_depth, min_samples_leaf },
    };
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let nodes = run(py, &n_jobs, &monitor, progress, || fit(&table, &problem, &monitor))?;
    Py::new(py, PyTestArrays::new(py, nodes.arrays()).0)
}
