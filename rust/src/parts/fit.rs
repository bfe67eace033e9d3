//! The fit that asks: which question comes next, and what the answers make of the tree.

use std::collections::BTreeMap;

use super::answer::{Answer, Body, LeafSums, PartRows, SampledRow};
use super::bytes::{Reader, Writer};
use super::growth::{Growth, Replayed, Step, Wanted};
use super::question::{Ask, Geometry, GrowAsk, LeavesAsk, Question, RoutingNode};
use crate::binner::bin_ends;
use crate::costs::{GroupMeans, Moments, Units, is_good_guess};
use crate::criterion::label_cost::best_label;
use crate::error::{Error, Result};
use crate::exact::ExactSums;
use crate::grow::Limits;
use crate::placement;
use crate::tree::{Test, TestArrays};

const KIND: u8 = b'f';
/// Rows that place the bins.
const SAMPLE: usize = 4096;
/// Rows of which the origins are medians: as [`Units::of`] takes them.
const ORIGIN_ROWS: u64 = 1001;
/// Most sums of a node, as long as a column has [`MIN_BINS`] bins.
const MAX_SUMS: usize = 1 << 20;
const MIN_BINS: usize = 16;
const MAX_BINS: usize = 256;
/// Most rows of a bin that is opened to its values: as many bytes as some bins of a node, and a round less.
const MOST_VALUES: u64 = 2048;
/// Most numbers (groups x columns) for which the means of leaves are taken; of clusters beyond.
const MAX_MEANS: usize = 1_000_000;

/// Units of the columns.
#[derive(Debug, Clone, PartialEq)]
pub enum ScaleRule {
    /// These.
    Given(Vec<f64>),
    /// The standard deviations.
    Standard,
}

/// What is fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct PartsSettings {
    /// Number of columns.
    pub n_features: usize,
    /// Their names, for the questions.
    pub names: Vec<u8>,
    /// k x d, row-major: the centers in the columns' own units.
    pub centers: Vec<f64>,
    /// Units of the columns.
    pub scale: ScaleRule,
    /// Limits of growth.
    pub limits: Limits,
    /// Most bins of a column, and most rows that are opened to values: they change the rounds, never the tree.
    pub bins: (usize, u64),
}

impl PartsSettings {
    /// The defaults of `bins`.
    pub fn default_bins(n_features: usize, k: usize) -> (usize, u64) {
        ((MAX_SUMS / (n_features * k).max(1)).clamp(MIN_BINS, MAX_BINS), MOST_VALUES)
    }

    fn k(&self) -> usize {
        self.centers.len() / self.n_features.max(1)
    }
}

/// How far a fit is.
enum Phase {
    Sample,
    Rows {
        sample: Vec<SampledRow>,
    },
    Mean {
        sample: Vec<SampledRow>,
        shift: Vec<f64>,
    },
    Deviation {
        sample: Vec<SampledRow>,
        shift: Vec<f64>,
        mean: Vec<f64>,
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
struct Base {
    geometry: Geometry,
    ends: Vec<Vec<f64>>,
}

/// Groups of leaves and points near their rows.
struct Groups {
    /// By node.
    of_node: Vec<usize>,
    /// By group one of its leaves.
    leaves: Vec<usize>,
    points: Vec<f64>,
    is_mean: bool,
}

/// A fit.
pub struct PartsFit {
    settings: PartsSettings,
    id: u64,
    round: u64,
    parts: BTreeMap<u64, PartRows>,
    phase: Phase,
}

/// A fitted tree. Entries are by node id, the root first, children after their parents.
#[derive(Debug, Clone)]
pub struct PartsResult {
    /// Tests and children.
    pub tests: TestArrays,
    /// The values beside the cut; NaN at leaves.
    pub beside: [Vec<f64>; 2],
    /// Number of rows.
    pub n_samples: Vec<u64>,
    /// Weight of the rows.
    pub weight: Vec<f64>,
    /// n_nodes x k: weight of the rows of each label.
    pub label_weight: Vec<f64>,
    /// Regret under the best label.
    pub cost: Vec<f64>,
    /// The best label.
    pub cluster: Vec<usize>,
    /// By label the rows nearest to its center.
    pub label_rows: Vec<u64>,
    /// What the rows cost at least.
    pub minimum: f64,
    /// Units of the columns.
    pub units: Units,
    /// The leaf of each group of rows, or one of its leaves, and the groups' means.
    pub leaves: Vec<usize>,
    /// As for [`crate::costs::group_means`].
    pub means: GroupMeans,
}

/// FNV-1a of some bytes.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl PartsFit {
    /// A fit that has asked nothing yet.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree.
    pub fn new(settings: PartsSettings) -> Result<Self> {
        let d = settings.n_features;
        let k = settings.k();
        Error::check_len("centers", settings.centers.len(), k.max(1) * d.max(1), "entries")?;
        if let ScaleRule::Given(scale) = &settings.scale {
            Error::check_len("scale", scale.len(), d, "entries")?;
        }
        let mut writer = Writer::new(KIND);
        write_settings(&mut writer, &settings);
        let id = hash(&writer.finish());
        Ok(PartsFit { settings, id, round: 0, parts: BTreeMap::new(), phase: Phase::Sample })
    }

    /// The next question; none if the fit is done.
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
                let n = u128::from(self.n_rows());
                let m = n.min(ORIGIN_ROWS.into());
                let places = (0..m).map(|i| (i * n / m) as u64).collect();
                Ask::Rows { starts, places }
            }
            Phase::Mean { shift, .. } => {
                Ask::Moments { shift: shift.clone(), mean: vec![0.0; d], power: 1 }
            }
            Phase::Deviation { shift, mean, .. } => {
                Ask::Moments { shift: shift.clone(), mean: mean.clone(), power: 2 }
            }
            Phase::Grow { base, growth, wanted } => Ask::Grow(GrowAsk {
                geometry: base.geometry.clone(),
                ends: base.ends.clone(),
                nodes: growth.routing(),
                fills: wanted.fills.clone(),
                opens: wanted.opens.clone(),
            }),
            Phase::Leaves { base, growth, tree, groups } => Ask::Leaves(LeavesAsk {
                geometry: base.geometry.clone(),
                nodes: routing(growth, tree),
                group: groups.of_node.clone(),
                points: groups.points.clone(),
            }),
            Phase::Done(_) | Phase::Failed => return None,
        };
        let names = self.settings.names.clone();
        Some(Question { id: (self.id, self.round), n_features: d, names, ask })
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
                0 => Err(Error::Value("There are no rows with a positive weight.".into())),
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
                return Err(Error::Value(format!(
                    "Part {part} has other rows than the first time, though as many: a query that is run again may give others. Write its result to a file first, by sink_parquet."
                )));
            }
        }
        Ok(())
    }

    fn next(&self, phase: Phase, body: Body) -> Result<Phase> {
        match (phase, body) {
            (Phase::Sample, Body::Sample { rows, .. }) => Ok(Phase::Rows { sample: rows }),
            (Phase::Rows { sample }, Body::Rows(rows)) => {
                let middle = |feature: usize| {
                    let mut cells: Vec<f64> = rows.values().map(|row| row[feature]).collect();
                    let middle = (cells.len() - 1) / 2;
                    *cells.select_nth_unstable_by(middle, f64::total_cmp).1
                };
                let shift: Vec<f64> = (0..self.settings.n_features).map(middle).collect();
                match &self.settings.scale {
                    ScaleRule::Standard => Ok(Phase::Mean { sample, shift }),
                    ScaleRule::Given(scale) => self.start(&sample, shift, scale.clone()),
                }
            }
            (Phase::Mean { sample, shift }, Body::Moments { sums, .. }) => {
                let total = sums.rounded(0);
                let mean = (0..shift.len()).map(|f| sums.rounded(1 + f) / total).collect();
                Ok(Phase::Deviation { sample, shift, mean })
            }
            (Phase::Deviation { sample, shift, .. }, Body::Moments { sums, largest }) => {
                let total = sums.rounded(0);
                let scale = largest.iter().enumerate().map(|(f, &largest)| {
                    match sums.rounded(1 + f) / total {
                        variance if variance > 0.0 && variance.is_finite() => Ok(variance.sqrt()),
                        _ if largest == 0.0 => Ok(1.0),
                        _ => Err(Error::Value(format!(
                            "The squares of column {f} (counting from 0) leave the range of float64: rescale it, or give scale= the columns' units."
                        ))),
                    }
                });
                let scale = scale.collect::<Result<Vec<f64>>>()?;
                self.start(&sample, shift, scale)
            }
            (Phase::Grow { base, mut growth, wanted }, Body::Grow { fills, opened }) => {
                growth.tell(&wanted, fills, opened)?;
                Ok(match growth.step()? {
                    Step::Ask(wanted) => Phase::Grow { base, growth, wanted },
                    Step::Done(tree) => {
                        let groups = self.groups(&growth, &tree);
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

    /// Growth begins: bins by the sample, centers in units.
    fn start(&self, sample: &[SampledRow], shift: Vec<f64>, scale: Vec<f64>) -> Result<Phase> {
        let PartsSettings { n_features: d, centers, bins, limits, .. } = &self.settings;
        let ends = |feature: usize| {
            let mut cells: Vec<f64> = sample.iter().map(|row| row.cells[feature]).collect();
            cells.sort_unstable_by(f64::total_cmp);
            bin_ends(&cells, bins.0.clamp(2, MAX_BINS)).0
        };
        let ends = (0..*d).map(ends).collect();
        let in_units =
            centers.iter().enumerate().map(|(i, x)| (x - shift[i % d]) / scale[i % d]).collect();
        let geometry = Geometry { units: Units { shift, scale }, centers: in_units };
        let growth = Growth::new(*d, self.settings.k(), *limits, bins.1)?;
        let base = Base { geometry, ends };
        Ok(Phase::Grow { base, growth, wanted: Growth::first() })
    }

    /// The leaves, or the clusters if there are too many leaves, and their centers.
    fn groups(&self, growth: &Growth, tree: &Replayed) -> Groups {
        let (d, n) = (self.settings.n_features, tree.nodes.len());
        let ids: Vec<usize> = (0..n).filter(|&id| tree.left[id] == 0).collect();
        let label = |id: usize| best_label(&growth.nodes[tree.nodes[id]].node.totals);
        let mut of_node = vec![0; n];
        let leaves: Vec<usize> = if ids.len() * d <= MAX_MEANS {
            ids.iter().enumerate().for_each(|(group, &id)| of_node[id] = group);
            ids
        } else {
            let mut first = BTreeMap::new();
            ids.iter().for_each(|&id| {
                first.entry(label(id)).or_insert(id);
            });
            let labels: Vec<usize> = first.keys().copied().collect();
            for &id in &ids {
                of_node[id] = labels.binary_search(&label(id)).unwrap_or(0);
            }
            first.into_values().collect()
        };
        let centers = &self.settings.centers;
        let points = leaves.iter().flat_map(|&id| centers[label(id) * d..][..d].to_vec()).collect();
        Groups { of_node, leaves, points, is_mean: false }
    }

    /// The means of the groups and all that the tree says; another question if the means were guessed badly.
    fn finish(
        &self,
        base: Base,
        growth: Growth,
        tree: Replayed,
        groups: Groups,
        sums: &LeafSums,
    ) -> Result<Phase> {
        let k = self.settings.k();
        let n_nodes = tree.nodes.len();
        let is_leaf = |id: usize| tree.left[id] == 0;
        let of_group = |group: usize| -> Vec<usize> {
            let ids = (0..n_nodes).filter(|&id| is_leaf(id) && groups.of_node[id] == group);
            ids.flat_map(|id| id * k..(id + 1) * k).collect()
        };
        let n_groups = groups.leaves.len();
        let weight: Vec<f64> =
            (0..n_groups).map(|group| sums.weight.combined(&of_group(group), &[])).collect();
        let rounded = |sums: &ExactSums| -> Vec<[f64; 2]> {
            (0..n_groups).map(|i| [sums.rounded(2 * i), sums.rounded(2 * i + 1)]).collect()
        };
        let columns: Vec<_> = sums.moments.iter().map(rounded).collect();
        let moments = Moments {
            weight: &weight,
            observed: None,
            columns: &columns,
            n_samples: self.n_rows() as usize,
        };
        let mut means = groups.points.clone();
        let scale = &base.geometry.units.scale;
        let (rest, spread, squares) = moments.settle(&mut means, groups.is_mean, scale);
        if !groups.is_mean && !is_good_guess(&squares, &spread) {
            let groups = Groups { points: means, is_mean: true, ..groups };
            return Ok(Phase::Leaves { base, growth, tree, groups });
        }
        let minimum = sums.minimum.rounded(0);
        if !minimum.is_finite() || !spread.iter().all(|x| x.is_finite()) {
            return Err(Error::Value(
                "The distances between rows and centers overflow float64. Use scale=\"standard\" or rescale the columns.".into(),
            ));
        }
        let means = GroupMeans { weight, means, rest, spread, observed: None };
        // Sums of inner nodes are those of their leaves; children come after their parents.
        let mut places: Vec<Vec<usize>> = vec![vec![]; n_nodes];
        let mut label_weight = vec![0.0; n_nodes * k];
        for id in (0..n_nodes).rev() {
            places[id] = match tree.left[id] {
                0 => vec![id],
                left => [&places[left][..], &places[left + 1]].concat(),
            };
            for label in 0..k {
                let of_label: Vec<usize> = places[id].iter().map(|leaf| leaf * k + label).collect();
                label_weight[id * k + label] = sums.weight.combined(&of_label, &[]);
            }
        }
        let node = |id: usize| &growth.nodes[tree.nodes[id]];
        let cut = |id: usize| growth.cut(tree.nodes[id]).filter(|_| !is_leaf(id));
        let test = |id: usize| match cut(id) {
            None => Test::Leaf,
            Some(cut) => Test::Threshold {
                feature: cut.feature,
                threshold: placement::between(cut.gap.below, cut.gap.above),
            },
        };
        let ids = || 0..n_nodes;
        let tests: Vec<Test> = ids().map(test).collect();
        let children = tree.left.iter().map(|&left| [left, left + 1]);
        let result = PartsResult {
            tests: TestArrays::of(tests.iter().zip(children)),
            beside: [
                ids().map(|id| cut(id).map_or(f64::NAN, |cut| cut.gap.below)).collect(),
                ids().map(|id| cut(id).map_or(f64::NAN, |cut| cut.gap.above)).collect(),
            ],
            n_samples: ids().map(|id| node(id).n).collect(),
            weight: label_weight.chunks(k).map(|weights| weights.iter().sum()).collect(),
            label_weight,
            cost: ids().map(|id| node(id).node.cost).collect(),
            cluster: ids().map(|id| best_label(&node(id).node.totals)).collect(),
            label_rows: sums.labels.clone(),
            minimum,
            units: base.geometry.units,
            leaves: groups.leaves,
            means,
        };
        Ok(Phase::Done(Box::new(result)))
    }

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
        let write_sample = |writer: &mut Writer, sample: &[SampledRow]| {
            writer.len(sample.len());
            for row in sample {
                writer.u64(row.hash);
                writer.u64(row.place.0);
                writer.u64(row.place.1);
                writer.numbers(&row.cells);
            }
        };
        match &self.phase {
            Phase::Sample => writer.u8(0),
            Phase::Rows { sample } => {
                writer.u8(1);
                write_sample(&mut writer, sample);
            }
            Phase::Mean { sample, shift } => {
                writer.u8(2);
                write_sample(&mut writer, sample);
                writer.numbers(shift);
            }
            Phase::Deviation { sample, shift, mean } => {
                writer.u8(3);
                write_sample(&mut writer, sample);
                writer.numbers(shift);
                writer.numbers(mean);
            }
            Phase::Grow { base, growth, .. } => {
                writer.u8(4);
                write_base(&mut writer, base);
                growth.write(&mut writer);
            }
            Phase::Leaves { base, growth, groups, .. } => {
                writer.u8(5);
                write_base(&mut writer, base);
                growth.write(&mut writer);
                writer.u8(groups.is_mean.into());
                writer.f64s(&groups.points);
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
        let read_sample = |reader: &mut Reader<'_>| -> Result<Vec<SampledRow>> {
            let n = reader.len(24)?;
            let row = |_| {
                let (hash, place) = (reader.u64()?, (reader.u64()?, reader.u64()?));
                Ok(SampledRow { hash, place, cells: reader.numbers(d)? })
            };
            (0..n).map(row).collect()
        };
        let phase = reader.u8()?;
        fit.phase = match phase {
            0 => Phase::Sample,
            1 => Phase::Rows { sample: read_sample(&mut reader)? },
            2 => {
                let sample = read_sample(&mut reader)?;
                Phase::Mean { sample, shift: reader.numbers(d)? }
            }
            3 => {
                let sample = read_sample(&mut reader)?;
                let shift = reader.numbers(d)?;
                Phase::Deviation { sample, shift, mean: reader.numbers(d)? }
            }
            4 | 5 => {
                let base = read_base(&mut reader, &fit.settings)?;
                let PartsSettings { bins, limits, .. } = fit.settings;
                let mut growth = Growth::new(d, fit.settings.k(), limits, bins.1)?;
                growth.read(&mut reader)?;
                let step = match growth.nodes.is_empty() {
                    true => Step::Ask(Growth::first()),
                    false => growth.step()?,
                };
                match (phase, step) {
                    (4, Step::Ask(wanted)) => Phase::Grow { base, growth, wanted },
                    (5, Step::Done(tree)) => {
                        let mut groups = fit.groups(&growth, &tree);
                        groups.is_mean = reader.flag()?;
                        let points = reader.f64s()?;
                        if points.len() != groups.points.len() {
                            return Err(reader.broken());
                        }
                        groups.points = points;
                        Phase::Leaves { base, growth, tree, groups }
                    }
                    _ => return Err(reader.broken()),
                }
            }
            _ => return Err(reader.broken()),
        };
        reader.end()?;
        Ok(fit)
    }
}

/// The tree for routing, in the order of its nodes.
fn routing(growth: &Growth, tree: &Replayed) -> Vec<RoutingNode> {
    let node = |(&id, &left): (&usize, &usize)| match growth.cut(id).filter(|_| left > 0) {
        Some(cut) => RoutingNode { left, feature: cut.feature, below: cut.gap.below },
        None => RoutingNode { left: 0, feature: 0, below: 0.0 },
    };
    tree.nodes.iter().zip(&tree.left).map(node).collect()
}

fn write_settings(writer: &mut Writer, settings: &PartsSettings) {
    let PartsSettings { n_features, names, centers, scale, limits, bins } = settings;
    writer.len(*n_features);
    writer.bytes(names);
    writer.f64s(centers);
    match scale {
        ScaleRule::Standard => writer.u8(0),
        ScaleRule::Given(scale) => {
            writer.u8(1);
            writer.numbers(scale);
        }
    }
    writer.u64(limits.max_leaves as u64);
    writer.u64(limits.max_depth.map_or(0, |most| most as u64 + 1));
    writer.u64(limits.min_samples_leaf as u64);
    writer.len(bins.0);
    writer.u64(bins.1);
}

fn read_settings(reader: &mut Reader<'_>) -> Result<PartsSettings> {
    let n_features = reader.index()?;
    let names = reader.bytes()?.to_vec();
    let centers = reader.f64s()?;
    let scale = match reader.u8()? {
        0 => ScaleRule::Standard,
        1 => ScaleRule::Given(reader.numbers(n_features)?),
        _ => return Err(reader.broken()),
    };
    let limits = Limits {
        max_leaves: reader.u64()? as usize,
        max_depth: (reader.u64()? as usize).checked_sub(1),
        min_samples_leaf: reader.u64()? as usize,
    };
    let bins = (reader.index()?, reader.u64()?);
    if n_features == 0 || centers.is_empty() || centers.len() % n_features != 0 {
        return Err(reader.broken());
    }
    Ok(PartsSettings { n_features, names, centers, scale, limits, bins })
}

fn write_base(writer: &mut Writer, base: &Base) {
    writer.numbers(&base.geometry.units.shift);
    writer.numbers(&base.geometry.units.scale);
    writer.numbers(&base.geometry.centers);
    base.ends.iter().for_each(|ends| writer.f64s(ends));
}

fn read_base(reader: &mut Reader<'_>, settings: &PartsSettings) -> Result<Base> {
    let d = settings.n_features;
    let units = Units { shift: reader.numbers(d)?, scale: reader.numbers(d)? };
    let centers = reader.numbers(settings.centers.len())?;
    let ends = (0..d).map(|_| reader.f64s()).collect::<Result<Vec<_>>>()?;
    if ends.iter().any(|ends| ends.is_empty() || ends.len() > MAX_BINS) {
        return Err(reader.broken());
    }
    Ok(Base { geometry: Geometry { units, centers }, ends })
}
