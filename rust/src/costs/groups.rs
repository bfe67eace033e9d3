//! Weights and sums of groups of rows, column by column: O(n d), or O(number of stored cells) for sparse rows.
//!
//! A column is first added up as if it were complete. One whose sums are NaN has gaps, and is added up again with the
//! weight of its observed cells ([`moments_with_gaps`]).

use super::Units;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::rows::{CsrRows, Rows};
use crate::table::{Column, MISSING_LEVEL, Table};

/// Cells of a column that are looked at for gaps before it is added up.
const FIRST_CELLS: usize = 64;

/// Columns of sparse rows that one thread adds up in one go.
const COLUMNS_PER_TASK: usize = 1024;

/// Weight and column sums of each group of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSums {
    /// Weight of each group.
    pub weight: Vec<f64>,
    /// n_groups x d, row-major: weighted sums of the observed cells in the table's units; 0 for levels.
    pub sums: Vec<f64>,
    /// n_groups x d, row-major: weight of the observed cells; none if no cell of any column is missing.
    pub observed: Option<Vec<f64>>,
}

/// The groups and the weights of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowGroups<'a> {
    /// The group of each row, in `[0, n_groups)`.
    pub groups: &'a [u32],
    pub n_groups: usize,
    /// One per row; none: 1 each.
    pub weights: Option<&'a [f64]>,
}

/// Sums the rows of each group in row order. `groups`: of shape (n), each in `[0, n_groups)`; `weights`: of shape (n);
/// none: all 1. O(n d), or O(number of stored cells) for sparse rows, whose columns must have
/// the origin 0.
///
/// # Errors
/// [`Error::Value`] if a group is outside `[0, n_groups)`, or an origin of sparse rows is not 0.
pub fn group_sums<'a, 't: 'a>(
    rows: impl Into<Rows<'a, 't>>,
    units: &Units,
    groups: &[u32],
    n_groups: usize,
    weights: Option<&[f64]>,
) -> Result<GroupSums> {
    let rows = rows.into();
    Error::check_len("groups", groups.len(), rows.n_samples(), "rows")?;
    if let Some(&group) = groups.iter().find(|&&g| g as usize >= n_groups) {
        return Err(Error::Value(format!("Group {group} is not in the range [0, {n_groups}).")));
    }
    let row_groups = RowGroups { groups, n_groups, weights };
    let sum = || match rows {
        Rows::Table(table) => Ok(table_sums(table, units, row_groups)),
        Rows::Sparse(csr) => sparse_sums(csr, units, row_groups),
    };
    let (weight, sums) = rayon::join(|| group_weights(groups, n_groups, weights), sum);
    let mut sums = GroupSums { weight, sums: sums?, observed: None };
    if let Rows::Table(table) = rows {
        let point = |_, feature: usize| units.shift[feature];
        let is_nan =
            |group: usize, feature: usize| sums.sums[group * table.n_features() + feature].is_nan();
        let columns = moments_with_gaps(table, units, row_groups, is_nan, point);
        sums.observed = observed_weights(&columns, &sums.weight, table.n_features());
        for (feature, column) in columns {
            for (group, moments) in column.iter().enumerate() {
                sums.sums[group * table.n_features() + feature] = moments.sum;
            }
        }
    }
    Ok(sums)
}

/// The weight of each group: of its rows, or their number.
pub(crate) fn group_weights(groups: &[u32], n_groups: usize, weights: Option<&[f64]>) -> Vec<f64> {
    let mut sums = vec![0.0; n_groups];
    for (row, &group) in groups.iter().enumerate() {
        sums[group as usize] += weights.map_or(1.0, |w| w[row]);
    }
    sums
}

/// The sums of [`GroupSums`] for the rows of a table: n_groups x d, row-major. In tiles of the columns, each column by
/// one thread in the order of the rows.
fn table_sums(table: &Table<'_>, units: &Units, row_groups: RowGroups<'_>) -> Vec<f64> {
    let RowGroups { groups, n_groups, weights } = row_groups;
    let columns = scan_numbers(
        table,
        |_, sum| vec![sum; n_groups],
        |sums, feature, start, cells| {
            let (shift, scale) = (units.shift[feature], units.scale[feature]);
            let groups = &groups[start..start + cells.len()];
            if sums[groups[0] as usize].is_nan() {
                return; // added up with care by the caller
            }
            match weights {
                None if scale == 1.0 => {
                    for (x, &group) in cells.iter().zip(groups) {
                        sums[group as usize] += x - shift;
                    }
                }
                _ => {
                    for (i, (x, &group)) in cells.iter().zip(groups).enumerate() {
                        let weight = weights.map_or(1.0, |w| w[start + i]);
                        sums[group as usize] += weight * ((x - shift) / scale);
                    }
                }
            }
        },
    );
    let mut sums = memory::zeros(n_groups * columns.len(), "the sums of groups");
    for (feature, column) in columns.iter().enumerate() {
        for (group, sum) in column.iter().enumerate() {
            sums[group * columns.len() + feature] = *sum;
        }
    }
    sums
}

/// Every column is added up by one thread in the order of the rows.
/// Columns are cut into stripes of [`COLUMNS_PER_TASK`]; a stripe is one task.
fn sparse_sums(csr: &CsrRows<'_>, units: &Units, row_groups: RowGroups<'_>) -> Result<Vec<f64>> {
    let RowGroups { groups, n_groups, weights } = row_groups;
    csr.check_ascending()?;
    if units.shift.iter().any(|shift| *shift != 0.0) {
        return Err(Error::Value("The columns of sparse rows must have the origin 0.".into()));
    }
    let d = csr.n_columns();
    let stripes = parallel::map(0..d.div_ceil(COLUMNS_PER_TASK), |stripe| {
        let columns = stripe * COLUMNS_PER_TASK..d.min((stripe + 1) * COLUMNS_PER_TASK);
        let mut sums = memory::zeros(n_groups * columns.len(), "the sums of groups");
        for (row, &group) in groups.iter().enumerate() {
            let weight = weights.map_or(1.0, |w| w[row]);
            let (indices, cells) = csr.row(row);
            let from = indices.partition_point(|&j| (j as usize) < columns.start);
            let out = &mut sums[group as usize * columns.len()..][..columns.len()];
            for (&j, x) in indices[from..].iter().zip(&cells[from..]) {
                match out.get_mut(j as usize - columns.start) {
                    Some(sum) => *sum += weight * (x / units.scale[j as usize]),
                    None => break,
                }
            }
        }
        sums
    });
    let mut sums = memory::reserved(n_groups * d, "the sums of groups");
    for group in 0..n_groups {
        for (stripe, part) in stripes.iter().enumerate() {
            let width = COLUMNS_PER_TASK.min(d - stripe * COLUMNS_PER_TASK);
            sums.extend_from_slice(&part[group * width..][..width]);
        }
    }
    Ok(sums)
}

/// Of the observed cells of a group in one column.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    pub point: f64,
    pub weight: f64,
    /// Weighted sum of the differences to the point, in units.
    pub sum: f64,
    /// Weighted sum of their squares.
    pub squares: f64,
}

/// The moments of every group about `point(group, feature)`, for the columns that have gaps; of levels without sums.
/// A column of numbers has gaps if a group's sum, added up with all cells, `is_nan(group, feature)`.
/// Each column is summed by one thread in the order of the rows.
pub(super) fn moments_with_gaps(
    table: &Table<'_>,
    units: &Units,
    row_groups: RowGroups<'_>,
    is_nan: impl Fn(usize, usize) -> bool,
    point: impl Fn(usize, usize) -> f64 + Sync,
) -> Vec<(usize, Vec<Moments>)> {
    let RowGroups { groups, n_groups, weights } = row_groups;
    let is_levels = |f: usize| table.n_levels(f).is_some();
    let has_gaps = |&f: &usize| match table.column(f) {
        Column::Levels { codes, .. } => codes.iter().any(|&code| code == MISSING_LEVEL),
        _ => (0..n_groups).any(|group| is_nan(group, f)),
    };
    let features: Vec<usize> = (0..table.n_features()).filter(has_gaps).collect();
    let columns = table.select(&features).scan_columns(
        |i| {
            let of_group =
                |group| Moments { point: point(group, features[i]), ..Default::default() };
            (0..n_groups).map(of_group).collect::<Vec<_>>()
        },
        |moments, i, start, cells| {
            let feature = features[i];
            let scale = if is_levels(feature) { f64::INFINITY } else { units.scale[feature] };
            let groups = &groups[start..start + cells.len()];
            let of_row = |moments: &mut [Moments], x: f64, group: u32, weight: f64, scale: f64| {
                let moments = &mut moments[group as usize];
                // Without a branch: nobody can guess where the gaps are.
                let weight = if x.is_nan() { 0.0 } else { weight };
                let apart = if x.is_nan() { 0.0 } else { x - moments.point };
                let difference = apart / scale;
                moments.weight += weight;
                moments.sum += weight * difference;
                moments.squares += weight * difference * difference;
            };
            let rows = cells.iter().zip(groups);
            match weights {
                None if scale == 1.0 => {
                    rows.for_each(|(&x, &group)| of_row(moments, x, group, 1.0, 1.0));
                }
                None => rows.for_each(|(&x, &group)| of_row(moments, x, group, 1.0, scale)),
                Some(weights) => rows.zip(&weights[start..]).for_each(|((&x, &group), &weight)| {
                    of_row(moments, x, group, weight, scale);
                }),
            }
        },
    );
    features.into_iter().zip(columns).collect()
}

/// [`Table::scan_columns`] of the columns of numbers without a gap among their first cells; the others keep their state.
/// `state`: of a column and the sum to start from, NaN for numbers with such a gap.
pub(super) fn scan_numbers<S: Send>(
    table: &Table<'_>,
    state: impl Fn(usize, f64) -> S + Sync,
    visit: impl Fn(&mut S, usize, usize, &[f64]) + Sync,
) -> Vec<S> {
    let begins_with_gap = |feature: usize| {
        let column = table.column(feature);
        let n_first = if column.may_have_gaps() { table.n_samples().min(FIRST_CELLS) } else { 0 };
        (0..n_first).any(|row| column.get(row).is_nan())
    };
    let is_levels = |feature: usize| table.n_levels(feature).is_some();
    let is_scanned = |&feature: &usize| !is_levels(feature) && !begins_with_gap(feature);
    let scanned: Vec<usize> = (0..table.n_features()).filter(is_scanned).collect();
    let states = table.select(&scanned).scan_columns(
        |i| state(scanned[i], 0.0),
        |state, i, start, cells| visit(state, scanned[i], start, cells),
    );
    let mut found = scanned.iter().zip(states).peekable();
    let of_column = |feature: usize| match found.next_if(|(other, _)| **other == feature) {
        Some((_, state)) => state,
        None => state(feature, if is_levels(feature) { 0.0 } else { f64::NAN }),
    };
    (0..table.n_features()).map(of_column).collect()
}

/// The weight of the observed cells, n_groups x d, from the columns with gaps and the groups' weights; none if there
/// are no such columns.
pub(super) fn observed_weights(
    columns: &[(usize, Vec<Moments>)],
    weight: &[f64],
    d: usize,
) -> Option<Vec<f64>> {
    if columns.is_empty() {
        return None;
    }
    let of_rows = weight.iter().flat_map(|&weight| std::iter::repeat_n(weight, d));
    let mut observed: Vec<f64> = of_rows.collect();
    for (feature, column) in columns {
        for (group, moments) in column.iter().enumerate() {
            observed[group * d + feature] = moments.weight;
        }
    }
    Some(observed)
}
