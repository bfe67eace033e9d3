//! Core errors as Python exceptions. Every core call ends in `?`, which converts by the one `match` below.
//!
//! | core | Python |
//! |---|---|
//! | [`Error::Value`], [`Error::Shape`], [`Error::Tree`] | `ValueError` |
//! | [`Error::Interrupted`] | `KeyboardInterrupt` |
//! | [`Error::Internal`] | `RuntimeError` |

use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError, PyValueError};

use crate::error::Error;

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        let message = error.to_string();
        match error {
            Error::Value(_) | Error::Shape { .. } | Error::Tree(_) => {
                PyValueError::new_err(message)
            }
            Error::Memory { .. } => PyMemoryError::new_err(message),
            Error::Interrupted => PyKeyboardInterrupt::new_err(message),
            Error::Internal(_) => PyRuntimeError::new_err(message),
        }
    }
}
