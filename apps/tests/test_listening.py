"""Where a controller's ports are reached."""

import contextlib
import socket

import httpx
import pytest

from apps.start_check import hindrances_beside
from apps.web import web
from apps.web_local import local_socket
from controller.security.listening import listening_at
from controller.settings.listen import ListenAddress, UnixSocket
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


NOT_OURS = "192.0.2.200"  # RFC 5737: nobody has it


def test_an_address_that_is_not_this_machine_s_is_named_with_its_key():
    with pytest.raises(OSError, match=rf"^cannot listen for REST, listen\.rest, at {NOT_OURS}:8080: "):
        web(who, ListenAddress(NOT_OURS, 8080)).__enter__()
    with pytest.raises(OSError, match=rf"^cannot listen for switches, listen\.openflow, at {NOT_OURS}:6653: "):
        Listener(Address(NOT_OURS, 6653))


@pytest.mark.parametrize(
    ("path", "why"), [("none/rest.sock", "No such file or directory"), ("file", "Address already in use")]
)
def test_a_socket_that_cannot_be_made_is_named_with_its_key(tmp_path, path, why):
    (tmp_path / "file").write_text("")
    where = UnixSocket(str(tmp_path / path))
    with pytest.raises(OSError) as error, local_socket(where):  # noqa: PT011
        pass
    assert str(error.value) == f"cannot listen for REST, listen.rest_socket, at {where}: {why}"


@pytest.mark.parametrize(
    ("address", "why"), [(f"tcp:{NOT_OURS}:8080", "Cannot assign requested address"), ("tcp:no.invalid:8080", "")]
)
def test_where_nobody_could_listen_nobody_is_to_be_ended(tmp_path, address, why):
    path = tmp_path / "controller.yaml"
    listen = f"{{rest: '{address}', openflow: nowhere, agents: nowhere}}"
    path.write_text(f"listen: {listen}\nstore: sqlite:///{tmp_path}/headway.db\n")
    (said,) = hindrances_beside(path)
    assert said.startswith(f"listen.rest: {address.removeprefix('tcp:')}: {why}")
    assert said.endswith(": take an address of this machine")
