"""What a stranger can write into the log: nothing that ends a line, moves a cursor, or fills the disk."""

import logging
import subprocess
import sys

from apps import logs

SCRIPT = """
import logging, threading
from apps import logs
import structlog
logs.configure()
log = structlog.get_logger()
log.warning("host.untrusted", why="\\x1b[2J\\x1b]0;owned\\x07 a\\nlevel=error event=made.up \\u202egnp\\u2066 \\ud800")
log.warning("host.untrusted", why="x" * 100_000, number=7, no=None)
logging.getLogger("a.library").warning("one\\ntwo \\x1b[31m")
try:
    raise ValueError("long\\nago")
except ValueError:
    log.exception("host.failed")
    logging.getLogger("a.library").exception("it failed")
def deep(n):
    raise ValueError("y" * 20_000)
thread = threading.Thread(target=deep, args=(0,), name="deep")
thread.start()
thread.join()
raise RuntimeError("the last")
"""


def test_of_one_place_in_a_library_there_is_one_line_a_minute_with_how_many_it_stands_for():
    now_s, said = [0.0], []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    handler.addFilter(logs.Sparing(lambda: now_s[0]))
    library = logging.Logger("a.library")
    library.addHandler(handler)
    for n in range(1000):
        now_s[0] = 0.1 * n
        library.error("unreadable: %s", n)
    library.error("of another place")
    assert said == ["unreadable: 0", "unreadable: 600 (and 599 more like it since)", "of another place"]


def test_each_event_is_one_short_line_that_no_terminal_obeys():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=False)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 1
    assert [len(line) < 10_000 for line in lines] == [True] * 7
    assert not {char for line in lines for char in line if ord(char) < 32 or char in "\x7f\u202e\u2066"}
    escaped, cut, library, ours, theirs, thread, last = lines
    assert "\\\\x1b[2J" in escaped
    assert "\\nlevel=error" in escaped, "a line was made up"
    assert cut.endswith('... (95904 more)" number=7 no=')
    assert "one\\ntwo \\x1b[31m" in library
    for one, what in ((ours, "long\\nago"), (theirs, "long\\nago"), (thread, "thread=deep"), (last, "the last")):
        assert "Traceback" in one or "more) ..." in one
        assert what in one
