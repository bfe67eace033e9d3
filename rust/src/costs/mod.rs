//! Label costs, regrets and cluster sums: the numbers that criteria and centers are made from.
//!
//! The cost of a label is the distance of a row to the label's center; its regret is that cost minus the least one of
//! the row, times the row's weight (algorithms.md, section 0: D'_ij = w_i (D_ij - min_l D_il)). Regrets of a node's
//! rows add up to what a label costs there beyond the best labels, which is all that growth compares. Symbols: n rows,
//! d columns, k labels; costs take O(n d k) and sums of groups O(n d).
//!
//! Columns are shifted by a value of their own before anything is added up (*origin*): `x - shift` is exact where
//! the data lie far from zero, so a table moved by 1e8 gives the same bits.
//!
//! **Missing cells** add nothing to any cost or sum (k-POD: Chi, Chi and Baraniuk 2016, *k-POD: A Method for k-Means
//! Clustering of Missing Data*): means and spreads are those of observed cells. The loops for complete columns know
//! nothing of them; a NaN that they leave in a result marks what is computed again without the missing cells.
//! **Sparse rows** keep the origin 0: see `sparse.rs`. **Levels** cost what a table says for each label and level.

mod groups;
mod labels;
mod means;
mod moving;
mod sparse;
mod units;

pub(crate) use groups::group_weights;
pub use groups::{GroupSums, group_sums, level_counts};
pub(crate) use labels::{ExactLabelCosts, LevelCosts, exact_label_costs, to_regrets};
pub use labels::{LabelCosts, Metric, label_costs};
pub use means::{GroupMeans, group_means};
pub(crate) use means::{Moments, is_good_guess};
pub(crate) use moving::MovingSums;
pub use units::Units;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, MISSING_LEVEL, Table};
    use ndarray::{Array2, ArrayView1};

    pub(super) fn example(offset: f64) -> Array2<f64> {
        Array2::from_shape_fn((100, 3), |(i, j)| offset + ((i * 37 + j * 11) % 64) as f64 / 8.0)
    }

    /// Numbers with gaps and levels, 100 rows and five columns: the last two are levels and all missing.
    pub(super) fn gappy() -> (Array2<f64>, Vec<u8>) {
        let mut x = example(5.0);
        (0..100).filter(|i| i % 7 == 3).for_each(|i| x[[i, i % 2]] = f64::NAN);
        (50..60).for_each(|i| x.row_mut(i).fill(f64::NAN));
        (0..100).filter(|i| i % 4 == 2).for_each(|i| x[[i, 2]] = f64::NAN);
        let codes = (0..100).map(|i| if i % 5 == 4 { MISSING_LEVEL } else { (i % 3) as u8 });
        (x, codes.collect())
    }

    pub(super) fn gappy_table<'a>(
        x: &'a Array2<f64>,
        codes: &'a [u8],
        missing: &'a [f64],
    ) -> Table<'a> {
        let mut columns = crate::table::matrix_columns(x.view());
        columns.push(Column::levels(ArrayView1::from(codes), 3).unwrap());
        columns.push(ArrayView1::from(missing).into());
        Table::new(columns).unwrap()
    }

    #[test]
    fn costs_do_not_depend_on_the_origin() {
        let result = |offset: f64| {
            let x = example(offset);
            let table = Table::from_matrix(x.view()).unwrap();
            let units = Units::of(&table, None, true).unwrap();
            let groups: Vec<u32> = (0..100).map(|i| i % 4).collect();
            let sums = group_sums(&table, &units, &groups, 4, None).unwrap();
            let centers: Vec<f64> = sums.sums.iter().map(|s| s / 25.0).collect();
            label_costs(&table, &units, &centers, Metric::SquaredEuclidean, &[], None).unwrap()
        };
        assert_eq!(result(0.0), result(1e8));
    }

    #[test]
    fn means_and_units_are_those_of_observed_cells() {
        let ((x, codes), missing) = (gappy(), [f64::NAN; 100]);
        let table = gappy_table(&x, &codes, &missing);
        let groups: Vec<u32> = (0..100).map(|i| u32::from(i % 10 == 4) + i / 50).collect();
        for weights in [None, Some((0..100).map(|i| 0.1 + f64::from(i % 4)).collect::<Vec<_>>())] {
            let weight = |row: usize| weights.as_ref().map_or(1.0, |w| w[row]);
            let units = Units::of(&table, weights.as_deref(), true).unwrap();
            assert_eq!((units.shift[3], units.scale[3], units.scale[4]), (0.0, 1.0, 1.0));
            let sums = group_sums(&table, &units, &groups, 4, weights.as_deref()).unwrap();
            let means =
                group_means(&table, &units, &groups, 4, weights.as_deref(), &[2.0; 20]).unwrap();
            assert_eq!(means.observed, sums.observed);
            let observed = sums.observed.unwrap();
            let close =
                |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} {b}");
            let mut spread = [0.0; 4];
            for f in 0..5 {
                let groups = &groups;
                let cells = |group: usize| {
                    let rows =
                        (0..100).filter(move |&row| groups[row] as usize == group || group > 3);
                    let cells = rows.map(|row| (weight(row), table.column(f).get(row)));
                    cells.filter(|(_, x)| !x.is_nan()).collect::<Vec<_>>()
                };
                let moments = |cells: &[(f64, f64)]| {
                    let total: f64 = cells.iter().map(|(w, _)| w).sum();
                    let mean = cells.iter().map(|(w, x)| w * x).sum::<f64>() / total;
                    let squares: f64 = cells.iter().map(|(w, x)| w * (x - mean).powi(2)).sum();
                    (total, mean, squares)
                };
                if f < 3 {
                    let (total, _, squares) = moments(&cells(4));
                    close(units.scale[f], (squares / total).sqrt());
                }
                for (group, spread) in spread.iter_mut().enumerate() {
                    let (i, cells) = (group * 5 + f, cells(group));
                    let (total, mean, squares) = moments(&cells);
                    close(observed[i], total);
                    if f < 3 && total > 0.0 {
                        close(means.means[i], mean);
                        close(sums.sums[i], total * (mean - units.shift[f]) / units.scale[f]);
                        *spread += squares / units.scale[f].powi(2);
                    } else {
                        assert_eq!((means.means[i], sums.sums[i]), (2.0, 0.0));
                    }
                }
            }
            spread.iter().zip(&means.spread).for_each(|(a, b)| close(*a, *b));
        }
    }

    #[test]
    fn zeros_count_as_other_cells_however_many_there_are() {
        let n = 3000;
        let cell = |(row, column): (usize, usize)| match (row * 7 + column * row * row) % 10 {
            share if share < 2 * column => 0.0,
            1 => -0.0,
            _ => (row % 97) as f64 / 7.0 - 5.0,
        };
        let mut x = Array2::from_shape_fn((n, 7), cell);
        x[[2990, 4]] = f64::NAN;
        x.column_mut(6).fill(0.0);
        let columns = x.t().as_standard_layout().reversed_axes().to_owned();
        let groups: Vec<u32> = (0..n as u32).map(|row| row * row % 5).collect();
        let near: Vec<f64> = (0..6 * 7).map(f64::from).collect();
        let ones = vec![1.0; n];
        for scale in [1.0, 0.3] {
            let units = Units { shift: vec![0.125; 7], scale: vec![scale; 7] };
            for x in [&x, &columns] {
                let table = Table::from_matrix(x.view()).unwrap();
                let sums = |w| group_sums(&table, &units, &groups, 6, w).unwrap();
                let means = |w| group_means(&table, &units, &groups, 6, w, &near).unwrap();
                // With weights no cell is left out.
                assert_eq!(sums(None), sums(Some(&ones)));
                assert_eq!(means(None), means(Some(&ones)));
            }
        }
    }
}
