"""``/docs``: whole, from our own files, and nothing in it can become markup."""

import re

from controller.northbound.manual import CSP, page


def test_the_page_has_every_operation_and_every_body_and_loads_only_from_us(idle):
    answer, schema = idle.get("/docs"), idle.get("/openapi.json").json()
    assert answer.headers["content-security-policy"] == CSP
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert f"<h2><code>{method.upper()} {path}</code></h2>" in answer.text
            assert f'id="{operation["operationId"]}"' in answer.text
    links = set(re.findall(r'(?:href|src)="([^"]*)"', answer.text))
    inside = {link.removeprefix("#") for link in links if link.startswith("#")}
    assert links - {f"#{name}" for name in inside} == {"/docs/style.css", "/openapi.json"}
    assert inside <= set(re.findall(r'id="([^"]*)"', answer.text)), "a link leads nowhere"
    assert "<script" not in answer.text
    assert idle.get("/redoc").status_code == 404


def test_its_style_is_a_file_of_ours(idle):
    answer = idle.get("/docs/style.css")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "url(" not in answer.text
    assert "@import" not in answer.text


def test_what_is_described_cannot_become_markup():
    bad = '<img src="x">'
    field = {"type": bad, "description": bad, "default": bad, "examples": [bad]}
    operation = {
        "operationId": bad,
        "summary": bad,
        "description": bad,
        "parameters": [{"name": bad, "in": "query", "schema": field}],
        "requestBody": {"content": {"x": {"schema": field}}},
        "responses": {"200": {"description": bad, "content": {"x": {"schema": field}}}},
    }
    shape = {"description": bad, "properties": {bad: field}, "enum": [bad]}
    schema = {
        "info": {"title": bad, "version": bad, "summary": bad},
        "paths": {bad: {"get": operation}},
        "components": {"schemas": {bad: shape}},
    }
    made = "".join(page(schema))
    assert "<img" not in made
    assert made.count("&lt;img") > 15
