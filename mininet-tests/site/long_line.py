"""A long line between two hosts in network namespaces; delay, loss and bottleneck can be changed while data flows.

    sender -- near -- far -- receiver

``near`` has the bottleneck, towards ``far``; ``far`` has half of the delay, and the loss, in each direction. Neighbours
are permanent: a request for an address would wait on the line like everything else.
"""

import json
from dataclasses import dataclass
from functools import partial

from hostagent.tests.rig import NamespaceHost
from mininet_tests.site.command import run
from mininet_tests.site.qdiscs import seeded

QUEUE_PACKETS = 400_000  # netem's limit: more than any rate x delay here
BURST_S = 0.0005  # of the bottleneck's rate: less, and a timer that is late once would cost it rate
SEED = 20_261_121
FAR_ENDS = ("up2", "down1")  # of the far place: towards the receiver, and back
OTHER_ADDRESS = "10.77.3.1"  # a second one of the receiver's, for what nobody has planned
SYSCTLS = {
    "net.ipv4.ip_forward": "1",
    "net.ipv6.conf.all.forwarding": "1",
    "net.ipv4.tcp_no_metrics_save": "1",  # one transfer must not know of the one before
}


@dataclass(frozen=True, slots=True)
class Port:
    """One end of a cable."""

    place: str
    device: str
    address: str
    address6: str
    mac: str


CABLES = (
    (
        Port("sender", "up0", "10.77.1.1", "fd77:1::1", "02:00:00:00:00:01"),
        Port("near", "down0", "10.77.1.254", "fd77:1::fe", "02:00:00:00:00:02"),
    ),
    (
        Port("near", "up1", "10.77.9.1", "fd77:9::1", "02:00:00:00:01:01"),
        Port("far", "down1", "10.77.9.2", "fd77:9::2", "02:00:00:00:01:02"),
    ),
    (
        Port("far", "up2", "10.77.2.254", "fd77:2::fe", "02:00:00:00:02:01"),
        Port("receiver", "down2", "10.77.2.1", "fd77:2::1", "02:00:00:00:02:02"),
    ),
)
NEAR_ADDRESS = CABLES[0][1].address  # as the sender sees it, without delay
PORTS = [port for cable in CABLES for port in cable]
ROUTES = {
    "sender": ("default via 10.77.1.254", "default via fd77:1::fe"),
    "near": ("default via 10.77.9.2", "default via fd77:9::2"),
    "far": ("10.77.1.0/24 via 10.77.9.1", "fd77:1::/64 via fd77:9::1", f"{OTHER_ADDRESS}/32 via 10.77.2.1"),
    "receiver": ("default via 10.77.2.254", "default via fd77:2::fe"),
}


class LineNode(NamespaceHost):
    """A namespace on the line."""

    def __init__(self, port: Port) -> None:
        """Make the namespace that a port is in; its interfaces come later."""
        super().__init__(port.place, 0)
        self.address, self.address6, self.interface = port.address, port.address6, port.device
        self.set(SYSCTLS)

    def run(self, *command: str, text: str | None = None) -> str:
        """Return the output of a command in this namespace."""
        return run("ip", "netns", "exec", self.name, *command, text=text)


class LongLine:
    """The four places, and what the line does to packets."""

    def __init__(self, rtt_ms: float, *, single_packets: bool = True, mtu_bytes: int = 1500) -> None:
        """Build the line.

        Args:
            rtt_ms: round-trip time without queueing, milliseconds.
            single_packets: no super-packets on the way, so that loss and buffers meet one segment at a time.
            mtu_bytes: of every interface.
        """
        self.sender, self.near, self.far = (LineNode(cable[0]) for cable in CABLES)
        self.receiver = LineNode(CABLES[-1][1])
        self._rtt_ms, self._loss_percent, self._frame_bps, self._jitter_ms = rtt_ms, 0.0, 0, 0.0
        self._shuffles = False
        for left, right in CABLES:
            veth = ("type", "veth", "peer", right.device, "address", right.mac, "netns", right.place)
            run("ip", "-n", left.place, "link", "add", left.device, "address", left.mac, *veth)
        for place, commands in _commands(mtu_bytes).items():
            run("ip", "-n", place, "-batch", "-", text="\n".join(commands))
        for port in PORTS if single_packets else ():
            off = ("tso", "off", "gso", "off", "gro", "off")
            run("ip", "netns", "exec", port.place, "ethtool", "-K", port.device, *off)
        for device in FAR_ENDS:
            self.far.run("tc", "qdisc", "add", "dev", device, "root", *self._netem())
        self.seed(SEED)

    def _netem(self) -> list[str]:
        loss = ["loss", f"{self._loss_percent}%"] if self._loss_percent else []
        rate = ["rate", f"{self._frame_bps}bit"] if self._frame_bps else []
        jitter = [f"{self._jitter_ms}ms"] if self._jitter_ms else []
        return ["netem", "delay", f"{self._rtt_ms / 2}ms", *jitter, "limit", str(QUEUE_PACKETS), *loss, *rate]

    def change(
        self,
        *,
        rtt_ms: float | None = None,
        loss_percent: float | None = None,
        frame_bps: int | None = None,
        jitter_ms: float | None = None,
    ) -> None:
        """Change the line's round trip, what it loses of each hundred packets, its rate or jitter, in each direction.

        Its rate has no bucket of tokens: nothing is ever earlier than a line would bring it. With a rate, jitter lets
        no packet overtake another.
        """
        self._rtt_ms = self._rtt_ms if rtt_ms is None else rtt_ms
        self._loss_percent = self._loss_percent if loss_percent is None else loss_percent
        self._frame_bps = self._frame_bps if frame_bps is None else frame_bps
        self._jitter_ms = self._jitter_ms if jitter_ms is None else jitter_ms
        batch = [f"qdisc change dev {device} root {' '.join(self._netem())}" for device in FAR_ENDS]
        self.far.run("tc", "-batch", "-", text="\n".join(batch))

    def seed(self, seed: int) -> None:
        """Begin the random numbers of both directions anew; ``change`` gives them a seed of the kernel's choice."""
        for number, device in enumerate(FAR_ENDS):
            self.far.inside(partial(seeded, device, seed + number))
        if self._shuffles:
            self.near.inside(lambda: seeded("up1", seed + len(FAR_ENDS)))

    def narrow(self, frame_bps: int, buffer_bytes: int, burst_s: float = BURST_S) -> None:
        """Give the bottleneck a rate, counted in Ethernet frames, and a buffer, the bucket of tokens included."""
        burst_bytes = max(3028, int(frame_bps / 8 * burst_s))  # two frames at least
        limits = ["burst", str(burst_bytes), "limit", str(buffer_bytes - burst_bytes)]
        parameters = ["tbf", "rate", f"{frame_bps}bit", *limits]
        self.near.run("tc", "qdisc", "replace", "dev", "up1", "root", "handle", "1:", *parameters)

    def shuffle(self, jitter_ms: float) -> None:
        """Let packets overtake each other before the bottleneck: each waits there, by chance, up to twice the jitter.

        Until ``widen``; meanwhile its buffer has no end.
        """
        delay = ("delay", f"{jitter_ms}ms", f"{jitter_ms}ms", "limit", str(QUEUE_PACKETS))
        self.near.run("tc", "qdisc", "add", "dev", "up1", "parent", "1:1", "netem", *delay)
        self._shuffles = True

    def widen(self) -> None:
        """Take the bottleneck away, if there is one."""
        self.near.run("tc", "qdisc", "replace", "dev", "up1", "root", "noqueue")
        self._shuffles = False

    def dropped(self) -> int:
        """Return how many packets the bottleneck has dropped since it was made."""
        (shown,) = json.loads(self.near.run("tc", "-s", "-j", "qdisc", "show", "dev", "up1", "root"))
        return int(shown["drops"])

    def remove(self) -> None:
        """Take the line down."""
        for place in (self.sender, self.near, self.far, self.receiver):
            place.remove()


def _commands(mtu_bytes: int) -> dict[str, list[str]]:
    """Return the commands of ``ip -batch`` that set a place up, by place."""
    commands: dict[str, list[str]] = {place: ["link set lo up"] for place in ROUTES}
    for left, right in CABLES:
        for own, other in ((left, right), (right, left)):
            commands[own.place] += [
                f"link set {own.device} mtu {mtu_bytes} addrgenmode none",
                f"link set {own.device} up",
                f"address add {own.address}/24 dev {own.device}",
                f"address add {own.address6}/64 dev {own.device} nodad",
                f"neighbour add {other.address} lladdr {other.mac} dev {own.device} nud permanent",
                f"neighbour add {other.address6} lladdr {other.mac} dev {own.device} nud permanent",
            ]
    commands["receiver"].append(f"address add {OTHER_ADDRESS}/32 dev down2")
    for place, routes in ROUTES.items():
        commands[place] += [f"route add {route}" for route in routes]
    return commands
