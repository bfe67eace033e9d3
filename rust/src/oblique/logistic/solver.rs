//! Proximal Newton steps over a working set: one solve of an l1 logistic regression.
//!
//! The point is w with its margins, its bias (always the best one) and the slopes of the loss. A step minimises the
//! quadratic model of [`Curvature`] over the columns of the working set and is halved until it keeps a share of the
//! gain that the model promised. The slopes of all columns are computed before every step. Symbols: r is the negative
//! slope of the loss by row and h its curvature ([`State`]), weights of the rows add up to 1, columns are in the units
//! of the stored cells.

use std::sync::Arc;

use super::cells::{Cell, Cells};
use super::curvature::Curvature;
use super::design::{Design, Scale};
use super::loss::{State, Targets};
use super::sums::RowSelection;
use super::{LogisticProblem, Solution, SolverOptions, SolverState, StartPoint};
use crate::error::Result;
use crate::memory;
use crate::parallel::Monitor;

/// Least lambda per unit of weight, for columns within [-1, 1].
const MIN_LAMBDA: f64 = 1e-12;
/// No tolerance is smaller: sums of numbers are no better.
const MIN_TOL: f64 = 1e-13;
/// Columns without a weight whose gradient is at this share of their penalty are in the working set too: a step may
/// bring them in.
const MIN_GRADIENT_SHARE: f64 = 0.9;
/// Columns that a step may add, unless as many have a weight: as many as there are rows, which is enough for any
/// solution, between these two. And the largest working set.
const MAX_ADDED_COLUMNS: [usize; 2] = [100, 1000];
/// Most columns of a working set: its model takes their square in memory.
const MAX_COLUMNS: usize = 4096;
/// Rows drawn per column of the working set; and those where the last step gained more than [`FAR_GAIN`] of the
/// objective, so that the model does not hold for long anyway, and at the first step without a start.
const ROWS_PER_COLUMN: usize = 6;
/// Where the point is far from the optimum, a coarser model does.
const ROWS_PER_COLUMN_FAR: usize = 3;
/// Share of the objective.
const FAR_GAIN: f64 = 0.1;
/// A step must leave at most this share of the last step's gain to be gained, else H is made anew.
const MAX_GAIN_LEFT: f64 = 0.3;
/// What is left to gain is taken to be at least so many times what a step promises: a model may promise too little,
/// most of all one from another solve that has taken no step in this one.
const LEFT_BY_TRIED_MODEL: f64 = 1.1;
/// For a model that has taken no step in this solve.
const LEFT_BY_UNTRIED_MODEL: f64 = 1.5;
/// Above this share the sample was too small.
const MAX_GAIN_LEFT_BY_SAMPLE: f64 = 0.5;
/// Share of the rows whose targets may differ from those of a solve before, for its slopes to be of use; and of those
/// that may have come or gone since, for its curvature to be.
const MAX_CHANGED_SHARE: f64 = 0.1;
/// Halvings of a step.
const MAX_HALVINGS: usize = 40;
/// Share of the promised gain that a step must keep.
const MIN_GAIN_SHARE: f64 = 0.01;

/// A problem in the units of the stored cells, the weights adding up to 1.
pub(super) struct Solver<'a, V: Cell> {
    /// The stored cells.
    pub(super) cells: &'a Cells<V>,
    /// The rows of the problem among them.
    pub(super) selected: RowSelection<'a, V>,
    /// Those rows, by number.
    pub(super) rows: &'a [u32],
    /// Their labels and weights.
    pub(super) targets: &'a Targets,
    /// The matrix.
    pub(super) design: &'a Design,
    /// By column, for weights in the units of the stored cells.
    pub(super) lambda: Vec<f64>,
    /// lambda and the columns' shares in it as given.
    pub(super) strength: f64,
    /// The columns' shares as given; none: 1.
    pub(super) penalty: Option<&'a [f64]>,
    /// The sum of the weights.
    pub(super) total: f64,
    /// DesignCells cells of these rows.
    pub(super) n_cells: usize,
    /// Largest working set.
    pub(super) most_columns: usize,
}

/// Weights with their margins, the loss and its slopes, and the objective.
struct Point {
    /// Weights in the units of the stored cells, by column.
    w: Vec<f64>,
    /// w . x, by row, without the bias.
    margins: Vec<f64>,
    /// The best bias, the loss there, its slopes and curvatures by row.
    state: State,
    /// Loss plus penalty.
    objective: f64,
}

/// The slopes of the loss where another solve ended.
struct StartSlopes {
    /// The slope of the loss, by column.
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
pub(super) struct Step {
    /// Columns with their new weights.
    pub(super) to: Vec<(usize, f64)>,
    /// About by how much the margins' weighted mean changes.
    pub(super) shift: f64,
    /// By how much the objective falls by the model.
    pub(super) gain: f64,
}

impl<'a, V: Cell> Solver<'a, V> {
    /// A problem whose weights add up to `total`, with penalties by column in the units of the stored cells.
    pub(super) fn new(
        cells: &'a Cells<V>,
        rows: &'a [u32],
        targets: &'a Targets,
        problem: &LogisticProblem<'a>,
        total: f64,
    ) -> Self {
        let design = problem.design;
        let lambda = problem.lambda / total;
        let of_column = |(j, scale): (usize, &Scale)| {
            let share = problem.penalty.map_or(1.0, |penalty| penalty[j]);
            (lambda * share / scale.unit).max(MIN_LAMBDA)
        };
        let lambda = design.scales.iter().enumerate().map(of_column).collect();
        let selected = RowSelection::new(cells, rows, design.n_columns());
        let n_cells = selected.count();
        let (strength, penalty) = (problem.lambda, problem.penalty);
        let most_columns = MAX_COLUMNS;
        Solver {
            cells,
            selected,
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

    /// lambda sum_j penalty_j |w_j|.
    fn penalty(&self, w: &[f64]) -> f64 {
        w.iter().zip(&self.lambda).filter(|(w, _)| **w != 0.0).map(|(w, l)| l * w.abs()).sum()
    }

    /// The loss, its slopes and the best bias at some weights; `bias`: where the search for it starts.
    fn point(&self, w: Vec<f64>, margins: Vec<f64>, bias: f64) -> Point {
        let state = self.targets.evaluate(&margins, bias);
        let objective = state.loss + self.penalty(&w);
        Point { w, margins, state, objective }
    }

    /// The best of the given starts, or w = 0 if that is better; and the state it comes from, if that is of these rows.
    /// A start whose margins are not finite is passed over.
    fn start<'b>(&self, from: &[StartPoint<'b>]) -> (Point, Option<&'b SolverState>) {
        let (n, d) = (self.rows.len(), self.lambda.len());
        let right: f64 = self.targets.0.iter().filter(|&&target| target > 0.0).sum();
        let mut least = -right * right.ln() - (1.0 - right) * (-right).ln_1p();
        let mut best = None;
        for origin in from {
            let (w, bias, state) = match *origin {
                StartPoint::Weights(start) => {
                    let (mut w, mut bias) = (vec![0.0; d], start.bias);
                    for &(j, weight) in start.weights {
                        let scale = self.design.scales[j as usize];
                        w[j as usize] += weight * scale.unit;
                        bias += weight * scale.base;
                    }
                    (w, bias, None)
                }
                StartPoint::State(state) => {
                    (state.w.clone(), state.bias, (state.rows == self.rows).then_some(state))
                }
                StartPoint::Curvature(_) => continue,
            };
            let margins = state.map_or_else(
                || {
                    let mut margins: Vec<f64> = memory::zeros(n, "the state of a node problem");
                    self.selected.dots(&w, &mut margins);
                    margins
                },
                |state| memory::copied(&state.margins, "the state of a node problem"),
            );
            if margins.iter().sum::<f64>().is_finite() && bias.is_finite() {
                let point = self.point(w, margins, bias);
                if point.objective <= least {
                    least = point.objective;
                    best = Some((point, state));
                }
            }
        }
        best.unwrap_or_else(|| {
            (self.point(vec![0.0; d], memory::zeros(n, "the state of a node problem"), 0.0), None)
        })
    }

    /// The curvature that another solve left, for the rows of this one, whose curvatures are now `h`; none if too many
    /// rows have come or gone. Rows are compared in ascending order; the curvatures of those that are in both are
    /// brought to the new ones by one factor.
    fn carried_curvature(&self, state: &SolverState, h: &[f64]) -> Option<Arc<Curvature>> {
        let model = state.curvature.as_ref()?;
        if state.rows == self.rows {
            return Some(model.clone());
        }
        let is_ascending = |rows: &[u32]| rows.is_sorted_by(|a, b| a < b);
        if !is_ascending(&state.rows) || !is_ascending(self.rows) {
            return None;
        }
        // Each row's curvature there, 0 where it is new.
        let mut others = state.rows.iter().zip(&model.h).peekable();
        let (mut n_common, mut common) = (0, 0.0);
        let of_row = |(row, h): (&u32, &f64)| {
            while others.next_if(|(other, _)| *other < row).is_some() {}
            others.next_if(|(other, _)| *other == row).map_or(0.0, |(_, before)| {
                n_common += 1;
                common += h;
                *before
            })
        };
        let before: Vec<f64> =
            memory::collected(self.rows.iter().zip(h).map(of_row), "the state of a node problem");
        let ratio = common / before.iter().sum::<f64>();
        let enough = (1.0 - MAX_CHANGED_SHARE) * state.rows.len().max(h.len()) as f64;
        if (n_common as f64) < enough || !(ratio > 0.0 && ratio.is_finite()) {
            return None;
        }
        Some(Arc::new(Curvature {
            columns: model.columns.clone(),
            correlations: model.correlations.clone(),
            scale: model.scale.iter().map(|scale| scale * ratio.sqrt()).collect(),
            means: model.means.clone(),
            // A sample in any case: some of these rows are not among them.
            n_rows: model.n_rows.min(h.len() - 1),
            h: before.into_iter().map(|h| h * ratio).collect(),
        }))
    }

    /// The slopes at the point of an earlier solve: those of that solve if all targets are the same. Where some differ,
    /// the change of their rows is added; the change of the bias is spread over all rows in proportion to their
    /// curvature, which is right to first order. None if too many targets differ.
    fn start_slopes(&self, point: &Point, last: &SolverState) -> Option<StartSlopes> {
        let (old, new) = (&last.targets.0, &self.targets.0);
        let changed: Vec<usize> = (0..new.len()).filter(|&i| old[i] != new[i]).collect();
        if changed.is_empty() {
            return Some(StartSlopes { gradient: last.gradient.clone(), exact: true });
        }
        let means = &last.curvature.as_ref()?.means;
        if changed.len() as f64 > MAX_CHANGED_SHARE * new.len() as f64 {
            return None;
        }
        let rows: Vec<u32> = changed.iter().map(|&i| self.rows[i]).collect();
        let before = |i: usize| last.targets.slope(i, last.margins[i], last.bias);
        let change: Vec<f64> = changed.iter().map(|&i| point.state.r[i] - before(i)).collect();
        let sums = RowSelection::new(self.cells, &rows, self.lambda.len()).sums(&change);
        let sum: f64 = change.iter().sum();
        let of_column = |((g, x), mean): ((&f64, &f64), &f64)| g - (x - sum * mean);
        let gradient = last.gradient.iter().zip(&sums).zip(means).map(of_column).collect();
        Some(StartSlopes { gradient, exact: false })
    }

    /// Steps from the best of the starts until what is left to gain is at most the tolerance, by the model or by the
    /// duality gap, or steps gain no more.
    ///
    /// The model of the step before is used again while it covers the columns that have or should have a weight and
    /// each step gains what the model promised; a new model costs about as much as two more steps. A step that had to
    /// be shortened, or gained too little, makes the next sample larger, up to all rows.
    pub(super) fn solve(
        &self,
        from: &[StartPoint<'_>],
        options: SolverOptions,
        monitor: &Monitor,
    ) -> Result<(Solution, SolverState)> {
        let tol = options.tol.max(MIN_TOL);
        let is_cold = from.iter().all(|origin| matches!(origin, StartPoint::Curvature(_)));
        let (mut point, start) = self.start(from);
        let mut curvature = from.iter().find_map(|origin| match origin {
            StartPoint::State(state) | StartPoint::Curvature(state) => {
                self.carried_curvature(state, &point.state.h)
            }
            StartPoint::Weights(_) => None,
        });
        let mut slopes = start.and_then(|state| self.start_slopes(&point, state));
        let mut rows_per_column = curvature.as_ref().map_or(ROWS_PER_COLUMN, |model| {
            (model.n_rows / model.columns.len().max(1)).max(ROWS_PER_COLUMN)
        });
        let mut last_gain = f64::INFINITY;
        // The share of its promised gain that the last step kept; the steps taken, all and with this model.
        let mut gain_share = 1.0;
        let (mut n_iter, mut n_with) = (0, 0);
        // Where the last step started: the weights and the slopes.
        let mut last: Option<(Vec<f64>, Vec<f64>)> = None;
        loop {
            monitor.check()?;
            if curvature.as_ref().is_some_and(|model| model.is_stale(&point.state.h)) {
                curvature = None;
            }
            let is_last = n_iter >= options.max_iter;
            let usable = |slopes: &StartSlopes| curvature.is_some() && (slopes.exact || !is_last);
            let (gradient, moments, is_exact) = match slopes.take().filter(usable) {
                Some(StartSlopes { gradient, exact }) => (gradient, None, exact),
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
            // The model of the step before is used while it covers the columns and steps gain what they promise.
            let mut step = None;
            let mut is_untried = n_iter == 0;
            if let Some(old) = curvature.as_ref().filter(|old| old.covers(&working.needed)) {
                let again = old.step(self, &point.w, &gradient, &working.needed);
                let rate = again.gain / last_gain;
                // A new model costs about as much as two more steps.
                let after_two = again.gain * rate.min(1.0).powi(2);
                if rate <= MAX_GAIN_LEFT || after_two <= tol * point.objective {
                    step = Some(again);
                } else if n_with == 1 && again.gain > MAX_GAIN_LEFT_BY_SAMPLE * last_gain {
                    rows_per_column = rows_per_column.saturating_mul(2);
                }
            }
            if step.is_none() && !is_exact {
                curvature = None;
                continue;
            }
            let step = step.unwrap_or_else(|| {
                let is_far =
                    if n_iter > 0 { last_gain > FAR_GAIN * point.objective } else { is_cold };
                let per_column = if is_far { ROWS_PER_COLUMN_FAR } else { rows_per_column };
                let moments = moments.unwrap_or_else(|| {
                    let State { r, h, .. } = &point.state;
                    self.selected.moments(r, h)
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
            let least = if is_untried { LEFT_BY_UNTRIED_MODEL } else { LEFT_BY_TRIED_MODEL };
            let to_come = (gain_share / (1.0 - (step.gain / last_gain).min(0.9))).max(least);
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
                    gain_share = (point.objective - next.objective) / step.gain;
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
    /// One pass over the stored cells of the rows.
    fn slopes(&self, point: &Point, with_moments: bool) -> (Vec<f64>, Option<Vec<[f64; 3]>>) {
        let State { r, h, .. } = &point.state;
        if with_moments {
            let moments = self.selected.moments(r, h);
            (moments.iter().map(|moments| -moments[0]).collect(), Some(moments))
        } else {
            (self.selected.sums(r).into_iter().map(|sum| -sum).collect(), None)
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

    /// The columns of the next step: those with a weight, and those whose gradient is near or above their penalty, the
    /// most violated first; at most `most_columns`.
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
        let mut ranked: Vec<(f64, usize)> = (0..w.len())
            .map(|j| (rank(j), j))
            .filter(|(rank, _)| *rank > MIN_GRADIENT_SHARE - 1.0)
            .collect();
        ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let candidates = ranked.iter().filter(|(rank, _)| *rank > 0.0).count();
        let n = self.rows.len();
        let few = n.clamp(MAX_ADDED_COLUMNS[0], MAX_ADDED_COLUMNS[1]);
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
    /// Of the objective all rows are read; only the direction comes from the model.
    fn search(&self, point: &Point, gradient: &[f64], step: &Step) -> (Option<Point>, f64) {
        let mut delta = vec![0.0; point.w.len()];
        let mut promised = 0.0;
        for &(j, to) in &step.to {
            let from = point.w[j];
            delta[j] = to - from;
            promised += gradient[j] * (to - from) + self.lambda[j] * (to.abs() - from.abs());
        }
        let mut moved: Vec<f64> = memory::zeros(point.margins.len(), "the state of a node problem");
        self.selected.dots(&delta, &mut moved);
        let mut length = 1.0;
        for _ in 0..MAX_HALVINGS {
            let mut w = point.w.clone();
            for &(j, to) in &step.to {
                w[j] = if length == 1.0 { to } else { w[j] + length * delta[j] };
            }
            let margins = point.margins.iter().zip(&moved).map(|(m, x)| m + length * x);
            let margins = memory::collected(margins, "the state of a node problem");
            let next = self.point(w, margins, point.state.bias - length * step.shift);
            if next.objective <= point.objective + MIN_GAIN_SHARE * length * promised {
                return (Some(next), length);
            }
            length *= 0.5;
        }
        (None, 0.0)
    }

    /// The solution in the columns' own units, and the state for a next solve.
    fn end(
        &self,
        point: Point,
        curvature: Option<Arc<Curvature>>,
        gradient: &[f64],
        gap: f64,
        n_iter: usize,
    ) -> (Solution, SolverState) {
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
        let (identity, rows) = (
            self.design.identity.clone(),
            memory::copied(self.rows, "the state of a node problem"),
        );
        let (targets, bias, gradient) = (self.targets.clone(), state.bias, gradient.to_vec());
        let n_cells = self.n_cells;
        let state =
            SolverState { identity, rows, targets, w, margins, bias, gradient, curvature, n_cells };
        (solution, state)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::super::design::DesignCells;
    use super::super::{solve, solve_from, targets};
    use super::*;
    use crate::error::Error;
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
        let problem = LogisticProblem {
            design: &design,
            rows: &rows,
            sign: &sign,
            weight: &weight,
            lambda: 0.5,
            penalty: None,
        };
        let (monitor, options) = (Monitor::default(), SolverOptions { tol: 1e-10, max_iter: 1000 });
        let expected = solve(&problem, None, options, &monitor).unwrap();
        assert!(expected.weights.len() > 20);
        let (_, targets, total) = targets(&problem);
        let DesignCells::F64(cells) = &design.cells else { unreachable!() };
        let mut solver = Solver::new(cells, &rows, &targets, &problem, total);
        solver.most_columns = 12;
        let found = solver.solve(&[], options, &monitor).unwrap().0;
        assert!((found.objective / expected.objective - 1.0).abs() < 1e-8);
        assert!(found.n_iter > expected.n_iter);
    }

    #[test]
    fn a_curvature_is_carried_to_nearly_the_same_rows() {
        let n = 400;
        let (design, sign) = example(n, 5);
        let weight = vec![1.0; n];
        let all: Vec<u32> = (0..n as u32).collect();
        let problem = LogisticProblem {
            design: &design,
            rows: &all,
            sign: &sign,
            weight: &weight,
            lambda: 1.0,
            penalty: None,
        };
        let last =
            solve_from(&problem, &[], SolverOptions::default(), &Monitor::default()).unwrap().1;
        let model = last.curvature.as_ref().unwrap();
        for (without, is_carried) in [(20, true), (4, false)] {
            let fewer: Vec<u32> = all.iter().copied().filter(|i| i % without != 1).collect();
            let sign: Vec<bool> = fewer.iter().map(|&i| sign[i as usize]).collect();
            let weight = &weight[..fewer.len()];
            let problem = LogisticProblem { rows: &fewer, sign: &sign, weight, ..problem };
            let (_, targets, total) = targets(&problem);
            let DesignCells::F64(cells) = &design.cells else { unreachable!() };
            let solver = Solver::new(cells, &fewer, &targets, &problem, total);
            // Twice the curvature in every row, in another problem's units.
            let h: Vec<f64> = fewer.iter().map(|&i| 2.0 * model.h[i as usize]).collect();
            let Some(carried) = solver.carried_curvature(&last, &h) else {
                assert!(!is_carried);
                continue;
            };
            assert!(is_carried && !carried.is_stale(&h) && carried.n_rows < fewer.len());
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
        let problem = LogisticProblem {
            design: &design,
            rows: &rows,
            sign: &sign,
            weight: &weight,
            lambda: 1.0,
            penalty: None,
        };
        let monitor = Monitor::default();
        monitor.stop();
        let stopped = solve(&problem, None, SolverOptions::default(), &monitor);
        assert_eq!(stopped, Err(Error::Interrupted));
    }
}
