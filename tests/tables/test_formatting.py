"""The one formatter of numbers, and a user's words on one line."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uq_tracking as uq
from uq_tracking.figures.style import readable
from uq_tracking.formatting import format_interval, format_number, format_score, one_line, shorten
from uq_tracking.tables import Cell


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1, "1.000"),
        (0.5, "0.5000"),
        (12345.678, "12,346"),
        (-12345.678, "-12,346"),
        (999.96, "1,000"),
        (99999999.0, "99,999,999"),
        (1e8, "1.000e8"),
        (1e-4, "0.0001000"),
        (1e-5, "1.000e-5"),
        (math.inf, "inf"),
    ],
)
def test_a_score(value, expected):
    assert format_score(value) == expected


@given(st.floats(-1e300, 1e300), st.integers(1, 9), st.booleans(), st.booleans())
def test_what_is_printed_is_the_number_to_its_digits(value, digits, padded, compact):
    text = format_number(value, digits, padded=padded, compact=compact)
    read = float(text.replace(",", ""))
    assert abs(read - value) <= 0.5000001 * 10.0 ** (1 - digits) * abs(value) + 5e-324


@given(st.floats(1e-12, 1e12), st.integers(1, 9))
def test_the_sign_only_adds_a_hyphen(value, digits):
    assert format_number(-value, digits) == "-" + format_number(value, digits)


@pytest.mark.slow
def test_a_number_is_printed_alike_wherever_it_stands():
    """In the report's table, a comparison's in every form, and a figure's title (with a typographic minus)."""
    report = uq.evaluate([0.0, 24691.356], [12345.678, 12345.678], [1.0, 2.0], metrics=["mae"])
    comparison = uq.compare({"a": report})
    shown = "12,346"
    assert format_score(12345.678) == Cell(12345.678).text == readable(12345.678) == shown
    for text in (str(report), report._repr_html_(), str(comparison), comparison.to_markdown()):
        assert shown in text
    assert shown in comparison.to_html()
    assert "$12{,}346$" in comparison.to_latex()
    assert "mae,12345.678," in comparison.to_csv()


def test_an_interval():
    assert format_interval((-0.25, 12345.678)) == "[0, 12,346]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        (" a\tb \n c ", "a b c"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("bell\x07", "bell\\x07"),
        ("right\u202eleft", "right\\u202eleft"),
        (3, "3"),
    ],
)
def test_a_text_on_one_line(text, expected):
    assert one_line(text) == expected


@given(st.text(), st.integers(2, 20))
def test_a_shortened_text_has_so_many_letters_at_most(text, letters):
    found = shorten(text, letters)
    assert len(found) <= letters
    assert found == text or found.endswith("…")
