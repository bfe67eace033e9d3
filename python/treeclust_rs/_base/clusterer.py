"""What all estimators with a tree share: predicting, explaining, saving and loading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.utils.validation import check_is_fitted

from .. import _engine
from .._data.checks import check_finite
from .._data.table import Table, align_table
from .._util.model_json import check_keys, float_array
from .._util.threads import effective_n_jobs
from ..export import (
    explain_rows,
    plot_partition,
    plot_tree,
    to_graphviz,
    to_polars_expr,
    tree_from_dict,
    tree_to_dict,
)
from ..tree.cluster_tree import ClusterTree, NonFiniteError
from .saving import SavedEstimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def leaves_of_all(
    leaf_of_row: npt.NDArray[np.uint32],
    kept: npt.NDArray[np.bool_] | None,
    tree: ClusterTree,
    table: Table,
    threads: _engine.Threads,
) -> npt.NDArray[np.int32]:
    """Give the leaf of every row of a fit; those the fit left out go down the tree."""
    if kept is None:
        return leaf_of_row.astype(np.int32)
    leaves = tree.apply(table.data, threads)
    leaves[kept] = leaf_of_row
    return leaves.astype(np.int32)


class TreeClusterer(SavedEstimator):
    """Base of the estimators whose result is a `ClusterTree` in `tree_`."""

    tree_: ClusterTree

    # Fitted numbers and arrays kept in model files, beside the tree: name -> shape in terms of k
    # and d.
    _saved: ClassVar[dict[str, str]] = {}
    _fitted_by: ClassVar[str] = "tree_"
    _from_rows: ClassVar[tuple[str, ...]] = ("labels_", "cluster_centers_", "inertia_")

    # Whether the tree may have oblique tests.
    _takes_oblique: ClassVar[bool] = False

    @property
    def n_leaves_(self) -> int:
        """Number of leaves of the tree."""
        check_is_fitted(self, "tree_")
        return self.tree_.n_leaves

    # ---- using a fitted model -------------------------------------------------------------

    def _route(self, X: Any) -> tuple[Table, npt.NDArray[np.int64]]:
        """Give the rows as a table, and the leaf of each."""
        check_is_fitted(self, "tree_")
        name = type(self).__name__
        table = align_table(X, self.tree_.feature_names, self.n_features_in_, estimator_name=name)
        n_jobs = effective_n_jobs(getattr(self, "n_jobs", None))
        try:
            return table, self.tree_.apply(table.data, n_jobs)
        except NonFiniteError:
            check_finite(table, n_jobs)  # names the columns and rows
            raise

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Give each row the label of its cluster.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows. Frames are matched by column name: order does not matter, other columns are
            ignored.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, as the reference named them.

        Raises
        ------
        ValueError
            If columns are missing, or a cell is NaN, infinite or null.
        """
        _, leaves = self._route(X)
        return np.asarray(self.tree_.classes)[self.tree_.leaf_clusters][leaves]

    def apply(self, X: Any) -> npt.NDArray[np.int64]:
        """Give the leaf each row falls into.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Node ids of `tree_`.
        """
        return self._route(X)[1]

    def explain(self, X: Any) -> list[str]:
        """Say for each row which conditions took it to its cluster.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows, as for `predict`.

        Returns
        -------
        list of str
            One line per row, with the row's own values.
        """
        table, leaves = self._route(X)
        return explain_rows(self.tree_, leaves, table.data)

    def to_polars(self) -> pl.Expr:
        """Give the tree as a native polars expression named ``cluster``.

        It runs in eager, lazy and streaming queries without calling Python. Columns are compared as
        Float64, as `predict` does; a null or NaN in a column the tree uses gives null.

        Returns
        -------
        polars.Expr
            For instance for ``frame.with_columns(model.to_polars())``.

        Raises
        ------
        ValueError
            If the tree is too large for polars.
        """
        check_is_fitted(self, "tree_")
        return to_polars_expr(self.tree_)

    def to_graphviz(self) -> str:
        """Give the tree as text in Graphviz' DOT language."""
        check_is_fitted(self, "tree_")
        return to_graphviz(self.tree_)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Axes:
        """Draw the tree with matplotlib (extra ``plot``); see `plot_tree` for the arguments.

        With an `image_shape` the leaves show the `cluster_centers_` if the model has them and no
        other `centers` are given.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn on.
        """
        check_is_fitted(self, "tree_")
        centers = getattr(self, "cluster_centers_", None)
        if kwargs.get("image_shape") is not None and centers is not None:
            kwargs = {"centers": centers} | kwargs
        return plot_tree(self.tree_, ax, **kwargs)

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
            What was drawn on.
        """
        check_is_fitted(self, "tree_")
        return plot_partition(self.tree_, X, ax, **kwargs)

    # ---- model files ----------------------------------------------------------------------

    def _payload(self) -> dict[str, Any]:
        check_is_fitted(self, "tree_")
        fitted = {
            name: np.asarray(getattr(self, name), dtype=float).tolist()
            for name in self._saved
            if getattr(self, name, None) is not None
        }
        return {"fitted": fitted, "tree": tree_to_dict(self.tree_)}

    @classmethod
    def _from_payload(cls, payload: dict[str, Any]) -> Self:
        check_keys(payload, ("model", "params", "fitted", "tree"), "The model file")
        fitted, tree = payload["fitted"], tree_from_dict(payload["tree"])
        if tree.oblique_indptr is not None and not cls._takes_oblique:
            raise ValueError(
                f"The model file holds {'an' if cls.__name__[0] in 'AEIO' else 'a'} {cls.__name__} "
                "whose tree has oblique tests."
            )
        model = cls._with_params(payload["params"])
        sizes = {"k": len(tree.classes), "d": tree.n_features, "path": -1}
        check_keys(fitted, (), "fitted of the model file", cls._saved)
        for name, content in fitted.items():
            shape = tuple(
                sizes[part] if part in sizes else int(part) for part in cls._saved[name].split()
            )
            if -1 in shape:
                n_rows = len(content) if isinstance(content, list) else 0
                shape = tuple(n_rows if size == -1 else size for size in shape)
            array = float_array(content if shape else [content], name, shape or (1,))
            setattr(model, name, array if shape else float(array[0]))
        model._check_saved(tree)
        model._set_tree(tree)
        return model

    def _check_saved(self, tree: ClusterTree) -> None:
        """Raise ValueError if the numbers read from a file cannot be those of a fit."""

    def _set_tree(self, tree: ClusterTree) -> None:
        self.tree_ = tree
        self._set_columns(tree.n_features, tree.feature_names)


__all__ = ["TreeClusterer", "leaves_of_all"]
