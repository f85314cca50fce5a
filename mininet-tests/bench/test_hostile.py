"""The attacks of ``mininet-tests/run hostile``, few and short: what is counted, not how long a busy machine took."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mininet_tests.bench import hostile
from mininet_tests.bench.hostile import SITES, measured
from mininet_tests.bench.hostile_report import BEGIN, END, GROWN_BYTES, LOG_LINES, aims, published, rows, said
from mininet_tests.bench.strangers import other_attacks, rest_attacks, socket_attacks
from mininet_tests.lab.commands import ROOT


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    """What a controller in plain text and one by TLS met, both at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostile, "ROUNDS", 1)
        patch.setattr(hostile, "QUIET_S", 0.5)
        patch.setattr(hostile, "REST_S", 1.0)
        with ThreadPoolExecutor(len(SITES)) as beside:
            met = beside.map(lambda name: measured(40, 2.0, lambda _text: None, (name,))["sites"], SITES)
            return {name: seen for sites in met for name, seen in sites.items()}


@pytest.mark.root
@pytest.mark.timeout(400)  # the longest beside it, so the first
def test_the_honest_are_answered_beside_every_attack_and_nothing_breaks(seen):
    for site, found in seen.items():
        attacks = found["attacks"]
        assert {name: one["not_answered"] for name, one in attacks.items() if one["not_answered"]} == {}, site
        statuses = {int(code) for one in attacks.values() for code in one["statuses"]}
        assert statuses >= {200, 400}, site  # 413 is test_strangers'; a busy machine has too few listeners for a 429
        assert max(statuses) < 500, site
        assert found["tracebacks"] == 0, found["traceback"]
        assert found["log_lines"] <= LOG_LINES, site
        grown_bytes = max(one["resident_bytes"] for one in attacks.values()) - found["alone"]["resident_bytes"]
        assert grown_bytes < GROWN_BYTES, site
        nobody_in = [name for name, one in attacks.items() if not one["got"] and one["gets"] != "nowhere"]
        assert nobody_in == [], site


@pytest.mark.root
def test_whoever_says_too_much_is_cut_off(seen):
    much = ("rest: header bombs", "rest: many header lines", "rest: endless body", "rest: endless chunks")
    for site, found in seen.items():
        for name in (*much, "openflow: no OpenFlow", "agents: no hello"):
            assert found["attacks"][name]["cut"] > 0, (site, name)
    of_others = seen["plain text"]["attacks"]["rest_socket: another user of the machine"]
    assert (of_others["opened"], of_others["cut"] > 0) == (0, True)


def test_every_port_is_attacked():
    attacks = (*rest_attacks(5_000), *other_attacks(5_000), *socket_attacks(5_000))
    assert {one.port for one in attacks} == {"rest", "agents", "openflow", "rest_socket"}
    many = {one.name: one.strangers for one in rest_attacks(5_000)}
    assert (many["idle connections"], many["half heads"], many["event listeners"]) == (5_000, 5_000, 10_000)
    assert many["half TLS handshakes"] == 500


def _site(p99_ms: float, missed: int, statuses: dict[str, int], resident_bytes: int, counted: int) -> dict[str, Any]:
    came = {"got": int(not missed), "gets": "in"}
    one = {"p99_ms": p99_ms, "not_answered": missed, "statuses": statuses, "resident_bytes": resident_bytes, **came}
    alone = {"p99_ms": 5.0, "resident_bytes": 10**8}
    more = {"tracebacks": counted, "traceback": "", "said": {}, "log_lines": counted * 1_000}
    return {"sites": {"TLS": {"alone": alone, "attacks": {"rest: floods": one}, "after": one, **more}}}


def test_an_aim_that_is_missed_is_said():
    found = aims(_site(56.0, 1, {"500": 2}, 2 * 10**8, 3))
    assert [aim.ok for aim in found.values()] == [False] * 8
    assert all(aim.ok for aim in aims(_site(54.0, 0, {"429": 2}, 10**8, 0)).values())


def test_the_table_of_the_documentation_is_that_of_the_published_run():
    record = json.loads((ROOT / "docs" / "results" / "hostile.json").read_text())
    report = {**record["figures"], "commit": record["commit"], "falls_short": record["falls_short"]}
    page = (ROOT / "docs" / "security.md").read_text()
    assert f"{BEGIN}\n{said(report)}\n{END}" in page
    assert published(page, report) == page
    assert published(page, report | {"falls_short": ["memory"]}) != page


def test_a_report_has_a_row_for_each_attack():
    report = rows(_site(54.0, 0, {"429": 2}, 10**8, 0)) | {"commit": "c0ffee", "falls_short": []}
    assert "Measured at commit c0ffee." in said(report)
    assert "| REST, TLS | floods | 0 | 54.0 ms | 100 MB | 0 | 0 | 429: 2 |" in said(report)
