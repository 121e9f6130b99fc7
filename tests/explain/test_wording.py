"""Numbers, sums and conditions in words."""

import pytest

from lhtree.explain.wording import Condition, LinearSum, Term, format_number


@pytest.mark.parametrize(("value", "decimals", "text"), [
    (1.0, 2, "1.00"), (-1234.567, 1, "-1234.6"), (0.003184, 2, "0.0032"), (0.5, 2, "0.50"),
    (0.0, 2, "0.00"), (1e9, 2, "1.00e+09"), (3e-7, 1, "3.0e-07"), (0.25, 0, "0"),
])  # fmt: skip
def test_numbers_keep_their_digits(value, decimals, text):
    assert format_number(value, decimals) == text


def test_sums_write_signs_once():
    total = LinearSum((Term("a", -1.0), Term("b", 2.0), Term("c", -0.25)), -3.0)
    assert total.format() == "-a + 2.00*b - 0.25*c - 3.00"
    assert total.format(n_terms=1) == "-a + (2 more) - 3.00"
    assert LinearSum((), -0.5).format() == "-0.50"
    assert str(Condition(total.terms[1:2], "<=", 4.0)) == "2.00*b <= 4.00"
