"""The report: what is filled into the page."""

from __future__ import annotations

import html
import os
import platform
from datetime import date
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from .._base import SavedEstimator
from .._util import format_count, listed
from .._util.pages import asset, content_hash, write_page
from .._util.validation import is_number
from .._util.words import printable
from ..export.contrasts import MAX_CONTRASTS
from ..tree import cluster_colors, format_share
from ..tree.words import is_written_in_full
from .costs import (
    UNKNOWN_REFERENCE,
    Changes,
    Quality,
    changes_of,
    compared_with,
    quality_of,
)
from .drawing import bar_svg, cost_svg, title_of, tree_lists
from .names import cluster_names
from .rows import ReportRows

_MAX_RULES = 4
_MAX_SHOWN = 8
_MAX_SOURCES = 3
_NOT_SAVED = "not in the model file"
_UNITS = {
    "standard": "standard deviations of the columns",
    "robust": "interquartile ranges of the columns",
}


def report(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    previous: Any = None,
    title: str | None = None,
    exemplars: int = 3,
) -> None:
    """Write one page about a model for those who decide, to read or to print.

    It says what was asked, how good the clusters are beside the model's reference (free clusters,
    those of k-means, unless labels, centers or an estimator were given; by number of leaves, where
    the model has a `cost_path_`), draws the tree, and has a card for each cluster: a short name
    made of its most telling conditions, its size, its rules, what sets it apart and its most
    typical rows. It ends with the settings and versions. The file needs no network, no other file
    and no script; browsers print it, or save it as PDF.

    Parameters
    ----------
    model : estimator
        A fitted model of this package with `profile`: all but `KernelKMeans`.
    X : array-like or frame of shape (n_samples, n_features)
        Rows with all columns of the fit, as a rule those of the fit. Sizes, contrasts and exemplars
        are theirs, each row counted once, whatever weights the fit had. Costs are those of the fit:
        where X has other rows the page says so.
    path : str or path-like
        The file; one that is there is replaced.
    previous : estimator, default=None
        An older model that predicts clusters of the same rows: the page then says which clusters
        continue which, where their rows were before, and what both cost.
    title : str, default=None
        Title of the page; None: "Cluster report".
    exemplars : int, default=3
        Rows of X to show of each cluster, those nearest to its mean, by their numbers from 0. They
        are written into the file: 0 leaves them out.

    Raises
    ------
    NotFittedError
        If the model or `previous` is not fitted.
    ValueError
        If X is without rows or holds what `predict` refuses, or `exemplars` is negative.
    TypeError
        If the model has no `profile`, `previous` no `predict`, `exemplars` is not an int, or X is
        sparse.
    OSError
        If the file cannot be written.

    Notes
    -----
    The name of a cluster has the condition of its leaves that most of its rows and fewest of the
    others meet, and a second one if that tells clearly more; of trees with weighted sums, and of
    `Douglas`, what sets the cluster apart. `rename_clusters` gives names of your own.
    """
    _check_arguments(model, previous, exemplars)
    rows = ReportRows(model, X)
    names = cluster_names(rows)
    style = asset(__package__, "report.css") + _colors(len(rows.classes))
    tree, note = "", ""
    if rows.tree is not None and rows.tree.n_leaves > 1:
        tree, note = tree_lists(rows.tree, names, rows.leaves)
        if not is_written_in_full(rows.tree):
            note = f"{note} Of weighted sums the largest terms are shown, to three digits.".lstrip()
    parts = {
        "title": html.escape(printable("Cluster report" if title is None else title)),
        "style": style,
        "style hash": content_hash(style),
        "asked": _asked(model, rows),
        "quality": _quality(quality_of(model, rows), rows),
        "tree": f"<h2>The tree</h2>{tree}{_paragraph(note)}" if tree else "",
        "cards": "".join(_cards(rows, names, exemplars)),
        "changes": "" if previous is None else _changes(changes_of(rows, previous, X), rows, names),
        "settings": _settings(model),
    }
    write_page(path, asset(__package__, "report.html"), parts)


def _check_arguments(model: Any, previous: Any, exemplars: Any) -> None:
    """Raise TypeError, ValueError or NotFittedError if there is no report of these."""
    if not (isinstance(model, SavedEstimator) and hasattr(model, "profile")):
        raise TypeError(
            f"report takes a fitted model of this package with a tree or cells, not "
            f"{_shown(model)}. Of the clusters of another model it takes a tree: "
            'BestTree(objective="labels", reference=model.predict(X)).fit(X).'
        )
    if not is_number(exemplars, Integral):
        raise TypeError(f"exemplars must be an int of 0 or more. Got {exemplars!r} instead.")
    if exemplars < 0:
        raise ValueError(f"exemplars must be 0 or more. Got {exemplars} instead.")
    if previous is not None and (isinstance(previous, type) or not hasattr(previous, "predict")):
        raise TypeError(f"previous must be a fitted model, not {_shown(previous)}.")
    check_is_fitted(model)
    if isinstance(previous, BaseEstimator):
        check_is_fitted(previous)


def _shown(value: Any) -> str:
    """Return what was given in place of a model, in words."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return repr(value) if isinstance(value, str) else type(value).__name__


def _colors(k: int) -> str:
    """Return a rule for the colour of each cluster."""
    return "".join(f".c{c} {{ --own: {color}; }}\n" for c, color in enumerate(cluster_colors(k)))


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>" if text else ""


def _cells(texts: list[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"


def _asked(model: Any, rows: ReportRows) -> str:
    """Return what was asked, and of which rows."""
    params = model.get_params(deep=False)
    texts = [_sizes_text(rows)]
    wanted = []
    if params.get("n_clusters") is not None:
        wanted.append(format_count(params["n_clusters"], "cluster"))
    leaves = params.get("max_leaves")
    if leaves is not None:
        limit = f"at most {format_count(leaves, 'leaf', 'leaves')}"
        wanted.append("any number of leaves" if leaves == np.inf else limit)
    scale = params.get("scale")
    units = (
        _UNITS.get(scale)
        if isinstance(scale, str)
        else "the columns' own units"
        if scale is None
        else "given units"
    )
    asked = f"Asked of the method {type(model).__name__}"
    asked += f": {' and '.join(wanted)}" if wanted else ""
    texts.append(f"{asked}. Differences between rows count in {units}.")
    tested = [rows.names[feature] for feature in model._needed_features.tolist()]
    texts.append(
        f"The rules look at {format_count(len(tested), 'column')}: {listed(tested)}."
        if tested
        else "There are no rules: all rows are in one cluster."
    )
    texts.append(_whose_text(rows))
    return "".join(map(_paragraph, texts))


def _sizes_text(rows: ReportRows) -> str:
    """Return how many rows and clusters there are."""
    k, n_columns = len(rows.classes), len(rows.names)
    clusters = format_count(k, "cluster")
    if rows.n_filled < k:
        clusters = f"{rows.n_filled:,} of {clusters}"
    is_are = "is" if rows.n_rows == 1 else "are"
    return (
        f"{format_count(rows.n_rows, 'row')} of {format_count(n_columns, 'column')} {is_are} in "
        f"{clusters}{', each with rules that people can read' if k > 1 else ''}."
    )


def _whose_text(rows: ReportRows) -> str:
    """Return which rows the figures are of; "" if all are those of the fit, each counted once."""
    tree, texts = rows.tree, []
    if tree is None:
        return ""
    n_fit = int(tree.n_node_samples[0])
    if not rows.are_of_fit:
        texts.append(
            f"The model was fitted to {format_count(n_fit, 'row')}, but this report is about other "
            "rows: sizes, what sets clusters apart and typical rows are of these."
        )
    elif n_fit < rows.n_rows:
        left_out = format_count(rows.n_rows - n_fit, "row")
        texts.append(f"{left_out} did not count in the fit, and have clusters by the rules alone.")
    if tree.is_weighted:
        texts.append(
            "The rows of the fit had weights, by which costs are summed; sizes, what sets clusters "
            "apart and typical rows count every row once."
        )
    return " ".join(texts)


def _quality(quality: Quality, rows: ReportRows) -> str:
    """Return how good the clusters are beside the reference."""
    if len(rows.classes) == 1:
        return _paragraph("With one cluster for all rows there is nothing to compare.")
    beside, texts = quality.beside, []
    if quality.of_fit and not rows.are_of_fit:
        texts.append("This is about the rows of the fit, not about those of this report.")
    if quality.ratio is not None:
        more = quality.ratio - 1.0
        is_same = abs(more) < 5e-4
        times = "" if is_same else f"{quality.ratio:.4g} times "
        by = "" if is_same else f": {format_share(abs(more))} {'more' if more > 0 else 'less'}"
        where = "" if quality.of_fit or rows.are_of_fit else ", on the rows of this report"
        texts.append(
            f"The {quality.word} of these clusters, the spread of the rows in them, is {times}"
            f"that of {beside.name}{beside.note}{by}{where}."
        )
    if quality.agreement is not None:
        rows_are = "weight is where" if quality.is_weighted else "rows are where"
        put = "puts" if beside.is_one else "put"
        texts.append(
            f"{format_share(quality.agreement)} of the {rows_are} {beside.name} {put} "
            f"{'it' if quality.is_weighted else 'them'}."
        )
    if quality.explained is not None:
        texts.append(
            f"Beside one cluster for all rows the {quality.word} is "
            f"{format_share(quality.explained)} lower."
        )
    return _paragraph(" ".join(texts) or "Not known for this model.") + cost_svg(quality)


def _cards(rows: ReportRows, names: list[str], n_exemplars: int) -> list[str]:
    """Return a card for each cluster."""
    rules = rows.rules(_MAX_RULES)
    strongest = max((abs(c.amount) for own in rows.contrasts for c in own), default=1.0)
    features, k = rows.shown_features(_MAX_SHOWN), len(rows.classes)
    exemplars = rows.exemplars(n_exemplars) if n_exemplars else [[] for _ in rows.classes]
    cards = []
    for code, label in enumerate(rows.classes):
        size = int(rows.sizes[code])
        share = size / max(rows.n_rows, 1)
        shown, n_rules = rules[code]
        items = [f"<li>{html.escape(rule)}</li>" for rule in shown]
        if n_rules > len(shown):
            items.append(f"<li>and {format_count(n_rules - len(shown), 'more rule')}</li>")
        parts = [
            f'<section class="card c{code}" id="c{code}"><h3>{html.escape(names[code])}</h3>'
            f'<p class="size">{html.escape(title_of(label))} · {format_count(size, "row")} '
            f"({html.escape(format_share(share))}){bar_svg(share, 'own')}</p>"
        ]
        if k > 1:
            title = ("No rule leads here", "Rule", "Any of these rules")[min(n_rules, 2)]
            parts.append(f"<h4>{title}</h4><ul>{''.join(items)}</ul>")
        contrasts = rows.contrasts[code][:MAX_CONTRASTS]
        if not contrasts and size:
            parts.append('<h4>What it is like</h4><table class="like">')
            parts.append(_cells(["", "mean or most frequent"], "th"))
            for feature in features:
                texts = [rows.names[feature], rows.usual(code, feature)]
                parts.append(_cells([html.escape(text) for text in texts]))
            parts.append("</table>")
        if contrasts:
            parts.append('<h4>What sets it apart</h4><table class="apart">')
            parts.append(_cells(["mean or share", "here", "elsewhere", ""], "th"))
            for contrast in contrasts:
                name = rows.names[contrast.feature]
                if contrast.level is not None and rows.column(contrast.feature).kind != "flag":
                    name += f" = {printable(contrast.level)}"
                texts = [html.escape(text) for text in (name, contrast.here, contrast.elsewhere)]
                parts.append(_cells([*texts, bar_svg(contrast.amount / strongest, "contrast")]))
            parts.append("</table>")
        if exemplars[code]:
            parts.append('<h4>Most typical rows, numbered from 0</h4><table class="rows">')
            parts.append(_cells(["row", *(html.escape(rows.names[f]) for f in features)], "th"))
            for row in exemplars[code]:
                cells = [html.escape(rows.cell_text(feature, row)) for feature in features]
                parts.append(_cells([f"{row:,}", *cells]))
            parts.append("</table>")
        cards.append("".join([*parts, "</section>"]))
    return cards


def _changes(changes: Changes, rows: ReportRows, names: list[str]) -> str:
    """Return what changed against the older model."""
    before, now = changes.costs
    cost = (
        f"cost {format_share(abs(now / before - 1))} {'more' if now > before else 'less'}"
        if before and now != before
        else "cost the same"
    )
    text = (
        f"{format_share(changes.stayed)} of the rows stay in the cluster that continues theirs. On "
        f"these rows the clusters {cost} than before, each about its mean."
    ).replace("cost the same than", "cost the same as")
    lines = [_cells(["cluster", "rows", "continues", "rows before", "where its rows were"], "th")]
    for move in changes.moves:
        size = int(rows.sizes[move.code])
        # A single further one is written in place of "1 other".
        n_shown = len(move.sources) if len(move.sources) <= _MAX_SOURCES + 1 else _MAX_SOURCES
        sources = [
            f"{title_of(label)} ({format_share(n / size)})" for label, n in move.sources[:n_shown]
        ]
        if n_shown < len(move.sources):
            sources.append(f"{len(move.sources) - n_shown} others")
        texts = [
            f"{title_of(rows.classes[move.code])}: {names[move.code]}",
            f"{size:,}",
            "new" if move.old is None else title_of(move.old),
            f"{move.n_before:,}" if move.old is not None else "",
            ", ".join(sources),
        ]
        lines.append(_cells([html.escape(text) for text in texts]))
    gone = f"Without a successor: {', '.join(map(title_of, changes.gone))}." if changes.gone else ""
    return (
        "<h2>What changed against the older model</h2>"
        f"{_paragraph(text)}"
        f'<div class="wide"><table>{"".join(lines)}</table></div>{_paragraph(gone)}'
    )


def _settings(model: Any) -> str:
    """Return the method's parameters, and what it ran with."""
    params, lost = model.get_params(deep=False), model.unsaved_params
    if compared_with(model) == UNKNOWN_REFERENCE:
        lost |= {"reference"}
    lines = [
        f"<dt>{name}</dt><dd>{html.escape(_NOT_SAVED if name in lost else _value_text(value))}</dd>"
        for name, value in params.items()
    ]
    versions = (
        f"treeclust_rs {__version__}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"polars {pl.__version__}, scikit-learn {sklearn.__version__}"
    )
    return (
        f"<p>{type(model).__name__}, with these parameters:</p><dl>{''.join(lines)}</dl>"
        f"<p>Written on {date.today().isoformat()} with {html.escape(versions)}.</p>"
    )


def _value_text(value: Any) -> str:
    """Return the value of a parameter in a few words."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return printable(value)
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"an array of shape {tuple(shape)}"
    if isinstance(value, (list, tuple, dict)):
        text = printable(value)
        return text if len(text) < 200 else f"a {type(value).__name__} of {len(value):,}"
    return getattr(value, "__name__", type(value).__name__)
