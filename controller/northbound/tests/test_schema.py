"""The API does what its description says, whatever is sent to it: requests drawn from the description, good and bad.

Some for each operation in the ordinary run; the long tier sends over six thousand, over HTTP.
"""

import os
from typing import NamedTuple

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from controller.northbound.tests.site import api_of
from controller.tests.fakes import START_US, FakeSite
from controller.tests.serving import served
from mininet_tests.testing.networks import asc_ring
from topology.units import shown_time

IN_PROCESS = 15
EXAMPLES = int(os.environ.get("HEADWAY_SCHEMA_EXAMPLES", str(IN_PROCESS)))
pytestmark = [pytest.mark.long] if EXAMPLES > IN_PROCESS else []
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
ENDLESS = "GET /v1/events"  # test_event_stream.py
SITES = asc_ring().sites
HOSTS = tuple(host.name for host in asc_ring().hosts)


class Drawn(NamedTuple):
    """A field that is almost never right if it is drawn at random, and what it may be instead."""

    name: str
    values: st.SearchStrategy


near = st.integers(0, 10**6).map(lambda s: shown_time(START_US + s * 1_000_000))
PLACES = st.sampled_from([*SITES, *HOSTS])
KNOWN = 20  # ids that are asked for: the youngest
LIKELY = [
    Drawn("from", PLACES),
    Drawn("to", PLACES),
    Drawn("start", near),
    Drawn("end", near),
    Drawn("after", near),
    Drawn("before", near),
    Drawn("rate_bps", st.integers(1, 10**9)),
    Drawn("duration_s", st.floats(1e-6, 10**6)),
    Drawn("constraints", st.sampled_from([{}, {"backup": True}, {"max_rtt_ms": 30}, {"exclude": [SITES[0]]}])),
]


@pytest.fixture(scope="module")
def site():
    """A ring of sites, all well; what one request leaves, the next one finds."""
    site = FakeSite(asc_ring(), standing=())
    site.attach_all()
    site.converge()
    return site


@pytest.fixture(scope="module")
def schema(site):
    """Its API's description, with the API behind it: in process, in the long run served over HTTP."""
    if EXAMPLES <= IN_PROCESS:
        yield schemathesis.openapi.from_asgi("/openapi.json", api_of(site))
        return
    with served(api_of(site)) as url:
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


def operations():
    """Every operation but the endless one, to be asked well and badly, and how often; some take nothing at all."""
    described = schemathesis.openapi.from_asgi("/openapi.json", api_of(FakeSite(asc_ring(), standing=())))
    for one in (found.ok() for found in described.get_all_operations()):
        if one.label != ENDLESS:
            yield one.label, GenerationMode.POSITIVE, EXAMPLES if one.body or one.query or one.path_parameters else 1
            if one.body or one.query:
                yield one.label, GenerationMode.NEGATIVE, EXAMPLES


def made_likely(case, chosen, data, known):
    """Put what makes sense here and there into a request."""
    inside = [part for part in (case.body, case.query) if isinstance(part, dict)]
    for field, part in ((field, part) for field in chosen for part in inside):
        if field.name in part:
            value = data.draw(field.values)
            part[field.name] = (
                [value] if case.operation.label == "POST /v1/announcements" and field.name == "from" else value
            )
    if "id" in (case.path_parameters or {}) and data.draw(st.booleans()):
        nth, match = data.draw(st.integers(0, KNOWN - 1)), data.draw(st.sampled_from(["*", '"1"', '"2"']))
        if known:  # what is drawn must not depend on it: what has ended is forgotten in its own time
            case.path_parameters["id"] = known[nth % len(known)]
        if case.method == "PATCH":
            case.headers["If-Match"] = match


def ids(site, label):
    """What there is of the kind that an operation is about."""
    held = site.value.wished.ledger.announcements if "announcements" in label else site.value.wished.ledger.reservations
    return list(held)[-KNOWN:]


@pytest.mark.parametrize(("label", "mode", "times"), list(operations()))
def test_an_operation_answers_as_it_is_described(schema, site, label, mode, times):
    operation = schema.find_operation_by_label(label)

    @given(operation.as_strategy(mode), st.just(LIKELY) | st.lists(st.sampled_from(LIKELY)), st.data())
    @settings(
        max_examples=times,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    def answered(case, chosen, data):
        made_likely(case, chosen, data, ids(site, label))
        case.call_and_validate(checks=CHECKS)

    answered()
