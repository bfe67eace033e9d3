//! Spread: the squared distances of rows to their mean, of trees that look at no clusters (regression trees of the
//! columns on themselves; CUBT, Fraiman, Ghattas and Svarc 2013, *Interpretable clustering using unsupervised binary
//! trees*, section 2.1).
//!
//! | paper | here |
//! |---|---|
//! | n R(t) = n_t trace(Cov of the rows of t) | [`Spread::cost`] |
//! | mindev n R(S), S all rows | [`Spread::min_gain`] |
//!
//! A row adds its weight w, w |x|^2 and w x. A set costs sum w |x|^2 - |sum w x|^2 / sum w, which never falls when rows
//! are added, so the bounds of [`super::sums`] hold. The difference is known to some eps of the first term: of rows that
//! differ by less than 1e-7 of their distance from the origin nothing is known, and they are not cut.

use super::sums::{SLACK, SideCost, TIE};
use super::{NodeScale, RowSums};

/// What the difference may be off by, as a share of the first term.
const ROUNDING: f64 = 1e-14;

/// A row adds its weight, its weighted square and its weighted cells.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    /// n x d, row-major, near the origin.
    pub cells: &'a [f64],
    /// Number of columns.
    pub d: usize,
    /// Row weights, positive; none: 1 each.
    pub weights: Option<&'a [f64]>,
}

impl RowSums for Cells<'_> {
    fn width(&self) -> usize {
        self.d + 2
    }

    fn add(&self, row: u32, sums: &mut [f64]) {
        let row = row as usize;
        let weight = self.weights.map_or(1.0, |weights| weights[row]);
        let mut square = 0.0;
        for (sum, &x) in sums[2..].iter_mut().zip(&self.cells[row * self.d..][..self.d]) {
            *sum += weight * x;
            square += x * x;
        }
        sums[0] += weight;
        sums[1] += weight * square;
    }
}

/// Weighted squared distances of rows to their mean.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// What a cut must gain at least.
    pub min_gain: f64,
}

impl SideCost for Spread {
    fn cost(&self, sums: &[f64]) -> f64 {
        if sums[0] <= 0.0 {
            return 0.0;
        }
        let of_mean: f64 = sums[2..].iter().map(|sum| sum * sum).sum();
        (sums[1] - of_mean / sums[0]).max(0.0)
    }

    fn scale(&self, totals: &[f64], cost: f64) -> NodeScale {
        let rounding = ROUNDING * totals[1];
        NodeScale {
            margin: TIE * cost + rounding,
            slack: SLACK * cost + rounding,
            floor: (TIE * cost + 2.0 * rounding).max(self.min_gain),
            cost: if cost > rounding { cost } else { 0.0 },
        }
    }

    /// Histograms subtract sums that are not negative; those of cells may be.
    fn may_subtract(&self, _: &[f64], _: f64, _: &[f64]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_by_hand() {
        let cells = Cells { cells: &[0.0, 0.0, 2.0, 0.0, 1.0, 3.0], d: 2, weights: None };
        let spread = |rows: &[u32], cells: Cells<'_>| {
            let mut sums = vec![0.0; 4];
            rows.iter().for_each(|&row| cells.add(row, &mut sums));
            Spread { min_gain: 0.0 }.cost(&sums)
        };
        assert_eq!(spread(&[], cells), 0.0);
        assert_eq!(spread(&[1], cells), 0.0);
        assert_eq!(spread(&[0, 1], cells), 2.0);
        assert_eq!(spread(&[0, 1, 2], cells), 8.0);
        let weights = [1.0, 3.0, 1.0];
        assert_eq!(spread(&[0, 1], Cells { weights: Some(&weights), ..cells }), 3.0);
    }
}
