//! Trees of tables with levels and missing cells against enumeration: the same tests, directions and partitions.
//!
//! The oracle tries every threshold, interval and set of levels of every column on the rows themselves, with missing
//! cells on either side, and follows the tie rules of the package.

#[path = "common/random.rs"]
mod random;

use ndarray::{Array2, ArrayView1};
use treeclust_rs::criterion::centers::{CenterColumns, Centers, TableCenters};
use treeclust_rs::criterion::cut_score::CutScore;
use treeclust_rs::criterion::label_cost::CutKind;
use treeclust_rs::criterion::label_counts::OneHot;
use treeclust_rs::fit::{Base, GrowthCriterion, ThresholdFit, ThresholdProblem, fit};
use treeclust_rs::grow::Limits;
use treeclust_rs::index::Index;
use treeclust_rs::parallel::Monitor;
use treeclust_rs::placement;
use treeclust_rs::search::SearchOptions;
use treeclust_rs::table::{Column, MISSING_LEVEL, Table};
use treeclust_rs::tree::{LevelSet, Test};

use random::Random;

const TIE: f64 = 1e-12;
/// Rows per side above which a forbidden set of levels is replaced by that of a sweep.
const MOST_EXACT: usize = 64;

impl Random {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A column as the oracle sees it: NaN is missing, levels are codes.
#[derive(Debug, Clone)]
struct Cells {
    x: Vec<f64>,
    n_levels: Option<usize>,
    codes: Vec<u8>,
}

impl Cells {
    fn new(random: &mut Random, n: usize) -> Self {
        let n_levels = random.pick(&[None, None, Some(1), Some(3), Some(4), Some(6)]);
        let values = n_levels.unwrap_or(random.pick(&[3, 8, 40])) as u64;
        let gaps = random.pick(&[0, 0, 1, 3, 10]); // in tenths; 10: all missing
        let cell = |random: &mut Random| {
            if random.below(10) < gaps { f64::NAN } else { random.below(values) as f64 }
        };
        let x: Vec<f64> = (0..n).map(|_| cell(random)).collect();
        let code = |x: &f64| if x.is_nan() { MISSING_LEVEL } else { *x as u8 };
        Cells { codes: x.iter().map(code).collect(), x, n_levels }
    }

    /// The same cells, without gaps if the column is constant: it is never cut.
    fn filled(&self) -> Self {
        let mut filled = self.clone();
        let mut observed = (0..self.x.len()).filter(|&row| !self.x[row].is_nan());
        if let Some(first) = observed.next()
            && observed.all(|row| self.x[row] == self.x[first])
        {
            filled.x.fill(self.x[first]);
            filled.codes.fill(self.codes[first]);
        }
        filled
    }

    fn column(&self) -> Column<'_> {
        match self.n_levels {
            Some(n_levels) => Column::levels(ArrayView1::from(&self.codes), n_levels).unwrap(),
            None => ArrayView1::from(&self.x).into(),
        }
    }
}

/// A tiny problem, full of ties.
#[derive(Clone)]
struct Case {
    columns: Vec<Cells>,
    n: usize,
    k: usize,
    labels: Vec<u32>,
    weights: Option<Vec<f64>>,
    /// n x k, weights included.
    regrets: Vec<f64>,
    /// Whether these are those of wrong labels, and the fit is not given them.
    by_labels: bool,
}

/// What a set of rows costs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    Threshold,
    Interval,
    Gini,
    Entropy,
}

impl Case {
    /// `is_exact`: sums of weights are.
    fn new(random: &mut Random, n: usize, is_exact: bool) -> Self {
        let (d, k) = (1 + random.below(3) as usize, 2 + random.below(3) as usize);
        let columns = (0..d).map(|_| Cells::new(random, n)).collect();
        let weights: &[f64] = if is_exact { &[0.5, 1.0, 3.0] } else { &[0.1, 0.7, 1.3] };
        let weights =
            (random.below(2) == 0).then(|| (0..n).map(|_| random.pick(weights)).collect());
        let weight = |row: usize| weights.as_ref().map_or(1.0, |w: &Vec<f64>| w[row]);
        let labels: Vec<u32> = (0..n).map(|_| random.below(k as u64) as u32).collect();
        let mut regrets = vec![0.0; n * k];
        for (row, costs) in regrets.chunks_mut(k).enumerate() {
            costs.iter_mut().for_each(|cost| *cost = weight(row) * random.below(4) as f64);
            costs[labels[row] as usize] = 0.0;
        }
        Case { columns, n, k, labels, weights, regrets, by_labels: false }
    }

    /// The same rows, every wrong label costing their weight.
    fn by_labels(self) -> Self {
        let cost = |row: usize, l: usize| match self.labels[row] as usize == l {
            true => 0.0,
            false => self.weights.as_ref().map_or(1.0, |weights| weights[row]),
        };
        let costs_of = |row: usize| (0..self.k).map(move |l| (row, l));
        let regrets = (0..self.n).flat_map(costs_of).map(|(row, l)| cost(row, l)).collect();
        Case { regrets, by_labels: true, ..self }
    }

    /// The problem as the oracle sees it.
    fn filled(&self) -> Self {
        Case { columns: self.columns.iter().map(Cells::filled).collect(), ..self.clone() }
    }

    fn fit(&self, measure: Measure, limits: Limits, search: SearchOptions) -> ThresholdFit {
        let regrets = (!self.by_labels).then_some(&self.regrets[..]);
        let label_cost = |cuts| GrowthCriterion::LabelCost { regrets, cuts };
        let criterion = match measure {
            Measure::Gini => GrowthCriterion::Gini,
            Measure::Entropy => GrowthCriterion::Entropy,
            Measure::Threshold => label_cost(CutKind::Threshold),
            Measure::Interval => label_cost(CutKind::Interval),
        };
        let problem = ThresholdProblem {
            labels: &self.labels,
            k: self.k,
            weights: self.weights.as_deref(),
            base: Base::Leaf,
            criterion,
            limits,
            search,
        };
        let table = Table::new(self.columns.iter().map(Cells::column).collect()).unwrap();
        fit(&table, &problem, &Monitor::default()).unwrap()
    }

    /// What the rows add up to: their regrets, or their weight by label.
    fn sums(&self, measure: Measure, rows: &[usize]) -> Vec<f64> {
        let mut sums = vec![0.0; self.k];
        for &row in rows {
            if matches!(measure, Measure::Threshold | Measure::Interval) {
                let regrets = &self.regrets[row * self.k..][..self.k];
                sums.iter_mut().zip(regrets).for_each(|(a, b)| *a += b);
            } else {
                sums[self.labels[row] as usize] += self.weights.as_ref().map_or(1.0, |w| w[row]);
            }
        }
        sums
    }

    fn cost(&self, measure: Measure, rows: &[usize]) -> f64 {
        let sums = self.sums(measure, rows);
        let weight: f64 = sums.iter().sum();
        let shares = sums.iter().map(|sum| sum / weight).filter(|&share| share > 0.0);
        match measure {
            Measure::Threshold | Measure::Interval => {
                sums.iter().copied().fold(f64::INFINITY, f64::min)
            }
            Measure::Gini => weight * (1.0 - shares.map(|p| p * p).sum::<f64>()),
            Measure::Entropy => weight * shares.map(|p| -p * p.log2()).sum::<f64>(),
        }
    }

    /// The unit of the margins; 0 if there is nothing to gain.
    fn scale(&self, measure: Measure, rows: &[usize]) -> f64 {
        let is_pure = rows.iter().all(|&row| self.labels[row] == self.labels[rows[0]]);
        let is_counted = matches!(measure, Measure::Gini | Measure::Entropy);
        if is_counted && is_pure { 0.0 } else { self.cost(measure, rows) }
    }
}

/// A test, the direction of missing cells, and what they are worth.
#[derive(Debug, Clone)]
struct OracleCut {
    score: f64,
    test: Test,
    missing_left: bool,
}

impl OracleCut {
    fn goes_left(&self, case: &Case, row: usize) -> bool {
        let x = case.columns[self.test.feature().unwrap()].x[row];
        self.test.goes_left(x, self.missing_left)
    }
}

/// What an oracle looks for at a node.
struct Node<'a> {
    case: &'a Case,
    measure: Measure,
    rows: &'a [usize],
    min_rows: usize,
}

impl Node<'_> {
    fn sides(&self, goes_left: impl Fn(usize) -> bool) -> [Vec<usize>; 2] {
        let (left, right) = self.rows.iter().partition(|&&row| goes_left(row));
        [left, right]
    }

    /// The cut with its score; none if a side has too few rows.
    fn scored(&self, test: Test, missing_left: bool) -> Option<OracleCut> {
        let cut = OracleCut { score: 0.0, test, missing_left };
        let sides = self.sides(|row| cut.goes_left(self.case, row));
        let whole = self.case.cost(self.measure, self.rows);
        let score = whole - sides.iter().map(|s| self.case.cost(self.measure, s)).sum::<f64>();
        let enough = sides.iter().all(|side| side.len() >= self.min_rows.max(1));
        enough.then_some(OracleCut { score, ..cut })
    }

    /// All cuts of a column of numbers, in the order of ties.
    fn cuts_of_numbers(&self, feature: usize) -> Vec<OracleCut> {
        let x = &self.case.columns[feature].x;
        let mut values: Vec<f64> =
            self.rows.iter().map(|&row| x[row]).filter(|x| !x.is_nan()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let has_missing = self.rows.iter().any(|&row| x[row].is_nan());
        let mut ends: Vec<(Option<usize>, usize)> = vec![];
        if self.measure == Measure::Interval {
            for start in 0..values.len() {
                ends.extend((start..values.len() - 1).map(|last| (start.checked_sub(1), last)));
            }
        } else {
            ends.extend((1..values.len()).map(|stop| (None, stop - 1)));
        }
        let mut cuts = vec![];
        for (below, last) in ends {
            let upper = placement::between(values[last], values[last + 1]);
            let test = match below {
                None => Test::Threshold { feature, threshold: upper },
                Some(i) => {
                    let lower = placement::lower_end(values[i], values[i + 1]);
                    Test::Interval { feature, lower, upper }
                }
            };
            if has_missing {
                cuts.extend(self.scored(test.clone(), false));
                cuts.extend(self.scored(test, true));
            } else {
                let [left, right] = self.sides(|row| test.goes_left(x[row], false));
                cuts.extend(self.scored(test, left.len() >= right.len()));
            }
        }
        if has_missing {
            cuts.extend(self.scored(Test::Missing { feature }, true));
        }
        cuts
    }

    /// Rows of each code present at the node, missing ones last.
    fn levels(&self, feature: usize) -> Vec<(u8, Vec<usize>)> {
        let codes = &self.case.columns[feature].codes;
        let of = |code: u8| {
            let rows: Vec<usize> =
                self.rows.iter().copied().filter(|&r| codes[r] == code).collect();
            (code, rows)
        };
        (0..=MISSING_LEVEL).map(of).filter(|(_, rows)| !rows.is_empty()).collect()
    }

    /// Places of the levels that go left, as bits, to a cut: absent levels go to the side with more rows.
    fn set_cut(&self, feature: usize, levels: &[(u8, Vec<usize>)], bits: u32) -> Option<OracleCut> {
        let is_left = |place: usize| bits >> place & 1 == 1;
        let n_left: usize =
            (0..levels.len()).filter(|&i| is_left(i)).map(|i| levels[i].1.len()).sum();
        let most_left = n_left >= self.rows.len() - n_left;
        let place = |code: u8| levels.iter().position(|level| level.0 == code);
        let goes_left = |code: u8| place(code).map_or(most_left, is_left);
        let missing_left = goes_left(MISSING_LEVEL);
        let mut present = levels.iter().enumerate().filter(|(_, level)| level.0 != MISSING_LEVEL);
        if missing_left && n_left > 0 && !present.any(|(i, _)| is_left(i)) {
            return self.scored(Test::Missing { feature }, true);
        }
        let n_levels = self.case.columns[feature].n_levels.unwrap();
        let left: LevelSet = (0..n_levels as u8).filter(|&code| goes_left(code)).collect();
        self.scored(Test::Levels { feature, left }, missing_left)
    }

    /// Sets of levels that may be taken, in the order of ties; what counts for them is `cost`.
    fn cuts_of_levels(&self, feature: usize) -> Vec<OracleCut> {
        let levels = self.levels(feature);
        let n = levels.len();
        let sums: Vec<Vec<f64>> =
            levels.iter().map(|(_, rows)| self.case.sums(self.measure, rows)).collect();
        let margin = TIE * self.case.scale(self.measure, self.rows);
        let counts: Vec<usize> = levels.iter().map(|(_, rows)| rows.len()).collect();
        let n_left =
            |bits: u32| (0..n).filter(|i| bits >> i & 1 == 1).map(|i| counts[i]).sum::<usize>();
        let min_rows = self.min_rows.max(1);
        let allowed =
            |bits: u32| n_left(bits) >= min_rows && self.rows.len() - n_left(bits) >= min_rows;
        let key = |bits: u32| {
            let places: Vec<usize> = (0..n).filter(|i| bits >> i & 1 == 1).collect();
            (places.len(), places)
        };
        let mut found: Vec<(f64, u32)> = vec![];
        if matches!(self.measure, Measure::Gini | Measure::Entropy) {
            let mut sets: Vec<u32> = (0..n).map(|i| 1 << i).collect();
            for label in 0..self.case.k {
                let mut order: Vec<usize> = (0..n).collect();
                let share = |i: usize| sums[i][label] / sums[i].iter().sum::<f64>();
                order.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
                let mut bits = 0;
                sets.extend(order.iter().map(|i| {
                    bits |= 1 << i;
                    bits
                }));
            }
            for bits in sets.into_iter().filter(|&bits| allowed(bits)) {
                let other = !bits & ((1 << n) - 1);
                let bits = if key(other) < key(bits) { other } else { bits };
                let score = self.set_cut(feature, &levels, bits).unwrap().score;
                found.push((-score, bits));
            }
        } else {
            for (l, j) in (0..self.case.k).flat_map(|l| (0..self.case.k).map(move |j| (l, j))) {
                let cost = |bits: u32| -> f64 {
                    (0..n).map(|i| sums[i][if bits >> i & 1 == 1 { l } else { j }]).sum()
                };
                let best =
                    (0..n).filter(|&i| sums[i][j] - sums[i][l] > margin).map(|i| 1 << i).sum();
                if l == j || n_left(best) == 0 || n_left(best) == self.rows.len() {
                    continue;
                }
                if allowed(best) {
                    found.push((cost(best), best));
                } else if min_rows <= MOST_EXACT {
                    let sets = (0..1 << n).filter(|&bits| allowed(bits));
                    let first = sets.min_by(|&a, &b| {
                        cost(a).total_cmp(&cost(b)).then_with(|| key(a).cmp(&key(b)))
                    });
                    found.extend(first.map(|bits| (cost(bits), bits)));
                } else {
                    let mut order: Vec<usize> = (0..n).collect();
                    let per_row = |i: usize| (sums[i][l] - sums[i][j]) / counts[i] as f64;
                    order.sort_by(|&a, &b| per_row(a).total_cmp(&per_row(b)));
                    let mut bits = 0;
                    let prefixes = order.iter().map(|i| {
                        bits |= 1 << i;
                        bits
                    });
                    let allowed = prefixes.filter(|&bits| allowed(bits));
                    let first = allowed.min_by(|&a, &b| cost(a).total_cmp(&cost(b)));
                    found.extend(first.map(|bits| (cost(bits), bits)));
                }
            }
        }
        let least = found.iter().map(|set| set.0).fold(f64::INFINITY, f64::min);
        found.retain(|set| set.0 <= least + margin);
        found.sort_by_key(|&(_, bits)| key(bits));
        found.iter().filter_map(|&(_, bits)| self.set_cut(feature, &levels, bits)).collect()
    }

    /// The best score of all cuts and the first cut that ties with it; none if none is worth taking.
    fn best(&self) -> Option<(f64, OracleCut)> {
        let features = 0..self.case.columns.len();
        let all: Vec<OracleCut> = features
            .flat_map(|feature| match self.case.columns[feature].n_levels {
                None => self.cuts_of_numbers(feature),
                Some(_) => self.cuts_of_levels(feature),
            })
            .collect();
        let best = all.iter().map(|cut| cut.score).fold(f64::NEG_INFINITY, f64::max);
        let scale = self.case.scale(self.measure, self.rows);
        let takes_any = matches!(self.measure, Measure::Gini | Measure::Entropy);
        if !takes_any && best <= TIE * scale {
            return None;
        }
        all.into_iter().find(|cut| cut.score >= best - TIE * scale).map(|cut| (best, cut))
    }
}

/// A tree by node id.
struct OracleTree {
    tests: Vec<Test>,
    missing_left: Vec<bool>,
    left: Vec<usize>,
    rows: Vec<Vec<usize>>,
}

/// The values beside the cuts of a node among its rows: below and above its upper end or its threshold, then its lower
/// end; NaN where there is none.
fn beside(case: &Case, test: &Test, rows: &[usize]) -> [f64; 4] {
    let (feature, lower, upper) = match *test {
        Test::Threshold { feature, threshold } => (feature, f64::NAN, threshold),
        Test::Interval { feature, lower, upper } => (feature, lower, upper),
        _ => return [f64::NAN; 4],
    };
    let of = |is_on: &dyn Fn(f64) -> bool, pick: fn(f64, f64) -> f64| {
        let cells = rows.iter().map(|&row| case.columns[feature].x[row]);
        cells.filter(|x| is_on(*x)).fold(f64::NAN, pick)
    };
    [
        of(&|x| x <= upper, f64::max),
        of(&|x| x > upper, f64::min),
        of(&|x| x < lower, f64::max),
        of(&|x| x >= lower, f64::min),
    ]
}

/// Checks the values beside the cuts of a fitted tree, whose nodes have the given rows.
fn check_beside(case: &Case, fitted: &ThresholdFit, rows: &[Vec<usize>], place: &str) {
    let found = fitted.beside.as_ref().unwrap();
    for (id, (test, rows)) in fitted.nodes.tests.iter().zip(rows).enumerate() {
        let found =
            [found.below[id], found.above[id], found.below_lower[id], found.above_lower[id]];
        for (a, b) in found.into_iter().zip(beside(case, test, rows)) {
            assert!(a == b || a.is_nan() && b.is_nan(), "{place}, node {id}: {a} {b}");
        }
    }
}

/// Best-first growth by enumeration of all cuts.
fn grow(case: &Case, measure: Measure, limits: Limits) -> OracleTree {
    let mut tree = OracleTree {
        tests: vec![Test::Leaf],
        missing_left: vec![false],
        left: vec![0],
        rows: vec![(0..case.n).collect()],
    };
    for _ in 1..limits.max_leaves {
        let leaves: Vec<usize> =
            (0..tree.tests.len()).filter(|&id| tree.tests[id] == Test::Leaf).collect();
        let size: f64 = leaves.iter().map(|&id| case.scale(measure, &tree.rows[id])).sum();
        let best = |id: usize| {
            let (rows, min_rows) = (&tree.rows[id][..], limits.min_samples_leaf);
            let may = case.scale(measure, rows) > 0.0;
            may.then(|| Node { case, measure, rows, min_rows }.best()).flatten()
        };
        let open: Vec<(usize, f64, OracleCut)> = leaves
            .into_iter()
            .filter_map(|id| best(id).map(|(best, cut)| (id, best, cut)))
            .collect();
        let most = open.iter().map(|leaf| leaf.1).fold(f64::NEG_INFINITY, f64::max);
        let first = open.into_iter().find(|leaf| leaf.1 >= most - TIE * size);
        let Some((id, _, cut)) = first else { break };
        let (left, right) = tree.rows[id].iter().partition(|&&row| cut.goes_left(case, row));
        (tree.left[id], tree.missing_left[id]) = (tree.tests.len(), cut.missing_left);
        tree.tests[id] = cut.test;
        for rows in [left, right] {
            tree.tests.push(Test::Leaf);
            tree.missing_left.push(false);
            tree.left.push(0);
            tree.rows.push(rows);
        }
    }
    tree
}

fn check(
    case: &Case,
    measure: Measure,
    limits: Limits,
    searches: &[(usize, usize)],
    place: &str,
) -> OracleTree {
    let expected = grow(&case.filled(), measure, limits);
    for &(max_bins, direct) in searches {
        let search = SearchOptions { max_bins, direct };
        let fitted = case.fit(measure, limits, search);
        let columns: Vec<_> = case.columns.iter().map(|c| (c.n_levels, &c.x)).collect();
        let place = format!("{place}, {measure:?}, {search:?}, {limits:?}, {columns:?}");
        assert_eq!(fitted.nodes.tests, expected.tests, "{place}");
        assert_eq!(fitted.nodes.left, expected.left, "{place}");
        assert_eq!(fitted.nodes.missing_left, expected.missing_left, "{place}");
        check_beside(case, &fitted, &expected.rows, &place);
        // Every row lies where the tests send it.
        for (id, rows) in expected.rows.iter().enumerate() {
            assert_eq!(fitted.nodes.n_samples[id], rows.len(), "{place}");
            if expected.tests[id] == Test::Leaf {
                let leaf_of_row = &fitted.nodes.leaf_of_row;
                assert!(rows.iter().all(|&row| leaf_of_row[row] == id as u32), "{place}");
            }
        }
    }
    expected
}

#[test]
fn trees_of_levels_and_gaps_are_those_of_enumeration() {
    let mut random = Random(29);
    let (mut n_levels, mut n_missing, mut n_left) = (0, 0, 0);
    for round in 0..2400 {
        let n = 6 + random.below(40) as usize;
        let min_samples_leaf = random.pick(&[1, 1, 2, 4, 9]);
        // Which of two equal sets a programme finds shows only where sums are exact.
        let case = Case::new(&mut random, n, min_samples_leaf > 1 || round % 2 == 0);
        let limits = Limits { max_leaves: 2 + round % 8, max_depth: None, min_samples_leaf };
        let measure = [Measure::Threshold, Measure::Interval, Measure::Gini, Measure::Entropy]
            [random.pick(&[0, 0, 0, 1, 1, 2, 3])];
        let searches = [(256, 256), (2 + round % 4, round % 7)];
        let tree = check(&case, measure, limits, &searches, &format!("round {round}"));
        for (test, missing_left) in tree.tests.iter().zip(tree.missing_left) {
            n_levels += usize::from(matches!(test, Test::Levels { .. }));
            n_missing += usize::from(matches!(test, Test::Missing { .. }));
            n_left += usize::from(matches!(test, Test::Threshold { .. }) && missing_left);
        }
    }
    assert!(n_levels > 1000 && n_missing > 100 && n_left > 100, "{n_levels} {n_missing} {n_left}");
}

#[test]
fn trees_that_cost_by_wrong_labels_are_those_of_their_regrets() {
    let mut random = Random(37);
    let (mut n_splits, mut n_weighted) = (0, 0);
    for round in 0..1200 {
        let n = 6 + random.below(40) as usize;
        let min_samples_leaf = random.pick(&[1, 1, 2, 4]);
        let is_exact = min_samples_leaf > 1 || round % 2 == 0;
        let case = Case::new(&mut random, n, is_exact).by_labels();
        let limits = Limits { max_leaves: 2 + round % 8, max_depth: None, min_samples_leaf };
        let measure = random.pick(&[Measure::Threshold, Measure::Interval]);
        let searches = [(256, 256), (2 + round % 4, round % 7)];
        n_weighted += usize::from(case.weights.is_some());
        let tree = check(&case, measure, limits, &searches, &format!("round {round}"));
        n_splits += tree.tests.len() / 2;
        let [found, expected] = [true, false].map(|by_labels| {
            let case = Case { by_labels, ..case.clone() };
            let mut fitted = case.fit(measure, limits, SearchOptions::default());
            assert!(fitted.mistakes.drain(..).all(f64::is_nan)); // which equal nothing
            format!("{fitted:?}") // the bits of all numbers
        });
        assert_eq!(found, expected, "round {round}");
    }
    assert!(n_splits > 1500 && n_weighted > 300, "{n_splits} {n_weighted}");
}

#[test]
fn above_many_rows_a_side_forbidden_sets_are_replaced_by_those_of_a_sweep() {
    let mut random = Random(31);
    for round in 0..60 {
        let n = 140 + random.below(160) as usize;
        let case = Case::new(&mut random, n, true);
        let limits = Limits { max_leaves: 3, max_depth: None, min_samples_leaf: 60 + round % 10 };
        check(&case, Measure::Threshold, limits, &[(256, 256), (5, 3)], &format!("round {round}"));
    }
}

/// The pairs of labels find what all 2^V sets hold.
#[test]
fn no_set_of_levels_is_better_than_the_one_taken() {
    let mut random = Random(37);
    for round in 0..2000 {
        let n = 6 + random.below(60) as usize;
        let mut case = Case::new(&mut random, n, round % 2 == 0);
        case.columns.truncate(1);
        case.columns[0].n_levels.get_or_insert(40);
        let measure =
            if round % 4 == 3 && case.k == 2 { Measure::Gini } else { Measure::Threshold };
        let min_rows = random.pick(&[1, 1, 2, 5]);
        let limits = Limits { max_leaves: 2, max_depth: None, min_samples_leaf: min_rows };
        let rows: Vec<usize> = (0..n).collect();
        let filled = case.filled();
        let node = Node { case: &filled, measure, rows: &rows, min_rows };
        let levels = node.levels(0);
        if levels.len() > 11 || measure == Measure::Gini && min_rows > 1 {
            continue;
        }
        let best = (1..1 << levels.len())
            .filter_map(|bits| node.set_cut(0, &levels, bits))
            .map(|cut| cut.score)
            .fold(f64::NEG_INFINITY, f64::max);
        let fitted = case.fit(measure, limits, SearchOptions::default());
        let saved = if fitted.nodes.tests.len() > 1 {
            fitted.cost[0] - fitted.cost[1] - fitted.cost[2]
        } else {
            0.0
        };
        assert!((saved - best.max(0.0)).abs() <= 1e-9, "round {round}: {saved}, not {best}");
    }
}

/// Where centers lie.
struct TestCenters {
    /// k x columns; 0 in columns of levels.
    numbers: Array2<f64>,
    /// By column k x n_levels; without columns for numbers.
    shares: Vec<Array2<f64>>,
}

impl TestCenters {
    /// Numbers that in some columns are the same for all, and the shares of the rows, or in some cases other ones.
    fn new(random: &mut Random, case: &Case) -> Self {
        let mut numbers = Array2::zeros((case.k, case.columns.len()));
        for (f, mut column) in numbers.columns_mut().into_iter().enumerate() {
            let is_same = random.below(2) == 0 || case.columns[f].n_levels.is_some();
            let values = if is_same { 1 } else { 40 };
            column.iter_mut().for_each(|x| *x = random.below(values) as f64 / 2.0);
        }
        let is_large = case.k > 11;
        let are_given = is_large || random.below(3) == 0;
        let shares = (0..case.columns.len()).map(|f| {
            let n_levels = case.columns[f].n_levels.unwrap_or(0);
            Array2::from_shape_fn((case.k, n_levels), |(cluster, level)| {
                if are_given {
                    random.below(if is_large { 1 << 20 } else { 5 }) as f64
                } else {
                    share(case, f, cluster, level as u8)
                }
            })
        });
        let shares = shares.collect();
        TestCenters { numbers, shares }
    }

    /// The coordinates as the core takes them.
    fn encoded(&self) -> Vec<f64> {
        let k = self.numbers.nrows();
        let of_column = |c: usize, f: usize| match self.shares[f].ncols() {
            0 => vec![self.numbers[[c, f]]],
            _ => self.shares[f].row(c).to_vec(),
        };
        (0..k).flat_map(|c| (0..self.shares.len()).flat_map(move |f| of_column(c, f))).collect()
    }
}

/// What share of each cluster's observed cells is a level.
fn share(case: &Case, feature: usize, cluster: usize, level: u8) -> f64 {
    let codes = &case.columns[feature].codes;
    let weight = |of: &dyn Fn(usize) -> bool| -> f64 {
        let rows = (0..case.n).filter(|&row| of(row));
        rows.map(|row| case.weights.as_ref().map_or(1.0, |w| w[row])).sum()
    };
    let of_cluster =
        |row: usize| codes[row] != MISSING_LEVEL && case.labels[row] as usize == cluster;
    let total = weight(&of_cluster);
    if total > 0.0 {
        return weight(&|row| of_cluster(row) && codes[row] == level) / total;
    }
    let whole = weight(&|row| codes[row] != MISSING_LEVEL);
    if whole > 0.0 { weight(&|row| codes[row] == level) / whole } else { 0.0 }
}

/// A cut between centers: the test, the direction of missing cells if searched rows have one, the centers on the left.
#[derive(Debug, Clone)]
struct CenterCut {
    score: f64,
    /// Width of the gap as a share of the column's range; 1 for levels.
    width: f64,
    feature: usize,
    mistakes: f64,
    missing_left: Option<bool>,
    left_centers: Vec<usize>,
    /// The gap, or the codes that go left.
    form: Result<(f64, f64), Vec<u8>>,
}

impl CenterCut {
    /// Whether a row goes left; none where the cut leaves it open.
    fn side(&self, case: &Case, present: &[u8], row: usize) -> Option<bool> {
        let (x, code) = (case.columns[self.feature].x[row], case.columns[self.feature].codes[row]);
        match &self.form {
            _ if x.is_nan() => self.missing_left,
            Ok((below, _)) => Some(x <= *below),
            Err(left) => present.contains(&code).then(|| left.contains(&code)),
        }
    }
}

struct ImmOracle<'a> {
    case: &'a Case,
    centers: &'a TestCenters,
    score: CutScore,
}

impl ImmOracle<'_> {
    fn weight(&self, row: usize) -> f64 {
        self.case.weights.as_ref().map_or(1.0, |w| w[row])
    }

    fn range(&self, feature: usize) -> f64 {
        let x = self.case.columns[feature].x.iter().copied().filter(|x| !x.is_nan());
        let low = x.clone().fold(f64::INFINITY, f64::min);
        (x.fold(f64::NEG_INFINITY, f64::max) - low).max(0.0)
    }

    fn finished(&self, mut cut: CenterCut, alive: &[usize], correct: &[usize]) -> CenterCut {
        let present: Vec<u8> =
            correct.iter().map(|&row| self.case.columns[cut.feature].codes[row]).collect();
        let wrong = correct.iter().filter(|&&row| {
            let own = cut.left_centers.contains(&(self.case.labels[row] as usize));
            cut.side(self.case, &present, row).unwrap() != own
        });
        cut.mistakes = wrong.map(|&row| self.weight(row)).sum();
        let n_left = cut.left_centers.len();
        let fewer = n_left.min(alive.len() - n_left) as f64;
        cut.score -= cut.mistakes / if self.score == CutScore::Emn { fewer } else { 1.0 };
        cut
    }

    fn cuts_of_numbers(
        &self,
        feature: usize,
        alive: &[usize],
        correct: &[usize],
    ) -> Vec<CenterCut> {
        let x = &self.case.columns[feature].x;
        let center = |c: usize| self.centers.numbers[[c, feature]];
        let observed = correct.iter().map(|&row| x[row]).filter(|x| !x.is_nan());
        let mut values: Vec<f64> = observed.chain(alive.iter().map(|&c| center(c))).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let has_missing = correct.iter().any(|&row| x[row].is_nan());
        let directions: &[Option<bool>] =
            if has_missing { &[Some(false), Some(true)] } else { &[None] };
        let range = self.range(feature);
        let mut cuts = vec![];
        for pair in values.windows(2) {
            let left_centers: Vec<usize> =
                alive.iter().copied().filter(|&c| center(c) <= pair[0]).collect();
            if left_centers.is_empty() || left_centers.len() == alive.len() {
                continue;
            }
            for &missing_left in directions {
                let cut = CenterCut {
                    score: 0.0,
                    width: if range == 0.0 { 1.0 } else { (pair[1] - pair[0]) / range },
                    feature,
                    mistakes: 0.0,
                    missing_left,
                    left_centers: left_centers.clone(),
                    form: Ok((pair[0], pair[1])),
                };
                cuts.push(self.finished(cut, alive, correct));
            }
        }
        cuts
    }

    fn cuts_of_levels(&self, feature: usize, alive: &[usize], correct: &[usize]) -> Vec<CenterCut> {
        let codes = &self.case.columns[feature].codes;
        let n_levels = self.case.columns[feature].n_levels.unwrap() as u8;
        let mut present: Vec<u8> = correct.iter().map(|&row| codes[row]).collect();
        present.sort();
        present.dedup();
        let has_missing = present.contains(&MISSING_LEVEL);
        let by_share = |level: u8| {
            let mut order = alive.to_vec();
            let share = |c: usize| self.centers.shares[feature][[c, level.into()]];
            order.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
            order
        };
        let cut = |left: Vec<u8>, left_centers: Vec<usize>, score: f64| {
            let form = Err(left.iter().copied().filter(|&code| code != MISSING_LEVEL).collect());
            let missing_left = has_missing.then(|| left.contains(&MISSING_LEVEL));
            let cut = CenterCut {
                score,
                width: 1.0,
                feature,
                mistakes: 0.0,
                missing_left,
                left_centers,
                form,
            };
            (left, cut)
        };
        let mut cuts: Vec<(Vec<u8>, CenterCut)> = vec![];
        if present.len() < 2 {
            // Less than any cut that divides the rows.
            let worst = -1e6;
            for level in 0..n_levels {
                let order = by_share(level);
                let shares = self.centers.shares[feature].column(level.into());
                let gap = |i: usize| shares[order[i - 1]] - shares[order[i]];
                let widest = (1..order.len()).map(gap).fold(0.0, f64::max);
                let first = (1..order.len()).find(|&i| gap(i) > 1e-9 && gap(i) >= widest - 1e-9);
                cuts.extend(first.map(|i| cut(vec![level], order[..i].to_vec(), worst)));
            }
        } else {
            let m = alive.len();
            let mut divisions: Vec<Vec<usize>> = vec![];
            if m <= 8 {
                for bits in 1..1usize << (m - 1) {
                    divisions
                        .push((0..m).filter(|i| bits >> i & 1 == 1).map(|i| alive[i]).collect());
                }
            } else {
                divisions.extend(alive.iter().map(|&c| vec![c]));
                for &level in present.iter().filter(|&&code| code != MISSING_LEVEL) {
                    let order = by_share(level);
                    divisions.extend((1..m).map(|i| order[..i].to_vec()));
                }
            }
            for side in divisions {
                let weight = |code: u8, inside: bool| -> f64 {
                    let rows = correct.iter().filter(|&&row| {
                        codes[row] == code
                            && side.contains(&(self.case.labels[row] as usize)) == inside
                    });
                    rows.map(|&row| self.weight(row)).sum()
                };
                let (mut left, mut right): (Vec<u8>, Vec<u8>) =
                    present.iter().partition(|&&code| weight(code, false) < weight(code, true));
                if left.is_empty() || right.is_empty() {
                    let price = |code: u8| (weight(code, false) - weight(code, true)).abs();
                    let moved =
                        *present.iter().min_by(|&&a, &&b| price(a).total_cmp(&price(b))).unwrap();
                    for side in [&mut left, &mut right] {
                        match side.iter().position(|&code| code == moved) {
                            Some(place) => drop(side.remove(place)),
                            None => side.push(moved),
                        }
                    }
                }
                let others: Vec<usize> =
                    alive.iter().copied().filter(|c| !side.contains(c)).collect();
                let flip = (right.len(), &right) < (left.len(), &left);
                cuts.push(if flip { cut(right, others, 0.0) } else { cut(left, side, 0.0) });
            }
        }
        let finished = |(left, cut)| (left, self.finished(cut, alive, correct));
        let mut cuts: Vec<(Vec<u8>, CenterCut)> = cuts.into_iter().map(finished).collect();
        cuts.sort_by(|(a, x), (b, y)| {
            (a.len(), a).cmp(&(b.len(), b)).then(x.mistakes.total_cmp(&y.mistakes))
        });
        cuts.into_iter().map(|(_, cut)| cut).collect()
    }

    /// The tree, its mistakes by node, and whether a cut divided no rows.
    fn grow(&self) -> Option<(OracleTree, Vec<f64>)> {
        let case = self.case;
        let mut tree = OracleTree {
            tests: vec![Test::Leaf],
            missing_left: vec![false],
            left: vec![0],
            rows: vec![(0..case.n).collect()],
        };
        let mut mistakes = vec![f64::NAN];
        let mut alive = vec![(0..case.k).collect::<Vec<usize>>()];
        let mut correct = vec![(0..case.n).collect::<Vec<usize>>()];
        let total: f64 = (0..case.n).map(|row| self.weight(row)).sum();
        let mut id = 0;
        while id < tree.tests.len() {
            if alive[id].len() > 1 {
                let of = |f: usize| match case.columns[f].n_levels {
                    None => self.cuts_of_numbers(f, &alive[id], &correct[id]),
                    Some(_) => self.cuts_of_levels(f, &alive[id], &correct[id]),
                };
                let mut all: Vec<CenterCut> = (0..case.columns.len()).flat_map(of).collect();
                let best = all.iter().map(|cut| cut.score).fold(f64::NEG_INFINITY, f64::max);
                all.retain(|cut| cut.score >= best - TIE * total);
                let widest = all.iter().map(|cut| cut.width).fold(f64::NEG_INFINITY, f64::max);
                // Two centers lie in one place: no tree tells them apart.
                let cut = all.into_iter().find(|cut| cut.width >= widest - 1e-9)?;
                self.split(&mut tree, id, &cut, &mut alive, &mut correct);
                mistakes[id] = cut.mistakes;
                mistakes.resize(tree.tests.len(), f64::NAN);
            }
            id += 1;
        }
        Some((tree, mistakes))
    }

    fn split(
        &self,
        tree: &mut OracleTree,
        id: usize,
        cut: &CenterCut,
        alive: &mut Vec<Vec<usize>>,
        correct: &mut Vec<Vec<usize>>,
    ) {
        let (case, feature) = (self.case, cut.feature);
        let column = &case.columns[feature];
        let present: Vec<u8> = correct[id].iter().map(|&row| column.codes[row]).collect();
        let mut cut = cut.clone();
        if let Ok((below, above)) = &mut cut.form {
            // Rows that are mistakes already narrow the gap.
            let travelling = tree.rows[id].iter().filter(|row| !correct[id].contains(row));
            let mut ends: Vec<f64> = travelling.map(|&row| column.x[row]).collect();
            ends.retain(|x| *below < *x && *x < *above);
            ends.extend([*below, *above]);
            ends.sort_by(f64::total_cmp);
            let widest = ends.windows(2).map(|p| p[1] - p[0]).fold(0.0, f64::max);
            let tie = 1e-9 * self.range(feature);
            let part = ends.windows(2).find(|p| p[1] - p[0] >= widest - tie).unwrap();
            (*below, *above) = (part[0], part[1]);
        }
        let sides = tree.rows[id].iter().filter_map(|&row| cut.side(case, &present, row));
        let (left, right): (Vec<bool>, Vec<bool>) = sides.partition(|left| *left);
        let most_left = left.len() >= right.len();
        let missing_left = cut.missing_left.unwrap_or(most_left);
        let test = match &cut.form {
            Ok((below, above)) => {
                Test::Threshold { feature, threshold: placement::between(*below, *above) }
            }
            Err(left) if left.is_empty() => Test::Missing { feature },
            Err(left) => {
                let is_absent = |code: &u8| !present.contains(code) && !left.contains(code);
                let absent = (0..column.n_levels.unwrap() as u8).filter(is_absent);
                let with_absent = most_left && !right.is_empty();
                let codes = left.iter().copied().chain(absent.filter(|_| with_absent));
                Test::Levels { feature, left: codes.collect() }
            }
        };
        let goes_left = |row: &usize| test.goes_left(column.x[*row], missing_left);
        let (left, right) = tree.rows[id].iter().partition(|row| goes_left(row));
        for is_left in [true, false] {
            let center = |c: &usize| cut.left_centers.contains(c) == is_left;
            alive.push(alive[id].iter().copied().filter(center).collect());
            let stays =
                |row: &usize| goes_left(row) == is_left && center(&(case.labels[*row] as usize));
            correct.push(correct[id].iter().copied().filter(stays).collect());
        }
        (tree.left[id], tree.missing_left[id]) = (tree.tests.len(), missing_left);
        tree.tests[id] = test;
        for rows in [left, right] {
            tree.tests.push(Test::Leaf);
            tree.missing_left.push(false);
            tree.left.push(0);
            tree.rows.push(rows);
        }
    }
}

/// A center within rounding of a value is snapped onto it, unless two centers would become equal.
#[test]
fn centers_that_differ_in_levels_alone_are_snapped() {
    let (x, rounded) = ([0.3, 0.3, 1.0, 1.0], 0.1 + 0.2);
    let codes = [0, 1, 0, 1];
    for (shares, snapped) in [([1.0, 0.0, 0.0, 1.0], 0.3), ([1.0, 0.0, 1.0, 0.0], rounded)] {
        let columns =
            vec![ArrayView1::from(&x).into(), Column::levels((&codes).into(), 2).unwrap()];
        let table = Table::new(columns).unwrap();
        let index = Index::new(&table, 256);
        let rows = OneHot::new(&[0, 1, 2, 2], 3, None).unwrap();
        let high = [0.3, shares[0], shares[1], rounded, shares[2], shares[3], 1.0, 0.5, 0.5];
        let centers = Centers { high: &high, low: &[0.0; 9] };
        let centers = TableCenters::new(&table, &index, rows, centers).unwrap();
        let found: Vec<f64> = centers.sorted(0).iter().map(|(x, _)| x.nearest()).collect();
        assert_eq!(found, [0.3, snapped, 1.0]);
    }
}

#[test]
fn imm_on_levels_and_gaps_is_that_of_enumeration() {
    let mut random = Random(41);
    let (mut n_levels, mut n_without_rows, mut n_many) = (0, 0, 0);
    for round in 0..1500 {
        let n = 6 + random.below(40) as usize;
        let mut case = Case::new(&mut random, n, true);
        if round % 9 == 0 {
            // More centers than are divided in all ways; now and then more than a byte counts.
            case.k = if round % 180 == 0 { 300 } else { 11 };
            let k = case.k as u64;
            case.labels.iter_mut().for_each(|label| *label = random.below(k) as u32);
        }
        let centers = TestCenters::new(&mut random, &case);
        let score = random.pick(&[CutScore::Mistakes, CutScore::Emn]);
        let Some((expected, mistakes)) =
            (ImmOracle { case: &case.filled(), centers: &centers, score }).grow()
        else {
            continue;
        };
        n_many += usize::from(case.k == 300);
        let high = centers.encoded();
        let low = vec![0.0; high.len()];
        for (max_bins, direct) in [(256, 256), (2 + round % 4, round % 7)] {
            let problem = ThresholdProblem {
                labels: &case.labels,
                k: case.k,
                weights: case.weights.as_deref(),
                base: Base::Imm { centers: Centers { high: &high, low: &low }, score },
                criterion: GrowthCriterion::Gini,
                limits: Limits { max_leaves: 1, max_depth: None, min_samples_leaf: 1 },
                search: SearchOptions { max_bins, direct },
            };
            let table = Table::new(case.columns.iter().map(Cells::column).collect()).unwrap();
            let fitted = fit(&table, &problem, &Monitor::default()).unwrap();
            let columns: Vec<_> = case.columns.iter().map(|c| (c.n_levels, &c.x)).collect();
            let place =
                format!("round {round}, {score:?}, {max_bins}, {direct}, {columns:?}, {high:?}");
            assert_eq!(fitted.nodes.tests, expected.tests, "{place}");
            assert_eq!(fitted.nodes.missing_left, expected.missing_left, "{place}");
            assert_eq!(fitted.n_base_leaves, case.k);
            check_beside(&case, &fitted, &expected.rows, &place);
            for (id, rows) in expected.rows.iter().enumerate() {
                assert_eq!(fitted.nodes.n_samples[id], rows.len(), "{place}");
                let (a, b) = (mistakes[id], fitted.mistakes[id]);
                assert!(a.is_nan() && b.is_nan() || (a - b).abs() < 1e-9, "{place}, node {id}");
            }
        }
        for (test, &left) in expected.tests.iter().zip(&expected.left) {
            let is_levels = matches!(test, Test::Levels { .. });
            let is_empty = |id: usize| expected.rows[id].is_empty();
            n_levels += usize::from(is_levels);
            n_without_rows += usize::from(is_levels && (is_empty(left) || is_empty(left + 1)));
        }
    }
    let found = (n_levels, n_without_rows, n_many);
    assert!(n_levels > 500 && n_without_rows > 20 && n_many > 0, "{found:?}");
}
