"""A scenario's file: all of it, and everything that is wrong with it, each with its place."""

import copy
from itertools import pairwise

import pytest

from controller.errors import ConfigError
from controller.whatif.file import loaded_scenario, scenario_of
from controller.whatif.movers import Mover
from controller.whatif.simulation import Simulation
from controller.whatif.supposed import DAY_US, CircuitDeath, Opening
from mininet_tests.testing.networks import FILES, FOLDER, described, loaded, one_site
from topology.network_text import section_of
from topology.units import instant_us

BASE = {
    "network": "chile-illinois-2.yaml",
    "from": "2026-12-01T00:00:00Z",
    "until": "2026-12-03T00:00:00Z",
    "workload": [
        {"name": "image", "class": "urgent", "from": ["base20", "base21"], "to": "arch", "bytes": "2.7 GB"},
    ],
}


STORE = {"drains": "1 Gbit/s", "holds": "1 GB"}


def read(**more):
    """The file's meaning with some sections more."""
    return scenario_of({**copy.deepcopy(BASE), **more}, "scenario.yaml", FOLDER)


def problems(**more):
    """What is wrong with it then."""
    with pytest.raises(ConfigError) as error:
        read(**more)
    return list(error.value.problems)


def test_everything_that_a_file_can_say_is_in_the_scenario(tmp_path):
    (tmp_path / "network.yaml").write_text(FILES["asc-ring"].read_text())
    (tmp_path / "scenario.yaml").write_text("""
network: network.yaml
from: 2026-12-01T00:00:00Z
until: 2026-12-04T00:00:00Z
circuits: {pop-livermore: {rate: 1 Gbit/s, delay: 10 ms, fails: {mtbf: 10 d, mttr: 1 h}}}
workload:
  - {name: nightly, class: urgent, from: albu10, to: live10, bytes: 2.688 GB, every: 17 s, between: "22:00-06:00"}
  - {name: dump, class: background, from: albu20, to: live20, files: 500 x 100 MB, opening: sender,
     mover: {streams: 4, block: 16 MB, lock_step: true, per_file: 10.2 s, files_at_once: 2, checkpoint: 1 GB}}
  - {name: window, class: predictable, from: losa10, to: live10, rate: 1 Gbit/s, for: 4h, at: 2026-12-02T00:00:00Z}
stores: {live20: {drains: 8 Gbit/s, holds: 64 GB}}
events: [{at: 2026-12-02T03:00:00Z, circuit: albuquerque-los-alamos, down_for: 4h}]
maintenance: [{circuit: los-alamos-pop, from: 2026-12-03T00:00:00Z, until: 2026-12-03T02:00:00Z, rate: 1 Gbit/s}]
vary: {circuits.pop-livermore.rate: [10 Gbit/s, 1 Gbit/s], dump.mover.block: [16 MB, 256 MB]}
runs: 20
seed: 7
""")
    found = loaded_scenario(tmp_path / "scenario.yaml")
    assert (found.runs, found.seed, len(found.variants)) == (20, 7, 4)
    first, last = found.variants[0].supposed, found.variants[3].supposed
    nightly, dump, window = first.items
    assert nightly.between_us == (22 * 3_600_000_000, 6 * 3_600_000_000)
    assert (dump.size_bytes, dump.file_bytes, dump.opening) == (50_000_000_000, 100_000_000, Opening.SENDER)
    assert dump.mover == Mover(4, 16_000_000, True, 10**9, 10_200_000, 2)
    assert last.items[1].mover.block_bytes == 256_000_000
    assert (window.rate_bps, window.for_us) == (10**9, 4 * 3_600_000_000)
    assert first.deaths == (
        CircuitDeath("albuquerque-los-alamos", instant_us("2026-12-02T03:00:00Z"), 4 * 3_600_000_000),
    )
    (failing,) = first.random_deaths
    assert (failing.circuit, failing.mtbf_us) == ("pop-livermore", 10 * DAY_US)
    rates = [next(c.rate_bps for c in s.site.network.circuits if c.name == "pop-livermore") for s in (first, last)]
    assert rates == [10**10, 10**9]
    assert [p.rate_bps for p in first.site.schedules["los-alamos-pop"]] == [10**9]


def test_what_an_announcement_says_beside_its_size_is_announced_too():
    stores = {"arch": {"drains": "1 Gbit/s", "holds": "1 GB"}}
    item = ITEM | {"from": "base20", "lanes": 2, "connects": "receiver", "session": "2.5 s", "deadline": "1 h"}
    said = {"workload": [item | {"deadline_for": "stored"}], "network": "two-lanes.yaml", "delays": {"meters": "90 ms"}}
    scenario = read(stores=stores, **said).variants[0].supposed
    asked = scenario.items[0].announced("a")
    assert (asked.lanes, asked.is_called, asked.session_us, asked.is_stored_by) == (2, True, 2_500_000, True)
    assert (scenario.delays.meters_us, scenario.delays.queues_us) == (90_000, 3_500)


@pytest.mark.parametrize("rate", ["250 Mbit/s", "750 Mbit/s"])
def test_a_circuit_of_another_rate_has_it_from_end_to_end(rate):
    """A faster one is not held back by the rate that its far end has in the network's file."""
    network = read(circuits={"south": {"rate": rate}}).variants[0].supposed.site.network
    rates = {link.rate_bps for tail, head, link in network.links() if "south" in (tail, head)}
    assert rates == {int(rate.removesuffix(" Mbit/s")) * 10**6}
    assert network.link("ls1", "north").rate_bps == 10**9


def test_nor_is_a_circuit_to_a_site_that_is_not_ours_held_back_by_what_is_behind_its_far_end():
    said = section_of(one_site(1, "here", "there"))
    rhine = said["circuits"]["rhine"]
    said["circuits"]["second"] = rhine | {"a": {"switch": "ls1", "port": "wan2"}}
    whole = described(said)
    slow = said | {"circuits": {name: one | {"rate": "1 Gbit/s"} for name, one in said["circuits"].items()}}
    faster = {name: {"rate": "10 Gbit/s"} for name in said["circuits"]}
    found = read(network=slow, circuits=faster, workload=[ITEM | {"from": "h0", "to": "there"}])
    assert rates_of(found.variants[0].supposed.site.network) == rates_of(whole) != rates_of(described(slow))


def rates_of(network):
    """The rate of each link."""
    return {(tail, head): link.rate_bps for tail, head, link in network.links()}


def test_what_has_dots_in_its_name_can_be_varied():
    network = section_of(loaded(FILES["chile-illinois-2"]))
    network["circuits"]["n.1"] = network["circuits"].pop("north")
    item = ITEM | {"name": "image.v2"}
    vary = {"image.v2.bytes": ["1 GB", "2 GB"], "circuits.n.1.rate": ["250 Mbit/s"], "image.v2.mover.streams": [4]}
    found = read(network=network, workload=[item], circuits={"south": {}}, vary=vary).variants
    assert [variant.supposed.items[0].size_bytes for variant in found] == [10**9, 2 * 10**9]
    assert [variant.supposed.items[0].mover.streams for variant in found] == [4, 4]
    assert {c.name: c.rate_bps for c in found[0].supposed.site.network.circuits}["n.1"] == 250 * 10**6


def test_what_is_left_to_nobody_is_run_once_however_many_runs_are_asked_for():
    assert read(runs=20).runs == 1


def test_an_item_of_the_night_comes_in_each_night_and_not_by_day():
    (item,) = (
        read(
            workload=[{**BASE["workload"][0], "every": "17 s", "between": "22:00-06:00"}],
        )
        .variants[0]
        .supposed.items
    )
    at_us, found = instant_us("2026-12-01T00:00:00Z"), []
    while (at_us := item.next_us(at_us)) is not None and at_us < instant_us("2026-12-03T00:00:00Z"):
        found.append(at_us)
        at_us += 1
    hours = {at // 3_600_000_000 % 24 for at in found}
    assert hours == {22, 23, 0, 1, 2, 3, 4, 5}
    assert all(after - before == 17_000_000 or after - before > 3_600_000_000 for before, after in pairwise(found))
    assert len(found) > 3_300


ITEM = {"name": "a", "class": "urgent", "from": "base20", "to": "arch", "bytes": "1 GB"}
RESERVED = {"name": "a", "class": "urgent", "from": "base20", "to": "arch", "rate": "1 Mbit/s", "for": "1 h"}
DEATH = {"at": "2026-12-01T01:00:00Z", "circuit": "north", "down_for": "1h"}
UNTIL = ["2026-12-02T00:00:00Z", "2026-12-03T00:00:00Z"]
IN_LOCK_STEP = {"streams": 2, "block": "16 MB", "lock_step": True}
STRIPED = ITEM | {"from": "albu", "to": "live", "mover": IN_LOCK_STEP}
STRANGER = {"name": "x", "from": "base20", "to": "arch", "bytes": "1 GB", "algorithm": "vegas", "loss": 1e-4}
BACKWARDS = {"circuit": "north", "from": "2026-12-02T00:00:00Z", "until": "2026-12-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"wrokload": []}, "wrokload: there is no such key"),
        ({"until": "2026-11-01T00:00:00Z"}, "until: must come after from"),
        (
            {"events": [{"at": "2026-12-01T00:00:00Z", "circuit": "nord", "down_for": "1h"}]},
            'events[0].circuit: there is no circuit "nord"; there are north, south',
        ),
        ({"circuits": {"nord": {}}}, "circuits.nord: there is no such circuit"),
        ({"stores": {"ark": {"drains": "1 Gbit/s", "holds": "1 GB"}}}, "stores.ark: there is no such host"),
        ({"vary": {"imgae.bytes": ["1 GB"]}}, 'there is no section and no workload "imgae"; there are image'),
        ({"vary": {"image.bytes": ["1 Gb"]}}, 'with image.bytes 1 Gb: workload[0].bytes: "1 Gb" is not a size'),
        ({"vary": {"image.bytes": [f"{n} GB" for n in range(1, 300)]}}, "vary: 299 combinations are more than 200"),
        (
            {"vary": {"events.0.at": ["2026-12-01T01:00:00Z"]}, "events": [DEATH]},
            "vary.events.0.at: cannot be varied: 0.at",
        ),
        ({"vary": {"network.mtu": [9000]}}, "vary.network.mtu: cannot be varied: mtu would be a key of what has none"),
        ({"vary": {"seed": [1, 2, 3]}}, "vary.seed: is the same for all variants; with runs: 3 each of them is drawn"),
        ({"vary": {"runs": [1, 2]}}, "vary.runs: is the same for all variants"),
        ({"vary": {"vary.image.bytes": [["1 GB"]]}}, "vary.vary.image.bytes: is the same for all variants"),
        ({"vary": {"image": [1]}}, "vary.image: is all of an item: say which of its keys, such as image.bytes"),
        ({"workload": [ITEM | {"from": ["base20", "base20"]}]}, "workload[0].from: need at least one host, each once"),
        (
            {"workload": [ITEM | {"every": "7 d", "between": "22:00-06:00"}]},
            "workload[0].every: is a day at most where between",
        ),
        ({"workload": [RESERVED | {"rate": "500 bit/s"}]}, "workload[0].rate: need at least 64 kbit/s, got 500 bit/s"),
        (
            {"workload": [RESERVED | {"deadline": "1 h"}]},
            "workload[0].deadline: is of what is announced, not of what is",
        ),
        ({"workload": [RESERVED | {"opening": "sender"}]}, "workload[0].opening: is of what is announced, not of"),
        ({"workload": [RESERVED | {"connects": "receiver"}]}, "workload[0].connects: is of what is announced, not of"),
        (
            {"workload": [RESERVED | {"mover": {"per_file": "1 s"}}]},
            "workload[0].mover: per_file is of files, and what is",
        ),
        ({"workload": [RESERVED | {"from": []}]}, "workload[0].from: need at least one host, each once"),
        ({"workload": [RESERVED | {"for": "4000 d"}]}, "workload[0].for: lies more than ten years ahead"),
        ({"workload": [ITEM | {"deadline": "4000 d"}]}, "workload[0].deadline: lies more than ten years ahead"),
        (
            {"circuits": {"north": {"delay": "0 s"}}},
            "circuits.north.delay: 0 s is out of bounds: it must be between 1 us and 10 s",
        ),
        ({"circuits": {"north": {"rate": "1 bit/s"}}}, "circuits.north.rate: 1 bit/s is out of bounds: it must be"),
        ({"workload": [ITEM | {"at": "2026-11-30T23:59:00Z"}]}, "workload[0].at: is not within from and until"),
        ({"workload": [ITEM | {"at": "2026-12-03T00:00:00Z"}]}, "workload[0].at: is not within from and until"),
        (
            {"workload": [ITEM | {"at": "2026-12-04T00:00:00Z", "every": "1 h"}], "vary": {"until": UNTIL}},
            "with until 2026-12-03T00:00:00Z: workload[0].at: is not within from and until",
        ),
        ({"events": [DEATH | {"at": "2027-12-01T00:00:00Z"}]}, "events[0].at: is not within from and until"),
        ({"events": [DEATH | {"at": "2026-11-30T23:00:00Z"}]}, "events[0].at: is over before from"),
        ({"others": [STRANGER]}, "others[0].algorithm: is not known; there are reno, cubic"),
        ({"others": [STRANGER, STRANGER]}, 'others[1].name: there is already a "'),
        ({"maintenance": [BACKWARDS]}, "maintenance[0].until: must come after from"),
        ({"workload": [{k: v for k, v in ITEM.items() if k != "bytes"}]}, "need one of bytes, files and rate"),
        ({"workload": [ITEM | {"to": "base21"}]}, "are not joined by a circuit"),
        ({"workload": [ITEM | {"files": "100 MB"}]}, '"100 MB" is not a number of files, try "500 x 100 MB"'),
        ({"workload": [ITEM | {"files": "3 x 0 MB"}]}, '"3 x 0 MB" have nothing in them, try "500 x 100 MB"'),
        (
            {"workload": [ITEM | {"every": "1 s", "between": "25:00-3"}]},
            'is not a part of the day (UTC), try "22:00-06:00"',
        ),
        ({"workload": [ITEM | {"lanes": 2}]}, "workload[0]: lanes: base20 has one interface"),
        ({"workload": [ITEM | {"lanes": 2, "bytes": None, "rate": "1 Mbit/s", "for": "1 h"}]}, "over one path"),
        ({"network": "four-lanes.yaml", "workload": [STRIPED | {"lanes": 3}]}, "mover.streams: need 3 or more in lock"),
        ({"workload": [ITEM | {"connects": "receiver"}]}, "workload[0]: connects: is for lanes"),
        ({"workload": [ITEM | {"deadline_for": "stored"}]}, "deadline_for: nobody knows what arch stores"),
        ({"workload": [ITEM | {"session": "1 s", "bytes": None, "rate": "1 Mbit/s", "for": "1 h"}]}, "not of what is"),
        ({"workload": BASE["workload"] * 2}, 'workload[1].name: there is already a "image"'),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_its_cure(more, said):
    assert any(said in each for each in problems(**more)), problems(**more)


def test_what_begins_before_the_scenario_and_goes_on_in_it_is_in_it_from_its_beginning():
    often = ITEM | {"at": "2026-11-30T23:59:30Z", "every": "1 min"}
    reaching = DEATH | {"at": "2026-11-30T23:30:00Z"}
    (variant,) = read(workload=[often], events=[reaching]).variants
    from_us = instant_us(BASE["from"])
    assert variant.supposed.items[0].next_us(from_us) == from_us + 30_000_000
    assert variant.supposed.deaths == (CircuitDeath("north", from_us, 1_800_000_000),)


def test_where_the_end_is_varied_what_comes_in_some_variants_is_left_out_of_the_others():
    late = {"at": "2026-12-02T12:00:00Z"}
    short, long = read(workload=[ITEM | late], events=[DEATH | late], vary={"until": UNTIL}).variants
    assert (short.supposed.deaths, len(long.supposed.deaths)) == ((), 1)
    assert not Simulation(short.supposed).run().transfers
    assert len(Simulation(long.supposed).run().transfers) == 1


def test_a_host_has_one_store_and_an_agent_that_tells_of_it():
    said = {"network": "two-lanes.yaml", "stores": dict.fromkeys(("base20", "base20.eth1"), STORE)}
    assert problems(**said) == ["stores.base20.eth1: is the host of base20, which has a store"]
    to_other = ITEM | {"from": "base21", "to": "base20.eth1", "deadline_for": "stored"}
    assert not any("deadline_for" in each for each in said_of(to_other, {"base20": STORE}, "two-lanes.yaml"))
    to_agentless = ITEM | {"from": "ts-a", "to": "ts-b", "deadline_for": "stored"}
    (why,) = [each for each in said_of(to_agentless, {"ts-b": STORE}, "two-switches.yaml") if "deadline_for" in each]
    assert "of a host with an agent" in why


def said_of(item, stores, network):
    """What is wrong with one item of a network; nothing if all is well."""
    try:
        read(network=network, workload=[item], stores=stores)
    except ConfigError as error:
        return error.problems
    return ()


def test_all_problems_are_said_at_once():
    found = problems(seed=-1, events=[{"at": "never", "circuit": "north", "down_for": "1h"}], nothing=1)
    assert len(found) == 3


@pytest.mark.parametrize("file", sorted((FOLDER.parents[1] / "contrib/what-if").glob("*.yaml")), ids=lambda f: f.stem)
def test_every_scenario_that_is_shipped_is_right(file, tmp_path):
    for network in FILES.values():
        (tmp_path / network.name).write_text(network.read_text())
    (tmp_path / file.name).write_text(file.read_text())
    assert loaded_scenario(tmp_path / file.name).variants


def test_what_is_varied_of_one_is_not_varied_of_others_that_share_its_alias():
    mover = {"streams": 1, "block": "16 MB", "lock_step": True}  # one object, as YAML reads &pftp and *pftp
    items = [ITEM | {"mover": mover}, ITEM | {"name": "b", "from": "base21", "mover": mover}]
    found = read(workload=items, vary={"a.mover.streams": [4, 16]}).variants
    assert [[i.mover.streams for i in v.supposed.items] for v in found] == [[4, 1], [16, 1]]
