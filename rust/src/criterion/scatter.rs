//! An upper bound on what any two-sided cut of groups takes from the Gini impurity.
//!
//! | formula | here |
//! |---|---|
//! | s_v, label counts of a group; w_v, their sum; S and W, those of the node | `groups`, `totals` |
//! | d_v = s_v - w_v S / W, how a group differs from the node | `apart` |
//! | B = sum of d_v d_v' / w_v, the scatter between groups | `scatter` |
//!
//! Sides L and R save |D|^2 / w_L + |D|^2 / w_R, where D is the sum of the d_v of L, and -D that of R. Along the direction
//! e of D this is (sum of e d_v)^2 / (sum of w_v), added over both sides: at most the sum of (e d_v)^2 / w_v = e' B e, by
//! the inequality of Cauchy and Schwarz, and so at most the largest eigenvalue of B. That is at most the p-th root of the
//! trace of B^p.
//!
//! Cost: O(groups k^2), and O(k^3) for a few labels. The best set of levels takes k sorted sweeps of all groups.

/// Most labels of which the scatter is raised to a higher power than 2.
const MOST_RAISED: usize = 24;

/// How often the scatter of few labels is squared.
const N_SQUARED: i32 = 4;

/// Numbers that are added side by side: sums have a whole number of them, the rest 0.
const SIDE_BY_SIDE: usize = 8;

/// What the rounding of a bound may be, as a share of it, is less.
const ROUNDING: f64 = 1e-9;

/// No two sides of some groups save more; infinity if a group has no weight. `groups`: the label counts of each,
/// `totals.len()` numbers; `totals`: those of all.
pub(super) fn most_saved<'g>(groups: impl Iterator<Item = &'g [f64]>, totals: &[f64]) -> f64 {
    let k = totals.len();
    let all: f64 = totals.iter().sum();
    let stride = k.next_multiple_of(SIDE_BY_SIDE);
    let mut scatter = vec![0.0; k * stride];
    let mut apart = vec![0.0; stride];
    for counts in groups {
        let weight: f64 = counts.iter().sum();
        if !(weight > 0.0 && all > 0.0) {
            return f64::INFINITY;
        }
        let share = weight / all;
        for ((apart, count), total) in apart.iter_mut().zip(counts).zip(totals) {
            *apart = count - share * total;
        }
        add_products(&mut scatter, apart.iter().map(|x| x / weight), &apart);
    }
    let trace: f64 = scatter.iter().step_by(stride + 1).sum();
    if trace == 0.0 {
        return 0.0;
    }
    // As a share of the trace no power is out of range.
    scatter.iter_mut().for_each(|x| *x /= trace);
    let mut power = 2.0;
    if k <= MOST_RAISED {
        for _ in 1..N_SQUARED {
            scatter = squared(&scatter, stride);
            power *= 2.0;
        }
    }
    // The trace of a square is the sum of squares.
    let of_square: f64 = scatter.iter().map(|x| x * x).sum();
    trace * of_square.powf(1.0 / power) * (1.0 + ROUNDING)
}

/// Adds the products of all entries of `column` and `row` to a matrix, whose rows have the length of `row`.
fn add_products(matrix: &mut [f64], column: impl Iterator<Item = f64>, row: &[f64]) {
    for (sums, x) in matrix.chunks_mut(row.len()).zip(column) {
        add_multiple(sums, x, row);
    }
}

/// Adds `x` times a row to sums.
#[inline(always)]
fn add_multiple(sums: &mut [f64], x: f64, row: &[f64]) {
    let (sums, row) = (sums.as_chunks_mut::<SIDE_BY_SIDE>().0, row.as_chunks::<SIDE_BY_SIDE>().0);
    for (sums, row) in sums.iter_mut().zip(row) {
        for i in 0..SIDE_BY_SIDE {
            sums[i] += x * row[i];
        }
    }
}

/// The square of a symmetric matrix of rows of `stride` numbers.
fn squared(matrix: &[f64], stride: usize) -> Vec<f64> {
    let mut square = vec![0.0; matrix.len()];
    for (row, sums) in matrix.chunks(stride).zip(square.chunks_mut(stride)) {
        for (x, other) in row.iter().zip(matrix.chunks(stride)) {
            add_multiple(sums, *x, other);
        }
    }
    square
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criterion::label_counts::Gini;
    use crate::criterion::sums::SideCost;

    /// What the best two sides of groups save, of all.
    fn best_of_all(groups: &[Vec<f64>], totals: &[f64]) -> f64 {
        let side = |bits: u32, is_left: u32| {
            let mut sums = vec![0.0; totals.len()];
            for (_, group) in groups.iter().enumerate().filter(|(v, _)| bits >> v & 1 == is_left) {
                sums.iter_mut().zip(group).for_each(|(sum, x)| *sum += x);
            }
            Gini.cost(&sums)
        };
        let cost = Gini.cost(totals);
        let saved = |bits: u32| cost - (side(bits, 1) + side(bits, 0));
        (1..(1 << groups.len()) - 1).map(saved).fold(0.0, f64::max)
    }

    #[test]
    fn no_two_sides_save_more() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut sharpest = f64::INFINITY;
        for trial in 0..300 {
            let (k, n_groups) = (2 + trial % 5, 2 + trial / 5 % 8);
            let scale = if trial % 3 == 0 { 1e-9 } else { 1.0 };
            let mut count = |is_pure: bool| {
                let x = f64::from(random.u32(..50));
                scale * if is_pure && random.bool() { 0.0 } else { x }
            };
            let group = |_| (0..k).map(|l| count(true) + f64::from(l == 0) * scale).collect();
            let groups: Vec<Vec<f64>> = (0..n_groups).map(group).collect();
            let totals: Vec<f64> =
                (0..k).map(|l| groups.iter().map(|group| group[l]).sum()).collect();
            let most = most_saved(groups.iter().map(|group| &group[..]), &totals);
            let best = best_of_all(&groups, &totals);
            assert!(best <= most * (1.0 + 1e-12), "{groups:?}: {best} {most}");
            sharpest = sharpest.min(most / best.max(f64::MIN_POSITIVE));
        }
        // Of two groups the bound is the gain.
        assert!(sharpest < 1.0 + 1e-8, "{sharpest}");
    }

    #[test]
    fn groups_without_weight_have_no_bound() {
        let most = |groups: &[[f64; 2]]| most_saved(groups.iter().map(|x| &x[..]), &[2.0, 1.0]);
        assert_eq!(most(&[[2.0, 1.0], [1e-17, -1e-17]]), f64::INFINITY);
        assert_eq!(most(&[[2.0, 1.0]]), 0.0);
    }
}
