//! Order statistics of columns of numbers, by groups of rows: quartiles that set units, and medians of clusters.
//!
//! The rows of a group are counted and weighed in bins of a column; the bins in which the wanted weights are reached are
//! opened into smaller bins, at last to values. Weights are added up exactly, so that the values found depend neither on
//! the order of the rows nor on the bins.

use std::collections::BTreeMap;

use super::answer::Bins;
use super::bins::{GatheredBins, of_columns, with_runs};
use super::bytes::{Reader, Writer};
use super::columns::PartColumn;
use super::gathering::opened_at;
use super::opening::{Range, SMALLER_BINS, open_ranges};
use super::question::{Open, RanksAsk};
use crate::error::Result;
use crate::exact::ExactSums;
use crate::memory;
use crate::parallel;
use crate::table::Table;

/// Interquartile range of a normal distribution in its standard deviations, as in `_data/scale.py`.
const IQR_OF_NORMAL: f64 = 1.348_979_500_392_163_4;
/// Weights this close to a quarter of all, relative to all, are equal to it, as there.
const SAME_WEIGHT: f64 = 1e-10;
/// Half of the weight is reached this close to it, relative to all, as in `_reference/kmedians.py`.
const MARGIN: f64 = 1e-12;

/// Which values are wanted of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The values on either side of each quarter.
    Quartiles,
    /// The lower median.
    Median,
    /// These of each quarter, then the median.
    Both,
}

impl Order {
    /// The weights at which the wanted values are reached, from the least value on, of rows that weigh `total`.
    fn weights(self, total: f64, weighted: bool) -> Vec<f64> {
        match self {
            Order::Median => vec![total * (0.5 - MARGIN)],
            Order::Both => [Order::Quartiles, Order::Median]
                .into_iter()
                .flat_map(|order| order.weights(total, weighted))
                .collect(),
            Order::Quartiles => {
                let around = |share: f64| {
                    let (quarter, slack) = (share * total, SAME_WEIGHT * total);
                    match weighted {
                        true => [quarter - slack, quarter + slack],
                        false => [quarter, quarter.floor() + 1.0],
                    }
                };
                [around(0.25), around(0.75)].concat()
            }
        }
    }
}

/// What is wanted of all rows, beside their groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OfAll {
    Nothing,
    /// The median of a column, for groups without an observed cell there.
    ForGroups,
    /// The same, and the quartiles of every column.
    Quartiles,
}

/// A search for order statistics of all columns of numbers of some groups of rows, over observed cells.
pub(crate) struct Ranks {
    /// Of groups.
    order: Order,
    n_groups: usize,
    of_all: OfAll,
    /// By column whether it holds numbers.
    are_numbers: Vec<bool>,
    /// Ranges with at most so many rows are opened to values.
    most_values: u64,
    /// Whether some part gave weights.
    weighted: bool,
    /// By group, and by column, the rows in bins; no bins of levels; empty before the first answer. All rows come last, of
    /// the columns where they are wanted.
    columns: Vec<Bins>,
}

impl Ranks {
    /// The quartiles of all rows.
    pub fn quartiles(columns: &[PartColumn], most_values: u64) -> Self {
        Ranks::new(Order::Quartiles, 1, OfAll::Nothing, columns, most_values)
    }

    /// The medians of groups. `with_all`: a group without an observed cell in a column has the median of all rows there.
    pub fn medians(
        n_groups: usize,
        with_all: bool,
        columns: &[PartColumn],
        most_values: u64,
    ) -> Self {
        let of_all = if with_all { OfAll::ForGroups } else { OfAll::Nothing };
        Ranks::new(Order::Median, n_groups, of_all, columns, most_values)
    }

    /// The medians of groups, and the quartiles and medians of all rows.
    pub fn medians_and_quartiles(
        n_groups: usize,
        columns: &[PartColumn],
        most_values: u64,
    ) -> Self {
        Ranks::new(Order::Median, n_groups, OfAll::Quartiles, columns, most_values)
    }

    fn new(
        order: Order,
        n_groups: usize,
        of_all: OfAll,
        columns: &[PartColumn],
        most_values: u64,
    ) -> Self {
        let are_numbers = columns.iter().map(|column| column.levels.is_none()).collect();
        let (weighted, columns) = (false, vec![]);
        Ranks { order, n_groups, of_all, are_numbers, most_values, weighted, columns }
    }

    /// Number of groups with bins.
    fn n_searched(&self) -> usize {
        self.n_groups + usize::from(self.of_all != OfAll::Nothing)
    }

    /// What is wanted of the bins at a place of [`Ranks::columns`].
    fn order_at(&self, place: usize) -> Order {
        match self.of_all {
            OfAll::Quartiles if place / self.n_features() == self.n_groups => Order::Both,
            _ => self.order,
        }
    }

    fn n_features(&self) -> usize {
        self.are_numbers.len()
    }

    /// The ranges that are asked for next, by group, column and cell; none if the values are known. `ends`: of the
    /// columns' bins.
    pub fn opens(&self, ends: &[Vec<f64>]) -> Vec<Open> {
        let whole = |node: usize, feature: usize| Open {
            ends: Some(ends[feature].clone()),
            ..Open::to_values(node, feature, f64::NEG_INFINITY, f64::INFINITY)
        };
        let d = self.n_features();
        let places = (0..self.n_searched()).flat_map(|g| (0..d).map(move |f| (g, f)));
        if self.columns.is_empty() {
            let numbers = places
                .filter(|&(group, feature)| group < self.n_groups && self.are_numbers[feature]);
            return numbers.map(|(group, feature)| whole(group, feature)).collect();
        }
        let mut opens = vec![];
        for (place, (node, feature)) in places.enumerate() {
            let (bins, mut hiding) = (&self.columns[place], self.reached(place));
            hiding.retain(|&bin| bins.low[bin] < bins.high[bin]);
            hiding.sort_unstable();
            hiding.dedup();
            opens.extend(hiding.into_iter().map(|bin| {
                let (low, high) = (bins.low[bin], bins.high[bin]);
                let open = Open::to_values(node, feature, low, high);
                Range { n_rows: bins.count[bin], n_bins: SMALLER_BINS, open }
            }));
        }
        open_ranges(opens, self.most_values)
    }

    /// Takes the answer about [`Ranks::opens`].
    ///
    /// # Errors
    /// [`Error::Value`](crate::error::Error::Value) if bins are not those that were asked for.
    pub fn tell(&mut self, asked: &[Open], weighted: bool, opened: Vec<Bins>) -> Result<()> {
        self.weighted = weighted;
        let d = self.n_features();
        if self.columns.is_empty() {
            let none = Bins { sums: Some(ExactSums::new(0)), ..Bins::empty(0, false, 1) };
            self.columns = vec![none; self.n_searched() * d];
            for (open, bins) in asked.iter().zip(opened) {
                self.columns[open.node * d + open.feature] = bins;
            }
            return self.add_up();
        }
        for (run, opened) in of_columns(asked, opened) {
            self.columns[run[0].node * d + run[0].feature].put(run.into_iter().zip(opened))?;
        }
        Ok(())
    }

    /// Adds up the bins of all groups, in the columns where those of all rows are wanted.
    fn add_up(&mut self) -> Result<()> {
        let d = self.n_features();
        let (of_groups, of_all) = self.columns.split_at_mut(self.n_groups * d);
        for (feature, all) in of_all.iter_mut().enumerate().filter(|(f, _)| self.are_numbers[*f]) {
            let mut groups = of_groups.iter().skip(feature).step_by(d);
            let is_empty = |bins: &Bins| bins.count.iter().all(|&count| count == 0);
            if self.of_all == OfAll::ForGroups && !groups.clone().any(is_empty) {
                continue;
            }
            if let Some(first) = groups.next() {
                *all = first.clone();
            }
            groups.try_for_each(|bins| all.merge(bins))?;
        }
        Ok(())
    }

    /// By value that is wanted at a place of [`Ranks::columns`] the bin in which its weight is reached; empty if there are
    /// no rows.
    fn reached(&self, place: usize) -> Vec<usize> {
        let bins = &self.columns[place];
        let n = bins.count.len();
        let filled: Vec<usize> = (0..n).filter(|&bin| bins.count[bin] > 0).collect();
        let (Some(&last), Some(sums)) = (filled.last(), &bins.sums) else { return vec![] };
        let mut sums = sums.clone();
        sums.accumulate(1);
        let find = |weight: f64| {
            let at = filled.partition_point(|&bin| sums.rounded(bin) < weight);
            filled.get(at).copied().unwrap_or(last)
        };
        let total = sums.rounded(n - 1);
        self.order_at(place).weights(total, self.weighted).into_iter().map(find).collect()
    }

    /// The wanted values at a place of [`Ranks::columns`]; empty without rows.
    fn values(&self, place: usize) -> Vec<f64> {
        let bins = &self.columns[place];
        self.reached(place).into_iter().map(|bin| bins.low[bin]).collect()
    }

    /// Lower medians, n_groups x d; without rows NaN or, where those of all rows are known, these, or 0.
    pub fn lower_medians(&self) -> Vec<f64> {
        let n = self.n_groups * self.n_features();
        let median = |place: usize| self.values(place).last().copied();
        let other = |place: usize| match self.of_all {
            OfAll::Nothing => f64::NAN,
            _ => median(n + place % self.n_features()).unwrap_or(0.0),
        };
        (0..n).map(|place| median(place).unwrap_or_else(|| other(place))).collect()
    }

    /// By column the interquartile range of all rows by that of a normal distribution; NaN where it is 0 or leaves the
    /// range of doubles, and of columns of levels or without an observed cell.
    pub fn spreads(&self) -> Vec<f64> {
        let quartile = |beside: &[f64]| match self.weighted {
            true => beside[0] / 2.0 + beside[1] / 2.0,
            false => beside[1] - (beside[1] - beside[0]) * 0.5,
        };
        let spread = |values: Vec<f64>| {
            if values.is_empty() {
                return f64::NAN;
            }
            let [first, third] = [&values[..2], &values[2..4]].map(quartile);
            let spread = third / IQR_OF_NORMAL - first / IQR_OF_NORMAL;
            if spread > 0.0 && spread.is_finite() { spread } else { f64::NAN }
        };
        // All rows are the only group, or come last.
        let n = self.columns.len();
        (n - self.n_features()..n).map(|place| spread(self.values(place))).collect()
    }

    /// Appends what is known.
    pub fn write(&self, writer: &mut Writer) {
        writer.u8(self.weighted.into());
        writer.u8((!self.columns.is_empty()).into());
        self.columns.iter().for_each(|bins| bins.write(writer));
    }

    /// Reads what [`Ranks::write`] wrote.
    ///
    /// # Errors
    /// [`Error::Value`](crate::error::Error::Value) if the bytes are no such search.
    pub fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.weighted = reader.flag()?;
        if reader.flag()? {
            for _ in 0..self.n_searched() * self.n_features() {
                let bins = Bins::read(reader)?;
                if bins.width != 1 || bins.sums.is_none() {
                    return Err(reader.broken());
                }
                self.columns.push(bins);
            }
        }
        Ok(())
    }
}

/// Adds rows of a part to the bins that are asked for; `groups`: the group of each.
pub(super) fn add_ranks(
    ask: &RanksAsk,
    table: &Table<'_>,
    weights: Option<&[f64]>,
    groups: &[usize],
    opened: &mut [GatheredBins],
) {
    let mut rows_of: BTreeMap<usize, Vec<u32>> =
        ask.opens.iter().map(|open| (open.node, vec![])).collect();
    for (row, &group) in groups.iter().enumerate() {
        for group in [group, ask.all] {
            if let Some(rows) = rows_of.get_mut(&group) {
                memory::push(rows, row as u32, "the rows of a group");
            }
        }
    }
    parallel::map(with_runs(&ask.opens, opened), |(run, bins)| {
        let column = table.column(run[0].feature);
        for &row in &rows_of[&run[0].node] {
            let x = column.get(row as usize) + 0.0;
            let Some(i) = opened_at(run, x) else { continue };
            let weight = [weights.map_or(1.0, |w| w[row as usize])];
            match &run[i].ends {
                Some(ends) => bins[i].add(ends.partition_point(|&end| end < x), x, Some(&weight)),
                None => bins[i].add_value(x, &weight),
            }
        }
    });
}
