"""What is shown of receivers: what they take, which flows they hold, and who has the rest."""

import threading

import pytest
from fastapi.testclient import TestClient

from controller.northbound.tests.site import api_of
from controller.state import receiver_view
from controller.state.desired import desired_plan
from controller.tests.fakes import LEASE_MS, ready_site, sending_image
from controller.tests.test_known_stores import store, tells

MBIT = 10**6


def shown(site):
    return TestClient(api_of(site)).get("/v1/receivers").json()


def test_nothing_is_shown_where_no_receiver_is_known():
    assert shown(ready_site()) == {"receivers": [], "gained": []}


def test_a_store_is_shown_also_while_it_takes_all():
    site = ready_site()
    tells(site, store(50, waits=False, room_bytes=10**9))
    (one,) = shown(site)["receivers"]
    assert (one["host"], one["store"], one["flow"], one["drains_bps"], one["why"]) == ("arch", "data", None, None, None)
    assert (one["room_bytes"], one["unread_bytes"], one["waiting"], one["holds"]) == (10**9, 0, False, [])


def test_a_slow_store_is_shown_with_what_it_holds_and_who_gains():
    site = ready_site()
    sending_image(site)
    address = next(h.ip for h in site.state.site.network.hosts if h.name == "base20")
    tells(site, store(100, senders=(f"{address}/32",)), seconds=2)
    found = shown(site)
    (one,) = found["receivers"]
    assert (one["drains_bps"], one["why"], one["waiting"]) == (100 * MBIT, "disk", True)
    (held,) = one["holds"]
    assert held["flow"] == "image/base20"
    assert held["planned_bps"] < 107 * MBIT < 400 * MBIT < held["without_bps"]
    gains = {flow["flow"]: flow["planned_bps"] - flow["without_bps"] for flow in found["gained"]}
    assert sum(gains.values()) > 0.99 * (held["without_bps"] - held["planned_bps"])
    assert "image/base20" not in gains


def test_nobody_waits_while_the_plan_without_slow_receivers_is_worked_out(monkeypatch):
    site = ready_site()
    sending_image(site)
    tells(site, store(100), seconds=2)
    free = []

    def others_go_on(*args):
        def look():
            free.append(site.state.changed.acquire(timeout=5))
            if free[-1]:
                site.state.changed.release()

        other = threading.Thread(target=look)
        other.start()
        other.join()
        return desired_plan(*args)

    monkeypatch.setattr(receiver_view, "desired_plan", others_go_on)
    assert shown(site)["receivers"][0]["holds"] != []
    assert free == [True]


def test_the_metrics_and_what_needs_somebody_say_it_too():
    site = ready_site()
    sending_image(site)
    tells(site, store(100, room_bytes=7), seconds=2)
    client = TestClient(api_of(site))
    text = client.get("/metrics").text
    assert 'headway_store_drain_bps{host="arch",store="data"} 1e+08' in text
    assert 'headway_store_room_bytes{host="arch",store="data"} 7.0' in text
    assert 'headway_receivers_slow{host="arch"} 1.0' in text
    needs = client.get("/v1/needs").json()
    (one,) = [one for one in needs["needs"] if one["kind"] == "receiver"]
    assert one["command"] == "headway receivers"
    assert "arch takes no more than 100 Mbit/s (disk)" in one["what"]


def test_a_store_is_not_shown_any_more_when_its_host_has_been_away_for_a_lease():
    site = ready_site()
    sending_image(site)
    tells(site, store(100, room_bytes=7), seconds=2)
    site.reports.host_down("arch")
    assert [one["store"] for one in shown(site)["receivers"]] == ["data"], "it holds until then"
    site.clock.now_us += LEASE_MS * 1000
    site.converge()
    assert shown(site)["receivers"] == []
    assert 'store="data"' not in TestClient(api_of(site)).get("/metrics").text


@pytest.mark.parametrize("change", [{"waits": False}, {"rate_bps": 100 * MBIT}])
def test_a_store_for_which_nothing_waits_or_whose_rate_somebody_has_typed_in_needs_nobody(change):
    site = ready_site()
    sending_image(site)
    tells(site, store(100), seconds=2)
    tells(site, store(100, **change))
    client = TestClient(api_of(site))
    assert 'headway_receivers_slow{host="arch"} 0.0' in client.get("/metrics").text
    assert "receiver" not in {one["kind"] for one in client.get("/v1/needs").json()["needs"]}
    assert shown(site)["receivers"][0]["drains_bps"] == 100 * MBIT, "it holds all the same"


def test_of_a_rate_that_somebody_has_typed_in_nothing_is_said_to_be_the_cause_until_something_waits():
    site = ready_site()
    for waits, why in ((False, None), (True, "disk")):
        tells(site, store(100, waits=waits, rate_bps=100 * MBIT))
        (one,) = shown(site)["receivers"]
        assert (one["drains_bps"], one["why"]) == (100 * MBIT, why)
