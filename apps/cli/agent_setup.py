"""What the commands of ``headway agent`` are given, read into values; what is wrong with it is one line."""

from collections.abc import Callable
from pathlib import Path

import typer

from hostagent.agent import status_socket
from hostagent.agent.status import AgentStatus
from hostagent.doctor.buffers import Wanted
from hostagent.doctor.survey import Survey, survey
from hostagent.errors import AgentConfigError
from hostagent.kernel.leftovers import Namespace
from hostagent.settings import AgentSettings, loaded
from hostagent.systemd import units
from topology.units import duration_us, rate_bps
from topology.wire import Framing

EXIT_FAILED, EXIT_USAGE = 1, 2
USUAL_MTU_BYTES = 1500
RUN_DIR = Path("/run/headway")


def failed(message: str, code: int) -> typer.Exit:
    """Say what is wrong on standard error; return the exit to raise."""
    for line in message.splitlines():
        typer.echo(f"headway: {line}", err=True)
    return typer.Exit(code)


def settings_in(config: Path) -> AgentSettings:
    """Return the agent's configuration."""
    try:
        return loaded(config)
    except AgentConfigError as error:
        raise failed("\n".join(f"{config}: {problem}" for problem in error.problems), EXIT_USAGE) from error


def amount(text: str, parse: Callable[[str], int], option: str) -> int:
    """Return a quantity from the command line; it must be more than nothing."""
    try:
        amount = parse(text)
    except ValueError as error:
        raise failed(f"{option}: {error}", EXIT_USAGE) from error
    if not amount:
        raise failed(f"{option}: must be more than 0", EXIT_USAGE)
    return amount


def surveyed(
    rate: str, rtt: str, to: str | None, mtu: int | None, connections: int, config: Path | None
) -> tuple[Survey, Wanted]:
    """Return what the host is like, and what it is to carry."""
    wanted_bps, rtt_us = amount(rate, rate_bps, "--rate"), amount(rtt, duration_us, "--rtt")
    settings = settings_in(config) if config else None
    try:
        found = survey(settings.cgroup if settings else None, settings.run_dir if settings else RUN_DIR, to)
        framing = Framing(mtu or (found.interface.mtu_bytes if found.interface else USUAL_MTU_BYTES))
    except ValueError as error:
        raise failed(str(error), EXIT_USAGE) from error
    return found, Wanted(wanted_bps, rtt_us, framing, connections)


def asker(run_dir: Path, namespace: str | None) -> Callable[[], AgentStatus]:
    """Return what asks the agent of a network namespace, of this one if none is named, how it stands."""
    try:
        path = status_socket.socket_path(run_dir, namespace or Namespace.of_this_process().id)
    except OSError as error:  # before Linux 5.14
        raise failed(f"no agent runs on this kernel: {error.strerror}; headway agent check", EXIT_FAILED) from error

    def ask() -> AgentStatus:
        try:
            return status_socket.asked_status(path)
        except PermissionError as error:
            raise failed(f"{path}: only its group may ask; try sudo", EXIT_FAILED) from error
        except OSError as error:
            others = sorted(p.stem.removeprefix("status-") for p in run_dir.glob("status-*.sock") if p != path)
            hint = f"; asked for another one: --namespace {' or '.join(others)}" if others else ""
            hint = hint or "; is it running? systemctl status headway-agent"
            raise failed(f"no agent answers at {path}: {error.strerror or error}{hint}", EXIT_FAILED) from error
        except ValueError as error:
            raise failed(f"{path}: the agent is of another version: restart it", EXIT_FAILED) from error

    return ask


def write_units(agent: str, rate: str, rtt: str, root: Path | None) -> None:
    """Write systemd's files below a folder, or print them."""
    amount(rate, rate_bps, "--rate")
    amount(rtt, duration_us, "--rtt")
    for path, text in units.files(agent, rate, rtt).items():
        if root is None:
            typer.echo(f"# /{path}\n{text}")
            continue
        there = root / path
        try:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(text)
        except OSError as error:
            raise failed(f"{there}: {error.strerror}", EXIT_FAILED) from error
        typer.echo(there)
