"""One circuit at one OSCARS 1.2, and a period in its units: Mbit/s and seconds of Unix time. Pure."""

from dataclasses import dataclass

from controller.plan.purchases import Period
from controller.providers.secrets import Secret
from controller.settings.urls import is_http_url

MBPS = 10**6
SECOND_US = 10**6
LAST_US = 2_145_916_800 * SECOND_US  # 2038-01-01T00:00:00Z: OSCARS keeps times in 32 bits and shows none beyond this


@dataclass(frozen=True, slots=True)
class OscarsPort:
    """Where the circuit leaves OSCARS' network.

    Attributes:
        device: URN of the device.
        port: URN of the port, ``device:port``.
        vlan_vid: 1 to 4094; 0 for untagged.

    Raises:
        ValueError: the port is none of the device's, or there is no such VLAN.
    """

    device: str
    port: str
    vlan_vid: int

    def __post_init__(self) -> None:
        """Refuse what OSCARS would not find."""
        if not self.device or not self.port.startswith(f"{self.device}:"):
            raise ValueError(f'"{self.port}" is no port of "{self.device}", try "{self.device}:1/1/c9/1"')
        if not 0 <= self.vlan_vid <= 4094:
            raise ValueError(f"VLAN {self.vlan_vid} is outside 0..4094 (0 for untagged)")


@dataclass(frozen=True, slots=True)
class OscarsSettings:
    """One circuit at one OSCARS.

    Attributes:
        url: of the server, without a path, as ``https://oscars.example:8201``.
        a_end: one end.
        z_end: the other.
        mtu_bytes: 1500 to 9000.
        token: access token, sent as bearer (RFC 6750).
        include: URNs of devices or ports that the path has to cross, in this order.
        exclude: URNs of devices or ports that it must not cross.
        deploy_us: how long it takes from a begin until the routers carry it, microseconds. Its own loops take 3 s
            each, and each of up to 5 tries on the routers 30 s.
        settle_us: how long a request without an answer may still be carried out, microseconds. OSCARS holds one lock
            while it tells routers of any circuit: 5 tries with 30 s between them, and more if there are more circuits.
        timeout_s: how long to wait for one answer. A commit computes paths and locks all reservations.

    Raises:
        ValueError: a value that OSCARS could not accept.
    """

    url: str
    a_end: OscarsPort
    z_end: OscarsPort
    mtu_bytes: int
    token: Secret
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    deploy_us: int = 120 * SECOND_US
    settle_us: int = 300 * SECOND_US
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        """Refuse what could not work."""
        if not is_http_url(self.url):
            raise ValueError('need the URL of an OSCARS server without user and password, try "https://oscars:8201"')
        if both := set(self.include) & set(self.exclude):
            raise ValueError(f"the path has to cross {', '.join(sorted(both))}, and must not")
        if self.a_end == self.z_end:
            raise ValueError(f"both ends of the circuit are VLAN {self.a_end.vlan_vid} of {self.a_end.port}")
        if not 1500 <= self.mtu_bytes <= 9000:
            raise ValueError(f"OSCARS carries an MTU of 1500 to 9000 bytes, got {self.mtu_bytes}")
        if self.deploy_us < 0 or self.timeout_s <= 0:
            raise ValueError(f"need a time to wait, got {self.deploy_us} us and {self.timeout_s:g} s")

    @property
    def ports(self) -> frozenset[tuple[str, int]]:
        """Return port and VLAN of both ends: what tells our circuits from others' of the same name."""
        return frozenset((end.port, end.vlan_vid) for end in (self.a_end, self.z_end))


@dataclass(frozen=True, slots=True)
class OscarsPeriod:
    """A period in OSCARS' units."""

    begin_s: int
    end_s: int
    rate_mbps: int

    def period(self) -> Period:
        """Return it in ours."""
        return Period(self.begin_s * SECOND_US, self.end_s * SECOND_US, self.rate_mbps * MBPS)


def oscars_period(period: Period) -> OscarsPeriod:
    """Return a period in OSCARS' units: its rate exactly, its times outwards to whole seconds.

    Raises:
        ValueError: the rate is no whole number of Mbit/s, or OSCARS could not say the end.
    """
    rate_mbps, rest_bps = divmod(period.rate_bps, MBPS)
    if rest_bps or not rate_mbps:
        raise ValueError(f"{period.rate_bps:,} bit/s is not a positive whole number of Mbit/s")
    if period.end_us > LAST_US:
        raise ValueError("OSCARS has no times after 2038-01-01T00:00:00Z")
    return OscarsPeriod(period.start_us // SECOND_US, -(-period.end_us // SECOND_US), rate_mbps)
