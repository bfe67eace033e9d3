//! ExShallow's price of depth (Laber, Murtinho and Oliveira 2023, *Shallow decision trees for explainable k-means
//! clustering*).
//!
//! Of the cuts between the centers of a node ([`crate::center_cuts`]) ExShallow takes the one with the least
//! cost(after) / cost(before) + lambda H / N: it pays some cost for explanations of few conditions.
//!
//! | formula | here |
//! |---|---|
//! | lambda | [`DepthPrice::factor`] |
//! | N, K: rows and centers of the node | `NodePrice::n_rows`, `NodePrice::n_centers` |
//! | N_L, K_L: those on the left of the cut | `n_left`, `k_left` |
//! | H(h, N, K), sum of the rows' depths below a node at depth h | `h N + expected_depths` |
//!
//! H supposes that the proportions of the cut repeat below it: H(h, N, 1) = N h, and H(h, N, K) is H(h + 1, N', K') +
//! H(h + 1, N - N', K - K') with N' = ceil(N N_L / N_root) and K' = ceil(K K_L / K_root), clamped to 1 .. K - 1. A side
//! whose direction on the column was cut above counts one level less, as its condition replaces the one above. The
//! depth h of the node itself is the same for all its cuts and left out.
//!
//! Times cost(before), and less what its rows cost at least, the price of a cut is ExGreedy's cost of it plus
//! lambda cost(before) / N H: with lambda = 0 the trees are ExGreedy's. **Weights:** a row counts as its weight over
//! the least weight, so that H depends neither on their unit nor on whether rows are repeated or weighted. **Cost:**
//! H takes O(K) for a cut, less where parts repeat, and is computed only for cuts that may be the best.

use std::collections::HashMap;

use crate::criterion::label_cost::RegretMatrix;
use crate::exact;

/// Cost(before) where it is 0: then H alone decides between cuts that cost nothing.
const NO_COST: f64 = 1e-300;

/// The price of depth and what it takes besides the regrets.
#[derive(Debug, Clone, Copy)]
pub struct DepthPrice<'a> {
    /// lambda, not negative.
    pub factor: f64,
    /// What each row costs about the nearest of all centers: what its regrets leave out. Weights included.
    pub least_costs: &'a [f64],
    /// Row weights, positive; none: 1 each.
    pub weights: Option<&'a [f64]>,
}

impl<'a> DepthPrice<'a> {
    /// The price at a node with some rows and some centers alive. O(rows x centers).
    pub(crate) fn node(
        &self,
        rows: &[u32],
        alive: &[bool],
        regrets: RegretMatrix<'_>,
        least_weight: f64,
    ) -> NodePrice<'a> {
        let alive: Vec<usize> = (0..alive.len()).filter(|&center| alive[center]).collect();
        let sums = exact::sum_rows(rows, 1, 2, |row, sums| {
            let of_row = regrets.of(row);
            let regret = alive.iter().map(|&center| of_row[center]).fold(f64::INFINITY, f64::min);
            let cost = self.least_costs[row as usize] + regret;
            let weight = self.weights.map_or(1.0, |weights| weights[row as usize] / least_weight);
            sums.add(0, &[cost, weight]);
        });
        let (before, n_rows) = (sums.rounded(0).max(NO_COST), sums.rounded(1));
        let unit = if n_rows > 0.0 { self.factor * before / n_rows } else { 0.0 };
        NodePrice { unit, weights: self.weights, least_weight, n_rows, n_centers: alive.len() }
    }
}

/// The price of depth at a node.
#[derive(Debug)]
pub(crate) struct NodePrice<'a> {
    /// lambda cost(before) / N.
    unit: f64,
    weights: Option<&'a [f64]>,
    least_weight: f64,
    n_rows: f64,
    n_centers: usize,
}

impl NodePrice<'_> {
    /// Adds the price to the `costs` of the cuts of a column; to those that are not the best without it, infinity.
    ///
    /// `rows`: of the node, ascending along the column. `cuts`: the rows and the centers on the left of each cut,
    /// ascending. `redundant`: whether the left and the right side were cut off above.
    pub(crate) fn add(
        &self,
        costs: &mut [f64],
        rows: &[u32],
        cuts: impl Iterator<Item = (usize, usize)>,
        redundant: [bool; 2],
    ) {
        if self.unit == 0.0 {
            return;
        }
        let [left_level, right_level] = redundant.map(|above| if above { 0.0 } else { 1.0 });
        let (mut best, mut n_left, mut passed) = (f64::INFINITY, 0.0, 0);
        let mut memo = HashMap::new();
        for (cost, (rows_left, k_left)) in costs.iter_mut().zip(cuts) {
            for &row in &rows[passed..rows_left] {
                n_left +=
                    self.weights.map_or(1.0, |weights| weights[row as usize] / self.least_weight);
            }
            passed = rows_left;
            let n_right = self.n_rows - n_left;
            let own = n_left * left_level + n_right * right_level;
            // A side with several centers has one more level at least.
            let deeper = |n: f64, k: usize| if k > 1 { n } else { 0.0 };
            let k_right = self.n_centers - k_left;
            let least = own + deeper(n_left, k_left) + deeper(n_right, k_right);
            if *cost + self.unit * least > best {
                *cost = f64::INFINITY;
                continue;
            }
            memo.clear();
            let shares = Shares { part: [n_left, self.n_rows], k: [k_left, self.n_centers] };
            let below = expected_depths(n_left, k_left, shares, &mut memo)
                + expected_depths(n_right, k_right, shares, &mut memo);
            *cost += self.unit * (own + below);
            best = best.min(*cost * (1.0 + 1e-9)); // ties stay
        }
    }
}

/// The proportions of a cut: what lies on the left, and all.
#[derive(Debug, Clone, Copy)]
struct Shares {
    part: [f64; 2],
    k: [usize; 2],
}

/// The sum of the depths of `n` rows below a node with `k` centers, if the proportions repeat.
fn expected_depths(n: f64, k: usize, shares: Shares, memo: &mut HashMap<(u64, usize), f64>) -> f64 {
    if k <= 1 {
        return 0.0;
    }
    if let Some(&known) = memo.get(&(n.to_bits(), k)) {
        return known;
    }
    let [part, whole] = shares.part;
    let n_left = (n * part / whole).ceil().min(n);
    let k_left = (k * shares.k[0]).div_ceil(shares.k[1]).clamp(1, k - 1);
    let depths = n
        + expected_depths(n_left, k_left, shares, memo)
        + expected_depths(n - n_left, k - k_left, shares, memo);
    memo.insert((n.to_bits(), k), depths);
    depths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H by its definition, without a memo, in whole numbers.
    fn h(depth: u64, n: u64, k: u64, left: (u64, u64), all: (u64, u64)) -> u64 {
        if k == 1 {
            return n * depth;
        }
        let n_left = (n * left.0).div_ceil(all.0).min(n);
        let k_left = (k * left.1).div_ceil(all.1).clamp(1, k - 1);
        h(depth + 1, n_left, k_left, left, all) + h(depth + 1, n - n_left, k - k_left, left, all)
    }

    #[test]
    fn depths_by_hand() {
        // 4 centers: halves are a balanced tree of depth 2; one center of few rows at a time is a chain.
        let depths = |n: u32, k: usize, part: [u32; 2], of_k: [usize; 2]| {
            let shares = Shares { part: part.map(f64::from), k: of_k };
            expected_depths(f64::from(n), k, shares, &mut HashMap::new())
        };
        assert_eq!(depths(100, 4, [50, 100], [2, 4]), 200.0);
        // 10 of 100 rows leave at depth 1, 9 of 90 at 2, and 81 rows in two halves of 9 + 72 at 3.
        assert_eq!(depths(100, 4, [10, 100], [1, 4]), 100.0 + 90.0 + 81.0);
        assert_eq!(depths(100, 1, [10, 100], [1, 4]), 0.0);
        assert_eq!(depths(0, 3, [10, 100], [1, 4]), 0.0);
    }

    #[test]
    fn depths_are_those_of_the_definition() {
        for (n, n_left) in [(17u64, 0u64), (17, 1), (17, 9), (17, 17), (1000, 333)] {
            for (k, k_left) in [(2u64, 1u64), (5, 2), (7, 1), (7, 6), (12, 5)] {
                let shares =
                    Shares { part: [n_left as f64, n as f64], k: [k_left as usize, k as usize] };
                let mut memo = HashMap::new();
                let found = expected_depths(n as f64, k as usize, shares, &mut memo);
                assert_eq!(found, h(0, n, k, (n_left, k_left), (n, k)) as f64, "{n} {k}");
            }
        }
    }
}
