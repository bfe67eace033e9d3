//! The feature table: columns of any numeric type, borrowed from the caller and never copied.
//!
//! Every value is compared and computed with as `f64`. Columns may be strided (a C-ordered matrix), so work
//! that touches many columns reads them in row tiles that stay in cache.
//!
//! | what reads it | how |
//! |---|---|
//! | costs, sums, checks | [`Table::scan_columns`]: all columns, tile by tile, one thread a column |
//! | fits | [`Column::gather`], [`Column::add_to`]: the cells of given rows |
//! | routing | [`Column::as_f64`] where cells are doubles in a row of memory, else [`Column::read`] into a tile |
//!
//! A table has at most 2^32 - 2 rows, so that row numbers fit in 32 bits. Values are compared as they are: 64-bit
//! integers beyond 2^53 are rounded to `f64`, as everywhere in scikit-learn.
//!
//! A missing cell reads as NaN. A column of levels ([`Column::Levels`]) holds a code per cell, in the order of its
//! levels, and reads as these codes.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, Axis, Zip, s};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, MAX_WORK_OF_CALLER, Monitor};

/// Rows read at a time: a tile of `f64` fits the first-level cache.
pub const TILE: usize = 1024;

/// Bytes of neighbouring rows that stay in a core's second cache between the columns of a C-ordered matrix. Each thread
/// reads its own columns of them.
const CACHED: usize = 1 << 19;
/// Rows of a tile where neighbouring columns share cache lines: those of some columns stay in the first cache.
const STRIDED_TILE: usize = 256;

/// Cells that one task checks for NaN and infinities.
const CELLS_PER_TASK: usize = 1 << 16;

/// The code of a missing or unknown cell in a column of levels.
pub const MISSING_LEVEL: u8 = u8::MAX;

/// Most levels of a column: their codes are below [`MISSING_LEVEL`].
pub const MAX_LEVELS: usize = MISSING_LEVEL as usize;

/// A cell type a column may have.
pub trait Value: Copy + Send + Sync + 'static {
    /// The cell as `f64` (64-bit integers beyond 2^53 are rounded, as they are everywhere in scikit-learn).
    fn to_f64(self) -> f64;
}

macro_rules! impl_value {
    ($($t:ty),*) => {$(
        impl Value for $t {
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
        }
    )*};
}
impl_value!(f64, f32, i8, i16, i32, i64, u8, u16, u32, u64);

impl Value for bool {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
}

macro_rules! define_columns {
    ($($variant:ident: $t:ty),*) => {
        /// One column of the table.
        #[derive(Debug, Clone)]
        pub enum Column<'a> {
            $(
                #[doc = concat!("A column of `", stringify!($t), "`.")]
                $variant(ArrayView1<'a, $t>),
            )*
            /// A column of levels: made by [`Column::levels`].
            Levels {
                /// Codes in `[0, n_levels)`; [`MISSING_LEVEL`] where the cell is missing.
                codes: ArrayView1<'a, u8>,
                /// Number of levels.
                n_levels: usize,
            },
        }
        $(
            impl<'a> From<ArrayView1<'a, $t>> for Column<'a> {
                fn from(view: ArrayView1<'a, $t>) -> Self { Column::$variant(view) }
            }
        )*
        /// Runs the same generic code on the view inside a [`Column`]; on the codes of a column of levels.
        macro_rules! with_column {
            ($column:expr, $view:ident => $body:expr) => {
                match $column {
                    $(Column::$variant($view) => $body,)*
                    Column::Levels { codes: $view, .. } => $body,
                }
            };
        }
    };
}
define_columns!(F64: f64, F32: f32, I8: i8, I16: i16, I32: i32, I64: i64,
                U8: u8, U16: u16, U32: u32, U64: u64, Bool: bool);

/// Copies a range of rows as `f64`.
fn copy_range<T: Value>(view: &ArrayView1<T>, start: usize, out: &mut [f64]) {
    let stop = start + out.len();
    let cells = view.slice(s![start..stop]);
    Zip::from(ArrayViewMut1::from(out)).and(cells).for_each(|out, &x| *out = x.to_f64());
}

/// Copies the given rows as `f64`.
fn copy_rows<T: Value>(view: &ArrayView1<T>, rows: &[u32], out: &mut [f64]) {
    for (out, &row) in out.iter_mut().zip(rows) {
        *out = view[row as usize].to_f64();
    }
}

/// Whether some code is [`MISSING_LEVEL`].
pub fn has_missing_levels(codes: &ArrayView1<'_, u8>) -> bool {
    // Of a slice, many codes are looked at together.
    match codes.as_slice() {
        Some(codes) => codes.contains(&MISSING_LEVEL),
        None => codes.iter().any(|&code| code == MISSING_LEVEL),
    }
}

/// Turns [`MISSING_LEVEL`] into NaN. Apart from the loops over numbers, which it would slow down.
#[inline(never)]
fn mark_missing_levels(cells: &mut [f64]) {
    let is_missing = |x: &&mut f64| **x == f64::from(MISSING_LEVEL);
    cells.iter_mut().filter(is_missing).for_each(|x| *x = f64::NAN);
}

impl<'a> Column<'a> {
    /// A column of levels from one code per row: `[0, n_levels)`, or [`MISSING_LEVEL`].
    ///
    /// # Errors
    /// [`Error::Value`] if there are more than 255 levels or a code is out of range.
    pub fn levels(codes: ArrayView1<'a, u8>, n_levels: usize) -> Result<Self> {
        if n_levels > MAX_LEVELS {
            return Err(Error::Value(format!(
                "A column has {n_levels} levels; at most {MAX_LEVELS} are supported."
            )));
        }
        // The largest code that is not missing: adding 1 takes 255 to 0.
        let end = codes.iter().fold(0, |end: u8, &code| end.max(code.wrapping_add(1)));
        if usize::from(end) > n_levels {
            return Err(Error::Value(format!(
                "Code {} is out of range: the column has {n_levels} levels.",
                end - 1
            )));
        }
        Ok(Column::Levels { codes, n_levels })
    }
}

impl Column<'_> {
    /// Number of levels; none for a column of numbers.
    pub fn n_levels(&self) -> Option<usize> {
        match self {
            Column::Levels { n_levels, .. } => Some(*n_levels),
            _ => None,
        }
    }

    /// Of a column of levels: turns the codes of missing cells into NaN.
    #[inline]
    fn mark_missing(&self, cells: &mut [f64]) {
        if matches!(self, Column::Levels { .. }) {
            mark_missing_levels(cells);
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        with_column!(self, v => v.len())
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are observed cells and all of them are equal. O(n).
    pub fn is_constant(&self) -> bool {
        let mut observed = (0..self.len()).map(|row| self.get(row)).filter(|x| !x.is_nan());
        observed.next().is_some_and(|first| observed.all(|x| x == first))
    }

    /// The cell of one row; NaN where it is missing.
    #[inline]
    pub fn get(&self, row: usize) -> f64 {
        match self {
            Column::Levels { codes, .. } if codes[row] == MISSING_LEVEL => f64::NAN,
            _ => with_column!(self, v => v[row].to_f64()),
        }
    }

    /// Copies the rows `[start, start + out.len())`.
    pub fn read(&self, start: usize, out: &mut [f64]) {
        with_column!(self, v => copy_range(v, start, out));
        self.mark_missing(out);
    }

    /// Copies the given rows, in their order.
    pub fn gather(&self, rows: &[u32], out: &mut Vec<f64>) {
        out.clear();
        memory::reserve(out, rows.len(), "the cells of a column");
        out.resize(rows.len(), 0.0);
        let parts = rows.chunks(CELLS_PER_TASK).zip(out.chunks_mut(CELLS_PER_TASK));
        parallel::map(parts, |(rows, out)| {
            with_column!(self, v => copy_rows(v, rows, out));
            self.mark_missing(out);
        });
    }

    /// Adds `factor` times the cell of each of the given rows of a column of numbers to `sums`.
    pub fn add_to(&self, rows: &[u32], factor: f64, sums: &mut [f64]) {
        with_column!(self, v => {
            for (sum, &row) in sums.iter_mut().zip(rows) {
                *sum += factor * v[row as usize].to_f64();
            }
        });
    }

    /// The cells of the given rows with their rows, in ascending order, missing ones last; equal ones by row.
    pub fn sort(&self, rows: &[u32]) -> Vec<(f64, u32)> {
        if let Column::Levels { codes, .. } = self
            && rows.is_sorted()
        {
            return sort_levels(codes, rows);
        }
        let mut cells = Vec::new();
        self.gather(rows, &mut cells);
        // A NaN of negative sign would come first.
        let cells = cells.into_iter().map(|x| if x.is_nan() { f64::NAN } else { x });
        let pairs = cells.zip(rows.iter().copied());
        let mut pairs: Vec<(f64, u32)> = memory::collected(pairs, "the sorted cells of a column");
        pairs.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        pairs
    }

    /// Whether the cells lie one after the other.
    pub fn is_contiguous(&self) -> bool {
        with_column!(self, v => v.as_slice().is_some())
    }

    /// Bytes of a cell.
    fn cell_size(&self) -> usize {
        fn size<T>(_: &ArrayView1<T>) -> usize {
            size_of::<T>()
        }
        with_column!(self, v => size(v))
    }

    /// The cells, if they are doubles that lie one after the other.
    pub fn as_f64(&self) -> Option<&[f64]> {
        match self {
            Column::F64(view) => view.as_slice(),
            _ => None,
        }
    }

    /// Whether a cell can be missing, NaN or infinite at all.
    pub fn may_have_gaps(&self) -> bool {
        matches!(self, Column::F64(_) | Column::F32(_) | Column::Levels { .. })
    }
}

/// [`Column::sort`] of levels, by counting them. `rows`: ascending.
fn sort_levels(codes: &ArrayView1<u8>, rows: &[u32]) -> Vec<(f64, u32)> {
    let mut places = [0; MAX_LEVELS + 2];
    rows.iter().for_each(|&row| places[usize::from(codes[row as usize]) + 1] += 1);
    (1..places.len()).for_each(|code| places[code] += places[code - 1]);
    let empty = std::iter::repeat_n((f64::NAN, 0), rows.len());
    let mut pairs: Vec<(f64, u32)> = memory::collected(empty, "the sorted cells of a column");
    for &row in rows {
        let code = codes[row as usize]; // that of missing cells is the last
        let place = &mut places[usize::from(code)];
        let cell = if code == MISSING_LEVEL { f64::NAN } else { f64::from(code) };
        pairs[*place] = (cell, row);
        *place += 1;
    }
    pairs
}

/// Whether no cell is NaN or infinite. x * 0 is 0 for finite x and NaN otherwise: one multiply-add per cell.
pub fn all_finite<T: Value>(cells: &[T]) -> bool {
    let mut lanes = [0.0f64; 16];
    let (blocks, rest) = cells.as_chunks::<16>();
    for block in blocks {
        for (lane, x) in lanes.iter_mut().zip(block) {
            *lane += x.to_f64() * 0.0;
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|x| x.to_f64() * 0.0).sum::<f64>() == 0.0
}

/// NaN (missing) and infinite cells of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NonFinite {
    /// The column.
    pub column: usize,
    /// Number of NaN cells.
    pub n_nan: usize,
    /// Number of infinite cells.
    pub n_inf: usize,
    /// The first row with one.
    pub first_row: usize,
}

/// The columns of a matrix (rows = samples), in any memory order.
pub fn matrix_columns<'a, T: Value>(matrix: ArrayView2<'a, T>) -> Vec<Column<'a>>
where
    Column<'a>: From<ArrayView1<'a, T>>,
{
    (0..matrix.ncols()).map(|f| Column::from(matrix.index_axis_move(Axis(1), f))).collect()
}

/// Columns of equal length, borrowed from the caller.
#[derive(Debug, Clone)]
pub struct Table<'a> {
    columns: Vec<Column<'a>>,
    n_samples: usize,
    monitor: Option<&'a Monitor>,
}

impl<'a> Table<'a> {
    /// A table of the given columns.
    ///
    /// # Errors
    /// [`Error::Shape`] if the columns differ in length, [`Error::Value`] if there are more than 2^32 - 2 rows.
    pub fn new(columns: Vec<Column<'a>>) -> Result<Self> {
        let n_samples = columns.first().map_or(0, Column::len);
        for column in &columns {
            Error::check_len("A column of the table", column.len(), n_samples, "rows")?;
        }
        if n_samples >= u32::MAX as usize {
            return Err(Error::Value(format!(
                "The table has {n_samples} rows; at most {} are supported.",
                u32::MAX - 1
            )));
        }
        Ok(Table { columns, n_samples, monitor: None })
    }

    /// The columns of a matrix (rows = samples), in any memory order.
    ///
    /// # Errors
    /// As [`Table::new`].
    pub fn from_matrix<T: Value>(matrix: ArrayView2<'a, T>) -> Result<Self>
    where
        Column<'a>: From<ArrayView1<'a, T>>,
    {
        Table::new(matrix_columns(matrix))
    }

    /// Number of rows.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// Number of columns.
    pub fn n_features(&self) -> usize {
        self.columns.len()
    }

    /// A column.
    pub fn column(&self, feature: usize) -> &Column<'a> {
        &self.columns[feature]
    }

    /// The same table; passes over it end early, with results that mean nothing, once `monitor` is asked to stop.
    pub fn with_monitor(&self, monitor: &'a Monitor) -> Table<'a> {
        Table { columns: self.columns.clone(), monitor: Some(monitor), ..*self }
    }

    /// Whether the monitor was asked to stop: results no longer count.
    pub fn stopped(&self) -> bool {
        self.monitor.is_some_and(|monitor| monitor.check().is_err())
    }

    /// The given columns, as a table.
    pub fn select(&self, features: &[usize]) -> Table<'a> {
        let columns = features.iter().map(|&f| self.columns[f].clone()).collect();
        Table { columns, ..*self }
    }

    /// Whether neighbouring columns share cache lines, as in a C-ordered matrix.
    fn is_strided(&self) -> bool {
        self.n_samples > TILE && self.columns.first().is_some_and(|c| !c.is_contiguous())
    }

    /// Column ranges of at most `most` columns to hand to threads, `each` or more a thread if there are enough columns:
    /// small enough to share out evenly, because columns differ in cost and the expensive ones often lie side by side.
    pub fn feature_chunks(&self, each: usize, most: usize) -> Vec<std::ops::Range<usize>> {
        let d = self.n_features();
        let length = (d / (each * parallel::n_threads())).clamp(1, most);
        (0..d).step_by(length).map(|start| start..(start + length).min(d)).collect()
    }

    /// Whether a pass over the cells is no work for other threads.
    pub fn is_small(&self) -> bool {
        self.n_samples.saturating_mul(self.n_features()) <= MAX_WORK_OF_CALLER
    }

    /// Calls `visit(state, feature, first row, cells)` for every column, tile by tile in row order. One thread at a
    /// time sees a column's tiles, so whatever it adds up does not depend on the number of threads. The calling thread
    /// reads a table by itself that [`Table::is_small`].
    /// `state(feature)` makes the column's accumulator; they come back in column order.
    pub fn scan_columns<S: Send>(
        &self,
        state: impl Fn(usize) -> S + Sync,
        visit: impl Fn(&mut S, usize, usize, &[f64]) + Sync,
    ) -> Vec<S> {
        // Columns that lie apart are best shared out one by one.
        let most = if self.is_strided() { 8 } else { 1 };
        let features = match self.is_small() {
            true => std::iter::once(0..self.n_features()).collect(),
            false => self.feature_chunks(8, most),
        };
        let mut chunks: Vec<Vec<(usize, S)>> =
            parallel::map(features, |features| features.map(|f| (f, state(f))).collect());
        // The rows of a C-ordered matrix come from memory once, and then from the cache for all columns.
        let (block, tile) = if self.is_strided() {
            let row = self.n_features() * self.columns[0].cell_size();
            let block = (CACHED * parallel::n_threads() / row).next_multiple_of(STRIDED_TILE);
            (block, STRIDED_TILE)
        } else {
            (self.n_samples.max(1), TILE)
        };
        for first in (0..self.n_samples).step_by(block) {
            let last = (first + block).min(self.n_samples);
            // Columns differ in cost, the expensive ones often side by side.
            parallel::map(&mut chunks, |chunk| {
                let mut cells = [0.0; TILE];
                for start in (first..last).step_by(tile) {
                    if self.stopped() {
                        break;
                    }
                    let length = tile.min(last - start);
                    for (feature, state) in chunk.iter_mut() {
                        self.columns[*feature].read(start, &mut cells[..length]);
                        visit(state, *feature, start, &cells[..length]);
                    }
                }
            });
        }
        chunks.into_iter().flatten().map(|(_, state)| state).collect()
    }

    /// Number of levels of a column; none for a column of numbers.
    pub fn n_levels(&self, feature: usize) -> Option<usize> {
        self.columns[feature].n_levels()
    }

    /// The columns that hold NaN or infinite cells, in column order. `memory`: the cells of all columns in any order,
    /// where they fill their memory without gaps; one pass over it ends the search if all cells are finite.
    pub fn find_non_finite(&self, memory: Option<&[f64]>) -> Vec<NonFinite> {
        let is_finite = |cells: &[f64]| {
            !parallel::map(cells.chunks(CELLS_PER_TASK), all_finite).contains(&false)
        };
        if !self.columns.iter().any(Column::may_have_gaps) || memory.is_some_and(is_finite) {
            return Vec::new();
        }
        let found = self.scan_columns(
            |column| NonFinite { column, n_nan: 0, n_inf: 0, first_row: usize::MAX },
            |found, _, start, cells| {
                if all_finite(cells) {
                    return;
                }
                if let Some(first) = cells.iter().position(|x| !x.is_finite()) {
                    found.first_row = found.first_row.min(start + first);
                }
                found.n_nan += cells.iter().map(|x| usize::from(x.is_nan())).sum::<usize>();
                found.n_inf += cells.iter().map(|x| usize::from(x.is_infinite())).sum::<usize>();
            },
        );
        found.into_iter().filter(|c| c.n_nan + c.n_inf > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2};

    #[test]
    fn a_small_table_is_scanned_by_the_calling_thread() {
        let threads = |n: usize| {
            let matrix = Array2::from_shape_fn((n, 8), |(i, j)| (i + j) as f64);
            let table = Table::from_matrix(matrix.view()).unwrap();
            let threads = std::sync::Mutex::new(std::collections::HashSet::new());
            table.scan_columns(
                |_| (),
                |(), _, _, _| {
                    threads.lock().unwrap().insert(std::thread::current().id());
                },
            );
            threads.into_inner().unwrap()
        };
        let own = std::collections::HashSet::from([std::thread::current().id()]);
        assert_eq!(threads(MAX_WORK_OF_CALLER / 8), own);
        assert_ne!(threads(MAX_WORK_OF_CALLER / 8 + 1), own);
    }

    #[test]
    fn columns_of_any_type_and_order_read_alike() {
        let matrix = Array2::from_shape_fn((2500, 3), |(i, j)| (i * 7 + j * 3) as f64 % 11.0);
        let fortran = matrix.t().as_standard_layout().reversed_axes().to_owned();
        let small = matrix.mapv(|x| x as u8);
        let c = Table::from_matrix(matrix.view()).unwrap();
        let f = Table::from_matrix(fortran.view()).unwrap();
        let u = Table::from_matrix(small.view()).unwrap();
        let rows = [0, 2499, 17];
        for feature in 0..3 {
            let mut expected = vec![0.0; 100];
            c.column(feature).read(1200, &mut expected);
            for table in [&f, &u] {
                let mut got = vec![0.0; 100];
                table.column(feature).read(1200, &mut got);
                assert_eq!(got, expected);
                let (mut a, mut b) = (Vec::new(), Vec::new());
                table.column(feature).gather(&rows, &mut a);
                c.column(feature).gather(&rows, &mut b);
                assert_eq!(a, b);
            }
        }
    }

    #[test]
    fn levels_sort_as_their_codes_do() {
        let codes = Array1::from_shape_fn(500, |i| match i * i % 13 {
            12 => MISSING_LEVEL,
            code => code as u8,
        });
        let levels = Column::levels(codes.view(), 13).unwrap();
        let cells = Array1::from_shape_fn(500, |i| levels.get(i));
        let numbers: Column<'_> = cells.view().into();
        let bits = |column: &Column<'_>, rows: &[u32]| {
            let sorted = column.sort(rows).into_iter();
            sorted.map(|(x, row)| (x.to_bits(), row)).collect::<Vec<_>>()
        };
        let ascending: Vec<u32> = (0..500).filter(|row| row % 3 > 0).collect();
        let shuffled: Vec<u32> = (0..500).map(|i| i * 7 % 500).collect();
        for rows in [&[][..], &ascending, &shuffled] {
            assert_eq!(bits(&levels, rows), bits(&numbers, rows));
        }
    }

    #[test]
    fn levels_read_as_codes_and_missing_ones_as_nan() {
        let codes = Array1::from_shape_fn(3000, |i| [0u8, 2, MISSING_LEVEL, 1][i % 4]);
        let column = Column::levels(codes.view(), 3).unwrap();
        let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let expected = [0.0, 2.0, f64::NAN, 1.0];
        let (mut read, mut gathered) = (vec![0.0; 4], vec![]);
        column.read(2000, &mut read);
        column.gather(&[4, 5, 6, 7], &mut gathered);
        assert_eq!(bits(&read), bits(&expected));
        assert_eq!(bits(&gathered), bits(&expected));
        assert_eq!(column.get(1), 2.0);
        assert!(column.get(2).is_nan());
        let table = Table::new(vec![column]).unwrap();
        assert_eq!(table.n_levels(0), Some(3));
        let gaps = NonFinite { column: 0, n_nan: 750, n_inf: 0, first_row: 2 };
        assert_eq!(table.find_non_finite(None), [gaps]);
        for (n_levels, expected) in [(2, "Code 2 is out of range"), (256, "at most 255")] {
            let message = Column::levels(codes.view(), n_levels).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let missing = Array1::from_elem(4, MISSING_LEVEL);
        assert!(Column::levels(missing.view(), 0).is_ok());
    }

    #[test]
    fn non_finite_cells_are_counted_and_located() {
        let mut matrix = Array2::<f32>::zeros((3000, 4));
        matrix[[2100, 1]] = f32::NAN;
        matrix[[40, 3]] = f32::INFINITY;
        matrix[[41, 3]] = f32::NAN;
        let table = Table::from_matrix(matrix.view()).unwrap();
        let expected = vec![
            NonFinite { column: 1, n_nan: 1, n_inf: 0, first_row: 2100 },
            NonFinite { column: 3, n_nan: 1, n_inf: 1, first_row: 40 },
        ];
        assert_eq!(table.find_non_finite(None), expected);
        let matrix = matrix.mapv(f64::from);
        let table = Table::from_matrix(matrix.view()).unwrap();
        assert_eq!(table.find_non_finite(matrix.as_slice()), expected);
    }

    #[test]
    fn finite_cells_are_found_by_one_pass_over_memory() {
        let (finite, mut matrix) = (vec![1.0; 6], Array2::<f64>::zeros((2, 3)));
        matrix[[1, 2]] = f64::NAN;
        let table = Table::from_matrix(matrix.view()).unwrap();
        assert_eq!(table.find_non_finite(matrix.as_slice()).len(), 1);
        // Of other memory than the table's: the columns are not read.
        assert!(table.find_non_finite(Some(&finite)).is_empty());
    }

    #[test]
    fn huge_cells_are_finite() {
        let column = Array1::from_elem(2000, f64::MAX);
        let table = Table::new(vec![column.view().into()]).unwrap();
        assert!(table.find_non_finite(None).is_empty());
    }

    #[test]
    fn unequal_columns_are_refused() {
        let (a, b) = (Array1::<f64>::zeros(3), Array1::<i8>::zeros(4));
        let message = Table::new(vec![a.view().into(), b.view().into()]).unwrap_err().to_string();
        assert_eq!(
            message,
            "A column of the table has 4 rows, but 3 rows are expected.".replace("3 rows", "3")
        );
    }
}
