"""`keepfor config` shows what is in force, describes it, and begins it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import RECALL, Place


def test_every_setting_is_shown_with_its_source(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person sees what is in force, and whether file, environment or default said so."""
    monkeypatch.setenv("KEEPFOR_STORES__RECALL__KEEP_FOR", "30d")
    ran = place.run("config", "show")
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == [str(place.folder / "keepfor.yaml")]
    assert ["stores.recall.kind", "ledger", "keepfor.yaml:3"] in lines
    assert ["stores.recall.max_bytes", "-", "default"] in lines
    environment = ["environment", "KEEPFOR_STORES__RECALL__KEEP_FOR"]
    assert ["stores.recall.keep_for", "30d", *environment] in lines


def test_a_program_reads_the_settings(place: Place) -> None:
    """The document holds each setting's key, value and source."""
    document = place.run("config", "show", "--json").json
    assert document["verb"] == "config show"
    assert document["path"] == str(place.folder / "keepfor.yaml")
    settings = {row["key"]: (row["value"], row["source"]) for row in document["settings"]}
    assert settings["stores.recall.keep_for"] == ("90d", "keepfor.yaml:5")
    assert settings["stores.recall.max_bytes"] == (None, "default")


def test_the_schema_is_bare_json(place: Place) -> None:
    """An editor gets the JSON Schema itself; a program gets it within a document."""
    schema = json.loads(place.run("config", "schema").out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    document = place.run("config", "schema", "--json").json
    assert (document["verb"], document["schema"]) == ("config schema", schema)


def test_init_writes_a_file_that_works(place: Place) -> None:
    """The first file is a configuration that every other verb takes as it is."""
    (place.folder / "keepfor.yaml").unlink()
    ran = place.run("config", "init")
    assert ran.code == 0
    assert f"Wrote {place.folder / 'keepfor.yaml'}." in ran.out
    assert place.run("plan").code == 0


def test_init_overwrites_nothing(place: Place) -> None:
    """A file that is there stays as it is, and the code is 2."""
    ran = place.run("config", "init")
    assert ran.code == 2
    assert "it is there already" in ran.err
    assert (place.folder / "keepfor.yaml").read_text() == f"{RECALL}state_dir: state\n"


def test_init_writes_where_it_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--config` and KEEPFOR_CONFIG name the file to begin as they name the file to use."""
    named = place.run("config", "init", "--config", "other.yaml", "--json").json
    assert named["path"] == str(place.folder / "other.yaml")
    assert Path(named["path"]).is_file()
    monkeypatch.setenv("KEEPFOR_CONFIG", str(place.folder / "third.yaml"))
    assert place.run("config", "init").code == 0
    assert (place.folder / "third.yaml").is_file()


@pytest.mark.parametrize(
    "words", [["--config", "other.yaml", "plan"], ["plan", "--config", "other.yaml"]]
)
def test_another_file_can_be_named_before_or_after_the_verb(place: Place, words: list[str]) -> None:
    """`--config` is understood on either side of the verb."""
    (place.folder / "other.yaml").write_text(RECALL.replace("recall:", "renamed:"))
    assert place.run(*words, "--json").store["store"] == "renamed"


def test_a_configuration_with_faults_is_refused_by_every_verb(place: Place) -> None:
    """All faults are said, a line each, and the code is 2."""
    place.configure("stores:\n  recall: {kind: ledger, pth: x, keep_for: 0d}\n")
    ran = place.run("plan")
    assert ran.code == 2
    assert "Did you mean path?" in ran.err
    assert "nothing would be kept" in ran.err
    assert ran.err.count("\n") >= 2
    document = place.run("check", "--json").json
    assert document["error"]["type"] == "BadConfig"
    assert document["exit_code"] == document["error"]["exit_code"] == 2
