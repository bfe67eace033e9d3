//! Tree alternating optimisation (TAO): a tree of hard tests improved node by node (Carreira-Perpinan and Tavallali
//! 2018; Gabidolla and Carreira-Perpinan 2022, section 8).
//!
//! The objective is the loss of the rows in their leaves plus `lambda` times phi, the sum over the tests of the l1
//! norm of their weights (axis-aligned: the number of tests). One pass visits the nodes from the deepest to the root;
//! the nodes of one depth do not affect each other and are worked on in parallel. At a test every row that reaches
//! it costs something on the left and something on the right, as the subtrees stand: a weighted two-class problem.
//!
//! | paper | here |
//! |---|---|
//! | reduced set R_i | the rows that reach the node |
//! | loss of the two children | `Sides::left`, `Sides::right` |
//! | eq. (9) | [`Tao::pass`], `Reduced` |
//! | eq. (10) | `Loss::leaf` |
//!
//! Departures: the bias of a new test is the best of all for its weights (a sweep over the scores), not the logistic
//! one; a test that is not worth its penalty is removed at once, with the side that loses; leaves are split where
//! that pays ([`Tao::grow`]), which revives what was removed.

use rayon::prelude::*;

use super::logistic::{self, Design, Options, Start};
use crate::criterion::label_cost::{CutKind, LabelCost};
use crate::error::Result;
use crate::index::Index;
use crate::parallel::{self, Monitor};
use crate::search::{Engine, SearchOptions};
use crate::table::Table;
use crate::threshold;

/// Rows that one thread routes in one go.
const BLOCK: usize = 4096;
/// A step must lower the objective by more than this share of the loss in question.
const GAIN: f64 = 1e-9;
/// Pairs of labels that a leaf is tried to be split into.
const PAIRS: usize = 3;

/// What a test asks.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `bias + sum of weight * x < 0` goes left; columns ascend.
    Oblique {
        /// Non-zero weights.
        weights: Vec<(u32, f64)>,
        /// Added to the weighted sum.
        bias: f64,
    },
    /// `x[feature] <= threshold` goes left.
    Threshold {
        /// The column.
        feature: usize,
        /// The largest value that goes left.
        threshold: f64,
    },
}

impl Test {
    /// What it adds to phi.
    pub fn penalty(&self) -> f64 {
        match self {
            Test::Oblique { weights, .. } => weights.iter().map(|w| w.1.abs()).sum(),
            Test::Threshold { .. } => 1.0,
        }
    }
}

/// What a leaf predicts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Leaf {
    /// The label.
    pub label: u32,
    /// Shares of the labels; empty where only the label counts.
    pub shares: Vec<f64>,
}

/// A node: the children of a test are anywhere behind it in [`Tree::nodes`], or before it.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A leaf.
    Leaf(Leaf),
    /// A test and its two children.
    Split {
        /// The test.
        test: Test,
        /// Where rows go whose score is negative.
        left: usize,
        /// Where the others go.
        right: usize,
    },
}

/// A tree; node 0 is the root. Nodes that are no longer reached may remain until [`Tree::compact`].
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

    /// Drops the nodes that are not reached and numbers the others level by level: siblings follow each other.
    pub fn compact(&self) -> Tree {
        let order: Vec<usize> = self.levels().into_iter().flatten().collect();
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

    /// phi of the subtree under a node.
    pub fn penalty(&self, id: usize) -> f64 {
        let (mut sum, mut stack) = (0.0, vec![id]);
        while let Some(id) = stack.pop() {
            if let Node::Split { test, left, right } = &self.nodes[id] {
                sum += test.penalty();
                stack.extend([*right, *left]);
            }
        }
        sum
    }

    /// Number of leaves.
    pub fn n_leaves(&self) -> usize {
        self.levels().iter().flatten().filter(|&&id| matches!(self.nodes[id], Node::Leaf(_))).count()
    }
}

/// What a row in a leaf costs.
#[derive(Debug, Clone, Copy)]
pub enum Loss<'a> {
    /// A cost for every row and label, n x k, not negative.
    Costs {
        /// Row-major.
        costs: &'a [f64],
        /// Number of labels.
        k: usize,
    },
    /// The row's weight if its label is not the leaf's (0/1 loss).
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
    fn of(&self, row: u32, leaf: &Leaf) -> f64 {
        match self {
            Loss::Costs { costs, k } => costs[row as usize * k + leaf.label as usize],
            Loss::Labels(labels) => {
                let same = labels.labels[row as usize] == leaf.label;
                if same { 0.0 } else { labels.weight(row) }
            }
            Loss::Squared(labels) => {
                let own = labels.labels[row as usize] as usize;
                let squares: f64 = leaf.shares.iter().map(|p| p * p).sum();
                let share = leaf.shares.get(own).copied().unwrap_or(0.0);
                labels.weight(row) * (1.0 - 2.0 * share + squares).max(0.0)
            }
        }
    }

    /// Adds what every label would cost the row.
    fn add(&self, row: u32, sums: &mut [f64]) {
        match self {
            Loss::Costs { costs, k } => {
                for (sum, x) in sums.iter_mut().zip(&costs[row as usize * k..][..*k]) {
                    *sum += x;
                }
            }
            Loss::Labels(labels) | Loss::Squared(labels) => {
                let (own, weight) = (labels.labels[row as usize], labels.weight(row));
                for (label, sum) in sums.iter_mut().enumerate() {
                    *sum += if label as u32 == own { 0.0 } else { weight };
                }
            }
        }
    }

    /// The leaf that costs the rows least (eq. 10), the lowest label among equals; `before` if there are none.
    fn leaf(&self, rows: &[u32], before: &Leaf) -> Leaf {
        if rows.is_empty() {
            return before.clone();
        }
        let k = self.k();
        let sums = parallel::sum_rows(rows, k, |row, sums| self.add(row, sums));
        // A label no better than the old one is no reason to change.
        let mut label = if (before.label as usize) < k { before.label as usize } else { 0 };
        for (other, &sum) in sums.iter().enumerate() {
            if sum < sums[label] {
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
                (0..labels.k).map(|l| if l == label { 1.0 } else { 0.0 }).collect()
            }
            _ => vec![],
        };
        Leaf { label: label as u32, shares }
    }
}

/// The columns tests are made of.
#[derive(Debug, Clone, Copy)]
pub enum Columns<'a, 't> {
    /// Oblique tests on a design matrix.
    Oblique(&'a Design<'a>),
    /// Threshold tests on the columns of a table.
    Axis {
        /// The table.
        table: &'a Table<'t>,
        /// Its index.
        index: &'a Index,
    },
}

impl Columns<'_, '_> {
    /// Whether each row goes right.
    pub fn sides(&self, test: &Test, rows: &[u32]) -> Vec<bool> {
        match (test, self) {
            (Test::Oblique { weights, bias }, Columns::Oblique(design)) => {
                scores(design, rows, weights, *bias).into_iter().map(|s| s >= 0.0).collect()
            }
            (Test::Threshold { feature, threshold }, Columns::Axis { table, .. }) => {
                let column = table.column(*feature);
                rows.iter().map(|&row| column.get(row as usize) > *threshold).collect()
            }
            // Trees are made of the tests of their columns.
            _ => vec![true; rows.len()],
        }
    }
}

/// `bias + sum of weight * x` of each row, added up in the order of the columns.
pub fn scores(design: &Design<'_>, rows: &[u32], weights: &[(u32, f64)], bias: f64) -> Vec<f64> {
    let mut scores = vec![bias; rows.len()];
    match *design {
        Design::Dense { values, n_samples } => {
            for &(column, weight) in weights {
                let cells = &values[column as usize * n_samples..][..n_samples];
                for (score, &row) in scores.iter_mut().zip(rows) {
                    *score += weight * cells[row as usize];
                }
            }
        }
        Design::Csr { indptr, indices, values, n_features } => {
            let mut dense = vec![0.0; n_features];
            for &(column, weight) in weights {
                dense[column as usize] = weight;
            }
            for (score, &row) in scores.iter_mut().zip(rows) {
                let cells = indptr[row as usize] as usize..indptr[row as usize + 1] as usize;
                for (&column, x) in indices[cells.clone()].iter().zip(&values[cells]) {
                    *score += dense[column as usize] * x;
                }
            }
        }
    }
    scores
}

fn column_cells(design: &Design<'_>, rows: &[u32], column: u32, out: &mut Vec<f64>) {
    out.clear();
    match *design {
        Design::Dense { values, n_samples } => {
            let cells = &values[column as usize * n_samples..][..n_samples];
            out.extend(rows.iter().map(|&row| cells[row as usize]));
        }
        Design::Csr { indptr, indices, values, .. } => {
            out.extend(rows.iter().map(|&row| {
                let ends = indptr[row as usize] as usize..indptr[row as usize + 1] as usize;
                let found = indices[ends.clone()].binary_search(&(column as i32));
                found.map_or(0.0, |at| values[ends.start + at])
            }));
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
    /// Of the logistic problems.
    pub solver: Options,
    /// Sweeps of the exact coordinate search at every test.
    pub n_refine: usize,
}

/// The objective and its parts.
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
    pub columns: Columns<'a, 't>,
    /// What rows cost.
    pub loss: Loss<'a>,
    /// How.
    pub settings: Settings,
    /// Number of rows.
    pub n_samples: usize,
    /// Told to stop.
    pub monitor: &'a Monitor,
}

/// What the rows that reach a node cost on either side, and what the two subtrees add to phi.
struct Sides<'r> {
    rows: &'r [u32],
    left: Vec<f64>,
    right: Vec<f64>,
    penalty: [f64; 2],
}

/// What becomes of a test.
enum Update {
    Keep,
    /// A new test; with the two children exchanged or not.
    Replace(Test, bool),
    /// The test goes; the child of this side (0 left, 1 right) takes its place.
    Remove(usize),
}

/// A test made for a reduced problem.
struct Candidate {
    test: Test,
    loss: f64,
    /// Whether rows go to both sides.
    splits: bool,
}

impl Tao<'_, '_> {
    /// The rows of every node, by node id.
    pub fn rows(&self, tree: &Tree) -> Vec<Vec<u32>> {
        let mut rows = vec![vec![]; tree.nodes.len()];
        rows[0] = (0..self.n_samples as u32).collect();
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

    fn split(&self, test: &Test, rows: &[u32]) -> [Vec<u32>; 2] {
        let blocks: Vec<Vec<bool>> =
            rows.par_chunks(BLOCK).map(|rows| self.columns.sides(test, rows)).collect();
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
            let all: Vec<u32> = (0..rows.len() as u32).collect();
            let mut stack = vec![(id, all)];
            while let Some((id, places)) = stack.pop() {
                match &tree.nodes[id] {
                    Node::Leaf(leaf) => {
                        for place in places {
                            costs[place as usize] = self.loss.of(rows[place as usize], leaf);
                        }
                    }
                    Node::Split { test, left, right } => {
                        let here: Vec<u32> = places.iter().map(|&p| rows[p as usize]).collect();
                        let sides = self.columns.sides(test, &here);
                        let mut parts = [vec![], vec![]];
                        for (place, right) in places.into_iter().zip(sides) {
                            parts[usize::from(right)].push(place);
                        }
                        for (id, part) in [*left, *right].into_iter().zip(parts) {
                            if !part.is_empty() {
                                stack.push((id, part));
                            }
                        }
                    }
                }
            }
            costs
        };
        rows.par_chunks(BLOCK).flat_map_iter(of_block).collect()
    }

    /// The objective of a tree.
    pub fn objective(&self, tree: &Tree) -> Objective {
        let rows = self.rows(tree);
        let ids: Vec<usize> = tree.levels().into_iter().flatten().collect();
        let losses: Vec<f64> = ids
            .par_iter()
            .map(|&id| match &tree.nodes[id] {
                Node::Leaf(leaf) => rows[id].iter().map(|&row| self.loss.of(row, leaf)).sum(),
                Node::Split { .. } => 0.0,
            })
            .collect();
        Objective { loss: losses.iter().sum(), penalty: tree.penalty(0) }
    }

    /// The leaf of each row, as a node id.
    pub fn leaf_of_row(&self, tree: &Tree) -> Vec<u32> {
        let mut leaf_of_row = vec![0; self.n_samples];
        for (id, rows) in self.rows(tree).into_iter().enumerate() {
            if matches!(tree.nodes[id], Node::Leaf(_)) {
                for row in rows {
                    leaf_of_row[row as usize] = id as u32;
                }
            }
        }
        leaf_of_row
    }

    /// One iteration: leaves, then tests from the deepest to the root. Returns whether anything changed. The
    /// objective does not rise.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop.
    pub fn pass(&self, tree: &mut Tree) -> Result<bool> {
        let rows = self.rows(tree);
        let levels = tree.levels();
        let mut changed = self.fit_leaves(tree, &rows);
        for level in levels.iter().rev() {
            self.monitor.check()?;
            let updates: Vec<(usize, Update)> = level
                .par_iter()
                .filter(|&&id| matches!(tree.nodes[id], Node::Split { .. }))
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

    /// Gives every leaf what costs its rows least.
    pub fn fit_leaves(&self, tree: &mut Tree, rows: &[Vec<u32>]) -> bool {
        let ids: Vec<usize> = tree.levels().into_iter().flatten().collect();
        let found: Vec<_> = ids
            .par_iter()
            .filter_map(|&id| match &tree.nodes[id] {
                Node::Leaf(leaf) => Some((id, self.loss.leaf(&rows[id], leaf))),
                Node::Split { .. } => None,
            })
            .collect();
        let mut changed = false;
        for (id, leaf) in found {
            let leaf = Node::Leaf(leaf);
            changed |= tree.nodes[id] != leaf;
            tree.nodes[id] = leaf;
        }
        changed
    }

    fn update(&self, tree: &Tree, id: usize, rows: &[u32]) -> Result<Update> {
        let Node::Split { test, left, right } = &tree.nodes[id] else { return Ok(Update::Keep) };
        let sides = Sides {
            rows,
            left: self.costs(tree, *left, rows),
            right: self.costs(tree, *right, rows),
            penalty: [tree.penalty(*left), tree.penalty(*right)],
        };
        let reduced = Reduced::new(&sides);
        let lambda = self.settings.lambda;
        let total = reduced.wrong_left + reduced.wrong_right;
        let margin = GAIN * total;
        // What there is now.
        let now = reduced.loss(&self.columns.sides(test, &reduced.rows));
        let below = sides.penalty[0] + sides.penalty[1];
        let before = now + lambda * (test.penalty() + below);
        // Without the test: one side takes all, and the penalty of the other goes with it.
        let removed = [
            reduced.wrong_left + lambda * sides.penalty[0],
            reduced.wrong_right + lambda * sides.penalty[1],
        ];
        let side = usize::from(removed[1] < removed[0]);
        let mut update = Update::Keep;
        let mut best = before - margin;
        // A test that costs nothing to lose goes.
        if removed[side] <= before {
            best = removed[side];
            update = Update::Remove(side);
        }
        if reduced.rows.is_empty() {
            return Ok(update);
        }
        let candidate = match self.columns {
            Columns::Oblique(design) => {
                let Test::Oblique { weights, bias } = test else { return Ok(update) };
                let old = reduced.rescale(design, weights, *bias, lambda);
                let old_value = now + lambda * norm(&old.0);
                let new = self.logistic(design, &reduced, Some((&old.0, old.1)))?;
                // The old test is compared in the scale that suits it: a mere rescaling is no step.
                new.filter(|new| new.loss + lambda * new.test.penalty() < old_value - margin)
            }
            Columns::Axis { .. } => self.axis(&reduced)?,
        };
        let candidate = match (candidate, self.columns) {
            (candidate, Columns::Oblique(design)) if self.settings.n_refine > 0 => {
                let start = match candidate {
                    Some(new) => new,
                    None => Candidate { test: test.clone(), loss: now, splits: true },
                };
                self.refine(design, &reduced, start)
            }
            (candidate, _) => candidate,
        };
        if let Some(mut new) = candidate.filter(|new| new.splits) {
            let exchange = new.loss > total - new.loss && matches!(new.test, Test::Threshold { .. });
            if exchange {
                new.loss = total - new.loss;
            }
            let value = new.loss + lambda * (new.test.penalty() + below);
            if value < best {
                update = Update::Replace(new.test, exchange);
            } else if let Test::Oblique { weights, bias } = new.test {
                // A larger norm in the way of a better test: rows go the same way when it is scaled down.
                let room = (best - margin - new.loss) / lambda - below;
                let scale = room / norm(&weights);
                if lambda > 0.0 && scale > SHRINK {
                    let weights = weights.into_iter().map(|(j, w)| (j, w * scale)).collect();
                    update = Update::Replace(Test::Oblique { weights, bias: bias * scale }, false);
                }
            }
        }
        Ok(update)
    }

    /// The test of the penalised logistic problem, with the best bias for its weights; none if it has no weights.
    fn logistic(
        &self,
        design: &Design<'_>,
        reduced: &Reduced,
        start: Option<(&[(u32, f64)], f64)>,
    ) -> Result<Option<Candidate>> {
        let problem = logistic::Problem {
            design,
            rows: &reduced.rows,
            sign: &reduced.sign,
            weight: &reduced.weight,
            lambda: self.settings.lambda.max(LEAST * reduced.weight.iter().sum::<f64>()),
        };
        let start = start.map(|(weights, bias)| Start { weights, bias });
        let found = logistic::solve(&problem, start.as_ref(), self.settings.solver, self.monitor)?;
        if found.weights.is_empty() {
            return Ok(None);
        }
        let sums = scores(design, &reduced.rows, &found.weights, 0.0);
        let (bias, loss, splits) = reduced.best_bias(&sums, found.bias);
        let test = Test::Oblique { weights: found.weights, bias };
        Ok(Some(Candidate { test, loss, splits }))
    }

    /// Coordinate descent on the weighted 0/1 loss itself: the best value of one weight after the other, and zero where
    /// that costs less than the weight's share of the penalty. The norm does not grow.
    fn refine(&self, design: &Design<'_>, reduced: &Reduced, start: Candidate) -> Option<Candidate> {
        let Test::Oblique { weights, bias } = &start.test else { return Some(start) };
        let lambda = self.settings.lambda;
        let (mut weights, mut bias) = (weights.clone(), *bias);
        let total = reduced.wrong_left + reduced.wrong_right;
        let mut room = norm(&weights);
        let mut loss = start.loss;
        let mut cells = vec![];
        let mut changed = false;
        for _ in 0..self.settings.n_refine {
            let mut moved = false;
            for at in 0..weights.len() {
                let (column, weight) = weights[at];
                if weight == 0.0 {
                    continue;
                }
                column_cells(design, &reduced.rows, column, &mut cells);
                let sums = scores(design, &reduced.rows, &weights, bias);
                let share = weight.abs() / norm(&weights) * room;
                let found = reduced.best_weight(&sums, &cells, weight, lambda * share);
                let Some((new, new_loss)) = found else { continue };
                let saved = if new == 0.0 { lambda * share } else { 0.0 };
                if new_loss - saved < loss - 1e-9 * total {
                    weights[at].1 = new;
                    loss = new_loss;
                    if new == 0.0 {
                        room -= share;
                    }
                    moved = true;
                }
            }
            let sums = scores(design, &reduced.rows, &weights, 0.0);
            let (new, new_loss, splits) = reduced.best_bias(&sums, bias);
            if splits && new_loss < loss - 1e-9 * total {
                bias = new;
                loss = new_loss;
                moved = true;
            }
            changed |= moved;
            if !moved {
                break;
            }
        }
        weights.retain(|w| w.1 != 0.0);
        if !changed || weights.is_empty() {
            return Some(start);
        }
        let scale = room / norm(&weights);
        weights.iter_mut().for_each(|w| w.1 *= scale);
        bias *= scale;
        let sums = scores(design, &reduced.rows, &weights, 0.0);
        let loss = reduced.exact(&sums, bias);
        let value = loss + lambda * norm(&weights);
        if value < start.loss + lambda * start.test.penalty() {
            Some(Candidate { test: Test::Oblique { weights, bias }, loss, splits: true })
        } else {
            Some(start)
        }
    }

    /// The best threshold test, by enumeration.
    fn axis(&self, reduced: &Reduced) -> Result<Option<Candidate>> {
        let Columns::Axis { table, index } = self.columns else { return Ok(None) };
        let mut regrets = vec![0.0; 2 * self.n_samples];
        for ((&row, &right), &weight) in reduced.rows.iter().zip(&reduced.sign).zip(&reduced.weight)
        {
            regrets[2 * row as usize + usize::from(!right)] = weight;
        }
        let criterion = LabelCost::new(&regrets, self.n_samples, 2, CutKind::Threshold, 1)?;
        let options = SearchOptions::default();
        let engine = Engine::new(table, index, &criterion, options, self.monitor);
        let node = criterion.node(&[reduced.wrong_left, reduced.wrong_right], reduced.rows.len());
        let searched = engine.search(&reduced.rows, node, false)?;
        let Some(best) = engine.open(&reduced.rows, &searched)? else { return Ok(None) };
        let gap = best.cut.upper;
        let test = Test::Threshold {
            feature: best.feature,
            threshold: threshold::between(gap.below, gap.above),
        };
        let loss = reduced.loss(&self.columns.sides(&test, &reduced.rows));
        Ok(Some(Candidate { test, loss, splits: true }))
    }

    /// Splits leaves where that lowers the objective, deeper and deeper. Returns whether any was split.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop.
    pub fn grow(&self, tree: &mut Tree) -> Result<bool> {
        let rows = self.rows(tree);
        let mut open: Vec<(usize, usize, Vec<u32>)> = vec![];
        for (depth, level) in tree.levels().into_iter().enumerate() {
            for id in level {
                if matches!(tree.nodes[id], Node::Leaf(_)) && depth < self.settings.max_depth {
                    open.push((id, depth, rows[id].clone()));
                }
            }
        }
        let mut changed = false;
        while !open.is_empty() {
            self.monitor.check()?;
            let found: Vec<_> = open
                .par_iter()
                .map(|(id, _, rows)| match &tree.nodes[*id] {
                    Node::Leaf(leaf) => self.split_leaf(leaf, rows),
                    Node::Split { .. } => Ok(None),
                })
                .collect::<Result<_>>()?;
            let mut next = vec![];
            for ((id, depth, _), found) in open.into_iter().zip(found) {
                let Some((test, leaves, parts)) = found else { continue };
                changed = true;
                let left = tree.nodes.len();
                tree.nodes.extend(leaves.map(Node::Leaf));
                tree.nodes[id] = Node::Split { test, left, right: left + 1 };
                if depth + 1 < self.settings.max_depth {
                    for (side, part) in parts.into_iter().enumerate() {
                        next.push((left + side, depth + 1, part));
                    }
                }
            }
            open = next;
        }
        *tree = tree.compact();
        Ok(changed)
    }

    /// The best split of a leaf, if it pays.
    #[allow(clippy::type_complexity, reason = "a test, its leaves and their rows")]
    fn split_leaf(
        &self,
        leaf: &Leaf,
        rows: &[u32],
    ) -> Result<Option<(Test, [Leaf; 2], [Vec<u32>; 2])>> {
        let cost: f64 = rows.iter().map(|&row| self.loss.of(row, leaf)).sum();
        if cost <= 0.0 || rows.len() < 2 {
            return Ok(None);
        }
        let mut best = None;
        let mut least = cost * (1.0 - GAIN);
        for (a, b) in self.pairs(rows) {
            let leaves = [self.loss.pure(a), self.loss.pure(b)];
            let costs =
                |leaf: &Leaf| rows.iter().map(|&row| self.loss.of(row, leaf)).collect::<Vec<f64>>();
            let sides = Sides {
                rows,
                left: costs(&leaves[0]),
                right: costs(&leaves[1]),
                penalty: [0.0, 0.0],
            };
            let reduced = Reduced::new(&sides);
            let candidate = match self.columns {
                _ if reduced.rows.is_empty() => None,
                Columns::Oblique(design) => self.logistic(design, &reduced, None)?,
                Columns::Axis { .. } => self.axis(&reduced)?,
            };
            let Some(new) = candidate.filter(|new| new.splits) else { continue };
            let parts = self.split(&new.test, rows);
            if parts.iter().any(Vec::is_empty) {
                continue;
            }
            let leaves = [0, 1].map(|side| self.loss.leaf(&parts[side], &leaves[side]));
            let after: f64 = (0..2)
                .map(|side| {
                    parts[side].iter().map(|&row| self.loss.of(row, &leaves[side])).sum::<f64>()
                })
                .sum();
            let value = after + self.settings.lambda * new.test.penalty();
            if value < least {
                least = value;
                best = Some((new.test, leaves, parts));
            }
        }
        Ok(best)
    }

    /// The pairs of labels that would cost the rows least if each row had the better one.
    fn pairs(&self, rows: &[u32]) -> Vec<(usize, usize)> {
        let k = self.loss.k();
        let n_pairs = k * (k.max(1) - 1) / 2;
        let sums = parallel::sum_rows(rows, n_pairs, |row, sums| {
            let mut costs = vec![0.0; k];
            self.loss.add(row, &mut costs);
            let mut at = 0;
            for a in 0..k {
                for b in a + 1..k {
                    sums[at] += costs[a].min(costs[b]);
                    at += 1;
                }
            }
        });
        let mut pairs: Vec<((usize, usize), f64)> =
            (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b))).zip(sums).collect();
        pairs.sort_by(|x, y| x.1.total_cmp(&y.1));
        pairs.into_iter().take(PAIRS).map(|pair| pair.0).collect()
    }
}

/// A step is not taken if the new test would have to be scaled down below this.
const SHRINK: f64 = 0.1;
/// The logistic problem has at least this penalty, as a share of the weight: without any it may have no minimum.
const LEAST: f64 = 1e-7;

fn norm(weights: &[(u32, f64)]) -> f64 {
    weights.iter().map(|w| w.1.abs()).sum()
}

/// The two-class problem of a node: rows that cost the same on both sides are left out.
struct Reduced {
    rows: Vec<u32>,
    /// Whether the right side is the cheaper one.
    sign: Vec<bool>,
    /// How much cheaper.
    weight: Vec<f64>,
    /// Loss if all rows go left.
    wrong_left: f64,
    /// Loss if all rows go right.
    wrong_right: f64,
}

impl Reduced {
    fn new(sides: &Sides<'_>) -> Self {
        let mut reduced = Reduced {
            rows: vec![],
            sign: vec![],
            weight: vec![],
            wrong_left: 0.0,
            wrong_right: 0.0,
        };
        for ((&row, &left), &right) in sides.rows.iter().zip(&sides.left).zip(&sides.right) {
            if left == right {
                continue;
            }
            reduced.rows.push(row);
            reduced.sign.push(right < left);
            reduced.weight.push((left - right).abs());
            if right < left {
                reduced.wrong_left += left - right;
            } else {
                reduced.wrong_right += right - left;
            }
        }
        reduced
    }

    /// Weight of the rows sent to the dearer side.
    fn loss(&self, goes_right: &[bool]) -> f64 {
        let wrong = self.sign.iter().zip(goes_right).zip(&self.weight);
        wrong.filter(|((sign, right), _)| sign != right).map(|(_, weight)| weight).sum()
    }

    /// The bias that sends the least weight to the dearer side, the loss, and whether rows go both ways. `sums`: the
    /// scores without a bias. Among equally good gaps the one nearest to `hint` is taken, and `hint` itself if it lies
    /// in it, else the middle.
    fn best_bias(&self, sums: &[f64], hint: f64) -> (f64, f64, bool) {
        let mut order: Vec<u32> = (0..sums.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| {
            sums[a as usize].total_cmp(&sums[b as usize]).then(a.cmp(&b))
        });
        let at = |i: usize| sums[order[i] as usize];
        // loss_at: of sending the first i rows left.
        let total = self.wrong_left + self.wrong_right;
        let mut loss = self.wrong_right;
        let mut least = f64::INFINITY;
        let mut losses = vec![f64::INFINITY; order.len() + 1];
        for i in 0..=order.len() {
            if i > 0 {
                let row = order[i - 1] as usize;
                loss += if self.sign[row] { self.weight[row] } else { -self.weight[row] };
            }
            if i == 0 || i == order.len() || at(i - 1) < at(i) {
                losses[i] = loss;
                least = least.min(loss);
            }
        }
        let tie = least + 1e-12 * total;
        let mut found = (f64::INFINITY, 0);
        let cut = -hint;
        for (i, &loss) in losses.iter().enumerate() {
            if loss <= tie {
                let below = if i == 0 { f64::NEG_INFINITY } else { at(i - 1) };
                let above = if i == order.len() { f64::INFINITY } else { at(i) };
                let distance = (below - cut).max(cut - above).max(0.0);
                if distance < found.0 {
                    found = (distance, i);
                }
            }
        }
        let i = found.1;
        if i == 0 || i == order.len() {
            return (hint, least.max(0.0), false);
        }
        let (below, above) = (at(i - 1), at(i));
        // Away from the ends, so that rounding does not decide.
        let guard = 0.01 * (above - below);
        let mut bias = -cut;
        if !(below + guard < cut && cut < above - guard) {
            bias = -(below / 2.0 + above / 2.0);
        }
        (bias, self.exact(sums, bias), true)
    }

    /// The value of one weight that sends least to the dearer side, and that loss; zero if its loss is more by less
    /// than `price`. `scores`: with the weight as it is; `cells`: its column.
    fn best_weight(
        &self,
        scores: &[f64],
        cells: &[f64],
        weight: f64,
        price: f64,
    ) -> Option<(f64, f64)> {
        let mut loss = 0.0;
        let mut zero = f64::INFINITY;
        // (change of the weight at which the row changes side, what the loss changes by).
        let mut ends: Vec<(f64, f64)> = Vec::with_capacity(cells.len());
        for (i, (&score, &x)) in scores.iter().zip(cells).enumerate() {
            let (sign, cost) = (self.sign[i], self.weight[i]);
            if x == 0.0 {
                if (score >= 0.0) != sign {
                    loss += cost;
                }
                continue;
            }
            // Far to the left of all changes the row is on the side of -x.
            let right = x < 0.0;
            if right != sign {
                loss += cost;
                ends.push((-score / x, -cost));
            } else {
                ends.push((-score / x, cost));
            }
        }
        if ends.is_empty() {
            return None;
        }
        ends.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut best: Option<(f64, f64)> = None;
        let mut below = f64::NEG_INFINITY;
        for i in 0..=ends.len() {
            let above = ends.get(i).map_or(f64::INFINITY, |end| end.0);
            if above > below {
                // The smallest change in [below, above], away from the ends.
                let guard = if below.is_finite() && above.is_finite() {
                    0.1 * (above - below)
                } else {
                    0.01 * weight.abs()
                };
                let change = (0.0f64).max(below + guard).min(above - guard);
                if change > below && change < above && best.is_none_or(|b| loss < b.1) {
                    best = Some((weight + change, loss));
                }
                if below < -weight && -weight < above {
                    zero = loss;
                }
            }
            below = above;
            if let Some(end) = ends.get(i) {
                loss += end.1;
            }
        }
        best.map(|b| if zero - price < b.1 { (0.0, zero) } else { b })
    }

    fn exact(&self, sums: &[f64], bias: f64) -> f64 {
        let right: Vec<bool> = sums.iter().map(|s| bias + s >= 0.0).collect();
        self.loss(&right)
    }

    /// Scales a test so that the penalised logistic loss is least.
    fn rescale(
        &self,
        design: &Design<'_>,
        weights: &[(u32, f64)],
        bias: f64,
        lambda: f64,
    ) -> (Vec<(u32, f64)>, f64) {
        let scores = scores(design, &self.rows, weights, bias);
        let total: f64 = self.weight.iter().sum();
        let lambda = lambda.max(LEAST * total) * norm(weights);
        // The derivative in the scale rises; find its zero by Newton steps kept in a bracket.
        let slope = |scale: f64| {
            let (mut first, mut second) = (lambda, 0.0);
            for ((&score, &sign), &weight) in scores.iter().zip(&self.sign).zip(&self.weight) {
                let score = if sign { score } else { -score };
                let p = 1.0 / (1.0 + (scale * score).exp());
                first -= weight * score * p;
                second += weight * score * score * p * (1.0 - p);
            }
            (first, second)
        };
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut scale = 1.0;
        for _ in 0..60 {
            let (first, second) = slope(scale);
            if first.abs() <= 1e-6 * total.max(lambda) {
                break;
            }
            if first > 0.0 { high = scale } else { low = scale }
            let newton = scale - first / second;
            let inside = newton > low && newton < high && newton.is_finite();
            scale = match inside {
                true if newton < 8.0 * scale => newton,
                _ if high.is_infinite() => 4.0 * scale,
                _ => low / 2.0 + high / 2.0,
            };
            if scale < 1e-6 || scale > 1e6 {
                break;
            }
        }
        (weights.iter().map(|&(j, w)| (j, w * scale)).collect(), bias * scale)
    }
}
