"""Programs as people have them, over a whole site: an image by each of them, while a database replicates.

None is patched, none knows of Headway, and background and database are never restarted.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mininet_tests.lab.cells import Cell
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.papers.freemon.programs import UP_S
from mininet_tests.papers.freemon.replication import Replication, replication
from mininet_tests.probes.arrivals import Arrivals
from mininet_tests.site.emulation import Emulation, emulation, now_us
from mininet_tests.site.gridftp import ANYBODY
from mininet_tests.site.lsst import BACKGROUND, DATABASE, FLOWS, IMAGE_HOSTS, RECEIVER, SENDERS
from mininet_tests.site.tcp_flows import until
from mininet_tests.site.topos import PacketModel, seed_lines
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from topology.wire import Layer, converted_bps

FIRST_PORT, BACKGROUND_PORT = 6101, 6001
GIVE_UP_S = 300
DATABASE_PPM = 40_000  # of the circuit: four fifths of what the policy keeps for it
QUIET_S = 3.0
BULK = (0.1, 0.9)  # the part of an image over which its rate is taken: programs begin and end in their own ways


@dataclass(frozen=True, slots=True)
class Tool:
    """A program; ``{port}``, ``{data}`` (another port), ``{bytes}``, ``{kib}`` and the like are filled in.

    Attributes:
        server: where it waits, and its command.
        client: where it is started, and its command; it ends by itself.
    """

    server: tuple[str, str]
    client: tuple[str, str]


SENDER = "sender"
_CURL = "curl --silent --show-error --fail --cacert {certificate} --output /dev/null"
TOOLS = {
    "iperf3": Tool(
        (RECEIVER, "iperf3 --server --port {port}"),
        (SENDER, "iperf3 --client {receiver} --port {port} --bytes {bytes}"),
    ),
    "nuttcp": Tool(
        (RECEIVER, "nuttcp -1 -P {port}"),
        (SENDER, "nuttcp -t -P {port} -p {data} -n {kib}k {receiver}"),
    ),
    "gridftp": Tool(
        (
            RECEIVER,
            f"globus-gridftp-server -p {{port}} -data-interface {{receiver}} {ANYBODY}",
        ),
        (SENDER, "globus-url-copy -nodcau -p 4 file://{file} ftp://{receiver}:{port}/dev/null"),
    ),
    "curl": Tool(
        (SENDER, "rclone serve http {folder} --addr {address}:{port} --cert {certificate} --key {key}"),
        (RECEIVER, f"{_CURL} --resolve {{sender}}:{{port}}:{{address}} https://{{sender}}:{{port}}/image"),
    ),
}


def tools(cell: Cell, folder: Path) -> Cell:
    """Return for each tool how long its image took and at which rate it went, and the replica's lag meanwhile."""
    network = chile_illinois(rate_bps=cell["rate_bps"])
    payload_bps = converted_bps(cell["rate_bps"], Layer.WIRE, Layer.PAYLOAD, network.framing)
    with ExitStack() as parts:
        packets = PacketModel(single=False, loss_ppm=round(cell["loss_percent"] * 10_000))
        site = parts.enter_context(emulation(network, FLOWS, folder, packets=packets))
        seed_lines(site.realised, cell["seed"])
        database_bps = cell["rate_bps"] * DATABASE_PPM // 1_000_000
        rows = parts.enter_context(replication(site, DATABASE, RECEIVER, database_bps, folder))
        arrivals = parts.enter_context(Arrivals(site, RECEIVER, SENDERS))
        _background(site)
        eventually(lambda: arrivals.bps(1_000_000) > 0.97 * payload_bps, within_s=60, what="background fills the rest")
        with IdleMeter() as meter:
            seen = []
            for name in cell["tools"]:
                before = site.fallbacks
                one = _image(site, name, cell["size_bytes"], arrivals, rows, folder)
                seen.append(one | {"fallback": site.fallbacks.in_a_run_since(before)})
    return {"runs_seen": seen, "idle_share": min(meter.shares)}


def _background(site: Emulation) -> None:
    """Start an iperf3 that runs to the end."""
    site.spawn("background-server", ["iperf3", "--server", "--port", str(BACKGROUND_PORT)], host=RECEIVER)
    until(time.monotonic() + UP_S)
    to = ["--client", str(site.realised.network.host(RECEIVER).ip), "--port", str(BACKGROUND_PORT)]
    site.spawn("background", ["iperf3", *to, "--time", "86400"], host=BACKGROUND)


def _image(site: Emulation, name: str, size_bytes: int, arrivals: Arrivals, rows: Replication, folder: Path) -> Cell:
    """Announce an image, have each sender's part of it carried by a tool, and release it.

    Raises:
        RuntimeError: the tool has failed; with what it said.
    """
    quiet_us = now_us()
    until(time.monotonic() + QUIET_S)
    words = [_words(site, sender, number, size_bytes // len(IMAGE_HOSTS), folder)
             for number, sender in enumerate(IMAGE_HOSTS)]  # fmt: skip
    with _serving(site, name, words):
        announced_us = now_us()
        site.announce(name, size_bytes, IMAGE_HOSTS, RECEIVER)
        clients = [_started(site, name, "client", TOOLS[name].client, one) for one in words]
        codes = [site.processes[client].wait(GIVE_UP_S) for client in clients]
        ended_us = now_us()
        site.release(name)
    print(f"paper: an image by {name}", flush=True)
    if any(codes):
        raise RuntimeError(f"{name}: exit codes {codes}: {[site.tail(client) for client in clients]}")
    return {
        "tool": name,
        "s": (ended_us - announced_us) / 1e6,
        "lag_before_s": rows.worst_s(quiet_us, announced_us),
        "lag_s": rows.worst_s(announced_us, ended_us),
    } | bulk(arrivals.seen, announced_us, ended_us)


def bulk(seen: list[tuple[int, dict[str, int]]], from_us: int, to_us: int) -> Cell:
    """Return the rates of the image and of all flows together while the bulk of the image arrived, bit/s of payload.

    >>> bulk([(t * 1000, {"base20": t * 5, "base21": t * 5, "base23": t}) for t in range(101)], 0, 100_000)
    {'bps': 80000, 'all_bps': 88000}
    """
    within = [(t, counts) for t, counts in seen if from_us <= t <= to_us]
    points = [(t, sum(counts[host] for host in IMAGE_HOSTS), sum(counts.values())) for t, counts in within]
    first, last = points[0][1], points[-1][1]
    begin, end = (next(p for p in points if p[1] >= first + (last - first) * part) for part in BULK)
    image, total = ((end[n] - begin[n]) * 8_000_000 // (end[0] - begin[0]) for n in (1, 2))
    return {"bps": image, "all_bps": total}


def _words(site: Emulation, sender: str, number: int, part_bytes: int, folder: Path) -> dict[str, object]:
    """Return what a tool's commands are filled in with, for one sender, whose files are there then."""
    own = folder / f"image-{sender}"
    own.mkdir(exist_ok=True)
    with (own / "image").open("wb") as made:
        made.truncate(part_bytes)
    network, certificate, key = site.realised.network, own / "certificate.pem", own / "key.pem"
    subject = ["-subj", f"/CN={sender}", "-addext", f"subjectAltName=DNS:{sender}"]
    made_by = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*made_by, *subject, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return {
        "sender": sender, "address": network.host(sender).ip, "receiver": network.host(RECEIVER).ip,
        "port": FIRST_PORT + 2 * number, "data": FIRST_PORT + 2 * number + 1, "bytes": part_bytes,
        "kib": part_bytes // 1024, "folder": own, "file": own / "image", "certificate": certificate, "key": key,
    }  # fmt: skip


@contextmanager
def _serving(site: Emulation, name: str, words: list[dict[str, object]]) -> Iterator[None]:
    """Run the tool's servers."""
    servers = [_started(site, name, "server", TOOLS[name].server, one) for one in words]
    until(time.monotonic() + UP_S)
    yield
    for server in servers:
        site.stop(server)


def _started(site: Emulation, name: str, part: str, run: tuple[str, str], words: dict[str, object]) -> str:
    """Start one end of a tool; return what it is called."""
    where, command = run
    called = f"{name}-{part}-{words['sender']}"
    site.spawn(called, command.format(**words).split(), host=str(words["sender"]) if where == SENDER else where)
    return called
