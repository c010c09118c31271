"""When a reading pays: the rule as a function of its outlook."""

import math

import pytest

from botorch_costly.validation.timing import Outlook, pays

NOTHING = Outlook(reaches_target=0.0, improvement=0.0, improved=1.0, ratio=1.1, credit=1.0)


def test_nothing_is_read_that_the_share_does_not_afford():
    likely = NOTHING._replace(reaches_target=1.0, improvement=1.0, ratio=9.0)
    assert pays(likely._replace(credit=0.99)) is None
    assert pays(likely) is not None


def test_without_evidence_readings_are_regular_and_one_stays_in_stock():
    assert pays(NOTHING._replace(credit=1.99)) is None
    assert "affords 2 readings" in str(pays(NOTHING._replace(credit=2.0)))


@pytest.mark.parametrize(("credit", "probability"), [(1.0, 0.6), (1.5, 0.4)])
def test_the_target_is_looked_for_at_a_probability_that_falls_with_the_credit(credit, probability):
    outlook = NOTHING._replace(credit=credit)
    assert pays(outlook._replace(reaches_target=probability - 0.01)) is None
    assert "target" in str(pays(outlook._replace(reaches_target=probability + 0.01)))


def test_a_large_improvement_is_read_if_not_all_credit_goes():
    outlook = NOTHING._replace(improvement=0.06)
    assert pays(outlook._replace(credit=1.4)) is None
    assert "improvement" in str(pays(outlook._replace(credit=1.6)))
    assert pays(outlook._replace(credit=1.6, improved=2.0)) is None


def test_without_a_limit_readings_are_made_at_equal_ratios_of_the_steps():
    outlook = NOTHING._replace(credit=math.inf)
    assert pays(outlook) is None
    assert "times as long" in str(pays(outlook._replace(ratio=1.6)))
    assert pays(NOTHING._replace(ratio=1.6)) is None
