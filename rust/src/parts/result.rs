//! What a fit without rows ends in: the leaves' sums, and the tree that is made of them.

use std::collections::BTreeMap;

use super::answer::LeafSums;
use super::columns::{PartColumn, numbers_of};
use super::fit::{Base, PartsFit, Phase};
use super::growth::{Growth, Replayed};
use super::routing::TestNode;
use crate::costs::{GroupMeans, Metric, Moments, Units, is_good_guess};
use crate::error::{Error, Result};
use crate::exact::ExactSums;
use crate::tree::TestArrays;

/// Most numbers (groups x columns) for which the means of leaves are taken; of clusters beyond.
const MAX_MEANS: usize = 1_000_000;

/// A fitted tree. Entries are by node id, the root first, children after their parents.
#[derive(Debug, Clone)]
pub struct PartsResult {
    /// Tests and children.
    pub tests: TestArrays,
    /// The values below and above the cut, and below and above an interval's lower end; NaN elsewhere.
    pub beside: [Vec<f64>; 4],
    /// Number of rows.
    pub n_samples: Vec<u64>,
    /// Weight of the rows.
    pub weight: Vec<f64>,
    /// n_nodes x k: weight of the rows of each label.
    pub label_weight: Vec<f64>,
    /// Regret under the best label.
    pub cost: Vec<f64>,
    /// The best label.
    pub cluster: Vec<usize>,
    /// Label as a leaf of the base; none at other nodes.
    pub base_cluster: Vec<Option<usize>>,
    /// Regret of a base leaf's rows under that label; 0 elsewhere.
    pub base_cost: Vec<f64>,
    /// Weight that the cut of a base node separates from its centers; NaN elsewhere.
    pub mistakes: Vec<f64>,
    /// By label its rows: those nearest to its center, or those that bring it.
    pub label_rows: Vec<u64>,
    /// What the rows cost at least.
    pub minimum: f64,
    /// What the reference costs, if that is not by label.
    pub reference_inertia: f64,
    /// The same by label, in place of it, where rows bring labels.
    pub reference_spread: Vec<f64>,
    /// Share of the weight that is nearer to another center than to that of its label.
    pub misfit: f64,
    /// What the centers of a sample cost, where they have moved since.
    pub cost_of_sample: Option<f64>,
    /// The centers in the columns' own units: as [`ReferenceRule::Centers`](super::ReferenceRule::Centers).
    pub centers: Vec<f64>,
    /// Units of the columns.
    pub units: Units,
    /// The clusters as the tree has them.
    pub clusters: Clusters,
}

/// What the clusters of a tree are, and cost.
#[derive(Debug, Clone)]
pub enum Clusters {
    /// Means of groups of rows.
    Means {
        /// The leaf of each group of rows, or one of its leaves.
        leaves: Vec<usize>,
        /// As for [`crate::costs::group_means`].
        means: GroupMeans,
        /// By column of levels the weight of each in each group: n_groups x number of levels.
        levels: Vec<Option<Vec<f64>>>,
    },
    /// Medians of the clusters.
    Medians {
        /// k x the columns' widths, row-major, in the columns' own units: lower medians, and 1 for the most frequent level.
        /// Of complete numbers a cluster without rows has the reference's center; else one without an observed cell in a
        /// column has what all rows have there.
        centers: Vec<f64>,
        /// By column what the rows cost about them.
        costs: Vec<f64>,
    },
}

/// Groups of leaves and points near their rows.
pub(super) struct Groups {
    /// By node.
    pub of_node: Vec<usize>,
    /// By group one of its leaves.
    pub leaves: Vec<usize>,
    /// n_groups x d, row-major.
    pub points: Vec<f64>,
    pub is_mean: bool,
}

/// What rows of groups add up to about a point of each.
#[derive(Clone, Copy)]
pub(super) struct Sums<'a> {
    /// Of each group.
    pub weight: &'a [f64],
    /// As [`LeafSums::moments`].
    pub moments: &'a [ExactSums],
    /// As [`GroupMeans::observed`].
    pub observed: Option<&'a [f64]>,
}

impl PartsFit {
    /// [`Moments::settle`] of groups of rows.
    pub(super) fn settle(
        &self,
        Sums { weight, moments, observed }: Sums<'_>,
        means: &mut [f64],
        is_mean: bool,
        units: &Units,
    ) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let rounded = |sums: &ExactSums| -> Vec<[f64; 2]> {
            (0..weight.len()).map(|i| [sums.rounded(2 * i), sums.rounded(2 * i + 1)]).collect()
        };
        let columns: Vec<_> = moments.iter().map(rounded).collect();
        let n_samples = self.n_rows() as usize;
        let moments = Moments { weight, observed, columns: &columns, n_samples };
        moments.settle(means, is_mean, &units.scale)
    }

    /// n_groups x d: the weight of the observed cells; none if no cell is missing.
    /// `observed`, `levels`: as [`LeafSums::observed`] and [`LeafSums::levels`].
    pub(super) fn observed(
        &self,
        weight: &[f64],
        observed: &[Option<ExactSums>],
        levels: &[Option<ExactSums>],
    ) -> Option<Vec<f64>> {
        if !self.columns.iter().any(|column| column.has_gaps) {
            return None;
        }
        let of_group = |(group, &weight): (usize, &f64)| -> Vec<f64> {
            let columns = self.columns.iter().zip(observed).zip(levels);
            let of_column = |((column, observed), levels): ((&PartColumn, _), _)| {
                let observed: &Option<ExactSums> = observed;
                let levels: &Option<ExactSums> = levels;
                match (observed, levels, column.n_levels()) {
                    (Some(observed), ..) => observed.rounded(group),
                    (_, Some(levels), Some(n)) if column.has_gaps => {
                        levels.combined(&(group * n..(group + 1) * n).collect::<Vec<_>>(), &[])
                    }
                    _ => weight,
                }
            };
            columns.map(of_column).collect()
        };
        Some(weight.iter().enumerate().flat_map(of_group).collect())
    }

    /// The leaves, or the clusters if there are too many leaves, and their centers.
    pub(super) fn groups(&self, growth: &Growth, tree: &Replayed, centers: &[f64]) -> Groups {
        let (width, n) = (centers.len() / growth.k(), tree.nodes.len());
        let ids: Vec<usize> = (0..n).filter(|&id| tree.left[id] == 0).collect();
        let label = |id: usize| growth.leaf_cluster(tree, id);
        let mut of_node = vec![0; n];
        if self.settings.metric == Metric::Manhattan {
            // Of clusters: medians of leaves do not add up to theirs.
            ids.iter().for_each(|&id| of_node[id] = label(id));
            let points = numbers_of(centers, &self.columns);
            return Groups { of_node, leaves: vec![], points, is_mean: true };
        }
        let leaves: Vec<usize> = if ids.len() * width <= MAX_MEANS {
            ids.iter().enumerate().for_each(|(group, &id)| of_node[id] = group);
            ids
        } else {
            let mut first = BTreeMap::new();
            ids.iter().for_each(|&id| {
                first.entry(label(id)).or_insert(id);
            });
            let labels: Vec<usize> = first.keys().copied().collect();
            for &id in &ids {
                of_node[id] = labels.binary_search(&label(id)).unwrap_or(0);
            }
            first.into_values().collect()
        };
        let center = |&id: &usize| centers[label(id) * width..][..width].to_vec();
        let points: Vec<f64> = leaves.iter().flat_map(center).collect();
        let points = numbers_of(&points, &self.columns);
        Groups { of_node, leaves, points, is_mean: false }
    }

    /// The means of the groups and all that the tree says; another question if the means were guessed badly.
    pub(super) fn finish(
        &self,
        base: Base,
        growth: Growth,
        tree: Replayed,
        groups: Groups,
        sums: &LeafSums,
    ) -> Result<Phase> {
        let k = base.geometry.k();
        let n_nodes = tree.nodes.len();
        let is_leaf = |id: usize| tree.left[id] == 0;
        let of_group = |group: usize| -> Vec<usize> {
            let ids = (0..n_nodes).filter(|&id| is_leaf(id) && groups.of_node[id] == group);
            ids.flat_map(|id| id * k..(id + 1) * k).collect()
        };
        if base.geometry.metric == Metric::Manhattan {
            let (centers, costs) = self.medians_and_costs(&groups.points, k, sums);
            check_distances(sums.minimum.rounded(0), &[costs.iter().sum()])?;
            let clusters = Clusters::Medians { centers, costs };
            return Ok(Phase::Done(Box::new(described(base, growth, tree, sums, clusters))));
        }
        let n_groups = groups.leaves.len();
        let weight: Vec<f64> =
            (0..n_groups).map(|group| sums.weight.combined(&of_group(group), &[])).collect();
        let mut means = groups.points.clone();
        let observed = self.observed(&weight, &sums.observed, &sums.levels);
        let of_groups =
            Sums { weight: &weight, moments: &sums.moments, observed: observed.as_deref() };
        let (rest, spread, squares) =
            self.settle(of_groups, &mut means, groups.is_mean, &base.geometry.units);
        if !groups.is_mean && !is_good_guess(&squares, &spread) {
            let groups = Groups { points: means, is_mean: true, ..groups };
            return Ok(Phase::Leaves { base, growth, tree, groups });
        }
        check_distances(sums.minimum.rounded(0), &spread)?;
        let means = GroupMeans { weight, means, rest, spread, observed };
        let levels = sums.levels.iter().map(|sums| sums.as_ref().map(ExactSums::all_rounded));
        let clusters = Clusters::Means { leaves: groups.leaves, means, levels: levels.collect() };
        Ok(Phase::Done(Box::new(described(base, growth, tree, sums, clusters))))
    }
}

impl PartsFit {
    /// The medians of the clusters, k x the columns' widths, and by column what the rows cost about them. `numbers`: k x d,
    /// those of columns of numbers.
    fn medians_and_costs(
        &self,
        numbers: &[f64],
        k: usize,
        sums: &LeafSums,
    ) -> (Vec<f64>, Vec<f64>) {
        let d = self.columns.len();
        let mut centers = vec![vec![]; k];
        let mut costs = vec![];
        for feature in 0..d {
            let (Some(weights), Some(of_levels)) =
                (&sums.levels[feature], &sums.level_costs[feature])
            else {
                let all: Vec<usize> = (0..k).map(|label| 2 * label).collect();
                costs.push(sums.moments[feature].combined(&all, &[]));
                (0..k).for_each(|label| centers[label].push(numbers[label * d + feature]));
                continue;
            };
            let n = weights.len() / k;
            let modes: Vec<usize> = (0..k).map(|label| most_frequent(weights, label, n)).collect();
            for (center, &mode) in centers.iter_mut().zip(&modes) {
                center.extend((0..n).map(|level| f64::from(u8::from(level == mode))));
            }
            let others: Vec<usize> =
                (0..k * n).filter(|place| place % n != modes[place / n]).collect();
            costs.push(of_levels.combined(&others, &[]));
        }
        (centers.concat(), costs)
    }
}

/// The level of the largest weight in a cluster, the first of several; of all rows where the cluster has no level.
/// `weights`: k x `n`.
pub(super) fn most_frequent(weights: &ExactSums, label: usize, n: usize) -> usize {
    let mut of_levels: Vec<f64> = (0..n).map(|level| weights.rounded(label * n + level)).collect();
    if of_levels.iter().all(|&weight| weight == 0.0) {
        let all = |level: usize| (level..weights.len()).step_by(n).collect::<Vec<_>>();
        of_levels = (0..n).map(|level| weights.combined(&all(level), &[])).collect();
    }
    let largest = of_levels.iter().copied().fold(0.0, f64::max);
    of_levels.iter().position(|&weight| weight == largest).unwrap_or(0)
}

/// All that the tree says.
fn described(
    base: Base,
    growth: Growth,
    tree: Replayed,
    sums: &LeafSums,
    clusters: Clusters,
) -> PartsResult {
    let (k, n_nodes) = (base.geometry.k(), tree.nodes.len());
    let is_leaf = |id: usize| tree.left[id] == 0;
    let minimum = sums.minimum.rounded(0);
    // Sums of inner nodes are those of their leaves; children come after their parents.
    let mut places: Vec<Vec<usize>> = vec![vec![]; n_nodes];
    let mut label_weight = vec![0.0; n_nodes * k];
    for id in (0..n_nodes).rev() {
        places[id] = match tree.left[id] {
            0 => vec![id],
            left => [&places[left][..], &places[left + 1]].concat(),
        };
        for label in 0..k {
            let of_label: Vec<usize> = places[id].iter().map(|leaf| leaf * k + label).collect();
            label_weight[id * k + label] = sums.weight.combined(&of_label, &[]);
        }
    }
    let node = |id: usize| &growth.nodes[tree.nodes[id]];
    // The nodes of the base have the same numbers in the tree.
    let mut base_cluster = growth.base.as_ref().map_or(vec![], |of_base| of_base.center.clone());
    let mut mistakes = growth.base.as_ref().map_or(vec![], |of_base| of_base.mistakes.clone());
    base_cluster.resize(n_nodes, None);
    mistakes.resize(n_nodes, f64::NAN);
    let base_cost = |id: usize| base_cluster[id].map_or(0.0, |label| node(id).node.totals[label]);
    let ids = || 0..n_nodes;
    let tests = growth.nodes_of(&tree);
    let children = |node: &TestNode| [node.left, node.left + 1];
    let cut = |id: usize| growth.cut(tree.nodes[id]).filter(|_| !is_leaf(id));
    let beside =
        |end: usize| ids().map(|id| cut(id).map_or(f64::NAN, |cut| cut.beside[end])).collect();
    PartsResult {
        tests: TestArrays {
            missing_go_to_left: Some(tests.iter().map(|node| node.missing_left).collect()),
            ..TestArrays::of(tests.iter().map(|node| (&node.test, children(node))))
        },
        beside: [beside(0), beside(1), beside(2), beside(3)],
        n_samples: ids().map(|id| node(id).n).collect(),
        weight: label_weight.chunks(k).map(|weights| weights.iter().sum()).collect(),
        label_weight,
        cost: ids().map(|id| node(id).node.cost).collect(),
        cluster: ids().map(|id| growth.cluster(tree.nodes[id])).collect(),
        base_cost: ids().map(base_cost).collect(),
        base_cluster,
        mistakes,
        label_rows: sums.labels.clone(),
        minimum,
        reference_inertia: base.inertia.unwrap_or(minimum + sums.regret.rounded(0)),
        reference_spread: base.spread,
        misfit: sums.misfit.rounded(0) / sums.weight.all_rounded().iter().sum::<f64>(),
        cost_of_sample: base.cost_of_sample,
        centers: base.own,
        units: base.geometry.units,
        clusters,
    }
}

/// Checks costs.
///
/// # Errors
/// [`Error::Value`] if they overflow.
pub(super) fn check_distances(minimum: f64, spread: &[f64]) -> Result<()> {
    if minimum.is_finite() && spread.iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    Err(Error::Value(
        "The distances between rows and centers overflow float64. Use scale=\"standard\" or rescale the columns.".into(),
    ))
}
