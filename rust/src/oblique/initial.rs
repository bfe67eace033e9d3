//! Trees to start from: bisecting 2-means, or bisectors of random pairs of rows (appendix A.2 of the paper).

use rayon::prelude::*;

use super::geometry::group_sums;
use super::logistic::Design;
use super::tao::{Leaf, Node, Test, Tree, scores};
use crate::error::Result;
use crate::parallel::Monitor;

/// Starts and steps of 2-means at a node.
const STARTS: usize = 3;
const STEPS: usize = 30;

/// How the tests of the first tree are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// 2-means on the rows of the node.
    Bisecting,
    /// Two of the rows at random.
    Random,
}

/// What the first tree is made of.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The rows.
    pub design: &'a Design<'a>,
    /// Number of columns.
    pub n_features: usize,
    /// What a row counts as in means: its weight, divided by its length for cosine.
    pub factor: &'a [f64],
    /// Whether centers have length 1.
    pub spherical: bool,
}

/// A complete tree of the given depth, as far as the rows of its nodes differ. The test of a node is the bisector of
/// two centers.
///
/// # Errors
/// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
pub fn tree(
    rows: &Rows<'_>,
    start: Start,
    depth: usize,
    seed: u64,
    monitor: &Monitor,
) -> Result<Tree> {
    let all: Vec<u32> = (0..rows.factor.len() as u32).collect();
    let mut tree = Tree::leaf(0);
    let mut open = vec![(0usize, 1u64, all)];
    for _ in 0..depth {
        monitor.check()?;
        let found: Vec<_> = open
            .par_iter()
            .map(|(_, place, members)| {
                let mut rng = fastrand::Rng::with_seed(seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                rows.bisect(members, start, &mut rng, monitor)
            })
            .collect::<Result<_>>()?;
        let mut next = vec![];
        for ((id, place, _), found) in open.into_iter().zip(found) {
            let Some((test, parts)) = found else { continue };
            let left = tree.nodes.len();
            tree.nodes.extend([Node::Leaf(Leaf::default()), Node::Leaf(Leaf::default())]);
            tree.nodes[id] = Node::Split { test, left, right: left + 1 };
            for (side, part) in parts.into_iter().enumerate() {
                next.push((left + side, (2 * place) | side as u64, part));
            }
        }
        open = next;
    }
    Ok(tree.compact())
}

/// A test and the rows of its two sides.
type Bisection = (Test, [Vec<u32>; 2]);

impl Rows<'_> {
    fn bisect(
        &self,
        members: &[u32],
        start: Start,
        rng: &mut fastrand::Rng,
        monitor: &Monitor,
    ) -> Result<Option<Bisection>> {
        let mut best: Option<(f64, Bisection)> = None;
        let starts = if start == Start::Random { 10 } else { STARTS };
        for _ in 0..starts {
            monitor.check()?;
            if members.len() < 2 {
                return Ok(None);
            }
            let first = self.row(members[rng.usize(..members.len())]);
            let second = match start {
                Start::Random => members[rng.usize(..members.len())],
                Start::Bisecting => self.far_from(&first, members, rng),
            };
            let mut centers = [first, self.row(second)];
            let Some(mut found) = self.sides(&centers, members) else { continue };
            if start == Start::Random {
                return Ok(Some(found));
            }
            let mut value = f64::NEG_INFINITY;
            for _ in 0..STEPS {
                let (new, quality) = self.means(&found.1);
                if quality <= value * (1.0 + 1e-6) {
                    break;
                }
                (centers, value) = (new, quality);
                match self.sides(&centers, members) {
                    Some(next) => found = next,
                    None => break,
                }
            }
            if best.as_ref().is_none_or(|b| value > b.0) {
                best = Some((value, found));
            }
        }
        Ok(best.map(|b| b.1))
    }

    fn row(&self, row: u32) -> Vec<f64> {
        let mut cells = vec![0.0; self.n_features];
        match *self.design {
            Design::Dense { values, n_samples } => {
                for (cell, column) in cells.iter_mut().zip(values.chunks(n_samples)) {
                    *cell = column[row as usize];
                }
            }
            Design::Csr { indptr, indices, values, .. } => {
                for at in indptr[row as usize] as usize..indptr[row as usize + 1] as usize {
                    cells[indices[at] as usize] = values[at];
                }
            }
        }
        if self.spherical {
            to_unit(&mut cells);
        }
        cells
    }

    /// A row drawn with a probability that grows with its distance (k-means++).
    fn far_from(&self, center: &[f64], members: &[u32], rng: &mut fastrand::Rng) -> u32 {
        // A few rows to choose from are enough, and cheap.
        let drawn: Vec<u32> =
            (0..members.len().min(64)).map(|_| members[rng.usize(..members.len())]).collect();
        let distance = |&row: &u32| {
            let cells = self.row(row);
            let squares: f64 = cells.iter().zip(center).map(|(x, c)| (x - c) * (x - c)).sum();
            squares
        };
        let distances: Vec<f64> = drawn.iter().map(distance).collect();
        let mut left = rng.f64() * distances.iter().sum::<f64>();
        for (&row, distance) in drawn.iter().zip(&distances) {
            left -= distance;
            if left < 0.0 {
                return row;
            }
        }
        drawn[drawn.len() - 1]
    }

    /// The bisector of two centers, and the rows of its sides; none if one is empty.
    fn sides(&self, centers: &[Vec<f64>; 2], members: &[u32]) -> Option<Bisection> {
        let square = |center: &[f64]| center.iter().map(|x| x * x).sum::<f64>();
        let weights: Vec<(u32, f64)> = centers[1]
            .iter()
            .zip(&centers[0])
            .enumerate()
            .map(|(j, (right, left))| (j as u32, right - left))
            .filter(|w| w.1 != 0.0)
            .collect();
        let bias = if self.spherical { 0.0 } else { (square(&centers[0]) - square(&centers[1])) / 2.0 };
        let mut parts = [vec![], vec![]];
        for (score, &row) in scores(self.design, members, &weights, bias).into_iter().zip(members) {
            parts[usize::from(score >= 0.0)].push(row);
        }
        let both = !parts[0].is_empty() && !parts[1].is_empty();
        both.then_some((Test::Oblique { weights, bias }, parts))
    }

    /// The centers of two groups of rows, and how much of the rows' squares they explain.
    fn means(&self, parts: &[Vec<u32>; 2]) -> ([Vec<f64>; 2], f64) {
        let mut quality = 0.0;
        let centers = [0, 1].map(|side| {
            let rows = &parts[side];
            let mut sum = self.sum(rows);
            let weight: f64 = rows.iter().map(|&row| self.factor[row as usize]).sum();
            let square: f64 = sum.iter().map(|x| x * x).sum();
            if self.spherical {
                quality += square.sqrt();
                to_unit(&mut sum);
            } else {
                quality += square / weight;
                sum.iter_mut().for_each(|x| *x /= weight);
            }
            sum
        });
        (centers, quality)
    }

    fn sum(&self, rows: &[u32]) -> Vec<f64> {
        match *self.design {
            Design::Dense { values, n_samples } => values
                .par_chunks(n_samples)
                .with_min_len(16)
                .map(|column| {
                    rows.iter().map(|&row| self.factor[row as usize] * column[row as usize]).sum()
                })
                .collect(),
            Design::Csr { .. } => {
                let (design, factor) = (self.design, self.factor);
                // Rows of other nodes count nothing.
                let mut own = vec![0.0; factor.len()];
                for &row in rows {
                    own[row as usize] = factor[row as usize];
                }
                group_sums(design, self.n_features, &vec![0; factor.len()], 1, &own)
            }
        }
    }
}

fn to_unit(cells: &mut [f64]) {
    let length = cells.iter().map(|x| x * x).sum::<f64>().sqrt();
    if length > 0.0 {
        cells.iter_mut().for_each(|x| *x /= length);
    }
}
