//! How ranges of cells are opened: to values, or to smaller bins.

use super::bins::{from_ordered_bits, ordered_bits};
use super::question::Open;

/// Smaller bins that a range is opened into, about.
pub(super) const SMALLER_BINS: usize = 256;
/// The same of a range with so many rows that smaller ones would have too many to be opened to values.
const MANY_SMALLER_BINS: usize = 2048;
/// A node's ranges all have so many up to this number of ranges: with fewer bins some would take a round more.
const FEW_RANGES: usize = 128;
/// And if the node has more rows: what is sent of them is a small part of their number, and rounds take long.
const MANY_ROWS: u64 = 1 << 22;
/// Fewest smaller bins of one of many ranges.
const LEAST_SMALLER_BINS: usize = 32;
/// As many bins with the most rows that are always opened to values have the rows that are in one round: a round less
/// for large nodes, as many bytes as a few columns of a node.
const MORE_VALUES: u64 = 6;

/// A range of cells to be opened.
pub(super) struct Range {
    pub n_rows: u64,
    /// Smaller bins that it has if it is not opened to values, about.
    pub n_bins: usize,
    pub open: Open,
}

/// Numbers of smaller bins of the ranges of a node of `n_rows` rows, by how much better than the best cut known theirs may
/// be.
///
/// Hundreds of ranges hide a better cut where the cuts between bins are worth little. Most of these may be better by a
/// small part of what the best of them may, and some bins are enough to tell that they are not.
pub(super) fn bins_by_promise(promises: &[f64], n_rows: u64) -> Vec<usize> {
    if promises.len() <= FEW_RANGES || n_rows > MANY_ROWS {
        return vec![SMALLER_BINS; promises.len()];
    }
    let most = promises.iter().copied().fold(0.0, f64::max);
    let n_bins = |promise: &f64| (SMALLER_BINS as f64 * promise / most) as usize;
    promises.iter().map(|p| n_bins(p).clamp(LEAST_SMALLER_BINS, SMALLER_BINS)).collect()
}

/// Opens ranges of cells: those with few rows to values, the others to smaller bins.
pub(super) fn open_ranges(mut ranges: Vec<Range>, most_values: u64) -> Vec<Open> {
    let mut by_rows: Vec<usize> = (0..ranges.len()).collect();
    by_rows.sort_by_key(|&i| ranges[i].n_rows);
    let mut left_over = MORE_VALUES * most_values;
    for i in by_rows {
        let Range { n_rows, n_bins, open } = &mut ranges[i];
        let (few, n_bins) = if *n_bins < SMALLER_BINS {
            // Of many ranges one with as many rows as it would have smaller bins takes no more bytes as values.
            (most_values.min(*n_bins as u64), *n_bins)
        } else {
            // Each bin then has half as many rows as are opened to values: a round less for the largest nodes.
            let enough = (n_rows.div_ceil(most_values.max(1)) as usize).saturating_mul(2);
            (most_values, enough.clamp(SMALLER_BINS, MANY_SMALLER_BINS))
        };
        if *n_rows > few && *n_rows > left_over {
            open.ends = Some(smaller_ends(open.low, open.high, n_bins));
        }
        left_over = left_over.saturating_sub(*n_rows);
    }
    ranges.into_iter().map(|range| range.open).collect()
}

/// Ends of about so many smaller bins between two cells: half of them at even distances, half at even numbers of doubles,
/// so that some rounds lead from any range to its values.
fn smaller_ends(low: f64, high: f64, n_bins: usize) -> Vec<f64> {
    let n = n_bins / 2;
    let (first, last) = (ordered_bits(low), ordered_bits(high));
    let mut ends: Vec<f64> = (1..n)
        .map(|i| {
            let share = i as f64 / n as f64;
            low * (1.0 - share) + high * share
        })
        .chain((0..n as u64).map(|i| {
            let step = u128::from(last - first) * u128::from(2 * i + 1) / (2 * n as u128);
            from_ordered_bits(first + step as u64)
        }))
        .map(|end| end + 0.0)
        .filter(|end| low <= *end && *end < high)
        .collect();
    ends.sort_unstable_by(f64::total_cmp);
    ends.dedup();
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(n_rows: u64, i: usize, n_bins: usize) -> Range {
        let (low, high) = (i as f64, i as f64 + 0.5);
        Range { n_rows, n_bins, open: Open::to_values(0, 0, low, high) }
    }

    #[test]
    fn ranges_have_smaller_bins_by_what_they_may_hide() {
        assert_eq!(bins_by_promise(&[1e-9, 1.0], 9_000), [256, 256]);
        assert_eq!(bins_by_promise(&[4.0; 300], 9_000), [256; 300]);
        assert_eq!(bins_by_promise(&[0.0; 300], 9_000), [32; 300]); // ties
        let mut many = vec![0.01; 1_000];
        many[7] = 1.0;
        many[8] = 0.5;
        assert_eq!(bins_by_promise(&many, 1 << 23), [256; 1_000]);
        let n_bins = bins_by_promise(&many, 9_000);
        assert_eq!((n_bins[6], n_bins[7], n_bins[8]), (32, 256, 128));
    }

    #[test]
    fn ranges_with_few_rows_are_opened_to_values() {
        for (n_bins, most_values, least, most) in
            [(256, 50, 200, 256), (256, 5, 1_500, 2_000), (256, 1, 1_800, 2_048), (32, 1, 16, 32)]
        {
            let ranges = (0..9).map(|i| range(5_000, i, n_bins)).collect();
            let opens = open_ranges(ranges, most_values);
            assert_eq!(opens.len(), 9);
            for open in &opens {
                let ends = open.ends.as_ref().map_or(0, Vec::len);
                assert!((least..=most).contains(&ends), "{ends}");
            }
        }
        let few = open_ranges(vec![range(5_000, 0, 256), range(512, 1, 256)], 512);
        assert!(few[0].ends.is_some() && few[1].ends.is_none());
    }
}
