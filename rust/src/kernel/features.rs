//! Surrogate features: functions of one column that rise to a peak and fall, so that a threshold on a feature is an
//! interval of the column.
//!
//! Fleissner, Vankadara, Ghoshdastidar (2024), definition 3, equation (4), appendix H: their inner products approximate
//! the kernel of one column, or equal it.
//!
//! | kernel of one column | features phi_j(x) | [`Family`] |
//! |---|---|---|
//! | exp(-gamma (x - y)^2) | x^j exp(-gamma x^2) sqrt((2 gamma)^j / j!), j = 0..=M | `Taylor` |
//! | exp(-gamma (x - y)^2) | exp(-gamma (x - a_j)^2) | `Gauss` |
//! | exp(-gamma \|x - y\|) | exp(-gamma \|x - a_j\|) | `Laplace` |
//! | sqrt(x y) | sqrt(x) | `Root` |
//! | min(x, y)^beta | steps of height sqrt(z_j - z_{j-1}) | `Intersection` |
//! | 2 x y / (x + y) | sqrt(2 / j) x (j / M)^x, j = 1..=M | `Chi2` |
//!
//! The paper prints g(u) = e^{2u} in definition 3; the expansion needs e^{2 gamma u}. Taylor features are computed by
//! logarithms: powers and factorials alone overflow.
//!
//! Features are never held for all rows: a feature is evaluated on the distinct values of its column when it is
//! searched. Memory: 4 n d bytes for the rows' ranks, 16 bytes per distinct value and column.

use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::table::Table;

/// One-dimensional feature maps, as functions of a column x in the kernel's units.
#[derive(Debug, Clone, PartialEq)]
pub enum Family {
    /// The square root, for Hellinger's kernel (appendix H). x >= 0.
    Root,
    /// x^j exp(-gamma x^2) sqrt((2 gamma)^j / j!) for j = 0..=order: the Gaussian kernel by Taylor (definition 3).
    /// x > 0.
    Taylor {
        /// Of the kernel, positive.
        gamma: f64,
        /// M.
        order: usize,
    },
    /// exp(-gamma |x - a|) for every anchor a (equation 4).
    Laplace {
        /// Of the kernel, positive.
        gamma: f64,
    },
    /// exp(-gamma (x - a)^2) for every anchor a (equation 4).
    Gauss {
        /// Of the kernel, positive.
        gamma: f64,
    },
    /// With the distinct values z_1 < z_2 < ... of x^beta: sqrt(z_1), and sqrt(z_j - z_{j-1}) where x^beta >= z_j,
    /// else 0 (equation 13). x >= 0.
    Intersection {
        /// Exponent of the generalised kernel, positive.
        beta: f64,
    },
    /// sqrt(2 / j) x (j / M)^x for j = 1..=order: the additive chi^2 kernel (appendix H). x >= 0.
    Chi2 {
        /// M.
        order: usize,
    },
}

/// A family of features on every column of a table with d columns.
#[derive(Debug, Clone, Copy)]
pub struct Spec<'a> {
    /// The functions.
    pub family: &'a Family,
    /// The features are functions of (x - shift) / scale; of shape (d), in the columns' own units.
    pub shift: &'a [f64],
    /// Positive, of shape (d).
    pub scale: &'a [f64],
    /// Anchors by column, ascending, in the kernel's units; only for the families with anchors.
    pub anchors: &'a [&'a [f64]],
}

/// One column with all that its features need.
#[derive(Debug)]
pub struct SurrogateColumn {
    /// Distinct values in the column's own units, ascending.
    pub values: Vec<f64>,
    /// The place of each row's value among them.
    pub rank: Vec<u32>,
    /// The values in the kernel's units.
    units: Vec<f64>,
    /// The anchors, or the heights of the steps.
    anchors: Vec<f64>,
    /// Of steps: the rank from which on the step is passed.
    starts: Vec<u32>,
}

/// The features of all columns of a table, numbered column after column.
#[derive(Debug)]
pub struct Surrogate {
    family: Family,
    columns: Vec<SurrogateColumn>,
    /// The first feature of each column, and the number of all.
    first: Vec<usize>,
}

impl SurrogateColumn {
    /// Sorts a column; O(n log n).
    fn new(table: &Table<'_>, feature: usize, spec: &Spec<'_>) -> Result<Self> {
        let n = table.n_samples();
        let all: Vec<u32> = memory::collected(0..n as u32, "the ranks of a column");
        let mut rank = memory::zeros(n, "the ranks of a column");
        let mut values: Vec<f64> = memory::reserved(n, "the values of a column");
        for (x, row) in table.column(feature).sort(&all) {
            if values.last().is_none_or(|&last| last < x) {
                values.push(x);
            }
            rank[row as usize] = values.len() as u32 - 1;
        }
        let (shift, scale) = (spec.shift[feature], spec.scale[feature]);
        values.shrink_to_fit();
        let units = values.iter().map(|x| (x - shift) / scale);
        let units: Vec<f64> = memory::collected(units, "the values of a column");
        let mut column = SurrogateColumn { values, rank, units, anchors: vec![], starts: vec![] };
        match spec.family {
            Family::Laplace { .. } | Family::Gauss { .. } => {
                column.anchors = spec.anchors.get(feature).map_or(vec![], |a| a.to_vec());
            }
            Family::Intersection { beta } => column.add_steps(*beta),
            _ => {}
        }
        Ok(column)
    }

    /// The ranks of all its values.
    pub(super) fn ranks(&self) -> Vec<u32> {
        memory::collected(0..self.values.len() as u32, "the ranks of a column")
    }

    /// Computes the steps of the distinct values of x^beta.
    fn add_steps(&mut self, beta: f64) {
        let mut last = f64::NEG_INFINITY;
        for (rank, &x) in (0..).zip(&self.units) {
            let z = if beta == 1.0 { x } else { x.powf(beta) };
            if z > last {
                let height = if rank == 0 { z.sqrt() } else { (z - last).sqrt() };
                memory::push(&mut self.anchors, height, "the steps of a column");
                memory::push(&mut self.starts, rank, "the steps of a column");
                last = z;
            }
        }
    }

    /// Writes `f` of given distinct values to `phi`.
    fn at(&self, ranks: &[u32], phi: &mut Vec<f64>, f: impl Fn(f64) -> f64) {
        phi.clear();
        memory::reserve(phi, ranks.len(), "the values of a feature");
        phi.extend(ranks.iter().map(|&rank| f(self.units[rank as usize])));
    }

    /// Writes the feature at given distinct values, which are ascending, to `phi`. Where rounding makes it rise again
    /// beyond its peak it is levelled: the result is unimodal.
    fn evaluate(&self, family: &Family, j: usize, ranks: &[u32], phi: &mut Vec<f64>) {
        match *family {
            Family::Root => self.at(ranks, phi, f64::sqrt),
            Family::Taylor { gamma, .. } => {
                let power = j as f64;
                let log_factorial: f64 = (1..=j).map(|i| (i as f64).ln()).sum();
                let log_scale = 0.5 * (power * (2.0 * gamma).ln() - log_factorial);
                match j {
                    0 => self.at(ranks, phi, |x| (-gamma * x * x).exp()),
                    _ => {
                        self.at(ranks, phi, |x| (power * x.ln() - gamma * x * x + log_scale).exp())
                    }
                }
            }
            Family::Laplace { gamma } => {
                let anchor = self.anchors[j];
                self.at(ranks, phi, |x| (-gamma * (x - anchor).abs()).exp());
            }
            Family::Gauss { gamma } => {
                let anchor = self.anchors[j];
                self.at(ranks, phi, |x| (-gamma * (x - anchor) * (x - anchor)).exp());
            }
            Family::Intersection { .. } => {
                let (height, start) = (self.anchors[j], self.starts[j]);
                phi.clear();
                memory::reserve(phi, ranks.len(), "the values of a feature");
                phi.extend(ranks.iter().map(|&rank| if rank >= start { height } else { 0.0 }));
            }
            Family::Chi2 { order } => {
                let (j, order) = ((j + 1) as f64, order as f64);
                let (size, log_base) = ((2.0 / j).sqrt(), (j / order).ln());
                self.at(ranks, phi, |x| size * x * (x * log_base).exp());
            }
        }
        make_unimodal(phi);
    }
}

/// Replaces every number by the running maximum from its own end up to the (first) largest number.
fn make_unimodal(phi: &mut [f64]) {
    let mut peak = 0;
    for i in 1..phi.len() {
        if phi[i] > phi[peak] {
            peak = i;
        }
    }
    for i in 1..peak {
        phi[i] = phi[i].max(phi[i - 1]);
    }
    for i in (peak + 1..phi.len()).rev().skip(1) {
        phi[i] = phi[i].max(phi[i + 1]);
    }
}

/// Calls `visit(phi, places)` for the distinct numbers of a unimodal sequence in ascending order, with the places of
/// each: a range at the front and one at the back. O(length), without a sort.
pub(super) fn ascending(phi: &[f64], mut visit: impl FnMut(f64, [std::ops::Range<usize>; 2])) {
    let (mut low, mut high) = (0, phi.len());
    while low < high {
        let x = phi[low].min(phi[high - 1]);
        let (front, back) = (low, high);
        while low < high && phi[low] <= x {
            low += 1;
        }
        while low < high && phi[high - 1] <= x {
            high -= 1;
        }
        visit(x, [front..low, high..back]);
    }
}

impl Surrogate {
    /// Prepares the features of every column.
    ///
    /// # Errors
    /// [`Error::Shape`] if the specification does not fit the table.
    pub fn new(table: &Table<'_>, spec: &Spec<'_>) -> Result<Self> {
        let d = table.n_features();
        Error::check_len("shift", spec.shift.len(), d, "entries")?;
        Error::check_len("scale", spec.scale.len(), d, "entries")?;
        let columns =
            parallel::try_map(0..d, |feature| SurrogateColumn::new(table, feature, spec))?;
        let mut first = vec![0];
        for column in &columns {
            let n_features = match spec.family {
                Family::Root => 1,
                Family::Taylor { order, .. } => order + 1,
                Family::Chi2 { order } => *order,
                _ => column.anchors.len(),
            };
            first.push(first[first.len() - 1] + n_features);
        }
        Ok(Surrogate { family: spec.family.clone(), columns, first })
    }

    /// Returns the number of features of all columns.
    pub fn len(&self) -> usize {
        self.first[self.columns.len()]
    }

    /// Whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the input column of a feature, and the feature's number there.
    pub fn place(&self, feature: usize) -> (usize, usize) {
        let column = self.first.partition_point(|&first| first <= feature) - 1;
        (column, feature - self.first[column])
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[SurrogateColumn] {
        &self.columns
    }

    /// Writes a feature at given distinct values of its column to `phi`. `ranks`: ascending.
    pub fn evaluate(&self, feature: usize, ranks: &[u32], phi: &mut Vec<f64>) {
        let (column, j) = self.place(feature);
        self.columns[column].evaluate(&self.family, j, ranks, phi);
    }

    /// Whether the features are steps.
    pub(super) fn has_steps(&self) -> bool {
        matches!(self.family, Family::Intersection { .. })
    }

    /// Returns, for a feature that is one step, the rank from which on it is passed and its height.
    pub(super) fn step(&self, feature: usize) -> Option<(u32, f64)> {
        let (column, j) = self.place(feature);
        let column = &self.columns[column];
        (self.has_steps() && j > 0).then(|| (column.starts[j], column.anchors[j]))
    }

    /// Returns all features of all rows: n x [`Surrogate::len`], row-major. For tests: a fit never needs it.
    pub fn matrix(&self) -> Vec<f64> {
        let n = self.columns.first().map_or(0, |column| column.rank.len());
        let width = self.len();
        let mut matrix = memory::zeros(n * width, "the surrogate features");
        let mut phi = Vec::new();
        for feature in 0..width {
            let column = &self.columns[self.place(feature).0];
            let all = column.ranks();
            self.evaluate(feature, &all, &mut phi);
            for (row, &rank) in column.rank.iter().enumerate() {
                matrix[row * width + feature] = phi[rank as usize];
            }
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_ascending_order_from_both_ends() {
        let mut seen = vec![];
        ascending(&[0.0, 1.0, 3.0, 3.0, 1.0, 0.5, 0.0, 0.0], |x, places| seen.push((x, places)));
        let expected =
            [(0.0, [0..1, 6..8]), (0.5, [1..1, 5..6]), (1.0, [1..2, 4..5]), (3.0, [2..4, 4..4])];
        assert_eq!(seen, expected);
    }

    #[test]
    fn dips_are_filled_up_to_the_peak() {
        let mut phi = [0.0, 2.0, 1.0, 5.0, 3.0, 4.0, 0.0, 1.0];
        make_unimodal(&mut phi);
        assert_eq!(phi, [0.0, 2.0, 2.0, 5.0, 4.0, 4.0, 1.0, 1.0]);
    }
}
