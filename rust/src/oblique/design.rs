//! Stand-in for the matrix of the solver.

use crate::error::Result;
use crate::table::Table;

/// Columns.
#[derive(Debug, Clone)]
pub enum Design {
    /// Column-major.
    Dense(Vec<f64>, usize),
    /// indptr, indices, values, columns.
    Sparse(Vec<usize>, Vec<u32>, Vec<f64>, usize),
}

impl Design {
    /// Of a table.
    ///
    /// # Errors
    /// None.
    pub fn from_table(table: &Table<'_>) -> Result<Self> {
        let (n, d) = (table.n_samples(), table.n_features());
        let mut values = vec![0.0; n * d];
        for (j, out) in values.chunks_mut(n).enumerate() {
            table.column(j).read(0, out);
        }
        Ok(Design::Dense(values, n))
    }

    /// Of a sparse matrix.
    ///
    /// # Errors
    /// None.
    pub fn from_csr(
        n_columns: usize,
        indptr: &[usize],
        indices: &[u32],
        values: &[f64],
    ) -> Result<Self> {
        Ok(Design::Sparse(indptr.to_vec(), indices.to_vec(), values.to_vec(), n_columns))
    }
}
