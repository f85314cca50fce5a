"""One circuit at one NSI aggregator proxy. Pure."""

import re
from dataclasses import dataclass

from controller.plan.purchases import Terms
from controller.providers.secrets import Secret
from controller.settings.urls import is_http_url

MBPS = 10**6
SECOND_US = 10**6

# The proxy's own pattern of a network URN (OGF GFD.202), with what may follow: the VLAN.
_STP = re.compile(
    r"urn:ogf:network:[A-Za-z0-9.\-]+:[0-9]{4}(?:[0-9]{2}){0,2}:[A-Za-z0-9_.:\-]+(?:\?vlan=(?P<vlan>[0-9,\-]{1,1000}))?"
)
_NSA = re.compile(r"urn:ogf:network:[A-Za-z0-9.\-]+:[0-9]{4}(?:[0-9]{2}){0,2}:[A-Za-z0-9_.:\-]+")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files by which the proxy and we know each other: its authority, and our certificate and key; None for none."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class NsiSettings:
    """One circuit at one NSI aggregator proxy.

    Attributes:
        url: of the proxy, a path included.
        requester_nsa: URN of who asks.
        provider_nsa: URN of the aggregator.
        source_stp: where the circuit leaves the providers' networks, ``urn:ogf:network:...?vlan=2000``.
        dest_stp: the other end.
        ero: the STPs in between that it has to cross, in this order.
        callback: what the proxy calls when it has news; it must be a URL, and nobody need listen there.
        token: access token; None where our certificate, or an address, says who we are.
        tls: files.
        rate_step_bps: bought in whole multiples of this: what is bought can grow no more.
        deploy_us: how long it takes from a begin until it carries.
        settle_us: how long a request without an answer may still be carried out.
        timeout_s: how long to wait for one answer.

    Raises:
        ValueError: a value that the proxy could not accept.
    """

    url: str
    requester_nsa: str
    provider_nsa: str
    source_stp: str
    dest_stp: str
    ero: tuple[str, ...] = ()
    callback: str = ""
    token: Secret | None = None
    tls: TlsFiles = TlsFiles()
    rate_step_bps: int = MBPS
    deploy_us: int = 300 * SECOND_US
    settle_us: int = 600 * SECOND_US
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        """Refuse what could not work."""
        for url in (self.url, self.callback or self.url):
            if not is_http_url(url):
                raise ValueError(f'"{url}" is no URL, try "https://proxy.example/aggregator-proxy"')
        for stp in (self.source_stp, self.dest_stp, *self.ero):
            if not _STP.fullmatch(stp):
                raise ValueError(f'"{stp}" is no STP, try "urn:ogf:network:example.net:2025:topology:port?vlan=2000"')
        for nsa in (self.requester_nsa, self.provider_nsa):
            if not _NSA.fullmatch(nsa):
                raise ValueError(f'"{nsa}" is no NSA, try "urn:ogf:network:example.net:2025:nsa:aggregator"')
        if self.source_stp == self.dest_stp:
            raise ValueError(f"both ends of the circuit are {self.source_stp}")
        if self.rate_step_bps % MBPS or self.rate_step_bps <= 0:
            raise ValueError(f"NSI sells whole Mbit/s, got steps of {self.rate_step_bps:,} bit/s")
        if not self.callback:
            object.__setattr__(self, "callback", f"{self.url.rstrip('/')}/health")

    @property
    def vlan_vids(self) -> dict[str, int]:
        """Return by end the VLAN in which it is handed over there; none of an end that leaves it open."""
        found = ((name, _STP.fullmatch(stp)) for name, stp in (("source", self.source_stp), ("dest", self.dest_stp)))
        labels = {name: match["vlan"] for name, match in found if match is not None and match["vlan"]}
        return {name: int(label) for name, label in labels.items() if label.isdigit()}

    @property
    def terms(self) -> Terms:
        """Return what is sold: at once, for any time, until it is given back, and never another rate."""
        return Terms(
            lead_us=self.deploy_us,
            tail_us=0,
            min_duration_us=0,
            gap_us=self.deploy_us,  # two at the same STP and VLAN: the first has to be taken down
            granularity_bps=self.rate_step_bps,
            settle_us=self.settle_us,
            fixed_rate=True,
            ends_itself=False,
        )
