"""What the searches share: checks of their arguments, fits of clones, the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from .._data import Table, check_finite, collected, read_table
from .._util import FloatArray, ProgressBar, effective_n_jobs, is_number
from .views import frame_html, table_text

_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Result of a search for the number of clusters.

    Attributes
    ----------
    best_k : int
        The number chosen.
    best_estimator : estimator
        The clone fitted with it, on the data.
    table : polars.DataFrame
        One row for each number, in rising order; see the function that made it for the columns.
    """

    best_k: int
    best_estimator: Any
    table: pl.DataFrame

    @property
    def _head(self) -> str:
        name = type(self.best_estimator).__name__
        return f"Selection: best_k {self.best_k:,}, of {self.table.height:,} tried with {name}"

    def __repr__(self) -> str:
        return table_text(self._head, self.table)

    def _repr_html_(self) -> str:
        chosen = self.table["k"].to_list().index(self.best_k)
        note = f"Bold: best_k; best_estimator is {self.best_estimator!r}."
        return frame_html(self._head, self.table, chosen, note)


def read(X: Any, who: str) -> tuple[Any, Table]:
    """Return X, collected if it is a LazyFrame, and its checked table."""
    X = collected(X, who)
    table = read_table(X, estimator_name=who)
    check_finite(table, effective_n_jobs(None))
    return X, table


def parameter(estimator: Any, name: str, missing: Any = None) -> Any:
    """Return the parameter's value, `missing` where there is no such parameter."""
    return estimator.get_params(deep=False).get(name, missing)


def check_estimator(estimator: Any, example: str) -> None:
    """Raise TypeError for a class, and for what has no parameters."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"An estimator is needed, for example {example}. Got {estimator!r} instead."
        )


def check_clusterer(estimator: Any) -> None:
    """Raise TypeError for what has no parameter for the number of clusters."""
    check_estimator(estimator, "KMeans()")
    if "n_clusters" not in estimator.get_params(deep=False):
        raise TypeError(
            f"{type(estimator).__name__} has no parameter n_clusters, so the number of its "
            "clusters cannot be chosen."
        )


def check_numbers(k_values: Iterable[int], at_least: int = 1) -> list[int]:
    """Return numbers of clusters in rising order, each once."""
    numbers = list(k_values)
    for k in numbers:
        if not is_number(k, Integral):
            raise TypeError(f"k_values must hold ints. Got {k!r} among them.")
        if k < at_least:
            raise ValueError(f"k_values must be at least {at_least}. Got {k} among them.")
    if not numbers:
        raise ValueError("k_values is empty: give at least one number of clusters.")
    return sorted({int(k) for k in numbers})


def check_verbose(verbose: int) -> None:
    """Raise ValueError if `verbose` is not an int >= 0."""
    if not (is_number(verbose, Integral) and verbose >= 0):
        raise ValueError(f"verbose must be an int >= 0. Got {verbose!r} instead.")


def run_all(
    work: Callable[..., _Result],
    tasks: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    bar: ProgressBar,
    text: Callable[[int, _Result], str],
) -> list[_Result]:
    """Return ``work(*task)`` for each task, in order, computed by processes as in joblib.

    Each is a step of the bar, with a text made from its place and result.
    """
    results: list[_Result] = []
    calls = (delayed(work)(*task) for task in tasks)
    for result in Parallel(n_jobs=n_jobs, return_as="generator")(calls):
        bar.step(text(len(results), result))
        results.append(result)
    return results


def set_seed(model: Any, random_state: Any) -> Any:
    """Set the model's `random_state` where it is None, and return the model."""
    if parameter(model, "random_state", missing=0) is None:
        rng = check_random_state(random_state)
        model.set_params(random_state=int(rng.randint(np.iinfo(np.int32).max)))
    return model


def fit(model: Any, X: Any, sample_weight: FloatArray | None, **extra: Any) -> Any:
    """Fit a model, with weights if there are some."""
    if sample_weight is not None:
        extra["sample_weight"] = sample_weight
    return model.fit(X, **extra)


def inertia_of(model: Any) -> float:
    """Return the within-cluster sum of a fitted model, of a kernel model in its own geometry."""
    inertia = getattr(model, "kernel_cost_", getattr(model, "inertia_", None))
    if inertia is None:
        raise TypeError(
            f"{type(model).__name__} has no inertia_ (the within-cluster sum), which the gap "
            "statistic is made of; silhouette() does without."
        )
    return float(inertia)


def labels_of(model: Any) -> npt.NDArray[Any]:
    """Return the labels of a fitted model."""
    labels = getattr(model, "labels_", None)
    if labels is None:
        raise TypeError(f"{type(model).__name__} has no labels_ after its fit.")
    return np.asarray(labels)


def n_clusters_of(model: Any, k: int) -> int:
    """Return the number of clusters a model found; `k` for a model without labels."""
    return len(np.unique(labels_of(model))) if hasattr(model, "labels_") else k
