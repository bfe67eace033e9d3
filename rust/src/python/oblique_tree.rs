//! Oblique trees, axis-aligned ones fitted in the same way, and the costs and centers of their clusterings.
//!
//! | function | core | called by |
//! |---|---|---|
//! | [`fit_oblique`] | [`fit_tree`] | `estimators/oblique_tree.py` |
//! | [`spherical_kmeans`] | [`spherical::kmeans`] | `_reference/kmeans.py` |
//! | [`assign_rows`], [`mean_centers`] | [`Geometry::assign`], [`Geometry::centers`] | `_reference/`, `score` |
//!
//! Rows (n x d) come as a table or as a sparse matrix; a [`MeasureArgument`] names distance, units, weights and
//! threads. Sparse rows are taken for the cosine distance alone: the core refuses them for the Euclidean one.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{UnitsArgument, matrix, optional, rows_of, slice};
use super::router::PyRouter;
use super::rows::RowsArgument;
use super::run::{Jobs, run};
use super::tree::{Floats, Integers, PyTestArrays, array, integers};
use crate::error::Result;
use crate::oblique::draft::DraftTree;
use crate::oblique::fit::{ObliqueFit, Round};
use crate::oblique::geometry::{Distance, Geometry};
use crate::oblique::initial::FirstTree;
use crate::oblique::path::Schedule;
use crate::oblique::plan::{FreeClustering, ObliqueOptions, fit_tree};
use crate::oblique::spherical;
use crate::parallel::Monitor;

/// How the cost of a row about a center is measured, and on which threads: an object with the attributes `units`,
/// `cosine` (else squared Euclidean distances), `sample_weight` and `n_jobs`.
#[derive(FromPyObject)]
pub struct MeasureArgument<'py> {
    units: UnitsArgument<'py>,
    cosine: bool,
    sample_weight: Option<PyReadonlyArray1<'py, f64>>,
    n_jobs: Jobs<'py>,
}

impl MeasureArgument<'_> {
    /// The distance by its name.
    fn distance(&self) -> Distance {
        if self.cosine { Distance::Cosine } else { Distance::Euclidean }
    }

    /// The weights of the rows, if they have any.
    fn weights(&self) -> PyResult<Option<&[f64]>> {
        optional(&self.sample_weight)
    }

    /// Calls `work` on the jobs with the geometry of the rows and their weights.
    ///
    /// # Errors
    /// `ValueError` if the units are not one per column, or the rows do not suit the distance; what `work` returns.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        rows: &RowsArgument<'_>,
        work: impl FnOnce(&Geometry<'_, '_>, Option<&[f64]>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let monitor = Monitor::default();
        let data = rows.data(&monitor)?;
        let rows = data.rows()?;
        let units = self.units.read(rows.n_features())?;
        let (weights, distance) = (self.weights()?, self.distance());
        run(py, &self.n_jobs, &monitor, None, || {
            work(&Geometry::new(rows, &units, distance)?, weights)
        })
    }
}

/// A fitted tree: its tests, the terms of its oblique tests, its centers and its rounds. Arrays have one entry per node
/// up to `regrets`, and one per round from `mu` on.
#[pyclass(frozen, get_all, extends = PyTestArrays, module = "treeclust_rs._core")]
pub struct FittedOblique {
    /// Where the terms of each node start, and their number at the end.
    oblique_indptr: Integers,
    /// Column of each term.
    oblique_indices: Integers,
    /// Weight of each term.
    oblique_weights: Floats,
    /// Bias of oblique nodes; NaN elsewhere.
    oblique_bias: Floats,
    /// Label of each leaf; -1 at inner nodes.
    cluster: Integers,
    /// n_nodes x k: regret of every label over the node's rows.
    regrets: Py<PyArray2<f64>>,
    /// Shape (n_samples,): node of each row's leaf.
    leaf_of_row: Py<PyArray1<u32>>,
    /// Shape (k, n_features), in units.
    centers: Py<PyArray2<f64>>,
    /// Cost of the tree's clusters about their centers.
    inertia: f64,
    /// Cost of the free clustering.
    free_inertia: f64,
    /// Whether the rounds ended before their limit.
    converged: bool,
    /// The path's mu.
    mu: Floats,
    /// Cost of the tree's clusters.
    cost: Floats,
    /// The paper's phi, without its factor lambda.
    penalty: Floats,
    /// Weight of the rows whose auxiliary label is not the tree's.
    mismatch: Floats,
    /// Non-zero weights.
    n_weights: Integers,
    /// Leaves.
    n_leaves: Integers,
}

impl FittedOblique {
    /// Moves the core's vectors into NumPy arrays; rounds become one array per number.
    fn new(py: Python<'_>, fitted: ObliqueFit, n_features: usize) -> PyResult<Py<Self>> {
        let ObliqueFit { tree, centers, rounds, converged, summary } = fitted;
        let k = centers.len() / n_features.max(1);
        let (tests, oblique) = PyTestArrays::new(py, tree.arrays());
        let number = |of: fn(&Round) -> f64| array(py, rounds.iter().map(of).collect());
        let count = |of: fn(&Round) -> usize| integers(py, rounds.iter().map(of).collect());
        let fitted = FittedOblique {
            oblique_indptr: array(py, oblique.indptr),
            oblique_indices: array(py, oblique.indices),
            oblique_weights: array(py, oblique.weights),
            oblique_bias: array(py, oblique.bias),
            cluster: array(py, tree.clusters()),
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
        };
        Py::new(py, (fitted, tests))
    }
}

/// Fits an oblique or axis-aligned tree. Sparse rows only with `cosine`. `init`: "bisecting" or "random" where no
/// `tree` (and the cluster of each of its leaves) is given. `schedule`: factor and number of values of mu, and whether
/// leaves hold histograms; None: the direct solver. `centers` (k x d, in units) and `labels` (n): the free clustering.
/// `axis`: whether tests are thresholds. `alpha`, `max_depth`, `max_iter`, `relax` and `seed`: see [`ObliqueOptions`].
/// `progress(n_leaves, gain)` is called twice a second.
///
/// # Errors
/// `ValueError` as [`fit_tree`], or if `init` is neither word; `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (rows, measure, *, centers, labels, init, tree, axis, alpha, max_depth, max_iter, schedule, relax,
                    seed, progress))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_oblique(
    py: Python<'_>,
    rows: RowsArgument<'_>,
    measure: MeasureArgument<'_>,
    centers: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, u32>,
    init: &str,
    tree: Option<(Bound<'_, PyRouter>, PyReadonlyArray1<'_, i64>)>,
    axis: bool,
    alpha: f64,
    max_depth: usize,
    max_iter: usize,
    schedule: Option<(f64, usize, bool)>,
    relax: bool,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<FittedOblique>> {
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let rows = data.rows()?;
    let (units, weights) = (measure.units.read(rows.n_features())?, measure.weights()?);
    let free =
        FreeClustering { labels: slice(&labels)?, centers: rows_of(&centers, rows.n_features())? };
    let draft = |(router, clusters): &(Bound<'_, PyRouter>, PyReadonlyArray1<'_, i64>)| {
        PyResult::Ok(DraftTree::from_tree(&router.get().0, slice(clusters)?, axis)?)
    };
    let first_tree = tree.as_ref().map(draft).transpose()?;
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
        distance: measure.distance(),
        first,
        schedule,
        max_iter,
        relax,
        seed,
    };
    let fitted = run(py, &measure.n_jobs, &monitor, progress, || {
        fit_tree(rows, &units, weights, free, first_tree, &options, &monitor)
    })?;
    FittedOblique::new(py, fitted, rows.n_features())
}

/// Spherical k-means: labels (n) and centers (n_clusters x d, of length 1) of the best of `n_init` starts of at most
/// `max_iter` steps. `sample_weight`: of shape (n,), positive; None: 1 each.
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
    let clustering = run(py, &n_jobs, &monitor, None, || {
        let options = spherical::SphericalOptions { n_clusters, n_init, max_iter, seed };
        spherical::kmeans(&Geometry::cosine(rows)?, weights, &options, &monitor)
    })?;
    Ok((clustering.labels.into_pyarray(py), matrix(py, clustering.centers, rows.n_features())?))
}

/// The nearest center of every row, and the cost of the rows about the centers of `labels` (none: about the nearest).
/// `centers`: k x d, in units; `labels`: of shape (n,), in `[0, k)`. Returns an array of shape (n,) and a number.
///
/// # Errors
/// `ValueError` if the centers have another number of columns, a label is out of range, or a distance overflows.
#[pyfunction]
#[pyo3(signature = (rows, measure, *, centers, labels))]
pub fn assign_rows<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    measure: MeasureArgument<'_>,
    centers: PyReadonlyArray2<'_, f64>,
    labels: Option<PyReadonlyArray1<'_, u32>>,
) -> PyResult<(Bound<'py, PyArray1<u32>>, f64)> {
    let centers = rows_of(&centers, rows.n_features())?;
    let labels = labels.as_ref().map(slice).transpose()?;
    let (nearest, cost) =
        measure.run(py, &rows, |geometry, weights| geometry.assign(centers, labels, weights))?;
    Ok((nearest.into_pyarray(py), cost))
}

/// The centers (k x d, in units) of the clusters of `labels`; clusters without rows keep those of `centers`.
///
/// # Errors
/// As [`assign_rows`].
#[pyfunction]
#[pyo3(signature = (rows, measure, *, centers, labels))]
pub fn mean_centers<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    measure: MeasureArgument<'_>,
    centers: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, u32>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (labels, n_features) = (slice(&labels)?, rows.n_features());
    let centers = rows_of(&centers, n_features)?;
    let means =
        measure.run(py, &rows, |geometry, weights| geometry.centers(labels, weights, centers))?;
    matrix(py, means, n_features)
}
