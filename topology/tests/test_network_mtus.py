"""The largest packet of a network: what its file says, else the least that is said of a part of it."""

from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import given

from mininet_tests.testing.drawn import sections
from topology.network_file import network_of
from topology.problems import Problems


def mtus_below(values: Mapping[str, Any]) -> Iterator[int]:
    """What is said of hosts, interfaces and circuits."""
    for inside in values.values():
        if isinstance(inside, Mapping):
            yield from (inside["mtu"],) if "mtu" in inside else ()
            yield from mtus_below(inside)


@given(sections())
def test_a_network_has_the_mtu_that_is_said_of_it_or_the_least_of_its_parts(section):
    network = network_of(section, Problems())
    assert network.framing.mtu_bytes == section.get("mtu", min(mtus_below(section), default=1500))


@given(sections())
def test_a_part_that_carries_less_than_the_network_is_a_problem_where_it_stands(section):
    name = next(iter(section["circuits"]))
    section["circuits"][name] |= {"mtu": 1279}
    problems = Problems()
    found = network_of(section | {"mtu": 1280}, problems)
    assert found is None
    assert [one.split(": ")[0] for one in problems.found] == [f"circuits.{name}.mtu"]
