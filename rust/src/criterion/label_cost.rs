//! Surrogate cost: a node costs what its best single label costs (ExKMC; Frost, Moshkovitz and Rashtchian 2020,
//! *ExKMC: Expanding Explainable k-Means Clustering*, section 3), and a cut is worth c(node) - c(left) - c(right).
//!
//! | paper | here |
//! |---|---|
//! | cost of giving sample x the center l, less its cheapest | a row of [`Regrets`] |
//! | c(p) = min over l of the sum over p | [`CheapestLabel`] |
//!
//! Costs are taken as regrets, every row's cheapest label costing 0: gains stay the same, and a set costs no less
//! than any part of it, which makes the bounds of [`super::sums`] tight. A sweep is O(k) per group. Cuts with two ends
//! are in [`super::intervals`].

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
        Ok(Additive::on(Regrets::new(regrets, n_samples, k)?, CheapestLabel, min_samples_leaf))
    }
}

/// Doubles hold integers up to here.
const MOST_EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// A row adds up to its k regrets.
#[derive(Debug, Clone, Copy)]
pub struct Regrets<'a> {
    regrets: &'a [f64],
    k: usize,
    /// Whether all are integers whose sums are exact, as those of wrong labels are.
    is_exact: bool,
}

impl<'a> Regrets<'a> {
    /// `regrets`: n x k, row-major.
    ///
    /// # Errors
    /// [`Error::Shape`] if `regrets` does not hold n x k numbers.
    pub fn new(regrets: &'a [f64], n_samples: usize, k: usize) -> Result<Self> {
        Error::check_len("regrets", regrets.len(), n_samples * k, "entries")?;
        let most = MOST_EXACT / n_samples.max(1) as f64;
        let is_exact = |x: &f64| *x <= most && x.trunc() == *x;
        let is_exact = !regrets.is_empty() && regrets.iter().all(is_exact);
        Ok(Regrets { regrets, k, is_exact })
    }

    /// The k regrets of a row.
    pub fn of(&self, row: u32) -> &'a [f64] {
        &self.regrets[row as usize * self.k..][..self.k]
    }

    /// [`RowSums::fill`] for a width known when compiling: the sums of a row stay in registers.
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

impl RowSums for Regrets<'_> {
    fn width(&self) -> usize {
        self.k
    }

    fn add(&self, row: u32, sums: &mut [f64]) {
        add(sums, &self.regrets[row as usize * self.k..][..self.k]);
    }

    fn is_exact(&self) -> bool {
        self.is_exact
    }

    fn add_exactly(&self, row: u32, sums: &mut ExactRows, group: usize) {
        sums.add(group, self.of(row));
    }

    fn fill(&self, rows: BinnedRows<'_>, count: &mut [u32], sums: &mut [f64]) {
        macro_rules! by_width {
            ($($k:literal)*) => {
                match self.k {
                    $($k => self.fill_fixed::<$k>(rows, count, sums),)*
                    _ => fill_rows(self, rows, count, sums),
                }
            };
        }
        by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 26)
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
        sums.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// The label of a node whose regrets add up to `totals`: the lowest that costs no more than the cheapest up to a tie.
pub fn best_label(totals: &[f64]) -> usize {
    let cost = CheapestLabel.cost(totals);
    totals.iter().position(|&total| total <= cost + TIE * cost).unwrap_or(0)
}
