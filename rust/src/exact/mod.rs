//! Sums of doubles that do not depend on the order of their terms: exact, and rounded once.
//!
//! A finite double is an integer of at most 53 bits times a power of two from 2^-1074 up. Powers are cut into windows of
//! 32: a term is shifted within its window, by at most 31 bits, and added to the window's counter, an integer of 128
//! bits. Nothing is rounded before a sum is asked for, so
//!
//! - the terms of a sum may come in any order and from any thread,
//! - sums of parts merge ([`ExactSums::merge`]) and can be taken away again ([`ExactSums::take_away`]),
//! - one huge term hides nothing: what remains when it is taken away has all its digits.
//!
//! [`ExactSums::rounded`] is the double nearest to the exact sum, of two the even one, as if all terms were added with
//! unlimited digits: infinite only if the sum itself is out of range, and with all digits below the normal range.
//!
//! **No term is NaN**: whoever adds has checked it. An infinite one counts as 2^1024, so that its sum is infinite.
//! Counters cannot overflow below 2^42 terms.
//!
//! `rows.rs` adds rows of numbers in a third of the time and less.
//!
//! Memory: 16 bytes per sum for every window that a term falls into, and one more. Numbers between 1e-5 and 1e5 fall
//! into two or three.

mod bytes;
mod rows;

use std::ops::Range;

pub use rows::ExactRows;

use crate::memory;
use crate::parallel;

/// Powers of two that share a counter, as the number of bits of a place in a window.
const PLACE_BITS: u32 = 5;
/// Powers of two that share a counter.
const WINDOW: u32 = 1 << PLACE_BITS;
/// Windows of all powers of two.
const N_WINDOWS: usize = 2048 >> PLACE_BITS;
/// The exponent of the last bit of the smallest doubles.
const LEAST_EXPONENT: i32 = -1074;
/// Bits of a double's fraction.
const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
/// Stands for a window without counters.
const NONE: u8 = u8::MAX;
/// Rows that one thread adds up in one go, at least.
const MIN_BLOCK: usize = 2048;

/// Some sums, by place.
#[derive(Debug, Clone)]
pub struct ExactSums {
    len: usize,
    /// By window the place of its counters in `counters`; [`NONE`] if no term fell into it.
    places: [u8; N_WINDOWS],
    /// The windows with counters, ascending.
    windows: Vec<u8>,
    /// One counter per sum for each of these windows, in the order in which they were needed.
    counters: Vec<Vec<i128>>,
}

impl ExactSums {
    /// `len` sums without terms.
    pub fn new(len: usize) -> Self {
        let mut sums =
            ExactSums { len, places: [NONE; N_WINDOWS], windows: vec![], counters: vec![] };
        sums.counters_of(0); // of zeros, so that they take no branch of their own
        sums
    }

    /// Number of sums.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no sums.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether these are the same sums, each exactly.
    pub fn equals(&self, other: &ExactSums) -> bool {
        let mut rest = self.clone();
        self.len == other.len && {
            rest.take_away(other);
            (0..self.len).all(|place| rest.rounded(place) == 0.0)
        }
    }

    /// Bytes of the counters.
    pub fn bytes(&self) -> usize {
        self.counters.len() * self.len * size_of::<i128>()
    }

    /// The counters of a window.
    fn counters_of(&mut self, window: usize) -> &mut [i128] {
        if self.places[window] == NONE {
            self.places[window] = self.counters.len() as u8;
            let after = self.windows.partition_point(|&other| usize::from(other) < window);
            self.windows.insert(after, window as u8);
            self.counters.push(memory::zeros(self.len, "exact sums"));
        }
        &mut self.counters[usize::from(self.places[window])]
    }

    /// Adds `x`, not NaN, to the sum at `place`.
    #[inline]
    pub fn add(&mut self, place: usize, x: f64) {
        self.add_times(place, x, 1);
    }

    /// Adds `x`, not NaN, to the sum at `place` as often as told.
    #[inline]
    pub fn add_times(&mut self, place: usize, x: f64, times: u32) {
        debug_assert!(!x.is_nan(), "only numbers have sums");
        let bits = x.to_bits();
        let exponent = (bits >> FRACTION_BITS) as u32 & 0x7ff;
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        // Numbers below the normal range have the power of the smallest normal ones, and no leading bit.
        let is_normal = u32::from(exponent > 0);
        let power = exponent - is_normal;
        let magnitude =
            i128::from(fraction | u64::from(is_normal) << FRACTION_BITS) << (power % WINDOW);
        let sign = i128::from(bits as i64 >> 63); // 0 or -1
        let term = ((magnitude ^ sign) - sign) * i128::from(times);
        let window = (power >> PLACE_BITS) as usize;
        match self.counters.get_mut(usize::from(self.places[window])) {
            Some(counters) => counters[place] += term,
            None => self.counters_of(window)[place] += term,
        }
    }

    /// Calls `visit` with every counter of the same window here and in `other`.
    fn zip(&mut self, other: &ExactSums, visit: impl Fn(&mut i128, i128)) {
        assert_eq!(self.len, other.len, "sums of equal number");
        for (window, theirs) in other.filled() {
            let own = self.counters_of(window);
            own.iter_mut().zip(theirs).for_each(|(own, theirs)| visit(own, *theirs));
        }
    }

    /// Adds the terms of other sums, as many, place by place.
    pub fn merge(&mut self, other: &ExactSums) {
        self.zip(other, |own, theirs| *own += theirs);
    }

    /// Takes the terms of other sums, as many, away.
    pub fn take_away(&mut self, other: &ExactSums) {
        self.zip(other, |own, theirs| *own -= theirs);
    }

    /// Makes the sums of one of the runs of `width` sums what the others lack of the first sums of `all`; they were none.
    pub fn fill_rest(&mut self, run: usize, width: usize, all: &ExactSums) {
        let rest = run * width..(run + 1) * width;
        for (window, counters) in all.filled() {
            self.counters_of(window)[rest.clone()].copy_from_slice(&counters[..width]);
        }
        for counters in &mut self.counters {
            for place in (0..counters.len()).filter(|place| !rest.contains(place)) {
                counters[rest.start + place % width] -= counters[place];
            }
        }
    }

    /// Makes of runs of `width` sums the sums over all runs up to each.
    pub fn accumulate(&mut self, width: usize) {
        for counters in &mut self.counters {
            for place in width..counters.len() {
                counters[place] += counters[place - width];
            }
        }
    }

    /// The sum at `place`, rounded.
    pub fn rounded(&self, place: usize) -> f64 {
        self.combined(&[place], &[])
    }

    /// All sums, rounded.
    pub fn all_rounded(&self) -> Vec<f64> {
        (0..self.len).map(|place| self.rounded(place)).collect()
    }

    /// The sums at the places `plus` less those at the places `minus`, exactly, and rounded once.
    pub fn combined(&self, plus: &[usize], minus: &[usize]) -> f64 {
        self.total(plus, minus).rounded()
    }

    /// The sums at the places `plus` less those at the places `minus`.
    fn total(&self, plus: &[usize], minus: &[usize]) -> Total {
        let mut total = Total::default();
        for (window, counters) in self.filled() {
            let sum = |places: &[usize]| places.iter().map(|&place| counters[place]).sum::<i128>();
            total.add(window, sum(plus) - sum(minus));
        }
        total
    }

    /// The sums at some ranges of places, one after the other.
    pub fn gather(pieces: &[(&ExactSums, Range<usize>)]) -> ExactSums {
        let mut all = ExactSums::new(pieces.iter().map(|(_, places)| places.len()).sum());
        let mut start = 0;
        for (sums, places) in pieces {
            for (window, counters) in sums.filled() {
                let counters = &counters[places.clone()];
                if counters.iter().any(|&counter| counter != 0) {
                    let own = &mut all.counters_of(window)[start..start + places.len()];
                    own.copy_from_slice(counters);
                }
            }
            start += places.len();
        }
        all
    }

    /// Rows of sums of some `columns`, ascending, as rows of all columns: the others' sums are those of `all`, in the first
    /// row, and none in the rest.
    pub fn spread(&self, columns: &[usize], all: &ExactSums) -> ExactSums {
        let width = all.len;
        let mut rows = ExactSums::new(self.len / columns.len() * width);
        for (window, counters) in all.filled() {
            let first = &mut rows.counters_of(window)[..width];
            first.copy_from_slice(counters);
            columns.iter().for_each(|&column| first[column] = 0);
        }
        for (window, counters) in self.filled() {
            let own = rows.counters_of(window).chunks_mut(width);
            for (row, counters) in own.zip(counters.chunks(columns.len())) {
                columns.iter().zip(counters).for_each(|(&column, &counter)| row[column] = counter);
            }
        }
        rows
    }

    /// The windows with their counters.
    fn filled(&self) -> impl Iterator<Item = (usize, &[i128])> {
        let counters = |window: usize| self.counters[usize::from(self.places[window])].as_slice();
        self.windows.iter().map(move |&window| (window.into(), counters(window.into())))
    }
}

/// Digits that the counter of the last window may have.
const CARRIED: usize = 4;

/// The exact value of one sum: digits of [`WINDOW`] bits from the lowest window on, and what is left above them.
struct Total {
    digits: [u32; N_WINDOWS + CARRIED],
    /// The window of the first digit, and of what is left above the digits.
    first: usize,
    next: usize,
    above: i128,
}

impl Default for Total {
    fn default() -> Self {
        Total { digits: [0; N_WINDOWS + CARRIED], first: 0, next: 0, above: 0 }
    }
}

impl Total {
    /// Adds the counter of a window above those added before.
    fn add(&mut self, window: usize, counter: i128) {
        if counter == 0 {
            return;
        }
        if self.above == 0 && self.first == self.next {
            (self.first, self.next) = (window, window);
        }
        while self.next < window {
            self.digits[self.next] = self.above as u32;
            self.above >>= WINDOW; // rounds down, so that digits are never negative
            self.next += 1;
        }
        self.above += counter;
    }

    fn rounded(mut self) -> f64 {
        // So many leading bits that a last bit of them stands for everything below.
        const ENOUGH: u128 = 1 << 64;
        while self.next > self.first && self.above.unsigned_abs() < ENOUGH {
            self.next -= 1;
            self.above = self.above << WINDOW | i128::from(self.digits[self.next]);
        }
        if self.digits[self.first..self.next].iter().any(|&digit| digit > 0) {
            self.above |= 1;
        }
        // Neither step rounds again: a product below the normal range is a whole multiple of the smallest double.
        self.above as f64 * power_of_two(LEAST_EXPONENT + (WINDOW as usize * self.next) as i32)
    }
}

/// 2^exponent, for exponents from [`LEAST_EXPONENT`] up to the largest.
fn power_of_two(exponent: i32) -> f64 {
    const LEAST_NORMAL: i32 = f64::MIN_EXP - 1;
    f64::from_bits(if exponent < LEAST_NORMAL {
        1 << (exponent - LEAST_EXPONENT)
    } else {
        ((exponent - LEAST_NORMAL + 1) as u64) << FRACTION_BITS
    })
}

/// The sum of numbers, none of them NaN.
pub fn sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    let mut rows = ExactRows::new(1, 1);
    terms.into_iter().for_each(|x| rows.add_one(0, 0, x));
    rows.finish().rounded(0)
}

/// The exact sums of `n_groups` groups of rows of `width` numbers: `add(row, sums)` adds those of one of the `rows`.
pub fn sum_rows(
    rows: &[u32],
    n_groups: usize,
    width: usize,
    add: impl Fn(u32, &mut ExactRows) + Sync,
) -> ExactSums {
    // Merging costs what adding so many rows does.
    let share = parallel::even_share(rows.len(), MIN_BLOCK.max(n_groups * width));
    let blocks = parallel::map(rows.chunks(share), |block| {
        let mut sums = ExactRows::new(n_groups, width);
        block.iter().for_each(|&row| add(row, &mut sums));
        sums.finish()
    });
    let mut blocks = blocks.into_iter();
    let first = blocks.next().unwrap_or_else(|| ExactSums::new(n_groups * width));
    blocks.fold(first, |mut sums, block| {
        sums.merge(&block);
        sums
    })
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;

    use super::rows::MOST_ROWS;
    use super::*;

    /// Doubles of all sizes, near each other or far apart, and with few bits or many.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % n
        }

        fn bits(&mut self) -> u64 {
            self.below(1 << 31) << 33 ^ self.below(1 << 31) << 11 ^ self.below(1 << 31)
        }

        fn next(&mut self, exponents: std::ops::Range<u64>) -> f64 {
            let exponent = exponents.start + self.below(exponents.end - exponents.start);
            let fraction = match self.below(3) {
                0 => 0,
                1 => self.bits() & 7 << 49,
                _ => self.bits() & ((1 << 52) - 1),
            };
            f64::from_bits(self.below(2) << 63 | exponent << 52 | fraction)
        }
    }

    /// A number in units of 2^-1074.
    fn to_integer(x: f64) -> BigInt {
        let (exponent, fraction) = (x.to_bits() >> 52 & 0x7ff, x.to_bits() & ((1 << 52) - 1));
        let magnitude = match exponent {
            0 => BigInt::from(fraction),
            _ => BigInt::from(fraction | 1 << 52) << (exponent - 1),
        };
        if x < 0.0 { -magnitude } else { magnitude }
    }

    /// The nearest double, of two the even one, by its definition.
    fn to_double(x: &BigInt) -> f64 {
        let magnitude = x.magnitude();
        let drop = magnitude.bits().saturating_sub(53);
        let (mut kept, half) = (magnitude >> drop, (magnitude.clone() << 1u32) >> drop);
        let is_half = (half.clone() << drop) == magnitude.clone() << 1u32;
        if half.bit(0) && (!is_half || kept.bit(0)) {
            kept += 1u32;
        }
        let kept: u64 = kept.try_into().unwrap();
        // Adding 2^53 to the exponent field of a fraction that carried is what it should be.
        let bits = if drop == 0 { kept } else { kept + (drop << 52) };
        let bits = bits.min(f64::INFINITY.to_bits());
        if x.sign() == num_bigint::Sign::Minus {
            -f64::from_bits(bits)
        } else {
            f64::from_bits(bits)
        }
    }

    fn sums(terms: &[f64]) -> ExactSums {
        let mut sums = ExactSums::new(1);
        terms.iter().for_each(|&x| sums.add(0, x));
        sums
    }

    fn sum(terms: &[f64]) -> f64 {
        super::sum(terms.iter().copied())
    }

    #[test]
    fn the_oracle_returns_doubles_as_they_are() {
        let mut numbers = Numbers(1);
        for x in (0..2000).map(|_| numbers.next(0..2047)).chain([0.0, 5e-324, f64::MAX]) {
            assert_eq!(to_double(&to_integer(x)), x);
            assert_eq!(sum(&[x]), x);
        }
    }

    #[test]
    fn sums_are_those_of_integers_rounded_once() {
        let mut numbers = Numbers(2);
        for round in 0..3000u64 {
            let n = 1 + numbers.below(20);
            let first = numbers.below(2047);
            let exponents = match round % 4 {
                0 => 0..2047,
                1 => first..first + 1,
                2 => first..2047.min(first + 70),
                _ => 0..3, // at the end of the normal range
            };
            let mut terms: Vec<f64> = (0..n).map(|_| numbers.next(exponents.clone())).collect();
            if numbers.below(2) == 0 {
                // All but a little cancels.
                let others: Vec<f64> = terms.iter().skip(1).map(|x| -x).collect();
                terms.extend(others);
            }
            let exact: BigInt = terms.iter().map(|&x| to_integer(x)).sum();
            let expected = to_double(&exact);
            assert_eq!(sum(&terms).to_bits(), (expected + 0.0).to_bits(), "{terms:?}");
            terms.reverse();
            assert_eq!(sum(&terms), expected);
        }
    }

    #[test]
    fn halves_go_to_the_even_number_and_what_is_below_decides() {
        let ulp = f64::EPSILON;
        for (terms, expected) in [
            (vec![1.0, ulp / 2.0], 1.0),
            (vec![1.0 + ulp, ulp / 2.0], 1.0 + 2.0 * ulp),
            (vec![1.0, ulp / 2.0, 5e-324], 1.0 + ulp),
            (vec![1.0, ulp / 2.0, -5e-324], 1.0),
            (vec![-1.0, -ulp / 2.0, -1e-200], -1.0 - ulp),
            (vec![f64::MAX, f64::MAX, -f64::MAX], f64::MAX),
            (vec![f64::MAX, f64::MAX], f64::INFINITY),
            (vec![-f64::MAX, f64::MAX / -1e16], -f64::INFINITY),
            (vec![1e150, 1.0, -1e150], 1.0),
            (vec![1.0, f64::INFINITY], f64::INFINITY),
            (vec![-f64::INFINITY, -1.0], -f64::INFINITY),
            (vec![0.0, -0.0], 0.0),
            (vec![], 0.0),
        ] {
            assert_eq!(sum(&terms), expected, "{terms:?}");
        }
    }

    #[test]
    fn a_term_counts_as_often_as_told() {
        let mut numbers = Numbers(8);
        for times in [0, 1, 3, u32::MAX] {
            for exponents in [0..3, 0..2046, 1000..1060] {
                let x = numbers.next(exponents);
                let mut sums = ExactSums::new(1);
                sums.add_times(0, x, times);
                assert_eq!(sums.rounded(0), to_double(&(to_integer(x) * times)), "{x} {times}");
            }
        }
    }

    #[test]
    fn parts_merge_and_are_taken_away() {
        let mut numbers = Numbers(3);
        for _ in 0..200 {
            let mut next = |n| (0..n).map(|_| numbers.next(900..1200)).collect::<Vec<f64>>();
            let (a, b) = (next(7), next(5));
            let mut merged = sums(&a);
            merged.merge(&sums(&b));
            assert_eq!(merged.rounded(0), sum(&[&b[..], &a[..]].concat()));
            merged.take_away(&sums(&a));
            assert_eq!(merged.rounded(0), sum(&b));
        }
    }

    #[test]
    fn sums_cross_as_bytes_that_tell_their_value_alone() {
        let mut numbers = Numbers(7);
        for round in 0..500u64 {
            let exponents = if round % 2 == 0 { 0..2046 } else { 1000..1060 };
            let n = 1 + numbers.below(9);
            let mut terms: Vec<f64> = (0..n).map(|_| numbers.next(exponents.clone())).collect();
            if round % 5 == 0 {
                let others: Vec<f64> = terms.iter().map(|x| -x).collect();
                terms.extend(&others[(round as usize / 5) % 2..]);
            }
            let (mut bytes, mut others) = (vec![], vec![]);
            sums(&terms).encode(0, &mut bytes);
            let half = terms.len() / 2;
            let mut merged = sums(&terms[half..]);
            merged.merge(&sums(&terms[..half]));
            merged.encode(0, &mut others);
            assert_eq!(bytes, others, "{terms:?}");
            let (mut read, mut rest) = (ExactSums::new(3), &bytes[..]);
            read.decode(1, &mut rest).unwrap();
            assert!(rest.is_empty());
            assert!(terms.len() > 1 || bytes.len() <= 10, "{terms:?}");
            assert_eq!(read.all_rounded(), [0.0, sum(&terms), 0.0]);
            let pieces = ExactSums::gather(&[(&read, 1..3), (&read, 0..2)]);
            assert_eq!(pieces.all_rounded(), [sum(&terms), 0.0, 0.0, sum(&terms)]);
            assert!(
                bytes == [0]
                    || ExactSums::new(1).decode(0, &mut &bytes[..bytes.len() - 1]).is_none()
            );
        }
    }

    #[test]
    fn the_rest_of_a_total_is_what_the_other_runs_lack() {
        let mut numbers = Numbers(6);
        for rest in 0..3 {
            let terms: Vec<f64> = (0..60).map(|_| numbers.next(900..1100)).collect();
            // Runs of two sums; the total has a third one.
            let run_of = |i: usize| i % 3;
            let (mut all, mut total) = (ExactSums::new(6), ExactSums::new(3));
            for (i, &x) in terms.iter().enumerate() {
                total.add(i % 2, x);
                all.add(2 * run_of(i) + i % 2, x);
            }
            total.add(2, 1.0);
            let mut others = ExactSums::new(6);
            for (i, &x) in terms.iter().enumerate().filter(|(i, _)| run_of(*i) != rest) {
                others.add(2 * run_of(i) + i % 2, x);
            }
            others.fill_rest(rest, 2, &total);
            assert!(others.equals(&all));
        }
    }

    #[test]
    fn runs_add_up_to_sums_from_the_first_on() {
        let terms = [1e20, 3.0, -1e20, 0.1, 7.0, 1e-30];
        let mut sums = ExactSums::new(6);
        terms.iter().enumerate().for_each(|(place, &x)| sums.add(place, x));
        sums.accumulate(2);
        assert_eq!(sums.all_rounded(), [1e20, 3.0, 0.0, 3.1, 7.0, 3.1]);
        assert_eq!(sums.combined(&[3, 4], &[1]), sum(&[0.1, 7.0]));
        assert_eq!(sums.combined(&[5], &[3]), 1e-30);
    }

    #[test]
    fn rows_of_numbers_of_like_size_and_of_others_add_up_exactly() {
        let mut numbers = Numbers(5);
        for (round, exponents) in [1020..1024, 1010..1030, 900..1100, 0..2046].iter().enumerate() {
            let n = 3 * MOST_ROWS as usize;
            let cells: Vec<f64> = (0..2 * n)
                .map(|i| match numbers.below(50) {
                    0 => 0.0,
                    _ if i % 1000 == 7 => numbers.next(0..2046),
                    // All of one sign in the first round: the largest sums.
                    _ if round == 0 => numbers.next(exponents.clone()).abs(),
                    _ => numbers.next(exponents.clone()),
                })
                .collect();
            let group = |row: usize| usize::from(row % 9000 == 3);
            let mut rows = ExactRows::new(2, 2);
            for (i, row) in cells.chunks(2).enumerate() {
                if i % 7 == 0 {
                    rows.add_pairs(&[group(i) as u32], |_| [row[0], row[1]]);
                } else if i % 5 == 0 {
                    (0..2).for_each(|column| rows.add_one(group(i), column, row[column]));
                } else {
                    rows.add(group(i), row);
                }
            }
            let check = |rows: ExactRows, group: &dyn Fn(usize) -> usize| {
                let sums = rows.finish();
                for place in 0..4 {
                    let is_of = |&(i, _): &(usize, &f64)| 2 * group(i / 2) + i % 2 == place;
                    let of_place = cells.iter().enumerate().filter(is_of);
                    let exact = of_place.map(|(_, &x)| to_integer(x)).sum();
                    assert_eq!(sums.rounded(place), to_double(&exact), "{round} {place}");
                }
            };
            check(rows, &group);
            // Groups by turns, and in runs.
            for length in [1, 700] {
                let group = |row: usize| row / length % 2;
                let groups: Vec<u32> = (0..n).map(|row| group(row) as u32).collect();
                let mut rows = ExactRows::new(2, 2);
                rows.add_pairs(&groups, |i| [cells[2 * i], cells[2 * i + 1]]);
                check(rows, &group);
            }
        }
    }

    #[test]
    fn differences_and_their_squares_add_up_exactly() {
        let mut numbers = Numbers(9);
        // Squares out of the range of doubles and below the normal ones, too.
        let ranges = [1020..1024, 1010..1030, 900..1100, 0..2040, 480..500, 1530..1540];
        for (round, exponents) in ranges.into_iter().enumerate() {
            let n = 3 * MOST_ROWS as usize + 9;
            let unit = [1.0, 0.3][round % 2];
            let points = [0.0, numbers.next(exponents.clone()), 3.0];
            let groups: Vec<u32> = (0..n).map(|row| (row * row % 3) as u32).collect();
            let cells: Vec<f64> = (0..n)
                .map(|i| match numbers.below(50) {
                    0 => points[i % 3],
                    _ if i % 1000 == 7 => numbers.next(0..2040),
                    _ => numbers.next(exponents.clone()),
                })
                .collect();
            let apart = |row: usize| (cells[row] - points[groups[row] as usize]) / unit;
            let mut rows = ExactRows::new(3, 2);
            for (i, of_rows) in groups.chunks(n / 3).enumerate() {
                let start = i * (n / 3);
                if i == 1 {
                    // May choose sizes that do not suit squares.
                    rows.add_pairs(of_rows, |i| [apart(start + i), apart(start + i).powi(2)]);
                } else {
                    let cells = &cells[start..start + of_rows.len()];
                    rows.add_squares(of_rows, cells, &points, unit);
                }
            }
            let sums = rows.finish();
            for group in 0..3 {
                let of_group = (0..n).filter(|&row| groups[row] as usize == group);
                let terms: Vec<f64> = of_group.map(apart).collect();
                let squares: Vec<f64> = terms.iter().map(|x| x * x).collect();
                let exact = |terms: &[f64]| to_double(&terms.iter().map(|&x| to_integer(x)).sum());
                let of_squares = match squares.contains(&f64::INFINITY) {
                    true => f64::INFINITY,
                    false => exact(&squares),
                };
                let found = [0, 1].map(|i| sums.rounded(2 * group + i));
                assert_eq!(found, [exact(&terms), of_squares], "{round} {group}");
            }
        }
    }

    #[test]
    fn rows_add_up_the_same_in_any_order_and_on_any_number_of_threads() {
        let n = 40_000;
        let mut numbers = Numbers(4);
        let cells: Vec<f64> = (0..n).map(|_| numbers.next(1000..1060)).collect();
        let add = |row: u32, sums: &mut ExactRows| {
            sums.add_one(row as usize % 3, 0, cells[row as usize]);
        };
        let forward: Vec<u32> = (0..n as u32).collect();
        let backward: Vec<u32> = forward.iter().rev().copied().collect();
        let sum = |rows: &[u32]| sum_rows(rows, 3, 1, add).all_rounded();
        let one = parallel::with_pool(1, || sum(&forward)).unwrap();
        let three = parallel::with_pool(3, || sum(&backward)).unwrap();
        assert_eq!(one, three);
        let of_third = cells.iter().skip(2).step_by(3).map(|&x| to_integer(x)).sum();
        assert_eq!(one[2], to_double(&of_third));
        assert_eq!(sum(&[]), [0.0; 3]);
    }
}
