r"""Pictures of a page that was saved in a real run, by a real browser: both sizes, both themes, and its details.

``mininet-tests/run failover --case both --page`` saves one, in ``out/failover/page``; this makes pictures of it::

    mininet-tests/site/isolated.sh .venv/bin/python -m mininet_tests.scenarios.page.pictures \
        --saved out/failover/page --out docs/page
"""

import argparse
import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

from controller.northbound import page
from mininet_tests.scenarios.page.browser import PATIENCE_S, SIZES, THEMES, Browser, browser
from mininet_tests.testing.eventually import eventually

KINDS = {"css": "text/css", "js": "text/javascript", "html": "text/html", "svg": "image/svg+xml"}


def main() -> None:
    """Make them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saved", type=Path, required=True, help="the folder of the saved page")
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with _served(arguments.saved) as url, browser(url) as window:
        for size in SIZES:
            for theme in THEMES:
                window.look(size, theme)
                window.open("/screen.html")
                eventually(lambda: window.every("#series canvas"), within_s=PATIENCE_S, what="the charts are drawn")
                window.picture(arguments.out / f"{size}-{theme}.png", whole=True)
        for file in sorted(arguments.saved.glob("*.html")):
            if file.name != "screen.html":
                _detail(window, file.name, arguments.out / f"{file.stem}.png")


def _detail(window: Browser, name: str, to: Path) -> None:
    window.look(next(iter(SIZES)), THEMES[0])
    window.open(f"/{name}")
    window.picture(to)


@contextlib.contextmanager
def _served(saved: Path) -> Iterator[str]:
    """Serve a saved page on loopback, with the files that the controller ships; nothing is live in it."""
    shipped = files(page).joinpath("static")

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # as http.server calls it
            name = self.path.partition("?")[0].lstrip("/")
            part = shipped.joinpath(Path(name).name) if name.startswith("static/") else saved / name
            found = part.is_file()
            self.send_response(200 if found else 204)
            self.send_header("Content-Type", KINDS.get(name.rpartition(".")[2], "application/json"))
            self.end_headers()
            self.wfile.write(part.read_bytes() if found else b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


if __name__ == "__main__":
    main()
