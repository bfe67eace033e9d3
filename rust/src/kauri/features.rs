//! The features of the rows: those of numbers as they are, in all columns or in stored cells alone, those of levels by
//! code.
//!
//! A row has one feature for each level of a column. With unit u and means m these are t_v = u e_v - m for level v, and 0
//! where the cell is missing: the levels' coordinates, gaps filled with their means, about these means. A row has one
//! *slot* per column of levels, the place of its level among the entries of sums; each column has one more slot, for
//! missing cells, whose feature is always 0. Held is the code, the place among the column's slots.
//!
//! Rows are added to *counts*, which have the weight of each slot; `RowFeatures::finish` makes sums of features of them.
//! Cost: a row is added in O(columns), whatever the number of levels. Memory: 1 byte per row and column of levels.

use super::kernel::{Kernel, Weights, add_row, dot, norm};
use super::level_pairs::{LevelPairs, MOST_ROWS};
use crate::memory;
use crate::parallel;
use crate::rows::{CsrRows, Rows};
use crate::table::MAX_LEVELS;

/// Rows of a block of codes that one task writes.
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
    /// The means by code, 0 of missing cells and of codes that no cell has.
    padded_means: [f64; MAX_LEVELS + 1],
    /// Squared length of the means.
    mean_norm: f64,
}

/// The weight of the rows of a level, as it is added up.
trait Count: Copy + Default + PartialEq {
    fn plus(self, weight: f64) -> Self;
    fn as_weight(self) -> f64;
}

/// Of rows without weights.
impl Count for u32 {
    fn plus(self, _: f64) -> Self {
        self + 1
    }

    fn as_weight(self) -> f64 {
        f64::from(self)
    }
}

impl Count for f64 {
    fn plus(self, weight: f64) -> Self {
        self + weight
    }

    fn as_weight(self) -> f64 {
        self
    }
}

/// The features of numbers.
#[derive(Debug, Clone, Copy)]
enum Numbers<'a> {
    /// n x `n_numbers`, row-major.
    Dense(&'a [f64]),
    /// Of the same shape; cells that are not stored are 0.
    Sparse(&'a CsrRows<'a>),
}

/// The features of all rows.
#[derive(Debug)]
pub struct RowFeatures<'a> {
    numbers: Numbers<'a>,
    n_numbers: usize,
    blocks: Vec<Block<'a>>,
    /// n x blocks, row-major.
    codes: Vec<u8>,
    /// k(i, i) of a level alone, by slot.
    own: Vec<f64>,
    /// Mean coordinate by slot.
    means: Vec<f64>,
    /// Of columns of levels without missing cells.
    pairs: Option<LevelPairs>,
}

impl<'a> RowFeatures<'a> {
    /// Returns the features of a kernel, none with a Gram matrix, and those of levels.
    pub(super) fn new(
        rows: Rows<'_, '_>,
        kernel: Kernel<'a>,
        levels: &'a [LevelFeatures<'a>],
    ) -> Self {
        let (numbers, n_numbers) = match kernel {
            Kernel::Features { z, rank } => (Numbers::Dense(z), rank),
            Kernel::Sparse(z) => (Numbers::Sparse(z), z.n_columns()),
            Kernel::Gram { .. } => (Numbers::Dense(&[]), 0),
        };
        let mut blocks = Vec::with_capacity(levels.len());
        let (mut own, mut means) = (vec![0.0; n_numbers], vec![0.0; n_numbers]);
        for level in levels {
            let mean_norm = norm(level.means);
            let mut padded_means = [0.0; MAX_LEVELS + 1];
            padded_means[..level.means.len()].copy_from_slice(level.means);
            blocks.push(Block {
                first: own.len(),
                unit: level.unit,
                means: level.means,
                padded_means,
                mean_norm,
            });
            let norm_of = |&mean: &f64| {
                let others = (mean_norm - mean * mean).max(0.0);
                others + (level.unit - mean) * (level.unit - mean)
            };
            own.extend(level.means.iter().map(norm_of).chain([0.0]));
            means.extend(level.means.iter().chain(&[0.0]));
        }
        let mut codes: Vec<u8> =
            memory::zeros(rows.n_samples() * levels.len(), "the levels of the rows");
        if let Rows::Table(table) = rows
            && !levels.is_empty()
        {
            let tasks = codes.chunks_mut(ROWS_PER_TASK * levels.len()).enumerate();
            parallel::map(tasks, |(task, codes)| {
                let mut cells = vec![0.0; codes.len() / levels.len()];
                for (b, level) in levels.iter().enumerate() {
                    table.column(level.column).read(task * ROWS_PER_TASK, &mut cells);
                    let missing = level.means.len() as u8; // at most the code of missing cells
                    for (code, cell) in codes[b..].iter_mut().step_by(levels.len()).zip(&cells) {
                        *code = if cell.is_nan() { missing } else { *cell as u8 };
                    }
                }
            });
        }
        let mut features =
            RowFeatures { numbers, n_numbers, blocks, codes, own, means, pairs: None };
        features.pairs = features.level_pairs();
        features
    }

    /// Returns the pairs of levels; none without levels, or if a cell is missing.
    fn level_pairs(&self) -> Option<LevelPairs> {
        let width = self.blocks.len();
        let has_gap = |row: &[u8]| {
            let mut cells = self.blocks.iter().zip(row);
            cells.any(|(block, &code)| usize::from(code) == block.means.len())
        };
        if width == 0 || self.codes.chunks(width).any(has_gap) {
            return None;
        }
        let of_blocks =
            |of: fn(&Block<'_>) -> f64| self.blocks.iter().map(of).collect::<Vec<f64>>();
        let unit_means = self.blocks.iter().map(|block| block.padded_means.map(|m| block.unit * m));
        let unit_means: Vec<[f64; MAX_LEVELS + 1]> = unit_means.collect();
        let of_row = |row: usize| {
            let codes = &self.codes[row * width..][..width];
            unit_means.iter().zip(codes).map(|(means, &code)| means[usize::from(code)]).sum()
        };
        let n = self.codes.len() / width;
        let mean_sums = parallel::collect(n, ROWS_PER_TASK, "the levels of the rows", of_row);
        let (units, norms) = (of_blocks(|block| block.unit), of_blocks(|block| block.mean_norm));
        Some(LevelPairs::new(&units, &norms, mean_sums))
    }

    /// Returns the pairs of levels, the codes of all rows, and the number of columns of levels, if so many rows have their
    /// stock by pairs.
    pub(super) fn pairs_of(
        &self,
        n_rows: usize,
        weights: Weights<'_>,
    ) -> Option<(&LevelPairs, &[u8], usize)> {
        let pairs = self.pairs.as_ref().filter(|_| weights.0.is_none() && n_rows <= MOST_ROWS)?;
        Some((pairs, &self.codes, self.blocks.len()))
    }

    /// Returns the number of features of numbers.
    pub(super) fn n_numbers(&self) -> usize {
        self.n_numbers
    }

    /// Returns the number of entries of sums.
    pub(super) fn rank(&self) -> usize {
        self.own.len()
    }

    /// Returns a row's features of numbers; none if these are sparse.
    #[inline(always)]
    pub(super) fn numbers(&self, row: u32) -> &'a [f64] {
        match self.numbers {
            Numbers::Dense(z) => &z[row as usize * self.n_numbers..][..self.n_numbers],
            Numbers::Sparse(_) => &[],
        }
    }

    /// Returns a row's slots.
    #[inline(always)]
    fn slots(&self, row: u32) -> impl Iterator<Item = usize> {
        let codes = &self.codes[row as usize * self.blocks.len()..][..self.blocks.len()];
        self.blocks.iter().zip(codes).map(|(block, &code)| block.first + usize::from(code))
    }

    /// Returns what levels add to k(i, i) of a row.
    pub(super) fn own(&self, row: u32) -> f64 {
        self.at_slots(row, &self.own)
    }

    /// Returns the sum of the entries at a row's slots.
    #[inline(always)]
    fn at_slots(&self, row: u32, values: &[f64]) -> f64 {
        self.slots(row).map(|slot| values[slot]).sum()
    }

    /// Adds a row to counts.
    #[inline(always)]
    pub(super) fn add(&self, counts: &mut [f64], row: u32, weight: f64) {
        match self.numbers {
            Numbers::Dense(_) => add_row(counts, self.numbers(row), weight),
            Numbers::Sparse(z) => {
                let (columns, cells) = z.row(row as usize);
                for (&column, &x) in columns.iter().zip(cells) {
                    counts[column as usize] += weight * x;
                }
            }
        }
        for slot in self.slots(row) {
            counts[slot] += weight;
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
        let of_levels = self.product_with_levels(sum);
        move |row| match self.numbers {
            Numbers::Dense(_) => dot(&numbers, self.numbers(row)) + of_levels(row),
            Numbers::Sparse(z) => {
                let (columns, cells) = z.row(row as usize);
                columns.iter().zip(cells).map(|(&column, x)| numbers[column as usize] * x).sum()
            }
        }
    }

    /// As [`RowFeatures::product`], of the features of levels alone.
    pub(super) fn product_with_levels<'f>(
        &'f self,
        sum: &[f64],
    ) -> impl Fn(u32) -> f64 + Sync + use<'f, 'a> {
        let mut of_slots = sum.to_vec();
        for Block { first, unit, means, .. } in &self.blocks {
            let of_levels = &mut of_slots[*first..][..means.len()];
            let of_means = dot(of_levels, means);
            of_levels.iter_mut().for_each(|x| *x = unit * *x - of_means);
        }
        move |row| self.at_slots(row, &of_slots)
    }

    /// Whether rows have fewer entries of levels than there are, so that [`RowFeatures::stock_of_few`] is the faster way.
    pub(super) fn have_few_levels(&self, rows: &[u32]) -> bool {
        rows.len() * self.blocks.len() < self.rank() - self.n_numbers
    }

    /// Returns what levels make of the stock S(L, L) of some rows.
    ///
    /// O(rows x columns of levels), where few rows have few of the levels: entries of the levels that no row has are
    /// minus the mean, and add up to what those present leave of the mean's squared length. Where little is left, they
    /// are added up one by one, which keeps the digits.
    pub(super) fn stock_of_few(&self, rows: &[u32], weights: Weights<'_>) -> f64 {
        match weights.0 {
            None => self.stock_by_counts::<u32>(rows, weights),
            Some(_) => self.stock_by_counts::<f64>(rows, weights),
        }
    }

    /// [`RowFeatures::stock_of_few`], the rows of a level counted in numbers of the type `C`.
    fn stock_by_counts<C: Count>(&self, rows: &[u32], weights: Weights<'_>) -> f64 {
        let all: f64 = rows.iter().map(|&row| weights.of(row)).sum();
        let mut counts = [C::default(); MAX_LEVELS + 1];
        let mut present = [0; 2 * (MAX_LEVELS + 1)];
        let mut stock = 0.0;
        for (b, block) in self.blocks.iter().enumerate() {
            let (means, missing) = (&block.padded_means, block.means.len());
            let code_of = |row: u32| self.codes[row as usize * self.blocks.len() + b];
            let mut n_present = 0;
            for &row in rows {
                let code = code_of(row);
                let count = &mut counts[usize::from(code)];
                // Without a branch, which would be guessed wrong for many a row.
                present[n_present % (2 * (MAX_LEVELS + 1))] = code;
                n_present += usize::from(*count == C::default());
                *count = count.plus(weights.of(row));
            }
            let mut total = all;
            if counts[missing] != C::default() {
                counts[missing] = C::default();
                let seen = rows.iter().filter(|&&row| usize::from(code_of(row)) != missing);
                total = seen.map(|&row| weights.of(row)).sum();
            }
            // The slot of missing cells, if it is present, adds 0 to both sums.
            let mut square_of = |code: u8| {
                let code = usize::from(code);
                let count = std::mem::take(&mut counts[code]).as_weight();
                let sum = block.unit * count - total * means[code];
                [sum * sum, means[code] * means[code]]
            };
            let (fours, rest) = present[..n_present].as_chunks::<4>();
            let mut lanes = [[0.0; 2]; 4];
            for four in fours {
                for (lane, &code) in lanes.iter_mut().zip(four) {
                    let squares = square_of(code);
                    *lane = [lane[0] + squares[0], lane[1] + squares[1]];
                }
            }
            let rest = rest.iter().map(|&code| square_of(code));
            let [of_present, norm_of_present] = lanes
                .into_iter()
                .chain(rest)
                .fold([0.0; 2], |sums, squares| [sums[0] + squares[0], sums[1] + squares[1]]);
            let absent = if norm_of_present <= 0.5 * block.mean_norm {
                block.mean_norm - norm_of_present
            } else {
                let mut is_present = [false; MAX_LEVELS + 1];
                for &code in &present[..n_present] {
                    is_present[usize::from(code)] = true;
                }
                let of_absent = block.means.iter().zip(&is_present).filter(|(_, here)| !**here);
                of_absent.map(|(mean, _)| mean * mean).sum()
            };
            stock += of_present + total * total * absent;
        }
        stock
    }

    /// Returns the product of two sums of features, of levels alone.
    pub(super) fn product_of_levels(&self, a: &[f64], b: &[f64]) -> f64 {
        dot(&a[self.n_numbers..], &b[self.n_numbers..])
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
            for ((block, slot), [n, mean_sum]) in
                self.blocks.iter().zip(self.slots(row)).zip(&mut seen)
            {
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

#[cfg(test)]
mod tests {
    use ndarray::Array1;

    use super::*;
    use crate::table::{Column, MISSING_LEVEL, Table};

    /// Numbers in [0, 1), always the same ones.
    fn numbers() -> impl FnMut() -> f64 {
        let mut state = 7_u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn stocks_of_few_rows_are_those_of_their_sums() {
        let mut next = numbers();
        let (n, sizes) = (60, [40, 3, 200]);
        let codes: Vec<Array1<u8>> = sizes
            .iter()
            .map(|&size| {
                Array1::from_shape_simple_fn(n, || {
                    let code = (next() * size as f64 * 1.1) as u8;
                    if usize::from(code) < size { code } else { MISSING_LEVEL }
                })
            })
            .collect();
        let columns = codes.iter().zip(sizes);
        let columns = columns.map(|(codes, size)| Column::levels(codes.view(), size).unwrap());
        let table = Table::new(columns.collect()).unwrap();
        let means: Vec<Vec<f64>> =
            sizes.iter().map(|&size| (0..size).map(|_| next()).collect()).collect();
        let levels: Vec<LevelFeatures<'_>> = means
            .iter()
            .enumerate()
            .map(|(column, means)| LevelFeatures { column, unit: 0.5 + column as f64, means })
            .collect();
        let z: Vec<f64> = (0..n).map(|_| next()).collect();
        let features =
            RowFeatures::new(Rows::Table(&table), Kernel::Features { z: &z, rank: 1 }, &levels);
        let given: Vec<f64> = (0..n).map(|_| next() + 0.1).collect();
        for weights in [Weights(None), Weights(Some(&given))] {
            let sum_of = |rows: &[u32]| {
                let mut sum = features.nothing();
                rows.iter().for_each(|&row| features.add(&mut sum, row, weights.of(row)));
                features.finish(&mut sum);
                sum
            };
            let all: Vec<u32> = (0..n as u32).collect();
            let other = sum_of(&all[20..33]);
            let product = features.product_with_levels(&other);
            for n_rows in [0, 1, 2, 7, 30, 60] {
                let rows = &all[..n_rows];
                let own = features.stock_of_few(rows, weights);
                let sum = sum_of(rows);
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * (a.abs() + b.abs()).max(1.0);
                assert!(near(own, norm(&sum[1..])), "{own} {}", norm(&sum[1..]));
                let with_other: f64 = rows.iter().map(|&row| weights.of(row) * product(row)).sum();
                let expected = features.product_of_levels(&sum, &other);
                let scale = norm(&sum).sqrt() * norm(&other).sqrt();
                assert!(
                    (with_other - expected).abs() <= 1e-12 * scale.max(1.0),
                    "{with_other} {expected}"
                );
            }
        }
    }
}
