"""Base of the estimators with a tree: predicting, explaining, saving and loading."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from .. import export
from .._data import (
    Scale,
    SparseTable,
    align_sparse,
    check_finite,
    count_gaps,
    encoded_names,
    shown_columns,
    warn_of_gaps,
)
from .._util import IntArray, check_keys, effective_n_jobs
from .._util.words import real_name
from ..export.explanations import explain_pairs, explanation_frame, pair_frame
from ..export.text import Values
from ..metrics import Profile, n_parameters
from ..metrics.profiles import profile_of
from ..tree import ClusterTree, NonFiniteError, RuleTable, read_rows
from .counterfactual import Counterfactual, least_change
from .saving import Fields, SavedEstimator, read_fields, relabel, set_columns, write_fields

if TYPE_CHECKING:
    import narwhals as nw
    from matplotlib.axes import Axes
    from onnx import ModelProto
    from sklearn.pipeline import Pipeline
    from sklearn.tree import DecisionTreeClassifier

_DRIFT: Mapping[str, Any] = {
    "column": pl.String,
    "missing": pl.Int64,
    "missing_in_fit": pl.Boolean,
    "unknown": pl.Int64,
    "unknown_levels": pl.List(pl.Struct({"level": pl.String, "rows": pl.Int64})),
}


class TreeClusterer(SavedEstimator, abstract=True):
    """Base of the estimators whose result is a `ClusterTree` in `tree_`."""

    tree_: ClusterTree

    # Fitted numbers and arrays in model files, beside the tree.
    _saved: ClassVar[Fields] = {}
    _fitted_by: ClassVar[str] = "tree_"
    _from_rows: ClassVar[tuple[str, ...]] = ("labels_", "cluster_centers_", "inertia_")

    # Whether `fit` takes missing cells, and of frames text, booleans and times.
    _takes_missing: ClassVar[bool] = False
    # Whether `fit` takes scipy.sparse matrices.
    _takes_sparse: ClassVar[bool] = False
    # Whether the tree may have oblique tests.
    _takes_oblique: ClassVar[bool] = False

    @property
    def n_clusters_(self) -> int:
        """Number of clusters: of `classes_`."""
        return len(self.tree_.classes)

    @property
    def _needed_features(self) -> IntArray:
        return self.tree_.tested_features

    @property
    def n_leaves_(self) -> int:
        """Number of leaves of the tree."""
        return self.tree_.n_leaves

    @property
    def encoded_names_(self) -> npt.NDArray[np.object_]:
        """Names of the columns of `cluster_centers_`: ``age``, or ``region=north`` for a level."""
        check_is_fitted(self, "tree_")
        tree = self.tree_
        levels = tree.levels or (None,) * tree.n_features
        return np.array(encoded_names(levels, tree.feature_names), dtype=object)

    @property
    def n_parameters_(self) -> int:
        """Numbers that make up the tree, as `treeclust_rs.metrics.n_parameters` counts them."""
        return n_parameters(self.tree_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        tags.input_tags.sparse = self._takes_sparse
        return tags

    # ---- using a fitted model -------------------------------------------------------------

    def _route(
        self, X: Any, *, all_columns: bool = False, missing: bool = True
    ) -> tuple[Any, npt.NDArray[np.int64]]:
        """Return the rows as a `Table`, sparse ones as a `SparseTable`, and the leaf of each.

        Only the columns that the tree tests are read, unless `all_columns` asks for the others.
        `missing`: whether cells may be missing, where the tree has directions for them.
        """
        check_is_fitted(self, "tree_")
        if self._takes_sparse and issparse(X):
            return self._route_sparse(X, all_columns=all_columns)
        name, tree = type(self).__name__, self.tree_
        missing = missing and tree.missing_go_to_left is not None
        needed = None if all_columns else self._needed_features
        n_jobs = effective_n_jobs(getattr(self, "n_jobs", None))
        table = read_rows(
            tree,
            X,
            estimator_name=name,
            needed=needed,
            names_given=self._names_given,
            missing=missing,
            check=all_columns,
            n_jobs=n_jobs,
        )
        if missing and not all_columns:
            # Complete rows, the most usual, are read once.
            try:
                return table, tree.apply(table.data, n_jobs, missing=False)
            except NonFiniteError:
                table = count_gaps(table, n_jobs, needed)
        if missing:
            warn_of_gaps(table, tree.has_missing)
        try:
            return table, tree.apply(table.data, n_jobs, missing=missing)
        except NonFiniteError:
            check_finite(table, n_jobs, needed)  # names the columns and rows
            raise

    def _route_sparse(
        self, X: Any, *, all_columns: bool
    ) -> tuple[SparseTable, npt.NDArray[np.int64]]:
        """Return sparse rows, and the leaf of each."""
        name, tree = type(self).__name__, self.tree_
        if set(tree.column_kinds or ()) - {"number"}:
            raise TypeError(
                f"{name} was fitted to a table with columns that are not numbers, which sparse "
                "rows do not have: give a table with the same columns."
            )
        needed = None if all_columns else tree.tested_features
        table = align_sparse(X, tree.n_features, estimator_name=name, needed=needed)
        n_jobs = effective_n_jobs(getattr(self, "n_jobs", None))
        return table, tree.apply(X, n_jobs, missing=False)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of each row's cluster.

        Parameters
        ----------
        %(frame_rows)s

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, as the reference named them.

        %(predict_errors)s
        """
        _, leaves = self._route(X)
        return self.tree_.leaf_labels[leaves]

    def apply(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the leaf each row falls into.

        Parameters
        ----------
        %(rows_as_predict)s

        Returns
        -------
        ndarray of shape (n_samples,)
            Node ids of `tree_`.
        """
        return self._route(X)[1]

    def _row_values(self, table: Any) -> Values:
        """Return the values of rows, as `export.explain_rows` takes them."""
        return table.cell if isinstance(table, SparseTable) else shown_columns(table)

    @overload
    def explain(self, X: Any, other: Any = ..., *, as_frame: Literal[False] = ...) -> list[str]: ...
    @overload
    def explain(self, X: Any, other: Any = ..., *, as_frame: bool) -> list[str] | pl.DataFrame: ...
    def explain(
        self, X: Any, other: Any = None, *, as_frame: bool = False
    ) -> list[str] | pl.DataFrame:
        """Return the conditions that took each row to its cluster.

        Parameters
        ----------
        %(rows_as_predict)s
        other : array-like or frame of shape (n_samples, n_features), default=None
            As many rows again: each row of X is compared with the one of `other` in its place.
        as_frame : bool, default=False
            Whether to return a frame with a line for each condition.

        Returns
        -------
        list of str or polars.DataFrame
            One line per row, with the row's own values. With `other` one line per pair of rows: the
            conditions that keep them together, or the test at which they part. As a frame the
            columns are `row`, `cluster`, `column`, `value` and `condition`; with `other` also
            `other_cluster`, `other_value`, `other_condition` and `parts`, whether the rows part
            there.

        Raises
        ------
        ValueError
            If `other` has not as many rows as X.

        %(predict_errors)s
        """
        table, leaves = self._route(X)
        values = self._row_values(table)
        if other is None:
            if as_frame:
                return explanation_frame(self.tree_, leaves, values)
            return export.explain_rows(self.tree_, leaves, values)
        others, other_leaves = self._route(other)
        if others.n_samples != table.n_samples:
            raise ValueError(
                f"X has {table.n_samples:,} rows and other {others.n_samples:,}: give a row of "
                "other for each of X."
            )
        both = (values, self._row_values(others))
        if as_frame:
            return pair_frame(self.tree_, (leaves, other_leaves), both)
        return explain_pairs(self.tree_, (leaves, other_leaves), both)

    def counterfactual(
        self,
        row: Any,
        cluster: Any,
        *,
        fixed: str | int | Iterable[str | int] | None = (),
        costs: Mapping[Any, float] | None = None,
    ) -> Counterfactual:
        """Return the least change of a row that moves it to another cluster.

        Parameters
        ----------
        row : frame, array or sparse matrix of one row, or array-like of shape (n_features,)
            The row, as for `predict`; of a pandas frame ``X.iloc[[0]]``, not the Series
            ``X.iloc[0]``, which has not the types of the columns. A sparse row, such as ``X[[0]]``
            of CSR, comes back changed in the same format.
        cluster : int or str
            The label of the cluster to move it to.
        fixed : str, int, iterable of these or None, default=()
            Columns that do not change: names, or places counted from 0.
        costs : mapping, default=None
            By column a factor of what its changes cost, from 0 on; ``inf`` fixes it. Columns that
            are not named have 1.

        Returns
        -------
        Counterfactual
            With the changed `row`, its `changes` and their `cost`.

        Raises
        ------
        ValueError
            If no change of the other columns leads to the cluster, there is no such cluster or
            column, or `row` is not one row.
        TypeError
            If `row` is not a row, `fixed` not columns or `costs` not a mapping.

        %(predict_errors)s

        Notes
        -----
        The cost of a change is the sum over the columns, in `scale_` units: of numbers and times
        the absolute difference, 1 for a value in place of a missing one; of another level what two
        levels are apart (1 by that column's unit). A value never becomes missing. The change is the
        least one over all leaves of the cluster: trees without weighted sums are searched exactly,
        box by box; below weighted sums the least change is found by linear programs
        (`scipy.optimize.milp`) of about seven digits; where the solver keeps a sum's bound less
        well, the least change is missed by up to some 1e-4 of it, most with columns that cost 0. On
        the far side of a test the row
        gets the next value that its column's type holds: of columns of whole numbers, by their
        type, the next whole number, of dates the next day, of 32-bit floats the next one of these.

        Of equal costs the change of fewer columns is returned, then the first leaf from the left. A
        missing cell gets the value of the cluster's center, of a number three digits or the whole
        part, where the leaf allows it.
        """
        check_is_fitted(self, "tree_")
        return least_change(self, row, cluster, fixed, costs)

    def profile(self, X: Any, sample_weight: Any = None, *, scale: Scale = None) -> Profile:
        """Describe the rows of each cluster by all columns, and what sets them apart.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Rows with all columns of the fit, those that the tree does not test too. Sparse rows are
            read a column at a time.
        %(sample_weight)s
        scale : None, str, mapping or array, default=None
            Units of the contrasts, as estimators take them; None: the model's own, `scale_`.

        Returns
        -------
        Profile
            With a `table` of means, medians, shares and contrasts by cluster and column, and `plot`
            for a heat map.

        %(predict_errors)s
        """
        table, leaves = self._route(X, all_columns=True)
        codes = self.tree_.leaf_clusters[leaves]
        return profile_of(self, table, codes, self.tree_.classes, sample_weight, scale)

    def drift(self, X: Any) -> pl.DataFrame:
        """Count the missing cells and the unknown levels of rows, by column that the tree tests.

        Parameters
        ----------
        %(rows_as_predict)s

        Returns
        -------
        polars.DataFrame
            One row a column, in the order of the fit: `column`, its name; `missing`, the number of
            missing cells, and `missing_in_fit`, whether the fit had any; `unknown`, the number of
            cells with a level that the fit did not have, and `unknown_levels`, a list of each such
            `level` and its number of `rows`, the most frequent first.

        %(predict_errors)s
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what is counted here
            table, _ = self._route(X)
        tree, rows = self.tree_, []
        for feature in self._needed_features.tolist():
            unknown = pl.Series([], dtype=pl.String)
            n_missing = 0 if table.gaps is None else table.gaps[feature]
            if table.unknown and feature in table.unknown:
                levels = (tree.levels or ())[feature] or ()
                # As a list: of an array of objects polars makes no texts where the first is None.
                listed = table.unknown[feature].of_rows().tolist()
                texts = pl.Series(listed, dtype=pl.String).drop_nulls()
                unknown = texts.filter(~texts.is_in(levels))
            rows.append(
                {
                    "column": real_name(tree.feature_names, feature),
                    "missing": n_missing - len(unknown),
                    "missing_in_fit": bool(tree.has_missing and tree.has_missing[feature]),
                    "unknown": len(unknown),
                    "unknown_levels": unknown.alias("level")
                    .value_counts(name="rows")
                    .sort(["rows", "level"], descending=[True, False])
                    .to_dicts(),
                }
            )
        return pl.DataFrame(rows, schema=_DRIFT)

    def rules(self) -> RuleTable:
        """Return one rule per leaf, as `ClusterTree.rules` of `tree_` does.

        Returns
        -------
        RuleTable
            A polars frame that is printed whole.
        """
        check_is_fitted(self, "tree_")
        return self.tree_.rules()

    def to_polars(self) -> pl.Expr:
        """Return the tree as a native polars expression named ``cluster``.

        It runs in eager, lazy and streaming queries without calling Python. Columns are compared as
        Float64, as `predict` does. A null or NaN in a column that the tree tests takes the way of
        `tree_.missing_go_to_left`; without it, as after loading a file of version 1, it gives null.

        %(polars)s
            If the tree is too large for polars.
        """
        return export.to_polars_expr(self)

    def to_polars_code(self) -> str:
        """Return the expression of `to_polars` as Python code, for jobs without this package.

        A module that needs polars alone and defines `cluster`: ``frame.with_columns(cluster)``.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If the tree is too large for polars.
        """
        return export.to_polars_code(self)

    def to_sklearn(self) -> DecisionTreeClassifier | Pipeline:
        """Return the tree as a fitted classifier of scikit-learn, whose classes are the clusters.

        See `treeclust_rs.export.to_sklearn`.

        Returns
        -------
        DecisionTreeClassifier or Pipeline
            A pipeline, with an encoder before the classifier, if the table has text, booleans,
            dates or times, or the tree weighted sums.

        Raises
        ------
        ValueError
            If float32, in which scikit-learn compares, would move a value of the fit across the
            threshold beside it, or the intervals of the tree take more than 200,000 nodes.
        """
        return export.to_sklearn(self)

    def to_onnx(self, *, dtype: str = "float32") -> ModelProto:
        """Return the tree as an ONNX model (extra ``onnx``).

        See `treeclust_rs.export.to_onnx` for its inputs and output.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float32"
            Of numbers: the model is exact for rows of this type.

        Returns
        -------
        onnx.ModelProto
            For instance for ``onnx.save(model.to_onnx(), "tree.onnx")``.

        Raises
        ------
        ImportError
            If onnx is not installed.
        ValueError
            If the tree is too large, or float32 would move a value of the fit across the threshold
            beside it.
        """
        return export.to_onnx(self, dtype=dtype)

    def to_narwhals(self) -> nw.Expr:
        """Return the tree as an expression of narwhals named ``cluster``.

        It runs in polars, pandas, pyarrow, DuckDB, Dask, Ibis and Spark; see
        `treeclust_rs.export.to_narwhals_expr`.

        %(narwhals)s
            If the tree is too large for narwhals.
        """
        return export.to_narwhals_expr(self)

    def to_sql(
        self,
        dialect: str = "duckdb",
        table: str | Sequence[str] | None = None,
        *,
        name: str = "cluster",
    ) -> str:
        """Return the tree as SQL: a CASE expression, or a SELECT from a table.

        See `treeclust_rs.export.to_sql` for how it treats times and missing cells.

        %(sql)s
            If the tree is too large for the database, or has a name that cannot be written there.
        """
        return export.to_sql(self, dialect, table, name=name)

    def to_graphviz(self, *, shares: bool = False) -> str:
        """Return the tree as text in Graphviz' DOT language.

        Parameters
        ----------
        shares : bool, default=False
            Whether to write the share of each term of an oblique test behind it; see
            `treeclust_rs.export.to_graphviz`.

        Returns
        -------
        str
        """
        return export.to_graphviz(self, shares=shares)

    def to_html(self, path: str | os.PathLike[str], X: Any = None, **kwargs: Any) -> None:
        """Write the tree as one HTML file to look through in a browser, offline.

        See `treeclust_rs.export.to_html` for what it shows.

        Parameters
        ----------
        path : str or path-like
            The file; one that is there is replaced.
        X : array-like or frame of shape (n_samples, n_features), default=None
            Rows for histograms in the nodes and for what sets the clusters apart.
        **kwargs
            `title` of the page.
        """
        export.to_html(self, path, X, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Axes:
        """Draw the tree with matplotlib (extra ``plot``); see `plot_tree` for the arguments.

        With an `image_shape` the leaves show the `cluster_centers_` if the model has them and no
        other `centers` are given.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        if isinstance(ax, (str, os.PathLike)):
            raise TypeError(
                f"ax is {str(ax)!r}: plot draws on matplotlib axes. To write a file: "
                f"model.plot().figure.savefig({str(ax)!r})."
            )
        centers = getattr(self, "cluster_centers_", None)
        if kwargs.get("image_shape") is not None and centers is not None:
            kwargs = {"centers": centers} | kwargs
        return export.plot_tree(self, ax, **kwargs)

    def plot_partition(self, X: Any = None, ax: Axes | None = None, **kwargs: Any) -> Axes:
        """Draw the tree's cells over the plane of two columns, and points in them.

        With matplotlib (extra ``plot``); see `treeclust_rs.export.plot_partition` for the other
        arguments.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features), default=None
            Points, as for `predict`; None draws the cells alone.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs
            `labels` to colour the points by, `columns` of a model of more than two, `annotate`,
            `limits` and so on.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        return export.plot_partition(self, X, ax, **kwargs)

    def rename_clusters(self, names: Mapping[Any, int | str]) -> Self:
        """Return the model with other labels for its clusters, in everything that it writes.

        Parameters
        ----------
        %(new_labels)s

        Returns
        -------
        Self
            A new fitted estimator; this one stays as it is. Its `labels_`, `classes_`, `tree_` and
            `reference_labels_` have the new labels, and so have its predictions, rules, texts,
            pictures, polars expressions and files. A new `fit` makes its own labels again.

        %(label_errors)s
        """
        check_is_fitted(self, "tree_")
        model = copy.copy(self)
        model._set_tree(self.tree_.rename_clusters(names), self._names_given)
        relabel(model, self.classes_, model.classes_)
        return model

    # ---- model files ----------------------------------------------------------------------

    def _payload(self) -> dict[str, Any]:
        check_is_fitted(self, "tree_")
        fitted = write_fields(self, self._saved)
        return {"fitted": fitted, "tree": export.tree_to_dict(self.tree_)}

    @classmethod
    def _from_payload(cls, payload: dict[str, Any]) -> Self:
        check_keys(payload, ("model", "params", "fitted", "tree"), "The model file")
        fitted, tree = payload["fitted"], export.tree_from_dict(payload["tree"])
        if tree.oblique_indptr is not None and not cls._takes_oblique:
            raise ValueError(
                f"The model file holds {'an' if cls.__name__[0] in 'AEIO' else 'a'} {cls.__name__} "
                "whose tree has oblique tests."
            )
        model = cls._with_params(payload["params"])
        model.__dict__.update(read_fields(fitted, cls._saved, tree))
        model._complete(tree)
        model._set_tree(tree)
        return model

    def _complete(self, tree: ClusterTree) -> None:
        """Complete a model read from a file; raises ValueError if no fit makes such a tree."""

    def _set_tree(self, tree: ClusterTree, names_given: bool = False) -> None:
        self.tree_ = tree
        self.classes_ = np.asarray(tree.classes)
        self._is_fitted_in_parts = self._had_label_column = False
        set_columns(self, tree.n_features, tree.feature_names, given=names_given)
