"""Ways through OSCARS' backbone, and places that it does not have."""

from dataclasses import replace

import pytest

from controller.providers.errors import ProviderRefused
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_values import OscarsPort
from controller.providers.tests.buying import A_END, LATER, START, at_first, settings


@pytest.mark.parametrize(
    ("a_end", "why"),
    [
        (OscarsPort("chic-cr6", "chic-cr6:9/9/c9/9", 2), "chic-cr6:9/9/c9/9: there is no such port"),
        (replace(A_END, vlan_vid=1), "VLAN 1 is taken, or not to be had"),
    ],
)
def test_a_port_or_a_vlan_that_is_not_there_is_refused_with_one_reason(fake, url, a_end, why):
    with pytest.raises(ProviderRefused) as refused:
        OscarsProvider(settings(url, a_end=a_end), at_first).reserve("CXA5", LATER)
    assert refused.value.reason.count(why) == 1
    assert fake.oscars.rows == []


@pytest.mark.parametrize(
    ("limits", "crossed"), [({"include": ("stlo-cr5",)}, True), ({"exclude": ("chic-cr6:1/1/b1",)}, True), ({}, False)]
)
def test_a_path_crosses_what_it_must_and_not_what_it_must_not(fake, url, limits, crossed):
    provider = OscarsProvider(settings(url, **limits), lambda: START)
    provider.reserve("CXA5", LATER)
    assert ("stlo-cr5" in fake.oscars.rows[0].asked.pipes[0][3]) == crossed
    assert ("stlo-cr5" in provider.status("CXA5").route) == crossed


def test_what_is_kept_of_the_backbone_is_compared_with_what_was_bought(fake, provider):
    provider.reserve("CXA5", LATER)
    assert provider.status("CXA5").lacks == ""
    fake.oscars.rows[0].asked.pipes = tuple((*pipe[:2], 400, pipe[3]) for pipe in fake.oscars.rows[0].asked.pipes)
    provider._lacks.clear()  # as a process that starts
    assert provider.status("CXA5").lacks == "at chic-cr6:1/1/b1 400 of 1000 Mbit/s are reserved"
