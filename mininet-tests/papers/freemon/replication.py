"""A real MariaDB primary and its replica on two hosts of the emulation; rows are timed until the replica has them."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mininet_tests.site.emulation import Emulation, now_us
from mininet_tests.testing.eventually import eventually

PORT = 3306
UP_WITHIN_S = 120.0
ROW_BYTES = 50_000
LOOK_S = 0.005
COMMON = (
    "--no-defaults",
    "--user=root",
    "--skip-name-resolve",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=256M",
)
MADE = (
    "CREATE DATABASE survey",
    "CREATE TABLE survey.visits (id BIGINT AUTO_INCREMENT PRIMARY KEY, at_us BIGINT, body MEDIUMTEXT)",
    "CREATE USER replica IDENTIFIED BY 'replica'",
    "GRANT REPLICATION SLAVE ON *.* TO replica",
    "INSERT INTO survey.visits (at_us, body) VALUES (0, '')",
)
WRITTEN = "INSERT INTO survey.visits (at_us, body) VALUES ({at_us}, REPEAT('x', {size_bytes}))"
NEWEST = "SELECT at_us FROM survey.visits ORDER BY id DESC LIMIT 1"


class ReplicationClient:
    """The server's own client on this machine, past the emulated network."""

    def __init__(self, socket_file: Path) -> None:
        """Connect."""
        command = ["mariadb", "--no-defaults", f"--socket={socket_file}", "--user=root", "--batch"]
        options = ["--skip-column-names", "--unbuffered"]
        self._process = subprocess.Popen(
            [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def said(self, statement: str) -> str:
        """Return the one line that a statement is answered by.

        Raises:
            RuntimeError: the server refused, or is gone.
        """
        assert self._process.stdin is not None  # noqa: S101 (they are pipes)
        assert self._process.stdout is not None  # noqa: S101
        try:
            self._process.stdin.write(f"{statement};\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError("MariaDB is gone") from None
        line = self._process.stdout.readline()
        if not line or line.startswith("ERROR"):
            raise RuntimeError(f"MariaDB: {line.strip() or 'gone'}: {statement}")
        return line.strip()

    def do(self, statement: str) -> None:
        """Carry out a statement that is not answered."""
        self.said(f"{statement}; SELECT 'done'")

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None  # noqa: S101
        self._process.stdin.close()
        self._process.wait()


def started(site: Emulation, host: str, number: int, folder: Path) -> Path:
    """Start a MariaDB with a database of its own on a host; return, when it answers, its socket."""
    data, socket_file = folder / host, folder / f"{host}.sock"
    options = (*COMMON, f"--datadir={data}")
    subprocess.run(["mariadb-install-db", *options, "--skip-test-db"], check=True, capture_output=True)
    address = str(site.realised.network.host(host).ip)
    own = (f"--server-id={number}", f"--bind-address={address}", f"--port={PORT}", f"--socket={socket_file}")
    site.spawn(f"mariadb-{host}", ["mariadbd", *options, *own, "--log-bin", "--binlog-format=ROW"], host=host)
    eventually(lambda: _answers(socket_file), within_s=UP_WITHIN_S, what=f"MariaDB of {host} answers")
    return socket_file


def _answers(socket_file: Path) -> bool:
    client = ReplicationClient(socket_file)
    try:
        return client.said("SELECT 1") == "1"
    except RuntimeError:
        return False
    finally:
        client.close()


class Replication:
    """Rows that are written at a rate, and how old the newest of them is at the replica."""

    def __init__(self, writer: ReplicationClient, reader: ReplicationClient, rate_bps: int) -> None:
        """Begin to write and to watch, each in a thread of its own."""
        self.lags: list[tuple[int, float]] = []  # Unix time (microseconds), age of the newest row (seconds)
        self._writer, self._reader, self._every_s = writer, reader, ROW_BYTES * 8 / rate_bps
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._write, self._watch)]
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        next_s = time.monotonic()
        while not self._stop.wait(max(0.0, next_s - time.monotonic())):
            self._writer.do(WRITTEN.format(at_us=now_us(), size_bytes=ROW_BYTES))
            next_s += self._every_s

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_S):
            at_us = int(self._reader.said(NEWEST))
            if at_us:
                self.lags.append((now_us(), (now_us() - at_us) / 1e6))

    def worst_s(self, from_us: int, to_us: int) -> float:
        """Return the largest lag between two times, seconds."""
        return max(lag_s for at_us, lag_s in self.lags if from_us <= at_us <= to_us)

    def stop(self) -> None:
        """End both threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


@contextmanager
def replication(site: Emulation, primary: str, replica: str, rate_bps: int, folder: Path) -> Iterator[Replication]:
    """Give a primary whose rows go to a replica; they are written at a rate, bit/s."""
    with ExitStack() as parts:
        clients = []
        for number, host in enumerate((primary, replica), 1):
            client = ReplicationClient(started(site, host, number, folder))
            parts.callback(client.close)
            clients.append(client)
        writer, reader = clients
        for statement in MADE:
            writer.do(statement)
        source = f"MASTER_HOST='{site.realised.network.host(primary).ip}', MASTER_PORT={PORT}"
        reader.do(f"CHANGE MASTER TO {source}, MASTER_USER='replica', MASTER_PASSWORD='replica'")
        reader.do("START SLAVE")
        eventually(lambda: _replicates(reader), within_s=UP_WITHIN_S, what="the replica has the primary's table")
        running = Replication(writer, reader, rate_bps)
        parts.callback(running.stop)
        yield running


def _replicates(reader: ReplicationClient) -> bool:
    count = reader.said("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'survey'")
    return count == "1" and reader.said("SELECT COUNT(*) FROM survey.visits") == "1"
