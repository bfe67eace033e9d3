//! Fits without rows: [`crate::parts`]. Called by `parts/protocol.py`.
//!
//! | Python | core |
//! |---|---|
//! | `PartsFit` | [`PartsFit`] |
//! | `PartsQuestion`, `PartsGathering`, `PartsAnswer` | [`Question`], [`Gathering`], [`Answer`] |
//! | `PartsTree` | [`PartsResult`] |

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::convert::{TableArgument, matrix, optional, slice, slice2};
use super::run::{Jobs, run};
use super::tree::{Floats, Integers, PyTestArrays, array, integers};
use crate::costs::Metric;
use crate::criterion::label_cost::CutKind;
use crate::grow::Limits;
use crate::parallel::Monitor;
use crate::parts::{
    Answer, Ask, BatchLabels, Classes, Clusters, FoundColumn, FoundReference, Gathering, LabelRule,
    PartColumn, PartsFit, PartsResult, PartsSettings, Question, ReferenceRule, ScaleRule,
};

/// What a fit asks of every part of the rows.
#[pyclass(frozen, name = "PartsQuestion", module = "treeclust_rs._core")]
pub struct PyQuestion(Arc<Question>);

#[pymethods]
impl PyQuestion {
    /// Reads what `to_bytes` returned.
    ///
    /// # Errors
    /// `ValueError` if it is not a question.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Ok(PyQuestion(Arc::new(Question::from_bytes(data)?)))
    }

    /// The question as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// Number of columns.
    #[getter]
    fn n_features(&self) -> usize {
        self.0.n_features
    }

    /// Whether the fit has asked nothing before.
    #[getter]
    fn is_first(&self) -> bool {
        matches!(self.0.ask, Ask::Sample { .. })
    }

    /// Whether rows must bring labels.
    #[getter]
    fn wants_labels(&self) -> bool {
        self.0.labels != LabelRule::None
    }

    /// Whether it asks for order statistics, for tests.
    #[getter]
    fn is_about_ranks(&self) -> bool {
        matches!(self.0.ask, Ask::Ranks(_))
    }

    /// What `PartsFit` was given as `names`.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.names)
    }

    /// What the columns hold, empty in the first question: kind, levels by code (None: numbers), and whether a cell of
    /// any row is missing.
    #[getter]
    fn columns(&self) -> Vec<Held> {
        held(&self.0.columns)
    }

    /// An answer without rows.
    ///
    /// # Errors
    /// `ValueError` if the question's nodes are not one tree.
    fn gather(&self) -> PyResult<PyGathering> {
        Ok(PyGathering(Some(Gathering::new(self.0.clone())?)))
    }
}

/// Kind of a column, its levels by code (None: numbers), and whether a cell of any row is missing.
type Held = (String, Option<Vec<String>>, bool);

fn held(columns: &[PartColumn]) -> Vec<Held> {
    let column =
        |column: &PartColumn| (column.kind.clone(), column.levels.clone(), column.has_missing);
    columns.iter().map(column).collect()
}

/// What some rows hold in a column: its kind; the number of missing cells, and whether all are; its levels by code, none
/// for numbers; and the order of levels that its type declares, if any.
type FoundInRows = (String, u64, bool, Option<Vec<String>>, Option<Vec<String>>);

/// By kind the least part that has the column as such, and kinds in parts without a value; its levels, the orders that
/// types declare, whether some declare none; and the number of missing cells.
type FoundInAll = (Vec<(String, u64)>, Vec<String>, Vec<String>, Vec<Vec<String>>, bool, u64);

/// By column of levels a matrix or vector of numbers; None for numbers.
type OfLevels<'py> = Vec<Option<PyReadonlyArray2<'py, f64>>>;

fn of_levels(levels: &OfLevels<'_>) -> PyResult<Vec<Option<Vec<f64>>>> {
    let column = |costs: &Option<PyReadonlyArray2<'_, f64>>| match costs {
        Some(costs) => Ok(Some(slice2(costs)?.to_vec())),
        None => Ok(None),
    };
    levels.iter().map(column).collect()
}

/// Names of classes: whole numbers or words.
#[derive(FromPyObject, IntoPyObject)]
pub enum ClassesArgument {
    /// Whole numbers.
    #[pyo3(transparent)]
    Integers(Vec<i64>),
    /// Words.
    #[pyo3(transparent)]
    Texts(Vec<String>),
}

/// An answer on its way.
#[pyclass(name = "PartsGathering", module = "treeclust_rs._core")]
pub struct PyGathering(Option<Gathering>);

/// The error of an answer that was finished, or that an error has left incomplete.
fn finished() -> PyErr {
    PyValueError::new_err("This answer is finished: gather a new one.")
}

#[pymethods]
impl PyGathering {
    /// Adds a part, which may have no rows.
    fn add_part(&mut self, part: u64) -> PyResult<()> {
        self.0.as_mut().ok_or_else(finished)?.add_part(part);
        Ok(())
    }

    /// Takes note of what rows of a part hold by column, those of them that are not added too; then they are added.
    ///
    /// # Errors
    /// `ValueError` if sizes disagree.
    fn add_columns(&mut self, part: u64, found: Vec<FoundInRows>) -> PyResult<()> {
        let (mut columns, mut texts) = (vec![], vec![]);
        for (kind, n_missing, is_empty, levels, declared) in found {
            let mut column = FoundColumn { n_missing, ..FoundColumn::default() };
            if is_empty {
                column.empty_kinds.insert(kind);
            } else {
                column.kinds.insert(kind, part);
                column.is_unordered = levels.is_some() && declared.is_none();
                column.levels.extend(levels.iter().flatten().cloned());
                column.declared.extend(declared);
            }
            columns.push(column);
            texts.push(levels);
        }
        self.0.as_mut().ok_or_else(finished)?.add_columns(columns, texts)?;
        Ok(())
    }

    /// Adds rows of a part (n x d, each with a value in some column) with their weights, positive; None: 1 each. `labels`:
    /// the distinct labels, ascending, and by row its place among them, where the question wants labels.
    ///
    /// # Errors
    /// `ValueError` if sizes disagree, distances overflow, or labels lack, are too many, or were not there before;
    /// `KeyboardInterrupt`. The answer is then lost.
    fn add(
        &mut self,
        py: Python<'_>,
        table: TableArgument<'_>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
        labels: Option<(ClassesArgument, PyReadonlyArray1<'_, u32>)>,
        part: u64,
        n_jobs: Jobs<'_>,
    ) -> PyResult<()> {
        let (table, weights) = (table.table()?, optional(&sample_weight)?);
        let monitor = Monitor::default();
        let table = table.with_monitor(&monitor);
        let labels = labels.map(|(classes, codes)| match classes {
            ClassesArgument::Integers(names) => (Classes::Integers(names), codes),
            ClassesArgument::Texts(names) => (Classes::Texts(names), codes),
        });
        let labels = match &labels {
            Some((classes, codes)) => Some(BatchLabels { classes, codes: slice(codes)? }),
            None => None,
        };
        let mut gathering = self.0.take().ok_or_else(finished)?;
        self.0 = Some(run(py, &n_jobs, &monitor, None, move || {
            gathering.add(&table, weights, labels, part).map(|()| gathering)
        })?);
        Ok(())
    }

    /// The answer.
    fn finish(&mut self) -> PyResult<PyAnswer> {
        Ok(PyAnswer(self.0.take().ok_or_else(finished)?.finish()))
    }
}

/// What parts of the rows answer; answers to the same question add up.
#[pyclass(frozen, name = "PartsAnswer", module = "treeclust_rs._core")]
pub struct PyAnswer(Answer);

#[pymethods]
impl PyAnswer {
    /// Reads what `to_bytes` returned.
    ///
    /// # Errors
    /// `ValueError` if it is not an answer.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Ok(PyAnswer(Answer::from_bytes(data)?))
    }

    /// The answer as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// The sum of two answers.
    ///
    /// # Errors
    /// `ValueError` if they are to different questions, or a part is in both.
    fn plus(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let (a, b) = (self.0.clone(), other.0.clone());
        Ok(PyAnswer(py.detach(|| a.merge(b))?))
    }
}

/// Units of the columns, or how they are found.
#[derive(FromPyObject)]
enum ScaleArgument<'py> {
    Word(String),
    Units(PyReadonlyArray1<'py, f64>),
}

/// A fit that asks.
#[pyclass(name = "PartsFit", module = "treeclust_rs._core")]
pub struct PyPartsFit(PartsFit);

#[pymethods]
impl PyPartsFit {
    /// `names`: anything, for the questions. `centers`: in the columns' own units, a coordinate for each column of numbers
    /// and each level of the others; None: those of labels that the rows bring if `with_labels`, else `n_clusters` at most
    /// are found among `wanted_rows`. `scale`: units of the columns, "standard" or "robust". `manhattan`: l1 distances to
    /// medians. `cut_score`: of IMM's base, "mistakes" or "emn"; None: there is no base. `interval`: whether cuts after
    /// the base are intervals. `max_leaves` 0: one for each cluster. `bins` = (most bins, most rows opened to values) is for tests: it changes the rounds, never the tree.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    #[pyo3(signature = (names, n_features, n_clusters, centers, scale, *, manhattan, with_labels, cut_score, interval, max_leaves, max_depth,
                        min_samples_leaf, bins=None))]
    fn new(
        names: &[u8],
        n_features: usize,
        n_clusters: usize,
        centers: Option<PyReadonlyArray2<'_, f64>>,
        scale: ScaleArgument<'_>,
        manhattan: bool,
        with_labels: bool,
        cut_score: Option<&str>,
        interval: bool,
        max_leaves: usize,
        max_depth: Option<usize>,
        min_samples_leaf: usize,
        bins: Option<(usize, u64)>,
    ) -> PyResult<Self> {
        let reference = match &centers {
            Some(centers) => ReferenceRule::Centers {
                k: centers.as_array().nrows(),
                points: slice2(centers)?.to_vec(),
            },
            None if with_labels => ReferenceRule::Labels,
            None => ReferenceRule::Sample { n_clusters },
        };
        let scale = match &scale {
            ScaleArgument::Units(scale) => ScaleRule::Given(scale.as_slice()?.to_vec()),
            ScaleArgument::Word(word) if word == "standard" => ScaleRule::Standard,
            ScaleArgument::Word(word) if word == "robust" => ScaleRule::Robust,
            ScaleArgument::Word(word) => {
                return Err(PyValueError::new_err(format!("unknown scale {word:?}")));
            }
        };
        let metric = if manhattan { Metric::Manhattan } else { Metric::SquaredEuclidean };
        Ok(PyPartsFit(PartsFit::new(PartsSettings {
            n_features,
            names: names.to_vec(),
            reference,
            metric,
            scale,
            base: cut_score.map(super::fit::cut_score).transpose()?,
            cuts: if interval { CutKind::Interval } else { CutKind::Threshold },
            limits: Limits { max_leaves, max_depth, min_samples_leaf },
            bins,
        })?))
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// `ValueError` if it is none.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        Ok(PyPartsFit(py.detach(|| PartsFit::from_bytes(data))?))
    }

    /// A checkpoint.
    ///
    /// # Errors
    /// `ValueError` if the fit is over.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes()?))
    }

    /// The next question; None if the fit is over.
    fn question(&self) -> Option<PyQuestion> {
        self.0.question().map(|question| PyQuestion(Arc::new(question)))
    }

    /// The same for all fits of equal settings.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }

    /// Number of columns.
    #[getter]
    fn n_features(&self) -> usize {
        self.0.settings().n_features
    }

    /// Whether rows must bring labels.
    #[getter]
    fn with_labels(&self) -> bool {
        self.0.settings().reference == ReferenceRule::Labels
    }

    /// The labels that rows have brought, ascending; None before the first answer, or if they bring none.
    #[getter]
    fn classes(&self) -> Option<ClassesArgument> {
        self.0.classes().map(|classes| match classes {
            Classes::Integers(names) => ClassesArgument::Integers(names.clone()),
            Classes::Texts(names) => ClassesArgument::Texts(names.clone()),
        })
    }

    /// What `PartsFit` was given as `names`.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.settings().names)
    }

    /// The centers (k x coordinates) of IMM's base while it is grown, as unevaluated sums in the columns' own units; else None.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn base_centers(
        &self,
        py: Python<'_>,
    ) -> PyResult<Option<(Py<PyArray2<f64>>, Py<PyArray2<f64>>)>> {
        let Some(centers) = self.0.base_centers() else { return Ok(None) };
        let width = self.n_coordinates();
        let [high, low] = centers.map(|centers| matrix(py, centers.to_vec(), width));
        Ok(Some((high?.unbind(), low?.unbind())))
    }

    /// What the columns hold: as `PartsQuestion.columns`.
    #[getter]
    fn columns(&self) -> Vec<Held> {
        held(self.0.columns())
    }

    /// What was found in the columns, where `set_columns` must say what they hold before there is a question; else None.
    fn found_columns(&self) -> Option<Vec<FoundInAll>> {
        let column = |found: &FoundColumn| {
            (
                found.kinds.clone().into_iter().collect(),
                found.empty_kinds.iter().cloned().collect(),
                found.levels.iter().cloned().collect(),
                found.declared.iter().cloned().collect(),
                found.is_unordered,
                found.n_missing,
            )
        };
        self.0.found_columns().map(|columns| columns.iter().map(column).collect())
    }

    /// Takes what the columns hold: kind, and levels by code (None: numbers).
    ///
    /// # Errors
    /// `ValueError` if sizes disagree, or this is not wanted.
    fn set_columns(&mut self, columns: Vec<(String, Option<Vec<String>>)>) -> PyResult<()> {
        let found = self.0.found_columns().unwrap_or_default().to_vec();
        let column = |((kind, levels), found): ((String, Option<Vec<String>>), FoundColumn)| {
            let (has_missing, has_gaps) = (found.n_missing > 0, found.gaps > 0);
            let first = found.first.map(|(_, cell)| cell);
            let constant = found.constant(levels.as_deref());
            PartColumn { kind, levels, has_missing, has_gaps, constant, first }
        };
        Ok(self.0.set_columns(columns.into_iter().zip(found).map(column).collect())?)
    }

    /// What clusters are made of before there is a question: origins and units of the columns (columns of levels have the
    /// unit 1 where units are standard deviations); by column of levels the weight of each, where they are (else empty);
    /// the rows with their weights in the last column, none if centers were given; and whether these are all rows. None:
    /// no clusters are wanted.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn wanted_rows(
        &self,
        py: Python<'_>,
    ) -> PyResult<Option<(Floats, Floats, Vec<Option<Floats>>, Py<PyArray2<f64>>, bool)>> {
        let Some(wanted) = self.0.wanted() else { return Ok(None) };
        let width = wanted.units.shift.len() + 1;
        let rows = matrix(py, wanted.rows, width)?.unbind();
        let (shift, scale) = (array(py, wanted.units.shift), array(py, wanted.units.scale));
        let levels = wanted.levels.into_iter();
        let levels = levels.map(|weights| weights.map(|weights| array(py, weights))).collect();
        Ok(Some((shift, scale, levels, rows, wanted.are_all)))
    }

    /// The means of labels that rows bring, where `set_reference` must say what centers they are: in units (k x d), in the
    /// columns' own units as unevaluated sums, by label the squared distances to them over columns of numbers, and by
    /// column of levels their weights by label (k x number of levels); for medians, which have no spread, by column the most
    /// frequent level of each label, else empty. None: else.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn label_centers(
        &self,
        py: Python<'_>,
    ) -> PyResult<
        Option<(
            Py<PyArray2<f64>>,
            Py<PyArray2<f64>>,
            Py<PyArray2<f64>>,
            Floats,
            Vec<Option<Py<PyArray2<f64>>>>,
            Vec<Option<Vec<usize>>>,
        )>,
    > {
        let Some(found) = self.0.label_centers() else { return Ok(None) };
        let (k, d) = (found.spread.len(), self.0.settings().n_features);
        let points = |points: &Vec<f64>| Ok::<_, PyErr>(matrix(py, points.clone(), d)?.unbind());
        let (in_units, high, low) =
            (points(&found.in_units)?, points(&found.high)?, points(&found.low)?);
        let of_column = |weights: &Option<Vec<f64>>| match weights {
            Some(weights) => Ok(Some(matrix(py, weights.clone(), weights.len() / k)?.unbind())),
            None => Ok(None),
        };
        let levels = found.levels.iter().map(of_column).collect::<PyResult<_>>()?;
        let spread = array(py, found.spread.clone());
        Ok(Some((in_units, high, low, spread, levels, found.modes.clone())))
    }

    /// Takes the units of the columns and the centers of the clusters: in units (k x d, any for levels), what levels cost
    /// (by column k x number of levels; empty without levels), and, as unevaluated sums
    /// `own + low`, in the columns' own units. `shares`: `own` with the shares that levels have among the rows of each
    /// label, where those are others. `inertia`: what they cost, where all rows were there.
    ///
    /// # Errors
    /// `ValueError` if sizes disagree, or no clusters are wanted.
    #[expect(clippy::too_many_arguments, reason = "arguments of Python")]
    fn set_reference(
        &mut self,
        scale: PyReadonlyArray1<'_, f64>,
        in_units: PyReadonlyArray2<'_, f64>,
        levels: OfLevels<'_>,
        own: PyReadonlyArray2<'_, f64>,
        low: PyReadonlyArray2<'_, f64>,
        shares: Option<PyReadonlyArray2<'_, f64>>,
        inertia: Option<f64>,
    ) -> PyResult<()> {
        let (in_units, own) = (slice2(&in_units)?.to_vec(), slice2(&own)?.to_vec());
        let low = slice2(&low)?.to_vec();
        let (scale, levels) = (slice(&scale)?.to_vec(), of_levels(&levels)?);
        let shares = match &shares {
            Some(shares) => slice2(shares)?.to_vec(),
            None => vec![],
        };
        let found = FoundReference { scale, in_units, levels, own, low, shares, inertia };
        Ok(self.0.set_reference(found)?)
    }

    /// Centers that have moved, in the columns' own units, with origins and units of the columns, where `set_costs` must
    /// say what levels cost before there is a question; else None.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn moved_centers(
        &self,
        py: Python<'_>,
    ) -> PyResult<Option<(Py<PyArray2<f64>>, Floats, Floats)>> {
        let Some((own, units)) = self.0.moved_centers() else { return Ok(None) };
        let own = matrix(py, own.to_vec(), self.n_coordinates())?.unbind();
        Ok(Some((own, array(py, units.shift.clone()), array(py, units.scale.clone()))))
    }

    /// Takes moved centers in units, and what levels cost: as `set_reference`.
    ///
    /// # Errors
    /// `ValueError` if sizes disagree, or this is not wanted.
    fn set_costs(
        &mut self,
        in_units: PyReadonlyArray2<'_, f64>,
        levels: OfLevels<'_>,
    ) -> PyResult<()> {
        let (in_units, levels) = (slice2(&in_units)?.to_vec(), of_levels(&levels)?);
        Ok(self.0.set_costs(in_units, levels)?)
    }

    /// Takes the answer of all parts.
    ///
    /// # Errors
    /// `ValueError` if it is the answer to another question or of other parts, or sums leave the range of doubles.
    fn tell(&mut self, py: Python<'_>, answer: &PyAnswer, n_jobs: Jobs<'_>) -> PyResult<()> {
        let (fit, answer) = (&mut self.0, answer.0.clone());
        run(py, &n_jobs, &Monitor::default(), None, || fit.tell(answer))
    }

    /// [`PyPartsFit::tell`] of an answer that was gathered here; it is finished then.
    fn tell_gathered(
        &mut self,
        py: Python<'_>,
        gathering: &mut PyGathering,
        n_jobs: Jobs<'_>,
    ) -> PyResult<()> {
        let (fit, gathering) = (&mut self.0, gathering.0.take().ok_or_else(finished)?);
        run(py, &n_jobs, &Monitor::default(), None, || fit.tell(gathering.finish()))
    }

    /// Number of rows; 0 before the first answer.
    #[getter]
    fn n_rows(&self) -> u64 {
        self.0.n_rows()
    }

    /// Number of questions answered.
    #[getter]
    fn n_rounds(&self) -> u64 {
        self.0.n_rounds()
    }

    /// The fitted tree; None before the last answer.
    fn result(&self, py: Python<'_>) -> PyResult<Option<Py<PartsTree>>> {
        let tree = |result: &PartsResult| PartsTree::new(py, result.clone(), self.n_coordinates());
        self.0.result().map(tree).transpose()
    }
}

impl PyPartsFit {
    /// Number of coordinates of a center.
    fn n_coordinates(&self) -> usize {
        self.0.columns().iter().map(PartColumn::width).sum()
    }
}

/// Weight, means, rest, spread and observed weights of groups.
type Means = (Floats, Py<PyArray2<f64>>, Py<PyArray2<f64>>, Floats, Option<Py<PyArray2<f64>>>);

/// A tree fitted in parts. Arrays have an entry per node where nothing else is said.
#[pyclass(frozen, get_all, extends = PyTestArrays, module = "treeclust_rs._core")]
pub struct PartsTree {
    /// The largest value at or below each threshold or upper end of an interval; NaN at other nodes.
    below: Floats,
    /// The least value above it.
    above: Floats,
    /// The largest value below the lower end of an interval; NaN at other nodes.
    below_lower: Floats,
    /// The least value at or above it.
    above_lower: Floats,
    /// Number of rows.
    n_node_samples: Integers,
    /// Weight of the rows.
    weighted_n_node_samples: Floats,
    /// Shape (n_nodes, k): weight of the rows of each reference label.
    label_weight: Py<PyArray2<f64>>,
    /// Regret under the best label.
    cost: Floats,
    /// The best label.
    cluster: Integers,
    /// Label as a leaf of the base; -1 at other nodes.
    base_cluster: Integers,
    /// Regret of a base leaf's rows under that label; 0 elsewhere.
    base_cost: Floats,
    /// Weight that the cut of a base node separates from its centers; NaN elsewhere.
    mistakes: Floats,
    /// Shape (k,): rows nearest to each center, or with each label.
    label_rows: Integers,
    /// What the rows cost at least.
    minimum: f64,
    /// What the reference costs.
    reference_inertia: f64,
    /// Shape (k,): the same by label, in place of it; empty if rows bring no labels.
    reference_spread: Floats,
    /// Share of the weight that is nearer to another center than to that of its label.
    misfit: f64,
    /// What the centers of a sample cost, where they have moved since.
    cost_of_sample: Option<f64>,
    /// Shape (k, coordinates): the centers in the columns' own units.
    centers: Py<PyArray2<f64>>,
    /// Shape (d,): units of the columns.
    scale: Floats,
    /// Shape (n_groups,): the leaf of each group of `means`, or one of its leaves.
    leaves: Integers,
    /// Weight, means, what rounding left of them, spreads and observed weights of the groups: as of `group_means`; None
    /// for k-medians.
    means: Option<Means>,
    /// For k-medians the medians of the clusters, of shape (k, coordinates), and of shape (d,) what the rows cost about
    /// them by column.
    medians: Option<(Py<PyArray2<f64>>, Floats)>,
    /// By column of levels the weight of each in each group, of shape (n_groups, n_levels); None for numbers.
    levels: Vec<Option<Py<PyArray2<f64>>>>,
}

impl PartsTree {
    fn new(py: Python<'_>, result: PartsResult, n_coordinates: usize) -> PyResult<Py<Self>> {
        let (tests, _) = PyTestArrays::new(py, result.tests);
        let k = result.label_rows.len();
        let d = result.units.scale.len();
        let counts = |counts: Vec<u64>| -> Py<PyArray1<i64>> {
            array(py, counts.into_iter().map(|count| count as i64).collect())
        };
        let [below, above, below_lower, above_lower] = result.beside;
        let (mut leaves, mut means, mut levels, mut medians) = (vec![], None, vec![], None);
        match result.clusters {
            Clusters::Means { leaves: of_groups, means: found, levels: weights } => {
                leaves = of_groups;
                let n_groups = found.weight.len();
                let of_groups = |weights: Option<Vec<f64>>| -> PyResult<Option<Py<PyArray2<f64>>>> {
                    let Some(weights) = weights else { return Ok(None) };
                    let n_levels = weights.len() / n_groups;
                    Ok(Some(matrix(py, weights, n_levels)?.unbind()))
                };
                levels = weights.into_iter().map(of_groups).collect::<PyResult<_>>()?;
                let observed =
                    found.observed.map(|observed| matrix(py, observed, d)).transpose()?;
                means = Some((
                    array(py, found.weight),
                    matrix(py, found.means, d)?.unbind(),
                    matrix(py, found.rest, d)?.unbind(),
                    array(py, found.spread),
                    observed.map(Bound::unbind),
                ));
            }
            Clusters::Medians { centers, costs } => {
                let centers = matrix(py, centers, n_coordinates)?.unbind();
                medians = Some((centers, array(py, costs)));
            }
        }
        let tree = PartsTree {
            below: array(py, below),
            above: array(py, above),
            below_lower: array(py, below_lower),
            above_lower: array(py, above_lower),
            n_node_samples: counts(result.n_samples),
            weighted_n_node_samples: array(py, result.weight),
            label_weight: matrix(py, result.label_weight, k)?.unbind(),
            cost: array(py, result.cost),
            cluster: integers(py, result.cluster),
            base_cluster: array(
                py,
                result.base_cluster.iter().map(|c| c.map_or(-1, |c| c as i64)).collect(),
            ),
            base_cost: array(py, result.base_cost),
            mistakes: array(py, result.mistakes),
            label_rows: counts(result.label_rows),
            minimum: result.minimum,
            reference_inertia: result.reference_inertia,
            reference_spread: array(py, result.reference_spread),
            misfit: result.misfit,
            cost_of_sample: result.cost_of_sample,
            centers: matrix(py, result.centers, n_coordinates)?.unbind(),
            scale: array(py, result.units.scale),
            leaves: integers(py, leaves),
            means,
            medians,
            levels,
        };
        Py::new(py, (tree, tests))
    }
}
