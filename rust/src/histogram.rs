//! Sums per bin: what a node's search reads in place of its rows.
//!
//! A [`Histogram`] holds, for some neighbouring columns of an [`Index`], the number of rows in each bin and what they
//! add up to ([`RowSums`]). One pass over the rows fills it: O(rows x columns) sequential work. Three facts make it
//! cheaper still:
//!
//! - histograms of disjoint rows add up ([`Histogram::merge`]): parts of a table may be filled apart;
//! - a child's is its parent's less its sibling's (`Histogram::subtract`), where that loses no digits that count;
//! - a column's most frequent bin (zeros of counts and pixels) need not be summed: it is the total less the rest.
//!
//! Memory: 4 + 8 width bytes per bin.

use std::ops::Range;

use crate::criterion::{BinnedRows, RowSums};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::memory;

/// Rows whose sums are added column after column while they are in cache.
const ROW_TILE: usize = 1024;

/// Number of rows and their sums in every bin of some neighbouring columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The columns.
    features: Range<usize>,
    /// The place of each column's first bin, and of the end.
    starts: Vec<usize>,
    /// Numbers per bin.
    width: usize,
    count: Vec<u32>,
    sums: Vec<f64>,
}

impl Histogram {
    /// No rows: zeros in every bin of `features`, half-open, with `width` sums each.
    pub fn new(index: &Index, features: Range<usize>, width: usize) -> Self {
        let mut starts = vec![0];
        for feature in features.clone() {
            starts.push(starts[starts.len() - 1] + index.column(feature).n_bins());
        }
        let n_bins = starts[starts.len() - 1];
        let count = memory::zeros(n_bins, "a histogram");
        let sums = memory::zeros(n_bins * width, "a histogram");
        Histogram { features, starts, width, count, sums }
    }

    /// The sums of `rows`, numbers of rows of the table that `index` was made of. With `totals`, the sums over all
    /// these rows, a column's common bin is not summed but computed as the rest.
    pub fn of_rows<R: RowSums>(
        index: &Index,
        features: Range<usize>,
        row_sums: &R,
        rows: &[u32],
        totals: Option<&[f64]>,
    ) -> Self {
        let width = row_sums.width();
        let mut histogram = Histogram::new(index, features, width);
        let mut columns = histogram.columns_mut(index, totals.is_some());
        for tile in rows.chunks(ROW_TILE) {
            for column in &mut columns {
                let rows = BinnedRows { rows: tile, codes: column.codes, skip: column.skip };
                row_sums.fill(rows, column.count, column.sums);
            }
        }
        for column in &mut columns {
            row_sums.settle(column.count, column.sums);
            if let Some(totals) = totals {
                column.fill_rest(rows.len(), totals);
            }
        }
        histogram
    }

    /// Every column, ready to be filled; `skip_common`: all bins but the common one.
    fn columns_mut<'a>(&'a mut self, index: &'a Index, skip_common: bool) -> Vec<ColumnSums<'a>> {
        let (mut count, mut sums) = (&mut self.count[..], &mut self.sums[..]);
        let mut columns = Vec::with_capacity(self.features.len());
        for feature in self.features.clone() {
            let binned = index.column(feature);
            let (this_count, this_sums);
            (this_count, count) = count.split_at_mut(binned.n_bins());
            (this_sums, sums) = sums.split_at_mut(binned.n_bins() * self.width);
            columns.push(ColumnSums {
                codes: &binned.codes,
                skip: binned.common.filter(|_| skip_common),
                count: this_count,
                sums: this_sums,
            });
        }
        columns
    }

    /// The columns, half-open.
    pub fn features(&self) -> Range<usize> {
        self.features.clone()
    }

    /// The number of rows in each bin of a column, and their sums: `width` numbers per bin, bin after bin.
    pub fn column(&self, feature: usize) -> (&[u32], &[f64]) {
        let place = feature - self.features.start;
        let bins = self.starts[place]..self.starts[place + 1];
        let sums = bins.start * self.width..bins.end * self.width;
        (&self.count[bins], &self.sums[sums])
    }

    /// Adds the histogram of other rows over the same bins.
    ///
    /// Sums are added bin by bin, so merging parts in a fixed order gives the same bits every time.
    ///
    /// # Errors
    /// [`Error::Value`] if columns, bins or width differ, or if a bin would hold 2^32 rows or more; the histogram is
    /// then unchanged.
    pub fn merge(&mut self, other: &Histogram) -> Result<()> {
        if (&self.features, &self.starts, self.width)
            != (&other.features, &other.starts, other.width)
        {
            return Err(Error::Value("Only histograms of the same bins can be merged.".into()));
        }
        let total = |(a, b): (&u32, &u32)| a.checked_add(*b);
        let count: Option<Vec<u32>> = self.count.iter().zip(&other.count).map(total).collect();
        self.count = count
            .ok_or_else(|| Error::Value("A bin would hold more than 4294967295 rows.".into()))?;
        self.sums.iter_mut().zip(&other.sums).for_each(|(a, b)| *a += b);
        Ok(())
    }

    /// Takes away the histogram of some of the rows, over the same bins. Sums do not fall below 0, and are exactly 0
    /// in bins without rows.
    pub(crate) fn subtract(&mut self, other: &Histogram) {
        self.sums.iter_mut().zip(&other.sums).for_each(|(a, b)| *a = (*a - b).max(0.0));
        self.count.iter_mut().zip(&other.count).for_each(|(a, b)| *a -= b);
        for (&count, sums) in self.count.iter().zip(self.sums.chunks_mut(self.width)) {
            if count == 0 {
                sums.fill(0.0);
            }
        }
    }

    /// Bytes of counts and sums.
    pub fn bytes(&self) -> usize {
        self.count.len() * 4 + self.sums.len() * 8
    }
}

/// One column of a histogram that is filled.
struct ColumnSums<'a> {
    codes: &'a [u8],
    /// The bin that is left to [`ColumnSums::fill_rest`].
    skip: Option<u8>,
    count: &'a mut [u32],
    sums: &'a mut [f64],
}

impl ColumnSums<'_> {
    /// Fills the skipped bin with what the others lack of `n_rows` and `totals`.
    fn fill_rest(&mut self, n_rows: usize, totals: &[f64]) {
        let Some(common) = self.skip.map(usize::from) else { return };
        let n_rest: u32 = self.count.iter().sum();
        let n_common = n_rows as u32 - n_rest;
        if n_common == 0 {
            return;
        }
        let width = totals.len();
        let mut rest = vec![0.0; width];
        for row in self.sums.chunks(width) {
            rest.iter_mut().zip(row).for_each(|(r, x)| *r += x);
        }
        self.count[common] = n_common;
        for ((sum, total), rest) in self.sums[common * width..].iter_mut().zip(totals).zip(&rest) {
            *sum = (total - rest).max(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::criterion::label_counts::OneHot;
    use crate::index::MAX_BINS;
    use crate::table::Table;

    const N: usize = 5000;

    fn index(max_bins: usize) -> Index {
        // The first column is mostly zero: it has a common bin.
        let x = Array2::from_shape_fn((N, 3), |(i, j)| {
            if j == 0 && i % 5 > 0 { 0.0 } else { ((i * (j + 3) * 7919) % 641) as f64 }
        });
        Index::new(&Table::from_matrix(x.view()).unwrap(), max_bins)
    }

    fn labels() -> Vec<u32> {
        (0..N as u32).map(|i| i * 31 % 4).collect()
    }

    #[test]
    fn parts_of_the_rows_merge_to_the_whole() {
        let (index, labels) = (index(64), labels());
        let weights: Vec<f64> = (0..N).map(|i| (1 + i % 8) as f64 / 4.0).collect(); // exact sums
        for weights in [None, Some(&weights[..])] {
            let rows = OneHot::new(&labels, 4, weights).unwrap();
            let all: Vec<u32> = (0..N as u32).collect();
            let of = |rows_of: &[u32]| Histogram::of_rows(&index, 0..3, &rows, rows_of, None);
            let mut merged = Histogram::new(&index, 0..3, 4);
            for part in all.chunks(1234) {
                merged.merge(&of(part)).unwrap();
            }
            assert_eq!(merged, of(&all));
            let (left, right) = all.split_at(1700);
            merged.subtract(&of(left));
            assert_eq!(merged, of(right));
        }
    }

    #[test]
    fn the_common_bin_is_the_rest() {
        let (index, labels) = (index(MAX_BINS), labels());
        assert!(index.column(0).common.is_some());
        let row_sums = OneHot::new(&labels, 4, None).unwrap();
        let rows: Vec<u32> = (0..N as u32).filter(|row| row % 3 > 0).collect();
        let mut totals = vec![0.0; 4];
        rows.iter().for_each(|&row| row_sums.add(row, &mut totals));
        let filled = Histogram::of_rows(&index, 0..3, &row_sums, &rows, None);
        assert_eq!(Histogram::of_rows(&index, 0..3, &row_sums, &rows, Some(&totals)), filled);
        let (count, sums) = filled.column(0);
        assert_eq!(count.iter().sum::<u32>() as usize, rows.len());
        assert_eq!(sums.len(), 4 * count.len());
    }

    /// 0.1 + 0.2 + 0.3 is more than 0.3 + 0.2 + 0.1 by rounding.
    #[test]
    fn rounding_leaves_no_weight_behind_and_none_below_zero() {
        let (index, labels) = (index(16), vec![0; N]);
        let common = index.column(0).common.unwrap();
        let mut weights = vec![1e-18; N];
        let bin = index.column(0).codes[5];
        let in_bin: Vec<u32> = (0..N as u32)
            .filter(|&row| index.column(0).codes[row as usize] == bin)
            .take(4)
            .collect();
        assert!(in_bin.len() == 4 && bin != common);
        for (&row, weight) in in_bin.iter().zip([0.1, 0.2, 0.3]) {
            weights[row as usize] = weight;
        }
        let row_sums = OneHot::new(&labels, 1, Some(&weights)).unwrap();
        let of = |rows: &[u32], totals| Histogram::of_rows(&index, 0..1, &row_sums, rows, totals);
        let (ascending, mut descending) = (in_bin[..3].to_vec(), in_bin[..3].to_vec());
        descending.reverse();
        // All rows are subtracted: nothing is left of the bin.
        let mut histogram = of(&ascending, None);
        histogram.subtract(&of(&descending, None));
        assert!(histogram.column(0).1.iter().all(|sum| *sum == 0.0));
        // One row of next to no weight is left: its bin does not get a negative one.
        let mut histogram = of(&[&descending[..], &in_bin[3..]].concat(), None);
        histogram.subtract(&of(&ascending, None));
        assert_eq!(histogram.column(0).0[usize::from(bin)], 1);
        assert_eq!(histogram.column(0).1[usize::from(bin)], 0.0);
        // Nor does the common bin, computed as the rest.
        let zero =
            (0..N as u32).find(|&row| index.column(0).codes[row as usize] == common).unwrap();
        let histogram = of(&[&ascending[..], &[zero]].concat(), Some(&[0.3 + 0.2 + 0.1]));
        assert_eq!(histogram.column(0).0[usize::from(common)], 1);
        assert_eq!(histogram.column(0).1[usize::from(common)], 0.0);
    }

    #[test]
    fn bins_with_too_many_rows_do_not_merge() {
        let index = index(64);
        let mut histogram = Histogram::new(&index, 0..3, 1);
        let mut other = histogram.clone();
        (histogram.count[0], other.count[0]) = (u32::MAX, 1);
        let before = histogram.clone();
        assert!(histogram.merge(&other).unwrap_err().to_string().contains("4294967295 rows"));
        assert_eq!(histogram, before);
    }

    #[test]
    fn other_bins_do_not_merge() {
        let index = index(64);
        let histogram = |features, width| Histogram::new(&index, features, width);
        let mut whole = histogram(0..3, 4);
        for other in [histogram(0..2, 4), histogram(1..3, 4), histogram(0..3, 3)] {
            assert!(matches!(whole.merge(&other), Err(Error::Value(_))));
        }
        let coarse = self::index(16);
        assert!(whole.merge(&Histogram::new(&coarse, 0..3, 4)).is_err());
    }
}
