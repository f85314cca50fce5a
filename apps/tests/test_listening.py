"""Where a controller's ports are reached."""

import contextlib
import socket

import httpx
import pytest

from apps.web import web
from controller.security.listening import listening_at
from controller.settings.listen import ListenAddress
from controller.southbound.agents.listening import listening
from controller.southbound.openflow.listener import Address, Listener


@contextlib.contextmanager
def web_port():
    """That of REST."""
    with web(who, ListenAddress("[::]", 0)) as number:
        yield number


@contextlib.contextmanager
def agents_port():
    """That of agents."""
    with listening("[::]:0") as bound:
        yield bound.getsockname()[1]


@contextlib.contextmanager
def switches_port():
    """That of switches."""
    listener = Listener(Address("::", 0))
    yield listener.port
    listener.close()


async def who(scope, _, send):
    """An application that says who asks."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["client"][0].encode()})


@pytest.mark.parametrize("port", [web_port, agents_port, switches_port])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_address_of_all_is_reached_by_ipv6_and_by_ipv4(port, host):
    with port() as number, socket.create_connection((host, number), timeout=20) as made:
        assert made.getpeername()[:2] == (host, number)


@pytest.mark.parametrize(("host", "other"), [("::1", "127.0.0.1"), ("0.0.0.0", "::1")])  # noqa: S104
def test_any_other_address_is_reached_as_it_says(host, other):
    with listening_at(host, 0, 8) as bound:
        number = bound.getsockname()[1]
        socket.create_connection(("::1" if ":" in host else "127.0.0.1", number), timeout=20).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((other, number), timeout=20)


@pytest.mark.parametrize(("host", "url"), [("127.0.0.1", "http://127.0.0.1"), ("::1", "http://[::1]")])
def test_who_asks_by_a_port_of_both_families_is_known_by_the_address_that_people_know(host, url):
    with web_port() as number:
        assert httpx.get(f"{url}:{number}/", timeout=20).text == host
