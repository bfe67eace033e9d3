//! Spherical k-means: the clustering of rows by the cosine to centers of length 1.
//!
//! Dhillon, Modha: Concept Decompositions for Large Sparse Text Data Using Clustering, Machine Learning 42, 2001;
//! starts as in appendix A.2 of the oblique-tree paper. Each step assigns every row to the center of the largest cosine
//! (the lowest label among equals) and moves the centers to the directions of their clusters' sums; neither raises the
//! cost.

use super::geometry::Geometry;
use crate::error::Result;
use crate::memory;
use crate::parallel::Monitor;

/// Number of clusters, starts and steps.
#[derive(Debug, Clone, Copy)]
pub struct SphericalOptions {
    /// Number of clusters.
    pub n_clusters: usize,
    /// Starts.
    pub n_init: usize,
    /// Most steps of a start.
    pub max_iter: usize,
    /// Of the starts.
    pub seed: u64,
}

/// A clustering.
#[derive(Debug, Clone, PartialEq)]
pub struct Clustering {
    /// A label per row.
    pub labels: Vec<u32>,
    /// n_clusters x d, row-major.
    pub centers: Vec<f64>,
    /// Weighted sum of 1 - cosine.
    pub inertia: f64,
}

/// The best of several starts, each from distinct random rows (appendix A.2 of the paper), by alternating assignment
/// and centers until no label changes. A cluster that runs empty is given the row that costs most. O(n_init max_iter k)
/// per stored cell.
///
/// # Errors
/// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
pub fn kmeans(
    geometry: &Geometry<'_, '_>,
    weights: Option<&[f64]>,
    options: &SphericalOptions,
    monitor: &Monitor,
) -> Result<Clustering> {
    let (n, d) = (geometry.rows().n_samples(), geometry.rows().n_features());
    let k = options.n_clusters.min(n);
    let mut best: Option<Clustering> = None;
    for start in 0..options.n_init.max(1) as u64 {
        let seed = options.seed ^ start.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut centers: Vec<f64> = Vec::with_capacity(k * d);
        for row in rng.choose_multiple(0..n as u32, k) {
            centers.extend(geometry.row(row));
        }
        let mut labels: Vec<u32> = vec![];
        let mut inertia = f64::INFINITY;
        for _ in 0..options.max_iter.max(1) {
            monitor.check()?;
            let costs = geometry.costs(&centers, weights)?;
            inertia = costs.minimum;
            if costs.nearest == labels {
                break;
            }
            labels = costs.nearest;
            fill_empty(geometry, &mut labels, &centers, k);
            centers = geometry.centers(&labels, weights, &centers)?;
        }
        if best.as_ref().is_none_or(|best| inertia < best.inertia) {
            best = Some(Clustering { labels, centers, inertia });
        }
    }
    let best = best.unwrap_or(Clustering { labels: vec![], centers: vec![], inertia: 0.0 });
    // The labels that belong to the last centers.
    let costs = geometry.costs(&best.centers, weights)?;
    Ok(Clustering { labels: costs.nearest, inertia: costs.minimum, ..best })
}

/// Moves to every empty cluster the row that is farthest from its center, if it is not alone there.
fn fill_empty(geometry: &Geometry<'_, '_>, labels: &mut [u32], centers: &[f64], k: usize) {
    let mut sizes = vec![0usize; k];
    labels.iter().for_each(|&label| sizes[label as usize] += 1);
    if !sizes.contains(&0) {
        return;
    }
    let d = geometry.rows().n_features();
    let mut order: Vec<(f64, u32)> = memory::collected(
        (0..labels.len() as u32).map(|row| {
            let center = &centers[labels[row as usize] as usize * d..][..d];
            let dot: f64 = geometry.row(row).iter().zip(center).map(|(x, c)| x * c).sum();
            (dot, row)
        }),
        "the order of the rows",
    );
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut order = order.into_iter();
    for empty in 0..k {
        if sizes[empty] > 0 {
            continue;
        }
        let far = order.find(|&(_, row)| sizes[labels[row as usize] as usize] > 1);
        if let Some((_, row)) = far {
            sizes[labels[row as usize] as usize] -= 1;
            labels[row as usize] = empty as u32;
            sizes[empty] = 1;
        }
    }
}
