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
use crate::grow::Limits;
use crate::parallel::Monitor;
use crate::parts::{
    Answer, BatchLabels, Classes, FoundReference, Gathering, LabelRule, PartsFit, PartsResult,
    PartsSettings, Question, ReferenceRule, ScaleRule,
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
        self.0.id.1 == 0
    }

    /// Whether rows must bring labels.
    #[getter]
    fn wants_labels(&self) -> bool {
        self.0.labels != LabelRule::None
    }

    /// What `PartsFit` was given as `names`.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.names)
    }

    /// An answer without rows.
    ///
    /// # Errors
    /// `ValueError` if the question's nodes are not one tree.
    fn gather(&self) -> PyResult<PyGathering> {
        Ok(PyGathering(Some(Gathering::new(self.0.clone())?)))
    }
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

    /// Adds rows of a part (n x d, numbers without gaps) with their weights, positive; None: 1 each. `labels`: the distinct
    /// labels, ascending, and by row its place among them, where the question wants labels.
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

/// A fit that asks.
#[pyclass(name = "PartsFit", module = "treeclust_rs._core")]
pub struct PyPartsFit(PartsFit);

#[pymethods]
impl PyPartsFit {
    /// `names`: anything, for the questions. `centers`: k x d, in the columns' own units; None: those of labels that the
    /// rows bring if `with_labels`, else `n_clusters` at most are found among `wanted_rows`. `scale`: units of the columns; None: their standard deviations. `max_leaves` 0: one for
    /// each cluster. `bins` = (most bins, most rows opened to values) is for tests: it changes the
    /// rounds, never the tree.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    #[pyo3(signature = (names, n_features, n_clusters, centers, scale, *, with_labels, max_leaves, max_depth,
                        min_samples_leaf, bins=None))]
    fn new(
        names: &[u8],
        n_features: usize,
        n_clusters: usize,
        centers: Option<PyReadonlyArray2<'_, f64>>,
        scale: Option<PyReadonlyArray1<'_, f64>>,
        with_labels: bool,
        max_leaves: usize,
        max_depth: Option<usize>,
        min_samples_leaf: usize,
        bins: Option<(usize, u64)>,
    ) -> PyResult<Self> {
        let reference = match &centers {
            Some(centers) => ReferenceRule::Centers(slice2(centers)?.to_vec()),
            None if with_labels => ReferenceRule::Labels,
            None => ReferenceRule::Sample { n_clusters },
        };
        let scale = match optional(&scale)? {
            Some(scale) => ScaleRule::Given(scale.to_vec()),
            None => ScaleRule::Standard,
        };
        Ok(PyPartsFit(PartsFit::new(PartsSettings {
            n_features,
            names: names.to_vec(),
            reference,
            scale,
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

    /// Rows among which clusters must be found before there is a question: origins and units of the columns, the rows
    /// with their weights in the last column, and whether these are all rows. None: no clusters are wanted.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn wanted_rows(
        &self,
        py: Python<'_>,
    ) -> PyResult<Option<(Floats, Floats, Py<PyArray2<f64>>, bool)>> {
        let Some(wanted) = self.0.wanted() else { return Ok(None) };
        let width = wanted.units.shift.len() + 1;
        let rows = matrix(py, wanted.rows, width)?.unbind();
        let (shift, scale) = (array(py, wanted.units.shift), array(py, wanted.units.scale));
        Ok(Some((shift, scale, rows, wanted.are_all)))
    }

    /// Takes centers of the clusters that were found: k x d in units and in the columns' own. `inertia`: what they
    /// cost, where all rows were there.
    ///
    /// # Errors
    /// `ValueError` if sizes disagree, or no clusters are wanted.
    fn set_reference(
        &mut self,
        in_units: PyReadonlyArray2<'_, f64>,
        own: PyReadonlyArray2<'_, f64>,
        inertia: Option<f64>,
    ) -> PyResult<()> {
        let (in_units, own) = (slice2(&in_units)?.to_vec(), slice2(&own)?.to_vec());
        Ok(self.0.set_reference(FoundReference { in_units, own, inertia })?)
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
        self.0.result().map(|result| PartsTree::new(py, result.clone())).transpose()
    }
}

/// A tree fitted in parts. Arrays have an entry per node where nothing else is said.
#[pyclass(frozen, get_all, extends = PyTestArrays, module = "treeclust_rs._core")]
pub struct PartsTree {
    /// The largest value left of each cut; NaN at leaves.
    below: Floats,
    /// The least value right of it.
    above: Floats,
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
    /// Shape (k, d): the centers in the columns' own units.
    centers: Py<PyArray2<f64>>,
    /// Shape (d,): units of the columns.
    scale: Floats,
    /// Shape (n_groups,): the leaf of each group of `means`, or one of its leaves.
    leaves: Integers,
    /// Weight, means, what rounding left of them and spreads of the groups: as of `group_means`.
    means: (Floats, Py<PyArray2<f64>>, Py<PyArray2<f64>>, Floats),
}

impl PartsTree {
    fn new(py: Python<'_>, result: PartsResult) -> PyResult<Py<Self>> {
        let (tests, _) = PyTestArrays::new(py, result.tests);
        let k = result.label_rows.len();
        let d = result.units.scale.len();
        let counts = |counts: Vec<u64>| -> Py<PyArray1<i64>> {
            array(py, counts.into_iter().map(|count| count as i64).collect())
        };
        let [below, above] = result.beside;
        let means = result.means;
        let tree = PartsTree {
            below: array(py, below),
            above: array(py, above),
            n_node_samples: counts(result.n_samples),
            weighted_n_node_samples: array(py, result.weight),
            label_weight: matrix(py, result.label_weight, k)?.unbind(),
            cost: array(py, result.cost),
            cluster: integers(py, result.cluster),
            label_rows: counts(result.label_rows),
            minimum: result.minimum,
            reference_inertia: result.reference_inertia,
            reference_spread: array(py, result.reference_spread),
            misfit: result.misfit,
            cost_of_sample: result.cost_of_sample,
            centers: matrix(py, result.centers, d)?.unbind(),
            scale: array(py, result.units.scale),
            leaves: integers(py, result.leaves),
            means: (
                array(py, means.weight),
                matrix(py, means.means, d)?.unbind(),
                matrix(py, means.rest, d)?.unbind(),
                array(py, means.spread),
            ),
        };
        Py::new(py, (tree, tests))
    }
}
