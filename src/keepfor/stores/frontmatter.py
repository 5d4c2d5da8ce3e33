"""The head of a Markdown note: reads what its frontmatter says.

Bytes in, values out. What the frontmatter means is what PyYAML makes of it, with every
word taken as text; plain lines are read without it, a hundred times as fast, to the same answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import yaml

#: A frontmatter that is not closed within so many bytes is not read.
CAP = 64 * 1024

FLAGGED_AT = "retention_flagged_at"
REASON = "retention_reason"
RULE = "retention_rule"
#: What a flag consists of, in the order in which it is written.
FLAG = (FLAGGED_AT, REASON, RULE)
#: Keys under which one or several things may be named.
LISTS = frozenset({"supersedes", "source", "links"})
#: What is read unless somebody asks for more.
KEYS = frozenset({"type", "trajectory", *LISTS, *FLAG})

_NO_END = "its frontmatter has no closing line ---"
_TOO_LONG = "its frontmatter has no closing line --- within the first 64 KiB"
_DISPUTED = "it begins with a line that only some programs take for frontmatter"
_UTF_16 = "it is written in UTF-16 and not in UTF-8"
_LIST = "is a list and not text"

BOM = b"\xef\xbb\xbf"
OPEN = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
#: Begins with the end of the line before, which may be the opening one.
CLOSE = re.compile(rb"\n---[ \t]*\r?(?:\n|\Z)")
#: Ends a document for YAML, and a frontmatter for some programs only.
_DOTS = re.compile(r"^\.\.\.(?:\s|\Z)", re.MULTILINE)

# The lines that need no YAML reader. Every repetition below can be cut in one way only, so that
# no note takes more time than its length; tabs and odd characters are left to PyYAML.
_ODD = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
_END = rf"(?: +#[^{_ODD}]*| *)\r?\n"
_REST = rf"[^{_ODD} :]*"
_PLAIN = (
    rf"[^{_ODD} \-?:,\[\]{{}}#&*!|>'\"%@`]{_REST}"
    rf"(?:(?::(?![ \r\n])| +(?=[^ #\r\n])){_REST})*"
)
_SINGLE = rf"'[^{_ODD}']*(?:''[^{_ODD}']*)*'"
_DOUBLE = rf"\"[^{_ODD}\"\\]*\""
_WORD = r"[A-Za-z0-9_./][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*"
_ONE = rf"(?:{_WORD}|{_SINGLE}|{_DOUBLE})"
_FLOW = rf"\[ *(?:{_ONE}(?: *, *{_ONE})*)? *\]"
_ITEM = rf"- +(?:{_PLAIN}|{_SINGLE}|{_DOUBLE}){_END}"
_ENTRY = re.compile(
    rf"([A-Za-z_][A-Za-z0-9_-]{{0,99}}):"
    rf"(?: +(?:({_PLAIN})|({_SINGLE}|{_DOUBLE})|({_FLOW})){_END}"
    rf"|{_END}(( *){_ITEM}(?:\6{_ITEM})*)?)"
    rf"| *(?:#[^{_ODD}]*)?\r?\n"
    r"|([\s\S]+)"  # all the rest, from the first line that is none of these
)
_IN_FLOW = re.compile(rf"({_WORD})|({_SINGLE}|{_DOUBLE})")
_IN_BLOCK = re.compile(rf" *- +(?:({_PLAIN})|({_SINGLE}|{_DOUBLE})){_END}")


# The commonest notes of all, in bytes: a key and plain words on every line.
_SURE = rb"[A-Za-z0-9_./,()+'-]"
_LINE = rb"[A-Za-z_][A-Za-z0-9_-]*+: [A-Za-z0-9_./]" + _SURE + rb"*+(?: " + _SURE + rb"++)*+\n"
_SIMPLE = re.compile(rb"---\n(?:" + _LINE + rb")*+---\n")


class Refused(ValueError):
    """A note's frontmatter cannot be read, or cannot be written to without damage.

    Its message is a short sentence, such as `its frontmatter is not UTF-8`.
    """


class Frontmatter(msgspec.Struct, frozen=True, kw_only=True):
    """What the frontmatter of a note says under the keys that were asked for.

    Parameters:
        texts: the keys that hold text, as it is written, quotes taken off. A key that holds
            nothing holds the empty text.
        lists: the keys of `LISTS` that hold a list of texts.
        unread: the keys whose value cannot be told, and why (`is a list and not text`).
        why: why nothing can be told at all; empty where all is well, and where there is no
            frontmatter.
        complete: whether this stays so, whatever comes after the bytes that were looked at.
            Otherwise it holds only if nothing does.
    """

    texts: dict[str, str] = {}
    lists: dict[str, tuple[str, ...]] = {}
    unread: dict[str, str] = {}
    why: str = ""
    complete: bool = True

    def named(self, key: str) -> tuple[str, ...]:
        """What a key names, whether it holds one text or a list of them."""
        text = self.texts.get(key)
        return (text,) if text else self.lists.get(key, ())

    def doubt(self, key: str) -> str:
        """Why it cannot be told what a key holds, as a short sentence; empty where it can be."""
        return self.why or (f"its {key} {self.unread[key]}" if key in self.unread else "")


def read(head: bytes, keys: Collection[str] = KEYS) -> Frontmatter:
    """What the frontmatter says, as far as it can be told from the beginning of a note.

    Parameters:
        head: the first bytes of the note, for example 2 KiB; where the answer is not `complete`
            and the note is longer, ask again with more. No more than `CAP` bytes are looked at.
        keys: what to look for; a set, for speed.

    Returns:
        The values, or why they cannot be told; never a guess.
    """
    found = pairs(head, keys)
    if found is not None:
        texts = {key.decode(): value.decode() for key, value in found}
        if len(texts) == len(found):
            return Frontmatter(texts=texts)
    head = head[:CAP]
    opened = OPEN.match(head)
    if opened is None:
        return _without(head)
    capped = len(head) == CAP
    closed = CLOSE.search(head, opened.end() - 1)
    ended = closed is not None and head[closed.end() - 1] == 0x0A
    if closed is None or (capped and not ended):
        return Frontmatter(why=_TOO_LONG if capped else _NO_END, complete=capped)
    try:
        text = head[opened.end() : closed.start() + 1].decode()
    except UnicodeDecodeError:
        said = Frontmatter(why="its frontmatter is not UTF-8")
    else:
        said = by_lines(text, keys) or by_yaml(text, keys)
    return said if ended else msgspec.structs.replace(said, complete=False)


def pairs(head: bytes, keys: Collection[str]) -> list[tuple[bytes, bytes]] | None:
    """The keys and values of a frontmatter that is nothing but simple lines; None for any other.

    A key that stands twice is there twice.
    """
    simple = _SIMPLE.match(head, 0, CAP)
    return None if simple is None else _finder(frozenset(keys)).findall(head, 3, simple.end())


def by_lines(text: str, keys: Collection[str]) -> Frontmatter | None:
    """What stands between the fences; None where it takes a YAML reader to tell."""
    entries = _ENTRY.findall(text)
    if entries and entries[-1][6]:
        return None
    texts: dict[str, str] = {}
    lists: dict[str, tuple[str, ...]] = {}
    unread: dict[str, str] = {}
    twice = []
    for key, plain, quoted, flow, block, _, _ in entries:
        if key not in keys:
            continue
        if key in texts or key in lists or key in unread:
            twice.append(key)
        elif not flow and not block:
            texts[key] = plain or _unquoted(quoted)
        elif key in LISTS:
            found = _IN_FLOW.findall(flow) if flow else _IN_BLOCK.findall(block)
            lists[key] = tuple([word or _unquoted(item) for word, item in found])
        else:
            unread[key] = _LIST
    return _told(texts, lists, unread, twice)


def by_yaml(text: str, keys: Collection[str]) -> Frontmatter:
    """What stands between the fences, by the definition: PyYAML."""
    try:
        root = root_of(text)
    except Refused as refused:
        return Frontmatter(why=str(refused))
    texts: dict[str, str] = {}
    lists: dict[str, tuple[str, ...]] = {}
    unread: dict[str, str] = {}
    twice = []
    for name, value in root.value if root else []:
        key = name.value
        # A key may be a list itself, which is none of ours.
        if not isinstance(key, str) or key not in keys:
            continue
        if key in texts or key in lists or key in unread:
            twice.append(key)
            continue
        listed = key in LISTS and value.id == "sequence"
        try:
            if listed:
                lists[key] = tuple([_text(item) for item in value.value])
            else:
                texts[key] = _text(value)
        except Refused as refused:
            unread[key] = f"has an item that {refused}" if listed else str(refused)
    return _told(texts, lists, unread, twice)


@functools.lru_cache(maxsize=64)
def _finder(keys: frozenset[str]) -> re.Pattern[bytes]:
    """Finds those keys with their values in lines that are simple."""
    return re.compile(
        rb"\n(%s): ([^\n]*)" % b"|".join(re.escape(key).encode() for key in sorted(keys))
    )


def _without(head: bytes) -> Frontmatter:
    """What to say of a note whose first line does not open a frontmatter."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or head[:4] in (b"-\0-\0", b"\0-\0-"):
        return Frontmatter(why=_UTF_16)
    line, ended, _ = head.lstrip(BOM + b" \t\r\n\v\f").partition(b"\n")
    line = line.rstrip(b" \t\r")
    # Blank lines before a fence, a fence of four dashes, one of TOML: programs differ.
    fence = not line.strip(b"-") or not line.strip(b"+")
    complete = len(head) == CAP or (len(head) >= 4 and (not fence or ended == b"\n"))
    return Frontmatter(why=_DISPUTED if fence and len(line) >= 3 else "", complete=complete)


def _told(
    texts: dict[str, str],
    lists: dict[str, tuple[str, ...]],
    unread: dict[str, str],
    twice: list[str],
) -> Frontmatter:
    for key in twice:
        texts.pop(key, None)
        lists.pop(key, None)
        unread[key] = "stands twice"
    return Frontmatter(texts=texts, lists=lists, unread=unread)


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'") if text[:1] == "'" else text[1:-1]


def root_of(text: str) -> yaml.MappingNode | None:
    """The mapping that a frontmatter is; None where nothing stands in it.

    Raises:
        Refused: when it is none, or is one thing to some programs and another to others.
    """
    import yaml

    if _DOTS.search(text):
        raise Refused("its frontmatter has a line ..., which ends it for some programs only")
    try:
        root = yaml.compose(text, Loader=loader())
    except RecursionError:
        raise Refused("its frontmatter is nested without end") from None
    except yaml.MarkedYAMLError as error:
        raise Refused(_syntax(error)) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # A character that no text holds, an escape that stands for none.
        raise Refused("its frontmatter holds a character that YAML does not allow") from None
    if root is None:
        return None
    if not isinstance(root, yaml.MappingNode):
        raise Refused("its frontmatter is not made of keys and values")
    if any(key.value == "<<" for key, _ in root.value):
        raise Refused("its frontmatter has a merge key <<, which programs read differently")
    return root


@functools.cache
def loader() -> type[yaml.SafeLoader]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Takes every word as the text that it is."""

        yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML looks for it on the class

    return Loader


def _syntax(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or ""
    if r"'\t'" in problem:
        problem = "a tab where only spaces may stand"
    mark = error.problem_mark or error.context_mark
    # The opening fence is the first line of the note.
    place = f" in line {mark.line + 2}" if mark else ""
    # PyYAML quotes what it found, and reasons are kept where content is not.
    detail = f" ({problem})" if problem and "'" not in problem and '"' not in problem else ""
    return f"its frontmatter is not YAML{place}{detail}"


def _text(node: Any) -> str:
    if node.id != "scalar":
        raise Refused(_LIST if node.id == "sequence" else "is a mapping and not text")
    if node.tag != "tag:yaml.org,2002:str":
        raise Refused("has a YAML tag")
    text = str(node.value)
    if not is_text(text):
        raise Refused("holds half a character")
    return text


def is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
