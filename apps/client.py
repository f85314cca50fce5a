"""The commands that talk to a running controller: announce, release, plan, hosts."""

import json
from typing import Annotated, Any

import httpx
import typer

from apps import tables
from topology import units

app = typer.Typer()

Url = Annotated[str, typer.Option("--url", envvar="HEADWAY_URL", help="The controller's REST address.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
DEFAULT_URL = "http://127.0.0.1:8080"


def _call(method: str, url: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Return the controller's answer; a problem is one line and exit 1."""
    try:
        answer = httpx.request(method, f"{url}{path}", json=body, timeout=10)
    except httpx.HTTPError as error:
        typer.echo(f"headway: no controller at {url}: {error}; is it running? set --url or HEADWAY_URL", err=True)
        raise typer.Exit(1) from error
    if answer.is_error:
        detail = answer.json()["detail"] if "json" in answer.headers.get("content-type", "") else answer.text
        typer.echo(f"headway: {detail}", err=True)
        raise typer.Exit(1)
    return answer.json()


def _quantity(text: str, parse: Any) -> int:
    """Return a quantity from the command line."""
    try:
        return int(parse(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.command()
def announce(
    senders: Annotated[str, typer.Option("--from", help="Sending hosts, separated by commas.")],
    target: Annotated[str, typer.Option("--to", help="Receiving host.")],
    size: Annotated[str, typer.Option("--bytes", help="Payload of all senders together, e.g. 2.7GB.")],
    deadline: Annotated[str | None, typer.Option(help="By when, e.g. 30s; refused if it cannot be met.")] = None,
    flow_class: Annotated[str, typer.Option("--class", help="urgent or background.")] = "urgent",
    name: Annotated[str | None, typer.Option("--id", help="A name for it; made up if absent.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Announce bytes that are coming; the answer is a promise, or a refusal with the numbers.

    Example: headway announce --from base20,base21 --to arch --bytes 2.7GB --deadline 30s
    """
    body: dict[str, Any] = {
        "class": flow_class,
        "bytes": _quantity(size, units.size_bytes),
        "from": senders.split(","),
        "to": target,
    }
    if deadline is not None:
        body["deadline_s"] = _quantity(deadline, units.duration_us) / 1e6
    if name is not None:
        body["id"] = name
    promise = _call("POST", url, "/v1/announcements", body)
    typer.echo(
        json.dumps(promise)
        if as_json
        else f"{promise['id']}: promised in {promise['promised_in_s']:.3f} s, by {promise['promised']}"
    )


@app.command()
def release(name: Annotated[str, typer.Argument(help="The announcement's name.")], url: Url = DEFAULT_URL) -> None:
    """Release an announcement: its bytes have arrived, its share goes back to the others."""
    _call("DELETE", url, f"/v1/announcements/{name}")
    typer.echo(f"{name}: released")


@app.command()
def plan(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show the plan: who may send how much, and what each layer lets through now."""
    view = _call("GET", url, "/v1/plan")
    if as_json:
        typer.echo(json.dumps(view))
        return
    tables.show_plan(view)


@app.command()
def hosts(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show every host's agent: connected or not, which epoch it holds, what its kernel has moved."""
    rows = _call("GET", url, "/v1/hosts")
    if as_json:
        typer.echo(json.dumps(rows))
        return
    tables.show_hosts(rows)
