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
    let bin = |row: u32| usize::from(binned.codes[row as usize]);
    let mut has_rows = [false; MAX_BINS];
    let share = parallel::even_share(rows.len(), MIN_BLOCK);
    let of_blocks = parallel::map(rows.chunks(share), |rows| {
        let mut has_rows = [false; MAX_BINS];
        rows.iter().for_each(|&row| has_rows[bin(row)] = true);
        has_rows
    });
    for of_block in of_blocks {
        has_rows.iter_mut().zip(of_block).for_each(|(has_rows, found)| *has_rows |= found);
    }
    if let Some(missing) = binned.missing() {
        has_rows[usize::from(missing)] = false;
    }
    // Whether a bin lies below the cut; none where the cut goes through it.
    let sides = binned.per_bin(|low, high| {
        let side = is_below(low);
        (side == is_below(high)).then_some(side)
    });
    let present = || (0..sides.len()).filter(|&bin| has_rows[bin]);
    let next_below = present().rfind(|&bin| sides[bin] == Some(true));
    let next_above = present().find(|&bin| sides[bin] == Some(false));
    let through = present().filter(|&bin| sides[bin].is_none());
    let (mut gap, mut is_read) = (Gap::OPEN, [false; MAX_BINS]);
    for bin in through.chain(next_below).chain(next_above) {
        match sides[bin] {
            Some(side) if binned.low[bin] == binned.high[bin] => gap.narrow(binned.low[bin], side),
            _ => is_read[bin] = true,
        }
    }
    if is_read.contains(&true) {
        let of_blocks = parallel::map(rows.chunks(share), |rows| {
            let mut gap = Gap::OPEN;
            for &row in rows.iter().filter(|&&row| is_read[bin(row)]) {
                let x = column.get(row as usize);
                gap.narrow(x, is_below(x));
            }
            gap
        });
        of_blocks.into_iter().for_each(|of_block| gap.narrow_to(of_block));
    }
    gap
}
