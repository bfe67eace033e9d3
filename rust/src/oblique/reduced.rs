//! The two-class problem of a test (the paper's eq. 9): rows that cost more on one side than on the other.
//!
//! A row that reaches the node has a cheaper side (its *sign*) and a difference (its *weight*); the loss of a test is
//! the weight of the rows on their costlier side. The node solver minimises a logistic surrogate of it; the functions
//! here work on that 0/1 loss itself:
//!
//! | function | what it finds | cost, m rows, w weights |
//! |---|---|---|
//! | [`ReducedProblem::best_bias`] | the best bias for given weights, by a sweep over the scores | O(m (w + log m)) |
//! | [`ReducedProblem::best_scale`] | the scale of least penalised logistic loss | O(m w), then O(m) a Newton step |
//! | [`ReducedProblem::refine`] | one weight after the other moved to its best value, or to 0 | O(m log m) a weight |
//!
//! Scores and losses that differ by rounding only count as equal ([`TIE`], [`MIN_GAP`]), and a bias or weight stays
//! inside the gap between two scores ([`GUARD`]), so that no row's side depends on a last bit.
//!
//! Symbols: the score of row i is w . x_i + b, it goes left where that is below 0; c_i is `weight`, y_i is `sign`; the
//! paper's lambda is `lambda`, phi is [`Plane::norm`]; losses are in the unit of the costs.

use crate::memory;
use crate::rows::Rows;
use crate::tree::Plane;
use crate::tree::test::{is_left, sums};

/// Losses closer than this share of the problem's weight are equal.
pub const TIE: f64 = 1e-9;
/// The logistic problem has at least this penalty, as a share of the weight: without any it may have no minimum.
pub const MIN_PENALTY: f64 = 1e-7;
/// Scores closer than this share of their range are equal: rounding must not tell them apart.
const MIN_GAP: f64 = 1e-10;
/// A bias or weight stays this share of the gap away from the scores around it, so that rounding does not decide.
const GUARD: f64 = 0.05;
/// Changes of a weight by more than this times its size are not tried: tests far from the present one are the solver's
/// task.
const MAX_CHANGE: f64 = 2.0;

/// The share of a column in phi; no shares: 1.
fn share(shares: Option<&[f64]>, column: u32) -> f64 {
    shares.map_or(1.0, |shares| shares[column as usize])
}

/// A plane, and the weight of the rows it sends to their costlier side.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The plane.
    pub plane: Plane,
    /// The weight of the rows on their costlier side.
    pub loss: f64,
}

/// The rows that are not indifferent, in the order of the node's rows.
#[derive(Debug)]
pub struct ReducedProblem {
    /// The rows.
    pub rows: Vec<u32>,
    /// Whether the right side is the cheaper one.
    pub sign: Vec<bool>,
    /// How much cheaper.
    pub weight: Vec<f64>,
    /// Loss of sending all rows left, and all right.
    pub all: [f64; 2],
}

impl ReducedProblem {
    /// `rows`: those of the node, by number. `costs`: of these rows on the left, and on the right. Rows that cost the
    /// same on both sides are left out. O(rows).
    pub fn new(rows: &[u32], costs: [&[f64]; 2]) -> Self {
        let mut reduced =
            ReducedProblem { rows: vec![], sign: vec![], weight: vec![], all: [0.0; 2] };
        for ((&row, left), right) in rows.iter().zip(costs[0]).zip(costs[1]) {
            let difference = (left - right).abs();
            if difference > 0.0 {
                memory::push(&mut reduced.rows, row, "the problem of a node");
                memory::push(&mut reduced.sign, right < left, "the problem of a node");
                memory::push(&mut reduced.weight, difference, "the problem of a node");
                reduced.all[usize::from(right >= left)] += difference;
            }
        }
        reduced
    }

    /// Weight of all rows.
    pub fn total(&self) -> f64 {
        self.all[0] + self.all[1]
    }

    /// Weight of the rows on their costlier side. `goes_right`: one entry per row of the problem, in their order.
    pub fn loss(&self, goes_right: impl IntoIterator<Item = bool>) -> f64 {
        let rows = self.sign.iter().zip(goes_right).zip(&self.weight);
        rows.filter(|((sign, right), _)| **sign != *right).map(|(_, weight)| weight).sum()
    }

    /// The loss of a plane on the given rows, and whether rows go both ways.
    pub fn judge(&self, rows: Rows<'_, '_>, plane: &Plane) -> (f64, bool) {
        let scores = plane.sums(rows, &self.rows);
        let left = scores.iter().filter(|score| is_left(**score)).count();
        (self.loss(scores.iter().map(|score| !is_left(*score))), left > 0 && left < scores.len())
    }

    /// The bias that sends the least weight to the costlier side; none if all rows then go one way. Among equally good
    /// gaps between scores the one nearest to `hint` is taken, and in it `hint` itself, away from the ends.
    pub fn best_bias(&self, rows: Rows<'_, '_>, weights: &[(u32, f64)], hint: f64) -> Option<f64> {
        let scores = sums(rows, &self.rows, weights, 0.0);
        let mut order: Vec<u32> = memory::collected(0..scores.len() as u32, "the order of scores");
        order.sort_unstable_by(|&a, &b| {
            scores[a as usize].total_cmp(&scores[b as usize]).then(a.cmp(&b))
        });
        let at = |i: usize| scores[order[i] as usize];
        let equal = MIN_GAP * (at(order.len().checked_sub(1)?) - at(0));
        // losses[i]: of sending the first i rows left.
        let mut losses =
            memory::filled(f64::INFINITY, order.len() + 1, "the losses of a node's cuts");
        let mut loss = self.all[1];
        for i in 0..=order.len() {
            if i > 0 {
                let row = order[i - 1] as usize;
                loss += if self.sign[row] { self.weight[row] } else { -self.weight[row] };
            }
            if i == 0 || i == order.len() || at(i) - at(i - 1) > equal {
                losses[i] = loss;
            }
        }
        let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
        let cut = -hint;
        let mut nearest: Option<(f64, f64, f64)> = None;
        for (i, &loss) in losses.iter().enumerate().skip(1).take(order.len().max(1) - 1) {
            if loss <= least + TIE * self.total() {
                let (below, above) = (at(i - 1), at(i));
                let distance = (below - cut).max(cut - above).max(0.0);
                if nearest.is_none_or(|best| distance < best.0) {
                    nearest = Some((distance, below, above));
                }
            }
        }
        let (_, below, above) = nearest?;
        let guard = GUARD * (above - below);
        Some(-cut.max(below + guard).min(above - guard))
    }

    /// The scale of a plane at which its penalised logistic loss is least: 0 if the plane is not worth its penalty.
    /// Rows go the same way at every other scale, so this is what planes are compared at.
    pub fn best_scale(
        &self,
        rows: Rows<'_, '_>,
        plane: &Plane,
        lambda: f64,
        shares: Option<&[f64]>,
    ) -> f64 {
        let mut scores = plane.sums(rows, &self.rows);
        scores.iter_mut().zip(&self.sign).for_each(|(score, sign)| {
            if !sign {
                *score = -*score;
            }
        });
        let total = self.total();
        if total == 0.0 {
            return 1.0;
        }
        let penalty = lambda.max(MIN_PENALTY * total) * plane.norm(shares);
        let at_zero: f64 = scores.iter().zip(&self.weight).map(|(s, w)| s * w / 2.0).sum();
        if at_zero <= penalty {
            return 0.0;
        }
        // The derivative rises with the scale; Newton steps towards its zero, kept in a bracket.
        let (mut low, mut high, mut scale) = (0.0, f64::INFINITY, 1.0);
        for _ in 0..60 {
            let (mut first, mut second) = (penalty, 0.0);
            for (&score, &weight) in scores.iter().zip(&self.weight) {
                let p = 1.0 / (1.0 + (scale * score).exp());
                first -= weight * score * p;
                second += weight * score * score * p * (1.0 - p);
            }
            if first.abs() <= 1e-4 * penalty || !(1e-9..1e9).contains(&scale) {
                break;
            }
            if first > 0.0 {
                high = scale
            } else {
                low = scale
            }
            let newton = scale - first / second;
            scale = if newton > low && newton < high && newton < 8.0 * scale {
                newton
            } else if high.is_infinite() {
                4.0 * scale
            } else {
                low / 2.0 + high / 2.0
            };
        }
        scale
    }

    /// Coordinate descent on the loss itself: one weight after the other moves to where the fewest rows lie on their
    /// costlier side, or to 0 where that costs less than the weight's share of the penalty; then the bias. The penalty
    /// does not grow.
    pub fn refine(
        &self,
        rows: Rows<'_, '_>,
        start: Candidate,
        lambda: f64,
        shares: Option<&[f64]>,
        n_sweeps: usize,
    ) -> Candidate {
        let margin = TIE * self.total();
        let before = start.loss + lambda * start.plane.norm(shares);
        // What the norm may be; the plane is brought to it at the end.
        let mut room = start.plane.norm(shares);
        let (mut plane, mut loss) = (start.plane.clone(), start.loss);
        let mut scores = plane.sums(rows, &self.rows);
        let mut cells = vec![];
        let mut ends = vec![];
        for _ in 0..n_sweeps {
            let mut moved = false;
            for at in 0..plane.weights.len() {
                let (column, weight) = plane.weights[at];
                if weight == 0.0 {
                    continue;
                }
                rows.cells(&self.rows, column, &mut cells);
                let saved = room * weight.abs() * share(shares, column) / plane.norm(shares);
                let (new, new_loss) =
                    self.best_weight(&scores, &cells, weight, lambda * saved, &mut ends);
                let gain = loss - new_loss + if new == 0.0 { lambda * saved } else { 0.0 };
                if gain <= margin {
                    continue;
                }
                (plane.weights[at].1, loss, moved) = (new, new_loss, true);
                if new == 0.0 {
                    room -= saved;
                }
                for (score, x) in scores.iter_mut().zip(&cells) {
                    *score += (new - weight) * x;
                }
            }
            plane.weights.retain(|w| w.1 != 0.0);
            if plane.weights.is_empty() {
                return start;
            }
            if let Some(bias) = self.best_bias(rows, &plane.weights, plane.bias) {
                let moved_plane = Plane { bias, ..plane.clone() };
                let (new_loss, splits) = self.judge(rows, &moved_plane);
                if splits && new_loss < loss - margin {
                    (plane, loss, moved) = (moved_plane, new_loss, true);
                }
            }
            if !moved {
                break;
            }
            scores = plane.sums(rows, &self.rows);
        }
        let scale = room / plane.norm(shares);
        let plane = plane.scaled(scale);
        let (loss, splits) = self.judge(rows, &plane);
        let value = loss + lambda * plane.norm(shares);
        if splits && value < before - margin { Candidate { plane, loss } } else { start }
    }

    /// The value of one weight with the least loss, and that loss; 0 if its loss is more by less than `price`.
    /// `scores`: with the weight as it is; `cells`: its column, both with an entry per row of the problem.
    ///
    /// A row changes sides at one value of the weight, so the loss is a step function of it: a sweep over the sorted
    /// steps finds the lowest one. `ends`: a buffer.
    fn best_weight(
        &self,
        scores: &[f64],
        cells: &[f64],
        weight: f64,
        price: f64,
        ends: &mut Vec<(f64, f64)>,
    ) -> (f64, f64) {
        let reach = MAX_CHANGE * weight.abs();
        // Changes of the weight at which a row changes sides, and what the loss then changes by.
        ends.clear();
        let mut loss = 0.0;
        for (((&score, &x), &sign), &cost) in
            scores.iter().zip(cells).zip(&self.sign).zip(&self.weight)
        {
            let change = -score / x;
            // The side the row is on at the lower end of the reach.
            let right = score - reach * x >= 0.0;
            if right != sign {
                loss += cost;
            }
            if x != 0.0 && change.abs() < reach {
                ends.push((change, if right == sign { cost } else { -cost }));
            }
        }
        ends.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (mut best, mut zero) = ((weight, f64::INFINITY), f64::INFINITY);
        let mut below = -reach;
        for i in 0..=ends.len() {
            let above = ends.get(i).map_or(reach, |end| end.0);
            if above - below > MIN_GAP * reach {
                let guard = GUARD * (above - below);
                if loss < best.1 {
                    // The smallest change.
                    best = (weight + 0f64.max(below + guard).min(above - guard), loss);
                }
                if below < -weight && -weight < above {
                    zero = loss;
                }
            }
            below = above;
            if let Some(end) = ends.get(i) {
                loss += end.1;
            }
        }
        if zero - price < best.1 { (0.0, zero) } else { best }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use ndarray::Array2;

    fn problem(seed: u64) -> (Array2<f64>, ReducedProblem) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let n = 60;
        let x = Array2::from_shape_fn((n, 3), |_| f64::from(rng.u8(..9)) - 4.0);
        // The right side is cheaper where x0 - x1 / 2 is large, but for some noise.
        let costs: Vec<[f64; 2]> = (0..n)
            .map(|i| {
                let noise = f64::from(rng.u8(..7)) - 3.0;
                [(x[[i, 0]] - x[[i, 1]] / 2.0 + noise).max(0.0), f64::from(rng.u8(..3))]
            })
            .collect();
        let rows: Vec<u32> = (0..n as u32).collect();
        let left: Vec<f64> = costs.iter().map(|c| c[0]).collect();
        let right: Vec<f64> = costs.iter().map(|c| c[1]).collect();
        (x, ReducedProblem::new(&rows, [&left, &right]))
    }

    fn loss_at(
        reduced: &ReducedProblem,
        rows: Rows<'_, '_>,
        weights: &[(u32, f64)],
        bias: f64,
    ) -> f64 {
        reduced.judge(rows, &Plane { weights: weights.to_vec(), bias }).0
    }

    #[test]
    fn no_bias_is_better_than_the_best() {
        for seed in 0..30 {
            let (x, reduced) = problem(seed);
            let table = Table::from_matrix(x.view()).unwrap();
            let rows = Rows::Table(&table);
            let weights = [(0, 0.7), (1, -0.3), (2, 0.45)];
            let bias = reduced.best_bias(rows, &weights, 0.1).unwrap();
            let best = loss_at(&reduced, rows, &weights, bias);
            // Some gap that sends rows both ways, by trying them all.
            let scores = sums(rows, &reduced.rows, &weights, 0.0);
            let least = scores
                .iter()
                .map(|s| -(s + 1e-9))
                .map(|bias| Plane { weights: weights.to_vec(), bias })
                .filter_map(|plane| Some(reduced.judge(rows, &plane)).filter(|j| j.1))
                .map(|judged| judged.0)
                .fold(f64::INFINITY, f64::min);
            assert!(best <= least + 1e-9, "seed {seed}: {best} {least}");
        }
    }

    #[test]
    fn refining_lowers_the_loss_and_not_at_the_price_of_a_larger_norm() {
        let mut better = 0;
        for seed in 0..30 {
            let (x, reduced) = problem(seed);
            let table = Table::from_matrix(x.view()).unwrap();
            let rows = Rows::Table(&table);
            let plane = Plane { weights: vec![(0, 0.7), (1, -0.3), (2, 0.45)], bias: 0.05 };
            let (loss, _) = reduced.judge(rows, &plane);
            let start = Candidate { plane: plane.clone(), loss };
            let found = reduced.refine(rows, start, 0.5, None, 3);
            assert_eq!(reduced.judge(rows, &found.plane).0, found.loss);
            assert!(found.plane.norm(None) <= plane.norm(None) * (1.0 + 1e-12));
            assert!(found.loss + 0.5 * found.plane.norm(None) <= loss + 0.5 * plane.norm(None));
            better += usize::from(found.loss < loss);
        }
        assert!(better > 20, "{better}");
    }

    #[test]
    fn the_best_scale_minimises_the_penalised_logistic_loss() {
        let (x, reduced) = problem(3);
        let table = Table::from_matrix(x.view()).unwrap();
        let rows = Rows::Table(&table);
        let plane = Plane { weights: vec![(0, 2.0), (2, -1.0)], bias: 0.3 };
        let value = |scale: f64| {
            let plane = plane.clone().scaled(scale);
            let scores = plane.sums(rows, &reduced.rows);
            let loss: f64 = scores
                .iter()
                .zip(&reduced.sign)
                .zip(&reduced.weight)
                .map(|((s, sign), w)| w * (if *sign { -s } else { *s }).exp().ln_1p())
                .sum();
            loss + 0.2 * plane.norm(None)
        };
        let scale = reduced.best_scale(rows, &plane, 0.2, None);
        for other in [0.5, 0.9, 1.1, 2.0] {
            assert!(value(scale) < value(scale * other), "{other}");
        }
    }
}
