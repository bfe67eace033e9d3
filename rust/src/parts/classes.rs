//! The classes of rows that bring their labels: what the labels are called.

use super::bytes::{Reader, Writer};
use super::gathering::mix;
use crate::error::{Error, Result};

/// Most classes: questions and answers have sums of each.
pub(super) const MAX_CLASSES: usize = 4096;

/// Distinct labels, ascending.
#[derive(Debug, Clone, PartialEq)]
pub enum Classes {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Words, in the order of their characters' numbers.
    Texts(Vec<String>),
}

impl Classes {
    /// Number of classes.
    pub fn len(&self) -> usize {
        match self {
            Classes::Integers(names) => names.len(),
            Classes::Texts(names) => names.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The classes of both.
    ///
    /// # Errors
    /// [`Error::Value`] if one has numbers and the other words, or there are more than [`MAX_CLASSES`].
    pub(super) fn merge(self, other: Classes) -> Result<Classes> {
        fn union<T: Ord>(mut own: Vec<T>, others: Vec<T>) -> Vec<T> {
            own.extend(others);
            own.sort_unstable();
            own.dedup();
            own
        }
        let both = match (self, other) {
            (Classes::Integers(own), Classes::Integers(others)) => {
                Classes::Integers(union(own, others))
            }
            (Classes::Texts(own), Classes::Texts(others)) => Classes::Texts(union(own, others)),
            (Classes::Integers(numbers), Classes::Texts(words))
            | (Classes::Texts(words), Classes::Integers(numbers)) => {
                let number = numbers.first().copied().unwrap_or_default();
                let word = words.first().cloned().unwrap_or_default();
                return Err(Error::Value(format!(
                    "Labels are integers in some rows ({number}) and text in others ({word:?}). Give all rows labels of one type."
                )));
            }
        };
        both.check_number()?;
        Ok(both)
    }

    /// # Errors
    /// [`Error::Value`] if there are more than [`MAX_CLASSES`].
    pub(super) fn check_number(&self) -> Result<()> {
        if self.len() <= MAX_CLASSES {
            return Ok(());
        }
        Err(Error::Value(format!(
            "The labels have more than {MAX_CLASSES} different values, the most that a fit in parts takes: is this a column of numbers or names? Give the labels of a clustering."
        )))
    }

    /// By class of `other` its place among these.
    ///
    /// # Errors
    /// [`Error::Value`] for a class that is not here.
    pub(super) fn places_of(&self, other: &Classes) -> Result<Vec<u32>> {
        fn places<T: Ord + std::fmt::Debug>(own: &[T], others: &[T]) -> Result<Vec<u32>> {
            let place = |name: &T| match own.binary_search(name) {
                Ok(place) => Ok(place as u32),
                Err(_) => Err(Error::Value(format!(
                    "The label {name:?} was not there the first time: a query that is run again may give other rows. Write its result to a file first, by sink_parquet."
                ))),
            };
            others.iter().map(place).collect()
        }
        match (self, other) {
            (Classes::Integers(own), Classes::Integers(others)) => places(own, others),
            (Classes::Texts(own), Classes::Texts(others)) => places(own, others),
            _ => Err(Error::Value("Labels had another type the first time.".into())),
        }
    }

    /// A hash of each class.
    pub(super) fn hashes(&self) -> Vec<u64> {
        match self {
            Classes::Integers(names) => names.iter().map(|&name| mix(mix(name as u64))).collect(),
            Classes::Texts(names) => {
                let hash =
                    |name: &String| name.bytes().fold(1, |hash, byte| mix(hash ^ u64::from(byte)));
                names.iter().map(hash).collect()
            }
        }
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        match self {
            Classes::Integers(names) => {
                writer.u8(0);
                writer.len(names.len());
                names.iter().for_each(|&name| writer.u64(name as u64));
            }
            Classes::Texts(names) => {
                writer.u8(1);
                writer.len(names.len());
                names.iter().for_each(|name| writer.bytes(name.as_bytes()));
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let classes = match reader.u8()? {
            0 => {
                let n = reader.len(8)?;
                let names = (0..n).map(|_| Ok(reader.u64()? as i64));
                Classes::Integers(names.collect::<Result<_>>()?)
            }
            1 => {
                let n = reader.len(8)?;
                let mut names = vec![];
                for _ in 0..n {
                    let name = reader.bytes()?.to_vec();
                    names.push(String::from_utf8(name).map_err(|_| reader.broken())?);
                }
                Classes::Texts(names)
            }
            _ => return Err(reader.broken()),
        };
        let is_ascending = match &classes {
            Classes::Integers(names) => names.is_sorted_by(|a, b| a < b),
            Classes::Texts(names) => names.is_sorted_by(|a, b| a < b),
        };
        if !is_ascending || classes.is_empty() || classes.len() > MAX_CLASSES {
            return Err(reader.broken());
        }
        Ok(classes)
    }

    /// [`Classes::read`], or none.
    pub(super) fn read_some(reader: &mut Reader<'_>) -> Result<Option<Self>> {
        if reader.flag()? { Ok(Some(Classes::read(reader)?)) } else { Ok(None) }
    }

    /// Writes what [`Classes::read_some`] reads.
    pub(super) fn write_some(classes: Option<&Self>, writer: &mut Writer) {
        writer.u8(classes.is_some().into());
        classes.into_iter().for_each(|classes| classes.write(writer));
    }
}

/// What a question wants of the rows' labels.
#[derive(Debug, Clone, PartialEq)]
pub enum LabelRule {
    /// Rows have none.
    None,
    /// Rows have labels, whose names are not known yet.
    New,
    /// Rows have labels with these names.
    Of(Classes),
}

impl LabelRule {
    pub(super) fn write(&self, writer: &mut Writer) {
        match self {
            LabelRule::None => writer.u8(0),
            LabelRule::New => writer.u8(1),
            LabelRule::Of(classes) => {
                writer.u8(2);
                classes.write(writer);
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.u8()? {
            0 => Ok(LabelRule::None),
            1 => Ok(LabelRule::New),
            2 => Ok(LabelRule::Of(Classes::read(reader)?)),
            _ => Err(reader.broken()),
        }
    }
}

/// The labels of some rows.
#[derive(Debug, Clone, Copy)]
pub struct BatchLabels<'a> {
    /// What labels are called here.
    pub classes: &'a Classes,
    /// By row its place in `classes`.
    pub codes: &'a [u32],
}
