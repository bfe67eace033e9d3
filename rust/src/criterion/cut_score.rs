//! How IMM judges a cut by its mistakes: plain, or by the centers it separates (EMN).
//!
//! - **Mistakes** (Dasgupta, Frost, Moshkovitz and Rashtchian 2020, Algorithm 1): the fewest mistakes. O(k^2) times the
//!   cost of the reference for k-means.
//! - **EMN** (Esfandiari, Mirrokni and Narayanan 2022, *Almost Tight Approximation Algorithms for Explainable
//!   Clustering*): the fewest mistakes per center on the side with fewer centers, so that cuts which halve the centers
//!   may cost more. O(k log k) for k-means, O(log k log log k) for k-medians.
//!
//! | paper | here |
//! |---|---|
//! | mistakes of a cut | `mistakes` |
//! | centers alive at the node, and left of the cut | `n_alive`, `n_left` |
//! | f = mistakes / min(n_left, n_alive - n_left), to be least | minus [`CutScore::score`] |

use std::ops::RangeInclusive;

/// What a cut between centers is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CutScore {
    /// Minus the mistakes.
    #[default]
    Mistakes,
    /// Minus the mistakes per center on the side with fewer centers.
    Emn,
}

impl CutScore {
    /// The score of a cut with `n_left` of `n_alive` centers on its left, `0 < n_left < n_alive`. Mistakes are in units
    /// of weight.
    pub fn score(self, mistakes: f64, n_left: usize, n_alive: usize) -> f64 {
        match self {
            CutScore::Mistakes => -mistakes,
            CutScore::Emn => -mistakes / n_left.min(n_alive - n_left) as f64,
        }
    }

    /// An upper bound on the scores of cuts with at least so many `mistakes`, and a number of centers on the left
    /// within `n_left`: as if the cut halved the centers as evenly as it can.
    pub fn bound(self, mistakes: f64, n_left: RangeInclusive<usize>, n_alive: usize) -> f64 {
        let fewest = *n_left.start().max(&1);
        let most = (*n_left.end()).min(n_alive - 1).max(fewest);
        self.score(mistakes, (n_alive / 2).clamp(fewest, most), n_alive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_by_hand() {
        assert_eq!(CutScore::Mistakes.score(6.0, 2, 5), -6.0);
        assert_eq!(CutScore::Emn.score(6.0, 2, 5), -3.0);
        assert_eq!(CutScore::Emn.score(6.0, 4, 5), -6.0);
    }

    #[test]
    fn a_bound_is_the_best_score_of_all_allowed_numbers() {
        for score in [CutScore::Mistakes, CutScore::Emn] {
            for n_alive in 2..9usize {
                for (first, last) in (0..n_alive).flat_map(|a| (a..=n_alive).map(move |b| (a, b))) {
                    let allowed = first.max(1)..=last.min(n_alive - 1);
                    let best = allowed
                        .map(|n_left| score.score(3.0, n_left, n_alive))
                        .fold(f64::NEG_INFINITY, f64::max);
                    assert!(score.bound(3.0, first..=last, n_alive) >= best);
                }
            }
        }
    }
}
