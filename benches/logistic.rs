//! The node solver of oblique trees: solves from nothing, from weights, and from what another solve left.
//!
//! The problem has the shape of MNIST's digits (784 columns, one cell in five stored, grey values / 255), with labels
//! by a noisy half-space: 20,000 rows, made outside the timer; or it is in a file that `LOGISTIC_ROWS` names, as
//! `benches/logistic.py` writes it: then the least objectives with changed labels are printed. C is 1 / lambda. One
//! thread.

use std::ffi::OsStr;
use std::ops::Range;

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
const EXACT: SolverOptions = SolverOptions { tol: 1e-9, max_iter: 1000 };

type Images = (Vec<i64>, Vec<i64>, Vec<f64>, Vec<bool>);

/// Rows of a file: as 64-bit integers their number, that of the cells, `indptr`, `indices`; values; labels as bytes.
fn written(path: &OsStr) -> Images {
    let bytes = std::fs::read(path).expect("LOGISTIC_ROWS names a file");
    let (words, _) = bytes.as_chunks::<8>();
    let whole =
        |range: Range<usize>| words[range].iter().map(|&word| i64::from_le_bytes(word)).collect();
    let sizes: Vec<i64> = whole(0..2);
    let (n, cells) = (sizes[0] as usize, sizes[1] as usize);
    let indices = n + 3;
    let values = indices + cells;
    let end = values + cells;
    let grey = words[values..end].iter().map(|&word| f64::from_le_bytes(word)).collect();
    let sign = bytes[8 * end..].iter().map(|&label| label == 1).collect();
    (whole(2..indices), whole(indices..values), grey, sign)
}

/// Runs of grey cells that are alike, as strokes are, and labels by the sum of some of them.
fn images() -> Images {
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
    options: SolverOptions,
) -> (Solution, SolverState) {
    let rows: Vec<u32> = (0..sign.len() as u32).collect();
    let weight = vec![1.0; sign.len()];
    let (rows, weight) = (&rows[..], &weight[..]);
    let problem = LogisticProblem { design, rows, sign, weight, lambda: 1.0 / c, penalty: None };
    with_pool(1, || solve_from(&problem, from, options, &Monitor::default())).unwrap().unwrap()
}

fn copy(csr: &CsrRows<'_>) -> Design {
    with_pool(1, || Design::from_rows(Rows::sparse(csr).unwrap())).unwrap().unwrap()
}

fn benches(bench: &mut Criterion) {
    let given = std::env::var_os("LOGISTIC_ROWS");
    let (indptr, indices, values, sign) = given.as_deref().map_or_else(images, written);
    let csr = Csr::from_i64(&indptr, &indices, &values, D).unwrap();
    let size = format!("n={} d={D}, 1 thread", sign.len());
    bench.bench_function(&format!("copy of the rows {size}"), |b| b.iter(|| copy(&csr)));
    let design = copy(&csr);
    let mut flipped = sign.clone();
    flipped.iter_mut().step_by(100).for_each(|sign| *sign = !*sign);
    for c in [0.01, 0.1, 1.0] {
        if given.is_some() {
            let least = solve(&design, &flipped, c, &[], EXACT).0.objective;
            println!("least objective C={c}: {least}");
        }
        let name = |what: &str| format!("C={c} {what} {size}");
        bench.bench_function(&name("from nothing"), |b| {
            b.iter(|| solve(&design, &sign, c, &[], OPTIONS));
        });
        let coarse = solve(&design, &sign, c / 10.0, &[], OPTIONS);
        let base = solve(&design, &sign, c, &[], OPTIONS);
        for (what, labels, c, before) in [
            ("from C / 10", &sign, c, &coarse),
            ("from C, to 1.1 C", &sign, 1.1 * c, &base),
            ("from C, to C / 1.1", &sign, c / 1.1, &base),
            ("from 1 % of the labels changed", &flipped, c, &base),
        ] {
            bench.bench_function(&name(what), |b| {
                b.iter(|| solve(&design, labels, c, &[StartPoint::State(&before.1)], OPTIONS));
            });
            let start = StartWeights { weights: &before.0.weights, bias: before.0.bias };
            bench.bench_function(&name(&format!("{what}, weights alone")), |b| {
                b.iter(|| solve(&design, labels, c, &[StartPoint::Weights(&start)], OPTIONS));
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
