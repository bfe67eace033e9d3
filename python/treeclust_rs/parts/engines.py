"""What the drivers of engines share: columns, the answer of a partition, the tree of sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any, TypeVar

from .. import _engine
from ..estimators.exkmc import ExKMC
from .protocol import Answer, Fit, Gathering, Question

# Answers that one task adds up.
_FAN_IN = 8

Future = TypeVar("Future")


def feature_columns(names: Iterable[str] | None, **beside: str | None) -> list[str] | None:
    """Return the names of the columns that are fitted to; None: the columns have no names.

    `beside` holds parameters that name a column which is not fitted to, such as `sample_weight`.
    """
    known = None if names is None else list(names)
    for parameter, name in beside.items():
        if name is not None and name not in (known or []):
            raise ValueError(f"{parameter}={name!r} is not a column of the rows.")
    return None if known is None else [name for name in known if name not in beside.values()]


def answer_of_part(
    question: Question, batches: Iterable[Any], part_id: int, sample_weight: str | None
) -> Answer:
    """Return the answer of a partition, on one thread: the engine runs a task in each of its slots.

    `batches` are frames of pandas or tables of pyarrow; where there are no weights, arrays too.
    """
    gathering = Gathering(question, _engine.Threads(1))
    gathering.add([], part_id)  # a partition without batches must answer, too
    for batch in batches:
        if not len(batch):  # its columns may be lost
            continue
        if sample_weight is None:
            gathering.add(batch, part_id)
        else:
            weight = batch[sample_weight].to_numpy()
            gathering.add(batch.drop(columns=sample_weight), part_id, weight)
    return gathering.finish()


def add_answers(*answers: Answer) -> Answer:
    """Return the sum of some answers."""
    return reduce(add, answers)


def tree_sum(answers: Sequence[Future], add_up: Callable[..., Future]) -> Future:
    """Return the sum of futures; `add_up` starts a task that adds some of them."""
    while len(answers) > 1:
        answers = [
            add_up(*answers[start : start + _FAN_IN]) for start in range(0, len(answers), _FAN_IN)
        ]
    return answers[0]


def converse(fit: Fit, ask: Callable[[Question], Answer]) -> ExKMC:
    """Lead a fit to its end; `ask` returns the sum of the answers of all partitions."""
    while (question := fit.question()) is not None:
        answer = ask(question)
        try:
            fit.tell(answer)
        except ValueError as error:
            # sink_parquet is polars' word.
            advice = "Persist the rows, or write them to files and read these."
            text = str(error).replace("Write its result to a file first, by sink_parquet.", advice)
            raise ValueError(text) from None
    return fit.result()
