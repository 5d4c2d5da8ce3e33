"""Rules that stand in a file of their own: under `rules`, or under `retention` of a program's file.

Of a program's own file nothing but `retention` is looked at; a file of rules holds nothing else.
"""

from __future__ import annotations

from pathlib import Path

from keepfor.config.document import Document, Dotted, read
from keepfor.config.faults import Fault, nearest

_BLOCK, _RULES = "retention", "rules"


def found(path: Path, name: str, faults: list[Fault]) -> tuple[Document, Dotted] | None:
    """Where the rules stand in a file.

    Parameters:
        path: the file.
        name: what messages call it.
        faults: takes what is wrong with the file itself.

    Returns:
        The file, and the way to the rules within it; None where there are none.

    Raises:
        BadConfig: when it cannot be read as settings at all.
    """
    document = read(path, name, _RULES)
    faults += document.faults
    block = document.values
    at: Dotted = ()
    if _BLOCK in block:
        said: object = block[_BLOCK]
        at = (_BLOCK,)
        if _RULES in block:
            what = f"{_RULES} stands beside it, and only one of them can hold. Leave one out."
            faults.append(Fault(where=document.place(at), what=what))
        if not isinstance(said, dict):
            what = f"settings belong here. Write a line `{_RULES}:` below it, indented."
            faults.append(Fault(where=document.place(at), what=what))
            return None
        block = said
    elif _RULES not in block:
        return None
    for key in block:
        if key != _RULES:
            what = f"this key is unknown. {nearest(key, [_RULES])}"
            faults.append(Fault(where=document.place((*at, key)), what=what))
    return (document, (*at, _RULES)) if _RULES in block else None
