//! Order statistics of columns of numbers, by groups of rows: quartiles that set units, and medians of clusters.
//!
//! The rows of a group are counted and weighed in bins of a column; the bins in which the wanted weights are reached are
//! opened into smaller bins, at last to values. Weights are added up exactly, so that the values found depend neither on
//! the order of the rows nor on the bins.

use std::collections::BTreeMap;

use super::answer::Bins;
use super::bins::{GatheredBins, with_runs};
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
}

impl Order {
    /// The weights at which the wanted values are reached, from the least value on, of rows that weigh `total`.
    fn weights(self, total: f64, weighted: bool) -> Vec<f64> {
        match self {
            Order::Median => vec![total * (0.5 - MARGIN)],
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

/// A search for order statistics of all columns of numbers of some groups of rows, over observed cells.
pub(crate) struct Ranks {
    order: Order,
    n_groups: usize,
    /// Whether a group without an observed cell in a column has the value of all rows there.
    with_all: bool,
    /// By column whether it holds numbers.
    are_numbers: Vec<bool>,
    /// Ranges with at most so many rows are opened to values.
    most_values: u64,
    /// Whether some part gave weights.
    weighted: bool,
    /// By group, and by column, the rows in bins; no bins of levels; empty before the first answer. All rows come last,
    /// [`Ranks::with_all`]: of the columns where some group has no observed cell.
    columns: Vec<Bins>,
}

impl Ranks {
    /// The quartiles of all rows.
    pub fn quartiles(columns: &[PartColumn], most_values: u64) -> Self {
        Ranks::new(Order::Quartiles, 1, false, columns, most_values)
    }

    /// The medians of groups. `with_all`: a group without an observed cell in a column has the median of all rows there.
    pub fn medians(
        n_groups: usize,
        with_all: bool,
        columns: &[PartColumn],
        most_values: u64,
    ) -> Self {
        Ranks::new(Order::Median, n_groups, with_all, columns, most_values)
    }

    fn new(
        order: Order,
        n_groups: usize,
        with_all: bool,
        columns: &[PartColumn],
        most_values: u64,
    ) -> Self {
        let are_numbers = columns.iter().map(|column| column.levels.is_none()).collect();
        let (weighted, columns) = (false, vec![]);
        Ranks { order, n_groups, with_all, are_numbers, most_values, weighted, columns }
    }

    /// Number of groups with bins.
    fn n_searched(&self) -> usize {
        self.n_groups + usize::from(self.with_all)
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
        for ((node, feature), bins) in places.zip(&self.columns) {
            let mut hiding = self.reached(bins);
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
            return if self.with_all { self.add_up() } else { Ok(()) };
        }
        for (open, smaller) in asked.iter().zip(opened) {
            self.columns[open.node * d + open.feature].put(open, smaller)?;
        }
        Ok(())
    }

    /// Adds up the bins of all groups, in columns where one has no rows.
    fn add_up(&mut self) -> Result<()> {
        let d = self.n_features();
        let (of_groups, of_all) = self.columns.split_at_mut(self.n_groups * d);
        for (feature, all) in of_all.iter_mut().enumerate().filter(|(f, _)| self.are_numbers[*f]) {
            let mut groups = of_groups.iter().skip(feature).step_by(d);
            if !groups.clone().any(|bins| bins.count.iter().all(|&count| count == 0)) {
                continue;
            }
            if let Some(first) = groups.next() {
                *all = first.clone();
            }
            groups.try_for_each(|bins| all.merge(bins))?;
        }
        Ok(())
    }

    /// By wanted value the bin in which its weight is reached; empty if there are no rows.
    fn reached(&self, bins: &Bins) -> Vec<usize> {
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
        self.order.weights(total, self.weighted).into_iter().map(find).collect()
    }

    /// The wanted values by group and column; empty where a group has no rows.
    fn values(&self) -> impl Iterator<Item = Vec<f64>> + use<'_> {
        let values =
            |bins: &Bins| self.reached(bins).into_iter().map(|bin| bins.low[bin]).collect();
        self.columns.iter().map(values)
    }

    /// Lower medians, n_groups x d; without rows NaN or, [`Ranks::with_all`], that of all rows, or 0.
    pub fn lower_medians(&self) -> Vec<f64> {
        let mut medians: Vec<Option<f64>> =
            self.values().map(|values| values.first().copied()).collect();
        let of_all = medians.split_off(self.n_groups * self.n_features());
        let other = |i: usize| match self.with_all {
            true => of_all[i % of_all.len()].unwrap_or(0.0),
            false => f64::NAN,
        };
        medians.iter().enumerate().map(|(i, median)| median.unwrap_or_else(|| other(i))).collect()
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
            let [first, third] = [&values[..2], &values[2..]].map(quartile);
            let spread = third / IQR_OF_NORMAL - first / IQR_OF_NORMAL;
            if spread > 0.0 && spread.is_finite() { spread } else { f64::NAN }
        };
        self.values().map(spread).collect()
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
