"""`demo`: the verbs as they are, on a sandbox that is gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keepfor.cli import sandbox
from keepfor.cli.applying import apply
from keepfor.cli.blocks import Line
from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.cli.planning import plan
from keepfor.cli.recalling import trace
from keepfor.cli.record import log
from keepfor.cli.watching import status
from keepfor.config.environment import PREFIX

#: What is said of each step, what one would type, and what that does.
_STEPS: list[tuple[str, str, Callable[[Invocation], Answer]]] = [
    ("What is there?", "keepfor status", lambda run: status(run, [])),
    ("What would go? Nothing is touched.", "keepfor plan", lambda run: plan(run, [])),
    ("Let it go.", "keepfor apply --yes", lambda run: apply(run, [], yes=True)),
    ("What stayed?", "keepfor status", lambda run: status(run, [])),
    ("What was done?", "keepfor log", lambda run: log(run, [])),
    (
        "Why did that note surface?",
        f"keepfor trace recall {sandbox.SLUG}",
        lambda run: trace(run, "recall", sandbox.SLUG),
    ),
]


def demo(run: Invocation) -> Answer:
    """Hold a sandbox ledger of 120 days to 90, and show each step.

    Returns:
        The document has `steps`: for each its `command`, and the `document` that it prints.
    """
    folder = Path(tempfile.mkdtemp(prefix="keepfor-demo-")).resolve()
    try:
        file = sandbox.build(folder, run.clock())
        run.out.show(
            Line(f"An agent recalled notes for {sandbox.DAYS} days, and no row ever went."),
            Line(f"The ledger lies in a sandbox, {folder}; keepfor.yaml says `keep_for: 90d`."),
        )
        steps = [_step(run, file, *step) for step in _STEPS]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    run.out.show(Line("The sandbox is gone. To begin with your own: keepfor config init"))
    return Answer(verb="demo", facts={"steps": steps})


def _step(
    run: Invocation, file: Path, title: str, command: str, verb: Callable[[Invocation], Answer]
) -> dict[str, Any]:
    run.out.show(Line(f"# {title}", "faint"), Line(f"$ {command}", "command"))
    # Whatever the environment says of the user's own stores, it says nothing of the sandbox.
    environ = {name: value for name, value in run.environ.items() if not name.startswith(PREFIX)}
    answer = verb(Invocation(run.out, file, run.clock, environ))
    return {"command": command, "document": answer.document()}
