"""``headway reserve``: asks for bandwidth, holds it, commits it."""

import contextlib
import time
from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apps.cli import base, identity, offers, options, owners, refusals, shown, tables
from headway.errors import ApiError, ApiRefusal
from topology import units

if TYPE_CHECKING:
    from headway.promises import ReservationIn, ReservationOut

app = typer.Typer()
SETTLES_S = 3.0  # what begins now is in the switches within a second; a provider takes minutes


@app.command()
def reserve(
    context: typer.Context,
    a_end: options.Sender,
    z_end: options.Receiver,
    rate: Annotated[str, typer.Option(help="On the wire, e.g. 10Gbps.")],
    start: Annotated[str | None, typer.Option(help="22:00, tomorrow 06:30, 2026-11-22 22:00, RFC 3339, now.")] = None,
    duration: Annotated[str | None, typer.Option("--for", help="How long, e.g. 10h, 90min; this or --until.")] = None,
    until: Annotated[str | None, typer.Option(help="The end, written as --start is.")] = None,
    flow_class: Annotated[options.Class, typer.Option("--class", help="Whose share of the circuit.")] = "urgent",
    backup: Annotated[bool, typer.Option("--backup", help="Keep a second path that shares no circuit.")] = False,
    include: options.Include = None,
    exclude: options.Exclude = None,
    max_rtt: options.MaxRtt = None,
    dest_port: options.DestPort = 0,
    local_port: options.LocalPort = 0,
    description: Annotated[str, typer.Option(help="Your own words.")] = "",
    hold_only: Annotated[bool, typer.Option("--hold-only", help="Hold it for a minute; commit it later.")] = False,
    owner: options.Owner = None,
    key: options.Key = None,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Reserve bandwidth: held, then committed; or refused (exit 3) with the nearest offers.

    Exit 4: it is promised and begins now, but something that is to carry it is not able to at this moment.

    headway reserve --rate 10Gbps --from la-serena --to champaign --start 22:00 --for 10h --class urgent

    headway reserve --rate 500Mbps --from base20 --to arch --for 90min --exclude chile-illinois --max-rtt 200ms
    """
    where, key = base.zone_option(zone), base.request_key(key)
    body: Any = {"from": a_end, "to": z_end, "class": flow_class, "description": description}
    body |= {"rate_bps": base.quantity(rate, units.rate_bps, "--rate")} | _when(start, duration, until, where)
    body["constraints"] = {"include": include or [], "exclude": exclude or [], "backup": backup}
    body["constraints"] |= base.rtt_bound(max_rtt)
    body |= options.connections_asked(dest_port, local_port) | owners.owner_asked(owner)
    flags = [*(["--hold-only"] if hold_only else []), *(["--zone", zone] if zone else []), *offers.url_arguments(url)]
    try:
        reserved = _reserved(url, body, key, hold_only, options.typed(context))
    except ApiRefusal as refused:
        refusals.refuse(refused, lambda offer: [*offers.reserving(body, offer, where), *flags], where, as_json)
    tables.show_reservation(reserved, where, as_json)
    _check(reserved)
    base.end_carried(reserved)


def _check(reserved: "ReservationOut") -> None:
    """End with 1 if nothing is reserved: the key was used before for what has ended, or a provider has said no."""
    if reserved["state"] in {"failed", "expired", "released"}:
        why = f"{reserved['id']} is {reserved['state']}: {reserved['reason'] or 'by its owner'}"
        base.stop(f"{why}; to reserve anew, use another --key or none", base.EXIT_FAILED)


def _when(start: str | None, duration: str | None, until: str | None, where: tzinfo) -> dict[str, Any]:
    """Return the time asked for, as the API takes it."""
    if (duration is None) == (until is None):
        base.stop('say how long, either --for 10h or --until "tomorrow 06:30"', base.EXIT_USAGE)
    asked: dict[str, Any] = {} if start in {None, "now"} else {"start": base.instant(start, where, "--start")}
    if duration is not None:
        return asked | {"duration_s": shown.seconds(base.quantity(duration, units.duration_us, "--for") or 0)}
    return asked | {"end": base.instant(until, where, "--until", asked.get("start"))}


def _reserved(url: str, body: "ReservationIn", key: str, hold_only: bool, typed: list[str]) -> "ReservationOut":
    """Return the reservation, held and committed. The key makes a repetition harmless if an answer is lost."""
    with base.waiting("asking the controller"), base.repeatable(key), base.client_of(url, typed=typed) as controller:
        known = controller.hold_reservation(body, idempotency_key=key)
        if not hold_only and known["state"] == "held":
            known = controller.commit_reservation(known["id"])
    with base.waiting("waiting for switches and hosts"), base.client_of(url) as controller:
        until_s = time.monotonic() + SETTLES_S
        with contextlib.suppress(ApiError, *identity.NOTHING_TO_SHOW):  # it is promised, and that is to be said
            while known["state"] == "provisioning" and time.monotonic() < until_s:
                time.sleep(0.25)
                known = controller.get_reservation(known["id"])
    return known
