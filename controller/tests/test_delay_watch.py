"""A circuit whose delay nobody knows: hosts see how long it takes, and the plan goes by that."""

from dataclasses import replace

import pytest

from controller.database.rows import Changes
from controller.delay_watch import take_saved_delays
from controller.plan.delays import PERIOD_US, DelaySource, MeasuredDelay
from controller.plan.lines import RETURN_AFTER_US
from controller.tests.fakes import FakeSite, image, ready_site, sending_image
from controller.work.timekeeper import prepare
from mininet_tests.testing.networks import chile_illinois, chile_illinois_2
from topology.protocol import Hello
from topology.relinking import relinked
from topology.telemetry import EntryTelemetry, Telemetry

S = 1_000_000
DATABASE, RAW = "base22", "base23"


def bounded(network, most_us=300_000):
    """The network, of whose circuits the file says no more than a bound."""
    return relinked(
        network,
        network.framing,
        lambda hop, link: replace(link, delay_us=most_us, is_bound=True) if link.circuit else link,
    )


@pytest.fixture
def site():
    return ready_site(network=bounded(chile_illinois()))


class Tells:
    """A host's agent that tells each second what an entry has delivered, and its least round trip."""

    def __init__(self, site, host, flow):
        self.site, self.host = site, host
        self.entry = EntryTelemetry(flow, 1, 1, 0, 0, 0, 180_000, wants=True, counted_since_ns=1)

    def tells(self, least_rtt_us, seconds=1, delivered_bytes=1_000_000):
        for _ in range(seconds):
            self.site.clock.now_us += S
            delivered = self.entry.delivered_bytes + delivered_bytes
            self.entry = replace(self.entry, delivered_bytes=delivered, least_rtt_us=least_rtt_us)
            epoch = self.site.value.reported.hosts[self.host].sent_epoch
            self.site.reports.host_telemetry(self.host, Telemetry(epoch, 1_000, (self.entry,)))
            self.site.converge()


def standing(site, host):
    """What tells for the flow that a host always has."""
    (entry,) = site.value.desired.plan.of_host(host)
    return Tells(site, host, entry.flow.name)


def windows(site):
    return {entry.flow.name: entry.window_segments for entry in site.value.desired.plan.entries}


def said(site, name):
    return [event.fields for event in site.state.events.since(0).events if event.name == name]


def rtt_us(circuit_us):
    """A round trip of that network: two links of a host's, there and back, beside the circuit."""
    site = chile_illinois()
    path = site.path("base20", "arch")
    return site.path_rtt_us(path) - 2 * 90_000 + 2 * circuit_us


def test_the_plan_goes_by_the_bound_and_then_by_what_was_measured(site):
    before, background = windows(site), standing(site, RAW)
    background.tells(rtt_us(90_000) + 1, seconds=PERIOD_US // S + 10)
    after = windows(site)
    assert all(after[name] < 0.4 * before[name] for name in before), "90 of 300 ms, and the slack"
    (measured,) = said(site, "circuit.delay_measured")
    assert measured == {"circuit": "chile-illinois", "measured": "90.001 ms", "hosts": RAW, "before": "300 ms"}
    (of_host,) = site.value.reported.hosts[RAW].sent
    assert of_host.window_segments == after[of_host.flow.name], "the host has been told"


def test_what_is_planned_by_a_measured_delay_is_what_is_planned_by_a_known_one(site):
    standing(site, RAW).tells(rtt_us(90_000), seconds=PERIOD_US // S + 10)
    known = ready_site(network=chile_illinois())
    assert windows(site) == windows(known)


def test_whoever_looks_sees_what_the_plan_goes_by(site):
    from controller.northbound.rest import render

    network = site.state.site.network
    (before,) = render.circuits(site.reports.view(), network)
    assert before["delay"] == {
        "one_way_us": 300_000,
        "source": DelaySource.BOUND,
        "measured_at": None,
        "measured_by": [],
    }
    standing(site, RAW).tells(rtt_us(90_000), seconds=PERIOD_US // S + 10)
    (after,) = render.circuits(site.reports.view(), network)
    assert (after["delay"]["one_way_us"], after["delay"]["source"]) == (90_000, DelaySource.MEASURED)
    assert after["delay"]["measured_by"] == [RAW]


def test_of_data_that_does_not_move_nothing_is_measured(site):
    standing(site, RAW).tells(rtt_us(90_000), seconds=PERIOD_US // S + 10, delivered_bytes=0)
    assert said(site, "circuit.delay_measured") == []


def test_what_cannot_be_is_said_with_both_and_the_bound_stays(site):
    before = windows(site)
    standing(site, RAW).tells(rtt_us(400_000), seconds=PERIOD_US // S + 10)
    refused = said(site, "circuit.delay_refused")
    assert refused[0] == {"circuit": "chile-illinois", "measured": "400 ms", "hosts": RAW, "at_most": "300 ms"}
    assert windows(site) == before


def test_a_start_goes_on_by_what_was_measured_before(site, tmp_path):
    database = f"sqlite:///{tmp_path}/promises.db"
    first = ready_site(network=bounded(chile_illinois()), database=database)
    standing(first, RAW).tells(rtt_us(90_000), seconds=PERIOD_US // S + 10)
    measured = windows(first)
    first.database.close()
    second = FakeSite(network=bounded(chile_illinois()), database=database, clock=first.clock)
    second.attach_all()
    second.converge()
    assert windows(second) == measured


def test_a_bound_that_is_less_than_what_was_measured_before_is_refused_at_the_start(tmp_path):
    database = f"sqlite:///{tmp_path}/promises.db"
    first = ready_site(network=bounded(chile_illinois()), database=database)
    first.database.save(Changes(delays=(MeasuredDelay("chile-illinois", 90_000, 1, (RAW,)),))).result()
    first.database.close()
    second = FakeSite(network=bounded(chile_illinois(), 80_000), database=database, clock=first.clock)
    assert [one["at_most"] for one in said(second, "circuit.delay_refused")] == ["80 ms"]
    assert second.state.site.network.measured_us == {}


def test_what_is_promised_stays_promised_when_a_delay_becomes_known_and_is_due_sooner_from_then_on(site):
    sending_image(site)
    first = site.announce(image("second"))
    with site.state.changed:
        take_saved_delays(site.state, [MeasuredDelay("chile-illinois", 90_000, 1, (RAW,))])
    site.converge()
    kept = site.value.wished.ledger.announcements["second"]
    assert kept.promised_us == first.promised_us
    third = site.announce(image("third"))
    assert third.promised_us > kept.promised_us, "it waits for both"


def test_a_new_stream_is_looked_at_anew(site):
    raw = standing(site, RAW)
    raw.tells(rtt_us(90_000), seconds=3)
    site.reports.host_down(RAW)
    site.reports.host_up(Hello(RAW, "0", "6.12", epoch=site.value.reported.hosts[RAW].sent_epoch))
    assert site.value.reported.hosts[RAW].moving == {}


def test_what_a_switch_leads_round_a_dead_line_is_no_measure_of_that_line():
    """The host is told of the other circuit some round trips later; a third of its window would be left for minutes."""
    site = ready_site(network=bounded(chile_illinois_2()))
    site.wire()
    raw, network = standing(site, RAW), site.state.site.network
    (wan,) = (link for tail, head, link in network.circuit_links if (tail, head) == ("ls1", "north"))
    raw.tells(rtt_us(90_000), seconds=20)
    site.port_said(1, wan.port_no, is_live=False)
    raw.tells(rtt_us(30_000))  # by the south, before the host is told
    site.port_said(1, wan.port_no, is_live=True)
    raw.tells(rtt_us(30_000), seconds=RETURN_AFTER_US // S + 1)
    raw.tells(rtt_us(90_000), seconds=PERIOD_US // S)
    measured = [(one["circuit"], one["measured"]) for one in said(site, "circuit.delay_measured")]
    assert measured == [("north", "90 ms")]


class AnotherFirst:
    """The state's lock, which somebody else gets before the next one who wants it."""

    def __init__(self, state, does):
        self._changed, self._state, self._does = state.changed, state, does
        state.changed = self

    def __enter__(self):
        """Let that one act first."""
        self._state.changed = self._changed
        with self._changed:
            self._does()
        return self._changed.__enter__()

    def __exit__(self, *why):
        """Let go of it."""
        return self._changed.__exit__(*why)


def test_plans_for_a_death_go_by_a_delay_that_becomes_known_as_they_are_begun():
    site = ready_site(network=bounded(chile_illinois_2()))
    state = site.state

    def becomes_known():
        take_saved_delays(state, [MeasuredDelay("south", 30_000, 1, (RAW,))])
        state.replan()

    AnotherFirst(state, becomes_known)
    prepare(state)
    begun = site.value.desired
    with state.changed:
        state.put(desired=replace(begun, prepared_for=None))
    prepare(state)
    assert site.value.desired == begun
