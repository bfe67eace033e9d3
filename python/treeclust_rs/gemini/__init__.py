"""Floor 5: generalised mutual informations (GEMINI), the objectives of Douglas."""

from .._util import documented
from .base import Gemini
from .distances import METRICS
from .divergences import KL, SquaredHellinger, TotalVariation
from .mmd import MMD
from .names import GEMINIS, make_gemini
from .transport import EnergyDistance, Wasserstein

__all__ = [
    "GEMINIS",
    "KL",
    "METRICS",
    "MMD",
    "EnergyDistance",
    "Gemini",
    "SquaredHellinger",
    "TotalVariation",
    "Wasserstein",
    "make_gemini",
]

# Messages and pickles name the public place.
for _class in (KL, MMD, EnergyDistance, Gemini, SquaredHellinger, TotalVariation, Wasserstein):
    _class.__module__ = __name__
documented(Gemini)
