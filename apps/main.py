"""The command ``headway``: what it can be told is in ``apps/cli``, but a controller starts without its packages."""

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from apps.loading import loading

if TYPE_CHECKING:
    from apps.configuration import ControllerSettings

EXIT_OK, EXIT_FAILED, EXIT_CONFIG, EXIT_LOST = 0, 1, 2, 3
FULL = {errno.ENOSPC, errno.EDQUOT}
CONTROLLER_NEEDS = "a controller's machine needs the package headway-controller, or pip install 'headway[controller]'"


def main() -> None:
    """Run a controller if that is all that is asked for, as its unit does; else the command."""
    try:
        match sys.argv[1:]:
            case ["controller", "--config" | "-c", file]:
                sys.exit(daemon(Path(file)))
        from apps.cli.main import app
        from apps.cli.output import bear_no_reader

        bear_no_reader()
        app(prog_name="headway" if sys.argv[0].endswith("headway") else None)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in {"apps", "controller", "hostagent", "topology"}:
            raise
        sys.exit(_failed(f"{error.name} is not installed; {CONTROLLER_NEEDS}", EXIT_FAILED))
    except OSError as error:
        if error.errno not in FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left to print is lost, and no error of its own
        sys.exit(_failed(os.strerror(error.errno), EXIT_FAILED))


def daemon(config: Path, *, check: bool = False, trusts_wall: bool = False) -> int:
    """Run the controller until it is ended; return the exit code.

    Args:
        config: its file.
        check: only say whether it could start.
        trusts_wall: the wall clock is right: what is over by it is over.
    """
    load_reader()
    from apps.configuration import load
    from apps.start_check import hindrances_beside
    from controller.errors import ConfigError

    try:
        settings = load(config)
    except ConfigError as error:
        also = hindrances_beside(config) if check else ()
        return _failed("\n".join((str(error), *(f"{config}: {each}" for each in also))), EXIT_CONFIG)
    if check:
        return _checked(config, settings)
    load_runner()
    from apps import logs
    from apps.controller import run
    from controller.database import DatabaseError
    from controller.errors import SellersExchanged
    from controller.security.token_file import TokensUnusable
    from controller.southbound.errors import SouthboundError

    logs.configure()
    os.umask(0o027)  # whatever is made is for nobody else on this machine
    try:
        return run(settings, trusts_wall=trusts_wall)
    except (OSError, SouthboundError, DatabaseError, TokensUnusable) as error:
        return _failed(str(error), EXIT_FAILED)
    except SellersExchanged as error:
        return _failed("\n".join(f"{config}: {each}" for each in error.why), EXIT_FAILED)


def _checked(config: Path, settings: "ControllerSettings") -> int:
    """Say whether a controller could start with these settings, and what would become of promises; the exit code."""
    from apps.cli.network_text import not_ours
    from apps.start_check import hindrances, promises_kept

    promises = promises_kept(settings)
    found = (*hindrances(settings), *promises.exchanged)
    if not found:
        print(f"{config}: right; {settings.site.network.name}, {len(settings.site.standing)} standing flows")
        for line in not_ours(settings.site.network):
            print(f"{config}: {line}")
    if promises.lost:
        so_many = f"{len(promises.lost)} of {promises.promises} promises would not be kept after a start"
        found = (*found, f"{so_many} with this network:", *promises.lost)
    elif promises.promises:
        print(f"{config}: this network keeps all promises, {promises.promises}")
    found = (*found, *promises.left)
    if found:
        code = EXIT_LOST if promises.lost or promises.left else EXIT_FAILED
        return _failed("\n".join(f"{config}: {each}" for each in found), code)
    return EXIT_OK


def load_reader() -> None:
    """Load what reads a configuration and says whether a controller could start with it."""
    # os-ken chooses its hub when it is imported, so this comes before the imports.
    os.environ["OSKEN_HUB_TYPE"] = "native"
    from controller.absent import FOR_PACKETS, FOR_TERMINALS, FOR_URIS, absent, put_off, without_plugins

    put_off(FOR_URIS)
    put_off(FOR_PACKETS)
    with loading(), absent(*FOR_TERMINALS):
        with without_plugins():
            import networkx as nx  # noqa: F401  it looks for backends, twice
        import apps.configuration
        import apps.start_check  # noqa: F401


def load_runner() -> None:
    """Load what a controller runs with."""
    from controller.absent import FOR_TERMINALS, absent

    with loading(), absent(*FOR_TERMINALS):
        import apps.controller
        import apps.logs  # noqa: F401


def _failed(message: str, code: int) -> int:
    """Say what is wrong on standard error; return the exit code."""
    print(*(f"headway: {line}" for line in message.splitlines()), sep="\n", file=sys.stderr)
    return code
