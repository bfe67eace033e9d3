"""New labels for clusters."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from .._util import format_count, is_number, listed
from .._util.arrays import NOISE
from .checks import check_classes

Classes = tuple[int, ...] | tuple[str, ...]


def renamed(classes: Classes, names: Mapping[Any, int | str]) -> Classes:
    """Return the labels of all clusters, some of which have new ones; see `rename_clusters`."""
    if not isinstance(names, Mapping):
        raise TypeError(
            "The new labels of the clusters are given as a mapping, for example "
            f"{{{classes[0]!r}: 'a name'}}. Got {type(names).__name__} instead."
        )
    unknown = [key for key in names if isinstance(key, bool) or key not in classes]
    if unknown:
        raise ValueError(
            f"There is no cluster {listed(list(map(repr, unknown)))}: the tree's "
            f"{format_count(len(classes), 'cluster')} {'is' if len(classes) == 1 else 'are'} "
            f"{listed(list(map(repr, classes)))}."
        )
    given: dict[Any, int | str] = {}
    for old, new in names.items():
        if isinstance(new, str):
            given[old] = str(new)
        elif is_number(new, Integral):
            given[old] = int(new)
        else:
            raise TypeError(f"The label of a cluster is a string or an integer. Got {new!r}.")
        if str(new) == str(NOISE):  # a table of text has it as a number again
            raise ValueError(f"The cluster {old!r} cannot be called -1, which marks noise.")
    has_strings = any(isinstance(new, str) for new in given.values())
    labels: list[Any] = [
        given[label] if label in given else str(label) if has_strings else label
        for label in classes
    ]
    if len({isinstance(label, str) for label in labels}) > 1:
        shown = listed(list(map(repr, labels)))
        raise TypeError(
            f"The labels of the clusters must be all strings or all integers, but would be {shown}."
        )
    for place, label in enumerate(labels):
        first = labels.index(label)
        if first < place:
            raise ValueError(
                f"The clusters {classes[first]!r} and {classes[place]!r} would both be called "
                f"{label!r}. Clusters are renamed, not merged: give distinct labels."
            )
    return check_classes(labels)
