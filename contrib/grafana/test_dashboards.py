"""The dashboards are what they are made of, as Grafana's own types have it, and ask for nothing that is not there."""

import itertools
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from contrib import promql
from contrib.grafana.boards import BOARDS

HERE = Path(__file__).parent
FOUND = {path.stem: path.read_text(encoding="utf-8") for path in HERE.glob("*.json")}
FILLED = {
    "$__rate_interval": "5m",
    "$controller": "ctl:8080",
    "$link": "ls1->ch1",
    "$class": "urgent",
    "$host": "base20",
}


def asked(text):
    """The expressions of a dashboard, with the legend of each; those that only fill its variables have none."""
    found = json.loads(text)
    for panel in found["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]
    for variable in found["templating"]["list"]:
        if variable["type"] == "query":
            yield re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]).groups()[0], ""


def filled(expression):
    """An expression with its variables filled in."""
    for name, value in FILLED.items():
        expression = expression.replace(name, value)
    return expression


ASKED = [(name, filled(expression), legend) for name, text in FOUND.items() for expression, legend in asked(text)]


def test_the_files_are_what_the_dashboards_are_made_of():
    assert {board.name for board in BOARDS} == set(FOUND)
    for board in BOARDS:
        assert FOUND[board.name] == board.text, (
            f"{board.name}.json is not what it is made of: contrib/grafana/dashboards.py"
        )


def as_grafana_has_it(content):
    """A dashboard read into Grafana's types, and written again: what they do not know is lost."""
    register_default_plugins()
    return json.loads(JSONEncoder().encode(Dashboard.from_json(json.loads(json.dumps(content)))))


@pytest.mark.parametrize("name", FOUND)
def test_grafanas_own_types_know_every_field(name):
    content = json.loads(FOUND[name])
    assert as_grafana_has_it(content) == content
    content["panels"][0]["targets"][0]["expression"] = "up"
    assert as_grafana_has_it(content) != content


@pytest.mark.parametrize("name", FOUND)
def test_panels_stand_in_the_grid_and_on_no_other(name):
    content = json.loads(FOUND[name])
    places = [panel["gridPos"] for panel in content["panels"]]
    cells = [{(p["x"] + i, p["y"] + j) for i in range(p["w"]) for j in range(p["h"])} for p in places]
    assert max(x for cell in cells for x, _ in cell) < 24
    assert all(not one & other for one, other in itertools.combinations(cells, 2))
    assert len({panel["id"] for panel in content["panels"]}) == len(places)


def test_every_expression_is_understood_by_prometheus(promtool, tmp_path):
    rules = [{"record": f"a:b{number}", "expr": expression} for number, (_, expression, _) in enumerate(ASKED)]
    path = tmp_path / "all.yml"
    for content, code in ((rules, 0), ([*rules, {"record": "a:b", "expr": "sum(up"}], 1)):
        path.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": content}]}))
        done = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr


def test_what_a_panel_asks_for_is_exported_with_the_labels_that_it_asks_and_shows(exported):
    wrong = []
    for name, expression, legend in ASKED:
        metrics = [*promql.asked(expression)]
        there = set().union(*(exported.get(metric, set()) for metric, _ in metrics))
        used = promql.grouped(expression) | set(re.findall(r"{{(\w+)}}", legend))
        wrong += [(name, metric, by) for metric, by in metrics if by - exported.get(metric, set()) or "$" in expression]
        wrong += [(name, expression, used - there)] if used - there or not metrics else []
    assert len(ASKED) > 30
    assert wrong == []


def test_grafana_is_told_where_both_are():
    (source,) = yaml.safe_load((HERE / "provisioning/datasources/headway.yml").read_text())["datasources"]
    scraped = yaml.safe_load((HERE.parent / "prometheus/prometheus.yml").read_text())["global"]["scrape_interval"]
    (provider,) = yaml.safe_load((HERE / "provisioning/dashboards/headway.yml").read_text())["providers"]
    assert (source["type"], source["jsonData"]["timeInterval"]) == ("prometheus", scraped)
    assert provider["options"]["path"] in (HERE.parents[1] / "docs/monitoring.md").read_text()
