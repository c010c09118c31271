"""A count of successes leaves the room that follows from the number of trials."""

from fractions import Fraction
from math import comb

import pytest

from tests.cases import quick
from tests.counting import least_successes


@pytest.mark.parametrize("n", quick([1, 8, 40, 500], 1, 8, 40))
@pytest.mark.parametrize("p", [0.5, 0.9, 0.99, 0.999])
def test_fewer_have_a_probability_of_one_in_a_million(n, p):
    p = Fraction(p)
    chances = [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    least = least_successes(n, float(p))
    assert sum(chances[:least]) <= 1e-6 < sum(chances[: least + 1])


def test_what_is_certain_leaves_no_room_and_more_trials_leave_a_smaller_share():
    assert least_successes(8, 1.0) == 8
    assert least_successes(8, 0.0) == 0
    shares = [least_successes(n, 0.9) / n for n in (10, 100, 1000)]
    assert shares == sorted(shares)
