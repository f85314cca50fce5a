"""Whose a promise is: in whose name it is asked for, and who may change it. Pure."""

from controller.asker import Asker
from controller.errors import NotAllowed, NotYours, Taken
from controller.plan.announcements import Announcement
from controller.plan.ended import EndedAnnouncement, UsedKey
from controller.plan.reservations import Reservation


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


def check_repeated(known: Reservation | Announcement | EndedAnnouncement | UsedKey, key: str, asker: Asker) -> None:
    """Refuse to answer with what somebody else has asked for: equal words of two people are two requests.

    Args:
        known: what has the idempotency key that is asked with, or the name; of a used key alone nothing is known yet.
        key: that key; empty if there was none.
        asker: who asks.

    Raises:
        Taken: neither has the asker made it, nor is it the asker's or a group's of that one.
    """
    if isinstance(known, UsedKey):
        return
    made = known.announcement if isinstance(known, EndedAnnouncement) else known
    if made.creator == asker.who or made.owner in asker.owners:
        return
    if isinstance(made, Reservation):
        raise Taken("Idempotency-Key", key, "a reservation that is not yours")
    field, name = ("Idempotency-Key", key) if key and made.key == key else ("id", made.announcement_id)
    raise Taken(field, name, "an announcement that is not yours")


def check_again(known: Reservation, fingerprint: str, key: str, asker: Asker) -> None:
    """Refuse to answer with the reservation that a key was used for, unless it is the same request of the same people.

    Raises:
        NotAllowed: the key was used for another request.
        Taken: as :func:`check_repeated`.
    """
    if known.fingerprint != fingerprint:
        raise NotAllowed("Idempotency-Key", f'"{key}" was used for another reservation')
    check_repeated(known, key, asker)
