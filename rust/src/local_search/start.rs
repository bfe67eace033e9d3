//! Starts: given trees cut back to the limits, and growth from random centers. The found tree in the columns' units.

use fastrand::Rng;

use super::objective::RowCosts;
use super::ranks::Ranks;
use super::regrow::Cuts;
use super::segments::{Node, Segments};
use super::state::Task;
use crate::error::{Error, Result};
use crate::memory;
use crate::oblique::draft::{DraftNode, DraftTree};
use crate::partition::others_go_left;
use crate::rows::Rows;
use crate::table::Column;
use crate::tree::{LevelSet, Test};

/// The thresholds of trees, as [`Ranks::new`] takes them.
pub(super) fn thresholds(trees: &[DraftTree]) -> Vec<(usize, f64)> {
    let tests = trees.iter().flat_map(|tree| tree.tests(0));
    let of_test = |test: &Test| match test {
        Test::Threshold { feature, threshold } => Some((*feature, *threshold)),
        _ => None,
    };
    tests.filter_map(of_test).collect()
}

impl Task<'_> {
    /// A given tree on the rows, within the limits: first leaves that are too deep are joined, then those of too few
    /// rows give way to their siblings, then the siblings that cost least together are joined.
    ///
    /// # Errors
    /// [`Error::Tree`] if a test is not one of what a column holds, [`Error::Value`] if a label is out of range.
    pub fn start(&self, given: &DraftTree) -> Result<Segments> {
        let n = self.objective.n_samples();
        let rows = memory::collected(0..n as u32, "the rows of the nodes");
        let mut tree = Segments { nodes: vec![], rows };
        self.write(given, 0, 0, &mut tree.nodes)?;
        tree.nodes[0].len = n;
        tree.route(0, self.ranks);
        let least = self.limits.min_samples_leaf;
        while let Some(small) = tree.nodes.iter().skip(1).position(|node| node.len < least) {
            let parent = tree.above(small + 1).last().unwrap_or(0);
            let side = usize::from(small + 1 == parent + 1);
            tree.promote(parent, side);
            tree.route(parent, self.ranks);
        }
        if tree.n_leaves() > self.limits.max_leaves {
            let costs = self.costs(&mut tree);
            while tree.n_leaves() > self.limits.max_leaves {
                self.join_cheapest(&mut tree, &costs);
            }
        }
        Ok(tree)
    }

    /// A start about random rows as centers.
    pub(super) fn random_rows(&self, rng: &mut Rng) -> Segments {
        let (n, k) = (self.objective.n_samples(), self.objective.n_labels());
        let mut seeds = rng.choose_multiple(0..n as u32, k);
        // Fewer rows than clusters.
        seeds.resize(k, 0);
        let costs = self.objective.seed_costs(&seeds, self.monitor);
        self.grown(&costs, &Cuts::Best)
    }

    /// Growth by label cost to as many leaves as are allowed.
    pub(super) fn grown(&self, costs: &RowCosts, cuts: &Cuts) -> Segments {
        let rows = 0..self.objective.n_samples() as u32;
        let rows: Vec<u32> = memory::collected(rows, "the rows of the nodes");
        let labels: Vec<u32> = (0..self.objective.n_labels() as u32).collect();
        self.regrow(costs, false).grow(&rows, &labels, 0, self.limits.max_leaves, cuts)
    }

    /// What rows cost under the labels as given.
    fn costs(&self, tree: &mut Segments) -> RowCosts {
        self.fill(tree);
        let (sums, labels): (Vec<&[f64]>, Vec<u32>) =
            tree.leaves().map(|leaf| (leaf.sums.as_deref().unwrap_or(&[]), leaf.label)).unzip();
        let mut costs = RowCosts::default();
        self.objective.update_costs(&sums, &labels, &mut costs, self.monitor);
        costs
    }

    /// Makes one leaf of the two siblings for which that costs least.
    fn join_cheapest(&self, tree: &mut Segments, costs: &RowCosts) {
        let k = self.objective.n_labels();
        let mut best = (f64::INFINITY, 0, 0);
        for id in (0..tree.nodes.len()).filter(|&id| tree.nodes[id].size == 3) {
            let labels = [1, 2].map(|step| tree.nodes[id + step].label as usize);
            let (mut both, mut now) = (vec![0.0; k], 0.0);
            for (child, label) in [(id + 1, labels[0]), (id + 2, labels[1])] {
                for &row in tree.rows_of(child) {
                    let costs = &costs.costs[row as usize * k..][..k];
                    now += costs[label];
                    both.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
                }
            }
            for (label, cost) in both.into_iter().enumerate() {
                if cost - now < best.0 {
                    best = (cost - now, id, label);
                }
            }
        }
        tree.collapse(best.1, best.2 as u32);
    }

    /// Writes a node of a given tree and all below it in preorder.
    fn write(
        &self,
        given: &DraftTree,
        id: usize,
        depth: usize,
        nodes: &mut Vec<Node>,
    ) -> Result<()> {
        let at = nodes.len();
        nodes.push(Node::leaf(0, 0, 0));
        match &given.nodes[id] {
            DraftNode::Leaf(leaf) => {
                if leaf.label as usize >= self.objective.n_labels() {
                    let (label, k) = (leaf.label, self.objective.n_labels());
                    return Err(Error::Value(format!(
                        "Label {label} is not in the range [0, {k})."
                    )));
                }
                nodes[at].label = leaf.label;
            }
            DraftNode::Split { left, .. } if self.limits.max_depth == Some(depth) => {
                // Cut off here; the label is that of the leftmost leaf until labels settle.
                nodes.pop();
                let mut leaf = *left;
                while let DraftNode::Split { left, .. } = given.nodes[leaf] {
                    leaf = left;
                }
                return self.write(given, leaf, depth, nodes);
            }
            DraftNode::Split { test, left, right, missing_left } => {
                let Some(cut) = self.ranks.cut(test, *missing_left)? else {
                    // No row goes left.
                    nodes.pop();
                    return self.write(given, *right, depth, nodes);
                };
                nodes[at].cut = Some(cut);
                self.write(given, *left, depth + 1, nodes)?;
                self.write(given, *right, depth + 1, nodes)?;
            }
        }
        nodes[at].size = nodes.len() - at;
        Ok(())
    }
}

/// The tree with its tests as those of columns: thresholds between the values of the rows of each node, and levels; for
/// what no row of the node has see [`others_go_left`].
pub(super) fn finished(tree: &Segments, rows: Rows<'_, '_>) -> DraftTree {
    let nodes = (0..tree.nodes.len()).map(|id| match tree.nodes[id].cut {
        None => DraftTree::leaf(tree.nodes[id].label).nodes.remove(0),
        Some(cut) => {
            let ([left, right], feature) = (tree.children(id), cut.feature as usize);
            let column = match rows {
                Rows::Table(table) => Some(table.column(feature)),
                Rows::Sparse(_) => None,
            };
            let sides = [left, right].map(|child| {
                let mut cells = Vec::new();
                rows.cells(tree.rows_of(child), feature as u32, &mut cells);
                Cells::of(column, &cells)
            });
            let most_left = others_go_left(tree.nodes[left].len, tree.nodes[right].len);
            let [on_left, on_right] = &sides;
            if on_left.is_empty() || on_right.is_empty() {
                let [left, right] = if on_left.is_empty() { [left, right] } else { [right, left] };
                let test = Test::Missing { feature };
                return DraftNode::Split { test, left, right, missing_left: true };
            }
            let missing_left = if on_left.has_missing == on_right.has_missing {
                most_left
            } else {
                on_left.has_missing
            };
            let test = match column.and_then(Column::n_levels) {
                None => {
                    let threshold = crate::placement::between(on_left.largest, on_right.smallest);
                    Test::Threshold { feature, threshold }
                }
                Some(n_levels) if most_left => {
                    let others = (0..n_levels as u8).filter(|&v| !on_right.levels.contains(v));
                    Test::Levels { feature, left: others.collect() }
                }
                Some(_) => Test::Levels { feature, left: on_left.levels },
            };
            DraftNode::Split { test, left, right, missing_left }
        }
    });
    DraftTree { nodes: nodes.collect() }.compact()
}

/// What rows hold in a column.
struct Cells {
    smallest: f64,
    largest: f64,
    /// In a column of levels.
    levels: LevelSet,
    has_missing: bool,
}

impl Cells {
    /// `column`: what holds them; none for sparse rows.
    fn of(column: Option<&Column<'_>>, cells: &[f64]) -> Self {
        let (smallest, largest) = cells
            .iter()
            // NaN is neither.
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
        let is_levels = column.and_then(Column::n_levels).is_some();
        let has_missing =
            column.is_some_and(Column::may_have_gaps) && cells.iter().any(|x| x.is_nan());
        let of_levels = cells.iter().filter(|x| is_levels && !x.is_nan());
        let levels = of_levels.map(|&code| code as u8).collect();
        Cells { smallest, largest, levels, has_missing }
    }

    /// Whether all cells are missing.
    fn is_empty(&self) -> bool {
        self.smallest > self.largest
    }
}

/// Whether the ranks agree with the rows of an objective.
///
/// # Errors
/// [`Error::Shape`] if not.
pub(super) fn check_rows(ranks: &Ranks, n_samples: usize) -> Result<()> {
    match ranks.n_features() {
        0 => Err(Error::Value("The table has no columns.".into())),
        _ => Error::check_len("The table", ranks.n_samples(), n_samples, "rows"),
    }
}
