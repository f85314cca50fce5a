"""Every parser that a stranger reaches, with few inputs drawn by Hypothesis; a million of them in the long tier."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mininet_tests.scenarios.fuzz.run import INPUTS, aims, measured
from mininet_tests.scenarios.fuzz.targets import TARGETS, taken

EXAMPLES = 60


@st.composite
def changed(draw, seeds):
    """An example with pieces cut out, doubled, or replaced by others."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 8)))
        data[at:end] = draw(st.binary(max_size=8) | st.just(bytes(data[at:end]) * 2))
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_what_is_declared_comes_of_any_input(name):
    target = TARGETS[name]
    take, seeds = target.make()

    @given(changed(seeds) | st.binary(max_size=200))
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def refused_or_taken(data):
        taken(target, take, data)

    refused_or_taken()


@pytest.mark.parametrize("name", TARGETS)
def test_the_examples_are_taken(name):
    target = TARGETS[name]
    take, seeds = target.make()
    answers = [taken(target, take, seed) for seed in seeds]
    assert True in answers


def test_an_aim_that_is_missed_is_said():
    seen = {"inputs": 9, "parsers": {"a": {"found": ["KeyError"]}, "b": {"found": []}}}
    found = aims(seen, 10)
    assert [one.ok for one in found.values()] == [False, False]
    seen["parsers"]["a"]["found"] = []
    assert all(one.ok for one in aims(seen, 9).values())


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_million_inputs_raise_hang_and_grow_nothing(tmp_path):
    seen = measured(INPUTS, 1, tmp_path)
    missed = {name: one.seen for name, one in aims(seen, INPUTS).items() if not one.ok}
    assert not missed, "\n".join(f"{name}: {what}" for name, what in missed.items())
