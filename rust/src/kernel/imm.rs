//! Kernel IMM (Algorithm 1): iterative mistake minimisation on surrogate features, every cut told as an interval of an input
//! column.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::features::{Surrogate, SurrogateColumn, ascending};
use crate::criterion::Criterion;
use crate::criterion::mistakes::{
    CenterColumns, Coordinate, Mistakes, MistakesNode, in_order, snap, snap_margin,
};
use crate::error::{Error, Result};
use crate::grow::{Grown, narrow};
use crate::parallel::Monitor;
use crate::search::{BestCut, OwnGroups, best_cut};
use crate::threshold;
use crate::tree::Test;

/// Features one thread looks at in one go, at least.
const AT_A_TIME: usize = 4;

/// The clusters' means in every feature.
#[derive(Debug)]
pub struct FeatureCenters {
    k: usize,
    /// By feature, then cluster.
    coordinates: Vec<f64>,
    half_range: Vec<f64>,
}

impl FeatureCenters {
    /// Means of the clusters' rows, snapped to values of the features where only rounding keeps them apart.
    ///
    /// # Errors
    /// [`Error::Value`] if two clusters have the same center in every feature; [`Error::Interrupted`].
    pub fn new(
        surrogate: &Surrogate,
        labels: &[u32],
        k: usize,
        weights: Option<&[f64]>,
        monitor: &Monitor,
    ) -> Result<Self> {
        let mut weight = vec![0.0; k];
        for (row, &label) in labels.iter().enumerate() {
            weight[label as usize] += weights.map_or(1.0, |w| w[row]);
        }
        let all: Vec<Vec<u32>> =
            surrogate.columns().iter().map(|c| (0..c.values.len() as u32).collect()).collect();
        let of_feature = |phi: &mut Vec<f64>, feature: usize| -> Result<(Vec<f64>, f64)> {
            monitor.check()?;
            let column = surrogate.place(feature).0;
            surrogate.evaluate(feature, &all[column], phi);
            let rank = &surrogate.columns()[column].rank;
            let mut sums = vec![0.0; k];
            let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); k];
            for (row, (&rank, &label)) in rank.iter().zip(labels).enumerate() {
                let x = phi[rank as usize];
                sums[label as usize] += weights.map_or(x, |w| w[row] * x);
                let (low, high) = &mut ends[label as usize];
                (*low, *high) = (low.min(x), high.max(x));
            }
            let mut distinct = Vec::with_capacity(phi.len());
            ascending(phi, |x, _| distinct.push(x));
            let mut centers = vec![Coordinate::exact(0.0); k];
            let (mut margins, mut near) = (vec![0.0; k], vec![vec![]; k]);
            for c in 0..k {
                let (low, high) = ends[c];
                // A mean lies among its rows; rounding may push it out.
                let mean = (sums[c] / weight[c]).max(low).min(high);
                centers[c] = Coordinate::exact(mean);
                margins[c] = snap_margin(low, high, &centers[c]);
                let above = distinct.partition_point(|&x| x < mean);
                if distinct.get(above) != Some(&mean) {
                    near[c] =
                        distinct[above.saturating_sub(1)..distinct.len().min(above + 1)].to_vec();
                }
            }
            snap(&mut centers, &margins, &near);
            let centers = centers.iter().map(Coordinate::nearest).collect();
            let (low, high) = (distinct.first(), distinct.last());
            Ok((centers, low.zip(high).map_or(0.0, |(low, high)| high / 2.0 - low / 2.0)))
        };
        let found: Vec<(Vec<f64>, f64)> = (0..surrogate.len())
            .into_par_iter()
            .with_min_len(AT_A_TIME)
            .map_init(Vec::new, of_feature)
            .collect::<Result<_>>()?;
        let (coordinates, half_range): (Vec<Vec<f64>>, Vec<f64>) = found.into_iter().unzip();
        let coordinates = coordinates.concat();
        let centers = FeatureCenters { k, coordinates, half_range };
        centers.check_distinct()?;
        Ok(centers)
    }

    fn of(&self, feature: usize) -> &[f64] {
        &self.coordinates[feature * self.k..][..self.k]
    }

    fn check_distinct(&self) -> Result<()> {
        let equal =
            |a: usize, b: usize| (0..self.half_range.len()).all(|f| self.of(f)[a] == self.of(f)[b]);
        match (0..self.k).flat_map(|b| (0..b).map(move |a| (a, b))).find(|&(a, b)| equal(a, b)) {
            None => Ok(()),
            Some((a, b)) => Err(Error::Value(format!(
                "The surrogate features cannot tell the clusters number {a} and {b} (counting from 0) apart: their \
                 centers are equal. Use other features, a higher order or more anchors, or grow without Kernel IMM \
                 (base_tree=None)."
            ))),
        }
    }
}

impl CenterColumns for FeatureCenters {
    fn sorted(&self, feature: usize) -> Cow<'_, [(Coordinate, u32)]> {
        Cow::Owned(in_order(self.of(feature).iter().map(|&x| Coordinate::exact(x))))
    }

    fn half_range(&self, feature: usize) -> f64 {
        self.half_range[feature]
    }
}

/// One column at one node.
struct NodeColumn {
    /// The distinct values of all the node's rows, by rank.
    ranks: Vec<u32>,
    /// Searched rows of each.
    count: Vec<u32>,
    /// Their weight by cluster.
    sums: Vec<f64>,
    /// The searched rows as cluster and weight, in the order of their values, and where those of each value begin.
    rows: Vec<(u32, f64)>,
    first: Vec<usize>,
    /// For features that are steps: counts and sums of all values before each.
    before: Option<(Vec<u32>, Vec<f64>)>,
}

/// What one thread needs for a feature.
#[derive(Default)]
struct Scratch {
    phi: Vec<f64>,
    /// Alive centers, ascending.
    centers: Vec<(f64, usize)>,
    passed: Vec<f64>,
    is_left: Vec<bool>,
}

/// Kernel IMM on the features of a table.
pub struct Base<'a> {
    surrogate: &'a Surrogate,
    mistakes: Mistakes<'a, FeatureCenters>,
    labels: &'a [u32],
    weights: Option<&'a [f64]>,
    k: usize,
    features: Vec<usize>,
}

impl<'a> Base<'a> {
    /// `labels`: a cluster in `[0, k)` per row.
    ///
    /// # Errors
    /// As [`FeatureCenters::new`].
    pub fn new(
        surrogate: &'a Surrogate,
        labels: &'a [u32],
        k: usize,
        weights: Option<&'a [f64]>,
        monitor: &Monitor,
    ) -> Result<Self> {
        let centers = FeatureCenters::new(surrogate, labels, k, weights, monitor)?;
        // Features that are constant, underflowing ones among them, have no cuts.
        let features = (0..surrogate.len()).filter(|&f| centers.half_range[f] > 0.0).collect();
        let mistakes = Mistakes::new(labels, k, centers, weights)?;
        Ok(Base { surrogate, mistakes, labels, weights, k, features })
    }

    /// By input column, the features that are the same for all rows although the column is not: they have underflowed, or
    /// are constant by their definition.
    pub fn skipped(&self) -> Vec<usize> {
        let columns = self.surrogate.columns();
        let mut skipped = vec![0; columns.len()];
        for feature in 0..self.surrogate.len() {
            let column = self.surrogate.place(feature).0;
            let is_constant = self.mistakes.columns().half_range(feature) == 0.0;
            skipped[column] += usize::from(is_constant && columns[column].values.len() > 1);
        }
        skipped
    }

    /// Splits the only leaf of `grown` until every leaf has one center; returns the centers alive at each node.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop; [`Error::Internal`] if a node has no cut.
    pub fn grow(&self, grown: &mut Grown<'_>, monitor: &Monitor) -> Result<Vec<Vec<bool>>> {
        let mut alive = vec![vec![true; self.k]];
        let mut n_leaves = 1;
        let mut id = 0;
        while id < grown.nodes.len() {
            if alive[id].iter().filter(|&&a| a).count() > 1 {
                let columns = self.node_columns(grown, id, monitor)?;
                let best = self.search(grown, id, &alive[id], &columns, monitor)?;
                let (left, right) = self.mistakes.split_centers(&alive[id], best.feature, best.cut);
                let column = self.surrogate.place(best.feature).0;
                let (test, inside_is_left) = self.translate(grown, id, &best, &columns[column]);
                let cells = &self.surrogate.columns()[column];
                let goes_left =
                    |row: u32| goes_left(&test, cells.values[cells.rank[row as usize] as usize]);
                grown.split_by(
                    id,
                    test.clone(),
                    best.score,
                    |rows, sides| sides.extend(rows.iter().map(|&row| goes_left(row))),
                    |row, is_left| left[self.mistakes.label(row)] == (is_left != inside_is_left),
                );
                alive.extend(if inside_is_left { [right, left] } else { [left, right] });
                n_leaves += 1;
                monitor.report(n_leaves, best.score);
            }
            id += 1;
        }
        Ok(alive)
    }

    fn node_columns(
        &self,
        grown: &Grown<'_>,
        id: usize,
        monitor: &Monitor,
    ) -> Result<Vec<NodeColumn>> {
        let segment = grown.nodes[id].segment;
        let (active, dropped) = (grown.partition.active(segment), grown.partition.dropped(segment));
        let of_column = |column: &SurrogateColumn| {
            monitor.check()?;
            let rank_of = |&row: &u32| column.rank[row as usize];
            let mut rows: Vec<(u32, u32)> = active.iter().map(|row| (rank_of(row), *row)).collect();
            rows.extend(dropped.iter().map(|row| (rank_of(row), u32::MAX)));
            rows.sort_unstable();
            let (mut ranks, mut count, mut sums) = (vec![], vec![], vec![]);
            let (mut searched_rows, mut first) = (Vec::with_capacity(active.len()), vec![0]);
            for equal in rows.chunk_by(|a, b| a.0 == b.0) {
                ranks.push(equal[0].0);
                let start = sums.len();
                sums.resize(start + self.k, 0.0);
                let searched = equal.iter().filter(|(_, row)| *row != u32::MAX);
                count.push(searched.clone().count() as u32);
                for &(_, row) in searched {
                    let weight = self.weights.map_or(1.0, |w| w[row as usize]);
                    let label = self.labels[row as usize];
                    sums[start + label as usize] += weight;
                    searched_rows.push((label, weight));
                }
                first.push(searched_rows.len());
            }
            let before = self.surrogate.has_steps().then(|| running(&count, &sums, self.k));
            Ok(NodeColumn { ranks, count, sums, rows: searched_rows, first, before })
        };
        self.surrogate.columns().par_iter().with_max_len(1).map(of_column).collect()
    }

    fn search(
        &self,
        grown: &Grown<'_>,
        id: usize,
        alive: &[bool],
        columns: &[NodeColumn],
        monitor: &Monitor,
    ) -> Result<BestCut> {
        let rows = grown.partition.active(grown.nodes[id].segment);
        let node = self.mistakes.node(rows, alive.to_vec());
        let scores: Vec<f64> = self
            .features
            .par_iter()
            .with_min_len(AT_A_TIME)
            .map_init(Scratch::default, |scratch, &feature| {
                monitor.check()?;
                Ok(match self.surrogate.step(feature) {
                    Some(_) => {
                        let groups = self.groups(feature, columns);
                        self.mistakes.best_score(&node, feature, groups.view())
                    }
                    None => -self.least_mistakes(&node, feature, columns, scratch),
                })
            })
            .collect::<Result<_>>()?;
        // Only features that may be tied for the best are looked at by the tie rule.
        let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = best - 2.0 * self.mistakes.scale(&node).margin;
        let tied: Vec<usize> =
            self.features.iter().zip(&scores).filter(|s| *s.1 >= least).map(|s| *s.0).collect();
        let groups = |i: usize| Cow::Owned(self.groups(tied[i], columns));
        best_cut(&self.mistakes, &node, &tied, AT_A_TIME, monitor, groups)?
            .ok_or_else(|| Error::Internal(format!("node {id} cannot be split.")))
    }

    /// The fewest mistakes of a cut of a feature, infinity if there is none: what [`Mistakes`] finds on the feature's
    /// groups, without making them.
    fn least_mistakes(
        &self,
        node: &MistakesNode,
        feature: usize,
        columns: &[NodeColumn],
        scratch: &mut Scratch,
    ) -> f64 {
        let column = &columns[self.surrogate.place(feature).0];
        let Scratch { phi, centers, passed, is_left } = scratch;
        self.surrogate.evaluate(feature, &column.ranks, phi);
        centers.clear();
        let coordinates = self.mistakes.columns().of(feature);
        centers.extend((0..self.k).filter(|&c| node.alive[c]).map(|c| (coordinates[c], c)));
        centers.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        passed.clear();
        passed.resize(self.k, 0.0);
        is_left.clear();
        is_left.resize(self.k, false);
        let (mut n_left, mut mistakes, mut least) = (0, 0.0, f64::INFINITY);
        let mut below = f64::NEG_INFINITY;
        let mut visit = |x: f64, places: [Range<usize>; 2]| {
            // Up to x: a cut before each center that lies there, and one before x itself.
            loop {
                let center = centers.get(n_left).filter(|center| center.0 < x);
                let above = center.map_or(x, |center| center.0);
                if 0 < n_left && n_left < centers.len() && below < above {
                    least = f64::min(least, mistakes);
                }
                let Some(&(coordinate, cluster)) = center else { break };
                is_left[cluster] = true;
                mistakes += (node.totals[cluster] - passed[cluster]) - passed[cluster];
                n_left += 1;
                below = coordinate;
            }
            for place in places {
                for &(label, weight) in
                    &column.rows[column.first[place.start]..column.first[place.end]]
                {
                    passed[label as usize] += weight;
                    mistakes += if is_left[label as usize] { -weight } else { weight };
                }
            }
            while let Some(&(_, cluster)) = centers.get(n_left).filter(|center| center.0 <= x) {
                is_left[cluster] = true;
                mistakes += (node.totals[cluster] - passed[cluster]) - passed[cluster];
                n_left += 1;
            }
            below = x;
        };
        ascending(phi, |x, places| {
            let has_rows = |p: &Range<usize>| column.first[p.start] < column.first[p.end];
            if places.iter().any(has_rows) {
                visit(x, places);
            }
        });
        visit(f64::INFINITY, [0..0, 0..0]);
        least
    }

    /// The node's searched rows along a feature.
    fn groups(&self, feature: usize, columns: &[NodeColumn]) -> OwnGroups {
        let column = &columns[self.surrogate.place(feature).0];
        let k = self.k;
        let mut groups = OwnGroups::default();
        if let (Some((start, height)), Some((count, sums))) =
            (self.surrogate.step(feature), &column.before)
        {
            let passed = column.ranks.partition_point(|&rank| rank < start);
            let n = column.ranks.len();
            let below = &sums[passed * k..][..k];
            let above: Vec<f64> = sums[n * k..].iter().zip(below).map(|(a, b)| a - b).collect();
            groups.push(count[passed], 0.0, 0.0, below);
            groups.push(count[n] - count[passed], height, height, &above);
            return groups;
        }
        let mut phi = Vec::new();
        self.surrogate.evaluate(feature, &column.ranks, &mut phi);
        groups.reserve(phi.len(), k);
        ascending(&phi, |x, places| {
            let [front, back] = places;
            let mut places = front.chain(back);
            let first = places.next().unwrap_or(0);
            groups.push(column.count[first], x, x, &column.sums[first * k..][..k]);
            for place in places {
                groups.add_to_last(column.count[place], &column.sums[place * k..][..k]);
            }
        });
        groups
    }

    /// The cut as a test of the input column, and whether the rows above it (inside of the interval) go left.
    fn translate(
        &self,
        grown: &Grown<'_>,
        id: usize,
        best: &BestCut,
        at_node: &NodeColumn,
    ) -> (Test, bool) {
        let (feature, _) = self.surrogate.place(best.feature);
        let column = &self.surrogate.columns()[feature];
        let mut phi = Vec::new();
        self.surrogate.evaluate(best.feature, &at_node.ranks, &mut phi);
        let of_rank = |rank: u32| phi[at_node.ranks.partition_point(|&r| r < rank)];
        let dropped: Vec<f64> = grown
            .partition
            .dropped(grown.nodes[id].segment)
            .iter()
            .map(|&row| of_rank(column.rank[row as usize]))
            .collect();
        let range = 2.0 * self.mistakes.columns().half_range(best.feature);
        let gap = narrow(best.cut, &dropped, range).upper;
        let theta = threshold::between(gap.below, gap.above);
        // The run of values above the cut: at the node, and in the whole column.
        let at_node_inside = run_above(&phi, theta);
        let all: Vec<u32> = (0..column.values.len() as u32).collect();
        self.surrogate.evaluate(best.feature, &all, &mut phi);
        let inside = run_above(&phi, theta);
        let value = |rank: u32| column.values[rank as usize];
        let ranks = &at_node.ranks;
        let (low, high, lower, upper) = if at_node_inside.is_empty() {
            let split = ranks.partition_point(|&rank| (rank as usize) < inside.start);
            let (low, high) = (inside.start as u32, inside.end as u32 - 1);
            (low, high, split.checked_sub(1).map(|i| ranks[i]), ranks.get(split).copied())
        } else {
            let Range { start, end } = at_node_inside;
            let lower = start.checked_sub(1).map(|i| ranks[i]);
            (ranks[start], ranks[end - 1], lower, ranks.get(end).copied())
        };
        // No row of the node is outside: an end is closed all the same, by values of other rows.
        let (lower, upper) = match (lower, upper) {
            (None, None) if inside.end < column.values.len() => (None, Some(inside.end as u32)),
            (None, None) => (inside.start.checked_sub(1).map(|rank| rank as u32), None),
            ends => ends,
        };
        match (lower, upper) {
            (None, None) => (Test::Threshold { feature, threshold: value(high) }, true),
            (None, Some(after)) => {
                let threshold = threshold::between(value(high), value(after));
                (Test::Threshold { feature, threshold }, true)
            }
            (Some(before), None) => {
                let threshold = threshold::between(value(before), value(low));
                (Test::Threshold { feature, threshold }, false)
            }
            (Some(before), Some(after)) => {
                let lower = threshold::lower_end(value(before), value(low));
                let upper = threshold::between(value(high), value(after));
                (Test::Interval { feature, lower, upper }, true)
            }
        }
    }
}

/// Sums of all entries before each, and of all.
fn running(count: &[u32], sums: &[f64], k: usize) -> (Vec<u32>, Vec<f64>) {
    let (mut counts, mut totals) = (vec![0], vec![0.0; k]);
    for (i, &count) in count.iter().enumerate() {
        counts.push(counts[i] + count);
        for c in 0..k {
            totals.push(totals[i * k + c] + sums[i * k + c]);
        }
    }
    (counts, totals)
}

/// The places of the numbers above `theta`, which follow each other.
fn run_above(phi: &[f64], theta: f64) -> Range<usize> {
    let start = phi.iter().position(|&x| x > theta).unwrap_or(phi.len());
    let length = phi[start..].iter().take_while(|&&x| x > theta).count();
    start..start + length
}

fn goes_left(test: &Test, x: f64) -> bool {
    match *test {
        Test::Leaf | Test::Oblique { .. } => true, // no test of ours
        Test::Threshold { threshold, .. } => x <= threshold,
        Test::Interval { lower, upper, .. } => lower <= x && x <= upper,
    }
}
