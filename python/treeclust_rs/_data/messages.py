"""Checks of a table's shape, and the text about missing cells."""

from __future__ import annotations

from .._util.words import listed


def check_shape(shape: tuple[int, ...], estimator_name: str) -> None:
    """Raise ValueError if there are no rows or no columns."""
    for count, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required by "
                f"{estimator_name}."
            )


def check_width(n_given: int, n_features: int, estimator_name: str) -> None:
    """Raise ValueError if there are more or fewer columns than the fit had."""
    if n_given != n_features:
        raise ValueError(
            f"X has {n_given} features, but {estimator_name} is expecting {n_features} features as "
            f"input."
        )


def count_words(*counts: tuple[int, str]) -> str:
    """Join the counts that are not 0: ``2 NaN and 1 inf``."""
    return " and ".join(f"{count} {word}" for count, word in counts if count)


def missing_message(kinds: str, problems: list[tuple[str, str, int]]) -> str:
    """Return the message that names columns, from (column, counts, first row)."""
    parts = [f"{column} has {counts}, the first in row {row}" for column, counts, row in problems]
    return (
        f"Input X contains {kinds}: {listed(parts, 'column', '; ')} (rows count from 0). "
        f"Fill these cells, or drop their rows or columns."
    )
