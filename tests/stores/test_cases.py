"""Ledgers with known right answers: the cases, the real sample, and dates counted by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor import Ledger
from keepfor.errors import WrongTimeField
from keepfor.items import Report
from tests.stores.build import NOW, beside, policy, pruned, row, write

DATA = Path(__file__).parents[1] / "data"
CASES = sorted(path.name for path in (DATA / "ledger").iterdir())
SAMPLE = DATA / "agentm" / "recall-history.jsonl"


def by_store(path: Path, keep_for: str, now: str) -> Report:
    """A prune as a sweep does it."""
    moment = datetime.fromisoformat(now)
    return pruned(path, policy(float(keep_for.removesuffix("d"))), moment)


def by_writer(path: Path, keep_for: str, now: str) -> Report:
    """A prune as a program asks for it."""
    return Ledger(path, keep_for=keep_for).prune(now)


BOTH_WAYS = pytest.mark.parametrize("prune", [by_store, by_writer])
Prune = Callable[[Path, str, str], Report]


def numbered(path: Path) -> dict[bytes, int]:
    """The lines of a case, which are all different but for blank ones, with their numbers."""
    lines = path.read_bytes().split(b"\n")
    return {line: number for number, line in enumerate(lines, start=1) if line.strip()}


@BOTH_WAYS
@pytest.mark.parametrize("name", CASES)
def test_each_case_has_its_right_answer(name: str, prune: Prune, tmp_path: Path) -> None:
    """The lines that stay, byte for byte and in order, and the counts, are those of the case."""
    folder, path = DATA / "ledger" / name, tmp_path / "ledger.jsonl"
    case: dict[str, Any] = json.loads((folder / "case.json").read_bytes())
    before = (folder / "input.jsonl").read_bytes()
    path.write_bytes(before)
    if case.get("refused"):
        with pytest.raises(WrongTimeField, match="'ts'"):
            prune(path, case["keep_for"], case["now"])
        assert path.read_bytes() == before
        return
    report = prune(path, case["keep_for"], case["now"])
    lines = before.split(b"\n")
    kept = [lines[number - 1] for number in case["kept_lines"]]
    ended = b"" if case["kept_lines"][-1] == len(lines) else b"\n"
    assert path.read_bytes() == b"\n".join(kept) + ended
    for count in ("expired", "unreadable", "over_ceiling", "future"):
        assert getattr(report, count) == case.get(count, 0), count
    assert report.kept == len(kept)
    assert report.scanned == report.kept + report.applied
    assert (report.bytes_before, report.bytes_after) == (len(before), path.stat().st_size)
    assert beside(path) == [path.name]


@pytest.mark.parametrize("name", CASES)
def test_a_plan_of_each_case_foretells_the_prune(name: str, tmp_path: Path) -> None:
    """A plan has the very counts that the prune then comes to, and changes nothing."""
    folder, path = DATA / "ledger" / name, tmp_path / "ledger.jsonl"
    case: dict[str, Any] = json.loads((folder / "case.json").read_bytes())
    shutil.copy(folder / "input.jsonl", path)
    before = path.read_bytes()
    if case.get("refused"):
        with pytest.raises(WrongTimeField):
            Ledger(path, keep_for=case["keep_for"]).plan(case["now"])
        return
    survey = Ledger(path, keep_for=case["keep_for"]).plan(case["now"]).survey
    assert path.read_bytes() == before
    report = by_store(path, case["keep_for"], case["now"])
    same = ["scanned", "kept", "applied", "expired", "unreadable", "future", "unknown"]
    same += ["bytes_before", "bytes_after", "oldest", "newest", "due"]
    assert [getattr(survey, name) for name in same] == [getattr(report, name) for name in same]


@BOTH_WAYS
@pytest.mark.parametrize(
    ("days", "kept", "expired"), [(90, 449, 151), (30, 153, 447), (7, 37, 563)]
)
def test_the_real_sample_has_its_known_figures(
    days: int, kept: int, expired: int, prune: Prune, tmp_path: Path
) -> None:
    """A ledger that its own program wrote keeps the rows that are known to be young enough."""
    path = tmp_path / "recall-history.jsonl"
    shutil.copyfile(SAMPLE, path)
    before = path.read_bytes()
    report = prune(path, f"{days}d", "2026-07-26T00:00:00Z")
    assert (report.kept, report.expired, report.unreadable) == (kept, expired, 0)
    # Its rows are in order of time, so that those that stay are its end.
    assert path.read_bytes() == b"".join(before.splitlines(keepends=True)[-kept:])


@pytest.mark.parametrize(
    ("now", "days", "cutoff"),
    [
        # 26 of July, 30 of June, 31 of May, 3 of April.
        ("2026-07-26T00:00:00+00:00", 90, "2026-04-27T00:00:00+00:00"),
        ("2026-07-26T13:45:10.000007+00:00", 90, "2026-04-27T13:45:10.000007+00:00"),
        # 26 of July and 4 of June.
        ("2026-07-26T00:00:00+00:00", 30, "2026-06-26T00:00:00+00:00"),
        # 2028 is a leap year: 1 of March, 29 of February, 31 of January, and the 31st of December.
        ("2028-03-02T00:00:00+00:00", 62, "2027-12-31T00:00:00+00:00"),
        ("2026-03-02T00:00:00+00:00", 62, "2025-12-30T00:00:00+00:00"),
        # A day is 86,400 seconds, also where clocks were set forward on 29 March in between.
        ("2026-03-30T00:00:00+02:00", 2, "2026-03-27T23:00:00+01:00"),
    ],
)
def test_a_cutoff_is_where_the_calendar_has_it(
    now: str, days: int, cutoff: str, tmp_path: Path
) -> None:
    """The row on the cutoff stays, and the one a microsecond before it goes."""
    edge = datetime.fromisoformat(cutoff)
    on, before = row(cutoff), row((edge - timedelta(microseconds=1)).isoformat())
    path = tmp_path / "ledger.jsonl"
    write(path, [before, on])
    report = pruned(path, policy(days), datetime.fromisoformat(now).astimezone(UTC))
    assert path.read_bytes() == on
    assert report.cutoff == edge
    assert report.oldest == edge


@pytest.mark.parametrize("rows", [1, 40])
def test_what_is_exactly_now_is_not_to_come(rows: int, tmp_path: Path) -> None:
    """Future begins a microsecond after the instant of the prune."""
    path = tmp_path / "ledger.jsonl"
    write(path, [row(NOW)] * rows + [row(NOW + timedelta(microseconds=1))] * rows)
    report = pruned(path)
    assert (report.future, report.kept) == (rows, 2 * rows)
    assert report.newest == NOW + timedelta(microseconds=1)


def test_nothing_to_drop_means_nothing_is_rewritten(tmp_path: Path) -> None:
    """A ledger whose rows all stay is not touched, and nor is its folder, blank lines or not."""
    path = tmp_path / "ledger.jsonl"
    write(path, [b"\n", row(), b"  \t\r\n", row()])
    before = path.stat(), tmp_path.stat()
    report = pruned(path)
    assert (report.scanned, report.kept, report.applied) == (2, 2, 0)
    after = path.stat(), tmp_path.stat()
    assert [(stat.st_ino, stat.st_mtime_ns) for stat in after] == [
        (stat.st_ino, stat.st_mtime_ns) for stat in before
    ]
    assert report.bytes_after == report.bytes_before == path.stat().st_size


def test_blank_lines_go_with_a_rewrite_wherever_they_stand(tmp_path: Path) -> None:
    """Blank lines before the first row that goes are gone as well."""
    path = tmp_path / "ledger.jsonl"
    write(path, [b"\n", row(n=1), b" \t\r\n", row(n=2), row("2026-01-01"), b"\n", row(n=3)])
    report = pruned(path)
    assert path.read_bytes() == row(n=1) + row(n=2) + row(n=3)
    assert (report.scanned, report.kept, report.expired) == (4, 3, 1)
    assert report.bytes_after == path.stat().st_size


@pytest.mark.parametrize(("strays", "refused"), [(10, False), (11, True)])
def test_many_objects_without_a_time_are_a_wrong_setting(
    strays: int, refused: bool, tmp_path: Path
) -> None:
    """More than ten that are over half of all objects are refused; ten are debris."""
    path = tmp_path / "ledger.jsonl"
    before = write(path, [row(None, when="2026-07-01")] * strays + [row()] * 9)
    if refused:
        with pytest.raises(WrongTimeField, match=r"11 of 20 rows .* has a time in 'when'"):
            pruned(path)
        assert path.read_bytes() == before
    else:
        assert pruned(path).unreadable == 10
        assert path.read_bytes() == row() * 9


def test_half_of_all_objects_is_not_over_half(tmp_path: Path) -> None:
    """As many objects with a time as without one: those without are debris."""
    path = tmp_path / "ledger.jsonl"
    write(path, [row(None)] * 20 + [b"debris\n"] * 30 + [row()] * 20)
    assert pruned(path).unreadable == 50
    assert path.read_bytes() == row() * 20


def test_a_wrong_field_is_named_also_where_debris_is_to_stay(tmp_path: Path) -> None:
    """That no row has a usable time is refused whatever becomes of unreadable rows."""
    path = tmp_path / "ledger.jsonl"
    write(path, [b"debris\n"])
    with pytest.raises(WrongTimeField, match="1 of 1 rows"):
        pruned(path, unreadable="keep")


def test_a_wrong_field_is_named_beside_a_number_of_5000_digits(tmp_path: Path) -> None:
    """The row that is looked at for a better field may hold what Python refuses to read."""
    path = tmp_path / "ledger.jsonl"
    write(path, [b'{"time": "2026-07-01", "n": ' + b"1" * 5000 + b"}\n"])
    with pytest.raises(WrongTimeField, match="has a time in 'time'"):
        pruned(path)


def test_what_is_not_utf_8_in_what_is_not_looked_at_is_debris(tmp_path: Path) -> None:
    """A row that no reader can decode goes, though its time is plain to see, whatever its age."""
    path = tmp_path / "ledger.jsonl"
    bad = [b'{"ts": "2026-07-01", "x": "\xff"}\n', b'{"\xc3": 1, "ts": "2026-07-01T00:00:00Z"}\n']
    write(path, [row()] * 20 + bad + [row()] * 20)
    assert pruned(path).unreadable == 2
    assert path.read_bytes() == row() * 40


def test_unreadable_rows_stay_where_that_is_the_setting(tmp_path: Path) -> None:
    """Under `unreadable: keep` debris is kept, as it is, and counted as of unknown age."""
    path = tmp_path / "ledger.jsonl"
    write(path, [b"debris\n", row("2026-01-01"), row(None), row()])
    report = pruned(path, unreadable="keep")
    assert path.read_bytes() == b"debris\n" + row(None) + row()
    assert (report.unreadable, report.unknown, report.kept) == (0, 2, 3)


def test_only_blank_lines_are_an_empty_ledger(tmp_path: Path) -> None:
    """A file without rows has nothing to lose and nothing wrong with it."""
    path = tmp_path / "ledger.jsonl"
    write(path, [b"\n \n\t\r\n"])
    assert pruned(path).scanned == 0


def test_the_report_tells_oldest_newest_and_due(tmp_path: Path) -> None:
    """The oldest that stays, the newest there is, and the oldest that went for its age."""
    path = tmp_path / "ledger.jsonl"
    write(path, [row("2026-07-03"), row("2026-02-01T00:00:00+02:00"), row("2026-05-01T01:00:00Z")])
    report = pruned(path)
    assert report.due == datetime(2026, 1, 31, 22, tzinfo=UTC)
    assert report.oldest == datetime(2026, 5, 1, 1, tzinfo=UTC)
    assert report.newest == datetime(2026, 7, 3, 23, 59, 59, 999999, tzinfo=UTC)
