//! What a fit asks of every part of the rows.

use std::borrow::Cow;

use super::base_ask::BaseAsk;
use super::bytes::{Reader, Writer};
use super::classes::LabelRule;
use super::columns::{PartColumn, read_columns, write_columns};
use super::label_means::MeansAsk;
use super::routing::{TestNode, read_nodes, write_nodes};
use crate::binner::Binner;
use crate::costs::{Metric, Units};
use crate::criterion::ColumnForm;
use crate::error::Result;

const KIND: u8 = b'q';

/// A question of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The fit that asks, and how many questions it has asked before.
    pub id: (u64, u64),
    /// Number of columns.
    pub n_features: usize,
    /// Names of the columns, in whatever form the caller knows them.
    pub names: Vec<u8>,
    /// What the columns hold; empty in the first question.
    pub columns: Vec<PartColumn>,
    /// What is wanted of the rows' labels.
    pub labels: LabelRule,
    /// What is asked.
    pub ask: Ask,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Some rows, drawn by their place.
    Sample {
        /// Most rows.
        size: usize,
    },
    /// The rows at some places of all.
    Rows {
        /// By part its number and the place of its first row.
        starts: Vec<(u64, u64)>,
        /// Ascending.
        places: Vec<u64>,
    },
    /// Weighted sums of powers of the cells about a point.
    Moments {
        /// Origins of the columns, and what is taken off after them.
        shift: Vec<f64>,
        /// As long.
        mean: Vec<f64>,
        /// 1 or 2.
        power: i32,
    },
    /// Weights of groups of rows, by bins.
    Ranks(RanksAsk),
    /// Sums over the rows of each label.
    Means(MeansAsk),
    /// Sums over nodes of a base tree.
    Base(BaseAsk),
    /// Sums over nodes of a tree, by bins.
    Grow(GrowAsk),
    /// Sums over its leaves.
    Leaves(LeavesAsk),
}

/// How rows are compared with centers.
#[derive(Debug, Clone, PartialEq)]
pub struct Geometry {
    /// Origins and units of the columns.
    pub units: Units,
    /// k x d, row-major, in units; not read for columns of levels.
    pub centers: Vec<f64>,
    /// How far a row is from a center.
    pub metric: Metric,
    /// By column of levels what each costs each label (k x number of levels); none for numbers. Empty: all are numbers.
    pub levels: Vec<Option<Vec<f64>>>,
}

impl Geometry {
    /// What a level of a column costs about another, by [`Metric::Manhattan`]: all the same. 0 if there is no other.
    pub(super) fn mismatch(&self, feature: usize) -> f64 {
        let costs = self.levels.get(feature).and_then(Option::as_ref);
        costs.into_iter().flatten().copied().fold(0.0, f64::max)
    }

    /// Number of centers.
    pub fn k(&self) -> usize {
        self.centers.len() / self.units.shift.len().max(1)
    }
}

/// The bins of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBins {
    /// Inclusive upper ends of the bins of values, the last one open above; of levels their codes.
    pub ends: Vec<f64>,
    /// What the bins hold; that of missing cells comes last.
    pub form: ColumnForm,
    /// What missing cells count as, where they have no bin.
    pub fill: Option<f64>,
}

impl ColumnBins {
    /// Number of bins.
    pub fn len(&self) -> usize {
        self.ends.len() + usize::from(self.form.has_missing)
    }

    /// Whether there are no bins: of a column of levels without any.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some cells with what missing ones count as.
    pub(super) fn filled<'a>(&self, cells: &'a [f64]) -> Cow<'a, [f64]> {
        match self.fill {
            None => Cow::Borrowed(cells),
            Some(fill) => cells.iter().map(|&x| if x.is_nan() { fill } else { x }).collect(),
        }
    }

    /// Maps numbers to bins; none for levels, whose codes are their bins.
    pub(super) fn binner(&self) -> Option<Binner> {
        (!self.form.is_levels).then(|| Binner::new(&self.ends))
    }

    /// Calls `visit(place, bin)` for some cells, as [`ColumnBins::filled`] returns them.
    pub(super) fn assign(
        &self,
        binner: Option<&Binner>,
        cells: &[f64],
        mut visit: impl FnMut(usize, usize),
    ) {
        let missing = self.ends.len(); // the last bin, if missing cells have one
        let Some(binner) = binner else {
            for (place, x) in cells.iter().enumerate() {
                visit(place, if x.is_nan() { missing } else { *x as usize });
            }
            return;
        };
        let mut codes = vec![0; cells.len()];
        binner.assign(cells, &mut codes);
        let has_missing = self.form.has_missing;
        for (place, (x, &code)) in cells.iter().zip(&codes).enumerate() {
            visit(place, if has_missing && x.is_nan() { missing } else { code.into() });
        }
    }
}

pub(super) fn write_bins(writer: &mut Writer, columns: &[ColumnBins]) {
    for bins in columns {
        writer.f64s(&bins.ends);
        writer.u8(u8::from(bins.form.is_levels) + 2 * u8::from(bins.form.has_missing));
        writer.f64(bins.fill.unwrap_or(f64::NAN));
    }
}

/// Reads the bins of `d` columns.
pub(super) fn read_bins(reader: &mut Reader<'_>, d: usize) -> Result<Vec<ColumnBins>> {
    let mut columns = vec![];
    for _ in 0..d {
        let (ends, form) = (reader.f64s()?, reader.u8()?);
        let form = ColumnForm { is_levels: form & 1 == 1, has_missing: form & 2 == 2 };
        let fill = Some(reader.f64()?).filter(|x| !x.is_nan());
        let are_ends = ends.len() <= 256 && ends.is_sorted_by(|a, b| a < b);
        if !are_ends || (ends.is_empty() && !form.is_levels) {
            return Err(reader.broken());
        }
        columns.push(ColumnBins { ends, form, fill });
    }
    Ok(columns)
}

/// Sums over nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct GrowAsk {
    /// How rows are compared.
    pub geometry: Geometry,
    /// The bins of each column.
    pub columns: Vec<ColumnBins>,
    /// The tree.
    pub nodes: Vec<TestNode>,
    /// Nodes whose rows are put into bins; whether they are added up, or only counted.
    pub fills: Vec<(usize, bool)>,
    /// Bins that are opened.
    pub opens: Vec<Open>,
}

/// A range of cells of a node's rows along a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// The node.
    pub node: usize,
    /// The column.
    pub feature: usize,
    /// Least cell.
    pub low: f64,
    /// Largest cell.
    pub high: f64,
    /// Inclusive upper ends of smaller bins; none: every value is a bin.
    pub ends: Option<Vec<f64>>,
    /// The labels whose sums are asked for, ascending; empty: all.
    pub labels: Vec<usize>,
}

impl Open {
    /// The values of a range, with all sums.
    pub(super) fn to_values(node: usize, feature: usize, low: f64, high: f64) -> Self {
        Open { node, feature, low, high, ends: None, labels: vec![] }
    }

    /// Whether all cells between two are in the range.
    pub(super) fn holds(&self, low: f64, high: f64) -> bool {
        self.low <= low && low <= high && high <= self.high
    }

    /// Number of sums of a bin, of `k` labels.
    pub(super) fn width(&self, k: usize) -> usize {
        if self.labels.is_empty() { k } else { self.labels.len() }
    }

    /// Whether another range is of the same column and above this one.
    pub(crate) fn is_before(&self, other: &Open) -> bool {
        (self.node, self.feature) == (other.node, other.feature) && self.high < other.low
    }
}

/// How rows are grouped.
#[derive(Debug, Clone, PartialEq)]
pub enum RowGroups {
    /// By node the group of its rows, any at inner nodes.
    ByLeaf(Vec<usize>),
    /// By the nearest center.
    Nearest,
}

/// Weights of groups of rows in ranges of cells.
#[derive(Debug, Clone, PartialEq)]
pub struct RanksAsk {
    /// The tree; empty: the groups are those of the rows' labels.
    pub nodes: Vec<TestNode>,
    /// By node the group of its rows, any at inner nodes.
    pub groups: Vec<usize>,
    /// The number of a group that all rows belong to as well.
    pub all: usize,
    /// The ranges, of groups in the place of nodes.
    pub opens: Vec<Open>,
}

impl RanksAsk {
    /// About the rows of each of `k` labels, and about all.
    pub(super) fn of_labels(k: usize, opens: Vec<Open>) -> Self {
        RanksAsk { nodes: vec![], groups: vec![], all: k, opens }
    }
}

/// Sums over leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct LeavesAsk {
    /// How rows are compared.
    pub geometry: Geometry,
    /// The tree.
    pub nodes: Vec<TestNode>,
    /// The groups of the rows.
    pub groups: RowGroups,
    /// n_groups x d, row-major: the points about which cells are added up.
    pub points: Vec<f64>,
}

impl LeavesAsk {
    /// By column and group, the number of levels of which the cost is added up: with [`Metric::Manhattan`] alone.
    pub(super) fn cost_width(&self) -> fn(&PartColumn) -> Option<usize> {
        match self.geometry.metric {
            Metric::SquaredEuclidean => |_| None,
            Metric::Manhattan => PartColumn::n_levels,
        }
    }
}

pub(super) fn write_geometry(writer: &mut Writer, geometry: &Geometry) {
    writer.numbers(&geometry.units.shift);
    writer.numbers(&geometry.units.scale);
    writer.f64s(&geometry.centers);
    write_metric(writer, geometry.metric);
    writer.len(geometry.levels.len());
    for costs in &geometry.levels {
        writer.u8(costs.is_some().into());
        writer.f64s(costs.as_deref().unwrap_or(&[]));
    }
}

pub(super) fn write_metric(writer: &mut Writer, metric: Metric) {
    writer.u8((metric == Metric::Manhattan).into());
}

pub(super) fn read_metric(reader: &mut Reader<'_>) -> Result<Metric> {
    Ok(if reader.flag()? { Metric::Manhattan } else { Metric::SquaredEuclidean })
}

pub(super) fn read_geometry(reader: &mut Reader<'_>, d: usize) -> Result<Geometry> {
    let units = Units { shift: reader.numbers(d)?, scale: reader.numbers(d)? };
    let centers = reader.f64s()?;
    if centers.is_empty() || centers.len() % d != 0 {
        return Err(reader.broken());
    }
    let metric = read_metric(reader)?;
    let mut levels = vec![];
    for _ in 0..reader.len(9)? {
        let (is_levels, costs) = (reader.flag()?, reader.f64s()?);
        if costs.len() % (centers.len() / d) != 0 {
            return Err(reader.broken());
        }
        levels.push(is_levels.then_some(costs));
    }
    if !levels.is_empty() && levels.len() != d {
        return Err(reader.broken());
    }
    Ok(Geometry { units, centers, metric, levels })
}

impl Question {
    /// The question as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(KIND);
        writer.u64(self.id.0);
        writer.u64(self.id.1);
        writer.len(self.n_features);
        writer.bytes(&self.names);
        write_columns(&mut writer, &self.columns);
        self.labels.write(&mut writer);
        match &self.ask {
            Ask::Sample { size } => {
                writer.u8(0);
                writer.len(*size);
            }
            Ask::Rows { starts, places } => {
                writer.u8(1);
                writer.len(starts.len());
                for &(part, start) in starts {
                    writer.u64(part);
                    writer.u64(start);
                }
                writer.len(places.len());
                places.iter().for_each(|&place| writer.u64(place));
            }
            Ask::Moments { shift, mean, power } => {
                writer.u8(2);
                writer.numbers(shift);
                writer.numbers(mean);
                writer.u8(*power as u8);
            }
            Ask::Means(ask) => {
                writer.u8(5);
                ask.write(&mut writer);
            }
            Ask::Grow(ask) => {
                writer.u8(3);
                write_geometry(&mut writer, &ask.geometry);
                write_bins(&mut writer, &ask.columns);
                write_nodes(&mut writer, &ask.nodes);
                writer.len(ask.fills.len());
                for &(node, with_sums) in &ask.fills {
                    writer.len(node);
                    writer.u8(with_sums.into());
                }
                write_opens(&mut writer, &ask.opens);
            }
            Ask::Ranks(ask) => {
                writer.u8(6);
                writer.u8(ask.nodes.is_empty().into());
                if !ask.nodes.is_empty() {
                    write_nodes(&mut writer, &ask.nodes);
                }
                ask.groups.iter().for_each(|&group| writer.len(group));
                writer.len(ask.all);
                write_opens(&mut writer, &ask.opens);
            }
            Ask::Base(ask) => {
                writer.u8(7);
                ask.write(&mut writer);
            }
            Ask::Leaves(ask) => {
                writer.u8(4);
                write_geometry(&mut writer, &ask.geometry);
                write_nodes(&mut writer, &ask.nodes);
                writer.f64s(&ask.points);
                match &ask.groups {
                    RowGroups::ByLeaf(group) => {
                        writer.u8(0);
                        group.iter().for_each(|&group| writer.len(group));
                    }
                    RowGroups::Nearest => writer.u8(1),
                }
            }
        }
        writer.finish()
    }

    /// Reads a question.
    ///
    /// # Errors
    /// [`Error::Value`](crate::error::Error::Value) if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes, KIND, "a question")?;
        let id = (reader.u64()?, reader.u64()?);
        let d = reader.index()?;
        if d == 0 {
            return Err(reader.broken());
        }
        let names = reader.bytes()?.to_vec();
        let columns = read_columns(&mut reader, d)?;
        let labels = LabelRule::read(&mut reader)?;
        let n_classes = match &labels {
            LabelRule::Of(classes) => Some(classes.len()),
            _ => None,
        };
        let ask = match reader.u8()? {
            0 => Ask::Sample { size: reader.index()? },
            1 => {
                let n = reader.len(16)?;
                let starts = (0..n).map(|_| Ok((reader.u64()?, reader.u64()?)));
                let starts = starts.collect::<Result<_>>()?;
                let n = reader.len(8)?;
                Ask::Rows { starts, places: (0..n).map(|_| reader.u64()).collect::<Result<_>>()? }
            }
            2 => {
                let (shift, mean) = (reader.numbers(d)?, reader.numbers(d)?);
                match reader.u8()? {
                    power @ 1..=2 => Ask::Moments { shift, mean, power: power.into() },
                    _ => return Err(reader.broken()),
                }
            }
            3 => Ask::Grow(read_grow(&mut reader, d)?),
            4 => {
                let geometry = read_geometry(&mut reader, d)?;
                let nodes = read_nodes(&mut reader, d)?;
                let points = reader.f64s()?;
                let n_groups = points.len() / d;
                let (groups, are_groups) = match reader.u8()? {
                    0 => {
                        let group = nodes.iter().map(|_| reader.index());
                        let group = group.collect::<Result<Vec<_>>>()?;
                        let mut of_leaves =
                            nodes.iter().zip(&group).filter(|(node, _)| node.is_leaf());
                        let are_groups = of_leaves.all(|(_, &group)| group < n_groups);
                        (RowGroups::ByLeaf(group), are_groups)
                    }
                    1 => (RowGroups::Nearest, geometry.k() <= n_groups),
                    _ => return Err(reader.broken()),
                };
                if points.len() % d != 0 || !are_groups {
                    return Err(reader.broken());
                }
                if n_classes.is_some_and(|n| n != geometry.k()) {
                    return Err(reader.broken());
                }
                Ask::Leaves(LeavesAsk { geometry, nodes, groups, points })
            }
            7 => {
                let ask = BaseAsk::read(&mut reader, d)?;
                if n_classes.is_some_and(|n| n != ask.geometry.k()) {
                    return Err(reader.broken());
                }
                Ask::Base(ask)
            }
            5 => Ask::Means(MeansAsk::read(&mut reader, d, n_classes.unwrap_or(0))?),
            6 => {
                let by_label = reader.flag()?;
                if by_label && n_classes.is_none() {
                    return Err(reader.broken());
                }
                let nodes = if by_label { vec![] } else { read_nodes(&mut reader, d)? };
                let groups = nodes.iter().map(|_| reader.index());
                let groups = groups.collect::<Result<Vec<_>>>()?;
                let all = reader.index()?;
                let opens = read_opens(&mut reader, d, 0)?;
                Ask::Ranks(RanksAsk { nodes, groups, all, opens })
            }
            _ => return Err(reader.broken()),
        };
        // Only the first question is asked before it is known what columns hold.
        let is_first = matches!(ask, Ask::Sample { .. });
        if is_first != columns.is_empty() || is_first != (id.1 == 0) {
            return Err(reader.broken());
        }
        reader.end()?;
        Ok(Question { id, n_features: d, names, columns, labels, ask })
    }
}

pub(super) fn write_opens(writer: &mut Writer, opens: &[Open]) {
    writer.len(opens.len());
    for open in opens {
        writer.len(open.node);
        writer.len(open.feature);
        writer.f64(open.low);
        writer.f64(open.high);
        writer.u8(open.ends.is_some().into());
        writer.f64s(open.ends.as_deref().unwrap_or(&[]));
        writer.len(open.labels.len());
        open.labels.iter().for_each(|&label| writer.len(label));
    }
}

/// Reads ranges of `d` columns, the sums of which are of `k` labels that may be picked.
pub(super) fn read_opens(reader: &mut Reader<'_>, d: usize, k: usize) -> Result<Vec<Open>> {
    let n = reader.len(49)?;
    let mut opens: Vec<Open> = vec![];
    for _ in 0..n {
        let (node, feature) = (reader.index()?, reader.index()?);
        let (low, high) = (reader.f64()?, reader.f64()?);
        let (has_ends, ends) = (reader.flag()?, reader.f64s()?);
        let n_labels = reader.len(8)?;
        let labels = (0..n_labels).map(|_| reader.index()).collect::<Result<Vec<_>>>()?;
        let is_sound = feature < d && low <= high && ends.is_sorted_by(|a, b| a < b);
        let are_labels = labels.is_sorted_by(|a, b| a < b) && labels.iter().all(|&l| l < k);
        if !is_sound || !are_labels {
            return Err(reader.broken());
        }
        opens.push(Open { node, feature, low, high, ends: has_ends.then_some(ends), labels });
    }
    Ok(opens)
}

fn read_grow(reader: &mut Reader<'_>, d: usize) -> Result<GrowAsk> {
    let geometry = read_geometry(reader, d)?;
    let columns = read_bins(reader, d)?;
    let nodes = read_nodes(reader, d)?;
    let n = reader.len(9)?;
    let fills = (0..n).map(|_| Ok((reader.index()?, reader.flag()?)));
    let fills: Vec<(usize, bool)> = fills.collect::<Result<_>>()?;
    let opens = read_opens(reader, d, geometry.k())?;
    let mut all = fills.iter().map(|fill| fill.0).chain(opens.iter().map(|open| open.node));
    if !all.all(|node| nodes.get(node).is_some_and(TestNode::is_leaf)) {
        return Err(reader.broken());
    }
    Ok(GrowAsk { geometry, columns, nodes, fills, opens })
}
