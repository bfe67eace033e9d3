//! The cells of a matrix as the node solver stores them, and the passes over some of its rows.
//!
//! Rows lie one after the other, all cells of each or only those other than 0, in `f32` or `f64`, with columns in `u16`
//! or `u32`. A pass reads every stored cell of the given rows once and calls nothing in between, so that it waits for
//! memory and not for instructions; `sums.rs` hands chunks of rows to threads. In formulas x_ij is the cell of row
//! i in column j, w a weight by column, r and h a slope and a curvature by row.
//!
//! | pass | result | used for |
//! |---|---|---|
//! | `dots` | sum over j of term(x_ij) w_j, by row | margins |
//! | `add_columns` | sum over i of r_i term(x_ij), by column | slopes |
//! | `add_moments` | slopes, and weighted sums of x and x^2, by column | steps of single columns |
//! | `write_scaled`, `add_gram` | rows times factors; sum over i of h_i x_ip x_iq | the curvature of a working set |
//!
//! Cost of each but `add_gram`: O(stored cells of the rows). `add_gram` takes their square by row.
//!
//! All passes are generic over the types of cells and columns and inlined into one function per form, so the choice of
//! the form is made once per pass and not per cell.

use std::ops::Range;

use crate::memory;
use crate::rows::{ColumnIndex, Csr};

/// Rows that one thread works on in one go. Sums are formed per chunk and added up in the order of the chunks.
pub const CHUNK: usize = 4096;
/// Above this share of cells other than 0 all cells of a matrix are stored.
pub const MIN_DENSE_SHARE: f64 = 0.4;
/// The place of a column that is left out.
pub(super) const NO_PLACE: u32 = u32::MAX;

/// A number type of stored cells.
pub trait Cell: Copy + Send + Sync + PartialEq + Default + 'static {
    /// The cell.
    fn get(self) -> f64;
    /// The nearest cell.
    fn of(x: f64) -> Self;
}

/// Implements [`Cell`] for a type of floating-point numbers.
macro_rules! impl_cell {
    ($($number:ty)*) => {$(
        impl Cell for $number {
            #[inline(always)]
            fn get(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $number
            }
        }
    )*};
}
impl_cell!(f32 f64);

/// The cells of each row that are not 0, in the form of compressed sparse rows. The columns of a row never descend (the
/// last one may come again, with zeros).
pub type SparseCells<V, J> = Csr<Vec<J>, Vec<V>>;

/// A column of a stored cell, in the smaller type that holds all of them: passes over the cells wait for memory.
pub trait StoredIndex: ColumnIndex {
    /// As cells of either type.
    fn cells<V>(sparse: SparseCells<V, Self>) -> Cells<V>;
}

impl StoredIndex for u16 {
    fn cells<V>(sparse: SparseCells<V, Self>) -> Cells<V> {
        Cells::Narrow(sparse)
    }
}

impl StoredIndex for u32 {
    fn cells<V>(sparse: SparseCells<V, Self>) -> Cells<V> {
        Cells::Wide(sparse)
    }
}

/// Rows of cells, in one of three forms; see the top of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells<V> {
    /// All cells, row-major.
    Dense {
        /// The cells.
        values: Vec<V>,
        /// Cells of a row.
        width: usize,
    },
    /// Some of the cells of at most [`MAX_NARROW_COLUMNS`] columns.
    Narrow(SparseCells<V, u16>),
    /// Some of the cells of more columns.
    Wide(SparseCells<V, u32>),
}

/// Most columns of narrow cells: their numbers, 0 to 65,534, are `u16`.
pub const MAX_NARROW_COLUMNS: usize = u16::MAX as usize;

impl<V: Cell> Cells<V> {
    /// Stored cells of the given rows.
    pub(super) fn count(&self, rows: &[u32]) -> usize {
        match self {
            Cells::Dense { width, .. } => width * rows.len(),
            Cells::Narrow(cells) => cells.count(rows),
            Cells::Wide(cells) => cells.count(rows),
        }
    }

    /// out_i = sum_j term(x_ij) w_j.
    #[inline(never)]
    pub(super) fn dots(&self, rows: &[u32], w: &[f64], out: &mut [f64], term: impl Fn(f64) -> f64) {
        match self {
            Cells::Dense { values, width } => {
                for (&i, out) in rows.iter().zip(out) {
                    let (row4, row1) = values[i as usize * width..][..*width].as_chunks::<4>();
                    let (w4, w1) = w.as_chunks::<4>();
                    let mut sums = [0.0; 4];
                    for (x, w) in row4.iter().zip(w4) {
                        for ((sum, x), w) in sums.iter_mut().zip(x).zip(w) {
                            *sum += term(x.get()) * w;
                        }
                    }
                    let rest: f64 = row1.iter().zip(w1).map(|(x, w)| term(x.get()) * w).sum();
                    *out = (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest;
                }
            }
            Cells::Narrow(cells) => cells.dots(rows, w, out, term),
            Cells::Wide(cells) => cells.dots(rows, w, out, term),
        }
    }

    /// out_j += sum_i r_i term(x_ij). `r` has an entry per entry of `rows`, `out` one per column.
    #[inline(never)]
    pub(super) fn add_columns(
        &self,
        rows: &[u32],
        r: &[f64],
        out: &mut [f64],
        term: impl Fn(f64) -> f64,
    ) {
        match self {
            Cells::Dense { values, width } => {
                for (&i, &r) in rows.iter().zip(r) {
                    for (out, x) in out.iter_mut().zip(&values[i as usize * width..][..*width]) {
                        *out += r * term(x.get());
                    }
                }
            }
            Cells::Narrow(cells) => cells.add_columns(rows, r, out, term),
            Cells::Wide(cells) => cells.add_columns(rows, r, out, term),
        }
    }

    /// out_j += (sum_i r_i x_ij, sum_i h_i x_ij, sum_i h_i x_ij^2).
    #[inline(never)]
    pub(super) fn add_moments(&self, rows: &[u32], r: &[f64], h: &[f64], out: &mut [[f64; 3]]) {
        match self {
            Cells::Dense { values, width } => {
                for ((&i, &r), &h) in rows.iter().zip(r).zip(h) {
                    for (out, x) in out.iter_mut().zip(&values[i as usize * width..][..*width]) {
                        add_moment(out, r, h, x.get());
                    }
                }
            }
            Cells::Narrow(cells) => cells.add_moments(rows, r, h, out),
            Cells::Wide(cells) => cells.add_moments(rows, r, h, out),
        }
    }

    /// The given rows of a sparse matrix with only the columns that have a place: `places[j]` of column j, or
    /// [`NO_PLACE`]. Places ascend with columns. None if all cells are stored.
    pub(super) fn restrict(&self, rows: &[u32], places: &[u32]) -> Option<SparseCells<V, u32>> {
        match self {
            Cells::Dense { .. } => None,
            Cells::Narrow(cells) => Some(cells.restrict(rows, places)),
            Cells::Wide(cells) => Some(cells.restrict(rows, places)),
        }
    }

    /// Stored cells of the given rows in columns that have a place.
    pub(super) fn count_placed(&self, rows: &[u32], places: &[u32], width: usize) -> usize {
        match self {
            Cells::Dense { .. } => rows.len() * width,
            Cells::Narrow(cells) => cells.count_placed(rows, places),
            Cells::Wide(cells) => cells.count_placed(rows, places),
        }
    }

    /// Writes the given rows, each times its factor, with only the columns that have a place, one after the other.
    /// `columns`: those columns.
    #[inline(never)]
    pub(super) fn write_scaled<T: Cell>(
        &self,
        (rows, factors): (&[u32], &[f64]),
        (columns, places): (&[usize], &[u32]),
        out: &mut [T],
    ) {
        match self {
            Cells::Dense { values, width: all } => {
                let rows = rows.iter().zip(factors).zip(out.chunks_exact_mut(columns.len()));
                for ((&i, factor), out) in rows {
                    let row = &values[i as usize * all..][..*all];
                    for (out, &j) in out.iter_mut().zip(columns) {
                        *out = T::of(factor * row[j].get());
                    }
                }
            }
            Cells::Narrow(cells) => cells.write_scaled((rows, factors), (columns, places), out),
            Cells::Wide(cells) => cells.write_scaled((rows, factors), (columns, places), out),
        }
    }
}

/// Adds what one cell gives to the sums of its column.
#[inline(always)]
fn add_moment(out: &mut [f64; 3], r: f64, h: f64, x: f64) {
    let hx = h * x;
    out[0] += r * x;
    out[1] += hx;
    out[2] += hx * x;
}

/// The passes of [`Cells`] over stored cells, of which each costs one multiplication or a few.
impl<V: Cell, J: StoredIndex> SparseCells<V, J> {
    /// Stored cells of the given rows.
    pub(super) fn count(&self, rows: &[u32]) -> usize {
        rows.iter().map(|&i| self.n_cells(i as usize)).sum()
    }

    /// As [`Cells::dots`]; the sums of every fourth cell are taken apart, so that the additions do not depend on each
    /// other.
    #[inline(always)]
    pub(super) fn dots(&self, rows: &[u32], w: &[f64], out: &mut [f64], term: impl Fn(f64) -> f64) {
        for (&i, out) in rows.iter().zip(out) {
            let (columns, cells) = self.row(i as usize);
            let (columns4, columns1) = columns.as_chunks::<4>();
            let (cells4, cells1) = cells.as_chunks::<4>();
            let mut sums = [0.0; 4];
            for (columns, cells) in columns4.iter().zip(cells4) {
                for ((sum, j), x) in sums.iter_mut().zip(columns).zip(cells) {
                    *sum += term(x.get()) * w[j.get()];
                }
            }
            let rest = columns1.iter().zip(cells1);
            let rest: f64 = rest.map(|(j, x)| term(x.get()) * w[j.get()]).sum();
            *out = (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest;
        }
    }

    /// As [`Cells::add_columns`].
    #[inline(always)]
    pub(super) fn add_columns(
        &self,
        rows: &[u32],
        r: &[f64],
        out: &mut [f64],
        term: impl Fn(f64) -> f64,
    ) {
        for (&i, &r) in rows.iter().zip(r) {
            let (columns, cells) = self.row(i as usize);
            for (j, x) in columns.iter().zip(cells) {
                out[j.get()] += r * term(x.get());
            }
        }
    }

    /// As [`Cells::add_moments`].
    #[inline(always)]
    pub(super) fn add_moments(&self, rows: &[u32], r: &[f64], h: &[f64], out: &mut [[f64; 3]]) {
        for ((&i, &r), &h) in rows.iter().zip(r).zip(h) {
            let (columns, cells) = self.row(i as usize);
            for (j, x) in columns.iter().zip(cells) {
                add_moment(&mut out[j.get()], r, h, x.get());
            }
        }
    }

    /// As [`Cells::restrict`]. O(stored cells of the rows), in one thread.
    #[inline(never)]
    pub(super) fn restrict(&self, rows: &[u32], places: &[u32]) -> SparseCells<V, u32> {
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        const WHAT: &str = "the curvature of a node problem";
        for &i in rows {
            let (columns, cells) = self.row(i as usize);
            for (j, &x) in columns.iter().zip(cells) {
                let place = places[j.get()];
                if place != NO_PLACE {
                    memory::push(&mut indices, place, WHAT);
                    memory::push(&mut values, x, WHAT);
                }
            }
            indptr.push(indices.len());
        }
        Csr::from_parts(indptr, indices, values, places.len())
    }

    /// As [`Cells::count_placed`].
    pub(super) fn count_placed(&self, rows: &[u32], places: &[u32]) -> usize {
        let placed = |j: &&J| places[j.get()] != NO_PLACE;
        rows.iter().map(|&i| self.row(i as usize).0.iter().filter(placed).count()).sum()
    }

    /// As [`Cells::write_scaled`].
    #[inline(always)]
    pub(super) fn write_scaled<T: Cell>(
        &self,
        (rows, factors): (&[u32], &[f64]),
        (columns, places): (&[usize], &[u32]),
        out: &mut [T],
    ) {
        let rows = rows.iter().zip(factors).zip(out.chunks_exact_mut(columns.len()));
        for ((&i, factor), out) in rows {
            let (columns, cells) = self.row(i as usize);
            out.fill(T::default());
            for (j, x) in columns.iter().zip(cells) {
                if let Some(out) = out.get_mut(places[j.get()] as usize) {
                    *out = T::of(out.get() + factor * x.get());
                }
            }
        }
    }

    /// Adds sum_i h_i x_ip x_iq to out[p, q] for p in the stripe `p` (the rows of `out`) and q <= p, where p and q are
    /// places of columns. `out`: of shape (stripe, width), row-major; threads take a stripe each, so none waits.
    #[inline(never)]
    pub(super) fn add_gram(
        &self,
        rows: &[u32],
        h: &[f64],
        p: &Range<usize>,
        width: usize,
        out: &mut [f64],
    ) {
        for (&i, &h) in rows.iter().zip(h) {
            let (columns, cells) = self.row(i as usize);
            let first = columns.partition_point(|j| j.get() < p.start);
            for at in first..columns.len() {
                let row = columns[at].get();
                if row >= p.end {
                    break;
                }
                let hx = h * cells[at].get();
                let out = &mut out[(row - p.start) * width..][..=row];
                for (q, x) in columns[..=at].iter().zip(cells) {
                    out[q.get()] += hx * x.get();
                }
            }
        }
    }
}
