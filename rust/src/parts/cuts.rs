//! The cuts of a node whose rows are in bins: what they are worth at most, and the best of them.
//!
//! Cuts between bins are compared on exact sums, as in memory. Bounds on the cuts inside bins are never too low, so that
//! the best cut is known once no bin may hide one that is as good. An interval has two ends, and a bin hides those with
//! an end in it, wherever the other one lies.

use std::borrow::Cow;

use super::answer::Bins;
use super::bins::{ends_of, own_groups};
use super::bytes::{Reader, Writer};
use super::columns::PartColumn;
use super::routing::{read_test, write_test};
use super::side_labels::SideLabels;
use crate::criterion::intervals::IntervalCost;
use crate::criterion::label_cost::{CutKind, LabelCost};
use crate::criterion::sums::AdditiveNode;
use crate::criterion::{ColumnForm, Criterion, Cut, CutForm, Groups, NodeScale, OwnGroups};
use crate::error::Result;
use crate::exact::ExactSums;
use crate::grow::{test_of, with_all_sides};
use crate::search::{BestCut, choose_cut};
use crate::tree::Test;

/// What is known of the cuts of a node's column.
#[derive(Clone, Copy)]
pub(super) struct ColumnBound {
    /// The best score of the cuts between bins.
    pub edge: f64,
    /// No cut of the column scores more.
    pub upper: f64,
}

/// The best cut of a node.
#[derive(Clone)]
pub(crate) struct PartCut {
    pub test: Test,
    /// The side of missing cells.
    pub missing_left: bool,
    /// The largest cell below the cut and the least above it, and the same of an interval's lower end; NaN where there
    /// are none.
    pub beside: [f64; 4],
    pub score: f64,
    /// Regrets of the rows on the left, and their number.
    pub left: ExactSums,
    pub n_left: u64,
}

impl PartCut {
    /// Appends the cut.
    pub fn write(&self, writer: &mut Writer) {
        write_test(writer, &self.test);
        writer.u8(self.missing_left.into());
        writer.numbers(&self.beside);
        writer.f64(self.score);
        writer.sums(&self.left, 0..self.left.len());
        writer.u64(self.n_left);
    }

    /// Reads what [`PartCut::write`] wrote, of a node of `n` rows and `k` labels.
    ///
    /// # Errors
    /// [`Error::Value`](crate::error::Error::Value) if the bytes are no such cut.
    pub fn read(reader: &mut Reader<'_>, n: u64, k: usize) -> Result<Self> {
        let (test, missing_left) = (read_test(reader)?, reader.flag()?);
        let beside = [reader.f64()?, reader.f64()?, reader.f64()?, reader.f64()?];
        let (score, left, n_left) = (reader.f64()?, reader.new_sums(k)?, reader.u64()?);
        if test == Test::Leaf || n_left > n {
            return Err(reader.broken());
        }
        Ok(PartCut { test, missing_left, beside, score, left, n_left })
    }
}

/// Scores the cuts of nodes by column.
pub(super) struct Cuts {
    costs: LabelCost<'static>,
    kind: CutKind,
    k: usize,
    /// By column what its bins hold.
    forms: Vec<ColumnForm>,
    /// By column its number of levels; 0 for numbers.
    n_levels: Vec<usize>,
}

impl Cuts {
    /// Cuts of some columns, of `k` labels, that leave at least `min_samples_leaf` rows on either side.
    pub fn new(
        columns: &[PartColumn],
        k: usize,
        min_samples_leaf: usize,
        kind: CutKind,
    ) -> Result<Self> {
        Ok(Cuts {
            costs: LabelCost::new(&[], 0, k, min_samples_leaf)?,
            kind,
            k,
            forms: columns.iter().map(PartColumn::form).collect(),
            n_levels: columns.iter().map(|column| column.n_levels().unwrap_or(0)).collect(),
        })
    }

    /// Number of columns.
    pub fn n_features(&self) -> usize {
        self.forms.len()
    }

    /// The node of `n` rows with these regrets.
    pub fn node(&self, totals: &ExactSums, n: u64) -> AdditiveNode {
        self.costs.node(&totals.all_rounded(), n as usize)
    }

    /// Margins of a node.
    pub fn scale(&self, node: &AdditiveNode) -> NodeScale {
        self.costs.scale(node)
    }

    /// The bounds of a column, and by bin those of the cuts with an end inside it.
    pub fn bound(
        &self,
        node: &AdditiveNode,
        feature: usize,
        bins: &Bins,
    ) -> (ColumnBound, Vec<f64>) {
        self.bound_of(node, self.groups(feature, bins).view(feature))
    }

    /// [`Cuts::bound`] of bins as the criterion reads them.
    fn bound_of(&self, node: &AdditiveNode, groups: Groups<'_>) -> (ColumnBound, Vec<f64>) {
        let mut inside = vec![0.0; groups.len()];
        let edge = match self.kind {
            CutKind::Threshold => self.costs.bounds(node, groups, &mut inside),
            CutKind::Interval => IntervalCost::new(&self.costs).bounds(node, groups, &mut inside),
        };
        let upper = inside.iter().copied().fold(edge, f64::max);
        (ColumnBound { edge, upper }, inside)
    }

    /// The bins of a column that may hide a cut which scores at least `floor`: each with its bound, and the labels that the
    /// sides of such cuts may have, empty for all. What other labels cost inside does not matter: the score of a cut by
    /// the least that they may cost is below `floor`.
    pub fn hiding(
        &self,
        node: &AdditiveNode,
        feature: usize,
        bins: &Bins,
        floor: f64,
    ) -> Vec<(usize, f64, Vec<usize>)> {
        let groups = self.groups(feature, bins);
        let (_, inside) = self.bound_of(node, groups.view(feature));
        let hides = |&bin: &usize| inside[bin] > f64::NEG_INFINITY && inside[bin] >= floor;
        let hiding: Vec<usize> = (0..inside.len()).filter(hides).collect();
        if hiding.is_empty() {
            return vec![];
        }
        let sides = SideLabels::new(node, groups.view(feature), self.kind);
        // Labels of children are chosen with a margin, too.
        let floor = floor - self.scale(node).margin;
        let of_bin = |&bin: &usize| {
            let labels = sides.of_bin(bin, floor);
            (bin, inside[bin], if labels.len() < self.k { labels } else { vec![] })
        };
        hiding.iter().map(of_bin).collect()
    }

    /// Cuts that score less are not the best of the node, nor tied with it.
    pub fn floor(&self, node: &AdditiveNode, columns: &[ColumnBound]) -> f64 {
        let best = columns.iter().map(|column| column.edge).fold(f64::NEG_INFINITY, f64::max);
        best - self.scale(node).margin
    }

    /// The best cut between bins, `bins` by column; none if no cut is worth taking.
    ///
    /// # Errors
    /// [`Error::Internal`](crate::error::Error::Internal) for a bug.
    pub fn best<'b>(
        &self,
        node: &AdditiveNode,
        columns: &[ColumnBound],
        bins: impl Fn(usize) -> &'b Bins,
    ) -> Result<Option<PartCut>> {
        let floor = self.floor(node, columns);
        let (features, scores): (Vec<usize>, Vec<f64>) = (0..columns.len())
            .map(|feature| (feature, columns[feature].edge))
            .filter(|&(_, edge)| edge > f64::NEG_INFINITY && edge >= floor)
            .unzip();
        let groups: Vec<OwnGroups> =
            features.iter().map(|&feature| self.groups(feature, bins(feature))).collect();
        let groups = |i: usize| Cow::Borrowed(&groups[i]);
        let best = match self.kind {
            CutKind::Threshold => choose_cut(&self.costs, node, &features, &scores, 1, groups)?,
            CutKind::Interval => {
                let costs = IntervalCost::new(&self.costs);
                choose_cut(&costs, node, &features, &scores, 1, groups)?
            }
        };
        Ok(best.map(|best| self.part_cut(node, &best, bins(best.feature))))
    }

    /// A column's bins as the criterion reads them: intervals by the sums of each, thresholds by the sums up to each.
    fn groups(&self, feature: usize, bins: &Bins) -> OwnGroups {
        own_groups(bins, self.k, self.forms[feature], self.kind == CutKind::Interval)
    }

    /// A cut between bins and what lies on its left.
    fn part_cut(&self, node: &AdditiveNode, best: &BestCut, bins: &Bins) -> PartCut {
        let (form, k) = (self.forms[best.feature], self.k);
        let is_left = |&bin: &usize| {
            let (low, high) = ends_of(bins, bin, form);
            bins.count[bin] > 0 && best.cut.side(low, high) == Some(true)
        };
        let left_bins: Vec<usize> = (0..bins.count.len()).filter(is_left).collect();
        let mut left = ExactSums::new(k);
        if let Some(sums) = &bins.sums {
            left_bins.iter().for_each(|bin| {
                left.merge(&ExactSums::gather(&[(sums, bin * k..(bin + 1) * k)]));
            });
        }
        let n_left: u64 = left_bins.iter().map(|&bin| bins.count[bin]).sum();
        let n_rows = [n_left as usize, node.n_rows - n_left as usize];
        let cut = with_all_sides(best.cut, n_rows, self.n_levels[best.feature], |code| {
            bins.count.get(code).is_some_and(|&count| count > 0)
        });
        PartCut {
            test: test_of(best.feature, cut),
            missing_left: cut.missing_left == Some(true),
            beside: beside(&cut),
            score: best.score,
            left,
            n_left,
        }
    }
}

/// The values beside a cut: of its upper end, and of its lower one.
fn beside(cut: &Cut) -> [f64; 4] {
    let CutForm::Range { lower, upper } = cut.form else { return [f64::NAN; 4] };
    let [below, above] = lower.map_or([f64::NAN; 2], |gap| [gap.below, gap.above]);
    [upper.below, upper.above, below, above]
}
