//! Results of earlier passes: late in a fit most nodes are as they were, and their results can be used again.
//!
//! Three things are cached, each by what it depends on:
//! - *exhausted problems*: a two-class problem with its plane and prices, by a hash of 128 bits, whose solution was no
//!   better than what is there; it is not solved again while all of that stays;
//! - *solver states*: what the last solve at a node left (its point and its curvature), by the node's number, from
//!   which the next solve starts; it is kept only while it takes no more memory than the rows it is about;
//! - *sides*: on which side of a plane rows lie, two bits a row, for planes of many weights, while the tree has them.
//!
//! Without the caches a fit takes longer and its node problems are solved from other starts, to the same precision.
//! Threads share the caches: what one finds depends on its own problem alone, so the result is the same in any order.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::logistic::SolverState;
use super::reduced::ReducedProblem;
use crate::memory;
use crate::rows::Rows;
use crate::tree::Plane;
use crate::tree::test::is_left;

/// Planes of fewer weights are evaluated in about the time that a lookup takes.
const MIN_WEIGHTS_REMEMBERED: usize = 8;
/// Rows in a word of [`Sides`], each with two bits: whether its side is known, and whether that is the right one.
const ROWS_PER_WORD: usize = 32;

/// A node problem or a plane, by 128 bits of hash.
type Digest = [u64; 2];

/// Two hashes of what `write` writes, each from a start of its own.
fn digest(write: impl Fn(&mut DefaultHasher)) -> Digest {
    [0u8, 1].map(|start| {
        let mut hasher = DefaultHasher::new();
        start.hash(&mut hasher);
        write(&mut hasher);
        hasher.finish()
    })
}

/// Hashes the bits of a number.
fn write_number(x: f64, hasher: &mut DefaultHasher) {
    x.to_bits().hash(hasher);
}

/// Hashes bias, weights and columns.
fn write_plane(plane: &Plane, hasher: &mut DefaultHasher) {
    write_number(plane.bias, hasher);
    for &(column, weight) in &plane.weights {
        write_number(weight, hasher);
        column.hash(hasher);
    }
}

/// The three caches of a fit.
#[derive(Debug, Default)]
pub struct Memory {
    /// Problems without a better answer.
    exhausted: Mutex<HashSet<Digest>>,
    /// The state of the last solve at each node.
    solved: Mutex<HashMap<NodeKey, Arc<SolverState>>>,
    /// Sides by plane.
    sides: RwLock<HashMap<Digest, Arc<Sides>>>,
}

/// A problem by its hash.
#[derive(Debug, Clone, Copy)]
pub struct ProblemKey(Digest);

impl ProblemKey {
    /// The rows and their losses, the plane that is there, and the numbers that decide whether another one is taken.
    pub(super) fn of(reduced: &ReducedProblem, plane: Option<&Plane>, numbers: &[f64]) -> Self {
        ProblemKey(digest(|hasher| {
            reduced.rows.hash(hasher);
            reduced.sign.hash(hasher);
            let all = reduced.weight.iter().chain(&reduced.all).chain(numbers);
            all.for_each(|x| write_number(*x, hasher));
            if let Some(plane) = plane {
                write_plane(plane, hasher);
            }
        }))
    }
}

/// A node by its number, and whether its test is to keep its columns.
pub type NodeKey = (usize, bool);

impl Memory {
    /// Whether the problem is known to have no better answer.
    pub(super) fn is_exhausted(&self, key: ProblemKey) -> bool {
        self.exhausted.lock().unwrap_or_else(PoisonError::into_inner).contains(&key.0)
    }

    /// Records that the problem has no better answer.
    pub(super) fn mark_exhausted(&self, key: ProblemKey) {
        self.exhausted.lock().unwrap_or_else(PoisonError::into_inner).insert(key.0);
    }

    /// The state of the last solve at a node. Rows and test of the node may have changed since.
    pub(super) fn last(&self, node: NodeKey) -> Option<Arc<SolverState>> {
        self.solved.lock().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }

    /// Stores the state of a solve for the next one at the node, if it is small enough ([`SolverState::is_small`]).
    pub(super) fn remember(&self, node: NodeKey, state: SolverState) {
        let mut solved = self.solved.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_small() {
            solved.insert(node, Arc::new(state));
        } else {
            solved.remove(&node);
        }
    }

    /// Whether each of some rows lies to the right of a plane. Two bits for each of all rows while the plane is known.
    pub(super) fn sides(&self, plane: &Plane, all: Rows<'_, '_>, rows: &[u32]) -> Vec<bool> {
        let evaluate =
            |rows: &[u32]| plane.sums(all, rows).into_iter().map(|score| !is_left(score));
        if plane.weights.len() < MIN_WEIGHTS_REMEMBERED {
            return memory::collected(evaluate(rows), "the sides of rows");
        }
        let known = self.known(plane, all.n_samples());
        let mut sides = memory::zeros(rows.len(), "the sides of rows");
        let mut open = memory::reserved(rows.len(), "the sides of rows");
        for (place, &row) in rows.iter().enumerate() {
            match known.get(row) {
                Some(right) => sides[place] = right,
                None => open.push(place),
            }
        }
        let unknown = open.iter().map(|&place: &usize| rows[place]);
        let unknown: Vec<u32> = memory::collected(unknown, "the sides of rows");
        for (place, right) in open.into_iter().zip(evaluate(&unknown)) {
            sides[place] = right;
            known.set(rows[place], right);
        }
        sides
    }

    /// The sides of a plane as far as they are known, for a table of `n_rows` rows.
    fn known(&self, plane: &Plane, n_rows: usize) -> Arc<Sides> {
        let key = digest(|hasher| write_plane(plane, hasher));
        if let Some(known) = self.sides.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let mut sides = self.sides.write().unwrap_or_else(PoisonError::into_inner);
        sides.entry(key).or_insert_with(|| Arc::new(Sides::new(n_rows))).clone()
    }

    /// Drops the sides of all planes but the given ones.
    pub(super) fn keep_only<'a>(&self, planes: impl Iterator<Item = &'a Plane>) {
        let current: HashSet<Digest> =
            planes.map(|plane| digest(|hasher| write_plane(plane, hasher))).collect();
        let mut sides = self.sides.write().unwrap_or_else(PoisonError::into_inner);
        sides.retain(|key, _| current.contains(key));
    }
}

/// On which side of a plane rows lie, as far as it was computed. Threads may find the same side at the same time.
#[derive(Debug)]
struct Sides(Vec<AtomicU64>);

impl Sides {
    /// No side is known.
    fn new(n_rows: usize) -> Self {
        let words = (0..n_rows.div_ceil(ROWS_PER_WORD)).map(|_| AtomicU64::new(0));
        Sides(memory::collected(words, "the sides of a plane"))
    }

    /// Whether a row lies to the right, if that is known.
    fn get(&self, row: u32) -> Option<bool> {
        let bits = self.0[row as usize / ROWS_PER_WORD].load(Ordering::Relaxed) >> Self::shift(row);
        (bits & 1 != 0).then_some(bits & 2 != 0)
    }

    /// Records on which side a row lies.
    fn set(&self, row: u32, right: bool) {
        let bits = 1 | u64::from(right) << 1;
        self.0[row as usize / ROWS_PER_WORD].fetch_or(bits << Self::shift(row), Ordering::Relaxed);
    }

    /// The place of a row's two bits in its word.
    fn shift(row: u32) -> usize {
        2 * (row as usize % ROWS_PER_WORD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use ndarray::Array2;
    use rayon::prelude::*;

    #[test]
    fn remembered_sides_are_those_of_the_scores() {
        let mut rng = fastrand::Rng::with_seed(5);
        let (n, d) = (300, MIN_WEIGHTS_REMEMBERED + 4);
        let x = Array2::from_shape_fn((n, d), |_| rng.f64() - 0.5);
        let table = Table::from_matrix(x.view()).unwrap();
        let all = Rows::Table(&table);
        let mut plane = |n_weights: usize| Plane {
            weights: (0..n_weights as u32).map(|column| (column, rng.f64() - 0.5)).collect(),
            bias: 0.01,
        };
        let planes = [plane(d), plane(d), plane(3)];
        let memory = Memory::default();
        for round in 0..4u64 {
            (0..40u64).into_par_iter().for_each(|seed| {
                let mut rng = fastrand::Rng::with_seed(100 * round + seed);
                let plane = &planes[rng.usize(..planes.len())];
                let rows: Vec<u32> = (0..n as u32).filter(|_| rng.u8(..4) == 0).collect();
                let scores = plane.sums(all, &rows);
                let expected: Vec<bool> = scores.iter().map(|score| *score >= 0.0).collect();
                assert_eq!(memory.sides(plane, all, &rows), expected);
            });
            let known = memory.sides.read().unwrap().len();
            assert!((1..=2).contains(&known), "{known}"); // the plane of three weights never
            memory.keep_only(planes[1..].iter());
            assert!(memory.sides.read().unwrap().len() <= 1);
        }
    }
}
