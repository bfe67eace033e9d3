//! An ObliqueTree from documented options: the defaults, the first tree, and how the solvers are run.
//!
//! [`fit_tree`] is the whole estimator but for the free clustering, which is given: it makes the first tree, the index
//! or the solver's copy of the rows, and runs the direct solver ([`direct`]) or the path ([`path`]). Cost of a round:
//! O(n d) a level of the tree beside the node problems.

use super::draft::DraftTree;
use super::fit::{ClusterProblem, ObliqueFit, direct};
use super::geometry::{Distance, Geometry};
use super::initial::{self, FirstTree};
use super::logistic::SolverOptions;
use super::logistic::design::Design;
use super::path::{Schedule, path};
use super::splits::Splits;
use crate::costs::Units;
use crate::error::{Error, Result};
use crate::index::{Index, MAX_BINS};
use crate::parallel::Monitor;
use crate::rows::Rows;
use crate::tree::Test;

/// TAO iterations on the free clustering's labels before anything else (the paper's I = 20).
const PASSES_ON_FREE_LABELS: usize = 20;
/// TAO iterations in a round of the direct solver.
const PASSES_DIRECT: usize = 3;
/// TAO iterations for a value of mu.
const PASSES_PATH: usize = 5;
/// A round of the direct solver that lowers the objective by a smaller share is the last.
const MIN_GAIN: f64 = 1e-4;
/// Sweeps over the weights of a test.
const SWEEPS: usize = 2;
/// Precision and most Newton steps of the node problems.
const SOLVER: SolverOptions = SolverOptions { tol: 1e-3, max_iter: 100 };

/// The free clustering that a fit starts from, and which its costs are compared with.
#[derive(Debug, Clone, Copy)]
pub struct FreeClustering<'a> {
    /// A label per row.
    pub labels: &'a [u32],
    /// Centers, k x d, row-major, in units; of length 1 for cosine.
    pub centers: &'a [f64],
}

/// The options of a fit; the defaults are those of the estimator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObliqueOptions {
    /// The price of a unit of weight, or of a threshold test: the paper's lambda, at least 0.
    pub alpha: f64,
    /// Depth of the first tree and of the deepest leaf made later. A tree that is given keeps its own.
    pub max_depth: usize,
    /// Whether tests are thresholds; else oblique.
    pub axis: bool,
    /// The distance of rows to centers.
    pub distance: Distance,
    /// The first tree, unless one is given or tests are thresholds: those grow from one leaf.
    pub first: FirstTree,
    /// The values of mu of the path; none: the direct solver.
    pub schedule: Option<Schedule>,
    /// Most rounds of the direct solver, and of `relax`.
    pub max_iter: usize,
    /// Whether to end with rounds that lower the cost alone, on the columns that the tests then have.
    pub relax: bool,
    /// Seed of the first tree.
    pub seed: u64,
}

impl Default for ObliqueOptions {
    /// The defaults of the estimator.
    fn default() -> Self {
        ObliqueOptions {
            alpha: 1.0,
            max_depth: 4,
            axis: false,
            distance: Distance::Euclidean,
            first: FirstTree::Bisecting,
            schedule: None,
            max_iter: 100,
            relax: false,
            seed: 0,
        }
    }
}

/// How a fit is run, in full.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The paper's lambda.
    pub lambda: f64,
    /// Deepest leaf that is made.
    pub max_depth: usize,
    /// Most leaves that are made.
    pub max_leaves: usize,
    /// Whether the first tree's labels are to be kept: its clusters are then where the descent starts, and the direct
    /// solver never makes their cost more. Else the first tree is fitted to the free clustering's labels.
    pub keep_labels: bool,
    /// TAO iterations on the free labels before anything else.
    pub n_first: usize,
    /// TAO iterations between two updates of the centers.
    pub n_passes: usize,
    /// Most rounds.
    pub max_iter: usize,
    /// A round that lowers the objective by a smaller share is the last.
    pub tol: f64,
    /// Sweeps over the weights of a test, once the logistic problems alone make no more progress.
    pub n_sweeps: usize,
    /// Whether to end with a descent on E alone, on the columns that the tests then have.
    pub relax: bool,
    /// Of the logistic problems.
    pub solver: SolverOptions,
}

impl Plan {
    /// The plan for some options. A `given` tree keeps its labels, its depth and its number of leaves.
    pub fn new(options: &ObliqueOptions, given: Option<&DraftTree>) -> Self {
        Plan {
            lambda: options.alpha,
            max_depth: given.map_or(options.max_depth, DraftTree::max_depth),
            max_leaves: given.map_or(usize::MAX, DraftTree::n_leaves),
            keep_labels: given.is_some(),
            n_first: PASSES_ON_FREE_LABELS,
            n_passes: if options.schedule.is_some() { PASSES_PATH } else { PASSES_DIRECT },
            max_iter: options.max_iter,
            tol: MIN_GAIN,
            n_sweeps: SWEEPS,
            relax: options.relax,
            solver: SOLVER,
        }
    }
}

/// Fits a tree to rows (n x d) with weights, all positive, from the free clustering or from a `given` tree. The result
/// has the same bits for every number of threads.
///
/// # Errors
/// [`Error::Shape`] if lengths disagree; [`Error::Value`] if a label, or the label of a leaf, has no center, or sparse
/// rows come with thresholds or the Euclidean distance, or distances overflow; [`Error::Tree`] if the given tree tests
/// a column that the rows do not have; [`Error::Interrupted`] if the monitor was asked to stop.
pub fn fit_tree(
    rows: Rows<'_, '_>,
    units: &Units,
    weights: Option<&[f64]>,
    free: FreeClustering<'_>,
    given: Option<DraftTree>,
    options: &ObliqueOptions,
    monitor: &Monitor,
) -> Result<ObliqueFit> {
    let ObliqueOptions { axis, schedule, max_depth, seed, first, .. } = *options;
    if let Some(weights) = weights {
        Error::check_len("sample_weight", weights.len(), rows.n_samples(), "rows")?;
    }
    if let Some(tree) = &given {
        check_columns(tree, rows.n_features())?;
    }
    let geometry = Geometry::new(rows, units, options.distance)?;
    let plan = Plan::new(options, given.as_ref());
    let start = match given {
        Some(tree) => tree,
        None if axis => DraftTree::leaf(0),
        None => initial::tree(&geometry, weights, first, max_depth, seed, monitor)?,
    };
    let FreeClustering { labels, centers } = free;
    let fit = |splits| {
        let problem = ClusterProblem { geometry: &geometry, splits, weights, labels, centers };
        match &schedule {
            Some(schedule) => path(&problem, start, &plan, schedule, monitor),
            None => direct(&problem, start, &plan, monitor),
        }
    };
    match rows {
        Rows::Table(table) if axis => {
            let index = Index::new(table, MAX_BINS);
            monitor.check()?;
            fit(Splits::Axis { table, index: &index })
        }
        Rows::Sparse(_) if axis => Err(Error::Value("Thresholds need dense rows.".into())),
        _ => {
            let design = Design::from_rows(rows)?;
            monitor.check()?;
            let shares = units.scale.iter().any(|s| *s != 1.0).then_some(&units.scale[..]);
            fit(Splits::Oblique { rows, design: &design, shares })
        }
    }
}

/// Whether the rows have all columns that a tree tests.
fn check_columns(tree: &DraftTree, n_features: usize) -> Result<()> {
    let last = |test: &Test| {
        let of_plane = |plane: &crate::tree::Plane| plane.weights.last().map(|w| w.0 as usize);
        test.feature().or(test.plane().and_then(of_plane))
    };
    match tree.tests(0).into_iter().filter_map(last).max() {
        Some(column) if column >= n_features => Err(Error::Tree(format!(
            "it uses column {column}, but the table has {n_features} columns."
        ))),
        _ => Ok(()),
    }
}
