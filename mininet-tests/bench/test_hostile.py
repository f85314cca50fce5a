"""The attacks of ``mininet-tests/run hostile``, few and short: what is counted, not how long a busy machine took."""

from typing import Any

import pytest

from mininet_tests.bench.hostile import GROWN_BYTES, aims, measured


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    """What a controller met."""
    return measured(40, 1.0, lambda _text: None)


@pytest.mark.root
def test_the_honest_are_answered_beside_every_attack_and_nothing_breaks(seen):
    assert {name: one["not_answered"] for name, one in seen["attacks"].items() if one["not_answered"]} == {}
    statuses = {int(code) for one in seen["attacks"].values() for code in one["statuses"]}
    assert {200, 400, 413, 429} <= statuses
    assert max(statuses) < 500
    assert seen["tracebacks"] == 0, seen["traceback"]
    assert (
        max(one["resident_bytes"] for one in seen["attacks"].values()) - seen["alone"]["resident_bytes"] < GROWN_BYTES
    )


@pytest.mark.root
def test_whoever_says_too_much_is_cut_off(seen):
    for name in ("header bombs", "many header lines", "endless body", "endless chunks", "switches' port, no OpenFlow"):
        assert seen["attacks"][name]["cut"] > 0, name


def test_an_aim_that_is_missed_is_said():
    alone = {"p99_ms": 5.0, "resident_bytes": 10**8}
    one = {"p99_ms": 56.0, "not_answered": 1, "statuses": {"500": 2}, "resident_bytes": 2 * 10**8}
    found = aims({"alone": alone, "attacks": {"floods": one}, "tracebacks": 3})
    assert [aim.ok for aim in found.values()] == [False] * 5
    good = {"p99_ms": 54.0, "not_answered": 0, "statuses": {"429": 2}, "resident_bytes": 10**8}
    assert all(aim.ok for aim in aims({"alone": alone, "attacks": {"floods": good}, "tracebacks": 0}).values())
