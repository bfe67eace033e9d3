"""The page of a tree: what the file holds, and how it behaves in Chromium."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import mixed_trees
import treeclust_rs as tc
from browser import SIZE, blocks, chromium, differs, stored
from export_cases import random_case
from sizes import repeats
from treeclust_rs._data import FittedColumns, align_table, column_of
from treeclust_rs._data.times import time_zone
from treeclust_rs.export import to_html
from treeclust_rs.tree import ClusterTree
from trees import Builder, all_moves, balanced, chain, random_mixed

NAUGHTY = (
    '</script><script>window.hit=1</script><img src=x onerror="window.hit=1">\u2028\u2029{{data}}'
)


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def opened(browser, tmp_path):
    """Write the page of a tree and open it; no errors, and no requests to any other place."""
    contexts, errors = [], []

    def open_page(tree, X=None, scheme="light"):
        path = tmp_path / f"{len(contexts)}.html"
        to_html(tree, path, X, title="A tree")
        width, height = SIZE
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-GB"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.on("request", lambda request: errors.append(request.url))
        page.goto(path.as_uri())
        assert errors.pop(0) == path.as_uri()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


def small_tree(**changes) -> ClusterTree:
    """Four leaves: age <= 30, then a range of income or two thresholds."""
    X = np.column_stack([np.repeat(np.arange(10, 60, 10), 8), np.tile(np.arange(8), 5)])
    builder = Builder(X, [0] * 16 + [1] * 12 + [2] * 12)
    left = builder.split(0, 0, 30.0)
    builder.split(left, 1, interval=(2.0, 5.0))
    builder.split(left + 1, 1, 3.5)
    names = {"feature_names": ["age", "income"], "classes": ["young", "loyal", "rich"]}
    return builder.tree(**(names | changes))


def small_rows() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 70, 300)
    return pl.DataFrame({"age": ages, "income": rng.normal(4, 2, 300)})


def data_of(tree, path, X=None) -> dict:
    to_html(tree, path, X)
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


# ---- the file -------------------------------------------------------------------------------


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs


def tags_of(path) -> Tags:
    parser = Tags()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def test_names_and_values_are_no_markup(tmp_path):
    plain, naughty = tmp_path / "plain.html", tmp_path / "naughty.html"
    to_html(small_tree(), plain, small_rows(), title="x")
    tree = small_tree(feature_names=[NAUGHTY, "income"], classes=[NAUGHTY, "b", "<b>"])
    to_html(tree, naughty, small_rows().rename({"age": NAUGHTY}), title=NAUGHTY)
    assert tags_of(naughty).tags == tags_of(plain).tags
    assert tags_of(naughty).attributes == tags_of(plain).attributes
    assert "\u2028" not in naughty.read_text(encoding="utf-8")


def test_the_file_names_no_other_place(tmp_path):
    to_html(small_tree(), tmp_path / "tree.html")
    parser = tags_of(tmp_path / "tree.html")
    assert not {"link", "img", "iframe", "base"} & set(parser.tags)
    assert [value for name, value in parser.attributes if name in ("src", "href")] == ["#tree"]


@pytest.mark.filterwarnings("ignore:X has levels")
def test_the_bars_of_a_side_are_the_rows_of_the_child(tmp_path):
    for seed in range(repeats(12, 200)):
        tree, frame, _ = random_case(seed)
        if tree.missing_go_to_left is None:
            frame = frame.fill_nan(0.0).fill_null(0)
        nodes = data_of(tree, tmp_path / "tree.html", frame)["nodes"]
        table = table_of(tree, frame)
        counts = np.zeros((tree.n_nodes, len(tree.classes)), dtype=int)
        leaves = tree.apply(table.data)
        np.add.at(counts, (leaves, tree.leaf_clusters[leaves]), 1)
        for node in range(tree.n_nodes - 1, 0, -1):
            counts[tree.parent[node]] += counts[node]
        for node, content in zip(range(tree.n_nodes), nodes, strict=True):
            assert ("bars" in content) == (tree.kind[node] != 0 and counts[node].any())
            for side, child in enumerate((tree.children_left[node], tree.children_right[node])):
                found = np.zeros(len(tree.classes), dtype=int)
                for bar in content.get("bars", {"bars": []})["bars"]:
                    for code, n in bar["counts"]:
                        found[code] += n * (bar["side"] == side)
                if "bars" in content:
                    assert found.tolist() == counts[child].tolist(), (seed, node)


def test_cards_say_what_sets_a_cluster_apart_in_the_columns_own_units(tmp_path):
    rng = np.random.default_rng(0)
    cells = mixed_trees.random_cells(rng, 400)
    builder = mixed_trees.MixedBuilder(cells, (cells[:, 2] == 1).astype(int), 2)
    builder.test(0, 2, codes=[1])
    frame = mixed_trees.frame_of(cells, rng, unknown=False).with_columns(
        income=pl.Series(np.where(cells[:, 2] == 1, 52_300.0, 31_000.0)),
        age=pl.Series(np.where(cells[:, 2] == 1, np.nan, 30.0)),
    )
    tree = builder.tree()
    content = data_of(tree, tmp_path / "tree.html", frame)
    ours = content["clusters"][1]["contrasts"]
    assert ["income ↑", "mean 52300", "31000"] in ours
    assert ["age is missing", "100 %", "0 %"] in ours
    level = tree.column(2).level_text(1)
    assert [f"region = {level}", "100 %", "0 %"] in ours
    assert ["income ↓", "mean 31000", "52300"] in content["clusters"][0]["contrasts"]


def test_shares_are_rounded_as_in_texts(opened, tmp_path):
    builder = Builder(np.arange(2000.0)[:, None], [0] * 1575 + [1] * 425)
    builder.split(0, 0, 1574.5)
    tree = builder.tree()
    assert data_of(tree, tmp_path / "tree.html")["nodes"][0]["shares"] == ["78.8 %", "21.2 %"]
    assert "21.2 %" in str(tree)
    page = opened(tree)
    page.click("#node-0")
    assert "425 rows (21.2 %)" in page.inner_text("#details")


def test_model_writes_its_page(tmp_path):
    frame = small_rows()
    model = tc.IMM(n_clusters=3, random_state=0).fit(frame)
    model.to_html(tmp_path / "model.html", frame)
    text = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert "<title>IMM</title>" in text and '"bars"' in text


def test_too_many_leaves_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"1,001 leaves .*at most 1,000"):
        to_html(balanced(1001), tmp_path / "tree.html")
    with pytest.raises(FileNotFoundError):
        to_html(small_tree(), tmp_path / "nowhere" / "tree.html")
    with pytest.raises(ValueError, match="income"):
        to_html(small_tree(), tmp_path / "tree.html", small_rows().drop("income"))
    assert list(tmp_path.iterdir()) == []


# ---- in the browser -------------------------------------------------------------------------


def table_of(tree, frame):
    missing = tree.missing_go_to_left is not None
    fitted = FittedColumns(tree.column_kinds, tree.levels) if missing else None
    return align_table(
        frame,
        tree.feature_names,
        tree.n_features,
        estimator_name="page",
        needed=tree.tested_features,
        fitted=fitted,
    )


@pytest.mark.filterwarnings("ignore:X has levels")
def test_rows_are_traced_as_the_model_predicts(opened, tmp_path):
    page = opened(small_tree())
    for seed in range(repeats(50, 1000)):
        tree, frame, labels = random_case(seed)
        content = data_of(tree, tmp_path / "traced.html")
        keep = [label is not None for label in labels]
        if not any(keep):
            continue
        rows = table_of(tree, frame.filter(keep) if tree.missing_go_to_left is None else frame)
        columns = [column_of(rows, f).astype(float) for f in tree.tested_features.tolist()]
        cells = [[None if np.isnan(x) else x for x in row] for row in zip(*columns, strict=True)]
        leaves = page.evaluate(
            """([{ nodes, takesMissing }, rows]) =>
                rows.map((cells) => treeclust.wayOf(nodes, takesMissing, cells).pop())""",
            [content, cells],
        )
        known = [label for label in labels if label is not None]
        assert [tree.leaf_labels[leaf] for leaf in leaves] == known, f"seed {seed}"


def test_times_are_read_in_their_zone(opened):
    page = opened(small_tree())
    zone = ZoneInfo("Europe/Berlin")
    start = datetime(2024, 3, 30, 20, tzinfo=UTC)
    moments = [start + timedelta(minutes=50 * n, microseconds=n) for n in range(40)]
    column = {"kind": "datetime[Europe/Berlin]", "zone": "Europe/Berlin"}
    for moment in moments:
        local = moment.astimezone(zone).replace(tzinfo=None)
        for kind, text in ((column, local.isoformat()), ({"kind": "datetime[]"}, str(moment)[:-6])):
            found = page.evaluate("([kind, text]) => treeclust.read(kind, text)", [kind, text])
            assert found == mixed_trees.microseconds(moment), text
    for text, length in (("3d 4h", 273_600_000_000), ("-1h 30m", -5_400_000_000), ("5us", 5)):
        assert page.evaluate("text => treeclust.read({ kind: 'duration' }, text)", text) == length
    for text in ("soon", "3 weeks", "1d, 2h"):
        assert page.evaluate("text => isNaN(treeclust.read({ kind: 'duration' }, text))", text)


@pytest.mark.parametrize("zone", ["UTC+01:00", "-03:30", "Etc/GMT-5", "UTC", "Asia/Kolkata"])
def test_times_of_zones_with_a_fixed_offset_are_traced(opened, zone):
    moments = [datetime(2024, 1, 1 + n, tzinfo=UTC) for n in range(8)]
    times = np.array([[float(mixed_trees.microseconds(moment))] for moment in moments])
    builder = Builder(times, [0] * 4 + [1] * 4)
    builder.split(0, 0, float(times[3:5].mean()))
    page = opened(builder.tree(feature_names=["t"], column_kinds=[f"datetime[{zone}]"]))
    for n in (0, 3, 4, 7):
        local = moments[n].astimezone(time_zone(zone)).replace(tzinfo=None)
        page.fill("#value-0", local.isoformat(timespec="seconds"))
        assert page.inner_text("#way strong") == f"Cluster {n // 4}"
        exact = (local + timedelta(microseconds=5)).isoformat()
        found = page.evaluate("text => treeclust.read(treeclust.columns[0], text)", exact)
        assert found == times[n, 0] + 5


def test_the_page_says_which_rows_its_numbers_are_of(tmp_path):
    X = np.random.default_rng(0).normal(size=(150, 3))
    model = tc.BestTree(3, random_state=0).fit(X)
    for rows, tree, is_told in (
        (X, model, False),
        (X, model.tree_, False),
        (X[:40], model, True),
        (X * 3, model, True),
        (X * 3, model.tree_, True),
    ):
        to_html(tree, tmp_path / "tree.html", rows)
        text = (tmp_path / "tree.html").read_text(encoding="utf-8")
        note = f"150 rows of the fit; histograms and what sets clusters apart are of {len(rows)}"
        assert (note in text) == is_told
        assert ('id="rows"' in text) == is_told
    # Rows without weight count in no node.
    weights = np.repeat([1.0, 0.0], 75)
    model.fit(X, sample_weight=weights).to_html(tmp_path / "tree.html", X)
    assert 'id="rows"' not in (tmp_path / "tree.html").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("error")
def test_rows_without_names_suit_names_given_with_an_array(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = tc.BestTree(3, random_state=0).fit(X, feature_names=["a", "b"])
    cells = tc.Douglas(3, random_state=0, max_iter=2).fit(X, feature_names=["a", "b"])
    to_html(model.tree_, tmp_path / "tree.html", X)
    for each in (model, cells):
        each.to_html(tmp_path / "tree.html", X)
    named = tc.BestTree(3, random_state=0).fit(pl.DataFrame(X, schema=["a", "b"]))
    with pytest.warns(UserWarning, match="BestTree was fitted with feature names"):
        named.to_html(tmp_path / "tree.html", X)


def test_sparse_rows_are_refused_with_the_way_out(tmp_path):
    X = sparse.random_array((40, 5), density=0.5, rng=np.random.default_rng(0), format="csr")
    model = tc.ObliqueTree(2, metric="cosine", random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"^to_html takes dense rows: give X\.toarray\(\)"):
        model.to_html(tmp_path / "tree.html", X)
    model.to_html(tmp_path / "tree.html", X.toarray())


def test_a_click_shows_a_node_and_folds_a_branch(opened):
    page = opened(small_tree(), small_rows())
    page.click("#node-1")
    assert page.inner_text("#node-title") == "Node 1"
    assert "2 <= income <= 5?" in page.inner_text("#details")
    assert page.locator(".chart rect").count() > 5
    assert page.get_attribute("#node-1", "aria-selected") == "true"
    page.click("#node-1 .toggle")
    assert page.get_attribute("#node-1", "aria-expanded") == "false"
    assert page.locator("[role=treeitem]:visible").count() == 5
    page.click("#expand")
    assert page.locator("[role=treeitem]:visible").count() == 7
    page.hover("#node-2")
    assert "loyal" in page.inner_text("#tip")


def test_a_row_lights_up_its_path(opened):
    page = opened(small_tree(missing_go_to_left=[True, True] + [False] * 5))
    page.fill("#value-1", "4")
    assert page.inner_text("#way") == "Next: age"
    assert "wanted" in page.get_attribute("#value-0", "class")
    page.fill("#value-0", "25")
    lit = page.eval_on_selector_all("[role=treeitem].on", "boxes => boxes.map((box) => box.id)")
    assert lit == ["node-0", "node-1", "node-3"]
    assert page.inner_text("#way").startswith("Cluster young")
    page.fill("#value-0", "tall")
    assert page.get_attribute("#value-0", "aria-invalid") == "true"
    page.check("[aria-label='age is missing']")
    assert page.locator("#node-3.on").count() == 1
    page.click("text=Clear")
    page.wait_for_function("() => !document.querySelector('.on')")


def test_a_search_finds_folded_nodes(opened):
    page = opened(balanced(500))
    assert page.locator("[role=treeitem]:visible").count() < 60
    page.fill("#query", "cluster 3")
    n_leaves = int((balanced(500).leaf_clusters == 3).sum())
    assert page.inner_text("#found") == f"{n_leaves} nodes"
    assert page.locator(".match:visible").count() == n_leaves
    page.press("#query", "Enter")
    assert page.inner_text("#found") == f"1 of {n_leaves}"
    assert page.locator(".match[aria-selected=true]").bounding_box()["height"] > 20


def test_cards_lead_to_their_leaves(opened):
    page = opened(small_tree(), small_rows())
    card = page.locator(".card", has_text="loyal")
    card.locator("li button").first.click()
    assert page.locator("[aria-selected=true]").inner_text().startswith("Cluster loyal")
    card.locator("h3 button").click()
    assert page.locator(".match").count() == int((small_tree().leaf_clusters == 1).sum())


def test_keys_and_screen_readers_get_everywhere(opened):
    page = opened(small_tree())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the tree"
    page.locator("#node-0").focus()
    for key, node in (
        ("ArrowRight", 1), ("ArrowDown", 3), ("ArrowDown", 4), ("ArrowLeft", 1), ("ArrowLeft", 1),
        ("ArrowDown", 2), ("End", 6), ("Home", 0),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == f"node-{node}", key
    assert page.locator("#node-3").is_hidden()
    page.keyboard.press("Enter")
    assert page.inner_text("#node-title") == "Node 0"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    # One stop of the Tab key, and levels, places and names for those who do not see the lines.
    assert page.locator("[role=treeitem][tabindex='0']").count() == 1
    item = page.locator("#node-2")
    assert item.get_attribute("aria-level") == "2" and item.get_attribute("aria-posinset") == "2"
    assert item.get_attribute("aria-label").startswith("no: income <= 3.5? ")
    named = "controls => controls.every((c) => c.labels?.length || c.ariaLabel || c.innerText)"
    assert page.eval_on_selector_all("input, select, button", named)


def test_zoom(opened):
    page = opened(small_tree())
    width = page.locator("#node-0").bounding_box()["width"]
    page.click("#in")
    assert page.locator("#node-0").bounding_box()["width"] == pytest.approx(1.25 * width)
    page.click("#out")
    page.mouse.move(300, 300)
    page.keyboard.down("Control")
    page.mouse.wheel(0, 300)
    page.keyboard.up("Control")
    page.wait_for_function(
        "width => document.getElementById('node-0').getBoundingClientRect().width < width / 2",
        arg=width,
    )


def test_naughty_names_are_shown_and_do_nothing(opened):
    tree = small_tree(feature_names=[NAUGHTY, "income"], classes=[NAUGHTY, "b", "<b>"])
    page = opened(tree, small_rows().rename({"age": NAUGHTY}))
    page.click("#node-0")
    page.fill("#value-0", "25")
    page.hover("#node-4")
    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main script").count() == 0
    assert "<script>" in page.inner_text("#node-0")


PAGES = {
    "two": lambda: (Builder([[0.0], [1.0], [2.0]], [0, 0, 1]), "light"),
    "twelve": lambda: (mixed_trees.random_builder(5), "light"),
    "twelve-dark": lambda: (mixed_trees.random_builder(5), "dark"),
    "sums": lambda: (random_mixed(3, 10, builder_only=True)[0], "light"),
    "many": lambda: (balanced(500), "light"),
    "moves": lambda: (all_moves(), "light"),
    "deep": lambda: (chain(60), "dark"),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_look_as_stored(opened, name):
    given, scheme = PAGES[name]()
    X = None
    if isinstance(given, mixed_trees.MixedBuilder):
        X = mixed_trees.frame_of(given.X, np.random.default_rng(0), unknown=False)
    elif isinstance(given, Builder):
        if name == "two":
            given.split(0, 0, 1.5)
        X = given.X
    page = opened(given if isinstance(given, ClusterTree) else given.tree(), X, scheme)
    picture = page.screenshot()
    wanted = stored(name, picture)
    assert wanted.shape == (SIZE[1] // 20, SIZE[0] // 20, 3)
    assert differs(blocks(picture), wanted) < 0.02
    page.click("#theme")
    assert differs(blocks(page.screenshot()), wanted) > 0.5  # the measure sees another page
    # No box lies over another one, whatever the fonts.
    rectangles = np.array(
        page.eval_on_selector_all(
            "[role=treeitem]:not([hidden])",
            """boxes => boxes.map((box) => box.getBoundingClientRect())
                .map((box) => [box.left, box.top, box.right, box.bottom])""",
        )
    )
    left, top, right, bottom = rectangles.T
    meet = (left < right[:, None]) & (left[:, None] < right)
    meet &= (top < bottom[:, None]) & (top[:, None] < bottom)
    assert meet.sum() == len(rectangles) > 1
