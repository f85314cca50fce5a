"""``headway network``: a network's file looked at before it is used; no controller is asked."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apps.cli import base, options
from topology.addresses import host_and_port

if TYPE_CHECKING:
    from controller.security.tls import ServerTls
    from topology.network import Network
    from topology.protocol import Hello

_CONTROLLER = re.compile(r"(tcp|ssl):(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}", re.ASCII)
_LISTENING = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}", re.ASCII)

app = typer.Typer(
    no_args_is_help=True,
    help="""Look at a network's file before it is used: draw it, print what its bridges need. See docs/network.md.""",
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="The network's file, or the controller's YAML that has it.")]


@app.command()
def show(
    file: File,
    svg: Annotated[Path | None, typer.Option(metavar="OUT", help="Draw it into this file, for a browser.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Draw a network: its sites, what is at each, and what joins them. What is wrong with the file is said, all of it.

    headway network show network.yaml --svg network.svg
    """
    network = _network(file)
    if svg is not None:
        from apps.cli.network_svg import drawn

        try:
            svg.write_text(drawn(network), encoding="utf-8")
        except OSError as error:
            base.stop(f"{svg}: {error.strerror}", base.EXIT_FAILED)
        typer.echo(f"{svg}: {network.name}")
    elif as_json:
        from topology.network_text import section_of

        typer.echo(json.dumps(section_of(network)))
    else:
        from apps.cli.network_text import tree

        for line in tree(network):
            typer.echo(line)


@app.command()
def ovs(
    file: File,
    controller: Annotated[
        list[str],
        typer.Option(metavar="TARGET", help="As in tcp:192.0.2.1:6653, or ssl:...; of a pair, once for each."),
    ],
    switch: Annotated[str | None, typer.Option(metavar="NAME", help="Of this switch alone.")] = None,
) -> None:
    """Print what to type where each switch is: its bridge, its ports, its controller. Nothing is run.

    What is there already stays, so that the lines can be run once more.

    headway network ovs network.yaml --controller tcp:192.0.2.1:6653
    """
    for wrong in (each for each in controller if not (_CONTROLLER.fullmatch(each) and host_and_port(each))):
        base.stop(f'--controller: "{wrong}" is not a target, try "tcp:192.0.2.1:6653"', base.EXIT_USAGE)
    for again in (each for i, each in enumerate(controller) if each.lower() in map(str.lower, controller[:i])):
        base.stop(f'--controller: "{again}" is there already; of a pair, say each once', base.EXIT_USAGE)
    network = _network(file)
    names = [each.name for each in network.switches]
    if switch is not None and switch not in names:
        base.stop(f'--switch: there is no switch "{switch}"; there are {", ".join(names)}', base.EXIT_USAGE)
    from apps.cli.network_text import bridge_lines

    shown = [each for each in network.switches if switch in {None, each.name}]
    for number, each in enumerate(shown):
        for line in ("",) * bool(number) + bridge_lines(network, each, controller):
            typer.echo(line)


@app.command()
def draft(
    databases: Annotated[
        list[str],
        typer.Argument(metavar="OVSDB...", help="Switches' databases: tcp:192.0.2.11:6640, ssl:... or unix:..."),
    ],
    bridge: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of this bridge alone; again for another.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it here; a file is not replaced.")] = None,
    shown: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="PEM", help="For ssl:, what switches are shown; its key too."),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option("--authority", metavar="PEM", help="Who signs the switches' and agents' certificates."),
    ] = None,
    agents: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Listen where agents dial the controller, which is not there yet."),
    ] = None,
    wait: Annotated[str, typer.Option(help="How long agents are waited for; Ctrl-C goes on at once.")] = "15s",
    agents_shown: Annotated[
        Path | None,
        typer.Option("--agents-certificate", metavar="PEM", help="What agents are shown, if by TLS; its key too."),
    ] = None,
) -> None:
    """Begin a network's file: ask the switches' databases what there is, and hear which agents call.

    Nothing is changed anywhere. What nobody says (delays; addresses of hosts without an agent) is TODO in it; what was
    guessed is said beside it.

    headway network draft tcp:192.0.2.11:6640 tcp:192.0.2.12:6640 --out network.yaml

    headway network draft tcp:192.0.2.11:6640 --agents 0.0.0.0:50051 --wait 30s

    headway network draft ssl:192.0.2.11:6640 --certificate ctl.pem --authority ca.pem
    """
    from apps.cli.network_asked import NotAsked, bridges
    from apps.cli.network_draft import TODO, drafted
    from controller.southbound.ovsdb.settings import is_server

    wrong = [each for each in databases if not is_server(each)]
    if wrong:
        base.stop(f'"{wrong[0]}" is not a database, try "tcp:192.0.2.11:6640"', base.EXIT_USAGE)
    if agents is not None and not (_LISTENING.fullmatch(agents) and host_and_port(agents)):
        base.stop(f'--agents: "{agents}" is not where to listen, try "0.0.0.0:50051"', base.EXIT_USAGE)
    for_agents_alone = authority is None or agents_shown is not None
    tls = _tls(shown, authority, is_needed=not for_agents_alone or any(each.startswith("ssl:") for each in databases))
    try:
        found = [each for one in databases for each in bridges(one, tls if one.startswith("ssl:") else None)]
    except NotAsked as error:
        base.stop(str(error), base.EXIT_FAILED)
    missing = sorted({*(bridge or ())} - {each.name for each in found})
    if missing or not found:
        names = ", ".join(each.name for each in found) or "none"
        base.stop(f'there is no bridge "{missing[0]}"; there are: {names}' if missing else "no bridge there", 1)
    hellos = _called(agents, wait, agents_shown, authority) if agents is not None else ()
    text = drafted([each for each in found if not bridge or each.name in bridge], hellos)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        base.stop(f"{out}: {error.strerror}", base.EXIT_FAILED)
    typer.echo(f"{out}: {text.count(TODO) - 1} places to complete, each {TODO}")


def _called(address: str, wait: str, shown: Path | None, authority: Path | None) -> "tuple[Hello, ...]":
    """Return what agents say that call while they are waited for, each of which is said as it comes."""
    import structlog

    from apps.cli.network_called import agents_calling
    from topology import units

    wait_us = base.quantity(wait, units.duration_us, "--wait") or 0
    tls = None
    if shown is not None:
        if authority is None:
            base.stop("--agents-certificate needs --authority ca.pem, who signs the agents'", base.EXIT_USAGE)
        tls = _files(shown, authority)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())  # what a controller would log; we say it below
    typer.echo(f"waiting {wait} for agents at {address}; Ctrl-C goes on", err=True)
    try:
        hellos = agents_calling(
            address, tls, wait_us / 1e6, lambda hello: typer.echo(f"{hello.host} has called", err=True)
        )
    except OSError as error:
        base.stop(str(error), base.EXIT_FAILED)
    typer.echo(f"{len(hellos)} {'agent has' if len(hellos) == 1 else 'agents have'} called", err=True)
    return hellos


def _tls(shown: Path | None, authority: Path | None, *, is_needed: bool) -> "ServerTls | None":
    """Return the files by which databases are asked by TLS; the key stands beside the certificate, as NAME.key."""
    if shown is not None and authority is not None:
        return _files(shown, authority)
    if is_needed or shown is not None:
        base.stop(
            "ssl: needs --certificate NAME.pem, made by headway pki ovsdb, and --authority ca.pem", base.EXIT_USAGE
        )
    return None


def _files(shown: Path, authority: Path) -> "ServerTls":
    """Return the files of TLS: a certificate with its key beside it, and who signs the other ends'."""
    from controller.security.tls import ServerTls

    return ServerTls(str(shown.with_suffix(".key")), str(shown), str(authority))


def _network(file: Path) -> "Network":
    """Return the network in a file, its own or the controller's."""
    from controller.errors import ConfigError
    from controller.settings.network import network_at_or_in

    try:
        return network_at_or_in(file)
    except ConfigError as error:
        base.stop(str(error), base.EXIT_USAGE)
