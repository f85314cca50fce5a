"""What the commands of ``headway webhook`` do; what goes wrong is one line and an exit code."""

import json
import os
import time
from pathlib import Path

import typer

from apps.cli.base import EXIT_FAILED, EXIT_USAGE, stop
from controller.errors import ConfigError
from controller.northbound.webhooks import PATIENCE_S, host_of, why_not_taken
from controller.settings.file import part_of
from controller.settings.sections import Section
from controller.settings.webhooks import WebhookSection, WebhookSettings, new_secret, webhooks
from topology.units import shown_time


class _Part(Section):
    """All that is looked at of a configuration."""

    webhooks: tuple[WebhookSection, ...] = ()


def make_secret(file: Path) -> None:
    """Write a new secret into a new file."""
    try:
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(made, "w") as out:
                if os.geteuid() == 0:  # the controller, which reads it, is the folder's owner
                    folder = file.parent.stat()
                    os.fchown(out.fileno(), folder.st_uid, folder.st_gid)
                out.write(f"{new_secret()}\n")
        except OSError:
            file.unlink()  # the next call would not write over it
            raise
    except OSError as error:
        stop(f"{file}: {error.strerror}", EXIT_FAILED)
    typer.echo(f"{file}: a new secret; the receiver needs it too, and nobody else")


def try_out(config: Path, *, as_json: bool) -> None:
    """Tell each webhook of a configuration something that means nothing, and print the answers."""
    known = _webhooks(config)
    if not known:
        stop(f"{config}: there are no webhooks in it", EXIT_USAGE)
    answers = [(one, _answer(one)) for one in known]
    if as_json:
        typer.echo(json.dumps([{"where": host_of(one.url), "taken": not why, "why": why} for one, why in answers]))
    else:
        for one, why in answers:
            typer.echo(f"{host_of(one.url)}: {why or 'taken'}")
    if any(why for _, why in answers):
        raise typer.Exit(EXIT_FAILED)


def _webhooks(config: Path) -> tuple[WebhookSettings, ...]:
    """Return the webhooks of a configuration, of which nothing else need be right."""
    try:
        part, problems = part_of(config, _Part)
    except ConfigError as error:
        stop(str(error), EXIT_USAGE)
    found = webhooks(part.webhooks, config.absolute().parent, problems.at("webhooks"))
    if problems.found:
        stop(str(ConfigError(str(config), tuple(problems.found))), EXIT_USAGE)
    return found


def _answer(one: WebhookSettings) -> str:
    now_us = time.time_ns() // 1000
    said = {"type": "webhook.test", "timestamp": shown_time(now_us), "data": {}}
    return why_not_taken(one, f"headway-test-{now_us}", said, now_us // 1_000_000, PATIENCE_S)
