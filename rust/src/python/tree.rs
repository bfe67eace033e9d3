//! Trees as arrays, in (for a [`super::router::PyRouter`]) and out (in the fitted trees): one entry per node.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::convert::slice;
use crate::placement;
use crate::tree::{LevelArrays, ObliqueArrays, ObliqueTerms, TestArrays, TreeArrays};

/// A NumPy array of numbers, of shape (n,).
pub type Floats = Py<PyArray1<f64>>;
/// A NumPy array of counts, columns, labels or nodes, of shape (n,).
pub type Integers = Py<PyArray1<i64>>;

/// The tests of a fitted tree, one entry per node: the base class of the fitted trees.
#[pyclass(frozen, get_all, subclass, name = "FittedTests", module = "treeclust_rs._core")]
pub struct PyTestArrays {
    /// 0 leaf, 1 threshold, 2 interval, 3 oblique, 4 levels, 5 missing.
    kind: Py<PyArray1<i8>>,
    /// Column of threshold and interval tests; -2 elsewhere.
    feature: Integers,
    /// Of threshold tests; -2 at leaves, NaN at other tests.
    threshold: Floats,
    /// Lower end of intervals; NaN elsewhere.
    lower: Floats,
    /// Upper end of intervals; NaN elsewhere.
    upper: Floats,
    /// Left child; -1 at leaves.
    children_left: Integers,
    /// Right child; -1 at leaves.
    children_right: Integers,
    /// Where the codes of each node start, and their number at the end, of shape (n_nodes + 1,).
    levels_indptr: Integers,
    /// The level codes that go left at level tests.
    levels_codes: Integers,
    /// Whether a missing cell goes left; None where the fit had no missing cells.
    missing_go_to_left: Option<Py<PyArray1<bool>>>,
}

impl PyTestArrays {
    /// The arrays as NumPy arrays, but the terms of oblique tests, which are returned as they are.
    pub fn new(py: Python<'_>, arrays: TestArrays) -> (Self, ObliqueTerms) {
        let tests = PyTestArrays {
            kind: array(py, arrays.kind),
            feature: array(py, arrays.feature),
            threshold: array(py, arrays.threshold),
            lower: array(py, arrays.lower),
            upper: array(py, arrays.upper),
            children_left: array(py, arrays.children_left),
            children_right: array(py, arrays.children_right),
            levels_indptr: array(py, arrays.levels_indptr),
            levels_codes: array(py, arrays.levels_codes),
            missing_go_to_left: arrays.missing_go_to_left.map(|sides| array(py, sides)),
        };
        (tests, arrays.oblique)
    }
}

/// A NumPy array of the values.
pub fn array<T: numpy::Element>(py: Python<'_>, values: Vec<T>) -> Py<PyArray1<T>> {
    values.into_pyarray(py).unbind()
}

/// A NumPy array of numbers that count or point to nodes.
pub fn integers(py: Python<'_>, values: Vec<usize>) -> Integers {
    array(py, values.into_iter().map(|value| value as i64).collect())
}

/// The threshold in each gap between two neighbouring values: [`placement::between`]. `above`: as long as `below`, and
/// larger in every entry.
///
/// # Errors
/// `ValueError` if an array is not contiguous.
#[pyfunction]
pub fn thresholds(
    py: Python<'_>,
    below: PyReadonlyArray1<'_, f64>,
    above: PyReadonlyArray1<'_, f64>,
) -> PyResult<Floats> {
    let gaps = slice(&below)?.iter().zip(slice(&above)?);
    Ok(array(py, gaps.map(|(&below, &above)| placement::between(below, above)).collect()))
}

/// A tree's arrays: kind, feature, threshold, lower, upper, children_left, children_right, levels_indptr, levels_codes,
/// missing_go_to_left.
pub type Arrays<'py> = (
    PyReadonlyArray1<'py, i8>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    Option<PyReadonlyArray1<'py, i64>>,
    Option<PyReadonlyArray1<'py, i64>>,
    Option<PyReadonlyArray1<'py, bool>>,
);

/// A tree's oblique tests: indptr, indices, weights, bias.
pub type Oblique<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
);

/// Borrows the arrays of a tree, and those of its oblique tests if it has any.
///
/// # Errors
/// `ValueError` if an array is not contiguous.
pub fn tree_arrays<'a>(
    tree: &'a Arrays<'_>,
    oblique: Option<&'a Oblique<'_>>,
) -> PyResult<TreeArrays<'a>> {
    let (kind, feature, threshold, lower, upper, left, right, indptr, codes, missing) = tree;
    let levels = match (indptr, codes) {
        (Some(indptr), Some(codes)) => {
            Some(LevelArrays { indptr: slice(indptr)?, codes: slice(codes)? })
        }
        _ => None,
    };
    let oblique = match oblique {
        Some((indptr, indices, weights, bias)) => Some(ObliqueArrays {
            indptr: slice(indptr)?,
            indices: slice(indices)?,
            weights: slice(weights)?,
            bias: slice(bias)?,
        }),
        None => None,
    };
    Ok(TreeArrays {
        kind: slice(kind)?,
        feature: slice(feature)?,
        threshold: slice(threshold)?,
        lower: slice(lower)?,
        upper: slice(upper)?,
        children_left: slice(left)?,
        children_right: slice(right)?,
        levels,
        missing_go_to_left: missing.as_ref().map(slice).transpose()?,
        oblique,
    })
}

/// A matrix in compressed sparse rows: indptr (n + 1), indices and values (one entry per stored cell), and the number
/// of columns.
pub type Sparse<'py> =
    (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>, usize);
