"""The command that takes an offer, exactly as it is typed."""

import os
import shlex
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from apps.cli import options, shown
from topology import units

if TYPE_CHECKING:
    from headway.promises import OfferOut, ReservationOut


def typed(arguments: list[str]) -> str:
    """Return a command as it is typed."""
    return shlex.join(["headway", *arguments])


def url_arguments(url: str) -> list[str]:
    """Return the arguments that name the controller, if the environment does not."""
    return [] if url == os.environ.get("HEADWAY_URL", options.DEFAULT_URL) else ["--url", url]


def reserving(body: dict[str, Any], offer: "OfferOut", where: tzinfo) -> list[str]:
    """Return the arguments that take an offer. Where its time is the one that was asked, it is asked again."""
    arguments = ["reserve", "--rate", shown.written_rate(offer["rate_bps"])]
    arguments += ["--from", body["from"], "--to", body["to"], "--class", offer["class"]]
    if offer["kind"] == "earliest-start":
        arguments += ["--start", shown.exact(offer["start"], where), "--until", shown.exact(offer["end"], where)]
    else:
        arguments += ["--start", shown.exact(body["start"], where)] if "start" in body else []
        if "end" in body:
            arguments += ["--until", shown.exact(body["end"], where)]
        else:
            arguments += ["--for", shown.written_duration(round(body["duration_s"] * 1e6))]
    arguments += _path(body["constraints"]) + _ports(body) + _owner(body)
    return arguments + (["--description", body["description"]] if body["description"] else [])


def _path(constraints: dict[str, Any]) -> list[str]:
    """Return the arguments that say what the path must satisfy."""
    rtt_ms = constraints.get("max_rtt_ms")
    arguments = ["--backup"] if constraints["backup"] else []
    arguments += [] if rtt_ms is None else ["--max-rtt", f"{round(rtt_ms * 1000)}us"]
    for option in ("include", "exclude"):
        arguments += [word for part in constraints[option] for word in (f"--{option}", part)]
    return arguments


def _ports(body: dict[str, Any]) -> list[str]:
    """Return the arguments that say which connections are meant."""
    said = body.get("connections", {})
    options_of = (("--dest-port", "dest_port"), ("--local-port", "local_port"))
    return [word for option, field in options_of if said.get(field) for word in (option, str(said[field]))]


def _owner(body: dict[str, Any]) -> list[str]:
    """Return the arguments that say whose it will be."""
    return ["--owner", body["owner"]] if body.get("owner") else []


def changing(known: "ReservationOut", body: dict[str, Any], offer: "OfferOut", where: tzinfo) -> list[str]:
    """Return the arguments that take an offer: what is different in it from what is reserved."""
    arguments = ["change", known["id"]]
    if offer["rate_bps"] != known["rate_bps"]:
        arguments += ["--rate", shown.written_rate(offer["rate_bps"])]
    for field in ("start", "end"):
        if units.instant_us(offer[field]) != units.instant_us(known[field]):
            arguments += [f"--{field}", shown.exact(offer[field], where)]
    if offer["class"] != known["class"]:
        arguments += ["--class", offer["class"]]
    arguments += ["--any-path", *_path(body["constraints"])] if "constraints" in body else []
    return arguments + _owner(body) + (["--description", body["description"]] if "description" in body else [])


def announcing(body: dict[str, Any], offer: "OfferOut", url: str, where: tzinfo) -> list[str] | str:
    """Return the arguments that take an offer, or in words how to."""
    if offer["kind"] == "highest-rate":
        return "announce fewer bytes: no more than this rate moves in that time"
    deadline_us = round(body.get("deadline_s", 0) * 1e6)
    if offer["kind"] == "later-deadline":  # rounded up to a millisecond
        deadline_us = -(-(units.instant_us(offer["end"]) - units.instant_us(offer["start"])) // 1000) * 1000
    arguments = ["announce", "--from", ",".join(body["from"]), "--to", body["to"], "--bytes", str(body["bytes"])]
    arguments += ["--class", offer["class"]]
    arguments += ["--deadline", shown.written_duration(deadline_us)] if deadline_us else []
    arguments += ["--deadline-for", body["deadline_for"]] if "deadline_for" in body else []
    arguments += ["--lanes", str(body["lanes"])] if "lanes" in body else []
    arguments += ["--connects", body["connects"]] if "connects" in body else []
    arguments += ["--session", shown.written_duration(round(body["session_s"] * 1e6))] if "session_s" in body else []
    arguments += ["--tail", body["tail"]] if "tail" in body else []
    arguments += _ports(body) + (["--id", body["id"]] if "id" in body else []) + _owner(body) + url_arguments(url)
    if offer["kind"] == "earliest-start":
        return f"announce it then, at {shown.short(offer['start'], where)}: {typed(arguments)}"
    return arguments
