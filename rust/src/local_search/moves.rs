//! The moves: each takes a subtree out of the tree and puts another one in its place.
//!
//! | move | what happens at a node drawn at random |
//! |---|---|
//! | recreate | its subtree of s leaves is grown anew with s leaves, and those that the tree has to spare |
//! | sample | as recreate, the first cut from a random sample of columns; of levels in half of the cases some one alone |
//! | shake | as recreate, the first cut and the shares of the leaves at random |
//! | transfer | its subtree gets one leaf fewer, and a costly leaf elsewhere one more |
//! | swap | it exchanges tests with a child of it; rows are sent down anew |
//! | perturb | it gets a random test; rows are sent down anew |
//! | cross | it gets a subtree of another good tree that some of its rows lie in |
//!
//! Nodes are drawn the less often the more rows they have, by the root of their number: changes of large subtrees take
//! most of the time and rarely gain.
//!
//! The new subtree is refined, and the candidate is worth the value of the whole tree with it. Nothing but the rows of
//! the nodes that change is looked at.

use fastrand::Rng;

use super::objective::RowCosts;
use super::ranks::RankCut;
use super::refine::Refine;
use super::regrow::Cuts;
use super::segments::Segments;
use super::state::{Patches, State, Task};
use crate::tree::LevelSet;

/// Passes of refinement over a new subtree.
const PASSES: usize = 2;
/// Leaves among which the costliest is chosen.
const TOURNAMENT: usize = 3;

/// What made a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// The start itself.
    Start,
    /// Thresholds of the whole tree refined.
    Refine,
    /// A subtree grown anew.
    Recreate,
    /// A subtree grown anew, its first cut from some columns.
    Sample,
    /// A subtree grown anew behind a random first cut.
    Shake,
    /// A leaf taken here and given there.
    Transfer,
    /// A parent and a child with exchanged tests.
    Swap,
    /// A random test with the old subtrees below it.
    Perturb,
    /// A subtree of another tree.
    Cross,
}

/// A change and the value that the tree has with it.
pub(super) struct Candidate {
    /// What made it.
    pub kind: Move,
    /// The new subtrees.
    pub patches: Patches,
    /// The value of the tree.
    pub value: f64,
}

impl Task<'_> {
    /// A random change of the tree; none if the move drawn is not possible at the node drawn. `others`: trees that
    /// subtrees may be taken from.
    pub fn propose(&self, state: &State, others: &[&Segments], rng: &mut Rng) -> Option<Candidate> {
        let tree = &state.tree;
        let spare = self.limits.max_leaves.saturating_sub(tree.n_leaves());
        let is_allowed = |id: &usize| spare > 0 || tree.nodes[*id].cut.is_some();
        let nodes: Vec<usize> = (0..tree.nodes.len()).filter(is_allowed).collect();
        let id = drawn(tree, &nodes, rng)?;
        let n_kinds = if others.is_empty() { 20 } else { 24 };
        let kind = match rng.u32(0..n_kinds) {
            0..6 => Move::Sample,
            6..10 => Move::Shake,
            10..13 => Move::Transfer,
            13..16 => Move::Perturb,
            16..18 => Move::Swap,
            20.. => Move::Cross,
            _ => Move::Recreate,
        };
        let mut patches = match kind {
            Move::Transfer => self.transfer(state, id, rng)?,
            Move::Swap => vec![(id, self.swap(tree, id, rng)?)],
            Move::Perturb => vec![(id, self.perturb(tree, id, rng)?)],
            Move::Cross => vec![(id, self.cross(state, id, rng.choice(others)?, rng)?)],
            _ => {
                let extra = if spare > 0 { rng.usize(0..=spare) } else { 0 };
                let n_leaves = tree.nodes[id].n_leaves()
                    + extra.max(usize::from(tree.nodes[id].cut.is_none()));
                vec![(id, self.recreate(state, id, n_leaves, kind, rng)?)]
            }
        };
        let refine = Refine { keeps_ties: true, ..self.refine(&state.costs, true) };
        for (_, patch) in &mut patches {
            let mut passes = 0;
            while passes < PASSES && refine.pass(patch) {
                passes += 1;
            }
        }
        if self.monitor.check().is_err() {
            return None;
        }
        let value = self.value_with(state, &mut patches);
        Some(Candidate { kind, patches, value })
    }

    /// Grows the subtree of a node anew.
    fn recreate(
        &self,
        state: &State,
        id: usize,
        n_leaves: usize,
        kind: Move,
        rng: &mut Rng,
    ) -> Option<Segments> {
        let tree = &state.tree;
        let d = self.ranks.n_features();
        let cuts = match kind {
            Move::Sample => {
                let share = 0.05 + 0.55 * rng.f64();
                let n = ((share * d as f64).ceil() as usize).clamp(1, d);
                let mut columns: Vec<usize> = (0..d).collect();
                rng.shuffle(&mut columns);
                columns.truncate(n);
                columns.sort_unstable();
                Cuts::FirstAmong(columns, self.some_levels(rng))
            }
            Move::Shake => {
                let cut = self.random_cut(tree, id, rng)?;
                let on_left = rng.usize(1..n_leaves.max(2));
                Cuts::FirstGiven(cut, [on_left, n_leaves.max(2) - on_left])
            }
            _ => Cuts::Best,
        };
        Some(self.grow_at(state, id, n_leaves, &cuts))
    }

    /// The levels that a first cut may take alone, at random, in half of the cases; none in a table without levels.
    fn some_levels(&self, rng: &mut Rng) -> Option<LevelSet> {
        let takes_one = self.ranks.has_levels() && rng.bool();
        takes_one.then(|| (0..=u8::MAX).filter(|_| rng.bool()).collect())
    }

    /// Grows the subtree of a node with so many leaves.
    fn grow_at(&self, state: &State, id: usize, n_leaves: usize, cuts: &Cuts) -> Segments {
        let tree = &state.tree;
        let depth = tree.above(id).count();
        let nodes = &tree.nodes[id..id + tree.nodes[id].size];
        let labels: Vec<u32> =
            nodes.iter().filter(|node| node.cut.is_none()).map(|node| node.label).collect();
        self.regrow(&state.costs, true).grow(tree.rows_of(id), &labels, depth, n_leaves, cuts)
    }

    /// A cut at the value of a random row in a random column, with enough rows on either side.
    fn random_cut(&self, tree: &Segments, id: usize, rng: &mut Rng) -> Option<RankCut> {
        let rows = tree.rows_of(id);
        let least = self.limits.min_samples_leaf.max(1);
        for _ in 0..8 {
            let feature = rng.usize(0..self.ranks.n_features());
            let cut = self.ranks.cut_at(feature, *rng.choice(rows)?, rng);
            let n_left = rows.iter().filter(|&&row| self.ranks.goes_left(&cut, row)).count();
            if n_left >= least && n_left + least <= rows.len() {
                return Some(cut);
            }
        }
        None
    }

    /// One leaf fewer under a node, one more where rows cost much.
    fn transfer(&self, state: &State, id: usize, rng: &mut Rng) -> Option<Patches> {
        let tree = &state.tree;
        let n_leaves = tree.nodes[id].n_leaves();
        if n_leaves < 2 {
            return None;
        }
        let inside = id..id + tree.nodes[id].size;
        let is_leaf = |leaf: &usize| tree.nodes[*leaf].cut.is_none() && !inside.contains(leaf);
        let leaves: Vec<usize> = (0..tree.nodes.len()).filter(is_leaf).collect();
        let mut dearest = (f64::NEG_INFINITY, None);
        for _ in 0..TOURNAMENT {
            let leaf = *rng.choice(&leaves)?;
            let cost = self.avoidable(&state.costs, tree, leaf);
            if cost > dearest.0 {
                dearest = (cost, Some(leaf));
            }
        }
        let leaf = dearest.1?;
        // The leaf itself is split, or the subtree of its parent is grown anew.
        let parent = tree
            .above(leaf)
            .last()
            .filter(|&parent| parent > id || parent + tree.nodes[parent].size <= id);
        let to = parent.filter(|_| rng.bool()).unwrap_or(leaf);
        let fewer = self.recreate(state, id, n_leaves - 1, Move::Recreate, rng)?;
        let more = self.grow_at(state, to, tree.nodes[to].n_leaves() + 1, &Cuts::Best);
        let mut patches = vec![(id, fewer), (to, more)];
        patches.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        Some(patches)
    }

    /// What the rows of a leaf cost beyond their cheapest labels.
    fn avoidable(&self, costs: &RowCosts, tree: &Segments, leaf: usize) -> f64 {
        let (k, label) = (self.objective.n_labels(), tree.nodes[leaf].label as usize);
        let of_row = |&row: &u32| {
            let costs = &costs.costs[row as usize * k..][..k];
            costs[label] - costs.iter().copied().fold(f64::INFINITY, f64::min)
        };
        tree.rows_of(leaf).iter().map(of_row).sum()
    }

    /// The subtree with the tests of its root and of a child exchanged.
    fn swap(&self, tree: &Segments, id: usize, rng: &mut Rng) -> Option<Segments> {
        tree.nodes[id].cut?;
        let inner = tree.children(id).into_iter().filter(|&child| tree.nodes[child].cut.is_some());
        let child = *rng.choice(&inner.collect::<Vec<_>>())? - id;
        let mut patch = tree.subtree(id);
        let cut = patch.nodes[child].cut;
        patch.nodes[child].cut = std::mem::replace(&mut patch.nodes[0].cut, cut);
        self.routed(patch)
    }

    /// The subtree with a random test at its root.
    fn perturb(&self, tree: &Segments, id: usize, rng: &mut Rng) -> Option<Segments> {
        tree.nodes[id].cut?;
        let cut = self.random_cut(tree, id, rng)?;
        let mut patch = tree.subtree(id);
        patch.nodes[0].cut = Some(cut);
        self.routed(patch)
    }

    /// A subtree of another tree, with the rows of a node and no more leaves than that may have: of those that a random
    /// row of the node lies in the one that is most alike in its number of rows. Leaves get their cheapest labels.
    fn cross(&self, state: &State, id: usize, other: &Segments, rng: &mut Rng) -> Option<Segments> {
        let tree = &state.tree;
        let rows = tree.rows_of(id);
        let spare = self.limits.max_leaves.saturating_sub(tree.n_leaves());
        let row = *rng.choice(rows)?;
        let (mut at, mut best) = (0, (f64::INFINITY, None));
        while let Some(cut) = other.nodes[at].cut {
            let apart = (other.nodes[at].len as f64 / rows.len() as f64).ln().abs();
            if other.nodes[at].n_leaves() <= tree.nodes[id].n_leaves() + spare && apart < best.0 {
                best = (apart, Some(at));
            }
            at = other.children(at)[usize::from(!self.ranks.goes_left(&cut, row))];
        }
        let mut patch = other.subtree(best.1?);
        if let Some(most) = self.limits.max_depth {
            let deepest = (0..patch.nodes.len()).map(|node| patch.above(node).count()).max()?;
            if tree.above(id).count() + deepest > most {
                return None;
            }
        }
        (patch.nodes[0].len, patch.rows) = (rows.len(), rows.to_vec());
        let mut patch = self.routed(patch)?;
        for leaf in patch.nodes.iter_mut().filter(|node| node.cut.is_none()) {
            leaf.label = self.cheapest(&state.costs, &patch.rows[leaf.start..][..leaf.len]);
        }
        Some(patch)
    }

    /// The label under which rows cost least.
    fn cheapest(&self, costs: &RowCosts, rows: &[u32]) -> u32 {
        let k = self.objective.n_labels();
        let mut sums = vec![0.0; k];
        for &row in rows {
            let costs = &costs.costs[row as usize * k..][..k];
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        }
        (0..k).min_by(|&a, &b| sums[a].total_cmp(&sums[b])).unwrap_or(0) as u32
    }

    /// A subtree with its rows sent down anew; none if a leaf gets too few.
    fn routed(&self, mut patch: Segments) -> Option<Segments> {
        patch.route(0, self.ranks);
        let least = self.limits.min_samples_leaf;
        patch.nodes.iter().all(|node| node.len >= least).then_some(patch)
    }
}

/// One of some nodes, with chances as one over the root of their rows.
fn drawn(tree: &Segments, nodes: &[usize], rng: &mut Rng) -> Option<usize> {
    let chance = |id: &usize| 1.0 / (tree.nodes[*id].len as f64).sqrt();
    let mut at = rng.f64() * nodes.iter().map(chance).sum::<f64>();
    let passes = |id: &&usize| {
        at -= chance(id);
        at < 0.0
    };
    nodes.iter().find(passes).or(nodes.last()).copied()
}
