//! What the base of a tree (IMM) asks of rows with their labels, and how parts answer.
//!
//! A row is *with its center* at a node if its label's center is alive there; else a cut above has separated the two.
//! Nodes are filled with the weights of the rows that are with their center, by label: of each row one number.

use super::answer::{Bins, are_opened, merge_all, read_all, write_all};
use super::bins::{GatheredBins, with_runs};
use super::bytes::{Reader, Writer};
use super::gathering::{cells_of, opened_at};
use super::question::{
    ColumnBins, Geometry, Open, read_bins, read_geometry, read_opens, write_bins, write_geometry,
    write_opens,
};
use super::routing::{TestNode, read_nodes, write_nodes};
use crate::binner::Binner;
use crate::costs::ExactLabelCosts;
use crate::criterion::centers::Coordinate;
use crate::error::Result;
use crate::exact::{ExactRows, ExactSums};
use crate::parallel;
use crate::table::Table;
use crate::tree::{ClusterTree, LevelSet, Test};

/// Sums over nodes of a base tree.
#[derive(Debug, Clone, PartialEq)]
pub struct BaseAsk {
    /// How rows that bring no labels are labelled.
    pub geometry: Geometry,
    /// The bins of each column.
    pub columns: Vec<ColumnBins>,
    /// The tree.
    pub nodes: Vec<TestNode>,
    /// By center the leaf where it is alive.
    pub leaf_of_center: Vec<usize>,
    /// Leaves whose rows with their center are put into bins.
    pub fills: Vec<usize>,
    /// Bins of leaves that are opened.
    pub opens: Vec<Open>,
    /// Ranges of cells of a node's rows that are not with their center.
    pub gaps: Vec<Open>,
    /// Nodes of which the rows on either side are counted.
    pub sides: Vec<SidesAsk>,
    /// k x d: the centers, of which the least and largest cells of their rows are asked, and the nearest cell of all.
    pub centers: Option<[Vec<f64>; 2]>,
    /// Whether the regrets of the leaves and the values beside cuts are asked.
    pub totals: bool,
}

/// The rows of a node that lie on either side of its test, with their center or not.
#[derive(Debug, Clone, PartialEq)]
pub struct SidesAsk {
    /// The node.
    pub node: usize,
    /// At a column of levels those whose rows are counted.
    pub levels: LevelSet,
    /// Whether rows with a missing cell are counted, at the side that the node says.
    pub with_missing: bool,
}

impl SidesAsk {
    /// Whether a row with a cell is counted; `test`: the node's.
    fn counts(&self, test: &Test, x: f64) -> bool {
        match test {
            _ if x.is_nan() => self.with_missing,
            Test::Levels { .. } => self.levels.holds(x),
            _ => true,
        }
    }
}

impl BaseAsk {
    /// The centers that are alive at a leaf, ascending.
    fn centers_at(&self, leaf: usize) -> impl Iterator<Item = usize> + '_ {
        let k = self.leaf_of_center.len();
        (0..k).filter(move |&center| self.leaf_of_center[center] == leaf)
    }

    /// Number of centers alive at a leaf.
    fn width(&self, leaf: usize) -> usize {
        self.centers_at(leaf).count()
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        write_geometry(writer, &self.geometry);
        write_bins(writer, &self.columns);
        write_nodes(writer, &self.nodes);
        self.leaf_of_center.iter().for_each(|&leaf| writer.len(leaf));
        writer.len(self.fills.len());
        self.fills.iter().for_each(|&leaf| writer.len(leaf));
        write_opens(writer, &self.opens);
        write_opens(writer, &self.gaps);
        writer.len(self.sides.len());
        for SidesAsk { node, levels, with_missing } in &self.sides {
            writer.len(*node);
            writer.bytes(&levels.codes().collect::<Vec<u8>>());
            writer.u8((*with_missing).into());
        }
        writer.u8(self.centers.is_some().into());
        for parts in self.centers.iter().flatten() {
            writer.numbers(parts);
        }
        writer.u8(self.totals.into());
    }

    pub(super) fn read(reader: &mut Reader<'_>, d: usize) -> Result<Self> {
        let geometry = read_geometry(reader, d)?;
        let k = geometry.k();
        let columns = read_bins(reader, d)?;
        let nodes = read_nodes(reader, d)?;
        let leaf_of_center = (0..k).map(|_| reader.index()).collect::<Result<Vec<_>>>()?;
        let n = reader.len(8)?;
        let fills = (0..n).map(|_| reader.index()).collect::<Result<Vec<_>>>()?;
        let (opens, gaps) = (read_opens(reader, d, 0)?, read_opens(reader, d, 0)?);
        let mut sides = vec![];
        for _ in 0..reader.len(17)? {
            let (node, levels) = (reader.index()?, reader.bytes()?.iter().copied().collect());
            sides.push(SidesAsk { node, levels, with_missing: reader.flag()? });
        }
        let centers = match reader.flag()? {
            true => Some([reader.numbers(k * d)?, reader.numbers(k * d)?]),
            false => None,
        };
        let totals = reader.flag()?;
        let is_leaf = |&id: &usize| nodes.get(id).is_some_and(TestNode::is_leaf);
        let is_inner = |id: usize| nodes.get(id).is_some_and(|node| !node.is_leaf());
        let is_sound = leaf_of_center.iter().all(is_leaf)
            && fills.iter().all(is_leaf)
            && opens.iter().all(|open| is_leaf(&open.node))
            && gaps.iter().all(|gap| gap.node < nodes.len() && gap.ends.is_some())
            && sides.iter().all(|ask: &SidesAsk| is_inner(ask.node));
        if !is_sound {
            return Err(reader.broken());
        }
        Ok(BaseAsk {
            geometry,
            columns,
            nodes,
            leaf_of_center,
            fills,
            opens,
            gaps,
            sides,
            centers,
            totals,
        })
    }

    /// Whether some sums have an entry for all that is asked.
    pub(super) fn is_answered_by(&self, sums: &BaseSums) -> bool {
        let (d, k, n) = (self.columns.len(), self.leaf_of_center.len(), self.nodes.len());
        let is_filled = |(&leaf, columns): (&usize, &Vec<Bins>)| {
            let is_whole = |(bins, asked): (&Bins, &ColumnBins)| {
                bins.count.len() == asked.len()
                    && !bins.of_values
                    && bins.width == self.width(leaf)
                    && bins.sums.is_some()
            };
            columns.len() == d && columns.iter().zip(&self.columns).all(is_whole)
        };
        let is_gap = |(gap, bins): (&Open, &Bins)| {
            let n = gap.ends.as_ref().map_or(0, Vec::len) + 1;
            !bins.of_values && bins.count.len() == n && bins.sums.is_none()
        };
        sums.fills.len() == self.fills.len()
            && self.fills.iter().zip(&sums.fills).all(is_filled)
            && are_opened(&self.opens, &sums.opened, |open| self.width(open.node))
            && sums.gaps.len() == self.gaps.len()
            && self.gaps.iter().zip(&sums.gaps).all(is_gap)
            && sums.sides.len() == self.sides.len()
            && sums.centers.is_some() == self.centers.is_some()
            && sums.centers.as_ref().is_none_or(|ends| ends.n_rows.len() == k && ends.has(k * d))
            && sums.totals.is_some() == self.totals
            && sums.totals.as_ref().is_none_or(|totals| {
                totals.count.len() == n
                    && totals.regrets.len() == n * k
                    && totals.beside.iter().all(|beside| beside.len() == n)
            })
    }
}

/// What rows answer to [`BaseAsk`]: an entry for each of its.
#[derive(Debug, Clone)]
pub(crate) struct BaseSums {
    pub fills: Vec<Vec<Bins>>,
    pub opened: Vec<Bins>,
    pub gaps: Vec<Bins>,
    /// Rows on the left and on the right.
    pub sides: Vec<[u64; 2]>,
    pub centers: Option<CenterEnds>,
    pub totals: Option<BaseTotals>,
}

/// Where the rows of each center lie along the columns; k x d.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CenterEnds {
    /// By center.
    pub n_rows: Vec<u64>,
    /// Least and largest cell of its rows; infinite and reversed without rows.
    pub low: Vec<f64>,
    pub high: Vec<f64>,
    /// The cell of any row that is nearest to the center, the lowest of several, and how far it is.
    pub nearest: Vec<f64>,
    pub distance: Vec<f64>,
}

impl CenterEnds {
    fn new(k: usize, d: usize) -> Self {
        let all = |x: f64| vec![x; k * d];
        CenterEnds {
            n_rows: vec![0; k],
            low: all(f64::INFINITY),
            high: all(f64::NEG_INFINITY),
            nearest: all(f64::INFINITY),
            distance: all(f64::INFINITY),
        }
    }

    fn parts(&self) -> [&Vec<f64>; 4] {
        [&self.low, &self.high, &self.nearest, &self.distance]
    }

    /// Whether there are so many entries of each.
    pub fn has(&self, n: usize) -> bool {
        self.parts().iter().all(|part| part.len() == n)
    }

    /// Takes a cell at some distance from a center.
    #[inline]
    fn approach(&mut self, place: usize, x: f64, distance: f64) {
        let own = (self.distance[place], self.nearest[place]);
        if (distance, x) < own {
            (self.distance[place], self.nearest[place]) = (distance, x);
        }
    }

    fn merge(&mut self, other: &CenterEnds) {
        self.n_rows.iter_mut().zip(&other.n_rows).for_each(|(a, b)| *a += b);
        self.low.iter_mut().zip(&other.low).for_each(|(a, b)| *a = a.min(*b));
        self.high.iter_mut().zip(&other.high).for_each(|(a, b)| *a = a.max(*b));
        for (place, (&x, &distance)) in other.nearest.iter().zip(&other.distance).enumerate() {
            self.approach(place, x, distance);
        }
    }

    pub fn write(&self, writer: &mut Writer) {
        writer.len(self.n_rows.len());
        self.n_rows.iter().for_each(|&n| writer.u64(n));
        self.parts().iter().for_each(|part| writer.f64s(part));
    }

    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let n = reader.len(8)?;
        let n_rows = (0..n).map(|_| reader.u64()).collect::<Result<_>>()?;
        let (low, high) = (reader.f64s()?, reader.f64s()?);
        let (nearest, distance) = (reader.f64s()?, reader.f64s()?);
        Ok(CenterEnds { n_rows, low, high, nearest, distance })
    }
}

/// Sums over the nodes of a base tree that is grown; entries by node.
#[derive(Debug, Clone)]
pub(crate) struct BaseTotals {
    /// Rows of leaves.
    pub count: Vec<u64>,
    /// n_nodes x k: regrets of the rows of leaves.
    pub regrets: ExactSums,
    /// The largest cell left of each cut and the least right of it; NaN where there is none.
    pub beside: [Vec<f64>; 2],
}

impl BaseSums {
    /// Adds those of other rows; whether they are to the same question.
    pub fn merge(&mut self, other: &BaseSums) -> Result<bool> {
        let (own, others) = (&mut self.fills, &other.fills);
        let mut are_alike = own.len() == others.len();
        for (own, others) in own.iter_mut().zip(others) {
            merge_all(own.iter_mut(), others.iter())?;
        }
        merge_all(self.opened.iter_mut(), other.opened.iter())?;
        merge_all(self.gaps.iter_mut(), other.gaps.iter())?;
        are_alike &= self.sides.len() == other.sides.len();
        for (own, other) in self.sides.iter_mut().zip(&other.sides) {
            (own[0], own[1]) = (own[0] + other[0], own[1] + other[1]);
        }
        match (&mut self.centers, &other.centers) {
            (None, None) => {}
            (Some(own), Some(others)) if others.has(own.low.len()) => own.merge(others),
            _ => are_alike = false,
        }
        match (&mut self.totals, &other.totals) {
            (None, None) => {}
            (Some(own), Some(others)) if own.regrets.len() == others.regrets.len() => {
                own.count.iter_mut().zip(&others.count).for_each(|(a, b)| *a += b);
                own.regrets.merge(&others.regrets);
                let [below, above] = &others.beside;
                own.beside[0].iter_mut().zip(below).for_each(|(a, b)| *a = a.max(*b));
                own.beside[1].iter_mut().zip(above).for_each(|(a, b)| *a = a.min(*b));
            }
            _ => are_alike = false,
        }
        Ok(are_alike)
    }

    pub fn write(&self, writer: &mut Writer) {
        writer.len(self.fills.len());
        for columns in &self.fills {
            write_all(writer, columns);
        }
        write_all(writer, &self.opened);
        write_all(writer, &self.gaps);
        writer.len(self.sides.len());
        self.sides.iter().flatten().for_each(|&n| writer.u64(n));
        writer.u8(self.centers.is_some().into());
        self.centers.iter().for_each(|ends| ends.write(writer));
        writer.u8(self.totals.is_some().into());
        if let Some(totals) = &self.totals {
            writer.len(totals.count.len());
            totals.count.iter().for_each(|&n| writer.u64(n));
            writer.len(totals.regrets.len());
            writer.sums(&totals.regrets, 0..totals.regrets.len());
            totals.beside.iter().for_each(|beside| writer.f64s(beside));
        }
    }

    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let n = reader.len(8)?;
        let fills = (0..n).map(|_| read_all(reader)).collect::<Result<_>>()?;
        let (opened, gaps) = (read_all(reader)?, read_all(reader)?);
        let n = reader.len(16)?;
        let sides = (0..n).map(|_| Ok([reader.u64()?, reader.u64()?])).collect::<Result<_>>()?;
        let centers = match reader.flag()? {
            true => Some(CenterEnds::read(reader)?),
            false => None,
        };
        let totals = match reader.flag()? {
            true => {
                let n = reader.len(8)?;
                let count = (0..n).map(|_| reader.u64()).collect::<Result<_>>()?;
                let n = reader.index()?;
                let regrets = reader.new_sums(n)?;
                Some(BaseTotals { count, regrets, beside: [reader.f64s()?, reader.f64s()?] })
            }
            false => None,
        };
        Ok(BaseSums { fills, opened, gaps, sides, centers, totals })
    }
}

/// [`BaseSums`] on their way.
pub(super) struct GatheredBase {
    binners: Vec<Option<Binner>>,
    fills: Vec<Vec<GatheredBins>>,
    opened: Vec<GatheredBins>,
    gaps: Vec<GatheredBins>,
    sides: Vec<[u64; 2]>,
    centers: Option<CenterEnds>,
    totals: Option<(Vec<u64>, ExactRows, [Vec<f64>; 2])>,
}

impl GatheredBase {
    pub fn new(ask: &BaseAsk) -> Self {
        let (k, d, n) = (ask.leaf_of_center.len(), ask.columns.len(), ask.nodes.len());
        let fill = |&leaf: &usize| {
            let width = ask.width(leaf);
            let column = |bins: &ColumnBins| GatheredBins::new(bins.len(), true, false, width);
            ask.columns.iter().map(column).collect()
        };
        let open = |open: &Open| GatheredBins::of_open(open, ask.width(open.node));
        let gap = |gap: &Open| {
            let n = gap.ends.as_ref().map_or(0, Vec::len) + 1;
            GatheredBins::new(n, false, false, 0)
        };
        let none = || vec![f64::NAN; n];
        GatheredBase {
            binners: ask.columns.iter().map(ColumnBins::binner).collect(),
            fills: ask.fills.iter().map(fill).collect(),
            opened: ask.opens.iter().map(open).collect(),
            gaps: ask.gaps.iter().map(gap).collect(),
            sides: vec![[0; 2]; ask.sides.len()],
            centers: ask.centers.is_some().then(|| CenterEnds::new(k, d)),
            totals: ask.totals.then(|| (vec![0; n], ExactRows::new(n, k), [none(), none()])),
        }
    }

    /// Adds rows, their leaves and their labels (none: the nearest centers').
    ///
    /// # Errors
    /// [`Error::Value`](crate::error::Error::Value) if distances overflow.
    pub fn add(
        &mut self,
        ask: &BaseAsk,
        table: &Table<'_>,
        weights: Option<&[f64]>,
        labels: Option<&[u32]>,
        (tree, leaves): (&ClusterTree, &[i64]),
    ) -> Result<()> {
        let mut nearest = vec![];
        if labels.is_none() || ask.totals {
            let costs = super::gathering::costs(&ask.geometry, table, weights)?;
            let ExactLabelCosts { regrets, nearest: found, .. } = costs;
            nearest = found;
            if let Some((count, sums, beside)) = &mut self.totals {
                let k = ask.geometry.k();
                for (row, &leaf) in leaves.iter().enumerate() {
                    count[leaf as usize] += 1;
                    sums.add(leaf as usize, &regrets[row * k..(row + 1) * k]);
                }
                let leaves: Vec<u32> = leaves.iter().map(|&leaf| leaf as u32).collect();
                let found = tree.values_beside(table, &leaves)?;
                beside[0].iter_mut().zip(found.below).for_each(|(a, b)| *a = a.max(b));
                beside[1].iter_mut().zip(found.above).for_each(|(a, b)| *a = a.min(b));
            }
        }
        let labels = labels.unwrap_or(&nearest);
        self.add_to_centers(ask, table, labels);
        self.add_to_bins(ask, table, weights, labels, leaves);
        self.add_to_gaps(ask, table, labels, leaves);
        self.add_to_sides(ask, table, leaves);
        Ok(())
    }

    /// Where the rows of the centers lie.
    fn add_to_centers(&mut self, ask: &BaseAsk, table: &Table<'_>, labels: &[u32]) {
        let (Some(found), Some([high, low])) = (&mut self.centers, &ask.centers) else { return };
        let (k, d) = (ask.leaf_of_center.len(), ask.columns.len());
        labels.iter().for_each(|&label| found.n_rows[label as usize] += 1);
        let all: Vec<u32> = (0..labels.len() as u32).collect();
        let columns = parallel::map(0..d, |feature| {
            let mut ends = CenterEnds::new(k, 1);
            let center = |label: usize| {
                let i = label * d + feature;
                Coordinate::of_sum(high[i], low[i])
            };
            let centers: Vec<Coordinate> = (0..k).map(center).collect();
            let cells = cells_of(table, feature, &all);
            for (&label, x) in labels.iter().zip(cells).filter(|(_, x)| !x.is_nan()) {
                let label = label as usize;
                ends.low[label] = ends.low[label].min(x);
                ends.high[label] = ends.high[label].max(x);
                for (label, center) in centers.iter().enumerate() {
                    ends.approach(label, x, center.distance(x));
                }
            }
            ends
        });
        for (feature, ends) in columns.iter().enumerate() {
            for label in 0..k {
                let i = label * d + feature;
                found.low[i] = found.low[i].min(ends.low[label]);
                found.high[i] = found.high[i].max(ends.high[label]);
                found.approach(i, ends.nearest[label], ends.distance[label]);
            }
        }
    }

    /// Rows with their center, in bins.
    fn add_to_bins(
        &mut self,
        ask: &BaseAsk,
        table: &Table<'_>,
        weights: Option<&[f64]>,
        labels: &[u32],
        leaves: &[i64],
    ) {
        let weight = |row: u32| weights.map_or(1.0, |w| w[row as usize]);
        let mut place = vec![None; ask.nodes.len()];
        let nodes = ask.fills.iter().copied().chain(ask.opens.iter().map(|open| open.node));
        let mut n_nodes = 0;
        for node in nodes {
            if place[node].is_none() {
                place[node] = Some(n_nodes);
                n_nodes += 1;
            }
        }
        if n_nodes == 0 {
            return;
        }
        let mut rows_of: Vec<Vec<u32>> = vec![vec![]; n_nodes];
        for (row, (&leaf, &label)) in leaves.iter().zip(labels).enumerate() {
            let leaf = leaf as usize;
            if let Some(place) = place[leaf].filter(|_| ask.leaf_of_center[label as usize] == leaf)
            {
                rows_of[place].push(row as u32);
            }
        }
        // By center its place among those of its leaf.
        let mut of_leaf = vec![0; ask.nodes.len()];
        let mut own_place = vec![];
        for &leaf in &ask.leaf_of_center {
            own_place.push(of_leaf[leaf]);
            of_leaf[leaf] += 1;
        }
        let rows = |node: usize| place[node].map_or(&[][..], |place| &rows_of[place]);
        let own_place = |row: u32| own_place[labels[row as usize] as usize];
        let columns = ask.fills.iter().zip(&mut self.fills).flat_map(|(&leaf, columns)| {
            columns.iter_mut().enumerate().map(move |(feature, bins)| (leaf, feature, bins))
        });
        let binners = &self.binners;
        parallel::map(columns, |(leaf, feature, bins)| {
            let rows = rows(leaf);
            let cells = cells_of(table, feature, rows);
            let asked_bins = &ask.columns[feature];
            let cells = asked_bins.filled(&cells);
            asked_bins.assign(binners[feature].as_ref(), &cells, |place, bin| {
                let row = rows[place];
                bins.add_one(bin, cells[place], own_place(row), weight(row));
            });
        });
        parallel::map(with_runs(&ask.opens, &mut self.opened), |(run, bins)| {
            let rows = rows(run[0].node);
            for (&row, x) in rows.iter().zip(cells_of(table, run[0].feature, rows)) {
                let Some(i) = opened_at(run, x) else { continue };
                match &run[i].ends {
                    Some(ends) => {
                        let bin = ends.partition_point(|&end| end < x);
                        bins[i].add_one(bin, x, own_place(row), weight(row));
                    }
                    None => bins[i].add_value_one(x, own_place(row), weight(row)),
                }
            }
        });
    }

    /// Cells of rows that are not with their center.
    fn add_to_gaps(&mut self, ask: &BaseAsk, table: &Table<'_>, labels: &[u32], leaves: &[i64]) {
        parallel::map(with_runs(&ask.gaps, &mut self.gaps), |(run, bins)| {
            let is_below = below(&ask.nodes, run[0].node);
            let is_alive: Vec<bool> =
                ask.leaf_of_center.iter().map(|&leaf| is_below[leaf]).collect();
            let column = table.column(run[0].feature);
            for (row, (&leaf, &label)) in leaves.iter().zip(labels).enumerate() {
                if !is_below[leaf as usize] || is_alive[label as usize] {
                    continue;
                }
                let x = column.get(row) + 0.0;
                if let Some(i) = opened_at(run, x) {
                    let ends = run[i].ends.as_deref().unwrap_or(&[]);
                    bins[i].add(ends.partition_point(|&end| end < x), x, None);
                }
            }
        });
    }

    /// The sides of all rows of a node.
    fn add_to_sides(&mut self, ask: &BaseAsk, table: &Table<'_>, leaves: &[i64]) {
        parallel::map(ask.sides.iter().zip(&mut self.sides), |(asked, counts)| {
            let is_below = below(&ask.nodes, asked.node);
            let TestNode { test, missing_left, .. } = &ask.nodes[asked.node];
            let Some(feature) = test.feature() else { return };
            let (column, fill) = (table.column(feature), ask.columns[feature].fill);
            for row in (0..leaves.len()).filter(|&row| is_below[leaves[row] as usize]) {
                let x = column.get(row) + 0.0;
                let x = fill.filter(|_| x.is_nan()).unwrap_or(x);
                if asked.counts(test, x) {
                    counts[usize::from(!test.goes_left(x, *missing_left))] += 1;
                }
            }
        });
    }

    pub fn finish(self) -> BaseSums {
        let finish = |bins: Vec<GatheredBins>| parallel::map(bins, GatheredBins::finish);
        BaseSums {
            fills: self.fills.into_iter().map(finish).collect(),
            opened: finish(self.opened),
            gaps: finish(self.gaps),
            sides: self.sides,
            centers: self.centers,
            totals: self.totals.map(|(count, regrets, beside)| BaseTotals {
                count,
                regrets: regrets.finish(),
                beside,
            }),
        }
    }
}

/// By node whether it is `node` or below it.
fn below(nodes: &[TestNode], node: usize) -> Vec<bool> {
    let mut is_below = vec![false; nodes.len()];
    is_below[node] = true;
    for id in node..nodes.len() {
        let left = nodes[id].left;
        if is_below[id] && left > 0 {
            (is_below[left], is_below[left + 1]) = (true, true);
        }
    }
    is_below
}
