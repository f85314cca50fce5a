"""An agent that dies, hangs or is cut off, and a path that loses far too much: the hosts' own algorithms take over."""

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mininet_tests.probes.tcp_watch import Meter, StreamWatch
from mininet_tests.site.long_line import NEAR_ADDRESS, LongLine
from mininet_tests.site.long_line_site import LEASE_MS, MBIT, LongLineSite
from mininet_tests.site.tcp_flows import TcpStream, until
from mininet_tests.testing.eventually import eventually

PORT, RTT_MS, RATE_BPS, COUNT = 5001, 180, 40 * MBIT, 4
CONTROLLER_PORT = 6000
LOOK_EVERY_S = 0.01
GIVE_UP_S = 30.0
CUT = f"""table inet cut {{
  chain arriving {{ type filter hook input priority 0; tcp dport {CONTROLLER_PORT} drop; }}
  chain leaving {{ type filter hook output priority 0; tcp sport {CONTROLLER_PORT} drop; }}
}}
"""
LOSS_PERCENT, OVER_S, HOLD_S = 30.0, 2, 4
FALLBACK = {"loss": "20%", "over": f"{OVER_S} s", "clear": "2%", "hold": f"{HOLD_S} s"}


class LineCable:
    """Carries what an agent says at ``path`` over the sender's interface to its controller: a cable that can be cut."""

    def __init__(self, line: LongLine, path: Path, controller: Path) -> None:
        self.path = path
        self._line, self._controller = line, controller
        own = socket.socket(socket.AF_UNIX)
        own.bind(str(path))
        own.listen()
        far = line.near.inside(lambda: socket.create_server((NEAR_ADDRESS, CONTROLLER_PORT)))
        self._listeners = own, far
        for listener, onward in ((own, self._over_the_cable), (far, self._to_the_controller)):
            threading.Thread(target=self._accept, args=(listener, onward), daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        for listener in self._listeners:
            listener.close()

    def _over_the_cable(self) -> socket.socket:
        return self._line.sender.inside(lambda: socket.create_connection((NEAR_ADDRESS, CONTROLLER_PORT)))

    def _to_the_controller(self) -> socket.socket:
        onward = socket.socket(socket.AF_UNIX)
        onward.connect(str(self._controller))
        return onward

    def _accept(self, listener: socket.socket, onward: Callable[[], socket.socket]) -> None:
        with contextlib.suppress(OSError):
            while True:
                arrived, _ = listener.accept()
                threading.Thread(target=_joined, args=(arrived, onward), daemon=True).start()


def _joined(arrived: socket.socket, onward: Callable[[], socket.socket]) -> None:
    """Carry both ways between what has arrived and a new connection onward."""
    try:
        other = onward()
    except OSError:
        arrived.close()
        return
    for ends in ((arrived, other), (other, arrived)):
        threading.Thread(target=_carry, args=ends, daemon=True).start()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def run(folder: Path) -> dict[str, Any]:
    """Return how long fixed windows outlived each fault, and when they came back."""
    with LongLineSite(folder, RTT_MS, RATE_BPS) as site, contextlib.ExitStack() as undo:
        cable = LineCable(site.line, folder / "cable.sock", folder / "sender" / "c.sock")
        undo.callback(cable.close)
        site.agent.settings = {"controllers": [f"unix:{cable.path}"]}
        site.agent.terminate()
        site.agent.restart()
        agent, near = site.agent, site.line.near
        faults: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "killed": (agent.kill, agent.restart),
            "stopped": (
                lambda: agent.process.send_signal(signal.SIGSTOP),
                lambda: agent.process.send_signal(signal.SIGCONT),
            ),
            "cut off": (
                lambda: near.run("nft", "-f", "-", text=CUT),
                lambda: near.run("nft", "delete", "table", "inet", "cut"),
            ),
        }
        site.plan(site.allocation(PORT, RATE_BPS))
        streams = site.opened(PORT, COUNT)
        meter = Meter(site.line, (PORT,))
        site.feeder.feed(streams)
        until(time.monotonic() + 1)
        seen = {name: _faulted(site, streams, meter, *fault) for name, fault in faults.items()}
        meter.close()
    return {
        "lease_s": LEASE_MS / 1000,
        "rtt_s": site.rtt_s,
        "planned_bps": RATE_BPS,
        "faults": seen,
        "idle_share": site.idle_share,
    }


def _held(stream: TcpStream) -> bool:
    return stream.algorithm.startswith("headway")


def _faulted(
    site: LongLineSite,
    streams: list[TcpStream],
    meter: Meter,
    break_it: Callable[[], object],
    mend: Callable[[], object],
) -> dict[str, Any]:
    """Return the times of one fault."""
    eventually(lambda: all(map(_held, streams)), within_s=1, what="all held")
    with StreamWatch(streams, LOOK_EVERY_S) as watch:
        began_s = time.monotonic()
        break_it()
        eventually(lambda: not any(map(_held, streams)), within_s=GIVE_UP_S, what="all on their own")
        until(time.monotonic() + 1)
        mended_s = time.monotonic()
        mend()
        eventually(lambda: all(map(_held, streams)), within_s=GIVE_UP_S, what="all held again")
    own_s = next(at_s for at_s, names in watch.algorithms if not any(name.startswith("headway") for name in names))
    back_s = next(
        at_s for at_s, names in watch.algorithms if at_s > mended_s and all(n.startswith("headway") for n in names)
    )
    until(back_s + 1)
    from_s = time.monotonic()
    with site.measured():
        until(from_s + 1)
    settled_bps = meter.curves[PORT].bps(from_s, from_s + 0.9)
    return {"own_after_s": own_s - began_s, "back_after_s": back_s - mended_s, "then_bps": settled_bps}


def run_loss(folder: Path) -> dict[str, Any]:
    """Return when catastrophic loss gave the connections back, what the agent told, and when they returned."""
    with LongLineSite(folder, RTT_MS, RATE_BPS, settings={"fallback": FALLBACK}) as site:
        site.plan(site.allocation(PORT, RATE_BPS))
        streams = site.opened(PORT, COUNT)
        site.feeder.feed(streams)
        until(time.monotonic() + 3 * OVER_S)
        held_before = all(map(_held, streams))

        def told() -> str:
            entry = site.agent.controller.entry(f"port{PORT}")
            return entry.fallback if entry else ""

        with site.measured(), StreamWatch(streams, LOOK_EVERY_S) as watch:
            began_s = time.monotonic()
            site.line.change(loss_percent=LOSS_PERCENT)
            eventually(lambda: not any(map(_held, streams)), within_s=GIVE_UP_S, what="all on their own")
            eventually(lambda: told() == "loss", within_s=GIVE_UP_S, what="the agent tells")
            told_s = time.monotonic()
            until(began_s + 2 * OVER_S + HOLD_S)
            held_in_loss = any(map(_held, streams))
            cleared_s = time.monotonic()
            site.line.change(loss_percent=0)
            eventually(lambda: all(map(_held, streams)), within_s=GIVE_UP_S, what="all held again")
            eventually(lambda: told() == "", within_s=GIVE_UP_S, what="the agent tells that it is over")
        own_s = next(at_s for at_s, names in watch.algorithms if not any(n.startswith("headway") for n in names))
        back_s = next(
            at_s for at_s, names in watch.algorithms if at_s > own_s and all(n.startswith("headway") for n in names)
        )
    return {
        "idle_share": site.idle_share,
        "over_s": OVER_S,
        "hold_s": HOLD_S,
        "rtt_s": site.rtt_s,
        "held_before": held_before,
        "held_in_loss": held_in_loss,
        "own_after_s": own_s - began_s,
        "told_after_s": told_s - began_s,
        "back_after_fall_s": back_s - own_s,
        "back_after_clear_s": back_s - cleared_s,
    }
