//! The matrix as the node solver reads it: made once per fit, read by every solve.
//!
//! A cell is kept as (x - base) / unit: `base` is a value that many rows of the column have, or else one in its middle;
//! `unit` is a power of two that brings the column into [-1, 1]. The bias absorbs the base and the column's penalty
//! absorbs the unit, so that columns far from the origin or of extreme size cost no accuracy. Rows lie one after the
//! other, with only the cells that differ from the base where those are few, and in `f32` where that is exact.
//!
//! | form | when | bytes a stored cell |
//! |---|---|---|
//! | all cells | more than two in five differ from the base | 4 or 8 |
//! | cells other than the base | else, and all sparse input (base 0) | 6 or 10; 8 or 12 beyond 65,535 columns |
//!
//! Making it takes two or three passes over the table: one for bases, ranges and counts, one that writes the cells as
//! `f32`, and one more as `f64` if a cell was not exact.

use std::ops::Range;
use std::sync::Arc;

use super::cells::{
    CHUNK, Cell, Cells, MAX_NARROW_COLUMNS, MIN_DENSE_SHARE, SparseCells, StoredIndex,
};
use super::sums::RowSelection;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::rows::{Csr, Rows};
use crate::table::Table;

/// Stored cells that one task scales.
const CELLS_PER_TASK: usize = 1 << 16;

/// Rows transposed in one go: all their cells stay in cache.
const TILE: usize = 64;
/// Cells of a column sampled for its base.
const CELLS_SAMPLED: usize = 256;

/// The cells, in the smaller type that holds them exactly.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DesignCells {
    F32(Cells<f32>),
    F64(Cells<f64>),
}

/// Origin and unit of a column as stored: a cell is kept as `(x - base) / unit`, in [-1, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub base: f64,
    pub unit: f64,
}

/// A matrix ready for the solver; see the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// The cells, in the units of their columns.
    pub(super) cells: DesignCells,
    /// Origin and unit of each column.
    pub(super) scales: Vec<Scale>,
    /// Mean over the columns of each row's share in the column's sum of squares, times the rows: 1 on average.
    pub(super) sizes: Vec<f32>,
    /// Shared by clones only: identifies the matrix.
    pub(super) identity: Arc<()>,
    n_rows: usize,
}

impl Design {
    /// Copies the cells of a table. Takes 4 or 8 bytes a cell, or 6 or 10 for each that differs from its column's base
    /// where those are at most two in five (2 more with more than 65,535 columns).
    ///
    /// # Errors
    /// [`Error::Value`] if a cell is NaN or infinite.
    pub fn from_table(table: &Table<'_>) -> Result<Self> {
        let (n, d) = (table.n_samples(), table.n_features());
        let bases = parallel::map(0..d, |j| base_of(table, j));
        let seen = summarise(table, &bases);
        let counts: Vec<usize> =
            seen.iter().map(|chunk| chunk.iter().map(|seen| seen.other).sum()).collect();
        let scale = |(j, &base): (usize, &f64)| {
            let all = seen
                .iter()
                .map(|chunk| chunk[j])
                .fold(ColumnSummary::NOTHING, ColumnSummary::merge);
            Scale { base, unit: unit_of(base, all.low, all.high) }
        };
        let scales: Vec<Scale> = bases.iter().enumerate().map(scale).collect();
        // A width of 0 has no cells either way.
        let dense = counts.iter().sum::<usize>() as f64 > MIN_DENSE_SHARE * (n * d) as f64;
        let cells = if dense {
            fill_dense(table, &scales)
                .map(DesignCells::F32)
                .or_else(|| fill_dense(table, &scales).map(DesignCells::F64))
        } else {
            fill_sparse(table, &scales, &counts)
                .map(DesignCells::F32)
                .or_else(|| fill_sparse(table, &scales, &counts).map(DesignCells::F64))
        };
        let cells = cells.ok_or_else(not_finite)?;
        Ok(Design::new(cells, scales, n))
    }

    /// Copies rows of either form.
    ///
    /// # Errors
    /// As [`Design::from_table`] and [`Design::from_csr`].
    pub fn from_rows(rows: Rows<'_, '_>) -> Result<Self> {
        let csr = match rows {
            Rows::Table(table) => return Design::from_table(table),
            Rows::Sparse(csr) => csr,
        };
        if csr.n_columns() <= MAX_NARROW_COLUMNS {
            Design::from_csr::<_, u16>(csr)
        } else {
            Design::from_csr::<_, u32>(csr)
        }
    }

    /// Copies the cells of a sparse matrix whose columns ascend in each row, with columns in the type `J`, which must
    /// hold them; nothing is made dense. Takes 4 or 8 bytes for each stored cell, and what its column's number takes.
    ///
    /// # Errors
    /// [`Error::Value`] if the columns of a row do not ascend, or a cell is NaN or infinite.
    pub fn from_csr<V: Copy + Into<f64> + Sync, J: StoredIndex>(
        csr: &Csr<Vec<u32>, &[V]>,
    ) -> Result<Self> {
        csr.check_ascending()?;
        let n_columns = csr.n_columns();
        let indptr = memory::copied(csr.indptr(), "the scaled table");
        let indices = csr.indices().iter().map(|&j| J::of(j as usize));
        let indices: Vec<J> = memory::collected(indices, "the scaled table");
        let values = csr.values();
        let mut size = vec![0.0f64; n_columns];
        for (j, &x) in indices.iter().zip(values) {
            let x: f64 = x.into();
            if !x.is_finite() {
                return Err(not_finite());
            }
            let size = &mut size[j.get()];
            *size = size.max(x.abs());
        }
        let scales: Vec<Scale> =
            size.iter().map(|&size| Scale { base: 0.0, unit: unit_of(0.0, 0.0, size) }).collect();
        // Powers of two: as exact as a division, and faster.
        let factors: Vec<f64> = scales.iter().map(|scale| 1.0 / scale.unit).collect();
        let scaled = |at: usize| -> f64 { values[at].into() * factors[indices[at].get()] };
        let n_rows = indptr.len() - 1;
        let (n, what) = (values.len(), "the scaled table");
        let fits_f32 = |at: usize| f64::from(scaled(at) as f32) == scaled(at);
        let tasks = (0..n).step_by(CELLS_PER_TASK);
        let exact =
            !parallel::map(tasks, |start| (start..(start + CELLS_PER_TASK).min(n)).all(fits_f32))
                .contains(&false);
        let cells = if exact {
            let values = parallel::collect(n, CELLS_PER_TASK, what, |at| scaled(at) as f32);
            DesignCells::F32(J::cells(Csr::from_parts(indptr, indices, values, n_columns)))
        } else {
            let values = parallel::collect(n, CELLS_PER_TASK, what, scaled);
            DesignCells::F64(J::cells(Csr::from_parts(indptr, indices, values, n_columns)))
        };
        Ok(Design::new(cells, scales, n_rows))
    }

    /// Adds the sizes of the rows.
    fn new(cells: DesignCells, scales: Vec<Scale>, n_rows: usize) -> Self {
        let sizes = match &cells {
            DesignCells::F32(cells) => sizes(cells, n_rows, scales.len()),
            DesignCells::F64(cells) => sizes(cells, n_rows, scales.len()),
        };
        Design { cells, scales, sizes, identity: Arc::new(()), n_rows }
    }

    /// Rows of the matrix.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Columns of the matrix.
    pub fn n_columns(&self) -> usize {
        self.scales.len()
    }
}

/// The sizes of the rows: see [`Design::sizes`]. Rows of large size carry more of the curvature, and are drawn more
/// often for its sample. Two passes over the stored cells.
fn sizes<V: Cell>(cells: &Cells<V>, n_rows: usize, n_columns: usize) -> Vec<f32> {
    let rows: Vec<u32> = memory::collected(0..n_rows as u32, "the sizes of the rows");
    let selected = RowSelection::new(cells, &rows, n_columns);
    let squares = selected.sums_of_squares(&memory::filled(1.0, n_rows, "the sizes of the rows"));
    let filled = squares.iter().filter(|square| **square > 0.0).count();
    let share = |square: &f64| {
        if *square > 0.0 { n_rows as f64 / (square * filled as f64) } else { 0.0 }
    };
    let share: Vec<f64> = squares.iter().map(share).collect();
    let mut sizes: Vec<f64> = memory::zeros(n_rows, "the sizes of the rows");
    selected.dots_of_squares(&share, &mut sizes);
    memory::collected(sizes.iter().map(|&size| size as f32), "the sizes of the rows")
}

/// The error of a cell that is NaN or infinite, in a table or a sparse matrix.
fn not_finite() -> Error {
    Error::Value("The matrix holds NaN or infinite cells.".into())
}

impl Scale {
    /// (x - base) / unit, without overflow.
    #[inline(always)]
    fn of(self, x: f64) -> f64 {
        (0.5 * x - 0.5 * self.base) * (2.0 / self.unit)
    }
}

/// The most frequent of some of the column's cells if it makes up a quarter of them, else their median: either lies
/// within two standard deviations of their mean.
/// Read from [`CELLS_SAMPLED`] cells at even distances.
fn base_of(table: &Table<'_>, j: usize) -> f64 {
    let n = table.n_samples();
    let take = n.min(CELLS_SAMPLED);
    let column = table.column(j);
    let mut cells: Vec<f64> = (0..take).map(|i| column.get(i * n / take)).collect();
    cells.sort_unstable_by(f64::total_cmp);
    let mut longest = &cells[..0];
    for run in cells.chunk_by(|a, b| a == b) {
        if run.len() > longest.len() {
            longest = run;
        }
    }
    match longest {
        [] => 0.0,
        [x, ..] if 4 * longest.len() >= take => *x,
        _ => cells[take / 2],
    }
}

/// The power of two that brings `[low, high]` counted from `base` into [-1, 1]; 1 if nothing differs from `base`. A
/// division by it is exact, so units cost no digits.
fn unit_of(base: f64, low: f64, high: f64) -> f64 {
    let half = (0.5 * high - 0.5 * base).max(0.5 * base - 0.5 * low);
    if half > 0.0 && half.is_finite() {
        let below = ((half.to_bits() >> 52) & 0x7ff) as i32 - 1023; // 2^below <= half
        2f64.powi((below + 2).clamp(-1000, 1023))
    } else {
        1.0
    }
}

/// The range of some cells of a column, and how many differ from its base.
#[derive(Clone, Copy)]
struct ColumnSummary {
    low: f64,
    high: f64,
    /// Cells that differ from the base.
    other: usize,
}

impl ColumnSummary {
    const NOTHING: ColumnSummary =
        ColumnSummary { low: f64::INFINITY, high: f64::NEG_INFINITY, other: 0 };

    /// Both together.
    fn merge(self, more: ColumnSummary) -> ColumnSummary {
        let (low, high) = (self.low.min(more.low), self.high.max(more.high));
        ColumnSummary { low, high, other: self.other + more.other }
    }

    /// The summary of `cells`. In lanes, so that it is compiled to vector code.
    fn of(cells: &[f64], base: f64) -> ColumnSummary {
        const LANES: usize = 4;
        let (mut low, mut high) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
        let mut other = [0u64; LANES];
        let (blocks, rest) = cells.as_chunks::<LANES>();
        for block in blocks {
            for l in 0..LANES {
                let x = block[l];
                low[l] = if x < low[l] { x } else { low[l] };
                high[l] = if x > high[l] { x } else { high[l] };
                other[l] += u64::from(x != base);
            }
        }
        let of_lane =
            |l: usize| ColumnSummary { low: low[l], high: high[l], other: other[l] as usize };
        let lanes = (0..LANES).map(of_lane).fold(ColumnSummary::NOTHING, ColumnSummary::merge);
        let of_cell = |&x: &f64| ColumnSummary { low: x, high: x, other: usize::from(x != base) };
        rest.iter().map(of_cell).fold(lanes, ColumnSummary::merge)
    }
}

/// The columns of every chunk of rows.
/// One pass over the table, in chunks of rows.
fn summarise(table: &Table<'_>, bases: &[f64]) -> Vec<Vec<ColumnSummary>> {
    let of_chunk = |rows: Range<usize>| {
        let mut seen = vec![ColumnSummary::NOTHING; bases.len()];
        let mut cells = [0.0; TILE];
        for start in rows.clone().step_by(TILE) {
            let cells = &mut cells[..TILE.min(rows.end - start)];
            for (j, (seen, &base)) in seen.iter_mut().zip(bases).enumerate() {
                table.column(j).read(start, cells);
                *seen = seen.merge(ColumnSummary::of(cells, base));
            }
        }
        seen
    };
    parallel::map(chunks(table.n_samples()), of_chunk)
}

/// Ranges of [`CHUNK`] rows.
fn chunks(n: usize) -> Vec<Range<usize>> {
    (0..n).step_by(CHUNK).map(|start| start..n.min(start + CHUNK)).collect()
}

/// All cells, or none if one of them is NaN, infinite, or not exact as a `V`.
fn fill_dense<V: Cell>(table: &Table<'_>, scales: &[Scale]) -> Option<Cells<V>> {
    let (n, width) = (table.n_samples(), scales.len());
    let mut values = memory::zeros::<V>(n * width, "the scaled table");
    let chunks = values.chunks_mut((CHUNK * width).max(1)).enumerate();
    let filled = parallel::map(chunks, |(chunk, values)| {
        let start = chunk * CHUNK;
        for (tile, values) in values.chunks_mut(TILE * width).enumerate() {
            transpose(table, scales, start + tile * TILE, values)?;
        }
        Some(())
    });
    filled.into_iter().collect::<Option<()>>()?;
    Some(Cells::Dense { values, width })
}

/// The cells other than 0, or none as in [`fill_dense`]. `counts`: how many there are in every chunk of rows.
fn fill_sparse<V: Cell>(table: &Table<'_>, scales: &[Scale], counts: &[usize]) -> Option<Cells<V>> {
    if scales.len() <= MAX_NARROW_COLUMNS {
        fill_places(table, scales, counts).map(Cells::Narrow)
    } else {
        fill_places(table, scales, counts).map(Cells::Wide)
    }
}

/// As [`fill_sparse`], with columns in the type `J`. Chunks of rows are filled in parallel, each its own part of the
/// arrays.
fn fill_places<V: Cell, J: StoredIndex>(
    table: &Table<'_>,
    scales: &[Scale],
    counts: &[usize],
) -> Option<SparseCells<V, J>> {
    let (n, width) = (table.n_samples(), scales.len());
    let total = counts.iter().sum();
    let mut indptr = memory::zeros(n + 1, "the scaled table");
    let mut indices = memory::zeros::<J>(total, "the scaled table");
    let mut values = memory::zeros::<V>(total, "the scaled table");
    let mut work = Vec::with_capacity(counts.len());
    {
        let (mut ends, mut columns, mut cells) =
            (&mut indptr[1..], &mut indices[..], &mut values[..]);
        let mut before = 0;
        for (rows, &count) in chunks(n).into_iter().zip(counts) {
            let (here, rest) = ends.split_at_mut(rows.len());
            ends = rest;
            let (columns_here, rest) = columns.split_at_mut(count);
            columns = rest;
            let (cells_here, rest) = cells.split_at_mut(count);
            cells = rest;
            work.push((rows, before, here, columns_here, cells_here));
            before += count;
        }
    }
    let filled = parallel::map(work, |(rows, before, ends, columns, cells)| {
        let mut tile = vec![V::default(); TILE * width];
        let mut filled = 0;
        for start in rows.clone().step_by(TILE) {
            let length = TILE.min(rows.end - start);
            transpose(table, scales, start, &mut tile[..length * width])?;
            for i in 0..length {
                for (j, &x) in tile[i * width..][..width].iter().enumerate() {
                    // The next cell overwrites this one if it is 0; the last one may be one too many.
                    if let (Some(column), Some(cell)) =
                        (columns.get_mut(filled), cells.get_mut(filled))
                    {
                        *column = J::of(j);
                        *cell = x;
                    }
                    filled += usize::from(x != V::default());
                }
                ends[start - rows.start + i] = before + filled;
            }
        }
        // Cells so small beside others that they are 0 in the column's unit were counted: the last row gets zeros.
        columns[filled..].fill(J::of(width.saturating_sub(1)));
        cells[filled..].fill(V::default());
        if let Some(end) = ends.last_mut() {
            *end = before + cells.len();
        }
        Some(())
    });
    filled.into_iter().collect::<Option<()>>()?;
    Some(Csr::from_parts(indptr, indices, values, width))
}

/// Writes the rows from `start` one after the other to `out`, of shape (rows, width), in the columns' units; none as in
/// [`fill_dense`].
/// Columns are read a tile at a time and written across, so that both sides stay in cache.
fn transpose<V: Cell>(
    table: &Table<'_>,
    scales: &[Scale],
    start: usize,
    out: &mut [V],
) -> Option<()> {
    let width = scales.len();
    let mut column = [0.0; TILE];
    let column = &mut column[..out.len() / width.max(1)];
    let mut exact = true;
    for (j, scale) in scales.iter().enumerate() {
        table.column(j).read(start, column);
        for (x, row) in column.iter().zip(out.chunks_exact_mut(width)) {
            let x = scale.of(*x);
            row[j] = V::of(x);
            exact &= row[j].get() == x && x.is_finite();
        }
    }
    exact.then_some(())
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    /// The cells of a design, in the units of the columns.
    fn cells(design: &Design) -> Vec<Vec<f64>> {
        fn row<V: Cell, J: StoredIndex>(cells: &SparseCells<V, J>, i: usize, d: usize) -> Vec<f64> {
            let mut row = vec![0.0; d];
            let (columns, values) = cells.row(i);
            for (j, x) in columns.iter().zip(values) {
                row[j.get()] += x.get();
            }
            row
        }
        fn rows<V: Cell>(cells: &Cells<V>, n: usize, d: usize) -> Vec<Vec<f64>> {
            let of_row = |i: usize| match cells {
                Cells::Dense { values, .. } => {
                    values[i * d..][..d].iter().map(|x| x.get()).collect()
                }
                Cells::Narrow(cells) => row(cells, i, d),
                Cells::Wide(cells) => row(cells, i, d),
            };
            (0..n).map(of_row).collect()
        }
        let (n, d) = (design.n_rows(), design.n_columns());
        let mut rows = match &design.cells {
            DesignCells::F32(cells) => rows(cells, n, d),
            DesignCells::F64(cells) => rows(cells, n, d),
        };
        for row in &mut rows {
            for (x, scale) in row.iter_mut().zip(&design.scales) {
                assert!(x.abs() <= 1.0);
                *x = *x * scale.unit + scale.base;
            }
        }
        rows
    }

    fn check(x: &Array2<f64>) -> Design {
        let design = Design::from_table(&Table::from_matrix(x.view()).unwrap()).unwrap();
        for (got, expected) in cells(&design).iter().zip(x.outer_iter()) {
            assert_eq!(got, &expected.to_vec());
        }
        design
    }

    #[test]
    fn cells_are_kept_exactly() {
        let n = CHUNK + TILE + 3;
        let few = Array2::from_shape_fn((n, 5), |(i, j)| {
            if (i * 5 + j) % 4 == 0 { ((i + j) % 256) as f64 } else { j as f64 }
        });
        let design = check(&few);
        assert!(matches!(design.cells, DesignCells::F32(Cells::Narrow(_))));
        let bases: Vec<f64> = design.scales.iter().map(|scale| scale.base).collect();
        assert_eq!(bases, [0.0, 1.0, 2.0, 3.0, 4.0]);
        let many = Array2::from_shape_fn((n, 3), |(i, j)| ((i * 7 + j) % 1009) as f64 + 2e9);
        let design = check(&many);
        assert!(matches!(design.cells, DesignCells::F32(Cells::Dense { .. })));
        assert!(design.scales.iter().all(|scale| scale.unit <= 2048.0));
        // 1/3 is not exact in 32 bits, 2^-600 not in their range; the base is 0.
        let sparse = few.mapv(|x| if x > 4.0 { x / 3.0 * 2f64.powi(-600) } else { 0.0 });
        assert!(matches!(check(&sparse).cells, DesignCells::F64(Cells::Narrow(_))));
    }

    #[test]
    fn cells_that_are_nothing_beside_others_become_0() {
        let x = Array2::from_shape_fn((200, 2), |(i, j)| match i % 10 + j {
            0 => 1e300,
            1 => 5e-324,
            _ => 0.0,
        });
        let design = Design::from_table(&Table::from_matrix(x.view()).unwrap()).unwrap();
        for (i, row) in cells(&design).iter().enumerate() {
            assert_eq!(row[0], if i % 10 == 0 { 1e300 } else { 0.0 });
        }
    }

    #[test]
    fn a_sparse_matrix_is_the_table_it_stands_for() {
        let values = [1.0, -8.0, 0.5, 1e-3, 3.0];
        let csr = Csr::from_i64(&[0, 2, 2, 5], &[0, 3, 0, 1, 3], &values, 4).unwrap();
        let design = Design::from_rows(Rows::sparse(&csr).unwrap()).unwrap();
        let expected = [[1.0, 0.0, 0.0, -8.0], [0.0; 4], [0.5, 1e-3, 0.0, 3.0]];
        assert_eq!(cells(&design), expected);
        assert!(matches!(design.cells, DesignCells::F64(_)));
    }

    #[test]
    fn many_columns_have_places_too() {
        for width in [MAX_NARROW_COLUMNS, MAX_NARROW_COLUMNS + 1] {
            let x = Array2::from_shape_fn((3, width), |(i, j)| f64::from(u8::from(j % 9 == i)));
            let design = Design::from_table(&Table::from_matrix(x.view()).unwrap()).unwrap();
            let DesignCells::F32(stored) = &design.cells else { unreachable!() };
            assert_eq!(matches!(stored, Cells::Narrow(_)), width == MAX_NARROW_COLUMNS);
            assert_eq!(cells(&design), x.outer_iter().map(|x| x.to_vec()).collect::<Vec<_>>());
        }
        let values = [1.0, 2.0, -4.0];
        let csr = Csr::from_i64(&[0, 2, 3], &[1, 9, 4], &values, 10).unwrap();
        let narrow = Design::from_csr::<_, u16>(&csr).unwrap();
        let wide = Design::from_csr::<_, u32>(&csr).unwrap();
        assert!(narrow.cells != wide.cells);
        assert_eq!(cells(&narrow), cells(&wide));
        // As many columns as narrow ones can be: the last one has its own number.
        let last = (MAX_NARROW_COLUMNS - 1) as i64;
        let csr = Csr::from_i64(&[0, 1], &[last], &[1.0], MAX_NARROW_COLUMNS).unwrap();
        let row = &cells(&Design::from_rows(Rows::sparse(&csr).unwrap()).unwrap())[0];
        assert_eq!(row.iter().position(|x| *x == 1.0), Some(last as usize));
    }

    #[test]
    fn units_hold_every_cell() {
        for (base, low, high) in [
            (0.0, -1.0, 1.0),
            (3.0, -5.0, 4.0),
            (0.0, 0.0, 1e307),
            (0.0, 0.0, 5e-324),
            (1e9, 1e9, 1e9),
        ] {
            let scale = Scale { base, unit: unit_of(base, low, high) };
            assert!(scale.of(low).abs() <= 1.0 && scale.of(high).abs() <= 1.0);
        }
        let scale = Scale { base: f64::MIN, unit: unit_of(f64::MIN, f64::MIN, f64::MAX) };
        assert!(scale.of(f64::MAX).is_finite());
    }
}
