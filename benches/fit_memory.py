"""Print the peak memory of one fit above its input, in bytes.

fit_memory.py FORM FOLDER LEAVES BASE_TREE

A LazyFrame, the form "lazy", is read by the fit.
"""

import sys
from pathlib import Path

import numpy as np
import polars as pl

import treeclust_rs as tc
from memory import peak_above


def main() -> None:
    form, folder, max_leaves = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    base_tree = None if sys.argv[4] == "none" else sys.argv[4]
    centers = np.load(folder / "centers.npy")
    X: np.ndarray | pl.DataFrame | pl.LazyFrame
    if form == "lazy":
        X = pl.scan_parquet(folder / "stored.parquet")
    elif form == "frame":
        X = pl.read_parquet(folder / "stored.parquet").rechunk()
    else:
        X = np.load(folder / ("data.npy" if form == "array" else "stored.npy"))
    model = tc.ExKMC(max_leaves=max_leaves, base_tree=base_tree, reference=centers, n_jobs=1)
    model.fit(X[:1000])  # what is loaded once is not the fit's
    print(peak_above(lambda: model.fit(X)))


if __name__ == "__main__":
    main()
