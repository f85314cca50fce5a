"""Whoever is woken by a line of the log or an alarm finds it in a table, with what to do."""

import ast
import re
from pathlib import Path

from controller.settings.webhooks import ALARMS, EVENTS

ROOT = Path(__file__).parents[2]
SAYING = {"critical", "debug", "error", "exception", "info", "publish", "said_once", "told", "warning"}
EVENT = re.compile(r"[a-z]+\.[a-z_]+")
TABLES = ("agent.md", "configuration.md", "operate.md")


def said(path):
    """The events that a module says: first arguments of calls that log or publish."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAYING:
            for one in node.args[:1]:
                for leaf in ast.walk(one):
                    if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str) and EVENT.fullmatch(leaf.value):
                        yield leaf.value


def could_be_said(path):
    """What a module may make the name of an event of: its texts, and those with a name put in, as ``circuit.*``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "*" for part in node.values)


def told():
    """The events that have a row in the tables; ``.committed`` after ``reservation.held`` is one of a reservation."""
    for name in TABLES:
        for row in re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / name).read_text(), flags=re.MULTILINE):
            subject = ""
            for word in re.findall(r"`([a-z_.]+)`", row):
                subject = word.partition(".")[0] or subject
                yield word if not word.startswith(".") else subject + word


PUBLISHING = {"publish", "partial", "_telling", "_telling_end", "_save_and_tell"}
MADE = {  # names that are put together, or come by a variable
    "announcement.refused",
    "circuit.down",
    "circuit.up",
    "maintenance.cancelled",
    "maintenance.planned",
    "reservation.expired",
    "reservation.provisioning",
    "reservation.refused",
}


def published(path):
    """The events that a module tells who listens, beside the log."""
    for node in ast.walk(ast.parse(path.read_text())):
        called = getattr(node, "func", None)
        if getattr(called, "attr", getattr(called, "id", "")) in PUBLISHING:
            for leaf in (leaf for one in node.args[:2] for leaf in ast.walk(one)):
                if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str) and EVENT.fullmatch(leaf.value):
                    yield leaf.value


def modules():
    """The files of the product, without its tests."""
    return [p for f in ("apps", "controller", "hostagent") for p in (ROOT / f).rglob("*.py") if "tests" not in p.parts]


def test_every_event_of_the_code_has_its_row():
    events = {event for path in modules() for event in said(path)}
    assert len(events) > 60
    assert sorted(events - set(told())) == []


def test_every_row_of_an_event_is_of_one_that_the_code_can_say():
    texts = {text for path in modules() for text in could_be_said(path)}
    events = {event for event in told() if EVENT.fullmatch(event)}
    made = {e for e in events for subject, word in [e.split(".")] if texts & {f"{subject}.*", f"*.{word}"}}
    assert len(events) > 100
    assert sorted(events - texts - made) == []


def test_the_events_that_a_webhook_may_name_are_those_that_the_controller_publishes():
    events = MADE.union(*map(published, modules()))
    assert sorted(one for one in events if not one.startswith("webhook.")) == sorted(EVENTS)
    assert set(ALARMS) <= set(EVENTS) <= set(told())
    page = (ROOT / "docs/webhooks.md").read_text()
    rows = re.findall(r"^\| `([a-z]+)` \| (.+) \|$", page, flags=re.MULTILINE)
    assert {f"{subject}.{what}" for subject, row in rows for what in re.findall(r"`([a-z_]+)`", row)} == set(EVENTS)


def test_every_metric_that_an_alarm_is_made_of_is_exported():
    asked = set(re.findall(r"headway_[a-z_]+", (ROOT / "docs/operate.md").read_text()))
    exported = (ROOT / "controller/northbound/metrics.py").read_text()
    assert len(asked) > 5
    assert [name for name in sorted(asked) if f'"{name.removesuffix("_total")}"' not in exported] == []


def test_every_link_of_the_page_leads_somewhere():
    links = re.findall(r"\]\(([a-z]+\.md)(?:#([a-z0-9-]+))?\)", (ROOT / "docs/operate.md").read_text())
    assert len(links) > 5
    for page, anchor in links:
        heads = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(), flags=re.MULTILINE)
        anchors = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}
        assert not anchor or anchor in anchors, f"{page}#{anchor}"
