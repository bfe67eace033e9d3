//! How a part answers: its rows are routed, put into bins and added up.

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use ndarray::ArrayView1;

use super::answer::{Answer, Bins, Body, LeafSums, PartRows, SampledRow, other_rows};
use super::classes::{BatchLabels, Classes, LabelRule};
use super::label_means::GatheredMeans;
use super::question::{Ask, Geometry, GrowAsk, LeavesAsk, Open, Question, RowGroups};
use super::routing::tree_of;
use crate::binner::Binner;
use crate::costs::{ExactLabelCosts, Metric, exact_label_costs};
use crate::error::{Error, Result};
use crate::exact::{ExactRows, ExactSums};
use crate::memory;
use crate::parallel;
use crate::table::{TILE, Table};
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
    body: Gathered,
}

/// [`Body`] on its way.
enum Gathered {
    Sample(BinaryHeap<Drawn>),
    Rows(BTreeMap<u64, Vec<f64>>),
    Moments { weight: ExactRows, sums: Vec<ExactRows>, largest: Vec<f64> },
    Means(Box<GatheredMeans>),
    Grow { binners: Vec<Binner>, fills: Vec<Vec<GatheredBins>>, opened: Vec<GatheredBins> },
    Leaves(Box<GatheredLeaves>),
}

/// [`LeafSums`] on their way.
struct GatheredLeaves {
    count: Vec<u64>,
    labels: Vec<u64>,
    weight: ExactRows,
    minimum: ExactSums,
    misfit: ExactSums,
    moments: Vec<ExactRows>,
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

/// [`Bins`] on their way.
struct GatheredBins {
    bins: Bins,
    sums: Option<ExactRows>,
    /// By value, in an order of bits that is that of the values: rows and sums.
    values: BTreeMap<u64, (f64, u64, ExactSums)>,
}

impl GatheredBins {
    fn new(n: usize, with_sums: bool, of_values: bool, width: usize) -> Self {
        GatheredBins {
            bins: Bins::empty(n, of_values, width),
            sums: (with_sums && !of_values).then(|| ExactRows::new(n, width)),
            values: BTreeMap::new(),
        }
    }

    #[inline]
    fn add(&mut self, bin: usize, x: f64, sums: Option<&[f64]>) {
        self.bins.count[bin] += 1;
        self.bins.low[bin] = self.bins.low[bin].min(x);
        self.bins.high[bin] = self.bins.high[bin].max(x);
        if let (Some(rows), Some(sums)) = (&mut self.sums, sums) {
            rows.add(bin, sums);
        }
    }

    fn add_value(&mut self, x: f64, sums: &[f64]) {
        let new = || (x, 0, ExactSums::new(sums.len()));
        let (_, count, of_value) = self.values.entry(ordered_bits(x)).or_insert_with(new);
        *count += 1;
        sums.iter().enumerate().for_each(|(place, &sum)| of_value.add(place, sum));
    }

    fn finish(mut self) -> Bins {
        if !self.bins.of_values {
            self.bins.sums = self.sums.map(ExactRows::finish);
            return self.bins;
        }
        let width = self.bins.width;
        let mut bins = Bins::empty(0, true, width);
        let mut pieces = vec![];
        for (x, count, sums) in self.values.values() {
            bins.count.push(*count);
            bins.low.push(*x);
            bins.high.push(*x);
            pieces.push((sums, 0..width));
        }
        bins.sums = Some(ExactSums::gather(&pieces));
        bins
    }
}

/// An integer that grows as the number does.
pub(super) fn ordered_bits(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The number of [`ordered_bits`].
pub(super) fn from_ordered_bits(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
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

/// The sum of a hash of every row.
fn checksum(table: &Table<'_>, weights: Option<&[f64]>, labels: Option<BatchLabels<'_>>) -> u64 {
    let n = table.n_samples();
    let of_classes = labels.map_or(vec![], |labels| labels.classes.hashes());
    let sums = parallel::map((0..n).step_by(TILE), |start| {
        let length = TILE.min(n - start);
        let (mut hashes, mut cells) = ([0u64; TILE], [0.0; TILE]);
        let mut add = |cells: &[f64]| {
            for (hash, x) in hashes.iter_mut().zip(cells) {
                *hash = (hash.rotate_left(29) ^ x.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
        };
        for feature in 0..table.n_features() {
            table.column(feature).read(start, &mut cells[..length]);
            add(&cells[..length]);
        }
        weights.into_iter().for_each(|weights| add(&weights[start..start + length]));
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
        let body = match &question.ask {
            Ask::Sample { .. } => Gathered::Sample(BinaryHeap::new()),
            Ask::Rows { .. } => Gathered::Rows(BTreeMap::new()),
            Ask::Moments { .. } => Gathered::Moments {
                weight: rows(1, 1),
                sums: (0..d).map(|_| rows(1, 1)).collect(),
                largest: vec![0.0; d],
            },
            Ask::Means(ask) => {
                Gathered::Means(Box::new(GatheredMeans::new(d, ask.points.len() / d)))
            }
            Ask::Grow(ask) => {
                let k = ask.geometry.k();
                let fill = |&(_, with_sums): &(usize, bool)| {
                    let column =
                        |ends: &Vec<f64>| GatheredBins::new(ends.len(), with_sums, false, k);
                    ask.ends.iter().map(column).collect()
                };
                let open = |ends: &Option<Vec<f64>>| match ends {
                    Some(ends) => GatheredBins::new(ends.len() + 1, true, false, k),
                    None => GatheredBins::new(0, true, true, k),
                };
                Gathered::Grow {
                    binners: ask.ends.iter().map(|ends| Binner::new(ends)).collect(),
                    fills: ask.fills.iter().map(fill).collect(),
                    opened: ask.opens.iter().map(|asked| open(&asked.ends)).collect(),
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
                    moments: (0..d).map(|_| rows(n_groups, 2)).collect(),
                }))
            }
        };
        let nodes = match &question.ask {
            Ask::Grow(GrowAsk { nodes, .. }) | Ask::Leaves(LeavesAsk { nodes, .. }) => nodes,
            _ => &vec![],
        };
        let tree = (!nodes.is_empty()).then(|| tree_of(nodes, d)).transpose()?;
        Ok(Gathering { question, parts: BTreeMap::new(), classes: None, tree, body })
    }

    /// Adds a part without rows, or the last of its rows.
    pub fn add_part(&mut self, part: u64) {
        self.parts.entry(part).or_default();
    }

    /// Adds rows of a part, in its order. `weights`: positive; none: 1 each. `labels`: where the question wants them. No
    /// cell is missing.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree; [`Error::Value`] if distances overflow, or labels lack, are too many, or were
    /// not there before; [`Error::Interrupted`].
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
        let labels = labels.filter(|_| self.question.labels != LabelRule::None);
        let codes = self.codes(labels, n)?;
        let codes = codes.as_deref();
        let rows = self.parts.entry(part).or_default();
        let first = rows.n;
        rows.n += n as u64;
        rows.checksum = rows.checksum.wrapping_add(checksum(table, weights, labels));
        let weight = |row: usize| weights.map_or(1.0, |w| w[row]);
        let cells = |row: usize| -> Vec<f64> {
            (0..table.n_features()).map(|f| table.column(f).get(row) + 0.0).collect()
        };
        let leaves = match &self.tree {
            Some(tree) => route(tree, table, part)?,
            None => vec![],
        };
        match (&self.question.ask, &mut self.body) {
            (Ask::Sample { size }, Gathered::Sample(drawn)) => {
                for row in 0..n {
                    let place = (part, first + row as u64);
                    let hash = draw(place.0, place.1);
                    let is_full = drawn.len() == *size;
                    if is_full && drawn.peek().is_some_and(|top| top.key() <= (hash, place)) {
                        continue;
                    }
                    drawn.push(Drawn(SampledRow { hash, place, cells: cells(row) }));
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
            (
                Ask::Moments { shift, mean, power },
                Gathered::Moments { weight: total, sums, largest },
            ) => {
                (0..n).for_each(|row| total.add_one(0, 0, weight(row)));
                let columns = sums.iter_mut().zip(largest).enumerate();
                parallel::map(columns, |(feature, (sum, largest))| {
                    let column = table.column(feature);
                    for row in 0..n {
                        let x = column.get(row) - shift[feature];
                        *largest = largest.max(x.abs());
                        sum.add_one(0, 0, weight(row) * (x - mean[feature]).powi(*power));
                    }
                });
            }
            (Ask::Means(ask), Gathered::Means(sums)) => {
                sums.add(ask, table, weights, codes.unwrap_or(&[]));
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
            Gathered::Sample(drawn) => {
                let size = match self.question.ask {
                    Ask::Sample { size } => size,
                    _ => 0,
                };
                let rows = drawn.into_sorted_vec().into_iter().map(|drawn| drawn.0).collect();
                Body::Sample { size, rows, classes: self.classes }
            }
            Gathered::Rows(rows) => Body::Rows(rows),
            Gathered::Moments { weight, sums, largest } => {
                let all: Vec<ExactSums> =
                    std::iter::once(weight).chain(sums).map(ExactRows::finish).collect();
                let pieces: Vec<_> = all.iter().map(|sum| (sum, 0..1)).collect();
                Body::Moments { sums: ExactSums::gather(&pieces), largest }
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
                moments: leaves.moments.into_iter().map(ExactRows::finish).collect(),
            })),
        };
        Answer { id: self.question.id, parts: self.parts, body }
    }
}

/// The costs of some rows.
fn costs(
    geometry: &Geometry,
    table: &Table<'_>,
    weights: Option<&[f64]>,
) -> Result<ExactLabelCosts> {
    let Geometry { units, centers } = geometry;
    exact_label_costs(table, units, centers, Metric::SquaredEuclidean, &[], weights)
}

/// Rows of a part and what is asked of them.
struct GrowPart<'a, 't> {
    ask: &'a GrowAsk,
    table: &'a Table<'t>,
    weights: Option<&'a [f64]>,
    /// By row the node it comes to.
    leaves: &'a [i64],
}

impl GrowPart<'_, '_> {
    fn add(
        &self,
        binners: &[Binner],
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
        let counted = ask.fills.iter().filter(|fill| !fill.1).map(|fill| fill.0);
        let asked: Vec<usize> = added.iter().copied().chain(counted).collect();
        let mut place = vec![None; ask.nodes.len()];
        asked.iter().enumerate().for_each(|(i, &node)| place[node] = Some(i));
        let runs: Vec<&[Open]> = ask.opens.chunk_by(Open::is_before).collect();
        let mut runs_of = vec![vec![]; ask.nodes.len()];
        runs.iter().for_each(|run| runs_of[run[0].node].push(*run));
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
            let columns = cells.iter().map(|cells| ArrayView1::from(&cells[..n_added]).into());
            let own = weights.map(|weights| {
                rows[..n_added].iter().map(|&row| weights[row as usize]).collect::<Vec<f64>>()
            });
            let table = Table::new(columns.collect())?;
            regrets = costs(&ask.geometry, &table, own.as_deref())?.regrets;
        }
        let regret = |row: usize| regrets.get(row * k..(row + 1) * k);
        let columns = ask.fills.iter().zip(fills).flat_map(|(&(node, _), columns)| {
            columns.iter_mut().enumerate().map(move |(feature, bins)| (node, feature, bins))
        });
        parallel::map(columns, |(node, feature, bins)| {
            let rows = range(node);
            let cells = &cells[feature][rows.clone()];
            let mut codes = vec![0; cells.len()];
            binners[feature].assign(cells, &mut codes);
            for ((row, &x), &code) in rows.zip(cells).zip(&codes) {
                bins.add(code.into(), x, regret(row));
            }
        });
        let mut others = opened;
        let columns: Vec<_> = runs
            .into_iter()
            .map(|run| {
                let (bins, rest) = std::mem::take(&mut others).split_at_mut(run.len());
                others = rest;
                (run, bins)
            })
            .collect();
        parallel::map(columns, |(run, bins)| {
            let (node, feature) = (run[0].node, run[0].feature);
            for row in range(node) {
                let x = cells[feature][row];
                let Some(i) = opened_at(run, x) else { continue };
                match (&run[i].ends, regret(row)) {
                    (Some(ends), regret) => {
                        bins[i].add(ends.partition_point(|&end| end < x), x, regret);
                    }
                    (None, Some(regret)) => bins[i].add_value(x, regret),
                    (None, None) => {}
                }
            }
        });
        Ok(())
    }
}

/// Which of the ranges of a column, ascending, a cell lies in.
fn opened_at(run: &[Open], x: f64) -> Option<usize> {
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
    let ExactLabelCosts { nearest, minimum, .. } = costs(&ask.geometry, table, weights)?;
    sums.minimum.merge(&minimum);
    for (row, (&leaf, &label)) in leaves.iter().zip(own.unwrap_or(&nearest)).enumerate() {
        if label != nearest[row] {
            sums.misfit.add(0, weight(row));
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
    let d = table.n_features();
    parallel::map(sums.moments.iter_mut().enumerate(), |(feature, moments)| {
        let cells = cells_of(table, feature, &all);
        let scale = ask.geometry.units.scale[feature];
        moments.add_pairs(&groups, |row| {
            let point = ask.points[groups[row] as usize * d + feature];
            let difference = (cells[row] - point) / scale;
            let weighted = weight(row) * difference;
            [weighted, weighted * difference]
        });
    });
    Ok(())
}
