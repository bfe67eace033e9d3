"""Expressions of polars, and the Python code that builds them, on random models."""

from __future__ import annotations

import polars as pl
import pytest

import treeclust_rs as tc
from douglas_models import IRIS, quick
from export_cases import random_case
from sizes import repeats
from treeclust_rs.export import to_polars_code, to_polars_expr
from trees import balanced, chain


def built(code: str) -> pl.Expr:
    """Run the code as a module of its own would."""
    names: dict[str, object] = {}
    exec(compile(code, "cluster.py", "exec"), names)
    expression = names["cluster"]
    assert isinstance(expression, pl.Expr)
    return expression


def test_random_models_agree_and_their_code_is_the_same_expression() -> None:
    for seed in range(repeats(50, 1000)):
        tree, frame, labels = random_case(seed)
        expression = to_polars_expr(tree)
        assert frame.select(expression).to_series().to_list() == labels, f"seed {seed}"
        assert built(to_polars_code(tree)).meta.eq(expression), f"seed {seed}"


def test_code_of_deep_and_of_tiny_trees() -> None:
    for tree in (chain(200), balanced(9), balanced(1)):
        assert built(to_polars_code(tree)).meta.eq(to_polars_expr(tree))
    with pytest.raises(ValueError, match="too large for a polars expression"):
        to_polars_code(chain(400))


def test_code_of_cells_agrees_with_their_expression() -> None:
    model = quick().fit(IRIS)
    gaps = IRIS.with_columns(
        pl.when(pl.col("pw") > 2).then(None).otherwise(pl.col("pw")).alias("pw")
    )
    for frame in (IRIS, gaps):
        found = frame.select(built(model.to_polars_code()))
        assert found.equals(frame.select(model.to_polars()))


def test_code_is_plain_to_read() -> None:
    frame = pl.DataFrame({"age": [20, 22, 60, 61], "plan": ["a", "b", "a", "b"]})
    model = tc.ExKMC(2).fit(frame.select("age")).rename_clusters({0: "young", 1: "old"})
    assert model.to_polars_code() == to_polars_code(model)
    assert "column_1 = pl.col('age').cast(pl.Float64)\n" in to_polars_code(model)
    header = "# The cluster of a row, written by treeclust_rs: frame.with_columns(cluster)\n"
    assert to_polars_code(model).startswith(f"{header}import polars as pl\n\ncolumn_1 = ")
