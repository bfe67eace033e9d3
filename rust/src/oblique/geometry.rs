//! How far rows are from centers, and which centers suit given clusters: k-means and spherical k-means.

use rayon::prelude::*;

use super::logistic::Design;
use crate::costs::{self, LabelCosts, Metric, Units};
use crate::error::Result;
use crate::table::Table;

/// Rows whose costs one thread forms in one go.
const BLOCK: usize = 1024;

/// A distance, with the centers that minimise it.
#[derive(Debug, Clone, Copy)]
pub enum Geometry<'a, 't> {
    /// Squared Euclidean distance in the table's units; centers are means.
    Euclidean {
        /// The rows.
        table: &'a Table<'t>,
        /// Origin and unit of the columns.
        units: &'a Units,
    },
    /// 1 - cosine; centers are means of the rows divided by their lengths, of length 1. A row of zeros costs 1.
    Cosine {
        /// The rows as given.
        design: &'a Design<'a>,
        /// Their lengths; 1 for a row of zeros.
        lengths: &'a [f64],
        /// Number of columns.
        n_features: usize,
    },
}

/// The length of every row; 1 for a row of zeros.
pub fn lengths(design: &Design<'_>, n_samples: usize) -> Vec<f64> {
    let mut squares = vec![0.0; n_samples];
    match *design {
        Design::Dense { values, n_samples } => {
            for column in values.chunks(n_samples.max(1)) {
                for (square, x) in squares.iter_mut().zip(column) {
                    *square += x * x;
                }
            }
        }
        Design::Csr { indptr, values, .. } => {
            for (square, ends) in squares.iter_mut().zip(indptr.windows(2)) {
                *square = values[ends[0] as usize..ends[1] as usize].iter().map(|x| x * x).sum();
            }
        }
    }
    squares.into_iter().map(|square| if square > 0.0 { square.sqrt() } else { 1.0 }).collect()
}

impl Geometry<'_, '_> {
    /// Weighted regrets, nearest labels and the least cost for given centers (k x d, row-major, in units).
    ///
    /// # Errors
    /// [`crate::error::Error::Value`] if a distance overflows.
    pub fn costs(&self, centers: &[f64], weights: Option<&[f64]>) -> Result<LabelCosts> {
        match self {
            Geometry::Euclidean { table, units } => {
                costs::label_costs(table, units, centers, Metric::SquaredEuclidean, weights)
            }
            Geometry::Cosine { design, lengths, n_features } => {
                Ok(cosine_costs(design, lengths, *n_features, centers, weights))
            }
        }
    }

    /// The centers of given clusters; an empty cluster keeps its old one.
    ///
    /// # Errors
    /// [`crate::error::Error::Value`] if a label is not less than the number of centers.
    pub fn centers(
        &self,
        labels: &[u32],
        weights: Option<&[f64]>,
        old: &[f64],
    ) -> Result<Vec<f64>> {
        let mut centers = old.to_vec();
        match self {
            Geometry::Euclidean { table, units } => {
                let d = table.n_features();
                let sums = costs::group_sums(table, units, labels, old.len() / d, weights)?;
                for (label, weight) in sums.weight.iter().enumerate().filter(|w| *w.1 > 0.0) {
                    for j in label * d..(label + 1) * d {
                        centers[j] = sums.sums[j] / weight;
                    }
                }
            }
            Geometry::Cosine { design, lengths, n_features } => {
                let factor: Vec<f64> = lengths
                    .iter()
                    .enumerate()
                    .map(|(row, length)| weights.map_or(1.0, |w| w[row]) / length)
                    .collect();
                let sums = group_sums(design, *n_features, labels, old.len() / n_features, &factor);
                let rows = centers.chunks_mut(*n_features).zip(sums.chunks(*n_features));
                for (center, sum) in rows {
                    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
                    if length > 0.0 {
                        center.iter_mut().zip(sum).for_each(|(c, x)| *c = x / length);
                    }
                }
            }
        }
        Ok(centers)
    }
}

/// Sums of the rows of each group, each row multiplied by its factor; n_groups x d, row-major.
pub fn group_sums(
    design: &Design<'_>,
    n_features: usize,
    groups: &[u32],
    n_groups: usize,
    factor: &[f64],
) -> Vec<f64> {
    let mut sums = vec![0.0; n_groups * n_features];
    match *design {
        Design::Dense { values, n_samples } => {
            let columns: Vec<Vec<f64>> = values
                .par_chunks(n_samples.max(1))
                .map(|column| {
                    let mut sums = vec![0.0; n_groups];
                    for ((x, &group), factor) in column.iter().zip(groups).zip(factor) {
                        sums[group as usize] += factor * x;
                    }
                    sums
                })
                .collect();
            for (feature, column) in columns.iter().enumerate() {
                for (group, sum) in column.iter().enumerate() {
                    sums[group * n_features + feature] = *sum;
                }
            }
        }
        Design::Csr { indptr, indices, values, .. } => {
            for (row, (&group, factor)) in groups.iter().zip(factor).enumerate() {
                let cells = indptr[row] as usize..indptr[row + 1] as usize;
                let sums = &mut sums[group as usize * n_features..][..n_features];
                for (&column, x) in indices[cells.clone()].iter().zip(&values[cells]) {
                    sums[column as usize] += factor * x;
                }
            }
        }
    }
    sums
}

fn cosine_costs(
    design: &Design<'_>,
    lengths: &[f64],
    n_features: usize,
    centers: &[f64],
    weights: Option<&[f64]>,
) -> LabelCosts {
    let k = centers.len() / n_features.max(1);
    let n = lengths.len();
    // One center beside the other: a cell meets them all at once.
    let mut by_column = vec![0.0; centers.len()];
    for (label, center) in centers.chunks(n_features).enumerate() {
        for (column, x) in center.iter().enumerate() {
            by_column[column * k + label] = *x;
        }
    }
    let mut regrets = vec![0.0; n * k];
    let mut nearest = vec![0u32; n];
    let minima: Vec<f64> = regrets
        .par_chunks_mut(BLOCK * k)
        .zip(nearest.par_chunks_mut(BLOCK))
        .enumerate()
        .map(|(block, (regrets, nearest))| {
            let start = block * BLOCK;
            let mut meet = |row: usize, column: usize, x: f64| {
                let out = &mut regrets[row * k..][..k];
                for (out, c) in out.iter_mut().zip(&by_column[column * k..][..k]) {
                    *out += x * c;
                }
            };
            match *design {
                Design::Dense { values, n_samples } => {
                    for (column, cells) in values.chunks(n_samples.max(1)).enumerate() {
                        for (row, &x) in cells[start..][..nearest.len()].iter().enumerate() {
                            meet(row, column, x);
                        }
                    }
                }
                Design::Csr { indptr, indices, values, .. } => {
                    for row in 0..nearest.len() {
                        let ends = &indptr[start + row..start + row + 2];
                        for at in ends[0] as usize..ends[1] as usize {
                            meet(row, indices[at] as usize, values[at]);
                        }
                    }
                }
            }
            let mut minimum = 0.0;
            for (i, (row, label)) in regrets.chunks_mut(k).zip(nearest).enumerate() {
                row.iter_mut().for_each(|dot| *dot = 1.0 - *dot / lengths[start + i]);
                let weight = weights.map_or(1.0, |w| w[start + i]);
                let (cheapest, cost) = costs::to_regrets(row, weight);
                *label = cheapest;
                minimum += weight * cost.max(0.0);
            }
            minimum
        })
        .collect();
    LabelCosts { regrets, nearest, minimum: minima.iter().sum() }
}
