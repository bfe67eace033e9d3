"""Whether a kernel is positive semidefinite, and warnings of kernels that cluster badly."""

from __future__ import annotations

import warnings

import numpy as np

from .kernel_data import KernelData
from .kernels import Kernel

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
