//! IMM, iterative mistake minimisation: one leaf per center, every cut with the fewest mistakes (Dasgupta, Frost,
//! Moshkovitz and Rashtchian 2020, *Explainable k-Means and k-Medians Clustering*, Algorithm 1).
//!
//! | paper | here |
//! |---|---|
//! | centers alive at the node u | [`BaseNodes::alive`] |
//! | rows still with their center | the active rows of a segment |
//! | mistakes(u) | [`BaseNodes::mistakes`] |
//!
//! A node with two centers or more is split by its best cut ([`Mistakes`]). Rows that the cut separates from their
//! center are mistakes: they are searched no more, but go down the tree, as they do at prediction. k centers give
//! k leaves and k - 1 searches, each O(rows x columns).

use crate::criterion::centers::{CenterColumns, Centers, TableCenters};
use crate::criterion::cut_score::CutScore;
use crate::criterion::label_counts::OneHot;
use crate::criterion::mistakes::{Mistakes, MistakesNode};
use crate::criterion::{Criterion, RowSums};
use crate::error::{Error, Result};
use crate::grow::{GrowingTree, Searcher, Splitter, split_all};
use crate::index::Index;
use crate::parallel::Monitor;
use crate::rows::CsrRows;
use crate::search::{BestCut, Engine, SearchOptions};
use crate::sparse::centers::SparseCenters;
use crate::sparse::columns::SparseColumns;
use crate::sparse::search::SparseEngine;
use crate::table::Table;

/// Centers and mistakes of the nodes of a base tree whose leaves keep one center each; entries by node id.
#[derive(Debug, Clone, PartialEq)]
pub struct BaseNodes {
    /// Whether each of the k centers is alive at the node.
    pub alive: Vec<Vec<bool>>,
    /// Weight that the node's cut separates from its centers; NaN at leaves.
    pub mistakes: Vec<f64>,
}

impl BaseNodes {
    /// A single leaf with k centers.
    pub(crate) fn new(k: usize) -> Self {
        BaseNodes { alive: vec![vec![true; k]], mistakes: vec![f64::NAN] }
    }

    /// Whether the node has one center, and so no cut.
    pub(crate) fn is_leaf(&self, id: usize) -> bool {
        self.alive[id].iter().filter(|&&alive| alive).count() <= 1
    }

    /// Splits node `id`: its children, the next two nodes, get the centers alive on the left and on the right.
    pub(crate) fn split(&mut self, id: usize, children: [Vec<bool>; 2], mistakes: f64) {
        self.mistakes[id] = mistakes;
        self.alive.extend(children);
        self.mistakes.resize(self.alive.len(), f64::NAN);
    }

    /// The only center of a leaf; none at other nodes.
    pub fn center(&self, id: usize) -> Option<usize> {
        if self.is_leaf(id) { self.alive[id].iter().position(|&alive| alive) } else { None }
    }
}

/// The error of centers that no cut tells apart.
pub(crate) fn no_cut(centers: &[usize]) -> Error {
    let numbers: Vec<String> = centers.iter().take(5).map(usize::to_string).collect();
    Error::Value(format!(
        "No cut can tell some centers apart, among them those with the numbers {}: they are equal in all columns of \
         numbers and have the same shares of levels. Give distinct centers, or grow the tree from a single leaf: \
         ExKMC(base_tree=None).",
        numbers.join(", ")
    ))
}

/// What a tree of centers is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct ImmProblem<'a> {
    /// The cluster and the weight of every row.
    pub rows: OneHot<'a>,
    /// The clusters' centers, one per label of `rows`.
    pub centers: Centers<'a>,
    /// What a cut is worth.
    pub score: CutScore,
    /// How nodes are searched.
    pub search: SearchOptions,
}

/// Splits the only leaf of `grown` until every leaf has one center.
///
/// # Errors
/// [`Error::Shape`] if sizes disagree, [`Error::Value`] if no cut tells two centers apart, [`Error::Interrupted`] if the
/// monitor was asked to stop.
pub fn grow_imm(
    table: &Table<'_>,
    index: &Index,
    problem: &ImmProblem<'_>,
    grown: &mut GrowingTree<'_>,
    monitor: &Monitor,
) -> Result<BaseNodes> {
    let ImmProblem { rows, centers, score, search } = *problem;
    let centers = TableCenters::new(table, index, rows, centers)?;
    let criterion = Mistakes::new(rows, centers, score);
    let engine = Engine::new(table, index, &criterion, search, monitor);
    split_to_centers(&engine, &criterion, grown)
}

/// [`grow_imm`] on sparse rows; `columns` must be the matrix's. `problem.search` is for tables.
///
/// # Errors
/// As [`grow_imm`].
pub(crate) fn grow_imm_sparse(
    matrix: &CsrRows<'_>,
    columns: &SparseColumns,
    problem: &ImmProblem<'_>,
    grown: &mut GrowingTree<'_>,
    monitor: &Monitor,
) -> Result<BaseNodes> {
    let ImmProblem { rows, centers, score, .. } = *problem;
    let centers = SparseCenters::new(columns, matrix.n_columns(), rows, centers)?;
    let criterion = Mistakes::new(rows, centers, score);
    let engine = SparseEngine::new(matrix, columns, &criterion, monitor);
    split_to_centers(&engine, &criterion, grown)
}

/// Splits the only leaf of `grown` until every leaf has one center.
fn split_to_centers<'m, C, E>(
    engine: &E,
    criterion: &Mistakes<'m, C>,
    grown: &mut GrowingTree<'_>,
) -> Result<BaseNodes>
where
    C: CenterColumns,
    E: Searcher<Criterion = Mistakes<'m, C>>,
{
    let nodes = BaseNodes::new(criterion.rows().width());
    let mut splitter = ImmSplitter { criterion, nodes };
    split_all(engine, grown, &mut splitter)?;
    Ok(splitter.nodes)
}

/// The growth of IMM's tree.
struct ImmSplitter<'m, C> {
    criterion: &'m C,
    nodes: BaseNodes,
}

impl<C: CenterColumns> ImmSplitter<'_, Mistakes<'_, C>> {
    /// The centers alive on the two sides of a node's cut, and its mistakes.
    fn sides(&self, id: usize, best: &BestCut) -> ([Vec<bool>; 2], f64) {
        let alive = &self.nodes.alive[id];
        match best.cut.centers {
            Some(cut) => {
                let (left, right) = self.criterion.columns().split(alive, best.feature, cut);
                ([left, right], self.criterion.count(best.score, cut))
            }
            None => ([vec![false; alive.len()], alive.clone()], f64::NAN), // no cut of this criterion
        }
    }
}

impl<'a, C: CenterColumns> Splitter for ImmSplitter<'_, Mistakes<'a, C>> {
    type Criterion = Mistakes<'a, C>;

    fn node(&self, id: usize, rows: &[u32]) -> Option<MistakesNode> {
        let is_leaf = self.nodes.is_leaf(id);
        (!is_leaf).then(|| self.criterion.node(rows, self.nodes.alive[id].clone()))
    }

    fn no_cut(&self, id: usize) -> Error {
        let alive = self.nodes.alive[id].iter().enumerate().filter(|(_, alive)| **alive);
        no_cut(&alive.map(|(center, _)| center).collect::<Vec<usize>>())
    }

    fn keep(&self, id: usize, best: &BestCut) -> impl Fn(u32, bool) -> bool + Sync {
        let ([left, _], _) = self.sides(id, best);
        move |row, goes_left| left[self.criterion.label(row)] == goes_left
    }

    fn split(&mut self, id: usize, left: usize, best: &BestCut) {
        debug_assert_eq!(left, self.nodes.alive.len());
        let (sides, mistakes) = self.sides(id, best);
        self.nodes.split(id, sides, mistakes);
    }
}
