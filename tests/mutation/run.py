"""Breaks `policy/` in many small ways, one at a time, and sees that a test notices each.

`make mutate` runs it, in about three minutes on two cores. It works on a copy, with mutmut, against
the tests of `tests/policy` whose outcome is not left to chance, which is all but the properties.
`docs/explanation/mutation.md` has the figures, and what they do not say.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.prefix) / "mutation"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")

SETTINGS = """
[tool.pytest.ini_options]
pythonpath = ["."]
addopts = ["--import-mode=importlib"]

[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/keepfor/policy/*"]
pytest_add_cli_args = ["-x", "-q", "-p", "no:randomly"]
pytest_add_cli_args_test_selection = ["tests/policy"]
use_git_change_detection = false
"""


def main() -> int:
    """Prints the figures and every surviving mutant; fails if there is one."""
    install()
    with tempfile.TemporaryDirectory(prefix="keepfor-mutation-") as folder:
        copy = Path(folder)
        lay_out(copy)
        print("Breaking src/keepfor/policy, one change at a time; this takes minutes.", flush=True)
        done = mutmut(copy, "run")
        if done.returncode:
            print(done.stdout[-4000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
            return 1
        mutmut(copy, "export-cicd-stats")
        figures = json.loads((copy / "mutants" / "mutmut-cicd-stats.json").read_text("utf-8"))
        # All that was not noticed is listed: what survived, what ran out of time, what no test ran.
        survivors = [
            name.strip()
            for name, _, result in (
                line.partition(": ") for line in mutmut(copy, "results").stdout.splitlines()
            )
            if result
        ]
        for name in survivors:
            print(mutmut(copy, "show", name).stdout)
    print(f"{figures['total']} mutants: {figures['killed']} noticed, {len(survivors)} not.")
    return int(figures["killed"] != figures["total"])


def install() -> None:
    """Puts the tool into .venv once for each version of its requirements."""
    stamp = TOOLS / "requirements.txt"
    if stamp.exists() and stamp.read_bytes() == REQUIREMENTS.read_bytes():
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--target", TOOLS, "-r", REQUIREMENTS], check=True)
    shutil.copy(REQUIREMENTS, stamp)


def lay_out(copy: Path) -> None:
    """A project of its own, so that no mutant ever stands in the working tree."""
    ignore = shutil.ignore_patterns("__pycache__", "test_properties.py")
    shutil.copytree(ROOT / "src" / "keepfor", copy / "src" / "keepfor", ignore=ignore)
    shutil.copytree(ROOT / "tests" / "policy", copy / "tests" / "policy", ignore=ignore)
    for name in ("conftest.py", "postgres.py"):  # The one loads the other.
        shutil.copy(ROOT / "tests" / name, copy / "tests")
    (copy / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")


def mutmut(copy: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs the tool within the copy."""
    return subprocess.run(
        [sys.executable, "-m", "mutmut", *command],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(TOOLS)},
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
