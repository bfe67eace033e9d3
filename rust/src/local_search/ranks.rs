//! Columns as ranks: the search compares whole numbers of two bytes.
//!
//! Equal values have one rank, larger values larger ranks, so every threshold of a column is a rank: rows up to it go
//! left. A column of more than 2^16 distinct values has ranks of neighbouring values in even shares; the thresholds of
//! given trees still lie between two ranks. Building sorts each column that has no exact index: O(n log n), 2 n d bytes.
//!
//! Of sparse rows the ranks of the stored cells are held, and for each column the rank of 0, which all others have: O(m
//! log m) for m cells, 6 m bytes.
//!
//! Missing cells of numbers have the rank [`MISSING`], one less than 0 where ranks wrap around: so missing cells and
//! the ranks below a number are one range too. Levels have their codes as ranks, and missing cells are one more level,
//! the last.

use fastrand::Rng;

use crate::criterion::ColumnForm;
use crate::error::{Error, Result};
use crate::index::{Index, MAX_BINS};
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::rows::{Csr, CsrRows, Rows};
use crate::sparse::columns::SparseColumns;
use crate::table::Table;
use crate::tree::{LevelSet, Test};

/// Most ranks of a column.
const MAX_RANKS: usize = 1 << 16;

/// The rank of missing cells in a column of numbers that has some.
pub(super) const MISSING: u16 = u16::MAX;

/// Which ranks of a column go left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftSide {
    /// Those up to this one.
    UpTo(u16),
    /// Missing cells and the ranks below this one; 0: missing cells alone.
    MissingAndBelow(u16),
    /// The levels of the set.
    Levels(LevelSet),
}

impl LeftSide {
    /// The ranks up to one, and missing cells if they go left.
    pub fn up_to(rank: u16, missing_left: bool) -> Self {
        if missing_left { LeftSide::MissingAndBelow(rank + 1) } else { LeftSide::UpTo(rank) }
    }

    /// Whether a rank goes left.
    #[inline(always)]
    fn holds(&self, rank: u16) -> bool {
        match self {
            LeftSide::UpTo(last) => rank <= *last,
            LeftSide::MissingAndBelow(end) => rank.wrapping_add(1) <= *end,
            LeftSide::Levels(set) => set.contains(rank as u8),
        }
    }
}

/// A test of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankCut {
    /// The column.
    pub feature: u32,
    /// Whose rows go left.
    pub left: LeftSide,
}

/// One column.
struct RankColumn {
    /// Of each row; empty where rows are sparse.
    ranks: Vec<u16>,
    /// Of cells that are not stored, where rows are sparse.
    zero: u16,
    /// Smallest value of each rank; the code of each level.
    low: Vec<f64>,
    form: ColumnForm,
}

impl RankColumn {
    /// The rank of missing cells in a column of levels.
    fn missing_level(&self) -> u8 {
        self.low.len() as u8
    }
}

/// The table as ranks.
pub(super) struct Ranks {
    columns: Vec<RankColumn>,
    /// Of the stored cells of sparse rows.
    stored: Option<StoredRanks>,
    n_samples: usize,
}

/// The ranks of stored cells, by rows.
type StoredRanks = Csr<Vec<u32>, Vec<u16>>;

impl Ranks {
    /// The ranks of rows. `thresholds`: of given trees, (column, threshold) in any order; none of them lies
    /// inside a rank.
    ///
    /// # Errors
    /// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
    pub fn new<'r, 't: 'r>(
        rows: impl Into<Rows<'r, 't>>,
        thresholds: &[(usize, f64)],
        monitor: &Monitor,
    ) -> Result<Self> {
        match rows.into() {
            Rows::Table(table) => Self::of_table(table, thresholds, monitor),
            Rows::Sparse(matrix) => Self::of_sparse(matrix, thresholds, monitor),
        }
    }

    /// The ranks of sparse rows.
    fn of_sparse(
        matrix: &CsrRows<'_>,
        thresholds: &[(usize, f64)],
        monitor: &Monitor,
    ) -> Result<Self> {
        let n = matrix.n_rows();
        let cells = SparseColumns::new(matrix, monitor)?;
        let mut of_columns = vec![vec![]; matrix.n_columns()];
        for &(feature, threshold) in thresholds.iter().filter(|at| at.0 < matrix.n_columns()) {
            of_columns[feature].push(threshold);
        }
        let columns = parallel::try_map(of_columns.into_iter().enumerate(), |(feature, here)| {
            monitor.check()?;
            let (stored, _) = cells.of(feature);
            let n_negative = stored.partition_point(|&x| x < 0.0);
            let zero = (stored.len() < n).then_some(0.0);
            let sorted = stored[..n_negative].iter().copied().chain(zero);
            let mut values: Vec<f64> = sorted.chain(stored[n_negative..].iter().copied()).collect();
            values.dedup();
            let form = ColumnForm::default();
            let low = smallest_of_ranks(&values, here, MAX_RANKS);
            let zero = low.partition_point(|&low| low <= 0.0).saturating_sub(1) as u16;
            Ok(RankColumn { ranks: vec![], zero, low, form })
        })?;
        let rank = |(&column, &x): (&u32, &f64)| {
            let low = &columns[column as usize].low;
            (low.partition_point(|&low| low <= x) - 1) as u16
        };
        let what = "the ranks of stored cells";
        let ranks = memory::collected(matrix.indices().iter().zip(matrix.values()).map(rank), what);
        let indices = memory::collected(matrix.indices().iter().copied(), what);
        let stored = Csr::from_parts(matrix.indptr().to_vec(), indices, ranks, matrix.n_columns());
        Ok(Ranks { columns, stored: Some(stored), n_samples: n })
    }

    /// The ranks of a table.
    fn of_table(table: &Table<'_>, thresholds: &[(usize, f64)], monitor: &Monitor) -> Result<Self> {
        let index = Index::new(table, MAX_BINS);
        let columns = parallel::try_map(0..table.n_features(), |feature| {
            monitor.check()?;
            let binned = index.column(feature);
            let form = binned.form;
            let n_values = binned.n_bins() - usize::from(form.has_missing);
            if binned.low[..n_values] == binned.high[..n_values] {
                let missing = binned.missing().filter(|_| !form.is_levels);
                let rank = |&code: &u8| if Some(code) == missing { MISSING } else { code.into() };
                let ranks =
                    memory::collected(binned.codes.iter().map(rank), "the ranks of a column");
                return Ok(RankColumn {
                    ranks,
                    zero: 0,
                    low: binned.low[..n_values].to_vec(),
                    form,
                });
            }
            let here = thresholds.iter().filter(|(column, _)| *column == feature);
            Ok(rank_column(table, feature, here.map(|(_, threshold)| *threshold).collect(), form))
        })?;
        Ok(Ranks { columns, stored: None, n_samples: table.n_samples() })
    }

    /// Number of columns.
    pub fn n_features(&self) -> usize {
        self.columns.len()
    }

    /// Number of rows.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// The cells that a row takes to look at: all columns, of sparse rows those that a row stores on average.
    pub fn cells_per_row(&self) -> usize {
        match &self.stored {
            None => self.n_features(),
            Some(stored) => stored.values().len().div_ceil(self.n_samples.max(1)).max(1),
        }
    }

    /// The ranks of the stored cells of sparse rows; none for a table.
    pub fn stored(&self) -> Option<&StoredRanks> {
        self.stored.as_ref()
    }

    /// The rank of the cells of a column that sparse rows do not store.
    pub fn zero(&self, feature: usize) -> u16 {
        self.columns[feature].zero
    }

    /// Appends the ranks of some rows in a column.
    pub fn gather(&self, feature: usize, rows: &[u32], ranks: &mut Vec<u16>) {
        match &self.stored {
            None => {
                let column = &self.columns[feature].ranks;
                ranks.extend(rows.iter().map(|&row| column[row as usize]));
            }
            Some(_) => ranks.extend(rows.iter().map(|&row| self.rank(feature, row))),
        }
    }

    /// The rank of a row in a column.
    #[inline]
    fn rank(&self, feature: usize, row: u32) -> u16 {
        let column = &self.columns[feature];
        match &self.stored {
            None => column.ranks[row as usize],
            Some(stored) => {
                let (columns, ranks) = stored.row(row as usize);
                columns.binary_search(&(feature as u32)).map_or(column.zero, |at| ranks[at])
            }
        }
    }

    /// Whether there are columns of levels.
    pub fn has_levels(&self) -> bool {
        self.columns.iter().any(|column| column.form.is_levels)
    }

    /// What the ranks of a column stand for.
    pub fn form(&self, feature: usize) -> ColumnForm {
        self.columns[feature].form
    }

    /// Whether some column holds levels or missing cells.
    pub fn is_mixed(&self) -> bool {
        self.columns.iter().any(|column| column.form != ColumnForm::default())
    }

    /// Whether a row goes left.
    #[inline]
    pub fn goes_left(&self, cut: &RankCut, row: u32) -> bool {
        cut.left.holds(self.rank(cut.feature as usize, row))
    }

    /// The cut of a test; none if no row goes left.
    ///
    /// # Errors
    /// [`Error::Tree`] if the test is not one of what a column holds.
    pub fn cut(&self, test: &Test, missing_left: bool) -> Result<Option<RankCut>> {
        let Some(feature) = test.feature() else {
            return Err(Error::Tree("a start may have tests of one column only.".into()));
        };
        let Some(column) = self.columns.get(feature) else {
            return Err(Error::Tree(format!("a start tests column {feature}.")));
        };
        let ColumnForm { is_levels, has_missing } = column.form;
        let missing_left = missing_left && has_missing;
        let left = match test {
            Test::Missing { .. } if !has_missing => return Ok(None),
            Test::Missing { .. } if is_levels => {
                LeftSide::Levels([column.missing_level()].into_iter().collect())
            }
            Test::Missing { .. } => LeftSide::MissingAndBelow(0),
            Test::Levels { left, .. } if is_levels => {
                let missing = missing_left.then(|| column.missing_level());
                LeftSide::Levels(left.codes().chain(missing).collect())
            }
            Test::Threshold { threshold, .. } if !is_levels => {
                let below = column.low.partition_point(|low| low <= threshold);
                match below.checked_sub(1) {
                    Some(last) => LeftSide::up_to(last as u16, missing_left),
                    None if missing_left => LeftSide::MissingAndBelow(0),
                    None => return Ok(None),
                }
            }
            _ => {
                let what = format!("a start has a test that does not suit column {feature}.");
                return Err(Error::Tree(what));
            }
        };
        Ok(Some(RankCut { feature: feature as u32, left }))
    }

    /// A cut at the cell of a row: the values up to it, its level alone or with some others, or missing cells.
    pub fn cut_at(&self, feature: usize, row: u32, rng: &mut Rng) -> RankCut {
        let column = &self.columns[feature];
        let rank = self.rank(feature, row);
        let left = match column.form {
            ColumnForm { is_levels: true, .. } => {
                let mut set: LevelSet = [rank as u8].into_iter().collect();
                if rng.bool() {
                    (0..=column.missing_level()).filter(|_| rng.bool()).for_each(|v| set.insert(v));
                }
                LeftSide::Levels(set)
            }
            ColumnForm { has_missing: true, .. } if rank == MISSING => LeftSide::MissingAndBelow(0),
            ColumnForm { has_missing: true, .. } => LeftSide::up_to(rank, rng.bool()),
            _ => LeftSide::UpTo(rank),
        };
        RankCut { feature: feature as u32, left }
    }
}

/// The ranks of a column of many values.
fn rank_column(
    table: &Table<'_>,
    feature: usize,
    thresholds: Vec<f64>,
    form: ColumnForm,
) -> RankColumn {
    let n = table.n_samples();
    let rows: Vec<u32> = memory::collected(0..n as u32, "the rows of a column");
    let mut sorted = table.column(feature).sort(&rows);
    if form.has_missing {
        sorted.retain(|(value, _)| !value.is_nan());
    }
    let values: Vec<f64> = sorted.chunk_by(|a, b| a.0 == b.0).map(|group| group[0].0).collect();
    let low = smallest_of_ranks(&values, thresholds, MAX_RANKS - usize::from(form.has_missing));
    let mut ranks = memory::filled(MISSING, n, "the ranks of a column");
    let mut rank = 0;
    for group in sorted.chunk_by(|a, b| a.0 == b.0) {
        rank += usize::from(low.get(rank + 1).is_some_and(|&next| next <= group[0].0));
        for &(_, row) in group {
            ranks[row as usize] = rank as u16;
        }
    }
    RankColumn { ranks, zero: 0, low, form }
}

/// The smallest value of each of at most `most` ranks, of values that ascend, each once: one rank each if these are no
/// more, else neighbouring values in even shares, and none across a threshold.
fn smallest_of_ranks(values: &[f64], mut thresholds: Vec<f64>, most: usize) -> Vec<f64> {
    thresholds.sort_by(f64::total_cmp);
    let mut thresholds = thresholds.into_iter().peekable();
    let n_values = values.len();
    let n_shares = (most - thresholds.len()).min(n_values);
    let (mut low, mut share) = (Vec::new(), usize::MAX);
    for (place, &value) in values.iter().enumerate() {
        let mut is_new = place * n_shares / n_values != share;
        share = place * n_shares / n_values;
        while thresholds.next_if(|&threshold| threshold < value).is_some() {
            is_new = true;
        }
        if is_new {
            low.push(value);
        }
    }
    low
}
