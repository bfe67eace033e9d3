//! The features of the rows: those of numbers as they are, those of levels by code.
//!
//! A row has one feature for each level of a column. With unit u and means m these are t_v = u e_v - m for level v, and 0
//! where the cell is missing: the levels' coordinates, gaps filled with their means, about these means. A row is held as
//! one *slot* per column of levels, the place of its level among the entries of sums; each column has one more slot, for
//! missing cells, whose feature is always 0.
//!
//! Rows are added to *counts*, which have the weight of each slot; `RowFeatures::finish` makes sums of features of them.
//! Cost: a row is added in O(columns), whatever the number of levels. Memory: 4 bytes per row and column of levels.

use super::kernel::{Kernel, Weights, add_row, dot, norm};
use crate::memory;
use crate::parallel;
use crate::table::Table;

/// Rows of a block of slots that one task writes.
const ROWS_PER_TASK: usize = 4096;

/// The features of a column of levels.
#[derive(Debug, Clone, Copy)]
pub struct LevelFeatures<'a> {
    /// The column.
    pub column: usize,
    /// The coordinate of a row in its own level.
    pub unit: f64,
    /// The mean coordinate by level.
    pub means: &'a [f64],
}

/// A column of levels among the features.
#[derive(Debug)]
struct Block<'a> {
    /// Place of its first slot.
    first: usize,
    unit: f64,
    means: &'a [f64],
    /// Squared length of the means.
    mean_norm: f64,
}

/// The features of all rows.
#[derive(Debug)]
pub struct RowFeatures<'a> {
    /// n x `n_numbers`, row-major.
    numbers: &'a [f64],
    n_numbers: usize,
    blocks: Vec<Block<'a>>,
    /// n x blocks, row-major.
    slots: Vec<u32>,
    /// k(i, i) of a level alone, by slot.
    own: Vec<f64>,
    /// Mean coordinate by slot.
    means: Vec<f64>,
}

impl<'a> RowFeatures<'a> {
    /// Returns the features of a kernel, none with a Gram matrix, and those of levels.
    pub(super) fn new(
        table: &Table<'_>,
        kernel: Kernel<'a>,
        levels: &'a [LevelFeatures<'a>],
    ) -> Self {
        let (numbers, n_numbers) = match kernel {
            Kernel::Features { z, rank } => (z, rank),
            Kernel::Gram { .. } => (&[][..], 0),
        };
        let mut blocks = Vec::with_capacity(levels.len());
        let (mut own, mut means) = (vec![0.0; n_numbers], vec![0.0; n_numbers]);
        for level in levels {
            let mean_norm = norm(level.means);
            blocks.push(Block {
                first: own.len(),
                unit: level.unit,
                means: level.means,
                mean_norm,
            });
            let norm_of = |&mean: &f64| {
                let others = (mean_norm - mean * mean).max(0.0);
                others + (level.unit - mean) * (level.unit - mean)
            };
            own.extend(level.means.iter().map(norm_of).chain([0.0]));
            means.extend(level.means.iter().chain(&[0.0]));
        }
        let mut slots: Vec<u32> =
            memory::zeros(table.n_samples() * levels.len(), "the levels of the rows");
        if !levels.is_empty() {
            let tasks = slots.chunks_mut(ROWS_PER_TASK * levels.len()).enumerate();
            parallel::map(tasks, |(task, slots)| {
                let mut cells = vec![0.0; slots.len() / levels.len()];
                for (b, (level, block)) in levels.iter().zip(&blocks).enumerate() {
                    table.column(level.column).read(task * ROWS_PER_TASK, &mut cells);
                    for (slot, cell) in slots[b..].iter_mut().step_by(levels.len()).zip(&cells) {
                        let missing = level.means.len();
                        let code = if cell.is_nan() { missing } else { *cell as usize };
                        *slot = (block.first + code) as u32;
                    }
                }
            });
        }
        RowFeatures { numbers, n_numbers, blocks, slots, own, means }
    }

    /// Returns the number of features of numbers.
    pub(super) fn n_numbers(&self) -> usize {
        self.n_numbers
    }

    /// Returns the number of entries of sums.
    pub(super) fn rank(&self) -> usize {
        self.own.len()
    }

    /// Returns a row's features of numbers.
    #[inline(always)]
    pub(super) fn numbers(&self, row: u32) -> &'a [f64] {
        &self.numbers[row as usize * self.n_numbers..][..self.n_numbers]
    }

    /// Returns a row's slots.
    #[inline(always)]
    fn slots(&self, row: u32) -> &[u32] {
        &self.slots[row as usize * self.blocks.len()..][..self.blocks.len()]
    }

    /// Returns what levels add to k(i, i) of a row.
    pub(super) fn own(&self, row: u32) -> f64 {
        self.at_slots(row, &self.own)
    }

    /// Returns the sum of the entries at a row's slots.
    #[inline(always)]
    fn at_slots(&self, row: u32, values: &[f64]) -> f64 {
        self.slots(row).iter().map(|&slot| values[slot as usize]).sum()
    }

    /// Adds a row to counts.
    #[inline(always)]
    pub(super) fn add(&self, counts: &mut [f64], row: u32, weight: f64) {
        add_row(counts, self.numbers(row), weight);
        for &slot in self.slots(row) {
            counts[slot as usize] += weight;
        }
    }

    /// Makes the sum of the features of rows of their counts.
    pub(super) fn finish(&self, counts: &mut [f64]) {
        for Block { first, unit, means, .. } in &self.blocks {
            let (counts, missing) = counts[*first..][..=means.len()].split_at_mut(means.len());
            let weight: f64 = counts.iter().sum();
            counts.iter_mut().zip(*means).for_each(|(x, mean)| *x = unit * *x - weight * mean);
            missing[0] = 0.0;
        }
    }

    /// Returns the counts of no rows.
    pub(super) fn nothing(&self) -> Vec<f64> {
        vec![0.0; self.rank()]
    }

    /// Returns the product of a row with a sum of features, as a function of the row.
    pub(super) fn product<'f>(&'f self, sum: &[f64]) -> impl Fn(u32) -> f64 + Sync + use<'f, 'a> {
        let numbers = sum[..self.n_numbers].to_vec();
        let mut of_slots = sum.to_vec();
        for Block { first, unit, means, .. } in &self.blocks {
            let of_levels = &mut of_slots[*first..][..means.len()];
            let of_means = dot(of_levels, means);
            of_levels.iter_mut().for_each(|x| *x = unit * *x - of_means);
        }
        move |row| dot(&numbers, self.numbers(row)) + self.at_slots(row, &of_slots)
    }

    /// Whether columns of levels have features.
    pub(super) fn has_levels(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Returns what each of some rows adds to the stock of the rows before it, and of those after it, by the features of
    /// levels: w_i^2 k(i, i) and twice its stock with them. `total`: the sum of the features of all these rows.
    pub(super) fn stock_steps(
        &self,
        rows: &[u32],
        total: &[f64],
        weights: Weights<'_>,
    ) -> [Vec<f64>; 2] {
        let mut total = total.to_vec();
        total[..self.n_numbers].fill(0.0);
        let with_all = self.product(&total);
        let mut counts = self.nothing();
        // By block: the weight of the rows with a level, and the sum of the means at their levels.
        let mut seen = vec![[0.0; 2]; self.blocks.len()];
        let mut steps = [0, 1].map(|_| memory::reserved(rows.len(), "the cuts of a column"));
        for &row in rows {
            let weight = weights.of(row);
            let mut with_before = 0.0;
            for ((block, &slot), [n, mean_sum]) in
                self.blocks.iter().zip(self.slots(row)).zip(&mut seen)
            {
                let slot = slot as usize;
                if slot == block.first + block.means.len() {
                    continue;
                }
                let (count, mean) = (&mut counts[slot], self.means[slot]);
                with_before += block.unit * (block.unit * *count - *n * mean - *mean_sum)
                    + *n * block.mean_norm;
                *count += weight;
                *n += weight;
                *mean_sum += weight * mean;
            }
            let before = weight * (2.0 * with_before + weight * self.own(row));
            steps[0].push(before);
            steps[1].push(2.0 * weight * with_all(row) - before);
        }
        steps
    }
}
