"""A setting that cannot be kept is refused when the ledger is made, with what to write instead."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import keepfor
from keepfor import Ledger, RecallLedger, Trail
from keepfor.errors import ConfigError
from tests.writers.build import ago, rows


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"keep_for": None}, r'keep_for="90d".*keep_for="forever"'),
        ({"keep_for": "0d"}, r"nothing would be kept.*90d"),
        ({"keep_for": "-90d"}, r"negative.*90d"),
        ({"keep_for": 90}, r'no unit.*"90d"'),
        ({"keep_for": "90"}, r'no unit.*"90d"'),
        ({"keep_for": ""}, r'"90d"'),
        ({"keep_for": "90 days"}, r'"90d"'),
        ({"keep_for": "3m"}, r'"3min".*"90d"'),
        ({"keep_for": "3mo"}, r'"90d"'),
        ({"keep_for": "1y"}, r'"365d"'),
        ({"keep_for": "Forever"}, r'"forever"'),
        ({"keep_for": timedelta()}, r"nothing would be kept.*90d"),
        ({"keep_for": timedelta(days=-1)}, r"nothing would be kept.*90d"),
        ({"keep_for": True}, r'"90d"'),
        ({"max_bytes": 0}, r"nothing would be kept.*25MiB"),
        ({"max_bytes": -1}, r"negative.*25MiB"),
        ({"max_bytes": "25"}, r'no unit.*"25MiB"'),
        ({"max_bytes": "25M"}, r'"25MiB"'),
        ({"max_bytes": 2.5}, r'"25MiB"'),
        ({"max_bytes": True}, r'"25MiB"'),
        ({"keep_last": -1}, r"keep_last: -1 .*Write 0, or a number such as 100"),
        ({"keep_last": 1.5}, r"keep_last: 1.5 .*Write 0, or a number such as 100"),
        ({"keep_last": True}, r"keep_last: True .*Write 0, or a number such as 100"),
        ({"keep_last": "10"}, r"keep_last: '10' .*Write 0, or a number such as 100"),
        ({"keep_last": None}, r"keep_last: None .*Write 0, or a number such as 100"),
        ({"time": ""}, r"time: '' .*such as ts or meta\.ts"),
        ({"time": "a..b"}, r"time: 'a\.\.b' .*such as ts or meta\.ts"),
        ({"time": ".ts"}, r"time: '\.ts' .*such as ts or meta\.ts"),
        ({"time": "ts."}, r"time: 'ts\.' .*such as ts or meta\.ts"),
        ({"time": None}, r"time: None .*such as ts or meta\.ts"),
        ({"time": ["ts"]}, r"time: \['ts'\] .*such as ts or meta\.ts"),
        ({"unit": "m"}, r"unit: 'm' .*None, 's', 'ms', 'us', 'ns'"),
        ({"unit": ""}, r"unit: '' .*None, 's', 'ms', 'us', 'ns'"),
        ({"timezone": "Berlin"}, r"timezone: .*'Berlin'.*Europe/Berlin"),
        ({"timezone": ""}, r"timezone: .*Europe/Berlin"),
        ({"timezone": "../../etc/passwd"}, r"timezone: .*Europe/Berlin"),
        ({"timezone": None}, r"timezone: None .*Europe/Berlin"),
        ({"unreadable": "Drop"}, r"unreadable: 'Drop' .*'drop', 'keep'"),
        ({"unreadable": None}, r"unreadable: None .*'drop', 'keep'"),
        ({"clock": "now"}, r"clock: 'now' .*a function that returns an aware datetime"),
        ({"trail": "trail.jsonl"}, r'trail: \'trail.jsonl\' .*Trail\("trail.jsonl"\)'),
        ({"path": ""}, r"path: '' .*such as recall-history\.jsonl"),
        ({"path": None}, r"path: None .*such as recall-history\.jsonl"),
        ({"path": 3}, r"path: 3 .*such as recall-history\.jsonl"),
        ({"path": "a\0b"}, r"path: .*such as recall-history\.jsonl"),
    ],
)
@pytest.mark.parametrize("kind", [Ledger, RecallLedger])
def test_what_cannot_be_kept_is_refused(
    kind: type[Ledger], settings: dict[str, Any], said: str
) -> None:
    """Each bad argument is refused at once, by name, with what to write; no file is made."""
    with pytest.raises(ConfigError, match=f"(?s){said}") as caught:
        kind(**({"path": "ledger.jsonl", "keep_for": "90d"} | settings))
    assert caught.value.exit_code == 2
    assert list(Path().iterdir()) == []


def test_an_unknown_setting_is_refused() -> None:
    """A misspelt argument is an error, as in any call."""
    with pytest.raises(TypeError, match="keep_fro"):
        Ledger("ledger.jsonl", keep_fro="90d")  # type: ignore[call-arg]


@pytest.mark.parametrize("path", ["ledger.jsonl", Path("ledger.jsonl"), b"ledger.jsonl"])
def test_a_path_in_any_form(path: Any) -> None:
    """Text, a Path and bytes name the same file, and `path` is text."""
    ledger = Ledger(path, keep_for="90d")
    assert ledger.path == "ledger.jsonl"
    ledger.append(ago(0))
    assert rows(Path("ledger.jsonl")) == [ago(0)]


def test_forever_alone_is_said_on_purpose(path: Path) -> None:
    """`keep_for="forever"` without a ceiling is a policy, and an append never prunes by it."""
    ledger = Ledger(path, keep_for="forever")
    ledger.append(ago(36_500))
    ledger.append(ago(0))
    assert len(rows(path)) == 2


@pytest.mark.parametrize("keep_for", ["0d", "-90d", 90, "90 days", "3m", timedelta()])
def test_a_trail_refuses_what_cannot_be_kept(keep_for: Any) -> None:
    """A trail that nobody could expire is refused when it is made, and not after a prune."""
    with pytest.raises(ConfigError, match="90d"):
        Trail("trail.jsonl", keep_for=keep_for)


def test_the_public_names_are_there() -> None:
    """Each public name can be had from the top, and an unknown one is an AttributeError."""
    for name in keepfor.__all__:
        assert getattr(keepfor, name) is not None
    assert set(keepfor.__all__) <= set(dir(keepfor))
    with pytest.raises(AttributeError, match="no attribute 'Legder'"):
        _ = keepfor.Legder


def test_importing_keepfor_loads_none_of_it() -> None:
    """The import alone loads no module of keepfor's but the first."""
    code = "import keepfor, sys; print(*(name for name in sys.modules if 'keepfor.' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
