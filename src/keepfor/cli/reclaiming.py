"""`reclaim`: give back to the system what a table's database no longer needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keepfor import sweep
from keepfor.cli import codes
from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line
from keepfor.cli.documents import Answer, error
from keepfor.cli.invocation import Invocation
from keepfor.errors import KeepforError
from keepfor.wording import size

if TYPE_CHECKING:
    from keepfor.stores.sql.database import Footprint
    from keepfor.stores.table import TableStore


def reclaim(run: Invocation, wanted: Sequence[str]) -> Answer:
    """Give free space back to the system. No row goes, and no sweep does this by itself.

    Parameters:
        wanted: the stores, each of which has to be a table.

    Returns:
        The document has `stores`: for each `store`, `kind`, `target`, `exists`, and `before` and
        `after` (null where nothing is there yet): what its database takes up, as `size` and
        `reclaimable`; and `error` (null). A store of which the database could not be worked on has
        `store` and `error` only.

    Raises:
        ConfigError: when one of them is no table. Nothing was done then.
    """
    documents: list[dict[str, Any]] = []
    exit_codes = []
    for name, table in [(name, run.table(name)) for name in run.names(wanted)]:
        try:
            found = table.reclaim(sweep.PATIENCE) if table.database.exists else None
        except (KeepforError, OSError) as problem:
            run.warn(problem)
            exit_codes.append(codes.of(problem))
            documents.append({"store": name, "error": error(problem)})
            continue
        run.out.show(*_described(name, table, found))
        documents.append(_document(name, table, found))
    facts = {"stores": documents}
    return Answer(verb="reclaim", facts=facts, exit_code=codes.gravest(exit_codes))


def _document(
    name: str, table: TableStore, found: tuple[Footprint, Footprint] | None
) -> dict[str, Any]:
    before, after = found or (None, None)
    return {
        "store": name,
        "kind": table.kind,
        "target": table.target,
        "exists": found is not None,
        "before": before,
        "after": after,
        "error": None,
    }


def _described(
    name: str, table: TableStore, found: tuple[Footprint, Footprint] | None
) -> list[Block]:
    heading = Heading(name, (table.kind, table.target))
    if found is None:
        return [heading, Line("  There is nothing there yet.", "faint")]
    before, after = found
    facts = Facts([Fact("before", _taken(before)), Fact("after", _taken(after))])
    return [heading, Line(f"  {_came_of(before, after)}", "good"), Line(), facts]


def _came_of(before: Footprint, after: Footprint) -> str:
    if after.size < before.size:
        return f"{size(before.size - after.size)} went back to the system."
    # PostgreSQL gives back only what lies at the end of a file, and makes the rest free for rows.
    if after.reclaimable < before.reclaimable:
        freed = size(before.reclaimable - after.reclaimable)
        return f"Nothing went back to the system; {freed} are free for new rows."
    return "There was nothing to give back."


def _taken(footprint: Footprint) -> str:
    return f"{size(footprint.size)} on disk, {size(footprint.reclaimable)} reclaimable"
