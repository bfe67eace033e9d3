"""How much tests do: a small fixed sample in `make test`, the full one in `make test-all`."""

import os

FULL = os.environ.get("FULL_TESTS") == "1"


def repeats(small: int, full: int) -> int:
    """Return how many random cases a test runs: the first `small` of them, or all `full`."""
    return full if FULL else small
