"""Questions, answers, and the fit that asks."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sized
from dataclasses import replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from .. import _engine
from .._base import LeafMeans, TrainingState
from .._data import (
    Encoding,
    FittedColumns,
    Table,
    align_table,
    check_feature_names,
    check_sample_weight,
    observed_rows,
    take_rows,
)
from .._data.frames import frame_source
from .._data.scale import given_scale
from .._data.units import means_with_levels
from .._reference.checks import (
    DEFAULT_N_CLUSTERS,
    check_distinct,
    warn_of_lost,
    warn_of_misfit,
)
from .._reference.read import ReferenceInput, label_array, read_centers, typed_labels
from .._util import (
    FloatArray,
    distinct,
    effective_n_jobs,
    format_count,
    level_of_user,
    progress_text,
    warn_user,
)
from ..estimators.exkmc import ExKMC
from ..estimators.imm import IMM
from ..tree import ClusterTree, GrownTree, tests_of
from .columns import (
    FoundInAll,
    FoundInRows,
    check_columns,
    columns_alone,
    columns_of_all,
    levels_of,
    read_first,
    table_of,
)
from .models import centers_of, cut_score_of, limits_of, what_of
from .reference import ReferenceFinder

# Stands for no limit of leaves: no tree has more.
_NO_LIMIT = 1 << 62

# Largest share of the cost by which moving the centers of a sample lowers it without a warning.
_MAX_GAIN = 0.01

Model = TypeVar("Model", bound=ExKMC | IMM)


def _check_read(check: Callable[[Any], None], found: Any, what: str) -> None:
    """Raise ValueError if a check of what was read fails: the bytes are not `what` they should."""
    try:
        check(found)
    except ValueError as error:
        raise ValueError(
            f"These bytes are not {what} of this version of treeclust_rs, or not all of it."
        ) from error


def _read_names(data: bytes, n_features: int) -> tuple[list[str] | None, str]:
    """Return names of the columns and estimator as `Fit` wrote them; raises ValueError."""
    try:
        known = json.loads(data)
        names, estimator = known["names"], known["estimator"]
        is_sound = isinstance(estimator, str) and (
            names is None
            or (len(names) == n_features and all(isinstance(name, str) for name in names))
        )
    except (ValueError, TypeError, LookupError):
        is_sound = False
    if not is_sound:
        raise ValueError(
            "These bytes are not a question of this version of treeclust_rs, or not all of it."
        )
    return names, estimator


class Question:
    """What a fit asks of every part of the rows.

    Made by `Fit.question`; small enough to be sent to every worker. Questions can be pickled.
    """

    def __init__(self, core: _engine.PartsQuestion) -> None:
        self._core = core
        self._names, self._estimator = _read_names(core.names, core.n_features)
        columns = core.columns
        _check_read(check_columns, columns, "a question")
        self._fitted = FittedColumns([kind for kind, _, _ in columns], levels_of(columns))
        self._may_be_empty = all(has_missing for _, _, has_missing in columns)

    @property
    def n_features(self) -> int:
        """Number of columns of the parts."""
        return self._core.n_features

    @property
    def wants_labels(self) -> bool:
        """Whether parts must come with the labels of their rows."""
        return self._core.wants_labels

    def answer(
        self,
        part: Any,
        *,
        part_id: int,
        sample_weight: Any = None,
        labels: Any = None,
        n_jobs: int | None = None,
    ) -> Answer:
        """Answer for one part of the rows.

        A function of the question and the part alone: it may be computed again elsewhere, and the
        part is not kept.

        Parameters
        ----------
        part : array-like or frame of shape (n_rows, n_features)
            Rows, perhaps none, of all that `ExKMC.fit` takes: numbers, and in frames text, booleans
            and times; cells may be missing. Columns of frames are found by name.
        part_id : int
            The number of the part, from 0 on: the same for the same rows in every round, and of no
            other part. Rows count in the order of these numbers.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights; rows of weight 0 are left out.
        labels : array-like of shape (n_rows,), default=None
            Where the fit wants labels: the cluster of each row, integers or strings; -1 is noise,
            which is left out.
        n_jobs : int or None, default=None
            Threads, as of estimators.

        Returns
        -------
        Answer

        Raises
        ------
        ValueError
            If cells are infinite, a column has more than 255 levels, columns lack, weights are no
            weights, labels lack, are not wanted or have more than 4,096 different values, or
            distances overflow.
        TypeError
            If a column is of a type that no method takes, or held something else before; if labels
            are neither integers nor strings; or the rows are sparse.
        """
        gathering = Gathering(self, _engine.Threads(effective_n_jobs(n_jobs)))
        gathering.add(part, part_id, sample_weight, labels)
        return gathering.finish()

    def to_bytes(self) -> bytes:
        """Return the question as bytes, of a version of their own; `from_bytes` reads them."""
        return self._core.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` returned; ValueError if it is not a question."""
        return cls(_engine.PartsQuestion.from_bytes(data))

    def __reduce__(self) -> tuple[Callable[[bytes], Question], tuple[bytes]]:
        return Question.from_bytes, (self.to_bytes(),)


class Answer:
    """What parts of the rows answer to a question.

    ``a + b`` is the answer of the parts of both, in whatever order answers are added up.
    """

    def __init__(self, core: _engine.PartsAnswer) -> None:
        self._core = core

    def __add__(self, other: Answer) -> Answer:
        if not isinstance(other, Answer):
            return NotImplemented
        return Answer(self._core.plus(other._core))

    def to_bytes(self) -> bytes:
        """Return the answer as bytes: equal for equal answers, however they were added up."""
        return self._core.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` returned; ValueError if it is not an answer."""
        return cls(_engine.PartsAnswer.from_bytes(data))

    def __reduce__(self) -> tuple[Callable[[bytes], Answer], tuple[bytes]]:
        return Answer.from_bytes, (self.to_bytes(),)


class Gathering:
    """An answer on its way, of rows that come in batches; `look` sees those that are fitted."""

    def __init__(
        self,
        question: Question,
        threads: _engine.Threads,
        look: Callable[[Table], object] | None = None,
    ) -> None:
        self._question, self._threads, self._look = question, threads, look
        self._core = question._core.gather()
        self.n_rows = 0
        """Number of rows that were added."""

    def add(self, rows: Any, part_id: int, sample_weight: Any = None, labels: Any = None) -> None:
        """Add rows of a part, in its order; parameters and errors as of `Question.answer`."""
        if isinstance(part_id, bool) or not isinstance(part_id, (int, np.integer)) or part_id < 0:
            raise ValueError(f"part_id must be an int from 0 on. Got {part_id!r} instead.")
        part_id = int(part_id)
        if issparse(rows):
            raise TypeError(
                f"Fits in parts take no sparse rows, but got a {type(rows).__name__}. Fit the "
                "estimator itself to the matrix, or to a sample of its rows."
            )
        self._core.add_part(part_id)
        n_rows = _n_rows(rows)
        self.n_rows += n_rows
        if not n_rows:
            return
        question = self._question
        is_weightless = False  # some other part may have weights
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)
            is_weightless = sample_weight.ndim == 1 and not np.any(sample_weight)
            if is_weightless and not question._core.is_first:
                return
        table, found = self._read(rows)
        n_rows = table.n_samples
        kept = np.ones(n_rows, dtype=bool)
        codes = weight = None
        if labels is not None or question.wants_labels:
            codes, noise = self._read_labels(labels, n_rows)
            kept &= ~noise
        if is_weightless:
            check_sample_weight(np.ones_like(sample_weight, dtype=np.float64), n_rows)
            kept[:] = False
        elif sample_weight is not None:
            weight = check_sample_weight(sample_weight, n_rows)
            assert weight is not None
            kept &= weight > 0
        if found is not None:
            self._core.add_columns(part_id, found)
        observed = observed_rows(table)
        if observed is not None:
            kept &= observed
        if not kept.all():
            if not kept.any():
                return
            table = take_rows(replace(table, gaps=None), kept)
            weight = None if weight is None else np.ascontiguousarray(weight[kept])
            codes = None if codes is None else codes[kept]
        if self._look is not None:
            self._look(table)
        named = None
        if codes is not None:
            names, places = distinct(codes)
            named = names.tolist(), places.astype(np.uint32)
        self._core.add(table.data, weight, named, part_id, self._threads)

    def _read_labels(
        self, labels: Any, n_rows: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the labels of rows, and the mask of noise; raises as `Question.answer`."""
        if not self._question.wants_labels:
            raise ValueError("The fit takes no labels: make it by Fit(model, labels=True).")
        if labels is None:
            raise ValueError("The fit wants the labels of the rows: give labels.")
        array = label_array(labels)
        if array.shape != (n_rows,):
            raise ValueError(
                f"labels must have the shape ({n_rows},), one for each row. Got an array of shape "
                f"{array.shape}."
            )
        array, noise = typed_labels(array, "labels")
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
            raise ValueError("The classes must fit into 64-bit integers.")
        return array, noise

    def _read(self, rows: Any) -> tuple[Table, list[FoundInRows] | None]:
        """Return rows of a part, and in the first round what they hold."""
        question = self._question
        names, n_features, name = question._names, question.n_features, question._estimator
        if question._core.is_first:  # later rows are these, or the answer is refused
            return read_first(rows, names, n_features, name, self._threads)
        fitted = question._fitted
        table = align_table(
            rows, names, n_features, estimator_name=name, names_given=True, fitted=fitted
        )
        if question._may_be_empty:
            table = replace(table, gaps=(1,) * n_features)  # some row may be empty
        return table, None

    def finish(self) -> Answer:
        """Return the answer of all rows that were added."""
        return Answer(self._core.finish())


def _n_rows(rows: Any) -> int:
    """Return the number of rows of a part, 1 if it does not say."""
    source = frame_source(rows)
    if source is not None:
        return source.count_rows()
    return len(rows) if hasattr(rows, "__len__") else 1


class Fit(Generic[Model]):
    """A fit that never sees a row: it asks, and is told what all parts answer.

    ::

        fit = tc.parts.Fit(model, feature_names=names)
        while (question := fit.question()) is not None:
            answers = [question.answer(part, part_id=i) for i, part in enumerate(parts)]
            fit.tell(reduce(add, answers))
        model = fit.result()

    The tree, its thresholds, costs and centers are those of ``model.fit`` with all rows in memory,
    in the order of the parts, to the bit.

    Parameters
    ----------
    model : ExKMC or IMM
        `reference`: centers, as an array (n_clusters x n_features) or a fitted estimator with
        ``cluster_centers_``; a row belongs to the nearest. None: k-means (scikit-learn's, ten
        starts) of up to 100,000 rows, one of each of as many runs of rows, finds them; of more rows
        than that they then move to the means of their clusters, up to three times. With
        ``criterion="kmedians"`` k-medians finds them, and they stay the medians of the rows drawn.
        Where columns hold text or booleans, centers have a coordinate for each level, as in `fit`.
    feature_names : iterable of str, default=None
        Names of the columns, in the order of the centers' columns; parts that are frames are read
        by them. None: by position.
    n_features : int, default=None
        Number of columns; to be given where neither the centers nor the names tell it.
    labels : bool, default=False
        Whether parts come with labels, the clusters to be explained: see `Question.answer`. The
        model's `reference` is then None.

    Raises
    ------
    TypeError, ValueError
        If the model is another, its parameters or centers do not suit a fit in parts, or the number
        of columns is not known.

    Warns
    -----
    UserWarning
        If moving the centers of a sample has lowered their cost by more than 1 %: the sample says
        little of the clusters then. If many rows are nearer to another cluster than to that of
        their label. If a column looks like an identifier, or has nearly all of the variance.

    See Also
    --------
    fit_batches : The same with a file or a query, on one machine.

    Notes
    -----
    Rounds: about twice the depth of the tree, and ten; up to four of these are for quartiles
    (``scale="robust"``) and as many for medians, of labels and of the tree. IMM's base takes two
    questions a level, of very many rows three, and one more. An answer takes n_features x 256 x
    n_clusters sums of some 20 bytes for every node that is looked at in the round, whatever the
    number of rows; fewer bins are taken where that would be more than 20 MB.

    Where k-means finds the clusters, a warning of columns that look like identifiers or have nearly
    all of the variance goes by the rows that it sees. With labels or centers there is none of
    these, but `fit_batches` warns of identifiers by its first 100,000 rows.
    """

    # Most bins of a column and most rows that are opened to values, for tests; None: the core's.
    _bins: ClassVar[tuple[int, int] | None] = None

    def __init__(
        self,
        model: Model,
        *,
        feature_names: Iterable[object] | None = None,
        n_features: int | None = None,
        labels: bool = False,
    ) -> None:
        centers = centers_of(model)
        if labels and model.reference is not None:
            raise ValueError(
                "The parts bring labels, and the model has a reference: give one of them."
            )
        given = feature_names
        if not (given is None or isinstance(given, Sized)):
            given = list(given)
        d = _number_of_columns(centers, given, n_features)
        names = None if given is None else check_feature_names(given, d, None)
        self._table = table = columns_alone(d, names)
        self._centers = centers
        self._start(model)
        limits = limits_of(model)
        k = (model.n_clusters or DEFAULT_N_CLUSTERS) if centers is None else len(centers)
        if not labels:
            limits.check(k, centers is None and model.n_clusters is None)
        most = limits.max_leaves
        asked = {"names": table.feature_names, "estimator": type(model).__name__}
        scale = model.scale if isinstance(model.scale, str) else self._given_scale(model.scale)
        self._core = _engine.PartsFit(
            json.dumps(asked).encode(),
            d,
            k,
            centers,
            scale,
            manhattan=model.criterion == "kmedians",
            with_labels=labels,
            cut_score=cut_score_of(model),
            interval=getattr(model, "cuts", "threshold") == "interval",
            max_leaves=0 if most is None else _NO_LIMIT if most == math.inf else int(most),
            max_depth=limits.max_depth,
            min_samples_leaf=limits.min_samples_leaf,
            bins=self._bins,
        )

    def _start(self, model: Model) -> None:
        self._model = model
        self._are_distinct = False
        self.threads = _engine.Threads(effective_n_jobs(model.n_jobs))
        self._started = time.perf_counter()

    def _given_scale(self, scale: Any) -> FloatArray:
        if scale is None:
            return np.ones(self._table.n_features)
        return given_scale(scale, self._table.n_features, self._table.feature_names)

    @property
    def n_rounds(self) -> int:
        """Number of questions answered."""
        return self._core.n_rounds

    @property
    def n_rows(self) -> int:
        """Number of rows; 0 before the first answer."""
        return self._core.n_rows

    def question(self) -> Question | None:
        """Return the question for all parts; None if the fit is over."""
        self._prepare()
        core = self._core.question()
        return None if core is None else Question(core)

    def _prepare(self) -> None:
        """Do what the fit needs before its next question."""
        self._know_columns()
        self._check_classes()
        finder = ReferenceFinder(
            self._core, self._model, self._table, self._centers, self.threads, self._tell()
        )
        finder.find()
        finder.place()

    def _know_columns(self) -> None:
        """Decide what the columns hold, once all parts have said what they found.

        Raises TypeError if they do not go together, ValueError if a column has too many levels or
        the reference has other columns.
        """
        found = self._core.found_columns()
        if found is None:
            return
        facts = [FoundInAll(*column) for column in found]
        columns = columns_of_all(facts, self._table.feature_names)
        held = [
            (kind, levels, column.n_missing > 0)
            for (kind, levels), column in zip(columns, facts, strict=True)
        ]
        table = table_of(self._table, held)
        if self._centers is not None:
            read_centers(self._centers, table, what_of(self._model.reference))
        self._core.set_columns(columns)
        self._table = table

    def _check_classes(self) -> None:
        """Raise ValueError if the labels of the parts do not suit the model's parameters."""
        classes, model = self._core.classes, self._model
        if classes is not None:
            ReferenceInput(classes=classes).check_n_clusters(model.n_clusters)
            limits_of(model).check(len(classes), False)
        centers = self._core.base_centers()
        if centers is not None and not self._are_distinct:
            check_distinct(centers[0] + centers[1], classes or list(range(len(centers[0]))))
            self._are_distinct = True

    def tell(self, answer: Answer) -> None:
        """Take the answers of all parts, added up.

        Parameters
        ----------
        answer : Answer
            The sum.

        Raises
        ------
        ValueError
            If a part is missing, new, or has other rows than in the first round; the answer is to
            another question; there are no rows; a column has more than 255 levels; centers do not
            suit the columns; or sums leave the range of float64.
        TypeError
            If a column does not hold the same in all parts; if `answer` is not an `Answer`.
        """
        if not isinstance(answer, Answer):
            raise TypeError(
                f"tell takes an Answer, the sum of those of all parts. Got {type(answer).__name__} "
                "instead."
            )
        self._core.tell(answer._core, self.threads)
        self._know_columns()
        self._after_round()

    def tell_gathered(self, gathering: Gathering) -> None:
        """Take the answer of all parts as it was gathered, without a copy of it."""
        self._core.tell_gathered(gathering._core, self.threads)
        self._know_columns()
        self._after_round()

    def _after_round(self) -> None:
        if (tell := self._tell()) is not None:
            tell(f"round {self.n_rounds} of questions")

    def _tell(self) -> Callable[[str], None] | None:
        """Return the function that prints a line of progress; None without `verbose`."""
        name = type(self._model).__name__
        return progress_text(self._model.verbose, name, self.n_rows, self._started)

    def to_bytes(self) -> bytes:
        """Return a checkpoint: all that is known, of a version of its own.

        Raises
        ------
        ValueError
            If the fit is over.
        """
        self._prepare()
        return self._core.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, model: Model) -> Self:
        """Go on from a checkpoint.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        model : ExKMC or IMM
            The estimator to be fitted, with the parameters that the fit began with.

        Raises
        ------
        ValueError
            If `data` is not a checkpoint, or that of other parameters.
        """
        core = _engine.PartsFit.from_bytes(data)
        _check_read(check_columns, core.columns, "a checkpoint of a fit")
        names = _read_names(core.names, core.n_features)[0]
        fit = cls(model, feature_names=names, n_features=core.n_features, labels=core.with_labels)
        if fit._core.id != core.id:
            raise ValueError(
                "The checkpoint is that of a fit with other parameters, centers or columns. Give "
                "the estimator that it began with."
            )
        fit._core = core
        if columns := core.columns:
            fit._table = table_of(fit._table, columns)
        return fit

    def _leaf_means(self, found: Any, tree: ClusterTree) -> LeafMeans:
        """Return the means of the leaves, or of the clusters."""
        groups, scale = _engine.GroupMeans(*found.means), found.scale
        if self._table.levels is None:
            return LeafMeans(found.leaves, groups, scale)
        encoding = Encoding.of(self._table, np.zeros_like(scale), scale)
        near = found.centers[tree.leaf_clusters[found.leaves]]

        def weights_of(f: int) -> FloatArray:
            weights: FloatArray = found.levels[f]
            return weights.reshape(len(near), encoding.first[f + 1] - encoding.first[f])

        groups = means_with_levels(encoding, groups, near, weights_of)
        return LeafMeans(found.leaves, groups, encoding.scale)

    def result(self) -> Model:
        """Return the model, fitted; it has no `labels_`, which `predict` gives for any rows.

        Raises
        ------
        ValueError
            If the fit is not over.
        """
        found = self._core.result()
        if found is None:
            raise ValueError("The fit is not over: tell it the answer to question() first.")
        model, k = self._model, len(found.centers)
        grown = GrownTree(
            tests_of(found),
            None,
            found.n_node_samples,
            found.weighted_n_node_samples,
            found.label_weight,
            found.cost,
            found.cluster,
            np.empty(0, dtype=np.uint32),
            found.base_cluster,
            found.base_cost,
            found.mistakes,
            int((found.base_cluster >= 0).sum()),
            beside=(found.below, found.above, found.below_lower, found.above_lower),
        )
        classes = self._core.classes or list(range(k))
        if self._core.classes is not None:
            warn_of_misfit(found.misfit, stacklevel=level_of_user())
        base_centers = None
        if cut_score_of(model) is not None:
            encoding = Encoding.of(self._table, np.zeros_like(found.scale), found.scale)
            base_centers = encoding.numbers(found.centers)
        tree = grown.build(classes, self._table, base_centers=base_centers)
        path = grown.cost_path(found.minimum)
        warn_of_lost(
            k,
            tree.filled_clusters,
            np.flatnonzero(found.label_rows),
            model._lost_advice,
            stacklevel=level_of_user() + 1,
        )
        means = None if found.means is None else self._leaf_means(found, tree)
        training = TrainingState(None, means, found.centers)
        model._set_tree(tree, False)
        model.scale_ = found.scale
        spread = found.reference_spread  # added up as in memory
        model.reference_inertia_ = float(spread.sum()) if len(spread) else found.reference_inertia
        model._cost_path = path
        model.__dict__.pop("reference_labels_", None)
        model._is_fitted_in_parts = True
        model._had_label_column = self._core.classes is not None
        model._set_training(training)
        if found.medians is not None:
            model.cluster_centers_, costs = found.medians
            model.inertia_ = float(sum(costs.tolist()))  # added up as in memory
        _warn_of_sample(found.cost_of_sample, found.minimum)
        if (tell := self._tell()) is not None:
            tell(f"{tree.n_leaves} leaves, surrogate cost {path[-1]:.6g}")
        return model


def _number_of_columns(centers: FloatArray | None, names: Sized | None, given: int | None) -> int:
    """Return the number of columns; raise ValueError if it is not known or not one."""
    if given is not None and (isinstance(given, bool) or not isinstance(given, (int, np.integer))):
        raise TypeError(f"n_features must be an int. Got {given!r} instead.")
    width = None if centers is None else centers.shape[1]
    known = width if names is None else len(names)
    if known is None:
        known = given
    if known is None:
        raise ValueError(
            "The number of columns is not known: give n_features, feature_names, or centers as the "
            "model's reference."
        )
    if given not in (None, known):
        whose = "feature_names has" if centers is None else "the reference has centers of"
        raise ValueError(f"n_features={given}, but {whose} {format_count(known, 'column')}.")
    if known < 1:
        raise ValueError(f"n_features={known}: at least one column is needed.")
    return int(known)


def _warn_of_sample(before: float | None, cost: float) -> None:
    """Warn if the centers of a sample cost much more than those they have moved to."""
    if before is not None and before - cost > _MAX_GAIN * before:
        warn_user(
            f"The clusters of a sample cost {before / cost - 1:.1%} more than what they have become"
            " by moving to the means of all their rows: the sample says little of the clusters. "
            "Give centers of your own as reference=, or try another random_state."
        )
