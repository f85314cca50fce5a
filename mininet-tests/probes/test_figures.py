"""A figure is drawn again from the folder that a run has left."""

import json
import sys

from mininet_tests.probes.figures import folder_drawn


def test_a_figure_is_made_of_the_folder_on_the_command_line(monkeypatch, tmp_path):
    (tmp_path / "ring.json").write_text(json.dumps({"seen": 1}))
    (tmp_path / "report.json").write_text(json.dumps({"valid": True}))
    monkeypatch.setattr(sys, "argv", ["figure", str(tmp_path)])
    drawn, printed = [], []
    assert folder_drawn("ring", lambda *given: drawn.append(given), printed.append) == {"valid": True}
    assert drawn == [({"seen": 1}, {"valid": True}, tmp_path / "ring.png")]
    assert printed == [{"valid": True}]
