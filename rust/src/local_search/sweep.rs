//! The best cut of a node for rows that hold a few numbers each.
//!
//! The ranks of the node's rows in a column are shared out to at most 256 buckets over the range that they take *there*,
//! so a small node deep down is seen as finely as the root. The scores between buckets choose column and bucket;
//! where buckets hold several ranks, those beside the chosen cut are then sorted and swept rank by rank. Exact where
//! the node has at most 256 ranks in a column. O(rows + buckets) per column, without sorting.
//!
//! Of sparse rows only the stored cells of a node are looked at: the rows of a column without one add up to the node's
//! total less the others.
//!
//! Where the node has rows with a missing cell, every cut is scored with these on the right and on the left; behind the
//! last bucket that is missing cells against all others. Levels have a bucket each, missing cells are one more level,
//! and the best set is exact ([`Levels::by_pairs`]): rows of one number have the labels "left", which costs it, and
//! "right", which costs nothing.

use std::cmp::Ordering;
use std::sync::atomic::{self, AtomicU64};

use super::ranks::{LeftSide, MISSING, RankCut, Ranks};
use crate::criterion::{ColumnForm, Groups, Levels};
use crate::parallel::Monitor;
use crate::rows::Csr;
use crate::tree::LevelSet;

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
        self.cells.fetch_add(n_cells as u64, atomic::Ordering::Relaxed);
    }

    pub fn done(&self) -> u64 {
        self.cells.load(atomic::Ordering::Relaxed)
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
    /// Of the rows whose cell is missing, in a column of numbers.
    missing: Side<K>,
    keys: Vec<u16>,
    /// Of sparse rows.
    stored: StoredCells,
}

/// The stored cells of a node of sparse rows, column by column.
#[derive(Default)]
struct StoredCells {
    /// Where the cells of each column end; those of the first begin at 0.
    ends: Vec<usize>,
    /// The place of each cell's row in the node.
    places: Vec<u32>,
    /// The rank of each cell.
    ranks: Vec<u16>,
}

impl StoredCells {
    /// Reads the cells of some rows; returns how many they are. O(cells + columns).
    fn read(&mut self, stored: &Csr<Vec<u32>, Vec<u16>>, rows: &[u32]) -> usize {
        self.ends.clear();
        self.ends.resize(stored.n_columns() + 1, 0);
        for &row in rows {
            stored
                .row(row as usize)
                .0
                .iter()
                .for_each(|&column| self.ends[column as usize + 1] += 1);
        }
        for column in 0..stored.n_columns() {
            self.ends[column + 1] += self.ends[column];
        }
        // Where columns begin becomes where they end while they are filled.
        let n_cells = self.ends.pop().unwrap_or(0);
        self.places.resize(n_cells, 0);
        self.ranks.resize(n_cells, 0);
        for (place, &row) in (0..).zip(rows) {
            let (columns, ranks) = stored.row(row as usize);
            for (&column, &rank) in columns.iter().zip(ranks) {
                let end = &mut self.ends[column as usize];
                (self.places[*end], self.ranks[*end]) = (place, rank);
                *end += 1;
            }
        }
        n_cells
    }

    /// The cells of a column: the places of their rows, and their ranks.
    fn of(&self, column: usize) -> (&[u32], &[u16]) {
        let start = column.checked_sub(1).map_or(0, |before| self.ends[before]);
        let cells = start..self.ends[column];
        (&self.places[cells.clone()], &self.ranks[cells])
    }
}

/// Rows on one side of a cut.
#[derive(Debug, Clone, Copy)]
struct Side<const K: usize> {
    n_rows: usize,
    sums: [f64; K],
}

impl<const K: usize> Side<K> {
    const EMPTY: Self = Side { n_rows: 0, sums: [0.0; K] };

    fn add(&mut self, n_rows: usize, sums: &[f64; K]) {
        self.n_rows += n_rows;
        (0..K).for_each(|l| self.sums[l] += sums[l]);
    }
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
    /// What the ranks stand for.
    form: ColumnForm,
}

impl Buckets {
    fn new(low: u16, high: u16, n_rows: usize, form: ColumnForm) -> Self {
        let span = usize::from(high - low) + 1;
        let most = if form.is_levels { BUCKETS } else { (2 * n_rows).clamp(16, BUCKETS) };
        let n = span.min(most);
        Buckets { low, n, per_rank: ((n << 16) / span) as u32, form }
    }

    #[inline(always)]
    fn of(self, rank: u16) -> u8 {
        ((u32::from(rank - self.low) * self.per_rank) >> 16) as u8
    }

    /// The largest rank of a bucket, of values: it is below [`MISSING`].
    fn last(self, bucket: usize) -> u16 {
        let next = (((bucket as u32) + 1) << 16).div_ceil(self.per_rank);
        (u32::from(self.low) + next - 1).min(u32::from(MISSING) - 1) as u16
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
    /// Sets of levels whose scores differ by no more are tied.
    pub margin: f64,
    /// If given, levels are cut one against the rest only, and only these codes.
    pub alone: Option<LevelSet>,
}

impl<'w, const K: usize> Sweep<'w, K> {
    pub fn new(work: &'w Work<'w>, screens: bool) -> Self {
        let sums = Box::new([[0.0; K]; BUCKETS]);
        let missing = Side::EMPTY;
        Sweep {
            work,
            screens,
            count: [0; BUCKETS],
            sums,
            missing,
            keys: vec![],
            stored: StoredCells::default(),
        }
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
        let mut n_cells = self.read_stored(node);
        for feature in features {
            if self.work.is_stopped() {
                return None;
            }
            n_cells += self.n_cells_of(node, feature);
            let Some(buckets) = self.fill(node, feature) else { continue };
            n_cells += buckets.n;
            let lowest = best.as_ref().map_or(f64::INFINITY, |best| best.0.score);
            if let Some((bucket, left, score)) = self.scan(node, buckets, lowest, &score) {
                let cut = RankCut { feature: feature as u32, left };
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
        let few = NodeRows { rows: &rows, values: &values, total, min_rows: 1, ..*node };
        let mut scored: Vec<(f64, usize)> = Vec::new();
        let mut n_cells = self.read_stored(&few);
        for &feature in features {
            if self.work.is_stopped() {
                break;
            }
            n_cells +=
                2 * self.n_cells_of(&few, feature) - MIN_CELLS.min(self.n_cells_of(&few, feature));
            let Some(buckets) = self.fill(&few, feature) else { continue };
            // A score that is no lower than those of enough columns before does not count.
            let lowest = scored.get(SCREENED_COLUMNS - 1).map_or(f64::INFINITY, |last| last.0);
            if let Some((_, _, score)) = self.scan(&few, buckets, lowest, &score) {
                let place = scored.partition_point(|other| other.0 <= score);
                scored.insert(place, (score, feature));
                scored.truncate(SCREENED_COLUMNS);
            }
        }
        self.work.add(n_cells * (4 + K) / 4);
        let mut screened: Vec<usize> = scored.into_iter().map(|(_, feature)| feature).collect();
        screened.sort_unstable();
        screened
    }

    /// Adds the rows up; none if they are all alike.
    fn fill(&mut self, node: &NodeRows<'_, K>, feature: usize) -> Option<Buckets> {
        if node.ranks.stored().is_some() {
            return self.share_out_stored(node, feature);
        }
        self.keys.clear();
        node.ranks.gather(feature, node.rows, &mut self.keys);
        let form = node.ranks.form(feature);
        let has_gaps = form.has_missing && !form.is_levels;
        if has_gaps {
            self.share_out::<true>(node, form)
        } else {
            self.share_out::<false>(node, form)
        }
    }

    /// Reads the stored cells of a node of sparse rows; returns how many it has, 0 for a table.
    fn read_stored(&mut self, node: &NodeRows<'_, K>) -> usize {
        node.ranks.stored().map_or(0, |stored| self.stored.read(stored, node.rows))
    }

    /// The cells that a look at a column takes.
    fn n_cells_of(&self, node: &NodeRows<'_, K>, feature: usize) -> usize {
        if node.ranks.stored().is_none() {
            return node.rows.len() + MIN_CELLS;
        }
        match self.stored.of(feature).0.len() {
            0 => 0,
            n => n + MIN_CELLS,
        }
    }

    /// Adds up the stored cells of a column that were read, and the others together.
    fn share_out_stored(&mut self, node: &NodeRows<'_, K>, feature: usize) -> Option<Buckets> {
        let (places, ranks) = self.stored.of(feature);
        let n_zeros = node.rows.len() - ranks.len();
        let zero = (n_zeros > 0).then(|| node.ranks.zero(feature));
        let low = ranks.iter().copied().chain(zero).min()?;
        let high = ranks.iter().copied().chain(zero).max()?;
        if low >= high {
            return None;
        }
        let buckets = Buckets::new(low, high, node.rows.len(), ColumnForm::default());
        self.count[..buckets.n].fill(0);
        self.sums[..buckets.n].fill([0.0; K]);
        self.missing = Side::EMPTY;
        let mut rest = node.total;
        for (&place, &rank) in places.iter().zip(ranks) {
            let (bucket, value) = (usize::from(buckets.of(rank)), &node.values[place as usize]);
            self.count[bucket] += 1;
            for l in 0..K {
                self.sums[bucket][l] += value[l];
                rest[l] -= value[l];
            }
        }
        if let Some(zero) = zero {
            let bucket = usize::from(buckets.of(zero));
            self.count[bucket] += n_zeros as u32;
            (0..K).for_each(|l| self.sums[bucket][l] += rest[l]);
        }
        Some(buckets)
    }

    /// Adds the rows with these keys up. `GAPS`: whether [`MISSING`] stands for missing cells.
    fn share_out<const GAPS: bool>(
        &mut self,
        node: &NodeRows<'_, K>,
        form: ColumnForm,
    ) -> Option<Buckets> {
        let (mut low, mut high) = (u16::MAX, 0);
        for &key in &self.keys {
            low = low.min(key);
            // One more, which takes missing cells to 0.
            high = high.max(if GAPS { key.wrapping_add(1) } else { key });
        }
        if GAPS {
            high = high.saturating_sub(1);
        }
        let is_alike = low >= high && !(GAPS && low == high && self.keys.contains(&MISSING));
        if is_alike {
            return None;
        }
        let buckets = Buckets::new(low, high, node.rows.len(), form);
        self.count[..buckets.n].fill(0);
        self.sums[..buckets.n].fill([0.0; K]);
        self.missing = Side::EMPTY;
        for (&key, value) in self.keys.iter().zip(node.values) {
            if GAPS && key == MISSING {
                self.missing.add(1, value);
                continue;
            }
            let bucket = usize::from(buckets.of(key));
            self.count[bucket] += 1;
            let sums = &mut self.sums[bucket];
            for l in 0..K {
                sums[l] += value[l];
            }
        }
        Some(buckets)
    }

    /// The best cut behind a bucket, or of levels, if its score is below `lowest`: the bucket, what goes left, the score.
    fn scan(
        &self,
        node: &NodeRows<'_, K>,
        buckets: Buckets,
        lowest: f64,
        score: impl Fn(&[f64; K], &[f64; K]) -> f64,
    ) -> Option<(usize, LeftSide, f64)> {
        if buckets.form.is_levels {
            let (score, left) = match node.alone {
                None => self.best_levels(node, buckets, lowest),
                Some(codes) => self.best_level(node, buckets, codes, score),
            }?;
            return (score < lowest).then_some((0, left, score));
        }
        let (bucket, missing_left, score) = match self.missing.n_rows {
            0 => self.scan_values(node, buckets, [Side::EMPTY], lowest, score),
            _ => self.scan_values(node, buckets, [Side::EMPTY, self.missing], lowest, score),
        }?;
        Some((bucket, LeftSide::up_to(buckets.last(bucket), missing_left), score))
    }

    /// The best cut of values, the left side beginning with each of some rows in turn: the bucket, whether it began with
    /// the second, the score.
    fn scan_values<const N: usize>(
        &self,
        node: &NodeRows<'_, K>,
        buckets: Buckets,
        mut left: [Side<K>; N],
        mut lowest: f64,
        score: impl Fn(&[f64; K], &[f64; K]) -> f64,
    ) -> Option<(usize, bool, f64)> {
        let mut best = None;
        for bucket in 0..buckets.n {
            if self.count[bucket] == 0 {
                continue;
            }
            for (side, left) in left.iter_mut().enumerate() {
                left.add(self.count[bucket] as usize, &self.sums[bucket]);
                if left.n_rows + node.min_rows > node.rows.len() {
                    if N == 1 {
                        return best;
                    }
                    continue;
                }
                let mut right = [0.0; K];
                (0..K).for_each(|l| right[l] = node.total[l] - left.sums[l]);
                let score = score(&left.sums, &right);
                if left.n_rows >= node.min_rows && score < lowest {
                    lowest = score;
                    best = Some((bucket, side > 0, score));
                }
            }
        }
        best
    }

    /// The best set of levels if its score is below `lowest`: its score, and what goes left. Else none, or one that is
    /// not.
    fn best_levels(
        &self,
        node: &NodeRows<'_, K>,
        buckets: Buckets,
        lowest: f64,
    ) -> Option<(f64, LeftSide)> {
        let (count, sums) = (&self.count[..buckets.n], &self.sums[..buckets.n]);
        // No set costs less than if every level cost the least of all labels. Twice the margin: as in `by_pairs`.
        if least_of_levels(sums) > lowest + 2.0 * node.margin {
            return None;
        }
        if K == 1
            && let Some(found) = two_sets(node, buckets, count, sums.as_flattened())
        {
            let (score, sign) = found.filter(|(score, _)| *score < lowest)?;
            let is_left = |at: &usize| sign * sums[*at][0] > node.margin;
            let codes =
                (0..buckets.n).filter(is_left).map(|at| (usize::from(buckets.low) + at) as u8);
            return Some((score, LeftSide::Levels(codes.collect())));
        }
        let of_sides: Vec<f64>;
        let (sums, width) = if K == 1 {
            of_sides = sums.iter().flat_map(|sums| [sums[0], 0.0]).collect();
            (of_sides.as_slice(), 2)
        } else {
            (sums.as_flattened(), K)
        };
        let codes: Vec<f64> = (0..buckets.n).map(|at| f64::from(buckets.low) + at as f64).collect();
        // The code of missing cells is one like the others here.
        let form = ColumnForm { has_missing: false, ..buckets.form };
        let groups =
            Groups { feature: 0, count, sums, low: &codes, high: &codes, form, exact: None };
        let levels = Levels::new(groups, width, node.min_rows, node.margin);
        let sets = levels.by_pairs_below(lowest);
        sets.into_iter().next().map(|(cost, set)| (cost, LeftSide::Levels(set)))
    }

    /// The best of some levels against the rest: its score, and what goes left.
    fn best_level(
        &self,
        node: &NodeRows<'_, K>,
        buckets: Buckets,
        codes: LevelSet,
        score: impl Fn(&[f64; K], &[f64; K]) -> f64,
    ) -> Option<(f64, LeftSide)> {
        let n_rows = node.rows.len();
        let mut best = (f64::INFINITY, None);
        for bucket in 0..buckets.n {
            let (code, count) = (buckets.low as u8 + bucket as u8, self.count[bucket] as usize);
            if !codes.contains(code) || count < node.min_rows || count + node.min_rows > n_rows {
                continue;
            }
            let left = &self.sums[bucket];
            let mut right = [0.0; K];
            (0..K).for_each(|l| right[l] = node.total[l] - left[l]);
            let score = score(left, &right);
            if score < best.0 {
                best = (score, Some(code));
            }
        }
        let left = LeftSide::Levels([best.1?].into_iter().collect());
        Some((best.0, left))
    }
}

/// What levels cost if each costs the least of its numbers; rows of one number may also cost nothing.
fn least_of_levels<const K: usize>(sums: &[[f64; K]]) -> f64 {
    let nothing = if K == 1 { 0.0 } else { f64::INFINITY };
    let less = |a: f64, b: f64| if a < b { a } else { b };
    let (fours, rest) = sums.as_chunks::<4>();
    let mut lanes = [0.0; 4];
    for four in fours {
        for (lane, sums) in lanes.iter_mut().zip(four) {
            *lane += sums.iter().fold(nothing, |least, &sum| less(sum, least));
        }
    }
    let rest = rest.iter().map(|sums| sums.iter().fold(nothing, |least, &sum| less(sum, least)));
    lanes.iter().sum::<f64>() + rest.sum::<f64>()
}

/// [`Levels::by_pairs`] of rows that cost one number on the left and nothing on the right, in one pass.
///
/// Returns what the best set costs, and its sign: 1 if it holds the levels that cost more than the margin, -1 if it holds
/// those that save more; none within if no set is allowed. None where only sets with other levels may be allowed, for
/// the sake of the number of rows, or there is no margin.
fn two_sets<const K: usize>(
    node: &NodeRows<'_, K>,
    buckets: Buckets,
    count: &[u32],
    sums: &[f64],
) -> Option<Option<(f64, f64)>> {
    let margin = node.margin;
    // Of either set. The levels that cost more pay nothing: the labels are exchanged.
    let (mut costs, mut n_left, mut n_levels) = ([0.0; 2], [0; 2], [0; 2]);
    for (&count, &sum) in count.iter().zip(sums) {
        let is_in = [sum > margin, -sum > margin];
        costs[0] += if is_in[0] { 0.0 } else { sum };
        costs[1] += if is_in[1] { sum } else { 0.0 };
        for side in 0..2 {
            n_left[side] += if is_in[side] { count as usize } else { 0 };
            n_levels[side] += usize::from(is_in[side]);
        }
    }
    let n_rows = node.rows.len();
    let is_allowed = n_left.map(|n| n >= node.min_rows && n_rows - n >= node.min_rows);
    let is_forbidden = |side: usize| !is_allowed[side] && 0 < n_left[side] && n_left[side] < n_rows;
    if margin <= 0.0 || is_forbidden(0) || is_forbidden(1) {
        return None;
    }
    let most = margin
        + (0..2)
            .filter(|&side| is_allowed[side])
            .map(|side| costs[side])
            .fold(f64::INFINITY, f64::min);
    let is_best = [0, 1].map(|side| is_allowed[side] && costs[side] <= most);
    let side = match is_best {
        [false, false] => return Some(None),
        [true, true] => {
            // Fewer levels first, then the first code.
            let first = || sums[..buckets.n].iter().find(|sum| sum.abs() > margin);
            let is_first = n_levels[0].cmp(&n_levels[1]).then_with(|| {
                if first().is_some_and(|sum| *sum > 0.0) {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            });
            usize::from(is_first.is_gt())
        }
        [is_first, _] => usize::from(!is_first),
    };
    Some(Some((costs[side], [1.0, -1.0][side])))
}

/// The best cut inside the bucket before the best cut between buckets, inside the next filled one, or between them; with
/// missing cells on the right and on the left, as between buckets.
fn open<const K: usize>(
    node: &NodeRows<'_, K>,
    mut best: ScoredCut,
    buckets: Buckets,
    bucket: usize,
    score: impl Fn(&[f64; K], &[f64; K]) -> f64,
) -> ScoredCut {
    let feature = best.cut.feature as usize;
    let (mut ranks, has_gaps) = (vec![], node.ranks.form(feature).has_missing);
    node.ranks.gather(feature, node.rows, &mut ranks);
    let rank = |i: usize| ranks[i];
    let bucket_of = |i: usize| {
        let is_missing = has_gaps && rank(i) == MISSING;
        (!is_missing).then(|| usize::from(buckets.of(rank(i))))
    };
    let behind = (0..node.rows.len()).filter_map(bucket_of);
    let next = behind.filter(|&b| b > bucket).min().unwrap_or(bucket);
    // Without and with the missing cells.
    let (mut left, mut n_missing, mut inside) = ([Side::EMPTY; 2], 0, Vec::new());
    for i in 0..node.rows.len() {
        match bucket_of(i) {
            None => {
                left[1].add(1, &node.values[i]);
                n_missing += 1;
            }
            Some(b) if b < bucket => left.iter_mut().for_each(|left| left.add(1, &node.values[i])),
            Some(b) if b <= next => inside.push((rank(i), i)),
            _ => {}
        }
    }
    inside.sort_unstable();
    let n_ways = if n_missing > 0 { 2 } else { 1 };
    for group in inside.chunk_by(|a, b| a.0 == b.0) {
        for (side, left) in left[..n_ways].iter_mut().enumerate() {
            group.iter().for_each(|&(_, i)| left.add(1, &node.values[i]));
            let mut right = [0.0; K];
            (0..K).for_each(|l| right[l] = node.total[l] - left.sums[l]);
            if left.n_rows < node.min_rows || left.n_rows + node.min_rows > node.rows.len() {
                continue;
            }
            let score = score(&left.sums, &right);
            if score < best.score {
                let left = LeftSide::up_to(group[0].0, side > 0);
                best = ScoredCut { cut: RankCut { left, ..best.cut }, score };
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, Table};
    use ndarray::Array1;

    /// The best cut of rows whose ranks are 0, 1, .. and whose last cell is missing.
    fn best_cut(values: &[f64]) -> ScoredCut {
        let n = values.len();
        let cells: Array1<f64> =
            (0..n).map(|i| if i + 1 < n { i as f64 } else { f64::NAN }).collect();
        let table = Table::new(vec![Column::from(cells.view())]).unwrap();
        let monitor = Monitor::default();
        let ranks = Ranks::new(&table, &[], &monitor).unwrap();
        let rows: Vec<u32> = (0..n as u32).collect();
        let values: Vec<[f64; 1]> = values.iter().map(|&x| [x]).collect();
        let total = [values.iter().map(|x| x[0]).sum()];
        let node = NodeRows {
            ranks: &ranks,
            rows: &rows,
            values: &values,
            total,
            min_rows: 1,
            margin: 0.0,
            alone: None,
        };
        let work = Work::new(&monitor);
        Sweep::new(&work, false).best(&node, 0..1, |l, r| f64::min(l[0], r[0])).unwrap()
    }

    #[test]
    fn an_opened_bucket_is_swept_with_missing_cells_on_either_side() {
        // 300 values share 256 buckets; the first two share one. Behind it missing cells are better on the right, with
        // -0.5 on the left; between the two values they are better on the left, with 4.7 - 9.7 = -5 on the right.
        let mut values = vec![0.0; 301];
        values[0] = 5.0;
        values[1] = -5.5;
        values[299] = 0.5;
        values[300] = 0.3;
        let found = best_cut(&values);
        assert_eq!(found.cut.left, LeftSide::up_to(0, true));
        assert!((found.score + 5.0).abs() < 1e-12);
    }

    /// The best set of levels of these sums and counts among those that cost less than `lowest`, by [`Sweep`], and all
    /// best sets by [`Levels::by_pairs`].
    fn best_sets<const K: usize>(
        counts: &[u32],
        sums: &[[f64; K]],
        [min_rows, lowest]: [usize; 2],
    ) -> [Option<(f64, LeftSide)>; 2] {
        let n_rows: u32 = counts.iter().sum();
        let codes: Vec<f64> = (0..counts.len()).map(|code| code as f64).collect();
        let (rows, margin, form) = (
            (0..n_rows).collect::<Vec<u32>>(),
            0.125,
            ColumnForm { is_levels: true, has_missing: false },
        );
        let of_sides: Vec<f64> = sums
            .iter()
            .flat_map(|sums| if K == 1 { vec![sums[0], 0.0] } else { sums.to_vec() })
            .collect();
        let groups = Groups {
            feature: 0,
            count: counts,
            sums: &of_sides,
            low: &codes,
            high: &codes,
            form,
            exact: None,
        };
        let levels = Levels::new(groups, K.max(2), min_rows, margin);
        let expected = levels.by_pairs().into_iter().next();
        let column = Column::levels(ndarray::ArrayView1::from(&[0u8][..]), 1).unwrap();
        let (table, monitor) = (Table::new(vec![column]).unwrap(), Monitor::default());
        let ranks = Ranks::new(&table, &[], &monitor).unwrap();
        let node = NodeRows {
            ranks: &ranks,
            rows: &rows,
            values: &[],
            total: [0.0; K],
            min_rows,
            margin,
            alone: None,
        };
        let work = Work::new(&monitor);
        let mut sweep = Sweep::new(&work, false);
        sweep.count[..counts.len()].copy_from_slice(counts);
        sweep.sums[..sums.len()].copy_from_slice(sums);
        let buckets = Buckets { low: 0, n: counts.len(), per_rank: 1 << 16, form };
        let lowest = if lowest == 0 { f64::INFINITY } else { lowest as f64 - 8.0 };
        let found = sweep.best_levels(&node, buckets, lowest).filter(|found| found.0 < lowest);
        let expected = expected.map(|(cost, set)| (cost, LeftSide::Levels(set)));
        [found, expected.filter(|found| found.0 < lowest)]
    }

    #[test]
    fn sets_of_levels_are_the_first_of_the_best() {
        let mut state = 3u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let (mut n_sets, mut n_tied) = (0, 0);
        for _ in 0..3000 {
            let n = 2 + random(5) as usize;
            let counts: Vec<u32> = (0..n).map(|_| random(4) as u32).collect();
            // Sixteenths: some lie within the margin, and sums are exact.
            let mut sum =
                |count: u32| if count == 0 { 0.0 } else { random(65) as f64 / 16.0 - 2.0 };
            let one: Vec<[f64; 1]> = counts.iter().map(|&count| [sum(count)]).collect();
            let two: Vec<[f64; 3]> =
                counts.iter().map(|&count| [(); 3].map(|()| sum(count))).collect();
            let limits = [1 + random(3) as usize, random(16) as usize];
            let [found, expected] = best_sets(&counts, &one, limits);
            assert_eq!(found, expected, "{counts:?} {one:?} {limits:?}");
            n_sets += usize::from(found.is_some());
            n_tied += usize::from(one.iter().any(|sum| sum[0] != 0.0 && sum[0].abs() <= 0.125));
            let [found, expected] = best_sets(&counts, &two, limits);
            assert_eq!(found, expected, "{counts:?} {two:?} {limits:?}");
        }
        assert!(n_sets > 500 && n_tied > 100, "{n_sets} {n_tied}");
    }

    #[test]
    fn no_cut_of_the_opened_buckets_is_better() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % 17) as f64 - 8.0
        };
        for _ in 0..200 {
            let values: Vec<f64> = (0..301).map(|_| random()).collect();
            let (missing, total) = (values[300], values.iter().sum::<f64>());
            let found = best_cut(&values);
            let (LeftSide::UpTo(last) | LeftSide::MissingAndBelow(last)) = found.cut.left else {
                panic!("a column of numbers")
            };
            // Whole numbers: sums are exact. The cuts beside the one found are in the same buckets.
            let last = usize::from(last) - usize::from(found.cut.left != LeftSide::UpTo(last));
            for with_missing in [0.0, missing] {
                let left = with_missing + values[..=last].iter().sum::<f64>();
                assert!(found.score <= f64::min(left, total - left));
            }
        }
    }
}
