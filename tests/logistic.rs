//! The node solver of oblique trees: optima, by duality gap, beside plain coordinate descent and scikit-learn; edges.

#[path = "common/sparse.rs"]
mod sparse;

use ndarray::{Array2, Axis, s};
use treeclust_rs::error::{Error, Result};
use treeclust_rs::oblique::logistic::design::Design;
use treeclust_rs::oblique::logistic::{
    self, LogisticProblem, Solution, SolverOptions, SolverState, StartPoint, StartWeights,
};
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::rows::{Csr, Rows};
use treeclust_rs::table::{Column, Table};

use sparse::csr_parts;

const TIGHT: f64 = 1e-13;

// ---- problems -------------------------------------------------------------------------------

struct Example {
    x: Array2<f64>,
    y: Vec<bool>,
    weight: Vec<f64>,
}

struct Random(fastrand::Rng);

impl Random {
    fn new(seed: u64) -> Self {
        Random(fastrand::Rng::with_seed(seed))
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.0.f64(), self.0.f64());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn normals(&mut self, n: usize, d: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, d), |_| self.normal())
    }

    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.f64()
    }

    fn chance(&mut self, share: f64) -> bool {
        self.0.f64() < share
    }

    /// Some of the numbers below `n`, in any order.
    fn some(&mut self, n: usize, size: usize) -> Vec<u32> {
        let mut all: Vec<u32> = (0..n as u32).collect();
        self.0.shuffle(&mut all);
        all.truncate(size);
        all
    }
}

/// Correlated columns and labels by a noisy half-space.
fn example_of(n: usize, d: usize, seed: u64, noise: f64) -> Example {
    let mut random = Random::new(seed);
    let mixing = Array2::eye(d) + 0.3 * random.normals(d, d);
    let x = random.normals(n, d).dot(&mixing);
    let direction = random.normals(d, 1);
    let scores = x.dot(&direction);
    let level = noise * (d as f64).sqrt();
    let y = scores.iter().map(|score| score + level * random.normal() > 0.4).collect();
    let weight = (0..n).map(|_| random.uniform(0.1, 3.0)).collect();
    Example { x, y, weight }
}

fn example(seed: u64) -> Example {
    example_of(400, 12, seed, 1.5)
}

/// Most cells are 0, and every ninth row is empty.
fn sparse_example(seed: u64) -> Example {
    let Example { mut x, y, weight } = example_of(900, 60, seed, 1.5);
    x.mapv_inplace(|x| if x.abs() < 1.5 { 0.0 } else { x });
    for i in (0..900).step_by(9) {
        x.row_mut(i).fill(0.0);
    }
    Example { x, y, weight }
}

/// The two examples, each in the form that suits it.
fn both(seed: u64) -> [(Example, Design); 2] {
    let (dense, sparse) = (example(seed), sparse_example(seed));
    let designs = (dense_design(&dense.x), sparse_design(&sparse.x));
    [(dense, designs.0), (sparse, designs.1)]
}

fn dense_design(x: &Array2<f64>) -> Design {
    Design::from_table(&Table::from_matrix(x.view()).unwrap()).unwrap()
}

fn sparse_design(x: &Array2<f64>) -> Design {
    let (indptr, indices, values) = csr_parts(x);
    let csr = Csr::from_i64(&indptr, &indices, &values, x.ncols()).unwrap();
    Design::from_rows(Rows::sparse(&csr).unwrap()).unwrap()
}

// ---- solves ---------------------------------------------------------------------------------

/// The arguments of a solve; rows: none for all, weights: none for 1.
#[derive(Clone, Copy)]
struct Case<'a> {
    lambda: f64,
    rows: Option<&'a [u32]>,
    weight: Option<&'a [f64]>,
    penalty: Option<&'a [f64]>,
    from: &'a [StartPoint<'a>],
    tol: f64,
    max_iter: usize,
}

impl Case<'_> {
    fn new(lambda: f64) -> Self {
        let (rows, weight, penalty) = (None, None, None);
        Case { lambda, rows, weight, penalty, from: &[], tol: TIGHT, max_iter: 1000 }
    }
}

#[derive(Clone)]
struct Outcome {
    solution: Solution,
    state: SolverState,
    /// All weights.
    w: Vec<f64>,
}

impl Outcome {
    fn columns(&self) -> Vec<u32> {
        self.solution.weights.iter().map(|w| w.0).collect()
    }

    fn weights(&self) -> Vec<f64> {
        self.solution.weights.iter().map(|w| w.1).collect()
    }

    fn start(&self) -> StartWeights<'_> {
        StartWeights { weights: &self.solution.weights, bias: self.solution.bias }
    }
}

fn try_solve(design: &Design, y: &[bool], case: Case<'_>) -> Result<(Solution, SolverState)> {
    let all: Vec<u32> = (0..y.len() as u32).collect();
    let ones = vec![1.0; y.len()];
    let problem = LogisticProblem {
        design,
        rows: case.rows.unwrap_or(&all),
        sign: y,
        weight: case.weight.unwrap_or(&ones),
        lambda: case.lambda,
        penalty: case.penalty,
    };
    let options = SolverOptions { tol: case.tol, max_iter: case.max_iter };
    logistic::solve_from(&problem, case.from, options, &Monitor::default())
}

fn solve(design: &Design, y: &[bool], case: Case<'_>) -> Outcome {
    let (solution, state) = try_solve(design, y, case).unwrap();
    assert!(solution.bias.is_finite());
    assert!(!solution.objective.is_nan() && !solution.gap.is_nan());
    assert!(!solution.duality_gap.is_nan());
    assert!(solution.weights.iter().all(|w| w.1 != 0.0 && w.1.is_finite()));
    assert!(solution.weights.is_sorted_by(|a, b| a.0 < b.0));
    let mut w = vec![0.0; design.n_columns()];
    for &(j, weight) in &solution.weights {
        w[j as usize] = weight;
    }
    Outcome { solution, state, w }
}

fn refused(result: Result<impl Sized>, message: &str) {
    let error = result.err().expect("it is refused").to_string();
    assert!(error.contains(message), "{error}");
}

fn close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} {b}");
}

fn all_close(a: &[f64], b: &[f64], relative: f64, absolute: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= absolute + relative * b.abs(), "{a} {b}");
    }
}

/// Entries of a vector by rows.
fn take<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&row| values[row as usize]).collect()
}

// ---- oracles --------------------------------------------------------------------------------

/// ln(1 + exp(x)), without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn margins(x: &Array2<f64>, w: &[f64], bias: f64) -> Vec<f64> {
    let of_row = |row: ndarray::ArrayView1<'_, f64>| -> f64 {
        bias + row.iter().zip(w).map(|(x, w)| x * w).sum::<f64>()
    };
    x.rows().into_iter().map(of_row).collect()
}

/// The objective, from its definition.
fn objective(
    x: &Array2<f64>,
    y: &[bool],
    weight: &[f64],
    lambda: f64,
    penalty: Option<&[f64]>,
    (w, bias): (&[f64], f64),
) -> f64 {
    let margins = margins(x, w, bias);
    let rows = margins.iter().zip(y).zip(weight);
    let loss: f64 = rows.map(|((m, y), w)| w * softplus(if *y { -m } else { *m })).sum();
    let share = |j: usize| penalty.map_or(1.0, |penalty| penalty[j]);
    loss + lambda * w.iter().enumerate().map(|(j, w)| w.abs() * share(j)).sum::<f64>()
}

/// How far (w, b) is from the optimum at most, as a share: primal minus a feasible dual point.
fn duality_gap(example: &Example, lambda: f64, w: &[f64], bias: f64) -> f64 {
    let Example { x, y, weight } = example;
    let signed = |y: bool, x: f64| if y { x } else { -x };
    let margins = margins(x, w, bias);
    let mut p: Vec<f64> = margins.iter().zip(y).map(|(m, y)| expit(-signed(*y, *m))).collect();
    // Feasible: the sides balance, and no column's gradient exceeds the penalty.
    let side = |side: bool, p: &[f64]| -> f64 {
        (0..p.len()).filter(|&i| y[i] == side).map(|i| weight[i] * p[i]).sum()
    };
    let sides = [side(false, &p), side(true, &p)];
    let least = sides[0].min(sides[1]);
    p.iter_mut().zip(y).for_each(|(p, y)| *p *= least / sides[usize::from(*y)]);
    let slope = |column: ndarray::ArrayView1<'_, f64>| -> f64 {
        (0..p.len()).map(|i| column[i] * signed(y[i], weight[i] * p[i])).sum::<f64>().abs()
    };
    let largest = x.columns().into_iter().map(slope).fold(0.0, f64::max);
    let scale = (lambda / largest).min(1.0);
    let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    let dual: f64 = p
        .iter()
        .zip(weight)
        .map(|(p, weight)| weight * (entropy(p * scale) + entropy(1.0 - p * scale)))
        .sum();
    let primal = objective(x, y, weight, lambda, None, (w, bias));
    (primal - dual) / primal
}

fn largest_lambda(example: &Example) -> f64 {
    let Example { x, y, weight } = example;
    let total: f64 = weight.iter().sum();
    let right: f64 = weight.iter().zip(y).filter(|(_, y)| **y).map(|(w, _)| w).sum();
    let residual = |i: usize| weight[i] * (f64::from(u8::from(y[i])) - right / total);
    let slope = |column: ndarray::ArrayView1<'_, f64>| -> f64 {
        column.iter().enumerate().map(|(i, x)| x * residual(i)).sum::<f64>().abs()
    };
    x.columns().into_iter().map(slope).fold(0.0, f64::max)
}

/// The optimum by cyclic coordinate descent, each step by the largest curvature there can be: slow, but it always converges.
fn coordinate_descent(example: &Example, lambda: f64) -> (Vec<f64>, f64) {
    let Example { x, y, weight } = example;
    let (n, d) = x.dim();
    let columns: Vec<Vec<f64>> = x.columns().into_iter().map(|column| column.to_vec()).collect();
    let bound = |column: &[f64]| -> f64 {
        0.25 * column.iter().zip(weight).map(|(x, w)| w * x * x).sum::<f64>()
    };
    let curvature: Vec<f64> = columns.iter().map(|column| bound(column)).collect();
    let target: Vec<f64> = y.iter().map(|y| f64::from(u8::from(*y))).collect();
    let (mut w, mut bias, mut margins) = (vec![0.0; d], 0.0, vec![0.0; n]);
    let total: f64 = weight.iter().sum();
    loop {
        let mut largest: f64 = 0.0;
        for j in 0..=d {
            let slope: f64 = (0..n)
                .map(|i| {
                    let x = if j < d { columns[j][i] } else { 1.0 };
                    if x == 0.0 { 0.0 } else { x * weight[i] * (expit(margins[i]) - target[i]) }
                })
                .sum();
            let step = if j < d {
                let goal = w[j] - slope / curvature[j];
                goal.signum() * (goal.abs() - lambda / curvature[j]).max(0.0) - w[j]
            } else {
                -slope / (0.25 * total)
            };
            if step != 0.0 {
                *(if j < d { &mut w[j] } else { &mut bias }) += step;
                for i in 0..n {
                    margins[i] += step * if j < d { columns[j][i] } else { 1.0 };
                }
                largest = largest.max(step.abs());
            }
        }
        if largest < 1e-7 {
            return (w, bias);
        }
    }
}

// ---- optima ---------------------------------------------------------------------------------

#[test]
fn the_duality_gap_closes() {
    for (example, design) in both(0) {
        for share in [0.5, 0.1, 0.02] {
            let lambda = share * largest_lambda(&example);
            let case = Case { weight: Some(&example.weight), ..Case::new(lambda) };
            let Outcome { solution, w, .. } = solve(&design, &example.y, case);
            assert!(duality_gap(&example, lambda, &w, solution.bias) < 1e-6);
            assert!(solution.duality_gap < 1e-6);
            let Example { x, y, weight } = &example;
            let expected = objective(x, y, weight, lambda, None, (&w, solution.bias));
            close(solution.objective, expected, 1e-12);
        }
    }
}

/// The conditions of Karush, Kuhn and Tucker, from the definition of the objective.
#[test]
fn no_column_and_no_bias_can_gain() {
    for (example, design) in both(2) {
        let Example { x, y, weight } = &example;
        let d = x.ncols();
        let shares: Vec<f64> = (0..d).map(|j| 0.5 * 4f64.powf(j as f64 / (d - 1) as f64)).collect();
        for penalty in [None, Some(&shares[..])] {
            for share in [0.3, 0.05, 0.005] {
                let lambda = share * largest_lambda(&example);
                let case = Case { weight: Some(weight), penalty, ..Case::new(lambda) };
                let Outcome { solution, w, .. } = solve(&design, y, case);
                let slope: Vec<f64> = margins(x, &w, solution.bias)
                    .iter()
                    .zip(y)
                    .zip(weight)
                    .map(|((m, y), weight)| weight * (expit(*m) - f64::from(u8::from(*y))))
                    .collect();
                let total: f64 = weight.iter().sum();
                assert!(slope.iter().sum::<f64>().abs() < 1e-7 * total);
                assert!(!solution.weights.is_empty());
                for (j, column) in x.columns().into_iter().enumerate() {
                    let sum: f64 = column.iter().zip(&slope).map(|(x, s)| x * s).sum();
                    let of_column = sum / (lambda * penalty.map_or(1.0, |penalty| penalty[j]));
                    assert!(of_column.abs() < 1.0 + 1e-4, "{j}: {of_column}");
                    if w[j] != 0.0 {
                        assert!((of_column + w[j].signum()).abs() < 1e-4, "{j}: {of_column}");
                    }
                }
            }
        }
    }
}

#[test]
fn coordinate_descent_finds_the_same_optimum() {
    for (example, design) in both(1) {
        for share in [0.3, 0.01] {
            let lambda = share * largest_lambda(&example);
            let Example { x, y, weight } = &example;
            let (expected, bias) = coordinate_descent(&example, lambda);
            let theirs = objective(x, y, weight, lambda, None, (&expected, bias));
            let opposite: Vec<bool> = y.iter().map(|y| !y).collect();
            let case = Case { weight: Some(weight), ..Case::new(lambda) };
            let wrong = solve(&design, &opposite, Case { tol: 1e-2, ..case });
            let start = wrong.start();
            for from in [&[][..], &[StartPoint::Weights(&start)]] {
                let ours = solve(&design, y, Case { from, ..case });
                close(ours.solution.objective, theirs, 1e-6);
                all_close(&ours.w, &expected, 0.0, 1e-3);
            }
        }
    }
}

/// Numbers that any language can make: a multiplicative generator of 31 bits (Park, Miller).
struct Portable(u64);

impl Portable {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0 * 48271 % 2_147_483_647;
        self.0 % n
    }
}

/// 400 rows of 20 measurements in units from 1e-3 to 1e3, and 500 rows of 36 grey values, many of them 0 everywhere.
fn portable(images: bool) -> (Array2<f64>, Vec<bool>) {
    let mut random = Portable(if images { 7 } else { 5 });
    let (n, d) = if images { (500, 36) } else { (400, 20) };
    let mut x = Array2::zeros((n, d));
    let mut y = vec![];
    for i in 0..n {
        let mut score = random.below(41) as i64 - 20;
        let size = random.below(9);
        for j in 0..d {
            let cell = (random.below(9) + size) as i64;
            let is_border = images && (j % 6 == 0 || random.below(3) == 0);
            let cell = if is_border { 0 } else { cell };
            score += (cell - 8) * ((j % 5) as i64 - 2);
            let unit = [1e-3, 1.0, 1e3][j % 3];
            x[[i, j]] = cell as f64 * if images { 1.0 } else { unit };
        }
        y.push(score > 0);
    }
    (x, y)
}

/// Objectives and weights of scikit-learn 1.9.1, by
///
/// ```python
/// import numpy as np
/// from sklearn.linear_model import LogisticRegression
///
/// def portable(images):
///     state = 7 if images else 5
///     def below(n):
///         nonlocal state
///         state = state * 48271 % 2147483647
///         return state % n
///     n, d = (500, 36) if images else (400, 20)
///     X, y = np.zeros((n, d)), []
///     for i in range(n):
///         score = below(41) - 20
///         size = below(9)
///         for j in range(d):
///             cell = below(9) + size
///             if images and (j % 6 == 0 or below(3) == 0):
///                 cell = 0
///             score += (cell - 8) * (j % 5 - 2)
///             X[i, j] = cell * (1.0 if images else [1e-3, 1.0, 1e3][j % 3])
///         y.append(score > 0)
///     return X, np.array(y)
///
/// for images in (False, True):
///     X, y = portable(images)
///     weight = np.where(y, 1.0, 2.0)
///     unit = X.std(axis=0) + (X.std(axis=0) == 0)
///     Z = X / unit
///     for solver, options in (("liblinear", {"intercept_scaling": 1e4, "tol": 1e-7, "max_iter": 10_000}),
///                             ("saga", {"tol": 1e-9, "max_iter": 20_000})):
///         m = LogisticRegression(l1_ratio=1, solver=solver, C=0.5, random_state=0, **options)
///         m.fit(Z, y, sample_weight=weight)
///         w, b = m.coef_[0], m.intercept_[0]
///         margins = np.where(y, 1.0, -1.0) * (Z @ w + b)
///         print(images, solver, repr(float(weight @ np.logaddexp(0, -margins) + 2 * np.abs(w).sum())))
///         print([round(float(x), 4) for x in w])
/// ```
#[test]
fn scikit_learn_finds_the_same_optimum() {
    for (images, liblinear, saga, expected) in FIXTURES {
        let (x, y) = portable(images);
        let weight: Vec<f64> = y.iter().map(|y| if *y { 1.0 } else { 2.0 }).collect();
        let deviation = x.std_axis(Axis(0), 0.0);
        let penalty: Vec<f64> =
            deviation.iter().map(|s| if *s == 0.0 { 1.0 } else { *s }).collect();
        let case = Case { weight: Some(&weight), penalty: Some(&penalty), ..Case::new(2.0) };
        for design in [dense_design(&x), sparse_design(&x)] {
            let ours = solve(&design, &y, case);
            close(ours.solution.objective, liblinear, 1e-6);
            close(ours.solution.objective, saga, 1e-6);
            let standard: Vec<f64> = ours.w.iter().zip(&penalty).map(|(w, p)| w * p).collect();
            all_close(&standard, expected, 0.0, 1e-2);
        }
    }
}

/// Images or not, the objectives of liblinear and saga, and the weights of liblinear.
#[rustfmt::skip]
const FIXTURES: [(bool, f64, f64, &[f64]); 2] = [
    (false, 238.21838636795152, 238.21838636483756, &[
        -0.9053, -0.7303, 0.0230, 0.2141, 1.2545, -1.0065, -0.0411, -0.4146, 0.5773, 1.1299,
        -0.8060, -0.6266, 0.0589, 0.5305, 1.0348, -1.0047, -0.7015, 0.0799, 0.3744, 0.8740,
    ]),
    (true, 176.0504800450488, 176.05048004090045, &[
        0.0000, -0.8608, 0.1369, 0.6015, 1.5121, -1.7143, 0.0000, 0.0000, 0.9310, 1.0295, -1.2866, -0.9594,
        0.0000, 0.8511, 1.2481, -1.0962, -0.6830, 0.0000, 0.0000, 1.1982, -1.2961, -0.5966, -0.1213, 0.7190,
        0.0000, -1.1172, -0.6813, -0.1157, 0.5374, 1.0174, 0.0000, -0.3463, -0.0357, 0.3961, 1.1603, -0.9384,
    ]),
];

#[test]
fn the_tolerance_is_about_kept() {
    for tol in [1e-2, 1e-3, 1e-5] {
        for seed in 0..10 {
            let example = example(seed);
            let design = dense_design(&example.x);
            let lambda = 0.02 * largest_lambda(&example);
            let case = Case { weight: Some(&example.weight), ..Case::new(lambda) };
            let best = solve(&design, &example.y, case).solution.objective;
            let found = solve(&design, &example.y, Case { tol, ..case }).solution;
            assert!(best * (1.0 - 1e-12) <= found.objective);
            assert!(found.objective <= best * (1.0 + 2.0 * tol));
            assert!(found.gap <= tol);
            // The duality gap is a bound, not an estimate.
            assert!(best >= found.objective * (1.0 - found.duality_gap) * (1.0 - 1e-12));
        }
    }
}

/// So many columns that the curvature comes from a sample first.
#[test]
fn a_sample_of_rows_leads_to_the_optimum_of_all() {
    let (n, d) = (30_000, 40);
    let mut random = Random::new(0);
    let mut x = Array2::from_shape_fn((n, d), |_| {
        let cell = random.normal();
        if random.chance(0.3) { cell } else { 0.0 }
    });
    // A column with a handful of cells.
    x.column_mut(7).mapv_inplace(|_| if random.chance(2e-4) { 1.0 } else { 0.0 });
    let x = x.mapv(|x| f64::from(x as f32));
    let direction = random.normals(d, 1);
    let y = x.dot(&direction).iter().map(|score| score + random.normal() > 0.0).collect();
    let example = Example { x, y, weight: vec![1.0; n] };
    let found = solve(&sparse_design(&example.x), &example.y, Case::new(1.0));
    assert!(duality_gap(&example, 1.0, &found.w, found.solution.bias) < 1e-6);
    let single = example.x.mapv(|x| x as f32);
    let dense = Design::from_table(&Table::from_matrix(single.view()).unwrap()).unwrap();
    let dense = solve(&dense, &example.y, Case::new(1.0));
    close(dense.solution.objective, found.solution.objective, 1e-6);
}

// ---- forms of input -------------------------------------------------------------------------

#[test]
fn all_forms_of_a_matrix_are_alike() {
    let (n, d) = (500, 30);
    let mut random = fastrand::Rng::with_seed(0);
    let x = Array2::from_shape_fn((n, d), |_| {
        let cell = random.u8(..200);
        if random.f64() < 0.7 { 0 } else { cell }
    });
    let y: Vec<bool> = (0..n)
        .map(|i| u32::from(x[[i, 0]]) + u32::from(x[[i, 1]]) + random.u32(..100) > 100)
        .collect();
    let columns = x.t().as_standard_layout().reversed_axes().to_owned();
    let (single, double) = (x.mapv(f32::from), x.mapv(f64::from));
    let list: Vec<Column<'_>> = columns.columns().into_iter().map(Column::from).collect();
    let (indptr, indices, values) = csr_parts(&double);
    let values_f32: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    let (starts, places) = (
        indptr.iter().map(|i| *i as usize).collect::<Vec<_>>(),
        indices.iter().map(|i| *i as u32).collect::<Vec<_>>(),
    );
    let csr = Csr::from_i64(&indptr, &indices, &values, d).unwrap();
    let csr_f32 = Csr::new(starts, places, &values_f32[..], d).unwrap();
    let of_table = |table: Result<Table<'_>>| Design::from_table(&table.unwrap()).unwrap();
    let forms = [
        of_table(Table::from_matrix(x.view())),
        of_table(Table::from_matrix(columns.view())),
        of_table(Table::from_matrix(single.view())),
        of_table(Table::from_matrix(double.view())),
        of_table(Table::new(list)),
        Design::from_csr::<_, u16>(&csr).unwrap(),
        Design::from_csr::<_, u32>(&csr).unwrap(),
        Design::from_csr::<_, u16>(&csr_f32).unwrap(),
        Design::from_csr::<_, u32>(&csr_f32).unwrap(),
    ];
    let expected = solve(&forms[0], &y, Case::new(50.0));
    assert!((6..30).contains(&expected.columns().len()));
    for form in &forms {
        let found = solve(form, &y, Case::new(50.0));
        close(found.solution.objective, expected.solution.objective, 1e-11);
        assert_eq!(found.columns(), expected.columns());
        all_close(&found.weights(), &expected.weights(), 1e-4, 0.0);
    }
}

#[test]
fn some_rows_are_a_problem_of_their_own() {
    let Example { x, y, weight } = example(0);
    let rows = Random::new(3).some(y.len(), 150);
    let indices: Vec<usize> = rows.iter().map(|&row| row as usize).collect();
    let (y_there, weight_there) = (take(&y, &rows), take(&weight, &rows));
    let alone = dense_design(&x.select(Axis(0), &indices));
    let case = Case { weight: Some(&weight_there), ..Case::new(2.0) };
    let expected = solve(&alone, &y_there, case);
    let whole = dense_design(&x);
    for design in [&whole, &sparse_design(&x)] {
        let found = solve(design, &y_there, Case { rows: Some(&rows), ..case });
        close(found.solution.objective, expected.solution.objective, 1e-10);
        assert_eq!(found.columns(), expected.columns());
    }
    // Rows of weight 0 take no part.
    let mut masked = vec![0.0; y.len()];
    indices.iter().for_each(|&i| masked[i] = weight[i]);
    let found = solve(&whole, &y, Case { weight: Some(&masked), ..Case::new(2.0) });
    close(found.solution.objective, expected.solution.objective, 1e-10);
}

#[test]
fn the_scale_of_weights_and_columns_does_not_matter() {
    let Example { x, y, weight } = example(0);
    let design = dense_design(&x);
    let case = Case { weight: Some(&weight), ..Case::new(3.0) };
    let expected = solve(&design, &y, case);
    for factor in [1e-300, 1e-12, 1e15, 1e300] {
        let scaled: Vec<f64> = weight.iter().map(|w| w * factor).collect();
        let case = Case { weight: Some(&scaled), ..Case::new(3.0 * factor) };
        let found = solve(&design, &y, case);
        close(found.solution.objective, expected.solution.objective * factor, 1e-9);
        all_close(&found.w, &expected.w, 1e-4, 1e-6);
        let exact = 2f64.powi(factor.log2().round() as i32);
        let case = Case { weight: Some(&weight), ..Case::new(3.0 * exact) };
        let found = solve(&dense_design(&x.mapv(|x| x * exact)), &y, case);
        let w: Vec<f64> = found.w.iter().map(|w| w * exact).collect();
        all_close(&w, &expected.w, 1e-4, 1e-6);
    }
}

#[test]
fn columns_far_from_the_origin_are_no_harder() {
    let Example { x, y, weight } = example_of(400, 5, 0, 1.5);
    let x = x.mapv(|x| (x * 2f64.powi(20)).round() / 2f64.powi(20)); // exact after the shift
    let case = Case { weight: Some(&weight), ..Case::new(1.0) };
    let expected = solve(&dense_design(&x), &y, case);
    let found = solve(&dense_design(&x.mapv(|x| x + 2f64.powi(30))), &y, case);
    close(found.solution.objective, expected.solution.objective, 1e-10);
    all_close(&found.weights(), &expected.weights(), 1e-5, 0.0);
}

#[test]
fn a_penalty_by_column_is_a_column_in_other_units() {
    let Example { x, y, weight } = example(0);
    let unit: Vec<f64> = (0..12).map(|j| 10f64.powf(-3.0 + 6.0 * j as f64 / 11.0)).collect();
    let case = Case { weight: Some(&weight), ..Case::new(2.0) };
    let expected = solve(&dense_design(&x), &y, case);
    let scaled = Array2::from_shape_fn(x.dim(), |(i, j)| x[[i, j]] * unit[j]);
    let found = solve(&dense_design(&scaled), &y, Case { penalty: Some(&unit), ..case });
    close(found.solution.objective, expected.solution.objective, 1e-9);
    let w: Vec<f64> = found.w.iter().zip(&unit).map(|(w, unit)| w * unit).collect();
    all_close(&w, &expected.w, 1e-4, 1e-6);
}

// ---- starts ---------------------------------------------------------------------------------

#[test]
fn a_warm_start_arrives_at_the_same_optimum_in_fewer_steps() {
    let (x, y) = portable(true);
    let design = dense_design(&x);
    let cold = solve(&design, &y, Case::new(5.0));
    let start = cold.start();
    let from = &[StartPoint::Weights(&start)];
    let again = solve(&design, &y, Case { from, tol: 1e-9, ..Case::new(5.0) });
    assert_eq!(again.solution.n_iter, 0);
    close(again.solution.objective, cold.solution.objective, 1e-9);
    let flipped: Vec<bool> = y.iter().enumerate().map(|(i, y)| y ^ (i % 100 == 0)).collect();
    for (labels, lambda) in [(&y, 5.5), (&flipped, 5.0)] {
        let case = Case { tol: 1e-6, ..Case::new(lambda) };
        let expected = solve(&design, labels, case).solution;
        let found = solve(&design, labels, Case { from, ..case }).solution;
        close(found.objective, expected.objective, 2e-6);
        assert!(found.n_iter < expected.n_iter, "{} {}", found.n_iter, expected.n_iter);
    }
}

#[test]
fn the_state_of_a_solve_leads_to_the_optimum_of_the_next() {
    for (example, design) in both(0) {
        let mut lambda = 0.05 * largest_lambda(&example);
        let Example { x, mut y, mut weight } = example;
        let mut random = Random::new(0);
        let case = Case { weight: Some(&weight), tol: 1e-3, ..Case::new(lambda) };
        let mut state = solve(&design, &y, case).state;
        for step in 0..6 {
            // Labels, weights, lambda and penalties all change, a little or a lot.
            let share = if step == 3 { 0.5 } else { 0.02 };
            y.iter_mut().for_each(|y| *y ^= random.chance(share));
            weight.iter_mut().for_each(|w| *w *= random.uniform(0.9, 1.1));
            lambda *= 0.9;
            let penalty: Vec<f64> = (0..x.ncols()).map(|_| random.uniform(0.8, 1.2)).collect();
            let case = Case { weight: Some(&weight), penalty: Some(&penalty), ..Case::new(lambda) };
            let expected = solve(&design, &y, case).solution;
            let from = &[StartPoint::State(&state)];
            solve_close(&design, &y, Case { from, tol: 1e-3, ..case }, &expected, 1e-3);
            let found = solve_close(&design, &y, Case { from, ..case }, &expected, 1e-9);
            let next = found.state.clone();
            let from = &[StartPoint::State(&next)];
            let again = solve(&design, &y, Case { from, tol: 1e-6, ..case });
            assert_eq!(again.solution.n_iter, 0);
            assert_eq!(again.solution.weights, found.solution.weights);
            state = next;
        }
    }
}

/// Solves, and compares the objective with that of another solution.
fn solve_close(
    design: &Design,
    y: &[bool],
    case: Case<'_>,
    expected: &Solution,
    relative: f64,
) -> Outcome {
    let found = solve(design, y, case);
    close(found.solution.objective, expected.objective, relative);
    found
}

/// Weights stay as they are: only rows whose labels change need to be read again.
#[test]
fn slopes_of_a_state_lead_to_the_optimum_too() {
    for (example, design) in both(0) {
        for share in [0.0, 0.01, 0.05, 0.2] {
            let mut lambda = 0.02 * largest_lambda(&example);
            let (weight, mut y) = (&example.weight, example.y.clone());
            let mut random = Random::new(0);
            let case = Case { weight: Some(weight), tol: 1e-3, ..Case::new(lambda) };
            let mut state = solve(&design, &y, case).state;
            for factor in [1.1, 0.9, 1.0, 0.3] {
                y.iter_mut().for_each(|y| *y ^= random.chance(share));
                lambda *= factor;
                let case = Case { weight: Some(weight), ..Case::new(lambda) };
                let expected = solve(&design, &y, case).solution;
                let mut last = None;
                for tol in [0.1, 1e-3, TIGHT] {
                    let from = &[StartPoint::State(&state)];
                    let case = Case { from, tol, ..case };
                    let found = solve_close(&design, &y, case, &expected, tol.max(1e-9));
                    assert!(found.solution.gap <= tol);
                    last = Some(found);
                }
                let found = last.unwrap();
                let from = &[StartPoint::State(&found.state)];
                let again = solve(&design, &y, Case { from, max_iter: 0, ..case });
                assert_eq!(again.solution.n_iter, 0);
                assert_eq!(again.solution.weights, found.solution.weights);
                state = found.state;
            }
        }
    }
}

#[test]
fn the_state_of_a_solve_is_used_when_rows_come_and_go() {
    for (example, design) in both(0) {
        for share in [0.0, 0.02, 0.08, 0.3] {
            let mut lambda = 0.02 * largest_lambda(&example);
            let (y, mut weight) = (&example.y, example.weight.clone());
            let mut random = Random::new(2);
            let mut there: Vec<bool> = y.iter().map(|_| random.chance(0.8)).collect();
            let rows_of = |there: &[bool]| -> Vec<u32> {
                (0..there.len() as u32).filter(|&i| there[i as usize]).collect()
            };
            let rows = rows_of(&there);
            let first = take(&weight, &rows);
            let case = Case { rows: Some(&rows), weight: Some(&first), ..Case::new(lambda) };
            let mut state = solve(&design, &take(y, &rows), case).state;
            // Of weights and lambda, which changes nothing.
            for scale in [1.0, 1.0, 7.0] {
                there.iter_mut().for_each(|there| *there ^= random.chance(share));
                let rows = rows_of(&there);
                weight.iter_mut().for_each(|w| *w *= scale);
                lambda *= scale;
                let (y, weight) = (take(y, &rows), take(&weight, &rows));
                let case = Case { rows: Some(&rows), weight: Some(&weight), ..Case::new(lambda) };
                let expected = solve(&design, &y, case).solution;
                let mut last = None;
                for tol in [1e-3, 1e-6, TIGHT] {
                    let from = &[StartPoint::State(&state)];
                    let above = (4.0 * tol).max(1e-9);
                    let found =
                        solve_close(&design, &y, Case { from, tol, ..case }, &expected, above);
                    assert!(found.solution.gap <= tol); // an estimate: the curvature is that of other rows
                    last = Some(found);
                }
                state = last.unwrap().state;
            }
        }
    }
}

#[test]
fn the_state_of_a_solve_is_worth_its_weights_on_other_rows() {
    let Example { x, y, weight } = example(0);
    let design = dense_design(&x);
    let case = Case { weight: Some(&weight), ..Case::new(2.0) };
    let first = solve(&design, &y, case);
    let rows = Random::new(0).some(y.len(), 300);
    let (y_there, weight_there) = (take(&y, &rows), take(&weight, &rows));
    let there =
        Case { rows: Some(&rows), weight: Some(&weight_there), tol: 1e-6, ..Case::new(2.0) };
    let start = first.start();
    let expected = solve(&design, &y_there, Case { from: &[StartPoint::Weights(&start)], ..there });
    let from = &[StartPoint::State(&first.state)];
    let found = solve(&design, &y_there, Case { from, ..there });
    assert_eq!(found.solution.n_iter, expected.solution.n_iter);
    assert!(found.solution.n_iter > 0);
    close(found.solution.objective, expected.solution.objective, 1e-12);
    // From one side only there is no state, which is a start as good as none.
    let nothing = solve(&design, &vec![true; y.len()], Case::new(2.0)).state;
    let found = solve(&design, &y, Case { from: &[StartPoint::State(&nothing)], ..case });
    close(found.solution.objective, first.solution.objective, 1e-9);
    let other = try_solve(&dense_design(&x), &y, Case { from, ..Case::new(2.0) });
    refused(other, "belongs to another matrix");
}

#[test]
fn a_bad_start_does_no_harm() {
    let Example { mut x, y, weight } = example(0);
    let design = dense_design(&x);
    let case = Case { weight: Some(&weight), ..Case::new(1.0) };
    let expected = solve(&design, &y, case);
    for scale in [-1.0, 1e3, 1e150, 1e305] {
        let weights: Vec<(u32, f64)> =
            (0..12).map(|j| (j, scale * (-1.0 + 3.0 * f64::from(j) / 11.0))).collect();
        let start = StartWeights { weights: &weights, bias: -scale };
        let found = solve(&design, &y, Case { from: &[StartPoint::Weights(&start)], ..case });
        close(found.solution.objective, expected.solution.objective, 1e-9);
    }
    // A column of the start that is constant among the rows goes.
    x.slice_mut(s![..200, 3]).fill(4.0);
    let start = StartWeights { weights: &[(3, 5.0)], bias: -20.0 };
    let rows: Vec<u32> = (0..200).collect();
    let from = &[StartPoint::Weights(&start)];
    let case = Case { rows: Some(&rows), from, ..Case::new(0.01) };
    let found = solve(&dense_design(&x), &y[..200], case);
    assert!(!found.columns().contains(&3));
}

// ---- edges ----------------------------------------------------------------------------------

#[test]
fn from_the_largest_lambda_on_there_is_only_a_bias() {
    let example = example(0);
    let largest = largest_lambda(&example);
    let Example { x, y, weight } = &example;
    let side = |side: bool| -> f64 {
        weight.iter().zip(y).filter(|(_, y)| **y == side).map(|(w, _)| w).sum()
    };
    let bias = (side(true) / side(false)).ln();
    let case = Case { weight: Some(weight), ..Case::new(1.0) };
    let dense = dense_design(x);
    let warm = solve(&dense, y, case);
    let start = warm.start();
    for design in [&dense, &sparse_design(x)] {
        for from in [&[][..], &[StartPoint::Weights(&start)]] {
            let found = solve(design, y, Case { lambda: 1.001 * largest, from, ..case });
            assert!(found.columns().is_empty());
            close(found.solution.bias, bias, 1e-6);
        }
        assert_eq!(solve(design, y, Case { lambda: 0.99 * largest, ..case }).columns().len(), 1);
    }
}

#[test]
fn one_side_only_gives_a_large_bias() {
    let Example { x, weight, .. } = example(0);
    let design = dense_design(&x);
    let case = Case { weight: Some(&weight), ..Case::new(1.0) };
    for (side, sign) in [(true, 1.0), (false, -1.0)] {
        let found = solve(&design, &vec![side; 400], case).solution;
        assert!(found.weights.is_empty());
        assert_eq!((found.gap, found.duality_gap), (0.0, 0.0));
        close(found.bias, sign * 52.0 * std::f64::consts::LN_2, 1e-6);
        close(found.objective, weight.iter().sum::<f64>() * 2f64.powi(-52), 1e-6);
    }
}

#[test]
fn no_rows_give_nothing() {
    let Example { x, y, .. } = example(0);
    let design = dense_design(&x);
    for n in [0, 400] {
        let rows: Vec<u32> = (0..n).collect();
        let weight = vec![0.0; n as usize];
        let case = Case { rows: Some(&rows), weight: Some(&weight), ..Case::new(1.0) };
        let found = solve(&design, &y[..n as usize], case).solution;
        assert!(found.weights.is_empty());
        assert_eq!((found.bias, found.objective), (0.0, 0.0));
    }
}

#[test]
fn separable_rows_stay_bounded() {
    let Example { x, y, .. } = example_of(400, 12, 0, 0.0);
    let design = dense_design(&x);
    for lambda in [0.0, 1e-300, 1e-9] {
        let found = solve(&design, &y, Case { tol: 1e-6, ..Case::new(lambda) });
        assert!(found.solution.objective < 1e-3);
        assert!(found.w.iter().all(|w| w.abs() < 1e12));
        let margins = margins(&x, &found.w, found.solution.bias);
        assert!(margins.iter().zip(&y).all(|(m, y)| (*m > 0.0) == *y));
    }
}

#[test]
fn no_penalty_gives_the_unpenalised_optimum() {
    let Example { x, y, weight } = example(0);
    let case = Case { weight: Some(&weight), ..Case::new(0.0) };
    let found = solve(&dense_design(&x), &y, case);
    let residual: Vec<f64> = margins(&x, &found.w, found.solution.bias)
        .iter()
        .zip(&y)
        .zip(&weight)
        .map(|((m, y), w)| w * (f64::from(u8::from(*y)) - expit(*m)))
        .collect();
    assert!(residual.iter().sum::<f64>().abs() < 1e-6);
    for column in x.columns() {
        let slope: f64 = column.iter().zip(&residual).map(|(x, r)| x * r).sum();
        assert!(slope.abs() < 1e-4, "{slope}");
    }
}

#[test]
fn empty_constant_and_equal_columns() {
    let Example { x, y, weight } = example_of(400, 4, 0, 1.5);
    let case = Case { weight: Some(&weight), ..Case::new(1.0) };
    let expected = solve(&dense_design(&x), &y, case);
    let more = Array2::from_shape_fn((400, 12), |(i, j)| match j {
        0 => 0.0,
        1..=8 => x[[i, (j - 1) % 4]],
        9 => 7.0,
        10 => -x[[i, 0]],
        _ => x[[i, 1]] + 3.0,
    });
    for design in [dense_design(&more), sparse_design(&more)] {
        let found = solve(&design, &y, case);
        close(found.solution.objective, expected.solution.objective, 1e-9);
        assert!(!found.columns().contains(&0) && !found.columns().contains(&9));
    }
    let (zeros, ones) = (Array2::zeros((400, 3)), Array2::ones((400, 3)));
    for design in [dense_design(&zeros), sparse_design(&zeros), dense_design(&ones)] {
        let found = solve(&design, &y, Case { lambda: 1e-6, ..case });
        assert!(found.columns().is_empty());
    }
}

#[test]
fn more_columns_than_rows() {
    let mut random = Random::new(0);
    let x = random.normals(60, 3000);
    let y = (0..60).map(|_| random.chance(0.4)).collect();
    let example = Example { x, y, weight: vec![1.0; 60] };
    let design = dense_design(&example.x);
    for share in [0.3, 0.01] {
        let lambda = share * largest_lambda(&example);
        let found = solve(&design, &example.y, Case::new(lambda));
        assert!(duality_gap(&example, lambda, &found.w, found.solution.bias) < 1e-6);
        assert!(found.columns().len() <= 60);
    }
}

#[test]
fn extreme_cells_are_no_trouble() {
    let Example { mut x, y, .. } = example_of(400, 6, 0, 1.5);
    x.column_mut(1).mapv_inplace(|x| if x > 0.0 { 1.7e308 } else { -1.7e308 });
    x.column_mut(2).mapv_inplace(|x| x * 1e-320);
    x.column_mut(3).mapv_inplace(|x| if x > 1.0 { 1e300 } else { 0.0 });
    x.slice_mut(s![5..20, 3]).fill(1e-320); // 0 in the column's unit
    let largest = |column: ndarray::ArrayView1<'_, f64>| {
        column.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()))
    };
    let penalty: Vec<f64> = x.columns().into_iter().map(largest).collect();
    for design in [dense_design(&x), sparse_design(&x)] {
        let found =
            solve(&design, &y, Case { penalty: Some(&penalty), tol: 1e-6, ..Case::new(1.0) });
        assert!([0, 4, 5].iter().all(|j| found.columns().contains(j)), "{:?}", found.columns());
        assert!(found.solution.objective < 400.0 * std::f64::consts::LN_2);
    }
}

#[test]
fn the_bits_do_not_depend_on_threads() {
    let (n, d) = (20_000, 70);
    let mut random = Random::new(0);
    let x = Array2::from_shape_fn((n, d), |_| {
        let cell = random.normal();
        if random.chance(0.3) { cell } else { 0.0 }
    });
    let score = |i: usize| x.row(i).iter().take(9).sum::<f64>();
    let y: Vec<bool> = (0..n).map(|i| score(i) + random.normal() > 0.0).collect();
    let opposite: Vec<bool> = y.iter().map(|y| !y).collect();
    let shifted = x.mapv(|x| x.abs() + 1.0);
    for design in [dense_design(&x), sparse_design(&x), dense_design(&shifted)] {
        let case = Case { tol: 1e-6, ..Case::new(20.0) };
        let run = |n_threads: usize| {
            let one = with_pool(n_threads, || solve(&design, &y, case)).unwrap();
            let from = &[StartPoint::State(&one.state)];
            let more = Case { from, tol: 1e-6, ..Case::new(9.0) };
            let two = with_pool(n_threads, || solve(&design, &opposite, more)).unwrap();
            [one.solution, two.solution]
        };
        assert_eq!(run(1), run(3));
    }
}

#[test]
fn the_steps_can_be_limited() {
    let Example { x, y, weight } = example(0);
    let design = dense_design(&x);
    let found: Vec<Solution> = (0..4)
        .map(|max_iter| {
            let case = Case { weight: Some(&weight), max_iter, ..Case::new(1.0) };
            solve(&design, &y, case).solution
        })
        .collect();
    let steps: Vec<usize> = found.iter().map(|found| found.n_iter).collect();
    assert_eq!(steps, [0, 1, 2, 3]);
    assert!(found.windows(2).all(|pair| pair[1].objective <= pair[0].objective));
    assert!(found[3].objective < found[0].objective);
    assert_eq!(found[0].gap, found[0].duality_gap);
    assert!(found[0].gap > 0.1);
}

#[test]
fn what_cannot_be_is_refused() {
    let design = dense_design(&example(0).x);
    let (rows, y) = ([0, 1], [true, false]);
    let good = Case { rows: Some(&rows), ..Case::new(1.0) };
    let outside = StartWeights { weights: &[(12, 1.0)], bias: 0.0 };
    let infinite = StartWeights { weights: &[(1, f64::INFINITY)], bias: 0.0 };
    let cases: [(Case<'_>, &str); 10] = [
        (Case { rows: Some(&[0, 400]), ..good }, "row is out of range"),
        (Case { weight: Some(&[1.0, -1.0]), ..good }, "weights must be finite and not negative"),
        (
            Case { weight: Some(&[1.0, f64::NAN]), ..good },
            "weights must be finite and not negative",
        ),
        (Case { weight: Some(&[1.0; 3]), ..good }, "weight has 3 entries, but 2 are expected"),
        (Case { lambda: -1.0, ..good }, "lambda must be finite and not negative"),
        (Case { lambda: f64::INFINITY, ..good }, "lambda must be finite and not negative"),
        (Case { penalty: Some(&[0.0; 12]), ..good }, "penalties must be finite and positive"),
        (Case { penalty: Some(&[1.0; 3]), ..good }, "penalty has 3 entries, but 12 are expected"),
        (Case { from: &[StartPoint::Weights(&outside)], ..good }, "column of the start"),
        (Case { from: &[StartPoint::Weights(&infinite)], ..good }, "start must be finite"),
    ];
    for (case, message) in cases {
        refused(try_solve(&design, &y, case), message);
    }
}

#[test]
fn a_matrix_that_is_none_is_refused() {
    type Case = (&'static [i64], &'static [i64], &'static [f64], &'static str);
    let cases: [Case; 8] = [
        (&[0, 1], &[2], &[1.0], "cannot have a cell in column 2"),
        (&[0, 1], &[-1], &[1.0], "cannot have a cell in column -1"),
        (&[0, 2], &[0], &[1.0], "rise from 0 to 1"),
        (&[1, 1], &[0], &[1.0], "rise from 0 to 1"),
        (&[0, 2, 1], &[0, 1], &[1.0, 1.0], "rise from 0 to 2"),
        (&[0, 2], &[1, 0], &[1.0, 1.0], "must ascend"),
        (&[0, 2], &[1, 1], &[1.0, 1.0], "must ascend"),
        (&[0, 1], &[0], &[f64::NAN], "NaN or infinite"),
    ];
    for (indptr, indices, values, message) in cases {
        let made = || -> Result<Design> {
            let csr = Csr::from_i64(indptr, indices, values, 2)?;
            Design::from_csr::<_, u16>(&csr)?;
            Design::from_rows(Rows::Sparse(&csr))
        };
        refused(made(), message);
    }
}

#[test]
fn a_dense_matrix_with_cells_that_are_no_numbers_is_refused() {
    for cell in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for share in [0.0, 1.0] {
            let mut x = Array2::from_shape_fn((300, 3), |(i, j)| share * (1 + 3 * i + j) as f64);
            x[[150, 1]] = cell;
            let made = Design::from_table(&Table::from_matrix(x.view()).unwrap());
            assert!(matches!(made, Err(Error::Value(_))));
            refused(made, "NaN or infinite");
        }
    }
}
