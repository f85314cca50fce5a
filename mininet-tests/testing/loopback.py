"""An address that no other process has: connections of other tests have the ports of 127.0.0.1."""

import os

OWN = f"127.1.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
