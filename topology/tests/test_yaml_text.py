"""YAML: plain values, or one error."""

import pytest

from topology.yaml_text import NotYaml, values_of


@pytest.mark.parametrize(
    "text", ["a: [", "a: 2026-13-45", "a: 0x_", "!!int ''", "!!bool x", "!!timestamp x", "[" * 5000, "!!python/name:os"]
)
def test_whatever_pyyaml_stumbles_over_is_one_error_in_one_line(text):
    with pytest.raises(NotYaml) as error:
        values_of(text)
    assert len(str(error.value).splitlines()) == 1
