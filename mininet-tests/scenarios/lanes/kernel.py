"""What the kernels of a transfer's two ends say of it: connections, TCP's and SCTP's counters."""

from collections import Counter
from ipaddress import IPv4Address, ip_address
from pathlib import Path

from mininet_tests.scenarios.lanes.report import LANES
from mininet_tests.site.emulation import Emulation
from mininet_tests.site.ends import addresses_of
from mininet_tests.site.topos import line_drops, port_drops

SENDER, RECEIVER = "base20", "arch"
ESTABLISHED = "01"  # in /proc/net/tcp
SCTP_ENDINGS = ("SctpAborteds", "SctpShutdowns", "SctpOutOfBlues", "SctpT3RtxExpireds", "SctpT5ShutdownGuardExpireds")


def connections(site: Emulation) -> Counter[str]:
    """Return how many connections of the sender to the program's receiver are open, by lane."""
    network = site.realised.network
    names = {str(network.host(lane).ip): lane for lane in LANES}
    kept_in = Path(f"/proc/{site.realised.net[SENDER].pid}/net")
    rows = [row for name in ("tcp", "tcp6") for row in (kept_in / name).read_text().splitlines()[1:]]
    found = Counter[str]()
    far = {str(address) for address in addresses_of(network.host(RECEIVER))}
    for _, local, remote, state, *_ in map(str.split, rows):
        if state == ESTABLISHED and _address(remote) in far:
            found[names[_address(local)]] += 1
    return found


def _address(shown: str) -> str:
    """Return an address as people write it; a socket that listens for both families has one of IPv4 as one of IPv6.

    >>> _address("1414140A:1771"), _address("0000000000000000FFFF00001414140A:1771")
    ('10.20.20.20', '10.20.20.20')
    >>> _address("B80D0120000001000000000020000000:1771")
    '2001:db8:1::20'
    """
    words = bytes.fromhex(shown.split(":", maxsplit=1)[0])  # each of 32 bits, as the machine has it
    packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    address = ip_address(packed)
    return str(address if isinstance(address, IPv4Address) else address.ipv4_mapped or address)


def counted(site: Emulation) -> dict[str, int]:
    """Return what the two hosts' TCP and the circuits have counted so far."""
    realised = site.realised
    again = _named(Path(f"/proc/{realised.net[SENDER].pid}/net/snmp").read_text())["RetransSegs"]
    unordered = _named(Path(f"/proc/{realised.net[RECEIVER].pid}/net/netstat").read_text())["TCPOFOQueue"]
    drops = sum(port_drops(realised).values()) + sum(sum(line_drops(realised, c).values()) for c in LANES.values())
    return {"sent_again": again, "out_of_order": unordered, "dropped": drops}


def _named(text: str) -> dict[str, int]:
    r"""Return TCP's counters by name, of a file of the kernel.

    >>> _named("Tcp: InSegs RetransSegs\nTcp: 3 4\nUdp: InDatagrams\nUdp: 5")
    {'InSegs': 3, 'RetransSegs': 4}
    """
    rows = [row.split()[1:] for row in text.splitlines() if row.startswith(("Tcp:", "TcpExt:"))]
    return {name: int(value) for names, values in zip(rows[::2], rows[1::2], strict=True)
            for name, value in zip(names, values, strict=True)}  # fmt: skip


def endings(text: str) -> dict[str, int]:
    r"""Return SCTP's counters of how associations end, of a file of the kernel.

    >>> endings("SctpAborteds \t1\nSctpOutOfBlues \t0\nSctpInSCTPPacks \t7\n")
    {'SctpAborteds': 1, 'SctpOutOfBlues': 0}
    """
    return {name: int(value) for name, value in map(str.split, text.splitlines()) if name in SCTP_ENDINGS}
