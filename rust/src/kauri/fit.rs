//! Kauri: a binary tree grown by the gain of a kernel k-means objective.
//!
//! End-to-end training of unsupervised trees: Kauri and Douglas (Ohl et al.), section 3, appendix D, algorithm 2. The
//! tree maximises
//!
//! L = sum over the clusters c of S(C_c, C_c) / |C_c|,
//!
//! where the kernel stock S(A, B) (the paper's sigma) adds up w_i w_j k(i, j) over two sets of rows. The kernel k-means
//! cost is the kernel's trace less L.
//!
//! | paper | here |
//! |---|---|
//! | K_max, L_max, d_max | [`KauriProblem::max_clusters`], `limits.max_leaves`, [`KauriProblem::max_features`] |
//! | L after each split | [`FittedKauri::objective`] |
//! | Delta L of a split | [`FittedKauri::gain`] |
//!
//! Departures from the paper: gains follow its definitions where equations 8, 31, 36, 41 and 52 are misprinted, and
//! [`KauriProblem::all_moves`] adds a fifth move.

use super::features::{LevelFeatures, RowFeatures};
use super::growth::Growth;
use super::kernel::Kernel;
use super::moves::MoveKind;
use crate::error::{Error, Result};
use crate::grow::{FittedNodes, Limits};
use crate::parallel::Monitor;
use crate::rows::Rows;

/// What a Kauri tree is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct KauriProblem<'a> {
    /// The kernel of the rows.
    pub kernel: Kernel<'a>,
    /// Features of the kernel beside its matrix: those of levels.
    pub levels: &'a [LevelFeatures<'a>],
    /// Row weights, positive, of shape (n); none: all 1.
    pub weights: Option<&'a [f64]>,
    /// Most clusters, at least 1.
    pub max_clusters: usize,
    /// Limits of growth.
    pub limits: Limits,
    /// Fewest rows of a leaf that is split.
    pub min_samples_split: usize,
    /// Number of columns that are searched at a leaf, drawn among those that vary there.
    pub max_features: usize,
    /// Seed of these draws.
    pub seed: u64,
    /// Whether one side may become a new cluster while the other goes to an existing one ([`MoveKind::Mixed`]).
    pub all_moves: bool,
}

/// A fitted tree. Entries by node id, children after their parents, unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedKauri {
    /// Tests, children and rows.
    pub nodes: FittedNodes,
    /// Kernel k-means cost of the node as one cluster.
    pub cost: Vec<f64>,
    /// The cluster of the node when it was made.
    pub cluster: Vec<usize>,
    /// The move of the node's split; none at leaves.
    pub kinds: Vec<Option<MoveKind>>,
    /// The gain of the split, in units of the objective; NaN at leaves.
    pub gain: Vec<f64>,
    /// The objective before the first and after every split, from the clusters' stocks. Entries by number of leaves.
    pub objective: Vec<f64>,
}

/// Fits a tree to rows (algorithm 2): each round makes the move of largest gain over all leaves,
/// columns, cuts and moves, until none gains.
///
/// A round costs O(n d) per cluster that changed, and O(n rank) for the stocks of rows and clusters, or O(n moved) with
/// a Gram matrix. Of sparse rows, which go with [`Kernel::Sparse`], both are O(stored cells), and the tree is that of the
/// same rows as a table, up to ties that rounding decides.
///
/// # Errors
/// [`Error::Shape`] if sizes disagree, [`Error::Value`] if stocks overflow, a Gram matrix comes with columns of levels, or
/// only one of rows and kernel is sparse, [`Error::Interrupted`] if the monitor was stopped.
pub fn fit<'a, 't: 'a>(
    rows: impl Into<Rows<'a, 't>>,
    problem: &KauriProblem<'_>,
    monitor: &Monitor,
) -> Result<FittedKauri> {
    let rows = rows.into();
    let n = rows.n_samples();
    problem.kernel.check(n)?;
    if let Some(weights) = problem.weights {
        Error::check_len("weights", weights.len(), n, "rows")?;
    }
    let n_levels = |feature: usize| match rows {
        Rows::Table(table) => table.n_levels(feature),
        Rows::Sparse(_) => None,
    };
    if matches!(rows, Rows::Sparse(_)) != matches!(problem.kernel, Kernel::Sparse(_)) {
        return Err(not_both_sparse());
    }
    for level in problem.levels {
        let n_levels = n_levels(level.column).unwrap_or(0);
        Error::check_len("The features of a column", level.means.len(), n_levels, "levels")?;
    }
    let has_levels = (0..rows.n_features()).any(|feature| n_levels(feature).is_some());
    if has_levels && matches!(problem.kernel, Kernel::Gram { .. }) {
        return Err(Error::Value("Columns of levels need features of the kernel.".into()));
    }
    let features = RowFeatures::new(rows, problem.kernel, problem.levels);
    let mut growth = Growth::new(rows, problem, &features, monitor)?;
    let mut objective = vec![growth.objective()];
    while let Some(split) = growth.next_split()? {
        growth.split(&split)?;
        objective.push(growth.objective());
        monitor.report(objective.len(), split.gain);
    }
    Ok(growth.finish(objective))
}

/// The error of sparse rows without a sparse kernel, or the reverse.
pub(super) fn not_both_sparse() -> Error {
    Error::Value("Sparse rows and sparse features of the kernel go together.".into())
}
