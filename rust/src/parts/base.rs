//! The base of a tree (IMM) without rows: what is known of its nodes, and what must be asked to split them to the end.
//!
//! Every node with several centers is *filled* (its rows that are with their center, in bins of each column), bins that may hide a
//! better cut are opened, and then its best cut is known exactly: criterion, exact sums, ties and snapped centers are those of
//! memory ([`crate::imm`]). All nodes go on side by side: a level of the tree takes about two questions.
//!
//! **Gaps.** A cut lies in a gap between rows that are with their center. Where other rows lie in that gap, the cut goes to the
//! widest part between them ([`narrow`]). Ranges of the gap that may hold a wider part than any known one are asked for again, in
//! smaller bins. What is below does not wait for this: the rows that are searched there go the same way wherever in the gap
//! the cut lies.
//!
//! **Open sides.** A cut says where missing cells and levels go that rows with their center have; the others go to the side
//! with more of the node's rows. Where some rows are not with their center, these are asked for, once all cuts above are known.

use std::borrow::Cow;

use super::answer::Bins;
use super::base_ask::{BaseSums, BaseTotals, CenterEnds, SidesAsk};
use super::base_cut::{BaseColumn, BaseCut, Inside, Sides, sides_of};
use super::bins::{check_counts, check_totals, of_columns, own_groups};
use super::bytes::{Reader, Writer};
use super::columns::{PartColumn, numbers_of};
use super::opening::{Range, SMALLER_BINS, open_ranges};
use super::question::Open;
use super::routing::TestNode;
use crate::criterion::centers::{CenterColumns, ColumnEnds, Coordinate, Snap};
use crate::criterion::cut_score::CutScore;
use crate::criterion::mistakes::{Mistakes, MistakesNode};
use crate::criterion::{Criterion, CutForm, LevelShares};
use crate::error::{Error, Result};
use crate::grow::test_of;
use crate::imm::no_cut;
use crate::parallel;
use crate::search::{KEY_TIE, choose_cut};

/// Bins that a gap is cut into: rows in it seldom lie so that more are needed.
const GAP_BINS: usize = 4096;

/// A base tree that grows.
pub(crate) struct BaseGrowth {
    score: CutScore,
    columns: Vec<BaseColumn>,
    /// Ranges with at most so many rows are opened to values.
    most_values: u64,
    gap_bins: usize,
    /// k x d: the centers in the columns' own units, as sums; 0 for levels.
    centers: [Vec<f64>; 2],
    nodes: Vec<BaseNode>,
    /// After the first answer.
    known: Option<Known>,
}

/// What is known of all rows.
struct Known {
    ends: CenterEnds,
    total_weight: f64,
    /// By column the snapped centers, ascending, and half of its range.
    sorted: Vec<Vec<(Coordinate, u32)>>,
    half_range: Vec<f64>,
}

struct BaseNode {
    /// Alive here, ascending.
    centers: Vec<usize>,
    parent: Option<usize>,
    /// Left child, the right one follows.
    left: Option<usize>,
    state: State,
}

enum State {
    /// A leaf of which nothing is known; with one center it stays so.
    New,
    /// By column the rows with their center in bins.
    Filled(Vec<Bins>),
    Cut(BaseCut),
}

/// What a base tree asks next.
#[derive(Default)]
pub(crate) struct BaseWanted {
    pub fills: Vec<usize>,
    pub opens: Vec<Open>,
    pub gaps: Vec<Open>,
    pub sides: Vec<SidesAsk>,
    pub centers: bool,
    pub totals: bool,
}

/// A base tree that is grown: entries by node, in the order in which memory makes them.
pub(crate) struct BaseTree {
    pub nodes: Vec<TestNode>,
    /// Whether missing cells, of which the fit has none in the column, go to the side with more rows.
    pub is_open: Vec<bool>,
    /// The only center of each leaf.
    pub center: Vec<Option<usize>>,
    /// [`crate::imm::BaseNodes::mistakes`].
    pub mistakes: Vec<f64>,
}

impl BaseGrowth {
    /// A tree of one leaf. `centers`: k x the columns' widths, in the columns' own units, as sums. `bins`: most bins of a
    /// column.
    pub fn new(
        score: CutScore,
        centers: [&[f64]; 2],
        columns: &[PartColumn],
        most_values: u64,
        bins: Option<usize>,
    ) -> Self {
        let width: usize = columns.iter().map(PartColumn::width).sum();
        let k = centers[0].len() / width.max(1);
        let mut first = 0;
        let column = |column: &PartColumn| {
            let of_center = |center: usize| &centers[0][center * width + first..][..column.width()];
            let shares = column.n_levels().map(|n_levels| {
                LevelShares::new((0..k).flat_map(of_center).copied().collect(), n_levels)
            });
            first += column.width();
            let n_levels = column.n_levels().unwrap_or(0);
            BaseColumn { form: column.form(), fill: column.fill(), n_levels, shares }
        };
        let of_levels = columns.iter().map(column).collect();
        let centers = centers.map(|points| numbers_of(points, columns));
        let columns: Vec<BaseColumn> = of_levels;
        let root =
            BaseNode { centers: (0..k).collect(), parent: None, left: None, state: State::New };
        let gap_bins = bins.unwrap_or(GAP_BINS).max(2);
        let nodes = vec![root];
        BaseGrowth { score, columns, most_values, gap_bins, centers, nodes, known: None }
    }

    fn n_features(&self) -> usize {
        self.columns.len()
    }

    /// Number of centers.
    fn k(&self) -> usize {
        self.centers[0].len() / self.n_features()
    }

    /// Grows as far as is known, and says what to ask next: at first where the centers lie, in the end the totals.
    ///
    /// # Errors
    /// [`Error::Value`] if no cut tells two centers apart.
    pub fn next(&mut self) -> Result<BaseWanted> {
        let wanted = self.step()?.unwrap_or_else(|| {
            self.put_in_order();
            BaseWanted { totals: true, ..BaseWanted::default() }
        });
        Ok(BaseWanted { centers: self.known.is_none() && !wanted.totals, ..wanted })
    }

    /// The centers, if they are asked about.
    pub fn centers(&self, wanted: &BaseWanted) -> Option<[Vec<f64>; 2]> {
        wanted.centers.then(|| self.centers.clone())
    }

    /// The tree for routing.
    pub fn routing(&self) -> Vec<TestNode> {
        let node = |node: &BaseNode| match (&node.state, node.left) {
            (State::Cut(BaseCut { feature, cut, .. }), Some(left)) => {
                // Cells that count as a value go with it; other ones are of rows that are not searched below.
                let with_value = self.columns[*feature].fill.is_some_and(|x| cut.goes_left(x));
                let missing_left = cut.missing_left.unwrap_or(with_value);
                TestNode { test: test_of(*feature, *cut), left, missing_left }
            }
            _ => TestNode::leaf(),
        };
        self.nodes.iter().map(node).collect()
    }

    /// By center the leaf where it is alive.
    pub fn leaf_of_center(&self) -> Vec<usize> {
        let mut leaf_of_center = vec![0; self.k()];
        for (id, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.left.is_none()) {
            node.centers.iter().for_each(|&center| leaf_of_center[center] = id);
        }
        leaf_of_center
    }

    /// Takes what was answered to the last question.
    ///
    /// # Errors
    /// [`Error::Value`] if a bin holds 2^32 rows or more.
    pub fn tell(&mut self, asked: &BaseWanted, sums: BaseSums) -> Result<()> {
        check_counts(sums.fills.iter().flatten().chain(&sums.opened))?;
        if let Some(ends) = sums.centers {
            let total = sums.fills.first().and_then(|columns| columns[0].sums.as_ref());
            let total = total.map_or(0.0, |sums| {
                let all: Vec<usize> = (0..sums.len()).collect();
                sums.combined(&all, &[])
            });
            self.know(ends, total);
        }
        for (&id, columns) in asked.fills.iter().zip(sums.fills) {
            check_totals(&columns)?;
            self.nodes[id].state = State::Filled(columns);
        }
        for (run, opened) in of_columns(&asked.opens, sums.opened) {
            if let State::Filled(columns) = &mut self.nodes[run[0].node].state {
                columns[run[0].feature].put(run.into_iter().zip(opened))?;
            }
        }
        for gaps in asked.gaps.chunk_by(|a, b| a.node == b.node) {
            let State::Cut(cut) = &mut self.nodes[gaps[0].node].state else { continue };
            if let Inside::Unknown = cut.inside {
                cut.inside = Inside::Ranges(vec![]);
            }
            let Inside::Ranges(ranges) = &mut cut.inside else { continue };
            ranges
                .retain(|range| !gaps.iter().any(|gap| (gap.low, gap.high) == (range.0, range.1)));
        }
        for (gap, bins) in asked.gaps.iter().zip(sums.gaps) {
            let State::Cut(BaseCut { inside: Inside::Ranges(ranges), .. }) =
                &mut self.nodes[gap.node].state
            else {
                continue;
            };
            let filled = (0..bins.count.len()).filter(|&bin| bins.count[bin] > 0);
            ranges.extend(filled.map(|bin| (bins.low[bin], bins.high[bin], bins.count[bin])));
            ranges.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        }
        for (asked, counts) in asked.sides.iter().zip(sums.sides) {
            if let State::Cut(cut) = &mut self.nodes[asked.node].state {
                cut.choose_sides(counts, self.columns[cut.feature].n_levels);
            }
        }
        Ok(())
    }

    /// Snaps the centers.
    fn know(&mut self, ends: CenterEnds, total_weight: f64) {
        let (d, k) = (self.n_features(), ends.n_rows.len());
        let [high, low] = &self.centers;
        let coordinates = |f: usize| {
            let center = |c: usize| Coordinate::of_sum(high[c * d + f], low[c * d + f]);
            (0..k).map(center).collect()
        };
        let original = (0..d).map(coordinates).collect();
        let n_rows = ends.n_rows.iter().map(|&n| u32::try_from(n).unwrap_or(u32::MAX)).collect();
        let shares: Vec<Option<LevelShares>> =
            self.columns.iter().map(|column| column.shares.clone()).collect();
        let snap = Snap::new(EndsOfParts { ends: &ends, d }, n_rows, original, &shares);
        let sorted = parallel::map(0..d, |f| snap.column(f, true));
        let half_range = (0..d).map(|f| snap.half_range(f)).collect();
        self.known = Some(Known { ends, total_weight, sorted, half_range });
    }

    /// [`BaseGrowth::next`]; nothing if the tree is grown.
    fn step(&mut self) -> Result<Option<BaseWanted>> {
        let mut wanted = BaseWanted::default();
        let mut ranges = vec![];
        // Whether all cuts above a node are where they stay, and whether these separate no row from its center.
        let mut above: Vec<(bool, bool)> = vec![];
        let mut id = 0;
        while id < self.nodes.len() {
            if self.nodes[id].centers.len() > 1 && matches!(self.nodes[id].state, State::New) {
                wanted.fills.push(id);
            }
            if matches!(self.nodes[id].state, State::Filled(_)) {
                ranges.extend(self.decide(id)?);
            }
            let (are_settled, are_clean) =
                self.nodes[id].parent.map_or((true, true), |parent| above[parent]);
            let range = self.range_of(id);
            let mut below = (false, false);
            if let State::Cut(cut) = &mut self.nodes[id].state {
                let column = &self.columns[cut.feature];
                if are_clean {
                    cut.inside = Inside::Done;
                    if let Sides::Open { active, .. } = cut.sides {
                        cut.choose_sides(active, column.n_levels);
                    }
                }
                if are_settled {
                    wanted.gaps.extend(cut.settle(id, range, self.gap_bins));
                    wanted.sides.extend(cut.open_sides(id));
                }
                let is_done =
                    matches!(cut.inside, Inside::Done) && matches!(cut.sides, Sides::Done);
                below = (are_settled && is_done, are_clean && cut.separated == 0.0);
            }
            above.push(below);
            id += 1;
        }
        wanted.opens = open_ranges(ranges, self.most_values);
        let is_done = wanted.fills.is_empty()
            && wanted.opens.is_empty()
            && wanted.gaps.is_empty()
            && wanted.sides.is_empty();
        Ok((!is_done).then_some(wanted))
    }

    /// The range of the column that a node's cut is of.
    fn range_of(&self, id: usize) -> f64 {
        match (&self.nodes[id].state, &self.known) {
            (State::Cut(cut), Some(known)) => 2.0 * known.half_range[cut.feature],
            _ => 0.0,
        }
    }

    /// Which bins of a filled node must be opened before its cut is known, with their rows; splits the node if none.
    fn decide(&mut self, id: usize) -> Result<Vec<Range>> {
        let (BaseNode { centers, state: State::Filled(columns), .. }, Some(known)) =
            (&self.nodes[id], &self.known)
        else {
            return Ok(vec![]);
        };
        let n = centers.len();
        let own = NodeCenters::new(known, &self.columns, centers);
        let criterion = Mistakes::of_weight(n, known.total_weight, own, self.score)?;
        let sums = columns[0].sums.as_ref();
        let total = |center: usize| {
            let places: Vec<usize> =
                (0..columns[0].count.len()).map(|bin| bin * n + center).collect();
            sums.map_or(0.0, |sums| sums.combined(&places, &[]))
        };
        let node = MistakesNode { totals: (0..n).map(total).collect(), alive: vec![true; n] };
        let scale = criterion.scale(&node);
        let found = parallel::map(columns.iter().enumerate(), |(feature, bins)| {
            // Mistakes read the sums of the bins themselves, too.
            let groups = own_groups(bins, n, self.columns[feature].form, true);
            let mut inside = vec![0.0; bins.count.len()];
            let edge = criterion.bounds(&node, groups.view(feature), &mut inside);
            (groups, edge, inside)
        });
        let best = found.iter().map(|found| found.1).fold(f64::NEG_INFINITY, f64::max);
        let floor = best - scale.margin;
        let near: Vec<usize> = (0..found.len())
            .filter(|&f| found[f].1 > f64::NEG_INFINITY && found[f].1 >= floor)
            .collect();
        let keys = near.iter().map(|&f| criterion.best_key(&node, found[f].0.view(f), floor));
        let key = keys.fold(f64::NEG_INFINITY, f64::max);
        let mut wanted = vec![];
        for (feature, (bins, (_, _, inside))) in columns.iter().zip(&found).enumerate() {
            for (bin, &bound) in inside.iter().enumerate() {
                // Bounds are of rounded sums.
                let bound = bound + 2.0 * scale.own_slack;
                let (low, high) = (bins.low[bin], bins.high[bin]);
                let may_hide = bound > f64::NEG_INFINITY
                    && bound >= floor
                    && (bound > best + scale.margin
                        || criterion.inside_key(feature, low, high) >= key - KEY_TIE);
                if may_hide {
                    let open = Open::to_values(id, feature, low, high);
                    wanted.push(Range { n_rows: bins.count[bin], n_bins: SMALLER_BINS, open });
                }
            }
        }
        if !wanted.is_empty() {
            return Ok(wanted);
        }
        let scores: Vec<f64> = near.iter().map(|&f| found[f].1).collect();
        let groups = |i: usize| Cow::Borrowed(&found[near[i]].0);
        let Some(best) = choose_cut(&criterion, &node, &near, &scores, 1, groups)? else {
            return Err(no_cut(centers));
        };
        let Some(centers_of_cut) = best.cut.centers else {
            return Err(Error::Internal("a cut of another form.".into()));
        };
        let sides = criterion.columns().split(&node.alive, best.feature, centers_of_cut);
        let of_side = |side: &[bool]| -> Vec<usize> {
            centers.iter().zip(side).filter(|(_, goes)| **goes).map(|(&center, _)| center).collect()
        };
        let sides = [of_side(&sides.0), of_side(&sides.1)];
        let cut = BaseCut {
            feature: best.feature,
            cut: best.cut,
            sides: sides_of(&best.cut, &columns[best.feature], &self.columns[best.feature]),
            mistakes: criterion.count(best.score, centers_of_cut),
            separated: centers_of_cut.mistakes,
            inside: match best.cut.form {
                CutForm::Range { .. } => Inside::Unknown,
                _ => Inside::Done,
            },
        };
        let left = self.nodes.len();
        self.nodes[id].state = State::Cut(cut);
        self.nodes[id].left = Some(left);
        for centers in sides {
            self.nodes.push(BaseNode { centers, parent: Some(id), left: None, state: State::New });
        }
        Ok(vec![])
    }

    /// Puts the nodes of a grown tree into the order of memory: that in which they are split, level by level.
    fn put_in_order(&mut self) {
        let mut order = vec![0];
        let mut next = 0;
        while next < order.len() {
            order
                .extend(self.nodes[order[next]].left.into_iter().flat_map(|left| [left, left + 1]));
            next += 1;
        }
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
        let mut nodes: Vec<Option<BaseNode>> = self.nodes.drain(..).map(Some).collect();
        for old in order {
            if let Some(mut node) = nodes[old].take() {
                node.parent = node.parent.map(|parent| place[parent]);
                node.left = node.left.map(|left| place[left]);
                self.nodes.push(node);
            }
        }
    }

    /// The grown tree.
    pub fn tree(&self) -> BaseTree {
        let mistakes = |node: &BaseNode| match &node.state {
            State::Cut(cut) => cut.mistakes,
            _ => f64::NAN,
        };
        let center =
            |node: &BaseNode| node.centers.first().copied().filter(|_| node.left.is_none());
        let is_open = |node: &BaseNode| match &node.state {
            State::Cut(BaseCut { cut, .. }) => cut.missing_left.is_none(),
            _ => true,
        };
        BaseTree {
            nodes: self.routing(),
            is_open: self.nodes.iter().map(is_open).collect(),
            center: self.nodes.iter().map(center).collect(),
            mistakes: self.nodes.iter().map(mistakes).collect(),
        }
    }

    /// Appends what is known.
    pub fn write(&self, writer: &mut Writer) {
        writer.u8(self.known.is_some().into());
        if let Some(known) = &self.known {
            known.ends.write(writer);
            writer.f64(known.total_weight);
        }
        writer.len(self.nodes.len());
        for node in &self.nodes {
            writer.len(node.centers.len());
            node.centers.iter().for_each(|&center| writer.len(center));
            writer.len(node.parent.map_or(0, |parent| parent + 1));
            writer.len(node.left.unwrap_or(0));
            match &node.state {
                State::New => writer.u8(0),
                State::Filled(columns) => {
                    writer.u8(1);
                    columns.iter().for_each(|bins| bins.write(writer));
                }
                State::Cut(cut) => {
                    writer.u8(2);
                    cut.write(writer);
                }
            }
        }
    }

    /// Reads what [`BaseGrowth::write`] wrote.
    ///
    /// # Errors
    /// [`Error::Value`] if the bytes are no such tree.
    pub fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let (d, k) = (self.n_features(), self.k());
        if reader.flag()? {
            let (ends, total_weight) = (CenterEnds::read(reader)?, reader.f64()?);
            if ends.n_rows.len() != k || !ends.has(k * d) {
                return Err(reader.broken());
            }
            self.know(ends, total_weight);
        }
        let n_nodes = reader.len(25)?;
        self.nodes = vec![];
        for id in 0..n_nodes {
            let n = reader.len(8)?;
            let centers = (0..n).map(|_| reader.index()).collect::<Result<Vec<_>>>()?;
            let parent = reader.index()?.checked_sub(1);
            let left = Some(reader.index()?).filter(|&left| left > 0);
            let state = match reader.u8()? {
                0 => State::New,
                1 => {
                    let columns = (0..d).map(|_| Bins::read(reader)).collect::<Result<Vec<_>>>()?;
                    if columns.iter().any(|bins| bins.width != n || bins.sums.is_none()) {
                        return Err(reader.broken());
                    }
                    State::Filled(columns)
                }
                2 => State::Cut(BaseCut::read(reader, &self.columns)?),
                _ => return Err(reader.broken()),
            };
            let is_cut = matches!(state, State::Cut(_));
            let is_sound = centers.is_sorted_by(|a, b| a < b)
                && centers.last().is_some_and(|&last| last < k)
                && parent.is_none_or(|parent| parent < id)
                && parent.is_none() == (id == 0)
                && left.is_none_or(|left| left > id && left + 1 < n_nodes)
                && left.is_some() == is_cut
                && (self.known.is_some() || n_nodes == 1);
            if !is_sound {
                return Err(reader.broken());
            }
            self.nodes.push(BaseNode { centers, parent, left, state });
        }
        if n_nodes == 0 { Err(reader.broken()) } else { Ok(()) }
    }
}

/// Where centers and rows lie along the columns, by what parts have answered.
struct EndsOfParts<'a> {
    ends: &'a CenterEnds,
    d: usize,
}

impl ColumnEnds for EndsOfParts<'_> {
    fn half_range(&self, feature: usize) -> f64 {
        let ends = self.cluster_ends(feature);
        let low = ends.iter().map(|ends| ends.0).fold(f64::INFINITY, f64::min);
        let high = ends.iter().map(|ends| ends.1).fold(f64::NEG_INFINITY, f64::max);
        if low <= high { high / 2.0 - low / 2.0 } else { 0.0 }
    }

    /// The nearest value of each center: a center is snapped to no other.
    fn values_near(
        &self,
        feature: usize,
        reach: f64,
        centers: &[Coordinate],
        _: bool,
    ) -> Vec<Vec<f64>> {
        let nearest = |label: usize| self.ends.nearest[label * self.d + feature];
        let near = |(label, center): (usize, &Coordinate)| {
            let x = nearest(label);
            if (x - center.nearest()).abs() <= reach { vec![x] } else { vec![] }
        };
        centers.iter().enumerate().map(near).collect()
    }

    fn cluster_ends(&self, feature: usize) -> Vec<(f64, f64)> {
        let place = |label: usize| label * self.d + feature;
        let ends = |label: usize| (self.ends.low[place(label)], self.ends.high[place(label)]);
        (0..self.ends.n_rows.len()).map(ends).collect()
    }
}

/// The centers of a node, numbered anew.
struct NodeCenters<'a> {
    known: &'a Known,
    sorted: Vec<Vec<(Coordinate, u32)>>,
    shares: Vec<Option<LevelShares>>,
}

impl<'a> NodeCenters<'a> {
    fn new(known: &'a Known, columns: &[BaseColumn], centers: &[usize]) -> Self {
        let of_column = |sorted: &Vec<(Coordinate, u32)>| {
            let own = sorted.iter().filter_map(|&(x, center)| {
                centers.binary_search(&(center as usize)).ok().map(|place| (x, place as u32))
            });
            own.collect()
        };
        let shares =
            |column: &BaseColumn| column.shares.as_ref().map(|shares| shares.of_centers(centers));
        NodeCenters {
            known,
            sorted: known.sorted.iter().map(of_column).collect(),
            shares: columns.iter().map(shares).collect(),
        }
    }
}

impl CenterColumns for NodeCenters<'_> {
    fn sorted(&self, feature: usize) -> Cow<'_, [(Coordinate, u32)]> {
        Cow::Borrowed(&self.sorted[feature])
    }

    fn half_range(&self, feature: usize) -> f64 {
        self.known.half_range[feature]
    }

    fn level_shares(&self, feature: usize) -> Option<&LevelShares> {
        self.shares[feature].as_ref()
    }
}

/// What a base tree leaves to growth and to the result; entries by node.
pub(crate) struct GrownBase {
    pub tree: BaseTree,
    pub totals: BaseTotals,
}
