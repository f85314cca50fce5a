"""A typed client of Headway's REST API; it needs nothing but Python.

>>> from headway import Client
>>> Client("https://ctl.example.org:8443").url
'https://ctl.example.org:8443'
"""

from typing import TYPE_CHECKING, Any

from headway.errors import (
    ApiError,
    ApiProblem,
    ApiRefusal,
    NoAnswer,
    NoConnection,
    NoSuchName,
    NotAController,
    NotAToken,
    NotAUrl,
    NotTrusted,
)
from headway.stream import ServerSentEvent

if TYPE_CHECKING:
    from headway.client import Client

__all__ = [
    "ApiError",
    "ApiProblem",
    "ApiRefusal",
    "Client",
    "NoAnswer",
    "NoConnection",
    "NoSuchName",
    "NotAController",
    "NotAToken",
    "NotAUrl",
    "NotTrusted",
    "ServerSentEvent",
]


def __getattr__(name: str) -> Any:
    """Load the client, and with it HTTP and TLS, when it is asked for."""
    if name != "Client":
        raise AttributeError(name)
    from headway.client import Client

    return Client
