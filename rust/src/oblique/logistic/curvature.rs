//! The quadratic model of the loss: curvatures and correlations of columns, from all rows or from a sample.
//!
//! H = X' diag(h) X, centred because the bias is free, is kept as correlations (a unit diagonal) and the roots of the
//! columns' own curvatures. Correlations may come from a sample of the rows, drawn in proportion to about their share
//! in H (their leverage; Drineas, Mahoney: RandNLA, 2016); the own curvatures come from all rows. [`Curvature::learn`]
//! updates the model to match the slopes measured along a step (BFGS; Nocedal, Wright: Numerical Optimization, 2006,
//! section 6.1). Cost of a model over k columns from m rows: O(m k^2), or by the stored cells where they are few; of a
//! step: k^2 a sweep, however many rows there are.

use crate::memory;
use std::borrow::Cow;

use super::cells::Cell;
use super::quadratic::Model;
use super::solver::{Solver, Step};
use super::sums::RowSelection;

/// Least rows that a model is made from.
const MIN_ROWS: usize = 2000;
/// The rows' curvatures may have changed by this share of their sum, else H is made anew.
const MAX_CURVATURE_CHANGE: f64 = 0.25;
/// Share of a step's gain that may be left to gain by the model, where H comes from all rows and where from a sample,
/// which is not worth more.
const PRECISION: [f64; 2] = [0.01, 0.1];
/// Share of the columns of the working set that H need not hold.
const MAX_OTHER_COLUMNS: f64 = 0.1;
/// Added to the unit diagonal of H where it comes from a sample, so that columns whose cells the sample holds in no
/// common row get bounded steps.
const RIDGE: f64 = 1e-3;
/// A column whose variance at the node is at most this share of its mean square counts as constant.
const MIN_SPREAD: f64 = 1e-12;
/// A model is updated by a step along which the slopes change by at least this share of what it predicts; its own
/// curvatures fall to no less at once.
const MIN_BEND: f64 = 1e-3;

/// The curvature of the loss over some columns, each in units of the root of its own.
#[derive(Debug, Clone)]
pub(super) struct Curvature {
    /// The columns whose correlations are known, ascending.
    pub(super) columns: Vec<usize>,
    /// The correlations of the columns, weighted by h, from some of the rows.
    pub(super) correlations: Vec<f64>,
    /// The root of the own curvature of every column of the matrix, from all rows; 0 for a column that is constant.
    pub(super) scale: Vec<f64>,
    /// Means of all columns, weighted by h.
    pub(super) means: Vec<f64>,
    /// Rows that the correlations come from.
    pub(super) n_rows: usize,
    /// The h it was made with.
    pub(super) h: Vec<f64>,
}

impl Curvature {
    /// The model at a point: `all_h` and `moments` are the curvatures of the rows and the weighted moments of all
    /// columns there, `columns` the working set. Correlations come from `rows_per_column` rows for each of them, or
    /// from all rows where that is about as cheap.
    pub(super) fn new<V: Cell>(
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
        let wanted = rows_per_column.saturating_mul(width).max(MIN_ROWS).max(cheap as usize);
        let (rows, h): (Cow<'_, [u32]>, Cow<'_, [f64]>) = if wanted >= n - n / 5 {
            (Cow::Borrowed(solver.rows), Cow::Borrowed(all_h))
        } else {
            let size =
                |(&row, h): (&u32, &f64)| h * (1.0 + f64::from(solver.design.sizes[row as usize]));
            let size: Vec<f64> = memory::collected(
                solver.rows.iter().zip(all_h).map(size),
                "the state of a node problem",
            );
            let (rows, h) = draw(solver.rows, all_h, &size, wanted);
            (Cow::Owned(rows), Cow::Owned(h))
        };
        let selected = RowSelection::new(solver.cells, &rows, solver.lambda.len());
        let ((gram, sums), shrink) = if rows.len() < n {
            (selected.gram::<f32>(&h, &columns), 1.0 / (1.0 + RIDGE))
        } else {
            (selected.gram::<f64>(&h, &columns), 1.0)
        };
        let correlations = correlations(gram, &sums, h.iter().sum(), shrink);
        let n_rows = rows.len();
        Curvature {
            columns,
            correlations,
            scale,
            means,
            n_rows,
            h: memory::copied(all_h, "the state of a node problem"),
        }
    }

    /// Whether the curvatures of the rows are no longer about those it was made with.
    /// The change is taken over all rows.
    pub(super) fn is_stale(&self, h: &[f64]) -> bool {
        let change: f64 = self.h.iter().zip(h).map(|(old, new)| (old - new).abs()).sum();
        change > MAX_CURVATURE_CHANGE * h.iter().sum::<f64>()
    }

    /// Whether it holds nearly all of the columns.
    pub(super) fn covers(&self, columns: &[usize]) -> bool {
        self.others(columns).count() as f64 <= MAX_OTHER_COLUMNS * columns.len() as f64
    }

    /// Updates the model to predict the change of slopes that a step made (BFGS; Nocedal, Wright: Numerical
    /// Optimization, 2006, section 6.1): the directions that a sample gets wrong are those in which steps go wrong.
    /// What the columns that the model does not hold add to the change, few as they are, is attributed to the others.
    pub(super) fn learn(&mut self, from: (&[f64], &[f64]), to: (&[f64], &[f64])) {
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
        if !(found > MIN_BEND * promised && promised > 0.0) {
            return;
        }
        let diagonal = |(change, expected): (&f64, &f64)| {
            let own = 1.0 + change * change / found - expected * expected / promised;
            own.max(MIN_BEND).sqrt()
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
    pub(super) fn step<V: Cell>(
        &self,
        solver: &Solver<'_, V>,
        w: &[f64],
        gradient: &[f64],
        needed: &[usize],
    ) -> Step {
        let precision = PRECISION[usize::from(self.n_rows < solver.rows.len())];
        // A constant column keeps the weight 0 in the model.
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
        (first / sum, if own > MIN_SPREAD * second { own.sqrt() } else { 0.0 })
    };
    moments.iter().map(of_column).unzip()
}

/// Centres the lower triangle of a Gram matrix of rows with weights that add up to `sum`, scales it to a unit diagonal,
/// multiplies the rest by `shrink` and fills the upper triangle.
/// Columns that are constant have no correlations.
fn correlations(mut gram: Vec<f64>, sums: &[f64], sum: f64, shrink: f64) -> Vec<f64> {
    let width = sums.len();
    let inverse = |p: usize| {
        let own = gram[p * width + p] - sums[p] * sums[p] / sum;
        if own > MIN_SPREAD * gram[p * width + p] { 1.0 / own.sqrt() } else { 0.0 }
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
/// A systematic sample: of sums in proportion to `size` it has next to no error.
fn draw(rows: &[u32], h: &[f64], size: &[f64], n: usize) -> (Vec<u32>, Vec<f64>) {
    let stretch = size.iter().sum::<f64>() / n as f64;
    let mut random = fastrand::Rng::with_seed(0);
    let (mut drawn, mut weights) = (
        memory::reserved(n, "the state of a node problem"),
        memory::reserved(n, "the state of a node problem"),
    );
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
    use super::*;

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
