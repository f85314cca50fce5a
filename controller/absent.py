"""Packages that others load for something that we do not use."""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from importlib import metadata
from types import ModuleType

FOR_TERMINALS = ("pygments", "rich")
"""What structlog and httpx load to write colours; a daemon writes none."""
FOR_URIS = "rfc3986"
"""What oslo.config, which os-ken loads, looks at URIs with: a twentieth of a start for its regular expressions."""

FOR_PACKETS = "os_ken.lib.packet.packet"
"""What os-ken's OpenFlow needs for packets that a controller sends; we send none. It looks through all protocols."""
FOR_OLD_MODELS = "pydantic.v1"
"""What FastAPI asks of each parameter whether it is a model of: we have none."""


@contextlib.contextmanager
def absent(*packages: str) -> Iterator[None]:
    """Let packages be missing for whoever imports them inside; one that is loaded already stays."""
    missing = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(missing))  # type: ignore[arg-type]  # None: it is not found (import system, 5.3.1)
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]


@contextlib.contextmanager
def without_plugins() -> Iterator[None]:
    """Let whoever looks for its plugins while it is imported inside find none.

    It would read a file of every package that is installed. What is installed for us, as providers are, is to be looked
    for by what is imported outside.
    """
    found = metadata.entry_points
    metadata.entry_points = lambda **_: metadata.EntryPoints()  # type: ignore[assignment]
    try:
        yield
    finally:
        metadata.entry_points = found


def put_off(package: str) -> None:
    """Let a package be loaded when something in it is looked at, if ever: who imports it cannot do without it."""
    if package in sys.modules:
        return
    stand_in = ModuleType(package)

    def looked_at(name: str) -> object:
        if sys.modules.get(package) is stand_in:
            del sys.modules[package]
        return getattr(importlib.import_module(package), name)

    stand_in.__getattr__ = looked_at  # type: ignore[method-assign]  # PEP 562
    sys.modules[package] = stand_in
