"""The tables of `treeclust_rs.datasets`."""

import polars as pl
import pytest

from treeclust_rs.datasets import make_customers


def test_customers_are_the_same_everywhere():
    table = make_customers(50_000, with_segment=True)
    assert table.shape == (50_000, 13)
    assert table.equals(make_customers(50_000, with_segment=True))
    # As first made: README and benches speak of this table.
    assert table["age"].sum() == 1_819_212
    sizes = table["segment"].value_counts().sort("segment")["count"].to_list()
    assert sizes == [10_836, 8_946, 10_067, 7_051, 9_011, 4_089]


def test_customers_have_texts_dates_flags_gaps_and_an_id():
    table = make_customers(20_000)
    assert table["customer_id"].n_unique() == table.height
    assert table.schema["plan"] == pl.Enum(["free", "basic", "plus", "premium"])
    kinds = [table.schema[name] for name in ("region", "newsletter", "signup", "last_order")]
    assert kinds == [pl.String, pl.Boolean, pl.Date, pl.Datetime("us", "UTC")]
    gaps = table.drop("customer_id").null_count().row(0)
    assert sum(gaps) / (11 * table.height) == pytest.approx(0.15, abs=0.005)
    income = table["income"].drop_nulls()
    assert income.mean() > 1.15 * income.median()


def test_another_seed_gives_another_table_and_one_row_is_enough():
    assert not make_customers(50).equals(make_customers(50, random_state=1))
    assert make_customers(1).height == 1


@pytest.mark.parametrize("wrong", [{"n_samples": 0}, {"random_state": -1}])
def test_sizes_and_seeds_are_checked(wrong):
    with pytest.raises(ValueError, match="n_samples must be at least 1 and random_state at least"):
        make_customers(**wrong)
