"""How far hosts are from each other. Pure."""

from topology.network import Network


def longest_rtt_us(network: Network) -> int:
    """Return the round-trip time between the two hosts that are furthest from each other, microseconds."""
    access_us: dict[str, list[int]] = {}  # by where hosts are joined, what they have before it, the most first
    for host in network.hosts:
        joint = network.joint(host.name)
        path = (host.name,) if joint == host.name else (host.name, joint)
        access_us.setdefault(joint, []).append(network.path_rtt_us(path))
    for times_us in access_us.values():
        times_us.sort(reverse=True)
    apart = (
        a_us[0] + network.path_rtt_us(network.path(a, z)) + z_us[0]
        for a, a_us in access_us.items()
        for z, z_us in access_us.items()
        if a != z
    )
    return max([*apart, *(sum(us[:2]) if len(us) > 1 else 0 for us in access_us.values())])
