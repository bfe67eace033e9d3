//! The best cut of a node for rows that hold a few numbers each.
//!
//! The ranks of the node's rows in a column are shared out to at most 256 buckets over the range that they take *there*,
//! so a small node deep down is seen as finely as the root. The scores between buckets choose column and bucket;
//! where buckets hold several ranks, those beside the chosen cut are then sorted and swept rank by rank. Exact where
//! the node has at most 256 ranks in a column. O(rows + buckets) per column, without sorting.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ranks::{RankCut, Ranks};
use crate::parallel::Monitor;

/// Most buckets of a column.
const BUCKETS: usize = 256;

/// Rows by which columns are screened, in nodes of at least twice as many.
const SCREENING_ROWS: usize = 256;
/// Columns that screening leaves.
const SCREENED_COLUMNS: usize = 3;

/// What looking at a column costs beside its cells, in cells.
const MIN_CELLS: usize = 32;

/// Cells that were looked at: the clock of the search, the same on every machine and for every number of threads; and
/// whether to stop looking, for whoever is at it.
pub(super) struct Work<'m> {
    cells: AtomicU64,
    monitor: &'m Monitor,
}

impl<'m> Work<'m> {
    pub fn new(monitor: &'m Monitor) -> Self {
        Work { cells: AtomicU64::new(0), monitor }
    }

    pub fn add(&self, n_cells: usize) {
        self.cells.fetch_add(n_cells as u64, Ordering::Relaxed);
    }

    pub fn done(&self) -> u64 {
        self.cells.load(Ordering::Relaxed)
    }

    /// Whether the search was asked to stop: what is returned then does not matter.
    pub fn is_stopped(&self) -> bool {
        self.monitor.check().is_err()
    }
}

/// A cut and its score.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoredCut {
    /// The cut.
    pub cut: RankCut,
    /// Its score, lower is better.
    pub score: f64,
}

/// Room for the sums of `K` numbers in the buckets of one column.
pub(super) struct Sweep<'w, const K: usize> {
    work: &'w Work<'w>,
    /// Whether some rows choose the columns that all rows of a large node are looked at in: good enough for proposals.
    screens: bool,
    count: [u32; BUCKETS],
    sums: Box<[[f64; K]; BUCKETS]>,
    keys: Vec<u16>,
}

/// The buckets of a node's rows in one column.
#[derive(Debug, Clone, Copy)]
struct Buckets {
    /// Smallest rank.
    low: u16,
    /// Number of buckets.
    n: usize,
    /// Buckets per rank, times 2^16.
    per_rank: u32,
}

impl Buckets {
    fn new(low: u16, high: u16, n_rows: usize) -> Self {
        let span = usize::from(high - low) + 1;
        let n = span.min((2 * n_rows).clamp(16, BUCKETS));
        Buckets { low, n, per_rank: ((n << 16) / span) as u32 }
    }

    #[inline(always)]
    fn of(self, rank: u16) -> u8 {
        ((u32::from(rank - self.low) * self.per_rank) >> 16) as u8
    }

    /// The largest rank of a bucket.
    fn last(self, bucket: usize) -> u16 {
        let next = (((bucket as u32) + 1) << 16).div_ceil(self.per_rank);
        (u32::from(self.low) + next - 1) as u16
    }

    fn is_exact(self) -> bool {
        self.per_rank == 1 << 16
    }
}

/// The rows of a node and what is asked of their cuts.
#[derive(Clone, Copy)]
pub(super) struct NodeRows<'a, const K: usize> {
    /// The table.
    pub ranks: &'a Ranks,
    /// Row numbers.
    pub rows: &'a [u32],
    /// The numbers of each row.
    pub values: &'a [[f64; K]],
    /// Their sums.
    pub total: [f64; K],
    /// Fewest rows on either side.
    pub min_rows: usize,
}

impl<'w, const K: usize> Sweep<'w, K> {
    pub fn new(work: &'w Work<'w>, screens: bool) -> Self {
        let sums = Box::new([[0.0; K]; BUCKETS]);
        Sweep { work, screens, count: [0; BUCKETS], sums, keys: vec![] }
    }

    /// The cut of lowest score among the given columns; of equal ones the first. `score(left, right)` takes the sums of
    /// the two sides.
    pub fn best(
        &mut self,
        node: &NodeRows<'_, K>,
        features: impl Iterator<Item = usize>,
        score: impl Fn(&[f64; K], &[f64; K]) -> f64,
    ) -> Option<ScoredCut> {
        let mut features: Vec<usize> = features.collect();
        if self.screens
            && node.rows.len() >= 2 * SCREENING_ROWS
            && features.len() > SCREENED_COLUMNS
        {
            features = self.screened(node, &features, &score);
        }
        let mut best: Option<(ScoredCut, Buckets, usize)> = None;
        let mut n_cells = 0;
        for feature in features {
            if self.work.is_stopped() {
                return None;
            }
            n_cells += node.rows.len() + MIN_CELLS;
            let Some(buckets) = self.fill(node, feature) else { continue };
            n_cells += buckets.n;
            let lowest = best.as_ref().map_or(f64::INFINITY, |best| best.0.score);
            if let Some((bucket, score)) = self.scan(node, buckets, lowest, &score) {
                let cut = RankCut { feature: feature as u32, rank: buckets.last(bucket) };
                best = Some((ScoredCut { cut, score }, buckets, bucket));
            }
        }
        self.work.add(n_cells * (4 + K) / 4);
        let (best, buckets, bucket) = best?;
        if buckets.is_exact() { Some(best) } else { Some(open(node, best, buckets, bucket, score)) }
    }

    /// The columns, ascending, whose best cuts have the lowest scores on some of the rows.
    fn screened(
        &mut self,
        node: &NodeRows<'_, K>,
        features: &[usize],
        score: impl Fn(&[f64; K], &[f64; K]) -> f64,
    ) -> Vec<usize> {
        let places = || (0..SCREENING_ROWS).map(|i| i * node.rows.len() / SCREENING_ROWS);
        let rows: Vec<u32> = places().map(|i| node.rows[i]).collect();
        let values: Vec<[f64; K]> = places().map(|i| node.values[i]).collect();
        let mut total = [0.0; K];
        for value in &values {
            (0..K).for_each(|l| total[l] += value[l]);
        }
        let few = NodeRows { ranks: node.ranks, rows: &rows, values: &values, total, min_rows: 1 };
        let mut scored = Vec::new();
        for &feature in features {
            if self.work.is_stopped() {
                break;
            }
            let Some(buckets) = self.fill(&few, feature) else { continue };
            if let Some((_, score)) = self.scan(&few, buckets, f64::INFINITY, &score) {
                scored.push((score, feature));
            }
        }
        self.work.add(features.len() * (2 * SCREENING_ROWS + MIN_CELLS) * (4 + K) / 4);
        scored.sort_by(|a, b| a.0.total_cmp(&b.0));
        scored.truncate(SCREENED_COLUMNS);
        let mut screened: Vec<usize> = scored.into_iter().map(|(_, feature)| feature).collect();
        screened.sort_unstable();
        screened
    }

    /// Adds the rows up; none if they are all alike.
    fn fill(&mut self, node: &NodeRows<'_, K>, feature: usize) -> Option<Buckets> {
        let column = node.ranks.column(feature);
        self.keys.clear();
        self.keys.extend(node.rows.iter().map(|&row| column[row as usize]));
        let (mut low, mut high) = (u16::MAX, 0);
        for &key in &self.keys {
            low = low.min(key);
            high = high.max(key);
        }
        if low >= high {
            return None;
        }
        let buckets = Buckets::new(low, high, node.rows.len());
        self.count[..buckets.n].fill(0);
        self.sums[..buckets.n].fill([0.0; K]);
        for (&key, value) in self.keys.iter().zip(node.values) {
            let bucket = usize::from(buckets.of(key));
            self.count[bucket] += 1;
            let sums = &mut self.sums[bucket];
            for l in 0..K {
                sums[l] += value[l];
            }
        }
        Some(buckets)
    }

    /// The best cut behind a bucket, if its score is below `lowest`.
    fn scan(
        &self,
        node: &NodeRows<'_, K>,
        buckets: Buckets,
        mut lowest: f64,
        score: impl Fn(&[f64; K], &[f64; K]) -> f64,
    ) -> Option<(usize, f64)> {
        let (mut left, mut n_left, mut best) = ([0.0; K], 0, None);
        for bucket in 0..buckets.n {
            if self.count[bucket] == 0 {
                continue;
            }
            n_left += self.count[bucket] as usize;
            let mut right = [0.0; K];
            for l in 0..K {
                left[l] += self.sums[bucket][l];
                right[l] = node.total[l] - left[l];
            }
            if n_left + node.min_rows > node.rows.len() {
                break;
            }
            let score = score(&left, &right);
            if n_left >= node.min_rows && score < lowest {
                lowest = score;
                best = Some((bucket, score));
            }
        }
        best
    }
}

/// The best cut inside the bucket before the best cut between buckets, inside the next filled one, or between them.
fn open<const K: usize>(
    node: &NodeRows<'_, K>,
    mut best: ScoredCut,
    buckets: Buckets,
    bucket: usize,
    score: impl Fn(&[f64; K], &[f64; K]) -> f64,
) -> ScoredCut {
    let column = node.ranks.column(best.cut.feature as usize);
    let rank = |i: usize| column[node.rows[i] as usize];
    let behind = (0..node.rows.len()).map(|i| usize::from(buckets.of(rank(i))));
    let next = behind.filter(|&b| b > bucket).min().unwrap_or(bucket);
    let (mut left, mut n_left, mut inside) = ([0.0; K], 0, Vec::new());
    for i in 0..node.rows.len() {
        let b = usize::from(buckets.of(rank(i)));
        if b < bucket {
            n_left += 1;
            (0..K).for_each(|l| left[l] += node.values[i][l]);
        } else if b <= next {
            inside.push((rank(i), i));
        }
    }
    inside.sort_unstable();
    for group in inside.chunk_by(|a, b| a.0 == b.0) {
        let mut right = [0.0; K];
        for &(_, i) in group {
            (0..K).for_each(|l| left[l] += node.values[i][l]);
        }
        (0..K).for_each(|l| right[l] = node.total[l] - left[l]);
        n_left += group.len();
        if n_left < node.min_rows || n_left + node.min_rows > node.rows.len() {
            continue;
        }
        let score = score(&left, &right);
        if score < best.score {
            best = ScoredCut { cut: RankCut { rank: group[0].0, ..best.cut }, score };
        }
    }
    best
}
