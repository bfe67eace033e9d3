//! Micro-benchmarks of the core: binning, costs, and whole fits. Sizes are in the names; data are made outside the
//! timer.

use criterion::{Criterion, criterion_group, criterion_main};
use ndarray::Array2;
use treeclust_rs::costs::{Metric, Units, label_costs};
use treeclust_rs::criterion::centers::Centers;
use treeclust_rs::criterion::cut_score::CutScore;
use treeclust_rs::criterion::label_cost::CutKind;
use treeclust_rs::fit::{Base, GrowthCriterion, ThresholdProblem, fit};
use treeclust_rs::grow::Limits;
use treeclust_rs::index::{Index, MAX_BINS};
use treeclust_rs::parallel::{Monitor, with_pool};
use treeclust_rs::search::SearchOptions;
use treeclust_rs::table::Table;

/// Overlapping clusters: a corner of a cube by cluster, plus noise.
fn data(n: usize, d: usize, k: usize) -> (Array2<f64>, Array2<f64>) {
    let mut state = 1u64;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let centers =
        Array2::from_shape_fn((k, d), |(c, f)| f64::from(u8::from((c >> (f % 4)) & 1 == 1)));
    let x = Array2::from_shape_fn((n, d), |(i, f)| {
        centers[[i % k, f]] + 2.0 * (uniform() + uniform() - 1.0)
    });
    (x, centers)
}

fn benches(bench: &mut Criterion) {
    for (n, d, k) in [(20_000, 10, 5), (100_000, 20, 10)] {
        let (x, centers) = data(n, d, k);
        let table = Table::from_matrix(x.view()).unwrap();
        let size = format!("n={n} d={d} k={k}, 1 thread");
        bench.bench_function(&format!("bins {size}"), |b| {
            b.iter(|| with_pool(1, || Index::new(&table, MAX_BINS)).unwrap());
        });
        let units = Units::of(&table, None, false).unwrap();
        let in_units = Array2::from_shape_fn((k, d), |(c, f)| centers[[c, f]] - units.shift[f]);
        let centers_in_units = in_units.as_slice().unwrap();
        let costs = || {
            with_pool(1, || {
                label_costs(&table, &units, centers_in_units, Metric::SquaredEuclidean, &[], None)
            })
        };
        bench.bench_function(&format!("costs {size}"), |b| b.iter(|| costs().unwrap().unwrap()));
        let costs = costs().unwrap().unwrap();
        let low = vec![0.0; k * d];
        for (name, base, cuts) in [
            ("imm and growth", true, CutKind::Threshold),
            ("growth", false, CutKind::Threshold),
            ("interval growth", false, CutKind::Interval),
        ] {
            let centers = Centers { high: centers.as_slice().unwrap(), low: &low };
            let problem = ThresholdProblem {
                k,
                labels: &costs.nearest,
                base: if base {
                    Base::Imm { centers, score: CutScore::Mistakes }
                } else {
                    Base::Leaf
                },
                weights: None,
                criterion: GrowthCriterion::LabelCost { regrets: Some(&costs.regrets), cuts },
                limits: Limits { max_leaves: 4 * k, max_depth: None, min_samples_leaf: 1 },
                search: SearchOptions::default(),
            };
            bench.bench_function(&format!("{name} {size}"), |b| {
                b.iter(|| {
                    with_pool(1, || fit(&table, &problem, &Monitor::default())).unwrap().unwrap()
                });
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
