"""Warnings of references in other units, or in another kernel, than the tree measures in."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import AffinityPropagation, KMeans, MeanShift
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import treeclust_rs as tc

X = load_iris().data
Z = StandardScaler().fit_transform(X)
FAR = "centers of the reference are far"
KERNEL = "The reference was clustered with"

TREES = {
    "IMM": tc.IMM(),
    "ExKMC": tc.ExKMC(scale="standard"),
    "KMeansTree": tc.KMeansTree(),
    "VoronoiTree": tc.VoronoiTree(),
    "ObliqueTree": tc.ObliqueTree(),
}


def fitted_texts(model, data):
    """Fit, and return the texts of the warnings that name this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data)
    return [str(warning.message) for warning in caught if warning.filename == __file__]


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("data", [X, 10 * (X - X.mean(axis=0))])
def test_centers_of_scaled_columns_are_warned_of(name, data):
    kmeans = KMeans(3, n_init=3, random_state=0).fit(Z)
    model = TREES[name].set_params(reference=kmeans)
    (text,) = [text for text in fitted_texts(model, data) if FAR in text]
    scale = model.scale_
    own = sum(
        np.square(
            (data[kmeans.labels_ == c] - data[kmeans.labels_ == c].mean(axis=0)) / scale
        ).sum()
        for c in range(3)
    )
    about = np.square((data - kmeans.cluster_centers_[kmeans.labels_]) / scale).sum()
    assert f"the cost about them is {about / own:.3g} times" in text
    model.set_params(reference=make_pipeline(StandardScaler(), clone(kmeans)))
    assert not [text for text in fitted_texts(model, data) if FAR in text]


@pytest.mark.parametrize(
    "reference",
    [
        KMeans(3, n_init=1, random_state=0).fit(X),
        KMeans(3, n_init=1, random_state=0).fit(X[::2]),
        AffinityPropagation(random_state=0).fit(X),
        MeanShift().fit(X),
        KMeans(3, n_init=1, random_state=0).fit(Z).cluster_centers_,  # an array
        tc.ExKMC(3, criterion="kmedians", random_state=0).fit(X),
    ],
)
def test_centers_that_are_no_means_pass(reference):
    assert not [t for t in fitted_texts(tc.KMeansTree(reference=reference), X) if FAR in t]


def test_centers_of_repeated_rows_pass():
    points = np.repeat([[0.1, 0.2], [0.3, 1e9]], 5, axis=0)
    kmeans = KMeans(2, n_init=1, random_state=0).fit(points)
    assert not [t for t in fitted_texts(tc.KMeansTree(reference=kmeans), points) if FAR in t]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (tc.KernelKMeans(3, gamma=4.0), "kernel rbf, gamma 4, but this KernelIMM has the kernel "),
        (tc.KernelKMeans(3, kernel="laplacian"), "kernel laplacian, gamma 0.25, but"),
        (tc.KernelKMeans(3, scale="standard"), "gamma 0.25 and another scale, but"),
    ],
)
@pytest.mark.parametrize("is_fitted", [True, False])
def test_kernel_kmeans_of_another_kernel_is_warned_of(given, text, is_fitted):
    given.set_params(random_state=0, n_init=1)
    reference = given.fit(X) if is_fitted else given
    (found,) = fitted_texts(tc.KernelIMM(reference=reference), X)
    assert found.startswith(KERNEL)
    assert text in found
    assert not fitted_texts(tc.KernelIMM(reference=given.fit(X).labels_), X)


@pytest.mark.parametrize(
    ("given", "own"),
    [
        (tc.KernelKMeans(3), tc.KernelIMM()),
        (tc.KernelKMeans(3, gamma=0.25, kernel="gaussian"), tc.KernelIMM()),
        (tc.KernelKMeans(3, scale="standard"), tc.KernelIMM(scale=X.std(axis=0))),
        (tc.KernelKMeans(3, gamma="scale"), tc.KernelIMM(gamma="scale")),
        (tc.KernelKMeans(3, gamma="scale"), tc.KernelIMM(gamma=1 / (4 * X.var(axis=0).mean()))),
        (tc.KernelKMeans(3, kernel="cosine"), tc.KernelExpand(kernel="cosine")),
    ],
)
def test_kernel_kmeans_of_the_same_kernel_passes(given, own):
    given.set_params(random_state=0, n_init=1).fit(X)
    assert not fitted_texts(own.set_params(reference=given), X)
