"""Hold and commit have a short way to their handlers; who asks cannot tell it from the long one."""

import asyncio
import json

import pytest
from fastapi.testclient import TestClient

from controller.northbound.quick import MOST_BODY_BYTES, Quick
from controller.northbound.tests.site import MANY, NIGHT, api_of
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois

LONG_WAY = "?long"  # a query, of which neither request makes anything
PLAIN = json.dumps(NIGHT).encode()
MADE_UP = {"id": "", "location": "", "x-request-id": ""}
BODIES = {
    "granted": NIGHT,
    "granted and committed": NIGHT | {"commit": True},
    "refused with offers": NIGHT | {"rate": "700 Mbit/s"},
    "more than the circuit": NIGHT | {"rate": "2 Gbit/s"},
    "an unknown end": NIGHT | {"to": "nowhere"},
    "no end at all": {k: v for k, v in NIGHT.items() if k != "to"},
    "two rates": NIGHT | {"rate_bps": 1},
    "a field that there is not": NIGHT | {"bandwidth": 1},
    "a text for a number": NIGHT | {"duration_s": "long"},
    "in somebody else's name": NIGHT | {"owner": "group:others"},
    "in the past": NIGHT | {"start": "2020-01-01T00:00:00Z"},
    "a number": 1,
    "a list": [NIGHT],
}


@pytest.fixture(scope="module")
def ways():
    """Two sites that are alike, each of which is asked by one way only."""
    return tuple(TestClient(api_of(FakeSite(chile_illinois(), standing=()))) for _ in range(2))


def said(answer):
    """Return an answer without what was made up for it."""
    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
    body = answer.json()
    return answer.status_code, headers | MADE_UP, body | MADE_UP


def both(ways, path, content=b"", **headers):
    """Return what is said by the short way and by the long one."""
    short, long = ways
    kinds = headers or {"content-type": "application/json"}
    return (
        said(short.post(path, content=content, headers=kinds)),
        said(long.post(path + LONG_WAY, content=content, headers=kinds)),
    )


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_hold_is_answered_alike_by_both_ways(ways, body):
    short, long = both(ways, MANY, json.dumps(body).encode())
    assert short == long


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 20_000, b'{"a": NaN}'])
def test_what_is_no_request_is_answered_alike_by_both_ways(ways, content):
    short, long = both(ways, MANY, content)
    assert short == long
    assert short[0] in {400, 422}


@pytest.mark.parametrize("content", [b"", b"{}", b"not looked at"])
def test_a_commit_is_answered_alike_by_both_ways(ways, content):
    names = [each.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}).json()["id"] for each in ways]
    for _ in ("at first", "again"):
        short, long = (
            each.post(f"{MANY}/{name}/commit{query}", content=content, headers={"content-type": "application/json"})
            for each, name, query in zip(ways, names, ("", LONG_WAY), strict=True)
        )
        assert said(short) == said(long)
        assert short.json()["state"] == "committed"


def test_a_commit_of_nothing_is_answered_alike_by_both_ways(ways):
    short, long = both(ways, f"{MANY}/nobody/commit")
    assert short == long
    assert short[0] == 404


class AskedHandlers:
    """Notes who is asked: the short way, or what stands behind it."""

    def __init__(self):
        self.asked = []

    async def hold(self, body):
        self.asked.append(("hold", body.a_end))
        return self.answer

    async def commit(self, name):
        self.asked.append(("commit", name))
        return self.answer

    async def answer(self, scope, receive, send):
        """Answer nothing."""

    async def behind(self, scope, receive, send):
        self.asked.append(("behind", (await receive())["body"]))


def asked(path, body=PLAIN, *, method="POST", query=b"", headers=(), more=False):
    """Return who is asked by a request."""
    handlers = AskedHandlers()
    quick = Quick(handlers.behind, handlers.hold, handlers.commit, (), None)
    fields = [(b"content-length", str(len(body)).encode()), *headers]
    scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": fields}
    messages = [{"type": "http.request", "body": body, "more_body": more}]

    async def receive():
        return messages.pop(0)

    asyncio.run(quick(scope, receive, None))
    return handlers.asked


def test_what_is_plain_goes_the_short_way():
    assert asked(MANY) == [("hold", "la-serena")]
    assert asked(f"{MANY}/abc/commit") == [("commit", "abc")]


def test_what_is_not_plain_goes_the_long_way_as_it_has_come():
    large = PLAIN + b" " * MOST_BODY_BYTES
    assert asked(MANY, query=b"a=b") == [("behind", PLAIN)]
    assert asked(MANY, headers=[(b"idempotency-key", b"k")]) == [("behind", PLAIN)]
    assert asked(MANY, headers=[(b"transfer-encoding", b"chunked")]) == [("behind", PLAIN)]
    assert asked(MANY, headers=[(b"content-length", b"1")]) == [("behind", PLAIN)]
    assert asked(MANY, more=True) == [("behind", PLAIN)]
    assert asked(MANY, b"{}") == [("behind", b"{}")]
    assert asked(MANY, large) == [("behind", large)]
    assert asked(MANY, method="GET") == [("behind", PLAIN)]
    assert asked(f"{MANY}/abc/renew") == [("behind", PLAIN)]
    assert asked(f"{MANY}/a/b/commit") == [("behind", PLAIN)]
