"""The benchmarks compare like with like: the same rows, the same work, the same bytes."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import __main__ as command
from benchmarks import entities, ledger, rows, runs, status, table
from benchmarks.harness import Figure, Way, above, at_most, race, row, save, times_faster
from benchmarks.plot import Line, draw
from keepfor import Ledger, RunDirectory
from keepfor.stores.entities import entities_at

SAMPLE = Path(__file__).parent / "data" / "agentm" / "recall-history.jsonl"
TINY = ledger.Scale(small=40_000, large=80_000, appends=2, rounds=2, large_rounds=1, starts=1)


def figure(**facts: Any) -> Figure:
    given: dict[str, Any] = {
        "what": "prune",
        "unit": "ms",
        "plain": 900.0,
        "ours": 100.0,
        "kind": "times",
        "value": 9.0,
        "best": 9.5,
        "target": 8.0,
    }
    return Figure(**(given | facts))


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "ledger.jsonl"
    rows.write(path, 230_000)
    return path


def test_rows_are_like_the_real_ones(generated: Path) -> None:
    """The made ledger has the size that was asked for, rows of about 230 bytes, and their shape."""
    data = generated.read_bytes()
    assert abs(len(data) - 230_000) < 23_000
    assert data.count(b"\n") == 1000
    real = [json.loads(line) for line in SAMPLE.read_bytes().splitlines()]
    made = [json.loads(line) for line in data.splitlines()]
    assert {tuple(row) for row in made} == {tuple(row) for row in real}
    real_hits = {tuple(hit) for row in real for hit in row.get("hits", ())}
    assert {tuple(hit) for row in made for hit in row.get("hits", ())} == real_hits


def test_rows_span_120_days_of_which_a_quarter_has_expired(generated: Path) -> None:
    """Of 1,000 rows in order, the first 250 are older than 2026-04-27 and lack their evidence."""
    made = [json.loads(line) for line in generated.read_bytes().splitlines()]
    times = [row["ts"] for row in made]
    assert times == sorted(times)
    assert times[0].startswith("2026-03-28T00:00:00")
    assert times[-1].startswith("2026-07-25T2")
    assert [at < "2026-04-27" for at in times] == [True] * 250 + [False] * 750
    assert ["hits" in row for row in made] == [False] * 250 + [True] * 750


def test_the_rare_note_was_recalled_thrice_in_the_last_day(tmp_path: Path) -> None:
    """What a trace looks for is there, lately, hours apart, and nowhere else."""
    path = tmp_path / "ledger.jsonl"
    rows.write(path, 2_300_000)
    found = [
        json.loads(line)["ts"]
        for line in path.read_bytes().splitlines()
        if rows.RARE.encode() in line
    ]
    assert [at[:13] for at in found] == ["2026-07-25T03", "2026-07-25T10", "2026-07-25T17"]


def test_rows_are_the_same_each_time(generated: Path, tmp_path: Path) -> None:
    """Two runs, and two machines, measure the same ledger."""
    again = tmp_path / "again.jsonl"
    rows.write(again, 230_000)
    assert again.read_bytes() == generated.read_bytes()


@pytest.mark.parametrize("source", ["generated", "sample"])
def test_both_ways_keep_the_same_bytes(generated: Path, tmp_path: Path, source: str) -> None:
    """What the straightforward prune leaves is what keepfor's leaves, byte for byte."""
    plain, ours = tmp_path / "plain.jsonl", tmp_path / "ours.jsonl"
    for path in plain, ours:
        shutil.copyfile(generated if source == "generated" else SAMPLE, path)
    ledger.prune(plain, rows.NOW)
    report = Ledger(ours, keep_for="90d").prune(rows.NOW)
    assert plain.read_bytes() == ours.read_bytes()
    assert report.applied == {"generated": 250, "sample": 151}[source]


def test_both_ways_drop_the_same_debris(tmp_path: Path) -> None:
    """Rows that no reader can use, and times of other kinds, are the same to both."""
    plain, ours = tmp_path / "plain.jsonl", tmp_path / "ours.jsonl"
    fresh = ['{"ts": "2026-07-25T00:00:00"}', '{"ts": "2026-07-25T02:00:00+02:00"}']
    debris = ["{torn", "[]", "null", "{}", '{"ts": 5}', '{"ts": "soon"}', '"ts"']
    text = "".join(f"{line}\n" for line in [*fresh, *debris, '{"ts": "2026-01-01"}', *fresh])
    for path in plain, ours:
        path.write_text(text, encoding="utf-8")
    ledger.prune(plain, rows.NOW)
    Ledger(ours, keep_for="90d").prune(rows.NOW)
    assert plain.read_text() == ours.read_text() == "".join(f"{line}\n" for line in fresh * 2)


def test_the_straightforward_append_prunes_too(tmp_path: Path) -> None:
    """The way that is compared with does the same job: its probe trips, and its prune follows."""
    path = tmp_path / "ledger.jsonl"
    now = datetime.now(UTC)
    old = json.dumps({"ts": (now - timedelta(days=91)).isoformat()})
    path.write_text(f"{old}\n", encoding="utf-8")
    ledger.append(path, rows.recent(now))
    assert [json.loads(line) for line in path.read_text().splitlines()] == [rows.recent(now)]


@pytest.mark.long
def test_every_comparison_runs(tmp_path: Path) -> None:
    """On a tiny ledger each comparison runs, agrees with itself, and gives its figure."""
    found = list(ledger.figures(tmp_path, TINY))
    assert [(figure.kind, figure.target) for figure in found] == [
        ("times", 8),
        ("times", 8),
        ("above", 64),
        ("times", 2),
        ("times", 3),
        ("above", 15),
        ("times", 50),
    ]
    for figure in found:
        assert figure.plain > 0
        assert figure.ours > 0
        assert figure.what in row(figure)


def test_ways_are_run_by_turns() -> None:
    """Each way is made ready before each of its runs, and neither goes first each time."""
    seen: list[str] = []
    plain = Way(run=lambda: seen.append("plain"), before=lambda: seen.append("before plain"))
    ours = Way(run=lambda: seen.append("ours"))
    taken = race(plain, ours, rounds=3)
    assert [len(seconds) for seconds in taken] == [3, 3]
    assert seen == [
        *("before plain", "plain", "ours"),
        *("ours", "before plain", "plain"),
        *("before plain", "plain", "ours"),
    ]


def test_a_ratio_is_one_of_medians() -> None:
    """One slow run moves no figure; the best runs are told beside it."""
    made = times_faster("x", ([8.0, 9.0, 100.0], [1.0, 0.5, 1.0]), target=8, unit="ms", each=10)
    assert (made.plain, made.ours, made.value, made.best) == (900.0, 100.0, 9.0, 16.0)


def test_a_surplus_is_one_of_medians() -> None:
    """What is above an idle interpreter is told as a difference."""
    made = above("x", [10.0, 11.0, 90.0], [20.0, 25.0, 22.0], target=15, unit="ms")
    assert (made.plain, made.ours, made.value, made.best) == (11.0, 22.0, 11.0, 10.0)


@pytest.mark.parametrize(
    ("facts", "met"),
    [
        ({"value": 8.0}, True),
        ({"value": 7.99}, False),
        ({"kind": "above", "value": 8.0}, True),
        ({"kind": "above", "value": 8.01}, False),
        ({"kind": "ratio", "value": 8.0}, True),
        ({"kind": "ratio", "value": 8.01}, False),
    ],
)
def test_a_target_is_met_or_missed(facts: dict[str, Any], met: bool) -> None:
    """`times` is to be at least the target, the others at most; the table says which it is."""
    made = figure(**facts)
    assert made.met is met
    assert row(made).endswith(": met" if met else ": MISSED")


def test_the_table_says_what_was_found() -> None:
    """A line of the table has both medians, the result, the best runs and the target."""
    assert row(figure()).split() == (
        "prune 900 ms 100 ms 9.0 times 9.5 ≥ 8 times: met".split()  # noqa: SIM905
    )
    assert row(figure(kind="above", value=11.0, best=10.0, target=15.0)).split() == (
        "prune 900 ms 100 ms +11.0 ms +10.0 ≤ +15 ms: met".split()  # noqa: SIM905
    )


def test_a_ratio_of_two_sizes_is_one_of_medians() -> None:
    """What the larger case costs is told in times the smaller."""
    made = at_most("x", ([8.0, 10.0, 90.0], [12.0, 11.0, 9.0]), target=1.2, unit="ms", each=10)
    assert (made.kind, made.plain, made.ours, made.value) == ("ratio", 1000.0, 1100.0, 1.1)
    assert row(made).split()[-5:] == ["1.12", "≤", "1.2", "times:", "met"]


# --- runs ---------------------------------------------------------------------------------


def test_a_directory_of_runs_is_what_its_retention_leaves(tmp_path: Path) -> None:
    """After so many runs the newest are there, named and dated by the hour, whole."""
    folder = runs.live(tmp_path / "runs", 30, 10)
    found = RunDirectory(folder, max_count=None).recent(99)
    assert [entry["runId"] for entry in found] == [runs.run_id(n) for n in range(29, 19, -1)]
    assert found[0] == runs.entry(29)
    assert found[0]["runId"] == "rem-2016-01-02T05:00:00.000Z"
    assert len(list(runs.live(tmp_path / "all", 30).iterdir())) == 30


def test_both_ways_read_the_same_runs(tmp_path: Path) -> None:
    """The straightforward way, by mtime, finds what keepfor finds by name."""
    folder = runs.live(tmp_path / "runs", 30)
    for number, path in enumerate(sorted(folder.iterdir())):
        os.utime(path, (number, number))
    assert runs.recent(folder, 7) == RunDirectory(folder, max_count=None).recent(7)


@pytest.mark.long
def test_every_comparison_of_runs_runs(tmp_path: Path) -> None:
    """On tiny directories each comparison runs, and gives its figure."""
    tiny = runs.Scale(few=5, many=300, files=20, calls=1, rounds=2)
    found = list(runs.figures(tmp_path, tiny))
    assert [(each.kind, each.target) for each in found] == [
        ("times", 3),
        ("ratio", 1.2),
        ("ratio", 1.2),
    ]
    assert len(list((tmp_path / "300").iterdir())) == runs.CAP


def test_the_curve_is_measured_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each lifetime is measured under each kind of retention; the picture has a line for each."""
    monkeypatch.setattr(runs, "PICTURE", tmp_path / "runs.svg")
    monkeypatch.setattr(runs, "LIFETIMES", [20, 250])
    runs.main()
    printed = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1:4] for line in printed[2:]] == [
        [" 20 ", " none ", " 20 "],
        [" 20 ", " write-side cap ", " 20 "],
        [" 20 ", " periodic sweep ", " 20 "],
        [" 250 ", " none ", " 250 "],
        [" 250 ", " write-side cap ", " 200 "],
        [" 250 ", " periodic sweep ", " 250 "],
    ]
    picture = ElementTree.parse(tmp_path / "runs.svg").getroot()
    assert len(picture.findall("{*}polyline")) == 6


def test_a_plot_places_points_by_their_logarithms() -> None:
    """The axes reach to whole powers of ten, and a point halfway is drawn halfway."""
    line = Line(name="a & b", points=[(1, 1), (10, 10), (100, 100)], colour="#000000")
    picture = ElementTree.fromstring(draw("t", "x", "ms", [line]))
    (path,) = picture.findall("{*}polyline")
    places = [tuple(map(float, pair.split(","))) for pair in path.attrib["points"].split()]
    assert places == [(70.0, 380.0), (290.0, 215.0), (510.0, 50.0)]
    said = [text.text for text in picture.findall("{*}text")]
    assert {"a & b", "1", "10", "100", "1 ms", "10 ms", "100 ms"} <= set(said)


# --- the command --------------------------------------------------------------------------


def test_figures_are_written_as_json(tmp_path: Path) -> None:
    """What is printed can also be read by a program, with what it was measured on."""
    path = tmp_path / "results" / "latest.json"
    save([figure(), figure(value=1.0)], path)
    told = json.loads(path.read_text(encoding="utf-8"))
    assert {"measured", "keepfor", "python", "platform", "cpus"} < set(told)
    assert [(each["what"], each["met"]) for each in told["figures"]] == [
        ("prune", True),
        ("prune", False),
    ]


@pytest.mark.parametrize(("value", "code"), [(9.0, 0), (2.0, 1)])
def test_the_command_prints_all_and_fails_for_what_was_missed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    value: float,
    code: int,
) -> None:
    """`python -m benchmarks` prints a table, writes the JSON, and exits 1 for a missed target."""
    results = tmp_path / "latest.json"
    monkeypatch.setattr(command, "RESULTS", results)
    monkeypatch.setattr(ledger, "figures", lambda folder, scale: iter([figure(value=value)]))
    monkeypatch.setattr(runs, "figures", lambda folder, scale: iter([figure(what="recent")]))
    monkeypatch.setattr(table, "figures", lambda folder, scale: iter([figure(what="sweep")]))
    monkeypatch.setattr(entities, "figures", lambda folder, scale: iter([figure(what="plan")]))
    monkeypatch.setattr(status, "figures", lambda folder, scale: iter([figure(what="look")]))
    assert command.main() == code
    printed = capsys.readouterr().out
    assert row(figure(value=value)) in printed
    assert row(figure(what="recent")) in printed
    assert row(figure(what="sweep")) in printed
    assert row(figure(what="plan")) in printed
    assert str(results) in printed
    assert json.loads(results.read_text(encoding="utf-8"))["figures"][0]["value"] == value


# --- tables -------------------------------------------------------------------------------


@pytest.mark.long
def test_every_comparison_of_tables_runs(tmp_path: Path) -> None:
    """On a tiny table each comparison runs, agrees with itself, and gives its figure."""
    tiny = table.Scale(rows=1200, few=600, rounds=1, counts=1)
    found = list(table.figures(tmp_path, tiny))
    assert [figure.target for figure in found] == [1.3, 0.1, 4, 1.3, 0.1, 4, 1.5, 2, 2, 1.2]
    assert all(figure.ours > 0 for figure in found)


def test_a_quarter_of_the_table_has_expired(tmp_path: Path) -> None:
    """30 of its 120 days are older than 90, and a third of its rows has one that hangs on it."""
    path = table.make(tmp_path / "t.sqlite3", 1200)
    rows_, going, *_, hanging, lost = table.ask(path, table.QUESTIONS)
    assert (rows_, going, hanging, lost) == (1200, 300, 100, 0)


# --- entities -----------------------------------------------------------------------------


@pytest.mark.long
def test_every_comparison_of_entities_runs(tmp_path: Path) -> None:
    """On a tiny store each comparison runs, agrees with itself, and gives its figure."""
    tiny = entities.Scale(notes=400, sessions=40, recalls=100, deleted=20, rounds=1)
    found = list(entities.figures(tmp_path / "entities", tiny))
    assert [figure.target for figure in found] == [2, 1.5, 2.5, 2.5, 1, 2]
    assert all(figure.ours > 0 and figure.plain > 0 for figure in found)


def test_both_ways_decide_the_same_of_notes_and_sessions(tmp_path: Path) -> None:
    """Every action of the straightforward way is keepfor's, of each kind, and the other way."""
    scale = entities.Scale(notes=400, sessions=40, recalls=100)
    root = entities.build(tmp_path / "store", scale)
    plain = entities.plan(root)
    assert entities.ours(entities_at(root)) == plain
    # 35 * 7919 % 400 = 365 days and an hour old; the one before it is younger.
    assert f"trajectories/{entities.session_name(35)}" in plain
    assert f"trajectories/{entities.session_name(34)}" not in plain
    assert set(plain.values()) == {"flag", "delete"}


# --- status -------------------------------------------------------------------------------


@pytest.mark.long
def test_every_comparison_of_looking_runs(tmp_path: Path) -> None:
    """Over four tiny stores each comparison runs, and gives its figure."""
    tiny = status.Scale(
        ledger=100_000,
        runs=20,
        rows=1200,
        notes=entities.Scale(notes=200, sessions=10, recalls=50),
        rounds=1,
    )
    found = list(status.figures(tmp_path / "status", tiny))
    assert [figure.target for figure in found] == [1.5, 1000, 100, 150]
    assert all(figure.ours > 0 for figure in found)
