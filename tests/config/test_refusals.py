"""What bad input gets: where it stands, what is wrong, what to write; and all of it at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from keepfor.config import Config, load
from keepfor.errors import BadConfig, ConfigError

Load = Callable[..., Config]

DURATIONS = 'Write "90d", "12h", "30min", "1d12h", "2w", "P90D", or "forever".'
DAYS = "Write a number such as 90, or use keep_for."
SECONDS = "Write a number such as 3600, or use interval."
UNITS = 'Write "25MiB" for powers of 1,024, or "25MB" for powers of 1,000.'
SIZES = 'Write "25MiB" (or "25MB" for powers of 1,000).'
NAMES = "Write its name, such as ts or meta.ts."
ROWS = "Write 0, or a whole number such as 100."
FRACTIONS = "Write a number above 0 and up to 1, or off."
NO_VALUE = "it has no value. Write one, or leave the key out."
UNKNOWN = (
    "this key is unknown. Known here: kind, path, time, unit, timezone, keep_for, "
    "max_age_days, max_bytes, keep_last, unreadable, breaker, grace, interval, "
    "interval_seconds, preset."
)

#: What is wrong with one line of a store, by the line; each whole message, after its place.
LINES = {
    "keep_for: 90": '90 is not a duration: it has no unit. Write "90d" for days, or "forever".',
    'keep_for: "90"': (
        '\'90\' is not a duration: it has no unit. Write "90d" for days, or "forever".'
    ),
    "keep_for: 0d": (
        "'0d' is not a duration: nothing would be kept. "
        'Write a duration above zero, such as "90d", or "forever".'
    ),
    "keep_for: 0": '0 is not a duration: it has no unit. Write "90d" for days, or "forever".',
    "keep_for: -90d": '\'-90d\' is not a duration: it is negative. Write "90d", or "forever".',
    "keep_for: 3m": (
        "'3m' is not a duration: m could be minutes or months. "
        'Write "3min" for minutes, or days for months ("90d").'
    ),
    "keep_for: 3mo": (
        "'3mo' is not a duration: months differ in length. Write days, such as \"90d\"."
    ),
    "keep_for: 1y": "'1y' is not a duration: years differ in length. Write days, such as \"365d\".",
    "keep_for: 90 days": "'90 days' is not a duration: 'days' is not a unit. Write \"90d\".",
    "keep_for: true": 'True is not a duration: it has no unit. Write "90d" for days, or "forever".',
    "keep_for: never": f"'never' is not a duration: it is not a number with a unit. {DURATIONS}",
    "keep_for: 2026-07-26": (
        "'2026-07-26' is not a duration: it is not a number with a unit. "
        'Write "90d", "12h", "30min", "1d12h", "2w", "P90D", or "forever".'
    ),
    "keep_for: 1:30": f"'1:30' is not a duration: it is not a number with a unit. {DURATIONS}",
    "keep_for: [90d]": (
        '[\'90d\'] is not a duration: it has no unit. Write "90d" for days, or "forever".'
    ),
    "keep_for:": NO_VALUE,
    "keep_for: ~": NO_VALUE,
    "max_age_days: 90d": f"'90d' is no age in days: it is not a number of days. {DAYS}",
    "max_age_days: 0": f"0 is no age in days: nothing would be kept. {DAYS}",
    "max_age_days: -1": f"-1 is no age in days: nothing would be kept. {DAYS}",
    "max_age_days: forever": f"'forever' is no age in days: it is not a number of days. {DAYS}",
    "max_age_days: 1e9": f"1000000000.0 is no age in days: it is more than a hundred years. {DAYS}",
    "max_bytes: 26214400": '26214400 is not a size: it has no unit. Write "25MiB".',
    "max_bytes: 25M": f"'25M' is not a size: M is not a unit. {UNITS}",
    "max_bytes: 25mb": f"'25mb' is not a size: mb is not a unit. {UNITS}",
    "max_bytes: 0MiB": (
        "'0MiB' is not a size: nothing would be kept. "
        'Write a size above zero: "25MiB" (or "25MB" for powers of 1,000).'
    ),
    "max_bytes: -25MiB": f"'-25MiB' is not a size: it is negative. {SIZES}",
    "max_bytes: null": NO_VALUE,
    "path: 7": "7 is no path. Put it in quotes if it is meant.",
    'path: ""': "'' is no path. Write one, or leave it out.",
    'path: "a\\0b"': "'a\\x00b' is no path. Write one, or leave it out.",
    "path: [a]": "['a'] is no path. Put it in quotes if it is meant.",
    "path: $NOPE/a": "'$NOPE/a' needs $NOPE, which is not set. Set it, or write it out.",
    "path: ${NOPE}/a": "'${NOPE}/a' needs $NOPE, which is not set. Set it, or write it out.",
    "path: $EMPTY/a": "'$EMPTY/a' needs $EMPTY, which is not set. Set it, or write it out.",
    "path: ${HOME/a": "'${HOME/a' has an unfinished ${…}. Write ${NAME}.",
    "path: ~no-such-user/a": (
        "'~no-such-user/a' needs the home folder ~no-such-user, which is unknown. Write it out."
    ),
    "time: 7": f"7 names no field. {NAMES}",
    'time: ""': f"'' names no field. {NAMES}",
    "time: meta..ts": f"'meta..ts' names no field. {NAMES}",
    "unit: m": "'m' means nothing here. Did you mean ms?",
    "unit: hours": "'hours' means nothing here. Known here: s, ms, us, ns.",
    "unit:": NO_VALUE,
    "timezone: Mars/Olympus": (
        "this machine knows no zone 'Mars/Olympus'. "
        "Write a name such as Europe/Berlin, or install the `tzdata` package."
    ),
    "timezone: 2": "2 is no time zone. Write a name such as Europe/Berlin.",
    "keep_last: -1": f"-1 is no number of rows. {ROWS}",
    "keep_last: 1.5": f"1.5 is no number of rows. {ROWS}",
    "keep_last: true": f"True is no number of rows. {ROWS}",
    'keep_last: "5"': f"'5' is no number of rows. {ROWS}",
    "unreadable: dorp": "'dorp' means nothing here. Did you mean drop?",
    "unreadable: no": "'no' means nothing here. Known here: drop, keep.",
    "unreadable: false": "False means nothing here. Known here: drop, keep.",
    "breaker: 0": f"0 is no fraction. {FRACTIONS}",
    "breaker: 1.1": f"1.1 is no fraction. {FRACTIONS}",
    "breaker: 50%": f"'50%' is no fraction. {FRACTIONS}",
    "breaker: false": f"False is no fraction. {FRACTIONS}",
    "breaker: true": f"True is no fraction. {FRACTIONS}",
    "breaker: .nan": f"'.nan' is no fraction. {FRACTIONS}",
    "grace: 24": "24 is no grace: it has no unit. Write a duration such as 24h.",
    "grace: forever": (
        "'forever' is no grace: nothing would ever be late. Write a duration such as 24h."
    ),
    "interval: 60": "60 is no interval: it has no unit. Write a duration such as 1h.",
    "interval: 0h": "'0h' is no interval: it is not above zero. Write a duration such as 1h.",
    "interval: forever": (
        "'forever' is no interval: nothing would ever be swept. Write a duration such as 1h."
    ),
    "interval:": NO_VALUE,
    "interval_seconds: 0": f"0 is no interval in seconds: it is less than a second. {SECONDS}",
    "interval_seconds: 0.5": f"0.5 is no interval in seconds: it is less than a second. {SECONDS}",
    "interval_seconds: -1": f"-1 is no interval in seconds: it is less than a second. {SECONDS}",
    "interval_seconds: 1h": (
        f"'1h' is no interval in seconds: it is not a number of seconds. {SECONDS}"
    ),
    "interval_seconds: true": (
        f"True is no interval in seconds: it is not a number of seconds. {SECONDS}"
    ),
    "interval_seconds: 1e10": (
        f"10000000000.0 is no interval in seconds: it is more than a hundred years. {SECONDS}"
    ),
    "keep_fro: 90d": "this key is unknown. Did you mean keep_for?",
    "keepfor: 90d": "this key is unknown. Did you mean keep_for?",
    "maxbytes: 1MiB": "this key is unknown. Did you mean max_bytes?",
    "max_count: 5": UNKNOWN,
    "rhubarb: 1": UNKNOWN,
    "kind: ledgr": "'ledgr' is no kind of store. Did you mean ledger?",
    "kind: tables": "'tables' is no kind of store. Did you mean table?",
    "kind: 5": "5 is no kind of store. Known here: ledger, runs, table, entities.",
    "kind: [ledger]": "['ledger'] is no kind of store. Did you mean ledger?",
    "kind:": NO_VALUE,
    "preset: agentn": "'agentn' is no preset. Did you mean agentm?",
    "preset: 5": "5 is no preset. Known here: agentm, caesar, evolve-lite, neo.",
    "preset: [agentm]": "['agentm'] is no preset. Did you mean agentm?",
    "preset:": "None is no preset. Known here: agentm, caesar, evolve-lite, neo.",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_refused_in_words(load_text: Load, line: str) -> None:
    """One wrong line gives one message: file, line and key; what is wrong; what to write."""
    key = line.partition(":")[0]
    beside = {"kind": "kind: ledger", "path": "path: a", "keep_for": "keep_for: 90d"}
    if key == "max_age_days":
        beside["keep_for"] = "max_bytes: 1KiB"
    others = [said for name, said in beside.items() if name != key]
    text = "\n    ".join(["stores:\n  recall:", *others, line])
    with pytest.raises(BadConfig) as caught:
        load_text(f"{text}\n", EMPTY="")
    place = f"keepfor.yaml:{text.count(chr(10)) + 1}: stores.recall.{key}"
    assert str(caught.value) == f"{place}: {LINES[line]}"
    assert caught.value.exit_code == 2


#: Whole files, and the messages that they get.
FILES = {
    "": ["keepfor.yaml: it names no stores, so there is nothing to do. See `keepfor config init`."],
    "# nothing\n": ["keepfor.yaml: it names no stores"],
    "stores:\n": ["keepfor.yaml: it names no stores"],
    "stores: {}\n": ["keepfor.yaml: it names no stores"],
    "trail: {keep_for: 90d}\n": ["keepfor.yaml: it names no stores"],
    "~\n": ["keepfor.yaml: it names no stores"],
    "- stores\n": ["keepfor.yaml: it holds a list and not settings. Begin with a line `stores:`."],
    "stores\n": ["keepfor.yaml: it holds one word and not settings."],
    "90\n": ["keepfor.yaml: it holds one word and not settings."],
    "store:\n  a: {preset: agentm}\n": [
        "keepfor.yaml: it names no stores",
        "keepfor.yaml:1: store: this key is unknown. Did you mean stores?",
    ],
    "stores: recall\n": ["keepfor.yaml:1: stores: settings belong here. Write them below it"],
    "stores:\n  recall: 90d\n": ["keepfor.yaml:2: stores.recall: settings belong here."],
    "stores:\n  recall:\n": ["keepfor.yaml:2: stores.recall: settings belong here."],
    "stores:\n  - recall\n": ["keepfor.yaml:1: stores: settings belong here."],
    "stores:\n  Re-call: {preset: agentm}\n": [
        (
            "keepfor.yaml:2: stores.Re-call: a store's name holds small letters, digits and "
            "underscores only. Write re_call."
        )
    ],
    'stores:\n  "": {preset: agentm}\n': ["keepfor.yaml:2: stores.: a store's name holds"],
    "stores:\n  recall: {path: a, keep_for: 90d}\n": [
        (
            "keepfor.yaml:2: stores.recall: kind is missing. "
            "Write `kind: ledger`, `kind: runs`, `kind: table` or `kind: entities`, or name a "
            "preset."
        )
    ],
    "stores:\n  recall: {kind: ledger, keep_for: 90d}\n": [
        "keepfor.yaml:2: stores.recall: path is missing. Write a line `path:` below it."
    ],
    "stores:\n  recall: {kind: ledger, path: a}\n": [
        (
            "keepfor.yaml:2: stores.recall: nothing would ever be removed. Write `keep_for: 90d`, "
            "`max_bytes: 25MiB` or both; `keep_for: forever` says never on purpose."
        )
    ],
    "stores:\n  a:\n    preset: agentm\n    keep_for: 90d\n    max_age_days: 90\n": [
        (
            "keepfor.yaml:5: stores.a.max_age_days: keep_for is given too, and only one of them "
            "can hold. Leave one out."
        )
    ],
    "stores: {a: {preset: agentm}}\ntrail: 90d\n": ["keepfor.yaml:2: trail: settings belong here."],
    "stores: {a: {preset: agentm}}\ntrail:\n": ["keepfor.yaml:2: trail: settings belong here."],
    "stores: {a: {preset: agentm}}\ntrail:\n  keep: 90d\n": [
        "keepfor.yaml:3: trail.keep: this key is unknown. Did you mean keep_for?"
    ],
    "stores: {a: {preset: agentm}}\ntrail:\n  max_age_days: x\n": [
        "keepfor.yaml:3: trail.max_age_days: 'x' is no age in days"
    ],
    "stores: {a: {preset: agentm}}\npreset: agentm\n": [
        "keepfor.yaml:2: preset: this key is unknown. Known here: stores, trail, state_dir."
    ],
    "stores: {a: {preset: agentm}}\nstate_dir: $NOPE\n": [
        "keepfor.yaml:2: state_dir: '$NOPE' needs"
    ],
    "stores: {a: {preset: agentm}}\nstate_dir: 5\n": ["keepfor.yaml:2: state_dir: 5 is no path."],
    "stores: {a: {preset: agentm}}\nstate_dir:\n": ["keepfor.yaml:2: state_dir: it has no value."],
}


@pytest.mark.parametrize("text", FILES)
def test_a_file_is_refused_in_words(load_text: Load, text: str) -> None:
    """A file that says too little or too much gives just these messages, in the file's order."""
    with pytest.raises(BadConfig) as caught:
        load_text(text)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(FILES[text])
    for line, begins in zip(lines, FILES[text], strict=True):
        assert line.startswith(begins)


def test_everything_that_is_wrong_is_said_at_once(load_text: Load) -> None:
    """Faults of every sort, in the file and in the environment, come together and in order."""
    with pytest.raises(BadConfig) as caught:
        load_text(
            """\
stores:
  one:
    kind: ledger
    path: $NOPE/one.jsonl
    keep_for: 90
    keep_for: 30d
    colour: red
  two:
    preset: agentn
    max_bytes: 25M
  three: yes
trial:
  keep_for: 90d
""",
            KEEPFOR_STORES__TWO__KEEP_LAST="-1",
            KEEPFOR_STATE_DIRR="/x",
        )
    places = [": ".join(line.split(": ")[:2]) for line in str(caught.value).splitlines()]
    assert places == [
        "keepfor.yaml:4: stores.one.path",
        "keepfor.yaml:5: stores.one.keep_for",
        "keepfor.yaml:6: stores.one.keep_for",
        "keepfor.yaml:7: stores.one.colour",
        "keepfor.yaml:9: stores.two.preset",
        "keepfor.yaml:10: stores.two.max_bytes",
        "keepfor.yaml:11: stores.three",
        "keepfor.yaml:12: trial",
        "KEEPFOR_STATE_DIRR: no setting has this name. Did you mean KEEPFOR_STATE_DIR?",
        (
            "KEEPFOR_STORES__TWO__KEEP_LAST: -1 is no number of rows. "
            "Write 0, or a whole number such as 100."
        ),
    ]


def test_what_a_products_variable_says_is_refused_under_its_name(load_text: Load) -> None:
    """A path that cannot be expanded is the variable's fault, not the file's."""
    with pytest.raises(BadConfig, match=r"^AGENTM_RECALL_HISTORY: '\$NOPE/a' needs \$NOPE"):
        load_text("stores: {it: {preset: agentm}}", AGENTM_RECALL_HISTORY="$NOPE/a")


# --- files that are none ------------------------------------------------------------------


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder where the file should be is said to be one."""
    (tmp_path / "keepfor.yaml").mkdir()
    with pytest.raises(ConfigError, match=r"^keepfor\.yaml: this is a folder"):
        load(environ={}, cwd=tmp_path)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """A pipe, which would be waited on for ever, is refused at once."""
    os.mkfifo(tmp_path / "keepfor.yaml")
    with pytest.raises(ConfigError, match=r"^keepfor\.yaml: this is not a file"):
        load(environ={}, cwd=tmp_path)


def test_a_file_that_cannot_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system says is passed on, with what to do."""
    (tmp_path / "keepfor.yaml").write_text("stores: {}")

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError) as caught:
        load(environ={}, cwd=tmp_path)
    assert str(caught.value) == (
        "keepfor.yaml: it cannot be read (Permission denied). Make it readable for this user."
    )


def test_a_link_to_itself_is_said(tmp_path: Path) -> None:
    """A link that goes round in a circle is an error like any other."""
    (tmp_path / "keepfor.yaml").symlink_to("keepfor.yaml")
    with pytest.raises(ConfigError, match=r"^keepfor\.yaml: it cannot be read \("):
        load(environ={}, cwd=tmp_path)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"stores:\n  caf\xe9: {}\n", "keepfor.yaml:2: this is not UTF-8. Save the file as UTF-8."),
        ("stores: {}".encode("utf-16"), "keepfor.yaml:1: this is not UTF-8."),
        (
            b"stores:\n\n  a: \x07\n",
            r"keepfor.yaml:3: here is a character that no text holds ('\x07'",
        ),
        (b"stores:\n\tone: {}\n", "keepfor.yaml:2: a tab cannot indent a line. Write spaces."),
        (b"stores:\n  a: b: c\n", "keepfor.yaml:2: this is not YAML (mapping values are not"),
        (b"stores: {a: {\n", "keepfor.yaml:2: this is not YAML ("),
        (b"stores:\n  a: @b\n", "keepfor.yaml:2: this is not YAML (found character '@'"),
        (b"stores:\n  a: *b\n", "keepfor.yaml:2: this is not YAML (found undefined alias"),
        (b"a: 1\n---\nb: 2\n", "keepfor.yaml:2: this is not YAML (but found another document"),
        (b"stores: &a {b: *a}\n", "keepfor.yaml: it is nested without end."),
        (b"[" * 500, "keepfor.yaml: it is nested without end."),
    ],
)
def test_what_is_no_yaml_is_said_with_its_line(tmp_path: Path, raw: bytes, message: str) -> None:
    """A file that cannot be read as YAML is refused in one line that says where."""
    (tmp_path / "keepfor.yaml").write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load(environ={}, cwd=tmp_path)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
