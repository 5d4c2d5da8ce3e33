"""Acting as a user who may do little, for whoever runs the tests may do everything."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


def as_nobody(act: Callable[[], object]) -> None:
    """Do something in a child that has no rights of its own; what it raises fails the test."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            act()
            code = 0
        except BaseException:  # noqa: BLE001 - told to the parent
            os.write(writer, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, said


@contextmanager
def common_ground() -> Iterator[Path]:
    """A folder that everybody can get into and write to."""
    folder = Path(tempfile.mkdtemp(prefix="keepfor-")).resolve()
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
