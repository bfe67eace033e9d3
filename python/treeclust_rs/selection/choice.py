"""How many clusters, and how wide a kernel? Fits over a range of one parameter, side by side.

The gap statistic and the silhouette take any clusterer of this package or of scikit-learn with a
parameter `n_clusters` or `max_clusters`; the sweep over gamma takes one with a kernel. They fit a
clone for every value, and leave the estimator they were given as it was.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.metrics import silhouette_score
from sklearn.utils import check_random_state

from .. import _engine
from .._data.table import Table, check_finite, check_sample_weight, read_table
from .._data.units import Units
from .._kernels.gram import check_gram
from .._kernels.kernels import KERNELS
from .._kernels.parameters import make_kernel
from .._util.arrays import FloatArray, check_size
from .._util.threads import effective_n_jobs
from .._util.validation import is_number
from ..estimators.kauri import Kauri
from ..metrics import adjusted_rand_index, agreement

__all__ = ["GammaSweep", "Selection", "gamma_sweep", "gap_statistic", "silhouette"]


# Within-cluster sums below this share of the largest one are rounding, and count as 0.
_ZERO = 1e-12
# Gaps this near to each other differ by rounding.
_SAME = 1e-12
# Without gammas of the user's: this power of 2 up and down from that of "scale".
_OCTAVES = 6
_NOISE = -1
_BAR_WIDTH = 20


@dataclass(frozen=True, eq=False)
class Selection:
    """What a search for the number of clusters found.

    Attributes
    ----------
    best_k : int
        The number chosen.
    best_estimator : estimator
        The clone fitted with it, on the data.
    frame : polars.DataFrame
        One row for each number, in rising order; see the function that made it for the columns.
    """

    best_k: int
    best_estimator: Any
    frame: pl.DataFrame


def gap_statistic(
    estimator: Any,
    X: Any,
    k_values: Iterable[int],
    *,
    n_references: int = 20,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Selection:
    """Choose the number of clusters by the gap statistic.

    The within-cluster sum W(k) of the data, in logarithms, is compared with that of data without
    clusters: rows drawn uniformly in the box of the columns' ranges. Gap(k) is the mean of
    log W*(k) over the draws, less log W(k). Chosen is the smallest k whose gap is within one
    standard error of the next number's: Gap(k) >= Gap(k') - sd(k') sqrt(1 + 1/B).

    Parameters
    ----------
    estimator : estimator
        Clusterer with a parameter `n_clusters` or `max_clusters`, and after its fit an `inertia_`,
        which is W: of `Kauri` the sum of the kernel's diagonal less its objective.
    X : array-like or frame of shape (n_samples, n_features)
        The data, in the columns the estimator takes.
    k_values : iterable of int
        Numbers of clusters to try, each at least 1. With 1 among them "no clusters" can be the
        answer. The rule compares each with the next larger one.
    n_references : int, default=20
        Number B of draws, at least 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for the fits to the data and to the draws alike.
    random_state : int, RandomState instance or None, default=None
        Where the draws come from, and the `random_state` of the estimator where that is None.
    n_jobs : int, default=None
        Processes that share the draws, as in joblib; None is 1. The estimator may use threads of
        its own.

    Returns
    -------
    Selection
        With a frame of the columns ``k``; ``n_clusters``, as many as were found in the data;
        ``w``, W(k); ``log_w``; ``reference_log_w``, the mean over the draws; ``gap``; ``sd``, the
        standard deviation over the draws; ``error``, sd sqrt(1 + 1/B).

    Raises
    ------
    TypeError
        If the estimator lacks the parameter or the `inertia_`.
    ValueError
        If a number is out of range, X is not finite, the estimator takes a precomputed kernel or
        refuses to fit, or W is negative (kernels that are not positive semidefinite).

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

    The draws are measured as the data are: in the data's standard deviations with
    ``scale="standard"``, and with the data's gamma with ``gamma="scale"``.

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
    name = _cluster_parameter(estimator)
    numbers = _check_numbers(k_values)
    if not is_number(n_references, Integral) or n_references < 1:
        raise ValueError(f"n_references must be an int >= 1. Got {n_references!r} instead.")
    if _parameter(estimator, "kernel") == "precomputed":
        raise ValueError(
            "The gap statistic clusters rows that are drawn anew, for which there is no "
            "precomputed kernel: give the kernel as a callable, or use silhouette()."
        )
    table = _read(X, "gap_statistic")
    weight = check_sample_weight(sample_weight, table.n_samples)
    rng = check_random_state(random_state)
    models = [_clone(estimator, name, k, rng) for k in numbers]
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_references)

    models = [_fit(model, X, weight) for model in models]
    w = np.array([_inertia(model) for model in models])
    low, high = _box(table, weight)
    like_data = clone(estimator)
    if _parameter(estimator, "scale") == "standard":
        _, scale = _engine.column_units(table.data, weight, True, effective_n_jobs(None))
        low, high = low / scale, high / scale
        like_data.set_params(scale=None)
    if _parameter(estimator, "gamma") == "scale" and hasattr(models[0], "gamma_"):
        like_data.set_params(gamma=models[0].gamma_)
    # A process draws its own rows, so that only one draw is held at a time.
    drawn = np.array(
        Parallel(n_jobs=n_jobs)(
            delayed(_reference_inertias)(
                like_data, name, numbers, low, high, table.n_samples, weight, int(seed)
            )
            for seed in seeds
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
            "k": numbers,
            "n_clusters": [_n_found(model, k) for model, k in zip(models, numbers, strict=True)],
            "w": w,
            "log_w": log_w,
            "reference_log_w": log_drawn.mean(axis=0),
            "gap": gap,
            "sd": sd,
            "error": error,
        }
    )
    best = _one_standard_error(numbers, gap, error)
    return Selection(numbers[best], models[best], frame)


def silhouette(
    estimator: Any,
    X: Any,
    k_values: Iterable[int],
    *,
    metric: Any = None,
    gram: Any = None,
    sample_size: int | None = None,
    random_state: Any = None,
) -> Selection:
    """Choose the number of clusters by the largest mean silhouette.

    Parameters
    ----------
    estimator : estimator
        Clusterer with a parameter `n_clusters` or `max_clusters`, and after its fit `labels_`.
    X : array-like or frame of shape (n_samples, n_features)
        The data.
    k_values : iterable of int
        Numbers of clusters to try, each at least 2.
    metric : str, callable or None, default=None
        Distance between rows, as for scikit-learn's `silhouette_score`. None: the distance the
        estimator clusters by, of `Kauri` the distance sqrt(k(x, x) + k(y, y) - 2 k(x, y)) of its
        kernel k (an approximation aside); of others their parameter `metric`, Manhattan with
        ``criterion="kmedians"``, else Euclidean. ``scale="standard"`` is minded in any case.
    gram : array-like of shape (n_samples, n_samples), default=None
        Kernel matrix, passed to the fit, for an estimator with ``kernel="precomputed"``.
    sample_size : int, default=None
        Draw so many rows, the same for every number, and take the silhouette of these; None: of
        all. The fits see all rows.
    random_state : int, RandomState instance or None, default=None
        Where the sample comes from, and the `random_state` of the estimator where that is None.

    Returns
    -------
    Selection
        With a frame of the columns ``k``; ``n_clusters``, as many as were found; ``silhouette``,
        between -1 and 1, null where the rows were not in 2 to n - 1 clusters. Among equal
        silhouettes the smallest number is taken.

    Raises
    ------
    TypeError
        If the estimator lacks the parameter or the `labels_`.
    ValueError
        If a number is out of range, X is not finite, the estimator refuses to fit, no number gave 2
        to n - 1 clusters, or the kernel's distances do not fit in memory.

    Notes
    -----
    Time is that of one fit for each number, and O(n^2) distances for each.

    References
    ----------
    P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis", 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from treeclust_rs import IMM
    >>> from treeclust_rs.selection import silhouette
    >>> X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 30, axis=0)
    >>> X += np.random.default_rng(0).normal(size=X.shape)
    >>> silhouette(IMM(), X, range(2, 6), random_state=0).best_k
    3
    """
    name = _cluster_parameter(estimator)
    numbers = _check_numbers(k_values, at_least=2)
    table = _read(X, "silhouette")
    n = table.n_samples
    extra = {} if gram is None else {"gram": check_gram(gram, n)}
    if sample_size is not None and not (is_number(sample_size, Integral) and sample_size >= 2):
        raise ValueError(f"sample_size must be an int >= 2, or None. Got {sample_size!r} instead.")
    rng = check_random_state(random_state)
    models = [_clone(estimator, name, k, rng) for k in numbers]
    rows = None
    if sample_size is not None and sample_size < n:
        rows = np.sort(rng.choice(n, int(sample_size), replace=False))
    models = [_fit(model, X, None, **extra) for model in models]
    points, metric = _geometry(models[0], table, rows, metric, extra.get("gram"))
    scores: list[float | None] = []
    for model in models:
        labels = _labels(model)
        labels = labels if rows is None else labels[rows]
        n_found = len(np.unique(labels))
        scored = 2 <= n_found < len(labels)
        scores.append(float(silhouette_score(points, labels, metric=metric)) if scored else None)
    known = [score for score in scores if score is not None]
    if not known:
        raise ValueError(
            f"None of k = {_listed(numbers)} put the rows into 2 to n - 1 clusters, so there is no "
            "silhouette: X may have too few distinct rows."
        )
    best = scores.index(max(known))
    frame = pl.DataFrame(
        {
            "k": numbers,
            "n_clusters": [_n_found(model, k) for model, k in zip(models, numbers, strict=True)],
            "silhouette": pl.Series(scores, dtype=pl.Float64),
        }
    )
    return Selection(numbers[best], models[best], frame)


@dataclass(frozen=True, eq=False)
class GammaSweep:
    """What fits with different gammas gave.

    Attributes
    ----------
    table : polars.DataFrame
        One row for each gamma, in rising order. Which columns there are depends on the estimator:

        - ``gamma``;
        - ``reference_inertia``, ``inertia``: kernel costs of the reference and of what the
          estimator found. The kernel being another one in each row, they are comparable within a
          row only;
        - ``price``: the price of explainability, the tree's cost divided by the reference's;
        - ``agreement``: share of the weight on which tree and reference agree
          (`treeclust_rs.metrics.agreement`);
        - ``reference_ari``, ``ari``: adjusted Rand indices of the reference and of what the
          estimator found, with `y`;
        - ``n_clusters``, ``n_leaves``: how many the estimator found.

        Trees that explain a reference have all of them, `Kauri` and `KernelKMeans` none that speak
        of a reference, and `KernelKMeans` no leaves. Null where a fit was refused.
    """

    table: pl.DataFrame

    def best(self, by: str | None = None) -> dict[str, Any]:
        """Give the row that is best by one column.

        Parameters
        ----------
        by : {"reference_ari", "ari", "agreement"}, default=None
            The column whose largest value is sought; None: the first of these three that there is.
            Of equal values that of the smallest gamma counts, whose kernel is the smoothest.

        Returns
        -------
        dict
            The row: ``estimator.set_params(gamma=sweep.best()["gamma"])``.

        Raises
        ------
        ValueError
            If there is no such column, or it is one that gammas must not be chosen by: costs and
            prices get better as gamma grows whatever the clusters are, see `gamma_sweep`.
        """
        known = [name for name in ("reference_ari", "ari", "agreement") if name in self.table]
        if by is None and known:
            by = known[0]
        if by in ("price", "inertia", "reference_inertia"):
            raise ValueError(
                f"by={by!r} would take the largest gamma: the price of any partition tends to 1 "
                f"as gamma grows, and costs under different kernels do not compare. {_use(known)}"
            )
        if by not in known:
            asked = "" if by is None else f"by={by!r} is not one a gamma is chosen by. "
            raise ValueError(asked + _use(known))
        row = (
            self.table.drop_nulls(by).sort(by, "gamma", descending=[True, False]).row(0, named=True)
        )
        return dict(row)


def _use(known: list[str]) -> str:
    if known:
        return f"Take {' or '.join(map(repr, known))}."
    return "There is nothing to choose a gamma by: give y, the truth, to gamma_sweep."


def gamma_sweep(
    estimator: Any,
    X: Any,
    gammas: Iterable[float] | None = None,
    *,
    y: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    verbose: int = 0,
) -> GammaSweep:
    """Fit an estimator with a kernel for many gammas, and report costs, agreement and price.

    Do not choose gamma by the price of explainability alone. As gamma grows every row becomes
    similar to itself only: the kernel matrix tends to the identity, every partition into k clusters
    to the same cost, n - k, and so the price of *any* partition to 1, however wrong the tree. Read
    it beside the agreement, and the costs beside n - k. As gamma falls, kernel k-means tends to
    k-means, and what it finds to what it would find without a kernel.

    Parameters
    ----------
    estimator : estimator
        Clusterer with a parameter `gamma` and a kernel that has one: `KernelKMeans`, `KernelIMM`,
        `KernelExKMC`, `KernelExpand` or `Kauri`.
    X : array-like or frame of shape (n_samples, n_features)
        The data, in the columns the estimator takes.
    gammas : iterable of float, default=None
        Values to try, each > 0. None: 13, by factors of 2 from 1/64 (4^-3) to 64 (4^3) times that
        of ``gamma="scale"``.
    y : array-like of shape (n_samples,), default=None
        The truth, integers or strings, for the adjusted Rand indices; rows labelled -1 are left out
        of them.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for the fits and for the agreement.
    random_state : int, RandomState instance or None, default=None
        The `random_state` of the estimator where that is None. All gammas have the same, so that
        they differ by gamma alone.
    verbose : int, default=0
        1: a progress bar on stderr, if that is a terminal. 2: one in any case; elsewhere than on a
        terminal it is a line for each gamma.

    Returns
    -------
    GammaSweep
        With the frame `table`, and `best`.

    Raises
    ------
    TypeError
        If the estimator has no parameter `gamma`.
    ValueError
        If its kernel has no gamma, a gamma is not > 0 and finite, y has another length, or the
        estimator refuses every gamma.

    Warns
    -----
    UserWarning
        If the estimator refuses some gammas, with a ValueError, as it may where kernel values
        underflow. The other columns of their rows are null.

    Notes
    -----
    Time is that of one fit for each gamma, and of the kernel costs of its two partitions, O(n^2)
    each without an approximation. Of the models nothing is kept but the numbers.

    References
    ----------
    The price of explainability: Fleissner, Vankadara, Ghoshdastidar. Explaining kernel clustering
    via decision trees, 2024.

    Examples
    --------
    >>> import treeclust_rs as tc
    >>> from sklearn.datasets import make_circles
    >>> from treeclust_rs.selection import gamma_sweep
    >>> X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> sweep = gamma_sweep(tc.KernelKMeans(2), X, [0.1, 1, 4, 100], y=y, random_state=0)
    >>> sweep.best()["gamma"]
    4.0
    """
    _check_has_gamma(estimator)
    if not (is_number(verbose, Integral) and verbose >= 0):
        raise ValueError(f"verbose must be an int >= 0. Got {verbose!r} instead.")
    given = None if gammas is None else _check_gammas(gammas)
    table = _read(X, "gamma_sweep")
    weight = check_sample_weight(sample_weight, table.n_samples)
    truth = None if y is None else _check_truth(y, table.n_samples)
    model = clone(estimator)
    if _parameter(model, "random_state", missing=0) is None:
        rng = check_random_state(random_state)
        model.set_params(random_state=int(rng.randint(np.iinfo(np.int32).max)))

    rows: list[dict[str, Any]] = []
    refused: list[tuple[float, ValueError]] = []
    n_gammas = 2 * _OCTAVES + 1 if given is None else len(given)
    with _ProgressBar("gamma_sweep", n_gammas, verbose) as bar:
        if given is None:
            # The fit settles what "scale" is, of the rows and units it uses.
            first = _fit(clone(model).set_params(gamma="scale"), X, weight)
            center = float(first.gamma_)
            rows.append({"gamma": center, **_measures(first, weight, truth)})
            bar.step(_told(rows[-1]))
            octaves = np.arange(-_OCTAVES, _OCTAVES + 1)
            given = [math.ldexp(center, int(octave)) for octave in octaves if octave]
            del first
        for gamma in given:
            try:
                fitted = _fit(clone(model).set_params(gamma=gamma), X, weight)
                rows.append({"gamma": gamma, **_measures(fitted, weight, truth)})
                bar.step(_told(rows[-1]))
            except ValueError as error:
                refused.append((gamma, error))
                bar.step(f"gamma {gamma:.4g}: refused")
    if not rows:
        raise refused[0][1]
    if refused:
        listed = ", ".join(f"{gamma:.4g}" for gamma, _ in refused)
        warnings.warn(
            f"{type(estimator).__name__} refused {len(refused)} of {n_gammas} gammas ({listed}), "
            f"the first with: {refused[0][1]}",
            UserWarning,
            stacklevel=2,
        )
    frame = pl.DataFrame(rows)
    empty = pl.DataFrame({"gamma": [gamma for gamma, _ in refused]}, schema={"gamma": pl.Float64})
    return GammaSweep(pl.concat([frame, empty], how="diagonal").sort("gamma"))


# ---- fits ---------------------------------------------------------------------------------


def _parameter(estimator: Any, name: str, missing: Any = None) -> Any:
    """Give the parameter's value, `missing` where there is no such parameter."""
    return estimator.get_params(deep=False).get(name, missing)


def _cluster_parameter(estimator: Any) -> str:
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(f"An estimator is needed, for example KMeans(). Got {estimator!r} instead.")
    names = estimator.get_params(deep=False)
    for name in ("n_clusters", "max_clusters"):
        if name in names:
            return name
    raise TypeError(
        f"{type(estimator).__name__} has no parameter n_clusters or max_clusters, so the number of "
        "its clusters cannot be chosen."
    )


def _clone(estimator: Any, name: str, k: int, rng: Any) -> Any:
    model = clone(estimator).set_params(**{name: k})
    params = model.get_params(deep=False)
    if "random_state" in params and params["random_state"] is None:
        model.set_params(random_state=int(rng.randint(np.iinfo(np.int32).max)))
    return model


def _fit(model: Any, X: Any, sample_weight: FloatArray | None, **extra: Any) -> Any:
    if sample_weight is not None:
        extra["sample_weight"] = sample_weight
    return model.fit(X, **extra)


def _reference_inertias(
    estimator: Any,
    name: str,
    numbers: Sequence[int],
    low: FloatArray,
    high: FloatArray,
    n_samples: int,
    sample_weight: FloatArray | None,
    seed: int,
) -> list[float]:
    """W for each number on rows drawn uniformly in the box."""
    rng = np.random.RandomState(seed)
    drawn = rng.uniform(low, high, size=(n_samples, len(low)))
    return [_inertia(_fit(_clone(estimator, name, k, rng), drawn, sample_weight)) for k in numbers]


def _inertia(model: Any) -> float:
    inertia = getattr(model, "inertia_", None)
    if inertia is None:
        raise TypeError(
            f"{type(model).__name__} has no inertia_ (the within-cluster sum), which the gap "
            "statistic is made of; silhouette() does without."
        )
    return float(inertia)


def _labels(model: Any) -> npt.NDArray[Any]:
    labels = getattr(model, "labels_", None)
    if labels is None:
        raise TypeError(f"{type(model).__name__} has no labels_ after its fit.")
    return np.asarray(labels)


def _n_found(model: Any, k: int) -> int:
    return len(np.unique(_labels(model))) if hasattr(model, "labels_") else k


# ---- the gap ------------------------------------------------------------------------------


def _box(table: Table, sample_weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of every column, over the rows that count."""
    kept = slice(None) if sample_weight is None else sample_weight > 0
    columns = table.data if isinstance(table.data, list) else list(table.data.T)
    ends = [(float(column[kept].min()), float(column[kept].max())) for column in columns]
    low, high = np.array(ends).T
    return low, high


def _clear_rounding(w: FloatArray, drawn: FloatArray) -> None:
    """Set what is rounding to 0."""
    zero = _ZERO * max(float(np.abs(w).max()), float(np.abs(drawn).max()))
    for sums in (w, drawn):
        if sums.min() < -zero:
            raise ValueError(
                f"The inertia_ of a fit is {float(sums.min()):g}. The gap statistic takes its "
                "logarithm, and has no meaning for a kernel that is not positive semidefinite."
            )
        sums[sums <= zero] = 0.0


def _gaps(w: FloatArray, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of log(W* / W) over the draws."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.log(drawn) - np.log(w)
    each[:, w == 0] = np.where(drawn[:, w == 0] == 0, 0.0, np.inf)
    gap = each.mean(axis=0)
    finite = np.isfinite(gap)
    sd = np.zeros(len(w))
    sd[finite] = each[:, finite].std(axis=0)
    return gap, sd


def _one_standard_error(numbers: Sequence[int], gap: FloatArray, error: FloatArray) -> int:
    """Place of the smallest number that satisfies the rule."""
    for i in range(len(numbers) - 1):
        if gap[i] >= gap[i + 1] - error[i + 1] - _SAME:
            return i
    if len(numbers) > 1 and np.isfinite(gap[-1]):
        warnings.warn(
            f"The gap still rises at k={numbers[-1]}, the largest of k_values, which is taken. Try "
            "larger ones.",
            UserWarning,
            stacklevel=3,
        )
    return len(numbers) - 1


# ---- the sweep over gamma -----------------------------------------------------------------


def _measures(
    model: Any, sample_weight: FloatArray | None, truth: npt.NDArray[Any] | None
) -> dict[str, Any]:
    """Give what is written down of a fit."""
    labels = _labels(model)
    has_reference = hasattr(model, "reference_labels_")
    found: dict[str, Any] = {}
    if has_reference:
        found["reference_inertia"] = float(model.reference_inertia_)
    found["inertia"] = _inertia(model)
    if has_reference:
        found["price"] = float(model.price_of_explainability_)
        reference = np.asarray(model.reference_labels_)
        kept = ~_is_noise(reference)
        weight = None if sample_weight is None else sample_weight[kept]
        found["agreement"] = agreement(labels[kept], reference[kept], weight)
        if truth is not None:
            found["reference_ari"] = _ari(truth, reference)
    if truth is not None:
        found["ari"] = _ari(truth, labels)
    found["n_clusters"] = len(np.unique(labels))
    if hasattr(model, "tree_"):
        found["n_leaves"] = int(model.n_leaves_)
    return found


def _ari(truth: npt.NDArray[Any], labels: npt.NDArray[Any]) -> float:
    """Give the adjusted Rand index of the rows that are noise in neither."""
    kept = ~(_is_noise(truth) | _is_noise(labels))
    codes = [np.unique(marks[kept], return_inverse=True)[1] for marks in (truth, labels)]
    return float(adjusted_rand_index(*codes))


def _is_noise(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    # Noise among strings makes an array of objects.
    return np.array([label == _NOISE for label in labels.tolist()], dtype=bool)


def _told(row: dict[str, Any]) -> str:
    """Write the numbers of a fit that are looked at first."""
    first = "price" if "price" in row else "inertia"
    names = [name for name in (first, "agreement", "reference_ari", "ari") if name in row]
    return f"gamma {row['gamma']:.4g}: " + ", ".join(f"{name} {row[name]:.4g}" for name in names)


class _ProgressBar:
    """One line on stderr that is written over; line after line where that is no terminal."""

    def __init__(self, name: str, total: int, verbose: int) -> None:
        self._name, self._total, self._done = name, total, 0
        self._is_terminal = sys.stderr.isatty()
        self._is_on = verbose > 1 or (verbose == 1 and self._is_terminal)
        self._started = time.perf_counter()
        self._width = 0

    def __enter__(self) -> Self:
        if self._is_terminal:
            self._write("")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_on and self._is_terminal:
            print(file=sys.stderr, flush=True)

    def step(self, text: str) -> None:
        """Say that one more is done, and what it gave."""
        self._done += 1
        self._write(text)

    def _write(self, text: str) -> None:
        if not self._is_on:
            return
        elapsed = time.perf_counter() - self._started
        filled = _BAR_WIDTH * self._done // self._total
        bar = "#" * filled + "." * (_BAR_WIDTH - filled)
        line = f"[{self._name}] {bar} {self._done}/{self._total}, {elapsed:.1f} s  {text}".rstrip()
        if self._is_terminal:
            # A line that wraps could not be written over.
            line = line[: shutil.get_terminal_size().columns - 1]
            start, end = "\r", " " * max(self._width - len(line), 0)
            self._width = len(line)
        else:
            start, end = "", "\n"
        print(f"{start}{line}", end=end, file=sys.stderr, flush=True)


# ---- the silhouette's distances -----------------------------------------------------------


def _geometry(
    model: Any,
    table: Table,
    rows: npt.NDArray[np.int64] | None,
    metric: Any,
    gram: FloatArray | None,
) -> tuple[FloatArray, Any]:
    """Give the rows, or their distances, and scikit-learn's name of the metric."""
    if metric is None and gram is not None:
        return _kernel_distances(gram if rows is None else gram[np.ix_(rows, rows)]), "precomputed"
    if metric is None and isinstance(model, Kauri):
        return _kernel_geometry(model, table, rows)
    if metric is None:
        metric = _parameter(model, "metric")
    if metric is None:
        metric = "manhattan" if _parameter(model, "criterion") == "kmedians" else "euclidean"
    standard = _parameter(model, "scale") == "standard"
    shift, scale = _engine.column_units(table.data, None, standard, effective_n_jobs(None))
    if metric not in ("euclidean", "l2", "sqeuclidean", "manhattan", "l1", "cityblock"):
        shift = np.zeros_like(shift)  # others may see the origin
    points = Units(shift, scale).matrix(table)
    if rows is None:
        return points, metric
    return points[np.ix_(rows, rows)] if metric == "precomputed" else points[rows], metric


def _kernel_geometry(
    model: Kauri, table: Table, rows: npt.NDArray[np.int64] | None
) -> tuple[FloatArray, str]:
    kernel, points, _ = model._kernel_view(table)
    if rows is not None:
        points = points[rows]
    features = kernel.explicit_features(points)
    if features is not None:
        return features, "euclidean"
    _check_distances(len(points))
    n_jobs = effective_n_jobs(model.n_jobs)
    return _kernel_distances(kernel.matrix(points, n_jobs=n_jobs)), "precomputed"


def _check_distances(n: int) -> None:
    check_size(n * n, f"The distances of {n:,} rows", "Use sample_size.")


def _kernel_distances(gram: FloatArray) -> FloatArray:
    _check_distances(len(gram))
    diagonal = gram.diagonal()
    squared = gram * -2.0
    squared += diagonal[:, None]
    squared += diagonal
    np.maximum(squared, 0.0, out=squared)
    np.fill_diagonal(squared, 0.0)
    return np.sqrt(squared, out=squared)


# ---- checks -------------------------------------------------------------------------------


def _read(X: Any, who: str) -> Table:
    table = read_table(X, estimator_name=who)
    check_finite(table, effective_n_jobs(None))
    return table


def _check_numbers(k_values: Iterable[int], at_least: int = 1) -> list[int]:
    given = list(k_values)
    for k in given:
        if not is_number(k, Integral):
            raise TypeError(f"k_values must hold ints. Got {k!r} among them.")
        if k < at_least:
            raise ValueError(f"k_values must be at least {at_least}. Got {k} among them.")
    if not given:
        raise ValueError("k_values is empty: give at least one number of clusters.")
    return sorted({int(k) for k in given})


def _check_has_gamma(estimator: Any) -> None:
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"An estimator is needed, for example KernelKMeans(). Got {estimator!r} instead."
        )
    name = type(estimator).__name__
    if "gamma" not in estimator.get_params(deep=False):
        raise TypeError(f"{name} has no parameter gamma.")
    kernel = _parameter(estimator, "kernel", missing="rbf")
    if callable(kernel) or kernel == "precomputed":
        raise ValueError(
            f"The kernel of this {name} is {'a function' if callable(kernel) else 'precomputed'}, "
            "and has no gamma to try."
        )
    if kernel in KERNELS and not _has_gamma(kernel):
        with_gamma = [known for known in KERNELS if _has_gamma(known)]
        raise ValueError(
            f"The kernel {kernel!r} has no gamma; {', '.join(with_gamma[:-1])} and "
            f"{with_gamma[-1]} have one."
        )


def _has_gamma(kernel: str) -> bool:
    if kernel == "epsilon":  # needs parameters
        return False
    return make_kernel(kernel, X=np.zeros((1, 1))).gamma is not None


def _check_gammas(gammas: Iterable[float]) -> list[float]:
    given = list(gammas)
    for gamma in given:
        if not is_number(gamma):
            raise TypeError(f"gammas must hold numbers. Got {gamma!r} among them.")
        if not 0 < gamma < math.inf:
            raise ValueError(f"gammas must be > 0 and finite. Got {gamma!r} among them.")
    if not given:
        raise ValueError("gammas is empty: give at least one.")
    return sorted({float(gamma) for gamma in given})


def _check_truth(y: Any, n_samples: int) -> npt.NDArray[Any]:
    truth = np.asarray(y)
    if truth.shape != (n_samples,):
        raise ValueError(
            f"y must have one label for each of the {n_samples:,} rows. Got an array of the shape "
            f"{truth.shape}."
        )
    return truth


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
