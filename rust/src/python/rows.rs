//! Rows that come as a table or as a sparse matrix.

use pyo3::prelude::*;

use super::convert::{TableArgument, slice};
use super::tree::Sparse;
use crate::error::Result;
use crate::parallel::Monitor;
use crate::rows::{Csr, CsrRows, Rows};
use crate::table::Table;

/// The rows of a fit, as they arrive: a table, or a sparse matrix.
#[derive(FromPyObject)]
pub enum RowsArgument<'py> {
    /// indptr, indices, values, number of columns.
    #[pyo3(transparent)]
    Sparse(Sparse<'py>),
    /// A matrix, or a list of columns.
    #[pyo3(transparent)]
    Table(TableArgument<'py>),
}

/// The same in the types of the core; a sparse matrix has its indices copied.
pub enum RowsData<'a> {
    /// Columns side by side.
    Table(Table<'a>),
    /// A matrix in compressed sparse rows.
    Sparse(CsrRows<'a>),
}

impl RowsArgument<'_> {
    /// Number of columns, d.
    pub fn n_features(&self) -> usize {
        match self {
            RowsArgument::Sparse((.., n_columns)) => *n_columns,
            RowsArgument::Table(table) => table.n_features(),
        }
    }

    /// Borrows the rows; passes over a table stop once `monitor` is asked to.
    ///
    /// # Errors
    /// `ValueError` if columns differ in length, or the arrays are not those of a sparse matrix.
    pub fn data<'a>(&'a self, monitor: &'a Monitor) -> PyResult<RowsData<'a>> {
        Ok(match self {
            RowsArgument::Table(table) => RowsData::Table(table.table()?.with_monitor(monitor)),
            RowsArgument::Sparse((indptr, indices, values, n_columns)) => {
                let (indptr, indices) = (slice(indptr)?, slice(indices)?);
                RowsData::Sparse(Csr::from_i64(indptr, indices, slice(values)?, *n_columns)?)
            }
        })
    }
}

impl<'t> RowsData<'t> {
    /// The view that the core reads.
    ///
    /// # Errors
    /// [`crate::error::Error::Value`] if the columns of a sparse row do not ascend.
    pub fn rows(&self) -> Result<Rows<'_, 't>> {
        match self {
            RowsData::Table(table) => Ok(Rows::Table(table)),
            RowsData::Sparse(matrix) => Rows::sparse(matrix),
        }
    }
}
