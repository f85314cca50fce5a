"""The command ``headway-agent``: as ``headway agent``, but its daemon starts without the command line's packages."""

import sys
from pathlib import Path

from apps.loading import loading

EXIT_USAGE = 2


def main() -> None:
    """Run the daemon if that is all that is asked for, as a unit does; else the command."""
    match sys.argv[1:]:
        case ["--config" | "-c", file]:
            sys.exit(daemon(Path(file)))
    from apps.cli.agent import app
    from apps.cli.output import bear_no_reader

    bear_no_reader()
    app(prog_name="headway-agent")


def daemon(config: Path) -> int:
    """Run the agent until it is ended; return its exit code."""
    load()
    from hostagent.agent.daemon import run
    from hostagent.errors import AgentConfigError
    from hostagent.settings import loaded

    try:
        settings = loaded(config)
    except AgentConfigError as error:
        print(*(f"headway-agent: {config}: {problem}" for problem in error.problems), sep="\n", file=sys.stderr)
        return EXIT_USAGE
    return run(settings)


def load() -> None:
    """Load what an agent runs with."""
    with loading():
        import hostagent.agent.daemon
        import hostagent.settings  # noqa: F401
