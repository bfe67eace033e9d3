//! Pairs of rows with the same level, from which the stocks of a level's rows follow.
//!
//! With c_w rows of level w of a column of levels, n rows, its unit u and its means m, the column makes of S(L, L) the
//! sum over w of (u c_w - n m_w)^2 = u^2 Q - 2 n u (sum over the rows of m_w) + n^2 |m|^2. Q, the sum of c_w^2, is the
//! number of pairs of rows (each row with itself too) that have the same level: an integer, which pairs that a split takes
//! apart leave exactly. It is counted for rows of weight 1 without missing cells.
//!
//! | formula | here |
//! |---|---|
//! | Q, by column of levels | `pairs` |
//! | u^2 | `unit_squares` |
//! | u m_w, the sum over the columns, of a row | `mean_sums` |
//!
//! Cost: pairs of r rows are counted in O(r) per column, and taken away in O(r) per row and column, by comparisons side
//! by side that take a small part of the time of a count. Memory: 8 bytes per row of the table.

use crate::table::MAX_LEVELS;

/// Most rows of which pairs are counted: a number of pairs fits in 16 bits, one of rows in 8.
pub(super) const MOST_ROWS: usize = u8::MAX as usize;

/// Fewest rows of which pairs are kept for the children: those of fewer rows are soon counted.
pub(super) const LEAST_ROWS: usize = 16;

/// Rows that stay for each one taken away, at least: else the pairs of those that stay are soon counted.
const STAYING_PER_LOST: usize = 8;

/// Where less than this share of the sums that are added is left, digits were lost.
const LEAST_SHARE: f64 = 1.0 / 16.0;

/// Pairs of rows with the same level, of a table whose columns of levels have no missing cells.
#[derive(Debug)]
pub(super) struct LevelPairs {
    unit_squares: Vec<f64>,
    /// The sum over the columns of the squared length of their means.
    mean_norm: f64,
    mean_sums: Vec<f64>,
}

impl LevelPairs {
    /// `units`, `mean_norms`: by column of levels; `mean_sums`: by row.
    pub(super) fn new(units: &[f64], mean_norms: &[f64], mean_sums: Vec<f64>) -> Self {
        LevelPairs {
            unit_squares: units.iter().map(|unit| unit * unit).collect(),
            mean_norm: mean_norms.iter().sum(),
            mean_sums,
        }
    }

    /// Counts the pairs of some rows, at most [`MOST_ROWS`], by column of levels. `codes`: of all rows, row-major.
    pub(super) fn count(&self, codes: &[u8], rows: &[u32], pairs: &mut [u16]) {
        let width = pairs.len();
        let mut counts = [0u8; MAX_LEVELS + 1];
        for (column, pairs) in pairs.iter_mut().enumerate() {
            let codes =
                || rows.iter().map(|&row| usize::from(codes[row as usize * width + column]));
            let mut sum = 0;
            for code in codes() {
                let count = &mut counts[code];
                sum += 2 * u16::from(*count) + 1;
                *count += 1;
            }
            codes().for_each(|code| counts[code] = 0);
            *pairs = sum;
        }
    }

    /// Whether the pairs of `n_rows` rows follow from those of `n_before` sooner than they are counted.
    pub(super) fn follow(n_rows: usize, n_before: usize) -> bool {
        n_before.saturating_sub(n_rows) * STAYING_PER_LOST <= n_rows
    }

    /// Takes away the pairs of rows that are lost, with each other and with the rows that stay.
    pub(super) fn take_away(&self, codes: &[u8], lost: &[u32], rows: &[u32], pairs: &mut [u16]) {
        let width = pairs.len();
        let codes_of = |row: u32| &codes[row as usize * width..][..width];
        let mut equal = vec![0u8; width];
        for (i, &row) in lost.iter().enumerate() {
            let own = codes_of(row);
            equal.fill(0);
            for &other in rows.iter().chain(&lost[i + 1..]) {
                for ((equal, own), other) in equal.iter_mut().zip(own).zip(codes_of(other)) {
                    *equal += u8::from(own == other);
                }
            }
            for (pairs, &equal) in pairs.iter_mut().zip(&equal) {
                *pairs -= 2 * u16::from(equal) + 1;
            }
        }
    }

    /// Returns what levels make of S(L, L) of some rows, from their pairs; none where this would lose digits.
    pub(super) fn stock(&self, pairs: &[u16], rows: &[u32]) -> Option<f64> {
        let n = rows.len() as f64;
        let of_pairs = self.unit_squares.iter().zip(pairs).map(|(x, &pairs)| x * f64::from(pairs));
        let added = of_pairs.sum::<f64>() + n * n * self.mean_norm;
        let (fours, rest) = rows.as_chunks::<4>();
        let mut lanes = [0.0; 4];
        for four in fours {
            for (lane, &row) in lanes.iter_mut().zip(four) {
                *lane += self.mean_sums[row as usize];
            }
        }
        let rest: f64 = rest.iter().map(|&row| self.mean_sums[row as usize]).sum();
        let means = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest;
        let stock = added - 2.0 * n * means;
        (stock >= LEAST_SHARE * added).then_some(stock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum over columns and levels of (u c - n m)^2.
    fn stock_of(codes: &[u8], means: &[Vec<f64>], units: &[f64], rows: &[u32]) -> f64 {
        let of_column = |(column, (means, unit)): (usize, (&Vec<f64>, &f64))| {
            let of_level = |(level, mean): (usize, &f64)| {
                let code = |row: u32| usize::from(codes[row as usize * units.len() + column]);
                let count = rows.iter().filter(|&&row| code(row) == level).count() as f64;
                (unit * count - rows.len() as f64 * mean).powi(2)
            };
            means.iter().enumerate().map(of_level).sum::<f64>()
        };
        means.iter().zip(units).enumerate().map(of_column).sum()
    }

    #[test]
    fn pairs_that_are_taken_away_leave_those_of_the_rows_that_stay() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut n_stocks, mut n_lost_digits) = (0, 0);
        for trial in 0..60 {
            let (n, width, n_levels) = (MOST_ROWS, 1 + trial % 21, [2, 30, 255][trial % 3]);
            let codes: Vec<u8> =
                (0..n * width).map(|_| random.u8(..n_levels).min(random.u8(..n_levels))).collect();
            let shares = |column: usize| {
                let mut shares = vec![0.0; usize::from(n_levels)];
                let of_column = codes[column..].iter().step_by(width);
                of_column.for_each(|&code| shares[usize::from(code)] += 1.0 / n as f64);
                shares
            };
            let units: Vec<f64> = (0..width).map(|_| random.f64() + 0.1).collect();
            let means: Vec<Vec<f64>> = (0..width)
                .map(|column| shares(column).iter().map(|share| units[column] * share).collect())
                .collect();
            let norms: Vec<f64> = means.iter().map(|m| m.iter().map(|x| x * x).sum()).collect();
            let mean_sums = codes.chunks(width).map(|row| {
                let of_columns = row.iter().zip(&means).zip(&units);
                of_columns.map(|((&code, means), unit)| unit * means[usize::from(code)]).sum()
            });
            let of_pairs = LevelPairs::new(&units, &norms, mean_sums.collect());
            let counted = |rows: &[u32]| {
                let mut pairs = vec![7; width];
                of_pairs.count(&codes, rows, &mut pairs);
                pairs
            };
            let mut rows: Vec<u32> = (0..n as u32).collect();
            random.shuffle(&mut rows);
            let mut pairs = counted(&rows);
            while !rows.is_empty() {
                let lost = rows.split_off(rows.len() - random.usize(1..=rows.len().min(9)));
                of_pairs.take_away(&codes, &lost, &rows, &mut pairs);
                assert_eq!(pairs, counted(&rows));
                let expected = stock_of(&codes, &means, &units, &rows);
                match of_pairs.stock(&pairs, &rows) {
                    Some(stock) => {
                        assert!((stock - expected).abs() <= 1e-13 * expected, "{stock} {expected}");
                        n_stocks += 1;
                    }
                    None => n_lost_digits += 1,
                }
            }
        }
        assert!(n_stocks > 500 && n_lost_digits > 100, "{n_stocks} {n_lost_digits}");
    }
}
