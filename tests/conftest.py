"""Keeps the whole suite, and every process it starts, away from anybody's real folders.

The one place that does so. It acts when it is imported, which is before any test or any part of
keepfor is, and on the environment, which subprocesses inherit; so a test cannot forget it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# A server is shared by all tests of a process, so its fixtures cannot be those of one folder.
pytest_plugins = ["tests.postgres"]

# Before anything imports it, so that a promise that fails says what it compared.
pytest.register_assert_rewrite("keepfor.testing.suite")

# A shell that starts the suite in the background has it ignore Ctrl-C, and every program that the
# tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: What lives in folders of its own here, by the variable that says where.
FOLDERS = {
    "HOME": "home",
    "XDG_CACHE_HOME": "home/.cache",
    "XDG_CONFIG_HOME": "home/.config",
    "XDG_DATA_HOME": "home/.local/share",
    "XDG_STATE_HOME": "home/.local/state",
    "XDG_RUNTIME_DIR": "home/.run",
    "XDG_CONFIG_DIRS": "home/.config-of-the-site",
    "XDG_DATA_DIRS": "home/.data-of-the-site",
    "KEEPFOR_STATE_DIR": "state",
}
FOREIGN = ("KEEPFOR_", "AGENTM_")


def _move_out() -> Path:
    """Points the environment at a throwaway folder and returns it."""
    root = Path(tempfile.mkdtemp(prefix="keepfor-tests-")).resolve()
    owner = os.getpid()

    def remove() -> None:
        # A forked child runs this as well, and must not take the folder from its parent.
        if os.getpid() == owner:
            shutil.rmtree(root, ignore_errors=True)

    atexit.register(remove)
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        del os.environ[name]
    for name, folder in FOLDERS.items():
        os.environ[name] = str(root / folder)
    for folder in ("home", "state", "work"):
        (root / folder).mkdir()
    return root


THROWAWAY = _move_out()
HOME, STATE, WORK = (THROWAWAY / folder for folder in ("home", "state", "work"))

hypothesis.settings.register_profile(
    "keepfor",
    deadline=None,
    derandomize=os.environ.get("CI", "").lower() in ("1", "true", "yes"),
    print_blob=True,
)
hypothesis.settings.load_profile("keepfor")


def _empty(folder: Path) -> list[str]:
    """Removes what is in the folder; returns what that was."""
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return found


@pytest.fixture(autouse=True)
def away_from_home(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Each test starts in an empty folder with an empty state, and leaves the home as empty.

    The working folder is an empty one because a configuration is looked for there and above.
    """
    monkeypatch.chdir(WORK)
    yield
    _empty(STATE)
    _empty(WORK)
    left = _empty(HOME)
    if left and request.node.get_closest_marker("writes_home") is None:
        pytest.fail(f"This test wrote into the home folder: {', '.join(left)}", pytrace=False)
