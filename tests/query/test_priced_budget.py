"""A budget as a price: what it costs when, and whether runs keep to it."""

import math

import pytest
import torch

from botorch_costly.query import Cause, Contest, PricedQuery, Progress, Prospect
from tests.oracles import knowledge_gradient as oracle

HORIZON = 200
LATELY = torch.linspace(0.1, 3.0, 30).double().flip(0).roll(11)


def useless(looks, round=50, horizon=HORIZON, spent=9, worths=LATELY):
    """The verdict on a look that finds out nothing, where the best is played anyway."""
    zero = torch.zeros_like(torch.as_tensor(spent), dtype=torch.float64)
    none = zero.new_zeros(*zero.shape, 0)
    nothing = Contest(zero, zero, none, none, None, none.bool(), zero, Prospect(zero, zero))
    worths = None if worths is None else worths.expand(*zero.shape, -1)
    progress = Progress(round, spent, horizon, 0.05, worths=worths)
    return PricedQuery(looks=looks)(nothing, progress, None)


def price(looks, **options):
    return useless(looks, **options).price


def reach(left):
    """Of a look with so many rounds left, this one included."""
    return oracle.reach(left - 1, 0.05, supersession=0.8)


def test_a_spent_budget_has_no_price():
    assert price(looks=9) == math.inf
    assert price(looks=9, spent=12) == math.inf  # some looks come on top
    assert price(looks=9, round=HORIZON, spent=9) == math.inf


@pytest.mark.parametrize("spent", [1, 9, 39])
def test_what_is_paid_for_is_spent(spent):
    """Even on looks that find out nothing, from the round on that every round is needed."""
    left = 40 - spent
    due = useless(looks=40, spent=spent, round=HORIZON - left + 1)
    assert due.look
    assert due.cause == Cause.DUE
    assert PricedQuery(looks=40).explain(due).startswith("every round left is needed")
    early = useless(looks=40, spent=spent, round=HORIZON - left)
    assert not early.look
    assert early.cause == Cause.DEAR
    assert not useless(looks=40, spent=40, round=HORIZON).look
    assert useless(looks=40, spent=0).cause == Cause.FIRST


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_it_costs_what_the_looks_that_can_be_afforded_were_worth(share):
    left = 100
    cost = price(looks=9 + round(share * left), round=HORIZON - left + 1)
    assert (cost <= reach(left) * LATELY).double().mean().item() == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize("unknown", [0, 13])
def test_it_is_a_quantile_of_what_is_known_of_worths(unknown):
    worths = torch.cat([LATELY - 1, torch.full((unknown,), torch.nan).double()]).roll(5)
    for left in (1, 2, 17, 80, 139, 150):
        cost = price(looks=9 + left, round=HORIZON - 150 + 1, worths=worths)
        expected = oracle.price_of_budget(left, 150, (LATELY - 1).tolist(), reach(150))
        assert cost.item() == pytest.approx(expected, rel=1e-12)


def test_each_trial_pays_by_its_own_worths():
    worths = torch.stack([LATELY, 2 * LATELY, torch.full_like(LATELY, torch.nan)])
    spent = torch.tensor([9, 20, 9])
    together = price(looks=60, spent=spent, worths=worths)
    each = [price(looks=60, spent=int(s), worths=w) for s, w in zip(spent, worths, strict=True)]
    assert together.tolist() == [float(one) for one in each]
    assert len(set(together.tolist())) == 3


def test_the_fewer_looks_are_left_the_dearer_they_are():
    spent = torch.arange(1, 40)
    prices = price(looks=40, spent=spent)
    assert prices.shape == (39,)
    assert (prices.diff() >= 0).all()
    assert prices[-1] > prices[0]
    each = torch.stack([price(looks=40, spent=int(s)) for s in spent])
    torch.testing.assert_close(prices, each)


def test_a_look_late_in_the_run_is_held_against_what_it_can_still_earn():
    """A tenth of the rounds is to be looked at, early and late."""
    prices = {left: price(looks=9 + left // 10, round=HORIZON - left + 1) for left in (150, 50, 10)}
    for left, cost in prices.items():
        tenth = LATELY.sort().values[27].item()
        assert cost.item() == pytest.approx(tenth * reach(left), rel=1e-12)


def test_a_look_is_cheaper_the_fewer_rounds_are_left_and_the_larger_the_budget():
    by_round = [price(looks=40, round=r).item() for r in range(20, HORIZON - 30)]
    assert by_round == sorted(by_round, reverse=True)
    assert by_round[0] > by_round[-1]
    by_looks = [price(looks=n, spent=1).item() for n in range(2, HORIZON)]
    assert by_looks == sorted(by_looks, reverse=True)


def test_while_little_is_known_of_worths_looks_are_free():
    few = torch.cat([LATELY[:7], torch.full((20,), torch.nan)])
    assert price(looks=40, worths=None) == 0
    assert price(looks=40, worths=few) == 0
    assert price(looks=40, worths=torch.cat([few, LATELY[7:8]])) > 0
    # A small budget is not spent on finding out.
    assert price(looks=10, spent=1, worths=LATELY[:1]) == 0
    assert price(looks=10, spent=1, worths=LATELY[:2]) > 0


def test_nobody_is_paid_for_looking():
    assert price(looks=40, worths=-LATELY) == 0


# -- runs -----------------------------------------------------------------------------------------


def run(rule, forgetting, trials=20, size=0.2):
    """Rounds x trials: looks so far, where one is worth the more the longer the last is ago."""
    generator = torch.Generator().manual_seed(1)

    def draw():
        return torch.rand(trials, generator=generator, dtype=torch.float64)

    zero, looks = torch.zeros(trials).double(), torch.zeros(trials, dtype=torch.long)
    none, live, age, history = zero.new_zeros(trials, 0), zero, zero, []
    worths = torch.full((trials, 30), torch.nan).double()
    for t in range(1, HORIZON + 1):
        gain = size * (1 - (1 - forgetting) ** age).sqrt() * (2 * draw() - 1).exp()
        prospect = Prospect(-0.05 * draw(), gain)
        contest = Contest(zero, zero, none, none, None, none.bool(), zero, prospect)
        progress = Progress(t, looks, HORIZON, forgetting, live, 0.3, worths=worths)
        verdict = rule(contest, progress, generator)
        look, worths[:, t % 30] = verdict.look, verdict.worth / rule.reach(progress)
        looks = looks + look
        live, age = (1 - forgetting) * (live + look), torch.where(look, 1.0, age + 1)
        history.append(looks.double())
    return torch.stack(history)


@pytest.mark.parametrize("forgetting", [0.003, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("budget", [20, 50, 100, 160])
def test_runs_keep_to_their_budget(forgetting, budget):
    looks = run(PricedQuery(looks=budget), forgetting)
    assert (looks[-1] == budget).all()
    assert_spread(looks.mean(-1) / budget)


def assert_spread(share):
    """Neither spent at once nor hoarded for the end."""
    assert 0.1 < share[HORIZON // 4] < 0.65
    assert 0.3 < share[HORIZON // 2] < 0.8


@pytest.mark.parametrize("size", [0.02, 2.0])
def test_the_price_is_found_whatever_a_look_is_worth(size):
    looks = run(PricedQuery(looks=50, supersession=0.0), 0.05, size=size)
    assert (looks[-1] == 50).all()
    assert_spread(looks.mean(-1) / 50)


def test_a_budget_is_spent_where_nothing_is_found_out():
    assert (run(PricedQuery(looks=50), 0.05, size=0.0)[-1] == 50).all()


def test_prices_without_a_budget_buy_the_fewer_looks_the_dearer_they_are():
    prices = (0.0, 0.2, 1.0, 5.0, math.inf)
    means = [run(PricedQuery(price=p), 0.05)[-1].mean().item() for p in prices]
    assert means == sorted(set(means), reverse=True)
    assert means[-1] == 1
