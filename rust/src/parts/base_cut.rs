//! A cut of a base tree without rows: where it lies in its gap, and where missing cells and levels go that rows with their
//! center do not have. See `base.rs`.

use super::answer::Bins;
use super::base_ask::SidesAsk;
use super::bins::ends_of;
use super::bytes::{Reader, Writer};
use super::question::Open;
use super::routing::{read_test, write_test};
use crate::criterion::{ColumnForm, Cut, CutForm, Gap, LevelShares};
use crate::error::Result;
use crate::grow::{WIDTH_TIE, narrow, test_of, with_all_sides};
use crate::tree::{LevelSet, Test};

/// A column and where the centers lie among its levels.
pub(super) struct BaseColumn {
    pub form: ColumnForm,
    /// What missing cells count as, where they have no bin.
    pub fill: Option<f64>,
    pub n_levels: usize,
    /// None for numbers.
    pub shares: Option<LevelShares>,
}

/// A cut of a node.
pub(super) struct BaseCut {
    pub feature: usize,
    pub cut: Cut,
    pub sides: Sides,
    /// The weight of the rows that it separates from their center, as the tree tells it, and exactly.
    pub mistakes: f64,
    pub separated: f64,
    pub inside: Inside,
}

/// Where missing cells and levels go of which the cut says nothing.
pub(super) enum Sides {
    /// To the side with more rows. Known: the rows with their center on either side, and the levels that they have.
    Open { active: [u64; 2], levels: LevelSet },
    /// The cut says it.
    Done,
}

/// What is known of the rows in a gap that are not with their center.
pub(super) enum Inside {
    /// Nothing.
    Unknown,
    /// Ranges of them: the least and the largest cell of each, and how many rows.
    Ranges(Vec<(f64, f64, u64)>),
    /// The gap has been narrowed.
    Done,
}

/// Where the cut of a node leaves sides open; `bins`: the rows with their center along its column.
pub(super) fn sides_of(cut: &Cut, bins: &Bins, column: &BaseColumn) -> Sides {
    let ColumnForm { is_levels, has_missing } = column.form;
    let is_open = match cut.form {
        CutForm::Missing => false,
        CutForm::Levels(_) => true,
        CutForm::Range { .. } => has_missing && cut.missing_left.is_none(),
    };
    if !is_open {
        return Sides::Done;
    }
    let (mut active, mut levels) = ([0, 0], LevelSet::default());
    for (bin, &count) in bins.count.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (low, _) = ends_of(bins, bin, column.form);
        if is_levels && !low.is_nan() {
            levels.insert(low as u8);
        }
        active[usize::from(!cut.goes_left(low))] += count;
    }
    Sides::Open { active, levels }
}

impl BaseCut {
    /// Sends what the cut leaves open to the side with more rows, of so many on either.
    pub fn choose_sides(&mut self, counts: [u64; 2], n_levels: usize) {
        if let Sides::Open { levels, .. } = std::mem::replace(&mut self.sides, Sides::Done) {
            let n_rows = counts.map(|n| n as usize);
            let is_present = |code: usize| levels.contains(code as u8);
            self.cut = with_all_sides(self.cut, n_rows, n_levels, is_present);
        }
    }

    /// What must be counted before the cut has sides for all cells; the gap comes first.
    pub fn open_sides(&self, node: usize) -> Option<SidesAsk> {
        match (&self.inside, &self.sides) {
            (Inside::Done, Sides::Open { levels, .. }) => Some(SidesAsk {
                node,
                levels: *levels,
                with_missing: self.cut.missing_left.is_some(),
            }),
            _ => None,
        }
    }

    /// Narrows the gap, or says which ranges of it must be known better. `range`: the column's; `n_bins`: what ranges are
    /// cut into in all.
    pub fn settle(&mut self, node: usize, range: f64, n_bins: usize) -> Vec<Open> {
        let CutForm::Range { upper: Gap { below, above }, .. } = self.cut.form else {
            return vec![];
        };
        let feature = self.feature;
        let open = |low: f64, high: f64, n_bins: usize| Open {
            ends: Some(even_ends(low, high, n_bins)),
            ..Open::to_values(node, feature, low, high)
        };
        let ranges = match &self.inside {
            Inside::Done => return vec![],
            Inside::Unknown => {
                let (low, high) = (below.next_up(), above.next_down());
                if low <= high {
                    return vec![open(low, high, n_bins)];
                }
                &vec![]
            }
            Inside::Ranges(ranges) => ranges,
        };
        let half_width = |low: f64, high: f64| high / 2.0 - low / 2.0;
        // Between two rows of a range lies nothing else.
        let is_known = |&(low, high, count): &(f64, f64, u64)| low == high || count == 2;
        let mut ends = vec![below];
        let mut widest = 0.0f64;
        for range @ &(low, high, _) in ranges {
            widest = widest.max(half_width(ends[ends.len() - 1], low));
            if is_known(range) {
                widest = widest.max(half_width(low, high));
            }
            ends.extend([low, high]);
        }
        widest = widest.max(half_width(ends[ends.len() - 1], above));
        let tie = WIDTH_TIE * range / 2.0;
        let hides_wider = |range: &&(f64, f64, u64)| {
            !is_known(range) && half_width(range.0, range.1) >= widest - tie
        };
        let n_wanted = ranges.iter().filter(hides_wider).count();
        if let Some(share) = (16 * n_bins).checked_div(n_wanted) {
            let n_bins = share.clamp(2, n_bins);
            let wanted = ranges.iter().filter(hides_wider);
            return wanted.map(|&(low, high, _)| open(low, high, n_bins)).collect();
        }
        self.cut = narrow(self.cut, &ends, range);
        self.inside = Inside::Done;
        vec![]
    }

    /// Appends what is known.
    pub fn write(&self, writer: &mut Writer) {
        let BaseCut { feature, cut, sides, mistakes, separated, inside } = self;
        writer.len(*feature);
        writer.u8(match cut.missing_left {
            None => 0,
            Some(missing_left) => 1 + u8::from(missing_left),
        });
        match cut.form {
            CutForm::Range { upper: Gap { below, above }, .. } => {
                writer.u8(0);
                writer.numbers(&[below, above]);
            }
            _ => {
                writer.u8(1);
                write_test(writer, &test_of(*feature, *cut));
            }
        }
        writer.numbers(&[*mistakes, *separated]);
        writer.u8(matches!(sides, Sides::Open { .. }).into());
        if let Sides::Open { active, levels } = sides {
            active.iter().for_each(|&n| writer.u64(n));
            writer.bytes(&levels.codes().collect::<Vec<u8>>());
        }
        match inside {
            Inside::Unknown => writer.u8(0),
            Inside::Done => writer.u8(1),
            Inside::Ranges(ranges) => {
                writer.u8(2);
                writer.len(ranges.len());
                for &(low, high, count) in ranges {
                    writer.numbers(&[low, high]);
                    writer.u64(count);
                }
            }
        }
    }

    /// Reads what [`BaseCut::write`] wrote.
    ///
    /// # Errors
    /// [`Error::Value`](crate::error::Error::Value) if the bytes are no cut of one of the columns.
    pub fn read(reader: &mut Reader<'_>, columns: &[BaseColumn]) -> Result<Self> {
        let feature = reader.index()?;
        let missing_left = match reader.u8()? {
            0 => None,
            side @ 1..=2 => Some(side == 2),
            _ => return Err(reader.broken()),
        };
        let form = match reader.u8()? {
            0 => {
                let (below, above) = (reader.f64()?, reader.f64()?);
                if !(below < above && below.is_finite() && above.is_finite()) {
                    return Err(reader.broken());
                }
                CutForm::Range { lower: None, upper: Gap { below, above } }
            }
            1 => match read_test(reader)? {
                Test::Levels { feature: of_test, left } if of_test == feature => {
                    CutForm::Levels(left)
                }
                Test::Missing { feature: of_test } if of_test == feature => CutForm::Missing,
                _ => return Err(reader.broken()),
            },
            _ => return Err(reader.broken()),
        };
        let (mistakes, separated) = (reader.f64()?, reader.f64()?);
        let sides = match reader.flag()? {
            false => Sides::Done,
            true => {
                let active = [reader.u64()?, reader.u64()?];
                Sides::Open { active, levels: reader.bytes()?.iter().copied().collect() }
            }
        };
        let inside = match reader.u8()? {
            0 => Inside::Unknown,
            1 => Inside::Done,
            2 => {
                let n = reader.len(24)?;
                let ranges = (0..n).map(|_| Ok((reader.f64()?, reader.f64()?, reader.u64()?)));
                Inside::Ranges(ranges.collect::<Result<_>>()?)
            }
            _ => return Err(reader.broken()),
        };
        let is_range = matches!(form, CutForm::Range { .. });
        let is_of_column =
            |column: &BaseColumn| column.form.is_levels != is_range || form == CutForm::Missing;
        if !columns.get(feature).is_some_and(is_of_column)
            || !(is_range || matches!(inside, Inside::Done))
        {
            return Err(reader.broken());
        }
        let cut = Cut { form, missing_left, centers: None };
        Ok(BaseCut { feature, cut, sides, mistakes, separated, inside })
    }
}

/// Ends of `n` bins between two cells, at even distances; the first holds the lower cell alone if there is nothing between.
fn even_ends(low: f64, high: f64, n: usize) -> Vec<f64> {
    let end = |i: usize| {
        let share = i as f64 / n as f64;
        low * (1.0 - share) + high * share
    };
    let inner = (1..n).map(end).filter(|end| low < *end && *end < high);
    let mut ends: Vec<f64> = std::iter::once(low).chain(inner).filter(|&end| end < high).collect();
    ends.sort_unstable_by(f64::total_cmp);
    ends.dedup();
    ends
}
