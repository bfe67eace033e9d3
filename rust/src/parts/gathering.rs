//! How a part answers: its rows are routed, put into bins and added up.

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use ndarray::ArrayView1;

use super::answer::{Answer, Body, LeafSums, PartRows, SampledRow, gap_width, other_rows};
use super::base_ask::{BaseAsk, GatheredBase};
use super::bins::{GatheredBins, with_runs};
use super::classes::{BatchLabels, Classes, LabelRule};
use super::columns::{FoundColumn, PartColumn};
use super::label_means::GatheredMeans;
use super::quantiles::add_ranks;
use super::question::{
    Ask, ColumnBins, Geometry, GrowAsk, LeavesAsk, Open, Question, RanksAsk, RowGroups,
};
use super::routing::tree_of;
use crate::binner::Binner;
use crate::costs::{ExactLabelCosts, Metric, exact_label_costs};
use crate::error::{Error, Result};
use crate::exact::{ExactRows, ExactSums};
use crate::memory;
use crate::parallel;
use crate::table::{Column, MISSING_LEVEL, TILE, Table};
use crate::tree::ClusterTree;

/// Rows that one thread routes in one go.
const ROUTED: usize = 8192;

/// An answer on its way: rows come in batches, of one part or of several.
pub struct Gathering {
    question: Arc<Question>,
    parts: BTreeMap<u64, PartRows>,
    /// Of the rows, where the question knows none.
    classes: Option<Classes>,
    /// Of the question, if it has one.
    tree: Option<ClusterTree>,
    /// By column of levels a hash of each; as the rows have them that are added next.
    level_hashes: Vec<Option<Vec<u64>>>,
    /// In the first round by column the levels of these rows.
    texts: Vec<Option<Vec<String>>>,
    body: Gathered,
}

/// [`Body`] on its way.
enum Gathered {
    Sample { drawn: BinaryHeap<Drawn>, columns: Vec<FoundColumn> },
    Rows(BTreeMap<u64, Vec<f64>>),
    Moments { sums: Vec<ExactRows>, largest: Vec<f64>, levels: Vec<Option<ExactRows>> },
    Ranks { weighted: bool, opened: Vec<GatheredBins> },
    Means(Box<GatheredMeans>),
    Base(Box<GatheredBase>),
    Grow { binners: Vec<Option<Binner>>, fills: Vec<Vec<GatheredBins>>, opened: Vec<GatheredBins> },
    Leaves(Box<GatheredLeaves>),
}

/// [`LeafSums`] on their way.
struct GatheredLeaves {
    count: Vec<u64>,
    labels: Vec<u64>,
    weight: ExactRows,
    minimum: ExactSums,
    misfit: ExactSums,
    regret: ExactSums,
    moments: Vec<ExactRows>,
    observed: Vec<Option<ExactRows>>,
    levels: Vec<Option<ExactRows>>,
    level_costs: Vec<Option<ExactRows>>,
}

/// A drawn row, ordered by its hash.
struct Drawn(SampledRow);

impl Drawn {
    fn key(&self) -> (u64, (u64, u64)) {
        (self.0.hash, self.0.place)
    }
}

impl PartialEq for Drawn {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Drawn {}

impl PartialOrd for Drawn {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Drawn {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// A hash of 64 bits (the finaliser of SplitMix64).
#[inline]
pub(super) fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The hash by which the row at a place is drawn.
fn draw(part: u64, offset: u64) -> u64 {
    mix(mix(part.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_add(offset))
}

/// FNV-1a of some bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Adds a number to the hash of each row.
#[inline]
fn add_bits(hashes: &mut [u64], bits: impl Iterator<Item = u64>) {
    for (hash, bits) in hashes.iter_mut().zip(bits) {
        *hash = (hash.rotate_left(29) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The sum of a hash of every row. `levels`: by column of levels a hash of each, so that codes do not matter.
fn checksum(
    table: &Table<'_>,
    weights: Option<&[f64]>,
    labels: Option<BatchLabels<'_>>,
    levels: &[Option<Vec<u64>>],
) -> u64 {
    let n = table.n_samples();
    let of_classes = labels.map_or(vec![], |labels| labels.classes.hashes());
    let sums = parallel::map((0..n).step_by(TILE), |start| {
        let length = TILE.min(n - start);
        let (mut hashes, mut cells) = ([0u64; TILE], [0.0; TILE]);
        let bits = |x: &f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
        for feature in 0..table.n_features() {
            table.column(feature).read(start, &mut cells[..length]);
            let cells = &cells[..length];
            match levels.get(feature).and_then(Option::as_ref) {
                Some(levels) => {
                    let level = |x: &f64| levels.get(*x as usize).copied().unwrap_or(0);
                    let of_cell = |x: &f64| if x.is_nan() { bits(x) } else { level(x) };
                    add_bits(&mut hashes, cells.iter().map(of_cell));
                }
                None => add_bits(&mut hashes, cells.iter().map(bits)),
            }
        }
        if let Some(weights) = weights {
            add_bits(&mut hashes, weights[start..start + length].iter().map(bits));
        }
        if let Some(labels) = labels {
            let codes = &labels.codes[start..start + length];
            hashes
                .iter_mut()
                .zip(codes)
                .for_each(|(hash, &code)| *hash ^= of_classes[code as usize]);
        }
        hashes[..length].iter().fold(0u64, |sum, &hash| sum.wrapping_add(mix(hash)))
    });
    sums.into_iter().fold(0, u64::wrapping_add)
}

fn hashes_of(levels: Option<&Vec<String>>) -> Option<Vec<u64>> {
    levels.map(|levels| levels.iter().map(|level| hash(level.as_bytes())).collect())
}

/// The cells of a column in some rows; there is no negative zero among them.
pub(super) fn cells_of(table: &Table<'_>, feature: usize, rows: &[u32]) -> Vec<f64> {
    let mut cells = vec![];
    table.column(feature).gather(rows, &mut cells);
    cells.iter_mut().for_each(|x| *x += 0.0);
    cells
}

/// The leaf of every row of a part; the question's tree routes them.
///
/// # Errors
/// [`Error::Value`] if a cell is infinite, which is none of the rows of the first round; [`Error::Interrupted`].
fn route(tree: &ClusterTree, table: &Table<'_>, part: u64) -> Result<Vec<i64>> {
    match tree.apply(table)? {
        Some(leaves) => Ok(leaves),
        None if table.stopped() => Err(Error::Interrupted),
        None => Err(other_rows(part)),
    }
}

impl Gathering {
    /// No rows yet.
    ///
    /// # Errors
    /// [`Error::Tree`] if the question's nodes are not one tree.
    pub fn new(question: Arc<Question>) -> Result<Self> {
        let d = question.n_features;
        let rows = |n: usize, width: usize| ExactRows::new(n, width);
        let of_columns = |n_groups: usize, width: fn(&PartColumn) -> Option<usize>| {
            let column = |column| width(column).map(|width| rows(n_groups, width));
            question.columns.iter().map(column).collect::<Vec<_>>()
        };
        let body = match &question.ask {
            Ask::Sample { .. } => Gathered::Sample { drawn: BinaryHeap::new(), columns: vec![] },
            Ask::Rows { .. } => Gathered::Rows(BTreeMap::new()),
            Ask::Moments { .. } => Gathered::Moments {
                sums: (0..d).map(|_| rows(1, 2)).collect(),
                largest: vec![0.0; d],
                levels: of_columns(1, PartColumn::n_levels),
            },
            Ask::Base(ask) => Gathered::Base(Box::new(GatheredBase::new(ask))),
            Ask::Ranks(ask) => Gathered::Ranks {
                weighted: false,
                opened: ask.opens.iter().map(|open| GatheredBins::of_open(open, 1)).collect(),
            },
            Ask::Means(ask) => {
                let k = ask.points.len() / d;
                let (observed, levels) =
                    (of_columns(k, gap_width), of_columns(k, PartColumn::n_levels));
                Gathered::Means(Box::new(GatheredMeans::new(d, k, observed, levels)))
            }
            Ask::Grow(ask) => {
                let k = ask.geometry.k();
                let fill = |&(_, with_sums): &(usize, bool)| {
                    let column =
                        |bins: &ColumnBins| GatheredBins::new(bins.len(), with_sums, false, k);
                    ask.columns.iter().map(column).collect()
                };
                Gathered::Grow {
                    binners: ask.columns.iter().map(ColumnBins::binner).collect(),
                    fills: ask.fills.iter().map(fill).collect(),
                    opened: ask
                        .opens
                        .iter()
                        .map(|open| GatheredBins::of_open(open, open.width(k)))
                        .collect(),
                }
            }
            Ask::Leaves(ask) => {
                let (k, n_groups) = (ask.geometry.k(), ask.points.len() / d);
                Gathered::Leaves(Box::new(GatheredLeaves {
                    count: vec![0; ask.nodes.len()],
                    labels: vec![0; k],
                    weight: rows(ask.nodes.len(), k),
                    minimum: ExactSums::new(1),
                    misfit: ExactSums::new(1),
                    regret: ExactSums::new(1),
                    moments: (0..d).map(|_| rows(n_groups, 2)).collect(),
                    observed: of_columns(n_groups, gap_width),
                    levels: of_columns(n_groups, PartColumn::n_levels),
                    level_costs: of_columns(n_groups, ask.cost_width()),
                }))
            }
        };
        let nodes = match &question.ask {
            Ask::Grow(GrowAsk { nodes, .. })
            | Ask::Ranks(RanksAsk { nodes, .. })
            | Ask::Leaves(LeavesAsk { nodes, .. })
            | Ask::Base(BaseAsk { nodes, .. }) => nodes,
            _ => &vec![],
        };
        let tree = (!nodes.is_empty()).then(|| tree_of(nodes, d)).transpose()?;
        let hashes = |column: &PartColumn| hashes_of(column.levels.as_ref());
        let level_hashes = question.columns.iter().map(hashes).collect();
        let (parts, texts) = (BTreeMap::new(), vec![]);
        Ok(Gathering { question, parts, classes: None, tree, level_hashes, texts, body })
    }

    /// Adds a part without rows, or the last of its rows.
    pub fn add_part(&mut self, part: u64) {
        self.parts.entry(part).or_default();
    }

    /// Takes note of what the rows that are added next hold, in the first round: by column what is found in them, and
    /// their levels by code. Other rounds need no such note.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree.
    pub fn add_columns(
        &mut self,
        found: Vec<FoundColumn>,
        texts: Vec<Option<Vec<String>>>,
    ) -> Result<()> {
        let d = self.question.n_features;
        Error::check_len("A part", found.len(), d, "columns")?;
        Error::check_len("A part", texts.len(), d, "columns")?;
        let Gathered::Sample { columns, .. } = &mut self.body else { return Ok(()) };
        if columns.is_empty() {
            *columns = found;
        } else {
            columns.iter_mut().zip(found).for_each(|(own, other)| own.merge(other));
        }
        self.level_hashes = texts.iter().map(|levels| hashes_of(levels.as_ref())).collect();
        self.texts = texts;
        Ok(())
    }

    /// Adds rows of a part, in its order; each has a cell with a value. `weights`: positive; none: 1 each. `labels`: where
    /// the question wants them.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree; [`Error::Value`] if distances overflow, columns hold other things than the
    /// question says, or labels lack, are too many, or were not there before; [`Error::Interrupted`].
    pub fn add(
        &mut self,
        table: &Table<'_>,
        weights: Option<&[f64]>,
        labels: Option<BatchLabels<'_>>,
        part: u64,
    ) -> Result<()> {
        let n = table.n_samples();
        Error::check_len("A part", table.n_features(), self.question.n_features, "columns")?;
        if let Some(weights) = weights {
            Error::check_len("sample_weight", weights.len(), n, "rows")?;
        }
        let n_levels = |f: usize| self.level_hashes.get(f).and_then(Option::as_ref).map(Vec::len);
        if let Some(f) = (0..table.n_features()).find(|&f| table.n_levels(f) != n_levels(f)) {
            return Err(Error::Value(format!(
                "Column {f} (counting from 0) does not hold the levels that the question says."
            )));
        }
        let labels = labels.filter(|_| self.question.labels != LabelRule::None);
        let codes = self.codes(labels, n)?;
        let codes = codes.as_deref();
        let rows = self.parts.entry(part).or_default();
        let first = rows.n;
        rows.n += n as u64;
        let checksum = checksum(table, weights, labels, &self.level_hashes);
        rows.checksum = rows.checksum.wrapping_add(checksum);
        let weight = |row: usize| weights.map_or(1.0, |w| w[row]);
        let cells = |row: usize| -> Vec<f64> {
            (0..table.n_features()).map(|f| table.column(f).get(row) + 0.0).collect()
        };
        let leaves = match &self.tree {
            Some(tree) => route(tree, table, part)?,
            None => vec![],
        };
        match (&self.question.ask, &mut self.body) {
            (Ask::Sample { size }, Gathered::Sample { drawn, columns }) => {
                let columns = columns.iter_mut().zip(&self.texts).enumerate();
                parallel::map(columns, |(feature, (found, levels))| {
                    add_cells(found, table.column(feature), levels.as_deref(), (part, first));
                });
                let of_levels: Vec<bool> = self.texts.iter().map(Option::is_some).collect();
                for row in 0..n {
                    let place = (part, first + row as u64);
                    let hash = draw(place.0, place.1);
                    let is_full = drawn.len() == *size;
                    if is_full && drawn.peek().is_some_and(|top| top.key() <= (hash, place)) {
                        continue;
                    }
                    let mut cells = cells(row);
                    // Their codes are those of these rows alone.
                    let levels = cells.iter_mut().zip(&of_levels).filter(|(_, levels)| **levels);
                    levels.for_each(|(cell, _)| *cell = f64::NAN);
                    drawn.push(Drawn(SampledRow { hash, place, cells }));
                    if is_full {
                        drawn.pop();
                    }
                }
            }
            (Ask::Rows { starts, places }, Gathered::Rows(found)) => {
                let Ok(at) = starts.binary_search_by_key(&part, |start| start.0) else {
                    return Err(Error::Value(format!(
                        "Part {part} was not there before: every question goes to the same parts."
                    )));
                };
                let first = starts[at].1 + first;
                let begin = places.partition_point(|&place| place < first);
                let asked = places[begin..].iter().take_while(|&&place| place < first + n as u64);
                asked.for_each(|&place| {
                    let row = (place - first) as usize;
                    let mut cells = cells(row);
                    cells.push(weight(row));
                    found.insert(place, cells);
                });
            }
            (Ask::Moments { shift, mean, power }, Gathered::Moments { sums, largest, levels }) => {
                let columns = sums.iter_mut().zip(largest).zip(levels).enumerate();
                parallel::map(columns, |(feature, ((sums, largest), levels))| {
                    let column = table.column(feature);
                    let observed =
                        (0..n).map(|row| (row, column.get(row))).filter(|(_, x)| !x.is_nan());
                    if let Some(levels) = levels {
                        observed.for_each(|(row, x)| levels.add_one(0, x as usize, weight(row)));
                        return;
                    }
                    for (row, x) in observed {
                        let x = x - shift[feature];
                        *largest = largest.max(x.abs());
                        let sum = weight(row) * (x - mean[feature]).powi(*power);
                        sums.add(0, &[sum, weight(row)]);
                    }
                });
            }
            (Ask::Base(ask), Gathered::Base(sums)) => {
                if let Some(tree) = &self.tree {
                    sums.add(ask, table, weights, codes, (tree, &leaves))?;
                }
            }
            (Ask::Means(ask), Gathered::Means(sums)) => {
                sums.add(ask, table, weights, codes.unwrap_or(&[]));
            }
            (Ask::Ranks(ask), Gathered::Ranks { weighted, opened }) => {
                *weighted |= weights.is_some();
                let groups: Vec<usize> = match codes {
                    Some(codes) if ask.nodes.is_empty() => {
                        codes.iter().map(|&code| code as usize).collect()
                    }
                    _ => leaves.iter().map(|&leaf| ask.groups[leaf as usize]).collect(),
                };
                add_ranks(ask, table, weights, &groups, opened);
            }
            (Ask::Grow(ask), Gathered::Grow { binners, fills, opened }) => {
                GrowPart { ask, table, weights, leaves: &leaves }.add(binners, fills, opened)?;
            }
            (Ask::Leaves(ask), Gathered::Leaves(sums)) => {
                add_leaves(ask, table, weights, codes, &leaves, sums)?;
            }
            _ => return Err(Error::Internal("an answer of another kind.".into())),
        }
        if table.stopped() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// The labels of `n` rows as places among the question's classes; none where it knows none.
    fn codes(&mut self, labels: Option<BatchLabels<'_>>, n: usize) -> Result<Option<Vec<u32>>> {
        let Some(BatchLabels { classes, codes }) = labels else {
            return match self.question.labels {
                LabelRule::None => Ok(None),
                _ => Err(Error::Value("The labels of the rows are not given.".into())),
            };
        };
        Error::check_labels(codes, n, classes.len())?;
        if let LabelRule::Of(known) = &self.question.labels {
            let places = known.places_of(classes)?;
            return Ok(Some(codes.iter().map(|&code| places[code as usize]).collect()));
        }
        if !classes.is_empty() {
            classes.check_number()?;
            self.classes = Some(match self.classes.take() {
                Some(own) => own.merge(classes.clone())?,
                None => classes.clone(),
            });
        }
        Ok(None)
    }

    /// The answer of all rows that were added.
    pub fn finish(self) -> Answer {
        let body = match self.body {
            Gathered::Sample { drawn, columns } => {
                let size = match self.question.ask {
                    Ask::Sample { size } => size,
                    _ => 0,
                };
                let rows = drawn.into_sorted_vec().into_iter().map(|drawn| drawn.0).collect();
                Body::Sample { size, rows, columns, classes: self.classes }
            }
            Gathered::Rows(rows) => Body::Rows(rows),
            Gathered::Moments { sums, largest, levels } => {
                let all: Vec<ExactSums> = sums.into_iter().map(ExactRows::finish).collect();
                let pieces: Vec<_> = all.iter().map(|sums| (sums, 0..2)).collect();
                let sums = ExactSums::gather(&pieces);
                Body::Moments { sums, largest, levels: finish_columns(levels) }
            }
            Gathered::Base(sums) => Body::Base(Box::new(sums.finish())),
            Gathered::Ranks { weighted, opened } => {
                Body::Ranks { weighted, opened: parallel::map(opened, GatheredBins::finish) }
            }
            Gathered::Means(sums) => Body::Means(Box::new(sums.finish())),
            Gathered::Grow { fills, opened, .. } => {
                let finish = |bins: Vec<GatheredBins>| parallel::map(bins, GatheredBins::finish);
                Body::Grow {
                    fills: fills.into_iter().map(finish).collect(),
                    opened: finish(opened),
                }
            }
            Gathered::Leaves(leaves) => Body::Leaves(Box::new(LeafSums {
                count: leaves.count,
                labels: leaves.labels,
                weight: leaves.weight.finish(),
                minimum: leaves.minimum,
                misfit: leaves.misfit,
                regret: leaves.regret,
                moments: leaves.moments.into_iter().map(ExactRows::finish).collect(),
                observed: finish_columns(leaves.observed),
                levels: finish_columns(leaves.levels),
                level_costs: finish_columns(leaves.level_costs),
            })),
        };
        Answer { id: self.question.id, parts: self.parts, body }
    }
}

fn finish_columns(columns: Vec<Option<ExactRows>>) -> Vec<Option<ExactSums>> {
    columns.into_iter().map(|sums| sums.map(ExactRows::finish)).collect()
}

/// Takes note of the cells of a column of fitted rows, the first of which is at `place`; `levels`: by code.
fn add_cells(
    found: &mut FoundColumn,
    column: &Column<'_>,
    levels: Option<&[String]>,
    (part, first): (u64, u64),
) {
    let mut is_known = [false; MISSING_LEVEL as usize + 1];
    for row in 0..column.len() {
        let x = column.get(row);
        match levels {
            _ if x.is_nan() => found.gaps += 1,
            None => found.add_number((part, first + row as u64), x + 0.0),
            Some(levels) => {
                let code = x as usize;
                if !std::mem::replace(&mut is_known[code], true) {
                    levels.get(code).into_iter().for_each(|level| found.add_level(level));
                }
            }
        }
    }
}

/// The costs of some rows.
pub(super) fn costs(
    geometry: &Geometry,
    table: &Table<'_>,
    weights: Option<&[f64]>,
) -> Result<ExactLabelCosts> {
    let Geometry { units, centers, metric, levels } = geometry;
    let levels: Vec<Option<&[f64]>> = levels.iter().map(Option::as_deref).collect();
    exact_label_costs(table, units, centers, *metric, &levels, weights)
}

/// Rows of a part and what is asked of them.
struct GrowPart<'a, 't> {
    ask: &'a GrowAsk,
    table: &'a Table<'t>,
    weights: Option<&'a [f64]>,
    /// By row the leaf it comes to.
    leaves: &'a [i64],
}

impl GrowPart<'_, '_> {
    fn add(
        &self,
        binners: &[Option<Binner>],
        fills: &mut [Vec<GatheredBins>],
        opened: &mut [GatheredBins],
    ) -> Result<()> {
        let GrowPart { ask, table, weights, leaves } = *self;
        let k = ask.geometry.k();
        // Rows of nodes that are added up come first, those that are only counted last.
        let with_sums = ask.fills.iter().filter(|fill| fill.1).map(|fill| fill.0);
        let mut added: Vec<usize> =
            with_sums.chain(ask.opens.iter().map(|open| open.node)).collect();
        added.sort_unstable();
        added.dedup();
        let counted = ask.fills.iter().map(|fill| fill.0);
        let counted = counted.filter(|node| added.binary_search(node).is_err());
        let asked: Vec<usize> = added.iter().copied().chain(counted).collect();
        let mut place = vec![None; ask.nodes.len()];
        asked.iter().enumerate().for_each(|(i, &node)| place[node] = Some(i));
        let mut runs_of = vec![vec![]; ask.nodes.len()];
        ask.opens.chunk_by(Open::is_before).for_each(|run| runs_of[run[0].node].push(run));
        // Of a node that is not filled, rows that lie in an opened range suffice.
        ask.fills.iter().for_each(|&(node, _)| runs_of[node] = vec![]);
        let is_asked = |row: usize, leaf: i64| {
            let runs = &runs_of[leaf as usize];
            let is_inside =
                |run: &&[Open]| opened_at(run, table.column(run[0].feature).get(row)).is_some();
            runs.is_empty() || runs.iter().any(is_inside)
        };
        let chunks = parallel::map(leaves.chunks(ROUTED).enumerate(), |(chunk, leaves)| {
            let rows = (chunk * ROUTED..).zip(leaves);
            let asked = rows.filter(|&(row, &leaf)| is_asked(row, leaf));
            asked.map(|(row, &leaf)| (row, leaf)).collect::<Vec<_>>()
        });
        let mut rows_of = vec![vec![]; asked.len()];
        for (row, leaf) in chunks.into_iter().flatten() {
            if let Some(i) = place[leaf as usize] {
                memory::push(&mut rows_of[i], row as u32, "the rows of a node");
            }
        }
        let rows = rows_of.concat();
        let mut starts = vec![0];
        rows_of.iter().for_each(|rows| starts.push(starts[starts.len() - 1] + rows.len()));
        let range = |node: usize| place[node].map_or(0..0, |i| starts[i]..starts[i + 1]);
        let features: Vec<usize> = (0..table.n_features()).collect();
        let cells = parallel::map(&features, |&feature| cells_of(table, feature, &rows));
        let n_added = starts[added.len()];
        let mut regrets = vec![];
        if n_added > 0 {
            let codes: Vec<Vec<u8>> = (0..table.n_features())
                .map(|feature| match table.n_levels(feature) {
                    Some(_) => cells[feature][..n_added].iter().map(code_of).collect(),
                    None => vec![],
                })
                .collect();
            let columns = cells.iter().zip(&codes).enumerate().map(|(feature, (cells, codes))| {
                match table.n_levels(feature) {
                    Some(n_levels) => Column::levels(ArrayView1::from(codes), n_levels),
                    None => Ok(ArrayView1::from(&cells[..n_added]).into()),
                }
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let own = weights.map(|weights| {
                rows[..n_added].iter().map(|&row| weights[row as usize]).collect::<Vec<f64>>()
            });
            let table = Table::new(columns)?;
            regrets = costs(&ask.geometry, &table, own.as_deref())?.regrets;
        }
        let regret = |row: usize| regrets.get(row * k..(row + 1) * k);
        let columns = ask.fills.iter().zip(fills).flat_map(|(&(node, _), columns)| {
            columns.iter_mut().enumerate().map(move |(feature, bins)| (node, feature, bins))
        });
        parallel::map(columns, |(node, feature, bins)| {
            let rows = range(node);
            let asked_bins = &ask.columns[feature];
            let cells = asked_bins.filled(&cells[feature][rows.clone()]);
            asked_bins.assign(binners[feature].as_ref(), &cells, |place, bin| {
                bins.add(bin, cells[place], regret(rows.start + place));
            });
        });
        parallel::map(with_runs(&ask.opens, opened), |(run, bins)| {
            let (node, feature) = (run[0].node, run[0].feature);
            let mut picked = vec![];
            for row in range(node) {
                let x = cells[feature][row];
                let (Some(i), Some(all)) = (opened_at(run, x), regret(row)) else { continue };
                let sums = match run[i].labels.as_slice() {
                    [] => all,
                    labels => {
                        picked.clear();
                        picked.extend(labels.iter().map(|&label| all[label]));
                        &picked
                    }
                };
                match &run[i].ends {
                    Some(ends) => {
                        bins[i].add(ends.partition_point(|&end| end < x), x, Some(sums));
                    }
                    None => bins[i].add_value(x, sums),
                }
            }
        });
        Ok(())
    }
}

/// The code of a cell of levels.
fn code_of(x: &f64) -> u8 {
    if x.is_nan() { MISSING_LEVEL } else { *x as u8 }
}

/// Which of the ranges of a column, ascending, a cell lies in.
pub(super) fn opened_at(run: &[Open], x: f64) -> Option<usize> {
    let i = run.partition_point(|open| open.high < x);
    run.get(i).filter(|open| open.low <= x).map(|_| i)
}

/// Adds rows to the sums of leaves. `own`: their labels; none: the nearest centers.
fn add_leaves(
    ask: &LeavesAsk,
    table: &Table<'_>,
    weights: Option<&[f64]>,
    own: Option<&[u32]>,
    leaves: &[i64],
    sums: &mut GatheredLeaves,
) -> Result<()> {
    let n = table.n_samples();
    let weight = |row: usize| weights.map_or(1.0, |w| w[row]);
    let ExactLabelCosts { nearest, minimum, regrets } = costs(&ask.geometry, table, weights)?;
    let k = ask.geometry.k();
    sums.minimum.merge(&minimum);
    for (row, (&leaf, &label)) in leaves.iter().zip(own.unwrap_or(&nearest)).enumerate() {
        if label != nearest[row] {
            sums.misfit.add(0, weight(row));
            sums.regret.add(0, regrets[row * k + label as usize]);
        }
        sums.count[leaf as usize] += 1;
        sums.labels[label as usize] += 1;
        sums.weight.add_one(leaf as usize, label as usize, weight(row));
    }
    let groups: Vec<u32> = match &ask.groups {
        RowGroups::ByLeaf(group) => {
            leaves.iter().map(|&leaf| group[leaf as usize] as u32).collect()
        }
        RowGroups::Nearest => nearest,
    };
    let all: Vec<u32> = (0..n as u32).collect();
    let (d, metric) = (table.n_features(), ask.geometry.metric);
    let of_levels = sums.levels.iter_mut().zip(&mut sums.level_costs);
    let columns = sums.moments.iter_mut().zip(&mut sums.observed).zip(of_levels);
    parallel::map(
        columns.enumerate(),
        |(feature, ((moments, observed), (levels, level_costs)))| {
            let cells = cells_of(table, feature, &all);
            let group = |row: usize| groups[row] as usize;
            if let Some(costs) = level_costs {
                let cost = ask.geometry.mismatch(feature);
                add_level(costs, &cells, group, |row| weight(row) * cost);
            }
            if let Some(levels) = levels {
                return add_level(levels, &cells, group, weight);
            }
            let scale = ask.geometry.units.scale[feature];
            let weighted = |row: usize| {
                let difference = (cells[row] - ask.points[group(row) * d + feature]) / scale;
                let weighted = weight(row) * difference;
                match metric {
                    Metric::SquaredEuclidean => [weighted, weighted * difference],
                    Metric::Manhattan => [weighted.abs(), 0.0],
                }
            };
            match observed {
                Some(observed) => {
                    add_observed((moments, observed), &cells, group, weight, weighted)
                }
                None => moments.add_pairs(&groups, weighted),
            }
        },
    );
    Ok(())
}

/// Adds a number of each row, its weight or another, to those of its group and its level in a column.
pub(super) fn add_level(
    levels: &mut ExactRows,
    cells: &[f64],
    group: impl Fn(usize) -> usize,
    weight: impl Fn(usize) -> f64,
) {
    for (row, &x) in cells.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
        levels.add_one(group(row), x as usize, weight(row));
    }
}

/// Adds two numbers of each observed cell of a column to the sums of its row's group, and the row's weight to the group's
/// observed weight.
pub(super) fn add_observed(
    (sums, observed): (&mut ExactRows, &mut ExactRows),
    cells: &[f64],
    group: impl Fn(usize) -> usize,
    weight: impl Fn(usize) -> f64,
    terms: impl Fn(usize) -> [f64; 2],
) {
    for row in (0..cells.len()).filter(|&row| !cells[row].is_nan()) {
        sums.add(group(row), &terms(row));
        observed.add_one(group(row), 0, weight(row));
    }
}
