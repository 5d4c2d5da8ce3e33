"""What is said of a table, true or not; `layout` says how it is."""

from __future__ import annotations

from typing import Literal

import msgspec


class Dependent(msgspec.Struct, frozen=True, kw_only=True):
    """A table of which rows go with the row that they hang on.

    Parameters:
        table: its name, or schema and name.
        columns: the columns that hold the key of that row, in the order of the key.
        key: its own key, for what hangs on it in turn; empty for its primary key.
        dependents: what hangs on its own rows.
    """

    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    dependents: tuple[Dependent, ...] = ()

    def __post_init__(self) -> None:
        # One name is as good as a tuple of one; taken for one, its letters would be columns.
        for field in ("columns", "key"):
            if isinstance(name := getattr(self, field), str):
                msgspec.structs.force_setattr(self, field, (name,))


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The row that each sweep leaves in the table itself.

    Parameters:
        type: what stands in its type column.
        payload: the column for what the sweep did, as JSON.
        when: `always`, or only after a sweep that `deleted` something.
    """

    type: str
    payload: str
    when: Literal["always", "deleted"] = "always"


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a table, true or not.

    Parameters:
        table: its name, or schema and name.
        time: the column that holds a row's time.
        key: the columns that tell a row from all others; empty for the primary key.
        type: the column that holds a row's type, if rules name types.
        dependents: what hangs on its rows.
        record: what each sweep leaves in it, if anything.
    """

    table: str
    time: str
    key: tuple[str, ...] = ()
    type: str | None = None
    dependents: tuple[Dependent, ...] = ()
    record: Record | None = None
