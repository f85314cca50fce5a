"""What several tests of the command line ask, and the offers that they are answered."""

import re
import shlex

NIGHT = ("reserve", "--from", "la-serena", "--to", "champaign", "--start", "22:00", "--for", "10h")


def offered(said):
    """The commands of a refusal, by their offers' numbers."""
    return {number: shlex.split(line)[1:] for number, line in re.findall(r"^(\d)  (headway .*)$", said, re.MULTILINE)}
