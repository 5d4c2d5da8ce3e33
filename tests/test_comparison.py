"""What people use instead is compared on the same data, and each loses what it is said to lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import comparison
from benchmarks.comparison import NOT_HERE, OfLedger, OfTable, Scale

#: 400 rows of which 100 have expired; 1,200 of which 300 have, and every third has a dependent.
TINY = Scale(size=92_000, appends=400, rows=1200)


def test_each_way_leaves_of_a_ledger_what_it_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """find takes nothing in time and all too late; a script takes what came; keepfor neither."""
    monkeypatch.setattr(comparison, "installed", lambda way: way is not comparison.logrotate)
    found = {each.way: each for each in comparison.ledgers(tmp_path, TINY)}
    finding, rotating, script, ours = found.values()
    assert list(found) == list(comparison.WAYS)
    assert (finding.expired_left, finding.lost, finding.ahead) == (100, 0, 0)
    assert rotating == OfLedger(way="logrotate, copytruncate")
    assert (script.expired_left, script.young_gone, script.ahead) == (0, 0, 0)
    assert (ours.expired_left, ours.young_gone, ours.lost, ours.ahead) == (0, 0, 0, 400)


def test_a_bare_delete_leaves_what_hung_on_its_rows(tmp_path: Path) -> None:
    """A third of 300 rows had a dependent; and by a clock a year ahead the whole table goes."""
    bare, ours = comparison.tables(tmp_path, TINY)
    assert (bare.expired_left, bare.orphans, bare.ahead) == (0, 100, 0)
    assert (ours.expired_left, ours.orphans, ours.ahead) == (0, 0, 1200)


def test_what_is_not_installed_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The printed tables have a line for each way, and none makes up what was not measured."""
    absent = OfLedger(way="logrotate, copytruncate")
    there = OfLedger(way="keepfor", seconds=0.25, appended=20_000, ahead=1739)
    of_table = OfTable(way="bare", seconds=0.5, stall=0.012, expired_left=0, orphans=500, ahead=0)
    monkeypatch.setattr(comparison, "ledgers", lambda folder, scale: iter([absent, there]))
    monkeypatch.setattr(comparison, "tables", lambda folder, scale: iter([of_table]))
    comparison.main(TINY)
    printed = capsys.readouterr().out
    assert f"| logrotate, copytruncate | {NOT_HERE} | | | | |\n" in printed
    assert "| keepfor | 250 ms | 0 | 0 | 0 of 20,000 | 1,739 stay |\n" in printed
    assert "| bare | 500 ms | 12 ms | 0 | 500 | 0 stay |\n" in printed
