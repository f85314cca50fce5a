"""What a run over lanes comes to."""

import pytest

from mininet_tests.scenarios.lanes.aims import aims
from mininet_tests.scenarios.lanes.report import LANES, transfer

RATES_BPS = {"base20": 800_000_000, "base20.eth1": 400_000_000}
RTTS_S = {"base20": 0.18, "base20.eth1": 0.2}
SIZE_BYTES = 1_500_000_000
STEP_US = 10_000


def received(rates_of):
    """Samples every 10 ms of lanes at rates by time."""
    counts, found = dict.fromkeys(LANES, 0), []
    for at_us in range(0, 30_000_000, STEP_US):
        found.append((at_us, dict(counts)))
        if sum(counts.values()) >= SIZE_BYTES:
            return found
        for lane, bps in rates_of(at_us).items():
            counts[lane] += bps * STEP_US // 8_000_000
    return found


def seen(rates_of, **more):
    samples = received(rates_of)
    looks = [{"at_us": at_us, "planned_bps": RATES_BPS} for at_us in range(0, samples[-1][0], 200_000)]
    return {"received": samples, "looks": looks, "announced_us": 0, "started_us": 0, "ended_us": samples[-1][0],
            "promise": {"promised_in_s": 11.0}, "connections": {"base20": 8, "base20.eth1": 4}, "told": [],
            "counted": {"out_of_order": 0, "sent_again": 0, "dropped": 0}, "violations": [], "what": "undisturbed",
            "is_reserved": False, "own_paths": False, "window_bytes": 0, **more}  # fmt: skip


def test_lanes_at_their_plan_take_what_the_formula_says():
    found = transfer(seen(lambda _: RATES_BPS), SIZE_BYTES, RTTS_S)
    assert found["took_s"] == pytest.approx(found["formula_s"], abs=0.03)
    assert found["of_both_lanes"] == pytest.approx(1, abs=0.003)


def test_lanes_of_which_one_is_done_long_before_the_other_do_not():
    found = transfer(seen(lambda at_us: RATES_BPS | ({"base20": 0} if at_us > 6_000_000 else {})), SIZE_BYTES, RTTS_S)
    assert found["of_both_lanes"] < 0.9


def test_a_dead_lane_s_rest_is_late_by_how_long_nothing_of_it_came():
    moved = {"base20": 260_000_000, "base20.eth1": 140_000_000}

    def rates_of(at_us):
        if at_us < 5_000_000:
            return RATES_BPS
        return moved | ({"base20": 0} if at_us < 5_250_000 else {})

    line = "timestamp=1970-01-01T00:00:05.040000Z level=error event=announcement.late announcement=curl-north-dies"
    told = seen(rates_of, died_us=5_000_000, told=[line])
    for look in told["looks"]:
        look["planned_bps"] = RATES_BPS if look["at_us"] < 5_000_000 else moved
    found = transfer(told, SIZE_BYTES, RTTS_S)
    death = found["death"]
    assert death["back_at_plan_ms"] == {"base20": pytest.approx(250, abs=60), "base20.eth1": 0}
    assert death["said_to_be_late_after_ms"] == pytest.approx(40)
    assert death["rest_took_s"] == pytest.approx(death["rest_at_plan_s"] + 0.25 * 260 / 400, abs=0.05)


def test_how_long_nothing_came_after_a_death():
    def rates_of(at_us):
        stands_still = 5_000_000 < at_us < 6_200_000 or 9_000_000 < at_us < 9_450_000
        return dict.fromkeys(LANES, 0) if stands_still else RATES_BPS

    look = [{"at_us": at_us, "planned_bps": RATES_BPS} for at_us in range(0, 12_000_000, 200_000)]
    found = transfer(seen(rates_of, died_us=5_000_000, looks=look, what="interface dies"), SIZE_BYTES, RTTS_S)
    assert found["death"]["holes_s"] == [
        (pytest.approx(0, abs=0.03), pytest.approx(1.2, abs=0.03)),
        (pytest.approx(4, abs=0.03), pytest.approx(0.45, abs=0.03)),
    ]


@pytest.mark.parametrize(("bucket_ms", "falls_short"), [(0, 0), (500, 0), (600, 1)])
def test_what_a_meter_holds_is_never_further_ahead_of_its_rate_than_its_burst(bucket_ms, falls_short):
    def rates_of(at_us):  # nothing, then twice the rate until what was saved is gone, then the rate
        is_over = at_us > 3_000_000 + 1000 * bucket_ms
        return {lane: 0 if at_us < 3_000_000 else bps if is_over else 2 * bps for lane, bps in RATES_BPS.items()}

    found = transfer(seen(rates_of, is_reserved=True), SIZE_BYTES, RTTS_S)
    assert found["burst_ms"] == pytest.approx(bucket_ms, abs=15)
    judged = aims({"idle_share": 1, "runs": {"sctp, undisturbed": found}})
    assert sum(not aim.ok for aim in judged.values()) == falls_short


RFC4960_S = [1.245, 6.101, 24.314, 34.042]  # as seen, where a little came by the other path in between


@pytest.mark.parametrize(
    ("program", "stood_s", "falls_short"),
    [
        ("sctp", [1.2], 0),
        ("sctp", [0.2], 1),
        ("sctp", [63.7], 1),
        ("sctp-rfc4960", RFC4960_S, 0),
        ("sctp-rfc4960", RFC4960_S[:-1], 1),
        ("sctp-rfc4960", [*RFC4960_S, 1.0], 1),
        ("mptcp-stale1", [], 0),
        ("mptcp-stale1", [0.4], 1),
    ],
)
def test_a_protocol_s_own_failover_is_judged_by_how_long_it_stands_still_in_all(program, stood_s, falls_short):
    one = {"what": "interface dies", "is_reserved": True, "violations": []}
    one["death"] = {"holes_s": [(0.0, length_s) for length_s in stood_s]}
    judged = aims({"idle_share": 1, "runs": {f"{program}, interface dies": one}})
    assert sum(not aim.ok for aim in judged.values()) == falls_short


@pytest.mark.parametrize(("share", "falls_short"), [(1.0, 0), (0.9, 1), (1.1, 1)])
def test_a_path_that_a_protocol_adds_itself_is_judged_by_its_plan_from_when_it_is_there(share, falls_short):
    def rates_of(at_us):
        return RATES_BPS | {"base20.eth1": round(RATES_BPS["base20.eth1"] * share) if at_us > 600_000 else 0}

    found = transfer(seen(rates_of, own_paths=True), SIZE_BYTES, RTTS_S) | {"promised_s": 99}
    judged = aims({"idle_share": 1, "runs": {"mptcp, undisturbed": found}})
    held = [aim for name, aim in judged.items() if name.endswith("of its plan")]
    assert len(held) == 2
    assert sum(not aim.ok for aim in held) == falls_short


WINDOW_BYTES = 10_000_000  # 444 Mbit/s over 180 ms, 400 over 200


@pytest.mark.parametrize(
    ("shares", "came", "falls_short"),
    [
        ((1, 1), 1, []),
        ((1, 1), 1.03, ["came, of what was sent"]),  # as if some had come twice
        ((1, 1), 0.99, ["came, of what was sent"]),
        ((0.8, 0.8), 1, ["of what its windows carry"]),
        ((1.2, 0.7), 1, ["of all bytes by the path with less"]),
        ((1.9, 0), 1, ["of all bytes by the path with less"]),
    ],
)
def test_an_association_over_all_its_paths_is_judged_by_its_windows_and_by_how_even_they_are(shares, came, falls_short):
    rates_bps = {
        lane: round(share * 8 * WINDOW_BYTES / RTTS_S[lane]) for lane, share in zip(LANES, shares, strict=True)
    }
    found = transfer(
        seen(lambda _: rates_bps, is_reserved=True, window_bytes=WINDOW_BYTES), round(SIZE_BYTES / came), RTTS_S
    )
    judged = aims({"idle_share": 1, "runs": {"sctp-cmt, undisturbed": found | {"burst_ms": 0}}})
    assert [name.split(": ")[1] for name, aim in judged.items() if not aim.ok] == falls_short


def test_an_association_that_has_no_windows_has_no_such_aims():
    found = transfer(seen(lambda _: RATES_BPS, is_reserved=True), SIZE_BYTES, RTTS_S)
    judged = aims({"idle_share": 1, "runs": {"sctp, undisturbed": found}})
    assert [name.split(": ")[1] for name in judged if ": " in name] == [
        "ahead of its lane's rate, ms of it",
        "layers above the next",
    ]
