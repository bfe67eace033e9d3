"""Douglas: soft bins of every feature, trained end to end on a generalised mutual information."""

from __future__ import annotations

import copy
import dataclasses
import sys
import time
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._base import effective_n_jobs
from ._binned_columns import BinnedColumns
from ._cell_table import CellTable
from ._input import Table, align_table, check_finite, read_table
from ._kernels import check_gram, one_blas_thread
from ._model_file import SavedEstimator
from ._optimisers import Optimiser, make_optimiser
from ._reference import DEFAULT_N_CLUSTERS, Units, check_enough_rows
from ._soft_bins import SoftBins
from ._soft_training import Rows, Tell, evaluate, gradient_unit, start_bins, train
from .gemini import GEMINIS, Gemini, Wasserstein, make_gemini

__all__ = ["Douglas"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

DEFAULT_BATCH_SIZE = 256
"""Most rows of a batch where `batch_size` is None."""

_TOLD_EVERY = 1.0  # seconds


class Douglas(SavedEstimator):
    """x."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "gemini": [StrOptions(set(GEMINIS)), Gemini],
        "n_cuts": [Interval(Integral, 1, None, closed="left")],
        "temperature": [Interval(Real, 0.0, None, closed="neither")],
        "feature_mask": ["array-like", None],
        "init": [StrOptions({"quantile", "random"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"adam", "sgd"})],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "batch_size": [Interval(Integral, 2, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "scale": [StrOptions({"standard"}), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    labels_: IntArray
    n_features_in_: int

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        gemini: str | Gemini = "wasserstein_ova",
        n_cuts: int = 1,
        temperature: float = 0.1,
        feature_mask: Any = None,
        init: str = "quantile",
        n_init: int = 1,
        solver: str = "adam",
        learning_rate: float = 0.05,
        batch_size: int | None = None,
        max_iter: int = 200,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 10,
        scale: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.gemini = gemini
        self.n_cuts = n_cuts
        self.temperature = temperature
        self.feature_mask = feature_mask
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---- fit ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, affinity: Any = None) -> Self:  # noqa: ARG002
        """Fit."""
        started = time.perf_counter()
        self._validate_params()
        n_jobs = effective_n_jobs(self.n_jobs)
        table = read_table(X, estimator_name=type(self).__name__)
        check_finite(table, n_jobs)
        k = self.n_clusters or DEFAULT_N_CLUSTERS
        check_enough_rows(k, self.n_clusters, table.n_samples, type(self).__name__)
        columns = BinnedColumns.of(table, self.feature_mask, self.n_cuts, k, n_jobs)
        rows = self._rows(table, columns, affinity)
        batch_size = self._batch_size(table.n_samples)
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init + 1).tolist()
        best: tuple[float, SoftBins, list[float]] | None = None
        with one_blas_thread():
            unit = gradient_unit(rows, batch_size)
            for number, seed in enumerate(seeds[1:], start=1):
                of_start = np.random.RandomState(seed)
                model = self._start(rows, k, of_start)
                curve = train(
                    model,
                    rows,
                    make_optimiser(self.solver, self.learning_rate),
                    unit,
                    batch_size=batch_size,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    n_iter_no_change=self.n_iter_no_change,
                    rng=of_start,
                    tell=self._progress(table.n_samples, number, started),
                )
                found = evaluate(model, rows, batch_size, seeds[0])
                if best is None or found > best[0]:
                    best = found, model, curve
            assert best is not None, "there is a start"
            objective, model, curve = best
            cuts = columns.readable_cuts(model)
            model.cuts[:] = columns.in_units(cuts)
            labels = model.probabilities(rows.model).argmax(axis=1)
        n_rows = np.bincount(labels, minlength=k)
        # Clusters without rows come last, so that the labels are 0, 1, ...
        order = np.argsort(n_rows == 0, kind="stable")
        model.weights[:] = model.weights[:, order]
        labels = np.argsort(order)[labels]
        n_found = int((n_rows > 0).sum())
        cells = columns.counted_table(model.weights, cuts, table, labels)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._keep(model, columns, cuts, cells)
        self._trainer: _Trainer | None = None
        self.labels_ = labels
        self.loss_curve_, self.n_iter_ = np.array(curve), len(curve)
        self.objective_ = objective
        if n_found < k:
            warnings.warn(
                f"Only {n_found} of {k} clusters have rows. Other starts (n_init, random_state) or "
                "more epochs (max_iter) may find more.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def partial_fit(self, X: Any, y: Any = None, affinity: Any = None) -> Self:  # noqa: ARG002
        """Learn from one more batch of rows."""
        self._validate_params()
        name = type(self).__name__
        n_jobs = effective_n_jobs(self.n_jobs)
        is_first = not hasattr(self, "_model")
        if is_first:
            table = read_table(X, estimator_name=name)
        else:
            names = getattr(self, "feature_names_in_", None)
            names = None if names is None else names.tolist()
            table = align_table(X, names, self.n_features_in_, estimator_name=name)
        check_finite(table, n_jobs)
        if is_first:
            k = self.n_clusters or DEFAULT_N_CLUSTERS
            columns = BinnedColumns.of(table, self.feature_mask, self.n_cuts, k, n_jobs)
            if not len(columns.features):
                raise ValueError(
                    "The first batch of partial_fit fixes which columns are cut, their scale and "
                    f"where the cuts start: no column differs in its n_samples={table.n_samples}."
                )
        else:
            columns = self._columns.widened(table)
        rows = self._rows(table, columns, affinity)
        batch_size = self._batch_size(table.n_samples)
        with one_blas_thread():
            trainer = copy.deepcopy(self.__dict__.get("_trainer"))
            if trainer is None:
                rng = copy.deepcopy(check_random_state(self.random_state))
                model = self._start(rows, k, rng) if is_first else copy.deepcopy(self._model)
                optimiser = make_optimiser(self.solver, self.learning_rate)
                trainer = _Trainer(model, optimiser, gradient_unit(rows, batch_size), rng)
            curve = train(
                trainer.model,
                rows,
                trainer.optimiser,
                trainer.unit,
                batch_size=batch_size,
                max_iter=1,
                tol=None,
                n_iter_no_change=1,
                rng=trainer.rng,
            )
            model = copy.deepcopy(trainer.model)
            cuts = columns.readable_cuts(model)
            model.cuts[:] = columns.in_units(cuts)
            labels = model.probabilities(rows.model).argmax(axis=1)
        cells = columns.counted_table(model.weights, cuts, table, labels)
        before = [] if is_first else self.loss_curve_.tolist()
        self._keep(model, columns, cuts, cells)
        self._trainer = trainer
        self.labels_ = labels
        self.loss_curve_ = np.array([*before, *curve])
        self.n_iter_, self.objective_ = len(self.loss_curve_), curve[-1]
        return self

    def _batch_size(self, n: int) -> int:
        return min(self.batch_size or DEFAULT_BATCH_SIZE, max(n, 1))

    def _rows(self, table: Table, columns: BinnedColumns, affinity: Any) -> Rows:
        gemini = make_gemini(self.gemini)
        model = columns.model_rows(table)
        if affinity is not None:
            if not gemini.uses_rows:
                raise ValueError(
                    f"affinity was given, but the objective {gemini.name} does not look at rows."
                )
            given = check_gram(affinity, table.n_samples, name="affinity")
            if isinstance(
                gemini, Wasserstein
            ):  # what is given need not keep the triangle inequality
                gemini = dataclasses.replace(gemini, metric="precomputed", metric_params=None)
            return Rows(model, gemini, affinity=given)
        if not gemini.uses_rows:
            return Rows(model, gemini)
        scale = columns.scale if self.scale == "standard" else np.ones(table.n_features)
        seen = Units(np.zeros(table.n_features), scale).matrix(table)
        return Rows(model, gemini.settled(seen), seen)

    def _start(self, rows: Rows, k: int, rng: np.random.RandomState) -> SoftBins:
        return start_bins(
            rows.model,
            k,
            n_cuts=self.n_cuts,
            temperature=self.temperature,
            init=self.init,
            rng=rng,
        )

    def _keep(
        self, model: SoftBins, columns: BinnedColumns, cuts: FloatArray, cells: CellTable
    ) -> None:
        self._model, self._columns, self._own_cuts = model, columns, cuts
        self.table_ = cells
        self.n_features_in_ = columns.n_features
        if columns.feature_names is not None:
            self.feature_names_in_ = np.asarray(columns.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _progress(self, n_rows: int, number: int, started: float) -> Tell | None:
        if not self.verbose:
            return None
        said = started

        def tell(epoch: int, value: float) -> None:
            nonlocal said
            now = time.perf_counter()
            if now - said < _TOLD_EVERY and epoch < self.max_iter:
                return
            said = now
            print(
                f"[{type(self).__name__}] {n_rows:,} rows, start {number} of {self.n_init}, "
                f"epoch {epoch} of at most {self.max_iter}, GEMINI {value:.6g}, "
                f"{now - started:.1f} s",
                file=sys.stderr,
                flush=True,
            )

        return tell

    # ---- results --------------------------------------------------------------------------

    @property
    def cut_points_(self) -> FloatArray:
        """Cuts of every column in its own units, ascending; NaN in columns without."""
        check_is_fitted(self, "_model")
        columns = self._columns
        cuts = np.full((columns.n_features, self._own_cuts.shape[1]), np.nan)
        cuts[columns.features] = self._own_cuts
        return cuts

    @property
    def active_cut_points_(self) -> IntArray:
        """Columns with a cut strictly between their least and greatest value in the fit."""
        check_is_fitted(self, "_model")
        return self.table_.features

    @property
    def classes_(self) -> IntArray:
        """The clusters' labels."""
        check_is_fitted(self, "_model")
        return np.arange(self._model.weights.shape[1])

    @property
    def weights_(self) -> FloatArray:
        """What each cell adds to the logit of each cluster."""
        check_is_fitted(self, "_model")
        return self._model.weights

    @property
    def rule_agreement_(self) -> float:
        """Share of the rows of the fit whose cell is of the cluster that `predict` gives."""
        check_is_fitted(self, "_model")
        return self.table_.agreement

    # ---- using a fitted model -------------------------------------------------------------

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "_model")
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else names.tolist()
        table = align_table(X, names, self.n_features_in_, estimator_name=type(self).__name__)
        check_finite(table, effective_n_jobs(self.n_jobs))
        return table

    def _probabilities(self, table: Table) -> FloatArray:
        with one_blas_thread():
            return self._model.probabilities(self._columns.model_rows(table))

    def predict_proba(self, X: Any) -> FloatArray:
        """Give each row the probability of every cluster."""
        return self._probabilities(self._read(X))

    def predict(self, X: Any) -> IntArray:
        """Give each row its most probable cluster."""
        labels: IntArray = self.predict_proba(X).argmax(axis=1)
        return labels

    def apply(self, X: Any) -> IntArray:
        """Give the cell each row falls into."""
        return self.table_.apply(self._read(X))

    def explain(self, X: Any) -> list[str]:
        """Say for each row which bins its values are in."""
        table = self._read(X)
        found = self._probabilities(table)
        return self.table_.explain(table, found.argmax(axis=1), found.max(axis=1))

    def rules(self) -> pl.DataFrame:
        """Write one rule per cell with rows."""
        check_is_fitted(self, "_model")
        return self.table_.rules()

    def to_polars(self) -> pl.Expr:
        """Give the hard rules as a native polars expression named ``cluster``."""
        check_is_fitted(self, "_model")
        return self.table_.to_polars()

    def score(self, X: Any, y: Any = None, affinity: Any = None) -> float:  # noqa: ARG002
        """Give the GEMINI of rows."""
        table = self._read(X)
        rows = self._rows(table, self._columns, affinity)
        with one_blas_thread():
            index = np.arange(len(rows))
            _, of_rows = rows.batch(index)
            return rows.gemini.value(self._model.probabilities(rows.model), of_rows)


@dataclass(eq=False)
class _Trainer:
    """What `partial_fit` goes on from."""

    model: SoftBins
    optimiser: Optimiser
    unit: float
    rng: np.random.RandomState
