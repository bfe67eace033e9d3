"""The gap statistic: within-cluster sums against those of rows without clusters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._data import Table, check_sample_weight, columns_of
from .._util import FloatArray, ProgressBar, is_number, quoted_column
from . import fits
from .fits import Selection

# Within-cluster sums below this share of the largest one are rounding, and count as 0.
_ROUNDING = 1e-12
# Gaps this near to each other differ by rounding.
_GAP_ROUNDING = 1e-12


def gap_statistic(
    estimator: Any,
    X: Any,
    k_values: Iterable[int],
    *,
    param: str | None = None,
    n_references: int = 20,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Selection:
    """Choose the number of clusters by the gap statistic.

    The within-cluster sum W(k) of the data, in logarithms, is compared with that of data without
    clusters: rows drawn uniformly in the box of the columns' ranges. Gap(k) is the mean of
    log W*(k) over the draws, less log W(k). Chosen is the smallest k whose gap is within one
    standard error of the next number's: Gap(k) >= Gap(k') - sd(k') sqrt(1 + 1/B).

    Parameters
    ----------
    estimator : estimator
        Clusterer with a parameter `n_clusters`, and after its fit an `inertia_`, which is W; of a
        kernel method the `kernel_cost_`. Or a Pipeline that ends in one.
    X : array-like or frame of shape (n_samples, n_features)
        The data, in the columns the estimator takes.
    k_values : iterable of int
        Numbers of clusters to try, each at least 1. With 1 among them "no clusters" can be the
        answer. The rule compares each with the next larger one.
    %(selection_param)s
        It must be one of the last step.
    n_references : int, default=20
        Number B of draws, at least 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for the fits to the data and to the draws alike.
    random_state : int, RandomState instance or None, default=None
        Where the draws come from, and the `random_state` of the estimator where that is None.
    n_jobs : int, default=None
        Processes that share the draws, as in joblib; None is 1. The estimator may use threads of
        its own.
    %(selection_verbose)s

    Returns
    -------
    Selection
        With a frame of the columns ``k`` (or the name of the parameter); ``n_clusters``, as many as
        were found in the data; ``w``, W(k); ``log_w``; ``reference_log_w``, the mean over the
        draws; ``gap``; ``sd``, the standard deviation over the draws; ``error``,
        sd sqrt(1 + 1/B).

    Raises
    ------
    TypeError
        If the estimator lacks the parameter or the `inertia_`, or a column holds text.
    ValueError
        If a number is out of range, X is not finite, the estimator takes a precomputed kernel or
        refuses to fit, a column has gaps, W is negative (kernels that are not positive
        semidefinite), or `param` is one of an earlier step of a Pipeline.

    Warns
    -----
    UserWarning
        If no number satisfies the rule, because the gap still rises at the largest, which is then
        taken.

    Notes
    -----
    Where W(k) is 0 (every cluster is one point) the gap is inf, so that number satisfies the rule;
    where W*(k) is 0 too, the two are equal and the draw counts as a gap of 0; a draw with W*(k) = 0
    alone as -inf. An infinite gap has sd 0. Time is that of B + 1 fits for each number.

    The draws are measured as the data are: in the units that the estimator's `scale` makes of the
    data, with the data's gamma with ``gamma="scale"``, and in the columns that the last step of a
    Pipeline sees, in whose ranges they are drawn.

    References
    ----------
    R. Tibshirani, G. Walther, T. Hastie, "Estimating the number of clusters in a data set via the
    gap statistic", 2001. For Kauri: the paper's appendix I; its eq. 52 should have the trace of the
    kernel matrix, not the sum of its entries.

    Examples
    --------
    >>> import numpy as np
    >>> from treeclust_rs import ExKMC
    >>> from treeclust_rs.selection import gap_statistic
    >>> X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 30, axis=0)
    >>> X += np.random.default_rng(0).normal(size=X.shape)
    >>> gap_statistic(ExKMC(), X, range(1, 6), n_references=5, random_state=0).best_k
    3
    """
    param = fits.check_param(estimator, param)
    last, prefix = fits.last_of(estimator), fits.prefix_of(estimator)
    if not param.startswith(prefix):
        raise ValueError(
            f"param={param!r} is none of the last step: within-cluster sums of rows that are "
            "transformed differently do not compare. silhouette() and stability() take it."
        )
    numbers = fits.check_numbers(k_values)
    if not is_number(n_references, Integral) or n_references < 1:
        raise ValueError(f"n_references must be an int >= 1. Got {n_references!r} instead.")
    fits.check_verbose(verbose)
    if fits.parameter(last, "kernel") == "precomputed":
        raise ValueError(
            "The gap statistic clusters rows that are drawn anew, for which there is no "
            "precomputed kernel: give the kernel as a callable, or use silhouette()."
        )
    if issparse(X):
        raise TypeError(
            "gap_statistic takes no sparse input: its draws fill the box of the columns' ranges, "
            "so that none of their cells is 0. silhouette() and stability() take sparse rows."
        )
    X, n = fits.rows_of(estimator, X, "gap_statistic", _check_ranges)
    weight = check_sample_weight(sample_weight, n)
    rng = check_random_state(random_state)
    models = fits.clones(estimator, param, numbers, rng)
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_references)

    with ProgressBar("gap_statistic", len(numbers) + n_references, verbose) as bar:
        w = np.empty(len(numbers))
        for place, (k, model) in enumerate(zip(numbers, models, strict=True)):
            w[place] = fits.inertia_of(fits.fit(model, X, weight))
            bar.step(f"k {k}: inertia {w[place]:.6g}")
        seen, mixed = fits.seen_by_last(models[0], X), fits.takes_mixed(last)
        _, table = fits.read(seen, "gap_statistic", mixed=mixed)
        _check_ranges(table)
        low, high = _box(table, weight)
        like_data, of_data = clone(last), fits.last_of(models[0])
        scale = getattr(of_data, "scale_", None)
        if scale is not None and fits.parameter(last, "scale") is not None:
            low, high = low / scale, high / scale
            like_data.set_params(scale=np.ones(len(scale)))
        if fits.parameter(last, "gamma") == "scale" and hasattr(of_data, "gamma_"):
            like_data.set_params(gamma=of_data.gamma_)
        # A process draws its own rows, so that only one draw is held at a time.
        given = (like_data, param.removeprefix(prefix), numbers, low, high, table.n_samples, weight)
        tasks = ((*given, int(seed)) for seed in seeds)
        drawn = np.array(
            fits.run_all(
                _reference_inertias,
                tasks,
                n_jobs,
                bar,
                lambda place, _: f"draw {place + 1} of {n_references}",
            )
        )
    if not (high > low).any():
        w[:], drawn[:] = 0.0, 0.0  # one point: what they hold is rounding
    _clear_rounding(w, drawn)
    gap, sd = _gaps(w, drawn)
    error = sd * np.sqrt(1.0 + 1.0 / n_references)
    with np.errstate(divide="ignore"):
        log_w, log_drawn = np.log(w), np.log(drawn)
    frame = pl.DataFrame(
        {
            fits.column_of(param): numbers,
            "n_clusters": list(map(fits.n_clusters_of, models, numbers)),
            "w": w,
            "log_w": log_w,
            "reference_log_w": log_drawn.mean(axis=0),
            "gap": gap,
            "sd": sd,
            "error": error,
        }
    )
    best = _one_standard_error(numbers, gap, error)
    return Selection(numbers[best], models[best], frame, "gap")


def _reference_inertias(
    estimator: Any,
    param: str,
    numbers: Sequence[int],
    low: FloatArray,
    high: FloatArray,
    n_samples: int,
    sample_weight: FloatArray | None,
    seed: int,
) -> list[float]:
    """Return W for each number on rows drawn uniformly in the box."""
    rng = np.random.RandomState(seed)
    drawn = rng.uniform(low, high, size=(n_samples, len(low)))
    models = fits.clones(estimator, param, numbers, rng)
    return [fits.inertia_of(fits.fit(model, drawn, sample_weight)) for model in models]


def _check_ranges(table: Any) -> None:
    """Raise ValueError if a column has gaps, TypeError if one holds text, which has no range."""
    why = "The gap statistic draws rows in the ranges of the columns"
    fits.check_no_gaps(table, why)
    for f, kind in enumerate(getattr(table, "kinds", None) or ()):
        if kind == "levels":
            name = quoted_column(table.feature_names, f)
            raise TypeError(
                f"{why}, and column {name} holds text. silhouette() and stability() take text."
            )


def _box(table: Table, sample_weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of every column, over rows of positive weight."""
    kept = slice(None) if sample_weight is None else sample_weight > 0
    columns = (column[kept] for column in columns_of(table))
    ends = [(float(column.min()), float(column.max())) for column in columns]
    low, high = np.array(ends).T
    return low, high


def _clear_rounding(w: FloatArray, drawn: FloatArray) -> None:
    """Set sums that are rounding to 0; raise ValueError for negative ones."""
    zero = _ROUNDING * max(float(np.abs(w).max()), float(np.abs(drawn).max()))
    for sums in (w, drawn):
        if sums.min() < -zero:
            raise ValueError(
                f"The kernel_cost_ of a fit is {float(sums.min()):g}. The gap statistic takes its "
                "logarithm, and has no meaning for a kernel that is not positive semidefinite."
            )
        sums[sums <= zero] = 0.0


def _gaps(w: FloatArray, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of log(W* / W) over the draws."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.log(drawn) - np.log(w)
    each[:, w == 0] = np.where(drawn[:, w == 0] == 0, 0.0, np.inf)
    gap = each.mean(axis=0)
    finite = np.isfinite(gap)
    sd = np.zeros(len(w))
    sd[finite] = each[:, finite].std(axis=0)
    return gap, sd


def _one_standard_error(numbers: Sequence[int], gap: FloatArray, error: FloatArray) -> int:
    """Return the place of the smallest number that satisfies the rule."""
    for i in range(len(numbers) - 1):
        if gap[i] >= gap[i + 1] - error[i + 1] - _GAP_ROUNDING:
            return i
    if len(numbers) > 1 and np.isfinite(gap[-1]):
        warnings.warn(
            f"The gap still rises at k={numbers[-1]}, the largest of k_values, which is taken. Try "
            "larger ones.",
            UserWarning,
            stacklevel=3,
        )
    return len(numbers) - 1
