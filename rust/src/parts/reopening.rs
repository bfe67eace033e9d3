//! Ranges that are opened with the fill of a node, because its parent has opened them.
//!
//! Where a cut parts few rows from many, as it does in clusters that the columns tell nothing of, the best cuts of the
//! many hide where those of all rows have hidden. Asked about at once, such a node takes one question, and not three.

use std::collections::BTreeMap;

use super::answer::Bins;
use super::question::Open;

/// A child is like its parent if it has at least so many times the rows of its sibling.
const TIMES_SIBLING: u64 = 16;

/// Whether one of two siblings with so many rows is like its parent.
pub(super) fn is_like_parent(n_left: u64, n_right: u64) -> bool {
    n_left.max(n_right) / TIMES_SIBLING >= n_left.min(n_right)
}

/// Takes note of ranges that were opened, unless they are inside others.
pub(super) fn note<'o>(ranges: &mut Vec<Open>, opened: impl IntoIterator<Item = &'o Open>) {
    for open in opened {
        let is_inside =
            |range: &Open| range.feature == open.feature && range.holds(open.low, open.high);
        if !ranges.iter().any(is_inside) {
            ranges.push(Open { ends: None, ..open.clone() });
        }
    }
}

/// The ranges that a node has opened, as its child opens them: into the bins that they have come to. `opened`: by column
/// the node's bins.
pub(super) fn for_child(mut ranges: Vec<Open>, opened: &BTreeMap<usize, Bins>) -> Vec<Open> {
    ranges.sort_by(|a, b| a.feature.cmp(&b.feature).then(a.low.total_cmp(&b.low)));
    for range in &mut ranges {
        let Some(bins) = opened.get(&range.feature) else { continue };
        let ends = bins.low.iter().zip(&bins.high);
        let own = ends.filter(|&(&low, &high)| range.holds(low, high));
        let (low, mut high): (Vec<f64>, Vec<f64>) = own.unzip();
        if low != high {
            high.pop();
            range.ends = Some(high);
        }
    }
    ranges
}

/// Whether the smaller bins of a range are of use in the place of the bin that it is of: one that hides a cut, with no
/// labels that were not asked for. `hiding`: [`super::cuts::Cuts::hiding`].
pub(super) fn is_of_use(open: &Open, bins: &Bins, hiding: &[(usize, f64, Vec<usize>)]) -> bool {
    hiding.iter().any(|(bin, _, labels)| {
        let has_labels = match labels.as_slice() {
            _ if open.labels.is_empty() => true,
            [] => false,
            labels => labels.iter().all(|label| open.labels.contains(label)),
        };
        has_labels && open.holds(bins.low[*bin], bins.high[*bin])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(feature: usize, low: f64, high: f64, labels: &[usize]) -> Open {
        Open { labels: labels.to_vec(), ..Open::to_values(3, feature, low, high) }
    }

    fn bins(ends: &[(f64, f64)]) -> Bins {
        let (low, high) = ends.iter().copied().unzip();
        Bins { low, high, count: vec![1; ends.len()], ..Bins::empty(0, false, 2) }
    }

    #[test]
    fn a_child_with_few_rows_less_is_like_its_parent() {
        assert!(is_like_parent(1, 16) && is_like_parent(160, 10) && is_like_parent(0, 0));
        assert!(!is_like_parent(1, 15) && !is_like_parent(159, 10));
    }

    #[test]
    fn a_child_opens_ranges_into_the_bins_that_they_have_come_to() {
        let mut ranges = vec![];
        note(
            &mut ranges,
            &[open(1, 5.0, 9.0, &[0]), open(0, 1.0, 2.0, &[]), open(0, 4.0, 8.0, &[1])],
        );
        note(&mut ranges, &[open(0, 5.0, 6.0, &[1]), open(1, 0.0, 1.0, &[])]); // the first is inside
        assert_eq!(ranges.len(), 4);
        let of_0 = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.5), (4.0, 5.0), (6.0, 6.0), (7.0, 8.0)];
        let of_1 = [(0.0, 0.0), (1.0, 1.0), (5.0, 9.0)];
        let opened = BTreeMap::from([(0, bins(&of_0)), (1, bins(&of_1))]);
        let ends =
            |low, high, ends: Vec<f64>| Open { ends: Some(ends), ..open(0, low, high, &[1]) };
        let expected = [
            open(0, 1.0, 2.0, &[]), // all values are known
            ends(4.0, 8.0, vec![5.0, 6.0]),
            open(1, 0.0, 1.0, &[]),
            Open { ends: Some(vec![]), ..open(1, 5.0, 9.0, &[0]) },
        ];
        assert_eq!(for_child(ranges, &opened), expected);
    }

    #[test]
    fn ranges_are_of_use_with_all_labels_of_the_cuts_that_they_hide() {
        let own = bins(&[(0.0, 1.0), (2.0, 3.0)]);
        let hiding = |labels: &[usize]| vec![(1, 0.5, labels.to_vec())];
        assert!(is_of_use(&open(0, 2.0, 4.0, &[]), &own, &hiding(&[])));
        assert!(is_of_use(&open(0, 2.0, 4.0, &[0, 2]), &own, &hiding(&[2])));
        assert!(!is_of_use(&open(0, 2.0, 4.0, &[0, 2]), &own, &hiding(&[1])));
        assert!(!is_of_use(&open(0, 2.0, 4.0, &[0, 2]), &own, &hiding(&[])));
        assert!(!is_of_use(&open(0, 0.0, 1.5, &[]), &own, &hiding(&[]))); // hides nothing
    }
}
