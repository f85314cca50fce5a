"""What the tests of the long line have in common: scenarios that are run once, some in each boot."""

import json

import pytest

from mininet_tests.lab import commands
from mininet_tests.lab.played import is_long_tier, relayed
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE

BOOT_LIMIT_S = 1800  # 200 to 300 s on a quiet machine, twice as long beside fast tests
SHORT = ("sharing", "demand", "faults")
BOOTS = (SHORT, ("start", "change", "fq", "rtt"), ("queue", "loss", "tail"), ("one-percent",))


@pytest.fixture(scope="module")
def seen(request, tmp_path_factory):
    """What a scenario has seen, by its name; each group of scenarios is run once, when it is first asked for."""
    folders, codes = {}, {}

    def of(name):
        boot = next(boot for boot in BOOTS if name in boot)
        if boot not in folders:
            folders[boot] = folder = tmp_path_factory.mktemp("-".join(boot))
            options = "--timeout", str(BOOT_LIMIT_S), "--out", str(folder)
            few = [] if is_long_tier(request) else ["--few"]
            scenario = commands.module("scenarios.longpath.run", "--out", str(folder), *few, *boot)
            command = commands.in_lab(*options, command=scenario)
            codes[boot] = relayed("longpath", command)
        result = folders[boot] / f"{name}.json"
        if not result.exists():
            logs = "\n".join(f"== {log.name}\n{log.read_text()[-2000:]}" for log in folders[boot].glob("*-log"))
            pytest.fail(f"{name}: no result, exit code {codes[boot]}\n{logs}")
        saw = json.loads(result.read_text())
        idle_share = saw.get("idle_share", 1)  # what counts and does not time says none
        assert idle_share >= LEAST_IDLE_SHARE, f"{name}: the CPU was full: idle {idle_share:.1%}"
        return saw

    return of
