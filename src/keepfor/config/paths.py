"""Where things lie: the configuration file, the state folder, and what a path in a file means."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from keepfor.errors import BadConfig

NAME = "keepfor.yaml"
VARIABLE = "KEEPFOR_CONFIG"

_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


def find(named: Path | None, environ: Mapping[str, str], folder: Path) -> Path:
    """The configuration file to use.

    Parameters:
        named: the file that the command line names, if any; it is taken at its word.
        environ: the environment, whose KEEPFOR_CONFIG names one otherwise.
        folder: where to begin to look, upwards, when nothing is named.

    Returns:
        An absolute path. A file that was named need not be there.

    Raises:
        BadConfig: when nothing is named and there is none.
    """
    if named is not None:
        return folder / named
    if VARIABLE in environ:
        try:
            return expand(environ[VARIABLE], folder, environ)
        except ValueError as error:
            raise BadConfig(faults=f"{VARIABLE}: {error}") from None
    users = Path(platformdirs.user_config_dir("keepfor"))
    for place in (folder, *folder.parents, users):
        # Anything of that name counts, so that a broken one is reported and not passed over.
        if os.path.lexists(place / NAME):
            return place / NAME
    raise BadConfig(
        faults=f"There is no {NAME} in {folder} or above it, nor in {users}. "
        "Write one with `keepfor config init`, or name one with --config."
    )


def state_folder(file: Path) -> Path:
    """The state folder of this configuration, unless it names another one."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(file))).hexdigest()
    return Path(platformdirs.user_state_dir("keepfor")) / digest[:12]


def shown(file: Path, folder: Path) -> str:
    """What messages call the file: relative where it lies in the working folder or below."""
    return str(file.relative_to(folder) if file.is_relative_to(folder) else file)


def expand(text: str, base: Path, environ: Mapping[str, str]) -> Path:
    """The absolute path that a text stands for.

    Parameters:
        text: it may begin with `~` and hold `$VAR` or `${VAR}`.
        base: the absolute folder that a relative path starts from.
        environ: the environment.

    Raises:
        ValueError: when it names nothing; a sentence that says why, and what to write.
    """
    filled = _REFERENCE.sub(lambda match: _variable(match[1] or match[2], text, environ), text)
    if not filled or "\0" in filled:
        raise ValueError(f"{text!r} is no path. Write one, or leave it out.")
    if "${" in filled:
        raise ValueError(f"{text!r} has an unfinished ${{…}}. Write ${{NAME}}.")
    if filled.startswith("~"):
        filled = _at_home(filled, environ)
    return base / filled


def _variable(name: str, text: str, environ: Mapping[str, str]) -> str:
    # An empty one is as bad as none: `$CACHE/recall.jsonl` would lie at the root.
    if not environ.get(name):
        raise ValueError(f"{text!r} needs ${name}, which is not set. Set it, or write it out.")
    return environ[name]


def _at_home(text: str, environ: Mapping[str, str]) -> str:
    user, slash, rest = text.partition("/")
    home = environ.get("HOME", "") if user == "~" else ""
    try:
        # Not `expanduser`: to it an empty $HOME means the root.
        home = home or (pwd.getpwnam(user[1:]) if user[1:] else pwd.getpwuid(os.getuid())).pw_dir
    except KeyError:
        home = ""
    if not os.path.isabs(home):
        raise ValueError(f"{text!r} needs the home folder {user}, which is unknown. Write it out.")
    return f"{home}{slash}{rest}"
