//! Maps the values of a column to bins.
//!
//! [`bin_ends`] places the ends of bins at quantiles of a sample; a [`Binner`] maps values to them. It divides the
//! range of the ends into equal cells and looks up each cell's first bin, so most values take one look-up and at most
//! three comparisons, without branches: several times faster than the binary search that columns take whose ends crowd
//! into few cells (outliers, heavy tails).

use crate::index::MAX_BINS;

/// Cells of the look-up table.
const N_CELLS: usize = 4096;

/// Maps values to bins: bin b holds `edges[b - 1] < x <= edges[b]`, the last bin everything above.
#[derive(Debug)]
pub(crate) struct Binner {
    /// Inclusive upper ends, ascending, padded with infinity.
    edges: [f64; MAX_BINS],
    /// First possible bin of each cell of the range between the first and the last edge.
    cells: Vec<u8>,
    /// Where the first cell begins.
    origin: f64,
    /// Cells per unit of the column.
    per_unit: f64,
    /// Most edges in one cell: how far a bin can lie above its cell's first.
    steps: usize,
}

impl Binner {
    /// `ends`: at least one and at most 256 distinct ascending values; the last bin is open above.
    pub(crate) fn new(ends: &[f64]) -> Self {
        let mut edges = [f64::INFINITY; MAX_BINS];
        let inner = &ends[..ends.len() - 1];
        edges[..inner.len()].copy_from_slice(inner);
        let (origin, last) = (ends[0], *inner.last().unwrap_or(&ends[0]));
        let per_unit = N_CELLS as f64 / (last - origin);
        let per_unit = if per_unit.is_finite() { per_unit } else { 0.0 };
        let mut binner = Binner { edges, cells: vec![], origin, per_unit, steps: 0 };
        // An edge in a lower cell than x is below x, because `cell` never falls as x grows, rounding included.
        let mut edges_in_cell = vec![0u8; N_CELLS];
        for &edge in inner {
            edges_in_cell[binner.cell(edge)] += 1;
        }
        binner.steps = edges_in_cell.iter().copied().max().unwrap_or(0).into();
        binner.cells = edges_in_cell
            .iter()
            .scan(0u8, |below, &here| {
                let first = *below;
                *below += here;
                Some(first)
            })
            .collect();
        binner
    }

    /// The cell of a value; it never falls as x grows.
    #[inline(always)]
    fn cell(&self, x: f64) -> usize {
        // Adding 2^52 rounds to an integer and leaves it in the low bits: much cheaper than a checked cast.
        let scaled = ((x - self.origin) * self.per_unit).max(0.0).min((N_CELLS - 1) as f64);
        (scaled + 4_503_599_627_370_496.0).to_bits() as usize & (N_CELLS - 1)
    }

    /// Writes the bin of each value to `codes`.
    pub(crate) fn assign(&self, values: &[f64], codes: &mut [u8]) {
        match self.steps {
            0 => self.assign_by_cell::<0>(values, codes),
            1 => self.assign_by_cell::<1>(values, codes),
            2 => self.assign_by_cell::<2>(values, codes),
            3 => self.assign_by_cell::<3>(values, codes),
            _ => self.assign_by_search(values, codes),
        }
    }

    /// From the first bin of the value's cell, at most `STEPS` steps up, without branches.
    fn assign_by_cell<const STEPS: usize>(&self, values: &[f64], codes: &mut [u8]) {
        for (&x, code) in values.iter().zip(codes) {
            let mut bin = self.cells[self.cell(x)];
            for _ in 0..STEPS {
                bin += u8::from(x > self.edges[usize::from(bin)]);
            }
            *code = bin;
        }
    }

    /// Binary search, for cells that hold many edges.
    fn assign_by_search(&self, values: &[f64], codes: &mut [u8]) {
        for (&x, code) in values.iter().zip(codes) {
            let mut bin = 0;
            for half in [128, 64, 32, 16, 8, 4, 2, 1] {
                bin += if x > self.edges[bin + half - 1] { half } else { 0 };
            }
            *code = bin as u8;
        }
    }
}

/// The inclusive upper ends of the bins of a column, from a sorted sample: all its values if they are at most
/// `max_bins` (`true`: they may be all that the column has), else about even shares of it. A value too frequent for one
/// share gets a bin of its own.
pub(crate) fn bin_ends(sample: &[f64], max_bins: usize) -> (Vec<f64>, bool) {
    let groups: Vec<&[f64]> = sample.chunk_by(|a, b| a == b).collect();
    if groups.len() <= max_bins {
        return (groups.iter().map(|group| group[0]).collect(), true);
    }
    let mut ends: Vec<f64> = Vec::with_capacity(max_bins);
    let (mut n_open, mut left) = (0, sample.len());
    for (i, group) in groups.iter().enumerate() {
        let share = left.div_ceil(max_bins - ends.len());
        if n_open > 0
            && n_open + group.len() > share
            && group.len() >= share
            && ends.len() + 2 < max_bins
        {
            ends.push(groups[i - 1][0]);
            n_open = 0;
        }
        n_open += group.len();
        left -= group.len();
        if n_open >= share && ends.len() + 1 < max_bins {
            ends.push(group[0]);
            n_open = 0;
        }
    }
    if n_open > 0 {
        ends.push(sample[sample.len() - 1]);
    }
    (ends, false)
}
