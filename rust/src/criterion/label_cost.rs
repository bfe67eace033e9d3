//! Surrogate cost: a node costs what its best single label costs (ExKMC; Frost, Moshkovitz and Rashtchian 2020,
//! *ExKMC: Expanding Explainable k-Means Clustering*, section 3), and a cut is worth c(node) - c(left) - c(right).
//!
//! | paper | here |
//! |---|---|
//! | cost of giving sample x the center l, less its cheapest | a row of [`RegretMatrix`] |
//! | the same where any wrong label costs as much | [`Regrets::OfLabels`] |
//! | c(p) = min over l of the sum over p | [`CheapestLabel`] |
//!
//! Costs are taken as regrets, every row's cheapest label costing 0: gains stay the same, and a set costs no less
//! than any part of it, which makes the bounds of [`super::sums`] tight. A sweep is O(k) per group. Cuts with two ends
//! are in [`super::intervals`].

use super::label_counts::OneHot;
use super::sums::{Additive, SideCost, TIE, add};
use super::{BinnedRows, RowSums, fill_rows};
use crate::error::{Error, Result};
use crate::exact::ExactRows;

/// The form of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutKind {
    /// `x <= threshold`.
    Threshold,
    /// `lower <= x <= upper`, open ends included.
    Interval,
}

/// The surrogate cost of threshold cuts.
pub type LabelCost<'a> = Additive<Regrets<'a>, CheapestLabel>;

impl<'a> LabelCost<'a> {
    /// `regrets`: n x k, row-major, non-negative, in the unit of the costs. Cuts leave at least `min_samples_leaf`
    /// rows on either side.
    ///
    /// # Errors
    /// [`Error::Shape`] if `regrets` does not hold n x k numbers.
    pub fn new(
        regrets: &'a [f64],
        n_samples: usize,
        k: usize,
        min_samples_leaf: usize,
    ) -> Result<Self> {
        let regrets = Regrets::Given(RegretMatrix::new(regrets, n_samples, k)?);
        Ok(Additive::on(regrets, CheapestLabel, min_samples_leaf))
    }
}

/// The k regrets of each row.
#[derive(Debug, Clone, Copy)]
pub struct RegretMatrix<'a> {
    regrets: &'a [f64],
    k: usize,
}

impl<'a> RegretMatrix<'a> {
    /// `regrets`: n x k, row-major.
    ///
    /// # Errors
    /// [`Error::Shape`] if `regrets` does not hold n x k numbers.
    pub fn new(regrets: &'a [f64], n_samples: usize, k: usize) -> Result<Self> {
        Error::check_len("regrets", regrets.len(), n_samples * k, "entries")?;
        Ok(RegretMatrix { regrets, k })
    }

    /// Number of labels.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The k regrets of a row.
    pub fn of(&self, row: u32) -> &'a [f64] {
        &self.regrets[row as usize * self.k..][..self.k]
    }

    /// [`RowSums::fill`].
    fn fill(&self, rows: BinnedRows<'_>, count: &mut [u32], sums: &mut [f64]) {
        macro_rules! by_width {
            ($($k:literal)*) => {
                match self.k {
                    $($k => self.fill_fixed::<$k>(rows, count, sums),)*
                    k => fill_rows(rows, count, sums, k, |row, sums| add(sums, self.of(row))),
                }
            };
        }
        by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 26)
    }

    /// [`RegretMatrix::fill`] for a width known when compiling: the sums of a row stay in registers.
    fn fill_fixed<const K: usize>(
        &self,
        rows: BinnedRows<'_>,
        count: &mut [u32],
        sums: &mut [f64],
    ) {
        let regrets = self.regrets.as_chunks::<K>().0;
        let sums = sums.as_chunks_mut::<K>().0;
        for (row, bin) in rows.bins() {
            count[bin] += 1;
            let (sum, regret) = (&mut sums[bin], &regrets[row as usize]);
            for l in 0..K {
                sum[l] += regret[l];
            }
        }
    }
}

/// A row adds up to its k regrets.
#[derive(Debug, Clone, Copy)]
pub enum Regrets<'a> {
    /// Any.
    Given(RegretMatrix<'a>),
    /// The row's weight for every label but its own: without an n x k matrix, and without weights in one step a row.
    OfLabels(OneHot<'a>),
}

impl RowSums for Regrets<'_> {
    fn width(&self) -> usize {
        match self {
            Regrets::Given(regrets) => regrets.k,
            Regrets::OfLabels(labels) => labels.width(),
        }
    }

    fn add(&self, row: u32, sums: &mut [f64]) {
        match self {
            Regrets::Given(regrets) => add(sums, regrets.of(row)),
            Regrets::OfLabels(labels) => {
                let (label, weight) = (labels.label(row), labels.weight(row));
                for (l, sum) in sums.iter_mut().enumerate() {
                    *sum += if l == label { 0.0 } else { weight };
                }
            }
        }
    }

    /// Rows with a wrong label are counted.
    fn is_exact(&self) -> bool {
        matches!(self, Regrets::OfLabels(labels) if labels.is_exact())
    }

    fn add_exactly(&self, row: u32, sums: &mut ExactRows, group: usize) {
        match self {
            Regrets::Given(regrets) => sums.add(group, regrets.of(row)),
            Regrets::OfLabels(labels) => {
                let (label, weight) = (labels.label(row), labels.weight(row));
                let others = (0..self.width()).filter(|&l| l != label);
                others.for_each(|l| sums.add_one(group, l, weight));
            }
        }
    }

    fn fill(&self, rows: BinnedRows<'_>, count: &mut [u32], sums: &mut [f64]) {
        match self {
            Regrets::Given(regrets) => regrets.fill(rows, count, sums),
            // The rows of each label, until they are settled.
            Regrets::OfLabels(labels) if labels.is_exact() => labels.fill(rows, count, sums),
            Regrets::OfLabels(_) => {
                fill_rows(rows, count, sums, self.width(), |row, sums| self.add(row, sums));
            }
        }
    }

    fn settle(&self, count: &mut [u32], sums: &mut [f64]) {
        let Regrets::OfLabels(labels) = self else { return };
        if labels.is_exact() {
            labels.settle(count, sums);
            for (&count, sums) in count.iter().zip(sums.chunks_mut(self.width())) {
                sums.iter_mut().for_each(|sum| *sum = f64::from(count) - *sum);
            }
        }
    }
}

/// A set of rows costs the regret of its cheapest label. Regrets are not negative, so it never falls when rows are
/// added.
#[derive(Debug, Clone, Copy)]
pub struct CheapestLabel;

impl SideCost for CheapestLabel {
    const IS_OF_LABELS: bool = true;

    #[inline]
    fn cost(&self, sums: &[f64]) -> f64 {
        // Four at a time, so that none waits for the one before.
        let lower = |a: f64, b: f64| if b < a { b } else { a };
        let (fours, rest) = sums.as_chunks::<4>();
        let mut least = [f64::INFINITY; 4];
        for four in fours {
            (0..4).for_each(|i| least[i] = lower(least[i], four[i]));
        }
        least.into_iter().chain(rest.iter().copied()).fold(f64::INFINITY, lower)
    }
}

/// The label of a node whose regrets add up to `totals`: the lowest that costs no more than the cheapest up to a tie.
pub fn best_label(totals: &[f64]) -> usize {
    let cost = CheapestLabel.cost(totals);
    totals.iter().position(|&total| total <= cost + TIE * cost).unwrap_or(0)
}
