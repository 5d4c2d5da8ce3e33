"""Writes to the log of a store of entities: what was recalled, and what was done to an item."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Collection
from datetime import datetime
from typing import Any

from keepfor.errors import StoreError
from keepfor.items import Decision
from keepfor.stores import files, tree

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Not O_NONBLOCK: it would fail in the moment for which a prune of the log holds a lease.
_LOG = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOCTTY | os.O_NOFOLLOW


def write(path: str, row: dict[str, Any], root: str | None = None) -> None:
    """Append a row to a log, which is made if it is not there yet.

    Parameters:
        path: the log's.
        row: what to append.
        root: the store's, which no symlink between it and the log may lead out of.

    Raises:
        StoreError: when it cannot be written, or a symlink is in the way, which may lead anywhere.
    """
    data = json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    try:
        folder = _folder_of(path, root)
        try:
            descriptor = files.open_for_writing(os.path.basename(path), _LOG, folder=folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            what = "a symlink, or no folder, is in its way; a log is written only inside its store."
            fix = "Put folders and a file in their place."
            raise StoreError(path=path, what=what, fix=fix) from error
        raise files.explained(error, path) from error
    try:
        files.append(descriptor, data, path)
    except OSError as error:
        raise files.explained(error, path) from error
    finally:
        files.close(descriptor)


def recall(ids: Collection[str], now: datetime) -> dict[str, Any]:
    """The row that tells of a recall."""
    return {"event": "recall", "entities": list(ids), "ts": now.isoformat()}


def retention(said: Decision, now: datetime) -> dict[str, Any]:
    """The row that tells what was done to one item."""
    return {
        "event": "retention",
        "action": said.action,
        "entity": said.id,
        "reason": said.reason,
        "rule": said.rule,
        "ts": now.isoformat(),
    }


def _folder_of(path: str, root: str | None) -> int:
    """The descriptor of the folder that a log is in, which is made if it is not there yet."""
    folder = os.path.dirname(path)
    if root is None or not folder.startswith(f"{root.rstrip('/')}/"):
        os.makedirs(folder, exist_ok=True)
        return os.open(folder, _FOLDER)
    os.makedirs(root, exist_ok=True)
    top = os.open(root, _FOLDER)
    try:
        return tree.open_folder(top, os.path.relpath(folder, root), make=True)
    finally:
        os.close(top)
