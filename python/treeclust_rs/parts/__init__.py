"""Floor 7: fits of rows that are never in one place: beyond memory, beyond one machine.

A `Fit` asks a `Question`; every part of the rows gives an `Answer`; answers add up, in any order,
and the fit is told the sum. The tree is that of all rows in memory, to the bit. `fit_batches` is
that conversation with a file that is larger than memory; the other names are for any engine that
can map and reduce.
"""

from .batches import fit_batches
from .protocol import Answer, Fit, Question

__all__ = ["Answer", "Fit", "Question", "fit_batches"]
