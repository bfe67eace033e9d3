//! Stand-in for the l1 logistic solver.

use super::design::Design;
use crate::error::Result;
use crate::parallel::Monitor;

/// Problem.
pub struct Problem<'a> {
    /// Design.
    pub design: &'a Design,
    /// Rows.
    pub rows: &'a [u32],
    /// +1.
    pub sign: &'a [bool],
    /// Weights.
    pub weight: &'a [f64],
    /// Penalty.
    pub lambda: f64,
    /// Shares.
    pub penalty: Option<&'a [f64]>,
}

/// Start.
pub struct Start<'a> {
    /// Weights.
    pub weights: &'a [(u32, f64)],
    /// Bias.
    pub bias: f64,
}

/// Solution.
#[derive(Debug, Clone, Default)]
pub struct Solution {
    /// Weights.
    pub weights: Vec<(u32, f64)>,
    /// Bias.
    pub bias: f64,
    /// Objective.
    pub objective: f64,
    /// Iterations.
    pub n_iter: usize,
    /// Gap.
    pub gap: f64,
}

/// Options.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Tolerance.
    pub tol: f64,
    /// Iterations.
    pub max_iter: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { tol: 1e-3, max_iter: 100 }
    }
}

enum Col {
    Dense(Vec<f64>),
    Sparse(Vec<(u32, f64)>),
}

impl Col {
    fn dot(&self, r: &[f64]) -> f64 {
        match self {
            Col::Dense(x) => x.iter().zip(r).map(|(a, b)| a * b).sum(),
            Col::Sparse(x) => x.iter().map(|&(i, a)| a * r[i as usize]).sum(),
        }
    }
    fn square(&self, h: &[f64]) -> f64 {
        match self {
            Col::Dense(x) => x.iter().zip(h).map(|(a, b)| a * a * b).sum(),
            Col::Sparse(x) => x.iter().map(|&(i, a)| a * a * h[i as usize]).sum(),
        }
    }
    fn add(&self, by: f64, z: &mut [f64], r: &mut [f64], h: &[f64]) {
        match self {
            Col::Dense(x) => {
                for (i, a) in x.iter().enumerate() {
                    z[i] += by * a;
                    r[i] += by * a * h[i];
                }
            }
            Col::Sparse(x) => {
                for &(i, a) in x {
                    let i = i as usize;
                    z[i] += by * a;
                    r[i] += by * a * h[i];
                }
            }
        }
    }
}

fn softplus(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// Solves.
///
/// # Errors
/// Interrupted.
pub fn solve(
    problem: &Problem<'_>,
    start: Option<&Start<'_>>,
    options: Options,
    monitor: &Monitor,
) -> Result<Solution> {
    let n = problem.rows.len();
    let cols: Vec<Col> = match problem.design {
        Design::Dense(values, n_samples) => values
            .chunks(*n_samples)
            .map(|c| Col::Dense(problem.rows.iter().map(|&r| c[r as usize]).collect()))
            .collect(),
        Design::Sparse(indptr, indices, values, n_features) => {
            let mut cols = vec![vec![]; *n_features];
            for (i, &row) in problem.rows.iter().enumerate() {
                for at in indptr[row as usize]..indptr[row as usize + 1] {
                    cols[indices[at] as usize].push((i as u32, values[at]));
                }
            }
            cols.into_iter().map(Col::Sparse).collect()
        }
    };
    let lambda: Vec<f64> =
        (0..cols.len()).map(|j| problem.lambda * problem.penalty.map_or(1.0, |p| p[j])).collect();
    let lambda = &lambda;
    let d = cols.len();
    let y: Vec<f64> = problem.sign.iter().map(|&s| if s { 1.0 } else { -1.0 }).collect();
    let mut w = vec![0.0; d];
    let mut b = 0.0;
    if let Some(start) = start {
        b = start.bias;
        for &(j, x) in start.weights {
            w[j as usize] = x;
        }
    }
    let mut z = vec![b; n];
    let mut none = vec![0.0; n];
    let zero = vec![0.0; n];
    for j in 0..d {
        if w[j] != 0.0 {
            cols[j].add(w[j], &mut z, &mut none, &zero);
        }
    }
    let objective = |z: &[f64], w: &[f64]| -> f64 {
        let loss: f64 =
            z.iter().zip(&y).zip(problem.weight).map(|((z, y), c)| c * softplus(-y * z)).sum();
        loss + w.iter().zip(lambda).map(|(x, l)| l * x.abs()).sum::<f64>()
    };
    let mut value = objective(&z, &w);
    let mut gap = f64::INFINITY;
    let mut n_iter = 0;
    for _ in 0..options.max_iter {
        monitor.check()?;
        n_iter += 1;
        let mut g = vec![0.0; n];
        let mut h = vec![0.0; n];
        for i in 0..n {
            let p = 1.0 / (1.0 + (y[i] * z[i]).exp());
            g[i] = -problem.weight[i] * y[i] * p;
            h[i] = (problem.weight[i] * p * (1.0 - p)).max(1e-9 * problem.weight[i]);
        }
        // KKT
        let mut violation = g.iter().sum::<f64>().abs();
        let mut active = vec![];
        for j in 0..d {
            let grad = cols[j].dot(&g);
            let v = if w[j] != 0.0 {
                (grad + lambda[j] * w[j].signum()).abs()
            } else {
                (grad.abs() - lambda[j]).max(0.0)
            };
            if w[j] != 0.0 || v > 0.0 {
                active.push(j);
            }
            violation = violation.max(v);
        }
        let total: f64 = problem.weight.iter().sum();
        if violation <= options.tol * total.min(1.0 + value) {
            gap = violation / total;
            break;
        }
        let hess: Vec<f64> = active.iter().map(|&j| cols[j].square(&h) + 1e-12).collect();
        let h_sum: f64 = h.iter().sum();
        let mut r = g.clone();
        let mut dz = vec![0.0; n];
        let (w0, b0) = (w.clone(), b);
        for _ in 0..20 {
            let mut largest: f64 = 0.0;
            let by = -r.iter().sum::<f64>() / h_sum;
            b += by;
            for i in 0..n {
                dz[i] += by;
                r[i] += by * h[i];
            }
            largest = largest.max(by * by * h_sum);
            for (&j, &hj) in active.iter().zip(&hess) {
                let u = w[j] - cols[j].dot(&r) / hj;
                let t = lambda[j] / hj;
                let new = u.signum() * (u.abs() - t).max(0.0);
                let by = new - w[j];
                if by != 0.0 {
                    cols[j].add(by, &mut dz, &mut r, &h);
                    w[j] = new;
                    largest = largest.max(by * by * hj);
                }
            }
            if largest <= 1e-3 * options.tol * (1.0 + value) {
                break;
            }
        }
        let mut step = 1.0;
        let (w1, b1) = (w.clone(), b);
        let mut better = false;
        for _ in 0..20 {
            let zt: Vec<f64> = z.iter().zip(&dz).map(|(z, d)| z + step * d).collect();
            let wt: Vec<f64> = w0
                .iter()
                .zip(&w1)
                .map(|(a, c)| if step == 1.0 { *c } else { a + step * (c - a) })
                .collect();
            let vt = objective(&zt, &wt);
            if vt < value {
                better = vt < value - 1e-3 * options.tol * (1.0 + value);
                value = vt;
                z = zt;
                w = wt;
                b = b0 + step * (b1 - b0);
                break;
            }
            step *= 0.5;
            (w, b) = (w0.clone(), b0);
        }
        if !better {
            break;
        }
    }
    let weights =
        w.iter().enumerate().filter(|x| *x.1 != 0.0).map(|(j, &x)| (j as u32, x)).collect();
    Ok(Solution { weights, bias: b, objective: value, n_iter, gap })
}
