//! The rows a tree is fitted to, as the caller holds them: a table, or a sparse matrix that is never made dense.

use crate::error::{Error, Result};
use crate::table::Table;

/// Rows scored side by side: neighbouring cells of a C-ordered matrix are then read while they are in cache.
const TILE: usize = 256;

/// A matrix in compressed sparse rows; the columns of a row ascend.
#[derive(Debug, Clone, Copy)]
pub struct Csr<'a> {
    indptr: &'a [usize],
    indices: &'a [u32],
    values: &'a [f64],
    n_features: usize,
}

impl<'a> Csr<'a> {
    /// Checks the arrays.
    ///
    /// # Errors
    /// [`Error::Value`] if they are no such matrix.
    pub fn new(
        indptr: &'a [usize],
        indices: &'a [u32],
        values: &'a [f64],
        n_features: usize,
    ) -> Result<Self> {
        let bad = |why: &str| Err(Error::Value(format!("The sparse matrix is not valid: {why}.")));
        if indptr.first() != Some(&0) || !indptr.is_sorted() {
            return bad("indptr must start at 0 and not fall");
        }
        if indptr.last() != Some(&values.len()) || indices.len() != values.len() {
            return bad("indptr, indices and data disagree in length");
        }
        let ascending = |ends: &[usize]| indices[ends[0]..ends[1]].is_sorted_by(|a, b| a < b);
        if !indptr.windows(2).all(ascending) {
            return bad("the columns of a row must ascend, each only once");
        }
        if indices.iter().any(|&column| column as usize >= n_features) {
            return bad("a column is out of range");
        }
        Ok(Csr { indptr, indices, values, n_features })
    }

    /// Where each row starts, and the end.
    pub fn indptr(&self) -> &'a [usize] {
        self.indptr
    }

    /// Columns of the cells.
    pub fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// The cells.
    pub fn values(&self) -> &'a [f64] {
        self.values
    }

    /// Columns and cells of a row.
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [f64]) {
        let cells = self.indptr[row]..self.indptr[row + 1];
        (&self.indices[cells.clone()], &self.values[cells])
    }
}

/// The rows.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a, 't> {
    /// Columns side by side.
    Table(&'a Table<'t>),
    /// Sparse rows.
    Csr(Csr<'a>),
}

impl Rows<'_, '_> {
    /// Number of rows.
    pub fn n_samples(&self) -> usize {
        match self {
            Rows::Table(table) => table.n_samples(),
            Rows::Csr(csr) => csr.indptr.len() - 1,
        }
    }

    /// Number of columns.
    pub fn n_features(&self) -> usize {
        match self {
            Rows::Table(table) => table.n_features(),
            Rows::Csr(csr) => csr.n_features,
        }
    }

    /// `bias + sum of weight * x` of the given rows, added up in the order of `weights`, whose columns ascend. The one
    /// order in which oblique tests are evaluated: cells that are 0 add nothing, so sparse rows give the same bits.
    pub fn scores(&self, rows: &[u32], weights: &[(u32, f64)], bias: f64) -> Vec<f64> {
        let mut scores = vec![bias; rows.len()];
        match self {
            Rows::Table(table) => {
                for (rows, scores) in rows.chunks(TILE).zip(scores.chunks_mut(TILE)) {
                    for &(column, weight) in weights {
                        table.column(column as usize).add_to(rows, weight, scores);
                    }
                }
            }
            Rows::Csr(csr) => {
                let mut dense = vec![0.0; csr.n_features];
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
            Rows::Csr(csr) => {
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
            Rows::Csr(csr) => {
                let (columns, cells) = csr.row(row as usize);
                for (&column, &x) in columns.iter().zip(cells) {
                    out[column as usize] = x;
                }
            }
        }
        out
    }
}
