//! The maximal tree of CUBT (Fraiman, Ghattas and Svarc 2013, *Interpretable clustering using unsupervised binary
//! trees*, section 2.1): best first on the spread of the rows ([`crate::criterion::spread`]), to any number of leaves.
//! Its leaves are pruned and joined to clusters in `estimators/cubt.py`.

use crate::criterion::RowSums;
use crate::criterion::spread::{Cells, Spread};
use crate::criterion::sums::{Additive, SideCost};
use crate::error::{Error, Result};
use crate::grow::{GrowingTree, Limits, best_first};
use crate::index::Index;
use crate::parallel::{self, Monitor};
use crate::search::{Engine, SearchOptions};
use crate::table::Table;
use crate::tree::TestArrays;

/// Grows the tree whose cuts take most from the spread of the rows, each at least `min_gain` times that of all rows.
///
/// # Errors
/// [`Error::Shape`] if sizes disagree, [`Error::Interrupted`] if the monitor was asked to stop.
pub fn spread_tree(
    table: &Table<'_>,
    cells: Cells<'_>,
    min_gain: f64,
    limits: Limits,
    search: SearchOptions,
    monitor: &Monitor,
) -> Result<TestArrays> {
    let n = table.n_samples();
    Error::check_len("cells", cells.cells.len(), n * cells.d, "entries")?;
    if let Some(weights) = cells.weights {
        Error::check_len("weights", weights.len(), n, "rows")?;
    }
    let index = Index::new(table, search.max_bins);
    monitor.check()?;
    let mut grown = GrowingTree::new(n, |rows| {
        parallel::sum_rows(rows, cells.width(), |row, sums| cells.add(row, sums))
    });
    let all = Spread { min_gain: 0.0 }.cost(&grown.nodes[0].sums);
    let side = Spread { min_gain: min_gain * all };
    let criterion = Additive::on(cells, side, limits.min_samples_leaf);
    let engine = Engine::new(table, &index, &criterion, search, monitor);
    best_first(&engine, &mut grown, limits, |node| criterion.node(&node.sums, node.segment.len()))?;
    Ok(grown.fitted_nodes(|node| node.sums[0]).arrays())
}
