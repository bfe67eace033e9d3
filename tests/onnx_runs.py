"""Running ONNX models on rows as tests have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

NO_LEVEL = "no level at all"


def feed_of(session: Any, rows: Any) -> dict[str, np.ndarray]:
    """Return the inputs of a session: of an array as it is, of a polars frame column by column."""
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    if not isinstance(rows, pl.DataFrame):
        (given,) = session.get_inputs()
        return {given.name: np.asarray(rows).astype(types[given.type])}
    feed = {}
    for given in session.get_inputs():
        cells = rows[given.name]
        if given.type == "tensor(string)":
            texts = cells.cast(pl.String).fill_null(NO_LEVEL)
            column = np.array(texts.to_list(), dtype=object)
        else:
            if cells.dtype == pl.Date:
                cells = cells.cast(pl.Datetime("us"))
            if cells.dtype.is_temporal():
                unit = cells.dtype.time_unit
                cells = cells.to_physical() // (1000 if unit == "ns" else 1)
            column = cells.cast(pl.Float64).fill_null(np.nan).to_numpy().astype(types[given.type])
        feed[given.name] = column[:, np.newaxis]
    return feed


def run_onnx(model: Any, rows: Any) -> np.ndarray:
    """Return the labels that onnxruntime computes."""
    from onnxruntime import InferenceSession

    session = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (labels,) = session.run(None, feed_of(session, rows))
    return np.asarray(labels)
