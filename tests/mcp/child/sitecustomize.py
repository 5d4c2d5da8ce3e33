"""Runs first in each server that the tests start: stops its clock at the day of the samples."""

from __future__ import annotations

import os

import time_machine

time_machine.travel(os.environ["MCP_TODAY"], tick=False).start()
