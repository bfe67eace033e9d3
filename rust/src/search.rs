//! Exact best cuts at the price of a histogram.
//!
//! Sorting every column at every node gives the best cuts, in O(d n log n) per node with random access to the cells.
//! The search here returns the same cuts in two steps:
//!
//! 1. A node is *searched* (`Engine::search`) on its histograms: the best cut between bins is a lower bound on the
//!    best score, and the criterion bounds the scores of the cuts inside each bin. O(d n) sequential work, or less
//!    by subtraction from the parent (`Engine::search_children`).
//! 2. A node is *opened* (`Engine::open`) only when its upper bound may be the best among the leaves. Then the few
//!    bins that may hide a better cut are sorted and swept value by value, on sums of the node's own rows.
//! 3. Of the cuts found so far, those that may be the best are compared on exact sums ([`crate::exact`]): one or two
//!    columns, added up in the few groups between such cuts. So the order of the rows does not matter.
//!
//! Most leaves are never opened, and few bins of those that are. Nodes of a few hundred rows are sorted at once.
//!
//! **Ties.** Of a node's cuts within the criterion's margin of the best score, those with the largest second key
//! remain (up to `KEY_TIE`); of these the first column's first cut is taken. Scores that decide are of the node's
//! own rows, exact and rounded once: all other sums only select what is compared.
//!
//! Memory: n d bytes for the index, and 4 + 8 width bytes per bin for each node that keeps its histograms. Opened bins
//! take 36 + 8 width bytes per row, at most `MAX_OPENED_BYTES` twice, or those of one column: columns are opened in
//! batches, and what is not held is made again if it is needed, with the same sums.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::criterion::{Criterion, Cut, Groups, OwnGroups, RowSums};
use crate::error::{Error, Result};
use crate::exact::ExactSums;
use crate::grouping::{self, Grouping};
use crate::histogram::Histogram;
use crate::index::{Index, MAX_BINS};
use crate::parallel::{self, Monitor};
use crate::table::Table;

/// How nodes are searched. Changes the speed, never the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchOptions {
    /// Most bins of a column, in `[2, 256]`.
    pub max_bins: usize,
    /// Nodes of at most this many rows are sorted at once instead of searched by bins.
    pub direct: usize,
}

impl Default for SearchOptions {
    fn default() -> Self {
        SearchOptions { max_bins: MAX_BINS, direct: 256 }
    }
}

/// Most bytes of opened bins at a time: those that are sorted and summed, and those that are held until the best cut is
/// chosen. One column is opened whatever it takes.
const MAX_OPENED_BYTES: usize = 32 << 20;

/// Columns that are added up exactly before those that are not held are dropped.
const MAX_EXACT: usize = 16;

/// Second keys closer than this are equal.
pub(crate) const KEY_TIE: f64 = 1e-9;

/// The cut taken at a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestCut {
    /// Its column.
    pub feature: usize,
    /// The cut.
    pub cut: Cut,
    /// The largest score at the node.
    pub score: f64,
}

/// A node's histograms, one per chunk of columns, and the totals of the last ancestor whose histograms were filled from
/// rows and not by subtraction.
#[derive(Debug)]
pub(crate) struct NodeHistogram {
    chunks: Vec<Histogram>,
    filled: Vec<f64>,
}

impl NodeHistogram {
    fn bytes(&self) -> usize {
        self.chunks.iter().map(Histogram::bytes).sum()
    }
}

/// Bounds on the scores of a column's cuts, from its histogram.
#[derive(Debug, Clone, Copy)]
struct ColumnBound {
    feature: usize,
    /// The best score of the cuts between bins.
    edge: f64,
    /// No cut of the column scores more.
    upper: f64,
}

/// The best score that any thread has found at a node, 0 at first.
#[derive(Debug, Default)]
struct BestSoFar(AtomicU64);

impl BestSoFar {
    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Positive numbers have the order of their bits.
    fn offer(&self, score: f64) {
        if score > 0.0 {
            self.0.fetch_max(score.to_bits(), Ordering::Relaxed);
        }
    }
}

/// Which columns may hold the best cut of a node.
#[derive(Debug, Clone, PartialEq)]
enum CandidateColumns {
    /// None: no cut is worth taking.
    None,
    /// All, to be swept value by value: the node has few rows.
    All,
    /// Those whose bound reaches the best cut between bins. No cut of the node scores more than `upper`.
    Columns { features: Vec<usize>, upper: f64 },
}

/// A node's rows grouped along a column that may hold its best cut: what is held, and how to make the rest again.
struct ColumnGroups {
    /// The groups by bin.
    bins: Option<OwnGroups>,
    /// The bins to open; none if there are none.
    opened: Option<Vec<bool>>,
    /// The groups with these bins opened.
    values: Option<OwnGroups>,
}

/// A node and the result of its search.
pub(crate) struct NodeSearch<N> {
    pub(crate) node: N,
    candidates: CandidateColumns,
    pub(crate) histogram: Option<NodeHistogram>,
}

impl<N> NodeSearch<N> {
    /// No cut of the node scores more; none if no cut is worth taking.
    pub(crate) fn upper(&self) -> Option<f64> {
        match self.candidates {
            CandidateColumns::None => None,
            CandidateColumns::All => Some(f64::INFINITY),
            CandidateColumns::Columns { upper, .. } => Some(upper),
        }
    }

    /// Bytes of histograms held.
    pub(crate) fn bytes(&self) -> usize {
        self.histogram.as_ref().map_or(0, NodeHistogram::bytes)
    }

    /// Drops the histograms if with them more than `budget` bytes would be held in all, `total` by other nodes; returns
    /// the bytes that the node holds now.
    pub(crate) fn keep_within(&mut self, total: usize, budget: usize) -> usize {
        if total + self.bytes() > budget {
            self.histogram = None;
        }
        self.bytes()
    }
}

/// The best cut along `features` by the tie rule; none if no cut is worth taking.
///
/// `groups(i)` are the node's rows along the i-th feature. One thread takes at least `at_a_time` features.
///
/// # Errors
/// [`Error::Interrupted`] if the monitor was asked to stop.
pub(crate) fn best_cut<'g, C: Criterion>(
    criterion: &C,
    node: &C::Node,
    features: &[usize],
    at_a_time: usize,
    monitor: &Monitor,
    groups: impl Fn(usize) -> Cow<'g, OwnGroups> + Sync,
) -> Result<Option<BestCut>> {
    let scores = parallel::try_map_some(0..features.len(), at_a_time, |i| {
        monitor.check()?;
        Ok(criterion.best_score(node, groups(i).view(features[i])))
    })?;
    choose_cut(criterion, node, features, &scores, at_a_time, groups)
}

/// [`best_cut`] where each feature's best score is known: `scores`, one per feature.
pub(crate) fn choose_cut<'g, C: Criterion>(
    criterion: &C,
    node: &C::Node,
    features: &[usize],
    scores: &[f64],
    at_a_time: usize,
    groups: impl Fn(usize) -> Cow<'g, OwnGroups> + Sync,
) -> Result<Option<BestCut>> {
    let scale = criterion.scale(node);
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if best == f64::NEG_INFINITY || best <= scale.floor {
        return Ok(None);
    }
    let floor = best - scale.margin;
    let tied: Vec<usize> = (0..features.len()).filter(|&i| scores[i] >= floor).collect();
    let keys = parallel::map_some(&tied, at_a_time, |&i| {
        criterion.best_key(node, groups(i).view(features[i]), floor)
    });
    let key = keys.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (&i, &best_key) in tied.iter().zip(&keys) {
        if best_key < key - KEY_TIE {
            continue;
        }
        let feature = features[i];
        if let Some(cut) = criterion.first_cut(node, groups(i).view(feature), floor, key - KEY_TIE)
        {
            return Ok(Some(BestCut { feature, cut, score: best }));
        }
    }
    Err(Error::Internal("the best cut was lost while ties were decided.".into()))
}

/// Finds the best cuts of nodes by one criterion.
pub struct Engine<'a, 't, C: Criterion> {
    pub(crate) table: &'a Table<'t>,
    pub(crate) index: &'a Index,
    pub(crate) criterion: &'a C,
    pub(crate) monitor: &'a Monitor,
    /// Neighbouring columns that one thread takes in one go.
    chunks: Vec<Range<usize>>,
    /// Most rows of a node that is sorted at once.
    direct: usize,
}

impl<'a, 't, C: Criterion> Engine<'a, 't, C> {
    /// An engine for one criterion; `index` must be the table's.
    pub fn new(
        table: &'a Table<'t>,
        index: &'a Index,
        criterion: &'a C,
        options: SearchOptions,
        monitor: &'a Monitor,
    ) -> Self {
        // What a row adds up to is read once per chunk, so chunks are longer than reading cells alone would need.
        let (chunks, direct) = (table.feature_chunks(3, 9), options.direct);
        Engine { table, index, criterion, monitor, chunks, direct }
    }

    /// The histogram of `rows` over some columns. With `totals`, common bins are computed as the rest.
    fn fill(&self, features: &Range<usize>, rows: &[u32], totals: Option<&[f64]>) -> Histogram {
        Histogram::of_rows(self.index, features.clone(), self.criterion.rows(), rows, totals)
    }

    /// Groups rows along the columns, for the exact sweeps.
    fn grouping(&self) -> Grouping<'a, 't, C::Rows> {
        Grouping { table: self.table, index: self.index, row_sums: self.criterion.rows() }
    }

    /// Best score between bins and largest bound inside them, for every column of a histogram. O(width) per bin.
    ///
    /// Columns of levels that certainly are no candidates have no score but a quick bound. `best`: of the node, of all its
    /// histograms. What other threads have found changes which columns these are, and never the candidates.
    fn column_bounds(
        &self,
        histogram: &Histogram,
        node: &C::Node,
        best: &BestSoFar,
    ) -> Vec<ColumnBound> {
        let groups = |feature: usize| {
            let binned = self.index.column(feature);
            let (count, sums) = histogram.column(feature);
            let (low, high, form) = (&binned.low[..], &binned.high[..], binned.form);
            Groups { feature, count, sums, low, high, form, exact: None }
        };
        let mut inside = Vec::new();
        let mut bound = |feature: usize| {
            let groups = groups(feature);
            inside.resize(groups.len(), 0.0);
            let edge = self.criterion.bounds(node, groups, &mut inside);
            let upper = inside.iter().copied().fold(edge, f64::max);
            best.offer(edge);
            ColumnBound { feature, edge, upper }
        };
        let (levels, numbers): (Vec<usize>, Vec<usize>) =
            histogram.features().partition(|&f| self.index.column(f).form.is_levels);
        let mut columns: Vec<ColumnBound> = numbers.into_iter().map(&mut bound).collect();
        // The best come first: most of the others need no more than their bound.
        let quick = levels.into_iter().map(|f| (self.criterion.most_of_levels(node, groups(f)), f));
        let mut quick: Vec<(f64, usize)> = quick.collect();
        quick.sort_by(|a, b| b.0.total_cmp(&a.0));
        let scale = self.criterion.scale(node);
        columns.extend(quick.into_iter().map(|(most, feature)| {
            if most + scale.slack < best.get() - scale.margin - 2.0 * scale.slack {
                ColumnBound { feature, edge: f64::NEG_INFINITY, upper: most }
            } else {
                bound(feature)
            }
        }));
        columns.sort_unstable_by_key(|column| column.feature);
        columns
    }

    /// The columns that may hold the best cut: those whose bound reaches the best score between bins of any column, up
    /// to the margin of ties and twice the slack of histogram sums.
    fn candidates(&self, node: &C::Node, columns: &[ColumnBound]) -> CandidateColumns {
        let scale = self.criterion.scale(node);
        let best_edge = columns.iter().map(|c| c.edge).fold(f64::NEG_INFINITY, f64::max);
        let upper = columns.iter().map(|c| c.upper).fold(f64::NEG_INFINITY, f64::max);
        if upper == f64::NEG_INFINITY || upper + scale.slack <= scale.floor {
            return CandidateColumns::None;
        }
        let least = best_edge - scale.margin - 2.0 * scale.slack;
        let features = columns
            .iter()
            .filter(|c| c.upper > f64::NEG_INFINITY && c.upper >= least)
            .map(|c| c.feature)
            .collect();
        CandidateColumns::Columns { features, upper: upper + scale.slack }
    }

    /// Searches a node on its own, from its rows. `keep`: hold its histograms for its children.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop.
    pub(crate) fn search(
        &self,
        rows: &[u32],
        node: C::Node,
        keep: bool,
    ) -> Result<NodeSearch<C::Node>> {
        if rows.len() <= self.direct {
            return Ok(NodeSearch { node, candidates: CandidateColumns::All, histogram: None });
        }
        let totals = self.criterion.totals(&node);
        let common = self.criterion.may_subtract(&node, totals).then_some(totals);
        let best = BestSoFar::default();
        let results = parallel::try_map(&self.chunks, |features| {
            self.monitor.check()?;
            let histogram = self.fill(features, rows, common);
            let bounds = self.column_bounds(&histogram, &node, &best);
            Ok((bounds, keep.then_some(histogram)))
        })?;
        let filled = totals.to_vec();
        Ok(self.collect(node, results, filled))
    }

    /// The search of a node from the results of its chunks of columns, in their order.
    fn collect(
        &self,
        node: C::Node,
        results: Vec<(Vec<ColumnBound>, Option<Histogram>)>,
        filled: Vec<f64>,
    ) -> NodeSearch<C::Node> {
        let (columns, chunks): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let candidates = self.candidates(&node, &columns.concat());
        let chunks: Option<Vec<Histogram>> = chunks.into_iter().collect();
        let histogram = chunks.map(|chunks| NodeHistogram { chunks, filled });
        NodeSearch { node, candidates, histogram }
    }

    /// Searches the two children of a split node, given as searched rows and node (none: the child is not searched).
    ///
    /// The larger child's histograms are the parent's less the smaller's where that loses no digits. `removed`:
    /// searched rows of the parent that are in neither child.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop.
    pub(crate) fn search_children(
        &self,
        parent: Option<NodeHistogram>,
        children: [(&[u32], Option<C::Node>); 2],
        removed: &[u32],
        keep: bool,
    ) -> Result<[Option<NodeSearch<C::Node>>; 2]> {
        let [left, right] = children;
        let left_is_small = left.0.len() <= right.0.len();
        let (small, large) = if left_is_small { (left, right) } else { (right, left) };
        let (small_rows, large_rows) = (small.0, large.0);
        let subtract = |node: &C::Node, parent: &NodeHistogram| {
            large_rows.len() > self.direct
                && small_rows.len() + removed.len() < large_rows.len()
                && self.criterion.may_subtract(node, &parent.filled)
        };
        let (found_small, found_large) = match (large.1, parent) {
            (Some(node), Some(parent)) if subtract(&node, &parent) => {
                let small_node = small.1;
                let wanted = small_node.is_some() && small_rows.len() > self.direct;
                let chunks = self.chunks.iter().zip(parent.chunks);
                let [best_of_large, best_of_small] = [0, 1].map(|_| BestSoFar::default());
                let results = parallel::try_map(chunks, |(features, mut chunk)| {
                    self.monitor.check()?;
                    let other = self.fill(features, small_rows, None);
                    chunk.subtract(&other);
                    if !removed.is_empty() {
                        chunk.subtract(&self.fill(features, removed, None));
                    }
                    let found_large = self.column_bounds(&chunk, &node, &best_of_large);
                    let found_small = match &small_node {
                        Some(node) if wanted => self.column_bounds(&other, node, &best_of_small),
                        _ => vec![],
                    };
                    Ok((
                        (found_small, (keep && wanted).then_some(other)),
                        (found_large, keep.then_some(chunk)),
                    ))
                })?;
                let (small_results, large_results): (Vec<_>, Vec<_>) = results.into_iter().unzip();
                let found_small = match small_node {
                    Some(node) if wanted => {
                        let filled = self.criterion.totals(&node).to_vec();
                        Some(self.collect(node, small_results, filled))
                    }
                    Some(node) => Some(self.search(small_rows, node, keep)?),
                    None => None,
                };
                (found_small, Some(self.collect(node, large_results, parent.filled)))
            }
            (large_node, _) => {
                let search = |rows: &[u32], node: Option<C::Node>| {
                    node.map(|node| self.search(rows, node, keep)).transpose()
                };
                (search(small_rows, small.1)?, search(large_rows, large_node)?)
            }
        };
        Ok(if left_is_small { [found_small, found_large] } else { [found_large, found_small] })
    }

    /// The best cut of a searched node, exactly; none if no cut is worth taking. `total`: as [`Grouping::exact`] takes it.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop.
    pub(crate) fn open(
        &self,
        rows: &[u32],
        searched: &NodeSearch<C::Node>,
        total: Option<&ExactSums>,
    ) -> Result<Option<BestCut>> {
        let (criterion, node) = (self.criterion, &searched.node);
        match &searched.candidates {
            CandidateColumns::None => Ok(None),
            CandidateColumns::All => {
                let features: Vec<usize> = (0..self.index.n_features()).collect();
                parallel::map(&features, |&f| criterion.prepare(f));
                // Groups are made twice rather than held for all columns.
                let groups =
                    |i: usize| Cow::<OwnGroups>::Owned(self.grouping().by_value(rows, features[i]));
                let scores = parallel::try_map_some(0..features.len(), 8, |i| {
                    self.monitor.check()?;
                    Ok(criterion.best_score(node, groups(i).view(features[i])))
                })?;
                self.choose_exactly(rows, (node, total), &features, &scores, groups)
            }
            CandidateColumns::Columns { features, .. } => {
                let (groups, scores) = self.refine(rows, node, features)?;
                let groups = |i: usize| self.groups(rows, features[i], &groups[i]);
                self.choose_exactly(rows, (node, total), features, &scores, groups)
            }
        }
    }

    /// [`choose_cut`] on exact sums. `scores` and `groups` are of sums of the node's own rows, added as doubles: they
    /// say which cuts may be the best, and rows are added up exactly between these alone.
    fn choose_exactly<'g>(
        &self,
        rows: &[u32],
        (node, total): (&C::Node, Option<&ExactSums>),
        features: &[usize],
        scores: &[f64],
        groups: impl Fn(usize) -> Cow<'g, OwnGroups> + Sync,
    ) -> Result<Option<BestCut>> {
        let criterion = self.criterion;
        if criterion.rows().is_exact() {
            return choose_cut(criterion, node, features, scores, 1, groups);
        }
        let scale = criterion.scale(node);
        let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if best == f64::NEG_INFINITY || best + scale.own_slack <= scale.floor {
            return Ok(None);
        }
        let floor = best - scale.margin - 2.0 * scale.own_slack;
        let near: Vec<usize> = (0..features.len()).filter(|&i| scores[i] >= floor).collect();
        let exact = |&i: &usize| {
            let rough = groups(i);
            let mut ends = vec![false; rough.count.len()];
            criterion.mark_ends(node, rough.view(features[i]), floor, &mut ends);
            self.grouping().exact(rows, features[i], &rough, &ends, total)
        };
        let (mut held, mut scores) = (vec![], vec![]);
        let mut bytes = 0;
        for batch in near.chunks(MAX_EXACT) {
            let found = parallel::try_map(batch, |i| {
                self.monitor.check()?;
                let groups = exact(i);
                let score = criterion.best_score(node, groups.view(features[*i]));
                Ok((groups, score))
            })?;
            for (groups, score) in found {
                bytes += groups.bytes();
                held.push((bytes <= MAX_OPENED_BYTES).then_some(groups));
                scores.push(score);
            }
        }
        let features: Vec<usize> = near.iter().map(|&i| features[i]).collect();
        choose_cut(criterion, node, &features, &scores, 1, |i| match &held[i] {
            Some(groups) => Cow::Borrowed(groups),
            None => Cow::Owned(exact(&near[i])),
        })
    }

    /// The node's rows grouped along each column, and the best score of each: by bin, and by value in those bins that
    /// may hide a better cut than the best one between bins.
    ///
    /// Columns are opened in batches whose cells and sums take at most [`MAX_OPENED_BYTES`], or are one column. After
    /// a batch only groups of columns that may have the best cut are held, within the same limit.
    fn refine(
        &self,
        rows: &[u32],
        node: &C::Node,
        features: &[usize],
    ) -> Result<(Vec<ColumnGroups>, Vec<f64>)> {
        let criterion = self.criterion;
        let scale = criterion.scale(node);
        // Scores are rough: a cut may be the best from here on, and certainly is tied from there on.
        let margin = scale.margin + 2.0 * scale.own_slack;
        let sure_margin = scale.margin - 2.0 * scale.own_slack;
        let (mut columns, edges) = self.group_by_bin(rows, node, features)?;
        let best = edges.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut key = f64::NEG_INFINITY;
        for ((&f, column), &edge) in features.iter().zip(&columns).zip(&edges) {
            if edge > f64::NEG_INFINITY && edge >= best - sure_margin {
                let bins = self.groups(rows, f, column);
                key = key.max(criterion.best_key(node, bins.view(f), best - sure_margin));
            }
        }
        let opened_rows =
            parallel::try_map(columns.iter_mut().zip(features), |(column, &feature)| {
                self.monitor.check()?;
                let bins = self.groups(rows, feature, column);
                let opened = self.bins_to_open(node, feature, &bins, best, key);
                let n_rows = grouping::n_inside(&bins, &opened);
                drop(bins);
                column.opened = opened.contains(&true).then_some(opened);
                Ok(n_rows)
            })?;
        let bytes_per_row = grouping::bytes_per_row(criterion.rows().width());
        let mut scores = edges;
        let mut start = 0;
        while start < features.len() {
            let mut bytes = bytes_per_row * opened_rows[start];
            let mut stop = start + 1;
            while stop < features.len() {
                bytes += bytes_per_row * opened_rows[stop];
                if bytes > MAX_OPENED_BYTES {
                    break;
                }
                stop += 1;
            }
            let batch = columns[start..stop].iter_mut().zip(&features[start..stop]);
            let batch = batch.zip(&mut scores[start..stop]);
            parallel::try_map(batch, |((column, &feature), score)| {
                self.monitor.check()?;
                if let Some(opened) = &column.opened {
                    let grouping = self.grouping();
                    let bins = column.bins.take();
                    let bins = bins.unwrap_or_else(|| grouping.by_bin(rows, feature));
                    let values = grouping.open_bins(rows, feature, bins, opened);
                    *score = criterion.best_score(node, values.view(feature));
                    column.values = Some(values);
                }
                Ok(())
            })?;
            let best = scores[..stop].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut held = 0;
            for (column, score) in columns[..stop].iter_mut().zip(&scores) {
                let bytes = column.values.as_ref().map_or(0, OwnGroups::bytes);
                if *score >= best - margin && held + bytes <= MAX_OPENED_BYTES {
                    held += bytes;
                } else {
                    column.values = None;
                }
            }
            start = stop;
        }
        Ok((columns, scores))
    }

    /// The node's rows grouped by bin along each column, and the best score between bins of each.
    fn group_by_bin(
        &self,
        rows: &[u32],
        node: &C::Node,
        features: &[usize],
    ) -> Result<(Vec<ColumnGroups>, Vec<f64>)> {
        let bytes = OwnGroups::bytes_per_group(self.criterion.rows().width());
        let most = (MAX_OPENED_BYTES / bytes).div_ceil(MAX_BINS);
        let found = parallel::try_map(features.iter().enumerate(), |(i, &f)| {
            self.monitor.check()?;
            self.criterion.prepare(f);
            let bins = self.grouping().by_bin(rows, f);
            let edge = self.criterion.best_score(node, bins.view(f));
            let bins = (i < most).then_some(bins);
            Ok((ColumnGroups { bins, opened: None, values: None }, edge))
        })?;
        Ok(found.into_iter().unzip())
    }

    /// The groups of a column, made again if they are not held.
    fn groups<'g>(
        &self,
        rows: &[u32],
        feature: usize,
        column: &'g ColumnGroups,
    ) -> Cow<'g, OwnGroups> {
        if let Some(values) = &column.values {
            return Cow::Borrowed(values);
        }
        let bins = match &column.bins {
            Some(bins) => Cow::Borrowed(bins),
            None => Cow::Owned(self.grouping().by_bin(rows, feature)),
        };
        match &column.opened {
            None => bins,
            Some(opened) => {
                Cow::Owned(self.grouping().open_bins(rows, feature, bins.into_owned(), opened))
            }
        }
    }

    /// Which bins of a column may hide the cut to take. `best`: the best score between bins of all columns; `key`: the
    /// largest second key of cuts between bins with that score.
    fn bins_to_open(
        &self,
        node: &C::Node,
        feature: usize,
        bins: &OwnGroups,
        best: f64,
        key: f64,
    ) -> Vec<bool> {
        let criterion = self.criterion;
        let scale = criterion.scale(node);
        let margin = scale.margin + 2.0 * scale.own_slack;
        let sure_margin = scale.margin - 2.0 * scale.own_slack;
        let mut inside = vec![0.0; bins.count.len()];
        if !bins.low.iter().zip(&bins.high).any(|(low, high)| low < high) {
            return vec![false; inside.len()]; // every bin is one value
        }
        criterion.bounds(node, bins.view(feature), &mut inside);
        // Where a gap between bins may be the one taken, its ends must be those of this node's rows.
        let mut beside = vec![false; inside.len()];
        if best > f64::NEG_INFINITY {
            criterion.mark_ends(node, bins.view(feature), best - margin, &mut beside);
        }
        let is_open = |(bin, &bound): (usize, &f64)| {
            let is_range = bins.low[bin] < bins.high[bin];
            if !is_range {
                return false;
            }
            let wide = || criterion.inside_key(feature, bins.low[bin], bins.high[bin]);
            beside[bin]
                || bound > f64::NEG_INFINITY
                    && bound >= best - margin
                    && (bound > best + sure_margin || wide() >= key - KEY_TIE)
        };
        inside.iter().enumerate().map(is_open).collect()
    }
}
