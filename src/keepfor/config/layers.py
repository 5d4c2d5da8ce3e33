"""Lays the sources over each other, lowest first: preset, product, file, environment.

Each value keeps where it came from. Nothing is judged here that a model can judge.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from keepfor import presets
from keepfor.config import environment, rulesfile
from keepfor.config.document import Document, Dotted, flow, scalar
from keepfor.config.faults import LAST_LINE, Fault, closest, nearest
from keepfor.config.fields import PlaceText, Unread
from keepfor.config.models import Settings, Trail, is_placed, is_structured, store_keys
from keepfor.config.paths import expand, shown, state_folder
from keepfor.config.sections import STAND_INS, keys_of
from keepfor.errors import BadConfig

SECTIONS = ("stores", "trail")


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and what it is read in.

    Parameters:
        document: what the file says.
        file: its absolute path.
        folder: the working folder, from which a relative path in a variable starts.
        environ: the environment.
        policy: the file that has the rules of each store of notes, whatever else says so.
    """

    document: Document
    file: Path
    folder: Path
    environ: Mapping[str, str]
    policy: Path | None = None


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What was written for a setting.

    Parameters:
        raw: what the model is to read.
        source: where it came from, for `config show`.
        where: the same with the key, for a message.
        line: the line in the file, to sort messages by.
        within: the other file that it stands in, and the way to it there.
    """

    raw: object
    source: str
    where: str
    line: int = LAST_LINE
    within: tuple[Document, Dotted] | None = None


#: One section's values, out of one source or merged.
Layer = dict[str, Value]


def gather(around: Surroundings, faults: list[Fault]) -> dict[Dotted, Layer]:
    """Finds, for each setting, the value that counts.

    Parameters:
        around: the file, and what it is read in.
        faults: takes what is wrong that no model would see.

    Returns:
        The settings of each section that can be judged, by the section's dotted path.
    """
    settings = dict(around.document.values)
    named = settings.pop("stores", None) or {}
    stores = _section(("stores",), named, around, faults)
    trail = _section(("trail",), settings.pop("trail", {}), around, faults)
    if not named:
        what = "it names no stores, so there is nothing to do. See `keepfor config init`."
        faults.append(Fault(where=around.document.name, what=what, line=0))

    top_keys = [key for key in Settings.model_fields if key not in SECTIONS]
    layers: dict[Dotted, list[Layer]] = {
        (): [_default_state(around), *_written((), settings, top_keys, around)],
        ("trail",): _written(("trail",), trail, keys_of(Trail), around),
    }
    known: list[Dotted] = [(key,) for key in top_keys]
    known += [("trail", key) for key in keys_of(Trail)]
    for name in stores:
        path = ("stores", name)
        store = _section(path, stores[name], around, faults)
        preset = _preset(path, store, around, faults)
        kind = _kind(path, store, preset, around)
        keys = store_keys(kind)
        known += [(*path, key) for key in keys]
        # Of a store that could not be read at all, enough has been said.
        if isinstance(stores[name], dict):
            layers[path] = [*preset, *_written(path, store, keys, around)]
            if around.policy is not None and kind == "entities":
                layers[path].append(_named(around.policy, around))
    faults += environment.strangers(around.environ, known, around.document.name)
    merged = {path: _merged(below, faults) for path, below in layers.items()}
    for section in merged.values():
        if said := section.get("rules_from"):
            usual = said.source.startswith("preset ")
            section.update(_rules(said, usual, around, faults))
    for name in stores:
        merged.get(("stores", name), {}).pop("preset", None)
    return merged


def _named(policy: Path, around: Surroundings) -> Layer:
    where = f"--policy {shown(around.folder / policy, around.folder)}"
    return {"rules_from": Value(raw=around.folder / policy, source=where, where=where)}


def _rules(said: Value, usual: bool, around: Surroundings, faults: list[Fault]) -> Layer:
    """The rules that stand in a file of their own.

    Parameters:
        said: which file.
        usual: whether it is only where a product has it, if it has any.
    """
    match said.raw:
        case Path() as path:
            pass
        case PlaceText(text=text, base=base, environ=environ):
            try:
                path = expand(text, base, environ)
            except ValueError:
                # The model refuses it, in its own words.
                return {}
        case _:
            return {}
    there, before = os.path.lexists(path), len(faults)
    if usual and not there:
        return {}
    try:
        found = rulesfile.found(path, shown(path, around.folder), faults) if there else None
    except BadConfig as error:
        where, _, what = str(error).partition(": ")
        faults.append(Fault(where=where, what=what))
        return {}
    if found:
        document, way = found
        raw: object = document.values
        for key in way:
            raw = raw[key] if isinstance(raw, dict) else None
        source, where = document.source(way), document.place(way)
        return {"rules": Value(raw=raw, source=source, where=where, within=found)}
    if not usual and len(faults) == before:
        what = "it has no `rules:`. Write them there." if there else "there is no such file."
        faults.append(Fault(where=said.where, what=what, line=said.line))
    return {}


def _section(
    path: Dotted, value: object, around: Surroundings, faults: list[Fault]
) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    what = "settings belong here. Write them below it, one a line and indented."
    where, line = around.document.place(path), around.document.lines[path]
    faults.append(Fault(where=where, what=what, line=line))
    return {}


def _written(
    path: Dotted, section: Mapping[str, object], keys: Iterable[str], around: Surroundings
) -> list[Layer]:
    """What the file says, and what the environment says."""
    document = around.document
    in_file = {
        key: Value(
            raw=_placed(raw, around.file.parent, around) if is_placed(key) else raw,
            source=document.source((*path, key)),
            where=document.place((*path, key)),
            line=document.lines[*path, key],
        )
        for key, raw in section.items()
    }
    said = environment.overrides(around.environ, [(*path, key) for key in keys])
    in_environ = {
        full[-1]: _from_variable(environment.variable(full), full[-1], text, around)
        for full, text in said.items()
    }
    return [in_file, in_environ]


def _preset(
    path: Dotted, store: Mapping[str, object], around: Surroundings, faults: list[Fault]
) -> list[Layer]:
    """What the store's preset says, and what the product's own environment says."""
    in_file, in_environ = _written(path, store, ["preset"], around)
    chosen = (in_file | in_environ).get("preset")
    if chosen is None:
        return []
    names = presets.names()
    if chosen.raw not in names:
        what = f"{chosen.raw!r} is no preset. {nearest(str(chosen.raw), names)}"
        faults.append(Fault(where=chosen.where, what=what, line=chosen.line))
    # Even under a wrong name, the rest of the store is judged; what it lacks is not the point.
    name = closest(str(chosen.raw), names) or names[0]
    preset = presets.load(name)
    values = {
        key: Value(
            raw=_given(key, said, around),
            source=f"preset {name}",
            where=f"preset {name}: {'.'.join((*path, key))}",
        )
        for key, said in preset.store.items()
    }
    product = {
        key: _from_variable(variable, key, around.environ[variable], around)
        for variable, key in preset.environment.items()
        # Whether an empty one means anything is the product's affair; here it means nothing.
        if around.environ.get(variable)
    }
    return [values, product]


def _kind(
    path: Dotted, store: Mapping[str, object], preset: list[Layer], around: Surroundings
) -> object:
    layers = [*preset, *_written(path, store, ["kind"], around)]
    kinds = [layer["kind"].raw for layer in layers if "kind" in layer]
    return kinds[-1] if kinds else None


def _merged(layers: Iterable[Layer], faults: list[Fault]) -> Layer:
    """One layer of all: what a later one says stands, however an earlier one spelled it."""
    merged: Layer = {}
    for layer in layers:
        merged |= layer
        _settle_rules(merged, layer, faults)
        for key, (meant, kind, _) in STAND_INS.items():
            if key not in layer:
                continue
            value = merged.pop(key)
            if meant in layer:
                what = f"{meant} is given too, and only one of them can hold. Leave one out."
                faults.append(Fault(where=value.where, what=what, line=value.line))
            merged[meant] = msgspec.structs.replace(value, raw=kind(number=value.raw))
    return merged


def _settle_rules(merged: Layer, layer: Layer, faults: list[Fault]) -> None:
    """Rules stand here or in a file of their own; what a later layer says holds."""
    here, elsewhere = layer.get("rules"), layer.get("rules_from")
    if here and elsewhere:
        what = "rules are given too, and only one of them can hold. Leave one out."
        faults.append(Fault(where=elsewhere.where, what=what, line=elsewhere.line))
    if here:
        merged.pop("rules_from", None)
    elif elsewhere:
        merged.pop("rules", None)


def _default_state(around: Surroundings) -> Layer:
    folder = state_folder(around.file)
    return {"state_dir": Value(raw=folder, source="default", where="state_dir")}


def _from_variable(variable: str, key: str, text: str, around: Surroundings) -> Value:
    raw = _read(key, text, around.folder, around)
    return Value(raw=raw, source=f"environment {variable}", where=variable)


def _read(key: str, text: str, base: Path, around: Surroundings) -> object:
    """What stands in text alone, as plain words in the file would be read."""
    if is_placed(key):
        return _placed(text, base, around)
    if not is_structured(key):
        return scalar(text)
    try:
        return flow(text)
    except ValueError as error:
        return Unread(what=str(error))


def _given(key: str, said: object, around: Surroundings) -> object:
    """What a preset gives, of which every word is text."""
    match said:
        case str():
            return _read(key, said, around.file.parent, around)
        case list():
            return [_given("", item, around) for item in said]
        case dict():
            return {name: _given("", item, around) for name, item in said.items()}
        case _:
            return said


def _placed(raw: object, base: Path, around: Surroundings) -> object:
    """A path with what it is relative to; what is no text is left for the model to refuse."""
    return PlaceText(text=raw, base=base, environ=around.environ) if isinstance(raw, str) else raw
