"""All that is told of one store on its page: what it holds, what would go, and what lately was."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from keepfor import plan as plans
from keepfor.config import Config, asking, policy_of, traps
from keepfor.config.models import Store
from keepfor.config.opening import open_trail
from keepfor.config.standing import Finding, findings, in_words, leftovers
from keepfor.errors import KeepforError
from keepfor.history.coming import NextRun, next_run, process_of
from keepfor.history.standing import by_day
from keepfor.history.window import Window, window
from keepfor.items import Decision, Item
from keepfor.plan import Plan
from keepfor.policy.rules import Policy, Rule
from keepfor.sizes import format_size
from keepfor.stores.base import RowStore
from keepfor.stores.daily import of_items
from keepfor.times import format_duration
from keepfor.trail import Sweep, sweeps
from keepfor.web import histories
from keepfor.web.desk import Desk
from keepfor.web.forecasts import Outlook, outlook
from keepfor.web.histories import History
from keepfor.web.recent import Recent, recent
from keepfor.wording import listed

#: How many single items of a plan are told at once.
SHOWN = 100
_SWEEPS = 5
#: The gravest first.
_GRAVITY = {"delete": 0, "flag": 1, "keep": 2}


class RuleLine(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, or a bound, and what it would take today.

    Parameters:
        name: what reports call it.
        says: what it says, in words.
        deletes: how many it would delete.
        flags: how many it would flag.
        bytes: how many bytes those hold; None where that is not known.
    """

    name: str
    says: str
    deletes: int = 0
    flags: int = 0
    bytes: int | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One store.

    Parameters:
        name: its name.
        kind: what kind of store it is.
        words: what it is held to.
        target: its address.
        untold: why its last sweeps cannot be told.
        error: why it cannot be read; all below but its sweeps is None then, or empty.
        plan: what would become of it now.
        held: what history it holds.
        history: the same by age.
        outlook: what it will hold.
        found: what a person should see to.
        rules: its rules, with what each would take.
        going: what the plan does to single items, the gravest first.
        spared: what something kept from a rule.
        recent: what was recalled, or run, lately.
        swept: its last sweeps, the newest first.
        coming: its next sweep.
    """

    name: str
    kind: str
    words: str
    target: str
    untold: str = ""
    error: str = ""
    plan: Plan | None = None
    held: Window | None = None
    history: History | None = None
    outlook: Outlook | None = None
    found: list[Finding] = []
    rules: list[RuleLine] = []
    going: list[Decision] = []
    spared: list[Decision] = []
    recent: Recent | None = None
    swept: list[Sweep] = []
    coming: NextRun | None = None


def page(desk: Desk, config: Config, name: str) -> Page:
    """All that is told of a store. Writes nothing.

    Raises:
        UnknownStore: when there is no such store.
    """
    settings, store = asking.settings(config, name), asking.store(config, name)
    policy, now, items = policy_of(settings), desk.now(), list[Item]()
    told = Page(name=name, kind=store.kind, words=in_words(settings), target=store.target)
    swept: list[Sweep] = []
    try:
        swept = list(islice(_sweeps_of(config, name, store.target), _SWEEPS))
        told = msgspec.structs.replace(told, swept=swept)
    except (KeepforError, OSError) as error:
        told = msgspec.structs.replace(told, untold=str(error))
    try:
        plan = plans.build(store, policy, now, name=name, seen=items)
        if isinstance(store, RowStore):
            held = by_day(store, policy, now)
            history = histories.of_rows(held, store, policy, now)
        else:
            held = of_items(items, now)
            history = histories.of_plan(plan, items, policy)
        late = recent(store, items)
    except (KeepforError, OSError) as error:
        return msgspec.structs.replace(told, error=str(error))
    desk.show(plan, told.words)
    lasting, present = traps(config).get(name, []), traps(config, {name: items}).get(name, [])
    idle = [trap for trap in present if trap not in lasting]
    process = process_of(config.state_dir, store.target)
    return msgspec.structs.replace(
        told,
        plan=plan,
        held=window(plan.survey),
        history=history,
        outlook=outlook(held, policy, now, store.kind),
        found=findings(name, settings, plan, leftovers(store), lasting, idle),
        rules=list(_rule_lines(policy, plan, settings)),
        going=going(plan),
        spared=plans.spared(plan),
        recent=late,
        coming=next_run(swept[0] if swept else None, settings.interval, now, process),
    )


def going(plan: Plan) -> list[Decision]:
    """What a plan does to single items, the gravest first, and the oldest of those."""
    return sorted(
        (said for said in plan.decisions if said.action != "keep"),
        key=lambda said: (_GRAVITY[said.action], str(said.evidence.get("instant")), said.id),
    )


def _sweeps_of(config: Config, name: str, target: str) -> Iterator[Sweep]:
    """The sweeps of a store, also those that ran under another name of it."""
    return (
        sweep
        for sweep in sweeps(open_trail(config).records())
        if sweep.target == target or sweep.store == name
    )


def _rule_lines(policy: Policy, plan: Plan, settings: Store) -> Iterator[RuleLine]:
    survey = plan.survey
    taken = _taken(plan)
    for rule in policy.rules:
        yield _line(rule.name, _in_words(rule), taken)
    if policy.max_count is not None:
        yield _line("max_count", f"above {policy.max_count:,} the oldest go", taken)
    if policy.max_bytes is not None:
        yield _line("max_bytes", f"above {format_size(policy.max_bytes)} the oldest go", taken)
    if plan.kind == "ledger":
        drops = getattr(settings, "unreadable", "keep") == "drop"
        says = f"rows that no reader can use {'go' if drops else 'stay'}"
        yield RuleLine(name="unreadable", says=says, deletes=survey.unreadable)
    floors = [str(policy.keep_last)] if policy.keep_last else []
    floors += [f"{count} of type {type_}" for type_, count in policy.keep_last_of.items()]
    if floors:
        yield RuleLine(name="keep_last", says=f"the newest {listed(floors)} always stay")


def _taken(plan: Plan) -> dict[str, tuple[int, int, int | None]]:
    """How many each rule would delete and flag, and the bytes of those, by its name."""
    if plan.decisions:
        deletes, flags = Counter[str](), Counter[str]()
        amounts: defaultdict[str, int] = defaultdict(int)
        for said in plan.decisions:
            if said.action != "keep" and said.rule is not None:
                (deletes if said.action == "delete" else flags)[said.rule] += 1
                amounts[said.rule] += said.bytes
        return {rule: (deletes[rule], flags[rule], amount) for rule, amount in amounts.items()}
    if plan.kind == "table":
        counts = Counter[str]()
        for part in plan.survey.parts:
            counts[part.rule] += part.count
        return {rule: (count, 0, None) for rule, count in counts.items()}
    survey = plan.survey
    return {"keep_for": (survey.expired, 0, None), "max_bytes": (survey.over_ceiling, 0, None)}


def _line(name: str, says: str, taken: dict[str, tuple[int, int, int | None]]) -> RuleLine:
    deletes, flags, amount = taken.get(name, (0, 0, None))
    return RuleLine(name=name, says=says, deletes=deletes, flags=flags, bytes=amount)


def _in_words(rule: Rule) -> str:
    """What a rule says."""
    what = [f"type {rule.type}" if rule.type else "everything"]
    if rule.match_id is not None:
        what.append(f"with an id like {rule.match_id}")
    what += [f"whose {key} is {value}" for key, value in rule.match_fields.items()]
    ages = []
    if rule.max_age is not None:
        ages.append(f"older than {format_duration(rule.max_age)}")
    if rule.max_unused is not None:
        ages.append(f"unused for more than {format_duration(rule.max_unused)}")
    if ages:
        what.append(" or ".join(ages))
    if rule.after_flagged is not None:
        what.append(f"flagged for more than {format_duration(rule.after_flagged)}")
    does = {"keep": "stays", "flag": "is flagged", "delete": "goes"}[rule.action]
    more = ", with what was made from it" if rule.cascade_derived else ""
    less = ", unless something that stays names it" if rule.keep_if_cited else ""
    return f"{', '.join(what)}: {does}{more}{less}"


def evidence(said: Decision) -> list[tuple[str, Any]]:
    """The numbers that a decision was reached on, by their names."""
    return [(key.replace("_", " "), value) for key, value in said.evidence.items()]
