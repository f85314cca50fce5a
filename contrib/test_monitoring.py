"""A real Prometheus, with the example's jobs and rules, asks a site and an agent; dashboards have something to show."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

from contrib.conftest import agent_status, busy_api
from contrib.grafana.test_dashboards import ASKED, FILLED
from controller.tests.serving import served
from hostagent.agent.metrics import metrics_server
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port

HERE = Path(__file__).parent / "prometheus"
QUIET = ("headway_drift_", "headway_agent_repairs")  # counters that did not move while we looked
BEFORE = {"HeadwayControllerDown", "HeadwayAgentDown"}  # what is so until somebody was asked


def example(targets):
    """The example's configuration, asking us, each second."""
    found = yaml.safe_load((HERE / "prometheus.yml").read_text())
    found["global"] = dict.fromkeys(found["global"], "1s")
    found["rule_files"] = [str(HERE / path) for path in found["rule_files"]]
    del found["alerting"]
    for job in found["scrape_configs"]:
        job["static_configs"][0]["targets"] = [targets[job["job_name"]]]
    return yaml.safe_dump(found)


@pytest.fixture(scope="module")
def site():
    """Where a controller and an agent answer."""
    agent = f"127.0.0.1:{free_port()}"
    _, end = metrics_server(agent, agent_status)
    with served(busy_api()) as url:
        yield {"headway-controller": url.removeprefix("http://"), "headway-agent": agent}
    end()


@pytest.fixture(scope="module")
def ask(prometheus, site, tmp_path_factory):
    """What asks a Prometheus that asks the site."""
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "prometheus.yml").write_text(example(site))
    address = f"127.0.0.1:{free_port()}"
    options = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    with (folder / "log").open("w") as log:
        child = subprocess.Popen(
            [prometheus, *options, f"--web.listen-address={address}"], stdout=log, stderr=subprocess.STDOUT
        )

    def asked(path, **parameters):
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"http://{address}/api/v1/{path}?{query}", timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.URLError:
            return None

    try:
        eventually(lambda: asked("status/runtimeinfo"), within_s=60, what="Prometheus answers")
        yield asked
    finally:
        child.terminate()
        child.wait(30)


def test_both_jobs_are_asked_and_what_is_not_well_becomes_an_alert(ask, site):
    def jobs():
        return {one["metric"]["job"] for one in ask("query", query="up == 1")["result"]} == set(site)

    def alerts():
        """Those that are there once each group of rules was looked at after the first scrape."""
        found = {one["labels"]["alertname"]: one for one in ask("alerts")["alerts"]}
        return found if "HeadwayFallback" in found and not BEFORE & set(found) else None

    eventually(jobs, within_s=30, what="both jobs are asked")
    found = eventually(alerts, within_s=30, what="the fallback is an alert, and nobody is down")
    assert found["HeadwayFallback"]["annotations"]["summary"].startswith("1 flows of base20 ")
    assert "<no value>" not in str(found)
    assert "<error" not in str(found)


def test_each_panel_has_something_to_show(ask, site):
    def empty():
        asked = (e.replace(FILLED["$controller"], site["headway-controller"]) for _, e, _ in ASKED)
        return [e for e in asked if not any(q in e for q in QUIET) and not (ask("query", query=e) or {}).get("result")]

    eventually(lambda: not empty(), within_s=60, what="each query has an answer")
    assert ask("query", query="headway_nothing")["result"] == []
