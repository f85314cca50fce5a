"""Where the controller is: at its address, or at its socket on this machine if that is for us."""

import os

from apps.cli import identity

DEFAULT_URL = "http://127.0.0.1:8080"
LOCAL = "/run/headway-controller/rest.sock"  # asked instead, by root and the controller's user, where it is


def local(url: str) -> str:
    """Return the address of the controller's socket on this machine, if we may open it and nothing else was said."""
    is_said = any(os.environ.get(name) for name in ("HEADWAY_URL", identity.TOKEN_ENV, identity.COMMAND_ENV))
    if url != DEFAULT_URL or is_said or not os.access(LOCAL, os.R_OK | os.W_OK):
        return url
    return f"unix:{LOCAL}"
