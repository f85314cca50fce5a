"""The pages: what is on them, who may see them, and that nothing in them becomes markup or comes from elsewhere."""

import asyncio
import hashlib
import json
import re
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from urllib.parse import urljoin

import pytest
from fastapi.testclient import TestClient

from controller.northbound import page
from controller.northbound.access import COOKIE, AccessRules, all_may
from controller.northbound.api import api
from controller.northbound.page.live import followed
from controller.northbound.page.pages import CSP, Pages
from controller.northbound.tests.site import MANY, NIGHT, dependencies_of
from controller.plan.delays import MeasuredDelay, MeasuredDelays
from controller.security.tokens import Role, Tokens, new_token
from controller.tests.fakes import START_US, FakeSite, image
from mininet_tests.testing.networks import FILES, chile_illinois, loaded
from topology import __version__
from topology.telemetry import StoreBrake, StoreTelemetry, Telemetry

NOW = datetime(2026, 11, 23, tzinfo=UTC)
MADE = {role: new_token(role.value, role, NOW, NOW + timedelta(days=1)) for role in Role}
TOKENS = Tokens(tuple(kept for _, kept in MADE.values()))
BAD = '"><img src=x onerror=alert(1)>'
SHOWN = ["/", "/transitions", "/events", "/hosts/base20", "/circuits/{circuit}", "/switches/ls1", "/login"]


@pytest.fixture
def site():
    """A site of two places, its plan in force."""
    site = FakeSite(chile_illinois())
    site.attach_all()
    site.wire()
    return site


@pytest.fixture
def client(site):
    """A client that may all."""
    return TestClient(api(dependencies_of(site), all_may(lambda: NOW)))


def stranger(site):
    """A client on another machine that has shown nothing yet."""
    app = api(dependencies_of(site), AccessRules(lambda: TOKENS, lambda: NOW))
    return TestClient(app, client=("192.0.2.1", 5000), base_url="http://testserver", follow_redirects=False)


def paths(site):
    """The path of every kind of page."""
    (circuit,) = (c.name for c in site.state.site.network.circuits)
    return [path.format(circuit=circuit) for path in SHOWN]


def test_every_page_loads_only_from_us_and_runs_no_script_of_its_own(site, client):
    for path in paths(site):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["content-security-policy"]) == (200, CSP), path
        for link in re.findall(r'(?:href|src)="([^"]*)"', answer.text):
            assert link.startswith("/"), link
            assert not link.startswith("//")
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=", answer.text)


def test_no_class_that_the_form_offers_is_refused_as_one_that_is_not_reserved(client):
    (choices,) = re.findall(r'<select name="class">(.*?)</select>', client.get("/").text)
    classes = re.findall(r"<option[^>]*>([^<]+)</option>", choices)
    assert len(classes) > 1
    for one in classes:
        answer = client.post(MANY, json=NIGHT | {"class": one, "rate": "1 Mbit/s"})
        assert answer.status_code in {201, 409}, answer.text  # of some there is no share


def test_what_people_write_cannot_become_markup(site, client):
    name = client.post(MANY, json=NIGHT | {"description": BAD}).json()["id"]
    site.announce(image("<b>image</b>"))
    for path in (
        "/",
        f"/reservations/{name}",
        "/events",
        "/announcements/%3Cb%3Eimage%3C%2Fb%3E",
        "/events?words=%3Cimg",
    ):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert "<img" not in answer.text
        assert "<b>image" not in answer.text


def test_the_screen_has_the_headline_the_map_and_the_calendar(site, client):
    name = client.post(MANY, json=NIGHT | {"commit": True}).json()["id"]
    text = client.get("/").text
    assert "All is as planned." in text
    assert f'href="/reservations/{name}"' in text
    for one in (*site.state.site.network.sites, *(c.name for c in site.state.site.network.circuits)):
        assert one in text


@pytest.mark.parametrize(
    "path", ["/reservations/none", "/hosts/none", "/circuits/none", "/switches/none", "/announcements/no/ne"]
)
def test_what_there_is_not_is_said_on_a_page(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such thing" in answer.text


def test_a_reservation_s_page_says_what_the_api_says(site, client):
    name = client.post(MANY, json=NIGHT).json()["id"]
    text, known = client.get(f"/reservations/{name}").text, client.get(f"{MANY}/{name}").json()
    for value in (known["state"], known["start"], known["end"], known["hold_until"], "600 Mbit/s", *known["circuits"]):
        assert str(value) in text
    assert "reservation.held" in text
    assert 'data-act="release"' in text
    client.delete(f"{MANY}/{name}")
    assert 'data-act="release"' not in client.get(f"/reservations/{name}").text


def test_a_host_s_page_says_what_its_stores_take_and_an_announcement_s_by_when_it_is_stored(site, client):
    site.announce(image("early"))
    told = StoreTelemetry("data", 90 * 10**6, True, 7_000_000, 67_000_000, StoreBrake.DISK, rate_bps=100 * 10**6)
    site.reports.host_telemetry("arch", Telemetry(0, 1_000, stores=(told,)))
    site.announce(image())
    rows = re.findall(r"<tr>(.*?)</tr>", client.get("/hosts/arch").text, flags=re.DOTALL)
    (cells,) = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows if "<td>data</td>" in row]
    assert cells == ["data", "100 Mbit/s", "67 MB", "7 MB", "yes", "disk"]
    assert "Its agent tells of no store." in client.get("/hosts/base20").text
    stored = client.get("/v1/announcements/image").json()["stored"]
    assert f"{stored}, on the store data of arch" in client.get("/announcements/image").text
    assert "nobody knows what its receiver takes" in client.get("/announcements/early").text


def test_a_reservation_s_page_says_what_is_delivered_of_it_and_to_an_admin_who_has_changed_it(site, client):
    now = {"start": None, "end": None, "duration_s": 3600, "from": "base20", "to": "arch", "commit": True}
    body = {name: value for name, value in (NIGHT | now).items() if value is not None}
    name = client.post(MANY, json=body).json()["id"]
    site.converge()
    text = client.get(f"/reservations/{name}").text
    assert '<td><a href="/hosts/base20">base20</a></td>' in text
    assert "Who has changed it" in text
    assert "reservation.committed" in text
    other = stranger(site)
    other.cookies.set(COOKIE, MADE[Role.OPERATE][0])
    assert "Who has changed it" not in other.get(f"/reservations/{name}").text


def test_a_circuit_s_page_asks_what_its_death_would_break(site, client):
    (circuit,) = (c.name for c in site.state.site.network.circuits)
    site.announce(image())
    site.converge()
    assert f'data-path="/v1/what-if/{circuit}"' in client.get(f"/circuits/{circuit}").text
    said = client.get(f"/v1/what-if/{circuit}").json()
    assert [(one["kind"], one["id"]) for one in said["breaks"]] == [("announcement", "image")]
    assert client.get("/v1/what-if/none").status_code == 404


def test_the_events_of_a_thing_are_not_those_of_one_whose_name_begins_alike(site, client):
    site.state.events.publish("fault.began", place="switch ls1", why="full")
    site.state.events.publish("fault.began", place="switch ls19", why="hollow")
    text = client.get("/switches/ls1").text
    assert "full" in text
    assert "hollow" not in text
    assert "hollow" in client.get("/events?words=ls1").text


def test_a_circuit_that_is_worked_on_says_so_on_its_page(site, client):
    (circuit,) = (c.name for c in site.state.site.network.circuits)
    client.post("/v1/maintenance", json={"circuit": circuit, "duration_s": 60, "force": True})
    page = client.get(f"/circuits/{circuit}").text
    assert '<span class="state">maintenance</span>' in page
    assert "nothing goes by it" in page
    assert "maintenance until" in client.get("/").text


def test_a_circuit_s_page_says_how_long_it_takes(site, client):
    (circuit,) = (c.name for c in site.state.site.network.circuits)
    assert "90 ms (one way)" in client.get(f"/circuits/{circuit}").text


def test_a_circuit_s_page_says_by_whom_its_delay_was_measured(site, client):
    (circuit,) = (c.name for c in site.state.site.network.circuits)
    delays = MeasuredDelays({circuit: MeasuredDelay(circuit, 88_100, START_US, ("arch", "base23"))})
    with site.state.changed:
        site.state.put(reported=replace(site.state.reported, delays=delays))
    assert "88.1 ms, measured by arch and base23 (one way)" in client.get(f"/circuits/{circuit}").text


def test_no_page_that_is_open_waits_for_the_lock_of_the_plan(site):
    pages = Pages(dependencies_of(site), all_may(lambda: NOW))
    client = TestClient(api(dependencies_of(site), all_may(lambda: NOW), pages))
    client.get("/")  # as it was drawn once
    answers = []

    def looks():
        answers.append(client.get("/").status_code)
        answers.append(client.get("/series").status_code)

        async def first():
            stream = followed(pages._screen, lambda: False)
            return [await anext(stream) for _ in range(2)]

        answers.append(len(asyncio.run(first())))

    site.clock.now_us += 60_000_000  # the calendars would be drawn anew, for who can wait
    with site.state.changed:
        reader = threading.Thread(target=looks)
        reader.start()
        reader.join(30)
        assert answers == [200, 200, 2]


def test_a_circuit_s_and_a_switch_s_page_have_the_layers_side_by_side(site, client):
    site.announce(image())
    site.converge()
    for path in ("/circuits/trunk", "/switches/ls1") if "/circuits/trunk" in paths(site) else paths(site)[4:6]:
        text = client.get(path).text
        assert "hosts may send" in text
        assert "✕ no" not in text


def test_who_shows_nothing_is_led_to_the_login_and_scripts_are_told(site):
    client = stranger(site)
    for path in paths(site)[:-1]:
        answer = client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/login?to={path}")
    for path in ("/live", "/series", "/v1/plan"):
        assert client.get(path).status_code == 401
    assert client.get("/login").status_code == 200
    assert client.get("/static/any/page.js").status_code == 200


def test_a_browser_keeps_a_token_that_no_script_reads_and_forgets_it(site):
    client = stranger(site)
    assert client.post("/session", json={"token": "hw_no_ne"}).status_code == 401
    said = client.post("/session", json={"token": MADE[Role.OPERATE][0]})
    assert said.json() == {"name": "token:operate", "role": "operate"}
    kept = said.headers["set-cookie"].lower()
    assert kept.startswith(COOKIE)
    assert "httponly" in kept
    assert "samesite=strict" in kept
    assert client.get("/").status_code == 200
    assert client.get("/v1/plan").status_code == 200
    client.delete("/session")
    assert client.get("/").status_code == 303


def test_a_token_that_has_ended_is_forgotten_on_the_login_page(site):
    client = stranger(site)
    assert 'id="log-out"' not in client.get("/login").text
    client.cookies.set(COOKIE, "hw_no_ne")
    assert 'id="log-out"' in client.get("/login").text
    assert client.get("/").headers["location"] == "/login?to=/"
    assert client.delete("/session").headers["set-cookie"].startswith(f'{COOKIE}="";')


def test_a_reservation_s_page_offers_to_change_what_may_be_changed(site, client):
    name = client.post(MANY, json=NIGHT | {"commit": True}).json()["id"]
    text = client.get(f"/reservations/{name}").text
    assert f'<form id="change" data-path="{MANY}/{name}" data-version="2">' in text
    for field in ("rate", "start", "end", "description"):
        assert f'<input name="{field}"' in text
    client.delete(f"{MANY}/{name}")
    assert 'id="change"' not in client.get(f"/reservations/{name}").text


@pytest.mark.parametrize(("origin", "status"), [("http://testserver", 201), (None, 401), ("http://elsewhere", 403)])
def test_a_kept_token_changes_something_only_from_a_page_of_ours(site, origin, status):
    client = stranger(site)
    client.post("/session", json={"token": MADE[Role.OPERATE][0]})
    headers = {} if origin is None else {"Origin": origin}
    assert client.post(MANY, json=NIGHT, headers=headers).status_code == status


@pytest.mark.parametrize("role", Role)
def test_each_role_is_offered_what_it_may(site, role):
    client = stranger(site)
    client.post("/session", json={"token": MADE[role][0]})
    name = None
    if role.includes(Role.OPERATE):
        name = client.post(MANY, json=NIGHT, headers={"Origin": "http://testserver"}).json()["id"]
    assert ('id="reserve"' in client.get("/").text) is role.includes(Role.RESERVE)
    if name is not None:
        assert "data-act" in client.get(f"/reservations/{name}").text


def test_scripts_import_each_other_at_addresses_that_have_the_version_so_none_of_an_earlier_one_is_kept(client):
    (entry,) = re.findall(r'type="module" src="([^"]*)"', client.get("/").text)
    assert f"/{__version__}/" in entry
    seen, left = set(), {entry}
    while left:
        seen |= left
        texts = {path: client.get(path) for path in left}
        assert {path: answer.status_code for path, answer in texts.items()} == dict.fromkeys(left, 200)
        imports = {
            urljoin(path, to) for path, one in texts.items() for to in re.findall(r'^import .*?"(.*?)"', one.text, re.M)
        }
        left = imports - seen
    assert len(seen) > 3
    assert all(path.startswith(entry.rpartition("/")[0] + "/") for path in seen)


def test_the_files_of_others_are_as_their_makers_published_them(client):
    listed = client.get("/static/any/LICENCES.txt").text
    sums = dict(re.findall(r"^(\S+)\n {2}package: .*\n {2}sha256: (\w+)$", listed, re.MULTILINE))
    assert set(sums) == {"htmx.js", "htmx-sse.js", "uplot.js", "uplot.css"}
    for name, sum_ in sums.items():
        assert hashlib.sha256(files(page).joinpath("static", name).read_bytes()).hexdigest() == sum_
    assert client.get("/static/any/%2e%2e/pages.py").status_code == 404
    assert client.get("/static/any/none.js").status_code == 404


def test_a_page_that_follows_is_sent_what_changes_and_no_more(site):
    pages = Pages(dependencies_of(site), all_may(lambda: NOW))

    async def heard():
        over = False
        stream = followed(pages._screen, lambda: over)
        await anext(stream)
        first = await anext(stream)
        site.reports.host_down("base20")
        site.clock.now_us += 5_000_000
        pages.watch.look()
        second = await anext(stream)
        over = True
        return first.decode(), second.decode(), [more async for more in stream]

    first, second, rest = asyncio.run(heard())
    names = re.compile("^event: (.*)$", re.MULTILINE)
    assert sorted(names.findall(first)) == ["headline", "map", "sample", "tick", "tonight"]
    assert "1 agent missing" in second
    assert "base20: its agent is not connected" in second
    assert "tonight" not in names.findall(second)
    assert rest == []


def test_the_series_have_what_is_planned_and_gaps_where_nobody_says(site, client):
    site.announce(image())
    site.converge()
    (first, *_) = client.get("/series").json()["series"]
    assert first["planned_bps"][0] > 0
    for host in ("base20", "base21", "base22", "base23"):
        site.reports.host_down(host)
    pages = Pages(dependencies_of(site), all_may(lambda: NOW))
    drawn = pages.series()
    assert {tuple(one["delivered_bps"]) for one in json.loads(drawn.body)["series"]} == {(None,)}


def test_maintenance_is_on_the_page_of_its_circuit_and_planned_there_by_who_operates(site, client):
    (circuit,) = (c.name for c in site.state.site.network.circuits)
    work = {"circuit": circuit, "duration_s": 60, "description": BAD, "force": True}
    name = client.post("/v1/maintenance", json=work).json()["maintenance"]["id"]
    page = client.get(f"/circuits/{circuit}").text
    assert f'data-circuit="{circuit}"' in page
    assert f'data-path="/v1/maintenance/{name}"' in page
    assert "<img" not in page
    other = stranger(site)
    other.cookies.set(COOKIE, MADE[Role.RESERVE][0])
    looked = other.get(f"/circuits/{circuit}").text
    assert "onerror=alert(1)&gt;" in looked
    assert 'id="maintain"' not in looked


@pytest.mark.parametrize(
    "to", ["//elsewhere", "/\\elsewhere", "/\t/elsewhere", "/\n/elsewhere", "/\r\\elsewhere", "https://elsewhere"]
)
def test_a_login_leads_to_no_other_machine_however_its_address_is_written(client, to):
    script = client.get("/static/any/page.js").text
    (ours,) = re.findall(r"/(\^\S+)/\.test\(to\)", script)
    assert not re.match(ours, to)
    assert re.match(ours, "/reservations/9f86d081884c7d65")
    assert re.match(ours, "/")


@pytest.mark.parametrize(
    ("network", "sender", "target", "lanes"), [("two-lanes", "base20", "arch", 2), ("two-switches", "ts-b", "ts-a", 1)]
)
def test_every_host_that_a_page_links_to_has_one(network, sender, target, lanes):
    site = FakeSite(loaded(FILES[network]))
    site.attach_all()
    site.wire()
    client = TestClient(api(dependencies_of(site), all_may(lambda: NOW)))
    body = {"id": "x", "from": [sender], "to": target, "bytes": 10**9, "lanes": lanes}
    assert client.post("/v1/announcements", json=body).status_code == 201
    links = set(re.findall(r'href="(/hosts/[^"]*)"', client.get("/announcements/x").text))
    assert len(links) == lanes
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)
