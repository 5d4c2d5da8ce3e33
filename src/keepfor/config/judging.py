"""Holds what was written against the models, and says in plain words what does not fit."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from keepfor.config.document import Document, Dotted
from keepfor.config.faults import LAST_LINE, Fault, nearest
from keepfor.config.fields import Unread
from keepfor.config.layers import Layer, Value
from keepfor.config.models import KINDS, Settings, Trail, part_at, store_keys
from keepfor.config.sections import keys_of

*_OTHERS, _LAST = (f"`kind: {kind}`" for kind in KINDS)
_KINDS = f"{', '.join(_OTHERS)} or {_LAST}"


def judge(
    sections: Mapping[Dotted, Layer], document: Document, faults: list[Fault]
) -> Settings | None:
    """The settings, read and checked.

    Parameters:
        sections: what was written, by the section's dotted path.
        document: the file, to say where a section stands.
        faults: takes what does not fit.

    Returns:
        None when anything does not fit.
    """
    try:
        return Settings.model_validate(_tree(sections))
    except ValidationError as error:
        faults += [_fault(found, sections, document) for found in error.errors(include_url=False)]
        return None


def _tree(sections: Mapping[Dotted, Layer]) -> dict[str, object]:
    raw = {
        path: {key: value.raw for key, value in layer.items()} for path, layer in sections.items()
    }
    stores = {path[1]: section for path, section in raw.items() if path[:1] == ("stores",)}
    return {**raw[()], "trail": raw["trail",], "stores": stores}


def _fault(found: ErrorDetails, sections: Mapping[Dotted, Layer], document: Document) -> Fault:
    path = _path(found)
    value, within = _written(path, sections)
    what = _what(found, path, value, sections)
    if found["type"] == "missing":
        path, within = path[:-1], within[:-1]
    if value is None:
        place = path if path in document.lines else path[:-1]
        return Fault(where=document.place(place), what=what, line=document.line(place))
    if not within:
        return Fault(where=value.where, what=what, line=value.line)
    if value.within:
        file, way = value.within
        return Fault(where=file.place((*way, *within)), what=what)
    if value.line == LAST_LINE:
        # It stands in a variable or a preset, and only the way to it can be told.
        return Fault(where=".".join((value.where, *within)), what=what)
    return Fault(where=document.place(path), what=what, line=document.line(path))


def _written(path: Dotted, sections: Mapping[Dotted, Layer]) -> tuple[Value | None, Dotted]:
    """What was written for the setting that a path leads to, and the way on within it."""
    for end in range(len(path)):
        if value := sections.get(path[:end], {}).get(path[end]):
            return value, path[end + 1 :]
    return None, ()


def _path(found: ErrorDetails) -> Dotted:
    """Where in the configuration it is; pydantic's own steps on the way are left out."""
    path = tuple(map(str, found["loc"]))
    if path[-1] == "[key]":
        return path[:-1]
    if path[0] == "stores" and len(path) > 2 and path[2] in KINDS:
        path = (*path[:2], *path[3:])
    if found["type"] == "union_tag_invalid":
        path = (*path, "kind")
    return path


def _what(
    found: ErrorDetails, path: Dotted, value: Value | None, sections: Mapping[Dotted, Layer]
) -> str:
    key, context = path[-1], found.get("ctx", {})
    match found["type"]:
        case "extra_forbidden":
            return f"this key is unknown. {nearest(key, _known(path[:-1], sections))}"
        case _ if isinstance(found["input"], Unread):
            return found["input"].what
        case _ if found["input"] is None or (value is not None and value.raw is None):
            return "it has no value. Write one, or leave the key out."
        case "value_error":
            return str(context["error"])
        case "missing" if value is None:
            return f"{key} is missing. Write a line `{key}:` below it."
        case "missing":
            return f"{key} is missing. Write it too, as `{key}: …`."
        case "model_type":
            return f"settings belong here. Known here: {', '.join(_known(path, sections))}."
        case "union_tag_not_found":
            return f"kind is missing. Write {_KINDS}, or name a preset."
        case "union_tag_invalid":
            kind = value.raw if value else context["tag"]
            return f"{kind!r} is no kind of store. {nearest(str(kind), KINDS)}"
        case "string_pattern_mismatch":
            name = re.sub(r"[^a-z0-9_]", "_", key.lower()) or "recall"
            what = "a store's name holds small letters, digits and underscores only."
            return f"{what} Write {name}."
        case "literal_error":
            words = re.findall(r"'([^']*)'", context["expected"])
            return f"{found['input']!r} means nothing here. {nearest(str(found['input']), words)}"
        case _:
            # No setting can fail in another way today; pydantic's own words beat none.
            return f"{found['msg']}."


def _known(path: Dotted, sections: Mapping[Dotted, Layer]) -> list[str]:
    if path[:1] != ("stores",):
        return keys_of(Trail if path else Settings)
    kind = sections[path[:2]]["kind"].raw
    part = part_at(kind, path[2:])
    return list(part.model_fields) if part else store_keys(kind)
