"""Small fits of Douglas, and what its tests look at."""

import numpy as np
import polars as pl
from sklearn.datasets import load_iris

import treeclust_rs as tc

IRIS = pl.DataFrame(load_iris().data, schema=["sl", "sw", "pl", "pw"])


def three_blobs(n=90, seed=0):
    """Three clusters that one cut of each of two columns tells apart; a third column of noise."""
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], n // 3)
    centers = np.array([[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    return centers[codes] + rng.normal(size=(n, 3)), codes


def quick(k=3, **options):
    return tc.Douglas(k, **({"n_init": 2, "max_iter": 60, "random_state": 0} | options))


def state(model):
    return model.weights_.tobytes(), model.cut_points_.tobytes(), model.labels_.tobytes()


def recorded(monkeypatch, owner, name, note):
    """Let every call of a function leave ``note(result, *arguments)`` in the list that is given."""
    notes, whole = [], getattr(owner, name)

    def call(*arguments, **options):
        result = whole(*arguments, **options)
        notes.append(note(result, *arguments))
        return result

    monkeypatch.setattr(owner, name, call)
    return notes
