"""What each flow class may have of a circuit."""

from dataclasses import dataclass

from topology.protocol import FlowClass, Tail
from topology.wire import PPM, cwnd_segments

SUPER_PACKET_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class ClassPolicy:
    """How one flow class shares the circuit.

    Attributes:
        guarantee_ppm: kept for the class at all times, parts per million of the circuit.
        cap_ppm: never more than this.
        priority: who is served first from what the guarantees leave; 0 is first.
        dscp: DiffServ code point set on the class's packets.
        tail: coded if parities follow all its transfers, whatever a flow says.
    """

    guarantee_ppm: int
    cap_ppm: int
    priority: int
    dscp: int
    tail: Tail = Tail.PLAIN


@dataclass(frozen=True, slots=True)
class Policy:
    """The classes, the slack of a window, what waiting flows keep, and who is led round a dead circuit.

    ``standby_ppm``: what the flows of one announcement keep together, of the least circuit they cross, while they have
    nothing to send. It carries handshakes, and what the end of a flight has lost: at 1 Gbit/s and a round trip of
    180 ms, 20 Mbit/s send 1% of a flight again in 90 ms.

    ``window_slack_ppm``: Freemon 2013 measured the best total at 0.92% over the formula (14,764 against 14,629
    segments). Ours paces as well, so the window is a ceiling and not the clock, and may be a little wider.

    ``least_slack_us``: the slack is never less than what the rate carries in this time, or four super-packets if that
    is less. TCP hands over super-packets of a millisecond, at most 64 KiB, and each second one is confirmed. On a path
    of 50 ms, 2% are a single millisecond, and each loss would leave the line idle.

    ``protected``: classes that a switch itself sends by another circuit to the same switch when their own is dead.
    """

    classes: dict[FlowClass, ClassPolicy]
    window_slack_ppm: int = 20_000
    least_slack_us: int = 2_000
    standby_ppm: int = 20_000
    protected: frozenset[FlowClass] = frozenset({FlowClass.URGENT, FlowClass.PREDICTABLE})

    def __post_init__(self) -> None:
        """Refuse guarantees that do not fit.

        Raises:
            ValueError: a class is missing, a cap lies below its guarantee, or the guarantees exceed the circuit.
        """
        for flow_class in FlowClass:
            if flow_class not in self.classes:
                raise ValueError(f"the policy says nothing about {flow_class}")
        for flow_class, policy in self.classes.items():
            if not 0 < policy.guarantee_ppm <= policy.cap_ppm <= PPM:
                raise ValueError(
                    f"{flow_class}: need 0 < guarantee <= cap <= 100%, "
                    f"got {policy.guarantee_ppm / 10_000:g}% and {policy.cap_ppm / 10_000:g}%"
                )
        total_ppm = sum(p.guarantee_ppm for p in self.classes.values())
        if total_ppm > PPM:
            raise ValueError(f"the guarantees come to {total_ppm / 10_000:g}% of the circuit")

    def most_bps(self, flow_class: FlowClass, circuit_bps: int) -> int:
        """Return what a class can have of a circuit, at its layer: its cap, or what the others' guarantees leave."""
        others_ppm = sum(policy.guarantee_ppm for c, policy in self.classes.items() if c is not flow_class)
        return circuit_bps * min(self.classes[flow_class].cap_ppm, PPM - others_ppm) // PPM

    def window_segments(self, payload_bps: int, rtt_us: int, mss_bytes: int) -> int:
        """Return the window that a rate needs on a path: rate x round trip, and the slack.

        Raises:
            ValueError: an argument is not positive.
        """
        bare_segments = cwnd_segments(payload_bps, rtt_us, mss_bytes)
        slack_segments = -(-bare_segments * self.window_slack_ppm // PPM)
        least_segments = cwnd_segments(payload_bps, self.least_slack_us, mss_bytes)
        return bare_segments + max(slack_segments, min(least_segments, 4 * SUPER_PACKET_BYTES // mss_bytes))


# Source of the shares: Freemon 2013 section IV.B. A class that is not wanted keeps a trickle, so that a handshake or
# a ping always passes. DSCP: AF31 RFC 2597, EF RFC 3246, LE RFC 8622.
DEFAULT_POLICY = Policy(
    {
        FlowClass.PREDICTABLE: ClassPolicy(guarantee_ppm=50_000, cap_ppm=50_000, priority=0, dscp=26),
        FlowClass.URGENT: ClassPolicy(guarantee_ppm=200, cap_ppm=PPM, priority=1, dscp=46),
        FlowClass.BACKGROUND: ClassPolicy(guarantee_ppm=10_000, cap_ppm=PPM, priority=2, dscp=1),
        FlowClass.UNPLANNED: ClassPolicy(guarantee_ppm=1_000, cap_ppm=1_000, priority=3, dscp=0),
    }
)
