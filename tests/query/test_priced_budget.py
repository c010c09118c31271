"""A budget as a price: what it costs when, and whether runs keep to it."""

import math

import pytest
import torch

from botorch_costly.query import Cause, Comparison, PricedQuery, Progress, Prospect
from tests.cases import quick
from tests.oracles import knowledge_gradient as oracle

HORIZON = 200
LATELY = torch.linspace(0.1, 3.0, 30).double().flip(0).roll(11)


def useless(queries, round=50, horizon=HORIZON, spent=9, query_values=LATELY):
    """The verdict on a query that finds out nothing, where the best is played anyway."""
    zero = torch.zeros_like(torch.as_tensor(spent), dtype=torch.float64)
    none = zero.new_zeros(*zero.shape, 0)
    nothing = Comparison(zero, zero, none, none, None, none.bool(), zero, Prospect(zero, zero))
    query_values = None if query_values is None else query_values.expand(*zero.shape, -1)
    progress = Progress(round, spent, horizon, 0.05, query_values=query_values)
    return PricedQuery(budget=queries)(nothing, progress, None)


def price(queries, **options):
    return useless(queries, **options).price


def effective_horizon(left):
    """Of a query with so many rounds left, this one included."""
    return oracle.effective_horizon(left - 1, 0.05, supersession=0.8)


def test_a_spent_budget_has_no_price():
    assert price(queries=9) == math.inf
    assert price(queries=9, spent=12) == math.inf  # some queries come on top
    assert price(queries=9, round=HORIZON, spent=9) == math.inf


@pytest.mark.parametrize("spent", [1, 9, 39])
def test_what_is_paid_for_is_spent(spent):
    """Even on queries that find out nothing, from the round on that every round is needed."""
    left = 40 - spent
    due = useless(queries=40, spent=spent, round=HORIZON - left + 1)
    assert due.query
    assert due.cause == Cause.DUE
    assert PricedQuery(budget=40).explain(due).startswith("every round left is needed")
    early = useless(queries=40, spent=spent, round=HORIZON - left)
    assert not early.query
    assert early.cause == Cause.DOES_NOT_PAY
    assert not useless(queries=40, spent=40, round=HORIZON).query
    assert useless(queries=40, spent=0).cause == Cause.FIRST


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_it_costs_what_the_queries_that_can_be_afforded_were_worth(share):
    left, spent = HORIZON // 2, round(share * HORIZON / 2)  # at an even pace
    cost = price(queries=2 * spent, spent=spent, round=HORIZON - left + 1)
    recent = LATELY[-max(12, round(3 / share)) :]
    # The price is one of these numbers, or lies between two, so that a last bit must not count.
    worth = (1 + 1e-9) * effective_horizon(left) * recent
    assert (cost <= worth).double().mean().item() == pytest.approx(share, abs=0.07)


@pytest.mark.parametrize("unknown", [0, 13])
def test_it_is_a_quantile_of_what_is_known_of_query_values(unknown):
    rounds = torch.arange(30 + unknown)
    query_values = (0.1 * rounds - 1).double().roll(9)
    query_values[rounds[rounds % 3 == 1][:unknown]] = torch.nan
    for left in (1, 2, 17, 80, 139, 150):
        cost = price(queries=9 + left, round=HORIZON - 150 + 1, query_values=query_values)
        terms = left, 150, query_values.tolist(), effective_horizon(150)
        expected = oracle.price_of_budget(*terms, even=(9 + left) / HORIZON)
        assert cost.item() == pytest.approx(expected, rel=1e-12)


def test_each_trial_pays_by_its_own_query_values():
    query_values = torch.stack([LATELY, 2 * LATELY, torch.full_like(LATELY, torch.nan)])
    spent = torch.tensor([9, 20, 9])
    together = price(queries=60, spent=spent, query_values=query_values)
    each = [
        price(queries=60, spent=int(s), query_values=w)
        for s, w in zip(spent, query_values, strict=True)
    ]
    assert together.tolist() == [float(one) for one in each]
    assert len(set(together.tolist())) == 3


def test_the_fewer_queries_are_left_the_dearer_they_are():
    spent = torch.arange(1, 40)
    prices = price(queries=40, spent=spent)
    assert prices.shape == (39,)
    assert (prices.diff() >= 0).all()
    assert prices[-1] > prices[0]
    each = torch.stack([price(queries=40, spent=int(s)) for s in spent])
    torch.testing.assert_close(prices, each)


def test_a_query_late_in_the_run_is_held_against_what_it_can_still_earn():
    """A tenth of the rounds left is to have a query, early and late."""
    costs = {
        left: float(price(queries=29, spent=29 - left // 10, round=HORIZON - left + 1))
        for left in (150, 50, 10)
    }
    for left, cost in costs.items():
        assert cost / costs[150] == pytest.approx(
            effective_horizon(left) / effective_horizon(150), rel=1e-12
        )


def test_a_run_ahead_of_an_even_pace_pays_more():
    """The same is left, of larger and smaller budgets."""
    costs = [
        float(price(queries=queries, spent=queries - 20, round=101))
        for queries in (21, 40, 80, 160)
    ]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_what_is_rarer_than_the_recent_rounds_show_costs_more_than_ever():
    """The best query of 30 rounds earned 3 a round; one query is due in 90."""
    cost = price(queries=3, spent=2, round=HORIZON - 66)
    expected = 3.0 * effective_horizon(67) / math.sqrt(30 * (1 / 67) ** 2 / (3 / HORIZON))
    assert cost.item() == pytest.approx(expected, rel=1e-9)


def test_a_query_is_cheaper_the_fewer_rounds_are_left_and_the_larger_the_budget():
    by_round = [price(queries=40, round=r).item() for r in range(20, HORIZON - 30)]
    assert by_round == sorted(by_round, reverse=True)
    assert by_round[0] > by_round[-1]
    by_queries = [price(queries=n, spent=1).item() for n in range(2, HORIZON)]
    assert by_queries == sorted(by_queries, reverse=True)


def test_while_little_is_known_of_query_values_queries_are_free():
    few = torch.cat([torch.full((20,), torch.nan), LATELY[:7]])
    assert price(queries=40, query_values=None) == 0
    assert price(queries=40, query_values=few) == 0
    assert price(queries=40, query_values=torch.cat([few, LATELY[7:8]])) > 0
    # A small budget is not spent on finding out.
    assert price(queries=10, spent=1, query_values=LATELY[:1]) == 0
    assert price(queries=10, spent=1, query_values=LATELY[:2]) > 0


def test_a_price_is_never_negative():
    assert price(queries=40, query_values=-LATELY) == 0


# -- runs -----------------------------------------------------------------------------------------


def run(rule, forgetting, trials=20, size=0.2):
    """Rounds x trials: queries so far, where a query earns more the longer the last one is ago."""
    generator = torch.Generator().manual_seed(1)

    def draw():
        return torch.rand(trials, generator=generator, dtype=torch.float64)

    zero, queries = torch.zeros(trials).double(), torch.zeros(trials, dtype=torch.long)
    none, live, age, history = zero.new_zeros(trials, 0), zero, zero, []
    query_values = torch.full((trials, HORIZON + 1), torch.nan).double()
    for t in range(1, HORIZON + 1):
        gain = size * (1 - (1 - forgetting) ** age).sqrt() * (2 * draw() - 1).exp()
        prospect = Prospect(-0.05 * draw(), gain)
        comparison = Comparison(zero, zero, none, none, None, none.bool(), zero, prospect)
        progress = Progress(
            t, queries, HORIZON, forgetting, live, 0.3, query_values=query_values[:, :t]
        )
        verdict = rule(comparison, progress, generator)
        query, query_values[:, t] = verdict.query, verdict.value / rule.effective_horizon(progress)
        queries = queries + query
        live, age = (1 - forgetting) * (live + query), torch.where(query, 1.0, age + 1)
        history.append(queries.double())
    return torch.stack(history)


@pytest.mark.parametrize("forgetting", quick([0.003, 0.01, 0.05, 0.2], 0.003, 0.05))
@pytest.mark.parametrize("budget", quick([6, 10, 20, 50, 100, 160], 6, 20, 160))
def test_runs_keep_to_their_budget(forgetting, budget):
    queries = run(PricedQuery(budget=budget), forgetting)
    assert (queries[-1] == budget).all()
    assert_spread(queries.mean(-1) / budget)


def assert_spread(share):
    """Neither spent at once nor hoarded for the end."""
    assert 0.1 < share[HORIZON // 4] < 0.65
    assert 0.3 < share[HORIZON // 2] < 0.8


@pytest.mark.parametrize("size", [0.02, 2.0])
def test_the_price_is_found_whatever_a_query_is_worth(size):
    queries = run(PricedQuery(budget=50, supersession=0.0), 0.05, size=size)
    assert (queries[-1] == 50).all()
    assert_spread(queries.mean(-1) / 50)


def test_a_budget_is_spent_where_nothing_is_found_out():
    assert (run(PricedQuery(budget=50), 0.05, size=0.0)[-1] == 50).all()


def test_prices_without_a_budget_buy_the_fewer_queries_the_dearer_they_are():
    prices = (0.0, 0.2, 1.0, 5.0, math.inf)
    means = [run(PricedQuery(price=p), 0.05)[-1].mean().item() for p in prices]
    assert means == sorted(set(means), reverse=True)
    assert means[-1] == 1


@pytest.mark.parametrize("left", [2.0, 11.0, 40.0])
@pytest.mark.parametrize("spent", [1, 9])
def test_a_share_of_the_clock_costs_as_a_budget_of_what_it_affords(left, spent):
    """Up to the pace at which every round is due: from there on the share costs nothing."""
    by_budget = price(queries=spent + int(left), spent=spent)
    by_share = of_a_share(left, spent=spent).price
    need = left / (HORIZON - 49)
    due = need**2 * HORIZON / (spent + left) >= 1
    assert by_share == (0.0 if due else by_budget)
    assert by_budget > 0


@pytest.mark.parametrize("left", [-3.0, 0.0, 0.2])
def test_a_share_that_affords_no_query_has_a_price_that_none_is_worth(left):
    verdict = of_a_share(left, spent=9)
    assert not verdict.query
    assert verdict.price == math.inf or verdict.price > price(queries=10, spent=9)


def test_a_share_of_a_run_without_a_known_end_is_that_of_the_next_rounds():
    """As the budget of a run that ends 30 rounds later."""
    by_budget = useless(queries=12, spent=9, round=50, horizon=79)
    known = of_a_share(3.0, spent=9, round=50, horizon=79)
    unknown = of_a_share(3.0, spent=9, round=50, horizon=None, discount=0.99)
    assert known.price == by_budget.price
    assert 0 < unknown.price < math.inf


def of_a_share(affordable, *, spent, round=50, horizon=HORIZON, **options):
    """The verdict of a share on a query that finds out nothing."""
    zero = torch.zeros((), dtype=torch.float64)
    none = zero.new_zeros(0)
    nothing = Comparison(zero, zero, none, none, None, none.bool(), zero, Prospect(zero, zero))
    progress = Progress(round, spent, horizon, 0.05, query_values=LATELY, affordable=affordable)
    return PricedQuery(**options)(nothing, progress, None)
