"""What hosts have to send, as their telemetry says it again each second."""

import pytest

from controller.tests.fakes import image, ready_site
from topology.telemetry import EntryTelemetry, Telemetry


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


def announced(site):
    """Announce an image whose sender stands by; return what lets that one say whether it wants to send."""
    site.announce(image())
    site.converge()
    told = site.value.reported.hosts["base20"].leases.grants[-1]

    def says(*, wants):
        entry = EntryTelemetry("image/base20", 1, 1, 0, 0, 0, 0, wants=wants, standing_by=True)
        site.reports.host_telemetry("base20", Telemetry(told.epoch, 1_000, (entry,)))

    return says


def test_a_lost_word_of_demand_is_made_good_by_the_telemetry(site):
    announced(site)(wants=True)
    site.converge()
    assert site.value.reported.hosts["base20"].acts_as_granted[0].frame_bps > 400_000_000


def test_what_telemetry_says_again_of_demand_wakes_nobody(site, monkeypatch):
    says = announced(site)
    says(wants=False)
    site.converge()
    leases, woken = site.value.reported.hosts["base20"].leases, []
    monkeypatch.setattr(site.state.changed, "notify_all", lambda: woken.append("all"))
    says(wants=False)
    assert (woken, site.value.reported.hosts["base20"].leases is leases) == ([], True)
