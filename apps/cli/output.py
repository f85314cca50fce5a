"""Standard output that nobody reads any more, as behind ``head``: whoever read it has enough, nothing has failed."""

import io
import os
import sys

import typer


class Output(io.TextIOWrapper):
    """Standard output; once nobody reads it, what is printed is lost without an error.

    Attributes:
        is_unread: whether that is so.
    """

    is_unread = False

    def write(self, text: str) -> int:
        """Write as any file does."""
        try:
            return super().write(text)
        except BrokenPipeError:
            self._lose()
            return len(text)

    def flush(self) -> None:
        """Flush as any file does."""
        try:
            super().flush()
        except BrokenPipeError:
            self._lose()

    def _lose(self) -> None:
        self.is_unread = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def bear_no_reader() -> None:
    """Let the command go on to its own end and exit code where nobody reads what it prints, or its output is closed."""
    match sys.stdout:
        case None:
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        case io.TextIOWrapper() as out:
            how = (out.encoding, out.errors, "\n", out.line_buffering, out.write_through)
            sys.stdout = Output(out.buffer, *how)


def follow(line: str) -> None:
    """Print a line of what has no end by itself; once nobody reads it, it ends.

    Raises:
        typer.Exit: nobody does.
    """
    typer.echo(line)
    if isinstance(sys.stdout, Output) and sys.stdout.is_unread:
        raise typer.Exit
