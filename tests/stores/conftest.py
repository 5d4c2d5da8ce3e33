"""Lets a failing promise of the suite say what it compared, as a test of this folder would."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("keepfor.testing.suite")
