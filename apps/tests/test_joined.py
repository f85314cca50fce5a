"""What is written in one turn of the event loop is sent at once."""

import asyncio

from apps.joined import LARGE_BYTES, Joined


class KeptWrites(asyncio.Transport):
    """A transport that keeps what it was given, piece by piece."""

    def __init__(self):
        super().__init__({"peername": ("192.0.2.1", 1)})
        self.pieces, self.closed = [], False

    def write(self, data):
        assert not self.closed
        self.pieces.append(data)

    def close(self):
        self.closed = True

    abort = close

    def is_closing(self):
        return self.closed

    def get_write_buffer_size(self):
        return 1_000


def sent(work):
    """Return the transport after some work with what joins its writes, and some turns of the loop."""
    transport = KeptWrites()

    async def turns():
        await work(Joined(transport, asyncio.get_running_loop()))
        await asyncio.sleep(0)

    asyncio.run(turns())
    return transport


def test_writes_of_one_turn_are_one_and_those_of_the_next_are_another():
    async def work(joined):
        joined.write(b"head")
        joined.write(b"body")
        await asyncio.sleep(0)
        joined.write(b"more")

    assert sent(work).pieces == [b"headbody", b"more"]


def test_what_was_written_is_sent_before_a_connection_is_closed():
    async def work(joined):
        joined.write(b"last")
        joined.close()

    transport = sent(work)
    assert (transport.pieces, transport.closed) == ([b"last"], True)


def test_nothing_is_sent_once_a_connection_was_given_up():
    async def work(joined):
        joined.write(b"lost")
        joined.abort()

    assert sent(work).pieces == []


def test_what_is_large_does_not_wait_and_keeps_its_place():
    large = b"x" * LARGE_BYTES

    async def work(joined):
        joined.write(b"head")
        joined.write(large)
        assert joined.get_write_buffer_size() == 1_000
        joined.write(b"tail")
        assert joined.get_write_buffer_size() == 1_004

    assert sent(work).pieces == [b"head" + large, b"tail"]


def test_all_else_is_the_transports_own():
    async def work(joined):
        assert joined.get_extra_info("peername") == ("192.0.2.1", 1)

    sent(work)
