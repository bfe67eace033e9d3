//! How far rows are from centers, and which centers suit given clusters: k-means and spherical k-means.
//!
//! | | Euclidean | cosine |
//! |---|---|---|
//! | cost of row x and center c | sum_j (x_j - c_j)^2 in units of the columns | 1 - x . c / length of x |
//! | center of a cluster | mean | sum of x / length of x, made as long as 1 |
//! | bisector of a and b | 2 (b - a) . x over squares, written in the columns' own units | (b - a) . x |
//! | cost that a center explains | square of the sum / weight | length of the sum |
//!
//! Costs are regrets (cost minus the row's least one) with the minimum apart, as in [`crate::costs`]. Cosine costs take
//! O(k) per stored cell, and the same additions in the same order for dense and sparse rows: cells that are 0 add
//! nothing. Rows of zeros have no direction: they cost 1 at every center and move none.

use crate::costs::{self, GroupSums, LabelCosts, Metric, MovingSums, Units};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::rows::Rows;
use crate::table::Table;

/// Rows whose costs one thread forms in one go.
const ROWS_PER_TASK: usize = 1024;

/// A distance, with the centers that minimise it.
#[derive(Debug, Clone)]
pub enum Geometry<'a, 't> {
    /// Squared Euclidean distance in the units of the columns; centers are means.
    Euclidean {
        /// The rows; sparse ones would lose their zeros to the columns' origins.
        table: &'a Table<'t>,
        /// Origin and unit of the columns.
        units: &'a Units,
    },
    /// 1 - cosine, on the rows as given; centers are means of the rows divided by their lengths, made as long as 1. A
    /// row of zeros costs 1 and adds nothing to a center.
    Cosine {
        /// The rows.
        rows: Rows<'a, 't>,
        /// 1 / the length of each row; 0 for a row of zeros.
        inverse: Vec<f64>,
    },
}

/// The distance a clustering is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// k-means: see [`Geometry::Euclidean`].
    Euclidean,
    /// Spherical k-means: see [`Geometry::Cosine`].
    Cosine,
}

impl<'a, 't> Geometry<'a, 't> {
    /// The geometry of some rows. `units` count for the Euclidean distance only.
    ///
    /// # Errors
    /// [`Error::Value`] for sparse rows and the Euclidean distance, and as [`Geometry::cosine`].
    pub fn new(rows: Rows<'a, 't>, units: &'a Units, distance: Distance) -> Result<Self> {
        match (distance, rows) {
            (Distance::Cosine, _) => Geometry::cosine(rows),
            (Distance::Euclidean, Rows::Table(table)) => Ok(Geometry::Euclidean { table, units }),
            (Distance::Euclidean, Rows::Sparse(_)) => {
                Err(Error::Value("Sparse rows need the cosine distance.".into()))
            }
        }
    }

    /// Spherical k-means on the given rows.
    ///
    /// # Errors
    /// [`Error::Value`] if the length of a row overflows.
    pub fn cosine(rows: Rows<'a, 't>) -> Result<Self> {
        let lengths = match rows {
            // The largest cell first, so that squares neither overflow nor vanish.
            Rows::Table(table) => {
                let numbers = || memory::zeros::<f64>(table.n_samples(), "the lengths of the rows");
                let (mut largest, mut squares, mut cells) = (numbers(), numbers(), numbers());
                for j in 0..table.n_features() {
                    table.column(j).read(0, &mut cells);
                    largest.iter_mut().zip(&cells).for_each(|(m, x)| *m = m.max(x.abs()));
                }
                for j in 0..table.n_features() {
                    table.column(j).read(0, &mut cells);
                    for ((square, x), m) in squares.iter_mut().zip(&cells).zip(&largest) {
                        if *m > 0.0 {
                            *square += (x / m) * (x / m);
                        }
                    }
                }
                squares.iter_mut().zip(&largest).for_each(|(s, m)| *s = s.sqrt() * m);
                squares
            }
            Rows::Sparse(csr) => {
                let length = |row: usize| {
                    let cells = csr.row(row).1;
                    let largest = cells.iter().fold(0.0f64, |m, x| m.max(x.abs()));
                    let square = |x: &f64| (x / largest) * (x / largest);
                    if largest > 0.0 {
                        cells.iter().map(square).sum::<f64>().sqrt() * largest
                    } else {
                        0.0
                    }
                };
                parallel::collect(
                    rows.n_samples(),
                    ROWS_PER_TASK,
                    "the lengths of the rows",
                    length,
                )
            }
        };
        if let Some(row) = lengths.iter().position(|length| length.is_infinite()) {
            return Err(Error::Value(format!(
                "The length of row {row} (counting from 0) overflows float64. Divide the row by a number: the cosine \
                 stays the same."
            )));
        }
        let inverse = |length: f64| if length > 0.0 { 1.0 / length } else { 0.0 };
        Ok(Geometry::Cosine { rows, inverse: lengths.into_iter().map(inverse).collect() })
    }

    /// The rows.
    pub fn rows(&self) -> Rows<'a, 't> {
        match self {
            Geometry::Euclidean { table, .. } => Rows::Table(table),
            Geometry::Cosine { rows, .. } => *rows,
        }
    }

    /// A row in the space of the centers: in units, or of length 1.
    /// O(d).
    pub fn row(&self, row: u32) -> Vec<f64> {
        let mut cells = self.rows().row(row);
        match self {
            Geometry::Euclidean { units, .. } => {
                for (x, (shift, scale)) in
                    cells.iter_mut().zip(units.shift.iter().zip(&units.scale))
                {
                    *x = (*x - shift) / scale;
                }
            }
            Geometry::Cosine { inverse, .. } => {
                cells.iter_mut().for_each(|x| *x *= inverse[row as usize]);
            }
        }
        cells
    }

    /// The bisector of two centers as a test on the columns as given: rows nearer to the second have a score of at
    /// least 0. Columns whose weight is 0 are left out.
    /// Exactly one test for any two centers that differ; none of its weights is 0.
    pub fn bisector(&self, first: &[f64], second: &[f64]) -> (Vec<(u32, f64)>, f64) {
        let mut bias = 0.0;
        let mut weights = vec![];
        for (j, (a, b)) in first.iter().zip(second).enumerate() {
            let mut weight = b - a;
            if let Geometry::Euclidean { units, .. } = self {
                bias -= weight * (a / 2.0 + b / 2.0);
                weight /= units.scale[j];
                bias -= weight * units.shift[j];
            }
            if weight != 0.0 {
                weights.push((j as u32, weight));
            }
        }
        (weights, bias)
    }

    /// Weighted regrets, nearest labels and the least cost for given centers (k x d, row-major, in units).
    ///
    /// # Errors
    /// [`Error::Value`] if a distance overflows.
    pub fn costs(&self, centers: &[f64], weights: Option<&[f64]>) -> Result<LabelCosts> {
        match self {
            Geometry::Euclidean { table, units } => {
                costs::label_costs(*table, units, centers, Metric::SquaredEuclidean, &[], weights)
            }
            Geometry::Cosine { rows, inverse } => {
                Ok(cosine_costs(*rows, inverse, centers, weights))
            }
        }
    }

    /// The nearest center of every row, and the cost of the rows about the centers of `labels`, one per row in
    /// `[0, k)`; none: about the nearest. `centers`: k x d, row-major, in units.
    ///
    /// # Errors
    /// As [`Error::check_labels`]; [`Error::Value`] if a distance overflows.
    pub fn assign(
        &self,
        centers: &[f64],
        labels: Option<&[u32]>,
        weights: Option<&[f64]>,
    ) -> Result<(Vec<u32>, f64)> {
        if let Some(labels) = labels {
            let k = centers.len() / self.rows().n_features().max(1);
            Error::check_labels(labels, self.rows().n_samples(), k)?;
        }
        let costs = self.costs(centers, weights)?;
        let cost = costs.of_labels(labels.unwrap_or(&costs.nearest));
        Ok((costs.nearest, cost))
    }

    /// Weight and sums of the rows of each group: in units, or of the rows made as long as 1.
    ///
    /// # Errors
    /// [`Error::Value`] if a group is out of range.
    pub fn sums(
        &self,
        groups: &[u32],
        n_groups: usize,
        weights: Option<&[f64]>,
    ) -> Result<GroupSums> {
        match self {
            Geometry::Euclidean { table, units } => {
                costs::group_sums(*table, units, groups, n_groups, weights)
            }
            Geometry::Cosine { rows, inverse } => {
                let of_row = |(row, inverse)| weights.map_or(1.0, |w| w[row]) * inverse;
                let factor = memory::collected(
                    inverse.iter().enumerate().map(of_row),
                    "the lengths of the rows",
                );
                let d = rows.n_features();
                let units = Units { shift: vec![0.0; d], scale: vec![1.0; d] };
                let mut sums = costs::group_sums(*rows, &units, groups, n_groups, Some(&factor))?;
                sums.weight = costs::group_weights(groups, n_groups, weights);
                Ok(sums)
            }
        }
    }

    /// [`Geometry::sums`] of one grouping of the rows after the other. Euclidean: rows that stay in their group are not added up
    /// again.
    pub fn sums_in_turn<'s>(
        &'s self,
        n_groups: usize,
        weights: Option<&'s [f64]>,
    ) -> impl FnMut(&[u32]) -> Result<GroupSums> + use<'s, 'a, 't> {
        let mut moving = match self {
            Geometry::Euclidean { table, units } => {
                Some(MovingSums::new(table, units, n_groups, weights))
            }
            Geometry::Cosine { .. } => None,
        };
        move |groups| match &mut moving {
            Some(moving) => moving.of(groups),
            None => self.sums(groups, n_groups, weights),
        }
    }

    /// The center of a group, and how much of its rows' cost it explains; none for a group without rows (cosine: whose
    /// rows cancel).
    pub fn center(&self, weight: f64, sum: &[f64]) -> Option<(Vec<f64>, f64)> {
        let square: f64 = sum.iter().map(|x| x * x).sum();
        let (by, explained) = match self {
            Geometry::Euclidean { .. } => (weight, square / weight),
            Geometry::Cosine { .. } => (square.sqrt(), square.sqrt()),
        };
        (by > 0.0).then(|| (sum.iter().map(|x| x / by).collect(), explained))
    }

    /// The centers of given clusters; an empty cluster keeps its old one.
    ///
    /// # Errors
    /// As [`Geometry::sums`].
    pub fn centers(
        &self,
        labels: &[u32],
        weights: Option<&[f64]>,
        old: &[f64],
    ) -> Result<Vec<f64>> {
        let d = self.rows().n_features();
        let sums = self.sums(labels, old.len() / d, weights)?;
        let mut centers = old.to_vec();
        for (label, center) in centers.chunks_mut(d).enumerate() {
            if let Some((new, _)) = self.center(sums.weight[label], &sums.sums[label * d..][..d]) {
                center.copy_from_slice(&new);
            }
        }
        Ok(centers)
    }
}

/// Regrets of all rows about centers of length 1; `inverse`: 1 / the length of each row. In blocks of rows, whose
/// minima are added up in the order of the blocks.
fn cosine_costs(
    rows: Rows<'_, '_>,
    inverse: &[f64],
    centers: &[f64],
    weights: Option<&[f64]>,
) -> LabelCosts {
    let (n, d) = (rows.n_samples(), rows.n_features());
    let k = centers.len() / d.max(1);
    // The centers' cells of one column side by side: each cell is read once for all centers.
    let mut by_column = vec![0.0; centers.len()];
    for (label, center) in centers.chunks(d).enumerate() {
        for (j, x) in center.iter().enumerate() {
            by_column[j * k + label] = *x;
        }
    }
    let meet = |out: &mut [f64], j: usize, x: f64| {
        for (out, c) in out.iter_mut().zip(&by_column[j * k..][..k]) {
            *out += x * c;
        }
    };
    let mut regrets: Vec<f64> = memory::zeros(n * k, "the regrets of the rows");
    let mut nearest: Vec<u32> = memory::zeros(n, "the labels of the rows");
    let blocks = regrets.chunks_mut(ROWS_PER_TASK * k).zip(nearest.chunks_mut(ROWS_PER_TASK));
    let minima = parallel::map(blocks.enumerate(), |(block, (regrets, nearest))| {
        let start = block * ROWS_PER_TASK;
        match rows {
            Rows::Table(table) => {
                let mut cells = vec![0.0; nearest.len()];
                for j in 0..d {
                    table.column(j).read(start, &mut cells);
                    for (out, &x) in regrets.chunks_mut(k).zip(&cells) {
                        meet(out, j, x);
                    }
                }
            }
            Rows::Sparse(csr) => {
                for (i, out) in regrets.chunks_mut(k).enumerate() {
                    let (columns, cells) = csr.row(start + i);
                    for (&j, &x) in columns.iter().zip(cells) {
                        meet(out, j as usize, x);
                    }
                }
            }
        }
        let mut minimum = 0.0;
        for (i, (row, label)) in regrets.chunks_mut(k).zip(nearest).enumerate() {
            let factor = inverse[start + i];
            row.iter_mut().for_each(|dot| *dot = (1.0 - *dot * factor).max(0.0));
            let weight = weights.map_or(1.0, |w| w[start + i]);
            let (cheapest, cost) = costs::to_regrets(row, weight);
            *label = cheapest;
            minimum += weight * cost;
        }
        minimum
    });
    LabelCosts { regrets, nearest, minimum: minima.iter().sum() }
}
