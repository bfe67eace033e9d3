"""Stability: whether trees that are fitted to different rows find the same clusters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from .._data import check_sample_weight
from .._kernels import check_gram
from .._util import FloatArray, IntArray, ProgressBar, is_number
from ..metrics import adjusted_rand_index
from . import fits
from .fits import Selection

# Stabilities this near to each other differ by rounding.
_ROUNDING = 1e-12


def stability(
    estimator: Any,
    X: Any,
    values: Iterable[float],
    *,
    param: str | None = None,
    n_repeats: int = 20,
    gram: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Selection:
    """Choose the value of a parameter whose clusters depend least on which rows were fitted.

    The rows are halved at random, the estimator is fitted to either half, and the two models
    label all rows. Their adjusted Rand index, 1 for the same clusters and about 0 for clusters
    that have nothing in common, is averaged over the repeats.

    Parameters
    ----------
    estimator : estimator
        Clusterer with `predict`, or a Pipeline that ends in one.
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        The data, in a form the estimator takes.
    values : iterable of int or float
        Values of the parameter to try; numbers of clusters must be at least 2, for one cluster is
        always the same.
    %(selection_param)s
        Any other number is possible: ``param="max_leaves"``, ``"alpha"``.
    n_repeats : int, default=20
        How often the rows are halved, at least 1. All values see the same halves.
    gram : array-like of shape (n_samples, n_samples), default=None
        Kernel matrix, whose parts are passed to the fits, for ``kernel="precomputed"``.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for the fits. The index is that of the rows of positive weight, without
        weights.
    random_state : int, RandomState instance or None, default=None
        Where the halves come from, and the `random_state` of the estimator where that is None.
    n_jobs : int, default=None
        Processes that share the repeats, as in joblib; None is 1. The estimator may use threads of
        its own.
    %(selection_verbose)s

    Returns
    -------
    Selection
        With a frame of the columns ``k`` (or the name of the parameter); ``n_clusters``, as many as
        a fit to all rows found; ``stability``, the mean; ``sd``, the standard deviation over the
        repeats; ``error``, sd / sqrt(n_repeats). Among equal stabilities that with the most
        clusters is taken, and of these the smallest value.

    Raises
    ------
    TypeError
        If the estimator lacks the parameter, `predict` or `labels_`.
    ValueError
        If a value is out of range, there are fewer than two rows, or the estimator refuses to fit:
        a half has half the rows.

    Notes
    -----
    Halves and the transfer of clusters by a classifier are those of Lange et al., the classifier
    being the model itself; clusters are compared on rows in common as by Ben-Hur et al., by the
    index corrected for chance. A repeat in which both models have one cluster counts as 0. Labels
    in ``reference=`` are halved with the rows. Time is that of 2 n_repeats + 1 fits for each value.

    References
    ----------
    T. Lange, V. Roth, M. L. Braun, J. M. Buhmann, "Stability-based validation of clustering
    solutions", 2004. A. Ben-Hur, A. Elisseeff, I. Guyon, "A stability based method for discovering
    structure in clustered data", 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from treeclust_rs import ExKMC
    >>> from treeclust_rs.selection import stability
    >>> X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 30, axis=0)
    >>> X += np.random.default_rng(0).normal(size=X.shape)
    >>> stability(ExKMC(), X, range(2, 6), n_repeats=5, random_state=0).best_value
    3
    """
    param = fits.check_param(estimator, param)
    if not hasattr(estimator, "predict"):
        raise TypeError(
            f"{type(estimator).__name__} has no predict, and so no labels for the rows of the "
            "other half."
        )
    name, numbers = fits.column_of(param), _check_values(values)
    if name == "k":
        numbers = fits.check_numbers(numbers, at_least=2, name="values")
    if not is_number(n_repeats, Integral) or n_repeats < 1:
        raise ValueError(f"n_repeats must be an int >= 1. Got {n_repeats!r} instead.")
    fits.check_verbose(verbose)
    X, n = fits.rows_of(estimator, X, "stability")
    if n < 2:
        raise ValueError(f"X has {n} row: stability needs at least 2, to halve them.")
    weight = check_sample_weight(sample_weight, n)
    matrix = None if gram is None else check_gram(gram, n)
    rng = check_random_state(random_state)
    models = fits.clones(estimator, param, numbers, rng)
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_repeats)

    with ProgressBar("stability", len(numbers) + n_repeats, verbose) as bar:
        extra = {} if matrix is None else {"gram": matrix}
        n_clusters = []
        for value, model in zip(numbers, models, strict=True):
            n_clusters.append(len(np.unique(fits.labels_of(fits.fit(model, X, weight, **extra)))))
            bar.step(f"{name} {value}: fitted")
        given = (estimator, param, numbers, X, weight, matrix)
        tasks = ((*given, int(seed)) for seed in seeds)
        indices = np.array(
            fits.run_all(_agreements, tasks, n_jobs, bar, lambda i, _: f"repeat {i + 1}")
        )
    mean, sd = indices.mean(axis=0), indices.std(axis=0)
    frame = pl.DataFrame(
        {
            name: np.array(numbers),
            "n_clusters": n_clusters,
            "stability": mean,
            "sd": sd,
            "error": sd / math.sqrt(n_repeats),
        }
    )
    is_best = mean >= mean.max() - _ROUNDING
    best = int(np.argmax(np.where(is_best, n_clusters, 0)))
    return Selection(numbers[best], models[best], frame, "stability")


def _check_values(values: Iterable[float]) -> list[Any]:
    """Return numbers in rising order, each once."""
    numbers = fits.listed_values(values, "values")
    for value in numbers:
        if not is_number(value) or math.isnan(value):
            raise TypeError(f"values must hold numbers. Got {value!r} among them.")
    if not numbers:
        raise ValueError("values is empty: give at least one.")
    return sorted(set(numbers))


def _agreements(
    estimator: Any,
    param: str,
    values: Sequence[Any],
    X: Any,
    sample_weight: FloatArray | None,
    gram: FloatArray | None,
    seed: int,
) -> list[float]:
    """Return the adjusted Rand index of models of two halves for each value."""
    rng = np.random.RandomState(seed)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    *halves, first, second = train_test_split(X, np.arange(n), test_size=0.5, random_state=rng)
    models = [
        _fitted(model, half, rows, sample_weight, gram)
        for half, rows in zip(halves, (first, second), strict=True)
        for model in fits.clones(estimator, param, values, rng)
    ]
    kept = slice(None) if sample_weight is None else sample_weight > 0
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # A half may lack levels and gaps that the other has.
        labels = [np.asarray(model.predict(X))[kept] for model in models]
    return [
        _agreement(*pair) for pair in zip(labels[: len(values)], labels[len(values) :], strict=True)
    ]


def _fitted(
    model: Any,
    half: Any,
    rows: IntArray,
    sample_weight: FloatArray | None,
    gram: FloatArray | None,
) -> Any:
    """Fit a model to a half of the rows, with their part of all there is a number for each row."""
    last = fits.last_of(model)
    reference = fits.parameter(last, "reference")
    if not hasattr(reference, "get_params") and np.ndim(reference) == 1:
        last.set_params(reference=np.asarray(reference)[rows])
    extra = {} if gram is None else {"gram": gram[np.ix_(rows, rows)]}
    weight = None if sample_weight is None else sample_weight[rows]
    return fits.fit(model, half, weight, **extra)


def _agreement(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> float:
    """Return the adjusted Rand index; 0 where both have one cluster."""
    if len(np.unique(first)) == len(np.unique(second)) == 1:
        return 0.0
    return float(adjusted_rand_index(first, second))
