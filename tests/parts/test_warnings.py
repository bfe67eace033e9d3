"""What fits in parts say of columns, and of rows that are others at the next reading."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc


def rows(n: int = 90) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=n) + np.arange(n) % 3 * 9
    return pl.DataFrame({"customer_id": rng.permutation(n), "x": x, "y": rng.normal(size=n) / 100})


@pytest.mark.parametrize(
    ("columns", "scale", "words"),
    [
        (["customer_id", "x"], "standard", "'customer_id' looks like an identifier"),
        (["x", "y"], None, "'x' has .* of the variance"),
        (["x", "y"], {"x": 1.0}, None),
        (["x", "y"], "standard", None),
        (["customer_id", "x", "y"], {"customer_id": 1e-3}, "'customer_id' looks like"),
    ],
)
def test_warnings_of_columns_are_those_of_memory(columns, scale, words) -> None:
    frame, found = rows().select(columns), []
    for fit in (
        lambda model: model.fit(frame),
        lambda model: tc.parts.fit_batches(model, [frame[:40], frame[40:]]),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(tc.ExKMC(3, scale=scale, random_state=0))
        found.append([str(warning.message) for warning in caught])
    assert found[0] == found[1]
    if words is None:
        assert not found[0]
    else:
        with pytest.warns(UserWarning, match=words):
            tc.parts.fit_batches(tc.ExKMC(3, scale=scale, random_state=0), frame)


def warnings_of(fit) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("n_first", [1, 40, 90])
def test_with_labels_or_centers_identifiers_and_numbers_in_text_are_told_as_in_memory(
    n_first: int,
) -> None:
    frame = rows().with_columns(
        order_id=pl.int_range(90) // 2,
        item_id=pl.int_range(90) * 0.5,
        row_id=pl.when(pl.int_range(90) % 4 > 0).then(pl.int_range(90) + 1.0),
        code=pl.Series([f"{i % 45}.50" for i in range(90)]),
        group=pl.int_range(90) % 3 - pl.int_range(90) // 80,
    )
    columns = frame.drop("group")
    batches = [columns[:n_first], columns[n_first:]]

    def model(**options) -> tc.ExKMC:
        return tc.ExKMC(scale="standard", random_state=0, **options)

    labels = frame["group"]
    found = warnings_of(lambda: model(reference=labels).fit(columns))
    assert found[0].startswith("Column 'code' holds text that looks like numbers")
    assert found[1].startswith("Columns 'customer_id', 'row_id' look like identifiers (integers")
    labelled = [frame[:n_first], frame[n_first:]]
    assert sorted(found) == sorted(
        warnings_of(lambda: tc.parts.fit_batches(model(), labelled, reference="group"))
    )
    centers = model(n_clusters=3).fit(columns.drop("code")).cluster_centers_
    frames = [batch.drop("code") for batch in batches]
    found = warnings_of(lambda: model(reference=centers).fit(columns.drop("code")))
    assert len(found) == 1
    assert found == warnings_of(lambda: tc.parts.fit_batches(model(reference=centers), frames))


@pytest.mark.parametrize("reading", [2, 3, 4, 5, 6])
def test_other_rows_are_told_at_every_reading(reading: int) -> None:
    frame, asked = rows().select("x", "y"), 0

    def batches() -> list[pl.DataFrame]:
        nonlocal asked
        asked += 1
        return [frame[:40], frame[40 : 70 if asked == reading else 90]]

    model = tc.ExKMC(3, scale="standard", base_tree=None, random_state=0)
    with pytest.raises(ValueError, match=r"batches has .* rows now and had"):
        tc.parts.fit_batches(model, batches, cache=None)
    assert not hasattr(model, "tree_")


def test_warnings_name_the_line_of_the_user() -> None:
    frame = rows().with_columns(group=pl.int_range(90) // 15, other=pl.int_range(90) % 2)
    whole = frame.drop("group", "other")

    def by_hand(model: tc.ExKMC) -> None:
        fit = tc.parts.Fit(model, feature_names=whole.columns)
        while (question := fit.question()) is not None:
            fit.tell(question.answer(whole, part_id=0))
        fit.result()

    few = {"max_leaves": 2, "base_tree": None, "random_state": 0}
    found = set()
    for fit in (
        lambda: tc.parts.fit_batches(tc.ExKMC(3, random_state=0), whole),
        lambda: tc.parts.fit_batches(tc.ExKMC(), frame, reference="group"),
        lambda: tc.parts.fit_batches(tc.ExKMC(**few), frame.drop("group"), reference="other"),
        lambda: by_hand(tc.ExKMC(3, random_state=0)),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        assert {warning.filename for warning in caught} == {__file__}
        found |= {str(warning.message).split()[0] for warning in caught}
    assert len(found) > 1, found
