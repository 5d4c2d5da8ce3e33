"""Recall events: one row each time a memory was recalled, with what surfaced and why."""

from __future__ import annotations

from hashlib import sha256

from keepfor.times import parse_now
from keepfor.writers.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from typing import Any

    from keepfor.recalls import Count, Trace


class RecallLedger(Ledger):
    """A ledger of recall events; takes what `Ledger` takes.

    A row stays for as long as its age allows, and for no other reason: also when its note was
    moved, renamed or deleted, because that is when one asks why it surfaced.
    """

    def record(
        self,
        query_text: str,
        hit_slugs: Iterable[str],
        hits: Iterable[Mapping[str, Any]] | None = None,
        now: datetime | str | None = None,
    ) -> None:
        """Append a recall event.

        Parameters:
            query_text: what was asked; only the first 16 hex digits of its SHA-256 are written.
            hit_slugs: the slugs of the notes that surfaced.
            hits: the evidence for each of them (`slug`, `path`, `sim`, `keyword`, `combined`,
                `rank`, `lifecycle_tier`, `decay_score`); None where it was not captured.
            now: when it happened; None for the present.

        Raises:
            OSError, TypeError, ValueError: as `Ledger.append` does.
        """
        moment = self._clock() if now is None else parse_now(now)
        slugs = list(hit_slugs)
        row: dict[str, Any] = {"hit_count": len(slugs), "hit_slugs": slugs}
        if hits is not None:
            row["hits"] = [dict(sorted(hit.items())) for hit in hits]
        row["query_hash"] = sha256(query_text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        time: Any = moment.isoformat()
        for key in reversed(self._time.split(".")):
            time = {key: time}
        self.append(row | time)

    def count(self, since: datetime | str) -> Count:
        """How many recalls there were since an instant, and how often notes surfaced in them."""
        from keepfor import recalls

        return recalls.count(self._store(), parse_now(since))

    def trace(self, slug: str, n: int = 3) -> Trace:
        """The most recent recalls in which a note surfaced, with their evidence.

        Parameters:
            slug: the note's.
            n: how many at the most.

        Returns:
            The matches, the newest first; where there are none, why.
        """
        from keepfor import recalls

        return recalls.trace(self._store(), slug, n, self._clock())
