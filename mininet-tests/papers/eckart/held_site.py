"""Measures the cells that need a whole site: one whose receiver has a slow disk, held to it or not.

Run inside ``isolated.sh``, in the lab; started by ``tables.py``. It does not know whether it is in the lab.
"""

import argparse
import json
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mininet_tests.lab.cells import EXIT_AGAIN, EXIT_OK, Cell, asked, leave, tell
from mininet_tests.lab.kept import FAILURES
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.papers.eckart.cells import DISK_BPS, DISK_BYTES, OURS, SLOWED_BPS
from mininet_tests.papers.eckart.disk_site import FIRST_PORT, DiskSite, Sent, by_flow, disk_site
from mininet_tests.papers.freemon.guest import surroundings
from mininet_tests.site.emulation import now_us
from mininet_tests.site.lsst import BACKGROUND, IMAGE_HOSTS, RECEIVER, SENDERS
from mininet_tests.site.tcp_flows import SWITCH_S, TcpStream, until
from mininet_tests.testing.eventually import eventually

LOOK_S, FINE_S = 0.2, 0.002
HELD_WITHIN_S = 90.0  # a change soon after those of the cell before waits for 64 s at most
SOCKETS = 16  # one has its memory back only when a datagram has left the line's port, and would send what that does
KEPT_EVERY = 20  # of what was counted
ENDLESS_BYTES, ROUND_BYTES = 1 << 40, DISK_BYTES // 2  # a flow without end writes its file over and over


def transfer(on: DiskSite, cell: Cell) -> Cell:
    """Return one file beside background traffic: of several, one after another, the one that took as long as half."""
    runs = []
    for number in range(cell.get("times", 1)):
        on.settled()
        runs.append(_files(on, [Sent(on, f"{cell['name']}-{number}", IMAGE_HOSTS[0], cell["size_bytes"])]))
    runs.sort(key=_stored_s)
    return runs[len(runs) // 2] | {"each_stored_s": [_stored_s(run) for run in runs]}


def _stored_s(run: Cell) -> float:
    last_s: float = max(one["stored_s"] for one in run["files"])
    return last_s


def several(on: DiskSite, cell: Cell) -> Cell:
    """Return some files at once, from three hosts."""
    on.settled()
    hosts = [host for host in SENDERS if host != BACKGROUND]
    names = [f"{cell['name']}-{number}" for number in range(cell["senders"])]
    return _files(on, [Sent(on, n, hosts[k % len(hosts)], cell["size_bytes"]) for k, n in enumerate(names)])


def _files(on: DiskSite, files: list[Sent]) -> Cell:
    """Return what was seen of some files that begin together, and what background traffic got until all is stored."""
    before = on.store()
    began_us, first_s = now_us(), time.monotonic()
    for one in files:
        one.begin()
    looks, next_s = list[Cell](), 0.0
    while sum(one.look() for one in files) < len(files):  # each is looked at
        if time.monotonic() >= next_s:
            looks.append(_look(on, began_us))
            next_s = time.monotonic() + LOOK_S
        time.sleep(FINE_S)
    seen = [one.ended() for one in files]
    last_s = max(file.began_s - first_s + one["stored_s"] for file, one in zip(files, seen, strict=True))
    last_us = began_us + round(last_s * 1e6)
    counted = on.arrived(began_us, last_us)
    sent = [host for host in SENDERS if host != BACKGROUND]
    return {
        "files": seen, "looks": looks, "store": before, "measured": on.measured,
        "background_bytes": counted[-1][1][BACKGROUND] - counted[0][1][BACKGROUND],
        "seconds_seen": (counted[-1][0] - counted[0][0]) / 1e6,
        "arrived": [[(at - began_us) / 1e6, sum(c[h] - counted[0][1][h] for h in sent),
                     c[BACKGROUND] - counted[0][1][BACKGROUND]] for at, c in counted[::KEPT_EVERY]],
    }  # fmt: skip


def _look(on: DiskSite, began_us: int) -> Cell:
    """Return what is planned now, and what is known of the store."""
    plan = on.plan()
    return {
        "s": (now_us() - began_us) / 1e6,
        "epoch": plan["epoch"],
        "planned_bps": by_flow(plan),
        "store": on.store(),
    }


@contextmanager
def _endless(on: DiskSite, name: str) -> Iterator[TcpStream]:
    """Give a connection that writes to the disk all the time, under way; what it has written is gone afterwards."""
    port = FIRST_PORT + len(on.site.processes)
    writer = on.writer(name, port, ENDLESS_BYTES, "--over", str(ROUND_BYTES))
    stream = on.connected(IMAGE_HOSTS[0], port)
    on.feeder.feed([stream], ENDLESS_BYTES)
    yield stream
    on.feeder.forget([stream])
    stream.sender.close()
    writer.kill()
    writer.wait()
    (on.disk.path / name).unlink()


def slows(on: DiskSite, cell: Cell) -> Cell:
    """Return what was planned while a disk, of which nobody has said anything, became slow, and fast again."""
    on.settled()
    began_us, looks = now_us(), list[Cell]()
    changes = list[float]()
    with _endless(on, cell["name"]) as stream:
        for seconds, rate_bps in zip(cell["seconds"], (DISK_BPS, SLOWED_BPS, DISK_BPS), strict=True):
            on.disk.change(rate_bps)
            changes.append((now_us() - began_us) / 1e6)
            looks += _looks(on, began_us, seconds)
        return _course(on, stream, began_us, looks) | {"changes_s": changes}


def _looks(on: DiskSite, began_us: int, seconds: float) -> Iterator[Cell]:
    """Yield what is planned for some seconds, a few times in each."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        yield _look(on, began_us)
        until(time.monotonic() + LOOK_S)


def noisy(on: DiskSite, cell: Cell) -> Cell:
    """Return what was planned while a disk, of which nobody has said anything, has another rate each second or so."""
    on.settled()
    draw = random.Random(cell["seed"])
    began_us, looks, could_bits = now_us(), [_look(on, now_us())], 0.0
    with _endless(on, cell["name"]) as stream:
        began_s, before_bytes = time.monotonic(), on.disk.written_bytes
        until_s = began_s + cell["seconds"][0]
        while (from_s := time.monotonic()) < until_s:
            rate_bps = draw.randint(*cell["disk_bps"])
            on.disk.change(rate_bps)
            until(from_s + draw.uniform(*cell["lasts_s"]))
            could_bits += rate_bps * (time.monotonic() - from_s)
            looks.append(_look(on, began_us))
        written_bytes = on.disk.written_bytes - before_bytes
        course = _course(on, stream, began_us, looks)
        return course | {"written_bytes": written_bytes, "could_bytes": round(could_bits / 8)}


def killed(on: DiskSite, cell: Cell) -> Cell:
    """Return what was planned before and after the receiver's agent was killed."""
    on.settled()
    began_us, looks = now_us(), list[Cell]()
    with _endless(on, cell["name"]) as stream:
        looks += _looks(on, began_us, 10)

        def is_held() -> bool:
            look = _look(on, began_us)
            looks.append(look)
            return any(look["planned_bps"][one["flow"]] == one["planned_bps"] for one in look["store"]["holds"])

        eventually(is_held, within_s=HELD_WITHIN_S, what="the flow is held to the disk")
        agent = on.site.processes[f"agent-{RECEIVER}"]
        agent.kill()
        agent.wait()
        killed_s = (now_us() - began_us) / 1e6
        looks += _looks(on, began_us, 20)
        return _course(on, stream, began_us, looks) | {"killed_s": killed_s}


def _course(on: DiskSite, stream: TcpStream, began_us: int, looks: list[Cell]) -> Cell:
    counted = on.arrived(began_us, now_us())
    first, again = counted[0][1], stream.told.retransmitted_segments
    rows = [[(at - began_us) / 1e6, c[IMAGE_HOSTS[0]] - first[IMAGE_HOSTS[0]], c[BACKGROUND] - first[BACKGROUND]]
            for at, c in counted[::KEPT_EVERY]]  # fmt: skip
    return {"looks": looks, "arrived": rows, "again_segments": again, "measured": on.measured}


def overrun(on: DiskSite, cell: Cell) -> Cell:
    """Return one file while another host sends datagrams to its receiver for a second, two seconds after it began."""
    address = str(on.site.realised.network.host(RECEIVER).ip)
    on.site.spawn("udp-server", ["iperf3", "--server", "--port", "7001"], host=RECEIVER)
    on.settled()
    sent = Sent(on, cell["name"], IMAGE_HOSTS[0], cell["size_bytes"])
    client = ["iperf3", "--client", address, "--port", "7001", "--udp", "--length", "1400", "--time", "1", "--json"]
    client += ["--parallel", str(SOCKETS), "--bitrate", str(cell["udp_bps"] // SOCKETS)]
    late = ["sh", "-c", f"sleep 3; exec {' '.join(client)}"]
    on.site.spawn("udp-client", late, host=IMAGE_HOSTS[1])
    seen = _files(on, [sent])
    on.site.processes["udp-client"].wait(30)
    told = json.loads((on.site.directory / "logs/udp-client.log").read_text())
    return seen | {"udp": told.get("end", {}).get("sum", told)}


KINDS: dict[str, Callable[[DiskSite, Cell], Cell]] = {
    "transfer": transfer, "several": several, "slows": slows, "killed": killed, "noisy": noisy,
    "overrun": overrun,
}  # fmt: skip


def main() -> None:
    """Measure, and tell of each cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder with the cells that are asked for")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    cell, *_ = wanted = asked(args.out)
    assert cell["who"] in OURS  # noqa: S101
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        try:
            with disk_site(cell, Path(scratch)) as on:
                for cell in wanted:
                    with IdleMeter() as meter:
                        seen = KINDS[cell["experiment"]](on, cell)
                    tell(cell, seen | {"idle_share": min(meter.shares)} | surroundings())
        except FAILURES as error:
            traceback.print_exc()
            logs = {log.name: log.read_text()[-2000:] for log in Path(scratch).glob("logs/*.log")}
            print(json.dumps(logs, indent=1)[:6000], flush=True)
            tell(cell, {"failed": str(error)})
            leave(EXIT_AGAIN)
    leave(EXIT_OK)


if __name__ == "__main__":
    main()
