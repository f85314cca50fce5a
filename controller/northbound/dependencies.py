"""What the API stands on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller.announced import Announced
from controller.audit.record import DriftView
from controller.database import ChainRow, ChangeQuery
from controller.events import Events
from controller.northbound.turns import Turns
from controller.northbound.under_way import UnderWay
from controller.northbound.webhooks import Webhook
from controller.plan.leading import LeaderView
from controller.reports import Reports
from controller.reserved import Reserved
from controller.security.own_certificates import EndingCertificate
from controller.use_cases import UseCases
from topology.network import Network


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What is behind the API.

    Attributes:
        reports: the plan, and what hosts and switches have said.
        use_cases: reservations and announcements.
        reserved: reservations to read, those that have ended too.
        announced: announcements to read, those that have ended too.
        events: what happens.
        network: the topology.
        now_us: the clock, Unix time.
        connected: the dpids of the switches that are connected now.
        drift: what audits have seen.
        changes: what is remembered of changes; raises DatabaseFailed if it cannot be read.
        names: by which the API may be asked for, beside addresses and localhost.
        certificates: by connected host, when its agent's certificate ends, Unix time in seconds.
        own_certificates: the controller's and its authority's, with when they end.
        switch_certificates: by switch, when the certificate ends that it shows, Unix time in seconds.
        webhooks: who is told of what happens.
        leader: which controller leads.
        standbys: who stands by beside us as is seen now, for people.
        leave: lets another one lead.
        others: where the others of a pair take requests, as the configuration says: a page goes to these alone.
        turns: of answers that take long.
        under_way: requests that change something, of one of a pair.
    """

    reports: Reports
    use_cases: UseCases
    reserved: Reserved
    announced: Announced
    events: Events
    network: Network
    now_us: Callable[[], int]
    connected: Callable[[], frozenset[int]]
    drift: Callable[[], DriftView]
    changes: Callable[[ChangeQuery], tuple[ChainRow, ...]]
    names: frozenset[str] = frozenset()
    certificates: Callable[[], Mapping[str, float]] = dict
    own_certificates: Callable[[], tuple[EndingCertificate, ...]] = tuple
    switch_certificates: Callable[[], Mapping[str, float]] = dict
    webhooks: tuple[Webhook, ...] = ()
    leader: Callable[[], LeaderView] = LeaderView
    standbys: Callable[[], tuple[str, ...]] = tuple
    leave: Callable[[], None] = lambda: None
    others: tuple[str, ...] = ()
    turns: Turns = field(default_factory=Turns)
    under_way: UnderWay = field(default_factory=UnderWay)
