"""Where a verb's words go: stdout for what was asked, stderr for what is said about it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from keepfor.escape import visible_lines

if TYPE_CHECKING:
    from keepfor.cli.blocks import Block
    from keepfor.stores.base import Progress


class Output:
    """The two streams of this process.

    A verb never fails because nobody reads what it prints, for it may be deleting meanwhile; what
    went wrong with stdout is kept in `failure`.

    Parameters:
        as_json: whether stdout is for a program, so that nothing but one document goes there.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.failure: OSError | None = None
        self._shown = False

    @property
    def asks(self) -> bool:
        """Whether there is a person who sees what is shown, and can answer."""
        streams = (sys.stdin, sys.stdout, sys.stderr)
        return not self.as_json and all(map(_is_terminal, streams))

    def show(self, *blocks: Block) -> None:
        """Print blocks for people, apart from those before; nothing for a program."""
        if self.as_json:
            return
        if self._shown:
            self.write("\n")
        self._shown = True
        from keepfor.cli import render

        if _is_terminal(sys.stdout):
            unicode = (sys.stdout.encoding or "").lower().startswith("utf")
            self.write(render.rich(blocks, unicode))
        else:
            self.write(render.plain(blocks))

    def emit(self, document: object) -> None:
        """Print the document for a program; nothing where stdout is for people."""
        if self.as_json:
            from keepfor.cli.documents import encode

            self.write(encode(document))

    def write(self, text: str) -> None:
        """Print text as it is."""
        stream = sys.stdout
        if stream is None:
            return
        try:
            stream.write(text)
            stream.flush()
        except OSError as error:
            self.failure = error
            # What is left in the buffer would fail once more when the interpreter ends.
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)

    def say(self, message: str) -> None:
        """Print a message beside what was asked for."""
        if sys.stderr is not None:
            with suppress(OSError):
                sys.stderr.write(f"{visible_lines(message)}\n")
                sys.stderr.flush()

    def confirmed(self, question: str) -> bool:
        """Ask the person at the terminal; anything but a clear yes is a no."""
        sys.stderr.write(f"\n{visible_lines(question)} [y/N] ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
        if not answer.endswith("\n"):
            self.say("")
        return answer.strip().lower() in ("y", "yes")

    @contextmanager
    def progress(self, what: str) -> Iterator[Progress | None]:
        """A bar for work that takes over a second; only where a person would see it."""
        if not _is_terminal(sys.stderr):
            yield None
            return
        from keepfor.cli.progress import Bar

        bar = Bar(what)
        try:
            yield bar.update
        finally:
            bar.close()


def _is_terminal(stream: TextIO | None) -> bool:
    with suppress(ValueError):
        return stream is not None and stream.isatty()
    return False
