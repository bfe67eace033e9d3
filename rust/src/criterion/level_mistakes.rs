//! The cuts of a column of levels between centers (IMM).
//!
//! | formula | here |
//! |---|---|
//! | A, the alive centers on the left; m alive centers | [`LevelCut::clusters`] |
//! | W_v, weight of the node's rows of level v by cluster | `Levels::sums` |
//! | share of level v in cluster c, over all rows: the center's coordinate | [`LevelShares`] |
//!
//! A cut puts every alive center on one side, and every level present at the node, missing cells as one more, where it
//! makes fewer mistakes: on the left those of clusters outside A, on the right those of A. A side without levels gets
//! the one that costs least. All 2^(m-1) - 1 ways to divide up to [`MOST_DIVIDED`] centers are tried; of more, every
//! center alone and, by level, the ways to cut the centers in order of their share of it. O(V) per way.
//!
//! **Where no level divides the rows** of a node in any column, levels still divide its centers, so that IMM always
//! ends with one center per leaf: one level goes left, and with it the centers that have more of it. Such cuts score
//! less than all others.
//!
//! **Ties.** The left side is the one of fewest levels, then of the first codes; cuts come in this order.

use std::collections::HashSet;

use super::levels::{Levels, in_order, sum_of};
use super::sums::add;
use crate::criterion::label_counts::OneHot;
use crate::index::BinnedColumn;
use crate::tree::LevelSet;

/// Most centers of which every division is tried.
const MOST_DIVIDED: usize = 8;
/// Shares closer than this are equal.
const CLOSE: f64 = 1e-9;

/// What share of a cluster's observed cells has each level.
#[derive(Debug, Clone)]
pub struct LevelShares {
    /// k x n_levels, row-major.
    shares: Vec<f64>,
    n_levels: usize,
}

impl LevelShares {
    /// By weight over all rows. A cluster without observed cells has the shares of the column.
    pub(crate) fn new(binned: &BinnedColumn, rows: &OneHot<'_>, k: usize) -> Self {
        let n_levels = binned.n_bins() - usize::from(binned.form.has_missing);
        let mut weight = vec![0.0; (k + 1) * n_levels];
        for (row, &code) in (0..).zip(&binned.codes) {
            if Some(code) != binned.missing() {
                for cluster in [rows.label(row), k] {
                    weight[cluster * n_levels + usize::from(code)] += rows.weight(row);
                }
            }
        }
        let whole = k * n_levels;
        let mut shares = vec![];
        for cluster in 0..k {
            let own = &weight[cluster * n_levels..][..n_levels];
            let is_empty = own.iter().all(|weight| *weight == 0.0);
            let own = if is_empty { &weight[whole..] } else { own };
            let total: f64 = own.iter().sum();
            shares.extend(own.iter().map(|weight| if total > 0.0 { weight / total } else { 0.0 }));
        }
        LevelShares { shares, n_levels }
    }

    fn of(&self, cluster: usize, level: usize) -> f64 {
        self.shares[cluster * self.n_levels + level]
    }

    /// The places of the alive clusters by their share of a level, the largest first, equal ones by number.
    fn order(&self, alive: &[usize], level: usize) -> Vec<usize> {
        let share = |place: usize| self.of(alive[place], level);
        let mut order: Vec<usize> = (0..alive.len()).collect();
        order.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
        order
    }
}

/// A cut of levels between centers.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelCut {
    /// The levels that go left; `MISSING_LEVEL` stands for missing cells.
    pub(super) levels: LevelSet,
    /// The clusters whose centers go left.
    pub(super) clusters: LevelSet,
    /// Weight of the rows that go to the other side than their center.
    pub(super) mistakes: f64,
    /// Whether levels divide the rows of the node.
    pub(super) divides_rows: bool,
}

/// The cuts of a column between the `alive` centers that may be the best, in the order of ties. `score`: of mistakes
/// and a number of centers on one side; scores within `margin` of the best are tied.
pub(super) fn level_cuts(
    levels: &Levels<'_>,
    alive: &[usize],
    shares: &LevelShares,
    margin: f64,
    score: impl Fn(f64, usize) -> f64,
) -> Vec<LevelCut> {
    if alive.len() < 2 {
        return vec![];
    }
    let mut cuts: Vec<LevelCut> = if levels.codes.len() > 1 {
        let mut found: Vec<(f64, Vec<usize>)> = vec![];
        let mut best = f64::NEG_INFINITY;
        divide(levels, alive, shares, |side, mistakes| {
            let score = score(mistakes, side.len());
            // Twice the margin: the sums are rounded in another order.
            if score >= best - 2.0 * margin {
                best = best.max(score);
                found.push((score, side.to_vec()));
            }
        });
        found.retain(|(score, _)| *score >= best - 2.0 * margin);
        found.into_iter().map(|(_, side)| best_of_division(levels, alive, &side)).collect()
    } else {
        (0..shares.n_levels).filter_map(|v| one_level(levels, alive, shares, v)).collect()
    };
    cuts.sort_by(|a, b| in_order(&a.levels, &b.levels).then(a.mistakes.total_cmp(&b.mistakes)));
    cuts
}

/// Calls `visit(clusters on one side, mistakes)` for every division of the centers that is tried. O(V) each.
fn divide(
    levels: &Levels<'_>,
    alive: &[usize],
    shares: &LevelShares,
    mut visit: impl FnMut(&[usize], f64),
) {
    let m = alive.len();
    // By level: the weight of a center, and of all of them.
    let weight = |cluster: usize| levels.sums.iter().map(|sums| sums[cluster]).collect();
    let weights: Vec<Vec<f64>> = alive.iter().map(|&cluster| weight(cluster)).collect();
    let nothing = vec![0.0; levels.codes.len()];
    let mut total = nothing.clone();
    weights.iter().for_each(|weight| add(&mut total, weight));
    if m <= MOST_DIVIDED {
        // A set of centers is one that came before and its lowest center.
        let mut inside = vec![nothing];
        for bits in 1..1usize << (m - 1) {
            let lowest = bits.trailing_zeros() as usize;
            let mut sums = inside[bits & (bits - 1)].clone();
            add(&mut sums, &weights[lowest]);
            inside.push(sums);
            let side: Vec<usize> =
                (0..m).filter(|i| bits >> i & 1 == 1).map(|i| alive[i]).collect();
            visit(&side, least_mistakes(&inside[bits], &total));
        }
        return;
    }
    for (&cluster, weight) in alive.iter().zip(&weights) {
        visit(&[cluster], least_mistakes(weight, &total));
    }
    let mut seen: HashSet<LevelSet> = HashSet::new();
    for &code in levels.codes.iter().filter(|&&code| usize::from(code) < shares.n_levels) {
        let mut inside = nothing.clone();
        let (mut side, mut set) = (vec![], LevelSet::default());
        for &place in &shares.order(alive, code.into())[..m - 1] {
            add(&mut inside, &weights[place]);
            side.push(alive[place]);
            set.insert(alive[place] as u8);
            if seen.insert(set) {
                visit(&side, least_mistakes(&inside, &total));
            }
        }
    }
}

/// The fewest mistakes if centers with the weights `inside` by level go one way and the others, of all with the weights
/// `total`, the other way.
fn least_mistakes(inside: &[f64], total: &[f64]) -> f64 {
    let least = sum_of(inside, total, |inside, total| inside.min(total - inside));
    let mut sides = inside.iter().zip(total).map(|(inside, total)| total - inside < *inside);
    let first = sides.next();
    if sides.any(|side| Some(side) != first) {
        return least;
    }
    let price = |(inside, total): (&f64, &f64)| (total - 2.0 * inside).abs();
    least + inside.iter().zip(total).map(price).fold(f64::INFINITY, f64::min)
}

/// The cut with the fewest mistakes if the centers of the given clusters go one way.
fn best_of_division(levels: &Levels<'_>, alive: &[usize], side: &[usize]) -> LevelCut {
    let is_left = |cluster: &&usize| side.contains(cluster);
    let (inside, outside): (Vec<usize>, Vec<usize>) = alive.iter().partition(is_left);
    let weight = |sums: &[f64], of: &[usize]| of.iter().map(|&c| sums[c]).sum::<f64>();
    // Mistakes of each level on the left and on the right.
    let mistakes: Vec<[f64; 2]> =
        levels.sums.iter().map(|sums| [weight(sums, &outside), weight(sums, &inside)]).collect();
    let mut goes_left: Vec<bool> = mistakes.iter().map(|[left, right]| left < right).collect();
    if goes_left.iter().all(|left| *left == goes_left[0]) {
        let costs = |place: &usize| (mistakes[*place][0] - mistakes[*place][1]).abs();
        let cheapest = (0..goes_left.len()).min_by(|a, b| costs(a).total_cmp(&costs(b)));
        cheapest.into_iter().for_each(|place| goes_left[place] = !goes_left[place]);
    }
    let sides = mistakes.iter().zip(&goes_left);
    let set = levels.smaller_side(&goes_left);
    let clusters = if set == levels.set(&goes_left) { inside } else { outside };
    LevelCut {
        levels: set,
        clusters: clusters.into_iter().map(|cluster| cluster as u8).collect(),
        mistakes: sides.map(|([left, right], &is_left)| if is_left { left } else { right }).sum(),
        divides_rows: true,
    }
}

/// The cut of one level against all others at the widest gap between the centers' shares of it; none if they are equal.
fn one_level(
    levels: &Levels<'_>,
    alive: &[usize],
    shares: &LevelShares,
    level: usize,
) -> Option<LevelCut> {
    let order: Vec<usize> = shares.order(alive, level).iter().map(|&place| alive[place]).collect();
    let gap = |i: usize| shares.of(order[i - 1], level) - shares.of(order[i], level);
    let widest = (1..order.len()).map(gap).fold(0.0, f64::max);
    let n_left = (1..order.len()).find(|&i| gap(i) > CLOSE && gap(i) >= widest - CLOSE)?;
    let (inside, outside) = order.split_at(n_left);
    let mistakes = levels.codes.iter().zip(&levels.sums).map(|(&code, sums)| {
        let wrong = if usize::from(code) == level { outside } else { inside };
        wrong.iter().map(|&cluster| sums[cluster]).sum::<f64>()
    });
    Some(LevelCut {
        levels: [level as u8].into_iter().collect(),
        clusters: inside.iter().map(|&cluster| cluster as u8).collect(),
        mistakes: mistakes.sum(),
        divides_rows: false,
    })
}
