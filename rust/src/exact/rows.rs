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
/// Rows after which they are chosen first.
const FIRST_MISSED: u32 = 4;

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
        let exponent = (x.to_bits() >> FRACTION_BITS) as i32 & 0x7ff;
        let exponent = exponent - f64::MAX_EXP + 1 + 4;
        if (-900..900).contains(&exponent) {
            self.least[lane] = power_of_two(exponent - SIZES);
            self.most[lane] = power_of_two(exponent);
            self.shift[lane] = 1.5 * power_of_two(exponent - STEPS + FRACTION_BITS as i32);
        }
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
        // `f64::min` would look for NaN.
        let least = |lane| extreme(lane, |a, b| if a < b { a } else { b });
        let most = |lane| extreme(lane, |a, b| if a > b { a } else { b });
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

/// Sums of numbers in neighbouring columns: of multiples of the grid, and of the rests.
#[derive(Debug, Clone, Copy, Default)]
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

/// [`ExactSums`] of rows of numbers: by group of rows one sum per column.
#[derive(Debug, Clone)]
pub struct ExactRows {
    sums: ExactSums,
    width: usize,
    /// By [`LANES`] columns.
    sizes: Vec<Sizes>,
    /// By group, and by [`LANES`] columns.
    parts: Vec<Parts>,
    /// The largest of other sizes since sizes were chosen, by [`LANES`] columns.
    largest: Vec<Lanes>,
    n_added: u32,
    /// Since sizes were chosen: rows with numbers of other sizes, and rows that the counters have taken.
    n_missed: u32,
    n_flushed: u32,
}

impl ExactRows {
    /// No rows yet, in any of the groups, of `width` numbers.
    pub fn new(n_groups: usize, width: usize) -> Self {
        let n_lanes = width.div_ceil(LANES);
        ExactRows {
            sums: ExactSums::new(n_groups * width),
            width,
            sizes: vec![Sizes::NONE; n_lanes],
            parts: memory::zeros(n_groups * n_lanes, "exact sums"),
            largest: vec![[0.0; LANES]; n_lanes],
            n_added: 0,
            n_missed: MOST_MISSED - FIRST_MISSED,
            n_flushed: 0,
        }
    }

    /// Number of groups.
    pub fn n_groups(&self) -> usize {
        self.parts.len() / self.sizes.len().max(1)
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
        for groups in groups.chunks(MOST_ROWS as usize) {
            if self.n_added + groups.len() as u32 > MOST_ROWS {
                self.flush();
            }
            let [sizes] = self.sizes[..] else { return };
            let (fours, rest) = groups.as_chunks::<ROWS>();
            for (i, of_rows) in (start..).step_by(ROWS).zip(fours) {
                let pairs = std::array::from_fn(|row| pair(i + row));
                if sizes.hold_all(&pairs) {
                    for (&group, x) in of_rows.iter().zip(pairs) {
                        self.parts[group as usize].add(x, &sizes);
                    }
                } else {
                    of_rows
                        .iter()
                        .zip(pairs)
                        .for_each(|(&group, x)| self.add_pair(group, x, &sizes));
                }
            }
            let end = start + groups.len();
            for (i, &group) in (end - rest.len()..).zip(rest) {
                self.add_pair(group, pair(i), &sizes);
            }
            self.n_added += groups.len() as u32;
            self.choose_sizes();
            start = end;
        }
    }

    /// Adds the one or two numbers of a row to a group's sums; the caller sees to the number of rows.
    #[inline]
    fn add_pair(&mut self, group: u32, x: Lanes, sizes: &Sizes) {
        if sizes.holds(x) {
            self.parts[group as usize].add(x, sizes);
        } else {
            self.count_exactly(group as usize, 0, &x[..self.width]);
        }
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
        self.count_exactly(group, first, row);
        if self.n_added == MOST_ROWS {
            self.flush();
        }
        self.choose_sizes();
    }

    /// Gives numbers to the counters at once.
    #[cold]
    fn count_exactly(&mut self, group: usize, first: usize, row: &[f64]) {
        for (column, &x) in (first..).zip(row) {
            self.sums.add(group * self.width + column, x);
            let largest = &mut self.largest[column / LANES][column % LANES];
            *largest = largest.max(x.abs());
        }
        self.n_missed += 1;
    }

    /// Chooses the sizes of numbers anew if many were of others: those of the largest that were.
    fn choose_sizes(&mut self) {
        let n_held = self.n_flushed.saturating_add(self.n_added);
        if self.n_missed < MOST_MISSED || self.n_missed < n_held / MOST_MISSED_OF {
            return;
        }
        self.flush();
        for (sizes, largest) in self.sizes.iter_mut().zip(&mut self.largest) {
            for (lane, x) in std::mem::take(largest).into_iter().enumerate() {
                sizes.choose(lane, x);
            }
        }
        (self.n_missed, self.n_flushed) = (0, 0);
    }

    /// Gives what was added as doubles to the counters.
    fn flush(&mut self) {
        self.n_flushed = self.n_flushed.saturating_add(std::mem::take(&mut self.n_added));
        if self.width == 0 {
            return;
        }
        let groups = self.parts.chunks_mut(self.sizes.len()).enumerate();
        for (group, parts) in groups {
            for (column, parts) in (0..).step_by(LANES).zip(parts) {
                let Parts { high, low } = std::mem::take(parts);
                for (lane, x) in high.into_iter().chain(low).enumerate().filter(|x| x.1 != 0.0) {
                    self.sums.add(group * self.width + column + lane % LANES, x);
                }
            }
        }
    }

    /// The sums, group after group.
    pub fn finish(mut self) -> ExactSums {
        self.flush();
        self.sums
    }
}
