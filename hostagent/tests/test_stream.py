"""A stream to a controller, at its end."""

import contextlib
import socket
import threading
import time

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.sync.server import serve

from hostagent.agent.stream import DIAL_WITHIN_S, ControllerStream, Lost
from hostagent.errors import AttachmentRefused, GaveWay
from mininet_tests.testing.eventually import eventually

SECOND_AND_GOODBYE_BYTES = 3 + 4  # as frames of a server: a letter, and a close frame with its code


def come(sock):
    """Return how many bytes wait to be read; they stay."""
    try:
        return len(sock.recv(64, socket.MSG_PEEK))
    except BlockingIOError:
        return 0


@pytest.mark.timeout(30)
def test_what_is_to_be_sent_when_a_goodbye_came_with_the_last_message_is_left_and_the_stream_is_lost():
    goes_on = threading.Event()

    def controller(connection):
        connection.recv()
        connection.send("1")
        goes_on.wait(10)
        connection.send("2")
        connection.close()

    with serve(controller, "127.0.0.1", 0, close_timeout=1) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stream = ControllerStream(f"127.0.0.1:{server.socket.getsockname()[1]}", None)
        stream.send(b"hello")
        messages = stream.messages()
        assert next(messages).data == b"1"
        goes_on.set()
        eventually(lambda: come(stream._sock) >= SECOND_AND_GOODBYE_BYTES, within_s=10, what="both have come")
        assert next(messages).data == b"2"
        stream.send(b"a report")
        with pytest.raises(Lost):
            next(messages)
        server.shutdown()


@pytest.mark.timeout(30)
def test_who_reads_hears_why_a_stream_was_cancelled_and_the_controller_too():
    told = []

    def controller(connection):
        connection.recv()  # a controller says nothing before it has heard who calls
        connection.send("1")
        with contextlib.suppress(ConnectionClosed):
            connection.recv()
        told.append(connection.close_reason)

    with serve(controller, "127.0.0.1", 0, close_timeout=1) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stream = ControllerStream(f"127.0.0.1:{server.socket.getsockname()[1]}", None)
        assert not stream.opened_ns
        stream.send(b"hello")
        messages = stream.messages()
        assert next(messages).data == b"1"
        assert stream.opened_ns
        stream.cancel("a reason")
        with pytest.raises(Lost, match="a reason"):
            next(messages)
        eventually(lambda: told == ["a reason"], within_s=10, what="the goodbye")
        server.shutdown()


@pytest.mark.timeout(30)
def test_a_stream_that_is_cancelled_in_the_middle_of_a_dial_ends_at_once():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
        stream = ControllerStream("{}:{}".format(*full.getsockname()), None)
        threading.Timer(0.3, stream.cancel).start()
        began_s = time.monotonic()
        with pytest.raises(Lost, match="the agent ends"):
            next(stream.messages())
        assert 0.2 < time.monotonic() - began_s < DIAL_WITHIN_S / 2


@pytest.mark.timeout(30)
def test_a_web_server_in_a_controllers_place_is_known_by_its_answer_though_it_keeps_the_connection():
    heard = threading.Event()

    def serve_web(listening):
        with listening.accept()[0] as asking:
            asking.recv(1 << 16)
            asking.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            heard.wait(20)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve_web, args=(listening,)).start()
        stream = ControllerStream("{}:{}".format(*listening.getsockname()), None)
        try:
            with pytest.raises(AttachmentRefused, match="answers 404"):
                next(stream.messages())
        finally:
            heard.set()


@pytest.mark.timeout(30)
@pytest.mark.parametrize(("reason", "gave_way"), [("base20 has called again, from 192.0.2.7:1", True), ("", False)])
def test_a_stream_that_is_ended_for_a_newer_one_of_this_host_has_given_way_to_it(reason, gave_way):
    def controller(connection):
        connection.recv()
        connection.close(CloseCode.NORMAL_CLOSURE, reason)

    with serve(controller, "127.0.0.1", 0, close_timeout=1) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stream = ControllerStream(f"127.0.0.1:{server.socket.getsockname()[1]}", None)
        stream.send(b"hello")
        with pytest.raises(Lost) as caught:
            next(stream.messages())
        assert isinstance(caught.value, GaveWay) is gave_way
        assert reason in caught.value.why
        server.shutdown()
