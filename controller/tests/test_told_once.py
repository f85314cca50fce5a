"""Each trouble of a promise is told once, and each end of it once, in the order in which they come."""

import pytest

from controller.state.moment import STARTING_US
from controller.tests.fakes import LEASE_MS, FakeSite, image, watch_of
from controller.work.timekeeper import Timekeeper
from mininet_tests.testing.networks import chile_illinois, chile_illinois_2
from topology.telemetry import EntryTelemetry, Telemetry

S = 1_000_000
LEASE_S = LEASE_MS / 1000
NORTH_AT_LS1 = (1, 8)
TROUBLES = {f"announcement.{what}" for what in ("late", "resumed", "not_carried", "carried")}


class Night:
    """A site that is up for long, and an image that is promised for half a minute after its announcement."""

    def __init__(self, network):
        self.site = FakeSite(network, standing=())
        self.site.attach_all()
        self.site.wire()
        self.site.clock.now_us += STARTING_US
        self.keeper = Timekeeper(self.site.state, self.site.use_cases, watch_of(self.site))
        self.keeper.step()
        self.began_us = self.site.clock()
        self.site.announce(image(deadline_us=30 * S))
        self.seen = self.site.state.events.last
        self.until(5 * S)
        self.site.demand("base20", "base21")
        self.until(10 * S)

    @property
    def image(self):
        """What was announced."""
        return self.site.value.wished.ledger.announcements["image"]

    def until(self, us):
        """Time passes until so long after the announcement, with a look each tenth of a second."""
        while True:
            self.site.converge()
            self.keeper.step()
            if self.site.clock() >= self.began_us + us:
                return
            self.site.clock.now_us = min(self.site.clock() + S // 10, self.began_us + us)

    def arrives(self):
        """All of the image is delivered."""
        for flow, size_bytes in zip(self.image.flows, self.image.sizes_bytes, strict=True):
            counted = EntryTelemetry(flow.name, 1, 1, size_bytes, 0, 0, 180_000, counted_since_ns=1)
            epoch = self.site.value.reported.hosts[flow.host].sent_epoch
            self.site.reports.host_telemetry(flow.host, Telemetry(epoch, 1000, (counted,)))

    def told(self):
        """What was said of the promise since this was asked last, with the seconds since the announcement."""
        events = self.site.state.events.since(self.seen)
        self.seen = events.last
        return [((e.at_us - self.began_us) / S, e.name.partition(".")[2]) for e in events.events if e.name in TROUBLES]


@pytest.fixture
def night():
    """A site with one circuit."""
    return Night(chile_illinois())


def test_a_sender_that_is_gone_for_good_makes_its_promise_not_carried_and_then_late_and_no_more(night):
    assert night.image.promised_us == night.began_us + 30 * S
    night.site.reports.host_down("base20")
    night.until(40 * S)
    assert night.told() == [(10.0, "not_carried"), (10.0 + LEASE_S, "late")]


def test_both_troubles_of_a_sender_that_was_away_for_ten_seconds_end_when_it_is_back(night):
    night.site.reports.host_down("base20")
    night.until(20 * S)
    night.site.attach("base20")
    night.until(29 * S)
    told = [(10.0, "not_carried"), (10.0 + LEASE_S, "late"), (20.0, "resumed"), (20.0, "carried")]
    assert night.told() == told


def test_a_promise_whose_sender_comes_back_behind_its_time_is_late_until_all_has_arrived(night):
    night.site.reports.host_down("base20")
    night.until(35 * S)
    night.site.attach("base20")
    night.until(40 * S)
    assert night.told() == [(10.0, "not_carried"), (10.0 + LEASE_S, "late")]
    night.arrives()
    night.until(41 * S)
    assert night.told() == [(40.0, "resumed"), (40.0, "carried")]


def test_a_dead_circuit_whose_flows_have_less_room_on_another_makes_a_promise_late_once():
    night = Night(chile_illinois_2())
    night.site.port_said(*NORTH_AT_LS1, is_live=False)
    night.until(40 * S)
    assert night.told() == [(10.0, "late")]


def test_a_promise_is_resumed_once_when_its_circuit_is_used_again():
    night = Night(chile_illinois_2())
    night.site.port_said(*NORTH_AT_LS1, is_live=False)
    night.until(15 * S)
    night.site.port_said(*NORTH_AT_LS1, is_live=True)
    night.until(29 * S)
    assert night.told() == [(10.0, "late"), (25.0, "resumed")]
