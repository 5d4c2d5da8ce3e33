"""What the configuration says of a store is what the store is opened with."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from keepfor import config
from keepfor.config.opening import open_store, open_trail
from tests.cli.conftest import RECALL, Place

HOUR_BEFORE_THE_CUTOFF = '{"meta": {"at": "2026-04-26T23:00:00"}}\n'
FRESH = '{"meta": {"at": "2026-07-25T00:00:00"}}\n'


@pytest.mark.parametrize(("zone", "expired"), [("UTC", 1), ("America/New_York", 0)])
def test_the_time_is_read_where_and_as_it_says(place: Place, zone: str, expired: int) -> None:
    """`time` names the field, and `timezone` the zone of a time that names none."""
    place.configure(f"{RECALL}    time: meta.at\n    timezone: {zone}\n")
    place.ledger.write_text(HOUR_BEFORE_THE_CUTOFF + FRESH)
    assert place.run("plan", "--json").store["expired"] == expired


def test_numbers_are_read_in_their_unit(place: Place) -> None:
    """`unit: ms` takes numbers for milliseconds since 1970."""
    place.configure(f"{RECALL}    unit: ms\n")
    # 2026-04-26T23:59:59Z and 2026-04-27T00:00:00Z, by `date +%s`.
    place.ledger.write_text('{"ts": 1777247999000}\n{"ts": 1777248000000}\n')
    assert place.run("plan", "--json").store["expired"] == 1


def test_unreadable_rows_are_kept_where_it_says_so(place: Place) -> None:
    """`unreadable: keep` leaves debris where it is."""
    place.configure(f"{RECALL}    unreadable: keep\n")
    place.write([1])
    with place.ledger.open("a", encoding="utf-8") as file:
        file.write("debris\n")
    assert place.run("plan", "--json").store["unreadable"] == 0


def test_a_symlink_is_resolved_once(place: Place) -> None:
    """A ledger that is given as a symlink is opened where it leads."""
    place.write([1], "real.jsonl")
    place.ledger.symlink_to("real.jsonl")
    store = open_store(config.load(), "recall")
    assert store.target == os.path.realpath(place.folder / "real.jsonl")


def test_the_trail_lies_in_the_state_folder(place: Place) -> None:
    """The trail is where `state_dir` says, and is kept for as long as `trail` says."""
    place.configure(f"{RECALL}state_dir: here\ntrail: {{keep_for: 7d}}\n")
    trail = open_trail(config.load())
    assert Path(trail.path) == place.folder / "here" / "trail.jsonl"
    assert trail.keep_for == timedelta(days=7)
