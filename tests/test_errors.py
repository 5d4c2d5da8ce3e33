"""Every error says what happened, to what and what to do, and knows its exit code."""

from __future__ import annotations

import inspect
import pickle
import string
import subprocess
import sys
from collections.abc import Iterator

import pytest

from keepfor import errors
from keepfor.errors import KeepforError

#: What the command line exits with: the table that `--help` shows.
FAILED, USAGE, PARTLY, BREAKER, PLAN, UNCONFIRMED = 1, 2, 3, 5, 6, 7
EXIT_CODES = {
    "KeepforError": FAILED,
    "ConfigError": USAGE,
    "BadDuration": USAGE,
    "BadSize": USAGE,
    "BadInstant": USAGE,
    "BadPolicy": USAGE,
    "UnknownStore": USAGE,
    "UnsupportedPlatform": FAILED,
    "StoreError": FAILED,
    "StoreBusy": FAILED,
    "StoreChanged": PLAN,
    "WrongTimeField": FAILED,
    "CannotReplace": FAILED,
    "BreakerTripped": BREAKER,
    "PlanSpent": PLAN,
    "PlanStale": PLAN,
    "NotConfirmed": UNCONFIRMED,
    "SweepStopped": PARTLY,
    "WrongTimes": FAILED,
}
#: What 2, 3, 5, 6 and 7 stand for; 0 is no error, and 4 is said by `check`.
MEANINGS = {FAILED, USAGE, PARTLY, BREAKER, PLAN, UNCONFIRMED}

CLASSES = [
    found
    for _, found in inspect.getmembers(errors, inspect.isclass)
    if issubclass(found, KeepforError)
]
each_class = pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)


def facts_of(error: type[KeepforError]) -> dict[str, object]:
    """A value for every fact that the class's message names, fit for its format."""
    return {name: sample(name, spec) for name, spec in named_in(error)}


def named_in(error: type[KeepforError]) -> Iterator[tuple[str, str]]:
    for _, name, spec, _ in string.Formatter().parse(error.__doc__ or ""):
        if name is not None:
            yield name, spec or ""


def sample(name: str, spec: str) -> object:
    return 0.5 if spec and spec[-1] in "%gf" else f"<{name}>"


@each_class
def test_the_message_holds_the_facts(error: type[KeepforError]) -> None:
    """The docstring is the message: every fact is in it, and no placeholder is left."""
    facts = facts_of(error)
    message = str(error(**facts))
    for name, value in facts.items():
        assert (value if isinstance(value, str) else "5") in message, name
    assert not set("{}\n") & set(message)
    assert "  " not in message


@each_class
def test_an_error_without_its_facts_is_a_mistake_in_the_code(error: type[KeepforError]) -> None:
    """A message is never shown with a hole in it: a missing fact fails where it is raised."""
    if not facts_of(error):
        assert str(error()) == "Something went wrong in keepfor."
        return
    with pytest.raises(KeyError):
        error()


@each_class
def test_an_error_crosses_to_another_process(error: type[KeepforError]) -> None:
    """A background process hands an error over whole: class, message, facts, exit code."""
    raised = error(**facts_of(error))
    landed = pickle.loads(pickle.dumps(raised))
    assert type(landed) is error
    assert (str(landed), landed.facts) == (str(raised), raised.facts)
    assert landed.exit_code == error.exit_code


@each_class
def test_the_exit_code_is_one_that_help_lists(error: type[KeepforError]) -> None:
    """Every error ends in an exit code of the table, and one that is known by name in its own."""
    assert error.exit_code in MEANINGS
    assert error.exit_code == EXIT_CODES.get(error.__name__, error.exit_code)


def test_every_error_of_the_table_is_there() -> None:
    """An error that the table names cannot be renamed without its exit code being looked at."""
    assert set(EXIT_CODES) <= {error.__name__ for error in CLASSES}


@each_class
def test_one_except_catches_them_all(error: type[KeepforError]) -> None:
    """A program that catches KeepforError catches everything that keepfor raises on purpose."""
    with pytest.raises(KeepforError):
        raise error(**facts_of(error))


def test_what_the_user_wrote_is_a_value_error_too() -> None:
    """A bad value raises what Python raises for bad values, so that any caller can catch it."""
    for name in ("BadDuration", "BadSize", "BadInstant", "BadPolicy"):
        assert issubclass(getattr(errors, name), ValueError)


def test_messages_read_as_sentences() -> None:
    """What happened, to what, and what to do now, in one line."""
    assert str(errors.BadDuration(value="90", why="it has no unit", fix='"90d"')) == (
        "'90' is not a duration: it has no unit. Write \"90d\"."
    )
    tripped = errors.BreakerTripped(store="recall", delete=80, total=100, limit=0.5)
    assert str(tripped).startswith(
        "recall: this would delete 80 of 100, more than the 50% that the breaker allows. "
        "Nothing was done. "
    )
    assert str(errors.NotConfirmed(why="there is no terminal to ask at.")) == (
        "Nothing was done: there is no terminal to ask at."
    )


def test_a_fact_is_never_taken_for_a_template() -> None:
    """A name with braces in it, as a store may hold one, is shown as it is."""
    shown = str(errors.StoreError(path="{fix} {0} {", what="It is gone.", fix="Look."))
    assert shown == "{fix} {0} {: It is gone. Look."


def test_errors_speak_without_docstrings() -> None:
    """`python -OO` strips the docstrings: the class's name and the facts are said instead."""
    program = (
        "import pickle; from keepfor import errors; "
        "error = errors.PlanStale(store='recall', why='it was replaced'); "
        "bare = error.__doc__ is None and error.exit_code == 6; "
        "print(bare, error, pickle.loads(pickle.dumps(error)).facts['store'])"
    )
    done = subprocess.run(
        [sys.executable, "-OO", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True PlanStale: {'store': 'recall', 'why': 'it was replaced'} recall\n"
