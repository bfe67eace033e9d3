//! Best cuts of nodes of sparse rows.
//!
//! A node holds its stored cells, column by column ([`SparseColumns`]). Along a column its rows are the negative cells,
//! one group of all cells that are not stored, and the positive cells: what the group of zeros adds up to is the node's
//! total less the rest. The criterion then decides as for the values of a table ([`choose_cut`]): the same cuts, margins
//! and tie rule. Columns without a cell are one value, and looked at only where a criterion can cut such columns.
//!
//! **Slack.** Totals and the sums of a column are carried in two doubles each (Knuth's two-sum), so that the zeros' sums
//! are off by a few units in their own last place where they are above 1e-16 of the node's total, and by 1e-32 of that
//! total below. Counts are exact.
//!
//! **Bounds.** The zeros of a column are on one side of every cut and cost there what they cost alone, so that few
//! columns can have the best cut: they are swept in the order of these bounds until no other one reaches the best score.
//!
//! **Cost.** O(cells x width) per node, and O(width) for every distinct cell of the columns that are swept. No bins:
//! they would pay from some 1e8 cells on.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use super::columns::SparseColumns;
use crate::criterion::{Criterion, CutForm, OwnGroups, RowSums};
use crate::error::Result;
use crate::exact::ExactSums;
use crate::grow::{GrowingTree, Searched, Searcher, narrow, test_of};
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::rows::{CsrRows, Rows};
use crate::search::{BestCut, choose_cut};

/// Fewest columns of a task.
const COLUMNS_PER_TASK: usize = 8;
/// Columns that are swept before their scores are compared with the bounds of others; then twice as many, and so on.
const FIRST_SWEPT: usize = 16;

/// Finds the best cuts of nodes of sparse rows by one criterion.
pub(crate) struct SparseEngine<'a, 't, C> {
    matrix: &'a CsrRows<'t>,
    /// The cells of all rows.
    columns: &'a SparseColumns,
    criterion: &'a C,
    monitor: &'a Monitor,
    /// By row: the side of the node that is split on which it is searched; [`NOWHERE`] between splits.
    sides: Mutex<Vec<u8>>,
}

/// A row that is in neither child; the children are 1 and 2.
const NOWHERE: u8 = 0;

/// A node, its cells and what its rows add up to.
pub(crate) struct SearchedCells<'a, N> {
    node: N,
    /// Sums over the node's rows.
    totals: Compensated,
    n_rows: usize,
    columns: Cow<'a, SparseColumns>,
    upper: f64,
}

impl<N> SearchedCells<'_, N> {
    /// The cells of a column and their rows.
    fn cells(&self, candidate: &CandidateColumn) -> (&[f64], &[u32]) {
        candidate.place.map_or((&[], &[]), |place| self.columns.at(place))
    }
}

impl<N> Searched for SearchedCells<'_, N> {
    type Node = N;

    fn node(&self) -> &N {
        &self.node
    }

    fn upper(&self) -> Option<f64> {
        Some(self.upper)
    }
}

impl<'a, 't, C: Criterion> SparseEngine<'a, 't, C> {
    /// An engine for one criterion; `columns` must be the matrix's.
    pub fn new(
        matrix: &'a CsrRows<'t>,
        columns: &'a SparseColumns,
        criterion: &'a C,
        monitor: &'a Monitor,
    ) -> Self {
        let sides = Mutex::new(memory::filled(NOWHERE, matrix.n_rows(), "the sides of the rows"));
        SparseEngine { matrix, columns, criterion, monitor, sides }
    }

    /// A node with its cells.
    fn searched(
        &self,
        rows: &[u32],
        node: C::Node,
        columns: Cow<'a, SparseColumns>,
    ) -> SearchedCells<'a, C::Node> {
        let sums = self.criterion.rows();
        let mut totals = Compensated::new(sums.width());
        let mut row_sums = vec![0.0; sums.width()];
        for &row in rows {
            row_sums.fill(0.0);
            sums.add(row, &mut row_sums);
            totals.add(&row_sums, 1.0);
        }
        let upper = self.criterion.most(&node);
        SearchedCells { node, totals, n_rows: rows.len(), columns, upper }
    }

    /// Calls `work` while the rows of every child are marked by its number, from 1 on.
    fn with_marked<T>(&self, children: &[&[u32]], work: impl FnOnce(&[u8]) -> T) -> T {
        let mut sides = self.sides.lock().unwrap_or_else(PoisonError::into_inner);
        for (rows, mark) in children.iter().zip(NOWHERE + 1..) {
            rows.iter().for_each(|&row| sides[row as usize] = mark);
        }
        let found = work(&sides);
        for rows in children {
            rows.iter().for_each(|&row| sides[row as usize] = NOWHERE);
        }
        found
    }

    /// The node's rows grouped by the values of one column, given as its cells and their rows.
    fn by_value(
        &self,
        searched: &SearchedCells<'_, C::Node>,
        (values, rows): (&[f64], &[u32]),
    ) -> OwnGroups {
        let width = self.criterion.rows().width();
        let n_zeros = searched.n_rows - values.len();
        let n_negative = values.partition_point(|&x| x < 0.0);
        let mut groups = OwnGroups::default();
        groups.reserve(values.len() + 1, width);
        self.push_values(&mut groups, &values[..n_negative], &rows[..n_negative]);
        let zeros = groups.sums.len();
        if n_zeros > 0 {
            groups.push(n_zeros as u32, 0.0, 0.0, &[]);
            groups.sums.resize(zeros + width, 0.0);
        }
        self.push_values(&mut groups, &values[n_negative..], &rows[n_negative..]);
        if n_zeros > 0 {
            let mut rest = searched.totals.clone();
            groups.sums.chunks_exact(width).for_each(|sums| rest.add(sums, -1.0));
            // What rows add up to is never negative.
            let of_zeros = &mut groups.sums[zeros..][..width];
            of_zeros.iter_mut().zip(rest.rounded()).for_each(|(sum, x)| *sum = x.max(0.0));
        }
        groups
    }

    /// Adds a group for every value; the values ascend.
    fn push_values(&self, groups: &mut OwnGroups, values: &[f64], rows: &[u32]) {
        let row_sums = self.criterion.rows();
        let mut rest = rows;
        for equal in values.chunk_by(|a, b| a == b) {
            groups.push(equal.len() as u32, equal[0], equal[0], &[]);
            let start = groups.sums.len();
            groups.sums.resize(start + row_sums.width(), 0.0);
            let (of_value, others) = rest.split_at(equal.len());
            of_value.iter().for_each(|&row| row_sums.add(row, &mut groups.sums[start..]));
            rest = others;
        }
    }

    /// The columns that may be cut, ascending.
    fn candidates(&self, searched: &SearchedCells<'_, C::Node>) -> Vec<CandidateColumn> {
        let features = searched.columns.features().iter().map(|&feature| feature as usize);
        let mut with_cells = features.zip(0..).peekable();
        let candidate = |feature: usize| {
            let place = with_cells.next_if(|(other, _)| *other == feature).map(|(_, place)| place);
            let is_cut =
                place.is_some() || self.criterion.cuts_equal_cells(&searched.node, feature);
            is_cut.then_some(CandidateColumn { feature, place })
        };
        (0..self.matrix.n_columns()).filter_map(candidate).collect()
    }

    /// No cut of the column scores more.
    fn bound(&self, searched: &SearchedCells<'_, C::Node>, candidate: &CandidateColumn) -> f64 {
        let sums = self.criterion.rows();
        let (_, rows) = searched.cells(candidate);
        let mut stored = vec![0.0; sums.width()];
        rows.iter().for_each(|&row| sums.add(row, &mut stored));
        // Of m sums of numbers that are not negative, none is off by more than m units in the last place of the total.
        let rounding = (rows.len() + 2) as f64 * f64::EPSILON;
        for (zeros, total) in stored.iter_mut().zip(searched.totals.rounded()) {
            *zeros = (total - *zeros - rounding * total).max(0.0);
        }
        self.criterion.most_beside_zeros(&searched.node, candidate.feature, &stored)
    }
}

/// A column that may be cut at a node.
struct CandidateColumn {
    feature: usize,
    /// Its place among those that have cells there.
    place: Option<usize>,
}

impl<'a, C: Criterion> Searcher for SparseEngine<'a, '_, C> {
    type Criterion = C;
    type Searched = SearchedCells<'a, C::Node>;

    fn criterion(&self) -> &C {
        self.criterion
    }

    fn monitor(&self) -> &Monitor {
        self.monitor
    }

    fn search(&self, rows: &[u32], node: C::Node, _: bool) -> Result<Self::Searched> {
        self.monitor.check()?;
        let columns = if rows.len() == self.matrix.n_rows() {
            Cow::Borrowed(self.columns)
        } else {
            Cow::Owned(self.with_marked(&[rows], |sides| {
                self.columns.select(|row| sides[row as usize] != NOWHERE)
            }))
        };
        Ok(self.searched(rows, node, columns))
    }

    fn search_children(
        &self,
        parent: Self::Searched,
        children: [(&[u32], Option<C::Node>); 2],
        _: &[u32],
        _: bool,
    ) -> Result<[Option<Self::Searched>; 2]> {
        self.monitor.check()?;
        let rows = children.each_ref().map(|child| child.0);
        let mut marks = NOWHERE..;
        Ok(self.with_marked(&rows, |sides| {
            marks.next();
            children.map(|(rows, node)| {
                let mark = marks.next();
                let node = node?;
                let columns = parent.columns.select(|row| Some(sides[row as usize]) == mark);
                Some(self.searched(rows, node, Cow::Owned(columns)))
            })
        }))
    }

    fn open(
        &self,
        _: &[u32],
        searched: &Self::Searched,
        _: Option<&ExactSums>,
    ) -> Result<Option<BestCut>> {
        let (criterion, node) = (self.criterion, &searched.node);
        let candidates = self.candidates(searched);
        let bounds = parallel::map_some(&candidates, COLUMNS_PER_TASK, |candidate| {
            self.bound(searched, candidate)
        });
        let scale = criterion.scale(node);
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by(|&a, &b| bounds[b].total_cmp(&bounds[a]).then(a.cmp(&b)));
        let groups = |i: usize| self.by_value(searched, searched.cells(&candidates[i]));
        let mut swept: Vec<(usize, f64)> = vec![];
        let mut best = f64::NEG_INFINITY;
        let mut n_columns = FIRST_SWEPT;
        while swept.len() < order.len() {
            let next = &order[swept.len()..];
            // Scores are rounded, too: by far less than the margin.
            let least = f64::max(best - 2.0 * scale.margin, scale.floor - scale.margin);
            if bounds[next[0]] < least {
                break;
            }
            let batch = &next[..n_columns.min(next.len())];
            let scores = parallel::try_map(batch, |&i| {
                self.monitor.check()?;
                Ok(criterion.best_score(node, groups(i).view(candidates[i].feature)))
            })?;
            best = scores.iter().copied().fold(best, f64::max);
            swept.extend(batch.iter().copied().zip(scores));
            n_columns *= 2;
        }
        swept.sort_unstable_by_key(|&(i, _)| i);
        let features: Vec<usize> = swept.iter().map(|&(i, _)| candidates[i].feature).collect();
        let scores: Vec<f64> = swept.iter().map(|&(_, score)| score).collect();
        choose_cut(criterion, node, &features, &scores, 1, |at| Cow::Owned(groups(swept[at].0)))
    }

    fn split(
        &self,
        grown: &mut GrowingTree<'_>,
        id: usize,
        best: &BestCut,
        keep: impl Fn(u32, bool) -> bool + Sync,
    ) -> (usize, Vec<u32>) {
        let rows_of = Rows::Sparse(self.matrix);
        let feature = best.feature as u32;
        let mut cut = best.cut;
        if matches!(cut.form, CutForm::Range { .. }) {
            let mut dropped = vec![];
            rows_of.cells(grown.partition.dropped(grown.nodes[id].segment), feature, &mut dropped);
            let (low, high) = self.columns.ends(best.feature, self.matrix.n_rows());
            cut = narrow(cut, &dropped, 2.0 * (high / 2.0 - low / 2.0));
        }
        let go_left = |rows: &[u32], sides: &mut Vec<bool>| {
            let mut cells = vec![];
            rows_of.cells(rows, feature, &mut cells);
            sides.extend(cells.into_iter().map(|x| cut.goes_left(x)));
        };
        grown.split_by(id, test_of(best.feature, cut), best.score, go_left, keep)
    }
}

/// Sums as unevaluated sums of two doubles each.
#[derive(Debug, Clone)]
struct Compensated {
    high: Vec<f64>,
    low: Vec<f64>,
}

impl Compensated {
    /// Zeros.
    fn new(width: usize) -> Self {
        Compensated { high: vec![0.0; width], low: vec![0.0; width] }
    }

    /// Adds `sign` (1 or -1) times a row of numbers.
    fn add(&mut self, row: &[f64], sign: f64) {
        for ((high, low), x) in self.high.iter_mut().zip(&mut self.low).zip(row) {
            let x = sign * x;
            let sum = *high + x;
            let back = sum - *high;
            *low += (*high - (sum - back)) + (x - back);
            *high = sum;
        }
    }

    /// The nearest doubles.
    fn rounded(&self) -> impl Iterator<Item = f64> + '_ {
        self.high.iter().zip(&self.low).map(|(high, low)| high + low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_sums_keeps_the_digits_of_a_small_one() {
        let mut sums = Compensated::new(1);
        let parts = [1e12, 0.1, 3.3e-5];
        (0..1000).for_each(|i| sums.add(&[parts[i % 3]], 1.0));
        (0..334).for_each(|_| sums.add(&[1e12], -1.0));
        (0..333).for_each(|_| sums.add(&[0.1], -1.0));
        let rest = sums.rounded().next().unwrap();
        assert!((rest - 333.0 * 3.3e-5).abs() < 1e-17 * 1e3, "{rest}");
    }
}
