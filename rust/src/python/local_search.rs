//! BestTree's search: [`search`] for one of the three objectives. Called by `estimators/best_tree.py`.
//!
//! | Python | core |
//! |---|---|
//! | `objective` | [`KMeans`] (with gaps [`ObservedKMeans`]), [`KMedians`], [`Labels`] |
//! | `starts`: trees with the cluster of each leaf | [`DraftTree`] |
//! | codes of `path_move` | [`Move`] |

use std::time::Duration;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{optional, slice, slice2};
use super::router::PyRouter;
use super::rows::{RowsArgument, RowsData};
use super::run::{Jobs, run};
use super::tree::{Floats, Integers, PyTestArrays, Sparse, array, integers};
use crate::error::Error;
use crate::grow::Limits;
use crate::local_search::{
    FoundTree, KMeans, KMedians, Labels, LevelPoints, Move, Objective, ObservedKMeans, Points,
    SearchSettings, SparseKMeans, SparseKMedians, search,
};
use crate::oblique::draft::DraftTree;
use crate::parallel::Monitor;
use crate::rows::Csr;
use crate::table::{Column, Table};
use crate::tree::TestArrays;

/// The tree that a search found ([`FoundTree`]): its tests, and what happened on the way.
#[pyclass(frozen, get_all, extends = PyTestArrays, name = "SearchedTree", module = "treeclust_rs._core")]
pub struct PySearchedTree {
    /// Of shape (n_nodes,): label of each leaf; -1 at inner nodes.
    cluster: Integers,
    /// The value of the tree.
    objective: f64,
    /// The start that the tree comes from; restarts follow the given ones, three about random rows,
    /// then one with sampled columns, and so on.
    start: usize,
    /// The value of each start within the limits.
    start_objectives: Floats,
    /// The value of each start with its thresholds refined.
    refined_objectives: Floats,
    /// Rounds of all starts.
    n_rounds: usize,
    /// Of every step: the round.
    path_round: Integers,
    /// 0 start, 1 refine, 2 recreate, 3 sample, 4 shake, 5 transfer, 6 swap, 7 perturb, 8 cross.
    path_move: Integers,
    /// The best value afterwards.
    path_objective: Floats,
    /// The number of leaves afterwards.
    path_n_leaves: Integers,
}

/// Searches for the best tree of at most `max_leaves` leaves from given ones, on a table or sparse rows. `objective`: "kmeans" and
/// "kmedians" need `z`, the rows' numbers as points (NaN where one is missing; with "kmeans" also a sparse matrix), and `scale`, the unit of every column (only
/// those of columns of levels are read: two levels are 1 / unit apart; None: 1 each); "labels" needs `labels`, the
/// reference's in `[0, n_clusters)`.
/// `sample_weight`: of shape (n,), positive; None: 1 each. `max_time`: seconds; None for no limit. The other numbers:
/// [`SearchSettings`]. `progress(n_leaves, gain)` is called twice a second.
///
/// # Errors
/// `ValueError` if sizes disagree, a start has a test that does not suit its column, or the objective lacks what it needs;
/// `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (rows, *, objective, z, scale, labels, sample_weight, n_clusters, starts, max_leaves, max_depth, min_samples_leaf,
                    n_restarts, n_survivors, batch, drift, aim, reach, rounds_to_refine, patience, max_work, max_time, seed, n_jobs, progress))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn search_tree(
    py: Python<'_>,
    rows: RowsArgument<'_>,
    objective: &str,
    z: Option<PointsArgument<'_>>,
    scale: Option<PyReadonlyArray1<'_, f64>>,
    labels: Option<PyReadonlyArray1<'_, u32>>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_clusters: usize,
    starts: Vec<(Bound<'_, PyRouter>, PyReadonlyArray1<'_, i64>)>,
    max_leaves: usize,
    max_depth: Option<usize>,
    min_samples_leaf: usize,
    n_restarts: usize,
    n_survivors: usize,
    batch: usize,
    drift: f64,
    aim: Option<f64>,
    reach: f64,
    rounds_to_refine: usize,
    patience: usize,
    max_work: u64,
    max_time: Option<f64>,
    seed: u64,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PySearchedTree>> {
    let weights = optional(&sample_weight)?;
    let draft = |(router, clusters): &(Bound<'_, PyRouter>, PyReadonlyArray1<'_, i64>)| {
        PyResult::Ok(DraftTree::of_columns(&router.get().0, slice(clusters)?)?)
    };
    let starts = starts.iter().map(draft).collect::<PyResult<Vec<DraftTree>>>()?;
    let max_time = max_time.map(Duration::try_from_secs_f64).transpose();
    let max_time = max_time.map_err(|error| PyValueError::new_err(format!("max_time: {error}")))?;
    let settings = SearchSettings {
        limits: Limits { max_leaves, max_depth, min_samples_leaf },
        n_restarts,
        n_survivors,
        batch,
        drift,
        aim,
        reach,
        rounds_to_refine,
        patience,
        max_work,
        max_time,
        seed,
    };
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let sparse_points = match &z {
        Some(PointsArgument::Sparse((indptr, indices, values, n_columns))) => {
            let (indptr, indices) = (slice(indptr)?, slice(indices)?);
            Some(Csr::from_i64(indptr, indices, slice(values)?, *n_columns)?)
        }
        _ => None,
    };
    let objective: Box<dyn Objective> = match (objective, &z, &labels) {
        ("kmeans" | "kmedians", Some(PointsArgument::Sparse(_)), _) => {
            let points = sparse_points.as_ref().ok_or_else(|| no_points(objective))?;
            match objective {
                "kmedians" => Box::new(SparseKMedians::new(points, n_clusters, weights)?),
                _ => Box::new(SparseKMeans::new(points, n_clusters, weights)?),
            }
        }
        ("kmeans" | "kmedians", Some(PointsArgument::Dense(z)), _) => {
            let levels = match &data {
                RowsData::Table(table) => level_points(table, optional(&scale)?)?,
                RowsData::Sparse(_) => vec![],
            };
            let n_samples = z.as_array().nrows();
            let points = Points::new(slice2(z)?, n_samples, n_clusters, weights, &levels)?;
            match objective {
                "kmedians" => Box::new(KMedians::new(points)),
                _ if points.has_gaps() => Box::new(ObservedKMeans::new(points)),
                _ => Box::new(KMeans::new(points)),
            }
        }
        ("labels", _, Some(labels)) => Box::new(Labels::new(slice(labels)?, n_clusters, weights)?),
        _ => return Err(no_points(objective)),
    };
    let found = run(py, &n_jobs, &monitor, progress, || {
        search(data.rows()?, &*objective, &starts, &settings, &monitor)
    })?;
    PySearchedTree::new(py, found)
}

/// The points of the rows: a matrix, or a sparse one.
#[derive(FromPyObject)]
pub enum PointsArgument<'py> {
    /// indptr, indices, values, number of columns.
    #[pyo3(transparent)]
    Sparse(Sparse<'py>),
    /// Rows of numbers.
    #[pyo3(transparent)]
    Dense(PyReadonlyArray2<'py, f64>),
}

/// The error of an objective that lacks what it reads.
fn no_points(objective: &str) -> PyErr {
    PyValueError::new_err(format!("No points or labels for the objective {objective:?}."))
}

/// The columns of levels with their units.
fn level_points<'a>(
    table: &Table<'a>,
    scale: Option<&[f64]>,
) -> Result<Vec<LevelPoints<'a>>, Error> {
    let d = table.n_features();
    Error::check_len("scale", scale.map_or(d, <[f64]>::len), d, "columns")?;
    let of_column = |feature: usize| match table.column(feature) {
        Column::Levels { codes, n_levels } => {
            let unit = scale.map_or(1.0, |scale| scale[feature]);
            Some(LevelPoints { codes: *codes, n_levels: *n_levels, unit })
        }
        _ => None,
    };
    Ok((0..d).filter_map(of_column).collect())
}

impl PySearchedTree {
    /// Moves the core's vectors into NumPy arrays; moves become their codes.
    fn new(py: Python<'_>, found: FoundTree) -> PyResult<Py<Self>> {
        let missing_go_to_left = found.is_mixed.then(|| found.tree.missing_left());
        let arrays = TestArrays { missing_go_to_left, ..found.tree.arrays() };
        let (tests, _) = PyTestArrays::new(py, arrays);
        let code = |kind: Move| match kind {
            Move::Start => 0i64,
            Move::Refine => 1,
            Move::Recreate => 2,
            Move::Sample => 3,
            Move::Shake => 4,
            Move::Transfer => 5,
            Move::Swap => 6,
            Move::Perturb => 7,
            Move::Cross => 8,
        };
        let path = found.path;
        let tree = PySearchedTree {
            cluster: array(py, found.tree.clusters()),
            objective: found.objective,
            start: found.start,
            start_objectives: array(py, found.start_objectives),
            refined_objectives: array(py, found.refined_objectives),
            n_rounds: found.n_rounds,
            path_round: integers(py, path.iter().map(|step| step.round).collect()),
            path_move: array(py, path.iter().map(|step| code(step.kind)).collect()),
            path_objective: array(py, path.iter().map(|step| step.objective).collect()),
            path_n_leaves: integers(py, path.iter().map(|step| step.n_leaves).collect()),
        };
        Py::new(py, (tree, tests))
    }
}
