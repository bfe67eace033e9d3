//! Exact best cuts at the price of a histogram.
//!
//! A node is *searched* with sums per bin, which gives the best cut between bins and bounds on the cuts inside. It
//! is *opened* only when its bound says it may be next: then the few bins that may hide a better cut are sorted
//! and swept value by value, on sums of the node's own rows. Most leaves are never opened, and the cuts are
//! exactly those that sorting every column at every node would give.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::criterion::{Criterion, Cut, Groups};
use crate::error::{Error, Result};
use crate::index::{Index, MAX_BINS};
use crate::parallel::Monitor;
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

/// Rows whose sums are added column after column while they are in cache.
const ROW_TILE: usize = 1024;
/// Rows of one column that one thread takes in one go, at least.
const BLOCK: usize = 4096;
/// Most sums of one column held at a time.
const MOST_BLOCKS: usize = 32;
/// Sorted cells of one column grouped by one thread in one go.
const SORTED_BLOCK: usize = 2048;
/// Second keys closer than this are equal.
const KEY_TIE: f64 = 1e-9;

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

/// Sums per bin of some neighbouring columns.
#[derive(Debug, Clone, Default)]
struct Chunk {
    count: Vec<u32>,
    sums: Vec<f64>,
}

/// A node's sums per bin, and the totals of the last ancestor whose sums were filled from rows.
#[derive(Debug)]
pub(crate) struct Histogram {
    chunks: Vec<Chunk>,
    filled: Vec<f64>,
}

impl Histogram {
    fn bytes(&self) -> usize {
        self.chunks.iter().map(|c| c.count.len() * 4 + c.sums.len() * 8).sum()
    }
}

/// A column, its best edge, and an upper bound on all its cuts.
type Judged = (usize, f64, f64);

/// What a search found: which columns may hold the best cut.
#[derive(Debug, Clone, PartialEq)]
enum Found {
    /// Nothing worth a cut, or not searched.
    Nothing,
    /// Few rows: all columns, swept directly.
    Direct,
    /// Columns whose bound reaches the best edge, and the largest of these bounds.
    Bounded { features: Vec<usize>, upper: f64 },
}

impl<N> Searched<N> {
    /// No cut of the node scores more; none if no cut is worth taking.
    pub(crate) fn upper(&self) -> Option<f64> {
        match self.found {
            Found::Nothing => None,
            Found::Direct => Some(f64::INFINITY),
            Found::Bounded { upper, .. } => Some(upper),
        }
    }

    /// Bytes of sums held.
    pub(crate) fn bytes(&self) -> usize {
        self.histogram.as_ref().map_or(0, Histogram::bytes)
    }

    /// Drops the sums if with them more than `budget` bytes would be held; returns the bytes now held.
    pub(crate) fn within(&mut self, held: usize, budget: usize) -> usize {
        if held + self.bytes() > budget {
            self.histogram = None;
        }
        self.bytes()
    }
}

/// A node that was searched.
pub(crate) struct Searched<N> {
    pub(crate) node: N,
    found: Found,
    pub(crate) histogram: Option<Histogram>,
}

/// Rows of one node grouped along one column.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnGroups {
    count: Vec<u32>,
    sums: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
}

/// The cut taken of all those along `features`, by the tie rule; none if none is worth taking. `groups(i)`: the node's rows
/// along the i-th of them. One thread takes `at_a_time` columns at least.
pub(crate) fn best_cut<'g, C: Criterion>(
    criterion: &C,
    node: &C::Node,
    features: &[usize],
    at_a_time: usize,
    monitor: &Monitor,
    groups: impl Fn(usize) -> Cow<'g, OwnGroups> + Sync,
) -> Result<Option<BestCut>> {
    let scores: Vec<f64> = (0..features.len())
        .into_par_iter()
        .with_min_len(at_a_time)
        .map(|i| {
            monitor.check()?;
            Ok(criterion.best_score(node, features[i], groups(i).view()))
        })
        .collect::<Result<_>>()?;
    choose_cut(criterion, node, features, &scores, at_a_time, groups)
}

/// As [`best_cut`] where the features' best scores are known.
fn choose_cut<'g, C: Criterion>(
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
    let keys: Vec<f64> = tied
        .par_iter()
        .with_min_len(at_a_time)
        .map(|&i| criterion.best_key(node, features[i], groups(i).view(), floor))
        .collect();
    let key = keys.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (&i, &best_key) in tied.iter().zip(&keys) {
        if best_key < key - KEY_TIE {
            continue;
        }
        let feature = features[i];
        if let Some(cut) = criterion.first_cut(node, feature, groups(i).view(), floor, key) {
            return Ok(Some(BestCut { feature, cut, score: best }));
        }
    }
    Err(Error::Internal("the best cut was lost while ties were decided.".into()))
}

impl OwnGroups {
    pub(crate) fn view(&self) -> Groups<'_> {
        Groups { count: &self.count, sums: &self.sums, low: &self.low, high: &self.high }
    }

    pub(crate) fn reserve(&mut self, n_groups: usize, width: usize) {
        self.count.reserve(n_groups);
        self.low.reserve(n_groups);
        self.high.reserve(n_groups);
        self.sums.reserve(n_groups * width);
    }

    /// Adds groups of larger values.
    fn append(&mut self, mut other: Self) {
        self.count.append(&mut other.count);
        self.sums.append(&mut other.sums);
        self.low.append(&mut other.low);
        self.high.append(&mut other.high);
    }

    /// Adds rows to the group pushed last.
    pub(crate) fn add_to_last(&mut self, count: u32, sums: &[f64]) {
        if let Some(last) = self.count.last_mut() {
            *last += count;
            let start = self.sums.len() - sums.len();
            self.sums[start..].iter_mut().zip(sums).for_each(|(a, b)| *a += b);
        }
    }

    pub(crate) fn push(&mut self, count: u32, low: f64, high: f64, sums: &[f64]) {
        self.count.push(count);
        self.low.push(low);
        self.high.push(high);
        self.sums.extend_from_slice(sums);
    }
}

/// Finds best cuts of nodes.
pub struct Engine<'a, 't, C: Criterion> {
    pub(crate) table: &'a Table<'t>,
    pub(crate) index: &'a Index,
    pub(crate) criterion: &'a C,
    pub(crate) monitor: &'a Monitor,
    chunks: Vec<Range<usize>>,
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
        // What a row adds to the sums is read anew for every chunk, so these are longer than reading cells alone would ask.
        let (chunks, direct) = (table.feature_chunks(3, 9), options.direct);
        Engine { table, index, criterion, monitor, chunks, direct }
    }

    fn empty_chunk(&self, features: &Range<usize>) -> Chunk {
        let n_bins: usize = features.clone().map(|f| self.index.column(f).n_bins()).sum();
        Chunk { count: vec![0; n_bins], sums: vec![0.0; n_bins * self.criterion.width()] }
    }

    /// Calls `visit(feature, count, sums)` for every column of a chunk.
    fn each_column<'c>(
        &self,
        features: &Range<usize>,
        chunk: &'c mut Chunk,
        mut visit: impl FnMut(usize, &'c mut [u32], &'c mut [f64]),
    ) {
        let width = self.criterion.width();
        let (mut count, mut sums) = (&mut chunk.count[..], &mut chunk.sums[..]);
        for feature in features.clone() {
            let n_bins = self.index.column(feature).n_bins();
            let (this_count, this_sums);
            (this_count, count) = std::mem::take(&mut count).split_at_mut(n_bins);
            (this_sums, sums) = std::mem::take(&mut sums).split_at_mut(n_bins * width);
            visit(feature, this_count, this_sums);
        }
    }

    /// Sums of `rows` per bin. With `totals`, a column's common bin is not summed but taken as the rest.
    fn fill(&self, features: &Range<usize>, rows: &[u32], totals: Option<&[f64]>) -> Chunk {
        let mut chunk = self.empty_chunk(features);
        let mut columns = Vec::with_capacity(features.len());
        self.each_column(features, &mut chunk, |feature, count, sums| {
            let binned = self.index.column(feature);
            let skip = binned.common.filter(|_| totals.is_some());
            columns.push((&binned.codes, skip, count, sums));
        });
        for tile in rows.chunks(ROW_TILE) {
            for (codes, skip, count, sums) in &mut columns {
                self.criterion.fill(tile, codes, *skip, count, sums);
            }
        }
        let width = self.criterion.width();
        for (_, _, count, sums) in &mut columns {
            self.criterion.settle_counts(count, sums);
        }
        if let Some(totals) = totals {
            for (_, skip, count, sums) in &mut columns {
                let Some(common) = skip.map(usize::from) else { continue };
                let n_rest: u32 = count.iter().sum();
                let n_common = rows.len() as u32 - n_rest;
                if n_common == 0 {
                    continue;
                }
                let mut rest = vec![0.0; width];
                for row in sums.chunks(width) {
                    rest.iter_mut().zip(row).for_each(|(r, x)| *r += x);
                }
                count[common] = n_common;
                for ((sum, total), rest) in sums[common * width..].iter_mut().zip(totals).zip(&rest)
                {
                    *sum = (total - rest).max(0.0);
                }
            }
        }
        chunk
    }

    fn subtract(&self, from: &mut Chunk, other: &Chunk) {
        let width = self.criterion.width();
        from.sums.iter_mut().zip(&other.sums).for_each(|(a, b)| *a = (*a - b).max(0.0));
        from.count.iter_mut().zip(&other.count).for_each(|(a, b)| *a -= b);
        for (&count, sums) in from.count.iter().zip(from.sums.chunks_mut(width)) {
            if count == 0 {
                sums.fill(0.0);
            }
        }
    }

    /// Best edge and largest bound of every column of a chunk.
    fn judge(&self, features: &Range<usize>, chunk: &mut Chunk, node: &C::Node) -> Vec<Judged> {
        let mut found = Vec::with_capacity(features.len());
        let mut inside = Vec::new();
        self.each_column(features, chunk, |feature, count, sums| {
            let binned = self.index.column(feature);
            inside.resize(count.len(), 0.0);
            let groups = Groups { count, sums, low: &binned.low, high: &binned.high };
            let edge = self.criterion.bounds(node, feature, groups, &mut inside);
            let upper = inside.iter().copied().fold(edge, f64::max);
            found.push((feature, edge, upper));
        });
        found
    }

    fn found(&self, node: &C::Node, columns: impl Iterator<Item = Judged>) -> Found {
        let columns: Vec<_> = columns.collect();
        let scale = self.criterion.scale(node);
        let best_edge = columns.iter().map(|c| c.1).fold(f64::NEG_INFINITY, f64::max);
        let upper = columns.iter().map(|c| c.2).fold(f64::NEG_INFINITY, f64::max);
        if upper == f64::NEG_INFINITY || upper + scale.slack <= scale.floor {
            return Found::Nothing;
        }
        let least = best_edge - scale.margin - 2.0 * scale.slack;
        let features = columns
            .iter()
            .filter(|c| c.2 > f64::NEG_INFINITY && c.2 >= least)
            .map(|c| c.0)
            .collect();
        Found::Bounded { features, upper: upper + scale.slack }
    }

    /// Searches a node on its own.
    pub(crate) fn search(
        &self,
        rows: &[u32],
        node: C::Node,
        keep: bool,
    ) -> Result<Searched<C::Node>> {
        if rows.len() <= self.direct {
            return Ok(Searched { node, found: Found::Direct, histogram: None });
        }
        let totals = self.criterion.totals(&node);
        let common = self.criterion.may_subtract(&node, totals).then_some(totals);
        let results: Vec<_> = self
            .chunks
            .par_iter()
            .with_max_len(1)
            .map(|features| {
                self.monitor.check()?;
                let mut chunk = self.fill(features, rows, common);
                let found = self.judge(features, &mut chunk, &node);
                Ok((found, keep.then_some(chunk)))
            })
            .collect::<Result<_>>()?;
        let filled = totals.to_vec();
        Ok(self.collect(node, results, filled))
    }

    fn collect(
        &self,
        node: C::Node,
        results: Vec<(Vec<Judged>, Option<Chunk>)>,
        filled: Vec<f64>,
    ) -> Searched<C::Node> {
        let (columns, chunks): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let found = self.found(&node, columns.into_iter().flatten());
        let chunks: Option<Vec<Chunk>> = chunks.into_iter().collect();
        let histogram = chunks.map(|chunks| Histogram { chunks, filled });
        Searched { node, found, histogram }
    }

    /// Searches the two children of a split node, the larger by subtracting the smaller from the parent's sums
    /// where that loses no digits. `removed`: searched rows of the parent that are in neither child.
    pub(crate) fn search_children(
        &self,
        parent: Option<Histogram>,
        children: [(&[u32], Option<C::Node>); 2],
        removed: &[u32],
        keep: bool,
    ) -> Result<[Option<Searched<C::Node>>; 2]> {
        let [left, right] = children;
        let left_is_small = left.0.len() <= right.0.len();
        let (small, large) = if left_is_small { (left, right) } else { (right, left) };
        let (small_rows, large_rows) = (small.0, large.0);
        let subtract = |node: &C::Node, parent: &Histogram| {
            large_rows.len() > self.direct
                && small_rows.len() + removed.len() < large_rows.len()
                && self.criterion.may_subtract(node, &parent.filled)
        };
        let (found_small, found_large) = match (large.1, parent) {
            (Some(node), Some(parent)) if subtract(&node, &parent) => {
                let small_node = small.1;
                let wanted = small_node.is_some() && small_rows.len() > self.direct;
                let results: Vec<_> = self
                    .chunks
                    .par_iter()
                    .zip(parent.chunks)
                    .with_max_len(1)
                    .map(|(features, mut chunk)| {
                        self.monitor.check()?;
                        let mut other = self.fill(features, small_rows, None);
                        self.subtract(&mut chunk, &other);
                        if !removed.is_empty() {
                            self.subtract(&mut chunk, &self.fill(features, removed, None));
                        }
                        let found_large = self.judge(features, &mut chunk, &node);
                        let found_small = match &small_node {
                            Some(node) if wanted => self.judge(features, &mut other, node),
                            _ => vec![],
                        };
                        Ok((
                            (found_small, (keep && wanted).then_some(other)),
                            (found_large, keep.then_some(chunk)),
                        ))
                    })
                    .collect::<Result<Vec<_>>>()?;
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

    /// Finds the best cut of a searched node exactly. None if there is none worth taking.
    pub(crate) fn open(
        &self,
        rows: &[u32],
        searched: &Searched<C::Node>,
    ) -> Result<Option<BestCut>> {
        let (criterion, node) = (self.criterion, &searched.node);
        match &searched.found {
            Found::Nothing => Ok(None),
            Found::Direct => {
                let features: Vec<usize> = (0..self.index.n_features()).collect();
                features.par_iter().for_each(|&f| criterion.prepare(f));
                // Groups are made twice rather than held for all columns.
                let groups = |i: usize| Cow::Owned(self.sorted_groups(rows, features[i]));
                best_cut(criterion, node, &features, 8, self.monitor, groups)
            }
            Found::Bounded { features, .. } => {
                let (groups, scores) = self.refined(rows, node, features)?;
                let groups = |i: usize| Cow::Borrowed(&groups[i]);
                choose_cut(criterion, node, features, &scores, 1, groups)
            }
        }
    }

    /// Groups of the node's rows for each column: bins, and single values in those bins that may hide a better cut
    /// than the best edge; with the best score of each column.
    fn refined(
        &self,
        rows: &[u32],
        node: &C::Node,
        features: &[usize],
    ) -> Result<(Vec<OwnGroups>, Vec<f64>)> {
        let criterion = self.criterion;
        let margin = criterion.scale(node).margin;
        let bins: Vec<(OwnGroups, f64)> = features
            .par_iter()
            .with_max_len(1)
            .map(|&f| {
                self.monitor.check()?;
                criterion.prepare(f);
                let bins = self.own_bins(rows, f);
                let edge = criterion.best_score(node, f, bins.view());
                Ok((bins, edge))
            })
            .collect::<Result<_>>()?;
        let (bins, edges): (Vec<OwnGroups>, Vec<f64>) = bins.into_iter().unzip();
        let best = edges.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut key = f64::NEG_INFINITY;
        for ((&f, bins), &edge) in features.iter().zip(&bins).zip(&edges) {
            if edge > f64::NEG_INFINITY && edge >= best - margin {
                key = key.max(criterion.best_key(node, f, bins.view(), best - margin));
            }
        }
        features
            .par_iter()
            .zip(bins)
            .zip(edges)
            .with_max_len(1)
            .map(|((&feature, bins), edge)| {
                self.monitor.check()?;
                let mut inside = vec![0.0; bins.count.len()];
                criterion.bounds(node, feature, bins.view(), &mut inside);
                // Where a gap between bins may be the one taken, its ends must be those of this node's rows.
                let mut beside = vec![false; inside.len()];
                if best > f64::NEG_INFINITY {
                    criterion.mark_ends(node, feature, bins.view(), best - margin, &mut beside);
                }
                let opened: Vec<bool> = inside
                    .iter()
                    .enumerate()
                    .map(|(bin, &bound)| {
                        if bins.low[bin] == bins.high[bin] {
                            return false;
                        }
                        let wide = || criterion.inside_key(feature, bins.low[bin], bins.high[bin]);
                        beside[bin]
                            || bound > f64::NEG_INFINITY
                                && bound >= best - margin
                                && (bound > best + margin || wide() >= key - KEY_TIE)
                    })
                    .collect();
                if !opened.contains(&true) {
                    return Ok((bins, edge));
                }
                let groups = self.split_bins(rows, feature, bins, &opened);
                let score = criterion.best_score(node, feature, groups.view());
                Ok((groups, score))
            })
            .collect()
    }

    /// The bins of one column, summed over the node's rows. Their ends are those of all rows.
    fn own_bins(&self, rows: &[u32], feature: usize) -> OwnGroups {
        let binned = self.index.column(feature);
        let (n_bins, width) = (binned.n_bins(), self.criterion.width());
        // One column alone keeps all threads busy, and its sums have the same bits for any number of them.
        let blocks: Vec<_> = rows
            .par_chunks(BLOCK.max(rows.len().div_ceil(MOST_BLOCKS)))
            .with_max_len(1)
            .map(|rows| {
                let (mut count, mut sums) = (vec![0; n_bins], vec![0.0; n_bins * width]);
                self.criterion.fill(rows, &binned.codes, None, &mut count, &mut sums);
                self.criterion.settle_counts(&mut count, &sums);
                (count, sums)
            })
            .collect();
        let (mut count, mut sums) = (vec![0; n_bins], vec![0.0; n_bins * width]);
        for (block_count, block_sums) in blocks {
            count.iter_mut().zip(block_count).for_each(|(a, b)| *a += b);
            sums.iter_mut().zip(block_sums).for_each(|(a, b)| *a += b);
        }
        let (low, high) = (binned.low.clone(), binned.high.clone());
        OwnGroups { count, sums, low, high }
    }

    /// Replaces the opened bins by their single values and leaves out empty bins.
    fn split_bins(
        &self,
        rows: &[u32],
        feature: usize,
        bins: OwnGroups,
        opened: &[bool],
    ) -> OwnGroups {
        let codes = &self.index.column(feature).codes;
        let is_inside = |row: &u32| opened[usize::from(codes[*row as usize])];
        let blocks: Vec<Vec<u32>> = rows
            .par_chunks(BLOCK)
            .with_max_len(4)
            .map(|rows| rows.iter().copied().filter(is_inside).collect())
            .collect();
        let inside = blocks.concat();
        let values = self.sorted_groups(&inside, feature);
        let width = self.criterion.width();
        let mut merged = OwnGroups::default();
        let mut next = 0;
        for (bin, &is_opened) in opened.iter().enumerate() {
            if bins.count[bin] == 0 {
                continue;
            }
            if !is_opened {
                let sums = &bins.sums[bin * width..][..width];
                merged.push(bins.count[bin], bins.low[bin], bins.high[bin], sums);
                continue;
            }
            while next < values.count.len() && values.low[next] <= bins.high[bin] {
                let sums = &values.sums[next * width..][..width];
                merged.push(values.count[next], values.low[next], values.high[next], sums);
                next += 1;
            }
        }
        merged
    }

    /// One group per distinct value.
    fn sorted_groups(&self, rows: &[u32], feature: usize) -> OwnGroups {
        let pairs = self.table.column(feature).sort(rows);
        if pairs.len() <= SORTED_BLOCK {
            return self.grouped(&pairs);
        }
        // Cut between values, so that one thread sums all rows of a value.
        let mut rest = &pairs[..];
        let mut blocks = Vec::new();
        while !rest.is_empty() {
            let last = rest[SORTED_BLOCK.min(rest.len()) - 1].0;
            let (block, others) = rest.split_at(rest.partition_point(|pair| pair.0 <= last));
            blocks.push(block);
            rest = others;
        }
        let mut groups = OwnGroups::default();
        let blocks = blocks.into_par_iter().with_max_len(1).map(|block| self.grouped(block));
        for block in blocks.collect::<Vec<_>>() {
            groups.append(block);
        }
        groups
    }

    /// One group per distinct value of sorted cells.
    fn grouped(&self, pairs: &[(f64, u32)]) -> OwnGroups {
        let width = self.criterion.width();
        let mut groups = OwnGroups::default();
        for equal in pairs.chunk_by(|a, b| a.0 == b.0) {
            let x = equal[0].0;
            groups.push(equal.len() as u32, x, x, &[]);
            let start = groups.sums.len();
            groups.sums.resize(start + width, 0.0);
            for &(_, row) in equal {
                self.criterion.add(row, &mut groups.sums[start..]);
            }
        }
        groups
    }
}
