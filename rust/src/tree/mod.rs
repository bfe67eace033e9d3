//! The tree every method ends in: a binary tree whose inner nodes hold one readable test and whose leaves hold a
//! cluster.
//!
//! | file | idea |
//! |---|---|
//! | `test.rs` | [`Test`]: threshold, interval, oblique, levels, missing; the one order of weighted sums |
//! | `arrays.rs` | arrays from outside and their checks; the arrays of tests |
//! | `routing.rs` | the leaf of each row, for dense and sparse rows |
//! | `beside.rs` | the values beside the cuts of a fitted tree |
//!
//! A fit works on a tree of its own (`GrowingTree` of threshold trees, `DraftTree` of oblique ones), made of the same
//! tests.

pub mod arrays;
mod beside;
mod routing;
pub mod test;

pub use arrays::{LevelArrays, ObliqueArrays, ObliqueTerms, TestArrays, TreeArrays};
pub use beside::Beside;
pub(crate) use beside::Gap;
use routing::Routes;
pub use test::{LevelSet, Plane, Test};

use crate::error::Result;

/// A checked tree, ready to route rows.
#[derive(Debug, Clone)]
pub struct ClusterTree {
    /// One per node; 0 is the root.
    tests: Vec<Test>,
    /// Of each node; those of a leaf are the leaf itself.
    children: Vec<[u32; 2]>,
    /// Whether a missing cell goes left, by node, as the routes have it; none: missing cells are refused.
    missing_go_to_left: Option<Vec<bool>>,
    /// Columns of the rows that the tree is for.
    n_features: usize,
    /// The nodes as routing reads them.
    routes: Routes,
}

impl ClusterTree {
    /// Checks the arrays and builds a tree for rows of `n_features` columns. O(nodes and terms).
    ///
    /// # Errors
    /// [`crate::error::Error::Shape`] if the arrays differ in length; [`crate::error::Error::Tree`] if they are not one
    /// binary tree whose children come after their parents, or if a test is not finite or names a column outside
    /// `[0, n_features)`, or if the terms of an oblique test are none, 0 or not in the order of their columns; or if a
    /// test on levels has no codes, or codes that do not ascend in `[0, 255)`, or there are such tests or tests for
    /// missing cells without directions for missing cells, or directions beside oblique tests.
    pub fn new(arrays: TreeArrays<'_>, n_features: usize) -> Result<Self> {
        let (tests, children) = arrays.check(n_features)?;
        let routes = Routes::new(&tests, &children, arrays.missing_go_to_left);
        let missing_go_to_left = arrays.missing_go_to_left.map(<[bool]>::to_vec);
        Ok(ClusterTree { tests, children, missing_go_to_left, n_features, routes })
    }

    /// The test of each node.
    pub fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// The two children of a node; a leaf's are the leaf itself.
    pub fn children(&self, id: usize) -> [usize; 2] {
        self.children[id].map(|child| child as usize)
    }

    /// The same tree, but missing cells are refused.
    pub fn of_complete_rows(&self) -> Self {
        ClusterTree { missing_go_to_left: None, ..self.clone() }
    }

    /// Whether a missing cell goes left, by node; none: the tree refuses missing cells.
    pub fn missing_go_to_left(&self) -> Option<&[bool]> {
        self.missing_go_to_left.as_deref()
    }

    /// Number of columns of the rows that the tree is for.
    pub fn n_features(&self) -> usize {
        self.n_features
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Csr;
    use crate::table::Table;
    use ndarray::array;

    const KIND: [i8; 5] = [1, 0, 2, 0, 0];
    const FEATURE: [i64; 5] = [0, -2, 1, -2, -2];
    const THRESHOLD: [f64; 5] = [0.5, -2.0, f64::NAN, -2.0, -2.0];
    const LOWER: [f64; 5] = [f64::NAN, f64::NAN, 1.0, f64::NAN, f64::NAN];
    const UPPER: [f64; 5] = [f64::NAN, f64::NAN, 2.0, f64::NAN, f64::NAN];
    const LEFT: [i64; 5] = [1, -1, 3, -1, -1];
    const RIGHT: [i64; 5] = [2, -1, 4, -1, -1];

    fn arrays() -> TreeArrays<'static> {
        TreeArrays {
            kind: &KIND,
            feature: &FEATURE,
            threshold: &THRESHOLD,
            lower: &LOWER,
            upper: &UPPER,
            children_left: &LEFT,
            children_right: &RIGHT,
            levels: None,
            missing_go_to_left: None,
            oblique: None,
        }
    }

    #[test]
    fn values_equal_to_an_end_go_left() {
        let tree = ClusterTree::new(arrays(), 2).unwrap();
        let x = array![[0.5, 9.0], [0.6, 1.0], [0.6, 2.0], [0.6, 2.1], [0.6, 0.9]];
        let leaves = tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap().unwrap();
        assert_eq!(leaves, [1, 3, 3, 4, 4]);
        assert_eq!(tree.apply_rows(x.as_slice().unwrap(), 2).unwrap(), Some(leaves));
        let broken = [0.5, 9.0, 0.6, f64::NAN];
        assert_eq!(tree.apply_rows(&broken, 2).unwrap(), None);
        assert!(tree.apply_rows(&broken, 1).is_err());
    }

    #[test]
    fn broken_trees_are_refused() {
        let cases: Vec<(TreeArrays<'_>, usize, &str)> = vec![
            (TreeArrays { children_left: &[1, -1, 1, -1, -1], ..arrays() }, 2, "child 1 of node 2"),
            (TreeArrays { children_left: &[2, -1, 3, -1, -1], ..arrays() }, 2, "two parents"),
            (TreeArrays { children_left: &[1, -1, 9, -1, -1], ..arrays() }, 2, "child 9"),
            (TreeArrays { kind: &[1, 0, 0, 0, 0], ..arrays() }, 2, "has children"),
            (TreeArrays { kind: &[1, 0, 7, 0, 0], ..arrays() }, 2, "unknown kind 7"),
            (TreeArrays { lower: &[0.0, 0.0, 3.0, 0.0, 0.0], ..arrays() }, 2, "interval of node 2"),
            (TreeArrays { threshold: &[f64::NAN; 5], ..arrays() }, 2, "threshold of node 0"),
            (arrays(), 1, "tests column 1"),
            (TreeArrays { feature: &[0], ..arrays() }, 2, "feature has 1 entries"),
        ];
        for (arrays, n_features, expected) in cases {
            let message = ClusterTree::new(arrays, n_features).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    const INDPTR: [i64; 6] = [0, 2, 2, 2, 2, 2];
    const INDICES: [i64; 2] = [0, 2];
    const WEIGHTS: [f64; 2] = [1.0, -0.5];
    const BIAS: [f64; 5] = [-1.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN];

    /// `x0 - 0.5 x2 - 1 < 0` goes to the leaf 1, the others to the interval of node 2.
    fn oblique_arrays() -> TreeArrays<'static> {
        TreeArrays { kind: &[3, 0, 2, 0, 0], feature: &[-2, -2, 1, -2, -2], ..arrays() }
    }

    fn runs() -> ObliqueArrays<'static> {
        ObliqueArrays { indptr: &INDPTR, indices: &INDICES, weights: &WEIGHTS, bias: &BIAS }
    }

    #[test]
    fn scores_below_0_go_left() {
        let arrays = TreeArrays { oblique: Some(runs()), ..oblique_arrays() };
        let tree = ClusterTree::new(arrays, 4).unwrap();
        // Below 0; 0 twice; above.
        let x = array![
            [1.0, 1.5, 0.1, 0.0],
            [1.5, 1.5, 1.0, 0.0],
            [0.0, 2.5, -2.0, 0.0],
            [9.0, 2.0, 1.0, 0.0],
            [f64::MAX, 1.0, f64::MAX, 0.0]
        ];
        let leaves = tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap().unwrap();
        assert_eq!(leaves, [1, 3, 4, 3, 3]);
        assert_eq!(tree.apply_rows(x.as_slice().unwrap(), 4).unwrap(), Some(leaves));
        assert!(tree.apply_rows(&[1.0, 2.0], 2).is_err());
        // Infinity minus infinity is not below 0.
        let steep = ObliqueArrays { weights: &[1e300, -1e300], ..runs() };
        let arrays = TreeArrays { oblique: Some(steep), ..oblique_arrays() };
        let tree = ClusterTree::new(arrays, 3).unwrap();
        assert_eq!(tree.apply_rows(&[1e300, 1.0, 1e300], 3).unwrap(), Some(vec![3]));
    }

    /// Rows of all lengths of groups and tiles, in both layouts, against one row at a time.
    #[test]
    fn rows_take_the_same_way_alone_and_together() {
        let n_features = 700;
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1u64 << 23) as f64 - 1.0
        };
        // Two oblique levels above four leaves, then one threshold: nodes 0, 1, 2 oblique, 3 by column 7.
        let weights: Vec<f64> = (0..3 * 350).map(|_| random()).collect();
        let indices: Vec<i64> =
            (0..3).flat_map(|start| (0..350).map(move |i| (2 * i + start % 2) as i64)).collect();
        let nan = [f64::NAN; 9];
        let mut bias = nan;
        (0..3).for_each(|node| bias[node] = random());
        let arrays = TreeArrays {
            kind: &[3, 3, 3, 1, 0, 0, 0, 0, 0],
            feature: &[-2, -2, -2, 7, -2, -2, -2, -2, -2],
            threshold: &[0.1; 9],
            lower: &nan,
            upper: &nan,
            children_left: &[1, 3, 5, 7, -1, -1, -1, -1, -1],
            children_right: &[2, 4, 6, 8, -1, -1, -1, -1, -1],
            levels: None,
            missing_go_to_left: None,
            oblique: Some(ObliqueArrays {
                indptr: &[0, 350, 700, 1050, 1050, 1050, 1050, 1050, 1050, 1050],
                indices: &indices,
                weights: &weights,
                bias: &bias,
            }),
        };
        let tree = ClusterTree::new(arrays, n_features).unwrap();
        for n in [1, 7, 8, 9, 93, 94, 1100] {
            let x = ndarray::Array2::from_shape_fn((n, n_features), |_| random());
            let expected: Vec<i64> = x
                .rows()
                .into_iter()
                .map(|row| {
                    let mut node = 0;
                    while arrays.children_left[node] >= 0 {
                        let left = if node == 3 {
                            row[7] <= 0.1
                        } else {
                            let run = node * 350..(node + 1) * 350;
                            let terms = indices[run.clone()].iter().zip(&weights[run]);
                            terms.fold(bias[node], |sum, (&i, w)| sum + w * row[i as usize]) < 0.0
                        };
                        let children =
                            if left { arrays.children_left } else { arrays.children_right };
                        node = children[node] as usize;
                    }
                    node as i64
                })
                .collect();
            let leaves = tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap().unwrap();
            assert_eq!(leaves, expected, "{n} rows by columns");
            let rows = x.as_slice().unwrap();
            assert_eq!(tree.apply_rows(rows, n_features).unwrap(), Some(leaves), "{n} rows");
            let mut broken = rows.to_vec();
            broken[rows.len() - 1] = f64::INFINITY;
            assert_eq!(tree.apply_rows(&broken, n_features).unwrap(), None);
        }
    }

    #[test]
    fn broken_oblique_tests_are_refused() {
        let cases: Vec<(ObliqueArrays<'_>, &str)> = vec![
            (ObliqueArrays { indptr: &[0, 2], ..runs() }, "oblique_indptr has 2 entries"),
            (ObliqueArrays { bias: &[0.0], ..runs() }, "oblique_bias has 1 entries"),
            (ObliqueArrays { weights: &[1.0], ..runs() }, "oblique_weights has 1 entries"),
            (ObliqueArrays { indptr: &[0, 1, 1, 1, 1, 1], ..runs() }, "rise from 0 to 2"),
            (ObliqueArrays { indptr: &[0, 3, 2, 2, 2, 2], ..runs() }, "rise from 0 to 2"),
            (ObliqueArrays { indptr: &[1, 2, 2, 2, 2, 2], ..runs() }, "rise from 0 to 2"),
            (ObliqueArrays { indptr: &[0, 1, 2, 2, 2, 2], ..runs() }, "node 1 has weights"),
            (ObliqueArrays { indptr: &[0, 0, 0, 2, 2, 2], ..runs() }, "node 0 is oblique but has"),
            (ObliqueArrays { indices: &[2, 0], ..runs() }, "not in ascending order"),
            (ObliqueArrays { indices: &[2, 2], ..runs() }, "not in ascending order"),
            (ObliqueArrays { indices: &[0, 3], ..runs() }, "tests column 3"),
            (ObliqueArrays { indices: &[-1, 2], ..runs() }, "tests column -1"),
            (ObliqueArrays { weights: &[0.0, 1.0], ..runs() }, "a weight of node 0 is 0"),
            (ObliqueArrays { weights: &[1.0, f64::NAN], ..runs() }, "a weight of node 0 is NaN"),
            (ObliqueArrays { bias: &[f64::NAN; 5], ..runs() }, "the bias of node 0 is NaN"),
        ];
        for (runs, expected) in cases {
            let arrays = TreeArrays { oblique: Some(runs), ..oblique_arrays() };
            let message = ClusterTree::new(arrays, 3).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let message = ClusterTree::new(oblique_arrays(), 3).unwrap_err().to_string();
        assert!(message.contains("node 0 is oblique, but the tree has no weights"), "{message}");
    }

    /// The interval of node 2 is a test on levels or for missing cells.
    fn special_arrays(kind: &'static [i8; 5]) -> TreeArrays<'static> {
        TreeArrays {
            kind,
            threshold: &[0.5, -2.0, f64::NAN, -2.0, -2.0],
            lower: &[f64::NAN; 5],
            upper: &[f64::NAN; 5],
            levels: Some(LevelArrays { indptr: &[0, 0, 0, 2, 2, 2], codes: &[1, 254] }),
            missing_go_to_left: Some(&[true, false, true, false, false]),
            ..arrays()
        }
    }
    const LEVELS: [i8; 5] = [1, 0, 4, 0, 0];
    const MISSING: [i8; 5] = [1, 0, 5, 0, 0];

    #[test]
    fn a_tree_of_complete_rows_refuses_gaps_in_the_columns_it_uses() {
        for (kind, levels) in [(&LEVELS, true), (&MISSING, false)] {
            let arrays = special_arrays(kind);
            let arrays = if levels { arrays } else { TreeArrays { levels: None, ..arrays } };
            let tree = ClusterTree::new(arrays, 3).unwrap();
            let strict = tree.of_complete_rows();
            let rows = [0.0, 1.0, f64::NAN, 1.0, 1.0, 2.0];
            assert_eq!(strict.apply_rows(&rows, 3).unwrap(), tree.apply_rows(&rows, 3).unwrap());
            let gap = [0.0, f64::NAN, 1.0];
            assert!(tree.apply_rows(&gap, 3).unwrap().is_some());
            assert_eq!(strict.apply_rows(&gap, 3).unwrap(), None);
        }
    }

    #[test]
    fn broken_levels_and_directions_are_refused() {
        let levels = |indptr, codes| Some(LevelArrays { indptr, codes });
        let good = special_arrays(&LEVELS);
        let missing = TreeArrays { levels: None, ..special_arrays(&MISSING) };
        assert!(ClusterTree::new(good, 2).is_ok() && ClusterTree::new(missing, 2).is_ok());
        let right = Some(&[true, false, false, false, false][..]);
        let cases: Vec<(TreeArrays<'_>, &str)> = vec![
            (TreeArrays { levels: None, ..good }, "node 2 tests levels but has none"),
            (TreeArrays { levels: levels(&[0, 0, 2], &[1, 2]), ..good }, "has 3 entries"),
            (TreeArrays { levels: levels(&[0, 0, 0, 2, 1, 2], &[1, 2]), ..good }, "rise from 0"),
            (TreeArrays { levels: levels(&[0, 0, 0, 2, 2, 2], &[2, 2]), ..good }, "ascending"),
            (TreeArrays { levels: levels(&[0, 0, 0, 1, 1, 1], &[255]), ..good }, "level 255"),
            (TreeArrays { levels: levels(&[0, 0, 0, 1, 1, 1], &[-1]), ..good }, "level -1"),
            (TreeArrays { levels: levels(&[0, 0, 0, 1, 2, 2], &[1, 2]), ..good }, "node 3 has l"),
            (TreeArrays { missing_go_to_left: None, ..good }, "has no missing_go_to_left"),
            (TreeArrays { missing_go_to_left: None, ..missing }, "has no missing_go_to_left"),
            (TreeArrays { missing_go_to_left: Some(&[true]), ..good }, "has 1 entries"),
            (TreeArrays { missing_go_to_left: right, ..missing }, "sends its missing cells right"),
        ];
        for (arrays, expected) in cases {
            let message = ClusterTree::new(arrays, 2).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let sides = Some(&[false; 5][..]);
        let oblique = TreeArrays { oblique: Some(runs()), ..oblique_arrays() };
        let oblique = TreeArrays { missing_go_to_left: sides, ..oblique };
        let message = ClusterTree::new(oblique, 4).unwrap_err().to_string();
        assert!(message.contains("node 0 is oblique, which takes no missing"), "{message}");
    }

    #[test]
    fn sparse_rows_take_the_way_of_full_ones() {
        let x = array![[1.0, 1.5, 0.0], [0.0, 0.0, -2.0], [0.0, 2.5, -2.0], [0.0, 0.0, 0.0]];
        // The last row that stores anything does so out of order and in two parts.
        let (indptr, indices) = ([0, 2, 3, 6, 6], [0, 1, 2, 2, 1, 2]);
        let sparse = |values: &'static [f64], n_features: usize| {
            Csr::from_i64(&indptr, &indices, values, n_features).unwrap()
        };
        let values = &[1.0, 1.5, -2.0, -1.5, 2.5, -0.5];
        let oblique = TreeArrays { oblique: Some(runs()), ..oblique_arrays() };
        for arrays in [oblique, arrays()] {
            let tree = ClusterTree::new(arrays, 3).unwrap();
            let leaves = tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap().unwrap();
            assert_eq!(tree.apply_sparse(&sparse(values, 3)).unwrap(), Some(leaves));
            let broken = &[1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0];
            assert_eq!(tree.apply_sparse(&sparse(broken, 3)).unwrap(), None);
            let narrow = Csr::from_i64(&[0], &[], &[], 1).unwrap();
            let message = tree.apply_sparse(&narrow).unwrap_err().to_string();
            assert!(message.contains("the table has 1 columns"), "{message}");
        }
    }

    /// Tables whose columns are in place, copied, of other types, and used or not, against C-ordered rows.
    #[test]
    fn all_layouts_and_types_take_the_same_way() {
        let tree = ClusterTree::new(arrays(), 4).unwrap();
        for n in [1, 9, 500, 20_000] {
            let x = ndarray::Array2::from_shape_fn((n, 4), |(i, j)| ((i * 7 + j) % 5) as f64 / 2.0);
            let expected = tree.apply_rows(x.as_slice().unwrap(), 4).unwrap();
            let columns = x.t().as_standard_layout().reversed_axes().to_owned();
            let (single, whole) = (columns.mapv(|x| x as f32), columns.mapv(|x| x as i8));
            let gaps = ndarray::concatenate![ndarray::Axis(1), x, x];
            let gaps = gaps.slice(ndarray::s![.., ..4]);
            let mixed: Vec<crate::table::Column<'_>> = vec![
                columns.column(0).into(),
                single.column(1).into(),
                whole.column(2).into(),
                single.column(3).into(),
            ];
            for table in [
                Table::from_matrix(columns.view()).unwrap(),
                Table::from_matrix(single.view()).unwrap(),
                Table::from_matrix(gaps).unwrap(),
                Table::new(mixed).unwrap(),
            ] {
                assert_eq!(tree.apply(&table).unwrap(), expected, "{n} rows");
            }
            // Cells of columns that the tree does not use are not read.
            for column in 0..4 {
                let mut broken = columns.clone();
                broken[[n - 1, column]] = f64::NAN;
                let single = broken.mapv(|x| x as f32);
                let is_used = tree.routes.used.contains(&column);
                let expected = if is_used { None } else { expected.clone() };
                let table = Table::from_matrix(broken.view()).unwrap();
                assert_eq!(tree.apply(&table).unwrap(), expected);
                let table = Table::from_matrix(single.view()).unwrap();
                assert_eq!(tree.apply(&table).unwrap(), expected);
            }
        }
    }

    #[test]
    fn arrays_of_tests_make_the_same_tree() {
        let with_terms = TreeArrays { oblique: Some(runs()), ..oblique_arrays() };
        let missing = TreeArrays { levels: None, ..special_arrays(&MISSING) };
        for arrays in [arrays(), with_terms, special_arrays(&LEVELS), missing] {
            let tree = ClusterTree::new(arrays, 3).unwrap();
            let nodes = tree.tests().iter().enumerate();
            let own = TestArrays::of(nodes.map(|(id, test)| (test, tree.children(id))));
            let again = TreeArrays {
                kind: &own.kind,
                feature: &own.feature,
                threshold: &own.threshold,
                lower: &own.lower,
                upper: &own.upper,
                children_left: &own.children_left,
                children_right: &own.children_right,
                levels: arrays
                    .levels
                    .map(|_| LevelArrays { indptr: &own.levels_indptr, codes: &own.levels_codes }),
                missing_go_to_left: arrays.missing_go_to_left,
                oblique: arrays.oblique.map(|_| ObliqueArrays {
                    indptr: &own.oblique.indptr,
                    indices: &own.oblique.indices,
                    weights: &own.oblique.weights,
                    bias: &own.oblique.bias,
                }),
            };
            let again = ClusterTree::new(again, 3).unwrap();
            assert_eq!((again.tests, again.children), (tree.tests, tree.children));
        }
    }

    #[test]
    fn send_and_sync() {
        fn both<T: Send + Sync>() {}
        both::<ClusterTree>();
    }
}
