//! Oblique trees.

use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::TableArgument;
use super::fit::{optional, slice, slice2, units};
use super::run::run;
use crate::oblique::fit::{Plan, Problem, direct};
use crate::oblique::geometry::Geometry;
use crate::oblique::initial;
use crate::oblique::logistic::{Design, Options};
use crate::oblique::tao::{Columns, Node, Test};
use crate::parallel::Monitor;

/// Trial.
#[pyfunction]
#[pyo3(signature = (table, design, shift, scale, centers, labels, sample_weight, alpha, max_depth, n_first, max_iter, n_passes, tol, grow, seed, solver_tol, n_refine, refine_from, n_jobs))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_oblique<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
    design: PyReadonlyArray2<'_, f64>,
    shift: PyReadonlyArray1<'_, f64>,
    scale: PyReadonlyArray1<'_, f64>,
    centers: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, u32>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    alpha: f64,
    max_depth: usize,
    n_first: usize,
    max_iter: usize,
    n_passes: usize,
    tol: f64,
    grow: bool,
    seed: u64,
    solver_tol: f64,
    n_refine: usize,
    refine_from: usize,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let table = table.table()?;
    let units = units(&shift, &scale, table.n_features())?;
    let n = table.n_samples();
    let k = centers.as_array().nrows();
    let values = slice2(&design)?; // d x n
    let design = Design::Dense { values, n_samples: n };
    let weights = optional(&sample_weight)?;
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let problem = Problem {
        geometry: Geometry::Euclidean { table: &table, units: &units },
        columns: Columns::Oblique(&design),
        n_samples: n,
        weights,
        k,
        centers: slice2(&centers)?,
        labels: slice(&labels)?,
    };
    let plan = Plan {
        lambda: alpha,
        max_depth,
        n_first,
        max_iter,
        n_passes,
        tol,
        grow,
        n_refine,
        refine_from,
        solver: Options { tol: solver_tol, max_iter: 100 },
    };
    let fitted = run(py, n_jobs, &monitor, None, || {
        let ones = vec![1.0; n];
        let rows = initial::Rows {
            design: &design,
            n_features: table.n_features(),
            factor: weights.unwrap_or(&ones),
            spherical: false,
        };
        let start = initial::tree(&rows, initial::Start::Bisecting, max_depth, seed, &monitor)?;
        direct(&problem, start, &plan, &monitor)
    })?;
    let dict = PyDict::new(py);
    let steps: Vec<(f64, f64, usize, usize)> = fitted
        .steps
        .iter()
        .map(|s| (s.objective.loss, s.objective.penalty, s.n_weights, s.n_leaves))
        .collect();
    dict.set_item("steps", steps)?;
    let features: Vec<usize> = fitted
        .tree
        .nodes
        .iter()
        .map(|node| match node {
            Node::Split { test: Test::Oblique { weights, .. }, .. } => weights.len(),
            _ => 0,
        })
        .collect();
    dict.set_item("features", features)?;
    dict.set_item("centers", fitted.centers.into_pyarray(py))?;
    Ok(dict)
}
