"""Whether a controller could start now: its addresses are free and its database can be used. Nothing is changed."""

import contextlib
import errno
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from apps.configuration import ControllerSettings
from controller.database import Database, DatabaseError
from controller.database.backends import backend, connected
from controller.database.errors import DatabaseBusy, UrlNotUsable
from controller.database.live import all_rows
from controller.database.schema import check_known, known_schemas
from controller.database.settings import PairedPart
from controller.database.snapshot import snapshot
from controller.errors import ConfigError
from controller.restored import RestartView, at_a_restart
from controller.security.listening import answers, listening_at
from controller.settings.file import part_of
from controller.settings.listen import ListenAddress, ListenPart, UnixSocket, address_or_socket, split_transport
from topology.problems import Problems

END_OR_MOVE = "end who listens there, or take another"
_CURES: dict[int | None, str] = {errno.EADDRINUSE: END_OR_MOVE, errno.EACCES: "take another port"}
MADE_AT_START = Path("/run/headway-controller")  # by the unit, RuntimeDirectory=; it goes when the controller ends


def hindrances(settings: ControllerSettings) -> tuple[str, ...]:
    """Return what would keep a controller with these settings from starting, each with its path in the file."""
    addresses = {
        "openflow": settings.openflow,
        "rest": settings.rest,
        "agents": settings.agents,
        "rest_socket": settings.rest_socket,
    }
    return (*_of_addresses(addresses), *_of_the_database(settings.database.url, is_of_pair=settings.pair is not None))


def hindrances_beside(path: Path) -> tuple[str, ...]:
    """Return what would keep a controller from its addresses and its database, of a file that is wrong elsewhere."""
    found: list[str] = []
    with contextlib.suppress(ConfigError):  # that has been said
        listen = part_of(path, ListenPart)[0].listen
        written = {"openflow": listen.openflow, "rest": listen.rest, "agents": listen.agents}
        addresses = {name: address_or_socket(split_transport(text)[1], Problems()) for name, text in written.items()}
        addresses["rest_socket"] = UnixSocket(listen.rest_socket) if listen.rest_socket else None
        found += _of_addresses(addresses)
    with contextlib.suppress(ConfigError, UrlNotUsable):  # likewise
        part = part_of(path, PairedPart)[0]
        found += _of_the_database(part.store.url, is_of_pair=part.pair is not None)
    return tuple(found)


def promises_kept(settings: ControllerSettings) -> RestartView:
    """Return what would become of the promises in the database if a controller with these settings started now.

    A controller may be using it. Of one that cannot be read, or is yet to be brought up to date, nothing is known.
    """
    with contextlib.suppress(DatabaseError), snapshot(settings.database.url) as seen:
        if seen.schema == known_schemas()[0]:
            return at_a_restart(settings.site, all_rows(seen.connection), time.time_ns() // 1000)
    return RestartView(0, ())


def _of_addresses(addresses: Mapping[str, ListenAddress | UnixSocket | None]) -> list[str]:
    said = [(name, address) for name, address in addresses.items() if address is not None]
    return [f"listen.{name}: {why}" for name, address in said for why in _not_free(address)]


def _of_the_database(url: str, *, is_of_pair: bool) -> list[str]:
    return [f"store: {why}" for why in _not_usable(url, is_of_pair=is_of_pair)]


def _not_free(address: ListenAddress | UnixSocket) -> Iterator[str]:
    """Yield why nobody could listen at an address."""
    if isinstance(address, UnixSocket):
        path, folder = Path(address.path), Path(address.path).parent
        if not folder.is_dir():
            if folder != MADE_AT_START:
                yield f"{address}: there is no folder {folder}: make it first"
        elif not os.access(folder, os.W_OK | os.X_OK):
            yield f"{address}: the folder {folder} cannot be written"
        elif path.exists() and (answers(path) or not path.is_socket()):
            yield f"{address}: {os.strerror(errno.EADDRINUSE)}: {END_OR_MOVE}"
        return
    try:
        listening_at(address.bare_host, address.port, 1).close()
    except OSError as error:
        yield f"{address}: {error.strerror or error}: {_CURES.get(error.errno, 'take an address of this machine')}"


def _not_usable(url: str, *, is_of_pair: bool) -> Iterator[str]:
    """Yield why a database could not be used; one of a pair may start while the other one has it."""
    database = Database(url)
    try:
        database.try_out()
    except DatabaseError as error:
        if not (is_of_pair and isinstance(error, DatabaseBusy)):
            yield str(error)
            return
    finally:
        database.close()
    yield from _not_ours(url)


def _not_ours(url: str) -> Iterator[str]:
    """Yield why a start would not go on with what is in a database; it makes a file that is not there yet."""
    source = backend(url)
    try:
        with connected(source, source.snapshot) as connection, connection.begin():
            check_known(connection, source.shown)
    except DatabaseError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            yield str(error)
