"""The striped mover among the experiments, over loopback: all of a file arrives however it is dealt."""

import socket
import threading
from dataclasses import replace

import pytest

from mininet_tests.papers.wertz import mover
from mininet_tests.papers.wertz.mover import Striping

FILE_BYTES, BLOCK_BYTES = 1_050_000, 100_000


@pytest.fixture
def receiver():
    """A mover that receives, and the sizes of the blocks that each connection has brought."""
    found = {}
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def read(stream):
            with stream:
                while head := stream.recv(8, socket.MSG_WAITALL):
                    (size,) = mover.SIZE.unpack(head)
                    assert len(stream.recv(size, socket.MSG_WAITALL)) == size
                    found.setdefault(stream.getpeername(), []).append(size)
                    stream.sendall(mover.CONFIRMED)

        def accept():
            while True:
                try:
                    stream, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=read, args=(stream,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname(), found
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "striping",
    [
        Striping(3, BLOCK_BYTES),
        Striping(3, BLOCK_BYTES, lock_step=True),
        Striping(3, BLOCK_BYTES, from_queue=True),
        Striping(3, BLOCK_BYTES, lock_step=True, checkpoint_bytes=400_000),
    ],
)
def test_every_block_of_a_file_arrives_once_and_is_confirmed(receiver, striping):
    to, found = receiver
    mover.send(to, striping, FILE_BYTES)
    sizes = [size for of_stream in found.values() for size in of_stream[1:]]  # the first byte opens the window
    assert sorted(sizes) == sorted(size for part in mover.parts(striping, FILE_BYTES) for size in part)
    assert sum(sizes) == FILE_BYTES
    if not striping.from_queue:
        assert len(found) == striping.streams


def test_streams_are_from_own_addresses_in_turn(receiver):
    to, found = receiver
    mover.send(to, Striping(4, BLOCK_BYTES), FILE_BYTES, ("127.0.0.1", "127.0.0.2"))
    assert sorted(address for address, _ in found) == ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2"]


def test_a_file_whose_receiver_ends_is_not_taken_for_sent():
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hang_up():
            listening.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        with pytest.raises(OSError, match=r"not confirmed|reset|pipe"):
            mover.send(listening.getsockname(), replace(Striping(1, BLOCK_BYTES), lock_step=True), FILE_BYTES)
