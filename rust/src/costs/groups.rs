//! Weights and sums of groups of rows, column by column: O(n d), or O(number of stored cells) for sparse rows.
//!
//! A column is first added up as if it were complete. One with gaps is added up again with the weight of its observed
//! cells ([`moments_with_gaps`]). All sums are exact and rounded once ([`crate::exact`]), so the order of the rows and
//! the number of threads do not matter.

use super::Units;
use crate::error::{Error, Result};
use crate::exact::{ExactRows, ExactSums};
use crate::memory;
use crate::parallel;
use crate::rows::{CsrRows, Rows};
use crate::table::{Column, MAX_LEVELS, MISSING_LEVEL, Table, has_missing_levels};

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

/// Counts the rows with each level of a column, by group: n_groups x `n_levels`, row-major. `codes`: the level of each row,
/// others are not counted; `groups`: as for [`group_sums`], none: all rows are in the first. O(n).
///
/// # Errors
/// [`Error::Shape`] if there is not a group per row, [`Error::Value`] if one is outside `[0, n_groups)` or there are more
/// than 255 levels.
pub fn level_counts(
    codes: &[u8],
    n_levels: usize,
    groups: Option<&[u32]>,
    n_groups: usize,
) -> Result<Vec<f64>> {
    const WIDTH: usize = MISSING_LEVEL as usize + 1;
    let mut counts: Vec<u32> = memory::zeros(n_groups * WIDTH, "the counts of levels");
    match groups {
        None if n_groups == 0 => {}
        None => codes.iter().for_each(|&code| counts[usize::from(code)] += 1),
        Some(groups) => {
            Error::check_len("groups", groups.len(), codes.len(), "rows")?;
            for (&group, &code) in groups.iter().zip(codes) {
                let Some(count) = counts.get_mut(group as usize * WIDTH + usize::from(code)) else {
                    return Err(out_of_range(group, n_groups));
                };
                *count += 1;
            }
        }
    }
    if n_levels > MAX_LEVELS {
        return Err(Error::Value(format!("At most {MAX_LEVELS} levels are counted.")));
    }
    let of_groups = counts.chunks(WIDTH).flat_map(|counts| &counts[..n_levels]);
    let mut by_group = memory::reserved(n_groups * n_levels, "the counts of levels");
    by_group.extend(of_groups.map(|&count| f64::from(count)));
    Ok(by_group)
}

/// The error of a group that there is not.
fn out_of_range(group: u32, n_groups: usize) -> Error {
    Error::Value(format!("Group {group} is not in the range [0, {n_groups})."))
}

/// Sums the rows of each group. `groups`: of shape (n), each in `[0, n_groups)`; `weights`: of shape (n);
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
        return Err(out_of_range(group, n_groups));
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
        // Without groups there is nothing to add up.
        let has_gaps = |feature: usize| sums.sums.get(feature).is_some_and(|sum| sum.is_nan());
        let columns = moments_with_gaps(table, units, row_groups, false, has_gaps, point);
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
    let Some(weights) = weights else {
        return group_sizes(groups, n_groups).into_iter().map(f64::from).collect();
    };
    let mut sums = ExactRows::new(n_groups, 1);
    sums.add_pairs(groups, |row| [weights[row], 0.0]);
    sums.finish().all_rounded()
}

/// By column the exact sums of [`GroupSums`] for the rows of a table, one per group; none for columns of numbers with gaps. In
/// tiles of the columns, each column by one thread.
pub(super) fn column_sums(
    table: &Table<'_>,
    units: &Units,
    row_groups: RowGroups<'_>,
) -> Vec<Option<ExactSums>> {
    let n_groups = row_groups.n_groups;
    let points: Vec<f64> =
        units.shift.iter().flat_map(|&shift| std::iter::repeat_n(shift, n_groups)).collect();
    sum_cells(table, units, row_groups, &points, false)
}

/// What some cells of a column without gaps add to [`column_sums`]. `row_groups`: the groups and weights of their rows alone.
pub(super) fn sums_of_cells(
    cells: &[f64],
    feature: usize,
    units: &Units,
    row_groups: RowGroups<'_>,
) -> ExactSums {
    let RowGroups { groups, n_groups, weights } = row_groups;
    let points = vec![units.shift[feature]; n_groups];
    let terms = Differences { points: &points, scale: units.scale[feature], has_squares: false };
    let mut sums = terms.sums();
    terms.add(&mut sums, groups, cells, weights.map(|weights| |i: usize| weights[i]));
    sums.finish()
}

/// The sums of columns, n_groups x d, row-major: `sum(feature, group)`.
pub(super) fn by_group(n_groups: usize, d: usize, sum: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut sums = memory::reserved(n_groups * d, "the sums of groups");
    for group in 0..n_groups {
        sums.extend((0..d).map(|feature| sum(feature, group)));
    }
    sums
}

/// [`GroupSums::sums`] of the rows of a table; NaN for columns of numbers with gaps.
fn table_sums(table: &Table<'_>, units: &Units, row_groups: RowGroups<'_>) -> Vec<f64> {
    let columns = column_sums(table, units, row_groups);
    by_group(row_groups.n_groups, columns.len(), |feature, group| {
        columns[feature].as_ref().map_or(f64::NAN, |column| column.rounded(group))
    })
}

/// [`GroupSums::sums`] of sparse rows. Every column is added up by one thread.
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
        let mut sums = ExactSums::new(n_groups * columns.len());
        for (row, &group) in groups.iter().enumerate() {
            let weight = weights.map_or(1.0, |w| w[row]);
            let (indices, cells) = csr.row(row);
            let from = indices.partition_point(|&j| (j as usize) < columns.start);
            let first = group as usize * columns.len();
            for (&j, x) in indices[from..].iter().zip(&cells[from..]) {
                let j = j as usize;
                if j >= columns.end {
                    break;
                }
                sums.add(first + j - columns.start, weight * (x / units.scale[j]));
            }
        }
        sums.all_rounded()
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
    pub weight: f64,
    /// Weighted sum of the differences to the point, in units.
    pub sum: f64,
    /// Weighted sum of their squares.
    pub squares: f64,
}

/// The moments of every group about `point(group, feature)`, for the columns that have gaps; of levels without sums.
/// `has_squares`: whether squares are wanted, else they are 0. A column of numbers has gaps if `has_gaps(feature)`. Each
/// column is summed by one thread.
pub(super) fn moments_with_gaps(
    table: &Table<'_>,
    units: &Units,
    row_groups: RowGroups<'_>,
    has_squares: bool,
    has_gaps: impl Fn(usize) -> bool,
    point: impl Fn(usize, usize) -> f64 + Sync,
) -> Vec<(usize, Vec<Moments>)> {
    let RowGroups { groups, n_groups, weights } = row_groups;
    let is_levels = |f: usize| table.n_levels(f).is_some();
    let is_added = |&f: &usize| match table.column(f) {
        Column::Levels { codes, .. } => has_missing_levels(codes),
        _ => has_gaps(f),
    };
    let features: Vec<usize> = (0..table.n_features()).filter(is_added).collect();
    if features.is_empty() {
        return vec![];
    }
    let by_group = |&f: &usize| (0..n_groups).map(|group| point(group, f)).collect();
    let points: Vec<Vec<f64>> = features.iter().map(by_group).collect();
    let terms =
        |i: usize| Differences { points: &points[i], scale: units.scale[features[i]], has_squares };
    let columns = table.select(&features).scan_columns(
        |i| ObservedSums {
            moments: (!is_levels(features[i])).then(|| terms(i).sums()),
            n_missing: vec![0; n_groups],
            weights: weights.map(|weights| (weights, ExactRows::new(n_groups, 1))),
        },
        |sums, i, start, cells| {
            sums.add(start, cells, &groups[start..start + cells.len()], terms(i));
        },
    );
    let sizes = if weights.is_none() { group_sizes(groups, n_groups) } else { vec![] };
    let columns = columns.into_iter().map(|sums| sums.finish(&sizes, n_groups, has_squares));
    features.into_iter().zip(columns).collect()
}

/// What the cells of a column add to the groups of their rows: the difference to the group's point, in units, and its square
/// if it is wanted.
#[derive(Debug, Clone, Copy)]
struct Differences<'a> {
    /// One per group.
    points: &'a [f64],
    scale: f64,
    has_squares: bool,
}

impl Differences<'_> {
    /// New sums of these numbers.
    fn sums(&self) -> ExactRows {
        ExactRows::new(self.points.len(), 1 + usize::from(self.has_squares))
    }

    /// What `n_cells` cells like `x` add to the sums of a group.
    fn add_times(&self, sums: &mut ExactSums, group: usize, x: f64, n_cells: u32) {
        let apart = (x - self.points[group]) / self.scale;
        let width = 1 + usize::from(self.has_squares);
        for (i, x) in [apart, apart * apart].into_iter().enumerate().take(width) {
            sums.add_times(group * width + i, x, n_cells);
        }
    }

    /// Adds the cells of rows in `groups`, times `weight(i)` for the i-th.
    #[inline(always)]
    fn add(
        &self,
        sums: &mut ExactRows,
        groups: &[u32],
        cells: &[f64],
        weight: Option<impl Fn(usize) -> f64>,
    ) {
        let Differences { points, scale, has_squares } = *self;
        let apart = |i: usize| cells[i] - points[groups[i] as usize];
        match weight {
            None if has_squares => sums.add_squares(groups, cells, points, scale),
            None if scale == 1.0 => sums.add_pairs(groups, |i| [apart(i), 0.0]), // saves a division
            None => sums.add_pairs(groups, |i| [apart(i) / scale, 0.0]),
            Some(weight) => sums.add_pairs(groups, |i| {
                let apart = apart(i) / scale;
                let weighted = weight(i) * apart;
                [weighted, if has_squares { weighted * apart } else { 0.0 }]
            }),
        }
    }
}

/// No weights.
const EQUAL: Option<fn(usize) -> f64> = None;

/// Cells that are looked at together.
const RUN: usize = u8::MAX as usize + 1;

/// Cells of a run that are kept, and those that are not.
struct Run<'a> {
    /// The place of the run's first cell.
    first: usize,
    /// The cells that are kept, and their places in the run.
    cells: &'a [f64],
    places: &'a [u8; RUN],
    /// The groups of their rows.
    groups: &'a [u32],
    /// The groups of the rows of the others, if they are wanted.
    others: &'a [u32],
}

impl Run<'_> {
    /// The place of the i-th cell that is kept.
    #[inline(always)]
    fn place(&self, i: usize) -> usize {
        self.first + usize::from(self.places[i])
    }
}

/// Visits cells, run by run. Without a branch: nobody can guess where gaps and zeros are. `OTHERS`: whether the cells that are
/// not kept are wanted.
#[inline(always)]
fn for_runs<const OTHERS: bool>(
    cells: &[f64],
    groups: &[u32],
    is_kept: impl Fn(f64) -> bool,
    mut visit: impl FnMut(Run<'_>),
) {
    let (mut places, mut kept, mut others) = ([0; RUN], [0; RUN], [0; RUN]);
    let mut kept_cells = [0.0; RUN];
    for (run, (cells, groups)) in cells.chunks(RUN).zip(groups.chunks(RUN)).enumerate() {
        let (mut n_kept, mut n_others) = (0, 0);
        for (i, (&x, &group)) in cells.iter().zip(groups).enumerate() {
            let is_kept = is_kept(x);
            (places[n_kept], kept[n_kept], kept_cells[n_kept]) = (i as u8, group, x);
            n_kept += usize::from(is_kept);
            if OTHERS {
                others[n_others] = group;
                n_others += usize::from(!is_kept);
            }
        }
        let (groups, others) = (&kept[..n_kept], &others[..n_others]);
        let cells = &kept_cells[..n_kept];
        visit(Run { first: run * RUN, cells, places: &places, groups, others });
    }
}

/// Number of rows of each group.
fn group_sizes(groups: &[u32], n_groups: usize) -> Vec<u32> {
    let mut sizes = memory::zeros(n_groups, "the sizes of groups");
    groups.iter().for_each(|&group| sizes[group as usize] += 1);
    sizes
}

/// Sums over the observed cells of a column, by group.
struct ObservedSums<'a> {
    /// What the cells add; none for levels.
    moments: Option<ExactRows>,
    /// Missing cells, of rows without weights.
    n_missing: Vec<u32>,
    /// The weights of all rows, and their sums over the observed cells.
    weights: Option<(&'a [f64], ExactRows)>,
}

impl ObservedSums<'_> {
    /// Adds cells from the row `start` on, of rows in `groups`.
    fn add(&mut self, start: usize, cells: &[f64], groups: &[u32], terms: Differences<'_>) {
        let ObservedSums { moments, n_missing, weights } = self;
        for_runs::<true>(
            cells,
            groups,
            |x| !x.is_nan(),
            |run| match (&mut *weights, &mut *moments) {
                (None, moments) => {
                    run.others.iter().for_each(|&group| n_missing[group as usize] += 1);
                    if let Some(moments) = moments {
                        terms.add(moments, run.groups, run.cells, EQUAL);
                    }
                }
                (Some((weights, sums)), moments) => {
                    let weight = |i: usize| weights[start + run.place(i)];
                    sums.add_pairs(run.groups, |i| [weight(i), 0.0]);
                    if let Some(moments) = moments {
                        terms.add(moments, run.groups, run.cells, Some(weight));
                    }
                }
            },
        );
    }

    /// The moments of every group; of levels without sums. `sizes`: rows of each group, without weights.
    fn finish(self, sizes: &[u32], n_groups: usize, has_squares: bool) -> Vec<Moments> {
        let width = 1 + usize::from(has_squares);
        let moments = self.moments.map(ExactRows::finish);
        let moment = |group: usize, i: usize| {
            moments.as_ref().map_or(0.0, |moments| moments.rounded(width * group + i))
        };
        let weights: Vec<f64> = match self.weights {
            Some((_, sums)) => sums.finish().all_rounded(),
            None => sizes.iter().zip(self.n_missing).map(|(n, lost)| f64::from(n - lost)).collect(),
        };
        let of_group = |group: usize| Moments {
            weight: weights[group],
            sum: moment(group, 0),
            squares: if has_squares { moment(group, 1) } else { 0.0 },
        };
        (0..n_groups).map(of_group).collect()
    }
}

/// By column the exact sums, by group, of the differences of its cells to the groups' points, in units, and of their squares
/// if they are wanted, one beside the other. Of levels: no terms. None for a column of numbers with gaps. `points`: by
/// column, those of its groups side by side.
pub(super) fn sum_cells(
    table: &Table<'_>,
    units: &Units,
    row_groups: RowGroups<'_>,
    points: &[f64],
    has_squares: bool,
) -> Vec<Option<ExactSums>> {
    let RowGroups { groups, n_groups, weights } = row_groups;
    let terms = |feature: usize| {
        let points = &points[feature * n_groups..][..n_groups];
        Differences { points, scale: units.scale[feature], has_squares }
    };
    let new = |feature| CellSums { sums: terms(feature).sums(), zeros: Zeros::Unknown };
    let columns = scan_numbers(table, new, |sums, feature, start, cells| {
        let groups = &groups[start..start + cells.len()];
        match weights {
            Some(weights) => {
                let weight = |i: usize| weights[start + i];
                terms(feature).add(&mut sums.sums, groups, cells, Some(weight));
            }
            None => sums.add(cells, groups, terms(feature)),
        }
    });
    let has_zeros = |sums: &CellSums| matches!(sums.zeros, Zeros::LeftOut(_));
    let is_counted = columns.iter().flatten().any(has_zeros);
    let sizes = if is_counted { group_sizes(groups, n_groups) } else { vec![] };
    let finish =
        |(feature, sums): (usize, Option<CellSums>)| Some(sums?.finish(&sizes, terms(feature)));
    columns.into_iter().enumerate().map(finish).collect()
}

/// What the cells of a column add to groups.
struct CellSums {
    sums: ExactRows,
    zeros: Zeros,
}

/// How the cells of a column that are 0 are added.
enum Zeros {
    /// As the first cells say.
    Unknown,
    /// As all others.
    Added,
    /// Group by group in the end: most cells are 0. The number of others, by group.
    LeftOut(Vec<u32>),
}

impl CellSums {
    /// Adds cells to the groups of their rows.
    #[inline(always)]
    fn add(&mut self, cells: &[f64], groups: &[u32], terms: Differences<'_>) {
        if let Zeros::Unknown = self.zeros {
            let n_zeros = cells.iter().filter(|x| **x == 0.0).count();
            self.zeros = match 2 * n_zeros > cells.len() {
                true => Zeros::LeftOut(vec![0; terms.points.len()]),
                false => Zeros::Added,
            };
        }
        let Zeros::LeftOut(n_others) = &mut self.zeros else {
            return terms.add(&mut self.sums, groups, cells, EQUAL);
        };
        for_runs::<false>(
            cells,
            groups,
            |x| x != 0.0,
            |run| {
                run.groups.iter().for_each(|&group| n_others[group as usize] += 1);
                terms.add(&mut self.sums, run.groups, run.cells, EQUAL);
            },
        );
    }

    /// The sums of groups of so many rows, with what the zeros that are left out add.
    fn finish(self, sizes: &[u32], terms: Differences<'_>) -> ExactSums {
        let mut sums = self.sums.finish();
        if let Zeros::LeftOut(n_others) = self.zeros {
            for (group, (size, n_others)) in sizes.iter().zip(n_others).enumerate() {
                terms.add_times(&mut sums, group, 0.0, size - n_others);
            }
        }
        sums
    }
}

/// By column what `visit(state, feature, first row, cells)` makes of a state, `new(feature)`, tile by tile; columns of levels keep
/// theirs. None for a column of numbers with gaps, which is not read beyond the tile of the first one.
pub(super) fn scan_numbers<S: Send>(
    table: &Table<'_>,
    new: impl Fn(usize) -> S + Sync,
    visit: impl Fn(&mut S, usize, usize, &[f64]) + Sync,
) -> Vec<Option<S>> {
    let begins_with_gap = |feature: usize| {
        let column = table.column(feature);
        let n_first = if column.may_have_gaps() { table.n_samples().min(FIRST_CELLS) } else { 0 };
        (0..n_first).any(|row| column.get(row).is_nan())
    };
    let is_levels = |feature: usize| table.n_levels(feature).is_some();
    let is_scanned = |&feature: &usize| !is_levels(feature) && !begins_with_gap(feature);
    let scanned: Vec<usize> = (0..table.n_features()).filter(is_scanned).collect();
    let columns = table.select(&scanned).scan_columns(
        |i| Some(new(scanned[i])),
        |state, i, start, cells| {
            if cells.iter().fold(false, |is_gap, x| is_gap | x.is_nan()) {
                *state = None;
            }
            if let Some(state) = state {
                visit(state, scanned[i], start, cells);
            }
        },
    );
    let mut found = scanned.iter().zip(columns).peekable();
    let of_column = |feature: usize| match found.next_if(|(other, _)| **other == feature) {
        Some((_, state)) => state,
        None => is_levels(feature).then(|| new(feature)),
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
