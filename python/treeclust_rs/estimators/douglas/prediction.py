"""What a fitted model of Douglas answers: probabilities, clusters, cells, rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from sklearn.utils.validation import check_is_fitted

from ..._data.checks import check_finite
from ..._data.table import Table, align_table
from ..._util.arrays import FloatArray, IntArray
from ..._util.docs import documented
from ..._util.threads import effective_n_jobs, one_blas_thread
from .bins_model import BinsModel
from .cell_table import CellTable


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
    def classes_(self) -> IntArray:
        """The clusters' labels."""
        return np.arange(self.table_.n_clusters)

    @property
    def n_iter_(self) -> int:
        """Number of epochs."""
        return len(self.loss_curve_)

    # ---- rows -----------------------------------------------------------------------------

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "table_")
        columns = self._bins.columns
        table = align_table(
            X, columns.feature_names, columns.n_features, estimator_name=type(self).__name__
        )
        check_finite(table, effective_n_jobs(self.n_jobs))
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

    def predict(self, X: Any) -> IntArray:
        """Return the most probable cluster of each row.

        Parameters
        ----------
        %(rows_as_probabilities)s

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels; the lowest of equally probable ones.

        %(as_for_probabilities)s
        """
        labels: IntArray = self.predict_proba(X).argmax(axis=1)
        return labels

    def apply(self, X: Any) -> IntArray:
        """Return the cell of the hard rules of each row.

        Parameters
        ----------
        %(rows_as_probabilities)s

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of cells: ``table_.clusters[model.apply(X)]`` are the clusters by the rules.

        %(as_for_probabilities)s
        """
        table = self._read(X)
        return self.table_.apply(table)

    def explain(self, X: Any) -> list[str]:
        """Return a line per row with the bins of its values.

        Parameters
        ----------
        %(rows_as_probabilities)s

        Returns
        -------
        list of str
            One line per row, with the result of `predict` and the row's own values in its cell. If
            the cell has another cluster, the line names that cluster and the probability too.

        %(as_for_probabilities)s
        """
        table = self._read(X)
        shares = self._probabilities(table)
        return self.table_.explain(table, shares.argmax(axis=1), shares.max(axis=1))

    def rules(self) -> pl.DataFrame:
        """Return one rule per cell with rows.

        Returns
        -------
        polars.DataFrame
            By cluster, then by rows, the most first: `cluster`, `rule`, `n` (rows of the fit),
            `share` (of all rows) and `purity` (share of the cell's rows that `predict` puts in that
            cluster).
        """
        check_is_fitted(self, "table_")
        return self.table_.rules()

    def to_polars(self) -> pl.Expr:
        """Return the hard rules as a native polars expression named ``cluster``.

        It runs in eager, lazy and streaming queries without calling Python, and computes
        ``table_.clusters[model.apply(X)]``: `rule_agreement_` is the share of rows for which
        `predict` agrees. Columns are compared as Float64; the result is null for a null or NaN in a
        column that the rules use.

        %(polars)s
            If the rules have more than 10,000 cells.
        """
        check_is_fitted(self, "table_")
        return self.table_.to_polars()
