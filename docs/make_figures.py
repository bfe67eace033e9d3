"""Draw the picture in the README: python docs/make_figures.py (needs the extra ``plot``)."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import polars as pl
from sklearn.datasets import load_wine

import treeclust_rs as tc

mpl.use("agg")


def main() -> None:
    """Fit the tree of the README's example and write it to tree.png beside this file."""
    wine = load_wine()
    frame = pl.DataFrame(wine.data, schema=list(wine.feature_names))
    model = tc.ExKMC(3, max_leaves=4, base_tree=None, scale="standard", random_state=0).fit(frame)
    figure = model.plot(fontsize=10).figure
    figure.savefig(Path(__file__).with_name("tree.png"), dpi=160, facecolor="white")


if __name__ == "__main__":
    main()
