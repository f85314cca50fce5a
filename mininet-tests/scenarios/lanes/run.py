"""Programs as they are over two circuits at once: undisturbed, and when one of the circuits dies midway.

Beside them MPTCP and SCTP, which have paths of their own: also when an interface of the sender dies, which no
switch can lead round.

Run inside ``isolated.sh``, best in the lab. Writes what it saw to ``lanes.json``; ``report.py`` makes figures of it.
It does not know whether it is in the lab.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.arrivals import Arrivals
from mininet_tests.scenarios.lanes.aims import aims
from mininet_tests.scenarios.lanes.kernel import RECEIVER, SENDER, connections, counted, endings
from mininet_tests.scenarios.lanes.programs import (
    CASES,
    INTERFACE_DIES,
    NORTH_DIES,
    PORT,
    PROGRAMS,
    RESERVED_SHARE,
    SIZE_BYTES,
    SOUTH_DIES,
    StripedProgram,
    block_bytes,
    sizes_bytes,
    window_bytes,
    write_parts,
)
from mininet_tests.scenarios.lanes.report import LANES, report
from mininet_tests.site.cables import BOTH_ENDS, CircuitCable, InterfaceCable
from mininet_tests.site.emulation import Emulation, MoreSettings, emulation, now_us
from mininet_tests.site.ends import addresses_of
from mininet_tests.site.topos import PacketModel
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import two_lanes, two_lanes_of
from mininet_tests.testing.progress import tell
from mininet_tests.testing.reports import write_report
from topology.network import Network
from topology.units import duration_us, rate_bps, size_bytes

RATE_BPS = 10**9  # of north; SIZE_BYTES goes with it
DELAY_US = 90_000
CIRCUITS = {NORTH_DIES: "north", SOUTH_DIES: "south"}
RETURN_AFTER_S = 1
STARTS_SHARE = 0.15  # of a whole run
SAMPLED_EVERY_S, LOOKS_EVERY_S = 0.01, 0.2
UP_S = 1.0  # until a server listens
GIVE_UP_S = 300.0


class ProgramEnd:
    """When a program ends, told to the millisecond: a thread waits for it, whatever else is looked at meanwhile.

    Attributes:
        at_us: Unix time; 0 before.
    """

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        """Wait for it from now on."""
        self.at_us = 0
        self._program, self._over = program, threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        self._program.wait()
        self.at_us = now_us()
        self._over.set()

    def within(self, wait_s: float) -> bool:
        """Return whether it has ended, or does so before the wait is over."""
        return self._over.wait(wait_s)


@dataclass(frozen=True, slots=True)
class Case:
    """One transfer: by which program, and what dies midway."""

    program: str
    what: str

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.program}, {self.what}"


def run(directory: Path, cases: list[Case], network: Network, size: int) -> dict[str, Any]:
    """Return all that was seen of these cases.

    Args:
        directory: for ``lanes.json`` and logs.
        cases: one after the other.
        network: with both lanes; all its addresses are of one family.
        size: of what is sent, bytes.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: a program ended with an error.
    """
    tell(0.0, "the site comes up")
    more = MoreSettings(
        {
            "failover": {"return_after": f"{RETURN_AFTER_S} s"},
            "policy": {
                "urgent": {"guarantee": "0.1%", "cap": "100%"}
            },  # of the slower circuit, what a queue can be given
        }
    )
    with (
        named_hosts(network, directory),
        emulation(network, [], directory, packets=PacketModel(single=False), settings=more) as site,
        Arrivals(site, RECEIVER, tuple(LANES), SAMPLED_EVERY_S) as arrivals,
        IdleMeter() as idle,
    ):
        runs, found = dict[str, Any](), dict[str, Any]()
        for number, case in enumerate(cases):
            tell(STARTS_SHARE + (1 - STARTS_SHARE) * number / len(cases), case.name)
            with tempfile.TemporaryDirectory(prefix="headway-") as folder:
                seen = _transfer(site, arrivals, case, size, Path(folder))
            seen["received"] = [one for one in arrivals.seen if seen["announced_us"] <= one[0] <= seen["ended_us"]]
            runs[case.name] = seen
            found = {
                "size_bytes": size,
                "circuits": {
                    link.circuit: {"wire_bps": link.rate_bps, "rtt_us": 2 * link.delay_us}
                    for _, _, link in network.circuit_links
                },
                "mtu_bytes": network.framing.mtu_bytes,
                "is_ipv6": network.framing.is_ipv6,
                "runs": runs,
                "idle_shares": idle.shares,
            }
            (directory / "lanes.json").write_text(json.dumps(found))  # a case that fails takes none of those before it
    return found


@contextmanager
def named_hosts(network: Network, directory: Path) -> Iterator[None]:
    """Let programs find the network's hosts by name, as where there is a name server; of others they hear at once."""
    names = Path("/etc/hosts").read_text() + "".join(f"{host.ip} {host.name}\n" for host in network.hosts)
    bound = {"hosts": names, "resolv.conf": "nameserver 127.0.0.1\n"}  # where nobody is: no wait for an answer
    for name, text in bound.items():
        (directory / name).write_text(text)
        subprocess.run(["mount", "--bind", directory / name, Path("/etc") / name], check=True)
    try:
        yield
    finally:
        for name in bound:
            subprocess.run(["umount", Path("/etc") / name], check=True)


def _transfer(site: Emulation, arrivals: Arrivals, case: Case, size: int, folder: Path) -> dict[str, Any]:
    """Announce a transfer over two lanes, let a program send it, and release it; return what was seen.

    Raises:
        RuntimeError: the program has failed, with what it said; or it takes too long.
    """
    program, name = PROGRAMS[case.program], case.name.replace(", ", "-").replace(" ", "-")
    size = round(size * RESERVED_SHARE / len(LANES)) if program.is_reserved else size
    write_parts(folder / "sent", sizes_bytes(size, program.parts))
    store = folder / "store"
    store.mkdir()
    serving, calling = (SENDER, RECEIVER) if program.is_called else (RECEIVER, SENDER)
    words = _words(site, serving) | {"size": size, "folder": folder / "sent", "store": store}
    window = window_bytes(site.realised.network) if program.is_even else 0
    words |= {"block": block_bytes(size), "window": window}
    _tell_sender(site, program.before)
    site.spawn(f"server-{name}", program.server.format(**words).split(), host=serving)
    time.sleep(UP_S)
    before, first = counted(site), _arrived(arrivals)
    seen: dict[str, Any] = {"announced_us": now_us(), "promise": {}, "size_bytes": size}
    reservations = _reserved(site) if program.is_reserved else []
    if not program.is_reserved:
        seen["promise"] = _announced(site, program, name, size)
    seen["started_us"] = now_us()
    client = site.spawn(f"client-{name}", program.client.format(**words).split(), host=calling)
    ending, cable = ProgramEnd(client), _cable(site, case)
    looks, dealt = list[dict[str, Any]](), Counter[str]()
    while not ending.within(LOOKS_EVERY_S if looks else 0):
        if cable is not None and "died_us" not in seen and _arrived(arrivals) - first >= size // 2:
            seen["died_us"] = cable.pull(BOTH_ENDS)
        open_now = connections(site)
        looks.append({"at_us": now_us(), "planned_bps": _allocations(site), "connections": dict(open_now)})
        dealt = max(dealt, open_now, key=lambda one: one.total())
        if looks[-1]["at_us"] - seen["started_us"] > GIVE_UP_S * 1e6:
            raise RuntimeError(f"{case.name}: not done after {GIVE_UP_S:g} s: {_said(site, name)}")
    seen["ended_us"] = ending.at_us
    if client.returncode:
        raise RuntimeError(f"{case.name}: exit code {client.returncode}: {_said(site, name)}")
    after = counted(site)
    seen |= {"looks": looks, "connections": dict(dealt), "counted": {key: after[key] - before[key] for key in after}}
    seen |= {"violations": site.get("/v1/plan")["violations"], "told": _told(site, name)}
    for number in reservations:
        site.asked("DELETE", f"/v1/reservations/{number}")
    if not reservations:
        site.release(name)
    site.stop(f"server-{name}")
    seen |= {
        "is_reserved": program.is_reserved,
        "own_paths": program.own_paths,
        "window_bytes": window,
        "what": case.what,
    }
    if cable is not None:
        cable.plug()
        eventually(lambda: _all_up(site), within_s=30, what="the circuit is used again")
    return seen


def _announced(site: Emulation, program: StripedProgram, name: str, size: int) -> Any:
    """Announce what a program sends over two lanes; return what is promised."""
    asked = {"id": name, "bytes": size, "from": [SENDER], "to": RECEIVER, "lanes": len(LANES)}
    asked |= {"connects": "receiver"} if program.is_called else {}
    asked |= {"session_s": program.session_s} if program.session_s else {}
    return site.asked("POST", "/v1/announcements", asked)


def _reserved(site: Emulation) -> list[str]:
    """Reserve some of each circuit for its lane, until that is in force; return what the reservations are called."""
    wire_bps = {link.circuit: link.rate_bps for _, _, link in site.realised.network.circuit_links}
    numbers = []
    for lane, circuit in LANES.items():
        asked = {"from": lane, "to": RECEIVER, "rate_bps": round(wire_bps[circuit] * RESERVED_SHARE), "commit": True}
        asked |= {"duration_s": GIVE_UP_S, "constraints": {"include": [circuit]}}
        numbers.append(site.asked("POST", "/v1/reservations", asked)["id"])

    def are_active() -> bool:
        return all(site.get(f"/v1/reservations/{number}")["state"] == "active" for number in numbers)

    eventually(are_active, within_s=30, what="the lanes' reservations are in force")
    return numbers


def _cable(site: Emulation, case: Case) -> CircuitCable | InterfaceCable | None:
    """Return the line that dies in a case."""
    if case.what == INTERFACE_DIES:
        return InterfaceCable(site, SENDER, RECEIVER)
    circuit = CIRCUITS.get(case.what)
    return CircuitCable(site, circuit) if circuit else None


def _words(site: Emulation, serving: str) -> dict[str, object]:
    """Return what a program's commands say of the two hosts; who serves has the address that is connected to."""
    network = site.realised.network
    own, far = [str(network.host(lane).ip) for lane in LANES], _addresses(site, RECEIVER)
    return {
        "address": _addresses(site, serving)[0],
        "name": serving,
        "ipv6": "-ipv6" if network.framing.is_ipv6 else "",
        "addresses": ",".join(far),
        "own_addresses": ",".join(own),
        "port": PORT,
    }


def _addresses(site: Emulation, host: str) -> list[str]:
    return [str(address) for address in addresses_of(site.realised.network.host(host))]


def _tell_sender(site: Emulation, commands: Sequence[str]) -> None:
    """Let the sender do what a program needs before it, once for each of its interfaces; again does nothing."""
    network, far = site.realised.network, _addresses(site, RECEIVER)
    for command, (number, lane) in product(commands, enumerate(LANES)):
        device, own = f"{SENDER}-eth{number}", str(network.host(lane).ip)
        words = command.format(device=device, own=own, far=far[number], far_mac=network.host(RECEIVER).mac).split()
        subprocess.run(["mnexec", "-a", str(site.realised.net[SENDER].pid), *words], check=False)


def _arrived(arrivals: Arrivals) -> int:
    """Return the bytes of all lanes so far."""
    return sum(arrivals.seen[-1][1].values()) if arrivals.seen else 0


def _allocations(site: Emulation) -> dict[str, int]:
    """Return what the plan gives each lane, payload, bit/s."""
    return {one["from"]: one["payload_bps"] for one in site.get("/v1/plan")["desired"]["allocations"]}


def _said(site: Emulation, name: str) -> str:
    """Return what both ends of a transfer said last, and what their SCTP has counted of how associations end."""
    words = [f"{end}: {site.tail(f'{end}-{name}')}" for end in ("client", "server")]
    for host in (SENDER, RECEIVER):
        counted = Path(f"/proc/{site.realised.net[host].pid}/net/sctp/snmp")
        words += [f"{host}: {endings(counted.read_text())}"] if counted.exists() else []
    return "; ".join(words)


def _told(site: Emulation, name: str) -> list[str]:
    """Return the events that the controller has logged of an announcement, each a line that begins with its time."""
    log = (site.directory / "logs" / "controller.log").read_text()
    return [line for line in log.splitlines() if "event=announcement." in line and f"announcement={name}" in line]


def _all_up(site: Emulation) -> bool:
    """Return whether the controller says that every line is up."""
    return all(one["state"] == "up" for one in site.get("/v1/circuits"))


def asked_parser(description: str | None, ours: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return what reads which transfers are asked for, and what else a program is asked."""
    parser = argparse.ArgumentParser(description=description, parents=[ours])
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="again for another (default: all)")
    parser.add_argument(
        "--case", action="append", help="likewise: 'north dies', or of one program 'mptcp, north dies' (default: all)"
    )
    parser.add_argument("--rate", type=rate_bps, help="of north, twice that of south (default: 1 Gbit/s)")
    parser.add_argument("--delay", type=duration_us, default=DELAY_US, help="of north, one way; south is in proportion")
    parser.add_argument("--ipv6", action="store_true", help="all addresses are of IPv6 (default: of IPv4)")
    parser.add_argument("--size", type=size_bytes, help="what is sent (default: 2.688 GB at 1 Gbit/s, in proportion)")
    return parser


def cases_of(parser: argparse.ArgumentParser, args: argparse.Namespace) -> list[Case]:
    """Return the transfers that are asked for; end with an error if there is no such case."""
    cases = [Case(name, case) for name in args.program or PROGRAMS for case in PROGRAMS[name].cases]
    if unknown := set(args.case or ()) - {*CASES, *(case.name for case in cases)}:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    return [case for case in cases if not args.case or {case.what, case.name} & set(args.case)]


def main() -> int:
    """Run, and keep what was seen."""
    ours = argparse.ArgumentParser(add_help=False)
    ours.add_argument("--out", type=Path, required=True, help="folder for lanes.json and logs")
    parser = asked_parser(__doc__, ours)
    args = parser.parse_args()
    cases, rate = cases_of(parser, args), args.rate or RATE_BPS
    size = args.size or SIZE_BYTES * rate // RATE_BPS

    def scenario(folder: Path) -> None:
        network = two_lanes_of(6, rate_bps=rate, delay_us=args.delay) if args.ipv6 else two_lanes(rate, args.delay)
        seen = run(folder, cases, network, size)
        found = report(seen)
        write_report(folder, found | stated(aims(found)))

    return kept("lanes", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
