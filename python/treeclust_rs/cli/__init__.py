"""Floor 7: the command ``treeclust``."""

from .commands import main

__all__ = ["main"]
