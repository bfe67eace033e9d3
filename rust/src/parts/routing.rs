//! The tree as questions send it: tests and children, which parts route their rows by.

use super::bytes::{Reader, Writer};
use crate::error::Result;
use crate::tree::{ClusterTree, LevelSet, Test, TestArrays, TreeArrays};

/// A node of a tree that questions send; children come after it.
#[derive(Debug, Clone, PartialEq)]
pub struct TestNode {
    /// The test: not an oblique one.
    pub test: Test,
    /// Left child, the right one follows; 0 at leaves.
    pub left: usize,
    /// Whether missing cells go left; false at leaves.
    pub missing_left: bool,
}

impl TestNode {
    /// A node without a test.
    pub fn leaf() -> Self {
        TestNode { test: Test::Leaf, left: 0, missing_left: false }
    }

    /// Whether the node is a leaf.
    pub fn is_leaf(&self) -> bool {
        self.test == Test::Leaf
    }
}

/// The tree of some nodes, checked and ready to route rows of `n_features` columns.
///
/// # Errors
/// [`Error::Tree`](crate::error::Error::Tree) if the nodes are not one tree.
pub(super) fn tree_of(nodes: &[TestNode], n_features: usize) -> Result<ClusterTree> {
    let children = |node: &TestNode| [node.left, node.left + 1];
    let tests = TestArrays::of(nodes.iter().map(|node| (&node.test, children(node))));
    let missing_left: Vec<bool> = nodes.iter().map(|node| node.missing_left).collect();
    let arrays = TreeArrays { missing_go_to_left: Some(&missing_left), ..tests.view() };
    ClusterTree::new(arrays, n_features)
}

pub(super) fn write_nodes(writer: &mut Writer, nodes: &[TestNode]) {
    writer.len(nodes.len());
    for node in nodes {
        writer.len(node.left);
        writer.u8(node.missing_left.into());
        write_test(writer, &node.test);
    }
}

/// Reads a tree for rows of so many columns, and checks it.
///
/// # Errors
/// [`Error::Value`](crate::error::Error::Value) if the bytes are no tree.
pub(super) fn read_nodes(reader: &mut Reader<'_>, n_features: usize) -> Result<Vec<TestNode>> {
    let n = reader.len(10)?;
    let mut nodes = vec![];
    for _ in 0..n {
        let (left, missing_left) = (reader.index()?, reader.flag()?);
        let test = read_test(reader)?;
        if (test == Test::Leaf) != (left == 0) {
            return Err(reader.broken());
        }
        nodes.push(TestNode { test, left, missing_left });
    }
    tree_of(&nodes, n_features).map_err(|_| reader.broken())?;
    Ok(nodes)
}

/// Appends a test; there are no oblique ones.
pub(super) fn write_test(writer: &mut Writer, test: &Test) {
    let (kind, numbers) = match test {
        Test::Leaf | Test::Oblique(_) => return writer.u8(0),
        Test::Threshold { threshold, .. } => (1, vec![*threshold]),
        Test::Interval { lower, upper, .. } => (2, vec![*lower, *upper]),
        Test::Levels { .. } => (4, vec![]),
        Test::Missing { .. } => (5, vec![]),
    };
    writer.u8(kind);
    writer.len(test.feature().unwrap_or(0));
    writer.numbers(&numbers);
    if let Test::Levels { left, .. } = test {
        writer.bytes(&left.codes().collect::<Vec<u8>>());
    }
}

/// Reads what [`write_test`] wrote; whether a tree may have the test is for [`tree_of`] to check.
pub(super) fn read_test(reader: &mut Reader<'_>) -> Result<Test> {
    let kind = reader.u8()?;
    if kind == 0 {
        return Ok(Test::Leaf);
    }
    let feature = reader.index()?;
    match kind {
        1 => Ok(Test::Threshold { feature, threshold: reader.f64()? }),
        2 => Ok(Test::Interval { feature, lower: reader.f64()?, upper: reader.f64()? }),
        4 => {
            let left: LevelSet = reader.bytes()?.iter().copied().collect();
            Ok(Test::Levels { feature, left })
        }
        5 => Ok(Test::Missing { feature }),
        _ => Err(reader.broken()),
    }
}
