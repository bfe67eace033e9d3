//! Kernel stocks: of the two sides of every cut of a leaf, and of clusters with single rows.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::Monitor;
use crate::table::Column;

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
    /// The n x n kernel matrix, symmetric.
    Gram {
        /// The matrix.
        k: &'a [f64],
        /// Its width.
        n: usize,
    },
}

impl Kernel<'_> {
    /// # Errors
    /// [`Error::Shape`] if the matrix does not have `n` rows of its width.
    pub fn check(&self, n: usize) -> Result<()> {
        let (got, expected) = match *self {
            Kernel::Features { z, rank } => (z.len(), n * rank),
            Kernel::Gram { k, n: width } => (k.len(), n * width),
        };
        Error::check_len("The kernel", got, expected, "entries")
    }

    /// k(row, row).
    pub fn diagonal(&self, row: usize) -> f64 {
        match *self {
            Kernel::Features { z, rank } => norm(&z[row * rank..][..rank]),
            Kernel::Gram { k, n } => k[row * n + row],
        }
    }

    /// Features of a row; 0 with a Gram matrix.
    pub fn rank(&self) -> usize {
        match *self {
            Kernel::Features { rank, .. } => rank,
            Kernel::Gram { .. } => 0,
        }
    }

    /// What the objective can come to: sum w_i |k(i, i)|, or sum w_i w_j |k(i, j)| / sum w_i if that is more, which
    /// takes an indefinite kernel. `total`: the sum of the weights.
    pub fn size(&self, n: usize, weights: Weights<'_>, total: f64) -> f64 {
        let weighted = |value: &dyn Fn(usize) -> f64| -> f64 {
            (0..n).map(|i| weights.of(i as u32) * value(i)).sum()
        };
        let trace = weighted(&|i| self.diagonal(i).abs());
        let Kernel::Gram { k, .. } = *self else { return trace };
        let of_row = |row: &[f64]| match weights.0 {
            None => lanes(row, row, |value, _| value.abs()),
            Some(weights) => lanes(row, weights, |value, weight| value.abs() * weight),
        };
        let rows: Vec<f64> = k.par_chunks(n).map(of_row).collect();
        trace.max(weighted(&|i| rows[i]) / total)
    }
}

/// The rows' weights; none: all 1.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a>(pub Option<&'a [f64]>);

impl Weights<'_> {
    /// The weight of a row.
    #[inline(always)]
    pub fn of(&self, row: u32) -> f64 {
        self.0.map_or(1.0, |weights| weights[row as usize])
    }
}

/// Sums of products in four lanes, which the compiler turns into vector instructions.
#[inline(always)]
fn lanes(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
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

/// <a, b>.
#[inline]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    lanes(a, b, |x, y| x * y)
}

/// <a, a>.
#[inline]
pub fn norm(a: &[f64]) -> f64 {
    lanes(a, a, |x, _| x * x)
}

/// The cuts of one leaf along one column, with all that does not depend on the clusters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cuts {
    /// The column.
    pub feature: usize,
    /// Rows to the left.
    pub n_left: Vec<u32>,
    /// Weight of the left and of the right sides.
    pub weight: [Vec<f64>; 2],
    /// S(L, L) and S(R, R).
    pub own: [Vec<f64>; 2],
}

impl Cuts {
    /// Places for cuts: `order` are the leaf's rows in the order of the column, `min_samples_leaf` >= 1.
    fn places(feature: usize, cells: &[f64], min_samples_leaf: usize) -> Self {
        let n = cells.len();
        let n_left = (min_samples_leaf..(n + 1).saturating_sub(min_samples_leaf))
            .filter(|&i| i < n && cells[i - 1] < cells[i])
            .map(|i| i as u32)
            .collect();
        Cuts { feature, n_left, ..Cuts::default() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.n_left.is_empty()
    }

    fn with_weights(self, order: &[u32], weights: Weights<'_>) -> Self {
        let n = order.len() as u32;
        let weight = match weights.0 {
            None => {
                let left = self.n_left.iter().map(|&left| f64::from(left)).collect();
                [left, self.n_left.iter().map(|&left| f64::from(n - left)).collect()]
            }
            Some(_) => [
                self.prefix(order, |row| weights.of(row)),
                self.suffix(order, |row| weights.of(row)),
            ],
        };
        Cuts { weight, ..self }
    }

    /// The sums of `value(row)` over the rows left of each cut.
    pub fn prefix(&self, order: &[u32], value: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut sums = Vec::with_capacity(self.n_left.len());
        self.prefix_into(order, value, &mut sums);
        sums
    }

    /// The same, written over what is in `sums`.
    pub fn prefix_into(&self, order: &[u32], value: impl Fn(u32) -> f64, sums: &mut Vec<f64>) {
        sums.clear();
        let (mut sum, mut start) = (0.0, 0);
        for &end in &self.n_left {
            for &row in &order[start..end as usize] {
                sum += value(row);
            }
            start = end as usize;
            sums.push(sum);
        }
    }

    /// The same right of each cut.
    fn suffix(&self, order: &[u32], value: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_left.len()];
        let (mut sum, mut end) = (0.0, order.len());
        for (&start, place) in self.n_left.iter().zip(&mut sums).rev() {
            for &row in order[start as usize..end].iter().rev() {
                sum += value(row);
            }
            end = start as usize;
            *place = sum;
        }
        sums
    }
}

/// The rows of a leaf and its order along one column.
#[derive(Debug, Clone, Copy)]
pub struct LeafColumn<'a, 't> {
    /// The column's number.
    pub feature: usize,
    /// The column.
    pub column: &'a Column<'t>,
    /// The leaf's rows in the order of the column.
    pub order: &'a [u32],
}

/// Makes the cuts of a leaf.
#[derive(Debug, Clone, Copy)]
pub struct Maker<'a> {
    /// Kernel values.
    pub kernel: Kernel<'a>,
    /// Weights of the rows.
    pub weights: Weights<'a>,
    /// Fewest rows on either side.
    pub min_samples_leaf: usize,
    /// Asked to stop?
    pub monitor: &'a Monitor,
}

impl Maker<'_> {
    /// The cuts of the leaf with the given `rows` along each of `columns`, in their order; with a Gram matrix also the
    /// stocks of the rows with the leaf, in the order of the rows. `position`: the place of each of these rows among
    /// them, by row. `total`: the sum of the rows' features. O(rows x rank) per column with features, O(rows^2) with a
    /// Gram matrix.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the monitor was asked to stop.
    pub fn cuts(
        &self,
        rows: &[u32],
        position: &[u32],
        columns: &[LeafColumn<'_, '_>],
        total: &[f64],
    ) -> Result<(Vec<Cuts>, Vec<f64>)> {
        match self.kernel {
            Kernel::Features { z, rank } => {
                let of_column = |column: &LeafColumn<'_, '_>| {
                    self.monitor.check()?;
                    let places = self.places(column);
                    Ok(self.feature_cuts(z, rank, places, column.order, total))
                };
                let cuts: Result<_> = columns.par_iter().with_max_len(1).map(of_column).collect();
                Ok((cuts?, vec![]))
            }
            Kernel::Gram { k, n } => self.gram_cuts(k, n, rows, position, columns),
        }
    }

    fn places(&self, column: &LeafColumn<'_, '_>) -> Cuts {
        let mut cells = Vec::new();
        column.column.gather(column.order, &mut cells);
        Cuts::places(column.feature, &cells, self.min_samples_leaf)
    }

    fn feature_cuts(
        &self,
        z: &[f64],
        rank: usize,
        places: Cuts,
        order: &[u32],
        total: &[f64],
    ) -> Cuts {
        let mut cuts = places.with_weights(order, self.weights);
        let (mut left, mut right) =
            (Vec::with_capacity(cuts.n_left.len()), Vec::with_capacity(cuts.n_left.len()));
        let mut sum = vec![0.0; rank];
        let mut start = 0;
        for &end in &cuts.n_left {
            for &row in &order[start..end as usize] {
                add_row(&mut sum, &z[row as usize * rank..][..rank], self.weights.of(row));
            }
            start = end as usize;
            left.push(norm(&sum));
            right.push(lanes(total, &sum, |t, s| (t - s) * (t - s)));
        }
        cuts.own = [left, right];
        cuts
    }

    /// With a Gram matrix, S(L, L) grows at row t by its stock with itself and twice that with the rows before it in the
    /// order of the column, and S(R, R) likewise with those after it. Each row of the matrix is read once for all columns.
    fn gram_cuts(
        &self,
        k: &[f64],
        n: usize,
        rows: &[u32],
        position: &[u32],
        columns: &[LeafColumn<'_, '_>],
    ) -> Result<(Vec<Cuts>, Vec<f64>)> {
        let m = rows.len();
        // By column: the place of each row in its order. Numbers of the kernel's own width make the loop below fast.
        let places: Vec<Vec<f64>> = columns
            .par_iter()
            .map(|column| {
                let mut places = vec![0.0; m];
                for (at, &row) in column.order.iter().enumerate() {
                    places[position[row as usize] as usize] = at as f64;
                }
                places
            })
            .collect();
        let width = columns.len() + 1;
        // Per row: its stock with the leaf, then how S(L, L) grows along each column.
        let mut grows = vec![0.0; m * width];
        grows.par_chunks_mut(width).zip(rows).enumerate().try_for_each_init(
            Vec::new,
            |gathered, (i, (grows, &t))| -> Result<()> {
                if i % 64 == 0 {
                    self.monitor.check()?;
                }
                let row = &k[t as usize * n..][..n];
                let values = if m == n && self.weights.0.is_none() {
                    row // the root's rows lie as they are needed
                } else {
                    gathered.clear();
                    gathered.extend(rows.iter().map(|&s| self.weights.of(s) * row[s as usize]));
                    &gathered[..]
                };
                let weight = self.weights.of(t);
                grows[0] = weight * lanes(values, values, |value, _| value);
                for (grow, places) in grows[1..].iter_mut().zip(&places) {
                    let at = places[i];
                    let before =
                        lanes(values, places, |value, place| if place < at { value } else { 0.0 });
                    *grow = weight * (2.0 * before + values[i]);
                }
                Ok(())
            },
        )?;
        let of_column = |(f, column): (usize, &LeafColumn<'_, '_>)| {
            let mut cuts = self.places(column).with_weights(column.order, self.weights);
            let at = |row: u32| position[row as usize] as usize * width;
            let grow = |row: u32| grows[at(row) + f + 1];
            // Twice the stock with the leaf is that with the rows before, itself twice, and the rows after.
            let shrink = |row: u32| 2.0 * grows[at(row)] - grow(row);
            cuts.own = [cuts.prefix(column.order, grow), cuts.suffix(column.order, shrink)];
            cuts
        };
        let cuts = columns.par_iter().enumerate().map(of_column).collect();
        Ok((cuts, grows.chunks(width).map(|of_row| of_row[0]).collect()))
    }
}

/// `sum += weight * row`.
#[inline(always)]
pub fn add_row(sum: &mut [f64], row: &[f64], weight: f64) {
    for (s, &x) in sum.iter_mut().zip(row) {
        *s += weight * x;
    }
}
