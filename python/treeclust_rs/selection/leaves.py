"""The number of leaves: the knee of the true cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import polars as pl
from sklearn.base import clone

from .._base import GrownClusterer
from .._data import check_sample_weight
from .._kernels import check_gram
from .._reference.checks import DEFAULT_N_CLUSTERS
from .._util import FloatArray, ProgressBar, below_chord, format_count, knee
from ..estimators.best_tree import BestTree
from ..estimators.oblique_tree import ObliqueTree
from . import fits
from .fits import Selection

# Trees that are searched for: those of fewer leaves are no parts of them.
_SEARCHED = (BestTree, ObliqueTree)


def choose_leaves(
    estimator: Any,
    X: Any,
    leaves: Iterable[int] | None = None,
    *,
    param: str | None = None,
    gram: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Selection:
    """Choose the number of leaves by the knee of the true cost.

    More leaves cost less, and are harder to read. The knee is the number of leaves whose cost lies
    farthest below the straight line from the smallest tree to the cheapest, of the fewest leaves
    with that cost.

    Parameters
    ----------
    estimator : estimator
        Clusterer with a parameter `max_leaves`, and after its fit an `inertia_`; of a kernel method
        the cost is the `kernel_cost_`. Or a Pipeline that ends in one.
    X : array-like or frame of shape (n_samples, n_features)
        The data, in the columns the estimator takes.
    leaves : iterable of int, default=None
        Numbers of leaves to try, each at least the number of clusters. The knee depends on the
        largest where the cost still falls there. None: all from the number of clusters to four
        times as many.
    param : str or None, default=None
        The parameter's name; None: `max_leaves`, of a Pipeline that of its last step.
    gram : array-like of shape (n_samples, n_samples), default=None
        Kernel matrix, passed to the fit, for ``kernel="precomputed"``.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    random_state : int, RandomState instance or None, default=None
        The `random_state` of the estimator where that is None; the same for all numbers.
    n_jobs : int, default=None
        Processes that share the fits, as in joblib; None is 1. The estimator may use threads of
        its own.
    %(selection_verbose)s

    Returns
    -------
    Selection
        With a frame of the columns ``n_leaves``, those of the tree, each number once;
        ``n_clusters``, as many as were found; ``cost``; ``below_chord``, how far the cost lies
        below the line, as a share of the fall: the difference curve of Kneedle, without smoothing.
        Among equal ones the smallest number is taken. If no cost lies below the line, the number
        from which on the cost falls no more.

    Raises
    ------
    TypeError
        If the estimator lacks the parameter or the `inertia_`.
    ValueError
        If a number is less than that of the clusters, X is not finite, or the estimator refuses to
        fit.

    Warns
    -----
    UserWarning
        If no cost lies below the line and the largest number, which is taken, costs least: there
        is no knee yet.

    Notes
    -----
    Trees that are grown leaf by leaf are fitted once, since the largest contains the others (but
    not with ``criterion="kmedians"``); others, `BestTree` and `ObliqueTree` among them, are fitted
    for each number. A kernel cost takes O(n_samples^2) kernel values for each number, unless the
    kernel has features.

    References
    ----------
    V. Satopaa, J. Albrecht, D. Irwin, B. Raghavan, "Finding a 'kneedle' in a haystack: detecting
    knee points in system behavior", 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from treeclust_rs import ExKMC
    >>> from treeclust_rs.selection import choose_leaves
    >>> tree = ExKMC(3, base_tree=None, scale="standard")
    >>> found = choose_leaves(tree, load_wine().data, random_state=0)
    >>> found.best_value, round(found.best_estimator.cost_ratio_, 3)
    (4, 1.005)
    """
    param = fits.check_param(estimator, param, "max_leaves")
    numbers = None if leaves is None else fits.check_numbers(leaves, name="leaves")
    fits.check_verbose(verbose)
    X, n = fits.rows_of(estimator, X, "choose_leaves")
    weight = check_sample_weight(sample_weight, n)
    extra = {} if gram is None else {"gram": check_gram(gram, n)}
    seeded = fits.clones(estimator, param, [estimator.get_params()[param]], random_state)[0]

    def fitted(number: int | None) -> Any:
        return fits.fit(clone(seeded).set_params(**{param: number}), X, weight, **extra)

    last = fits.last_of(estimator)
    k = fits.parameter(last, "n_clusters")
    if k is None and fits.parameter(last, "reference") is None:
        k = DEFAULT_N_CLUSTERS
    elif k is None:
        k = fits.last_of(fitted(None)).n_clusters_
    if numbers is None:
        numbers = list(range(k, 4 * k + 1))
    if numbers[0] < k:
        raise ValueError(
            f"leaves holds {numbers[0]}, but there are {k} clusters: every cluster needs a leaf."
        )
    with ProgressBar("choose_leaves", len(numbers), verbose) as bar:
        models = _grown(fitted, numbers, last)
        tasks: Iterable[tuple[Any, ...]] = ((model, None, None, {}) for model in models)
        if not models:
            versions = (clone(seeded).set_params(**{param: number}) for number in numbers)
            tasks = ((model, X, weight, extra) for model in versions)

        def text(_: int, found: _Tree) -> str:
            return f"{format_count(found.n_leaves, 'leaf', 'leaves')}: cost {found.cost:.6g}"

        found = fits.run_all(_measured, tasks, None if models else n_jobs, bar, text)
    # More leaves than lower the cost make the same tree again.
    trees = list({tree.n_leaves: tree for tree in reversed(found)}.values())[::-1]
    sizes, costs = [tree.n_leaves for tree in trees], [tree.cost for tree in trees]
    best = knee(sizes, costs)
    if best is None:
        best = len(sizes) - 1
        if sizes[best] == numbers[-1]:
            warnings.warn(
                f"The cost has no knee up to {sizes[best]} leaves, which are taken: it falls as "
                "fast at the end. Try larger numbers.",
                UserWarning,
                stacklevel=2,
            )
    frame = pl.DataFrame(
        {
            "n_leaves": sizes,
            "n_clusters": [fits.n_clusters_of(tree.model, k) for tree in trees],
            "cost": costs,
            "below_chord": below_chord(sizes, costs),
        }
    )
    return Selection(sizes[best], trees[best].model, frame, "cost")


class _Tree(NamedTuple):
    """A fitted model with its size and its cost."""

    model: Any
    n_leaves: int
    cost: float


def _grown(fit: Callable[[int], Any], numbers: list[int], last: Any) -> list[Any]:
    """Return the models of one fit cut down to each number; none if fits would find others."""
    if not isinstance(last, GrownClusterer) or isinstance(last, _SEARCHED):
        return []
    largest = fit(numbers[-1])
    tree = fits.last_of(largest)
    models = [fits.with_last(largest, tree.truncate(number)) for number in numbers]
    first = fits.last_of(models[0])
    return models if hasattr(first, "kernel_cost_") or hasattr(first, "inertia_") else []


def _measured(model: Any, X: Any, sample_weight: FloatArray | None, extra: dict[str, Any]) -> _Tree:
    """Return a model with its size and cost; it is fitted where there is an X."""
    if X is not None:
        fits.fit(model, X, sample_weight, **extra)
    last = fits.last_of(model)
    if not hasattr(last, "n_leaves_"):
        raise TypeError(f"{type(last).__name__} has no n_leaves_ after its fit.")
    return _Tree(model, int(last.n_leaves_), fits.inertia_of(model))
