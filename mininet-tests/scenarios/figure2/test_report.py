"""The numbers of a report, from runs made up so that the answer is known; each aim is shown able to fail."""

import pytest

from mininet_tests.probes.series import longest_gap_ms, rates_bps
from mininet_tests.scenarios.figure2 import report
from mininet_tests.scenarios.figure2.aims import aims
from mininet_tests.scenarios.figure2.report import poisson_interval
from topology.protocol import FlowClass

SEGMENT = 1448
PACKET_SEGMENTS = 10
RATE_BPS = 10**9
LIMIT_BPS = 941_482_444
STEP_US = 10_000
STEADY_US, ANNOUNCED_US, CONFIRMED_US, END_US = 2_000_000, 4_000_000, 8_000_000, 12_000_000
SHARES = {"base22": 0.05, "base23": 0.949, "base20": 0.0, "base21": 0.0}
IMAGE_SHARES = {"base22": 0.05, "base23": 0.01, "base20": 0.469, "base21": 0.469}


WAN = "ls1->ch1"
LAYERS = {WAN: {"hosts_frame_bps": dict.fromkeys(FlowClass, 200_000), "circuit_frame_bps": 1_000_000}}
FACTS = {"mode": "lab", "rtt_ms": 180.0, "loss_set": 0.0001, "seed": 1}


def made_up(
    *, start_gap_us=0, end_gap_us=0, share_of=None, resent_segments=50, violations=(), meter_bps=200_000, idle=0.5
):
    """A run in which every flow keeps its share exactly, but for what the arguments change."""
    moved = dict.fromkeys(SHARES, 0.0)
    received = []
    for at_us in range(0, END_US + 1, STEP_US):
        sending = ANNOUNCED_US + start_gap_us <= at_us < CONFIRMED_US
        silent = (
            ANNOUNCED_US <= at_us < ANNOUNCED_US + start_gap_us or CONFIRMED_US <= at_us < CONFIRMED_US + end_gap_us
        )
        shares = IMAGE_SHARES if sending or silent else SHARES
        for host, share in shares.items():
            quiet = silent and host != "base22"
            rate = (share_of or {}).get(host, share) if share else 0.0
            moved[host] += 0 if quiet else rate * LIMIT_BPS * STEP_US / 8e6
        packets = {h: round(n / SEGMENT / PACKET_SEGMENTS) for h, n in moved.items()}
        received.append([at_us, {h: [round(n) + 52 * packets[h], packets[h]] for h, n in moved.items()}])
    image = {"name": "image/base20", "class": "urgent", "from": "base20", "payload_bps": 884_000_000}
    plan = {"desired": {"allocations": [image]}, "layers": LAYERS}
    read = {"meters_bps": dict.fromkeys(FlowClass, meter_bps), "queues_bps": dict.fromkeys(FlowClass, 200_000)}
    sent = {h: round(n / SEGMENT) for h, n in moved.items()}
    return {
        "scenario": {"rate_bps": RATE_BPS, "part_bytes": 220_000_000, "single_packets": False},
        "marks": {
            "steady_us": STEADY_US, "announced_us": ANNOUNCED_US, "confirmed_us": CONFIRMED_US,
            "released_us": CONFIRMED_US, "end_us": END_US,
        },
        "received": received,
        "last_connections": {
            h: [{"sent_segments": n, "retransmitted_segments": resent_segments if h == "base23" else 0}]
            for h, n in sent.items()
        },
        "plan": [[ANNOUNCED_US, plan | {"violations": list(violations)}]],
        "read_back": [[ANNOUNCED_US, {WAN: read}]],
        "drops_packets": {"line": {}, "edge": {}},
        "fallbacks": 0,
        "cpu_idle_shares": [0.9, idle],
    }  # fmt: skip


def reported(**changes):
    """The report of such a run."""
    return report.report(made_up(**changes), FACTS)


def test_a_run_that_keeps_the_plan_meets_every_aim():
    result = reported()
    assert result["utilisation"] == pytest.approx(0.998, abs=0.001)
    assert result["predictable"]["min_share"] == pytest.approx(0.05, abs=0.0005)
    assert result["predictable"]["max_share"] == pytest.approx(0.05, abs=0.0005)
    assert result["urgent"]["seconds"] == 4.0
    assert (result["plan"]["violations"], result["valid"]) == (0, True)
    low, high = result["loss_interval"]
    assert low <= result["loss_seen"] <= high


@pytest.mark.parametrize("gap_us", [100_000, 300_000])
def test_a_gap_at_the_start_is_measured(gap_us):
    assert reported(start_gap_us=gap_us)["handover"]["start_gap_ms"] == pytest.approx(gap_us / 1000, abs=40)


def test_a_gap_at_the_end_is_measured():
    handover = reported(end_gap_us=200_000)["handover"]
    assert handover["end_gap_ms"] == pytest.approx(200, abs=40)
    assert handover["start_gap_ms"] < 40


def test_a_database_that_is_squeezed_shows():
    assert reported(share_of={"base22": 0.03})["predictable"]["min_share"] < 0.048


def test_a_circuit_that_is_not_filled_shows():
    assert reported(share_of={"base20": 0.4, "base21": 0.4})["utilisation"] < 0.99


def test_more_loss_than_the_line_had_shows():
    result = reported(resent_segments=5_000)
    assert result["loss_seen"] > result["loss_interval"][1]


def test_a_layer_above_the_next_one_is_counted():
    assert reported(violations=["ls1->ch1, urgent: meter 2 bit/s > queue 1 bit/s"])["plan"]["violations"] == 1


def test_a_meter_that_the_switch_shows_wider_than_its_queue_is_counted():
    result = reported(meter_bps=300_000)
    assert result["plan"]["violations"] == 1
    assert result["plan"]["violated"][0][0] == f"{WAN}, predictable: meter 300,000 bit/s > queue 200,000 bit/s"


def test_what_was_read_before_a_change_is_held_against_the_hosts_before_it():
    run = made_up()
    ((at_us, plan),) = run["plan"]
    more = {**plan["layers"][WAN], "hosts_frame_bps": dict.fromkeys(FlowClass, 400_000)}
    run["plan"] = [[at_us - 60_000, plan], [at_us + 5_000, plan | {"layers": {WAN: more}}]]
    assert report.report(run, FACTS)["plan"]["violations"] == 0
    run["read_back"][0][0] = at_us + 6_000
    assert report.report(run, FACTS)["plan"]["violations"] == 1


def test_a_run_on_a_full_cpu_is_not_valid():
    assert not reported(idle=0.001)["valid"]


def test_the_limit_is_the_image_at_its_share_and_one_round_trip():
    limit_s = 440_000_000 * 8 / 884_000_000 + 0.18
    assert reported()["urgent"]["limit_seconds"] == pytest.approx(limit_s, abs=1e-5)


def test_the_longest_gap_is_the_longest_run_not_the_sum():
    assert longest_gap_ms([1, 9, 1, 1, 9, 1], 5, 10_000) == 20


def test_rates_come_from_levels_between_samples():
    assert rates_bps([0, 100, 300], [0, 100, 300], (0, 300), 150) == [8e6, 8e6]


@pytest.mark.parametrize("expected", [0.5, 4.0, 30.0, 200.0])
def test_the_poisson_interval_holds_its_count_as_often_as_it_says(expected):
    from math import exp

    low, high = poisson_interval(expected, 0.99)
    term, inside = exp(-expected), 0.0
    for k in range(2000):
        inside += term if low <= k <= high else 0
        term *= expected / (k + 1)
    assert 0.99 <= inside < 0.9995


def to_a_disk(stored_us=CONFIRMED_US + 1_000_000):
    """Such a run to a disk that takes 44% of the circuit: half of the freed share is background's."""
    run = made_up(share_of={"base20": 0.22, "base21": 0.22, "base23": 0.508})
    run["disk"] = {"drain_bps": 410_000_000, "room_bytes": 75_000_000}
    run["marks"] |= {"stored_us": stored_us, "promised_stored_us": stored_us}
    image = {"name": "image/base20", "class": "urgent", "from": "base20", "payload_bps": round(0.44 * LIMIT_BPS)}
    run["plan"][0][1]["desired"] = {"allocations": [image]}
    return report.report(run, FACTS)


def test_what_a_disk_frees_is_used_and_the_time_on_it_is_told():
    found = to_a_disk()
    assert found["disk"]["background_of_the_rest"] == pytest.approx(0.508 / 0.51, abs=0.01)
    assert found["disk"]["stored_s"] == 5.0
    assert found["disk"]["background_guaranteed_bps"] == pytest.approx(LIMIT_BPS / 100)
    missed = {name for name, one in aims(found).items() if not one.ok}
    assert not missed & {"background, of what the disk leaves"}
    assert "disk" not in reported()


def test_an_image_that_is_late_on_the_disk_misses_its_aim():
    name = "image on the disk, of the least time for it"
    assert aims(to_a_disk(ANNOUNCED_US + 8_600_000))[name].ok
    assert not aims(to_a_disk(ANNOUNCED_US + 9_100_000))[name].ok
