//! Surrogate features of kernels: [`Spec`] from the attributes of `_kernels/surrogate.py`'s `SurrogateFeatures`.
//! Only [`super::fit::fit_tree`] takes them, as the base of Kernel IMM.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::slice;
use crate::kernel::features::{Family, Spec};

/// Surrogate features, an object with the attributes `family` ("root", "taylor", "laplace", "gauss", "intersection" or
/// "chi2"), `parameter` (gamma or beta), `order`, `shift` and `scale` (of shape (d,), in the columns' own units) and
/// `anchors` (an array per column, ascending).
#[derive(FromPyObject)]
pub struct SurrogateArgument<'py> {
    family: String,
    parameter: f64,
    order: usize,
    shift: PyReadonlyArray1<'py, f64>,
    scale: PyReadonlyArray1<'py, f64>,
    anchors: Vec<PyReadonlyArray1<'py, f64>>,
}

/// The parts that a [`Spec`] borrows: `shift` and `scale` of shape (d,), one array of anchors per column.
pub struct SpecParts<'a> {
    family: Family,
    shift: &'a [f64],
    scale: &'a [f64],
    anchors: Vec<&'a [f64]>,
}

impl SurrogateArgument<'_> {
    /// Reads the family and borrows the arrays; the core checks that they fit the table.
    ///
    /// # Errors
    /// `ValueError` if the family is unknown or an array is not contiguous.
    pub fn parts(&self) -> PyResult<SpecParts<'_>> {
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
        Ok(SpecParts { family, shift: slice(&self.shift)?, scale: slice(&self.scale)?, anchors })
    }
}

impl SpecParts<'_> {
    /// Returns the features as the core takes them.
    pub fn spec(&self) -> Spec<'_> {
        let SpecParts { family, shift, scale, anchors } = self;
        Spec { family, shift, scale, anchors }
    }
}
