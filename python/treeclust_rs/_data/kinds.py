"""What a column of a frame holds, by its type alone: numbers, levels, flags or times."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import polars as pl

from .times import zone_name, zone_of

Kind = str
"""number, levels, flag, date, datetime[zone or nothing], or duration."""

_WORDS = {
    "number": "numbers",
    "levels": "text",
    "flag": "booleans",
    "date": "dates",
    "duration": "durations",
}
"""What a column of a kind holds. Datetimes are told with their zone."""

MIXED_TABLES = (
    "BestTree, IMM, ExKMC, KMeansTree, SpExTree, KernelExpand with a reference and base_tree=None, "
    'and Kauri with kernel="linear" take missing cells and, in frames, text, dates and times.'
)
"""Which methods take tables as people have them: what the others' refusals end with."""

TO_A_KIND = "of a time of day its hour, of a list its length, of a period its first day"
"""What to take in place of columns that are of no kind."""


def is_time(kind: Kind) -> bool:
    """Return whether a column of this kind holds dates, times or durations."""
    return kind in ("date", "duration") or kind.startswith("datetime")


def has_levels(kind: Kind) -> bool:
    """Return whether a column of this kind holds levels, of which booleans are two."""
    return kind in ("levels", "flag")


def check_kind(kind: object) -> None:
    """Raise ValueError if something is not a kind of column."""
    if isinstance(kind, str):
        if kind in _WORDS:
            return
        if kind.startswith("datetime[") and kind.endswith("]"):
            zone_of(kind)  # raises for an unknown zone
            return
    raise ValueError(f"Known are {', '.join(_WORDS)} and datetime[zone or nothing].")


def polars_kind(dtype: pl.DataType) -> Kind | None:
    """Return the kind of a column of polars; None where it is of none."""
    if dtype.is_numeric() or dtype == pl.Null:
        return "number"
    if dtype == pl.Boolean:
        return "flag"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "levels"
    if isinstance(dtype, pl.Datetime):
        return _datetime_kind(dtype.time_zone)
    return {pl.Date: "date", pl.Duration: "duration"}.get(dtype.base_type())


def arrow_kind(dtype: Any) -> Kind | None:
    """Return the kind of a column of pyarrow; None where it is of none."""
    types = sys.modules["pyarrow"].types

    def is_any(dtype: Any, *names: str) -> bool:
        return any(getattr(types, f"is_{name}")(dtype) for name in names)

    numbers, texts = ("integer", "floating", "decimal", "null"), ("string", "large_string")
    if is_any(dtype, *numbers):
        return "number"
    if is_any(dtype, "boolean"):
        return "flag"
    if is_any(dtype, *texts, "string_view"):
        return "levels"
    if is_any(dtype, "dictionary"):
        if is_any(dtype.value_type, "boolean"):
            return "flag"
        of_text = is_any(dtype.value_type, *texts, "string_view", *numbers)
        return "levels" if of_text else None
    if is_any(dtype, "timestamp"):
        return _datetime_kind(dtype.tz)
    if is_any(dtype, "date"):
        return "date"
    return "duration" if is_any(dtype, "duration") else None


def pandas_kind(dtype: Any) -> Kind | None:
    """Return the kind of a column of pandas; None where it is of none."""
    pandas = sys.modules["pandas"]
    if hasattr(dtype, "pyarrow_dtype"):
        return arrow_kind(dtype.pyarrow_dtype)
    if isinstance(dtype, pandas.CategoricalDtype):
        return "flag" if are_booleans(dtype.categories) else "levels"
    if isinstance(dtype, pandas.StringDtype):
        return "levels"
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return _datetime_kind(dtype.tz)
    types = pandas.api.types
    if types.is_bool_dtype(dtype):
        return "flag"
    if types.is_numeric_dtype(dtype):
        return "number"
    if not isinstance(dtype, np.dtype):
        return None
    return {"O": "levels", "M": "datetime[]", "m": "duration"}.get(dtype.kind)


def are_booleans(values: Any) -> bool:
    """Return whether the objects of a Series or Index of pandas, but missing ones, are booleans."""
    found: str = sys.modules["pandas"].api.types.infer_dtype(values, skipna=True)
    return found == "boolean"


def _datetime_kind(zone: object) -> Kind | None:
    """Return the kind of times in a zone; None for a zone without name and offset."""
    name = "" if zone is None else zone_name(zone)
    return None if name is None else f"datetime[{name}]"


def kind_words(kind: Kind) -> str:
    """Return what a kind of column holds, as messages say it."""
    if kind.startswith("datetime"):
        zone = kind[len("datetime[") : -1]
        return f"times in {zone}" if zone else "times without a zone"
    return _WORDS[kind]
