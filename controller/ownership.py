"""Whose a promise is: in whose name it is asked for, and who may change it. Pure."""

from controller.asker import Asker
from controller.errors import NotYours


def owner_of(asked: str, asker: Asker) -> str:
    """Return whose something new will be: its asker's, or that of somebody in whose name it is asked for.

    >>> owner_of("", Asker("token:ana")), owner_of("group:lsst", Asker("token:ana", groups=frozenset({"lsst"})))
    ('token:ana', 'group:lsst')

    Raises:
        NotYours: the asker is not in that group.
    """
    if asked and not asker.operates and asked not in asker.owners:
        raise NotYours("owner", asked, asked)
    return asked or asker.who


def check_own(kind: str, name: str, owner: str, asker: Asker) -> None:
    """Refuse a change of what is somebody else's.

    Args:
        kind: reservation or announcement.
        name: its own.
        owner: whose it is; empty for nobody's, which was made before there were owners.
        asker: who asks for the change.

    Raises:
        NotYours: it is.
    """
    if not asker.operates and owner not in asker.owners:
        raise NotYours(kind, name, owner)
