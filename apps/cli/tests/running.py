"""The command, run in this process."""

import functools
from unittest.mock import patch

import typer.main
import typer.testing

command_of = functools.cache(typer.main.get_command)  # it keeps nothing of a run


class CliRunner(typer.testing.CliRunner):
    """Typer's own, which makes the whole command anew at each run: that took a third of these tests."""

    def invoke(self, app, args=None, **more):
        """Run a command; return what it has printed, and how it has ended."""
        with patch.object(typer.testing, "_get_command", command_of):
            return super().invoke(app, args, **more)
