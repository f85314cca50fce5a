"""Plays and networks as an emulation takes them, and what is wrong with those that it does not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mininet_tests.scenarios.emulate import demo
from mininet_tests.scenarios.emulate.emulable import CircuitChanges, emulable, problems
from mininet_tests.scenarios.emulate.play import ANNOUNCED_CLASSES, PLANNED_CLASSES, Play, Transfer, made_up, play_of
from mininet_tests.testing.drawn import sections
from mininet_tests.testing.networks import FILES, FOLDER, asc_ring, chile_illinois_2, loaded
from topology.network import Switch
from topology.network_file import network_of
from topology.network_text import file_text, section_of
from topology.problems import Problems
from topology.protocol import FlowClass
from topology.yaml_text import values_of

TWO_LINES = loaded(FILES["two-lines"])
DOCS = Path(__file__).parents[3] / "docs"


def said(text, network=TWO_LINES):
    """Return the play in a text, and what is wrong with it."""
    found = Problems()
    return play_of(values_of(text), network, found), found.found


def test_a_play_says_who_sends_what_and_when():
    play, wrong = said((FOLDER / "two-lines-play.yaml").read_text())
    assert wrong == []
    assert play.flows == ({"name": "replication", "class": "predictable", "from": "dtn2", "to": "store1"},)
    assert play.transfers == (
        Transfer("replication", "dtn2", "store1", lasts_s=12.0),
        Transfer("nightly", "dtn1", "store1", 1.0, lasts_s=10.0, reserved=(FlowClass.BACKGROUND, 40_000_000)),
        Transfer("image", "dtn1", "store1", 4.0, size_bytes=60_000_000, announced=FlowClass.URGENT),
    )
    assert play.hosts == {"dtn1", "dtn2", "store1"}


@pytest.mark.parametrize(
    ("transfer", "wrong"),
    [
        ("{from: dtn1, to: store1, for: 1 s}", "transfers[0]: name: is missing"),
        ("{name: a, from: dtn9, to: store1, for: 1 s}", 'transfers[0].from: "dtn9" is not in the network; there are'),
        ("{name: a, from: dtn1, to: store1}", "need either for: (how long) or size: (how much)"),
        ("{name: a, from: dtn1, to: store1, for: 1 s, size: 1 MB}", "need either for:"),
        ("{name: a, from: dtn1, to: store1, for: 1 s, announce: urgent}", "what is announced has a size:"),
        ("{name: a, from: dtn1, to: store1, size: 1 MB, announce: predictable}", '"predictable" is not a class here'),
        (
            "{name: a, from: dtn1, to: store1, size: 1 MB, reserve: {class: urgent, rate: 1 Gbit/s}}",
            "lasts for: a time",
        ),
        ("{name: a, from: dtn1, to: store1, for: 1 s, reserve: 1 Gbit/s}", "need {class: background, rate: 20 Mbit/s}"),
        ("{name: a, from: dtn1, to: store1, for: soon}", 'transfers[0].for: "soon" is not a duration'),
        ("{name: a, from: dtn1, to: store1, for: 1 s, until: 2 s}", "transfers[0].until: is not known here"),
        ("image", "transfers[0]: need keys and values"),
    ],
)
def test_what_is_wrong_with_a_transfer_is_said_with_its_place(transfer, wrong):
    _, found = said(f"transfers: [{transfer}]")
    assert any(wrong in problem for problem in found), found


def test_all_that_is_wrong_is_said_at_once():
    _, found = said("flows: 3\nmovers: []\ntransfers: [{name: a, from: dtn1, to: x, for: 1 s}, {name: b}]")
    assert len(found) >= 5


@pytest.mark.parametrize("text", ["transfers: []", "{}", "[]"])
def test_a_play_in_which_nobody_sends_anything_is_none(text):
    assert said(text)[1]


def test_names_are_of_one_transfer_each():
    one = "{name: a, from: dtn1, to: store1, for: 1 s}"
    assert said(f"transfers: [{one}, {one}]")[1] == ['transfers: "a" is the name of two: give each its own']


hosts = st.sampled_from([host.name for host in TWO_LINES.hosts])
starts = st.integers(0, 50).map(float)
promises = st.one_of(
    st.tuples(st.just(None), st.integers(1, 10**12), st.sampled_from((None, *ANNOUNCED_CLASSES)), st.just(None)),
    st.tuples(
        st.integers(1, 100).map(float),
        st.just(None),
        st.just(None),
        st.none() | st.tuples(st.sampled_from(PLANNED_CLASSES), st.integers(1, 10**10)),
    ),
)


@given(st.lists(st.tuples(hosts, hosts, starts, promises), min_size=1, max_size=8))
def test_what_is_written_of_a_play_is_read_as_the_same(drawn):
    transfers = [Transfer(f"t{n}", a, b, at_s, *promise) for n, (a, b, at_s, promise) in enumerate(drawn)]
    play = Play((), tuple(sorted(transfers, key=lambda transfer: transfer.at_s)))
    assert said(demo.text_of_play(play)) == (play, [])


@given(sections())
def test_any_network_is_emulable_with_ports_of_different_names_and_read_back_the_same(section):
    changed = emulable(network_of(section, Problems()), CircuitChanges())
    ports = [
        (link, link.port_name)
        for tail, _, link in changed.links()
        if isinstance(changed.graph.nodes[tail]["node"], Switch)
    ]
    names = [name for _, name in ports]
    assert len(set(names)) == len(names)
    assert all(len(name) <= (10 if link.circuit else 15) for link, name in ports)
    found = Problems()
    again = network_of(values_of(file_text(changed)), found)
    assert found.found == []
    assert file_text(again) == file_text(changed)


def test_a_circuit_has_the_rate_and_delay_that_were_asked_for_also_behind_its_line():
    network = emulable(chile_illinois_2(10**9), CircuitChanges({"north": 400_000_000}, {"north": 60_000}))
    assert {c.name: c.rate_bps for c in network.circuits} == {"north": 400_000_000, "south": 500_000_000}
    assert network.link("ls1", "north").delay_us == network.link("ch1", "north").delay_us == 60_000
    assert network.link("north", "ch1").rate_bps == 400_000_000
    assert network.link("north", "ch1").delay_us == 0
    before = chile_illinois_2(10**9).link("ls1", "north")
    assert network.link("ls1", "north").buffer_bytes == before.buffer_bytes * 4 // 10


def test_a_circuit_that_is_not_there_and_too_many_hosts_are_said():
    assert problems(TWO_LINES, {"--delay fibra": "fibra"}) == [
        '--delay fibra: there is no circuit "fibra"; there are fibre, radio'
    ]


@pytest.mark.parametrize("network", [TWO_LINES, asc_ring(), chile_illinois_2()])
def test_a_play_is_made_up_in_which_every_host_of_a_site_sends_and_one_announces(network):
    play = made_up(network)
    assert said(demo.text_of_play(play), network) == (play, [])
    assert [t.announced for t in play.transfers if t.announced] == [FlowClass.URGENT]
    assert {network.host(t.sender).site for t in play.transfers} != {network.host(play.transfers[0].receiver).site}


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["--delay", "fibre"], "need CIRCUIT=VALUE"),
        (["--delay", "fibre=soon"], '"soon" is not a duration'),
        (["--rate", "radio=10g"], '"10g" is not a rate'),
        (["--dilation", "0"], "above 0"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(words, wrong, capsys):
    with pytest.raises(SystemExit) as left:
        demo.arguments(["--network", "x", *words])
    assert left.value.code == 2
    assert wrong in capsys.readouterr().err


def test_check_says_what_is_wrong_with_both_files_and_runs_nothing(tmp_path, capsys):
    network, play = str(FILES["two-lines"]), str(FOLDER / "two-lines-play.yaml")
    assert demo.main(["--network", network, "--play", play, "--check"]) == 0
    assert "3 hosts, 3 transfers" in capsys.readouterr().out
    (tmp_path / "play.yaml").write_text("transfers:\n  - {name: a, from: dtn1, to: x, for: 1 s}\n")
    assert demo.main(["--network", network, "--play", str(tmp_path / "play.yaml"), "--check"]) == 2
    assert "play.yaml: line 2: transfers[0].to" in capsys.readouterr().err
    assert demo.main(["--network", network, "--loss", "north=1%", "--check"]) == 2
    assert 'there is no circuit "north"' in capsys.readouterr().err
    assert demo.main(["--network", str(tmp_path / "none.yaml"), "--check"]) == 2


def test_what_is_said_of_ipv6_must_be_possible_and_a_pair_without_ipv4_has_no_choice():
    network = loaded(FILES["three-sites"])
    play, wrong = said((FOLDER / "three-sites-play.yaml").read_text(), network)
    assert (wrong, [t.name for t in play.transfers if t.is_ipv6]) == ([], ["replica", "image"])
    assert said(demo.text_of_play(play), network) == (play, [])
    wrong = said("transfers: [{name: a, from: dl-b, to: pt-a, for: 1 s, ipv6: yes}]", network)[1]
    assert any("ipv6: needs two hosts with an address of IPv6" in one for one in wrong)


def test_a_play_is_made_up_for_one_site_and_what_is_beyond():
    section = section_of(loaded(FILES["three-sites"]))
    del section["sites"]["perth"], section["circuits"]["ocean"]
    play = made_up(network_of(section, Problems()))
    assert {(transfer.sender, transfer.receiver) for transfer in play.transfers} == {("dl-a", "cern"), ("dl-b", "cern")}


def test_the_examples_of_the_manual_are_right():
    text = (DOCS / "emulate.md").read_text()
    examples = [block.partition("```")[0] for block in text.split("```yaml\n")[1:]]
    assert examples
    assert [said(example)[1] for example in examples] == [[] for _ in examples]
