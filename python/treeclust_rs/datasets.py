"""Tables to try things on."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.special import ndtri

from ._util import FloatArray, IntArray

_SEGMENTS = ("students", "families", "professionals", "retired", "traders", "occasional")
_SHARES = (0.18, 0.22, 0.2, 0.14, 0.08, 0.18)
_REGIONS = ("north", "east", "south", "west", "central", "islands")
_CHANNELS = ("app", "web", "store", "phone", "partner")
_PLANS = ("free", "basic", "plus", "premium")
_JOBS = (
    "student",
    "employee",
    "manager",
    "self-employed",
    "civil servant",
    "homemaker",
    "retired",
    "seeking work",
)

# By segment, in the order of `_SEGMENTS`: how often each level of the columns above occurs.
_REGION_OF = (
    (2, 5, 2, 2, 4, 0.2),
    (5, 3, 3, 5, 1, 0.5),
    (1, 6, 1, 2, 8, 0.2),
    (4, 1, 5, 3, 1, 2),
    (2, 3, 3, 3, 3, 0.3),
    (3, 3, 3, 3, 3, 1),
)
_CHANNEL_OF = (
    (12, 4, 1, 0.2, 1),
    (4, 5, 6, 1, 1),
    (7, 8, 1, 0.5, 1),
    (0.3, 1, 8, 6, 0.5),
    (0.5, 3, 0.5, 4, 12),
    (2, 4, 6, 1, 2),
)
_PLAN_OF = (
    (12, 5, 1, 0.1),
    (1, 6, 9, 2),
    (0.3, 2, 6, 10),
    (3, 10, 2, 0.5),
    (0.1, 0.5, 5, 9),
    (14, 3, 0.5, 0.1),
)
_JOB_OF = (
    (16, 2, 0.1, 0.3, 0.1, 0.1, 0.01, 1),
    (0.3, 9, 2, 2, 4, 4, 0.1, 0.5),
    (0.1, 6, 9, 2, 3, 0.1, 0.05, 0.1),
    (0.01, 0.3, 0.1, 0.4, 0.1, 2, 16, 0.05),
    (0.05, 0.5, 2, 14, 0.1, 0.1, 0.2, 0.05),
    (1, 7, 1, 1, 2, 1, 1, 2),
)
_AGE_OF = ((22, 3), (41, 7), (36, 6), (70, 6), (46, 9), (43, 15))
"""Years: mean and standard deviation."""
_INCOME_OF = ((11e3, 0.4), (46e3, 0.35), (82e3, 0.35), (27e3, 0.3), (70e3, 0.7), (38e3, 0.5))
"""Median, and standard deviation of the logarithm."""
_SPEND_OF = ((24, 0.6), (140, 0.5), (95, 0.6), (60, 0.5), (900, 0.9), (9, 0.8))
_VISITS_OF = (9, 7, 5, 3, 12, 0.7)
"""A month, on average."""
_NEWSLETTER_OF = (0.15, 0.7, 0.3, 0.6, 0.85, 0.08)
_FIRST_YEARS = (2.0, 7.0, 5.0, 11.0, 4.0, 6.0)
"""The longest that customers of a segment may have been there."""

_GAPS = {
    "region": 0.08,
    "channel": 0.1,
    "occupation": 0.2,
    "age": 0.12,
    "income": 0.35,
    "monthly_spend": 0.1,
    "visits": 0.15,
    "newsletter": 0.25,
    "signup": 0.05,
    "last_order": 0.2,
}
"""The share of missing cells."""

_TODAY = np.datetime64("2024-07-01T00:00:00", "us")


def make_customers(
    n_samples: int = 50_000, *, random_state: int = 0, with_segment: bool = False
) -> pl.DataFrame:
    """Make a table of customers, such as a database gives it: texts, dates, flags and gaps.

    Parameters
    ----------
    n_samples : int, default=50_000
        Number of rows.
    random_state : int, default=0
        Seed. The same seed gives the same table everywhere.
    with_segment : bool, default=False
        Whether a last column, `segment`, says which of six kinds of customers a row was drawn from:
        the other columns depend on it. A real table would not have it.

    Returns
    -------
    polars.DataFrame
        The columns `customer_id` (Int64, all different), `region`, `channel`, `occupation`
        (String), `plan` (Enum, from free to premium), `age` (Int64, years), `income` and
        `monthly_spend` (Float64, money, skewed), `visits` (Int64, a month), `newsletter` (Boolean),
        `signup` (Date), `last_order` (Datetime with the time zone UTC). From `region` on 15 % of
        the cells are missing: most of `income`, none of `plan`, and `last_order` also where there
        was none yet.

    Raises
    ------
    ValueError
        If `n_samples` is less than 1, or `random_state` less than 0.

    Examples
    --------
    >>> from treeclust_rs.datasets import make_customers
    >>> table = make_customers(1_000)
    >>> table.shape, table["newsletter"].null_count()
    ((1000, 12), 235)
    """
    if n_samples < 1 or random_state < 0:
        raise ValueError(
            "n_samples must be at least 1 and random_state at least 0, got "
            f"{n_samples} and {random_state}."
        )
    # Only uniform numbers are drawn: their bits are the same in every version of numpy.
    rng = np.random.Generator(np.random.PCG64(random_state))
    segment = _drawn(rng, np.tile(np.asarray(_SHARES), (n_samples, 1)))

    def level(names: tuple[str, ...], of: tuple[tuple[float, ...], ...]) -> pl.Series:
        return pl.Series(np.asarray(names)[_drawn(rng, np.asarray(of, dtype=float)[segment])])

    def normal() -> FloatArray:
        return np.asarray(ndtri(np.clip(rng.random(n_samples), 1e-12, 1 - 1e-12)))

    def money(of: tuple[tuple[float, float], ...]) -> FloatArray:
        median, spread = np.asarray(of)[segment].T
        return np.asarray(median * np.exp(spread * normal()))

    def flag(of: tuple[float, ...]) -> pl.Series:
        return pl.Series(rng.random(n_samples) < np.asarray(of)[segment])

    columns = {
        "region": level(_REGIONS, _REGION_OF),
        "channel": level(_CHANNELS, _CHANNEL_OF),
        "occupation": level(_JOBS, _JOB_OF),
        "plan": level(_PLANS, _PLAN_OF).cast(pl.Enum(_PLANS)),
    }
    mean, deviation = np.asarray(_AGE_OF, dtype=float)[segment].T
    age = np.clip(np.rint(mean + deviation * normal()), 16, 99).astype(np.int64)
    visits = -np.log1p(-rng.random(n_samples)) * np.asarray(_VISITS_OF)[segment]
    columns |= {
        "age": pl.Series(age),
        "income": pl.Series(np.rint(money(_INCOME_OF) / 100) * 100),
        "monthly_spend": pl.Series(np.rint(money(_SPEND_OF) * 100) / 100),
        "visits": pl.Series(np.floor(visits).astype(np.int64)),
        "newsletter": flag(_NEWSLETTER_OF),
    }
    years = np.sqrt(rng.random(n_samples)) * np.asarray(_FIRST_YEARS)[segment]
    signup = _TODAY - _microseconds(years * 365.25)
    days_ago = np.minimum(-np.log1p(-rng.random(n_samples)) * 40, years * 365.25)
    columns |= {
        "signup": pl.Series(signup.astype("datetime64[D]")),
        "last_order": pl.Series(_TODAY - _microseconds(days_ago))
        .dt.truncate("1s")
        .dt.replace_time_zone("UTC"),
    }
    frame = pl.DataFrame(columns)
    never = (visits < 0.25) & (rng.random(n_samples) < 0.5)
    for name, share in _GAPS.items():
        missing = rng.random(n_samples) < share
        if name == "last_order":
            missing |= never
        frame = frame.with_columns(pl.when(pl.Series(~missing)).then(pl.col(name)).alias(name))
    ids = np.argsort(rng.random(n_samples), kind="stable") + 100_000
    return frame.select(
        pl.Series("customer_id", ids),
        pl.all(),
        *([pl.Series("segment", np.asarray(_SEGMENTS)[segment])] if with_segment else []),
    )


def _drawn(rng: np.random.Generator, weights: FloatArray) -> IntArray:
    """Draw a number for every row, by the weights in its row."""
    ends = weights.cumsum(axis=1)
    drawn = rng.random(len(weights)) * ends[:, -1]
    return np.asarray((drawn[:, None] >= ends[:, :-1]).sum(axis=1))


def _microseconds(days: FloatArray) -> IntArray:
    return (days * 86_400e6).astype(np.int64).astype("timedelta64[us]")
