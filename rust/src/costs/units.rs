//! Origins and units of columns: the lower median of a sample, and the standard deviation of the observed cells.

use crate::error::{Error, Result};
use crate::exact::{self, ExactRows};
use crate::parallel;
use crate::table::Table;

use super::groups::scan_numbers;

/// Column-wise origin and unit: a cell counts as `(x - shift) / scale`. Columns of levels have the origin 0 and the
/// unit 1, which nothing reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Units {
    /// Origin of each column, one of its own values near the middle.
    pub shift: Vec<f64>,
    /// Unit of each column: the (weighted) standard deviation of its observed cells, or 1.
    pub scale: Vec<f64>,
}

impl Units {
    /// The columns' origins and, if `standardise`, their standard deviations (1 for a constant column). `weights`: of
    /// shape (n), positive; none: all 1. Two passes over the table, mean before variance: O(n d).
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not as many weights as rows.
    pub fn of(table: &Table<'_>, weights: Option<&[f64]>, standardise: bool) -> Result<Self> {
        if let Some(weights) = weights {
            Error::check_len("sample_weight", weights.len(), table.n_samples(), "rows")?;
        }
        let shift = parallel::map(0..table.n_features(), |f| middle_value(table, f));
        if !standardise {
            let scale = vec![1.0; shift.len()];
            return Ok(Units { shift, scale });
        }
        let weight = |row: usize| weights.map_or(1.0, |w| w[row]);
        let total = exact::sum((0..table.n_samples()).map(weight));
        let moment = |mean: &[f64], power: i32| -> Vec<f64> {
            // NaN for columns with gaps.
            let new = |_| ExactRows::new(1, 1);
            let sums = scan_numbers(table, new, |sum, feature, start, cells| {
                for (i, x) in cells.iter().enumerate() {
                    let apart = x - shift[feature] - mean[feature];
                    sum.add_one(0, 0, weight(start + i) * apart.powi(power));
                }
            });
            let sum = |sum: Option<ExactRows>| sum.map_or(f64::NAN, |sum| sum.finish().rounded(0));
            sums.into_iter().map(|moment| sum(moment) / total).collect()
        };
        let mean = moment(&vec![0.0; shift.len()], 1);
        let variances = moment(&mean, 2).into_iter().enumerate();
        let scale = parallel::map(variances, |(feature, variance)| match variance {
            _ if table.n_levels(feature).is_some() => 1.0,
            v if v > 0.0 && v.is_finite() => v.sqrt(),
            v => observed_deviation(table, feature, shift[feature], weights, !v.is_nan()),
        });
        Ok(Units { shift, scale })
    }
}

/// The standard deviation of the observed cells of a column that has gaps, or whose squares leave the range of doubles
/// (`divide`: cells are divided by the largest one before they are squared); 1 if they are all equal.
fn observed_deviation(
    table: &Table<'_>,
    feature: usize,
    shift: f64,
    weights: Option<&[f64]>,
    divide: bool,
) -> f64 {
    let cells = || {
        let cells = (0..table.n_samples()).map(|row| (row, table.column(feature).get(row) - shift));
        cells.filter(|(_, x)| !x.is_nan())
    };
    let largest = cells().fold(0.0, |largest: f64, (_, x)| largest.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return 1.0;
    }
    let reach = if divide { largest } else { 1.0 };
    let weight = |row: usize| weights.map_or(1.0, |w| w[row]);
    let total = exact::sum(cells().map(|(row, _)| weight(row)));
    let moment = |mean: f64, power: i32| {
        let terms = cells().map(|(row, x)| weight(row) * (x / reach - mean).powi(power));
        exact::sum(terms) / total
    };
    let variance = moment(moment(0.0, 1), 2);
    if variance > 0.0 && variance.is_finite() {
        variance.sqrt() * reach
    } else if divide {
        1.0
    } else {
        observed_deviation(table, feature, shift, weights, true)
    }
}

/// The lower median of up to 1001 cells taken at even distances, without missing ones: robust against outliers, and
/// the same row of the table whatever constant is added to the column. The first observed cell if all of these are
/// missing; 0 if all cells are, and for levels. O(1001): no pass over a column without gaps.
fn middle_value(table: &Table<'_>, feature: usize) -> f64 {
    let (n, column) = (table.n_samples(), table.column(feature));
    if column.n_levels().is_some() {
        return 0.0;
    }
    let m = n.min(1001);
    let cells = (0..m).map(|i| column.get(i * n / m));
    let mut sample: Vec<f64> = cells.filter(|x| !x.is_nan()).collect();
    if sample.is_empty() {
        return (0..n).map(|row| column.get(row)).find(|x| !x.is_nan()).unwrap_or(0.0);
    }
    let middle = (sample.len() - 1) / 2;
    *sample.select_nth_unstable_by(middle, f64::total_cmp).1
}
