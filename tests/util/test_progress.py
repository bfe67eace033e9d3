"""Progress lines: on stderr, or by the logger of the package."""

import logging
import re

import numpy as np
import pytest

import treeclust_rs as tc
from treeclust_rs.selection import gap_statistic, silhouette

LOGGER = logging.getLogger("treeclust_rs")


def blobs(k=3, n=40):
    rng = np.random.default_rng(0)
    return rng.normal(size=(k * n, 3)) + np.repeat(10 * np.eye(3)[:k], n, axis=0)


@pytest.fixture
def logged():
    """The messages that a handler of the package's logger gets."""
    messages, level = [], LOGGER.level
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    yield messages
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(level)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (tc.IMM(3), "k-means"),
        (tc.IMM(3, criterion="kmedians"), "k-medians"),
        (tc.VoronoiTree(3), "k-means"),
        (tc.ObliqueTree(3), "k-means"),
        (tc.ObliqueTree(3, metric="cosine"), "spherical k-means"),
    ],
)
def test_the_reference_tells_its_start_and_its_cost(model, name, capfd):
    model.set_params(random_state=0, verbose=1).fit(blobs())
    begin, end = capfd.readouterr().err.splitlines()[:2]
    start = rf"\[{type(model).__name__}\] 120 rows, {name}"
    assert re.fullmatch(rf"{start} of 3 clusters, 10 starts, \d+\.\d s", begin)
    cost = "" if name.startswith("spherical") else r", cost [\d.e+-]+"
    assert re.fullmatch(rf"{start} done{cost}, \d+\.\d s", end)
    # A reference that is given is not computed.
    model.set_params(reference=model.labels_).fit(blobs())
    assert "means" not in capfd.readouterr().err


def test_kernel_trees_tell_the_starts_of_kernel_k_means(capfd):
    tc.KernelIMM(3, n_init=2, random_state=0, verbose=1).fit(blobs())
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("[KernelIMM] 120 rows, start 1 of 2, ")
    assert lines[1].startswith("[KernelIMM] 120 rows, start 2 of 2, ")
    assert re.search(r"3 leaves, surrogate cost [\d.e+-]+, \d+\.\d s$", lines[-1])


def test_a_cost_that_rises_is_no_negative_gain(capfd):
    # An impurity that falls while the cost about the reference's centers rises.
    rng = np.random.default_rng(5)
    X, labels = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    model = tc.KMeansTree(reference=labels, max_leaves=30, verbose=1).fit(X)
    assert (np.diff(model.cost_path_["cost"]) > 0).any()
    assert "gain -" not in capfd.readouterr().err


def test_lines_go_to_the_logger(logged, capfd):
    model = tc.ExKMC(3, random_state=0, verbose=1).fit(blobs())
    assert logged[0].startswith("[ExKMC] 120 rows, k-means of 3 clusters")
    assert f"{model.n_leaves_} leaves, surrogate cost" in logged[-1]
    assert capfd.readouterr().err == ""
    logged.clear()
    tc.ExKMC(3, random_state=0).fit(blobs())
    assert logged == []


def test_a_logger_that_takes_no_info_leaves_lines_on_stderr(logged, capfd):
    LOGGER.setLevel(logging.WARNING)
    tc.ExKMC(3, random_state=0, verbose=1).fit(blobs())
    assert logged == []
    assert "k-means done" in capfd.readouterr().err


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_searches_tell_every_step(verbose, capfd, logged):
    def run():
        gap_statistic(tc.ExKMC(), blobs(), [3, 4], n_references=2, random_state=0, verbose=verbose)
        silhouette(tc.ExKMC(), blobs(), [3, 4], random_state=0, sample_size=50, verbose=verbose)

    run()
    assert capfd.readouterr().err == ""
    if verbose:
        gap, found = logged[:4], logged[4:]
        assert [re.search(r"\d/4", line)[0] for line in gap] == ["1/4", "2/4", "3/4", "4/4"]
        assert "k 3: inertia " in gap[0] and "draw 2 of 2" in gap[3]
        assert [line.split("s  ")[1].split(" 0.")[0] for line in found] == [
            "k 3: fitted",
            "k 4: fitted",
            "k 3: silhouette",
            "k 4: silhouette",
        ]
        assert found[-1].endswith(" of 50 of 120 rows")
    else:
        assert logged == []
    # Without the logger 1 is for terminals.
    LOGGER.setLevel(logging.NOTSET)
    logged.clear()
    run()
    assert logged == []
    assert len(capfd.readouterr().err.splitlines()) == (8 if verbose == 2 else 0)


@pytest.mark.parametrize("helper", [gap_statistic, silhouette])
def test_verbose_is_checked(helper):
    with pytest.raises(ValueError, match=r"verbose must be an int >= 0\. Got -1"):
        helper(tc.ExKMC(), blobs(), [2, 3], verbose=-1)
