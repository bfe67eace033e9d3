"""Fits of the rows of a Spark DataFrame, where they are."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from .engines import BesideColumns, answer_of_part, converse
from .protocol import Answer, Fit, Model, Question


def fit(
    model: Model, sdf: Any, *, sample_weight: str | None = None, reference: str | None = None
) -> Model:
    """Fit a model to the rows of a Spark DataFrame, partition by partition.

    The tree is that of ``model.fit`` with all rows in memory, in the order of the partitions, to
    the bit. The partitions answer every question where they are, in tasks of `mapInArrow`; what is
    sent is the question and the sums, which `treeReduce` adds up. A task that is lost is Spark's
    business: it is run again. No barrier: there may be more partitions than slots.

    Parameters
    ----------
    model : ExKMC or IMM
        `reference`: centers, or None: see `Fit`.
    sdf : pyspark.sql.DataFrame
        Columns of all that ``model.fit`` takes: numbers, text, booleans, times; cells may be
        missing. In classic Spark (not Spark Connect). It is read once in
        every round, and must give the same partitions each time, their rows in the same order: read
        files, or `persist` it after a shuffle (join, groupBy, repartition). Other rows are refused.
    sample_weight : str, default=None
        The column of the DataFrame that holds the weights of the rows; it is not fitted to.
    reference : str, default=None
        The column that holds the clusters to be explained: see `fit_batches`.

    Returns
    -------
    ExKMC or IMM
        The model, fitted. It has no `labels_`: ``nw.from_native(sdf).with_columns(
        model.to_narwhals()).to_native()`` adds a column ``cluster`` (``import narwhals as nw``).

    Raises
    ------
    TypeError
        If `sdf` is no Spark DataFrame, or a column does not hold the same in all its parts.
    ValueError
        If the second reading gives other rows than the first; as `Fit` and `Question.answer`.

    See Also
    --------
    treeclust_rs.parts.fit_batches : On one machine, from files.
    """
    from pyspark.sql import DataFrame  # the extra "spark"

    if not isinstance(sdf, DataFrame):
        raise TypeError(
            f"sdf must be a Spark DataFrame. Got {type(sdf).__name__} instead: "
            "tc.parts.fit_batches takes other rows."
        )
    beside = BesideColumns(sample_weight, reference)
    names = beside.others(sdf.columns)

    def ask(question: Question) -> Answer:
        def answer(batches: Iterable[Any]) -> Iterator[Any]:
            return _answer(question, batches, beside)

        answers = sdf.mapInArrow(answer, "answer binary").rdd
        if not answers.getNumPartitions():  # a query that Spark knows to be empty
            raise ValueError("The DataFrame has no rows.")
        total: Answer | Exception = answers.map(_read).treeReduce(_add)
        if isinstance(total, Exception):
            raise total
        return total

    return converse(Fit(model, feature_names=names, labels=reference is not None), ask)


def _answer(question: Question, batches: Iterable[Any], beside: BesideColumns) -> Iterator[Any]:
    """Yield one row with the answer of a partition, or the error that the user's rows cause.

    Spark would run a task that raises several times, and raise an error of its own.
    """
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None  # this runs in a task
    part_id = context.partitionId()
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    outcome: Answer | Exception
    try:
        outcome = answer_of_part(question, tables, part_id, beside)
    except (ValueError, TypeError) as error:
        outcome = error
    yield pa.RecordBatch.from_pydict({"answer": [pickle.dumps(outcome)]})


def _read(row: Any) -> Any:
    return pickle.loads(row.answer)


def _add(one: Any, other: Any) -> Any:
    """Return the sum of two answers, or the error that one of them is."""
    for outcome in (one, other):
        if isinstance(outcome, Exception):
            return outcome
    return one + other
