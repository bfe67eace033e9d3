//! Means of groups of rows and the squared distances to them, accurate wherever the groups lie.

use super::Units;
use super::groups::{RowGroups, group_weights, moments_with_gaps, observed_weights, sum_cells};
use crate::error::{Error, Result};
use crate::exact::ExactSums;
use crate::rows::Rows;
use crate::table::Table;

/// Weight, mean and spread of each group of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupMeans {
    /// Weight of each group.
    pub weight: Vec<f64>,
    /// n_groups x d, row-major: the means of the observed cells in the columns' own units, rounded; what `near` has for
    /// groups without any, and for levels.
    pub means: Vec<f64>,
    /// n_groups x d, row-major, in the table's units: the means less the rounded ones.
    pub rest: Vec<f64>,
    /// Weighted sum of the squared distances of each group's rows to its mean, in the table's units, over the observed
    /// cells of numbers.
    pub spread: Vec<f64>,
    /// n_groups x d, row-major: weight of the observed cells; none if no cell of any column is missing.
    pub observed: Option<Vec<f64>>,
}

/// Squares about the first guess of the means that exceed the spreads by this factor are taken anew about the means.
const MAX_SQUARES_BY_SPREAD: f64 = 1e4;

/// The means of groups of rows and the squared distances to them. Together the spreads have the relative accuracy of
/// a sum of terms that are all positive, wherever the groups lie: a cell is compared with a point of its own group,
/// which is exact where they are near each other, and what that point is off the mean is taken off again.
///
/// `groups`, `weights`: as for [`group_sums`](crate::costs::group_sums). `near`: n_groups x d, row-major, in the columns' own units: a guess of
/// the means. One pass over the table, O(n d), and one more if the guess is poor.
///
/// # Errors
/// As [`group_sums`](crate::costs::group_sums); [`Error::Shape`] if `near` has another length.
pub fn group_means<'a, 't: 'a>(
    rows: impl Into<Rows<'a, 't>>,
    units: &Units,
    groups: &[u32],
    n_groups: usize,
    weights: Option<&[f64]>,
    near: &[f64],
) -> Result<GroupMeans> {
    let table = match rows.into() {
        Rows::Table(table) => table,
        Rows::Sparse(matrix) => {
            return super::sparse::group_means(matrix, units, groups, n_groups, weights, near);
        }
    };
    let d = table.n_features();
    Error::check_labels(groups, table.n_samples(), n_groups)?;
    Error::check_len("near", near.len(), n_groups * d, "entries")?;
    let row_groups = RowGroups { groups, n_groups, weights };
    let first = spreads_about(near.to_vec(), false, table, units, row_groups);
    if is_good_guess(&first.1, &first.0.spread) {
        return Ok(first.0);
    }
    Ok(spreads_about(first.0.means, true, table, units, row_groups).0)
}

/// Whether squares about guesses of the means are not so much larger than the spreads that digits are lost.
pub(crate) fn is_good_guess(squares: &[f64], spread: &[f64]) -> bool {
    squares.iter().sum::<f64>() <= MAX_SQUARES_BY_SPREAD * spread.iter().sum::<f64>()
}

/// What [`group_means`] returns, from differences to the points `means`, and the sum of their squares by group.
/// `is_mean`: whether these are the rounded means, else a guess.
fn spreads_about(
    mut means: Vec<f64>,
    is_mean: bool,
    table: &Table<'_>,
    units: &Units,
    row_groups: RowGroups<'_>,
) -> (GroupMeans, Vec<f64>) {
    let (d, RowGroups { groups, n_groups, weights }) = (table.n_features(), row_groups);
    // By group the sum of the differences to its point, and that of their squares.
    let mut points = vec![0.0; n_groups * d]; // by column, one beside the other
    for (i, point) in means.iter().enumerate() {
        points[i % d * n_groups + i / d] = *point;
    }
    let scan = || sum_cells(table, units, row_groups, &points, true);
    let (weight, columns) = rayon::join(|| group_weights(groups, n_groups, weights), scan);
    let has_gaps = |feature: usize| columns[feature].is_none();
    let point = |group: usize, feature: usize| means[group * d + feature];
    let with_gaps = moments_with_gaps(table, units, row_groups, true, has_gaps, point);
    let observed = observed_weights(&with_gaps, &weight, d);
    let rounded = |sums: &ExactSums| {
        (0..n_groups).map(|i| [sums.rounded(2 * i), sums.rounded(2 * i + 1)]).collect()
    };
    let mut columns: Vec<Vec<[f64; 2]>> =
        columns.iter().map(|sums| sums.as_ref().map_or(vec![], rounded)).collect();
    for (feature, moments) in with_gaps {
        columns[feature] = moments.iter().map(|moments| [moments.sum, moments.squares]).collect();
    }
    let of_groups = Moments {
        weight: &weight,
        observed: observed.as_deref(),
        columns: &columns,
        n_samples: table.n_samples(),
    };
    let (rest, spread, total) = of_groups.settle(&mut means, is_mean, &units.scale);
    (GroupMeans { weight, means, rest, spread, observed }, total)
}

/// What rows of groups add up to about a point of each group.
pub(crate) struct Moments<'a> {
    /// Of each group.
    pub weight: &'a [f64],
    /// n_groups x d; none if no cell is missing.
    pub observed: Option<&'a [f64]>,
    /// By column and group: the weighted sum of the differences to the point, in units, and that of their squares.
    pub columns: &'a [Vec<[f64; 2]>],
    /// Number of rows.
    pub n_samples: usize,
}

impl Moments<'_> {
    /// Makes of the points `means` (n_groups x d) the rounded means; returns what rounding left of them, by group the
    /// spread, and by group the sum of the squares about the points. `is_mean`: whether the points were the rounded
    /// means, else a guess.
    pub fn settle(
        &self,
        means: &mut [f64],
        is_mean: bool,
        scale: &[f64],
    ) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let (d, n_groups) = (scale.len(), self.weight.len());
        // Equal rows differ from their rounded mean by the same number: what their sums leave is rounding.
        let rounding = if is_mean { 8.0 * f64::EPSILON * self.n_samples as f64 } else { 0.0 };
        let mut rest = vec![0.0; n_groups * d];
        let (mut spread, mut total) = (vec![0.0; n_groups], vec![0.0; n_groups]);
        for (feature, column) in self.columns.iter().enumerate() {
            for (group, &[sum, squares]) in column.iter().enumerate() {
                let (scale, i) = (scale[feature], group * d + feature);
                let weight = self.observed.map_or(self.weight[group], |observed| observed[i]);
                if weight <= 0.0 {
                    continue;
                }
                let (point, apart) = (means[i], sum / weight);
                means[i] += apart * scale;
                rest[i] = apart - (means[i] - point) / scale;
                let left = squares - sum * sum / weight;
                spread[group] += if left > rounding * squares { left } else { 0.0 };
                total[group] += squares;
            }
        }
        (rest, spread, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn spreads_keep_their_digits_far_from_the_origin_and_beside_a_far_row() {
        // Eighths are exact, so that integers can count the squares: group g at g * 1e9, the last one a single row.
        let steps: Vec<i64> = (0..90).map(|i| (i * 37) % 64).collect();
        let cells =
            steps.iter().enumerate().map(|(i, &step)| (i % 3) as f64 * 1e9 + step as f64 / 8.0);
        let x = Array2::from_shape_vec((91, 1), cells.chain([1e15]).collect()).unwrap();
        let table = Table::from_matrix(x.view()).unwrap();
        let groups: Vec<u32> = (0..90).map(|i| i % 3).chain([3]).collect();
        for scale in [1.0, 2.0] {
            let units = Units { shift: vec![0.125], scale: vec![scale] };
            let found = group_means(&table, &units, &groups, 5, None, &[0.125; 5]).unwrap();
            for group in 0..3 {
                let of_group: Vec<i64> = steps.iter().skip(group).step_by(3).copied().collect();
                let sum: i64 = of_group.iter().sum();
                // 30 sum x^2 - (sum x)^2, in eighths.
                let squares = 30 * of_group.iter().map(|x| x * x).sum::<i64>() - sum * sum;
                let spread = squares as f64 / (30.0 * 64.0 * scale * scale);
                assert!((found.spread[group] - spread).abs() <= 1e-14 * spread, "{group}");
                let mean = (found.means[group] - group as f64 * 1e9) / scale + found.rest[group];
                assert!((mean - sum as f64 / (240.0 * scale)).abs() <= 1e-14 * mean, "{group}");
            }
            assert_eq!((found.spread[3], found.spread[4]), (0.0, 0.0));
            assert_eq!((found.means[3], found.means[4], found.weight[4]), (1e15, 0.125, 0.0));
            // A good guess needs no second pass.
            let near: Vec<f64> = found.means.iter().map(|mean| mean + 1.0).collect();
            let again = group_means(&table, &units, &groups, 5, None, &near).unwrap();
            let pairs =
                |a: &[f64], b: &[f64]| a.iter().copied().zip(b.to_vec()).collect::<Vec<_>>();
            for (a, b) in pairs(&again.spread, &found.spread) {
                assert!((a - b).abs() <= 1e-13 * b, "{a} {b}");
            }
            for (a, b) in pairs(&again.means[..4], &found.means[..4]) {
                assert!((a - b).abs() <= 1e-15 * b, "{a} {b}");
            }
        }
    }
}
