"""The map, the calendars and the transitions as pictures: well-formed, to scale, and in words too."""

import re
from datetime import UTC, timedelta, timezone
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from controller.northbound.page import calendar_svg, map_svg, steps_svg
from controller.northbound.page.calendar_svg import HEIGHT, LesserTime, Now, calendar_rows, span
from controller.northbound.page.look import Look
from controller.northbound.page.series import sample
from controller.northbound.page.watch import worked_on
from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.maintenance import Maintenance
from controller.tests.fakes import START_US, FakeSite, image
from mininet_tests.testing.networks import chile_illinois_2
from topology.network_file import network_of
from topology.problems import Problems
from topology.protocol import FlowClass
from topology.units import instant_us

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


def the_map(site, frame=map_svg.WIDE, connected=None):
    """The map of a site as it is now."""
    view, network = site.reports.view(), site.state.site.network
    at_us = site.clock.now_us
    connected = frozenset(s.dpid for s in network.switches) if connected is None else connected
    working = worked_on(site.use_cases.maintaining.all(), at_us)
    look = Look(0, at_us, view, (), sample(view, network), connected, working)
    return map_svg.drawn(network, map_svg.places(network, frame), look, frame)


def reserved(site, name, rate_bps, start_us, end_us):
    """A reservation that is committed."""
    request = Request("la-serena", "champaign", FlowClass.URGENT, rate_bps, start_us, end_us)
    site.use_cases.hold(lambda _: request, lambda now_us: Created(name, now_us)).saved.result()
    site.use_cases.commit(name).saved.result()


def calendars(site, local=UTC, lesser=()):
    """The rows of a site's calendar, by circuit."""
    ledger = site.value.wished.ledger
    promised = list(ledger.reservations.values()), list(ledger.announcements.values())
    made = calendar_rows(TWO, *promised, Now(START_US, local), lesser)
    return {row.circuit: row for row in made}


def test_the_map_names_every_site_and_circuit_and_says_how_it_is(site):
    site.port_said(1, 9, is_live=False)
    titles = [title.text for title in parsed(the_map(site))["title"]]
    assert titles == ["north: up, 0 of 1 Gbit/s", "south: down, ✕ down", "la-serena, 4 hosts", "champaign, 1 host"]
    site.reports.host_down("base20")
    assert "la-serena, 4 hosts, ! 1 agent missing" in the_map(site)


def test_nobody_is_missing_on_the_map_who_has_yet_to_call_after_the_start():
    site = FakeSite(TWO)
    assert "missing" not in the_map(site, connected=frozenset())
    assert "gone" not in the_map(site, connected=frozenset())
    site.clock.now_us += 31_000_000
    late = the_map(site, connected=frozenset())
    assert "la-serena, 4 hosts, ✕ switch gone, ! 4 agents missing" in late
    assert late.count('class="site needs"') == len(TWO.sites)


def boxes(svg, kind):
    """The rectangles of a kind: left, top, right, bottom."""
    found = [rect for rect in parsed(svg)["rect"] if rect.get("class").startswith(kind)]
    edges = [[float(rect.get(name)) for name in ("x", "y", "width", "height")] for rect in found]
    return [(x, y, x + width, y + height) for x, y, width, height in edges]


@pytest.mark.parametrize("frame", [map_svg.WIDE, map_svg.NARROW], ids=lambda frame: frame.name)
def test_all_of_the_map_is_inside_its_picture_and_no_sign_hides_another(site, frame):
    svg = the_map(site, frame)
    signs = boxes(svg, "label") + boxes(svg, "site")
    assert len(signs) == len(TWO.circuits) + len(TWO.sites)
    assert [one for one in signs if one[0] < 0 or one[1] < 0 or one[2] > frame.width] == []
    assert [one for one in signs if one[3] > frame.height(TWO)] == []
    hidden = [(a, b) for a, b in combinations(signs, 2) if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]
    assert hidden == []


def test_the_narrow_map_says_what_the_wide_one_does_by_ids_of_its_own(site):
    wide, narrow = (parsed(the_map(site, frame)) for frame in (map_svg.WIDE, map_svg.NARROW))
    assert [title.text for title in narrow["title"]] == [title.text for title in wide["title"]]
    ids = [[link.get("id") for link in each["a"]] for each in (wide, narrow)]
    assert len(set(ids[0]) | set(ids[1])) == len(ids[0]) + len(ids[1])


def planned(site, circuit, start_us, end_us):
    """A maintenance that is planned."""
    one = Maintenance(f"m{start_us}", circuit, start_us, end_us, "<splicing>")
    site.use_cases.maintaining.plan(lambda _: one, only_look=False, force=True).saved.result()


def test_a_circuit_that_is_worked_on_is_dashed_on_the_map_and_says_until_when(site):
    planned(site, "north", START_US, START_US + 2 * HOUR_US)
    planned(site, "north", START_US + 2 * HOUR_US, START_US + 3 * HOUR_US)  # the next crew
    planned(site, "south", START_US + HOUR_US, START_US + 2 * HOUR_US)  # not now
    elements = parsed(the_map(site))
    titles = [title.text for title in elements["title"]][:2]
    assert titles == ["north: up, maintenance until 01 Jan 03:00 UTC", "south: up, 0 of 500 Mbit/s"]
    assert [path.get("class") for path in elements["path"]] == ["pipe worked-on", "pipe up"]
    site.port_said(1, 8, is_live=False)
    assert "north: down, ✕ down" in the_map(site)


def test_a_time_in_which_a_circuit_carries_less_is_hatched_to_scale_and_said_in_words(site):
    reserved(site, "one", 250_000_000, START_US + HOUR_US, START_US + 3 * HOUR_US)
    day_us, rate_bps = 24 * HOUR_US, 250_000_000
    lesser = [
        LesserTime("north", START_US + day_us, START_US + 2 * day_us, rate_bps, "schedule"),
        LesserTime("north", START_US, START_US + day_us, 0, "maintenance <splicing>"),
        LesserTime("north", START_US + 90 * day_us, START_US + 91 * day_us, 0, "not drawn yet"),
    ]
    row = calendars(site, lesser=lesser)["north"]
    elements = parsed(row.svg)
    closed = [rect for rect in elements["rect"] if rect.get("class") == "lesser"]
    assert [float(rect.get("height")) for rect in closed] == [HEIGHT * 0.75, HEIGHT]
    assert [rect.get("width") for rect in closed] == ["148.0", "148.0"]
    titles = [title.text for title in elements["title"]]
    assert titles[0].startswith("schedule: only 250 Mbit/s goes by, 02 Jan 00:00 UTC to 03 Jan")
    assert titles[1].startswith("maintenance <splicing>: nothing goes by")
    assert [path.get("class") for path in elements["path"]].count("hatch") == 2


@pytest.mark.parametrize("local", [CHILE, timezone(timedelta(hours=9)), UTC], ids=str)
def test_a_circuit_that_always_carries_less_is_drawn_and_says_the_years(site, local):
    ages = instant_us("0001-01-01T00:00:00Z"), instant_us("9999-12-31T23:59:59.999999Z")
    row = calendars(site, local, [LesserTime("north", *ages, 250_000_000, "schedule")])["north"]
    (said,) = (title.text for title in parsed(row.svg)["title"])
    assert said == "schedule: only 250 Mbit/s goes by, 01 Jan 0001 to 31 Dec 9999"


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


def test_a_large_network_of_which_most_needs_somebody_stays_readable_and_says_so_not_by_colour_alone():
    network = large(100)
    site = FakeSite(network, standing=())
    site.clock.now_us += 31_000_000  # all have had the time to call
    svg = the_map(site)
    assert svg.count("<circle") == len(network.sites)
    assert svg.count(">!</text>") == len(network.sites)
    assert "1 agent missing" in svg  # to who points at it


def test_what_is_reserved_is_stacked_to_the_line_s_rate(site):
    reserved(site, "one", 250_000_000, START_US + HOUR_US, START_US + 3 * HOUR_US)
    reserved(site, "two", 500_000_000, START_US + 2 * HOUR_US, START_US + 4 * HOUR_US)
    row = calendars(site)["north"]
    shapes = {a.get("id"): a.find("{http://www.w3.org/2000/svg}path").get("d") for a in parsed(row.svg)["a"]}
    pieces = {name: re.findall(r"M[\d.]+ ([\d.]+)h[\d.]+v([\d.]+)", d) for name, d in shapes.items()}
    bottom = calendar_svg.TOP + HEIGHT
    assert [(bottom - float(y), float(h)) for y, h in pieces["cal-one"]] == [(HEIGHT / 4, HEIGHT / 4)] * 2
    assert [(bottom - float(y), float(h)) for y, h in pieces["cal-two"]] == [
        (3 * HEIGHT / 4, HEIGHT / 2),
        (HEIGHT / 2, HEIGHT / 2),
    ]


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
    (row,) = (r for r in calendar_rows(TWO, ended, [], Now(site.clock.now_us, UTC)) if r.circuit == "north")
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
