"""``headway agent``: the daemon on a data transfer node, whether the host is fit for it, and how it stands."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from apps.cli import options

EXIT_USAGE = 2
RUN_DIR = Path("/run/headway")

app = typer.Typer(invoke_without_command=True)
Config = Annotated[Path | None, typer.Option("--config", "-c", help="The agent's YAML file; see docs/agent.md.")]
Rate = Annotated[str, typer.Option(envvar="HEADWAY_RATE", help="Of the path, on the wire, e.g. 10Gbps.")]
Rtt = Annotated[str, typer.Option(envvar="HEADWAY_RTT", help="Round trip of the longest path, e.g. 180ms.")]
RunDir = Annotated[Path | None, typer.Option(help="The agent's run_dir, if not as in --config; usually /run/headway.")]


@app.callback()
def agent(context: typer.Context, config: Config = None) -> None:
    """Run the host agent on a data transfer node: holds the host's allocations in the kernel.

    Example: headway agent --config /etc/headway/agent.yaml
    """
    if context.invoked_subcommand is not None:
        return
    if config is None:
        typer.echo("headway: agent: say --config FILE, or see headway agent --help", err=True)
        raise typer.Exit(EXIT_USAGE)
    from apps.cli.agent_setup import settings_in
    from hostagent.agent.daemon import run

    settings = settings_in(config)
    raise typer.Exit(run(settings))


@app.command()
def check(
    context: typer.Context,
    rate: Rate,
    rtt: Annotated[str, typer.Option(envvar="HEADWAY_RTT", help="Round trip of the longest path, e.g. 180ms.")] = "",
    to: Annotated[str | None, typer.Option(help="Address of the other end; the default route if absent.")] = None,
    mtu: Annotated[int | None, typer.Option(help="Of the path, bytes; the interface's if absent.")] = None,
    connections: Annotated[int, typer.Option(min=1, help="That receive at once; each may fill its buffer.")] = 4,
    config: Config = None,
    store: Annotated[
        Path | None, typer.Option(help="Measure instead what this folder's disk takes at the rate: writes a file.")
    ] = None,
    most: Annotated[str, typer.Option("--bytes", help="With --store: so much is written at the most.")] = "4GB",
    as_json: options.AsJson = False,
    sysctl: Annotated[bool, typer.Option("--sysctl", help="Print only a file for /etc/sysctl.d.")] = False,
) -> None:
    """Say whether this host can carry a rate over a round trip: what that takes, what there is, and what cures it.

    Exit code 1 if something must be cured. Example: headway agent check --rate 10Gbps --rtt 180ms

    What a store takes at once and for good is measured by: headway agent check --store /data --rate 10Gbps
    """
    from apps.cli import agent_setup, agent_tables

    if sysctl and (as_json or store is not None):
        raise agent_setup.failed("--sysctl prints a file of settings, and nothing else", EXIT_USAGE)
    if store is not None:
        from apps.cli import agent_store

        raise typer.Exit(agent_store.check_store(store, rate, most, as_json=as_json))
    if not rtt:
        raise agent_setup.failed("--rtt: say the round trip of the longest path, e.g. 180ms", EXIT_USAGE)
    config = options.nearest(context, "config")
    survey, wanted = agent_setup.surveyed(rate, rtt, to, mtu, connections, config)
    raise typer.Exit(agent_tables.show_check(survey, wanted, as_json=as_json, sysctl=sysctl))


@app.command()
def status(
    context: typer.Context,
    config: Config = None,
    run_dir: RunDir = None,
    namespace: Annotated[str | None, typer.Option(help="Id of another network namespace whose agent to ask.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again each second, until Ctrl-C.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what the agent of this host holds: rate against plan, connections, round trip, loss, lease.

    Exit code 0 while the plan is held; 1 if no agent runs, there is no plan, its lease is over, or loss has made an
    allocation fall back. Example: headway agent status --watch
    """
    from apps.cli import agent_setup, agent_tables

    config = options.nearest(context, "config")
    folder = run_dir or (agent_setup.settings_in(config).run_dir if config else RUN_DIR)
    raise typer.Exit(agent_tables.show_status(agent_setup.asker(folder, namespace), watch=watch, as_json=as_json))


@app.command()
def units(
    rate: Rate,
    rtt: Rtt,
    root: Annotated[Path | None, typer.Option(help="Write the files below this folder, / for this machine.")] = None,
) -> None:
    """Print the files with which systemd runs the agent, with the right path of this command; or write them.

    Example: headway agent units --rate 10Gbps --rtt 180ms --root /
    """
    from apps.cli.agent_setup import write_units

    command = Path(sys.argv[0]).absolute()
    write_units(str(command) if command.name == "headway-agent" else f"{command} agent", rate, rtt, root)
