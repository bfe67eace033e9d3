//! The rows a tree is fitted to, as the caller holds them: a table, or a sparse matrix that is never made dense.

use super::cells::{NARROW, Place};
use super::design::{Csr, Design, check};
use crate::error::Result;
use crate::table::Table;

/// Rows scored side by side: of columns that lie one after the other; and of a C-ordered matrix, whose neighbouring
/// cells are then read while they are in the nearest cache.
const TILE: usize = 256;
const TILE_OF_ROWS: usize = 16;

/// A checked matrix in compressed sparse rows.
#[derive(Debug, Clone, Copy)]
pub struct SparseRows<'a>(Csr<'a, f64>);

impl<'a> SparseRows<'a> {
    /// Checks the arrays.
    ///
    /// # Errors
    /// [`crate::error::Error::Value`] if they are no such matrix.
    pub fn new(matrix: Csr<'a, f64>) -> Result<Self> {
        check(&matrix)?;
        Ok(SparseRows(matrix))
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.0.n_columns
    }

    /// The matrix as the node solver reads it.
    ///
    /// # Errors
    /// [`crate::error::Error::Value`] if a cell is NaN or infinite.
    pub fn design(&self) -> Result<Design> {
        let Csr { indptr, indices, values, n_columns } = self.0;
        if n_columns <= NARROW {
            let narrow = indices.iter().map(|&j| u16::of(j as usize)).collect();
            return Design::from_checked::<_, u16>(indptr.to_vec(), narrow, values, n_columns);
        }
        Design::from_checked(indptr.to_vec(), indices.to_vec(), values, n_columns)
    }

    /// Columns and cells of a row.
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [f64]) {
        let cells = self.0.indptr[row]..self.0.indptr[row + 1];
        (&self.0.indices[cells.clone()], &self.0.values[cells])
    }
}

/// The rows.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a, 't> {
    /// Columns side by side.
    Table(&'a Table<'t>),
    /// Sparse rows.
    Sparse(SparseRows<'a>),
}

impl Rows<'_, '_> {
    /// Number of rows.
    pub fn n_samples(&self) -> usize {
        match self {
            Rows::Table(table) => table.n_samples(),
            Rows::Sparse(csr) => csr.0.indptr.len() - 1,
        }
    }

    /// Number of columns.
    pub fn n_features(&self) -> usize {
        match self {
            Rows::Table(table) => table.n_features(),
            Rows::Sparse(csr) => csr.0.n_columns,
        }
    }

    /// `bias + sum of weight * x` of the given rows, added up in the order of `weights`, whose columns ascend. The one
    /// order in which oblique tests are evaluated: cells that are 0 add nothing, so sparse rows give the same bits.
    pub fn scores(&self, rows: &[u32], weights: &[(u32, f64)], bias: f64) -> Vec<f64> {
        let mut scores = vec![bias; rows.len()];
        match self {
            Rows::Table(table) => {
                let in_columns = weights.iter().all(|w| table.column(w.0 as usize).is_contiguous());
                let tile = if in_columns { TILE } else { TILE_OF_ROWS };
                for (rows, scores) in rows.chunks(tile).zip(scores.chunks_mut(tile)) {
                    for &(column, weight) in weights {
                        table.column(column as usize).add_to(rows, weight, scores);
                    }
                }
            }
            Rows::Sparse(csr) => {
                let mut dense = vec![0.0; csr.0.n_columns];
                for &(column, weight) in weights {
                    dense[column as usize] = weight;
                }
                for (score, &row) in scores.iter_mut().zip(rows) {
                    let (columns, cells) = csr.row(row as usize);
                    for (&column, x) in columns.iter().zip(cells) {
                        *score += dense[column as usize] * x;
                    }
                }
            }
        }
        scores
    }

    /// The cells of one column in the given rows.
    pub fn cells(&self, rows: &[u32], column: u32, out: &mut Vec<f64>) {
        match self {
            Rows::Table(table) => table.column(column as usize).gather(rows, out),
            Rows::Sparse(csr) => {
                out.clear();
                out.extend(rows.iter().map(|&row| {
                    let (columns, cells) = csr.row(row as usize);
                    columns.binary_search(&column).map_or(0.0, |at| cells[at])
                }));
            }
        }
    }

    /// All cells of one row.
    pub fn row(&self, row: u32) -> Vec<f64> {
        let mut out = vec![0.0; self.n_features()];
        match self {
            Rows::Table(table) => {
                for (j, out) in out.iter_mut().enumerate() {
                    *out = table.column(j).get(row as usize);
                }
            }
            Rows::Sparse(csr) => {
                let (columns, cells) = csr.row(row as usize);
                for (&column, &x) in columns.iter().zip(cells) {
                    out[column as usize] = x;
                }
            }
        }
        out
    }
}
