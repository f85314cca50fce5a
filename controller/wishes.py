"""From what a client announces to what the ledger is asked, with what is known of where it is put. Pure.

There is no other way: the controller asks its ledger for what is made here, and so does the site of a what-if.
"""

from controller.asker import Asker
from controller.checks import AnnouncementRequest
from controller.errors import NotAllowed
from controller.ownership import owner_of
from controller.plan.announcements import Wish
from controller.plan.routes import TransferEnds
from controller.site import Site
from controller.state.receivers import capacity_of
from controller.state.setup_time import setup_us
from controller.state.value import SiteState


def wish_of(site: Site, state: SiteState, asked: AnnouncementRequest, asker: Asker) -> Wish:
    """Return what the ledger is asked.

    Args:
        site: what does not change.
        state: what does.
        asked: by a client.
        asker: who that is.

    Raises:
        NotAllowed: it is to be stored by a time, and nobody knows what its receiver stores.
        NotYours: it is asked for in the name of a group that its asker is not in.
    """
    network = site.network
    framing = network.framing_between(asked.senders, asked.target)
    ends = TransferEnds(asked.senders, asked.target, asked.lanes)
    store = capacity_of(state.reported, network, ends, asked.selector, framing)
    if asked.is_stored_by and store is None:
        why = f"nobody knows what {asked.target} stores: say stores: with a rate in its agent's configuration"
        raise NotAllowed("deadline_for", why)
    return Wish(
        asked.announcement_id,
        asked.flow_class,
        asked.size_bytes,
        asked.deadline_us,
        framing,
        asked.selector,
        asked.key,
        asked.fingerprint,
        owner_of(asked.owner, asker),
        asker.who,
        store,
        asked.is_stored_by,
        asked.lanes,
        asked.is_called,
        asked.session_us,
        asked.tail,
        setup_us(state.installed.steps),
    )
