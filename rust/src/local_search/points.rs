//! Rows as points, and what they cost under labels whose clusters have centers.
//!
//! A point has the row's numbers, then for each column of levels one coordinate a level: 0 but for that of its level. Only
//! centers and sums have these coordinates; of rows the codes are read, and what a level costs is looked up.

use std::ops::Range;

use ndarray::ArrayView1;

use super::objective::RowCosts;
use crate::costs::LevelCosts;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::table::{MISSING_LEVEL, has_missing_levels};

/// Rows whose costs are one task.
pub(super) const ROWS_PER_TASK: usize = 1024;

/// A column of levels.
#[derive(Debug, Clone, Copy)]
pub struct LevelPoints<'a> {
    /// By row; [`MISSING_LEVEL`] where the cell is missing.
    pub codes: ArrayView1<'a, u8>,
    /// Number of levels.
    pub n_levels: usize,
    /// Two levels are `1 / unit` apart.
    pub unit: f64,
}

/// A column of levels and its coordinates.
#[derive(Debug, Clone)]
pub(super) struct PlacedLevels<'a> {
    codes: ArrayView1<'a, u8>,
    /// Its coordinates.
    pub places: Range<usize>,
    /// What a row has in the coordinate of its level.
    pub value: f64,
}

/// Rows that cost something about centers.
pub(super) trait PointCosts {
    /// Numbers of rows n, coordinates d and clusters k.
    fn shape(&self) -> (usize, usize, usize);

    /// A row as a center.
    fn as_center(&self, row: u32) -> Vec<f64>;

    /// Computes the costs under some labels from their centers.
    fn update_columns(&self, labels: &[usize], costs: &mut RowCosts, monitor: &Monitor);

    /// The costs of rows about centers (k x d) of the clusters that have rows. An empty cluster is offered to the row
    /// that costs most, so that a cut around it is worth something. Only what has moved is computed.
    fn update(
        &self,
        centers: &[f64],
        has_rows: impl Fn(usize) -> bool,
        costs: &mut RowCosts,
        monitor: &Monitor,
    ) {
        let (n, d, k) = self.shape();
        let is_first = costs.costs.is_empty();
        if is_first {
            costs.costs = memory::zeros(n * k, "the costs of rows");
            costs.centers = centers.to_vec();
        }
        let (used, empty): (Vec<usize>, Vec<usize>) = (0..k).partition(|&l| has_rows(l));
        let has_moved = |l: usize| costs.centers[l * d..][..d] != centers[l * d..][..d];
        let changed: Vec<usize> = used.into_iter().filter(|&l| is_first || has_moved(l)).collect();
        for &l in &changed {
            costs.centers[l * d..][..d].copy_from_slice(&centers[l * d..][..d]);
        }
        self.update_columns(&changed, costs, monitor);
        for (i, &l) in empty.iter().enumerate() {
            let least = |row: usize| {
                let costs = &costs.costs[row * k..][..k];
                let others = (0..k).filter(|other| !empty[i..].contains(other));
                others.map(|other| costs[other]).fold(f64::INFINITY, f64::min)
            };
            let dearest = (0..n).max_by(|&a, &b| least(a).total_cmp(&least(b)));
            let center = self.as_center(dearest.unwrap_or(0) as u32);
            costs.centers[l * d..][..d].copy_from_slice(&center);
            self.update_columns(&[l], costs, monitor);
        }
    }

    /// The costs of rows about the rows `seeds[l]`, k of them.
    fn seed_costs(&self, seeds: &[u32], monitor: &Monitor) -> RowCosts {
        let centers: Vec<f64> = seeds.iter().flat_map(|&row| self.as_center(row)).collect();
        let mut costs = RowCosts::default();
        self.update(&centers, |_| true, &mut costs, monitor);
        costs
    }
}

/// The rows as points. A missing number is NaN.
#[derive(Debug, Clone)]
pub struct Points<'a> {
    /// n x `n_numbers`, row-major.
    z: &'a [f64],
    n_numbers: usize,
    n_samples: usize,
    pub(super) levels: Vec<PlacedLevels<'a>>,
    /// Number of coordinates.
    pub(super) d: usize,
    /// Number of clusters.
    pub(super) k: usize,
    weights: Option<&'a [f64]>,
    /// Where centers lie in coordinates that their rows lack; empty if no coordinate is missing.
    pub(super) overall: Vec<f64>,
    /// What the numbers of a row of weight 1 cost at a distance from their center.
    distance: fn(&[f64], &[f64]) -> f64,
}

impl<'a> Points<'a> {
    /// `z`: the numbers of `n_samples` rows, row-major, NaN where one is missing. `k`: the number of clusters. `weights`:
    /// positive; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree.
    pub fn new(
        z: &'a [f64],
        n_samples: usize,
        k: usize,
        weights: Option<&'a [f64]>,
        levels: &[LevelPoints<'a>],
    ) -> Result<Self> {
        let n_numbers = z.len() / n_samples.max(1);
        Error::check_len("z", z.len(), n_samples * n_numbers, "entries")?;
        Error::check_len("weights", weights.map_or(n_samples, <[f64]>::len), n_samples, "rows")?;
        let mut d = n_numbers;
        let mut placed = vec![];
        for &LevelPoints { codes, n_levels, unit } in levels {
            Error::check_len("codes", codes.len(), n_samples, "rows")?;
            placed.push(PlacedLevels { codes, places: d..d + n_levels, value: 1.0 / unit });
            d += n_levels;
        }
        let (levels, overall, distance) = (placed, vec![], |_: &[f64], _: &[f64]| 0.0);
        Ok(Points { z, n_numbers, n_samples, levels, d, k, weights, overall, distance })
    }

    /// With what the numbers of a row of weight 1 cost at a distance from their center, and what a row has in the
    /// coordinate of its level if two levels are 1 apart.
    pub(super) fn with(mut self, distance: fn(&[f64], &[f64]) -> f64, level: f64) -> Self {
        self.distance = distance;
        self.levels.iter_mut().for_each(|column| column.value *= level);
        self
    }

    /// Whether a coordinate is missing.
    pub fn has_gaps(&self) -> bool {
        let is_missing = |column: &PlacedLevels<'_>| has_missing_levels(&column.codes);
        self.z.iter().any(|x| x.is_nan()) || self.levels.iter().any(is_missing)
    }

    /// Number of rows.
    pub(super) fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// The numbers of a row.
    pub(super) fn numbers(&self, row: u32) -> &'a [f64] {
        &self.z[row as usize * self.n_numbers..][..self.n_numbers]
    }

    /// The weight of a row.
    pub(super) fn weight(&self, row: u32) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row as usize])
    }

    /// The weights of the levels of a column among some rows, missing ones last.
    pub(super) fn level_weights(&self, column: &PlacedLevels<'_>, rows: &[u32]) -> Vec<f64> {
        const WIDTH: usize = MISSING_LEVEL as usize + 1;
        let level = |row: u32| usize::from(column.codes[row as usize]);
        if self.weights.is_none() {
            let mut counts = [0_u32; WIDTH];
            rows.iter().for_each(|&row| counts[level(row)] += 1);
            return counts[..column.places.len()].iter().map(|&count| f64::from(count)).collect();
        }
        let mut weights = vec![0.0; WIDTH];
        rows.iter().for_each(|&row| weights[level(row)] += self.weight(row));
        weights.truncate(column.places.len());
        weights
    }

    /// Writes the means of levels over some rows to their coordinates; returns the sum of the squared distances to them.
    /// `seen`: takes the coordinates of each column and the weight of the rows that have it.
    pub(super) fn level_means(
        &self,
        rows: &[u32],
        means: &mut [f64],
        mut seen: impl FnMut(Range<usize>, f64),
    ) -> f64 {
        let mut squares = 0.0;
        for column in &self.levels {
            let weights = self.level_weights(column, rows);
            let total: f64 = weights.iter().sum();
            // A loop of divisions that the compiler turns into vector instructions, then the sum.
            let share = |weight: f64| if total > 0.0 { weight / total } else { 0.0 };
            let shares: Vec<f64> = weights.iter().map(|&weight| share(weight)).collect();
            for (mean, share) in means[column.places.clone()].iter_mut().zip(&shares) {
                *mean = share * column.value;
            }
            for (weight, share) in weights.iter().zip(&shares) {
                squares += weight * (1.0 - share) * column.value * column.value;
            }
            seen(column.places.clone(), total);
        }
        squares
    }

    /// What levels cost about centers.
    fn level_costs(&self, centers: &[&[f64]]) -> Vec<LevelCosts<'_>> {
        let m = centers.len();
        let of_column = |column: &PlacedLevels<'a>| {
            let mut costs = vec![0.0; column.places.len() * m];
            for (i, center) in centers.iter().enumerate() {
                let center = &center[column.places.clone()];
                let from_zero = |c: &f64| (self.distance)(&[0.0], &[*c]);
                let all: f64 = center.iter().map(from_zero).sum();
                for (v, c) in center.iter().enumerate() {
                    let others = (all - from_zero(c)).max(0.0);
                    costs[v * m + i] = others + (self.distance)(&[column.value], &[*c]);
                }
            }
            costs
        };
        let columns = self.levels.iter();
        columns
            .map(|column| LevelCosts { codes: &column.codes, costs: of_column(column) })
            .collect()
    }
}

impl PointCosts for Points<'_> {
    fn shape(&self) -> (usize, usize, usize) {
        (self.n_samples, self.d, self.k)
    }

    fn as_center(&self, row: u32) -> Vec<f64> {
        let seen = |(j, &x): (usize, &f64)| if x.is_nan() { self.overall[j] } else { x };
        let mut center: Vec<f64> = self.numbers(row).iter().enumerate().map(seen).collect();
        for PlacedLevels { codes, places, value } in &self.levels {
            match codes[row as usize] {
                MISSING_LEVEL => center.extend(&self.overall[places.clone()]),
                code => {
                    center.resize(places.end, 0.0);
                    center[places.start + usize::from(code)] = *value;
                }
            }
        }
        center
    }

    fn update_columns(&self, labels: &[usize], costs: &mut RowCosts, monitor: &Monitor) {
        let (d, k, m) = (self.d, self.k, labels.len());
        let centers: Vec<&[f64]> = labels.iter().map(|&l| &costs.centers[l * d..][..d]).collect();
        let of_levels = self.level_costs(&centers);
        let tasks = costs.costs.chunks_mut(ROWS_PER_TASK * k).enumerate();
        parallel::map(tasks.filter(|_| m > 0), |(task, costs)| {
            if monitor.check().is_err() {
                return; // nobody looks at them any more
            }
            let start = task * ROWS_PER_TASK;
            let rows = || (start as u32..).take(costs.len() / k);
            let mut found = Vec::with_capacity(ROWS_PER_TASK * m);
            for x in rows().map(|row| self.numbers(row)) {
                found.extend(centers.iter().map(|c| (self.distance)(x, &c[..self.n_numbers])));
            }
            of_levels.iter().for_each(|column| column.add(start, &mut found, m));
            for ((row, costs), found) in rows().zip(costs.chunks_mut(k)).zip(found.chunks(m)) {
                let weight = self.weight(row);
                labels.iter().zip(found).for_each(|(&l, x)| costs[l] = weight * x);
            }
        });
    }
}

/// The sum of what the entries of two points are apart by `of(a - b)`; four sums side by side.
#[inline(always)]
pub(super) fn sum_over(a: &[f64], b: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let ((a4, a), (b4, b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut lanes = [0.0; 4];
    for (a, b) in a4.iter().zip(b4) {
        for i in 0..4 {
            lanes[i] += of(a[i] - b[i]);
        }
    }
    let rest: f64 = a.iter().zip(b).map(|(a, b)| of(a - b)).sum();
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest
}
