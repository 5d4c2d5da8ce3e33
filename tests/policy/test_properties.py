"""What holds for every policy and every store, tried on many that nobody would think of."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from keepfor.items import Decision, Item
from keepfor.policy.decide import decide
from keepfor.policy.limits import shortfalls
from keepfor.policy.lint import lint
from keepfor.policy.rules import Policy, Rule, terms
from keepfor.policy.verdicts import verdict
from keepfor.times import Instant, Known, Unknown
from tests.policy.build import NOW

#: Stores and policies take long to draw; the tables hold what must not be left to chance.
tried = settings(max_examples=50)

TYPES = ("note", "session")
NAMES = [f"i{number}" for number in range(8)]


def instants(source: str) -> st.SearchStrategy[Instant]:
    """Instants around the thresholds below, some exactly on one, some ahead, some unknown."""
    ages = st.integers(-2, 12) | st.sampled_from([2.999_999, 3.000_001])
    return ages.map(lambda age: Known(NOW - timedelta(days=age), source)) | st.just(
        Unknown(f"{source} is missing")
    )


@st.composite
def stores(draw: st.DrawFn) -> list[Item]:
    return [
        Item(
            id=name,
            type=draw(st.sampled_from(TYPES)),
            instant=draw(instants("mtime")),
            accessed=draw(instants("recall")),
            bytes=draw(st.integers(0, 50)),
            fingerprint=f"f-{name}",
            derived_from=draw(st.none() | st.sampled_from(NAMES)),
            flagged_by=draw(st.none() | st.sampled_from(["r0", "r1"])),
        )
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
    ]


@st.composite
def rules(draw: st.DrawFn, /, name: str = "r", **fixed: Any) -> Rule:
    threshold = st.integers(1, 9).map(lambda count: timedelta(days=count))
    by = draw(st.sampled_from(["age", "unused", "both"]))
    settings: dict[str, Any] = {
        "name": name,
        "type": draw(st.none() | st.sampled_from(TYPES)),
        "max_age": draw(threshold) if by != "unused" else None,
        "max_unused": draw(threshold) if by != "age" else None,
        "action": draw(st.sampled_from(["keep", "flag", "delete", "delete"])),
    } | fixed
    if settings["action"] == "delete":
        settings.setdefault("cascade_derived", draw(st.booleans()))
        if by != "age":
            settings["on_missing_access_signal"] = draw(st.sampled_from(["skip", "flag", "delete"]))
    return Rule(**settings)


@st.composite
def policies(draw: st.DrawFn, ceilings: bool = True) -> Policy:
    count = draw(st.integers(0, 4))
    bounds: dict[str, Any] = {}
    if ceilings:
        bounds["max_count"] = draw(st.none() | st.integers(1, 6))
        bounds["max_bytes"] = draw(st.none() | st.integers(1, 200))
    floor = draw(st.integers(0, 3))
    return Policy(
        rules=tuple(draw(rules(f"r{number}")) for number in range(count)),
        keep_last=min(floor, bounds.get("max_count") or floor),
        **bounds,
    )


VETOES = st.dictionaries(st.sampled_from(NAMES), st.just("on hold"), max_size=4)


def deleted(decisions: list[Decision]) -> dict[str, Decision]:
    return {said.id: said for said in decisions if said.action == "delete"}


@tried
@given(policies(), stores(), VETOES)
def test_each_item_gets_exactly_one_decision(
    policy: Policy, items: list[Item], vetoes: dict[str, str]
) -> None:
    """One decision per item, in their order, with the item's own fingerprint and size."""
    decisions = decide(policy, items, NOW, vetoes)
    assert [(said.id, said.fingerprint, said.bytes) for said in decisions] == [
        (thing.id, thing.fingerprint, thing.bytes) for thing in items
    ]


@tried
@given(policies(), stores(), VETOES)
def test_deciding_is_pure(policy: Policy, items: list[Item], vetoes: dict[str, str]) -> None:
    """The same input gives the same output, and is left as it was; the order does not matter."""
    before = copy.deepcopy((policy, items, vetoes))
    first = decide(policy, items, NOW, vetoes)
    assert decide(policy, items, NOW, vetoes) == first
    assert (policy, items, vetoes) == before
    backwards = decide(policy, items[::-1], NOW, vetoes)
    assert backwards[::-1] == first


@tried
@given(policies(), stores(), VETOES)
def test_nothing_is_done_without_a_reason(
    policy: Policy, items: list[Item], vetoes: dict[str, str]
) -> None:
    """What is deleted or flagged names its rule, its reason and the numbers behind it."""
    names = {rule.name for rule in policy.rules} | {"max_count", "max_bytes"}
    for said in decide(policy, items, NOW, vetoes):
        if said.action != "keep":
            assert said.rule in names
            assert said.reason.partition(":")[0] in {"age", "unused", "count", "bytes", "cascade"}
            assert said.evidence
        msgspec.json.encode(said)


@tried
@given(policies(), stores(), VETOES)
def test_a_veto_is_never_deleted(policy: Policy, items: list[Item], vetoes: dict[str, str]) -> None:
    """No rule, cascade or ceiling deletes or flags what is vetoed."""
    for said in decide(policy, items, NOW, vetoes):
        assert said.id not in vetoes or said.action == "keep"


@tried
@given(policies(), stores(), VETOES)
def test_floors_always_win(policy: Policy, items: list[Item], vetoes: dict[str, str]) -> None:
    """The newest `keep_last` of known age stay, whatever else the policy says."""
    dated = [
        (thing.instant.instant, thing.id) for thing in items if isinstance(thing.instant, Known)
    ]
    floor = {name for _, name in sorted(dated)[len(dated) - min(policy.keep_last, len(dated)) :]}
    decisions = decide(policy, items, NOW, vetoes)
    assert {said.id for said in decisions if said.reason == "floor"} == floor
    assert not floor & set(deleted(decisions))


@tried
@given(policies(), stores())
def test_unknown_is_never_deleted_by_age(policy: Policy, items: list[Item]) -> None:
    """An unknown age is no reason to go: neither by age, nor below a ceiling."""
    ageless = {thing.id for thing in items if isinstance(thing.instant, Unknown)}
    unrecalled = {thing.id for thing in items if isinstance(thing.accessed, Unknown)}
    for name, said in deleted(decide(policy, items, NOW)).items():
        if name in ageless:
            assert said.reason == "unused" or said.reason.startswith("cascade:")
        if name in ageless & unrecalled:
            assert said.reason.startswith("cascade:")


@tried
@given(policies(), stores(), VETOES)
def test_ceilings_hold_or_say_why_not(
    policy: Policy, items: list[Item], vetoes: dict[str, str]
) -> None:
    """After a plan the count and the bytes are within bounds, or the shortfall says by how much."""
    decisions = decide(policy, items, NOW, vetoes)
    staying = [said for said in decisions if said.action != "delete"]
    over = {short.ceiling: short.over for short in shortfalls(policy, items, decisions)}
    if policy.max_count is not None:
        assert len(staying) - policy.max_count <= over.get("max_count", 0)
    if policy.max_bytes is not None:
        assert sum(said.bytes for said in staying) - policy.max_bytes <= over.get("max_bytes", 0)
    if over:
        ages = {thing.id: thing.instant for thing in items}
        for said in staying:
            held = said.reason in {"floor", "veto", "spared"} or isinstance(ages[said.id], Unknown)
            assert held or (said.action == "keep" and said.reason in {"age", "unused"})


@tried
@given(policies(), stores())
def test_a_ceiling_takes_no_more_than_it_has_to(policy: Policy, items: list[Item]) -> None:
    """The last item that a ceiling took was still one too many."""
    decisions = decide(policy, items, NOW)
    taken = [said for said in decisions if said.reason in {"count", "bytes"}]
    if not taken:
        return
    last = max(taken, key=lambda said: (str(said.evidence["instant"]), said.id))
    staying = [said for said in decisions if said.action != "delete"] + [last]
    count, size = len(staying), sum(said.bytes for said in staying)
    assert count > (policy.max_count or count) or size > (policy.max_bytes or size)


@tried
@given(rules(action="delete"), stores(), st.data())
def test_an_older_item_never_outlives_a_newer_equal_one(
    rule: Rule, items: list[Item], data: st.DataObject
) -> None:
    """Of two items alike but for their age, an age rule never takes the newer one alone."""
    thing = data.draw(st.sampled_from(items)) if items else None
    if thing is None or rule.max_age is None:
        return
    older, newer = sorted(data.draw(st.tuples(*[st.floats(-3, 13)] * 2)), reverse=True)
    said = [
        verdict(
            rule,
            msgspec.structs.replace(thing, instant=Known(NOW - timedelta(days=age), "mtime")),
            NOW,
        ).answer
        for age in (older, newer)
    ]
    assert said != ["no", "yes"]


@tried
@given(policies(), stores())
def test_under_a_ceiling_the_older_goes_first(policy: Policy, items: list[Item]) -> None:
    """Of two items that a ceiling could take, it never takes the newer and leaves the older."""
    instants_of = {thing.id: thing.instant for thing in items}
    decisions = decide(policy, items, NOW)
    free = [
        (known.instant, said.id, said.action)
        for said in decisions
        if isinstance(known := instants_of[said.id], Known)
        and (said.reason in {"count", "bytes", "none", "flagged"} or said.action == "flag")
    ]
    actions = ["delete" if action == "delete" else "stay" for _, _, action in sorted(free)]
    assert actions == sorted(actions)


@tried
@given(policies(ceilings=False), stores(), rules("first", action="flag"), VETOES)
def test_an_earlier_flag_rule_never_adds_a_deletion(
    policy: Policy, items: list[Item], rule: Rule, vetoes: dict[str, str]
) -> None:
    """A flag put first deletes nothing more, but for what a cascade takes.

    Delete wins over flag, so a cascade may take an item whose pin or sparing the flag comes before.
    """
    before = decide(policy, items, NOW, vetoes)
    after = decide(msgspec.structs.replace(policy, rules=(rule, *policy.rules)), items, NOW, vetoes)
    reasons = {said.id: said for said in before}
    for name, said in deleted(after).items():
        was = reasons[name]
        if was.action != "delete":
            assert said.reason.startswith("cascade:")
            assert was.action == "keep"
            assert was.reason in {"age", "unused", "spared"}


@tried
@given(policies(), stores(), VETOES)
def test_a_cascade_has_a_cause(policy: Policy, items: list[Item], vetoes: dict[str, str]) -> None:
    """What goes by cascade was derived from an item that a cascading rule deletes in this plan."""
    gone = deleted(decide(policy, items, NOW, vetoes))
    cascading = {rule.name for rule in policy.rules if rule.cascade_derived}
    sources = {thing.id: thing.derived_from for thing in items}
    for name, said in gone.items():
        if said.reason.startswith("cascade:"):
            cause = gone[said.reason.removeprefix("cascade:")]
            assert sources[name] == cause.id
            assert cause.reason in {"age", "unused"}
            assert said.rule == cause.rule
            assert said.rule in cascading


@tried
@given(st.lists(rules(), max_size=4), stores())
def test_a_rule_that_lint_calls_dead_never_decides(drawn: list[Rule], items: list[Item]) -> None:
    """Where lint says that a rule can never fire, it decides nothing, whatever the items are."""
    named = tuple(
        msgspec.structs.replace(rule, name=f"r{number}") for number, rule in enumerate(drawn)
    )
    dead = {trap.rule for trap in lint(Policy(rules=named)) if "never fire" in trap.what}
    assert not dead & {said.rule for said in decide(Policy(rules=named), items, NOW)}


@tried
@given(st.lists(st.integers(1, 9), max_size=3), stores())
def test_rows_and_items_expire_alike(thresholds: list[int], items: list[Item]) -> None:
    """The cutoff that rows are held to takes exactly what the same rules take as items."""
    policy = Policy(
        rules=tuple(
            Rule(name=f"r{number}", max_age=timedelta(days=count), action="delete")
            for number, count in enumerate(thresholds)
        )
    )
    cutoff = terms(policy, NOW).cutoff
    expired = {
        thing.id
        for thing in items
        if cutoff and isinstance(thing.instant, Known) and thing.instant.instant < cutoff
    }
    assert set(deleted(decide(policy, items, NOW))) == expired
