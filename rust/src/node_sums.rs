//! What the rows of the nodes of a growing tree add up to: as doubles, or exactly.
//!
//! Exact sums are those of the node's rows in any order. What is known exactly need not be added up again: the smaller
//! of two children is, and the larger one is what it leaves of the parent. The nodes of a base, whose sums nobody needs
//! while it grows, are added up at its end: the leaves, row by row, of which inner nodes are the sums.

use crate::exact::{self, ExactRows, ExactSums};
use crate::parallel;
use crate::partition::numbers_of_rows;

/// Nodes of at least so many rows hold their exact sums until they are split.
const MIN_EXACT_ROWS: usize = 1024;

/// Sums of the leaves of a base up to this number are held side by side while rows are added.
const MAX_SIDE_BY_SIDE: usize = 4096;

/// Sums over the rows with these numbers.
type SumRows<'a> = Box<dyn Fn(&[u32]) -> Vec<f64> + Sync + 'a>;

/// Exact sums over some rows.
type SumExactly<'a> = Box<dyn Fn(SummedRows<'_>) -> ExactSums + Sync + 'a>;

/// Which rows are added up.
enum SummedRows<'r> {
    /// Those with these numbers.
    Some(&'r [u32]),
    /// All, in groups.
    Grouped { groups: &'r [u32], n_groups: usize },
}

/// How rows are added up.
enum Sum<'a> {
    /// As doubles.
    Plain(SumRows<'a>),
    /// Exactly, so many numbers a row.
    Exact { sum: SumExactly<'a>, width: usize },
}

impl Sum<'_> {
    /// The sums of a node's rows, rounded, and the exact ones if they are held.
    fn of(&self, rows: &[u32]) -> (Vec<f64>, Option<ExactSums>) {
        match self {
            Sum::Plain(sum) => (sum(rows), None),
            Sum::Exact { sum, .. } => held(sum(SummedRows::Some(rows)), rows.len()),
        }
    }

    /// [`Sum::of`] of two children; `parent`: the exact sums of the rows of both.
    fn of_children(
        &self,
        [left, right]: [&[u32]; 2],
        parent: Option<ExactSums>,
    ) -> [(Vec<f64>, Option<ExactSums>); 2] {
        let (Sum::Exact { sum, .. }, Some(mut rest)) = (self, parent) else {
            let (left, right) = rayon::join(|| self.of(left), || self.of(right));
            return [left, right];
        };
        let left_is_small = left.len() <= right.len();
        let small = sum(SummedRows::Some(if left_is_small { left } else { right }));
        rest.take_away(&small);
        let sums = if left_is_small { [small, rest] } else { [rest, small] };
        let [of_left, of_right] = sums;
        [held(of_left, left.len()), held(of_right, right.len())]
    }
}

/// The rounded sums of `n_rows` rows, and the exact ones if these are many.
fn held(sums: ExactSums, n_rows: usize) -> (Vec<f64>, Option<ExactSums>) {
    (sums.all_rounded(), (n_rows >= MIN_EXACT_ROWS).then_some(sums))
}

/// The sums of the nodes, which are told of in the order of their ids.
pub(crate) struct NodeSums<'a> {
    sum: Sum<'a>,
    /// By node the exact sums, as long as they are held.
    exact: Vec<Option<ExactSums>>,
    /// Whether nodes have no sums yet.
    is_base: bool,
}

impl<'a> NodeSums<'a> {
    /// Sums as `sum` adds rows up.
    pub fn plain(sum: impl Fn(&[u32]) -> Vec<f64> + Sync + 'a) -> Self {
        NodeSums { sum: Sum::Plain(Box::new(sum)), exact: vec![], is_base: false }
    }

    /// `width` exact sums: `add(row, group, sums)` adds a row to those of a group. Nodes have none until
    /// [`NodeSums::end_base`].
    pub fn exact(width: usize, add: impl Fn(u32, usize, &mut ExactRows) + Sync + 'a) -> Self {
        let sum = move |rows: SummedRows<'_>| match rows {
            SummedRows::Some(rows) => {
                exact::sum_rows(rows, 1, width, |row, sums| add(row, 0, sums))
            }
            SummedRows::Grouped { groups, n_groups } => {
                // In their order: so is read ahead what they add.
                let all: Vec<u32> = (0..groups.len() as u32).collect();
                exact::sum_rows(&all, n_groups, width, |row, sums| {
                    add(row, groups[row as usize] as usize, sums);
                })
            }
        };
        let sum = Sum::Exact { sum: Box::new(sum), width };
        NodeSums { sum, exact: vec![], is_base: true }
    }

    /// The sums of the root.
    pub fn of_root(&mut self, rows: &[u32]) -> Vec<f64> {
        if self.is_base {
            return self.push(Default::default());
        }
        let sums = self.sum.of(rows);
        self.push(sums)
    }

    /// The sums of the two children of node `id`, the next nodes.
    pub fn of_children(&mut self, id: usize, rows: [&[u32]; 2]) -> [Vec<f64>; 2] {
        if self.is_base {
            return [0, 1].map(|_| self.push(Default::default()));
        }
        let parent = self.exact[id].take();
        self.sum.of_children(rows, parent).map(|sums| self.push(sums))
    }

    fn push(&mut self, (sums, exact): (Vec<f64>, Option<ExactSums>)) -> Vec<f64> {
        self.exact.push(exact);
        sums
    }

    /// The exact sums of a leaf, if they are held.
    pub fn exact_of(&self, id: usize) -> Option<&ExactSums> {
        self.exact[id].as_ref()
    }

    /// The sums of all nodes there are, if they have none; later ones get theirs when they are told of.
    pub fn end_base(&mut self, nodes: &[BaseNode<'_>]) -> Option<Vec<Vec<f64>>> {
        let (Sum::Exact { sum, width }, true) = (&self.sum, self.is_base) else { return None };
        self.exact = sums_of_leaves(sum, *width, nodes);
        let mut sums = vec![vec![]; nodes.len()];
        for (id, node) in nodes.iter().enumerate().rev() {
            if let &BaseNode::Inner { left } = node {
                let children = self.exact[left..left + 2].iter().flatten().cloned();
                self.exact[id] = children.reduce(|mut sums, other| {
                    sums.merge(&other);
                    sums
                });
                // Children come after their parents: they have their sums.
                (left..left + 2).for_each(|child| self.let_go(child, &nodes[child]));
            }
            sums[id] = self.exact[id].as_ref().map_or(vec![], ExactSums::all_rounded);
        }
        self.let_go(0, &nodes[0]);
        self.is_base = false;
        Some(sums)
    }

    /// Drops exact sums that are not held.
    fn let_go(&mut self, id: usize, node: &BaseNode<'_>) {
        if !matches!(node, BaseNode::Leaf(rows) if rows.len() >= MIN_EXACT_ROWS) {
            self.exact[id] = None;
        }
    }
}

/// The exact sums of the leaves, `width` each, by node; none for inner nodes.
fn sums_of_leaves<'r>(
    sum: &SumExactly<'_>,
    width: usize,
    nodes: &[BaseNode<'r>],
) -> Vec<Option<ExactSums>> {
    if nodes.len() * width > MAX_SIDE_BY_SIDE {
        return parallel::map(nodes, |node| match node {
            BaseNode::Leaf(rows) => Some(sum(SummedRows::Some(rows))),
            BaseNode::Inner { .. } => None,
        });
    }
    let run = |(id, node): (usize, &BaseNode<'r>)| match *node {
        BaseNode::Leaf(rows) => Some((id as u32, rows)),
        BaseNode::Inner { .. } => None,
    };
    let leaves: Vec<(u32, &[u32])> = nodes.iter().enumerate().filter_map(run).collect();
    let n_rows = leaves.iter().map(|(_, rows)| rows.len()).sum();
    let groups = numbers_of_rows(&leaves, n_rows);
    let all = sum(SummedRows::Grouped { groups: &groups, n_groups: nodes.len() });
    let of_node = |(id, node): (usize, &BaseNode<'_>)| match node {
        BaseNode::Leaf(_) => Some(ExactSums::gather(&[(&all, id * width..(id + 1) * width)])),
        BaseNode::Inner { .. } => None,
    };
    nodes.iter().enumerate().map(of_node).collect()
}

/// A node of a base.
pub(crate) enum BaseNode<'r> {
    /// With its rows, ascending.
    Leaf(&'r [u32]),
    /// The right child follows the left one.
    Inner { left: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_base_and_later_ones_have_the_sums_of_their_rows() {
        let n = 4 * MIN_EXACT_ROWS as u32;
        let value = |row: u32| f64::from(row * 7919 % 1009) / 3.0 * 1e6_f64.powi(row as i32 % 3);
        let add = |row: u32, group: usize, sums: &mut ExactRows| {
            sums.add(group, &[value(row), 1.0]);
        };
        let expected =
            |rows: &[u32]| exact::sum_rows(rows, 1, 2, |row, sums| add(row, 0, sums)).all_rounded();
        let rows: Vec<u32> = (0..n).collect();
        // The root is split into a few rows and the others, and these into two leaves.
        let (few, others) = rows.split_at(5);
        let (left, right) = others.split_at(2 * MIN_EXACT_ROWS);
        let (mut sums, none) = (NodeSums::exact(2, add), [(); 2].map(|()| Vec::<f64>::new()));
        assert!(sums.of_root(&rows).is_empty());
        assert_eq!(sums.of_children(0, [few, others]), none);
        assert_eq!(sums.of_children(2, [left, right]), none);
        let inner = |left| BaseNode::Inner { left };
        let leaf = BaseNode::Leaf;
        let found = sums.end_base(&[inner(1), leaf(few), inner(3), leaf(left), leaf(right)]);
        assert_eq!(found, Some([&rows, few, others, left, right].map(expected).to_vec()));
        let is_held = |id| sums.exact_of(id).is_some();
        assert_eq!([0, 1, 2, 3, 4].map(is_held), [false, false, false, true, true]);
        let children = [&left[..9], &left[9..]];
        assert_eq!(sums.of_children(3, children), children.map(expected));
        // Few leaves are added up side by side, many leaf by leaf.
        let NodeSums { sum: Sum::Exact { sum, width }, .. } = &sums else { unreachable!() };
        for n_leaves in [3, 1 + MAX_SIDE_BY_SIDE / width] {
            let leaves: Vec<_> = rows.chunks(rows.len() / n_leaves).collect();
            let nodes: Vec<_> = leaves.iter().map(|rows| BaseNode::Leaf(rows)).collect();
            let found = sums_of_leaves(sum, *width, &nodes);
            for (rows, sums) in leaves.into_iter().zip(found) {
                assert_eq!(sums.unwrap().all_rounded(), expected(rows));
            }
        }
    }
}
