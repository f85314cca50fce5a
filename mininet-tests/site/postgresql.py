"""A PostgreSQL of our own: its server, data and socket, beside whatever the machine runs."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import psycopg

from mininet_tests.site.command import run
from mininet_tests.site.machines import CabledMachine
from mininet_tests.testing.eventually import eventually

_DEBIAN = Path("/usr/lib/postgresql")  # a directory for each major version; its bin/ is not on PATH
_ACCOUNT = "postgres"  # made by Debian's package; the server refuses to run as root
_USER = "headway"
_TESTS = "198.18.0.0/15"  # RFC 2544 section C.2.2
_START_S = 60.0  # after a crash it brings each of its files to the disk, which others may use as well


def binaries() -> Path | None:
    """Return the directory with the newest PostgreSQL's programs; None if there is none."""
    found = (path.parent for path in _DEBIAN.glob("*/bin/postgres") if path.parent.parent.name.isdecimal())
    return max(found, key=lambda path: int(path.parent.name), default=None)


class PrivatePostgres:
    """postgres, started and stopped by us, by process id; reached through a Unix socket, by root and itself.

    Args:
        machine: if given, it runs there, and is reached over TCP; its clients are trusted.
        disk_bytes: if given, all that it may write, on a disk of its own in memory.

    As in ``with PrivatePostgres() as postgres: Database(postgres.url).open()``.
    """

    def __init__(self, machine: CabledMachine | None = None, disk_bytes: int = 0) -> None:
        self.url = ""
        self._machine = machine
        self._disk_bytes = disk_bytes
        self._directory = Path()
        self._server: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        """Make a cluster and start it; ``url`` names a database of it."""
        self._directory = Path(tempfile.mkdtemp(prefix="headway-postgres-"))  # short, for it is part of a socket's name
        try:
            if self._disk_bytes:
                run("mount", "-t", "tmpfs", "-o", f"size={self._disk_bytes}", "headway", str(self._directory))
            if os.geteuid() == 0:
                shutil.chown(self._directory, _ACCOUNT, _ACCOUNT)
            initdb = [self._program("initdb"), "--auth=trust", f"--username={_USER}", "--encoding=UTF8", "--locale=C"]
            initdb += ["--wal-segsize=1"] if self._disk_bytes else []
            command = [*self._unprivileged(), *initdb, "--no-sync", f"--pgdata={self._data}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._directory)
            if self._machine is not None:
                with (self._data / "pg_hba.conf").open("a") as trusted:
                    trusted.write(f"host all all {_TESTS} trust\n")
            self.start()
            self.url = self.new_database()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        """Stop it and remove all it has written."""
        self._remove()

    def start(self) -> None:
        """Start the server; return once it answers.

        Raises:
            AssertionError: it did not come up in time.
        """
        try:
            eventually(self._started, within_s=_START_S, what="PostgreSQL runs")
        except AssertionError as error:
            error.add_note((self._directory / "server.log").read_text(errors="replace")[-2000:])
            raise

    def stop(self) -> None:
        """Stop the server, which cuts its clients off; safe to call twice."""
        server, self._server = self._server, None
        if server is None:
            return
        server.send_signal(signal.SIGINT)  # a "fast" shutdown
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    def kill(self) -> None:
        """Kill the server at once, as a crash would; return once its processes for clients have noticed, and ended."""
        server, self._server = self._server, None
        if server is None:
            return
        children = _children(server.pid)
        server.kill()
        server.wait()
        eventually(
            lambda: not any(_runs(pid) for pid in children), within_s=_START_S, what="PostgreSQL's processes end"
        )

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop all its processes for a time: whoever asks waits, and the kernel answers for them that all is well."""
        if self._server is None:
            raise RuntimeError("it does not run")
        pids = [self._server.pid, *_children(self._server.pid)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Fill its disk for a time."""
        rubbish = self._directory / "rubbish"
        try:
            with contextlib.suppress(OSError), rubbish.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 12))
            yield
        finally:
            rubbish.unlink()
            self.start()  # a server that could not write its log has ended

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        """Refuse every change for a time, to those who are connected as well."""
        try:
            self._set("SET default_transaction_read_only = on")
            yield
        finally:
            self._set("RESET default_transaction_read_only")

    def _set(self, what: str) -> None:
        self.execute(f"ALTER SYSTEM {what}")
        self.execute("SELECT pg_reload_conf()")

    def new_database(self) -> str:
        """Return the URL of an empty database."""
        name = f"headway{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        if self._machine is not None:
            return f"postgresql://{_USER}@{self._machine.address}/{name}"
        return f"postgresql://{_USER}@/{name}?host={quote(str(self._directory), safe='')}"

    def execute(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """Return the rows that a statement yields with values for its ``%s``, asked as the superuser."""
        with psycopg.connect(host=str(self._directory), user=_USER, dbname="postgres", autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _started(self) -> bool:
        """Start the server if it does not run, for it refuses while children of a killed one live; then ask it."""
        if self._server is None or self._server.poll() is not None:
            with (self._directory / "server.log").open("ab") as log:
                command = [*self._unprivileged(), self._program("postgres"), "-D", str(self._data)]
                if self._machine is not None:
                    command = [*self._machine.inside, *command]
                command += ["-c", "autovacuum=off"] if self._disk_bytes else []  # nothing is free but the disk
                listens = "" if self._machine is None else self._machine.address
                command += ["-c", f"listen_addresses={listens}", "-c", f"unix_socket_directories={self._directory}"]
                self._server = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._directory)
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _program(self, name: str) -> str:
        directory = binaries()
        if directory is None:
            raise FileNotFoundError(f"no PostgreSQL in {_DEBIAN}")
        return str(directory / name)

    @staticmethod
    def _unprivileged() -> list[str]:
        """Return what to write before a command so that it does not run as root, in the same process."""
        if os.geteuid() != 0:
            return []
        return ["setpriv", f"--reuid={_ACCOUNT}", f"--regid={_ACCOUNT}", "--clear-groups", "--pdeathsig=INT", "--"]

    def _remove(self) -> None:
        try:
            self.stop()
        finally:
            if self._disk_bytes and os.path.ismount(self._directory):
                run("umount", str(self._directory))
            shutil.rmtree(self._directory)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
