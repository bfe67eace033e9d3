//! What is computed from a table before a fit: checks, units, label costs, sums over groups.
//!
//! All functions take the table (n x d) as [`TableArgument`] and the threads as [`Jobs`]; none copies the table.
//! Callers:
//! `_data/table.py` (checks, units) and `_reference/` (costs and centers of the reference clustering).

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::convert::{TableArgument, UnitsArgument, matrix, optional, rows_of, slice, slice2};
use super::rows::RowsArgument;
use super::run::{Jobs, run, run_or_here};
use crate::costs::{self, Metric, Units};
use crate::error::Result;
use crate::memory;
use crate::parallel::Monitor;
use crate::places;

/// Columns with NaN or infinite cells, ascending, as tuples (column, n_nan, n_inf, first_row):
/// [`crate::table::Table::find_non_finite`].
#[pyfunction]
pub fn find_non_finite(
    py: Python<'_>,
    table: TableArgument<'_>,
    n_jobs: Jobs<'_>,
) -> PyResult<Vec<(usize, usize, usize, usize)>> {
    let monitor = Monitor::default();
    let (cells, table) = (table.flat(), table.table()?);
    let table = table.with_monitor(&monitor);
    let find = || Ok(table.find_non_finite(cells));
    let columns = run_or_here(py, table.is_small(), &n_jobs, &monitor, find)?;
    Ok(columns.into_iter().map(|c| (c.column, c.n_nan, c.n_inf, c.first_row)).collect())
}

/// Origin and unit of every column, as two arrays of shape (d,): [`Units::of`]. `standardise`: units are standard
/// deviations, else 1. `sample_weight`: of shape (n,), positive; None: 1 each.
///
/// # Errors
/// `ValueError` if there are not as many weights as rows.
#[pyfunction]
#[pyo3(signature = (table, sample_weight, standardise, n_jobs))]
#[allow(clippy::type_complexity, reason = "a pair of arrays")]
pub fn column_units<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    standardise: bool,
    n_jobs: Jobs<'_>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
    let table = table.table()?;
    let weights = optional(&sample_weight)?;
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let units = run(py, &n_jobs, &monitor, None, || Units::of(&table, weights, standardise))?;
    Ok((units.shift.into_pyarray(py), units.scale.into_pyarray(py)))
}

/// Regrets (n x k), nearest label and the weighted sum of the cheapest costs: [`costs::label_costs`]. `centers`: k x d,
/// in units; `manhattan`: l1 distances, else squared Euclidean ones; `sample_weight`: as for [`column_units`];
/// `levels`: by column None or, for a column of levels, their costs by label (k x number of levels).
///
/// # Errors
/// `ValueError` if the centers or units have another number of columns than the table, the costs of levels are missing
/// or have another shape, or a cost overflows.
#[pyfunction]
#[pyo3(signature = (rows, units, centers, manhattan, sample_weight, n_jobs, levels=None))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "a flat Python signature")]
pub fn label_costs<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    units: UnitsArgument<'_>,
    centers: PyReadonlyArray2<'_, f64>,
    manhattan: bool,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_jobs: Jobs<'_>,
    levels: Option<Vec<Option<PyReadonlyArray2<'_, f64>>>>,
) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<u32>>, f64)> {
    let units = units.read(rows.n_features())?;
    let weights = optional(&sample_weight)?;
    let k = centers.as_array().nrows();
    let centers = rows_of(&centers, rows.n_features())?;
    let levels = levels.unwrap_or_default();
    let levels: Vec<Option<&[f64]>> = levels
        .iter()
        .map(|costs| costs.as_ref().map(slice2).transpose())
        .collect::<PyResult<_>>()?;
    let metric = if manhattan { Metric::Manhattan } else { Metric::SquaredEuclidean };
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let rows = data.rows()?;
    let costs = run(py, &n_jobs, &monitor, None, || {
        let costs = costs::label_costs(rows, &units, centers, metric, &levels, weights);
        monitor.check().and(costs)
    })?;
    Ok((matrix(py, costs.regrets, k)?, costs.nearest.into_pyarray(py), costs.minimum))
}

/// Weight, column sums (n_groups x d, in units) of each group of rows, and the weight of the observed cells (n_groups x
/// d; None if no cell is missing): [`costs::group_sums`]. `groups`: one entry per row, in `[0, n_groups)`;
/// `sample_weight`: as for [`column_units`].
///
/// # Errors
/// `ValueError` if a group is out of range, or there is not one per row.
#[pyfunction]
#[pyo3(signature = (table, units, groups, n_groups, sample_weight, n_jobs))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "a flat Python signature")]
pub fn group_sums<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
    units: UnitsArgument<'_>,
    groups: PyReadonlyArray1<'_, u32>,
    n_groups: usize,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_jobs: Jobs<'_>,
) -> PyResult<(
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
    Option<Bound<'py, PyArray2<f64>>>,
)> {
    let table = table.table()?;
    let units = units.read(table.n_features())?;
    let (weights, groups) = (optional(&sample_weight)?, slice(&groups)?);
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let sums = run(py, &n_jobs, &monitor, None, || {
        let sums = costs::group_sums(&table, &units, groups, n_groups, weights);
        monitor.check().and(sums)
    })?;
    let d = table.n_features();
    let observed = sums.observed.map(|observed| matrix(py, observed, d)).transpose()?;
    Ok((sums.weight.into_pyarray(py), matrix(py, sums.sums, d)?, observed))
}

/// Weight, means in the columns' own units, what rounding left of them (both n_groups x d) and spread of each group of
/// rows, and the weight of the observed cells as in `group_sums`: [`costs::group_means`]. `near`: a guess of the means,
/// n_groups x d, in the columns' own units; the other arguments are as for `group_sums`.
#[pyfunction]
#[pyo3(signature = (rows, units, groups, near, sample_weight, n_jobs))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "a flat Python signature")]
pub fn group_means<'py>(
    py: Python<'py>,
    rows: RowsArgument<'_>,
    units: UnitsArgument<'_>,
    groups: PyReadonlyArray1<'_, u32>,
    near: PyReadonlyArray2<'_, f64>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    n_jobs: Jobs<'_>,
) -> PyResult<(
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    Option<Bound<'py, PyArray2<f64>>>,
)> {
    let units = units.read(rows.n_features())?;
    let (weights, groups) = (optional(&sample_weight)?, slice(&groups)?);
    let n_groups = near.as_array().nrows();
    let near = rows_of(&near, rows.n_features())?;
    let monitor = Monitor::default();
    let data = rows.data(&monitor)?;
    let rows = data.rows()?;
    let found = run(py, &n_jobs, &monitor, None, || {
        let means = costs::group_means(rows, &units, groups, n_groups, weights, near);
        monitor.check().and(means)
    })?;
    let d = rows.n_features();
    Ok((
        found.weight.into_pyarray(py),
        matrix(py, found.means, d)?,
        matrix(py, found.rest, d)?,
        found.spread.into_pyarray(py),
        found.observed.map(|observed| matrix(py, observed, d)).transpose()?,
    ))
}

/// The number of rows with each level of a column, by group, n_groups x `n_levels`: [`costs::level_counts`]. `codes`: the
/// level of each row, others are not counted; `groups`: as for `group_sums`, None: all rows in one.
///
/// # Errors
/// `ValueError` as `group_sums`.
#[pyfunction]
#[pyo3(signature = (codes, n_levels, groups, n_groups))]
pub fn level_counts<'py>(
    py: Python<'py>,
    codes: PyReadonlyArray1<'_, u8>,
    n_levels: usize,
    groups: Option<PyReadonlyArray1<'_, u32>>,
    n_groups: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let codes = slice(&codes)?;
    let groups = groups.as_ref().map(slice).transpose()?;
    let counts = py.detach(|| costs::level_counts(codes, n_levels, groups, n_groups))?;
    counts.into_pyarray(py).reshape([n_groups, n_levels])
}

/// The places of a column's texts by row.
#[derive(FromPyObject)]
pub enum Places<'py> {
    /// None missing.
    Unsigned(PyReadonlyArray1<'py, u32>),
    /// Negative where the cell is missing.
    Signed(PyReadonlyArray1<'py, i64>),
}

/// An array of row numbers or of places.
type Rows<'py> = Bound<'py, PyArray1<i64>>;

/// The places that occur, ascending, and the first row of each: [`places::first_rows`].
#[pyfunction]
pub fn first_rows<'py>(py: Python<'py>, places: Places<'py>) -> PyResult<(Rows<'py>, Rows<'py>)> {
    let (found, rows) = match &places {
        Places::Unsigned(places) => of_slice(py, slice(places)?, |p| Ok(places::first_rows(p))),
        Places::Signed(places) => of_slice(py, slice(places)?, |p| Ok(places::first_rows(p))),
    }?;
    Ok((found.into_pyarray(py), rows.into_pyarray(py)))
}

/// The code of each row, from the codes of the places: [`places::codes_of`].
///
/// # Errors
/// `ValueError` if a place has no code.
#[pyfunction]
pub fn place_codes<'py>(
    py: Python<'py>,
    places: Places<'py>,
    codes: PyReadonlyArray1<'py, u8>,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let codes = slice(&codes)?;
    let found = match &places {
        Places::Unsigned(places) => of_slice(py, slice(places)?, |p| places::codes_of(p, codes)),
        Places::Signed(places) => of_slice(py, slice(places)?, |p| places::codes_of(p, codes)),
    }?;
    Ok(found.into_pyarray(py))
}

/// What `work` makes of places, without the GIL.
fn of_slice<P: Sync, T: Send>(
    py: Python<'_>,
    places: &[P],
    work: impl FnOnce(&[P]) -> Result<T> + Send,
) -> PyResult<T> {
    Ok(py.detach(|| memory::catch(|| work(places)))?)
}
