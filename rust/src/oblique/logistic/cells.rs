//! Cells of a matrix by rows, and the few passes over them that the node solver makes.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, LinalgScalar, s};
use rayon::prelude::*;

/// Rows that one thread works on in one go. Sums are formed per chunk and added up in the order of the chunks.
pub const CHUNK: usize = 4096;
/// Above this share of cells other than 0 all cells of a matrix are stored.
pub const DENSE: f64 = 0.4;
/// Above this share of cells other than 0 products of columns are formed from all cells.
const DENSE_GRAM: f64 = 0.2;
/// Cells multiplied in one go, and the least rows.
const BLOCK_CELLS: usize = 1 << 21;
const LEAST_BLOCK: usize = 256;
/// The place of a column that is left out.
const NOWHERE: u32 = u32::MAX;

/// A number type of stored cells.
pub trait Cell: Copy + Send + Sync + PartialEq + Default + 'static {
    /// The cell.
    fn get(self) -> f64;
    /// The nearest cell.
    fn of(x: f64) -> Self;
}

impl Cell for f32 {
    #[inline(always)]
    fn get(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
}

impl Cell for f64 {
    #[inline(always)]
    fn get(self) -> f64 {
        self
    }
    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }
}

/// A column of a stored cell, in the smaller type that holds all of them: passes over the cells wait for memory.
pub trait Place: Copy + Send + Sync + Default + Ord + 'static {
    /// The column.
    fn get(self) -> usize;
    /// The type's number for a column, which it holds.
    fn of(column: usize) -> Self;
    /// As cells of either type.
    fn cells<V>(sparse: Sparse<V, Self>) -> Cells<V>;
}

impl Place for u16 {
    #[inline(always)]
    fn get(self) -> usize {
        usize::from(self)
    }
    #[inline(always)]
    fn of(column: usize) -> Self {
        column as u16
    }
    fn cells<V>(sparse: Sparse<V, Self>) -> Cells<V> {
        Cells::Narrow(sparse)
    }
}

impl Place for u32 {
    #[inline(always)]
    fn get(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn of(column: usize) -> Self {
        column as u32
    }
    fn cells<V>(sparse: Sparse<V, Self>) -> Cells<V> {
        Cells::Wide(sparse)
    }
}

/// The cells of each row that are not 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Sparse<V, J> {
    /// Where each row starts, and the end.
    pub indptr: Vec<usize>,
    /// Columns, never descending in a row.
    pub indices: Vec<J>,
    /// Cells.
    pub values: Vec<V>,
}

/// Rows of cells.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells<V> {
    /// All cells, row-major.
    Dense {
        /// The cells.
        values: Vec<V>,
        /// Cells of a row.
        width: usize,
    },
    /// Some of the cells of at most [`NARROW`] columns.
    Narrow(Sparse<V, u16>),
    /// Some of the cells of more columns.
    Wide(Sparse<V, u32>),
}

/// Columns of which each has its own `u16`, and one is left.
pub const NARROW: usize = u16::MAX as usize;

impl<V: Cell> Cells<V> {
    fn count(&self, rows: &[u32]) -> usize {
        match self {
            Cells::Dense { width, .. } => width * rows.len(),
            Cells::Narrow(cells) => cells.count(rows),
            Cells::Wide(cells) => cells.count(rows),
        }
    }

    /// out_i = sum_j term(x_ij) w_j.
    #[inline(never)]
    fn dots(&self, rows: &[u32], w: &[f64], out: &mut [f64], term: impl Fn(f64) -> f64) {
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

    /// out_j += sum_i r_i term(x_ij).
    #[inline(never)]
    fn add_columns(&self, rows: &[u32], r: &[f64], out: &mut [f64], term: impl Fn(f64) -> f64) {
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
    fn add_moments(&self, rows: &[u32], r: &[f64], h: &[f64], out: &mut [[f64; 3]]) {
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
    /// [`NOWHERE`]. Places ascend with columns. None if all cells are stored.
    fn restrict(&self, rows: &[u32], places: &[u32]) -> Option<Sparse<V, u32>> {
        match self {
            Cells::Dense { .. } => None,
            Cells::Narrow(cells) => Some(cells.restrict(rows, places)),
            Cells::Wide(cells) => Some(cells.restrict(rows, places)),
        }
    }

    /// Stored cells of the given rows in columns that have a place.
    fn count_placed(&self, rows: &[u32], places: &[u32], width: usize) -> usize {
        match self {
            Cells::Dense { .. } => rows.len() * width,
            Cells::Narrow(cells) => cells.count_placed(rows, places),
            Cells::Wide(cells) => cells.count_placed(rows, places),
        }
    }

    /// Writes the given rows, each times its factor, with only the columns that have a place, one after the other.
    /// `columns`: those columns.
    #[inline(never)]
    fn write_scaled<T: Cell>(
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

/// As the methods of [`Cells`].
impl<V: Cell, J: Place> Sparse<V, J> {
    /// Columns and cells of a row.
    #[inline(always)]
    fn row(&self, i: u32) -> (&[J], &[V]) {
        let range = self.indptr[i as usize]..self.indptr[i as usize + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    fn count(&self, rows: &[u32]) -> usize {
        rows.iter().map(|&i| self.indptr[i as usize + 1] - self.indptr[i as usize]).sum()
    }

    #[inline(always)]
    fn dots(&self, rows: &[u32], w: &[f64], out: &mut [f64], term: impl Fn(f64) -> f64) {
        for (&i, out) in rows.iter().zip(out) {
            let (columns, cells) = self.row(i);
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

    #[inline(always)]
    fn add_columns(&self, rows: &[u32], r: &[f64], out: &mut [f64], term: impl Fn(f64) -> f64) {
        for (&i, &r) in rows.iter().zip(r) {
            let (columns, cells) = self.row(i);
            for (j, x) in columns.iter().zip(cells) {
                out[j.get()] += r * term(x.get());
            }
        }
    }

    #[inline(always)]
    fn add_moments(&self, rows: &[u32], r: &[f64], h: &[f64], out: &mut [[f64; 3]]) {
        for ((&i, &r), &h) in rows.iter().zip(r).zip(h) {
            let (columns, cells) = self.row(i);
            for (j, x) in columns.iter().zip(cells) {
                add_moment(&mut out[j.get()], r, h, x.get());
            }
        }
    }

    #[inline(never)]
    fn restrict(&self, rows: &[u32], places: &[u32]) -> Sparse<V, u32> {
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for &i in rows {
            let (columns, cells) = self.row(i);
            for (j, &x) in columns.iter().zip(cells) {
                let place = places[j.get()];
                if place != NOWHERE {
                    indices.push(place);
                    values.push(x);
                }
            }
            indptr.push(indices.len());
        }
        Sparse { indptr, indices, values }
    }

    fn count_placed(&self, rows: &[u32], places: &[u32]) -> usize {
        let placed = |j: &&J| places[j.get()] != NOWHERE;
        rows.iter().map(|&i| self.row(i).0.iter().filter(placed).count()).sum()
    }

    #[inline(always)]
    fn write_scaled<T: Cell>(
        &self,
        (rows, factors): (&[u32], &[f64]),
        (columns, places): (&[usize], &[u32]),
        out: &mut [T],
    ) {
        let rows = rows.iter().zip(factors).zip(out.chunks_exact_mut(columns.len()));
        for ((&i, factor), out) in rows {
            let (columns, cells) = self.row(i);
            out.fill(T::default());
            for (j, x) in columns.iter().zip(cells) {
                if let Some(out) = out.get_mut(places[j.get()] as usize) {
                    *out = T::of(out.get() + factor * x.get());
                }
            }
        }
    }

    /// Adds sum_i h_i x_ip x_iq to out[p, q] for p in the stripe `p` (the rows of `out`) and q <= p, where p and q are
    /// places of columns.
    #[inline(never)]
    fn add_gram(&self, rows: &[u32], h: &[f64], p: &Range<usize>, width: usize, out: &mut [f64]) {
        for (&i, &h) in rows.iter().zip(h) {
            let (columns, cells) = self.row(i);
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

/// Some rows of a matrix, in chunks; sums over them have the same bits for any number of threads.
#[derive(Debug)]
pub struct Chosen<'a, V> {
    cells: &'a Cells<V>,
    rows: &'a [u32],
    width: usize,
}

impl<'a, V: Cell> Chosen<'a, V> {
    /// The given rows of a matrix of `width` columns.
    pub fn new(cells: &'a Cells<V>, rows: &'a [u32], width: usize) -> Self {
        Chosen { cells, rows, width }
    }

    fn parts(&self) -> rayon::slice::Chunks<'_, u32> {
        self.rows.par_chunks(CHUNK)
    }

    /// Stored cells.
    pub fn count(&self) -> usize {
        self.cells.count(self.rows)
    }

    /// sum_j x_ij w_j, by row.
    pub fn dots(&self, w: &[f64], out: &mut [f64]) {
        self.parts()
            .zip(out.par_chunks_mut(CHUNK))
            .for_each(|(rows, out)| self.cells.dots(rows, w, out, |x| x));
    }

    /// sum_j x_ij^2 w_j, by row.
    pub fn dots_of_squares(&self, w: &[f64], out: &mut [f64]) {
        self.parts()
            .zip(out.par_chunks_mut(CHUNK))
            .for_each(|(rows, out)| self.cells.dots(rows, w, out, |x| x * x));
    }

    /// sum_i r_i x_ij, by column.
    pub fn sums(&self, r: &[f64]) -> Vec<f64> {
        self.sums_of(r, |x| x)
    }

    /// sum_i r_i x_ij^2, by column.
    pub fn sums_of_squares(&self, r: &[f64]) -> Vec<f64> {
        self.sums_of(r, |x| x * x)
    }

    fn sums_of(&self, r: &[f64], term: impl Fn(f64) -> f64 + Copy + Sync) -> Vec<f64> {
        let of_part = |(rows, r): (&[u32], &[f64])| {
            let mut sums = vec![0.0; self.width];
            self.cells.add_columns(rows, r, &mut sums, term);
            sums
        };
        let parts: Vec<_> = self.parts().zip(r.par_chunks(CHUNK)).map(of_part).collect();
        let mut total = vec![0.0; self.width];
        for part in &parts {
            for (total, x) in total.iter_mut().zip(part) {
                *total += x;
            }
        }
        total
    }

    /// (sum_i r_i x_ij, sum_i h_i x_ij, sum_i h_i x_ij^2), by column, in one pass.
    pub fn moments(&self, r: &[f64], h: &[f64]) -> Vec<[f64; 3]> {
        let of_part = |((rows, r), h): ((&[u32], &[f64]), &[f64])| {
            let mut sums = vec![[0.0; 3]; self.width];
            self.cells.add_moments(rows, r, h, &mut sums);
            sums
        };
        let parts = self.parts().zip(r.par_chunks(CHUNK)).zip(h.par_chunks(CHUNK));
        let parts: Vec<_> = parts.map(of_part).collect();
        let mut total = vec![[0.0; 3]; self.width];
        for part in &parts {
            for (total, x) in total.iter_mut().zip(part) {
                total.iter_mut().zip(x).for_each(|(total, x)| *total += x);
            }
        }
        total
    }

    /// sum_i h_i x_ip x_iq for q <= p, where p and q run over the given columns, which ascend, in the lower triangle of
    /// a full matrix; and sum_i h_i x_ip. Products of rows with many cells are formed in the type `T`.
    pub fn gram<T: Cell + LinalgScalar>(
        &self,
        h: &[f64],
        columns: &[usize],
    ) -> (Vec<f64>, Vec<f64>) {
        let width = columns.len();
        let mut places = vec![NOWHERE; self.width];
        for (place, &j) in columns.iter().enumerate() {
            places[j] = place as u32;
        }
        let count = |rows| self.cells.count_placed(rows, &places, width);
        let filled: usize = self.parts().map(count).sum();
        if filled as f64 > DENSE_GRAM * (self.rows.len() * width) as f64 {
            self.dense_gram::<T>(h, columns, &places)
        } else {
            self.sparse_gram(h, width, &places)
        }
    }

    fn sparse_gram(&self, h: &[f64], width: usize, places: &[u32]) -> (Vec<f64>, Vec<f64>) {
        let parts = self.parts().filter_map(|rows| self.cells.restrict(rows, places));
        let parts: Vec<Sparse<V, u32>> = parts.collect();
        let all: Vec<u32> = (0..CHUNK as u32).collect();
        let mut gram = vec![0.0; width * width];
        stripes(width, &mut gram).into_par_iter().with_max_len(1).for_each(|(p, out)| {
            for (part, h) in parts.iter().zip(h.chunks(CHUNK)) {
                part.add_gram(&all[..h.len()], h, &p, width, out);
            }
        });
        let mut sums = vec![0.0; width];
        for (part, h) in parts.iter().zip(h.chunks(CHUNK)) {
            part.add_columns(&all[..h.len()], h, &mut sums, |x| x);
        }
        (gram, sums)
    }

    /// As the product of one matrix with itself: the rows times the roots of h.
    fn dense_gram<T: Cell + LinalgScalar>(
        &self,
        h: &[f64],
        columns: &[usize],
        places: &[u32],
    ) -> (Vec<f64>, Vec<f64>) {
        let width = columns.len();
        let mut gram = vec![0.0; width * width];
        let mut sums = vec![0.0; width];
        let n_block = (BLOCK_CELLS / width.max(1)).max(LEAST_BLOCK).min(self.rows.len());
        let mut scaled = vec![T::default(); n_block * width];
        for (rows, h) in self.rows.chunks(n_block).zip(h.chunks(n_block)) {
            let root: Vec<f64> = h.iter().map(|h| h.sqrt()).collect();
            let scaled = &mut scaled[..rows.len() * width];
            rows.par_chunks(LEAST_BLOCK)
                .zip(root.par_chunks(LEAST_BLOCK))
                .zip(scaled.par_chunks_mut(LEAST_BLOCK * width))
                .for_each(|(rows, out)| self.cells.write_scaled(rows, (columns, places), out));
            for (row, root) in scaled.chunks_exact(width).zip(&root) {
                for (sum, x) in sums.iter_mut().zip(row) {
                    *sum += root * x.get();
                }
            }
            // The lengths fit by construction.
            let Ok(block) = ArrayView2::from_shape((rows.len(), width), &*scaled) else { continue };
            stripes(width, &mut gram).into_par_iter().with_max_len(1).for_each(|(p, out)| {
                let left = block.slice(s![.., p.clone()]);
                let right = block.slice(s![.., ..p.end]);
                let mut products = Array2::<T>::zeros((p.len(), p.end));
                general_mat_mul(T::one(), &left.t(), &right, T::zero(), &mut products);
                for (out, products) in out.chunks_exact_mut(width).zip(products.rows()) {
                    for (out, x) in out.iter_mut().zip(products) {
                        *out += x.get();
                    }
                }
            });
        }
        (gram, sums)
    }
}

/// Ranges of rows of a lower triangle, of about equal area, with their places in the full matrix.
fn stripes(width: usize, mut matrix: &mut [f64]) -> Vec<(Range<usize>, &mut [f64])> {
    let n = width.div_ceil(128).clamp(1, 8);
    let mut stripes = Vec::with_capacity(n);
    let mut start = 0;
    for s in 1..=n {
        let end = (width as f64 * (s as f64 / n as f64).sqrt()).round() as usize;
        let (here, rest) = matrix.split_at_mut((end - start) * width);
        matrix = rest;
        stripes.push((start..end, here));
        start = end;
    }
    stripes
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 150;
    const N: usize = CHUNK + 77;

    /// A cell in `share` of five, the same ones in both forms.
    fn example(share: usize) -> (Cells<f64>, Cells<f64>) {
        let of_cell = |i: usize, j: usize| {
            let noise = (i * WIDTH + j + 1).wrapping_mul(2_654_435_761) >> 7;
            if noise % 5 < share { ((noise >> 8) % 17) as f64 / 16.0 - 0.4 } else { 0.0 }
        };
        let values: Vec<f64> = (0..N * WIDTH).map(|at| of_cell(at / WIDTH, at % WIDTH)).collect();
        let (mut indptr, mut indices, mut kept) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks(WIDTH) {
            for (j, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                indices.push(j as u16);
                kept.push(x);
            }
            indptr.push(kept.len());
        }
        (
            Cells::Dense { values, width: WIDTH },
            Cells::Narrow(Sparse { indptr, indices, values: kept }),
        )
    }

    fn close(got: &[f64], expected: &[f64], relative: f64) {
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!(
                (got - expected).abs() <= relative * (1.0 + expected.abs()),
                "{got} {expected}"
            );
        }
    }

    #[test]
    fn both_forms_give_the_sums_of_the_definition() {
        for share in [1, 4] {
            let (dense, sparse) = example(share);
            let Cells::Dense { values, .. } = &dense else { unreachable!() };
            let rows: Vec<u32> = (0..N as u32).rev().filter(|i| i % 3 != 1).collect();
            let row = |i: &u32| &values[*i as usize * WIDTH..][..WIDTH];
            let h: Vec<f64> = rows.iter().map(|i| f64::from(i % 7) / 7.0).collect();
            let w: Vec<f64> = (0..WIDTH).map(|j| (j % 4) as f64 - 1.5).collect();
            let dots: Vec<f64> =
                rows.iter().map(|i| row(i).iter().zip(&w).map(|(x, w)| x * w).sum()).collect();
            let squares: Vec<f64> =
                rows.iter().map(|i| row(i).iter().zip(&w).map(|(x, w)| x * x * w).sum()).collect();
            let sum = |term: &dyn Fn(&[f64]) -> f64| -> f64 {
                rows.iter().zip(&h).map(|(i, h)| h * term(row(i))).sum()
            };
            let sums: Vec<f64> = (0..WIDTH).map(|j| sum(&|row| row[j])).collect();
            let second: Vec<f64> = (0..WIDTH).map(|j| sum(&|row| row[j] * row[j])).collect();
            for cells in [&dense, &sparse] {
                let chosen = Chosen::new(cells, &rows, WIDTH);
                let mut out = vec![0.0; rows.len()];
                chosen.dots(&w, &mut out);
                close(&out, &dots, 1e-12);
                chosen.dots_of_squares(&w, &mut out);
                close(&out, &squares, 1e-12);
                close(&chosen.sums(&h), &sums, 1e-12);
                close(&chosen.sums_of_squares(&h), &second, 1e-12);
                let twice: Vec<f64> = h.iter().map(|h| 2.0 * h).collect();
                let moments = chosen.moments(&h, &twice);
                let of = |k: usize, factor: f64| -> Vec<f64> {
                    moments.iter().map(|moments| factor * moments[k]).collect()
                };
                close(&of(0, 1.0), &sums, 1e-12);
                close(&of(1, 0.5), &sums, 1e-12);
                close(&of(2, 0.5), &second, 1e-12);
                let columns: Vec<usize> = (0..WIDTH).filter(|j| j % 2 == 0 || *j == 7).collect();
                let expected: Vec<f64> = columns.iter().map(|&j| sums[j]).collect();
                for ((gram, some), relative) in [
                    (chosen.gram::<f64>(&h, &columns), 1e-12),
                    (chosen.gram::<f32>(&h, &columns), 1e-4),
                ] {
                    close(&some, &expected, relative);
                    for (p, q) in [(0, 0), (3, 2), (40, 17), (75, 0), (75, 75)] {
                        let expected = sum(&|row| row[columns[p]] * row[columns[q]]);
                        close(&[gram[p * columns.len() + q]], &[expected], relative);
                    }
                }
            }
            assert_eq!(Chosen::new(&sparse, &rows, WIDTH).count(), sparse.count(&rows));
        }
    }

    #[test]
    fn stripes_cover_the_triangle() {
        for width in [0, 1, 5, 64, 65, 700] {
            let mut matrix = vec![0.0; width * width];
            let stripes = stripes(width, &mut matrix);
            let mut next = 0;
            for (p, out) in &stripes {
                assert_eq!((p.start, out.len()), (next, p.len() * width));
                next = p.end;
            }
            assert_eq!(next, width);
        }
    }
}
