//! Sums of groups from one grouping of the rows to the next: only rows that change their group are read.
//!
//! The sums are exact, so what a row adds can be taken away without a trace: whatever the groupings before, the bits are
//! those of [`group_sums`].

use super::Units;
use super::groups::{
    GroupSums, RowGroups, by_group, column_sums, group_sums, group_weights, sums_of_cells,
};
use crate::error::{Error, Result};
use crate::exact::ExactSums;
use crate::memory;
use crate::parallel;
use crate::table::Table;

/// A row that changes its group takes as long as so many that are added anew.
const ROWS_PER_MOVE: usize = 2;

/// Groups of the rows of a table, and their sums.
#[derive(Debug)]
pub struct MovingSums<'a, 't> {
    table: &'a Table<'t>,
    units: &'a Units,
    weights: Option<&'a [f64]>,
    n_groups: usize,
    /// The group of each row in the last call; none before the first.
    groups: Vec<u32>,
    /// By column those of its groups, in units.
    columns: Vec<ExactSums>,
}

impl<'a, 't> MovingSums<'a, 't> {
    /// No groups yet. `units`, `n_groups`, `weights`: as for [`group_sums`].
    pub fn new(
        table: &'a Table<'t>,
        units: &'a Units,
        n_groups: usize,
        weights: Option<&'a [f64]>,
    ) -> Self {
        MovingSums { table, units, weights, n_groups, groups: vec![], columns: vec![] }
    }

    /// [`group_sums`] of these groups. O(d) a row that was in another one in the last call; O(n d) in the first, where most
    /// rows were, and for tables with missing cells.
    ///
    /// # Errors
    /// As [`group_sums`].
    pub fn of(&mut self, groups: &[u32]) -> Result<GroupSums> {
        let MovingSums { table, units, weights, n_groups, .. } = *self;
        Error::check_labels(groups, table.n_samples(), n_groups)?;
        let mut moved: Vec<u32> = vec![];
        for (row, (before, now)) in (0..).zip(self.groups.iter().zip(groups)) {
            if before != now {
                memory::push(&mut moved, row, "the rows that change their group");
            }
        }
        if self.groups.is_empty() || ROWS_PER_MOVE * moved.len() > groups.len() {
            let columns = column_sums(table, units, RowGroups { groups, n_groups, weights });
            let Some(columns) = columns.into_iter().collect() else {
                return group_sums(table, units, groups, n_groups, weights);
            };
            self.columns = columns;
        } else {
            let (before, now) = (of_rows(&self.groups, &moved), of_rows(groups, &moved));
            let weights = weights.map(|weights| of_rows(weights, &moved));
            let weights = weights.as_deref();
            parallel::map(self.columns.iter_mut().enumerate(), |(feature, sums)| {
                let mut cells = vec![];
                table.column(feature).gather(&moved, &mut cells);
                let added = |groups| {
                    sums_of_cells(&cells, feature, units, RowGroups { groups, n_groups, weights })
                };
                sums.take_away(&added(&before));
                sums.merge(&added(&now));
            });
        }
        self.groups = memory::copied(groups, "the groups of rows");
        let sum = |feature: usize, group: usize| self.columns[feature].rounded(group);
        Ok(GroupSums {
            weight: group_weights(groups, n_groups, weights),
            sums: by_group(n_groups, self.columns.len(), sum),
            observed: None,
        })
    }
}

/// The entries of some rows.
fn of_rows<T: Copy>(all: &[T], rows: &[u32]) -> Vec<T> {
    memory::collected(rows.iter().map(|&row| all[row as usize]), "the rows that change their group")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::tests::{example, gappy, gappy_table};

    /// Groups that change for some rows, for most, for none: always the sums from scratch, bit for bit.
    #[test]
    fn rows_that_move_leave_no_trace() {
        let ((gaps, codes), missing) = (gappy(), [f64::NAN; 100]);
        let mut x = example(0.1);
        x[[7, 1]] = 1e300; // hides the digits of all others
        x[[8, 2]] = f64::MAX;
        x.column_mut(0).iter_mut().skip(20).for_each(|x| *x = 0.0);
        let tables = [Table::from_matrix(x.view()).unwrap(), gappy_table(&gaps, &codes, &missing)];
        let some: Vec<f64> = (0..100).map(|i| 0.1 + f64::from(i % 7)).collect();
        let mut rng = fastrand::Rng::with_seed(3);
        for (table, weights) in tables.iter().flat_map(|t| [(t, None), (t, Some(&some[..]))]) {
            let scale = vec![0.3; table.n_features()];
            let shift = (0..table.n_features()).map(|f| f64::from(f as u32 % 3)).collect();
            let units = Units { shift, scale };
            let mut moving = MovingSums::new(table, &units, 4, weights);
            let mut groups: Vec<u32> = (0..100).map(|i| i % 4).collect();
            for n_moved in [100, 5, 0, 1, 49, 50, 51, 100, 3] {
                (0..n_moved).for_each(|_| groups[rng.usize(..100)] = rng.u32(..4));
                let anew = group_sums(table, &units, &groups, 4, weights).unwrap();
                assert_eq!(format!("{:?}", moving.of(&groups).unwrap()), format!("{anew:?}"));
            }
            assert!(moving.of(&[4; 100]).is_err() && moving.of(&groups[1..]).is_err());
        }
    }
}
