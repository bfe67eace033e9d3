"""The table that tests of the command work on, and the model they fit to it."""

from __future__ import annotations

import numpy as np
import polars as pl

import treeclust_rs as tc

CLUSTERS = {"low": (0.0, 0.0), "right": (8.0, 4.0), "high": (3.0, 9.0)}


FIT = ["fit", "points.csv", "--columns", "x,y", "-k", "3", "--leaves", "4", "-o", "model.json"]


def write_points() -> None:
    """Write points.csv into this folder: columns id, x, y, segment."""
    rng = np.random.default_rng(0)
    rows = [
        (f"{len(CLUSTERS) * number + order:03}", *(np.round(rng.normal(center, 2.5), 3)), name)
        for number in range(20)
        for order, (name, center) in enumerate(CLUSTERS.items())
    ]
    frame = pl.DataFrame(rows, schema=["id", "x", "y", "segment"], orient="row")
    frame.write_csv("points.csv")


def points() -> pl.DataFrame:
    return pl.read_csv("points.csv", schema_overrides={"id": pl.String})


def fitted() -> tc.BestTree:
    return tc.BestTree(3, max_leaves=4, random_state=0).fit(points().select("x", "y"))
