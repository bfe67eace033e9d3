"""Douglas: soft bins of every feature, trained end to end on a generalised mutual information."""

from __future__ import annotations

import copy
import dataclasses
import time
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._base.saving import SavedEstimator
from ..._data.checks import check_finite
from ..._data.table import Table, align_table, read_table
from ..._data.units import Units
from ..._kernels.gram import check_gram
from ..._reference.checks import DEFAULT_N_CLUSTERS, check_enough_rows, warn_of_empty
from ..._util.arrays import FloatArray, IntArray
from ..._util.model_json import check_keys, float_array
from ..._util.progress import progress_text
from ..._util.threads import effective_n_jobs, one_blas_thread
from ..._util.validation import Interval, StrOptions
from ...gemini import GEMINIS, Gemini, Wasserstein, make_gemini
from ...gemini.distances import check_distances
from .binned_columns import BinnedColumns
from .cell_table import CellTable
from .fitted_bins import LOWEST_TEMPERATURE, FittedBins, Trainer, bins_from_dict, bins_to_dict
from .soft_bins import SoftBins
from .soft_training import Plan, Rows, begin, gradient_unit, prune, search, train_epoch

__all__ = ["Douglas"]


# Most rows of a batch where `batch_size` is None: this, or so many per cluster.
_BATCH_SIZE = 64
_BATCH_ROWS = 10

_PROGRESS_EVERY = 1.0  # seconds


class Douglas(SavedEstimator):
    """Cut every feature into soft bins, and cluster by combinations of bins.

    A row belongs to every bin of a feature a little, by a softmax of its distance to the cuts. A
    cell is one bin of every feature, and each cell has a weight per cluster. Cuts and weights are
    trained together, by gradient steps that make the clusters as different as possible: the
    objective is a generalised mutual information (GEMINI) of clusters and rows, with no other
    clustering before it. For many rows and few columns: there are (n_cuts + 1)^m cells of m
    columns.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means 8. A maximum: fewer come out where fewer are better.
    gemini : str or Gemini, default="wasserstein_ova"
        The objective: a name of `treeclust_rs.gemini.GEMINIS`, or an object of that module, which
        may have another kernel or distance. "_ova" compares each cluster with all rows, "_ovo" each
        with each. "mmd2_ova" is the objective of k-means but for constants, and quicker on many
        rows.
    n_cuts : int, default=1
        Cuts of each column; one more is the number of its bins (the paper's T).
    temperature : float, default=0.1
        Softness of the bins, in standard deviations of each column: a row this far beyond a single
        cut is in the near bin by 0.73. At least 1e-6.
    feature_mask : array-like of bool of shape (n_features,), default=None
        True for the columns to cut; None: all. The objective sees all columns all the same. Columns
        that do not vary are never cut.
    init : {"quantile", "random"} or array-like of shape (n_features, n_cuts), default="quantile"
        Where cuts start: at the quantiles that make bins of all but equal numbers of rows; as in
        the paper, at random, by a normal distribution about the mean; or the cuts themselves, in
        the columns' own units, `cut_points_` of another model say. Of columns that are not cut they
        may be NaN.
    n_init : int, default=5
        Number of starts; the model of the greatest objective is kept. Weights start small and
        random; every other start gives each cell a cluster at random instead. Of more than 10,000
        rows the starts see 10,000 only, and the best goes on with all.
    solver : {"adam", "sgd"}, default="adam"
        Adam, or plain gradient steps.
    learning_rate : float or None, default=None
        Length of a step; None: 0.05 for Adam, 1 for plain steps. Gradients are divided by the mean
        size of the distances or kernel values, so it does not depend on the columns' units.
    batch_size : int or None, default=None
        Most rows of a step; None: 64, or 10 per cluster if that is more. All rows are split into
        batches of all but equal size.
    warm_up : int, default=50
        Most epochs with the energy distance (`EnergyDistance`) in place of a Wasserstein objective,
        before training with it; it sees at most 10,000 rows, and ends by `tol` too. Without, a
        Wasserstein objective stays near its random start. 0, or another objective: none.
    max_iter : int, default=200
        Most epochs. An epoch sees every row once: of a million rows one or two are enough.
    tol : float or None, default=0.001
        Training ends when the objective does not rise by this share of its best value for
        `n_iter_no_change` epochs. None: after `max_iter` epochs.
    n_iter_no_change : int, default=10
        Epochs without a rise that end the training.
    prune : float, default=0.0
        Columns that hardly matter are cut no more, after the training: as many as can go, one after
        the other, for this share of the objective. Cells that differ in them alone become one, and
        the model trains on. 0: none goes; 0.01 left 4 of the 16 columns of the congressional votes
        on average. Not by `partial_fit`. `predict` asks for all columns all the same; `to_polars`
        takes those that are left.
    scale : {None, "standard"}, default=None
        "standard": the objective sees the columns divided by their standard deviations. Cuts are in
        the columns' own units all the same.
    random_state : int, RandomState or None, default=None
        Seed of weights, batches and random cuts.
    n_jobs : int or None, default=None
        Threads that look through the columns. None: all cores, and 1 inside joblib workers.
        Training takes one. The result does not depend on it.
    verbose : int, default=0
        Whether to print a line of progress now and then.

    Attributes
    ----------
    table_ : CellTable
        The hard rules: print it. Bins have sharp edges there, and a cell is of the cluster it has
        the greatest weight for.
    labels_ : ndarray of shape (n_samples,)
        Most probable cluster of every row; after `partial_fit`, of its rows. `fit` gives clusters
        without rows the last numbers.
    loss_curve_ : ndarray of shape (n_iter_,)
        The objective, which training raises: mean of the batches of each epoch (of the best start;
        of the last stage with more than 10,000 rows, or with `prune`).
    n_iter_ : int
        Number of epochs.
    objective_ : float
        Mean objective of batches of rows at the end, by which starts are compared. See `score` for
        that of all rows at once.
    cut_points_ : ndarray of shape (n_features, n_cuts)
        Cuts in the columns' own units, ascending, rounded to as few digits as move them by at most
        a hundredth of the temperature. NaN in columns that are not cut.
    active_cut_points_ : ndarray of shape (n_active,)
        Columns with at least one cut strictly between their least and greatest value (section 4 of
        the paper). The others take no part in the rules.
    weights_ : ndarray of shape (n_cells, n_clusters)
        Weights of the cells of all columns that are cut, the last column's bin running fastest.
    rule_agreement_ : float
        Share of the rows of the fit for which the hard rules give the cluster that `predict` gives.
    classes_ : ndarray of shape (n_clusters,)
        0, ..., n_clusters - 1.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    Raises
    ------
    ValueError, TypeError
        By `fit`: see there.

    See Also
    --------
    Kauri : A tree that makes its own clusters, for many columns too.

    Notes
    -----
    `predict` is the most probable cluster of the soft model (the argmax of `predict_proba`), which
    is what is trained and what the paper scores. The rules (`table_`, `rules`, `to_polars`) are
    that model as its temperature goes to 0: a row counts for the one cell it lies in. They differ
    from `predict` for some rows near cuts; `rule_agreement_` says for how many of the fit, the
    column `purity` of `rules` in which cells, and `explain` for which rows. Cuts beyond which no
    row of the fit lies take no part in the rules; for rows outside of the fit's range this is a
    difference too.

    A step with b rows takes 6 b L k operations for the model, L = (n_cuts + 1)^m cells, and memory
    of O(L k + b sqrt(L) k), not of b L; the Wasserstein objective takes k transport problems of b
    rows, one-vs-one k (k - 1) / 2, which is most of the time unless L is thousands. `prune` looks
    at m (m + 1) / 2 models, each on at most eight batches, and trains once more. Memory beside
    the table is 8 n (m + d) bytes, the affinity that of one batch.

    References
    ----------
    Ohl et al. End-to-end training of unsupervised trees: Kauri and Douglas. Sections 2.3, 4 and 5,
    appendices E and G.
    Yang, Garcia Morillo, Hospedales. Deep neural decision trees. 2018.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> rng = np.random.default_rng(0)
    >>> centers = np.repeat([[0.0, 0.0], [4.0, 0.0], [0.0, 6.0]], 30, axis=0)
    >>> X = centers + rng.normal(size=(90, 2)) / 4
    >>> model = tc.Douglas(3, random_state=0).fit(X)
    >>> model.active_cut_points_
    array([0, 1])
    >>> sorted(model.rules()["n"])
    [30, 30, 30]
    >>> model.predict([[3.9, 0.2], [0.1, 5.0]]) == model.labels_[[30, 60]]
    array([ True,  True])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "gemini": [StrOptions(set(GEMINIS)), Gemini],
        "n_cuts": [Interval(Integral, 1, None, closed="left")],
        "temperature": [Interval(Real, LOWEST_TEMPERATURE, None, closed="left")],
        "feature_mask": ["array-like", None],
        "init": [StrOptions({"quantile", "random"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"adam", "sgd"})],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 2, None, closed="left"), None],
        "warm_up": [Interval(Integral, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "prune": [Interval(Real, 0.0, 1.0, closed="left")],
        "scale": [StrOptions({"standard"}), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _defining: ClassVar[tuple[str, ...]] = ("gemini",)
    _fitted_by: ClassVar[str] = "table_"
    _from_rows: ClassVar[tuple[str, ...]] = ("labels_",)

    table_: CellTable
    labels_: IntArray
    loss_curve_: FloatArray
    objective_: float

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        gemini: str | Gemini = "wasserstein_ova",
        n_cuts: int = 1,
        temperature: float = 0.1,
        feature_mask: Any = None,
        init: Any = "quantile",
        n_init: int = 5,
        solver: str = "adam",
        learning_rate: float | None = None,
        batch_size: int | None = None,
        warm_up: int = 50,
        max_iter: int = 200,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 10,
        prune: float = 0.0,
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
        self.warm_up = warm_up
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.prune = prune
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---- fit ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, affinity: Any = None) -> Self:  # noqa: ARG002
        """Fit cuts and weights.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers: the columns to cut, and the rows the objective compares.
        y : ignored
            For the API.
        affinity : array-like of shape (n_samples, n_samples), default=None
            Distances (wasserstein_) or kernel values (mmd_, mmd2_) of every two rows, symmetric, in
            place of those that the objective would compute from X.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If X, `affinity` or cuts given as `init` hold NaN or inf, there are fewer rows than
            clusters, `feature_mask`, `init` or `affinity` have another shape, `affinity` is not
            symmetric, holds what cannot be a distance (wasserstein_) or is given to an objective
            that does not look at rows, or there are so many cells that training would take more
            than 4 GiB.
        TypeError
            If a column or `init` is not numbers, or `feature_mask` holds anything but True and
            False.

        Warns
        -----
        ConvergenceWarning
            If not all clusters have rows.
        UserWarning
            If the columns make so many cells that training takes long.
        """
        started = time.perf_counter()
        self._validate_params()
        table, columns, k = self._read_first(X)
        rows = self._rows(table, columns, affinity)
        rng = check_random_state(self.random_state)
        tell = progress_text(
            self.verbose, type(self).__name__, table.n_samples, started, _PROGRESS_EVERY
        )
        with one_blas_thread():
            plan = self._plan(k, columns)
            model, curve, objective = search(rows, plan, self.n_init, rng, tell)
            if self.prune and len(columns.features) > 1:
                seed = rng.randint(np.iinfo(np.int32).max)
                kept, rows, model, new, objective = prune(model, rows, plan, self.prune, seed, tell)
                curve, columns = new or curve, columns.only(kept)
            cuts, labels = _round_cuts(model, columns, rows)
        n_rows = np.bincount(labels, minlength=k)
        # Clusters without rows come last, so that the labels are 0, 1, ...
        order = np.argsort(n_rows == 0, kind="stable")
        model.weights[:] = model.weights[:, order]
        labels = np.argsort(order)[labels]
        cells = columns.counted_table(model.weights, cuts, table, labels)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._keep(FittedBins(model, columns, cuts), cells)
        self.labels_, self.loss_curve_, self.objective_ = labels, np.array(curve), objective
        n_found = int((n_rows > 0).sum())
        if n_found < k:
            advice = (
                "Other starts (n_init, random_state), more epochs (max_iter) or more cuts (n_cuts) "
                "may find more."
            )
            if not len(columns.features):
                advice = "No column to cut varies: no cut can tell rows apart."
            warn_of_empty(n_found, k, advice, stacklevel=3)
        return self

    def partial_fit(self, X: Any, y: Any = None, affinity: Any = None) -> Self:  # noqa: ARG002
        """Go on training with more rows, which are seen once.

        The first call of a model that was not fitted fixes which columns are cut, and their scale,
        from its rows, and finds where to go on from as `fit` does, by `n_init` starts on 1,024 of
        these rows, or 16 batches if that is more. A first part should hold rows of all clusters:
        what the starts do not find, later parts seldom do. Later calls go on whatever the
        parameters now say, and with the optimiser's state unless the model was read from a file.
        Clusters keep their numbers. `table_` and `labels_` are then of the rows of the last call,
        `loss_curve_` has an entry per call.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows, as for `fit`. More than `batch_size` make several steps.
        y : ignored
            For the API.
        affinity : array-like of shape (n_samples, n_samples), default=None
            As for `fit`.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        ValueError, TypeError
            As for `fit`; also if no column varies in the first rows, or the model was read from a
            file that does not hold its objective.

        Warns
        -----
        ConvergenceWarning
            If not all clusters have rows after the first call.
        UserWarning
            If the columns make so many cells that training takes long.
        """
        self._validate_params()
        before: FittedBins | None = self.__dict__.get("_fitted")
        if before is None:
            table, columns, k = self._read_first(X)
            if not len(columns.features):
                raise ValueError(
                    "The first rows of partial_fit fix which columns are cut, their scale and "
                    f"where the cuts start, but in these n_samples={table.n_samples} no column "
                    "varies. Begin with more rows."
                )
        else:
            table = self._read(X)
            columns = before.columns.widened(table)
            k = before.model.weights.shape[1]
        rows = self._rows(table, columns, affinity)
        plan = self._plan(k, columns if before is None else None)
        with one_blas_thread():
            trainer = None if before is None else copy.deepcopy(before.trainer)
            if trainer is None:
                seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
                rng = np.random.RandomState(seed)
                if before is None:
                    model = begin(rows, plan, self.n_init, rng)
                else:
                    model = copy.deepcopy(before.model)
                trainer = Trainer(model, plan.optimiser(), self.gemini, 0.0, rng)
            if trainer.unit == 0.0 or not _are_same(trainer.gemini, self.gemini):
                unit = gradient_unit(rows, plan.batch_size)
                trainer = dataclasses.replace(trainer, gemini=self.gemini, unit=unit)
            value = train_epoch(
                trainer.model,
                rows,
                trainer.optimiser,
                trainer.unit or 1.0,
                plan.batch_size,
                trainer.rng,
            )
            model = copy.deepcopy(trainer.model)
            cuts, labels = _round_cuts(model, columns, rows)
        cells = columns.counted_table(model.weights, cuts, table, labels)
        curve = [] if before is None else self.loss_curve_.tolist()
        self._keep(FittedBins(model, columns, cuts, trainer), cells)
        self.labels_, self.loss_curve_ = labels, np.array([*curve, value])
        self.objective_ = value
        n_found = len(np.unique(labels))
        if before is None and n_found < k:
            advice = "Begin with more rows, or with other starts (n_init)."
            warn_of_empty(n_found, k, advice, stacklevel=3)
        return self

    def _read_first(self, X: Any) -> tuple[Table, BinnedColumns, int]:
        """Read the rows of a fit; choose the columns to cut, and the number of clusters."""
        n_jobs, name = effective_n_jobs(self.n_jobs), type(self).__name__
        table = read_table(X, estimator_name=name)
        check_finite(table, n_jobs)
        k = self.n_clusters or DEFAULT_N_CLUSTERS
        check_enough_rows(k, self.n_clusters, table.n_samples, name)
        batch_size = min(self._batch_size(k), table.n_samples)
        mask = self.feature_mask
        columns = BinnedColumns.of(table, mask, self.n_cuts, k, batch_size, n_jobs)
        return table, columns, k

    def _batch_size(self, k: int) -> int:
        return self.batch_size or max(_BATCH_SIZE, _BATCH_ROWS * k)

    def _plan(self, k: int, columns: BinnedColumns | None) -> Plan:
        """Say how to train; without columns it goes on from cuts that are there."""
        init = self.init
        if columns is not None and not isinstance(init, str):
            init = columns.given_cuts(init, self.n_cuts)
        return Plan(
            n_clusters=k,
            n_cuts=self.n_cuts,
            temperature=self.temperature,
            init=init,
            solver=self.solver,
            learning_rate=self.learning_rate,
            batch_size=self._batch_size(k),
            warm_up=self.warm_up,
            max_iter=self.max_iter,
            tol=self.tol,
            n_iter_no_change=self.n_iter_no_change,
        )

    def _rows(self, table: Table, columns: BinnedColumns, affinity: Any) -> Rows:
        """Give rows as the model and as the objective see them."""
        self._check_known()
        gemini = make_gemini(self.gemini)
        model = columns.model_rows(table)
        if affinity is not None:
            if not gemini.uses_rows:
                raise ValueError(
                    f"affinity was given, but gemini={gemini.name!r} does not look at rows."
                )
            if isinstance(gemini, Wasserstein):
                given = check_distances(affinity, table.n_samples, name="affinity")
                # What is given need not keep the triangle inequality.
                gemini = dataclasses.replace(gemini, metric="precomputed", metric_params=None)
            else:
                given = check_gram(affinity, table.n_samples, name="affinity")
            return Rows(model, gemini, affinity=given)
        if not gemini.uses_rows:
            return Rows(model, gemini)
        scale = columns.scale if self.scale == "standard" else np.ones(table.n_features)
        seen = Units(np.zeros(table.n_features), scale).matrix(table)
        return Rows(model, gemini.settled(seen), seen)

    def _keep(self, fitted: FittedBins, cells: CellTable) -> None:
        self._fitted = fitted
        self.table_ = cells
        self._set_columns(fitted.columns.n_features, fitted.columns.feature_names)

    # ---- results --------------------------------------------------------------------------

    @property
    def cut_points_(self) -> FloatArray:
        """Cuts of every column in its own units, ascending; NaN in columns that are not cut."""
        check_is_fitted(self, "table_")
        columns, cuts = self._fitted.columns, self._fitted.cuts
        of_all = np.full((columns.n_features, cuts.shape[1]), np.nan)
        of_all[columns.features] = cuts
        return of_all

    @property
    def active_cut_points_(self) -> IntArray:
        """Columns with a cut strictly between their least and greatest value in the fit."""
        check_is_fitted(self, "table_")
        return self.table_.features

    @property
    def weights_(self) -> FloatArray:
        """Weights of the cells for the clusters, of shape (n_cells, n_clusters); a copy."""
        check_is_fitted(self, "table_")
        return self._fitted.model.weights.copy()

    @property
    def rule_agreement_(self) -> float:
        """Share of the rows of the fit whose cell is of the cluster that `predict` gives."""
        check_is_fitted(self, "table_")
        return self.table_.agreement

    @property
    def classes_(self) -> IntArray:
        """The clusters' labels."""
        check_is_fitted(self, "table_")
        return np.arange(self.table_.n_clusters)

    @property
    def n_iter_(self) -> int:
        """Number of epochs."""
        check_is_fitted(self, "table_")
        return len(self.loss_curve_)

    # ---- using a fitted model -------------------------------------------------------------

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "table_")
        columns = self._fitted.columns
        table = align_table(
            X, columns.feature_names, columns.n_features, estimator_name=type(self).__name__
        )
        check_finite(table, effective_n_jobs(self.n_jobs))
        return table

    def _probabilities(self, table: Table) -> FloatArray:
        with one_blas_thread():
            return self._fitted.model.probabilities(self._fitted.columns.model_rows(table))

    def predict_proba(self, X: Any) -> FloatArray:
        """Give each row the probability of every cluster.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows. Frames are matched by column name: order does not matter, other columns are
            ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Equation 10 of the paper, with the softmax that it leaves out. Of every row the sum
            is 1.

        Raises
        ------
        ValueError
            If columns are missing, or a cell is NaN, infinite or null.
        """
        return self._probabilities(self._read(X))

    def predict(self, X: Any) -> IntArray:
        """Give each row its most probable cluster.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows, as for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels; the lowest of equally probable ones.

        Raises
        ------
        ValueError
            As for `predict_proba`.
        """
        labels: IntArray = self.predict_proba(X).argmax(axis=1)
        return labels

    def apply(self, X: Any) -> IntArray:
        """Give the cell of the hard rules each row falls into.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows, as for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of cells: ``table_.clusters[model.apply(X)]`` is what the rules give.

        Raises
        ------
        ValueError
            As for `predict_proba`.
        """
        table = self._read(X)
        return self.table_.apply(table)

    def explain(self, X: Any) -> list[str]:
        """Say for each row which bins its values are in.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows, as for `predict_proba`.

        Returns
        -------
        list of str
            One line per row, with what `predict` gives and the row's own values in its cell. Where
            the cell is of another cluster, that cluster and the probability stand there too.

        Raises
        ------
        ValueError
            As for `predict_proba`.
        """
        table = self._read(X)
        found = self._probabilities(table)
        return self.table_.explain(table, found.argmax(axis=1), found.max(axis=1))

    def rules(self) -> pl.DataFrame:
        """Write one rule per cell with rows.

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
        """Give the hard rules as a native polars expression named ``cluster``.

        It runs in eager, lazy and streaming queries without calling Python, and gives
        ``table_.clusters[model.apply(X)]``: see `rule_agreement_` for how often that is what
        `predict` gives. Columns are compared as Float64; a null or NaN in a column the rules use
        gives null.

        Returns
        -------
        polars.Expr
            For instance for ``frame.with_columns(model.to_polars())``.

        Raises
        ------
        ValueError
            If the rules have more than 10,000 cells.
        """
        check_is_fitted(self, "table_")
        return self.table_.to_polars()

    def score(self, X: Any, y: Any = None, affinity: Any = None) -> float:  # noqa: ARG002
        """Give the objective of rows, all of them at once.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            For the API.
        affinity : array-like of shape (n_samples, n_samples), default=None
            As for `fit`.

        Returns
        -------
        float
            The GEMINI of `predict_proba`. With an objective that looks at rows it takes their
            n x n affinity; the Wasserstein ones take seconds from some thousand rows on.

        Raises
        ------
        ValueError
            As for `predict_proba`; also if the affinity would take more than 4 GiB, or the model
            was read from a file that does not hold its objective.
        """
        table = self._read(X)
        rows = self._rows(table, self._fitted.columns, affinity)
        with one_blas_thread():
            probabilities = self._fitted.model.probabilities(rows.model)
            return rows.gemini.value(probabilities, rows.whole_affinity())

    # ---- model files ----------------------------------------------------------------------

    def _payload(self) -> dict[str, Any]:
        check_is_fitted(self, "table_")
        fitted = {"loss_curve_": self.loss_curve_.tolist(), "objective_": self.objective_}
        bins = bins_to_dict(self._fitted, self.table_)
        return {"fitted": fitted, "bins": bins}

    @classmethod
    def _from_payload(cls, payload: dict[str, Any]) -> Self:
        check_keys(payload, ("model", "params", "fitted", "bins"), "The model file")
        estimator = cls._with_params(payload["params"])
        where = "fitted of the model file"
        fitted = check_keys(payload["fitted"], ("loss_curve_", "objective_"), where)
        objective = float_array([fitted["objective_"]], "objective_", (1,))
        n_iter = len(fitted["loss_curve_"]) if isinstance(fitted["loss_curve_"], list) else 0
        curve = float_array(fitted["loss_curve_"], "loss_curve_", (n_iter,))
        kept, cells = bins_from_dict(payload["bins"], estimator.n_cuts)
        estimator._keep(kept, cells)
        estimator.loss_curve_, estimator.objective_ = curve, float(objective[0])
        return estimator


def _round_cuts(model: SoftBins, columns: BinnedColumns, rows: Rows) -> tuple[FloatArray, IntArray]:
    """Bring a model's cuts to few digits; give them in own units, and the labels of the rows."""
    cuts = columns.readable_cuts(model)
    model.cuts[:] = columns.in_units(cuts)
    labels: IntArray = model.probabilities(rows.model).argmax(axis=1)
    return cuts, labels


def _are_same(before: Any, now: Any) -> bool:
    """Whether the parameter gemini has not been changed; objects may not be comparable."""
    return before is now or (isinstance(now, str) and isinstance(before, str) and before == now)
