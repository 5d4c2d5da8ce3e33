"""What replaces a ledger is like it in all but the rows that went: mode, owner, names."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest

from keepfor import Ledger
from keepfor.errors import CannotReplace, StoreError
from keepfor.stores import files, replace
from keepfor.stores.ledger import ledger_at
from tests.stores.build import OLD, append, beside, policy, pruned, row, write
from tests.stores.nobody import NOBODY, as_nobody, common_ground

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger in a folder of its own, of which one row is to go."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "ledger.jsonl"
    write(path, [row(OLD), row()])
    return path


def acl(user: int, group_rights: int) -> bytes:
    """An access list as the kernel has it: for owner, one more user, group, mask and others."""
    nobody = 0xFFFFFFFF
    entries = [
        (0x01, 6, nobody),
        (0x02, 4, user),
        (0x04, group_rights, nobody),
        (0x10, 6, nobody),
        (0x20, 0, nobody),
    ]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o7644])
def test_the_mode_stays(mode: int, path: Path) -> None:
    """The new file may be read and written by whom the old one could be, and by nobody else."""
    path.chmod(mode)
    assert pruned(path).applied == 1
    assert path.stat().st_mode & 0o7777 == mode
    assert path.read_bytes() == row()


def test_nobody_can_read_the_copy_before_its_mode_is_set(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is its owner's alone from its first moment, whatever the umask."""
    seen = []
    copy = replace.copy_attributes

    def look(source: int, target: int, name: str) -> None:
        seen.append(os.fstat(target).st_mode & 0o777)
        copy(source, target, name)

    monkeypatch.setattr(replace, "copy_attributes", look)
    umask = os.umask(0)
    try:
        pruned(path)
    finally:
        os.umask(umask)
    assert seen == [0o600]


@AS_ROOT
def test_owner_and_group_stay(path: Path) -> None:
    """A prune by root leaves the ledger with the user and the group that it belongs to."""
    path.chmod(0o640)
    os.chown(path, 1234, 4321)
    assert pruned(path).applied == 1
    status = path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 4321, 0o640)


def test_extended_attributes_stay(path: Path) -> None:
    """What others noted on the file is noted on the new one; our own note of the old one is not."""
    os.setxattr(path, "user.origin", b"laptop")
    os.setxattr(path, "user.empty", b"")
    os.setxattr(path, files.ATTEMPT, b"1.0 2 1")
    assert pruned(path).applied == 1
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == {
        "user.origin": b"laptop",
        "user.empty": b"",
    }


def test_an_access_list_stays(path: Path) -> None:
    """Whoever was given access by name has it still, and the mode is what the list makes of it."""
    os.setxattr(path, ACCESS, acl(user=1234, group_rights=4))
    mode = path.stat().st_mode
    assert pruned(path).applied == 1
    assert os.getxattr(path, ACCESS) == acl(user=1234, group_rights=4)
    assert path.stat().st_mode == mode


def test_the_folder_s_default_access_list_does_not_leak_in(path: Path) -> None:
    """A file made in this folder lets another user in; the ledger did not, and does not."""
    os.setxattr(path.parent, DEFAULT, acl(user=1234, group_rights=6))
    path.chmod(0o640)
    assert pruned(path).applied == 1
    assert os.listxattr(path) == []
    assert path.stat().st_mode & 0o777 == 0o640


def test_without_extended_attributes_there_are_none_to_lose(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that cannot list attributes is no obstacle."""

    def refuse(_: int) -> list[str]:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "listxattr", refuse)
    assert pruned(path).applied == 1


def test_a_system_that_has_no_such_attributes_is_no_obstacle(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Python knows of none, mode and owner are what there is to keep."""
    monkeypatch.delattr(os, "listxattr")
    path.chmod(0o600)
    assert pruned(path).applied == 1
    assert path.stat().st_mode & 0o777 == 0o600


def refused(path: Path, error: type[StoreError], match: str) -> None:
    """A prune is refused, and nothing is changed or left beside."""
    before, status = path.read_bytes(), path.stat()
    with pytest.raises(error, match=match):
        pruned(path)
    assert path.read_bytes() == before
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (status.st_ino, status.st_mtime_ns)
    assert beside(path) == [path.name]


def test_attributes_that_cannot_be_read_refuse_the_prune(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be looked at could be lost, so nothing is done."""

    def refuse(_: int) -> list[str]:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "listxattr", refuse)
    refused(path, StoreError, "Input/output error")


@pytest.mark.parametrize("there", [False, True])
def test_an_attribute_that_cannot_be_set_refuses_the_prune(
    there: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must be on the new file, whether by us or by the system; else the ledger stays."""
    os.setxattr(path, "user.label", b"secret")

    def refuse(target: int, name: str, value: bytes) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    getxattr = os.getxattr
    if there:
        # As a label that the system gives each file by itself.
        monkeypatch.setattr(os, "getxattr", lambda target, name: b"secret")
    monkeypatch.setattr(os, "setxattr", refuse)
    if there:
        assert pruned(path).applied == 1
    else:
        refused(path, CannotReplace, "user.label .Operation not permitted")
        assert getxattr(path, "user.label") == b"secret"


@AS_ROOT
def test_an_owner_that_cannot_be_kept_refuses_the_prune() -> None:
    """Somebody who may write to a file of another's cannot give him a new one."""
    with common_ground() as folder:
        path = folder / "ledger"
        write(path, [row(OLD), row()])
        path.chmod(0o666)
        as_nobody(lambda: refused(path, CannotReplace, "without changing its owner"))


def test_a_symlink_stays_and_its_target_is_pruned(path: Path, tmp_path: Path) -> None:
    """The ledger may be given by a symlink, which then leads to the new file."""
    link = tmp_path / "link"
    link.symlink_to(path)
    assert pruned(link).applied == 1
    assert link.is_symlink()
    assert link.read_bytes() == path.read_bytes() == row()
    assert beside(path) == [path.name]
    assert ledger_at(link).target == str(path.resolve())


def test_a_dangling_symlink_is_a_ledger_that_is_not_there_yet(tmp_path: Path) -> None:
    """A plan finds nothing, and the first append makes the file that the link leads to."""
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    assert pruned(link).scanned == 0
    assert not target.exists()
    Ledger(link, keep_for="forever").append({"ts": "2026-07-01"})
    assert link.is_symlink()
    assert target.read_bytes() == row("2026-07-01")


def test_a_second_name_still_holds_the_old_rows(path: Path, tmp_path: Path) -> None:
    """A hard link keeps what it had, and the report says so."""
    other = tmp_path / "other"
    os.link(path, other)
    report = pruned(path)
    assert path.read_bytes() == row()
    assert other.read_bytes() == row(OLD) + row()
    assert any("another name" in note for note in report.notes)


def test_the_longest_name_is_no_obstacle(tmp_path: Path) -> None:
    """A ledger with a name of 254 bytes is pruned, and what is left beside it is found."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / ("é" * 127)
    write(path, [row(OLD), row()])
    with path.open("ab"):
        report = pruned(path)
        assert (report.applied, len(report.notes)) == (1, 1)
        assert len(replace.leftovers(str(path))) == 1
    append(path, row(n=1))
    assert pruned(path).applied == 0
    assert beside(path) == [path.name]
    assert path.read_bytes() == row() + row(n=1)


def test_a_name_of_bytes_that_are_no_text_is_no_obstacle(tmp_path: Path) -> None:
    """A name that is not UTF-8 is a name all the same."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    write(path, [row(OLD), row()])
    with path.open("ab"):
        assert pruned(path).applied == 1
    assert pruned(path).applied == 0
    assert beside(path) == [path.name]


def test_a_ledger_may_lie_where_one_works(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path without a folder is a file of the working folder."""
    monkeypatch.chdir(path.parent)
    with path.open("ab"):
        assert pruned(Path("ledger.jsonl")).applied == 1
        assert len(replace.leftovers("ledger.jsonl")) == 1
    assert pruned(Path("ledger.jsonl"), policy()).applied == 0
    assert beside(path) == [path.name]


@pytest.mark.parametrize("name", [".other.keepfor-old.1.0", ".ledger.jsonl.keepfor-old.x.0"])
def test_what_is_called_alike_is_none_of_ours(name: str, path: Path) -> None:
    """Another ledger's leftovers, and names that only look like them, are left alone."""
    (path.parent / name).write_bytes(row(n=1))
    assert pruned(path).applied == 1
    assert path.read_bytes() == row()
    assert beside(path) == sorted([path.name, name])


def test_a_link_in_the_place_of_an_old_file_is_not_followed(path: Path, tmp_path: Path) -> None:
    """Nothing is brought over from a file elsewhere, and nothing there is removed."""
    secret = tmp_path / "secret"
    secret.write_bytes(row(n="secret"))
    planted = path.parent / ".ledger.jsonl.keepfor-old.1.0"
    planted.symlink_to(secret)
    assert pruned(path).applied == 1
    assert path.read_bytes() == row()
    assert secret.exists()
    assert planted.is_symlink()


def test_a_link_in_the_place_of_a_copy_is_not_followed(path: Path, tmp_path: Path) -> None:
    """A copy is never written through a link."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    (path.parent / ".ledger.jsonl.keepfor-new").symlink_to(secret)
    assert pruned(path).applied == 1
    assert secret.read_bytes() == b"secret"
    assert beside(path) == [path.name]


@AS_ROOT
def test_a_prune_by_root_keeps_the_owner_of_a_nobody(path: Path) -> None:
    """The user that owns a ledger can still append to it after root has pruned it."""
    with common_ground() as folder:
        path = folder / "ledger"
        write(path, [row(OLD), row()])
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o600)
        assert pruned(path).applied == 1
        as_nobody(lambda: append(path, row(n=1)))
        assert path.read_bytes() == row() + row(n=1)
