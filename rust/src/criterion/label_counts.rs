//! Impurity of reference labels: trees that explain given labels without centers, as decision trees for
//! classification do (CART; Breiman, Friedman, Olshen and Stone 1984, section 4.3).
//!
//! | formula | here |
//! |---|---|
//! | s_c, weight of the rows with label c | `counts` |
//! | W = sum of s_c, p_c = s_c / W | |
//! | W * (1 - sum of p_c^2), Gini | [`Gini`] |
//! | W * (sum of p_c log2(1 / p_c)), bits | [`Entropy`] |
//!
//! A cut is worth what it takes from the weighted impurity, W(N) i(N) - W(L) i(L) - W(R) i(R): scikit-learn's weighted
//! impurity decrease times the weight of all rows. Growth is best first on it, and goes on until every leaf is pure
//! or has no cut, even where the best cut gains nothing (as with the exclusive or of two columns).
//!
//! Both costs are sums over pairs of labels of something positive, so they are computed without any subtraction: with
//! P_c the weight of the labels before c, W * Gini = 2 sum of s_c P_c / W, and W * entropy is the sum over c of the
//! entropy of choosing between c and the labels before it. Neither falls when rows are added, so the bounds
//! of [`super::sums`] hold. O(k) per group.

use super::scatter;
use super::sums::{Additive, SideCost, TIE, costs_in_tiles};
use super::{BinnedRows, RowSums};
use crate::error::{Error, Result};
use crate::exact::{self, ExactRows};

/// A row adds its weight to the count of its label.
#[derive(Debug, Clone, Copy)]
pub struct OneHot<'a> {
    labels: &'a [u32],
    weights: Option<&'a [f64]>,
    k: usize,
}

impl<'a> OneHot<'a> {
    /// `labels`: in `[0, k)`, one per row. `weights`: one per row; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Value`] if a label is out of range.
    pub fn new(labels: &'a [u32], k: usize, weights: Option<&'a [f64]>) -> Result<Self> {
        Error::check_labels(labels, labels.len(), k)?;
        Ok(OneHot { labels, weights, k })
    }

    /// The label of every row.
    pub fn labels(&self) -> &'a [u32] {
        self.labels
    }

    /// The label of a row.
    #[inline]
    pub fn label(&self, row: u32) -> usize {
        self.labels[row as usize] as usize
    }

    /// The weight of a row.
    #[inline]
    pub fn weight(&self, row: u32) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row as usize])
    }

    /// Adds one row to the exact sums of a group, of `k` columns from `first` on.
    #[inline]
    pub fn add_exactly_from(&self, row: u32, sums: &mut ExactRows, group: usize, first: usize) {
        let column = first + self.label(row);
        match self.weights {
            None => sums.count(group, column),
            Some(weights) => sums.add_one(group, column, weights[row as usize]),
        }
    }

    /// The weight of all rows.
    pub fn total_weight(&self) -> f64 {
        self.weights.map_or(self.labels.len() as f64, |weights| exact::sum(weights.iter().copied()))
    }
}

impl RowSums for OneHot<'_> {
    fn width(&self) -> usize {
        self.k
    }

    fn add(&self, row: u32, sums: &mut [f64]) {
        sums[self.label(row)] += self.weight(row);
    }

    /// Counts are exact; sums of weights are not.
    fn is_exact(&self) -> bool {
        self.weights.is_none()
    }

    fn add_exactly(&self, row: u32, sums: &mut ExactRows, group: usize) {
        self.add_exactly_from(row, sums, group, 0);
    }

    fn fill(&self, rows: BinnedRows<'_>, count: &mut [u32], sums: &mut [f64]) {
        let k = self.k;
        if let Some(weights) = self.weights {
            for (row, bin) in rows.bins() {
                count[bin] += 1;
                sums[bin * k + self.label(row)] += weights[row as usize];
            }
            return;
        }
        for (row, bin) in rows.bins() {
            sums[bin * k + self.label(row)] += 1.0;
        }
    }

    fn settle(&self, count: &mut [u32], sums: &mut [f64]) {
        if self.weights.is_none() {
            for (count, sums) in count.iter_mut().zip(sums.chunks(self.k)) {
                *count = sums.iter().sum::<f64>() as u32;
            }
        }
    }
}

/// A criterion on label counts.
pub type LabelCounts<'a, S> = Additive<OneHot<'a>, S>;

/// The most frequent label: the lowest of those whose weight is the largest up to a tie; 0 without rows.
pub fn most_frequent(counts: &[f64]) -> usize {
    let most = counts.iter().copied().fold(0.0, f64::max);
    counts.iter().position(|&count| count >= most - TIE * most).unwrap_or(0)
}

/// The Gini impurity times the weight of the rows: the expected weight of rows that get a wrong label if labels are
/// drawn by their shares.
#[derive(Debug, Clone, Copy)]
pub struct Gini;

impl Gini {
    /// Adds the count of the next label to the weight of the labels so far and to that of their pairs.
    #[inline(always)]
    fn add([weight, pairs]: [f64; 2], count: f64) -> [f64; 2] {
        [weight + count, pairs + count * weight]
    }

    #[inline(always)]
    fn of_sums([weight, pairs]: [f64; 2]) -> f64 {
        // Without a branch around the division: the compiler divides side by side.
        // Weights left by a subtraction may be less than nothing.
        2.0 * pairs.max(0.0) / if weight > 0.0 { weight } else { 1.0 }
    }
}

impl SideCost for Gini {
    const TAKES_ANY_CUT: bool = true;

    fn cost(&self, counts: &[f64]) -> f64 {
        Gini::of_sums(counts.iter().fold([0.0; 2], |sums, &count| Gini::add(sums, count)))
    }

    fn costs(&self, counts: &[f64], costs: &mut [f64]) {
        costs_in_tiles(counts, costs, |sums, count, _| Gini::add(sums, count), Gini::of_sums);
    }

    fn most_saved<'s>(&self, sets: impl Iterator<Item = &'s [f64]>, totals: &[f64]) -> f64 {
        scatter::most_saved(sets, totals)
    }
}

/// The entropy of the labels in bits, times the weight of the rows.
#[derive(Debug, Clone, Copy)]
pub struct Entropy;

impl SideCost for Entropy {
    const TAKES_ANY_CUT: bool = true;

    fn cost(&self, counts: &[f64]) -> f64 {
        let (mut weight, mut nats) = (0.0f64, 0.0);
        for &count in counts {
            if count > 0.0 && weight > 0.0 {
                nats += count * (weight / count).ln_1p() + weight * (count / weight).ln_1p();
            }
            weight += count;
        }
        nats * std::f64::consts::LOG2_E
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impurities_by_hand() {
        let cases = [
            (vec![], 0.0, 0.0),
            (vec![0.0, 7.0], 0.0, 0.0),
            (vec![7.0, -1e-17], 0.0, 0.0), // what a subtraction may leave
            (vec![1.0, 1.0], 1.0, 2.0),
            (vec![2.0, 2.0, 0.0, 4.0], 8.0 * (1.0 - 6.0 / 16.0), 8.0 * 1.5),
        ];
        for (counts, gini, entropy) in cases {
            assert!((Gini.cost(&counts) - gini).abs() < 1e-15, "{counts:?}");
            assert!(Gini.cost(&counts) >= 0.0, "{counts:?}");
            assert!((Entropy.cost(&counts) - entropy).abs() < 1e-14, "{counts:?}");
        }
    }

    #[test]
    fn nearly_pure_sets_keep_all_digits() {
        // W Gini = 2 n / (n + 1), W entropy = (n log2(1 + 1/n) + log2(n + 1)): no digits lost at n = 1e12.
        let n = 1e12;
        assert_eq!(Gini.cost(&[n, 1.0]), 2.0 * n / (n + 1.0));
        let entropy = (n * (1.0f64 / n).ln_1p() + n.ln_1p()) / std::f64::consts::LN_2;
        assert!((Entropy.cost(&[n, 1.0]) - entropy).abs() < 1e-13);
    }

    #[test]
    fn the_most_frequent_label_is_the_lowest_among_ties() {
        assert_eq!(most_frequent(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(most_frequent(&[0.3, 0.1 + 0.2]), 0);
        assert_eq!(most_frequent(&[0.0, 0.0]), 0);
    }
}
