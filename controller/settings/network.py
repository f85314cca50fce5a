"""The section ``network``: which of the named networks it is, and the circuits' rate and delay."""

from pathlib import Path

from pydantic import BaseModel, Field

from controller.errors import ConfigError
from controller.settings.file import sections_of, values_in
from controller.settings.problems import Problems
from controller.settings.sections import Duration, Rate, Section
from topology.named import NAMED
from topology.network import Network


class NetworkSection(Section):
    """A network's name, and what its circuits are like."""

    name: str
    rate: Rate = Field(default=10**9, gt=0)
    delay: Duration = Field(default=90_000, gt=0)
    mtu_bytes: int = Field(default=1500, ge=576, le=9216)


class _NetworkOnly(BaseModel):
    network: NetworkSection


def named_network(section: NetworkSection, problems: Problems) -> Network | None:
    """Return the network that a section names; None, and a problem, if there is none."""
    if section.name not in NAMED:
        problems.at("name").add(f'there is no network "{section.name}"; there are {", ".join(NAMED)}')
        return None
    return NAMED[section.name](section.rate, section.delay, section.mtu_bytes)


def network_in(path: Path) -> Network:
    """Return the network of the settings in a file, whatever else may be wrong with these.

    Raises:
        ConfigError: the file cannot be read, or its network has problems.
    """
    section = sections_of(values_in(path), _NetworkOnly, str(path)).network
    problems = Problems()
    network = named_network(section, problems.at("network"))
    if network is None:
        raise ConfigError(str(path), tuple(problems.found))
    return network
