//! Where the centers of clusters lie along the columns of sparse rows.

use std::borrow::Cow;

use super::columns::SparseColumns;
use crate::criterion::RowSums;
use crate::criterion::centers::{CenterColumns, Centers, ColumnEnds, Coordinate, Snap, rows_of};
use crate::criterion::label_counts::OneHot;
use crate::error::{Error, Result};
use crate::parallel;

/// Centers in the columns of sparse rows, snapped to all values, those that are not stored included.
#[derive(Debug)]
pub(crate) struct SparseCenters<'a> {
    snap: Snap<SparseEnds<'a>>,
    /// Per column.
    sorted: Vec<Vec<(Coordinate, u32)>>,
}

impl<'a> SparseCenters<'a> {
    /// `rows`: cluster and weight per row. `centers`: k of `n_features` coordinates. O(k d + cells).
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree.
    pub(crate) fn new(
        columns: &'a SparseColumns,
        n_features: usize,
        rows: OneHot<'a>,
        centers: Centers<'_>,
    ) -> Result<Self> {
        let k = rows.width();
        Error::check_len("centers", centers.high.len(), k * n_features, "entries")?;
        Error::check_len("centers", centers.low.len(), k * n_features, "entries")?;
        let coordinate = |f: usize, c: usize| {
            let i = c * n_features + f;
            Coordinate::of_sum(centers.high[i], centers.low[i])
        };
        let original = |f: usize| (0..k).map(|c| coordinate(f, c)).collect();
        let source = SparseEnds { columns, labels: rows.labels(), k };
        let none = vec![None; n_features];
        let original = (0..n_features).map(original).collect();
        let snap = Snap::new(source, rows_of(rows.labels(), k), original, &none);
        let sorted = parallel::map_some(0..n_features, 64, |f| snap.column(f, true));
        Ok(SparseCenters { snap, sorted })
    }
}

impl CenterColumns for SparseCenters<'_> {
    fn sorted(&self, feature: usize) -> Cow<'_, [(Coordinate, u32)]> {
        Cow::Borrowed(&self.sorted[feature])
    }

    fn half_range(&self, feature: usize) -> f64 {
        self.snap.half_range(feature)
    }
}

/// The values of sparse columns.
#[derive(Debug)]
struct SparseEnds<'a> {
    columns: &'a SparseColumns,
    labels: &'a [u32],
    k: usize,
}

impl ColumnEnds for SparseEnds<'_> {
    fn half_range(&self, feature: usize) -> f64 {
        let (low, high) = self.columns.ends(feature, self.labels.len());
        high / 2.0 - low / 2.0
    }

    fn values_near(
        &self,
        feature: usize,
        reach: f64,
        centers: &[Coordinate],
        _: bool,
    ) -> Vec<Vec<f64>> {
        let (values, _) = self.columns.of(feature);
        let has_zeros = values.len() < self.labels.len();
        let near = |center: &Coordinate| {
            let x = center.nearest();
            let first = values.partition_point(|value| value - x < -reach);
            let stop = values.partition_point(|value| value - x <= reach);
            let mut found = values[first..stop].to_vec();
            found.dedup();
            found.extend((has_zeros && x.abs() <= reach).then_some(0.0));
            found
        };
        centers.iter().map(near).collect()
    }

    fn cluster_ends(&self, feature: usize) -> Vec<(f64, f64)> {
        let (values, rows) = self.columns.of(feature);
        let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); self.k];
        let mut n_zeros = vec![0usize; self.k];
        self.labels.iter().for_each(|&label| n_zeros[label as usize] += 1);
        for (&x, &row) in values.iter().zip(rows) {
            let label = self.labels[row as usize] as usize;
            ends[label] = (ends[label].0.min(x), ends[label].1.max(x));
            n_zeros[label] -= 1;
        }
        for (ends, _) in ends.iter_mut().zip(n_zeros).filter(|(_, n)| *n > 0) {
            *ends = (ends.0.min(0.0), ends.1.max(0.0));
        }
        ends
    }
}
