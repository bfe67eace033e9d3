//! Costs and means of sparse rows, without a pass over the cells that are not stored. Symbols as in [`super`]; m is the
//! number of stored cells.
//!
//! Columns keep their origin 0, so that these cells stay 0; only units divide. A label's cost is
//! ‖x‖² - 2⟨x, μ⟩ + ‖μ‖², its last two terms added up in two doubles (Knuth's two-sum): it is off by a few units in the
//! last place of ‖x‖² + ‖μ‖², and differences that small are no regret. Spreads are sums of positive terms: squares of
//! stored cells about the mean, and the mean's square for the weight of the others.

use super::labels::{LabelCosts, Metric};
use super::means::GroupMeans;
use super::units::Units;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::rows::CsrRows;

/// Rows of a task.
const ROWS_PER_TASK: usize = 1024;
/// Differences of costs below this share of what they were added up from are rounding.
const ROUNDING_OF_TERMS: f64 = 8.0 * f64::EPSILON;

/// As [`super::label_costs`], in O(m k).
///
/// # Errors
/// As [`super::label_costs`].
pub(super) fn label_costs(
    matrix: &CsrRows<'_>,
    units: &Units,
    centers: &[f64],
    metric: Metric,
    weights: Option<&[f64]>,
) -> Result<LabelCosts> {
    let (n, d) = (matrix.n_rows(), matrix.n_columns());
    let k = centers.len() / d.max(1);
    Error::check_len("centers", centers.len(), k * d, "entries")?;
    let size = |x: f64| if metric == Metric::Manhattan { x.abs() } else { x * x };
    let size_of = |center: &[f64]| center.iter().map(|&x| size(x)).sum();
    let sizes: Vec<f64> = centers.chunks(d.max(1)).map(size_of).collect();
    // By column, as the cells of a row are read.
    let mut by_column: Vec<f64> = memory::zeros(k * d, "the centers");
    for (label, center) in centers.chunks(d.max(1)).enumerate() {
        center.iter().enumerate().for_each(|(f, &x)| by_column[f * k + label] = x);
    }
    let mut regrets: Vec<f64> = memory::zeros(n * k, "the regrets of the rows");
    let mut nearest: Vec<u32> = memory::zeros(n, "the labels of the rows");
    let tasks = regrets.chunks_mut(ROWS_PER_TASK * k.max(1)).zip(nearest.chunks_mut(ROWS_PER_TASK));
    let minima = parallel::map(tasks.enumerate(), |(task, (regrets, nearest))| {
        let (mut costs, mut rest, mut minimum) = (vec![0.0; k], vec![0.0; k], 0.0);
        let first = task * ROWS_PER_TASK;
        for (row, (regrets, nearest)) in (first..).zip(regrets.chunks_mut(k).zip(nearest)) {
            costs.copy_from_slice(&sizes);
            rest.fill(0.0);
            let mut own = 0.0; // of the row
            let (columns, cells) = matrix.row(row);
            for (&column, x) in columns.iter().zip(cells) {
                let x = x / units.scale[column as usize];
                let of_column = &by_column[column as usize * k..][..k];
                match metric {
                    Metric::SquaredEuclidean => {
                        own += x * x;
                        add(&mut costs, &mut rest, of_column, |center| -2.0 * x * center);
                    }
                    Metric::Manhattan => add(&mut costs, &mut rest, of_column, |center| {
                        (x - center).abs() - center.abs()
                    }),
                }
            }
            for (cost, rest) in costs.iter_mut().zip(&rest) {
                *cost = (own + (*cost + rest)).max(0.0);
            }
            let weight = weights.map_or(1.0, |weights| weights[row]);
            let (cheapest, least) = regrets_of(&costs, |label| own + sizes[label], weight, regrets);
            *nearest = cheapest as u32;
            minimum += weight * least;
        }
        minimum
    });
    let minimum: f64 = minima.iter().sum();
    if !minimum.is_finite() || regrets.iter().any(|regret| !regret.is_finite()) {
        return Err(super::labels::overflow());
    }
    Ok(LabelCosts { regrets, nearest, minimum })
}

/// Adds a term for every label to sums of two doubles.
#[inline(always)]
fn add(high: &mut [f64], low: &mut [f64], centers: &[f64], term: impl Fn(f64) -> f64) {
    for ((high, low), &center) in high.iter_mut().zip(low).zip(centers) {
        let x = term(center);
        let sum = *high + x;
        let back = sum - *high;
        *low += (*high - (sum - back)) + (x - back);
        *high = sum;
    }
}

/// Writes the weighted regrets of a row's costs; returns its cheapest label, the lowest among equals, and that cost.
/// `terms`: the size of what a label's cost was added up from.
fn regrets_of(
    costs: &[f64],
    terms: impl Fn(usize) -> f64,
    weight: f64,
    regrets: &mut [f64],
) -> (usize, f64) {
    let mut cheapest = 0;
    for label in 1..costs.len() {
        if costs[label] < costs[cheapest] {
            cheapest = label;
        }
    }
    let least = costs[cheapest];
    for (label, (regret, &cost)) in regrets.iter_mut().zip(costs).enumerate() {
        let apart = cost - least;
        let rounding = ROUNDING_OF_TERMS * (terms(label) + terms(cheapest));
        let is_equal = apart <= rounding || apart <= super::labels::ROUNDING * cost;
        *regret = if is_equal { 0.0 } else { weight * apart };
    }
    // Of labels that cost the same but for rounding the lowest is the nearest.
    (regrets.iter().position(|&regret| regret == 0.0).unwrap_or(cheapest), least)
}

/// As [`super::group_means`], in O(m + d n_groups) and without a guess: `near` has the means of groups without rows.
///
/// # Errors
/// As [`super::group_means`].
pub(super) fn group_means(
    matrix: &CsrRows<'_>,
    units: &Units,
    groups: &[u32],
    n_groups: usize,
    weights: Option<&[f64]>,
    near: &[f64],
) -> Result<GroupMeans> {
    let (n, d) = (matrix.n_rows(), matrix.n_columns());
    Error::check_labels(groups, n, n_groups)?;
    Error::check_len("near", near.len(), n_groups * d, "entries")?;
    let weight_of = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let weight = super::group_weights(groups, n_groups, weights);
    let mut n_rows = vec![0usize; n_groups];
    groups.iter().for_each(|&group| n_rows[group as usize] += 1);
    // Number and weight of the stored cells, and their sums.
    const WHAT: &str = "the means of groups";
    let mut stored: Vec<(u32, f64)> = memory::zeros(n_groups * d, WHAT);
    let mut means: Vec<f64> = memory::zeros(n_groups * d, WHAT);
    for_each_cell(matrix, groups, |row, i, x| {
        stored[i].0 += 1;
        stored[i].1 += weight_of(row);
        means[i] += weight_of(row) * x;
    });
    for (group, &weight) in weight.iter().enumerate() {
        for i in group * d..(group + 1) * d {
            means[i] = if weight > 0.0 { means[i] / weight } else { near[i] };
        }
    }
    let mut apart: Vec<f64> = memory::zeros(n_groups * d, WHAT);
    let mut spread = vec![0.0; n_groups];
    for_each_cell(matrix, groups, |row, i, x| {
        let difference = x - means[i];
        apart[i] += weight_of(row) * difference;
        let of_unit = difference / units.scale[i % d];
        spread[i / d] += weight_of(row) * (of_unit * of_unit);
    });
    for (group, &weight) in weight.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        for f in 0..d {
            let i = group * d + f;
            let (scale, mean) = (units.scale[f], means[i]);
            if (stored[i].0 as usize) < n_rows[group] {
                let not_stored = (weight - stored[i].1).max(0.0);
                apart[i] -= not_stored * mean;
                spread[group] += not_stored * (mean / scale).powi(2);
            }
            let moved = apart[i] / weight;
            means[i] = mean + moved;
            apart[i] = (moved - (means[i] - mean)) / scale;
        }
    }
    Ok(GroupMeans { weight, means, rest: apart, spread, observed: None })
}

/// Calls `visit(row, entry, cell)` for every stored cell in the order of the rows; `entry` is that of the row's group and
/// the cell's column in a matrix n_groups x d.
fn for_each_cell(matrix: &CsrRows<'_>, groups: &[u32], mut visit: impl FnMut(usize, usize, f64)) {
    for (row, &group) in groups.iter().enumerate() {
        let (columns, cells) = matrix.row(row);
        for (&column, &x) in columns.iter().zip(cells) {
            visit(row, group as usize * matrix.n_columns() + column as usize, x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::{self, Units};
    use crate::rows::{Csr, Rows};
    use crate::table::Table;
    use ndarray::Array2;

    #[test]
    fn sparse_rows_cost_what_their_table_does() {
        let x = Array2::from_shape_fn((90, 4), |(i, j)| match (i * 7 + j * 5) % 11 {
            0..=6 if j < 3 => 0.0,
            cell => cell as f64 - 8.25,
        });
        let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
        for row in x.rows() {
            for (j, &cell) in row.iter().enumerate().filter(|(_, cell)| **cell != 0.0) {
                indices.push(j as i64);
                values.push(cell);
            }
            indptr.push(values.len() as i64);
        }
        let csr = Csr::from_i64(&indptr, &indices, &values, 4).unwrap();
        let sparse = Rows::sparse(&csr).unwrap();
        let table = Table::from_matrix(x.view()).unwrap();
        let units = Units { shift: vec![0.0; 4], scale: vec![1.0, 2.0, 0.5, 3.0] };
        let centers: Vec<f64> = (0..12).map(|i| f64::from(i % 5) - 1.5).collect();
        let weights: Vec<f64> = (0..90).map(|i| 0.5 + f64::from(i % 3)).collect();
        let groups: Vec<u32> = (0..90).map(|i| i % 3).collect();
        let close = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).for_each(|(a, b)| {
                assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} {b}");
            });
        };
        for weights in [None, Some(&weights[..])] {
            for metric in [Metric::SquaredEuclidean, Metric::Manhattan] {
                let of = |rows: Rows<'_, '_>| {
                    costs::label_costs(rows, &units, &centers, metric, &[], weights).unwrap()
                };
                let (a, b) = (of(sparse), of((&table).into()));
                assert_eq!(a.nearest, b.nearest);
                close(&a.regrets, &b.regrets);
                close(&[a.minimum], &[b.minimum]);
            }
            let near = [7.0; 16];
            let of = |rows: Rows<'_, '_>| {
                costs::group_means(rows, &units, &groups, 4, weights, &near).unwrap()
            };
            let (a, b) = (of(sparse), of((&table).into()));
            close(&a.weight, &b.weight);
            close(&a.means, &b.means);
            close(&a.spread, &b.spread);
            assert!(a.rest.iter().all(|rest| rest.abs() < 1e-15));
        }
    }

    #[test]
    fn equal_rows_cost_nothing_and_ties_are_ties() {
        // Rows of tenths: 0.1 + 0.2 is not 0.3, and the costs about the two centers are equal.
        let values = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3];
        let csr = Csr::from_i64(&[0, 3, 6], &[0, 1, 2, 0, 1, 2], &values, 4).unwrap();
        let sparse = Rows::sparse(&csr).unwrap();
        let units = Units { shift: vec![0.0; 4], scale: vec![1.0; 4] };
        let centers = [0.3, 0.1, 0.2, 0.1, 0.3, 0.1, 0.2, -0.1, 0.1, 0.2, 0.3, 0.0];
        let found =
            costs::label_costs(sparse, &units, &centers, Metric::SquaredEuclidean, &[], None)
                .unwrap();
        assert_eq!(found.nearest, [2, 2]);
        assert!(found.minimum < 1e-15);
        let two = &centers[..8];
        let found = costs::label_costs(sparse, &units, two, Metric::SquaredEuclidean, &[], None);
        assert_eq!(found.unwrap().regrets, [0.0; 4]);
        let means = costs::group_means(sparse, &units, &[0, 0], 1, None, &[0.0; 4]).unwrap();
        assert_eq!((means.means, means.spread), (vec![0.1, 0.2, 0.3, 0.0], vec![0.0]));
    }
}
