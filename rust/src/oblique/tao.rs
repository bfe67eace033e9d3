//! Tree alternating optimisation (TAO): a tree of hard tests improved node by node (Carreira-Perpiñán and Tavallali,
//! NeurIPS 2018; section 8 of the oblique-tree paper).
//!
//! The objective is the loss of the rows in their leaves plus lambda times phi, phi being the sum over the tests of the
//! l1 norm of their weights (threshold tests: their number). One pass visits the nodes from the deepest to the root;
//! those of one depth do not affect each other and are worked on in parallel. At a test every row that reaches it
//! costs something on the left and something on the right, as the two subtrees stand: a weighted two-class problem.
//!
//! | paper | here |
//! |---|---|
//! | T(x; Theta) | [`Tree`] |
//! | reduced set R_i | `rows` of `Tao::update` |
//! | eq. (9) | [`Tao::pass`], `Reduced` |
//! | eq. (10) | `Loss::leaf` |
//!
//! Departures, all of which lower the objective: a new test gets the best bias for its weights (a sweep over the
//! scores) in place of the logistic one; its weights may then be moved one by one (`Reduced::refine`); a test that is
//! not worth its penalty and that of a subtree goes at once, with that subtree; and leaves are split where that pays
//! ([`Tao::grow`]), which brings back what was lost too early.
//!
//! A pass routes every row through both subtrees of every node above it: O(depth^2) tests a row, beside the node
//! problems, which see every row once a level. Which way a row goes at a test is remembered while the test stays.

use rayon::prelude::*;

use super::design::Design;
use super::logistic::{self, Options, Origin, Start};
use super::memory::{Key, Memory};
pub use super::reduced::Plane;
use super::reduced::{Candidate, LEAST, Reduced, TIE};
use super::rows::Rows;
use crate::criterion::label_cost::LabelCost;
use crate::error::Result;
use crate::index::Index;
use crate::parallel::{self, Monitor};
use crate::placement;
use crate::search::{Engine, SearchOptions};
use crate::table::Table;

/// Rows that one thread routes in one go.
const BLOCK: usize = 4096;
/// A better test is scaled down to lower the objective, but not below this.
const SHRINK: f64 = 0.1;
/// Share by which a norm must be smaller to be clearly smaller.
const SMALLER: f64 = 1e-3;
/// A share in phi that keeps a column out of a test.
const PROHIBITIVE: f64 = 1e100;
/// Pairs of labels that a leaf is tried to be split into.
const PAIRS: usize = 3;

/// What a node asks. "Left" is where the score is negative, or the value at most the threshold.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `bias + sum of weight * x < 0` goes left.
    Oblique(Plane),
    /// `x[feature] <= threshold` goes left.
    Threshold {
        /// The column.
        feature: usize,
        /// The largest value that goes left.
        threshold: f64,
    },
}

/// What a leaf predicts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Leaf {
    /// The label.
    pub label: u32,
    /// Shares of the labels; empty where only the label counts.
    pub shares: Vec<f64>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A leaf.
    Leaf(Leaf),
    /// A test and its two children, anywhere in [`Tree::nodes`].
    Split {
        /// The test.
        test: Test,
        /// The left child.
        left: usize,
        /// The right child.
        right: usize,
    },
}

/// A tree; node 0 is the root. Nodes that are no longer reached remain until [`Tree::compact`].
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The nodes.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// One leaf.
    pub fn leaf(label: u32) -> Self {
        Tree { nodes: vec![Node::Leaf(Leaf { label, shares: vec![] })] }
    }

    /// The nodes that are reached, level by level, from left to right.
    pub fn levels(&self) -> Vec<Vec<usize>> {
        let mut levels = vec![vec![0]];
        loop {
            let mut next = vec![];
            for &id in levels.last().into_iter().flatten() {
                if let Node::Split { left, right, .. } = self.nodes[id] {
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
    pub fn compact(&self) -> Tree {
        let order = self.levels().concat();
        let mut number = vec![0; self.nodes.len()];
        for (new, &old) in order.iter().enumerate() {
            number[old] = new;
        }
        let renumber = |&old: &usize| match &self.nodes[old] {
            Node::Split { test, left, right } => {
                Node::Split { test: test.clone(), left: number[*left], right: number[*right] }
            }
            leaf => leaf.clone(),
        };
        Tree { nodes: order.iter().map(renumber).collect() }
    }

    /// The tests of the subtree under a node.
    pub fn tests(&self, id: usize) -> Vec<&Test> {
        let (mut tests, mut stack) = (vec![], vec![id]);
        while let Some(id) = stack.pop() {
            if let Node::Split { test, left, right } = &self.nodes[id] {
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
        let of = |test: &Test| match test {
            Test::Oblique(plane) => plane.weights.len(),
            Test::Threshold { .. } => 1,
        };
        self.tests(0).into_iter().map(of).sum()
    }
}

/// What a row in a leaf costs.
#[derive(Debug, Clone, Copy)]
pub enum Loss<'a> {
    /// A cost for every row and label.
    Costs {
        /// n x k, row-major, not negative.
        costs: &'a [f64],
        /// Number of labels.
        k: usize,
    },
    /// The row's weight where its label is not the leaf's: the 0/1 loss.
    Labels(Labels<'a>),
    /// The row's weight times the squared distance of its one-hot label to the leaf's shares.
    Squared(Labels<'a>),
}

/// Labels to be reproduced.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    /// A label per row.
    pub labels: &'a [u32],
    /// Row weights.
    pub weights: Option<&'a [f64]>,
    /// Number of labels.
    pub k: usize,
}

impl Labels<'_> {
    fn weight(&self, row: u32) -> f64 {
        self.weights.map_or(1.0, |w| w[row as usize])
    }
}

impl Loss<'_> {
    /// Number of labels.
    pub fn k(&self) -> usize {
        match self {
            Loss::Costs { k, .. } => *k,
            Loss::Labels(labels) | Loss::Squared(labels) => labels.k,
        }
    }

    /// The loss of a row in a leaf.
    pub fn of(&self, row: u32, leaf: &Leaf) -> f64 {
        match self {
            Loss::Costs { costs, k } => costs[row as usize * k + leaf.label as usize],
            Loss::Labels(labels) => {
                let same = labels.labels[row as usize] == leaf.label;
                if same { 0.0 } else { labels.weight(row) }
            }
            Loss::Squared(labels) => {
                let own = labels.labels[row as usize] as usize;
                labels.weight(row) * squared_distance(own, &leaf.shares)
            }
        }
    }

    /// Adds what every label costs the row.
    fn add(&self, row: u32, sums: &mut [f64]) {
        match self {
            Loss::Costs { costs, k } => {
                for (sum, x) in sums.iter_mut().zip(&costs[row as usize * k..][..*k]) {
                    *sum += x;
                }
            }
            Loss::Labels(labels) | Loss::Squared(labels) => {
                let (own, weight) = (labels.labels[row as usize] as usize, labels.weight(row));
                for (label, sum) in sums.iter_mut().enumerate() {
                    *sum += if label == own { 0.0 } else { weight };
                }
            }
        }
    }

    /// The leaf that costs the rows least (eq. 10): the lowest label among equals, or the old one. A leaf without rows
    /// stays as it was.
    fn leaf(&self, rows: &[u32], old: &Leaf) -> Leaf {
        if rows.is_empty() {
            return old.clone();
        }
        let k = self.k();
        let sums = parallel::sum_rows(rows, k, |row, sums| self.add(row, sums));
        let mut label = if (old.label as usize) < k { old.label as usize } else { 0 };
        for (other, sum) in sums.iter().enumerate() {
            if *sum < sums[label] {
                label = other;
            }
        }
        let shares = match self {
            Loss::Squared(labels) => {
                let weight: f64 = rows.iter().map(|&row| labels.weight(row)).sum();
                sums.iter().map(|missed| ((weight - missed) / weight).clamp(0.0, 1.0)).collect()
            }
            _ => vec![],
        };
        Leaf { label: label as u32, shares }
    }

    /// A leaf of one label.
    fn pure(&self, label: usize) -> Leaf {
        let shares = match self {
            Loss::Squared(labels) => {
                (0..labels.k).map(|other| if other == label { 1.0 } else { 0.0 }).collect()
            }
            _ => vec![],
        };
        Leaf { label: label as u32, shares }
    }
}

/// |e_label - shares|^2; no shares: those of no label.
pub fn squared_distance(label: usize, shares: &[f64]) -> f64 {
    let squares: f64 = shares.iter().map(|p| p * p).sum();
    (1.0 - 2.0 * shares.get(label).unwrap_or(&0.0) + squares).max(0.0)
}

/// What tests are made of.
#[derive(Debug, Clone, Copy)]
pub enum Splits<'a, 't> {
    /// Oblique tests.
    Oblique {
        /// The rows, on which tests are evaluated.
        rows: Rows<'a, 't>,
        /// The same rows, as the solver reads them.
        design: &'a Design,
        /// Each column's share in phi; none: 1.
        shares: Option<&'a [f64]>,
    },
    /// Threshold tests.
    Axis {
        /// The rows.
        table: &'a Table<'t>,
        /// Their index.
        index: &'a Index,
    },
}

impl Splits<'_, '_> {
    /// Number of rows.
    pub fn n_samples(&self) -> usize {
        match self {
            Splits::Oblique { rows, .. } => rows.n_samples(),
            Splits::Axis { table, .. } => table.n_samples(),
        }
    }

    /// What a test adds to phi.
    pub fn penalty(&self, test: &Test) -> f64 {
        match (test, self) {
            (Test::Oblique(plane), Splits::Oblique { shares, .. }) => plane.norm(*shares),
            (Test::Oblique(plane), Splits::Axis { .. }) => plane.norm(None),
            (Test::Threshold { .. }, _) => 1.0,
        }
    }

    /// Whether each row goes right.
    pub fn sides(&self, test: &Test, rows: &[u32], memory: &Memory) -> Vec<bool> {
        let of_table = |table: &Table<'_>, feature: usize, threshold: f64| {
            let mut cells = vec![];
            table.column(feature).gather(rows, &mut cells);
            cells.into_iter().map(|x| x > threshold).collect()
        };
        match (test, self) {
            (Test::Oblique(plane), Splits::Oblique { rows: all, .. }) => {
                memory.sides(plane, *all, rows)
            }
            (Test::Oblique(plane), Splits::Axis { table, .. }) => {
                memory.sides(plane, Rows::Table(table), rows)
            }
            (&Test::Threshold { feature, threshold }, Splits::Axis { table, .. }) => {
                of_table(table, feature, threshold)
            }
            (&Test::Threshold { feature, threshold }, Splits::Oblique { rows: all, .. }) => {
                let mut cells = vec![];
                all.cells(rows, feature as u32, &mut cells);
                cells.into_iter().map(|x| x > threshold).collect()
            }
        }
    }
}

/// How trees are improved.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Penalty of phi.
    pub lambda: f64,
    /// Deepest leaf that [`Tao::grow`] may make.
    pub max_depth: usize,
    /// Most leaves that it may make.
    pub max_leaves: usize,
    /// Sweeps over the weights of a test, 0 for none.
    pub n_sweeps: usize,
    /// Whether a test may only weigh the columns it weighs already.
    pub keep_columns: bool,
    /// For losses that hardly differ from one pass to the next: a node problem may start where the last one at the
    /// node ended, not only from the test there, and a test stays until another one is clearly better. Else, more is
    /// tried: in the end a better tree, in more time.
    pub steady: bool,
    /// Of the logistic problems.
    pub solver: Options,
}

/// The objective in parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Loss of the rows in their leaves.
    pub loss: f64,
    /// phi.
    pub penalty: f64,
}

impl Objective {
    /// loss + lambda * phi.
    pub fn value(&self, lambda: f64) -> f64 {
        self.loss + lambda * self.penalty
    }
}

/// The optimisation of a tree for given losses.
#[derive(Debug, Clone, Copy)]
pub struct Tao<'a, 't> {
    /// What tests are made of.
    pub splits: Splits<'a, 't>,
    /// What rows cost.
    pub loss: Loss<'a>,
    /// How.
    pub settings: Settings,
    /// Told to stop.
    pub monitor: &'a Monitor,
    /// What need not be reckoned again.
    pub memory: &'a Memory,
}

/// What becomes of a test.
enum Update {
    Keep,
    /// A new test, the two children exchanged or not.
    Replace(Test, bool),
    /// The child of this side (0 left, 1 right) takes its place.
    Remove(usize),
}

/// A new split of a leaf: the test, and the leaf and the rows of each side.
struct LeafSplit {
    test: Test,
    leaves: [Leaf; 2],
    parts: [Vec<u32>; 2],
    gain: f64,
}

impl Tao<'_, '_> {
    /// The rows of every node, by node id.
    pub fn rows(&self, tree: &Tree) -> Vec<Vec<u32>> {
        let mut rows = vec![vec![]; tree.nodes.len()];
        rows[0] = (0..self.splits.n_samples() as u32).collect();
        for level in tree.levels() {
            let parts: Vec<_> = level
                .par_iter()
                .filter_map(|&id| match &tree.nodes[id] {
                    Node::Split { test, left, right } => {
                        let [low, high] = self.split(test, &rows[id]);
                        Some([(*left, low), (*right, high)])
                    }
                    Node::Leaf(_) => None,
                })
                .collect();
            for (id, part) in parts.into_iter().flatten() {
                rows[id] = part;
            }
        }
        rows
    }

    fn sides(&self, test: &Test, rows: &[u32]) -> Vec<bool> {
        self.splits.sides(test, rows, self.memory)
    }

    fn split(&self, test: &Test, rows: &[u32]) -> [Vec<u32>; 2] {
        let blocks: Vec<Vec<bool>> =
            rows.par_chunks(BLOCK).map(|rows| self.sides(test, rows)).collect();
        let mut parts = [vec![], vec![]];
        for (&row, right) in rows.iter().zip(blocks.into_iter().flatten()) {
            parts[usize::from(right)].push(row);
        }
        parts
    }

    /// What each of the rows costs under a node.
    fn costs(&self, tree: &Tree, id: usize, rows: &[u32]) -> Vec<f64> {
        let of_block = |rows: &[u32]| {
            let mut costs = vec![0.0; rows.len()];
            let mut stack = vec![(id, (0..rows.len() as u32).collect::<Vec<u32>>())];
            while let Some((id, places)) = stack.pop() {
                match &tree.nodes[id] {
                    Node::Leaf(leaf) => {
                        for place in places {
                            costs[place as usize] = self.loss.of(rows[place as usize], leaf);
                        }
                    }
                    Node::Split { test, left, right } => {
                        let here: Vec<u32> = places.iter().map(|&p| rows[p as usize]).collect();
                        let mut parts = [vec![], vec![]];
                        for (place, right) in places.into_iter().zip(self.sides(test, &here)) {
                            parts[usize::from(right)].push(place);
                        }
                        let below = [*left, *right].into_iter().zip(parts);
                        stack.extend(below.filter(|(_, part)| !part.is_empty()));
                    }
                }
            }
            costs
        };
        rows.par_chunks(BLOCK).flat_map_iter(of_block).collect()
    }

    pub(super) fn penalty(&self, tree: &Tree, id: usize) -> f64 {
        tree.tests(id).into_iter().map(|test| self.splits.penalty(test)).sum()
    }

    /// The objective of a tree.
    pub fn objective(&self, tree: &Tree) -> Objective {
        let rows = self.rows(tree);
        let losses: Vec<f64> = tree
            .nodes
            .par_iter()
            .zip(&rows)
            .map(|(node, rows)| match node {
                Node::Leaf(leaf) => rows.iter().map(|&row| self.loss.of(row, leaf)).sum(),
                Node::Split { .. } => 0.0,
            })
            .collect();
        Objective { loss: losses.iter().sum(), penalty: self.penalty(tree, 0) }
    }

    /// The leaf of each row, as a node id.
    pub fn leaf_of_row(&self, tree: &Tree) -> Vec<u32> {
        let mut leaf_of_row = vec![0; self.splits.n_samples()];
        for (id, rows) in self.rows(tree).into_iter().enumerate() {
            if matches!(tree.nodes[id], Node::Leaf(_)) {
                for row in rows {
                    leaf_of_row[row as usize] = id as u32;
                }
            }
        }
        leaf_of_row
    }

    /// One iteration: the leaves, then the tests from the deepest to the root. The objective does not rise. Returns
    /// whether anything changed.
    ///
    /// # Errors
    /// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
    pub fn pass(&self, tree: &mut Tree) -> Result<bool> {
        self.memory.keep_only(tree.tests(0).into_iter().filter_map(|test| match test {
            Test::Oblique(plane) => Some(plane),
            Test::Threshold { .. } => None,
        }));
        let rows = self.rows(tree);
        let mut changed = self.fit_leaves(tree, &rows);
        for level in tree.levels().iter().rev() {
            self.monitor.check()?;
            let updates: Vec<(usize, Update)> = level
                .par_iter()
                .map(|&id| Ok((id, self.update(tree, id, &rows[id])?)))
                .collect::<Result<_>>()?;
            for (id, update) in updates {
                let Node::Split { test, left, right } = &mut tree.nodes[id] else { continue };
                match update {
                    Update::Keep => continue,
                    Update::Replace(new, exchange) => {
                        *test = new;
                        if exchange {
                            std::mem::swap(left, right);
                        }
                    }
                    Update::Remove(side) => {
                        let child = [*left, *right][side];
                        tree.nodes[id] = tree.nodes[child].clone();
                    }
                }
                changed = true;
            }
        }
        *tree = tree.compact();
        Ok(changed)
    }

    /// Makes every leaf what costs its rows least.
    fn fit_leaves(&self, tree: &mut Tree, rows: &[Vec<u32>]) -> bool {
        let refit = |(node, rows): (&Node, &Vec<u32>)| match node {
            Node::Leaf(leaf) => Some(self.loss.leaf(rows, leaf)),
            Node::Split { .. } => None,
        };
        let leaves: Vec<Option<Leaf>> = tree.nodes.par_iter().zip(rows).map(refit).collect();
        let mut changed = false;
        for (node, leaf) in tree.nodes.iter_mut().zip(leaves) {
            if let Some(leaf) = leaf.map(Node::Leaf) {
                changed |= *node != leaf;
                *node = leaf;
            }
        }
        changed
    }

    fn reduced(&self, tree: &Tree, children: [usize; 2], rows: &[u32]) -> Reduced {
        let [left, right] = children.map(|child| self.costs(tree, child, rows));
        Reduced::new(rows, [&left, &right])
    }

    /// Fits the leaves and brings every oblique test to the scale that suits its problem. Rows go the same way.
    pub fn rescale(&self, tree: &mut Tree) {
        let Splits::Oblique { rows: all, shares, .. } = self.splits else { return };
        let rows = self.rows(tree);
        self.fit_leaves(tree, &rows);
        let of_node = |id: usize| match &tree.nodes[id] {
            Node::Split { test: Test::Oblique(plane), left, right } => {
                let reduced = self.reduced(tree, [*left, *right], &rows[id]);
                let scale = reduced.best_scale(all, plane, self.settings.lambda, shares);
                (scale > 0.0).then(|| plane.clone().scaled(scale))
            }
            _ => None,
        };
        let planes: Vec<_> = (0..tree.nodes.len()).into_par_iter().map(of_node).collect();
        for (node, plane) in tree.nodes.iter_mut().zip(planes) {
            if let (Node::Split { test, .. }, Some(plane)) = (node, plane) {
                *test = Test::Oblique(plane);
            }
        }
    }

    fn update(&self, tree: &Tree, id: usize, rows: &[u32]) -> Result<Update> {
        let Node::Split { test, left, right } = &tree.nodes[id] else { return Ok(Update::Keep) };
        let lambda = self.settings.lambda;
        let reduced = self.reduced(tree, [*left, *right], rows);
        let below = [*left, *right].map(|child| self.penalty(tree, child));
        let now = reduced.loss(self.sides(test, &reduced.rows));
        // The objective under this node, as far as it depends on the test.
        let before = now + lambda * (self.splits.penalty(test) + below[0] + below[1]);
        let without = [0, 1].map(|side| reduced.all[side] + lambda * below[side]);
        let side = usize::from(without[1] < without[0]);
        let margin = TIE * reduced.total();
        let (mut update, mut best) = (Update::Keep, before - margin);
        if without[side] <= before {
            (update, best) = (Update::Remove(side), without[side]);
        }
        if reduced.rows.is_empty() {
            return Ok(update);
        }
        match self.splits {
            Splits::Oblique { shares, .. } => {
                let Test::Oblique(old) = test else { return Ok(update) };
                let Settings { n_sweeps, keep_columns, steady, .. } = self.settings;
                let (sweeps, kept) = (n_sweeps as f64, f64::from(u8::from(keep_columns)));
                let numbers = [before, below[0], below[1], lambda, sweeps, kept];
                let key = Key::of(&reduced, Some(old), &numbers);
                if self.memory.is_settled(key) {
                    return Ok(update);
                }
                let Some(new) = self.better_plane(id, &reduced, old, now)? else {
                    self.memory.settle(key);
                    return Ok(update);
                };
                let norm = new.plane.norm(shares);
                let below = lambda * (below[0] + below[1]);
                // A larger norm must not stand in the way of a better test: rows go the same way if it is smaller. But
                // a test that is not worth its own norm goes.
                let worth =
                    matches!(update, Update::Keep) || new.loss + lambda * norm + below < best;
                // With as many mistakes, one that is merely scaled down to the old norm gains nothing.
                let only_smaller = steady && new.loss >= now - margin;
                let (gain, least) = match only_smaller {
                    true => (margin.max(SMALLER * lambda * norm), 1.0),
                    false => (margin, SHRINK),
                };
                let room = before - gain - below - new.loss;
                let mut scale = if lambda * norm <= room { 1.0 } else { room / (lambda * norm) };
                if worth && scale >= least {
                    if keep_columns {
                        // Without a price any norm will do: about the old one, by a power of two, which moves no row.
                        scale = 2f64.powi((old.norm(shares) / norm).log2().round() as i32);
                    }
                    let plane = new.plane.scaled(scale);
                    update = Update::Replace(Test::Oblique(plane), false);
                } else {
                    self.memory.settle(key);
                }
            }
            Splits::Axis { .. } => {
                let Some((new, loss)) = self.best_threshold(&reduced)? else { return Ok(update) };
                let exchange = reduced.total() - loss < loss;
                let loss = if exchange { reduced.total() - loss } else { loss };
                if loss + lambda * (1.0 + below[0] + below[1]) < best {
                    update = Update::Replace(new, exchange);
                }
            }
        }
        Ok(update)
    }

    /// A plane better than the old one, both compared in the scale that suits them; none if there is none.
    fn better_plane(
        &self,
        id: usize,
        reduced: &Reduced,
        old: &Plane,
        now: f64,
    ) -> Result<Option<Candidate>> {
        let Splits::Oblique { rows, shares, .. } = self.splits else { return Ok(None) };
        let lambda = self.settings.lambda;
        let scale = reduced.best_scale(rows, old, lambda, shares);
        let old = (scale > 0.0).then(|| old.clone().scaled(scale));
        // At a scale of 0 there is no test.
        let before = match &old {
            Some(old) => now + lambda * old.norm(shares),
            None => reduced.all[0].min(reduced.all[1]),
        };
        let better = |new: &Candidate| {
            new.loss + lambda * new.plane.norm(shares) < before - TIE * reduced.total()
        };
        let new = self.logistic(Some(id), reduced, old.as_ref())?.filter(better);
        let n_sweeps = self.settings.n_sweeps;
        let start = new.or(old.map(|plane| Candidate { plane, loss: now }));
        let refined = start.map(|start| match n_sweeps {
            0 => start,
            _ => reduced.refine(rows, start, lambda, shares, n_sweeps),
        });
        Ok(refined.filter(better))
    }

    /// The plane of the penalised logistic problem, with the best bias for its weights; none if it has no weights, or
    /// if all rows go one way. The last solve at the node leaves its curvature at least ([`Settings::steady`]).
    fn logistic(
        &self,
        node: Option<usize>,
        reduced: &Reduced,
        start: Option<&Plane>,
    ) -> Result<Option<Candidate>> {
        let Splits::Oblique { rows, design, shares } = self.splits else { return Ok(None) };
        let mut columns = None;
        if self.settings.keep_columns {
            let Some(plane) = start else { return Ok(None) };
            let only = columns.insert(vec![PROHIBITIVE; design.n_columns()]);
            for &(column, _) in &plane.weights {
                only[column as usize] = shares.map_or(1.0, |shares| shares[column as usize]);
            }
        }
        let problem = logistic::Problem {
            design,
            rows: &reduced.rows,
            sign: &reduced.sign,
            weight: &reduced.weight,
            lambda: self.settings.lambda.max(LEAST * reduced.total()),
            penalty: columns.as_deref().or(shares),
        };
        let start = start.map(|plane| Start { weights: &plane.weights, bias: plane.bias });
        let solved = node.map(|id| (id, self.settings.keep_columns));
        let last = solved.and_then(|solved| self.memory.last(solved));
        let resumed = match self.settings.steady {
            true => Origin::Kept,
            false => Origin::Curvature,
        };
        let last_first = last.iter().map(|kept| resumed(kept));
        let from: Vec<Origin<'_>> = last_first.chain(start.iter().map(Origin::Weights)).collect();
        let (found, kept) =
            logistic::solve_from(&problem, &from, self.settings.solver, self.monitor)?;
        if let Some(solved) = solved {
            self.memory.remember(solved, kept);
        }
        let weights = found.weights;
        let Some(bias) = reduced.best_bias(rows, &weights, found.bias) else { return Ok(None) };
        let plane = Plane { weights, bias };
        let (loss, splits) = reduced.judge(rows, &plane);
        Ok(splits.then_some(Candidate { plane, loss }))
    }

    /// The best threshold test by enumeration, and its loss with the low values on the left. Whether they should be on
    /// the right is for the caller to see.
    fn best_threshold(&self, reduced: &Reduced) -> Result<Option<(Test, f64)>> {
        let Splits::Axis { table, index } = self.splits else { return Ok(None) };
        let n = table.n_samples();
        let mut regrets = vec![0.0; 2 * n];
        for ((&row, &sign), &weight) in reduced.rows.iter().zip(&reduced.sign).zip(&reduced.weight)
        {
            regrets[2 * row as usize + usize::from(!sign)] = weight;
        }
        let criterion = LabelCost::new(&regrets, n, 2, 1)?;
        let options = SearchOptions::default();
        let engine = Engine::new(table, index, &criterion, options, self.monitor);
        let node = criterion.node(&reduced.all, reduced.rows.len());
        let searched = engine.search(&reduced.rows, node, false)?;
        let Some(best) = engine.open(&reduced.rows, &searched)? else { return Ok(None) };
        let gap = best.cut.upper;
        let threshold = placement::between(gap.below, gap.above);
        let test = Test::Threshold { feature: best.feature, threshold };
        let loss = reduced.loss(self.sides(&test, &reduced.rows));
        Ok(Some((test, loss)))
    }

    /// Splits leaves where that lowers the objective, and the new leaves again. Returns whether any was split.
    ///
    /// # Errors
    /// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
    pub fn grow(&self, tree: &mut Tree) -> Result<bool> {
        let mut rows = self.rows(tree);
        let mut changed = self.fit_leaves(tree, &rows);
        let mut open: Vec<(usize, usize, Vec<u32>)> = vec![];
        for (depth, level) in tree.levels().into_iter().enumerate() {
            for id in level {
                if matches!(tree.nodes[id], Node::Leaf(_)) && depth < self.settings.max_depth {
                    open.push((id, depth, std::mem::take(&mut rows[id])));
                }
            }
        }
        let mut n_free = self.settings.max_leaves.saturating_sub(tree.n_leaves());
        while !open.is_empty() && n_free > 0 {
            let found: Vec<Option<LeafSplit>> = open
                .par_iter()
                .map(|(id, _, rows)| {
                    self.monitor.check()?;
                    match &tree.nodes[*id] {
                        Node::Leaf(leaf) => self.split_leaf(leaf, rows),
                        Node::Split { .. } => Ok(None),
                    }
                })
                .collect::<Result<_>>()?;
            let mut found: Vec<(usize, usize, LeafSplit)> = open
                .into_iter()
                .zip(found)
                .filter_map(|((id, depth, _), found)| Some((id, depth, found?)))
                .collect();
            // Where there are too few leaves for all, the best come first.
            found.sort_by(|a, b| b.2.gain.total_cmp(&a.2.gain).then(a.0.cmp(&b.0)));
            found.truncate(n_free);
            n_free -= found.len();
            open = vec![];
            for (id, depth, LeafSplit { test, leaves, parts, .. }) in found {
                changed = true;
                let left = tree.nodes.len();
                tree.nodes.extend(leaves.map(Node::Leaf));
                tree.nodes[id] = Node::Split { test, left, right: left + 1 };
                if depth + 1 < self.settings.max_depth {
                    let children = [left, left + 1].into_iter().zip(parts);
                    open.extend(children.map(|(child, part)| (child, depth + 1, part)));
                }
            }
        }
        *tree = tree.compact();
        Ok(changed)
    }

    /// The best split of a leaf into two labels, if it pays.
    fn split_leaf(&self, leaf: &Leaf, rows: &[u32]) -> Result<Option<LeafSplit>> {
        let lambda = self.settings.lambda;
        let loss = |rows: &[u32], leaf: &Leaf| -> f64 {
            rows.iter().map(|&row| self.loss.of(row, leaf)).sum()
        };
        let before = loss(rows, leaf);
        let mut least = before * (1.0 - TIE);
        let mut best = None;
        if before <= 0.0 || rows.len() < 2 {
            return Ok(None);
        }
        for pair in self.pairs(rows) {
            let pure = pair.map(|label| self.loss.pure(label));
            let costs = |leaf: &Leaf| -> Vec<f64> {
                rows.iter().map(|&row| self.loss.of(row, leaf)).collect()
            };
            let reduced = Reduced::new(rows, [&costs(&pure[0]), &costs(&pure[1])]);
            if reduced.rows.is_empty() {
                continue;
            }
            let key = Key::of(&reduced, None, &[before, lambda]);
            if self.memory.is_settled(key) {
                continue;
            }
            let test = match self.splits {
                Splits::Oblique { .. } => {
                    self.logistic(None, &reduced, None)?.map(|found| Test::Oblique(found.plane))
                }
                Splits::Axis { .. } => self.best_threshold(&reduced)?.map(|found| found.0),
            };
            let Some(test) = test else {
                self.memory.settle(key);
                continue;
            };
            let parts = self.split(&test, rows);
            let leaves = [0, 1].map(|side| self.loss.leaf(&parts[side], &pure[side]));
            let after = loss(&parts[0], &leaves[0]) + loss(&parts[1], &leaves[1]);
            let value = after + lambda * self.splits.penalty(&test);
            if value >= before * (1.0 - TIE) || parts.iter().any(Vec::is_empty) {
                self.memory.settle(key);
            } else if value < least {
                least = value;
                best = Some(LeafSplit { test, leaves, parts, gain: before - value });
            }
        }
        Ok(best)
    }

    /// The pairs of labels that would cost the rows least if each row had the better of the two.
    fn pairs(&self, rows: &[u32]) -> Vec<[usize; 2]> {
        let k = self.loss.k();
        let pairs: Vec<[usize; 2]> = (0..k).flat_map(|a| (a + 1..k).map(move |b| [a, b])).collect();
        let sums = parallel::sum_rows(rows, pairs.len(), |row, sums| {
            let mut costs = vec![0.0; k];
            self.loss.add(row, &mut costs);
            for (sum, [a, b]) in sums.iter_mut().zip(&pairs) {
                *sum += costs[*a].min(costs[*b]);
            }
        });
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by(|&a, &b| sums[a].total_cmp(&sums[b]));
        order.into_iter().take(PAIRS).map(|at| pairs[at]).collect()
    }
}
