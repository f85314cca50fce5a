"""What the start of a site says when a program of it has ended."""

import sys

import httpx
import pytest

from mininet_tests.site.emulation import Emulation, is_answering
from mininet_tests.testing.loopback import free_port


@pytest.fixture
def site(tmp_path):
    """A site without network or switches whose controller does not answer."""
    (tmp_path / "logs").mkdir()
    with httpx.Client(base_url=f"http://127.0.0.1:{free_port()}") as api:
        yield Emulation(realised=None, directory=tmp_path, api=api, ovs=None)


def test_a_controller_that_has_ended_with_an_error_is_not_waited_for_and_its_last_words_are_told(site):
    site.spawn("controller", [sys.executable, "-c", "raise SystemExit('flows: no such class')"]).wait()
    with pytest.raises(RuntimeError, match=r"controller \(exit 1\): flows: no such class"):
        is_answering(site)


def test_one_that_has_still_to_answer_is_waited_for(site):
    site.spawn("controller", ["sleep", "60"])
    try:
        assert not is_answering(site)
    finally:
        site.stop("controller")
