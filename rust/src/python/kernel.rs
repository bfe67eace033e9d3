//! Surrogate features of kernels.

use numpy::{PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::TableArgument;
use super::fit::{matrix, slice};
use super::run::{Jobs, run};
use crate::kernel::features::{Family, Spec, Surrogate};
use crate::parallel::Monitor;

/// A dict: `family`, `parameter` (gamma or beta), `order`, `shift`, `scale`, `anchors`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SurrogateArgument<'py> {
    family: String,
    parameter: f64,
    order: usize,
    shift: PyReadonlyArray1<'py, f64>,
    scale: PyReadonlyArray1<'py, f64>,
    anchors: Vec<PyReadonlyArray1<'py, f64>>,
}

/// What [`Spec`] borrows.
pub struct Settled<'a> {
    family: Family,
    shift: &'a [f64],
    scale: &'a [f64],
    anchors: Vec<&'a [f64]>,
}

impl SurrogateArgument<'_> {
    pub fn settle(&self) -> PyResult<Settled<'_>> {
        let (gamma, beta, order) = (self.parameter, self.parameter, self.order);
        let family = match self.family.as_str() {
            "root" => Family::Root,
            "taylor" => Family::Taylor { gamma, order },
            "laplace" => Family::Laplace { gamma },
            "gauss" => Family::Gauss { gamma },
            "intersection" => Family::Intersection { beta },
            "chi2" => Family::Chi2 { order },
            name => return Err(PyValueError::new_err(format!("Unknown features {name:?}."))),
        };
        let anchors = self.anchors.iter().map(slice).collect::<PyResult<_>>()?;
        Ok(Settled { family, shift: slice(&self.shift)?, scale: slice(&self.scale)?, anchors })
    }
}

impl Settled<'_> {
    pub fn spec(&self) -> Spec<'_> {
        let Settled { family, shift, scale, anchors } = self;
        Spec { family, shift, scale, anchors }
    }
}

/// All surrogate features of all rows (n x number of features), and the input column of each.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "a tuple of arrays")]
pub fn surrogate_features<'py>(
    py: Python<'py>,
    table: TableArgument<'_>,
    surrogate: SurrogateArgument<'_>,
    n_jobs: Jobs<'_>,
) -> PyResult<(Bound<'py, PyArray2<f64>>, Vec<usize>)> {
    let table = table.table()?;
    let settled = surrogate.settle()?;
    let monitor = Monitor::default();
    let table = table.with_monitor(&monitor);
    let (values, columns) = run(py, &n_jobs, &monitor, None, || {
        let surrogate = Surrogate::new(&table, &settled.spec())?;
        let columns: Vec<usize> = (0..surrogate.len()).map(|f| surrogate.place(f).0).collect();
        Ok((surrogate.matrix(), columns))
    })?;
    Ok((matrix(py, values, columns.len())?, columns))
}
