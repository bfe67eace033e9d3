//! The kernel of the rows, their weights, and the sums that stocks are made of.
//!
//! The *kernel stock* of two sets of rows is S(A, B) = sum over i in A, j in B of w_i w_j k(i, j). A kernel is given
//! either by features, k(i, j) = <z_i, z_j>, where a stock is the product of two sums of rows,
//! S(A, B) = <sum of A, sum of B>, or by its n x n Gram matrix, where stocks are sums of entries.
//!
//! Sums of products run in four lanes whose order is fixed: the bits depend neither on threads nor on the compiler's
//! choice of vector instructions.

use crate::error::{Error, Result};
use crate::parallel;
use crate::rows::CsrRows;

/// Rows of a Gram matrix that one task adds up.
const GRAM_ROWS_PER_TASK: usize = 16;

/// Where kernel values come from.
#[derive(Debug, Clone, Copy)]
pub enum Kernel<'a> {
    /// k(i, j) = <z_i, z_j> with the rows of an n x rank matrix, row-major. Stocks are products of sums of rows, so no
    /// kernel value is ever formed.
    Features {
        /// The matrix.
        z: &'a [f64],
        /// Its width.
        rank: usize,
    },
    /// The same with a matrix of which only some cells are stored, the columns of its rows ascending; the rows that are
    /// cut are then sparse as well.
    Sparse(&'a CsrRows<'a>),
    /// The n x n kernel matrix, symmetric.
    Gram {
        /// The matrix.
        k: &'a [f64],
        /// Its width.
        n: usize,
    },
}

impl Kernel<'_> {
    /// Checks that the matrix has `n` rows, and a Gram matrix as many columns.
    ///
    /// # Errors
    /// [`Error::Shape`] if it does not.
    pub fn check(&self, n: usize) -> Result<()> {
        let (got, expected) = match *self {
            Kernel::Features { z, rank } => (z.len(), n * rank),
            Kernel::Sparse(z) => {
                z.check_ascending()?;
                return Error::check_len("The kernel", z.n_rows(), n, "rows");
            }
            Kernel::Gram { k, n: width } => {
                Error::check_len("The kernel", width, n, "columns")?;
                (k.len(), n * n)
            }
        };
        Error::check_len("The kernel", got, expected, "entries")
    }

    /// Whether the kernel comes as features, which makes it positive semidefinite.
    pub fn has_features(&self) -> bool {
        !matches!(self, Kernel::Gram { .. })
    }

    /// Returns k(row, row).
    pub fn diagonal(&self, row: usize) -> f64 {
        match *self {
            Kernel::Features { z, rank } => norm(&z[row * rank..][..rank]),
            // In turn, so that stored zeros change no bit.
            Kernel::Sparse(z) => z.row(row).1.iter().map(|x| x * x).sum(),
            Kernel::Gram { k, n } => k[row * n + row],
        }
    }

    /// Returns an upper bound on the objective: sum w_i |k(i, i)|, or sum w_i w_j |k(i, j)| / sum w_i if that is more,
    /// which takes an indefinite kernel. `more`: what features of levels add to k(i, i); `total`: the sum of the weights.
    pub fn objective_bound(
        &self,
        n: usize,
        weights: Weights<'_>,
        total: f64,
        more: impl Fn(u32) -> f64,
    ) -> f64 {
        let weighted = |value: &dyn Fn(usize) -> f64| -> f64 {
            (0..n).map(|i| weights.of(i as u32) * value(i)).sum()
        };
        let trace = weighted(&|i| (self.diagonal(i) + more(i as u32)).abs());
        let Kernel::Gram { k, .. } = *self else { return trace };
        let of_row = |i: usize| {
            let row = &k[i * n..][..n];
            match weights.0 {
                None => lanes(row, row, |value, _| value.abs()),
                Some(weights) => lanes(row, weights, |value, weight| value.abs() * weight),
            }
        };
        let rows = parallel::collect(n, GRAM_ROWS_PER_TASK, "the sums of the Gram matrix", of_row);
        trace.max(weighted(&|i| rows[i]) / total)
    }
}

/// The rows' weights, all positive; none: all 1.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a>(pub Option<&'a [f64]>);

impl Weights<'_> {
    /// Returns the weight of a row.
    #[inline(always)]
    pub fn of(&self, row: u32) -> f64 {
        self.0.map_or(1.0, |weights| weights[row as usize])
    }
}

/// Returns the sum of `term(a_i, b_i)`, in four lanes that the compiler turns into vector instructions.
#[inline(always)]
pub(super) fn lanes(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0; 4];
    let ((a4, a1), (b4, b1)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    for (a, b) in a4.iter().zip(b4) {
        for ((sum, &x), &y) in sums.iter_mut().zip(a).zip(b) {
            *sum += term(x, y);
        }
    }
    let rest: f64 = a1.iter().zip(b1).map(|(&x, &y)| term(x, y)).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// Returns <a, b>.
#[inline]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    lanes(a, b, |x, y| x * y)
}

/// Returns <a, a>.
#[inline]
pub fn norm(a: &[f64]) -> f64 {
    lanes(a, a, |x, _| x * x)
}

/// Adds `weight * row` to `sum`, entry by entry.
#[inline(always)]
pub fn add_row(sum: &mut [f64], row: &[f64], weight: f64) {
    for (s, &x) in sum.iter_mut().zip(row) {
        *s += weight * x;
    }
}
