"""Readers of the values of options."""

import argparse
import math
import sys
from collections.abc import Callable


def whole_number(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """Return the reader of an option that takes whole numbers of some range."""
    range_ = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = minimum - 1
        if number < minimum or (maximum is not None and number > maximum):
            raise argparse.ArgumentTypeError(f"must be a whole number, {range_}. Got {text!r}")
        return min(number, sys.maxsize)

    return read


def clusters(text: str) -> int:
    """Read a number of clusters."""
    if "," in text:
        raise argparse.ArgumentTypeError(
            f"takes one number; to choose among several, silhouette and stability of "
            f"treeclust_rs.selection compare them in Python. Got {text!r}"
        )
    return whole_number(1)(text)


def leaves(text: str) -> float:
    """Read a number of leaves, or "inf" for no limit."""
    return math.inf if text == "inf" else whole_number(1)(text)


def several_leaves(text: str) -> list[int]:
    """Read numbers of leaves with commas between them."""
    return [whole_number(1)(part) for part in text.split(",")]


def _number(text: str) -> float:
    """Read a number; return NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def gamma(text: str) -> float | str:
    """Read a positive number, or "scale"."""
    if text == "scale":
        return text
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, or scale. Got {text!r}")
    return number


def unit(text: str) -> tuple[str, float]:
    """Read the name of a column and its unit, a number above 0, with = between them."""
    name, equals, value = text.rpartition("=")
    number = _number(value)
    if not equals or not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(
            f"must be a column, = and a number above 0, income=1000 say. Got {text!r}"
        )
    return name, number


def name_of_cluster(text: str) -> tuple[str, str]:
    """Read a cluster and its new name, with = between them."""
    cluster, _, name = text.partition("=")
    if not cluster or not name:
        raise argparse.ArgumentTypeError(
            f"must be a cluster, = and a name, 0=Loyal say. Got {text!r}"
        )
    return cluster, name


def at_least_0(text: str) -> float:
    """Read a number that is at least 0."""
    number = _number(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number, at least 0. Got {text!r}")
    return number


def share(text: str) -> float:
    """Read a number that is at least 0 and below 1."""
    number = _number(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1. Got {text!r}")
    return number


def separator(text: str) -> str:
    """Read one character, or "tab"."""
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or not character.isascii() or character in '"\r\n':
        raise argparse.ArgumentTypeError(f"must be one character, or tab. Got {text!r}")
    return character


def encoding(text: str) -> str:
    """Read the name of a text encoding."""
    try:
        "".encode(text)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(f"there is no encoding {text!r}") from None
    return text
