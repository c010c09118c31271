"""A rule in one run: it decides and explains there, and says which of its queries have no room."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    Cause,
    MixedQuery,
    PricedQuery,
    Verdict,
)


def halves(rounds):
    """Each configuration is held for two rounds."""
    return (rounds + 1) // 2


def each_round(rounds):
    """Nothing is held."""
    return rounds


@dataclass(frozen=True)
class Worded(PricedQuery):
    """A rule of a caller, with an attribute and words of its own."""

    def explain(self, verdict):
        return f"mine: {super().explain(verdict)}"


class Made(PricedQuery):
    """A rule of a caller with a constructor of its own."""

    def __init__(self, share):
        super().__init__(budget=int(100 * share))
        object.__setattr__(self, "share", share)


VERDICT = Verdict(torch.tensor(True), torch.tensor(0.4), torch.tensor(int(Cause.PAYS)))


def test_a_budget_is_at_most_one_query_in_each_interval():
    rule = PricedQuery(budget=40, supersession=0.3)
    assert rule.for_run(halves, 50) == PricedQuery(budget=25, supersession=0.3)
    assert rule.for_run(each_round, 50) == rule
    assert rule == PricedQuery(budget=40, supersession=0.3)  # as it was
    own = PricedQuery(budget=10, horizon=30).for_run(halves, 50)
    assert own == PricedQuery(budget=10, horizon=15)


def test_quotas_and_the_rule_inside_count_intervals():
    rule = MixedQuery(9, 30, 40, PricedQuery(budget=33))
    assert rule.for_run(halves, 50) == MixedQuery(9, 20, 20, PricedQuery(budget=25))
    assert rule.for_run(halves, None) == MixedQuery(9, 20, 20, PricedQuery(budget=20))


def test_a_rule_without_a_horizon_is_that_of_every_run():
    for rule in (AlwaysQuery(), BernoulliQuery(0.3), PricedQuery(price=1.0, discount=0.9)):
        assert rule.for_run(halves, None) == rule


@pytest.mark.parametrize("rule", [Worded(budget=40), MixedQuery(0, 9, 50, Worded(budget=40))])
def test_the_rule_of_a_run_explains_in_the_words_of_the_callers(rule):
    assert rule.for_run(halves, 50).explain(VERDICT) == "mine: a query is worth its price"


def test_a_callers_constructor_is_not_called_again():
    rule = Made(0.4).for_run(halves, 50)
    assert (type(rule), rule.share, rule.budget) == (Made, 0.4, 25)


# -- what has no room -----------------------------------------------------------------------------


def test_a_budget_that_has_no_room_is_said_with_both_numbers_and_the_remedy():
    note = PricedQuery(budget=40).unspendable(halves, 50)
    assert note.startswith("The budget of 40 queries cannot be spent: the run has 25 intervals")
    assert "hold=Hold(share=0)" in note
    assert PricedQuery(budget=40).unspendable(each_round, 50) is None
    assert PricedQuery(budget=25).unspendable(halves, 50) is None
    assert PricedQuery(price=1.0).unspendable(halves, 50) is None
    assert PricedQuery(budget=16, horizon=30).unspendable(halves, 50) is not None
    assert PricedQuery(budget=40).unspendable(halves, None) is None  # which check_run refuses


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (MixedQuery(30, 40, 50), "The lower quota of 30 queries cannot be spent: the run has 25 "),
        (MixedQuery(3, 40, 50), "The upper quota of 40 queries cannot be spent: the run has 25 "),
        (MixedQuery(4, 20, 100), r"4 to 20 queries are for 100 rounds, but the run has 50: "),
        (MixedQuery(3, 9, 50, PricedQuery(budget=40)), "The budget of 40 queries cannot be spent"),
    ],
)
def test_quotas_that_have_no_room_are_said(rule, words):
    assert words in rule.unspendable(halves, 50)


def test_quotas_that_have_room_are_not_mentioned():
    for rule in (MixedQuery(3, 25, 50), MixedQuery(3, 9, 30), AlwaysQuery(), BernoulliQuery(0.2)):
        assert rule.unspendable(halves, 50) is None
    assert MixedQuery(3, 40, 50).unspendable(each_round, None) is None


# -- counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [60.0, np.int64(60), np.float64(60)])
def test_counts_come_in_any_type(number):
    priced, mixed = PricedQuery(budget=number, horizon=number), MixedQuery(1, number, number)
    assert (priced, mixed) == (PricedQuery(budget=60, horizon=60), MixedQuery(1, 60, 60))
    for count in (priced.budget, priced.horizon, mixed.upper, mixed.horizon):
        assert type(count) is int


def test_only_the_price_may_be_given_without_its_name():
    assert PricedQuery(0.3) == PricedQuery(price=0.3)
    with pytest.raises(TypeError):
        PricedQuery(0.3, 1.0)
