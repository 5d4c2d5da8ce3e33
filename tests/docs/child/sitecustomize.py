"""Runs first in each Python process that a page starts: stops its clock, and fences it in."""

from __future__ import annotations

import os
import sys

import time_machine

from tests.docs.child.fence import fence

# Where a page runs tests, they make one plan after another, and no two at the same instant.
time_machine.travel(os.environ["DOCS_TODAY"], tick="pytest" in sys.orig_argv).start()
fence(os.environ["DOCS_SANDBOX"])
