"""Runs first in each Python process that a page starts: stops its clock, and fences it in."""

from __future__ import annotations

import os

import time_machine

from tests.docs.child.fence import fence

time_machine.travel(os.environ["DOCS_TODAY"], tick=False).start()
fence(os.environ["DOCS_SANDBOX"])
