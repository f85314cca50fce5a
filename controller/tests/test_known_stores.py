"""Stores that a receiving host tells of: what sends there is held to what they drain, together."""

import pytest

from controller.state.receivers import slow_now
from controller.tests.fakes import LEASE_MS, image, ready_site, sending_image
from mininet_tests.testing.networks import two_lanes
from topology.telemetry import StoreBrake, StoreTelemetry, Telemetry

S = 1_000_000
MBIT = 10**6


@pytest.fixture
def site():
    """A site in which an image is under way from two hosts."""
    found = ready_site()
    sending_image(found)
    return found


def store(mbit, *, waits=True, brake=StoreBrake.DISK, **more):
    return StoreTelemetry("data", mbit * MBIT, waits, 0, more.pop("room_bytes", 0), brake, **more)


def tells(site, one, seconds=1, host="arch"):
    for _ in range(seconds):
        site.clock.now_us += S
        site.reports.host_telemetry(host, Telemetry(0, 1_000, stores=(one,)))
        site.converge()


def image_mbit(site):
    """What both parts of the image are planned for together, payload."""
    entries = site.value.desired.plan.entries
    return sum(e.payload_bps for e in entries if e.flow.name.startswith("image/")) / MBIT


def said(site, name):
    return [event.fields for event in site.state.events.since(0).events if event.name == name]


def test_all_that_send_to_a_slow_disk_share_what_it_drains_and_a_little(site):
    tells(site, store(200), seconds=2)
    total = sum(e.payload_bps for e in site.value.desired.plan.entries)
    assert 212 < total / MBIT <= 212.5
    assert image_mbit(site) > 160, "database and background keep what their classes are guaranteed"
    assert said(site, "receiver.slow") == [
        {"host": "arch", "flow": "", "store": "data", "drains": "200 Mbit/s", "why": "disk"}
    ]


def test_a_slow_disk_is_learnt_of_what_comes_by_any_interface_of_its_host():
    site = ready_site(network=two_lanes())
    site.announce(image(senders=("arch",), target="base20.eth1"))
    site.converge()
    site.demand("arch")
    site.converge()
    assert image_mbit(site) > 500
    tells(site, store(100), seconds=2, host="base20")
    assert image_mbit(site) < 110


def test_a_disk_that_becomes_slow_and_comes_back_is_followed_within_two_seconds_each(site):
    tells(site, store(280), seconds=10)
    tells(site, store(70), seconds=2)
    assert image_mbit(site) < 75
    tells(site, store(70), seconds=2)
    tells(site, store(74, waits=False), seconds=2)
    assert image_mbit(site) > 500
    assert len(said(site, "receiver.over")) == 1


def test_a_noisy_disk_moves_the_plan_a_few_times_in_ten_minutes(site):
    for number in range(600):
        tells(site, store(200 + 60 * (number * 7919 % 11 - 5) // 5))
    assert len(said(site, "receiver.slow")) <= 3
    assert said(site, "receiver.over") == []


def test_a_store_of_some_senders_holds_those_alone(site):
    address = next(h.ip for h in site.state.site.network.hosts if h.name == "base20")
    one = store(100, senders=(f"{address}/32",))
    tells(site, one, seconds=2)
    rates = {e.flow.name: e.payload_bps / MBIT for e in site.value.desired.plan.entries}
    assert rates["image/base20"] <= 106.25
    assert rates["image/base21"] > 400


def test_a_store_of_some_ports_does_not_hold_a_flow_that_may_use_any(site):
    before = image_mbit(site)
    tells(site, store(100, first_port=5000, last_port=5100), seconds=3)
    assert image_mbit(site) == before


def test_a_rate_that_its_operator_says_holds_from_the_start_and_exactly(site):
    tells(site, store(3, waits=False, rate_bps=280 * MBIT))
    total = sum(e.payload_bps for e in site.value.desired.plan.entries)
    assert 279 < total / MBIT <= 280
    assert len(said(site, "receiver.slow")) == 1


def test_an_image_for_which_there_is_room_is_not_held_and_what_has_no_end_has_the_drain(site):
    before = image_mbit(site)
    tells(site, store(100, room_bytes=10**12), seconds=2)
    rates = {e.flow.host: e.payload_bps / MBIT for e in site.value.desired.plan.entries}
    assert image_mbit(site) > 0.99 * before
    assert rates["base22"] + rates["base23"] <= 106.25


def test_a_store_that_is_idle_is_remembered_as_it_was(site):
    tells(site, store(100), seconds=2)
    tells(site, store(0, waits=False), seconds=30)
    assert image_mbit(site) <= 106.25


def test_what_a_store_takes_lapses_with_the_lease_of_its_host(site):
    before = image_mbit(site)
    tells(site, store(100), seconds=2)
    site.reports.host_down("arch")
    assert said(site, "receiver.over") == [{"host": "arch", "flow": "", "store": "data"}]
    assert list(slow_now(site.value.reported.hosts["arch"])) == []
    site.use_cases.tick()
    assert image_mbit(site) <= 106.25
    site.clock.now_us += LEASE_MS * 1000
    site.use_cases.tick()
    assert image_mbit(site) == pytest.approx(before, rel=0.01)
