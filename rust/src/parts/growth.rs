//! The tree of a fit without rows: what is known of its nodes, and what must be asked to grow it best first.
//!
//! A node is *filled* (its rows in bins, by column), *judged* (the best score between bins and bounds inside them),
//! *opened* (bins that may hide a better cut are asked for again, in smaller bins, at last by value), and then its best
//! cut is known exactly. Sums are exact, and the criterion reads them as in memory, so scores have the same bits.
//!
//! Best-first growth takes one leaf after the other. A round of questions asks about every leaf that the most favourable
//! continuation could still split: a leaf of which nothing is known saves at most what it costs. Growth is then replayed
//! on what is known (`Growth::replay`), so that which leaf is split, and its number, is as in memory.

use std::collections::BTreeMap;

use super::answer::Bins;
use super::base::GrownBase;
use super::bins::{Run, check_counts, check_totals, of_columns, rest_of};
use super::bytes::{Reader, Writer};
use super::columns::PartColumn;
use super::cuts::{ColumnBound, Cuts, PartCut};
use super::opening::{Range, bins_by_promise, open_ranges};
use super::question::{Open, read_opens, write_opens};
use super::reopening;
use super::routing::{TestNode, tree_of};
use crate::criterion::label_cost::{CutKind, best_label};
use crate::criterion::sums::AdditiveNode;
use crate::error::Result;
use crate::exact::ExactSums;
use crate::grow::{LEAF_TIE, Limits};
use crate::parallel;
use crate::partition::others_go_left;

const KIND: u8 = b'b';

/// What is known of a node.
pub(crate) struct PartNode {
    depth: usize,
    pub n: u64,
    /// Regrets.
    pub totals: ExactSums,
    pub node: AdditiveNode,
    parent: Option<usize>,
    /// Left child; the right one follows it. None: not split.
    pub left: Option<usize>,
    state: State,
    /// By column its rows in bins, until its children are filled: as bytes, a third of the memory. Empty: none.
    bins: Vec<u8>,
    /// What its larger child opens with its fill.
    for_child: Vec<Open>,
}

impl PartNode {
    /// The bins of `d` columns with `k` sums each, if they are held.
    ///
    /// # Errors
    /// [`Error::Value`] if the bytes are no such bins.
    fn bins(&self, d: usize, k: usize) -> Result<Option<Vec<Bins>>> {
        if self.bins.is_empty() {
            return Ok(None);
        }
        let mut reader = Reader::new(&self.bins, KIND, "a checkpoint of a fit")?;
        let bins = (0..d).map(|_| read_bins(&mut reader, k)).collect::<Result<_>>()?;
        reader.end()?;
        Ok(Some(bins))
    }

    /// Notes that there is no cut worth taking.
    fn close(&mut self) {
        (self.bins, self.state) = (vec![], State::Closed);
    }
}

fn pack(columns: &[Bins]) -> Vec<u8> {
    let mut writer = Writer::new(KIND);
    columns.iter().for_each(|bins| bins.write(&mut writer));
    writer.finish()
}

fn read_bins(reader: &mut Reader<'_>, k: usize) -> Result<Bins> {
    let bins = Bins::read(reader)?;
    if bins.width == k && bins.sums.is_some() { Ok(bins) } else { Err(reader.broken()) }
}

/// How much is known of a leaf's best cut.
enum State {
    /// Nothing but that it saves no more than the leaf costs.
    New,
    /// Bounds by column, the bins of opened columns, and the ranges that were opened.
    Judged { columns: Vec<ColumnBound>, opened: BTreeMap<usize, Bins>, ranges: Vec<Open> },
    /// The cut.
    Cut(PartCut),
    /// There is none worth taking, or the leaf may not be split.
    Closed,
}

/// A growing tree.
pub(crate) struct Growth {
    pub nodes: Vec<PartNode>,
    limits: Limits,
    cuts: Cuts,
    k: usize,
    /// Ranges with at most so many rows are opened to values.
    most_values: u64,
    /// Of the first nodes, those of a base tree, if there is one.
    pub base: Option<BaseLeaves>,
}

/// What is told of the nodes of a base tree; entries by node.
pub(crate) struct BaseLeaves {
    /// The only center of each leaf.
    pub center: Vec<Option<usize>>,
    /// [`crate::imm::BaseNodes::mistakes`].
    pub mistakes: Vec<f64>,
}

/// The tree as it is in memory: nodes in order of creation.
pub(crate) struct Replayed {
    /// By node of the tree its place in [`Growth::nodes`].
    pub nodes: Vec<usize>,
    /// By node its left child; 0 at leaves.
    pub left: Vec<usize>,
}

/// What growth asks next.
pub(crate) struct Wanted {
    pub fills: Vec<(usize, bool)>,
    pub opens: Vec<Open>,
}

/// Growth is over, or goes on with questions.
pub(crate) enum Step {
    Done(Replayed),
    Ask(Wanted),
}

impl Growth {
    /// A tree of one leaf, nothing known of it.
    pub fn new(
        columns: &[PartColumn],
        k: usize,
        limits: Limits,
        kind: CutKind,
        most_values: u64,
    ) -> Result<Self> {
        let cuts = Cuts::new(columns, k, limits.min_samples_leaf, kind)?;
        Ok(Growth { nodes: vec![], limits, cuts, k, most_values, base: None })
    }

    /// Begins with a base tree.
    pub fn begin(&mut self, grown: GrownBase) {
        let (tree, totals, k) = (grown.tree, grown.totals, self.k);
        let n = tree.nodes.len();
        let regrets = |id: usize| ExactSums::gather(&[(&totals.regrets, id * k..(id + 1) * k)]);
        let mut sums: Vec<ExactSums> = (0..n).map(regrets).collect();
        let (mut count, mut depth) = (totals.count, vec![0; n]);
        for id in (0..n).rev().filter(|&id| tree.nodes[id].left > 0) {
            let left = tree.nodes[id].left;
            let (own, children) = sums.split_at_mut(left);
            own[id].merge(&children[0]);
            own[id].merge(&children[1]);
            count[id] = count[left] + count[left + 1];
        }
        for (id, sums) in sums.into_iter().enumerate() {
            let TestNode { test, left, missing_left } = tree.nodes[id].clone();
            self.push(None, depth[id], count[id], sums);
            if left == 0 {
                continue;
            }
            (depth[left], depth[left + 1]) = (depth[id] + 1, depth[id] + 1);
            let beside = [totals.beside[0][id], totals.beside[1][id], f64::NAN, f64::NAN];
            let (left_sums, n_left) = (ExactSums::new(k), count[left]);
            let most_left = others_go_left(n_left as usize, count[left + 1] as usize);
            let missing_left = if tree.is_open[id] { most_left } else { missing_left };
            self.nodes[id].left = Some(left);
            self.nodes[id].state = State::Cut(PartCut {
                test,
                missing_left,
                beside,
                score: f64::NAN,
                left: left_sums,
                n_left,
            });
        }
        self.base = Some(BaseLeaves { center: tree.center, mistakes: tree.mistakes });
    }

    /// Number of labels.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The question about the root.
    pub fn first() -> Wanted {
        Wanted { fills: vec![(0, true)], opens: vec![] }
    }

    /// All nodes, for questions.
    pub fn routing(&self) -> Vec<TestNode> {
        if self.nodes.is_empty() {
            return vec![TestNode::leaf()];
        }
        (0..self.nodes.len()).map(|id| self.test_node(id, self.nodes[id].left)).collect()
    }

    /// The nodes of a tree, in its order.
    pub fn nodes_of(&self, tree: &Replayed) -> Vec<TestNode> {
        let left = tree.left.iter().map(|&left| Some(left).filter(|&left| left > 0));
        tree.nodes.iter().zip(left).map(|(&id, left)| self.test_node(id, left)).collect()
    }

    /// A node with its left child; a leaf without one.
    fn test_node(&self, id: usize, left: Option<usize>) -> TestNode {
        match (self.cut(id), left) {
            (Some(cut), Some(left)) => {
                TestNode { test: cut.test.clone(), left, missing_left: cut.missing_left }
            }
            _ => TestNode::leaf(),
        }
    }

    fn push(&mut self, parent: Option<usize>, depth: usize, n: u64, totals: ExactSums) -> usize {
        let node = self.cuts.node(&totals, n);
        let least = 2 * self.limits.min_samples_leaf.max(1) as u64;
        let may_split =
            node.cost > 0.0 && n >= least && self.limits.max_depth.is_none_or(|most| depth < most);
        let state = if may_split { State::New } else { State::Closed };
        self.nodes.push(PartNode {
            depth,
            n,
            totals,
            node,
            parent,
            left: None,
            state,
            bins: vec![],
            for_child: vec![],
        });
        self.nodes.len() - 1
    }

    /// Takes what was answered to the last question.
    ///
    /// # Errors
    /// [`Error::Value`](crate::error::Error::Value) if a bin holds 2^32 rows or more, or rows are not those of before.
    pub fn tell(&mut self, asked: &Wanted, fills: Vec<Vec<Bins>>, opened: Vec<Bins>) -> Result<()> {
        check_counts(fills.iter().flatten().chain(&opened))?;
        fills.iter().try_for_each(|columns| check_totals(columns))?;
        if self.nodes.is_empty() {
            let Some(columns) = fills.into_iter().next() else { return Ok(()) };
            let n = columns[0].count.iter().sum();
            self.push(None, 0, n, columns[0].total());
            self.judge(0, columns);
            return Ok(());
        }
        let mut answered: BTreeMap<usize, Vec<Bins>> =
            asked.fills.iter().map(|fill| fill.0).zip(fills).collect();
        for &(small, with_sums) in &asked.fills {
            if self.nodes[small].parent.is_none() {
                answered.remove(&small).into_iter().for_each(|bins| self.judge(small, bins));
                continue;
            }
            let Some(parent) = self.nodes[small].parent.filter(|_| with_sums) else { continue };
            let Some(left) = self.nodes[parent].left else { continue };
            let of_parent = self.nodes[parent].bins(self.cuts.n_features(), self.k)?;
            let Some(of_parent) = of_parent else { continue };
            (self.nodes[parent].bins, self.nodes[parent].for_child) = (vec![], vec![]);
            let large = left + left + 1 - small;
            let Some(of_small) = answered.remove(&small) else { continue };
            if let Some(counted) = answered.remove(&large) {
                let columns = counted.into_iter().zip(of_parent).zip(&of_small);
                let rest = |((counted, all), less)| rest_of(counted, all, less);
                let of_large = columns.map(rest).collect::<Result<Vec<_>>>()?;
                self.judge(large, of_large);
            }
            if matches!(self.nodes[small].state, State::New) {
                self.judge(small, of_small);
            }
        }
        let mut runs: Vec<_> = of_columns(&asked.opens, opened).collect();
        while let Some((run, _)) = runs.first() {
            let id = run[0].node;
            let rest = runs.partition_point(|(run, _)| run[0].node <= id);
            let of_others = runs.split_off(rest);
            if asked.fills.iter().any(|fill| fill.0 == id) {
                self.keep_of_use(id, &mut runs)?;
            }
            self.replace(id, runs)?;
            runs = of_others;
        }
        Ok(())
    }

    /// Bounds a node's cuts by its rows in bins.
    fn judge(&mut self, id: usize, columns: Vec<Bins>) {
        let totals = columns[0].total();
        let (cuts, node) = (&self.cuts, &mut self.nodes[id]);
        // The cut above may not have told what all labels cost.
        node.node = cuts.node(&totals, node.n);
        node.totals = totals;
        let node = &node.node;
        let bounds = parallel::map(columns.iter().enumerate(), |(feature, bins)| {
            cuts.bound(node, feature, bins).0
        });
        let upper = bounds.iter().map(|column| column.upper).fold(f64::NEG_INFINITY, f64::max);
        let has_cut = upper > cuts.scale(node).floor;
        let node = &mut self.nodes[id];
        (node.bins, node.state) = match has_cut {
            true => {
                let state =
                    State::Judged { columns: bounds, opened: BTreeMap::new(), ranges: vec![] };
                (pack(&columns), state)
            }
            false => (vec![], State::Closed),
        };
    }

    /// Puts smaller bins of some columns of a node in the place of those they are of, and bounds the cuts anew.
    fn replace(&mut self, id: usize, runs: Vec<Run<'_>>) -> Result<()> {
        let filled = self.nodes[id].bins(self.cuts.n_features(), self.k)?;
        let (cuts, PartNode { node, state, .. }) = (&self.cuts, &mut self.nodes[id]);
        let State::Judged { columns, opened, ranges } = state else { return Ok(()) };
        reopening::note(ranges, runs.iter().flat_map(|(run, _)| run.iter().copied()));
        let mut filled = filled.unwrap_or_default();
        let mut own = vec![];
        for (run, smaller) in runs {
            let feature = run[0].feature;
            let filled =
                || Some(std::mem::replace(filled.get_mut(feature)?, Bins::empty(0, false, 0)));
            let Some(bins) = opened.remove(&feature).or_else(filled) else { continue };
            own.push((run, smaller, bins));
        }
        let smaller = parallel::map(own, |(run, smaller, mut bins)| {
            let feature = run[0].feature;
            bins.put(run.into_iter().zip(smaller))?;
            Ok((feature, cuts.bound(node, feature, &bins).0, bins))
        });
        for column in smaller {
            let (feature, bound, bins) = column?;
            columns[feature] = bound;
            opened.insert(feature, bins);
        }
        // What is known closely may hold no cut at all.
        if !self.has_cut(id) {
            self.nodes[id].close();
        }
        Ok(())
    }

    /// Leaves of ranges that were opened with the fill of a node those that hide a cut, with all labels that it may have.
    fn keep_of_use(&self, id: usize, runs: &mut Vec<Run<'_>>) -> Result<()> {
        let filled = self.nodes[id].bins(self.cuts.n_features(), self.k)?;
        let (Some(filled), PartNode { node, state: State::Judged { columns, .. }, .. }) =
            (filled, &self.nodes[id])
        else {
            return Ok(());
        };
        let floor = self.cuts.floor(node, columns);
        for (run, smaller) in &mut *runs {
            let (feature, bins) = (run[0].feature, &filled[run[0].feature]);
            let hiding = self.cuts.hiding(node, feature, bins, floor);
            let own = run.drain(..).zip(smaller.drain(..));
            (*run, *smaller) =
                own.filter(|(open, _)| reopening::is_of_use(open, bins, &hiding)).unzip();
        }
        runs.retain(|(run, _)| !run.is_empty());
        Ok(())
    }

    /// Which bins of a judged node must be opened before its cut is known, with their rows; decides the cut if none.
    fn open(&mut self, id: usize) -> Result<Vec<Range>> {
        let filled = self.nodes[id].bins(self.cuts.n_features(), self.k)?;
        let Some(filled) = filled else { return Ok(vec![]) };
        let PartNode { node, state: State::Judged { columns, opened, .. }, .. } = &self.nodes[id]
        else {
            return Ok(vec![]);
        };
        let floor = self.cuts.floor(node, columns);
        let bins = |feature: usize| opened.get(&feature).unwrap_or(&filled[feature]);
        let (mut wanted, mut promises) = (vec![], vec![]);
        for (feature, column) in columns.iter().enumerate() {
            if column.upper == f64::NEG_INFINITY || column.upper < floor {
                continue;
            }
            let bins = bins(feature);
            for (bin, bound, labels) in self.cuts.hiding(node, feature, bins, floor) {
                let open = Open::to_values(id, feature, bins.low[bin], bins.high[bin]);
                wanted.push((bins.count[bin], Open { labels, ..open }));
                promises.push(bound - floor);
            }
        }
        if !wanted.is_empty() {
            let n_bins = bins_by_promise(&promises, self.nodes[id].n);
            let ranges = wanted.into_iter().zip(n_bins);
            let range = |((n_rows, open), n_bins)| Range { n_rows, n_bins, open };
            return Ok(ranges.map(range).collect());
        }
        let Some(cut) = self.cuts.best(node, columns, bins)? else {
            self.nodes[id].close();
            return Ok(vec![]);
        };
        let node = &mut self.nodes[id];
        if let State::Judged { opened, ranges, .. } = &mut node.state
            && reopening::is_like_parent(cut.n_left, node.n - cut.n_left)
        {
            node.for_child = reopening::for_child(std::mem::take(ranges), opened);
        }
        node.state = State::Cut(cut);
        Ok(vec![])
    }

    /// Makes the children of a node whose cut is known.
    fn split(&mut self, id: usize) {
        let PartNode { depth, n, state: State::Cut(cut), left: None, totals, .. } = &self.nodes[id]
        else {
            return;
        };
        let (depth, n_left, left) = (depth + 1, cut.n_left, cut.left.clone());
        let n_right = n - n_left;
        let mut right = totals.clone();
        right.take_away(&left);
        let first = self.push(Some(id), depth, n_left, left);
        self.push(Some(id), depth, n_right, right);
        self.nodes[id].left = Some(first);
    }

    /// No cut of the leaf scores more.
    fn most(&self, id: usize) -> f64 {
        let node = &self.nodes[id];
        match &node.state {
            State::New => node.node.cost,
            State::Judged { columns, .. } => {
                columns.iter().map(|column| column.upper).fold(f64::NEG_INFINITY, f64::max)
            }
            State::Cut(cut) => cut.score,
            State::Closed => f64::NEG_INFINITY,
        }
    }

    /// Whether a leaf may have a cut worth taking.
    fn has_cut(&self, id: usize) -> bool {
        self.most(id) > self.cuts.scale(&self.nodes[id].node).floor
    }

    fn is_decided(&self, id: usize) -> bool {
        matches!(self.nodes[id].state, State::Cut(_) | State::Closed)
    }

    /// Grows as far as is known, and says what to ask next.
    ///
    /// # Errors
    /// [`Error::Internal`] for a bug.
    pub fn step(&mut self) -> Result<Step> {
        loop {
            let unknown = match self.replay() {
                Ok(replayed) => return Ok(Step::Done(replayed)),
                Err(unknown) => unknown,
            };
            let (mut fills, mut like_parents) = (vec![], vec![]);
            let mut ranges = vec![];
            for &id in &unknown {
                if matches!(self.nodes[id].state, State::New) {
                    self.want_fill(id, &mut fills, &mut like_parents);
                } else {
                    ranges.extend(self.open(id)?);
                }
            }
            // What has been decided on the way may lead further: all that can be asked is asked at once.
            if unknown.iter().any(|&id| self.is_decided(id)) {
                continue;
            }
            if !fills.is_empty() || !ranges.is_empty() {
                let mut opens = open_ranges(ranges, self.most_values);
                opens.extend(like_parents);
                opens.sort_by_key(|open| open.node);
                return Ok(Step::Ask(Wanted { fills, opens }));
            }
        }
    }

    /// The smaller of two siblings is added up, the larger one only counted: its sums are the rest. Both at once, for
    /// then the parent's are let go.
    fn want_fill(&self, id: usize, fills: &mut Vec<(usize, bool)>, opens: &mut Vec<Open>) {
        let Some(parent) = self.nodes[id].parent.map(|parent| &self.nodes[parent]) else {
            return fills.push((id, true)); // a leaf of the base
        };
        let left = parent.left.unwrap_or(id);
        let small = left + usize::from(self.nodes[left + 1].n < self.nodes[left].n);
        let large = left + left + 1 - small;
        if fills.iter().any(|fill| fill.0 == small) {
            return;
        }
        fills.push((small, true));
        if matches!(self.nodes[large].state, State::New) {
            fills.push((large, false));
            let ranges = parent.for_child.iter();
            opens.extend(ranges.map(|open| Open { node: large, ..open.clone() }));
        }
    }

    /// Best-first growth on what is known: the tree, or the leaves of which more must be known.
    fn replay(&mut self) -> std::result::Result<Replayed, Vec<usize>> {
        let n_first = self.base.as_ref().map_or(1, |base| base.center.len());
        let left = |id: usize| self.nodes[id].left.filter(|_| n_first > 1).unwrap_or(0);
        let left: Vec<usize> =
            (0..n_first).map(left).map(|left| if left < n_first { left } else { 0 }).collect();
        let mut tree = Replayed { nodes: (0..n_first).collect(), left };
        // By node of the tree.
        let mut leaves: Vec<usize> = (0..n_first).filter(|&id| tree.left[id] == 0).collect();
        let costs = leaves.iter().map(|&id| self.nodes[id].node.cost);
        let mut cost = costs.fold(0.0, |sum, cost| sum + cost);
        while leaves.len() < self.limits.max_leaves {
            let margin = LEAF_TIE * cost;
            let at = |leaf: &usize| tree.nodes[*leaf];
            let known = leaves.iter().filter(|leaf| self.is_decided(at(leaf)));
            let best = known.map(|leaf| self.most(at(leaf))).fold(f64::NEG_INFINITY, f64::max);
            let hides_better =
                |leaf: &usize| !self.is_decided(at(leaf)) && self.most(at(leaf)) >= best - margin;
            let hiding: Vec<usize> =
                leaves.iter().filter(|leaf| hides_better(leaf)).map(at).collect();
            if !hiding.is_empty() {
                let ids: Vec<usize> = leaves.iter().map(at).collect();
                let mut wanted = self.worth_knowing(ids);
                // Those that are tied with a leaf whose cut is known must be known, too.
                wanted.extend(hiding);
                wanted.sort_unstable();
                wanted.dedup();
                return Err(wanted);
            }
            let tied = leaves.iter().filter(|leaf| self.most(at(leaf)) >= best - margin);
            let Some(&leaf) = tied.min().filter(|_| best > f64::NEG_INFINITY) else { break };
            let id = tree.nodes[leaf];
            self.split(id);
            let Some(left) = self.nodes[id].left else { break };
            // In this order: the tree's cost decides what is tied.
            cost -= self.nodes[id].node.cost;
            cost += self.nodes[left].node.cost;
            cost += self.nodes[left + 1].node.cost;
            let first = tree.nodes.len();
            tree.left[leaf] = first;
            tree.nodes.extend([left, left + 1]);
            tree.left.extend([0, 0]);
            leaves.retain(|&other| other != leaf);
            leaves.extend([first, first + 1]);
        }
        Ok(tree)
    }

    /// Of some leaves and what grows below them, those not known well enough that the most favourable continuation would
    /// split.
    fn worth_knowing(&mut self, mut leaves: Vec<usize>) -> Vec<usize> {
        let mut left_over = self.limits.max_leaves.saturating_sub(leaves.len());
        let mut wanted = vec![];
        while left_over > 0 {
            let score = |&place: &usize| self.most(leaves[place]);
            let by_score = (0..leaves.len()).max_by(|a, b| score(a).total_cmp(&score(b)));
            let Some(place) = by_score.filter(|place| score(place) > f64::NEG_INFINITY) else {
                break;
            };
            let id = leaves.swap_remove(place);
            left_over -= 1;
            if !self.is_decided(id) {
                wanted.push(id);
                continue;
            }
            self.split(id);
            leaves.extend(self.nodes[id].left.into_iter().flat_map(|left| [left, left + 1]));
        }
        wanted.sort_unstable();
        wanted
    }

    /// The cut of a node of the tree that is split.
    pub fn cut(&self, id: usize) -> Option<&PartCut> {
        match &self.nodes[id].state {
            State::Cut(cut) => Some(cut),
            _ => None,
        }
    }

    /// The label of a node as a leaf: the cheapest; of an empty leaf of the base its center's.
    pub fn cluster(&self, id: usize) -> usize {
        let node = &self.nodes[id];
        let of_base = self.base.as_ref().and_then(|base| base.center.get(id).copied().flatten());
        of_base.filter(|_| node.n == 0).unwrap_or_else(|| best_label(&node.node.totals))
    }

    /// The label of a leaf of a tree: where the tree is the base, its center's.
    pub fn leaf_cluster(&self, tree: &Replayed, leaf: usize) -> usize {
        let base = self.base.as_ref().filter(|base| base.center.len() == tree.nodes.len());
        let center = base.and_then(|base| base.center[leaf]);
        center.unwrap_or_else(|| self.cluster(tree.nodes[leaf]))
    }

    /// Appends what is known.
    pub fn write(&self, writer: &mut Writer) {
        let k = self.k;
        writer.len(self.base.as_ref().map_or(0, |base| base.center.len()));
        if let Some(base) = &self.base {
            base.center.iter().for_each(|center| writer.len(center.map_or(0, |c| c + 1)));
            writer.numbers(&base.mistakes);
        }
        writer.len(self.nodes.len());
        for node in &self.nodes {
            writer.len(node.depth);
            writer.u64(node.n);
            writer.sums(&node.totals, 0..k);
            writer.u64(node.parent.map_or(0, |parent| parent as u64 + 1));
            writer.u64(node.left.map_or(0, |left| left as u64));
            writer.bytes(&node.bins);
            write_opens(writer, &node.for_child);
            match &node.state {
                State::New => writer.u8(0),
                State::Judged { opened, ranges, .. } => {
                    writer.u8(1);
                    write_opens(writer, ranges);
                    writer.len(opened.len());
                    for (&feature, bins) in opened {
                        writer.len(feature);
                        bins.write(writer);
                    }
                }
                State::Cut(cut) => {
                    writer.u8(2);
                    cut.write(writer);
                }
                State::Closed => writer.u8(3),
            }
        }
    }

    /// Reads what [`Growth::write`] wrote.
    ///
    /// # Errors
    /// [`Error::Value`] if the bytes are no such tree.
    pub fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let (d, k) = (self.cuts.n_features(), self.k);
        let n_base = reader.len(8)?;
        if n_base > 0 {
            let center = (0..n_base).map(|_| Ok(reader.index()?.checked_sub(1)));
            let center = center.collect::<Result<Vec<_>>>()?;
            if center.iter().flatten().any(|&center| center >= k) {
                return Err(reader.broken());
            }
            self.base = Some(BaseLeaves { center, mistakes: reader.numbers(n_base)? });
        }
        let n_nodes = reader.len(41)?;
        if n_base > n_nodes {
            return Err(reader.broken());
        }
        for id in 0..n_nodes {
            let (depth, n) = (reader.index()?, reader.u64()?);
            let totals = reader.new_sums(k)?;
            let parent = reader.index()?.checked_sub(1);
            let left = Some(reader.index()?).filter(|&left| left > 0);
            let is_sound = |child: usize| child > id && child + 1 < n_nodes;
            let leaves_base = |left: usize| id < n_base && left + 1 == n_base;
            if parent.is_some_and(|parent| parent >= id)
                || !left.is_none_or(|left| is_sound(left) && !leaves_base(left))
            {
                return Err(reader.broken());
            }
            self.push(parent, depth, n, totals);
            self.nodes[id].bins = reader.bytes()?.to_vec();
            self.nodes[id].for_child = read_opens(reader, d, k)?;
            match reader.u8()? {
                0 => {}
                1 => {
                    let columns = self.nodes[id].bins(d, k)?.ok_or_else(|| reader.broken())?;
                    self.judge(id, columns);
                    let opened = read_opens(reader, d, k)?;
                    if let State::Judged { ranges, .. } = &mut self.nodes[id].state {
                        *ranges = opened;
                    }
                    for _ in 0..reader.len(8)? {
                        let feature = reader.index()?;
                        let smaller = read_bins(reader, k)?;
                        self.set_opened(id, feature, smaller).ok_or_else(|| reader.broken())?;
                    }
                }
                2 => self.nodes[id].state = State::Cut(PartCut::read(reader, n, k)?),
                3 => self.nodes[id].state = State::Closed,
                _ => return Err(reader.broken()),
            }
            self.nodes[id].left = left;
            let is_inner = left.is_some_and(|left| left < n_base);
            let is_cut = matches!(self.nodes[id].state, State::Cut(_));
            if is_inner && (left.is_some_and(|left| left + 1 >= n_base) || !is_cut) {
                return Err(reader.broken());
            }
        }
        if n_base > n_nodes {
            return Err(reader.broken());
        }
        tree_of(&self.routing(), d).map_err(|_| reader.broken())?;
        Ok(())
    }

    fn set_opened(&mut self, id: usize, feature: usize, bins: Bins) -> Option<()> {
        let PartNode { node, state: State::Judged { columns, opened, .. }, .. } =
            &mut self.nodes[id]
        else {
            return None;
        };
        let column = columns.get_mut(feature)?;
        *column = self.cuts.bound(node, feature, &bins).0;
        opened.insert(feature, bins);
        Some(())
    }
}
