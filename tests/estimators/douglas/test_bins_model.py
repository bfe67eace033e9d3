"""What files of Douglas hold of the rows of the fit, where it cannot be."""

import json

import pytest

import treeclust_rs as tc
from douglas_models import quick, three_blobs


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.json"
    quick(2).fit(three_blobs()[0][:, :1]).save(path)
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"occupied": [1, 1]}, "ascending cells"),
        ({"occupied": [1, 0]}, "ascending cells"),
        ({"occupied": [-1, 1]}, "ascending cells"),
        ({"occupied": [0, 2]}, "ascending cells"),
        ({"n_rows": [0, 5], "n_agreeing": [0, 5]}, "no counts"),
        ({"n_agreeing": [-1, 5]}, "no counts"),
        ({"n_agreeing": [3, 6]}, "no counts"),
        ({"n_rows": [2**52, 2**52]}, "too many"),
        ({"n_rows": [5, 5, 5]}, "differ in length"),
        ({}, None),
    ],
)
def test_counts_of_rows(content, counts, message, tmp_path):
    path = tmp_path / "model.json"
    good = {"occupied": [0, 1], "n_rows": [5, 5], "n_agreeing": [0, 5]}
    bins = content["bins"] | good | counts
    path.write_text(json.dumps(content | {"bins": bins}))
    if message is None:
        assert tc.load(path).rule_agreement_ == 0.5
        return
    with pytest.raises(ValueError, match=message):
        tc.load(path)
