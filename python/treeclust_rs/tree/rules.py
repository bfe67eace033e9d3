"""The table of rules: a polars frame that is printed whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from .._util.words import printable

# Length of a text.
_EVERYTHING = 2**31 - 1
# Rows of a table in a notebook.
_MAX_HTML_ROWS = 200


class RuleTable:
    """One rule per row in a polars frame, of which print and notebooks show every word.

    It has the attributes and methods of its `frame`: ``rules["rule"]``, ``rules.filter(...)``,
    ``rules.write_csv(path)`` and so on. What takes a frame and nothing else, such as ``pl.concat``,
    takes ``rules.frame``; what reads Arrow streams takes either.

    Parameters
    ----------
    frame : polars.DataFrame
        The rules.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __getattr__(self, name: str) -> Any:
        # Python's own protocols, such as copying, are those of this class.
        if name == "frame" or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.frame, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.frame)})

    def __getitem__(self, key: Any) -> Any:
        return self.frame[key]

    def __len__(self) -> int:
        return self.frame.height

    def __iter__(self) -> Iterator[pl.Series]:
        return iter(self.frame)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    def equals(self, other: RuleTable | pl.DataFrame) -> bool:
        """Return whether two tables hold the same."""
        return self.frame.equals(other.frame if isinstance(other, RuleTable) else other)

    def __repr__(self) -> str:
        with self._whole(rows=-1):
            return str(self._shown)

    def _repr_html_(self) -> str:
        with self._whole(rows=_MAX_HTML_ROWS):
            return self._shown._repr_html_()

    def _whole(self, rows: int) -> pl.Config:
        return pl.Config(fmt_str_lengths=_EVERYTHING, tbl_rows=rows, tbl_cols=-1)

    @property
    def _shown(self) -> pl.DataFrame:
        """The frame, with control characters in labels escaped."""
        texts = [column for column in self.frame if column.dtype == pl.String]
        return self.frame.with_columns(
            pl.Series(column.name, [text and printable(text) for text in column], dtype=pl.String)
            for column in texts
        )
