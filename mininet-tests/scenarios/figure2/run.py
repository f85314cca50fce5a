"""Freemon 2013, figure 2, for real: background and database traffic run, an image is announced, sent and released.

Run inside ``isolated.sh``. Writes what it saw to ``run.json``; ``report.py`` makes figures of it. It does not know
whether it is in the lab.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.measure import Sampler, Samples
from mininet_tests.probes.sockets import ALL_CONFIRMED_STATES, TcpConnection
from mininet_tests.scenarios.figure2.course import LOSS_PPM, PART_BYTES, shares
from mininet_tests.scenarios.figure2.disk import ReceivingDisk, receiving_disk
from mininet_tests.site.emulation import Emulation, emulation, now_us
from mininet_tests.site.lsst import BACKGROUND, DATABASE, FLOWS, RECEIVER, SENDERS
from mininet_tests.site.topos import PacketModel, line_drops, port_drops, read_back, seed_lines
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.progress import tell
from topology.units import rate_bps
from topology.wire import Layer, converted_bps

IMAGE_PORTS = {"base20": 5101, "base21": 5201}  # as in the paper's commands
STANDING_PORTS = {DATABASE: 5301, BACKGROUND: 5302}
PORTS = {*IMAGE_PORTS.values(), *STANDING_PORTS.values()}
PIPE_BYTES = 1 << 20
CONFIRMED_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """What to run.

    Attributes:
        rate_bps: the circuit, on the wire.
        part_bytes: what each of the two senders of the image sends.
        lead_s: how long the standing flows run before the announcement, once they are at their shares.
        tail_s: how long they run after the release.
        single_packets: see :class:`topos.PacketModel`.
        seed: of the line's losses.
        disk_bps: what the receiver's disk takes of the image; None: it is thrown away.
    """

    rate_bps: int
    part_bytes: int
    lead_s: float
    tail_s: float
    single_packets: bool
    seed: int
    disk_bps: int | None = None


def run(scenario: Scenario, directory: Path) -> dict[str, Any]:
    """Return all that was seen of one run.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: a program ended with an error.
    """
    network = chile_illinois(rate_bps=scenario.rate_bps)
    course = _course(scenario)
    tell(course[0], "the site comes up")
    say("starting Open vSwitch, the network, the controller and five agents")
    packets = PacketModel(scenario.single_packets, LOSS_PPM)
    addresses = [f"{network.host(host).ip}/32" for host in IMAGE_PORTS]
    with (
        receiving_disk(scenario.disk_bps, 2 * scenario.part_bytes, addresses, directory) as disk,
        emulation(network, FLOWS, directory, packets=packets, settings=disk.settings) as site,
    ):
        seed = seed_lines(site.realised, scenario.seed)
        read: list[tuple[int, Any]] = []
        with Sampler(site, SENDERS, tuple(IMAGE_PORTS), RECEIVER) as sampler:
            tell(course[1], "background and database fill the circuit")
            feeds = _prepared(site, sampler, disk)
            tell(course[2], "background and database alone")
            with IdleMeter() as idle:
                marks = _play(site, sampler, scenario, feeds, lambda: read.append((now_us(), read_back(site.realised))))
        marks["end_us"] = sampler.samples.received[-1][0]
        drops = {"line": line_drops(site.realised, "chile-illinois"), "edge": port_drops(site.realised)}
        steps, fell = site.get("/v1/transitions"), site.fallbacks.fell
    return {
        "scenario": asdict(scenario),
        "seed": seed,
        "marks": marks,
        "drops_packets": drops,
        "fallbacks": fell,
        "transitions": steps,
        "cpu_idle_shares": idle.shares,
        "read_back": read,
        "disk": disk.figures,
        **_plain(sampler),
    }


def _prepared(site: Emulation, sampler: Sampler, disk: ReceivingDisk) -> dict[str, int]:
    """Start every server and the standing flows, and the movers; return what the image's bytes go into, by host."""
    for host, port in STANDING_PORTS.items():
        site.spawn(f"iperf3-server-{host}", ["iperf3", "--server", "--port", str(port)], host=RECEIVER)
    for host, port in IMAGE_PORTS.items():
        site.spawn(f"nuttcp-server-{host}", disk.server(port), host=RECEIVER)
    address = str(site.realised.network.host(RECEIVER).ip)
    for host, port in STANDING_PORTS.items():
        command = ["iperf3", "--client", address, "--port", str(port), "--time", "3600", "--json"]
        _until_connected(site, sampler, host, port, partial(site.spawn, f"iperf3-{host}", command, host=host))
    say("background and database run; waiting until they fill the circuit")
    eventually(lambda: _full(sampler, site), within_s=60, what="the standing flows reach 97% of the circuit")
    return {host: _mover(site, sampler, host, port, address) for host, port in IMAGE_PORTS.items()}


def _play(
    site: Emulation,
    sampler: Sampler,
    scenario: Scenario,
    feeds: dict[str, int],
    read: Callable[[], None],
) -> dict[str, int]:
    """Run the scenario; return the time of each event.

    Args:
        site: what runs.
        sampler: watches it.
        scenario: what to do.
        feeds: what the image's bytes go into, by host.
        read: takes down what switches and kernel hold; called before, during and after the image.
    """
    marks = {"steady_us": now_us()}
    _watch(site, scenario.lead_s, "standing flows alone")
    read()
    marks["announced_us"] = now_us()
    promise = site.announce("image", 2 * scenario.part_bytes, tuple(IMAGE_PORTS), RECEIVER)
    for name, key in (("promised_us", "promised_in_s"), ("promised_stored_us", "stored_in_s")):
        if promise[key] is not None:
            marks[name] = marks["announced_us"] + round(promise[key] * 1e6)
    _fed(feeds, scenario.part_bytes)
    say(f"image announced: promised in {promise['promised_in_s']:.2f} s")
    _watch(site, 1.0, "image under way")
    read()
    marks["confirmed_us"] = _confirmed_us(site, sampler, scenario, marks["announced_us"])
    site.release("image")
    marks["released_us"] = now_us()
    say(f"image confirmed after {(marks['confirmed_us'] - marks['announced_us']) / 1e6:.2f} s, released")
    if scenario.disk_bps:
        marks["stored_us"] = _stored_us(site)
        say(f"image on the disk after {(marks['stored_us'] - marks['announced_us']) / 1e6:.2f} s")
    tell(_course(scenario)[4], "background and database alone again")
    _watch(site, scenario.tail_s, "standing flows alone again")
    read()
    return marks


def _until_connected(
    site: Emulation, sampler: Sampler, host: str, port: int, start: Callable[[], Any]
) -> TcpConnection:
    """Start a sender, once more if its server was not there yet; return its connection."""
    start()

    def connection() -> TcpConnection | None:
        if any(name.endswith(f"-{host}") and "server" not in name and p.poll() for name, p in site.processes.items()):
            start()
        return _connection(sampler, host, port)

    return eventually(connection, within_s=60, what=f"{host} connects to port {port}")


def _connection(sampler: Sampler, host: str, port: int) -> TcpConnection | None:
    """Return a host's latest-seen connection to a port of the receiver, if it is established or was."""
    samples = sampler.samples.watched if host in IMAGE_PORTS else sampler.samples.connections
    if not samples:
        return None
    _, by_host = samples[-1]
    return next((c for c in by_host[host] if c.remote_port == port and c.state != 2), None)  # 2: SYN sent


def _mover(site: Emulation, sampler: Sampler, host: str, port: int, address: str) -> int:
    """Start nuttcp on a host, its connection open and waiting; return the descriptor its bytes go into."""
    read_end, write_end = os.pipe()
    command = ["nuttcp", "-t", "-s", "-fparse", "-p", str(port), "-P", str(port - 1), address]

    def start() -> None:
        site.spawn(f"nuttcp-{host}", command, host=host, stdin=read_end)

    _until_connected(site, sampler, host, port, start)
    os.close(read_end)
    return write_end


def _fed(feeds: dict[str, int], part_bytes: int) -> None:
    """Let the image's bytes flow into the movers that wait for them, one thread each."""
    for write_end in feeds.values():
        threading.Thread(target=_feed, args=(write_end, part_bytes), daemon=True).start()


def _feed(write_end: int, part_bytes: int) -> None:
    """Write so many bytes into a pipe, and close it; a mover that has ended is noticed by its exit code."""
    block = memoryview(bytes(PIPE_BYTES))
    left = part_bytes
    with suppress(BrokenPipeError):
        while left:
            left -= os.write(write_end, block[:left])
    os.close(write_end)


def _confirmed_us(site: Emulation, sampler: Sampler, scenario: Scenario, announced_us: int) -> int:
    """Wait until the last byte of each part is confirmed; return when the later of the two was.

    Raises:
        RuntimeError: a mover ended with an error.
    """
    confirmed: dict[str, int] = {}

    def all_confirmed() -> bool:
        for at_us, by_host in sampler.samples.watched:
            for host, port in IMAGE_PORTS.items():
                done = at_us > announced_us and _is_confirmed(by_host[host], port, scenario.part_bytes)
                if done and host not in confirmed:
                    confirmed[host] = at_us
        _say_progress(sampler, scenario)
        return len(confirmed) == len(IMAGE_PORTS)

    eventually(all_confirmed, within_s=CONFIRMED_WITHIN_S, what="the image is confirmed")
    ended = [text for text in site.ended() if "nuttcp" in text]
    if ended:
        raise RuntimeError("; ".join(ended))
    return max(confirmed.values())


def _stored_us(site: Emulation) -> int:
    """Wait until both movers have put their part on the disk, which is when they end; return the time.

    Raises:
        RuntimeError: one ended with an error.
    """
    movers = [site.processes[f"nuttcp-server-{host}"] for host in IMAGE_PORTS]
    eventually(lambda: all(one.poll() is not None for one in movers), within_s=CONFIRMED_WITHIN_S, what="it is stored")
    stored_us = now_us()
    if ended := [text for text in site.ended() if "nuttcp" in text]:
        raise RuntimeError("; ".join(ended))
    return stored_us


def _is_confirmed(connections: list[TcpConnection], port: int, part_bytes: int) -> bool:
    """Return whether a part has been confirmed whole: by count (the SYN is one of it), or by an end in good order."""
    to_port = [c for c in connections if c.remote_port == port]
    return not to_port or any(c.acked_bytes > part_bytes or c.state in ALL_CONFIRMED_STATES for c in to_port)


def _full(sampler: Sampler, site: Emulation) -> bool:
    """Return whether the standing flows have filled 97% of the circuit for the last second."""
    received = sampler.samples.received[-100:]
    if len(received) < 50:
        return False
    (from_us, before), (to_us, after) = received[0], received[-1]
    moved_bps = sum(after[h].payload_bytes - before[h].payload_bytes for h in after) * 8_000_000 // (to_us - from_us)
    network = site.realised.network
    limit_bps = converted_bps(network.circuits[0].rate_bps, Layer.WIRE, Layer.PAYLOAD, network.framing)
    if _sometimes():
        say(f"{moved_bps / limit_bps:4.0%} of the circuit")
    return moved_bps > 0.97 * limit_bps


_said_s = 0.0


def _say_progress(sampler: Sampler, scenario: Scenario) -> None:
    """Say how much of the image has arrived."""
    _, counts = sampler.samples.received[-1]
    part = sum(counts[host].payload_bytes for host in IMAGE_PORTS) / (2 * scenario.part_bytes)
    begun, done = _course(scenario)[3:5]
    if _sometimes():
        tell(begun + (done - begun) * min(1.0, part), f"image {part:.0%}")


def _course(scenario: Scenario) -> tuple[float, ...]:
    """Return which part of the time has passed at each change of what is done."""
    return shares(scenario.rate_bps, 2 * scenario.part_bytes, scenario.lead_s, scenario.tail_s, scenario.disk_bps)


def _sometimes() -> bool:
    """Return whether two seconds have passed since this was so the last time."""
    global _said_s  # noqa: PLW0603 the time of the last line said, nothing else
    if time.monotonic() - _said_s <= 2:
        return False
    _said_s = time.monotonic()
    return True


def _watch(site: Emulation, duration_s: float, what: str) -> None:
    """Let the scenario run for a while; end it if a program has ended."""
    say(f"{what}, {duration_s:g} s")
    until_s = time.monotonic() + duration_s
    while time.monotonic() < until_s:
        time.sleep(min(0.5, max(0.0, until_s - time.monotonic())))
        ended = [text for text in site.ended() if "server" not in text]
        if ended:
            raise RuntimeError("; ".join(ended))


def _plain(sampler: Sampler) -> dict[str, Any]:
    """Return the samples as JSON can hold them."""
    samples = sampler.samples
    return {
        "received": [[t, {h: [c.size_bytes, c.packets] for h, c in counts.items()}] for t, counts in samples.received],
        "connections": [
            [t, {h: [asdict(c) for c in cs] for h, cs in by.items()}] for t, by in samples.connections[::10]
        ],
        "last_connections": {h: [asdict(c) for c in _latest(samples, h)] for h in SENDERS},
        "plan": samples.plan,
    }


def _latest(samples: Samples, host: str) -> list[TcpConnection]:
    """Return the last that was seen of each of a host's connections to the receiver while it had counters."""
    seen: dict[tuple[int, int], TcpConnection] = {}
    for _, by_host in [*samples.connections, *samples.watched]:
        for c in by_host.get(host, ()):
            if c.sent_segments and c.remote_port in PORTS:
                seen[c.local_port, c.remote_port] = max(c, seen.get((c.local_port, c.remote_port), c), key=_progress)
    return list(seen.values())


def _progress(connection: TcpConnection) -> int:
    return connection.sent_segments


def say(text: str) -> None:
    """Show progress."""
    print(f"[{time.monotonic():8.1f} s] {text}", flush=True)


def main() -> int:
    """Run the scenario that the command line describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=rate_bps, default=10**9, help="the circuit, e.g. '1 Gbit/s'")
    parser.add_argument("--part-bytes", type=int, default=PART_BYTES, help="bytes each of the two senders sends")
    parser.add_argument("--lead", type=float, default=5.0, metavar="S", help="seconds before the announcement")
    parser.add_argument("--tail", type=float, default=5.0, metavar="S", help="seconds after the release")
    parser.add_argument("--exact", action="store_true", help="every packet on its own")
    parser.add_argument("--seed", type=int, default=1, help="of the line's losses")
    parser.add_argument("--slow-disk", type=rate_bps, help="write the image to a disk of this rate")
    parser.add_argument("--out", type=Path, required=True, help="folder for run.json and logs")
    args = parser.parse_args()
    scenario = Scenario(args.rate, args.part_bytes, args.lead, args.tail, args.exact, args.seed, args.slow_disk)

    def play(folder: Path) -> None:
        (folder / "run.json").write_text(json.dumps(run(scenario, folder)))

    return kept("figure2", args.out, play)


if __name__ == "__main__":
    sys.exit(main())
