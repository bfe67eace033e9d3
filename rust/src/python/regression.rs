//! Regression trees: [`fit`] on several targets. Called by `estimators/x_regression_tree.py`.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::convert::{TableArgument, optional, slice2};
use super::run::{Jobs, run};
use super::tree::PyTestArrays;
use crate::grow::Limits;
use crate::parallel::Monitor;
use crate::regression::{RegressionProblem, fit};

/// Fits a regression tree to the rows of `table` (n x d); `targets`: n x width, C-ordered, finite, its squares far from
/// overflow. `sample_weight`: positive, one per row; None: 1 each. `progress(n_leaves, gain)` is called twice a second.
///
/// # Errors
/// `ValueError` if sizes disagree; `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (table, targets, *, sample_weight, max_leaves, max_depth, min_samples_leaf, n_jobs, progress))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_regression(
    py: Python<'_>,
    table: TableArgument<'_>,
    targets: PyReadonlyArray2<'_, f64>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    max_leaves: usize,
    max_depth: Option<usize>,
    min_samples_leaf: usize,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyTestArrays>> {
    let table = table.table()?;
    let problem = RegressionProblem {
        targets: slice2(&targets)?,
        width: targets.as_array().ncols(),
        weights: optional(&sample_weight)?,
        limits: Limits { max_leaves, max_depth, min_samples_leaf },
    };
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let nodes = run(py, &n_jobs, &monitor, progress, || fit(&table, &problem, &monitor))?;
    Py::new(py, PyTestArrays::new(py, nodes.arrays()).0)
}
