//! Kauri through the crate's own interface: gains against the objective from scratch, the two routes, threads.

use ndarray::Array2;
use treeclust_rs::grow::Limits;
use treeclust_rs::kauri::fit::{FittedKauri, KauriProblem, fit};
use treeclust_rs::kauri::kernel::Kernel;
use treeclust_rs::kauri::moves::MoveKind;
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::table::Table;
use treeclust_rs::tree::Test;

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
    let huge = vec![1e200; N * D];
    let message = fit(&table, &problem(Kernel::Features { z: &huge, rank: D }), &monitor);
    assert!(message.unwrap_err().to_string().contains("overflow"));
    monitor.stop();
    let z: Vec<f64> = x.iter().copied().collect();
    let stopped = fit(&table, &problem(Kernel::Features { z: &z, rank: D }), &monitor);
    assert_eq!(stopped.unwrap_err().to_string(), "The fit was interrupted.");
}
