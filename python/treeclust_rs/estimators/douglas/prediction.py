"""Fitted models of Douglas: probabilities, clusters, cells and rules, model files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.utils.validation import check_is_fitted

from ... import export
from ..._data import Scale, Table, align_table, check_finite
from ..._util import (
    FloatArray,
    IntArray,
    check_keys,
    check_list,
    documented,
    effective_n_jobs,
    float_array,
    int_array,
    one_blas_thread,
)
from ..._util.words import check_unicode
from ...metrics import Profile
from ...metrics.profiles import profile_of
from ...tree import ClusterTree, RuleTable
from ...tree.checks import check_classes
from .cell_table import CellTable
from .cell_tree import cell_tree
from .column_bins import ColumnBins
from .search import Trainer
from .soft_bins import SoftBins

if TYPE_CHECKING:
    import narwhals as nw
    from onnx import ModelProto
    from sklearn.tree import DecisionTreeClassifier


@documented
class BinsPredictor:
    """Fitted attributes and predictions of Douglas."""

    n_jobs: int | None
    table_: CellTable
    loss_curve_: FloatArray
    _bins: BinsModel

    # ---- results --------------------------------------------------------------------------

    @property
    def cut_points_(self) -> FloatArray:
        """Cuts of every column in its own units, ascending; NaN in columns that are not cut."""
        columns, cuts = self._bins.columns, self._bins.cuts
        of_all = np.full((columns.n_features, cuts.shape[1]), np.nan)
        of_all[columns.features] = cuts
        return of_all

    @property
    def active_cut_points_(self) -> IntArray:
        """Columns with a cut strictly between their least and greatest value in the fit."""
        return self.table_.features

    @property
    def weights_(self) -> FloatArray:
        """Weights of the cells for the clusters, of shape (n_cells, n_clusters); a copy."""
        return self._bins.model.weights.copy()

    @property
    def rule_agreement_(self) -> float:
        """Share of the rows of the fit whose cell has the cluster that `predict` returns."""
        return self.table_.agreement

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The clusters' labels."""
        return np.asarray(self.table_.classes)

    @property
    def n_clusters_(self) -> int:
        """Number of clusters: of `classes_`."""
        return self.table_.n_clusters

    @property
    def n_leaves_(self) -> int:
        """Number of cells of the hard rules with rows of the fit."""
        return len(self.table_.occupied)

    @property
    def n_parameters_(self) -> int:
        """Numbers that make up the hard rules: two for each cut, one for each cell with rows."""
        return 2 * sum(map(len, self.table_.cuts)) + self.n_leaves_

    @property
    def n_iter_(self) -> int:
        """Number of epochs."""
        return len(self.loss_curve_)

    # ---- rows -----------------------------------------------------------------------------

    @property
    def _needed_features(self) -> IntArray:
        return self._bins.columns.features

    def _read(self, X: Any, *, all_columns: bool = False) -> Table:
        """Return the columns that are cut, and the others too if `all_columns` asks for them."""
        check_is_fitted(self, "table_")
        columns, name = self._bins.columns, type(self).__name__
        needed = None if all_columns else self._needed_features
        table = align_table(
            X,
            columns.feature_names,
            columns.n_features,
            estimator_name=name,
            needed=needed,
            names_given=not hasattr(self, "feature_names_in_"),
        )
        check_finite(table, effective_n_jobs(self.n_jobs), needed)
        return table

    def _probabilities(self, table: Table) -> FloatArray:
        with one_blas_thread():
            return self._bins.model.probabilities(self._bins.columns.model_rows(table))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every cluster for each row.

        Parameters
        ----------
        %(frame_rows)s

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Equation 10 of the paper, with the softmax that it leaves out. Every row sums to 1.

        %(missing_columns)s
        """
        return self._probabilities(self._read(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable cluster of each row.

        Parameters
        ----------
        %(rows_as_probabilities)s

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels; the first of equally probable ones.

        %(as_for_probabilities)s
        """
        codes: IntArray = self.predict_proba(X).argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[codes]
        return labels

    def apply(self, X: Any) -> IntArray:
        """Return the cell of the hard rules of each row.

        Parameters
        ----------
        %(rows_as_probabilities)s

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of cells: ``table_.labels[model.apply(X)]`` are the clusters by the rules.

        %(as_for_probabilities)s
        """
        table = self._read(X)
        return self.table_.apply(table)

    def explain(self, X: Any, other: Any = None, *, as_frame: bool = False) -> list[str]:
        """Return a line per row with the bins of its values.

        Parameters
        ----------
        %(rows_as_probabilities)s
        other : None, default=None
            Not taken: trees explain pairs of rows.
        as_frame : bool, default=False
            True is not taken: trees explain in frames.

        Returns
        -------
        list of str
            One line per row, with the result of `predict` and the row's own values in its cell. If
            the cell has another cluster, the line names that cluster and the probability too.

        %(as_for_probabilities)s
        TypeError
            If `other` or `as_frame` is given, as trees take them.
        """
        if other is not None or as_frame:
            argument = "pairs of rows" if other is not None else "as_frame=True"
            raise TypeError(
                f"{type(self).__name__} explains single rows in lines, and takes no {argument}. A "
                'tree of its clusters does: BestTree(objective="labels", '
                "reference=model.predict(X)).fit(X).explain(...)."
            )
        table = self._read(X)
        shares = self._probabilities(table)
        return self.table_.explain(table, shares.argmax(axis=1), shares.max(axis=1))

    def profile(self, X: Any, sample_weight: Any = None, *, scale: Scale = None) -> Profile:
        """Describe the rows of each cluster by all columns, and what sets them apart.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with all columns of the fit, those that are not cut too.
        %(sample_weight)s
        scale : None, str, mapping or array, default=None
            Units of the contrasts, as estimators take them; None: the model's own, `scale_`.

        Returns
        -------
        Profile
            With a `table` of means, medians and contrasts by cluster and column, and `plot` for a
            heat map. A row is of the cluster that `predict` returns.

        %(as_for_probabilities)s
        """
        table = self._read(X, all_columns=True)
        codes: IntArray = self._probabilities(table).argmax(axis=1)
        return profile_of(self, table, codes, self.table_.classes, sample_weight, scale)

    def rules(self) -> RuleTable:
        """Return one rule per cell with rows.

        Returns
        -------
        RuleTable
            A polars frame that is printed whole. By cluster, then by rows, the most first:
            `cluster`, `rule`, `n` (rows of the fit), `share` (of all rows) and `purity` (share of
            the cell's rows that `predict` puts in that cluster).
        """
        check_is_fitted(self, "table_")
        return self.table_.rules()

    def to_sklearn(self) -> DecisionTreeClassifier:
        """Return the hard rules as a fitted classifier of scikit-learn.

        Its classes are the clusters of ``table_.labels[model.apply(X)]``; see
        `treeclust_rs.export.to_sklearn`.

        Returns
        -------
        DecisionTreeClassifier

        Raises
        ------
        ValueError
            If the rules take more than 200,000 nodes, or a cut is beyond float32.
        """
        check_is_fitted(self, "table_")
        names = self.table_.feature_names if hasattr(self, "feature_names_in_") else None
        return export.to_sklearn(self._cell_tree(names))

    def to_onnx(self, *, dtype: str = "float32") -> ModelProto:
        """Return the hard rules as an ONNX model (extra ``onnx``).

        Its labels are ``table_.labels[model.apply(X)]``; see `treeclust_rs.export.to_onnx`.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float32"
            Of numbers: the model is exact for rows of this type.

        Returns
        -------
        onnx.ModelProto

        Raises
        ------
        ImportError
            If onnx is not installed.
        ValueError
            If the rules take more than 200,000 nodes, or a cut is beyond float32.
        """
        check_is_fitted(self, "table_")
        return export.to_onnx(self._cell_tree(self.table_.feature_names), dtype=dtype)

    def to_html(self, path: str | os.PathLike[str], X: Any = None, **kwargs: Any) -> None:
        """Write the hard rules as one HTML file to look through in a browser, offline.

        The cells are shown as a tree of their cuts; clusters are those of
        ``table_.labels[model.apply(X)]``. See `treeclust_rs.export.to_html`.

        Parameters
        ----------
        path : str or path-like
            The file.
        X : array-like or frame of shape (n_samples, n_features), default=None
            Rows with all columns of the fit, for histograms and contrasts.
        **kwargs
            Of `to_html`: `title`.

        Raises
        ------
        ValueError
            If the rules take more than 1,000 leaves, or X holds what `predict` refuses.
        """
        check_is_fitted(self, "table_")
        tree = self._cell_tree(self.table_.feature_names)
        rules: Any = SimpleNamespace(
            tree_=tree,
            scale_=self._bins.columns.units,
            _names_given=getattr(self, "_names_given", False),
        )
        export.to_html(rules, path, X, **{"title": type(self).__name__} | kwargs)

    def _cell_tree(self, names: tuple[str, ...] | None) -> ClusterTree:
        cells = replace(self.table_, feature_names=names)
        return cell_tree(cells, self._bins.columns.n_features)

    def to_polars(self) -> pl.Expr:
        """Return the hard rules as a native polars expression named ``cluster``.

        It runs in eager, lazy and streaming queries without calling Python, and computes
        ``table_.labels[model.apply(X)]``: `rule_agreement_` is the share of rows for which
        `predict` agrees. Columns are compared as Float64; the result is null for a null or NaN in a
        column that the rules use.

        %(polars)s
            If the rules have more than 10,000 cells.
        """
        check_is_fitted(self, "table_")
        return self.table_.to_polars()

    def to_polars_code(self) -> str:
        """Return the hard rules as Python code, with the results of `to_polars`.

        A module that needs polars alone and defines `cluster`: ``frame.with_columns(cluster)``.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If the rules take a tree of more than 10,000 leaves.
        """
        check_is_fitted(self, "table_")
        return export.to_polars_code(self._cell_tree(self.table_.feature_names))

    def to_narwhals(self) -> nw.Expr:
        """Return the hard rules as an expression of narwhals named ``cluster``.

        It runs in polars, pandas, pyarrow, DuckDB, Dask, Ibis and Spark, with the results of
        `to_polars`.

        %(narwhals)s
            If the rules have more than 4,000 cells or more than 120 cuts.
        """
        check_is_fitted(self, "table_")
        return self.table_.to_narwhals()

    def to_sql(
        self,
        dialect: str = "duckdb",
        table: str | Sequence[str] | None = None,
        *,
        name: str = "cluster",
    ) -> str:
        """Return the hard rules as SQL, with the results of `to_polars`.

        %(sql)s
            If the rules have more than 10,000 cells, or the database cannot write a name.
        """
        check_is_fitted(self, "table_")
        return self.table_.to_sql(dialect, table, name=name)


LOWEST_TEMPERATURE = 1e-6
"""Below, bins are as good as hard, and cuts have no gradient."""

_PER_COLUMN = ("shift", "scale", "lower", "upper", "units")
_PER_CELL = ("occupied", "n_rows", "n_agreeing")


@dataclass(frozen=True, eq=False)
class BinsModel:
    """Trained bins: soft model, columns and readable cuts."""

    model: SoftBins
    columns: ColumnBins
    cuts: FloatArray
    """In the columns' own units."""
    trainer: Trainer | None = None


def bins_to_dict(bins: BinsModel, cells: CellTable) -> dict[str, Any]:
    """Return a model and its hard rules as plain lists and numbers."""
    model, columns, classes = bins.model, bins.columns, cells.classes
    return {
        "n_features": columns.n_features,
        "feature_names": columns.feature_names,
        "n_clusters": cells.n_clusters,
        **({} if classes == tuple(range(cells.n_clusters)) else {"classes": list(classes)}),
        "temperature": float(model.temperature),
        "features": columns.features.tolist(),
        **{name: getattr(columns, name).tolist() for name in _PER_COLUMN},
        "cut_points": bins.cuts.tolist(),
        "weights": model.weights.tolist(),
        **{name: getattr(cells, name).tolist() for name in _PER_CELL},
    }


def bins_from_dict(content: object, n_cuts: int, is_standard: bool) -> tuple[BinsModel, CellTable]:
    """Read and check the model of a file.

    `n_cuts` is the number of cuts of a column if no column is cut. A file without units has those
    of an older version: the columns' scale if `is_standard`, else ones.
    """
    if isinstance(content, dict) and "units" not in content and "scale" in content:
        scale = content["scale"]
        own = [1.0] * len(scale) if isinstance(scale, list) else scale
        content = content | {"units": scale if is_standard else own}
    keys = ("n_features", "feature_names", "n_clusters", "temperature", "features", "cut_points")
    required = (*keys, "weights", *_PER_COLUMN, *_PER_CELL)
    bins = check_keys(content, required, "bins of the model file", ("classes",))
    for name in ("n_features", "n_clusters"):
        if type(bins[name]) is not int or bins[name] < 1:
            raise ValueError(f"{name} in the model file must be a positive integer.")
    d, k = bins["n_features"], bins["n_clusters"]
    classes: Any = ()
    if "classes" in bins:
        classes = check_classes(check_list(bins["classes"], "classes", {int, str}, k))
    names = bins["feature_names"]
    check_unicode(names if isinstance(names, list) else [], "The model file has a column")
    if names is not None and not (
        isinstance(names, list)
        and len(names) == d
        and all(isinstance(name, str) for name in names)
        and len(set(names)) == d
    ):
        raise ValueError(f"feature_names in the model file must be null or {d} different strings.")
    features = int_array(bins["features"], "features", None)
    if len(features) and not (
        (np.diff(features) > 0).all() and features[0] >= 0 and features[-1] < d
    ):
        raise ValueError("features in the model file are not ascending columns of it.")
    arrays = {name: float_array(bins[name], name, (d,)) for name in _PER_COLUMN}
    if (
        min(arrays["scale"].min(), arrays["units"].min()) <= 0
        or (arrays["lower"] > arrays["upper"]).any()
    ):
        raise ValueError(
            "The model file has a scale or units that are not positive, or an empty range."
        )
    columns = ColumnBins(n_features=d, feature_names=names, features=features, **arrays)
    temperature = float(float_array([bins["temperature"]], "temperature", (1,))[0])
    if temperature < LOWEST_TEMPERATURE:
        raise ValueError(f"The model file has a temperature below {LOWEST_TEMPERATURE}.")
    rows = bins["cut_points"]
    first = rows[0] if isinstance(rows, list) and rows else None
    n_cuts = len(first) if isinstance(first, list) else n_cuts
    if not n_cuts:
        raise ValueError("cut_points in the model file has a row without cuts.")
    cuts = float_array(rows, "cut_points", (len(features), n_cuts))
    if (np.diff(cuts, axis=1) < 0).any():
        raise ValueError("cut_points in the model file are not ascending.")
    weights = float_array(bins["weights"], "weights", ((n_cuts + 1) ** len(features), k))
    model = SoftBins(columns.in_units(cuts), weights, temperature)
    occupied, n_rows, n_agreeing = (int_array(bins[name], name, None) for name in _PER_CELL)
    cells = columns.cell_table(weights, cuts, (occupied, n_rows, n_agreeing))
    if not len(occupied) == len(n_rows) == len(n_agreeing) > 0:
        raise ValueError("occupied, n_rows and n_agreeing of the model file differ in length.")
    if (np.diff(occupied) <= 0).any() or occupied[0] < 0 or occupied[-1] >= cells.n_cells:
        raise ValueError("occupied in the model file are not ascending cells of it.")
    if (n_rows < 1).any() or (n_agreeing < 0).any() or (n_agreeing > n_rows).any():
        raise ValueError("n_rows or n_agreeing in the model file are no counts.")
    if n_rows.sum(dtype=float) >= 2**53:
        raise ValueError("n_rows in the model file are too many.")
    return BinsModel(model, columns, cuts), replace(cells, classes=classes)
