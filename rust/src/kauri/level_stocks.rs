//! The stocks of the levels of a leaf, each cut from the others.
//!
//! S(L, L) of a level depends on its rows alone. A level that loses no row to the other side of a split has the rows of
//! the parent, in the same order: its stock is the parent's, to the bit. Where one level of a few hundred rows after the
//! other is split off, most levels of the large child are such.
//!
//! Memory: 16 bytes per level and column of an open leaf.

use super::cuts::{ColumnCuts, CutBuilder, LeafColumn, LeafSums, SetForm, stocks};
use super::kernel::add_row;

/// What the features of levels make of the stocks S(L, L) of the levels of a column, at one leaf.
#[derive(Debug)]
pub(super) struct LevelStocks {
    feature: usize,
    /// By code: the number of rows, and their stock; no rows where it is not known.
    by_code: Vec<(usize, f64)>,
}

impl LevelStocks {
    /// No stock is known.
    fn new(feature: usize, n_levels: usize) -> Self {
        LevelStocks { feature, by_code: vec![(0, 0.0); n_levels] }
    }

    /// Returns the stock of a level that has so many rows at a child of the leaf, if these are the leaf's.
    fn of(&self, code: usize, n_rows: usize) -> Option<f64> {
        let (n_known, stock) = self.by_code[code];
        (n_known == n_rows).then_some(stock)
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
        let of_parent = self.of_parent.iter().find(|known| known.feature == column.feature);
        let n_levels = column.column.n_levels().unwrap_or(0);
        let mut of_levels = LevelStocks::new(column.feature, n_levels);
        let n_numbers = features.n_numbers();
        let n_missing = sets.iter().map(|cuts| cuts.set.n_missing_left).max().unwrap_or(0);
        let sum_of = |rows: &[u32]| {
            let mut sum = features.nothing();
            rows.iter().for_each(|&row| features.add(&mut sum, row, weights.of(row)));
            sum
        };
        let of_missing = sum_of(&order[order.len() - n_missing..]);
        let mut missing = of_missing.clone();
        features.finish(&mut missing);
        let stock_of_missing = features.product_of_levels(&missing, &missing);
        let missing_with_total = features.product_of_levels(&missing, total);
        let with_missing = (n_missing > 0).then(|| features.product_with_levels(&missing));
        // What levels make of S(L, L), S(L, N) and S(L, M), by the first place of L: the same for every set.
        let mut known: Vec<(u32, [f64; 3])> = vec![];
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
                    let code = column.column.get(rows[0] as usize) as usize;
                    let of_parent = of_parent.and_then(|known| known.of(code, rows.len()));
                    let few = of_parent.unwrap_or_else(|| features.stock_of_few(rows, weights));
                    of_levels.by_code[code] = (rows.len(), few);
                    let with_total = rows.iter().map(|&row| leaf.with_levels[leaf.at(row)]).sum();
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
}
