//! NumPy arrays as table columns, without copying.

use numpy::{
    Element, PyArrayDescrMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::Error;
use crate::table::{Column, Table, Value, matrix_columns};

macro_rules! define_held {
    ($($variant:ident: $t:ty),*) => {
        /// Borrowed NumPy arrays; they stay marked as read while the core works on them.
        pub enum Held<'py> {
            $(
                #[doc = concat!("A matrix of `", stringify!($t), "`.")]
                $variant(HeldArray<'py, $t>),
            )*
        }

        impl<'py> Held<'py> {
            fn of(array: &Bound<'py, PyAny>) -> PyResult<Self> {
                let untyped = array.cast::<PyUntypedArray>().map_err(|_| not_an_array(array))?;
                let dtype = untyped.dtype();
                $(
                    if dtype.is_equiv_to(&<$t as Element>::get_dtype(array.py())) {
                        return Ok(Held::$variant(HeldArray::of(array, untyped.ndim())?));
                    }
                )*
                Err(PyTypeError::new_err(format!("An array of type {dtype} is not supported.")))
            }

            fn n_columns(&self) -> usize {
                match self {
                    $(Held::$variant(held) => held.n_columns(),)*
                }
            }

            fn columns(&self) -> Vec<Column<'_>> {
                match self {
                    $(Held::$variant(held) => held.columns(),)*
                }
            }
        }
    };
}
define_held!(F64: f64, F32: f32, I8: i8, I16: i16, I32: i32, I64: i64,
             U8: u8, U16: u16, U32: u32, U64: u64, Bool: bool);

/// A matrix or a single column.
pub enum HeldArray<'py, T: Element> {
    /// Rows are samples.
    Matrix(PyReadonlyArray2<'py, T>),
    /// One column.
    Column(PyReadonlyArray1<'py, T>),
}

impl<'py, T: Element + Value> HeldArray<'py, T> {
    fn of(array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        Ok(match ndim {
            1 => HeldArray::Column(array.extract().map_err(|_| not_an_array(array))?),
            _ => HeldArray::Matrix(array.extract().map_err(|_| not_an_array(array))?),
        })
    }

    fn n_columns(&self) -> usize {
        match self {
            HeldArray::Column(_) => 1,
            HeldArray::Matrix(matrix) => matrix.as_array().ncols(),
        }
    }

    fn columns<'a>(&'a self) -> Vec<Column<'a>>
    where
        Column<'a>: From<ndarray::ArrayView1<'a, T>>,
    {
        match self {
            HeldArray::Column(column) => vec![Column::from(column.as_array())],
            HeldArray::Matrix(matrix) => matrix_columns(matrix.as_array()),
        }
    }
}

fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("A NumPy array of one or two dimensions is expected, not {name}."))
}

/// Rows that follow each other in memory.
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
pub struct TableArgument<'py>(Vec<Held<'py>>);

impl<'py> FromPyObject<'_, 'py> for TableArgument<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(columns) = object.cast::<pyo3::types::PyList>() {
            let held = columns.iter().map(|column| Held::of(&column)).collect::<PyResult<_>>()?;
            return Ok(TableArgument(held));
        }
        Ok(TableArgument(vec![Held::of(&object.to_owned())?]))
    }
}

impl TableArgument<'_> {
    /// The cells of a float64 matrix that fills its memory without gaps, in whatever order they lie there.
    pub fn flat(&self) -> Option<&[f64]> {
        match &self.0[..] {
            [Held::F64(HeldArray::Matrix(matrix))] => matrix.as_array().to_slice_memory_order(),
            _ => None,
        }
    }

    /// The rows of a C-ordered float matrix without gaps, one after the other.
    pub fn rows(&self) -> Option<Rows<'_>> {
        match &self.0[..] {
            [Held::F64(HeldArray::Matrix(matrix))] => matrix.as_array().to_slice().map(Rows::F64),
            [Held::F32(HeldArray::Matrix(matrix))] => matrix.as_array().to_slice().map(Rows::F32),
            _ => None,
        }
    }

    /// Number of columns.
    pub fn n_features(&self) -> usize {
        self.0.iter().map(Held::n_columns).sum()
    }

    /// The table over the arrays.
    pub fn table(&self) -> Result<Table<'_>, Error> {
        Table::new(self.0.iter().flat_map(Held::columns).collect())
    }
}
