"""Reads a rule of notes and sessions from a mapping, with the keys that keepfor.yaml has."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from keepfor.errors import BadPolicy
from keepfor.policy.rules import Rule
from keepfor.times import days_duration, parse_duration

_Read = Callable[[object], object]


def read(said: Mapping[str, Any]) -> Rule:
    """The rule that a mapping says.

    Parameters:
        said: its keys and values, as they would stand in keepfor.yaml.

    Raises:
        BadPolicy: when a key is unknown, is said twice in two ways, or means nothing.
        BadDuration: when a duration cannot be understood.
    """
    if not isinstance(said, Mapping):
        raise BadPolicy(what=f"a rule is {said!r}.", fix="Write a mapping, with a `name`.")
    name = said.get("name", "")
    settings: dict[str, Any] = {}
    for key, value in said.items():
        if key not in _KEYS:
            close = difflib.get_close_matches(str(key), _KEYS, n=1)
            fix = f"Did you mean `{close[0]}`?" if close else f"Known here: {', '.join(_KEYS)}."
            raise BadPolicy(what=f"rule {name!r}: `{key}` is unknown.", fix=fix)
        means, understand = _KEYS[key]
        if means in settings:
            what = f"rule {name!r}: `{key}` says what another key says already."
            raise BadPolicy(what=what, fix="Leave one out.")
        settings[means] = understand(value)
    if match := settings.pop("match", None):
        settings["match_fields"] = {key: text for key, text in match.items() if key != "id"}
        settings["match_id"] = match.get("id")
    return Rule(**{"name": "", **settings})


def _span(value: object) -> timedelta | None:
    return parse_duration(value)


def _days(value: object) -> timedelta:
    return value if isinstance(value, timedelta) else days_duration(value)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadPolicy(what=f"{value!r} is neither true nor false.", fix="Write one of the two.")
    return value


def _match(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not value:
        fix = "Write {'id': 'guideline/*'}, or keys of a note with what they say."
        raise BadPolicy(what=f"`match` is {value!r}.", fix=fix)
    return value


def _as_it_is(value: object) -> object:
    return value


#: What each key stands for in a rule, and what reads it.
_KEYS: dict[str, tuple[str, _Read]] = {
    "name": ("name", _as_it_is),
    "type": ("type", _as_it_is),
    "entity_type": ("type", _as_it_is),
    "match": ("match", _match),
    "max_age": ("max_age", _span),
    "max_age_days": ("max_age", _days),
    "max_unused": ("max_unused", _span),
    "max_unused_days": ("max_unused", _days),
    "after_flagged": ("after_flagged", _span),
    "action": ("action", _as_it_is),
    "on_missing_access_signal": ("on_missing_access_signal", _as_it_is),
    "cascade_derived": ("cascade_derived", _truth),
    "keep_if_cited": ("keep_if_cited", _truth),
}
