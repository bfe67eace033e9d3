//! The fit that asks: which question comes next, and what the answers make of the tree.

use std::collections::BTreeMap;

use super::answer::{Answer, Body, PartRows, SampledRow, other_rows};
use super::base::{BaseGrowth, BaseWanted, GrownBase};
use super::base_ask::{BaseAsk, BaseSums};
use super::bytes::Writer;
use super::checkpoint::write_settings;
use super::classes::{Classes, LabelRule};
use super::columns::{FoundColumn, PartColumn, numbers_of};
use super::gathering::hash;
use super::growth::{Growth, Replayed, Step, Wanted};
use super::label_means::{LabelCenters, LabelMeans, rounded};
use super::label_medians::LabelMedians;
use super::quantiles::Ranks;
use super::question::{
    Ask, ColumnBins, Geometry, GrowAsk, LeavesAsk, Question, RanksAsk, RowGroups,
};
use super::result::{Groups, PartsResult};
use super::routing::TestNode;
use crate::binner::bin_ends;
use crate::costs::{Metric, Units};
use crate::criterion::cut_score::CutScore;
use crate::criterion::label_cost::CutKind;
use crate::error::{Error, Result};
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

/// Units of the columns.
#[derive(Debug, Clone, PartialEq)]
pub enum ScaleRule {
    /// These.
    Given(Vec<f64>),
    /// The standard deviations.
    Standard,
    /// The interquartile ranges, as standard deviations of normal columns; where they are 0 the standard deviations.
    Robust,
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
    /// Those of labels that rows bring.
    Labels,
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
    /// How rows are compared with centers.
    pub metric: Metric,
    /// Units of the columns.
    pub scale: ScaleRule,
    /// What the cuts of IMM's base are worth; none: growth starts from one leaf.
    pub base: Option<CutScore>,
    /// The form of the cuts after the base.
    pub cuts: CutKind,
    /// Limits of growth; `max_leaves` 0: one for each cluster.
    pub limits: Limits,
    /// Most bins of a column, and most rows that are opened to values: they change the rounds, never the tree. None: the
    /// defaults.
    pub bins: Option<(usize, u64)>,
}

impl PartsSettings {
    /// Most bins of a column, of `k` sums each.
    fn most_bins(&self, k: usize) -> usize {
        let default = MAX_SUMS / (self.n_features * k).max(1);
        self.bins.map_or(default.max(MIN_BINS), |bins| bins.0).clamp(2, MAX_BINS)
    }

    /// Most rows of a bin that is opened to values.
    fn most_values(&self) -> u64 {
        self.bins.map_or(MOST_VALUES, |bins| bins.1)
    }
}

/// What is known of the columns before there is a reference.
pub(super) struct Columns {
    /// Of the bins.
    pub ends: Vec<Vec<f64>>,
    /// [`ReferenceRows::rows`]; empty if the reference is given.
    pub rows: Vec<f64>,
    /// Units by quartiles, NaN where these tell none; empty if they are not asked for.
    pub spreads: Vec<f64>,
    /// The medians of labels that rows bring, k x d, where they came with the quartiles; else empty.
    pub medians: Vec<f64>,
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
    /// Quartiles of the columns.
    Quartiles {
        columns: Columns,
        shift: Vec<f64>,
        ranks: Ranks,
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
        /// Of labels that rows bring.
        means: Option<Box<LabelCenters>>,
    },
    /// The means of the rows of each label; of medians the levels alone.
    Means(LabelMeans),
    /// Their medians.
    LabelMedians(Box<LabelMedians>),
    /// Centers of a sample move to the means of their clusters.
    Lloyd {
        base: Base,
        pass: u64,
    },
    /// IMM's base grows.
    Base {
        base: Base,
        grown: BaseGrowth,
        wanted: BaseWanted,
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
    /// Medians of the tree's clusters.
    Medians {
        base: Base,
        growth: Growth,
        tree: Replayed,
        groups: Groups,
        ranks: Ranks,
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
    /// The centers in the columns' own units, as unevaluated sums `own + low`: a coordinate for each column of numbers and
    /// each level of the others.
    pub own: Vec<f64>,
    pub low: Vec<f64>,
    /// The same as `own`, with the shares that levels have among the rows of each label, where those are other than what
    /// the centers have; else empty. IMM's base parts centers by them.
    pub shares: Vec<f64>,
    /// What the reference costs if that is not what the rows cost at least, as one number or by label; and what it cost
    /// before its centers moved.
    pub inertia: Option<f64>,
    pub spread: Vec<f64>,
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
    /// Of the labels that rows bring, once they are known.
    pub(super) classes: Option<Classes>,
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
        let (parts, columns, phase) = (BTreeMap::new(), vec![], Phase::Sample);
        Ok(PartsFit { settings, id, round: 0, parts, columns, classes: None, phase })
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
            Phase::Quartiles { columns, ranks, .. } => {
                let opens = ranks.opens(&columns.ends);
                match self.labels_of_medians() {
                    Some(k) => Ask::Ranks(RanksAsk::of_labels(k, opens)),
                    None => Ask::Ranks(RanksAsk {
                        nodes: vec![TestNode::leaf()],
                        groups: vec![0],
                        all: 1,
                        opens,
                    }),
                }
            }
            Phase::Mean { shift, .. } => {
                Ask::Moments { shift: shift.clone(), mean: vec![0.0; d], power: 1 }
            }
            Phase::Deviation { shift, mean, .. } => {
                Ask::Moments { shift: shift.clone(), mean: mean.clone(), power: 2 }
            }
            Phase::Found { .. } | Phase::Reference { .. } | Phase::Moved { .. } => return None,
            Phase::Means(known) => Ask::Means(known.ask()),
            Phase::LabelMedians(known) => Ask::Ranks(known.ask()),
            Phase::Lloyd { base, .. } => Ask::Leaves(LeavesAsk {
                geometry: base.geometry.clone(),
                nodes: vec![TestNode::leaf()],
                groups: RowGroups::Nearest,
                points: numbers_of(&base.own, &self.columns),
            }),
            Phase::Base { base, grown, wanted } => Ask::Base(BaseAsk {
                geometry: base.geometry.clone(),
                columns: self.bins(&base.ends),
                nodes: grown.routing(),
                leaf_of_center: grown.leaf_of_center(),
                fills: wanted.fills.clone(),
                opens: wanted.opens.clone(),
                gaps: wanted.gaps.clone(),
                sides: wanted.sides.clone(),
                centers: grown.centers(wanted),
                totals: wanted.totals,
            }),
            Phase::Grow { base, growth, wanted } => Ask::Grow(GrowAsk {
                geometry: base.geometry.clone(),
                columns: self.bins(&base.ends),
                nodes: growth.routing(),
                fills: wanted.fills.clone(),
                opens: wanted.opens.clone(),
            }),
            Phase::Medians { base, growth, tree, groups, ranks } => Ask::Ranks(RanksAsk {
                nodes: growth.nodes_of(tree),
                groups: groups.of_node.clone(),
                all: base.geometry.k(),
                opens: ranks.opens(&base.ends),
            }),
            Phase::Leaves { base, growth, tree, groups } => Ask::Leaves(LeavesAsk {
                geometry: base.geometry.clone(),
                nodes: growth.nodes_of(tree),
                groups: RowGroups::ByLeaf(groups.of_node.clone()),
                points: groups.points.clone(),
            }),
            Phase::Done(_) | Phase::Failed => return None,
        };
        let labels = match (&self.settings.reference, &self.classes) {
            (_, Some(classes)) => LabelRule::Of(classes.clone()),
            (ReferenceRule::Labels, None) => LabelRule::New,
            _ => LabelRule::None,
        };
        let (names, columns) = (self.settings.names.clone(), self.columns.clone());
        Some(Question { id: (self.id, self.round), n_features: d, names, columns, labels, ask })
    }

    /// Whether a column holds levels.
    pub(super) fn has_levels(&self) -> bool {
        self.columns.iter().any(|column| column.levels.is_some())
    }

    /// Whether a column holds numbers.
    pub(super) fn has_numbers(&self) -> bool {
        self.columns.iter().any(|column| column.levels.is_none())
    }

    /// Whether the columns are complete numbers.
    pub(super) fn is_plain(&self) -> bool {
        !self.has_levels() && !self.columns.iter().any(|column| column.has_gaps)
    }

    /// The bins of the columns, by the ends of those of numbers.
    fn bins(&self, ends: &[Vec<f64>]) -> Vec<ColumnBins> {
        let bins = |(column, ends): (&PartColumn, &Vec<f64>)| {
            let (form, n_levels) = (column.form(), column.n_levels().unwrap_or(0));
            let ends = match form.is_levels {
                true => (0..n_levels).map(|code| code as f64).collect(),
                false => ends.clone(),
            };
            ColumnBins { ends, form, fill: column.fill() }
        };
        self.columns.iter().zip(ends).map(bins).collect()
    }

    /// Number of rows, once it is known.
    pub fn n_rows(&self) -> u64 {
        self.parts.values().map(|rows| rows.n).sum()
    }

    /// The centers of a base that is being grown, k x d, in the columns' own units, as unevaluated sums.
    pub fn base_centers(&self) -> Option<[&[f64]; 2]> {
        match &self.phase {
            Phase::Base { base, .. } => Some([&base.own, &base.low]),
            _ => None,
        }
    }

    /// The classes of the rows' labels, once they are known.
    pub fn classes(&self) -> Option<&Classes> {
        self.classes.as_ref()
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
        // Other rows first: without those that were asked for, it is no answer.
        if answer.id == question.id {
            self.check_parts(&answer)?;
        }
        if !answer.is_to(&question) {
            return Err(Error::Value(
                "This is not the answer to the question that the fit asked last.".into(),
            ));
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Failed);
        let mut body = answer.body;
        if let (Phase::Sample, Body::Sample { classes, .. }) = (&phase, &mut body) {
            (self.parts, self.classes) = (answer.parts, classes.take());
        }
        self.phase = self.next(phase, body)?;
        self.round += 1;
        Ok(())
    }

    /// Checks that the same parts with the same rows have answered.
    fn check_parts(&self, answer: &Answer) -> Result<()> {
        if self.round == 0 {
            let n: u64 = answer.parts.values().map(|rows| rows.n).sum();
            return match n {
                0 if self.settings.reference == ReferenceRule::Labels => Err(Error::Value(
                    "There are no rows with a positive weight and a label other than -1.".into(),
                )),
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
                let (spreads, medians, levels) = (vec![], vec![], vec![]);
                let columns = Columns { ends, rows, spreads, medians, levels };
                match &self.settings.scale {
                    ScaleRule::Robust => {
                        let ranks = self.quartiles();
                        Ok(Phase::Quartiles { columns, shift, ranks })
                    }
                    ScaleRule::Standard => Ok(Phase::Mean { columns, shift }),
                    ScaleRule::Given(scale) => self.start(columns, shift, scale.clone()),
                }
            }
            (
                Phase::Quartiles { mut columns, shift, mut ranks },
                Body::Ranks { weighted, opened },
            ) => {
                let asked = ranks.opens(&columns.ends);
                ranks.tell(&asked, weighted, opened)?;
                if !ranks.opens(&columns.ends).is_empty() {
                    return Ok(Phase::Quartiles { columns, shift, ranks });
                }
                columns.spreads = ranks.spreads();
                if self.labels_of_medians().is_some() {
                    columns.medians = ranks.lower_medians();
                }
                let are_unknown = |(column, spread): (&PartColumn, &f64)| {
                    column.levels.is_none() && spread.is_nan()
                };
                if self.columns.iter().zip(&columns.spreads).any(are_unknown) {
                    return Ok(Phase::Mean { columns, shift });
                }
                if self.has_levels() && self.classes.is_none() {
                    // For the weights of the levels; those of labels come with their means.
                    let mean = vec![0.0; shift.len()];
                    return Ok(Phase::Deviation { columns, shift, mean });
                }
                let unit = |spread: &f64| if spread.is_nan() { 1.0 } else { *spread };
                let scale = columns.spreads.iter().map(unit).collect();
                self.start(columns, shift, scale)
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
                        _ if columns.spreads.get(f).is_some_and(|spread| !spread.is_nan()) => {
                            Ok(columns.spreads[f])
                        }
                        variance if variance > 0.0 && variance.is_finite() => Ok(variance.sqrt()),
                        _ if largest == 0.0 => Ok(1.0),
                        _ => Err(Error::Value(format!(
                            "The squares of column {f} (counting from 0) leave the range of float64: rescale it, or give scale= the columns' units."
                        ))),
                    }
                });
                let scale = scale.collect::<Result<Vec<f64>>>()?;
                columns.levels = rounded(&levels);
                self.start(columns, shift, scale)
            }
            (Phase::Means(known), Body::Means(sums)) => self.know_means(known, &sums),
            (Phase::LabelMedians(known), Body::Ranks { weighted, opened }) => {
                self.know_medians(known, weighted, opened)
            }
            (Phase::Lloyd { base, pass }, Body::Leaves(sums)) => {
                self.move_centers(base, pass, &sums)
            }
            (Phase::Base { base, grown, wanted }, Body::Base(sums)) => {
                self.grow_base(base, grown, &wanted, *sums)
            }
            (Phase::Grow { base, mut growth, wanted }, Body::Grow { fills, opened }) => {
                growth.tell(&wanted, fills, opened)?;
                self.go_on(base, growth)
            }
            (
                Phase::Medians { base, growth, tree, mut groups, mut ranks },
                Body::Ranks { weighted, opened },
            ) => {
                let asked = ranks.opens(&base.ends);
                ranks.tell(&asked, weighted, opened)?;
                if !ranks.opens(&base.ends).is_empty() {
                    return Ok(Phase::Medians { base, growth, tree, groups, ranks });
                }
                for (point, median) in groups.points.iter_mut().zip(ranks.lower_medians()) {
                    if !median.is_nan() {
                        *point = median;
                    }
                }
                Ok(Phase::Leaves { base, growth, tree, groups })
            }
            (Phase::Leaves { base, growth, tree, groups }, Body::Leaves(leaves)) => {
                self.finish(base, growth, tree, groups, &leaves)
            }
            _ => Err(Error::Internal("an answer to another question.".into())),
        }
    }

    /// Ends of the columns' bins.
    pub(super) fn ends(&self, sample: &[SampledRow]) -> Vec<Vec<f64>> {
        let k = match &self.settings.reference {
            ReferenceRule::Centers { k, .. } => *k,
            ReferenceRule::Labels => self.classes.as_ref().map_or(1, Classes::len),
            ReferenceRule::Sample { n_clusters } => *n_clusters,
        };
        let most = self.settings.most_bins(k);
        let ends = |feature: usize| {
            let cells = sample.iter().map(|row| row.cells[feature]);
            let mut cells: Vec<f64> = cells.filter(|x| !x.is_nan()).collect();
            cells.sort_unstable_by(f64::total_cmp);
            match cells.is_empty() {
                true => vec![0.0],
                false => bin_ends(&cells, most).0,
            }
        };
        (0..self.settings.n_features).map(ends).collect()
    }

    /// The columns are known: growth begins, if the centers are known too.
    fn start(&self, columns: Columns, shift: Vec<f64>, scale: Vec<f64>) -> Result<Phase> {
        let units = Units { shift, scale };
        let own = match (&self.settings.reference, &self.classes) {
            (ReferenceRule::Centers { points, .. }, _) if !self.has_levels() => points.clone(),
            (_, Some(classes))
                if self.settings.metric == Metric::Manhattan && !self.has_levels() =>
            {
                return self.begin_medians(columns, units, classes.len(), None);
            }
            (_, Some(classes)) => {
                return Ok(Phase::Means(LabelMeans::new(columns, units, classes.len())));
            }
            _ => return Ok(Phase::Reference { columns, units, means: None }),
        };
        let (metric, low) = (self.settings.metric, vec![0.0; own.len()]);
        let centers = in_units(&own, &units);
        let geometry = Geometry { centers, units, metric, levels: vec![] };
        let ends = columns.ends;
        let (inertia, cost_of_sample, spread) = (None, None, vec![]);
        let shares = vec![];
        self.grow(Base { geometry, own, low, shares, inertia, spread, cost_of_sample, ends })
    }

    /// Takes an answer about the base; growth goes on from its leaves, once all is known.
    fn grow_base(
        &self,
        base: Base,
        mut grown: BaseGrowth,
        wanted: &BaseWanted,
        mut sums: BaseSums,
    ) -> Result<Phase> {
        if let Some(totals) = sums.totals.take() {
            let mut growth = self.growth(base.geometry.k())?;
            growth.begin(GrownBase { tree: grown.tree(), totals });
            return self.go_on(base, growth);
        }
        grown.tell(wanted, sums)?;
        let wanted = grown.next()?;
        Ok(Phase::Base { base, grown, wanted })
    }

    /// Grows as far as is known.
    fn go_on(&self, base: Base, mut growth: Growth) -> Result<Phase> {
        Ok(match growth.step()? {
            Step::Ask(wanted) => Phase::Grow { base, growth, wanted },
            Step::Done(tree) => self.describe(base, growth, tree),
        })
    }

    /// A base tree without nodes.
    pub(super) fn base_growth(&self, base: &Base, score: CutScore) -> BaseGrowth {
        let settings = &self.settings;
        let bins = settings.bins.map(|bins| bins.0);
        let own = if base.shares.is_empty() { &base.own } else { &base.shares };
        let centers = [&own[..], &base.low];
        BaseGrowth::new(score, centers, &self.columns, settings.most_values(), bins)
    }

    pub(super) fn grow(&self, base: Base) -> Result<Phase> {
        if let Some(score) = self.settings.base {
            let mut grown = self.base_growth(&base, score);
            let wanted = grown.next()?;
            return Ok(Phase::Base { base, grown, wanted });
        }
        let growth = self.growth(base.geometry.k())?;
        Ok(Phase::Grow { base, growth, wanted: Growth::first() })
    }

    /// The number of labels that rows bring if their medians are wanted.
    fn labels_of_medians(&self) -> Option<usize> {
        let are_wanted = self.settings.metric == Metric::Manhattan;
        self.classes.as_ref().map(Classes::len).filter(|_| are_wanted)
    }

    /// The search for the quartiles of all rows, and for the medians of labels if these are wanted.
    pub(super) fn quartiles(&self) -> Ranks {
        let (columns, most) = (&self.columns, self.settings.most_values());
        match self.labels_of_medians() {
            Some(k) => Ranks::medians_and_quartiles(k, columns, most),
            None => Ranks::quartiles(columns, most),
        }
    }

    /// The search for the medians of clusters.
    pub(super) fn medians(&self, k: usize) -> Ranks {
        let with_all = !self.is_plain();
        Ranks::medians(k, with_all, &self.columns, self.settings.most_values())
    }

    /// The tree is grown: what is asked of its leaves.
    pub(super) fn describe(&self, base: Base, growth: Growth, tree: Replayed) -> Phase {
        let groups = self.groups(&growth, &tree, &base.own);
        match self.settings.metric {
            Metric::SquaredEuclidean => Phase::Leaves { base, growth, tree, groups },
            Metric::Manhattan if !self.has_numbers() => {
                Phase::Leaves { base, growth, tree, groups }
            }
            Metric::Manhattan => {
                let ranks = self.medians(base.geometry.k());
                Phase::Medians { base, growth, tree, groups, ranks }
            }
        }
    }

    /// A tree without nodes.
    pub(super) fn growth(&self, k: usize) -> Result<Growth> {
        let mut limits = self.settings.limits;
        if limits.max_leaves == 0 {
            limits.max_leaves = k;
        }
        Growth::new(&self.columns, k, limits, self.settings.cuts, self.settings.most_values())
    }
}

pub(super) fn in_units(points: &[f64], units: &Units) -> Vec<f64> {
    let Units { shift, scale } = units;
    let d = shift.len();
    points.iter().enumerate().map(|(i, x)| (x - shift[i % d]) / scale[i % d]).collect()
}

/// Places of up to 1,001 rows at even distances, as [`Units::of`] takes them.
fn origin_places(n: u64) -> Vec<u64> {
    let (n, m) = (u128::from(n), u128::from(n.min(ORIGIN_ROWS)));
    (0..m).map(|i| (i * n / m) as u64).collect()
}
