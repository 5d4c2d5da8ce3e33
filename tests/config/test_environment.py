"""Every setting has a variable that overrides it, and no other variable is let pass."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.config import Config, load, schema
from keepfor.config.environment import overrides, strangers, variable
from keepfor.errors import BadConfig

Load = Callable[..., Config]

TWO = "stores: {recall: {kind: ledger, path: a, keep_for: 90d}, other: {preset: agentm}}\n"

#: For every key that the schema knows: what the variable says, the setting it moves, its value.
LEDGER = {
    "kind": ("ledger", "kind", "ledger"),
    "path": ("/srv/7", "path", Path("/srv/7")),
    "time": ("at", "time", "at"),
    "unit": ("ms", "unit", "ms"),
    "timezone": ("Europe/Berlin", "timezone", "Europe/Berlin"),
    "keep_for": ("30d", "keep_for", timedelta(days=30)),
    "max_age_days": ("1.5", "keep_for", timedelta(hours=36)),
    "max_bytes": ("1KiB", "max_bytes", 1024),
    "keep_last": ("7", "keep_last", 7),
    "unreadable": ("keep", "unreadable", "keep"),
    "breaker": ("off", "breaker", None),
    "grace": ("2h", "grace", timedelta(hours=2)),
    "interval": ("15min", "interval", timedelta(minutes=15)),
    "interval_seconds": ("90", "interval", timedelta(seconds=90)),
    "preset": ("agentm", "max_bytes", 26_214_400),
}
TRAIL = {"keep_for": ("forever", None), "max_age_days": ("30", timedelta(days=30))}
TOP = {"state_dir": ("/srv/state", Path("/srv/state"))}


def keys(*path: str) -> set[str]:
    """The keys that the JSON Schema knows in a section."""
    found = schema()["$defs"][path[0]] if path else schema()
    return set(found["properties"])


@pytest.mark.parametrize("key", sorted(keys("Ledger")))
def test_every_setting_of_a_store_can_be_overridden(load_text: Load, key: str) -> None:
    """KEEPFOR_STORES__NAME__KEY wins over what the file says, and is remembered as the source."""
    text, moved, value = LEDGER[key]
    name = f"KEEPFOR_STORES__RECALL__{key.upper()}"
    config = load_text(TWO, **{name: text})
    assert getattr(config.stores["recall"], moved) == value
    source = "preset agentm" if key == "preset" else f"environment {name}"
    assert config.sources[f"stores.recall.{moved}"] == source
    assert config.stores["other"] == load_text(TWO).stores["other"]


@pytest.mark.parametrize("key", sorted(keys("Trail")))
def test_every_setting_of_the_trail_can_be_overridden(load_text: Load, key: str) -> None:
    """KEEPFOR_TRAIL__KEY wins over what the file says."""
    text, value = TRAIL[key]
    config = load_text(f"{TWO}trail: {{keep_for: 7d}}\n", **{f"KEEPFOR_TRAIL__{key.upper()}": text})
    assert config.trail.keep_for == value


@pytest.mark.parametrize("key", sorted(keys() - {"stores", "trail"}))
def test_every_setting_at_the_top_can_be_overridden(load_text: Load, key: str) -> None:
    """KEEPFOR_KEY wins over what the file says."""
    text, value = TOP[key]
    config = load_text(f"{TWO}state_dir: s\n", **{f"KEEPFOR_{key.upper()}": text})
    assert getattr(config, key) == value


@pytest.mark.parametrize("name", ["a__b", "_", "a_", "_a", "__", "7", "keep_for", "ledger"])
def test_any_name_of_a_store_has_its_variables(load_text: Load, name: str) -> None:
    """Underscores in a store's name do not lead astray, even where two names share a beginning."""
    config = load_text(
        f"stores: {{a: {{preset: agentm}}, {name}: {{preset: agentm}}}}",
        **{f"KEEPFOR_STORES__{name.upper()}__KEEP_LAST": "7"},
    )
    assert config.stores[name].keep_last == 7
    assert config.stores["a"].keep_last == 0


@given(
    st.lists(st.from_regex(r"\A[a-z0-9_]{1,6}\Z"), min_size=1, max_size=6, unique=True),
    st.sampled_from(sorted(LEDGER)),
    st.data(),
)
def test_a_variable_speaks_of_one_setting_only(
    stores: list[str], key: str, data: st.DataObject
) -> None:
    """Whatever the stores are called, a variable moves the one setting that it is named for."""
    known = [("stores", store, key) for store in stores for key in LEDGER]
    store = data.draw(st.sampled_from(stores))
    environ = {variable(("stores", store, key)): "x"}
    assert overrides(environ, known) == {("stores", store, key): "x"}
    assert list(strangers(environ, known, "keepfor.yaml")) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("KEEPFOR_STATE_DIRR", "no setting has this name. Did you mean KEEPFOR_STATE_DIR?"),
        ("KEEPFOR_CONFG", "no setting has this name. Did you mean KEEPFOR_CONFIG?"),
        (
            "KEEPFOR_TRIAL__KEEP_FOR",
            "no setting has this name. Did you mean KEEPFOR_TRAIL__KEEP_FOR?",
        ),
        (
            "KEEPFOR_STORES__RECALL__KEEP_FRO",
            "no setting has this name. Did you mean KEEPFOR_STORES__RECALL__KEEP_FOR?",
        ),
        (
            "KEEPFOR_STORES__RECALL__keep_for",
            "no setting has this name. Did you mean KEEPFOR_STORES__RECALL__KEEP_FOR?",
        ),
        (
            "KEEPFOR_STORES_RECALL_KEEP_FOR",
            "no setting has this name. Did you mean KEEPFOR_STORES__RECALL__KEEP_FOR?",
        ),
        ("KEEPFOR_STORES__RECALL__COLOUR", "no setting has this name. Unset it."),
        ("KEEPFOR_COLOUR", "no setting has this name. Unset it."),
        ("KEEPFOR_", "no setting has this name. Unset it."),
        (
            "KEEPFOR_STORES__NOSUCH__KEEP_FOR",
            "keepfor.yaml has no store 'nosuch'. Known here: recall, other.",
        ),
        (
            "KEEPFOR_STORES__RECAL__KEEP_FOR",
            "keepfor.yaml has no store 'recal'. Did you mean recall?",
        ),
        ("KEEPFOR_STORES__OTHR", "keepfor.yaml has no store 'othr'. Did you mean other?"),
        (
            "KEEPFOR_STORES",
            "this is a group of settings. Name one of them, such as KEEPFOR_STORES__RECALL__KIND.",
        ),
        (
            "KEEPFOR_STORES__OTHER",
            "this is a group of settings. Name one of them, such as KEEPFOR_STORES__OTHER__KIND.",
        ),
        (
            "KEEPFOR_TRAIL",
            "this is a group of settings. Name one of them, such as KEEPFOR_TRAIL__KEEP_FOR.",
        ),
    ],
)
def test_a_variable_that_is_no_settings_is_refused(
    load_text: Load, name: str, message: str
) -> None:
    """A typo in a variable's name is an error like one in a key, and leads to the right name."""
    with pytest.raises(BadConfig) as caught:
        load_text(TWO, **{name: "x"})
    assert str(caught.value) == f"{name}: {message}"


def test_other_programs_variables_are_left_alone(load_text: Load) -> None:
    """Only what begins with KEEPFOR_ is held to be a setting."""
    plain = load_text(TWO)
    assert load_text(TWO, _KEEPFOR_COMPLETE="x", KEEPFORX="x", keepfor_state_dir="x") == plain


def test_the_two_variables_that_are_always_there(tmp_path: Path) -> None:
    """KEEPFOR_CONFIG and KEEPFOR_STATE_DIR are known whatever the file says."""
    (tmp_path / "x.yaml").write_text(TWO)
    environ = {"KEEPFOR_CONFIG": "x.yaml", "KEEPFOR_STATE_DIR": "/s", "HOME": "/home/ada"}
    assert load(environ=environ, cwd=tmp_path).state_dir == Path("/s")


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("KEEP_FOR", "90", '90 is not a duration: it has no unit. Write "90d" for days'),
        ("KEEP_FOR", "", "it has no value. Write one, or leave the key out."),
        ("MAX_BYTES", "26214400", "26214400 is not a size: it has no unit."),
        ("KEEP_LAST", "many", "'many' is no number of rows."),
        ("BREAKER", "no", "'no' is no fraction."),
        ("UNREADABLE", "dorp", "'dorp' means nothing here. Did you mean drop?"),
        ("PATH", "", "'' is no path."),
        ("PATH", "$NOPE/a", "'$NOPE/a' needs $NOPE, which is not set."),
        ("KIND", "ledgr", "'ledgr' is no kind of store. Did you mean ledger?"),
        ("PRESET", "agentn", "'agentn' is no preset. Did you mean agentm?"),
        ("MAX_AGE_DAYS", "90d", "'90d' is no age in days: it is not a number of days."),
    ],
)
def test_a_variables_value_is_checked_like_a_keys(
    load_text: Load, key: str, text: str, message: str
) -> None:
    """What would be refused in the file is refused here, under the variable's name."""
    name = f"KEEPFOR_STORES__RECALL__{key}"
    with pytest.raises(BadConfig) as caught:
        load_text(TWO, **{name: text})
    assert str(caught.value).startswith(f"{name}: {message}")


def test_an_interval_is_said_once(load_text: Load) -> None:
    """An interval in both spellings is ambiguous; a later layer overrides it in either one."""
    with pytest.raises(BadConfig, match=r"^KEEPFOR_STORES__RECALL__INTERVAL_SECONDS: interval is"):
        load_text(
            TWO,
            KEEPFOR_STORES__RECALL__INTERVAL_SECONDS="90",
            KEEPFOR_STORES__RECALL__INTERVAL="90s",
        )
    text = "stores: {it: {preset: agentm, interval_seconds: 7200}}"
    assert load_text(text).stores["it"].interval == timedelta(hours=2)
    moved = load_text(text, KEEPFOR_STORES__IT__INTERVAL="2d").stores["it"]
    assert moved.interval == timedelta(days=2)


def test_one_setting_said_twice_in_the_environment_is_refused(load_text: Load) -> None:
    """An age in both spellings is ambiguous in the environment too."""
    with pytest.raises(BadConfig, match=r"^KEEPFOR_STORES__RECALL__MAX_AGE_DAYS: keep_for is"):
        load_text(
            TWO,
            KEEPFOR_STORES__RECALL__MAX_AGE_DAYS="90",
            KEEPFOR_STORES__RECALL__KEEP_FOR="90d",
        )


def test_a_variable_for_a_store_in_disorder_is_known(load_text: Load) -> None:
    """Beside the one fault of a store, its variables are not called unknown."""
    with pytest.raises(BadConfig) as caught:
        load_text("stores: {it: 5}", KEEPFOR_STORES__IT__KEEP_FOR="30d")
    assert str(caught.value).startswith("keepfor.yaml:1: stores.it: settings belong here.")
    assert "\n" not in str(caught.value)
