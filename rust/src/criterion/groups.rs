//! Rows of one node grouped by the values of one column: what a criterion judges a column by.

use std::ops::Range;

use crate::exact::ExactSums;
use crate::memory;

/// What the groups of a column hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnForm {
    /// Whether values are codes of levels, whose order means nothing.
    pub is_levels: bool,
    /// Whether the last group is that of missing cells; its `low` and `high` are NaN.
    pub has_missing: bool,
}

/// The rows of a node whose cell in a column is missing.
#[derive(Debug, Clone, Copy)]
pub struct MissingRows<'a> {
    /// Their number, at least 1.
    pub count: usize,
    /// What they add up to.
    pub sums: &'a [f64],
    /// Their group.
    pub group: usize,
}

/// Rows of one node grouped by the values of one column, in ascending order.
///
/// A group is a bin or a single value. Groups may be empty (`count` 0); the rest of their entry then means nothing.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// The column.
    pub feature: usize,
    /// Rows in each group.
    pub count: &'a [u32],
    /// `width` sums of each group.
    pub sums: &'a [f64],
    /// No value in the group is smaller.
    pub low: &'a [f64],
    /// No value in the group is larger; equal to `low` if the group is one value.
    pub high: &'a [f64],
    /// What the groups hold.
    pub form: ColumnForm,
    /// Where cuts are compared to the last bit: exact sums over the groups before each, `width` of each, and over all.
    pub exact: Option<&'a ExactSums>,
}

impl<'a> Groups<'a> {
    /// The groups of values, and the rows of the group of missing cells if it has any.
    pub fn split_missing(self, width: usize) -> (Self, Option<MissingRows<'a>>) {
        let Some(last) = self.len().checked_sub(1).filter(|_| self.form.has_missing) else {
            return (self, None);
        };
        let values = Groups {
            count: &self.count[..last],
            low: &self.low[..last],
            high: &self.high[..last],
            form: ColumnForm { has_missing: false, ..self.form },
            ..self
        };
        let (count, sums) = (self.count[last] as usize, &self.sums[last * width..][..width]);
        (values, (count > 0).then_some(MissingRows { count, sums, group: last }))
    }
}

impl Groups<'_> {
    /// Number of groups, the empty ones included.
    pub fn len(&self) -> usize {
        self.count.len()
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.count.is_empty()
    }

    /// The groups that hold rows, in ascending order.
    pub fn filled(&self) -> impl DoubleEndedIterator<Item = usize> + use<'_> {
        (0..self.len()).filter(|&group| self.count[group] > 0)
    }

    /// Adds to `sums` those of `group`, which are then the sums over the groups of `range`, and over the `missing` rows.
    /// Where exact sums are known, these are rounded once, whatever the groups in between.
    #[inline]
    pub(crate) fn extend(
        &self,
        sums: &mut [f64],
        group: usize,
        range: Range<usize>,
        missing: Option<MissingRows<'_>>,
    ) {
        let width = sums.len();
        match self.exact {
            None => super::sums::add(sums, self.row(group, width)),
            Some(_) => self.sum_exactly(sums, &[range, range_of(missing)]),
        }
    }

    /// The exact sums over the groups of some ranges, rounded once. Nothing where they are not known.
    pub(crate) fn sum_exactly(&self, sums: &mut [f64], ranges: &[Range<usize>]) {
        let (Some(exact), width) = (self.exact, sums.len()) else { return };
        let (mut ends, mut starts) = (vec![0; ranges.len()], vec![0; ranges.len()]);
        for (column, sum) in sums.iter_mut().enumerate() {
            for (i, range) in ranges.iter().enumerate() {
                (ends[i], starts[i]) = (range.end * width + column, range.start * width + column);
            }
            *sum = exact.combined(&ends, &starts);
        }
    }

    /// The sums of one group.
    pub fn row(&self, group: usize, width: usize) -> &[f64] {
        &self.sums[group * width..][..width]
    }
}

/// The group of missing rows as a range.
pub(crate) fn range_of(missing: Option<MissingRows<'_>>) -> Range<usize> {
    missing.map_or(0..0, |rows| rows.group..rows.group + 1)
}

/// [`Groups`] that own their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnGroups {
    pub(crate) count: Vec<u32>,
    pub(crate) sums: Vec<f64>,
    pub(crate) low: Vec<f64>,
    pub(crate) high: Vec<f64>,
    pub(crate) form: ColumnForm,
    pub(crate) exact: Option<ExactSums>,
}

impl OwnGroups {
    /// Bytes of a group.
    pub(crate) fn bytes_per_group(width: usize) -> usize {
        size_of::<u32>() + (2 + width) * size_of::<f64>()
    }

    /// Bytes of all groups.
    pub(crate) fn bytes(&self) -> usize {
        self.count.len() * size_of::<u32>()
            + (self.low.len() + self.high.len() + self.sums.len()) * size_of::<f64>()
            + self.exact.as_ref().map_or(0, ExactSums::bytes)
    }

    /// The groups, of the column `feature`.
    pub(crate) fn view(&self, feature: usize) -> Groups<'_> {
        let OwnGroups { count, sums, low, high, form, exact } = self;
        Groups { feature, count, sums, low, high, form: *form, exact: exact.as_ref() }
    }

    /// Makes room for `n_groups` more groups.
    pub(crate) fn reserve(&mut self, n_groups: usize, width: usize) {
        memory::reserve(&mut self.count, n_groups, "the values of a column");
        memory::reserve(&mut self.low, n_groups, "the values of a column");
        memory::reserve(&mut self.high, n_groups, "the values of a column");
        memory::reserve(&mut self.sums, n_groups * width, "the sums of a column's values");
    }

    /// Adds a group of larger values.
    pub(crate) fn push(&mut self, count: u32, low: f64, high: f64, sums: &[f64]) {
        self.count.push(count);
        self.low.push(low);
        self.high.push(high);
        self.sums.extend_from_slice(sums);
    }

    /// Adds rows to the group pushed last.
    pub(crate) fn add_to_last(&mut self, count: u32, sums: &[f64]) {
        if let Some(last) = self.count.last_mut() {
            *last += count;
            let start = self.sums.len() - sums.len();
            self.sums[start..].iter_mut().zip(sums).for_each(|(a, b)| *a += b);
        }
    }

    /// Adds groups of larger values.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.count.append(&mut other.count);
        self.sums.append(&mut other.sums);
        self.low.append(&mut other.low);
        self.high.append(&mut other.high);
    }
}
