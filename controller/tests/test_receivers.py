"""Receivers that take less than they are sent, as their senders' kernels see it; what becomes of the plan."""

from dataclasses import replace

import pytest

from controller.state.lateness import late_promises
from controller.state.receivers import slow_now
from controller.tests.fakes import ready_site, sending_image
from topology.protocol import Hello
from topology.telemetry import EntryTelemetry, Telemetry

S = 1_000_000
MBIT = 10**6


class TellingHost:
    """A host's agent that tells each second what its entry has delivered."""

    def __init__(self, site, host, flow):
        self.site, self.host = site, host
        self.entry = EntryTelemetry(flow, 1, 1, 0, 0, 0, 180_000, wants=True, counted_since_ns=1)

    @property
    def granted_bps(self):
        sent = self.site.value.reported.hosts[self.host].sent
        return next(e.payload_bps for e in sent if e.flow.name == self.entry.name)

    def tells(self, mbit, closed_ms, seconds=1):
        """It delivers at a rate, and its receiver's window is closed for a part of each second."""
        for _ in range(seconds):
            self.site.clock.now_us += S
            self.entry = replace(
                self.entry,
                delivered_bytes=self.entry.delivered_bytes + mbit * MBIT // 8,
                busy_ms=1000,
                receiver_limited_ms=closed_ms,
            )
            epoch = self.site.value.reported.hosts[self.host].sent_epoch
            self.site.reports.host_telemetry(self.host, Telemetry(epoch, 1_000, (self.entry,)))
            self.site.converge()


@pytest.fixture
def site():
    """A site in which an image is under way."""
    found = ready_site()
    sending_image(found)
    return found


@pytest.fixture
def sender(site):
    return TellingHost(site, "base20", "image/base20")


def said(site, name):
    return [event.fields for event in site.state.events.since(0).events if event.name == name]


def background_bps(site):
    (entry,) = site.value.desired.plan.of_host("base23")
    return entry.payload_bps


def test_what_a_slow_receiver_cannot_take_is_given_to_others_within_two_seconds(site, sender):
    before_bps, granted_bps = background_bps(site), sender.granted_bps
    sender.tells(300, 400)
    assert background_bps(site) == before_bps, "one second says nothing yet"
    sender.tells(100, 700, seconds=2)
    assert 106 * MBIT < sender.granted_bps <= 106.25 * MBIT
    other = TellingHost(site, "base21", "image/base21")
    freed_bps = granted_bps - sender.granted_bps
    gained_bps = background_bps(site) - before_bps + other.granted_bps - granted_bps
    assert gained_bps > 0.99 * freed_bps, "the other sender of the class, or those after it"


def test_it_is_said_whose_receiver_is_slow_and_when_that_is_over(site, sender):
    sender.tells(100, 700, seconds=3)
    (slow,) = said(site, "receiver.slow")
    assert slow == {
        "host": "arch",
        "flow": "image/base20",
        "store": "",
        "drains": "100 Mbit/s",
        "why": "window",
    }
    sender.tells(100, 60, seconds=20)
    assert said(site, "receiver.over") == []
    sender.tells(106, 0, seconds=2)
    assert said(site, "receiver.over") == [{"host": "arch", "flow": "image/base20", "store": ""}]
    assert sender.granted_bps > 400 * MBIT


def test_a_sender_that_has_its_rate_or_nothing_to_send_says_nothing_of_its_receiver(site, sender):
    sender.tells(round(0.98 * sender.granted_bps / MBIT), 500, seconds=10)
    sender.entry = replace(sender.entry, wants=True)
    sender.tells(3, 0, seconds=10)
    assert said(site, "receiver.slow") == []


def test_what_was_learnt_lapses_with_the_stream_of_who_told_it(site, sender):
    sender.tells(100, 700, seconds=3)
    held_bps = sender.granted_bps
    site.reports.host_down("base20")
    site.reports.host_up(Hello("base20", "0", "6.12", epoch=sender.site.value.reported.hosts["base20"].sent_epoch))
    site.converge()
    assert sender.granted_bps > 3 * held_bps


@pytest.mark.parametrize("is_lost", [True, False], ids=["its stream ends", "it calls again before that is seen"])
def test_what_was_said_to_be_slow_is_said_to_be_over_when_nobody_says_it_any_more(site, sender, is_lost):
    sender.tells(100, 700, seconds=3)
    assert len(said(site, "receiver.slow")) == 1
    if is_lost:
        site.reports.host_down("base20")
        assert list(slow_now(site.value.reported.hosts["base20"])) == []
    site.reports.host_up(Hello("base20", "0", "6.12", epoch=site.value.reported.hosts["base20"].sent_epoch))
    assert said(site, "receiver.over") == [{"host": "arch", "flow": "image/base20", "store": ""}]


def test_a_promise_that_its_receiver_keeps_from_its_rate_is_late_by_its_receiver(site, sender):
    site.converge()
    sender.tells(100, 700, seconds=3)
    late = late_promises(site.state.site, site.value, site.clock.instant())
    assert "arch takes no more than 100 Mbit/s" in late["image"].why


def test_the_end_of_an_announcement_is_the_end_of_what_was_known_of_its_receiver(site, sender):
    sender.tells(100, 700, seconds=3)
    site.use_cases.forget("image").saved.result()
    site.converge()
    site.reports.host_telemetry("base20", Telemetry(0, 1_000, ()))
    assert site.value.reported.hosts["base20"].intakes == {}
    assert len(said(site, "receiver.over")) == 1
