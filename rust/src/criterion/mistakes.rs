//! Mistakes: rows that a cut separates from their center (IMM; Dasgupta, Frost, Moshkovitz and Rashtchian 2020,
//! *Explainable k-Means and k-Medians Clustering*, Algorithm 1).
//!
//! | paper | here |
//! |---|---|
//! | centers alive at the node | [`MistakesNode::alive`] |
//! | mistakes of a cut | `CenterCut::mistakes` |
//! | what makes a cut the best | [`CutScore`] |
//!
//! One sweep over the merged values of rows and centers counts the mistakes of every cut of a column: a row that
//! passes to the left flips its own state, a center that passes flips the state of all of its cluster. O(k) per group.
//! Several centers may lie in one gap between values, and then the gap is several cuts. Among tied cuts the widest
//! gap comes first: the second key of a cut is its width as a share of the column's range.
//!
//! **Bounds.** Of a cut inside a group, a cluster whose center lies left of the group makes mistakes of all its rows
//! right of the group, one whose center lies right of it of all rows left of it, and one whose center lies
//! inside of the fewer of the two.
//!
//! **Missing cells** lie on either side of a cut as a whole; those of clusters whose centers lie on the other are
//! mistakes. Cuts of levels are in `level_mistakes.rs`; the width of their gap is 1, that between no and all.

use std::borrow::Cow;

use super::centers::{CenterColumns, Coordinate};
use super::cut_score::CutScore;
use super::label_counts::OneHot;
use super::level_mistakes::{LevelCut, LevelShares, best_level_score, level_cuts};
use super::levels::Levels;
use super::{
    Candidate, CenterCut, Criterion, Cut, Gap, Groups, MissingRows, NodeScale, RowSums, range_of,
};
use crate::error::Result;
use crate::exact;

/// Ties: counts closer than this share of the total weight are equal.
const TIE: f64 = 1e-12;

/// The second key of cuts of levels: their gap is that between no and all.
const LEVEL_KEY: f64 = 1.0;

/// Mistakes with respect to given clusters and centers.
#[derive(Debug)]
pub struct Mistakes<'a, C> {
    rows: OneHot<'a>,
    columns: C,
    score: CutScore,
    total_weight: f64,
}

/// The alive centers and the weight of their clusters here.
#[derive(Debug, Clone, PartialEq)]
pub struct MistakesNode {
    /// Weight of the still-correct rows of each cluster.
    pub totals: Vec<f64>,
    /// Whether the cluster's center is in the node.
    pub alive: Vec<bool>,
}

impl<'a, C: CenterColumns> Mistakes<'a, C> {
    /// `rows`: the cluster and the weight of every row; `columns`: where the clusters' centers lie. O(n): adds up the
    /// weights.
    pub fn new(rows: OneHot<'a>, columns: C, score: CutScore) -> Self {
        Mistakes { rows, columns, score, total_weight: rows.total_weight() }
    }

    /// Mistakes of rows that are elsewhere: of `k` clusters, with the weight of all rows.
    ///
    /// # Errors
    /// None: there are no labels that could be out of range.
    pub(crate) fn of_weight(
        k: usize,
        total_weight: f64,
        columns: C,
        score: CutScore,
    ) -> Result<Self> {
        Ok(Mistakes { rows: OneHot::new(&[], k, Some(&[]))?, columns, score, total_weight })
    }

    /// Where the centers lie.
    pub fn columns(&self) -> &C {
        &self.columns
    }

    /// The cluster of a row.
    pub fn label(&self, row: u32) -> usize {
        self.rows.label(row)
    }

    /// The mistakes at a node whose best score is `best`, of which `cut` is taken. Tied cuts may differ in the last
    /// digits where weights are added in another order; the plain score then counts the fewest.
    pub fn count(&self, best: f64, cut: CenterCut) -> f64 {
        match self.score {
            CutScore::Mistakes if cut.of_levels.is_none() => -best,
            _ => cut.mistakes,
        }
    }

    /// The node of the still-correct `rows` whose centers are `alive`.
    pub fn node(&self, rows: &[u32], alive: Vec<bool>) -> MistakesNode {
        let sums = exact::sum_rows(rows, 1, self.rows.width(), |row, sums| {
            self.rows.add_exactly(row, sums, 0);
        });
        MistakesNode { totals: sums.all_rounded(), alive }
    }

    /// Upper bounds for cuts with an end inside a group, as [`Criterion::bounds`]. O(k) per group; minus infinity for a
    /// group without a cut inside: a single value, or one beyond all alive centers.
    fn inside_bounds(&self, node: &MistakesNode, groups: Groups<'_>, inside: &mut [f64]) {
        inside.fill(f64::NEG_INFINITY);
        let centers = self.columns.alive(&node.alive, groups.feature);
        let (Some(first), Some(last)) = (centers.first(), centers.last()) else { return };
        let (groups, missing) = groups.split_missing(self.rows.width());
        let totals = of_values(node, missing);
        let mut passed = vec![0.0; self.rows.width()];
        for group in groups.filled() {
            let (low, high) = (groups.low[group], groups.high[group]);
            let row = groups.row(group, self.rows.width());
            if low < high && first.0.is_below(high) && last.0.is_above(low) {
                let (mut least, mut n_below, mut n_above) = (0.0, 0, 0);
                let mut missing_of = [0.0; 2]; // of clusters below and above
                let is_missing = |cluster: usize| missing.map_or(0.0, |rows| rows.sums[cluster]);
                for &(x, cluster) in &centers {
                    let left = passed[cluster];
                    let right = totals[cluster] - left - row[cluster];
                    least += if x.is_below(low) {
                        n_below += 1;
                        missing_of[0] += is_missing(cluster);
                        right
                    } else if x.is_above(high) {
                        n_above += 1;
                        missing_of[1] += is_missing(cluster);
                        left
                    } else {
                        f64::min(left, right)
                    };
                }
                let n_left = n_below..=centers.len() - n_above;
                least += f64::min(missing_of[0], missing_of[1]);
                inside[group] = self.score.bound(least, n_left, centers.len());
            }
            for (passed, weight) in passed.iter_mut().zip(row) {
                *passed += weight;
            }
        }
    }
}

/// The node's weight by cluster without the missing rows of a column.
fn of_values<'n>(node: &'n MistakesNode, missing: Option<MissingRows<'_>>) -> Cow<'n, [f64]> {
    match missing {
        None => Cow::Borrowed(&node.totals),
        Some(rows) => {
            let pairs = node.totals.iter().zip(rows.sums);
            Cow::Owned(pairs.map(|(total, missing)| (total - missing).max(0.0)).collect())
        }
    }
}

/// The centers on the left of a cut that moves up a column, and the mistakes.
struct Sides<'m> {
    is_left: Vec<bool>,
    n_left: usize,
    /// Of the rows that are not missing.
    mistakes: f64,
    missing: Option<MissingRows<'m>>,
    /// Weight of the missing rows whose center is on the left, and on the right.
    of_centers: [f64; 2],
}

impl<'m> Sides<'m> {
    /// All centers on the right.
    fn new(k: usize, missing: Option<MissingRows<'m>>) -> Self {
        let on_right = missing.map_or(0.0, |rows| rows.sums.iter().sum());
        let of_centers = [0.0, on_right];
        Sides { is_left: vec![false; k], n_left: 0, mistakes: 0.0, missing, of_centers }
    }

    /// Moves a center to the left. `total`: the weight of its rows; `passed`: of those on the left.
    fn pass(&mut self, cluster: usize, total: f64, passed: f64) {
        self.is_left[cluster] = true;
        self.mistakes += (total - passed) - passed;
        self.n_left += 1;
        if let Some(rows) = self.missing {
            self.of_centers[0] += rows.sums[cluster];
            self.of_centers[1] -= rows.sums[cluster];
        }
    }

    /// The mistakes of the cut before `next`, the last one if none, from exact sums; none if they are not known.
    fn count_exactly(
        &self,
        groups: Groups<'_>,
        next: Option<usize>,
        missing_left: Option<bool>,
    ) -> Option<f64> {
        let (exact, k) = (groups.exact?, self.is_left.len());
        let (n, missing) = (groups.len(), range_of(self.missing));
        let next = next.unwrap_or(n);
        let (mut ends, mut starts) = (vec![], vec![]);
        for (cluster, &is_left) in self.is_left.iter().enumerate() {
            let wrong = if is_left { next..n } else { 0..next };
            ends.push(wrong.end * k + cluster);
            starts.push(wrong.start * k + cluster);
            if missing_left.is_some_and(|missing_left| missing_left != is_left) {
                ends.push(missing.end * k + cluster);
                starts.push(missing.start * k + cluster);
            }
        }
        Some(exact.combined(&ends, &starts))
    }

    /// The directions of missing rows and the mistakes with each; none if there are no missing rows. Missing rows that
    /// go right are mistakes of the centers on the left.
    fn of_missing(&self) -> impl Iterator<Item = (Option<bool>, f64)> + use<> {
        let (mistakes, [on_left, on_right]) = (self.mistakes, self.of_centers);
        let directions = match self.missing {
            None => [Some((None, mistakes)), None],
            Some(_) => {
                [Some((Some(false), mistakes + on_left)), Some((Some(true), mistakes + on_right))]
            }
        };
        directions.into_iter().flatten()
    }
}

impl<'a, C: CenterColumns> Mistakes<'a, C> {
    /// The levels of a column, the alive centers and their shares; none for a column of numbers.
    fn levels<'g>(
        &self,
        node: &MistakesNode,
        groups: Groups<'g>,
    ) -> Option<(Levels<'g>, Vec<usize>, &LevelShares)> {
        let shares = self.columns.level_shares(groups.feature)?;
        let alive = (0..node.alive.len()).filter(|&c| node.alive[c]).collect();
        Some((Levels::new(groups, self.rows.width(), 1, 0.0), alive, shares))
    }

    /// [`Criterion::sweep`] of a column of levels.
    fn sweep_levels(
        &self,
        node: &MistakesNode,
        groups: Groups<'_>,
        mut visit: impl FnMut(Candidate),
    ) {
        let Some((levels, alive, shares)) = self.levels(node, groups) else { return };
        let has_missing = groups.split_missing(self.rows.width()).1.is_some();
        let margin = TIE * self.total_weight;
        let score = |mistakes: f64, n_left: usize| self.score.score(mistakes, n_left, alive.len());
        for found in level_cuts(&levels, &alive, shares, margin, score) {
            let LevelCut { n_left, mistakes, .. } = found;
            // No other cut makes as many mistakes.
            let more = if found.divides_rows { 0.0 } else { 2.0 * self.total_weight };
            let centers = Some(CenterCut { n_left, of_levels: Some(found.centers), mistakes });
            visit(Candidate {
                score: score(mistakes, n_left) - more,
                key: LEVEL_KEY,
                cut: Cut { centers, ..Cut::of_levels(found.levels, has_missing) },
                beside: [None; 4],
            });
        }
    }
}

impl<'a, C: CenterColumns> Criterion for Mistakes<'a, C> {
    type Rows = OneHot<'a>;
    type Node = MistakesNode;

    fn rows(&self) -> &OneHot<'a> {
        &self.rows
    }

    fn totals<'b>(&self, node: &'b MistakesNode) -> &'b [f64] {
        &node.totals
    }

    fn may_subtract(&self, _: &MistakesNode, _: &[f64]) -> bool {
        // Counts are exact, and rounding of weights is far below the margin, a share of the total weight.
        true
    }

    fn scale(&self, _: &MistakesNode) -> NodeScale {
        let margin = TIE * self.total_weight;
        // Of weights, which mostly add up to a few digits.
        let own_slack = if self.rows.is_exact() { 0.0 } else { margin / 4.0 };
        let (floor, cost) = (f64::NEG_INFINITY, self.total_weight);
        NodeScale { margin, slack: margin, own_slack, floor, cost }
    }

    fn bounds(&self, node: &MistakesNode, groups: Groups<'_>, inside: &mut [f64]) -> f64 {
        self.inside_bounds(node, groups, inside);
        self.best_score(node, groups)
    }

    fn known_best(&self, node: &MistakesNode, groups: Groups<'_>) -> Option<(f64, f64)> {
        let (levels, alive, shares) = self.levels(node, groups)?;
        let score = |mistakes, n_left| self.score.score(mistakes, n_left, alive.len());
        Some((best_level_score(&levels, &alive, shares, score)?, LEVEL_KEY))
    }

    /// Cuts have an alive center on either side.
    fn sweep(&self, node: &MistakesNode, groups: Groups<'_>, mut visit: impl FnMut(Candidate)) {
        if groups.form.is_levels {
            return self.sweep_levels(node, groups, visit);
        }
        let k = self.rows.width();
        let (groups, missing) = groups.split_missing(k);
        let totals = of_values(node, missing);
        let centers = self.columns.alive(&node.alive, groups.feature);
        let n_centers = centers.len();
        // Everything starts on the right: no mistakes.
        let mut passed = vec![0.0; k];
        let mut sides = Sides::new(k, missing);
        let mut last = f64::NEG_INFINITY; // the largest value of the rows passed
        let mut before = None;
        for group in groups.filled().map(Some).chain(std::iter::once(None)) {
            let (low, high) =
                group.map_or((f64::INFINITY, f64::INFINITY), |g| (groups.low[g], groups.high[g]));
            // Cuts in the gap (last, low): between its ends and the centers in it. A center whose nearest double is one
            // of the ends is moved inside, so that the cut separates the rows as the sums say.
            let (mut below, mut exact_below) = (last, Coordinate::exact(last));
            loop {
                let n_left = sides.n_left;
                let center = centers.get(n_left).filter(|(x, _)| x.is_below(low));
                let exact_above = center.map_or(Coordinate::exact(low), |&(x, _)| x);
                let apart = exact_below.cmp(&exact_above).is_lt();
                let least =
                    if apart && below > f64::NEG_INFINITY { below.next_up() } else { below };
                let above = exact_above.nearest().max(least).min(low);
                let separates = 0 < n_left && n_left < n_centers;
                if separates && apart {
                    let key =
                        self.columns.share_of_range(groups.feature, &exact_below, &exact_above);
                    for (missing_left, mistakes) in sides.of_missing() {
                        let mistakes =
                            sides.count_exactly(groups, group, missing_left).unwrap_or(mistakes);
                        let centers = Some(CenterCut { n_left, of_levels: None, mistakes });
                        visit(Candidate {
                            score: self.score.score(mistakes, n_left, n_centers),
                            key,
                            cut: Cut {
                                centers,
                                ..Cut::range(None, Gap { below, above }, missing_left)
                            },
                            beside: [before, group, None, None],
                        });
                    }
                }
                let Some(&(x, cluster)) = center else { break };
                sides.pass(cluster, totals[cluster], passed[cluster]);
                (below, exact_below) = (above.min(low.next_down()), x);
            }
            let Some(group) = group else { break };
            for (cluster, &weight) in groups.row(group, k).iter().enumerate() {
                passed[cluster] += weight;
                sides.mistakes += if sides.is_left[cluster] { -weight } else { weight };
            }
            // Centers within the group pass with it.
            while let Some(&(_, cluster)) =
                centers.get(sides.n_left).filter(|(x, _)| !x.is_above(high))
            {
                sides.pass(cluster, totals[cluster], passed[cluster]);
            }
            last = high;
            before = Some(group);
        }
    }

    fn inside_key(&self, feature: usize, low: f64, high: f64) -> f64 {
        self.columns.share_of_range(feature, &Coordinate::exact(low), &Coordinate::exact(high))
    }

    /// Centers may lie apart where the rows that are still correct do not.
    fn cuts_equal_cells(&self, node: &MistakesNode, feature: usize) -> bool {
        self.columns.outermost(&node.alive, feature).is_some()
    }

    /// Where the zeros lie left of a cut, the largest center lies right of it, and the zeros of its cluster are
    /// mistakes; where they lie right of it, those of the smallest one.
    fn most_beside_zeros(&self, node: &MistakesNode, feature: usize, zeros: &[f64]) -> f64 {
        let Some([first, last]) = self.columns.outermost(&node.alive, feature) else {
            return f64::NEG_INFINITY;
        };
        let zeros_of = |(_, cluster): (Coordinate, u32)| zeros[cluster as usize];
        // Cuts lie at or above the first center, and below the last one.
        let least = if !first.0.is_below(0.0) {
            zeros_of(last)
        } else if !last.0.is_above(0.0) {
            zeros_of(first)
        } else {
            f64::min(zeros_of(first), zeros_of(last))
        };
        let n_alive = node.alive.iter().filter(|&&alive| alive).count();
        self.score.bound(least, 1..=n_alive - 1, n_alive)
    }

    fn prepare(&self, feature: usize) {
        self.columns.prepare(feature);
    }
}
