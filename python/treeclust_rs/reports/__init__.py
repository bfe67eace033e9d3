"""Floor 7: the report of a model, one page for those who decide."""

from .._util import documented
from .page import report

__all__ = ["report"]

documented(report)
