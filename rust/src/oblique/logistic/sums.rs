//! Sums over some rows of a matrix: margins, slopes by column, and products of columns.
//!
//! Sums are formed per chunk of rows and added up in the order of the chunks: the same bits for any number of threads.
//! Products of columns (the Gram matrix of a model) are formed cell by cell where few cells are stored, and as one
//! product of a matrix with itself, in `f32` or `f64`, where many are.
//!
//! | function | sum | passes over the cells |
//! |---|---|---|
//! | [`RowSelection::dots`] | sum_j x_ij w_j, by row | 1 |
//! | [`RowSelection::sums`] | sum_i r_i x_ij, by column | 1 |
//! | [`RowSelection::moments`] | that, and sums of h_i x_ij and h_i x_ij^2 | 1 |
//! | [`RowSelection::gram`] | sum_i h_i x_ip x_iq over pairs of columns | O(cells of a row) for each cell |

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, LinalgScalar, s};

use super::cells::{CHUNK, Cell, Cells, NO_PLACE, SparseCells};
use crate::memory;
use crate::parallel;

/// Above this share of cells other than 0 products of columns are formed from all cells.
const MIN_DENSE_GRAM_SHARE: f64 = 0.2;
/// Most cells multiplied in one go.
const BLOCK_CELLS: usize = 1 << 21;
/// Fewest rows multiplied in one go, whatever their width.
const MIN_BLOCK_ROWS: usize = 256;

/// Some rows of a matrix, in chunks; sums over them have the same bits for any number of threads.
#[derive(Debug)]
pub struct RowSelection<'a, V> {
    cells: &'a Cells<V>,
    rows: &'a [u32],
    width: usize,
}

impl<'a, V: Cell> RowSelection<'a, V> {
    /// The given rows of a matrix of `width` columns.
    pub fn new(cells: &'a Cells<V>, rows: &'a [u32], width: usize) -> Self {
        RowSelection { cells, rows, width }
    }

    /// The rows in chunks of [`CHUNK`].
    fn parts(&self) -> std::slice::Chunks<'_, u32> {
        self.rows.chunks(CHUNK)
    }

    /// Stored cells of the rows: what a pass over them costs.
    pub fn count(&self) -> usize {
        self.cells.count(self.rows)
    }

    /// sum_j x_ij w_j, by row. `w`: an entry per column of the matrix; `out`: an entry per row of the selection, in its
    /// order.
    pub fn dots(&self, w: &[f64], out: &mut [f64]) {
        self.dots_of(w, out, |x| x);
    }

    /// sum_j x_ij^2 w_j, by row.
    pub fn dots_of_squares(&self, w: &[f64], out: &mut [f64]) {
        self.dots_of(w, out, |x| x * x);
    }

    /// sum_j term(x_ij) w_j, by row.
    fn dots_of(&self, w: &[f64], out: &mut [f64], term: impl Fn(f64) -> f64 + Copy + Sync) {
        let parts = self.parts().zip(out.chunks_mut(CHUNK));
        parallel::map(parts, |(rows, out)| self.cells.dots(rows, w, out, term));
    }

    /// sum_i r_i x_ij, by column. `r`: an entry per row of the selection. Memory: one vector of sums per chunk.
    pub fn sums(&self, r: &[f64]) -> Vec<f64> {
        self.sums_of(r, |x| x)
    }

    /// sum_i r_i x_ij^2, by column.
    pub fn sums_of_squares(&self, r: &[f64]) -> Vec<f64> {
        self.sums_of(r, |x| x * x)
    }

    /// sum_i r_i term(x_ij), by column.
    fn sums_of(&self, r: &[f64], term: impl Fn(f64) -> f64 + Copy + Sync) -> Vec<f64> {
        let of_part = |(rows, r): (&[u32], &[f64])| {
            let mut sums = vec![0.0; self.width];
            self.cells.add_columns(rows, r, &mut sums, term);
            sums
        };
        memory::room::<f64>(self.rows.len().div_ceil(CHUNK) * self.width, "the sums of columns");
        let parts = parallel::map(self.parts().zip(r.chunks(CHUNK)), of_part);
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
        let parts = self.parts().zip(r.chunks(CHUNK)).zip(h.chunks(CHUNK));
        memory::room::<[f64; 3]>(
            self.rows.len().div_ceil(CHUNK) * self.width,
            "the sums of columns",
        );
        let parts = parallel::map(parts, of_part);
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
        let mut places = vec![NO_PLACE; self.width];
        for (place, &j) in columns.iter().enumerate() {
            places[j] = place as u32;
        }
        let count = |rows: &[u32]| self.cells.count_placed(rows, &places, width);
        let filled: usize = parallel::map(self.parts(), count).iter().sum();
        if filled as f64 > MIN_DENSE_GRAM_SHARE * (self.rows.len() * width) as f64 {
            self.dense_gram::<T>(h, columns, &places)
        } else {
            self.sparse_gram(h, width, &places)
        }
    }

    /// Cell by cell, from the rows with only the given columns; stripes of the triangle in parallel.
    fn sparse_gram(&self, h: &[f64], width: usize, places: &[u32]) -> (Vec<f64>, Vec<f64>) {
        let restricted = parallel::map(self.parts(), |rows| self.cells.restrict(rows, places));
        let parts: Vec<SparseCells<V, u32>> = restricted.into_iter().flatten().collect();
        let all: Vec<u32> = (0..CHUNK as u32).collect();
        let mut gram = memory::zeros(width * width, "the curvature of a node problem");
        parallel::map(stripes(width, &mut gram), |(p, out)| {
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
    /// Rows are copied a block at a time, so that the product runs in cache.
    fn dense_gram<T: Cell + LinalgScalar>(
        &self,
        h: &[f64],
        columns: &[usize],
        places: &[u32],
    ) -> (Vec<f64>, Vec<f64>) {
        let width = columns.len();
        let mut gram = memory::zeros(width * width, "the curvature of a node problem");
        let mut sums = vec![0.0; width];
        let n_block = (BLOCK_CELLS / width.max(1)).max(MIN_BLOCK_ROWS).min(self.rows.len());
        let mut scaled = memory::zeros::<T>(n_block * width, "the curvature of a node problem");
        for (rows, h) in self.rows.chunks(n_block).zip(h.chunks(n_block)) {
            let root: Vec<f64> = h.iter().map(|h| h.sqrt()).collect();
            let scaled = &mut scaled[..rows.len() * width];
            let blocks = rows.chunks(MIN_BLOCK_ROWS).zip(root.chunks(MIN_BLOCK_ROWS));
            let blocks = blocks.zip(scaled.chunks_mut(MIN_BLOCK_ROWS * width));
            let places = (columns, places);
            parallel::map(blocks, |(rows, out)| self.cells.write_scaled(rows, places, out));
            for (row, root) in scaled.chunks_exact(width).zip(&root) {
                for (sum, x) in sums.iter_mut().zip(row) {
                    *sum += root * x.get();
                }
            }
            // The lengths fit by construction.
            let Ok(block) = ArrayView2::from_shape((rows.len(), width), &*scaled) else { continue };
            parallel::map(stripes(width, &mut gram), |(p, out)| {
                let left = block.slice(s![.., p.clone()]);
                let right = block.slice(s![.., ..p.end]);
                memory::room::<T>(p.len() * p.end, "the curvature of a node problem");
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
/// Up to eight, one for every 128 rows.
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
    use crate::rows::Csr;

    const WIDTH: usize = 150;
    const N: usize = CHUNK + 77;

    /// A cell in `share` of five, the same ones in both forms.
    fn example(share: usize) -> (Cells<f64>, Cells<f64>) {
        let of_cell = |i: usize, j: usize| {
            let noise = (i * WIDTH + j + 1).wrapping_mul(2_654_435_761) >> 7;
            if noise % 5 < share { ((noise >> 8) % 17) as f64 / 16.0 - 0.4 } else { 0.0 }
        };
        let values: Vec<f64> = (0..N * WIDTH).map(|at| of_cell(at / WIDTH, at % WIDTH)).collect();
        let (mut indptr, mut indices, mut nonzero) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks(WIDTH) {
            for (j, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                indices.push(j as u16);
                nonzero.push(x);
            }
            indptr.push(nonzero.len());
        }
        (
            Cells::Dense { values, width: WIDTH },
            Cells::Narrow(Csr::from_parts(indptr, indices, nonzero, WIDTH)),
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
                let selected = RowSelection::new(cells, &rows, WIDTH);
                let mut out = vec![0.0; rows.len()];
                selected.dots(&w, &mut out);
                close(&out, &dots, 1e-12);
                selected.dots_of_squares(&w, &mut out);
                close(&out, &squares, 1e-12);
                close(&selected.sums(&h), &sums, 1e-12);
                close(&selected.sums_of_squares(&h), &second, 1e-12);
                let twice: Vec<f64> = h.iter().map(|h| 2.0 * h).collect();
                let moments = selected.moments(&h, &twice);
                let of = |k: usize, factor: f64| -> Vec<f64> {
                    moments.iter().map(|moments| factor * moments[k]).collect()
                };
                close(&of(0, 1.0), &sums, 1e-12);
                close(&of(1, 0.5), &sums, 1e-12);
                close(&of(2, 0.5), &second, 1e-12);
                let columns: Vec<usize> = (0..WIDTH).filter(|j| j % 2 == 0 || *j == 7).collect();
                let expected: Vec<f64> = columns.iter().map(|&j| sums[j]).collect();
                for ((gram, some), relative) in [
                    (selected.gram::<f64>(&h, &columns), 1e-12),
                    (selected.gram::<f32>(&h, &columns), 1e-4),
                ] {
                    close(&some, &expected, relative);
                    for (p, q) in [(0, 0), (3, 2), (40, 17), (75, 0), (75, 75)] {
                        let expected = sum(&|row| row[columns[p]] * row[columns[q]]);
                        close(&[gram[p * columns.len() + q]], &[expected], relative);
                    }
                }
            }
            assert_eq!(RowSelection::new(&sparse, &rows, WIDTH).count(), sparse.count(&rows));
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
