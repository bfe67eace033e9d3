//! Node problems that are known to have no better answer than what is there.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use super::reduced::{Plane, Reduced};

/// A set of problems, each by 128 bits of hash. A problem met again has the same answer to the bit, so leaving it out
/// changes nothing but the time: late in a fit most nodes are as they were.
#[derive(Debug, Default)]
pub struct Settled(Mutex<HashSet<[u64; 2]>>);

/// What a problem is remembered by.
#[derive(Debug, Clone, Copy)]
pub struct Key([u64; 2]);

impl Key {
    /// The rows and their losses, the plane that is there, and the numbers that decide whether another one is taken.
    pub(super) fn of(reduced: &Reduced, plane: Option<&Plane>, numbers: &[f64]) -> Self {
        let hash = |start: u8| {
            let mut hasher = DefaultHasher::new();
            start.hash(&mut hasher);
            reduced.rows.hash(&mut hasher);
            reduced.sign.hash(&mut hasher);
            let mut number = |x: f64| x.to_bits().hash(&mut hasher);
            reduced.weight.iter().chain(&reduced.all).chain(numbers).for_each(|x| number(*x));
            if let Some(plane) = plane {
                number(plane.bias);
                for &(column, weight) in &plane.weights {
                    number(weight);
                    number(f64::from(column));
                }
            }
            hasher.finish()
        };
        Key([hash(0), hash(1)])
    }
}

impl Settled {
    /// Whether the problem is known.
    pub(super) fn contains(&self, key: Key) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&key.0)
    }

    /// Remembers a problem.
    pub(super) fn insert(&self, key: Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.0);
    }
}
