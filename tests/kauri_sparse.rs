//! Kauri of sparse rows against that of the same rows as a table.

#[path = "common/random.rs"]
mod random;
#[path = "common/sparse.rs"]
mod sparse;

use ndarray::{Array2, Axis};
use treeclust_rs::grow::Limits;
use treeclust_rs::kauri::fit::{FittedKauri, KauriProblem, fit};
use treeclust_rs::kauri::kernel::Kernel;
use treeclust_rs::kauri::moves::MoveKind;
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::rows::{Csr, CsrRows, Rows};
use treeclust_rs::table::Table;
use treeclust_rs::tree::Test;

use random::Random;
use sparse::csr_parts;

type Parts = (Vec<i64>, Vec<i64>, Vec<f64>);

fn matrix(parts: &Parts, d: usize) -> CsrRows<'_> {
    Csr::from_i64(&parts.0, &parts.1, &parts.2, d).unwrap()
}

/// Rows and what limits their tree.
struct Case {
    x: Array2<f64>,
    weights: Option<Vec<f64>>,
    max_clusters: usize,
    limits: Limits,
    max_features: usize,
    all_moves: bool,
    seed: u64,
}

impl Case {
    fn problem<'a>(&'a self, kernel: Kernel<'a>) -> KauriProblem<'a> {
        KauriProblem {
            kernel,
            levels: &[],
            weights: self.weights.as_deref(),
            max_clusters: self.max_clusters,
            limits: self.limits,
            min_samples_split: 2,
            max_features: self.max_features,
            seed: self.seed,
            all_moves: self.all_moves,
        }
    }

    /// The tree of the table, by features as they are given; the objective is that of these.
    fn of_table(&self, z: &Array2<f64>) -> FittedKauri {
        let table = Table::from_matrix(self.x.view()).unwrap();
        let z: Vec<f64> = z.iter().copied().collect();
        let kernel = Kernel::Features { z: &z, rank: self.x.ncols() };
        fit(&table, &self.problem(kernel), &Monitor::default()).unwrap()
    }

    fn of_cells(&self, parts: &Parts, n_threads: usize) -> FittedKauri {
        let csr = matrix(parts, self.x.ncols());
        let rows = Rows::sparse(&csr).unwrap();
        let fit = || fit(rows, &self.problem(Kernel::Sparse(&csr)), &Monitor::default());
        with_pool(n_threads, fit).unwrap().unwrap()
    }
}

/// Rows of all shares of zeros, of both signs, with copies, empty rows and columns. `ties`: few different cells.
fn case(random: &mut Random, ties: bool) -> Case {
    let (n, d) = (2 + random.below(90) as usize, 1 + random.below(7) as usize);
    let filled: Vec<u64> = (0..d).map(|_| random.below(11)).collect();
    let mut x = Array2::from_shape_fn((n, d), |(_, j)| {
        if random.below(10) >= filled[j] {
            0.0
        } else if ties {
            random.below(9) as f64 - 3.0
        } else {
            random.below(1 << 30) as f64 / f64::from(1 << 28) - 1.0
        }
    });
    for row in 1..n {
        if random.below(5) == 0 {
            let other = x.row(random.below(row as u64) as usize).to_owned();
            x.row_mut(row).assign(&other);
        }
    }
    let weights = (random.below(2) == 0)
        .then(|| (0..n).map(|_| (1 + random.below(7)) as f64 / 4.0).collect::<Vec<f64>>());
    Case {
        x,
        weights,
        max_clusters: 2 + random.below(5) as usize,
        limits: Limits {
            max_leaves: 2 + random.below(40) as usize,
            max_depth: (random.below(3) == 0).then(|| 1 + random.below(5) as usize),
            min_samples_leaf: 1 + random.below(3) as usize,
        },
        max_features: if random.below(3) == 0 { 1 + random.below(d as u64) as usize } else { d },
        all_moves: random.below(2) == 0,
        seed: random.below(1000),
    }
}

fn assert_near(a: &[f64], b: &[f64], scale: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        assert!(a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-11 * scale, "{what}: {a} {b}");
    }
}

#[test]
fn a_tree_of_sparse_rows_is_that_of_their_table() {
    let mut random = Random(7);
    let mut moves = [0; 4];
    for trial in 0..1500 {
        let case = case(&mut random, trial % 2 == 0);
        let dense = case.of_table(&case.x);
        let found = case.of_cells(&csr_parts(&case.x), 1);
        let what = format!("trial {trial}");
        assert_eq!(found.nodes, dense.nodes, "{what}");
        assert_eq!(found.cluster, dense.cluster, "{what}");
        assert_eq!(found.kinds, dense.kinds, "{what}");
        let scale = case.x.iter().map(|x| x * x).sum::<f64>().max(1.0);
        for (a, b) in [
            (&found.gain, &dense.gain),
            (&found.objective, &dense.objective),
            (&found.cost, &dense.cost),
        ] {
            assert_near(a, b, scale, &what);
        }
        for kind in dense.kinds.iter().flatten() {
            moves[match kind {
                MoveKind::Star => 0,
                MoveKind::Switch => 1,
                MoveKind::Reallocation => 2,
                _ => 3,
            }] += 1;
        }
    }
    assert!(moves[0] > 2000 && moves[1] > 600 && moves[2] > 0, "{moves:?}");
}

#[test]
fn centered_features_of_the_table_change_nothing_but_the_origin() {
    let mut random = Random(5);
    let mut n_splits = 0;
    for trial in 0..400 {
        let case = Case { weights: None, ..case(&mut random, false) };
        let mean = case.x.mean_axis(Axis(0)).unwrap();
        let dense = case.of_table(&(&case.x - &mean));
        let found = case.of_cells(&csr_parts(&case.x), 1);
        n_splits += dense.nodes.tests.len() / 2;
        assert_eq!(found.nodes, dense.nodes, "trial {trial}");
        let offset = case.x.nrows() as f64 * mean.iter().map(|m| m * m).sum::<f64>();
        let dense: Vec<f64> = dense.objective.iter().map(|x| x + offset).collect();
        let scale = case.x.iter().map(|x| x * x).sum::<f64>().max(1.0);
        assert_near(&found.objective, &dense, scale, &format!("trial {trial}"));
    }
    assert!(n_splits > 800, "{n_splits}");
}

#[test]
fn stored_zeros_are_zeros_and_threads_change_nothing() {
    let mut random = Random(11);
    for trial in 0..60 {
        let case = case(&mut random, trial % 2 == 0);
        let (n, d) = case.x.dim();
        let all: Parts = (
            (0..=n).map(|row| (row * d) as i64).collect(),
            (0..n * d).map(|i| (i % d) as i64).collect(),
            case.x.iter().copied().collect(),
        );
        let one = case.of_cells(&csr_parts(&case.x), 1);
        let two = case.of_cells(&all, 2);
        assert_eq!(format!("{one:?}"), format!("{two:?}"));
    }
}

#[test]
fn gains_are_differences_of_the_objective_of_many_rows() {
    // Columns that are nearly full, nearly empty and of both signs; weights whose sums round.
    let mut random = Random(3);
    let (n, d) = (3000, 30);
    let mut x = Array2::from_shape_fn((n, d), |(i, j)| {
        let share = [1, 3, 20, 97][j % 4];
        let is_zero = random.below(100) >= share;
        let cell = (random.below(1000) as f64 - if j < 8 { 500.0 } else { 0.0 }) / 7.0;
        if is_zero { 0.0 } else { cell * (1 + i % 3) as f64 }
    });
    x.row_mut(17).fill(1e4);
    let weights: Vec<f64> = (0..n).map(|_| (1 + random.below(9)) as f64 / 10.0).collect();
    let case = Case {
        x,
        weights: Some(weights),
        max_clusters: 5,
        limits: Limits { max_leaves: 25, max_depth: None, min_samples_leaf: 1 },
        max_features: d,
        all_moves: false,
        seed: 0,
    };
    let found = case.of_cells(&csr_parts(&case.x), 1);
    let dense = case.of_table(&case.x);
    assert_eq!((&found.nodes, &found.kinds), (&dense.nodes, &dense.kinds));
    assert_eq!(found.objective.len(), 25);
    let inner: Vec<usize> =
        (0..found.nodes.tests.len()).filter(|&i| found.nodes.tests[i] != Test::Leaf).collect();
    for &node in &inner {
        let step = found.nodes.left[node].div_ceil(2);
        let difference = found.objective[step] - found.objective[step - 1];
        let scale = found.objective[step];
        assert!((difference - found.gain[node]).abs() <= 1e-12 * scale, "{difference}");
    }
}

#[test]
fn one_sparse_form_alone_is_refused() {
    let mut random = Random(1);
    let case = case(&mut random, true);
    let parts = csr_parts(&case.x);
    let csr = matrix(&parts, case.x.ncols());
    let table = Table::from_matrix(case.x.view()).unwrap();
    let z: Vec<f64> = case.x.iter().copied().collect();
    let dense = case.problem(Kernel::Features { z: &z, rank: case.x.ncols() });
    let monitor = Monitor::default();
    for found in [
        fit(&table, &case.problem(Kernel::Sparse(&csr)), &monitor),
        fit(Rows::sparse(&csr).unwrap(), &dense, &monitor),
    ] {
        assert!(found.unwrap_err().to_string().contains("go together"));
    }
}
