//! Growth: best first over any criterion, and splitting to the end.
//!
//! [`GrowingTree`] is a tree that grows, with the rows of its nodes. Two loops split it:
//!
//! - `best_first` splits the leaf whose best cut scores most until a limit is met (ExKMC; Frost, Moshkovitz and
//!   Rashtchian 2020, Algorithm 1). Leaves wait in two queues: searched ones by an upper bound, opened ones by their
//!   exact score. A leaf is opened only when its bound comes within the margin of the best exact score, so most are
//!   never opened and the order is that of exact scores.
//! - `split_all` splits every node that a `Splitter` calls unfinished, in order of their ids (IMM).
//!
//! **Ties.** Among leaves whose scores are within `LEAF_TIE` times the tree's cost of the best, the lowest id is split.
//!
//! **Cost.** A split searches two children: O(rows x columns) for the smaller one, and for the larger one as well where
//! its sums cannot be had by subtraction. Histograms of waiting leaves take at most `MAX_HISTOGRAM_BYTES`.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::criterion::{Criterion, Cut, CutForm, Gap};
use crate::error::{Error, Result};
use crate::exact::{ExactRows, ExactSums};
use crate::index::BinnedColumn;
use crate::memory;
use crate::node_sums::{BaseNode, NodeSums};
use crate::parallel::Monitor;
use crate::partition::{self, Partition, Segment, others_go_left};
use crate::placement;
use crate::search::{BestCut, Engine, NodeSearch};
use crate::table::{Column, Table};
use crate::tree::{Test, TestArrays};

/// Most bytes of histograms held for waiting leaves; beyond that a leaf's are dropped and its children's are filled
/// from rows.
const MAX_HISTOGRAM_BYTES: usize = 40 << 20;
/// Scores of leaves closer than this share of the tree's cost are tied.
pub(crate) const LEAF_TIE: f64 = 1e-12;
/// Gaps closer in width than this share of the column's range are tied.
pub(crate) const WIDTH_TIE: f64 = 1e-9;

/// A node of a tree that grows.
#[derive(Debug, Clone, PartialEq)]
pub struct GrownNode {
    /// The node's rows.
    pub segment: Segment,
    /// Distance from the root.
    pub depth: usize,
    /// The node's test.
    pub test: Test,
    /// Left child; the right one follows it. 0 at leaves.
    pub left: usize,
    /// Whether missing cells go left; false at leaves.
    pub missing_left: bool,
    /// The score of its cut; NaN at leaves.
    pub score: f64,
    /// The sums over its rows, of the function that [`GrowingTree::new`] takes.
    pub sums: Vec<f64>,
}

/// The nodes of a fitted tree. Entries are by node id, the root first, children after their parents: `n_nodes` of them
/// where nothing else is said.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedNodes {
    /// Tests.
    pub tests: Vec<Test>,
    /// Left child, the right one follows it; 0 at leaves.
    pub left: Vec<usize>,
    /// Whether missing cells go left; false at leaves.
    pub missing_left: Vec<bool>,
    /// Number of rows.
    pub n_samples: Vec<usize>,
    /// Weight of the rows.
    pub weight: Vec<f64>,
    /// n_samples entries: node id of each row's leaf.
    pub leaf_of_row: Vec<u32>,
}

impl FittedNodes {
    /// The tests as arrays.
    pub fn arrays(&self) -> TestArrays {
        let children = self.left.iter().map(|&left| [left, left + 1]);
        let arrays = TestArrays::of(self.tests.iter().zip(children));
        TestArrays { missing_go_to_left: Some(self.missing_left.clone()), ..arrays }
    }
}

/// A tree that grows, with the rows of its nodes. Node ids are in order of creation.
pub struct GrowingTree<'a> {
    /// The nodes, children after their parents.
    pub nodes: Vec<GrownNode>,
    /// The rows of every node.
    pub partition: Partition,
    sums: NodeSums<'a>,
}

impl<'a> GrowingTree<'a> {
    /// A single leaf with all rows, numbered from 0. `sum` returns the sums over some rows; it is called for every node
    /// when the node is made, so that a node's sums do not depend on what grows below it.
    pub fn new(n_samples: usize, sum: impl Fn(&[u32]) -> Vec<f64> + Sync + 'a) -> Self {
        GrowingTree::with(n_samples, NodeSums::plain(sum))
    }

    /// [`GrowingTree::new`] whose sums are `width` exact ones, rounded: `add(row, group, sums)` adds a row to those of a
    /// group. They are those of the node's rows in any order.
    ///
    /// No node has sums until [`GrowingTree::end_base`] adds up those there are by then.
    pub fn with_exact_sums(
        n_samples: usize,
        width: usize,
        add: impl Fn(u32, usize, &mut ExactRows) + Sync + 'a,
    ) -> Self {
        GrowingTree::with(n_samples, NodeSums::exact(width, add))
    }

    fn with(n_samples: usize, mut sums: NodeSums<'a>) -> Self {
        let (partition, segment) = Partition::new(n_samples);
        let of_root = sums.of_root(partition.all(segment));
        let mut grown = GrowingTree { nodes: vec![], partition, sums };
        grown.push_leaf(segment, 0, of_root);
        grown
    }

    /// Gives all nodes their sums; those that come later get theirs when they are made. All rows of leaves are searched
    /// from here on.
    pub fn end_base(&mut self) {
        let leaves = self.nodes.iter_mut().filter(|node| node.test == Test::Leaf);
        let mut segments: Vec<&mut Segment> = leaves.map(|leaf| &mut leaf.segment).collect();
        self.partition.restore(&mut segments);
        let of_node = |node: &GrownNode| match node.test {
            Test::Leaf => BaseNode::Leaf(self.partition.all(node.segment)),
            _ => BaseNode::Inner { left: node.left },
        };
        let nodes: Vec<BaseNode<'_>> = self.nodes.iter().map(of_node).collect();
        let sums = self.sums.end_base(&nodes).into_iter().flatten();
        self.nodes.iter_mut().zip(sums).for_each(|(node, sums)| node.sums = sums);
    }

    fn push_leaf(&mut self, segment: Segment, depth: usize, sums: Vec<f64>) {
        let (test, score) = (Test::Leaf, f64::NAN);
        let (left, missing_left) = (0, false);
        self.nodes.push(GrownNode { segment, depth, test, left, missing_left, score, sums });
    }

    /// The nodes as arrays. `weight`: the weight of a node's rows.
    pub fn fitted_nodes(&self, weight: impl Fn(&GrownNode) -> f64) -> FittedNodes {
        FittedNodes {
            tests: self.nodes.iter().map(|node| node.test.clone()).collect(),
            left: self.nodes.iter().map(|node| node.left).collect(),
            missing_left: self.nodes.iter().map(|node| node.missing_left).collect(),
            n_samples: self.nodes.iter().map(|node| node.segment.len()).collect(),
            weight: self.nodes.iter().map(weight).collect(),
            leaf_of_row: self.leaf_of_row(),
        }
    }

    /// The leaf of each row, as a node id.
    fn leaf_of_row(&self) -> Vec<u32> {
        let runs = |id: usize| {
            let segment = self.nodes[id].segment;
            [self.partition.active(segment), self.partition.dropped(segment)]
                .map(|run| (id as u32, run))
        };
        let runs: Vec<(u32, &[u32])> = self.leaves().flat_map(runs).collect();
        partition::numbers_of_rows(&runs, self.nodes[0].segment.len())
    }

    /// The leaves' ids in ascending order.
    pub fn leaves(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|&id| self.nodes[id].test == Test::Leaf)
    }

    /// Splits a leaf by a cut of a column; returns the left child's id (the right one follows) and the rows that are
    /// not searched from here on. `others_go_left` says on which side lies what the cut leaves open: missing cells and
    /// levels that no searched row has.
    ///
    /// `binned`: the cut's column. `keep(row, left)`: whether a searched row stays one on its side.
    pub fn split(
        &mut self,
        table: &Table<'_>,
        binned: &BinnedColumn,
        id: usize,
        best: &BestCut,
        keep: impl Fn(u32, bool) -> bool + Sync,
    ) -> (usize, Vec<u32>) {
        // The bin, one byte, decides for most rows: reading their cells would be random access.
        let column = table.column(best.feature);
        let segment = self.nodes[id].segment;
        let mut cut = best.cut;
        if let CutForm::Range { upper: gap, .. } = cut.form {
            let reaches_gap = binned.per_bin(|low, high| gap.below < high && low < gap.above);
            let all_dropped = self.partition.dropped(segment);
            let in_gap = all_dropped
                .iter()
                .map(|&row| row as usize)
                .filter(|&row| reaches_gap[usize::from(binned.codes[row])]);
            let mut dropped = memory::reserved(all_dropped.len(), "the dropped rows of a node");
            dropped.extend(in_gap.map(|row| column.get(row)));
            cut = narrow(cut, &dropped, 2.0 * binned.half_range());
        }
        let (active, all) = (self.partition.active(segment), self.partition.all(segment));
        let cut = complete(cut, column, binned, active, all);
        let side = binned.per_bin(|low, high| cut.side(low, high));
        let go_left = |rows: &[u32], sides: &mut Vec<bool>| {
            sides.extend(rows.iter().map(|&row| {
                let row = row as usize;
                side[usize::from(binned.codes[row])]
                    .unwrap_or_else(|| cut.goes_left(column.get(row)))
            }));
        };
        let found = self.split_by(id, test_of(best.feature, cut), best.score, go_left, keep);
        if let Some(missing_left) = cut.missing_left {
            self.nodes[id].missing_left = missing_left;
        }
        found
    }

    /// [`GrowingTree::split`] by any test, of a column without missing cells. `go_left(rows, sides)` appends to `sides`
    /// whether each row goes left by the test.
    pub fn split_by(
        &mut self,
        id: usize,
        test: Test,
        score: f64,
        go_left: impl Fn(&[u32], &mut Vec<bool>) + Sync,
        keep: impl Fn(u32, bool) -> bool + Sync,
    ) -> (usize, Vec<u32>) {
        let GrownNode { segment, depth, .. } = self.nodes[id];
        let (left, right, removed) = self.partition.split(segment, go_left, keep);
        let first = self.nodes.len();
        let rows = [left, right].map(|segment| self.partition.all(segment));
        let [left_sums, right_sums] = self.sums.of_children(id, rows);
        self.push_leaf(left, depth + 1, left_sums);
        self.push_leaf(right, depth + 1, right_sums);
        let node = &mut self.nodes[id];
        (node.test, node.left, node.score) = (test, first, score);
        node.missing_left = others_go_left(left.len(), right.len());
        (first, removed)
    }
}

/// The cut with a side for all levels and for missing cells, also those that no searched row of the node has. `active`: the searched rows; `all`: all rows of the node.
fn complete(
    cut: Cut,
    column: &Column<'_>,
    binned: &BinnedColumn,
    active: &[u32],
    all: &[u32],
) -> Cut {
    let is_open = cut.missing_left.is_none() && binned.form.has_missing;
    if !binned.form.is_levels && !is_open {
        return cut;
    }
    let bin = |row: u32| usize::from(binned.codes[row as usize]);
    let mut is_known = vec![!binned.form.is_levels; binned.n_bins()];
    if let Some(missing) = binned.missing() {
        is_known[usize::from(missing)] = cut.missing_left.is_some();
    }
    active.iter().for_each(|&row| is_known[bin(row)] = true);
    let side = binned.per_bin(|low, high| cut.side(low, high));
    let (mut n_left, mut n_right) = (0, 0);
    for &row in all.iter().filter(|&&row| is_known[bin(row)]) {
        let goes_left = side[bin(row)].unwrap_or_else(|| cut.goes_left(column.get(row as usize)));
        n_left += usize::from(goes_left);
        n_right += usize::from(!goes_left);
    }
    let n_levels = column.n_levels().unwrap_or(0);
    with_all_sides(cut, [n_left, n_right], n_levels, |code| is_known[code])
}

/// The cut with a side for missing cells and for the levels of the column that no row of the node has: the side with
/// more rows, where the cut says nothing. `n_rows`: on the left and on the right.
pub(crate) fn with_all_sides(
    mut cut: Cut,
    [n_left, n_right]: [usize; 2],
    n_levels: usize,
    is_present: impl Fn(usize) -> bool,
) -> Cut {
    let most_left = others_go_left(n_left, n_right);
    cut.missing_left = cut.missing_left.or(Some(most_left));
    // Where no level present lies on the right, the others are the right side.
    if let CutForm::Levels(left) = &mut cut.form
        && most_left
        && n_right > 0
    {
        (0..n_levels).filter(|&code| !is_present(code)).for_each(|code| left.insert(code as u8));
    }
    cut
}

/// Narrows the upper gap to its widest part between the values in `dropped`, those of rows that are not searched but
/// pass here too; the lowest of parts as wide up to a tie, or the rounding of a center would decide between equal
/// parts.
/// `range`: the column's.
pub(crate) fn narrow(mut cut: Cut, dropped: &[f64], range: f64) -> Cut {
    let CutForm::Range { upper: gap, .. } = &mut cut.form else { return cut };
    let mut ends: Vec<f64> = memory::reserved(dropped.len() + 2, "the dropped rows of a node");
    ends.extend(dropped.iter().copied().filter(|&x| gap.below < x && x < gap.above));
    if ends.is_empty() {
        return cut;
    }
    ends.extend([gap.below, gap.above]);
    ends.sort_unstable_by(f64::total_cmp);
    ends.dedup();
    let half_width = |pair: &[f64]| pair[1] / 2.0 - pair[0] / 2.0;
    let widest = ends.windows(2).map(half_width).fold(0.0, f64::max);
    let tie = WIDTH_TIE * range / 2.0;
    if let Some(pair) = ends.windows(2).find(|pair| half_width(pair) >= widest - tie) {
        *gap = Gap { below: pair[0], above: pair[1] };
    }
    cut
}

/// The test of a cut, its ends placed in the cut's gaps.
pub(crate) fn test_of(feature: usize, cut: Cut) -> Test {
    let (lower, upper) = match cut.form {
        CutForm::Range { lower, upper } => (lower, placement::between(upper.below, upper.above)),
        CutForm::Levels(left) => return Test::Levels { feature, left },
        CutForm::Missing => return Test::Missing { feature },
    };
    match lower {
        None => Test::Threshold { feature, threshold: upper },
        Some(gap) => {
            let lower = placement::lower_end(gap.below, gap.above);
            Test::Interval { feature, lower, upper }
        }
    }
}

/// When growth stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most leaves.
    pub max_leaves: usize,
    /// Deepest leaf that growth may make; the root has depth 0. None: no limit.
    pub max_depth: Option<usize>,
    /// Fewest rows of a leaf that growth may make.
    pub min_samples_leaf: usize,
}

/// A number in the order of `total_cmp`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TotalOrder(f64);

impl Eq for TotalOrder {}

impl PartialOrd for TotalOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TotalOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Leaves that wait to be split, by the score of their best cut.
#[derive(Debug, Default)]
pub(crate) struct LeafQueue(BinaryHeap<(TotalOrder, Reverse<usize>)>);

impl LeafQueue {
    /// Adds a leaf.
    pub(crate) fn push(&mut self, score: f64, id: usize) {
        self.0.push((TotalOrder(score), Reverse(id)));
    }

    /// The best score; minus infinity if no leaf waits.
    pub(crate) fn best(&self) -> f64 {
        self.0.peek().map_or(f64::NEG_INFINITY, |top| top.0.0)
    }

    /// Takes the leaf of lowest id out of those whose score is within `margin` of the best; none if no leaf waits.
    pub(crate) fn pop(&mut self, margin: f64) -> Option<usize> {
        let floor = self.best() - margin;
        let mut tied = Vec::new();
        while let Some(top) = self.0.peek().copied().filter(|top| top.0.0 >= floor) {
            self.0.pop();
            tied.push(top);
        }
        let first = tied.iter().map(|top| top.1.0).min()?;
        self.0.extend(tied.into_iter().filter(|top| top.1.0 != first));
        Some(first)
    }
}

/// What searches the nodes of a growing tree and splits them: by the columns of a table ([`Engine`]) or by the cells of
/// sparse rows (`sparse::search`).
pub(crate) trait Searcher {
    /// What cuts are worth.
    type Criterion: Criterion;
    /// A node that was searched.
    type Searched: Searched<Node = CriterionNode<Self>>;

    /// What cuts are worth.
    fn criterion(&self) -> &Self::Criterion;

    /// What long work asks whether to stop.
    fn monitor(&self) -> &Monitor;

    /// Searches a node on its own, from its rows. `keep`: hold what shortens the search of its children.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop.
    fn search(&self, rows: &[u32], node: CriterionNode<Self>, keep: bool)
    -> Result<Self::Searched>;

    /// Searches the two children of a split node, given as searched rows and node (none: the child is not searched).
    /// `removed`: searched rows of the parent that are in neither child.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop.
    fn search_children(
        &self,
        parent: Self::Searched,
        children: [(&[u32], Option<CriterionNode<Self>>); 2],
        removed: &[u32],
        keep: bool,
    ) -> Result<[Option<Self::Searched>; 2]>;

    /// The best cut of a searched node, exactly; none if no cut is worth taking. `total`: exact sums of the searched rows,
    /// the criterion's first, if they are known.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop.
    fn open(
        &self,
        rows: &[u32],
        searched: &Self::Searched,
        total: Option<&ExactSums>,
    ) -> Result<Option<BestCut>>;

    /// Splits a leaf by a cut; returns and takes what [`GrowingTree::split`] does.
    fn split(
        &self,
        grown: &mut GrowingTree<'_>,
        id: usize,
        best: &BestCut,
        keep: impl Fn(u32, bool) -> bool + Sync,
    ) -> (usize, Vec<u32>);
}

/// A node of a searcher's criterion.
type CriterionNode<S> = <<S as Searcher>::Criterion as Criterion>::Node;

/// A node that was searched.
pub(crate) trait Searched {
    /// The criterion's node.
    type Node;

    /// The criterion's node.
    fn node(&self) -> &Self::Node;

    /// No cut of the node scores more; none if no cut is worth taking.
    fn upper(&self) -> Option<f64>;

    /// Bytes that may be dropped.
    fn bytes(&self) -> usize {
        0
    }

    /// Drops these bytes if with them more than `budget` would be held in all, `total` by other nodes; returns those
    /// that the node holds now.
    fn keep_within(&mut self, total: usize, budget: usize) -> usize {
        let _ = (total, budget);
        0
    }
}

impl<N> Searched for NodeSearch<N> {
    type Node = N;

    fn node(&self) -> &N {
        &self.node
    }

    fn upper(&self) -> Option<f64> {
        NodeSearch::upper(self)
    }

    fn bytes(&self) -> usize {
        NodeSearch::bytes(self)
    }

    fn keep_within(&mut self, total: usize, budget: usize) -> usize {
        NodeSearch::keep_within(self, total, budget)
    }
}

impl<C: Criterion> Searcher for Engine<'_, '_, C> {
    type Criterion = C;
    type Searched = NodeSearch<C::Node>;

    fn criterion(&self) -> &C {
        self.criterion
    }

    fn monitor(&self) -> &Monitor {
        self.monitor
    }

    fn search(&self, rows: &[u32], node: C::Node, keep: bool) -> Result<NodeSearch<C::Node>> {
        Engine::search(self, rows, node, keep)
    }

    fn search_children(
        &self,
        parent: NodeSearch<C::Node>,
        children: [(&[u32], Option<C::Node>); 2],
        removed: &[u32],
        keep: bool,
    ) -> Result<[Option<NodeSearch<C::Node>>; 2]> {
        Engine::search_children(self, parent.histogram, children, removed, keep)
    }

    fn open(
        &self,
        rows: &[u32],
        searched: &NodeSearch<C::Node>,
        total: Option<&ExactSums>,
    ) -> Result<Option<BestCut>> {
        Engine::open(self, rows, searched, total)
    }

    fn split(
        &self,
        grown: &mut GrowingTree<'_>,
        id: usize,
        best: &BestCut,
        keep: impl Fn(u32, bool) -> bool + Sync,
    ) -> (usize, Vec<u32>) {
        grown.split(self.table, self.index.column(best.feature), id, best, keep)
    }
}

/// A leaf that waits to be split.
struct Leaf<D> {
    searched: D,
    /// Its best cut, once it is opened.
    cut: Option<BestCut>,
}

/// Best-first growth from the leaves of `grown`: splits the leaf whose best cut scores most, the lowest id among tied
/// ones, until a limit is met or no leaf has a cut worth taking. `make_node` returns the criterion's node of a tree's
/// node.
///
/// # Errors
/// [`Error::Interrupted`] if the monitor was asked to stop.
pub(crate) fn best_first<S: Searcher>(
    engine: &S,
    grown: &mut GrowingTree<'_>,
    limits: Limits,
    make_node: impl Fn(&GrownNode) -> CriterionNode<S>,
) -> Result<()> {
    let criterion = engine.criterion();
    let mut growth = Growth {
        engine,
        leaves: std::iter::repeat_with(|| None).take(grown.nodes.len()).collect(),
        bounded: BinaryHeap::new(),
        opened: LeafQueue::default(),
        cost: 0.0,
        kept_bytes: 0,
    };
    let mut n_leaves = grown.leaves().count();
    if n_leaves >= limits.max_leaves {
        return Ok(());
    }
    let searchable = |grown: &GrowingTree<'_>, id: usize| {
        let GrownNode { segment, depth, .. } = grown.nodes[id];
        limits.max_depth.is_none_or(|most| depth < most)
            && segment.len() >= 2 * limits.min_samples_leaf.max(1)
    };
    for id in grown.leaves().collect::<Vec<_>>() {
        let rows = grown.partition.active(grown.nodes[id].segment);
        let node = make_node(&grown.nodes[id]);
        let scale = criterion.scale(&node);
        growth.cost += scale.cost;
        if scale.cost > 0.0 && searchable(grown, id) {
            let keep = growth.may_keep();
            growth.add(id, engine.search(rows, node, keep)?);
        }
    }
    while n_leaves < limits.max_leaves {
        let Some((id, leaf, best)) = growth.next(grown)? else { break };
        let (left, _) = engine.split(grown, id, &best, |_, _| true);
        growth.cost -= criterion.scale(leaf.searched.node()).cost;
        n_leaves += 1;
        engine.monitor().report(n_leaves, best.score);
        let children = [left, left + 1].map(|child| {
            let rows = grown.partition.active(grown.nodes[child].segment);
            let node = make_node(&grown.nodes[child]);
            let cost = criterion.scale(&node).cost;
            growth.cost += cost;
            (rows, (cost > 0.0 && searchable(grown, child)).then_some(node))
        });
        growth.leaves.resize_with(grown.nodes.len(), || None);
        let keep = growth.may_keep();
        let searched = engine.search_children(leaf.searched, children, &[], keep)?;
        for (child, searched) in searched.into_iter().enumerate() {
            if let Some(searched) = searched {
                growth.add(left + child, searched);
            }
        }
    }
    Ok(())
}

/// The leaf to split next: its id, its search, and its cut.
type NextLeaf<D> = (usize, Leaf<D>, BestCut);

/// The open leaves of a growing tree.
struct Growth<'e, S: Searcher> {
    engine: &'e S,
    /// Open leaves by node id.
    leaves: Vec<Option<Leaf<S::Searched>>>,
    /// Leaves not opened yet, by the upper bound of their gain.
    bounded: BinaryHeap<(TotalOrder, Reverse<usize>)>,
    /// Opened leaves by their exact gain.
    opened: LeafQueue,
    /// Sum of the leaves' costs.
    cost: f64,
    kept_bytes: usize,
}

impl<S: Searcher> Growth<'_, S> {
    /// Whether another leaf's histograms may be held.
    fn may_keep(&self) -> bool {
        self.kept_bytes < MAX_HISTOGRAM_BYTES
    }

    /// Puts a searched leaf into the queue, if it may have a cut worth taking.
    fn add(&mut self, id: usize, mut searched: S::Searched) {
        let Some(upper) = searched.upper() else { return };
        self.kept_bytes += searched.keep_within(self.kept_bytes, MAX_HISTOGRAM_BYTES);
        self.leaves[id] = Some(Leaf { searched, cut: None });
        self.bounded.push((TotalOrder(upper), Reverse(id)));
    }

    /// Takes a leaf out, whichever queue it is in.
    fn remove(&mut self, id: usize) -> Option<Leaf<S::Searched>> {
        let leaf = self.leaves[id].take()?;
        self.kept_bytes -= leaf.searched.bytes();
        Some(leaf)
    }

    /// The leaf to split next, taken out of the queue. Opens the leaves whose bounds may be the best.
    fn next(&mut self, grown: &GrowingTree<'_>) -> Result<Option<NextLeaf<S::Searched>>> {
        let margin = LEAF_TIE * self.cost;
        loop {
            let best = self.opened.best();
            match self.bounded.peek() {
                Some(top) if top.0.0 >= best - margin => {}
                _ => break,
            }
            let Some((_, Reverse(id))) = self.bounded.pop() else { break };
            let Some(leaf) = &mut self.leaves[id] else { continue };
            let rows = grown.partition.active(grown.nodes[id].segment);
            leaf.cut = self.engine.open(rows, &leaf.searched, grown.sums.exact_of(id))?;
            match leaf.cut {
                Some(cut) => self.opened.push(cut.score, id),
                None => drop(self.remove(id)),
            }
        }
        let Some(first) = self.opened.pop(margin) else { return Ok(None) };
        Ok(self.remove(first).and_then(|leaf| leaf.cut.map(|cut| (first, leaf, cut))))
    }
}

/// Splits nodes in order of their ids until [`Splitter::node`] returns none for every leaf: no queue, every node is
/// searched once.
///
/// # Errors
/// [`Error::Interrupted`] if the monitor was asked to stop; [`Splitter::no_cut`] of a node that must be split and has
/// no cut.
pub(crate) fn split_all<E: Searcher, S: Splitter<Criterion = E::Criterion>>(
    engine: &E,
    grown: &mut GrowingTree<'_>,
    splitter: &mut S,
) -> Result<()> {
    let rows = grown.partition.active(grown.nodes[0].segment);
    let Some(root) = splitter.node(0, rows) else { return Ok(()) };
    let mut root = engine.search(rows, root, true)?;
    let mut kept_bytes = root.keep_within(0, MAX_HISTOGRAM_BYTES);
    let mut searched = vec![Some(root)];
    let mut n_leaves = 1;
    let mut id = 0;
    while id < grown.nodes.len() {
        let Some(Some(node)) = searched.get_mut(id).map(Option::take) else {
            id += 1;
            continue;
        };
        kept_bytes -= node.bytes();
        let rows = grown.partition.active(grown.nodes[id].segment);
        let Some(best) = engine.open(rows, &node, None)? else {
            return Err(splitter.no_cut(id));
        };
        let keep = splitter.keep(id, &best);
        let (left, removed) = engine.split(grown, id, &best, keep);
        n_leaves += 1;
        engine.monitor().report(n_leaves, best.score);
        splitter.split(id, left, &best);
        let children = [left, left + 1].map(|child| {
            let rows = grown.partition.active(grown.nodes[child].segment);
            (rows, splitter.node(child, rows))
        });
        let keep = kept_bytes < MAX_HISTOGRAM_BYTES;
        let found = engine.search_children(node, children, &removed, keep)?;
        for mut child in found {
            if let Some(child) = &mut child {
                kept_bytes += child.keep_within(kept_bytes, MAX_HISTOGRAM_BYTES);
            }
            searched.push(child);
        }
        id += 1;
    }
    Ok(())
}

/// A method that splits nodes until each is finished, for [`split_all`].
pub(crate) trait Splitter {
    /// The method's criterion.
    type Criterion: Criterion;

    /// The criterion's node of node `id` with the given searched rows; none if it stays a leaf.
    fn node(&self, id: usize, rows: &[u32]) -> Option<<Self::Criterion as Criterion>::Node>;

    /// Why node `id`, which has a criterion's node, has no cut.
    fn no_cut(&self, id: usize) -> Error;

    /// Whether a searched row stays one after the cut of node `id`, as a function of the row and its side.
    fn keep(&self, id: usize, best: &BestCut) -> impl Fn(u32, bool) -> bool + Sync;

    /// Called after each split, before [`Splitter::node`] of the children `left` and `left + 1`.
    fn split(&mut self, id: usize, left: usize, best: &BestCut);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criterion::Gap;

    #[test]
    fn of_parts_as_wide_up_to_rounding_the_lowest_is_taken() {
        // 0.6 - 0.3 is 0.3, and 0.1 + 0.2 + 0.3 - 0.3 is more by rounding.
        for (above, part) in [(0.1 + 0.2 + 0.3, [0.0, 0.3]), (0.6001, [0.3, 0.6001])] {
            let cut = Cut::threshold(Gap { below: 0.0, above });
            let narrowed = narrow(cut, &[0.3, -1.0, 2.0], 1.0);
            assert_eq!(narrowed, Cut::threshold(Gap { below: part[0], above: part[1] }));
        }
    }
}
