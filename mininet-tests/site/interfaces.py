"""What is typed on a host of the emulation, so that an interface has its addresses and sends from them. Pure."""

from collections.abc import Iterator

from mininet_tests.site.ends import address_of, addresses_of
from topology.network import Host, Network

FIRST_TABLE = 100  # of routes from an interface's addresses
_QUIET = {"disable_ipv6": 0, "accept_ra": 0, "autoconf": 0, "router_solicitations": 0, "accept_dad": 0}


def settings_of(network: Network, host: Host, number: int) -> Iterator[tuple[str, ...]]:
    """Yield the commands for an interface.

    What is sent from an address of a host with several interfaces leaves by the one that has it, as ``docs/network.md``
    says that such hosts do. Everybody is one hop away, as neighbours that are known for good, whatever subnets the
    addresses are of.

    Args:
        network: where.
        host: the interface, as it is planned.
        number: which of its host's it is, from 0.
    """
    device = f"{host.machine}-eth{number}"
    yield "ip", "link", "set", device, "up"
    if any(one.version == 6 for one in addresses_of(host)):
        yield "sysctl", "-qw", *(f"net.ipv6.conf.{device}.{name}={value}" for name, value in _QUIET.items())
        if not number:
            yield "ip", "-6", "route", "replace", "default", "dev", device
    for one in addresses_of(host):
        yield "ip", "address", "replace", str(one), "dev", device, *(["nodad"] if one.version == 6 else [])
    if not number:
        yield "ip", "route", "replace", "default", "dev", device
    for one in addresses_of(host) if host.interface else ():
        family, table = f"-{one.version}", str(FIRST_TABLE + number)
        yield "ip", family, "rule", "add", "from", str(one), "table", table
        yield "ip", family, "route", "replace", "default", "dev", device, "table", table
    for other in network.hosts:  # IPv6 finds them by itself
        if other.machine != host.machine and (ip := address_of(other, 4)):
            yield "ip", "neigh", "replace", ip, "lladdr", other.mac, "dev", device
