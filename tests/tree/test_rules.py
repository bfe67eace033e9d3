"""The table of rules: printed whole, and a polars frame besides."""

import copy
import pickle
import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import treeclust_rs as tc
from treeclust_rs.tree import RuleTable
from trees import chain


def wide_rules():
    """Twenty rules, the last of some 400 characters."""
    tree = chain(20, n_features=19)
    names = [f"a column with a name of some length, {number}" for number in range(19)]
    return type(tree)(**(tree.arguments() | {"feature_names": names})).rules()


def test_print_and_notebook_show_every_word():
    rules = wide_rules()
    longest = max(rules["rule"], key=len)
    assert len(longest) > 400
    with pl.Config(tbl_width_chars=60_000):
        assert all(rule in str(rules) and rule in repr(rules) for rule in rules["rule"])
    html = rules._repr_html_()
    assert all(rule.replace(">", "&gt;").replace("<", "&lt;") in html for rule in rules["rule"])
    # In a narrow terminal they are wrapped.
    with pl.Config(tbl_width_chars=80):
        lines = str(rules).splitlines()
    assert max(map(len, lines)) <= 80
    words = re.findall(r"[\w.]+", " ".join(line.split("┆")[1] for line in lines if "┆" in line))
    assert words.count("some") == sum(rule.count("some") for rule in rules["rule"])


def test_printing_leaves_the_settings_of_polars_alone():
    with pl.Config(fmt_str_lengths=7, tbl_rows=3):
        before = pl.Config.state()
        str(wide_rules()), wide_rules()._repr_html_()
        assert pl.Config.state() == before


def test_it_is_used_as_a_frame():
    rules = wide_rules()
    frame = rules.frame
    assert isinstance(frame, pl.DataFrame)
    assert len(rules) == rules.height == frame.height == 20
    assert rules.filter(pl.col("depth") > 10).equals(frame.filter(pl.col("depth") > 10))
    assert rules["n"].sum() == frame["n"].sum()
    assert rules[:, "rule"].equals(frame["rule"])
    assert [column.name for column in rules] == frame.columns
    assert rules.equals(wide_rules()) and rules.equals(frame)
    assert not rules.equals(frame.head(3))
    assert pl.DataFrame(rules).equals(frame)
    assert pa.table(rules).num_rows == 20
    assert "write_csv" in dir(rules)
    with pytest.raises(AttributeError, match="nothing"):
        rules.nothing  # noqa: B018


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_rule_tables(copied):
    rules = wide_rules()
    twin = copied(rules)
    assert type(twin) is RuleTable
    assert twin.equals(rules)


def test_models_return_it():
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert type(tc.IMM(2, random_state=0).fit(X).tree_.rules()) is RuleTable
    assert type(tc.Douglas(2, max_iter=1, n_init=1, random_state=0).fit(X).rules()) is RuleTable
