//! TAO against enumeration, and the descent of its objective.

#[path = "common/sparse.rs"]
mod sparse;

use ndarray::{Array2, array};
use treeclust_rs::costs::Units;
use treeclust_rs::index::Index;
use treeclust_rs::oblique::draft::{DraftNode, DraftTree};
use treeclust_rs::oblique::geometry::{Distance, Geometry};
use treeclust_rs::oblique::initial::{self, FirstTree};
use treeclust_rs::oblique::leaf_loss::{Labels, Loss};
use treeclust_rs::oblique::logistic::SolverOptions;
use treeclust_rs::oblique::logistic::design::Design;
use treeclust_rs::oblique::memory::Memory;
use treeclust_rs::oblique::path::Schedule;
use treeclust_rs::oblique::plan::{FreeClustering, ObliqueOptions, fit_tree};
use treeclust_rs::oblique::spherical::{self, SphericalOptions};
use treeclust_rs::oblique::splits::Splits;
use treeclust_rs::oblique::tao::{Tao, TaoSettings};
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::rows::{Csr, Rows};
use treeclust_rs::table::Table;
use treeclust_rs::tree::{ClusterTree, ObliqueArrays, Test, TreeArrays};

use sparse::csr_parts;

const K: usize = 5;

struct Data {
    x: Array2<f64>,
    costs: Vec<f64>,
    labels: Vec<u32>,
    weights: Vec<f64>,
}

/// Rows around five centers, costs to centers near those, and the nearest labels, some of them wrong.
fn data(seed: u64, n: usize, d: usize) -> Data {
    let mut rng = fastrand::Rng::with_seed(seed);
    let centers = Array2::from_shape_fn((K, d), |_| 8.0 * rng.f64());
    let x = Array2::from_shape_fn((n, d), |(i, j)| {
        centers[[i % K, j]] + (rng.f64() + rng.f64() + rng.f64() - 1.5) * 4.0
    });
    let mut costs = vec![0.0; n * K];
    let mut labels = vec![0; n];
    for i in 0..n {
        for k in 0..K {
            let square = |j: usize| (x[[i, j]] - centers[[k, j]]) * (x[[i, j]] - centers[[k, j]]);
            costs[i * K + k] = (0..d).map(square).sum::<f64>() / 10.0;
        }
        let row = &costs[i * K..][..K];
        let nearest = (0..K).min_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
        labels[i] = if rng.u8(..10) == 0 { rng.u32(..K as u32) } else { nearest as u32 };
    }
    let weights = (0..n).map(|_| 0.5 + rng.f64()).collect();
    Data { x, costs, labels, weights }
}

fn settings(lambda: f64, n_sweeps: usize) -> TaoSettings {
    let solver = SolverOptions { tol: 1e-3, max_iter: 100 };
    let (max_depth, max_leaves, keep_columns, steady) = (4, usize::MAX, false, false);
    TaoSettings { lambda, max_depth, max_leaves, n_sweeps, keep_columns, steady, solver }
}

/// Calls `check` with a matrix as a table, its distances and its oblique splits.
fn with_rows<R>(
    x: &Array2<f64>,
    shares: Option<&[f64]>,
    check: impl for<'t> FnOnce(&Table<'t>, &Geometry<'_, 't>, Splits<'_, 't>) -> R,
) -> R {
    let table = Table::from_matrix(x.view()).unwrap();
    let rows = Rows::Table(&table);
    let units = Units { shift: vec![0.0; x.ncols()], scale: vec![1.0; x.ncols()] };
    let geometry = Geometry::Euclidean { table: &table, units: &units };
    let design = Design::from_table(&table).unwrap();
    check(&table, &geometry, Splits::Oblique { rows, design: &design, shares })
}

/// The objective from its definition, row by row.
fn objective(tao: &Tao<'_, '_>, tree: &DraftTree, x: &Array2<f64>) -> f64 {
    let mut total: f64 = tree.tests(0).into_iter().map(|test| tao.splits.penalty(test)).sum();
    total *= tao.settings.lambda;
    for i in 0..x.nrows() {
        let mut id = 0;
        loop {
            match &tree.nodes[id] {
                DraftNode::Leaf(leaf) => {
                    total += tao.loss.of(i as u32, leaf);
                    break;
                }
                DraftNode::Split { test, left, right, .. } => {
                    let right_side = match test {
                        Test::Oblique(plane) => plane.sum(|j| x[[i, j as usize]]) >= 0.0,
                        Test::Threshold { feature, threshold } => x[[i, *feature]] > *threshold,
                        _ => unreachable!("no fit of this file makes one"),
                    };
                    id = if right_side { *right } else { *left };
                }
            }
        }
    }
    total
}

fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * (1.0 + a.abs()), "{a} {b}");
}

#[test]
fn no_pass_and_no_growth_raises_the_objective() {
    for seed in 0..6 {
        let data = data(seed, 400, 4);
        let (monitor, memory) = (Monitor::default(), Memory::default());
        let shares = [1.0, 0.5, 2.0, 1.0];
        with_rows(&data.x, Some(&shares), |table, geometry, oblique| {
            let index = Index::new(table, 16);
            let weights = (seed % 2 == 1).then_some(&data.weights[..]);
            let labels = Labels { labels: &data.labels, weights, k: K };
            for loss in [
                Loss::Costs { costs: &data.costs, k: K },
                Loss::Labels(labels),
                Loss::Squared(labels),
            ] {
                for axis in [false, true] {
                    let splits = if axis { Splits::Axis { table, index: &index } } else { oblique };
                    let settings = TaoSettings {
                        steady: seed % 4 < 2,
                        ..settings(0.7, 2 * (seed as usize % 2))
                    };
                    let tao = Tao { splits, loss, settings, monitor: &monitor, memory: &memory };
                    let start = if seed < 3 { FirstTree::Random } else { FirstTree::Bisecting };
                    let mut tree = if axis {
                        DraftTree::leaf(0)
                    } else {
                        initial::tree(geometry, weights, start, 4, seed, &monitor).unwrap()
                    };
                    tao.rescale(&mut tree);
                    let mut before = tao.objective(&tree).value(0.7);
                    let first = before;
                    for step in 0..10 {
                        if step % 3 == 0 {
                            tao.grow(&mut tree).unwrap();
                        } else {
                            tao.pass(&mut tree).unwrap();
                        }
                        let after = tao.objective(&tree).value(0.7);
                        assert!(after <= before * (1.0 + 1e-12), "{seed} {step}: {before} {after}");
                        assert_close(after, objective(&tao, &tree, &data.x));
                        assert!(tree.max_depth() <= 4);
                        before = after;
                    }
                    assert!(before < 0.9 * first, "{before} {first}");
                }
            }
        });
    }
}

#[test]
fn steady_passes_come_to_an_end() {
    for seed in 0..6 {
        let data = data(seed, 400, 4);
        let (monitor, memory) = (Monitor::default(), Memory::default());
        with_rows(&data.x, None, |_, geometry, splits| {
            let tao = Tao {
                splits,
                loss: Loss::Labels(Labels { labels: &data.labels, weights: None, k: K }),
                settings: TaoSettings { steady: true, ..settings(0.05, 1) },
                monitor: &monitor,
                memory: &memory,
            };
            let mut tree =
                initial::tree(geometry, None, FirstTree::Bisecting, 3, seed, &monitor).unwrap();
            let mut before = tao.objective(&tree);
            let mut n_passes = 0;
            while tao.pass(&mut tree).unwrap() {
                let after = tao.objective(&tree);
                // Fewer mistakes, or a norm that is clearly smaller.
                let gain = before.value(0.05) - after.value(0.05);
                assert!(gain > 0.0, "seed {seed}: {before:?} {after:?}");
                (before, n_passes) = (after, n_passes + 1);
                assert!(n_passes < 20, "seed {seed}");
            }
            assert!(n_passes > 0);
        });
    }
}

#[test]
fn at_a_node_no_threshold_is_better_than_the_one_found() {
    for seed in 0..5 {
        let data = data(seed, 120, 3);
        let table = Table::from_matrix(data.x.view()).unwrap();
        let index = Index::new(&table, 8);
        let (monitor, memory) = (Monitor::default(), Memory::default());
        let lambda = 0.5;
        let tao = Tao {
            splits: Splits::Axis { table: &table, index: &index },
            loss: Loss::Costs { costs: &data.costs, k: K },
            settings: settings(lambda, 0),
            monitor: &monitor,
            memory: &memory,
        };
        let mut tree = DraftTree::leaf(0);
        tao.grow(&mut tree).unwrap();
        while tao.pass(&mut tree).unwrap() {}
        let found = objective(&tao, &tree, &data.x);
        assert!(tree.n_leaves() > 3);
        for id in 0..tree.nodes.len() {
            let DraftNode::Split { left, right, .. } = tree.nodes[id].clone() else { continue };
            let mut other = tree.clone();
            for child in [left, right] {
                other.nodes[id] = tree.nodes[child].clone();
                assert!(objective(&tao, &other, &data.x) >= found - 1e-6);
            }
            for feature in 0..3 {
                for row in 0..120 {
                    let test = Test::Threshold { feature, threshold: data.x[[row, feature]] };
                    for (left, right) in [(left, right), (right, left)] {
                        other.nodes[id] = DraftNode::split(test.clone(), left, right);
                        let value = objective(&tao, &other, &data.x);
                        assert!(value >= found - 1e-6, "seed {seed} node {id}: {value} {found}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_high_price_leaves_one_leaf() {
    let data = data(0, 200, 4);
    let (monitor, memory) = (Monitor::default(), Memory::default());
    with_rows(&data.x, None, |_, geometry, splits| {
        let tao = Tao {
            splits,
            loss: Loss::Costs { costs: &data.costs, k: K },
            settings: settings(1e6, 1),
            monitor: &monitor,
            memory: &memory,
        };
        let mut tree = initial::tree(geometry, None, FirstTree::Bisecting, 3, 0, &monitor).unwrap();
        assert_eq!(tree.n_leaves(), 8);
        tao.pass(&mut tree).unwrap();
        tao.grow(&mut tree).unwrap();
        assert_eq!(tree.n_leaves(), 1);
        assert_eq!(tree.n_weights(), 0);
    });
}

#[test]
fn growth_keeps_within_its_leaves_and_takes_the_best_first() {
    let data = data(1, 300, 3);
    let table = Table::from_matrix(data.x.view()).unwrap();
    let index = Index::new(&table, 256);
    let (monitor, memory) = (Monitor::default(), Memory::default());
    let costs_with = |max_leaves: usize| {
        let tao = Tao {
            splits: Splits::Axis { table: &table, index: &index },
            loss: Loss::Costs { costs: &data.costs, k: K },
            settings: TaoSettings { max_leaves, ..settings(0.0, 0) },
            monitor: &monitor,
            memory: &memory,
        };
        let mut tree = DraftTree::leaf(0);
        tao.grow(&mut tree).unwrap();
        assert!(tree.n_leaves() <= max_leaves && tree.max_depth() <= 4);
        tao.objective(&tree).loss
    };
    let costs: Vec<f64> = [1, 2, 3, 5, 9, 100].map(costs_with).to_vec();
    assert!(costs.windows(2).all(|pair| pair[1] < pair[0]), "{costs:?}");
}

#[test]
fn threads_do_not_change_a_bit() {
    let data = data(2, 9000, 5);
    let run = || {
        let (monitor, memory) = (Monitor::default(), Memory::default());
        with_rows(&data.x, None, |_, geometry, splits| {
            let tao = Tao {
                splits,
                loss: Loss::Costs { costs: &data.costs, k: K },
                settings: settings(1.0, 1),
                monitor: &monitor,
                memory: &memory,
            };
            let mut tree =
                initial::tree(geometry, None, FirstTree::Bisecting, 4, 0, &monitor).unwrap();
            tao.rescale(&mut tree);
            for _ in 0..2 {
                tao.pass(&mut tree).unwrap();
                tao.grow(&mut tree).unwrap();
            }
            tree
        })
    };
    let one = with_pool(1, run).unwrap();
    let three = with_pool(3, run).unwrap();
    assert_eq!(one, three);
    assert!(one.n_leaves() > 4);
}

#[test]
fn a_stopped_monitor_ends_a_pass() {
    let data = data(3, 100, 2);
    let table = Table::from_matrix(data.x.view()).unwrap();
    let index = Index::new(&table, 256);
    let (monitor, memory) = (Monitor::default(), Memory::default());
    let tao = Tao {
        splits: Splits::Axis { table: &table, index: &index },
        loss: Loss::Costs { costs: &data.costs, k: K },
        settings: settings(0.0, 0),
        monitor: &monitor,
        memory: &memory,
    };
    monitor.stop();
    assert!(tao.pass(&mut DraftTree::leaf(0)).is_err());
    assert!(tao.grow(&mut DraftTree::leaf(0)).is_err());
}

/// A tree of the build as a checked one, made from its arrays.
fn checked(tree: &DraftTree, n_features: usize) -> ClusterTree {
    let arrays = tree.arrays();
    let oblique = ObliqueArrays {
        indptr: &arrays.oblique.indptr,
        indices: &arrays.oblique.indices,
        weights: &arrays.oblique.weights,
        bias: &arrays.oblique.bias,
    };
    let arrays = TreeArrays {
        kind: &arrays.kind,
        feature: &arrays.feature,
        threshold: &arrays.threshold,
        lower: &arrays.lower,
        upper: &arrays.upper,
        children_left: &arrays.children_left,
        children_right: &arrays.children_right,
        levels: None,
        missing_go_to_left: None,
        oblique: Some(oblique),
    };
    ClusterTree::new(arrays, n_features).unwrap()
}

#[test]
fn a_tree_is_fitted_from_options_alone() {
    let data = data(4, 400, 4);
    let table = Table::from_matrix(data.x.view()).unwrap();
    let rows = Rows::from(&table);
    let units = Units::of(&table, None, true).unwrap();
    let monitor = Monitor::default();
    let geometry = Geometry::Euclidean { table: &table, units: &units };
    // The free clustering: the labels' means.
    let centers = geometry.centers(&data.labels, None, &[0.0; 4 * K]).unwrap();
    let free = FreeClustering { labels: &data.labels, centers: &centers };
    let schedule = Schedule { factor: 1.5, n_steps: 10, histograms: false };
    let options = ObliqueOptions::default();
    let fits = [
        options,
        ObliqueOptions { axis: true, alpha: 2.0, ..options },
        ObliqueOptions { first: FirstTree::Random, relax: true, max_depth: 3, ..options },
        ObliqueOptions { schedule: Some(schedule), ..options },
    ];
    for options in fits {
        let fit = |given, options: &ObliqueOptions, weights| {
            fit_tree(rows, &units, weights, free, given, options, &monitor).unwrap()
        };
        let fitted = fit(None, &options, None);
        assert!((2..=16).contains(&fitted.tree.n_leaves()), "{options:?}");
        assert!(fitted.tree.max_depth() <= options.max_depth);
        assert_eq!(fitted.rounds.last().unwrap().n_leaves, fitted.tree.n_leaves());
        // Prediction sends every row where the fit did.
        let tree = checked(&fitted.tree, 4);
        let leaves = tree.apply(&table).unwrap().unwrap();
        let of_fit: Vec<i64> =
            fitted.summary.leaf_of_row.iter().map(|&leaf| i64::from(leaf)).collect();
        assert_eq!(leaves, of_fit);
        // A tree that is given is never made worse at no price, and keeps its depth and its leaves.
        let given = DraftTree::from_tree(&tree, &fitted.tree.clusters(), options.axis).unwrap();
        let free_of_charge = ObliqueOptions { relax: false, alpha: 0.0, ..options };
        let refined = fit(Some(given), &free_of_charge, None);
        assert!(refined.tree.n_leaves() <= fitted.tree.n_leaves());
        assert!(refined.tree.max_depth() <= fitted.tree.max_depth());
        assert!(refined.summary.inertia <= fitted.summary.inertia * (1.0 + 1e-12));
        // Weights of 1 are none.
        assert_eq!(fit(None, &options, Some(&[1.0; 400])), fitted);
    }
    let outside = DraftTree {
        nodes: vec![
            DraftNode::split(Test::Threshold { feature: 4, threshold: 0.0 }, 1, 2),
            DraftTree::leaf(0).nodes[0].clone(),
            DraftTree::leaf(1).nodes[0].clone(),
        ],
    };
    let error = fit_tree(rows, &units, None, free, Some(outside), &options, &monitor).unwrap_err();
    assert!(error.to_string().contains("it uses column 4, but the table has 4 columns"));
}

#[test]
fn sparse_rows_are_fitted_as_dense_ones_by_their_cosine() {
    let mut rng = fastrand::Rng::with_seed(0);
    let (n, d) = (300, 40);
    let x = Array2::from_shape_fn((n, d), |(i, j)| {
        let is_topic = j % 3 == i % 3;
        if rng.f64() < if is_topic { 0.4 } else { 0.05 } { f64::from(rng.u8(1..5)) } else { 0.0 }
    });
    let (indptr, indices, values) = csr_parts(&x);
    let table = Table::from_matrix(x.view()).unwrap();
    let csr = Csr::from_i64(&indptr, &indices, &values, d).unwrap();
    let units = Units { shift: vec![0.0; d], scale: vec![1.0; d] };
    let monitor = Monitor::default();
    let options = ObliqueOptions { distance: Distance::Cosine, alpha: 0.1, ..Default::default() };
    let fit = |rows: Rows<'_, '_>| {
        let starts = SphericalOptions { n_clusters: 3, n_init: 3, max_iter: 50, seed: 0 };
        let found =
            spherical::kmeans(&Geometry::cosine(rows).unwrap(), None, &starts, &monitor).unwrap();
        let free = FreeClustering { labels: &found.labels, centers: &found.centers };
        fit_tree(rows, &units, None, free, None, &options, &monitor).unwrap()
    };
    let (dense, sparse) = (fit(Rows::from(&table)), fit(Rows::sparse(&csr).unwrap()));
    assert_eq!(sparse.summary.leaf_of_row, dense.summary.leaf_of_row);
    assert!((3..=16).contains(&sparse.tree.n_leaves()));
    let leaves = checked(&sparse.tree, d).apply_sparse(&csr).unwrap().unwrap();
    assert!(leaves.iter().zip(&sparse.summary.leaf_of_row).all(|(a, b)| *a == i64::from(*b)));
    // Thresholds and means need dense rows.
    let free = FreeClustering { labels: &vec![0; n], centers: &vec![1.0; d] };
    for (options, message) in [
        (ObliqueOptions { axis: true, ..options }, "Thresholds need dense rows"),
        (ObliqueOptions::default(), "need the cosine distance"),
    ] {
        let rows = Rows::sparse(&csr).unwrap();
        let error = fit_tree(rows, &units, None, free, None, &options, &monitor).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn costs_of_labels_are_weighted_sums_of_distances() {
    let x = array![[0.0, 0.0], [2.0, 0.0], [0.0, 4.0]];
    let table = Table::from_matrix(x.view()).unwrap();
    let units = Units { shift: vec![0.0; 2], scale: vec![1.0; 2] };
    let geometry = Geometry::new(Rows::Table(&table), &units, Distance::Euclidean).unwrap();
    let centers = [0.0, 0.0, 0.0, 4.0];
    let weights = [1.0, 2.0, 3.0];
    for (labels, weights, expected) in [
        (None, None, 4.0),
        (None, Some(&weights[..]), 8.0),
        (Some(&[0, 1, 1][..]), None, 20.0),
        (Some(&[1, 1, 0]), Some(&weights), 16.0 + 40.0 + 48.0),
    ] {
        let (nearest, cost) = geometry.assign(&centers, labels, weights).unwrap();
        assert_eq!((nearest, cost), (vec![0, 0, 1], expected));
    }
    for (labels, message) in [
        (&[0, 1][..], "labels has 2 rows, but 3 are expected."),
        (&[0, 2, 1], "Label 2 is not in the range [0, 2)."),
    ] {
        let error = geometry.assign(&centers, Some(labels), None).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let error = Units::of(&table, Some(&weights[..2]), true).unwrap_err();
    assert_eq!(error.to_string(), "sample_weight has 2 rows, but 3 are expected.");
}
