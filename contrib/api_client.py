#!/usr/bin/env python3
"""Write the typed part of the client anew from the API's description, when it is run.

The files of :data:`CALLS` have a method for each operation, those of :data:`FILES` a type for each schema, under its
own name. A test makes them again and compares.
"""

import builtins
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

MADE = '"""Made from the API\'s description by contrib/api_client.py: {what}."""\n\n'
FILES = (  # a file of types, what it has, and of which paths: what two have, the first has
    (
        "promises",
        "reservations, announcements, availability",
        ("/v1/reservations", "/v1/announcements", "/v1/availability"),
    ),
    (
        "records",
        "what has ended, changes, who asks, who leads, works",
        ("/v1/history", "/v1/changes", "/v1/whoami", "/v1/leader", "/v1/maintenance"),
    ),
    ("forecasts", "what would be", ("/v1/what-if", "/v1/scenario")),
    ("network_views", "the network, and what is at its ends", ("/v1/topology", "/v1/bursts", "/v1/receivers")),
    ("views", "the plan, circuits, hosts, how things stand", ("/",)),
)
CALLS = (  # a file of methods, its class and what that is made of, what the methods are about, and of which paths
    ("promise_operations", "PromiseOperations", "Transport", "the operations on promises", FILES[0][2]),
    ("operations", "Operations", "PromiseOperations", "the other operations", ("/",)),
)
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
TEXTS = {"text/plain", "text/calendar"}
JSON = "application/json"  # of answers; problems have a type of their own
KEY, MATCH = "Idempotency-Key", "If-Match"
CACHED = "If-None-Match"  # the client keeps no answers
REPEATABLE = {"commit_reservation", "renew_reservation", "release_reservation", "cancel_maintenance"}
"""Beside reading, and what has a key: done twice, they answer twice the same."""
WORKED_OUT = {"what_if"}
"""What the controller takes up to LONGEST_S for; asked again meanwhile, it is asked too much."""
REPLY_S = 15  # for it to begin and to answer, beside working it out

Schema = Mapping[str, Any]


def described() -> dict[str, Any]:
    """Return the API's description, as ``/openapi.json`` has it."""
    from controller.northbound.tests.site import api_of
    from controller.tests.fakes import FakeSite
    from mininet_tests.testing.networks import chile_illinois

    site = FakeSite(chile_illinois(), standing=())  # type: ignore[no-untyped-call]  # tests are not typed
    found: dict[str, Any] = api_of(site).openapi()
    return found


def type_of(schema: Schema, items: str = "list") -> str:
    """Return a schema as a type.

    >>> type_of({"anyOf": [{"type": "array", "items": {"$ref": "#/components/schemas/WayOut"}}, {"type": "null"}]})
    'list[WayOut] | None'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(one, items) for one in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        return f"{items}[{type_of(schema['items'])}]"
    if kind == "object":
        more = schema.get("additionalProperties")
        return f"dict[str, {type_of(more)}]" if isinstance(more, Mapping) else "dict[str, Any]"
    return PLAIN[kind] if kind else "Any"


def refs(schema: object) -> set[str]:
    """Return the names of the schemas that one names."""
    return set(re.findall(r"'#/components/schemas/(\w+)'", str(schema)))


def reachable(start: set[str], schemas: Mapping[str, Schema]) -> set[str]:
    """Return the names of schemas, with all that they are made of."""
    found: set[str] = set()
    while start:
        found |= start
        start = set().union(*(refs(schemas[name]) for name in start)) - found
    return found


def ordered(names: Iterable[str], schemas: Mapping[str, Schema]) -> list[str]:
    """Return schemas so that each comes after what it is made of."""
    left, done = sorted(names), list[str]()
    while left:
        ready = next(name for name in left if not refs(schemas[name]) & set(left) - {name})
        left.remove(ready)
        done.append(ready)
    return done


def shape(name: str, schema: Schema) -> str:
    """Return a schema as a statement."""
    if "properties" not in schema:
        return f"{name} = {type_of(schema)}\n"
    needed = set(schema.get("required", ()))
    answers = not name.endswith(("In", "Change"))
    fields = {
        field: type_of(one) if answers or field in needed else f"NotRequired[{type_of(one)}]"
        for field, one in schema["properties"].items()
    }
    rows = "".join(f"    {field!r}: {kind},\n" for field, kind in fields.items())
    words = schema.get("description", "").replace("\n", " ")
    return f"# {words}\n{name} = TypedDict({name!r}, {{\n{rows}}})\n"


def word(name: str) -> str:
    """Return a parameter's name in Python.

    >>> word("from"), word("Idempotency-Key"), word("id")
    ('from_', 'idempotency_key', 'id_')
    """
    name = name.lower().replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) or hasattr(builtins, name) else name


def good(operation: Schema) -> tuple[str, Schema]:
    """Return media type and schema of what an operation answers when it is done."""
    answer = next(answer for status, answer in sorted(operation["responses"].items()) if status < "300")
    media, content = next(iter(answer["content"].items()))
    return media, content.get("schema", {})


def method(verb: str, path: str, operation: Schema) -> str:
    """Return an operation as a method."""
    parameters = operation.get("parameters", [])
    by_place = {
        place: [one for one in parameters if one["in"] == place and one["name"] != CACHED]
        for place in ("path", "query", "header")
    }
    body = operation.get("requestBody")
    positional = [f"{word(one['name'])}: str" for one in by_place["path"]]
    if body:
        schema = type_of(body["content"]["application/json"]["schema"])
        positional.append(f"body: {schema}" + ("" if "None" not in schema else " = None"))
    named = [
        f"{word(one['name'])}: {kind}" if one.get("required") else f"{word(one['name'])}: {kind} | None = None"
        for one in (*by_place["query"], *by_place["header"])
        for kind in [type_of(one["schema"], "Sequence").removesuffix(" | None")]
    ]
    signature = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    media, answer = good(operation)
    events = media == "text/event-stream"
    kind = "Iterator[ServerSentEvent]" if events else "str" if media in TEXTS else type_of(answer)
    summary, more = operation["summary"] + ".", operation.get("description") or ""
    paragraphs = [summary, *(more.split("\n\n") if more and not more.startswith(operation["summary"]) else [])]
    doc = textwrap.indent("\n\n".join(textwrap.fill(part, 105) for part in paragraphs), "        ").strip()
    doc += "\n        " if len(paragraphs) > 1 else ""
    done = f"return self.followed({path!r}, last_event_id)" if events else _called(verb, path, operation, by_place)
    quotes = '"""'
    return (
        f"    def {operation['operationId']}({signature}) -> {kind}:\n"
        f"        {quotes}{doc}{quotes}\n{textwrap.indent(done, '        ')}\n"
    )


def _called(verb: str, path: str, operation: Schema, by_place: Mapping[str, list[Schema]]) -> str:
    from controller.northbound.forecasts import LONGEST_S

    at = re.sub(r"\{(\w+)\}", lambda found: f"{{segment({word(found[1])})}}", path)
    arguments = [repr(verb.upper()), f"f{at!r}" if at != path else repr(path)]
    if by_place["query"]:
        pairs = ", ".join(f"{one['name']!r}: {word(one['name'])}" for one in by_place["query"])
        arguments.append(f"query={{{pairs}}}")
    has_key = any(one["name"] == KEY for one in by_place["header"])
    if by_place["header"]:
        pairs = ", ".join(
            f"{one['name']!r}: {'made_up(' + word(KEY) + ')' if one['name'] == KEY else word(one['name'])}"
            for one in by_place["header"]
        )
        arguments.append(f"headers={{{pairs}}}")
    arguments += ["body=body"] if operation.get("requestBody") else []
    if verb == "get" or has_key or operation["operationId"] in REPEATABLE:
        matched = any(one["name"] == MATCH for one in by_place["header"])
        arguments.append(f"repeatable={f'{word(MATCH)} is None' if matched else 'True'}")
    also = sorted(
        int(one) for one, said in operation["responses"].items() if one >= "300" and JSON in said.get("content", ())
    )
    arguments += [f"also=({', '.join(map(str, also))},)"] if also else []
    arguments += [f"takes_s={LONGEST_S + REPLY_S}"] if operation["operationId"] in WORKED_OUT else []
    kind = "str" if good(operation)[0] in TEXTS else type_of(good(operation)[1])
    return f"answer: {kind} = self.call(Asked({', '.join(arguments)}))\nreturn answer"


def tidy(text: str) -> str:
    """Return Python as ruff formats it."""
    command = [sys.executable, "-m", "ruff", "format", "-", "--stdin-filename", "headway/made.py"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


def made(api: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of the client that come of the API's description, by name."""
    schemas: Mapping[str, Schema] = api["components"]["schemas"]
    operations = [(path, verb, one) for path, verbs in api["paths"].items() for verb, one in verbs.items()]
    files, where = {}, dict[str, str]()  # by type, the file that has it
    for file, what, paths in FILES:
        found = reachable(set().union(*(refs(one) for path, _, one in operations if path.startswith(paths))), schemas)
        names = found - where.keys()
        where |= dict.fromkeys(names, file)
        text = MADE.format(what=what)
        body = "\n".join(shape(name, schemas[name]) for name in ordered(names, schemas))
        used = [each for each in ("Any", "Literal", "NotRequired", "TypedDict") if re.search(rf"\b{each}\b", body)]
        text += f"from typing import {', '.join(used)}\n\n"
        files[f"{file}.py"] = (
            text + "".join(imports(set().union(*(refs(schemas[name]) for name in names)) - names, where)) + body
        )
    left = operations
    for file, name, base, what, paths in CALLS:
        those = [(path, verb, one) for path, verb, one in left if path.startswith(paths)]
        left = [one for one in left if one not in those]
        methods = "\n".join(method(verb, path, one) for path, verb, one in those)
        files[f"{file}.py"] = _calls(name, base, what, methods, where)
    return {name: tidy(text) for name, text in files.items()}


def _calls(name: str, base: str, what: str, methods: str, where: Mapping[str, str]) -> str:
    """Return a file of methods: a class, made of another one."""
    said = re.sub(r'""".*?"""', "", methods, flags=re.DOTALL)
    types = set(re.findall(r"\b[A-Z]\w+\b", said)) & where.keys()
    text = MADE.format(what=f"a method for each of {what}") + "from __future__ import annotations\n\n"
    of_transport = ["Asked", *(one for one in ("Transport", "made_up", "segment") if f"{one}(" in said or one == base)]
    bases = "" if base == "Transport" else "from headway.promise_operations import PromiseOperations\n"
    text += "from typing import TYPE_CHECKING\n\n" + bases
    text += f"from headway.transport import {', '.join(of_transport)}\n"
    kinds = [one for one in ("Iterator", "Sequence") if f"{one}[" in said]
    text += "\nif TYPE_CHECKING:\n"
    text += f"    from collections.abc import {', '.join(kinds)}\n\n" if kinds else ""
    lines = imports(types, where)
    lines += ["from headway.stream import ServerSentEvent\n"] if "ServerSentEvent" in said else []
    text += textwrap.indent("".join(sorted(lines)), "    ") + "\n"
    return (
        text
        + f'class {name}({base}):\n    """Operations of the API, by their names in its description: {what}."""\n\n'
        + methods
    )


def imports(names: Iterable[str], where: Mapping[str, str]) -> list[str]:
    """Return the lines that import types from the files that have them."""
    by_file: dict[str, list[str]] = {}
    for name in sorted(names):
        by_file.setdefault(where[name], []).append(name)
    return [f"from headway.{file} import {', '.join(found)}\n" for file, found in sorted(by_file.items())]


def main() -> None:
    """Write the files."""
    for name, text in made(described()).items():
        (ROOT / "headway" / name).write_text(text)


if __name__ == "__main__":
    main()
