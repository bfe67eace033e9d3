//! Where the centers of clusters lie along a column.
//!
//! A cut between two centers is defined by their order among the values of the column, so that order must not depend on
//! the last digit of a mean. Three measures keep it right:
//!
//! - A [`Coordinate`] holds a mean as the sum of two doubles: near 1e8 one double is too coarse.
//! - `snap` moves a center that lies within its own rounding of a data value, or of another center, onto it.
//! - [`TableCenters`] snaps to the ends of bins first, and to all values only in columns that may hold the best cut
//!   (`prepare`): the pass over the column is then paid by few columns.
//!
//! Symbols: mu_c, the center of cluster c, is a [`Coordinate`] per column; m_c is the number of its rows. The margin of
//! mu_c bounds how far it may be off (`snap_margin`): a mean of m_c rows about an origin among them by
//! m_c eps (max - min over the rows of c), and one that is given as a double by that double's rounding. Cost: O(k) per
//! bin for all columns, and O(n) for each column that is prepared; memory: 20 k bytes per column.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::label_counts::OneHot;
use super::level_mistakes::LevelShares;
use super::{CenterCut, RowSums};
use crate::error::{Error, Result};
use crate::index::{Index, MAX_BINS};
use crate::parallel;
use crate::table::Table;

/// Rows of a column that one thread reads in one go.
const BLOCK: usize = 16_384;
/// No margin is a larger share of the cluster's range: rounding of very many rows mostly cancels.
const CLOSE: f64 = 1e-9;
/// What a center that is given as one double may be off by, as a share of its size.
const ROUNDING: f64 = 2.0 * f64::EPSILON;
/// Roundings of a mean beside those of its sum: of the weights, the units and the quotient.
const MORE_ROUNDINGS: f64 = 8.0;

/// Where the centers lie along each column.
pub trait CenterColumns: Sync {
    /// Coordinates and clusters in ascending order: k pairs, in the column's own unit.
    fn sorted(&self, feature: usize) -> Cow<'_, [(Coordinate, u32)]>;

    /// Half of the column's range, in its own unit: the range itself may overflow.
    fn half_range(&self, feature: usize) -> f64;

    /// Of a column of levels: where the centers lie among them. None for a column of numbers.
    fn level_shares(&self, feature: usize) -> Option<&LevelShares> {
        let _ = feature;
        None
    }

    /// Called before a column's cuts are compared exactly: centers of a table are then snapped to all of its values.
    fn prepare(&self, feature: usize) {
        let _ = feature;
    }

    /// The centers of the clusters in `alive`, in ascending order.
    fn alive(&self, alive: &[bool], feature: usize) -> Vec<(Coordinate, usize)> {
        let centers = self.sorted(feature);
        let centers = centers.iter().map(|&(x, cluster)| (x, cluster as usize));
        centers.filter(|&(_, cluster)| alive[cluster]).collect()
    }

    /// The smallest and the largest of the centers of the clusters in `alive` in a column of numbers; none if all are
    /// equal.
    fn outermost(&self, alive: &[bool], feature: usize) -> Option<[(Coordinate, u32); 2]> {
        let centers = self.sorted(feature);
        let mut found = centers.iter().filter(|(_, cluster)| alive[*cluster as usize]);
        let (first, last) = (*found.next()?, *found.next_back()?);
        first.0.cmp(&last.0).is_lt().then_some([first, last])
    }

    /// The alive centers on the left and on the right of a cut.
    fn split(&self, alive: &[bool], feature: usize, cut: CenterCut) -> (Vec<bool>, Vec<bool>) {
        let (mut left, mut right) = (vec![false; alive.len()], vec![false; alive.len()]);
        if let (Some(side), Some(shares)) = (cut.of_levels, self.level_shares(feature)) {
            let alive: Vec<usize> = (0..alive.len()).filter(|&cluster| alive[cluster]).collect();
            let inside = shares.clusters(side.group, &alive);
            for cluster in alive {
                let goes_left = inside.contains(&cluster) == side.is_left;
                (left[cluster], right[cluster]) = (goes_left, !goes_left);
            }
            return (left, right);
        }
        for (i, (_, cluster)) in self.alive(alive, feature).into_iter().enumerate() {
            let side = if i < cut.n_left { &mut left } else { &mut right };
            side[cluster] = true;
        }
        (left, right)
    }

    /// A width as a share of the column's range; 1 for a column without range.
    fn share_of_range(&self, feature: usize, below: &Coordinate, above: &Coordinate) -> f64 {
        let half_range = self.half_range(feature);
        if half_range == 0.0 {
            1.0
        } else if half_range < f64::MAX / 2.0 {
            above.minus(below) / (2.0 * half_range)
        } else {
            (above.high / 2.0 - below.high / 2.0) / half_range
        }
    }
}

/// A center's coordinate as an unevaluated sum `high + low`, `high` being the nearest double. The mean of values
/// near 1e8 is known to more digits than a double near 1e8 has, and on which side of a sample it lies must not
/// depend on where the table is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coordinate {
    high: f64,
    low: f64,
}

impl Coordinate {
    /// The unevaluated sum of a double and what it leaves out.
    pub(crate) fn of_sum(high: f64, low: f64) -> Self {
        Coordinate { high, low }
    }

    /// A coordinate that is a double.
    pub fn exact(x: f64) -> Self {
        Coordinate { high: x, low: 0.0 }
    }

    /// The nearest double.
    pub fn nearest(&self) -> f64 {
        self.high
    }

    /// The order of the sums: of `high`, then of `low`.
    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        let unequal = |a: f64, b: f64| a.partial_cmp(&b).filter(|order| order.is_ne());
        unequal(self.high, other.high)
            .or_else(|| unequal(self.low, other.low))
            .unwrap_or(Ordering::Equal)
    }

    pub(crate) fn is_below(&self, x: f64) -> bool {
        self.cmp(&Coordinate::exact(x)).is_lt()
    }

    pub(crate) fn is_above(&self, x: f64) -> bool {
        self.cmp(&Coordinate::exact(x)).is_gt()
    }

    /// How far a value is from it.
    pub(crate) fn distance(&self, x: f64) -> f64 {
        self.minus(&Coordinate::exact(x)).abs()
    }

    /// The difference, rounded once.
    fn minus(&self, other: &Self) -> f64 {
        (self.high - other.high) + (self.low - other.low)
    }
}

/// Centers (k x coordinates, row-major) in the columns' own units, as sums `high + low`. A column of numbers is one
/// coordinate; a column of levels is one for each level, its share of the center.
#[derive(Debug, Clone, Copy)]
pub struct Centers<'a> {
    /// The nearest doubles.
    pub high: &'a [f64],
    /// What they leave out: zeros for centers that are plain doubles.
    pub low: &'a [f64],
}

/// Centers in the columns of a table, snapped.
#[derive(Debug)]
pub struct TableCenters<'a, 't> {
    snap: Snap<TableEnds<'a, 't>>,
    /// Per column, snapped to the ends of bins only.
    rough: Vec<Vec<(Coordinate, u32)>>,
    /// The same, snapped to all values: computed when a column is first prepared.
    exact: Vec<OnceLock<Vec<(Coordinate, u32)>>>,
    /// Per column: the shares of levels; none for numbers.
    shares: Vec<Option<LevelShares>>,
}

impl<'a, 't> TableCenters<'a, 't> {
    /// `index`: the table's. `rows`: cluster and weight per row. `centers`: k of them. O(k) per bin.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree.
    pub fn new(
        table: &'a Table<'t>,
        index: &'a Index,
        rows: OneHot<'a>,
        centers: Centers<'_>,
    ) -> Result<Self> {
        let (labels, k) = (rows.labels(), rows.width());
        let d = table.n_features();
        let mut first = vec![0];
        for feature in 0..d {
            first.push(first[feature] + table.n_levels(feature).unwrap_or(1));
        }
        Error::check_len("centers", centers.high.len(), k * first[d], "entries")?;
        Error::check_len("centers", centers.low.len(), k * first[d], "entries")?;
        Error::check_len("labels", labels.len(), table.n_samples(), "rows")?;
        let of_levels = |f: usize| {
            let n_levels = table.n_levels(f)?;
            let shares = (0..k).flat_map(|c| &centers.high[c * first[d] + first[f]..][..n_levels]);
            Some(LevelShares::new(shares.copied().collect(), n_levels))
        };
        let shares: Vec<Option<LevelShares>> = (0..d).map(of_levels).collect();
        let coordinate = |i: usize| Coordinate::of_sum(centers.high[i], centers.low[i]);
        let original = (0..d).map(|f| match shares[f] {
            None => (0..k).map(|c| coordinate(c * first[d] + first[f])).collect(),
            Some(_) => vec![Coordinate::exact(0.0); k],
        });
        let source = TableEnds { table, index, labels, k };
        let snap = Snap::new(source, rows_of(labels, k), original.collect(), &shares);
        let rough = parallel::map(0..d, |f| snap.column(f, false));
        let exact = std::iter::repeat_with(OnceLock::new).take(d).collect();
        Ok(TableCenters { snap, rough, exact, shares })
    }
}

impl CenterColumns for TableCenters<'_, '_> {
    fn sorted(&self, feature: usize) -> Cow<'_, [(Coordinate, u32)]> {
        Cow::Borrowed(self.exact[feature].get().unwrap_or(&self.rough[feature]))
    }

    fn half_range(&self, feature: usize) -> f64 {
        self.snap.half_range(feature)
    }

    fn level_shares(&self, feature: usize) -> Option<&LevelShares> {
        self.shares[feature].as_ref()
    }

    fn prepare(&self, feature: usize) {
        self.exact[feature].get_or_init(|| self.snap.column(feature, true));
    }
}

/// Coordinates with their clusters, in ascending order.
pub(crate) fn in_order(x: impl IntoIterator<Item = Coordinate>) -> Vec<(Coordinate, u32)> {
    let mut sorted: Vec<(Coordinate, u32)> = x.into_iter().zip(0..).collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
    sorted
}

/// The margin of a coordinate whose cluster has `n_rows` rows in `[low, high]` (anything if `low > high`).
fn snap_margin(low: f64, high: f64, n_rows: u32, center: &Coordinate) -> f64 {
    let of_sum = CLOSE.min((f64::from(n_rows) + MORE_ROUNDINGS) * f64::EPSILON);
    // With a low part the digits go on beyond those of one double.
    let of_double = if center.low == 0.0 { ROUNDING * center.high.abs() } else { 0.0 };
    of_double + if low < high { of_sum * (high - low) } else { 0.0 }
}

/// Snaps the coordinates of one column, in its own unit: each to the nearest of its `values` within its margin, then
/// coordinates within the smaller margin of each other to the lowest. `margins` and `values` have an entry per center.
pub(crate) fn snap(centers: &mut [Coordinate], margins: &[f64], values: &[Vec<f64>]) {
    for (i, values) in values.iter().enumerate() {
        let distance = |value: &f64| centers[i].distance(*value);
        let nearest = values
            .iter()
            .filter(|value| distance(value) <= margins[i])
            .min_by(|a, b| distance(a).total_cmp(&distance(b)).then(a.total_cmp(b)));
        if let Some(&value) = nearest {
            centers[i] = Coordinate::exact(value);
        }
    }
    let mut order: Vec<usize> = (0..centers.len()).collect();
    order.sort_by(|&a, &b| centers[a].cmp(&centers[b]));
    let mut lowest = order[0];
    for &this in &order[1..] {
        if centers[this].minus(&centers[lowest]) <= margins[this].min(margins[lowest]) {
            centers[this] = centers[lowest];
        } else {
            lowest = this;
        }
    }
}

/// Removes the gaps between centers and values that only the rounding of a mean has opened, by `snap`.
///
/// A center's margin in a column ([`snap_margin`]) goes by the range of its own cluster's rows there; with the range of
/// all rows, one far row would merge everything else. If snapping makes two centers equal that have the same shares of
/// all levels, all coordinates stay as they are.
#[derive(Debug)]
pub(crate) struct Snap<S> {
    source: S,
    k: usize,
    /// Rows of each cluster.
    n_rows: Vec<u32>,
    /// The centers before snapping, by column; 0 in columns of levels.
    original: Vec<Vec<Coordinate>>,
    /// Half of each column's range.
    half_range: Vec<f64>,
    /// Snapping makes two centers equal: leave them alone.
    collide: bool,
}

/// Number of rows of each of `k` clusters.
pub(crate) fn rows_of(labels: &[u32], k: usize) -> Vec<u32> {
    let mut n_rows = vec![0; k];
    labels.iter().for_each(|&label| n_rows[label as usize] += 1);
    n_rows
}

impl<S: ColumnEnds> Snap<S> {
    /// `source`: the columns; `n_rows`: by cluster; `original`: the centers, by column; `shares`: by column those of
    /// levels, none for numbers.
    pub(crate) fn new(
        source: S,
        n_rows: Vec<u32>,
        original: Vec<Vec<Coordinate>>,
        shares: &[Option<LevelShares>],
    ) -> Self {
        let d = original.len();
        let k = original.first().map_or(0, Vec::len);
        let half_range = (0..d).map(|f| source.half_range(f)).collect();
        let mut snap = Snap { source, k, n_rows, original, half_range, collide: false };
        // Only centers that are close in every column can become equal.
        let close = |a: usize, b: usize, f: usize| match &shares[f] {
            Some(shares) => shares.are_equal(a, b),
            None => snap.original[f][a].minus(&snap.original[f][b]).abs() <= 4.0 * snap.reach(f),
        };
        let any_pair =
            |test: &dyn Fn(usize, usize) -> bool| (0..k).any(|a| (0..a).any(|b| test(a, b)));
        if any_pair(&|a, b| (0..d).all(|f| close(a, b, f))) {
            let snapped = parallel::map(0..d, |f| snap.snapped(f, true));
            snap.collide =
                any_pair(&|a, b| (0..d).all(|f| close(a, b, f) && snapped[f][a] == snapped[f][b]));
        }
        snap
    }

    /// Half of a column's range.
    pub(crate) fn half_range(&self, feature: usize) -> f64 {
        self.half_range[feature]
    }

    /// No margin of the column exceeds this.
    fn reach(&self, feature: usize) -> f64 {
        let largest = self.original[feature].iter().fold(0.0, |a: f64, x| a.max(x.high.abs()));
        2.0 * CLOSE * self.half_range[feature] + ROUNDING * largest
    }

    /// The column's coordinates and their clusters, sorted. `closely`: with regard to every value of the column, not
    /// only the ends of bins; takes a pass over the column.
    pub(crate) fn column(&self, feature: usize, closely: bool) -> Vec<(Coordinate, u32)> {
        let x = if self.collide {
            self.original[feature].clone()
        } else {
            self.snapped(feature, closely)
        };
        in_order(x)
    }

    /// The column's coordinates by cluster, snapped. Margins are computed, at O(n), only where some center lies close
    /// to a value or to another center.
    fn snapped(&self, feature: usize, closely: bool) -> Vec<Coordinate> {
        let mut centers = self.original[feature].clone();
        let reach = self.reach(feature);
        let mut candidates = self.source.values_near(feature, reach, &centers, closely);
        for (center, found) in centers.iter().zip(&mut candidates) {
            if found.iter().any(|&x| *center == Coordinate::exact(x)) {
                found.clear(); // the center lies on a value
            }
        }
        let mut order: Vec<usize> = (0..self.k).collect();
        order.sort_by(|&a, &b| centers[a].cmp(&centers[b]));
        let close = order.windows(2).any(|p| {
            let apart = centers[p[1]].minus(&centers[p[0]]);
            0.0 < apart && apart <= reach
        });
        if !close && candidates.iter().all(Vec::is_empty) {
            return centers;
        }
        let margins = self.margins(feature, &centers);
        snap(&mut centers, &margins, &candidates);
        centers
    }

    /// The margin of each center in a column.
    fn margins(&self, feature: usize, centers: &[Coordinate]) -> Vec<f64> {
        let ends = self.source.cluster_ends(feature).into_iter();
        ends.zip(&self.n_rows)
            .zip(centers)
            .map(|(((low, high), &n_rows), center)| snap_margin(low, high, n_rows, center))
            .collect()
    }
}

/// What snapping asks of the columns that centers lie in.
pub(crate) trait ColumnEnds: Sync {
    /// Half of the column's range.
    fn half_range(&self, feature: usize) -> f64;

    /// For each center, values of the column within `reach`: all of them if `closely`, else at least the ends of bins.
    fn values_near(
        &self,
        feature: usize,
        reach: f64,
        centers: &[Coordinate],
        closely: bool,
    ) -> Vec<Vec<f64>>;

    /// Smallest and largest value of each cluster in a column; infinity and its negative without rows.
    fn cluster_ends(&self, feature: usize) -> Vec<(f64, f64)>;
}

/// The values of a table's columns.
#[derive(Debug)]
struct TableEnds<'a, 't> {
    table: &'a Table<'t>,
    index: &'a Index,
    labels: &'a [u32],
    k: usize,
}

impl ColumnEnds for TableEnds<'_, '_> {
    fn half_range(&self, feature: usize) -> f64 {
        self.index.column(feature).half_range()
    }

    fn values_near(
        &self,
        feature: usize,
        reach: f64,
        centers: &[Coordinate],
        closely: bool,
    ) -> Vec<Vec<f64>> {
        let binned = self.index.column(feature);
        let mut found = vec![vec![]; centers.len()];
        // Only bins within reach of a center matter, and most of those are one value.
        let mut wanted = [false; MAX_BINS];
        let near = |x: f64, center: &Coordinate| (x - center.high).abs() <= reach;
        let ends = binned.low.iter().copied().zip(binned.high.iter().copied());
        for (wanted, (low, high)) in wanted.iter_mut().zip(ends) {
            for (center, found) in centers.iter().zip(&mut found) {
                if low - reach <= center.high && center.high <= high + reach {
                    *wanted |= low < high;
                    found.extend([low, high].into_iter().filter(|&x| near(x, center)));
                }
            }
        }
        if closely && wanted.contains(&true) {
            let column = self.table.column(feature);
            let blocks = binned.codes.chunks(BLOCK).enumerate();
            let blocks = parallel::map(blocks, |(block, codes)| {
                // Without a branch, and all cells at once: each may be far from the others in memory.
                let (mut rows, mut n_rows) = (vec![0; codes.len()], 0);
                for (row, &code) in (block * BLOCK..).zip(codes) {
                    rows[n_rows] = row as u32;
                    n_rows += usize::from(wanted[usize::from(code)]);
                }
                let (mut cells, mut found) = (Vec::new(), Vec::new());
                column.gather(&rows[..n_rows], &mut cells);
                for x in cells {
                    let clusters = (0..centers.len()).filter(|&c| near(x, &centers[c]));
                    found.extend(clusters.map(|cluster| (cluster, x)));
                }
                found
            });
            for (cluster, x) in blocks.into_iter().flatten() {
                found[cluster].push(x);
            }
        }
        found
    }

    fn cluster_ends(&self, feature: usize) -> Vec<(f64, f64)> {
        let nothing = (f64::INFINITY, f64::NEG_INFINITY);
        let binned = self.index.column(feature);
        if binned.low == binned.high {
            // Every bin is one value: the codes suffice.
            let n_bins = binned.n_bins();
            let nowhere = || vec![false; self.k * n_bins];
            let rows = binned.codes.par_iter().zip(self.labels).with_min_len(BLOCK);
            let seen = rows.fold(nowhere, |mut seen, (&code, &label)| {
                seen[label as usize * n_bins + usize::from(code)] = true;
                seen
            });
            let seen = seen.reduce(nowhere, |mut a, b| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
                a
            });
            let ends = |seen: &[bool]| {
                let first = seen.iter().position(|&seen| seen);
                let last = seen.iter().rposition(|&seen| seen);
                first.zip(last).map_or(nothing, |(a, b)| (binned.low[a], binned.low[b]))
            };
            return seen.chunks(n_bins).map(ends).collect();
        }
        let wider = |a: &mut (f64, f64), b: (f64, f64)| *a = (a.0.min(b.0), a.1.max(b.1));
        let no_rows = || vec![nothing; self.k];
        let rows = self.labels.par_iter().enumerate().with_min_len(BLOCK);
        let ends = rows.fold(no_rows, |mut ends, (row, &label)| {
            let x = self.table.column(feature).get(row);
            wider(&mut ends[label as usize], (x, x));
            ends
        });
        ends.reduce(no_rows, |mut a, b| {
            a.iter_mut().zip(b).for_each(|(a, b)| wider(a, b));
            a
        })
    }
}
