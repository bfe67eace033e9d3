//! Oblique trees.

use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::TableArgument;
use super::fit::{optional, slice, slice2, units};
use super::run::run;
use crate::oblique::design::Design;
use crate::oblique::fit::{Plan, Problem, Schedule, direct, path};
use crate::oblique::geometry::Geometry;
use crate::oblique::initial;
use crate::oblique::logistic::Options;
use crate::oblique::rows::Rows;
use crate::oblique::tao::Splits;
use crate::parallel::Monitor;

/// Trial.
#[pyfunction]
#[pyo3(signature = (table, shift, scale, centers, labels, sample_weight, alpha, max_depth, n_first, max_iter, n_passes, tol, grow, seed, solver_tol, n_sweeps, by_path, n_jobs))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
pub fn fit_oblique<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
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
    n_sweeps: usize,
    by_path: bool,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let table = table.table()?;
    let units = units(&shift, &scale, table.n_features())?;
    let weights = optional(&sample_weight)?;
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let rows = Rows::Table(&table);
    let geometry = Geometry::Euclidean { rows, units: &units };
    let centers = slice2(&centers)?;
    let labels = slice(&labels)?;
    let plan = Plan {
        lambda: alpha,
        max_depth,
        n_first,
        max_iter,
        n_passes,
        tol,
        grow,
        n_sweeps,
        solver: Options { tol: solver_tol, max_iter: 100 },
    };
    let fitted = run(py, n_jobs, &monitor, None, || {
        let design = Design::from_table(&table)?;
        let problem = Problem {
            geometry: &geometry,
            splits: Splits::Oblique { rows, design: &design, shares: Some(&units.scale) },
            weights,
            centers,
            labels,
        };
        let start = initial::tree(
            &geometry,
            weights,
            initial::Start::Bisecting,
            max_depth,
            seed,
            &monitor,
        )?;
        if by_path {
            let schedule = Schedule { factor: 1.1, n_steps: 100, histograms: false };
            path(&problem, start, &plan, &schedule, &monitor)
        } else {
            direct(&problem, start, &plan, &monitor)
        }
    })?;
    let dict = PyDict::new(py);
    let steps: Vec<(f64, f64, usize, usize, f64)> = fitted
        .steps
        .iter()
        .map(|s| (s.objective.loss, s.objective.penalty, s.n_weights, s.n_leaves, s.mismatch))
        .collect();
    dict.set_item("steps", steps)?;
    dict.set_item("centers", fitted.centers.into_pyarray(py))?;
    Ok(dict)
}
