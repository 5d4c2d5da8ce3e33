"""What the tests of the command line share: a folder with stores in it, and a way to run a verb."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import time_machine

from keepfor.cli import main, output

SAMPLE = Path(__file__).parents[1] / "data" / "agentm" / "recall-history.jsonl"

#: The instant that the sample's known figures are for.
NOW = datetime(2026, 7, 26, tzinfo=UTC)

RECALL = """\
stores:
  recall:
    kind: ledger
    path: recall.jsonl
    keep_for: 90d
"""


class Ran(msgspec.Struct, frozen=True):
    """What a run came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def store(self) -> Any:
        """The one store in it."""
        (store,) = self.json["stores"]
        return store


class Place:
    """A working folder with a configuration and ledgers, in which keepfor is run."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.ledger = folder / "recall.jsonl"
        self._capsys = capsys

    def configure(self, text: str = RECALL) -> None:
        """Write keepfor.yaml."""
        (self.folder / "keepfor.yaml").write_text(text, encoding="utf-8")

    def write(self, ages: Sequence[float], name: str = "recall.jsonl") -> Path:
        """A ledger with one row for each age, in days."""
        path = self.folder / name
        moments = (NOW - timedelta(days=age) for age in ages)
        rows = [f'{{"ts": "{moment.isoformat()}"}}\n' for moment in moments]
        path.write_text("".join(rows), encoding="utf-8")
        return path

    def sample(self) -> Path:
        """The sample that the real program wrote: 600 rows over 120 days up to NOW."""
        shutil.copyfile(SAMPLE, self.ledger)
        return self.ledger

    def run(self, *arguments: str | Path) -> Ran:
        """Run keepfor in this process."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        assert isinstance(leaving.value.code, int)
        return Ran(leaving.value.code, out, err)

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Every file here, with its bytes and its mtime in ns."""
        return {
            str(path.relative_to(self.folder)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in self.folder.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def frozen() -> Iterator[time_machine.Traveller]:
    """The clock stands at NOW; the traveller moves it."""
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture
def place(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    frozen: time_machine.Traveller,
) -> Place:
    """A working folder whose configuration holds `recall.jsonl` to 90 days, at NOW."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KEEPFOR_STATE_DIR")
    found = Place(tmp_path, capsys)
    found.configure(f"{RECALL}state_dir: state\n")
    return found


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a person at the terminal, who answers what is given."""

    def sit_down(answer: str) -> None:
        monkeypatch.setattr(output, "_is_terminal", lambda _: True)
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "80")

    return sit_down
