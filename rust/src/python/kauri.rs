//! Kauri.

use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::TableArgument;
use super::fit::{optional, slice2, tests_to_dict};
use super::run::{Jobs, run};
use crate::grow::Limits;
use crate::kauri::fit::{Fitted, Problem, fit};
use crate::kauri::gains::Kind;
use crate::kauri::stocks::Kernel;
use crate::parallel::Monitor;

/// Fits a Kauri tree; returns its arrays by name. Exactly one of `features` (n x rank) and `gram` (n x n) is given.
#[pyfunction]
#[pyo3(signature = (table, *, features, gram, sample_weight, max_clusters, max_leaves, max_depth,
                    min_samples_split, min_samples_leaf, max_features, seed, all_moves, n_jobs, progress))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_kauri<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
    features: Option<PyReadonlyArray2<'_, f64>>,
    gram: Option<PyReadonlyArray2<'_, f64>>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    max_clusters: usize,
    max_leaves: usize,
    max_depth: Option<usize>,
    min_samples_split: usize,
    min_samples_leaf: usize,
    max_features: usize,
    seed: u64,
    all_moves: bool,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let table = table.table()?;
    let kernel = match (&features, &gram) {
        (Some(z), None) => Kernel::Features { rank: z.as_array().ncols(), z: slice2(z)? },
        (None, Some(k)) => Kernel::Gram { n: k.as_array().ncols(), k: slice2(k)? },
        _ => return Err(PyValueError::new_err("Give either features or gram.")),
    };
    let problem = Problem {
        kernel,
        weights: optional(&sample_weight)?,
        max_clusters,
        limits: Limits { max_leaves, max_depth, min_samples_leaf },
        min_samples_split,
        max_features,
        seed,
        all_moves,
    };
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let fitted = run(py, &n_jobs, &monitor, progress, || fit(&table, &problem, &monitor))?;
    to_dict(py, fitted)
}

fn to_dict(py: Python<'_>, fitted: Fitted) -> PyResult<Bound<'_, PyDict>> {
    let dict = tests_to_dict(py, &fitted.tests, &fitted.left)?;
    let integers = |values: Vec<usize>| -> Vec<i64> { values.iter().map(|&n| n as i64).collect() };
    dict.set_item("n_node_samples", integers(fitted.n_samples).into_pyarray(py))?;
    dict.set_item("weighted_n_node_samples", fitted.weight.into_pyarray(py))?;
    dict.set_item("cost", fitted.cost.into_pyarray(py))?;
    dict.set_item("cluster", integers(fitted.cluster).into_pyarray(py))?;
    let code = |kind: &Option<Kind>| match kind {
        None => -1i64,
        Some(Kind::Star) => 0,
        Some(Kind::DoubleStar) => 1,
        Some(Kind::Switch) => 2,
        Some(Kind::Reallocation) => 3,
        Some(Kind::Mixed) => 4,
    };
    let moves: Vec<i64> = fitted.kinds.iter().map(code).collect();
    dict.set_item("move", moves.into_pyarray(py))?;
    dict.set_item("gain", fitted.gain.into_pyarray(py))?;
    dict.set_item("objective", fitted.objective.into_pyarray(py))?;
    dict.set_item("leaf_of_row", fitted.leaf_of_row.into_pyarray(py))?;
    Ok(dict)
}
