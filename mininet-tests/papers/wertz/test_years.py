"""The observatory's year in docs/what-if.md is the one that was run, and its variants have the same deaths."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from controller.whatif.deaths import drawn_deaths
from mininet_tests.papers.wertz import years
from mininet_tests.papers.wertz.lab_rows import RESULTS
from mininet_tests.papers.wertz.years import YEARS, Year, scenario, table

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


def test_how_many_years_have_been_run_is_told(monkeypatch):
    one = Year("one circuit", 1, 100, 4, 0, 0, 2, {"north": 3_600_000_000})
    monkeypatch.setattr(years, "ProcessPoolExecutor", ThreadPoolExecutor)  # sees what is put in the place of a year
    monkeypatch.setattr(years, "year", lambda name, number, seed: replace(one, called=YEARS[name][number], seed=seed))
    told = []
    found = years.years(2, lambda share, what: told.append((share, what)))
    assert {called: of_it["runs"] for called, of_it in found.items()} == dict.fromkeys(PUBLISHED, 2)
    assert (told[0], told[-1], len(told)) == ((0.0, "0 of 8 years"), (1.0, "8 of 8 years"), 9)
