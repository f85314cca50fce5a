"""What one that stands by does when it hears that the leader's row is about to be left."""

import threading
import time

from controller.database.leader_row import RowNews, SeenLeader
from controller.work.leadership import Leadership


class RowOfALeaderThatLeaves:
    """A row that another one holds, who has written more at each look, and is about to leave it."""

    def __init__(self):
        self.saves, self.words = 0, [RowNews.LEAVES]
        self.stands_by = False

    def look(self):
        """Say so."""
        self.saves += 1
        return SeenLeader(7, "a", "http://a", 0, is_over=False, saves=self.saves)

    def wait(self, timeout_s):
        """Let it be heard, once."""
        time.sleep(timeout_s)
        return self.words.pop() if self.words else RowNews.NOTHING

    def others(self):
        """Nobody."""
        return ()


def test_what_is_written_is_known_anew_as_soon_as_the_row_is_about_to_be_left():
    row = RowOfALeaderThatLeaves()
    led = Leadership(row, lambda: 0, 500_000)
    led.may_take = True
    thread = threading.Thread(target=led.run, daemon=True)
    thread.start()
    assert led.news.wait(5)
    assert led.seen.saves >= 2
    assert not led.led.is_set()
    led.stop()
    thread.join(5)
