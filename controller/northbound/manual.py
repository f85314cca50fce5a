"""``/docs``: the API's description of itself as a page, for people; made here, it loads nothing but its own style."""

from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request, Response

CSP = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
STYLE = "/docs/style.css"

Described = Mapping[str, Any]


class Manual:
    """The handlers."""

    def __init__(self) -> None:
        self._page = ""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes to an application's router; they are no part of the API."""
        router.add_api_route("/docs", self.page, response_class=Response)
        router.add_api_route(STYLE, self.style, response_class=Response)

    async def page(self, request: Request) -> Response:
        """Return the page; it is made once."""
        self._page = self._page or "".join(page(request.app.openapi()))
        return Response(self._page, headers={"Content-Security-Policy": CSP}, media_type="text/html")

    async def style(self) -> Response:
        """Return what it looks like."""
        return Response(files(__package__).joinpath("manual.css").read_bytes(), media_type="text/css")


def page(schema: Described) -> Iterator[str]:
    """Yield a page of an OpenAPI schema, piece by piece."""
    title = escape(f"{schema['info']['title']} {schema['info']['version']}")
    yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield f'<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="{STYLE}"></head><body>'
    yield f"<h1>{title}</h1><p>{escape(schema['info'].get('summary', ''))}."
    yield ' <a href="/openapi.json">/openapi.json</a></p>'
    operations = [(m, path, one) for path, methods in schema["paths"].items() for m, one in methods.items()]
    yield "<ul>"
    for method, path, one in operations:
        yield f'<li><a href="#{escape(one["operationId"])}"><code>{method.upper()} {escape(path)}</code></a> '
        yield f"{escape(one['summary'])}</li>"
    yield "</ul>"
    for method, path, one in operations:
        yield from _operation(f"{method.upper()} {path}", one)
    yield "<h2>Bodies</h2>"
    for name, shape in schema["components"]["schemas"].items():
        yield f'<section id="{escape(name)}"><h3>{escape(name)}</h3><p>{escape(shape.get("description", ""))}</p>'
        needed = shape.get("required", ())
        rows = [(field, _type(d), _said(d, field in needed)) for field, d in shape.get("properties", {}).items()]
        yield from _table(("field", "type", ""), rows)
        yield f"<p>{' '.join(map(escape, map(str, shape.get('enum', ()))))}</p></section>"
    yield "</body></html>"


def _operation(name: str, one: Described) -> Iterator[str]:
    yield f'<section id="{escape(one["operationId"])}"><h2><code>{escape(name)}</code></h2>'
    yield f"<p><b>{escape(one['summary'])}.</b> {escape(one.get('description', ''))}</p>"
    taken = [
        (p["name"], f"{p['in']}, {_type(p['schema'])}", _said({**p["schema"], **p}, p.get("required", False)))
        for p in one.get("parameters", ())
    ]
    yield from _table(("parameter", "type", ""), taken)
    for content in one.get("requestBody", {}).get("content", {}).values():
        yield f"<p>Body: {_type(content['schema'])}</p>"
    answers = [(s, _contents(answer), escape(answer["description"])) for s, answer in one["responses"].items()]
    yield from _table(("answer", "body", ""), answers)
    yield "</section>"


def _contents(answer: Described) -> str:
    return ", ".join(_type(content.get("schema", {})) for content in answer.get("content", {}).values())


def _table(heads: tuple[str, ...], rows: list[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a table, none without rows; the first of each row is text, the others HTML."""
    if not rows:
        return
    yield f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
    for name, *more in rows:
        yield f"<tr><td><code>{escape(name)}</code></td>{''.join(f'<td>{part}</td>' for part in more)}</tr>"
    yield "</table>"


def _said(described: Described, is_needed: bool) -> str:
    """Return what is said of a field or parameter, as HTML."""
    parts = [escape(str(described.get("description", "")))]
    if is_needed:
        parts.append("<b>Needed.</b>")
    if "default" in described:
        parts.append(f"Default: <code>{escape(str(described['default']))}</code>")
    if described.get("examples"):
        parts.append(f"Example: <code>{escape(str(described['examples'][0]))}</code>")
    return " ".join(parts)


def _type(schema: Described) -> str:
    """Return a type in short, as HTML; one that has a name is a link to it."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("format") or schema.get("type", "any")))
