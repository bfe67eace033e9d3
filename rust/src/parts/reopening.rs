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

/// Whether a range is inside another of the same column.
fn is_inside(open: &Open, other: &Open) -> bool {
    open.feature == other.feature && other.low <= open.low && open.high <= other.high
}

/// Takes note of ranges that were opened, unless they are inside others.
pub(super) fn note<'o>(ranges: &mut Vec<Open>, opened: impl IntoIterator<Item = &'o Open>) {
    for open in opened {
        if !ranges.iter().any(|range| is_inside(open, range)) {
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
