"""The manual has every key of a circuit that is bought at need."""

import re
from pathlib import Path

import pytest

from controller.providers.credentials import LoginSection
from controller.providers.nsi_settings import NsiSection
from controller.providers.oscars_settings import OscarsSection

PAGE = Path(__file__).parents[3] / "docs/configuration.md"


@pytest.mark.parametrize(
    ("begin", "section"),
    [("    oscars:", OscarsSection), ("    nsi:", NsiSection), ("      login:", LoginSection)],
    ids=["oscars", "nsi", "login"],
)
def test_the_manual_has_every_key(begin, section):
    (block,) = [one for one in PAGE.read_text().split("```")[1::2] if f"\n{begin}" in one]
    assert [name for name in section.model_fields if not re.search(rf"\b{name}\b", block)] == []
