//! The cuts of a column of levels between centers (IMM).
//!
//! | formula | here |
//! |---|---|
//! | A, the alive centers on the left; m alive centers | [`CenterSide`] |
//! | W_v, weight of the node's rows of level v by cluster | `Levels::sums` |
//! | share of level v in center c: its coordinate | [`LevelShares`] |
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

use std::collections::HashMap;

use super::levels::{Levels, in_order, sum_of};
use super::sums::add;
use crate::tree::LevelSet;

/// Most centers of which every division is tried.
const MOST_DIVIDED: usize = 8;
/// Most centers of which no division is tried twice.
const MOST_KNOWN: usize = 128;
/// Shares closer than this are equal.
const CLOSE: f64 = 1e-9;

/// Some of the alive centers, in a form of fixed size for any number of centers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CenterGroup {
    /// Those whose place among the alive ones is a bit that is set.
    Places(u8),
    /// The one at this place.
    One(usize),
    /// The first `count` in order of their share of a level.
    Most {
        /// The level's code.
        level: u8,
        /// Number of centers.
        count: usize,
    },
}

/// The side of the alive centers at a cut of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CenterSide {
    /// Centers on one side; all others lie on the other.
    pub group: CenterGroup,
    /// Whether their side is the left one.
    pub is_left: bool,
}

/// What share of each center each level has.
#[derive(Debug, Clone)]
pub struct LevelShares {
    /// k x n_levels, row-major.
    shares: Vec<f64>,
    n_levels: usize,
}

impl LevelShares {
    /// `shares`: k x n_levels, row-major.
    pub(crate) fn new(shares: Vec<f64>, n_levels: usize) -> Self {
        LevelShares { shares, n_levels }
    }

    /// The shares of some of the centers, numbered anew.
    pub(crate) fn of_centers(&self, centers: &[usize]) -> Self {
        let n = self.n_levels;
        let of_center = |&center: &usize| &self.shares[center * n..(center + 1) * n];
        LevelShares { shares: centers.iter().flat_map(of_center).copied().collect(), n_levels: n }
    }

    /// Whether two centers have the same shares.
    pub(crate) fn are_equal(&self, a: usize, b: usize) -> bool {
        (0..self.n_levels).all(|level| (self.of(a, level) - self.of(b, level)).abs() <= CLOSE)
    }

    /// The clusters of a group of the `alive` ones.
    pub(crate) fn clusters(&self, group: CenterGroup, alive: &[usize]) -> Vec<usize> {
        let places = match group {
            CenterGroup::Places(bits) => (0..alive.len()).filter(|i| bits >> i & 1 == 1).collect(),
            CenterGroup::One(place) => vec![place],
            CenterGroup::Most { level, count } => {
                let mut order = self.order(alive, level.into());
                order.truncate(count);
                order
            }
        };
        places.into_iter().map(|place| alive[place]).collect()
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
    /// The side of the centers.
    pub(super) centers: CenterSide,
    /// Number of centers on the left.
    pub(super) n_left: usize,
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
        let mut found: Vec<(f64, CenterGroup)> = vec![];
        let mut best = f64::NEG_INFINITY;
        divide(levels, alive, shares, |group, n_centers, mistakes| {
            let score = score(mistakes, n_centers);
            // Twice the margin: the sums are rounded in another order.
            if score >= best - 2.0 * margin {
                best = best.max(score);
                found.push((score, group));
            }
        });
        found.retain(|(score, _)| *score >= best - 2.0 * margin);
        let best_of = |(_, group)| best_of_division(levels, alive, shares, group);
        found.into_iter().map(best_of).collect()
    } else {
        (0..shares.n_levels).filter_map(|v| one_level(levels, alive, shares, v)).collect()
    };
    cuts.sort_by(|a, b| in_order(&a.levels, &b.levels).then(a.mistakes.total_cmp(&b.mistakes)));
    cuts
}

/// The best score of the cuts that divide the rows, up to rounding; none if there are no such cuts.
pub(super) fn best_level_score(
    levels: &Levels<'_>,
    alive: &[usize],
    shares: &LevelShares,
    score: impl Fn(f64, usize) -> f64,
) -> Option<f64> {
    if alive.len() < 2 || levels.codes.len() < 2 {
        return None;
    }
    let mut best = f64::NEG_INFINITY;
    divide(levels, alive, shares, |_, n_centers, mistakes| {
        best = best.max(score(mistakes, n_centers));
    });
    Some(best)
}

/// Calls `visit(centers on one side, their number, mistakes)` for every division of the centers that is tried. O(V)
/// each.
fn divide(
    levels: &Levels<'_>,
    alive: &[usize],
    shares: &LevelShares,
    mut visit: impl FnMut(CenterGroup, usize, f64),
) {
    let m = alive.len();
    // By level: the weight of a center, and of all of them.
    let weight = |cluster: usize| levels.sums.iter().map(|sums| sums[cluster]).collect();
    let weights: Vec<Vec<f64>> = alive.iter().map(|&cluster| weight(cluster)).collect();
    let n = levels.codes.len();
    let mut total = vec![0.0; n];
    weights.iter().for_each(|weight| add(&mut total, weight));
    if m <= MOST_DIVIDED {
        // A set of centers is its lowest center and the others, the last set that came with one center fewer.
        let mut inside = vec![0.0; m * n];
        for bits in 1..1usize << (m - 1) {
            let (size, lowest) = (bits.count_ones() as usize, bits.trailing_zeros() as usize);
            let (others, set) = inside[(size - 1) * n..(size + 1) * n].split_at_mut(n);
            set.copy_from_slice(others);
            add(set, &weights[lowest]);
            visit(CenterGroup::Places(bits as u8), size, least_mistakes(set, &total));
        }
        return;
    }
    // The mistakes by the places of the centers on one side, as bits; empty where there are more places than bits.
    let mut known: HashMap<u128, f64> = HashMap::new();
    let bit = |place: usize| 1u128.checked_shl(place as u32).unwrap_or(0);
    let all = (0..m).fold(0, |set, place| set | bit(place));
    for (place, weight) in weights.iter().enumerate() {
        let mistakes = least_mistakes(weight, &total);
        if m <= MOST_KNOWN {
            known.insert(bit(place), mistakes);
        }
        visit(CenterGroup::One(place), 1, mistakes);
    }
    for &level in levels.codes.iter().filter(|&&code| usize::from(code) < shares.n_levels) {
        let order = shares.order(alive, level.into());
        let (mut inside, mut n_added, mut set) = (vec![0.0; n], 0, 0);
        for count in 1..m {
            set |= bit(order[count - 1]);
            if known.contains_key(&set) {
                continue;
            }
            // The other side makes the same mistakes.
            let mistakes = known.get(&(all & !set)).copied().unwrap_or_else(|| {
                order[n_added..count].iter().for_each(|&place| add(&mut inside, &weights[place]));
                n_added = count;
                least_mistakes(&inside, &total)
            });
            if m <= MOST_KNOWN {
                known.insert(set, mistakes);
            }
            visit(CenterGroup::Most { level, count }, count, mistakes);
        }
    }
}

/// The fewest mistakes if centers with the weights `inside` by level go one way and the others, of all with the weights
/// `total`, the other way.
fn least_mistakes(inside: &[f64], total: &[f64]) -> f64 {
    let less = |a: f64, b: f64| if a < b { a } else { b };
    let least = sum_of(inside, total, |inside, total| less(inside, total - inside));
    let mut sides = inside.iter().zip(total).map(|(inside, total)| total - inside < *inside);
    let first = sides.next();
    if sides.any(|side| Some(side) != first) {
        return least;
    }
    let price = |(inside, total): (&f64, &f64)| (total - 2.0 * inside).abs();
    least + inside.iter().zip(total).map(price).fold(f64::INFINITY, f64::min)
}

/// The cut with the fewest mistakes if the centers of a group go one way.
fn best_of_division(
    levels: &Levels<'_>,
    alive: &[usize],
    shares: &LevelShares,
    group: CenterGroup,
) -> LevelCut {
    let side = shares.clusters(group, alive);
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
    let is_left = set == levels.set(&goes_left);
    LevelCut {
        levels: set,
        centers: CenterSide { group, is_left },
        n_left: if is_left { inside.len() } else { outside.len() },
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
        centers: CenterSide {
            group: CenterGroup::Most { level: level as u8, count: n_left },
            is_left: true,
        },
        n_left,
        mistakes: mistakes.sum(),
        divides_rows: false,
    })
}
