"""The file that every run leaves."""

import json
import sys

import pytest

from mininet_tests.testing.aims import at_most, stated
from mininet_tests.testing.reports import print_aims, report_of, write_report


def test_a_report_is_in_a_folder_that_need_not_be_there_and_its_aims_are_printed(tmp_path, capsys):
    out = tmp_path / "out" / "here"
    report = {"gap_ms": 31} | stated({"gap": at_most(31, 30)})
    write_report(out, report)
    print_aims(out, report)
    assert json.loads((out / "report.json").read_text()) == report
    assert capsys.readouterr().out == f"gap: 31 (at most 30)\nwritten: {out / 'report.json'}\n"


def test_what_a_run_has_left_is_read_whatever_its_exit_code_and_one_that_left_nothing_is_shown(tmp_path):
    runs = [sys.executable, "-c"]
    leaves = f"import sys; open('{tmp_path}/report.json', 'w').write('[1]'); sys.exit(3)"
    with pytest.raises(AssertionError, match="its last words"):
        report_of([*runs, "import sys; sys.exit('its last words')"], tmp_path)
    assert report_of([*runs, leaves], tmp_path) == [1]
