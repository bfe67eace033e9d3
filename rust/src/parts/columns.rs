//! What the columns of all parts hold: kinds, levels and missing cells.
//!
//! Each part says what its own rows hold ([`FoundColumn`]); these facts add up like all answers. The caller makes of
//! them what every later question says of the columns ([`PartColumn`]), or an error if parts do not go together.

use std::collections::{BTreeMap, BTreeSet};

use super::bytes::{Reader, Writer};
use crate::criterion::ColumnForm;
use crate::error::Result;
use crate::table::MAX_LEVELS;

/// Most levels that are remembered of a column: more than a fit takes, so that an error can say so.
const MAX_REMEMBERED: usize = 16 * (MAX_LEVELS + 1);

/// What the rows of some parts hold in a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundColumn {
    /// The kinds of the column in parts that have a cell with a value, each with the least of these parts.
    pub kinds: BTreeMap<String, u64>,
    /// Its kinds in the other parts, where there are these alone.
    pub empty_kinds: BTreeSet<String>,
    /// The levels that occur.
    pub levels: BTreeSet<String>,
    /// The orders of levels that the column's types declare.
    pub declared: BTreeSet<Vec<String>>,
    /// Whether some part declares none.
    pub is_unordered: bool,
    /// Number of missing cells.
    pub n_missing: u64,
    /// Number of missing cells of the rows that are fitted.
    pub gaps: u64,
    /// The first cell with a value of the rows that are fitted: its part, its place there, and the cell; none of levels.
    pub first: Option<((u64, u64), f64)>,
    /// The least and the largest of these cells.
    pub range: Option<(f64, f64)>,
    /// Of levels the first two that these cells have.
    pub fitted_levels: BTreeSet<String>,
}

impl FoundColumn {
    /// The value of all cells of the rows that are fitted, where those with a value are equal: of `levels` its code.
    pub fn constant(&self, levels: Option<&[String]>) -> Option<f64> {
        match levels {
            None => self.range.filter(|(low, high)| low == high).map(|(low, _)| low),
            Some(levels) => {
                let only = self.fitted_levels.first().filter(|_| self.fitted_levels.len() == 1);
                let code = levels.iter().position(|level| Some(level) == only);
                code.map(|code| code as f64)
            }
        }
    }

    /// Takes note of a level of a row that is fitted.
    pub(super) fn add_level(&mut self, level: &str) {
        if !self.fitted_levels.contains(level) {
            self.fitted_levels.insert(level.into());
            if self.fitted_levels.len() > 2 {
                self.fitted_levels.pop_last();
            }
        }
    }

    /// Takes note of a cell with a value of a row that is fitted, at its place.
    pub(super) fn add_number(&mut self, place: (u64, u64), x: f64) {
        if self.first.is_none_or(|(first, _)| place < first) {
            self.first = Some((place, x));
        }
        let (low, high) = self.range.unwrap_or((x, x));
        self.range = Some((low.min(x), high.max(x)));
    }

    /// Adds what other rows hold.
    pub(super) fn merge(&mut self, other: FoundColumn) {
        for (kind, part) in other.kinds {
            let least = self.kinds.entry(kind).or_insert(part);
            *least = part.min(*least);
        }
        self.empty_kinds.extend(other.empty_kinds);
        if !self.kinds.is_empty() {
            self.empty_kinds.clear(); // a part with a value says more
        }
        self.levels.extend(other.levels);
        while self.levels.len() > MAX_REMEMBERED {
            self.levels.pop_last();
        }
        self.declared.extend(other.declared);
        self.is_unordered |= other.is_unordered;
        self.n_missing = self.n_missing.saturating_add(other.n_missing);
        self.gaps = self.gaps.saturating_add(other.gaps);
        self.first = match (self.first, other.first) {
            (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
            (a, b) => a.or(b),
        };
        self.range = match (self.range, other.range) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        other.fitted_levels.iter().for_each(|level| self.add_level(level));
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        let strings = |writer: &mut Writer, strings: &mut dyn Iterator<Item = &String>| {
            let strings: Vec<&String> = strings.collect();
            writer.len(strings.len());
            strings.into_iter().for_each(|text| writer.bytes(text.as_bytes()));
        };
        strings(writer, &mut self.kinds.keys());
        self.kinds.values().for_each(|&part| writer.u64(part));
        strings(writer, &mut self.empty_kinds.iter());
        strings(writer, &mut self.levels.iter());
        writer.len(self.declared.len());
        self.declared.iter().for_each(|levels| strings(writer, &mut levels.iter()));
        writer.u8(self.is_unordered.into());
        writer.u64(self.n_missing);
        writer.u64(self.gaps);
        writer.u8(self.first.is_some().into());
        if let Some(((part, offset), cell)) = self.first {
            writer.u64(part);
            writer.u64(offset);
            writer.f64(cell);
        }
        writer.u8(self.range.is_some().into());
        self.range.iter().for_each(|&(low, high)| writer.numbers(&[low, high]));
        strings(writer, &mut self.fitted_levels.iter());
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut found = FoundColumn::default();
        for kind in read_texts(reader)? {
            found.kinds.insert(kind, 0);
        }
        for part in found.kinds.values_mut() {
            *part = reader.u64()?;
        }
        found.empty_kinds = read_texts(reader)?.into_iter().collect();
        found.levels = read_texts(reader)?.into_iter().collect();
        for _ in 0..reader.len(8)? {
            found.declared.insert(read_texts(reader)?);
        }
        found.is_unordered = reader.flag()?;
        (found.n_missing, found.gaps) = (reader.u64()?, reader.u64()?);
        if reader.flag()? {
            found.first = Some(((reader.u64()?, reader.u64()?), reader.f64()?));
        }
        if reader.flag()? {
            found.range = Some((reader.f64()?, reader.f64()?));
        }
        found.fitted_levels = read_texts(reader)?.into_iter().collect();
        Ok(found)
    }
}

fn read_texts(reader: &mut Reader<'_>) -> Result<Vec<String>> {
    (0..reader.len(8)?).map(|_| reader.text()).collect()
}

/// What a column holds in all parts.
#[derive(Debug, Clone, PartialEq)]
pub struct PartColumn {
    /// Its kind, in the caller's words.
    pub kind: String,
    /// Its levels by code; none for numbers.
    pub levels: Option<Vec<String>>,
    /// Whether a cell is missing.
    pub has_missing: bool,
    /// Whether a cell of a fitted row is missing.
    pub has_gaps: bool,
    /// The value, or the code of the level, of all cells of these rows that have one; none if they differ, or there are
    /// none.
    pub constant: Option<f64>,
    /// The first cell of the fitted rows with a value; none if there is none, or the column holds levels.
    pub first: Option<f64>,
}

impl PartColumn {
    /// Number of levels; none for numbers.
    pub fn n_levels(&self) -> Option<usize> {
        self.levels.as_ref().map(Vec::len)
    }

    /// Number of coordinates of a point: one, or one for each level.
    pub fn width(&self) -> usize {
        self.n_levels().unwrap_or(1)
    }

    /// What bins of the column hold. Where all observed cells are equal, missing ones count as they do.
    pub fn form(&self) -> ColumnForm {
        let has_missing = self.has_gaps && self.constant.is_none();
        ColumnForm { is_levels: self.levels.is_some(), has_missing }
    }

    /// What missing cells count as; none if they have a bin of their own.
    pub fn fill(&self) -> Option<f64> {
        self.constant.filter(|_| self.has_gaps)
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.bytes(self.kind.as_bytes());
        writer.u8(self.levels.is_some().into());
        if let Some(levels) = &self.levels {
            writer.len(levels.len());
            levels.iter().for_each(|level| writer.bytes(level.as_bytes()));
        }
        writer.u8(self.has_missing.into());
        writer.u8(self.has_gaps.into());
        writer.f64(self.constant.unwrap_or(f64::NAN));
        writer.f64(self.first.unwrap_or(f64::NAN));
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let kind = reader.text()?;
        let levels = if reader.flag()? { Some(read_texts(reader)?) } else { None };
        if levels.as_ref().is_some_and(|levels| levels.len() > MAX_LEVELS) {
            return Err(reader.broken());
        }
        let (has_missing, has_gaps) = (reader.flag()?, reader.flag()?);
        let mut cell = || Ok(Some(reader.f64()?).filter(|cell| !cell.is_nan()));
        let (constant, first) = (cell()?, cell()?);
        let is_code = |code: f64, n: usize| code >= 0.0 && code < n as f64 && code.fract() == 0.0;
        let n_levels = levels.as_ref().map(Vec::len);
        if n_levels.is_some_and(|n| constant.is_some_and(|code| !is_code(code, n))) {
            return Err(reader.broken());
        }
        Ok(PartColumn { kind, levels, has_missing, has_gaps, constant, first })
    }
}

pub(super) fn write_columns(writer: &mut Writer, columns: &[PartColumn]) {
    writer.len(columns.len());
    columns.iter().for_each(|column| column.write(writer));
}

/// Reads what [`write_columns`] wrote: none, or `n_features`.
pub(super) fn read_columns(reader: &mut Reader<'_>, n_features: usize) -> Result<Vec<PartColumn>> {
    let n = reader.len(20)?;
    let columns = (0..n).map(|_| PartColumn::read(reader)).collect::<Result<Vec<_>>>()?;
    if n == 0 || n == n_features { Ok(columns) } else { Err(reader.broken()) }
}

/// What points (n x the columns' widths) have in columns of numbers: n x n_features, 0 for levels.
pub(super) fn numbers_of(points: &[f64], columns: &[PartColumn]) -> Vec<f64> {
    let width: usize = columns.iter().map(PartColumn::width).sum();
    let mut numbers = vec![];
    for point in points.chunks(width.max(1)) {
        let mut first = 0;
        for column in columns {
            let is_number = column.levels.is_none();
            numbers.push(if is_number { point[first] } else { 0.0 });
            first += column.width();
        }
    }
    numbers
}
