"""What holds for every prune of every ledger, tried on many that nobody would think of."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from keepfor.errors import WrongTimeField
from keepfor.items import Report
from keepfor.policy.rules import Policy
from keepfor.stores import ceiling, files, replace, sift
from keepfor.testing.suite import adds_up
from tests.stores.build import CUTOFF, NOW, beside, policy, pruned, row
from tests.stores.lines import TICK, lines, read

#: A line that is longer counts as oversized here, and this much is read at a time.
LONGEST, BLOCKS = 160, (1, 7, 64, 160)


@contextmanager
def ledger(data: bytes, block: int = 64) -> Iterator[Path]:
    """A ledger in a folder of its own, read in small blocks; nothing waits for the disk."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(replace, "_PAUSE", 0.0)
        patch.setattr(files, "BLOCK", block)
        patch.setattr(sift, "LONGEST_LINE", LONGEST)
        patch.setattr(ceiling, "_BUCKETS", 3)
        patch.setattr(ceiling, "_FEW_ROWS", 2)
        path = Path(folder, "ledger.jsonl")
        path.write_bytes(data)
        yield path


def dated(ticks: int, more: str) -> bytes:
    """A row so many microseconds after the cutoff."""
    return row(CUTOFF + ticks * TICK, x=more)


#: Rows around the cutoff, many of them of one instant.
DATED = st.builds(
    dated,
    st.integers(-5, 5) | st.integers(-(10**12), 10**12),
    st.sampled_from(["", "x", "x" * 40]),
)
#: Lines of every kind, at least one of which has a time; perhaps an unfinished last one.
LEDGERS = st.builds(
    lambda before, one, after, tail: b"".join([*before, one, *after, tail]),
    *[
        st.lists(lines().map(lambda line: line + b"\n") | DATED, max_size=6),
        DATED,
        st.lists(lines().map(lambda line: line + b"\n") | DATED, max_size=6),
        st.sampled_from([b"", b"", b'{"ts": "2026-0', b" "]),
    ],
)
POLICIES = st.builds(
    lambda days, size, floor: policy(days, max_bytes=size, keep_last=floor),
    st.sampled_from([90, 90, 91, 30, 36_500]),
    st.none() | st.integers(1, 1200),
    st.integers(0, 4),
)
KEEP_OR_DROP = st.sampled_from(["drop", "keep"])
Unreadable = Literal["drop", "keep"]


def pruned_if_sound(path: Path, held_to: Policy, unreadable: str) -> Report:
    """The prune's report; what is refused as a wrong setting is not of interest here."""
    try:
        return pruned(path, held_to, unreadable=unreadable)
    except WrongTimeField:
        assume(False)
        raise


@settings(max_examples=150)
@given(LEDGERS, st.sampled_from(BLOCKS), KEEP_OR_DROP)
def test_a_prune_takes_what_the_definition_takes(
    data: bytes, block: int, unreadable: Unreadable
) -> None:
    """Line by line, what stays and every count is what the plain reading of each line says."""
    whole, tail = data[: data.rfind(b"\n") + 1], data[data.rfind(b"\n") + 1 :]
    kept: list[bytes] = []
    counts = dict.fromkeys(("expired", "unreadable", "oversized", "future", "unknown"), 0)
    for line in whole.split(b"\n")[:-1]:
        said = "oversized" if len(line) > LONGEST else read(line)
        if said == "blank":
            continue
        if isinstance(said, datetime):
            counts["expired"] += said < CUTOFF
            counts["future"] += said > NOW
            stays = said >= CUTOFF
        elif said in ("oversized", "too deep"):
            counts["oversized"] += 1
            counts["unknown"] += 1
            stays = True
        else:
            counts["unreadable"] += unreadable == "drop"
            counts["unknown"] += unreadable == "keep"
            stays = unreadable == "keep"
        if stays:
            kept.append(line + b"\n")
    counts["unknown"] += bool(tail)
    after = b"".join(kept) + tail if counts["expired"] + counts["unreadable"] else data
    with ledger(data, block) as path:
        report = pruned_if_sound(path, policy(), unreadable)
        assert path.read_bytes() == after
        assert {name: getattr(report, name) for name in counts} == counts
        assert report.kept == len(kept) + bool(tail)
        assert adds_up(report)
        assert (report.bytes_before, report.bytes_after) == (len(data), len(after))


@given(LEDGERS, POLICIES, st.sampled_from(BLOCKS), KEEP_OR_DROP)
def test_survivors_keep_their_bytes_and_their_order(
    data: bytes, held_to: Policy, block: int, unreadable: Unreadable
) -> None:
    """Survivors are a byte-wise subsequence of what was there, and the counts add up."""
    with ledger(data, block) as path:
        report = pruned_if_sound(path, held_to, unreadable)
        after = path.read_bytes()
        rest = iter(data.split(b"\n"))
        assert all(line in rest for line in after.split(b"\n"))
        assert adds_up(report)
        assert report.applied == report.expired + report.unreadable + report.over_ceiling
        assert report.bytes_after == len(after)
        assert beside(path) == [path.name]
        left = [line for line in after.split(b"\n") if line.strip(b" \t\r")]
        assert report.kept == len(left) + (after[after.rfind(b"\n") + 1 :] == b" ")


@given(LEDGERS, POLICIES, KEEP_OR_DROP)
def test_pruning_twice_is_pruning_once(
    data: bytes, held_to: Policy, unreadable: Unreadable
) -> None:
    """A second prune at the same instant finds nothing to do."""
    with ledger(data) as path:
        first = pruned_if_sound(path, held_to, unreadable)
        once = path.read_bytes()
        try:
            assert pruned(path, held_to, unreadable=unreadable).applied == 0
        except WrongTimeField:
            # The rows that had a time are gone, and what is left has none.
            assert unreadable == "keep"
            assert first.applied
        assert path.read_bytes() == once


@given(LEDGERS, st.integers(1, 200), st.integers(0, 200), KEEP_OR_DROP)
def test_a_wider_window_keeps_a_superset(
    data: bytes, days: int, more: int, unreadable: Unreadable
) -> None:
    """Whatever stays for some days stays for more of them."""
    kept = []
    for window in (days, days + more):
        with ledger(data) as path:
            pruned_if_sound(path, policy(window), unreadable)
            kept.append([line for line in path.read_bytes().split(b"\n") if line.strip()])
    wide = iter(kept[1])
    assert all(line in wide for line in kept[0])


@settings(max_examples=150)
@given(
    st.lists(DATED, min_size=1, max_size=20),
    st.integers(1, 1500),
    st.integers(0, 5),
    st.sampled_from([None, 90]),
    st.sampled_from([b"", b'{"ts": "2026-0']),
)
def test_a_ceiling_takes_the_oldest_and_stops_at_four_fifths(
    rows: list[bytes], size: int, floor: int, days: int | None, tail: bytes
) -> None:
    """Above it the oldest go, ties by position, until the rest fits in 80 %; the newest never."""
    held_to = policy(days, max_bytes=size, keep_last=floor)
    order = sorted(range(len(rows)), key=lambda at: (read(rows[at][:-1]), at))
    reachable = order[: max(0, len(order) - floor)]
    young = [at for at in order if days is None or read(rows[at][:-1]) >= CUTOFF]  # type: ignore[operator]
    gone = {at for at in reachable if at not in young}
    left = sum(len(rows[at]) for at in young) + len(tail)
    if left > size:
        for at in young:
            if left <= max(size * 4 // 5, 1):
                break
            left -= len(rows[at])
            if at in reachable:
                gone.add(at)
    after = b"".join(line for at, line in enumerate(rows) if at not in gone) + tail
    with ledger(b"".join(rows) + tail) as path:
        report = pruned(path, held_to)
        assert path.read_bytes() == after
        assert report.applied == len(gone)
        assert report.over_ceiling == len(gone & set(young))
        over = " ".join(report.notes)
        assert ("over the ceiling" in over) == (len(after) > size)
        assert ("leaves" in over) == bool(report.over_ceiling and len(gone) < len(rows))
