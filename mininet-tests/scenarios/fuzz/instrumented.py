"""The parsers, instrumented while they are imported: once, in the process that each parser's own is forked from."""

import contextlib
import io

import atheris  # type: ignore[import-untyped]

OURS = ["controller.providers", "controller.security", "controller.southbound", "topology"]

with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=OURS):  # it says each module's name
    from mininet_tests.scenarios.fuzz.targets import TARGETS, taken

__all__ = ["TARGETS", "taken"]
