"""`predict` and `explain` need only the columns that the model looks at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from treeclust_rs.cli import main

NAMES = ["age", "noise", "income", "city"]
MASK = np.array([True, False, True, False])


def numbers() -> np.ndarray:
    """Clusters in columns 0 and 2; the others are noise of no use."""
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0, 0, 0], [10, 0, 0, 0], [0, 0, 10, 0]], dtype=float)
    return centers[np.arange(60) % 3] + rng.normal(0, 0.1, (60, 4))


def models() -> list:
    reference = np.arange(60) % 3
    return [
        tc.IMM(reference=reference),
        tc.Douglas(3, feature_mask=MASK, max_iter=20, random_state=0),
        tc.IMM(1),
    ]


@pytest.mark.parametrize("place", range(3), ids=["tree", "Douglas", "one leaf"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_other_columns_may_be_absent_empty_or_text(place, suffix, folder, capsys):
    frame = pl.DataFrame(numbers(), schema=NAMES)
    model = models()[place].fit(frame)
    model.save("m.json")
    odd = frame.with_columns(noise=pl.lit("high"), city=pl.lit(None, dtype=pl.String))
    narrow = frame.select("income", "age") if place < 2 else frame.select("city")
    lines = [f"{row:>2}  {line}" for row, line in enumerate(model.explain(frame))]
    for table in (odd, narrow):
        name = Path(f"t.{suffix}")
        table.write_csv(name) if suffix == "csv" else table.write_parquet(name)
        assert main(["predict", "m.json", str(name), "-o", "out.csv", "--force"]) == 0
        out = pl.read_csv("out.csv")
        assert out.columns == [*table.columns, "cluster"]
        assert out["cluster"].to_list() == model.labels_.tolist()
        capsys.readouterr()
        assert main(["explain", "m.json", str(name)]) == 0
        assert capsys.readouterr().out.splitlines() == lines
        assert main(["explain", "m.json", str(name), "--rows", "7,3"]) == 0


def test_columns_that_are_tested_are_required(folder, capsys):
    frame = pl.DataFrame(numbers(), schema=NAMES)
    models()[0].fit(frame).save("m.json")
    frame.drop("income", "city").write_csv("t.csv")
    assert main(["predict", "m.json", "t.csv"]) == 3
    assert (
        "t.csv has no column 'income'; its columns are 'age', 'noise'." in capsys.readouterr().err
    )
    frame.with_columns(income=pl.lit("high")).write_csv("t.csv")
    assert main(["predict", "m.json", "t.csv"]) == 3
    message = "t.csv: not numbers: 'income' (row 0: 'high'); rows count from 0."
    assert message in capsys.readouterr().err


def test_gaps_stop_models_that_have_no_way_for_them(folder, capsys):
    frame = pl.DataFrame(numbers(), schema=NAMES)
    gaps = frame.with_columns(income=pl.when(pl.col("age") < 5).then("income"))
    gaps.write_csv("t.csv")
    models()[0].fit(frame).save("m.json")
    assert main(["predict", "m.json", "t.csv", "-o", "out.csv"]) == 0
    assert "column 'income' has 20 missing cells." in capsys.readouterr().err
    models()[1].fit(frame).save("m.json")
    assert main(["predict", "m.json", "t.csv"]) == 3
    assert (
        "t.csv has empty, NaN or infinite cells: 'income' 20, the first in row 1 (rows count from "
        "0). Fill these cells or remove their rows first." in capsys.readouterr().err
    )
    assert main(["predict", "m.json", "t.csv", "--drift"]) == 2
    assert "a model of douglas has no tree" in capsys.readouterr().err


@pytest.mark.parametrize("place", range(2), ids=["tree", "Douglas"])
def test_a_model_without_names_takes_any_cells_in_the_other_places(place, folder, capsys):
    model = models()[place].fit(numbers())
    model.save("m.json")
    frame = pl.DataFrame(numbers(), schema=NAMES)
    frame.with_columns(noise=pl.lit("high"), city=None).write_csv("t.csv")
    assert main(["predict", "m.json", "t.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == model.labels_.tolist()
    frame.drop("city").write_csv("t.csv")
    assert main(["predict", "m.json", "t.csv"]) == 3
    assert (
        "t.csv has 3 columns; the model, fitted without names, reads 4" in capsys.readouterr().err
    )
