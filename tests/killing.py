"""Kills a piece of work after so many steps, to see what it leaves behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

STEPS = ("open", "fstat", "mkdir", "rename", "stat", "link", "unlink", "rmdir")


def killed_after(steps: int, act: Callable[[], object]) -> bool:
    """Runs it in a child that is killed after so many system calls; tells whether it was."""
    child = os.fork()
    if child == 0:
        left = [steps]

        def counted(call: Callable[..., object]) -> Callable[..., object]:
            def counting(*args: object, **more: object) -> object:
                result = call(*args, **more)
                left[0] -= 1
                if left[0] <= 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return counting

        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        try:
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)
