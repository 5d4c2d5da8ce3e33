"""One run from the arguments to the exit code: what is parsed is done, what fails is explained."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Sequence

from keepfor.cli import codes
from keepfor.cli.output import Output
from keepfor.errors import KeepforError

_FIXES = {
    errno.EACCES: " Run as a user who may, or name another place.",
    errno.EPERM: " Run as a user who may, or name another place.",
    errno.EROFS: " The file system is read-only; name another place.",
    errno.ENOSPC: " Free some space, or name another place.",
    errno.EDQUOT: " Free some quota, or name another place.",
}


def run(arguments: Sequence[str]) -> int:
    """Do what a command line says.

    Parameters:
        arguments: what stands after the program's name.

    Returns:
        The exit code. Whatever went wrong was said on stderr; where `--json` stands among the
        arguments, as a document on stdout too.
    """
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal cannot show is no reason to fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # A guess, for lines that cannot be parsed; what is parsed says it for certain.
    out = Output(as_json="--json" in arguments)
    code = _done(arguments, out)
    failure = out.failure
    # Whoever closed a pipe has seen enough, and needs no message.
    if failure and not isinstance(failure, BrokenPipeError):
        out.say(f"keepfor: stdout: {_reason(failure)}")
        return codes.gravest([code, codes.FAILED])
    return code


def _done(arguments: Sequence[str], out: Output) -> int:
    from keepfor.cli.app import UsageError, parse

    try:
        verb = parse(arguments)
        if isinstance(verb, int):
            return verb
        answer = verb(out)
        out.emit(answer.document())
        return answer.exit_code
    except UsageError as error:
        return _failed(out, error, f"{error}\n{error.hint}".rstrip(), codes.USAGE)
    except KeepforError as error:
        return _failed(out, error, str(error), error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _failed(out, error, f"{where}{_reason(error)}", codes.FAILED)
    except KeyboardInterrupt as error:
        message = "Interrupted. Every store is whole: as it was before, or as it is after."
        return _failed(out, error, message, codes.INTERRUPTED)


def _failed(out: Output, error: BaseException, message: str, code: int) -> int:
    out.say(f"keepfor: {message}")
    if out.as_json:
        from keepfor.cli.documents import failure

        out.emit(failure(type(error).__name__, message, code))
    return code


def _reason(error: OSError) -> str:
    return f"{error.strerror or error}.{_FIXES.get(error.errno or 0, '')}"
