//! The stocks of the levels of a leaf, each cut from the others.
//!
//! S(L, L) of a level depends on its rows alone. A level that loses no row to the other side of a split has the rows of
//! the parent, in the same order: its stock is the parent's, to the bit. One that loses few rows has the pairs of the
//! parent less those that are lost ([`super::level_pairs`]). Where one level of a few hundred rows after the other is
//! split off, all levels of the large child are such.
//!
//! Memory: 24 bytes per level and column of an open leaf, and 2 per column of levels for each level of 16 rows and more.

use super::cuts::{ColumnCuts, CutBuilder, LeafColumn, LeafSums, SetForm, stocks};
use super::kernel::add_row;
use super::level_pairs::{LEAST_ROWS, LevelPairs};
use crate::memory;
use crate::partition::Segment;

/// What the features of levels make of the stocks S(L, L) of the levels of a column, at one leaf.
#[derive(Debug)]
pub(super) struct LevelStocks {
    feature: usize,
    /// By code.
    by_code: Vec<KnownStock>,
    /// Pairs of rows with the same level, by column of levels.
    pairs: Vec<u16>,
}

/// The stock of a level.
#[derive(Debug, Clone, Copy, Default)]
struct KnownStock {
    /// None where the stock is not known.
    n_rows: u32,
    /// Where its pairs start among all; none if they are not kept.
    first_pair: Option<u32>,
    stock: f64,
}

/// What a leaf has from its parent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inherited<'a> {
    /// The stocks of the parent's levels.
    pub(super) of_levels: &'a [LevelStocks],
    /// The rows of its other child.
    pub(super) sibling: Segment,
}

impl LevelStocks {
    /// No stock is known.
    fn new(feature: usize, n_levels: usize) -> Self {
        LevelStocks { feature, by_code: vec![KnownStock::default(); n_levels], pairs: vec![] }
    }

    /// Returns what is known of a level: its number of rows, their stock, and their pairs, `width` numbers, if these are
    /// kept.
    fn of(&self, code: usize, width: usize) -> (usize, f64, Option<&[u16]>) {
        let KnownStock { n_rows, first_pair, stock } = self.by_code[code];
        let pairs = first_pair.map(|first| &self.pairs[first as usize..][..width]);
        (n_rows as usize, stock, pairs)
    }

    /// Notes the stock of a level, and its pairs if these are worth it and their place fits in 32 bits.
    fn note(&mut self, code: usize, n_rows: usize, stock: f64, pairs: Option<&[u16]>) {
        let pairs = pairs.filter(|_| n_rows >= LEAST_ROWS);
        let first_pair = pairs.and_then(|_| u32::try_from(self.pairs.len()).ok());
        if let (Some(pairs), Some(_)) = (pairs, first_pair) {
            memory::reserve(&mut self.pairs, pairs.len(), "the pairs of levels");
            self.pairs.extend(pairs);
        }
        self.by_code[code] = KnownStock { n_rows: n_rows as u32, first_pair, stock };
    }
}

impl CutBuilder<'_> {
    /// Adds self stocks to the sets of a column of levels: one level, or the missing cells, from the others.
    ///
    /// Of a level with few rows S(L, L) comes from the entries that these rows have. With M the missing cells and N the
    /// leaf S(L + M, L + M) = S(L, L) + 2 S(L, M) + S(M, M) and S(R, R) = S(N, N) - 2 S(N, L) + S(L, L), where R has no less
    /// weight than L. Other levels, and those with most of the leaf's weight, are added up entry by entry.
    ///
    /// Returns the S(L, L) of levels with few rows, for the leaf's children.
    pub(super) fn add_stocks_of_groups(
        &self,
        sets: &mut [ColumnCuts],
        column: &LeafColumn<'_, '_>,
        leaf: LeafSums<'_>,
    ) -> LevelStocks {
        let (features, weights, total) = (self.features, self.weights, leaf.total);
        let order = column.order;
        let n_levels = column.column.n_levels().unwrap_or(0);
        let mut of_levels = LevelStocks::new(column.feature, n_levels);
        let n_numbers = features.n_numbers();
        let n_missing = sets.iter().map(|cuts| cuts.set.n_missing_left).max().unwrap_or(0);
        let sum_of = |rows: &[u32]| {
            let mut sum = features.nothing();
            rows.iter().for_each(|&row| features.add(&mut sum, row, weights.of(row)));
            sum
        };
        // Without missing cells all of these are 0 or not read.
        let (mut of_missing, mut missing, mut with_missing) = (vec![], vec![], None);
        let (mut stock_of_missing, mut missing_with_total) = (0.0, 0.0);
        if n_missing > 0 {
            of_missing = sum_of(&order[order.len() - n_missing..]);
            missing = of_missing.clone();
            features.finish(&mut missing);
            stock_of_missing = features.product_of_levels(&missing, &missing);
            missing_with_total = features.product_of_levels(&missing, total);
            with_missing = Some(features.product_with_levels(&missing));
        }
        // What levels make of S(L, L), S(L, N) and S(L, M), by the first place of L: the same for every set.
        let mut known: Vec<(u32, [f64; 3])> = vec![];
        let mut buffer = vec![];
        for cuts in sets {
            let missing_left = cuts.set.n_missing_left > 0;
            for cut in 0..cuts.n_left.len() {
                let places = cuts.rows(cut).places;
                let (start, rows) = (places.start as u32, &order[places]);
                let are_few = cuts.set.form == SetForm::Levels
                    && cuts.weight[0][cut] <= cuts.weight[1][cut]
                    && features.have_few_levels(rows);
                if !are_few {
                    let mut sum = sum_of(rows);
                    if missing_left {
                        add_row(&mut sum, &of_missing, 1.0);
                    }
                    features.finish(&mut sum);
                    cuts.push_stocks(stocks(&sum, total));
                    continue;
                }
                let mut numbers =
                    if missing_left { missing[..n_numbers].to_vec() } else { vec![0.0; n_numbers] };
                if n_numbers > 0 {
                    rows.iter().for_each(|&row| {
                        add_row(&mut numbers, features.numbers(row), weights.of(row));
                    });
                }
                let [mut own, mut other] = stocks(&numbers, &total[..n_numbers]);
                let place = known.binary_search_by_key(&start, |(start, _)| *start);
                let place = place.unwrap_or_else(|place| {
                    let few = self.stock_of_level(rows, column, &mut of_levels, &mut buffer);
                    let with_total = leaf.sum_with_levels(rows);
                    let with_missing = with_missing.as_ref().map_or(0.0, |product| {
                        rows.iter().map(|&row| weights.of(row) * product(row)).sum()
                    });
                    known.insert(place, (start, [few, with_total, with_missing]));
                    place
                });
                let [mut few, mut with_total, with_missing] = known[place].1;
                if missing_left {
                    few += 2.0 * with_missing + stock_of_missing;
                    with_total += missing_with_total;
                }
                own += few;
                other += (leaf.stock_of_levels - 2.0 * with_total + few).max(0.0);
                cuts.push_stocks([own, other]);
            }
        }
        of_levels
    }

    /// Returns the S(L, L) of the few `rows` of a level, and notes it for the leaf's children. `pairs`: a buffer.
    fn stock_of_level(
        &self,
        rows: &[u32],
        column: &LeafColumn<'_, '_>,
        of_levels: &mut LevelStocks,
        pairs: &mut Vec<u16>,
    ) -> f64 {
        let cell = |row: u32| column.column.get(row as usize);
        let level = cell(rows[0]);
        let code = level as usize;
        let by_pairs = self.features.pairs_of(rows.len(), self.weights);
        let width = by_pairs.map_or(0, |(.., width)| width);
        let of_parent = self.of_parent.iter().find(|known| known.feature == column.feature);
        let of_parent = of_parent.map(|known| known.of(code, width));
        if let Some((_, stock, pairs)) = of_parent.filter(|(n_rows, ..)| *n_rows == rows.len()) {
            of_levels.note(code, rows.len(), stock, pairs);
            return stock;
        }
        let Some((level_pairs, codes, width)) = by_pairs else {
            let stock = self.features.stock_of_few(rows, self.weights);
            of_levels.note(code, rows.len(), stock, None);
            return stock;
        };
        pairs.clear();
        match of_parent {
            Some((n_before, _, Some(before))) if LevelPairs::follow(rows.len(), n_before) => {
                let first = column.sibling.partition_point(|&row| cell(row) < level);
                let lost = &column.sibling[first..][..n_before - rows.len()];
                pairs.extend(before);
                level_pairs.take_away(codes, lost, rows, pairs);
            }
            _ => {
                pairs.resize(width, 0);
                level_pairs.count(codes, rows, pairs);
            }
        }
        let stock = level_pairs.stock(pairs, rows);
        let stock = stock.unwrap_or_else(|| self.features.stock_of_few(rows, self.weights));
        of_levels.note(code, rows.len(), stock, Some(pairs));
        stock
    }
}
