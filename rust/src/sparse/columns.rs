//! The stored cells of the rows of a node, column by column.
//!
//! The root's are sorted once, O(m log m) for m cells; a split then moves the cells of both sides apart and keeps their
//! order, so that no node sorts again: O(cells of the node). Only columns with a cell are listed. Open leaves share no
//! row, so all of them together hold 12 bytes a cell, and as much again while the root is split.

use crate::error::Result;
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::rows::CsrRows;

/// Fewest cells of a task.
const MIN_CELLS_PER_TASK: usize = 16_384;

/// What memory is for.
const WHAT: &str = "the columns of a sparse matrix";

/// Cells that are not 0, by column, value and row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseColumns {
    /// The columns that have cells, ascending.
    features: Vec<u32>,
    /// Where the cells of each of them start, and their number at the end.
    starts: Vec<usize>,
    /// The cells, ascending in every column.
    values: Vec<f64>,
    /// The row of each cell; ascending among equal cells of a column.
    rows: Vec<u32>,
}

impl SparseColumns {
    /// The cells of all rows of a matrix. Stored zeros are left out.
    ///
    /// # Errors
    /// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
    pub fn new(matrix: &CsrRows<'_>, monitor: &Monitor) -> Result<Self> {
        let is_cell = |x: f64| x != 0.0;
        let mut ends: Vec<usize> = memory::zeros(matrix.n_columns() + 1, WHAT);
        for (&column, &x) in matrix.indices().iter().zip(matrix.values()) {
            ends[column as usize + 1] += usize::from(is_cell(x));
        }
        for column in 0..matrix.n_columns() {
            ends[column + 1] += ends[column];
        }
        let n_cells = ends[matrix.n_columns()];
        let mut cells: Vec<(f64, u32)> = memory::zeros(n_cells, WHAT);
        let mut next = ends.clone();
        for row in 0..matrix.n_rows() {
            let (columns, values) = matrix.row(row);
            for (&column, &x) in columns.iter().zip(values).filter(|(_, x)| is_cell(**x)) {
                let place = &mut next[column as usize];
                cells[*place] = (x, row as u32);
                *place += 1;
            }
        }
        let mut rest = &mut cells[..];
        let mut of_columns = vec![];
        let (mut features, mut starts) = (vec![], vec![0]);
        for column in 0..matrix.n_columns() {
            let n = ends[column + 1] - ends[column];
            if n > 0 {
                let (first, others) = rest.split_at_mut(n);
                of_columns.push(first);
                rest = others;
                features.push(column as u32);
                starts.push(ends[column + 1]);
            }
        }
        // In the order of the rows already: a stable sort keeps it among equal cells.
        parallel::try_map_some(of_columns, 64, |cells| {
            monitor.check()?;
            cells.sort_by(|a, b| a.0.total_cmp(&b.0));
            Ok(())
        })?;
        let values = memory::collected(cells.iter().map(|cell| cell.0), WHAT);
        let rows = memory::collected(cells.iter().map(|cell| cell.1), WHAT);
        Ok(SparseColumns { features, starts, values, rows })
    }

    /// Number of columns that have cells.
    pub fn n_columns(&self) -> usize {
        self.features.len()
    }

    /// The columns that have cells, ascending.
    pub fn features(&self) -> &[u32] {
        &self.features
    }

    /// The cells of the column at a place of [`SparseColumns::features`], and their rows.
    pub fn at(&self, place: usize) -> (&[f64], &[u32]) {
        let cells = self.starts[place]..self.starts[place + 1];
        (&self.values[cells.clone()], &self.rows[cells])
    }

    /// The cells of a column and their rows: none for a column that is not listed.
    pub fn of(&self, feature: usize) -> (&[f64], &[u32]) {
        let place = self.features.binary_search(&(feature as u32));
        place.map_or((&[], &[]), |place| self.at(place))
    }

    /// The cells in the rows for which `is_wanted` holds, in the same order.
    pub fn select(&self, is_wanted: impl Fn(u32) -> bool + Sync) -> Self {
        let tasks = parallel::map(self.tasks(), |places| {
            let mut part = SparseColumns { starts: vec![0], ..SparseColumns::default() };
            for place in places {
                let (values, rows) = self.at(place);
                for (&x, &row) in values.iter().zip(rows).filter(|(_, row)| is_wanted(**row)) {
                    memory::push(&mut part.values, x, WHAT);
                    memory::push(&mut part.rows, row, WHAT);
                }
                if part.rows.len() > part.starts[part.starts.len() - 1] {
                    part.features.push(self.features[place]);
                    part.starts.push(part.rows.len());
                }
            }
            part
        });
        let n_cells = tasks.iter().map(|part| part.rows.len()).sum();
        let mut all = SparseColumns { starts: vec![0], ..SparseColumns::default() };
        memory::reserve(&mut all.values, n_cells, WHAT);
        memory::reserve(&mut all.rows, n_cells, WHAT);
        for mut part in tasks {
            let first = all.rows.len();
            all.starts.extend(part.starts[1..].iter().map(|end| first + end));
            all.features.append(&mut part.features);
            all.values.append(&mut part.values);
            all.rows.append(&mut part.rows);
        }
        all
    }

    /// Neighbouring columns, as ranges of places, of at least [`MIN_CELLS_PER_TASK`] cells each but the last.
    fn tasks(&self) -> Vec<std::ops::Range<usize>> {
        let (mut tasks, mut first) = (vec![], 0);
        for place in 0..self.n_columns() {
            let n_cells = self.starts[place + 1] - self.starts[first];
            if n_cells >= MIN_CELLS_PER_TASK || place + 1 == self.n_columns() {
                tasks.push(first..place + 1);
                first = place + 1;
            }
        }
        tasks
    }

    /// The least and the largest cell of a column of `n_rows` rows, those that are not stored included.
    pub fn ends(&self, feature: usize, n_rows: usize) -> (f64, f64) {
        let (values, _) = self.of(feature);
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return (0.0, 0.0) };
        if values.len() < n_rows { (low.min(0.0), high.max(0.0)) } else { (low, high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Csr;

    #[test]
    fn cells_are_sorted_once_and_keep_their_order() {
        // 3 0 -1 / 0 0 2 (and a stored zero) / 3 0 -1 / -4 0 0
        let values = [3.0, -1.0, 0.0, 2.0, 3.0, -1.0, -4.0];
        let indices = [0, 2, 0, 2, 0, 2, 0];
        let matrix = Csr::from_i64(&[0, 2, 4, 6, 7], &indices, &values, 3).unwrap();
        let columns = SparseColumns::new(&matrix, &Monitor::default()).unwrap();
        assert_eq!(columns.features(), [0, 2]);
        assert_eq!(columns.of(0), (&[-4.0, 3.0, 3.0][..], &[3, 0, 2][..]));
        assert_eq!(columns.of(2), (&[-1.0, -1.0, 2.0][..], &[0, 2, 1][..]));
        assert_eq!(columns.of(1), (&[][..], &[][..]));
        assert_eq!([0, 1, 2].map(|f| columns.ends(f, 4)), [(-4.0, 3.0), (0.0, 0.0), (-1.0, 2.0)]);
        let some = columns.select(|row| row == 2 || row == 3);
        assert_eq!(some.of(0), (&[-4.0, 3.0][..], &[3, 2][..]));
        assert_eq!(some.of(2), (&[-1.0][..], &[2][..]));
        assert_eq!(columns.select(|row| row == 3).features(), [0]);
        assert_eq!(some.ends(0, 2), (-4.0, 3.0));
        assert_eq!(columns.select(|_| false).n_columns(), 0);
    }
}
