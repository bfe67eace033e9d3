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
//! | T(x; Theta) | [`DraftTree`] |
//! | reduced set R_i | `rows` of `Tao::update` |
//! | eq. (9) | [`Tao::pass`], `ReducedProblem` |
//! | eq. (10) | `Loss::leaf` |
//!
//! Departures, all of which lower the objective: a new test gets the best bias for its weights (a sweep over the
//! scores) in place of the logistic one; its weights may then be moved one by one (`ReducedProblem::refine`); a test
//! that lowers the loss by less than its penalty and that of a subtree is removed at once, with that subtree; and
//! leaves are split where that lowers the objective ([`Tao::grow`]), which restores tests that were removed too early.
//!
//! Symbols besides: `lambda` is the price of phi; a *reduced* problem is the rows of a node that cost more on one side
//! than on the other, with the differences as weights; a *plane* is the weighted sum of an oblique test.
//!
//! Every change is accepted only if it lowers the exact objective by more than rounding (`TIE`), so the objective of a
//! pass never rises, whatever the solver returns. Nodes of one depth are independent: each reads the tree as it was
//! when the depth began, and the updates are applied in the order of the nodes, so that threads change no bit.
//!
//! A pass routes every row through both subtrees of every node above it: O(depth^2) tests a row, beside the node
//! problems, which see every row once a level. Which way a row goes at a test is remembered while the test stays.

use super::draft::{DraftNode, DraftTree, Leaf};
use super::leaf_loss::Loss;
use super::logistic::{self, LogisticProblem, SolverOptions, StartPoint, StartWeights};
use super::memory::{Memory, ProblemKey};
use super::reduced::{Candidate, MIN_PENALTY, ReducedProblem, TIE};
use super::splits::Splits;
use crate::criterion::label_cost::LabelCost;
use crate::error::Result;
use crate::grow::test_of;
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::search::{Engine, SearchOptions};
use crate::tree::{Plane, Test};

/// Rows that one thread routes in one go.
const ROWS_PER_TASK: usize = 4096;
/// A better test is scaled down to lower the objective, but not below this.
const MIN_SCALE: f64 = 0.1;
/// Share by which a norm must be smaller to be clearly smaller.
const MIN_NORM_GAIN: f64 = 1e-3;
/// A share in phi that keeps a column out of a test.
const PROHIBITIVE_SHARE: f64 = 1e100;
/// Pairs of labels that a leaf is tried to be split into.
const MAX_LABEL_PAIRS: usize = 3;

/// How trees are improved.
#[derive(Debug, Clone, Copy)]
pub struct TaoSettings {
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
    pub solver: SolverOptions,
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
    /// The rows that tests are evaluated on, and how new tests are found.
    pub splits: Splits<'a, 't>,
    /// What rows cost in leaves.
    pub loss: Loss<'a>,
    /// Prices, limits and precision.
    pub settings: TaoSettings,
    /// Where a request to stop arrives.
    pub monitor: &'a Monitor,
    /// Results of earlier passes.
    pub memory: &'a Memory,
}

/// The best change of a test, as far as it lowers the objective.
enum Update {
    /// None does.
    Keep,
    /// A new test, the two children exchanged or not.
    Replace(Test, bool),
    /// The child of this side (0 left, 1 right) takes its place.
    Remove(usize),
}

/// A new split of a leaf: the test, and the leaf and the rows of each side.
struct LeafSplit {
    /// The test.
    test: Test,
    /// The leaf of each side.
    leaves: [Leaf; 2],
    /// The rows of each side.
    parts: [Vec<u32>; 2],
    /// By how much the objective falls.
    gain: f64,
}

impl Tao<'_, '_> {
    /// The rows of every node, by node id.
    pub fn rows(&self, tree: &DraftTree) -> Vec<Vec<u32>> {
        let mut rows = vec![vec![]; tree.nodes.len()];
        rows[0] = memory::collected(0..self.splits.n_samples() as u32, "the rows of the nodes");
        for level in tree.levels() {
            let parts = parallel::map(level, |id| match &tree.nodes[id] {
                DraftNode::Split { test, left, right, .. } => {
                    let [low, high] = self.split(test, &rows[id]);
                    Some([(*left, low), (*right, high)])
                }
                DraftNode::Leaf(_) => None,
            });
            for (id, part) in parts.into_iter().flatten().flatten() {
                rows[id] = part;
            }
        }
        rows
    }

    /// Whether each of the rows goes right.
    fn sides(&self, test: &Test, rows: &[u32]) -> Vec<bool> {
        self.splits.sides(test, rows, self.memory)
    }

    /// The rows of the two sides, in the order given; in blocks that do not depend on the number of threads.
    fn split(&self, test: &Test, rows: &[u32]) -> [Vec<u32>; 2] {
        let blocks = parallel::map(rows.chunks(ROWS_PER_TASK), |rows| self.sides(test, rows));
        let mut parts = [vec![], vec![]];
        for (&row, right) in rows.iter().zip(blocks.into_iter().flatten()) {
            memory::push(&mut parts[usize::from(right)], row, "the rows of the nodes");
        }
        parts
    }

    /// What each of the rows costs under a node.
    fn costs(&self, tree: &DraftTree, id: usize, rows: &[u32]) -> Vec<f64> {
        let of_block = |rows: &[u32]| {
            let mut costs = vec![0.0; rows.len()];
            let mut stack = vec![(id, (0..rows.len() as u32).collect::<Vec<u32>>())];
            while let Some((id, places)) = stack.pop() {
                match &tree.nodes[id] {
                    DraftNode::Leaf(leaf) => {
                        for place in places {
                            costs[place as usize] = self.loss.of(rows[place as usize], leaf);
                        }
                    }
                    DraftNode::Split { test, left, right, .. } => {
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
        let blocks = parallel::map(rows.chunks(ROWS_PER_TASK), of_block);
        let mut costs = memory::reserved(rows.len(), "the costs of a node's rows");
        blocks.iter().for_each(|block| costs.extend(block));
        costs
    }

    /// phi of the subtree under a node.
    pub(super) fn penalty(&self, tree: &DraftTree, id: usize) -> f64 {
        tree.tests(id).into_iter().map(|test| self.splits.penalty(test)).sum()
    }

    /// The objective of a tree.
    pub fn objective(&self, tree: &DraftTree) -> Objective {
        let rows = self.rows(tree);
        let losses = parallel::map(tree.nodes.iter().zip(&rows), |(node, rows)| match node {
            DraftNode::Leaf(leaf) => rows.iter().map(|&row| self.loss.of(row, leaf)).sum(),
            DraftNode::Split { .. } => 0.0,
        });
        Objective { loss: losses.iter().sum(), penalty: self.penalty(tree, 0) }
    }

    /// The leaf of each row, as a node id.
    pub fn leaf_of_row(&self, tree: &DraftTree) -> Vec<u32> {
        let mut leaf_of_row = memory::zeros(self.splits.n_samples(), "the leaves of the rows");
        for (id, rows) in self.rows(tree).into_iter().enumerate() {
            if matches!(tree.nodes[id], DraftNode::Leaf(_)) {
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
    pub fn pass(&self, tree: &mut DraftTree) -> Result<bool> {
        self.memory.keep_only(tree.tests(0).into_iter().filter_map(Test::plane));
        let rows = self.rows(tree);
        let mut changed = self.fit_leaves(tree, &rows);
        for level in tree.levels().iter().rev() {
            self.monitor.check()?;
            let updates = parallel::try_map(level, |&id| self.update(tree, id, &rows[id]))?;
            for (&id, update) in level.iter().zip(updates) {
                let DraftNode::Split { test, left, right, .. } = &mut tree.nodes[id] else {
                    continue;
                };
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
    fn fit_leaves(&self, tree: &mut DraftTree, rows: &[Vec<u32>]) -> bool {
        let refit = |(node, rows): (&DraftNode, &Vec<u32>)| match node {
            DraftNode::Leaf(leaf) => Some(self.loss.leaf(rows, leaf)),
            DraftNode::Split { .. } => None,
        };
        let leaves = parallel::map(tree.nodes.iter().zip(rows), refit);
        let mut changed = false;
        for (node, leaf) in tree.nodes.iter_mut().zip(leaves) {
            if let Some(leaf) = leaf.map(DraftNode::Leaf) {
                changed |= *node != leaf;
                *node = leaf;
            }
        }
        changed
    }

    /// The two-class problem of a node with the given children (eq. 9). O(depth) tests a row.
    fn reduced(&self, tree: &DraftTree, children: [usize; 2], rows: &[u32]) -> ReducedProblem {
        let [left, right] = children.map(|child| self.costs(tree, child, rows));
        ReducedProblem::new(rows, [&left, &right])
    }

    /// Fits the leaves and brings every oblique test to the scale that suits its problem. Rows go the same way.
    pub fn rescale(&self, tree: &mut DraftTree) {
        let Splits::Oblique { rows: all, shares, .. } = self.splits else { return };
        let rows = self.rows(tree);
        self.fit_leaves(tree, &rows);
        let of_node = |id: usize| match &tree.nodes[id] {
            DraftNode::Split { test: Test::Oblique(plane), left, right, .. } => {
                let reduced = self.reduced(tree, [*left, *right], &rows[id]);
                let scale = reduced.best_scale(all, plane, self.settings.lambda, shares);
                (scale > 0.0).then(|| plane.clone().scaled(scale))
            }
            _ => None,
        };
        let planes = parallel::map(0..tree.nodes.len(), of_node);
        for (node, plane) in tree.nodes.iter_mut().zip(planes) {
            if let (DraftNode::Split { test, .. }, Some(plane)) = (node, plane) {
                *test = Test::Oblique(plane);
            }
        }
    }

    /// The best change of the test of a node: to keep it, to replace it, or to remove it with one of its subtrees.
    /// `rows`: those that reach the node. What is compared is the objective under the node, as far as it depends on the
    /// test: its loss, its own penalty, and the penalties of the two subtrees, of which one goes with a test that is
    /// removed.
    fn update(&self, tree: &DraftTree, id: usize, rows: &[u32]) -> Result<Update> {
        let DraftNode::Split { test, left, right, .. } = &tree.nodes[id] else {
            return Ok(Update::Keep);
        };
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
                let TaoSettings { n_sweeps, keep_columns, steady, .. } = self.settings;
                let (sweeps, keep) = (n_sweeps as f64, f64::from(u8::from(keep_columns)));
                let numbers = [before, below[0], below[1], lambda, sweeps, keep];
                let key = ProblemKey::of(&reduced, Some(old), &numbers);
                if self.memory.is_exhausted(key) {
                    return Ok(update);
                }
                let Some(new) = self.better_plane(id, &reduced, old, now)? else {
                    self.memory.mark_exhausted(key);
                    return Ok(update);
                };
                let norm = new.plane.norm(shares);
                let below = lambda * (below[0] + below[1]);
                // A better test of a larger norm is scaled down, which moves no row. But a test whose penalty is more
                // than what it gains is removed.
                let worth =
                    matches!(update, Update::Keep) || new.loss + lambda * norm + below < best;
                // With as many mistakes, one that is merely scaled down to the old norm gains nothing.
                let only_smaller = steady && new.loss >= now - margin;
                let (gain, least) = match only_smaller {
                    true => (margin.max(MIN_NORM_GAIN * lambda * norm), 1.0),
                    false => (margin, MIN_SCALE),
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
                    self.memory.mark_exhausted(key);
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

    /// A plane better than the old one, both compared in the scale that suits them; none if there is none. The solver
    /// starts from the old plane, or from what it left at this node; its weights get the best bias, and after the first
    /// rounds one weight after the other is moved too.
    fn better_plane(
        &self,
        id: usize,
        reduced: &ReducedProblem,
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
    /// if all rows go one way. The last solve at the node leaves its curvature at least ([`TaoSettings::steady`]).
    /// With [`TaoSettings::keep_columns`] all columns but those of the old plane have a penalty that keeps them out.
    fn logistic(
        &self,
        node: Option<usize>,
        reduced: &ReducedProblem,
        start: Option<&Plane>,
    ) -> Result<Option<Candidate>> {
        let Splits::Oblique { rows, design, shares } = self.splits else { return Ok(None) };
        let mut columns = None;
        if self.settings.keep_columns {
            let Some(plane) = start else { return Ok(None) };
            let only = columns.insert(vec![PROHIBITIVE_SHARE; design.n_columns()]);
            for &(column, _) in &plane.weights {
                only[column as usize] = shares.map_or(1.0, |shares| shares[column as usize]);
            }
        }
        let problem = LogisticProblem {
            design,
            rows: &reduced.rows,
            sign: &reduced.sign,
            weight: &reduced.weight,
            lambda: self.settings.lambda.max(MIN_PENALTY * reduced.total()),
            penalty: columns.as_deref().or(shares),
        };
        let start = start.map(|plane| StartWeights { weights: &plane.weights, bias: plane.bias });
        let solved = node.map(|id| (id, self.settings.keep_columns));
        let last = solved.and_then(|solved| self.memory.last(solved));
        let resumed = match self.settings.steady {
            true => StartPoint::State,
            false => StartPoint::Curvature,
        };
        let last_first = last.iter().map(|state| resumed(state));
        let from: Vec<StartPoint<'_>> =
            last_first.chain(start.iter().map(StartPoint::Weights)).collect();
        let (solution, state) =
            logistic::solve_from(&problem, &from, self.settings.solver, self.monitor)?;
        if let Some(solved) = solved {
            self.memory.remember(solved, state);
        }
        let weights = solution.weights;
        let Some(bias) = reduced.best_bias(rows, &weights, solution.bias) else { return Ok(None) };
        let plane = Plane { weights, bias };
        let (loss, splits) = reduced.judge(rows, &plane);
        Ok(splits.then_some(Candidate { plane, loss }))
    }

    /// The best threshold test by enumeration, and its loss with the low values on the left. The caller
    /// exchanges the sides where that costs less.
    /// The search is that of threshold trees, for the two labels left and right: exact, over all columns and cuts.
    fn best_threshold(&self, reduced: &ReducedProblem) -> Result<Option<(Test, f64)>> {
        let Splits::Axis { table, index } = self.splits else { return Ok(None) };
        let n = table.n_samples();
        let mut regrets = memory::zeros(2 * n, "the problem of a node");
        for ((&row, &sign), &weight) in reduced.rows.iter().zip(&reduced.sign).zip(&reduced.weight)
        {
            regrets[2 * row as usize + usize::from(!sign)] = weight;
        }
        let criterion = LabelCost::new(&regrets, n, 2, 1)?;
        let options = SearchOptions::default();
        let engine = Engine::new(table, index, &criterion, options, self.monitor);
        let node = criterion.node(&reduced.all, reduced.rows.len());
        let searched = engine.search(&reduced.rows, node, false)?;
        let Some(best) = engine.open(&reduced.rows, &searched, None)? else { return Ok(None) };
        let test = test_of(best.feature, best.cut);
        let loss = reduced.loss(self.sides(&test, &reduced.rows));
        Ok(Some((test, loss)))
    }

    /// Splits leaves where that lowers the objective, and the new leaves again. Returns whether any was split.
    ///
    /// # Errors
    /// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
    pub fn grow(&self, tree: &mut DraftTree) -> Result<bool> {
        let mut rows = self.rows(tree);
        let mut changed = self.fit_leaves(tree, &rows);
        let mut open: Vec<(usize, usize, Vec<u32>)> = vec![];
        for (depth, level) in tree.levels().into_iter().enumerate() {
            for id in level {
                if matches!(tree.nodes[id], DraftNode::Leaf(_)) && depth < self.settings.max_depth {
                    open.push((id, depth, std::mem::take(&mut rows[id])));
                }
            }
        }
        let mut n_free = self.settings.max_leaves.saturating_sub(tree.n_leaves());
        while !open.is_empty() && n_free > 0 {
            let found = parallel::try_map(&open, |(id, _, rows)| {
                self.monitor.check()?;
                match &tree.nodes[*id] {
                    DraftNode::Leaf(leaf) => self.split_leaf(leaf, rows),
                    DraftNode::Split { .. } => Ok(None),
                }
            })?;
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
                tree.nodes.extend(leaves.map(DraftNode::Leaf));
                tree.nodes[id] = DraftNode::split(test, left, left + 1);
                if depth + 1 < self.settings.max_depth {
                    let children = [left, left + 1].into_iter().zip(parts);
                    open.extend(children.map(|(child, part)| (child, depth + 1, part)));
                }
            }
        }
        *tree = tree.compact();
        Ok(changed)
    }

    /// The best split of a leaf into two labels, if it pays. Of the most promising pairs of labels each is tried once:
    /// a test for that pair, then the best leaves for its sides.
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
                let costs = rows.iter().map(|&row| self.loss.of(row, leaf));
                memory::collected(costs, "the costs of a node's rows")
            };
            let reduced = ReducedProblem::new(rows, [&costs(&pure[0]), &costs(&pure[1])]);
            if reduced.rows.is_empty() {
                continue;
            }
            let key = ProblemKey::of(&reduced, None, &[before, lambda]);
            if self.memory.is_exhausted(key) {
                continue;
            }
            let test = match self.splits {
                Splits::Oblique { .. } => {
                    self.logistic(None, &reduced, None)?.map(|found| Test::Oblique(found.plane))
                }
                Splits::Axis { .. } => self.best_threshold(&reduced)?.map(|found| found.0),
            };
            let Some(test) = test else {
                self.memory.mark_exhausted(key);
                continue;
            };
            let parts = self.split(&test, rows);
            let leaves = [0, 1].map(|side| self.loss.leaf(&parts[side], &pure[side]));
            let after = loss(&parts[0], &leaves[0]) + loss(&parts[1], &leaves[1]);
            let value = after + lambda * self.splits.penalty(&test);
            if value >= before * (1.0 - TIE) || parts.iter().any(Vec::is_empty) {
                self.memory.mark_exhausted(key);
            } else if value < least {
                least = value;
                best = Some(LeafSplit { test, leaves, parts, gain: before - value });
            }
        }
        Ok(best)
    }

    /// The pairs of labels that would cost the rows least if each row had the better of the two.
    /// O(k^2) a row.
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
        order.into_iter().take(MAX_LABEL_PAIRS).map(|at| pairs[at]).collect()
    }
}
