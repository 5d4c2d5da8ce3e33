"""`access`: note that items were recalled, for rules that go by disuse."""

from __future__ import annotations

from collections.abc import Sequence

from keepfor.cli import codes
from keepfor.cli.blocks import Line
from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.config import asking
from keepfor.wording import rows


def access(run: Invocation, name: str, ids: Sequence[str]) -> Answer:
    """Append to the store's log that these items were recalled now. No note is touched.

    An id of nothing that is there is told and not recorded: a note whose recalls go to a wrong id
    would count as unused.

    Parameters:
        name: the store's.
        ids: the items', as plans show them.

    Returns:
        The document has `store`, `at`, `recorded` and `unknown`, both lists of ids.

    Raises:
        UnknownItem: when none of them is there.
        StoreError: when the store has no log, or it cannot be written.
    """
    store, moment = run.entities(name), run.clock()
    found = asking.record_access(store, ids, moment)
    for error in found.unknown.values():
        run.warn(error)
    run.out.show(Line(f"Recorded that {_were(len(found.recorded))} recalled now.", "good"))
    unknown = list(found.unknown)
    facts = {"store": name, "at": moment, "recorded": found.recorded, "unknown": unknown}
    return Answer(verb="access", facts=facts, exit_code=codes.PARTLY if unknown else codes.DONE)


def _were(count: int) -> str:
    return f"{rows(count, 'entities')} {'was' if count == 1 else 'were'}"
