//! Trees to start from: bisecting 2-means, or bisectors of random pairs of rows (appendix A.2 of the paper).
//!
//! The tree is complete up to the given depth as far as the rows of its nodes differ, and grows a depth at a time. A
//! test is the bisector of two centers: rows nearer to the second one go right. For 2-means the centers start as a row
//! and one drawn in proportion to the squared distance (k-means++, Arthur and Vassilvitskii, 2007), then take turns
//! with the sides; what a split explains is the weighted sum of squares between its two means and the origin, which
//! grows from step to step.
//!
//! Every node has a random generator of its own, seeded by its place in the tree, so that neither threads nor the other
//! nodes change what it draws. Cost: one pass over the rows for all nodes of a depth together, `N_STARTS` times at most
//! `MAX_STEPS` of them.

use super::draft::{DraftNode, DraftTree, Leaf};
use super::geometry::Geometry;
use crate::error::Result;
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::tree::test::is_left;
use crate::tree::{Plane, Test};

/// Starts of 2-means at a node.
const N_STARTS: usize = 2;
/// Most steps of 2-means.
const MAX_STEPS: usize = 12;
/// A step that raises what the split explains by less than this share is the last.
const MIN_GAIN: f64 = 1e-3;
/// Rows among which the second center is drawn.
const MAX_CANDIDATES: usize = 64;
/// Pairs drawn for a random bisector before the node stays a leaf.
const MAX_PAIRS: usize = 10;

/// How the tests of the first tree are made: each is the bisector of two centers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstTree {
    /// The two means of the node's rows.
    Bisecting,
    /// Two of the node's rows.
    Random,
}

/// A node to be split.
struct OpenLeaf {
    /// The node.
    id: usize,
    /// Its own generator, seeded by its place in the tree.
    rng: fastrand::Rng,
    /// The rows that reach it.
    rows: Vec<u32>,
    /// The split that explains most so far.
    best: Option<Bisection>,
    /// How much that is: the cost that its two centers take from the rows.
    explained: f64,
}

/// A test, and the rows of its two sides.
struct Bisection {
    /// The bisector of two centers.
    test: Test,
    /// Rows nearer to the first center, and to the second.
    parts: [Vec<u32>; 2],
}

/// A complete tree of the given depth, as far as the rows of its nodes differ. Rows of weight 0 are not expected. One
/// step of 2-means is one pass over the rows for all nodes of a depth together.
///
/// # Errors
/// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
pub fn tree(
    geometry: &Geometry<'_, '_>,
    weights: Option<&[f64]>,
    start: FirstTree,
    depth: usize,
    seed: u64,
    monitor: &Monitor,
) -> Result<DraftTree> {
    let n = geometry.rows().n_samples();
    let mut tree = DraftTree::leaf(0);
    let root = (0, 1u64, memory::collected(0..n as u32, "the rows of the nodes"));
    let mut leaves: Vec<(usize, u64, Vec<u32>)> = vec![root];
    for _ in 0..depth {
        let places: Vec<u64> = leaves.iter().map(|leaf| leaf.1).collect();
        let mut open: Vec<OpenLeaf> = leaves
            .into_iter()
            .map(|(id, place, rows)| {
                let seed = seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let rng = fastrand::Rng::with_seed(seed);
                OpenLeaf { id, rng, rows, best: None, explained: f64::NEG_INFINITY }
            })
            .collect();
        match start {
            FirstTree::Random => {
                parallel::map(&mut open, |node| node.random(geometry));
            }
            FirstTree::Bisecting => {
                for _ in 0..N_STARTS {
                    two_means(geometry, weights, &mut open, monitor)?;
                }
            }
        }
        monitor.check()?;
        leaves = vec![];
        for (node, place) in open.into_iter().zip(places) {
            let Some(Bisection { test, parts }) = node.best else { continue };
            let left = tree.nodes.len();
            tree.nodes.extend([DraftNode::Leaf(Leaf::default()), DraftNode::Leaf(Leaf::default())]);
            tree.nodes[node.id] = DraftNode::split(test, left, left + 1);
            for (side, part) in parts.into_iter().enumerate() {
                leaves.push((left + side, (place << 1) | side as u64, part));
            }
        }
    }
    Ok(tree.compact())
}

/// One start of 2-means at every open node.
/// Rows of all open nodes are assigned, summed and moved together; a node whose step explains no more than [`MIN_GAIN`]
/// above the last keeps its best split and takes no more steps.
fn two_means(
    geometry: &Geometry<'_, '_>,
    weights: Option<&[f64]>,
    open: &mut [OpenLeaf],
    monitor: &Monitor,
) -> Result<()> {
    let d = geometry.rows().n_features();
    // Rows of nodes that are done stay where they are, those of no open node are a group of their own.
    let (n, rest) = (geometry.rows().n_samples(), 2 * open.len());
    let mut groups: Vec<u32> = memory::filled(rest as u32, n, "the rows of the nodes");
    let mut sums_of = geometry.sums_in_turn(rest + 1, weights);
    let mut centers: Vec<Option<[Vec<f64>; 2]>> =
        parallel::map(&mut *open, |node| node.two_rows(geometry));
    let mut explained = vec![0.0; open.len()];
    for _ in 0..MAX_STEPS {
        monitor.check()?;
        let nodes = open.iter().zip(&centers);
        let found: Vec<Option<Bisection>> =
            parallel::map(nodes, |(node, centers)| bisect(geometry, centers.as_ref()?, &node.rows));
        if found.iter().all(Option::is_none) {
            break;
        }
        for (place, found) in found.iter().enumerate() {
            for (side, part) in found.iter().flat_map(|found| found.parts.iter().enumerate()) {
                for &row in part {
                    groups[row as usize] = (2 * place + side) as u32;
                }
            }
        }
        let sums = sums_of(&groups)?;
        for (place, found) in found.into_iter().enumerate() {
            let mean = |side: usize| {
                let group = 2 * place + side;
                geometry.center(sums.weight[group], &sums.sums[group * d..][..d])
            };
            centers[place] = None;
            let Some(found) = found else { continue };
            let (Some((first, a)), Some((second, b))) = (mean(0), mean(1)) else { continue };
            if a + b > open[place].explained {
                (open[place].best, open[place].explained) = (Some(found), a + b);
            }
            if a + b > (1.0 + MIN_GAIN) * explained[place] {
                explained[place] = a + b;
                centers[place] = Some([first, second]);
            }
        }
    }
    Ok(())
}

/// The bisector of two centers and the rows of its sides; none if one is empty.
fn bisect(geometry: &Geometry<'_, '_>, centers: &[Vec<f64>; 2], rows: &[u32]) -> Option<Bisection> {
    let (weights, bias) = geometry.bisector(&centers[0], &centers[1]);
    let mut parts = [vec![], vec![]];
    let plane = Plane { weights, bias };
    for (score, &row) in plane.sums(geometry.rows(), rows).into_iter().zip(rows) {
        memory::push(&mut parts[usize::from(!is_left(score))], row, "the rows of the nodes");
    }
    let splits = !plane.weights.is_empty() && parts.iter().all(|part| !part.is_empty());
    splits.then_some(Bisection { test: Test::Oblique(plane), parts })
}

impl OpenLeaf {
    /// One of the node's rows.
    fn draw(&mut self) -> u32 {
        self.rows[self.rng.usize(..self.rows.len())]
    }

    /// The bisector of two random rows that differ, if [`MAX_PAIRS`] draws find any.
    fn random(&mut self, geometry: &Geometry<'_, '_>) {
        for _ in 0..MAX_PAIRS {
            if self.rows.len() < 2 || self.best.is_some() {
                return;
            }
            let centers = [self.draw(), self.draw()].map(|row| geometry.row(row));
            self.best = bisect(geometry, &centers, &self.rows);
        }
    }

    /// A row, and one of some others with a probability that grows with the square of the distance (k-means++).
    fn two_rows(&mut self, geometry: &Geometry<'_, '_>) -> Option<[Vec<f64>; 2]> {
        if self.rows.len() < 2 {
            return None;
        }
        let first = geometry.row(self.draw());
        let others: Vec<u32> =
            (0..self.rows.len().min(MAX_CANDIDATES)).map(|_| self.draw()).collect();
        let others: Vec<Vec<f64>> = others.into_iter().map(|row| geometry.row(row)).collect();
        let square = |row: &Vec<f64>| -> f64 {
            row.iter().zip(&first).map(|(x, c)| (x - c) * (x - c)).sum()
        };
        let squares: Vec<f64> = others.iter().map(square).collect();
        let mut left = self.rng.f64() * squares.iter().sum::<f64>();
        let chosen = squares.iter().position(|square| {
            left -= square;
            left < 0.0
        });
        let second = others.into_iter().nth(chosen?)?;
        Some([first, second])
    }
}
