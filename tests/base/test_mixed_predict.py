"""Predicting rows with gaps and with levels that the fit did not have."""

import json
import warnings

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc


def fitted() -> tc.IMM:
    frame = pl.DataFrame({"age": [40] * 60, "region": ["north", "south", "west"] * 20})
    return tc.IMM(reference=[0, 1, 2] * 20).fit(frame)


def test_explain_names_unknown_levels_and_gaps():
    model = fitted()
    with pytest.warns(UserWarning, match="did not see in the fit") as caught:
        lines = model.explain(pl.DataFrame({"region": ["mars", "north"]}))
    assert len(caught) == 1
    assert "region = mars (unknown level)" in lines[0]
    assert "region = north" in lines[1]
    with pytest.warns(UserWarning, match="gaps where the fit had none") as caught:
        lines = model.explain(pl.DataFrame({"region": ["west", None]}))
    assert len(caught) == 1
    assert lines[1].endswith("region is missing")


def test_old_files_refuse_gaps_and_warn_of_nothing(tmp_path):
    model = tc.IMM(2, random_state=0).fit(np.arange(20.0).reshape(10, 2))
    path = tmp_path / "model.json"
    model.save(path)
    content = json.loads(path.read_text())
    content["tree"]["missing_go_to_left"] = None
    path.write_text(json.dumps(content))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="NaN"):
            tc.load(path).predict([[np.nan, np.nan]])


def test_drift_counts_gaps_and_unknown_levels():
    model = fitted()
    frame = pl.DataFrame({"region": ["mars", None, "north", "venus", "mars"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drift = model.drift(frame)
        unchanged = model.drift(frame[2:3])
    assert drift.to_dicts() == [
        {
            "column": "region",
            "missing": 1,
            "missing_in_fit": False,
            "unknown": 3,
            "unknown_levels": [{"level": "mars", "rows": 2}, {"level": "venus", "rows": 1}],
        }
    ]
    assert unchanged.schema == drift.schema
    assert unchanged.row(0) == ("region", 0, False, 0, [])


def test_drift_of_an_unknown_level_after_a_gap():
    drift = fitted().drift(pl.DataFrame({"region": [None, None, "mars"]}))
    assert drift.row(0) == ("region", 2, False, 1, [{"level": "mars", "rows": 1}])


def test_drift_of_numbers_and_of_one_leaf():
    frame = pl.DataFrame({"x": [1.0, 2.0, None, 4.0]})
    model = tc.IMM(reference=[0, 0, 1, 1]).fit(frame)
    assert model.drift(pl.DataFrame({"x": [None, 1]})).rows() == [("x", 1, True, 0, [])]
    assert tc.IMM(1).fit(frame).drift(frame).height == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "read_as of the model file must be an object"),
        ({"numbers": {}}, "lacks 'levels'"),
        ({"numbers": [], "levels": []}, "must hold an object 'numbers' and a list 'levels'"),
        ({"numbers": {"x": 1}, "levels": []}, "must hold units and names of columns as strings"),
    ],
)
def test_files_that_say_wrongly_how_columns_were_read(tmp_path, content, message):
    path = tmp_path / "model.json"
    fitted().save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"read_as": content}))
    with pytest.raises(ValueError, match=message):
        tc.load(path)
