//! What each label costs each row, reduced to regrets: O(n d k), [`LANES`] rows side by side.

use ndarray::{ArrayView1, s};
use pulp::{Arch, NullaryFnOnce};

use super::Units;
use crate::error::{Error, Result};
use crate::exact::{self, ExactRows, ExactSums};
use crate::memory;
use crate::parallel;
use crate::rows::Rows;
use crate::table::{Column, MISSING_LEVEL, Table, all_finite};

/// Rows whose costs are formed together; the inner loops run over them.
const LANES: usize = 16;

/// Cells of a few rows that are read at once, so many that they stay in the first cache, and most rows of them.
const CELLS_AT_ONCE: usize = 2048;
const MOST_AT_ONCE: usize = 8 * LANES;

/// Differences below this share of the cost are rounding, not regret.
pub(super) const ROUNDING: f64 = 1e-13;

/// How far a sample is from a center.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Squared Euclidean distance (k-means).
    SquaredEuclidean,
    /// l1 distance (k-medians).
    Manhattan,
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
        self.minimum + exact::sum(regrets.map(|(row, &label)| row[label as usize]))
    }
}

/// The costs of `centers` (k x d, row-major, in the rows' `units`) for every row, reduced to regrets
/// (algorithms: D' = w (D - min D), 0 where the difference is rounding). O(n d k). A missing cell costs nothing.
///
/// `weights`: of shape (n), positive; none: all 1. `levels`: by column none or, for a column of levels, what they cost
/// each label (k x number of levels, row-major), in place of the centers' coordinates, which are not read; may be empty
/// if there are no such columns. Rows are taken in blocks of fixed size, and a row's terms in the order of the columns,
/// numbers before levels; their costs are added up exactly: the result has the same bits for every number of threads
/// and every order of the rows.
///
/// # Errors
/// [`Error::Value`] if a cost overflows; [`Error::Shape`] if sizes disagree.
pub fn label_costs<'a, 't: 'a>(
    rows: impl Into<Rows<'a, 't>>,
    units: &Units,
    centers: &[f64],
    metric: Metric,
    levels: &[Option<&[f64]>],
    weights: Option<&[f64]>,
) -> Result<LabelCosts> {
    let table = match rows.into() {
        Rows::Table(table) => table,
        Rows::Sparse(matrix) => {
            return super::sparse::label_costs(matrix, units, centers, metric, weights);
        }
    };
    let ExactLabelCosts { regrets, nearest, minimum } =
        exact_label_costs(table, units, centers, metric, levels, weights)?;
    Ok(LabelCosts { regrets, nearest, minimum: minimum.rounded(0) })
}

/// [`LabelCosts`] of some of the rows: those of all rows are these, added up.
pub(crate) struct ExactLabelCosts {
    /// As [`LabelCosts::regrets`].
    pub regrets: Vec<f64>,
    /// As [`LabelCosts::nearest`].
    pub nearest: Vec<u32>,
    /// [`LabelCosts::minimum`] before it is rounded.
    pub minimum: ExactSums,
}

/// [`label_costs`] of the rows of a table.
///
/// # Errors
/// As [`label_costs`].
pub(crate) fn exact_label_costs(
    table: &Table<'_>,
    units: &Units,
    centers: &[f64],
    metric: Metric,
    levels: &[Option<&[f64]>],
    weights: Option<&[f64]>,
) -> Result<ExactLabelCosts> {
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
    let (centers, arch) = (&centers[..], Arch::new());
    const ROWS: usize = 64 * LANES;
    let at_once = CELLS_AT_ONCE / numbers.len().max(1) / LANES * LANES;
    let at_once = at_once.clamp(LANES, MOST_AT_ONCE);
    let blocks = regrets.chunks_mut(ROWS * k).zip(nearest.chunks_mut(ROWS)).enumerate();
    let minima = parallel::map(blocks, |(block, (regrets, nearest))| {
        let mut minimum = ExactRows::new(1, LANES); // by the place of a row in its tile
        if table.stopped() {
            return minimum.finish();
        }
        let mut cells = vec![0.0; numbers.len() * at_once];
        let mut has_gaps = false;
        // Column after column of levels for so many rows, what its levels cost stays in the first cache.
        let parts = regrets.chunks_mut(at_once * k).zip(nearest.chunks_mut(at_once)).enumerate();
        for (part, (regrets, nearest)) in parts {
            let start = block * ROWS + part * at_once;
            read_rows(&numbers, start, nearest.len(), &mut cells);
            let tiles = cells.chunks((LANES * numbers.len()).max(1));
            for (cells, costs) in tiles.zip(regrets.chunks_mut(LANES * k)) {
                if !has_gaps {
                    arch.dispatch(TileCosts::<false> { cells, centers, metric, k, out: costs });
                    // One gap seldom comes alone: so is the rest of the block taken.
                    has_gaps = costs.chunks(k).any(|row| row[0].is_nan());
                }
                if has_gaps {
                    arch.dispatch(TileCosts::<true> { cells, centers, metric, k, out: costs });
                }
            }
            levels.iter().for_each(|column| column.add(start, regrets, k));
            let tiles = regrets.chunks_mut(LANES * k).zip(nearest.chunks_mut(LANES));
            for (tile, (regrets, nearest)) in tiles.enumerate() {
                let mut least = [0.0; LANES];
                let rows = regrets.chunks_mut(k).zip(nearest).zip(&mut least);
                for (i, ((row, label), least)) in rows.enumerate() {
                    let weight = weights.map_or(1.0, |w| w[start + tile * LANES + i]);
                    let (cheapest, cost) = to_regrets(row, weight);
                    *label = cheapest;
                    *least = weight * cost;
                }
                // What overflows is an error below.
                minimum.add(0, &least.map(|x| if x.is_nan() { f64::INFINITY } else { x }));
            }
        }
        minimum.finish()
    });
    let mut of_lanes = ExactSums::new(LANES);
    minima.iter().for_each(|of_block| of_lanes.merge(of_block));
    of_lanes.accumulate(1);
    let minimum = ExactSums::gather(&[(&of_lanes, LANES - 1..LANES)]);
    if !minimum.rounded(0).is_finite()
        || parallel::map(regrets.chunks(ROWS * k), all_finite).contains(&false)
    {
        return Err(overflow());
    }
    Ok(ExactLabelCosts { regrets, nearest, minimum })
}

/// The error of distances that are too large.
pub(super) fn overflow() -> Error {
    Error::Value(
        "The distances between rows and centers overflow float64. Use scale=\"standard\" or rescale the columns."
            .into(),
    )
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
        let codes = self.codes.slice(s![start..start + out.len() / k]);
        let codes = match codes.as_slice() {
            Some(codes) => codes,
            None => &codes.to_vec(),
        };
        // A loop over a number of labels that the compiler knows is quicker.
        macro_rules! by_number {
            ($($k:literal)*) => {
                match k {
                    $($k => Arch::new().dispatch(AddLevels::<$k> { codes, costs: &self.costs, out }),)*
                    _ => {
                        for (&code, costs) in codes.iter().zip(out.chunks_exact_mut(k)) {
                            if code != MISSING_LEVEL {
                                let of_level = &self.costs[usize::from(code) * k..][..k];
                                costs.iter_mut().zip(of_level).for_each(|(cost, x)| *cost += x);
                            }
                        }
                    }
                }
            };
        }
        by_number!(1 2 3 4 5 6 7 8 9 10)
    }
}

/// [`LevelCosts::add`] of `K` labels, by the widest vectors as [`TileCosts`].
struct AddLevels<'a, const K: usize> {
    /// By row.
    codes: &'a [u8],
    /// n_levels x K, row-major.
    costs: &'a [f64],
    /// Rows x K, row-major.
    out: &'a mut [f64],
}

impl<const K: usize> NullaryFnOnce for AddLevels<'_, K> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let of_levels = self.costs.as_chunks::<K>().0;
        for (&code, costs) in self.codes.iter().zip(self.out.as_chunks_mut::<K>().0) {
            if code != MISSING_LEVEL {
                let of_level = &of_levels[usize::from(code)];
                (0..K).for_each(|label| costs[label] += of_level[label]);
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

/// At most [`MOST_AT_ONCE`] rows of the columns in their units, in tiles of [`LANES`] rows: `cells` holds a run of `LANES`
/// per column, tile after tile. Those past the last row are computed with and not read.
fn read_rows(columns: &[NumberColumn<'_, '_>], start: usize, rows: usize, cells: &mut [f64]) {
    let (tiles, mut of_column) = (cells.as_chunks_mut::<LANES>().0, [0.0; MOST_AT_ONCE]);
    for (place, &(column, shift, scale)) in columns.iter().enumerate() {
        column.read(start, &mut of_column[..rows]);
        let tiles = tiles.iter_mut().skip(place).step_by(columns.len());
        for (tile, cells) in tiles.zip(of_column.as_chunks::<LANES>().0) {
            for (out, x) in tile.iter_mut().zip(cells) {
                *out = if scale == 1.0 { x - shift } else { (x - shift) / scale };
            }
        }
    }
}

/// Computes the costs of one tile. `GAPS`: missing cells add nothing, else they make all costs of a row NaN. Every row
/// takes its terms in the order of the columns, [`LANES`] rows side by side, by the widest vectors that the machine has:
/// their width changes no bit.
struct TileCosts<'a, const GAPS: bool> {
    /// As [`read_rows`] writes them.
    cells: &'a [f64],
    /// k x d, row-major.
    centers: &'a [f64],
    metric: Metric,
    k: usize,
    /// Rows x k, row-major.
    out: &'a mut [f64],
}

impl<const GAPS: bool> NullaryFnOnce for TileCosts<'_, GAPS> {
    type Output = ();

    #[inline(always)] // into the function that is compiled for wide vectors
    fn call(self) {
        let TileCosts { cells, centers, metric, k, out } = self;
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

#[cfg(test)]
mod tests {
    use super::super::tests::{gappy, gappy_table};
    use super::*;
    use ndarray::{Array1, Array2};

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
    fn wide_vectors_change_no_bit() {
        fn check<const GAPS: bool>(cells: &[f64]) {
            let centers: Vec<f64> = (0..21).map(|i| f64::from(i % 8) / 3.0).collect();
            for metric in [Metric::SquaredEuclidean, Metric::Manhattan] {
                let [mut narrow, mut wide] = [[0.0; LANES * 3]; 2];
                let tile = |out| TileCosts::<GAPS> { cells, centers: &centers, metric, k: 3, out };
                tile(&mut narrow).call();
                Arch::new().dispatch(tile(&mut wide));
                assert!(narrow.iter().all(|x| *x > 0.0));
                assert_eq!(wide.map(f64::to_bits), narrow.map(f64::to_bits));
            }
        }
        let mut cells: Vec<f64> = (0..7 * LANES).map(|i| (i * 31 % 101) as f64 / 7.0).collect();
        check::<false>(&cells);
        cells.iter_mut().step_by(5).for_each(|x| *x = f64::NAN);
        check::<true>(&cells);
    }

    #[test]
    fn levels_add_up_for_any_number_of_labels_and_codes_apart_in_memory() {
        let stored = Array1::from_shape_fn(200, |i| match i * 7 % 5 {
            4 => MISSING_LEVEL,
            code => code as u8,
        });
        for codes in [stored.slice(s![..100]), stored.slice(s![..;2])] {
            for k in 1..=12 {
                let costs: Vec<f64> = (0..4 * k).map(|i| (i * i) as f64 / 9.0).collect();
                let mut out: Vec<f64> = (0..60 * k).map(|i| i as f64 / 3.0).collect();
                let mut expected = out.clone();
                for (i, sum) in expected.iter_mut().enumerate() {
                    match codes[30 + i / k] {
                        MISSING_LEVEL => {}
                        code => *sum += costs[usize::from(code) * k + i % k],
                    }
                }
                LevelCosts { codes: &codes, costs }.add(30, &mut out, k);
                assert_eq!(out, expected, "{k} labels");
            }
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
