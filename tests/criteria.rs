//! Criteria against enumeration from their definitions: the same trees, test for test, whatever the bins.
//!
//! The oracles here know nothing of bins, bounds or sums: at every node they try every cut of every column on the rows
//! themselves, and follow the tie rules of the package.

#[path = "common/random.rs"]
mod random;

use ndarray::Array2;
use treeclust_rs::criterion::centers::Centers;
use treeclust_rs::criterion::clique::Clique;
use treeclust_rs::criterion::cut_score::CutScore;
use treeclust_rs::criterion::label_cost::{CheapestLabel, best_label};
use treeclust_rs::criterion::label_counts::{Entropy, Gini, OneHot};
use treeclust_rs::criterion::sums::{SideCost, TILE};
use treeclust_rs::fit::{Base, GrowthCriterion, ThresholdFit, ThresholdProblem, fit};
use treeclust_rs::grow::Limits;
use treeclust_rs::parallel::Monitor;
use treeclust_rs::placement;
use treeclust_rs::search::SearchOptions;
use treeclust_rs::table::Table;
use treeclust_rs::tree::Test;

use random::Random;

const TIE: f64 = 1e-12;
const CLOSE: f64 = 1e-9;

impl Random {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A tiny problem, full of ties where `values` is small.
struct Case {
    x: Array2<f64>,
    labels: Vec<u32>,
    k: usize,
    weights: Option<Vec<f64>>,
    centers: Array2<f64>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let (n, d) = (6 + random.below(40) as usize, 1 + random.below(3) as usize);
        let (k, values) = (2 + random.below(4) as usize, random.pick(&[3, 8, 40, 1000]));
        let x = Array2::from_shape_fn((n, d), |_| random.below(values) as f64);
        let mut centers = Array2::from_shape_fn((k, d), |_| random.below(2 * values) as f64 / 2.0);
        (0..k).for_each(|c| centers[[c, 0]] += c as f64 / 64.0); // distinct
        let is_near = random.below(2) == 0;
        let near = |i: usize| {
            let distance = |c: usize| -> f64 {
                x.row(i).iter().zip(centers.row(c)).map(|(a, b)| (a - b).powi(2)).sum()
            };
            (0..k).min_by(|&a, &b| distance(a).total_cmp(&distance(b))).unwrap()
        };
        let labels =
            (0..n).map(|i| if is_near { near(i) as u32 } else { random.below(k as u64) as u32 });
        let labels = labels.collect();
        let weights = match random.below(3) {
            0 => Some((0..n).map(|_| random.pick(&[0.5, 1.0, 3.0])).collect()),
            1 => Some((0..n).map(|_| random.pick(&[0.1, 0.7, 1.3])).collect()),
            _ => None,
        };
        Case { x, labels, k, weights, centers }
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    fn total_weight(&self) -> f64 {
        (0..self.labels.len()).map(|row| self.weight(row)).sum()
    }

    /// Largest less smallest value of a column.
    fn range(&self, feature: usize) -> f64 {
        let column = self.x.column(feature);
        column.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            - column.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Distinct values of some rows in ascending order.
    fn values(&self, rows: &[usize], feature: usize) -> Vec<f64> {
        let mut values: Vec<f64> = rows.iter().map(|&row| self.x[[row, feature]]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }

    fn sides(&self, rows: &[usize], feature: usize, below: f64) -> [Vec<usize>; 2] {
        let (left, right) = rows.iter().partition(|&&row| self.x[[row, feature]] <= below);
        [left, right]
    }

    fn fit(
        &self,
        base: Option<CutScore>,
        criterion: GrowthCriterion<'_>,
        limits: Limits,
        search: SearchOptions,
    ) -> ThresholdFit {
        let low = vec![0.0; self.centers.len()];
        let centers = Centers { high: self.centers.as_slice().unwrap(), low: &low };
        let problem = ThresholdProblem {
            labels: &self.labels,
            k: self.k,
            weights: self.weights.as_deref(),
            base: base.map_or(Base::Leaf, |score| Base::Imm { centers, score }),
            criterion,
            limits,
            search,
        };
        fit(&Table::from_matrix(self.x.view()).unwrap(), &problem, &Monitor::default()).unwrap()
    }
}

/// What a set of rows costs, by definition, and the size its scores are compared by.
#[derive(Debug, Clone, Copy)]
enum Measure {
    Gini,
    Entropy,
    Clique,
}

impl Measure {
    fn criterion(self) -> GrowthCriterion<'static> {
        match self {
            Measure::Gini => GrowthCriterion::Gini,
            Measure::Entropy => GrowthCriterion::Entropy,
            Measure::Clique => GrowthCriterion::Clique,
        }
    }

    fn cost(self, case: &Case, rows: &[usize]) -> f64 {
        let count = |rows: &[usize]| {
            let mut counts = vec![0.0; case.k];
            rows.iter().for_each(|&row| counts[case.labels[row] as usize] += case.weight(row));
            counts
        };
        let counts = count(rows);
        let weight: f64 = counts.iter().sum();
        let shares = counts.iter().map(|count| count / weight).filter(|&share| share > 0.0);
        match self {
            Measure::Gini => weight * (1.0 - shares.map(|p| p * p).sum::<f64>()),
            Measure::Entropy => weight * shares.map(|p| -p * p.log2()).sum::<f64>(),
            Measure::Clique => {
                let all: Vec<usize> = (0..case.labels.len()).collect();
                let one = all.iter().map(|&row| case.weight(row)).fold(1.0, f64::min);
                let pairs = counts.iter().zip(count(&all));
                let cut: f64 = pairs.clone().map(|(l, g)| l * (g - l)).sum();
                let degree: f64 = pairs.map(|(l, g)| l * (g - one)).sum();
                if degree > 1e-9 { cut / degree } else { 0.0 }
            }
        }
    }

    /// The unit of the margins of a set of rows; 0 if they have one label.
    fn scale(self, case: &Case, rows: &[usize]) -> f64 {
        let is_pure = rows.iter().all(|&row| case.labels[row] == case.labels[rows[0]]);
        match self {
            _ if is_pure => 0.0,
            Measure::Clique => 1.0,
            _ => self.cost(case, rows),
        }
    }
}

/// A tree as the oracles build it, by node id.
#[derive(Debug, Default)]
struct OracleTree {
    tests: Vec<Test>,
    left: Vec<usize>,
    rows: Vec<Vec<usize>>,
    depth: Vec<usize>,
    /// IMM only: the mistakes of inner nodes.
    mistakes: Vec<f64>,
}

impl OracleTree {
    fn new(n: usize) -> Self {
        let mut tree = OracleTree::default();
        tree.push((0..n).collect(), 0);
        tree
    }

    fn push(&mut self, rows: Vec<usize>, depth: usize) {
        self.tests.push(Test::Leaf);
        self.left.push(0);
        self.rows.push(rows);
        self.depth.push(depth);
        self.mistakes.push(f64::NAN);
    }

    fn split(&mut self, id: usize, test: Test, sides: [Vec<usize>; 2]) {
        (self.tests[id], self.left[id]) = (test, self.tests.len());
        sides.into_iter().for_each(|rows| self.push(rows, self.depth[id] + 1));
    }

    fn leaves(&self) -> Vec<usize> {
        (0..self.tests.len()).filter(|&id| self.tests[id] == Test::Leaf).collect()
    }

    fn leaf_of_row(&self) -> Vec<u32> {
        let mut leaf_of_row = vec![0; self.rows[0].len()];
        for id in self.leaves() {
            self.rows[id].iter().for_each(|&row| leaf_of_row[row] = id as u32);
        }
        leaf_of_row
    }
}

/// A cut between two neighbouring values of a column.
#[derive(Debug, Clone, Copy)]
struct OracleCut {
    score: f64,
    feature: usize,
    below: f64,
    above: f64,
}

/// The best score of any cut of some rows, and the first cut that ties with it.
fn best_cut(case: &Case, measure: Measure, rows: &[usize], m: usize) -> Option<(f64, OracleCut)> {
    let whole = measure.cost(case, rows);
    let mut all = vec![];
    for feature in 0..case.x.ncols() {
        for pair in case.values(rows, feature).windows(2) {
            let (below, above) = (pair[0], pair[1]);
            let [left, right] = case.sides(rows, feature, below);
            if left.len() >= m && right.len() >= m {
                let score = whole - measure.cost(case, &left) - measure.cost(case, &right);
                all.push(OracleCut { score, feature, below, above });
            }
        }
    }
    let best = all.iter().map(|cut| cut.score).fold(f64::NEG_INFINITY, f64::max);
    let least = best - TIE * measure.scale(case, rows);
    all.into_iter().find(|cut| cut.score >= least).map(|cut| (best, cut))
}

/// Best-first growth by enumeration of all cuts.
fn grow(case: &Case, measure: Measure, limits: Limits) -> OracleTree {
    let mut tree = OracleTree::new(case.labels.len());
    for _ in 1..limits.max_leaves {
        let leaves = tree.leaves();
        let size: f64 = leaves.iter().map(|&id| measure.scale(case, &tree.rows[id])).sum();
        let open = leaves.iter().filter_map(|&id| {
            let may = measure.scale(case, &tree.rows[id]) > 0.0
                && limits.max_depth.is_none_or(|most| tree.depth[id] < most);
            let cut = may.then(|| best_cut(case, measure, &tree.rows[id], limits.min_samples_leaf));
            cut.flatten().map(|(best, cut)| (id, best, cut))
        });
        let open: Vec<(usize, f64, OracleCut)> = open.collect();
        let most = open.iter().map(|leaf| leaf.1).fold(f64::NEG_INFINITY, f64::max);
        let Some(&(id, _, cut)) = open.iter().find(|leaf| leaf.1 >= most - TIE * size) else {
            break;
        };
        let threshold = placement::between(cut.below, cut.above);
        let test = Test::Threshold { feature: cut.feature, threshold };
        let sides = case.sides(&tree.rows[id], cut.feature, cut.below);
        tree.split(id, test, sides);
    }
    tree
}

#[test]
fn growth_on_label_counts_is_that_of_enumeration() {
    let mut random = Random(17);
    for round in 0..900 {
        let case = Case::new(&mut random);
        let limits = Limits {
            max_leaves: 2 + random.below(9) as usize,
            max_depth: random.pick(&[None, None, Some(2)]),
            min_samples_leaf: random.pick(&[1, 1, 2, 4]),
        };
        let measure = [Measure::Gini, Measure::Entropy, Measure::Clique][round % 3];
        let expected = grow(&case, measure, limits);
        for (max_bins, direct) in [(256, 256), (2 + round % 4, round % 7)] {
            let search = SearchOptions { max_bins, direct };
            let fitted = case.fit(None, measure.criterion(), limits, search);
            let place = format!("round {round}, {measure:?}, {search:?}, {limits:?}");
            assert_eq!(fitted.nodes.tests, expected.tests, "{place}");
            assert_eq!(fitted.nodes.left, expected.left, "{place}");
            assert_eq!(fitted.nodes.leaf_of_row, expected.leaf_of_row(), "{place}");
            for (id, rows) in expected.rows.iter().enumerate() {
                let cost = measure.cost(&case, rows);
                assert!((fitted.cost[id] - cost).abs() <= 1e-9, "{place}, node {id}");
                // The most frequent label, the lowest among equals.
                let counts = &fitted.label_weight[id * case.k..][..case.k];
                let most = counts.iter().copied().fold(0.0, f64::max);
                let label = counts.iter().position(|&count| count >= most - 1e-9).unwrap();
                assert_eq!(fitted.cluster[id], label, "{place}, node {id}");
                let weight: f64 = rows.iter().map(|&row| case.weight(row)).sum();
                assert!((fitted.nodes.weight[id] - weight).abs() <= 1e-9, "{place}, node {id}");
                assert_eq!(fitted.nodes.n_samples[id], rows.len());
            }
        }
    }
}

#[test]
fn pure_nodes_are_leaves_and_impure_ones_are_cut_without_gain() {
    // Exclusive or: no first cut gains anything, and yet four leaves are pure.
    let x = Array2::from_shape_vec((4, 2), vec![0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]).unwrap();
    let case =
        Case { x, labels: vec![0, 1, 1, 0], k: 2, weights: None, centers: Array2::zeros((2, 2)) };
    for measure in [Measure::Gini, Measure::Entropy, Measure::Clique] {
        let limits = Limits { max_leaves: 9, max_depth: None, min_samples_leaf: 1 };
        let fitted = case.fit(None, measure.criterion(), limits, SearchOptions::default());
        let n_leaves = fitted.nodes.tests.iter().filter(|test| **test == Test::Leaf).count();
        assert_eq!(n_leaves, 4, "{measure:?}");
        assert!(
            fitted
                .nodes
                .leaf_of_row
                .iter()
                .zip(&case.labels)
                .all(|(&leaf, &label)| { fitted.cluster[leaf as usize] == label as usize })
        );
    }
}

#[test]
fn a_row_of_weight_w_is_w_rows() {
    let mut random = Random(23);
    for round in 0..90 {
        let case = Case { weights: None, ..Case::new(&mut random) };
        let times: Vec<usize> = case.labels.iter().map(|_| 2 + random.below(3) as usize).collect();
        let repeated: Vec<usize> =
            times.iter().enumerate().flat_map(|(row, &n)| vec![row; n]).collect();
        let many = Case {
            x: case.x.select(ndarray::Axis(0), &repeated),
            labels: repeated.iter().map(|&row| case.labels[row]).collect(),
            k: case.k,
            weights: None,
            centers: case.centers.clone(),
        };
        let weights = Some(times.iter().map(|&n| n as f64).collect());
        let weighted = Case { weights, ..case };
        let limits = Limits { max_leaves: 7, max_depth: None, min_samples_leaf: 1 };
        let search = SearchOptions { max_bins: 4, direct: 3 };
        let measure = [Measure::Gini, Measure::Entropy, Measure::Clique][round % 3];
        let fit = |case: &Case| case.fit(None, measure.criterion(), limits, search);
        assert_eq!(
            fit(&weighted).nodes.tests,
            fit(&many).nodes.tests,
            "round {round}, {measure:?}"
        );
        for score in [CutScore::Mistakes, CutScore::Emn] {
            let limits = Limits { max_leaves: 1, ..limits };
            let fit = |case: &Case| case.fit(Some(score), GrowthCriterion::Gini, limits, search);
            let (weighted, many) = (fit(&weighted), fit(&many));
            assert_eq!(weighted.nodes.tests, many.nodes.tests, "round {round}, {score:?}");
            let inner =
                |m: &[f64]| -> Vec<f64> { m.iter().copied().filter(|m| !m.is_nan()).collect() };
            assert_eq!(inner(&weighted.mistakes), inner(&many.mistakes));
        }
    }
}

/// A cut between centers.
#[derive(Debug, Clone, Copy)]
struct CenterCut {
    cut: OracleCut,
    mistakes: f64,
    /// Width of the gap as a share of the column's range.
    share: f64,
}

/// Where the threshold of a gap is put: in the widest part between values of rows that are mistakes already.
fn placed(case: &Case, cut: &OracleCut, travelling: &[usize]) -> f64 {
    let mut ends = case.values(travelling, cut.feature);
    ends.retain(|&x| cut.below < x && x < cut.above);
    ends.insert(0, cut.below);
    ends.push(cut.above);
    let widest = ends.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    let tie = CLOSE * case.range(cut.feature);
    let part = ends.windows(2).find(|pair| pair[1] - pair[0] >= widest - tie).unwrap();
    placement::between(part[0], part[1])
}

/// IMM by enumeration of all cuts: nodes in order of their ids.
fn imm(case: &Case, score: CutScore) -> OracleTree {
    let n = case.labels.len();
    let mut tree = OracleTree::new(n);
    let mut alive = vec![(0..case.k).collect::<Vec<usize>>()];
    let mut correct = vec![(0..n).collect::<Vec<usize>>()];
    let mut id = 0;
    while id < tree.tests.len() {
        if alive[id].len() > 1 {
            let mut all: Vec<CenterCut> = vec![];
            for feature in 0..case.x.ncols() {
                let center = |c: usize| case.centers[[c, feature]];
                let mut values = case.values(&correct[id], feature);
                values.extend(alive[id].iter().map(|&c| center(c)));
                values.sort_by(f64::total_cmp);
                values.dedup();
                for pair in values.windows(2) {
                    let (below, above) = (pair[0], pair[1]);
                    let n_left = alive[id].iter().filter(|&&c| center(c) <= below).count();
                    let n_fewer = n_left.min(alive[id].len() - n_left);
                    if n_fewer == 0 {
                        continue;
                    }
                    let is_wrong = |row: usize| {
                        let own = center(case.labels[row] as usize);
                        (case.x[[row, feature]] <= below) != (own <= below)
                    };
                    let wrong = correct[id].iter().filter(|&&row| is_wrong(row));
                    let mistakes: f64 = wrong.map(|&row| case.weight(row)).sum();
                    let per = if score == CutScore::Emn { n_fewer as f64 } else { 1.0 };
                    let range = case.range(feature);
                    let share = if range == 0.0 { 1.0 } else { (above - below) / range };
                    let cut = OracleCut { score: -mistakes / per, feature, below, above };
                    all.push(CenterCut { cut, mistakes, share });
                }
            }
            let best = all.iter().map(|c| c.cut.score).fold(f64::NEG_INFINITY, f64::max);
            all.retain(|c| c.cut.score >= best - TIE * case.total_weight());
            let widest = all.iter().map(|c| c.share).fold(f64::NEG_INFINITY, f64::max);
            let CenterCut { cut, mistakes, .. } =
                *all.iter().find(|c| c.share >= widest - CLOSE).unwrap();
            let travelling: Vec<usize> =
                tree.rows[id].iter().copied().filter(|row| !correct[id].contains(row)).collect();
            let threshold = placed(case, &cut, &travelling);
            let test = Test::Threshold { feature: cut.feature, threshold };
            let sides = case.sides(&tree.rows[id], cut.feature, threshold);
            let center_left = |c: usize| case.centers[[c, cut.feature]] <= cut.below;
            for is_left in [true, false] {
                alive.push(
                    alive[id].iter().copied().filter(|&c| center_left(c) == is_left).collect(),
                );
                let stays = |row: &usize| {
                    (case.x[[*row, cut.feature]] <= cut.below) == is_left
                        && center_left(case.labels[*row] as usize) == is_left
                };
                correct.push(correct[id].iter().copied().filter(stays).collect());
            }
            tree.split(id, test, sides);
            tree.mistakes[id] = mistakes;
        }
        id += 1;
    }
    tree
}

#[test]
fn imm_is_that_of_enumeration_for_both_scores() {
    let mut random = Random(5);
    let mut n_different = 0;
    for round in 0..600 {
        let case = Case::new(&mut random);
        let limits = Limits { max_leaves: 1, max_depth: None, min_samples_leaf: 1 };
        let trees = [CutScore::Mistakes, CutScore::Emn].map(|score| {
            let expected = imm(&case, score);
            for (max_bins, direct) in [(256, 256), (2 + round % 4, round % 7)] {
                let search = SearchOptions { max_bins, direct };
                let fitted = case.fit(Some(score), GrowthCriterion::Gini, limits, search);
                let place = format!("round {round}, {score:?}, {search:?}");
                assert_eq!(fitted.nodes.tests, expected.tests, "{place}");
                assert_eq!(fitted.nodes.leaf_of_row, expected.leaf_of_row(), "{place}");
                assert_eq!(fitted.n_base_leaves, case.k);
                for (id, mistakes) in expected.mistakes.iter().enumerate() {
                    let both_nan = mistakes.is_nan() && fitted.mistakes[id].is_nan();
                    let close = (mistakes - fitted.mistakes[id]).abs() < 1e-9;
                    assert!(both_nan || close, "{place}, node {id}");
                }
            }
            expected.tests
        });
        n_different += usize::from(trees[0] != trees[1]);
    }
    assert!(n_different > 60, "EMN chose another tree only {n_different} times");
}

#[test]
fn growth_on_label_counts_goes_on_from_a_base() {
    let mut random = Random(29);
    for _ in 0..60 {
        let case = Case::new(&mut random);
        let limits = Limits { max_leaves: case.k + 3, max_depth: None, min_samples_leaf: 1 };
        let search = SearchOptions { max_bins: 3, direct: 0 };
        let base = case.fit(
            Some(CutScore::Emn),
            GrowthCriterion::Entropy,
            Limits { max_leaves: 1, ..limits },
            search,
        );
        let grown = case.fit(Some(CutScore::Emn), GrowthCriterion::Entropy, limits, search);
        let n_base = base.nodes.tests.len();
        let is_kept = |id: usize| {
            base.nodes.tests[id] == Test::Leaf || base.nodes.tests[id] == grown.nodes.tests[id]
        };
        assert!((0..n_base).all(is_kept));
        let cost = |fitted: &ThresholdFit| -> f64 {
            (0..fitted.nodes.tests.len())
                .filter(|&id| fitted.nodes.tests[id] == Test::Leaf)
                .map(|id| fitted.cost[id])
                .sum()
        };
        assert!(cost(&grown) <= cost(&base) + 1e-9);
        for id in 0..n_base {
            let expected = if base.nodes.tests[id] == Test::Leaf { base.cost[id] } else { 0.0 };
            assert_eq!(grown.base_cost[id], expected);
        }
    }
}

#[test]
fn the_cheapest_label_is_the_lowest_among_ties() {
    for (totals, label) in
        [([0.1 + 0.2, 0.3], 0), ([0.3, 0.1 + 0.2], 0), ([0.3 + 1e-11, 0.3], 1), ([0.0, 0.0], 0)]
    {
        assert_eq!(best_label(&totals), label, "{totals:?}");
    }
}

/// Sums by subtraction carry the rounding of what they are subtracted from.
#[test]
fn sums_are_subtracted_only_where_that_loses_no_digits() {
    let minuend = [1e6, 1e6];
    for (totals, cost, expected) in [
        ([2e3, 2e3], 11.0, true),
        ([2e3, 2e3], 9.0, false),
        ([2e3, 0.9e3], 900.0, false),
        ([0.9e3, 2e3], 900.0, false),
    ] {
        assert_eq!(CheapestLabel.may_subtract(&totals, cost, &minuend), expected, "{totals:?}");
    }
}

#[test]
fn costs_of_many_sets_are_those_of_each_to_the_last_bit() {
    let mut random = Random(11);
    let labels: Vec<u32> = (0..90).map(|i| i % 9).collect();
    let mut compared = 0;
    for k in 1..10 {
        let rows = OneHot::new(&labels, 9, None).unwrap();
        let clique = Clique::new(&rows, labels.len());
        for n in [TILE, 3 * TILE] {
            let sums: Vec<f64> = (0..k * n)
                .map(|_| random.pick(&[0.0, 0.1, 1.0, 2.5]) * random.below(9) as f64)
                .collect();
            let check = |side: &dyn Fn(&[f64]) -> f64, costs: &[f64]| {
                for (i, cost) in costs.iter().enumerate() {
                    let of_set: Vec<f64> = (0..k).map(|label| sums[label * n + i]).collect();
                    assert_eq!(cost.to_bits(), side(&of_set).to_bits(), "{of_set:?}");
                }
                costs.len()
            };
            let mut costs = vec![0.0; n];
            Gini.costs(&sums, &mut costs);
            compared += check(&|sums| Gini.cost(sums), &costs);
            Entropy.costs(&sums, &mut costs);
            compared += check(&|sums| Entropy.cost(sums), &costs);
            clique.costs(&sums, &mut costs);
            compared += check(&|sums| clique.cost(sums), &costs);
        }
    }
    assert_eq!(compared, 9 * 4 * TILE * 3);
}
