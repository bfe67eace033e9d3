//! Oblique trees, and axis-aligned ones fitted in the same way.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::TableArgument;
use super::fit::{Arrays, Oblique, Sparse, matrix, optional, slice, slice2, tree_arrays, units};
use super::run::{Jobs, run};
use crate::costs::Units;
use crate::error::{Error, Result};
use crate::index::{Index, MAX_BINS};
use crate::oblique::design::{Csr, Design};
use crate::oblique::fit::{Fitted, Plan, Problem, Schedule, Step, direct, path};
use crate::oblique::geometry::Geometry;
use crate::oblique::initial::{self, Start};
use crate::oblique::logistic::Options;
use crate::oblique::rows::{Rows, SparseRows};
use crate::oblique::spherical;
use crate::oblique::tao::{Leaf, Node, Plane, Splits, Test, Tree};
use crate::parallel::Monitor;
use crate::table::Table;
use crate::tree::TreeArrays;

/// TAO iterations on the free clustering's labels before anything else (the paper's I = 20), and in a round.
const FIRST: usize = 20;
const PASSES_DIRECT: usize = 3;
const PASSES_PATH: usize = 5;
/// A round of the direct solver that lowers the objective by a smaller share is the last.
const TOL: f64 = 1e-4;
/// Sweeps over the weights of a test.
const SWEEPS: usize = 2;
/// Of the logistic problems.
const SOLVER: Options = Options { tol: 1e-3, max_iter: 100 };

/// The rows of a fit, as they arrive: a table, or a sparse matrix.
#[derive(FromPyObject)]
pub enum RowsArgument<'py> {
    #[pyo3(transparent)]
    Sparse(Sparse<'py>),
    #[pyo3(transparent)]
    Table(TableArgument<'py>),
}

/// The same in the types of the core; a sparse matrix has its indices copied.
enum Held<'a> {
    Table(Table<'a>),
    Sparse { indptr: Vec<usize>, indices: Vec<u32>, values: &'a [f64], n_columns: usize },
}

impl RowsArgument<'_> {
    fn held<'a>(&'a self, monitor: &'a Monitor) -> PyResult<Held<'a>> {
        let (indptr, indices, values, n_columns) = match self {
            RowsArgument::Table(table) => {
                return Ok(Held::Table(table.table()?.with_monitor(monitor)));
            }
            RowsArgument::Sparse(sparse) => sparse,
        };
        let bad =
            |_| PyValueError::new_err("An index of the sparse matrix is negative or too large.");
        let indptr = slice(indptr)?.iter().map(|&i| usize::try_from(i).map_err(bad));
        let indices = slice(indices)?.iter().map(|&i| u32::try_from(i).map_err(bad));
        Ok(Held::Sparse {
            indptr: indptr.collect::<PyResult<_>>()?,
            indices: indices.collect::<PyResult<_>>()?,
            values: slice(values)?,
            n_columns: *n_columns,
        })
    }
}

impl<'t> Held<'t> {
    fn rows(&self) -> Result<Rows<'_, 't>> {
        Ok(match self {
            Held::Table(table) => Rows::Table(table),
            Held::Sparse { indptr, indices, values, n_columns } => {
                let matrix = Csr { indptr, indices, values, n_columns: *n_columns };
                Rows::Sparse(SparseRows::new(matrix)?)
            }
        })
    }
}

/// A tree to start from.
fn given_tree(arrays: TreeArrays<'_>, cluster: &[i64], axis: bool) -> Result<Tree> {
    let bad = |id: usize| Error::Tree(format!("node {id} cannot be what a fit starts from."));
    let node = |id: usize| -> Result<Node> {
        let kind = *arrays.kind.get(id).ok_or_else(|| bad(id))?;
        if kind == 0 {
            let label = u32::try_from(*cluster.get(id).ok_or_else(|| bad(id))?);
            return Ok(Node::Leaf(Leaf { label: label.map_err(|_| bad(id))?, shares: vec![] }));
        }
        let child = |children: &[i64]| {
            let child = children.get(id).and_then(|&child| usize::try_from(child).ok());
            child.filter(|&child| id < child && child < arrays.kind.len()).ok_or_else(|| bad(id))
        };
        let (left, right) = (child(arrays.children_left)?, child(arrays.children_right)?);
        let test = match (kind, arrays.oblique, axis) {
            (1, _, _) => {
                let feature = usize::try_from(arrays.feature[id]).map_err(|_| bad(id))?;
                let threshold = arrays.threshold[id];
                if axis {
                    Test::Threshold { feature, threshold }
                } else {
                    // x <= threshold is x < the next double.
                    let weights = vec![(feature as u32, 1.0)];
                    Test::Oblique(Plane { weights, bias: -threshold.next_up() })
                }
            }
            (3, Some(oblique), false) => {
                let terms = oblique.indptr[id] as usize..oblique.indptr[id + 1] as usize;
                let indices = oblique.indices[terms.clone()].iter().map(|&j| j as u32);
                let weights = indices.zip(oblique.weights[terms].iter().copied()).collect();
                Test::Oblique(Plane { weights, bias: oblique.bias[id] })
            }
            _ => return Err(bad(id)),
        };
        Ok(Node::Split { test, left, right })
    };
    Ok(Tree { nodes: (0..arrays.kind.len()).map(node).collect::<Result<_>>()? })
}

/// Fits an oblique or axis-aligned tree; returns its arrays by name. Sparse rows only with `cosine`. `init`: "bisecting"
/// or "random" where no `tree` is given. `schedule`: factor and number of values of mu, and whether leaves hold
/// histograms; none: the direct solver.
#[pyfunction]
#[pyo3(signature = (rows, *, shift, scale, cosine, centers, labels, sample_weight, init, tree, axis, alpha,
                    max_depth, max_iter, schedule, relax, seed, n_jobs, progress))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_oblique<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    shift: PyReadonlyArray1<'_, f64>,
    scale: PyReadonlyArray1<'_, f64>,
    cosine: bool,
    centers: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, u32>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    init: &str,
    tree: Option<(Arrays<'_>, PyReadonlyArray1<'_, i64>, Option<Oblique<'_>>)>,
    axis: bool,
    alpha: f64,
    max_depth: usize,
    max_iter: usize,
    schedule: Option<(f64, usize, bool)>,
    relax: bool,
    seed: u64,
    n_jobs: Jobs<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let monitor = Monitor::default();
    let held = rows.held(&monitor)?;
    let rows = held.rows()?;
    let units = units(&shift, &scale, rows.n_features())?;
    let weights = optional(&sample_weight)?;
    let (centers, labels) = (slice2(&centers)?, slice(&labels)?);
    let tree = match &tree {
        Some((arrays, cluster, oblique)) => {
            let arrays = tree_arrays(arrays, oblique.as_ref())?;
            Some(given_tree(arrays, slice(cluster)?, axis)?)
        }
        None => None,
    };
    let begin = if init == "random" { Start::Random } else { Start::Bisecting };
    let fitted = run(py, &n_jobs, &monitor, progress, || {
        let geometry = geometry(rows, &units, cosine);
        let (keep_labels, n_leaves) = (tree.is_some(), tree.as_ref().map(Tree::n_leaves));
        let start = match tree {
            Some(tree) => tree,
            // Axis-aligned trees grow from one leaf.
            None if axis => Tree::leaf(0),
            None => initial::tree(&geometry, weights, begin, max_depth, seed, &monitor)?,
        };
        let plan = Plan {
            lambda: alpha,
            max_depth: if keep_labels { start.max_depth() } else { max_depth },
            max_leaves: n_leaves.unwrap_or(usize::MAX),
            keep_labels,
            n_first: FIRST,
            n_passes: if schedule.is_some() { PASSES_PATH } else { PASSES_DIRECT },
            max_iter,
            tol: TOL,
            n_sweeps: SWEEPS,
            relax,
            solver: SOLVER,
        };
        let schedule =
            schedule.map(|(factor, n_steps, histograms)| Schedule { factor, n_steps, histograms });
        let fit = |splits| {
            let problem = Problem { geometry: &geometry, splits, weights, labels, centers };
            match &schedule {
                Some(schedule) => path(&problem, start, &plan, schedule, &monitor),
                None => direct(&problem, start, &plan, &monitor),
            }
        };
        match rows {
            Rows::Table(table) if axis => {
                let index = Index::new(table, MAX_BINS);
                monitor.check()?;
                fit(Splits::Axis { table, index: &index })
            }
            _ => {
                let design = match rows {
                    Rows::Table(table) => Design::from_table(table)?,
                    Rows::Sparse(sparse) => sparse.design()?,
                };
                monitor.check()?;
                let shares = units.scale.iter().any(|s| *s != 1.0).then_some(&units.scale[..]);
                fit(Splits::Oblique { rows, design: &design, shares })
            }
        }
    })?;
    to_dict(py, fitted, rows.n_features())
}

fn geometry<'a, 't>(rows: Rows<'a, 't>, units: &'a Units, cosine: bool) -> Geometry<'a, 't> {
    if cosine { Geometry::cosine(rows) } else { Geometry::Euclidean { rows, units } }
}

/// Spherical k-means: labels and centers of the best of `n_init` starts.
#[pyfunction]
#[pyo3(signature = (rows, n_clusters, *, sample_weight, n_init, max_iter, seed, n_jobs))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "a flat Python signature")]
pub fn spherical_kmeans<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    n_clusters: usize,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_init: usize,
    max_iter: usize,
    seed: u64,
    n_jobs: Jobs<'_>,
) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray2<f64>>)> {
    let monitor = Monitor::default();
    let held = rows.held(&monitor)?;
    let rows = held.rows()?;
    let weights = optional(&sample_weight)?;
    let found = run(py, &n_jobs, &monitor, None, || {
        let options = spherical::Options { n_clusters, n_init, max_iter, seed };
        spherical::kmeans(&Geometry::cosine(rows), weights, &options, &monitor)
    })?;
    Ok((found.labels.into_pyarray(py), matrix(py, found.centers, rows.n_features())?))
}

/// The nearest center of every row, and the cost of the rows about the centers of given labels (else the nearest).
#[pyfunction]
#[pyo3(signature = (rows, *, shift, scale, cosine, centers, labels, sample_weight, n_jobs))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn assign_rows<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    shift: PyReadonlyArray1<'_, f64>,
    scale: PyReadonlyArray1<'_, f64>,
    cosine: bool,
    centers: PyReadonlyArray2<'_, f64>,
    labels: Option<PyReadonlyArray1<'_, u32>>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_jobs: Jobs<'_>,
) -> PyResult<(Bound<'py, PyArray1<u32>>, f64)> {
    let monitor = Monitor::default();
    let held = rows.held(&monitor)?;
    let rows = held.rows()?;
    let units = units(&shift, &scale, rows.n_features())?;
    let (weights, k) = (optional(&sample_weight)?, centers.as_array().nrows());
    let centers = slice2(&centers)?;
    let labels = labels.as_ref().map(slice).transpose()?;
    let (nearest, cost) = run(py, &n_jobs, &monitor, None, || {
        check_labels(labels, rows.n_samples(), k)?;
        let costs = geometry(rows, &units, cosine).costs(centers, weights)?;
        let regrets = costs.regrets.chunks(k).zip(labels.unwrap_or(&costs.nearest));
        let own: f64 = regrets.map(|(row, &label)| row[label as usize]).sum();
        Ok((costs.nearest, costs.minimum + own))
    })?;
    Ok((nearest.into_pyarray(py), cost))
}

/// The centers (in units) of the clusters of given labels; those without rows keep the ones given.
#[pyfunction]
#[pyo3(signature = (rows, *, shift, scale, cosine, centers, labels, sample_weight, n_jobs))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn mean_centers<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    shift: PyReadonlyArray1<'_, f64>,
    scale: PyReadonlyArray1<'_, f64>,
    cosine: bool,
    centers: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, u32>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_jobs: Jobs<'_>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let monitor = Monitor::default();
    let held = rows.held(&monitor)?;
    let rows = held.rows()?;
    let units = units(&shift, &scale, rows.n_features())?;
    let (weights, k) = (optional(&sample_weight)?, centers.as_array().nrows());
    let (centers, labels) = (slice2(&centers)?, slice(&labels)?);
    let found = run(py, &n_jobs, &monitor, None, || {
        check_labels(Some(labels), rows.n_samples(), k)?;
        geometry(rows, &units, cosine).centers(labels, weights, centers)
    })?;
    matrix(py, found, rows.n_features())
}

fn check_labels(labels: Option<&[u32]>, n_samples: usize, k: usize) -> Result<()> {
    let Some(labels) = labels else { return Ok(()) };
    Error::check_len("labels", labels.len(), n_samples, "rows")?;
    match labels.iter().find(|&&label| label as usize >= k) {
        Some(label) => Err(Error::Value(format!("Label {label} is not in the range [0, {k})."))),
        None => Ok(()),
    }
}

fn to_dict(py: Python<'_>, fitted: Fitted, n_features: usize) -> PyResult<Bound<'_, PyDict>> {
    let Fitted { tree, centers, steps, converged, summary } = fitted;
    let k = centers.len() / n_features.max(1);
    let nodes = &tree.nodes;
    let dict = PyDict::new(py);
    let each = |of: &dyn Fn(&Node) -> i64| nodes.iter().map(of).collect::<Vec<i64>>();
    let kind = |node: &Node| match node {
        Node::Leaf(_) => 0i8,
        Node::Split { test: Test::Threshold { .. }, .. } => 1,
        Node::Split { test: Test::Oblique(_), .. } => 3,
    };
    dict.set_item("kind", nodes.iter().map(kind).collect::<Vec<i8>>().into_pyarray(py))?;
    let feature = |node: &Node| match node {
        Node::Split { test: Test::Threshold { feature, .. }, .. } => *feature as i64,
        _ => -2,
    };
    dict.set_item("feature", each(&feature).into_pyarray(py))?;
    let threshold = |node: &Node| match node {
        Node::Leaf(_) => -2.0,
        Node::Split { test: Test::Threshold { threshold, .. }, .. } => *threshold,
        Node::Split { test: Test::Oblique(_), .. } => f64::NAN,
    };
    dict.set_item("threshold", nodes.iter().map(threshold).collect::<Vec<f64>>().into_pyarray(py))?;
    let children = |node: &Node| match node {
        Node::Leaf(_) => [-1, -1],
        Node::Split { left, right, .. } => [*left as i64, *right as i64],
    };
    dict.set_item("children_left", each(&|node| children(node)[0]).into_pyarray(py))?;
    dict.set_item("children_right", each(&|node| children(node)[1]).into_pyarray(py))?;
    let mut indptr = vec![0i64];
    let (mut indices, mut weights, mut bias) = (vec![], vec![], vec![]);
    for node in nodes {
        let plane = match node {
            Node::Split { test: Test::Oblique(plane), .. } => Some(plane),
            _ => None,
        };
        let terms = plane.iter().flat_map(|plane| &plane.weights);
        for &(column, weight) in terms {
            indices.push(i64::from(column));
            weights.push(weight);
        }
        bias.push(plane.map_or(f64::NAN, |plane| plane.bias));
        indptr.push(indices.len() as i64);
    }
    dict.set_item("oblique_indptr", indptr.into_pyarray(py))?;
    dict.set_item("oblique_indices", indices.into_pyarray(py))?;
    dict.set_item("oblique_weights", weights.into_pyarray(py))?;
    dict.set_item("oblique_bias", bias.into_pyarray(py))?;
    let cluster = |node: &Node| match node {
        Node::Leaf(leaf) => i64::from(leaf.label),
        Node::Split { .. } => -1,
    };
    dict.set_item("cluster", each(&cluster).into_pyarray(py))?;
    dict.set_item("regrets", matrix(py, summary.regrets, k)?)?;
    dict.set_item("leaf_of_row", summary.leaf_of_row.into_pyarray(py))?;
    dict.set_item("centers", matrix(py, centers, n_features)?)?;
    dict.set_item("inertia", summary.inertia)?;
    dict.set_item("free_inertia", summary.free_inertia)?;
    dict.set_item("converged", converged)?;
    let column = |of: fn(&Step) -> f64| steps.iter().map(of).collect::<Vec<f64>>().into_pyarray(py);
    dict.set_item("mu", column(|step| step.mu))?;
    dict.set_item("cost", column(|step| step.objective.loss))?;
    dict.set_item("penalty", column(|step| step.objective.penalty))?;
    dict.set_item("mismatch", column(|step| step.mismatch))?;
    let count =
        |of: fn(&Step) -> usize| -> Vec<i64> { steps.iter().map(|step| of(step) as i64).collect() };
    dict.set_item("n_weights", count(|step| step.n_weights).into_pyarray(py))?;
    dict.set_item("n_leaves", count(|step| step.n_leaves).into_pyarray(py))?;
    Ok(dict)
}
