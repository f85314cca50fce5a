"""A console that a stranger's words do not move the cursor of. It takes time to import, as all of rich does."""

from typing import Any

from rich.console import Console
from rich.text import Text

from topology.printable import printable


class HarmlessConsole(Console):
    """Rich's own, which writes out the control characters of the strings that it shows, as the log does."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Return what is shown of a string, of a cell of a table too."""
        return super().render_str(printable(text, len(text)), **how)
