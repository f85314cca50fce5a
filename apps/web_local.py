"""REST's socket on this machine: for root and the controller's own user, who may all."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import uvicorn

from controller.security.listening import cannot_listen
from controller.settings.listen import UnixSocket


@contextlib.contextmanager
def local_socket(where: UnixSocket | None) -> Iterator[socket.socket | None]:
    """Have a socket that only root and our user may open; None for none.

    What a controller that died has left there is removed.

    Raises:
        OSError: somebody listens there, or it cannot be made.
    """
    if where is None:
        yield None
        return
    path = Path(where.path)
    with socket.socket(socket.AF_UNIX) as tried:
        try:
            tried.connect(where.path)
        except OSError:
            if path.is_socket():
                path.unlink()
        else:
            raise FileExistsError(f"listen.rest_socket: {where}: another one listens there")
    with socket.socket(socket.AF_UNIX) as bound:
        before = os.umask(0o177)  # it is never open to others, not for a moment
        try:
            bound.bind(where.path)
            bound.listen()  # from now on nobody takes it for one that was left
        except OSError as error:
            raise cannot_listen("REST, listen.rest_socket,", where, error) from error
        finally:
            os.umask(before)
        made = path.stat()
        try:
            yield bound
        finally:
            with contextlib.suppress(OSError):
                if path.stat().st_ino == made.st_ino:
                    path.unlink()


class LocalServer(uvicorn.Server):
    """uvicorn's server, which listens at a socket of this machine too, in plain text whatever the port speaks."""

    local: socket.socket | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        await super().startup(sockets)
        if self.local is not None:
            self.servers.append(await asyncio.get_running_loop().create_unix_server(self._of_here, sock=self.local))

    def _of_here(self) -> asyncio.Protocol:
        make = cast("Any", self.config.http_protocol_class)
        made = make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        made.is_local = True
        return cast("asyncio.Protocol", made)
