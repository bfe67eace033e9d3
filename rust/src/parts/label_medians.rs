//! The medians of rows that bring their labels: centers of the clusters that a tree explains, by k-medians.
//!
//! Lower medians of numbers and the most frequent levels, of the observed cells; a cluster without any in a column has
//! what all rows have there. Where columns hold levels, a question for their weights comes first, and the caller makes
//! centers and costs of them.

use super::answer::Bins;
use super::bytes::{Reader, Writer};
use super::checkpoint::{read_levels, write_columns, write_levels};
use super::fit::{Base, Columns, PartsFit, Phase, in_units};
use super::label_means::{LabelCenters, MeansSums, rounded};
use super::quantiles::Ranks;
use super::question::{Geometry, RanksAsk};
use super::result::most_frequent;
use crate::costs::{Metric, Units};
use crate::error::Result;
use crate::exact::ExactSums;

/// How far the medians are known.
pub(super) struct LabelMedians {
    columns: Columns,
    units: Units,
    k: usize,
    of_levels: LevelsOfLabels,
    ranks: Ranks,
}

/// What labels have in columns of levels.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LevelsOfLabels {
    /// By column of levels their weights by label, k x number of levels; empty without levels.
    pub weights: Vec<Option<Vec<f64>>>,
    /// By column of levels the most frequent one of each label; as long as `weights`.
    pub modes: Vec<Option<Vec<usize>>>,
}

impl LevelsOfLabels {
    fn of(levels: &[Option<ExactSums>], k: usize) -> Self {
        let mode = |sums: &ExactSums| -> Vec<usize> {
            (0..k).map(|label| most_frequent(sums, label, sums.len() / k)).collect()
        };
        LevelsOfLabels {
            weights: rounded(levels),
            modes: levels.iter().map(|sums| sums.as_ref().map(mode)).collect(),
        }
    }
}

pub(super) fn write_modes(writer: &mut Writer, modes: &[Option<Vec<usize>>]) {
    writer.len(modes.len());
    for of_labels in modes {
        writer.u8(of_labels.is_some().into());
        of_labels.iter().flatten().for_each(|&mode| writer.len(mode));
    }
}

/// Reads what [`write_modes`] wrote of `k` labels. `weights`: of the levels.
pub(super) fn read_modes(
    reader: &mut Reader<'_>,
    weights: &[Option<Vec<f64>>],
    k: usize,
) -> Result<Vec<Option<Vec<usize>>>> {
    let column = |reader: &mut Reader<'_>| match reader.flag()? {
        true => (0..k).map(|_| reader.index()).collect::<Result<_>>().map(Some),
        false => Ok(None),
    };
    let n = reader.len(1)?;
    let modes = (0..n).map(|_| column(reader)).collect::<Result<Vec<_>>>()?;
    let are_levels = |(modes, weights): (&Option<Vec<usize>>, &Option<Vec<f64>>)| match weights {
        None => modes.is_none(),
        Some(weights) => {
            let n_levels = (weights.len() / k).max(1);
            modes.as_ref().is_some_and(|modes| modes.iter().all(|&mode| mode < n_levels))
        }
    };
    match n == 0 || n == weights.len() && modes.iter().zip(weights).all(are_levels) {
        true => Ok(modes),
        false => Err(reader.broken()),
    }
}

impl LabelMedians {
    pub fn ask(&self) -> RanksAsk {
        RanksAsk::of_labels(self.k, self.ranks.opens(&self.columns.ends))
    }

    pub fn write(&self, writer: &mut Writer) {
        write_columns(writer, &self.columns);
        writer.numbers(&self.units.shift);
        writer.numbers(&self.units.scale);
        write_levels(writer, &self.of_levels.weights);
        write_modes(writer, &self.of_levels.modes);
        self.ranks.write(writer);
    }
}

impl PartsFit {
    /// The search for the medians of `k` labels begins, if they did not come with the quartiles; where columns hold levels,
    /// by what is known of these.
    pub(super) fn begin_medians(
        &self,
        mut columns: Columns,
        units: Units,
        k: usize,
        sums: Option<&MeansSums>,
    ) -> Result<Phase> {
        let of_levels =
            sums.map_or_else(LevelsOfLabels::default, |sums| LevelsOfLabels::of(&sums.levels, k));
        let ranks = self.medians(k);
        let mut medians = std::mem::take(&mut columns.medians);
        let known = LabelMedians { columns, units, k, of_levels, ranks };
        if medians.is_empty() && self.has_numbers() {
            return Ok(Phase::LabelMedians(Box::new(known)));
        }
        medians.resize(k * self.columns.len(), 0.0); // columns of levels alone have none
        self.end_medians(known, medians)
    }

    /// Takes the answer that [`LabelMedians`] has asked for.
    pub(super) fn know_medians(
        &self,
        mut known: Box<LabelMedians>,
        weighted: bool,
        opened: Vec<Bins>,
    ) -> Result<Phase> {
        let asked = known.ask().opens;
        known.ranks.tell(&asked, weighted, opened)?;
        if !known.ask().opens.is_empty() {
            return Ok(Phase::LabelMedians(known));
        }
        let medians = known.ranks.lower_medians();
        self.end_medians(*known, medians)
    }

    /// The medians are known, k x d: growth begins, or the caller makes centers of them.
    fn end_medians(&self, known: LabelMedians, own: Vec<f64>) -> Result<Phase> {
        if self.has_levels() {
            return Ok(self.with_levels(known, own));
        }
        let LabelMedians { columns, units, .. } = known;
        let centers = in_units(&own, &units);
        self.grow(Base {
            geometry: Geometry { units, centers, metric: Metric::Manhattan, levels: vec![] },
            low: vec![0.0; own.len()],
            own,
            shares: vec![],
            inertia: None,
            spread: vec![],
            cost_of_sample: None,
            ends: columns.ends,
        })
    }

    /// The caller makes centers of medians and levels. `medians`: k x d.
    fn with_levels(&self, known: LabelMedians, medians: Vec<f64>) -> Phase {
        let LabelMedians { columns, units, k, of_levels, .. } = known;
        let means = LabelCenters {
            in_units: in_units(&medians, &units),
            low: vec![0.0; medians.len()],
            high: medians,
            spread: vec![0.0; k],
            levels: of_levels.weights,
            modes: of_levels.modes,
        };
        Phase::Reference { columns, units, means: Some(Box::new(means)) }
    }

    /// Reads what [`LabelMedians::write`] wrote.
    ///
    /// # Errors
    /// [`Error::Value`](crate::error::Error::Value) if the bytes are none.
    pub(super) fn read_medians(&self, reader: &mut Reader<'_>, k: usize) -> Result<LabelMedians> {
        let d = self.columns.len();
        let columns = self.read_columns(reader)?;
        let units = Units { shift: reader.numbers(d)?, scale: reader.numbers(d)? };
        let weights = read_levels(reader, d)?;
        let modes = read_modes(reader, &weights, k)?;
        if weights.len() != modes.len() || weights.is_empty() == self.has_levels() {
            return Err(reader.broken());
        }
        let mut ranks = self.medians(k);
        ranks.read(reader)?;
        Ok(LabelMedians { columns, units, k, of_levels: LevelsOfLabels { weights, modes }, ranks })
    }
}
