"""The file that every run leaves."""

import json

from mininet_tests.testing.aims import at_most, stated
from mininet_tests.testing.reports import print_aims, write_report


def test_a_report_is_in_a_folder_that_need_not_be_there_and_its_aims_are_printed(tmp_path, capsys):
    out = tmp_path / "out" / "here"
    report = {"gap_ms": 31} | stated({"gap": at_most(31, 30)})
    write_report(out, report)
    print_aims(out, report)
    assert json.loads((out / "report.json").read_text()) == report
    assert capsys.readouterr().out == f"gap: 31 (at most 30)\nwritten: {out / 'report.json'}\n"
