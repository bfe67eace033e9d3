//! SpEx-Clique: every label is a clique of its rows, and a good cut separates few of its edges (*SpEx: A Spectral
//! Approach to Explainable Clustering*, NeurIPS 2025). It explains any labels and needs no centers.
//!
//! | paper | here |
//! |---|---|
//! | l_c(S), the rows of label c in S | `counts` |
//! | G_c, all rows of label c | `Clique::totals` |
//! | cut(S) = sum of l_c (G_c - l_c), edges that leave S | `cut` |
//! | deg(S) = sum of l_c (G_c - 1), ends of edges in S | `degree` |
//! | phi(S) = cut(S) / deg(S), 0/0 = 0 | [`SideCost::cost`] |
//!
//! A cut of the node N is worth phi(N) - phi(L) - phi(R), and growth is best first. The best cut may be worth less than
//! nothing: growth goes on until the tree has its number of leaves. A pure node (rows of one label) is not split.
//!
//! **Weights.** A row of weight w counts as w rows. The 1 in G_c - 1 stands for one row; where weights are below 1
//! it is the smallest weight instead, so that no degree is negative and weights may be scaled to any sum.
//!
//! **Bounds.** Over all sets between two given ones, phi is least where every label has either all or none of the rows
//! in question: cut is concave in each count and degree is linear. Dinkelbach's method (1967) finds that least ratio:
//! take the smallest cut - r degree, label by label, set r to its ratio, and repeat until r falls no more, a few rounds
//! of O(k). Its first round alone gives a rougher bound.

use super::label_counts::OneHot;
use super::sums::{SLACK, SideCost, TIE, costs_in_tiles};
use super::{NodeScale, RowSums};
use crate::exact;
use crate::memory;

/// The share of a set's edges that leave it.
#[derive(Debug, Clone)]
pub struct Clique {
    /// G_c.
    totals: Vec<f64>,
    /// What one row counts.
    one: f64,
}

impl Clique {
    /// The cliques of all rows in `0..n_samples`.
    pub fn new(rows: &OneHot<'_>, n_samples: usize) -> Self {
        let all: Vec<u32> = memory::collected(0..n_samples as u32, "the rows of the table");
        let totals = exact::sum_rows(&all, 1, rows.width(), |row, sums| {
            rows.add_exactly(row, sums, 0);
        });
        let totals = totals.all_rounded();
        let weights = all.iter().map(|&row| rows.weight(row)).filter(|&weight| weight > 0.0);
        Clique { totals, one: weights.fold(1.0, f64::min) }
    }

    /// What `count` rows of a label with `total` rows add to cut and degree.
    #[inline]
    fn edges(&self, count: f64, total: f64) -> (f64, f64) {
        (count * (total - count).max(0.0), count * (total - self.one).max(0.0))
    }
}

fn ratio(cut: f64, degree: f64) -> f64 {
    if degree > 0.0 { cut / degree } else { 0.0 }
}

impl SideCost for Clique {
    fn cost(&self, counts: &[f64]) -> f64 {
        let (mut cut, mut degree) = (0.0, 0.0);
        for (&count, &total) in counts.iter().zip(&self.totals) {
            let (leaving, ends) = self.edges(count, total);
            cut += leaving;
            degree += ends;
        }
        ratio(cut, degree)
    }

    fn costs(&self, counts: &[f64], costs: &mut [f64]) {
        let add = |[cut, degree]: [f64; 2], count: f64, label: usize| {
            let (leaving, ends) = self.edges(count, self.totals[label]);
            [cut + leaving, degree + ends]
        };
        costs_in_tiles(counts, costs, add, |[cut, degree]| ratio(cut, degree));
    }

    fn least(&self, before: &[f64], cost: f64, inside: &[f64]) -> f64 {
        let mut least = cost;
        loop {
            let (mut cut, mut degree) = (0.0, 0.0);
            for ((&few, &some), &total) in before.iter().zip(inside).zip(&self.totals) {
                let (none, all) = (self.edges(few, total), self.edges(few + some, total));
                let excess = |(leaving, ends): (f64, f64)| leaving - least * ends;
                let (leaving, ends) = if excess(all) < excess(none) { all } else { none };
                cut += leaving;
                degree += ends;
            }
            let next = ratio(cut, degree);
            if next >= least {
                return least;
            }
            least = next;
        }
    }

    /// One step: if the smallest cut - r degree, r the ratio of `before`, is -x, no ratio is below r - x / degree, and no
    /// degree is below that of `before`.
    fn rough_least(&self, before: &[f64], cost: f64, inside: &[f64]) -> f64 {
        let (mut excess, mut degree) = (0.0, 0.0);
        for ((&few, &some), &total) in before.iter().zip(inside).zip(&self.totals) {
            let (none, all) = (self.edges(few, total), self.edges(few + some, total));
            excess += f64::min(none.0 - cost * none.1, all.0 - cost * all.1);
            degree += none.1;
        }
        if degree > 0.0 { (cost + excess / degree).clamp(0.0, cost) } else { 0.0 }
    }

    /// phi is at most 1, so margins are absolute; an impure leaf counts 1 in the margin between leaves.
    fn scale(&self, counts: &[f64], _: f64) -> NodeScale {
        let is_pure = counts.iter().filter(|&&count| count > 0.0).count() < 2;
        let cost = if is_pure { 0.0 } else { 1.0 };
        NodeScale { margin: TIE, slack: SLACK, own_slack: SLACK, floor: f64::NEG_INFINITY, cost }
    }

    /// phi of a small set depends on every digit of its counts.
    fn may_subtract(&self, _: &[f64], _: f64, _: &[f64]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phi_by_hand() {
        let labels = [0, 0, 0, 1, 1, 2];
        let clique = Clique::new(&OneHot::new(&labels, 3, None).unwrap(), 6);
        // (cut, degree) by label: 3 rows of a clique of 3 have 6 ends; 1 of 3 has 2 ends, both of which leave.
        let cases = [
            ([3.0, 2.0, 1.0], 0.0),
            ([1.0, 0.0, 0.0], 1.0),
            ([0.0, 0.0, 1.0], 0.0), // 0/0
            ([1.0, 2.0, 0.0], 2.0 / (2.0 + 2.0)),
            ([2.0, 1.0, 1.0], (2.0 + 1.0) / (4.0 + 1.0)),
        ];
        for (counts, phi) in cases {
            assert_eq!(clique.cost(&counts), phi, "{counts:?}");
        }
    }

    #[test]
    fn weights_count_as_rows_and_their_scale_does_not_matter_below_one() {
        let labels = [0, 1, 1];
        let phi = |weights: &[f64]| {
            let rows = OneHot::new(&labels, 2, Some(weights)).unwrap();
            Clique::new(&rows, 3).cost(&[weights[0], weights[1]])
        };
        let repeated = [0, 0, 1, 1, 1, 1, 1];
        let clique = Clique::new(&OneHot::new(&repeated, 2, None).unwrap(), 7);
        assert_eq!(phi(&[2.0, 3.0, 2.0]), clique.cost(&[2.0, 3.0]));
        assert!((phi(&[0.5, 0.25, 0.25]) - phi(&[0.02, 0.01, 0.01])).abs() < 1e-15);
    }

    #[test]
    fn the_least_phi_is_the_least_of_all_sets_between() {
        let mut state = 3u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for round in 0..500 {
            let totals: Vec<f64> = (0..3).map(|_| 1.0 + below(6) as f64).collect();
            let clique = Clique { totals: totals.clone(), one: 1.0 };
            let before: Vec<f64> = totals.iter().map(|&t| below(t as u64 + 1) as f64).collect();
            let inside: Vec<f64> =
                before.iter().zip(&totals).map(|(b, t)| below((t - b) as u64 + 1) as f64).collect();
            let mut least = f64::INFINITY;
            for extra in 0..1000u64 {
                let digits = [extra % 10, extra / 10 % 10, extra / 100];
                if digits.iter().zip(&inside).any(|(&e, &i)| e as f64 > i) {
                    continue;
                }
                let counts: Vec<f64> =
                    before.iter().zip(digits).map(|(b, e)| b + e as f64).collect();
                least = least.min(clique.cost(&counts));
            }
            let found = clique.least(&before, clique.cost(&before), &inside);
            assert!(found <= least + 1e-15, "round {round}: {found} above {least}");
            let rough = clique.rough_least(&before, clique.cost(&before), &inside);
            assert!((0.0..=found + 1e-15).contains(&rough), "round {round}: {rough} {found}");
            // With no degree before, 0/0 = 0 is the bound.
            assert!(clique.cost(&before) == 0.0 || (found - least).abs() < 1e-15, "round {round}");
        }
    }
}
