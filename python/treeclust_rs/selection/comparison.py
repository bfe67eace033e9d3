"""All methods on one table: what each costs, and how hard it is to read."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._base import FitRows, SavedEstimator
from .._data import (
    FittedColumns,
    SparseTable,
    Table,
    align_table,
    check_sample_weight,
    count_gaps,
    warn_of_gaps,
)
from .._reference.kmeans import make_reference
from .._reference.observed import filled_matrix
from .._util import FloatArray, ProgressBar, format_count, is_number
from ..estimators.best_tree import BestTree
from ..estimators.cltree import CLTree
from ..estimators.cubt import CUBT
from ..estimators.ex_greedy import ExGreedy
from ..estimators.ex_shallow import ExShallow
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
    n_conditions,
    weighted_average_depth,
    weighted_average_explanation_size,
)
from ..metrics.matching import check_labels
from ..tree import ClusterTree, as_tree
from . import fits
from .views import frame_html, table_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Result = TypeVar("_Result")

# Parameters that do not tell methods apart.
_UNNAMED = ("random_state", "n_jobs", "verbose")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Measures of several methods on the same rows.

    Attributes
    ----------
    table : polars.DataFrame
        One row for each method and number of leaves:

        - ``method``: its name;
        - ``max_leaves``: the most leaves it was fitted with; null without such a parameter, and for
          what was fitted before;
        - ``leaves``, ``depth``: of its tree; null where there is none;
        - ``cost_ratio``: k-means cost of its clusters over that of the reference;
        - ``agreement``: share of the weight on which its clusters and the reference's agree
          (`treeclust_rs.metrics.agreement`);
        - ``ari``: adjusted Rand index of its clusters and `labels`, where these are given, over all
          rows, without weights;
        - ``wad``, ``waes``: average depth and number of conditions of a row's leaf, over the rows
          that the tree was fitted to;
        - ``conditions``: number of conditions of all its rules, one rule a leaf
          (`treeclust_rs.metrics.n_conditions`);
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
        methods = format_count(n_methods, "method")
        return f"Comparison of {methods}, {format_count(self.table.height, 'row')}"

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
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        The data, as estimators take it; sparse rows for methods that take them, and estimators of
        other packages get them as they are. Where cells are missing, or columns hold text,
        booleans, dates or times, estimators of other packages are fitted to the encoded table: in
        `scale` units, a column for each level, gaps filled with the columns' means; their names
        then say so. A Pipeline gets X as it is.
    methods : list or mapping, default=None
        What to compare, a mapping by the names to show: clusterers of this package or of
        scikit-learn, which are cloned and fitted; fitted ones, `ClusterTree` and classification
        trees of scikit-learn, which are measured as they are; arrays with a label per row. None:
        the methods of this package for threshold trees without a kernel that take such a table.
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8.
    max_leaves : iterable of int, default=None
        Numbers of leaves that methods with a parameter `max_leaves` are fitted with. None: one,
        two and four times the number of clusters.
    labels : array-like of shape (n_samples,), default=None
        True classes of the rows, which nothing but the column ``ari`` knows of.
    reference : None, estimator or array, default=None
        What the trees explain, as estimators take it. Kauri, CUBT and CLTree make their own
        clusters.
    scale : None, str, mapping or array, default=None
        As estimators take it: for all methods with such a parameter, and for the costs.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the reference and of the methods.
    n_jobs : int, default=None
        Processes that share the fits, as in joblib; None is 1. In several processes each fit has
        one thread.
    %(selection_verbose)s

    Returns
    -------
    Comparison
        With a `table` of measures, the `models`, and `plot`.

    Raises
    ------
    TypeError
        If one of the methods is none of these.
    ValueError
        If a cell is infinite, a fit is refused (as by a method that needs complete numbers: its
        name begins the message), labels are not one per row, or a method that explains the
        reference has another number of clusters.

    Warns
    -----
    UserWarning
        What the fits warn of, after the name of the method.

    Notes
    -----
    A method keeps the parameters that differ from its defaults: `ExKMC(max_leaves=7)` is fitted
    once, with 7 leaves.

    All costs are k-means costs in `scale` units about the means of the clusters that a method puts
    the rows in, over the same cost of the reference.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> X, y = load_iris(return_X_y=True)
    >>> found = tc.compare(X, [tc.IMM(), tc.ExKMC()], 3, labels=y, random_state=0)
    >>> found.table.select("method", "max_leaves", "leaves").rows()
    [('IMM', None, 3), ('ExKMC', 3, 3), ('ExKMC', 6, 5), ('ExKMC', 12, 5)]
    """
    fits.check_verbose(verbose)
    is_sparse = issparse(X)
    table: Table | SparseTable
    if is_sparse:
        table = fits.read_any(X, "compare")
    else:
        X, table = fits.read(X, "compare", mixed=True)
    # All methods take booleans as numbers.
    is_mixed = table.gaps is not None or not {"number", "flag"}.issuperset(table.kinds or ())
    weight = check_sample_weight(sample_weight, table.n_samples)
    truth = None if labels is None else _labels_of_rows(labels, table.n_samples, "labels")
    first = IMM(n_clusters, reference=reference, scale=scale, random_state=random_state)
    (explained, k, fit_rows), told = _recorded(_reference_of, first, X, weight)
    for category, text in told:
        warnings.warn(text, category, stacklevel=2)
    shared = {
        "n_clusters": k,
        "reference": explained,
        "scale": scale,
        "random_state": random_state,
    }
    if methods is None:
        methods = [
            method
            for method in default_methods()
            if (not is_mixed or get_tags(method).input_tags.allow_nan)
            and (not is_sparse or get_tags(method).input_tags.sparse)
        ]
    named = _named(methods, shared)
    encoded = None
    if is_mixed and any(_needs_encoding(method) for _, method in named):
        encoded = _encoded(fit_rows)
        how = "encoded" if table.gaps is None else "encoded, gaps filled"
        named = [
            (f"{name} ({how})" if _needs_encoding(method) else name, method)
            for name, method in named
        ]
    sizes = _sizes(max_leaves, k)
    tasks = [
        (name, *version)
        for name, method in named
        for version in _versions(name, method, shared, sizes, table.n_samples)
    ]
    with ProgressBar("compare", len(tasks), verbose) as bar:
        fitted = fits.run_all(
            _fitted,
            (
                (
                    name,
                    model,
                    encoded if encoded is not None and _needs_encoding(model) else X,
                    weight,
                )
                for name, *_, model in tasks
            ),
            n_jobs,
            bar,
            lambda place, _: tasks[place][0],
        )
    for (name, *_), result in zip(tasks, fitted, strict=True):
        for category, text in result.warnings:
            named_text = f"{name}: {text}"
            if (category, text) not in told and (category, named_text) not in told:
                told.append((category, named_text))
                warnings.warn(named_text, category, stacklevel=2)
    units = fit_rows.units.scale
    measured = []
    for (name, max_leaves_of, _), result in zip(tasks, fitted, strict=True):
        found = result.labels
        row: dict[str, Any] = {"method": name, "max_leaves": max_leaves_of}
        row |= _of_tree(result.model)
        row["cost_ratio"] = cost_ratio(table, found, explained, weight, scale=units)
        row["agreement"] = agreement(found, explained, weight)
        if truth is not None:
            row["ari"] = adjusted_rand_index(truth, found)
        measured.append(row | {"seconds": result.seconds})
    columns = [name for name in _SCHEMA if name != "ari" or truth is not None]
    return Comparison(
        pl.DataFrame(measured, schema=_SCHEMA).select(columns),
        [result.model for result in fitted],
        explained,
    )


_SCHEMA = {
    "method": pl.String,
    "max_leaves": pl.Int64,
    "leaves": pl.Int64,
    "cost_ratio": pl.Float64,
    "agreement": pl.Float64,
    "ari": pl.Float64,
    "depth": pl.Int64,
    "wad": pl.Float64,
    "waes": pl.Float64,
    "conditions": pl.Int64,
    "seconds": pl.Float64,
}


def default_methods() -> list[Any]:
    """Return the methods of this package for threshold trees without a kernel."""
    return [
        BestTree(),
        IMM(),
        ExGreedy(),
        ExShallow(),
        RandomCuts(),
        ExKMC(),
        ExKMC(base_tree=None),
        Kauri(),
        KMeansTree(),
        SpExTree(),
        XRegressionTree(),
        KDTreeClusters(),
        CUBT(),
        CLTree(),
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


def _reference_of(
    first: IMM, X: Any, weight: FloatArray | None
) -> tuple[npt.NDArray[Any], int, FitRows[Any]]:
    """Return what the trees explain: a label per row, the number of clusters, and the rows."""
    first._validate_params()
    fit_rows = FitRows.read(
        first,
        X,
        weight,
        reference=first.reference,
        n_clusters=first.n_clusters,
        mixed=True,
        sparse=True,
    )
    reference = make_reference(
        fit_rows,
        fit_rows.reference,
        n_clusters=first.n_clusters,
        random_state=first.random_state,
        estimator_name="compare",
        needs_distinct=False,
        follows_centers=False,
    )
    explained = fit_rows.labels_of_all(np.array(reference.classes), reference.labels)
    return explained, reference.n_clusters, fit_rows


def _needs_encoding(method: Any) -> bool:
    """Whether this is an estimator to fit that takes numbers alone: one of another package."""
    return (
        _is_model(method)
        and not isinstance(method, SavedEstimator | ClusterTree | Pipeline)
        and not _is_fitted(method)
    )


def _encoded(fit_rows: FitRows[Table]) -> FloatArray:
    """Return all rows in units, a coordinate for each level, gaps at the columns' means."""
    return filled_matrix(replace(fit_rows, rows=fit_rows.table, weight=None))


def _labels_of_rows(labels: Any, n_rows: int, name: str) -> npt.NDArray[Any]:
    """Return labels as an array of integers or strings, one for each of the rows."""
    if np.ndim(labels) != 1:
        raise ValueError(
            f"{name} must have one dimension, a label per row. Got the shape {np.shape(labels)}."
        )
    return check_labels(labels, n_rows, name)


def _named(methods: Any, shared: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return names and methods; equal names are numbered."""
    if isinstance(methods, Mapping):
        named = [(str(name), method) for name, method in methods.items()]
    else:
        is_one = _is_model(methods) or isinstance(methods, np.ndarray | str)
        methods = [methods] if is_one or not isinstance(methods, Iterable) else list(methods)
        names = [_name_of(method, shared) for method in methods]
        counts = [names[:place].count(name) for place, name in enumerate(names)]
        names = [f"{name} #{n + 1}" if n else name for name, n in zip(names, counts, strict=True)]
        named = list(zip(names, methods, strict=True))
    if not named:
        raise ValueError("methods is empty: give at least one, or None for those of this package.")
    return named


def _is_model(method: Any) -> bool:
    """Whether this is an estimator or a tree, and no class."""
    return not isinstance(method, type) and (
        hasattr(method, "get_params") or isinstance(method, ClusterTree)
    )


def _changed(method: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that are not the default."""
    signature = inspect.signature(type(method).__init__).parameters
    return {
        name: value
        for name, value in method.get_params(deep=False).items()
        if name not in signature or repr(value) != repr(signature[name].default)
    }


def _name_of(method: Any, shared: Mapping[str, Any]) -> str:
    """Return the class of an estimator with the parameters that only it has."""
    if not _is_model(method):
        return "labels"
    name = type(method).__name__
    if isinstance(method, ClusterTree):
        return name
    told = [
        f"{parameter}={value!r:.20}"
        for parameter, value in _changed(method).items()
        if parameter not in _UNNAMED
        and not (parameter in shared and repr(value) == repr(shared[parameter]))
    ]
    return f"{name}({', '.join(told)})" if told else name


def _versions(
    name: str, method: Any, shared: Mapping[str, Any], sizes: list[int], n_rows: int
) -> Iterator[tuple[int | None, Any]]:
    """Yield `max_leaves` and what is to be measured: clones to fit, or what needs no fit.

    Raises
    ------
    TypeError
        If there is nothing to measure.
    ValueError
        If it does not go with the rows or the reference.
    """
    if not _is_model(method):
        if isinstance(method, type | str) or np.ndim(method) != 1:
            raise TypeError(
                "methods must hold estimators such as treeclust_rs.IMM(), fitted models or arrays "
                f"of labels. Got {method!r:.60} among them."
            )
        yield None, _labels_of_rows(method, n_rows, f"labels of {name!r}")
    elif isinstance(method, ClusterTree):
        yield None, method
    elif is_regressor(method):
        raise TypeError(
            f"{name} predicts numbers, not clusters. The leaves of a regression tree get clusters "
            "by tc.tree.from_sklearn(tree, X, labels=...)."
        )
    elif _is_fitted(method):
        yield None, method
    elif is_classifier(method):
        raise TypeError(f"{name} needs classes to be fitted: fit it before, to labels.")
    else:
        parameters, own = method.get_params(deep=False), _changed(method)
        k = shared["n_clusters"]
        if "reference" in parameters and own.get("n_clusters", k) != k and "reference" not in own:
            raise ValueError(
                f"{name} has n_clusters={own['n_clusters']}, but the reference that it would "
                f"explain has {k} clusters. Give compare the number, and leave it out here."
            )
        mine = {key: value for key, value in shared.items() if key in parameters.keys() - own}
        by_size = "max_leaves" in parameters.keys() - own
        for size in sizes if by_size else [parameters.get("max_leaves")]:
            if by_size:
                mine["max_leaves"] = size
            seed = mine.get("random_state")
            if isinstance(seed, np.random.RandomState):
                seed = int(seed.randint(np.iinfo(np.int32).max))
            seeded = {"random_state": seed} if "random_state" in mine else {}
            yield (
                size if is_number(size, Integral) else None,
                clone(method).set_params(**mine | seeded),
            )


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


@dataclass
class _Measured:
    """What is measured of one row of the table."""

    model: Any
    """Fitted, or labels."""
    labels: npt.NDArray[Any]
    seconds: float | None
    """Of the fit, if there was one."""
    warnings: list[tuple[type[Warning], str]]


def _fitted(name: str, model: Any, X: Any, weight: FloatArray | None) -> _Measured:
    """As `_measured`; errors name the method."""
    try:
        return _measured(model, X, weight)
    except (TypeError, ValueError) as error:
        # Some begin with it.
        named = str(error).startswith(type(model).__name__)
        if named or type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(f"{name}: {error}") from error


def _measured(model: Any, X: Any, weight: FloatArray | None) -> _Measured:
    """Fit a model where that is needed, and return it with its labels."""
    if isinstance(model, np.ndarray):
        return _Measured(model, model, None, [])
    if isinstance(model, ClusterTree):
        table = count_gaps(
            align_table(
                X,
                model.feature_names,
                model.n_features,
                estimator_name="compare",
                names_given=True,
                fitted=FittedColumns(model.column_kinds, model.levels),
            ),
            n_jobs=1,
        )
        warn_of_gaps(table, model.has_missing)
        return _Measured(model, model.predict(table.data), None, [])
    seconds = None
    texts: list[tuple[type[Warning], str]] = []
    if not _is_fitted(model):
        started = time.perf_counter()
        _, texts = _recorded(fits.fit, model, X, weight)
        seconds = time.perf_counter() - started
        labels = getattr(model, "labels_", None)
    elif not hasattr(model, "predict"):
        labels = model.labels_
    else:
        labels = None
    labels = model.predict(X) if labels is None else labels
    return _Measured(model, np.asarray(labels), seconds, texts)


def _recorded(
    call: Callable[..., _Result], *arguments: Any
) -> tuple[_Result, list[tuple[type[Warning], str]]]:
    """Return what a call returns, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call(*arguments)
    return result, [(warning.category, str(warning.message)) for warning in caught]


def _of_tree(model: Any) -> dict[str, Any]:
    """Return the measures of a model's tree; nulls where it has none."""
    if not (hasattr(model, "tree_") or isinstance(model, ClusterTree)):
        return dict.fromkeys(("leaves", "depth", "wad", "waes", "conditions"))
    tree = as_tree(model)
    return {
        "leaves": tree.n_leaves,
        "depth": int(tree.max_depth),
        "wad": weighted_average_depth(tree),
        "waes": weighted_average_explanation_size(tree),
        "conditions": n_conditions(tree),
    }
