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
