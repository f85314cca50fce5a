"""What the tests of rules and dashboards stand on: Prometheus' own programs, and what our two parts really export."""

import os
import shutil
import sys
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from controller.audit.drift import Compared, Deviation, DriftKind, Outcome, Shape
from controller.northbound.access import all_may
from controller.northbound.api import api
from controller.northbound.tests.site import dependencies_of
from controller.northbound.webhooks import Webhook
from controller.plan.leading import LeaderView, PairStanding
from controller.security.own_certificates import EndingCertificate
from controller.settings.webhooks import ALARMS, WebhookSettings
from controller.tests.fakes import image, ready_site
from hostagent.agent.metrics import StatusCollector
from hostagent.agent.status import Identity, Sight, status_from
from topology.protocol import Allocation, FlowClass
from topology.telemetry import EntryTelemetry, StoreBrake, StoreTelemetry, Telemetry


def program(name):
    """The path of a program of Debian's package ``prometheus``, which ``make install`` puts beside Python."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"needs {name}: contrib/prometheus/unpack .venv/bin")
    return found


@pytest.fixture(scope="session")
def promtool():
    """Prometheus' tool that checks what Prometheus reads."""
    return program("promtool")


@pytest.fixture(scope="session")
def prometheus():
    """Prometheus."""
    return program("prometheus")


def busy_api():
    """The API of a site that has something to say under every name: drift, a fallback, promises, a store, a leader."""
    site = ready_site()
    lost = Deviation(DriftKind.FLOW, Shape.MISSING, "rule", outcome=Outcome.REPAIRED)
    site.switches.found["ls1"] = [Compared({DriftKind.FLOW: 9}, (lost,))] * 2
    site.wire()
    site.announce(image())
    site.converge()
    counters = EntryTelemetry("image/base20", 1, 1, 5_000, 40, 3, 180_000, "loss")
    store = StoreTelemetry("data", 280_000_000, True, 0, 67_000_000, StoreBrake.DISK, rate_bps=280_000_000)
    site.reports.host_telemetry("base20", Telemetry(site.value.desired.plan.epoch, 250, (counters,), stores=(store,)))
    pager = Webhook(site.state.events, WebhookSettings("https://pager.example.org/h", Path("pager.secret"), ALARMS))
    leads = LeaderView(PairStanding.LEADER, takes=True, term=7, holder="ctl-a", others=("ctl-b",))
    behind = dependencies_of(
        site,
        certificates=lambda: {"base20": 1_790_000_000.0},
        own_certificates=lambda: (EndingCertificate("controller", "ctl.example.org", 1_790_000_000.0),),
        switch_certificates=lambda: {"ls1": 1_790_000_000},
        webhooks=(pager,),
        leader=lambda: leads,
    )
    app = api(behind, all_may(lambda: datetime.now(UTC)))
    TestClient(app).post(
        "/v1/reservations", json={"from": "la-serena", "to": "champaign", "rate": "1Mbps", "duration_s": 60}
    )
    return app


def agent_status():
    """What an agent says that holds one allocation."""
    urgent = Allocation("urgent/base20", FlowClass.URGENT, ip_network("192.0.2.0/24"), 800_000_000, 14_000)
    counters = Telemetry(7, 3000, (EntryTelemetry(urgent.name, 4, 2, 7, 9, 1, 180_000, ""),))
    seen = Sight(0, counters, allocations=(urgent,), lease_ms=3000, controller="192.0.2.9:50051", attached_s=1)
    who = Identity("base20", "0.1", "6.1.0", "1a", "headway1a", 1_790_000_000)
    return status_from(who, (seen,), 0)


@pytest.fixture(scope="session")
def exported():
    """By metric that a site really exports, the labels that Prometheus will see it with."""
    agent = CollectorRegistry()
    agent.register(StatusCollector(agent_status))
    client = TestClient(busy_api())
    known = {"up": {"job", "instance", "host"}, "node_memory_MemTotal_bytes": {"job", "instance", "host"}}
    for text in (client.get("/metrics").text, generate_latest(agent).decode()):
        for family in text_string_to_metric_families(text):
            for name in (family.name, *(sample.name for sample in family.samples)):
                known.setdefault(name, {"job", "instance", "host"})
            for sample in family.samples:
                known[sample.name].update(sample.labels)
    return known
