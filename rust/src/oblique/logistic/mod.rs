//! Weighted logistic regression with an l1 penalty and a free bias: the problem at a node of an oblique tree.
//!
//! The bias is kept at its optimum throughout, so that what is minimised is a convex function of w alone:
//! F(w) = min_b sum_i weight_i log(1 + exp(-y_i (w . x_i + b))) + lambda sum_j penalty_j |w_j|.
//!
//! Proximal Newton steps over a working set (Friedman, Hastie, Tibshirani: Regularization Paths for Generalized Linear
//! Models via Coordinate Descent, 2010; Yuan, Ho, Lin: An Improved GLMNET for L1-regularized Logistic Regression,
//! 2012), with what makes them cheap here:
//! - *Working set.* The columns with a weight and those whose gradient exceeds their penalty; all columns are checked
//!   before every step, which takes one pass over the cells.
//! - *Curvature from a sample.* H = X' diag(h) X, centred because the bias is free, is formed from some of the rows,
//!   drawn in proportion to about their share in it (their leverage, so that a column with few cells keeps them;
//!   Drineas, Mahoney: RandNLA, 2016), and rescaled to its exact diagonal. Only the step is approximate: gradient, line
//!   search and stopping rule read all rows. A step that gains less than expected makes the next sample larger, up to
//!   all rows.
//! - *Quasi-Newton updates.* The slopes change along each step, and H is updated to match that change (BFGS). Steps
//!   by a model from a sample would else keep going wrong in the same directions.
//! - *Coordinate descent on H itself*: a sweep over k columns takes k^2 operations, however many rows there are.
//! - *Earlier solves.* A solve may start from the margins and the model that another one left on the same rows, or
//!   on nearly the same.
//!
//! | file | idea |
//! |---|---|
//! | `solver.rs` | steps, working set, line search, stopping |
//! | `curvature.rs`, `quadratic.rs` | the model of a step; its minimum |
//! | `loss.rs` | logistic loss with the best bias, and the dual |
//! | `design.rs`, `cells.rs`, `sums.rs` | the solver's copy of the rows, and the sums over it |
//!
//! Cost of a step: two passes over the cells of the rows, and the sample's products when H is made anew.

pub mod cells;
mod curvature;
pub mod design;
mod loss;
mod quadratic;
mod solver;
mod sums;

use std::borrow::Cow;
use std::sync::Arc;

use curvature::Curvature;
use design::{Design, DesignCells};
use loss::Targets;
use solver::Solver;

use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::Monitor;

/// minimise sum_i weight_i log(1 + exp(-y_i (w . x_i + b))) + lambda sum_j penalty_j |w_j| over w and b.
#[derive(Debug, Clone, Copy)]
pub struct LogisticProblem<'a> {
    /// The matrix.
    pub design: &'a Design,
    /// The rows that take part.
    pub rows: &'a [u32],
    /// For each of them whether y is +1 (to the right) rather than -1.
    pub sign: &'a [bool],
    /// For each of them its weight, at least 0.
    pub weight: &'a [f64],
    /// lambda, at least 0. Values that are next to nothing are raised to where w stays bounded.
    pub lambda: f64,
    /// Each column's share in the penalty, above 0; none: 1. With the columns' standard deviations, w is penalised as
    /// if the columns were standardised.
    pub penalty: Option<&'a [f64]>,
}

/// Weights to start from.
#[derive(Debug, Clone, Copy)]
pub struct StartWeights<'a> {
    /// Columns with their weights.
    pub weights: &'a [(u32, f64)],
    /// The bias.
    pub bias: f64,
}

/// The state a solve leaves for the next one on the same rows, whose labels, weights, lambda or penalties differ a
/// little: the point reached with its margins and slopes, each of which saves a pass over the cells, and the curvature,
/// which saves more. Where some rows were added or removed the curvature is still used; on other rows only the
/// weights are.
#[derive(Debug, Clone)]
pub struct SolverState {
    /// Of the matrix.
    identity: Arc<()>,
    /// The rows of the problem that have a weight.
    rows: Vec<u32>,
    /// Their labels and weights.
    targets: Targets,
    /// In the units of the stored cells.
    w: Vec<f64>,
    /// w . x, by row.
    margins: Vec<f64>,
    /// The best bias there.
    bias: f64,
    /// The slope of the loss, by column.
    gradient: Vec<f64>,
    /// The model of the last step.
    curvature: Option<Arc<Curvature>>,
    /// DesignCells cells of the rows.
    n_cells: usize,
}

impl SolverState {
    /// Whether there is a curvature, and no more numbers than the rows have cells: the states of many nodes may be
    /// held.
    pub(super) fn is_small(&self) -> bool {
        let by_column = 4 * self.w.len();
        let of_model = |model: &Arc<Curvature>| model.correlations.len() + by_column;
        self.curvature.as_ref().is_some_and(|model| of_model(model) <= self.n_cells)
    }
}

/// A start of a solve.
#[derive(Debug, Clone, Copy)]
pub enum StartPoint<'a> {
    /// From weights.
    Weights(&'a StartWeights<'a>),
    /// From where another solve ended.
    State(&'a SolverState),
    /// From w = 0, with the curvature that another solve left if that is about these rows.
    Curvature(&'a SolverState),
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolverOptions {
    /// How far the objective may be above its minimum, as a share of it. A solve ends when the next step, from the
    /// model of the objective over all columns that have a weight or should have one, would gain no more than that
    /// (the Newton decrement), or when the duality gap is no larger.
    pub tol: f64,
    /// Most Newton steps.
    pub max_iter: usize,
}

impl Default for SolverOptions {
    /// Steps to a ten-thousandth of the objective.
    fn default() -> Self {
        SolverOptions { tol: 1e-4, max_iter: 200 }
    }
}

/// A solved problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Columns in ascending order with their weights, none of them 0.
    pub weights: Vec<(u32, f64)>,
    /// The bias.
    pub bias: f64,
    /// The objective.
    pub objective: f64,
    /// Newton steps.
    pub n_iter: usize,
    /// What the next step would gain or the duality gap, whichever is less, as a share of the objective. At most `tol`
    /// unless `max_iter` or the precision of numbers ended the solve.
    pub gap: f64,
    /// The duality gap as a share of the objective: the objective is at most so far above its minimum, and usually
    /// far less.
    pub duality_gap: f64,
}

/// The bias where all rows are on one side, whose best one is infinite: the loss is then 2^-52 of the weight.
const ONE_SIDED_BIAS: f64 = 52.0 * std::f64::consts::LN_2;
/// Solves a problem. Without rows of positive weight w and b are 0; with all of them on one side w is 0 and b is +36.04
/// or -36.04, where log(1 + exp(-|b|)) is 2^-52. A start that is worse than w = 0 is not used. The result has the same
/// bits for every number of threads.
///
/// # Errors
/// [`Error::Shape`] if lengths disagree; [`Error::Value`] if a row or column is out of range, or a weight, `lambda`,
/// `penalty` or the start is not a finite number in its range; [`Error::Interrupted`] if the monitor was asked to stop.
pub fn solve(
    problem: &LogisticProblem<'_>,
    start: Option<&StartWeights<'_>>,
    options: SolverOptions,
    monitor: &Monitor,
) -> Result<Solution> {
    let from = start.map(StartPoint::Weights);
    solve_from(problem, from.as_slice(), options, monitor).map(|(solution, _)| solution)
}

/// Solves a problem as [`solve`] does, from the best of some weights and of what other solves left; returns what this
/// one leaves too.
///
/// # Errors
/// As [`solve`]; [`Error::Value`] if a state belongs to another matrix.
pub fn solve_from(
    problem: &LogisticProblem<'_>,
    from: &[StartPoint<'_>],
    options: SolverOptions,
    monitor: &Monitor,
) -> Result<(Solution, SolverState)> {
    check(problem, from)?;
    let (rows, targets, total) = targets(problem);
    let right = targets.0.iter().filter(|&&target| target > 0.0).count();
    if right == 0 || right == rows.len() {
        let bias = match (right, rows.len()) {
            (_, 0) => 0.0,
            (0, _) => -ONE_SIDED_BIAS,
            _ => ONE_SIDED_BIAS,
        };
        let objective = if rows.is_empty() { 0.0 } else { total * (-ONE_SIDED_BIAS).exp().ln_1p() };
        let weights = Vec::new();
        let solution = Solution { weights, bias, objective, n_iter: 0, gap: 0.0, duality_gap: 0.0 };
        let identity = problem.design.identity.clone();
        let w = vec![0.0; problem.design.n_columns()];
        let margins = memory::zeros(rows.len(), "the state of a node problem");
        let (rows, gradient) = (rows.into_owned(), w.clone());
        let (bias, curvature) = (0.0, None);
        let n_cells = 0;
        let state =
            SolverState { identity, rows, targets, w, margins, bias, gradient, curvature, n_cells };
        return Ok((solution, state));
    }
    match &problem.design.cells {
        DesignCells::F32(cells) => {
            Solver::new(cells, &rows, &targets, problem, total).solve(from, options, monitor)
        }
        DesignCells::F64(cells) => {
            Solver::new(cells, &rows, &targets, problem, total).solve(from, options, monitor)
        }
    }
}

/// Whether lengths agree and numbers are in their ranges.
fn check(problem: &LogisticProblem<'_>, from: &[StartPoint<'_>]) -> Result<()> {
    let LogisticProblem { design, rows, sign, weight, lambda, penalty } = *problem;
    Error::check_len("sign", sign.len(), rows.len(), "entries")?;
    Error::check_len("weight", weight.len(), rows.len(), "entries")?;
    let bad = |what: &str| Err(Error::Value(what.into()));
    if rows.iter().any(|&row| row as usize >= design.n_rows()) {
        return bad("A row is out of range.");
    }
    if !weight.iter().all(|w| (0.0..f64::INFINITY).contains(w)) {
        return bad("The weights must be finite and not negative.");
    }
    if !(0.0..f64::INFINITY).contains(&lambda) {
        return bad("lambda must be finite and not negative.");
    }
    if let Some(penalty) = penalty {
        Error::check_len("penalty", penalty.len(), design.n_columns(), "entries")?;
        if !penalty.iter().all(|p| *p > 0.0 && p.is_finite()) {
            return bad("The penalties must be finite and positive.");
        }
    }
    for origin in from {
        match origin {
            StartPoint::State(state) | StartPoint::Curvature(state) => {
                if !Arc::ptr_eq(&state.identity, &design.identity) {
                    return bad("The state belongs to another matrix.");
                }
            }
            StartPoint::Weights(start) => {
                if start.weights.iter().any(|&(j, _)| j as usize >= design.n_columns()) {
                    return bad("A column of the start is out of range.");
                }
                if !start.bias.is_finite() || start.weights.iter().any(|(_, w)| !w.is_finite()) {
                    return bad("The start must be finite.");
                }
            }
        }
    }
    Ok(())
}

/// The rows of positive weight, y_i weight_i as shares of the total weight, and the total.
fn targets<'a>(problem: &LogisticProblem<'a>) -> (Cow<'a, [u32]>, Targets, f64) {
    let LogisticProblem { rows, sign, weight, .. } = *problem;
    let largest = weight.iter().fold(0.0, |a: f64, &b| a.max(b));
    // Shares of the largest first: neither their sum nor their quotients overflow.
    let total: f64 = weight.iter().map(|w| w / largest).sum();
    let share = |w: f64| w / largest / total;
    let signed = sign.iter().zip(weight).map(|(&s, &w)| if s { share(w) } else { -share(w) });
    if weight.iter().all(|&w| share(w) > 0.0) {
        return (
            Cow::Borrowed(rows),
            Targets(memory::collected(signed, "the problem of a node")),
            total * largest,
        );
    }
    let mut kept = memory::reserved(rows.len(), "the problem of a node");
    let mut targets = memory::reserved(rows.len(), "the problem of a node");
    for (&row, target) in rows.iter().zip(signed).filter(|(_, target)| target.abs() > 0.0) {
        kept.push(row);
        targets.push(target);
    }
    (Cow::Owned(kept), Targets(targets), total * largest)
}
