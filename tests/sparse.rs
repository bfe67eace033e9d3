//! Trees of sparse rows against those of the same rows as a table.

#[path = "common/random.rs"]
mod random;
#[path = "common/sparse.rs"]
mod sparse;

use ndarray::Array2;
use treeclust_rs::costs::{self, Metric, Units};
use treeclust_rs::criterion::centers::Centers;
use treeclust_rs::criterion::cut_score::CutScore;
use treeclust_rs::criterion::label_cost::CutKind;
use treeclust_rs::fit::{Base, GrowthCriterion, ThresholdFit, ThresholdProblem, fit};
use treeclust_rs::grow::Limits;
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::rows::{Csr, CsrRows, Rows};
use treeclust_rs::search::SearchOptions;
use treeclust_rs::table::Table;
use treeclust_rs::tree::Test;

use random::Random;
use sparse::csr_parts;

/// Rows with many zeros, ties, copies, empty rows and empty columns; centers, labels and weights.
struct Case {
    x: Array2<f64>,
    centers: Vec<f64>,
    k: usize,
    labels: Vec<u32>,
    regrets: Vec<f64>,
    weights: Option<Vec<f64>>,
    emn: bool,
    base: bool,
    cuts: CutKind,
    limits: Limits,
}

fn case(random: &mut Random) -> Case {
    let (n, d) = (2 + random.below(60) as usize, 1 + random.below(7) as usize);
    let k = 2 + random.below(5) as usize;
    let n_values = 1 + random.below(9);
    let share = 1 + random.below(9);
    let filled: Vec<u64> = (0..d).map(|_| random.below(11)).collect();
    let step = if random.below(2) == 0 { 1.0 } else { 0.1 };
    let mut x = Array2::from_shape_fn((n, d), |(_, j)| {
        if random.below(10) >= share.max(filled[j]) || filled[j] == 0 {
            return 0.0;
        }
        (random.below(2 * n_values + 1) as f64 - n_values as f64) * step
    });
    for row in 1..n {
        if random.below(4) == 0 {
            let other = x.row(random.below(row as u64) as usize).to_owned();
            x.row_mut(row).assign(&other);
        }
    }
    let mut centers: Vec<f64> =
        (0..k * d).map(|_| (random.below(9) as f64 - 4.0) * step / 2.0).collect();
    (0..k).for_each(|c| centers[c * d] += c as f64 / 64.0); // distinct
    let weights = (random.below(2) == 0)
        .then(|| (0..n).map(|_| (1 + random.below(7)) as f64 / 4.0).collect::<Vec<f64>>());
    let table = Table::from_matrix(x.view()).unwrap();
    let units = Units { shift: vec![0.0; d], scale: vec![1.0; d] };
    let of = Metric::SquaredEuclidean;
    let found = costs::label_costs(&table, &units, &centers, of, &[], weights.as_deref()).unwrap();
    let limits = Limits {
        max_leaves: k + random.below(12) as usize,
        max_depth: (random.below(3) == 0).then(|| 1 + random.below(5) as usize),
        min_samples_leaf: 1 + random.below(4) as usize,
    };
    let (emn, base) = (random.below(2) == 0, random.below(2) == 0);
    let cuts = if random.below(3) == 0 { CutKind::Interval } else { CutKind::Threshold };
    let (labels, regrets) = (found.nearest, found.regrets);
    Case { x, centers, k, labels, regrets, weights, emn, base, cuts, limits }
}

fn grow(case: &Case, rows: Rows<'_, '_>) -> ThresholdFit {
    grow_by(case, Some(&case.regrets), rows)
}

/// `regrets`: none: those of wrong labels.
fn grow_by(case: &Case, regrets: Option<&[f64]>, rows: Rows<'_, '_>) -> ThresholdFit {
    let low = vec![0.0; case.centers.len()];
    let centers = Centers { high: &case.centers, low: &low };
    let score = if case.emn { CutScore::Emn } else { CutScore::Mistakes };
    let problem = ThresholdProblem {
        labels: &case.labels,
        k: case.k,
        weights: case.weights.as_deref(),
        base: if case.base { Base::Imm { centers, score } } else { Base::Leaf },
        criterion: GrowthCriterion::LabelCost { regrets, cuts: case.cuts },
        limits: case.limits,
        search: SearchOptions::default(),
    };
    fit(rows, &problem, &Monitor::default()).unwrap()
}

fn matrix<'a>(parts: &'a (Vec<i64>, Vec<i64>, Vec<f64>), d: usize) -> CsrRows<'a> {
    Csr::from_i64(&parts.0, &parts.1, &parts.2, d).unwrap()
}

/// The same tree and the same numbers, up to the rounding of the zeros' sums.
fn assert_same(a: &ThresholdFit, b: &ThresholdFit, what: &str) {
    assert_eq!(a.nodes, b.nodes, "{what}");
    assert_eq!((&a.cluster, &a.base_cluster), (&b.cluster, &b.base_cluster), "{what}");
    assert_eq!(a.n_base_leaves, b.n_base_leaves);
    for (a, b) in [(&a.cost, &b.cost), (&a.label_weight, &b.label_weight)] {
        assert_eq!(a, b, "{what}");
    }
    for (a, b) in a.mistakes.iter().zip(&b.mistakes) {
        assert!(a.is_nan() && b.is_nan() || (a - b).abs() < 1e-12, "{what}: {a} {b}");
    }
}

#[test]
fn a_tree_of_sparse_rows_is_that_of_their_table() {
    let mut random = Random(7);
    let (mut n_splits, mut n_intervals) = (0, 0);
    for trial in 0..1500 {
        let case = case(&mut random);
        let parts = csr_parts(&case.x);
        let csr = matrix(&parts, case.x.ncols());
        let table = Table::from_matrix(case.x.view()).unwrap();
        let dense = grow(&case, Rows::from(&table));
        let sparse = grow(&case, Rows::sparse(&csr).unwrap());
        n_splits += dense.nodes.tests.len() / 2;
        let is_interval = |test: &&Test| matches!(test, Test::Interval { .. });
        n_intervals += dense.nodes.tests.iter().filter(is_interval).count();
        assert_same(&sparse, &dense, &format!("trial {trial}"));
    }
    assert!(n_splits > 4000 && n_intervals > 100, "{n_splits} {n_intervals}");
}

#[test]
fn wrong_labels_cost_what_their_regrets_say_on_sparse_rows_too() {
    let mut random = Random(13);
    let mut n_splits = 0;
    for trial in 0..600 {
        let mut case = case(&mut random);
        for (row, costs) in case.regrets.chunks_mut(case.k).enumerate() {
            costs.fill(case.weights.as_ref().map_or(1.0, |weights| weights[row]));
            costs[case.labels[row] as usize] = 0.0;
        }
        let parts = csr_parts(&case.x);
        let csr = matrix(&parts, case.x.ncols());
        let table = Table::from_matrix(case.x.view()).unwrap();
        let expected = grow(&case, Rows::from(&table));
        n_splits += expected.nodes.tests.len() / 2;
        for rows in [Rows::from(&table), Rows::sparse(&csr).unwrap()] {
            let found = grow_by(&case, None, rows);
            assert_same(&found, &expected, &format!("trial {trial}"));
            assert_eq!(found.base_cost, expected.base_cost, "trial {trial}");
        }
    }
    assert!(n_splits > 1000, "{n_splits}");
}

#[test]
fn stored_zeros_are_zeros_and_threads_change_nothing() {
    let mut random = Random(11);
    for _ in 0..40 {
        let case = case(&mut random);
        let (n, d) = case.x.dim();
        let parts = csr_parts(&case.x);
        let all = (
            (0..=n).map(|row| (row * d) as i64).collect(),
            (0..n * d).map(|i| (i % d) as i64).collect(),
            case.x.iter().copied().collect(),
        );
        let (some, all) = (matrix(&parts, d), matrix(&all, d));
        let one = with_pool(1, || grow(&case, Rows::sparse(&some).unwrap())).unwrap();
        let two = with_pool(2, || grow(&case, Rows::sparse(&all).unwrap())).unwrap();
        assert_eq!(format!("{one:?}"), format!("{two:?}"));
    }
}

#[test]
fn columns_of_many_cells_are_shared_out() {
    // Several tasks for every selection of cells; weights whose sums round.
    let mut random = Random(3);
    let (n, d, k) = (4000, 40, 3);
    let x = Array2::from_shape_fn((n, d), |(i, j)| {
        let is_zero = random.below(3) > 0;
        if is_zero {
            0.0
        } else {
            (random.below(1000) as f64 - 300.0) / 7.0 * (1 + (i + j) % 2) as f64
        }
    });
    let centers: Vec<f64> = (0..k * d).map(|_| random.below(200) as f64 / 7.0).collect();
    let weights: Vec<f64> = (0..n).map(|_| (1 + random.below(9)) as f64 / 10.0).collect();
    let table = Table::from_matrix(x.view()).unwrap();
    let units = Units { shift: vec![0.0; d], scale: vec![1.0; d] };
    let of = Metric::SquaredEuclidean;
    let found = costs::label_costs(&table, &units, &centers, of, &[], Some(&weights)).unwrap();
    let limits = Limits { max_leaves: 30, max_depth: None, min_samples_leaf: 5 };
    let (labels, regrets) = (found.nearest, found.regrets);
    let weights = Some(weights);
    let cuts = CutKind::Threshold;
    let (emn, base) = (false, true);
    let case = Case { x, centers, k, labels, regrets, weights, emn, base, cuts, limits };
    let parts = csr_parts(&case.x);
    let csr = matrix(&parts, d);
    let table = Table::from_matrix(case.x.view()).unwrap();
    let dense = grow(&case, Rows::from(&table));
    assert_same(&grow(&case, Rows::sparse(&csr).unwrap()), &dense, "many cells");
}

#[test]
fn what_sparse_rows_are_not_taken_for_is_refused() {
    let (indptr, indices, values) = (vec![0, 1, 2], vec![0, 1], vec![1.0, 2.0]);
    let csr = Csr::from_i64(&indptr, &indices, &values, 2).unwrap();
    let (regrets, centers) = ([0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 2.0]);
    let problem = |base| ThresholdProblem {
        labels: &[0, 1],
        k: 2,
        weights: None,
        base,
        criterion: GrowthCriterion::LabelCost { regrets: Some(&regrets), cuts: CutKind::Threshold },
        limits: Limits { max_leaves: 2, max_depth: None, min_samples_leaf: 1 },
        search: SearchOptions::default(),
    };
    let centers = Centers { high: &centers, low: &[0.0; 4] };
    let greedy = Base::Greedy { centers, depth: None };
    let rows = Rows::sparse(&csr).unwrap();
    let message = fit(rows, &problem(greedy), &Monitor::default()).unwrap_err().to_string();
    assert!(message.contains("Sparse rows are taken by trees with IMM's base"), "{message}");
}
