//! What a cut is worth.
//!
//! The search adds up a short vector of numbers per row ([`RowSums`]) and groups a node's rows along a column
//! ([`Groups`]: bins, or single values). A [`Criterion`] reads the sums of these groups. It scores the cuts between
//! groups, and it bounds the scores of the cuts inside a group, so that the search opens only the groups that may
//! hide a better cut. Larger scores are better.
//!
//! | file | criterion |
//! |---|---|
//! | [`sums`] | the generic criterion of side costs: a cut is worth cost(node) - cost(left) - cost(right) |
//! | `levels` | the best sets of levels of a side cost |
//! | [`label_cost`] | side cost: the regret of the cheapest label (ExKMC) |
//! | [`intervals`] | the same for cuts of the form lower <= x <= upper |
//! | [`label_counts`], [`clique`] | side costs: Gini, entropy, and the clique score of SpEx on reference labels |
//! | [`mistakes`], [`cut_score`] | rows separated from their center (IMM), plain or per center (EMN) |
//! | `level_mistakes` | the same for levels |
//! | [`centers`] | where the centers lie along a column |
//!
//! **To add a criterion** whose cuts are scored by what the two sides add up to, implement [`sums::SideCost`]: one
//! method. Everything else is the generic [`sums::Additive`]. Other criteria implement [`Criterion`]: a sweep over the
//! cuts of a column and bounds.
//!
//! **Missing cells.** Where a node has rows with a missing cell, every cut of the column is scored with these rows on
//! its right and on its left, and missing cells against all others are the last cut of the sweep.

pub mod centers;
pub mod clique;
pub mod cut_score;
mod groups;
pub mod intervals;
pub mod label_cost;
pub mod label_counts;
mod level_mistakes;
mod levels;
pub mod mistakes;
mod scatter;
pub mod sums;

pub use groups::{ColumnForm, Groups, MissingRows};
pub(crate) use groups::{OwnGroups, range_of};
pub(crate) use level_mistakes::LevelShares;
pub use level_mistakes::{CenterGroup, CenterSide};
pub(crate) use levels::Levels;

use crate::exact::ExactRows;
use crate::table::MISSING_LEVEL;
use crate::tree::LevelSet;

/// A gap between two neighbouring values: `below < above`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// The largest value under the gap.
    pub below: f64,
    /// The smallest value over it.
    pub above: f64,
}

/// Which cells of a column go left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CutForm {
    /// Those with `lower.above <= x <= upper.below`.
    Range {
        /// The gap at the lower end; none: a threshold.
        lower: Option<Gap>,
        /// The gap at the upper end.
        upper: Gap,
    },
    /// The levels of the set.
    Levels(LevelSet),
    /// The missing ones.
    Missing,
}

/// A cut of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// Which cells go left.
    pub form: CutForm,
    /// Whether missing cells go left; none if no searched row of the node has one.
    pub missing_left: Option<bool>,
    /// For criteria with centers: what the cut does to them.
    pub centers: Option<CenterCut>,
}

/// How a cut separates the centers of a node and their rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CenterCut {
    /// How many of the node's centers, in the column's order, go left.
    pub n_left: usize,
    /// The side of the centers at a cut of levels, which have no such order.
    pub of_levels: Option<CenterSide>,
    /// Weight of the rows that go to the other side than their center.
    pub mistakes: f64,
}

impl Cut {
    /// The cut `x <= gap.below`.
    pub fn threshold(gap: Gap) -> Self {
        Cut::range(None, gap, None)
    }

    /// The cut `lower.above <= x <= upper.below`, or without a lower end.
    pub fn range(lower: Option<Gap>, upper: Gap, missing_left: Option<bool>) -> Self {
        Cut { form: CutForm::Range { lower, upper }, missing_left, centers: None }
    }

    /// The cut of missing cells against all others.
    pub fn missing() -> Self {
        Cut { form: CutForm::Missing, missing_left: Some(true), centers: None }
    }

    /// The cut of the levels of a set, in which [`MISSING_LEVEL`] stands for missing cells. `has_missing`: whether a
    /// searched row of the node has one.
    pub(crate) fn of_levels(set: LevelSet, has_missing: bool) -> Self {
        let left: LevelSet = set.codes().filter(|&code| code != MISSING_LEVEL).collect();
        if left.is_empty() {
            return Cut::missing();
        }
        let missing_left = has_missing.then(|| set.contains(MISSING_LEVEL));
        Cut { form: CutForm::Levels(left), missing_left, centers: None }
    }

    /// Whether a cell goes left. A missing one goes right where the cut does not say.
    #[inline]
    pub fn goes_left(&self, x: f64) -> bool {
        if x.is_nan() {
            return self.missing_left == Some(true);
        }
        match self.form {
            CutForm::Range { lower, upper } => {
                x <= upper.below && lower.is_none_or(|gap| x >= gap.above)
            }
            CutForm::Levels(left) => left.holds(x),
            CutForm::Missing => false,
        }
    }

    /// Whether all values between `low` and `high`, of one bin, go left; none if some do and some do not.
    pub fn side(&self, low: f64, high: f64) -> Option<bool> {
        let all_left = self.goes_left(low) && self.goes_left(high);
        let outside = match self.form {
            CutForm::Range { lower, upper } => {
                low.is_nan() || low > upper.below || lower.is_some_and(|gap| high < gap.above)
            }
            _ => true, // bins of levels are single values
        };
        (all_left || outside).then_some(all_left)
    }
}

/// A cut between groups, as [`Criterion::sweep`] visits it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// What the cut is worth.
    pub score: f64,
    /// Decides among cuts with tied scores: larger is better. 0 for criteria without a second key.
    pub key: f64,
    /// The cut.
    pub cut: Cut,
    /// The groups at the ends of its gaps.
    pub beside: [Option<usize>; 4],
}

/// The scale of a node's scores.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeScale {
    /// Cuts whose scores differ by at most this are tied.
    pub margin: f64,
    /// Scores from histogram sums may be off by this.
    pub slack: f64,
    /// Scores from sums of the node's own rows, added as doubles, may be off by this; the best cuts are compared on exact
    /// sums.
    pub own_slack: f64,
    /// Cuts that score at most this are not taken.
    pub floor: f64,
    /// What the node costs as a leaf. The sum over the leaves sets the margin between leaves; a node that costs
    /// nothing is not searched.
    pub cost: f64,
}

/// Rows and their bins along one column.
#[derive(Debug, Clone, Copy)]
pub struct BinnedRows<'a> {
    /// The rows, by number; a row may stand here more than once.
    pub rows: &'a [u32],
    /// The bin of every row of the table, so `codes[row]` is that of `row`.
    pub codes: &'a [u8],
    /// The bin whose rows are passed over, if any: its sums are computed as the rest.
    pub skip: Option<u8>,
}

impl<'a> BinnedRows<'a> {
    /// Pairs of row and bin, in the order of the rows, without those in the bin `skip`.
    #[inline(always)]
    pub fn bins(self) -> impl Iterator<Item = (u32, usize)> + use<'a> {
        // No code is as large as the number that stands for "no bin is skipped".
        let skip = self.skip.map_or(usize::MAX, usize::from);
        let bins = self.rows.iter().map(move |&row| (row, usize::from(self.codes[row as usize])));
        bins.filter(move |&(_, bin)| bin != skip)
    }
}

/// What a row adds up to: `width` numbers.
pub trait RowSums: Sync {
    /// How many numbers a row adds up to.
    fn width(&self) -> usize;

    /// Adds one row to `sums` (`width` numbers).
    fn add(&self, row: u32, sums: &mut [f64]);

    /// Adds one row to the exact sums of a group, to those of the first `width` columns.
    fn add_exactly(&self, row: u32, sums: &mut ExactRows, group: usize);

    /// Whether sums and differences of sums are exact, as those of counts are.
    fn is_exact(&self) -> bool {
        false
    }

    /// Adds the rows to the counts and the sums of their bins: `count` has one number per bin, `sums` has `width` per
    /// bin, bin after bin. O(rows x width): the innermost loop of every search.
    fn fill(&self, rows: BinnedRows<'_>, count: &mut [u32], sums: &mut [f64]) {
        fill_rows(rows, count, sums, self.width(), |row, sums| self.add(row, sums));
    }

    /// Completes counts and sums after the last [`RowSums::fill`] of a column: what is known once for all rows of a bin,
    /// as their number is where sums tell it, `fill` may leave to this method.
    fn settle(&self, count: &mut [u32], sums: &mut [f64]) {
        let _ = (count, sums);
    }
}

/// [`RowSums::fill`] for any width, row by row: `add(row, sums)` adds a row to the `width` sums of its bin.
fn fill_rows(
    rows: BinnedRows<'_>,
    count: &mut [u32],
    sums: &mut [f64],
    width: usize,
    add: impl Fn(u32, &mut [f64]),
) {
    for (row, bin) in rows.bins() {
        count[bin] += 1;
        add(row, &mut sums[bin * width..][..width]);
    }
}

/// A criterion of growth.
///
/// A criterion is defined by its [`Criterion::sweep`]. The methods with a body follow from the sweep; they are
/// overridden where a column has too many cuts to visit each (intervals).
pub trait Criterion: Sync {
    /// What a row adds up to.
    type Rows: RowSums;

    /// A node's totals, and whatever else judging its cuts takes.
    type Node: Send + Sync;

    /// What a row adds up to: the search sums it over bins and values.
    fn rows(&self) -> &Self::Rows;

    /// The sums over the node's searched rows: the right-hand side of "most frequent bin = total - rest".
    fn totals<'a>(&self, node: &'a Self::Node) -> &'a [f64];

    /// Whether sums of this node may be computed as `minuend` minus other sums without losing digits that count.
    fn may_subtract(&self, node: &Self::Node, minuend: &[f64]) -> bool;

    /// Margins of the node.
    fn scale(&self, node: &Self::Node) -> NodeScale;

    /// Writes, for every group, an upper bound on the score of the cuts with an end inside it (minus infinity if
    /// there are none), and returns the best score of the cuts between groups.
    fn bounds(&self, node: &Self::Node, groups: Groups<'_>, inside: &mut [f64]) -> f64;

    /// No cut of a column of levels scores more: a bound that takes far fewer steps than the best score. Infinity where
    /// none is known.
    fn most_of_levels(&self, node: &Self::Node, groups: Groups<'_>) -> f64 {
        let _ = (node, groups);
        f64::INFINITY
    }

    /// Calls `visit` for every allowed cut between groups, in the order of the tie rule: ascending lower end, then
    /// ascending upper end.
    fn sweep(&self, node: &Self::Node, groups: Groups<'_>, visit: impl FnMut(Candidate));

    /// The best score of the cuts between groups, up to rounding, and the second key of all of them, where that takes
    /// less than a sweep.
    fn known_best(&self, node: &Self::Node, groups: Groups<'_>) -> Option<(f64, f64)> {
        let _ = (node, groups);
        None
    }

    /// The best score of the cuts between groups; minus infinity if there are none.
    fn best_score(&self, node: &Self::Node, groups: Groups<'_>) -> f64 {
        if let Some((score, _)) = self.known_best(node, groups) {
            return score;
        }
        let mut best = f64::NEG_INFINITY;
        self.sweep(node, groups, |candidate| best = best.max(candidate.score));
        best
    }

    /// The largest second key of the cuts that score at least `floor`; minus infinity if there are none.
    fn best_key(&self, node: &Self::Node, groups: Groups<'_>, floor: f64) -> f64 {
        if let Some((score, key)) = self.known_best(node, groups) {
            return if score >= floor { key } else { f64::NEG_INFINITY };
        }
        let mut best = f64::NEG_INFINITY;
        self.sweep(node, groups, |candidate| {
            if candidate.score >= floor {
                best = best.max(candidate.key);
            }
        });
        best
    }

    /// Marks the groups beside every cut between groups that scores at least `floor`.
    fn mark_ends(&self, node: &Self::Node, groups: Groups<'_>, floor: f64, marks: &mut [bool]) {
        self.sweep(node, groups, |candidate| {
            if candidate.score >= floor {
                candidate.beside.into_iter().flatten().for_each(|group| marks[group] = true);
            }
        });
    }

    /// The first cut of the sweep that scores at least `floor` with a second key of at least `key_floor`.
    fn first_cut(
        &self,
        node: &Self::Node,
        groups: Groups<'_>,
        floor: f64,
        key_floor: f64,
    ) -> Option<Cut> {
        let mut first = None;
        self.sweep(node, groups, |candidate| {
            if first.is_none() && candidate.key >= key_floor && candidate.score >= floor {
                first = Some(candidate.cut);
            }
        });
        first
    }

    /// The largest second key that a cut between the values `low` and `high` can have.
    fn inside_key(&self, feature: usize, low: f64, high: f64) -> f64 {
        let _ = (feature, low, high);
        0.0
    }

    /// No cut of the node scores more, whatever its rows are.
    fn most(&self, node: &Self::Node) -> f64 {
        let _ = node;
        f64::INFINITY
    }

    /// No cut of a column scores more. `zeros`: lower bounds of what the rows with the cell 0 add up to there; these
    /// rows are on one side of every cut.
    fn most_beside_zeros(&self, node: &Self::Node, feature: usize, zeros: &[f64]) -> f64 {
        let _ = (feature, zeros);
        self.most(node)
    }

    /// Whether a column in which all searched rows have the same cell may have a cut.
    fn cuts_equal_cells(&self, node: &Self::Node, feature: usize) -> bool {
        let _ = (node, feature);
        false
    }

    /// Called before a column's cuts are compared exactly, for work that only such columns need.
    fn prepare(&self, feature: usize) {
        let _ = feature;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_values_has_a_side_if_all_its_values_have_it() {
        let gap = |below: f64| Gap { below, above: below + 1.0 };
        for lower in [None, Some(gap(1.0))] {
            let cut = Cut::range(lower, gap(4.0), Some(true));
            assert_eq!(cut.side(f64::NAN, f64::NAN), Some(true));
            for (low, high) in (0..8).flat_map(|a| (a..8).map(move |b| (a, b))) {
                let mut sides = (low..=high).map(|x| cut.goes_left(f64::from(x)));
                let first = sides.next();
                let expected = first.filter(|&side| sides.all(|other| other == side));
                assert_eq!(cut.side(f64::from(low), f64::from(high)), expected, "{low} {high}");
            }
        }
    }
}
