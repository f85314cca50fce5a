"""A database with many reservations on the books, all of them admitted."""

from controller.database import Changes, Database
from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import LifecycleEvent
from controller.plan.policy import DEFAULT_POLICY
from controller.site import Site
from topology.network import Network
from topology.protocol import FlowClass

S = 1_000_000
HOUR_US, MONTH_HOURS = 3_600 * S, 720
TOGETHER = 1_000
RATE_BPS = 1_000_000


def filled(network: Network, reservations: int, url: str, now_us: int) -> Database:
    """Return an open database with reservations between hosts, each of an hour of the month that begins now."""
    ledger = Site(network, DEFAULT_POLICY, (), lease_ms=3_000).ledger()
    target, senders = network.hosts[0].name, network.hosts[1:]
    for number in range(reservations):
        start_us = now_us + HOUR_US * (1 + number % MONTH_HOURS)
        sender = senders[number % len(senders)].name
        asked = Request(sender, target, FlowClass.URGENT, RATE_BPS, start_us, start_us + HOUR_US)
        name = f"r{number}"
        ledger.hold(asked, Created(name, now_us))
        ledger.happened(name, LifecycleEvent.COMMIT, now_us)
    database = Database(url, save_within_s=60)
    database.open()
    books = tuple(ledger.reservations.values())
    for first in range(0, len(books), TOGETHER):
        database.save(Changes(reservations=books[first : first + TOGETHER])).result()
    return database
