"""Whether a controller could start now: its addresses are free and its database can be used. Nothing is changed."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from apps.configuration import ControllerSettings
from controller.errors import ConfigError
from controller.settings.file import part_of
from controller.settings.listen import ListenAddress, UnixSocket
from controller.store import Store, StoreError
from controller.store.errors import UrlNotUsable
from controller.store.settings import StorePart


def hindrances(settings: ControllerSettings) -> tuple[str, ...]:
    """Return what would keep a controller with these settings from starting, each with its path in the file."""
    addresses: dict[str, ListenAddress | UnixSocket] = {
        "openflow": settings.openflow,
        "rest": settings.rest,
        "agents": settings.agents,
    }
    if settings.rest_socket is not None:
        addresses["rest_socket"] = settings.rest_socket
    found = [(f"listen.{name}", why) for name, address in addresses.items() for why in _not_free(address)]
    found += [("store", why) for why in _not_usable(settings.store.url)]
    return tuple(f"{path}: {why}" for path, why in found)


def store_hindrances(path: Path) -> tuple[str, ...]:
    """Return what would keep a controller from its database, of a file in which something else is wrong."""
    try:
        url = part_of(path, StorePart)[0].store.url
        return tuple(f"store: {why}" for why in _not_usable(url))
    except (ConfigError, UrlNotUsable):  # that has been said
        return ()


def _not_free(address: ListenAddress | UnixSocket) -> Iterator[str]:
    """Yield why nobody could listen at an address."""
    if isinstance(address, UnixSocket):
        folder = Path(address.path).parent
        if not folder.is_dir():
            yield f"{address}: there is no folder {folder}: make it first"
        elif not os.access(folder, os.W_OK | os.X_OK):
            yield f"{address}: the folder {folder} cannot be written"
        return
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with contextlib.closing(socket.socket(family)) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((address.host.strip("[]"), address.port))
            tried.listen()  # a bound port of another that does not listen yet is found by this
        except OSError as error:
            yield f"{address}: {error.strerror or error}: end who listens there, or take another"


def _not_usable(url: str) -> Iterator[str]:
    """Yield why a database could not be used."""
    store = Store(url)
    try:
        store.try_out()
    except StoreError as error:
        yield str(error)
    finally:
        store.close()
