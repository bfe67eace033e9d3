//! Rows of numbers added up exactly, in a third of the time that [`ExactSums::add`] takes and less.
//!
//! Each number is cut into a multiple of a grid and a rest (Rump, Ogita and Oishi 2008, *Accurate Floating-Point
//! Summation, Part I*), and both are added as doubles, which is exact for `MOST_ROWS` rows of numbers of like size; then
//! the counters take the two sums. Numbers of other sizes go to the counters at once.

use super::{ExactSums, FRACTION_BITS, power_of_two};
use crate::memory;

/// Rows added up as doubles before the counters take their sums.
pub(super) const MOST_ROWS: u32 = 1 << 14;
/// Numbers of a column are of like size if they are at most 2^e and at least 2^(e - SIZES), or 0.
const SIZES: i32 = 26;
/// The grid that cuts them has the step 2^(e - STEPS). Then [`MOST_ROWS`] multiples of it, below 2^e each, have a sum of at
/// most 14 + 38 bits; the rests are below half a step and multiples of 2^(e - 26 - 52): theirs has 14 + 39 bits at most.
const STEPS: i32 = 38;
/// Rows with numbers of other sizes after which the sizes are chosen anew, if they are more than this share of all.
const MOST_MISSED: u32 = 32;
const MOST_MISSED_OF: u32 = 4;
/// Rows with numbers after which they are chosen first, and rows that are looked at for these.
const FIRST_MISSED: u32 = 4;
const FIRST_ROWS: usize = 8;

/// Columns that are added side by side.
const LANES: usize = 2;
/// Rows whose sizes are checked together.
const ROWS: usize = 4;
/// Numbers of neighbouring columns.
type Lanes = [f64; LANES];

/// The sizes of the numbers in some neighbouring columns, and how they are cut.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    least: Lanes,
    most: Lanes,
    /// Added and taken away again, it leaves the nearest multiple of the grid.
    shift: Lanes,
}

impl Sizes {
    /// No numbers but 0.
    const NONE: Sizes = Sizes { least: [0.0; LANES], most: [0.0; LANES], shift: [0.0; LANES] };

    /// Chooses the numbers like `x` and somewhat larger ones in a lane; none where the grid would leave the range of
    /// doubles.
    fn choose(&mut self, lane: usize, x: f64) {
        self.choose_most(lane, exponent(x) + 4);
    }

    /// Chooses the numbers up to 2^e in a lane, as [`Sizes::choose`].
    fn choose_most(&mut self, lane: usize, e: i32) {
        if (-900..900).contains(&e) {
            self.least[lane] = power_of_two(e - SIZES);
            self.most[lane] = power_of_two(e);
            self.shift[lane] = 1.5 * power_of_two(e - STEPS + FRACTION_BITS as i32);
        }
    }

    /// Chooses the numbers of the first lane such that it has those whose squares are of the sizes of the second.
    fn choose_roots(&mut self) {
        if self.least[1] > 0.0 {
            self.choose_most(0, exponent(self.most[1]).div_euclid(2) + 1);
        }
    }

    /// The sizes of squares, at least and at most, of which both the squares, in the second lane, and their roots, in the
    /// first one, are held; none are where there are no such sizes.
    fn of_squares(&self) -> (f64, f64) {
        let ([least_root, least], [most_root, most]) = (self.least, self.most);
        // Powers of two: a root of other sizes has a rounded square of at most the one, or at least the other.
        let are_held = least_root * least_root < least && most < most_root * most_root;
        if are_held { (least, most) } else { (f64::INFINITY, 0.0) }
    }

    #[inline(always)]
    fn holds(&self, x: Lanes) -> bool {
        x.into_iter().enumerate().fold(true, |is_held, (lane, x)| is_held & self.holds_one(lane, x))
    }

    /// Whether the numbers of some rows are of these sizes and none of a lane with sizes is 0: [`Sizes::holds`] by fewer
    /// comparisons.
    #[inline(always)]
    fn hold_all(&self, rows: &[Lanes; ROWS]) -> bool {
        let extreme = |lane: usize, of: fn(f64, f64) -> f64| {
            let [a, b, c, d] = rows.map(|row| row[lane].abs());
            of(of(a, b), of(c, d))
        };
        let (least, most) = (|lane| extreme(lane, min), |lane| extreme(lane, max));
        let is_held = |lane| (most(lane) <= self.most[lane]) & (least(lane) >= self.least[lane]);
        (0..LANES).fold(true, |all, lane| all & is_held(lane))
    }

    /// [`Sizes::holds`] of one lane.
    #[inline(always)]
    fn holds_one(&self, lane: usize, x: f64) -> bool {
        let size = x.abs();
        (size <= self.most[lane]) & ((size >= self.least[lane]) | (size == 0.0))
    }
}

/// The smaller of two numbers; `f64::min` would look for NaN.
#[inline(always)]
fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The larger of two numbers.
#[inline(always)]
fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The exponent of a number, rounded down.
fn exponent(x: f64) -> i32 {
    ((x.to_bits() >> FRACTION_BITS) as i32 & 0x7ff) - (f64::MAX_EXP - 1)
}

/// Sums of numbers in neighbouring columns: of multiples of the grid, and of the rests.
///
/// Aligned, so that they are added to where they are.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(16))]
struct Parts {
    high: Lanes,
    low: Lanes,
}

impl Parts {
    #[inline(always)]
    fn add(&mut self, x: Lanes, sizes: &Sizes) {
        for (i, x) in x.into_iter().enumerate() {
            let multiple = (x + sizes.shift[i]) - sizes.shift[i];
            self.high[i] += multiple;
            self.low[i] += x - multiple;
        }
    }
}

/// Numbers that are not of the sizes chosen.
#[derive(Debug, Clone)]
struct Others {
    /// The counters, which take them at once.
    sums: ExactSums,
    /// Columns.
    width: usize,
    /// The largest since sizes were chosen, by [`LANES`] columns.
    largest: Vec<Lanes>,
    /// Rows with such numbers since then.
    n_rows: u32,
}

impl Others {
    /// Gives numbers of a row to a group's counters from the column `first` on.
    #[cold]
    fn add(&mut self, group: usize, first: usize, row: &[f64]) {
        for (column, &x) in (first..).zip(row) {
            self.sums.add(group * self.width + column, x);
            let largest = &mut self.largest[column / LANES][column % LANES];
            *largest = largest.max(x.abs());
        }
        self.n_rows += 1;
    }
}

/// [`ExactSums`] of rows of numbers: by group of rows one sum per column.
#[derive(Debug, Clone)]
pub struct ExactRows {
    others: Others,
    /// By [`LANES`] columns.
    sizes: Vec<Sizes>,
    /// By group, and by [`LANES`] columns.
    parts: Vec<Parts>,
    n_added: u32,
    /// Rows that the counters have taken since sizes were chosen.
    n_flushed: u32,
    /// Whether the second number of a row is the square of the first.
    has_roots: bool,
}

impl ExactRows {
    /// No rows yet, in any of the groups, of `width` numbers.
    pub fn new(n_groups: usize, width: usize) -> Self {
        let n_lanes = width.div_ceil(LANES);
        ExactRows {
            others: Others {
                sums: ExactSums::new(n_groups * width),
                width,
                largest: vec![[0.0; LANES]; n_lanes],
                n_rows: MOST_MISSED - FIRST_MISSED,
            },
            sizes: vec![Sizes::NONE; n_lanes],
            parts: memory::zeros(n_groups * n_lanes, "exact sums"),
            n_added: 0,
            n_flushed: 0,
            has_roots: false,
        }
    }

    /// Adds numbers, none of them NaN, to a group's sums of the first columns.
    #[inline]
    pub fn add(&mut self, group: usize, row: &[f64]) {
        // A lane without a number gets 0.
        let (pairs, rest) = row.as_chunks::<LANES>();
        let rest = rest.first().map(|&x| [x, 0.0]);
        let mut lanes = pairs.iter().chain(&rest).zip(&self.sizes);
        if !lanes.all(|(&x, sizes)| sizes.holds(x)) || self.n_added == MOST_ROWS {
            return self.add_others(group, 0, row);
        }
        self.n_added += 1;
        let parts = &mut self.parts[group * self.sizes.len()..];
        for ((x, sizes), parts) in pairs.iter().chain(&rest).zip(&self.sizes).zip(parts) {
            parts.add(*x, sizes);
        }
    }

    /// [`ExactRows::add`] of `pair(i)` to the i-th of some groups, where rows have at most two numbers; where they have one, the
    /// second is 0.
    #[inline]
    pub fn add_pairs(&mut self, groups: &[u32], pair: impl Fn(usize) -> [f64; 2]) {
        let mut start = 0;
        for groups in self.blocks(groups) {
            let Some(sizes) = self.sizes_for(groups.len()) else { return };
            let (fours, rest) = groups.as_chunks::<ROWS>();
            let (parts, others) = (&mut self.parts[..], &mut self.others);
            for (i, of_rows) in (start..).step_by(ROWS).zip(fours) {
                let pairs = std::array::from_fn(|row| pair(i + row));
                if sizes.hold_all(&pairs) {
                    for (&group, x) in of_rows.iter().zip(pairs) {
                        parts[group as usize].add(x, &sizes);
                    }
                } else {
                    for (&group, x) in of_rows.iter().zip(pairs) {
                        add_pair(parts, others, &sizes, group, x);
                    }
                }
            }
            let end = start + groups.len();
            for (i, &group) in (end - rest.len()..).zip(rest) {
                add_pair(parts, others, &sizes, group, pair(i));
            }
            self.n_added += groups.len() as u32;
            self.choose_sizes();
            start = end;
        }
    }

    /// [`ExactRows::add_pairs`] of the differences of cells to the points of their rows' groups, in units, and the squares of
    /// these: in three quarters of the time.
    pub fn add_squares(&mut self, groups: &[u32], cells: &[f64], points: &[f64], unit: f64) {
        self.has_roots = true;
        for (groups, cells) in self.blocks(groups).zip(self.blocks(cells)) {
            let Some(sizes) = self.sizes_for(groups.len()) else { return };
            let (parts, others) = (&mut self.parts[..], &mut self.others);
            match unit == 1.0 {
                true => add_squares(parts, others, &sizes, groups, cells, points, |x| x), // saves a division
                false => add_squares(parts, others, &sizes, groups, cells, points, |x| x / unit),
            }
            self.n_added += groups.len() as u32;
            self.choose_sizes();
        }
    }

    /// Blocks, after each of which sizes may be chosen. Where nothing was added yet the first is short: its rows do not fit
    /// the sizes, which are those of no rows.
    fn blocks<'b, T>(&self, all: &'b [T]) -> impl Iterator<Item = &'b [T]> + use<'b, T> {
        let is_first = self.n_added == 0 && self.n_flushed == 0;
        let n_first = if is_first { all.len().min(FIRST_ROWS) } else { 0 };
        let (first, others) = all.split_at(n_first);
        std::iter::once(first).chain(others.chunks(MOST_ROWS as usize))
    }

    /// Makes room for rows of at most two numbers; returns the sizes. None if rows have no numbers.
    fn sizes_for(&mut self, n_rows: usize) -> Option<Sizes> {
        if self.n_added + n_rows as u32 > MOST_ROWS {
            self.flush();
        }
        self.sizes.first().copied()
    }

    /// Adds 1 to a group's sum of one column to which nothing else is added.
    #[inline]
    pub fn count(&mut self, group: usize, column: usize) {
        if self.n_added == MOST_ROWS {
            self.flush();
        }
        self.n_added += 1;
        self.parts[group * self.sizes.len() + column / LANES].high[column % LANES] += 1.0;
    }

    /// Adds `x`, not NaN, to a group's sum of one column.
    #[inline]
    pub fn add_one(&mut self, group: usize, column: usize, x: f64) {
        let (pair, lane) = (column / LANES, column % LANES);
        let sizes = &self.sizes[pair];
        if !sizes.holds_one(lane, x) || self.n_added == MOST_ROWS {
            return self.add_others(group, column, &[x]);
        }
        self.n_added += 1;
        let multiple = (x + sizes.shift[lane]) - sizes.shift[lane];
        let parts = &mut self.parts[group * self.sizes.len() + pair];
        parts.high[lane] += multiple;
        parts.low[lane] += x - multiple;
    }

    /// Adds numbers of any size to a group's sums from the column `first` on, when they are not of the sizes chosen or
    /// there are rows enough.
    #[cold]
    fn add_others(&mut self, group: usize, first: usize, row: &[f64]) {
        self.others.add(group, first, row);
        if self.n_added == MOST_ROWS {
            self.flush();
        }
        self.choose_sizes();
    }

    /// Chooses the sizes of numbers anew if many were of others: those of the largest that were.
    fn choose_sizes(&mut self) {
        let n_held = self.n_flushed.saturating_add(self.n_added);
        if self.others.n_rows < MOST_MISSED || self.others.n_rows < n_held / MOST_MISSED_OF {
            return;
        }
        self.flush();
        for (sizes, largest) in self.sizes.iter_mut().zip(&mut self.others.largest) {
            for (lane, x) in std::mem::take(largest).into_iter().enumerate() {
                sizes.choose(lane, x);
            }
            if self.has_roots {
                sizes.choose_roots();
            }
        }
        (self.others.n_rows, self.n_flushed) = (0, 0);
    }

    /// Gives what was added as doubles to the counters.
    fn flush(&mut self) {
        self.n_flushed = self.n_flushed.saturating_add(std::mem::take(&mut self.n_added));
        let Others { sums, width, .. } = &mut self.others;
        if *width == 0 {
            return;
        }
        let groups = self.parts.chunks_mut(self.sizes.len()).enumerate();
        for (group, parts) in groups {
            for (column, parts) in (0..).step_by(LANES).zip(parts) {
                let Parts { high, low } = std::mem::take(parts);
                for (lane, x) in high.into_iter().chain(low).enumerate().filter(|x| x.1 != 0.0) {
                    sums.add(group * *width + column + lane % LANES, x);
                }
            }
        }
    }

    /// The sums, group after group.
    pub fn finish(mut self) -> ExactSums {
        self.flush();
        self.others.sums
    }
}

/// Adds the one or two numbers of a row to a group's sums; the caller sees to the number of rows.
#[inline]
fn add_pair(parts: &mut [Parts], others: &mut Others, sizes: &Sizes, group: u32, x: Lanes) {
    if sizes.holds(x) {
        parts[group as usize].add(x, sizes);
    } else {
        others.add(group as usize, 0, &x[..others.width]);
    }
}

/// [`ExactRows::add_squares`] of one block. Not inlined: only of a parameter the compiler knows that it is aligned.
#[inline(never)]
fn add_squares(
    parts: &mut [Parts],
    others: &mut Others,
    sizes: &Sizes,
    groups: &[u32],
    cells: &[f64],
    points: &[f64],
    in_units: impl Fn(f64) -> f64,
) {
    // Of one length, so that a group is looked for in both at once.
    let points = &points[..parts.len()];
    let square = |group: u32, cell: f64| {
        let x = in_units(cell - points[group as usize]);
        [x, x * x]
    };
    let (least, most) = sizes.of_squares();
    let (fours, rest) = groups.as_chunks::<ROWS>();
    let (cells, rest_of_cells) = cells.as_chunks::<ROWS>();
    for (groups, cells) in fours.iter().zip(cells) {
        let pairs: [Lanes; ROWS] = std::array::from_fn(|row| square(groups[row], cells[row]));
        let [[_, a], [_, b], [_, c], [_, d]] = pairs;
        if least <= min(min(a, b), min(c, d)) && max(max(a, b), max(c, d)) <= most {
            for (&group, x) in groups.iter().zip(pairs) {
                parts[group as usize].add(x, sizes);
            }
        } else {
            for (&group, x) in groups.iter().zip(pairs) {
                add_pair(parts, others, sizes, group, x);
            }
        }
    }
    for (&group, &cell) in rest.iter().zip(rest_of_cells) {
        add_pair(parts, others, sizes, group, square(group, cell));
    }
}
