//! Rows as the caller holds them: the columns of a table, or a sparse matrix that is never made dense.
//!
//! [`Rows`] is the one view that costs, routing and the oblique fits read. [`Csr`] is the one form of a matrix in
//! compressed sparse rows: its arrays are checked by [`Csr::new`] and nowhere else. The cells of row `i` are the range
//! `indptr[i]..indptr[i + 1]` of two arrays, `indices` (their columns) and `values`; cells that are not stored are 0.
//! The arrays may be borrowed or owned, and columns numbered in `u16` or `u32`: the node solver of oblique trees keeps
//! a copy in smaller types ([`crate::oblique::logistic::cells`]).
//!
//! Compressed sparse columns would be a third variant of [`Rows`]; every reader matches on the variants here or in
//! [`crate::costs`], [`crate::tree`] and [`crate::oblique::geometry`].

use std::ops::Deref;

use crate::error::{Error, Result};
use crate::memory;
use crate::table::Table;

/// A type that numbers columns.
pub trait ColumnIndex: Copy + Send + Sync + Default + Ord + 'static {
    /// The column.
    fn get(self) -> usize;
    /// The number of a column, which the type must hold.
    fn of(column: usize) -> Self;
}

impl ColumnIndex for u16 {
    #[inline(always)]
    fn get(self) -> usize {
        usize::from(self)
    }
    #[inline(always)]
    fn of(column: usize) -> Self {
        column as u16
    }
}

impl ColumnIndex for u32 {
    #[inline(always)]
    fn get(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn of(column: usize) -> Self {
        column as u32
    }
}

/// A matrix in compressed sparse rows. `I` holds the columns of the stored cells and `C` their values, each as a vector
/// or a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr<I, C> {
    /// Where the cells of each row start, and their number at the end.
    indptr: Vec<usize>,
    /// The column of each cell.
    indices: I,
    /// The cells.
    values: C,
    /// Number of columns, stored in or not.
    n_columns: usize,
    /// Whether the columns of every row ascend.
    is_ascending: bool,
}

/// A sparse matrix of the caller: borrowed cells, and a copy of their columns in 32 bits.
pub type CsrRows<'a> = Csr<Vec<u32>, &'a [f64]>;

impl<'a> CsrRows<'a> {
    /// As [`Csr::new`], from 64-bit integers, which are copied into smaller ones. O(number of cells).
    ///
    /// # Errors
    /// As [`Csr::new`].
    pub fn from_i64(
        indptr: &[i64],
        indices: &[i64],
        values: &'a [f64],
        n_columns: usize,
    ) -> Result<Self> {
        let start = |&start: &i64| usize::try_from(start).map_err(|_| bad_indptr(values.len()));
        let column =
            |&column: &i64| u32::try_from(column).map_err(|_| bad_column(n_columns, column));
        let mut starts = memory::reserved(indptr.len(), "the rows of a sparse matrix");
        indptr.iter().try_for_each(|i| start(i).map(|start| starts.push(start)))?;
        let mut columns = memory::reserved(indices.len(), "the columns of a sparse matrix");
        indices.iter().try_for_each(|i| column(i).map(|column| columns.push(column)))?;
        Csr::new(starts, columns, values, n_columns)
    }
}

impl<I, C, J, V> Csr<I, C>
where
    I: Deref<Target = [J]>,
    C: Deref<Target = [V]>,
    J: ColumnIndex,
{
    /// Checks the arrays of a matrix of `n_columns` columns. The cells of a row may come in any order, and more than
    /// one in a column: see [`Csr::is_ascending`]. O(number of cells).
    ///
    /// # Errors
    /// [`Error::Shape`] if `indices` and `values` differ in length; [`Error::Value`] if `indptr` does not rise from 0
    /// to that length, or a column is not in the range `[0, n_columns)`.
    pub fn new(indptr: Vec<usize>, indices: I, values: C, n_columns: usize) -> Result<Self> {
        Error::check_len("indices", indices.len(), values.len(), "entries")?;
        let ends = (indptr.first(), indptr.last());
        if ends != (Some(&0), Some(&values.len())) || !indptr.is_sorted() {
            return Err(bad_indptr(values.len()));
        }
        if let Some(column) = indices.iter().find(|column| column.get() >= n_columns) {
            return Err(bad_column(n_columns, column.get() as i64));
        }
        let mut rows = indptr.windows(2).map(|ends| &indices[ends[0]..ends[1]]);
        let is_ascending = rows.all(|row| row.is_sorted_by(|a, b| a < b));
        Ok(Csr { indptr, indices, values, n_columns, is_ascending })
    }

    /// A matrix whose arrays were built in this crate: their lengths agree, `indptr` rises, columns are in range and
    /// never descend in a row.
    pub(crate) fn from_parts(indptr: Vec<usize>, indices: I, values: C, n_columns: usize) -> Self {
        debug_assert!(indptr.is_sorted() && indptr.last() == Some(&values.len()));
        debug_assert!(indices.len() == values.len());
        Csr { indptr, indices, values, n_columns, is_ascending: true }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Where the cells of each row start, and the number of all cells at the end.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// The columns of all stored cells, row by row.
    pub fn indices(&self) -> &[J] {
        &self.indices
    }

    /// All stored cells, row by row.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Whether the columns of every row ascend, none of them twice.
    pub fn is_ascending(&self) -> bool {
        self.is_ascending
    }

    /// # Errors
    /// [`Error::Value`] unless the matrix [`Csr::is_ascending`].
    pub fn check_ascending(&self) -> Result<()> {
        if self.is_ascending {
            return Ok(());
        }
        Err(Error::Value(
            "The columns of each row of a sparse matrix must ascend, none of them twice.".into(),
        ))
    }

    /// Columns and values of the stored cells of a row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> (&[J], &[V]) {
        let cells = self.indptr[row]..self.indptr[row + 1];
        (&self.indices[cells.clone()], &self.values[cells])
    }

    /// Number of stored cells of a row.
    pub fn n_cells(&self, row: usize) -> usize {
        self.indptr[row + 1] - self.indptr[row]
    }
}

impl<I: Deref<Target = [u32]>, C: Deref<Target = [f64]>> Csr<I, C> {
    /// One cell of a matrix that [`Csr::is_ascending`].
    #[inline]
    pub fn cell(&self, row: usize, column: u32) -> f64 {
        let (columns, cells) = self.row(row);
        columns.binary_search(&column).map_or(0.0, |at| cells[at])
    }
}

/// The error of an `indptr` that does not rise to the number of cells.
fn bad_indptr(n_cells: usize) -> Error {
    Error::Value(format!("The indptr of a sparse matrix must rise from 0 to {n_cells}."))
}

/// The error of a cell in a column that the matrix does not have.
fn bad_column(n_columns: usize, column: i64) -> Error {
    Error::Value(format!(
        "A sparse matrix of {n_columns} columns cannot have a cell in column {column}."
    ))
}

/// Rows of numbers, n x d, in one of two forms.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a, 't> {
    /// Columns side by side.
    Table(&'a Table<'t>),
    /// Sparse rows, the columns of each ascending.
    Sparse(&'a CsrRows<'t>),
}

impl<'a, 't> From<&'a Table<'t>> for Rows<'a, 't> {
    fn from(table: &'a Table<'t>) -> Self {
        Rows::Table(table)
    }
}

impl<'a, 't> Rows<'a, 't> {
    /// The rows of a sparse matrix.
    ///
    /// # Errors
    /// As [`Csr::check_ascending`].
    pub fn sparse(matrix: &'a CsrRows<'t>) -> Result<Self> {
        matrix.check_ascending()?;
        Ok(Rows::Sparse(matrix))
    }

    /// Number of rows, n.
    pub fn n_samples(&self) -> usize {
        match self {
            Rows::Table(table) => table.n_samples(),
            Rows::Sparse(csr) => csr.n_rows(),
        }
    }

    /// Number of columns, d.
    pub fn n_features(&self) -> usize {
        match self {
            Rows::Table(table) => table.n_features(),
            Rows::Sparse(csr) => csr.n_columns(),
        }
    }

    /// Writes the cells of one column in the given rows to `out`, in their order.
    pub fn cells(&self, rows: &[u32], column: u32, out: &mut Vec<f64>) {
        match self {
            Rows::Table(table) => table.column(column as usize).gather(rows, out),
            Rows::Sparse(csr) => {
                out.clear();
                memory::reserve(out, rows.len(), "the cells of a column");
                out.extend(rows.iter().map(|&row| csr.cell(row as usize, column)));
            }
        }
    }

    /// All cells of one row, d of them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn sparse_and_dense_rows_read_alike() {
        let x = array![[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, -3.0, 0.5]];
        let table = Table::from_matrix(x.view()).unwrap();
        let values = [1.0, 2.0, -3.0, 0.5];
        let csr = Csr::from_i64(&[0, 2, 2, 4], &[0, 2, 1, 2], &values, 3).unwrap();
        let (dense, sparse) = (Rows::from(&table), Rows::sparse(&csr).unwrap());
        assert_eq!((sparse.n_samples(), sparse.n_features()), (3, 3));
        for row in 0..3 {
            assert_eq!(dense.row(row), sparse.row(row));
            let (mut a, mut b) = (vec![], vec![]);
            dense.cells(&[2, 0, 2], row, &mut a);
            sparse.cells(&[2, 0, 2], row, &mut b);
            assert_eq!(a, b);
        }
    }

    #[test]
    fn arrays_that_are_no_matrix_are_refused() {
        let values = [1.0; 2];
        let cases: [(&[i64], &[i64], &str); 9] = [
            (&[], &[0, 1], "rise from 0 to 2"),
            (&[0, 1], &[0, 1], "rise from 0 to 2"),
            (&[1, 2], &[0, 1], "rise from 0 to 2"),
            (&[0, 3, 2], &[0, 1], "rise from 0 to 2"),
            // The columns of the first row descend too: the later rows are not read to find that out.
            (&[0, 2, 1, 2], &[1, 0], "rise from 0 to 2"),
            (&[0, -1, 2], &[0, 1], "rise from 0 to 2"),
            (&[0, 2], &[0], "indices has 1 entries"),
            (&[0, 2], &[0, 3], "of 3 columns cannot have a cell in column 3"),
            (&[0, 2], &[-1, 0], "cannot have a cell in column -1"),
        ];
        for (indptr, indices, expected) in cases {
            let message = Csr::from_i64(indptr, indices, &values, 3).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        for indices in [[1, 0], [1, 1]] {
            let matrix = Csr::from_i64(&[0, 2], &indices, &values, 3).unwrap();
            assert!(!matrix.is_ascending());
            assert!(Rows::sparse(&matrix).unwrap_err().to_string().contains("must ascend"));
        }
    }
}
