"""The setting ``store``: the URL of the database."""

from controller.store.errors import UrlNotUsable
from controller.store.store import Store
from topology.problems import Problems

DEFAULT_STORE = "sqlite:////var/lib/headway/headway.db"


def usable_url(url: str, problems: Problems) -> str:
    """Return the URL; a problem if it names no database that we can use. Nothing is connected to."""
    try:
        Store(url)
    except UrlNotUsable as error:
        problems.add(error)
    return url
