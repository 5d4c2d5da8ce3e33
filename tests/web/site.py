"""A folder with a store of each kind in it, made of the samples, and a dashboard over it."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from httpx2 import Response
from starlette.testclient import TestClient

from keepfor.web.app import build
from keepfor.web.desk import Desk, Tokens
from tests import caesar, evolve, neo
from tests.evolve import NOW

RECALLS = Path(__file__).parents[1] / "data" / "agentm" / "recall-history.jsonl"

#: What a note may be called: markup, a quote, and a character that turns what follows around.
HOSTILE = "guideline/<img src=x onerror=alert(1)>'\"&\u202efdp"

CONFIG = """\
state_dir: state
stores:
  recall: {kind: ledger, path: recall.jsonl, keep_for: 90d, max_bytes: 1MiB}
  rem: {kind: runs, path: rem-runs, max_count: 200}
  audit: {preset: caesar}
  notes: {preset: evolve-lite}
  none_yet: {kind: ledger, path: later.jsonl, keep_for: 30d}
  broken: {kind: ledger, path: a-folder, keep_for: 90d}
"""


class Site:
    """A folder with a configuration and stores, and the dashboard over it.

    Parameters:
        folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "keepfor.yaml"
        self.recalls = folder / "recall.jsonl"
        self.runs = folder / "rem-runs"
        self.notes = folder / ".evolve"
        self.told: list[str] = []
        self.file.write_text(CONFIG, encoding="utf-8")
        shutil.copyfile(RECALLS, self.recalls)
        neo.rebuild(self.runs)
        caesar.rebuild(folder)
        evolve.rebuild(folder)
        (folder / "a-folder").mkdir()

    @property
    def token(self) -> str:
        """The token that was told last."""
        return self.told[-1]

    def desk(self, *, allowed: bool = True) -> Desk:
        """What the pages share, on the day of the samples."""
        tokens = Tokens(self.told.append) if allowed else None
        return Desk(self.file, {}, lambda: NOW, tokens)

    def client(
        self, *, allowed: bool = True, host: str = "127.0.0.1", token: str | None = None
    ) -> TestClient:
        """A program that asks for pages; what goes wrong in them is answered, and not raised."""
        app = build(self.desk(allowed=allowed), host, token)
        return TestClient(
            app,
            base_url="http://127.0.0.1:8765",
            raise_server_exceptions=False,
            follow_redirects=False,
        )

    def hostile(self) -> None:
        """Add a note with a hostile name, which a rule flags for its age."""
        note = self.notes / "entities" / "guideline"
        name = HOSTILE.partition("/")[2]
        path = note / f"{name}.md"
        path.write_text("---\ntype: guideline\n---\n\nbody\n", encoding="utf-8")
        os.utime(path, (1_700_000_000,) * 2)

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Every file of the stores, with its bytes and its mtime in ns."""
        return {
            str(path.relative_to(self.folder)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in self.folder.rglob("*")
            if path.is_file() and "state" not in path.relative_to(self.folder).parts
        }

    @property
    def trail(self) -> list[dict[str, Any]]:
        """The records of what was done."""
        path = self.folder / "state" / "trail.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def words(answer: Response) -> str:
    """What stands on a page, without its markup, each space once."""
    text = re.sub(r"<(title|style)\b.*?</\1>", " ", answer.text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def digest_in(answer: Response) -> str:
    """The digest of the plan on a page that lets one apply it."""
    found = re.search(r'name="digest" value="([0-9a-f]{64})"', answer.text)
    assert found is not None
    return found[1]


def post(client: TestClient, address: str, form: dict[str, str], **headers: str) -> Response:
    """Send a form as a page of the dashboard would."""
    return client.post(address, data=form, headers={"Origin": "http://127.0.0.1:8765"} | headers)
