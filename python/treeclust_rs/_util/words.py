"""Words for numbers and names, as texts, messages and pictures write them."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

MAX_LISTED = 5
"""Messages list at most so many names, and count the others."""

MAX_NAME_LENGTH = 60
"""Longer names of columns and clusters are shortened in texts."""

# Invisible characters that reorder, join or break the text beside them: the marks, embeddings,
# overrides and isolates of bidirectional text, soft hyphens and spaces without width. Joiners
# (U+200C, U+200D) stay: some scripts need them.
_INVISIBLE = frozenset(
    "\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2066\u2067\u2068\u2069\ufeff"
)


def format_number(number: float) -> str:
    """Return a float as text so that reading it back gives the same float; 5.0 becomes 5."""
    if math.isfinite(number) and number == int(number) and abs(number) < 1e16:
        return str(int(number))
    return repr(float(number))


def format_count(number: int, word: str, words: str | None = None) -> str:
    """Return a number with its noun: ``1 row``, ``1,200 rows``, ``2 leaves``."""
    return f"{number:,} {word if number == 1 else words or f'{word}s'}"


def format_bytes(size: int) -> str:
    """Return a size with three digits in the largest unit that makes it at least 1."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / 2**power:,.3g} {unit}" if size < 2**1000 else f"inf {unit}"
    return format_count(size, "byte")


def format_short(number: float) -> str:
    """Return a float as text with three digits, or as a whole number."""
    if 999.5 <= abs(number) < 999_999_999.5:
        return f"{number:.0f}"
    return f"{number:.3g}"


def printable(text: object) -> str:
    """Return a name or a label with control characters, bidirectional ones too, escaped."""
    characters = str(text)
    if characters.isprintable():
        return characters
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if character in _INVISIBLE or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        else character
        for character in characters
    )


def format_share(share: float) -> str:
    """Return a share in per cent; 0 % and 100 % stand for exactly 0 and 1."""
    if share <= 0 or share >= 1:
        return f"{100 * share:.0f} %"
    percent = f"{100 * share:.1f}"
    if percent == "0.0":
        return "<0.1 %"
    return ">99.9 %" if percent == "100.0" else f"{percent} %"


def listed(parts: Sequence[str], what: str = "", separator: str = ", ") -> str:
    """Join the first parts and count the others: ``a, b, c, d, e and 2 more columns``."""
    shown = separator.join(parts[:MAX_LISTED])
    more = len(parts) - MAX_LISTED
    if more <= 0:
        return shown
    return f"{shown} and {format_count(more, f'more {what}') if what else f'{more} more'}"


def column_name(names: Sequence[object] | None, column: int) -> str:
    """Return the name a column is shown by; x0, x1, ... without names."""
    return f"x{column}" if names is None else printable(names[column])


def real_name(names: Sequence[str] | None, column: int) -> str:
    """Return the name of a column as frames hold it; x0, x1, ... without names."""
    return f"x{column}" if names is None else names[column]


# Names that a rule would not show to be names: empty ones, numbers, words of rules, parts of tests.
_MISREAD = re.compile(
    r"\s*|\s.*|.*\s|[-+−]?[\d.,]+|and|or|always|never|.* (and|or|<|<=|=|>=|>) .*"
    r"|not( .*)?|.* (not )?in \{.*|.* is (not )?missing"
)
# Levels that a set, or the text of a row, would not show to be levels.
_MISREAD_LEVEL = re.compile(r'\s*|\s.*|.*\s|.*[,{}"].*|.* (and|or|<|<=|=|>=|>) .*|missing')


def tested_name(names: Sequence[object] | None, column: int) -> str:
    """Return the name of a column as tests write it: in quotes if it reads as another thing."""
    name = column_name(names, column)
    return f'"{name}"' if _MISREAD.fullmatch(name) else name


def tested_level(level: str) -> str:
    """Return a level as tests write it: in quotes if it reads as another thing, or as several.

    What is escaped is in quotes too: outside of them a backslash is one.
    """
    if printable(level) == level and not _MISREAD_LEVEL.fullmatch(level):
        return level
    return '"' + printable(level.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def shorten(text: str, max_length: int) -> str:
    """Return the text, or its front and its end with … between them."""
    if len(text) <= max_length:
        return text
    n_kept = max(max_length - 1, 2)
    n_front = (2 * n_kept + 2) // 3
    return f"{text[:n_front]}…{text[len(text) - (n_kept - n_front) :]}"


def short_names(
    names: Sequence[object] | None, which: Iterable[int], max_length: int = MAX_NAME_LENGTH
) -> dict[int, str]:
    """Return by number what some columns, or clusters, are called in texts.

    Names longer than `max_length` are shortened; those that then look alike end with their number.
    """
    whole = {number: column_name(names, number) for number in which}
    short = {number: shorten(name, max_length) for number, name in whole.items()}
    count = Counter(short.values())
    for number, name in short.items():
        if count[name] > 1 and name != whole[number]:
            mark = f" [{number}]"
            short[number] = shorten(whole[number], max_length - len(mark)) + mark
    return short


def check_unicode(names: Iterable[object], what: str) -> None:
    """Raise ValueError if a name holds half of a surrogate pair, which no file can hold.

    `what` begins the message, for instance "X has a column".
    """
    names = list(names)
    if _is_unicode("\n".join(map(str, names))):
        return
    name = next(name for name in names if not _is_unicode(str(name)))
    raise ValueError(
        f"{what} named {name!r}, which is not valid Unicode (a lone surrogate). Rename it."
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_column_names(names: Iterable[object], n_columns: int, what: str) -> list[str]:
    """Return names of columns as a list of str, one per column, distinct and valid Unicode.

    `what` begins the messages about a single name, for instance "X has a column".
    """
    given = list(names)
    for place, name in enumerate(given):
        if not isinstance(name, str):
            raise ValueError(f"The feature_names must be strings. Entry {place} is {name!r}.")
    checked = [str(name) for name in given]
    if len(checked) != n_columns:
        n_names, features = f"{len(checked):,}", format_count(n_columns, "feature")
        raise ValueError(f"There are {n_names} feature_names for {features}: give one a column.")
    if len(set(checked)) != len(checked):
        twice = Counter(checked).most_common(1)[0][0]
        raise ValueError(f"The feature_names must differ from each other. {twice!r} is repeated.")
    check_unicode(checked, what)
    return checked


def quoted_column(names: Sequence[str] | None, column: int) -> str:
    """Return a column's name in quotes, for messages; x0, x1, ... without names."""
    return f"x{column}" if names is None else repr(names[column])
