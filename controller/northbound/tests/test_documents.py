"""The documents' tables are those of the code."""

import ast
import re
from pathlib import Path

import pytest

from controller.northbound.api import NOT_ROUTED, STATUS, problem_type
from controller.northbound.rest.answers import OPERATION_IDS
from controller.northbound.tests.site import api_of
from controller.plan.admission import OfferKind, Reason
from controller.plan.lifecycle import NEXT
from controller.plan.lines import LINE_NEXT
from controller.plan.purchase_lifecycle import PURCHASE_NEXT
from controller.tests.fakes import ready_site

ROOT = Path(__file__).parents[3]
NORTHBOUND = Path(__file__).parents[1]


def table(document, title):
    """The rows of the table whose first column has this title, each a list of its cells."""
    text = (ROOT / "docs" / document).read_text()
    rows = re.search(rf"^\| {re.escape(title)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
    return [[cell.strip() for cell in row.strip("|\n").split("|")] for row in rows.splitlines()]


@pytest.mark.parametrize(
    ("document", "first", "steps_of"),
    [
        ("reservations.md", "state", NEXT),
        ("failover.md", "line", LINE_NEXT),
        ("configuration.md", "purchase", PURCHASE_NEXT),
    ],
    ids=["reservation", "line", "purchase"],
)
def test_the_states_and_what_can_happen_in_each_are_those_of_the_code(document, first, steps_of):
    described = {state.strip("`"): steps for state, _, steps in table(document, first)}
    assert described == {
        state: ", ".join(f"{event} -> `{after}`" for event, after in steps.items()) for state, steps in steps_of.items()
    }


def test_every_operation_has_a_name_that_a_client_can_call_it_by():
    paths = api_of(ready_site()).openapi()["paths"]
    named = {f"{verb.upper()} {path}": one["operationId"] for path, of in paths.items() for verb, one in of.items()}
    assert named == OPERATION_IDS
    assert len(set(named.values())) == len(named)
    assert {name for name in named.values() if not re.fullmatch(r"[a-z]+(_[a-z]+)?", name)} == set()


def test_every_kind_of_offer_is_described():
    assert [row[0].strip("`") for row in table("reservations.md", "offer")] == list(OfferKind)


def test_every_system_whose_faults_are_described_has_its_tests_and_the_other_way_round():
    files = [file.read_text() for file in (ROOT / "controller").rglob("test_*.py")]
    names = [name for text in files for name in re.findall(r"def test_([a-z_]+)_fault_", text)]
    tested = {name.partition("_")[0] for name in names if name not in {"a", "our_own"}}
    described = [row[1].lower() for row in table("reservations.md", "fault")]
    assert {system for system in tested if not any(system in seen for seen in described)} == set()
    assert [seen for seen in described if not any(system in seen for system in tested)] == []


def problems_of(path):
    """Kind and status of what a module answers: the first two arguments of a ``problem`` and of a ``TurnedAway``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"problem", "TurnedAway"}:
            match node.args[:2]:
                case [ast.Constant(value=status), ast.Constant(value=kind)]:
                    yield kind, status


def test_every_problem_is_described_with_its_status():
    described = {(kind.strip("`"), int(status)) for kind, status, _ in table("api.md", "type")}
    kinds = [(problem_type(error), status) for error, status in STATUS.items()]
    kinds += [(reason.value, 409) for reason in Reason] + [(kind, status) for status, kind in NOT_ROUTED.items()]
    said = [one for path in NORTHBOUND.rglob("*.py") if "tests" not in path.parts for one in problems_of(path)]
    assert len(said) > 20
    known = {(f"/problems/{kind}", status) for kind, status in (*kinds, *said)}
    assert (sorted(known - described), sorted(described - known)) == ([], [])
