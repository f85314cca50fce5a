"""Programs that use several connections, as they are: what they are given, and their commands."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mininet_tests.site.gridftp import ANYBODY
from topology.network import Network
from topology.wire import Layer, converted_bps

PORT = 6001
CONNECTIONS = 12  # of which lanes of 2 to 1 carry eight and four
SIZE_BYTES = 2_688_000_000  # at 1 Gbit/s, of which the formula makes 15.41 s
BLOCK_BYTES, LEAST_BLOCK_BYTES = 1 << 20, 1 << 16
RESERVED_SHARE = 0.3  # of each circuit, for what is not announced: either has room for both lanes
WINDOW_SHARE = 0.95  # of what the slowest lane carries in its round trip: no meter has to drop anything
UNDISTURBED = "undisturbed"
NORTH_DIES, SOUTH_DIES = "north dies", "south dies"
INTERFACE_DIES = "interface dies"  # the sender's first: no switch can lead its packets another way
CASES = (UNDISTURBED, NORTH_DIES, SOUTH_DIES, INTERFACE_DIES)


@dataclass(frozen=True, slots=True)
class StripedProgram:
    """A program; what its commands leave open is filled in.

    That is ``{address}`` or ``{name}`` of who serves, or all ``{addresses}`` of the receiver, ``{own_addresses}`` of
    the sender, ``{port}``, ``{size}`` in bytes, ``{block}`` likewise, ``{window}`` in bytes, ``{folder}``, ``{store}``
    (its own), and ``{ipv6}``, which tells GridFTP of what family they are.

    Attributes:
        server: run by the receiver, until it is ended.
        client: run by the sender; it ends by itself.
        parts: of the file, each a file of its own.
        before: what the sender is told first, once for each of its interfaces: ``{device}`` and ``{own}``, its address;
            ``{far}`` and ``{far_mac}``, the address of the receiver that has the same number.
        cases: those that it is run in.
        is_reserved: whether it is held by meter and queue alone: its lanes are reserved, since an announcement sees TCP
            alone.
        is_even: whether it uses all its paths at once, each with the same window.
        own_paths: whether it adds a path itself, some time after the first: each is held, and not all of it on both.
        session_s: what its session takes before the first byte, which its announcement says.
        is_called: whether the receiver connects for what it is sent: the server is the sender's then.
    """

    server: str
    client: str
    parts: int
    before: tuple[str, ...] = ()
    cases: tuple[str, ...] = (UNDISTURBED, NORTH_DIES, SOUTH_DIES)
    is_reserved: bool = False
    is_even: bool = False
    own_paths: bool = False
    session_s: float = 0
    is_called: bool = False

    @property
    def commands(self) -> set[str]:
        """What it starts, by name or path.

        >>> sorted(PROGRAMS["mptcp"].commands - {sys.executable}), sorted(PROGRAMS["aria2"].commands)
        (['curl', 'mptcpize'], ['aria2c', 'rclone'])
        """
        lines = self.server, self.client
        wrapped = (line.removeprefix(_AS_MPTCP) for line in lines)
        return {line.split(maxsplit=1)[0] for line in (*lines, *wrapped)}


_AS_MPTCP = "mptcpize run "
_SINK = f"{sys.executable} -m mininet_tests.scenarios.lanes.http_sink {{address}} {{port}}"
_PUT = "curl --silent --show-error --fail --header Expect: --parallel --parallel-immediate"
_SOURCE = "rclone serve http --addr :{port} {folder}"  # by all addresses: a connection comes to any lane's
_ARIA2 = "aria2c --quiet --async-dns=false"  # its own resolver waits for a name server, of which there is none
_SCTP = f"{sys.executable} -m mininet_tests.scenarios.lanes.sctp_mover"
_CMT = f"{sys.executable} -m mininet_tests.scenarios.lanes.cmt_mover"
_A_PATH_A_LANE = (  # by the receiver's address
    "ip route replace {far} dev {device} src {own}",
    "ip neigh replace {far} lladdr {far_mac} dev {device}",
)


def _sctp(pf_enable: str, cases: tuple[str, ...]) -> StripedProgram:
    """Return a mover by one SCTP association with an address at each end for each lane.

    Its packets go one by one, as by a line: a meter in software counts the headers of a super-packet once.

    Args:
        pf_enable: 1, Linux's default: a path that times out once is not used while another is (RFC 7829); 0: it is used
            until it has timed out six times (RFC 4960).
        cases: those that it is run in.
    """
    return StripedProgram(
        f"{_SCTP} serve {{addresses}} {{port}} {{size}}",
        f"{_SCTP} send {{own_addresses}} {{port}} {{size}} --to {{address}}",
        1,
        (
            "modprobe sctp",
            "ethtool -K {device} tx-sctp-segmentation off",
            f"sysctl -qw net.sctp.pf_enable={pf_enable}",
            *_A_PATH_A_LANE,
        ),
        cases,
        is_reserved=True,
    )


def _mptcp(stale_loss_cnt: int, cases: tuple[str, ...]) -> StripedProgram:
    """Return curl with one connection of Multipath TCP: subflows instead of lanes' connections.

    Args:
        stale_loss_cnt: so many times nothing is confirmed by a subflow before no more is sent by it; Linux's default
            is 4.
        cases: those that it is run in.
    """
    return StripedProgram(
        f"{_AS_MPTCP}{_SINK}",
        f"{_AS_MPTCP}curl --silent --show-error --fail --header Expect: --upload-file {{folder}}/0"
        " http://{name}:{port}/",
        1,
        (f"sysctl -qw net.mptcp.stale_loss_cnt={stale_loss_cnt}", "ip mptcp endpoint add {own} subflow"),
        cases,
        own_paths=True,
        session_s=0.6,
    )


PROGRAMS = {
    "curl": StripedProgram(
        _SINK,
        f"{_PUT} --parallel-max {CONNECTIONS} --upload-file {{folder}}/[0-{CONNECTIONS - 1}] http://{{name}}:{{port}}/",
        CONNECTIONS,
    ),
    "gridftp": StripedProgram(
        f"globus-gridftp-server -p {{port}} -data-interface {{address}} {ANYBODY} -blocksize {{block}}",
        f"globus-url-copy {{ipv6}} -nodcau -fast -bs {{block}} -p {CONNECTIONS} file://{{folder}}/0"
        " ftp://{name}:{port}/dev/null",
        1,
        session_s=2.5,
    ),
    "rclone": StripedProgram(
        "rclone serve webdav --addr {name}:{port} {store}",
        f"rclone copy --transfers {CONNECTIONS} --no-traverse --no-check-dest --ignore-checksum --retries 1"
        " --webdav-url http://{name}:{port} {folder} :webdav:",
        CONNECTIONS,
        session_s=0.8,
    ),
    "mptcp": _mptcp(4, CASES),
    "mptcp-stale1": _mptcp(1, (INTERFACE_DIES,)),
    "curl-get": StripedProgram(
        _SOURCE,
        f"curl --silent --show-error --fail --parallel --parallel-immediate --parallel-max {CONNECTIONS}"
        f" --output /dev/null http://{{name}}:{{port}}/[0-{CONNECTIONS - 1}]",
        CONNECTIONS,
        is_called=True,
    ),
    "aria2": StripedProgram(
        _SOURCE,
        f"{_ARIA2} --max-connection-per-server={CONNECTIONS} --split={CONNECTIONS} --min-split-size=1M"
        " --file-allocation=none --allow-overwrite=true --dir={store} http://{name}:{port}/0",
        1,
        is_called=True,
    ),
    "aria2-parts": StripedProgram(  # twelve files at once, each by one connection
        _SOURCE,
        f"{_ARIA2} --max-concurrent-downloads={CONNECTIONS} --force-sequential --parameterized-uri"
        " --file-allocation=none --allow-overwrite=true --dir={store}"
        f" http://{{name}}:{{port}}/[0-{CONNECTIONS - 1}]",
        CONNECTIONS,
        cases=(UNDISTURBED,),
        is_called=True,
    ),
    "sctp": _sctp("1", (UNDISTURBED, NORTH_DIES, INTERFACE_DIES)),
    "sctp-rfc4960": _sctp("0", (INTERFACE_DIES,)),
    "sctp-cmt": StripedProgram(  # one association, over all its paths at once
        f"{_CMT} serve {{addresses}} {{port}} {{size}}",
        f"{_CMT} send {{own_addresses}} {{port}} {{size}} --to {{address}} --window {{window}}",
        1,
        _A_PATH_A_LANE,
        (UNDISTURBED,),
        is_reserved=True,
        is_even=True,
    ),
}


def absent(names: Iterable[str]) -> list[str]:
    """Return what some of them start that this machine does not have."""
    started = set[str]().union(*(PROGRAMS[name].commands for name in names))
    return sorted(command for command in started if shutil.which(command) is None)


def block_bytes(size_bytes: int) -> int:
    """Return the size of a block of a file, in proportion: what a connection takes for one is the same at each rate.

    >>> block_bytes(2_688_000_000), block_bytes(268_800_000)
    (1048576, 104857)
    """
    return max(LEAST_BLOCK_BYTES, BLOCK_BYTES * size_bytes // SIZE_BYTES)


def window_bytes(network: Network) -> int:
    """Return what one path of several has on its way at most, so that none needs more than its lane has reserved.

    That is ``WINDOW_SHARE`` of the least ``rate x round trip`` of all circuits, payload. The library has one bound for
    all paths of an association.
    """
    lanes = [(round(link.rate_bps * RESERVED_SHARE), 2 * link.delay_us) for _, _, link in network.circuit_links]
    payload = [converted_bps(bps, Layer.WIRE, Layer.PAYLOAD, network.framing) * rtt_us for bps, rtt_us in lanes]
    return round(WINDOW_SHARE * min(payload) / 8_000_000)


def sizes_bytes(size_bytes: int, parts: int) -> list[int]:
    """Return the sizes of a file's parts, as ``split -n`` makes them.

    >>> sizes_bytes(1000, 3)
    [333, 333, 334]
    """
    return [size_bytes * (number + 1) // parts - size_bytes * number // parts for number in range(parts)]


def write_parts(folder: Path, sizes: Sequence[int]) -> None:
    """Make the files that a program sends, named by their number; of holes, which take no memory."""
    folder.mkdir()
    for number, size in enumerate(sizes):
        with (folder / str(number)).open("wb") as made:
            made.truncate(size)
