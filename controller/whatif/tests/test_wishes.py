"""What a what-if is asked for is what the controller would be asked, and is promised the same."""

import json
import uuid
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.asker import CONTROLLER
from controller.checks import AnnouncementRequest, check_announcement
from controller.errors import HeadwayError
from controller.live_site import live_site_json, live_site_of
from controller.plan.announcements import Announcement
from controller.plan.keys import FlowId
from controller.plan.plan import THE_REST, Selector
from controller.plan.transitions import Stage
from controller.site import flow_between
from controller.state.installed import StepDone
from controller.tests.fakes import FakeSite
from controller.whatif.live import continuing
from controller.whatif.simulation import Simulation
from controller.whatif.supposed import StoreBucket
from controller.whatif.tests.supposing import BACKGROUND, S, image, site, supposed
from controller.whatif.virtual_site import VirtualSite
from controller.wishes import wish_of
from mininet_tests.testing.networks import FILES, chile_illinois, loaded
from topology.protocol import FlowClass
from topology.telemetry import StoreBrake, StoreTelemetry, Telemetry

NETWORKS = ("chile-illinois-2", "three-sites", "two-lanes", "two-lines")


def ready(network, **more):
    """A site of the controller's own parts in which all is well."""
    found = FakeSite(loaded(FILES[network]), **more)
    found.attach_all()
    found.wire()
    found.converge()
    return found


@pytest.fixture(scope="module")
def sites():
    """One for each network; each example leaves more promises in it."""
    return {network: ready(network) for network in NETWORKS}


def took(site, queues_us):
    """Let a transition of a controller far from its switches come last."""
    with site.state.changed:
        epoch, now_us = site.value.desired.plan.epoch, site.clock.now_us
        known = site.value.installed
        for number in range(16):  # so many that none before counts
            done = StepDone(epoch + 2 * number, Stage.QUEUES, now_us - queues_us, now_us)
            known = known.after(done)
        site.state.put(installed=known)


def tells(site, host, stores):
    """Let a host tell where it puts what it receives."""
    site.reports.host_telemetry(host, Telemetry(0, 1_000, (), stores=stores))


@st.composite
def stores(draw):
    """What a host with an agent tells: of nothing, or of a store, empty or not, of all that comes or of some."""
    holds_bytes = draw(st.integers(10**6, 10**10))
    room_bytes = draw(st.integers(0, holds_bytes))
    ports = draw(st.sampled_from([(0, 65535), (5_000, 5_100)]))
    one = StoreTelemetry(
        "data",
        draw(st.integers(0, 10**9)),
        draw(st.booleans()),
        0,
        room_bytes,
        StoreBrake.DISK,
        draw(st.none() | st.integers(10**7, 10**10)),
        *ports,
        most_bytes=draw(st.sampled_from([0, holds_bytes])),
    )
    return draw(st.sampled_from([(), (one,), (one,)]))


def as_virtual(site):
    """The site of a what-if that goes on from it."""
    scenario = continuing(site.reports.live_site(), site.clock.now_us + S)
    return VirtualSite(scenario.site, scenario.from_us, scenario.delays, scenario.begun)


@st.composite
def announcements(draw, network):
    """Anything that a client may announce."""
    hosts = [host.name for host in network.hosts]
    target = draw(st.sampled_from(hosts))
    senders = tuple(draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=2, unique=True)))
    lanes = draw(st.sampled_from([1, 1, 2]))
    return AnnouncementRequest(
        "name",
        draw(st.sampled_from([FlowClass.URGENT, FlowClass.BACKGROUND])),
        draw(st.integers(1, 10**10)),
        senders,
        target,
        draw(st.none() | st.integers(S, 300 * S)),
        lanes=lanes,
        is_called=lanes > 1 and draw(st.booleans()),
        session_us=draw(st.integers(0, 10 * S)),
        is_stored_by=draw(st.booleans()),
        selector=draw(st.sampled_from([THE_REST, Selector(dest_port=5_050)])),
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_same_announcement_is_the_same_wish_and_the_same_promise(sites, data):
    name = data.draw(st.sampled_from(NETWORKS))
    real = sites[name]
    took(real, data.draw(st.integers(1_000, 2 * S)))
    asked = data.draw(announcements(loaded(FILES[name])))
    asked = replace(asked, announcement_id=uuid.uuid4().hex)
    receiver = real.state.site.network.machine(asked.target)
    if receiver in real.value.reported.hosts:
        tells(real, receiver, data.draw(stores()))
    virtual = as_virtual(real)
    try:
        check_announcement(real.state.site, asked)
        wish = wish_of(real.state.site, real.value, asked, CONTROLLER)
    except HeadwayError as error:
        with pytest.raises(type(error)):
            virtual.announce(asked)
        return
    assert wish_of(virtual.site, virtual.state, asked, CONTROLLER) == wish
    said, foreseen = real.announce(asked), virtual.announce(asked)
    if isinstance(said, Announcement):
        assert replace(foreseen, sequence=said.sequence) == said
        real.use_cases.forget(asked.announcement_id).saved.result()
    else:
        assert foreseen == said


def test_a_session_is_promised_and_taken_as_it_is_said():
    (warm,) = Simulation(supposed(image(), of=site(standing=()))).run().transfers
    (long,) = Simulation(supposed(image(session_us=5 * S), of=site(standing=()))).run().transfers
    assert long.promised_us - warm.promised_us == pytest.approx(5 * S, abs=S)
    assert long.done_us - warm.done_us == pytest.approx(5 * S, abs=1_000)
    assert not long.is_late(long.done_us + S)


def test_a_pair_without_ipv6_is_promised_by_its_own_segments():
    network = loaded(FILES["three-sites"])
    scenario = supposed(of=site(network, standing=()))
    virtual = VirtualSite(scenario.site, scenario.from_us)
    asked = replace(image(), senders=("dl-b",), target="pt-a").announced("one")
    wish = wish_of(virtual.site, virtual.state, asked, CONTROLLER)
    assert network.framing.is_ipv6
    assert not wish.framing.is_ipv6


def test_a_pair_without_ipv6_fills_its_circuit_with_its_own_segments():
    network = loaded(FILES["three-sites"])
    beside = (("database", FlowClass.PREDICTABLE, "dl-b"), ("raw", FlowClass.BACKGROUND, "dl-b"))
    standing = tuple(flow_between(network, FlowId(name), c, (host, "pt-a")) for name, c, host in beside)
    asked, ocean_bps = replace(image(10**9), senders=("dl-b",), target="pt-a"), []

    def watch(_, loads_bps):
        ocean_bps.extend(loads_bps[hop] for hop in loads_bps if network.link(*hop).circuit == "ocean")

    Simulation(supposed(asked, of=replace(site(network, ()), standing=standing)), observe=watch).run()
    assert 0.995 * 400e6 < max(ocean_bps) <= 400e6


def test_switches_that_take_long_are_promised_for():
    near = supposed(image(), of=site(chile_illinois(delay_us=1_000), standing=()))
    far = replace(near, delays=replace(near.delays, meters_us=300_000))
    (soon,), (later,) = (Simulation(one).run().transfers for one in (near, far))
    assert later.promised_us - soon.promised_us >= 290_000


SLOW = {"arch": StoreBucket(200_000_000, 100_000_000)}


def test_a_scenario_s_store_is_promised_as_one_whose_operator_says_its_rate():
    real = ready("chile-illinois-2")
    drains_bps, holds_bytes = SLOW["arch"].drains_bps, SLOW["arch"].holds_bytes
    one = StoreTelemetry("store", 0, False, 0, holds_bytes, StoreBrake.DISK, drains_bps, most_bytes=holds_bytes)
    tells(real, "arch", (one,))
    asked = image(300_000_000).announced("image")
    said = real.announce(asked)
    network = real.state.site.network
    scenario = supposed(of=site(network), stores=SLOW)
    foreseen = Simulation(scenario).virtual.announce(asked)
    assert foreseen.stored_us is not None
    assert foreseen.promised_us - foreseen.announced_us == pytest.approx(said.promised_us - said.announced_us, abs=10)
    assert foreseen.stored_us - foreseen.announced_us == pytest.approx(said.stored_us - said.announced_us, abs=10)


@pytest.mark.parametrize("standing", [(), (BACKGROUND,)])
def test_what_is_sent_to_a_slow_store_is_promised_so_and_not_late(standing):
    one = replace(image(300_000_000), senders=("base20",))
    other = replace(one, name="other", senders=("base21",), first_us=one.first_us + S)
    run = Simulation(supposed(one, other, of=site(standing=standing), stores=SLOW, lasts_s=120)).run()
    assert [found.is_late(run.until_us) for found in run.transfers] == [False, False]
    assert [found.why for found in run.transfers] == ["", ""]
    first, second = run.transfers
    assert first.took_us / S > 8 * 200e6 / 200e6  # all but what fits into memory has to be drained
    assert second.done_us > first.done_us + 2 * S


def test_a_live_site_s_store_keeps_what_was_promised_of_it_and_how_full_it_is():
    real = ready("chile-illinois-2", standing=())
    tells(real, "arch", (StoreTelemetry("data", 0, True, 0, 10**7, StoreBrake.DISK, 10**8, most_bytes=10**8),))
    known = real.announce(image(200_000_000).announced("image"))
    live = live_site_of(json.loads(live_site_json(real.reports.live_site())))
    run = Simulation(continuing(live, real.clock.now_us + 60 * S)).run()
    (found,) = run.transfers
    assert not found.is_late(run.until_us)
    assert found.promised_us == known.promised_us
    assert found.took_us / S > 8 * 190e6 / 1e8  # but for the room that there was
