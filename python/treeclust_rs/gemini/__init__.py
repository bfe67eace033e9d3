"""Floor 5: generalised mutual informations (GEMINI), the objectives of Douglas."""

from .geminis import (
    GEMINIS,
    KL,
    METRICS,
    MMD,
    EnergyDistance,
    Gemini,
    SquaredHellinger,
    TotalVariation,
    Wasserstein,
    make_gemini,
)

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
