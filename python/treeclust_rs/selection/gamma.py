"""The sweep over gamma: fits of an estimator with kernels of different widths."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.base import clone

from .._data import check_sample_weight
from .._kernels import KERNELS, has_gamma
from .._util import FloatArray, ProgressBar, format_count, is_noise, is_number
from ..metrics import adjusted_rand_index, agreement
from .fits import (
    check_estimator,
    check_verbose,
    fit,
    inertia_of,
    labels_of,
    parameter,
    read,
    set_seed,
)
from .views import frame_html, table_text

# Default gammas span this many factors of 2 on both sides of that of "scale".
_OCTAVES = 6


@dataclass(frozen=True, eq=False, repr=False)
class GammaSweep:
    """Measures of fits with different gammas.

    Attributes
    ----------
    table : polars.DataFrame
        One row for each gamma, in rising order. Which columns there are depends on the estimator:

        - ``gamma``;
        - ``reference_kernel_cost``, ``kernel_cost``: kernel costs of the reference and of what the
          estimator found. Each row has another kernel, so they compare within a row only;
        - ``price``: the price of explainability, the tree's cost divided by the reference's;
        - ``agreement``: share of the weight on which tree and reference agree
          (`treeclust_rs.metrics.agreement`);
        - ``reference_ari``, ``ari``: adjusted Rand indices of the reference and of what the
          estimator found, with `y`;
        - ``n_clusters``, ``n_leaves``: how many the estimator found.

        Trees that explain a reference have all columns; `Kauri` and `KernelKMeans` have none about
        a reference, and `KernelKMeans` has no ``n_leaves``. Null where a fit was refused.
    """

    table: pl.DataFrame

    def best(self, by: str | None = None) -> dict[str, Any]:
        """Return the row that is best by one column.

        Parameters
        ----------
        by : {"reference_ari", "ari", "agreement"}, default=None
            The column to maximise; None: the first of these three in the table. Among equal values
            the smallest gamma wins, whose kernel is the smoothest.

        Returns
        -------
        dict
            The row: ``estimator.set_params(gamma=sweep.best()["gamma"])``.

        Raises
        ------
        ValueError
            If there is no such column, or it cannot choose a gamma: costs and prices get
            better as gamma grows whatever the clusters are, see `gamma_sweep`.
        """
        known = [name for name in ("reference_ari", "ari", "agreement") if name in self.table]
        if by is None and known:
            by = known[0]
        if by in ("price", "kernel_cost", "reference_kernel_cost"):
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

    @property
    def _head(self) -> str:
        return f"GammaSweep: {format_count(self.table.height, 'gamma')}"

    def __repr__(self) -> str:
        return table_text(self._head, self.table)

    def _repr_html_(self) -> str:
        try:
            best = self.table["gamma"].to_list().index(self.best()["gamma"])
        except ValueError as error:  # nothing to choose by
            return frame_html(self._head, self.table, None, str(error))
        return frame_html(self._head, self.table, best, "Bold: best().")


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
    k-means, and what it finds to what it would find without a kernel. For the same reason a grid
    search by `score`, minus the kernel cost, would take the smallest gamma.

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
    %(selection_verbose)s

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
    each without an approximation. The models are not kept, only their numbers.

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
    check_verbose(verbose)
    values = None if gammas is None else _check_gammas(gammas)
    X, table = read(X, "gamma_sweep")
    weight = check_sample_weight(sample_weight, table.n_samples)
    truth = None if y is None else _check_truth(y, table.n_samples)
    model = set_seed(clone(estimator), random_state)

    rows: list[dict[str, Any]] = []
    refused: list[tuple[float, ValueError]] = []
    n_gammas = 2 * _OCTAVES + 1 if values is None else len(values)
    with ProgressBar("gamma_sweep", n_gammas, verbose) as bar:
        if values is None:
            # The fit computes "scale" from its rows and units.
            first = fit(clone(model).set_params(gamma="scale"), X, weight)
            center = float(first.gamma_)
            rows.append({"gamma": center, **_measures(first, weight, truth)})
            bar.step(_summary(rows[-1]))
            octaves = np.arange(-_OCTAVES, _OCTAVES + 1)
            values = [math.ldexp(center, int(octave)) for octave in octaves if octave]
            del first
        for gamma in values:
            try:
                fitted = fit(clone(model).set_params(gamma=gamma), X, weight)
                rows.append({"gamma": gamma, **_measures(fitted, weight, truth)})
                bar.step(_summary(rows[-1]))
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


def _measures(
    model: Any, sample_weight: FloatArray | None, truth: npt.NDArray[Any] | None
) -> dict[str, Any]:
    """Return the columns of the table for one fit."""
    labels = labels_of(model)
    has_reference = hasattr(model, "reference_labels_")
    found: dict[str, Any] = {}
    if has_reference:
        found["reference_kernel_cost"] = float(model.reference_kernel_cost_)
    found["kernel_cost"] = inertia_of(model)
    if has_reference:
        found["price"] = float(model.price_of_explainability_)
        reference = np.asarray(model.reference_labels_)
        kept = ~is_noise(reference)
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
    """Return the adjusted Rand index over rows that are noise in neither."""
    kept = ~(is_noise(truth) | is_noise(labels))
    codes = [np.unique(marks[kept], return_inverse=True)[1] for marks in (truth, labels)]
    return float(adjusted_rand_index(*codes))


def _summary(row: dict[str, Any]) -> str:
    """Return the main numbers of a fit as text."""
    first = "price" if "price" in row else "kernel_cost"
    names = [name for name in (first, "agreement", "reference_ari", "ari") if name in row]
    return f"gamma {row['gamma']:.4g}: " + ", ".join(f"{name} {row[name]:.4g}" for name in names)


def _check_has_gamma(estimator: Any) -> None:
    check_estimator(estimator, "KernelKMeans()")
    name = type(estimator).__name__
    if "gamma" not in estimator.get_params(deep=False):
        raise TypeError(f"{name} has no parameter gamma.")
    kernel = parameter(estimator, "kernel", missing="rbf")
    if callable(kernel) or kernel == "precomputed":
        raise ValueError(
            f"The kernel of this {name} is {'a function' if callable(kernel) else 'precomputed'}, "
            "and has no gamma to try."
        )
    if kernel in KERNELS and not has_gamma(kernel):
        with_gamma = [known for known in KERNELS if has_gamma(known)]
        raise ValueError(
            f"The kernel {kernel!r} has no gamma; {', '.join(with_gamma[:-1])} and "
            f"{with_gamma[-1]} have one."
        )


def _check_gammas(gammas: Iterable[float]) -> list[float]:
    values = list(gammas)
    for gamma in values:
        if not is_number(gamma):
            raise TypeError(f"gammas must hold numbers. Got {gamma!r} among them.")
        if not 0 < gamma < math.inf:
            raise ValueError(f"gammas must be > 0 and finite. Got {gamma!r} among them.")
    if not values:
        raise ValueError("gammas is empty: give at least one.")
    return sorted({float(gamma) for gamma in values})


def _check_truth(y: Any, n_samples: int) -> npt.NDArray[Any]:
    truth = np.asarray(y)
    if truth.shape != (n_samples,):
        raise ValueError(
            f"y must have one label for each of the {n_samples:,} rows. Got an array of the shape "
            f"{truth.shape}."
        )
    return truth
