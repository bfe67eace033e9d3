//! The node solver of oblique trees, by itself: for tests and benches.

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::TableArgument;
use super::fit::{optional, slice};
use super::run::{Jobs, run};
use crate::oblique::cells::{NARROW, Place};
use crate::oblique::design::Design;
use crate::oblique::logistic::{Kept, Options, Origin, Problem, Start, solve_from};
use crate::parallel::Monitor;

/// A matrix ready for `l1_logistic`: from a table, or from the `indptr`, `indices` and `data` of a CSR matrix.
#[pyclass(name = "Design", frozen)]
pub struct PyDesign(Design);

/// What a solve leaves for the next one on the same rows.
#[pyclass(name = "Kept", frozen)]
pub struct PyKept(Kept);

/// The `data` of a CSR matrix.
#[derive(FromPyObject)]
pub enum Data<'py> {
    F64(PyReadonlyArray1<'py, f64>),
    F32(PyReadonlyArray1<'py, f32>),
}

/// Where a solve starts.
#[derive(FromPyObject)]
pub enum StartArgument<'py> {
    Kept(Bound<'py, PyKept>),
    Weights(PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>, f64),
}

/// The `indptr` or `indices` of a CSR matrix.
#[derive(FromPyObject)]
pub enum Index<'py> {
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
}

impl Index<'_> {
    /// Negative and too large ones become the largest value, which no check lets pass.
    fn to<T: TryFrom<i64> + Copy>(&self, largest: T) -> PyResult<Vec<T>> {
        let of = |i: i64| T::try_from(i).unwrap_or(largest);
        Ok(match self {
            Index::I32(array) => slice(array)?.iter().map(|&i| of(i.into())).collect(),
            Index::I64(array) => slice(array)?.iter().map(|&i| of(i)).collect(),
        })
    }
}

#[pymethods]
impl PyDesign {
    #[staticmethod]
    fn from_table(py: Python<'_>, table: TableArgument<'_>, n_jobs: Jobs<'_>) -> PyResult<Self> {
        let monitor = Monitor::default();
        let table = table.table()?;
        run(py, &n_jobs, &monitor, None, || Design::from_table(&table)).map(PyDesign)
    }

    #[staticmethod]
    fn from_csr(
        py: Python<'_>,
        indptr: Index<'_>,
        indices: Index<'_>,
        data: Data<'_>,
        n_columns: usize,
        n_jobs: Jobs<'_>,
    ) -> PyResult<Self> {
        let indptr = indptr.to(usize::MAX)?;
        if n_columns <= NARROW {
            csr(py, &n_jobs, indptr, indices.to(u16::MAX)?, &data, n_columns)
        } else {
            csr(py, &n_jobs, indptr, indices.to(u32::MAX)?, &data, n_columns)
        }
    }
}

fn csr<J: Place>(
    py: Python<'_>,
    n_jobs: &Jobs<'_>,
    indptr: Vec<usize>,
    indices: Vec<J>,
    data: &Data<'_>,
    n_columns: usize,
) -> PyResult<PyDesign> {
    let monitor = Monitor::default();
    let made = match data {
        Data::F64(data) => {
            let data = slice(data)?;
            run(py, n_jobs, &monitor, None, || Design::from_csr(indptr, indices, data, n_columns))
        }
        Data::F32(data) => {
            let data = slice(data)?;
            run(py, n_jobs, &monitor, None, || Design::from_csr(indptr, indices, data, n_columns))
        }
    };
    made.map(PyDesign)
}

/// Solves an l1 logistic regression; returns the solution by name. `start`: columns, weights and bias, or what the
/// solution of another problem on the same matrix calls `kept`.
#[pyfunction]
#[pyo3(signature = (design, rows, sign, weight, *, strength, penalty, start, tol, max_iter, n_jobs))]
#[allow(clippy::too_many_arguments, reason = "a flat Python signature")]
#[allow(clippy::type_complexity, reason = "a triple of arrays")]
pub fn l1_logistic<'py>(
    py: Python<'py>,
    design: &Bound<'py, PyDesign>,
    rows: PyReadonlyArray1<'_, u32>,
    sign: PyReadonlyArray1<'_, bool>,
    weight: PyReadonlyArray1<'_, f64>,
    strength: f64,
    penalty: Option<PyReadonlyArray1<'_, f64>>,
    start: Option<StartArgument<'py>>,
    tol: f64,
    max_iter: usize,
    n_jobs: Jobs<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let problem = Problem {
        design: &design.get().0,
        rows: slice(&rows)?,
        sign: slice(&sign)?,
        weight: slice(&weight)?,
        lambda: strength,
        penalty: optional(&penalty)?,
    };
    let weights: Vec<(u32, f64)> = match &start {
        Some(StartArgument::Weights(columns, weights, _)) => {
            let (columns, weights) = (slice(columns)?, slice(weights)?);
            if columns.len() != weights.len() {
                return Err(PyTypeError::new_err("The start's arrays differ in length."));
            }
            columns.iter().copied().zip(weights.iter().copied()).collect()
        }
        _ => Vec::new(),
    };
    let given = match &start {
        Some(StartArgument::Weights(_, _, bias)) => Some(Start { weights: &weights, bias: *bias }),
        _ => None,
    };
    let from = match &start {
        Some(StartArgument::Kept(kept)) => Some(Origin::Kept(&kept.get().0)),
        _ => given.as_ref().map(Origin::Weights),
    };
    let monitor = Monitor::default();
    let options = Options { tol, max_iter };
    let (found, kept) = run(py, &n_jobs, &monitor, None, || {
        solve_from(&problem, from.as_slice(), options, &monitor)
    })?;
    let (columns, weights): (Vec<u32>, Vec<f64>) = found.weights.into_iter().unzip();
    let dict = PyDict::new(py);
    dict.set_item("columns", columns.into_pyarray(py))?;
    dict.set_item("weights", weights.into_pyarray(py))?;
    dict.set_item("bias", found.bias)?;
    dict.set_item("objective", found.objective)?;
    dict.set_item("n_iter", found.n_iter)?;
    dict.set_item("gap", found.gap)?;
    dict.set_item("duality_gap", found.duality_gap)?;
    dict.set_item("kept", PyKept(kept))?;
    Ok(dict)
}
