"""The paper's tables, limits, cells, summary and page are what they should be; no lab is needed for this."""

import json
import random
from collections import deque
from decimal import Decimal

import pytest

from mininet_tests.papers.freemon import aims, cells, programs, run, summary, tools
from mininet_tests.papers.freemon.cells import (
    PAPER_LOSS_PERCENT,
    PAPER_RTT_MS,
    batches,
    rival_cell,
    table_cell,
    ten_cell,
)
from mininet_tests.papers.freemon.limits import (
    IMAGE_SLICE_BYTES,
    LATENCIES_MS,
    LOSSES_PERCENT,
    SEGMENTS,
    SUPER_PACKETS,
    Way,
    ideal_s,
    rounded,
    table1,
    table2,
)
from mininet_tests.papers.freemon.page_again import DOCS, page_again, published_cells
from mininet_tests.papers.freemon.report import page
from mininet_tests.papers.freemon.result import result
from mininet_tests.papers.freemon.tables import within_aims


def seen(cell, *times_s, **others):
    """A cell that has been measured."""
    counted = {"sent_segments": 1000, "again_segments": 10, "reorderings": 3, "queue_dropped": 0}
    runs = [{"s": s} | counted for s in times_s]
    facts = {"idle_share": 0.8, "wall_s": 7.0, "dilation": 1, "memory_used_mib": 400, "commit": "c0ffee"}
    return cell | facts | {"versions": {"qemu": "7.2"}, "runs_seen": runs} | others


def reused(rtt_ms=180, loss=0.01, model=SUPER_PACKETS):
    return table_cell(rtt_ms, loss, "reused", model, 3)


def test_a_cell_is_the_same_after_it_was_kept():
    for cell in cells.cells(quick=False):
        assert json.loads(json.dumps(cell)) == cell


def test_table_2_is_table_1_less_a_round_trip_so_both_were_copied_right():
    assert len(table1()) == len(table2()) == len(LATENCIES_MS) * len(LOSSES_PERCENT) == 60
    for (rtt_ms, loss), printed in table2().items():
        assert abs(table1()[rtt_ms, loss].median - Decimal(rtt_ms) / 1000 - printed) <= Decimal("0.01"), (rtt_ms, loss)


def test_no_limit_is_above_what_the_paper_has_measured():
    for (rtt_ms, loss), printed in table2().items():
        assert rounded(Way(rtt_ms=rtt_ms).limit_s(IMAGE_SLICE_BYTES)) <= printed, (rtt_ms, loss)


@pytest.mark.parametrize(
    ("rate_bps", "mtu_bytes", "size_bytes", "limit_s"),
    [  # segments of 1448 in 1538 bytes, of 8948 in 9038
        (10**9, 1500, 1448, 1538 * 8e-9 + 0.18),
        (10**9, 1500, 1449, (1538 + 91) * 8e-9 + 0.18),
        (10**10, 9000, 2 * 8948, 2 * 9038 * 8e-10 + 0.18),
        (10**10, 1500, 2_688_024_580, 2.4641),
        (10**10, 9000, 2_688_024_580, 2.3520),
    ],
)
def test_the_limit_is_the_bytes_on_the_wire_and_one_round_trip(rate_bps, mtu_bytes, size_bytes, limit_s):
    assert Way(rate_bps, 180, mtu_bytes).limit_s(size_bytes) == pytest.approx(
        limit_s, abs=5e-5 if limit_s > 1 else 1e-12
    )


def test_every_cell_has_a_name_of_its_own_and_the_quick_ones_are_few():
    names = [cell["name"] for cell in cells.cells(quick=False)]
    assert len(set(names)) == len(names)
    quick = cells.cells(quick=True)
    assert {cell["name"] for cell in quick} < set(names)
    assert len(quick) <= 15


def test_the_grid_is_whole_in_both_models_with_the_runs_that_the_paper_takes():
    found = [cell for cell in cells.cells(quick=False) if cell["experiment"] == "table"]
    assert len(found) == 12 * 3 * (1 + 4 * 2)
    assert {cell["runs"] for cell in found if not cell["loss_percent"]} == {1}
    lossy = [cell for cell in found if cell["loss_percent"]]
    assert {cell["runs"] for cell in lossy if cell["rtt_ms"] == 180} == {20}
    others = [cell for cell in lossy if cell["rtt_ms"] != 180]
    assert {cell["runs"] for cell in others} == {5, 20}
    assert {(cell["connection"], cell["loss_percent"]) for cell in others if cell["runs"] == 20} == {
        ("reused", 0.1),
        ("reused", 1.0),
    }


def test_all_contestants_on_a_path_have_the_same_seed():
    rivals = [cell for cell in cells.cells(quick=False) if cell["experiment"] == "rivals"]
    (seed,) = {cell["seed"] for cell in rivals}
    assert seed == reused(PAPER_RTT_MS, PAPER_LOSS_PERCENT)["seed"] != reused(180, 0.1)["seed"]
    assert {cell["algorithm"] for cell in rivals} == {"headway", *cells.ALGORITHMS}


def test_cells_of_one_boot_are_of_one_site_and_all_are_measured():
    wanted = cells.cells(quick=False)
    made = list(batches(wanted, ("line",), ("site",)))
    assert sorted(cell["name"] for batch in made for cell in batch.cells) == sorted(cell["name"] for cell in wanted)
    for batch in made:
        assert len({cells.likeness(cell) for cell in batch.cells}) == 1
        assert batch.command == (("site",) if batch.cells[0]["experiment"] in cells.SITE_EXPERIMENTS else ("line",))
        assert batch.dilation >= (4 if batch.cells[0]["rate_bps"] > 10**9 else 2)


def test_a_program_is_a_contestant_by_its_own_name():
    names = [summary.contestant(cell) for cell in cells.cells(quick=False) if "program" in cell]
    assert {"gridftp over bbr x 8", "gridftp-udt x 1", "srt x 1"} < set(names)
    assert {cell["program"] for cell in cells.cells(quick=False) if "program" in cell} == set(programs.PROGRAMS)


def test_tools_are_on_the_page_with_their_shares_and_the_lag():
    (cell,) = (cell for cell in cells.cells(quick=False) if cell["experiment"] == "tools")
    assert set(cell["tools"]) == set(tools.TOOLS)
    payload_bps = Way().payload_bps
    run = {"tool": "nuttcp", "s": 3.5, "bps": payload_bps * 94 // 100, "all_bps": payload_bps}
    one = seen(cell) | {"runs_seen": [run | {"lag_before_s": 0.1, "lag_s": 0.123}]}
    assert summary.summary([one])["tools"]["nuttcp"]["image_share"] == pytest.approx(0.94)
    assert "| nuttcp | 3.50 s | 94.0% | 100.0% | 100 ms | 123 ms |" in page([one])


def test_a_cell_is_at_or_below_the_paper_as_the_paper_rounds():
    below, above = seen(reused(), 2.474, 2.4749, 2.6), seen(reused(200), 2.4951, 2.6, 2.4)
    numbers = summary.summary([below, above])["table2"]
    assert (numbers["cells"], numbers["cells_at_or_below_paper"]) == (2, 1)
    assert numbers["cells_per_packet"] == 0
    assert numbers["worst_median_over_limit_rtts"] is None


def test_a_cell_of_table_1_is_beside_the_papers_median_and_its_mean():
    asked = [cells.table_cell(180, 0.1, who, SUPER_PACKETS, 5) for who in ("sender connects", "receiver connects")]
    late = [seen(cell, 2.65, 2.65, s) for cell, s in zip(asked, (3.3, 3.2), strict=True)]  # the paper: 2.75 and 2.84
    numbers = summary.summary(late)["table1"]
    assert [one["cells_at_or_below_paper"] for one in numbers.values()] == [1, 1]
    assert [one["cells_at_or_below_paper_by_mean"] for one in numbers.values()] == [0, 1]
    found = aims.aims(summary.summary(late))
    assert not found["table 1, sender connects: cells at or below the paper by mean"].ok
    assert found["table 1, receiver connects: cells at or below the paper by mean"].ok
    assert "| 180 ms | - | - | - | 2.65, **2.87** (2.75, 2.84) |" in page(late)


def test_the_worst_cells_of_single_packets_are_told_in_round_trips():
    limit_s = Way().limit_s(IMAGE_SLICE_BYTES)
    one = seen(reused(model=SEGMENTS), *(limit_s + 0.18 * rtts for rtts in (0.2, 0.5, 1.9)))
    both = [one, seen(reused(0, model=SEGMENTS), 9.0)]  # no round trips at 0 ms
    numbers = summary.summary(both)["table2"]
    assert numbers["worst_median_over_limit_rtts"] == pytest.approx(0.5)
    assert numbers["worst_p95_over_limit_rtts"] == pytest.approx(1.9)
    assert (numbers["cells_per_packet"], numbers["cells_with_round_trip"], numbers["cells_within_aims"]) == (2, 1, 1)
    assert "| reused connections (Table 2) | 1 of 2 | 0.50 | 1.90 |" in page(both)
    assert "as in 2 of 2 cells, and the only one in 1." in page(both)


def test_the_worst_cells_of_new_connections_have_a_line_and_aims_of_their_own():
    asked = [cells.table_cell(180, 0.01, connection, SEGMENTS, 5) for connection in cells.CONNECTIONS]
    slowest = {"reused": 1.9, "sender connects": 2.5, "receiver connects": 33.0}
    some = []
    for cell in asked:
        limit_s = result(seen(cell, 3.0)).limit_s
        some.append(seen(cell, *(limit_s + 0.18 * rtts for rtts in (0.2, 0.5, slowest[cell["connection"]]))))
    numbers, text = summary.summary(some), page(some)
    found = aims.aims(numbers)
    assert numbers["table1"]["receiver_connects"]["worst_p95_over_limit_rtts"] == pytest.approx(33.0)
    for table, connection in ((1, "sender connects"), (1, "receiver connects"), (2, "reused")):
        name = f"table {table}, {connection}" if table == 1 else "table 2"
        assert found[f"{name}: worst median over the limit, round trips"].ok
        worst = found[f"{name}: worst p95 over the limit, round trips"]
        assert (worst.seen, worst.ok) == (pytest.approx(slowest[connection]), connection == "reused")
    assert "| the receiver connects (Table 1) | 1 of 1 | 0.50 | 33.00 |" in text
    assert "New connections, super-packets, cells at or below the paper" not in text
    assert "table 1, sender connects: cells at or below the paper" not in found


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.05])
def test_the_ideal_sender_is_what_a_simulation_of_each_segment_says(loss):
    way, size_bytes = Way(10**8, 100), 1448 * 9000
    times_s = [simulated_s(way, size_bytes, loss, random.Random(seed)) for seed in range(200)]
    for share, within in ((0.5, 0.12), (0.95, 0.05)):
        ideal = ideal_s(way, size_bytes, loss, share)
        assert sum(s <= ideal for s in times_s) / len(times_s) == pytest.approx(share, abs=within), share


def simulated_s(way, size_bytes, loss, chances):
    """One transfer by a perfect sender, segment by segment."""
    left, rtt_s = size_bytes // way.framing.mss_bytes, way.rtt_ms / 1000
    each_s = (way.limit_s(size_bytes) - rtt_s) / left
    now_s, ended_s, due_s = 0.0, 0.0, deque()
    while left or due_s:
        if due_s and (due_s[0] <= now_s or not left):
            now_s = max(now_s, due_s.popleft())
        else:
            left -= 1
        now_s += each_s
        if chances.random() < loss:
            due_s.append(now_s + rtt_s)
        else:
            ended_s = max(ended_s, now_s + rtt_s)
    return ended_s


def test_one_percent_of_single_packets_keeps_even_an_ideal_sender_from_the_aims():
    late = [reused(rtt_ms, 1.0, SEGMENTS) for rtt_ms in LATENCIES_MS[1:]]
    assert not any(within_aims(result(seen(cell, 9.0)), ideal=True) for cell in late)
    assert within_aims(result(seen(reused(800, 0.1, SEGMENTS), 9.0)), ideal=True)


def test_of_twenty_transfers_the_95th_percentile_is_the_last_but_one():
    assert result(seen(reused(), *(float(n) for n in range(1, 21)))).p95_s == 19.0


def test_the_window_of_a_connection_that_the_sender_opens_waits_for_a_round_trip():
    limits = [result(seen(table_cell(180, 0, c, None, 1), 3.0)).limit_s for c in cells.CONNECTIONS]
    assert limits == pytest.approx([2.4643, 2.6437, 2.4643], abs=1e-4)


def test_a_failed_cell_and_one_with_a_full_cpu_are_named_and_are_no_results():
    cell = reused()
    numbers = summary.summary(
        [cell | {"failed": "it broke", "commit": "c", "versions": {}, "wall_s": 1, "dilation": 1, "idle_share": 1}]
    )
    assert numbers["failed"] == {cell["name"]: "it broke"}
    full = summary.summary([seen(cell, 2.5, idle_share=0.01)])
    assert full["saturated"] == [cell["name"]]
    assert numbers["table2"] is full["table2"] is None
    assert full["reasons"]["table2"]


def test_a_transfer_on_the_fallback_is_named_on_the_page_and_falls_short_of_the_aim():
    cell = seen(reused(), 2.5, 17.0)
    cell["runs_seen"][1]["fallback"] = True
    numbers = summary.summary([cell])
    assert numbers["on_fallback"] == {cell["name"]: 1}
    assert numbers["fallback_not_noted"] == 1
    assert not aims.aims(numbers)["transfers on the fallback"].ok
    assert f"`{cell['name']}`: 1 of its transfers ran by the host's own congestion control" in page([cell])


def test_of_what_was_not_noted_nobody_says_that_it_did_not_fall_back():
    noted, not_noted = seen(reused(), 2.5), seen(reused(200), 2.5, 3.0, 16.4, 28.7)
    noted["runs_seen"][0]["fallback"] = False
    for some, fell, missing in (([noted], 0, 0), ([noted, not_noted], None, 4)):
        found = aims.aims(summary.summary(some))
        on_fallback, unknown = (
            found[f"transfers {what}"] for what in ("on the fallback", "of which the fallback was not noted")
        )
        assert (on_fallback.seen, unknown.seen) == (fell, missing)
        assert on_fallback.ok is unknown.ok is (not missing)
    told = page([noted, not_noted])
    assert "Of 4 of 5 transfers it was not noted whether" in told
    assert "2 of them took longer than the 10 s for which\nthat lasts at least, 16.400 to 28.700 s" in told
    assert "it was not noted" not in page([noted])
    assert "of them took longer" not in page([seen(reused(), 2.5)])


def test_cells_of_commits_that_nobody_can_look_up_are_counted_beside_the_commits():
    there, night = seen(reused(), 2.5), site_cell("night-1g", circuit_bytes=9, moved_bytes=MOVED)
    gone = [one | {"commit": "24e414725a97"} for one in (seen(reused(200), 2.5), night)]
    assert summary.summary([there, *gone])["commits_gone"] == {
        "commits": ["24e414725a97"],
        "cells": {"table": 1, "night": 1},
    }
    told = page([there, *gone])
    assert "\n2 of the 3 cells (1 of 2 of `table`, 1 of 1 of `night`) were measured at commits" in told
    assert "nobody can look them up: 24e414725a97." in told
    assert "nobody can look" not in page([there])


def test_a_transfer_below_the_limit_is_reported():
    cell = reused()
    assert summary.summary([seen(cell, 2.40, 2.5, 2.5)])["runs_below_limit"] == [cell["name"]]
    assert summary.summary([seen(cell, 2.4644, 2.5, 2.5)])["runs_below_limit"] == []


def test_what_was_not_measured_is_null_with_a_reason():
    numbers = summary.summary([seen(reused(), 2.47)])
    for key in ("ten_gbit", "night", "rivals"):
        assert numbers[key] is None
        assert numbers["reasons"][key]


def test_rivals_have_the_pacing_that_suits_them_and_a_ratio_to_ours():
    numbers = summary.summary(
        [
            seen(rival_cell("headway", 1), 2.5),
            seen(rival_cell("cubic", 8), 30.0),
            seen(rival_cell("cubic", 8, "fq"), 25.0),
            seen(rival_cell("bbr", 27, "fq", pooled=True), 3.0),
        ]
    )["rivals"]
    assert numbers["cubic x 8"]["image_s"] == 25.0
    assert numbers["cubic x 8"]["ratio"] == pytest.approx(10)
    assert (numbers["cubic x 8"]["qdisc"], numbers["headway x 1"]["ratio"]) == ("fq", 1)
    assert numbers["cubic x 8"]["image_with_load_s"] is numbers["cubic x 8"]["ratio_with_load"] is None
    assert set(numbers) == {"headway x 1", "cubic x 8", "bbr x 27, pooled"}


def test_beside_other_flows_rivals_have_a_ratio_of_their_own_and_the_databases_worst_run_counts():
    ours, other = (cell for cell in cells.cells(quick=False) if cell["name"] in ("load-headway-1", "load-cubic-8-fq"))
    asked_bps = Way().payload_bps // 20
    loaded = [seen(ours, 2.5), seen(other, 10.0, 10.0)]
    for one, *shares in ((loaded[0], 1.0), (loaded[1], 0.9, 0.6)):
        for one_run, share in zip(one["runs_seen"], shares, strict=True):
            one_run |= {"database_bps": asked_bps * share, "database_ppm": 50_000, "background_bps": 1e6}
    numbers = summary.summary(loaded)["rivals"]
    assert numbers["cubic x 8"]["ratio_with_load"] == pytest.approx(4)
    assert numbers["cubic x 8"]["database_share_kept"] == pytest.approx(0.6, abs=1e-6)
    assert numbers["cubic x 8"]["ratio"] is None
    assert "| cubic x 8 | 10.000 | 10.000 | 10.000 | 4.00 | 60.0% | 1 Mbit/s |" in page(loaded)
    alone = [seen(rival_cell("cubic", 8, qdisc), s) for qdisc, s in ((None, 2.0), ("fq", 3.0))]
    assert "also those 1 that were better without it alone: cubic x 8." in page([*loaded, *alone])


def site_cell(name, **found):
    (cell,) = (cell for cell in cells.cells(quick=False) if cell["name"] == name)
    return seen(cell, 2.6, 5.1) | found


MOVED = {"background": 3, "database": 1, "images": 1}


def test_a_night_counts_late_images_and_what_background_had_of_what_was_left():
    moved = {"background": 890, "database": 50, "images": 50}
    numbers = summary.summary([site_cell("night-1g", circuit_bytes=1000, moved_bytes=moved)])
    night = numbers["night"]
    assert (night["images"], night["late"], night["longest_s"]) == (2, 1, 5.1)
    assert night["background_share_of_leftover"] == pytest.approx(890 / 900)
    assert "2 images, 1 of them later than 5 s" in page([site_cell("night-1g", circuit_bytes=1000, moved_bytes=moved)])


def test_the_utilisation_over_ten_gigabits_is_that_of_both_classes_at_once():
    found = {"share_limit_s": 2.6, "violations": 0}
    wide, slow = (site_cell(f"both-{rate}", utilisation=u, **found) for rate, u in (("10g", 0.997), ("1g", 0.995)))
    numbers = summary.summary([seen(ten_cell(1500, 2, 0.0), 2.47), wide, slow])
    assert (numbers["ten_gbit"]["utilisation"], numbers["ten_gbit"]["mtu1500_s"]) == (0.997, 2.47)
    assert numbers["figure2"]["1g"]["utilisation"] == 0.995
    assert "| 10g | 2.600 | 3.850 | 99.70% | 0 |" in page([wide])


def test_what_was_not_as_planned_is_told_by_what_of_the_promise_is_left():
    (cell,) = (cell for cell in cells.cells(quick=False) if cell["name"] == "sensitivity-policed")
    one = seen(cell, 2 * Way().limit_s(IMAGE_SLICE_BYTES))
    assert summary.summary([one])["sensitivity"][cell["what"]]["kept"] == pytest.approx(0.5)
    assert "| policed at 99% of the promise | 2.464 | 4.929 | 4.929 | 4.929 | 50.0% | 1.000% | 3 |" in page([one])


def test_of_several_numbers_of_senders_the_slowest_counts():
    numbers = summary.summary([seen(ten_cell(1500, 2, 0.0), 2.47), seen(ten_cell(1500, 10, 0.0), 2.48)])["ten_gbit"]
    assert numbers["mtu1500_s"] == 2.48
    assert numbers["mtu9000_s"] is None
    assert "| MTU 1500 | 2.464 | 2.470 | - |" in page([seen(ten_cell(1500, 2, 0.0), 2.47)])


def test_single_packets_have_a_row_of_their_own():
    (single,) = (cell for cell in cells.cells(quick=False) if cell["name"] == "ten-9000-2-senders-0-single")
    found = [seen(ten_cell(9000, 2, 0.0), 2.36), seen(single, 2.355)]
    assert summary.summary(found)["ten_gbit"]["mtu9000_s"] == 2.36
    assert "| MTU 9000, single packets | 2.352 | 2.355 | - |" in page(found)


def test_the_page_has_what_was_measured_and_follows_it():
    before, after = (page([seen(reused(), 2.4, 2.4661, s)]) for s in (2.4661, 2.5561))
    assert "| 180 ms | - | - | 2.47, 2.44 (2.47) |" in before
    assert "| 180 ms | - | - | 2.47, 2.47 (2.47) |" in after
    assert "| 180 ms | - | - | **2.48**, **2.48** (2.47) |" in page([seen(reused(), 2.4761)])
    assert "`night`" in before


def test_one_cell_can_be_chosen_by_its_name():
    only = run.arguments(["--only", "table-reused-packet-180ms-0.01$"]).only
    assert [cell["name"] for cell in run.chosen(cells.cells(quick=False), only)] == ["table-reused-packet-180ms-0.01"]


def test_cells_that_have_not_been_measured_are_counted_on_the_page_and_fall_short():
    wanted = [reused(rtt_ms) for rtt_ms in (150, 180, 200)]
    of_one, of_all = (aims.aims(summary.summary([seen(c, 2.5) for c in some], wanted)) for some in (wanted[:1], wanted))
    assert (of_one["cells not measured"].seen, of_one["cells not measured"].ok) == (["table: 2 of 3"], False)
    assert of_all["cells not measured"].ok
    assert "- `table`: 2 of 3 cells have not been measured yet" in page([seen(wanted[0], 2.5)], wanted)
    assert "not been measured yet" not in page([seen(cell, 2.5) for cell in wanted], wanted)


def test_the_published_page_and_summary_are_those_of_the_published_cells():
    assert (DOCS / "results.md").read_text() == page_again()
    numbers = json.loads((DOCS / "results" / "summary.json").read_text())
    assert numbers == json.loads(json.dumps(summary.summary(published_cells(), cells.cells(quick=False))))
