//! The tree every method ends in: node tests, structure checks and routing.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::table::{TILE, Table, Value, all_finite};

/// Rows routed side by side.
const TOGETHER: usize = 8;

/// What a node asks of a row. "Left" is the side where the test holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Test {
    /// No test: a leaf.
    Leaf,
    /// `x[feature] <= threshold` goes left.
    Threshold {
        /// The column.
        feature: usize,
        /// The largest value that goes left.
        threshold: f64,
    },
    /// `lower <= x[feature] <= upper` goes left.
    Interval {
        /// The column.
        feature: usize,
        /// The smallest value that goes left.
        lower: f64,
        /// The largest value that goes left.
        upper: f64,
    },
}

/// A tree's arrays as they come from outside, one entry per node.
#[derive(Debug, Clone, Copy)]
pub struct TreeArrays<'a> {
    /// 0 leaf, 1 threshold, 2 interval.
    pub kind: &'a [i8],
    /// Column of the test.
    pub feature: &'a [i64],
    /// Threshold of threshold tests.
    pub threshold: &'a [f64],
    /// Lower end of interval tests.
    pub lower: &'a [f64],
    /// Upper end of interval tests.
    pub upper: &'a [f64],
    /// Left child, -1 at leaves.
    pub children_left: &'a [i64],
    /// Right child, -1 at leaves.
    pub children_right: &'a [i64],
}

/// A node ready for routing; `feature` counts the columns the tree uses, not the table's.
#[derive(Debug, Clone, Copy)]
struct Node {
    lower: f64,
    upper: f64,
    feature: u32,
    left: u32,
    right: u32,
}

/// A checked tree, ready to route rows.
#[derive(Debug, Clone)]
pub struct ClusterTree {
    nodes: Vec<Node>,
    used_features: Vec<usize>,
    has_intervals: bool,
}

impl ClusterTree {
    /// Checks the arrays and builds the tree.
    ///
    /// # Errors
    /// [`Error::Shape`] if the arrays differ in length; [`Error::Tree`] if they are not one binary tree whose
    /// children come after their parents, or if a test is not finite or names a column outside `[0, n_features)`.
    pub fn new(arrays: TreeArrays<'_>, n_features: usize) -> Result<Self> {
        let n = arrays.kind.len();
        for (what, got) in [
            ("feature", arrays.feature.len()),
            ("threshold", arrays.threshold.len()),
            ("lower", arrays.lower.len()),
            ("upper", arrays.upper.len()),
            ("children_left", arrays.children_left.len()),
            ("children_right", arrays.children_right.len()),
        ] {
            Error::check_len(what, got, n, "entries")?;
        }
        if n == 0 || n >= u32::MAX as usize {
            return Err(Error::Tree(format!("it has {n} nodes.")));
        }
        let tests =
            (0..n).map(|i| node_test(&arrays, i, n_features)).collect::<Result<Vec<_>>>()?;
        let mut has_parent = vec![false; n];
        has_parent[0] = true;
        for (i, test) in tests.iter().enumerate() {
            let children = [arrays.children_left[i], arrays.children_right[i]];
            if *test == Test::Leaf {
                if children != [-1, -1] {
                    return Err(Error::Tree(format!("node {i} is a leaf but has children.")));
                }
                continue;
            }
            for child in children {
                let inside = usize::try_from(child).ok().filter(|&c| i < c && c < n);
                match inside {
                    Some(c) if !has_parent[c] => has_parent[c] = true,
                    Some(c) => return Err(Error::Tree(format!("node {c} has two parents."))),
                    None => {
                        return Err(Error::Tree(format!(
                            "child {child} of node {i} is not in the range [{}, {n}).",
                            i + 1
                        )));
                    }
                }
            }
        }
        if let Some(orphan) = has_parent.iter().position(|&has| !has) {
            return Err(Error::Tree(format!("node {orphan} has no parent.")));
        }
        Ok(Self::from_tests(&tests, |i| {
            (arrays.children_left[i] as u32, arrays.children_right[i] as u32)
        }))
    }

    fn from_tests(tests: &[Test], children: impl Fn(usize) -> (u32, u32)) -> Self {
        let mut used_features: Vec<usize> = tests.iter().filter_map(Test::feature).collect();
        used_features.sort_unstable();
        used_features.dedup();
        let nodes = tests
            .iter()
            .enumerate()
            .map(|(i, test)| {
                // A leaf leads to itself, so a row that has arrived stays.
                let this = i as u32;
                let (left, right) = if *test == Test::Leaf { (this, this) } else { children(i) };
                let (lower, upper) = match *test {
                    Test::Leaf => (f64::NEG_INFINITY, f64::INFINITY),
                    Test::Threshold { threshold, .. } => (f64::NEG_INFINITY, threshold),
                    Test::Interval { lower, upper, .. } => (lower, upper),
                };
                let slot = test.feature().and_then(|f| used_features.binary_search(&f).ok());
                Node { lower, upper, feature: slot.unwrap_or(0) as u32, left, right }
            })
            .collect();
        let has_intervals = tests.iter().any(|test| matches!(test, Test::Interval { .. }));
        ClusterTree { nodes, used_features, has_intervals }
    }

    /// The leaf each row falls into, as a node id.
    ///
    /// # Errors
    /// [`Error::Tree`] if the tree uses a column the table does not have.
    pub fn apply(&self, table: &Table<'_>) -> Result<Vec<i64>> {
        self.check_width(table.n_features())?;
        let mut leaves = vec![0i64; table.n_samples()];
        // Only the columns the tree uses are read, a tile of rows at a time, one column beside the other.
        let tile = (64 * TILE / self.used_features.len().max(1)).clamp(16, TILE);
        leaves.par_chunks_mut(tile).enumerate().for_each_init(
            || vec![0.0; tile * self.used_features.len().max(1)],
            |cells, (block, leaves)| {
                for (slot, &feature) in self.used_features.iter().enumerate() {
                    let out = &mut cells[slot * tile..][..leaves.len()];
                    table.column(feature).read(block * tile, out);
                }
                if self.has_intervals {
                    self.route_tile::<true>(cells, tile, leaves);
                } else {
                    self.route_tile::<false>(cells, tile, leaves);
                }
            },
        );
        Ok(leaves)
    }

    /// As [`ClusterTree::apply`] for the rows of a C-ordered matrix, in one pass that also looks for NaN and infinite
    /// cells: none if there are any.
    ///
    /// # Errors
    /// [`Error::Tree`] if the tree uses a column the matrix does not have.
    pub fn apply_rows<T: Value>(&self, cells: &[T], n_features: usize) -> Result<Option<Vec<i64>>> {
        self.check_width(n_features)?;
        // Nodes that name the matrix' own columns.
        let mut tree = self.clone();
        for node in &mut tree.nodes {
            let slot = node.feature as usize;
            node.feature = self.used_features.get(slot).map_or(0, |&feature| feature as u32);
        }
        let width = n_features.max(1);
        let mut leaves = vec![0i64; cells.len() / width];
        let route = |(rows, leaves): (&[T], &mut [i64])| {
            for (rows, leaves) in rows.chunks(TOGETHER * width).zip(leaves.chunks_mut(TOGETHER)) {
                if !all_finite(rows) {
                    return false;
                }
                let cell = |feature: usize, i: usize| rows[i * width + feature].to_f64();
                let at = if tree.has_intervals {
                    tree.route::<true>(cell, leaves.len())
                } else {
                    tree.route::<false>(cell, leaves.len())
                };
                for (leaf, at) in leaves.iter_mut().zip(at) {
                    *leaf = i64::from(at);
                }
            }
            true
        };
        let finite =
            cells.par_chunks(TILE * width).zip(leaves.par_chunks_mut(TILE)).map(route).all(|ok| ok);
        Ok(finite.then_some(leaves))
    }

    fn check_width(&self, n_features: usize) -> Result<()> {
        match self.used_features.last() {
            Some(&feature) if feature >= n_features => Err(Error::Tree(format!(
                "it uses column {feature}, but the table has {n_features} columns."
            ))),
            _ => Ok(()),
        }
    }

    fn route_tile<const INTERVALS: bool>(&self, cells: &[f64], tile: usize, leaves: &mut [i64]) {
        for (group, leaves) in leaves.chunks_mut(TOGETHER).enumerate() {
            let first = group * TOGETHER;
            let cell = |slot: usize, i: usize| cells[slot * tile + first + i];
            let at = self.route::<INTERVALS>(cell, leaves.len());
            for (leaf, at) in leaves.iter_mut().zip(at) {
                *leaf = i64::from(at);
            }
        }
    }

    /// The one place that decides where rows go. `cell(slot, i)` reads a used column of the i-th of at most
    /// [`TOGETHER`] rows. They go down side by side: the steps of one row wait for each other, those of several
    /// rows do not. A row that has arrived stays, since a leaf leads to itself.
    #[inline(always)]
    fn route<const INTERVALS: bool>(
        &self,
        cell: impl Fn(usize, usize) -> f64,
        n_rows: usize,
    ) -> [u32; TOGETHER] {
        let mut at = [0u32; TOGETHER];
        loop {
            let mut moved = false;
            for (i, at) in at.iter_mut().enumerate().take(n_rows) {
                let node = &self.nodes[*at as usize];
                let x = cell(node.feature as usize, i);
                let inside = (x <= node.upper) & (!INTERVALS || node.lower <= x);
                let next = if inside { node.left } else { node.right };
                moved |= next != *at;
                *at = next;
            }
            if !moved {
                return at;
            }
        }
    }
}

impl Test {
    /// The column the test reads.
    pub fn feature(&self) -> Option<usize> {
        match *self {
            Test::Leaf => None,
            Test::Threshold { feature, .. } | Test::Interval { feature, .. } => Some(feature),
        }
    }
}

fn node_test(arrays: &TreeArrays<'_>, i: usize, n_features: usize) -> Result<Test> {
    if arrays.kind[i] == 0 {
        return Ok(Test::Leaf);
    }
    let feature = usize::try_from(arrays.feature[i]).ok().filter(|&f| f < n_features);
    let Some(feature) = feature else {
        return Err(Error::Tree(format!(
            "node {i} tests column {}, which is not in the range [0, {n_features}).",
            arrays.feature[i]
        )));
    };
    match arrays.kind[i] {
        1 if arrays.threshold[i].is_finite() => {
            Ok(Test::Threshold { feature, threshold: arrays.threshold[i] })
        }
        1 => Err(Error::Tree(format!("the threshold of node {i} is {}.", arrays.threshold[i]))),
        2 => {
            let (lower, upper) = (arrays.lower[i], arrays.upper[i]);
            if lower.is_finite() && upper.is_finite() && lower <= upper {
                Ok(Test::Interval { feature, lower, upper })
            } else {
                Err(Error::Tree(format!("the interval of node {i} is [{lower}, {upper}].")))
            }
        }
        kind => Err(Error::Tree(format!("node {i} is of unknown kind {kind}."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        }
    }

    #[test]
    fn values_equal_to_an_end_go_left() {
        let tree = ClusterTree::new(arrays(), 2).unwrap();
        let x = array![[0.5, 9.0], [0.6, 1.0], [0.6, 2.0], [0.6, 2.1], [0.6, 0.9]];
        let leaves = tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap();
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

    #[test]
    fn send_and_sync() {
        fn both<T: Send + Sync>() {}
        both::<ClusterTree>();
    }
}
