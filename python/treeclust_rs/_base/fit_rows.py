"""Rows and parameters of a fit: what every estimator reads and checks before it fits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from .. import _engine
from .._data import (
    Rows,
    Scale,
    Table,
    Units,
    WeightedRows,
    check_finite,
    check_sample_weight,
    collected,
    count_gaps,
    observed_rows,
    read_sparse,
    read_table,
    some_rows,
    warn_of_columns,
    with_names,
)
from .._kernels import check_gram
from .._reference.read import ReferenceInput, read_reference
from .._util import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    Interval,
    Options,
    StrOptions,
    at_least,
    effective_n_jobs,
    format_count,
    progress_line,
    progress_text,
)
from ..tree import ClusterTree


class FitParameters(Protocol):
    """The parameters of an estimator that decide how its rows are read."""

    n_jobs: int | None
    scale: Scale


@dataclass(frozen=True, eq=False)
class FitRows(WeightedRows[Rows]):
    """The rows that are fitted, neither noise nor of weight 0, and the table they come from."""

    estimator_name: str
    started: float
    """When the fit began, by `time.perf_counter`."""
    table: Rows
    """All rows."""
    kept: BoolArray | None
    """The mask of the fitted rows; None: all."""
    reference: ReferenceInput
    """Of the fitted rows."""
    names_given: bool = False
    """Whether the names of the columns are the user's `feature_names`, and not a frame's."""
    all_gram: FloatArray | None = None
    """The kernel matrix of all rows, where the user gave one."""

    @classmethod
    def read(
        cls,
        estimator: FitParameters,
        X: Any,
        sample_weight: Any,
        *,
        gram: Any = None,
        feature_names: Any = None,
        reference: Any = None,
        n_clusters: int | None = None,
        reader: Callable[..., Any] = read_table,
        compares_columns: bool = True,
        by_labels: bool = False,
        mixed: bool = False,
        sparse: bool = False,
        stacklevel: int = 4,
    ) -> FitRows[Any]:
        """Read and check what `fit` was given.

        Parameters
        ----------
        estimator : FitParameters
            The estimator, its parameters checked.
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Rows. A LazyFrame is collected once.
        sample_weight : array-like of shape (n_samples,) or None
            Weights.
        gram : array-like of shape (n_samples, n_samples), default=None
            A kernel matrix.
        feature_names : iterable of str, default=None
            Names of the columns, where X has none; a frame's must be the same.
        reference : None, estimator or array, default=None
            As estimators take it.
        n_clusters : int or None, default=None
            The estimator's number of clusters, which must be the reference's if that has one.
        reader : callable, default=read_table
            Makes a table of X.
        compares_columns : bool, default=True
            Whether rows are compared by their columns in units, so that a column with nearly all of
            the variance is worth a warning; never with a kernel matrix.
        by_labels : bool, default=False
            Whether the fit counts labels: where the reference brings them, no rows are compared.
        mixed : bool, default=False
            Whether cells may be missing, and columns of frames be text, booleans and times. Rows
            without an observed cell are then left out. The reader is `read_table`.
        sparse : bool, default=False
            Whether a scipy.sparse matrix is read as it is, by `read_sparse`.
        stacklevel : int, default=4
            Of that warning; 4 is right where `fit` calls this.

        Returns
        -------
        FitRows

        Raises
        ------
        ValueError, TypeError
            As estimators say in their `fit`.

        Warns
        -----
        UserWarning
            If a column looks like an identifier, or has nearly all of the variance.
        """
        started = time.perf_counter()
        threads = _engine.Threads(effective_n_jobs(estimator.n_jobs))
        name = type(estimator).__name__
        if hasattr(reference, "fit"):  # it is given X as well
            X = collected(X, name, mixed=mixed)
        read: Callable[..., Any] = partial(_read_mixed, threads=threads) if mixed else reader
        if sparse and issparse(X):
            read = read_sparse
        table, names_given = with_names(read(X, estimator_name=name), feature_names)
        weight = check_sample_weight(sample_weight, table.n_samples)
        if isinstance(table, Table) and not mixed:
            check_finite(table, threads)
        if gram is not None:
            gram = check_gram(gram, table.n_samples)
        counted = fitted_mask(weight, None, observed_rows(table))
        given = read_reference(reference, X, table, counted)
        given.check_n_clusters(n_clusters)
        kept, rows = fitted_mask(weight, given.labels, counted), table
        if kept is not None:
            given = given.take(kept)
            weight = None if weight is None else np.ascontiguousarray(weight[kept])
            rows = some_rows(table, kept)
        if isinstance(rows, Table):
            scale = estimator.scale
            units = Units.of(rows, weight, scale, threads)
            warn_of_columns(
                rows,
                weight,
                units.scale,
                scale,
                compares_columns=compares_columns
                and gram is None
                and not (by_labels and given.labels is not None),
                stacklevel=stacklevel,
            )
        else:
            units = Units.of(rows, weight, estimator.scale, threads)
        return cls(
            rows, weight, units, threads, name, started, table, kept, given, names_given, gram
        )

    @property
    def gram(self) -> FloatArray | None:
        """The kernel matrix of the fitted rows, where the user gave one."""
        return square_part(self.all_gram, self.kept)

    def excluded(self) -> Rows:
        """Return the other rows of the table, where there are some."""
        assert self.kept is not None
        return some_rows(self.table, ~self.kept)

    def progress(self, verbose: int) -> _engine.Progress | None:
        """Return the function that prints a line of progress; None without `verbose`."""
        return progress_line(verbose, self.estimator_name, self.rows.n_samples, self.started)

    def tell(self, verbose: int) -> Callable[[str], None] | None:
        """Return the function that prints a text with rows and time; None without `verbose`."""
        return progress_text(verbose, self.estimator_name, self.rows.n_samples, self.started)

    def tell_result(self, verbose: int, n_leaves: int, measure: str, value: float) -> None:
        """Print the last line of a fit, where `verbose` asks for it."""
        tell = self.tell(verbose)
        if tell is not None:
            tell(f"{format_count(n_leaves, 'leaf', 'leaves')}, {measure} {value:.6g}")

    def leaves_of_all(self, leaf_of_row: Codes, tree: ClusterTree) -> npt.NDArray[np.int32]:
        """Return the leaf of every row of the table; excluded rows are routed through the tree.

        `leaf_of_row`: of the fitted rows.
        """
        if self.kept is None:
            return leaf_of_row.astype(np.int32)
        others = self.excluded()
        data = others.data if isinstance(others, Table) else others.matrix()
        leaves = np.empty(self.table.n_samples, dtype=np.int32)
        leaves[self.kept] = leaf_of_row
        leaves[~self.kept] = tree.apply(data, self.threads)
        return leaves

    def labels_of_all(self, classes: npt.NDArray[Any], codes: IntArray | Codes) -> npt.NDArray[Any]:
        """Return the label of every row of the table, -1 for those that the fit left out.

        `codes`: of the fitted rows, places in `classes`.
        """
        if self.kept is None:
            return classes[codes]
        noise = np.asarray([-1]).astype(classes.dtype if classes.dtype.kind in "iu" else object)
        named = np.full(len(self.kept), noise[0], dtype=noise.dtype)
        named[self.kept] = classes[codes]
        return named


def _read_mixed(X: Any, *, estimator_name: str, threads: _engine.Threads) -> Table:
    """Return the table of a fit that takes missing cells, text, booleans and times."""
    return count_gaps(read_table(X, estimator_name=estimator_name, mixed=True), threads)


def fitted_mask(
    weight: FloatArray | None,
    labels: npt.NDArray[Any] | None,
    observed: BoolArray | None = None,
) -> BoolArray | None:
    """Return the mask of the rows to fit; None: all.

    They have positive weight, are not noise (-1), and are `observed` if that mask is given.

    Raises
    ------
    ValueError
        If no row is observed, or none of positive weight.
    """
    kept = None if weight is None else weight > 0
    if labels is not None:
        kept = labels >= 0 if kept is None else kept & (labels >= 0)
    if observed is not None:
        if not observed.any():
            raise ValueError(
                "All cells of the rows to fit are missing: null or NaN in every column. Give rows "
                "with at least one value."
            )
        kept = observed if kept is None else kept & observed
        if not kept.any():
            raise ValueError(
                f"Of the {len(observed)} rows, {np.count_nonzero(observed)} have a value in some "
                "column, and sample_weight is zero in all of these. Give one of them a positive "
                "weight."
            )
    return None if kept is None or kept.all() else kept


def square_part(gram: FloatArray | None, kept: BoolArray | None) -> FloatArray | None:
    """Return the kernel matrix of some rows; `kept` None: of all."""
    if gram is None or kept is None:
        return gram
    return np.ascontiguousarray(gram[np.ix_(kept, kept)])


Constraints = dict[str, list[Any]]

AT_LEAST_1 = at_least(1)

_SEED = Interval(Integral, 0, 2**32 - 1, closed="both")

COMMON: Constraints = {
    "scale": [StrOptions({"standard", "robust"}), dict, "array-like", None],
    "random_state": [_SEED, np.random.RandomState, None],
    "n_jobs": [Interval(Integral, None, -1, closed="right"), AT_LEAST_1, None],
    "verbose": ["verbose"],
}
"""Of all estimators."""

EXPLAINING: Constraints = {
    "n_clusters": [AT_LEAST_1, None],
    "reference": "no_validation",  # type: ignore[dict-item]
    **COMMON,
}
"""Of the estimators that explain a reference."""

MAX_LEAVES: Constraints = {"max_leaves": [AT_LEAST_1, Options(Real, {math.inf}), None]}
"""None: one per cluster; inf: no limit."""

LIMITS: Constraints = {
    **MAX_LEAVES,
    "max_depth": [AT_LEAST_1, None],
    "min_samples_leaf": [AT_LEAST_1],
}
"""Of the estimators whose growth has limits; see `Limits`."""
