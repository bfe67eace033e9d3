//! Columns as bins of one byte per cell.
//!
//! A column becomes at most 256 bins: one bin per value where it has at most 256 distinct values, else bins at
//! quantiles of a sample. A node's histogram ([`crate::histogram`]) then takes one pass over its rows, O(rows x
//! columns) sequential work and no sorting. Bins only select the columns and values that the search compares exactly,
//! so where their edges lie changes the speed and never the result.
//!
//! Building takes one pass over the table, two where the sample of a column misleads. Three kinds of columns:
//!
//! - bytes and booleans: the cell is its own bin, then unused bins are closed up;
//! - columns whose sample has at most 256 values: every value is its own bin. Values that the sample lacks are
//!   collected on the way; if they are few, the bins are renumbered to hold them, if they are many, the column is
//!   binned again from a better sample;
//! - other columns: even shares of the sample (`bin_ends`).
//!
//! Missing cells are one more bin, the last, and leave 255 to the values; whether a column has any is seen in the
//! sample, else on the way, and it is then binned again. Columns of levels are binned by their codes. Constant columns
//! are never cut: their missing cells have the bin of the value.
//!
//! Memory: n d bytes.

use ndarray::ArrayView1;

use crate::binner::{Binner, bin_ends};
use crate::criterion::ColumnForm;
use crate::memory;
use crate::parallel;
use crate::table::{Column, MISSING_LEVEL, TILE, Table, all_finite};

/// Most bins of a column.
pub const MAX_BINS: usize = 256;

/// Rows sampled to place the edges of a column with many values.
const SAMPLE: usize = 4096;

/// A bin is the column's common one if this share of a sample lies in it: such cells are not summed but recovered
/// as the node's total minus the rest.
const COMMON_SHARE: f64 = 0.6;

/// One column as bins.
#[derive(Debug, Clone, PartialEq)]
pub struct BinnedColumn {
    /// The bin of each row.
    pub codes: Vec<u8>,
    /// Smallest value in each bin (over all rows); NaN for missing cells.
    pub low: Vec<f64>,
    /// Largest value in each bin (over all rows); NaN for missing cells.
    pub high: Vec<f64>,
    /// What the bins hold.
    pub form: ColumnForm,
    /// The bin of more than about half of the rows, if there is one.
    pub common: Option<u8>,
    /// Whether missing cells are in the bin of a value, the only one of the column.
    pub hides_gaps: bool,
}

impl BinnedColumn {
    /// `low` and `high`: the ends of each bin of values, ascending. With `form.has_missing` the code [`GAP`] stands for
    /// missing cells, which get the bin after these.
    fn new(mut codes: Vec<u8>, mut low: Vec<f64>, mut high: Vec<f64>, form: ColumnForm) -> Self {
        if form.has_missing {
            let missing = low.len() as u8;
            codes.iter_mut().for_each(|code| *code = if *code == GAP { missing } else { *code });
            low.push(f64::NAN);
            high.push(f64::NAN);
        }
        let mut column = BinnedColumn { codes, low, high, form, common: None, hides_gaps: false };
        column.common = column.common_bin();
        column
    }

    /// A column of levels: a bin per code.
    fn of_levels(codes: &ArrayView1<'_, u8>, n_levels: usize) -> Self {
        let codes: Vec<u8> = memory::collected(codes.iter().copied(), "the bins of a column");
        let form = ColumnForm { is_levels: true, has_missing: codes.contains(&MISSING_LEVEL) };
        let values: Vec<f64> = (0..n_levels).map(|code| code as f64).collect();
        BinnedColumn::new(codes, values.clone(), values, form)
    }

    /// The same column, its missing cells in the bin of the first observed cell.
    fn hiding_gaps(mut self) -> Self {
        let missing = self.missing();
        if let Some(value) = self.codes.iter().copied().find(|&code| Some(code) != missing) {
            self.codes.iter_mut().filter(|code| Some(**code) == missing).for_each(|x| *x = value);
            self.low.pop();
            self.high.pop();
            self.form.has_missing = false;
            self.common = Some(value);
            self.hides_gaps = true;
        }
        self
    }

    /// The bin of missing cells, the last; none if no cell is missing.
    pub fn missing(&self) -> Option<u8> {
        self.form.has_missing.then(|| (self.n_bins() - 1) as u8)
    }

    /// Number of bins, that of missing cells included.
    pub fn n_bins(&self) -> usize {
        self.low.len()
    }

    /// Largest minus smallest value, halved so that it cannot overflow.
    pub fn half_range(&self) -> f64 {
        let n_values = self.n_bins() - usize::from(self.form.has_missing);
        match (self.low[..n_values].first(), self.high[..n_values].last()) {
            (Some(low), Some(high)) => high / 2.0 - low / 2.0,
            _ => 0.0,
        }
    }

    /// `of` the smallest and the largest value of each bin.
    pub fn per_bin<T>(&self, of: impl Fn(f64, f64) -> T) -> Vec<T> {
        self.low.iter().zip(&self.high).map(|(&low, &high)| of(low, high)).collect()
    }

    /// The bin that holds more than [`COMMON_SHARE`] of 1024 rows at even distances.
    fn common_bin(&self) -> Option<u8> {
        let n = self.codes.len();
        let m = n.min(1024);
        let mut counts = [0usize; MAX_BINS];
        for i in 0..m {
            counts[usize::from(self.codes[i * n / m])] += 1;
        }
        let (bin, &count) = counts.iter().enumerate().max_by_key(|&(_, count)| *count)?;
        (count as f64 > COMMON_SHARE * m as f64).then_some(bin as u8)
    }
}

/// The code of missing cells until the column is finished: such columns have at most 255 bins of values.
const GAP: u8 = u8::MAX;

/// How a column is binned.
#[derive(Debug, Clone)]
struct Plan {
    /// Inclusive upper ends of the bins, values of the column; 0 alone where all cells are missing.
    ends: Vec<f64>,
    /// Whether every value of the sample is an end. Then cells that are none are collected in `Builder::unseen`.
    exact: bool,
    /// Whether a cell may be missing.
    has_gaps: bool,
}

impl Plan {
    /// From a sorted sample without missing cells.
    fn new(sample: &[f64], has_gaps: bool, max_bins: usize) -> Self {
        let sample = if sample.is_empty() { &[0.0] } else { sample };
        let (ends, exact) = bin_ends(sample, max_bins.min(MAX_BINS - usize::from(has_gaps)));
        Plan { ends, exact, has_gaps }
    }
}

/// Bins a column, cells in row order.
struct Builder {
    binner: Binner,
    /// As in [`Plan`].
    ends: Vec<f64>,
    /// As in [`Plan`].
    exact: bool,
    /// Whether the bins leave room for missing cells.
    expects_gaps: bool,
    /// Whether a cell was missing.
    has_gaps: bool,
    /// Rows and values of these cells, up to one more than `max_unseen`.
    unseen: Vec<(usize, f64)>,
    max_unseen: usize,
    /// Bins of the cells so far.
    codes: Vec<u8>,
    /// Smallest value of each bin so far.
    low: [f64; MAX_BINS],
    /// Largest value so far.
    highest: f64,
}

impl Builder {
    fn new(Plan { ends, exact, has_gaps }: Plan, n_samples: usize) -> Self {
        Builder {
            binner: Binner::new(&ends),
            ends,
            exact,
            expects_gaps: has_gaps,
            has_gaps: false,
            unseen: vec![],
            max_unseen: MAX_BINS + n_samples / 64,
            codes: memory::reserved(n_samples, "the bins of a column"),
            low: [f64::INFINITY; MAX_BINS],
            highest: f64::NEG_INFINITY,
        }
    }

    /// Bins the next cells, at most [`TILE`].
    fn visit(&mut self, cells: &[f64]) {
        if all_finite(cells) || !cells.iter().any(|x| x.is_nan()) {
            return self.visit_values(cells);
        }
        // A value of the column takes the place of missing cells: it changes no bin. Without branches: nobody can guess
        // where the gaps are.
        let mut filled = [self.ends[0]; TILE];
        let start = self.codes.len();
        for (filled, &x) in filled.iter_mut().zip(cells) {
            *filled = if x.is_nan() { *filled } else { x };
        }
        self.visit_values(&filled[..cells.len()]);
        self.has_gaps = true;
        for (code, x) in self.codes[start..].iter_mut().zip(cells) {
            *code = if x.is_nan() { GAP } else { *code };
        }
    }

    /// Bins the next cells, none of them missing.
    fn visit_values(&mut self, cells: &[f64]) {
        let start = self.codes.len();
        self.codes.resize(start + cells.len(), 0);
        let codes = &mut self.codes[start..];
        self.binner.assign(cells, codes);
        if self.exact {
            for (i, (&x, &code)) in cells.iter().zip(codes.iter()).enumerate() {
                if x != self.ends[usize::from(code)] && self.unseen.len() <= self.max_unseen {
                    memory::push(&mut self.unseen, (start + i, x), "the values of a column");
                }
            }
        } else {
            for (&x, &code) in cells.iter().zip(codes.iter()) {
                let low = &mut self.low[usize::from(code)];
                if x < *low {
                    *low = x;
                }
            }
            self.highest = largest(cells, self.highest);
        }
    }

    /// Renumbers the codes from `ends` to `values`, which hold the unseen cells too: cheaper than a second pass over
    /// the cells.
    fn recode(&mut self, values: &[f64]) {
        let rank = |x: f64| values.partition_point(|&value| value < x) as u8;
        let mut ranks = [GAP; MAX_BINS];
        ranks.iter_mut().zip(&self.ends).for_each(|(ranked, &end)| *ranked = rank(end));
        self.codes.iter_mut().for_each(|code| *code = ranks[usize::from(*code)]);
        for &(row, x) in &self.unseen {
            self.codes[row] = rank(x);
        }
    }

    /// The binned column; or, if the sample misled, a better plan to bin the column by.
    fn finish(
        mut self,
        sample: impl Fn() -> Vec<f64>,
        max_bins: usize,
    ) -> Result<BinnedColumn, Plan> {
        if self.has_gaps && !self.expects_gaps {
            return Err(Plan::new(&sample(), true, max_bins));
        }
        let max_bins = max_bins.min(MAX_BINS - usize::from(self.expects_gaps));
        let form = ColumnForm { is_levels: false, has_missing: self.has_gaps };
        if self.exact && !self.unseen.is_empty() {
            let n_values = self.ends.len() + self.unseen.len();
            let mut values: Vec<f64> = memory::reserved(n_values, "the values of a column");
            values.extend(&self.ends);
            values.extend(self.unseen.iter().map(|&(_, x)| x));
            values.sort_unstable_by(f64::total_cmp);
            values.dedup();
            if self.unseen.len() > self.max_unseen {
                // The sample lacked too many values: add those seen since, so that there are enough to choose from.
                let mut sample = [sample(), values].concat();
                sample.sort_unstable_by(f64::total_cmp);
                return Err(Plan::new(&sample, self.expects_gaps, max_bins));
            }
            if values.len() <= max_bins {
                self.recode(&values);
                return Ok(BinnedColumn::new(self.codes, values.clone(), values, form));
            }
            // Too many values for a bin each: those of the sample end the bins.
            self.low[..self.ends.len()].copy_from_slice(&self.ends);
            self.highest = values[values.len() - 1];
            for &(row, x) in &self.unseen {
                let low = &mut self.low[usize::from(self.codes[row])];
                *low = low.min(x);
            }
        } else if self.exact {
            return Ok(BinnedColumn::new(self.codes, self.ends.clone(), self.ends, form));
        }
        if let Some(last) = self.ends.last_mut() {
            *last = self.highest;
        }
        Ok(BinnedColumn::new(self.codes, self.low[..self.ends.len()].to_vec(), self.ends, form))
    }
}

/// The largest of numbers, none of them NaN, and of `first`; some of them side by side, without waiting for each other.
fn largest(numbers: &[f64], first: f64) -> f64 {
    const LANES: usize = 8;
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let (chunks, rest) = numbers.as_chunks::<LANES>();
    let mut most = [first; LANES];
    for chunk in chunks {
        most.iter_mut().zip(chunk).for_each(|(most, &x)| *most = larger(*most, x));
    }
    most.iter().chain(rest).copied().fold(first, larger)
}

/// Bins a column of bytes: the value itself is the bin, then unused bins are closed up.
struct ByteBuilder {
    /// Added to values so that none is negative.
    offset: i32,
    codes: Vec<u8>,
    present: [bool; MAX_BINS],
}

impl ByteBuilder {
    fn visit(&mut self, cells: &[f64]) {
        // Adding 2^52 leaves the integer in the low bits.
        let base = 4_503_599_627_370_496.0 + f64::from(self.offset);
        let start = self.codes.len();
        self.codes.extend(cells.iter().map(|x| (x + base).to_bits() as u8));
        for &code in &self.codes[start..] {
            self.present[usize::from(code)] = true;
        }
    }

    fn finish(mut self) -> BinnedColumn {
        let mut rank = [0u8; MAX_BINS];
        let mut values = Vec::new();
        for (key, _) in self.present.iter().enumerate().filter(|(_, present)| **present) {
            rank[key] = values.len() as u8;
            values.push(f64::from(key as i32 - self.offset));
        }
        if values.len() < MAX_BINS {
            self.codes.iter_mut().for_each(|code| *code = rank[usize::from(*code)]);
        }
        BinnedColumn::new(self.codes, values.clone(), values, ColumnForm::default())
    }
}

/// The binned table.
#[derive(Debug, Clone)]
pub struct Index {
    columns: Vec<BinnedColumn>,
}

impl Index {
    /// Bins every column of a table of n rows and d columns: O(n d) time, n d bytes. `max_bins`, clamped to
    /// `[2, 256]`, changes the speed of searches, never their results; byte columns are always binned exactly.
    pub fn new(table: &Table<'_>, max_bins: usize) -> Self {
        let max_bins = max_bins.clamp(2, MAX_BINS);
        let n = table.n_samples();
        let mut columns: Vec<Option<BinnedColumn>> = vec![None; table.n_features()];
        let (mut bytes, mut others) = (vec![], vec![]);
        for (feature, binned) in columns.iter_mut().enumerate() {
            match table.column(feature) {
                Column::Levels { codes, n_levels } => {
                    *binned = Some(BinnedColumn::of_levels(codes, *n_levels));
                }
                Column::U8(_) | Column::I8(_) | Column::Bool(_) => bytes.push(feature),
                _ => others.push(feature),
            }
        }
        let built = table.select(&bytes).scan_columns(
            |i| {
                let offset = if matches!(table.column(bytes[i]), Column::I8(_)) { 128 } else { 0 };
                let codes = memory::reserved(n, "the bins of a column");
                ByteBuilder { offset, codes, present: [false; MAX_BINS] }
            },
            |builder, _, _, cells| builder.visit(cells),
        );
        let built = parallel::map(built, ByteBuilder::finish);
        for (&feature, column) in bytes.iter().zip(built) {
            columns[feature] = Some(column);
        }
        let mut todo: Vec<(usize, Plan)> = parallel::map(others, |feature| {
            let (sample, has_gaps) = sorted_sample(table.column(feature));
            (feature, Plan::new(&sample, has_gaps, max_bins))
        });
        while !todo.is_empty() && !table.stopped() {
            let features: Vec<usize> = todo.iter().map(|(feature, _)| *feature).collect();
            let built = table.select(&features).scan_columns(
                |i| Builder::new(todo[i].1.clone(), n),
                |builder, _, _, cells| builder.visit(cells),
            );
            todo.clear();
            let finished = parallel::map(features.into_iter().zip(built), |(feature, builder)| {
                (feature, builder.finish(|| sorted_sample(table.column(feature)).0, max_bins))
            });
            for (feature, column) in finished {
                match column {
                    Ok(column) => columns[feature] = Some(column),
                    Err(plan) => todo.push((feature, plan)),
                }
            }
        }
        let finished = columns.into_iter().flatten().enumerate().map(|(feature, binned)| {
            let is_constant = binned.form.has_missing && table.column(feature).is_constant();
            if is_constant { binned.hiding_gaps() } else { binned }
        });
        Index { columns: finished.collect() }
    }

    /// A binned column.
    pub fn column(&self, feature: usize) -> &BinnedColumn {
        &self.columns[feature]
    }

    /// Number of columns.
    pub fn n_features(&self) -> usize {
        self.columns.len()
    }
}

/// Up to [`SAMPLE`] cells at even distances, sorted, without missing ones; and whether there were such. The first cells
/// of the column that are not missing if all of these are.
fn sorted_sample(column: &Column<'_>) -> (Vec<f64>, bool) {
    let n = column.len();
    let m = n.min(SAMPLE);
    let mut sample: Vec<f64> = (0..m).map(|i| column.get(i * n / m)).collect();
    sample.retain(|x| !x.is_nan());
    let has_gaps = sample.len() < m;
    if sample.is_empty() {
        let observed = (0..n).map(|row| column.get(row)).filter(|x| !x.is_nan());
        sample.extend(observed.take(SAMPLE));
    }
    sample.sort_unstable_by(f64::total_cmp);
    (sample, has_gaps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2};

    /// Every cell lies in its bin, bins are ordered and disjoint, and their ends are values of the column.
    fn check(column: &BinnedColumn, values: &[f64]) {
        assert_eq!(column.codes.len(), values.len());
        for (&x, &code) in values.iter().zip(&column.codes) {
            assert_eq!(x.is_nan(), Some(code) == column.missing());
        }
        let ends = column.low.iter().zip(&column.high).enumerate();
        for (bin, (&low, &high)) in ends.filter(|(_, (low, _))| !low.is_nan()) {
            let inside: Vec<f64> = values
                .iter()
                .zip(&column.codes)
                .filter(|(_, c)| usize::from(**c) == bin)
                .map(|(x, _)| *x)
                .collect();
            assert_eq!(inside.iter().copied().fold(f64::INFINITY, f64::min), low);
            assert_eq!(inside.iter().copied().fold(f64::NEG_INFINITY, f64::max), high);
            assert!(bin == 0 || column.high[bin - 1] < low);
        }
    }

    fn binned(values: &[f64]) -> BinnedColumn {
        let column = Array1::from(values.to_vec());
        Index::new(&Table::new(vec![column.view().into()]).unwrap(), MAX_BINS).column(0).clone()
    }

    fn noise(i: usize) -> f64 {
        (i.wrapping_mul(2654435761) % 1_000_003) as f64 / 1_000_003.0
    }

    #[test]
    fn bins_of_every_shape_of_column_are_right() {
        let n = 30_000;
        let shapes: Vec<(&str, Vec<f64>)> = vec![
            ("uniform", (0..n).map(noise).collect()),
            ("heavy tail", (0..n).map(|i| (1.0 / (noise(i) + 1e-9)).powi(3)).collect()),
            ("mostly zero", (0..n).map(|i| (noise(i) - 0.9).max(0.0)).collect()),
            ("outlier", (0..n).map(|i| if i == 77 { 1e8 } else { noise(i) }).collect()),
            ("few values", (0..n).map(|i| (i % 256) as f64).collect()),
            ("rare values", (0..n).map(|i| if i % 997 == 3 { i as f64 } else { 0.5 }).collect()),
            (
                "rare and many",
                (0..n).map(|i| if i % 7 == 3 { 0.5 } else { (i % 300) as f64 }).collect(),
            ),
            (
                "more rare values than bins",
                (0..n).map(|i| if i % 101 == 5 { i as f64 } else { (i % 200) as f64 }).collect(),
            ),
            ("constant", vec![3.25; n]),
            ("huge range", (0..n).map(|i| (noise(i) - 0.5) * f64::MAX * 1.9).collect()),
            ("far", (0..n).map(|i| 1e15 + i as f64).collect()),
            ("signed zeros", (0..n).map(|i| if i % 2 == 0 { -0.0 } else { 0.0 }).collect()),
        ];
        for (name, values) in shapes {
            let column = binned(&values);
            check(&column, &values);
            let mut distinct = values.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            if distinct.len() <= MAX_BINS {
                assert_eq!(column.n_bins(), distinct.len(), "{name} is binned exactly");
            } else {
                assert!(
                    column.n_bins() > 200 || name == "mostly zero" || name == "rare values",
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn columns_whose_sample_misleads_are_binned_all_the_same() {
        // The sample takes every eighth row.
        let n = 8 * SAMPLE;
        for n_values in [3, 256, 257, 5000] {
            let hidden = |i: usize| (i % n_values) as f64 - 7.5;
            let values: Vec<f64> =
                (0..n).map(|i| if i % 8 == 0 { 0.5 } else { hidden(i) }).collect();
            let column = binned(&values);
            check(&column, &values);
            assert!(column.n_bins() >= 200.min(n_values), "{n_values}");
        }
    }

    #[test]
    fn missing_cells_are_the_last_bin() {
        let n = 8 * SAMPLE;
        for n_values in [2, 3, 255, 256, 5000] {
            // Gaps in the sample, and only where the sample does not look; both with few values in the sample.
            for (every, first) in [(10, 0), (n, 8005), (8, 0)] {
                let is_gap = |i: usize| i % every == first;
                let cell = |i: usize| if is_gap(i) { f64::NAN } else { (i / 3 % n_values) as f64 };
                let values: Vec<f64> = (0..n).map(cell).collect();
                let column = binned(&values);
                check(&column, &values);
                assert!(column.n_bins() <= MAX_BINS && column.n_bins() > 100.min(n_values));
                assert_eq!(column.half_range(), (n_values - 1) as f64 / 2.0);
            }
        }
        let column = binned(&[-f64::NAN; 9]);
        assert_eq!((column.codes, column.form.has_missing), (vec![1; 9], true));
    }

    #[test]
    fn missing_cells_of_a_constant_column_are_in_its_bin() {
        for (every, first) in [(10, 0), (8 * SAMPLE, 8005)] {
            let cell = |i: usize| if i % every == first { f64::NAN } else { 3.5 };
            let values: Vec<f64> = (0..8 * SAMPLE).map(cell).collect();
            let codes = values.iter().map(|x| if x.is_nan() { MISSING_LEVEL } else { 2 });
            let codes = Array1::from_iter(codes);
            let levels = Column::levels(codes.view(), 4).unwrap();
            let of_levels = Index::new(&Table::new(vec![levels]).unwrap(), MAX_BINS);
            for (column, bin) in [(&binned(&values), 0), (of_levels.column(0), 2)] {
                assert_eq!((column.missing(), column.common), (None, Some(bin)));
                assert!(column.codes.iter().all(|&code| code == bin));
            }
        }
    }

    #[test]
    fn levels_are_their_own_bins() {
        for n_levels in [2, 4, 255] {
            let codes = Array1::from_shape_fn(600, |i| (i % n_levels) as u8);
            for has_missing in [false, true] {
                let mut codes = codes.clone();
                codes[17] = if has_missing { MISSING_LEVEL } else { 0 };
                let column = Column::levels(codes.view(), n_levels).unwrap();
                let index = Index::new(&Table::new(vec![column.clone()]).unwrap(), 2);
                let binned = index.column(0);
                assert_eq!(binned.form, ColumnForm { is_levels: true, has_missing });
                assert_eq!(binned.n_bins(), n_levels + usize::from(has_missing));
                let values: Vec<f64> = (0..600).map(|row| column.get(row)).collect();
                check(binned, &values);
            }
        }
    }

    #[test]
    fn types_and_memory_orders_agree() {
        let x =
            Array2::from_shape_fn((5000, 9), |(i, j)| ((i * (j + 3) * 7919) % 241) as f64 - 120.0);
        let reference = Index::new(&Table::from_matrix(x.view()).unwrap(), MAX_BINS);
        let (bytes, ints) = (x.mapv(|v| v as i8), x.mapv(|v| v as i32));
        let fortran = x.t().as_standard_layout().to_owned().reversed_axes();
        for other in [
            Index::new(&Table::from_matrix(bytes.view()).unwrap(), MAX_BINS),
            Index::new(&Table::from_matrix(ints.view()).unwrap(), MAX_BINS),
            Index::new(&Table::from_matrix(fortran.view()).unwrap(), MAX_BINS),
        ] {
            assert!(other.columns == reference.columns);
        }
    }

    #[test]
    fn the_common_bin_is_found() {
        assert_eq!(
            binned(&(0..5000).map(|i| f64::from(i % 4 == 0)).collect::<Vec<_>>()).common,
            Some(0)
        );
        assert_eq!(binned(&(0..5000).map(|i| f64::from(i % 2)).collect::<Vec<_>>()).common, None);
    }
}
