"""The page in Chromium against a real controller: headline, roles, reserve by dragging, an offer, death and return."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from mininet_tests.testing.reports import report_of

ISOLATED = Path(__file__).parents[2] / "site/isolated.sh"

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("chromedriver"), reason="needs root and Chromium with its driver"
    ),
    pytest.mark.timeout(600),
]


def test_an_operator_and_an_astronomer_find_what_they_need(tmp_path):
    command = [ISOLATED, sys.executable, "-m", "mininet_tests.scenarios.page.run", "--out", tmp_path, "--pages", "0"]
    seen = report_of(command, tmp_path, timeout_s=500)
    missed = {name: seen["aims"][name]["seen"] for name in seen["falls_short"]}
    assert [name for name in missed if not name.startswith("seconds ")] == [], missed  # the run itself judges times
    assert len(seen["aims"]) > 60
    assert {file.name for file in tmp_path.glob("*.png")} == {
        "wide-light.png",
        "wide-dark.png",
        "narrow-light.png",
        "narrow-dark.png",
    }
