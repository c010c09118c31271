"""What every query rule must be."""

import pickle

import pytest
import torch

from botorch_costly.query import Progress
from tests.registry import QUERY_RULES
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
)


@pytest.fixture(params=QUERY_RULES)
def case(request):
    return QUERY_RULES[request.param]


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
    assert torch.equal(coins.get_state(), seeded().get_state())  # nobody asks it
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
    before, state = each(comparison, torch.clone), torch.get_rng_state()
    first = case.rule(comparison, PROGRESS, seeded())
    torch.rand(3)  # what others draw does not matter
    torch.set_rng_state(state)
    assert_equal(first, case.rule(comparison, PROGRESS, seeded()))
    assert_equal(comparison, before)
    assert torch.equal(torch.get_rng_state(), state)


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
