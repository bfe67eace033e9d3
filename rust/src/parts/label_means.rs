//! The means of rows that bring their labels: centers of the clusters that a tree explains.
//!
//! As in memory: means about the columns' origins first, then about points of the clusters themselves, which keeps the
//! digits of clusters that lie far from the origins. Each takes one question, and one more if the points are bad guesses of the
//! means ([`is_good_guess`]). Means are those of the observed cells; a cluster without any in a column has the mean of
//! all rows there. Where columns hold levels, the cost of the clusters is taken about their rounded means, in a question of
//! its own, and the caller makes centers and costs of the levels' weights.

use super::answer::{read_columns, write_columns};
use super::bytes::{Reader, Writer};
use super::checkpoint::{read_levels, write_levels};
use super::fit::{Base, Columns, PartsFit, Phase, ScaleRule};
use super::gathering::{add_level, add_observed, cells_of};
use super::label_medians::{read_modes, write_modes};
use super::question::Geometry;
use super::result::Sums;
use crate::costs::{Metric, Units, is_good_guess};
use crate::error::Result;
use crate::exact::{ExactRows, ExactSums};
use crate::parallel;
use crate::table::Table;

/// Sums over the rows of each label.
#[derive(Debug, Clone, PartialEq)]
pub struct MeansAsk {
    /// Units of the columns.
    pub scale: Vec<f64>,
    /// k x d, row-major: the points about which cells are added up.
    pub points: Vec<f64>,
}

impl MeansAsk {
    pub(super) fn write(&self, writer: &mut Writer) {
        writer.numbers(&self.scale);
        writer.f64s(&self.points);
    }

    /// `k`: the number of labels.
    pub(super) fn read(reader: &mut Reader<'_>, d: usize, k: usize) -> Result<Self> {
        let (scale, points) = (reader.numbers(d)?, reader.f64s()?);
        if points.len() != k * d { Err(reader.broken()) } else { Ok(MeansAsk { scale, points }) }
    }
}

/// What rows answer to [`MeansAsk`].
#[derive(Debug, Clone)]
pub(crate) struct MeansSums {
    /// Of each label.
    pub weight: ExactSums,
    /// By column, for each label the sum of the differences to its point and that of their squares; 0 for levels.
    pub moments: Vec<ExactSums>,
    /// By column with missing cells, for each label the weight of those that are not.
    pub observed: Vec<Option<ExactSums>>,
    /// By column of levels, for each label the weight of each level.
    pub levels: Vec<Option<ExactSums>>,
}

impl MeansSums {
    /// The sums over the rows of all labels.
    fn total(&self) -> MeansSums {
        let k = self.weight.len();
        let total = |sums: &ExactSums| {
            let width = sums.len() / k;
            let mut total = ExactSums::new(width);
            for label in 0..k {
                total.merge(&ExactSums::gather(&[(sums, label * width..(label + 1) * width)]));
            }
            total
        };
        let of_columns = |columns: &[Option<ExactSums>]| {
            columns.iter().map(|sums| sums.as_ref().map(total)).collect()
        };
        MeansSums {
            weight: total(&self.weight),
            moments: self.moments.iter().map(total).collect(),
            observed: of_columns(&self.observed),
            levels: of_columns(&self.levels),
        }
    }

    pub fn write(&self, writer: &mut Writer) {
        writer.len(self.weight.len());
        writer.len(self.moments.len());
        writer.sums(&self.weight, 0..self.weight.len());
        self.moments.iter().for_each(|sums| writer.sums(sums, 0..sums.len()));
        write_columns(writer, &self.observed);
        write_columns(writer, &self.levels);
    }

    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (k, d) = (reader.len(1)?, reader.len(1)?);
        if k == 0 {
            return Err(reader.broken());
        }
        let weight = reader.new_sums(k)?;
        let moments = (0..d).map(|_| reader.new_sums(2 * k)).collect::<Result<_>>()?;
        let (observed, levels) = (read_columns(reader)?, read_columns(reader)?);
        Ok(MeansSums { weight, moments, observed, levels })
    }
}

/// The sums of columns of levels.
pub(super) fn rounded(levels: &[Option<ExactSums>]) -> Vec<Option<Vec<f64>>> {
    levels.iter().map(|sums| sums.as_ref().map(ExactSums::all_rounded)).collect()
}

/// [`MeansSums`] on their way.
pub(super) struct GatheredMeans {
    weight: ExactRows,
    moments: Vec<ExactRows>,
    observed: Vec<Option<ExactRows>>,
    levels: Vec<Option<ExactRows>>,
}

impl GatheredMeans {
    /// `observed`, `levels`: of `k` labels, of the columns that have any.
    pub fn new(
        d: usize,
        k: usize,
        observed: Vec<Option<ExactRows>>,
        levels: Vec<Option<ExactRows>>,
    ) -> Self {
        let moments = (0..d).map(|_| ExactRows::new(k, 2)).collect();
        GatheredMeans { weight: ExactRows::new(k, 1), moments, observed, levels }
    }

    /// Adds rows with their labels.
    pub fn add(
        &mut self,
        ask: &MeansAsk,
        table: &Table<'_>,
        weights: Option<&[f64]>,
        labels: &[u32],
    ) {
        let d = ask.scale.len();
        let weight = |row: usize| weights.map_or(1.0, |w| w[row]);
        self.weight.add_pairs(labels, |row| [weight(row), 0.0]);
        let all: Vec<u32> = (0..labels.len() as u32).collect();
        let columns = self.moments.iter_mut().zip(&mut self.observed).zip(&mut self.levels);
        parallel::map(columns.enumerate(), |(feature, ((moments, observed), levels))| {
            let cells = cells_of(table, feature, &all);
            let label = |row: usize| labels[row] as usize;
            if let Some(levels) = levels {
                return add_level(levels, &cells, label, weight);
            }
            let scale = ask.scale[feature];
            let weighted = |row: usize| {
                let difference = (cells[row] - ask.points[label(row) * d + feature]) / scale;
                let weighted = weight(row) * difference;
                [weighted, weighted * difference]
            };
            match observed {
                Some(observed) => {
                    add_observed((moments, observed), &cells, label, weight, weighted);
                }
                None => moments.add_pairs(labels, weighted),
            }
        });
    }

    pub fn finish(self) -> MeansSums {
        let of_columns = |columns: Vec<Option<ExactRows>>| {
            columns.into_iter().map(|sums| sums.map(ExactRows::finish)).collect()
        };
        MeansSums {
            weight: self.weight.finish(),
            moments: self.moments.into_iter().map(ExactRows::finish).collect(),
            observed: of_columns(self.observed),
            levels: of_columns(self.levels),
        }
    }
}

/// The points that cells are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// The origins of the columns.
    Origins,
    /// The means of all rows.
    All,
    /// Points near the rows of each label.
    Near,
    /// The rounded means of each label.
    Own,
}

const ABOUT: [About; 4] = [About::Origins, About::All, About::Near, About::Own];

/// How far the means are known.
pub(super) struct LabelMeans {
    columns: Columns,
    units: Units,
    /// What the next question is about.
    about: About,
    points: Vec<f64>,
    /// Whether these are the rounded means, else a guess.
    is_mean: bool,
    /// The means of all rows, and whether they are final; empty if every label has observed cells in all columns.
    of_all: (Vec<f64>, bool),
    /// k x d: the means about the origins, in units, NaN without an observed cell; empty before the first answer.
    in_units: Vec<f64>,
    /// By column of levels their weights by label; after the first answer.
    levels: Vec<Option<Vec<f64>>>,
    /// k x d: the means as unevaluated sums, once they are known.
    high: Vec<f64>,
    low: Vec<f64>,
    /// By label the squared distances of its rows to its mean, over columns of numbers, once they are known.
    spread: Vec<f64>,
}

/// The means, or medians, of labels where columns hold levels, of which the caller makes centers and costs.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelCenters {
    /// k x d: in units; not to be read for levels.
    pub in_units: Vec<f64>,
    /// k x d: in the columns' own units, as unevaluated sums `high + low`.
    pub high: Vec<f64>,
    /// As long.
    pub low: Vec<f64>,
    /// By label the squared distances of its rows to its mean, over columns of numbers.
    pub spread: Vec<f64>,
    /// By column of levels their weights by label: k x number of levels; none for numbers.
    pub levels: Vec<Option<Vec<f64>>>,
    /// By column of levels the most frequent one of each label, where the centers are medians; else empty.
    pub modes: Vec<Option<Vec<usize>>>,
}

impl LabelCenters {
    pub(super) fn write(&self, writer: &mut Writer) {
        [&self.in_units, &self.high, &self.low, &self.spread]
            .into_iter()
            .for_each(|numbers| writer.f64s(numbers));
        write_levels(writer, &self.levels);
        write_modes(writer, &self.modes);
    }

    /// Of `k` labels.
    pub(super) fn read(reader: &mut Reader<'_>, d: usize, k: usize) -> Result<Self> {
        let (in_units, high, low) = (reader.f64s()?, reader.f64s()?, reader.f64s()?);
        let (spread, levels) = (reader.f64s()?, read_levels(reader, d)?);
        let modes = read_modes(reader, &levels, k)?;
        let are_sound = [&in_units, &high, &low].iter().all(|numbers| numbers.len() == k * d);
        if !are_sound || spread.len() != k || levels.len() != d {
            return Err(reader.broken());
        }
        Ok(LabelCenters { in_units, high, low, spread, levels, modes })
    }
}

impl LabelMeans {
    /// Means of which nothing is known, of `k` labels.
    pub fn new(columns: Columns, units: Units, k: usize) -> Self {
        let points = units.shift.repeat(k);
        LabelMeans {
            columns,
            units,
            about: About::Origins,
            points,
            is_mean: false,
            of_all: (vec![], true),
            in_units: vec![],
            levels: vec![],
            high: vec![],
            low: vec![],
            spread: vec![],
        }
    }

    pub fn ask(&self) -> MeansAsk {
        MeansAsk { scale: self.units.scale.clone(), points: self.points.clone() }
    }

    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Appends all but the columns.
    pub fn write(&self, writer: &mut Writer) {
        writer.numbers(&self.units.shift);
        writer.numbers(&self.units.scale);
        writer.u8(ABOUT.iter().position(|&about| about == self.about).unwrap_or(0) as u8);
        writer.f64s(&self.points);
        writer.u8(self.is_mean.into());
        writer.f64s(&self.of_all.0);
        writer.u8(self.of_all.1.into());
        [&self.in_units, &self.high, &self.low, &self.spread]
            .into_iter()
            .for_each(|numbers| writer.f64s(numbers));
        write_levels(writer, &self.levels);
    }

    /// Reads what [`LabelMeans::write`] wrote. `k`: the number of labels.
    pub fn read(reader: &mut Reader<'_>, columns: Columns, d: usize, k: usize) -> Result<Self> {
        let units = Units { shift: reader.numbers(d)?, scale: reader.numbers(d)? };
        let Some(&about) = ABOUT.get(usize::from(reader.u8()?)) else {
            return Err(reader.broken());
        };
        let (points, is_mean) = (reader.f64s()?, reader.flag()?);
        let of_all = (reader.f64s()?, reader.flag()?);
        let (in_units, high) = (reader.f64s()?, reader.f64s()?);
        let (low, spread) = (reader.f64s()?, reader.f64s()?);
        let levels = read_levels(reader, d)?;
        let is_sound = points.len() == k * d
            && [0, d].contains(&of_all.0.len())
            && (of_all.1 || !of_all.0.is_empty())
            && [&in_units, &high, &low].iter().all(|means| [0, k * d].contains(&means.len()))
            && high.len() == low.len()
            && [0, k].contains(&spread.len())
            && in_units.is_empty() == (about == About::Origins && !is_mean)
            && in_units.is_empty() == levels.is_empty()
            && high.is_empty() == (about != About::Own);
        if !is_sound {
            return Err(reader.broken());
        }
        Ok(LabelMeans {
            columns,
            units,
            about,
            points,
            is_mean,
            of_all,
            in_units,
            levels,
            high,
            low,
            spread,
        })
    }

    /// The point for a mean of no observed cell: the mean of all rows, where there is one.
    fn of_all(&self, feature: usize) -> f64 {
        self.of_all.0.get(feature).copied().unwrap_or(self.units.shift[feature])
    }

    /// The points near the rows of each label.
    fn near(&self) -> Vec<f64> {
        let d = self.units.scale.len();
        let near = |(i, &mean): (usize, &f64)| match mean.is_nan() {
            true => self.of_all(i % d),
            false => mean * self.units.scale[i % d] + self.units.shift[i % d],
        };
        self.in_units.iter().enumerate().map(near).collect()
    }

    /// The means in units.
    fn means_in_units(&self) -> Vec<f64> {
        let d = self.units.scale.len();
        let mean = |(i, &mean): (usize, &f64)| match mean.is_nan() {
            true => (self.of_all(i % d) - self.units.shift[i % d]) / self.units.scale[i % d],
            false => mean,
        };
        self.in_units.iter().enumerate().map(mean).collect()
    }
}

impl PartsFit {
    /// Takes the sums that [`LabelMeans`] has asked for.
    pub(super) fn know_means(&self, mut known: LabelMeans, sums: &MeansSums) -> Result<Phase> {
        let are_wanted = !matches!(self.settings.scale, ScaleRule::Given(_)) && self.has_levels();
        if are_wanted && known.columns.levels.is_empty() {
            known.columns.levels = rounded(&sums.total().levels);
        }
        if self.settings.metric == Metric::Manhattan {
            let k = sums.weight.len();
            return self.begin_medians(known.columns, known.units, k, Some(sums));
        }
        if known.in_units.is_empty() {
            self.begin_means(&mut known, sums);
        }
        match known.about {
            About::All => known.of_all = (self.mean_of_all(&known, sums, true).0, true),
            About::Origins if self.has_levels() => {}
            _ => {
                let weight = sums.weight.all_rounded();
                let observed = self.observed(&weight, &sums.observed, &sums.levels);
                let mut means = known.points.clone();
                let groups =
                    Sums { weight: &weight, moments: &sums.moments, observed: observed.as_deref() };
                let (rest, spread, squares) =
                    self.settle(groups, &mut means, known.is_mean, &known.units);
                if !known.is_mean && !is_good_guess(&squares, &spread) {
                    return Ok(Phase::Means(LabelMeans { points: means, is_mean: true, ..known }));
                }
                match known.about {
                    About::Near => known.set_means(&means, &rest),
                    _ => known.spread = spread,
                }
            }
        }
        let k = sums.weight.len();
        let (about, points) = match known.about {
            About::Origins if !known.of_all.1 => (About::All, known.of_all.0.repeat(k)),
            About::Origins | About::All => (About::Near, known.near()),
            About::Near if self.has_levels() => (About::Own, known.high.clone()),
            About::Near | About::Own => return self.end_means(known),
        };
        let is_mean = about == About::All;
        Ok(Phase::Means(LabelMeans { about, points, is_mean, ..known }))
    }

    /// Takes the first sums, about the origins.
    fn begin_means(&self, known: &mut LabelMeans, sums: &MeansSums) {
        let weight = sums.weight.all_rounded();
        let observed = self.observed(&weight, &sums.observed, &sums.levels);
        let (k, d) = (weight.len(), known.units.scale.len());
        let in_units = |i: usize| match observed.as_ref().map_or(weight[i / d], |all| all[i]) {
            0.0 => f64::NAN,
            weight => sums.moments[i % d].rounded(2 * (i / d)) / weight,
        };
        known.in_units = (0..k * d).map(in_units).collect();
        known.levels = rounded(&sums.levels);
        if known.in_units.iter().any(|mean| mean.is_nan()) {
            known.of_all = self.mean_of_all(known, sums, false);
        }
    }

    /// The means of all rows by sums about one point for all labels, and whether the point was a good guess of them or,
    /// as `is_mean` says, the rounded means.
    fn mean_of_all(&self, known: &LabelMeans, sums: &MeansSums, is_mean: bool) -> (Vec<f64>, bool) {
        let total = sums.total();
        let weight = total.weight.all_rounded();
        let observed = self.observed(&weight, &total.observed, &total.levels);
        let mut means = known.points[..known.units.scale.len()].to_vec();
        let groups =
            Sums { weight: &weight, moments: &total.moments, observed: observed.as_deref() };
        let (_, spread, squares) = self.settle(groups, &mut means, is_mean, &known.units);
        (means, is_mean || is_good_guess(&squares, &spread))
    }

    /// The means are known: growth begins, or the caller makes centers of them.
    fn end_means(&self, known: LabelMeans) -> Result<Phase> {
        let in_units = known.means_in_units();
        let LabelMeans { columns, units, levels, high, low, spread, .. } = known;
        if self.has_levels() {
            let modes = vec![];
            let means = LabelCenters { in_units, high, low, spread, levels, modes };
            return Ok(Phase::Reference { columns, units, means: Some(Box::new(means)) });
        }
        let metric = Metric::SquaredEuclidean;
        self.grow(Base {
            geometry: Geometry { units, centers: in_units, metric, levels: vec![] },
            own: high,
            low,
            shares: vec![],
            inertia: None,
            spread,
            cost_of_sample: None,
            ends: columns.ends,
        })
    }
}

impl LabelMeans {
    /// Takes the means and what rounding left of them, in units: as the nearest double and the rest (Knuth).
    fn set_means(&mut self, means: &[f64], rest: &[f64]) {
        let d = self.units.scale.len();
        (self.high, self.low) = (vec![], vec![]);
        for (i, (mean, rest)) in means.iter().zip(rest).enumerate() {
            let rest = rest * self.units.scale[i % d];
            let sum = mean + rest;
            let back = sum - rest;
            self.high.push(sum);
            self.low.push((rest - (sum - back)) + (mean - back));
        }
    }
}
