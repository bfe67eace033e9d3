"""Gram matrices: checks of those that users bring, and definiteness of kernels."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._util import FloatArray, check_size
from .kernel_data import KernelData
from .kernels import Kernel

# Numbers of a block of rows that is checked at a time: 8 MiB.
_MAX_BLOCK = 1 << 20
# Largest asymmetry of a Gram matrix, as a share of its largest entry.
_MAX_ASYMMETRY = 1e-10


def check_gram(gram: Any, n_samples: int, *, name: str = "gram") -> FloatArray:
    """Check a Gram matrix that the user computed.

    Parameters
    ----------
    gram : array-like of shape (n_samples, n_samples)
        ``gram[i, j]`` is the kernel of the rows i and j. It need not be positive semidefinite.
    n_samples : int
        Rows of X.
    name : str, default="gram"
        Its name in messages.

    Returns
    -------
    ndarray of shape (n_samples, n_samples), float64, C order
        The matrix itself if it is float64 in C order, its transpose if in Fortran order, which is
        equal; a copy of anything else.

    Raises
    ------
    TypeError
        If it is sparse or does not hold numbers.
    ValueError
        If it has another shape, holds NaN or inf (names the first cell), is not symmetric to 1e-10
        of its largest entry (names a pair), or the copy would be larger than `MAX_ARRAY_BYTES`.
    """
    if gram is None:
        raise ValueError('kernel="precomputed" needs the Gram matrix of the rows: fit(X, gram=K).')
    if issparse(gram):
        raise TypeError(f"{name} is sparse; it must be a dense array: {name}.toarray().")
    array = np.asarray(gram)
    if array.shape != (n_samples, n_samples):
        raise ValueError(
            f"{name} has the shape {array.shape}, but X has {n_samples} rows: it must have the "
            f"shape ({n_samples}, {n_samples})."
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}.")
    if array.dtype != np.float64 or not (array.flags.c_contiguous or array.flags.f_contiguous):
        check_size(
            array.size,
            f"A float64 copy of {name}, which is {array.dtype} of shape {array.shape},",
            "A contiguous float64 array is used without a copy.",
        )
        if array.dtype.kind not in "biufO":
            raise TypeError(f"{name} must hold numbers. Got dtype {array.dtype} instead.")
        try:
            array = np.ascontiguousarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must hold numbers: {error}") from None
    square: FloatArray = array if array.flags.c_contiguous else array.T
    _check_gram_values(square, name)
    return square


def _check_gram_values(gram: FloatArray, name: str) -> None:
    n = len(gram)
    size = max(_MAX_BLOCK // max(n, 1), 1)
    largest = 0.0
    for start in range(0, n, size):
        block = gram[start : start + size]
        # NaN and inf both show in the largest absolute value.
        top = float(max(block.max(), -block.min()))
        if not np.isfinite(top):
            i, j = (int(places[0]) for places in np.nonzero(~np.isfinite(block)))
            value = "NaN" if np.isnan(block[i, j]) else "inf"
            raise ValueError(
                f"{name} contains {value}: the first such cell is {name}[{start + i}, {j}] "
                "(counting from 0)."
            )
        largest = max(largest, top)
    limit = _MAX_ASYMMETRY * largest
    side = 512
    for start in range(0, n, side):
        for other in range(start, n, side):
            upper = gram[start : start + side, other : other + side]
            lower = gram[other : other + side, start : start + side].T
            with np.errstate(over="ignore"):
                apart = np.abs(upper - lower)
            if apart.max() <= limit:
                continue
            i, j = (int(place) for place in np.unravel_index(apart.argmax(), apart.shape))
            i, j = sorted((start + i, other + j))
            raise ValueError(
                f"{name} is not symmetric: {name}[{i}, {j}] is {float(gram[i, j])!r}, but "
                f"{name}[{j}, {i}] is {float(gram[j, i])!r}. ({name} + {name}.T) / 2 is, if that "
                "is what you mean."
            )


# Kernels that are positive semidefinite for all parameters.
_DEFINITE = frozenset(
    {"additive_chi2", "chi2", "cosine", "hellinger", "histogram_intersection"}
    | {"laplacian", "linear", "rbf"}
)
# Other kernels are tested on a sample of at most so many rows; negative eigenvalues down to this
# share of the largest are rounding.
_MAX_SAMPLE = 256
_MAX_NEGATIVE = 1e-8


def is_indefinite(data: KernelData, seed: int) -> bool:
    """Whether the kernel is not positive semidefinite on differences of rows (of a sample)."""
    kernel = data.kernel
    if kernel is not None:
        if kernel.name == "epsilon":
            return True
        if kernel.name in _DEFINITE:
            return False
        if kernel.name == "polynomial" and kernel.coef0 >= 0 and kernel.degree.is_integer():
            return False
    gram = data.gram
    assert gram is not None
    n = len(gram)
    chosen = np.arange(n)
    if n > _MAX_SAMPLE:
        chosen = np.sort(np.random.RandomState(seed).choice(n, _MAX_SAMPLE, replace=False))
    sample = gram[np.ix_(chosen, chosen)]
    # Distances are those of k(x, y) + f(x) + f(y) for every f.
    rounding = len(sample) * np.finfo(np.float64).eps * np.abs(sample).max()
    sample -= sample.mean(axis=0)
    sample -= sample.mean(axis=1)[:, None]
    values = np.linalg.eigvalsh(sample)
    return bool(values[0] < -max(_MAX_NEGATIVE * np.abs(values).max(), rounding))


def tells_all_apart(data: KernelData) -> bool:
    """Whether the kernel matrix is 0 off the diagonal; mostly decided by its first row."""
    return data.gram is not None and all(
        np.count_nonzero(row) == np.count_nonzero(row[i]) for i, row in enumerate(data.gram)
    )


def warn_arbitrary(kernel: Kernel | None) -> None:
    """Warn that the kernel of any two rows is 0, with advice on gamma."""
    what, advice = "The kernel matrix", ""
    if kernel is not None:
        what = f"The kernel {kernel.label!r}"
        if kernel.gamma is not None:
            advice = f' Try a smaller gamma (it is {kernel.gamma:.3g}) or scale="standard".'
    warnings.warn(
        f"{what} is 0 for any two rows: it sees no two that are alike, and the clusters are "
        f"arbitrary.{advice}",
        UserWarning,
        stacklevel=4,
    )


def warn_indefinite(kernel: Kernel | None) -> None:
    """Warn that the kernel is not positive semidefinite."""
    what = "The kernel matrix" if kernel is None else f"The kernel {kernel.label!r}"
    warnings.warn(
        f"{what} is not positive semidefinite: the cost may rise between rounds of kernel k-means, "
        "and the best partition seen is taken.",
        UserWarning,
        stacklevel=5,
    )
