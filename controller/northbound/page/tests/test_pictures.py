"""The map, the calendars and the transitions as pictures: well-formed, to scale, and in words too."""

import doctest
import re
from datetime import UTC, timedelta, timezone
from xml.etree import ElementTree as ET

import pytest

from controller.northbound.page import calendar_svg, map_svg, steps_svg, words
from controller.northbound.page.calendar_svg import HEIGHT, Now, rows, span
from controller.northbound.page.series import sample
from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.tests.fakes import START_US, FakeSite, image
from mininet_tests.testing.networks import chile_illinois_2
from topology.network_file import network_of
from topology.problems import Problems
from topology.protocol import FlowClass

HOUR_US = 3_600_000_000
TWO = chile_illinois_2()
CHILE = timezone(timedelta(hours=-3))


@pytest.fixture
def site():
    """A site with two circuits, an image promised."""
    site = FakeSite(TWO)
    site.attach_all()
    site.wire()
    return site


def large(sites):
    """A network with many sites, each with a host and a circuit to an earlier one."""
    described = {
        f"site-{n}": {
            "switch": {"name": f"s{n}", "dpid": f"{n + 1:016x}"},
            "hosts": {f"h{n}": {"address": f"10.0.{n}.1", "rate": "1 Gbit/s", "port": f"s{n}-h"}},
        }
        for n in range(sites)
    }
    circuits = {
        f"c{n}": {
            "rate": "1 Gbit/s",
            "delay": "5 ms",
            "a": {"switch": f"s{n * 7 // 10}", "port": f"a{n}"},
            "z": {"switch": f"s{n}", "port": f"z{n}"},
        }
        for n in range(1, sites)
    }
    problems = Problems(values={"name": "large", "mtu": 1500, "sites": described, "circuits": circuits})
    network = network_of(problems.values, problems)
    assert not problems.found
    return network


def parsed(svg):
    """A picture's elements by name, and their text."""
    root = ET.fromstring(svg)  # noqa: S314  # our own
    return {
        kind: list(root.iter(f"{{http://www.w3.org/2000/svg}}{kind}"))
        for kind in ("a", "path", "text", "title", "rect")
    }


def the_map(site):
    """The map of a site as it is now, as elements."""
    view, network = site.reports.view(), site.state.site.network
    connected = frozenset(s.dpid for s in network.switches)
    return map_svg.drawn(network, map_svg.places(network), view, sample(view, network), connected)


def reserved(site, name, rate_bps, start_us, end_us):
    """A reservation that is committed."""
    request = Request("la-serena", "champaign", FlowClass.URGENT, rate_bps, start_us, end_us)
    site.use_cases.hold(lambda _: request, lambda now_us: Created(name, now_us)).saved.result()
    site.use_cases.commit(name).saved.result()


def calendars(site, local=UTC):
    """The rows of a site's calendar, by circuit."""
    ledger = site.value.wished.ledger
    made = rows(TWO, list(ledger.reservations.values()), list(ledger.announcements.values()), Now(START_US, local))
    return {row.circuit: row for row in made}


def test_examples_in_the_docstrings_are_true():
    assert doctest.testmod(words).failed == 0


def test_the_map_names_every_site_and_circuit_and_says_how_it_is(site):
    site.port_said(1, 9, is_live=False)
    titles = [title.text for title in parsed(the_map(site))["title"]]
    assert titles == ["north: up, 0 of 1 Gbit/s", "south: down, ✕ down", "la-serena, 4 hosts", "champaign, 1 host"]
    site.reports.host_down("base20")
    assert "la-serena, 4 hosts, ! 1 agent missing" in the_map(site)


def test_a_large_network_folds_its_sites_and_names_those_that_need_somebody():
    network = large(100)
    site = FakeSite(network, standing=())
    site.attach_all()
    site.converge()
    missing = network.hosts[0].name
    site.reports.host_down(missing)
    svg = the_map(site)
    assert svg.count("<circle") == len(network.sites) - 1
    assert "1 agent missing" in svg
    places = map_svg.places(network)
    assert len({(round(p.x), round(p.y)) for p in places.values()}) == len(network.sites)
    assert places == map_svg.places(network), "the same network does not look the same"


def test_what_is_reserved_is_stacked_to_the_line_s_rate(site):
    reserved(site, "one", 250_000_000, START_US + HOUR_US, START_US + 3 * HOUR_US)
    reserved(site, "two", 500_000_000, START_US + 2 * HOUR_US, START_US + 4 * HOUR_US)
    row = calendars(site)["north"]
    shapes = {a.get("id"): a.find("{http://www.w3.org/2000/svg}path").get("d") for a in parsed(row.svg)["a"]}
    pieces = {name: re.findall(r"M[\d.]+ ([\d.]+)h[\d.]+v([\d.]+)", d) for name, d in shapes.items()}
    bottom = calendar_svg.TOP + HEIGHT
    assert [(bottom - float(y), float(h)) for y, h in pieces["cal-one"]] == [(15.0, 15.0), (15.0, 15.0)]
    assert [(bottom - float(y), float(h)) for y, h in pieces["cal-two"]] == [(45.0, 30.0), (30.0, 30.0)]


def test_a_reservation_is_said_in_utc_and_in_the_site_s_time(site):
    reserved(site, "one", 10**6, START_US + HOUR_US, START_US + 2 * HOUR_US)
    said = parsed(calendars(site, CHILE)["north"].svg)["title"][0].text
    ends = "01 Jan 01:00 UTC (22:00 here) to 01 Jan 02:00 UTC (23:00 here)"
    assert said == f"one, committed: 1 Mbit/s urgent, la-serena to champaign, {ends}, of controller"


def test_what_was_given_back_is_drawn_for_the_time_it_had(site):
    reserved(site, "begun", 10**6, START_US, START_US + 10 * HOUR_US)
    reserved(site, "never", 10**6, START_US + HOUR_US, START_US + 2 * HOUR_US)
    known = dict(site.value.wished.ledger.reservations)
    site.clock.now_us += HOUR_US // 2
    ended = [site.use_cases.release(name).value for name in known]
    (row,) = (r for r in rows(TWO, ended, [], Now(site.clock.now_us, UTC)) if r.circuit == "north")
    (title,) = parsed(row.svg)["title"]
    assert title.text.startswith("begun, released")
    assert "00:00 UTC to 01 Jan 00:30 UTC" in title.text


def test_an_announcement_is_a_mark_at_the_moment_that_was_promised(site):
    promise = site.announce(image())
    said = [title.text for row in calendars(site).values() for title in parsed(row.svg)["title"]]
    assert (
        len([text for text in said if text.startswith("announcement image, of controller, promised: promised for ")])
        == 1
    )
    assert promise.promised_us < span(START_US).end_us


def test_the_steps_of_a_transition_are_bars_by_layer(site):
    assert steps_svg.drawn(()) == ""
    steps = site.reports.steps()
    titles = [title.text for title in parsed(steps_svg.drawn(steps))["title"]]
    assert len(titles) == len(steps) > 2
    assert titles[0].startswith(f"plan {steps[0].epoch}, {steps[0].stage.value}: ")
