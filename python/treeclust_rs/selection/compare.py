"""All methods on one table: what each costs, and how hard it is to read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.base import clone

from .._data import check_sample_weight
from .._util import FloatArray, ProgressBar, is_number
from ..estimators.ex_greedy import ExGreedy
from ..estimators.exkmc import ExKMC
from ..estimators.imm import IMM
from ..estimators.kauri import Kauri
from ..estimators.kd_tree_clusters import KDTreeClusters
from ..estimators.kmeans_tree import KMeansTree
from ..estimators.random_cuts import RandomCuts
from ..estimators.spex_tree import SpExTree
from ..estimators.x_regression_tree import XRegressionTree
from ..export.pictures.comparison import plot_comparison
from ..metrics import (
    adjusted_rand_index,
    agreement,
    cost_ratio,
    weighted_average_depth,
    weighted_average_explanation_size,
)
from ..tree import as_tree
from . import fits
from .views import frame_html, table_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Parameters that `compare` sets, so that names do not tell them.
_SET = ("n_clusters", "max_leaves", "reference", "scale", "random_state", "n_jobs", "verbose")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Measures of several methods on the same rows.

    Attributes
    ----------
    table : polars.DataFrame
        One row for each method and number of leaves:

        - ``method``: its name;
        - ``leaves``, ``depth``: of its tree; null for labels alone;
        - ``cost_ratio``: k-means cost of its clusters over that of the reference;
        - ``agreement``: share of the weight on which its clusters and the reference's agree
          (`treeclust_rs.metrics.agreement`);
        - ``ari``: adjusted Rand index of its clusters and `labels`, where these are given;
        - ``wad``, ``waes``: average depth and number of conditions of a row's leaf;
        - ``seconds``: of its fit; null for what was fitted before.
    models : list
        What each row is of: a fitted clone, or the model or labels that were given.
    reference_labels : ndarray of shape (n_samples,)
        The clusters that the trees explain.
    """

    table: pl.DataFrame
    models: list[Any]
    reference_labels: npt.NDArray[Any] = field(repr=False)

    @property
    def _head(self) -> str:
        n_methods = self.table["method"].n_unique()
        return f"Comparison of {n_methods:,} methods, {self.table.height:,} rows"

    def __repr__(self) -> str:
        return table_text(self._head, self.table)

    def _repr_html_(self) -> str:
        note = "Bold: the least cost_ratio. models has the fitted model of each row."
        return frame_html(self._head, self.table, self.table["cost_ratio"].arg_min(), note)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cost ratio of every method against its number of leaves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return plot_comparison(self.table, ax)


def compare(
    X: Any,
    methods: Any = None,
    n_clusters: int | None = None,
    max_leaves: Iterable[int] | None = None,
    *,
    labels: Any = None,
    reference: Any = None,
    scale: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Comparison:
    """Fit several methods to the same rows and reference, and measure what they find.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        The data, as estimators take it.
    methods : list or mapping, default=None
        What to compare, a mapping by the names to show: estimators of this package or of
        scikit-learn, which are cloned and fitted; fitted ones with a tree of this package, and
        classification trees of scikit-learn, which are measured as they are; arrays with a label
        per row. None: every method of this package that makes threshold trees.
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8.
    max_leaves : iterable of int, default=None
        Numbers of leaves that methods with a parameter `max_leaves` are fitted with. None: one,
        two and four times the number of clusters.
    labels : array-like of shape (n_samples,), default=None
        True classes of the rows, which nothing but the column ``ari`` knows of.
    reference : None, estimator or array, default=None
        What the trees explain, as estimators take it. Kauri makes its own clusters.
    scale : None, str, mapping or array, default=None
        As estimators take it: for all methods that have it and leave it None, and for the costs.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the reference, and of methods whose own is None.
    n_jobs : int, default=None
        Processes that share the fits, as in joblib; None is 1. In several processes each fit has
        one thread.
    verbose : int, default=0
        1: a progress bar on stderr, if that is a terminal. 2: one in any case.

    Returns
    -------
    Comparison
        With a `table` of measures, the `models`, and `plot`.

    Raises
    ------
    TypeError
        If one of the methods is none of these.
    ValueError
        If X is not finite, a fit is refused, or labels are not one per row.

    Notes
    -----
    All costs are k-means costs in `scale` units about the means of the clusters that a method puts
    the rows in, over the same cost of the reference.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> X, y = load_iris(return_X_y=True)
    >>> found = tc.compare(X, [tc.IMM(), tc.ExKMC()], 3, labels=y, random_state=0)
    >>> found.table.select("method", "leaves").rows()
    [('IMM', 3), ('ExKMC', 3), ('ExKMC', 6), ('ExKMC', 12)]
    """
    fits.check_verbose(verbose)
    X, table = fits.read(X, "compare")
    weight = check_sample_weight(sample_weight, table.n_samples)
    first = IMM(n_clusters, reference=reference, scale=scale, random_state=random_state)
    first.fit(X, sample_weight=weight)
    shared = {
        "n_clusters": first.n_clusters_,
        "reference": first.reference_labels_,
        "scale": scale,
        "random_state": random_state,
    }
    sizes = _sizes(max_leaves, first.n_clusters_)
    named = _named(_default() if methods is None else methods)
    tasks = [(name, model) for name, method in named for model in _versions(method, shared, sizes)]
    truth = None if labels is None else np.asarray(labels)
    if truth is not None and truth.shape != (table.n_samples,):
        raise ValueError(f"There are {truth.size} labels for {table.n_samples} rows.")
    with ProgressBar("compare", len(tasks), verbose) as bar:
        fitted = fits.run_all(
            _fitted,
            ((model, X, weight) for _, model in tasks),
            n_jobs,
            bar,
            lambda place, _: tasks[place][0],
        )
    rows = table.data if not isinstance(table.data, list) else np.column_stack(table.data)
    explained, measured = first.reference_labels_, []
    for (name, _), (model, found, seconds) in zip(tasks, fitted, strict=True):
        row: dict[str, Any] = {"method": name, **_of_tree(model)}
        row["cost_ratio"] = cost_ratio(rows, found, explained, weight, scale=first)
        row["agreement"] = agreement(found, explained, weight)
        if truth is not None:
            row["ari"] = adjusted_rand_index(truth, found)
        measured.append(row | {"seconds": seconds})
    columns = [name for name in _SCHEMA if name != "ari" or truth is not None]
    return Comparison(
        pl.DataFrame(measured, schema=_SCHEMA).select(columns),
        [model for model, *_ in fitted],
        explained,
    )


_SCHEMA = {
    "method": pl.String,
    "leaves": pl.Int64,
    "cost_ratio": pl.Float64,
    "agreement": pl.Float64,
    "ari": pl.Float64,
    "depth": pl.Int64,
    "wad": pl.Float64,
    "waes": pl.Float64,
    "seconds": pl.Float64,
}


def _default() -> list[Any]:
    """Return the methods of this package that make threshold trees."""
    return [
        IMM(),
        ExGreedy(),
        RandomCuts(),
        ExKMC(),
        ExKMC(base_tree=None),
        Kauri(),
        KMeansTree(),
        SpExTree(),
        XRegressionTree(),
        KDTreeClusters(),
    ]


def _sizes(max_leaves: Iterable[int] | None, k: int) -> list[int]:
    """Return the numbers of leaves to fit with, in rising order."""
    if max_leaves is None:
        return [k, 2 * k, 4 * k]
    sizes = list(max_leaves) if isinstance(max_leaves, Iterable) else [max_leaves]
    for size in sizes:
        if not is_number(size, Integral):
            raise TypeError(f"max_leaves must hold ints. Got {size!r} among them.")
    if not sizes:
        raise ValueError("max_leaves is empty: give at least one number of leaves.")
    return sorted({int(size) for size in sizes})


def _named(methods: Any) -> list[tuple[str, Any]]:
    """Return names and methods; equal names are numbered."""
    if isinstance(methods, Mapping):
        return [(str(name), method) for name, method in methods.items()]
    if isinstance(methods, np.ndarray) or hasattr(methods, "get_params"):
        methods = [methods]
    names: list[str] = []
    for method in methods:
        name = _name_of(method)
        n_before = sum(other.partition(" #")[0] == name for other in names)
        names.append(f"{name} #{n_before + 1}" if n_before else name)
    return list(zip(names, methods, strict=True))


def _name_of(method: Any) -> str:
    """Return the class of an estimator with the parameters that are not the default."""
    if isinstance(method, type) or not hasattr(method, "get_params"):
        return "labels"
    default = type(method)().get_params(deep=False)
    given = method.get_params(deep=False)
    changed = [
        f"{name}={value!r:.20}"
        for name, value in given.items()
        if name not in _SET and repr(value) != repr(default.get(name))
    ]
    return f"{type(method).__name__}({', '.join(changed)})" if changed else type(method).__name__


def _versions(method: Any, shared: Mapping[str, Any], sizes: list[int]) -> Iterator[Any]:
    """Yield what is to be measured of a method: clones to fit, or itself if there is no fit."""
    if isinstance(method, type) or not hasattr(method, "get_params"):
        if isinstance(method, type | str) or np.ndim(method) != 1:
            raise TypeError(
                "methods must hold estimators, fitted models or arrays of labels. "
                f"Got {method!r:.60} among them."
            )
        yield np.asarray(method)
    elif hasattr(method, "tree_"):
        yield method
    else:
        parameters = method.get_params(deep=False)
        for size in sizes if "max_leaves" in parameters else sizes[:1]:
            model = clone(method)
            mine = {name: value for name, value in shared.items() if name in parameters}
            for name in ("scale", "random_state"):
                if parameters.get(name) is not None:
                    mine.pop(name, None)
            if "max_leaves" in parameters:
                mine["max_leaves"] = size
            if isinstance(mine.get("random_state"), np.random.RandomState):
                mine["random_state"] = int(mine["random_state"].randint(np.iinfo(np.int32).max))
            yield model.set_params(**mine)


def _fitted(
    model: Any, X: Any, weight: FloatArray | None
) -> tuple[Any, npt.NDArray[Any], float | None]:
    """Return a fitted model, its labels and the seconds that its fit took, if it had one."""
    if isinstance(model, np.ndarray):
        return model, model, None
    if hasattr(model, "tree_"):
        return model, np.asarray(model.predict(X)), None
    started = time.perf_counter()
    fits.fit(model, X, weight)
    return model, fits.labels_of(model), time.perf_counter() - started


def _of_tree(model: Any) -> dict[str, Any]:
    """Return the measures of a model's tree; nulls where it has none."""
    if not hasattr(model, "tree_"):
        return dict.fromkeys(("leaves", "depth", "wad", "waes"))
    tree = as_tree(model)
    return {
        "leaves": tree.n_leaves,
        "depth": int(tree.max_depth),
        "wad": weighted_average_depth(tree),
        "waes": weighted_average_explanation_size(tree),
    }
