"""The observatory's year in docs/what-if.md is the one that was run, and its variants have the same deaths."""

import json

import pytest

from controller.whatif.deaths import drawn_deaths
from mininet_tests.papers.wertz.lab_rows import RESULTS
from mininet_tests.papers.wertz.years import YEARS, scenario, table

PUBLISHED = json.loads((RESULTS / "what-if.json").read_text())["figures"]["year"]


def test_the_manual_has_the_table_of_the_published_run():
    assert table(PUBLISHED) in (RESULTS.parent / "what-if.md").read_text()


def test_every_variant_was_run_and_is_called_what_the_file_has():
    assert list(PUBLISHED) == [called for variants in YEARS.values() for called in variants]
    for name, variants in YEARS.items():
        assert len(scenario(name).variants) == len(variants)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_northern_circuit_dies_at_the_same_times_in_every_variant(seed):
    found = {
        tuple(
            death
            for death in drawn_deaths(one.supposed.random_deaths, one.supposed.from_us, one.supposed.until_us, seed)
            if death.circuit == "north"
        )
        for name in YEARS
        for one in scenario(name).variants
    }
    assert len(found) == 1
    assert found.pop()
