//! Fitting threshold trees.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{TableArgument, matrix, optional, slice, slice2};
use super::kernel::SurrogateArgument;
use super::run::{Jobs, run};
use super::tree::{Floats, Integers, PyTestArrays, array, integers};
use crate::criterion::centers::Centers;
use crate::criterion::cut_score::CutScore;
use crate::criterion::label_cost::CutKind;
use crate::fit::{Base, GrowthCriterion, ThresholdFit, ThresholdProblem, fit};
use crate::grow::Limits;
use crate::parallel::Monitor;
use crate::search::SearchOptions;

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
}

impl FittedTree {
    /// `k`: number of labels.
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
        };
        Py::new(py, (tree, tests))
    }
}

/// What IMM judges a cut by, by name.
fn cut_score(name: &str) -> PyResult<CutScore> {
    match name {
        "mistakes" => Ok(CutScore::Mistakes),
        "emn" => Ok(CutScore::Emn),
        _ => Err(PyValueError::new_err(format!(
            "The cut score must be 'mistakes' or 'emn'. Got {name:?} instead."
        ))),
    }
}

/// What growth after the base judges a cut by, by name. `cuts`: of the label cost, the only one with interval cuts.
fn growth_criterion<'a>(
    name: &str,
    regrets: Option<&'a [f64]>,
    cuts: CutKind,
) -> PyResult<GrowthCriterion<'a>> {
    if name != "label_cost" && cuts == CutKind::Interval {
        return Err(PyValueError::new_err("Interval cuts need the criterion 'label_cost'."));
    }
    match (name, regrets) {
        ("label_cost", Some(regrets)) => Ok(GrowthCriterion::LabelCost { regrets, cuts }),
        ("label_cost", None) => {
            Err(PyValueError::new_err("The criterion 'label_cost' needs regrets."))
        }
        ("gini", _) => Ok(GrowthCriterion::Gini),
        ("entropy", _) => Ok(GrowthCriterion::Entropy),
        ("clique", _) => Ok(GrowthCriterion::Clique),
        _ => Err(PyValueError::new_err(format!(
            "The criterion must be 'label_cost', 'gini', 'entropy' or 'clique'. Got {name:?} instead."
        ))),
    }
}

/// Fits a threshold or interval tree. `regrets` (n x k) may be None where the criterion does not need them.
/// `search` = (most bins, rows sorted directly) is for tests: it changes the speed, never the tree.
#[pyfunction]
#[pyo3(signature = (table, regrets, labels, *, base_centers, base_centers_low, sample_weight, interval,
                    max_leaves, max_depth, min_samples_leaf, n_jobs, progress, search=None, surrogate=None,
                    cut_score="mistakes", criterion="label_cost", n_labels=None))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_tree(
    py: Python<'_>,
    table: TableArgument<'_>,
    regrets: Option<PyReadonlyArray2<'_, f64>>,
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
    cut_score: &str,
    criterion: &str,
    n_labels: Option<usize>,
) -> PyResult<Py<FittedTree>> {
    let table = table.table()?;
    let labels = slice(&labels)?;
    let high = base_centers.as_ref().map(slice2).transpose()?;
    let low = base_centers_low.as_ref().map(slice2).transpose()?;
    let parts = surrogate.as_ref().map(SurrogateArgument::parts).transpose()?;
    let score = self::cut_score(cut_score)?;
    let base = match (high.zip(low), &parts) {
        (None, None) => Base::Leaf,
        (Some((high, low)), None) => Base::Imm { centers: Centers { high, low }, score },
        (None, Some(parts)) => Base::KernelImm(parts.spec()),
        _ => return Err(PyValueError::new_err("Give either centers or surrogate features.")),
    };
    if score != CutScore::Mistakes && !matches!(base, Base::Imm { .. }) {
        return Err(PyValueError::new_err(format!("The cut score {cut_score:?} needs centers.")));
    }
    let cuts = if interval { CutKind::Interval } else { CutKind::Threshold };
    let values = regrets.as_ref().map(slice2).transpose()?;
    let in_labels = || labels.iter().max().map_or(0, |&label| label as usize + 1);
    let k = match (n_labels, &regrets, &base_centers) {
        (Some(n_labels), _, _) => n_labels,
        (None, Some(regrets), _) => regrets.as_array().ncols(),
        (None, None, Some(centers)) => centers.as_array().nrows(),
        (None, None, None) => in_labels(),
    };
    let problem = ThresholdProblem {
        labels,
        k,
        weights: optional(&sample_weight)?,
        base,
        criterion: growth_criterion(criterion, values, cuts)?,
        limits: Limits { max_leaves, max_depth, min_samples_leaf },
        search: search.map_or_else(SearchOptions::default, |(max_bins, direct)| SearchOptions {
            max_bins,
            direct,
        }),
    };
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let fitted = run(py, &n_jobs, &monitor, progress, || fit(&table, &problem, &monitor))?;
    FittedTree::new(py, fitted, k)
}
