"""Parameters of kernels: allowed values, checks, and the kernel built on the rows of a fit."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from .._data import sparse_deviations
from .._util import FloatArray, Interval, StrOptions, at_least, is_number
from .kernels import ALIASES, KERNELS, PLAIN_KERNELS, SPARSE_FEATURES, SPARSE_KERNELS, Kernel
from .low_rank import APPROXIMATIONS
from .sparse_rows import Matrix, as_matrix, table_of

# Kernels with the parameter gamma.
_WITH_GAMMA = frozenset({"chi2", "laplacian", "polynomial", "rbf"})
# What `kernel_params` may hold, with the default; None: no default.
_PARAMS: dict[str, dict[str, float | None]] = {
    "epsilon": {"epsilon": None},
    "histogram_intersection": {"beta": 1.0},
}
KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions({*KERNELS, "precomputed"}), callable],
    "gamma": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"scale"}), None],
    "degree": [Interval(Real, 1, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "kernel_params": [Mapping, None],
    "approximation": [StrOptions(set(APPROXIMATIONS)), None],
    "n_components": [at_least(1)],
}
"""Allowed values of `KernelParameters`."""


class KernelParameters(Protocol):
    """Estimator with the parameters of a kernel."""

    kernel: Any
    gamma: float | str | None
    degree: float
    coef0: float
    kernel_params: Mapping[str, Any] | None
    approximation: str | None
    n_components: int


def check_gram_argument(kernel: Any, approximation: str | None, has_gram: bool) -> None:
    """Raise ValueError unless a kernel matrix is given exactly if ``kernel="precomputed"``."""
    precomputed = isinstance(kernel, str) and kernel == "precomputed"
    if precomputed and not has_gram:
        raise ValueError(
            'kernel="precomputed" needs the kernel matrix: fit(X, gram=K), X being the columns.'
        )
    if has_gram and not precomputed:
        raise ValueError(f'gram was given, but kernel={kernel!r}. Use kernel="precomputed".')
    if precomputed and approximation is not None:
        raise ValueError(
            f"approximation={approximation!r} needs the kernel itself, not its matrix."
        )


def takes_sparse(kernel: Any, approximation: str | None, *, by_features: bool = False) -> bool:
    """Whether a fit with this kernel takes sparse rows; with a matrix given it looks at none.

    `by_features`: whether the fit needs features of the rows.
    """
    if approximation is not None or not isinstance(kernel, str):
        return False
    if by_features:
        return kernel in SPARSE_FEATURES
    return kernel == "precomputed" or ALIASES.get(kernel, kernel) in SPARSE_KERNELS


def make_kernel(
    kernel: str | Callable[..., float],
    *,
    gamma: float | str | None = None,
    degree: float = 3,
    coef0: float = 1.0,
    kernel_params: Mapping[str, Any] | None = None,
    X: npt.ArrayLike | csr_array,
    sample_weight: FloatArray | None = None,
    feature_names: Sequence[str] | None = None,
) -> Kernel:
    """Build a kernel, with parameters that depend on the rows computed from them.

    Parameters
    ----------
    kernel : str or callable
        One of `KERNELS`, see `Kernel` for what they are; or a function of two rows and
        `kernel_params`. "precomputed" is not known here.
    gamma : float, "scale" or None, default=None
        Of the kernels rbf, laplacian, polynomial and chi2. A number must be > 0. "scale":
        1 / (d v), d the number of columns and v the mean of their variances, 1 if v = 0; v is
        scikit-learn's ``X.var()`` if all columns have the same mean, and does not depend on the
        columns' origins. None: 1 / d, chi2: 1, as in scikit-learn. Ignored by other kernels, but
        checked.
    degree : float, default=3
        Of the polynomial kernel, at least 1.
    coef0 : float, default=1.0
        Of the polynomial kernel. Below 0 it may not be positive semidefinite.
    kernel_params : mapping, default=None
        epsilon: ``{"epsilon": e}``, e > 0, required. histogram_intersection: ``{"beta": b}``,
        b > 0, 1 by default. Keyword arguments of a callable. Other kernels take none.
    X : array-like or csr_array of shape (n_samples, n_features)
        The rows; finite numbers.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows, for "scale".
    feature_names : sequence of str, default=None
        Names of the columns, for messages.

    Returns
    -------
    Kernel

    Raises
    ------
    ValueError
        If a parameter is unknown, missing or out of range, or the kernel is not defined on X.
    TypeError
        If `kernel` or a parameter has the wrong type.
    """
    rows = as_matrix(X)
    own_params = dict(kernel_params or {})
    gamma = _check_gamma(gamma)
    if callable(kernel):
        return Kernel("callable", params=own_params, function=kernel)
    if not isinstance(kernel, str):
        raise TypeError(
            f"kernel must be a string or a callable. Got {type(kernel).__name__} instead."
        )
    name = ALIASES.get(kernel, kernel)
    if name not in PLAIN_KERNELS:
        raise ValueError(
            f'Unknown kernel {kernel!r}. Known are {", ".join(KERNELS)}, "precomputed" and '
            "callables."
        )
    params = _check_params(kernel, name, own_params)
    if name == "polynomial":
        degree = _number(degree, "degree", "polynomial", at_least=1.0)
        coef0 = _number(coef0, "coef0", "polynomial")
    number: float | None = None
    if name in _WITH_GAMMA:
        if isinstance(gamma, str):
            number = _scale_gamma(rows, sample_weight)
        elif gamma is None:
            number = 1.0 if name == "chi2" else 1.0 / rows.shape[1]
        else:
            number = gamma
    made = Kernel(name, number, float(degree), float(coef0), params)
    made.check(rows, feature_names)
    return made


def kernel_of(
    estimator: Any,
    X: Matrix,
    *,
    gamma: float | str | None,
    sample_weight: FloatArray | None = None,
    feature_names: Sequence[str] | None = None,
) -> Kernel:
    """Return `make_kernel` with the other parameters of an estimator or objective."""
    return make_kernel(
        estimator.kernel,
        gamma=gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
        kernel_params=estimator.kernel_params,
        X=X,
        sample_weight=sample_weight,
        feature_names=feature_names,
    )


def has_gamma(kernel: str) -> bool:
    """Whether a kernel, by its name, has the parameter gamma."""
    return ALIASES.get(kernel, kernel) in _WITH_GAMMA


def _check_gamma(gamma: Any) -> float | str | None:
    if gamma is None or (isinstance(gamma, str) and gamma == "scale"):
        return gamma
    if not is_number(gamma):
        raise TypeError(f'gamma must be a number > 0, "scale" or None. Got {gamma!r} instead.')
    if not 0 < gamma < np.inf:
        raise ValueError(
            f'gamma must be > 0 and finite, "scale" or None. Got {float(gamma)!r} instead.'
        )
    return float(gamma)


def _check_params(kernel: str, name: str, given: dict[str, Any]) -> dict[str, float]:
    known = _PARAMS.get(name, {})
    unknown = [str(key) for key in given if key not in known]
    if unknown:
        takes = f"takes only {', '.join(map(repr, known))}" if known else "takes none"
        raise ValueError(
            f"Unknown kernel_params {', '.join(map(repr, unknown))}: the kernel {kernel!r} "
            f"{takes}. gamma, degree and coef0 are parameters of their own."
        )
    missing = [key for key, default in known.items() if default is None and key not in given]
    if missing:
        raise ValueError(
            f"The kernel {kernel!r} needs kernel_params={{{missing[0]!r}: ...}}, a number > 0."
        )
    params = {}
    for key, default in known.items():
        value = _number(given.get(key, default), key, kernel)
        if value <= 0:
            raise ValueError(
                f"{key!r} of the kernel {kernel!r} must be > 0. Got {value!r} instead."
            )
        params[key] = value
    return params


def _number(value: Any, what: str, kernel: str, at_least: float = -np.inf) -> float:
    if not is_number(value):
        raise TypeError(
            f"{what!r} of the kernel {kernel!r} must be a number. Got {value!r} instead."
        )
    number = float(value)
    if not (np.isfinite(number) and number >= at_least):
        bound = "finite" if at_least == -np.inf else f"finite and at least {at_least:g}"
        raise ValueError(
            f"{what!r} of the kernel {kernel!r} must be {bound}. Got {number!r} instead."
        )
    return number


def _scale_gamma(rows: Matrix, sample_weight: FloatArray | None) -> float:
    """Return 1 / (d times the mean variance of the columns), 1 if they do not vary."""
    if issparse(rows):
        with np.errstate(all="ignore"):
            variances = np.square(sparse_deviations(table_of(rows), sample_weight))
            return gamma_of_variance(float(variances.sum()))
    total = 0.0
    with np.errstate(all="ignore"):
        for column in rows.T:
            # Centered twice: far from the origin the first mean is rounded.
            centered = column - np.average(column, weights=sample_weight)
            centered -= np.average(centered, weights=sample_weight)
            total += float(np.average(centered * centered, weights=sample_weight))
    return gamma_of_variance(total)


def gamma_of_variance(total: float) -> float:
    """Return "scale" for the sum of the columns' variances.

    Raises ValueError if it overflows.
    """
    gamma = 1.0 / total if total > 0 else 1.0
    if not 0 < gamma < np.inf:
        raise ValueError(
            f'gamma="scale" is 1 / (n_features x variance), but the variance is {total:g}: rescale '
            "the columns or give gamma as a number."
        )
    return gamma
