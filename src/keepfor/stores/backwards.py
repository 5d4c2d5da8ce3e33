"""Reads a file's lines from its end, for those who want the newest first and then stop."""

from __future__ import annotations

import os
from collections.abc import Iterator

from keepfor.stores.files import BLOCK


def lines_backwards(descriptor: int, longest: int = 16 << 20) -> Iterator[bytes]:
    """The whole lines of a file, the last first, without their LFs.

    An unfinished last line is passed over: its writer may still be at work.

    Parameters:
        descriptor: the file's.
        longest: lines that are longer than this are passed over, in bytes.
    """
    position = os.fstat(descriptor).st_size
    rest: list[bytes] = []
    held = 0
    first = True
    while position > 0:
        size = min(BLOCK, position)
        position -= size
        head, *lines = os.pread(descriptor, size, position).split(b"\n")
        if lines:
            last = b"".join([lines.pop(), *reversed(rest)])
            if not first and held <= longest:
                yield last
            yield from reversed(lines)
            first, rest, held = False, [], 0
        held += len(head)
        # What is too long is not held; it is not going to be told.
        rest = [*rest, head] if held <= longest else []
    if not first and held <= longest:
        yield b"".join(reversed(rest))
