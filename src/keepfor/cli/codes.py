"""The exit codes: what each one says, and which one counts when several things went wrong."""

from __future__ import annotations

from collections.abc import Iterable

DONE, FAILED, USAGE, PARTLY, LAG, BREAKER, SPENT, UNCONFIRMED = range(8)

#: Python's convention for a program that was interrupted from the keyboard.
INTERRUPTED = 130

MEANINGS = {
    DONE: "done, or nothing to do",
    FAILED: "failed",
    USAGE: "wrong usage or configuration, or a trap in it",
    PARTLY: "partly done: something failed, or changed since it was planned",
    LAG: "a store lags behind its policy beyond its grace",
    BREAKER: "refused by the breaker",
    SPENT: "the plan is spent or stale",
    UNCONFIRMED: "not confirmed",
}


def of(problem: Exception) -> int:
    """The code that an error alone would come to."""
    return getattr(problem, "exit_code", FAILED)


def gravest(codes: Iterable[int]) -> int:
    """The code that counts of several: the lowest that is not 0."""
    return min((code for code in codes if code), default=DONE)
