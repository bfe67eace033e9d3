//! What parts of the rows answer. Answers of disjoint rows add up, in any order.

use std::collections::BTreeMap;
use std::ops::Range;

use super::base_ask::BaseSums;
use super::bytes::{Reader, Writer};
use super::classes::{Classes, LabelRule};
use super::columns::{FoundColumn, PartColumn};
use super::label_means::MeansSums;
use super::question::{Ask, ColumnBins, Open, Question};
use crate::error::{Error, Result};
use crate::exact::ExactSums;

const KIND: u8 = b'a';

/// How many rows a part has, and a sum over them that tells whether they are the same the next time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartRows {
    /// Number of rows.
    pub n: u64,
    /// The sum of a hash of each, in any order.
    pub checksum: u64,
}

/// The answer of some parts to a question.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The question's.
    pub id: (u64, u64),
    /// By number the parts that have answered.
    pub parts: BTreeMap<u64, PartRows>,
    pub(crate) body: Body,
}

/// What they answer: an entry for each of the question's.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// The rows of least hash, ascending; what all rows hold by column, empty where there are none; and the classes of
    /// those that are fitted, if they bring labels.
    Sample {
        size: usize,
        rows: Vec<SampledRow>,
        columns: Vec<FoundColumn>,
        classes: Option<Classes>,
    },
    /// By place the cells and the weight.
    Rows(BTreeMap<u64, Vec<f64>>),
    /// Whether weights were given, and the bins of opened ranges, of weights.
    Ranks { weighted: bool, opened: Vec<Bins> },
    /// By column the sum and the weight of its observed cells, and their largest difference from the origin; of columns
    /// of levels the weight of each level.
    Moments { sums: ExactSums, largest: Vec<f64>, levels: Vec<Option<ExactSums>> },
    /// Sums over the rows of each label.
    Means(Box<MeansSums>),
    /// Sums over nodes of a base tree.
    Base(Box<BaseSums>),
    /// Bins by node and column, and those of opened ranges.
    Grow { fills: Vec<Vec<Bins>>, opened: Vec<Bins> },
    /// Sums over leaves.
    Leaves(Box<LeafSums>),
}

/// A row that was drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SampledRow {
    pub hash: u64,
    /// Its part, and its place there.
    pub place: (u64, u64),
    pub cells: Vec<f64>,
}

/// Rows of a node in bins of a column.
#[derive(Debug, Clone)]
pub(crate) struct Bins {
    /// Whether every bin is a value that some row has: their number is then not known beforehand.
    pub of_values: bool,
    pub count: Vec<u64>,
    /// Least and largest cell; infinite and reversed in empty bins.
    pub low: Vec<f64>,
    pub high: Vec<f64>,
    /// `width` of each bin, if they were asked for.
    pub sums: Option<ExactSums>,
    pub width: usize,
}

impl Bins {
    /// Adds the bins of other rows.
    ///
    /// # Errors
    /// [`Error::Value`] if they are not the same bins.
    pub fn merge(&mut self, other: &Bins) -> Result<()> {
        if self.of_values {
            let are_alike = other.of_values
                && self.width == other.width
                && [self, other].iter().all(|bins| bins.sums.is_some());
            if are_alike {
                self.unite(other);
            }
            return if are_alike { Ok(()) } else { Err(other_question()) };
        }
        if self.count.len() != other.count.len() {
            return Err(other_question());
        }
        self.count.iter_mut().zip(&other.count).for_each(|(a, b)| *a += b);
        self.low.iter_mut().zip(&other.low).for_each(|(a, b)| *a = a.min(*b));
        self.high.iter_mut().zip(&other.high).for_each(|(a, b)| *a = a.max(*b));
        match (&mut self.sums, &other.sums) {
            (None, None) => Ok(()),
            (Some(own), Some(others)) if own.len() == others.len() => {
                own.merge(others);
                Ok(())
            }
            _ => Err(other_question()),
        }
    }

    /// The union of the values; both have as many sums of each.
    pub(super) fn unite(&mut self, other: &Bins) {
        let (Some(own), Some(others)) = (&self.sums, &other.sums) else { return };
        let width = self.width;
        let none = ExactSums::new(width);
        let (mut of_own, mut of_others) = (vec![], vec![]);
        let (mut count, mut values) = (vec![], vec![]);
        let (mut i, mut j) = (0, 0);
        while i < self.low.len() || j < other.low.len() {
            let a = self.low.get(i).copied().unwrap_or(f64::INFINITY);
            let b = other.low.get(j).copied().unwrap_or(f64::INFINITY);
            let (takes_own, takes_other) = (a <= b, b <= a);
            values.push(a.min(b));
            let mut n = 0;
            if takes_own {
                n += self.count[i];
                of_own.push((own, i * width..(i + 1) * width));
                i += 1;
            } else {
                of_own.push((&none, 0..width));
            }
            if takes_other {
                n += other.count[j];
                of_others.push((others, j * width..(j + 1) * width));
                j += 1;
            } else {
                of_others.push((&none, 0..width));
            }
            count.push(n);
        }
        let mut sums = ExactSums::gather(&of_own);
        sums.merge(&ExactSums::gather(&of_others));
        (self.low, self.high) = (values.clone(), values);
        (self.count, self.sums) = (count, Some(sums));
    }

    pub fn write(&self, writer: &mut Writer) {
        let filled = || (0..self.count.len()).filter(|&bin| self.count[bin] > 0);
        writer.u8(u8::from(self.of_values) + 2 * u8::from(self.sums.is_some()));
        writer.short(self.width as u64);
        writer.short(self.count.len() as u64);
        writer.short(filled().count() as u64);
        let mut next = 0;
        for bin in filled() {
            let (low, high) = (self.low[bin], self.high[bin]);
            let is_range = low.to_bits() != high.to_bits();
            writer.short(2 * (bin - next) as u64 + u64::from(is_range));
            next = bin + 1;
            writer.short(self.count[bin]);
            writer.f64(low);
            if is_range {
                writer.f64(high);
            }
            if let Some(sums) = &self.sums {
                writer.sums(sums, bin * self.width..(bin + 1) * self.width);
            }
        }
    }

    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let form = reader.u8()?;
        let (of_values, has_sums) = (form & 1 == 1, form & 2 == 2);
        let [width, n, n_filled] = [reader.short()?, reader.short()?, reader.short()?];
        if form > 3 || n_filled > n || n.saturating_mul(width.max(1)) > MAX_SUMS_READ {
            return Err(reader.broken());
        }
        let (width, n) = (width as usize, n as usize);
        let mut sums = has_sums.then(|| ExactSums::new(n * width));
        let mut bins = Bins::empty(n, of_values, width);
        let mut next = 0;
        for _ in 0..n_filled {
            let place = reader.short()?;
            let bin = usize::try_from(place / 2).map_or(n, |skipped| skipped.saturating_add(next));
            if bin >= n {
                return Err(reader.broken());
            }
            next = bin + 1;
            bins.count[bin] = reader.short()?;
            bins.low[bin] = reader.f64()?;
            bins.high[bin] = if place % 2 == 1 { reader.f64()? } else { bins.low[bin] };
            let is_range = bins.low[bin] <= bins.high[bin];
            if of_values && !is_range || bins.count[bin] == 0 {
                return Err(reader.broken());
            }
            if let Some(sums) = &mut sums {
                reader.sums(sums, bin * width..(bin + 1) * width)?;
            }
        }
        bins.sums = sums;
        Ok(bins)
    }

    /// Puts smaller bins in the place of opened ones, ascending, that they are of; all have sums. Those of labels that were
    /// not asked for are all in the first of them.
    ///
    /// # Errors
    /// [`Error::Value`] if they do not hold the rows of the opened ones; the bins are then as they were.
    pub fn put<'o>(&mut self, opened: impl IntoIterator<Item = (&'o Open, Bins)>) -> Result<()> {
        let Some(sums) = &self.sums else { return Ok(()) };
        let (n, width) = (self.count.len(), self.width);
        let mut all = Bins::empty(0, self.of_values, width);
        let (mut next, mut kept, mut insides) = (0, vec![], vec![]);
        for (open, mut smaller) in opened {
            let is_it = |&bin: &usize| open.holds(self.low[bin], self.high[bin]);
            let Some(bin) = (next..n).find(is_it) else { continue };
            let total = smaller.total();
            let Some(inside) = smaller.sums.take() else { continue };
            let of_bin = ExactSums::gather(&[(sums, bin * width..(bin + 1) * width)]);
            let labels = open.labels.as_slice();
            let of_labels: Vec<_> = match labels {
                [] => vec![(&of_bin, 0..width)],
                labels => labels.iter().map(|&l| (&of_bin, l..l + 1)).collect(),
            };
            let is_all = total.equals(&ExactSums::gather(&of_labels));
            if smaller.n_rows() != self.count[bin] || !is_all {
                return Err(Error::Value(format!(
                    "The rows of column {} (counting from 0) from {} to {} are not those of before: an answer or a checkpoint of the fit is damaged.",
                    open.feature, open.low, open.high
                )));
            }
            insides.push(if labels.is_empty() { inside } else { inside.spread(labels, &of_bin) });
            kept.push(next..bin);
            all.extend(self, next..bin);
            all.extend(&smaller, 0..smaller.count.len());
            next = bin + 1;
        }
        all.extend(self, next..n);
        let places = |bins: &Range<usize>| bins.start * width..bins.end * width;
        let mut pieces = vec![];
        for (bins, inside) in kept.iter().zip(&insides) {
            pieces.extend([(sums, places(bins)), (inside, 0..inside.len())]);
        }
        pieces.push((sums, places(&(next..n))));
        all.sums = Some(ExactSums::gather(&pieces));
        *self = all;
        Ok(())
    }

    /// Appends some bins of others, without their sums.
    fn extend(&mut self, other: &Bins, bins: Range<usize>) {
        self.count.extend(&other.count[bins.clone()]);
        self.low.extend(&other.low[bins.clone()]);
        self.high.extend(&other.high[bins]);
    }

    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        self.count.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The sums over all bins; 0 without sums.
    pub fn total(&self) -> ExactSums {
        match self.sums.as_ref().filter(|sums| !sums.is_empty()) {
            None => ExactSums::new(self.width),
            Some(sums) => {
                let mut up_to = sums.clone();
                up_to.accumulate(self.width);
                ExactSums::gather(&[(&up_to, sums.len() - self.width..sums.len())])
            }
        }
    }

    /// Bins without rows and sums.
    pub fn empty(n: usize, of_values: bool, width: usize) -> Self {
        let (low, high) = (vec![f64::INFINITY; n], vec![f64::NEG_INFINITY; n]);
        Bins { of_values, count: vec![0; n], low, high, sums: None, width }
    }
}

pub(super) fn write_all(writer: &mut Writer, bins: &[Bins]) {
    writer.len(bins.len());
    bins.iter().for_each(|bins| bins.write(writer));
}

pub(super) fn read_all(reader: &mut Reader<'_>) -> Result<Vec<Bins>> {
    let n = reader.len(4)?;
    (0..n).map(|_| Bins::read(reader)).collect()
}

/// More sums than the bins of any column have.
const MAX_SUMS_READ: u64 = 1 << 28;

/// Sums over the leaves of a tree.
#[derive(Debug, Clone)]
pub(crate) struct LeafSums {
    /// By node, of leaves.
    pub count: Vec<u64>,
    /// By label the rows that are nearest to it.
    pub labels: Vec<u64>,
    /// n_nodes x k: weight of the rows of each label, by nearest center.
    pub weight: ExactSums,
    /// What the rows cost at least.
    pub minimum: ExactSums,
    /// Weight of the rows that are nearer to another center than to that of their label.
    pub misfit: ExactSums,
    /// What the rows cost about the centers of their labels, more than at least.
    pub regret: ExactSums,
    /// By column, for each group the sum of the differences to its point and that of their squares, with
    /// [`Metric::Manhattan`](crate::costs::Metric) the sum of their sizes and 0; 0 for levels.
    pub moments: Vec<ExactSums>,
    /// By column with missing cells, for each group the weight of those that are not.
    pub observed: Vec<Option<ExactSums>>,
    /// By column of levels, for each group the weight of each level.
    pub levels: Vec<Option<ExactSums>>,
    /// The same of what the rows of each level cost about another, with [`Metric::Manhattan`]; else none.
    pub level_costs: Vec<Option<ExactSums>>,
}

/// The error of a part whose rows are not those of the first round.
pub(super) fn other_rows(part: u64) -> Error {
    Error::Value(format!(
        "Part {part} has other rows than the first time, though as many: a query that is run again may give others. Write its result to a file first, by sink_parquet."
    ))
}

/// The error of answers to different questions.
fn other_question() -> Error {
    Error::Value("Only answers to the same question can be added up.".into())
}

fn add_counts(a: &mut [u64], b: &[u64]) -> Result<()> {
    if a.len() != b.len() {
        return Err(other_question());
    }
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
    Ok(())
}

/// Adds bins to as many others.
pub(super) fn merge_all<'a>(
    own: impl Iterator<Item = &'a mut Bins>,
    mut others: impl Iterator<Item = &'a Bins>,
) -> Result<()> {
    for own in own {
        own.merge(others.next().ok_or_else(other_question)?)?;
    }
    if others.next().is_some() { Err(other_question()) } else { Ok(()) }
}

/// Adds sums of the columns that have any.
fn add_columns(a: &mut [Option<ExactSums>], b: &[Option<ExactSums>]) -> Result<()> {
    if a.len() != b.len() {
        return Err(other_question());
    }
    for pair in a.iter_mut().zip(b) {
        match pair {
            (Some(a), Some(b)) => add_sums(a, b)?,
            (None, None) => {}
            _ => return Err(other_question()),
        }
    }
    Ok(())
}

fn add_sums(a: &mut ExactSums, b: &ExactSums) -> Result<()> {
    if a.len() != b.len() {
        return Err(other_question());
    }
    a.merge(b);
    Ok(())
}

impl Answer {
    /// Adds the answer of other parts to the same question.
    ///
    /// # Errors
    /// [`Error::Value`] if the questions differ, or a part is in both.
    pub fn merge(mut self, other: Answer) -> Result<Answer> {
        if self.id != other.id {
            return Err(other_question());
        }
        for (part, rows) in &other.parts {
            if self.parts.insert(*part, *rows).is_some() {
                return Err(Error::Value(format!(
                    "Part {part} has answered twice: give every part of the data a part_id of its own, and ask each once."
                )));
            }
        }
        match (&mut self.body, other.body) {
            (
                Body::Sample { size, rows, columns, classes },
                Body::Sample { rows: others, columns: of_others, classes: other_classes, .. },
            ) => {
                if columns.is_empty() {
                    *columns = of_others;
                } else if !of_others.is_empty() {
                    if columns.len() != of_others.len() {
                        return Err(other_question());
                    }
                    columns.iter_mut().zip(of_others).for_each(|(own, other)| own.merge(other));
                }
                rows.extend(others);
                rows.sort_unstable_by_key(|row| (row.hash, row.place));
                rows.truncate(*size);
                *classes = match (classes.take(), other_classes) {
                    (Some(own), Some(others)) => Some(own.merge(others)?),
                    (own, others) => own.or(others),
                };
            }
            (Body::Base(own), Body::Base(other)) => {
                if !own.merge(&other)? {
                    return Err(other_question());
                }
            }
            (Body::Means(own), Body::Means(other)) => {
                if own.moments.len() != other.moments.len() {
                    return Err(other_question());
                }
                add_sums(&mut own.weight, &other.weight)?;
                for (own, other) in own.moments.iter_mut().zip(&other.moments) {
                    add_sums(own, other)?;
                }
                add_columns(&mut own.observed, &other.observed)?;
                add_columns(&mut own.levels, &other.levels)?;
            }
            (Body::Rows(rows), Body::Rows(others)) => rows.extend(others),
            (
                Body::Moments { sums, largest, levels },
                Body::Moments { sums: other_sums, largest: others, levels: other_levels },
            ) => {
                add_sums(sums, &other_sums)?;
                add_columns(levels, &other_levels)?;
                largest.iter_mut().zip(others).for_each(|(a, b)| *a = a.max(b));
            }
            (
                Body::Ranks { weighted, opened },
                Body::Ranks { weighted: is_other, opened: others },
            ) => {
                *weighted |= is_other;
                merge_all(opened.iter_mut(), others.iter())?;
            }
            (
                Body::Grow { fills, opened },
                Body::Grow { fills: other_fills, opened: other_opened },
            ) => {
                let own = fills.iter_mut().flatten().chain(opened);
                merge_all(own, other_fills.iter().flatten().chain(&other_opened))?;
            }
            (Body::Leaves(own), Body::Leaves(other)) => {
                add_counts(&mut own.count, &other.count)?;
                add_counts(&mut own.labels, &other.labels)?;
                add_sums(&mut own.weight, &other.weight)?;
                add_sums(&mut own.minimum, &other.minimum)?;
                add_sums(&mut own.misfit, &other.misfit)?;
                add_sums(&mut own.regret, &other.regret)?;
                for (own, other) in own.moments.iter_mut().zip(&other.moments) {
                    add_sums(own, other)?;
                }
                add_columns(&mut own.observed, &other.observed)?;
                add_columns(&mut own.levels, &other.levels)?;
                add_columns(&mut own.level_costs, &other.level_costs)?;
            }
            _ => return Err(other_question()),
        }
        Ok(self)
    }

    /// The answer as bytes: the same for the same rows, however they were shared out and added up.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(KIND);
        writer.u64(self.id.0);
        writer.u64(self.id.1);
        writer.len(self.parts.len());
        for (&part, rows) in &self.parts {
            writer.u64(part);
            writer.u64(rows.n);
            writer.u64(rows.checksum);
        }
        match &self.body {
            Body::Sample { size, rows, columns, classes } => {
                writer.u8(0);
                writer.len(columns.len());
                columns.iter().for_each(|column| column.write(&mut writer));
                writer.len(*size);
                writer.len(rows.len());
                for row in rows {
                    writer.u64(row.hash);
                    writer.u64(row.place.0);
                    writer.u64(row.place.1);
                    writer.f64s(&row.cells);
                }
                Classes::write_some(classes.as_ref(), &mut writer);
            }
            Body::Base(sums) => {
                writer.u8(7);
                sums.write(&mut writer);
            }
            Body::Means(sums) => {
                writer.u8(5);
                sums.write(&mut writer);
            }
            Body::Rows(rows) => {
                writer.u8(1);
                writer.len(rows.len());
                for (&place, cells) in rows {
                    writer.u64(place);
                    writer.f64s(cells);
                }
            }
            Body::Moments { sums, largest, levels } => {
                writer.u8(2);
                writer.f64s(largest);
                writer.sums(sums, 0..sums.len());
                write_columns(&mut writer, levels);
            }
            Body::Grow { fills, opened } => {
                writer.u8(3);
                writer.len(fills.len());
                fills.iter().for_each(|columns| write_all(&mut writer, columns));
                write_all(&mut writer, opened);
            }
            Body::Ranks { weighted, opened } => {
                writer.u8(6);
                writer.u8((*weighted).into());
                write_all(&mut writer, opened);
            }
            Body::Leaves(leaves) => {
                writer.u8(4);
                for counts in [&leaves.count, &leaves.labels] {
                    writer.len(counts.len());
                    counts.iter().for_each(|&n| writer.u64(n));
                }
                writer.sums(&leaves.weight, 0..leaves.weight.len());
                writer.sums(&leaves.minimum, 0..1);
                writer.sums(&leaves.misfit, 0..1);
                writer.sums(&leaves.regret, 0..1);
                writer.len(leaves.moments.len());
                for sums in &leaves.moments {
                    writer.len(sums.len());
                    writer.sums(sums, 0..sums.len());
                }
                for columns in [&leaves.observed, &leaves.levels, &leaves.level_costs] {
                    write_columns(&mut writer, columns);
                }
            }
        }
        writer.finish()
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`Error::Value`] if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes, KIND, "an answer")?;
        let id = (reader.u64()?, reader.u64()?);
        let mut parts = BTreeMap::new();
        for _ in 0..reader.len(24)? {
            let part = reader.u64()?;
            parts.insert(part, PartRows { n: reader.u64()?, checksum: reader.u64()? });
        }
        let body = match reader.u8()? {
            0 => {
                let n = reader.len(59)?;
                let columns = (0..n).map(|_| FoundColumn::read(&mut reader));
                let columns = columns.collect::<Result<_>>()?;
                let size = reader.index()?;
                let mut rows = vec![];
                for _ in 0..reader.len(32)? {
                    let (hash, place) = (reader.u64()?, (reader.u64()?, reader.u64()?));
                    rows.push(SampledRow { hash, place, cells: reader.f64s()? });
                }
                let classes = Classes::read_some(&mut reader)?;
                Body::Sample { size, rows, columns, classes }
            }
            1 => {
                let mut rows = BTreeMap::new();
                for _ in 0..reader.len(16)? {
                    let place = reader.u64()?;
                    rows.insert(place, reader.f64s()?);
                }
                Body::Rows(rows)
            }
            2 => {
                let largest = reader.f64s()?;
                let sums = reader.new_sums(2 * largest.len())?;
                Body::Moments { sums, largest, levels: read_columns(&mut reader)? }
            }
            3 => {
                let mut fills = vec![];
                for _ in 0..reader.len(8)? {
                    fills.push(read_all(&mut reader)?);
                }
                Body::Grow { fills, opened: read_all(&mut reader)? }
            }
            6 => Body::Ranks { weighted: reader.flag()?, opened: read_all(&mut reader)? },
            4 => {
                let mut counts: Vec<Vec<u64>> = vec![];
                for _ in 0..2 {
                    let n = reader.len(8)?;
                    counts.push((0..n).map(|_| reader.u64()).collect::<Result<_>>()?);
                }
                let (labels, count) =
                    (counts.pop().unwrap_or_default(), counts.pop().unwrap_or_default());
                let weight = reader.new_sums(count.len() * labels.len())?;
                let (minimum, misfit) = (reader.new_sums(1)?, reader.new_sums(1)?);
                let regret = reader.new_sums(1)?;
                let mut moments = vec![];
                for _ in 0..reader.len(8)? {
                    let n = reader.index()?;
                    moments.push(reader.new_sums(n)?);
                }
                let (observed, levels) = (read_columns(&mut reader)?, read_columns(&mut reader)?);
                let level_costs = read_columns(&mut reader)?;
                Body::Leaves(Box::new(LeafSums {
                    count,
                    labels,
                    weight,
                    minimum,
                    misfit,
                    regret,
                    moments,
                    observed,
                    levels,
                    level_costs,
                }))
            }
            7 => Body::Base(Box::new(BaseSums::read(&mut reader)?)),
            5 => Body::Means(Box::new(MeansSums::read(&mut reader)?)),
            _ => return Err(reader.broken()),
        };
        reader.end()?;
        Ok(Answer { id, parts, body })
    }

    /// Whether the answer has an entry for everything that was asked.
    pub(crate) fn is_to(&self, question: &Question) -> bool {
        let d = question.n_features;
        self.id == question.id
            && match (&question.ask, &self.body) {
                (Ask::Sample { size }, Body::Sample { size: own, rows, columns, classes }) => {
                    let with_labels = question.labels != LabelRule::None && !rows.is_empty();
                    size == own
                        && rows.iter().all(|row| row.cells.len() == d)
                        && (columns.len() == d || rows.is_empty())
                        && classes.is_some() == with_labels
                }
                (Ask::Base(ask), Body::Base(sums)) => ask.is_answered_by(sums),
                (Ask::Means(ask), Body::Means(sums)) => {
                    let k = sums.weight.len();
                    k * d == ask.points.len()
                        && sums.moments.len() == d
                        && sums.moments.iter().all(|sums| sums.len() == 2 * k)
                        && are_of(question, &sums.observed, k, gap_width)
                        && are_of(question, &sums.levels, k, PartColumn::n_levels)
                }
                (Ask::Rows { places, .. }, Body::Rows(rows)) => {
                    rows.keys().eq(places.iter()) && rows.values().all(|row| row.len() == d + 1)
                }
                (Ask::Moments { .. }, Body::Moments { largest, levels, .. }) => {
                    largest.len() == d && are_of(question, levels, 1, PartColumn::n_levels)
                }
                (Ask::Grow(ask), Body::Grow { fills, opened }) => {
                    let k = ask.geometry.k();
                    let is_filled = |((_, with_sums), columns): (&(usize, bool), &Vec<Bins>)| {
                        let is_whole = |(bins, asked): (&Bins, &ColumnBins)| {
                            bins.count.len() == asked.len()
                                && !bins.of_values
                                && bins.width == k
                                && bins.sums.is_some() == *with_sums
                        };
                        columns.len() == d && columns.iter().zip(&ask.columns).all(is_whole)
                    };
                    fills.len() == ask.fills.len()
                        && ask.fills.iter().zip(fills).all(is_filled)
                        && are_opened(&ask.opens, opened, |open| open.width(k))
                }
                (Ask::Ranks(ask), Body::Ranks { opened, .. }) => {
                    are_opened(&ask.opens, opened, |_| 1)
                }
                (Ask::Leaves(ask), Body::Leaves(leaves)) => {
                    let n_groups = ask.points.len() / d;
                    leaves.count.len() == ask.nodes.len()
                        && leaves.labels.len() == ask.geometry.k()
                        && leaves.moments.len() == d
                        && leaves.moments.iter().all(|sums| sums.len() == n_groups * 2)
                        && are_of(question, &leaves.observed, n_groups, gap_width)
                        && are_of(question, &leaves.levels, n_groups, PartColumn::n_levels)
                        && are_of(question, &leaves.level_costs, n_groups, ask.cost_width())
                }
                _ => false,
            }
    }
}

/// Whether bins are those of opened ranges, each with `width` sums.
pub(super) fn are_opened(opens: &[Open], opened: &[Bins], width: impl Fn(&Open) -> usize) -> bool {
    let is_it = |(open, bins): (&Open, &Bins)| {
        let n = open.ends.as_ref().map(|ends| ends.len() + 1);
        bins.of_values == n.is_none()
            && n.is_none_or(|n| n == bins.count.len())
            && bins.width == width(open)
            && bins.sums.is_some()
    };
    opened.len() == opens.len() && opens.iter().zip(opened).all(is_it)
}

/// Sums of a column with missing cells, by group: the weight of its observed cells.
pub(super) fn gap_width(column: &PartColumn) -> Option<usize> {
    (column.has_gaps && column.levels.is_none()).then_some(1)
}

/// Whether there are `width` sums for each group, of the columns that have any.
fn are_of(
    question: &Question,
    sums: &[Option<ExactSums>],
    n_groups: usize,
    width: impl Fn(&PartColumn) -> Option<usize>,
) -> bool {
    let wanted = question.columns.iter().map(|column| width(column).map(|width| n_groups * width));
    sums.iter().map(|sums| sums.as_ref().map(ExactSums::len)).eq(wanted)
}

/// Appends the sums of the columns that have any.
pub(super) fn write_columns(writer: &mut Writer, columns: &[Option<ExactSums>]) {
    writer.len(columns.len());
    for sums in columns {
        writer.u8(sums.is_some().into());
        if let Some(sums) = sums {
            writer.len(sums.len());
            writer.sums(sums, 0..sums.len());
        }
    }
}

pub(super) fn read_columns(reader: &mut Reader<'_>) -> Result<Vec<Option<ExactSums>>> {
    let column = |reader: &mut Reader<'_>| match reader.flag()? {
        false => Ok(None),
        true => {
            let n = reader.index()?;
            reader.new_sums(n).map(Some)
        }
    };
    let n = reader.len(1)?;
    (0..n).map(|_| column(reader)).collect()
}
