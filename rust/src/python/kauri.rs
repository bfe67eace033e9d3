//! Kauri: [`fit`] on features of a kernel or on its matrix. Called by `estimators/kauri.py`.
//!
//! | Python | core |
//! |---|---|
//! | `rows` | [`crate::rows::Rows`] |
//! | `kernel`, `is_gram` | [`Kernel`] |
//! | the limits of the signature | [`KauriProblem`] |
//! | codes of `move` | [`MoveKind`] |

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::convert::{optional, slice, slice2};
use super::rows::RowsArgument;
use super::run::{Jobs, run};
use super::tree::{Floats, Integers, PyTestArrays, Sparse, array, integers};
use crate::grow::Limits;
use crate::kauri::features::LevelFeatures;
use crate::kauri::fit::{FittedKauri, KauriProblem, fit};
use crate::kauri::kernel::Kernel;
use crate::kauri::moves::MoveKind;
use crate::parallel::Monitor;
use crate::rows::Csr;

/// A fitted Kauri tree ([`FittedKauri`]): its tests, and arrays with one entry per node, but `objective` (one per
/// number of leaves) and `leaf_of_row` (one per row). Arrays are NumPy's, of `f64` or, for what counts or numbers, of
/// `i64`.
#[pyclass(frozen, get_all, extends = PyTestArrays, name = "FittedKauri", module = "treeclust_rs._core")]
pub struct PyFittedKauri {
    /// Number of rows.
    n_node_samples: Integers,
    /// Weight of the rows.
    weighted_n_node_samples: Floats,
    /// Kernel k-means cost of the node as one cluster.
    cost: Floats,
    /// The cluster of the node when it was made.
    cluster: Integers,
    /// 0 star, 1 double star, 2 switch, 3 reallocation, 4 mixed; -1 at leaves.
    r#move: Integers,
    /// Of the split, in units of the objective; NaN at leaves.
    gain: Floats,
    /// Of shape (n_leaves,): the objective before the first and after every split.
    objective: Floats,
    /// Of shape (n,): node id of each row's leaf.
    leaf_of_row: Py<PyArray1<u32>>,
}

/// Features of the rows, or their kernel matrix.
#[derive(FromPyObject)]
pub enum KernelArgument<'py> {
    /// indptr, indices, values, number of columns.
    #[pyo3(transparent)]
    Sparse(Sparse<'py>),
    /// C-ordered.
    #[pyo3(transparent)]
    Dense(PyReadonlyArray2<'py, f64>),
}

/// Fits a Kauri tree. `kernel`: the kernel matrix (n x n) if `is_gram`, else features of the rows (n x rank), sparse
/// ones for sparse rows, beside which those of columns of levels are given by `levels`: column, unit and the means by level of each.
/// `sample_weight`: of shape (n,), positive; None: 1 each. `max_depth`: None for no limit. `max_features`: columns
/// drawn at each leaf, by `seed`. `all_moves`: whether mixed moves are allowed. `progress(n_leaves, gain)` is called
/// twice a second.
///
/// # Errors
/// `ValueError` if sizes disagree or sums of kernel values overflow; `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (rows, *, kernel, levels = vec![], is_gram, sample_weight, max_clusters, max_leaves, max_depth,
                    min_samples_split, min_samples_leaf, max_features, seed, all_moves, n_jobs, progress))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_kauri(
    py: Python<'_>,
    rows: RowsArgument<'_>,
    kernel: KernelArgument<'_>,
    levels: Vec<(usize, f64, PyReadonlyArray1<'_, f64>)>,
    is_gram: bool,
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
) -> PyResult<Py<PyFittedKauri>> {
    let sparse;
    let kernel = match &kernel {
        KernelArgument::Sparse((indptr, indices, values, n_columns)) => {
            let (indptr, indices) = (slice(indptr)?, slice(indices)?);
            sparse = Csr::from_i64(indptr, indices, slice(values)?, *n_columns)?;
            Kernel::Sparse(&sparse)
        }
        KernelArgument::Dense(matrix) => {
            let (values, width) = (slice2(matrix)?, matrix.as_array().ncols());
            // Beside levels alone there is a column of zeros in the place of numbers, which adds nothing to any sum.
            let has_none = !levels.is_empty() && values.iter().all(|&x| x == 0.0);
            match is_gram {
                true => Kernel::Gram { k: values, n: width },
                false if has_none => Kernel::Features { z: &[], rank: 0 },
                false => Kernel::Features { z: values, rank: width },
            }
        }
    };
    let mut level_features = Vec::with_capacity(levels.len());
    for (column, unit, means) in &levels {
        level_features.push(LevelFeatures {
            column: *column,
            unit: *unit,
            means: means.as_slice()?,
        });
    }
    let problem = KauriProblem {
        kernel,
        levels: &level_features,
        weights: optional(&sample_weight)?,
        max_clusters,
        limits: Limits { max_leaves, max_depth, min_samples_leaf },
        min_samples_split,
        max_features,
        seed,
        all_moves,
    };
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let fitted = run(py, &n_jobs, &monitor, progress, || fit(data.rows()?, &problem, &monitor))?;
    PyFittedKauri::new(py, fitted)
}

impl PyFittedKauri {
    /// Moves the core's vectors into NumPy arrays; moves become their codes.
    fn new(py: Python<'_>, fitted: FittedKauri) -> PyResult<Py<Self>> {
        let nodes = fitted.nodes;
        let (tests, _) = PyTestArrays::new(py, nodes.arrays());
        let code = |kind: &Option<MoveKind>| match kind {
            None => -1i64,
            Some(MoveKind::Star) => 0,
            Some(MoveKind::DoubleStar) => 1,
            Some(MoveKind::Switch) => 2,
            Some(MoveKind::Reallocation) => 3,
            Some(MoveKind::Mixed) => 4,
        };
        let moves: Vec<i64> = fitted.kinds.iter().map(code).collect();
        let tree = PyFittedKauri {
            n_node_samples: integers(py, nodes.n_samples),
            weighted_n_node_samples: array(py, nodes.weight),
            cost: array(py, fitted.cost),
            cluster: integers(py, fitted.cluster),
            r#move: array(py, moves),
            gain: array(py, fitted.gain),
            objective: array(py, fitted.objective),
            leaf_of_row: array(py, nodes.leaf_of_row),
        };
        Py::new(py, (tree, tests))
    }
}
