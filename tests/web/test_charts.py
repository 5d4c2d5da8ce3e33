"""What charts draw, from numbers alone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.stores.daily import Daily
from keepfor.web.charts import Bar, Mark, Point, ages, bars, curve, meter, split

NINETY = Mark(age=90, label="cutoff 90d", short="90d")


def _parsed(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)


def _number(element: ET.Element, name: str) -> float:
    return float(element.attrib[name].rstrip("%"))


def test_a_bar_stands_for_each_day_the_oldest_first() -> None:
    """Three days of age come to three bars, days without anything included."""
    found = bars([Daily(days={0: (5, 50), 2: (1, 10)})], [Daily(days={2: (2, 20)})])
    assert found == [
        Bar(youngest=2, days=1, kept=1, taken=2, bytes=30),
        Bar(youngest=1, days=1, kept=0, taken=0, bytes=0),
        Bar(youngest=0, days=1, kept=5, taken=0, bytes=50),
    ]
    assert [bar.label for bar in found] == ["2 days old", "1 day old", "0 days old"]


def test_many_days_are_put_together() -> None:
    """365 days in no more than 120 bars are bars of four days, and nothing is lost."""
    found = bars([Daily(days=dict.fromkeys(range(365), (1, 10)))], [])
    assert len(found) == 92
    assert found[0] == Bar(youngest=364, days=4, kept=1, taken=0, bytes=10)
    assert found[0].label == "364 to 367 days old"
    assert sum(bar.count for bar in found) == 365


def test_nothing_has_no_bars() -> None:
    """An empty store has no bar, and its chart says so."""
    assert bars([], []) == []
    assert "Nothing with a known age is there." in ages([], [NINETY], "ledger")


@given(
    st.dictionaries(st.integers(0, 5000), st.tuples(st.integers(1, 99), st.integers(0, 99))),
    st.integers(1, 150),
)
def test_no_row_is_lost_between_bars(days: dict[int, tuple[int, int]], most: int) -> None:
    """However days are put together, the bars hold all that there was, and are not too many."""
    found = bars([Daily(days=days)], [], most)
    assert sum(bar.kept for bar in found) == sum(count for count, _ in days.values())
    assert sum(bar.bytes for bar in found) == sum(amount for _, amount in days.values())
    assert len(found) <= most


def test_rows_are_split_by_the_age_of_their_own_type() -> None:
    """A type with a limit of its own goes by that one, a pinned one never, the others by theirs."""
    held = [
        Daily(type="log", days={5: (1, 1), 40: (2, 2)}),
        Daily(type="pinned", days={500: (3, 3)}),
        Daily(type=None, days={40: (4, 4), 90: (5, 5)}),
    ]
    stays, goes = split(held, {"log": 30.0, "pinned": None, None: 90.0})
    assert [daily.days for daily in stays] == [{5: (1, 1)}, {500: (3, 3)}, {40: (4, 4)}]
    assert [daily.days for daily in goes] == [{40: (2, 2)}, {}, {90: (5, 5)}]


def test_the_cutoff_stands_where_its_age_is() -> None:
    """Of 120 days the line of 90 stands a quarter from the left, between what goes and stays."""
    days = dict.fromkeys(range(120), (1, 1))
    stays, goes = split([Daily(days=days)], {None: 90.0})
    drawn = _parsed(ages(bars(stays, goes), [NINETY], "ledger"))
    (line,) = drawn.findall("line[@class='cutoff deletes']")
    assert _number(line, "x1") == pytest.approx(25, abs=0.01)
    taken = [rect for rect in drawn.iter("rect") if rect.attrib["class"] == "taken"]
    assert len(taken) == 30
    assert all(_number(rect, "x") + _number(rect, "width") <= 25 for rect in taken)
    kept = [rect for rect in drawn.iter("rect") if rect.attrib["class"] == "kept"]
    assert all(_number(rect, "x") >= 25 for rect in kept)
    assert "120 rows by age, over 120 days; 30 past" in drawn.attrib["aria-label"]


def test_a_cutoff_far_away_is_told_in_words() -> None:
    """A line ten times as far as the oldest would squeeze all bars into a corner."""
    far = Mark(age=365, label="cutoff 365d", short="365d")
    found = bars([Daily(days={0: (1, 1), 1: (1, 1)})], [])
    drawn = _parsed(ages(found, [far], "ledger"))
    assert drawn.findall("line[@class='cutoff deletes']") == []
    assert "further back: cutoff 365d" in [text.text for text in drawn.findall("text")]


def test_a_small_chart_has_short_labels() -> None:
    """On the page of all stores a line is labelled by its age alone; a flag is told apart."""
    flag = Mark(age=30, label="flag note 30d", short="flag 30d", deletes=False)
    found = bars([Daily(days={100: (1, 1)})], [])
    drawn = _parsed(ages(found, [NINETY, flag], "runs", small=True))
    labels = [text.text for text in drawn.findall("text") if "cutoff" in text.get("class", "")]
    assert labels == ["90d", "flag 30d"]
    assert len(drawn.findall("line[@class='cutoff flags']")) == 1


def test_a_bar_says_what_it_stands_for() -> None:
    """Who points at a bar reads the days, how many, and how large."""
    drawn = ages([Bar(youngest=7, days=1, kept=3, taken=1, bytes=2048)], [], "runs")
    assert "<title>7 days old: 4 runs, 1 of them due, 2.0 KiB</title>" in drawn


def test_one_row_in_a_crowd_is_still_seen() -> None:
    """A bar is never lower than a hair, however high the others are."""
    found = bars([Daily(days={0: (1_000_000, 1), 1: (1, 1)})], [])
    heights = [_number(rect, "height") for rect in _parsed(ages(found, [], "ledger")).iter("rect")]
    assert min(heights) >= 2


def test_a_hostile_label_is_text() -> None:
    """A rule or a type with markup in its name draws no element of its own."""
    hostile = Mark(age=5, label='<script>"&', short="x")
    drawn = ages([Bar(youngest=9, days=1, kept=1, taken=0, bytes=1)], [hostile], "ledger")
    assert "<script>" not in drawn
    assert '<script>"&' in [text.text for text in _parsed(drawn).iter("text")]
    assert "<b>" not in meter(1, 2, "<b>")
    assert "<b>" not in curve([Point(day=0, value=1), Point(day=1, value=2)], None, "<b>")


def test_a_curve_runs_from_now_to_the_end_below_its_ceiling() -> None:
    """The line rises, the ceiling stands above it, and the words say how much that is."""
    points = [Point(day=0, value=100), Point(day=45, value=150), Point(day=90, value=200)]
    drawn = _parsed(curve(points, 400, "told", in_bytes=False))
    (line,) = drawn.iter("polyline")
    places = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    assert [x for x, _ in places] == [0, 50, 100]
    assert places[0][1] > places[1][1] > places[2][1]
    (ceiling,) = drawn.findall("line[@class='ceiling']")
    assert _number(ceiling, "y1") < places[2][1]
    texts = [text.text for text in drawn.iter("text")]
    assert texts == ["ceiling 400", "now", "in 90 days", "100", "200"]


def test_a_ceiling_out_of_sight_is_left_out() -> None:
    """A ceiling a hundred times as high would press the curve to the ground."""
    points = [Point(day=0, value=100), Point(day=90, value=200)]
    drawn = _parsed(curve(points, 20_000, "told"))
    assert drawn.findall("line[@class='ceiling']") == []
    assert [text.text for text in drawn.iter("text")][-2:] == ["100 B", "200 B"]


def test_an_empty_store_has_a_flat_curve() -> None:
    """Where nothing is, and nothing comes, the line lies on the ground."""
    drawn = curve([Point(day=0, value=0), Point(day=90, value=0)], None, "told")
    assert "0.000,87.000 100.000,87.000" in drawn


@pytest.mark.parametrize(
    ("value", "width", "called"),
    [(50, 50, "fine"), (95, 95, "near"), (100, 100, "near"), (250, 100, "full")],
)
def test_a_meter_tells_how_full_it_is(value: int, width: float, called: str) -> None:
    """The bar is as wide as the share, never wider than all, and its class says how grave it is."""
    drawn = _parsed(meter(value, 100, "told"))
    assert drawn.attrib["aria-label"] == "told"
    track, bar = drawn.findall("rect")
    assert (_number(bar, "width"), bar.attrib["class"]) == (width, called)
    assert track.attrib["class"] == "track"


def test_no_chart_has_a_style_within() -> None:
    """The page's policy allows no inline style, so that colours come by class alone."""
    drawn = ages([Bar(youngest=9, days=1, kept=1, taken=1, bytes=1)], [NINETY], "ledger")
    drawn += curve([Point(day=0, value=1), Point(day=9, value=2)], 3, "told") + meter(1, 2, "told")
    assert not re.search(r"\bstyle=|\bfill=|\bon\w+=", drawn)
