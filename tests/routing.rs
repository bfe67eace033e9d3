//! Every way rows come in, through random trees with tests of all kinds, against one row at a time.

use fastrand::Rng;
use ndarray::Array2;
use treeclust_rs::rows::Csr;
use treeclust_rs::table::Table;
use treeclust_rs::tree::{ClusterTree, LevelArrays, Test, TestArrays, TreeArrays};

/// Columns 0 and 1 hold numbers, 2 and 3 the codes of six levels, 4 is not tested.
const N_FEATURES: usize = 5;
const N_LEVELS: u8 = 6;

/// A random test; `kinds`: 1 thresholds, 2 intervals too, 4 all kinds.
fn random_test(rng: &mut Rng, kinds: usize) -> Test {
    let number = |rng: &mut Rng| f64::from(rng.i32(-3..4)) / 2.0;
    let feature = rng.usize(..2);
    match rng.usize(..kinds) {
        0 => Test::Threshold { feature, threshold: number(rng) },
        1 => {
            let (a, b) = (number(rng), number(rng));
            Test::Interval { feature, lower: a.min(b), upper: a.max(b) }
        }
        2 => {
            let mut left: Vec<u8> = (0..N_LEVELS).filter(|_| rng.bool()).collect();
            left.is_empty().then(|| left.push(rng.u8(..N_LEVELS)));
            Test::Levels { feature: feature + 2, left: left.into_iter().collect() }
        }
        _ => Test::Missing { feature: rng.usize(..4) },
    }
}

/// The tests, children and directions of a random tree; siblings follow each other.
fn random_tree(rng: &mut Rng, kinds: usize) -> (Vec<Test>, Vec<[usize; 2]>, Vec<bool>) {
    let (mut tests, mut children, mut sides) = (vec![Test::Leaf], vec![[0; 2]], vec![false]);
    let most = if rng.bool() { 10 } else { 90 };
    for _ in 0..rng.usize(..most) {
        let id = rng.usize(..tests.len());
        if tests[id] == Test::Leaf {
            children[id] = [tests.len(), tests.len() + 1];
            tests[id] = random_test(rng, kinds);
            sides[id] = rng.bool() || matches!(tests[id], Test::Missing { .. });
            tests.extend([Test::Leaf, Test::Leaf]);
            children.extend([[0; 2], [0; 2]]);
            sides.extend([false; 2]);
        }
    }
    (tests, children, sides)
}

/// Cells with gaps: each NaN with the given probability.
fn random_rows(rng: &mut Rng, n: usize, gaps: f64) -> Array2<f64> {
    Array2::from_shape_fn((n, N_FEATURES), |(_, j)| {
        if rng.f64() < gaps {
            f64::NAN
        } else if (2..4).contains(&j) {
            f64::from(rng.u8(..N_LEVELS + 1)) // the last one is in no set
        } else {
            f64::from(rng.i32(-4..5)) / 2.0
        }
    })
}

/// The leaf of a row, by the definition of each test.
fn leaf_of(tests: &[Test], children: &[[usize; 2]], sides: &[bool], row: &[f64]) -> i64 {
    let mut node = 0;
    loop {
        let left = match &tests[node] {
            Test::Leaf => return node as i64,
            Test::Missing { feature } => row[*feature].is_nan(),
            test if row[test.feature().unwrap()].is_nan() => sides[node],
            Test::Threshold { feature, threshold } => row[*feature] <= *threshold,
            Test::Interval { feature, lower, upper } => (*lower..=*upper).contains(&row[*feature]),
            Test::Levels { feature, left } => left.codes().any(|c| f64::from(c) == row[*feature]),
            Test::Oblique(_) => unreachable!("not among the tests"),
        };
        node = children[node][usize::from(!left)];
    }
}

#[test]
fn rows_of_all_forms_take_the_way_of_the_definition() {
    let mut rng = Rng::with_seed(23);
    for trial in 0..400 {
        let kinds = [1, 2, 4][trial % 3];
        let (tests, children, sides) = random_tree(&mut rng, kinds);
        let arrays = TestArrays::of(tests.iter().zip(children.iter().copied()));
        let arrays = TreeArrays {
            kind: &arrays.kind,
            feature: &arrays.feature,
            threshold: &arrays.threshold,
            lower: &arrays.lower,
            upper: &arrays.upper,
            children_left: &arrays.children_left,
            children_right: &arrays.children_right,
            levels: Some(LevelArrays {
                indptr: &arrays.levels_indptr,
                codes: &arrays.levels_codes,
            }),
            missing_go_to_left: Some(&sides),
            oblique: None,
        };
        let tree = ClusterTree::new(arrays, N_FEATURES).unwrap();
        assert_eq!(tree.tests(), tests);
        let n = [1, 7, 60, 1500][trial % 4];
        for gaps in [0.0, 0.002, 0.3] {
            let mut x = random_rows(&mut rng, n, gaps);
            x[[n / 2, 4]] = f64::INFINITY; // of the column that is not tested
            let rows = x.as_standard_layout().into_owned();
            let expected: Vec<i64> = rows
                .rows()
                .into_iter()
                .map(|row| leaf_of(&tests, &children, &sides, row.as_slice().unwrap()))
                .collect();
            let columns = rows.t().as_standard_layout().reversed_axes().to_owned();
            let single = columns.mapv(|x| x as f32);
            for table in [
                Table::from_matrix(rows.view()).unwrap(),
                Table::from_matrix(columns.view()).unwrap(),
                Table::from_matrix(single.view()).unwrap(),
            ] {
                assert_eq!(tree.apply(&table).unwrap().as_ref(), Some(&expected), "{trial}");
            }
            let cells = rows.as_slice().unwrap();
            assert_eq!(tree.apply_rows(cells, N_FEATURES).unwrap().as_ref(), Some(&expected));
            let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
            for row in rows.rows() {
                for (j, &x) in row.iter().enumerate().filter(|&(j, &x)| x != 0.0 && j < 4) {
                    indices.push(j as i64);
                    values.push(x);
                }
                indptr.push(values.len() as i64);
            }
            let sparse = Csr::from_i64(&indptr, &indices, &values, N_FEATURES).unwrap();
            assert_eq!(tree.apply_sparse(&sparse).unwrap().as_ref(), Some(&expected));

            // Without directions a missing cell of a tested column is refused, as infinite ones always are.
            let used: Vec<usize> = tests.iter().filter_map(Test::feature).collect();
            if kinds < 4 {
                let plain = TreeArrays { missing_go_to_left: None, ..arrays };
                let plain = ClusterTree::new(plain, N_FEATURES).unwrap();
                let is_complete =
                    rows.rows().into_iter().all(|r| !used.iter().any(|&j| r[j].is_nan()));
                let leaves = plain.apply_rows(cells, N_FEATURES).unwrap();
                assert_eq!(leaves, is_complete.then_some(expected));
            }
            if let Some(&column) = used.last() {
                x[[n - 1, column]] = f64::NEG_INFINITY;
                assert_eq!(tree.apply_rows(x.as_slice().unwrap(), N_FEATURES).unwrap(), None);
                assert_eq!(tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap(), None);
            }
        }
    }
}
