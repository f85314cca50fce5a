"""The manual's tables have each metric that a controller and an agent export, and no other."""

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from contrib.conftest import agent_status, busy_api
from hostagent.agent.metrics import StatusCollector

DOCS = Path(__file__).parents[1] / "docs"
CREATED, BUCKET = "_created", "le"  # the library's own: when a counter began, and how far a histogram's bucket goes


def of_a_controller():
    """What a controller of a pair answers that leads."""
    return TestClient(busy_api()).get("/metrics").text


def of_an_agent():
    """What an agent answers that holds an allocation."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(agent_status))
    return generate_latest(registry).decode()


def rows(document):
    """The cells of each row of a document's table of metrics."""
    (table,) = re.findall(r"^\| metric \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", (DOCS / document).read_text(), re.MULTILINE)
    return [row.strip("|\n").split("|") for row in table.splitlines()]


def names_in(cell):
    """The names in a cell."""
    return re.findall(r"`(\w+)`", cell)


@pytest.mark.parametrize(
    ("document", "answer"), [("monitoring.md", of_a_controller), ("agent.md", of_an_agent)], ids=["controller", "agent"]
)
def test_every_metric_that_is_exported_has_its_row_and_every_row_its_metric(document, answer):
    described = [name for row in rows(document) for name in names_in(row[0])]
    exported = re.findall(r"^# TYPE (\w+) ", answer(), re.MULTILINE)
    assert sorted(described) == sorted(name for name in exported if not name.endswith(CREATED))


def test_every_row_of_a_controllers_metric_has_its_labels():
    described = {name: {*names_in(labels)} for names, labels, _ in rows("monitoring.md") for name in names_in(names)}
    exported = {
        name: set().union(*(sample.labels for sample in family.samples)) - {BUCKET}
        for family in text_string_to_metric_families(of_a_controller())
        if (name := f"{family.name}_total" if family.type == "counter" else family.name) in described
    }
    assert described == exported
