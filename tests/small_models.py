"""A quick model of every estimator, and rows that all of them tell apart."""

import numpy as np

import treeclust_rs as tc

MODELS = {
    "IMM": tc.IMM(3, random_state=0),
    "ExShallow": tc.ExShallow(3, random_state=0),
    "ExKMC": tc.ExKMC(3, max_leaves=5, random_state=0),
    "KMeansTree": tc.KMeansTree(3, random_state=0),
    "SpExTree": tc.SpExTree(3, random_state=0),
    "VoronoiTree": tc.VoronoiTree(3, random_state=0),
    "CUBT": tc.CUBT(3),
    "CLTree": tc.CLTree(3, min_rd=0.2),
    "Kauri": tc.Kauri(3, random_state=0),
    "KernelIMM": tc.KernelIMM(3, random_state=0),
    "KernelExKMC": tc.KernelExKMC(3, random_state=0),
    "KernelExpand": tc.KernelExpand(3, random_state=0),
    "ObliqueTree": tc.ObliqueTree(3, random_state=0),
    "Douglas": tc.Douglas(3, n_init=1, max_iter=10, random_state=0),
    "KernelKMeans": tc.KernelKMeans(3, random_state=0),
}


def save(model, path):
    """Write a model file, with rows of the fit where only these make it whole."""
    model.save(path, **({"rows": True} if isinstance(model, tc.KernelKMeans) else {}))


def blobs():
    rng = np.random.default_rng(0)
    centers = np.repeat([[0.0, 0.0, 0.0], [6.0, 0.0, 0.0], [0.0, 6.0, 0.0]], 20, axis=0)
    return centers + rng.normal(size=(60, 3))


def make(name):
    model = MODELS[name]
    return type(model)(**model.get_params(deep=False))
