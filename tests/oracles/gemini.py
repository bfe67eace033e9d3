"""GEMINIs from their definitions, in plain loops.

Ohl et al., "End-to-end training of unsupervised trees: Kauri and Douglas", eqs. 1 and 2: the
expectation over clusters of a distance of distributions, p(x | k) = p(k | x) p(x) / p(k) by Bayes
and p(x) = 1 / n. Distances are those of the books; the Wasserstein distance is a linear program,
solved by scipy.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

STEP = 1e-6


def total(terms):
    return math.fsum(terms)


def kl(p, q, _):
    return total(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def tv(p, q, _):
    return 0.5 * total(abs(a - b) for a, b in zip(p, q, strict=True))


def hellinger(p, q, _):
    return 1.0 - total(math.sqrt(a * b) for a, b in zip(p, q, strict=True))


def mmd2(p, q, kernel):
    n = len(p)
    return total(
        (p[i] - q[i]) * (p[j] - q[j]) * float(kernel[i, j]) for i in range(n) for j in range(n)
    )


def mmd(p, q, kernel):
    return math.sqrt(max(mmd2(p, q, kernel), 0.0))


def wasserstein(p, q, costs):
    """Least cost of a plan whose rows sum to p and whose columns sum to q."""
    n = len(p)
    rows = np.kron(np.eye(n), np.ones(n))
    columns = np.kron(np.ones(n), np.eye(n))
    q = np.asarray(q) * (np.sum(p) / np.sum(q))
    # One of the constraints follows from the others; left in, a rounding makes them contradict.
    found = linprog(
        costs.ravel(),
        A_eq=np.vstack([rows, columns[:-1]]),
        b_eq=np.concatenate([p, q[:-1]]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    return float(found.fun)


DISTANCES = {
    "kl": kl,
    "tv": tv,
    "hellinger": hellinger,
    "mmd2": mmd2,
    "mmd": mmd,
    "wasserstein": wasserstein,
}


def clusters(probabilities):
    """Mass and distribution over the rows of every cluster; a cluster without mass is left out."""
    n, k = probabilities.shape
    found = []
    for c in range(k):
        mass = total(probabilities[:, c].tolist()) / n
        if mass > 0:
            found.append((mass, [y / n / mass for y in probabilities[:, c].tolist()]))
    return found


def gemini(name, probabilities, affinity=None):
    """The objective of that name, one of treeclust_rs.gemini.GEMINIS."""
    stem, form = name.rsplit("_", 1)
    distance = DISTANCES[stem]
    found = clusters(probabilities)
    if form == "ova":
        uniform = [1.0 / len(probabilities)] * len(probabilities)
        return total(mass * distance(w, uniform, affinity) for mass, w in found)
    return total(mass * other * distance(w, v, affinity) for mass, w in found for other, v in found)


def central_differences(function, at, step=STEP):
    """Derivative of `function` by every entry of the matrix `at`, steps being relative."""
    slopes = np.empty_like(at)
    for place in np.ndindex(at.shape):
        size = step * at[place]
        up, down = at.copy(), at.copy()
        up[place] += size
        down[place] -= size
        slopes[place] = (function(up) - function(down)) / (up[place] - down[place])
    return slopes
