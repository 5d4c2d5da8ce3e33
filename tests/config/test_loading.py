"""A configuration is found, its layers are laid over each other, and what results is exact."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from keepfor.config import Config, Ledger, find, load, policy_of, traps
from keepfor.config.opening import open_store
from keepfor.errors import BadConfig, ConfigError
from keepfor.policy.rules import Policy, Rule, keep_for
from keepfor.stores.runs import runs_at
from tests.config.conftest import on_disk

Load = Callable[..., Config]

EXAMPLE = """\
stores:
  recall:
    kind: ledger
    path: ~/.cache/agentm/telemetry/recall-history.jsonl
    time: ts            # the field; a dotted path reaches into objects
    keep_for: 90d
    max_bytes: 25MiB
  other:
    preset: agentm      # the same, from the shipped preset; honours $AGENTM_RECALL_HISTORY
"""
ONE = "stores: {recall: {kind: ledger, path: recall.jsonl, keep_for: 90d}}\n"


# --- what a file comes to -----------------------------------------------------------------


def test_the_example_loads_to_what_it_says(load_text: Load) -> None:
    """Every value of the example stands where it says, and every other one at its default."""
    config = load_text(EXAMPLE)
    assert list(config.stores) == ["recall", "other"]
    recall = config.stores["recall"]
    assert recall.kind == "ledger"
    assert recall.path == Path("/home/ada/.cache/agentm/telemetry/recall-history.jsonl")
    assert recall.time == "ts"
    assert recall.unit is None
    assert recall.timezone == "UTC"
    assert recall.keep_for == timedelta(days=90)
    assert recall.max_bytes == 26_214_400
    assert recall.keep_last == 0
    assert recall.unreadable == "drop"
    assert recall.breaker == 0.5
    assert recall.grace == timedelta(hours=24)
    assert config.trail.keep_for == timedelta(days=90)


def test_the_preset_says_the_same_as_the_example(load_text: Load) -> None:
    """A store that names the preset is the one that is written out beside it."""
    config = load_text(EXAMPLE)
    assert config.stores["other"] == config.stores["recall"]


def test_every_setting_can_be_said(load_text: Load, tmp_path: Path) -> None:
    """A file that sets everything loads to exactly that."""
    config = load_text(
        """
stores:
  events_2:
    kind: ledger
    path: logs/events.jsonl
    time: meta.created_at
    unit: ms
    timezone: Europe/Berlin
    keep_for: 1d12h
    max_bytes: 25MB
    keep_last: 10
    unreadable: keep
    breaker: off
    grace: 2w
trail:
  keep_for: forever
state_dir: state
"""
    )
    store = config.stores["events_2"]
    assert isinstance(store, Ledger)
    assert store.path == tmp_path / "logs/events.jsonl"
    assert (store.time, store.unit, store.timezone) == ("meta.created_at", "ms", "Europe/Berlin")
    assert store.keep_for == timedelta(hours=36)
    assert store.max_bytes == 25_000_000
    assert (store.keep_last, store.unreadable, store.breaker) == (10, "keep", None)
    assert store.grace == timedelta(days=14)
    assert config.trail.keep_for is None
    assert config.state_dir == tmp_path / "state"
    assert config.path == tmp_path / "keepfor.yaml"


@pytest.mark.parametrize(
    ("said", "duration"),
    [
        ("keep_for: forever", None),
        ("keep_for: P90D", timedelta(days=90)),
        ("keep_for: 30min", timedelta(minutes=30)),
        ("max_age_days: 90", timedelta(days=90)),
        ("max_age_days: 0.5", timedelta(hours=12)),
        ("max_bytes: 25MiB", None),
    ],
)
def test_a_store_says_when_in_one_way_or_another(
    load_text: Load, said: str, duration: timedelta | None
) -> None:
    """A duration, a number of days, never on purpose, or a ceiling alone: each is a policy."""
    config = load_text(f"stores:\n  it:\n    kind: ledger\n    path: a\n    {said}\n")
    assert config.stores["it"].keep_for == duration


@pytest.mark.parametrize(
    ("said", "breaker"), [("0.25", 0.25), ("1", 1.0), ("off", None), ('"off"', None)]
)
def test_the_breaker_is_a_fraction_or_off(
    load_text: Load, said: str, breaker: float | None
) -> None:
    """`off` is the word, although older YAML takes it for a boolean."""
    config = load_text(f"stores: {{it: {{preset: agentm, breaker: {said}}}}}")
    assert config.stores["it"].breaker == breaker


def test_a_store_comes_to_a_policy(load_text: Load) -> None:
    """The policy is what the store says: one rule for its age, its ceiling, floor and breaker."""
    config = load_text(
        "stores: {a: {kind: ledger, path: a, keep_for: 7d, max_bytes: 1KiB, keep_last: 3, "
        "breaker: 0.2}, b: {kind: ledger, path: b, keep_for: forever, breaker: off}}"
    )
    assert policy_of(config.stores["a"]) == Policy(
        rules=(Rule(name="keep_for", max_age=timedelta(days=7), action="delete"),),
        max_bytes=1024,
        keep_last=3,
        breaker=0.2,
    )
    assert policy_of(config.stores["b"]) == Policy(breaker=None)


def test_what_is_loaded_stays_as_it_is(load_text: Load) -> None:
    """Nobody changes a setting after it was checked."""
    config = load_text(ONE)
    with pytest.raises(AttributeError):
        config.state_dir = Path("/")  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        config.stores["recall"].keep_last = 5


# --- where a value comes from -------------------------------------------------------------


def test_a_value_remembers_where_it_came_from(load_text: Load) -> None:
    """File and line, preset, variable or default: each value names its own."""
    sources = load_text(
        EXAMPLE,
        AGENTM_RECALL_HISTORY="/srv/recall.jsonl",
        KEEPFOR_STORES__OTHER__KEEP_FOR="30d",
    ).sources
    assert sources["stores.recall.path"] == "keepfor.yaml:4"
    assert sources["stores.recall.keep_for"] == "keepfor.yaml:6"
    assert sources["stores.recall.grace"] == "default"
    assert sources["stores.other.kind"] == "preset agentm"
    assert sources["stores.other.path"] == "environment AGENTM_RECALL_HISTORY"
    assert sources["stores.other.keep_for"] == "environment KEEPFOR_STORES__OTHER__KEEP_FOR"
    assert sources["trail.keep_for"] == "default"
    assert sources["state_dir"] == "default"


def test_a_number_of_days_is_the_source_of_keep_for(load_text: Load) -> None:
    """`max_age_days` is another way to say keep_for, and its line is the source."""
    config = load_text("stores:\n  it:\n    preset: agentm\n    max_age_days: 30\n")
    assert config.sources["stores.it.keep_for"] == "keepfor.yaml:4"
    assert "stores.it.max_age_days" not in config.sources
    assert "stores.it.preset" not in config.sources


@pytest.mark.parametrize(
    ("path_in_file", "environ", "path"),
    [
        (False, {}, "/home/ada/.cache/agentm/telemetry/recall-history.jsonl"),
        (False, {"AGENTM_RECALL_HISTORY": "/srv/a"}, "/srv/a"),
        (False, {"AGENTM_RECALL_HISTORY": "~/a"}, "/home/ada/a"),
        (False, {"AGENTM_RECALL_HISTORY": "/srv/7"}, "/srv/7"),
        (
            False,
            {"AGENTM_RECALL_HISTORY": ""},
            "/home/ada/.cache/agentm/telemetry/recall-history.jsonl",
        ),
        (True, {"AGENTM_RECALL_HISTORY": "/srv/a"}, "/srv/mine"),
        (
            True,
            {"AGENTM_RECALL_HISTORY": "/srv/a", "KEEPFOR_STORES__IT__PATH": "/srv/b"},
            "/srv/b",
        ),
        (
            False,
            {"AGENTM_RECALL_HISTORY": "/srv/a", "KEEPFOR_STORES__IT__PATH": "/srv/b"},
            "/srv/b",
        ),
    ],
)
def test_the_later_layer_wins(
    load_text: Load, path_in_file: bool, environ: dict[str, str], path: str
) -> None:
    """Preset, then the product's own variable, then the file, then KEEPFOR_: the last one holds."""
    text = "stores:\n  it:\n    preset: agentm\n" + "    path: /srv/mine\n" * path_in_file
    assert on_disk(load_text(text, **environ).stores["it"]).path == Path(path)


@pytest.mark.parametrize(
    ("in_file", "environ", "days"),
    [
        ("preset: agentm, max_age_days: 30", {}, 30),
        ("preset: agentm, keep_for: 30d", {}, 30),
        ("kind: ledger, path: a, keep_for: 7d", {"KEEPFOR_STORES__IT__MAX_AGE_DAYS": "30"}, 30),
        ("kind: ledger, path: a, max_age_days: 7", {"KEEPFOR_STORES__IT__KEEP_FOR": "30d"}, 30),
    ],
)
def test_one_spelling_of_an_age_overrides_the_other(
    load_text: Load, in_file: str, environ: dict[str, str], days: int
) -> None:
    """keep_for and max_age_days are one setting: a later layer overrides it in either spelling."""
    config = load_text(f"stores: {{it: {{{in_file}}}}}", **environ)
    assert config.stores["it"].keep_for == timedelta(days=days)


def test_a_preset_is_overridden_key_by_key(load_text: Load) -> None:
    """What stands beside `preset` replaces that one value and leaves the others."""
    text = "stores: {it: {preset: agentm, max_bytes: 1MiB, unit: s}}"
    store = on_disk(load_text(text).stores["it"])
    assert store.max_bytes == 1_048_576
    assert store.unit == "s"
    assert store.keep_for == timedelta(days=90)


# --- which file ---------------------------------------------------------------------------


def test_the_file_is_found_in_the_working_folder_or_above(tmp_path: Path) -> None:
    """The nearest keepfor.yaml upwards is the one, and its paths are relative to it."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "keepfor.yaml").write_text(ONE)
    config = load(environ={}, cwd=below)
    assert config.path == tmp_path / "keepfor.yaml"
    assert on_disk(config.stores["recall"]).path == tmp_path / "recall.jsonl"
    assert config.sources["stores.recall.path"] == f"{tmp_path}/keepfor.yaml:1"
    (tmp_path / "a" / "keepfor.yaml").write_text(ONE)
    assert load(environ={}, cwd=below).path == tmp_path / "a" / "keepfor.yaml"


def test_a_file_that_is_broken_is_not_passed_over(tmp_path: Path) -> None:
    """A link that leads nowhere is reported, and no other file further up taken in its place."""
    below = tmp_path / "a"
    below.mkdir()
    (tmp_path / "keepfor.yaml").write_text(ONE)
    (below / "keepfor.yaml").symlink_to("gone.yaml")
    with pytest.raises(ConfigError, match=r"^keepfor\.yaml: there is no such file"):
        load(environ={}, cwd=below)


@pytest.mark.writes_home
def test_the_users_own_file_is_the_last_place(tmp_path: Path) -> None:
    """With none in the working folder or above it, the user's configuration folder is asked."""
    users = Path(os.environ["XDG_CONFIG_HOME"]) / "keepfor" / "keepfor.yaml"
    users.parent.mkdir(parents=True)
    users.write_text(ONE)
    config = load(environ={}, cwd=tmp_path)
    assert config.path == users
    assert on_disk(config.stores["recall"]).path == users.parent / "recall.jsonl"
    (tmp_path / "keepfor.yaml").write_text(ONE)
    assert load(environ={}, cwd=tmp_path).path == tmp_path / "keepfor.yaml"


def test_without_any_file_it_says_how_to_begin(tmp_path: Path) -> None:
    """When there is nothing to load, the message names where it looked and what to do."""
    with pytest.raises(ConfigError) as caught:
        load(environ={}, cwd=tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert os.environ["XDG_CONFIG_HOME"] in str(caught.value)
    assert "keepfor config init" in str(caught.value)
    assert "--config" in str(caught.value)


def test_a_named_file_is_taken_before_any_that_is_found(tmp_path: Path) -> None:
    """--config wins over KEEPFOR_CONFIG, and that over a search; each is relative to the folder."""
    for name in ("keepfor.yaml", "one.yaml", "two.yaml"):
        (tmp_path / name).write_text(ONE)
    environ = {"KEEPFOR_CONFIG": "two.yaml"}
    assert load(Path("one.yaml"), environ, tmp_path).path == tmp_path / "one.yaml"
    assert load(None, environ, tmp_path).path == tmp_path / "two.yaml"
    absolute = {"KEEPFOR_CONFIG": "$PLACE/one.yaml", "PLACE": str(tmp_path)}
    assert load(None, absolute, tmp_path).path == tmp_path / "one.yaml"


@pytest.mark.parametrize("named", [True, False])
def test_a_named_file_must_be_there(tmp_path: Path, named: bool) -> None:
    """A named file that is missing is an error, though another one could be found."""
    (tmp_path / "keepfor.yaml").write_text(ONE)
    missing = tmp_path / "missing.yaml"
    environ = {} if named else {"KEEPFOR_CONFIG": str(missing)}
    with pytest.raises(ConfigError, match=r"^missing\.yaml: there is no such file"):
        load(missing if named else None, environ, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "KEEPFOR_CONFIG: '' is no path"), ("$NOPE/x", "KEEPFOR_CONFIG: '$NOPE/x' needs $NOPE")],
)
def test_an_empty_name_is_no_name(tmp_path: Path, text: str, message: str) -> None:
    """KEEPFOR_CONFIG without a usable name is refused, and not taken for unset."""
    (tmp_path / "keepfor.yaml").write_text(ONE)
    with pytest.raises(ConfigError) as caught:
        load(environ={"KEEPFOR_CONFIG": text}, cwd=tmp_path)
    assert str(caught.value).startswith(message)


def test_the_process_has_a_folder_and_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without arguments, the process's own working folder and environment count."""
    (tmp_path / "keepfor.yaml").write_text(ONE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEEPFOR_STORES__RECALL__KEEP_LAST", "4")
    assert load().stores["recall"].keep_last == 4
    assert find(None, {}, tmp_path) == tmp_path / "keepfor.yaml"


def test_a_working_folder_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that was removed under it, keepfor says so."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="working folder is gone"):
        load(environ={})


# --- paths and state ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("recall.jsonl", "{folder}/recall.jsonl"),
        ("../recall.jsonl", "{folder}/../recall.jsonl"),
        ("/srv/recall.jsonl", "/srv/recall.jsonl"),
        ("~/recall.jsonl", "/home/ada/recall.jsonl"),
        ('"~"', "/home/ada"),
        ("~root/recall.jsonl", "{root}/recall.jsonl"),
        ("$DATA/recall.jsonl", "/srv/data/recall.jsonl"),
        ("${DATA}_2/recall.jsonl", "/srv/data_2/recall.jsonl"),
        ("$BELOW/recall.jsonl", "/home/ada/below/recall.jsonl"),
        ("price$/recall.jsonl", "{folder}/price$/recall.jsonl"),
        ("a~/recall.jsonl", "{folder}/a~/recall.jsonl"),
    ],
)
def test_a_path_leads_where_it_says(
    load_text: Load, tmp_path: Path, written: str, path: str
) -> None:
    """Relative to the file; `~` is the home folder; $VAR and ${VAR} are filled in."""
    import pwd

    root = pwd.getpwnam("root").pw_dir
    text = f"stores:\n  it:\n    kind: ledger\n    path: {written}\n    keep_for: 90d\n"
    config = load_text(text, DATA="/srv/data", BELOW="~/below")
    assert str(on_disk(config.stores["it"]).path) == path.format(folder=tmp_path, root=root)


def test_without_a_home_the_password_file_knows_it(
    load_text: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty $HOME does not make `~` the root of the file system."""
    import pwd

    config = load_text("stores: {it: {preset: agentm, path: ~/a}}", HOME="")
    assert on_disk(config.stores["it"]).path == Path(pwd.getpwuid(os.getuid()).pw_dir) / "a"

    def nobody(_: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(BadConfig, match=r"'~/a' needs the home folder ~, which is unknown"):
        load_text("stores: {it: {preset: agentm, path: ~/a}}", HOME="")


def test_a_path_in_a_variable_starts_from_the_working_folder(tmp_path: Path) -> None:
    """No file names a path that stands in the environment, so the working folder counts."""
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "keepfor.yaml").write_text("stores: {it: {preset: agentm}}")
    environ = {"HOME": "/home/ada", "AGENTM_RECALL_HISTORY": "a.jsonl", "KEEPFOR_STATE_DIR": "s"}
    config = load(environ=environ, cwd=below)
    assert on_disk(config.stores["it"]).path == below / "a.jsonl"
    assert config.state_dir == below / "s"


def test_each_configuration_has_a_state_folder_of_its_own(tmp_path: Path) -> None:
    """Two files never share their state by default, and one file under two names does."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "keepfor.yaml").write_text(ONE)
    (tmp_path / "c").symlink_to("a")
    a, b, c = (load(environ={}, cwd=tmp_path / name).state_dir for name in ("a", "b", "c"))
    digest = hashlib.sha256(str(tmp_path / "a" / "keepfor.yaml").encode()).hexdigest()
    assert a == Path(os.environ["XDG_STATE_HOME"]) / "keepfor" / digest[:12]
    assert b.parent == a.parent
    assert b != a
    assert c == a


def test_the_state_folder_can_be_moved(load_text: Load, tmp_path: Path) -> None:
    """`state_dir` moves it, and KEEPFOR_STATE_DIR moves it whatever the file says."""
    text = f"{ONE}state_dir: ~/state\n"
    assert load_text(text).state_dir == Path("/home/ada/state")
    moved = load_text(text, KEEPFOR_STATE_DIR="/srv/state")
    assert moved.state_dir == Path("/srv/state")
    assert moved.sources["state_dir"] == "environment KEEPFOR_STATE_DIR"


def test_loading_writes_nothing(load_text: Load, tmp_path: Path) -> None:
    """Reading a configuration creates neither its state folder nor anything beside it."""
    config = load_text(ONE, KEEPFOR_STATE_DIR=str(tmp_path / "state"))
    assert not config.state_dir.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["keepfor.yaml"]


# --- traps --------------------------------------------------------------------------------


def test_the_example_has_no_trap(load_text: Load) -> None:
    """Two stores on one file that say the same are as good as one."""
    assert traps(load_text(EXAMPLE)) == {}


@pytest.mark.parametrize("key", ["keep_for: 30d", "keep_last: 1", "unit: s"])
def test_two_policies_on_one_file_are_a_trap(load_text: Load, tmp_path: Path, key: str) -> None:
    """Stores that resolve to one file and differ are named, both of them, even through a link."""
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    config = load_text(
        "stores: {one: {preset: agentm, path: a.jsonl}, apart: {preset: agentm, path: b.jsonl}, "
        f"two: {{preset: agentm, path: link.jsonl, {key}}}}}"
    )
    found = traps(config)
    assert list(found) == ["two"]
    [trap] = found["two"]
    assert trap.rule == "path"
    assert "one and two" in trap.what
    assert "leave one out" in trap.fix


# --- runs ---------------------------------------------------------------------------------


def test_runs_are_held_to_a_count_an_age_or_both(load_text: Load) -> None:
    """Each bound of a directory of runs is read, and those that are left out bound nothing."""
    config = load_text(
        "stores:\n"
        "  by_count: {kind: runs, path: a, max_count: 200}\n"
        "  by_age: {kind: runs, path: b, keep_for: 90d, keep_last: 5}\n"
        "  by_both: {kind: runs, path: c, max_count: 20, max_age_days: 1, max_bytes: 1MiB}\n"
        "  by_none: {kind: runs, path: d, max_count: off}\n"
    )
    policies = {name: policy_of(store) for name, store in config.stores.items()}
    assert policies == {
        "by_count": Policy(max_count=200),
        "by_age": Policy(rules=keep_for(timedelta(days=90)), keep_last=5),
        "by_both": Policy(rules=keep_for(timedelta(days=1)), max_count=20, max_bytes=1 << 20),
        "by_none": Policy(),
    }


def test_a_store_of_runs_is_opened_as_it_is_configured(load_text: Load, tmp_path: Path) -> None:
    """What bears on how runs are read reaches the store; nothing is touched by opening it."""
    config = load_text(
        "stores:\n"
        "  plain: {kind: runs, path: a, max_count: 1}\n"
        "  said: {kind: runs, path: b, max_count: 1, time: at.end, unit: ms, grace: 5min,\n"
        "    timezone: Europe/Berlin}\n"
    )
    plain, said = (open_store(config, name) for name in config.stores)
    assert plain == runs_at(tmp_path / "a", grace=timedelta(hours=1))
    assert said == runs_at(
        tmp_path / "b",
        time="at.end",
        unit="ms",
        zone=ZoneInfo("Europe/Berlin"),
        grace=timedelta(minutes=5),
    )
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("", "nothing would ever be removed. Write `max_count: 200`, `keep_for: 90d` or both; "),
        ("max_count: 0", "0 is no bound. Write a whole number above 0, such as 200, or off."),
        ("max_count: -5", "-5 is no bound."),
        ("max_count: true", "True is no bound."),
        ('max_count: "200"', "'200' is no bound."),
        ("max_count: none", "'none' is no bound."),
        ("max_count: 3, keep_last: 4", "keep_last (4) is above max_count (3). Lower the one"),
        ("max_count: 3, keep_last: x", "'x' is no number of runs. Write 0, or a whole number"),
        ("max_count: 3, grace: 60", "60 is no grace: it has no unit. Write a duration such as 1h."),
        ("max_count: 3, grace: forever", "'forever' is no grace: nothing would ever be removed."),
        ("max_count: 3, unreadable: drop", "this key is unknown. Known here: kind, path, time,"),
        ("max_count: 3, time: 7", "7 names no field."),
        ("max_cuont: 3", "this key is unknown. Did you mean max_count?"),
    ],
)
def test_what_could_be_a_slip_in_runs_is_refused(
    load_text: Load, settings: str, message: str
) -> None:
    """A bound that cannot be meant removes nothing, and is told what to write instead."""
    with pytest.raises(BadConfig) as caught:
        load_text(f"stores: {{rem: {{kind: runs, path: a, {settings}}}}}")
    assert message in str(caught.value)
