"""``headway network``: what is in a file is in the drawing, and what is typed makes the bridges of it."""

import json
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from apps.cli.main import app
from apps.cli.network_svg import drawn
from apps.cli.network_text import tree
from apps.cli.tests.running import CliRunner
from mininet_tests.testing.drawn import sections
from mininet_tests.testing.networks import FILES, chile_illinois
from topology.addresses import shown_address
from topology.network_file import network_of
from topology.network_text import file_text, section_of
from topology.problems import Problems

SVG = "{http://www.w3.org/2000/svg}"


def said(*arguments):
    """What the command prints, and its exit code."""
    done = CliRunner().invoke(app, ("network", *map(str, arguments)))
    return done.stdout + done.stderr, done.exit_code


@settings(max_examples=30)
@given(sections())
def test_all_that_is_in_a_network_is_in_its_tree_with_its_port(section):
    network = network_of(section, Problems())
    lines = "\n".join(tree(network)).splitlines()
    for host in network.hosts:
        if not network.is_ours(host.name):
            assert f"{host.name}: not ours ({' '.join(map(shown_address, host.prefixes))})" in lines
            continue
        (line,) = [each for each in lines if f"  {host.name}  " in each]
        assert str(host.ip) in line
        assert network.link(next(network.graph.predecessors(host.name)), host.name).port_name in line
    for circuit in network.circuits:
        ends = [each for each in lines if f"  {circuit.name} ══ " in each]
        assert {line.split()[1] for line in ends} == {link.port_name for link in network.links_of(circuit)} - {""}


@settings(max_examples=30)
@given(sections())
def test_a_picture_has_a_box_for_each_switch_and_far_site_and_none_covers_another(section):
    network = network_of(section, Problems())
    picture = ET.fromstring(drawn(network))  # noqa: S314 it is ours
    left, top, width, height = map(float, picture.get("viewBox").split())
    boxes = [
        tuple(float(box.get(side)) for side in ("x", "y", "width", "height"))
        for box in picture.iter(f"{SVG}rect")
        if box.get("class") == "box"
    ]
    assert len(boxes) == len(network.switches) + len(network.far_edges)
    for x, y, w, h in boxes:
        assert left <= x <= x + w <= left + width
        assert top <= y <= y + h <= top + height
    for (x, y, w, h), (x2, y2, w2, h2) in combinations(boxes, 2):
        assert x + w < x2 or x2 + w2 < x or y + h < y2 or y2 + h2 < y
    texts = {text.text for text in picture.iter(f"{SVG}text")}
    assert {*network.sites, *(circuit.name for circuit in network.circuits)} <= texts
    curves = [path.get("d") for path in picture.iter(f"{SVG}path")]
    assert len(set(curves)) == len(network.circuits)


def test_a_network_is_shown_as_it_stands_in_its_own_file_or_in_a_controllers(tmp_path):
    own, controllers = tmp_path / "network.yaml", tmp_path / "controller.yaml"
    own.write_text(file_text(chile_illinois()))
    controllers.write_text("network: network.yaml\nflows: []\n")
    assert said("show", own) == said("show", controllers)
    shown, code = said("show", own, "--json")
    assert (json.loads(shown), code) == (section_of(chile_illinois()), 0)


def test_all_that_is_wrong_with_a_file_is_said_at_once(tmp_path):
    file = tmp_path / "network.yaml"
    file.write_text(
        file_text(chile_illinois()).replace("10.20.20.21", "10.20.20.20").replace("delay: 90 ms", "delay: 1 h")
    )
    for command in (("show", file), ("ovs", file, "--controller", "tcp:192.0.2.1:6653")):
        output, code = said(*command)
        assert code == 2
        assert "10.20.20.20 is another host's too" in output
        assert "1 h is out of bounds" in output


@pytest.mark.parametrize("target", ["192.0.2.1", "tcp:192.0.2.1", "tcp:192.0.2.1:6653; reboot", "udp:192.0.2.1:6653"])
def test_what_is_no_controller_is_not_printed_to_be_typed(target):
    output, code = said("ovs", FILES["two-lines"], "--controller", target)
    assert (code, output.splitlines()) == (
        2,
        [f'headway: --controller: "{target}" is not a target, try "tcp:192.0.2.1:6653"'],
    )


def test_one_switch_alone_is_asked_for_by_name():
    lines, code = said("ovs", FILES["two-lines"], "--controller", "ssl:[2001:db8::1]:6653", "--switch", "bas1")
    assert code == 0
    assert "sum1" not in lines
    assert "set-ssl" in lines
    assert said("ovs", FILES["two-lines"], "--controller", "tcp:a:1", "--switch", "x") == (
        'headway: --switch: there is no switch "x"; there are sum1, bas1\n',
        2,
    )


def test_of_a_pair_a_switch_is_told_to_call_both():
    pair = ("--controller", "ssl:ctl-a.example.org:6653", "--controller", "ssl:ctl-b.example.org:6653")
    lines, code = said("ovs", FILES["two-lines"], *pair, "--switch", "bas1")
    (line,) = [each for each in lines.splitlines() if "create controller" in each]
    assert (code, line.endswith("set bridge bas1 controller=@c0,@c1"), line.count("max_backoff=1000")) == (0, True, 2)
    assert all(f'target="{each}"' in line for each in pair[1::2])
    assert said("ovs", FILES["two-lines"], *pair[:2], "--controller", "udp:a:1")[1] == 2


@pytest.mark.parametrize("again", ["ssl:ctl.example.org:6653", "ssl:CTL.Example.org:6653"])
def test_a_switch_is_not_told_to_call_one_controller_twice(again):
    twice = ("--controller", "ssl:ctl.example.org:6653", "--controller", again)
    assert said("ovs", FILES["two-lines"], *twice) == (
        f'headway: --controller: "{again}" is there already; of a pair, say each once\n',
        2,
    )


def test_a_bridges_own_port_is_not_added_to_it(tmp_path):
    section = section_of(chile_illinois())
    host = section["sites"]["champaign"]["hosts"]["arch"]
    host["port"] = "ch1"
    host.pop("number", None)
    file = tmp_path / "network.yaml"
    file.write_text(json.dumps(section))
    lines, code = said("ovs", file, "--switch", "ch1", "--controller", "tcp:192.0.2.1:6653")
    added = [line.split()[4] for line in lines.splitlines() if "add-port ch1 " in line]
    assert (code, "ch1-wan" in added, "ch1" in added) == (0, True, False), lines


def test_a_controller_at_a_port_that_there_is_not_is_not_printed_to_be_typed():
    for port, code in ((0, 2), (65_535, 0), (65_536, 2)):
        assert said("ovs", FILES["two-lines"], "--controller", f"tcp:192.0.2.1:{port}")[1] == code


@pytest.mark.parametrize("address", ["0.0.0.0:99999", "0.0.0.0:0", "localhost"])
def test_where_nobody_could_listen_is_refused_before_a_database_is_asked(address):
    assert said("draft", "tcp:127.0.0.1:1", "--agents", address) == (
        f'headway: --agents: "{address}" is not where to listen, try "0.0.0.0:50051"\n',
        2,
    )
