"""What the commands of ``headway pki`` do; what goes wrong is one line and an exit code."""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import typer
from rich.table import Table

from apps.cli import printed
from apps.cli.base import EXIT_FAILED, EXIT_USAGE, stop
from controller.errors import ConfigError
from controller.security import pki, pki_files
from controller.security.pki import Issued, NotAName
from controller.security.pki_files import Made, PkiError, now
from topology.certificates import CLIENT_URI, OVSDB_URI, REST_URI, Kind, client_name, switch_uri
from topology.network import Network
from topology.printable import whole

T = TypeVar("T")

# Open vSwitch looks at a certificate once its key's file has changed (openvswitch/ovs-issues, 365).
SHOW_RENEWED = "touch /etc/openvswitch/NAME.key; ovs-appctl bridge/reconnect"


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Say in one line what went wrong."""
    try:
        yield
    except (NotAName, ConfigError) as error:
        stop(str(error), EXIT_USAGE)
    except PkiError as error:
        stop(str(error), EXIT_FAILED)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", EXIT_FAILED)


def init(folder: Path, site: str, days: int, *, force: bool) -> None:
    """Make an authority."""
    if whole(site) != site:
        stop(f"--name: {site} is not UTF-8 text", EXIT_USAGE)
    with _said():
        pki_files.init(folder, site, now(), days, force=force)
    typer.echo(f"{folder}/ca.key    keep it here, to yourself: who has it can pass for every host and controller")
    typer.echo(f"{folder}/ca.pem    copy it to every controller and host")
    typer.echo(f"{folder}/crl.pem   copy it to every controller, again after each revoking")


def controller(folder: Path, names: tuple[str, ...], days: int, *, force: bool) -> None:
    """Make a certificate for a controller."""
    with _said():
        made = pki_files.make(folder, Kind.CONTROLLER, names, now(), days, force=force)
        _echo(made)
    named = f"certificate: {made.certificate.name}, key: {made.key.name}"
    typer.echo("on the controller  /etc/headway/: both, ca.pem and crl.pem; the key: owner headway-controller, 600")
    typer.echo(f"controller.yaml    tls: {{authority: ca.pem, {named}, revoked: crl.pem}}")


def known_network(config: Path | None, network: Path | None) -> Network:
    """Return the controller's network."""
    from controller.settings.network import network_at, network_in

    if config is None and network is None:
        stop(
            "say --config FILE, or --network FILE: a certificate is for a node of the controller's network", EXIT_USAGE
        )
    with _said():
        return network_in(config) if config is not None else network_at(network or Path())


def agents(
    folder: Path, hosts: tuple[str, ...], known: tuple[str, ...], days: int, *, everyone: bool, force: bool
) -> None:
    """Make certificates for agents."""
    unknown = [host for host in hosts if host not in known]
    if unknown:
        stop(f'there is no host "{unknown[0]}" with an agent in the network; there are {", ".join(known)}', EXIT_USAGE)
    if everyone is bool(hosts):
        stop("say the hosts' names, or --all, one of the two", EXIT_USAGE)
    with _said():
        if everyone:
            hosts = known if force else pki_files.without(folder, Kind.AGENT, known)
        made = _each(hosts, lambda host: pki_files.make(folder, Kind.AGENT, (host,), now(), days, force=force))
    if not hosts:
        typer.echo("every host has a certificate already")
    if made:
        typer.echo("on each host       /etc/headway/: its two files and ca.pem; the key: root:headway, mode 640")
        typer.echo("agent.yaml         tls: {authority: ca.pem, certificate: HOST.pem, key: HOST.key}")
    if len(made) < len(hosts):
        raise typer.Exit(EXIT_FAILED)


def switches(folder: Path, names: tuple[str, ...], known: Network, days: int, *, force: bool) -> None:
    """Make certificates for switches, each for its datapath id; without names for those that have none."""
    dpids = {switch.name: switch.dpid for switch in known.switches}
    unknown = [name for name in names if name not in dpids]
    if unknown:
        stop(f'there is no switch "{unknown[0]}" in the network; there are {", ".join(dpids)}', EXIT_USAGE)
    with _said():
        chosen = names or (tuple(dpids) if force else pki_files.without(folder, Kind.SWITCH, dpids))
        made = _each(
            chosen,
            lambda name: pki_files.make(folder, Kind.SWITCH, (name, switch_uri(dpids[name])), now(), days, force=force),
        )
    if not chosen:
        typer.echo("every switch has a certificate already")
    if made:
        typer.echo(
            "on each switch     /etc/openvswitch/: its two files and ca.pem of headway pki ovsdb, which says more"
        )
    if len(made) < len(chosen):
        raise typer.Exit(EXIT_FAILED)


def rest(folder: Path, names: tuple[str, ...], days: int, *, force: bool) -> None:
    """Make a certificate for the address of REST."""
    with _said():
        made = pki_files.make(folder, Kind.REST, (*names, REST_URI), now(), days, force=force)
        _echo(made)
    typer.echo(f"on the controller  listen: {{tls: {_named(made)}}}")
    typer.echo(f"who asks           trusts {folder}/ca.pem, as ~/.config/headway/ca.pem or by HEADWAY_CA")


def clients(folder: Path, names: tuple[str, ...], days: int, *, force: bool) -> None:
    """Make certificates for people and scripts that ask REST."""
    for name in names:
        if client_name(f"{CLIENT_URI}{name}") is None:
            stop(f'"{name}" is no name of a person or script, try "ana" or "ana@example.org"', EXIT_USAGE)
    with _said():
        for name in names:
            _echo(pki_files.make(folder, Kind.CLIENT, (name, f"{CLIENT_URI}{name}"), now(), days, force=force))
    typer.echo("who asks           ~/.config/headway/client.pem and client.key; or HEADWAY_CERTIFICATE=FILE.pem")
    typer.echo("on the controller  listen: {tls: {..., clients: ca.pem, revoked: crl.pem}}")


def ovsdb(folder: Path, names: tuple[str, ...], days: int, *, force: bool) -> None:
    """Make what controllers show to switches, and the authority that switches trust; all of it anew if forced."""
    own = folder / pki_files.TO_SWITCHES
    with _said():
        is_there = pki_files.authority_file(own) is not None
        left = {one.name for one in pki_files.listed(own)} - set(names) if is_there and force else set()
        if left:
            raise PkiError(f"no switch would let in {', '.join(sorted(left))} any more: say --name for each controller")
        if force or not is_there:
            pki_files.init(own, pki_files.site_of(folder), now(), pki.AUTHORITY_DAYS, force=force)
            typer.echo(f"{own}/ca.pem   copy it to every switch, as what it trusts: it lets controllers in alone")
        all_made = [pki_files.make(own, Kind.OVSDB, (name, OVSDB_URI), now(), days, force=force) for name in names]
        for made in all_made:
            _echo(made)
    for made in all_made:
        typer.echo(f"on the controller  tls: {{..., switches: {_named(made)}}}")
    typer.echo("on each switch     ovs-vsctl set-ssl SWITCH.key SWITCH.pem ca.pem -- set-manager pssl:6640")


def _named(made: Made) -> str:
    """Return files as the configuration names them."""
    return f"{{certificate: {made.certificate.name}, key: {made.key.name}}}"


def renew(folder: Path, names: tuple[str, ...], within: int, days: int) -> None:
    """Make new certificates for keys that are there; one that cannot be made keeps no other from it."""
    now_s = int(now().timestamp())

    def again(one: Issued) -> Made:
        own = folder / pki_files.TO_SWITCHES if one.kind is Kind.OVSDB else folder
        return pki_files.renew(own, one.kind, one.name, now(), days)

    with _said():
        by_worth = sorted(_all(folder), key=lambda one: (not one.revoked, one.ends_s))
        newest = {(one.kind, one.name): one for one in by_worth}  # the last one of a name stays
        chosen = [one for one in newest.values() if one.name in names]
        if not names:
            chosen = [one for one in newest.values() if not one.revoked and one.days_left(now_s) <= within]
        missing = set(names) - {one.name for one in chosen}
        if missing:
            raise PkiError(f'no certificate was made for "{min(missing)}"')
        renewed = _each(chosen, again)
    if Kind.SWITCH in {made.issued.kind for made in renewed}:
        typer.echo(f"on each switch     copy its certificate; then, there: {SHOW_RENEWED}")
    if len(renewed) < len(chosen):
        raise typer.Exit(EXIT_FAILED)
    if not chosen:
        typer.echo(f"no certificate ends within {within} days")


def revoke(folder: Path, which: str) -> None:
    """Revoke certificates; of one that controllers show to switches say what is done instead."""
    with _said():
        kinds = {one.kind for one in pki_files.named(_all(folder), which)}
        if Kind.OVSDB in kinds:
            typer.echo(
                "headway: switches read no list of revoked ones: what they let in is made anew by "
                f"{pki_files.ovsdb_anew(folder / pki_files.TO_SWITCHES)}; copy it, to every switch too",
                err=True,
            )
        if kinds == {Kind.OVSDB}:
            raise typer.Exit(EXIT_FAILED)
        for one in pki_files.revoke(folder, which, now()):
            typer.echo(f"revoked: {one.kind} {one.name}, serial {one.serial}")
    typer.echo(f"copy {folder}/crl.pem to every controller: its holder is turned out within seconds of that")


def _all(folder: Path) -> tuple[Issued, ...]:
    """Return every certificate of a folder, those that controllers show to switches too."""
    own = folder / pki_files.TO_SWITCHES
    return pki_files.listed(folder) + (pki_files.listed(own) if pki_files.authority_file(own) else ())


def show(folder: Path, *, as_json: bool) -> None:
    """Show every certificate."""
    with _said():
        found = _all(folder)
    now_s = int(now().timestamp())
    if as_json:
        typer.echo(json.dumps([_row(one, now_s) for one in found], indent=2))
        return
    table = Table(title=str(folder))
    for column in ("name", "kind", "also", "valid until", "days left", "serial"):
        table.add_column(column, justify="right" if column == "days left" else "left", overflow="fold")
    for one in found:
        left = "revoked" if one.revoked else str(one.days_left(now_s)) if one.ends_s > now_s else "expired"
        table.add_row(one.name, one.kind, ", ".join(one.names[1:]), _until(one)[:10], left, one.serial)
    printed.show(table)


def _row(one: Issued, now_s: int) -> dict[str, str | int | bool | list[str]]:
    return {
        "name": one.name,
        "names": list(one.names),
        "kind": one.kind.value,
        "serial": one.serial,
        "valid_until": _until(one),
        "days_left": one.days_left(now_s),
        "revoked": one.revoked,
    }


def _until(one: Issued) -> str:
    return datetime.fromtimestamp(one.ends_s, UTC).isoformat().replace("+00:00", "Z")


def _each(some: Iterable[T], make: Callable[[T], Made]) -> list[Made]:
    """Make one for each of some, and return them; one that cannot be made is said, and keeps no other from it."""
    all_made, failures = list[Made](), list[str]()
    for one in some:
        try:
            all_made.append(make(one))
            _echo(all_made[-1])
        except PkiError as error:
            failures.append(str(error))
    for failure in dict.fromkeys(failures):  # that of the authority is every certificate's
        typer.echo(f"headway: {failure}", err=True)
    return all_made


def _echo(made: Made) -> None:
    """Say what was made, and where."""
    typer.echo(f"{made.certificate} and {made.key.suffix}: {', '.join(made.issued.names)}, until {_until(made.issued)}")
