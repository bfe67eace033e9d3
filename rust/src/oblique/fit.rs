//! Clustering and tree brought together: min over centers Psi and tree Theta of E(T(X; Theta), Psi) + lambda phi(Theta)
//! (the paper's eq. 4).
//!
//! [`direct`] descends on that objective itself: the cost of a row in a leaf is its distance to the center of the
//! leaf's label, and tree and centers take turns. [`path`] is the paper's way (section 7, figure 2): auxiliary labels Z
//! that follow the tree more and more closely as mu grows. Minimised there is E + mu (P + lambda phi): eq. (8) as
//! printed, with lambda / mu, collapses the tree to one leaf at the small mu of the start.
//!
//! E is in units of the free clustering's mean cost, so that lambda has no unit.

use super::geometry::Geometry;
use super::logistic::Options;
use super::memory::Memory;
use super::tao::{Labels, Loss, Node, Objective, Settings, Splits, Tao, Tree, squared_distance};
use crate::costs::LabelCosts;
use crate::error::{Error, Result};
use crate::parallel::Monitor;

/// Most alternations of assignment and centers in one clustering step.
const CLUSTERING_STEPS: usize = 100;
/// The share of the mismatched rows that may change their label at the first mu.
const FIRST_GAPS: f64 = 0.01;

/// What is to be explained.
#[derive(Debug)]
pub struct Problem<'a, 't> {
    /// The rows, and how far they are from centers.
    pub geometry: &'a Geometry<'a, 't>,
    /// What tests are made of.
    pub splits: Splits<'a, 't>,
    /// Row weights, all positive.
    pub weights: Option<&'a [f64]>,
    /// The free clustering's labels.
    pub labels: &'a [u32],
    /// Its centers, k x d, row-major, in units.
    pub centers: &'a [f64],
}

/// How.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The paper's lambda.
    pub lambda: f64,
    /// Deepest leaf that is made.
    pub max_depth: usize,
    /// Most leaves that are made.
    pub max_leaves: usize,
    /// Whether the first tree's labels are to be kept: its clusters are then where the descent starts, and the direct
    /// solver never makes their cost more. Else the first tree is fitted to the free clustering's labels.
    pub keep_labels: bool,
    /// TAO iterations on the free labels before anything else.
    pub n_first: usize,
    /// TAO iterations between two updates of the centers.
    pub n_passes: usize,
    /// Most rounds.
    pub max_iter: usize,
    /// A round that lowers the objective by a smaller share is the last.
    pub tol: f64,
    /// Sweeps over the weights of a test, once the logistic problems alone make no more progress.
    pub n_sweeps: usize,
    /// Whether to end with a descent on E alone, on the columns that the tests then have.
    pub relax: bool,
    /// Of the logistic problems.
    pub solver: Options,
}

/// The schedule of the path.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// mu grows by this factor.
    pub factor: f64,
    /// Most values of mu.
    pub n_steps: usize,
    /// Whether leaves hold histograms and P is the squared error; else labels and 0/1.
    pub histograms: bool,
}

impl Schedule {
    /// P.
    fn loss<'a>(&self, labels: Labels<'a>) -> Loss<'a> {
        if self.histograms { Loss::Squared(labels) } else { Loss::Labels(labels) }
    }
}

/// What was reached after a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// mu; 0 for the direct fit and with the direct solver. Relaxed, the last one.
    pub mu: f64,
    /// E of the tree's clusters, about the centers of the round (direct, relaxed) or their own (path); and phi.
    pub objective: Objective,
    /// Weight of the rows whose auxiliary label is not the tree's.
    pub mismatch: f64,
    /// Non-zero weights of the tree.
    pub n_weights: usize,
    /// Its leaves.
    pub n_leaves: usize,
}

/// What is known of the nodes of a tree, and of its clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The leaf of each row, as a node id.
    pub leaf_of_row: Vec<u32>,
    /// n_nodes x k: regret of every label over the node's rows.
    pub regrets: Vec<f64>,
    /// Cost of the tree's clusters about their centers.
    pub inertia: f64,
    /// Cost of the free clustering.
    pub free_inertia: f64,
}

/// A fitted tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The tree.
    pub tree: Tree,
    /// The centers of its clusters, in units; an empty cluster keeps its last.
    pub centers: Vec<f64>,
    /// Round by round.
    pub steps: Vec<Step>,
    /// Whether the last round was the last for want of progress, or the last mu larger than all gaps.
    pub converged: bool,
    /// What there is to say of it.
    pub summary: Summary,
}

/// What labels cost, in units of the free clustering's mean cost.
struct Costs {
    regrets: Vec<f64>,
    minimum: f64,
}

/// A tree's leaves and clusters, and what they cost.
struct Settlement {
    leaf_of_row: Vec<u32>,
    labels: Vec<u32>,
    objective: Objective,
}

/// The state of a fit.
struct Run<'a, 'b, 't> {
    problem: &'b Problem<'a, 't>,
    plan: &'b Plan,
    monitor: &'b Monitor,
    memory: &'b Memory,
    k: usize,
    free_inertia: f64,
    /// The free clustering's mean cost.
    unit: f64,
    tree: Tree,
    centers: Vec<f64>,
    steps: Vec<Step>,
    /// Whether only the cost counts and tests keep to their columns.
    relaxed: bool,
    /// As [`Settings::steady`]: along a path the labels hardly differ from one mu to the next, while the direct solver
    /// depends on what its tests are replaced by.
    steady: bool,
}

impl<'b, 't> Run<'_, 'b, 't> {
    fn tao<'c>(&self, loss: Loss<'c>, n_sweeps: usize) -> Tao<'c, 't>
    where
        'b: 'c,
    {
        let Plan { max_depth, max_leaves, solver, .. } = *self.plan;
        let (lambda, keep_columns, steady) = (self.lambda(), self.relaxed, self.steady);
        let settings =
            Settings { lambda, max_depth, max_leaves, n_sweeps, keep_columns, steady, solver };
        let (monitor, memory) = (self.monitor, self.memory);
        Tao { splits: self.problem.splits, loss, settings, monitor, memory }
    }

    fn lambda(&self) -> f64 {
        if self.relaxed { 0.0 } else { self.plan.lambda }
    }

    fn free_labels(&self) -> Labels<'b> {
        Labels { labels: self.problem.labels, weights: self.problem.weights, k: self.k }
    }

    /// The direct fit: TAO on the labels of the free clustering.
    fn first(&mut self, loss: Loss<'_>) -> Result<()> {
        let tao = self.tao(loss, 0);
        tao.rescale(&mut self.tree);
        for _ in 0..self.plan.n_first {
            let mut tree = std::mem::replace(&mut self.tree, Tree::leaf(0));
            let changed = tao.pass(&mut tree)?;
            self.tree = tree;
            if !changed {
                break;
            }
        }
        Ok(())
    }

    fn costs(&self) -> Result<Costs> {
        let LabelCosts { mut regrets, minimum, .. } =
            self.problem.geometry.costs(&self.centers, self.problem.weights)?;
        self.monitor.check()?;
        regrets.iter_mut().for_each(|x| *x /= self.unit);
        Ok(Costs { regrets, minimum: minimum / self.unit })
    }

    fn labels(&self, leaf_of_row: &[u32]) -> Vec<u32> {
        let label = |&id: &u32| match &self.tree.nodes[id as usize] {
            Node::Leaf(leaf) => leaf.label,
            Node::Split { .. } => 0,
        };
        leaf_of_row.iter().map(label).collect()
    }

    /// Gives the clusters of the tree their own centers; the leaves and labels of the rows.
    fn center(&mut self) -> Result<(Vec<u32>, Vec<u32>)> {
        let leaf_of_row = self.tao(Loss::Labels(self.free_labels()), 0).leaf_of_row(&self.tree);
        let labels = self.labels(&leaf_of_row);
        let Problem { geometry, weights, .. } = self.problem;
        self.centers = geometry.centers(&labels, *weights, &self.centers)?;
        Ok((leaf_of_row, labels))
    }

    /// As [`Run::center`], and tells what the clusters then cost.
    fn settle(&mut self) -> Result<Settlement> {
        let (leaf_of_row, labels) = self.center()?;
        let tao = self.tao(Loss::Labels(self.free_labels()), 0);
        let penalty = tao.penalty(&self.tree, 0);
        let own = self.costs()?;
        let regrets = labels.iter().zip(own.regrets.chunks(self.k));
        let loss = own.minimum + regrets.map(|(&label, r)| r[label as usize]).sum::<f64>();
        Ok(Settlement { leaf_of_row, labels, objective: Objective { loss, penalty } })
    }

    fn step(&mut self, mu: f64, objective: Objective, mismatch: f64) {
        let (n_weights, n_leaves) = (self.tree.n_weights(), self.tree.n_leaves());
        let value = |objective: &Objective| objective.value(self.lambda());
        let gain = self.steps.last().map_or(0.0, |step| value(&step.objective) - value(&objective));
        self.monitor.report(n_leaves, gain);
        self.steps.push(Step { mu, objective, mismatch, n_weights, n_leaves });
    }

    /// Tree and centers in turns until E + lambda phi stays; returns whether it does. Relaxed: E alone, on the columns
    /// that the tests have, which undoes what the penalty took from their weights (Meinshausen: Relaxed Lasso, 2007).
    fn descend(&mut self) -> Result<bool> {
        let (mut before, mut n_sweeps) = (f64::INFINITY, 0);
        for round in 0..self.plan.max_iter {
            let costs = self.costs()?;
            let tao = self.tao(Loss::Costs { costs: &costs.regrets, k: self.k }, n_sweeps);
            let mut tree = std::mem::replace(&mut self.tree, Tree::leaf(0));
            if !self.relaxed {
                if round == 0 {
                    tao.rescale(&mut tree);
                }
                tao.grow(&mut tree)?;
            }
            for _ in 0..self.plan.n_passes {
                if !tao.pass(&mut tree)? {
                    break;
                }
            }
            let mut objective = tao.objective(&tree);
            objective.loss += costs.minimum;
            self.tree = tree;
            let mu = self.steps.last().map_or(0.0, |step| step.mu);
            self.step(mu, objective, 0.0);
            self.center()?;
            let value = objective.value(self.lambda());
            if before - value <= self.plan.tol * value {
                if n_sweeps == self.plan.n_sweeps {
                    return Ok(true);
                }
                n_sweeps = self.plan.n_sweeps;
            }
            before = value;
        }
        Ok(false)
    }

    fn finish(mut self, mut converged: bool) -> Result<Fitted> {
        if self.plan.relax {
            (self.relaxed, self.steady) = (true, false);
            converged &= self.descend()?;
        }
        let tao = self.tao(Loss::Labels(self.free_labels()), 0);
        let leaf_of_row = tao.leaf_of_row(&self.tree);
        let costs = self.problem.geometry.costs(&self.centers, self.problem.weights)?;
        let (k, n_nodes) = (self.k, self.tree.nodes.len());
        let mut regrets = vec![0.0; n_nodes * k];
        for (row, &leaf) in costs.regrets.chunks(k).zip(&leaf_of_row) {
            for (sum, x) in regrets[leaf as usize * k..][..k].iter_mut().zip(row) {
                *sum += x;
            }
        }
        let mut inertia = costs.minimum;
        for id in (0..n_nodes).rev() {
            match &self.tree.nodes[id] {
                Node::Leaf(leaf) => inertia += regrets[id * k + leaf.label as usize],
                Node::Split { left, right, .. } => {
                    // Children come after their parent.
                    let (above, below) = regrets.split_at_mut((id + 1) * k);
                    for child in [left, right] {
                        let child = &below[(child - id - 1) * k..][..k];
                        above[id * k..].iter_mut().zip(child).for_each(|(sum, x)| *sum += x);
                    }
                }
            }
        }
        let summary = Summary { leaf_of_row, regrets, inertia, free_inertia: self.free_inertia };
        let Run { tree, centers, steps, .. } = self;
        Ok(Fitted { tree, centers, steps, converged, summary })
    }
}

impl<'a, 't> Problem<'a, 't> {
    fn start<'b>(
        &'b self,
        tree: Tree,
        plan: &'b Plan,
        monitor: &'b Monitor,
        memory: &'b Memory,
    ) -> Result<Run<'a, 'b, 't>> {
        let (n, d) = (self.geometry.rows().n_samples(), self.geometry.rows().n_features());
        let k = self.centers.len() / d.max(1);
        Error::check_len("labels", self.labels.len(), n, "rows")?;
        Error::check_len("centers", self.centers.len(), k * d, "entries")?;
        if let Some(label) = self.labels.iter().find(|&&label| label as usize >= k) {
            return Err(Error::Value(format!("Label {label} is not in the range [0, {k}).")));
        }
        let free = self.geometry.costs(self.centers, self.weights)?;
        let own: f64 = self
            .labels
            .iter()
            .zip(free.regrets.chunks(k))
            .map(|(&label, regrets)| regrets[label as usize])
            .sum();
        let weight: f64 = self.weights.map_or(n as f64, |w| w.iter().sum());
        let free_inertia = free.minimum + own;
        let unit = if free_inertia > 0.0 { free_inertia / weight } else { 1.0 };
        let (tree, centers) = (tree.compact(), self.centers.to_vec());
        Ok(Run {
            problem: self,
            plan,
            monitor,
            memory,
            k,
            free_inertia,
            unit,
            tree,
            centers,
            steps: vec![],
            relaxed: false,
            steady: false,
        })
    }
}

/// Descends on E + lambda phi from a given tree.
///
/// # Errors
/// [`Error::Interrupted`] if the monitor was asked to stop; [`Error::Shape`] or [`Error::Value`] if the free clustering
/// does not fit the rows, or distances overflow.
pub fn direct(
    problem: &Problem<'_, '_>,
    start: Tree,
    plan: &Plan,
    monitor: &Monitor,
) -> Result<Fitted> {
    let memory = Memory::default();
    let mut run = problem.start(start, plan, monitor, &memory)?;
    if plan.keep_labels {
        run.center()?;
    } else {
        run.first(Loss::Labels(run.free_labels()))?;
    }
    let converged = run.descend()?;
    run.finish(converged)
}

/// Follows the path of the paper from a given tree.
///
/// # Errors
/// As [`direct`].
pub fn path(
    problem: &Problem<'_, '_>,
    start: Tree,
    plan: &Plan,
    schedule: &Schedule,
    monitor: &Monitor,
) -> Result<Fitted> {
    let memory = Memory::default();
    let mut run = problem.start(start, plan, monitor, &memory)?;
    run.steady = true;
    let given = if plan.keep_labels {
        let free = run.centers.clone();
        let objective = run.settle()?.objective;
        Some((run.tree.clone(), std::mem::replace(&mut run.centers, free), objective))
    } else {
        None
    };
    run.first(schedule.loss(run.free_labels()))?;
    let mut z = problem.labels.to_vec();
    let (mut mu, mut largest) = (0.0, f64::INFINITY);
    let mut converged = false;
    for t in 0..=schedule.n_steps {
        // The tree as it stands: the direct fit, then after each mu.
        let free = run.centers.clone();
        let Settlement { leaf_of_row, labels, objective } = run.settle()?;
        let weight = |row: usize| problem.weights.map_or(1.0, |w| w[row]);
        let differing = (0..z.len()).filter(|&row| z[row] != labels[row]);
        let mismatch = differing.map(weight).sum::<f64>() + 0.0; // a sum of nothing is -0
        run.step(mu, objective, mismatch);
        // Beyond the largest gap the labels are the tree's.
        converged |= mu > largest;
        if t == schedule.n_steps || converged {
            break; // the centers are those of the tree's clusters
        }
        let of_tree = std::mem::replace(&mut run.centers, free);
        if t == 0 {
            let costs = run.costs()?;
            let mut gaps: Vec<f64> = (0..z.len())
                .filter(|&row| z[row] != labels[row])
                .map(|row| {
                    let regrets = &costs.regrets[row * run.k..][..run.k];
                    (regrets[labels[row] as usize] - regrets[z[row] as usize]) / weight(row)
                })
                .filter(|gap| *gap > 0.0)
                .collect();
            gaps.sort_unstable_by(f64::total_cmp);
            if mismatch == 0.0 {
                // The tree reproduces the free clustering: nothing to bring together.
                (run.centers, converged) = (of_tree, true);
                break;
            }
            // Given labels may all be farther from their centers than the tree's.
            mu = gaps.get((FIRST_GAPS * gaps.len() as f64) as usize).copied().unwrap_or(1.0);
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
        let mut tree = std::mem::replace(&mut run.tree, Tree::leaf(0));
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
    // A tree that was given is never made worse.
    if let (Some((tree, centers, objective)), Some(&last)) = (given, run.steps.last())
        && objective.value(plan.lambda) < last.objective.value(plan.lambda)
    {
        (run.tree, run.centers) = (tree, centers);
        run.step(last.mu, objective, last.mismatch);
    }
    run.finish(converged)
}

/// Labels and centers for a fixed tree: every row goes to the center that is nearest once mu times its distance from
/// the tree's answer is added, and the centers follow, until nothing changes. Returns whether a label changed.
fn clustering_step(
    run: &mut Run<'_, '_, '_>,
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
            Node::Leaf(leaf) if histograms => {
                (0..k).map(|label| mu * squared_distance(label, &leaf.shares)).collect()
            }
            Node::Leaf(leaf) => {
                (0..k).map(|label| if label as u32 == leaf.label { 0.0 } else { mu }).collect()
            }
            Node::Split { .. } => vec![],
        })
        .collect();
    let mut changed = false;
    for _ in 0..CLUSTERING_STEPS {
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
    use crate::costs::Units;
    use crate::oblique::design::Design;
    use crate::oblique::initial::{self, Start};
    use crate::oblique::rows::Rows;
    use crate::table::Table;
    use ndarray::Array2;

    const K: usize = 4;

    fn rows(n: usize) -> (Array2<f64>, Vec<u32>, Vec<f64>) {
        let mut rng = fastrand::Rng::with_seed(5);
        let places = [[0.0, 0.0], [4.0, 1.0], [1.0, 5.0], [5.0, 5.0]];
        let x = Array2::from_shape_fn((n, 2), |(i, j)| {
            places[i % K][j] + 3.0 * (rng.f64() + rng.f64() - 1.0)
        });
        let square = |i: usize, place: &[f64; 2]| {
            (x[[i, 0]] - place[0]).powi(2) + (x[[i, 1]] - place[1]).powi(2)
        };
        let nearest = |i: usize| {
            let squares = places.map(|place| square(i, &place));
            (0..K).min_by(|&a, &b| squares[a].total_cmp(&squares[b])).unwrap() as u32
        };
        let labels = (0..n).map(nearest).collect();
        (x, labels, places.concat())
    }

    fn plan(lambda: f64) -> Plan {
        Plan {
            lambda,
            max_depth: 3,
            max_leaves: usize::MAX,
            keep_labels: false,
            n_first: 5,
            n_passes: 3,
            max_iter: 30,
            tol: 1e-6,
            n_sweeps: 1,
            relax: false,
            solver: Options { tol: 1e-3, max_iter: 100 },
        }
    }

    /// Calls `check` with a problem and a first tree.
    fn with_problem(check: impl Fn(&Problem<'_, '_>, Tree, &Monitor)) {
        let (x, labels, centers) = rows(300);
        let table = Table::from_matrix(x.view()).unwrap();
        let rows = Rows::Table(&table);
        let units = Units { shift: vec![0.0; 2], scale: vec![1.0; 2] };
        let geometry = Geometry::Euclidean { rows, units: &units };
        let design = Design::from_table(&table).unwrap();
        let monitor = Monitor::default();
        let problem = Problem {
            geometry: &geometry,
            splits: Splits::Oblique { rows, design: &design, shares: None },
            weights: None,
            labels: &labels,
            centers: &centers,
        };
        let start = initial::tree(&geometry, None, Start::Bisecting, 3, 0, &monitor).unwrap();
        check(&problem, start, &monitor);
    }

    #[test]
    fn the_direct_objective_never_rises() {
        with_problem(|problem, start, monitor| {
            for lambda in [0.0, 0.3, 3.0] {
                let plan = plan(lambda);
                let fitted = direct(problem, start.clone(), &plan, monitor).unwrap();
                let values: Vec<f64> =
                    fitted.steps.iter().map(|step| step.objective.value(lambda)).collect();
                assert!(values.windows(2).all(|v| v[1] <= v[0] * (1.0 + 1e-12)), "{values:?}");
                // Centers are moved once more after the last round.
                let last = fitted.steps.last().unwrap().objective.loss;
                let summary = &fitted.summary;
                let ratio = summary.inertia / summary.free_inertia * 300.0;
                assert!(ratio <= last * (1.0 + 1e-12), "{ratio} {last}");
            }
        });
    }

    #[test]
    fn relaxing_never_raises_the_cost_and_adds_nothing() {
        with_problem(|problem, start, monitor| {
            let schedule = Schedule { factor: 1.3, n_steps: 200, histograms: false };
            for (lambda, by_path) in [(3.0, false), (30.0, false), (3.0, true), (30.0, true)] {
                let fit = |relax| {
                    let plan = Plan { relax, ..plan(lambda) };
                    match by_path {
                        true => path(problem, start.clone(), &plan, &schedule, monitor).unwrap(),
                        false => direct(problem, start.clone(), &plan, monitor).unwrap(),
                    }
                };
                let (plain, relaxed) = (fit(false), fit(true));
                let (before, after) = relaxed.steps.split_at(plain.steps.len());
                assert_eq!(before, plain.steps);
                let losses: Vec<f64> = after.iter().map(|step| step.objective.loss).collect();
                assert!(!losses.is_empty());
                assert!(losses.windows(2).all(|v| v[1] <= v[0] * (1.0 + 1e-12)), "{losses:?}");
                assert!(relaxed.summary.inertia <= plain.summary.inertia * (1.0 + 1e-12));
                assert!(relaxed.tree.n_weights() <= plain.tree.n_weights());
                assert!(relaxed.tree.n_leaves() <= plain.tree.n_leaves());
            }
        });
    }

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
                    let value = |run: &Run<'_, '_, '_>, z: &[u32]| {
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
            let mu: Vec<f64> = fitted.steps.iter().map(|step| step.mu).collect();
            assert!(mu.is_sorted() && mu[0] == 0.0 && mu.len() > 3, "{mu:?}");
            assert_eq!(fitted.steps.last().unwrap().mismatch.to_bits(), 0f64.to_bits());
        });
    }
}
