"""The section ``network``: the network in place, or the name of the file that has it."""

from collections.abc import Mapping
from pathlib import Path

from controller.errors import ConfigError
from controller.settings.file import read_file
from topology.network import Network
from topology.network_file import network_of
from topology.problems import Problems

_BY_NAME = frozenset(("name", "rate", "delay", "mtu_bytes"))


def network_said(section: object, folder: Path, problems: Problems) -> Network | None:
    """Return the network that a section says; None, and problems, if it says none.

    Args:
        section: a file's name, or a network in place.
        folder: where a relative name begins.
        problems: those of the section.
    """
    if isinstance(section, str):
        path = folder / section
        try:
            return network_at(path)
        except ConfigError as error:
            for problem in error.problems:
                problems.add(f"{section}: {problem}")
            return None
    if isinstance(section, Mapping) and "sites" not in section and section.keys() <= _BY_NAME:
        problems.add("write the name of the network's file, `network: FILE`, or its sites and circuits in place")
        return None
    return network_of(section, problems)


def network_at(path: Path) -> Network:
    """Return the network in a file of its own.

    Raises:
        ConfigError: the file cannot be read, or has problems; all of them are in the error.
    """
    text = read_file(path)
    problems = Problems(values=text.values)
    network = network_of(text.values, problems)
    if network is None or text.repeated:
        raise ConfigError(str(path), (*text.repeated, *problems.found))
    return network


def network_in(path: Path) -> Network:
    """Return the network of the controller's settings in a file, whatever else may be wrong with these.

    Raises:
        ConfigError: the file cannot be read, or its network has problems.
    """
    text = read_file(path)
    problems = Problems(values=text.values)
    section = text.values.get("network") if isinstance(text.values, Mapping) else None
    network = network_said(section, path.absolute().parent, problems.at("network"))
    if network is None:
        raise ConfigError(str(path), (*text.repeated, *problems.found))
    return network


def network_at_or_in(path: Path) -> Network:
    """Return the network in a file: its own, or the controller's settings.

    Raises:
        ConfigError: the file cannot be read, or its network has problems.
    """
    values = read_file(path).values
    return network_in(path) if isinstance(values, Mapping) and "network" in values else network_at(path)
