//! BestTree's search through the crate's own interface: against full enumeration on tiny problems, with levels and missing
//! cells too, against its starts, threads, weights, limits.

#[path = "common/random.rs"]
mod random;
#[path = "common/sparse.rs"]
mod sparse;

use std::collections::{BTreeMap, BTreeSet};

use ndarray::{Array2, ArrayView1, Axis};
use treeclust_rs::grow::Limits;
use treeclust_rs::local_search::{
    FoundTree, KMeans, KMedians, Labels, LevelPoints, Objective, ObservedKMeans, Points, RowCosts,
    SearchSettings, SparseKMeans, SparseKMedians, Step, search,
};
use treeclust_rs::oblique::draft::{DraftNode, DraftTree, Leaf};
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::rows::{CsrRows, Rows};
use treeclust_rs::table::{Column, MISSING_LEVEL, Table};
use treeclust_rs::tree::Test;

use random::Random;
use sparse::csr_parts;

fn settings(max_leaves: usize) -> SearchSettings {
    SearchSettings {
        limits: Limits { max_leaves, max_depth: None, min_samples_leaf: 1 },
        n_restarts: 40,
        n_survivors: 46,
        batch: 8,
        drift: 0.05,
        aim: None,
        reach: f64::INFINITY,
        rounds_to_refine: 16,
        patience: 60,
        max_work: 20_000_000,
        max_time: None,
        seed: 7,
    }
}

fn below(random: &mut Random, n: usize) -> usize {
    random.below(n as u64) as usize
}

/// A problem of few rows with many equal cells.
fn tiny(random: &mut Random) -> Array2<f64> {
    let (n, d) = (4 + below(random, 9), 1 + below(random, 3));
    let n_values = 3 + below(random, 9);
    Array2::from_shape_fn((n, d), |_| below(random, n_values) as f64)
}

/// A tree of random tests and labels.
fn random_tree(random: &mut Random, x: &Array2<f64>, n_leaves: usize, k: usize) -> DraftTree {
    tree_of(random, n_leaves, k, |random| {
        let feature = below(random, x.ncols());
        (Test::Threshold { feature, threshold: x[[below(random, x.nrows()), feature]] }, false)
    })
}

/// A tree of given tests with their directions, and random labels.
fn tree_of(
    random: &mut Random,
    n_leaves: usize,
    k: usize,
    test: impl Fn(&mut Random) -> (Test, bool),
) -> DraftTree {
    let leaf = |random: &mut Random| {
        DraftNode::Leaf(Leaf { label: below(random, k) as u32, shares: vec![] })
    };
    let mut nodes = vec![leaf(random)];
    let mut leaves = vec![0];
    for _ in 1..n_leaves {
        let at = below(random, leaves.len());
        let (id, left) = (leaves.swap_remove(at), nodes.len());
        let (test, missing_left) = test(random);
        nodes[id] = DraftNode::Split { test, left, right: left + 1, missing_left };
        nodes.push(leaf(random));
        nodes.push(leaf(random));
        leaves.extend([left, left + 1]);
    }
    DraftTree { nodes }
}

fn starts(random: &mut Random, x: &Array2<f64>, n_leaves: usize, k: usize) -> Vec<DraftTree> {
    (0..6).map(|_| random_tree(random, x, n_leaves, k)).collect()
}

fn found(
    x: &Array2<f64>,
    objective: &dyn Objective,
    starts: &[DraftTree],
    settings: &SearchSettings,
    n_threads: usize,
) -> FoundTree {
    let table = Table::from_matrix(x.view()).unwrap();
    found_in(&table, objective, starts, settings, n_threads)
}

fn found_in(
    table: &Table<'_>,
    objective: &dyn Objective,
    starts: &[DraftTree],
    settings: &SearchSettings,
    n_threads: usize,
) -> FoundTree {
    let monitor = Monitor::default();
    with_pool(n_threads, || search(table, objective, starts, settings, &monitor)).unwrap().unwrap()
}

/// The leaf of each row as a node id, and its label.
fn routed(tree: &DraftTree, x: &Array2<f64>) -> Vec<(usize, u32)> {
    let of_row = |row: ndarray::ArrayView1<'_, f64>| {
        let mut id = 0;
        loop {
            match &tree.nodes[id] {
                DraftNode::Leaf(leaf) => return (id, leaf.label),
                DraftNode::Split { test, left, right, missing_left } => {
                    let cell = row[test.feature().unwrap()];
                    id = if test.goes_left(cell, *missing_left) { *left } else { *right };
                }
            }
        }
    };
    x.outer_iter().map(of_row).collect()
}

/// What clusters cost by the definition: `of_column(values with weights)` sums over clusters and columns.
type CostOfColumn = fn(&[(f64, f64)]) -> f64;

/// The squared distances to the mean.
fn squares(column: &[(f64, f64)]) -> f64 {
    let weight: f64 = column.iter().map(|(_, w)| w).sum();
    let mean = column.iter().map(|(x, w)| w * x).sum::<f64>() / weight;
    column.iter().map(|(x, w)| w * (x - mean).powi(2)).sum()
}

/// The distances to the value from which they are least.
fn distances(column: &[(f64, f64)]) -> f64 {
    let from = |m: f64| column.iter().map(|(x, w)| w * (x - m).abs()).sum::<f64>();
    column.iter().map(|(m, _)| from(*m)).fold(f64::INFINITY, f64::min)
}

fn cluster_cost(x: &Array2<f64>, weights: &[f64], cluster: &[u32], of: CostOfColumn) -> f64 {
    let mut cost = 0.0;
    for c in BTreeSet::from_iter(cluster) {
        let rows: Vec<usize> = (0..x.nrows()).filter(|&i| cluster[i] == *c).collect();
        for f in 0..x.ncols() {
            cost += of(&rows.iter().map(|&i| (x[[i, f]], weights[i])).collect::<Vec<_>>());
        }
    }
    cost
}

fn cost_of(tree: &DraftTree, x: &Array2<f64>, of: CostOfColumn) -> f64 {
    let labels: Vec<u32> = routed(tree, x).into_iter().map(|(_, label)| label).collect();
    cluster_cost(x, &vec![1.0; x.nrows()], &labels, of)
}

/// Rows of complete numbers as points.
fn points<'a>(x: &'a Array2<f64>, k: usize, weights: Option<&'a [f64]>) -> Points<'a> {
    Points::new(x.as_slice().unwrap(), x.nrows(), k, weights, &[]).unwrap()
}

/// The objectives whose clusters have centers, with their definitions.
fn with_centers<'a>(
    x: &'a Array2<f64>,
    k: usize,
    weights: Option<&'a [f64]>,
) -> [(Box<dyn Objective + 'a>, CostOfColumn); 2] {
    let points = points(x, k, weights);
    let means = KMeans::new(points.clone());
    [(Box::new(means), squares), (Box::new(KMedians::new(points)), distances)]
}

/// All sets of leaves, each a set of rows, that trees of at most `n_leaves` leaves and `depth` levels make.
struct Enumeration<'a> {
    x: &'a Array2<f64>,
    /// By column the number of levels; none: numbers.
    n_levels: &'a [Option<usize>],
    min_rows: u32,
    known: BTreeMap<(u16, usize, usize), BTreeSet<Vec<u16>>>,
}

impl Enumeration<'_> {
    fn trees(&mut self, rows: u16, n_leaves: usize, depth: usize) -> BTreeSet<Vec<u16>> {
        if let Some(known) = self.known.get(&(rows, n_leaves, depth)) {
            return known.clone();
        }
        let mut all = BTreeSet::from([vec![rows]]);
        if n_leaves > 1 && depth > 0 {
            for left in self.cuts(rows) {
                for share in 1..n_leaves {
                    let right = self.trees(rows & !left, n_leaves - share, depth - 1);
                    for a in self.trees(left, share, depth - 1) {
                        for b in &right {
                            let mut leaves = [a.as_slice(), b].concat();
                            leaves.sort_unstable();
                            all.insert(leaves);
                        }
                    }
                }
            }
        }
        self.known.insert((rows, n_leaves, depth), all.clone());
        all
    }

    /// The left sides of all cuts.
    fn cuts(&self, rows: u16) -> BTreeSet<u16> {
        let inside = |i: &usize| rows & (1 << i) != 0;
        let mut cuts = BTreeSet::new();
        for (f, column) in self.x.columns().into_iter().enumerate() {
            let mut observed = column.iter().filter(|x| !x.is_nan());
            let first = observed.next();
            if observed.all(|x| Some(x) == first) {
                continue; // constant columns are never cut
            }
            let tests: Vec<Test> = match self.n_levels[f] {
                Some(n_levels) => {
                    let set =
                        |bits: usize| (0..n_levels as u8).filter(move |v| bits & (1 << v) != 0);
                    (0..1 << n_levels)
                        .map(|bits| Test::Levels { feature: f, left: set(bits).collect() })
                        .collect()
                }
                None => {
                    let values = (0..column.len()).filter(inside).map(|i| column[i]);
                    let values = values.filter(|x| !x.is_nan());
                    values.map(|threshold| Test::Threshold { feature: f, threshold }).collect()
                }
            };
            for (test, missing_left) in tests
                .iter()
                .flat_map(|test| [(test, false), (test, true)])
                .chain([(&Test::Missing { feature: f }, true)])
            {
                let goes_left = |j: &usize| inside(j) && test.goes_left(column[*j], missing_left);
                let left = (0..column.len()).filter(goes_left).fold(0u16, |set, j| set | 1 << j);
                let sizes = [left.count_ones(), (rows & !left).count_ones()];
                if sizes.iter().all(|&size| size >= self.min_rows.max(1)) {
                    cuts.insert(left);
                }
            }
        }
        cuts
    }
}

/// The least cost of leaves joined to at most k clusters. `cost`: of every set of rows as one cluster.
fn best_clusters(leaves: &[u16], clusters: &mut Vec<u16>, k: usize, cost: &[f64]) -> f64 {
    let Some((&leaf, rest)) = leaves.split_first() else {
        return clusters.iter().map(|&set| cost[usize::from(set)]).sum();
    };
    let mut best = f64::INFINITY;
    for c in 0..clusters.len() {
        clusters[c] |= leaf;
        best = best.min(best_clusters(rest, clusters, k, cost));
        clusters[c] &= !leaf;
    }
    if clusters.len() < k {
        clusters.push(leaf);
        best = best.min(best_clusters(rest, clusters, k, cost));
        clusters.pop();
    }
    best
}

/// What each set of rows costs by `of(rows)`.
fn cost_of_sets(n: usize, of: impl Fn(&[usize]) -> f64) -> Vec<f64> {
    (0..1usize << n)
        .map(|set| of(&(0..n).filter(|i| set & (1 << i) != 0).collect::<Vec<_>>()))
        .collect()
}

fn never_rises(path: &[Step]) -> bool {
    path.windows(2).all(|steps| steps[1].objective <= steps[0].objective)
}

#[test]
fn the_optimum_of_tiny_problems_is_found() {
    let mut random = Random(1);
    let (mut n_found, mut missed) = ([0; 3], vec![]);
    let n_cases = 300;
    for case in 0..n_cases {
        let x = tiny(&mut random);
        let n = x.nrows();
        let k = 2 + below(&mut random, 3.min(n - 2));
        let n_leaves = k + below(&mut random, 5 - k);
        let mut settings = settings(n_leaves);
        if case % 3 == 1 {
            settings.limits.max_depth = Some(2);
        }
        if case % 3 == 2 {
            settings.limits.min_samples_leaf = 2;
        }
        let starts = starts(&mut random, &x, n_leaves, k);
        let Limits { max_depth, min_samples_leaf, .. } = settings.limits;
        let min_rows = min_samples_leaf as u32;
        let numbers = vec![None; x.ncols()];
        let mut enumeration =
            Enumeration { x: &x, n_levels: &numbers, min_rows, known: BTreeMap::new() };
        let trees = enumeration.trees(u16::MAX >> (16 - n), n_leaves, max_depth.unwrap_or(9));

        for (which, (objective, of)) in with_centers(&x, k, None).iter().enumerate() {
            let cost = cost_of_sets(n, |rows| {
                let part = x.select(Axis(0), rows);
                cluster_cost(&part, &vec![1.0; rows.len()], &vec![0; rows.len()], *of)
            });
            let optima = trees.iter().map(|leaves| best_clusters(leaves, &mut vec![], k, &cost));
            let optimum = optima.fold(f64::INFINITY, f64::min);
            let tree = found(&x, &**objective, &starts, &settings, 1);
            assert!((cost_of(&tree.tree, &x, *of) - tree.objective).abs() <= 1e-9, "case {case}");
            assert!(tree.objective >= optimum - 1e-9, "case {case}: below the optimum");
            assert!(tree.start_objectives.iter().all(|&start| tree.objective <= start + 1e-12));
            assert!(never_rises(&tree.path) && tree.tree.n_leaves() <= n_leaves, "case {case}");
            if tree.objective <= optimum + 1e-9 {
                n_found[which] += 1;
            } else {
                missed.push(format!("{which} {case}: {} > {optimum}", tree.objective));
            }
        }

        let labels: Vec<u32> = (0..n).map(|_| below(&mut random, k) as u32).collect();
        let cost = cost_of_sets(n, |rows| {
            let count = |l| rows.iter().filter(|&&i| labels[i] == l).count();
            (rows.len() - (0..k as u32).map(count).max().unwrap_or(0)) as f64
        });
        let sum = |leaves: &Vec<u16>| leaves.iter().map(|&set| cost[usize::from(set)]).sum::<f64>();
        let optimum = trees.iter().map(sum).fold(f64::INFINITY, f64::min);
        let objective = Labels::new(&labels, k, None).unwrap();
        let tree = found(&x, &objective, &starts, &settings, 1);
        let leaves = routed(&tree.tree, &x);
        let mistakes = leaves.iter().zip(&labels).filter(|((_, got), want)| got != *want).count();
        assert_eq!(mistakes as f64, tree.objective, "case {case}");
        assert!(never_rises(&tree.path));
        for leaf in leaves.iter().map(|(leaf, _)| leaf) {
            let size = leaves.iter().filter(|(other, _)| other == leaf).count();
            assert!(size >= min_samples_leaf, "case {case}: a leaf of {size}");
        }
        assert!(max_depth.is_none_or(|most| tree.tree.max_depth() <= most), "case {case}");
        if tree.objective <= optimum {
            n_found[2] += 1;
        } else {
            missed.push(format!("labels {case}: {} > {optimum}", tree.objective));
        }
    }
    println!("found {n_found:?} of {n_cases}; missed: {missed:#?}");
    assert!(n_found.iter().all(|&found| found * 100 >= 99 * n_cases), "{missed:#?}");
}

/// A table with columns of levels and missing cells. Cells are numbers or codes, NaN where missing.
struct Mixed {
    x: Array2<f64>,
    n_levels: Vec<Option<usize>>,
    /// By column; of numbers none.
    codes: Vec<Vec<u8>>,
}

impl Mixed {
    fn new(random: &mut Random, n: usize, values: &[usize]) -> Self {
        let d = 1 + below(random, 3);
        let n_levels: Vec<Option<usize>> =
            (0..d).map(|_| [None, Some(3), Some(4)][below(random, 3)]).collect();
        let gaps: Vec<usize> = (0..d).map(|_| [0, 1, 3][below(random, 3)]).collect();
        let n_values = values[below(random, values.len())];
        let x = Array2::from_shape_fn((n, d), |(_, f)| {
            let is_gap = below(random, 10) < gaps[f];
            if is_gap { f64::NAN } else { below(random, n_levels[f].unwrap_or(n_values)) as f64 }
        });
        let code = |x: &f64| if x.is_nan() { MISSING_LEVEL } else { *x as u8 };
        let codes = x.columns().into_iter().map(|column| column.iter().map(code).collect());
        Mixed { codes: codes.collect(), x, n_levels }
    }

    fn table(&self) -> Table<'_> {
        let column = |f: usize| match self.n_levels[f] {
            Some(n) => Column::levels(ArrayView1::from(&self.codes[f]), n).unwrap(),
            None => self.x.column(f).into(),
        };
        Table::new((0..self.x.ncols()).map(column).collect()).unwrap()
    }

    /// The columns of numbers.
    fn numbers(&self) -> Array2<f64> {
        let is_number = |f: &usize| self.n_levels[*f].is_none();
        let columns: Vec<usize> = (0..self.x.ncols()).filter(is_number).collect();
        self.x.select(Axis(1), &columns).as_standard_layout().to_owned()
    }

    /// The rows as points.
    fn points<'a>(&'a self, numbers: &'a Array2<f64>, k: usize) -> Points<'a> {
        let column = |f: usize| {
            let codes = ArrayView1::from(&self.codes[f]);
            Some(LevelPoints { codes, n_levels: self.n_levels[f]?, unit: 1.0 })
        };
        let levels: Vec<LevelPoints<'_>> = (0..self.x.ncols()).filter_map(column).collect();
        Points::new(numbers.as_slice().unwrap(), self.x.nrows(), k, None, &levels).unwrap()
    }

    /// What rows cost as one cluster, by the definition: squares, or distances and mismatches.
    fn cost(&self, rows: &[usize], by_medians: bool) -> f64 {
        let of_column = |f: usize| {
            let cells = rows.iter().map(|&i| self.x[[i, f]]).filter(|x| !x.is_nan());
            let cells: Vec<(f64, f64)> = cells.map(|x| (x, 1.0)).collect();
            let n = cells.len() as f64;
            let counts = |v: usize| cells.iter().filter(|(x, _)| *x == v as f64).count() as f64;
            match self.n_levels[f] {
                _ if cells.is_empty() => 0.0,
                None if by_medians => distances(&cells),
                None => squares(&cells),
                Some(k) if by_medians => n - (0..k).map(counts).fold(0.0, f64::max),
                Some(k) => 0.5 * (0..k).map(|v| counts(v) * (1.0 - counts(v) / n)).sum::<f64>(),
            }
        };
        (0..self.x.ncols()).map(of_column).sum()
    }

    /// What the clusters of a tree cost.
    fn cost_of(&self, tree: &DraftTree, by_medians: bool) -> f64 {
        let leaves = routed(tree, &self.x);
        let labels = BTreeSet::from_iter(leaves.iter().map(|(_, label)| *label));
        let of_label = |label: u32| {
            let rows = (0..leaves.len()).filter(|&i| leaves[i].1 == label);
            self.cost(&rows.collect::<Vec<_>>(), by_medians)
        };
        labels.into_iter().map(of_label).sum()
    }

    fn starts(&self, random: &mut Random, n_leaves: usize, k: usize) -> Vec<DraftTree> {
        let test = |random: &mut Random| {
            let feature = below(random, self.x.ncols());
            let cell = self.x[[below(random, self.x.nrows()), feature]];
            let others = below(random, 256);
            let test = match self.n_levels[feature] {
                _ if cell.is_nan() => return (Test::Missing { feature }, true),
                None => Test::Threshold { feature, threshold: cell },
                Some(n_levels) => {
                    let is_left = |v: &u8| f64::from(*v) == cell || others & (1 << v) != 0;
                    Test::Levels { feature, left: (0..n_levels as u8).filter(is_left).collect() }
                }
            };
            (test, below(random, 2) == 0)
        };
        (0..6).map(|_| tree_of(random, n_leaves, k, test)).collect()
    }
}

#[test]
fn the_optimum_of_tiny_tables_with_levels_and_gaps_is_found() {
    let mut random = Random(21);
    let (mut n_found, mut missed) = ([0; 3], vec![]);
    let n_cases = 200;
    for case in 0..n_cases {
        let n = 5 + below(&mut random, 6);
        let mixed = Mixed::new(&mut random, n, &[3, 8]);
        let k = 2 + below(&mut random, 2);
        let n_leaves = k + below(&mut random, 4 - k);
        let mut settings = settings(n_leaves);
        settings.limits.min_samples_leaf = 1 + case % 2;
        let starts = mixed.starts(&mut random, n_leaves, k);
        let mut enumeration = Enumeration {
            x: &mixed.x,
            n_levels: &mixed.n_levels,
            min_rows: settings.limits.min_samples_leaf as u32,
            known: BTreeMap::new(),
        };
        let trees = enumeration.trees(u16::MAX >> (16 - n), n_leaves, 9);
        let (numbers, table) = (mixed.numbers(), mixed.table());
        let points = mixed.points(&numbers, k);
        let labels: Vec<u32> = (0..n).map(|_| below(&mut random, k) as u32).collect();
        let objectives: [Box<dyn Objective>; 3] = [
            match points.has_gaps() {
                true => Box::new(ObservedKMeans::new(points.clone())),
                false => Box::new(KMeans::new(points.clone())),
            },
            Box::new(KMedians::new(points)),
            Box::new(Labels::new(&labels, k, None).unwrap()),
        ];
        for (which, objective) in objectives.iter().enumerate() {
            let tree = found_in(&table, &**objective, &starts, &settings, 1);
            let optimum = if which < 2 {
                let cost = cost_of_sets(n, |rows| mixed.cost(rows, which == 1));
                let costs = trees.iter().map(|leaves| best_clusters(leaves, &mut vec![], k, &cost));
                costs.fold(f64::INFINITY, f64::min)
            } else {
                let cost = cost_of_sets(n, |rows| {
                    let count = |l| rows.iter().filter(|&&i| labels[i] == l).count();
                    (rows.len() - (0..k as u32).map(count).max().unwrap_or(0)) as f64
                });
                let sum =
                    |leaves: &Vec<u16>| leaves.iter().map(|&set| cost[usize::from(set)]).sum();
                trees.iter().map(sum).fold(f64::INFINITY, f64::min)
            };
            let leaves = routed(&tree.tree, &mixed.x);
            let expected = match which {
                2 => leaves.iter().zip(&labels).filter(|((_, got), want)| got != *want).count()
                    as f64,
                _ => mixed.cost_of(&tree.tree, which == 1),
            };
            assert!((expected - tree.objective).abs() <= 1e-9, "{which} {case}");
            assert!(tree.objective >= optimum - 1e-9, "{which} {case}: below the optimum");
            assert!(tree.start_objectives.iter().all(|&start| tree.objective <= start + 1e-12));
            assert!(never_rises(&tree.path) && tree.tree.n_leaves() <= n_leaves, "{which} {case}");
            for (leaf, _) in &leaves {
                let size = leaves.iter().filter(|(other, _)| other == leaf).count();
                assert!(size >= settings.limits.min_samples_leaf, "{which} {case}");
            }
            if tree.objective <= optimum + 1e-9 {
                n_found[which] += 1;
            } else {
                missed.push(format!("{which} {case}: {} > {optimum}", tree.objective));
            }
        }
    }
    println!("found {n_found:?} of {n_cases}; missed: {missed:#?}");
    assert!(n_found.iter().all(|&found| found * 100 >= 99 * n_cases), "{missed:#?}");
}

#[test]
fn trees_of_tables_with_levels_and_gaps_are_worth_what_their_rows_cost() {
    let mut random = Random(23);
    for _ in 0..12 {
        // More values than ranks have buckets, and few.
        let mixed = Mixed::new(&mut random, 900, &[5, 700]);
        let starts = mixed.starts(&mut random, 7, 4);
        let (numbers, table) = (mixed.numbers(), mixed.table());
        let points = mixed.points(&numbers, 4);
        let means = ObservedKMeans::new(points.clone());
        let medians = KMedians::new(points);
        for (by_medians, objective) in [(false, &means as &dyn Objective), (true, &medians)] {
            let mut settings = SearchSettings { max_work: 3_000_000, ..quick(7) };
            settings.limits.min_samples_leaf = 20;
            let tree = found_in(&table, objective, &starts, &settings, 1);
            assert_eq!(tree, found_in(&table, objective, &starts, &settings, 2));
            let cost = mixed.cost_of(&tree.tree, by_medians);
            let apart = (cost - tree.objective).abs();
            assert!(apart <= 1e-10 * cost, "{cost} {}", tree.objective);
            let first = tree.start_objectives.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(tree.objective <= first && never_rises(&tree.path));
        }
    }
}

#[test]
fn means_of_complete_rows_are_those_of_rows_without_gaps() {
    let x = clouds();
    let starts = starts(&mut Random(25), &x, 9, 4);
    let weights: Vec<f64> = (0..400).map(|i| 1.0 + (i % 3) as f64).collect();
    let still = SearchSettings { patience: 0, ..quick(9) };
    let plain = KMeans::new(points(&x, 4, Some(&weights)));
    let observed = ObservedKMeans::new(points(&x, 4, Some(&weights)));
    let [a, b] = [&plain as &dyn Objective, &observed].map(|o| found(&x, o, &starts, &still, 1));
    for (a, b) in a.start_objectives.iter().zip(&b.start_objectives).take(starts.len()) {
        assert!((a / b - 1.0).abs() < 1e-12);
    }
}

/// Four overlapping clouds of whole numbers.
fn clouds() -> Array2<f64> {
    Array2::from_shape_fn((400, 5), |(i, j)| {
        let noise = ((i * 5 + j + 1).wrapping_mul(2_654_435_761) >> 9) % 37;
        (noise + 9 * ((i % 4) * (j + 1) % 3)) as f64
    })
}

fn quick(max_leaves: usize) -> SearchSettings {
    SearchSettings { patience: 30, ..settings(max_leaves) }
}

#[test]
fn threads_change_nothing() {
    let x = clouds();
    let starts = starts(&mut Random(3), &x, 12, 4);
    for (objective, of) in with_centers(&x, 4, None) {
        let one = found(&x, &*objective, &starts, &quick(12), 1);
        assert_eq!(one, found(&x, &*objective, &starts, &quick(12), 2));
        assert!(never_rises(&one.path) && one.path.len() > 3);
        assert!((cost_of(&one.tree, &x, of) / one.objective - 1.0).abs() < 1e-12);
    }
}

#[test]
fn the_value_rises_no_more_than_a_part_of_what_it_is_above_the_aim() {
    let x = clouds();
    let starts = starts(&mut Random(4), &x, 12, 4);
    for (objective, _) in with_centers(&x, 4, None) {
        let from = |starts: &[DraftTree], drift: f64, aim: Option<f64>| {
            let settings = SearchSettings { drift, aim, n_restarts: 0, ..quick(12) };
            found(&x, &*objective, starts, &settings, 1)
        };
        let best = from(&starts, 0.05, None);
        let near = Some(best.objective * (1.0 - 1e-12));
        let again =
            |drift: f64, aim: Option<f64>| from(std::slice::from_ref(&best.tree), drift, aim);
        assert_eq!(again(0.05, near), again(0.0, None));
        assert_ne!(from(&starts, 0.05, near).n_rounds, best.n_rounds);
        // What the best is below says nothing.
        assert_eq!(again(0.05, Some(2.0 * best.objective)), again(0.05, None));
    }
}

#[test]
fn a_change_refines_the_nodes_above_it_that_are_in_reach() {
    let x = clouds();
    let starts = starts(&mut Random(4), &x, 12, 4);
    for (objective, of) in with_centers(&x, 4, None) {
        let from = |reach: f64| {
            let settings = SearchSettings { reach, n_restarts: 0, ..quick(12) };
            found(&x, &*objective, &starts, &settings, 1)
        };
        let (none, some, all) = (from(0.0), from(2.0), from(f64::INFINITY));
        assert_eq!(from(x.nrows() as f64), all);
        assert!(none != all && some != all && some != none);
        for found in [none, some] {
            assert!((cost_of(&found.tree, &x, of) / found.objective - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn weights_are_repeated_rows() {
    let x = clouds();
    let counts: Vec<usize> = (0..400).map(|i| 1 + i % 3).collect();
    let repeated: Vec<usize> = (0..400).flat_map(|i| vec![i; counts[i]]).collect();
    let weights: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
    let y = x.select(Axis(0), &repeated);
    let starts = starts(&mut Random(5), &x, 6, 3);
    let weighted = with_centers(&x, 3, Some(&weights));
    for ((weighted, of), (plain, _)) in weighted.into_iter().zip(with_centers(&y, 3, None)) {
        // No search: a start is worth the same. With it, each tree's value is that of the other's rows.
        let still = SearchSettings { patience: 0, ..quick(6) };
        let a = found(&x, &*weighted, &starts, &still, 1);
        let b = found(&y, &*plain, &starts, &still, 1);
        for (a, b) in a.start_objectives.iter().zip(&b.start_objectives).take(starts.len()) {
            assert!((a / b - 1.0).abs() < 1e-12);
        }
        let tree = found(&x, &*weighted, &starts, &quick(6), 1);
        assert!((cost_of(&tree.tree, &y, of) / tree.objective - 1.0).abs() < 1e-12);
    }
}

#[test]
fn many_leaves_reproduce_labels_and_spare_ones_are_given_back() {
    let x = clouds();
    let labels: Vec<u32> =
        (0..400).map(|i| u32::from(x[[i, 1]] > 10.0 && x[[i, 2]] > 8.0)).collect();
    let objective = Labels::new(&labels, 2, None).unwrap();
    let tree = found(&x, &objective, &starts(&mut Random(9), &x, 12, 2), &quick(12), 1);
    assert_eq!(tree.objective, 0.0);
    assert!(tree.tree.n_leaves() < 12);
}

#[test]
fn a_far_row_and_a_far_origin_change_nothing_of_the_rest() {
    let x = clouds();
    let far = &x + 1e8;
    let starts = starts(&mut Random(11), &x, 6, 3);
    let moved: Vec<DraftTree> = starts
        .iter()
        .map(|tree| {
            let shift = |node: &DraftNode| match node {
                DraftNode::Split {
                    test: Test::Threshold { feature, threshold },
                    left,
                    right,
                    ..
                } => {
                    let test = Test::Threshold { feature: *feature, threshold: threshold + 1e8 };
                    DraftNode::split(test, *left, *right)
                }
                node => node.clone(),
            };
            DraftTree { nodes: tree.nodes.iter().map(shift).collect() }
        })
        .collect();
    let away = with_centers(&far, 3, None);
    for ((near, _), (away, _)) in with_centers(&x, 3, None).into_iter().zip(away) {
        let still = SearchSettings { patience: 0, ..quick(6) };
        let a = found(&x, &*near, &starts, &still, 1);
        let b = found(&far, &*away, &moved, &still, 1);
        assert!((a.objective / b.objective - 1.0).abs() < 1e-6);
    }
}

#[test]
fn the_work_is_the_same_for_every_number_of_threads() {
    let x = clouds();
    let kmeans = KMeans::new(points(&x, 4, None));
    let starts = starts(&mut Random(13), &x, 12, 4);
    let limited = |max_work| SearchSettings { max_work, n_survivors: 2, ..quick(12) };
    let few = found(&x, &kmeans, &starts, &limited(3_000_000), 1);
    assert_eq!(few, found(&x, &kmeans, &starts, &limited(3_000_000), 2));
    let more = found(&x, &kmeans, &starts, &limited(6_000_000), 1);
    assert!(0 < few.n_rounds && few.n_rounds < more.n_rounds, "{} {}", few.n_rounds, more.n_rounds);
    assert!(more.objective <= few.objective);
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let x = clouds();
    let table = Table::from_matrix(x.view()).unwrap();
    let kmeans = KMeans::new(points(&x, 2, None));
    let run = |starts: &[DraftTree], settings: SearchSettings| {
        search(&table, &kmeans, starts, &settings, &Monitor::default()).unwrap_err().to_string()
    };
    assert!(run(&[], settings(3)).contains("needs a start"));
    assert!(run(&[DraftTree::leaf(0)], settings(0)).contains("a leaf"));
    assert!(run(&[DraftTree::leaf(2)], settings(3)).contains("Label 2"));
    let short = KMeans::new(Points::new(&x.as_slice().unwrap()[..50], 10, 2, None, &[]).unwrap());
    let starts = [DraftTree::leaf(0)];
    let error = search(&table, &short, &starts, &settings(3), &Monitor::default()).unwrap_err();
    assert!(error.to_string().contains("400"), "{error}");
    let monitor = Monitor::default();
    monitor.stop();
    assert!(search(&table, &kmeans, &starts, &settings(3), &monitor).is_err());
}

#[test]
fn sparse_rows_are_searched_as_their_table() {
    let mut random = Random(31);
    let (mut n_same, n_trials) = (0, 60);
    for trial in 0..n_trials {
        let (n, d, k) = (20 + below(&mut random, 60), 2 + below(&mut random, 6), 3);
        let x = Array2::from_shape_fn((n, d), |_| {
            let is_stored = below(&mut random, 3) == 0;
            if is_stored { below(&mut random, 7) as f64 - 2.0 } else { 0.0 }
        });
        let weights: Vec<f64> = (0..n).map(|_| 1.0 + below(&mut random, 3) as f64).collect();
        let weights = (trial % 2 == 0).then_some(&weights[..]);
        let (indptr, indices, values) = csr_parts(&x);
        let matrix = CsrRows::from_i64(&indptr, &indices, &values, d).unwrap();
        let by_medians = trial % 4 > 1;
        let (of_table, of_cells): (Box<dyn Objective>, Box<dyn Objective>) = if by_medians {
            let of_cells = SparseKMedians::new(&matrix, k, weights).unwrap();
            (Box::new(KMedians::new(points(&x, k, weights))), Box::new(of_cells))
        } else {
            let of_cells = SparseKMeans::new(&matrix, k, weights).unwrap();
            (Box::new(KMeans::new(points(&x, k, weights))), Box::new(of_cells))
        };
        let rows: Vec<u32> = (0..n as u32).step_by(2).collect();
        assert_eq!(of_table.leaf(&rows).len(), of_cells.leaf(&rows).len());
        for (a, b) in of_table.leaf(&rows).iter().zip(of_cells.leaf(&rows)) {
            assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{a} {b}");
        }
        let monitor = Monitor::default();
        let costs =
            |objective: &dyn Objective| -> RowCosts { objective.seed_costs(&[0, 1, 2], &monitor) };
        for (a, b) in costs(&*of_table).costs.iter().zip(costs(&*of_cells).costs) {
            assert!((a - b).abs() <= 1e-10, "{a} {b}");
        }
        let starts = [random_tree(&mut random, &x, 5, k), random_tree(&mut random, &x, 3, k)];
        let limits = Limits { max_leaves: 5, max_depth: None, min_samples_leaf: 1 + trial % 3 };
        // No rise on the way, whose share of the work would count cells.
        let settings = SearchSettings {
            limits,
            drift: 0.0,
            n_restarts: 4,
            max_work: u64::MAX / 2,
            ..settings(5)
        };
        let sparse = |n_threads: usize| {
            let rows = Rows::sparse(&matrix).unwrap();
            let work = || search(rows, &*of_cells, &starts, &settings, &monitor);
            with_pool(n_threads, work).unwrap().unwrap()
        };
        let (thin, dense) = (sparse(1), found(&x, &*of_table, &starts, &settings, 1));
        assert_eq!(thin, sparse(2));
        let labels: Vec<u32> = routed(&thin.tree, &x).into_iter().map(|leaf| leaf.1).collect();
        let ones = vec![1.0; n];
        let cost_of = if by_medians { distances } else { squares };
        let cost = cluster_cost(&x, weights.unwrap_or(&ones), &labels, cost_of);
        assert!((cost - thin.objective).abs() <= 1e-10 * cost.max(1.0));
        for (a, b) in thin.start_objectives.iter().zip(&dense.start_objectives).take(2) {
            assert!((a - b).abs() <= 1e-10 * a.max(1.0));
        }
        n_same += usize::from((thin.objective - dense.objective).abs() <= 1e-9 * cost.max(1.0));
    }
    // Ties of rounded sums send the two ways apart now and then.
    assert!(n_same * 10 >= n_trials * 8, "{n_same} of {n_trials}");
}
