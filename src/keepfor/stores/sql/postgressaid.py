"""What PostgreSQL says when something is wrong, in words that say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from keepfor.errors import DatabaseBusy, StoreError
from keepfor.stores.sql.postgresurl import Login

if TYPE_CHECKING:
    import psycopg

_NOTHING_DONE = (
    "Nothing of the transaction at hand was done, and what was done before it stays done."
)

#: Refusals by their SQLSTATE: what happened and what to do.
_REFUSALS = {
    "42501": (
        "{said}.",
        # Without UPDATE nobody may lock the rows that are to go.
        "As the owner: GRANT SELECT, DELETE, UPDATE ON <the table and its dependents> TO {user}.",
    ),
    "25006": (
        "it takes no changes ({said}).",
        "If it is a standby, give the primary's address; else see default_transaction_read_only.",
    ),
    "57014": (
        "the server cancelled a statement ({said}).",
        f"{_NOTHING_DONE} If statement_timeout is too short, raise it for {{user}}.",
    ),
}
#: Conflicts with others, which end when they have done: the change can simply be made again.
_CONFLICTS = {
    "40001": "another transaction changed the same rows at the same time",
    "40P01": "another transaction and this one waited for each other",
    "55P03": "another transaction held a lock on it for more than {patience:g} s",
}

#: Why no connection came about: by its words, for the client library gives no code for it.
_UNREACHABLE = (
    (
        "password authentication failed",
        "it refuses the password of {user}.",
        "Put the right one into the URL, with %XX for special characters, or into PGPASSWORD.",
    ),
    (
        "no password supplied",
        "it asks {user} for a password, and none was given.",
        "Put it into the URL, or into PGPASSWORD or the file ~/.pgpass.",
    ),
    (
        "too many connections|too many clients|remaining connection slots",
        "it has no connection left: {said}.",
        "Try again later, or raise the limit (max_connections, or that of the role or database).",
    ),
    (
        'role ".*" does not exist',
        "it knows no user {user}.",
        "Correct the user in the URL, or create it with CREATE ROLE ... LOGIN.",
    ),
    (
        "not permitted to log in|no pg_hba.conf entry|permission denied for database",
        "it does not let {user} in: {said}.",
        "Have its administrator let this user log in to this database from here.",
    ),
    (
        'database ".*" does not exist',
        "the server has no database {database}.",
        "Correct its name in the URL.",
    ),
    (
        "could not translate host name|resolve host|not known|'idna' codec",
        "no machine has that name.",
        "Correct the host in the URL.",
    ),
    (
        "Connection refused|socket .* failed: No such file or directory",
        "no server listens there.",
        "Start it, or correct host and port in the URL.",
    ),
)


@contextmanager
def explained(login: Login, patience: float = 0.0) -> Iterator[None]:
    """Raise what the server says as a StoreError; neither a secret nor a row shows in it.

    What the driver says can hold both, so it is not even kept as the cause.

    Parameters:
        login: by which it was entered.
        patience: how long is waited for others here, in seconds.
    """
    import psycopg

    try:
        yield
    except DBAPIError as error:
        raise _explanation(error.orig, login, patience) from None
    except psycopg.Error as error:
        raise _explanation(error, login, patience) from None


def unreachable(error: Exception, login: Login) -> StoreError:
    """Why no connection came about."""
    words = login.hide(str(error))
    said = words.rpartition("FATAL:")[2].strip()
    what, fix = next(
        (told for sign, *told in _UNREACHABLE if re.search(sign, said)),
        ("it cannot be reached: {said}.", "See that the server is there and the URL right."),
    )
    what = what.format(said=said, user=login.user, database=login.name)
    return StoreError(path=login.address, what=what, fix=fix)


def _explanation(error: object, login: Login, patience: float) -> StoreError:
    import psycopg

    assert isinstance(error, psycopg.Error)
    code = error.sqlstate or ""
    said = login.hide(error.diag.message_primary or str(error))
    if code in _CONFLICTS:
        what = _CONFLICTS[code].format(patience=patience)
        return DatabaseBusy(path=login.address, what=f"{what}.")
    if code in _REFUSALS:
        what, fix = (part.format(said=said, user=login.user) for part in _REFUSALS[code])
    elif _is_lost(error):
        what = f"the connection was lost ({said})."
        # Its last word may have been lost, and that may have been a commit.
        fix = (
            "The transaction at hand was done whole or not at all, and what was done before it "
            "stays done. Try again when the server is there."
        )
    else:
        what = f"the server says: {said} ({code or type(error).__name__})."
        fix = f"{_NOTHING_DONE} The server's log may say more."
    return StoreError(path=login.address, what=what, fix=fix)


def _is_lost(error: psycopg.Error) -> bool:
    """Whether the connection ended with this error: by the server's word, or without any."""
    import psycopg

    if error.sqlstate:
        return (
            error.sqlstate.startswith(("08", "57P")) or error.diag.severity_nonlocalized == "FATAL"
        )
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
