//! The paper's way to a tree (section 7, figure 2): auxiliary labels Z that follow the tree more and more closely.
//!
//! For each mu of a growing sequence, labels and centers take a step with the tree fixed (eq. 7), then the tree takes
//! one with the labels fixed (eq. 8), until both agree. Minimised is E(Z, Psi) + mu (P(Z, T) + lambda phi(T)): eq. (8)
//! as printed, with lambda / mu, collapses the tree to one leaf at the small mu of the start.
//!
//! | paper | here |
//! |---|---|
//! | Z | `z`, a label per row |
//! | mu | `mu`; the first lets `FIRST_GAPS_SHARE` of the mismatched rows change their label |
//! | P | `Schedule::loss` |
//! | eq. (7) | `clustering_step` |
//! | eq. (8) | `Tao::grow` and `Tao::pass` |
//!
//! The path begins with the direct fit: the tree that reproduces the free labels as well as its price allows (mu = 0).
//! From there mu grows by a fixed factor. It ends when labels and tree agree and neither moves, when mu is larger than
//! all gaps (no row can gain by leaving the tree's label), or after a given number of values. A round costs
//! `MAX_CLUSTERING_STEPS` times O(n d k) at most, and `n_passes` passes of TAO.
//!
//! A departure: the paper stops there. P counts rows alike, however far they are from their centers, so tree and
//! centers go on from there on the objective itself (eq. 4), as those of the direct solver do (`settle`). On Letter,
//! at the paper's depths, that takes about a quarter off the cost that the path adds, with as many weights.
//! Centers at the end are those of the tree's clusters.
//!
//! In those rounds the centers follow every pass of TAO, and tests stay unless another is clearly better, as along the
//! path (`TaoSettings::steady`): more passes a round mostly exchange tests for others as good, scaled down by what
//! rounding leaves. The last round is the one that lowers the objective by a share below `Plan::tol`.

use super::draft::{DraftNode, DraftTree};
use super::fit::{Alternation, ClusterProblem, ObliqueFit, TreeClusters};
use super::leaf_loss::{Labels, Loss, squared_distance};
use super::memory::Memory;
use super::plan::Plan;
use super::reduced::TIE;
use crate::error::Result;
use crate::memory;
use crate::parallel::Monitor;

/// Most alternations of assignment and centers in one clustering step.
const MAX_CLUSTERING_STEPS: usize = 100;
/// TAO iterations between two updates of the centers after the last mu.
const PASSES_ON_OBJECTIVE: usize = 1;
/// The share of the mismatched rows that may change their label at the first mu.
const FIRST_GAPS_SHARE: f64 = 0.01;

/// The schedule of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// mu grows by this factor.
    pub factor: f64,
    /// Most values of mu.
    pub n_steps: usize,
    /// Whether leaves hold histograms and P is the squared error; else labels and 0/1.
    pub histograms: bool,
}

impl Schedule {
    /// P of some labels: the 0/1 loss, or the squared one.
    fn loss<'a>(&self, labels: Labels<'a>) -> Loss<'a> {
        if self.histograms { Loss::Squared(labels) } else { Loss::Labels(labels) }
    }
}

/// Follows the path of the paper from a given tree.
///
/// # Errors
/// As [`super::fit::direct`].
pub fn path(
    problem: &ClusterProblem<'_, '_>,
    start: DraftTree,
    plan: &Plan,
    schedule: &Schedule,
    monitor: &Monitor,
) -> Result<ObliqueFit> {
    let memory = Memory::default();
    let mut run = problem.start(start, plan, monitor, &memory)?;
    run.steady = true;
    let initial = if plan.keep_labels {
        let free = run.centers.clone();
        let objective = run.measure()?.objective;
        Some((run.tree.clone(), std::mem::replace(&mut run.centers, free), objective))
    } else {
        None
    };
    run.first(schedule.loss(run.free_labels()))?;
    let mut z = memory::copied(problem.labels, "the labels of the rows");
    let (mut mu, mut largest) = (0.0, f64::INFINITY);
    let mut converged = false;
    for t in 0..=schedule.n_steps {
        // The tree as it stands: the direct fit, then after each mu.
        let free = run.centers.clone();
        let TreeClusters { leaf_of_row, labels, objective } = run.measure()?;
        let weight = |row: usize| problem.weights.map_or(1.0, |w| w[row]);
        let differing = (0..z.len()).filter(|&row| z[row] != labels[row]);
        let mismatch = differing.map(weight).sum::<f64>() + 0.0; // a sum of nothing is -0
        run.record(mu, objective, mismatch);
        // Beyond the largest gap the labels are the tree's.
        converged |= mu > largest;
        if t == schedule.n_steps || converged {
            break; // the centers are those of the tree's clusters
        }
        let of_tree = std::mem::replace(&mut run.centers, free);
        if t == 0 {
            let costs = run.costs()?;
            let mut gaps: Vec<f64> = memory::reserved(z.len(), "the gaps of the rows");
            let of_row = (0..z.len())
                .filter(|&row| z[row] != labels[row])
                .map(|row| {
                    let regrets = &costs.regrets[row * run.k..][..run.k];
                    (regrets[labels[row] as usize] - regrets[z[row] as usize]) / weight(row)
                })
                .filter(|gap| *gap > 0.0);
            gaps.extend(of_row);
            gaps.sort_unstable_by(f64::total_cmp);
            if mismatch == 0.0 {
                // The tree reproduces the free clustering: nothing to bring together.
                (run.centers, converged) = (of_tree, true);
                break;
            }
            // Given labels may all be farther from their centers than the tree's.
            mu = gaps.get((FIRST_GAPS_SHARE * gaps.len() as f64) as usize).copied().unwrap_or(1.0);
            largest = gaps.last().copied().unwrap_or(1.0);
        } else {
            mu *= schedule.factor;
        }
        // Clustering step (eq. 7): the tree stays.
        let changed_labels =
            clustering_step(&mut run, &mut z, &leaf_of_row, mu, schedule.histograms)?;
        // Tree step (eq. 8): labels and centers stay.
        let z_labels = Labels { labels: &z, weights: problem.weights, k: run.k };
        let tao = run.tao(schedule.loss(z_labels), plan.n_sweeps);
        let mut tree = std::mem::replace(&mut run.tree, DraftTree::leaf(0));
        let mut changed_tree = tao.grow(&mut tree)?;
        for _ in 0..plan.n_passes {
            if !tao.pass(&mut tree)? {
                break;
            }
            changed_tree = true;
        }
        run.tree = tree;
        let leaf_of_row = tao.leaf_of_row(&run.tree);
        converged = !changed_labels && !changed_tree && run.labels(&leaf_of_row) == z;
    }
    converged &= settle(&mut run, schedule)?;
    // A tree that was given is never made worse.
    if let (Some((tree, centers, objective)), Some(&last)) = (initial, run.rounds.last())
        && objective.value(plan.lambda) < last.objective.value(plan.lambda)
    {
        (run.tree, run.centers) = (tree, centers);
        run.record(last.mu, objective, last.mismatch);
    }
    run.finish(converged)
}

/// Tree and centers in turns on E + lambda phi, from where the path ends; returns whether they come to rest. lambda is
/// set against P: in units of E it is multiplied by what P's unit costs there on average, E above the cost of the
/// nearest centers over P of their labels. Where the tree follows the nearest centers nothing is left to do.
fn settle(run: &mut Alternation<'_, '_, '_>, schedule: &Schedule) -> Result<bool> {
    let ClusterProblem { geometry, weights, .. } = *run.problem;
    let (_, labels) = run.center()?;
    let costs = geometry.costs(&run.centers, weights)?;
    let cost = costs.of_labels(&labels);
    let excess = cost - costs.minimum;
    let nearest = Labels { labels: &costs.nearest, weights, k: run.k };
    let mistakes = run.tao(schedule.loss(nearest), 0).objective(&run.tree).loss;
    if excess <= TIE * cost || mistakes <= 0.0 {
        return Ok(true);
    }
    run.price = run.plan.lambda * excess / (run.unit * mistakes);
    let converged = run.descend(PASSES_ON_OBJECTIVE)?;
    let objective = run.measure()?.objective;
    let mu = run.rounds.last().map_or(0.0, |round| round.mu);
    run.record(mu, objective, 0.0);
    Ok(converged)
}

/// Labels and centers for a fixed tree: every row goes to the center that is nearest once mu times its distance from
/// the tree's answer is added, and the centers follow, until nothing changes. Returns whether a label changed.
fn clustering_step(
    run: &mut Alternation<'_, '_, '_>,
    z: &mut [u32],
    leaf_of_row: &[u32],
    mu: f64,
    histograms: bool,
) -> Result<bool> {
    let k = run.k;
    // What each label costs beside its distance, by leaf.
    let penalties: Vec<Vec<f64>> = run
        .tree
        .nodes
        .iter()
        .map(|node| match node {
            DraftNode::Leaf(leaf) if histograms => {
                (0..k).map(|label| mu * squared_distance(label, &leaf.shares)).collect()
            }
            DraftNode::Leaf(leaf) => {
                (0..k).map(|label| if label as u32 == leaf.label { 0.0 } else { mu }).collect()
            }
            DraftNode::Split { .. } => vec![],
        })
        .collect();
    let mut changed = false;
    for _ in 0..MAX_CLUSTERING_STEPS {
        let costs = run.costs()?;
        let mut moved = false;
        for (row, z) in z.iter_mut().enumerate() {
            let weight = run.problem.weights.map_or(1.0, |w| w[row]);
            let penalty = &penalties[leaf_of_row[row] as usize];
            let cost = |label: usize| costs.regrets[row * k + label] + weight * penalty[label];
            let mut best = *z as usize;
            for label in 0..k {
                if cost(label) < cost(best) {
                    best = label;
                }
            }
            if best != *z as usize {
                (*z, moved) = (best as u32, true);
            }
        }
        if !moved {
            break;
        }
        changed = true;
        run.centers = run.problem.geometry.centers(z, run.problem.weights, &run.centers)?;
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oblique::fit::tests::{K, plan, with_problem};

    #[test]
    fn for_one_mu_neither_step_of_the_path_raises_what_it_minimises() {
        with_problem(|problem, start, monitor| {
            for histograms in [false, true] {
                let schedule = Schedule { factor: 1.1, n_steps: 100, histograms };
                let plan = plan(0.5);
                let memory = Memory::default();
                let mut run = problem.start(start.clone(), &plan, monitor, &memory).unwrap();
                run.steady = true;
                run.first(schedule.loss(run.free_labels())).unwrap();
                let mut z = problem.labels.to_vec();
                for mu in [0.1, 0.5, 2.0, 10.0] {
                    // E(Z, Psi) + mu (P(Z, T) + lambda phi)
                    let value = |run: &Alternation<'_, '_, '_>, z: &[u32]| {
                        let costs = run.costs().unwrap();
                        let rows = z.iter().zip(costs.regrets.chunks(K));
                        let own: f64 = rows.map(|(&label, row)| row[label as usize]).sum();
                        let labels = Labels { labels: z, weights: None, k: K };
                        let tao = run.tao(schedule.loss(labels), 0);
                        costs.minimum + own + mu * tao.objective(&run.tree).value(0.5)
                    };
                    let mut before = value(&run, &z);
                    for _ in 0..3 {
                        let leaf_of_row =
                            run.tao(schedule.loss(run.free_labels()), 0).leaf_of_row(&run.tree);
                        clustering_step(&mut run, &mut z, &leaf_of_row, mu, histograms).unwrap();
                        let between = value(&run, &z);
                        assert!(between <= before * (1.0 + 1e-12), "{mu}: {before} {between}");
                        let labels = Labels { labels: &z, weights: None, k: K };
                        let mut tree = run.tree.clone();
                        run.tao(schedule.loss(labels), 1).pass(&mut tree).unwrap();
                        run.tree = tree;
                        let after = value(&run, &z);
                        assert!(after <= between * (1.0 + 1e-12), "{mu}: {between} {after}");
                        before = after;
                    }
                }
            }
        });
    }

    #[test]
    fn a_path_ends_where_labels_and_tree_agree() {
        with_problem(|problem, start, monitor| {
            let schedule = Schedule { factor: 1.3, n_steps: 200, histograms: false };
            let fitted = path(problem, start, &plan(20.0), &schedule, monitor).unwrap();
            assert!(fitted.converged);
            let mu: Vec<f64> = fitted.rounds.iter().map(|round| round.mu).collect();
            assert!(mu.is_sorted() && mu[0] == 0.0 && mu.len() > 3, "{mu:?}");
            assert_eq!(fitted.rounds.last().unwrap().mismatch.to_bits(), 0f64.to_bits());
        });
    }

    /// Squared distances of a row to all centers, from the definition.
    fn squares(problem: &ClusterProblem<'_, '_>, centers: &[f64], row: usize) -> Vec<f64> {
        let cells = problem.geometry.rows().row(row as u32);
        let square = |center: &[f64]| cells.iter().zip(center).map(|(x, c)| (x - c).powi(2)).sum();
        centers.chunks(cells.len()).map(square).collect()
    }

    /// Weights of rows, and the mean cost of the free clustering with them.
    fn weights(problem: &ClusterProblem<'_, '_>) -> (Vec<f64>, f64) {
        let mut rng = fastrand::Rng::with_seed(1);
        let weights: Vec<f64> = problem.labels.iter().map(|_| 0.1 + 4.0 * rng.f64()).collect();
        let own = |(row, &label): (usize, &u32)| {
            weights[row] * squares(problem, problem.centers, row)[label as usize]
        };
        let cost: f64 = problem.labels.iter().enumerate().map(own).sum();
        let unit = cost / weights.iter().sum::<f64>();
        (weights, unit)
    }

    /// Calls `test` with the problem without and with weights, and the mean cost of the free clustering with them.
    fn with_weighted_problem(
        test: impl Fn(&ClusterProblem<'_, '_>, &ClusterProblem<'_, '_>, f64, DraftTree, &Monitor),
    ) {
        with_problem(|problem, start, monitor| {
            let (row_weights, unit) = weights(problem);
            let weighted = ClusterProblem { weights: Some(&row_weights), ..*problem };
            test(problem, &weighted, unit, start, monitor);
        });
    }

    /// Of 225 rows that one leaf puts into another cluster, the third easiest to move decides: one in a hundred may.
    #[test]
    fn the_first_mu_is_a_quantile_of_the_gaps() {
        with_weighted_problem(|problem, weighted, unit, start, monitor| {
            let plan = plan(1e4);
            let schedule = Schedule { factor: 1.1, n_steps: 1, histograms: false };
            let fitted = path(weighted, start, &plan, &schedule, monitor).unwrap();
            assert_eq!((fitted.rounds[0].mu, fitted.rounds[0].n_leaves), (0.0, 1));
            let DraftNode::Leaf(leaf) = &fitted.tree.nodes[0] else { unreachable!() };
            let gap = |(row, &label): (usize, &u32)| {
                let squares = squares(problem, problem.centers, row);
                (squares[leaf.label as usize] - squares[label as usize]) / unit
            };
            let mut gaps: Vec<f64> =
                problem.labels.iter().enumerate().map(gap).filter(|gap| *gap > 0.0).collect();
            gaps.sort_unstable_by(f64::total_cmp);
            assert!((200..300).contains(&gaps.len()), "{}", gaps.len());
            let mu = fitted.rounds[1].mu;
            assert!((mu - gaps[2]).abs() <= 1e-9 * mu, "{mu} {:?}", &gaps[..4]);
        });
    }

    /// The last rounds are about E itself; what a mistake costs is reckoned here from the definitions.
    #[test]
    fn a_path_ends_on_the_objective_at_the_price_of_a_mistake() {
        with_weighted_problem(|problem, weighted, unit, start, monitor| {
            let (plan, memory) = (plan(20.0), Memory::default());
            let row_weights = weighted.weights.unwrap();
            for histograms in [false, true] {
                let schedule = Schedule { factor: 1.1, n_steps: 1, histograms };
                let mut run = weighted.start(start.clone(), &plan, monitor, &memory).unwrap();
                run.first(schedule.loss(run.free_labels())).unwrap();
                let before = run.measure().unwrap();
                run.record(7.0, before.objective, 0.0);
                let (mut excess, mut mistakes) = (0.0, 0.0);
                for (row, weight) in row_weights.iter().enumerate() {
                    let DraftNode::Leaf(leaf) = &run.tree.nodes[before.leaf_of_row[row] as usize]
                    else {
                        unreachable!()
                    };
                    let squares = squares(problem, &run.centers, row);
                    let nearest =
                        (0..K).min_by(|&a, &b| squares[a].total_cmp(&squares[b])).unwrap();
                    excess += weight * (squares[leaf.label as usize] - squares[nearest]) / unit;
                    mistakes += weight
                        * match histograms {
                            true => squared_distance(nearest, &leaf.shares),
                            false => f64::from(u8::from(nearest as u32 != leaf.label)),
                        };
                }
                settle(&mut run, &schedule).unwrap();
                let price = 20.0 * excess / mistakes;
                assert!(excess > 0.1, "{excess}");
                assert!(
                    (run.price - price).abs() <= 1e-9 * price,
                    "{} {price} {mistakes}",
                    run.price
                );
                // As with the direct solver: tests get their scale first, then the objective never rises.
                let values: Vec<f64> =
                    run.rounds[1..].iter().map(|round| round.objective.value(price)).collect();
                assert!(values.windows(2).all(|v| v[1] <= v[0] * (1.0 + 1e-12)), "{values:?}");
                assert!(values.len() > 1 && run.rounds.iter().all(|round| round.mu == 7.0));
            }
        });
    }

    /// After a path a round has one pass, and the rounds end where longer ones do. The objective never rises; the
    /// clusters of a tree at rest stay as they are.
    #[test]
    fn the_rounds_after_a_path_have_one_pass_and_end_where_longer_ones_do() {
        with_problem(|problem, start, monitor| {
            for (lambda, histograms) in [(0.3, false), (3.0, false), (20.0, true)] {
                let schedule = Schedule { factor: 1.3, n_steps: 20, histograms };
                let plan = plan(lambda);
                let memories = [0; 3].map(|_| Memory::default());
                let mut runs = memories.each_ref().map(|memory| {
                    let mut run = problem.start(start.clone(), &plan, monitor, memory).unwrap();
                    run.steady = true;
                    run.first(schedule.loss(run.free_labels())).unwrap();
                    run
                });
                let [run, single, longer] = &mut runs;
                assert!(settle(run, &schedule).unwrap());
                let end = run.measure().unwrap().objective.loss;
                let values: Vec<f64> =
                    run.rounds.iter().map(|round| round.objective.value(run.price)).collect();
                assert!(values.windows(2).all(|v| v[1] <= v[0] * (1.0 + 1e-12)), "{values:?}");
                (single.price, longer.price, longer.steady) = (run.price, run.price, false);
                single.center().unwrap();
                single.descend(1).unwrap();
                assert_eq!(run.rounds[..values.len() - 1], single.rounds);
                longer.descend(5).unwrap();
                let theirs = longer.measure().unwrap().objective.loss;
                assert!((end - theirs).abs() <= 1e-3 * theirs, "{end} {theirs}");
                run.descend(1).unwrap();
                let again = run.measure().unwrap().objective.loss;
                assert!((again - end).abs() <= 1e-12 * end, "{again} {end}");
            }
        });
    }

    /// Heavy rows and light ones see the same price of leaving the tree's label: both costs are multiplied by the
    /// weight.
    #[test]
    fn labels_are_the_cheapest_ones_whatever_the_rows_weigh() {
        with_weighted_problem(|problem, weighted, unit, start, monitor| {
            let plan = plan(60.0);
            let memory = Memory::default();
            for histograms in [false, true] {
                let schedule = Schedule { factor: 1.1, n_steps: 1, histograms };
                let mut run = weighted.start(start.clone(), &plan, monitor, &memory).unwrap();
                run.first(schedule.loss(run.free_labels())).unwrap();
                let leaf_of_row =
                    run.tao(schedule.loss(run.free_labels()), 0).leaf_of_row(&run.tree);
                let mut z = problem.labels.to_vec();
                let (mut n_moved, mut n_against) = (0, 0);
                for mu in [0.03, 0.1, 0.3, 1.0, 3.0] {
                    let moved = clustering_step(&mut run, &mut z, &leaf_of_row, mu, histograms);
                    n_moved += usize::from(moved.unwrap());
                    for (row, &label) in z.iter().enumerate() {
                        let DraftNode::Leaf(leaf) = &run.tree.nodes[leaf_of_row[row] as usize]
                        else {
                            unreachable!()
                        };
                        let squares = squares(problem, &run.centers, row);
                        let cost = |label: usize| {
                            let price = match histograms {
                                true => squared_distance(label, &leaf.shares),
                                false => f64::from(u8::from(label as u32 != leaf.label)),
                            };
                            squares[label] / unit + mu * price
                        };
                        let least = (0..K).map(cost).fold(f64::INFINITY, f64::min);
                        assert!(cost(label as usize) <= least + 1e-9, "row {row}");
                        n_against += usize::from(label != leaf.label);
                    }
                }
                assert!(n_moved > 1 && n_against > 10, "{n_moved} {n_against}");
            }
        });
    }
}
