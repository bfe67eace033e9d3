"""What the drivers of engines share: columns, the answer of a partition, the tree of sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from .. import _engine
from .._util import listed
from .protocol import Answer, Fit, Gathering, Model, Question

# Answers that one task adds up.
_FAN_IN = 8

Future = TypeVar("Future")


@dataclass(frozen=True)
class BesideColumns:
    """The columns of frames that are not fitted to, by the parameters that name them."""

    sample_weight: str | None = None
    reference: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [name for name in (self.sample_weight, self.reference) if name is not None]

    def others(self, names: Iterable[str] | None) -> list[str] | None:
        """Return the names of the columns that are fitted to; None: the columns have no names.

        Raises ValueError if one of the columns is not there, or both are one.
        """
        known = None if names is None else list(names)
        for parameter in ("sample_weight", "reference"):
            name = getattr(self, parameter)
            if name is not None and name not in (known or []):
                have = "no names" if known is None else listed([repr(n) for n in known], "column")
                raise ValueError(
                    f"{parameter}={name!r} is not a column of the rows, which have {have}."
                )
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"sample_weight and reference are one column, {self.reference!r}.")
        return None if known is None else [name for name in known if name not in self.names]

    def split(self, batch: Any, part_id: int) -> tuple[Any, int, Any, Any]:
        """Return the arguments of `Gathering.add` for a frame of polars, pandas or pyarrow."""
        if not self.names:
            return batch, part_id, None, None
        weight, labels = (
            None if name is None else np.asarray(batch[name])
            for name in (self.sample_weight, self.reference)
        )
        return _without(batch, self.names), part_id, weight, labels


def answer_of_part(
    question: Question, batches: Iterable[Any], part_id: int, beside: BesideColumns
) -> Answer:
    """Return the answer of a partition, on one thread: the engine runs a task in each of its slots.

    `batches` are frames of pandas or tables of pyarrow; without columns beside the others, arrays
    too.
    """
    gathering = Gathering(question, _engine.Threads(1))
    gathering.add([], part_id)  # a partition without batches must answer, too
    for batch in batches:
        if not len(batch):  # its columns may be lost
            continue
        gathering.add(*beside.split(batch, part_id))
    return gathering.finish()


def _without(frame: Any, names: list[str]) -> Any:
    """Return a frame of polars or pandas, or a table of pyarrow, without some columns."""
    if hasattr(frame, "iloc"):
        return frame.drop(columns=names)
    return frame.drop_columns(names) if hasattr(frame, "drop_columns") else frame.drop(names)


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


def converse(fit: Fit[Model], ask: Callable[[Question], Answer]) -> Model:
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
