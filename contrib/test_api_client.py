"""The client's typed part is what the API's description makes of it."""

import inspect
import re

import pytest

from contrib import api_client
from headway import Client


@pytest.fixture(scope="module")
def api():
    return api_client.described()


def test_the_client_is_made_of_the_apis_description_as_it_is_now(api):
    for name, text in api_client.made(api).items():
        there = (api_client.ROOT / "headway" / name).read_text()
        assert there == text, f"headway/{name} is not what the API says: contrib/api_client.py"


def test_a_field_that_drifts_is_seen(api):
    schemas = {**api["components"]["schemas"]}
    one = schemas["ReservationOut"]
    schemas["ReservationOut"] = one | {"properties": one["properties"] | {"new_bps": {"type": "integer"}}}
    made = api_client.made(api | {"components": {"schemas": schemas}})
    assert made["promises.py"] != (api_client.ROOT / "headway/promises.py").read_text()


def test_each_operation_is_a_method_that_asks_for_its_path(api):
    for path, verbs in api["paths"].items():
        for operation in verbs.values():
            source = inspect.getsource(getattr(Client, operation["operationId"]))
            assert re.sub(r"\{\w+\}", "{", path).split("{")[0] in source


def test_a_stranger_is_typed_too():
    assert api_client.type_of({}) == "Any"
    assert api_client.type_of({"type": "object", "additionalProperties": {"type": "number"}}) == "dict[str, float]"
