//! Fitting and routing.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;

use super::convert::{Rows, TableArgument};
use super::kernel::SurrogateArgument;
use super::run::{Jobs, run};
use crate::costs::{self, Metric, Units};
use crate::criterion::label_cost::CutKind;
use crate::criterion::mistakes::Centers;
use crate::error::{Error, Result};
use crate::grow::Limits;
use crate::imm::{self, Base, Fitted, Problem};
use crate::parallel::Monitor;
use crate::rows::Csr;
use crate::search::SearchOptions;
use crate::table::all_finite;
use crate::tree::{ClusterTree, ObliqueArrays, Test, TreeArrays};

pub fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err("An array is not contiguous."))
}

pub fn slice2<'a, T: numpy::Element>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err("A matrix is not C-contiguous."))
}

pub fn optional<'a>(weights: &'a Option<PyReadonlyArray1<'_, f64>>) -> PyResult<Option<&'a [f64]>> {
    weights.as_ref().map(slice).transpose()
}

pub fn matrix<'py, T: numpy::Element>(
    py: Python<'py>,
    values: Vec<T>,
    width: usize,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let rows = values.len() / width.max(1);
    values.into_pyarray(py).reshape([rows, width])
}

pub fn units(
    shift: &PyReadonlyArray1<'_, f64>,
    scale: &PyReadonlyArray1<'_, f64>,
    n_features: usize,
) -> PyResult<Units> {
    let units = Units { shift: slice(shift)?.to_vec(), scale: slice(scale)?.to_vec() };
    Error::check_len("shift", units.shift.len(), n_features, "entries")?;
    Error::check_len("scale", units.scale.len(), n_features, "entries")?;
    Ok(units)
}

/// Columns with NaN or infinite cells, as tuples (column, n_nan, n_inf, first_row).
#[pyfunction]
pub fn find_non_finite(
    py: Python<'_>,
    table: TableArgument<'_>,
    n_jobs: Jobs<'_>,
) -> PyResult<Vec<(usize, usize, usize, usize)>> {
    let monitor = Monitor::default();
    let (cells, table) = (table.flat(), table.table()?);
    let table = table.with_monitor(&monitor);
    let found = run(py, &n_jobs, &monitor, None, || {
        // Clean data need no columns to be told apart: one pass over the memory as it lies.
        let clean =
            cells.is_some_and(|cells| cells.par_chunks(1 << 16).with_max_len(1).all(all_finite));
        Ok(if clean { vec![] } else { table.find_non_finite() })
    })?;
    Ok(found.into_iter().map(|c| (c.column, c.n_nan, c.n_inf, c.first_row)).collect())
}

/// Origin and unit of every column, as two arrays.
#[pyfunction]
#[pyo3(signature = (table, sample_weight, standardise, n_jobs))]
#[allow(clippy::type_complexity, reason = "a pair of arrays")]
pub fn column_units<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    standardise: bool,
    n_jobs: Jobs<'_>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
    let table = table.table()?;
    let weights = optional(&sample_weight)?;
    if let Some(weights) = weights {
        Error::check_len("sample_weight", weights.len(), table.n_samples(), "rows")?;
    }
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let units = run(py, &n_jobs, &monitor, None, || Ok(Units::of(&table, weights, standardise)))?;
    Ok((units.shift.into_pyarray(py), units.scale.into_pyarray(py)))
}

/// Regrets (n x k), nearest label and the weighted sum of the cheapest costs.
#[pyfunction]
#[pyo3(signature = (table, shift, scale, centers, manhattan, sample_weight, n_jobs))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "a flat Python signature")]
pub fn label_costs<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
    shift: PyReadonlyArray1<'_, f64>,
    scale: PyReadonlyArray1<'_, f64>,
    centers: PyReadonlyArray2<'_, f64>,
    manhattan: bool,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_jobs: Jobs<'_>,
) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<u32>>, f64)> {
    let table = table.table()?;
    let units = units(&shift, &scale, table.n_features())?;
    let weights = optional(&sample_weight)?;
    let k = centers.as_array().nrows();
    let centers = slice2(&centers)?;
    Error::check_len("centers", centers.len(), k * table.n_features(), "entries")?;
    let metric = if manhattan { Metric::Manhattan } else { Metric::SquaredEuclidean };
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let costs = run(py, &n_jobs, &monitor, None, || {
        let costs = costs::label_costs(&table, &units, centers, metric, weights);
        monitor.check().and(costs)
    })?;
    Ok((matrix(py, costs.regrets, k)?, costs.nearest.into_pyarray(py), costs.minimum))
}

/// Weight and column sums (in units) of each group of rows.
#[pyfunction]
#[pyo3(signature = (table, shift, scale, groups, n_groups, sample_weight, n_jobs))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "a flat Python signature")]
pub fn group_sums<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
    shift: PyReadonlyArray1<'_, f64>,
    scale: PyReadonlyArray1<'_, f64>,
    groups: PyReadonlyArray1<'_, u32>,
    n_groups: usize,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_jobs: Jobs<'_>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>)> {
    let table = table.table()?;
    let units = units(&shift, &scale, table.n_features())?;
    let (weights, groups) = (optional(&sample_weight)?, slice(&groups)?);
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let sums = run(py, &n_jobs, &monitor, None, || {
        let sums = costs::group_sums(&table, &units, groups, n_groups, weights);
        monitor.check().and(sums)
    })?;
    Ok((sums.weight.into_pyarray(py), matrix(py, sums.sums, table.n_features())?))
}

/// Fits a threshold or interval tree; returns its arrays by name. `search` = (most bins, rows sorted directly) is for
/// tests: it changes the speed, never the tree.
#[pyfunction]
#[pyo3(signature = (table, regrets, labels, *, base_centers, base_centers_low, sample_weight, interval,
                    max_leaves, max_depth, min_samples_leaf, n_jobs, progress, search=None, surrogate=None))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_tree<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
    regrets: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, u32>,
    base_centers: Option<PyReadonlyArray2<'_, f64>>,
    base_centers_low: Option<PyReadonlyArray2<'_, f64>>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    interval: bool,
    max_leaves: usize,
    max_depth: Option<usize>,
    min_samples_leaf: usize,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
    search: Option<(usize, usize)>,
    surrogate: Option<SurrogateArgument<'_>>,
) -> PyResult<Bound<'py, PyDict>> {
    let table = table.table()?;
    let high = base_centers.as_ref().map(slice2).transpose()?;
    let low = base_centers_low.as_ref().map(slice2).transpose()?;
    let settled = surrogate.as_ref().map(SurrogateArgument::settle).transpose()?;
    let base = match (high.zip(low), &settled) {
        (None, None) => Base::Leaf,
        (Some((high, low)), None) => Base::Imm(Centers { high, low }),
        (None, Some(settled)) => Base::KernelImm(settled.spec()),
        _ => return Err(PyValueError::new_err("Give either centers or surrogate features.")),
    };
    let problem = Problem {
        regrets: slice2(&regrets)?,
        k: regrets.as_array().ncols(),
        labels: slice(&labels)?,
        base,
        weights: optional(&sample_weight)?,
        cuts: if interval { CutKind::Interval } else { CutKind::Threshold },
        limits: Limits { max_leaves, max_depth, min_samples_leaf },
        search: search.map_or_else(SearchOptions::default, |(max_bins, direct)| SearchOptions {
            max_bins,
            direct,
        }),
    };
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let fitted = run(py, &n_jobs, &monitor, progress, || imm::fit(&table, &problem, &monitor))?;
    to_dict(py, fitted, problem.k)
}

/// The arrays of a tree's tests, by name.
pub fn tests_to_dict<'py>(
    py: Python<'py>,
    tests: &[Test],
    left: &[usize],
) -> PyResult<Bound<'py, PyDict>> {
    let child = |offset: usize| -> Vec<i64> {
        let of = |(test, &left): (&Test, &usize)| match test {
            Test::Leaf => -1,
            _ => (left + offset) as i64,
        };
        tests.iter().zip(left).map(of).collect()
    };
    let number = |of: fn(&Test) -> f64| tests.iter().map(of).collect::<Vec<f64>>().into_pyarray(py);
    let dict = PyDict::new(py);
    let kind = |test: &Test| match test {
        Test::Leaf => 0i8,
        Test::Threshold { .. } => 1,
        Test::Interval { .. } => 2,
        Test::Oblique { .. } => 3,
    };
    dict.set_item("kind", tests.iter().map(kind).collect::<Vec<i8>>().into_pyarray(py))?;
    let feature = |test: &Test| test.feature().map_or(-2, |feature| feature as i64);
    dict.set_item("feature", tests.iter().map(feature).collect::<Vec<i64>>().into_pyarray(py))?;
    dict.set_item(
        "threshold",
        number(|test| match test {
            Test::Leaf => -2.0,
            Test::Threshold { threshold, .. } => *threshold,
            Test::Interval { .. } | Test::Oblique { .. } => f64::NAN,
        }),
    )?;
    let lower =
        |test: &Test| if let Test::Interval { lower, .. } = test { *lower } else { f64::NAN };
    let upper =
        |test: &Test| if let Test::Interval { upper, .. } = test { *upper } else { f64::NAN };
    dict.set_item("lower", number(lower))?;
    dict.set_item("upper", number(upper))?;
    dict.set_item("children_left", child(0).into_pyarray(py))?;
    dict.set_item("children_right", child(1).into_pyarray(py))?;
    Ok(dict)
}

fn to_dict<'py>(py: Python<'py>, fitted: Fitted, k: usize) -> PyResult<Bound<'py, PyDict>> {
    let dict = tests_to_dict(py, &fitted.tests, &fitted.left)?;
    let n_samples: Vec<i64> = fitted.n_samples.iter().map(|&n| n as i64).collect();
    dict.set_item("n_node_samples", n_samples.into_pyarray(py))?;
    dict.set_item("weighted_n_node_samples", fitted.weight.into_pyarray(py))?;
    dict.set_item("label_weight", matrix(py, fitted.label_weight, k)?)?;
    dict.set_item("cost", fitted.cost.into_pyarray(py))?;
    let cluster: Vec<i64> = fitted.cluster.iter().map(|&c| c as i64).collect();
    dict.set_item("cluster", cluster.into_pyarray(py))?;
    let base: Vec<i64> = fitted.base_cluster.iter().map(|c| c.map_or(-1, |c| c as i64)).collect();
    dict.set_item("base_cluster", base.into_pyarray(py))?;
    dict.set_item("base_cost", fitted.base_cost.into_pyarray(py))?;
    dict.set_item("mistakes", fitted.mistakes.into_pyarray(py))?;
    dict.set_item("leaf_of_row", fitted.leaf_of_row.into_pyarray(py))?;
    dict.set_item("n_base_leaves", fitted.n_base_leaves)?;
    dict.set_item("skipped_features", fitted.skipped_features)?;
    Ok(dict)
}

/// A tree's arrays: kind, feature, threshold, lower, upper, children_left, children_right.
pub type Arrays<'py> = (
    PyReadonlyArray1<'py, i8>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
);

/// A tree's oblique tests: indptr, indices, weights, bias.
pub type Oblique<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
);

pub fn tree_arrays<'a>(
    tree: &'a Arrays<'_>,
    oblique: Option<&'a Oblique<'_>>,
) -> PyResult<TreeArrays<'a>> {
    let (kind, feature, threshold, lower, upper, left, right) = tree;
    let oblique = match oblique {
        Some((indptr, indices, weights, bias)) => Some(ObliqueArrays {
            indptr: slice(indptr)?,
            indices: slice(indices)?,
            weights: slice(weights)?,
            bias: slice(bias)?,
        }),
        None => None,
    };
    Ok(TreeArrays {
        kind: slice(kind)?,
        feature: slice(feature)?,
        threshold: slice(threshold)?,
        lower: slice(lower)?,
        upper: slice(upper)?,
        children_left: slice(left)?,
        children_right: slice(right)?,
        oblique,
    })
}

/// The leaf of every row, as a node id; None if a cell of the table is NaN or infinite.
#[pyfunction]
#[pyo3(signature = (tree, table, n_jobs, oblique=None))]
pub fn apply<'py>(
    py: Python<'py>,
    tree: Arrays<'_>,
    table: TableArgument<'_>,
    n_jobs: Jobs<'_>,
    oblique: Option<Oblique<'_>>,
) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
    let (rows, table) = (table.rows(), table.table()?);
    let arrays = tree_arrays(&tree, oblique.as_ref())?;
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let work = || -> Result<Option<Vec<i64>>> {
        let tree = ClusterTree::new(arrays, table.n_features())?;
        match rows {
            Some(Rows::F64(rows)) => tree.apply_rows(rows, table.n_features()),
            Some(Rows::F32(rows)) => tree.apply_rows(rows, table.n_features()),
            None => tree.apply(&table),
        }
    };
    let leaves = run(py, &n_jobs, &monitor, None, work)?;
    Ok(leaves.map(|leaves| leaves.into_pyarray(py)))
}

/// A sparse matrix: indptr, indices, values, number of columns.
pub type Sparse<'py> =
    (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>, usize);

/// As `apply` for the rows of a sparse matrix.
#[pyfunction]
#[pyo3(signature = (tree, rows, n_jobs, oblique=None))]
pub fn apply_sparse<'py>(
    py: Python<'py>,
    tree: Arrays<'_>,
    rows: Sparse<'_>,
    n_jobs: Jobs<'_>,
    oblique: Option<Oblique<'_>>,
) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
    let arrays = tree_arrays(&tree, oblique.as_ref())?;
    let (indptr, indices, values, n_features) = &rows;
    let (indptr, indices, values) = (slice(indptr)?, slice(indices)?, slice(values)?);
    let work = || {
        let rows = Csr::from_i64(indptr, indices, values, *n_features)?;
        ClusterTree::new(arrays, rows.n_columns())?.apply_sparse(&rows)
    };
    let leaves = run(py, &n_jobs, &Monitor::default(), None, work)?;
    Ok(leaves.map(|leaves| leaves.into_pyarray(py)))
}
