"""How a run over lanes is timed."""

import subprocess

from mininet_tests.scenarios.lanes.run import ProgramEnd
from mininet_tests.site.emulation import now_us


def test_the_end_of_a_program_is_told_when_it_is_and_not_when_one_looks():
    program = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    ending = ProgramEnd(program)
    assert not ending.within(0.01)
    before_us = now_us()
    program.stdin.close()
    assert ending.within(10)
    assert before_us <= ending.at_us <= now_us()
