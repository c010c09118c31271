"""The priced query against its one-trial twin: price, effective horizon, units and words."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    Cause,
    ConfidenceBoundQuery,
    ConfidenceQuery,
    MixedQuery,
    PricedQuery,
    Progress,
    Prospect,
    Verdict,
)
from tests.oracles import knowledge_gradient as oracle
from tests.strategies import comparisons, duel, each

HALFWAY = Progress(
    50,
    9,
    100,
    forgetting=0.05,
    effective_queries=3.0,
    information_share=0.3,
    scale=1.0,
    reward_rate=0.2,
)
SECONDS = {"price_seconds": 30.0, "round_seconds": 60.0}
NAMED = {"supersession": 0.4, "lookahead_weight": 0.5}  # whatever the defaults are


def weighed(mean=1.0, play=1.0, gain=0.0, lookahead=0.0):
    """A comparison of the best play against a query, without a batch."""
    number = torch.tensor([mean, gain, lookahead], dtype=torch.float64)
    return duel(play, 1.0, 0.0, 1.0)._replace(prospect=Prospect(*number))


def value_of(rule, progress=HALFWAY, **prospect):
    return rule(weighed(**prospect), progress, None).value


def price(rule, progress):
    return rule(weighed(), progress, None).price


# -- the twin -------------------------------------------------------------------------------------


@pytest.mark.parametrize("forgetting", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("now", [1, 20, 99, 100])
@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_the_effective_horizon_is_the_sum_over_the_rounds_left(forgetting, now, discount):
    live = torch.tensor([0.0, 0.7, 12.5, 400.0], dtype=torch.float64)
    progress = Progress(now, 3, 100, forgetting, live, information_share=0.3)
    rule = PricedQuery(price=1.0, discount=discount, supersession=0.6)
    expected = [
        oracle.effective_horizon(100 - now, forgetting, one, 0.3, discount, supersession=0.6)
        for one in live.tolist()
    ]
    assert rule.effective_horizon(progress).tolist() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("amount", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("scale", [1.0, 0.02])
@pytest.mark.parametrize("lookahead_weight", [0.0, 0.4, 1.0])
def test_it_is_its_twin_with_queries_and_memory_of_each_trial(
    amount, scale, lookahead_weight, generator
):
    batch = comparisons((200,), 3, generator)
    queries = torch.randint(3, (200,), generator=generator)
    live = queries * torch.rand(200, generator=generator, dtype=torch.float64)
    progress = HALFWAY._replace(queries=queries, effective_queries=live, scale=scale)
    rule = PricedQuery(price=amount * scale, supersession=0.4, lookahead_weight=lookahead_weight)
    verdict = rule(batch, progress, generator)
    expected, columns = [], (live, queries, batch.mean, *batch.prospect)
    for effective, paid, *numbers in zip(*(c.tolist() for c in columns), strict=True):
        effective_horizon = oracle.effective_horizon(50, 0.05, effective, 0.3, supersession=0.4)
        best, mean, gain, lookahead = (scale * number for number in numbers)
        terms = (best, mean, gain, effective_horizon, amount * scale, paid)
        expected.append(oracle.wants_query(*terms, lookahead, lookahead_weight))
    assert verdict.query.tolist() == expected
    assert 0 < sum(expected) < 200
    assert torch.equal(verdict.cause == Cause.FIRST, queries == 0)
    assert torch.equal(verdict.query, (verdict.value > verdict.price) | (queries == 0))
    assert verdict.confidence.isnan().all()


@pytest.mark.parametrize("rule", [PricedQuery(price=0.4), PricedQuery(budget=30)])
def test_a_batch_with_queries_of_its_own_is_a_loop(rule, generator):
    many = comparisons((6,), 2, generator)
    queries, live = torch.arange(6), torch.linspace(0, 9, 6).double()
    together = rule(many, HALFWAY._replace(queries=queries, effective_queries=live), generator)
    for i in range(6):
        progress = HALFWAY._replace(queries=int(queries[i]), effective_queries=live[i])
        one = rule(each(many, lambda x: x[i]), progress, generator)  # noqa: B023
        assert one.query == together.query[i]
        assert one.cause == together.cause[i]
        torch.testing.assert_close(one.value, together.value[i])
        torch.testing.assert_close(one.price, together.price[i])


# -- price ----------------------------------------------------------------------------------------


def test_a_free_query_is_taken_whenever_it_can_help():
    rule = PricedQuery(price=0.0)
    assert rule(weighed(gain=1e-12), HALFWAY, None).query
    assert not rule(weighed(gain=0.0), HALFWAY, None).query
    assert not rule(weighed(mean=0.5, gain=1e-12), HALFWAY, None).query  # playing it costs more
    last = HALFWAY._replace(round=100)  # no round is left to profit
    assert not rule(weighed(gain=5.0), last, None).query


def test_an_infinite_price_queries_once():
    rule = PricedQuery(price=math.inf)
    assert rule(weighed(), HALFWAY._replace(queries=0), None).cause == Cause.FIRST
    verdict = rule(weighed(gain=1e9), HALFWAY, None)
    assert not verdict.query
    assert verdict.cause == Cause.DOES_NOT_PAY
    assert verdict.price == math.inf


def test_the_price_is_what_a_query_must_earn():
    earns = oracle.effective_horizon(50, 0.05, 3.0, 0.3, supersession=0.4) * 0.02 + 0.5 * 0.3 - 0.1
    for gap in (-1e-9, 1e-9):
        rule = PricedQuery(price=earns + gap, **NAMED)
        verdict = rule(weighed(mean=0.9, gain=0.02, lookahead=0.3), HALFWAY, None)
        assert verdict.query == (gap < 0)
        assert (verdict.value - verdict.price).item() == pytest.approx(-gap, rel=1e-4)


def test_a_price_in_seconds_is_what_training_would_earn_meanwhile():
    rule = PricedQuery(**SECONDS)
    assert price(rule, HALFWAY).item() == pytest.approx(30 / 60 * 0.2)
    for reward_rate in (None, 0.0, -0.3):  # time is worth nothing where training earns nothing
        assert price(rule, HALFWAY._replace(reward_rate=reward_rate)) == 0


@pytest.mark.parametrize(
    "reward_rate",
    [0.2, None, 0.0, -0.3],
)
def test_infinitely_many_seconds_are_never_spent(reward_rate):
    rule = PricedQuery(price_seconds=math.inf, round_seconds=60.0)
    verdict = rule(weighed(gain=1.0), HALFWAY._replace(reward_rate=reward_rate), None)
    assert not verdict.query
    assert verdict.price == math.inf


@pytest.mark.parametrize("unit", [1000.0, 1e-6])
def test_the_unit_of_the_reward_does_not_matter(unit, generator):
    batch = comparisons((100,), 2, generator)
    far = HALFWAY._replace(scale=2.0 * unit, reward_rate=0.2 * unit)
    near = HALFWAY._replace(scale=2.0)
    for small, large in [
        (PricedQuery(price=0.7), PricedQuery(price=0.7 * unit)),
        (PricedQuery(**SECONDS), PricedQuery(**SECONDS)),
        (PricedQuery(budget=30), PricedQuery(budget=30)),
    ]:
        ours, theirs = small(batch, near, generator), large(batch, far, generator)
        assert torch.equal(ours.query, theirs.query)
        torch.testing.assert_close(theirs.price, unit * ours.price)
        torch.testing.assert_close(theirs.value, unit * ours.value)
        torch.testing.assert_close(theirs.rate, ours.rate)
        assert 0 < ours.query.sum() < 100


# -- effective horizon ------------------------------------------------------------


def effective_horizon(rule=None, **changes):
    rule = rule or PricedQuery(price=1.0, supersession=0.4)
    return float(rule.effective_horizon(HALFWAY._replace(**changes)))


def test_where_nothing_fades_every_round_left_counts():
    assert effective_horizon(forgetting=0.0) == 50
    assert effective_horizon(forgetting=0.0, round=100) == 0
    assert effective_horizon(forgetting=0.0, round=130) == 0  # a run may outlast its horizon
    assert effective_horizon(forgetting=1.0) == 0
    assert effective_horizon(forgetting=1e-13) == pytest.approx(50, rel=1e-3)


def test_alone_and_for_ever_a_query_lasts_two_lifetimes():
    for forgetting in (0.001, 0.01, 0.1):
        lasting = effective_horizon(forgetting=forgetting, effective_queries=0.0, horizon=10**9)
        assert lasting == pytest.approx(2 / forgetting, rel=forgetting)


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ("forgetting", [0.0, 0.001, 0.01, 0.1, 0.5, 1.0]),
        ("effective_queries", [0.0, 1.0, 5.0, 20.0]),
        ("information_share", [0.0, 0.2, 0.6, 1.0]),
        ("round", [1, 30, 80, 99, 100]),
    ],
)
def test_the_effective_horizon_falls_with(change, values):
    reaches = [effective_horizon(**{change: value}) for value in values]
    assert reaches == sorted(reaches, reverse=True)
    assert len(set(reaches)) == len(values)


def test_the_effective_horizon_falls_with_supersession_and_discount():
    for rules in (
        [PricedQuery(price=1.0, supersession=s) for s in (0.0, 0.4, 2.0)],
        [PricedQuery(price=1.0, discount=d) for d in (1.0, 0.99, 0.5)],
    ):
        reaches = [effective_horizon(rule) for rule in rules]
        assert reaches == sorted(set(reaches), reverse=True)
    assert (
        effective_horizon(PricedQuery(price=1.0, supersession=1e6)) == 0
    )  # a share is at most all


def test_without_a_horizon_the_discount_ends_the_sum():
    rule = PricedQuery(price=1.0, discount=0.9, supersession=0.4)
    rule.check_run(None)
    assert effective_horizon(rule, forgetting=0.0, horizon=None) == pytest.approx(0.9 / (1 - 0.9))
    expected = oracle.effective_horizon(2000, 0.05, 3.0, 0.3, 0.9, supersession=0.4)
    assert effective_horizon(rule, horizon=None) == pytest.approx(expected)


def test_a_horizon_of_its_own_comes_before_that_of_the_run():
    rule = PricedQuery(price=1.0, horizon=60)
    rule.check_run(None)
    assert effective_horizon(rule, forgetting=0.0, horizon=None) == 10
    assert effective_horizon(rule, forgetting=0.0, horizon=500) == 10


# -- lookahead weight ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lookahead_weight", [0.0, 0.25, 1.0])
def test_of_the_lookahead_a_share_counts(lookahead_weight):
    rule = PricedQuery(price=0.3, lookahead_weight=lookahead_weight)
    plain = value_of(rule, gain=0.01)
    for lookahead in (-0.4, 0.8):
        with_lookahead = value_of(rule, gain=0.01, lookahead=lookahead)
        assert (with_lookahead - plain).item() == pytest.approx(
            lookahead_weight * lookahead, abs=1e-15
        )


def test_an_lookahead_alone_may_be_worth_a_query():
    rules = [PricedQuery(price=0.3, lookahead_weight=share) for share in (0.0, 0.5)]
    assert [bool(rule(weighed(lookahead=1.0), HALFWAY, None).query) for rule in rules] == [
        False,
        True,
    ]
    # And one that would be missed may keep from it.
    queries = [rule(weighed(mean=1.4, lookahead=-1.0), HALFWAY, None).query for rule in rules]
    assert [bool(query) for query in queries] == [True, False]


def test_a_prospect_need_not_tell_of_an_lookahead():
    comparison = weighed(gain=0.02)
    silent = comparison._replace(prospect=Prospect(*comparison.prospect[:2]))
    rule = PricedQuery(price=0.3, lookahead_weight=1.0)
    assert rule(silent, HALFWAY, None).value == rule(comparison, HALFWAY, None).value


@pytest.mark.parametrize("bad", [-1e-9, 1.0 + 1e-9, math.nan, math.inf, "0.5", True, None])
def test_a_lookahead_weight_that_is_no_share_is_named(bad):
    with pytest.raises(InvalidArgumentError, match="lookahead_weight: Expected a number in"):
        PricedQuery(price=1.0, lookahead_weight=bad)


def test_the_outlook_is_effective_horizon_price_and_lookahead_weight(generator):
    live = torch.rand(6, generator=generator, dtype=torch.float64)
    progress = HALFWAY._replace(effective_queries=live, scale=0.5)
    for rule, amount in (
        (PricedQuery(price=0.3, lookahead_weight=0.7), 0.3 / 0.5),
        (PricedQuery(**SECONDS, lookahead_weight=0.7), 30 / 60 * 0.2 / 0.5),
        (PricedQuery(price=math.inf, lookahead_weight=0.7), math.inf),
    ):
        outlook = rule.outlook(progress)
        assert torch.equal(outlook.effective_horizon, rule.effective_horizon(progress))
        assert float(outlook.price) == pytest.approx(amount)
        assert outlook.lookahead_weight == 0.7
    query_values = torch.rand(6, 30, generator=generator, dtype=torch.float64)
    progress = progress._replace(query_values=query_values, queries=torch.arange(4, 10))
    budget = PricedQuery(budget=30)
    verdict = budget(comparisons((6,), 0, generator), progress, generator)
    assert torch.equal(0.5 * budget.outlook(progress).price, verdict.price)
    assert len(set(verdict.price.tolist())) == 6


def test_trials_that_share_what_queries_were_worth_pay_for_their_own_need(generator):
    """One trial has spent more of its budget than the other."""
    query_values = torch.arange(30, dtype=torch.float64)
    progress = HALFWAY._replace(query_values=query_values, queries=torch.tensor([5, 25]))
    thrifty, lavish = PricedQuery(budget=30).outlook(progress).price.tolist()
    assert thrifty < lavish
    for queries, price in ((5, thrifty), (25, lavish)):
        alone = PricedQuery(budget=30).outlook(progress._replace(queries=queries)).price
        assert float(alone) == price


def test_an_outlook_stops_as_the_run_would():
    with pytest.raises(InvalidArgumentError, match="horizon: Expected a number"):
        PricedQuery(price=1.0).outlook(HALFWAY._replace(horizon=None))


@pytest.mark.parametrize(
    "rule",
    [
        AlwaysQuery(),
        BernoulliQuery(0.5),
        ConfidenceQuery(),
        ConfidenceBoundQuery(),
        MixedQuery(2, 7, 10),
    ],
)
def test_other_rules_have_no_outlook(rule):
    assert rule.outlook(HALFWAY) is None


# -- words ----------------------------------------------------------------------------------------


def test_it_says_what_the_query_is_worth_and_what_it_costs():
    rule = PricedQuery(price=0.5)
    words = [
        rule.explain(
            rule(weighed(gain=gain), HALFWAY._replace(queries=queries, forgetting=0.0), None)
        )
        for gain, queries in [(0.02, 9), (0.005, 9), (0.02, 0)]
    ]
    assert words == [
        "a query is worth its price (value 1, price 0.5)",
        "a query is not worth its price (value 0.25, price 0.5)",
        "nothing is known yet (value 1, price 0.5)",
    ]
    dear = PricedQuery(price=math.inf)
    assert dear.explain(dear(weighed(), HALFWAY, None)).endswith("price inf)")


def test_inside_another_rule_it_keeps_its_outlook_and_its_reasons():
    alone = PricedQuery(price=0.5, **NAMED)
    rule = MixedQuery(0, 100, 100, alone)
    assert rule.reads_rewards
    assert not rule.needs_rivals
    assert not MixedQuery(0, 10, 100, PricedQuery(budget=7)).reads_rewards
    assert rule.outlook(HALFWAY) == alone.outlook(HALFWAY)
    assert rule.outlook(HALFWAY._replace(horizon=None)) == alone.outlook(HALFWAY)
    coins = torch.Generator().manual_seed(0)
    verdict = rule(weighed(gain=0.02), HALFWAY, coins)
    assert verdict.cause == Cause.DOES_NOT_PAY
    assert verdict.value == value_of(alone, gain=0.02)
    assert rule(weighed(gain=0.2), HALFWAY, coins).cause == Cause.PAYS
    assert rule(weighed(gain=0.02, lookahead=1.0), HALFWAY, coins).cause == Cause.PAYS


def test_another_rule_repeats_what_a_query_is_worth():
    alone = PricedQuery(price=1.0)
    verdict = Verdict(*(torch.tensor(v) for v in (True, math.nan, int(Cause.PAYS), 3.0, 1.0)))
    assert MixedQuery(0, 5, 10, alone).explain(verdict) == alone.explain(verdict)
    assert "value 3, price 1" in alone.explain(verdict)


@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("rate", [0.0, 1e-12, 0.01, 1.0])
@pytest.mark.parametrize("effective", [0.0, 3.0, 1e9])
def test_numbers_and_tensors_give_one_effective_horizon(discount, rate, effective):
    rule = PricedQuery(price=0.1, discount=discount)
    numbers = Progress(7, 2, 60, rate, effective_queries=effective, information_share=0.4)
    tensors = numbers._replace(
        effective_queries=torch.tensor([effective, effective], dtype=torch.float64)
    )
    once, twice = rule.effective_horizon(numbers), rule.effective_horizon(tensors)
    assert once.shape == ()
    torch.testing.assert_close(twice, once.expand(2), rtol=1e-12, atol=1e-12)
