"""What can go wrong between us and a switch.

SouthboundError
├── SwitchError             something about one OpenFlow switch
│   ├── SwitchGone          it is not connected, or the connection broke before the answer
│   ├── SwitchTimeout       it is connected and did not answer in time
│   ├── SwitchRefused       it answered with OFPErrorMsg
│   ├── SwitchTooSmall      it has no room for what is planned there, by its own word
│   └── RuleTaken           somebody else's rule stands where ours should
├── NotSettable             a desired state that asks for what is not ours, or contradicts itself
├── MetersExhausted         a switch would need more meters than there are numbers for
├── NotExpressible          a value that the wire format cannot carry exactly
├── QueueError              something about one port's queues in OVSDB
│   ├── DatabaseGone        the OVSDB server cannot be reached, or did not answer in time
│   ├── DatabaseRefused     the OVSDB server refused the transaction
│   ├── DatabaseOutranked   somebody who leads under a later term has written there
│   ├── NoSuchPort          the database has no port of that name
│   ├── ForeignQos          the port carries a QoS row that is not ours
│   ├── RateTooHigh         the switch's Open vSwitch would set another rate
│   └── QueuesNotApplied    written, and ovs-vswitchd has not acted on it in time
└── FrameworkUnknown        an os-ken that our repairs were not tried on

They are data classes, but not frozen ones: contextlib writes ``__traceback__`` of an exception that passes through it.
"""

from dataclasses import dataclass


class SouthboundError(Exception):
    """Root of everything raised by ``controller.southbound`` about switches."""


class SwitchError(SouthboundError):
    """Something about one OpenFlow switch; every kind has ``dpid``."""

    dpid: int


@dataclass(eq=False)
class SwitchGone(SwitchError):
    """The switch is not connected, or its connection broke before it had confirmed."""

    dpid: int

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"switch {self.dpid:#018x} is not connected; it keeps forwarding by the rules it has"


@dataclass(eq=False)
class SwitchTimeout(SwitchError):
    """The switch is connected and did not confirm in time; what it has applied is unknown."""

    dpid: int
    timeout_s: float

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"switch {self.dpid:#018x} did not confirm within {self.timeout_s:g} s"


@dataclass(eq=False)
class SwitchRefused(SwitchError):
    """The switch refused a message; nothing of a later phase was sent.

    Attributes:
        dpid: the switch.
        error_type: ``OFPErrorMsg.type``, OpenFlow 1.3 section 7.4.4.
        error_code: ``OFPErrorMsg.code``.
        error_name: both as OpenFlow names them.
        message: what was refused.
        refusals: how many messages of the batch were refused; the first one is described.
    """

    dpid: int
    error_type: int
    error_code: int
    error_name: str
    message: object
    refusals: int

    @property
    def is_outranked(self) -> bool:
        """Whether it obeys another master by now: OFPBRC_IS_SLAVE."""
        return (self.error_type, self.error_code) == (1, 10)

    def __str__(self) -> str:
        """Return what happened, for people."""
        more = f" (and {self.refusals - 1} more)" if self.refusals > 1 else ""
        return f"switch {self.dpid:#018x} refused [{self.message}]{more}: {self.error_name}"


@dataclass(eq=False)
class SwitchTooSmall(SwitchError):
    """The switch has said that it does not hold so much; nothing was sent.

    Attributes:
        dpid: the switch.
        what: of which it has too few.
        needed: how many are needed.
        most: how many it holds.
    """

    dpid: int
    what: str
    needed: int
    most: int

    def __str__(self) -> str:
        """Return what is wrong and what cures it, for people."""
        short = f"switch {self.dpid:#018x} holds {self.most:,} {self.what} and {self.needed:,} are needed"
        return f"{short}: spread its hosts over several switches, or take one that holds more"


@dataclass(eq=False)
class RuleTaken(SwitchError):
    """Somebody else's rule has the table, priority and match that a desired rule needs."""

    dpid: int
    rule: object
    cookie: int

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"switch {self.dpid:#018x}: a rule not ours (cookie {self.cookie:#x}) stands where [{self.rule}] should"


@dataclass(eq=False)
class NotSettable(SouthboundError, ValueError):
    """A desired state that asks for what is not Headway's to set, or contradicts itself."""

    what: str
    value: int

    def __str__(self) -> str:
        """Return what is wrong, for people."""
        return f"{self.what}, got {self.value:#x}"


@dataclass(eq=False)
class MetersExhausted(SouthboundError):
    """More is planned from the hosts of a switch than there are meters for; nothing was sent."""

    switch: str
    needed: int
    most: int

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"{self.switch} would need {self.needed:,} meters for what is planned there, and there are {self.most:,}"


@dataclass(eq=False)
class NotExpressible(SouthboundError, ValueError):
    """A value that the wire format cannot carry exactly; nothing is rounded."""

    what: str
    value: int
    unit: str
    need: str

    def __str__(self) -> str:
        """Return what is wrong, for people."""
        return f"{self.what} of {self.value:,} {self.unit} cannot be set: need {self.need}"


class QueueError(SouthboundError):
    """Something about queues in OVSDB."""


@dataclass(eq=False)
class DatabaseGone(QueueError):
    """The OVSDB server cannot be reached, or did not answer in time."""

    remote: str
    timeout_s: float

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"no answer from the OVSDB server at {self.remote} within {self.timeout_s:g} s"


@dataclass(eq=False)
class DatabaseRefused(QueueError):
    """The OVSDB server refused the transaction; nothing was changed."""

    remote: str
    reason: str

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"the OVSDB server at {self.remote} refused the queues: {self.reason}"


@dataclass(eq=False)
class DatabaseOutranked(QueueError):
    """A controller that leads under a later term has written our rows; nothing was changed."""

    remote: str
    ours: int
    found: int

    def __str__(self) -> str:
        """Return what happened, and what follows, for people."""
        return (
            f"the queues behind {self.remote} are another controller's (term {self.found}, ours is {self.ours}): "
            "this one writes none there any more"
        )


@dataclass(eq=False)
class NoSuchPort(QueueError):
    """The database has no port of that name."""

    remote: str
    port_name: str

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"the OVSDB server at {self.remote} knows no port {self.port_name}"


@dataclass(eq=False)
class ForeignQos(QueueError):
    """The port carries a QoS row that is not ours."""

    port_name: str
    qos_uuid: str
    qos_type: str

    def __str__(self) -> str:
        """Return what happened, and what to try, for people."""
        return (
            f"port {self.port_name} carries QoS {self.qos_uuid} ({self.qos_type}), which Headway did not make; "
            f"if it may go: ovs-vsctl clear port {self.port_name} qos"
        )


@dataclass(eq=False)
class RateTooHigh(QueueError):
    """Open vSwitch before 3.2 keeps 32 bits of an HTB rate in bytes a second: 100 Gbit/s would become 31; none is set.

    Attributes:
        port_name: the port.
        rate_bps: what it is to send at, bit/s of frames.
        most_bps: what can be set, bit/s.
        version: of that Open vSwitch, as its database says it; "" if it does not.
    """

    port_name: str
    rate_bps: int
    most_bps: int
    version: str

    def __str__(self) -> str:
        """Return what is wrong and what cures it, for people."""
        wants = f"port {self.port_name} is to send at {self.rate_bps:,} bit/s"
        if self.version:
            return f"{wants}, and Open vSwitch {self.version} sets at most {self.most_bps:,}: it takes 3.2 or newer"
        return (
            f"{wants}, which takes Open vSwitch 3.2 or newer, and its database does not say which it is: "
            "ovs-vsctl set Open_vSwitch . ovs_version=VERSION, as ovs-ctl does"
        )


@dataclass(eq=False)
class QueuesNotApplied(QueueError):
    """The queues are written, and ovs-vswitchd has not acted on them in time."""

    remote: str
    timeout_s: float
    asked_cfg: int
    reached_cfg: int

    def __str__(self) -> str:
        """Return what happened, for people."""
        return (
            f"ovs-vswitchd behind {self.remote} is at configuration {self.reached_cfg}, not {self.asked_cfg}, "
            f"after {self.timeout_s:g} s"
        )


@dataclass(eq=False)
class FrameworkUnknown(SouthboundError):
    """An os-ken, or a hub of it, that our repairs were not tried on."""

    found: str
    known: str

    def __str__(self) -> str:
        """Return what is wrong, for people."""
        return (
            f"found {self.found}, need {self.known}: its defects are repaired for that one only (docs/decisions/0001)"
        )
