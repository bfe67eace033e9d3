//! The tree of the search with its rows: every subtree is one range of nodes and one range of rows.
//!
//! Nodes are in preorder (a node, its left subtree, its right subtree), and the rows are ordered by leaf. To replace a
//! subtree is then to replace two ranges, and a candidate of the search holds the subtree that it changes and nothing
//! else. O(rows of the subtree), and O(nodes of the tree) for the sizes above it.

use std::sync::Arc;

use super::ranks::{RankCut, Ranks};

/// A node.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The test; none at leaves.
    pub cut: Option<RankCut>,
    /// Number of nodes of the subtree, this one included.
    pub size: usize,
    /// First of its rows in [`Segments::rows`].
    pub start: usize,
    /// Number of its rows.
    pub len: usize,
    /// Label of a leaf.
    pub label: u32,
    /// What the objective adds up over a leaf's rows; none until it is needed.
    pub sums: Option<Arc<[f64]>>,
}

impl Node {
    /// A leaf of the rows `[start, start + len)`.
    pub fn leaf(start: usize, len: usize, label: u32) -> Self {
        Node { cut: None, size: 1, start, len, label, sums: None }
    }

    /// Number of leaves of the subtree.
    pub fn n_leaves(&self) -> usize {
        self.size.div_ceil(2)
    }
}

/// A tree, or a subtree, with its rows.
#[derive(Debug, Clone)]
pub(super) struct Segments {
    /// In preorder, the root first.
    pub nodes: Vec<Node>,
    /// Row numbers, by leaf.
    pub rows: Vec<u32>,
}

impl Segments {
    /// The children of an inner node.
    pub fn children(&self, id: usize) -> [usize; 2] {
        [id + 1, id + 1 + self.nodes[id + 1].size]
    }

    /// The rows of a node.
    pub fn rows_of(&self, id: usize) -> &[u32] {
        &self.rows[self.nodes[id].start..][..self.nodes[id].len]
    }

    /// Number of leaves.
    pub fn n_leaves(&self) -> usize {
        self.nodes[0].n_leaves()
    }

    /// The leaves, left to right.
    pub fn leaves(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.cut.is_none())
    }

    /// The leaves, left to right.
    pub fn leaves_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.iter_mut().filter(|node| node.cut.is_none())
    }

    /// Forgets what the leaves' rows add up to.
    pub fn forget_sums(&mut self) {
        self.leaves_mut().for_each(|leaf| leaf.sums = None);
    }

    /// The nodes above a node, from the root down.
    pub fn above(&self, id: usize) -> impl Iterator<Item = usize> {
        (0..id).filter(move |&other| other + self.nodes[other].size > id)
    }

    /// A copy of the subtree under a node.
    pub fn subtree(&self, id: usize) -> Segments {
        let start = self.nodes[id].start;
        let mut nodes = self.nodes[id..id + self.nodes[id].size].to_vec();
        nodes.iter_mut().for_each(|node| node.start -= start);
        Segments { nodes, rows: self.rows_of(id).to_vec() }
    }

    /// Puts another subtree with the same rows, in any order, in the place of the one under a node.
    pub fn replace(&mut self, id: usize, mut new: Segments) {
        let Node { size, start, .. } = self.nodes[id];
        self.rows[start..][..new.rows.len()].copy_from_slice(&new.rows);
        new.nodes.iter_mut().for_each(|node| node.start += start);
        let n_new = new.nodes.len();
        for other in self.above(id).collect::<Vec<_>>() {
            self.nodes[other].size = self.nodes[other].size + n_new - size;
        }
        self.nodes.splice(id..id + size, new.nodes);
    }

    /// Makes a node a leaf.
    pub fn collapse(&mut self, id: usize, label: u32) {
        let rows = self.rows_of(id).to_vec();
        let nodes = vec![Node::leaf(0, rows.len(), label)];
        self.replace(id, Segments { nodes, rows });
    }

    /// Exchanges the two children of a node; rows stay until [`Segments::route`].
    pub fn exchange(&mut self, id: usize) {
        let size = self.nodes[id].size;
        let left = self.nodes[id + 1].size;
        self.nodes[id + 1..id + size].rotate_left(left);
    }

    /// Puts the child of a side (0 left, 1 right) in the place of its parent; rows stay until [`Segments::route`].
    pub fn promote(&mut self, id: usize, side: usize) {
        let Node { size, start, len, .. } = self.nodes[id];
        let child = self.children(id)[side];
        let kept: Vec<Node> = self.nodes[child..child + self.nodes[child].size].to_vec();
        for other in self.above(id).collect::<Vec<_>>() {
            self.nodes[other].size = self.nodes[other].size + kept.len() - size;
        }
        self.nodes.splice(id..id + size, kept);
        (self.nodes[id].start, self.nodes[id].len) = (start, len);
    }

    /// Sends the rows of a node down its subtree anew. Leaves that get no row are removed, with their parents.
    pub fn route(&mut self, id: usize, ranks: &Ranks) {
        let mut at = id;
        let mut right = Vec::new();
        while at < id + self.nodes[id].size {
            let Node { cut, start, len, .. } = self.nodes[at];
            let Some(cut) = cut else {
                self.nodes[at].sums = None;
                at += 1;
                continue;
            };
            let n_left = partition(&mut self.rows[start..][..len], &mut right, |row| {
                ranks.goes_left(&cut, row)
            });
            if n_left == 0 || n_left == len {
                self.promote(at, usize::from(n_left == 0));
                continue;
            }
            let [a, b] = self.children(at);
            (self.nodes[a].start, self.nodes[a].len) = (start, n_left);
            (self.nodes[b].start, self.nodes[b].len) = (start + n_left, len - n_left);
            at += 1;
        }
    }

    /// Makes one leaf of sibling leaves of one label, until there are none. The objective stays.
    pub fn merge_siblings(&mut self) {
        for id in (0..self.nodes.len()).rev() {
            if self.nodes[id].size == 3 && self.nodes[id + 1].label == self.nodes[id + 2].label {
                self.collapse(id, self.nodes[id + 1].label);
            }
        }
    }
}

/// Moves the rows that go left to the front, both sides in their order; returns their number. `right` is room.
pub(super) fn partition(
    rows: &mut [u32],
    right: &mut Vec<u32>,
    goes_left: impl Fn(u32) -> bool,
) -> usize {
    right.clear();
    right.resize(rows.len(), 0);
    let (mut n_left, mut n_right) = (0, 0);
    for i in 0..rows.len() {
        let row = rows[i];
        let left = goes_left(row);
        // Written to both sides, counted on one: no branch to mispredict.
        (rows[n_left], right[n_right]) = (row, row);
        n_left += usize::from(left);
        n_right += usize::from(!left);
    }
    rows[n_left..].copy_from_slice(&right[..n_right]);
    n_left
}
