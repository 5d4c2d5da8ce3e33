"""A flag in the frontmatter of a note: a few lines set, and every other byte as it was.

Bytes in, bytes out. What comes out is read again before anybody gets it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from keepfor.stores.frontmatter import (
    BOM,
    CLOSE,
    FLAG,
    FLAGGED_AT,
    OPEN,
    RULE,
    Refused,
    is_text,
    loader,
    read,
    root_of,
)

_DAMAGE = "a flag would change what else stands in its frontmatter"

#: What stands as itself in JSON, and not in YAML.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def flagged(data: bytes, *, at: str, reason: str, rule: str) -> bytes:
    """The note with a flag in its frontmatter, and every other byte as it was.

    Parameters:
        data: the whole note. One without frontmatter is given one.
        at: when it was flagged.
        reason: why.
        rule: by which rule. A note that this rule flagged already is returned as it is.

    Raises:
        Refused: when that cannot be done without damage; a short sentence that says why.
    """
    said = read(data, FLAG)
    for key in FLAG:
        if doubt := said.doubt(key):
            raise Refused(doubt)
    if said.texts.get(RULE) == rule and said.texts.get(FLAGGED_AT):
        return data
    flag = dict(zip(FLAG, (at, reason, rule), strict=True))
    quoted = {key: _quoted(value) for key, value in flag.items()}
    opened = OPEN.match(data)
    if opened is None:
        bom = len(BOM) if data.startswith(BOM) else 0
        eol = "\r\n" if data[: data.find(b"\n") + 1].endswith(b"\r\n") else "\n"
        lines = ["---", *(f"{key}: {value}" for key, value in quoted.items()), "---", ""]
        result = data[:bom] + eol.join(lines).encode() + data[bom:]
    else:
        closed = CLOSE.search(data, opened.end() - 1)
        assert closed is not None
        start, end = opened.end(), closed.start() + 1
        eol = "\r\n" if opened[0].endswith(b"\r\n") else "\n"
        text = data[start:end].decode()
        new = _upserted(text, quoted, eol)
        if _beside(text) != _beside(new):
            raise Refused(_DAMAGE)
        result = data[:start] + new.encode() + data[end:]
    # What was meant is not trusted: the note must say it.
    again = read(result, FLAG)
    if again.why or again.texts != flag:
        raise Refused(again.why or _DAMAGE)
    return result


def _quoted(text: str) -> str:
    """The text in double quotes, so that every YAML reader takes it for itself."""
    if not is_text(text):
        raise Refused("the flag holds half a character")
    quoted = msgspec.json.encode(text).decode()
    # What JSON leaves as it is and YAML does not, and what careless programs take for a fence.
    quoted = _ESCAPED.sub(lambda found: rf"\u{ord(found[0]):04x}", quoted)
    return quoted.replace("---", r"--\u002d")


def _upserted(text: str, flag: dict[str, str], eol: str) -> str:
    """What stands between the fences, with some keys set to values that are quoted already."""
    root = root_of(text)
    pairs = root.value if root else []
    if root and root.flow_style:
        raise Refused("its frontmatter is written in braces")
    names = [key.value for key, _ in pairs if isinstance(key.value, str)]
    if len(set(names)) < len(names):
        raise Refused("a key stands twice in its frontmatter")
    missing = dict(flag)
    # From the end, so that what is replaced moves nothing that is still to be.
    for key, value in reversed(pairs):
        if not isinstance(key.value, str) or key.value not in flag:
            continue
        start, end = value.start_mark.index, value.end_mark.index
        # An alias leads to what it stands for, which begins with its anchor.
        if text[start:end].startswith(("&", "!", "|", ">")):
            raise Refused(f"its {key.value} is more than words on a line")
        space = " " if start == end else ""
        text = f"{text[:start]}{space}{missing.pop(key.value)}{text[end:]}"
    indent = _indent(text, pairs[0][0].start_mark.index) if pairs else ""
    return text + "".join(f"{indent}{key}: {value}{eol}" for key, value in missing.items())


def _indent(text: str, index: int) -> str:
    """The blanks that begin a line; a key itself may stand behind a question mark."""
    line = text[text.rfind("\n", 0, index) + 1 :]
    return line[: len(line) - len(line.lstrip(" "))]


def _beside(text: str) -> list[tuple[Any, ...]]:
    """All that stands in a frontmatter beside a flag, and how it is written.

    Raises:
        Refused: when it cannot be read.
    """
    import yaml

    told: list[tuple[Any, ...]] = []
    depth, at_key, ours = 0, False, False
    try:
        for event in yaml.parse(text, Loader=loader()):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth == 1 and isinstance(event, yaml.NodeEvent):
                at_key = not at_key
                if at_key:
                    ours = getattr(event, "value", None) in FLAG
            if depth and not ours:
                facts = ("anchor", "tag", "implicit", "value", "style", "flow_style")
                told.append((type(event), *(getattr(event, fact, None) for fact in facts)))
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
    except yaml.YAMLError:
        raise Refused(_DAMAGE) from None
    return told
