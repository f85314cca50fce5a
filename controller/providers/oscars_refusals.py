"""Why OSCARS refuses, said once: its validation repeats one cause in up to eight sentences. Pure."""

import re

_SHORT = re.compile(r"total port (?:ingress|egress) bw exceeds available: (\S+) (\d+)\(req\) / (-?\d+) \(avail\)")
_VLAN = re.compile(r"(\S+) : vlan (\d+) not available")
_UNKNOWN = re.compile(r"(\S+) (?:not in topology|is not present anymore)")
_ECHO = re.compile(r"(\S+) \(Validity of \w+\) is not valid")


def condensed(message: str) -> str:
    r"""Return one cause for each resource that OSCARS names; what it cannot be asked to say shorter, once.

    >>> said = "total port ingress bw exceeds available: a:1 9(req) / 5 (avail)"
    >>> condensed(f"a:1 (Validity of urnInBw) is not valid\n{said}\n{said}")
    'a:1: 9 Mbit/s asked, 5 free'
    """
    causes: dict[str, str] = {}
    echoes: dict[str, str] = {}
    for line in (" ".join(line.split()) for line in message.splitlines()):
        if short := _SHORT.fullmatch(line):
            urn, asked, free = short.groups()
            causes[urn] = f"{urn}: {asked} Mbit/s asked, {max(0, int(free))} free"
        elif vlan := _VLAN.fullmatch(line):
            urn, vid = vlan.groups()
            causes[f"{urn} {vid}"] = f"{urn}: VLAN {vid} is taken, or not to be had"
        elif unknown := _UNKNOWN.fullmatch(line):
            causes[unknown[1]] = f"{unknown[1]}: there is no such port"
        elif echo := _ECHO.fullmatch(line):
            echoes.setdefault(echo[1], line)
        elif line:
            causes[line] = line
    named = {cause.partition(": ")[0] for cause in causes.values()}
    rest = (line for urn, line in echoes.items() if urn not in named)
    return "; ".join((*causes.values(), *rest))
