//! Rows in bins: how they are added up, and how the criterion reads them.

use super::answer::Bins;
use super::question::Open;
use crate::criterion::{ColumnForm, OwnGroups};
use crate::error::{Error, Result};
use crate::exact::{ExactRows, ExactSums};

/// Rows that are held before their values are added up.
const ROWS_HELD: usize = 1 << 12;

/// [`Bins`] on their way.
pub(super) struct GatheredBins {
    bins: Bins,
    sums: Option<ExactRows>,
    /// Of values: rows that are not in the bins yet, each its cell and its sums.
    rows: Vec<f64>,
}

impl GatheredBins {
    pub fn new(n: usize, with_sums: bool, of_values: bool, width: usize) -> Self {
        let mut bins = Bins::empty(n, of_values, width);
        bins.sums = of_values.then(|| ExactSums::new(n * width));
        let sums = (with_sums && !of_values).then(|| ExactRows::new(n, width));
        GatheredBins { bins, sums, rows: vec![] }
    }

    /// Bins of an opened range.
    pub fn of_open(open: &Open, width: usize) -> Self {
        match &open.ends {
            Some(ends) => GatheredBins::new(ends.len() + 1, true, false, width),
            None => GatheredBins::new(0, true, true, width),
        }
    }

    /// Adds a row; none to a bin that there is not, which other rows than those of the first round have.
    #[inline]
    pub fn add(&mut self, bin: usize, x: f64, sums: Option<&[f64]>) {
        let Some(count) = self.bins.count.get_mut(bin) else { return };
        *count += 1;
        self.bins.low[bin] = self.bins.low[bin].min(x);
        self.bins.high[bin] = self.bins.high[bin].max(x);
        if let (Some(rows), Some(sums)) = (&mut self.sums, sums) {
            rows.add(bin, sums);
        }
    }

    /// Adds a row to its value.
    pub fn add_value(&mut self, x: f64, sums: &[f64]) {
        self.rows.push(x);
        self.rows.extend(sums);
        if self.rows.len() >= ROWS_HELD * (1 + self.bins.width) {
            self.add_up();
        }
    }

    /// Adds a row that has one sum.
    #[inline]
    pub fn add_one(&mut self, bin: usize, x: f64, column: usize, sum: f64) {
        self.add(bin, x, None);
        if let Some(rows) = self.sums.as_mut().filter(|_| bin < self.bins.count.len()) {
            rows.add_one(bin, column, sum);
        }
    }

    /// Adds a row that has one sum to its value.
    pub fn add_value_one(&mut self, x: f64, column: usize, sum: f64) {
        let mut sums = vec![0.0; self.bins.width];
        sums[column] = sum;
        self.add_value(x, &sums);
    }

    /// Adds the rows that are held to their values.
    fn add_up(&mut self) {
        let width = self.bins.width;
        let mut rows: Vec<&[f64]> = self.rows.chunks(1 + width).collect();
        rows.sort_unstable_by(|a, b| a[0].total_cmp(&b[0]));
        let values: Vec<&[&[f64]]> = rows.chunk_by(|a, b| a[0] == b[0]).collect();
        let mut bins = Bins::empty(values.len(), true, width);
        let mut sums = ExactRows::new(values.len(), width);
        for (value, rows) in values.iter().enumerate() {
            bins.count[value] = rows.len() as u64;
            (bins.low[value], bins.high[value]) = (rows[0][0], rows[0][0]);
            rows.iter().for_each(|row| sums.add(value, &row[1..]));
        }
        bins.sums = Some(sums.finish());
        self.rows = vec![];
        self.bins.unite(&bins);
    }

    pub fn finish(mut self) -> Bins {
        match self.bins.of_values {
            true => self.add_up(),
            false => self.bins.sums = self.sums.map(ExactRows::finish),
        }
        self.bins
    }
}

/// Runs of ranges of one column of a node, with the bins of each range.
pub(super) fn with_runs<'a>(
    opens: &'a [Open],
    mut bins: &'a mut [GatheredBins],
) -> Vec<(&'a [Open], &'a mut [GatheredBins])> {
    let run = |run: &'a [Open]| {
        let (of_run, rest) = std::mem::take(&mut bins).split_at_mut(run.len());
        bins = rest;
        (run, of_run)
    };
    opens.chunk_by(Open::is_before).map(run).collect()
}

/// Ranges of one column of a node, ascending, with what was answered about them.
pub(super) type Run<'a> = (Vec<&'a Open>, Vec<Bins>);

/// The ranges of each column of each node.
pub(super) fn of_columns(opens: &[Open], opened: Vec<Bins>) -> impl Iterator<Item = Run<'_>> {
    let mut opened = opened.into_iter();
    let is_of_one = |a: &Open, b: &Open| (a.node, a.feature) == (b.node, b.feature);
    let runs = opens.chunk_by(is_of_one);
    runs.map(move |run| (run.iter().collect(), opened.by_ref().take(run.len()).collect()))
}

/// Checks that bins can be counted by the criterion.
///
/// # Errors
/// [`Error::Value`] if one holds 2^32 rows or more.
pub(super) fn check_counts<'a>(bins: impl IntoIterator<Item = &'a Bins>) -> Result<()> {
    let mut counts = bins.into_iter().flat_map(|bins| &bins.count);
    match counts.any(|&count| count > u64::from(u32::MAX)) {
        true => Err(Error::Value("A bin would hold more than 4294967295 rows.".into())),
        false => Ok(()),
    }
}

/// Checks that the bins of a node's columns are of the same rows.
///
/// # Errors
/// [`Error::Value`] if they are not.
pub(super) fn check_totals(columns: &[Bins]) -> Result<()> {
    let Some((first, others)) = columns.split_first() else { return Ok(()) };
    let (n_rows, total) = (first.n_rows(), first.total());
    let is_like = |bins: &Bins| bins.n_rows() == n_rows && bins.total().equals(&total);
    match others.iter().all(is_like) {
        true => Ok(()),
        false => Err(Error::Value(
            "The columns of a node do not hold the same rows: an answer of the fit is damaged."
                .into(),
        )),
    }
}

/// The sums of `all` rows but those of `less`, in the bins of the others, which were `counted`.
///
/// # Errors
/// [`Error::Value`] if the others are not the rest of all.
pub(super) fn rest_of(mut counted: Bins, all: Bins, less: &Bins) -> Result<Bins> {
    let (n, width) = (all.count.len(), all.width);
    let are_alike = [&counted, less].into_iter().all(|bins| bins.count.len() == n)
        && less.width == width
        && (0..n).all(|bin| all.count[bin] == less.count[bin].saturating_add(counted.count[bin]));
    if are_alike {
        counted.width = width;
        counted.sums = all.sums.map(|mut sums| {
            less.sums.iter().for_each(|less| sums.take_away(less));
            sums
        });
    }
    let has_rest = |sums: &ExactSums, bin: usize| {
        (bin * width..(bin + 1) * width).any(|place| sums.rounded(place) != 0.0)
    };
    let empty = || (0..n).filter(|&bin| counted.count[bin] == 0);
    if !are_alike || counted.sums.iter().any(|sums| empty().any(|bin| has_rest(sums, bin))) {
        return Err(Error::Value(
            "The rows of two nodes are not those of the node above: an answer or a checkpoint of the fit is damaged.".into(),
        ));
    }
    Ok(counted)
}

/// An integer that grows as the number does.
pub(super) fn ordered_bits(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The number of [`ordered_bits`].
pub(super) fn from_ordered_bits(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

/// The least and the largest cell of a bin; NaN of missing cells.
pub(super) fn ends_of(bins: &Bins, bin: usize, form: ColumnForm) -> (f64, f64) {
    match form.has_missing && bin + 1 == bins.count.len() {
        true => (f64::NAN, f64::NAN),
        false => (bins.low[bin], bins.high[bin]),
    }
}

/// The bins as the criterion reads them. `reads_each`: those of numbers too by the sums of each.
pub(super) fn own_groups(bins: &Bins, k: usize, form: ColumnForm, reads_each: bool) -> OwnGroups {
    let n = bins.count.len();
    let none = ExactSums::new(k);
    // Of values the sums up to each bin are read; of levels and missing cells those of the bins.
    let n_unread = match form {
        _ if reads_each => 0,
        ColumnForm { is_levels: true, .. } => 0,
        ColumnForm { has_missing: true, .. } => n.saturating_sub(1),
        _ => n,
    };
    let read = |sums: &ExactSums, place: usize| match place < n_unread * k {
        true => 0.0,
        false => sums.rounded(place),
    };
    let rounded = match &bins.sums {
        Some(sums) => (0..n * k).map(|place| read(sums, place)).collect(),
        None => vec![0.0; n * k],
    };
    let exact = bins.sums.as_ref().map(|sums| {
        let mut sums = ExactSums::gather(&[(&none, 0..k), (sums, 0..n * k)]);
        sums.accumulate(k);
        sums
    });
    let (low, high) = (0..n).map(|bin| ends_of(bins, bin, form)).unzip();
    OwnGroups {
        count: bins.count.iter().map(|&count| count as u32).collect(),
        sums: rounded,
        low,
        high,
        form,
        exact,
    }
}
