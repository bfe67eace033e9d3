//! What the fit wants of its caller between questions: what the columns hold, and the clusters that the tree explains.
//!
//! The caller finds clusters among a sample of the rows, and says what the levels of columns cost about centers. The
//! centers of a sample then move to the means of all their rows, by some passes of Lloyd's algorithm.

use super::answer::LeafSums;
use super::columns::{FoundColumn, PartColumn, numbers_of};
use super::fit::{Base, PartsFit, Phase, ReferenceRule, in_units};
use super::gathering::mix;
use super::label_means::LabelCenters;
use super::question::Geometry;
use super::result::{Sums, check_distances};
use crate::costs::{Metric, Units};
use crate::error::{Error, Result};

/// Rows among which clusters are found.
const REFERENCE_ROWS: u64 = 100_000;
/// Most passes over all rows that move the centers of a sample to the means of their clusters.
const LLOYD_PASSES: u64 = 3;
/// Passes end where the centers move so little that they lower the cost by less than this share.
const LLOYD_GAIN: f64 = 1e-4;

/// What the caller makes the clusters of.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceRows {
    /// Origins and units of the columns; columns of levels have the unit 1 where units are standard deviations.
    pub units: Units,
    /// By column of levels the weight of each, where units are standard deviations.
    pub levels: Vec<Option<Vec<f64>>>,
    /// n x (d + 1), row-major, in the order of all rows: their cells (codes of levels, NaN where missing) and weight;
    /// none if centers are given.
    pub rows: Vec<f64>,
    /// Whether these are all rows.
    pub are_all: bool,
}

/// Clusters that were found among [`ReferenceRows`], or what given centers are in units.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundReference {
    /// Units of the columns, those of levels too.
    pub scale: Vec<f64>,
    /// As [`Geometry::centers`] and [`Geometry::levels`].
    pub in_units: Vec<f64>,
    /// By column of levels what each costs each label; none for numbers; empty without levels.
    pub levels: Vec<Option<Vec<f64>>>,
    /// The centers in the columns' own units, as unevaluated sums `own + low`: as [`ReferenceRule::Centers`].
    pub own: Vec<f64>,
    /// As long.
    pub low: Vec<f64>,
    /// As long, or empty: the centers with the shares that levels have among the rows of each label, where these are other
    /// than what the centers have.
    pub shares: Vec<f64>,
    /// What the clusters cost, where all rows were there or brought their labels.
    pub inertia: Option<f64>,
}

impl PartsFit {
    /// What was found in the columns, of which the caller must say what they hold before there is a question: see
    /// [`PartsFit::set_columns`].
    pub fn found_columns(&self) -> Option<&[FoundColumn]> {
        match &self.phase {
            Phase::Found { columns, .. } => Some(columns),
            _ => None,
        }
    }

    /// Takes what the columns hold. Bins are placed by the sampled rows then.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree; [`Error::Value`] if this is not wanted.
    pub fn set_columns(&mut self, columns: Vec<PartColumn>) -> Result<()> {
        Error::check_len("columns", columns.len(), self.settings.n_features, "entries")?;
        let Phase::Found { rows, .. } = &self.phase else {
            return Err(Error::Value("The fit does not ask what the columns hold.".into()));
        };
        let width: usize = columns.iter().map(PartColumn::width).sum();
        if let ReferenceRule::Centers { k, points } = &self.settings.reference {
            Error::check_len("centers", points.len(), k * width, "entries")?;
        }
        let ends = self.ends(rows);
        self.columns = columns;
        self.phase = Phase::Rows { ends };
        Ok(())
    }

    /// What the caller makes clusters of before there is a question, or what given centers cost where columns hold levels:
    /// see [`PartsFit::set_reference`].
    pub fn wanted(&self) -> Option<ReferenceRows> {
        let Phase::Reference { columns, units, .. } = &self.phase else { return None };
        Some(ReferenceRows {
            units: units.clone(),
            levels: columns.levels.clone(),
            rows: columns.rows.clone(),
            are_all: self.n_rows() <= REFERENCE_ROWS,
        })
    }

    /// The means of labels that rows bring, where the caller makes centers of them: see [`PartsFit::set_reference`].
    pub fn label_centers(&self) -> Option<&LabelCenters> {
        match &self.phase {
            Phase::Reference { means, .. } => means.as_deref(),
            _ => None,
        }
    }

    /// Centers that have moved, as [`ReferenceRule::Centers`], of which the caller must say what levels cost: see
    /// [`PartsFit::set_costs`].
    pub fn moved_centers(&self) -> Option<(&[f64], &Units)> {
        match &self.phase {
            Phase::Moved { base, .. } => Some((&base.own, &base.geometry.units)),
            _ => None,
        }
    }

    /// Takes the centers in units and what the levels cost: as [`Geometry::centers`] and [`Geometry::levels`].
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree; [`Error::Value`] if this is not wanted.
    pub fn set_costs(&mut self, in_units: Vec<f64>, levels: Vec<Option<Vec<f64>>>) -> Result<()> {
        let k = in_units.len() / self.settings.n_features;
        self.check_geometry(k, &in_units, &levels)?;
        let Phase::Moved { mut base, pass } = std::mem::replace(&mut self.phase, Phase::Failed)
        else {
            return Err(Error::Value("The fit does not ask what levels cost.".into()));
        };
        Error::check_len("centers", k, base.geometry.k(), "rows")?;
        (base.geometry.centers, base.geometry.levels) = (in_units, levels);
        self.phase = match pass {
            Some(pass) => Phase::Lloyd { base, pass },
            None => self.grow(base)?,
        };
        Ok(())
    }

    /// Checks the sizes of centers and of what levels cost.
    fn check_geometry(
        &self,
        k: usize,
        in_units: &[f64],
        levels: &[Option<Vec<f64>>],
    ) -> Result<()> {
        let d = self.settings.n_features;
        Error::check_len("centers", in_units.len(), k.max(1) * d, "entries")?;
        let n = if self.has_levels() { d } else { levels.len().min(d) };
        Error::check_len("The costs of levels", levels.len(), n, "columns")?;
        for (column, costs) in self.columns.iter().zip(levels) {
            let of_levels = costs.as_ref().map(Vec::len);
            let wanted = column.n_levels().map(|n_levels| k * n_levels);
            let (of_levels, wanted) = (of_levels.map_or(0, |n| n + 1), wanted.map_or(0, |n| n + 1));
            Error::check_len("The costs of levels", of_levels, wanted, "entries and one")?;
        }
        Ok(())
    }

    /// Takes the clusters that were found among [`PartsFit::wanted`].
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree; [`Error::Value`] if no clusters are wanted.
    pub fn set_reference(&mut self, found: FoundReference) -> Result<()> {
        let FoundReference { scale, in_units, levels, own, low, shares, inertia } = found;
        let (d, k) = (self.settings.n_features, in_units.len() / self.settings.n_features);
        self.check_geometry(k, &in_units, &levels)?;
        Error::check_len("scale", scale.len(), d, "entries")?;
        let width: usize = self.columns.iter().map(PartColumn::width).sum();
        Error::check_len("centers", own.len(), k * width, "entries")?;
        Error::check_len("centers", low.len(), k * width, "entries")?;
        if !shares.is_empty() {
            Error::check_len("The shares of levels", shares.len(), k * width, "entries")?;
        }
        let Phase::Reference { columns, units, .. } =
            std::mem::replace(&mut self.phase, Phase::Failed)
        else {
            return Err(Error::Value("The fit wants no clusters.".into()));
        };
        let is_given = !matches!(self.settings.reference, ReferenceRule::Sample { .. });
        let units = Units { scale, ..units };
        let base = Base {
            geometry: Geometry { units, centers: in_units, metric: self.settings.metric, levels },
            own,
            low,
            shares,
            inertia,
            spread: vec![],
            cost_of_sample: None,
            ends: columns.ends,
        };
        let stays = is_given || self.settings.metric == Metric::Manhattan;
        self.phase = match stays || self.n_rows() <= REFERENCE_ROWS {
            true => self.grow(base)?,
            false => Phase::Lloyd { base, pass: 0 },
        };
        Ok(())
    }

    /// The places of [`ReferenceRows`]: all, or one of each of as many runs.
    pub(super) fn reference_places(&self) -> Vec<u64> {
        let n = match &self.settings.reference {
            ReferenceRule::Centers { .. } | ReferenceRule::Labels => return vec![],
            ReferenceRule::Sample { .. } => self.n_rows(),
        };
        let start = |i: u64| (u128::from(i) * u128::from(n) / u128::from(REFERENCE_ROWS)) as u64;
        match n <= REFERENCE_ROWS {
            true => (0..n).collect(),
            false => {
                (0..REFERENCE_ROWS).map(|i| start(i) + mix(i) % (start(i + 1) - start(i))).collect()
            }
        }
    }

    /// Centers move to the means of the rows that are nearest to them (Lloyd's algorithm).
    pub(super) fn move_centers(&self, base: Base, pass: u64, sums: &LeafSums) -> Result<Phase> {
        let (d, k) = (self.settings.n_features, base.geometry.k());
        let weight: Vec<f64> = (0..k).map(|label| sums.weight.rounded(label)).collect();
        let Base { mut geometry, own, low, cost_of_sample, ends, .. } = base;
        let mut numbers = numbers_of(&own, &self.columns);
        let observed = self.observed(&weight, &sums.observed, &sums.levels);
        let groups =
            Sums { weight: &weight, moments: &sums.moments, observed: observed.as_deref() };
        let (rest, spread, squares) = self.settle(groups, &mut numbers, false, &geometry.units);
        let scale = &geometry.units.scale;
        let cost = sums.minimum.rounded(0);
        check_distances(cost, &spread)?;
        for (i, mean) in numbers.iter_mut().enumerate() {
            *mean += rest[i] * scale[i % d];
        }
        let (own, gain_of_levels) = self.moved(own, &numbers, sums, scale);
        // At the same labels the cost falls by what the sum of squares about the centers exceeds that about the means.
        let gain = squares.iter().sum::<f64>() - spread.iter().sum::<f64>() + gain_of_levels;
        let cost_of_sample = Some(cost_of_sample.unwrap_or(cost));
        let pass = (pass + 1 < LLOYD_PASSES && gain > LLOYD_GAIN * cost).then_some(pass + 1);
        if !self.has_levels() {
            geometry.centers = in_units(&own, &geometry.units);
        }
        let (shares, spread, inertia) = (vec![], vec![], None);
        let base = Base { geometry, own, low, shares, inertia, spread, cost_of_sample, ends };
        match pass {
            pass if self.has_levels() => Ok(Phase::Moved { base, pass }),
            Some(pass) => Ok(Phase::Lloyd { base, pass }),
            None => self.grow(base),
        }
    }

    /// The centers with other numbers and with the shares that levels have in their clusters, and by how much these lower
    /// the cost. A cluster without an observed level keeps its shares.
    fn moved(
        &self,
        mut own: Vec<f64>,
        numbers: &[f64],
        sums: &LeafSums,
        scale: &[f64],
    ) -> (Vec<f64>, f64) {
        let (d, width) = (self.columns.len(), self.columns.iter().map(PartColumn::width).sum());
        let mut gain = 0.0;
        for (label, center) in own.chunks_mut(width).enumerate() {
            let mut first = 0;
            for (f, column) in self.columns.iter().enumerate() {
                let center = &mut center[first..first + column.width()];
                first += column.width();
                match (column.n_levels(), &sums.levels[f]) {
                    (Some(n), Some(weights)) => {
                        let weights: Vec<f64> =
                            (0..n).map(|code| weights.rounded(label * n + code)).collect();
                        let total: f64 = weights.iter().sum();
                        for (share, weight) in center.iter_mut().zip(weights) {
                            if total > 0.0 {
                                let before = std::mem::replace(share, weight / total);
                                // Two levels are 1 / scale apart: sqrt(1/2) of that in each coordinate.
                                let apart = (before - *share) / scale[f];
                                gain += total * apart * apart / 2.0;
                            }
                        }
                    }
                    _ => center[0] = numbers[label * d + f],
                }
            }
        }
        (own, gain)
    }
}
