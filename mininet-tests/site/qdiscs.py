"""Two things that Debian 12's ``tc`` cannot do: seed netem's random numbers, and print an HTB rate exactly.

Both for interfaces of the caller's network namespace.
"""

import socket
import struct
from collections.abc import Iterator

from mininet_tests.site.netlink import Netlink, attribute, attributes

NETLINK_ROUTE = 0
RTM_NEWQDISC, RTM_GETQDISC, RTM_GETTCLASS = 36, 38, 42
TCA_KIND, TCA_OPTIONS = 1, 2
TCA_NETEM_PRNG_SEED = 14
NETEM_QOPT_BYTES = 24  # struct tc_netem_qopt, before the attributes in TCA_OPTIONS
TCA_HTB_PARMS, TCA_HTB_RATE64 = 1, 6
HTB_RATE_AT = 8  # in struct tc_htb_opt: the rate of its first struct tc_ratespec
TCMSG = struct.Struct("=BxxxiIII")  # struct tcmsg: family, interface, handle, parent, info


def seeded(device: str, seed: int) -> bool:
    """Seed the netem of a device; return False if this kernel's netem has no seed (before Linux 6.7).

    The kernel shows the options with their seed. They are sent back with another one, else as ``tc`` has set them.

    Raises:
        LookupError: the device has no netem.
        netlink.Refused: the kernel refused the change.
    """
    rtnetlink = Netlink(NETLINK_ROUTE)
    for header, shown in list(_shown(rtnetlink, RTM_GETQDISC, device)):
        if shown.get(TCA_KIND) != b"netem\0":
            continue
        fixed, options = shown[TCA_OPTIONS][:NETEM_QOPT_BYTES], attributes(shown[TCA_OPTIONS][NETEM_QOPT_BYTES:])
        if TCA_NETEM_PRNG_SEED not in options:
            return False
        options[TCA_NETEM_PRNG_SEED] = struct.pack("=Q", seed)
        changed = fixed + b"".join(attribute(kind, data) for kind, data in options.items())
        rtnetlink.change(RTM_NEWQDISC, header + attribute(TCA_KIND, b"netem\0") + attribute(TCA_OPTIONS, changed))
        return True
    raise LookupError(f"{device} has no netem")


def htb_rates_bps(device: str) -> dict[int, int]:
    """Return the guaranteed rate of each HTB class of a device by the class's minor number, bit/s."""
    rates = {}
    for header, shown in _shown(Netlink(NETLINK_ROUTE), RTM_GETTCLASS, device):
        if shown.get(TCA_KIND) != b"htb\0":
            continue
        options = attributes(shown[TCA_OPTIONS])
        (rate,) = struct.unpack_from("=I", options[TCA_HTB_PARMS], HTB_RATE_AT)
        if TCA_HTB_RATE64 in options:  # from 2^32 bytes a second
            (rate,) = struct.unpack("=Q", options[TCA_HTB_RATE64])
        rates[TCMSG.unpack(header)[2] & 0xFFFF] = rate * 8
    return rates


def _shown(rtnetlink: Netlink, kind: int, device: str) -> Iterator[tuple[bytes, dict[int, bytes]]]:
    """Yield (struct tcmsg, attributes) of each qdisc or class of a device."""
    index = socket.if_nametoindex(device)
    for answer in rtnetlink.dump(kind, TCMSG.pack(0, index, 0, 0, 0)):
        if TCMSG.unpack_from(answer)[1] == index:
            yield answer[: TCMSG.size], attributes(answer[TCMSG.size :])
