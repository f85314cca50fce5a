"""Requests drawn from the API's description, by people of each role: none reaches another's, nothing breaks."""

import os
from datetime import UTC, datetime, timedelta

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from controller.northbound.access import AccessRules, role_needed
from controller.northbound.api import api
from controller.northbound.rest.answers import OPERATION_IDS
from controller.northbound.tests.site import HOUR_US, MANY, NIGHT, dependencies_of
from controller.security.tokens import Role, Tokens, new_token
from controller.tests.fakes import START_US, FakeSite
from mininet_tests.testing.networks import asc_ring
from topology.units import shown_time

NOW = datetime(2026, 11, 23, tzinfo=UTC)
MADE = {role.value: new_token(role.value, role, NOW, NOW + timedelta(days=1)) for role in Role}
OTHER = new_token("other", Role.RESERVE, NOW, NOW + timedelta(days=1), ("theirs",))
RULES = AccessRules(lambda: Tokens((OTHER[1], *(kept for _, kept in MADE.values()))), lambda: NOW)
ASKERS = ("nobody", *(role.value for role in Role))
ORDINARY = 3
EXAMPLES = max(ORDINARY, int(os.environ.get("HEADWAY_SCHEMA_EXAMPLES", "15")) // 5)
pytestmark = [pytest.mark.long] if EXAMPLES > ORDINARY else []
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
ENDLESS = "GET /v1/events"


def shown(token):
    """The header of who shows a token."""
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def site():
    """A ring of sites, all well; what one request leaves, the next one finds."""
    site = FakeSite(asc_ring(), standing=())
    site.attach_all()
    site.converge()
    return site


@pytest.fixture(scope="module")
def schema(site):
    """Its API's description, with the API behind it, where one is known by a token alone."""
    return schemathesis.openapi.from_asgi("/openapi.json", api(dependencies_of(site), RULES))


@pytest.fixture
def theirs(schema):
    """What is another's, made anew: their ids. The others may have sold out a day; there are more."""
    client = TestClient(schema.app, client=("192.0.2.1", 5000), headers=shown(OTHER[0]))
    a_end, z_end = asc_ring().sites[:2]
    for day in range(1, 50):
        times = {"start": shown_time(START_US + day * 24 * HOUR_US), "duration_s": 60}
        body = NIGHT | times | {"from": a_end, "to": z_end, "rate": "1 Mbit/s", "commit": True}
        held = client.post(MANY, json=body)
        if held.status_code == 201:
            break
    hosts = [host.name for host in asc_ring().hosts]
    image = {"id": f"image-{held.json()['id']}", "bytes": 1000, "from": [hosts[0]], "to": hosts[-1]}
    assert client.post("/v1/announcements", json=image).status_code == 201
    return {"reservations": held.json()["id"], "announcements": image["id"]}


def operations():
    """Every operation but the endless one."""
    return [label for label in OPERATION_IDS if label != ENDLESS]


def seen(site, theirs):
    """What is another's, as it stands."""
    ledger = site.value.wished.ledger
    return ledger.reservations[theirs["reservations"]], ledger.announcements[theirs["announcements"]]


@pytest.mark.parametrize("asker", ASKERS)
@pytest.mark.parametrize("label", operations())
def test_nobody_reaches_what_is_another_s_and_nothing_breaks(schema, site, theirs, label, asker):
    operation, before = schema.find_operation_by_label(label), seen(site, theirs)
    strategy = operation.as_strategy(GenerationMode.POSITIVE)
    if operation.body or operation.query:
        strategy |= operation.as_strategy(GenerationMode.NEGATIVE)
    needed = role_needed(operation.method.upper(), operation.path)
    role = None if asker == "nobody" else Role(asker)
    kind = "announcements" if "announcements" in label else "reservations"

    @given(strategy, st.booleans())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    def asked(case, aims_at_theirs):
        if "id" in (case.path_parameters or {}) and aims_at_theirs:
            case.path_parameters["id"] = theirs[kind]
            case.headers["If-Match"] = "*"
        case.headers.pop("Authorization", None)
        answer = case.call(headers={} if role is None else shown(MADE[asker][0]))
        case.validate_response(answer, checks=CHECKS)
        if needed is not None and role is None:
            assert answer.status_code in {400, 401}, answer.text
        elif needed is not None and not role.includes(needed):
            assert answer.status_code in {400, 403}, answer.text
        if role is None or not role.includes(Role.OPERATE):
            assert seen(site, theirs) == before

    asked()
