//! NumPy arrays as tables and slices, without copying, and values as NumPy arrays.
//!
//! | Python | core |
//! |---|---|
//! | a matrix of numbers or booleans (n x d), any order; or a list of columns: n-vectors, or pairs (codes, number of levels) | [`Table`] by [`TableArgument`] |
//! | a contiguous vector, a C-ordered matrix | `&[T]` by [`slice()`], [`slice2`], [`rows_of`] |
//! | an object with `shift` and `scale` | [`Units`] by [`UnitsArgument`] |
//!
//! The arrays stay borrowed, and marked as read, while the core works without the GIL: another thread that writes to
//! them in that time is not stopped. Python has checked dtypes and lengths; what the core cannot index safely is
//! checked here or there, once.

use numpy::{
    Element, IntoPyArray, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray1,
    PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::costs::Units;
use crate::error::Error;
use crate::table::{Column, Table, Value, matrix_columns};

macro_rules! define_borrowed_columns {
    ($($variant:ident: $t:ty),*) => {
        /// Borrowed NumPy arrays; they stay marked as read while the core works.
        pub enum BorrowedColumns<'py> {
            $(
                #[doc = concat!("A matrix of `", stringify!($t), "`.")]
                $variant(BorrowedArray<'py, $t>),
            )*
            /// A column of levels: codes of shape (n,) and the number of levels.
            Levels(PyReadonlyArray1<'py, u8>, usize),
        }

        impl<'py> BorrowedColumns<'py> {
            /// Borrows an array of one of the dtypes, of shape (n, d) or (n,), or a tuple (uint8 codes of shape (n,),
            /// number of levels).
            ///
            /// # Errors
            /// `TypeError` for another object, dtype or number of dimensions.
            fn of(array: &Bound<'py, PyAny>) -> PyResult<Self> {
                if array.is_instance_of::<PyTuple>() {
                    let (codes, n_levels) = array.extract()?;
                    return Ok(BorrowedColumns::Levels(codes, n_levels));
                }
                let untyped = array.cast::<PyUntypedArray>().map_err(|_| not_an_array(array))?;
                let dtype = untyped.dtype();
                $(
                    if dtype.is_equiv_to(&<$t as Element>::get_dtype(array.py())) {
                        return Ok(BorrowedColumns::$variant(BorrowedArray::of(array, untyped.ndim())?));
                    }
                )*
                Err(PyTypeError::new_err(format!("An array of type {dtype} is not supported.")))
            }

            /// Number of columns.
            fn n_columns(&self) -> usize {
                match self {
                    $(BorrowedColumns::$variant(array) => array.n_columns(),)*
                    BorrowedColumns::Levels(..) => 1,
                }
            }

            /// Views of the columns.
            ///
            /// # Errors
            /// [`Error::Value`] if a code of levels is out of range.
            fn columns(&self) -> Result<Vec<Column<'_>>, Error> {
                match self {
                    $(BorrowedColumns::$variant(array) => Ok(array.columns()),)*
                    BorrowedColumns::Levels(codes, n_levels) => {
                        Ok(vec![Column::levels(codes.as_array(), *n_levels)?])
                    }
                }
            }
        }
    };
}
define_borrowed_columns!(F64: f64, F32: f32, I8: i8, I16: i16, I32: i32, I64: i64,
             U8: u8, U16: u16, U32: u32, U64: u64, Bool: bool);

/// A matrix or a single column.
pub enum BorrowedArray<'py, T: Element> {
    /// Of shape (n, d): rows are samples.
    Matrix(PyReadonlyArray2<'py, T>),
    /// Of shape (n,): one column.
    Column(PyReadonlyArray1<'py, T>),
}

impl<'py, T: Element + Value> BorrowedArray<'py, T> {
    fn of(array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        Ok(match ndim {
            1 => BorrowedArray::Column(array.extract().map_err(|_| not_an_array(array))?),
            _ => BorrowedArray::Matrix(array.extract().map_err(|_| not_an_array(array))?),
        })
    }

    fn n_columns(&self) -> usize {
        match self {
            BorrowedArray::Column(_) => 1,
            BorrowedArray::Matrix(matrix) => matrix.as_array().ncols(),
        }
    }

    fn columns<'a>(&'a self) -> Vec<Column<'a>>
    where
        Column<'a>: From<ndarray::ArrayView1<'a, T>>,
    {
        match self {
            BorrowedArray::Column(column) => vec![Column::from(column.as_array())],
            BorrowedArray::Matrix(matrix) => matrix_columns(matrix.as_array()),
        }
    }
}

/// The `TypeError` of an argument that is not an array of one or two dimensions.
fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("A NumPy array of one or two dimensions is expected, not {name}."))
}

/// The cells of a C-ordered matrix: rows that follow each other in memory.
pub enum Rows<'a> {
    /// Of `f64`.
    F64(&'a [f64]),
    /// Of `f32`.
    F32(&'a [f32]),
}

impl Rows<'_> {
    /// Number of cells.
    pub fn len(&self) -> usize {
        match self {
            Rows::F64(cells) => cells.len(),
            Rows::F32(cells) => cells.len(),
        }
    }
}

/// A table argument: a matrix, or a list of columns.
pub struct TableArgument<'py>(Vec<BorrowedColumns<'py>>);

impl<'py> FromPyObject<'_, 'py> for TableArgument<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(columns) = object.cast::<pyo3::types::PyList>() {
            let arrays = columns
                .iter()
                .map(|column| BorrowedColumns::of(&column))
                .collect::<PyResult<_>>()?;
            return Ok(TableArgument(arrays));
        }
        Ok(TableArgument(vec![BorrowedColumns::of(&object.to_owned())?]))
    }
}

impl TableArgument<'_> {
    /// The cells of a float64 matrix that fills its memory without gaps, in whatever order they lie there.
    pub fn flat(&self) -> Option<&[f64]> {
        match &self.0[..] {
            [BorrowedColumns::F64(BorrowedArray::Matrix(matrix))] => {
                matrix.as_array().to_slice_memory_order()
            }
            _ => None,
        }
    }

    /// The rows of a C-ordered float matrix without gaps, one after the other.
    pub fn rows(&self) -> Option<Rows<'_>> {
        match &self.0[..] {
            [BorrowedColumns::F64(BorrowedArray::Matrix(matrix))] => {
                matrix.as_array().to_slice().map(Rows::F64)
            }
            [BorrowedColumns::F32(BorrowedArray::Matrix(matrix))] => {
                matrix.as_array().to_slice().map(Rows::F32)
            }
            _ => None,
        }
    }

    /// Number of columns.
    pub fn n_features(&self) -> usize {
        self.0.iter().map(BorrowedColumns::n_columns).sum()
    }

    /// The table over the arrays.
    ///
    /// # Errors
    /// As [`Table::new`] and [`Column::levels`].
    pub fn table(&self) -> Result<Table<'_>, Error> {
        let columns: Result<Vec<_>, _> = self.0.iter().map(BorrowedColumns::columns).collect();
        Table::new(columns?.concat())
    }
}

/// The entries of a contiguous array.
pub fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err("An array is not contiguous."))
}

/// The entries of a C-contiguous matrix, row after row.
pub fn slice2<'a, T: numpy::Element>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err("A matrix is not C-contiguous."))
}

/// The entries of a C-contiguous matrix whose rows are points of `n_features` columns.
///
/// # Errors
/// `ValueError` if the matrix has another number of columns.
pub fn rows_of<'a>(array: &'a PyReadonlyArray2<'_, f64>, n_features: usize) -> PyResult<&'a [f64]> {
    Error::check_len("A matrix of centers", array.as_array().ncols(), n_features, "columns")?;
    slice2(array)
}

/// The entries of an array that may be None.
pub fn optional<'a>(weights: &'a Option<PyReadonlyArray1<'_, f64>>) -> PyResult<Option<&'a [f64]>> {
    weights.as_ref().map(slice).transpose()
}

/// A matrix of rows of `width` values.
pub fn matrix<'py, T: numpy::Element>(
    py: Python<'py>,
    values: Vec<T>,
    width: usize,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let rows = values.len() / width.max(1);
    values.into_pyarray(py).reshape([rows, width])
}

/// Origin and unit of every column: an object with the attributes `shift` and `scale`.
#[derive(FromPyObject)]
pub struct UnitsArgument<'py> {
    shift: PyReadonlyArray1<'py, f64>,
    scale: PyReadonlyArray1<'py, f64>,
}

impl UnitsArgument<'_> {
    /// Copies the units of `n_features` columns.
    ///
    /// # Errors
    /// `ValueError` if there are not as many.
    pub fn read(&self, n_features: usize) -> PyResult<Units> {
        let units =
            Units { shift: slice(&self.shift)?.to_vec(), scale: slice(&self.scale)?.to_vec() };
        Error::check_len("shift", units.shift.len(), n_features, "entries")?;
        Error::check_len("scale", units.scale.len(), n_features, "entries")?;
        Ok(units)
    }
}
