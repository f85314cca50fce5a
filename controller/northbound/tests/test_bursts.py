"""``GET /v1/bursts``: what a start needs at each port, as JSON."""

from fastapi.testclient import TestClient

from controller.northbound.tests.site import api_of
from controller.tests.fakes import ready_site, sending_image


def shown(site):
    return TestClient(api_of(site)).get("/v1/bursts").json()


def test_each_port_says_what_a_start_needs_and_what_is_done_about_it():
    site = ready_site()
    sending_image(site)
    wan, lan = shown(site)
    assert (wan["link"], wan["circuit"], wan["fits"]) == ("ls1->ch1", "chile-illinois", True)
    assert wan["senders"] == ["base23", "base20", "base21", "base22"]
    assert wan["chosen_bytes"] < wan["unpaced_bytes"] < wan["window_bytes"]
    (chosen,) = wan["choices"]
    assert (chosen["choice"], chosen["needed_bytes"]) == ("pace", wan["chosen_bytes"])
    assert (chosen["offsets_us"], chosen["nic_bps"]) == ([], None)
    assert (lan["link"], lan["unpaced_bytes"]) == ("ch1->arch", 0)


def test_hosts_without_an_agent_are_named_with_when_to_start():
    site = ready_site()
    sending_image(site)
    for host in ("base20", "base21"):
        site.reports.host_down(host)
    paced, other = shown(site)[0]["choices"]
    assert (paced["senders"], other["senders"]) == (["base23", "base22"], ["base20", "base21"])
    assert other["choice"] == "stagger"
    assert other["offsets_us"][0] == 0 < other["offsets_us"][1]


def test_where_nobody_sends_there_is_nothing_to_say(client):
    assert client.get("/v1/bursts").json() == []
