"""The Debian packages from installation to purge: makes a Debian and both versions' packages, then goes the course."""

import sys

from mininet_tests.site import packages
from mininet_tests.site.packaged import course_gone


def main() -> int:
    """Make what is missing, the controller's image too, and run the course."""
    return course_gone(
        __doc__, "deploy", more=lambda new, out: {"image": packages.image(new, out / "controller.oci.tar")}
    )


if __name__ == "__main__":
    sys.exit(main())
