"""What all pages share: the configuration as it is now, the clock, the plans that were shown."""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from keepfor import config
from keepfor.config import Config, find
from keepfor.errors import KeepforError, UnknownPlan
from keepfor.items import Report
from keepfor.plan import Plan, spared

#: How many plans, and how many reports, are at hand; somebody may have a few windows open.
_MANY = 16

_Told = TypeVar("_Told")


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that stands on somebody's screen.

    Parameters:
        plan: the plan.
        words: what its store was held to then, in words.
    """

    plan: Plan
    words: str


class Tokens:
    """Says who may apply: each token lets one plan be carried out, and the next is then told.

    Parameters:
        tell: how the person who started the server is told a token.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._lock = Lock()
        self._token = ""
        self.renew()

    def renew(self) -> None:
        """Tell the next token. What was told before lets nothing be done any more."""
        self._token = secrets.token_urlsafe(18)
        self._tell(self._token)

    def take(self, told: str) -> bool:
        """Whether that is the token; from now on it is spent."""
        with self._lock:
            if not self.matches(told):
                return False
            self._token = ""
            return True

    def matches(self, told: str) -> bool:
        """Whether that is the token, which stays good."""
        expected = self._token.encode()
        return bool(expected) and secrets.compare_digest(told.encode("utf-8", "replace"), expected)


class Desk:
    """Where one server keeps what its pages share.

    Parameters:
        named: the configuration file; None for the one that is found.
        environ: the environment, which overrides what the file says.
        clock: tells the present instant.
        tokens: who may apply; None where nobody may.
    """

    def __init__(
        self,
        named: Path | None,
        environ: Mapping[str, str],
        clock: Callable[[], datetime],
        tokens: Tokens | None = None,
    ) -> None:
        self.now = clock
        self.tokens = tokens
        self._named = named
        self._environ = environ
        self._plans: OrderedDict[str, Shown] = OrderedDict()
        self._reports: OrderedDict[str, Report] = OrderedDict()

    def config(self) -> Config:
        """The configuration in force: read anew, for a server outlives many an edit of it.

        Raises:
            BadConfig: with everything that is wrong.
        """
        return config.load(self._named, self._environ)

    def configured(self) -> bool:
        """Whether there is a configuration at all, sound or not."""
        try:
            return os.path.lexists(find(self._named, self._environ, Path.cwd()))
        except (KeepforError, OSError):
            return False

    def show(self, plan: Plan, words: str) -> None:
        """Remember a plan that is shown now, without the items to which nothing happens.

        There may be a hundred thousand of those, and a sweep does not ask for them.

        Parameters:
            plan: the plan.
            words: what its store is held to, in words.
        """
        told = [said for said in plan.decisions if said.action != "keep"]
        slim = msgspec.structs.replace(plan, decisions=tuple(told + spared(plan)))
        _put(self._plans, plan.digest, Shown(plan=slim, words=words))

    def shown(self, name: str, digest: str) -> Shown:
        """The plan of that digest.

        Parameters:
            name: the store's.
            digest: the plan's.

        Raises:
            UnknownPlan: when it was not shown here, or too many were since.
        """
        found = self._plans.get(digest)
        if found is None or found.plan.store != name:
            raise UnknownPlan(digest=digest[:64])
        return found

    def keep(self, report: Report) -> None:
        """Remember what a sweep did."""
        _put(self._reports, report.plan, report)

    def report(self, name: str, digest: str) -> Report:
        """What became of the plan of that digest.

        Raises:
            UnknownPlan: when it was not carried out here.
        """
        found = self._reports.get(digest)
        if found is None or found.store != name:
            raise UnknownPlan(digest=digest[:64])
        return found


def _put(kept: OrderedDict[str, _Told], digest: str, told: _Told) -> None:
    kept[digest] = told
    while len(kept) > _MANY:
        kept.popitem(last=False)
