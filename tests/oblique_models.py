"""Fits of ObliqueTree, their data, and all that they hold."""

import warnings

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

ARRAYS = (
    *("children_left", "children_right", "feature", "threshold", "kind", "impurity", "value"),
    *("n_node_samples", "weighted_n_node_samples", "cluster", "oblique_indptr"),
    *("oblique_indices", "oblique_weights", "oblique_bias"),
)


def bits(model):
    """Everything a fit gives, as bytes."""
    parts = [getattr(model.tree_, name) for name in ARRAYS]
    parts = [np.ascontiguousarray(part).tobytes() for part in parts if part is not None]
    parts += [model.labels_.tobytes(), model.cluster_centers_.tobytes(), model.scale_.tobytes()]
    parts += [np.array([model.inertia_, model.reference_inertia_]).tobytes()]
    return [*parts, model.objective_path_.to_numpy().tobytes()]


def turned_blobs(n=400, k=4, d=3, seed=0, spread=1.0):
    """Clusters that no boxes follow."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d)) * 4
    stretch = np.diag(np.linspace(0.5, 2.0, d))
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    labels = np.arange(n) % k
    return centers[labels] + spread * rng.normal(size=(n, d)) @ stretch @ turn, labels


def documents(n=300, d=120, k=4, seed=0, zeros=3):
    """Counts of words of k topics, in compressed sparse rows; some rows without any."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.08), size=k)
    counts = np.array([rng.multinomial(25, topics[i % k]) for i in range(n)])
    counts[:zeros] = 0
    return sparse.csr_array(counts.astype(np.float64))


def fit(model, X, **arguments):
    """Fit; a fit that ends at its limit of rounds is as good for what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **arguments)
