"""What the searches share: checks of their arguments, fits of clones, the result."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from joblib import Parallel, delayed
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from .._data import (
    SparseTable,
    Table,
    check_finite,
    collected,
    count_gaps,
    read_sparse,
    read_table,
)
from .._util import (
    FloatArray,
    ProgressBar,
    effective_n_jobs,
    format_count,
    is_number,
    quoted_column,
)
from ..export.pictures.selection import plot_selection
from .views import frame_html, table_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Result of a search for the best value of a parameter.

    Attributes
    ----------
    best_value : int or float
        The value chosen: the number of clusters, of leaves, or of what else was varied.
    best_estimator : estimator
        The clone fitted with it, on the data.
    table : polars.DataFrame
        One row for each value, in rising order: the value, which is the first column, and its
        measures; see the function that made it.
    by : str
        The column that the value was chosen by.
    """

    best_value: Any
    best_estimator: Any
    table: pl.DataFrame
    by: str

    @property
    def best_k(self) -> Any:
        """`best_value`, as the number of clusters is called."""
        return self.best_value

    @property
    def _place(self) -> int:
        return self.table.to_series().to_list().index(self.best_value)

    @property
    def _head(self) -> str:
        name, tried = type(self.best_estimator).__name__, f"{self.table.height:,} tried"
        value = f"{self.best_value:,}"
        return f"Selection: best {self.table.columns[0]} {value}, of {tried} with {name}"

    def __repr__(self) -> str:
        return table_text(self._head, self.table)

    def _repr_html_(self) -> str:
        note = f"Bold: best_value; best_estimator is {self.best_estimator!r}."
        return frame_html(self._head, self.table, self._place, note)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the measure that decided against the values tried, and mark the one chosen.

        Bars show the column ``error`` where there is one. A knee of costs has the line that it
        lies farthest from.

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
        return plot_selection(self.table, self._place, self.by, ax)


# ---- rows ---------------------------------------------------------------------------------


def read(X: Any, who: str, *, mixed: bool = False) -> tuple[Any, Table]:
    """Return X, collected if it is a LazyFrame, and its checked table.

    `mixed`: whether cells may be missing, and columns of frames be text, booleans and times.
    """
    X = collected(X, who, mixed=mixed)
    table = read_table(X, estimator_name=who, mixed=mixed)
    if mixed:
        return X, count_gaps(table, effective_n_jobs(None))
    check_finite(table, effective_n_jobs(None))
    return X, table


def rows_of(
    estimator: Any, X: Any, who: str, check: Callable[[Any], None] | None = None
) -> tuple[Any, int]:
    """Return X, collected if it is a LazyFrame, and its number of rows.

    It is checked, but for a Pipeline, whose first steps may take what the last does not. Text,
    times and gaps pass where the estimator takes them; `check` may refuse the table.
    """
    if prefix_of(estimator):
        X = X.collect() if isinstance(X, pl.LazyFrame) else X
        return X, X.shape[0] if hasattr(X, "shape") else len(X)
    mixed = takes_mixed(estimator)
    X = collected(X, who, mixed=mixed)
    table = read_any(X, who, mixed=mixed)
    if check is not None:
        check(table)
    return X, table.n_samples


def read_any(X: Any, who: str, *, mixed: bool = False) -> Table | SparseTable:
    """Return the checked table of X, which may be sparse; `mixed` as for `read`."""
    return read_sparse(X, estimator_name=who) if issparse(X) else read(X, who, mixed=mixed)[1]


def check_no_gaps(table: Table | SparseTable, why: str) -> None:
    """Raise ValueError if cells are missing; `why`: the beginning of the message."""
    gaps = table.gaps if isinstance(table, Table) else None
    for f, count in enumerate(gaps or ()):
        if count:
            name = quoted_column(table.feature_names, f)
            raise ValueError(
                f"{why}, and column {name} has {format_count(count, 'missing cell')}. stability() "
                "takes tables with gaps; or fill them, or leave their rows out."
            )


# ---- estimators and the steps of a Pipeline -----------------------------------------------


def last_of(model: Any) -> Any:
    """Return the last step of a Pipeline, the model itself if it is none."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def takes_mixed(model: Any) -> bool:
    """Return whether the last step takes missing cells and, of frames, text, booleans and times."""
    return bool(getattr(last_of(model), "_takes_missing", False))


def prefix_of(model: Any) -> str:
    """Return what the parameters of `last_of` begin with: ``step__`` for each Pipeline."""
    prefix = ""
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        prefix += f"{name}__"
    return prefix


def with_last(model: Any, last: Any) -> Any:
    """Return a fitted Pipeline with another last step, or that step if it is no Pipeline."""
    if not isinstance(model, Pipeline):
        return last
    name, step = model.steps[-1]
    whole = copy.copy(model)
    whole.steps = [*model.steps[:-1], (name, with_last(step, last))]
    return whole


def seen_by_last(model: Any, X: Any) -> Any:
    """Return X as the last step of a fitted Pipeline sees it."""
    while isinstance(model, Pipeline):
        if len(model.steps) > 1:
            X = model[:-1].transform(X)
        model = model.steps[-1][1]
    return X


def parameter(estimator: Any, name: str, missing: Any = None) -> Any:
    """Return the parameter's value, `missing` where there is no such parameter."""
    return estimator.get_params(deep=False).get(name, missing)


# ---- checks -------------------------------------------------------------------------------


def check_estimator(estimator: Any, example: str) -> None:
    """Raise TypeError for a class, and for what has no parameters."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"An estimator is needed, for example {example}. Got {estimator!r} instead."
        )


def check_param(estimator: Any, param: str | None, default: str = "n_clusters") -> str:
    """Return the parameter to vary; None: the default one, of a Pipeline that of its last step.

    Raises TypeError if there is none.
    """
    check_estimator(estimator, "KMeans()")
    name = prefix_of(estimator) + default if param is None else param
    if not isinstance(name, str):
        raise TypeError(f"param must be the name of a parameter or None. Got {param!r} instead.")
    if name in estimator.get_params():
        return name
    what = {"n_clusters": "clusters", "max_leaves": "leaves"}.get(name.rpartition("__")[2])
    lacks = f"so the number of its {what} cannot be chosen" if what else "which was to be varied"
    text = f"{type(estimator).__name__} has no parameter {name}, {lacks}."
    if isinstance(estimator, Pipeline):
        text += f" Those of its last step begin with {prefix_of(estimator)}."
    raise TypeError(text)


def column_of(param: str) -> str:
    """Return the name of the column of values: that of the parameter, k for `n_clusters`."""
    name = param.rpartition("__")[2]
    return "k" if name == "n_clusters" else name


def listed_values(values: Any, name: str) -> list[Any]:
    """Return what the user listed; raise TypeError for a single number or a text."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list or a range of numbers. Got {values!r} instead.")
    return list(values)


def check_numbers(values: Iterable[int], at_least: int = 1, name: str = "k_values") -> list[int]:
    """Return whole numbers, of clusters or leaves, in rising order, each once."""
    numbers = listed_values(values, name)
    for number in numbers:
        if not is_number(number, Integral):
            raise TypeError(f"{name} must hold ints. Got {number!r} among them.")
        if number < at_least:
            raise ValueError(f"{name} must be at least {at_least}. Got {number} among them.")
    if not numbers:
        what = "leaves" if "leaves" in name else "clusters"
        raise ValueError(f"{name} is empty: give at least one number of {what}.")
    return sorted({int(number) for number in numbers})


def check_verbose(verbose: int) -> None:
    """Raise ValueError if `verbose` is not an int >= 0."""
    if not (is_number(verbose, Integral) and verbose >= 0):
        raise ValueError(f"verbose must be an int >= 0. Got {verbose!r} instead.")


# ---- fits ---------------------------------------------------------------------------------


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


def clones(estimator: Any, param: str, values: Sequence[Any], random_state: Any) -> list[Any]:
    """Return a clone for each value of a parameter, with seeds where `random_state` is None.

    The steps of a Pipeline before the last have the same seeds in all clones.
    """
    rng = check_random_state(random_state)
    common, prefix = clone(estimator), prefix_of(estimator)
    for name, value in sorted(common.get_params().items() if prefix else ()):
        if name.endswith("__random_state") and value is None and not name.startswith(prefix):
            common.set_params(**{name: _seed(rng)})
    return [set_seed(clone(common).set_params(**{param: value}), rng) for value in values]


def set_seed(model: Any, random_state: Any) -> Any:
    """Set `random_state` of the (last) estimator where it is None, and return the model."""
    last = last_of(model)
    if parameter(last, "random_state", missing=0) is None:
        last.set_params(random_state=_seed(check_random_state(random_state)))
    return model


def _seed(rng: np.random.RandomState) -> int:
    return int(rng.randint(np.iinfo(np.int32).max))


def fit(model: Any, X: Any, sample_weight: FloatArray | None, **extra: Any) -> Any:
    """Fit a model, with weights if there are some; a Pipeline passes them to its last step."""
    if sample_weight is not None:
        extra["sample_weight"] = sample_weight
    prefix = prefix_of(model)
    return model.fit(X, **{prefix + name: value for name, value in extra.items()})


# ---- what a fit found ---------------------------------------------------------------------


def inertia_of(model: Any) -> float:
    """Return the within-cluster sum of a fitted model, of a kernel model in its own geometry.

    With the linear kernel that is the cost of the observed cells; the kernel cost fills gaps.
    """
    last = last_of(model)
    inertia = getattr(last, "inertia_", None)
    if not getattr(last, "_is_kmeans", False):
        inertia = getattr(last, "kernel_cost_", inertia)
    if inertia is None:
        raise TypeError(
            f"{type(last).__name__} has no inertia_ (the within-cluster sum), which this choice is "
            "made by; silhouette() and stability() do without."
        )
    return float(inertia)


def labels_of(model: Any) -> npt.NDArray[Any]:
    """Return the labels of a fitted model."""
    last = last_of(model)
    labels = getattr(last, "labels_", None)
    if labels is None:
        raise TypeError(f"{type(last).__name__} has no labels_ after its fit.")
    return np.asarray(labels)


def n_clusters_of(model: Any, k: int) -> int:
    """Return the number of clusters a model found; `k` for a model without labels."""
    return len(np.unique(labels_of(model))) if hasattr(last_of(model), "labels_") else k
