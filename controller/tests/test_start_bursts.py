"""A start that overruns a port's buffer is said once, and where it can be seen."""

from dataclasses import replace

import pytest

from controller.start_bursts import StartBurstWatch
from controller.tests.fakes import FakeSite, ready_site, sending_image, watch_of
from controller.work.timekeeper import Timekeeper
from mininet_tests.testing.networks import chile_illinois


def small_buffer(buffer_bytes):
    """The path to Chile with another buffer at the port of its circuit."""
    network = chile_illinois()
    edge = network.graph.edges["ls1", "ch1"]
    edge["link"] = replace(edge["link"], buffer_bytes=buffer_bytes)
    return network


def said(site):
    return [e.fields for e in site.state.events.since(0).events if e.name == "burst.too_large"]


@pytest.fixture
def tight():
    """A site whose port cannot even hold what paced senders put there at once."""
    site = FakeSite(small_buffer(60_000))
    site.attach_all()
    site.converge()
    return site


def test_a_start_that_fits_is_not_spoken_of():
    site = ready_site()
    sending_image(site)
    StartBurstWatch(site.state).look()
    assert said(site) == []


def test_the_clocks_thread_says_what_does_not_fit(tight):
    sending_image(tight)
    Timekeeper(tight.state, tight.use_cases, watch_of(tight)).step()
    (fields,) = said(tight)
    assert (fields["link"], fields["buffer_bytes"]) == ("ls1->ch1", 60_000)
    assert fields["needed_bytes"] > 60_000
    assert fields["senders"] == "base23, base20, base21, base22"
    assert "into 60 kB" in fields["why"]


def test_it_is_said_once_and_again_when_it_has_fitted_in_between(tight):
    watch = StartBurstWatch(tight.state)
    sending_image(tight)
    for gone in ("base22", "base23"):  # other agents, and still too large
        watch.look()
        tight.reports.host_down(gone)
    watch.look()
    assert len(said(tight)) == 1
    tight.use_cases.forget("image")
    tight.use_cases.tick()
    watch.look()  # those that are left have no agent: one after another they need nothing
    assert len(said(tight)) == 1
    sending_image(tight, "another")
    watch.look()
    assert len(said(tight)) == 2


def test_a_host_without_its_agent_is_told_to_start_apart():
    site = ready_site()
    sending_image(site)
    with_agents = {c.choice for port in site.reports.bursts() for c in port.chosen}
    site.reports.host_down("base20")
    site.reports.host_down("base21")
    without = {c.choice for port in site.reports.bursts() if port.circuit for c in port.chosen}
    assert with_agents == {"pace"}
    assert without == {"pace", "stagger"}
