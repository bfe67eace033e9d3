//! The values beside the cuts of a tree that was grown on bins: [`Beside`] without reading its columns again.
//!
//! The bins of a node's rows say where the values next to its cut are: in the bin that the cut goes through, or in the
//! nearest one on each side that holds a row. Only their cells are read, and those of a bin of one value need not be.
//! O(rows) a node, a byte each.

use crate::grow::{GrowingTree, GrownNode};
use crate::index::{BinnedColumn, Index, MAX_BINS};
use crate::parallel;
use crate::table::{Column, Table};
use crate::tree::{Beside, Gap, Test};

/// Rows that one thread looks at in one go, at least.
const MIN_BLOCK: usize = 1 << 14;

/// The values beside a tree's thresholds and interval ends among the rows of its nodes. `table`, `index`: those it was
/// grown on.
pub(crate) fn values_beside(grown: &GrowingTree<'_>, table: &Table<'_>, index: &Index) -> Beside {
    let of_node = |node: &GrownNode| {
        let rows = grown.partition.all(node.segment);
        let columns = |feature: usize| (table.column(feature), index.column(feature));
        match node.test {
            Test::Threshold { feature, threshold } => {
                [Gap::CLOSED, gap_of(columns(feature), rows, |x| x <= threshold)]
            }
            Test::Interval { feature, lower, upper } => [
                gap_of(columns(feature), rows, |x| x < lower),
                gap_of(columns(feature), rows, |x| x <= upper),
            ],
            _ => [Gap::CLOSED; 2],
        }
    };
    let gaps: Vec<[Gap; 2]> = parallel::map(&grown.nodes, of_node);
    Beside::of(&gaps)
}

/// The values beside a cut of a column among some rows. `is_below`: whether a value lies below the cut.
fn gap_of(
    (column, binned): (&Column<'_>, &BinnedColumn),
    rows: &[u32],
    is_below: impl Fn(f64) -> bool + Sync,
) -> Gap {
    // Whether a bin lies below the cut; none where the cut goes through it.
    let mut sides = binned.per_bin(|low, high| {
        let side = is_below(low);
        (side == is_below(high)).then_some(side)
    });
    sides.truncate(binned.missing().map_or(binned.n_bins(), usize::from));
    // The values next to the cut are mostly in the bins next to it.
    let last_below = sides.iter().rposition(|&side| side == Some(true));
    let first_above = sides.iter().position(|&side| side == Some(false));
    let through = (0..sides.len()).filter(|&bin| sides[bin].is_none());
    let next: Vec<usize> = through.chain(last_below).chain(first_above).collect();
    let look = |bins: &[usize]| look_at((column, binned), rows, bins, &sides, &is_below);
    let (mut gap, has_rows) = look(&next);
    let nearest = |bin: Option<usize>| bin.filter(|bin| !next.contains(bin));
    let present = || (0..sides.len()).filter(|&bin| has_rows[bin]);
    let below = nearest(present().rfind(|&bin| sides[bin] == Some(true)));
    let above = nearest(present().find(|&bin| sides[bin] == Some(false)));
    let others: Vec<usize> = below.into_iter().chain(above).collect();
    if !others.is_empty() {
        gap.narrow_to(look(&others).0);
    }
    gap
}

/// The values beside a cut in some of the bins, each on one side of it or, where `sides` says none, on both; and in which bins
/// the rows are.
fn look_at(
    (column, binned): (&Column<'_>, &BinnedColumn),
    rows: &[u32],
    bins: &[usize],
    sides: &[Option<bool>],
    is_below: impl Fn(f64) -> bool + Sync,
) -> (Gap, [bool; MAX_BINS]) {
    let mut is_read = [false; MAX_BINS];
    bins.iter().for_each(|&bin| is_read[bin] = binned.low[bin] < binned.high[bin]);
    let share = parallel::even_share(rows.len(), MIN_BLOCK);
    let of_blocks = parallel::map(rows.chunks(share), |rows| {
        let (mut gap, mut has_rows) = (Gap::OPEN, [false; MAX_BINS]);
        for &row in rows {
            let bin = usize::from(binned.codes[row as usize]);
            has_rows[bin] = true;
            if is_read[bin] {
                let x = column.get(row as usize);
                gap.narrow(x, is_below(x));
            }
        }
        (gap, has_rows)
    });
    let (mut gap, mut has_rows) = (Gap::OPEN, [false; MAX_BINS]);
    for (of_block, found) in of_blocks {
        gap.narrow_to(of_block);
        has_rows.iter_mut().zip(found).for_each(|(has_rows, found)| *has_rows |= found);
    }
    for &bin in bins.iter().filter(|&&bin| has_rows[bin] && !is_read[bin]) {
        if let Some(side) = sides[bin] {
            gap.narrow(binned.low[bin], side);
        }
    }
    (gap, has_rows)
}
