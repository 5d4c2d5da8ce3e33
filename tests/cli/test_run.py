"""`keepfor run`: a process that sweeps, says what it does, and ends when it is told to."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keepfor.cli import codes
from keepfor.cli.loglines import logfmt, written
from keepfor.cli.output import Output
from keepfor.trail import Trail
from tests import neo
from tests.cli.conftest import NOW, Place

#: Only a test that hangs waits as long as this, in seconds.
LONG = 60

#: keepfor, where a sweep stands before its first look until a line comes on stdin.
GATED = """
import sys
from keepfor import sweep
act = sweep.sweep_now
def gated(*given, **more):
    print("at the gate", file=sys.stderr, flush=True)
    sys.stdin.readline()
    return act(*given, **more)
sweep.sweep_now = gated
from keepfor.cli import main
main(sys.argv[1:])
"""

#: keepfor, where a sweep stands there until it was asked to stop, and is asked once more then.
BUSY = """
import sys, time
from keepfor import sweep
from keepfor.sweeper import Stopped
act = sweep.sweep_now
def busy(*given, progress, **more):
    print("at work", file=sys.stderr, flush=True)
    try:
        while True:
            progress(1, 2)
            time.sleep(0.001)
    except Stopped:
        return act(*given, progress=progress, **more)
sweep.sweep_now = busy
from keepfor.cli import main
main(sys.argv[1:])
"""


class Child:
    """A keepfor that runs beside the test."""

    def __init__(self, place: Place, *words: str, script: str | None = None) -> None:
        program = ["-c", script] if script else ["-m", "keepfor"]
        self.process = subprocess.Popen(
            [sys.executable, *program, *words],
            cwd=place.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []

    def line(self, text: str) -> str:
        """Wait until it says something with this text."""
        assert self.process.stderr
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))
            if text in line:
                return self.said[-1]
        raise AssertionError(f"it never said {text!r}, but: {self.said}")

    def signal(self, which: signal.Signals) -> None:
        self.process.send_signal(which)

    def open(self) -> None:
        """Open the gate."""
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def ended(self) -> tuple[int, str]:
        """Wait for its end: the exit code, and what stands on stdout."""
        out, err = self.process.communicate(timeout=LONG)
        self.said += err.splitlines()
        return self.process.returncode, out


Start = Callable[..., Child]


@pytest.fixture
def due(place: Place) -> Place:
    """A ledger of which one row of two is due on any day that the tests may run."""
    place.configure((place.folder / "keepfor.yaml").read_text().replace("90d", "36500d"))
    place.ledger.write_text('{"ts": "1900-01-01"}\n{"ts": "2026-07-26"}\n')
    return place


@pytest.fixture
def start(due: Place) -> Iterator[Start]:
    """Starts `keepfor run` where something is due; what still runs in the end is killed."""
    children = []

    def begin(*words: str, script: str | None = None) -> Child:
        children.append(Child(due, "run", *words, script=script))
        return children[-1]

    yield begin
    for child in children:
        with child.process as process:
            process.kill()


def fields(line: str) -> dict[str, str]:
    """The fields of a line, as a reader of logfmt finds them."""
    found = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', line)
    return {key: json.loads(value) if value[:1] == '"' else value for key, value in found}


def lines(err: str) -> list[dict[str, str]]:
    return [fields(line) for line in err.splitlines()]


# --- once ---------------------------------------------------------------------------------


def test_once_brings_the_samples_to_their_known_figures(place: Place) -> None:
    """The ledger keeps 449 of 600 rows and neo's runs 200 of 260, each told in one line."""
    place.sample()
    neo.rebuild(place.folder / "rem-runs")
    place.configure(
        (place.folder / "keepfor.yaml")
        .read_text()
        .replace("state_dir", "  rem: {kind: runs, path: rem-runs, max_count: 200}\nstate_dir")
    )
    ran = place.run("run", "--once")
    assert (ran.code, ran.out) == (0, "")
    start, *swept, stop = lines(ran.err)
    assert (start["event"], start["stores"], stop["event"]) == ("start", "recall,rem", "stop")
    told = {line["store"]: line for line in swept}
    assert {line["event"] for line in swept} == {"sweep"}
    assert {line["outcome"] for line in swept} == {"done"}
    assert (told["recall"]["kept"], told["recall"]["applied"]) == ("449", "151")
    assert (told["rem"]["kept"], told["rem"]["applied"]) == ("200", "60")
    assert place.ledger.read_bytes().count(b"\n") == 449
    assert len(list((place.folder / "rem-runs").glob("*.jsonl"))) == 200


def test_once_is_on_record_as_the_backgrounds(place: Place) -> None:
    """`keepfor log` tells it from an `apply` by hand."""
    place.sample()
    place.run("run", "--once")
    (swept,) = place.run("log", "--json").json["sweeps"]
    assert (swept["started_by"], swept["applied"]) == ("background", 151)


def test_once_prints_a_document_and_lines_that_are_json(place: Place) -> None:
    """With --json stdout has what came of each store, and each line on stderr is an object."""
    place.sample()
    ran = place.run("run", "--once", "--json")
    assert (ran.json["verb"], ran.json["exit_code"]) == ("run", 0)
    assert (ran.store["outcome"], ran.store["kept"], ran.store["error"]) == ("done", 449, None)
    events = [json.loads(line) for line in ran.err.splitlines()]
    assert [event["event"] for event in events] == ["start", "sweep", "stop"]
    assert all(event["ts"].startswith(f"{NOW:%Y-%m-%d}T") for event in events)
    assert events[1]["applied"] == 151


@pytest.mark.parametrize(
    ("ages", "code"), [([100, 1], codes.DONE), ([100] * 9 + [1], codes.BREAKER)]
)
def test_once_exits_as_apply_would(place: Place, ages: list[float], code: int) -> None:
    """The same store gives `run --once` and `apply --yes` the same exit code."""
    place.write(ages)
    assert place.run("run", "--once").code == code
    place.write(ages)
    assert place.run("apply", "--yes").code == code


def test_what_keeps_one_store_from_being_swept_does_not_stop_the_others(place: Place) -> None:
    """A folder in a ledger's place is a failure in a line and in the code; the other is swept."""
    place.configure(
        "stores:\n"
        "  broken: {kind: ledger, path: a-folder, keep_for: 90d}\n"
        "  recall: {kind: ledger, path: recall.jsonl, keep_for: 90d}\n"
        "state_dir: state\n"
    )
    (place.folder / "a-folder").mkdir()
    place.write([100, 80])
    ran = place.run("run", "--once")
    assert ran.code == codes.FAILED
    (failure,) = [line for line in lines(ran.err) if line["event"] == "failure"]
    assert (failure["level"], failure["store"], failure["error"]) == (
        "warning",
        "broken",
        "StoreError",
    )
    assert "it is a folder, not a file" in failure["message"]
    assert place.ledger.read_bytes().count(b"\n") == 1
    document = place.run("run", "--once", "--json").json["stores"][0]
    assert (document["store"], document["outcome"]) == ("broken", "failed")
    assert document["error"]["exit_code"] == codes.FAILED


# --- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize("once", [[], ["--once"]])
def test_a_wrong_configuration_is_refused_before_anything_runs(
    place: Place, once: list[str]
) -> None:
    """A typo in one store keeps the others from being swept, too, with 2."""
    place.write([100, 80])
    place.configure(
        (place.folder / "keepfor.yaml")
        .read_text()
        .replace("state_dir", "  other: {kind: ledger, path: x, keep_fro: 9d}\nstate_dir")
    )
    before = place.snapshot()
    ran = place.run("run", *once)
    assert (ran.code, ran.out) == (2, "")
    assert "keep_fro" in ran.err
    assert place.snapshot() == before


def test_a_store_that_is_not_there_is_refused(place: Place) -> None:
    """A wrong name is 2, and nothing is swept."""
    place.write([100, 80])
    ran = place.run("run", "recall", "recal")
    assert ran.code == 2
    assert "Did you mean recall?" in ran.err
    assert place.ledger.read_bytes().count(b"\n") == 2


def test_metrics_of_a_run_that_ends_are_refused(place: Place) -> None:
    """With --once nobody could read them."""
    ran = place.run("run", "--once", "--metrics-port", "0")
    assert ran.code == 2
    assert "Leave one of the two out." in ran.err


def test_a_port_that_is_taken_is_a_clear_error(place: Place) -> None:
    """It says which place is taken and what to do, with 1, and nothing is swept."""
    place.write([100, 80])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = place.run("run", "--metrics-port", str(port))
    assert (ran.code, ran.out) == (1, "")
    assert f"cannot be served at 127.0.0.1:{port}: Address already in use" in ran.err
    assert "--metrics-port" in ran.err
    assert place.ledger.read_bytes().count(b"\n") == 2


def test_a_missing_library_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, `--metrics-port` says what to install, with 2."""
    for name in ["prometheus_client", "prometheus_client.core"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "keepfor.sweeper.metrics", raising=False)
    ran = place.run("run", "--metrics-port", "0")
    assert ran.code == 2
    assert "pip install '.[metrics]'" in ran.err


# --- until it is told to stop -------------------------------------------------------------


def test_it_ends_when_it_is_told_to(due: Place, start: Start) -> None:
    """SIGTERM ends a process that waits for its next sweep, with 0."""
    child = start()
    child.line("event=sweep")
    child.signal(signal.SIGTERM)
    assert child.ended() == (0, "")
    assert [line["event"] for line in map(fields, child.said)] == [
        *("start", "sweep", "stopping", "stop")
    ]
    assert fields(child.said[2])["signal"] == "SIGTERM"
    assert due.ledger.read_text() == '{"ts": "2026-07-26"}\n'


def test_ctrl_c_ends_it_with_130(start: Start) -> None:
    """SIGINT does the same, with the code that shells expect, and without a traceback."""
    child = start("--json")
    child.line('"event": "sweep"')
    child.signal(signal.SIGINT)
    code, out = child.ended()
    assert code == codes.INTERRUPTED
    document = json.loads(out)
    assert (document["exit_code"], document["stores"][0]["outcome"]) == (130, "done")
    assert [json.loads(line)["event"] for line in child.said][-2:] == ["stopping", "stop"]


@pytest.mark.parametrize(("words", "code"), [([], codes.DONE), (["--once"], codes.PARTLY)])
def test_a_signal_in_mid_sweep_ends_it_at_the_next_slice(
    due: Place, start: Start, words: list[str], code: int
) -> None:
    """The ledger is as it was then, nothing lies beside it, and the next sweep does the rest."""
    before = due.ledger.read_bytes()
    child = start(*words, "--json", script=BUSY)
    child.line("at work")
    child.signal(signal.SIGTERM)
    ended, out = child.ended()
    assert ended == code
    assert json.loads(out)["stores"][0]["outcome"] == "stopped"
    assert due.ledger.read_bytes() == before
    assert sorted(os.listdir(due.folder)) == ["keepfor.yaml", "recall.jsonl", "state"]
    assert list(Trail(due.folder / "state" / "trail.jsonl").records()) == []
    assert due.run("run", "--once").code == 0
    assert due.ledger.read_text() == '{"ts": "2026-07-26"}\n'


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_kills_it(due: Place, start: Start, second: signal.Signals) -> None:
    """A sweep that hangs does not keep a person waiting, and its store is whole all the same."""
    before = due.ledger.read_bytes()
    child = start(script=GATED)
    child.line("at the gate")
    child.signal(signal.SIGINT)
    child.line("event=stopping")
    child.signal(second)
    assert child.ended()[0] == -second
    assert due.ledger.read_bytes() == before
    # What a killed process had locked is free.
    assert due.run("run", "--once").code == 0


# --- one at a time ------------------------------------------------------------------------


def test_one_process_looks_after_a_store(due: Place, start: Start) -> None:
    """A second one says who is there and exits with 1, in a document too; when the first has
    ended it may."""
    first = start()
    first.line("event=sweep")
    second = due.run("run", "--json")
    assert second.code == 1
    assert (
        f"recall is looked after by another `keepfor run` already (process {first.process.pid})"
        in (second.err)
    )
    assert second.json["error"]["type"] == "AlreadyRunning"
    first.signal(signal.SIGTERM)
    first.ended()
    third = start()
    third.line("event=sweep")


def test_once_leaves_a_store_alone_that_another_has(due: Place, start: Start) -> None:
    """It says so, sweeps the others, and exits with 1."""
    text = (due.folder / "keepfor.yaml").read_text()
    due.configure(
        text.replace(
            "state_dir", "  other: {kind: ledger, path: other.jsonl, keep_for: 90d}\nstate_dir"
        )
    )
    other = due.write([100, 80], "other.jsonl")
    start("recall").line("event=sweep")
    due.ledger.write_text('{"ts": "1900-01-01"}\n')
    ran = due.run("run", "--once", "--json")
    assert ran.code == 1
    busy, done = ran.json["stores"]
    assert (busy["store"], busy["error"]["type"]) == ("recall", "AlreadyRunning")
    assert (done["store"], done["outcome"]) == ("other", "done")
    assert due.ledger.read_text() == '{"ts": "1900-01-01"}\n'
    assert other.read_bytes().count(b"\n") == 1


def test_other_stores_may_have_another_process(due: Place, start: Start) -> None:
    """The lock is each store's own; two names of one store are one."""
    text = (due.folder / "keepfor.yaml").read_text()
    due.configure(
        text.replace(
            "state_dir",
            "  again: {kind: ledger, path: ./recall.jsonl, keep_for: 36500d}\n"
            "  other: {kind: ledger, path: other.jsonl, keep_for: 90d}\nstate_dir",
        )
    )
    start("recall", "again").line("event=sweep")
    assert due.run("run", "other", "--once").code == 0
    assert due.run("run", "again", "--once").code == 1


# --- metrics ------------------------------------------------------------------------------


def test_metrics_are_served_where_it_says(start: Start) -> None:
    """At the address that the first line tells, on the loopback interface; also in mid-sweep."""
    child = start("--metrics-port", "0", script=GATED)
    address = fields(child.line("event=start"))["metrics"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", address)
    child.line("at the gate")
    assert 'keepfor_deleted_rows_total{store="recall"} 0.0' in fetched(address)
    child.open()
    child.line("event=sweep")
    assert 'keepfor_deleted_rows_total{store="recall"} 1.0' in fetched(address)
    child.signal(signal.SIGTERM)
    assert child.ended()[0] == 0


def fetched(address: str) -> str:
    """What a server answers, past any proxy that is set."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=LONG) as answer:
        text: str = answer.read().decode()
    return text


# --- lines --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("done", "done"),
        ("/home/ada/r.jsonl", "/home/ada/r.jsonl"),
        ("nothing to do", '"nothing to do"'),
        ("", '""'),
        ("a=b", '"a=b"'),
        ('say "x"', r'"say \"x\""'),
        ("two\nlines", r'"two\nlines"'),
        ("Größe", r'"Gr\u00f6\u00dfe"'),
        (449, "449"),
        (0.25, "0.25"),
        (True, "true"),
    ],
)
def test_a_value_is_read_back_as_one_word(value: Any, said: str) -> None:
    """What has spaces, quotes or an equals sign in it stands in JSON's quotes, on one line."""
    assert logfmt({"key": value}) == f"key={said}"
    assert len(fields(logfmt({"key": value, "next": 1}))) == 2


def test_whatever_keepfor_logs_becomes_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Messages of other parts, and tracebacks, are lines too; and only for as long as it runs."""
    out = Output(as_json=False)
    logger = logging.getLogger("keepfor")
    before = (logger.level, logger.propagate, list(logger.handlers))
    with written(out):
        logger.warning("could not prune %s", "x")
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            logger.exception("of ours")
    first, second = lines(capsys.readouterr().err)
    assert (first["event"], first["message"]) == ("log", "could not prune x")
    assert "ZeroDivisionError" in second["traceback"]
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_signals_are_given_back(place: Place) -> None:
    """A program that calls keepfor finds its own handlers as they were."""

    def handler(*_: object) -> None: ...

    before = {which: signal.signal(which, handler) for which in (signal.SIGTERM, signal.SIGINT)}
    try:
        place.run("run", "--once")
        assert [signal.getsignal(which) for which in before] == [handler, handler]
    finally:
        for which, was in before.items():
            signal.signal(which, was)


def test_a_state_folder_that_cannot_be_written_is_explained(place: Place) -> None:
    """A file in its place is 1, with a message that names it, and nothing is swept."""
    place.write([100, 80])
    Path("state").write_text("in the way")
    ran = place.run("run", "--once")
    assert ran.code == 1
    assert str(place.folder / "state") in ran.err
    assert place.ledger.read_bytes().count(b"\n") == 2
