//! A node's rows grouped along one column: by bin, by value, or by bin with some bins opened to values.
//!
//! Sums are of the node's own rows, never differences of other sums. Pieces of the work have sizes that do not depend on the number of threads and are added in order, so the
//! sums are the same bits for any number of them.
//!
//! | groups | cost for m rows, b bins |
//! |---|---|
//! | [`Grouping::by_bin`] | O(m), memory O(b width) per piece |
//! | [`Grouping::by_value`] | O(m log m) |
//! | [`Grouping::exact`] | O(m), memory O(groups width) per piece: the groups between the cuts that may be the best, with exact sums |
//! | [`Grouping::open_bins`] | O(m) and O(r log r) for the r rows in opened bins, memory O(r width) |

use crate::criterion::{BinnedRows, OwnGroups, RowSums};
use crate::exact::{self, ExactSums};
use crate::index::Index;
use crate::memory;
use crate::parallel;
use crate::table::Table;

/// Rows of one column that one thread takes in one go, at least.
const MIN_BLOCK: usize = 4096;
/// Most sums of one column that are held at a time.
const MAX_BLOCKS: usize = 32;
/// Sorted cells of one column that one thread groups in one go.
const SORTED_BLOCK: usize = 2048;
/// Blocks of sorted cells whose sums are held beside those of the whole column.
const BLOCKS_AT_A_TIME: usize = 64;

/// Sorted pairs whose values one thread counts in one go, at least.
const MIN_COUNTED: usize = 1 << 14;

/// Number of distinct values of sorted pairs (value, row).
fn n_values(pairs: &[(f64, u32)]) -> usize {
    let changes = |pairs: &[(f64, u32)]| pairs.windows(2).filter(|w| w[0].0 != w[1].0).count();
    let share = parallel::even_share(pairs.len(), MIN_COUNTED);
    // Neighbouring runs share a pair.
    let starts = (0..pairs.len()).step_by(share);
    let of_runs =
        parallel::map(starts, |start| changes(&pairs[start..pairs.len().min(start + share + 1)]));
    usize::from(!pairs.is_empty()) + of_runs.iter().sum::<usize>()
}

/// Number of rows in opened bins.
pub(crate) fn n_inside(bins: &OwnGroups, opened: &[bool]) -> usize {
    let inside = bins.count.iter().zip(opened).filter(|(_, opened)| **opened);
    inside.map(|(&count, _)| count as usize).sum()
}

/// Most bytes that [`Grouping::open_bins`] takes for each row in opened bins: a sorted cell and the sums of a value.
pub(crate) fn bytes_per_row(width: usize) -> usize {
    size_of::<(f64, u32)>() + OwnGroups::bytes_per_group(width)
}

/// Groups rows of a table along its columns.
pub(crate) struct Grouping<'a, 't, R> {
    /// Holds the values.
    pub(crate) table: &'a Table<'t>,
    /// The table's bins.
    pub(crate) index: &'a Index,
    /// What a row adds up to.
    pub(crate) row_sums: &'a R,
}

impl<R: RowSums> Grouping<'_, '_, R> {
    /// One group per bin of the column, empty bins included. Their ends are those of all rows of the table.
    pub(crate) fn by_bin(&self, rows: &[u32], feature: usize) -> OwnGroups {
        let binned = self.index.column(feature);
        let (n_bins, width) = (binned.n_bins(), self.row_sums.width());
        // One column alone keeps all threads busy, and its sums have the same bits for any number of them.
        let blocks = rows.chunks(MIN_BLOCK.max(rows.len().div_ceil(MAX_BLOCKS)));
        let blocks = parallel::map(blocks, |rows| {
            let (mut count, mut sums) = (vec![0; n_bins], vec![0.0; n_bins * width]);
            let rows = BinnedRows { rows, codes: &binned.codes, skip: None };
            self.row_sums.fill(rows, &mut count, &mut sums);
            self.row_sums.settle(&mut count, &mut sums);
            (count, sums)
        });
        let (mut count, mut sums) = (vec![0; n_bins], vec![0.0; n_bins * width]);
        for (block_count, block_sums) in blocks {
            count.iter_mut().zip(block_count).for_each(|(a, b)| *a += b);
            sums.iter_mut().zip(block_sums).for_each(|(a, b)| *a += b);
        }
        let (low, high) = (binned.low.clone(), binned.high.clone());
        OwnGroups { count, sums, low, high, form: binned.form, exact: None }
    }

    /// Groups with exact sums: those of `groups`, of the same rows, joined where no cut that counts lies between them.
    /// Such cuts have a group in `ends` on either side. Levels are never joined. `total`: exact sums of the rows, these
    /// first, if they are known: then the largest group is what the others lack of them.
    pub(crate) fn exact(
        &self,
        rows: &[u32],
        feature: usize,
        groups: &OwnGroups,
        ends: &[bool],
        total: Option<&ExactSums>,
    ) -> OwnGroups {
        let (binned, width) = (self.index.column(feature), self.row_sums.width());
        let mut joined = OwnGroups { form: groups.form, ..OwnGroups::default() };
        let view = groups.view(feature);
        let (values, _) = view.split_missing(width);
        let mut last_is_end = true;
        for group in values.filled() {
            let (count, high) = (groups.count[group], groups.high[group]);
            match joined.high.last_mut() {
                Some(last) if !(groups.form.is_levels || last_is_end && ends[group]) => {
                    *last = high;
                    joined.add_to_last(count, &[]);
                }
                _ => joined.push(count, groups.low[group], high, &[]),
            }
            last_is_end = ends[group];
        }
        let n_values = joined.high.len();
        if groups.form.has_missing {
            joined.push(groups.count[values.len()], f64::NAN, f64::NAN, &[]);
        }
        // The group of a cell is that of its bin, if all cells of the bin have one.
        let group_of = |x: f64| joined.high[..n_values].partition_point(|&high| high < x);
        let mut of_bin = binned.per_bin(|low, high| {
            Some(group_of(low)).filter(|&group| group == group_of(high) && group < n_values)
        });
        if let Some(missing) = binned.missing() {
            of_bin[usize::from(missing)] = Some(n_values);
        }
        let column = self.table.column(feature);
        let n_groups = joined.count.len();
        let largest = total.and_then(|_| (0..n_groups).max_by_key(|&group| joined.count[group]));
        // The sums before the first group are none.
        let mut exact = exact::sum_rows(rows, 1 + n_groups, width, |row, sums| {
            let of_bin = of_bin[usize::from(binned.codes[row as usize])];
            let group = of_bin.unwrap_or_else(|| group_of(column.get(row as usize)));
            if Some(group) != largest {
                self.row_sums.add_exactly(row, sums, 1 + group);
            }
        });
        if let (Some(largest), Some(total)) = (largest, total) {
            exact.fill_rest(1 + largest, width, total);
        }
        joined.sums = (width..(1 + n_groups) * width).map(|place| exact.rounded(place)).collect();
        exact.accumulate(width);
        joined.exact = Some(exact);
        joined
    }

    /// The bins of the column, those in `opened` replaced by their single values, empty ones left out. `bins`: as
    /// [`Grouping::by_bin`] returned them.
    pub(crate) fn open_bins(
        &self,
        rows: &[u32],
        feature: usize,
        bins: OwnGroups,
        opened: &[bool],
    ) -> OwnGroups {
        let pairs = self.sorted_inside(rows, feature, &bins, opened);
        let width = self.row_sums.width();
        let mut merged = OwnGroups { form: bins.form, ..OwnGroups::default() };
        merged.reserve(bins.count.len() + n_values(&pairs), width);
        let mut bin = 0;
        // Appends the bins up to a value that stay closed.
        let mut close_up_to = |value: f64, merged: &mut OwnGroups| {
            while bin < opened.len() && bins.high[bin] < value {
                if !opened[bin] && bins.count[bin] > 0 {
                    let sums = &bins.sums[bin * width..][..width];
                    merged.push(bins.count[bin], bins.low[bin], bins.high[bin], sums);
                }
                bin += 1;
            }
        };
        self.group_in_order(&pairs, |values| {
            for (i, &value) in values.low.iter().enumerate() {
                close_up_to(value, &mut merged);
                merged.push(values.count[i], value, value, &values.sums[i * width..][..width]);
            }
        });
        close_up_to(f64::INFINITY, &mut merged);
        if bins.form.has_missing {
            let last = bins.count.len() - 1;
            merged.push(bins.count[last], f64::NAN, f64::NAN, &bins.sums[last * width..]);
        }
        merged
    }

    /// The cells in opened bins with their rows, ascending.
    fn sorted_inside(
        &self,
        rows: &[u32],
        feature: usize,
        bins: &OwnGroups,
        opened: &[bool],
    ) -> Vec<(f64, u32)> {
        let codes = &self.index.column(feature).codes;
        let is_inside = |row: &u32| opened[usize::from(codes[*row as usize])];
        let blocks = parallel::map_some(rows.chunks(MIN_BLOCK), 4, |rows| {
            let inside = || rows.iter().copied().filter(is_inside);
            let mut block = Vec::with_capacity(inside().count());
            block.extend(inside());
            block
        });
        let mut inside = memory::reserved(n_inside(bins, opened), "the rows of opened bins");
        blocks.into_iter().for_each(|block| inside.extend(block));
        self.table.column(feature).sort(&inside)
    }

    /// One group per distinct value, and one for missing cells if the column has any. O(m log m) for m rows.
    pub(crate) fn by_value(&self, rows: &[u32], feature: usize) -> OwnGroups {
        let binned = self.index.column(feature);
        if binned.hides_gaps {
            return self.by_bin(rows, feature); // one value, which missing cells count as
        }
        let Some(code) = binned.missing() else {
            return OwnGroups { form: binned.form, ..self.by_observed_value(rows, feature) };
        };
        let is_missing = |row: &&u32| binned.codes[**row as usize] == code;
        let (missing, rows): (Vec<u32>, Vec<u32>) = rows.iter().partition(is_missing);
        let mut groups = OwnGroups { form: binned.form, ..self.by_observed_value(&rows, feature) };
        let mut sums = vec![0.0; self.row_sums.width()];
        missing.iter().for_each(|&row| self.row_sums.add(row, &mut sums));
        groups.push(missing.len() as u32, f64::NAN, f64::NAN, &sums);
        groups
    }

    /// [`Grouping::by_value`] for rows of which no cell is missing.
    fn by_observed_value(&self, rows: &[u32], feature: usize) -> OwnGroups {
        let pairs = self.table.column(feature).sort(rows);
        if pairs.len() <= SORTED_BLOCK {
            return self.group_sorted(&pairs);
        }
        let mut groups = OwnGroups::default();
        groups.reserve(n_values(&pairs), self.row_sums.width());
        self.group_in_order(&pairs, |values| groups.append(values));
        groups
    }

    /// Calls `visit` with the groups of the values of sorted pairs (value, row), block by block.
    fn group_in_order(&self, pairs: &[(f64, u32)], mut visit: impl FnMut(OwnGroups)) {
        // Cut between values, so that one thread sums all rows of a value.
        let mut rest = pairs;
        let mut blocks = Vec::new();
        while !rest.is_empty() {
            let last = rest[SORTED_BLOCK.min(rest.len()) - 1].0;
            let (block, others) = rest.split_at(rest.partition_point(|pair| pair.0 <= last));
            blocks.push(block);
            rest = others;
        }
        // Few blocks at a time: their sums take as much memory as those that `visit` collects.
        for blocks in blocks.chunks(BLOCKS_AT_A_TIME) {
            let groups = parallel::map(blocks, |block| self.group_sorted(block));
            groups.into_iter().for_each(&mut visit);
        }
    }

    /// One group per distinct value of sorted pairs (value, row).
    fn group_sorted(&self, pairs: &[(f64, u32)]) -> OwnGroups {
        let width = self.row_sums.width();
        let mut groups = OwnGroups::default();
        groups.reserve(n_values(pairs), width);
        for equal in pairs.chunk_by(|a, b| a.0 == b.0) {
            let x = equal[0].0;
            groups.push(equal.len() as u32, x, x, &[]);
            let start = groups.sums.len();
            groups.sums.resize(start + width, 0.0);
            for &(_, row) in equal {
                self.row_sums.add(row, &mut groups.sums[start..]);
            }
        }
        groups
    }
}
