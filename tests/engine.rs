//! The engine against plain sorted sweeps: same cuts, whatever the bins.

#[path = "common/random.rs"]
mod random;

use ndarray::{Array2, array};
use treeclust_rs::criterion::centers::Centers;
use treeclust_rs::criterion::cut_score::CutScore;
use treeclust_rs::criterion::label_cost::CutKind;
use treeclust_rs::fit::{Base, GrowthCriterion, ThresholdFit, ThresholdProblem, fit};
use treeclust_rs::grow::Limits;
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::search::SearchOptions;
use treeclust_rs::table::Table;
use treeclust_rs::tree::Test;

use random::Random;

struct Case {
    x: Array2<f64>,
    centers: Array2<f64>,
    labels: Vec<u32>,
    regrets: Vec<f64>,
}

/// Integer grids (full of ties) or fractions, k distinct centers, nearest labels, squared distances.
fn case(random: &mut Random, n: usize, d: usize, k: usize, values: u64) -> Case {
    let x = Array2::from_shape_fn((n, d), |_| random.below(values) as f64);
    let mut centers: Array2<f64> = Array2::zeros((k, d));
    for c in 0..k {
        for f in 0..d {
            centers[[c, f]] = random.below(2 * values) as f64 / 2.0;
        }
        centers[[c, 0]] += c as f64 / 64.0; // distinct
    }
    let mut labels = Vec::new();
    let mut regrets = Vec::new();
    for row in x.rows() {
        let costs: Vec<f64> = centers
            .rows()
            .into_iter()
            .map(|c| row.iter().zip(c).map(|(a, b)| (a - b).powi(2)).sum())
            .collect();
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        labels.push(costs.iter().position(|&c| c == least).unwrap() as u32);
        regrets.extend(costs.iter().map(|c| c - least));
    }
    Case { x, centers, labels, regrets }
}

fn grow(
    case: &Case,
    base: bool,
    cuts: CutKind,
    max_leaves: usize,
    search: SearchOptions,
) -> ThresholdFit {
    let low = vec![0.0; case.centers.len()];
    let centers = Centers { high: case.centers.as_slice().unwrap(), low: &low };
    let problem = ThresholdProblem {
        k: case.centers.nrows(),
        labels: &case.labels,
        base: if base { Base::Imm { centers, score: CutScore::Mistakes } } else { Base::Leaf },
        weights: None,
        criterion: GrowthCriterion::LabelCost { regrets: Some(&case.regrets), cuts },
        limits: Limits { max_leaves, max_depth: None, min_samples_leaf: 1 },
        search,
    };
    fit(&Table::from_matrix(case.x.view()).unwrap(), &problem, &Monitor::default()).unwrap()
}

fn node_cost(case: &Case, rows: &[usize]) -> f64 {
    let k = case.centers.nrows();
    let total = |l: usize| rows.iter().map(|&i| case.regrets[i * k + l]).sum::<f64>();
    (0..k).map(total).fold(f64::INFINITY, f64::min)
}

fn rows_of(fitted: &ThresholdFit, case: &Case, node: usize) -> Vec<usize> {
    // Leaves below the node, found downwards.
    let mut below = vec![false; fitted.nodes.tests.len()];
    below[node] = true;
    for id in node..fitted.nodes.tests.len() {
        if below[id] && fitted.nodes.tests[id] != Test::Leaf {
            below[fitted.nodes.left[id]] = true;
            below[fitted.nodes.left[id] + 1] = true;
        }
    }
    (0..case.x.nrows()).filter(|&i| below[fitted.nodes.leaf_of_row[i] as usize]).collect()
}

/// The gain of the best cut by trying every pair of ends between distinct values.
fn best_gain(case: &Case, rows: &[usize], cuts: CutKind) -> f64 {
    let whole = node_cost(case, rows);
    let mut best = 0.0f64;
    for f in 0..case.x.ncols() {
        let mut values: Vec<f64> = rows.iter().map(|&i| case.x[[i, f]]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        for (b, &high) in values.iter().enumerate() {
            let lows = if cuts == CutKind::Interval { b + 1 } else { 1 };
            for &low in &values[..lows] {
                let inside = |i: &usize| case.x[[*i, f]] >= low && case.x[[*i, f]] <= high;
                let (left, right): (Vec<usize>, Vec<usize>) = rows.iter().partition(|i| inside(i));
                if !left.is_empty() && !right.is_empty() {
                    best = best.max(whole - node_cost(case, &left) - node_cost(case, &right));
                }
            }
        }
    }
    best
}

#[test]
fn every_cut_gains_as_much_as_the_best_of_all() {
    let mut random = Random(7);
    for round in 0..60 {
        let case = case(&mut random, 20 + round % 30, 2, 3, if round % 2 == 0 { 6 } else { 1000 });
        for cuts in [CutKind::Threshold, CutKind::Interval] {
            let search = SearchOptions { max_bins: 2 + round % 7, direct: (round % 3) * 8 };
            let fitted = grow(&case, false, cuts, 6, search);
            for id in 0..fitted.nodes.tests.len() {
                let rows = rows_of(&fitted, &case, id);
                if fitted.nodes.tests[id] == Test::Leaf {
                    continue;
                }
                let left = rows_of(&fitted, &case, fitted.nodes.left[id]);
                let right = rows_of(&fitted, &case, fitted.nodes.left[id] + 1);
                let taken =
                    node_cost(&case, &rows) - node_cost(&case, &left) - node_cost(&case, &right);
                let best = best_gain(&case, &rows, cuts);
                let margin = 1e-9 * node_cost(&case, &rows);
                assert!(best - taken <= margin, "round {round}, node {id}: {taken} against {best}");
            }
        }
    }
}

#[test]
fn bins_threads_and_direct_sorting_change_nothing() {
    let mut random = Random(11);
    for round in 0..10 {
        let case = case(&mut random, 3000, 4, 5, if round % 2 == 0 { 40 } else { 1 << 20 });
        for base in [false, true] {
            let expected = grow(
                &case,
                base,
                CutKind::Threshold,
                12,
                SearchOptions { max_bins: 256, direct: usize::MAX },
            );
            for (max_bins, direct, threads) in [(256, 256, 1), (16, 0, 1), (3, 50, 2), (256, 0, 3)]
            {
                let options = SearchOptions { max_bins, direct };
                let got = with_pool(threads, || grow(&case, base, CutKind::Threshold, 12, options))
                    .unwrap();
                assert_eq!(
                    got.nodes.tests, expected.nodes.tests,
                    "round {round}, {options:?}, {threads} threads"
                );
                assert_eq!(got.nodes.leaf_of_row, expected.nodes.leaf_of_row);
            }
        }
    }
}

#[test]
fn imm_has_one_leaf_per_center_and_counts_its_mistakes() {
    let mut random = Random(3);
    for round in 0..200 {
        let k = 2 + round % 4;
        let case = case(&mut random, 30, 3, k, 5);
        let fitted =
            grow(&case, true, CutKind::Threshold, k, SearchOptions { max_bins: 3, direct: 0 });
        let leaves: Vec<usize> = (0..fitted.nodes.tests.len())
            .filter(|&id| fitted.nodes.tests[id] == Test::Leaf)
            .collect();
        assert_eq!(leaves.len(), k);
        let mut clusters: Vec<usize> =
            leaves.iter().map(|&id| fitted.base_cluster[id].unwrap()).collect();
        clusters.sort_unstable();
        assert_eq!(clusters, (0..k).collect::<Vec<_>>());
        // Rows outside their cluster's leaf are the mistakes of some node, each counted once.
        let wrong = (0..30)
            .filter(|&i| {
                fitted.base_cluster[fitted.nodes.leaf_of_row[i] as usize]
                    != Some(case.labels[i] as usize)
            })
            .count();
        let counted: f64 = fitted.mistakes.iter().filter(|m| !m.is_nan()).sum();
        assert_eq!(counted, wrong as f64, "round {round}");
    }
}

#[test]
fn a_stopped_fit_ends_with_an_error() {
    let case = case(&mut Random(1), 500, 2, 3, 100);
    let monitor = Monitor::default();
    monitor.stop();
    let problem = ThresholdProblem {
        k: 3,
        labels: &case.labels,
        base: Base::Leaf,
        weights: None,
        criterion: GrowthCriterion::LabelCost {
            regrets: Some(&case.regrets),
            cuts: CutKind::Threshold,
        },
        limits: Limits { max_leaves: 5, max_depth: None, min_samples_leaf: 1 },
        search: SearchOptions::default(),
    };
    let table = Table::from_matrix(case.x.view()).unwrap();
    assert_eq!(
        fit(&table.with_monitor(&monitor), &problem, &monitor),
        Err(treeclust_rs::error::Error::Interrupted)
    );
}

fn fit_labels(
    x: &Array2<f64>,
    labels: &[u32],
    base: Base<'_>,
    regrets: &[f64],
    cuts: CutKind,
    max_leaves: usize,
) -> Vec<Test> {
    let problem = ThresholdProblem {
        k: 2,
        labels,
        base,
        weights: None,
        criterion: GrowthCriterion::LabelCost { regrets: Some(regrets), cuts },
        limits: Limits { max_leaves, max_depth: None, min_samples_leaf: 1 },
        search: SearchOptions::default(),
    };
    let table = Table::from_matrix(x.view()).unwrap();
    fit(&table, &problem, &Monitor::default()).unwrap().nodes.tests
}

/// After the root two leaves remain, of which the first gains 0.3 and the second a little more. Up to 1e-12 of what the
/// two leaves cost, 0.6, the gains are tied; the root's cost of 18.3 does not count any more.
#[test]
fn of_leaves_with_tied_gains_the_first_is_split() {
    let x = array![[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]];
    for (second, split) in [(0.1 + 0.2, 1), (0.3 + 3e-12, 2)] {
        let regrets = [0.3, 0.0, 0.0, 9.0, 0.0, 9.0, 9.0, 0.0, 9.0, 0.0, 0.0, second];
        let labels = [1, 0, 0, 1, 1, 0];
        let tests = fit_labels(&x, &labels, Base::Leaf, &regrets, CutKind::Threshold, 3);
        assert_eq!(tests.len(), 5);
        assert_ne!(tests[split], Test::Leaf, "{second}: {tests:?}");
    }
}

/// Sums of regrets over an interval are differences of prefix sums, in which one huge regret would drown the others.
#[test]
fn a_huge_regret_does_not_hide_small_ones_from_intervals() {
    let x = Array2::from_shape_fn((12, 1), |(i, _)| i as f64);
    let inside = 3..=6;
    let mut regrets: Vec<f64> =
        (0..12).flat_map(|i| if inside.contains(&i) { [0.0, 2.0] } else { [1.0, 0.0] }).collect();
    regrets[0] = 1e25;
    let labels: Vec<u32> = (0..12).map(|i| u32::from(!inside.contains(&i))).collect();
    let tests = fit_labels(&x, &labels, Base::Leaf, &regrets, CutKind::Interval, 2);
    assert_eq!(tests[0], Test::Interval { feature: 0, lower: 2.5, upper: 6.5 });
}

/// Of cuts with the same mistakes the one in the widest gap is taken, as a share of the column's range; the first column
/// among equal ones. The gap of the second column is 0.4 - 0.1, more than 0.3 by rounding alone.
#[test]
fn of_gaps_as_wide_up_to_rounding_the_first_columns_is_taken() {
    let regrets = [0.0; 8];
    for (end, feature) in [(0.4, 0), (0.4001, 1)] {
        let x = array![[0.0, 0.0], [0.0, 0.1], [0.3, end], [1.0, 1.0]];
        let (high, low) = ([0.0, 0.05, 0.65, (1.0 + end) / 2.0], [0.0; 4]);
        let base =
            Base::Imm { centers: Centers { high: &high, low: &low }, score: CutScore::Mistakes };
        let tests = fit_labels(&x, &[0, 0, 1, 1], base, &regrets, CutKind::Threshold, 2);
        assert_eq!(tests[0].feature(), Some(feature), "{end}: {tests:?}");
    }
}
