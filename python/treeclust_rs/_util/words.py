"""Words for numbers and names, as texts, messages and pictures write them."""

import math
import unicodedata
from collections.abc import Sequence

MAX_LISTED = 5
"""Messages list at most so many names, and count the others."""


def format_number(number: float) -> str:
    """Return a float as text so that reading it back gives the same float; 5.0 becomes 5."""
    if math.isfinite(number) and number == int(number) and abs(number) < 1e16:
        return str(int(number))
    return repr(float(number))


def format_count(number: int, word: str, words: str | None = None) -> str:
    """Return a number with its noun: ``1 row``, ``1,200 rows``, ``2 leaves``."""
    return f"{number:,} {word if number == 1 else words or f'{word}s'}"


def format_short(number: float) -> str:
    """Return a float as text with three digits, or as a whole number."""
    if 1000 <= round(abs(number)) < 1_000_000_000:
        return f"{number:.0f}"
    return f"{number:.3g}"


def printable(text: object) -> str:
    """Return a name or a label with control characters and line breaks escaped."""
    characters = str(text)
    if characters.isprintable():
        return characters
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        else character
        for character in characters
    )


def listed(parts: Sequence[str], what: str = "", separator: str = ", ") -> str:
    """Join the first parts and count the others: ``a, b, c, d, e and 2 more columns``."""
    shown = separator.join(parts[:MAX_LISTED])
    more = len(parts) - MAX_LISTED
    if more <= 0:
        return shown
    return f"{shown} and {format_count(more, f'more {what}') if what else f'{more} more'}"


def column_name(names: Sequence[str] | None, column: int) -> str:
    """Return the name a column is shown by; x0, x1, ... without names."""
    return f"x{column}" if names is None else printable(names[column])


def quoted_column(names: Sequence[str] | None, column: int) -> str:
    """Return a column's name in quotes, for messages; x0, x1, ... without names."""
    return f"x{column}" if names is None else repr(names[column])
