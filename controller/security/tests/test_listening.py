"""Tests of the sockets at which the controller is found."""

import socket

import pytest

from controller.security.listening import listening_at
from topology.addresses import shown_peer


@pytest.mark.parametrize(("called", "seen"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_who_calls_at_the_address_of_all_is_shown_by_the_address_that_people_know(called, seen):
    with listening_at("::", 0, 1) as bound, socket.create_connection((called, bound.getsockname()[1])) as caller:
        accepted, peer = bound.accept()
        accepted.close()
        assert shown_peer(peer) == f"{seen}:{caller.getsockname()[1]}"
