//! The means of rows that bring their labels: centers of the clusters that a tree explains.
//!
//! As in memory: means about the columns' origins first, then about points of the clusters themselves, which keeps the
//! digits of clusters that lie far from the origins. Each takes one question, and one more if the points are bad guesses of the
//! means ([`is_good_guess`]).

use super::bytes::{Reader, Writer};
use super::fit::{Base, PartsFit, Phase};
use super::gathering::cells_of;
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
    /// By column, for each label the sum of the differences to its point and that of their squares.
    pub moments: Vec<ExactSums>,
}

impl MeansSums {
    pub fn write(&self, writer: &mut Writer) {
        writer.len(self.weight.len());
        writer.len(self.moments.len());
        writer.sums(&self.weight, 0..self.weight.len());
        self.moments.iter().for_each(|sums| writer.sums(sums, 0..sums.len()));
    }

    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (k, d) = (reader.len(1)?, reader.len(1)?);
        if k == 0 {
            return Err(reader.broken());
        }
        let weight = reader.new_sums(k)?;
        let moments = (0..d).map(|_| reader.new_sums(2 * k)).collect::<Result<_>>()?;
        Ok(MeansSums { weight, moments })
    }
}

/// [`MeansSums`] on their way.
pub(super) struct GatheredMeans {
    weight: ExactRows,
    moments: Vec<ExactRows>,
}

impl GatheredMeans {
    pub fn new(d: usize, k: usize) -> Self {
        let moments = (0..d).map(|_| ExactRows::new(k, 2)).collect();
        GatheredMeans { weight: ExactRows::new(k, 1), moments }
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
        parallel::map(self.moments.iter_mut().enumerate(), |(feature, moments)| {
            let cells = cells_of(table, feature, &all);
            let scale = ask.scale[feature];
            moments.add_pairs(labels, |row| {
                let point = ask.points[labels[row] as usize * d + feature];
                let difference = (cells[row] - point) / scale;
                let weighted = weight(row) * difference;
                [weighted, weighted * difference]
            });
        });
    }

    pub fn finish(self) -> MeansSums {
        MeansSums {
            weight: self.weight.finish(),
            moments: self.moments.into_iter().map(ExactRows::finish).collect(),
        }
    }
}

/// How far the means are known.
pub(super) struct LabelMeans {
    pub ends: Vec<Vec<f64>>,
    pub units: Units,
    /// What the next question is about.
    pub points: Vec<f64>,
    /// Whether these are the rounded means, else a guess.
    pub is_mean: bool,
    /// After the first answer: the means about the origins, in units.
    pub in_units: Option<Vec<f64>>,
    /// By label the squared distances of its rows to its mean, once they are known.
    pub spread: Vec<f64>,
}

impl LabelMeans {
    /// Means of which nothing is known, of `k` labels.
    pub fn new(ends: Vec<Vec<f64>>, units: Units, k: usize) -> Self {
        let points = units.shift.repeat(k);
        LabelMeans { ends, units, points, is_mean: false, in_units: None, spread: vec![] }
    }

    pub fn ask(&self) -> MeansAsk {
        MeansAsk { scale: self.units.scale.clone(), points: self.points.clone() }
    }

    pub fn write(&self, writer: &mut Writer) {
        self.ends.iter().for_each(|ends| writer.f64s(ends));
        writer.numbers(&self.units.shift);
        writer.numbers(&self.units.scale);
        writer.f64s(&self.points);
        writer.u8(self.is_mean.into());
        writer.f64s(self.in_units.as_deref().unwrap_or(&[]));
        writer.f64s(&self.spread);
    }

    /// `k`: the number of labels.
    pub fn read(reader: &mut Reader<'_>, ends: Vec<Vec<f64>>, d: usize, k: usize) -> Result<Self> {
        let units = Units { shift: reader.numbers(d)?, scale: reader.numbers(d)? };
        let (points, is_mean) = (reader.f64s()?, reader.flag()?);
        let in_units = Some(reader.f64s()?).filter(|means| !means.is_empty());
        let spread = reader.f64s()?;
        let is_sound = points.len() == k * d
            && in_units.as_ref().is_none_or(|means| means.len() == k * d)
            && (spread.is_empty() || spread.len() == k);
        if !is_sound {
            return Err(reader.broken());
        }
        Ok(LabelMeans { ends, units, points, is_mean, in_units, spread })
    }
}

impl PartsFit {
    /// Takes the sums that [`LabelMeans`] has asked for.
    pub(super) fn know_means(&self, mut known: LabelMeans, sums: &MeansSums) -> Result<Phase> {
        let weight = sums.weight.all_rounded();
        let (k, d) = (weight.len(), known.units.scale.len());
        let mut means = known.points.clone();
        let units = &known.units;
        let groups = Sums { weight: &weight, moments: &sums.moments, observed: None };
        let (rest, spread, squares) = self.settle(groups, &mut means, known.is_mean, units);
        let is_settled = known.is_mean || is_good_guess(&squares, &spread);
        let is_first = known.in_units.is_none();
        if is_first {
            let in_units = |i: usize| sums.moments[i % d].rounded(2 * (i / d)) / weight[i / d];
            known.in_units = Some((0..k * d).map(in_units).collect());
        }
        let in_units = known.in_units.clone().unwrap_or_default();
        if known.spread.is_empty() {
            if !is_settled {
                return Ok(Phase::Means(LabelMeans { points: means, is_mean: true, ..known }));
            }
            // The next questions are about points of the clusters.
            let near = in_units.iter().enumerate();
            let points =
                near.map(|(i, mean)| mean * units.scale[i % d] + units.shift[i % d]).collect();
            return Ok(Phase::Means(LabelMeans { points, is_mean: false, spread, ..known }));
        }
        if !is_settled {
            return Ok(Phase::Means(LabelMeans { points: means, is_mean: true, ..known }));
        }
        // The mean and what rounding left of it, as the nearest double and the rest (Knuth).
        let (mut high, mut low) = (vec![], vec![]);
        for (i, (mean, rest)) in means.iter().zip(&rest).enumerate() {
            let rest = rest * known.units.scale[i % d];
            let sum = mean + rest;
            let back = sum - rest;
            high.push(sum);
            low.push((rest - (sum - back)) + (mean - back));
        }
        self.grow(Base {
            geometry: Geometry {
                units: known.units,
                centers: in_units,
                metric: Metric::SquaredEuclidean,
                levels: vec![],
            },
            own: high,
            low,
            inertia: None,
            spread: known.spread,
            cost_of_sample: None,
            ends: known.ends,
        })
    }
}
