"""The ends of transfers, compared: each way of sending them against the one before, by the same cells."""

import json

from mininet_tests.lab.cells import Kept
from mininet_tests.papers.freemon import cells, tail
from mininet_tests.papers.freemon.limits import Way


def small(way, *times_s, connection="reused"):
    """A small object that has been measured, its end sent in one of the ways."""
    cell = tail.tail_cell(10_000_000, 800, 1.0, connection, way)
    run = {"again_segments": 7, "dropped_segments": 6, "fallback": False}
    run |= {"parities": 64, "rebuilt": 5} if way == "coded" else {}
    facts = {"idle_share": 0.8, "mean_idle_share": 0.9, "commit": "c0ffee"}
    return cell | facts | {"runs_seen": [run | {"s": s} for s in times_s]}


def test_a_small_object_is_late_by_round_trips_beyond_what_its_bytes_need():
    limit_s = Way(rtt_ms=800).limit_s(10_000_000)
    reused = tail.summary([small("copied", limit_s + 0.8, limit_s), small("once", limit_s + 4, limit_s + 1.6)])
    assert reused["paths"] == {
        "reused, 10 MB, 800 ms, 1%": {
            "copied": reused_row(median=0.5, worst=1.0, median_s=limit_s + 0.4),
            "once": reused_row(median=3.5, worst=5.0, median_s=limit_s + 2.8),
        }
    }
    new = small("copied", limit_s + 0.8, connection="sender connects")
    assert 0 < tail.more_rtts(new)[0] < 0.01, "a sender that connects waits for a round trip, its first segments apart"


def reused_row(median, worst, median_s):
    row = {"median_rtts": median, "mean_rtts": median, "worst_rtts": worst, "busy_permille": 100}
    counts = {"lost": 12, "sent_again": 14, "parities": 0, "rebuilt": 0, "runs": 2, "commit": "c0ffee"}
    return row | {"median_s": round(median_s, 4)} | counts


def test_what_was_measured_one_way_only_or_failed_is_compared_with_nothing():
    assert tail.summary([small("copied", 5.0), small("once", 5.0) | {"failed": "no line"}])["paths"] == {}


def test_parities_that_make_a_transfer_slower_fall_short():
    limit_s = Way(rtt_ms=800).limit_s(10_000_000)
    found = tail.summary([small("copied", limit_s, limit_s + 0.8), small("coded", limit_s + 0.1, limit_s + 1.2)])
    assert [name for name, aim in tail.aims(found).items() if not aim.ok] == [
        "reused, 10 MB, 800 ms, 1%: median of coded later than copied, round trips",
        "reused, 10 MB, 800 ms, 1%: worst of coded later than copied, round trips",
    ]


def test_what_is_published_of_cells_gives_the_same_rows_and_is_not_measured_again(tmp_path):
    one = small("coded", 5.0, 6.0)
    cell = tail.tail_cell(10_000_000, 800, 1.0, "reused", "coded")
    published = json.loads(json.dumps(tail.slim(one, cell)))
    assert tail.summary([published, small("copied", 5.0)]) == tail.summary([one, small("copied", 5.0)])
    kept = Kept(tmp_path)
    kept.keep(published)
    assert kept.missing([cell]) == []


def test_the_tables_have_a_row_for_each_way_of_a_path():
    found = tail.summary([small("copied", 5.0), small("coded", 5.0)])
    rows = [line for line in tail.page(found).splitlines() if line.startswith("| reused")]
    assert [row.split(" | ")[1] for row in rows] == ["coded", "copied"]
    assert len({line.count("|") for line in tail.page(found).splitlines() if line.startswith("|")}) == 1


def test_the_page_says_which_aims_are_missed_how_many_cells_are_measured_and_each_rows_commit():
    slower = small("coded", 5.0) | {"commit": "decade"}
    lines = tail.page(tail.summary([small("copied", 4.0), slower])).splitlines()
    path = "reused, 10 MB, 800 ms, 1%"
    assert f"Measured: 2 of {len(tail.cells())} cells." in lines
    assert f"- {path}: median of coded later than copied, round trips: 1.25, aim: at most 0.05" in lines
    assert [line.split(" | ")[-1] for line in lines if line.startswith(f"| {path}")] == ["decade |", "c0ffee |"]
    held = tail.page(tail.summary([small("copied", 5.0), small("coded", 5.0)]))
    assert "All aims hold." in held.splitlines()


def test_missed_aims_are_left_to_the_launcher_and_published_without_measuring(tmp_path, monkeypatch):
    monkeypatch.setattr(tail, "DOCS", tmp_path)
    asked = [tail.tail_cell(10_000_000, 800, 1.0, "reused", way) for way in ("copied", "coded")]
    seen = [small("copied", 4.0), small("coded", 5.0)]
    tail.published(seen, tail.summary(seen))
    assert tail.main(["--only", "^$", "--published", "--publish", "--out", str(tmp_path / "out")]) == 0
    assert [json.loads(line)["name"] for line in (tmp_path / "tail.jsonl").read_text().splitlines()] == [
        one["name"] for one in reversed(asked)
    ]
    assert json.loads((tmp_path / "out" / "report.json").read_text())["falls_short"]


def test_the_published_page_is_of_the_published_cells():
    seen = [json.loads(line) for line in (tail.DOCS / "tail.jsonl").read_text().splitlines()]
    assert (tail.DOCS / "tail.md").read_text() == tail.page(tail.summary(seen))


def test_each_way_is_measured_by_agents_of_its_own():
    alike = {cells.likeness(cell) for cell in tail.cells()}
    assert len(alike) == len(tail.WAYS)
