//! Threshold trees: [`fit`] for any base and any criterion.
//!
//! Called by `_base/growth.py` for IMM, ExGreedy, ExShallow, ExKMC, the kernel trees, KMeansTree and SpExTree.
//!
//! | Python | core |
//! |---|---|
//! | None, `CentersBase`, `ShallowBase`, `SurrogateFeatures` | [`Base`] by [`BaseArgument`] |
//! | `LabelCost`, a name | [`GrowthCriterion`] by [`CriterionArgument`] |
//! | `FittedTree` | [`ThresholdFit`] |

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{matrix, optional, slice, slice2};
use super::kernel::SurrogateArgument;
use super::router::{BesideArrays, beside_arrays};
use super::rows::RowsArgument;
use super::run::{Jobs, run};
use super::tree::{Floats, Integers, PyTestArrays, array, integers};
use crate::criterion::centers::Centers;
use crate::criterion::cut_score::CutScore;
use crate::criterion::label_cost::CutKind;
use crate::fit::{Base, GrowthCriterion, ThresholdFit, ThresholdProblem, fit};
use crate::grow::Limits;
use crate::parallel::Monitor;
use crate::search::SearchOptions;
use crate::shallow::DepthPrice;

/// A fitted threshold tree: its tests, and what follows. Arrays have one entry per node, the root first, children after
/// their parents, where nothing else is said.
#[pyclass(frozen, get_all, extends = PyTestArrays, module = "treeclust_rs._core")]
pub struct FittedTree {
    /// Number of rows.
    n_node_samples: Integers,
    /// Weight of the rows.
    weighted_n_node_samples: Floats,
    /// Shape (n_nodes, k): weight of the rows of each reference label.
    label_weight: Py<PyArray2<f64>>,
    /// What the node costs as a leaf, in the criterion's unit.
    cost: Floats,
    /// Label as a leaf.
    cluster: Integers,
    /// Label as a leaf of the base tree; -1 at other nodes.
    base_cluster: Integers,
    /// What a leaf of the base costs under the base's label; 0 elsewhere.
    base_cost: Floats,
    /// Weight that the cut of a base node separates from its centers; NaN elsewhere.
    mistakes: Floats,
    /// Shape (n_samples,): node of each row's leaf.
    leaf_of_row: Py<PyArray1<u32>>,
    /// Leaves of the base tree, 0 without one.
    n_base_leaves: usize,
    /// Of Kernel IMM, by column: features without any cut although the column has some.
    skipped_features: Vec<usize>,
    /// The values beside cuts, as of `Router.values_beside`; None for sparse rows.
    beside: Option<BesideArrays>,
}

impl FittedTree {
    /// Moves the core's vectors into NumPy arrays. `k`: number of labels.
    fn new(py: Python<'_>, fitted: ThresholdFit, k: usize) -> PyResult<Py<Self>> {
        let nodes = fitted.nodes;
        let (tests, _) = PyTestArrays::new(py, nodes.arrays());
        let base_cluster = fitted.base_cluster.iter().map(|c| c.map_or(-1, |c| c as i64));
        let tree = FittedTree {
            n_node_samples: integers(py, nodes.n_samples),
            weighted_n_node_samples: array(py, nodes.weight),
            label_weight: matrix(py, fitted.label_weight, k)?.unbind(),
            cost: array(py, fitted.cost),
            cluster: integers(py, fitted.cluster),
            base_cluster: array(py, base_cluster.collect()),
            base_cost: array(py, fitted.base_cost),
            mistakes: array(py, fitted.mistakes),
            leaf_of_row: array(py, nodes.leaf_of_row),
            n_base_leaves: fitted.n_base_leaves,
            skipped_features: fitted.skipped_features,
            beside: fitted.beside.map(|beside| beside_arrays(py, beside)),
        };
        Py::new(py, (tree, tests))
    }
}

/// The base of a threshold tree: the tuple (centers, low parts of the centers, cut score) for IMM, with centers (k x
/// encoded columns) in the columns' own units as unevaluated sums and the score "mistakes" or "emn", or "cost" for ExGreedy; the tuple
/// (centers, low parts, least cost of every row, depth factor) for ExShallow; surrogate features for Kernel IMM.
#[derive(FromPyObject)]
pub enum BaseArgument<'py> {
    /// [`Base::Imm`] or [`Base::Greedy`].
    Imm(PyReadonlyArray2<'py, f64>, PyReadonlyArray2<'py, f64>, String),
    /// [`Base::Greedy`] with a price of depth.
    Shallow(
        PyReadonlyArray2<'py, f64>,
        PyReadonlyArray2<'py, f64>,
        PyReadonlyArray1<'py, f64>,
        f64,
    ),
    /// [`Base::KernelImm`].
    #[pyo3(transparent)]
    KernelImm(SurrogateArgument<'py>),
}

/// The criterion of growth: the tuple (regrets (n x k) or None, whether cuts are intervals) for the label cost; "gini",
/// "entropy" or "clique" for the counts of reference labels.
#[derive(FromPyObject)]
pub enum CriterionArgument<'py> {
    /// [`GrowthCriterion::LabelCost`].
    LabelCost(Option<PyReadonlyArray2<'py, f64>>, bool),
    /// The others.
    #[pyo3(transparent)]
    LabelCounts(String),
}

impl CriterionArgument<'_> {
    /// Returns the criterion as the core takes it.
    ///
    /// # Errors
    /// `ValueError` for any other name.
    fn read(&self) -> PyResult<GrowthCriterion<'_>> {
        match self {
            CriterionArgument::LabelCost(regrets, interval) => Ok(GrowthCriterion::LabelCost {
                regrets: regrets.as_ref().map(slice2).transpose()?,
                cuts: if *interval { CutKind::Interval } else { CutKind::Threshold },
            }),
            CriterionArgument::LabelCounts(name) => match name.as_str() {
                "gini" => Ok(GrowthCriterion::Gini),
                "entropy" => Ok(GrowthCriterion::Entropy),
                "clique" => Ok(GrowthCriterion::Clique),
                _ => Err(PyValueError::new_err(format!("There is no criterion {name:?}."))),
            },
        }
    }
}

/// Returns what IMM judges a cut by.
///
/// # Errors
/// `ValueError` for any other name.
pub(super) fn cut_score(name: &str) -> PyResult<CutScore> {
    match name {
        "mistakes" => Ok(CutScore::Mistakes),
        "emn" => Ok(CutScore::Emn),
        _ => Err(PyValueError::new_err(format!("There is no cut score {name:?}."))),
    }
}

/// Fits a threshold or interval tree to `rows` (n x d, a table or a sparse matrix) with `labels` in `[0, n_labels)`: [`fit`].
/// `base`: None for a single leaf. `sample_weight`: positive, one per row; None: 1 each. `progress(n_leaves, gain)` is
/// called twice a second. `search` = (most bins, rows sorted directly) is for tests: it changes the speed, never the
/// tree.
///
/// # Errors
/// `ValueError` if sizes disagree, a label is out of range, a name is unknown, or Kernel IMM's features cannot tell two
/// clusters apart; `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (rows, labels, *, n_labels, base, criterion, sample_weight, max_leaves, max_depth,
                    min_samples_leaf, n_jobs, progress, search=None))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_tree(
    py: Python<'_>,
    rows: RowsArgument<'_>,
    labels: PyReadonlyArray1<'_, u32>,
    n_labels: usize,
    base: Option<BaseArgument<'_>>,
    criterion: CriterionArgument<'_>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    max_leaves: usize,
    max_depth: Option<usize>,
    min_samples_leaf: usize,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
    search: Option<(usize, usize)>,
) -> PyResult<Py<FittedTree>> {
    let parts = match &base {
        Some(BaseArgument::KernelImm(surrogate)) => Some(surrogate.parts()?),
        _ => None,
    };
    let base = match (&base, &parts) {
        (Some(BaseArgument::Imm(high, low, score)), _) => {
            let centers = Centers { high: slice2(high)?, low: slice2(low)? };
            match score.as_str() {
                "cost" => Base::Greedy { centers, depth: None },
                name => Base::Imm { centers, score: cut_score(name)? },
            }
        }
        (Some(BaseArgument::Shallow(high, low, least_costs, factor)), _) => {
            let centers = Centers { high: slice2(high)?, low: slice2(low)? };
            let (least_costs, weights) = (slice(least_costs)?, optional(&sample_weight)?);
            let depth = DepthPrice { factor: *factor, least_costs, weights };
            Base::Greedy { centers, depth: Some(depth) }
        }
        (_, Some(parts)) => Base::KernelImm(parts.spec()),
        _ => Base::Leaf,
    };
    let problem = ThresholdProblem {
        labels: slice(&labels)?,
        k: n_labels,
        weights: optional(&sample_weight)?,
        base,
        criterion: criterion.read()?,
        limits: Limits { max_leaves, max_depth, min_samples_leaf },
        search: search.map_or_else(SearchOptions::default, |(max_bins, direct)| SearchOptions {
            max_bins,
            direct,
        }),
    };
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let rows = data.rows()?;
    let fitted = run(py, &n_jobs, &monitor, progress, || fit(rows, &problem, &monitor))?;
    FittedTree::new(py, fitted, n_labels)
}
