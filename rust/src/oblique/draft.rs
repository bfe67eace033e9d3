//! The tree of an oblique fit while it changes: tests move, subtrees go, leaves are split.
//!
//! Its tests are those of every tree ([`Test`]); a fitted [`ClusterTree`] can be what a fit starts from
//! ([`DraftTree::from_tree`]), and [`DraftTree::arrays`] are those of the fitted tree.

use crate::error::{Error, Result};
use crate::tree::{ClusterTree, Plane, Test, TestArrays};

/// What a leaf predicts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Leaf {
    /// The label.
    pub label: u32,
    /// Shares of the labels; empty where only the label counts.
    pub shares: Vec<f64>,
}

/// A node of a [`DraftTree`].
#[derive(Debug, Clone, PartialEq)]
pub enum DraftNode {
    /// A leaf.
    Leaf(Leaf),
    /// A test and its two children, anywhere in [`DraftTree::nodes`].
    Split {
        /// The test.
        test: Test,
        /// The left child.
        left: usize,
        /// The right child.
        right: usize,
        /// Whether missing cells go left; false where no row has any.
        missing_left: bool,
    },
}

impl DraftNode {
    /// A test of complete cells.
    pub fn split(test: Test, left: usize, right: usize) -> Self {
        DraftNode::Split { test, left, right, missing_left: false }
    }
}

/// A tree while it changes; node 0 is the root. Nodes that are no longer reached remain until [`DraftTree::compact`].
#[derive(Debug, Clone, PartialEq)]
pub struct DraftTree {
    /// The nodes.
    pub nodes: Vec<DraftNode>,
}

impl DraftTree {
    /// One leaf.
    pub fn leaf(label: u32) -> Self {
        DraftTree { nodes: vec![DraftNode::Leaf(Leaf { label, shares: vec![] })] }
    }

    /// The nodes that are reached, level by level, from left to right.
    pub fn levels(&self) -> Vec<Vec<usize>> {
        let mut levels = vec![vec![0]];
        loop {
            let mut next = vec![];
            for &id in levels.last().into_iter().flatten() {
                if let DraftNode::Split { left, right, .. } = self.nodes[id] {
                    next.extend([left, right]);
                }
            }
            if next.is_empty() {
                return levels;
            }
            levels.push(next);
        }
    }

    /// Without the nodes that are not reached; the others are numbered level by level, so that siblings follow each
    /// other.
    pub fn compact(&self) -> DraftTree {
        let order = self.levels().concat();
        let mut number = vec![0; self.nodes.len()];
        for (new, &old) in order.iter().enumerate() {
            number[old] = new;
        }
        let renumber = |&old: &usize| match &self.nodes[old] {
            DraftNode::Split { test, left, right, missing_left } => DraftNode::Split {
                test: test.clone(),
                left: number[*left],
                right: number[*right],
                missing_left: *missing_left,
            },
            leaf => leaf.clone(),
        };
        DraftTree { nodes: order.iter().map(renumber).collect() }
    }

    /// The tests of the subtree under a node.
    pub fn tests(&self, id: usize) -> Vec<&Test> {
        let (mut tests, mut stack) = (vec![], vec![id]);
        while let Some(id) = stack.pop() {
            if let DraftNode::Split { test, left, right, .. } = &self.nodes[id] {
                tests.push(test);
                stack.extend([*right, *left]);
            }
        }
        tests
    }

    /// Depth of the deepest leaf.
    pub fn max_depth(&self) -> usize {
        self.levels().len() - 1
    }

    /// Number of leaves.
    pub fn n_leaves(&self) -> usize {
        self.tests(0).len() + 1
    }

    /// Number of non-zero weights; a threshold test has one.
    pub fn n_weights(&self) -> usize {
        self.tests(0).into_iter().map(Test::n_terms).sum()
    }

    /// A fitted tree to start from: `clusters` holds the label of each leaf, by node id. Unless `axis`, threshold tests
    /// become oblique ones of a single weight that send every row the same way.
    ///
    /// # Errors
    /// [`Error::Tree`] if a leaf has no label, or a test is neither a threshold nor, without `axis`, oblique.
    pub fn from_tree(tree: &ClusterTree, clusters: &[i64], axis: bool) -> Result<DraftTree> {
        DraftTree::from_tests(tree, clusters, |test| match test {
            Test::Threshold { feature, threshold } if !axis => {
                // x <= threshold is x < the next double.
                let weights = vec![(*feature as u32, 1.0)];
                Some(Test::Oblique(Plane { weights, bias: -threshold.next_up() }))
            }
            Test::Threshold { .. } => Some(test.clone()),
            Test::Oblique(_) if !axis => Some(test.clone()),
            _ => None,
        })
    }

    /// As [`DraftTree::from_tree`], the tests being thresholds, levels or missing cells.
    ///
    /// # Errors
    /// [`Error::Tree`] if a leaf has no label or a test is of another form.
    pub fn of_columns(tree: &ClusterTree, clusters: &[i64]) -> Result<DraftTree> {
        let is_of_column = |test: &Test| {
            matches!(test, Test::Threshold { .. } | Test::Levels { .. } | Test::Missing { .. })
        };
        DraftTree::from_tests(tree, clusters, |test| is_of_column(test).then(|| test.clone()))
    }

    /// A fitted tree whose tests become what `test` says.
    fn from_tests(
        tree: &ClusterTree,
        clusters: &[i64],
        test: impl Fn(&Test) -> Option<Test>,
    ) -> Result<DraftTree> {
        let bad = |id: usize| Error::Tree(format!("node {id} cannot be what a fit starts from."));
        let node = |(id, old): (usize, &Test)| -> Result<DraftNode> {
            if *old == Test::Leaf {
                let label = clusters.get(id).and_then(|&label| u32::try_from(label).ok());
                let label = label.ok_or_else(|| bad(id))?;
                return Ok(DraftNode::Leaf(Leaf { label, shares: vec![] }));
            }
            let test = test(old).ok_or_else(|| bad(id))?;
            let [left, right] = tree.children(id);
            let missing_left = tree.missing_go_to_left().is_some_and(|goes_left| goes_left[id]);
            Ok(DraftNode::Split { test, left, right, missing_left })
        };
        Ok(DraftTree { nodes: tree.tests().iter().enumerate().map(node).collect::<Result<_>>()? })
    }

    /// The arrays of a tree without unreached nodes ([`DraftTree::compact`]).
    pub fn arrays(&self) -> TestArrays {
        TestArrays::of(self.nodes.iter().map(|node| match node {
            DraftNode::Leaf(_) => (&Test::Leaf, [0; 2]),
            DraftNode::Split { test, left, right, .. } => (test, [*left, *right]),
        }))
    }

    /// Whether missing cells go left, by node id; false at leaves.
    pub fn missing_left(&self) -> Vec<bool> {
        let goes_left =
            |node: &DraftNode| matches!(node, DraftNode::Split { missing_left: true, .. });
        self.nodes.iter().map(goes_left).collect()
    }

    /// The label of each leaf, by node id; -1 at inner nodes.
    pub fn clusters(&self) -> Vec<i64> {
        let cluster = |node: &DraftNode| match node {
            DraftNode::Leaf(leaf) => i64::from(leaf.label),
            DraftNode::Split { .. } => -1,
        };
        self.nodes.iter().map(cluster).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;
    use crate::table::Table;
    use crate::tree::TreeArrays;
    use ndarray::array;

    #[test]
    fn a_given_tree_sends_rows_the_same_way() {
        let threshold = [0.3, -2.0, 1e300, -2.0, -2.0];
        let nan = [f64::NAN; 5];
        let arrays = TreeArrays {
            kind: &[1, 0, 1, 0, 0],
            feature: &[1, -2, 0, -2, -2],
            threshold: &threshold,
            lower: &nan,
            upper: &nan,
            children_left: &[1, -1, 3, -1, -1],
            children_right: &[2, -1, 4, -1, -1],
            levels: None,
            missing_go_to_left: None,
            oblique: None,
        };
        let tree = ClusterTree::new(arrays, 2).unwrap();
        let clusters = [-1, 2, -1, 0, 1];
        let oblique = DraftTree::from_tree(&tree, &clusters, false).unwrap();
        let axis = DraftTree::from_tree(&tree, &clusters, true).unwrap();
        assert_eq!(oblique.clusters(), clusters);
        assert_eq!((axis.n_leaves(), axis.max_depth(), axis.n_weights()), (3, 2, 2));
        let x = array![[0.0, 0.3], [1.0, 0.3f64.next_up()], [1e300, 0.0], [f64::MAX, 1.0]];
        let table = Table::from_matrix(x.view()).unwrap();
        let (a, b) = (oblique.tests(0), axis.tests(0));
        for (a, b) in a.into_iter().zip(b) {
            assert!(matches!(a, Test::Oblique(_)) && matches!(b, Test::Threshold { .. }));
            let ids = [0, 1, 2, 3];
            assert_eq!(
                a.sides(Rows::from(&table), &ids, false),
                b.sides(Rows::from(&table), &ids, false)
            );
        }
        assert_eq!(axis.arrays().kind, arrays.kind);
        assert_eq!(axis.arrays().children_right, arrays.children_right);
        assert_eq!(oblique.arrays().oblique.bias[0], -0.3f64.next_up());
        // Leaves need labels; intervals and, with axis, oblique tests have no place.
        assert!(DraftTree::from_tree(&tree, &[-1, -1, -1, 0, 1], true).is_err());
        assert!(DraftTree::from_tree(&tree, &clusters[..4], true).is_err());
        let intervals =
            TreeArrays { kind: &[2, 0, 1, 0, 0], lower: &[0.0; 5], upper: &[1.0; 5], ..arrays };
        let tree = ClusterTree::new(intervals, 2).unwrap();
        assert!(DraftTree::from_tree(&tree, &clusters, false).is_err());
    }
}
