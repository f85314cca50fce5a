"""What the page of results says of several circuits is what is published of them."""

import json

from mininet_tests.papers.freemon.several_circuits import PUBLISHED, section


def test_every_number_is_of_the_published_files(tmp_path):
    for name in ("lanes", "pftp"):
        (tmp_path / f"{name}.json").write_text((PUBLISHED / f"{name}.json").read_text())
    assert section(tmp_path) == section()
    lanes = json.loads((tmp_path / "lanes.json").read_text())
    lanes["figures"]["took_s"]["curl, undisturbed"] = 99.123
    lanes["figures"]["holes_s"]["at 40 Mbit/s: sctp-rfc4960, interface dies"] = [[0.0, 70.5], [71.0, 1.25]]
    (tmp_path / "lanes.json").write_text(json.dumps(lanes))
    changed = section(tmp_path)
    assert "| curl, 2.688 GB over both circuits | 16.40 s | 99.12 s |" in changed
    assert "| without a byte likewise, SCTP by RFC 4960 | 63 s | 71.75 s |" in changed


def test_all_programs_and_protocols_are_there():
    for word in ("lanes.md", "MPTCP", "SCTP", "PFTP", "figure 11"):
        assert word in section()
