"""What holds for every policy and every store, tried on many that nobody would think of."""

from __future__ import annotations

import copy
import re
from datetime import datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from keepfor.counting import counted
from keepfor.items import Decision, Item
from keepfor.policy.decide import decide
from keepfor.policy.explain import explain
from keepfor.policy.globs import covers, matches
from keepfor.policy.limits import shortfalls
from keepfor.policy.lint import lint
from keepfor.policy.rules import Policy, Rule, terms
from keepfor.policy.verdicts import due, verdict
from keepfor.times import Instant, Known, Unknown
from tests.policy.build import NOW

#: Stores and policies take long to draw; the tables hold what must not be left to chance.
tried = settings(max_examples=40)

TYPES = ("note", "session")
NAMES = [f"i{number}" for number in range(6)]


def instants(source: str) -> st.SearchStrategy[Instant]:
    """Instants around the thresholds below, some exactly on one, some ahead, some unknown."""
    ages = st.integers(-2, 12) | st.sampled_from([2.999_999, 3.000_001])
    return ages.map(lambda age: Known(NOW - timedelta(days=age), source)) | st.just(
        Unknown(f"{source} is missing")
    )


CITES: st.SearchStrategy[tuple[str, ...] | None] = st.lists(st.sampled_from(NAMES), max_size=2).map(
    tuple
) | st.sampled_from([(), (), (), None])


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
            flagged_at=draw(instants("flag")),
            fields=draw(st.sampled_from([{}, {"topic": "a"}, {"topic": "b"}])),
            cites=draw(CITES),
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
        "match_id": draw(st.none() | st.none() | st.sampled_from(["i*", "i3", "?2"])),
        "match_fields": draw(st.sampled_from([{}, {}, {"topic": "a"}])),
        "action": draw(st.sampled_from(["keep", "flag", "delete", "delete"])),
    } | fixed
    if settings["action"] == "delete":
        settings.setdefault("cascade_derived", draw(st.booleans()))
        settings.setdefault("keep_if_cited", draw(st.booleans()))
        settings["after_flagged"] = draw(st.none() | st.none() | threshold)
        if by != "age":
            answers = ["skip", "delete", "flag"][: 2 if settings["after_flagged"] else 3]
            settings["on_missing_access_signal"] = draw(st.sampled_from(answers))
    elif settings["action"] == "keep" and draw(st.booleans()):
        settings |= {"max_age": None, "max_unused": None}
    return Rule(**settings)


@st.composite
def policies(draw: st.DrawFn, ceilings: bool = True) -> Policy:
    count = draw(st.integers(0, 4))
    bounds: dict[str, Any] = {}
    if ceilings:
        bounds["max_count"] = draw(st.none() | st.integers(1, 6))
        bounds["max_bytes"] = draw(st.none() | st.integers(1, 200))
    floor = draw(st.integers(0, 3))
    most = bounds.get("max_count") or 6
    sessions = draw(st.sampled_from([0, 0, 1, 2]))
    return Policy(
        rules=tuple(draw(rules(f"r{number}")) for number in range(count)),
        keep_last=min(floor, most),
        keep_last_of={"session": min(sessions, most)} if sessions else {},
        **bounds,
    )


PATTERNS = st.text("ab/*?", max_size=8)
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
    """The newest of known age stay, of all and of each type, whatever else the policy says."""

    def newest(count: int, *types: str) -> set[str]:
        dated = sorted(
            (thing.instant.instant, thing.id)
            for thing in items
            if isinstance(thing.instant, Known) and thing.type in types
        )
        return {name for _, name in dated[len(dated) - min(count, len(dated)) :]}

    floor = newest(policy.keep_last, *TYPES)
    for type_, count in policy.keep_last_of.items():
        floor |= newest(count, type_)
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
            held = said.reason in {"floor", "veto", "spared", "cited", "pinned"}
            held = held or isinstance(ages[said.id], Unknown)
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
    """A flag put first deletes nothing more, but for what hangs on a cascade.

    Delete wins over flag, so a cascade may take an item whose pin or sparing the flag comes before,
    and with it what that item cites.
    """
    before = decide(policy, items, NOW, vetoes)
    after = decide(msgspec.structs.replace(policy, rules=(rule, *policy.rules)), items, NOW, vetoes)
    reasons = {said.id: said for said in before}
    for name, said in deleted(after).items():
        was = reasons[name]
        if was.action != "delete":
            assert any(rule.cascade_derived for rule in policy.rules)
            assert was.action == "keep"
            assert was.reason in {"age", "unused", "spared", "pinned", "cited"}
            assert said.reason.startswith("cascade:") or was.reason == "cited"


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


@tried
@given(st.lists(rules(), max_size=4), stores())
def test_each_decision_is_the_first_verdict_that_says_yes(
    drawn: list[Rule], items: list[Item]
) -> None:
    """What is decided at a glance is what asking every rule in turn comes to."""
    named = tuple(
        msgspec.structs.replace(rule, name=f"r{number}", cascade_derived=False, keep_if_cited=False)
        for number, rule in enumerate(drawn)
    )
    for thing, found in zip(items, decide(Policy(rules=named), items, NOW), strict=True):
        evidence: dict[str, Any] = {}
        for rule in named:
            said = verdict(rule, thing, NOW)
            if said.answer == "yes":
                assert found.rule == rule.name
                assert found.reason in {said.reason, "spared", "flagged"}
                assert found.evidence == evidence | said.evidence()
                break
            if said.answer == "unknown":
                count = evidence.get("unknown", 0) + 1
                evidence = {"unknown": count, "why": said.evidence()["why"]}
        else:
            assert (found.action, found.rule, found.reason) == ("keep", None, "none")
            assert found.evidence == evidence


@tried
@given(rules(), stores())
def test_a_rule_says_yes_once_it_is_due(rule: Rule, items: list[Item]) -> None:
    """The instant that a rule names is the last one at which it does not match."""
    for thing in items:
        said = verdict(rule, thing, NOW)
        if said.reason == "pinned":
            continue
        moment = due(rule, thing)
        assert (said.answer == "yes") is (moment is not None and moment < NOW)
        if moment is not None:
            assert verdict(rule, thing, moment).answer != "yes"
            assert verdict(rule, thing, moment + timedelta(microseconds=1)).answer == "yes"


@tried
@given(policies(), stores(), VETOES, st.data())
def test_an_explanation_says_what_a_plan_says(
    policy: Policy, items: list[Item], vetoes: dict[str, str], data: st.DataObject
) -> None:
    """Now, and at the next instant that it names: the decision is that of `decide`."""
    if not items:
        return
    index = data.draw(st.integers(0, len(items) - 1))
    told = explain(policy, items, NOW, items[index].id, vetoes)
    assert told.decision == decide(policy, items, NOW, vetoes)[index]
    assert [one.rule for one in told.opinions] == [rule.name for rule in policy.rules]
    if told.next is not None and told.decision.action == "keep":
        later = told.next.due + timedelta(microseconds=1)
        assert told.next.due >= NOW
        assert told.next.decision == decide(policy, items, later, vetoes)[index]


@tried
@given(policies(ceilings=False), stores(), st.data())
def test_nothing_changes_before_what_comes_next(
    policy: Policy, items: list[Item], data: st.DataObject
) -> None:
    """Until the instant that an explanation names, every plan says what it says now."""
    plain = tuple(msgspec.structs.replace(rule, keep_if_cited=False) for rule in policy.rules)
    policy = msgspec.structs.replace(policy, rules=plain)
    if not items:
        return
    index = data.draw(st.integers(0, len(items) - 1))
    told = explain(policy, items, NOW, items[index].id)
    if told.decision.action != "keep":
        return
    until = told.next.due if told.next else NOW + timedelta(days=30)
    share = data.draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    said = decide(policy, items, NOW + (until - NOW) * share)[index]
    now = told.decision
    assert (said.action, said.rule, said.reason) == (now.action, now.rule, now.reason)


@tried
@given(policies(), stores(), VETOES)
def test_what_is_cited_by_what_stays_is_spared(
    policy: Policy, items: list[Item], vetoes: dict[str, str]
) -> None:
    """A rule that spares the cited never takes what an item that stays names, or may name."""
    decisions = decide(policy, items, NOW, vetoes)
    sparing = {rule.name for rule in policy.rules if rule.keep_if_cited}
    staying = [
        thing for thing, said in zip(items, decisions, strict=True) if said.action != "delete"
    ]
    cited = {name for thing in staying for name in thing.cites or ()}
    taken = {name for name, said in deleted(decisions).items() if said.rule in sparing}
    assert not taken & cited
    assert not taken or all(thing.cites is not None for thing in staying)


@tried
@given(policies(), stores(), VETOES)
def test_the_counts_are_those_of_the_decisions(
    policy: Policy, items: list[Item], vetoes: dict[str, str]
) -> None:
    """Each item is in exactly one bucket, and each number can be counted on one's fingers."""
    decisions = decide(policy, items, NOW, vetoes)
    found = counted(policy, items, decisions, NOW)
    pairs = list(zip(items, decisions, strict=True))
    stay = [thing for thing, said in pairs if said.action != "delete"]
    gone = [thing for thing, said in pairs if said.action == "delete"]

    def known(things: list[Item]) -> list[datetime]:
        return [one.instant.instant for one in things if isinstance(one.instant, Known)]

    assert found.scanned == len(items) == found.kept + found.applied
    assert found.kept == sum(said.action == "keep" for said in decisions)
    assert found.expired == sum(
        said.action == "delete" and said.reason in {"age", "unused"} for said in decisions
    )
    assert found.over_ceiling == sum(said.reason in {"count", "bytes"} for said in decisions)
    assert found.unknown == len(stay) - len(known(stay))
    assert found.future == sum(moment > NOW for moment in known(stay))
    assert found.bytes_before == sum(thing.bytes for thing in items)
    assert found.bytes_after == sum(thing.bytes for thing in stay)
    assert found.oldest == min(known(stay), default=None)
    assert found.newest == max(known(items), default=None)
    assert found.due == min(known(gone), default=None)
    left = [thing for thing, said in pairs if said.rule is None]
    assert found.fresh == min(known(left), default=None)


@given(PATTERNS, st.text("ab/", max_size=8))
def test_a_pattern_means_what_the_expression_means(pattern: str, text: str) -> None:
    """Whatever the pattern, it matches what the regular expression for it does."""
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    assert matches(pattern, text) is bool(re.fullmatch(expression, text, re.DOTALL))


@given(PATTERNS, st.none() | PATTERNS, st.text("ab/", max_size=8))
def test_what_covers_leaves_nothing(pattern: str, other: str | None, text: str) -> None:
    """Where one pattern covers another, it matches all that the other does."""
    if covers(pattern, other) and (other is None or matches(other, text)):
        assert matches(pattern, text)
