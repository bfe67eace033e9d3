//! How ranges of cells are opened: to values, or to smaller bins.

use super::bins::{from_ordered_bits, ordered_bits};
use super::question::Open;

/// Smaller bins that a bin is opened into, about.
const SMALLER_BINS: usize = 256;
const LEAST_SMALLER_BINS: usize = 16;
/// Most smaller bins of one round where costs are those about medians, about: hundreds of ranges may then hide a better
/// cut, and of very many each has fewer smaller bins. With fewer other fits would take more rounds.
pub(super) const MOST_BINS_OF_MEDIANS: usize = 32 * SMALLER_BINS;
/// As many bins with the most rows that are always opened to values have the rows that are in one round: a round less
/// for large nodes, as many bytes as a few columns of a node.
const MORE_VALUES: u64 = 6;

/// Opens ranges of cells with so many rows: those with few rows to values, the others to smaller bins, about `most_bins`
/// of them if there is a limit.
pub(super) fn open_ranges(
    mut ranges: Vec<(u64, Open)>,
    most_values: u64,
    most_bins: Option<usize>,
) -> Vec<Open> {
    opened_by_rows(&mut ranges, most_values, most_bins);
    ranges.into_iter().map(|(_, open)| open).collect()
}

/// Chooses which ranges of so many rows are opened to values, and gives the others smaller bins.
pub(super) fn opened_by_rows(
    ranges: &mut [(u64, Open)],
    most_values: u64,
    most_bins: Option<usize>,
) {
    let n_bins = most_bins.map_or(SMALLER_BINS, |most| most / ranges.len().max(1));
    let n_bins = n_bins.clamp(LEAST_SMALLER_BINS, SMALLER_BINS);
    // A range with as many rows as it would have smaller bins takes no more bytes as values.
    let few = most_values.min(n_bins as u64);
    let mut by_rows: Vec<usize> = (0..ranges.len()).collect();
    by_rows.sort_by_key(|&i| ranges[i].0);
    let mut left_over = MORE_VALUES * most_values;
    for i in by_rows {
        let (n, open) = &mut ranges[i];
        if *n > few && *n > left_over {
            open.ends = Some(smaller_ends(open.low, open.high, n_bins));
        }
        left_over = left_over.saturating_sub(*n);
    }
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

    #[test]
    fn many_ranges_have_fewer_smaller_bins_each() {
        let range = |i: usize| {
            let (low, high) = (i as f64, i as f64 + 0.5);
            (5_000, Open { node: 0, feature: 0, low, high, ends: None })
        };
        for (n, most) in [(1, SMALLER_BINS), (30, SMALLER_BINS), (200, 40), (5_000, 16)] {
            let opens = open_ranges((0..n).map(range).collect(), 1, Some(MOST_BINS_OF_MEDIANS));
            assert_eq!(opens.len(), n);
            for open in &opens {
                let ends = open.ends.as_ref().map_or(0, Vec::len);
                assert!(ends > 8 && ends <= most, "{n}: {ends}");
            }
        }
        // Those with few rows are opened to values.
        let few = open_ranges(vec![(16, range(0).1), (5_000, range(1).1)], 2_048, None);
        assert!(few[0].ends.is_none());
    }
}
