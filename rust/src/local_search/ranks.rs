//! Columns as ranks: the search compares whole numbers of two bytes.
//!
//! Equal values have one rank, larger values larger ranks, so every threshold of a column is a rank: rows up to it go
//! left. A column of more than 2^16 distinct values has ranks of neighbouring values in even shares; the thresholds of
//! given trees still lie between two ranks. Building sorts each column that has no exact index: O(n log n), 2 n d bytes.

use crate::error::Result;
use crate::index::{Index, MAX_BINS};
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::table::Table;

/// Most ranks of a column.
const MAX_RANKS: usize = 1 << 16;

/// A test of the search: rows whose rank in `feature` is at most `rank` go left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankCut {
    /// The column.
    pub feature: u32,
    /// The largest rank that goes left.
    pub rank: u16,
}

/// One column.
struct RankColumn {
    /// Of each row.
    ranks: Vec<u16>,
    /// Smallest value of each rank.
    low: Vec<f64>,
}

/// The table as ranks.
pub(super) struct Ranks {
    columns: Vec<RankColumn>,
}

impl Ranks {
    /// The ranks of a table. `thresholds`: of given trees, (column, threshold) in any order; none of them lies
    /// inside a rank.
    ///
    /// # Errors
    /// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
    pub fn new(table: &Table<'_>, thresholds: &[(usize, f64)], monitor: &Monitor) -> Result<Self> {
        let index = Index::new(table, MAX_BINS);
        let columns = parallel::try_map(0..table.n_features(), |feature| {
            monitor.check()?;
            let binned = index.column(feature);
            if binned.low == binned.high {
                let ranks = binned.codes.iter().map(|&code| u16::from(code));
                let ranks = memory::collected(ranks, "the ranks of a column");
                return Ok(RankColumn { ranks, low: binned.low.clone() });
            }
            let here = thresholds.iter().filter(|(column, _)| *column == feature);
            Ok(rank_column(table, feature, here.map(|(_, threshold)| *threshold).collect()))
        })?;
        Ok(Ranks { columns })
    }

    /// Number of columns.
    pub fn n_features(&self) -> usize {
        self.columns.len()
    }

    /// The rank of each row in a column.
    pub fn column(&self, feature: usize) -> &[u16] {
        &self.columns[feature].ranks
    }

    /// Whether a row goes left.
    #[inline]
    pub fn goes_left(&self, cut: RankCut, row: u32) -> bool {
        self.columns[cut.feature as usize].ranks[row as usize] <= cut.rank
    }

    /// The cut `x <= threshold`; none if no row goes left.
    pub fn cut(&self, feature: usize, threshold: f64) -> Option<RankCut> {
        let below = self.columns[feature].low.partition_point(|&low| low <= threshold);
        let rank = u16::try_from(below.checked_sub(1)?).ok()?;
        Some(RankCut { feature: feature as u32, rank })
    }
}

/// The ranks of a column of many values.
fn rank_column(table: &Table<'_>, feature: usize, mut thresholds: Vec<f64>) -> RankColumn {
    let n = table.n_samples();
    let rows: Vec<u32> = memory::collected(0..n as u32, "the rows of a column");
    let sorted = table.column(feature).sort(&rows);
    let n_values = sorted.chunk_by(|a, b| a.0 == b.0).count();
    thresholds.sort_by(f64::total_cmp);
    let mut thresholds = thresholds.into_iter().peekable();
    let n_shares = (MAX_RANKS - thresholds.len()).min(n_values);
    let mut ranks = memory::zeros(n, "the ranks of a column");
    let (mut low, mut share) = (Vec::new(), usize::MAX);
    for (value, group) in sorted.chunk_by(|a, b| a.0 == b.0).enumerate() {
        let mut is_new = value * n_shares / n_values != share;
        share = value * n_shares / n_values;
        while thresholds.next_if(|&threshold| threshold < group[0].0).is_some() {
            is_new = true;
        }
        if is_new {
            low.push(group[0].0);
        }
        for &(_, row) in group {
            ranks[row as usize] = (low.len() - 1) as u16;
        }
    }
    RankColumn { ranks, low }
}
