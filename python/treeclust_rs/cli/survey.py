"""What the columns to fit hold of a table that is read batch by batch: what the whole table tells.

Two readings in advance: one looks at text and labels, one at gaps. In memory are counts, the words
for first cells, and of each column of text the hashes of its different texts up to a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from .._base import ReadAs
from .._data.number_text import NumbersSoFar, has_sums
from .._util import ReadingProgress
from .._util.arrays import NOISE
from .cells import Form, are_missing, as_levels, as_numbers, forms_of_all, in_form
from .features import Gaps
from .reading import Source, are_whole, check_labels, is_text_column, no_labels, no_numbers
from .streaming import Batch, Stream
from .text_facts import Different, LevelFacts, TextFacts, most_different

# Up to how many clusters of a reference are counted: a fit in batches takes fewer.
_MOST_LABELS = 1 << 13


class Survey:
    """What the columns to fit of a table hold.

    Parameters
    ----------
    stream : Stream
        The table. It is told how its cells are to be read.
    columns : sequence of str
        The columns to fit.
    numbers, levels : sequence of str
        Those of ``--numbers`` and ``--levels``.
    reference : str or None
        The column of labels.
    progress : ReadingProgress
        Tells how far the readings are.
    """

    def __init__(
        self,
        stream: Stream,
        columns: Sequence[str],
        numbers: Sequence[str],
        levels: Sequence[str],
        reference: str | None,
        progress: ReadingProgress,
    ) -> None:
        self._stream, self._columns, self._progress = stream, list(columns), progress
        in_text_file, comma = stream.text is not None, stream.head().has_decimal_comma
        texts = [name for name in columns if is_text_column(pl.Series(dtype=stream.schema[name]))]
        most = most_different(len(texts))
        self._numbers = {name: NumbersSoFar(name, comma) for name in numbers if name in texts}
        self._units = dict.fromkeys(numbers, "")
        self._levels = {
            name: LevelFacts(name, decimal_comma=comma, most=most)
            for name in columns
            if name in levels
        }
        self._texts = {
            name: TextFacts(name, in_text_file=in_text_file, decimal_comma=comma, most=most)
            for name in texts
            if name not in self._numbers and name not in self._levels
        }
        self.sums: list[str] = []
        """Those of ``--numbers`` that have sums such as 88+2."""
        self.labels = None if reference is None else LabelFacts(reference, stream)

    def look(self) -> None:
        """Read text and labels, if there are any, and tell the stream what they are."""
        looked_at = [*self._numbers, *self._levels, *self._texts]
        if self.labels is not None:
            looked_at.append(self.labels.name)
        if not looked_at:
            return
        for batch in self._batches(looked_at, "text read"):
            self._add(batch)
        self._stream.forms = {name: facts.forms[0] for name, facts in self._texts.items()}
        if self.labels is not None:
            self._stream.forms[self.labels.name] = self.labels.form
        self._stream.codes_are_numbers = {
            name: facts.are_numbers for name, facts in self._levels.items()
        }

    def _batches(self, columns: Sequence[str], what: str) -> Iterator[Batch]:
        batches = self._stream.batches(columns)
        return self._progress.follow(batches, what, lambda batch: batch.frame.height)

    def _add(self, batch: Source) -> None:
        for name, numbers in self._numbers.items():
            cells = batch.frame[name].cast(pl.String)
            numbers.add_cells(cells, batch.row)
            if name not in self.sums and has_sums(cells):
                self.sums.append(name)
        for name, levels in self._levels.items():
            levels.add(batch.frame[name])
        for name, text in self._texts.items():
            text.add(batch, batch.frame[name].cast(pl.String))
        if self.labels is not None:
            self.labels.add(batch, batch.frame[self.labels.name])

    def read_as(self) -> ReadAs:
        """Return how columns are read that the user chose to read so.

        Raises DataError for cells of ``--numbers`` that are no numbers, as `Source.read_numbers`.
        """
        units = {}
        for name in self._units:
            if name in self._numbers:
                if complaint := self._numbers[name].complaint():
                    advice = self._stream.head().mark_advice(self._numbers[name].first_odd())
                    raise no_numbers(self._stream.name, complaint, name, advice)
                units[name] = self._numbers[name].unit()
            else:
                units[name] = self._stream.head().read_numbers(name).unit
        return ReadAs(units, tuple(self._levels))

    def gaps(self, read_as: ReadAs, chosen_by: str) -> Gaps:
        """Return where cells are missing; raises DataError for infinite cells."""
        gaps = Gaps()
        for batch in self._batches(self._columns, "gaps counted"):
            gaps.add(batch.read(self._columns, read_as), batch.row)
        if gaps.infinite:
            raise self._stream.head().has_cells(gaps.infinite, len(self._columns), chosen_by)
        return gaps

    def text_facts(self) -> list[TextFacts | LevelFacts]:
        """Return what there is to know of the columns that are taken as text, in their order."""
        found: list[TextFacts | LevelFacts] = []
        for name in self._columns:
            if name in self._levels:
                found.append(self._levels[name])
            elif name in self._texts and self._stream.forms[name] == "levels":
                found.append(self._texts[name])
        return found


class LabelFacts:
    """What the cells are of a column of labels."""

    def __init__(self, name: str, stream: Stream) -> None:
        self.name = name
        self._dtype, self._comma = stream.schema[name], stream.head().has_decimal_comma
        self._forms: list[Form] | None = ["integers", "numbers"] if stream.text else None
        self._are_whole = True
        self._different = Different(_MOST_LABELS, _MOST_LABELS)
        # How many cells are empty, and the words for the row of the first: of text and of numbers.
        self._empty: dict[bool, tuple[int, str]] = {False: (0, ""), True: (0, "")}

    def add(self, source: Source, cells: pl.Series) -> None:
        """Look at the labels of more rows."""
        texts, empty = cells, cells.is_null()
        missing = empty
        if self._forms is not None:
            self._forms = forms_of_all(cells, self._forms, self._comma)
            texts, missing = as_levels(cells), are_missing(cells)
            empty = texts.is_null()
        for is_numeric, mask in ((False, empty), (True, missing)):
            n, first = self._empty[is_numeric]
            if mask.any():
                first = first or source.row(mask.arg_max() or 0)
                self._empty[is_numeric] = n + int(mask.sum()), first
        if self._forms is None:
            self._are_whole &= not cells.dtype.is_float() or are_whole(cells)
        elif self._forms == ["numbers"]:
            self._are_whole &= are_whole(in_form(cells, "numbers", self._comma)[0].drop_nulls())
        self._different.add(texts.drop_nulls().cast(pl.String).unique())

    @property
    def form(self) -> Form:
        """What they are; whatever for columns that have a type."""
        return self._forms[0] if self._forms else "levels"

    @property
    def _are_numeric(self) -> bool:
        return self._dtype.is_numeric() if self._forms is None else bool(self._forms)

    def check(self) -> None:
        """Raise DataError for labels that are empty, or numbers that are not whole."""
        n_empty, first = self._empty[self._are_numeric]
        check_labels(self.name, n_empty, first)
        if self._are_numeric and not self._are_whole:
            raise no_labels(self.name)

    def n_clusters(self) -> int | None:
        """Return the number of clusters, without noise; None: so many that they are not counted."""
        if self._different.texts is None:
            return None
        if not self._are_numeric:
            return len(set(self._different.texts) - {str(NOISE)})
        comma = self._comma and self._forms is not None
        numbers = as_numbers(pl.Series(self._different.texts, dtype=pl.String), comma)
        return len(set(numbers.drop_nulls().to_list()) - {NOISE})
