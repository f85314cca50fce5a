"""Whatever the manual calls an alarm, Prometheus raises, and nothing else; it asks for nothing that is not there."""

import copy
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from contrib import promql
from controller.state.health import TroubleKind

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TESTS = [*HERE.glob("*.test.yml")]
READ = {path.name: yaml.safe_load(path.read_text()) for path in (*HERE.glob("*.rules.yml"), *TESTS)}
RULES = {
    rule["alert"]: (name, rule)
    for name, content in READ.items()
    for group in content.get("groups", ())
    for rule in group["rules"]
}


def ran(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_example_configuration_and_the_rules_are_understood(promtool):
    done = ran(promtool, "check", "config", str(HERE / "prometheus.yml"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("SUCCESS") == 2 + len([*HERE.glob("*.rules.yml")])


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_each_alert_fires_after_its_time_and_not_before(promtool, path):
    done = ran(promtool, "test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def with_rule(folder, name, change):
    """Put an alert, changed, and those that fire beside it into a folder; return the tests that are about it."""
    file, _ = RULES[name]
    rules, tests = (copy.deepcopy(READ[each]) for each in (file, file.replace(".rules.", ".test.")))
    tests["tests"] = [test for test in tests["tests"] if f'alertname="{name}"' in str(test)]
    fires = re.findall(r'alertname="(\w+)"', str(tests["tests"]))
    for group in rules["groups"]:
        firing = (rule for rule in group["rules"] if rule["alert"] in fires)
        changed = (change(rule) if rule["alert"] == name else rule for rule in firing)
        group["rules"] = [rule for rule in changed if rule is not None]
    for path, content in ((file, rules), ("some.test.yml", tests)):
        (folder / path).write_text(json.dumps(content))  # which is YAML, and written in no time
    return folder / "some.test.yml"


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_is_gone_or_fires_at_once_is_seen(promtool, tmp_path, name):
    assert ran(promtool, "test", "rules", str(with_rule(tmp_path, name, lambda rule: rule))).returncode == 0
    assert ran(promtool, "test", "rules", str(with_rule(tmp_path, name, lambda _: None))).returncode == 1
    if "for" in RULES[name][1]:
        at_once = with_rule(tmp_path, name, lambda rule: rule | {"for": "0s"})
        assert ran(promtool, "test", "rules", str(at_once)).returncode == 1


def test_each_kind_of_trouble_has_one_alert():
    asked = [
        kind for _, rule in RULES.values() for kind in re.findall(r'^headway_troubles\{kind="(.*?)"', rule["expr"])
    ]
    assert sorted(asked) == sorted(TroubleKind)


def alarms(page):
    """The alerts that a page of the manual has rows for."""
    text = (ROOT / "docs" / page).read_text()
    table = text[text.index("| alarm | what has happened | what to do |") :].split("\n\n")[0]
    rows = table.splitlines()[2:]
    named = [re.findall(r"`(Headway\w+)`", row.split("|")[1]) for row in rows]
    assert all(named), "a row without an alert"
    return sorted(name for names in named for name in names)


def test_the_alarms_of_the_manual_are_the_alerts():
    for page, file in (("operate.md", "headway.rules.yml"), ("agent.md", "headway-agent.rules.yml")):
        assert alarms(page) == sorted(name for name, (where, _) in RULES.items() if where == file)


@pytest.mark.parametrize("name", RULES)
def test_an_alert_says_what_it_means_and_what_to_do_and_leads_into_the_manual(name):
    _, rule = RULES[name]
    assert set(rule["annotations"]) == {"summary", "description", "action", "manual"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    page, _, anchor = rule["annotations"]["manual"].partition("#")
    heads = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), flags=re.MULTILINE)
    assert anchor in {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", RULES)
def test_an_alert_tells_of_nothing_that_it_does_not_know(name):
    """Its labels are those with which it is seen firing."""
    fired = [line for path in TESTS for line in path.read_text().splitlines() if f'ALERTS{{alertname="{name}"' in line]
    said = set(re.findall(r"\$labels\.(\w+)", str(RULES[name][1]["annotations"])))
    assert fired
    assert all(f'{label}="' in line for label in said for line in fired)


def test_what_a_rule_asks_for_is_exported_with_the_labels_that_it_asks_by(exported):
    wrong = [
        (name, metric, labels - exported.get(metric, set()))
        for name, (_, rule) in RULES.items()
        for metric, labels in promql.asked(rule["expr"])
        if metric not in exported or labels - exported[metric]
    ]
    assert wrong == []


def test_what_is_not_exported_is_seen(exported):
    ((metric, labels),) = promql.asked('rate(headway_delivered_bits_total{host="a"}[5m])')
    assert (metric, labels) == ("headway_delivered_bits_total", {"host"})
    assert metric not in exported
    assert "kind" not in exported["headway_agent_connected"]
