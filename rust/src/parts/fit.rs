//! The fit that asks: which question comes next, and what the answers make of the tree.

use std::collections::BTreeMap;

use super::answer::{Answer, Body, LeafSums, PartRows, SampledRow, other_rows};
use super::bytes::Writer;
use super::checkpoint::write_settings;
use super::columns::{FoundColumn, PartColumn, numbers_of};
use super::gathering::{hash, mix};
use super::growth::{Growth, Replayed, Step, Wanted};
use super::question::{Ask, ColumnBins, Geometry, GrowAsk, LeavesAsk, Question, RowGroups};
use super::result::{Groups, PartsResult, Settled, check_distances};
use super::routing::TestNode;
use crate::binner::bin_ends;
use crate::costs::Units;
use crate::error::{Error, Result};
use crate::exact::ExactSums;
use crate::grow::Limits;

pub(super) const KIND: u8 = b'f';
/// Rows that place the bins.
const SAMPLE: usize = 4096;
/// Rows of which the origins are medians: as [`Units::of`] takes them.
const ORIGIN_ROWS: u64 = 1001;
/// Most sums of a node, as long as a column has [`MIN_BINS`] bins.
const MAX_SUMS: usize = 1 << 20;
const MIN_BINS: usize = 16;
pub(super) const MAX_BINS: usize = 256;
/// Most rows of a bin that is opened to its values: as many bytes as some bins of a node, and a round less.
const MOST_VALUES: u64 = 2048;
/// Rows among which clusters are found.
const REFERENCE_ROWS: u64 = 100_000;
/// Most passes over all rows that move the centers of a sample to the means of their clusters.
const LLOYD_PASSES: u64 = 3;
/// Passes end where the centers move so little that they lower the cost by less than this share.
const LLOYD_GAIN: f64 = 1e-4;

/// Units of the columns.
#[derive(Debug, Clone, PartialEq)]
pub enum ScaleRule {
    /// These.
    Given(Vec<f64>),
    /// The standard deviations.
    Standard,
}

/// The clusters that the tree explains.
#[derive(Debug, Clone, PartialEq)]
pub enum ReferenceRule {
    /// Those of `k` centers, row-major, in the columns' own units: a coordinate for each column of numbers and for each
    /// level of the others.
    Centers {
        /// Their number.
        k: usize,
        /// Their coordinates.
        points: Vec<f64>,
    },
    /// Those that the caller finds among some of the rows ([`PartsFit::wanted`]).
    Sample {
        /// At most so many.
        n_clusters: usize,
    },
}

/// What is fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct PartsSettings {
    /// Number of columns.
    pub n_features: usize,
    /// Their names, for the questions.
    pub names: Vec<u8>,
    /// The clusters.
    pub reference: ReferenceRule,
    /// Units of the columns.
    pub scale: ScaleRule,
    /// Limits of growth; `max_leaves` 0: one for each cluster.
    pub limits: Limits,
    /// Most bins of a column, and most rows that are opened to values: they change the rounds, never the tree.
    pub bins: (usize, u64),
}

impl PartsSettings {
    /// The defaults of `bins`.
    pub fn default_bins(n_features: usize, k: usize) -> (usize, u64) {
        ((MAX_SUMS / (n_features * k).max(1)).clamp(MIN_BINS, MAX_BINS), MOST_VALUES)
    }
}

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
    /// The centers in the columns' own units: as [`ReferenceRule::Centers`].
    pub own: Vec<f64>,
    /// What the clusters cost, where all rows were there.
    pub inertia: Option<f64>,
}

/// What is known of the columns before there is a reference.
pub(super) struct Columns {
    /// Of the bins.
    pub ends: Vec<Vec<f64>>,
    /// [`ReferenceRows::rows`]; empty if the reference is given.
    pub rows: Vec<f64>,
    /// [`ReferenceRows::levels`].
    pub levels: Vec<Option<Vec<f64>>>,
}

/// How far a fit is.
pub(super) enum Phase {
    Sample,
    /// The caller must say what the columns are, by what was found in them.
    Found {
        rows: Vec<SampledRow>,
        columns: Vec<FoundColumn>,
    },
    Rows {
        ends: Vec<Vec<f64>>,
    },
    Mean {
        columns: Columns,
        shift: Vec<f64>,
    },
    Deviation {
        columns: Columns,
        shift: Vec<f64>,
        mean: Vec<f64>,
    },
    /// The caller must find clusters, or say what the levels cost.
    Reference {
        columns: Columns,
        units: Units,
    },
    /// Centers of a sample move to the means of their clusters.
    Lloyd {
        base: Base,
        pass: u64,
    },
    /// The centers have moved, and the caller must say what the levels cost; the next pass follows, if there is one.
    Moved {
        base: Base,
        pass: Option<u64>,
    },
    Grow {
        base: Base,
        growth: Growth,
        wanted: Wanted,
    },
    Leaves {
        base: Base,
        growth: Growth,
        tree: Replayed,
        groups: Groups,
    },
    Done(Box<PartsResult>),
    /// An answer could not be used: its sums leave the range of doubles.
    Failed,
}

/// What growth starts from.
pub(super) struct Base {
    pub geometry: Geometry,
    /// The centers in the columns' own units: a coordinate for each column of numbers and each level of the others.
    pub own: Vec<f64>,
    /// What the reference costs if that is not what the rows cost at least; and what it cost before its centers moved.
    pub inertia: Option<f64>,
    pub cost_of_sample: Option<f64>,
    pub ends: Vec<Vec<f64>>,
}

/// A fit.
pub struct PartsFit {
    pub(super) settings: PartsSettings,
    pub(super) id: u64,
    pub(super) round: u64,
    pub(super) parts: BTreeMap<u64, PartRows>,
    /// What the columns hold; empty before the first answer.
    pub(super) columns: Vec<PartColumn>,
    pub(super) phase: Phase,
}

impl PartsFit {
    /// A fit that has asked nothing yet.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree.
    pub fn new(settings: PartsSettings) -> Result<Self> {
        let d = settings.n_features;
        if let ReferenceRule::Centers { k, points } = &settings.reference {
            Error::check_len("centers", points.len() % k.max(&1), 0, "entries beside whole rows")?;
        }
        if let ScaleRule::Given(scale) = &settings.scale {
            Error::check_len("scale", scale.len(), d, "entries")?;
        }
        let mut writer = Writer::new(KIND);
        write_settings(&mut writer, &settings);
        let id = hash(&writer.finish());
        let (parts, columns) = (BTreeMap::new(), vec![]);
        Ok(PartsFit { settings, id, round: 0, parts, columns, phase: Phase::Sample })
    }

    /// The same for all fits of equal settings.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What is fitted.
    pub fn settings(&self) -> &PartsSettings {
        &self.settings
    }

    /// What the columns hold; empty before [`PartsFit::set_columns`].
    pub fn columns(&self) -> &[PartColumn] {
        &self.columns
    }

    /// The next question; none if the fit is done, or the caller must say something before.
    pub fn question(&self) -> Option<Question> {
        let d = self.settings.n_features;
        let ask = match &self.phase {
            Phase::Sample => Ask::Sample { size: SAMPLE },
            Phase::Rows { .. } => {
                let mut next = 0;
                let start = |(&part, rows): (&u64, &PartRows)| {
                    let start = next;
                    next += rows.n;
                    (part, start)
                };
                let starts = self.parts.iter().map(start).collect();
                let mut places = origin_places(self.n_rows());
                places.extend(self.reference_places());
                places.sort_unstable();
                places.dedup();
                Ask::Rows { starts, places }
            }
            Phase::Mean { shift, .. } => {
                Ask::Moments { shift: shift.clone(), mean: vec![0.0; d], power: 1 }
            }
            Phase::Deviation { shift, mean, .. } => {
                Ask::Moments { shift: shift.clone(), mean: mean.clone(), power: 2 }
            }
            Phase::Found { .. } | Phase::Reference { .. } | Phase::Moved { .. } => return None,
            Phase::Lloyd { base, .. } => Ask::Leaves(LeavesAsk {
                geometry: base.geometry.clone(),
                nodes: vec![TestNode::leaf()],
                groups: RowGroups::Nearest,
                points: numbers_of(&base.own, &self.columns),
            }),
            Phase::Grow { base, growth, wanted } => Ask::Grow(GrowAsk {
                geometry: base.geometry.clone(),
                columns: self.bins(&base.ends),
                nodes: growth.routing(),
                fills: wanted.fills.clone(),
                opens: wanted.opens.clone(),
            }),
            Phase::Leaves { base, growth, tree, groups } => Ask::Leaves(LeavesAsk {
                geometry: base.geometry.clone(),
                nodes: growth.nodes_of(tree),
                groups: RowGroups::ByLeaf(groups.of_node.clone()),
                points: groups.points.clone(),
            }),
            Phase::Done(_) | Phase::Failed => return None,
        };
        let (names, columns) = (self.settings.names.clone(), self.columns.clone());
        Some(Question { id: (self.id, self.round), n_features: d, names, columns, ask })
    }

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

    /// Whether a column holds levels.
    fn has_levels(&self) -> bool {
        self.columns.iter().any(|column| column.levels.is_some())
    }

    /// The bins of the columns, by the ends of those of numbers.
    fn bins(&self, ends: &[Vec<f64>]) -> Vec<ColumnBins> {
        let bins = |(column, ends): (&PartColumn, &Vec<f64>)| {
            let (form, n_levels) = (column.form(), column.n_levels().unwrap_or(0));
            let ends = match form.is_levels {
                true => (0..n_levels).map(|code| code as f64).collect(),
                false => ends.clone(),
            };
            ColumnBins { ends, form }
        };
        self.columns.iter().zip(ends).map(bins).collect()
    }

    /// What the caller makes clusters of before there is a question, or what given centers cost where columns hold levels:
    /// see [`PartsFit::set_reference`].
    pub fn wanted(&self) -> Option<ReferenceRows> {
        let Phase::Reference { columns, units } = &self.phase else { return None };
        Some(ReferenceRows {
            units: units.clone(),
            levels: columns.levels.clone(),
            rows: columns.rows.clone(),
            are_all: self.n_rows() <= REFERENCE_ROWS,
        })
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
        let FoundReference { scale, in_units, levels, own, inertia } = found;
        let (d, k) = (self.settings.n_features, in_units.len() / self.settings.n_features);
        self.check_geometry(k, &in_units, &levels)?;
        Error::check_len("scale", scale.len(), d, "entries")?;
        let width: usize = self.columns.iter().map(PartColumn::width).sum();
        Error::check_len("centers", own.len(), k * width, "entries")?;
        let Phase::Reference { columns, units } = std::mem::replace(&mut self.phase, Phase::Failed)
        else {
            return Err(Error::Value("The fit wants no clusters.".into()));
        };
        let is_given = matches!(self.settings.reference, ReferenceRule::Centers { .. });
        let units = Units { scale, ..units };
        let base = Base {
            geometry: Geometry { units, centers: in_units, levels },
            own,
            inertia,
            cost_of_sample: None,
            ends: columns.ends,
        };
        self.phase = match is_given || self.n_rows() <= REFERENCE_ROWS {
            true => self.grow(base)?,
            false => Phase::Lloyd { base, pass: 0 },
        };
        Ok(())
    }

    /// The places of [`ReferenceRows`]: all, or one of each of as many runs.
    fn reference_places(&self) -> Vec<u64> {
        let n = match &self.settings.reference {
            ReferenceRule::Centers { .. } => return vec![],
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

    /// Number of rows, once it is known.
    pub fn n_rows(&self) -> u64 {
        self.parts.values().map(|rows| rows.n).sum()
    }

    /// Number of questions answered.
    pub fn n_rounds(&self) -> u64 {
        self.round
    }

    /// The fitted tree, if the fit is done.
    pub fn result(&self) -> Option<&PartsResult> {
        match &self.phase {
            Phase::Done(result) => Some(result),
            _ => None,
        }
    }

    /// Takes the answer of all parts to the question.
    ///
    /// # Errors
    /// [`Error::Value`] if it is the answer to another question, a part is missing or has other rows than before, there
    /// are no rows, or sums leave the range of doubles. But for the last the fit is then as it was.
    pub fn tell(&mut self, answer: Answer) -> Result<()> {
        let question = self.question().ok_or_else(|| {
            Error::Value("The fit is over: it has no question to be told an answer to.".into())
        })?;
        if !answer.is_to(&question) {
            return Err(Error::Value(
                "This is not the answer to the question that the fit asked last.".into(),
            ));
        }
        self.check_parts(&answer)?;
        let phase = std::mem::replace(&mut self.phase, Phase::Failed);
        if matches!(phase, Phase::Sample) {
            self.parts = answer.parts;
        }
        self.phase = self.next(phase, answer.body)?;
        self.round += 1;
        Ok(())
    }

    /// Checks that the same parts with the same rows have answered.
    fn check_parts(&self, answer: &Answer) -> Result<()> {
        if self.round == 0 {
            let n: u64 = answer.parts.values().map(|rows| rows.n).sum();
            return match n {
                0 => Err(Error::Value(
                    "There are no rows with a positive weight and a value in some column.".into(),
                )),
                _ => Ok(()),
            };
        }
        if let Some(part) = self.parts.keys().find(|part| !answer.parts.contains_key(part)) {
            return Err(Error::Value(format!(
                "Part {part} has not answered: every question goes to all parts."
            )));
        }
        for (part, rows) in &answer.parts {
            let Some(before) = self.parts.get(part) else {
                return Err(Error::Value(format!(
                    "Part {part} was not there before: every question goes to the same parts."
                )));
            };
            if rows.n != before.n {
                return Err(Error::Value(format!(
                    "Part {part} has {} rows now and had {}: a query that is run again may give other rows. Write its result to a file first, by sink_parquet.",
                    rows.n, before.n
                )));
            }
            if rows.checksum != before.checksum {
                return Err(other_rows(*part));
            }
        }
        Ok(())
    }

    fn next(&self, phase: Phase, body: Body) -> Result<Phase> {
        match (phase, body) {
            (Phase::Sample, Body::Sample { rows, columns, .. }) => {
                Ok(Phase::Found { rows, columns })
            }
            (Phase::Rows { ends }, Body::Rows(rows)) => {
                let places = origin_places(self.n_rows());
                let middle = |(feature, column): (usize, &PartColumn)| {
                    if column.levels.is_some() {
                        return 0.0;
                    }
                    let cells = places.iter().map(|place| rows[place][feature]);
                    let mut cells: Vec<f64> = cells.filter(|x| !x.is_nan()).collect();
                    if cells.is_empty() {
                        return column.first.unwrap_or(0.0);
                    }
                    let middle = (cells.len() - 1) / 2;
                    *cells.select_nth_unstable_by(middle, f64::total_cmp).1
                };
                let shift: Vec<f64> = self.columns.iter().enumerate().map(middle).collect();
                let places = self.reference_places();
                let rows = places.iter().flat_map(|place| rows[place].iter().copied()).collect();
                let columns = Columns { ends, rows, levels: vec![] };
                match &self.settings.scale {
                    ScaleRule::Standard => Ok(Phase::Mean { columns, shift }),
                    ScaleRule::Given(scale) => self.start(columns, shift, scale.clone()),
                }
            }
            (Phase::Mean { columns, shift }, Body::Moments { sums, .. }) => {
                // NaN where no cell is observed.
                let mean = |f| sums.rounded(2 * f) / sums.rounded(2 * f + 1);
                let mean = (0..shift.len()).map(mean).map(|x| if x.is_nan() { 0.0 } else { x });
                Ok(Phase::Deviation { columns, mean: mean.collect(), shift })
            }
            (
                Phase::Deviation { mut columns, shift, .. },
                Body::Moments { sums, largest, levels },
            ) => {
                let scale = largest.iter().enumerate().map(|(f, &largest)| {
                    match sums.rounded(2 * f) / sums.rounded(2 * f + 1) {
                        variance if variance > 0.0 && variance.is_finite() => Ok(variance.sqrt()),
                        _ if largest == 0.0 => Ok(1.0),
                        _ => Err(Error::Value(format!(
                            "The squares of column {f} (counting from 0) leave the range of float64: rescale it, or give scale= the columns' units."
                        ))),
                    }
                });
                let scale = scale.collect::<Result<Vec<f64>>>()?;
                let rounded = |sums: &Option<ExactSums>| sums.as_ref().map(ExactSums::all_rounded);
                columns.levels = levels.iter().map(rounded).collect();
                self.start(columns, shift, scale)
            }
            (Phase::Lloyd { base, pass }, Body::Leaves(sums)) => {
                self.move_centers(base, pass, &sums)
            }
            (Phase::Grow { base, mut growth, wanted }, Body::Grow { fills, opened }) => {
                growth.tell(&wanted, fills, opened)?;
                Ok(match growth.step()? {
                    Step::Ask(wanted) => Phase::Grow { base, growth, wanted },
                    Step::Done(tree) => {
                        let groups = self.groups(&growth, &tree, &base.own);
                        Phase::Leaves { base, growth, tree, groups }
                    }
                })
            }
            (Phase::Leaves { base, growth, tree, groups }, Body::Leaves(leaves)) => {
                self.finish(base, growth, tree, groups, &leaves)
            }
            _ => Err(Error::Internal("an answer to another question.".into())),
        }
    }

    /// Ends of the columns' bins.
    fn ends(&self, sample: &[SampledRow]) -> Vec<Vec<f64>> {
        let PartsSettings { n_features: d, bins, .. } = &self.settings;
        let ends = |feature: usize| {
            let cells = sample.iter().map(|row| row.cells[feature]);
            let mut cells: Vec<f64> = cells.filter(|x| !x.is_nan()).collect();
            cells.sort_unstable_by(f64::total_cmp);
            match cells.is_empty() {
                true => vec![0.0],
                false => bin_ends(&cells, bins.0.clamp(2, MAX_BINS)).0,
            }
        };
        (0..*d).map(ends).collect()
    }

    /// The columns are known: growth begins, if the centers are known too.
    fn start(&self, columns: Columns, shift: Vec<f64>, scale: Vec<f64>) -> Result<Phase> {
        let units = Units { shift, scale };
        let own = match &self.settings.reference {
            ReferenceRule::Centers { points, .. } if !self.has_levels() => points.clone(),
            _ => return Ok(Phase::Reference { columns, units }),
        };
        let geometry = Geometry { centers: in_units(&own, &units), units, levels: vec![] };
        let ends = columns.ends;
        self.grow(Base { geometry, own, inertia: None, cost_of_sample: None, ends })
    }

    fn grow(&self, base: Base) -> Result<Phase> {
        let growth = self.growth(base.geometry.k())?;
        Ok(Phase::Grow { base, growth, wanted: Growth::first() })
    }

    /// A tree without nodes.
    pub(super) fn growth(&self, k: usize) -> Result<Growth> {
        let PartsSettings { mut limits, bins, .. } = self.settings;
        if limits.max_leaves == 0 {
            limits.max_leaves = k;
        }
        Growth::new(&self.columns, k, limits, bins.1)
    }

    /// Centers move to the means of the rows that are nearest to them (Lloyd's algorithm).
    fn move_centers(&self, base: Base, pass: u64, sums: &LeafSums) -> Result<Phase> {
        let (d, k) = (self.settings.n_features, base.geometry.k());
        let weight: Vec<f64> = (0..k).map(|label| sums.weight.rounded(label)).collect();
        let Base { mut geometry, own, cost_of_sample, ends, .. } = base;
        let mut numbers = numbers_of(&own, &self.columns);
        let Settled { rest, spread, squares, .. } =
            self.settle(&weight, sums, &mut numbers, false, &geometry.units);
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
        let base = Base { geometry, own, inertia: None, cost_of_sample, ends };
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

fn in_units(points: &[f64], units: &Units) -> Vec<f64> {
    let Units { shift, scale } = units;
    let d = shift.len();
    points.iter().enumerate().map(|(i, x)| (x - shift[i % d]) / scale[i % d]).collect()
}

/// Places of up to 1,001 rows at even distances, as [`Units::of`] takes them.
fn origin_places(n: u64) -> Vec<u64> {
    let (n, m) = (u128::from(n), u128::from(n.min(ORIGIN_ROWS)));
    (0..m).map(|i| (i * n / m) as u64).collect()
}
