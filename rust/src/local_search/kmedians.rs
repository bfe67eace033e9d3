//! The k-medians objective of a tree: E = sum_i w_i |x_i - median of the tree's cluster of i|_1, the medians being those
//! of the columns, weighted, the lower of two.
//!
//! A leaf keeps each column's distinct values in order, with the weight W and the sum M of w (x - own median) up to each
//! of them. A value m behind W_m and M_m then costs the leaf (2 W_m - W) (m - own median) + M - 2 M_m in that column:
//! no sum is larger than what it stands for. The median of several leaves is found by halving their ranges of values;
//! no row is looked at. O(log) per leaf and column for the cost about a center; up to (leaves of the cluster)^2 log^2
//! for a median.
//!
//! A leaf moves to the cluster in whose center it costs least (of those other than its own) if both clusters together
//! then cost less about their new medians: Hartigan's rule with one candidate. Memory: 24 n d bytes at most.
//!
//! Missing coordinates (NaN) cost nothing, and medians are those of the others. The coordinates of a column of levels,
//! one each, of which a row has one above 0, have no medians but the most frequent level, the first of several: it has
//! its coordinate, and the others are 0.

use super::objective::{Objective, RowCosts};
use super::points::{PlacedLevels, PointCosts, Points, sum_over};
use crate::parallel::Monitor;

/// Most sweeps over the leaves.
const MAX_SWEEPS: usize = 50;
/// A change of E by less than this share of it is none.
const TIE: f64 = 1e-12;
/// Half the weight is reached up to this share of it: rounding makes no upper median of a lower one.
const MARGIN: f64 = 1e-12;

/// A value of a column in a leaf, the weight up to it and the sum of w (x - own median) up to it.
type Entry = [f64; 3];

/// What a leaf keeps, in one slice: its cost about its own medians, those medians, where each column's entries end, and
/// the entries.
#[derive(Clone, Copy)]
struct LeafSums<'a> {
    own_cost: f64,
    medians: &'a [f64],
    stops: &'a [f64],
    entries: &'a [Entry],
}

impl<'a> LeafSums<'a> {
    fn read(sums: &'a [f64], d: usize) -> Self {
        let (head, entries) = sums.split_at(1 + 2 * d);
        let (medians, stops) = head[1..].split_at(d);
        LeafSums { own_cost: head[0], medians, stops, entries: entries.as_chunks::<3>().0 }
    }

    fn column(&self, feature: usize) -> &'a [Entry] {
        let start = feature.checked_sub(1).map_or(0, |before| self.stops[before] as usize);
        &self.entries[start..self.stops[feature] as usize]
    }

    /// What the rows cost about a center.
    fn about(&self, center: &[f64]) -> f64 {
        let of_column = |(feature, &m): (usize, &f64)| {
            let column = self.column(feature);
            let Some(&[_, weight, moment]) = column.last() else { return 0.0 };
            // A center whose rows all lack the column gets these rows' own median.
            let m = if m.is_nan() { self.medians[feature] } else { m };
            let behind = column.partition_point(|entry| entry[0] <= m).checked_sub(1);
            let (weight_m, moment_m) =
                behind.map_or((0.0, 0.0), |at| (column[at][1], column[at][2]));
            (2.0 * weight_m - weight) * (m - self.medians[feature]) + moment - 2.0 * moment_m
        };
        center.iter().enumerate().map(of_column).sum()
    }
}

/// The lower weighted median of the values of some columns together.
fn median(columns: &[&[Entry]]) -> f64 {
    let total: f64 = columns.iter().filter_map(|column| column.last()).map(|last| last[1]).sum();
    let half = total * (0.5 - MARGIN);
    let mut open: Vec<(usize, usize)> = columns.iter().map(|column| (0, column.len())).collect();
    let mut median = f64::NAN;
    while let Some((at, &(low, high))) =
        open.iter().enumerate().max_by_key(|(_, (low, high))| high - low)
        && low < high
    {
        let pivot = columns[at][usize::midpoint(low, high)][0];
        let mut reached = 0.0;
        let ends: Vec<usize> = columns
            .iter()
            .zip(&open)
            .map(|(column, &(low, high))| {
                let end = low + column[low..high].partition_point(|entry| entry[0] <= pivot);
                reached += end.checked_sub(1).map_or(0.0, |last| column[last][1]);
                end
            })
            .collect();
        let is_enough = reached >= half;
        if is_enough {
            median = pivot;
        }
        for ((column, range), end) in columns.iter().zip(&mut open).zip(ends) {
            if is_enough {
                let holds_pivot = end > range.0 && column[end - 1][0] >= pivot;
                range.1 = end - usize::from(holds_pivot);
            } else {
                range.0 = end;
            }
        }
    }
    median
}

/// The weight of the rows that have the level of a coordinate.
fn level_weight(column: &[Entry]) -> f64 {
    match column {
        [] => 0.0,
        [only] => {
            if only[0] > 0.0 {
                only[1]
            } else {
                0.0
            }
        }
        [others, .., last] => last[1] - others[1],
    }
}

/// Writes the most frequent level to the coordinates of its column.
fn set_level(center: &mut [f64], weights: &[f64], value: f64) {
    let mut most = (0.0, None);
    for (at, &weight) in weights.iter().enumerate() {
        if weight > most.0 {
            most = (weight, Some(at));
        }
    }
    let Some(most) = most.1 else { return center.fill(f64::NAN) };
    center.fill(0.0);
    center[most] = value;
}

/// The rows as points.
#[derive(Debug, Clone)]
pub struct KMedians<'a> {
    points: Points<'a>,
    has_gaps: bool,
}

impl<'a> KMedians<'a> {
    /// The points whose l1 distances count.
    pub fn new(points: Points<'a>) -> Self {
        let has_gaps = points.has_gaps();
        let distance = if has_gaps {
            |a: &[f64], b: &[f64]| sum_over(a, b, |x| if x.is_nan() { 0.0 } else { x.abs() })
        } else {
            |a: &[f64], b: &[f64]| sum_over(a, b, f64::abs)
        };
        let mut objective = KMedians { points: points.with(distance, 0.5), has_gaps };
        if has_gaps {
            let all: Vec<u32> = (0..objective.points.n_samples() as u32).collect();
            let sums = objective.leaf(&all);
            let medians =
                sums[1..=objective.points.d].iter().map(|&x| if x.is_nan() { 0.0 } else { x });
            objective.points.overall = medians.collect();
        }
        objective
    }

    fn space(&self) -> Space<'_, 'a> {
        let Points { d, k, levels, .. } = &self.points;
        Space { d: *d, k: *k, levels }
    }
}

/// What medians need to know of the coordinates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Space<'s, 'a> {
    /// Number of coordinates.
    pub(super) d: usize,
    /// Number of clusters.
    pub(super) k: usize,
    /// Columns of levels.
    pub(super) levels: &'s [PlacedLevels<'a>],
}

impl Space<'_, '_> {
    /// The medians of some leaves together, and what they cost about them; no leaf: 0.
    fn cluster(&self, leaves: &[LeafSums<'_>]) -> Cluster {
        let center = match leaves {
            [] => vec![0.0; self.d],
            [leaf] => leaf.medians.to_vec(),
            _ => {
                let mut columns = Vec::with_capacity(leaves.len());
                let median = |feature| {
                    columns.clear();
                    columns.extend(leaves.iter().map(|leaf| leaf.column(feature)));
                    median(&columns)
                };
                let mut center: Vec<f64> = (0..self.d).map(median).collect();
                for column in self.levels {
                    let places = column.places.clone();
                    let mut weights = vec![0.0; places.len()];
                    for leaf in leaves {
                        let of_levels = places.clone().map(|j| level_weight(leaf.column(j)));
                        weights.iter_mut().zip(of_levels).for_each(|(sum, w)| *sum += w);
                    }
                    set_level(&mut center[places], &weights, column.value);
                }
                center
            }
        };
        let cost = leaves.iter().map(|leaf| leaf.about(&center)).sum();
        Cluster { cost, center }
    }

    /// The clusters of labelled leaves.
    fn clusters(&self, leaves: &[LeafSums<'_>], labels: &[u32]) -> Vec<Cluster> {
        (0..self.k).map(|l| self.cluster(&with_label(leaves, labels, l))).collect()
    }

    /// The centers of labelled leaves, k x d; NaN where the rows of a cluster lack a coordinate.
    pub(super) fn centers(&self, leaves: &[&[f64]], labels: &[u32]) -> Vec<f64> {
        let clusters = self.clusters(&self.read(leaves), labels);
        clusters.into_iter().flat_map(|cluster| cluster.center).collect()
    }

    fn read<'s>(&self, leaves: &[&'s [f64]]) -> Vec<LeafSums<'s>> {
        leaves.iter().map(|sums| LeafSums::read(sums, self.d)).collect()
    }

    /// As [`Objective::settle`].
    pub(super) fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64 {
        let leaves = self.read(leaves);
        let mut clusters = self.clusters(&leaves, labels);
        let mut n_leaves = vec![0usize; self.k];
        labels.iter().for_each(|&label| n_leaves[label as usize] += 1);
        let all: f64 = clusters.iter().map(|cluster| cluster.cost).sum();
        for _ in 0..MAX_SWEEPS {
            let mut moved = false;
            for (at, leaf) in leaves.iter().enumerate() {
                let from = labels[at] as usize;
                if n_leaves[from] == 1 {
                    continue;
                }
                let mut best = (f64::INFINITY, from);
                for (to, cluster) in clusters.iter().enumerate().filter(|(to, _)| *to != from) {
                    let is_empty = n_leaves[to] == 0;
                    let cost = if is_empty { leaf.own_cost } else { leaf.about(&cluster.center) };
                    if cost < best.0 {
                        best = (cost, to);
                    }
                }
                let to = best.1;
                if to == from {
                    continue;
                }
                // The leaf costs the other cluster no less than its own cost.
                labels[at] = to as u32;
                let rest = self.cluster(&with_label(&leaves, labels, from));
                let gain = clusters[from].cost - rest.cost - TIE * all;
                if gain > leaf.own_cost {
                    let joined = self.cluster(&with_label(&leaves, labels, to));
                    if joined.cost - clusters[to].cost < gain {
                        (clusters[from], clusters[to]) = (rest, joined);
                        n_leaves[from] -= 1;
                        n_leaves[to] += 1;
                        moved = true;
                        continue;
                    }
                }
                labels[at] = from as u32;
            }
            if !moved {
                break;
            }
        }
        clusters.iter().map(|cluster| cluster.cost).sum()
    }
}

/// The sums of a leaf of `d` coordinates before [`push_column`].
pub(super) fn no_columns(d: usize) -> Vec<f64> {
    vec![0.0; 1 + 2 * d]
}

/// Adds the next coordinate to the sums of a leaf. `cells`: its values, ascending, and the weight of each.
pub(super) fn push_column(
    sums: &mut Vec<f64>,
    d: usize,
    column: usize,
    cells: impl Iterator<Item = (f64, f64)>,
) {
    let first = sums.len();
    let mut reached = 0.0;
    for (x, weight) in cells {
        reached += weight;
        sums.extend([x, reached, 0.0]);
    }
    let entries = sums[first..].as_chunks::<3>().0;
    let half = reached * (0.5 - MARGIN);
    let middle = entries.partition_point(|entry| entry[1] < half);
    let own = entries.get(middle).map_or(f64::NAN, |entry| entry[0]);
    close_column(sums, d, column, first, own);
}

/// Adds the cost about the column's own median, from the entries that begin at `first`, to the sums of a leaf.
fn close_column(sums: &mut [f64], d: usize, column: usize, first: usize, own: f64) {
    let (mut moment, mut before, mut cost) = (0.0, 0.0, 0.0);
    for entry in sums[first..].as_chunks_mut::<3>().0 {
        let part = (entry[1] - before) * (entry[0] - own);
        before = entry[1];
        moment += part;
        cost += part.abs();
        entry[2] = moment;
    }
    sums[0] += cost;
    sums[1 + column] = own;
    sums[1 + d + column] = ((sums.len() - 1 - 2 * d) / 3) as f64;
}

/// A cluster's medians and its cost about them.
struct Cluster {
    cost: f64,
    center: Vec<f64>,
}

/// The leaves of one label.
fn with_label<'s>(leaves: &[LeafSums<'s>], labels: &[u32], label: usize) -> Vec<LeafSums<'s>> {
    let pairs = leaves.iter().zip(labels).filter(|(_, other)| **other as usize == label);
    pairs.map(|(leaf, _)| *leaf).collect()
}

impl Objective for KMedians<'_> {
    fn n_labels(&self) -> usize {
        self.points.k
    }

    fn n_samples(&self) -> usize {
        self.points.n_samples()
    }

    fn leaf(&self, rows: &[u32]) -> Vec<f64> {
        let d = self.points.d;
        let (mut sums, mut cells) = (no_columns(d), Vec::with_capacity(rows.len()));
        let n_numbers = rows.first().map_or(0, |&row| self.points.numbers(row).len());
        for feature in 0..n_numbers {
            cells.clear();
            cells.extend(
                rows.iter()
                    .map(|&row| (self.points.numbers(row)[feature], self.points.weight(row))),
            );
            if self.has_gaps {
                cells.retain(|(x, _)| !x.is_nan());
            }
            cells.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let equal = cells.chunk_by(|a, b| a.0 == b.0);
            let weight = |cells: &[(f64, f64)]| cells.iter().map(|cell| cell.1).sum::<f64>();
            push_column(&mut sums, d, feature, equal.map(|cells| (cells[0].0, weight(cells))));
        }
        for column in &self.points.levels {
            let weights = self.points.level_weights(column, rows);
            let total: f64 = weights.iter().sum();
            let mut own = vec![f64::NAN; weights.len()];
            set_level(&mut own, &weights, column.value);
            for ((coordinate, weight), own) in column.places.clone().zip(weights).zip(own) {
                let (first, others) = (sums.len(), total - weight);
                let entries = [([0.0, others, 0.0], others), ([column.value, total, 0.0], weight)];
                entries.iter().filter(|(_, w)| *w > 0.0).for_each(|(entry, _)| sums.extend(entry));
                close_column(&mut sums, d, coordinate, first, own);
            }
        }
        sums
    }

    fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64 {
        self.space().settle(leaves, labels)
    }

    fn update_costs(
        &self,
        leaves: &[&[f64]],
        labels: &[u32],
        costs: &mut RowCosts,
        monitor: &Monitor,
    ) {
        let mut centers = self.space().centers(leaves, labels);
        if !self.points.overall.is_empty() {
            for center in centers.chunks_mut(self.points.d.max(1)) {
                let seen = center.iter_mut().zip(&self.points.overall);
                seen.filter(|(x, _)| x.is_nan()).for_each(|(x, &overall)| *x = overall);
            }
        }
        let is_used = |l: usize| labels.contains(&(l as u32));
        self.points.update(&centers, is_used, costs, monitor);
    }

    fn seed_costs(&self, seeds: &[u32], monitor: &Monitor) -> RowCosts {
        self.points.seed_costs(seeds, monitor)
    }
}
