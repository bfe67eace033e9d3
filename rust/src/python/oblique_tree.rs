//! Oblique trees, and axis-aligned ones fitted in the same way.

use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{TableArgument, matrix, optional, slice, slice2, units};
use super::router::PyRouter;
use super::run::{Jobs, run};
use super::tree::Sparse;
use crate::error::{Error, Result};
use crate::oblique::draft::DraftTree;
use crate::oblique::fit::{ObliqueFit, Round};
use crate::oblique::geometry::{Distance, Geometry};
use crate::oblique::initial::FirstTree;
use crate::oblique::path::Schedule;
use crate::oblique::plan::{FreeClustering, ObliqueOptions, fit_tree};
use crate::oblique::spherical;
use crate::parallel::Monitor;
use crate::rows::{Csr, CsrRows, Rows};
use crate::table::Table;

/// The rows of a fit, as they arrive: a table, or a sparse matrix.
#[derive(FromPyObject)]
pub enum RowsArgument<'py> {
    #[pyo3(transparent)]
    Sparse(Sparse<'py>),
    #[pyo3(transparent)]
    Table(TableArgument<'py>),
}

/// The same in the types of the core; a sparse matrix has its indices copied.
enum RowsData<'a> {
    Table(Table<'a>),
    Sparse(CsrRows<'a>),
}

impl RowsArgument<'_> {
    fn data<'a>(&'a self, monitor: &'a Monitor) -> PyResult<RowsData<'a>> {
        Ok(match self {
            RowsArgument::Table(table) => RowsData::Table(table.table()?.with_monitor(monitor)),
            RowsArgument::Sparse((indptr, indices, values, n_columns)) => {
                let (indptr, indices) = (slice(indptr)?, slice(indices)?);
                RowsData::Sparse(Csr::from_i64(indptr, indices, slice(values)?, *n_columns)?)
            }
        })
    }
}

impl<'t> RowsData<'t> {
    fn rows(&self) -> Result<Rows<'_, 't>> {
        match self {
            RowsData::Table(table) => Ok(Rows::Table(table)),
            RowsData::Sparse(matrix) => Rows::sparse(matrix),
        }
    }
}

fn distance(cosine: bool) -> Distance {
    if cosine { Distance::Cosine } else { Distance::Euclidean }
}

/// A fitted tree: the arrays of its nodes, its centers (in units) and its rounds.
#[pyclass(frozen, get_all, module = "treeclust_rs._core")]
pub struct FittedOblique {
    kind: Py<PyArray1<i8>>,
    feature: Py<PyArray1<i64>>,
    threshold: Py<PyArray1<f64>>,
    children_left: Py<PyArray1<i64>>,
    children_right: Py<PyArray1<i64>>,
    oblique_indptr: Py<PyArray1<i64>>,
    oblique_indices: Py<PyArray1<i64>>,
    oblique_weights: Py<PyArray1<f64>>,
    oblique_bias: Py<PyArray1<f64>>,
    /// Label of each leaf; -1 at inner nodes.
    cluster: Py<PyArray1<i64>>,
    /// n_nodes x k: regret of every label over the node's rows.
    regrets: Py<PyArray2<f64>>,
    leaf_of_row: Py<PyArray1<u32>>,
    centers: Py<PyArray2<f64>>,
    inertia: f64,
    free_inertia: f64,
    converged: bool,
    mu: Py<PyArray1<f64>>,
    cost: Py<PyArray1<f64>>,
    penalty: Py<PyArray1<f64>>,
    mismatch: Py<PyArray1<f64>>,
    n_weights: Py<PyArray1<i64>>,
    n_leaves: Py<PyArray1<i64>>,
}

impl FittedOblique {
    fn new(py: Python<'_>, fitted: ObliqueFit, n_features: usize) -> PyResult<Self> {
        fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Py<PyArray1<T>> {
            values.into_pyarray(py).unbind()
        }
        let ObliqueFit { tree, centers, rounds, converged, summary } = fitted;
        let k = centers.len() / n_features.max(1);
        let (arrays, cluster) = (tree.arrays(), tree.clusters());
        let number = |of: fn(&Round) -> f64| array(py, rounds.iter().map(of).collect());
        let count = |of: fn(&Round) -> usize| {
            array(py, rounds.iter().map(|round| of(round) as i64).collect())
        };
        Ok(FittedOblique {
            kind: array(py, arrays.kind),
            feature: array(py, arrays.feature),
            threshold: array(py, arrays.threshold),
            children_left: array(py, arrays.children_left),
            children_right: array(py, arrays.children_right),
            oblique_indptr: array(py, arrays.oblique_indptr),
            oblique_indices: array(py, arrays.oblique_indices),
            oblique_weights: array(py, arrays.oblique_weights),
            oblique_bias: array(py, arrays.oblique_bias),
            cluster: array(py, cluster),
            regrets: matrix(py, summary.regrets, k)?.unbind(),
            leaf_of_row: array(py, summary.leaf_of_row),
            centers: matrix(py, centers, n_features)?.unbind(),
            inertia: summary.inertia,
            free_inertia: summary.free_inertia,
            converged,
            mu: number(|round| round.mu),
            cost: number(|round| round.objective.loss),
            penalty: number(|round| round.objective.penalty),
            mismatch: number(|round| round.mismatch),
            n_weights: count(|round| round.n_weights),
            n_leaves: count(|round| round.n_leaves),
        })
    }
}

/// Fits an oblique or axis-aligned tree. Sparse rows only with `cosine`. `init`: "bisecting" or "random" where no `tree`
/// (and the cluster of each of its leaves) is given. `schedule`: factor and number of values of mu, and whether leaves
/// hold histograms; none: the direct solver.
#[pyfunction]
#[pyo3(signature = (rows, *, shift, scale, cosine, centers, labels, sample_weight, init, tree, axis, alpha,
                    max_depth, max_iter, schedule, relax, seed, n_jobs, progress))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_oblique(
    py: Python<'_>,
    rows: RowsArgument<'_>,
    shift: PyReadonlyArray1<'_, f64>,
    scale: PyReadonlyArray1<'_, f64>,
    cosine: bool,
    centers: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, u32>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    init: &str,
    tree: Option<(Bound<'_, PyRouter>, PyReadonlyArray1<'_, i64>)>,
    axis: bool,
    alpha: f64,
    max_depth: usize,
    max_iter: usize,
    schedule: Option<(f64, usize, bool)>,
    relax: bool,
    seed: u64,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<FittedOblique> {
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let rows = data.rows()?;
    let units = units(&shift, &scale, rows.n_features())?;
    let weights = optional(&sample_weight)?;
    let free = FreeClustering { labels: slice(&labels)?, centers: slice2(&centers)? };
    let given = match &tree {
        Some((router, clusters)) => {
            Some(DraftTree::from_tree(&router.get().0, slice(clusters)?, axis)?)
        }
        None => None,
    };
    let first = match init {
        "bisecting" => FirstTree::Bisecting,
        "random" => FirstTree::Random,
        _ => return Err(PyValueError::new_err(format!("There is no first tree {init:?}."))),
    };
    let schedule =
        schedule.map(|(factor, n_steps, histograms)| Schedule { factor, n_steps, histograms });
    let options = ObliqueOptions {
        alpha,
        max_depth,
        axis,
        distance: distance(cosine),
        first,
        schedule,
        max_iter,
        relax,
        seed,
    };
    let fitted = run(py, &n_jobs, &monitor, progress, || {
        fit_tree(rows, &units, weights, free, given, &options, &monitor)
    })?;
    FittedOblique::new(py, fitted, rows.n_features())
}

/// Spherical k-means: labels and centers of the best of `n_init` starts.
#[pyfunction]
#[pyo3(signature = (rows, n_clusters, *, sample_weight, n_init, max_iter, seed, n_jobs))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "a flat Python signature")]
pub fn spherical_kmeans<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    n_clusters: usize,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_init: usize,
    max_iter: usize,
    seed: u64,
    n_jobs: Jobs<'_>,
) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray2<f64>>)> {
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let rows = data.rows()?;
    let weights = optional(&sample_weight)?;
    let found = run(py, &n_jobs, &monitor, None, || {
        let options = spherical::SphericalOptions { n_clusters, n_init, max_iter, seed };
        spherical::kmeans(&Geometry::cosine(rows), weights, &options, &monitor)
    })?;
    Ok((found.labels.into_pyarray(py), matrix(py, found.centers, rows.n_features())?))
}

/// The nearest center of every row, and the cost of the rows about the centers of given labels (else the nearest).
#[pyfunction]
#[pyo3(signature = (rows, *, shift, scale, cosine, centers, labels, sample_weight, n_jobs))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn assign_rows<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    shift: PyReadonlyArray1<'_, f64>,
    scale: PyReadonlyArray1<'_, f64>,
    cosine: bool,
    centers: PyReadonlyArray2<'_, f64>,
    labels: Option<PyReadonlyArray1<'_, u32>>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_jobs: Jobs<'_>,
) -> PyResult<(Bound<'py, PyArray1<u32>>, f64)> {
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let rows = data.rows()?;
    let units = units(&shift, &scale, rows.n_features())?;
    let (weights, k) = (optional(&sample_weight)?, centers.as_array().nrows());
    let centers = slice2(&centers)?;
    let labels = labels.as_ref().map(slice).transpose()?;
    let (nearest, cost) = run(py, &n_jobs, &monitor, None, || {
        check_labels(labels, rows.n_samples(), k)?;
        let costs = Geometry::new(rows, &units, distance(cosine))?.costs(centers, weights)?;
        let regrets = costs.regrets.chunks(k).zip(labels.unwrap_or(&costs.nearest));
        let own: f64 = regrets.map(|(row, &label)| row[label as usize]).sum();
        Ok((costs.nearest, costs.minimum + own))
    })?;
    Ok((nearest.into_pyarray(py), cost))
}

/// The centers (in units) of the clusters of given labels; those without rows keep the ones given.
#[pyfunction]
#[pyo3(signature = (rows, *, shift, scale, cosine, centers, labels, sample_weight, n_jobs))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn mean_centers<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    shift: PyReadonlyArray1<'_, f64>,
    scale: PyReadonlyArray1<'_, f64>,
    cosine: bool,
    centers: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, u32>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_jobs: Jobs<'_>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let rows = data.rows()?;
    let units = units(&shift, &scale, rows.n_features())?;
    let (weights, k) = (optional(&sample_weight)?, centers.as_array().nrows());
    let (centers, labels) = (slice2(&centers)?, slice(&labels)?);
    let found = run(py, &n_jobs, &monitor, None, || {
        check_labels(Some(labels), rows.n_samples(), k)?;
        Geometry::new(rows, &units, distance(cosine))?.centers(labels, weights, centers)
    })?;
    matrix(py, found, rows.n_features())
}

fn check_labels(labels: Option<&[u32]>, n_samples: usize, k: usize) -> Result<()> {
    let Some(labels) = labels else { return Ok(()) };
    Error::check_len("labels", labels.len(), n_samples, "rows")?;
    match labels.iter().find(|&&label| label as usize >= k) {
        Some(label) => Err(Error::Value(format!("Label {label} is not in the range [0, {k})."))),
        None => Ok(()),
    }
}
