"""Polars expressions under each engine of polars."""

ENGINES = ("eager", "in-memory", "streaming")


def evaluate(frame, expression, engine):
    if engine == "eager":
        return frame.select(expression).to_series()
    return frame.lazy().select(expression).collect(engine=engine).to_series()
