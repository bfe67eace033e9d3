//! Sparse matrices for the tests.

use ndarray::Array2;

/// The cells that are not 0, as a sparse matrix.
pub fn csr_parts(x: &Array2<f64>) -> (Vec<i64>, Vec<i64>, Vec<f64>) {
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for row in x.rows() {
        for (j, &cell) in row.iter().enumerate().filter(|(_, cell)| **cell != 0.0) {
            indices.push(j as i64);
            values.push(cell);
        }
        indptr.push(values.len() as i64);
    }
    (indptr, indices, values)
}
