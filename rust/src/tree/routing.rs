//! The leaf of each row: one routing for tables, C-ordered matrices and sparse rows.
//!
//! Rows are worked on a tile at a time, so that the cells of a tile are read from memory once: for the check that they
//! are finite and for the tests. Columns that no test uses are not read, whatever they hold. A missing cell is NaN and
//! takes its node's direction: tiles without any, of trees without tests on levels, keep to comparisons of numbers. In
//! trees of thresholds and intervals eight rows go down side by side, since the steps of one row wait for each other;
//! in trees with oblique tests, whose cost is in their terms, the rows of a node are tested together before any of them
//! goes on; and a small tree over columns applies each test to all rows ([`ByTest`]). Cost: O(used columns) for the
//! check and O(depth) tests a row, in the last case O(leaves).
//!
//! The three ways rows come differ in where a cell is read, and in nothing else:
//!
//! | rows | a cell | numbering of columns |
//! |---|---|---|
//! | table | in its column if it is of doubles, else in a copy of the tile | places among the used columns |
//! | C-ordered matrix | where it lies | the matrix' own |
//! | sparse | in a tile made dense, of the used columns alone | places among the used columns |
//!
//! Both numberings are made with the tree, so that a call has nothing to prepare. Few rows are routed on the calling
//! thread: no task is worth handing out below [`MAX_WORK_OF_CALLER`].

use std::sync::OnceLock;

use rayon::prelude::*;

use super::ClusterTree;
use super::test::{LevelSet, Test, add_terms, is_left};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::MAX_WORK_OF_CALLER;
use crate::rows::CsrRows;
use crate::table::{Column, TILE, Table, Value, all_finite};

/// Rows routed side by side.
const TOGETHER: usize = 8;
/// Cells of a tile of columns: half of a first-level cache.
pub(super) const CELLS_OF_TILE: usize = 4096;
/// Rows of a tile of columns at least.
const MIN_TILE: usize = 16;
/// Leaves of a tree whose tests are all applied to all rows, at most: one bit each.
const MAX_LEAVES_BY_TEST: usize = 64;
/// Cells of a tile in trees with oblique tests: the more rows, the more of them meet at a node.
const CELLS_OF_OBLIQUE_TILE: usize = 64 * TILE;
/// The place of a column that the tree does not use.
const UNUSED: u32 = u32::MAX;

/// A node ready for routing.
#[derive(Debug, Clone, Copy)]
struct RoutingNode {
    /// The least value that goes left.
    lower: f64,
    /// The largest value that goes left.
    upper: f64,
    /// The column it reads, in the numbering of its [`Nodes`]; 0 where it reads none.
    feature: u32,
    /// Where a row goes for which the test holds; a leaf leads to itself.
    left: u32,
    /// Where the others go.
    right: u32,
    /// The topmost bit: a missing cell goes left. The others: 0, or 1 + the place of its set of levels.
    special: u32,
}

/// The bit of [`RoutingNode::special`] for missing cells.
const MISSING_LEFT: u32 = 1 << 31;

impl RoutingNode {
    /// Whether the number `x` goes left.
    #[inline(always)]
    fn holds<const INTERVALS: bool>(&self, x: f64) -> bool {
        (x <= self.upper) & (!INTERVALS || self.lower <= x)
    }

    /// Whether the cell `x` goes left: a number, a level or NaN. `sets`: of the tree's level tests.
    #[inline(always)]
    fn goes_left(&self, x: f64, sets: &[LevelSet]) -> bool {
        if x.is_nan() {
            return self.special & MISSING_LEFT != 0;
        }
        match self.special & !MISSING_LEFT {
            0 => self.holds::<true>(x),
            place => sets[place as usize - 1].holds(x),
        }
    }
}

/// The oblique tests of a tree that has some. The terms of a node are a range of two arrays.
#[derive(Debug, Clone)]
struct Terms {
    /// Per node: its first term, the first one of the next node, and the bias; no terms where it is not oblique.
    runs: Vec<(usize, usize, f64)>,
    /// The column of each term, in the numbering of its [`Nodes`].
    columns: Vec<u32>,
    /// The weight of each term.
    weights: Vec<f64>,
}

/// The nodes of a tree with their columns in some numbering.
#[derive(Debug, Clone)]
struct Nodes {
    /// The nodes; 0 is the root.
    nodes: Vec<RoutingNode>,
    /// Whether a test has a lower end: the comparison is left out where none has.
    has_intervals: bool,
    /// The oblique tests, if there are any.
    terms: Option<Terms>,
    /// The sets of the level tests, in the order of the nodes.
    sets: Vec<LevelSet>,
}

/// A small tree as its tests: a row starts with all leaves, each test that fails takes the leaves on its left away, and
/// the first one that remains is the row's (QuickScorer: Lucchese et al., SIGIR 2015). No step waits for another or
/// guesses where a row goes, and a test reads one column from end to end: for columns side by side this is faster than
/// to follow each row, as long as there are few tests.
#[derive(Debug, Clone)]
struct ByTest {
    /// The node of each test, and the leaves that remain if it fails.
    tests: Vec<(RoutingNode, u64)>,
    /// Node ids of the leaves from left to right.
    leaves: Vec<i64>,
    /// Whether a test has a lower end.
    has_intervals: bool,
}

impl ByTest {
    /// None if the tree has oblique tests or too many leaves.
    fn new(nodes: &Nodes) -> Option<Self> {
        let n_leaves = nodes.nodes.len().div_ceil(2);
        if nodes.terms.is_some() || n_leaves > MAX_LEAVES_BY_TEST {
            return None;
        }
        let mut by_test =
            ByTest { tests: vec![], leaves: vec![], has_intervals: nodes.has_intervals };
        by_test.visit(&nodes.nodes, 0);
        Some(by_test)
    }

    /// Adds the tests and leaves below a node; returns its leaves as bits. Not deeper than the tree has leaves.
    fn visit(&mut self, nodes: &[RoutingNode], id: usize) -> u64 {
        let node = nodes[id];
        if node.left as usize == id {
            self.leaves.push(id as i64);
            return 1 << (self.leaves.len() - 1);
        }
        let left = self.visit(nodes, node.left as usize);
        self.tests.push((node, !left));
        left | self.visit(nodes, node.right as usize)
    }

    /// Writes the leaf of each row of a tile: `cells[place]` has the tile's cells in a column. `sets`: those of the
    /// tree's level tests, or none where all cells are compared as numbers.
    fn route(&self, cells: &[&[f64]], sets: Option<&[LevelSet]>, leaves: &mut [i64]) {
        let mut remaining = [u64::MAX; TILE];
        let remaining = &mut remaining[..leaves.len()];
        for &(node, kept) in &self.tests {
            let RoutingNode { lower, upper, .. } = node;
            let rows = remaining.iter_mut().zip(cells[node.feature as usize]);
            if let Some(sets) = sets {
                rows.for_each(|(leaves, &x)| {
                    *leaves &= kept | u64::from(node.goes_left(x, sets)).wrapping_neg();
                });
            } else if self.has_intervals {
                rows.for_each(|(leaves, &x)| {
                    *leaves &= kept | u64::from((lower <= x) & (x <= upper)).wrapping_neg();
                });
            } else {
                rows.for_each(|(leaves, &x)| {
                    *leaves &= kept | u64::from(x <= upper).wrapping_neg()
                });
            }
        }
        for (leaf, remaining) in leaves.iter_mut().zip(remaining) {
            *leaf = self.leaves[remaining.trailing_zeros() as usize];
        }
    }
}

/// The parts of a tree that routing reads, in both numberings of columns: the table's own, for rows that lie in memory
/// as they are, and the places in `used`, for cells that were copied.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    /// For rows that lie in memory as they are.
    by_column: Nodes,
    /// For cells side by side by place.
    by_place: Nodes,
    /// For columns side by side, if the tree is small.
    by_test: Option<ByTest>,
    /// The columns that the tree uses, ascending.
    pub(super) used: Vec<usize>,
    /// The place of each column up to the last used one; made when sparse rows first come.
    places: OnceLock<Vec<u32>>,
    /// Tests and terms on the dearest path.
    work_per_row: usize,
}

impl Routes {
    /// Both numberings of the nodes of a checked tree. O(nodes and terms, times the log of the used columns).
    pub(super) fn new(
        tests: &[Test],
        children: &[[u32; 2]],
        missing_left: Option<&[bool]>,
    ) -> Self {
        let mut used: Vec<usize> = tests.iter().filter_map(Test::feature).collect();
        let terms = tests.iter().filter_map(Test::plane).flat_map(|plane| &plane.weights);
        used.extend(terms.map(|&(column, _)| column as usize));
        used.sort_unstable();
        used.dedup();
        let place = |column: usize| used.binary_search(&column).unwrap_or(0) as u32;
        let by_place = Nodes::new(tests, children, missing_left, place);
        let by_column = Nodes::new(tests, children, missing_left, |column| column as u32);
        // Children come after their parents.
        let mut work = vec![0; tests.len()];
        for (id, test) in tests.iter().enumerate() {
            for &child in &children[id] {
                let below = work[id] + 1 + test.n_terms();
                work[child as usize] = work[child as usize].max(below);
            }
        }
        let work_per_row = work.into_iter().max().unwrap_or(0);
        let by_test = ByTest::new(&by_place);
        Routes { by_column, by_place, by_test, used, places: OnceLock::new(), work_per_row }
    }

    /// The place of each column up to the last used one, or [`UNUSED`]. O(that column), once per tree.
    fn places(&self) -> &[u32] {
        self.places.get_or_init(|| {
            let mut places = vec![UNUSED; self.used.last().map_or(0, |last| last + 1)];
            for (place, &column) in self.used.iter().enumerate() {
                places[column] = place as u32;
            }
            places
        })
    }
}

impl ClusterTree {
    /// Whether so many rows are routed on the calling thread.
    pub fn is_small(&self, n_rows: usize) -> bool {
        let per_row = self.routes.work_per_row + self.n_features + 1;
        n_rows.saturating_mul(per_row) <= MAX_WORK_OF_CALLER
    }

    /// The leaf each row falls into, as a node id; none if a cell in a column that the tree uses is infinite, or NaN
    /// and the tree has no directions for missing cells. Other columns are not read.
    ///
    /// # Errors
    /// [`Error::Tree`] if the tree uses a column the table does not have.
    pub fn apply(&self, table: &Table<'_>) -> Result<Option<Vec<i64>>> {
        self.check_width(table.n_features())?;
        let Routes { by_place, by_test, used, .. } = &self.routes;
        let columns: Vec<&Column<'_>> = used.iter().map(|&column| table.column(column)).collect();
        let n = table.n_samples();
        let tile = match by_place.terms {
            Some(_) => CELLS_OF_OBLIQUE_TILE,
            None => CELLS_OF_TILE,
        };
        let tile = rows_of_tile(tile, used.len());
        let route = |start: usize, leaves: &mut [i64], copies: &mut Vec<f64>| {
            let cells = cells_of_tile(&columns, start, leaves.len(), copies);
            let has_gaps = !cells.iter().all(|cells| all_finite(cells));
            if has_gaps && !cells.iter().all(|cells| cells.iter().all(|&x| self.takes(x))) {
                return false;
            }
            match by_test {
                Some(by_test) => {
                    let is_plain = !has_gaps && by_place.sets.is_empty();
                    by_test.route(&cells, (!is_plain).then_some(&by_place.sets), leaves);
                }
                None => by_place.route(|place, i| cells[place][i], has_gaps, leaves),
            }
            !table.stopped()
        };
        Ok(self.apply_tiles(n, tile, route))
    }

    /// As [`ClusterTree::apply`] for the rows of a C-ordered matrix of `n_features` columns.
    ///
    /// # Errors
    /// As [`ClusterTree::apply`].
    pub fn apply_rows<T: Value>(&self, cells: &[T], n_features: usize) -> Result<Option<Vec<i64>>> {
        self.check_width(n_features)?;
        let nodes = &self.routes.by_column;
        let width = n_features.max(1);
        let group = match nodes.terms {
            Some(_) => (CELLS_OF_OBLIQUE_TILE / width).clamp(16, TILE),
            None => TOGETHER,
        };
        let route = |start: usize, leaves: &mut [i64], _: &mut Vec<f64>| {
            let rows = &cells[start * width..][..leaves.len() * width];
            let groups = rows.chunks(group * width).zip(leaves.chunks_mut(group));
            groups.into_iter().all(|(rows, leaves)| {
                let finite = all_finite(rows);
                let taken = finite || self.takes_rows(rows, width);
                if taken {
                    let has_gaps = !finite && self.missing_go_to_left.is_some();
                    nodes.route(|column, i| rows[i * width + column].to_f64(), has_gaps, leaves);
                }
                taken
            })
        };
        Ok(self.apply_tiles(cells.len() / width, TILE, route))
    }

    /// As [`ClusterTree::apply`] for the rows of a sparse matrix, in whatever order their cells come; those stored more
    /// than once are added up before they are checked.
    ///
    /// # Errors
    /// As [`ClusterTree::apply`].
    pub fn apply_sparse(&self, rows: &CsrRows<'_>) -> Result<Option<Vec<i64>>> {
        self.check_width(rows.n_columns())?;
        let Routes { by_place, used, .. } = &self.routes;
        let places = self.routes.places();
        let tile = (CELLS_OF_OBLIQUE_TILE / used.len().max(1)).clamp(16, TILE);
        let tile = tile.min(rows.n_rows().max(1));
        let route = |start: usize, leaves: &mut [i64], cells: &mut Vec<f64>| {
            cells.clear();
            cells.resize(tile * used.len().max(1), 0.0);
            for i in 0..leaves.len() {
                let (columns, values) = rows.row(start + i);
                for (&column, &value) in columns.iter().zip(values) {
                    let place = places.get(column as usize).copied().unwrap_or(UNUSED);
                    if let Some(cell) = cells.get_mut(place as usize * tile + i) {
                        *cell += value;
                    }
                }
            }
            let has_gaps = !all_finite(cells);
            let taken = !has_gaps || cells.iter().all(|&x| self.takes(x));
            if taken {
                by_place.route(|place, i| cells[place * tile + i], has_gaps, leaves);
            }
            taken
        };
        Ok(self.apply_tiles(rows.n_rows(), tile, route))
    }

    /// Calls `route(first row, leaves, scratch)` for every tile of rows; none if it returns false for one.
    fn apply_tiles(
        &self,
        n_rows: usize,
        tile: usize,
        route: impl Fn(usize, &mut [i64], &mut Vec<f64>) -> bool + Sync,
    ) -> Option<Vec<i64>> {
        let mut leaves: Vec<i64> = memory::zeros(n_rows, "the leaves of the rows");
        let done = if self.is_small(n_rows) {
            let mut scratch = vec![];
            let mut tiles = leaves.chunks_mut(tile).enumerate();
            tiles.all(|(block, leaves)| route(block * tile, leaves, &mut scratch))
        } else {
            let tiles = leaves.par_chunks_mut(tile).enumerate();
            tiles
                .map_init(Vec::new, |scratch, (block, leaves)| route(block * tile, leaves, scratch))
                .all(|done| done)
        };
        done.then_some(leaves)
    }

    /// Whether the tree routes rows with this cell: it is finite, or NaN and nodes have directions for missing cells.
    #[inline(always)]
    fn takes(&self, x: f64) -> bool {
        x.is_finite() || (x.is_nan() && self.missing_go_to_left.is_some())
    }

    /// Whether the tree takes the cells of a C-ordered matrix in the columns that it uses.
    #[cold]
    fn takes_rows<T: Value>(&self, cells: &[T], n_features: usize) -> bool {
        let used = &self.routes.used;
        let takes_row = |row: &[T]| used.iter().all(|&column| self.takes(row[column].to_f64()));
        cells.chunks(n_features).all(takes_row)
    }

    /// Whether rows of so many columns have all that the tree uses.
    pub(super) fn check_width(&self, n_features: usize) -> Result<()> {
        match self.routes.used.last() {
            Some(&feature) if feature >= n_features => Err(Error::Tree(format!(
                "it uses column {feature}, but the table has {n_features} columns."
            ))),
            _ => Ok(()),
        }
    }
}

/// Rows of a tile of about so many cells.
pub(super) fn rows_of_tile(n_cells: usize, n_columns: usize) -> usize {
    (n_cells / n_columns.max(1)).clamp(MIN_TILE, TILE)
}

/// By column the cells of `n_rows` rows from `start` on: where they are, if they are doubles one after the other, else
/// in `copies`.
pub(super) fn cells_of_tile<'c>(
    columns: &[&'c Column<'_>],
    start: usize,
    n_rows: usize,
    copies: &'c mut Vec<f64>,
) -> Vec<&'c [f64]> {
    copies.resize(columns.len() * n_rows, 0.0);
    let cells = |(column, copy): (&&'c Column<'_>, &'c mut [f64])| match column.as_f64() {
        Some(cells) => &cells[start..start + n_rows],
        None => {
            column.read(start, copy);
            &*copy
        }
    };
    columns.iter().zip(copies.chunks_mut(n_rows.max(1))).map(cells).collect()
}

impl Nodes {
    /// The nodes with columns numbered by `number`.
    fn new(
        tests: &[Test],
        children: &[[u32; 2]],
        missing_left: Option<&[bool]>,
        number: impl Fn(usize) -> u32,
    ) -> Self {
        let mut sets = vec![];
        let nodes = tests.iter().zip(children).enumerate().map(|(id, (test, &[left, right]))| {
            let [lower, upper] = test.bounds();
            let mut special = 0;
            if let Test::Levels { left, .. } = test {
                sets.push(*left);
                special = sets.len() as u32;
            }
            if missing_left.is_some_and(|goes_left| goes_left[id]) {
                special |= MISSING_LEFT;
            }
            let feature = test.feature().map_or(0, &number);
            RoutingNode { lower, upper, feature, left, right, special }
        });
        let nodes = nodes.collect();
        let has_intervals = tests.iter().any(|test| matches!(test, Test::Interval { .. }));
        let mut terms = Terms { runs: vec![], columns: vec![], weights: vec![] };
        for test in tests {
            let start = terms.columns.len();
            for &(column, weight) in test.plane().iter().flat_map(|plane| &plane.weights) {
                terms.columns.push(number(column as usize));
                terms.weights.push(weight);
            }
            let bias = test.plane().map_or(0.0, |plane| plane.bias);
            terms.runs.push((start, terms.columns.len(), bias));
        }
        let terms = (!terms.columns.is_empty()).then_some(terms);
        Nodes { nodes, has_intervals, terms, sets }
    }

    /// Writes the leaf of each row by the loop that suits the tree. `cell(column, i)` reads a cell of the i-th row, the
    /// column in the nodes' numbering; `has_gaps`: one of them may be NaN.
    #[inline(always)]
    fn route(&self, cell: impl Fn(usize, usize) -> f64, has_gaps: bool, leaves: &mut [i64]) {
        match &self.terms {
            Some(terms) => self.route_by_node(terms, cell, leaves),
            None if !self.sets.is_empty() => {
                self.route_together(|node, x| node.goes_left(x, &self.sets), cell, leaves);
            }
            None if has_gaps => {
                // NaN is in no interval; without branches, since gaps are hard to predict.
                let goes_left = |node: &RoutingNode, x: f64| {
                    node.holds::<true>(x) | (x.is_nan() & (node.special & MISSING_LEFT != 0))
                };
                self.route_together(goes_left, cell, leaves);
            }
            None if self.has_intervals => {
                self.route_together(|node, x| node.holds::<true>(x), cell, leaves);
            }
            None => self.route_together(|node, x| node.holds::<false>(x), cell, leaves),
        }
    }

    /// Routes rows in a tree without oblique tests, [`TOGETHER`] side by side. A row that has arrived stays, since a
    /// leaf leads to itself.
    #[inline(always)]
    fn route_together(
        &self,
        goes_left: impl Fn(&RoutingNode, f64) -> bool,
        cell: impl Fn(usize, usize) -> f64,
        leaves: &mut [i64],
    ) {
        for (group, leaves) in leaves.chunks_mut(TOGETHER).enumerate() {
            let first = group * TOGETHER;
            let mut at = [0u32; TOGETHER];
            loop {
                let mut moved = false;
                for (i, at) in at.iter_mut().enumerate().take(leaves.len()) {
                    let node = &self.nodes[*at as usize];
                    let x = cell(node.feature as usize, first + i);
                    let next = if goes_left(node, x) { node.left } else { node.right };
                    moved |= next != *at;
                    *at = next;
                }
                if !moved {
                    break;
                }
            }
            for (leaf, at) in leaves.iter_mut().zip(at) {
                *leaf = i64::from(at);
            }
        }
    }

    /// Routes rows in a tree with oblique tests: the rows of a node are tested [`TOGETHER`] at a time.
    fn route_by_node(&self, terms: &Terms, cell: impl Fn(usize, usize) -> f64, leaves: &mut [i64]) {
        let mut rows: Vec<u32> = (0..leaves.len() as u32).collect();
        let mut right: Vec<u32> = Vec::with_capacity(rows.len());
        // The rows of a node are a range of `rows`.
        let mut open = vec![(0u32, 0..rows.len())];
        while let Some((id, range)) = open.pop() {
            let node = self.nodes[id as usize];
            if node.left == id {
                for &row in &rows[range] {
                    leaves[row as usize] = i64::from(id);
                }
                continue;
            }
            let (start, end, bias) = terms.runs[id as usize];
            let (columns, weights) = (&terms.columns[start..end], &terms.weights[start..end]);
            let mut middle = range.start;
            right.clear();
            for first in range.clone().step_by(TOGETHER) {
                let n = TOGETHER.min(range.end - first);
                // What lies beyond the last row is tested like it, and not used.
                let group: [u32; TOGETHER] = std::array::from_fn(|i| rows[first + i.min(n - 1)]);
                let goes_left: [bool; TOGETHER] = if columns.is_empty() {
                    group.map(|row| node.holds::<true>(cell(node.feature as usize, row as usize)))
                } else {
                    let mut sums = [bias; TOGETHER];
                    let terms = columns.iter().copied().zip(weights.iter().copied());
                    add_terms(&mut sums, terms, |sums, column, weight| {
                        for (sum, row) in sums.iter_mut().zip(group) {
                            *sum += weight * cell(column as usize, row as usize);
                        }
                    });
                    sums.map(is_left)
                };
                for (&row, goes_left) in group.iter().zip(goes_left).take(n) {
                    if goes_left {
                        rows[middle] = row;
                        middle += 1;
                    } else {
                        right.push(row);
                    }
                }
            }
            rows[middle..range.end].copy_from_slice(&right);
            for (child, range) in
                [(node.right, middle..range.end), (node.left, range.start..middle)]
            {
                if !range.is_empty() {
                    open.push((child, range));
                }
            }
        }
    }
}
