//! What a cut is worth.
//!
//! A criterion adds up a short row of numbers per sample and judges a column from the sums of its [`Groups`] of
//! rows, ordered by value. A group is a bin or a single value; the same code finds the best cut between bins,
//! bounds the cuts hidden inside them, and sweeps single values exactly. Larger scores are better.

pub mod label_cost;
pub mod mistakes;

/// Rows of one node grouped by the values of one column, in ascending order.
///
/// Groups may be empty (`count` 0), then the rest of their entry means nothing.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// Rows in each group.
    pub count: &'a [u32],
    /// `width` sums of each group.
    pub sums: &'a [f64],
    /// No value in the group is smaller.
    pub low: &'a [f64],
    /// No value in the group is larger; equal to `low` if the group is one value.
    pub high: &'a [f64],
}

impl Groups<'_> {
    /// The next group that is not empty.
    pub fn after(&self, group: usize) -> Option<usize> {
        (group + 1..self.len()).find(|&g| self.count[g] > 0)
    }

    /// Number of groups, the empty ones included.
    pub fn len(&self) -> usize {
        self.count.len()
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.count.is_empty()
    }

    /// The sums of one group.
    pub fn row(&self, group: usize, width: usize) -> &[f64] {
        &self.sums[group * width..][..width]
    }
}

/// A gap between two neighbouring values: `below < above`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// The largest value under the gap.
    pub below: f64,
    /// The smallest value over it.
    pub above: f64,
}

/// A cut of a column: rows with `lower.above <= x <= upper.below` go left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// The gap at the lower end; none: a threshold.
    pub lower: Option<Gap>,
    /// The gap at the upper end.
    pub upper: Gap,
    /// For criteria with centers: how many of the node's centers, in the column's order, go left.
    pub n_left: usize,
}

impl Cut {
    /// Whether a value goes left.
    #[inline]
    pub fn goes_left(&self, x: f64) -> bool {
        x <= self.upper.below && self.lower.is_none_or(|gap| x >= gap.above)
    }

    /// Whether all values between `low` and `high` go left; none if some do and some do not.
    pub fn side(&self, low: f64, high: f64) -> Option<bool> {
        let all_left = self.goes_left(low) && self.goes_left(high);
        let outside = low > self.upper.below || self.lower.is_some_and(|gap| high < gap.above);
        (all_left || outside).then_some(all_left)
    }
}

/// What the search needs to know of a node beside its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeScale {
    /// Cuts whose scores differ by at most this are tied.
    pub margin: f64,
    /// Histogram sums are trusted to this; tied cuts are compared on sums of the node's own rows.
    pub slack: f64,
    /// Cuts that score at most this are not worth taking.
    pub floor: f64,
    /// What the node costs as a leaf; a node that costs nothing is not searched.
    pub cost: f64,
}

/// A criterion of growth.
pub trait Criterion: Sync {
    /// What a node's rows add up to, and whatever else judging its cuts takes.
    type Node: Send + Sync;

    /// Numbers a row adds up to.
    fn width(&self) -> usize;

    /// Adds one row to `sums`.
    fn add(&self, row: u32, sums: &mut [f64]);

    /// Adds the rows to the sums of their bins, those in bin `skip` excepted: `codes[row]` is the row's bin.
    fn fill(
        &self,
        rows: &[u32],
        codes: &[u8],
        skip: Option<u8>,
        count: &mut [u32],
        sums: &mut [f64],
    );

    /// Called once after the last [`Criterion::fill`] of a column: a criterion whose sums tell the number of rows may
    /// leave counting until now.
    fn settle_counts(&self, count: &mut [u32], sums: &[f64]) {
        let _ = (count, sums);
    }

    /// The sums over the node's searched rows: the right-hand side of "most frequent bin = total - rest".
    fn totals<'a>(&self, node: &'a Self::Node) -> &'a [f64];

    /// Whether sums of this node may be had as `minuend` minus other sums without losing digits that count.
    fn may_subtract(&self, node: &Self::Node, minuend: &[f64]) -> bool;

    /// Margins of the node.
    fn scale(&self, node: &Self::Node) -> NodeScale;

    /// Writes, for every group, an upper bound on the score of the cuts with an end inside it (minus infinity if
    /// there are none), and returns the best score of the cuts between groups.
    fn bounds(
        &self,
        node: &Self::Node,
        feature: usize,
        groups: Groups<'_>,
        inside: &mut [f64],
    ) -> f64;

    /// The best score of the cuts between groups; minus infinity if there are none.
    fn best_score(&self, node: &Self::Node, feature: usize, groups: Groups<'_>) -> f64;

    /// Marks the groups beside every cut between groups that scores at least `floor`.
    fn mark_ends(
        &self,
        node: &Self::Node,
        feature: usize,
        groups: Groups<'_>,
        floor: f64,
        marks: &mut [bool],
    );

    /// Called before a column's cuts are compared exactly, for work put off until then.
    fn prepare(&self, feature: usize) {
        let _ = feature;
    }

    /// The largest second key of the cuts that score at least `floor`. Constant where a criterion has none.
    fn best_key(&self, node: &Self::Node, feature: usize, groups: Groups<'_>, floor: f64) -> f64 {
        let _ = (node, feature, groups, floor);
        0.0
    }

    /// The largest second key a cut inside a group can have.
    fn inside_key(&self, feature: usize, low: f64, high: f64) -> f64 {
        let _ = (feature, low, high);
        0.0
    }

    /// The first cut, in the order of the columns' values, that scores at least `floor` with a key of at least
    /// `key_floor`.
    fn first_cut(
        &self,
        node: &Self::Node,
        feature: usize,
        groups: Groups<'_>,
        floor: f64,
        key_floor: f64,
    ) -> Option<Cut>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_values_has_a_side_if_all_its_values_have_it() {
        let gap = |below: f64| Gap { below, above: below + 1.0 };
        for lower in [None, Some(gap(1.0))] {
            let cut = Cut { lower, upper: gap(4.0), n_left: 0 };
            for (low, high) in (0..8).flat_map(|a| (a..8).map(move |b| (a, b))) {
                let mut sides = (low..=high).map(|x| cut.goes_left(f64::from(x)));
                let first = sides.next();
                let expected = first.filter(|&side| sides.all(|other| other == side));
                assert_eq!(cut.side(f64::from(low), f64::from(high)), expected, "{low} {high}");
            }
        }
    }
}
