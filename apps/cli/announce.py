"""``headway announce`` and ``release``: bytes that are coming, and that have arrived."""

import json
import re
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from apps.cli import base, completion, offers, options, owners, refusals, shown
from headway.errors import ApiRefusal
from topology import units

app = typer.Typer()


@app.command()
def announce(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="A file that is to be sent: gives --bytes and --id.")] = None,
    senders: Annotated[
        str | None,
        typer.Option("--from", help="Sending hosts, with commas; this host.", autocompletion=completion.sending_hosts),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--to", help="Receiving host; the only one at another site.", autocompletion=completion.hosts),
    ] = None,
    size: Annotated[str | None, typer.Option("--bytes", help="Payload of all senders together, e.g. 2.7GB.")] = None,
    deadline: Annotated[str | None, typer.Option(help="By when, e.g. 30s; refused if it cannot be met.")] = None,
    deadline_for: Annotated[
        str, typer.Option("--deadline-for", help="across the network, or also stored by its receiver.")
    ] = "across",
    lanes: Annotated[
        int,
        typer.Option(min=1, max=16, help="Over how many circuits at once, at most: the host needs as many interfaces."),
    ] = 1,
    connects: Annotated[
        str, typer.Option(help="Who makes the connections that are dealt to the lanes: sender or receiver.")
    ] = "sender",
    session: Annotated[
        str | None,
        typer.Option(help="How long its program takes before the first byte, e.g. 2.5s: the promise counts it."),
    ] = None,
    tail: Annotated[
        str, typer.Option(help="coded: parities follow, so that a loss at its end costs no round trip; or plain.")
    ] = "plain",
    flow_class: Annotated[options.Class, typer.Option("--class", help="Whose share of the circuit.")] = "urgent",
    name: Annotated[str | None, typer.Option("--id", help="A name for it; made up if absent.")] = None,
    dest_port: options.DestPort = 0,
    local_port: options.LocalPort = 0,
    owner: options.Owner = None,
    key: options.Key = None,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Announce bytes that are coming; the answer is a promise, or a refusal (exit 3) with the numbers.

    Exit 4: it is promised, but something that is to carry it is not able to at this moment.

    headway announce --from base20,base21 --to arch --bytes 2.7GB --deadline 30s

    headway announce image-0042.fits --deadline 30s    # on a host of the site
    """
    where = base.zone_option(zone)
    key = base.request_key(key)
    body: Any = {"class": flow_class, "bytes": _size_bytes(file, size)}
    deadline_us = base.quantity(deadline, units.duration_us, "--deadline")
    if deadline_us is not None:
        body["deadline_s"] = shown.seconds(deadline_us)
    body |= _choice("deadline_for", deadline_for, "across", "stored")
    body |= _choice("connects", connects, "sender", "receiver")
    body |= _choice("tail", tail, "plain", "coded")
    if lanes > 1:
        body["lanes"] = lanes
    session_us = base.quantity(session, units.duration_us, "--session")
    if session_us:
        body["session_s"] = shown.seconds(session_us)
    if name is not None or file is not None:
        body["id"] = name or _fit(file)
    body |= _ends(url, senders, target) | options.connections_asked(dest_port, local_port) | owners.owner_asked(owner)
    try:
        with base.repeatable(key), base.client_of(url, typed=options.typed(context)) as controller:
            promise = controller.announce(body, idempotency_key=key)
    except ApiRefusal as refused:
        refusals.refuse(refused, lambda offer: offers.announcing(body, offer, url, where), where, as_json)
    said = f"{promise['id']}: promised in {promise['promised_in_s']:.3f} s, by {promise['promised']}"
    if promise["stored_in_s"] is not None:
        said += f"; on the store {promise['store']} of {promise['to']} in {promise['stored_in_s']:.3f} s"
    if promise["lanes"]:
        shares = (f"{units.shown_size(one['bytes'])} from {one['host']}" for one in promise["lanes"])
        said += f"; over {len(promise['lanes'])} circuits at once: {', '.join(shares)}"
    elif lanes > 1:
        said += "; over one circuit: no other is there now"
    typer.echo(json.dumps(promise) if as_json else said)
    base.end_carried(promise)


@app.command()
def release(
    name: Annotated[str, typer.Argument(help="The announcement's name.", autocompletion=completion.live_announcements)],
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Release an announcement: its bytes have arrived, its share goes back to the others.

    headway release image
    """
    with base.client_of(url) as controller:
        gone = controller.release_announcement(name)
    least = "" if gone["exact"] else "at least "
    said = f"{name}: released; delivered {least}{gone['delivered_bytes']:,} of {gone['bytes']:,} bytes by now"
    typer.echo(json.dumps(gone) if as_json else said)


def _choice(field: str, said: str, usual: str, other: str) -> dict[str, str]:
    """Return a field that is one of two, if it is not the usual one."""
    if said not in {usual, other}:
        option = f"--{field.replace('_', '-')}"
        base.stop(f'{option}: "{said}" is neither {usual} nor {other}', base.EXIT_USAGE)
    return {field: said} if said == other else {}


def _size_bytes(file: Path | None, size: str | None) -> int:
    """Return how many bytes are coming: those said, or those of the file."""
    said = base.quantity(size, units.size_bytes, "--bytes")
    if said is not None:
        return said
    if file is None:
        base.stop("say how many bytes are coming: name a file, or --bytes 2.7GB", base.EXIT_USAGE)
    if not file.is_file():
        base.stop(f"{file} is not a file here; say how many bytes are coming: --bytes 2.7GB", base.EXIT_USAGE)
    return file.stat().st_size


def _fit(file: Path | None) -> str | None:
    """Return a file's name as the name of an announcement: without what such a name cannot have.

    >>> _fit(Path("/data/night 1/image#42.fits"))
    'image-42.fits'
    """
    return None if file is None else re.sub(r"[^A-Za-z0-9._-]+", "-", file.name)[:64]


def _ends(url: str, senders: str | None, target: str | None) -> dict[str, Any]:
    """Return who sends to whom; what was not said follows from the topology if there is one choice only."""
    if senders is not None and target is not None:
        return {"from": base.names_in(senders), "to": target}
    with base.client_of(url) as controller:
        network = controller.get_topology()
    site_of = {host["name"]: host["site"] for host in network["hosts"]}
    here = socket.gethostname().partition(".")[0]
    if senders is None and here not in site_of:
        choices = ", ".join(site_of)
        base.stop(f"this host, {here}, is not in {network['name']}; say --from: {choices}", base.EXIT_USAGE)
    sending = [here] if senders is None else base.names_in(senders)
    if target is None:
        sites = {site_of.get(host) for host in sending}
        beyond = [host for host, site in site_of.items() if site not in sites]
        if len(beyond) != 1:
            base.stop(f"say which host receives, --to: {', '.join(beyond) or 'none is elsewhere'}", base.EXIT_USAGE)
        target = beyond[0]
    return {"from": sending, "to": target}
