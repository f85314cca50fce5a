"""Programs that carry files over long lines today, as rivals on the bare line: GridFTP over TCP and over UDT, and SRT.

A program's session is made before anything is timed: time runs from the first bytes of the file to the last, as the
receiver's kernel counts them, and one round trip, for the way there and the confirmation.
"""

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mininet_tests.lab.cells import Cell
from mininet_tests.papers.freemon.limits import Way
from mininet_tests.probes.series import begun_s, flow_s
from mininet_tests.probes.sockets import Connections
from mininet_tests.site.gridftp import ANYBODY
from mininet_tests.site.long_line import LineNode, LongLine
from mininet_tests.site.tcp_flows import TcpStream, until
from topology.wire import Layer

PORT = 6001
UP_S = 1.0  # until a server listens
LOOK_S = 0.005
ALL = 0.99  # of the file: what a connection brings between the last look at it and its end is not seen
GIVE_UP_S = 600.0
UDT_BUFFER_BYTES = 128 << 20
UFTP_BUFFER_BYTES, UFTP_BLOCK_BYTES = 100 << 20, 1400  # the most that it takes
SRT_PACKETS = 100_000  # its flow window and buffers: some times what is under way in a round trip
SRT_BUFFER_BYTES = SRT_PACKETS * 1456


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its best known tuning; ``{own}`` (address), ``{file}`` and the like are filled in.

    Attributes:
        server: run by the receiver, and if it is a transfer between two servers by the sender, until it is ended.
        client: run by the sender; it ends by itself.
        between_servers: the client only tells one server to send to the other.
        datagram_bytes: of the file in each of its datagrams; 0 if it sends by TCP.
        tuning: said on the page.
        keeps: it has to write a file somewhere: where it shall be lost, a folder in memory takes it.
    """

    server: tuple[str, ...]
    client: tuple[str, ...]
    between_servers: bool
    datagram_bytes: int
    tuning: str
    keeps: bool = False


_GRIDFTP = f"globus-gridftp-server -p {PORT} -data-interface {{own}} {ANYBODY} -blocksize 1048576"
_UDT = f"-threads 2 -dc-whitelist udt,tcp,gsi -dc-default udt:sndbuf={UDT_BUFFER_BYTES};rcvbuf={UDT_BUFFER_BYTES};"
_COPY = "globus-url-copy -nodcau -fast -bs 1048576 -p {connections}"
_FROM_TO = f"ftp://{{sender}}:{PORT}{{file}} ftp://{{address}}:{PORT}{{target}}"
_SRT = f"transtype=file&fc={SRT_PACKETS}&sndbuf={SRT_BUFFER_BYTES}&rcvbuf={SRT_BUFFER_BYTES}"
PROGRAMS = {
    "gridftp": Program(
        tuple(_GRIDFTP.split()),
        tuple(f"{_COPY} {_FROM_TO}".split()),
        True,
        0,
        "parallel streams in extended block mode, blocks of 1 MiB, buffers tuned by the kernel",
    ),
    "gridftp-udt": Program(
        tuple(f"{_GRIDFTP} {_UDT}".split()),
        tuple(f"{_COPY} {_FROM_TO}".split()),
        True,
        1456,
        "UDT's own rate control, buffers of 128 MiB",
    ),
    "srt": Program(
        ("srt-file-transmit", f"srt://:{PORT}?{_SRT}", "file://{target}"),
        ("srt-file-transmit", "file://{file}", f"srt://{{address}}:{PORT}?{_SRT}"),
        False,
        1456,
        f"file mode, flow window of {SRT_PACKETS:,} packets and buffers to match",
        keeps=True,
    ),
}
NOT_FREEMONS = {  # of other papers' tables
    "uftp": Program(
        ("uftpd", "-d", "-I", "{own}", "-D", "{target_folder}", "-B", str(UFTP_BUFFER_BYTES), "-t"),
        (
            "uftp",
            "-I",
            "{sender}",
            "-M",
            "{address}",
            "-b",
            str(UFTP_BLOCK_BYTES),
            "-B",
            str(UFTP_BUFFER_BYTES),
            "-C",
            "tfmcc:max={kbps}",
            "-r",
            "0.05:0.01:1",
            "{file}",
        ),
        False,
        UFTP_BLOCK_BYTES,
        "unicast, TFMCC (RFC 4654) up to the line's rate, buffers of 100 MiB",
        keeps=True,
    ),
}


class Arriving:
    """Watches, in a thread of its own, what a program brings to a place where others may send, too."""

    def __init__(self, place: LineNode, others: Sequence[TcpStream], datagram_bytes: int) -> None:
        """Start.

        Args:
            place: where it arrives.
            others: connections that are not the program's.
            datagram_bytes: what each datagram carries; 0 if none does.
        """
        self.seen: list[tuple[float, int]] = []  # time, bytes so far
        self._datagram_bytes, self._stop = datagram_bytes, threading.Event()
        self._not_its = {stream.receiver.getsockname()[1] for stream in others}
        self._thread = threading.Thread(target=place.inside, args=(self._run,), daemon=True)
        self._thread.start()

    def _run(self) -> None:
        counts, connections = Path("/proc/thread-self/net/snmp"), Connections()  # a namespace is a thread's own
        brought: dict[tuple[int, int], int] = {}  # also by those that have ended
        while not self._stop.wait(LOOK_S):
            for one in connections.read():
                if one.local_port not in self._not_its and one.received_bytes:  # of one that ends, none is told
                    brought[one.local_port, one.remote_port] = one.received_bytes
            datagrams = _named(counts.read_text())["Udp.InDatagrams"] if self._datagram_bytes else 0
            self.seen.append((time.monotonic(), sum(brought.values()) + datagrams * self._datagram_bytes))

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()


@dataclass(slots=True)
class ServerUse:
    """What a server has used when it has ended: CPU time, of it and of its children."""

    cpu_s: float = 0.0


def carried(
    line: LongLine, cell: Cell, way: Way, folder: Path, others: Sequence[TcpStream], target: Path | None = None
) -> Cell:
    """Return one transfer of a file by a program.

    Args:
        line: what it crosses.
        cell: which program, and how much.
        way: the path.
        folder: an empty one, for the file and logs.
        others: connections that are not the program's.
        target: where the file is written, and kept until it is on the disk; None: nowhere.

    Raises:
        RuntimeError: the program failed, with what it said; or it did not, and not all has arrived.
    """
    program = (PROGRAMS | NOT_FREEMONS)[cell["program"]]
    file = folder / "image"
    with file.open("wb") as made:
        made.truncate(cell["size_bytes"])
    (folder / "arrived").mkdir()  # all hosts have the same files: what arrives must not be written over what is sent
    to = target or (folder / "arrived/image" if program.keeps else Path("/dev/null"))
    words = {"address": line.receiver.address, "sender": line.sender.address, "file": file, "folder": folder}
    words |= {"connections": cell["connections"], "target": to, "target_folder": to.parent}
    words |= {"kbps": way.bps(Layer.FRAME) // 1000}
    client = [word.format(**words) for word in program.client]
    before, uses = _sent(line.sender, others), list[ServerUse]()
    with ExitStack() as servers:
        for place in (line.receiver, line.sender) if program.between_servers else (line.receiver,):
            server = [word.format(**words, own=place.address) for word in program.server]
            uses.append(servers.enter_context(_running(place, server, folder / f"server-{place.name}.log")))
        until(time.monotonic() + UP_S)
        arriving = Arriving(line.receiver, others, program.datagram_bytes)
        try:
            line.sender.run("timeout", f"{GIVE_UP_S:.0f}", *client)
            stored_s = _stored_s(target, cell["size_bytes"]) if target else 0.0
        finally:
            arriving.stop()
    arrived_bytes = arriving.seen[-1][1] - arriving.seen[0][1]
    if arrived_bytes < ALL * cell["size_bytes"]:
        raise RuntimeError(f"{client[0]} says it is done: {arrived_bytes:,} bytes have arrived")
    sent, again, datagrams = (now - then for now, then in zip(_sent(line.sender, others), before, strict=True))
    if program.datagram_bytes:
        sent, again = datagrams, max(0, datagrams - -(-cell["size_bytes"] // program.datagram_bytes))
    seen = {"s": flow_s(arriving.seen) + way.rtt_ms / 1000, "sent_segments": sent, "again_segments": again}
    if target is None:
        return seen
    began_s = begun_s(arriving.seen) - way.rtt_ms / 2000
    return seen | {"began_s": began_s, "stored_s": stored_s - began_s, "cpu_s": uses[0].cpu_s}


def _stored_s(file: Path, size_bytes: int) -> float:
    """Return when a file that a program has written is on the disk (CLOCK_MONOTONIC).

    Raises:
        RuntimeError: it is not as long as it should be.
    """
    with file.open("rb") as kept:
        os.fsync(kept.fileno())
    stored_s = time.monotonic()
    if file.stat().st_size != size_bytes:
        raise RuntimeError(f"{file} has {file.stat().st_size:,} bytes, not {size_bytes:,}")
    return stored_s


@contextmanager
def _running(place: LineNode, command: list[str], log: Path) -> Iterator[ServerUse]:
    """Run a program that ends only when it is told to; what it has used is known then.

    Raises:
        RuntimeError: it has ended by itself with an error; with what it said.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(["ip", "netns", "exec", place.name, *command], stdout=output, stderr=output)
    use = ServerUse()
    try:
        yield use
    finally:
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
        early = os.waitstatus_to_exitcode(status) if ended else None
        if not ended:
            process.terminate()
            _, _, used = os.wait4(process.pid, 0)
        use.cpu_s = used.ru_utime + used.ru_stime
    if early:
        raise RuntimeError(f"{command[0]}: exit code {early}: {log.read_text(errors='replace').strip()}")


def _sent(place: LineNode, others: Sequence[TcpStream]) -> tuple[int, int, int]:
    """Return the segments that programs have sent from a place, those of them sent again, and their datagrams."""
    counted, told = _named(place.run("cat", "/proc/net/snmp")), [stream.told for stream in others]
    return (
        counted["Tcp.OutSegs"] - sum(one.sent_segments for one in told),
        counted["Tcp.RetransSegs"] - sum(one.retransmitted_segments for one in told),
        counted["Udp.OutDatagrams"],
    )


def _named(snmp: str) -> dict[str, int]:
    r"""Return what the kernel has counted for a namespace's TCP and UDP, by RFC 1213's names.

    >>> _named("Tcp: InSegs OutSegs\nTcp: 3 4\nUdp: InDatagrams\nUdp: 5")
    {'Tcp.InSegs': 3, 'Tcp.OutSegs': 4, 'Udp.InDatagrams': 5}
    """
    rows = [row.split() for row in snmp.splitlines()]
    return {
        f"{names[0].removesuffix(':')}.{name}": int(value)
        for names, values in zip(rows[::2], rows[1::2], strict=True)
        for name, value in zip(names[1:], values[1:], strict=True)
        if names[0] in {"Tcp:", "Udp:"}
    }
