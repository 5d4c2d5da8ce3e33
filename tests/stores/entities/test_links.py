"""What a note names is found by whatever name, and what leads to nothing cites nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.entities import note, scanned, session

IDS = ("guideline/use-temp", "guideline/sub/deep", "fact/use-temp", "Top Note")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for id_ in IDS:
        note(tmp_path, id_)
    session(tmp_path, "s.json")
    return tmp_path


@pytest.mark.parametrize(
    ("links", "cited"),
    [
        ("links: guideline/use-temp", {"guideline/use-temp"}),
        ("links: guideline/use-temp.md", {"guideline/use-temp"}),
        ("links: .evolve/entities/guideline/use-temp.md", {"guideline/use-temp"}),
        ("links: /elsewhere/entities/guideline/sub/deep.md", {"guideline/sub/deep"}),
        ("links: ./use-temp.md", {"guideline/use-temp"}),
        ("links: ../fact/use-temp.md", {"fact/use-temp"}),
        ("links: sub/deep", {"guideline/sub/deep"}),
        ("links: deep.md", {"guideline/sub/deep"}),
        ("links: use-temp", {"guideline/use-temp"}),
        ('source: "[[Top Note]]"', {"Top Note"}),
        ('source: "[[top note|as said]]"', {"Top Note"}),
        ('source: "see [[deep#part]] and [[Top Note]]"', {"guideline/sub/deep", "Top Note"}),
        ('supersedes: ["[[deep]]", "none", guideline/use-temp]', {*IDS[:2]}),
        ("supersedes: deep\nlinks: [Top Note]", {"guideline/sub/deep", "Top Note"}),
        ("source: trajectories/s.json", {"trajectories/s.json"}),
        ("source: s.json", {"trajectories/s.json"}),
        ("links: nothing-there", set()),
        ("links: ../../../etc/passwd", set()),
        ('links: "[[]]"', set()),
        ("links:", set()),
        ("links: []", set()),
        ("other: deep", set()),
        ("links: {a: b}", None),
        ("links: [[a]]", None),
        ("links: a\nlinks: b", None),
    ],
)
def test_a_link_leads_to_what_it_names(root: Path, links: str, cited: set[str] | None) -> None:
    """Ids, file names, paths and wikilinks are found; a link that nobody can tell is not known."""
    note(root, "guideline/citing", f"---\ntype: guideline\n{links}\n---\n")
    item = scanned(root)["guideline/citing"]
    assert item.held is None
    assert item.cites == (None if cited is None else tuple(sorted(cited)))


def test_a_name_that_several_have_means_all_of_them(root: Path) -> None:
    """What might be cited is spared."""
    note(root, "citing", '---\nlinks: "[[use-temp]]"\n---\n')
    assert scanned(root)["citing"].cites == ("fact/use-temp", "guideline/use-temp")


def test_what_a_note_that_cannot_be_read_names_is_not_known(root: Path) -> None:
    """Nobody can say that it names nothing."""
    note(root, "broken", "---\ntype: a: b\n---\n")
    items = scanned(root)
    assert items["broken"].cites is None
    assert items["Top Note"].cites == ()
