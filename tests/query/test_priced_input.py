"""What the priced query cannot be asked for, named in the caller's terms."""

import math

import pytest
import torch

from botorch_costly.errors import CostlyError, InvalidArgumentError, InvalidBudgetError
from botorch_costly.query import MixedQuery, PricedQuery, Progress, Prospect
from tests.strategies import duel

SECONDS = {"price_seconds": 30.0, "round_seconds": 60.0}
COMPARISON = duel(0.0, 1.0, 0.0, 1.0)._replace(prospect=Prospect(*torch.zeros(2).double()))


@pytest.mark.parametrize("name", ["price", "price_seconds"])
@pytest.mark.parametrize("bad", [-1e-9, -math.inf, math.nan, "1", True, [1.0]])
def test_a_price_that_is_none_is_named(name, bad):
    seconds = {"round_seconds": 60.0} if name == "price_seconds" else {}
    with pytest.raises(InvalidArgumentError, match=rf"{name}: Expected a finite number >= 0; Rec"):
        PricedQuery(**{name: bad}, **seconds)


@pytest.mark.parametrize(
    "given",
    [{"price": 1.0, "budget": 3}, {"budget": 3, **SECONDS}, {"price": 1.0, **SECONDS}],
)
def test_at_most_one_of_three_prices_is_given(given):
    with pytest.raises(
        InvalidArgumentError, match="price, price_seconds, budget: Expected at most"
    ):
        PricedQuery(**given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"price_seconds": 3.0}, "round_seconds: Expected the duration of a round of training; "),
        ({**SECONDS, "round_seconds": 0.0}, "round_seconds: Expected a finite number > 0"),
        ({**SECONDS, "round_seconds": math.nan}, "round_seconds: Expected a finite number > 0"),
        (
            {"price": 1.0, "round_seconds": 2.0},
            "round_seconds: Expected None without price_seconds",
        ),
        ({"budget": 0}, "budget: Expected an integer >= 1; Received 0"),
        ({"budget": 2.5}, "budget: Expected an integer >= 1"),
        ({"budget": True}, "budget: Expected an integer >= 1"),
        ({"budget": "3"}, "budget: Expected an integer >= 1"),
        ({"price": 1.0, "horizon": 0}, "horizon: Expected an integer >= 1; Received 0"),
        ({"price": 1.0, "horizon": 9.5}, "horizon: Expected an integer >= 1"),
        ({"price": 1.0, "discount": 0.0}, r"discount: Expected a number in \(0, 1"),
        ({"price": 1.0, "discount": 1.1}, r"discount: Expected a number in \(0, 1"),
        ({"price": 1.0, "discount": math.nan}, r"discount: Expected a number in \(0, 1"),
        pytest.param({"price": 1.0, "discount": True}, r"discount: Expected a number in \(0, 1"),
        ({"price": 1.0, "discount": "0.9"}, r"discount: Expected a number in \(0, 1"),
        ({"price": 1.0, "supersession": -0.1}, "supersession: Expected a finite number >= 0"),
        ({"price": 1.0, "supersession": math.nan}, "supersession: Expected a finite number >= 0"),
    ],
)
def test_other_bad_options_are_named(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        PricedQuery(**options)


def test_runs_it_cannot_serve_are_named():
    with pytest.raises(InvalidArgumentError, match=r"horizon: Expected a number of rounds, or"):
        PricedQuery(price=1.0).check_run(None)
    with pytest.raises(InvalidBudgetError, match="budget: Expected at most 9 rounds; Received 10"):
        PricedQuery(budget=10, horizon=9)
    with pytest.raises(InvalidBudgetError, match="budget: Expected at most 9 rounds; Received 10"):
        PricedQuery(budget=10).check_run(9)
    with pytest.raises(InvalidBudgetError, match="horizon: Expected how many rounds the budget"):
        PricedQuery(budget=10, discount=0.9).check_run(None)
    with pytest.raises(InvalidBudgetError, match="horizon: Expected at most the 90 rounds of the"):
        PricedQuery(budget=10, horizon=100).check_run(90)
    PricedQuery(price=1.0, horizon=100).check_run(90)  # a price may query beyond the run
    with pytest.raises(InvalidBudgetError, match="at most 60 rounds; Received 61"):
        MixedQuery(1, 20, 60, PricedQuery(budget=61)).check_run(None)


def test_a_comparison_without_a_prospect_is_named():
    with pytest.raises(InvalidArgumentError, match="prospect: Expected a Prospect of the query"):
        PricedQuery(price=1.0)(COMPARISON._replace(prospect=None), Progress(50, 9, 100), None)


@pytest.mark.parametrize("rule", [PricedQuery(price=1.0), PricedQuery(budget=9)])
def test_an_unknown_horizon_is_named_by_the_rule_it_stops(rule):
    with pytest.raises(CostlyError, match="Expected"):
        rule(COMPARISON, Progress(50, 8), None)


@pytest.mark.parametrize(
    "text", ["PricedQuery(price=0.3)", "PricedQuery(budget=30, horizon=100, lookahead_weight=0.0)"]
)
def test_a_rule_shows_what_was_chosen(text):
    rule = eval(text)
    assert repr(rule) == text


def test_a_share_that_is_not_known_is_named():
    with pytest.raises(InvalidArgumentError, match=r"query: Expected a price.*overhead="):
        PricedQuery().outlook(Progress(4, 2, 50, 0.1))
