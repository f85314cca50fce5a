"""``headway pki``: the site's certificate authority, in a folder."""

from pathlib import Path
from typing import Annotated

import typer

from apps.cli import completion, options

AUTHORITY_DAYS, CERTIFICATE_DAYS, SOON_DAYS = 3650, 730, 30  # as in controller.security.pki, which takes long to import

app = typer.Typer(
    no_args_is_help=True,
    help="""Make the certificates by which agents, switches, controllers and who asks them know each other.

    In a folder that only you can read: headway pki init DIR --name "my site", then a certificate for each controller
    and for each host, which you copy there with ca.pem. See docs/pki.md.""",
)
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The authority's folder; keep it to yourself.")]
Days = Annotated[int, typer.Option(min=1, max=36_500, help="How long it is good for.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a key that is there.")]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="The controller's YAML file; has the hosts.")]
Network = Annotated[Path | None, typer.Option(metavar="FILE", help="The network's file, if there is no --config.")]
Hosts = Annotated[
    list[str] | None, typer.Argument(metavar="HOST...", help="Hosts of the network.", autocompletion=completion.hosts)
]


@app.command()
def init(
    folder: Folder,
    name: Annotated[str, typer.Option(help="Your site's name, for people.")],
    days: Days = AUTHORITY_DAYS,
    force: Force = False,
) -> None:
    """Make an authority, and its list of revoked certificates, empty as yet.

    Example: headway pki init pki --name "La Serena"
    """
    from apps.cli import pki_work

    pki_work.init(folder, name, days, force=force)


@app.command()
def controller(
    folder: Folder,
    name: Annotated[list[str], typer.Option(help="Name or address that agents dial; repeat it for more.")],
    days: Days = CERTIFICATE_DAYS,
    force: Force = False,
) -> None:
    """Make a key and a certificate for a controller, for all names and addresses under which agents dial it.

    Example: headway pki controller pki --name ctl.example.org --name 192.0.2.1
    """
    from apps.cli import pki_work

    pki_work.controller(folder, tuple(name), days, force=force)


@app.command()
def agent(
    folder: Folder,
    hosts: Hosts = None,
    config: Config = None,
    network: Network = None,
    everyone: Annotated[bool, typer.Option("--all", help="For every host with an agent that has none yet.")] = False,
    days: Days = CERTIFICATE_DAYS,
    force: Force = False,
) -> None:
    """Make keys and certificates for the agents of hosts, which must be in the controller's network.

    Example: headway pki agent pki base20 base21 --network network.yaml
    """
    from apps.cli import pki_work

    known = pki_work.known_network(config, network).agents
    pki_work.agents(folder, tuple(hosts or ()), known, days, everyone=everyone, force=force)


@app.command()
def switch(
    folder: Folder,
    names: Annotated[list[str] | None, typer.Argument(metavar="SWITCH...", help="Of the network; none: all.")] = None,
    config: Config = None,
    network: Network = None,
    days: Days = CERTIFICATE_DAYS,
    force: Force = False,
) -> None:
    """Make keys and certificates for switches; each is good for the switch's own datapath id alone.

    Example: headway pki switch pki --network network.yaml
    """
    from apps.cli import pki_work

    pki_work.switches(folder, tuple(names or ()), pki_work.known_network(config, network), days, force=force)


@app.command()
def rest(
    folder: Folder,
    name: Annotated[list[str], typer.Option(help="Name or address that REST is asked by; repeat it for more.")],
    days: Days = CERTIFICATE_DAYS,
    force: Force = False,
) -> None:
    """Make a key and a certificate for REST's port, for all names and addresses under which it is asked.

    Example: headway pki rest pki --name ctl.example.org --name 192.0.2.1
    """
    from apps.cli import pki_work

    pki_work.rest(folder, tuple(name), days, force=force)


@app.command()
def client(
    folder: Folder,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Of people and scripts.")],
    days: Days = CERTIFICATE_DAYS,
    force: Force = False,
) -> None:
    """Make keys and certificates for people and scripts, who show them to REST in place of a token.

    Example: headway pki client pki ana@example.org
    """
    from apps.cli import pki_work

    pki_work.clients(folder, tuple(names), days, force=force)


@app.command()
def ovsdb(
    folder: Folder,
    name: Annotated[list[str], typer.Option(help="The controller's name; of a pair, once for each.")],
    days: Days = CERTIFICATE_DAYS,
    force: Annotated[
        bool, typer.Option("--force", help="Replace authority and key: every switch needs ca.pem.")
    ] = False,
) -> None:
    """Make what the controller shows to switches, and an authority of its own for it, which is all that they trust.

    Example: headway pki ovsdb pki --name ctl.example.org
    """
    from apps.cli import pki_work

    pki_work.ovsdb(folder, tuple(name), days, force=force)


@app.command()
def renew(
    folder: Folder,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Of hosts or controllers.")] = None,
    within: Annotated[int, typer.Option(min=0, help="Without names: all that end within so many days.")] = SOON_DAYS,
    days: Days = CERTIFICATE_DAYS,
) -> None:
    """Make new certificates for keys that are there; only the certificate is to be copied, nothing to be restarted.

    Example: headway pki renew pki --within 60
    """
    from apps.cli import pki_work

    pki_work.renew(folder, tuple(names or ()), within, days)


@app.command()
def revoke(
    folder: Folder,
    which: Annotated[str, typer.Argument(metavar="NAME|SERIAL", help="All of this name, or one by its serial.")],
) -> None:
    """Take a certificate's worth away: its holder is turned out as soon as crl.pem has been copied to the controller.

    Example: headway pki revoke pki base20
    """
    from apps.cli import pki_work

    pki_work.revoke(folder, which)


@app.command(name="list")
def listing(folder: Folder, as_json: options.AsJson = False) -> None:
    """Show every certificate that was made: for whom, its serial, how long it is good, whether it is revoked.

    Example: headway pki list pki
    """
    from apps.cli import pki_work

    pki_work.show(folder, as_json=as_json)
