"""Every error that keepfor raises: the docstring is the message, the class knows its exit code."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class KeepforError(Exception):
    """Something went wrong in keepfor."""

    exit_code = 1

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        # `python -OO` strips docstrings; the facts alone are better than nothing.
        template = " ".join((type(self).__doc__ or "").split())
        message = template.format_map(facts) if template else f"{type(self).__name__}: {facts}"
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.facts))


def _rebuild(cls: type[KeepforError], facts: dict[str, object]) -> KeepforError:
    return cls(**facts)


# --- what the user wrote ------------------------------------------------------------------


class ConfigError(KeepforError):
    """{where}: {what} {fix}"""

    exit_code = 2


class BadConfig(ConfigError):
    """{faults}"""


class BadDuration(ConfigError, ValueError):
    """{value!r} is not a duration: {why}. Write {fix}."""


class BadSize(ConfigError, ValueError):
    """{value!r} is not a size: {why}. Write {fix}."""


class BadInstant(ConfigError, ValueError):
    """{value!r} is not a point in time: {why}. Write for example 2026-07-26 or
    2026-07-26T12:00:00Z."""


class BadPolicy(ConfigError, ValueError):
    """The policy cannot be kept: {what} {fix}"""


class UnknownStore(ConfigError):
    """There is no store named {name!r} in {where}. {fix}"""


class UnknownItem(ConfigError):
    """There is no {id!r} among the {count} items of the store. {fix}"""


# --- what the machine said ----------------------------------------------------------------


class UnsupportedPlatform(KeepforError):
    """keepfor deletes safely on Linux and macOS only, and this is {platform}. Nothing was done."""


class StoreError(KeepforError):
    """{path}: {what} {fix}"""


class BadRunId(KeepforError, ValueError):
    """A run cannot be called {run!r}: {why}. Nothing was written; give it another id."""


class StoreBusy(StoreError):
    """{path} is being pruned by another process, which did not finish within {waited:g} s.
    Nothing was done; try again when it has."""


class DatabaseBusy(StoreBusy):
    """{path}: {what} Nothing of the transaction at hand was done, and what was done before it
    stays done. Try again when others have finished."""


class Unfinished(StoreError):
    """{path}: {what} {fix}"""


class WrongTimeField(StoreError):
    """{path}: {without} of {objects} rows have no usable time in {field!r}, so this looks like a
    wrong setting and not like debris. Nothing was dropped. Set `time:` to the field that holds
    the timestamp, and `unit:` (s, ms, us or ns) if it holds a number{seen}."""


class WrongRunTime(StoreError):
    """{path}: {without} of {runs} runs have no usable time in {field}, so this looks like a wrong
    setting. Nothing was removed. Set `time:` to name, to mtime, or to the field of an entry that
    holds the timestamp, and `unit:` (s, ms, us or ns) if it holds a number{seen}."""


class StoreChanged(StoreError):
    """{path} is no longer the file that was looked at ({why}). Nothing was done; look again with
    `keepfor plan`."""

    exit_code = 6


class SweepStopped(StoreError):
    """{path}: {why} {deleted} of {planned} rows were deleted, with all that hangs on them; the
    others are as they were. {fix}"""

    exit_code = 3

    @property
    def done(self) -> Any:
        """The survey of what was done until then."""
        return self.facts["done"]


class SweepInterrupted(KeyboardInterrupt):
    """Somebody interrupted a sweep between two of its transactions.

    Parameters:
        done: the survey of what was done until then.
    """

    def __init__(self, done: Any) -> None:
        super().__init__()
        self.done = done


class WrongTimes(StoreError):
    """{path}: {count} rows have a time in {column!r} that is not {shape}, such as {sample}. Times
    of two shapes cannot be compared, so nothing was deleted. The keys of such rows: {keys}.
    {fix}"""


class AlreadyRunning(KeepforError):
    """{store} is looked after by another `keepfor run` already{who}. Stop that one first, or leave
    it to it."""


class CannotServe(KeepforError):
    """The metrics cannot be served at {host}:{port}: {why}. Name another place with --metrics-port
    or --metrics-host."""


class CannotListen(KeepforError):
    """The dashboard cannot be served at {host}:{port}: {why}. Name another place with --port or
    --host."""


class CannotReplace(StoreError):
    """{path} cannot be replaced without changing its {attribute} ({why}), so it was left as it
    was. Prune it as the user that owns it."""


# --- plans --------------------------------------------------------------------------------


class BreakerTripped(KeepforError):
    """{store}: this would delete {delete} of {total}, more than the {limit:.0%} that the breaker
    allows. Nothing was done. Look at `keepfor plan {store}`; if that is right, use --force."""

    exit_code = 5


class PlanSpent(KeepforError):
    """This plan for {store} was carried out already (digest {digest:.12}). Make a new one with
    `keepfor plan {store} -o FILE`."""

    exit_code = 6


class PlanStale(KeepforError):
    """This plan for {store} no longer holds: {why}. Nothing was done. Make a new one with
    `keepfor plan {store} -o FILE`."""

    exit_code = 6


class UnknownPlan(KeepforError):
    """No plan with the digest {digest!r} was shown here, or a later one of its store took its
    place. Nothing was done. Ask for a plan, look at it, and apply that one by its digest."""

    exit_code = 6


class NotConfirmed(KeepforError):
    """Nothing was done: {why}"""

    exit_code = 7
