"""The page as the controller serves it at one moment, saved: where there is no browser, it is looked at later."""

from pathlib import Path

from mininet_tests.site.emulation import Emulation

SAVED = {"screen.html": "/", "series": "/series", "transitions.html": "/transitions"}
"""The file that each is saved in, and its path; ``CIRCUIT.html`` for each circuit beside them."""


def save_page(site: Emulation, folder: Path) -> None:
    """Save the screen, what its charts show, and the pages of the circuits and the transitions."""
    folder.mkdir(parents=True, exist_ok=True)
    circuits = {f"{one.name}.html": f"/circuits/{one.name}" for one in site.realised.network.circuits}
    for file, path in (SAVED | circuits).items():
        answer = site.api.get(path)
        answer.raise_for_status()
        (folder / file).write_bytes(answer.content)
