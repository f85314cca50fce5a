"""Figure 3 and starts, from what was seen to summary, aims, page and picture; no lab is needed for this."""

import pytest

from mininet_tests.papers.freemon import aims, cells, figure, starts, summary
from mininet_tests.papers.freemon.report import page


def seen(cell, s, **found):
    """A cell that has been measured."""
    run = {"s": s, "sent_segments": 1000, "again_segments": 10, "queue_dropped": 0, "fallback": False} | found
    facts = {"idle_share": 0.8, "wall_s": 7.0, "dilation": 1, "memory_used_mib": 400, "commit": "c0ffee"}
    return cell | facts | {"versions": {"qemu": "7.2"}, "runs_seen": [run]}


def figure3_seen(connection, s):
    """A cell of figure 3: some data, a pause, then a full line, and what was lost sent again after the end."""
    (cell,) = (one for one in cells.figure3_cells() if one["connection"] == connection)
    segments = [0, 45, 9, *[0] * 2, *[812] * 5, 0, 1]
    readable = [0] * len(segments)
    return seen(cell, s, segments=segments, readable_bytes=readable, losses_s=[0.07], received_s=s - 0.09)


def test_figure_3_is_told_by_its_pauses_its_losses_and_the_receivers_end(tmp_path):
    one = figure3_seen("sender connects", 2.646)
    numbers = summary.summary([one])
    told = numbers["figure3"]["sender connects"]
    assert told["pauses_s"] == [(0.02, 0.05), (0.1, 0.11)]
    assert (told["received_s"], told["width_s"], told["paper_s"]) == (2.646 - 0.09, 0.11, 2.65)
    assert "| sender connects | 2.65 | 2.646 | 2.556 | 0.110 | 0.02 to 0.05" in page([one])
    assert aims.aims(numbers)["figure 3, sender connects: confirmed by, s"].ok
    late = summary.summary([figure3_seen("reused", 2.646)])
    assert not aims.aims(late)["figure 3, reused: confirmed by, s"].ok
    assert figure.drawn([one], tmp_path) == ["figure3.png"]
    assert (tmp_path / "figure3.png").stat().st_size > 10_000


def start_seen(way, senders, buffer_bytes, **found):
    cell = cells.starts_cell(way, senders, buffer_bytes)
    return seen(cell, 2.47, **({"most_queued_bytes": 150_000, "ping_most_ms": 0.2} | found))


def test_starts_are_told_by_what_is_in_the_ports_buffer_and_what_it_drops():
    some = [
        start_seen("headway", 10, 4_000_000),
        start_seen("pause", 10, 4_000_000, stops=12, stopped_s=0.15, ping_most_ms=31.0),
        start_seen("window", 10, 4_000_000, queue_dropped=300, most_queued_bytes=3_900_000),
        start_seen("window", 10, 30_000_000, most_queued_bytes=20_300_000),
    ]
    numbers, text = summary.summary(some), page(some)
    found = aims.aims(numbers)
    assert [name for name, aim in found.items() if "dropped" in name] == [
        "starts-headway-10-4MB: dropped at the port",
        "starts-pause-10-4MB: dropped at the port",
    ]
    assert all(aim.ok for name, aim in found.items() if "dropped" in name)
    assert "| Headway: window and pacing | 10 | 4 MB | 0.15 MB | - | 0 | 10 | 2.470 | 0.2 ms | - |" in text
    assert "| 10 | 4 MB | 0.15 MB | - | 0 | 10 | 2.470 | 31.0 ms | 12, 0.150 s |" in text
    assert "| window only | 10 | 4 MB | 3.90 MB | - | 300 |" in text
    assert "| window only | 10 | 30 MB | 20.30 MB | 20 MB | 0 |" in text
    dropped = summary.summary([start_seen("htb", 10, 4_000_000, queue_dropped=1)])
    assert not aims.aims(dropped)["starts-htb-10-4MB: dropped at the port"].ok


@pytest.mark.parametrize(("way", "ok"), [("headway", False), ("htb", False), ("pause", False), ("window", True)])
def test_only_a_start_that_nothing_keeps_back_may_fall_back(way, ok):
    numbers = summary.summary([start_seen(way, 10, 4_000_000, fallback=True)])
    assert aims.aims(numbers)["transfers on the fallback"].ok is ok


def test_the_start_that_loses_most_is_measured_last():
    assert [one["name"] for one in cells.starts_cells()][-1] == "starts-window-10-4MB"


def test_a_sender_held_by_htb_has_its_share_to_the_receiver_and_the_interface_for_the_rest():
    root, *rest = starts.held("nic1", "10.77.2.1", 98_000_000, 980_000_000)
    assert root.endswith("htb default 2")
    assert [line.split(" htb ")[1].split()[1] for line in rest if " htb " in line] == ["98000000bit", "980000000bit"]
    assert rest[-1].endswith("match ip dst 10.77.2.1 flowid 10:1")
