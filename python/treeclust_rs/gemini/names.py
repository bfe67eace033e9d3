"""Objectives by their names.

Each class is one distance D(p, q), compared with all rows (_ova) or between clusters (_ovo):

===================  ==========================  ===================================================
class                names                       D(p, q)
===================  ==========================  ===================================================
`KL`                 kl_ova, kl_ovo              sum p log(p / q); kl_ova is the mutual information
`TotalVariation`     tv_ova, tv_ovo              sum abs(p - q) / 2
`SquaredHellinger`   hellinger_ova, hellinger_ovo  sum (sqrt p - sqrt q)^2 / 2 = 1 - sum sqrt(p q)
`MMD`                mmd_ova, mmd_ovo            sqrt((p - q)' K (p - q)), K a kernel matrix
`MMD`, squared       mmd2_ova, mmd2_ovo          (p - q)' K (p - q)
`Wasserstein`        wasserstein_ova, _ovo       least cost of moving p to q, by distances of rows
===================  ==========================  ===================================================
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .base import Gemini
from .divergences import KL, SquaredHellinger, TotalVariation
from .mmd import MMD
from .transport import Wasserstein

_BY_NAME: dict[str, tuple[type[Gemini], dict[str, bool]]] = {
    "hellinger": (SquaredHellinger, {}),
    "kl": (KL, {}),
    "mmd": (MMD, {}),
    "mmd2": (MMD, {"squared": True}),
    "tv": (TotalVariation, {}),
    "wasserstein": (Wasserstein, {}),
}
GEMINIS = tuple(f"{stem}_{form}" for stem in _BY_NAME for form in ("ova", "ovo"))
"""Names `make_gemini` knows."""


def make_gemini(gemini: str | Gemini, **parameters: Any) -> Gemini:
    """Return an objective by its name.

    Parameters
    ----------
    gemini : str or Gemini
        One of `GEMINIS`, or an objective, which is returned.
    **parameters
        Parameters of the objective: `kernel`, `gamma`, `degree`, `coef0` and `kernel_params` of
        mmd_ and mmd2_, `metric` and `metric_params` of wasserstein_. Only with a name.

    Returns
    -------
    Gemini

    Raises
    ------
    ValueError
        If the name or a parameter is unknown.
    TypeError
        If `gemini` is neither a string nor an objective.

    Examples
    --------
    >>> import numpy as np
    >>> gemini = make_gemini("wasserstein_ova", metric="manhattan")
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> y = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> gemini.value(y, gemini.affinity(X))
    4.0
    """
    if isinstance(gemini, Gemini):
        if parameters:
            raise ValueError(
                f"{', '.join(sorted(parameters))} cannot be set on an objective that is given; "
                "make it with them."
            )
        return gemini
    if not isinstance(gemini, str):
        raise TypeError(f"gemini must be a name or a Gemini. Got {type(gemini).__name__} instead.")
    if gemini not in GEMINIS:
        raise ValueError(f"Unknown gemini {gemini!r}. Known are {', '.join(GEMINIS)}.")
    stem, form = gemini.rsplit("_", 1)
    kind, fixed = _BY_NAME[stem]
    free = {f.name for f in dataclasses.fields(kind)} - {"one_vs_one", "squared"}
    unknown = sorted(set(parameters) - free)
    if unknown:
        takes = f"takes {', '.join(sorted(free))}" if free else "takes none"
        raise ValueError(f"Unknown parameters {', '.join(unknown)} of {gemini}: it {takes}.")
    return kind(one_vs_one=form == "ovo", **fixed, **parameters)
