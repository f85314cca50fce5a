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


@pytest.mark.parametrize("text", ["0300", "010", "1:30", "0b11", "1_000", "-010", "!!int '010'"])
def test_a_number_that_people_read_otherwise_than_yaml_1_1_is_refused_with_its_line(text):
    with pytest.raises(NotYaml, match=r'^line 2: ".*" may be read as several numbers: write it without a 0 before it'):
        values_of(f"a: 1\nb: {text}")


def test_numbers_in_decimal_and_as_hexadecimal_are_taken_and_digits_in_quotes_are_text():
    assert values_of("[0, 300, -7, 0x0800, '0300', '1:30']") == [0, 300, -7, 2048, "0300", "1:30"]
