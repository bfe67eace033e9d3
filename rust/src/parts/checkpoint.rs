//! Checkpoints: all that a fit without rows knows, as bytes.

use super::answer::PartRows;
use super::bytes::{Reader, Writer};
use super::classes::Classes;
use super::columns::{self, PartColumn};
use super::fit::{
    Base, Columns, KIND, MAX_BINS, PartsFit, PartsSettings, Phase, ReferenceRule, ScaleRule,
};
use super::growth::{Growth, Step};
use super::label_means::{LabelCenters, LabelMeans};
use super::question::{read_geometry, read_metric, write_geometry, write_metric};
use crate::costs::Units;
use crate::criterion::cut_score::CutScore;
use crate::criterion::label_cost::CutKind;
use crate::error::{Error, Result};
use crate::grow::Limits;

impl PartsFit {
    /// A checkpoint: [`PartsFit::from_bytes`] goes on from it.
    ///
    /// # Errors
    /// [`Error::Value`] if the fit is done: its result is the model.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new(KIND);
        write_settings(&mut writer, &self.settings);
        writer.u64(self.round);
        writer.len(self.parts.len());
        for (&part, rows) in &self.parts {
            writer.u64(part);
            writer.u64(rows.n);
            writer.u64(rows.checksum);
        }
        columns::write_columns(&mut writer, &self.columns);
        Classes::write_some(self.classes.as_ref(), &mut writer);
        match &self.phase {
            Phase::Sample => writer.u8(0),
            Phase::Rows { ends } => {
                writer.u8(1);
                ends.iter().for_each(|ends| writer.f64s(ends));
            }
            Phase::Quartiles { columns, shift, ranks } => {
                writer.u8(10);
                write_columns(&mut writer, columns);
                writer.numbers(shift);
                ranks.write(&mut writer);
            }
            Phase::Mean { columns, shift } => {
                writer.u8(2);
                write_columns(&mut writer, columns);
                writer.numbers(shift);
            }
            Phase::Deviation { columns, shift, mean } => {
                writer.u8(3);
                write_columns(&mut writer, columns);
                writer.numbers(shift);
                writer.numbers(mean);
            }
            Phase::Reference { columns, units, means } => {
                writer.u8(6);
                write_columns(&mut writer, columns);
                writer.numbers(&units.shift);
                writer.numbers(&units.scale);
                means.iter().for_each(|means| means.write(&mut writer));
            }
            Phase::Means(known) => {
                writer.u8(8);
                write_columns(&mut writer, known.columns());
                known.write(&mut writer);
            }
            Phase::LabelMedians(known) => {
                writer.u8(13);
                known.write(&mut writer);
            }
            Phase::Lloyd { base, pass } => {
                writer.u8(7);
                write_base(&mut writer, base);
                writer.u64(*pass);
            }
            Phase::Base { base, grown, .. } => {
                writer.u8(12);
                write_base(&mut writer, base);
                grown.write(&mut writer);
            }
            Phase::Grow { base, growth, .. } => {
                writer.u8(4);
                write_base(&mut writer, base);
                growth.write(&mut writer);
            }
            Phase::Medians { base, growth, ranks, .. } => {
                writer.u8(9);
                write_base(&mut writer, base);
                growth.write(&mut writer);
                ranks.write(&mut writer);
            }
            Phase::Leaves { base, growth, groups, .. } => {
                writer.u8(5);
                write_base(&mut writer, base);
                growth.write(&mut writer);
                writer.u8(groups.is_mean.into());
                writer.f64s(&groups.points);
            }
            Phase::Found { .. } | Phase::Moved { .. } => {
                return Err(Error::Internal(
                    "a checkpoint of a fit that waits for its caller.".into(),
                ));
            }
            Phase::Done(_) | Phase::Failed => {
                return Err(Error::Value(
                    "The fit is over: there is nothing to go on with.".into(),
                ));
            }
        }
        Ok(writer.finish())
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// [`Error::Value`] if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes, KIND, "a checkpoint of a fit")?;
        let settings = read_settings(&mut reader)?;
        let d = settings.n_features;
        let mut fit = PartsFit::new(settings)?;
        fit.round = reader.u64()?;
        for _ in 0..reader.len(24)? {
            let part = reader.u64()?;
            fit.parts.insert(part, PartRows { n: reader.u64()?, checksum: reader.u64()? });
        }
        fit.columns = columns::read_columns(&mut reader, d)?;
        fit.classes = Classes::read_some(&mut reader)?;
        if fit.classes.is_some() && fit.settings.reference != ReferenceRule::Labels {
            return Err(reader.broken());
        }
        let phase = reader.u8()?;
        if fit.columns.is_empty() != (phase == 0) {
            return Err(reader.broken());
        }
        fit.phase = match phase {
            0 => Phase::Sample,
            1 => Phase::Rows { ends: read_ends(&mut reader, d)? },
            2 => {
                let columns = fit.read_columns(&mut reader)?;
                Phase::Mean { columns, shift: reader.numbers(d)? }
            }
            3 => {
                let columns = fit.read_columns(&mut reader)?;
                let shift = reader.numbers(d)?;
                Phase::Deviation { columns, shift, mean: reader.numbers(d)? }
            }
            6 => {
                let columns = fit.read_columns(&mut reader)?;
                let (shift, scale) = (reader.numbers(d)?, reader.numbers(d)?);
                let means = match fit.classes.as_ref().map(Classes::len) {
                    Some(k) => Some(Box::new(LabelCenters::read(&mut reader, d, k)?)),
                    None => None,
                };
                Phase::Reference { columns, units: Units { shift, scale }, means }
            }
            8 => {
                let Some(k) = fit.classes.as_ref().map(Classes::len) else {
                    return Err(reader.broken());
                };
                let columns = fit.read_columns(&mut reader)?;
                Phase::Means(LabelMeans::read(&mut reader, columns, d, k)?)
            }
            13 => {
                let Some(k) = fit.classes.as_ref().map(Classes::len) else {
                    return Err(reader.broken());
                };
                Phase::LabelMedians(Box::new(fit.read_medians(&mut reader, k)?))
            }
            12 => {
                let base = read_base(&mut reader, &fit.columns)?;
                let Some(score) = fit.settings.base else { return Err(reader.broken()) };
                let mut grown = fit.base_growth(&base, score);
                grown.read(&mut reader)?;
                let wanted = grown.next()?;
                Phase::Base { base, grown, wanted }
            }
            7 => Phase::Lloyd { base: read_base(&mut reader, &fit.columns)?, pass: reader.u64()? },
            10 => {
                let (columns, shift) = (fit.read_columns(&mut reader)?, reader.numbers(d)?);
                let mut ranks = fit.quartiles();
                ranks.read(&mut reader)?;
                Phase::Quartiles { columns, shift, ranks }
            }
            4 | 5 | 9 => {
                let base = read_base(&mut reader, &fit.columns)?;
                if fit.classes.as_ref().is_some_and(|known| known.len() != base.geometry.k()) {
                    return Err(reader.broken());
                }
                let mut growth = fit.growth(base.geometry.k())?;
                growth.read(&mut reader)?;
                let step = match growth.nodes.is_empty() {
                    true => Step::Ask(Growth::first()),
                    false => growth.step()?,
                };
                match (phase, step) {
                    (4, Step::Ask(wanted)) => Phase::Grow { base, growth, wanted },
                    (5, Step::Done(tree)) => {
                        let mut groups = fit.groups(&growth, &tree, &base.own);
                        groups.is_mean = reader.flag()?;
                        let points = reader.f64s()?;
                        if points.len() != groups.points.len() {
                            return Err(reader.broken());
                        }
                        groups.points = points;
                        Phase::Leaves { base, growth, tree, groups }
                    }
                    (9, Step::Done(tree)) => {
                        let groups = fit.groups(&growth, &tree, &base.own);
                        let mut ranks = fit.medians(base.geometry.k());
                        ranks.read(&mut reader)?;
                        Phase::Medians { base, growth, tree, groups, ranks }
                    }
                    _ => return Err(reader.broken()),
                }
            }
            _ => return Err(reader.broken()),
        };
        reader.end()?;
        Ok(fit)
    }

    /// Reads what [`write_columns`] wrote.
    pub(super) fn read_columns(&self, reader: &mut Reader<'_>) -> Result<Columns> {
        let d = self.settings.n_features;
        let (ends, rows) = (read_ends(reader, d)?, reader.f64s()?);
        let (spreads, medians) = (reader.f64s()?, reader.f64s()?);
        let of_labels = self.classes.as_ref().map_or(0, |classes| classes.len() * d);
        let are_medians = medians.is_empty() || medians.len() == of_labels;
        if !rows.len().is_multiple_of(d + 1) || ![0, d].contains(&spreads.len()) || !are_medians {
            return Err(reader.broken());
        }
        Ok(Columns { ends, rows, spreads, medians, levels: read_levels(reader, d)? })
    }
}

pub(super) fn write_settings(writer: &mut Writer, settings: &PartsSettings) {
    let PartsSettings { n_features, names, reference, metric, scale, base, cuts, limits, bins } =
        settings;
    writer.len(*n_features);
    writer.bytes(names);
    match reference {
        ReferenceRule::Centers { k, points } => {
            writer.u8(0);
            writer.len(*k);
            writer.f64s(points);
        }
        ReferenceRule::Sample { n_clusters } => {
            writer.u8(1);
            writer.len(*n_clusters);
        }
        ReferenceRule::Labels => writer.u8(2),
    }
    write_metric(writer, *metric);
    match scale {
        ScaleRule::Standard => writer.u8(0),
        ScaleRule::Robust => writer.u8(2),
        ScaleRule::Given(scale) => {
            writer.u8(1);
            writer.numbers(scale);
        }
    }
    writer.u8(match base {
        None => 0,
        Some(CutScore::Mistakes) => 1,
        Some(CutScore::Emn) => 2,
    });
    writer.u8((*cuts == CutKind::Interval).into());
    writer.u64(limits.max_leaves as u64);
    writer.u64(limits.max_depth.map_or(0, |most| most as u64 + 1));
    writer.u64(limits.min_samples_leaf as u64);
    let (most_bins, most_values) = bins.unwrap_or((0, 0));
    writer.u8(bins.is_some().into());
    writer.len(most_bins);
    writer.u64(most_values);
}

fn read_settings(reader: &mut Reader<'_>) -> Result<PartsSettings> {
    let n_features = reader.index()?;
    let names = reader.bytes()?.to_vec();
    let reference = match reader.u8()? {
        0 => ReferenceRule::Centers { k: reader.index()?, points: reader.f64s()? },
        1 => ReferenceRule::Sample { n_clusters: reader.index()? },
        2 => ReferenceRule::Labels,
        _ => return Err(reader.broken()),
    };
    let metric = read_metric(reader)?;
    let scale = match reader.u8()? {
        0 => ScaleRule::Standard,
        2 => ScaleRule::Robust,
        1 => ScaleRule::Given(reader.numbers(n_features)?),
        _ => return Err(reader.broken()),
    };
    let base = match reader.u8()? {
        0 => None,
        1 => Some(CutScore::Mistakes),
        2 => Some(CutScore::Emn),
        _ => return Err(reader.broken()),
    };
    let cuts = if reader.flag()? { CutKind::Interval } else { CutKind::Threshold };
    let limits = Limits {
        max_leaves: reader.u64()? as usize,
        max_depth: (reader.u64()? as usize).checked_sub(1),
        min_samples_leaf: reader.u64()? as usize,
    };
    let has_bins = reader.flag()?;
    let bins = Some((reader.index()?, reader.u64()?)).filter(|_| has_bins);
    let is_sound = match &reference {
        ReferenceRule::Centers { k, points } => n_features > 0 && are_points(points, *k),
        ReferenceRule::Sample { .. } | ReferenceRule::Labels => n_features > 0,
    };
    if !is_sound {
        return Err(reader.broken());
    }
    Ok(PartsSettings { n_features, names, reference, metric, scale, base, cuts, limits, bins })
}

/// Whether numbers are whole rows of so many.
fn are_points(numbers: &[f64], n_features: usize) -> bool {
    n_features > 0 && !numbers.is_empty() && numbers.len().is_multiple_of(n_features)
}

pub(super) fn write_columns(writer: &mut Writer, columns: &Columns) {
    columns.ends.iter().for_each(|ends| writer.f64s(ends));
    writer.f64s(&columns.rows);
    writer.f64s(&columns.spreads);
    writer.f64s(&columns.medians);
    write_levels(writer, &columns.levels);
}

fn read_ends(reader: &mut Reader<'_>, d: usize) -> Result<Vec<Vec<f64>>> {
    let ends = (0..d).map(|_| reader.f64s()).collect::<Result<Vec<_>>>()?;
    if ends.iter().any(|ends| ends.is_empty() || ends.len() > MAX_BINS) {
        return Err(reader.broken());
    }
    Ok(ends)
}

fn write_base(writer: &mut Writer, base: &Base) {
    write_geometry(writer, &base.geometry);
    writer.f64s(&base.own);
    writer.f64s(&base.low);
    writer.f64s(&base.shares);
    writer.f64s(&base.spread);
    writer.numbers(&[base.inertia, base.cost_of_sample].map(|cost| cost.unwrap_or(f64::NAN)));
    base.ends.iter().for_each(|ends| writer.f64s(ends));
}

fn read_base(reader: &mut Reader<'_>, columns: &[PartColumn]) -> Result<Base> {
    let d = columns.len();
    let (geometry, own) = (read_geometry(reader, d)?, reader.f64s()?);
    let (low, shares, spread) = (reader.f64s()?, reader.f64s()?, reader.f64s()?);
    let mut cost = || Ok(Some(reader.f64()?).filter(|cost| !cost.is_nan()));
    let (inertia, cost_of_sample) = (cost()?, cost()?);
    let ends = read_ends(reader, d)?;
    let (k, width) = (geometry.k(), columns.iter().map(PartColumn::width).sum::<usize>());
    let of_levels = columns.iter().map(|column| column.n_levels().map(|n| n * k));
    let are_costs = match geometry.levels.is_empty() {
        true => columns.iter().all(|column| column.levels.is_none()),
        false => geometry.levels.iter().map(|costs| costs.as_ref().map(Vec::len)).eq(of_levels),
    };
    let are_shares = shares.is_empty() || shares.len() == own.len();
    if own.len() != k * width || low.len() != own.len() || !are_shares || !are_costs {
        return Err(reader.broken());
    }
    Ok(Base { geometry, own, low, shares, inertia, spread, cost_of_sample, ends })
}

pub(super) fn write_levels(writer: &mut Writer, levels: &[Option<Vec<f64>>]) {
    writer.len(levels.len());
    for weights in levels {
        writer.u8(weights.is_some().into());
        writer.f64s(weights.as_deref().unwrap_or(&[]));
    }
}

pub(super) fn read_levels(reader: &mut Reader<'_>, d: usize) -> Result<Vec<Option<Vec<f64>>>> {
    let n = reader.len(9)?;
    let column = |reader: &mut Reader<'_>| {
        let is_levels = reader.flag()?;
        reader.f64s().map(|weights| is_levels.then_some(weights))
    };
    let levels = (0..n).map(|_| column(reader)).collect::<Result<Vec<_>>>()?;
    if n == 0 || n == d { Ok(levels) } else { Err(reader.broken()) }
}
