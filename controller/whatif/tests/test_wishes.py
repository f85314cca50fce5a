"""What a what-if is asked for is what the controller would be asked, and is promised the same."""

import uuid
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.asker import CONTROLLER
from controller.checks import AnnouncementRequest, check_announcement
from controller.errors import HeadwayError
from controller.plan.announcements import Announcement
from controller.plan.transitions import Stage
from controller.state.installed import StepDone
from controller.tests.fakes import FakeSite
from controller.whatif.live import continuing
from controller.whatif.simulation import Simulation
from controller.whatif.tests.supposing import S, image, site, supposed
from controller.whatif.virtual_site import VirtualSite
from controller.wishes import wish_of
from mininet_tests.testing.networks import FILES, chile_illinois, loaded
from topology.protocol import FlowClass

NETWORKS = ("chile-illinois-2", "three-sites", "two-lanes", "two-lines")


def ready(network):
    """A site of the controller's own parts in which all is well."""
    found = FakeSite(loaded(FILES[network]))
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
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_same_announcement_is_the_same_wish_and_the_same_promise(sites, data):
    name = data.draw(st.sampled_from(NETWORKS))
    real = sites[name]
    took(real, data.draw(st.integers(1_000, 2 * S)))
    asked = data.draw(announcements(loaded(FILES[name])))
    asked = replace(asked, announcement_id=uuid.uuid4().hex)
    virtual = as_virtual(real)
    try:
        check_announcement(real.state.site, asked)
    except HeadwayError as error:
        with pytest.raises(type(error)):
            virtual.announce(asked)
        return
    wish = wish_of(real.state.site, real.value, asked, CONTROLLER)
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


def test_switches_that_take_long_are_promised_for():
    near = supposed(image(), of=site(chile_illinois(delay_us=1_000), standing=()))
    far = replace(near, delays=replace(near.delays, meters_us=300_000))
    (soon,), (later,) = (Simulation(one).run().transfers for one in (near, far))
    assert later.promised_us - soon.promised_us >= 290_000
