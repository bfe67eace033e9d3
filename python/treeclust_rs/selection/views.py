"""The result of a search as text and in notebooks."""

from __future__ import annotations

import html

import polars as pl

from ..tree import html_table


def table_text(head: str, frame: pl.DataFrame) -> str:
    """Return a line and all rows of a frame below it, names and texts in one piece."""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=10_000, fmt_str_lengths=200):
        return f"{head}\n{frame}"


def frame_html(head: str, frame: pl.DataFrame, chosen: int | None, note: str) -> str:
    """Return a frame of numbers and names as an HTML table, the row `chosen` in bold."""
    rows = [[_cell(value) for value in row] for row in frame.iter_rows()]
    if chosen is not None:
        rows[chosen] = [f"<b>{cell}</b>" for cell in rows[chosen]]
    titles = [(html.escape(name), False) for name in frame.columns]
    return html_table(head, titles, rows, [note])


def _cell(value: float | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return html.escape(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
