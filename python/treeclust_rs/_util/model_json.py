"""Text of model files: plain JSON with a schema version, and checks of what is read.

A file holds numbers, texts and lists, never code; NaN is written as null. Whatever is wrong with a
file raises a ValueError that names it. Memory is proportional to the length of the text.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .arrays import FloatArray, IntArray

FORMAT = "treeclust_rs"
SCHEMA_VERSION = 2

# A type as it is called in JSON.
_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    type(None): "null",
}


def dumps(payload: dict[str, Any]) -> str:
    """Write a model as JSON, with the name and the version of the format in front.

    Parameters
    ----------
    payload : dict
        Plain values only: dicts with string keys, lists, strings, finite numbers, booleans, None.

    Returns
    -------
    str
        One key per line at the first two levels. Floats are written so that they are read back as
        they were.

    Raises
    ------
    ValueError
        If the payload holds NaN or infinity, or a key of the header.
    """
    header: dict[str, Any] = {"format": FORMAT, "schema_version": SCHEMA_VERSION}
    taken = sorted(header.keys() & payload.keys())
    if taken:
        raise ValueError(f"A model cannot have the keys {taken}: they belong to the file's header.")
    return _object_text(header | payload, depth=0) + "\n"


def _object_text(mapping: dict[str, Any], depth: int) -> str:
    indent = " " * (depth + 1)
    lines = []
    for key, value in mapping.items():
        if isinstance(value, dict) and value and depth == 0:
            text = _object_text(value, depth + 1)
        else:
            text = json.dumps(value, allow_nan=False)
        lines.append(f"{indent}{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}"


def loads(
    text: str, upgrade: Callable[[dict[str, Any], int], None] | None = None
) -> dict[str, Any]:
    """Read what `dumps` wrote.

    Parameters
    ----------
    text : str
        The content of a model file.
    upgrade : callable, default=None
        Brings the payload of a file of an older version, which it is given, to this one.

    Returns
    -------
    dict
        The payload, without the header. Its numbers are finite; nothing else about it is checked.

    Raises
    ------
    ValueError
        If the text is no JSON, has a number that is not finite or a key twice, or is not a model of
        a version known here.
    """
    try:
        payload = json.loads(
            text,
            parse_float=_parse_float,
            parse_int=_parse_int,
            parse_constant=_reject_constant,
            object_pairs_hook=_unique_keys,
        )
    except json.JSONDecodeError as error:
        raise ValueError(
            f"Not a file that save of a model or treeclust fit -o wrote: not valid JSON, {error}."
        ) from None
    except RecursionError:
        raise ValueError("The model file is nested too deeply.") from None
    if not isinstance(payload, dict):
        raise ValueError(f"A model file must hold an object, not {json_name(payload)}.")
    if payload.get("format") != FORMAT:
        raise ValueError(f'Not a model file of {FORMAT}: it lacks "format": "{FORMAT}".')
    version = payload.get("schema_version")
    if type(version) is not int:
        raise ValueError("The model file has no integer schema_version.")
    if not 1 <= version <= SCHEMA_VERSION:
        raise ValueError(
            f"The model file has schema_version {version}; this version of {FORMAT} reads 1 to "
            f"{SCHEMA_VERSION}."
        )
    del payload["format"], payload["schema_version"]
    if upgrade is not None and version < SCHEMA_VERSION:
        upgrade(payload, version)
    return payload


def _parse_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"The model file holds the number {digits[:40]}, too large for a float.")
    return number


def _parse_int(digits: str) -> int:
    # Python converts long integers in quadratic time; no integer of a model has 40 digits.
    if len(digits) > 40:
        raise ValueError(f"The model file holds an integer of {len(digits)} digits.")
    return int(digits)


def _reject_constant(name: str) -> float:
    raise ValueError(f"The model file holds {name}; NaN is written as null there.")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"The model file has the key {twice!r} twice in one object.")
    return mapping


def check_keys(
    content: object, required: Iterable[str], where: str, optional: Iterable[str] = ()
) -> dict[str, Any]:
    """Return `content` if it is an object with the required keys and no unknown ones.

    Parameters
    ----------
    content : object
        A value read from JSON.
    required : iterable of str
        Keys it must have.
    where : str
        What it is, to begin the message with, for instance "The tree of the model file".
    optional : iterable of str, default=()
        Keys it may have.

    Raises
    ------
    ValueError
        If it is not an object, or a key is missing or unknown.
    """
    if not isinstance(content, dict):
        raise ValueError(f"{where} must be an object, not {json_name(content)}.")
    needed = set(required)
    missing = sorted(needed - content.keys())
    if missing:
        raise ValueError(f"{where} lacks {', '.join(map(repr, missing))}.")
    unknown = sorted(map(str, content.keys() - needed - set(optional)))
    if unknown:
        raise ValueError(f"{where} has the unknown key {unknown[0]!r}.")
    return content


def float_array(
    values: object, name: str, shape: tuple[int, ...], *, null: bool = False
) -> FloatArray:
    """Read a list of numbers, or a list of such lists, into an array.

    Parameters
    ----------
    values : object
        A value read from JSON.
    name : str
        Its name, for the messages.
    shape : tuple of one or two int
        The lengths it must have.
    null : bool, default=False
        Whether null is allowed, and read as NaN.

    Raises
    ------
    ValueError
        If the lengths differ, or an entry is not a finite number.
    """
    rows = check_list(values, name, {list} if len(shape) == 2 else None, shape[0])
    if len(shape) == 2:
        for row in rows:
            if len(row) != shape[1]:
                raise ValueError(
                    f"{name} in the model file has a row of {len(row)} entries; {shape[1]} "
                    "were expected."
                )
        rows = [number for row in rows for number in row]
    _check_types(rows, name, {int, float, type(None)} if null else {int, float})
    try:
        array = np.array([math.nan if number is None else number for number in rows], dtype=float)
    except OverflowError:
        raise ValueError(f"{name} in the model file holds a number that is too large.") from None
    if np.isinf(array).any() or np.isnan(array).sum() != rows.count(None):
        raise ValueError(f"{name} in the model file holds a number that is not finite.")
    return array.reshape(shape)


def int_array(values: object, name: str, length: int | None) -> IntArray:
    """Read a list of integers into an array; `length` None: of any length.

    Raises
    ------
    ValueError
        If the length differs, or an entry is not an integer, or too large.
    """
    numbers = check_list(values, name, {int}, length)
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        raise ValueError(f"{name} in the model file holds an integer that is too large.") from None


def check_list(
    values: object, name: str, types: set[type] | None, length: int | None = None
) -> list[Any]:
    """Return `values` if they are a list of this length, with entries of these types only.

    Raises
    ------
    ValueError
        If they are not; `name` begins the message.
    """
    if not isinstance(values, list):
        raise ValueError(f"{name} in the model file must be a list, not {json_name(values)}.")
    if length is not None and len(values) != length:
        raise ValueError(
            f"{name} in the model file has {len(values)} entries; {length} were expected."
        )
    if types is not None:
        _check_types(values, name, types)
    return values


def _check_types(values: list[Any], name: str, types: set[type]) -> None:
    others = set(map(type, values)) - types
    if others:
        found = sorted(_JSON_NAMES.get(other, other.__name__) for other in others)[0]
        raise ValueError(f"{name} in the model file holds {found}, which does not belong there.")


def json_name(value: object) -> str:
    """Return what JSON calls the value's type."""
    return _JSON_NAMES.get(type(value), type(value).__name__)
