//! The search: starts are refined, then batches of random changes compete.
//!
//! The best starts go on, in stages of equal work: all of them, then the better half, and so on to the last one, which
//! may take subtrees of the others.
//!
//! All candidates of a batch change the same tree, each with random numbers of its own, seeded by the round and the
//! place in the batch; the lowest value wins, of equal ones the first, and the others are dropped. So the result is the
//! same for every number of threads. Where none is better, the search may take one that is a little worse than the best
//! tree so far (record-to-record travel: Dueck, J. Comput. Phys. 1993), the less the nearer the end of the stage, and
//! returns to that tree after a number of rounds in vain; what is reported never rises. Where the aim is known, a rise is
//! small beside what the best tree so far has above it: of a tree that costs 1.0005 of its reference, three more parts in
//! a thousand would undo all that was found. A start's stage ends when a number of rounds in a row were in vain, or its
//! share of the work is done, counted in cells looked at. A time limit is the one thing that may make two runs differ.
//! Progress is the number of rounds and the lowest value so far.

use std::time::{Duration, Instant};

use fastrand::Rng;

use super::moves::{Candidate, Move};
use super::objective::Objective;
use super::ranks::Ranks;
use super::regrow::Cuts;
use super::segments::Segments;
use super::start::{check_rows, finished, thresholds};
use super::state::{State, Task};
use super::sweep::Work;
use crate::error::{Error, Result};
use crate::grow::Limits;
use crate::oblique::draft::DraftTree;
use crate::parallel::{self, Monitor};
use crate::rows::Rows;

/// A value lower by less than this share is not lower.
const TIE: f64 = 1e-10;
/// Most passes of refinement over a whole tree.
const MAX_PASSES: usize = 100;
/// Rounds in vain after which the search returns to the best tree so far.
const ROUNDS_TO_RETURN: usize = 48;
/// Starts from random rows between two looks at the work that is done, of which they may do one part in so many.
const RESTARTS_AT_ONCE: usize = 8;
const RESTARTS_SHARE: u64 = 10;
/// Most passes of refinement over a start, before it is known which go on.
const START_PASSES: usize = 3;
/// How much of what the best has above the aim the value may rise.
const DRIFT_OF_EXCESS: f64 = 0.1;

/// How long and how widely to search.
#[derive(Debug, Clone, Copy)]
pub struct SearchSettings {
    /// Limits of the tree.
    pub limits: Limits,
    /// Most starts beside the given ones: three grown about random rows as centers, then one, each cut from a random half of
    /// the columns, about the centers of the best given one.
    pub n_restarts: usize,
    /// How many of the refined starts go on to the first stage.
    pub n_survivors: usize,
    /// Candidates of a round.
    pub batch: usize,
    /// How far the value may rise above the best so far on the way, as a share of it, when a stage begins; 0: it never
    /// rises.
    pub drift: f64,
    /// What the value may come down to at best, as the cost of the clusters that the tree explains: it never rises by more
    /// than a tenth of what the best so far has above this. Not read where it is more than the best.
    pub aim: Option<f64>,
    /// A change refines the nodes above it that have at most so many times its rows; infinite: all.
    pub reach: f64,
    /// Rounds in vain after a change until the whole tree is refined.
    pub rounds_to_refine: usize,
    /// Rounds in a row without a lower value after which a start's stage ends.
    pub patience: usize,
    /// Cells after which no round begins, those of the starts included.
    pub max_work: u64,
    /// Most time of the whole search; none: no limit.
    pub max_time: Option<Duration>,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// A step that made the tree better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Rounds of the search until then, over all starts.
    pub round: usize,
    /// What made it.
    pub kind: Move,
    /// The value afterwards.
    pub objective: f64,
    /// The number of leaves afterwards.
    pub n_leaves: usize,
}

/// The tree that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundTree {
    /// The tree, nodes level by level.
    pub tree: DraftTree,
    /// The value, of sums that were added up anew from the rows.
    pub objective: f64,
    /// The best value so far whenever it fell; never rising.
    pub path: Vec<Step>,
    /// The start that the tree comes from; numbers from that of given starts on are restarts, three about random rows,
    /// then one with sampled columns, and so on.
    pub start: usize,
    /// The value of each start within the limits.
    pub start_objectives: Vec<f64>,
    /// The value of each start refined.
    pub refined_objectives: Vec<f64>,
    /// Rounds of all starts.
    pub n_rounds: usize,
    /// Whether a column holds levels or missing cells, so that the tree says where missing cells go.
    pub is_mixed: bool,
}

/// Searches for the best tree from given ones.
///
/// # Errors
/// [`Error::Value`] if there is no start, row or column, or fewer leaves than one are allowed; [`Error::Shape`] if
/// sizes disagree; [`Error::Tree`] if a start does not fit; [`Error::Interrupted`] if the monitor was asked to stop.
pub fn search<'r, 't: 'r>(
    rows: impl Into<Rows<'r, 't>>,
    objective: &dyn Objective,
    starts: &[DraftTree],
    settings: &SearchSettings,
    monitor: &Monitor,
) -> Result<FoundTree> {
    let began = Instant::now();
    let rows = rows.into();
    let ranks = Ranks::new(rows, &thresholds(starts), monitor)?;
    check_rows(&ranks, objective.n_samples())?;
    let limits = settings.limits;
    if starts.is_empty() || objective.n_samples() == 0 || limits.max_leaves == 0 {
        return Err(Error::Value("A search needs a start, a row and a leaf.".into()));
    }
    let work = Work::new(monitor);
    let task =
        Task { ranks: &ranks, objective, limits, reach: settings.reach, monitor, work: &work };
    let trees = starts.iter().map(|tree| task.start(tree)).collect::<Result<Vec<_>>>()?;
    let mut starts = refined(&task, trees);
    monitor.check()?;
    let by_value = |a: &Start, b: &Start| a.value.total_cmp(&b.value);
    let best = starts.iter().min_by(|a, b| by_value(a, b)).map(|best| best.tree.clone());
    let guide = best.filter(|_| settings.n_restarts > 0).map(|tree| task.state(tree).costs);
    for first in (0..settings.n_restarts).step_by(RESTARTS_AT_ONCE) {
        if work.done() > settings.max_work / RESTARTS_SHARE {
            break;
        }
        let end = settings.n_restarts.min(first + RESTARTS_AT_ONCE);
        let trees = parallel::map(first..end, |i| {
            let mut rng = Rng::with_seed(mix(mix(0, settings.seed), i as u64));
            match &guide {
                Some(costs) if i % 4 == 3 => task.grown(costs, &Cuts::Sampled(rng)),
                _ => task.random_rows(&mut rng),
            }
        });
        starts.extend(refined(&task, trees));
        monitor.check()?;
    }
    drop(guide);
    let start_objectives = starts.iter().map(|start| start.before).collect::<Vec<_>>();
    let refined_objectives = starts.iter().map(|start| start.value).collect::<Vec<_>>();
    let mut order: Vec<usize> = (0..starts.len()).collect();
    order.sort_by(|&a, &b| refined_objectives[a].total_cmp(&refined_objectives[b]));
    // Of starts that have become the same tree, the first goes on.
    order.dedup_by(|a, b| refined_objectives[*a] <= refined_objectives[*b] * (1.0 + TIE));
    order.truncate(settings.n_survivors.max(1));
    let first = start_objectives.iter().copied().fold(f64::INFINITY, f64::min);
    let n_leaves = starts[order[0]].tree.n_leaves();
    let mut path = vec![Step { round: 0, kind: Move::Start, objective: first, n_leaves }];
    let mut run = Run { task: &task, settings, began, path: &mut path, n_rounds: 0 };
    run.record(Move::Refine, refined_objectives[order[0]], n_leaves);
    let start = run.stages(&mut starts, order)?;
    let n_rounds = run.n_rounds;
    let empty = Segments { nodes: vec![], rows: vec![] };
    let state = task.state(std::mem::replace(&mut starts[start].tree, empty));
    let tree = finished(&state.tree, rows);
    Ok(FoundTree {
        tree,
        objective: state.value,
        path,
        start,
        start_objectives,
        refined_objectives,
        n_rounds,
        is_mixed: ranks.is_mixed(),
    })
}

/// A refined start.
struct Start {
    /// Without the sums of its leaves, which may be as large as the table.
    tree: Segments,
    /// The value before it was refined.
    before: f64,
    value: f64,
}

/// Refines starts.
fn refined(task: &Task<'_>, trees: Vec<Segments>) -> Vec<Start> {
    parallel::map(trees, |tree| {
        let mut state = task.state(tree);
        let before = state.value;
        task.polish(&mut state, None, START_PASSES);
        let State { mut tree, value, .. } = state;
        tree.forget_sums();
        Start { tree, before, value }
    })
}

/// A search on its way.
struct Run<'r, 'a> {
    task: &'r Task<'a>,
    settings: &'r SearchSettings,
    began: Instant,
    path: &'r mut Vec<Step>,
    n_rounds: usize,
}

impl Run<'_, '_> {
    /// Improves starts, half of them in each stage, the best of the last; returns the one that is left.
    fn stages(&mut self, starts: &mut [Start], survivors: Vec<usize>) -> Result<usize> {
        let n_stages = survivors.len().ilog2() + 1;
        let mut alive = survivors.clone();
        for stage in 0..n_stages {
            let from = self.spent();
            let share = (1.0 - from).max(0.0) / (alive.len() as f64 * f64::from(n_stages - stage));
            for (i, &start) in alive.iter().enumerate() {
                let empty = Segments { nodes: vec![], rows: vec![] };
                let mut state = self.task.state(std::mem::replace(&mut starts[start].tree, empty));
                let is_other = |&&other: &&usize| stage > 0 && other != start;
                let others = survivors.iter().filter(is_other).map(|&other| &starts[other].tree);
                let others: Vec<&Segments> = others.collect();
                let seed = mix(mix(mix(0, self.settings.seed), start as u64), stage.into());
                self.improve(&mut state, &others, seed, from + share * (i + 1) as f64)?;
                state.tree.forget_sums();
                (starts[start].tree, starts[start].value) = (state.tree, state.value);
            }
            alive.sort_by(|&a, &b| starts[a].value.total_cmp(&starts[b].value));
            alive.dedup_by(|a, b| starts[*a].value <= starts[*b].value * (1.0 + TIE));
            alive.truncate((alive.len() / 2).max(1));
        }
        Ok(alive[0])
    }

    /// The share of the work, or of the time if that is more, that is spent; from 1 on the search ends.
    fn spent(&self) -> f64 {
        let work = self.task.work.done() as f64 / self.settings.max_work.max(1) as f64;
        let time = self.settings.max_time.map(|most| most.as_secs_f64());
        time.map_or(work, |most| work.max(self.began.elapsed().as_secs_f64() / most))
    }

    /// Rounds from one tree until too many were in vain or so much is spent; the best tree on the way is what remains.
    fn improve(
        &mut self,
        state: &mut State,
        others: &[&Segments],
        seed: u64,
        until: f64,
    ) -> Result<()> {
        let SearchSettings { batch, patience, rounds_to_refine, .. } = *self.settings;
        let (mut in_vain, mut is_refined, mut round) = (0, true, 0);
        self.task.polish(state, None, MAX_PASSES);
        self.record(Move::Refine, state.value, state.tree.n_leaves());
        let mut best = (state.tree.clone(), state.value);
        let from = self.spent();
        while in_vain < patience {
            self.task.monitor.check()?;
            let spent = self.spent();
            if spent >= until {
                break;
            }
            let (task, shared) = (self.task, &*state);
            let candidates = parallel::map(0..batch.max(1), |place| {
                let seed = mix(mix(seed, round), place as u64);
                task.propose(shared, others, &mut Rng::with_seed(seed))
            });
            round += 1;
            self.n_rounds += 1;
            let lowest = self.path.last().map_or(best.1, |last| last.objective);
            self.task.monitor.report(self.n_rounds, lowest);
            in_vain += 1;
            let mut kind = Move::Refine;
            let passed = ((spent - from) / (until - from)).max(in_vain as f64 / patience as f64);
            let rise = self.drift(best.1) * (1.0 - passed).powi(2);
            if let Some(chosen) = choose(candidates, state.value, best.1, rise) {
                let at = chosen.patches.last().map(|patch| patch.0);
                kind = chosen.kind;
                self.task.apply(state, chosen.patches);
                self.task.polish(state, at, 1);
                is_refined = false;
            } else if !is_refined && in_vain >= rounds_to_refine {
                self.task.polish(state, None, MAX_PASSES);
                is_refined = true;
            }
            if state.value < best.1 * (1.0 - TIE) {
                best = (state.tree.clone(), state.value);
                in_vain = 0;
                self.record(kind, state.value, state.tree.n_leaves());
            } else if in_vain % ROUNDS_TO_RETURN == 0 && state.value > best.1 {
                self.task.restore(state, best.clone());
                is_refined = false;
            }
        }
        if state.value > best.1 {
            self.task.restore(state, best);
        }
        self.task.polish(state, None, MAX_PASSES);
        self.record(Move::Refine, state.value, state.tree.n_leaves());
        self.task.monitor.check()
    }

    /// How far the value may rise above the best so far at first, as a share of it.
    fn drift(&self, best: f64) -> f64 {
        let SearchSettings { drift, aim, .. } = *self.settings;
        let excess = aim.map(|aim| 1.0 - aim / best).filter(|&excess| excess > 0.0);
        excess.map_or(drift, |excess| drift.min(DRIFT_OF_EXCESS * excess))
    }

    /// Notes a step if it is the best so far.
    fn record(&mut self, kind: Move, objective: f64, n_leaves: usize) {
        if self.path.last().is_none_or(|last| objective < last.objective) {
            self.path.push(Step { round: self.n_rounds, kind, objective, n_leaves });
        }
    }
}

/// The candidate of the lowest value, the first of equal ones, if it is below the value `now`; else the first that
/// differs from it and is above the `best` value so far by no more than the share `drift`.
fn choose(
    candidates: Vec<Option<Candidate>>,
    now: f64,
    best: f64,
    drift: f64,
) -> Option<Candidate> {
    let candidates: Vec<Candidate> = candidates.into_iter().flatten().collect();
    let lower = candidates.iter().map(|candidate| candidate.value).fold(f64::INFINITY, f64::min);
    let is_chosen = |candidate: &Candidate| match lower < now * (1.0 - TIE) {
        true => candidate.value <= lower,
        false => {
            let differs = (candidate.value - now).abs() > TIE * now;
            differs && candidate.value <= best * (1.0 + drift)
        }
    };
    candidates.into_iter().find(is_chosen)
}

/// A number into which another is mixed (splitmix64).
fn mix(state: u64, with: u64) -> u64 {
    let mut z = (state ^ with).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
