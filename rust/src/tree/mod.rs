//! The tree every method ends in: node tests, structure checks and routing.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::table::{TILE, Table, Value, all_finite};

/// Rows routed side by side.
const TOGETHER: usize = 8;

/// What a node asks of a row. "Left" is the side where the test holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Test {
    /// No test: a leaf.
    Leaf,
    /// `x[feature] <= threshold` goes left.
    Threshold {
        /// The column.
        feature: usize,
        /// The largest value that goes left.
        threshold: f64,
    },
    /// `lower <= x[feature] <= upper` goes left.
    Interval {
        /// The column.
        feature: usize,
        /// The smallest value that goes left.
        lower: f64,
        /// The largest value that goes left.
        upper: f64,
    },
    /// `bias + sum of weight * x[index] < 0` goes left, the sum being taken by [`score`]. The terms are the range
    /// `[start, end)` of two arrays `indices` and `weights` that all tests of the tree share.
    Oblique {
        /// The first term.
        start: usize,
        /// The first term of the next test.
        end: usize,
        /// What the sum starts from.
        bias: f64,
    },
}

/// The weighted sum of an oblique test: the bias, then term by term in the order given, which is that of ascending
/// columns everywhere. It is a plain multiplication and a plain addition of `f64` each time, so that a fit, a prediction
/// and an exported expression have the same bits. `cell(index)` reads a column of the row.
#[inline]
pub fn score(bias: f64, indices: &[u32], weights: &[f64], cell: impl Fn(u32) -> f64) -> f64 {
    let [sum] = scores(bias, indices, weights, |index, _| cell(index));
    sum
}

/// [`score`] for several rows side by side: the additions of one row wait for each other, those of several do not.
/// `cell(index, i)` reads a column of the i-th row.
#[inline(always)]
fn scores<const ROWS: usize>(
    bias: f64,
    indices: &[u32],
    weights: &[f64],
    cell: impl Fn(u32, usize) -> f64,
) -> [f64; ROWS] {
    let mut sums = [bias; ROWS];
    for (&index, &weight) in indices.iter().zip(weights) {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum += weight * cell(index, i);
        }
    }
    sums
}

/// The weights of a tree's oblique tests as they come from outside, one run of terms per node as in a sparse matrix by
/// rows; only oblique nodes have any.
#[derive(Debug, Clone, Copy)]
pub struct ObliqueArrays<'a> {
    /// Where the terms of each node start, and the number of all terms at the end.
    pub indptr: &'a [i64],
    /// The column of each term, ascending within a node.
    pub indices: &'a [i64],
    /// The weight of each term, not 0.
    pub weights: &'a [f64],
    /// Bias of oblique nodes.
    pub bias: &'a [f64],
}

/// The rows of a sparse matrix.
#[derive(Debug, Clone, Copy)]
pub struct SparseRows<'a> {
    /// Where the stored cells of each row start, and their number at the end.
    pub indptr: &'a [i64],
    /// The column of each stored cell, in any order.
    pub indices: &'a [i64],
    /// The value of each stored cell.
    pub values: &'a [f64],
    /// Number of columns.
    pub n_features: usize,
}

impl SparseRows<'_> {
    fn check(&self) -> Result<()> {
        Error::check_len("indices", self.indices.len(), self.values.len(), "entries")?;
        let n_stored = self.values.len() as i64;
        let ends = (self.indptr.first(), self.indptr.last());
        if ends != (Some(&0), Some(&n_stored)) || !self.indptr.is_sorted() {
            return Err(Error::Value(format!(
                "The indptr of a sparse matrix must rise from 0 to {n_stored}."
            )));
        }
        let columns = 0..self.n_features as i64;
        match self.indices.iter().find(|&index| !columns.contains(index)) {
            Some(index) => Err(Error::Value(format!(
                "A sparse matrix of {} columns cannot have a cell in column {index}.",
                self.n_features
            ))),
            None => Ok(()),
        }
    }
}

/// A tree's arrays as they come from outside, one entry per node.
#[derive(Debug, Clone, Copy)]
pub struct TreeArrays<'a> {
    /// 0 leaf, 1 threshold, 2 interval, 3 oblique.
    pub kind: &'a [i8],
    /// Column of the test; not looked at where it is oblique.
    pub feature: &'a [i64],
    /// Threshold of threshold tests.
    pub threshold: &'a [f64],
    /// Lower end of interval tests.
    pub lower: &'a [f64],
    /// Upper end of interval tests.
    pub upper: &'a [f64],
    /// Left child, -1 at leaves.
    pub children_left: &'a [i64],
    /// Right child, -1 at leaves.
    pub children_right: &'a [i64],
    /// The weights; needed only if there are oblique nodes.
    pub oblique: Option<ObliqueArrays<'a>>,
}

/// A node ready for routing; `feature` counts the columns the tree uses, not the table's.
#[derive(Debug, Clone, Copy)]
struct Node {
    lower: f64,
    upper: f64,
    feature: u32,
    left: u32,
    right: u32,
}

/// The terms of one oblique test, as a range of [`Terms`].
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    start: usize,
    end: usize,
    bias: f64,
}

/// The oblique tests of a tree that has some.
#[derive(Debug, Clone)]
struct Terms {
    /// Per node; an empty range where it is not oblique.
    scores: Vec<Score>,
    /// Columns, counted as in [`Node`].
    indices: Vec<u32>,
    weights: Vec<f64>,
}

/// A checked tree, ready to route rows.
#[derive(Debug, Clone)]
pub struct ClusterTree {
    nodes: Vec<Node>,
    used_features: Vec<usize>,
    has_intervals: bool,
    oblique: Option<Terms>,
}

impl ClusterTree {
    /// Checks the arrays and builds the tree.
    ///
    /// # Errors
    /// [`Error::Shape`] if the arrays differ in length; [`Error::Tree`] if they are not one binary tree whose
    /// children come after their parents, or if a test is not finite or names a column outside `[0, n_features)`, or if
    /// the terms of an oblique test are none, 0 or not in the order of their columns.
    pub fn new(arrays: TreeArrays<'_>, n_features: usize) -> Result<Self> {
        let n = arrays.kind.len();
        for (what, got) in [
            ("feature", arrays.feature.len()),
            ("threshold", arrays.threshold.len()),
            ("lower", arrays.lower.len()),
            ("upper", arrays.upper.len()),
            ("children_left", arrays.children_left.len()),
            ("children_right", arrays.children_right.len()),
        ] {
            Error::check_len(what, got, n, "entries")?;
        }
        if n == 0 || n >= u32::MAX as usize {
            return Err(Error::Tree(format!("it has {n} nodes.")));
        }
        if let Some(oblique) = &arrays.oblique {
            check_runs(oblique, n)?;
        }
        let tests =
            (0..n).map(|i| node_test(&arrays, i, n_features)).collect::<Result<Vec<_>>>()?;
        let mut has_parent = vec![false; n];
        has_parent[0] = true;
        for (i, test) in tests.iter().enumerate() {
            let children = [arrays.children_left[i], arrays.children_right[i]];
            if *test == Test::Leaf {
                if children != [-1, -1] {
                    return Err(Error::Tree(format!("node {i} is a leaf but has children.")));
                }
                continue;
            }
            for child in children {
                let inside = usize::try_from(child).ok().filter(|&c| i < c && c < n);
                match inside {
                    Some(c) if !has_parent[c] => has_parent[c] = true,
                    Some(c) => return Err(Error::Tree(format!("node {c} has two parents."))),
                    None => {
                        return Err(Error::Tree(format!(
                            "child {child} of node {i} is not in the range [{}, {n}).",
                            i + 1
                        )));
                    }
                }
            }
        }
        if let Some(orphan) = has_parent.iter().position(|&has| !has) {
            return Err(Error::Tree(format!("node {orphan} has no parent.")));
        }
        let (indices, weights) =
            arrays.oblique.map_or((&[][..], &[][..]), |o| (o.indices, o.weights));
        Ok(Self::from_tests(&tests, indices, weights, |i| {
            (arrays.children_left[i] as u32, arrays.children_right[i] as u32)
        }))
    }

    fn from_tests(
        tests: &[Test],
        indices: &[i64],
        weights: &[f64],
        children: impl Fn(usize) -> (u32, u32),
    ) -> Self {
        let mut used_features: Vec<usize> = tests.iter().filter_map(Test::feature).collect();
        used_features.extend(indices.iter().map(|&index| index as usize));
        used_features.sort_unstable();
        used_features.dedup();
        let slot_of = |feature: usize| used_features.binary_search(&feature).unwrap_or(0) as u32;
        let nodes = tests
            .iter()
            .enumerate()
            .map(|(i, test)| {
                // A leaf leads to itself, so a row that has arrived stays.
                let this = i as u32;
                let (left, right) = if *test == Test::Leaf { (this, this) } else { children(i) };
                let (lower, upper) = match *test {
                    Test::Leaf | Test::Oblique { .. } => (f64::NEG_INFINITY, f64::INFINITY),
                    Test::Threshold { threshold, .. } => (f64::NEG_INFINITY, threshold),
                    Test::Interval { lower, upper, .. } => (lower, upper),
                };
                Node { lower, upper, feature: test.feature().map_or(0, slot_of), left, right }
            })
            .collect();
        let has_intervals = tests.iter().any(|test| matches!(test, Test::Interval { .. }));
        let oblique = (!indices.is_empty()).then(|| Terms {
            scores: tests.iter().map(Score::of).collect(),
            indices: indices.iter().map(|&index| slot_of(index as usize)).collect(),
            weights: weights.to_vec(),
        });
        ClusterTree { nodes, used_features, has_intervals, oblique }
    }

    /// The leaf each row falls into, as a node id.
    ///
    /// # Errors
    /// [`Error::Tree`] if the tree uses a column the table does not have.
    pub fn apply(&self, table: &Table<'_>) -> Result<Vec<i64>> {
        self.check_width(table.n_features())?;
        // Only the columns the tree uses are read.
        Ok(self.apply_tiles(table.n_samples(), |start, n, tile, cells| {
            for (slot, &feature) in self.used_features.iter().enumerate() {
                table.column(feature).read(start, &mut cells[slot * tile..][..n]);
            }
        }))
    }

    /// As [`ClusterTree::apply`] for the rows of a sparse matrix, cells that are not stored being 0 and those stored more
    /// than once being added up. None if a stored value is NaN or infinite.
    ///
    /// # Errors
    /// [`Error::Tree`] if the tree uses a column the matrix does not have; [`Error::Shape`] and [`Error::Value`] if the
    /// arrays are not those of a sparse matrix.
    pub fn apply_sparse(&self, rows: SparseRows<'_>) -> Result<Option<Vec<i64>>> {
        self.check_width(rows.n_features)?;
        rows.check()?;
        if !rows.values.par_chunks(TILE * 16).all(all_finite) {
            return Ok(None);
        }
        let mut slots = vec![None; rows.n_features];
        for (slot, &feature) in self.used_features.iter().enumerate() {
            slots[feature] = Some(slot);
        }
        Ok(Some(self.apply_tiles(rows.indptr.len() - 1, |start, n, tile, cells| {
            cells.fill(0.0);
            for i in 0..n {
                let stored = rows.indptr[start + i] as usize..rows.indptr[start + i + 1] as usize;
                for (&index, &value) in
                    rows.indices[stored.clone()].iter().zip(&rows.values[stored])
                {
                    if let Some(slot) = slots[index as usize] {
                        cells[slot * tile + i] += value;
                    }
                }
            }
        })))
    }

    /// Routes rows a tile at a time: `read(start, n, tile, cells)` copies `n` rows from `start` on, the columns that the
    /// tree uses side by side, each in the first places of `tile` cells.
    fn apply_tiles(
        &self,
        n_samples: usize,
        read: impl Fn(usize, usize, usize, &mut [f64]) + Sync,
    ) -> Vec<i64> {
        let mut leaves = vec![0i64; n_samples];
        let tile = tile_rows(self.used_features.len());
        leaves.par_chunks_mut(tile).enumerate().for_each_init(
            || vec![0.0; tile * self.used_features.len().max(1)],
            |cells, (block, leaves)| {
                read(block * tile, leaves.len(), tile, cells);
                if let Some(terms) = &self.oblique {
                    self.route_by_node(terms, |slot, i| cells[slot * tile + i], leaves);
                } else if self.has_intervals {
                    self.route_tile::<true>(cells, tile, leaves);
                } else {
                    self.route_tile::<false>(cells, tile, leaves);
                }
            },
        );
        leaves
    }

    /// As [`ClusterTree::apply`] for the rows of a C-ordered matrix, in one pass that also looks for NaN and infinite
    /// cells: none if there are any.
    ///
    /// # Errors
    /// [`Error::Tree`] if the tree uses a column the matrix does not have.
    pub fn apply_rows<T: Value>(&self, cells: &[T], n_features: usize) -> Result<Option<Vec<i64>>> {
        self.check_width(n_features)?;
        // Nodes that name the matrix' own columns.
        let mut tree = self.clone();
        let column =
            |slot: u32| self.used_features.get(slot as usize).map_or(0, |&feature| feature as u32);
        for node in &mut tree.nodes {
            node.feature = column(node.feature);
        }
        for index in tree.oblique.iter_mut().flat_map(|terms| &mut terms.indices) {
            *index = column(*index);
        }
        let width = n_features.max(1);
        let tile = tile_rows(width);
        let mut leaves = vec![0i64; cells.len() / width];
        let route = |(rows, leaves): (&[T], &mut [i64])| {
            if let Some(terms) = &tree.oblique {
                let tiles = rows.chunks(tile * width).zip(leaves.chunks_mut(tile));
                return tiles.into_iter().all(|(rows, leaves)| {
                    let cell = |feature: usize, i: usize| rows[i * width + feature].to_f64();
                    all_finite(rows) && {
                        tree.route_by_node(terms, cell, leaves);
                        true
                    }
                });
            }
            for (rows, leaves) in rows.chunks(TOGETHER * width).zip(leaves.chunks_mut(TOGETHER)) {
                if !all_finite(rows) {
                    return false;
                }
                let cell = |feature: usize, i: usize| rows[i * width + feature].to_f64();
                let at = if tree.has_intervals {
                    tree.route::<true>(cell, leaves.len())
                } else {
                    tree.route::<false>(cell, leaves.len())
                };
                for (leaf, at) in leaves.iter_mut().zip(at) {
                    *leaf = i64::from(at);
                }
            }
            true
        };
        let finite =
            cells.par_chunks(TILE * width).zip(leaves.par_chunks_mut(TILE)).map(route).all(|ok| ok);
        Ok(finite.then_some(leaves))
    }

    fn check_width(&self, n_features: usize) -> Result<()> {
        match self.used_features.last() {
            Some(&feature) if feature >= n_features => Err(Error::Tree(format!(
                "it uses column {feature}, but the table has {n_features} columns."
            ))),
            _ => Ok(()),
        }
    }

    fn route_tile<const INTERVALS: bool>(&self, cells: &[f64], tile: usize, leaves: &mut [i64]) {
        for (group, leaves) in leaves.chunks_mut(TOGETHER).enumerate() {
            let first = group * TOGETHER;
            let cell = |slot: usize, i: usize| cells[slot * tile + first + i];
            let at = self.route::<INTERVALS>(cell, leaves.len());
            for (leaf, at) in leaves.iter_mut().zip(at) {
                *leaf = i64::from(at);
            }
        }
    }

    /// Decides where rows go in a tree without oblique tests. `cell(slot, i)` reads a used column of the i-th of at most
    /// [`TOGETHER`] rows. They go down side by side: the steps of one row wait for each other, those of several
    /// rows do not. A row that has arrived stays, since a leaf leads to itself.
    #[inline(always)]
    fn route<const INTERVALS: bool>(
        &self,
        cell: impl Fn(usize, usize) -> f64,
        n_rows: usize,
    ) -> [u32; TOGETHER] {
        let mut at = [0u32; TOGETHER];
        loop {
            let mut moved = false;
            for (i, at) in at.iter_mut().enumerate().take(n_rows) {
                let node = &self.nodes[*at as usize];
                let x = cell(node.feature as usize, i);
                let inside = node.holds::<INTERVALS>(x);
                let next = if inside { node.left } else { node.right };
                moved |= next != *at;
                *at = next;
            }
            if !moved {
                return at;
            }
        }
    }

    /// As `route` for a tree with oblique tests, whose cost is in their terms: the rows of a node are tested together,
    /// [`TOGETHER`] at a time, before any of them goes on. `cell(slot, i)` reads a used column of the i-th row.
    fn route_by_node(&self, terms: &Terms, cell: impl Fn(usize, usize) -> f64, leaves: &mut [i64]) {
        let mut rows: Vec<u32> = (0..leaves.len() as u32).collect();
        let mut right: Vec<u32> = Vec::with_capacity(rows.len());
        // The rows of a node are a range of `rows`.
        let mut open = vec![(0u32, 0..rows.len())];
        while let Some((id, range)) = open.pop() {
            let (node, score) = (self.nodes[id as usize], terms.scores[id as usize]);
            if node.left == id {
                for &row in &rows[range] {
                    leaves[row as usize] = i64::from(id);
                }
                continue;
            }
            let (start, end) = (score.start, score.end);
            let (indices, weights) = (&terms.indices[start..end], &terms.weights[start..end]);
            let mut middle = range.start;
            right.clear();
            for first in range.clone().step_by(TOGETHER) {
                let n = TOGETHER.min(range.end - first);
                // What lies beyond the last row is tested like it, and not used.
                let group: [u32; TOGETHER] = std::array::from_fn(|i| rows[first + i.min(n - 1)]);
                let goes_left: [bool; TOGETHER] = if indices.is_empty() {
                    group.map(|row| node.holds::<true>(cell(node.feature as usize, row as usize)))
                } else {
                    scores(score.bias, indices, weights, |slot, i| {
                        cell(slot as usize, group[i] as usize)
                    })
                    .map(|sum: f64| sum < 0.0)
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

/// Rows whose cells in `n_columns` columns are worked on at a time.
fn tile_rows(n_columns: usize) -> usize {
    (64 * TILE / n_columns.max(1)).clamp(16, TILE)
}

impl Node {
    /// Whether `x` goes left.
    #[inline(always)]
    fn holds<const INTERVALS: bool>(&self, x: f64) -> bool {
        (x <= self.upper) & (!INTERVALS || self.lower <= x)
    }
}

impl Score {
    fn of(test: &Test) -> Score {
        match *test {
            Test::Oblique { start, end, bias } => Score { start, end, bias },
            _ => Score::default(),
        }
    }
}

impl Test {
    /// The one column the test reads; none at leaves and where it is oblique.
    pub fn feature(&self) -> Option<usize> {
        match *self {
            Test::Leaf | Test::Oblique { .. } => None,
            Test::Threshold { feature, .. } | Test::Interval { feature, .. } => Some(feature),
        }
    }
}

/// Whether the runs of terms of `n` nodes follow each other from the first term to the last.
fn check_runs(oblique: &ObliqueArrays<'_>, n: usize) -> Result<()> {
    Error::check_len("oblique_indptr", oblique.indptr.len(), n + 1, "entries")?;
    Error::check_len("oblique_bias", oblique.bias.len(), n, "entries")?;
    let n_terms = oblique.indices.len();
    Error::check_len("oblique_weights", oblique.weights.len(), n_terms, "entries")?;
    let ends = (oblique.indptr[0], oblique.indptr[n]);
    if ends != (0, n_terms as i64) || !oblique.indptr.is_sorted() {
        return Err(Error::Tree(format!("its oblique_indptr does not rise from 0 to {n_terms}.")));
    }
    Ok(())
}

fn oblique_test(oblique: &ObliqueArrays<'_>, i: usize, n_features: usize) -> Result<Test> {
    let (start, end) = (oblique.indptr[i] as usize, oblique.indptr[i + 1] as usize);
    let (indices, weights) = (&oblique.indices[start..end], &oblique.weights[start..end]);
    let bias = oblique.bias[i];
    let n = n_features.min(u32::MAX as usize) as i64;
    let complaint = if indices.is_empty() {
        format!("node {i} is oblique but has no weights.")
    } else if !indices.is_sorted_by(|a, b| a < b) {
        format!("the columns of the oblique node {i} are not in ascending order.")
    } else if let Some(index) = indices.iter().find(|&index| !(0..n).contains(index)) {
        format!("node {i} tests column {index}, which is not in the range [0, {n_features}).")
    } else if let Some(weight) = weights.iter().find(|&w| !w.is_finite() || *w == 0.0) {
        format!("a weight of node {i} is {weight}.")
    } else if !bias.is_finite() {
        format!("the bias of node {i} is {bias}.")
    } else {
        return Ok(Test::Oblique { start, end, bias });
    };
    Err(Error::Tree(complaint))
}

fn node_test(arrays: &TreeArrays<'_>, i: usize, n_features: usize) -> Result<Test> {
    match (arrays.kind[i], &arrays.oblique) {
        (3, Some(oblique)) => return oblique_test(oblique, i, n_features),
        (3, None) => {
            return Err(Error::Tree(format!("node {i} is oblique, but the tree has no weights.")));
        }
        (_, Some(oblique)) if oblique.indptr[i] != oblique.indptr[i + 1] => {
            return Err(Error::Tree(format!("node {i} has weights but is not oblique.")));
        }
        (0, _) => return Ok(Test::Leaf),
        _ => {}
    }
    let feature = usize::try_from(arrays.feature[i]).ok().filter(|&f| f < n_features);
    let Some(feature) = feature else {
        return Err(Error::Tree(format!(
            "node {i} tests column {}, which is not in the range [0, {n_features}).",
            arrays.feature[i]
        )));
    };
    match arrays.kind[i] {
        1 if arrays.threshold[i].is_finite() => {
            Ok(Test::Threshold { feature, threshold: arrays.threshold[i] })
        }
        1 => Err(Error::Tree(format!("the threshold of node {i} is {}.", arrays.threshold[i]))),
        2 => {
            let (lower, upper) = (arrays.lower[i], arrays.upper[i]);
            if lower.is_finite() && upper.is_finite() && lower <= upper {
                Ok(Test::Interval { feature, lower, upper })
            } else {
                Err(Error::Tree(format!("the interval of node {i} is [{lower}, {upper}].")))
            }
        }
        kind => Err(Error::Tree(format!("node {i} is of unknown kind {kind}."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    const KIND: [i8; 5] = [1, 0, 2, 0, 0];
    const FEATURE: [i64; 5] = [0, -2, 1, -2, -2];
    const THRESHOLD: [f64; 5] = [0.5, -2.0, f64::NAN, -2.0, -2.0];
    const LOWER: [f64; 5] = [f64::NAN, f64::NAN, 1.0, f64::NAN, f64::NAN];
    const UPPER: [f64; 5] = [f64::NAN, f64::NAN, 2.0, f64::NAN, f64::NAN];
    const LEFT: [i64; 5] = [1, -1, 3, -1, -1];
    const RIGHT: [i64; 5] = [2, -1, 4, -1, -1];

    fn arrays() -> TreeArrays<'static> {
        TreeArrays {
            kind: &KIND,
            feature: &FEATURE,
            threshold: &THRESHOLD,
            lower: &LOWER,
            upper: &UPPER,
            children_left: &LEFT,
            children_right: &RIGHT,
            oblique: None,
        }
    }

    #[test]
    fn values_equal_to_an_end_go_left() {
        let tree = ClusterTree::new(arrays(), 2).unwrap();
        let x = array![[0.5, 9.0], [0.6, 1.0], [0.6, 2.0], [0.6, 2.1], [0.6, 0.9]];
        let leaves = tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap();
        assert_eq!(leaves, [1, 3, 3, 4, 4]);
        assert_eq!(tree.apply_rows(x.as_slice().unwrap(), 2).unwrap(), Some(leaves));
        let broken = [0.5, 9.0, 0.6, f64::NAN];
        assert_eq!(tree.apply_rows(&broken, 2).unwrap(), None);
        assert!(tree.apply_rows(&broken, 1).is_err());
    }

    #[test]
    fn broken_trees_are_refused() {
        let cases: Vec<(TreeArrays<'_>, usize, &str)> = vec![
            (TreeArrays { children_left: &[1, -1, 1, -1, -1], ..arrays() }, 2, "child 1 of node 2"),
            (TreeArrays { children_left: &[2, -1, 3, -1, -1], ..arrays() }, 2, "two parents"),
            (TreeArrays { children_left: &[1, -1, 9, -1, -1], ..arrays() }, 2, "child 9"),
            (TreeArrays { kind: &[1, 0, 0, 0, 0], ..arrays() }, 2, "has children"),
            (TreeArrays { kind: &[1, 0, 7, 0, 0], ..arrays() }, 2, "unknown kind 7"),
            (TreeArrays { lower: &[0.0, 0.0, 3.0, 0.0, 0.0], ..arrays() }, 2, "interval of node 2"),
            (TreeArrays { threshold: &[f64::NAN; 5], ..arrays() }, 2, "threshold of node 0"),
            (arrays(), 1, "tests column 1"),
            (TreeArrays { feature: &[0], ..arrays() }, 2, "feature has 1 entries"),
        ];
        for (arrays, n_features, expected) in cases {
            let message = ClusterTree::new(arrays, n_features).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    const INDPTR: [i64; 6] = [0, 2, 2, 2, 2, 2];
    const INDICES: [i64; 2] = [0, 2];
    const WEIGHTS: [f64; 2] = [1.0, -0.5];
    const BIAS: [f64; 5] = [-1.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN];

    /// `x0 - 0.5 x2 - 1 < 0` goes to the leaf 1, the others to the interval of node 2.
    fn oblique_arrays() -> TreeArrays<'static> {
        TreeArrays { kind: &[3, 0, 2, 0, 0], feature: &[-2, -2, 1, -2, -2], ..arrays() }
    }

    fn runs() -> ObliqueArrays<'static> {
        ObliqueArrays { indptr: &INDPTR, indices: &INDICES, weights: &WEIGHTS, bias: &BIAS }
    }

    #[test]
    fn scores_below_0_go_left() {
        let arrays = TreeArrays { oblique: Some(runs()), ..oblique_arrays() };
        let tree = ClusterTree::new(arrays, 4).unwrap();
        // Below 0; 0 twice; above.
        let x = array![
            [1.0, 1.5, 0.1, 0.0],
            [1.5, 1.5, 1.0, 0.0],
            [0.0, 2.5, -2.0, 0.0],
            [9.0, 2.0, 1.0, 0.0],
            [f64::MAX, 1.0, f64::MAX, 0.0]
        ];
        let leaves = tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap();
        assert_eq!(leaves, [1, 3, 4, 3, 3]);
        assert_eq!(tree.apply_rows(x.as_slice().unwrap(), 4).unwrap(), Some(leaves));
        assert!(tree.apply_rows(&[1.0, 2.0], 2).is_err());
        // Infinity minus infinity is not below 0.
        let steep = ObliqueArrays { weights: &[1e300, -1e300], ..runs() };
        let arrays = TreeArrays { oblique: Some(steep), ..oblique_arrays() };
        let tree = ClusterTree::new(arrays, 3).unwrap();
        assert_eq!(tree.apply_rows(&[1e300, 1.0, 1e300], 3).unwrap(), Some(vec![3]));
    }

    #[test]
    fn sums_are_rounded_step_by_step() {
        // The numbers near 1e17 are 16 apart: the bias swallows a 3 that comes first.
        let cell = |index: u32| [3.0, 1.0][index as usize];
        assert_eq!(score(1e17, &[0, 1], &[1.0, -1e17], cell), 0.0);
        assert_eq!(score(1e17, &[1, 0], &[-1e17, 1.0], cell), 3.0);
        // The product is rounded before it is added: fused, the sum would be 2^-60.
        let x = 1.0 + 0.5f64.powi(30);
        assert_eq!(score(-1.0 - 0.5f64.powi(29), &[0], &[x], |_| x), 0.0);
    }

    /// Rows of all lengths of groups and tiles, in both layouts, against one row at a time.
    #[test]
    fn rows_take_the_same_way_alone_and_together() {
        let n_features = 700;
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1u64 << 23) as f64 - 1.0
        };
        // Two oblique levels above four leaves, then one threshold: nodes 0, 1, 2 oblique, 3 by column 7.
        let weights: Vec<f64> = (0..3 * 350).map(|_| random()).collect();
        let indices: Vec<i64> =
            (0..3).flat_map(|start| (0..350).map(move |i| (2 * i + start % 2) as i64)).collect();
        let nan = [f64::NAN; 9];
        let mut bias = nan;
        (0..3).for_each(|node| bias[node] = random());
        let arrays = TreeArrays {
            kind: &[3, 3, 3, 1, 0, 0, 0, 0, 0],
            feature: &[-2, -2, -2, 7, -2, -2, -2, -2, -2],
            threshold: &[0.1; 9],
            lower: &nan,
            upper: &nan,
            children_left: &[1, 3, 5, 7, -1, -1, -1, -1, -1],
            children_right: &[2, 4, 6, 8, -1, -1, -1, -1, -1],
            oblique: Some(ObliqueArrays {
                indptr: &[0, 350, 700, 1050, 1050, 1050, 1050, 1050, 1050, 1050],
                indices: &indices,
                weights: &weights,
                bias: &bias,
            }),
        };
        let tree = ClusterTree::new(arrays, n_features).unwrap();
        for n in [1, 7, 8, 9, 93, 94, 1100] {
            let x = ndarray::Array2::from_shape_fn((n, n_features), |_| random());
            let expected: Vec<i64> = x
                .rows()
                .into_iter()
                .map(|row| {
                    let mut node = 0;
                    while arrays.children_left[node] >= 0 {
                        let left = if node == 3 {
                            row[7] <= 0.1
                        } else {
                            let run = node * 350..(node + 1) * 350;
                            let terms = indices[run.clone()].iter().zip(&weights[run]);
                            terms.fold(bias[node], |sum, (&i, w)| sum + w * row[i as usize]) < 0.0
                        };
                        let children =
                            if left { arrays.children_left } else { arrays.children_right };
                        node = children[node] as usize;
                    }
                    node as i64
                })
                .collect();
            let leaves = tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap();
            assert_eq!(leaves, expected, "{n} rows by columns");
            let rows = x.as_slice().unwrap();
            assert_eq!(tree.apply_rows(rows, n_features).unwrap(), Some(leaves), "{n} rows");
            let mut broken = rows.to_vec();
            broken[rows.len() - 1] = f64::INFINITY;
            assert_eq!(tree.apply_rows(&broken, n_features).unwrap(), None);
        }
    }

    #[test]
    fn broken_oblique_tests_are_refused() {
        let cases: Vec<(ObliqueArrays<'_>, &str)> = vec![
            (ObliqueArrays { indptr: &[0, 2], ..runs() }, "oblique_indptr has 2 entries"),
            (ObliqueArrays { bias: &[0.0], ..runs() }, "oblique_bias has 1 entries"),
            (ObliqueArrays { weights: &[1.0], ..runs() }, "oblique_weights has 1 entries"),
            (ObliqueArrays { indptr: &[0, 1, 1, 1, 1, 1], ..runs() }, "rise from 0 to 2"),
            (ObliqueArrays { indptr: &[0, 3, 2, 2, 2, 2], ..runs() }, "rise from 0 to 2"),
            (ObliqueArrays { indptr: &[1, 2, 2, 2, 2, 2], ..runs() }, "rise from 0 to 2"),
            (ObliqueArrays { indptr: &[0, 1, 2, 2, 2, 2], ..runs() }, "node 1 has weights"),
            (ObliqueArrays { indptr: &[0, 0, 0, 2, 2, 2], ..runs() }, "node 0 is oblique but has"),
            (ObliqueArrays { indices: &[2, 0], ..runs() }, "not in ascending order"),
            (ObliqueArrays { indices: &[2, 2], ..runs() }, "not in ascending order"),
            (ObliqueArrays { indices: &[0, 3], ..runs() }, "tests column 3"),
            (ObliqueArrays { indices: &[-1, 2], ..runs() }, "tests column -1"),
            (ObliqueArrays { weights: &[0.0, 1.0], ..runs() }, "a weight of node 0 is 0"),
            (ObliqueArrays { weights: &[1.0, f64::NAN], ..runs() }, "a weight of node 0 is NaN"),
            (ObliqueArrays { bias: &[f64::NAN; 5], ..runs() }, "the bias of node 0 is NaN"),
        ];
        for (runs, expected) in cases {
            let arrays = TreeArrays { oblique: Some(runs), ..oblique_arrays() };
            let message = ClusterTree::new(arrays, 3).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let message = ClusterTree::new(oblique_arrays(), 3).unwrap_err().to_string();
        assert!(message.contains("node 0 is oblique, but the tree has no weights"), "{message}");
    }

    #[test]
    fn sparse_rows_take_the_way_of_full_ones() {
        let x = array![[1.0, 1.5, 0.0], [0.0, 0.0, -2.0], [0.0, 2.5, -2.0], [0.0, 0.0, 0.0]];
        let sparse = SparseRows {
            indptr: &[0, 2, 3, 6, 6],
            // The last row that stores anything does so out of order and in two parts.
            indices: &[0, 1, 2, 2, 1, 2],
            values: &[1.0, 1.5, -2.0, -1.5, 2.5, -0.5],
            n_features: 3,
        };
        let oblique = TreeArrays { oblique: Some(runs()), ..oblique_arrays() };
        for arrays in [oblique, arrays()] {
            let tree = ClusterTree::new(arrays, 3).unwrap();
            let leaves = tree.apply(&Table::from_matrix(x.view()).unwrap()).unwrap();
            assert_eq!(tree.apply_sparse(sparse).unwrap(), Some(leaves));
            let values = &[1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0];
            assert_eq!(tree.apply_sparse(SparseRows { values, ..sparse }).unwrap(), None);
            for (rows, expected) in [
                (SparseRows { indptr: &[], ..sparse }, "rise from 0 to 6"),
                (SparseRows { indptr: &[0, 7, 6], ..sparse }, "rise from 0 to 6"),
                (SparseRows { indptr: &[0, 2], ..sparse }, "rise from 0 to 6"),
                (SparseRows { indices: &[0], ..sparse }, "indices has 1 entries"),
                (SparseRows { indices: &[0, 1, 3, 0, 0, 0], ..sparse }, "a cell in column 3"),
                (SparseRows { indices: &[0, 1, -1, 0, 0, 0], ..sparse }, "a cell in column -1"),
                (SparseRows { n_features: 1, ..sparse }, "the table has 1 columns"),
            ] {
                let message = tree.apply_sparse(rows).unwrap_err().to_string();
                assert!(message.contains(expected), "{message}");
            }
        }
    }

    #[test]
    fn send_and_sync() {
        fn both<T: Send + Sync>() {}
        both::<ClusterTree>();
    }
}
