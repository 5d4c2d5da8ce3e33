"""A policy and the items of a store: what is to happen to each, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from keepfor.items import Decision, Item
from keepfor.policy.decide import decide
from keepfor.policy.rules import Policy, Rule, keep_for
from tests.policy.build import NOW, days, delete, flag, item, keep

OLD, YOUNG = "2025-01-01", "2026-07-25"


def outcome(policy: Policy, *items: Item, **more: Any) -> dict[str, tuple[str, str | None, str]]:
    """Action, rule and reason, by id."""
    return {
        said.id: (said.action, said.rule, said.reason)
        for said in decide(policy, items, NOW, **more)
    }


def one(rules: tuple[Rule, ...], thing: Item, **more: Any) -> Decision:
    (decision,) = decide(Policy(rules=rules), [thing], NOW, **more)
    return decision


# --- 1. rules, top to bottom --------------------------------------------------------------


def test_the_first_rule_that_says_yes_decides() -> None:
    """Rules are read top to bottom, and what comes after the first match is not asked."""
    a, b = delete("a", max_age=days(365)), flag("b", max_age=days(90))
    assert outcome(Policy(rules=(a, b)), item(when=OLD)) == {"a": ("delete", "a", "age")}
    assert outcome(Policy(rules=(b, a)), item(when=OLD)) == {"a": ("flag", "b", "age")}
    assert outcome(Policy(rules=(a, b)), item(when="2026-01-01")) == {"a": ("flag", "b", "age")}
    assert outcome(Policy(rules=(a, b)), item(when=YOUNG)) == {"a": ("keep", None, "none")}


def test_no_rule_takes_nothing() -> None:
    """An empty policy, and an empty store, come to nothing at all."""
    assert outcome(Policy(), item(when=OLD)) == {"a": ("keep", None, "none")}
    assert decide(Policy(rules=keep_for(days(90))), [], NOW) == []


def test_a_pin_shields_from_later_rules() -> None:
    """`action: keep` pins what it matches: a later delete of the same item does not count."""
    rules = (keep("pin", type="note", max_age=days(30)), delete("all", max_age=days(90)))
    said = outcome(Policy(rules=rules), item(when=OLD), item("b", OLD, type="session"))
    assert said == {"a": ("keep", "pin", "age"), "b": ("delete", "all", "age")}


def test_unknown_falls_through_and_is_counted() -> None:
    """A rule that cannot tell is passed over; the next may decide, and the evidence counts it."""
    rules = (
        delete("by-age", max_age=days(90)),
        flag("by-age-too", max_age=days(30)),
        flag("by-use", max_unused=days(30)),
    )
    said = one(rules, item(used="2026-06-01"))
    assert (said.action, said.rule, said.reason) == ("flag", "by-use", "unused")
    assert said.evidence == {
        "unknown": 2,
        "why": "mtime is missing",
        "threshold": "30d",
        "unused_days": 55.0,
        "instant": "2026-06-01T00:00:00+00:00",
        "source": "recall",
        "cutoff": "2026-06-26T00:00:00+00:00",
    }


def test_an_item_of_unknown_age_stays() -> None:
    """Where no rule can tell, the item is kept, and the evidence says why."""
    said = one((delete("a", max_age=days(90)), delete("b", max_unused=days(30))), item())
    assert (said.action, said.rule, said.reason) == ("keep", None, "none")
    assert said.evidence == {"unknown": 2, "why": "mtime is missing"}


def test_a_decision_carries_what_it_was_reached_on() -> None:
    """Rule, reason, evidence, fingerprint and size go with every decision."""
    thing = item(when="2026-01-27", bytes=512, fingerprint="f-1")
    assert one(keep_for(days(90)), thing) == Decision(
        id="a",
        action="delete",
        rule="keep_for",
        reason="age",
        evidence={
            "threshold": "90d",
            "age_days": 180.0,
            "instant": "2026-01-27T00:00:00+00:00",
            "source": "mtime",
            "cutoff": "2026-04-27T00:00:00+00:00",
        },
        fingerprint="f-1",
        bytes=512,
    )
    young = item(when=YOUNG, bytes=7, fingerprint="f-2")
    assert one(keep_for(days(90)), young) == Decision(
        id="a", action="keep", fingerprint="f-2", bytes=7
    )


def test_a_flag_that_stands_already_is_kept() -> None:
    """An item that the same rule has flagged is left alone; another rule's flag is new."""
    rules = (flag("stale", max_age=days(90)),)
    said = one(rules, item(when=OLD, flagged_by="stale"))
    assert (said.action, said.rule, said.reason) == ("keep", "stale", "flagged")
    assert said.evidence["threshold"] == "90d"
    assert one(rules, item(when=OLD, flagged_by="other")).action == "flag"
    assert one(rules, item(when=YOUNG, flagged_by="stale")).reason == "none"
    kept = one((delete("stale", max_age=days(90)),), item(when=OLD, flagged_by="stale"))
    assert kept.action == "delete"


# --- 2. a missing access signal -----------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("skip", ("keep", "r", "spared")),
        ("flag", ("flag", "r", "unused")),
        ("delete", ("delete", "r", "unused")),
    ],
)
def test_a_missing_access_signal_is_answered_as_the_rule_says(
    missing: Any, expected: tuple[str, str, str]
) -> None:
    """A delete on disuse that rests on no recorded access is spared, flagged, or carried out."""
    rule = delete("r", max_unused=days(180), on_missing_access_signal=missing)
    said = one((rule,), item(when=OLD))
    assert (said.action, said.rule, said.reason) == expected
    assert said.evidence["access"] == "missing"
    assert said.evidence["source"] == "mtime"


@pytest.mark.parametrize("missing", ["skip", "flag", "delete"])
def test_a_recorded_access_needs_no_answer(missing: Any) -> None:
    """Where an access was recorded, the delete on disuse is what it says."""
    rule = delete("r", max_unused=days(180), on_missing_access_signal=missing)
    said = one((rule,), item(when=YOUNG, used=OLD))
    assert (said.action, said.reason) == ("delete", "unused")
    assert "access" not in said.evidence


def test_only_a_delete_on_disuse_is_spared() -> None:
    """A match by age, a flag and a pin need no access signal."""
    both = delete("r", max_age=days(90), max_unused=days(30))
    assert one((both,), item(when=OLD)).reason == "age"
    assert one((both,), item(when=OLD)).action == "delete"
    assert one((both,), item(when="2026-06-01")).reason == "spared"
    assert one((flag("f", max_unused=days(30)),), item(when=OLD)).action == "flag"
    said = one((keep("k", max_unused=days(30)),), item(when=OLD))
    assert (said.action, said.reason) == ("keep", "unused")


def test_a_spared_item_is_decided() -> None:
    """No later rule and no ceiling takes what was spared."""
    rules = (delete("unused", max_unused=days(180)), delete("old", max_age=days(90)))
    said = outcome(Policy(rules=rules, max_count=1), item(when=OLD), item("b", YOUNG, YOUNG))
    assert said["a"] == ("keep", "unused", "spared")
    assert said["b"] == ("delete", "max_count", "count")


def test_a_flag_for_a_missing_signal_stands_once() -> None:
    """A second run leaves the flag of a missing signal alone, like any flag."""
    rule = delete("r", max_unused=days(180), on_missing_access_signal="flag")
    said = one((rule,), item(when=OLD, flagged_by="r"))
    assert (said.action, said.rule, said.reason) == ("keep", "r", "flagged")


# --- 3. cascades --------------------------------------------------------------------------

SESSIONS = delete("sessions", type="session", max_age=days(365), cascade_derived=True)


def session(id: str = "s", when: str | None = OLD, **more: Any) -> Item:  # noqa: A002
    return item(id, when, type="session", **more)


def test_a_cascade_takes_what_was_derived_whatever_its_age() -> None:
    """Young notes, and notes of unknown age, go with the session that they were made from."""
    said = outcome(
        Policy(rules=(SESSIONS,)),
        item("young", YOUNG, derived_from="s"),
        session("s"),
        item("ageless", derived_from="s"),
        item("other", YOUNG, derived_from="t"),
        item("free", YOUNG),
    )
    assert said == {
        "young": ("delete", "sessions", "cascade:s"),
        "s": ("delete", "sessions", "age"),
        "ageless": ("delete", "sessions", "cascade:s"),
        "other": ("keep", None, "none"),
        "free": ("keep", None, "none"),
    }


def test_a_cascade_names_its_cause() -> None:
    """The evidence holds the item that took this one along, and what was decided before."""
    rules = (SESSIONS, flag("stale", type="note", max_age=days(90)))
    items = [session(), item("n", OLD, derived_from="s", bytes=5, fingerprint="f")]
    assert decide(Policy(rules=rules), items, NOW)[1] == Decision(
        id="n",
        action="delete",
        rule="sessions",
        reason="cascade:s",
        evidence={"from": "s", "because": "age", "superseded": "stale"},
        fingerprint="f",
        bytes=5,
    )
    items = [session(), item("n", YOUNG, derived_from="s")]
    assert decide(Policy(rules=rules), items, NOW)[1].evidence == {"from": "s", "because": "age"}


@pytest.mark.parametrize(
    ("rule", "thing", "expected"),
    [
        # Delete wins over flag, a standing one too.
        (flag("f", max_age=days(90)), {"when": OLD}, ("delete", "sessions", "cascade:s")),
        (
            flag("f", max_age=days(90)),
            {"when": OLD, "flagged_by": "f"},
            ("delete", "sessions", "cascade:s"),
        ),
        # Otherwise the first decision stands.
        (delete("d", max_age=days(90)), {"when": OLD}, ("delete", "d", "age")),
        (keep("k", max_age=days(90)), {"when": OLD}, ("keep", "k", "age")),
        (delete("u", max_unused=days(90)), {"when": OLD}, ("keep", "u", "spared")),
    ],
)
def test_a_cascade_wins_over_a_flag_and_nothing_else(
    rule: Rule, thing: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    """A cascade supersedes a flag; a pin, a spared item and a delete stand as decided."""
    policy = Policy(rules=(SESSIONS, rule))
    said = outcome(policy, item("n", derived_from="s", **thing), session())
    assert said["n"] == expected


def test_only_a_delete_by_a_cascading_rule_cascades() -> None:
    """What is kept, flagged, or deleted by a rule that does not cascade takes nothing along."""
    note = item("n", YOUNG, derived_from="s")
    plain = delete("plain", type="session", max_age=days(365))
    unused = {"type": "session", "max_unused": days(365), "cascade_derived": True}
    for rules, source in (
        ((SESSIONS,), session(when=YOUNG)),
        ((plain,), session()),
        ((plain, SESSIONS), session()),
        ((flag("f", max_age=days(90)), SESSIONS), session()),
        ((delete("u", **unused),), session()),
        ((delete("u", on_missing_access_signal="flag", **unused),), session()),
    ):
        said = outcome(Policy(rules=rules), note, source)
        assert said["n"] == ("keep", None, "none"), rules
    rule = delete("u", on_missing_access_signal="delete", **unused)
    assert outcome(Policy(rules=(rule,)), note, session())["n"] == ("delete", "u", "cascade:s")


def test_a_cascade_goes_one_step() -> None:
    """What went by cascade takes nothing along itself, not even by its own rule's name."""
    rule = delete("all", max_age=days(365), cascade_derived=True)
    said = outcome(
        Policy(rules=(rule,)),
        item("a", OLD),
        item("b", YOUNG, derived_from="a"),
        item("c", YOUNG, derived_from="b"),
    )
    assert said["b"] == ("delete", "all", "cascade:a")
    assert said["c"] == ("keep", None, "none")


def test_a_chain_goes_where_each_link_is_due() -> None:
    """An item that its own rule deletes takes along what was derived from it."""
    rule = delete("all", max_age=days(365), cascade_derived=True)
    said = outcome(
        Policy(rules=(rule,)),
        item("a", OLD),
        item("b", OLD, derived_from="a"),
        item("c", YOUNG, derived_from="b"),
    )
    assert said["b"] == ("delete", "all", "age")
    assert said["c"] == ("delete", "all", "cascade:b")


def test_an_empty_link_links_to_nothing() -> None:
    """An item whose link is empty belongs to nothing, not even to an item without a name."""
    said = outcome(Policy(rules=(SESSIONS,)), session(""), item("n", YOUNG, derived_from=""))
    assert said["n"] == ("keep", None, "none")


def test_an_item_derived_from_itself_is_no_matter() -> None:
    """A link to oneself changes nothing."""
    assert outcome(Policy(rules=(SESSIONS,)), session(derived_from="s")) == {
        "s": ("delete", "sessions", "age")
    }


def test_a_cascade_is_called_by_the_last_part_of_its_cause() -> None:
    """The reason names the session's file, and the evidence its whole id."""
    policy = Policy(rules=(SESSIONS,))
    for id_, name in (("s/a.json", "a.json"), ("s/b/c d", "c d"), ("e", "e")):
        said = decide(policy, [session(id_), item("n", YOUNG, derived_from=id_)], NOW)[1]
        assert said.reason == f"cascade:{name}"
        assert said.evidence["from"] == id_


# --- citations ----------------------------------------------------------------------------

OLD_NOTES = delete("old", type="note", max_age=days(90), keep_if_cited=True)
CITED = ("keep", "old", "cited")


def test_what_an_item_that_stays_names_is_spared() -> None:
    """A cited item stays, by the rule that would have deleted it; the evidence says by which."""
    items = [
        item("a", OLD, bytes=5, fingerprint="f"),
        item("b", OLD),
        item("z", YOUNG, cites=("a", "elsewhere", "z")),
        item("y", YOUNG, cites=("a",)),
    ]
    said = decide(Policy(rules=(OLD_NOTES,)), items, NOW)
    assert said[0] == Decision(
        id="a",
        action="keep",
        rule="old",
        reason="cited",
        evidence={"by": "y", "withheld": "old"},
        fingerprint="f",
        bytes=5,
    )
    assert [one.action for one in said] == ["keep", "delete", "keep", "keep"]
    assert decide(Policy(rules=(OLD_NOTES,)), items[::-1], NOW) == said[::-1]


def test_what_goes_spares_nothing() -> None:
    """A citation by an item that goes itself, or by oneself, does not count."""
    said = outcome(
        Policy(rules=(OLD_NOTES,)), item("a", OLD, cites=("a",)), item("b", OLD, cites=("a",))
    )
    assert {action for action, *_ in said.values()} == {"delete"}


def test_what_goes_tells_what_names_it_and_goes_too() -> None:
    """So that it stays where one of these turns out to stay; one may name what cannot be told."""
    items = [
        item("young", YOUNG, cites=("elsewhere",)),
        item("a", OLD, cites=("a", "b")),
        item("b", OLD, cites=("a",)),
        item("c", OLD),
        item("x", OLD, cites=None),
    ]
    said = decide(Policy(rules=(OLD_NOTES,)), items, NOW)
    assert [one.action for one in said] == ["keep"] + ["delete"] * 4
    assert [one.cited_by for one in said] == [(), ("b", "x"), ("a", "x"), ("x",), ()]


def test_where_nothing_spares_the_cited_nobody_asks_what_names_it() -> None:
    """A citation holds back only what goes by a rule that says so."""
    plain = delete("plain", type="note", max_age=days(90))
    said = decide(Policy(rules=(plain,)), [item("a", OLD), item("b", OLD, cites=("a",))], NOW)
    assert [(one.action, one.cited_by) for one in said] == [("delete", ()), ("delete", ())]


def test_only_a_rule_that_says_so_spares_the_cited() -> None:
    """Each rule speaks for itself, and a flag has nothing to spare."""
    plain = delete("plain", type="memo", max_age=days(90))
    citing = item("z", YOUNG, cites=("m", "n"))
    said = outcome(
        Policy(rules=(plain, OLD_NOTES)), item("m", OLD, type="memo"), item("n", OLD), citing
    )
    assert said["m"] == ("delete", "plain", "age")
    assert said["n"] == CITED
    stale = flag("stale", max_age=days(90))
    assert outcome(Policy(rules=(stale, OLD_NOTES)), item("n", OLD), citing)["n"][0] == "flag"


def test_what_is_spared_spares_in_turn() -> None:
    """A chain of citations that begins at an item that stays is kept to its end."""
    said = outcome(
        Policy(rules=(OLD_NOTES,)),
        item("c", OLD),
        item("b", OLD, cites=("c",)),
        item("a", OLD, cites=("b",)),
        item("z", YOUNG, cites=("a",)),
        item("x", OLD, cites=("y",)),
        item("y", OLD, cites=("x",)),
    )
    assert said["a"] == said["b"] == said["c"] == CITED
    assert said["x"] == said["y"] == ("delete", "old", "age")


@pytest.mark.parametrize("held", [{"keep_last": 1}, {}])
def test_what_a_floor_or_veto_holds_spares_too(held: dict[str, Any]) -> None:
    """Whatever keeps an item, it stays, and so does what it names."""
    items = [item("a", OLD), item("z", "2026-01-01", cites=("a",))]
    vetoes = {} if held else {"z": "on hold"}
    assert outcome(Policy(rules=(OLD_NOTES,), **held), *items, vetoes=vetoes)["a"] == CITED


def test_an_item_whose_citations_are_unknown_spares_all() -> None:
    """What may cite anything keeps everything that such a rule would take, and is named."""
    items = [item("a", OLD), item("b", OLD), item("y", YOUNG, cites=None)]
    items += [item("x", YOUNG, cites=None), item("z", YOUNG, cites=("b",))]
    said = decide(Policy(rules=(OLD_NOTES,)), items, NOW)
    assert said[0].evidence == {
        "by": "x",
        "why": "what it cites cannot be told",
        "withheld": "old",
    }
    assert said[1].evidence == {"by": "z", "withheld": "old"}
    assert {one.action for one in said} == {"keep"}
    items[2:4] = [item("x", OLD, cites=None)]
    assert outcome(Policy(rules=(OLD_NOTES,)), *items)["a"] == ("delete", "old", "age")


CITED_SESSIONS = delete(
    "sessions", type="session", max_age=days(365), cascade_derived=True, keep_if_cited=True
)


def test_a_session_that_is_spared_takes_nothing_along() -> None:
    """A cited session stays, and what was made from it is what it would be without a cascade."""
    stale = flag("stale", type="note", max_age=days(90))
    items = [
        session("s"),
        item("n", OLD, derived_from="s"),
        item("m", YOUNG, derived_from="s"),
        item("z", YOUNG, cites=("s",)),
    ]
    for order in (items, items[::-1]):
        said = outcome(Policy(rules=(CITED_SESSIONS, stale)), *order)
        assert said["s"] == ("keep", "sessions", "cited")
        assert said["n"] == ("flag", "stale", "age")
        assert said["m"] == ("keep", None, "none")


def test_what_is_not_taken_along_after_all_spares_in_turn() -> None:
    """A note that stays because its session does is one that stays, whatever it had been before."""
    items = [
        session("s"),
        session("t"),
        item("n", YOUNG, derived_from="s", cites=("t",)),
        item("z", YOUNG, cites=("s",)),
    ]
    said = outcome(Policy(rules=(CITED_SESSIONS,)), *items)
    assert said["t"] == ("keep", "sessions", "cited")
    assert said["n"] == ("keep", None, "none")


def test_a_note_that_is_cited_does_not_go_along() -> None:
    """What a cascade takes goes by the session's rule, and is spared as that rule says."""
    note, citing = item("n", YOUNG, derived_from="s"), item("z", YOUNG, cites=("n",))
    said = outcome(Policy(rules=(CITED_SESSIONS,)), session("s"), note, citing)
    assert said == {
        "s": ("delete", "sessions", "age"),
        "n": ("keep", "sessions", "cited"),
        "z": ("keep", None, "none"),
    }
    said = outcome(Policy(rules=(SESSIONS,)), session("s"), note, citing)
    assert said["n"] == ("delete", "sessions", "cascade:s")


def test_a_note_whose_session_is_spared_later_is_not_called_cited() -> None:
    """Whichever comes to light first, a note is cited only where its session goes."""
    items = [
        session("s"),
        session("t", cites=("s",)),
        item("n", YOUNG, derived_from="s"),
        item("z", YOUNG, cites=("n", "t")),
    ]
    said = outcome(Policy(rules=(CITED_SESSIONS,)), *items)
    assert said["s"] == said["t"] == ("keep", "sessions", "cited")
    assert said["n"] == ("keep", None, "none")


def test_a_note_whose_session_is_spared_first_is_not_called_cited() -> None:
    """What comes back with its session needs no citation, though one comes to light after it."""
    items = [
        session("s"),
        session("t", cites=("n",)),
        item("n", YOUNG, derived_from="s"),
        item("z", YOUNG, cites=("s", "t")),
    ]
    said = outcome(Policy(rules=(CITED_SESSIONS,)), *items)
    assert said["s"] == said["t"] == ("keep", "sessions", "cited")
    assert said["n"] == ("keep", None, "none")


def test_a_ceiling_passes_over_what_is_cited() -> None:
    """What was spared is decided: the ceiling takes the next, even the one that cites."""
    said = outcome(
        Policy(rules=(OLD_NOTES,), max_count=1), item("a", OLD), item("z", YOUNG, cites=("a",))
    )
    assert said == {"a": CITED, "z": ("delete", "max_count", "count")}


# --- 4. ceilings --------------------------------------------------------------------------


def test_the_oldest_go_until_the_count_fits() -> None:
    """Over `max_count` the oldest by instant go, in any order they come, ties by id."""
    said = outcome(
        Policy(max_count=2),
        item("d", "2026-07-04"),
        item("c", "2026-07-01"),
        item("b", "2026-07-01"),
        item("a", "2026-07-03"),
    )
    assert said == {
        "d": ("keep", None, "none"),
        "c": ("delete", "max_count", "count"),
        "b": ("delete", "max_count", "count"),
        "a": ("keep", None, "none"),
    }
    said = outcome(Policy(max_count=3), *(item(name, "2026-07-01") for name in "dbca"))
    assert [name for name, (action, *_) in said.items() if action == "delete"] == ["a"]


def test_the_oldest_go_until_the_bytes_fit() -> None:
    """Over `max_bytes` the oldest go, as few as will do; exactly at the ceiling is no excess."""
    items = [item(name, f"2026-07-0{day}", bytes=100) for day, name in enumerate("abcde", 1)]
    assert {said.action for said in decide(Policy(max_bytes=500), items, NOW)} == {"keep"}
    said = decide(Policy(max_bytes=399), items, NOW)
    assert [one.id for one in said if one.action == "delete"] == ["a", "b"]
    assert said[0] == Decision(
        id="a",
        action="delete",
        rule="max_bytes",
        reason="bytes",
        evidence={"instant": "2026-07-01T00:00:00+00:00", "ceiling": 399, "excess": 101},
        bytes=100,
    )
    assert [one.id for one in decide(Policy(max_bytes=400), items, NOW) if one.rule] == ["a"]


def test_a_ceiling_names_its_numbers() -> None:
    """The evidence holds the ceiling, by how much it was exceeded, and the item's instant."""
    items = [item("a", "2026-07-01"), item("b", "2026-07-02"), item("c", "2026-07-03")]
    assert decide(Policy(max_count=1), items, NOW)[1].evidence == {
        "instant": "2026-07-02T00:00:00+00:00",
        "ceiling": 1,
        "excess": 2,
    }


def test_two_ceilings_share_what_goes() -> None:
    """What went for the count counts for the bytes; the rest of the excess goes for the bytes."""
    items = [item(name, f"2026-07-0{day}", bytes=100) for day, name in enumerate("abcde", 1)]
    said = decide(Policy(max_count=4, max_bytes=250), items, NOW)
    assert [one.reason for one in said] == ["count", "bytes", "bytes", "none", "none"]
    assert [one.evidence.get("excess") for one in said] == [1, 250, 250, None, None]
    said = decide(Policy(max_count=2, max_bytes=450), items, NOW)
    assert [one.reason for one in said] == ["count", "count", "count", "none", "none"]


def test_what_the_rules_delete_is_gone_before_the_ceiling_looks() -> None:
    """A ceiling counts what remains after rules and cascades, and takes no more than that."""
    items = [
        session(),
        item("n", YOUNG, derived_from="s"),
        item("b", "2026-07-01"),
        item("c", "2026-07-02"),
    ]
    said = outcome(Policy(rules=(SESSIONS,), max_count=2), *items)
    assert (said["b"][0], said["c"][0]) == ("keep", "keep")
    said = outcome(Policy(rules=(SESSIONS,), max_count=1), *items)
    assert said["b"] == ("delete", "max_count", "count")
    assert said["c"] == ("keep", None, "none")


def test_a_ceiling_passes_over_what_is_out_of_reach() -> None:
    """Vetoed, spared, pinned and unknown-age items stay, and count; the next oldest go."""
    rules = (
        keep("pin", type="pinned", max_age=days(30)),
        delete("unused", type="spared", max_unused=days(180)),
    )
    said = outcome(
        Policy(rules=rules, max_count=5),
        item("vetoed", OLD),
        item("spared", OLD, type="spared"),
        item("pinned", OLD, type="pinned"),
        item("ageless"),
        item("b", "2026-07-01"),
        item("c", "2026-07-02"),
        vetoes={"vetoed": "on hold"},
    )
    assert said == {
        "vetoed": ("keep", "on hold", "veto"),
        "spared": ("keep", "unused", "spared"),
        "pinned": ("keep", "pin", "age"),
        "ageless": ("keep", None, "none"),
        "b": ("delete", "max_count", "count"),
        "c": ("keep", None, "none"),
    }


def test_a_ceiling_takes_flagged_items() -> None:
    """Delete wins over flag, new or standing; the evidence names the flag it supersedes."""
    rules = (flag("stale", max_age=days(90)),)
    items = [item("a", OLD), item("b", "2025-02-02", flagged_by="stale"), item("c", YOUNG)]
    said = decide(Policy(rules=rules, max_count=1), items, NOW)
    assert [(one.action, one.reason) for one in said] == [
        ("delete", "count"),
        ("delete", "count"),
        ("keep", "none"),
    ]
    assert [one.evidence.get("superseded") for one in said] == ["stale", "stale", None]


def test_a_ceiling_never_cascades() -> None:
    """What a ceiling takes takes nothing along, though its rule would have cascaded."""
    note = item("n", YOUNG, derived_from="s")
    said = outcome(Policy(rules=(SESSIONS,), max_count=1), session(when="2026-07-01"), note)
    assert said == {"s": ("delete", "max_count", "count"), "n": ("keep", None, "none")}
    # Not even where a rule has the ceiling's name.
    named = delete("max_count", type="x", max_age=days(1), cascade_derived=True)
    said = outcome(Policy(rules=(named,), max_count=1), session(when="2026-07-01"), note)
    assert said["n"] == ("keep", None, "none")


def test_a_future_item_goes_last() -> None:
    """An instant that lies ahead is simply young: a ceiling takes everything else first."""
    items = [item("ahead", "2030-01-01"), item("a", "2026-07-01"), item("b", "2026-07-02")]
    said = outcome(Policy(max_count=1), *items)
    assert [name for name, (action, *_) in said.items() if action == "keep"] == ["ahead"]


# --- floors and vetoes --------------------------------------------------------------------


def test_the_floor_is_out_of_reach_of_rules_cascades_and_ceilings() -> None:
    """The newest `keep_last` are neither deleted nor flagged, whatever says so."""
    items = [item(name, f"2025-0{month}-01") for month, name in enumerate("abc", 1)]
    for rule in (delete("r", max_age=days(90)), flag("r", max_age=days(90))):
        said = outcome(Policy(rules=(rule,), keep_last=2), *items)
        assert said["a"] == (rule.action, "r", "age")
        assert said["b"] == said["c"] == ("keep", "keep_last", "floor")
    said = outcome(
        Policy(rules=(SESSIONS,), keep_last=1), session(), item("n", YOUNG, derived_from="s")
    )
    assert said == {"s": ("delete", "sessions", "age"), "n": ("keep", "keep_last", "floor")}
    heavy = [item("a", "2026-01-01", bytes=9), item("b", "2026-01-02", bytes=9)]
    said = outcome(Policy(max_bytes=5, keep_last=1), *heavy)
    assert said == {"a": ("delete", "max_bytes", "bytes"), "b": ("keep", "keep_last", "floor")}


def test_a_floor_says_what_it_withheld() -> None:
    """The evidence of a floor names the rule that it held off, and nothing where none was."""
    rules = (delete("r", max_age=days(90)),)
    items = [item("a", OLD), item("b", YOUNG)]
    said = decide(Policy(rules=rules, keep_last=2), items, NOW)
    assert said[0].evidence == {"keep_last": 2, "withheld": "r"}
    assert said[1].evidence == {"keep_last": 2}


def test_what_a_floor_or_veto_holds_takes_nothing_along() -> None:
    """A session that stays keeps its notes: no cascade starts from what is not deleted."""
    note = item("n", "2024-01-01", derived_from="s")
    rules = (SESSIONS,)
    assert outcome(Policy(rules=rules, keep_last=1), note, session())["n"][0] == "keep"
    said = outcome(Policy(rules=rules), note, session(), vetoes={"s": "held"})
    assert said == {"n": ("keep", None, "none"), "s": ("keep", "held", "veto")}


def test_a_floor_counts_known_ages_only() -> None:
    """An unknown age is neither new nor old: it takes no place on the floor."""
    rules = (delete("r", max_age=days(90)),)
    said = outcome(Policy(rules=rules, keep_last=1), item("x"), item("a", OLD), item("y"))
    assert said["a"] == ("keep", "keep_last", "floor")
    assert said["x"] == said["y"] == ("keep", None, "none")


def test_the_floor_and_the_ceiling_agree_on_ties() -> None:
    """Of items of one instant the floor holds the greatest ids, and the ceiling takes the least."""
    items = [item(name, OLD) for name in "bdac"]
    rules = (delete("r", max_age=days(90)),)
    said = outcome(Policy(rules=rules, keep_last=2), *items)
    assert [name for name, (action, *_) in said.items() if action == "keep"] == ["d", "c"]
    said = outcome(Policy(max_count=2, keep_last=2), *items)
    assert [name for name, (action, *_) in said.items() if action == "keep"] == ["d", "c"]


def test_a_floor_larger_than_the_store_holds_all() -> None:
    """With fewer items than the floor asks for, nothing goes."""
    rules = (delete("r", max_age=days(90)),)
    said = outcome(Policy(rules=rules, keep_last=10), item("a", OLD), item("b", OLD))
    assert said["a"] == said["b"] == ("keep", "keep_last", "floor")


def test_a_floor_of_a_type_holds_the_newest_of_that_type() -> None:
    """Each type counts for itself, and the evidence names number and type."""
    items = [item(f"n{number}", f"2025-01-0{number}") for number in range(1, 4)]
    items += [item(f"s{number}", f"2024-01-0{number}", type="session") for number in range(1, 4)]
    rules = (delete("r", max_age=days(90)),)
    said = decide(Policy(rules=rules, keep_last_of={"session": 2, "clip": 1}), items, NOW)
    assert [one.id for one in said if one.action == "keep"] == ["s2", "s3"]
    assert (said[5].rule, said[5].reason) == ("keep_last", "floor")
    assert said[5].evidence == {"keep_last": 2, "type": "session", "withheld": "r"}
    both = Policy(rules=rules, keep_last=1, keep_last_of={"note": 2})
    said = decide(both, items, NOW)
    assert [one.evidence for one in said if one.action == "keep"] == [
        {"keep_last": 2, "type": "note", "withheld": "r"},
        {"keep_last": 1, "withheld": "r"},
    ]


def test_a_veto_keeps_an_item_as_it_is() -> None:
    """What is vetoed is neither deleted nor flagged, by rule or cascade, and names its veto."""
    vetoes = {"a": "cited by b", "n": "on hold", "elsewhere": "not here"}
    for rule in (delete("r", max_age=days(90)), flag("r", max_age=days(90))):
        said = one((rule,), item(when=OLD, bytes=3, fingerprint="f"), vetoes=vetoes)
        assert said == Decision(
            id="a",
            action="keep",
            rule="cited by b",
            reason="veto",
            evidence={"withheld": "r"},
            fingerprint="f",
            bytes=3,
        )
    note = item("n", YOUNG, derived_from="s")
    said_of = outcome(Policy(rules=(SESSIONS,)), session(), note, vetoes=vetoes)
    assert said_of["n"] == ("keep", "on hold", "veto")
    assert one((), item(when=OLD), vetoes=vetoes).evidence == {}


def test_a_veto_on_the_floor_is_named_as_the_floor() -> None:
    """Floors win over everything, and say so where a veto says the same."""
    policy = Policy(keep_last=1)
    said = outcome(policy, item(when=OLD), vetoes={"a": "on hold"})
    assert said == {"a": ("keep", "keep_last", "floor")}
