//! Weighted logistic regression with an l1 penalty and a free bias: the problem at a node of an oblique tree.
//!
//! The bias is kept at its optimum throughout, so that what is minimised is a convex function of w alone:
//! F(w) = min_b sum_i weight_i log(1 + exp(-y_i (w . x_i + b))) + lambda sum_j penalty_j |w_j|.
//!
//! Proximal Newton steps over a working set (Friedman, Hastie, Tibshirani: Regularization Paths for Generalized Linear
//! Models via Coordinate Descent, 2010; Yuan, Ho, Lin: An Improved GLMNET for L1-regularized Logistic Regression,
//! 2012), with what makes them cheap here:
//! - *Working set.* The columns with a weight and those whose gradient exceeds their penalty; all columns are looked
//!   at before every step, which takes one pass over the cells.
//! - *Curvature from a sample.* H = X' diag(h) X, centred because the bias is free, is formed from some of the rows,
//!   drawn in proportion to about their share in it (their leverage, so that a column with few cells keeps them;
//!   Drineas, Mahoney: RandNLA, 2016), and rescaled to its exact diagonal. It is the step that is approximate, not what is
//!   minimised: gradient, line search and stopping rule read all rows. A step that gains less than expected makes the
//!   next sample larger, up to all rows.
//! - *A model that learns.* Each step tells how the slopes change along it, and H is made to say the same (BFGS). Steps
//!   by a model from a sample would else keep going wrong in the same directions.
//! - *Coordinate descent on H itself*: a sweep over k columns takes k^2 operations, however many rows there are.
//! - *What was known.* A solve may start from the margins and the model that another one left on the same rows, or
//!   on nearly the same.
//!
//! Cost of a step: two passes over the cells of the rows, and the sample's products when H is made anew.

use std::borrow::Cow;
use std::sync::Arc;

use super::cells::{Cell, Cells, Chosen};
use super::design::{Design, Scale, Stored};
use super::loss::{State, Targets};
use super::quadratic::Model;
use crate::error::{Error, Result};
use crate::parallel::Monitor;

/// minimise sum_i weight_i log(1 + exp(-y_i (w . x_i + b))) + lambda sum_j penalty_j |w_j| over w and b.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
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
pub struct Start<'a> {
    /// Columns with their weights.
    pub weights: &'a [(u32, f64)],
    /// The bias.
    pub bias: f64,
}

/// What a solve leaves for the next one on the same rows, whose labels, weights, lambda or penalties differ a little:
/// the point reached with its margins and slopes, each of which saves a pass over the cells, and the curvature, which
/// saves more. Where some rows have come or gone the curvature serves all the same; on other rows it is worth its
/// weights.
#[derive(Debug, Clone)]
pub struct Kept {
    identity: Arc<()>,
    rows: Vec<u32>,
    targets: Targets,
    /// In the units of the stored cells.
    w: Vec<f64>,
    margins: Vec<f64>,
    bias: f64,
    gradient: Vec<f64>,
    curvature: Option<Arc<Curvature>>,
    n_cells: usize,
}

impl Kept {
    /// Whether there is a curvature, and no more numbers than the rows have cells: many nodes may be remembered.
    pub(super) fn is_worth_its_room(&self) -> bool {
        let by_column = 4 * self.w.len();
        let of_model = |model: &Arc<Curvature>| model.correlations.len() + by_column;
        self.curvature.as_ref().is_some_and(|model| of_model(model) <= self.n_cells)
    }
}

/// Where to start.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// From weights.
    Weights(&'a Start<'a>),
    /// From where another solve ended.
    Kept(&'a Kept),
    /// From nowhere of its own, but with the curvature that another solve left, if it serves.
    Curvature(&'a Kept),
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How far the objective may be above its minimum, as a share of it. A solve ends when the next step, from the
    /// model of the objective over all columns that have a weight or should have one, would gain no more than that
    /// (the Newton decrement), or when the duality gap is no larger.
    pub tol: f64,
    /// Most Newton steps.
    pub max_iter: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { tol: 1e-4, max_iter: 200 }
    }
}

/// What was found.
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
/// Least lambda per unit of weight, for columns within [-1, 1].
const LEAST_LAMBDA: f64 = 1e-12;
/// No tolerance is smaller: sums of numbers are no better.
const LEAST_TOL: f64 = 1e-13;
/// Columns without a weight whose gradient is at this share of their penalty are in the working set too: a step may
/// bring them in.
const NEAR: f64 = 0.9;
/// Columns that a step may add, unless as many have a weight: as many as there are rows, which is enough for any
/// solution, between these two. And the largest working set.
const ADDED: [usize; 2] = [100, 1000];
const MOST_COLUMNS: usize = 4096;
/// Rows drawn per column of the working set; those where the last step gained more than `FAR` of the objective, so
/// that the model does not hold for long anyway, and at the first step from nothing; and the least ones.
const ROWS_PER_COLUMN: usize = 6;
const ROWS_PER_COLUMN_FAR: usize = 3;
const FAR: f64 = 0.1;
const LEAST_ROWS: usize = 2000;
/// A step must leave at most this share of the last step's gain to be gained, else H is made anew.
const PROGRESS: f64 = 0.3;
/// What is left to gain is taken to be at least so many times what a step promises: a model may promise too little,
/// most of all one from another solve that has taken no step in this one.
const TRIED: f64 = 1.1;
const UNTRIED: f64 = 1.5;
/// Above this share the sample was too small.
const SLOW: f64 = 0.5;
/// The rows' curvatures may have changed by this share of their sum, else H is made anew.
const STALE: f64 = 0.25;
/// Share of a step's gain that may be left to gain by the model, where H comes from all rows and where from a sample,
/// which is not worth more.
const PRECISION: [f64; 2] = [0.01, 0.1];
/// Share of the rows whose targets may differ from those of a solve before, for its slopes to be of use; and of those
/// that may have come or gone since, for its curvature to be.
const CHANGED: f64 = 0.1;
/// Share of the columns of the working set that H need not hold.
const OTHERS: f64 = 0.1;
/// Added to the unit diagonal of H where it comes from a sample, so that columns not met together cannot run away.
const RIDGE: f64 = 1e-3;
/// A column whose variance at the node is at most this share of its mean square counts as constant.
const LEAST_SPREAD: f64 = 1e-12;
/// A model learns from a step along which the slopes change by at least this share of what it says; its own
/// curvatures fall to no less at once.
const LEAST_BEND: f64 = 1e-3;
/// Halvings of a step.
const HALVINGS: usize = 40;
/// Share of the promised gain that a step must keep.
const KEPT: f64 = 0.01;

/// Solves a problem. Without rows of positive weight w and b are 0; with all of them on one side w is 0 and b is
/// +36.04 or -36.04, where log(1 + exp(-|b|)) is 2^-52. A start that is worse than w = 0 is not used. The result has the
/// same bits for every number of threads.
///
/// # Errors
/// [`Error::Shape`] if lengths disagree; [`Error::Value`] if a row or column is out of range, or a weight, `lambda`,
/// `penalty` or the start is not a finite number in its range; [`Error::Interrupted`] when the monitor says so.
pub fn solve(
    problem: &Problem<'_>,
    start: Option<&Start<'_>>,
    options: Options,
    monitor: &Monitor,
) -> Result<Solution> {
    let from = start.map(Origin::Weights);
    solve_from(problem, from.as_slice(), options, monitor).map(|(solution, _)| solution)
}

/// Solves a problem as [`solve`] does, from the best of some weights and of what other solves left; returns what this
/// one leaves too.
///
/// # Errors
/// As [`solve`]; [`Error::Value`] if what was kept belongs to another matrix.
pub fn solve_from(
    problem: &Problem<'_>,
    from: &[Origin<'_>],
    options: Options,
    monitor: &Monitor,
) -> Result<(Solution, Kept)> {
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
        let (w, margins) = (vec![0.0; problem.design.n_columns()], vec![0.0; rows.len()]);
        let (rows, gradient) = (rows.into_owned(), w.clone());
        let (bias, curvature) = (0.0, None);
        let n_cells = 0;
        let kept = Kept { identity, rows, targets, w, margins, bias, gradient, curvature, n_cells };
        return Ok((solution, kept));
    }
    match &problem.design.stored {
        Stored::F32(cells) => {
            Solver::new(cells, &rows, &targets, problem, total).solve(from, options, monitor)
        }
        Stored::F64(cells) => {
            Solver::new(cells, &rows, &targets, problem, total).solve(from, options, monitor)
        }
    }
}

fn check(problem: &Problem<'_>, from: &[Origin<'_>]) -> Result<()> {
    let Problem { design, rows, sign, weight, lambda, penalty } = *problem;
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
            Origin::Kept(kept) | Origin::Curvature(kept) => {
                if !Arc::ptr_eq(&kept.identity, &design.identity) {
                    return bad("What was kept belongs to another matrix.");
                }
            }
            Origin::Weights(start) => {
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
fn targets<'a>(problem: &Problem<'a>) -> (Cow<'a, [u32]>, Targets, f64) {
    let Problem { rows, sign, weight, .. } = *problem;
    let largest = weight.iter().fold(0.0, |a: f64, &b| a.max(b));
    // Shares of the largest first: neither their sum nor their quotients overflow.
    let total: f64 = weight.iter().map(|w| w / largest).sum();
    let share = |w: f64| w / largest / total;
    let signed = sign.iter().zip(weight).map(|(&s, &w)| if s { share(w) } else { -share(w) });
    if weight.iter().all(|&w| share(w) > 0.0) {
        return (Cow::Borrowed(rows), Targets(signed.collect()), total * largest);
    }
    let kept = rows.iter().copied().zip(signed).filter(|(_, target)| target.abs() > 0.0);
    let (rows, signed): (Vec<u32>, Vec<f64>) = kept.unzip();
    (Cow::Owned(rows), Targets(signed), total * largest)
}

/// A problem in the units of the stored cells, the weights adding up to 1.
struct Solver<'a, V: Cell> {
    cells: &'a Cells<V>,
    chosen: Chosen<'a, V>,
    rows: &'a [u32],
    targets: &'a Targets,
    design: &'a Design,
    /// By column, for weights in the units of the stored cells.
    lambda: Vec<f64>,
    /// lambda and the columns' shares in it as given.
    strength: f64,
    penalty: Option<&'a [f64]>,
    /// The sum of the weights.
    total: f64,
    n_cells: usize,
    most_columns: usize,
}

/// A point with all that is known of it.
struct Point {
    w: Vec<f64>,
    margins: Vec<f64>,
    state: State,
    objective: f64,
}

/// The slopes of the loss where another solve ended.
struct KeptSlopes {
    gradient: Vec<f64>,
    /// Whether they are those of this problem, or only about those.
    exact: bool,
}

/// The columns of the next step.
struct WorkingSet {
    /// The columns that have a weight or should have one.
    needed: Vec<usize>,
    /// Those and the ones close to it.
    all: Vec<usize>,
    /// Columns that have a weight or should have one, per column that is `needed`: 1 unless there are too many.
    left_out: f64,
}

/// A step of the quadratic model.
struct Step {
    /// Columns with their new weights.
    to: Vec<(usize, f64)>,
    /// About by how much the margins' weighted mean changes.
    shift: f64,
    /// By how much the model says that the objective falls.
    gain: f64,
}

impl<'a, V: Cell> Solver<'a, V> {
    fn new(
        cells: &'a Cells<V>,
        rows: &'a [u32],
        targets: &'a Targets,
        problem: &Problem<'a>,
        total: f64,
    ) -> Self {
        let design = problem.design;
        let lambda = problem.lambda / total;
        let of_column = |(j, scale): (usize, &Scale)| {
            let share = problem.penalty.map_or(1.0, |penalty| penalty[j]);
            (lambda * share / scale.unit).max(LEAST_LAMBDA)
        };
        let lambda = design.scales.iter().enumerate().map(of_column).collect();
        let chosen = Chosen::new(cells, rows, design.n_columns());
        let n_cells = chosen.count();
        let (strength, penalty) = (problem.lambda, problem.penalty);
        let most_columns = MOST_COLUMNS;
        Solver {
            cells,
            chosen,
            rows,
            targets,
            design,
            lambda,
            strength,
            penalty,
            total,
            n_cells,
            most_columns,
        }
    }

    fn penalty(&self, w: &[f64]) -> f64 {
        w.iter().zip(&self.lambda).filter(|(w, _)| **w != 0.0).map(|(w, l)| l * w.abs()).sum()
    }

    fn point(&self, w: Vec<f64>, margins: Vec<f64>, bias: f64) -> Point {
        let state = self.targets.evaluate(&margins, bias);
        let objective = state.loss + self.penalty(&w);
        Point { w, margins, state, objective }
    }

    /// The best of the given starts, or w = 0 if that is better; and what was kept there, if it was on these rows.
    fn start<'b>(&self, from: &[Origin<'b>]) -> (Point, Option<&'b Kept>) {
        let (n, d) = (self.rows.len(), self.lambda.len());
        let right: f64 = self.targets.0.iter().filter(|&&target| target > 0.0).sum();
        let mut least = -right * right.ln() - (1.0 - right) * (-right).ln_1p();
        let mut best = None;
        for origin in from {
            let (w, bias, kept) = match *origin {
                Origin::Weights(start) => {
                    let (mut w, mut bias) = (vec![0.0; d], start.bias);
                    for &(j, weight) in start.weights {
                        let scale = self.design.scales[j as usize];
                        w[j as usize] += weight * scale.unit;
                        bias += weight * scale.base;
                    }
                    (w, bias, None)
                }
                Origin::Kept(kept) => {
                    (kept.w.clone(), kept.bias, (kept.rows == self.rows).then_some(kept))
                }
                Origin::Curvature(_) => continue,
            };
            let margins = kept.map_or_else(
                || {
                    let mut margins = vec![0.0; n];
                    self.chosen.dots(&w, &mut margins);
                    margins
                },
                |kept| kept.margins.clone(),
            );
            if margins.iter().sum::<f64>().is_finite() && bias.is_finite() {
                let point = self.point(w, margins, bias);
                if point.objective <= least {
                    least = point.objective;
                    best = Some((point, kept));
                }
            }
        }
        best.unwrap_or_else(|| (self.point(vec![0.0; d], vec![0.0; n], 0.0), None))
    }

    /// The curvature that another solve left, for the rows of this one, whose curvatures are now `h`; none if too many
    /// rows have come or gone.
    fn carried(&self, kept: &Kept, h: &[f64]) -> Option<Arc<Curvature>> {
        let model = kept.curvature.as_ref()?;
        if kept.rows == self.rows {
            return Some(model.clone());
        }
        let is_ascending = |rows: &[u32]| rows.is_sorted_by(|a, b| a < b);
        if !is_ascending(&kept.rows) || !is_ascending(self.rows) {
            return None;
        }
        // Each row's curvature there, 0 where it is new.
        let mut others = kept.rows.iter().zip(&model.h).peekable();
        let (mut n_common, mut common) = (0, 0.0);
        let of_row = |(row, h): (&u32, &f64)| {
            while others.next_if(|(other, _)| *other < row).is_some() {}
            others.next_if(|(other, _)| *other == row).map_or(0.0, |(_, before)| {
                n_common += 1;
                common += h;
                *before
            })
        };
        let before: Vec<f64> = self.rows.iter().zip(h).map(of_row).collect();
        let ratio = common / before.iter().sum::<f64>();
        let enough = (1.0 - CHANGED) * kept.rows.len().max(h.len()) as f64;
        if (n_common as f64) < enough || !(ratio > 0.0 && ratio.is_finite()) {
            return None;
        }
        Some(Arc::new(Curvature {
            columns: model.columns.clone(),
            correlations: model.correlations.clone(),
            scale: model.scale.iter().map(|scale| scale * ratio.sqrt()).collect(),
            means: model.means.clone(),
            // However many they were, they are not these.
            n_rows: model.n_rows.min(h.len() - 1),
            h: before.into_iter().map(|h| h * ratio).collect(),
        }))
    }

    /// The slopes at a point that was kept: those found there, if no target is another since. Where some are, their
    /// rows are added. That the bias has followed them is laid to all rows in proportion to their curvature, which is
    /// right to first order. None if too many are.
    fn kept_slopes(&self, point: &Point, kept: &Kept) -> Option<KeptSlopes> {
        let (old, new) = (&kept.targets.0, &self.targets.0);
        let changed: Vec<usize> = (0..new.len()).filter(|&i| old[i] != new[i]).collect();
        if changed.is_empty() {
            return Some(KeptSlopes { gradient: kept.gradient.clone(), exact: true });
        }
        let means = &kept.curvature.as_ref()?.means;
        if changed.len() as f64 > CHANGED * new.len() as f64 {
            return None;
        }
        let rows: Vec<u32> = changed.iter().map(|&i| self.rows[i]).collect();
        let before = |i: usize| kept.targets.slope(i, kept.margins[i], kept.bias);
        let change: Vec<f64> = changed.iter().map(|&i| point.state.r[i] - before(i)).collect();
        let sums = Chosen::new(self.cells, &rows, self.lambda.len()).sums(&change);
        let sum: f64 = change.iter().sum();
        let of_column = |((g, x), mean): ((&f64, &f64), &f64)| g - (x - sum * mean);
        let gradient = kept.gradient.iter().zip(&sums).zip(means).map(of_column).collect();
        Some(KeptSlopes { gradient, exact: false })
    }

    fn solve(
        &self,
        from: &[Origin<'_>],
        options: Options,
        monitor: &Monitor,
    ) -> Result<(Solution, Kept)> {
        let tol = options.tol.max(LEAST_TOL);
        let is_cold = from.iter().all(|origin| matches!(origin, Origin::Curvature(_)));
        let (mut point, start) = self.start(from);
        let mut curvature = from.iter().find_map(|origin| match origin {
            Origin::Kept(kept) | Origin::Curvature(kept) => self.carried(kept, &point.state.h),
            Origin::Weights(_) => None,
        });
        let mut slopes = start.and_then(|kept| self.kept_slopes(&point, kept));
        let mut rows_per_column = curvature.as_ref().map_or(ROWS_PER_COLUMN, |model| {
            (model.n_rows / model.columns.len().max(1)).max(ROWS_PER_COLUMN)
        });
        let mut last_gain = f64::INFINITY;
        // The share of its promised gain that the last step kept; the steps taken, all and with this model.
        let mut kept = 1.0;
        let (mut n_iter, mut n_with) = (0, 0);
        // Where the last step started: the weights and the slopes.
        let mut last: Option<(Vec<f64>, Vec<f64>)> = None;
        loop {
            monitor.check()?;
            if curvature.as_ref().is_some_and(|model| model.is_stale(&point.state.h)) {
                curvature = None;
            }
            let is_last = n_iter >= options.max_iter;
            let usable = |slopes: &KeptSlopes| curvature.is_some() && (slopes.exact || !is_last);
            let (gradient, moments, is_exact) = match slopes.take().filter(usable) {
                Some(KeptSlopes { gradient, exact }) => (gradient, None, exact),
                None => {
                    // Where there is no model, one pass finds what it needs too.
                    let (gradient, moments) = self.slopes(&point, curvature.is_none());
                    (gradient, moments, true)
                }
            };
            // Only a step is taken by slopes that are not exact.
            if is_exact && (is_last || self.duality_gap(&point, &gradient, tol) <= tol) {
                return Ok(self.end(point, curvature, &gradient, f64::INFINITY, n_iter));
            }
            if let (Some(model), Some((w, before))) = (&mut curvature, last.take()) {
                Arc::make_mut(model).learn((&w, &before), (&point.w, &gradient));
            }
            let working = self.working_set(&point.w, &gradient);
            // The model of the step before serves while it covers the columns and steps gain what they promise.
            let mut step = None;
            let mut is_untried = n_iter == 0;
            if let Some(old) = curvature.as_ref().filter(|old| old.covers(&working.needed)) {
                let again = old.step(self, &point.w, &gradient, &working.needed);
                let rate = again.gain / last_gain;
                // A new model costs about as much as two more steps.
                let after_two = again.gain * rate.min(1.0).powi(2);
                if rate <= PROGRESS || after_two <= tol * point.objective {
                    step = Some(again);
                } else if n_with == 1 && again.gain > SLOW * last_gain {
                    rows_per_column = rows_per_column.saturating_mul(2);
                }
            }
            if step.is_none() && !is_exact {
                curvature = None;
                continue;
            }
            let step = step.unwrap_or_else(|| {
                let is_far = if n_iter > 0 { last_gain > FAR * point.objective } else { is_cold };
                let per_column = if is_far { ROWS_PER_COLUMN_FAR } else { rows_per_column };
                let moments = moments.unwrap_or_else(|| {
                    let State { r, h, .. } = &point.state;
                    self.chosen.moments(r, h)
                });
                let new = Curvature::new(self, &point.state.h, &moments, working.all, per_column);
                n_with = 0;
                is_untried = false;
                let step = new.step(self, &point.w, &gradient, &working.needed);
                curvature = Some(Arc::new(new));
                step
            });
            // Gains fall geometrically at worst: what the steps to come gain together, by the share of its gain that
            // a step keeps.
            let least = if is_untried { UNTRIED } else { TRIED };
            let to_come = (kept / (1.0 - (step.gain / last_gain).min(0.9))).max(least);
            let gap = step.gain * to_come * working.left_out / point.objective;
            if gap <= tol && !is_exact {
                continue;
            }
            if gap <= tol {
                return Ok(self.end(point, curvature, &gradient, gap, n_iter));
            }
            n_iter += 1;
            n_with += 1;
            last_gain = step.gain;
            let (next, length) = self.search(&point, &gradient, &step);
            let sampled = curvature.as_ref().is_some_and(|model| model.n_rows < self.rows.len());
            match next {
                Some(next) => {
                    kept = (point.objective - next.objective) / step.gain;
                    last = Some((std::mem::replace(&mut point, next).w, gradient));
                }
                None if sampled || !is_exact => {}
                // Rounding hides what is left to gain.
                None => return Ok(self.end(point, curvature, &gradient, gap, n_iter)),
            }
            if length < 1.0 {
                rows_per_column = rows_per_column.saturating_mul(2);
                curvature = None;
            }
        }
    }

    /// The slope of the loss, by column, and if wanted the moments as well.
    fn slopes(&self, point: &Point, with_moments: bool) -> (Vec<f64>, Option<Vec<[f64; 3]>>) {
        let State { r, h, .. } = &point.state;
        if with_moments {
            let moments = self.chosen.moments(r, h);
            (moments.iter().map(|moments| -moments[0]).collect(), Some(moments))
        } else {
            (self.chosen.sums(r).into_iter().map(|sum| -sum).collect(), None)
        }
    }

    /// The duality gap as a share of the objective if it is at most `tol`, else that or a lower bound of it.
    ///
    /// The dual point is r, scaled down until no column's gradient exceeds its penalty; it obeys sum_i r_i = 0 because
    /// the bias is optimal. The dual is concave in the scaling, which bounds it by its tangent at 1.
    fn duality_gap(&self, point: &Point, gradient: &[f64], tol: f64) -> f64 {
        let share = gradient.iter().zip(&self.lambda).map(|(g, l)| l / g.abs()).fold(1.0, f64::min);
        let slope: f64 = -point.w.iter().zip(gradient).map(|(w, g)| w * g).sum::<f64>();
        let bound = self.penalty(&point.w) - slope + (1.0 - share) * slope;
        if bound > tol * point.objective {
            return bound / point.objective;
        }
        let dual = self.targets.dual(&point.state.r, share);
        ((point.objective - dual) / point.objective).max(0.0)
    }

    fn working_set(&self, w: &[f64], gradient: &[f64]) -> WorkingSet {
        let support = w.iter().filter(|w| **w != 0.0).count();
        let keep_all = 2 * support <= self.most_columns;
        // By how much a column violates its optimality condition, as a share of its penalty.
        let rank = |j: usize| {
            if w[j] == 0.0 {
                gradient[j].abs() / self.lambda[j] - 1.0
            } else if keep_all {
                f64::INFINITY
            } else {
                (gradient[j] / self.lambda[j] + 1f64.copysign(w[j])).abs()
            }
        };
        let mut ranked: Vec<(f64, usize)> =
            (0..w.len()).map(|j| (rank(j), j)).filter(|(rank, _)| *rank > NEAR - 1.0).collect();
        ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let candidates = ranked.iter().filter(|(rank, _)| *rank > 0.0).count();
        let n = self.rows.len();
        let few = n.clamp(ADDED[0], ADDED[1]);
        let added = if support <= n { support.max(few) } else { few };
        ranked.truncate((support + added).min(self.most_columns));
        let mut needed: Vec<usize> =
            ranked.iter().filter(|(rank, _)| *rank > 0.0).map(|&(_, j)| j).collect();
        let mut all: Vec<usize> = ranked.iter().map(|&(_, j)| j).collect();
        let left_out = candidates.max(1) as f64 / needed.len().max(1) as f64;
        needed.sort_unstable();
        all.sort_unstable();
        WorkingSet { needed, all, left_out }
    }

    /// Halves the step until it keeps a share of the promised gain; the point reached, if any, and the step's length.
    fn search(&self, point: &Point, gradient: &[f64], step: &Step) -> (Option<Point>, f64) {
        let mut delta = vec![0.0; point.w.len()];
        let mut promised = 0.0;
        for &(j, to) in &step.to {
            let from = point.w[j];
            delta[j] = to - from;
            promised += gradient[j] * (to - from) + self.lambda[j] * (to.abs() - from.abs());
        }
        let mut moved = vec![0.0; point.margins.len()];
        self.chosen.dots(&delta, &mut moved);
        let mut length = 1.0;
        for _ in 0..HALVINGS {
            let mut w = point.w.clone();
            for &(j, to) in &step.to {
                w[j] = if length == 1.0 { to } else { w[j] + length * delta[j] };
            }
            let margins = point.margins.iter().zip(&moved).map(|(m, x)| m + length * x).collect();
            let next = self.point(w, margins, point.state.bias - length * step.shift);
            if next.objective <= point.objective + KEPT * length * promised {
                return (Some(next), length);
            }
            length *= 0.5;
        }
        (None, 0.0)
    }

    fn end(
        &self,
        point: Point,
        curvature: Option<Arc<Curvature>>,
        gradient: &[f64],
        gap: f64,
        n_iter: usize,
    ) -> (Solution, Kept) {
        let duality_gap = self.duality_gap(&point, gradient, f64::INFINITY);
        let mut bias = point.state.bias;
        let mut weights = Vec::new();
        let mut penalty = 0.0;
        for (j, &w) in point.w.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            let scale = self.design.scales[j];
            bias -= w / scale.unit * scale.base;
            penalty += w.abs() / scale.unit * self.penalty.map_or(1.0, |penalty| penalty[j]);
            weights.push((j as u32, w / scale.unit));
        }
        let objective = point.state.loss * self.total + self.strength * penalty;
        let gap = gap.min(duality_gap);
        let solution = Solution { weights, bias, objective, n_iter, gap, duality_gap };
        let Point { w, margins, state, .. } = point;
        let (identity, rows) = (self.design.identity.clone(), self.rows.to_vec());
        let (targets, bias, gradient) = (self.targets.clone(), state.bias, gradient.to_vec());
        let n_cells = self.n_cells;
        let kept = Kept { identity, rows, targets, w, margins, bias, gradient, curvature, n_cells };
        (solution, kept)
    }
}

/// The curvature of the loss over some columns, each in units of the root of its own.
#[derive(Debug, Clone)]
struct Curvature {
    columns: Vec<usize>,
    /// The correlations of the columns, weighted by h, from some of the rows.
    correlations: Vec<f64>,
    /// The root of the own curvature of every column of the matrix, from all rows; 0 for a column that is constant.
    scale: Vec<f64>,
    /// Means of all columns, weighted by h.
    means: Vec<f64>,
    /// Rows that the correlations come from.
    n_rows: usize,
    /// The h it was made with.
    h: Vec<f64>,
}

impl Curvature {
    fn new<V: Cell>(
        solver: &Solver<'_, V>,
        all_h: &[f64],
        moments: &[[f64; 3]],
        columns: Vec<usize>,
        rows_per_column: usize,
    ) -> Self {
        let (n, width) = (all_h.len(), columns.len());
        let (means, scale) = spread(moments, all_h.iter().sum());
        // As many rows as cost about as much as two passes over all cells, if that is more.
        let per_row = (solver.n_cells as f64 / n as f64).min(width as f64);
        let cheap = 4.0 * solver.n_cells as f64 / (per_row * per_row).max(1.0);
        let wanted = rows_per_column.saturating_mul(width).max(LEAST_ROWS).max(cheap as usize);
        let (rows, h): (Cow<'_, [u32]>, Cow<'_, [f64]>) = if wanted >= n - n / 5 {
            (Cow::Borrowed(solver.rows), Cow::Borrowed(all_h))
        } else {
            let size =
                |(&row, h): (&u32, &f64)| h * (1.0 + f64::from(solver.design.sizes[row as usize]));
            let size: Vec<f64> = solver.rows.iter().zip(all_h).map(size).collect();
            let (rows, h) = draw(solver.rows, all_h, &size, wanted);
            (Cow::Owned(rows), Cow::Owned(h))
        };
        let chosen = Chosen::new(solver.cells, &rows, solver.lambda.len());
        let ((gram, sums), shrink) = if rows.len() < n {
            (chosen.gram::<f32>(&h, &columns), 1.0 / (1.0 + RIDGE))
        } else {
            (chosen.gram::<f64>(&h, &columns), 1.0)
        };
        let correlations = correlations(gram, &sums, h.iter().sum(), shrink);
        let n_rows = rows.len();
        Curvature { columns, correlations, scale, means, n_rows, h: all_h.to_vec() }
    }

    /// Whether the curvatures of the rows are no longer about those it was made with.
    fn is_stale(&self, h: &[f64]) -> bool {
        let change: f64 = self.h.iter().zip(h).map(|(old, new)| (old - new).abs()).sum();
        change > STALE * h.iter().sum::<f64>()
    }

    /// Whether it holds nearly all of the columns.
    fn covers(&self, columns: &[usize]) -> bool {
        self.others(columns).count() as f64 <= OTHERS * columns.len() as f64
    }

    /// Makes the model give the change of slopes that a step made (BFGS; Nocedal, Wright: Numerical Optimization, 2006,
    /// section 6.1): the directions that a sample gets wrong are those in which steps go wrong. What the columns that
    /// the model does not hold add to the change, few as they are, is laid to the others.
    fn learn(&mut self, from: (&[f64], &[f64]), to: (&[f64], &[f64])) {
        let width = self.columns.len();
        let step: Vec<f64> =
            self.columns.iter().map(|&j| (to.0[j] - from.0[j]) * self.scale[j]).collect();
        let of_column = |&j: &usize| match self.scale[j] {
            scale if scale > 0.0 => (to.1[j] - from.1[j]) / scale,
            _ => 0.0,
        };
        let change: Vec<f64> = self.columns.iter().map(of_column).collect();
        let mut expected = vec![0.0; width];
        for (&step, row) in step.iter().zip(self.correlations.chunks_exact(width)) {
            if step != 0.0 {
                expected.iter_mut().zip(row).for_each(|(sum, x)| *sum += step * x);
            }
        }
        let along = |x: &[f64]| -> f64 { x.iter().zip(&step).map(|(x, step)| x * step).sum() };
        let (found, promised) = (along(&change), along(&expected));
        if !(found > LEAST_BEND * promised && promised > 0.0) {
            return;
        }
        let diagonal = |(change, expected): (&f64, &f64)| {
            let own = 1.0 + change * change / found - expected * expected / promised;
            own.max(LEAST_BEND).sqrt()
        };
        let roots: Vec<f64> = change.iter().zip(&expected).map(diagonal).collect();
        let inverse: Vec<f64> = roots.iter().map(|root| 1.0 / root).collect();
        for (p, row) in self.correlations.chunks_exact_mut(width).enumerate() {
            let (add, subtract) = (change[p] / found, expected[p] / promised);
            for (q, x) in row.iter_mut().enumerate() {
                *x = (*x + add * change[q] - subtract * expected[q]) * (inverse[p] * inverse[q]);
            }
            row[p] = 1.0;
        }
        for (&j, root) in self.columns.iter().zip(&roots) {
            self.scale[j] *= root;
        }
    }

    /// Those of the columns that it does not hold.
    fn others<'b>(&'b self, columns: &'b [usize]) -> impl Iterator<Item = usize> + 'b {
        columns.iter().copied().filter(|j| self.columns.binary_search(j).is_err())
    }

    /// `needed`: columns that have a weight or should have one. Those that H does not hold count as uncorrelated.
    fn step<V: Cell>(
        &self,
        solver: &Solver<'_, V>,
        w: &[f64],
        gradient: &[f64],
        needed: &[usize],
    ) -> Step {
        let precision = PRECISION[usize::from(self.n_rows < solver.rows.len())];
        // A constant column stands still at 0 in the model.
        let local = |of_column: &dyn Fn(usize, f64) -> f64, constant: f64| -> Vec<f64> {
            let of_column = |&j: &usize| match self.scale[j] {
                s if s > 0.0 => of_column(j, s),
                _ => constant,
            };
            self.columns.iter().map(of_column).collect()
        };
        let model = Model {
            curvature: &self.correlations,
            slope: local(&|j, s| gradient[j] / s, 0.0),
            from: local(&|j, s| w[j] * s, 0.0),
            penalty: local(&|j, s| solver.lambda[j] / s, 1.0),
        };
        let (to, mut gain) = model.minimise(precision);
        let (mut moves, mut shift) = (Vec::new(), 0.0);
        for (at, &j) in self.columns.iter().enumerate() {
            let scale = self.scale[j];
            let new = if scale > 0.0 {
                if to[at] == w[j] * scale { w[j] } else { to[at] / scale }
            } else {
                gain += solver.lambda[j] * w[j].abs(); // the bias does the same for nothing
                0.0
            };
            if new != w[j] {
                shift += self.means[j] * (new - w[j]);
                moves.push((j, new));
            }
        }
        for j in self.others(needed).filter(|&j| self.scale[j] > 0.0) {
            // Twice the curvature: columns that are alike would go too far together.
            let (own, penalty) = (self.scale[j].powi(2), solver.lambda[j]);
            let target = w[j] - gradient[j] / (2.0 * own);
            let new = target.signum() * (target.abs() - penalty / (2.0 * own)).max(0.0);
            let step = new - w[j];
            if step != 0.0 {
                let change = step * (gradient[j] + 0.5 * own * step);
                // There may be as much again beyond the shortened step.
                gain -= 2.0 * (change + penalty * (new.abs() - w[j].abs()));
                shift += self.means[j] * step;
                moves.push((j, new));
            }
        }
        Step { to: moves, shift, gain }
    }
}

/// Each column's mean and the root of its own curvature, 0 if it is constant, for curvatures of rows that add up to
/// `sum`.
fn spread(moments: &[[f64; 3]], sum: f64) -> (Vec<f64>, Vec<f64>) {
    let of_column = |&[_, first, second]: &[f64; 3]| {
        let own = second - first * (first / sum);
        (first / sum, if own > LEAST_SPREAD * second { own.sqrt() } else { 0.0 })
    };
    moments.iter().map(of_column).unzip()
}

/// Centres the lower triangle of a Gram matrix of rows with weights that add up to `sum`, scales it to a unit diagonal,
/// multiplies the rest by `shrink` and fills the upper triangle.
fn correlations(mut gram: Vec<f64>, sums: &[f64], sum: f64, shrink: f64) -> Vec<f64> {
    let width = sums.len();
    let inverse = |p: usize| {
        let own = gram[p * width + p] - sums[p] * sums[p] / sum;
        if own > LEAST_SPREAD * gram[p * width + p] { 1.0 / own.sqrt() } else { 0.0 }
    };
    let inverse: Vec<f64> = (0..width).map(inverse).collect();
    for p in 0..width {
        for q in 0..p {
            let centred = gram[p * width + q] - sums[p] / sum * sums[q];
            let correlation = shrink * centred * inverse[p] * inverse[q];
            gram[p * width + q] = correlation;
            gram[q * width + p] = correlation;
        }
        gram[p * width + p] = 1.0;
    }
    gram
}

/// Draws about `n` rows in proportion to `size`, one from each of `n` stretches of equal size; some may come twice or
/// more. Returns the rows with their h, changed so that sums over them estimate sums over all.
fn draw(rows: &[u32], h: &[f64], size: &[f64], n: usize) -> (Vec<u32>, Vec<f64>) {
    let stretch = size.iter().sum::<f64>() / n as f64;
    let mut random = fastrand::Rng::with_seed(0);
    let (mut drawn, mut weights) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let (mut end, mut next, mut k) = (0.0, stretch * random.f64(), 0);
    for ((&row, h), size) in rows.iter().zip(h).zip(size) {
        end += size;
        let before = k;
        while next < end {
            k += 1;
            next = stretch * (f64::from(k) + random.f64());
        }
        if k > before {
            drawn.push(row);
            weights.push(f64::from(k - before) * stretch / size * h);
        }
    }
    (drawn, weights)
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::table::Table;

    fn example(n: usize, d: usize) -> (Design, Vec<bool>) {
        let mut random = fastrand::Rng::with_seed(1);
        let x = Array2::from_shape_fn((n, d), |_| random.f64() - 0.5);
        let of_row = |row: ndarray::ArrayView1<'_, f64>| {
            row.iter().enumerate().map(|(j, x)| x * (1.0 + j as f64).recip()).sum::<f64>()
        };
        let sign = x.outer_iter().map(|row| of_row(row) + 0.4 * random.f64() > 0.2).collect();
        (Design::from_table(&Table::from_matrix(x.view()).unwrap()).unwrap(), sign)
    }

    #[test]
    fn a_small_working_set_leads_to_the_same_optimum() {
        let (n, d) = (300, 40);
        let (design, sign) = example(n, d);
        let rows: Vec<u32> = (0..n as u32).collect();
        let weight = vec![1.0; n];
        let problem = Problem {
            design: &design,
            rows: &rows,
            sign: &sign,
            weight: &weight,
            lambda: 0.5,
            penalty: None,
        };
        let (monitor, options) = (Monitor::default(), Options { tol: 1e-10, max_iter: 1000 });
        let expected = solve(&problem, None, options, &monitor).unwrap();
        assert!(expected.weights.len() > 20);
        let (_, targets, total) = targets(&problem);
        let Stored::F64(cells) = &design.stored else { unreachable!() };
        let mut solver = Solver::new(cells, &rows, &targets, &problem, total);
        solver.most_columns = 12;
        let found = solver.solve(&[], options, &monitor).unwrap().0;
        assert!((found.objective / expected.objective - 1.0).abs() < 1e-8);
        assert!(found.n_iter > expected.n_iter);
    }

    #[test]
    fn a_model_learns_how_the_slopes_change_along_a_step() {
        let mut model = Curvature {
            columns: vec![0, 2, 3],
            correlations: vec![1.0, 0.2, 0.0, 0.2, 1.0, -0.5, 0.0, -0.5, 1.0],
            scale: vec![2.0, 9.0, 0.5, 3.0],
            means: vec![0.0; 4],
            n_rows: 10,
            h: Vec::new(),
        };
        let (w, to) = ([0.1, 0.0, -0.3, 0.0], [0.2, 0.0, 0.5, -0.4]);
        let (slope, slope_there) = ([0.0; 4], [0.7, 5.0, 0.3, -1.6]);
        model.learn((&w, &slope), (&to, &slope_there));
        for (p, &j) in model.columns.iter().enumerate() {
            assert_eq!(model.correlations[4 * p], 1.0);
            let of_column = |(q, &k): (usize, &usize)| {
                model.correlations[3 * p + q] * model.scale[k] * (to[k] - w[k])
            };
            let change: f64 = model.columns.iter().enumerate().map(of_column).sum();
            assert!((model.scale[j] * change - slope_there[j]).abs() < 1e-12);
        }
        // Slopes that fall along a step are none of a convex function.
        let before = model.clone();
        model.learn((&to, &slope), (&w, &slope_there));
        assert_eq!(model.correlations, before.correlations);
        assert_eq!(model.scale, before.scale);
    }

    #[test]
    fn a_curvature_is_carried_to_nearly_the_same_rows() {
        let n = 400;
        let (design, sign) = example(n, 5);
        let weight = vec![1.0; n];
        let all: Vec<u32> = (0..n as u32).collect();
        let problem = Problem {
            design: &design,
            rows: &all,
            sign: &sign,
            weight: &weight,
            lambda: 1.0,
            penalty: None,
        };
        let kept = solve_from(&problem, &[], Options::default(), &Monitor::default()).unwrap().1;
        let model = kept.curvature.as_ref().unwrap();
        for (without, serves) in [(20, true), (4, false)] {
            let fewer: Vec<u32> = all.iter().copied().filter(|i| i % without != 1).collect();
            let sign: Vec<bool> = fewer.iter().map(|&i| sign[i as usize]).collect();
            let weight = &weight[..fewer.len()];
            let problem = Problem { rows: &fewer, sign: &sign, weight, ..problem };
            let (_, targets, total) = targets(&problem);
            let Stored::F64(cells) = &design.stored else { unreachable!() };
            let solver = Solver::new(cells, &fewer, &targets, &problem, total);
            // Twice the curvature in every row, in another problem's units.
            let h: Vec<f64> = fewer.iter().map(|&i| 2.0 * model.h[i as usize]).collect();
            let Some(carried) = solver.carried(&kept, &h) else {
                assert!(!serves);
                continue;
            };
            assert!(serves && !carried.is_stale(&h) && carried.n_rows < fewer.len());
            assert_eq!(carried.correlations, model.correlations);
            for (new, old) in carried.scale.iter().zip(&model.scale) {
                assert!((new / old - 2f64.sqrt()).abs() < 1e-12);
            }
            assert!(carried.h.iter().zip(&h).all(|(new, h)| (new / h - 1.0).abs() < 1e-12));
        }
    }

    #[test]
    fn a_stopped_monitor_ends_the_solve() {
        let (design, sign) = example(50, 3);
        let (rows, weight): (Vec<u32>, _) = ((0..50).collect(), vec![1.0; 50]);
        let problem = Problem {
            design: &design,
            rows: &rows,
            sign: &sign,
            weight: &weight,
            lambda: 1.0,
            penalty: None,
        };
        let monitor = Monitor::default();
        monitor.stop();
        let stopped = solve(&problem, None, Options::default(), &monitor);
        assert_eq!(stopped, Err(Error::Interrupted));
    }

    #[test]
    fn draws_estimate_sums_over_all_rows() {
        let n = 10_000u32;
        let rows: Vec<u32> = (0..n).collect();
        let h: Vec<f64> = rows.iter().map(|i| f64::from(i % 10)).collect();
        // One row is worth several draws: it comes for certain, once, with its own weight or about.
        let size: Vec<f64> =
            rows.iter().zip(&h).map(|(&i, h)| if i == 77 { 900.0 } else { *h }).collect();
        let (drawn, weights) = draw(&rows, &h, &size, 500);
        assert!(drawn.is_sorted_by(|a, b| a < b) && drawn.len() <= 500 && drawn.len() > 480);
        assert!(drawn.iter().all(|i| i % 10 != 0));
        let at = drawn.iter().position(|&i| i == 77).unwrap();
        assert!((weights[at] / h[77] - 1.0).abs() < 0.2);
        let (sum, all): (f64, f64) = (weights.iter().sum(), h.iter().sum());
        assert!((sum / all - 1.0).abs() < 0.02, "{sum} {all}");
    }
}
