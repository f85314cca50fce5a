"""The network as data: sites, hosts, switches, links, and the arithmetic of their bytes. Pure: no I/O, no clock."""

__version__ = "0.1.0"
