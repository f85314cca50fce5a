"""What the packages depend on has no known vulnerability, as far as the advisories can be had where this runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LOCKS = sorted((Path(__file__).parent / "locks").glob("*.lock"))
KNOWN = "jinja2==2.4.1"  # has had advisories for ten years: who finds none in it has none to look at

pytestmark = [pytest.mark.long]


def audited(requirements: Path) -> list[dict[str, Any]]:
    """Return what ``pip-audit`` says of each pinned package."""
    command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "-f", "json", "-r", str(requirements)]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    if not asked.stdout:
        pytest.skip(f"the advisories cannot be had: {asked.stderr.strip().splitlines()[-1:]}")
    return json.loads(asked.stdout)["dependencies"]


@pytest.fixture(scope="module", autouse=True)
def _advisories(tmp_path_factory):
    """Skip without advisories: ``pip-audit`` then says that it knows no vulnerability, which is not so."""
    canary = tmp_path_factory.mktemp("canary") / "requirements.txt"
    canary.write_text(f"{KNOWN}\n")
    if not any(one.get("vulns") for one in audited(canary)):
        pytest.skip(f"the advisories cannot be had: none is known of {KNOWN}")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_no_vulnerability_is_known_of_what_is_packaged(lock):
    found = audited(lock)
    assert {one["name"]: one["vulns"] for one in found if one.get("vulns")} == {}
    assert [one["name"] for one in found if "skip_reason" in one] == [], "these were not looked at"
