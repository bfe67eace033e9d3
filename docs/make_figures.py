"""Draw the pictures of the documentation: python docs/make_figures.py (needs the extra ``plot``).

tree.png is the tree of the README's first example, costs.png what trees of more leaves cost, and
customers.png the tree of its table with text, dates and gaps. methods.png has the cells of eight
methods on the same rows.
moons.png and circles.png show what kernels are for: above, the cells of IMM's tree for k-means and
those of Kernel Expand's for kernel k-means, the points coloured by the truth; below, Kernel
Expand's tree. digits.png is an oblique tree of images.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.datasets import load_digits, load_wine, make_blobs, make_circles, make_moons

import treeclust_rs as tc
from treeclust_rs.datasets import make_customers
from treeclust_rs.metrics import adjusted_rand_index, agreement

mpl.use("agg")

FOLDER = Path(__file__).parent


def main() -> None:
    """Draw all pictures, beside this file."""
    draw_wine()
    draw_customers()
    draw_digits()
    draw_methods()
    # Cuts that single out a few rows would be slivers in the picture.
    expand = tc.KernelExpand(2, n_init=50, min_samples_leaf=10, random_state=0)
    expand.set_params(gamma=8.0, max_leaves=6)
    draw_shapes("moons", *make_moons(500, noise=0.05, random_state=0), expand)
    expand.set_params(gamma=4.0, max_leaves=3, base_tree=None, cuts="interval")
    draw_shapes("circles", *make_circles(300, factor=0.4, noise=0.05, random_state=0), expand)


def draw_methods() -> None:
    """Draw the cells of eight methods on the same five clusters, and what they cost."""
    rows, _ = make_blobs(500, centers=5, cluster_std=1.3, random_state=8)
    methods = [
        tc.IMM(5, random_state=0),
        tc.ExGreedy(5, random_state=0),
        tc.ExKMC(5, max_leaves=8, random_state=0),
        tc.BestTree(5, max_leaves=8, random_state=0),
        tc.Kauri(5, max_leaves=8),
        tc.KDTreeClusters(5, max_leaves=8, random_state=0),
        tc.ObliqueTree(5, random_state=0),
        tc.VoronoiTree(5, random_state=0),
    ]
    figure, grid = plt.subplots(2, 4, figsize=(12.0, 6.2), layout="constrained")
    for method, axes in zip(methods, grid.flat, strict=True):
        model = method.fit(rows)
        model.plot_partition(rows, axes)
        ratio = model.inertia_ / methods[0].reference_inertia_
        axes.set_title(f"{type(model).__name__}: {model.n_leaves_} leaves, {ratio:.3f}")
        axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
        if legend := axes.get_legend():
            legend.remove()
    figure.savefig(FOLDER / "methods.png", dpi=90, facecolor="white")


def draw_wine() -> None:
    """Fit the tree of the README's first example, and draw it and its costs."""
    wine = load_wine()
    frame = pl.DataFrame(wine.data, schema=list(wine.feature_names))
    model = tc.BestTree(3, max_leaves=4, scale="standard", random_state=0).fit(frame)
    figure = model.plot(fontsize=10).figure
    figure.savefig(FOLDER / "tree.png", dpi=160, facecolor="white")
    large = model.set_params(max_leaves=10).fit(frame)
    figure, axes = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
    large.plot_cost_path(axes)
    figure.savefig(FOLDER / "costs.png", dpi=110, facecolor="white")


def draw_customers() -> None:
    """Draw the tree that explains the segments of customers."""
    frame = make_customers(2_000, with_segment=True)
    model = tc.BestTree(objective="labels", reference=frame["segment"], max_leaves=7)
    model.set_params(scale="standard", random_state=0).fit(frame.drop("customer_id", "segment"))
    model.plot(fontsize=10).figure.savefig(FOLDER / "customers.png", dpi=110, facecolor="white")


def draw_digits() -> None:
    """Draw an oblique tree over images, its weights and means as pictures."""
    X = load_digits().data
    oblique = tc.ObliqueTree(10, max_depth=4, relax=True, random_state=0)
    model = oblique.alpha_path(X, [1, 10])[-1]
    print(
        f"digits: {model.n_leaves_} leaves, {model.n_parameters_} parameters, "
        f"{model.cost_ratio_:.4f} of the cost of k-means"
    )
    figure = model.plot(image_shape=(8, 8)).figure
    figure.savefig(FOLDER / "digits.png", dpi=110, facecolor="white")


def draw_shapes(name: str, X: np.ndarray, truth: np.ndarray, kernel_tree: Any) -> None:
    """Draw IMM on k-means beside a tree that explains kernel k-means, and that tree."""
    frame = pl.DataFrame(X, schema=["x", "y"])
    imm = tc.IMM(2, random_state=0).fit(frame)
    kernel_tree.fit(frame)
    found = kernel_tree.reference_labels_
    print(
        f"{name}: adjusted Rand index with the truth: IMM "
        f"{adjusted_rand_index(truth, imm.labels_):.3f}, kernel k-means "
        f"{adjusted_rand_index(truth, found):.3f}; Kernel Expand agrees with it on "
        f"{agreement(kernel_tree.labels_, found):.1%} of the rows"
    )
    figure = plt.figure(figsize=(9.0, 7.0))
    title = f"kernel k-means and Kernel Expand: {kernel_tree.n_leaves_} leaves"
    for left, model, text in (
        (0.07, imm, "k-means and IMM: 2 leaves"),
        (0.57, kernel_tree, title),
    ):
        ax = figure.add_axes((left, 0.52, 0.41, 0.44))
        colors = _colors(model, truth)
        model.plot_partition(frame, ax, labels=truth, title=text, legend=False, colors=colors)
    ax = figure.add_axes((0.0, 0.0, 1.0, 0.45))
    kernel_tree.plot(ax, fontsize=10, colors=_colors(kernel_tree, truth))
    figure.savefig(FOLDER / f"{name}.png", dpi=130, facecolor="white")
    plt.close(figure)


def _colors(model: Any, truth: np.ndarray) -> list[str]:
    """Give the colours of two clusters, that of each half-moon or circle the same everywhere."""
    colors = ["#1f77b4", "#ff7f0e"]
    return colors if np.mean(model.labels_ == truth) > 0.5 else colors[::-1]


if __name__ == "__main__":
    main()
