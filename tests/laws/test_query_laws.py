"""What every query rule must be."""

import math
import pickle

import pytest
import torch

from botorch_costly.query import (
    Cause,
    ConfidenceBoundQuery,
    ConfidenceQuery,
    PricedQuery,
    Progress,
    Verdict,
)
from tests.registry.query_rules import QUERY_RULES
from tests.strategies import comparisons, each, tensors

QUERY_VALUES = torch.linspace(-0.5, 2.5, 20)
PROGRESS = Progress(
    4,
    2,
    50,
    0.1,
    effective_queries=1.7,
    information_share=0.4,
    scale=1.5,
    reward_rate=0.1,
    query_values=QUERY_VALUES,
    affordable=18.5,
)


@pytest.fixture(params=QUERY_RULES)
def case(request):
    return QUERY_RULES[request.param]


def progress_of(trials):
    """Return the progress of some trials, each with numbers of its own."""
    queries = torch.arange(trials) + 2
    values = QUERY_VALUES + 0.01 * queries.unsqueeze(-1)
    return PROGRESS._replace(queries=queries, effective_queries=0.7 * queries, query_values=values)


def seeded(device="cpu"):
    return torch.Generator(device=device).manual_seed(4)


def assert_equal(one, other):
    for ours, theirs in zip(tensors(one), tensors(other), strict=True):
        torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("batch", [(6,), (2, 3)])
@pytest.mark.parametrize("rivals", [0, 3])
def test_a_batch_is_a_loop(case, batch, rivals, generator):
    many = comparisons(batch, rivals, generator)
    together = case.rule(many, PROGRESS, seeded())
    assert together.query.shape == together.confidence.shape == together.cause.shape == batch
    for i in range(6):
        # A coin of its own for each trial: the loop hears only what does not depend on coins.
        alone = each(many, lambda x: x.flatten(0, len(batch) - 1)[i])  # noqa: B023
        verdict = case.rule(alone, PROGRESS, seeded())
        assert verdict.query.shape == ()
        if not case.tosses:
            assert_equal(verdict, [x.flatten()[i] for x in tensors(together)])
        else:
            confidence = together.confidence.flatten()[i]
            torch.testing.assert_close(verdict.confidence, confidence, equal_nan=True)


def test_coins_drawn_beforehand_make_every_rule_a_loop(case, generator):
    many, coin = comparisons((40,), 3, generator), torch.rand(40, generator=generator).double()
    coins = seeded()
    together = case.rule(many, PROGRESS._replace(coin=coin), coins)
    assert torch.equal(coins.get_state(), seeded().get_state())  # it is not drawn from
    for i in range(40):
        alone = each(many, lambda x: x[i])  # noqa: B023
        verdict = case.rule(alone, PROGRESS._replace(coin=coin[i]), coins)
        assert_equal(verdict, [x[i] for x in tensors(together)])


def test_trials_toss_their_own_coins(case, generator):
    one = comparisons((), 2, generator, absent=0.0)
    one = one._replace(mean=one.mean * 0, rival_mean=one.rival_mean * 0)
    many = each(one, lambda x: x.expand(500, *x.shape))
    queries = case.rule(many, PROGRESS, seeded()).query
    hard = getattr(case.rule, "hard", False)  # queries at every comparison without a favourite
    assert (0 < queries.sum() < 500) == (case.tosses and not hard)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_and_device_are_kept(case, dtype, generator, tkwargs):
    device = tkwargs["device"]
    comparison = comparisons((5,), 2, generator, dtype=dtype, device=device)
    queries = torch.full((5,), 2, device=device)
    query_values = QUERY_VALUES.expand(5, -1).to(device)
    progress = PROGRESS._replace(
        queries=queries, effective_queries=0.7 * queries, query_values=query_values
    )
    verdict = case.rule(comparison, progress, seeded(device))
    assert [x.dtype for x in verdict[:3]] == [torch.bool, dtype, torch.long]
    assert {x.dtype for x in (verdict.value, verdict.price) if x is not None} <= {dtype}
    assert {x.device.type for x in tensors(verdict)} == {device.type}


def test_a_rule_is_a_function_of_its_inputs_alone(case, generator):
    comparison = comparisons((50,), 3, generator)
    progress = progress_of(50)
    before, state = each((comparison, progress), torch.clone), torch.get_rng_state()
    rule = pickle.dumps(case.rule)
    first = case.rule(comparison, progress, seeded())
    told = each(first, torch.clone)
    torch.rand(3)  # what others draw does not matter
    torch.set_rng_state(state)
    case.rule.outlook(progress)
    assert_equal(first, case.rule(comparison, progress, seeded()))
    assert_equal((comparison, progress), before)
    assert_equal(first, told)  # asking again leaves what was handed out before
    assert pickle.dumps(case.rule) == rule
    assert torch.equal(torch.get_rng_state(), state)


def test_the_rule_of_a_run_leaves_the_callers_as_it_was(case, generator):
    rule = pickle.dumps(case.rule)
    ours = case.rule.for_run(lambda rounds: (rounds + 1) // 2, 50)
    assert pickle.dumps(case.rule) == rule
    assert type(ours) is type(case.rule)
    verdict = ours(comparisons((), 3, generator), PROGRESS, seeded())
    assert ours.explain(verdict) == case.rule.explain(verdict)
    note = case.rule.unspendable(lambda rounds: (rounds + 1) // 2, 50)
    assert note is None or "cannot be spent" in note or "will be spent" in note


def test_only_tossing_rules_read_the_generator(case, generator):
    coins = seeded()
    case.rule(comparisons((50,), 3, generator), PROGRESS, coins)
    assert torch.equal(coins.get_state(), seeded().get_state()) != case.tosses


def test_the_global_generator_is_left_alone(case, generator):
    state = torch.get_rng_state()
    case.rule(comparisons((50,), 3, generator), PROGRESS, seeded())
    assert torch.equal(torch.get_rng_state(), state)


def test_pickling_keeps_it(case, generator):
    copy = pickle.loads(pickle.dumps(case.rule))
    assert copy == case.rule
    comparison = comparisons((50,), 3, generator)
    assert_equal(copy(comparison, PROGRESS, seeded()), case.rule(comparison, PROGRESS, seeded()))


def test_every_verdict_can_be_explained(case, generator):
    for _ in range(20):
        verdict = case.rule(comparisons((), 3, generator), PROGRESS, generator)
        assert case.rule.explain(verdict)


@pytest.mark.parametrize("cause", [*Cause, 57, 100])
def test_no_verdict_is_too_odd_to_be_explained(case, cause):
    for number in (math.nan, math.inf, -math.inf, 0.0):
        odd = torch.tensor(number)
        verdict = Verdict(torch.tensor(True), odd, torch.tensor(int(cause)), odd, odd, odd)
        assert case.rule.explain(verdict), number
        assert case.rule.explain(verdict._replace(value=None, price=None, rate=None)), number


ODD = [math.nan, math.inf, -math.inf, 1e308, -1e308]


@pytest.mark.parametrize("number", ODD)
@pytest.mark.parametrize(
    "part", ["mean", "variance", "rival_mean", "rival_variance", "rival_covariance", "prospect"]
)
def test_numbers_beyond_all_bounds_give_a_verdict(case, number, part, generator):
    """One trial of three has such a number; what the others decide does not hear of it."""
    calm = comparisons((3,), 2, generator, absent=0.0)
    odd = each(calm, torch.clone)
    for tensor in tensors([getattr(odd, part)]):
        tensor[1] = abs(number) if "variance" in part else number
    coins = progress_of(3)._replace(coin=torch.tensor([0.3, 0.5, 0.9]).double())
    verdict = case.rule(odd, coins, seeded())
    expected = case.rule(calm, coins, seeded())
    assert verdict.query.dtype == torch.bool
    assert set(verdict.cause.tolist()) <= set(Cause)
    asked = verdict.confidence[~verdict.confidence.isnan()]
    assert ((asked >= 0) & (asked <= 1)).all()
    for i in (0, 2):
        one, other = ([x[i] for x in tensors(v)] for v in (verdict, expected))
        assert_equal(one, other)
    assert case.rule.explain(Verdict(*(x if x is None else x[1] for x in verdict)))


def test_a_belief_that_is_no_number_is_no_confidence(case, generator):
    """Rules by confidence query then; a priced one does not buy what it cannot value."""
    unknown = each(comparisons((), 2, generator, absent=0.0), lambda x: x)
    unknown = unknown._replace(mean=unknown.mean * math.nan)
    verdict = case.rule(unknown, PROGRESS._replace(queries=9), seeded())
    if isinstance(case.rule, ConfidenceQuery | ConfidenceBoundQuery):
        assert verdict.query
    if isinstance(case.rule, PricedQuery):
        assert not verdict.query


def test_a_rule_says_whether_it_has_an_outlook(case):
    assert case.rule.has_outlook == (case.rule.outlook(progress_of(3)) is not None)
