"""The environment: every setting has a variable, and every KEEPFOR_ variable must be a setting's.

The names are worked out from the settings, and not the settings from the names: a store may be
called `a__b`, and a variable that means nothing has to be noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from keepfor.config.document import Dotted
from keepfor.config.faults import Fault, closest, nearest
from keepfor.config.paths import VARIABLE

PREFIX = "KEEPFOR_"
_STORES = f"{PREFIX}STORES__"


def variable(path: Dotted) -> str:
    """The variable that overrides a setting: `KEEPFOR_STORES__RECALL__KEEP_FOR`."""
    return PREFIX + "__".join(path).upper()


def overrides(environ: Mapping[str, str], known: Sequence[Dotted]) -> dict[Dotted, str]:
    """What the environment says of the known settings."""
    return {path: environ[variable(path)] for path in known if variable(path) in environ}


def strangers(environ: Mapping[str, str], known: Sequence[Dotted], file: str) -> Iterator[Fault]:
    """The variables that look like a setting's and are none's.

    Parameters:
        environ: the environment.
        known: the settings that there are, those of the file's stores included.
        file: what messages call the file.
    """
    names = [VARIABLE, *map(variable, known)]
    stores = list(dict.fromkeys(path[1] for path in known if path[0] == "stores"))
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in names:
            yield Fault(where=name, what=_what(name, names, stores, file))


def _what(name: str, names: Sequence[str], stores: Sequence[str], file: str) -> str:
    if below := [known for known in names if known.startswith(f"{name}__")]:
        return f"this is a group of settings. Name one of them, such as {below[0]}."
    headers = [f"{variable(('stores', store))}__" for store in stores]
    header = max((found for found in headers if name.startswith(found)), key=len, default=None)
    if header is None and name.startswith(_STORES):
        rest = name.removeprefix(_STORES).lower()
        store = rest.rpartition("__")[0] or rest
        return f"{file} has no store {store!r}. {nearest(store, stores)}"
    # What all the names begin with would make any of them look close.
    header = header or PREFIX
    ends = [known.removeprefix(header) for known in names if known.startswith(header)]
    close = closest(name.removeprefix(header).upper(), ends)
    return f"no setting has this name. {f'Did you mean {header}{close}?' if close else 'Unset it.'}"
