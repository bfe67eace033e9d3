//! Which labels the sides of the cuts may have that a bin hides.
//!
//! A side costs what its cheapest label does, and a label costs a side at least what it costs the rows outside the bins
//! in which the cut has its ends. Where even with the least for the other side the cut would save too little, no side has
//! the label: what it costs inside the bin need not be known.

use std::ops::Range;

use crate::criterion::Groups;
use crate::criterion::label_cost::CutKind;
use crate::criterion::sums::AdditiveNode;

/// Sums are counted in so many parts of the largest. Differences of such counts have no rounding: a label that no side
/// has of the cuts in a bin has none in a smaller bin either.
const UNITS: f64 = (1u64 << 50) as f64;
/// What the sums of some ranges are off by, in units.
const ROUNDING: f64 = 4.0;

/// What labels cost the rows in bins of a column of numbers.
pub(super) struct SideLabels {
    k: usize,
    /// Number of bins of values.
    n: usize,
    /// By label what a unit is.
    units: Vec<f64>,
    /// What the rows before each bin cost each label, and in the end all of them, in whole units.
    before: Vec<f64>,
    /// The same of the rows with a missing cell.
    missing: Vec<f64>,
    cost_of_node: f64,
    kind: CutKind,
}

/// The rows on each side of a cut, as ranges of bins, without the bins that it has its ends in.
type Sides = [[Range<usize>; 2]; 2];

impl SideLabels {
    /// `groups`: the bins, with exact sums.
    pub fn new(node: &AdditiveNode, groups: Groups<'_>, kind: CutKind) -> Self {
        let k = node.totals.len();
        let (values, missing) = groups.split_missing(k);
        let n = values.len();
        let sum = |place| values.exact.map_or(0.0, |exact| exact.rounded(place));
        let units: Vec<f64> = (0..k).map(|label| sum(n * k + label) / UNITS).collect();
        let in_units = |place| match units[place % k] {
            0.0 => 0.0,
            unit => f64::floor(sum(place) / unit),
        };
        SideLabels {
            k,
            n,
            before: (0..(n + 1) * k).map(in_units).collect(),
            units,
            missing: missing.map_or(vec![0.0; k], |rows| rows.sums.to_vec()),
            cost_of_node: node.cost,
            kind,
        }
    }

    /// The labels, ascending, that a side may have of a cut with an end inside `bin` that scores at least `floor`.
    pub fn of_bin(&self, bin: usize, floor: f64) -> Vec<usize> {
        let mut may_be = vec![false; self.k];
        match self.kind {
            CutKind::Threshold => {
                self.mark([[0..bin, 0..0], [bin + 1..self.n, 0..0]], floor, &mut may_be)
            }
            CutKind::Interval => {
                for other in 0..self.n {
                    let (low, high) = (bin.min(other), bin.max(other));
                    let inside = if low < high { low + 1..high } else { 0..0 };
                    let sides = [[inside, 0..0], [0..low, high + 1..self.n]];
                    self.mark(sides, floor, &mut may_be);
                }
            }
        }
        (0..self.k).filter(|&label| may_be[label]).collect()
    }

    /// Marks the labels that a side may have.
    fn mark(&self, sides: Sides, floor: f64, may_be: &mut [bool]) {
        let sums = sides.map(|ranges| self.least(&ranges));
        let has_missing = self.missing.iter().any(|&sum| sum > 0.0);
        for side_of_missing in 0..1 + usize::from(has_missing) {
            let cost = |side: usize, label: usize| {
                let missing = if side == side_of_missing { self.missing[label] } else { 0.0 };
                sums[side][label] + missing
            };
            let least = [0, 1].map(|side| {
                (0..self.k).map(|label| cost(side, label)).fold(f64::INFINITY, f64::min)
            });
            for (label, may_be) in may_be.iter_mut().enumerate() {
                let saves_enough = |side: usize| {
                    self.cost_of_node - (cost(side, label) + least[1 - side]) >= floor
                };
                *may_be |= saves_enough(0) || saves_enough(1);
            }
        }
    }

    /// By label what the rows of some ranges cost at least.
    fn least(&self, ranges: &[Range<usize>]) -> Vec<f64> {
        let sum = |label: usize| {
            let before = |bin: usize| self.before[bin * self.k + label];
            let sum: f64 = ranges.iter().map(|range| before(range.end) - before(range.start)).sum();
            (sum - ROUNDING).max(0.0) * self.units[label]
        };
        (0..self.k).map(sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Bins;
    use super::super::bins::own_groups;
    use super::*;
    use crate::criterion::ColumnForm;
    use crate::exact::ExactSums;

    const K: usize = 4;

    /// Rows in bins of `size`, each row of a value of its own, in order, and a last bin of rows with a missing cell.
    fn bins_of(regrets: &[[f64; K]], size: usize, n_missing: usize) -> Bins {
        let n_values = regrets.len() - n_missing;
        let mut starts: Vec<usize> = (0..n_values).step_by(size).collect();
        starts.push(n_values);
        let ranges = starts.windows(2).map(|ends| ends[0]..ends[1]);
        let ranges: Vec<Range<usize>> =
            ranges.chain(std::iter::once(n_values..regrets.len())).collect();
        let mut sums = ExactSums::new(ranges.len() * K);
        for (bin, rows) in ranges.iter().enumerate() {
            for row in &regrets[rows.clone()] {
                (0..K).for_each(|label| sums.add(bin * K + label, row[label]));
            }
        }
        let last = n_values.saturating_sub(1);
        Bins {
            of_values: false,
            count: ranges.iter().map(|rows| rows.len() as u64).collect(),
            low: ranges.iter().map(|rows| rows.start as f64).collect(),
            high: ranges.iter().map(|rows| (rows.end - 1).min(last) as f64).collect(),
            sums: Some(sums),
            width: K,
        }
    }

    /// By the definition: whether a side of a cut with an end inside the bin has the label and the cut scores `floor`.
    fn has_label(
        regrets: &[[f64; K]],
        n_values: usize,
        bin: Range<usize>,
        kind: CutKind,
        (cost, floor): (f64, f64),
        label: usize,
    ) -> bool {
        let lowest = if kind == CutKind::Threshold { 0 } else { n_values };
        let cuts = (0..=lowest).flat_map(|a| (a..=n_values).map(move |b| (a, b)));
        let is_inside = |end: usize| bin.start < end && end < bin.end;
        let mut cuts = cuts.filter(|&(a, b)| is_inside(a) || is_inside(b));
        cuts.any(|(a, b)| {
            [false, true].into_iter().any(|missing_inside| {
                let is_left = |row: usize| match row < n_values {
                    true => a <= row && row < b,
                    false => missing_inside,
                };
                let costs = |side: bool| {
                    let rows = (0..regrets.len()).filter(|&row| is_left(row) == side);
                    let rows: Vec<usize> = rows.collect();
                    [0, 1, 2, 3].map(|l| crate::exact::sum(rows.iter().map(|&row| regrets[row][l])))
                };
                let sides = [costs(true), costs(false)];
                let least = sides.map(|costs| costs.into_iter().fold(f64::INFINITY, f64::min));
                cost - (sides[0][label] + least[1]) >= floor
                    || cost - (sides[1][label] + least[0]) >= floor
            })
        })
    }

    #[test]
    fn no_side_has_a_label_that_is_left_out() {
        let mut random = fastrand::Rng::with_seed(3);
        let (mut n_left_out, mut n_kept) = (0, 0);
        for round in 0..300 {
            let (n, size) = (random.usize(4..16), random.usize(2..5));
            let n_missing = if round % 3 == 0 { random.usize(1..3) } else { 0 };
            let regrets: Vec<[f64; K]> = (0..n)
                .map(|row| {
                    let nearest = (row * K / n + random.usize(0..2)) % K;
                    let mut row = [0.0; K].map(|_| random.f64() + random.f64());
                    row[nearest] = 0.0;
                    row
                })
                .collect();
            let bins = bins_of(&regrets, size, n_missing);
            let totals = bins.total().all_rounded();
            let cost = totals.iter().copied().fold(f64::INFINITY, f64::min);
            let node = AdditiveNode { totals, cost, n_rows: n };
            let form = ColumnForm { is_levels: false, has_missing: true };
            let groups = own_groups(&bins, K, form, round % 2 == 0);
            let floor = cost * random.f64();
            for kind in [CutKind::Threshold, CutKind::Interval] {
                let sides = SideLabels::new(&node, groups.view(0), kind);
                for bin in 0..bins.count.len() - 1 {
                    let labels = sides.of_bin(bin, floor);
                    let start = bin * size;
                    let rows = start..start + bins.count[bin] as usize;
                    for label in (0..K).filter(|label| !labels.contains(label)) {
                        n_left_out += 1;
                        let n_values = n - n_missing;
                        let has =
                            has_label(&regrets, n_values, rows.clone(), kind, (cost, floor), label);
                        assert!(!has, "round {round}, {kind:?}, bin {bin}, label {label}");
                    }
                    n_kept += labels.len();
                }
            }
        }
        assert!(n_left_out > 1_000 && n_kept > 1_000, "{n_left_out} {n_kept}");
    }
}
