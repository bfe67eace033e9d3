//! The tests of a tree as arrays, one entry per node.

use crate::tree::Test;

/// The arrays that describe the tests of a tree, as in `treeclust_rs.tree.ClusterTree`.
pub struct NodeTests {
    /// 0 leaf, 1 threshold, 2 interval, 3 oblique.
    pub kind: Vec<i8>,
    /// Column of the test; -2 at leaves and oblique nodes.
    pub feature: Vec<i64>,
    /// NaN at interval and oblique nodes, -2 at leaves.
    pub threshold: Vec<f64>,
    /// NaN but at interval nodes.
    pub lower: Vec<f64>,
    /// NaN but at interval nodes.
    pub upper: Vec<f64>,
    /// -1 at leaves.
    pub children_left: Vec<i64>,
    /// -1 at leaves.
    pub children_right: Vec<i64>,
}

impl NodeTests {
    /// Returns the arrays of some tests. `left`: ids of the left children, which the right ones follow.
    pub fn of(tests: &[Test], left: &[usize]) -> Self {
        let children = |offset: usize| -> Vec<i64> {
            let child = |(test, &left): (&Test, &usize)| match test {
                Test::Leaf => -1,
                _ => (left + offset) as i64,
            };
            tests.iter().zip(left).map(child).collect()
        };
        let kind = |test: &Test| match test {
            Test::Leaf => 0,
            Test::Threshold { .. } => 1,
            Test::Interval { .. } => 2,
            Test::Oblique { .. } => 3,
        };
        let feature = |test: &Test| test.feature().map_or(-2, |feature| feature as i64);
        let threshold = |test: &Test| match test {
            Test::Leaf => -2.0,
            Test::Threshold { threshold, .. } => *threshold,
            Test::Interval { .. } | Test::Oblique { .. } => f64::NAN,
        };
        let ends = |test: &Test| match test {
            Test::Interval { lower, upper, .. } => (*lower, *upper),
            _ => (f64::NAN, f64::NAN),
        };
        let (lower, upper) = tests.iter().map(ends).unzip();
        NodeTests {
            kind: tests.iter().map(kind).collect(),
            feature: tests.iter().map(feature).collect(),
            threshold: tests.iter().map(threshold).collect(),
            lower,
            upper,
            children_left: children(0),
            children_right: children(1),
        }
    }
}
