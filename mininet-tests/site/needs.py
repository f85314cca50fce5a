"""What a test needs of the machine, and is skipped without."""

import os
import shutil

import pytest

from mininet_tests.site.postgresql import binaries

NEEDS_POSTGRESQL = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or binaries() is None or shutil.which("setpriv") is None,
        reason="needs root, PostgreSQL 14 or newer as Debian packages it, and setpriv",
    ),
]
