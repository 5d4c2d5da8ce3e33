"""The suite touches nobody's real folders, whichever test forgets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

ROOT = Path(__file__).parents[1]

#: Where the suite does most to files: verbs, programs, sweeps, prunes, trails.
HEAVIEST = (
    *("cli/test_golden.py", "cli/test_apply.py", "cli/test_demo.py", "cli/test_log.py"),
    *("config/test_loading.py", "writers/test_guard.py", "writers/test_host.py"),
)

FORGETFUL = """
import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_writes_into_the_home():
    Path.home().joinpath("left-by-a-test").touch()


def test_starts_a_process_that_does():
    code = "from pathlib import Path; Path.home().joinpath('left-by-a-child').touch()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.writes_home
def test_does_so_on_purpose():
    Path.home().joinpath("meant").touch()


def test_leaves_state_behind():
    Path(os.environ["KEEPFOR_STATE_DIR"], "trail.jsonl").touch()


def test_leaves_a_file_where_it_works():
    Path("keepfor.yaml").touch()


def test_starts_with_empty_folders():
    for folder in (Path.home(), Path(os.environ["KEEPFOR_STATE_DIR"]), Path.cwd()):
        assert list(folder.iterdir()) == []


def test_sees_no_setting_from_outside():
    assert [name for name in os.environ if name.startswith("KEEPFOR_")] == ["KEEPFOR_STATE_DIR"]
    assert [name for name in os.environ if name.startswith("AGENTM_")] == []
"""


def developers(home: Path) -> dict[str, str]:
    """An environment like a developer's: a home, and no word of where else state may lie."""
    home.mkdir()
    names = ("PATH", "LANG", "LC_ALL", "CI")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return kept | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}


def run_pytest(folder: Path, env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    """Runs tests in a process of its own, in the order in which they are written."""
    plain = ("-q", "-rA", "-p", "no:randomly", "-p", "no:cacheprovider")
    config = ("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder))
    command = [sys.executable, "-m", "pytest", *plain, *config, *args]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture
def forgetful(tmp_path: Path) -> Path:
    """A suite that forgets everything, under the conftest of this one."""
    folder = tmp_path / "suite"
    folder.mkdir()
    folder.joinpath("conftest.py").write_bytes(ROOT.joinpath("tests/conftest.py").read_bytes())
    folder.joinpath("test_forgetful.py").write_text(FORGETFUL)
    return folder


@pytest.mark.parametrize("kind", ["config", "cache", "state", "data"])
def test_every_folder_of_the_user_is_a_throwaway(kind: str) -> None:
    """Wherever a program looks for its user's folder, a test finds one that is thrown away."""
    folder = Path(getattr(platformdirs, f"user_{kind}_dir")("keepfor"))
    assert folder.is_relative_to(Path.home())
    assert Path.home().parent.name.startswith("keepfor-tests-")
    assert Path(os.environ["KEEPFOR_STATE_DIR"]).parent == Path.home().parent


def test_a_test_that_forgets_is_told_and_harms_nobody(forgetful: Path, tmp_path: Path) -> None:
    """A test or its child that writes into the home fails by name, and no real home sees it."""
    home = tmp_path / "real-home"
    settings = {"KEEPFOR_CONFIG": "/nowhere", "AGENTM_RECALL_HISTORY": "/nowhere"}
    state = {"KEEPFOR_STATE_DIR": str(home / "state"), "XDG_STATE_HOME": str(home / "xdg")}
    done = run_pytest(forgetful, developers(home) | settings | state, "test_forgetful.py")
    assert "7 passed, 2 errors" in done.stdout, done.stdout + done.stderr
    assert "ERROR test_forgetful.py::test_writes_into_the_home" in done.stdout
    assert "wrote into the home folder: left-by-a-test" in done.stdout
    assert "ERROR test_forgetful.py::test_starts_a_process_that_does" in done.stdout
    assert "wrote into the home folder: left-by-a-child" in done.stdout
    assert list(home.iterdir()) == []


def test_the_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    """A stranger who tries `keepfor demo` finds neither home nor temporary folder changed."""
    home, temporary = tmp_path / "real-home", tmp_path / "temporary"
    temporary.mkdir()
    env = developers(home) | {"TMPDIR": str(temporary)}
    command = [str(Path(sys.executable).with_name("keepfor")), "demo"]
    done = subprocess.run(command, cwd=temporary, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "keepfor apply" in done.stdout
    assert list(home.iterdir()) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_heaviest_paths_leave_a_real_home_alone(tmp_path: Path) -> None:
    """The suite's own heaviest tests, run by a developer, write nothing into that home."""
    home = tmp_path / "real-home"
    modules = [str(ROOT / "tests" / module) for module in HEAVIEST]
    done = run_pytest(ROOT, developers(home), "-n", "2", *modules)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(home.iterdir()) == []
