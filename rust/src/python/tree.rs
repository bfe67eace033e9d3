//! Trees as arrays, in and out, and routing.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::convert::slice;
use crate::tree::{ObliqueArrays, Test, TreeArrays};

/// The tests of a tree's nodes as arrays with one entry per node, as [`TreeArrays`] takes them.
pub struct TreeTests {
    /// 0 leaf, 1 threshold, 2 interval, 3 oblique.
    pub kind: Py<PyArray1<i8>>,
    /// Column of threshold and interval tests; -2 elsewhere.
    pub feature: Py<PyArray1<i64>>,
    /// Of threshold tests; -2 at leaves, NaN at other tests.
    pub threshold: Py<PyArray1<f64>>,
    /// Lower end of intervals; NaN elsewhere.
    pub lower: Py<PyArray1<f64>>,
    /// Upper end of intervals; NaN elsewhere.
    pub upper: Py<PyArray1<f64>>,
    /// -1 at leaves.
    pub children_left: Py<PyArray1<i64>>,
    /// -1 at leaves.
    pub children_right: Py<PyArray1<i64>>,
}

impl TreeTests {
    /// `left`: the left child of each test, the right one follows it.
    pub fn new(py: Python<'_>, tests: &[Test], left: &[usize]) -> Self {
        let child = |offset: usize| -> Vec<i64> {
            let of = |(test, &left): (&Test, &usize)| match test {
                Test::Leaf => -1,
                _ => (left + offset) as i64,
            };
            tests.iter().zip(left).map(of).collect()
        };
        let number = |of: fn(&Test) -> f64| array(py, tests.iter().map(of).collect());
        let kind = |test: &Test| match test {
            Test::Leaf => 0i8,
            Test::Threshold { .. } => 1,
            Test::Interval { .. } => 2,
            Test::Oblique { .. } => 3,
        };
        let feature = |test: &Test| test.feature().map_or(-2, |feature| feature as i64);
        TreeTests {
            kind: array(py, tests.iter().map(kind).collect()),
            feature: array(py, tests.iter().map(feature).collect()),
            threshold: number(|test| match test {
                Test::Leaf => -2.0,
                Test::Threshold { threshold, .. } => *threshold,
                Test::Interval { .. } | Test::Oblique { .. } => f64::NAN,
            }),
            lower: number(|test| match test {
                Test::Interval { lower, .. } => *lower,
                _ => f64::NAN,
            }),
            upper: number(|test| match test {
                Test::Interval { upper, .. } => *upper,
                _ => f64::NAN,
            }),
            children_left: array(py, child(0)),
            children_right: array(py, child(1)),
        }
    }
}

/// A NumPy array of the values.
pub fn array<T: numpy::Element>(py: Python<'_>, values: Vec<T>) -> Py<PyArray1<T>> {
    values.into_pyarray(py).unbind()
}

/// A NumPy array of numbers that count or point to nodes.
pub fn integers(py: Python<'_>, values: Vec<usize>) -> Py<PyArray1<i64>> {
    array(py, values.into_iter().map(|value| value as i64).collect())
}

/// A tree's arrays: kind, feature, threshold, lower, upper, children_left, children_right.
pub type Arrays<'py> = (
    PyReadonlyArray1<'py, i8>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
);

/// A tree's oblique tests: indptr, indices, weights, bias.
pub type Oblique<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
);

pub fn tree_arrays<'a>(
    tree: &'a Arrays<'_>,
    oblique: Option<&'a Oblique<'_>>,
) -> PyResult<TreeArrays<'a>> {
    let (kind, feature, threshold, lower, upper, left, right) = tree;
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
        oblique,
    })
}

/// A sparse matrix: indptr, indices, values, number of columns.
pub type Sparse<'py> =
    (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>, usize);
