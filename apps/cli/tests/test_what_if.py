"""``headway what-if``: a scenario from its file to tables, JSON, a picture, and an exit code."""

import json

import pytest
import yaml

import apps.cli.what_if_work as work
from apps.cli.main import app
from apps.cli.tests.running import CliRunner
from mininet_tests.testing.networks import FILES

SCENARIO = {
    "network": str(FILES["chile-illinois-2"]),
    "from": "2026-12-01T00:00:00Z",
    "until": "2026-12-01T00:02:00Z",
    "flows": [{"name": "raw", "class": "background", "from": "base23", "to": "arch"}],
    "workload": [
        {"name": "image", "class": "urgent", "from": "base20", "to": "arch", "bytes": "268.8 MB", "every": "17 s"}
    ],
}


@pytest.fixture
def said(tmp_path):
    """Run the command on a scenario with some sections more; return output, errors and exit code."""

    def run(*arguments, **more):
        file = tmp_path / "scenario.yaml"
        file.write_text(yaml.safe_dump({**SCENARIO, **more}))
        done = CliRunner().invoke(app, ("what-if", str(file), *arguments), env={"COLUMNS": "200"})
        return done.stdout, done.stderr, done.exit_code

    return run


def test_a_night_without_a_death_keeps_every_promise(said):
    out, _, code = said("--json")
    found = json.loads(out)
    (variant,) = found["variants"]
    (image,) = variant["items"]
    assert (image["asked"], image["late"], image["refused"], code) == (8, 0, 0, 0)
    assert variant["broken"] == []
    assert max(variant["use"]["wire_bps"]["ls1->north"]) > 900_000_000
    assert variant["standing_bytes"][0]["raw"] > 10**9


def test_a_death_in_the_middle_of_an_image_breaks_its_promise_and_says_why(said):
    out, _, code = said("--kill", "north", "--at", "2026-12-01T00:00:18Z", "--for", "1m")
    assert code == 4
    assert "north dies 2026-12-01T00:00:18Z" in out
    assert "image 2: promised by 2026-12-01T00:00:20" in out
    assert "north down" in out


def test_what_has_no_time_is_refused_and_ends_with_3(said):
    out, _, code = said(workload=[{**SCENARIO["workload"][0], "deadline": "1 s"}])
    assert code == 3
    assert "image 1: refused 2026-12-01T00:00:00Z" in out


def test_what_is_not_shown_is_counted_and_in_the_json(said):
    refused = {**SCENARIO["workload"][0], "deadline": "1 s", "every": "100 ms"}
    out, _, code = said(workload=[refused])
    assert code == 3
    assert "image 20: refused" in out
    assert "image 21: refused" not in out
    assert "... and 1180 more: --json" in out
    (variant,) = json.loads(said("--json", workload=[refused])[0])["variants"]
    assert len(variant["broken"]) == variant["broken_count"] == 1_200


def test_each_circuit_is_tried_in_turn_and_each_combination_of_what_varies(said):
    out, _, _ = said("--json", "--kill", "all", vary={"image.bytes": ["1 MB", "2 MB"]})
    variants = [variant["variant"] for variant in json.loads(out)["variants"]]
    assert [v["image.bytes"] for v in variants] == ["1 MB"] * 3 + ["2 MB"] * 3
    assert [("north" in v, "south" in v) for v in variants[:3]] == [(False, False), (True, False), (False, True)]


def test_circuits_of_one_duct_die_together_beside_those_that_die_alone(said):
    out, _, code = said(
        "--json", "--kill", "all", "--kill", "north,south", "--at", "2026-12-01T00:00:18Z", "--for", "1m"
    )
    assert code == 4
    alone, north, south, both = json.loads(out)["variants"]
    assert (alone["variant"], both["variant"]) == ({}, {**north["variant"], **south["variant"]})
    late = [variant["items"][0]["late"] for variant in (alone, north, south, both)]
    assert late[0] == 0 < late[1] <= late[3]
    assert both["broken"][0]["why"].startswith("north, south down")


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        (("--kill", "nord"), {}, 'there is no circuit "nord"; there are north, south'),
        (("--kill", "south,nord"), {}, 'there is no circuit "nord"'),
        (
            ("--kill", "north", "--at", "2027-01-01T00:00:00Z"),
            {},
            "is not within the scenario, 2026-12-01T00:00:00Z to",
        ),
        (("--at", "2026-12-01T00:00:18Z"), {}, "--at and --for are of --kill"),
        (("--kill", "north", "--for", "soon"), {}, '--for: "soon" is not a duration'),
        ((), {"untill": 1, "until": "x"}, "untill: there is no such key"),
    ],
)
def test_a_mistake_is_said_in_words_and_ends_with_2(said, arguments, more, message):
    _, err, code = said(*arguments, **more)
    assert message in err
    assert code == 2


def test_what_was_run_is_kept_and_not_run_again(said, tmp_path, monkeypatch):
    kept = tmp_path / "runs.jsonl"
    fails = {"fails": {"mtbf": "1m", "mttr": "10s"}, "runs": 3}
    first = said("--json", "--keep", str(kept), **fails)
    lines = kept.read_text().splitlines()
    assert len(lines) == 3
    kept.write_text("\n".join([*lines[:2], lines[2][:40]]))  # it was stopped in the third
    begun = []

    class Counted(work.Simulation):
        def run(self):
            begun.append(self.seed)
            return super().run()

    monkeypatch.setattr(work, "Simulation", Counted)
    assert said("--json", "--keep", str(kept), **fails) == first
    assert begun == [3]
    said("--json", "--keep", str(kept), "--seed", "2", **fails)
    assert begun == [3, 4]


def test_a_file_that_no_runs_can_be_in_is_left_as_it_is(said, tmp_path):
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG")
    _, err, code = said("--keep", str(picture))
    assert (code, err) == (2, f"headway: --keep: {picture} is not UTF-8 text, so no file of runs\n")
    assert picture.read_bytes() == b"\x89PNG"


def test_the_use_of_circuits_is_the_mean_of_all_runs(said):
    fails = {"fails": {"mtbf": "1m", "mttr": "10s"}}

    def north_bps(*arguments, **more):
        (variant,) = json.loads(said("--json", *arguments, **fails, **more)[0])["variants"]
        return variant["use"]["wire_bps"]["ls1->north"]

    first, second = north_bps("--seed", "1"), north_bps("--seed", "2")
    assert first != second
    both = north_bps(runs=2)
    assert both == [pytest.approx((one + other) / 2, abs=1) for one, other in zip(first, second, strict=True)]


def test_another_seed_draws_other_deaths_and_is_printed(said):
    fails = {"fails": {"mtbf": "1m", "mttr": "10s"}}
    one, two = (json.loads(said("--json", "--seed", seed, **fails)[0]) for seed in ("1", "2"))
    assert (one["seed"], two["seed"]) == (1, 2)
    assert one["variants"][0]["deaths"] != two["variants"][0]["deaths"]
    assert "seed 5" in said("--seed", "5", **fails)[0]


def test_the_use_of_circuits_is_drawn(said, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "use.png"
    assert said("--figure", str(picture))[2] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    _, err, code = said("--figure", str(tmp_path / "use.xyz"))
    assert code == 1
    assert "xyz" in err


def test_what_is_not_done_by_the_end_is_not_said_to_be_never_done(said):
    # promised within the two minutes; the only circuit left is slower, so it would arrive after them
    long = {**SCENARIO["workload"][0], "bytes": "11 GB"}
    del long["every"]
    out, _, code = said("--kill", "north", "--at", "2026-12-01T00:00:10Z", workload=[long])
    assert code == 4
    assert "not at all" not in out
    assert "not done by 2026-12-01T00:02:00Z" in out


def test_networks_of_other_circuits_are_drawn_beside_each_other(said, tmp_path):
    pytest.importorskip("matplotlib")
    networks = [str(FILES["chile-illinois-2"]), str(FILES["chile-illinois"])]
    for order in (networks, networks[::-1]):
        assert said("--figure", str(tmp_path / "use.png"), vary={"network": order})[2] == 0


def test_what_cannot_be_drawn_is_printed_all_the_same(said, tmp_path):
    pytest.importorskip("matplotlib")
    out, _, code = said("--json", "--figure", str(tmp_path / "use.xyz"))
    assert (len(json.loads(out)["variants"]), code) == (1, 1)


@pytest.mark.parametrize("order", [1, -1])
def test_a_time_of_the_day_is_the_next_after_the_earliest_beginning(said, monkeypatch, order):
    monkeypatch.setenv("TZ", "UTC")
    begins = ["2026-12-01T00:00:00Z", "2026-12-01T00:01:00Z"][::order]
    out, err, _ = said("--json", "--kill", "north", "--at", "00:00:30", "--for", "10s", vary={"from": begins})
    assert err == ""
    dying = [variant["variant"] for variant in json.loads(out)["variants"] if "north" in variant["variant"]]
    assert dying == [{"from": "2026-12-01T00:00:00Z", "north": "dies 2026-12-01T00:00:30Z"}]


def test_a_time_of_the_day_beyond_the_scenario_is_said_as_it_is_meant(said, monkeypatch):
    monkeypatch.setenv("TZ", "America/Santiago")
    _, err, code = said("--kill", "north", "--at", "14:00")
    within = "2026-12-01T00:00:00Z to 2026-12-01T00:02:00Z"
    assert err == f"headway: --at: 14:00, which is 2026-12-01T17:00:00Z, is not within the scenario, {within}\n"
    assert code == 2


@pytest.mark.parametrize("order", [1, -1])
def test_a_death_that_comes_in_some_variants_is_left_out_of_the_others(said, order):
    until = ["2026-12-01T00:01:00Z", "2026-12-01T00:02:00Z"][::order]
    out, _, _ = said("--json", "--kill", "north", "--at", "2026-12-01T00:01:30Z", vary={"until": until})
    found = [variant["variant"] for variant in json.loads(out)["variants"]]
    assert [one["until"] for one in found if "north" in one] == ["2026-12-01T00:02:00Z"]
    assert len(found) == 3


def test_a_circuit_that_one_network_has_dies_in_that_alone(said):
    networks = [str(FILES["chile-illinois"]), str(FILES["chile-illinois-2"])]
    out, _, _ = said("--json", "--kill", "north", vary={"network": networks})
    assert ["north" in one["variant"] for one in json.loads(out)["variants"]] == [False, False, True]


def test_circuits_that_are_together_in_no_network_cannot_die_at_once(said):
    networks = [str(FILES["chile-illinois"]), str(FILES["chile-illinois-2"])]
    _, err, code = said("--kill", "chile-illinois,north", vary={"network": networks})
    assert (err, code) == ("headway: --kill: chile-illinois,north: no network here has them together\n", 2)
    assert said("--kill", "chile-illinois", "--kill", "north,south", vary={"network": networks})[1:] == ("", 4)


@pytest.mark.parametrize("name", ["image [north/south]", "image [/x]"])
def test_a_name_with_brackets_is_shown_as_it_is(said, name):
    out, _, code = said(workload=[{**SCENARIO["workload"][0], "name": name}])
    assert code == 0
    assert name in out


def test_a_first_run_that_was_cut_off_takes_no_other_with_it(said, tmp_path):
    kept = tmp_path / "runs.jsonl"
    said("--keep", str(kept))
    whole = kept.read_text()
    kept.write_text(whole[:40])
    said("--keep", str(kept))
    assert kept.read_text().splitlines()[1:] == whole.splitlines()
