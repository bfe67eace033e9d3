"""Array-likes as arrays of the dtypes that the Rust core reads; texts about shapes and cells."""

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from .._util import FloatArray, IntArray, listed
from .._util.words import format_bytes
from .kinds import MIXED_TABLES

# The dtype each foreign float is read as; all other numbers keep theirs.
_FLOATS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float16): np.dtype(np.float32),
    np.dtype(np.longdouble): np.dtype(np.float64),
    np.dtype(np.float32): np.dtype(np.float32),
    np.dtype(np.float64): np.dtype(np.float64),
}


def number_array(
    X: Any, estimator_name: str, needed: IntArray | None = None, *, mixed: bool = False
) -> npt.NDArray[Any]:
    """Return an array-like as a two-dimensional array of numbers, a view where possible.

    Of Python objects only the `needed` columns are read; None reads all. `mixed`: whether masked
    entries become NaN.
    """
    array = X if type(X) is np.ndarray else _array_of(X, estimator_name, mixed=mixed)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {array.dtype}.")
    if array.ndim < 2:
        got = "1D array" if array.ndim else "scalar array"
        got = f"{got} instead (a {type(X).__name__} of shape {array.shape})"
        if array.size and isinstance(array.flat[0], str):
            raise ValueError(
                f"Expected 2D array, got {got} of texts. Make numbers of them, for example by "
                "scikit-learn's TfidfVectorizer, whose sparse rows IMM, ExKMC, BestTree and "
                'ObliqueTree(metric="cosine") take.'
            )
        raise ValueError(
            f"Expected 2D array, got {got}. "
            "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
            "or array.reshape(1, -1) if it contains a single sample."
        )
    if array.ndim > 2:
        raise ValueError(
            f"Found array with dim {array.ndim} (shape={array.shape}), while dim <= 2 is required "
            f"by {estimator_name}."
        )
    if array.dtype.kind in "USTV":
        raise ValueError(
            f"{estimator_name} needs numbers and takes no arrays of bytes/strings, but X has dtype "
            f"{array.dtype}. Encode the strings as numbers, or drop those columns. {MIXED_TABLES}"
        )
    if array.dtype.kind in "mM":
        raise TypeError(
            f"{estimator_name} needs numbers, but X has dtype {array.dtype}. Convert dates and "
            f"durations to numbers first, such as days since some day, or drop them. {MIXED_TABLES}"
        )
    check_shape(array.shape, estimator_name)
    if array.dtype.kind == "O":
        if needed is not None:
            array = array.copy()
            array[:, np.isin(np.arange(array.shape[1]), needed, invert=True)] = 0
        array = _numbers_from_objects(array)
    return native(array)


def _array_of(X: Any, estimator_name: str, *, mixed: bool) -> npt.NDArray[Any]:
    """Return something else than an array as one; raise TypeError if it is no table of numbers."""
    if mixed and isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    if issparse(X):
        raise refused_sparse(X, estimator_name)
    if isinstance(X, np.matrix):
        raise TypeError(
            "np.matrix is not supported. Convert it to a numpy array with np.asarray(X)."
        )
    if isinstance(X, (str, os.PathLike)):
        raise TypeError(
            f"X is {X!r:.60}, a {type(X).__name__}: read the file first, for example with "
            "polars.read_csv or polars.read_parquet."
        )
    rows = isinstance(X, list) and X and isinstance(X[0], Mapping)
    if rows or isinstance(X, Mapping):
        what = f"list of {type(X[0]).__name__}s" if rows else type(X).__name__
        raise TypeError(f"X is a {what}: give a table, for example polars.DataFrame(X).")
    if X is None:
        raise TypeError("X is None: give a table, for example polars.DataFrame(...).")
    return filled(X, "Input X")


def refused_sparse(X: Any, estimator_name: str) -> TypeError:
    """Return the error for sparse input where it is not taken."""
    shape = " x ".join(f"{length:,}" for length in X.shape)
    size = math.prod(X.shape) * X.dtype.itemsize
    return TypeError(
        f"{estimator_name} takes no sparse input, but got a {type(X).__name__} of {shape}. "
        'IMM, ExKMC, BestTree, Kauri (kernel="linear", "cosine" or "hellinger"), '
        'ObliqueTree(metric="cosine", splits="oblique"), KernelKMeans (kernel="linear", "cosine", '
        '"hellinger", "polynomial" or "rbf") and, with these kernels, '
        "KernelExpand and KernelExKMC (base_tree=None), all without approximation, take sparse "
        f"rows. A dense copy, X.toarray(), would take {format_bytes(size)}; in a Pipeline, "
        "OneHotEncoder(sparse_output=False) returns dense rows, and TruncatedSVD makes few columns "
        "of texts."
    )


def filled(values: Any, what: str) -> npt.NDArray[Any]:
    """Return values as an array; raise ValueError if entries are masked."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        places = np.argwhere(np.ma.getmaskarray(values))
        raise ValueError(
            f"{what} contains null (masked entries, that is NaN): {len(places)} in all, the first "
            f"in row {places[0][0]} (counting from 0). Fill or drop them first."
            + (f" {MIXED_TABLES}" if what == "Input X" else "")
        )
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{what} cannot be read as an array of numbers: {error}") from error


def _numbers_from_objects(array: npt.NDArray[Any]) -> FloatArray:
    """Convert Python numbers; None becomes NaN, which `check_finite` reports."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        # The conversion names the value, not its place.
        for (row, column), value in np.ndenumerate(array):
            try:
                np.asarray(value, dtype=object).astype(np.float64)
            except (TypeError, ValueError, OverflowError) as cell_error:
                # A ValueError is a string that is not a number; scikit-learn has the same types.
                kind = TypeError if isinstance(cell_error, TypeError) else ValueError
                raise kind(
                    f"X must hold numbers, but row {row} of column x{column} holds {value!r}: "
                    f"{cell_error}. {MIXED_TABLES}"
                ) from error
        raise


def native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array itself if the core can read it, else a copy in the nearest such dtype."""
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {array.dtype}.")
    native = array.dtype.newbyteorder("=")
    dtype: np.dtype[Any] = _FLOATS[native] if native.kind == "f" else native
    if array.dtype == dtype and array.flags.aligned:
        return array
    with np.errstate(over="ignore"):  # beyond the range of float64: inf, reported by check_finite
        return array.astype(dtype, order="K")


def check_shape(shape: tuple[int, ...], estimator_name: str) -> None:
    """Raise ValueError if there are no rows or no columns."""
    for count, what, plain in zip(
        shape, ("sample(s)", "feature(s)"), ("rows", "columns"), strict=True
    ):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required by "
                f"{estimator_name}. X has no {plain}."
            )


def check_width(n_given: int, n_features: int, estimator_name: str) -> None:
    """Raise ValueError if there are more or fewer columns than the fit had."""
    if n_given != n_features:
        raise ValueError(
            f"X has {n_given} features, but {estimator_name} is expecting {n_features} features as "
            f"input."
        )


def count_words(*counts: tuple[int, str]) -> str:
    """Join the counts that are not 0: ``2 NaN and 1 inf``."""
    return " and ".join(f"{count} {word}" for count, word in counts if count)


def missing_message(kinds: str, problems: list[tuple[str, str, int]]) -> str:
    """Return the message that names columns, from (column, counts, first row)."""
    parts = [f"{column} has {counts}, the first in row {row}" for column, counts, row in problems]
    return (
        f"Input X contains {kinds}: {listed(parts, 'column', '; ')} (rows count from 0). "
        "Fill these cells, or drop their rows or columns."
        + (f" {MIXED_TABLES}" if "NaN" in kinds else "")
    )
