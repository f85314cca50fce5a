"""Who may: each role and nobody, at every operation there is; what is refused says nothing of what exists."""

from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.rest.answers import OPERATION_IDS
from controller.northbound.tests.site import MANY, NIGHT, dependencies_of
from controller.security.tokens import Role, Tokens, new_token
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois

NOW = datetime(2026, 11, 23, tzinfo=UTC)
MADE = {role: new_token(role.value, role, NOW, NOW + timedelta(days=1)) for role in Role}
ENDED, KEPT_ENDED = new_token("late", Role.ADMIN, NOW, NOW)
TOKENS = Tokens((*(kept for _, kept in MADE.values()), KEPT_ENDED))
IMAGE = {"id": "image", "bytes": 1, "from": ["base20"], "to": "arch"}


def client_of(rules, source="192.0.2.1"):
    """A client of an API with rules, at an address."""
    app = api(dependencies_of(FakeSite(chile_illinois(), standing=())), rules)
    return TestClient(app, client=(source, 5000))


@pytest.fixture(scope="module")
def client():
    """A client of another machine, where nobody may anything without a token."""
    return client_of(AccessRules(lambda: TOKENS, lambda: NOW))


def bearer(role):
    """What somebody of a role shows; nobody shows nothing."""
    return {} if role is None else {"Authorization": f"Bearer {MADE[role][0]}"}


def operations(client):
    """Every operation, as (method, path)."""
    paths = client.get("/openapi.json").json()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


@pytest.mark.parametrize("role", [None, *Role])
def test_each_role_reaches_its_operations_and_no_other(client, role):
    reached = {
        (method, path)
        for method, path in operations(client)
        if path != "/v1/events"  # endless
        and client.request(method, path.replace("{id}", "any"), headers=bearer(role)).status_code not in {401, 403}
    }
    every = {(method, path) for method, path in operations(client) if path != "/v1/events"}
    reads = {(method, path) for method, path in every if method == "GET"}
    promises = {(method, path) for method, path in every if path.startswith(("/v1/reservations", "/v1/announcements"))}
    reads -= {("GET", "/v1/changes")}
    assert len(every) == len(OPERATION_IDS) - 1
    operates = every - {("GET", "/v1/changes")}
    assert reached == {None: set(), Role.READ: reads, Role.RESERVE: reads | promises, Role.OPERATE: operates}.get(
        role, every
    )


@pytest.mark.parametrize("role", [None, Role.READ])
def test_a_refusal_names_the_role_and_is_the_same_for_what_exists_and_what_does_not(client, role):
    held = client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}, headers=bearer(Role.OPERATE)).json()["id"]
    answers = [
        client.request(method, f"{MANY}/{name}{more}", headers=bearer(role))
        for name in (held, "0" * len(held))
        for method, more in (("DELETE", ""), ("PATCH", ""), ("POST", "/commit"), ("PUT", ""), ("POST", "/nothing"))
    ]
    assert {answer.status_code for answer in answers} == {401 if role is None else 403}
    assert len({answer.text for answer in answers}) == 1
    assert answers[0].json()["needs"] == "reserve"


@pytest.mark.parametrize("path", ["/v1/reservations/", "//v1/reservations", "/V1/reservations", "/v1/%72eservations/x"])
def test_another_way_to_write_a_path_needs_no_lesser_role(client, path):
    assert client.delete(path, headers=bearer(Role.READ)).status_code == 403
    assert client.post(path, json=NIGHT, headers=bearer(Role.READ)).status_code == 403
    assert client.get(path).status_code == 401


@pytest.mark.parametrize(
    "shown",
    [
        f"Bearer {ENDED}",
        f"Bearer {MADE[Role.ADMIN][0]}x",
        f"Basic {MADE[Role.ADMIN][0]}",
        MADE[Role.ADMIN][0],
        "Bearer",
        "",
        "Bearer " + "x" * 10_000,
    ],
    ids=["ended", "longer", "of-another-scheme", "without-scheme", "no-token", "nothing", "huge"],
)
def test_what_is_no_token_of_ours_is_nobodys_and_is_not_said_again(shown):
    all_here = client_of(AccessRules(lambda: TOKENS, lambda: NOW, Role.ADMIN, Role.ADMIN), "127.0.0.1")
    answer = all_here.get("/v1/plan", headers={"Authorization": shown})  # though without any it would be let in
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer error="invalid_token"')
    assert shown.removeprefix("Bearer") in {"", " "} or shown.removeprefix("Bearer ") not in answer.text


def test_two_tokens_are_none(client):
    twice = [("Authorization", bearer(role)["Authorization"]) for role in (Role.ADMIN, Role.ADMIN)]
    assert client.get("/v1/plan", headers=twice).status_code == 401


@pytest.mark.parametrize(
    ("source", "status"),
    [("127.0.0.1", 201), ("127.9.9.9", 201), ("::1", 201), ("::ffff:127.0.0.1", 201), ("::2", 403)],
)
def test_who_is_on_this_machine_may_what_local_may_and_others_what_anybody_may(source, status):
    rules = AccessRules(lambda: Tokens(()), lambda: NOW, local=Role.OPERATE, anybody=Role.READ)
    here = client_of(rules, source)
    assert here.get("/v1/plan").status_code == 200
    assert here.post("/v1/announcements", json=IMAGE).status_code == status
