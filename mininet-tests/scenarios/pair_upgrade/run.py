"""A pair from its Debian packages is upgraded in turn: makes a Debian and the packages, then goes the course."""

import sys

from mininet_tests.site.packaged import course_gone

PREVIOUS = "6f34fd1020fb8b9ab1314d41f073f710c11b7f9e"
"""A version with pairs, whose controllers systemd leaves alone. It stays until a newer one cannot lead beside it."""


def main() -> int:
    """Make what is missing, and run the course."""
    return course_gone(__doc__, "pair-upgrade", PREVIOUS)


if __name__ == "__main__":
    sys.exit(main())
