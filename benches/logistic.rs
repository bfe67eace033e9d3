//! The node solver of oblique trees: solves from nothing, from weights, and from what another solve left.
//!
//! The problem has the shape of MNIST's digits (784 columns, one cell in five stored, grey values / 255), with labels
//! by a noisy half-space: 20,000 rows, made outside the timer. C is 1 / lambda. One thread.

use criterion::{Criterion, criterion_group, criterion_main};
use treeclust_rs::oblique::logistic::design::Design;
use treeclust_rs::oblique::logistic::{
    LogisticProblem, Solution, SolverOptions, SolverState, StartPoint, StartWeights, solve_from,
};
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::rows::{Csr, CsrRows, Rows};

const N: usize = 20_000;
const D: usize = 784;
const OPTIONS: SolverOptions = SolverOptions { tol: 1e-3, max_iter: 1000 };

/// Runs of grey cells that are alike, as strokes are, and labels by the sum of some of them.
fn images() -> (Vec<i64>, Vec<i64>, Vec<f64>, Vec<bool>) {
    let mut rng = fastrand::Rng::with_seed(0);
    let direction: Vec<f64> = (0..D).map(|_| rng.f64() - 0.5).collect();
    let (mut indptr, mut indices, mut values, mut sign) = (vec![0], vec![], vec![], vec![]);
    for _ in 0..N {
        let mut score = 4.0 * (rng.f64() - 0.5);
        let mut column = rng.usize(..20);
        while column < D {
            let end = D.min(column + rng.usize(3..9));
            for (j, weight) in (column..end).zip(&direction[column..end]) {
                let x = f64::from(rng.u8(64..)) / 255.0;
                indices.push(j as i64);
                values.push(x);
                score += x * weight;
            }
            column += rng.usize(16..40);
        }
        indptr.push(values.len() as i64);
        sign.push(score > 0.0);
    }
    (indptr, indices, values, sign)
}

fn solve(
    design: &Design,
    sign: &[bool],
    c: f64,
    from: &[StartPoint<'_>],
) -> (Solution, SolverState) {
    let rows: Vec<u32> = (0..N as u32).collect();
    let weight = vec![1.0; N];
    let (rows, weight) = (&rows[..], &weight[..]);
    let problem = LogisticProblem { design, rows, sign, weight, lambda: 1.0 / c, penalty: None };
    with_pool(1, || solve_from(&problem, from, OPTIONS, &Monitor::default())).unwrap().unwrap()
}

fn copy(csr: &CsrRows<'_>) -> Design {
    with_pool(1, || Design::from_rows(Rows::sparse(csr).unwrap())).unwrap().unwrap()
}

fn benches(bench: &mut Criterion) {
    let (indptr, indices, values, sign) = images();
    let csr = Csr::from_i64(&indptr, &indices, &values, D).unwrap();
    let size = format!("n={N} d={D}, 1 thread");
    bench.bench_function(&format!("copy of the rows {size}"), |b| b.iter(|| copy(&csr)));
    let design = copy(&csr);
    let mut flipped = sign.clone();
    flipped.iter_mut().step_by(100).for_each(|sign| *sign = !*sign);
    for c in [0.01, 0.1, 1.0] {
        let name = |what: &str| format!("C={c} {what} {size}");
        bench.bench_function(&name("from nothing"), |b| {
            b.iter(|| solve(&design, &sign, c, &[]));
        });
        let coarse = solve(&design, &sign, c / 10.0, &[]);
        let base = solve(&design, &sign, c, &[]);
        for (what, labels, c, before) in [
            ("from C / 10", &sign, c, &coarse),
            ("from C, to 1.1 C", &sign, 1.1 * c, &base),
            ("from C, to C / 1.1", &sign, c / 1.1, &base),
            ("from 1 % of the labels changed", &flipped, c, &base),
        ] {
            bench.bench_function(&name(what), |b| {
                b.iter(|| solve(&design, labels, c, &[StartPoint::State(&before.1)]));
            });
            let start = StartWeights { weights: &before.0.weights, bias: before.0.bias };
            bench.bench_function(&name(&format!("{what}, weights alone")), |b| {
                b.iter(|| solve(&design, labels, c, &[StartPoint::Weights(&start)]));
            });
        }
    }
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(10);
    targets = benches
}
criterion_main!(all);
