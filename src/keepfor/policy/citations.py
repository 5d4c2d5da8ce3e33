"""Spares what an item that stays names, where the rule that deletes it says `keep_if_cited`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from keepfor.items import Decision, Evidence, Item
from keepfor.policy.rules import Rule


def spare_the_cited(
    rules: Sequence[Rule],
    items: Sequence[Item],
    before_cascades: Sequence[Decision],
    decisions: list[Decision],
) -> None:
    """Turn deletes of what is cited into keeps; tell of the others what names them and goes too.

    What is spared stays, and so spares in turn what it names itself; and a session that is spared
    takes nothing along. Items that name each other, and that no other names, go together. An item
    whose citations cannot be told may cite anything, so it spares all.

    Parameters:
        rules: the policy's.
        items: all that the store holds.
        before_cascades: what was decided of each before the cascades.
        decisions: what is decided of each; changed in place.
    """
    sparing = {rule.name for rule in rules if rule.keep_if_cited}
    if not sparing:
        return
    doomed = {
        said.id: index
        for index, said in enumerate(decisions)
        if said.action == "delete" and said.rule in sparing
    }
    staying = [index for index, said in enumerate(decisions) if said.action != "delete"]
    taken = _taken_along(decisions)
    while staying:
        cited = _cited([items[index] for index in staying], doomed)
        staying = []
        for id_, evidence in cited.items():
            index = doomed.pop(id_)
            decisions[index] = _spared(decisions[index], evidence)
            staying.append(index)
        # Only now, so that nothing hangs on the order: what is not taken along needs no citation.
        for id_ in cited:
            for index in taken.get(id_, ()):
                if decisions[index].action == "delete":
                    staying.append(index)
                    del doomed[items[index].id]
                decisions[index] = before_cascades[index]
    _tell_citers(items, decisions, doomed)


def _cited(staying: Sequence[Item], doomed: dict[str, int]) -> dict[str, Evidence]:
    """Which of the doomed are cited by what stays, and by which: of several, by the least id."""
    by: dict[str, str] = {}
    for item in staying:
        for id_ in item.cites or ():
            if id_ in doomed:
                by[id_] = min(by.get(id_, item.id), item.id)
    cited: dict[str, Evidence] = {id_: {"by": name} for id_, name in by.items()}
    if blind := [item.id for item in staying if item.cites is None]:
        unread: Evidence = {"by": min(blind), "why": "what it cites cannot be told"}
        cited = dict.fromkeys(doomed, unread) | cited
    return cited


def _tell_citers(items: Sequence[Item], decisions: list[Decision], doomed: dict[str, int]) -> None:
    """Say of what goes which others name it: one of these may turn out to stay."""
    by: dict[str, list[str]] = {}
    blind = []
    for index, item in enumerate(items):
        if decisions[index].action != "delete":
            continue
        if item.cites is None:
            blind.append(item.id)
        for id_ in item.cites or ():
            by.setdefault(id_, []).append(item.id)
    for id_, index in doomed.items():
        if citers := [citer for citer in (*by.get(id_, ()), *blind) if citer != id_]:
            decisions[index] = replace(decisions[index], cited_by=tuple(sorted(citers)))


def _spared(was: Decision, evidence: Evidence) -> Decision:
    return replace(was, action="keep", reason="cited", evidence=evidence | {"withheld": was.rule})


def _taken_along(decisions: Sequence[Decision]) -> dict[str, list[int]]:
    """The positions of what goes by cascade, by the id of what takes it along."""
    taken: dict[str, list[int]] = {}
    for index, said in enumerate(decisions):
        if said.reason.startswith("cascade:"):
            taken.setdefault(str(said.evidence["from"]), []).append(index)
    return taken
