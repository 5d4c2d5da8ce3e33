"""Known products: where each keeps its memory, in what shape, and how long is sensible.

One data file each; to add a product is to add a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

import msgspec

_SUFFIX = ".yaml"


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a product.

    Parameters:
        store: the settings of its store, as keepfor.yaml would give them; each word is text.
        environment: the variables that the product itself honours, and the setting each one moves.
    """

    store: Mapping[str, object]
    environment: Mapping[str, str] = {}


def names() -> list[str]:
    """The presets that there are."""
    entries = (entry.name for entry in files(__name__).iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in entries if name.endswith(_SUFFIX))


def load(name: str) -> Preset:
    """The preset of that name, which is one of `names()`."""
    import yaml

    text = (files(__name__) / f"{name}{_SUFFIX}").read_text(encoding="utf-8")
    # BaseLoader leaves every value the text that it is: an `off` here is no boolean.
    return msgspec.convert(yaml.load(text, yaml.BaseLoader), Preset)  # noqa: S506
