//! Kauri through the crate's own interface: splits and gains against the objective from scratch, the margin of ties,
//! the two routes, threads.

#[path = "common/random.rs"]
mod random;

use ndarray::{Array2, Axis, array};
use treeclust_rs::grow::Limits;
use treeclust_rs::kauri::features::LevelFeatures;
use treeclust_rs::kauri::fit::{FittedKauri, KauriProblem, fit};
use treeclust_rs::kauri::kernel::Kernel;
use treeclust_rs::kauri::moves::MoveKind;
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::table::{Column, MISSING_LEVEL, Table};
use treeclust_rs::tree::Test;

use random::Random;

const N: usize = 300;
const D: usize = 3;

/// Three clouds of whole numbers, so that many values and many gains are equal, centered.
fn example() -> Array2<f64> {
    let x = Array2::from_shape_fn((N, D), |(i, j)| {
        let noise = ((i * D + j + 1).wrapping_mul(2_654_435_761) >> 9) % 11;
        (noise + 4 * ((i % 3) * (j + 1) % 3)) as f64
    });
    let mean = x.mean_axis(ndarray::Axis(0)).unwrap();
    x - mean
}

fn problem(kernel: Kernel<'_>) -> KauriProblem<'_> {
    KauriProblem {
        kernel,
        levels: &[],
        weights: None,
        max_clusters: 4,
        limits: Limits { max_leaves: 25, max_depth: None, min_samples_leaf: 1 },
        min_samples_split: 2,
        max_features: D,
        seed: 0,
        all_moves: true,
    }
}

fn fitted(x: &Array2<f64>, problem: &KauriProblem<'_>, n_threads: usize) -> FittedKauri {
    let table = Table::from_matrix(x.view()).unwrap();
    let monitor = Monitor::default();
    with_pool(n_threads, || fit(&table, problem, &monitor)).unwrap().unwrap()
}

/// The objective of the tree of the first nodes, from its definition.
fn objective(x: &Array2<f64>, fitted: &FittedKauri, n_nodes: usize) -> f64 {
    let mut parts = [(0.0, [0.0; D]); 4];
    for row in x.outer_iter() {
        let mut node = 0;
        while let Test::Threshold { feature, threshold } = fitted.nodes.tests[node] {
            if fitted.nodes.left[node] >= n_nodes {
                break;
            }
            node = fitted.nodes.left[node] + usize::from(row[feature] > threshold);
        }
        let (count, sum) = &mut parts[fitted.cluster[node]];
        *count += 1.0;
        sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    let filled = parts.iter().filter(|(count, _)| *count > 0.0);
    filled.map(|(count, sum)| sum.iter().map(|s| s * s).sum::<f64>() / count).sum()
}

#[test]
fn gains_are_differences_of_the_objective() {
    let x = example();
    let z: Vec<f64> = x.iter().copied().collect();
    let fitted = fitted(&x, &problem(Kernel::Features { z: &z, rank: D }), 2);
    assert_eq!(fitted.nodes.tests.len(), 2 * fitted.objective.len() - 1);
    assert!(fitted.objective.len() > 6);
    let mut splits: Vec<usize> =
        (0..fitted.nodes.tests.len()).filter(|&id| fitted.nodes.tests[id] != Test::Leaf).collect();
    splits.sort_by_key(|&id| fitted.nodes.left[id]);
    for (i, &id) in splits.iter().enumerate() {
        let (before, after) =
            (objective(&x, &fitted, 2 * i + 1), objective(&x, &fitted, 2 * i + 3));
        assert!((after - before - fitted.gain[id]).abs() <= 1e-9 * after);
        assert!((after - fitted.objective[i + 1]).abs() <= 1e-9 * after);
    }
    assert!(
        fitted.kinds.contains(&Some(MoveKind::Star))
            && fitted.kinds.contains(&Some(MoveKind::Switch))
    );
}

#[test]
fn features_and_their_gram_matrix_give_one_tree_on_any_number_of_threads() {
    let x = example();
    let z: Vec<f64> = x.iter().copied().collect();
    let gram: Vec<f64> = x.dot(&x.t()).iter().copied().collect();
    let features = problem(Kernel::Features { z: &z, rank: D });
    let matrix = problem(Kernel::Gram { k: &gram, n: N });
    let one = fitted(&x, &features, 1);
    let other = fitted(&x, &matrix, 1);
    assert_eq!(one.nodes.tests, other.nodes.tests);
    assert_eq!(one.cluster, other.cluster);
    assert_eq!(one.kinds, other.kinds);
    for (problem, one) in [(features, one), (matrix, other)] {
        for n_threads in [2, 3] {
            // NaN at leaves: compare what is printed.
            assert_eq!(format!("{:?}", fitted(&x, &problem, n_threads)), format!("{one:?}"));
        }
    }
}

#[test]
fn wrong_sizes_and_overflow_are_errors() {
    let x = example();
    let table = Table::from_matrix(x.view()).unwrap();
    let monitor = Monitor::default();
    let short = vec![0.0; N * D - 1];
    let message = fit(&table, &problem(Kernel::Features { z: &short, rank: D }), &monitor);
    assert!(message.unwrap_err().to_string().contains("899 entries"));
    let message = fit(&table, &problem(Kernel::Gram { k: &short, n: D }), &monitor);
    assert!(message.unwrap_err().to_string().contains("3 columns, but 300"));
    let huge = vec![1e200; N * D];
    let message = fit(&table, &problem(Kernel::Features { z: &huge, rank: D }), &monitor);
    assert!(message.unwrap_err().to_string().contains("overflow"));
    monitor.stop();
    let z: Vec<f64> = x.iter().copied().collect();
    let stopped = fit(&table, &problem(Kernel::Features { z: &z, rank: D }), &monitor);
    assert_eq!(stopped.unwrap_err().to_string(), "The fit was interrupted.");
}

/// A split of a leaf and what it adds to the objective.
#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    node: usize,
    feature: usize,
    /// Rows of the left side, ascending.
    left: Vec<usize>,
    kind: MoveKind,
    /// Clusters of the two sides.
    clusters: [usize; 2],
    gain: f64,
}

/// A tree while its splits are made again: the rows of its leaves, by node id, and the cluster of every row.
struct Replay<'a> {
    x: &'a Array2<f64>,
    /// Whether each column holds codes of levels.
    levels: &'a [bool],
    gram: &'a Array2<f64>,
    max_clusters: usize,
    leaves: Vec<(usize, Vec<usize>)>,
    labels: Vec<usize>,
}

impl Replay<'_> {
    fn n_clusters(labels: &[usize]) -> usize {
        labels.iter().max().unwrap() + 1
    }

    /// The sum over the clusters of S(C, C) / |C|, from the kernel matrix.
    fn objective(&self, labels: &[usize]) -> f64 {
        let share = |cluster: usize| {
            let rows: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == cluster).collect();
            let stock: f64 = rows
                .iter()
                .flat_map(|&i| rows.iter().map(move |&j| (i, j)))
                .map(|at| self.gram[at])
                .sum();
            if rows.is_empty() { 0.0 } else { stock / rows.len() as f64 }
        };
        (0..Self::n_clusters(labels)).map(share).sum()
    }

    /// The moves of a leaf of `own` in the order of ties, with the clusters of the two sides.
    fn moves(&self, own: usize, has_rest: bool) -> Vec<(MoveKind, [usize; 2])> {
        let new = Self::n_clusters(&self.labels);
        let n_free = self.max_clusters - new;
        let others: Vec<usize> = (0..new).filter(|&cluster| cluster != own).collect();
        let mut moves = vec![];
        if n_free > 0 {
            moves.extend([(MoveKind::Star, [new, own]), (MoveKind::Star, [own, new])]);
        }
        if n_free > 1 && has_rest {
            moves.push((MoveKind::DoubleStar, [new, new + 1]));
        }
        moves.extend(others.iter().map(|&c| (MoveKind::Switch, [c, own])));
        moves.extend(others.iter().map(|&c| (MoveKind::Switch, [own, c])));
        if has_rest {
            let pairs = others.iter().flat_map(|&l| others.iter().map(move |&r| [l, r]));
            let pairs = pairs.filter(|[l, r]| l != r);
            moves.extend(pairs.map(|pair| (MoveKind::Reallocation, pair)));
        }
        if has_rest && n_free > 0 {
            moves.extend(others.iter().map(|&c| (MoveKind::Mixed, [new, c])));
            moves.extend(others.iter().map(|&c| (MoveKind::Mixed, [c, new])));
        }
        moves
    }

    /// Every split of every leaf, in the order of ties: by leaf, column, cut and move.
    fn candidates(&self) -> Vec<Candidate> {
        let before = self.objective(&self.labels);
        let mut candidates = vec![];
        for (node, rows) in &self.leaves {
            let own = self.labels[rows[0]];
            let n_own = self.labels.iter().filter(|&&label| label == own).count();
            let moves = self.moves(own, n_own > rows.len());
            for (feature, column) in self.x.columns().into_iter().enumerate() {
                let mut observed = column.iter().filter(|x| !x.is_nan());
                let first = observed.next();
                if observed.all(|x| Some(x) == first) {
                    continue; // constant columns are never cut
                }
                let cells: Vec<f64> = rows.iter().map(|&row| column[row]).collect();
                for goes_left in cuts(&cells, self.levels[feature]) {
                    let (left, right): (Vec<usize>, Vec<usize>) =
                        rows.iter().partition(|&&row| goes_left(column[row]));
                    for &(kind, clusters) in &moves {
                        let mut labels = self.labels.clone();
                        left.iter().for_each(|&row| labels[row] = clusters[0]);
                        right.iter().for_each(|&row| labels[row] = clusters[1]);
                        let gain = self.objective(&labels) - before;
                        let (node, left) = (*node, left.clone());
                        candidates.push(Candidate { node, feature, left, kind, clusters, gain });
                    }
                }
            }
        }
        candidates
    }

    /// The first split whose gain is within `margin` of the largest one; none if that is not above the margin.
    fn best(&self, margin: f64) -> Option<Candidate> {
        let mut candidates = self.candidates();
        let most = candidates.iter().map(|c| c.gain).fold(f64::NEG_INFINITY, f64::max);
        let first = candidates.iter().position(|c| c.gain >= most - margin)?;
        (most > margin).then(|| candidates.swap_remove(first))
    }

    /// Makes a split, whose children get the ids `child` and `child + 1`.
    fn split(&mut self, split: &Candidate, child: usize) {
        let at = self.leaves.iter().position(|(id, _)| *id == split.node).unwrap();
        let (_, rows) = self.leaves.remove(at);
        let (left, right): (Vec<usize>, Vec<usize>) =
            rows.into_iter().partition(|row| split.left.contains(row));
        for (side, rows) in [left, right].into_iter().enumerate() {
            rows.iter().for_each(|&row| self.labels[row] = split.clusters[side]);
            self.leaves.push((child + side, rows));
        }
    }
}

/// Whether a cell goes left.
type GoesLeft = Box<dyn Fn(f64) -> bool>;

/// The cuts of a leaf with these cells, in the order of ties: by threshold or level, missing cells right before left, and
/// last missing cells against the others.
fn cuts(cells: &[f64], has_levels: bool) -> Vec<GoesLeft> {
    let mut values: Vec<f64> = cells.iter().copied().filter(|x| !x.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let has_missing = cells.iter().any(|x| x.is_nan());
    let directions = if has_missing { &[false, true][..] } else { &[false] };
    let n_cuts =
        if has_levels && values.len() > 1 { values.len() } else { values.len().saturating_sub(1) };
    let mut cuts: Vec<GoesLeft> = vec![];
    for &value in &values[..n_cuts] {
        for &missing_left in directions {
            cuts.push(Box::new(move |x: f64| match (x.is_nan(), has_levels) {
                (true, _) => missing_left,
                (_, true) => x == value,
                _ => x <= value,
            }));
        }
    }
    if has_missing && !values.is_empty() {
        cuts.push(Box::new(f64::is_nan));
    }
    cuts
}

/// The splits of a fitted tree in their order, as candidates.
fn splits(x: &Array2<f64>, fitted: &FittedKauri) -> Vec<Candidate> {
    let nodes = &fitted.nodes;
    let mut rows = vec![vec![]; nodes.tests.len()];
    rows[0] = (0..x.nrows()).collect::<Vec<usize>>();
    let mut splits = vec![];
    for child in (1..nodes.tests.len()).step_by(2) {
        let node = nodes.left.iter().position(|&left| left == child).unwrap();
        let (test, missing_left) = (&nodes.tests[node], nodes.missing_left[node]);
        let feature = test.feature().unwrap();
        let (left, right): (Vec<usize>, Vec<usize>) =
            rows[node].iter().partition(|&&row| test.goes_left(x[[row, feature]], missing_left));
        (rows[child], rows[child + 1]) = (left.clone(), right);
        let (kind, gain) = (fitted.kinds[node].unwrap(), fitted.gain[node]);
        let clusters = [fitted.cluster[child], fitted.cluster[child + 1]];
        splits.push(Candidate { node, feature, left, kind, clusters, gain });
    }
    splits
}

/// A kernel whose tree makes a star, a switch and a double star: rows 2 and 3 join row 0, then leave it.
const SHARED: [[f64; 4]; 4] = [
    [1.0, -4.0, 1.0, -2.0],
    [-4.0, 4.0, -1.0, -3.0],
    [1.0, -1.0, 2.0, -4.0],
    [-2.0, -3.0, -4.0, -4.0],
];

/// The symmetric matrix with `value(i, j)` at j <= i.
fn symmetric(n: usize, mut value: impl FnMut(usize, usize) -> f64) -> Array2<f64> {
    let mut matrix = Array2::zeros((n, n));
    for i in 0..n {
        for j in 0..=i {
            matrix[[i, j]] = value(i, j);
            matrix[[j, i]] = matrix[[i, j]];
        }
    }
    matrix
}

#[test]
fn a_double_star_needs_room_for_two_clusters() {
    let x = Array2::from_shape_fn((4, 1), |(i, _)| i as f64);
    let gram = SHARED.as_flattened();
    for (max_clusters, last) in [(4, MoveKind::DoubleStar), (3, MoveKind::Star)] {
        let kernel = Kernel::Gram { k: gram, n: 4 };
        let problem =
            KauriProblem { max_clusters, all_moves: false, max_features: 1, ..problem(kernel) };
        let splits = splits(&x, &fitted(&x, &problem, 1));
        let kinds: Vec<MoveKind> = splits.iter().map(|split| split.kind).collect();
        assert_eq!(kinds, [MoveKind::Star, MoveKind::Switch, last]);
    }
}

/// Fits a tree on `x` and checks that every split is the first of the best of all there are.
fn check_splits(x: &Array2<f64>, kernel: Kernel<'_>, gram: &Array2<f64>, max_clusters: usize) {
    let problem = KauriProblem { max_clusters, max_features: x.ncols(), ..problem(kernel) };
    check_replay(x, &vec![false; x.ncols()], &fitted(x, &problem, 1), gram, max_clusters);
}

/// [`check_splits`] of a fitted tree. `levels`: whether each column holds codes of levels.
fn check_replay(
    x: &Array2<f64>,
    levels: &[bool],
    fitted: &FittedKauri,
    gram: &Array2<f64>,
    max_clusters: usize,
) {
    let n = x.nrows();
    let trace = gram.diag().iter().map(|k| k.abs()).sum::<f64>();
    let size = trace.max(gram.iter().map(|k| k.abs()).sum::<f64>() / n as f64);
    let leaves = vec![(0, (0..n).collect())];
    let mut replay = Replay { x, levels, gram, max_clusters, leaves, labels: vec![0; n] };
    for (i, split) in splits(x, fitted).into_iter().enumerate() {
        let best = replay.best(1e-12 * size).expect("a split that gains");
        assert_eq!(split, Candidate { gain: split.gain, ..best.clone() }, "{max_clusters}, {gram}");
        assert!((split.gain - best.gain).abs() <= 1e-9 * size, "{max_clusters}, {gram}");
        replay.split(&split, 2 * i + 1);
    }
    assert_eq!(replay.best(1e-12 * size), None, "{max_clusters}, {gram}");
}

#[test]
fn every_split_on_features_is_the_first_of_the_best_of_all() {
    let mut random = Random(5);
    for round in 0..900 {
        let n = 6 + random.below(6) as usize;
        let x = Array2::from_shape_fn((n, 2), |_| random.below(4) as f64);
        let rank = 1 + random.below(3) as usize;
        let z = Array2::from_shape_fn((n, rank), |_| random.below(7) as f64 - 3.0);
        let gram = z.dot(&z.t());
        let max_clusters = 1 + random.below(4) as usize;
        let entries: Vec<f64> = gram.iter().copied().collect();
        let kernel = match round % 3 {
            0 => Kernel::Gram { k: &entries, n },
            _ => Kernel::Features { z: z.as_slice().unwrap(), rank },
        };
        check_splits(&x, kernel, &gram, max_clusters);
    }
    // A reallocation whose two sides have the same best cluster: the left one goes to its second best.
    let first = [3.0, 3.0, 1.0, 2.0, 0.0, 3.0, 3.0, 1.0, 0.0];
    let second = [2.0, 1.0, 1.0, 3.0, 3.0, 1.0, 3.0, 0.0, 2.0];
    let x = Array2::from_shape_fn((9, 2), |(i, j)| [first, second][j][i]);
    let z = [2., 3., 1., -2., -3., -2., 1., 0., 1., -1., 3., -3., 0., -1., 1., -2., -2., -3.];
    let gram =
        Array2::from_shape_fn((9, 9), |(i, j)| z[2 * i] * z[2 * j] + z[2 * i + 1] * z[2 * j + 1]);
    check_splits(&x, Kernel::Features { z: &z, rank: 2 }, &gram, 3);
}

/// Levels and missing cells: see [`cuts`].
#[test]
fn every_split_of_a_mixed_table_is_the_first_of_the_best_of_all() {
    let mut random = Random(11);
    let (mut n_levels, mut n_missing, mut n_left) = (0, 0, 0);
    for round in 0..1500 {
        // Rows are added up in blocks of 32: some tables have more.
        let (least_n, n_numbers): (u64, u64) = if round % 30 == 0 { (34, 60) } else { (6, 4) };
        let n = (least_n + random.below(6)) as usize;
        let d = 1 + random.below(2) as usize;
        let levels: Vec<bool> = (0..d).map(|_| random.below(2) == 0).collect();
        let gaps = [0, 1, 3, 10][random.below(4) as usize]; // in tenths; 10: all missing
        let x = Array2::from_shape_fn((n, d), |(_, f)| {
            let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
            let n_values = if levels[f] { 4 } else { n_numbers };
            match random.below(10) < gaps {
                true => f64::NAN.copysign(sign),
                false => random.below(n_values) as f64,
            }
        });
        let rank = 1 + random.below(2) as usize;
        let z = Array2::from_shape_fn((n, rank), |_| random.below(7) as f64 - 3.0);
        let max_clusters = 1 + random.below(4) as usize;
        let codes = x.mapv(|x| if x.is_nan() { MISSING_LEVEL } else { x as u8 });
        // Half of the columns of levels are in the kernel, by code, with one level that no row has.
        let means = Array2::from_shape_fn((d, 5), |_| random.below(5) as f64 / 4.0);
        let in_kernel = (0..d).filter(|&f| levels[f] && random.below(2) == 0);
        let by_code: Vec<LevelFeatures<'_>> = in_kernel
            .map(|column| {
                let means = means.index_axis(Axis(0), column).to_slice().unwrap();
                LevelFeatures { column, unit: 1.5, means }
            })
            .collect();
        let coordinates = by_code.iter().map(|level| {
            Array2::from_shape_fn((n, 5), |(i, v)| match codes[[i, level.column]] {
                MISSING_LEVEL => 0.0,
                code => f64::from(usize::from(code) == v) * level.unit - level.means[v],
            })
        });
        let gram = coordinates.fold(z.dot(&z.t()), |sum, t| sum + t.dot(&t.t()));
        let column = |f: usize| -> Column<'_> {
            let codes = codes.index_axis(Axis(1), f);
            if levels[f] { Column::levels(codes, 5).unwrap() } else { x.column(f).into() }
        };
        let table = Table::new((0..d).map(column).collect()).unwrap();
        let kernel = Kernel::Features { z: z.as_slice().unwrap(), rank };
        let problem = problem(kernel);
        let limits = Limits { max_leaves: n, ..problem.limits };
        let problem =
            KauriProblem { levels: &by_code, max_clusters, max_features: d, limits, ..problem };
        let found = fit(&table, &problem, &Monitor::default()).unwrap();
        check_replay(&x, &levels, &found, &gram, max_clusters);
        for (test, missing_left) in found.nodes.tests.iter().zip(&found.nodes.missing_left) {
            n_levels += usize::from(matches!(test, Test::Levels { .. }));
            n_missing += usize::from(matches!(test, Test::Missing { .. }));
            n_left += usize::from(matches!(test, Test::Threshold { .. }) && *missing_left);
        }
    }
    assert!(n_levels > 500 && n_missing > 100 && n_left > 100, "{n_levels} {n_missing} {n_left}");
}

/// Levels lose few rows or none to the other side of a split: their stocks are those of the parent, or counted anew.
#[test]
fn every_split_of_a_table_of_many_levels_is_the_first_of_the_best_of_all() {
    let mut random = Random(12);
    let (n, d, n_levels) = (48, 2, 16);
    let mut n_splits = 0;
    for round in 0..40 {
        let gaps = if round % 2 == 0 { 0 } else { 1 };
        let x = Array2::from_shape_fn((n, d), |(i, _)| {
            let level = (i % 8) as u64 + 8 * random.below(2);
            if random.below(10) < gaps { f64::NAN } else { level as f64 }
        });
        let codes = x.mapv(|x| if x.is_nan() { MISSING_LEVEL } else { x as u8 });
        let means = vec![1.5 / n_levels as f64; n_levels];
        let by_code: Vec<LevelFeatures<'_>> =
            (0..d).map(|column| LevelFeatures { column, unit: 1.5, means: &means }).collect();
        let gram = by_code.iter().fold(Array2::zeros((n, n)), |sum, level| {
            let t = Array2::from_shape_fn((n, n_levels), |(i, v)| match codes[[i, level.column]] {
                MISSING_LEVEL => 0.0,
                code => f64::from(usize::from(code) == v) * level.unit - level.means[v],
            });
            sum + t.dot(&t.t())
        });
        let column = |f: usize| Column::levels(codes.index_axis(Axis(1), f), n_levels).unwrap();
        let table = Table::new((0..d).map(column).collect()).unwrap();
        let kernel = Kernel::Features { z: &[], rank: 0 };
        let problem =
            KauriProblem { levels: &by_code, max_clusters: 3, max_features: d, ..problem(kernel) };
        let found = fit(&table, &problem, &Monitor::default()).unwrap();
        check_replay(&x, &[true; 2], &found, &gram, 3);
        n_splits +=
            found.nodes.tests.iter().filter(|test| matches!(test, Test::Levels { .. })).count();
    }
    assert!(n_splits > 80, "{n_splits}");
}

/// Rows of weight 1 have their stocks from pairs, which children have from their parents; weighted ones from sums.
#[test]
fn levels_that_lose_few_rows_have_the_splits_of_weighted_rows() {
    let mut random = Random(5);
    let (n, d, n_levels) = (640, 3, 32);
    let mut n_splits = 0;
    for _ in 0..12 {
        // 20 rows of each level, those of neighbouring levels alike in all columns.
        let mut codes = Array2::zeros((n, d));
        for mut column in codes.columns_mut() {
            let mut keys: Vec<(u64, usize)> =
                (0..n).map(|i| (i as u64 + random.below(300), i)).collect();
            keys.sort_unstable();
            keys.iter().enumerate().for_each(|(at, (_, i))| column[*i] = (at / 20) as u8);
        }
        let unit = 1.5;
        let means = vec![unit / n_levels as f64; n_levels];
        let by_code: Vec<LevelFeatures<'_>> =
            (0..d).map(|column| LevelFeatures { column, unit, means: &means }).collect();
        let column = |f: usize| Column::levels(codes.index_axis(Axis(1), f), n_levels).unwrap();
        let table = Table::new((0..d).map(column).collect()).unwrap();
        let kernel = Kernel::Features { z: &[], rank: 0 };
        let plain =
            KauriProblem { levels: &by_code, max_clusters: 4, max_features: d, ..problem(kernel) };
        let ones = vec![1.0; n];
        let weighted = KauriProblem { weights: Some(&ones), ..plain };
        let [found, expected] =
            [plain, weighted].map(|problem| fit(&table, &problem, &Monitor::default()).unwrap());
        assert_eq!(found.nodes.tests, expected.nodes.tests);
        assert_eq!(found.cluster, expected.cluster);
        assert_eq!(found.kinds, expected.kinds);
        for (gain, expected) in found.gain.iter().zip(&expected.gain) {
            let is_leaf = gain.is_nan() && expected.is_nan();
            let apart = (gain - expected).abs();
            assert!(is_leaf || apart <= 1e-11 * expected.abs(), "{gain} {expected}");
        }
        n_splits += found.nodes.tests.len() / 2;
    }
    assert!(n_splits > 200, "{n_splits}");
}

#[test]
fn levels_that_no_row_has_go_to_the_side_with_more_rows() {
    // Level 0 has three of the four rows, 1 and 3 none.
    let codes = array![0u8, 0, 0, 2];
    let x = array![0.0, 0.0, 0.0, 5.0];
    let table = Table::new(vec![Column::levels(codes.view(), 4).unwrap()]).unwrap();
    let z: Vec<f64> = x.to_vec();
    let problem = KauriProblem {
        max_clusters: 2,
        max_features: 1,
        ..problem(Kernel::Features { z: &z, rank: 1 })
    };
    let found = fit(&table, &problem, &Monitor::default()).unwrap();
    assert_eq!(
        found.nodes.tests[0],
        Test::Levels { feature: 0, left: [0, 1, 3].into_iter().collect() }
    );
    assert!(found.nodes.missing_left[0]);
}

/// Kernels that are not positive semidefinite: clusters are joined while new ones may be made.
#[test]
fn every_split_on_an_indefinite_kernel_is_the_first_of_the_best_of_all() {
    let mut random = Random(5);
    let line = |n: usize| Array2::from_shape_fn((n, 1), |(i, _)| i as f64);
    for _ in 0..1500 {
        let n = 5 + random.below(2) as usize;
        let gram = symmetric(n, |_, _| random.below(9) as f64 - 4.0);
        let max_clusters = 3 + random.below(2) as usize;
        check_splits(
            &line(n),
            Kernel::Gram { k: gram.as_slice().unwrap(), n },
            &gram,
            max_clusters,
        );
    }
    // Two leaves whose gains are equal up to rounding, the second one larger: the first is split. And a double star that
    // gains more than what there is room for.
    let tied = array![
        [3.0, -4.0, 4.0, 4.0, 2.0, -1.0],
        [-4.0, -4.0, -2.0, -3.0, 2.0, -3.0],
        [4.0, -2.0, 0.0, 1.0, 1.0, -1.0],
        [4.0, -3.0, 1.0, 2.0, -4.0, -3.0],
        [2.0, 2.0, 1.0, -4.0, 1.0, 3.0],
        [-1.0, -3.0, -1.0, -3.0, 3.0, 2.0]
    ];
    let full = array![
        [-2.0, 4.0, -1.0, -4.0, 2.0, 1.0],
        [4.0, -1.0, 2.0, -2.0, 3.0, 2.0],
        [-1.0, 2.0, 4.0, 4.0, 3.0, 4.0],
        [-4.0, -2.0, 4.0, 0.0, -3.0, 3.0],
        [2.0, 3.0, 3.0, -3.0, 4.0, -1.0],
        [1.0, 2.0, 4.0, 3.0, -1.0, 4.0]
    ];
    for (gram, max_clusters) in [(tied, 4), (full, 3)] {
        let kernel = Kernel::Gram { k: gram.as_slice().unwrap(), n: 6 };
        check_splits(&line(6), kernel, &gram, max_clusters);
    }
}

#[test]
fn leaves_of_fewer_rows_than_min_samples_split_stay() {
    let x = example();
    let z: Vec<f64> = x.iter().copied().collect();
    let kernel = Kernel::Features { z: &z, rank: D };
    let sizes = |min_samples_split: usize| -> Vec<usize> {
        let fitted = fitted(&x, &KauriProblem { min_samples_split, ..problem(kernel) }, 1);
        splits(&x, &fitted).iter().map(|split| fitted.nodes.n_samples[split.node]).collect()
    };
    let least = *sizes(2).iter().min().unwrap();
    assert_eq!(sizes(least), sizes(2));
    assert!(sizes(least + 1).into_iter().all(|size| size > least));
}

/// Four rows at the corners of a rectangle of half sides a and b: a split along a column gains 4 a^2 or 4 b^2, as
/// shares of the largest objective 4 (a^2 + b^2).
fn rectangle(a: f64, b: f64, max_leaves: usize) -> Vec<usize> {
    let x = array![[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
    let z = [-a, -b, -a, b, a, -b, a, b];
    let limits = Limits { max_leaves, max_depth: None, min_samples_leaf: 1 };
    let kernel = Kernel::Features { z: &z, rank: 2 };
    let fitted = fitted(&x, &KauriProblem { limits, max_features: 2, ..problem(kernel) }, 1);
    splits(&x, &fitted).iter().map(|split| split.feature).collect()
}

#[test]
fn gains_within_the_margin_are_tied_and_no_others() {
    // The second column gains more by the share 0.5e-12, then by 2e-12 of the largest objective.
    for (more, expected) in [(0.5e-12, 0), (2e-12, 1)] {
        assert_eq!(rectangle(1.0, (1.0f64 + 2.0 * more).sqrt(), 2), [expected], "{more}");
    }
    // The first column gains that share alone, after the second one has been split.
    for (share, expected) in [(0.5e-12, &[1][..]), (4e-12, &[1, 0, 0])] {
        assert_eq!(rectangle(f64::sqrt(share), 1.0, 25), expected, "{share}");
    }
}

/// A column and its mirror image: the same cuts, whose stocks are added up in opposite orders.
#[test]
fn rounding_does_not_decide_between_tied_columns() {
    let mut random = Random(3);
    for round in 0..60 {
        let n = 40;
        let column: Vec<f64> = (0..n).map(|_| random.below(1 << 20) as f64).collect();
        let x = Array2::from_shape_fn((n, 2), |(i, j)| if j == 0 { column[i] } else { -column[i] });
        let z: Vec<f64> = (0..n).map(|i| (column[i] / 1e5).sin() + 0.1 * column[i] / 1e6).collect();
        let gram = Array2::from_shape_fn((n, n), |(i, j)| z[i] * z[j]);
        for kernel in
            [Kernel::Features { z: &z, rank: 1 }, Kernel::Gram { k: gram.as_slice().unwrap(), n }]
        {
            let fitted = fitted(&x, &KauriProblem { max_features: 2, ..problem(kernel) }, 1);
            let splits = splits(&x, &fitted);
            assert!(splits.len() > 5);
            assert!(splits.iter().all(|split| split.feature == 0), "round {round}");
        }
    }
}
