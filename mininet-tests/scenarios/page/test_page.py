"""The page in Chromium against a real controller: headline, roles, reserve by dragging, an offer, death and return."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=500)
    report = tmp_path / "report.json"
    assert report.exists(), f"{ran.stdout}\n{ran.stderr}"
    seen = json.loads(report.read_text())
    missed = {name: seen["aims"][name]["seen"] for name in seen["falls_short"]}
    assert [name for name in missed if not name.startswith("seconds ")] == [], missed  # the run itself judges times
    assert len(seen["aims"]) > 60
    assert {file.name for file in tmp_path.glob("*.png")} == {
        "wide-light.png",
        "wide-dark.png",
        "narrow-light.png",
        "narrow-dark.png",
    }
