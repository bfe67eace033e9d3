//! Label costs, regrets and cluster sums: the numbers that criteria and centers are made from.
//!
//! The cost of a label is the distance of a row to the label's center; its regret is that cost minus the least one of
//! the row, times the row's weight (algorithms.md, section 0: D'_ij = w_i (D_ij - min_l D_il)). Regrets of a node's
//! rows add up to what a label costs there beyond the best labels, which is all that growth compares. Symbols: n rows,
//! d columns, k labels; costs take O(n d k) and sums of groups O(n d).
//!
//! Columns are shifted by a value of their own before anything is added up (*origin*): `x - shift` is exact where
//! the data lie far from zero, so a table moved by 1e8 gives the same bits.
//!
//! **Missing cells** add nothing to any cost or sum (k-POD: Chi, Chi and Baraniuk 2016, *k-POD: A Method for k-Means
//! Clustering of Missing Data*): means and spreads are those of observed cells. The loops for complete columns know
//! nothing of them; a NaN that they leave in a result marks what is computed again without the missing cells.
//! **Levels** cost what a table says for each label and level.

use ndarray::ArrayView1;

use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::rows::{CsrRows, Rows};
use crate::table::{Column, MISSING_LEVEL, Table, all_finite};

/// Rows whose costs are formed together; the inner loops run over them.
const LANES: usize = 16;

/// Cells of a column that are looked at for gaps before it is added up.
const FIRST_CELLS: usize = 64;

/// Columns of sparse rows that one thread adds up in one go.
const COLUMNS_PER_TASK: usize = 1024;

/// Differences below this share of the cost are rounding, not regret.
const ROUNDING: f64 = 1e-13;

/// How far a sample is from a center.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Squared Euclidean distance (k-means).
    SquaredEuclidean,
    /// l1 distance (k-medians).
    Manhattan,
}

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
        let total: f64 = (0..table.n_samples()).map(weight).sum();
        let moment = |mean: &[f64], power: i32| -> Vec<f64> {
            let sums = table.scan_columns(
                |_| 0.0,
                |sum, feature, start, cells| {
                    for (i, x) in cells.iter().enumerate() {
                        *sum +=
                            weight(start + i) * (x - shift[feature] - mean[feature]).powi(power);
                    }
                },
            );
            sums.into_iter().map(|sum| sum / total).collect()
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
    let total: f64 = cells().map(|(row, _)| weight(row)).sum();
    let moment = |mean: f64, power: i32| {
        let terms = cells().map(|(row, x)| weight(row) * (x / reach - mean).powi(power));
        terms.sum::<f64>() / total
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

/// What each label costs each sample.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelCosts {
    /// n x k: weight times (cost of the label - cost of the cheapest label).
    pub regrets: Vec<f64>,
    /// The cheapest label of each sample, the lowest among equals.
    pub nearest: Vec<u32>,
    /// Weighted sum of the cheapest labels' costs: what the regrets leave out.
    pub minimum: f64,
}

impl LabelCosts {
    /// The weighted cost of all rows under one label each.
    pub fn of_labels(&self, labels: &[u32]) -> f64 {
        let k = self.regrets.len() / labels.len().max(1);
        let regrets = self.regrets.chunks(k.max(1)).zip(labels);
        let own: f64 = regrets.map(|(row, &label)| row[label as usize]).sum();
        self.minimum + own
    }
}

/// The costs of `centers` (k x d, row-major, in the table's `units`) for every row, reduced to regrets
/// (algorithms: D' = w (D - min D), 0 where the difference is rounding). O(n d k). A missing cell costs nothing.
///
/// `weights`: of shape (n), positive; none: all 1. `levels`: by column none or, for a column of levels, what they cost
/// each label (k x number of levels, row-major), in place of the centers' coordinates, which are not read; may be empty
/// if there are no such columns. Rows are taken in blocks of fixed size, and a row's terms in the order of the columns,
/// numbers before levels, so that the result has the same bits for every number of threads.
///
/// # Errors
/// [`Error::Value`] if a cost overflows; [`Error::Shape`] if sizes disagree.
pub fn label_costs(
    table: &Table<'_>,
    units: &Units,
    centers: &[f64],
    metric: Metric,
    levels: &[Option<&[f64]>],
    weights: Option<&[f64]>,
) -> Result<LabelCosts> {
    let (n, d) = (table.n_samples(), table.n_features());
    let k = centers.len() / d.max(1);
    Error::check_len("centers", centers.len(), k * d, "entries")?;
    let levels = level_costs(table, levels, k)?;
    let of_numbers: Vec<usize> = (0..d).filter(|&f| table.n_levels(f).is_none()).collect();
    let number = |&f: &usize| (table.column(f), units.shift[f], units.scale[f]);
    let numbers: Vec<NumberColumn<'_, '_>> = of_numbers.iter().map(number).collect();
    let coordinates = |center: &[f64]| of_numbers.iter().map(|&f| center[f]).collect::<Vec<_>>();
    let centers: Vec<f64> = centers.chunks(d.max(1)).flat_map(coordinates).collect();
    let mut regrets: Vec<f64> = memory::zeros(n * k, "the regrets of the rows");
    let mut nearest: Vec<u32> = memory::zeros(n, "the labels of the rows");
    const ROWS: usize = 64 * LANES;
    let blocks = regrets.chunks_mut(ROWS * k).zip(nearest.chunks_mut(ROWS)).enumerate();
    let minima = parallel::map(blocks, |(block, (regrets, nearest))| {
        let mut minimum = 0.0;
        if table.stopped() {
            return minimum;
        }
        let mut cells = vec![0.0; numbers.len() * LANES];
        let mut has_gaps = false;
        for (tile, (regrets, nearest)) in
            regrets.chunks_mut(LANES * k).zip(nearest.chunks_mut(LANES)).enumerate()
        {
            let start = block * ROWS + tile * LANES;
            read_tile(&numbers, start, nearest.len(), &mut cells);
            let before = minimum;
            loop {
                if has_gaps {
                    tile_costs::<true>(&cells, &centers, metric, regrets, k);
                } else {
                    tile_costs::<false>(&cells, &centers, metric, regrets, k);
                }
                levels.iter().for_each(|column| column.add(start, regrets, k));
                minimum = before;
                for (i, (row, label)) in regrets.chunks_mut(k).zip(&mut *nearest).enumerate() {
                    let weight = weights.map_or(1.0, |w| w[start + i]);
                    let (cheapest, cost) = to_regrets(row, weight);
                    *label = cheapest;
                    minimum += weight * cost;
                }
                if has_gaps || !minimum.is_nan() {
                    break;
                }
                has_gaps = true; // one gap seldom comes alone: so is the rest of the block taken
            }
        }
        minimum
    });
    let minimum: f64 = minima.iter().sum();
    if !minimum.is_finite() || parallel::map(regrets.chunks(ROWS * k), all_finite).contains(&false)
    {
        return Err(Error::Value(
            "The distances between rows and centers overflow float64. Use scale=\"standard\" or rescale the columns."
                .into(),
        ));
    }
    Ok(LabelCosts { regrets, nearest, minimum })
}

/// A column of numbers with its origin and unit.
type NumberColumn<'a, 't> = (&'a Column<'t>, f64, f64);

/// What the levels of a column cost each label.
pub(crate) struct LevelCosts<'a> {
    /// By row.
    pub codes: &'a ArrayView1<'a, u8>,
    /// n_levels x k, row-major.
    pub costs: Vec<f64>,
}

impl LevelCosts<'_> {
    /// Adds to the costs of the rows from `start` on (rows x k) what the column adds; nothing where it is missing.
    pub fn add(&self, start: usize, out: &mut [f64], k: usize) {
        for (row, costs) in (start..).zip(out.chunks_mut(k)) {
            let code = self.codes[row];
            if code != MISSING_LEVEL {
                let of_level = &self.costs[usize::from(code) * k..][..k];
                costs.iter_mut().zip(of_level).for_each(|(cost, x)| *cost += x);
            }
        }
    }
}

/// The columns of levels with their costs by label, k x number of levels each.
fn level_costs<'a>(
    table: &'a Table<'_>,
    costs: &[Option<&[f64]>],
    k: usize,
) -> Result<Vec<LevelCosts<'a>>> {
    let mut columns = vec![];
    for feature in 0..table.n_features() {
        let Column::Levels { codes, n_levels } = table.column(feature) else { continue };
        let of_labels = costs.get(feature).copied().flatten().ok_or_else(|| {
            Error::Value(format!("Column {feature} holds levels: their costs by label are needed."))
        })?;
        Error::check_len("The costs of levels", of_labels.len(), k * n_levels, "entries")?;
        let of_level = |level: usize| (0..k).map(move |label| of_labels[label * n_levels + level]);
        columns.push(LevelCosts { codes, costs: (0..*n_levels).flat_map(of_level).collect() });
    }
    Ok(columns)
}

/// `LANES` rows of the columns in their units, column by column; lanes past the last row are computed and not read.
/// `cells` holds a run of `LANES` per column.
fn read_tile(columns: &[NumberColumn<'_, '_>], start: usize, rows: usize, cells: &mut [f64]) {
    for (&(column, shift, scale), out) in columns.iter().zip(cells.chunks_mut(LANES)) {
        column.read(start, &mut out[..rows]);
        if scale == 1.0 {
            out.iter_mut().for_each(|x| *x -= shift);
        } else {
            out.iter_mut().for_each(|x| *x = (*x - shift) / scale);
        }
    }
}

/// Costs of one tile, written row-major (rows x k). `GAPS`: missing cells add nothing, else they make all costs of a row
/// NaN. Every row takes its terms in the order of the columns, `LANES` rows side by side.
fn tile_costs<const GAPS: bool>(
    cells: &[f64],
    centers: &[f64],
    metric: Metric,
    out: &mut [f64],
    k: usize,
) {
    let d = cells.len() / LANES;
    let observed = |term: f64| if GAPS && term.is_nan() { 0.0 } else { term };
    for label in 0..k {
        let center = &centers[label * d..][..d];
        let mut sums = [0.0; LANES];
        let tile = cells.as_chunks::<LANES>().0;
        match metric {
            Metric::SquaredEuclidean => {
                for (x, c) in tile.iter().zip(center) {
                    for (sum, x) in sums.iter_mut().zip(x) {
                        let difference = x - c;
                        *sum += observed(difference * difference);
                    }
                }
            }
            Metric::Manhattan => {
                for (x, c) in tile.iter().zip(center) {
                    for (sum, x) in sums.iter_mut().zip(x) {
                        *sum += observed((x - c).abs());
                    }
                }
            }
        }
        for (row, sum) in out.chunks_mut(k).zip(sums) {
            row[label] = sum;
        }
    }
}

/// Turns a row of costs into weighted regrets; returns the cheapest label and its cost.
/// A difference of at most [`ROUNDING`] of the cost is 0. Equal costs: the lowest label is the cheapest.
pub(crate) fn to_regrets(row: &mut [f64], weight: f64) -> (u32, f64) {
    let mut cheapest = 0;
    for label in 1..row.len() {
        if row[label] < row[cheapest] {
            cheapest = label;
        }
    }
    let minimum = row[cheapest];
    for cost in row.iter_mut() {
        let regret = *cost - minimum;
        *cost = if regret <= ROUNDING * *cost { 0.0 } else { weight * regret };
    }
    (cheapest as u32, minimum)
}

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
struct RowGroups<'a> {
    /// The group of each row, in `[0, n_groups)`.
    groups: &'a [u32],
    n_groups: usize,
    /// One per row; none: 1 each.
    weights: Option<&'a [f64]>,
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

/// Of the observed cells of a group in one column.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    point: f64,
    weight: f64,
    /// Weighted sum of the differences to the point, in units.
    sum: f64,
    /// Weighted sum of their squares.
    squares: f64,
}

/// The moments of every group about `point(group, feature)`, for the columns that have gaps; of levels without sums.
/// A column of numbers has gaps if a group's sum, added up with all cells, `is_nan(group, feature)`.
/// Each column is summed by one thread in the order of the rows.
fn moments_with_gaps(
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
fn scan_numbers<S: Send>(
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
fn observed_weights(
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
/// `groups`, `weights`: as for [`group_sums`]. `near`: n_groups x d, row-major, in the columns' own units: a guess of
/// the means. One pass over the table, O(n d), and one more if the guess is poor.
///
/// # Errors
/// As [`group_sums`]; [`Error::Shape`] if `near` has another length.
pub fn group_means(
    table: &Table<'_>,
    units: &Units,
    groups: &[u32],
    n_groups: usize,
    weights: Option<&[f64]>,
    near: &[f64],
) -> Result<GroupMeans> {
    let d = table.n_features();
    Error::check_labels(groups, table.n_samples(), n_groups)?;
    Error::check_len("near", near.len(), n_groups * d, "entries")?;
    let row_groups = RowGroups { groups, n_groups, weights };
    let first = spreads_about(near.to_vec(), false, table, units, row_groups);
    let squares: f64 = first.1.iter().sum();
    if squares <= MAX_SQUARES_BY_SPREAD * first.0.spread.iter().sum::<f64>() {
        return Ok(first.0);
    }
    Ok(spreads_about(first.0.means, true, table, units, row_groups).0)
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
    // By group: its point, the sum of the differences to it and that of their squares.
    let scan = || {
        scan_numbers(
            table,
            |feature, sum| {
                (0..n_groups)
                    .map(|group| [means[group * d + feature], sum, 0.0])
                    .collect::<Vec<_>>()
            },
            |groups_so_far, feature, start, cells| {
                let scale = units.scale[feature];
                let groups = &groups[start..start + cells.len()];
                if groups_so_far[groups[0] as usize][1].is_nan() {
                    return; // added up with care below
                }
                match weights {
                    None if scale == 1.0 => {
                        for (x, &group) in cells.iter().zip(groups) {
                            let [point, sum, squares] = &mut groups_so_far[group as usize];
                            let difference = x - *point;
                            *sum += difference;
                            *squares += difference * difference;
                        }
                    }
                    _ => {
                        for (i, (x, &group)) in cells.iter().zip(groups).enumerate() {
                            let [point, sum, squares] = &mut groups_so_far[group as usize];
                            let difference = (x - *point) / scale;
                            let weighted = weights.map_or(1.0, |w| w[start + i]) * difference;
                            *sum += weighted;
                            *squares += weighted * difference;
                        }
                    }
                }
            },
        )
    };
    let (weight, mut columns) = rayon::join(|| group_weights(groups, n_groups, weights), scan);
    let is_nan = |group: usize, feature: usize| columns[feature][group][1].is_nan();
    let point = |group: usize, feature: usize| means[group * d + feature];
    let with_gaps = moments_with_gaps(table, units, row_groups, is_nan, point);
    let observed = observed_weights(&with_gaps, &weight, d);
    for (feature, moments) in with_gaps {
        for ([_, sum, squares], moments) in columns[feature].iter_mut().zip(moments) {
            (*sum, *squares) = (moments.sum, moments.squares);
        }
    }
    // Equal rows differ from their rounded mean by the same number: what their sums leave is rounding.
    let rounding = if is_mean { 8.0 * f64::EPSILON * table.n_samples() as f64 } else { 0.0 };
    let mut rest = vec![0.0; n_groups * d];
    let (mut spread, mut total) = (vec![0.0; n_groups], vec![0.0; n_groups]);
    for (feature, column) in columns.iter().enumerate() {
        for (group, &[_, sum, squares]) in column.iter().enumerate() {
            let (scale, i) = (units.scale[feature], group * d + feature);
            let weight = observed.as_ref().map_or(weight[group], |observed| observed[i]);
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
    (GroupMeans { weight, means, rest, spread, observed }, total)
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

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    fn example(offset: f64) -> Array2<f64> {
        Array2::from_shape_fn((100, 3), |(i, j)| offset + ((i * 37 + j * 11) % 64) as f64 / 8.0)
    }

    #[test]
    fn costs_do_not_depend_on_the_origin() {
        let result = |offset: f64| {
            let x = example(offset);
            let table = Table::from_matrix(x.view()).unwrap();
            let units = Units::of(&table, None, true).unwrap();
            let groups: Vec<u32> = (0..100).map(|i| i % 4).collect();
            let sums = group_sums(&table, &units, &groups, 4, None).unwrap();
            let centers: Vec<f64> = sums.sums.iter().map(|s| s / 25.0).collect();
            label_costs(&table, &units, &centers, Metric::SquaredEuclidean, &[], None).unwrap()
        };
        assert_eq!(result(0.0), result(1e8));
    }

    #[test]
    fn regrets_are_weighted_differences_to_the_cheapest_label() {
        let mut costs = [3.0, 1.0, 1.0 + 5e-14];
        assert_eq!(to_regrets(&mut costs, 2.0), (1, 1.0));
        assert_eq!(costs, [4.0, 0.0, 0.0]);
        let mut tied = [4.0, 4.0, 9.0];
        assert_eq!(to_regrets(&mut tied, 1.0), (0, 4.0));
        assert_eq!(tied, [0.0, 0.0, 5.0]);
    }

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

    /// Numbers with gaps and levels, 100 rows and five columns: the last two are levels and all missing.
    fn gappy() -> (Array2<f64>, Vec<u8>) {
        let mut x = example(5.0);
        (0..100).filter(|i| i % 7 == 3).for_each(|i| x[[i, i % 2]] = f64::NAN);
        (50..60).for_each(|i| x.row_mut(i).fill(f64::NAN));
        (0..100).filter(|i| i % 4 == 2).for_each(|i| x[[i, 2]] = f64::NAN);
        let codes = (0..100).map(|i| if i % 5 == 4 { MISSING_LEVEL } else { (i % 3) as u8 });
        (x, codes.collect())
    }

    fn gappy_table<'a>(x: &'a Array2<f64>, codes: &'a [u8], missing: &'a [f64]) -> Table<'a> {
        let mut columns = crate::table::matrix_columns(x.view());
        columns.push(Column::levels(ArrayView1::from(codes), 3).unwrap());
        columns.push(ArrayView1::from(missing).into());
        Table::new(columns).unwrap()
    }

    #[test]
    fn missing_cells_cost_nothing_and_levels_what_their_table_says() {
        let ((x, codes), missing) = (gappy(), [f64::NAN; 100]);
        let table = gappy_table(&x, &codes, &missing);
        let units =
            Units { shift: vec![5.5, 8.0, 5.0, 0.0, 0.0], scale: vec![1.0, 2.0, 0.5, 1.0, 1.0] };
        let centers: Vec<f64> = (0..10).map(|i| f64::from(i) / 3.0).collect();
        let of_levels = [0.0, 1.0, 0.25, 1.0, 0.5, 0.0];
        let levels = [None, None, None, Some(&of_levels[..]), None];
        let weights: Vec<f64> = (0..100).map(|i| 1.0 + f64::from(i % 3)).collect();
        for metric in [Metric::SquaredEuclidean, Metric::Manhattan] {
            let found =
                label_costs(&table, &units, &centers, metric, &levels, Some(&weights)).unwrap();
            for row in 0..100 {
                let cost = |label: usize| {
                    let mut cost = 0.0;
                    for f in 0..3 {
                        let z = (x[[row, f]] - units.shift[f]) / units.scale[f];
                        let apart = (z - centers[label * 5 + f]).abs();
                        let term = if metric == Metric::Manhattan { apart } else { apart * apart };
                        cost += if term.is_nan() { 0.0 } else { term };
                    }
                    let code = codes[row];
                    let is_missing = code == MISSING_LEVEL;
                    cost + if is_missing { 0.0 } else { of_levels[label * 3 + usize::from(code)] }
                };
                let regret = weights[row] * (cost(0) - cost(1)).abs();
                let (own, other) = (found.nearest[row] as usize, 1 - found.nearest[row] as usize);
                assert_eq!(found.regrets[row * 2 + own], 0.0);
                assert!((found.regrets[row * 2 + other] - regret).abs() < 1e-9, "{row}");
                assert!(cost(own) <= cost(other) + 1e-12);
            }
        }
        let result = label_costs(&table, &units, &centers, Metric::Manhattan, &[], None);
        assert!(result.unwrap_err().to_string().contains("Column 3 holds levels"));
    }

    #[test]
    fn means_and_units_are_those_of_observed_cells() {
        let ((x, codes), missing) = (gappy(), [f64::NAN; 100]);
        let table = gappy_table(&x, &codes, &missing);
        let groups: Vec<u32> = (0..100).map(|i| u32::from(i % 10 == 4) + i / 50).collect();
        for weights in [None, Some((0..100).map(|i| 0.1 + f64::from(i % 4)).collect::<Vec<_>>())] {
            let weight = |row: usize| weights.as_ref().map_or(1.0, |w| w[row]);
            let units = Units::of(&table, weights.as_deref(), true).unwrap();
            assert_eq!((units.shift[3], units.scale[3], units.scale[4]), (0.0, 1.0, 1.0));
            let sums = group_sums(&table, &units, &groups, 4, weights.as_deref()).unwrap();
            let means =
                group_means(&table, &units, &groups, 4, weights.as_deref(), &[2.0; 20]).unwrap();
            assert_eq!(means.observed, sums.observed);
            let observed = sums.observed.unwrap();
            let close =
                |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} {b}");
            let mut spread = [0.0; 4];
            for f in 0..5 {
                let groups = &groups;
                let cells = |group: usize| {
                    let rows =
                        (0..100).filter(move |&row| groups[row] as usize == group || group > 3);
                    let cells = rows.map(|row| (weight(row), table.column(f).get(row)));
                    cells.filter(|(_, x)| !x.is_nan()).collect::<Vec<_>>()
                };
                let moments = |cells: &[(f64, f64)]| {
                    let total: f64 = cells.iter().map(|(w, _)| w).sum();
                    let mean = cells.iter().map(|(w, x)| w * x).sum::<f64>() / total;
                    let squares: f64 = cells.iter().map(|(w, x)| w * (x - mean).powi(2)).sum();
                    (total, mean, squares)
                };
                if f < 3 {
                    let (total, _, squares) = moments(&cells(4));
                    close(units.scale[f], (squares / total).sqrt());
                }
                for (group, spread) in spread.iter_mut().enumerate() {
                    let (i, cells) = (group * 5 + f, cells(group));
                    let (total, mean, squares) = moments(&cells);
                    close(observed[i], total);
                    if f < 3 && total > 0.0 {
                        close(means.means[i], mean);
                        close(sums.sums[i], total * (mean - units.shift[f]) / units.scale[f]);
                        *spread += squares / units.scale[f].powi(2);
                    } else {
                        assert_eq!((means.means[i], sums.sums[i]), (2.0, 0.0));
                    }
                }
            }
            spread.iter().zip(&means.spread).for_each(|(a, b)| close(*a, *b));
        }
    }

    #[test]
    fn overflowing_distances_are_an_error() {
        let x = Array2::from_shape_vec((2, 1), vec![-1e200, 1e200]).unwrap();
        let table = Table::from_matrix(x.view()).unwrap();
        let units = Units::of(&table, None, false).unwrap();
        let result =
            label_costs(&table, &units, &[0.0, 1e200], Metric::SquaredEuclidean, &[], None);
        assert!(result.unwrap_err().to_string().contains("overflow"));
    }
}
