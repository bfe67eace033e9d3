"""Times as microseconds, time zones, and thresholds at boundaries of calendar and clock."""

import datetime as dt
import zoneinfo

import numpy as np
import pytest

from treeclust_rs._data.times import microseconds, threshold_in_gap, time_zone, zone_name

DAY = 86_400_000_000
EPOCH = dt.datetime(1970, 1, 1)
ONE = dt.timedelta(microseconds=1)
ZONES = [
    "Europe/Berlin",
    "America/Sao_Paulo",  # midnight does not exist on some days
    "Australia/Lord_Howe",  # half an hour
    "Pacific/Apia",  # 30 December 2011 does not exist
    "Asia/Kolkata",
    "+05:30",
    "UTC",
]
SPACES = {"year": 12, "quarter": 3, "month": 1}
CLOCK = {"day": DAY, "hour": DAY // 24, "minute": 60_000_000, "second": 1_000_000}


def at(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - EPOCH) // ONE


def local_boundaries(unit: str, low: int, high: int, zone: dt.tzinfo | None) -> list[int]:
    """Return all boundaries of a unit by the clocks, at least those of the gap."""
    if unit in SPACES or unit in ("day", "hour"):
        low, high = low - 2 * DAY, high + 2 * DAY
    else:
        # What the clocks show from begin to end, also while they are moved.
        ends = [time + shift for time in (low, high) for shift in offsets(time, zone)]
        low, high = min(ends), max(ends)
    if unit in SPACES:
        years = range((EPOCH + low * ONE).year, (EPOCH + high * ONE).year + 1)
        months = [dt.datetime(y, m, 1) for y in years for m in range(1, 13, SPACES[unit])]
        return [(month - EPOCH) // ONE for month in months]
    width = CLOCK[unit]
    return list(range(low - low % width, high + width, width))


def instants(local: int, zone: dt.tzinfo | None) -> list[int]:
    """Return the times at which clocks show a local time: none, one or two."""
    if zone is None:
        return [local]
    found = set()
    for fold in (0, 1):
        shown = (EPOCH + local * ONE).replace(tzinfo=zone, fold=fold)
        time = (shown.astimezone(dt.UTC).replace(tzinfo=None) - EPOCH) // ONE
        back = (EPOCH + time * ONE).replace(tzinfo=dt.UTC).astimezone(zone)
        if back.replace(tzinfo=None) == EPOCH + local * ONE:
            found.add(time)
    return sorted(found)


def best(times: list[int], low: int, high: int) -> int | None:
    inside = [t for t in times if 4 * (t - low) >= high - low and 4 * (high - t) >= high - low]
    return min(inside, key=lambda t: (abs(2 * t - low - high), t), default=None)


def enumerated(low: int, high: int, kind: str, zone: dt.tzinfo | None) -> int | None:
    """Return the best boundary of the coarsest unit, of all; None where a second has none."""
    units = list(CLOCK) if kind == "duration" else [*SPACES, *CLOCK]
    for unit in units[: units.index("day") + 1] if kind == "date" else units:
        locals_ = local_boundaries(unit, low, high, zone)
        found = [t for b in locals_ if len(times := instants(b, zone)) == 1 for t in times]
        time = best(found, low, high)
        if time is not None:
            return time - DAY if kind == "date" else time
    return low if kind == "date" else None


def offsets(time: int, zone: dt.tzinfo | None) -> list[int]:
    if zone is None:
        return [0]
    shown = (EPOCH + time * ONE).replace(tzinfo=dt.UTC).astimezone(zone)
    return [shown.utcoffset() // ONE]


def random_gap(rng: np.random.Generator, near: int) -> tuple[int, int]:
    width = int(10 ** rng.uniform(6.5, 14.5))
    low = near - int(width * rng.uniform(0, 1))
    if rng.random() < 0.5:  # at whole minutes
        low -= low % 60_000_000
        width += -width % 60_000_000
    return low, low + width


def transitions(zone: dt.tzinfo) -> list[int]:
    """Return the days on which the clocks are moved, of 2010 to 2020."""
    days = range(at("2010-01-01"), at("2020-01-01"), DAY)
    return [day for day in days if offsets(day, zone) != offsets(day + DAY, zone)] or [days[0]]


@pytest.mark.parametrize("name", [*ZONES, "", "date", "duration"])
def test_a_threshold_is_the_best_boundary_of_all(name):
    rng = np.random.default_rng(3)
    kind = name if name in ("date", "duration") else f"datetime[{name}]"
    zone = time_zone(name) if name in ZONES else None
    moved = transitions(zone) if zone else [at("2000-02-29")]
    for _ in range(400):
        near = moved[rng.integers(len(moved))] + int(rng.uniform(0, DAY))
        low, high = random_gap(rng, near)
        if kind == "date":
            low, high = low - low % DAY, high + DAY - high % DAY
        expected = enumerated(low, high, kind, zone)
        found = threshold_in_gap(low, high, kind)
        assert low <= found < high
        if expected is not None:
            assert found == expected, (low, high)


def test_gaps_below_a_second_have_the_middle():
    rng = np.random.default_rng(4)
    for _ in range(1000):
        low = at("2024-05-05T10:00:00.000001") + int(rng.integers(100))
        high = low + int(rng.integers(1, 1000))
        every = [t for t in range(low, high) if len(instants(t, None)) == 1]
        expected = best(every, low, high)
        for kind in ("datetime[]", "datetime[Europe/Berlin]", "duration"):
            assert threshold_in_gap(low, high, kind) == (low if expected is None else expected)


def test_times_that_the_clocks_show_twice_are_no_thresholds():
    # In Berlin, 2:00 to 3:00 comes twice: from 0:00 to 2:00 UTC.
    kind, inside = "datetime[Europe/Berlin]", at("2024-10-27T00:30")
    assert threshold_in_gap(inside, inside + DAY // 24, kind) == inside
    begin, end = at("2024-10-27T00:00"), at("2024-10-27T02:00")
    # A quarter of the gap ends half a second before these hours, or after them.
    assert threshold_in_gap(begin - 3_000_000 // 2, begin + 2_500_000, kind) == begin - 1
    assert threshold_in_gap(end - 2_500_000, end + 3_000_001 // 2, kind) == end


@pytest.mark.parametrize(
    ("lower", "upper", "kind", "threshold"),
    [
        ("2023-11-20", "2024-02-10", "date", "2023-12-31"),
        ("2023-11-20", "2024-02-10", "datetime[]", "2024-01-01"),
        ("2024-02-27", "2024-03-04", "datetime[]", "2024-03-01"),
        ("2024-05-10", "2024-08-20", "datetime[]", "2024-07-01"),
        ("2024-05-10", "2024-05-11", "date", "2024-05-10"),
        ("2024-05-10", "2024-05-12", "date", "2024-05-10"),
        ("2024-05-10T11:12:13", "2024-05-10T13:12:13", "datetime[]", "2024-05-10T12:00"),
        ("2023-12-20", "2024-01-12", "datetime[Europe/Berlin]", "2023-12-31T23:00"),
        ("1970-01-03T10:00", "1970-01-05T04:00", "duration", "1970-01-04"),
    ],
)
def test_thresholds_as_people_say_them(lower, upper, kind, threshold):
    assert threshold_in_gap(at(lower), at(upper), kind) == at(threshold)


def test_units_become_whole_microseconds():
    missing = np.zeros(3, dtype=bool)
    nano = microseconds(np.array([-1, 999, 1000]), "ns", missing, "t")
    assert nano.tolist() == [-1, 0, 1]
    assert nano.dtype == np.int64
    assert microseconds(np.array([-1, 0, 2], np.int32), "d", missing, "t").tolist() == [
        -DAY,
        0,
        2 * DAY,
    ]
    gap = np.array([False, True, False])
    with_gap = microseconds(np.array([5, np.iinfo(np.int64).min, 7]), "ms", gap, "t")
    np.testing.assert_array_equal(with_gap, [5000, np.nan, 7000])


@pytest.mark.parametrize(("unit", "most"), [("d", 104_249), ("us", 2**53), ("ns", 2**53 * 1000)])
def test_times_that_float64_does_not_hold_are_refused(unit, most):
    missing = np.zeros(2, dtype=bool)
    microseconds(np.array([most, -most]), unit, missing, "t")
    with pytest.raises(ValueError, match=r"'t' has 1 cell beyond 285 years .* row 1"):
        microseconds(np.array([0, most + 1000]), unit, missing, "t")
    with pytest.raises(ValueError, match="285 years"):
        microseconds(np.array([0, np.iinfo(np.int64).min]), unit, missing, "t")


def test_zones_have_names_that_are_read_again():
    assert zone_name(zoneinfo.ZoneInfo("Asia/Kolkata")) == "Asia/Kolkata"
    assert zone_name("+01:00") == "+01:00"
    for hours, name in ((-9.5, "-09:30"), (1, "+01:00")):
        zone = dt.timezone(dt.timedelta(hours=hours))
        assert time_zone(zone_name(zone)).utcoffset(None) == zone.utcoffset(None)
        named = dt.timezone(dt.timedelta(hours=hours), "there")
        assert zone_name(named) == name
    assert zone_name("nowhere") is None
    with pytest.raises(ValueError, match="no time zone 'nowhere'"):
        time_zone("nowhere")
