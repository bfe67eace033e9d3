//! The tree as it stands, its value and what its rows cost; how a change becomes part of it.

use std::sync::Arc;

use super::objective::{Objective, RowCosts};
use super::ranks::Ranks;
use super::refine::Refine;
use super::regrow::Regrow;
use super::segments::Segments;
use super::sweep::Work;
use crate::grow::Limits;
use crate::parallel::Monitor;

/// What is searched, for whom and within which limits.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    /// The table.
    pub ranks: &'a Ranks,
    /// What is minimised.
    pub objective: &'a dyn Objective,
    /// Limits of the tree.
    pub limits: Limits,
    /// A change refines the nodes above it that have at most so many times its rows.
    pub reach: f64,
    /// Where a request to stop arrives.
    pub monitor: &'a Monitor,
    /// What counts the cells.
    pub work: &'a Work<'a>,
}

/// A tree with its value.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// The tree. All leaves have their sums.
    pub tree: Segments,
    /// The objective.
    pub value: f64,
    /// What rows cost under the labels as they are.
    pub costs: RowCosts,
}

/// Subtrees for some disjoint nodes, the last node first.
pub(super) type Patches = Vec<(usize, Segments)>;

impl<'a> Task<'a> {
    /// Growth of subtrees on given costs.
    pub fn regrow<'c>(&'c self, costs: &'c RowCosts, screens: bool) -> Regrow<'c> {
        let Task { ranks, limits, monitor, work, .. } = *self;
        Regrow { ranks, costs, work, k: self.objective.n_labels(), limits, screens, monitor }
    }

    /// Refinement on given costs.
    pub fn refine<'c>(&'c self, costs: &'c RowCosts, screens: bool) -> Refine<'c> {
        let min_rows = self.limits.min_samples_leaf.max(1);
        let k = self.objective.n_labels();
        Refine {
            ranks: self.ranks,
            costs,
            work: self.work,
            k,
            min_rows,
            keeps_ties: false,
            screens,
        }
    }

    /// Adds up the rows of leaves that have changed.
    pub fn fill(&self, tree: &mut Segments) {
        let rows = &tree.rows;
        let leaves = tree.nodes.iter_mut().filter(|node| node.cut.is_none() && node.sums.is_none());
        for leaf in leaves {
            self.work.add(leaf.len * self.ranks.cells_per_row());
            let sums = self.objective.leaf(&rows[leaf.start..][..leaf.len]);
            leaf.sums = Some(Arc::from(sums));
        }
    }

    /// A tree whose labels are settled, and its value. Siblings of one label become one leaf.
    fn settled(&self, mut tree: Segments) -> (Segments, f64) {
        loop {
            self.fill(&mut tree);
            let (sums, mut labels) = sums_and_labels(tree.leaves());
            let value = self.objective.settle(&sums, &mut labels);
            for (leaf, label) in tree.leaves_mut().zip(labels) {
                leaf.label = label;
            }
            let n_nodes = tree.nodes.len();
            tree.merge_siblings();
            if tree.nodes.len() == n_nodes {
                return (tree, value);
            }
        }
    }

    /// Brings the costs of rows up to date with the tree.
    fn update_costs(&self, state: &mut State) {
        let (sums, labels) = sums_and_labels(state.tree.leaves());
        self.work.add(self.objective.n_samples() * self.ranks.cells_per_row());
        self.objective.update_costs(&sums, &labels, &mut state.costs, self.monitor);
    }

    /// The state of a tree whose leaves have labels.
    pub fn state(&self, tree: Segments) -> State {
        let (tree, value) = self.settled(tree);
        let mut state = State { tree, value, costs: RowCosts::default() };
        self.update_costs(&mut state);
        state
    }

    /// The value with other subtrees, labels settled; their leaves get their sums.
    pub fn value_with(&self, state: &State, patches: &mut Patches) -> f64 {
        patches.iter_mut().for_each(|(_, tree)| self.fill(tree));
        let mut leaves = Vec::new();
        let mut at = 0;
        for (id, patch) in patches.iter().rev() {
            leaves.extend(state.tree.nodes[at..*id].iter().filter(|node| node.cut.is_none()));
            leaves.extend(patch.leaves());
            at = id + state.tree.nodes[*id].size;
        }
        leaves.extend(state.tree.nodes[at..].iter().filter(|node| node.cut.is_none()));
        let (sums, mut labels) = sums_and_labels(leaves.into_iter());
        self.objective.settle(&sums, &mut labels)
    }

    /// Makes subtrees part of the tree.
    pub fn apply(&self, state: &mut State, patches: Patches) {
        for (id, patch) in patches {
            state.tree.replace(id, patch);
        }
        let tree = std::mem::replace(&mut state.tree, Segments { nodes: vec![], rows: vec![] });
        (state.tree, state.value) = self.settled(tree);
        self.update_costs(state);
    }

    /// Returns to a tree with settled labels and its value.
    pub fn restore(&self, state: &mut State, (tree, value): (Segments, f64)) {
        (state.tree, state.value) = (tree, value);
        self.update_costs(state);
    }

    /// Refines all nodes, or roughly those above one and in reach of it, up to `passes` times while that lowers the value
    /// or saves leaves.
    pub fn polish(&self, state: &mut State, below: Option<usize>, passes: usize) {
        for _ in 0..passes {
            let mut tree = state.tree.clone();
            let refine = self.refine(&state.costs, below.is_some());
            let changed = match below {
                None => refine.pass(&mut tree),
                Some(id) => {
                    // Siblings that were joined may have moved the node.
                    let id = id.min(tree.nodes.len() - 1);
                    let most = self.reach * tree.nodes[id].len as f64;
                    let in_reach = |&above: &usize| tree.nodes[above].len as f64 <= most;
                    let mut ids: Vec<usize> = tree.above(id).filter(in_reach).collect();
                    ids.reverse();
                    refine.visit(&mut tree, &ids)
                }
            };
            if !changed || self.monitor.check().is_err() {
                return;
            }
            let (tree, value) = self.settled(tree);
            let saves_leaves = value <= state.value && tree.n_leaves() < state.tree.n_leaves();
            if value >= state.value && !saves_leaves {
                return;
            }
            (state.tree, state.value) = (tree, value);
            self.update_costs(state);
        }
    }
}

/// Sums and labels of leaves.
fn sums_and_labels<'n>(
    leaves: impl Iterator<Item = &'n super::segments::Node>,
) -> (Vec<&'n [f64]>, Vec<u32>) {
    leaves.map(|leaf| (leaf.sums.as_deref().unwrap_or(&[]), leaf.label)).unzip()
}
