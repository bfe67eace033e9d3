//! The logistic loss over the rows of a problem, with the bias at its optimum.
//!
//! For margins m_i = w . x_i and a bias b the loss is sum_i weight_i log(1 + exp(-y_i (m_i + b))).
//! [`Targets::evaluate`] finds the b that minimises it, by Newton steps kept in a bracket, so that to the solver the
//! loss is a convex function of w alone. Symbols: a_i = y_i (m_i + b); p_i = 1 / (1 + exp(a_i)), how wrong row i is;
//! r_i = y_i weight_i p_i, the negative slope of the loss by the margin; h_i = weight_i p_i (1 - p_i), its curvature.
//!
//! Weights add up to 1. A pass reads every row once, in chunks whose sums are added up in order (the same bits for any
//! number of threads), by loops without branches: exponential and logarithm are series of our own for that reason,
//! exact to the last few bits. The dual objective, for the duality gap, is the entropy of the p_i.

use crate::memory;
use crate::parallel;

use super::cells::CHUNK;

/// Least curvature of a row, as a share of the slope of its loss: a row far on the wrong side has next to none, and
/// a Newton step would take it anywhere.
const MIN_CURVATURE: f64 = 1e-3;
/// Most Newton steps for the bias, and how far the first of them may go.
const MAX_BIAS_STEPS: usize = 200;
const MAX_FIRST_BIAS_STEP: f64 = 30.0;
/// The bias is optimal when a further step is shorter than this.
const MIN_BIAS_STEP: f64 = 1e-9;

/// y_i weight_i of the rows, the weights adding up to 1.
#[derive(Debug, Clone)]
pub struct Targets(pub Vec<f64>);

/// The loss at some margins w . x_i, and its derivatives with respect to them.
pub struct State {
    /// The bias that goes with the margins.
    pub bias: f64,
    /// sum_i weight_i log(1 + exp(-y_i (margin_i + bias))).
    pub loss: f64,
    /// Its negative slope, by row.
    pub r: Vec<f64>,
    /// Its curvature, by row; see [`MIN_CURVATURE`].
    pub h: Vec<f64>,
}

impl Targets {
    /// The loss at the bias that makes it least, found by Newton steps that start from `bias` and stay between the
    /// last biases known to be too small and too large.
    pub fn evaluate(&self, margins: &[f64], bias: f64) -> State {
        let n = margins.len();
        let (r, h) = (
            memory::zeros(n, "the state of a node problem"),
            memory::zeros(n, "the state of a node problem"),
        );
        let mut state = State { bias, loss: 0.0, r, h };
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut reach = MAX_FIRST_BIAS_STEP;
        let mut near = false;
        for pass in 1..=MAX_BIAS_STEPS {
            let last = near || pass == MAX_BIAS_STEPS;
            let [loss, r, h] = if last {
                self.pass::<true>(margins, &mut state)
            } else {
                self.pass::<false>(margins, &mut state)
            };
            state.loss = loss;
            let step = r / h;
            let shortest = MIN_BIAS_STEP.max(f64::EPSILON * state.bias.abs());
            if last && (step.abs() <= shortest || high - low <= shortest || pass == MAX_BIAS_STEPS)
            {
                break;
            }
            if step.abs() > shortest {
                *(if step > 0.0 { &mut low } else { &mut high }) = state.bias;
                let next = state.bias + step.clamp(-reach, reach);
                state.bias = if low < next && next < high { next } else { 0.5 * (low + high) };
                reach = if step.abs() > reach { 2.0 * reach } else { reach };
            }
            // A step ends about as far from the optimum as the square of its length.
            near = step.abs() <= MIN_BIAS_STEP.sqrt() || high - low <= shortest;
        }
        state
    }

    /// The negative slope of row `i`'s loss.
    pub fn slope(&self, i: usize, margin: f64, bias: f64) -> f64 {
        of_row::<false>(margin + bias, self.0[i]).1
    }

    /// Sums of the loss, if it is asked for, of r and of the curvature as it is.
    fn pass<const LOSS: bool>(&self, margins: &[f64], state: &mut State) -> [f64; 3] {
        let State { bias, r, h, .. } = state;
        let parts = margins.chunks(CHUNK).zip(self.0.chunks(CHUNK));
        let parts = parts.zip(r.chunks_mut(CHUNK).zip(h.chunks_mut(CHUNK)));
        let parts = parallel::map(parts, |((margins, targets), (r, h))| {
            pass_chunk::<LOSS>(margins, targets, *bias, r, h)
        });
        let mut total = [0.0; 3];
        for part in parts {
            for (total, x) in total.iter_mut().zip(part) {
                *total += x;
            }
        }
        total
    }

    /// The dual objective at `share` times the dual point that belongs to `r`: the entropy sum_i weight_i H(p_i) of
    /// p_i = share |r_i| / weight_i. The point is feasible if no column's |sum_i share r_i x_ij| exceeds its penalty.
    pub fn dual(&self, r: &[f64], share: f64) -> f64 {
        let of_row = |(r, target): (&f64, &f64)| {
            let p = share * r / target;
            if p > 0.0 && p < 1.0 {
                -target.abs() * (p * p.ln() + (1.0 - p) * (-p).ln_1p())
            } else {
                0.0
            }
        };
        let of_chunk =
            |(r, targets): (&[f64], &[f64])| -> f64 { r.iter().zip(targets).map(of_row).sum() };
        parallel::map(r.chunks(CHUNK).zip(self.0.chunks(CHUNK)), of_chunk).iter().sum()
    }
}

/// Fills `r` and `h`; returns the sums of loss, if it is asked for, r and the curvature as it is.
/// In blocks of 64 rows, by loops that are compiled to vector code.
fn pass_chunk<const LOSS: bool>(
    margins: &[f64],
    targets: &[f64],
    bias: f64,
    r: &mut [f64],
    h: &mut [f64],
) -> [f64; 3] {
    const BLOCK: usize = 64;
    let mut sums = [0.0; 3];
    let blocks = margins.chunks(BLOCK).zip(targets.chunks(BLOCK));
    for ((margins, targets), (r, h)) in blocks.zip(r.chunks_mut(BLOCK).zip(h.chunks_mut(BLOCK))) {
        let (mut loss, mut curvature) = ([0.0; BLOCK], [0.0; BLOCK]);
        // A plain loop without branches is compiled to vector code.
        let rows = margins.iter().zip(targets).zip(&mut *r).zip(&mut *h);
        for (((((margin, target), r), h), loss), curvature) in
            rows.zip(&mut loss).zip(&mut curvature)
        {
            (*loss, *r, *curvature) = of_row::<LOSS>(margin + bias, *target);
            *h = curvature.max(MIN_CURVATURE * r.abs());
        }
        for (sum, x) in sums.iter_mut().zip([&loss[..], r, &curvature]) {
            *sum += total(x);
        }
    }
    sums
}

/// A sum in lanes.
fn total(x: &[f64]) -> f64 {
    let (blocks, rest) = x.as_chunks::<4>();
    let mut lanes = [0.0; 4];
    for block in blocks {
        for (lane, x) in lanes.iter_mut().zip(block) {
            *lane += x;
        }
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest.iter().sum::<f64>()
}

/// Loss, if it is asked for, negative slope and curvature of one row at `margin`, bias included.
#[inline(always)]
fn of_row<const LOSS: bool>(margin: f64, target: f64) -> (f64, f64, f64) {
    let weight = target.abs();
    let a = margin * 1f64.copysign(target);
    let e = exp_minus(a.abs());
    let likely = 1.0 / (1.0 + e);
    let unlikely = e * likely;
    let p = if a >= 0.0 { unlikely } else { likely };
    let loss = if LOSS { weight * ((-a).max(0.0) + ln_1p(e)) } else { 0.0 };
    (loss, target * p, weight * (likely * unlikely))
}

/// exp(-x) for x >= 0, to the last few bits; exp(-700) beyond. Without branches, unlike the library's.
#[inline(always)]
fn exp_minus(x: f64) -> f64 {
    /// ln 2 in two parts, the first with trailing zeros.
    const LN2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    /// Adding it rounds to an integer, which is then in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    /// 1 / 13!, 1 / 12!, .., 1 / 0!.
    const SERIES: [f64; 14] = {
        let mut series = [1.0; 14];
        let mut k = 13;
        while k > 0 {
            series[k - 1] = series[k] / (14 - k) as f64;
            k -= 1;
        }
        series
    };
    let x = x.min(700.0);
    let rounded = x * -std::f64::consts::LOG2_E + ROUND;
    let k = rounded - ROUND;
    let rest = (-x - k * LN2[0]) - k * LN2[1]; // within ln(2) / 2 of 0
    let series = SERIES.into_iter().reduce(|sum, c| sum * rest + c).unwrap_or(0.0);
    series * f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52)
}

/// ln(1 + x) for 0 <= x <= 1, to the last few bits, as 2 artanh(x / (2 + x)). Without branches.
#[inline(always)]
fn ln_1p(x: f64) -> f64 {
    /// 1 / 31, 1 / 29, .., 1.
    const SERIES: [f64; 16] = {
        let mut series = [1.0; 16];
        let mut k = 0;
        while k < 16 {
            series[k] = 1.0 / (31 - 2 * k) as f64;
            k += 1;
        }
        series
    };
    let z = x / (2.0 + x); // at most 1/3
    let square = z * z;
    2.0 * z * SERIES.into_iter().reduce(|sum, c| sum * square + c).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_and_logarithm_agree_with_the_library() {
        for i in 0..20_000 {
            let x = f64::from(i) * 0.035;
            let (got, expected) = (exp_minus(x), (-x).exp());
            assert!((got - expected).abs() <= 1e-15 * expected, "{x}: {got} {expected}");
            let x = f64::from(i) / 20_000.0;
            let (got, expected) = (ln_1p(x), x.ln_1p());
            assert!((got - expected).abs() <= 1e-15 * expected, "{x}: {got} {expected}");
        }
        assert_eq!(exp_minus(f64::INFINITY), exp_minus(700.0));
    }

    #[test]
    fn slope_and_curvature_are_those_of_the_loss() {
        for target in [0.3, -0.3] {
            for margin in [-30.0, -4.0, -0.5, 0.0, 0.5, 4.0, 30.0] {
                let (_, r, h) = of_row::<true>(margin, target);
                let step = 1e-4;
                let ((up, r_up, _), (down, r_down, _)) =
                    (of_row::<true>(margin + step, target), of_row::<true>(margin - step, target));
                assert!((r + (up - down) / (2.0 * step)).abs() < 1e-9, "{margin}");
                let exact = -(r_up - r_down) / (2.0 * step);
                assert!((h - exact).abs() < 1e-9, "{margin}");
            }
        }
    }

    #[test]
    fn the_bias_is_optimal_from_anywhere() {
        let targets = Targets(vec![0.2, 0.3, -0.1, -0.15, 0.05, 0.2]);
        let margins = [0.5, -40.0, 7.0, -2.0, 0.0, 90.0];
        let best = targets.evaluate(&margins, 0.0);
        assert!(best.r.iter().sum::<f64>().abs() < 1e-9);
        for bias in [-1e6, -300.0, 20.0, 1e4] {
            let state = targets.evaluate(&margins, bias);
            assert!((state.bias - best.bias).abs() < 1e-8, "{bias}: {}", state.bias);
            assert!((state.loss - best.loss).abs() < 1e-14);
        }
    }
}
