//! Kernel IMM: iterative mistake minimisation on surrogate features, every cut an interval of an input column.
//!
//! Fleissner, Vankadara, Ghoshdastidar (2024), Explaining kernel clustering via decision trees, algorithm 1. The
//! clusters' means in feature space are separated one by one. Each node takes the cut phi_{i,j}(x) <= theta of fewest
//! mistakes, rows that it separates from their own center; these rows go down the tree but are not searched again.
//!
//! | paper | here |
//! |---|---|
//! | phi_{i,j}: feature j of column i | a number, see [`Surrogate::place`] |
//! | means of the clusters in feature space | [`FeatureCenters`] |
//! | cut of fewest mistakes | `search`, with the tie rule of [`Mistakes`] |
//! | the interval of a cut | `translate` |
//!
//! Cost of a node: O(n log n) per column and O(n) per feature. Features are evaluated on the distinct values of their
//! column and never held for all rows.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::centers::FeatureCenters;
use super::features::{Surrogate, ascending};
use super::node_columns::NodeColumn;
use super::translate::goes_left;
use crate::criterion::centers::CenterColumns;
use crate::criterion::cut_score::CutScore;
use crate::criterion::label_counts::OneHot;
use crate::criterion::mistakes::{Mistakes, MistakesNode};
use crate::criterion::{Criterion, OwnGroups};
use crate::error::{Error, Result};
use crate::grow::GrowingTree;
use crate::imm::BaseNodes;
use crate::parallel::Monitor;
use crate::search::{BestCut, best_cut};

/// Fewest features of a task.
pub(super) const MIN_FEATURES_PER_TASK: usize = 4;

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    phi: Vec<f64>,
    /// Alive centers, ascending: coordinate and cluster.
    centers: Vec<(f64, usize)>,
    /// By cluster: weight of the rows below, whether the center is below.
    passed: Vec<f64>,
    is_left: Vec<bool>,
}

/// Kernel IMM on the features of a table.
pub struct KernelImm<'a> {
    /// The features of the table.
    pub(super) surrogate: &'a Surrogate,
    /// Counts mistakes about the centers in feature space.
    pub(super) mistakes: Mistakes<'a, FeatureCenters>,
    /// Reference cluster of each row, of shape (n).
    pub(super) labels: &'a [u32],
    /// Of shape (n), positive; none: all 1.
    pub(super) weights: Option<&'a [f64]>,
    /// Number of reference clusters.
    pub(super) k: usize,
    /// Features that vary.
    features: Vec<usize>,
}

impl<'a> KernelImm<'a> {
    /// Computes the centers. `labels`: of shape (n), each in `[0, k)`; `weights`: of shape (n), positive; none: all 1.
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
        let features = (0..surrogate.len()).filter(|&f| centers.half_range(f) > 0.0).collect();
        let mistakes = Mistakes::new(OneHot::new(labels, k, weights)?, centers, CutScore::Mistakes);
        Ok(KernelImm { surrogate, mistakes, labels, weights, k, features })
    }

    /// Returns for each input column the number of features that are constant although the column is not: they have
    /// underflowed, or are constant by their definition.
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

    /// Splits the only leaf of `grown` until every leaf has one center; returns the nodes.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was stopped; [`Error::Internal`] if a node has no cut.
    pub fn grow(&self, grown: &mut GrowingTree<'_>, monitor: &Monitor) -> Result<BaseNodes> {
        let mut base = BaseNodes::new(self.k);
        let mut n_leaves = 1;
        let mut id = 0;
        while id < grown.nodes.len() {
            if !base.is_leaf(id) {
                let alive = &base.alive[id];
                let columns = self.node_columns(grown, id, monitor)?;
                let best = self.search(grown, id, alive, &columns, monitor)?;
                let Some(cut) = best.cut.centers else {
                    return Err(Error::Internal(format!("node {id} has no center to cut off.")));
                };
                let (left, right) = self.mistakes.columns().split(alive, best.feature, cut);
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
                let sides = if inside_is_left { [right, left] } else { [left, right] };
                base.split(id, sides, self.mistakes.count(best.score, cut));
                n_leaves += 1;
                monitor.report(n_leaves, best.score);
            }
            id += 1;
        }
        Ok(base)
    }

    /// Returns the cut of fewest mistakes of a node, ties decided by [`Mistakes`].
    fn search(
        &self,
        grown: &GrowingTree<'_>,
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
            .with_min_len(MIN_FEATURES_PER_TASK)
            .map_init(Scratch::default, |scratch, &feature| {
                monitor.check()?;
                Ok(match self.surrogate.step(feature) {
                    Some(_) => {
                        let groups = self.groups(feature, columns);
                        self.mistakes.best_score(&node, groups.view(feature))
                    }
                    None => -self.least_mistakes(&node, feature, columns, scratch),
                })
            })
            .collect::<Result<_>>()?;
        // Only features that may be tied for the best go to the tie rule.
        let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = best - 2.0 * self.mistakes.scale(&node).margin;
        let tied: Vec<usize> =
            self.features.iter().zip(&scores).filter(|s| *s.1 >= least).map(|s| *s.0).collect();
        let groups = |i: usize| Cow::Owned(self.groups(tied[i], columns));
        best_cut(&self.mistakes, &node, &tied, MIN_FEATURES_PER_TASK, monitor, groups)?
            .ok_or_else(|| Error::Internal(format!("node {id} cannot be split.")))
    }

    /// Returns the fewest mistakes of a cut of a feature, infinity if it has no cut. Equal to the best score of
    /// [`Mistakes`] on the feature's groups, but allocates none.
    ///
    /// Sweeps the values of the feature upwards. Loop invariant: `mistakes` is the weight of the rows on the other
    /// side than their center, for a cut at the current place.
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
            // Up to x: a cut before each center in between, and one before x itself.
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

    /// Returns the searched rows of a node as groups of equal value of a feature, ascending, with their weight by
    /// cluster as sums. O(k v) for the v values of the column at the node; O(k) for a feature that is a step.
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
}
