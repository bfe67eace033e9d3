//! Recreates a subtree: best-first growth by label cost on the rows of one node.
//!
//! As ExKMC grows a tree from a single leaf (see [`crate::criterion::label_cost`]), on the costs that rows have now: a
//! leaf costs what its cheapest label does, and the leaf whose best cut saves most is split until there are as many
//! leaves as asked for. It only proposes: sums are compared as they are added up, and few labels take part, those of
//! the old subtree and those that are the cheapest for most rows.

use fastrand::Rng;

use super::objective::RowCosts;
use super::ranks::{RankCut, Ranks};
use super::segments::{Node, Segments, partition};
use super::sweep::{NodeRows, ScoredCut, Sweep, Work};
use crate::grow::Limits;
use crate::parallel::Monitor;
use crate::tree::LevelSet;

/// Most labels that take part.
const MAX_LABELS: usize = 32;
/// A label takes part if it is the cheapest for more than one row in so many.
const MIN_SHARE: usize = 64;
/// A gain of less than this share of the node's cost is none.
const TIE: f64 = 1e-12;

/// How cuts are chosen.
#[derive(Debug, Clone)]
pub(super) enum Cuts {
    /// The best of all columns.
    Best,
    /// The first one the best among these columns; of levels, if some are given, one of them against the rest.
    FirstAmong(Vec<usize>, Option<LevelSet>),
    /// This one first, with so many leaves on either side.
    FirstGiven(RankCut, [usize; 2]),
    /// Each the best of a random half of the columns.
    Sampled(Rng),
}

/// What growth reads.
#[derive(Clone, Copy)]
pub(super) struct Regrow<'a> {
    /// The table.
    pub ranks: &'a Ranks,
    /// What rows cost.
    pub costs: &'a RowCosts,
    /// What counts the cells.
    pub work: &'a Work<'a>,
    /// Number of labels.
    pub k: usize,
    /// Limits of the whole tree.
    pub limits: Limits,
    /// Whether columns are screened by some rows of a node first.
    pub screens: bool,
    /// Where a request to stop arrives.
    pub monitor: &'a Monitor,
}

/// A node that grows; its children come after it.
struct Open<const K: usize> {
    node: Node,
    depth: usize,
    total: [f64; K],
    best: Option<ScoredCut>,
    children: Option<[usize; 2]>,
}

/// Growth on `K` labels.
struct Growth<'a, const K: usize> {
    of: Regrow<'a>,
    labels: Vec<u32>,
    rows: Vec<u32>,
    values: Vec<[f64; K]>,
    nodes: Vec<Open<K>>,
    sweep: Sweep<'a, K>,
    /// What draws the columns of each cut; none: all are looked at.
    sampler: Option<Rng>,
}

impl Regrow<'_> {
    /// Grows a subtree of at most `n_leaves` leaves on rows at a node of the given depth. `labels`: those in use there.
    pub fn grow(
        &self,
        rows: &[u32],
        labels: &[u32],
        depth: usize,
        n_leaves: usize,
        cuts: &Cuts,
    ) -> Segments {
        let labels = self.likely_labels(rows, labels);
        match labels.len() {
            0..=2 => self.grow_on::<2>(rows, labels, depth, n_leaves, cuts),
            3..=4 => self.grow_on::<4>(rows, labels, depth, n_leaves, cuts),
            5..=6 => self.grow_on::<6>(rows, labels, depth, n_leaves, cuts),
            7..=8 => self.grow_on::<8>(rows, labels, depth, n_leaves, cuts),
            9..=12 => self.grow_on::<12>(rows, labels, depth, n_leaves, cuts),
            13..=16 => self.grow_on::<16>(rows, labels, depth, n_leaves, cuts),
            _ => self.grow_on::<MAX_LABELS>(rows, labels, depth, n_leaves, cuts),
        }
    }

    /// The labels that are the cheapest for most rows and those in use, ascending, at most [`MAX_LABELS`].
    fn likely_labels(&self, rows: &[u32], in_use: &[u32]) -> Vec<u32> {
        let mut votes = vec![0usize; self.k];
        for &row in rows {
            let costs = &self.costs.costs[row as usize * self.k..][..self.k];
            let (mut cheapest, mut least) = (0, f64::INFINITY);
            for (label, &cost) in costs.iter().enumerate() {
                if cost < least {
                    (cheapest, least) = (label, cost);
                }
            }
            votes[cheapest] += 1;
        }
        let few = rows.len() / MIN_SHARE;
        in_use.iter().for_each(|&label| votes[label as usize] += few + 1);
        let mut labels: Vec<u32> = (0..self.k as u32).collect();
        labels.sort_by_key(|&label| std::cmp::Reverse(votes[label as usize]));
        labels.retain(|&label| votes[label as usize] > few);
        labels.truncate(MAX_LABELS);
        labels.sort_unstable();
        labels
    }

    fn grow_on<const K: usize>(
        &self,
        rows: &[u32],
        labels: Vec<u32>,
        depth: usize,
        n_leaves: usize,
        cuts: &Cuts,
    ) -> Segments {
        let values = rows.iter().map(|&row| {
            let costs = &self.costs.costs[row as usize * self.k..][..self.k];
            let mut value = [f64::INFINITY; K];
            for (value, &label) in value.iter_mut().zip(&labels) {
                *value = costs[label as usize];
            }
            let least = value.iter().copied().fold(f64::INFINITY, f64::min);
            // Lanes without a label are as dear as the dearest.
            let dearest = labels.iter().map(|&l| costs[l as usize]).fold(least, f64::max);
            value.map(|x| x.min(dearest) - least)
        });
        let values: Vec<[f64; K]> = values.collect();
        let (rows, sweep) = (rows.to_vec(), Sweep::new(self.work, self.screens));
        let sampler = match cuts {
            Cuts::Sampled(rng) => Some(rng.clone()),
            _ => None,
        };
        let mut growth = Growth { of: *self, labels, rows, values, nodes: vec![], sweep, sampler };
        growth.open(0, growth.rows.len(), depth);
        match cuts {
            Cuts::Best | Cuts::Sampled(_) => growth.expand(0, n_leaves),
            Cuts::FirstAmong(columns, alone) if n_leaves > 1 => {
                growth.search_among(0, columns.iter().copied(), *alone);
                if growth.nodes[0].best.is_none() {
                    growth.search(0);
                }
                if growth.gain(0) > 0.0 {
                    let [left, _] = growth.split(0);
                    growth.expand(left, n_leaves);
                }
            }
            Cuts::FirstGiven(cut, shares) if self.limits.max_depth != Some(depth) => {
                growth.nodes[0].best = Some(ScoredCut { cut: *cut, score: 0.0 });
                let [left, right] = growth.split(0);
                for (child, share) in [(left, shares[0]), (right, shares[1])] {
                    growth.expand_below(child, share);
                }
            }
            Cuts::FirstAmong(..) | Cuts::FirstGiven(..) => {}
        }
        let mut tree = Segments { nodes: vec![], rows: vec![] };
        growth.write(0, &mut tree.nodes);
        tree.rows = growth.rows;
        tree
    }
}

/// What rows with these sums cost under their cheapest label.
#[inline(always)]
fn cheapest<const K: usize>(sums: &[f64; K]) -> f64 {
    // Four minima side by side.
    let mut lanes = [sums[0]; 4];
    let (blocks, rest) = sums.as_chunks::<4>();
    let min = |a: f64, b: f64| if b < a { b } else { a };
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = min(*lane, x);
        }
    }
    rest.iter().fold(min(min(lanes[0], lanes[1]), min(lanes[2], lanes[3])), |a, &b| min(a, b))
}

impl<const K: usize> Growth<'_, K> {
    /// Adds a leaf.
    fn open(&mut self, start: usize, len: usize, depth: usize) -> usize {
        let mut total = [0.0; K];
        for value in &self.values[start..start + len] {
            (0..K).for_each(|l| total[l] += value[l]);
        }
        let least = cheapest(&total);
        let label = total.iter().position(|&x| x <= least).unwrap_or(0);
        let label = self.labels.get(label).copied().unwrap_or(self.labels[0]);
        let node = Node::leaf(start, len, label);
        self.nodes.push(Open { node, depth, total, best: None, children: None });
        self.nodes.len() - 1
    }

    /// Finds the best cut of a leaf, in all columns or a sample of them.
    fn search(&mut self, id: usize) {
        let d = self.of.ranks.n_features();
        match &mut self.sampler {
            None => self.search_among(id, 0..d, None),
            Some(rng) => {
                let mut columns = rng.choose_multiple(0..d, d.div_ceil(2));
                columns.sort_unstable();
                self.search_among(id, columns.into_iter(), None);
            }
        }
    }

    /// Finds the best cut of a leaf in some columns. `alone`: see [`NodeRows::alone`].
    fn search_among(
        &mut self,
        id: usize,
        features: impl Iterator<Item = usize>,
        alone: Option<LevelSet>,
    ) {
        let Open { node, depth, total, .. } = &self.nodes[id];
        let limits = self.of.limits;
        let least = limits.min_samples_leaf.max(1);
        let is_closed = limits.max_depth.is_some_and(|most| *depth >= most)
            || node.len < 2 * least
            || cheapest(total) <= 0.0
            || self.of.monitor.check().is_err();
        if is_closed {
            return;
        }
        let range = node.start..node.start + node.len;
        let rows = NodeRows {
            ranks: self.of.ranks,
            rows: &self.rows[range.clone()],
            values: &self.values[range],
            total: *total,
            min_rows: least,
            margin: TIE * cheapest(total),
            alone,
        };
        let score = |left: &[f64; K], right: &[f64; K]| cheapest(left) + cheapest(right);
        self.nodes[id].best = self.sweep.best(&rows, features, score);
    }

    /// What the best cut of a leaf saves; 0 if nothing.
    fn gain(&self, id: usize) -> f64 {
        let Open { total, best, children, .. } = &self.nodes[id];
        let cost = cheapest(total);
        let Some(best) = best.filter(|_| children.is_none()) else { return 0.0 };
        let gain = cost - best.score;
        if gain > TIE * cost { gain } else { 0.0 }
    }

    /// Splits a leaf by its best cut; returns the children.
    fn split(&mut self, id: usize) -> [usize; 2] {
        let Open { node: Node { start, len, .. }, depth, best, .. } = self.nodes[id];
        let Some(ScoredCut { cut, .. }) = best else { return [id, id] };
        let (rows, values) =
            (&mut self.rows[start..start + len], &mut self.values[start..start + len]);
        // The places of the rows that go left, then those of the others, in their order.
        let (mut places, mut others): (Vec<u32>, _) = ((0..len as u32).collect(), vec![]);
        let n_left = partition(&mut places, &mut others, |place| {
            self.of.ranks.goes_left(&cut, rows[place as usize])
        });
        let sorted: Vec<u32> = places.iter().map(|&place| rows[place as usize]).collect();
        rows.copy_from_slice(&sorted);
        let sorted: Vec<_> = places.iter().map(|&place| values[place as usize]).collect();
        values.copy_from_slice(&sorted);
        let (middle, stop) = (start + n_left, start + len);
        let left = self.open(start, middle - start, depth + 1);
        let right = self.open(middle, stop - middle, depth + 1);
        self.nodes[id].node.cut = Some(cut);
        self.nodes[id].children = Some([left, right]);
        [left, right]
    }

    /// Splits leaves until the tree has `n_leaves` of them. `first`: the first node that was not searched yet.
    fn expand(&mut self, first: usize, n_leaves: usize) {
        let mut unsearched = first;
        while self.nodes.len().div_ceil(2) < n_leaves {
            while unsearched < self.nodes.len() {
                self.search(unsearched);
                unsearched += 1;
            }
            let Some(id) = self.best_leaf(|_| true) else { break };
            self.split(id);
        }
    }

    /// As [`Growth::expand`], below one leaf, which gets `n_leaves` leaves.
    fn expand_below(&mut self, leaf: usize, n_leaves: usize) {
        let mut open = vec![leaf];
        let mut unsearched = 0;
        for _ in 1..n_leaves {
            while unsearched < open.len() {
                self.search(open[unsearched]);
                unsearched += 1;
            }
            let Some(id) = self.best_leaf(|id| open.contains(&id)) else { break };
            open.extend(self.split(id));
        }
    }

    /// The leaf of largest gain among some, the first of equal ones.
    fn best_leaf(&self, is_allowed: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best = (0.0, None);
        for id in (0..self.nodes.len()).filter(|&id| is_allowed(id)) {
            let gain = self.gain(id);
            if gain > best.0 {
                best = (gain, Some(id));
            }
        }
        best.1
    }

    /// Writes a subtree in preorder.
    fn write(&self, id: usize, nodes: &mut Vec<Node>) {
        let at = nodes.len();
        nodes.push(self.nodes[id].node.clone());
        for child in self.nodes[id].children.into_iter().flatten() {
            self.write(child, nodes);
        }
        nodes[at].size = nodes.len() - at;
    }
}
