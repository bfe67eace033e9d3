"""Floor 7: the command ``treeclust``."""

from .command import main

__all__ = ["main"]
