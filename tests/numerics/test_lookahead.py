"""The value of a query for the next one, against a naive implementation, its limits and its laws."""

import math

import pytest
import torch

from botorch_costly.numerics import knowledge_gradient, lookahead
from botorch_costly.numerics.knowledge_gradient import slopes
from botorch_costly.numerics.lookahead import lookahead_value
from tests.oracles import knowledge_gradient as oracle

NOISE = 0.05
FINE = tuple(0.04 * i for i in range(-100, 101))  # between strata


def belief(n, seed=0):
    """Mean, covariance and prior covariance of ``n`` points after a few queries."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(n, generator=generator, dtype=torch.float64)
    prior = (-4 * (points[:, None] - points).abs()).exp()
    seen = torch.randperm(n, generator=generator)[: min(3, n - 1)]
    rewards = torch.randn(len(seen), generator=generator, dtype=torch.float64)
    gram = prior[seen][:, seen] + NOISE * torch.eye(len(seen))
    weights = torch.linalg.solve(gram, prior[seen])
    return weights.mT @ rewards, prior - prior[:, seen] @ weights, prior


def beliefs(shape, n):
    """A batch of them."""
    each = [belief(n, seed) for seed in range(math.prod(shape))]
    parts = (torch.stack(tensor) for tensor in zip(*each, strict=True))
    return [tensor.view(*shape, *tensor.shape[1:]) for tensor in parts]


def gained(mean, cov, prior, picks=None, noise=NOISE, keep=0.95, effective_horizon=5.0, price=0.5):
    """The options of a query at some of the points, or at each."""
    picks = list(range(mean.shape[-1])) if picks is None else picks
    variance = cov.diagonal(dim1=-2, dim2=-1)[..., picks]
    slope = slopes(cov[..., picks, :], variance, noise)
    terms = (
        torch.as_tensor(v, dtype=torch.float64).to(mean).expand(mean.shape[:-1])
        for v in (effective_horizon, price)
    )
    return lookahead_value(mean, cov, prior, slope, noise, keep, *terms)


def exact(mean, cov, prior, effective_horizon, price, outcomes, next_outcomes):
    numbers = (tensor.tolist() for tensor in (mean, cov, prior))
    mean, cov, prior = numbers
    return [
        oracle.lookahead(
            mean, cov, prior, i, NOISE, 0.95, effective_horizon, price, outcomes, next_outcomes
        )
        for i in range(len(mean))
    ]


# -- the twin -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("keep", [1.0, 0.95, 0.5])
def test_it_is_its_twin(shape, noise, keep):
    mean, cov, prior = beliefs(shape, 5)
    trials = math.prod(shape)
    effective_horizon = torch.linspace(20, 1, trials).double().view(shape)
    price = torch.linspace(0.5, 2, trials).double().view(shape)
    picks = [4, 0, 2]
    ours = gained(mean, cov, prior, picks, noise, keep, effective_horizon, price).view(trials, 3)
    flat = (tensor.reshape(trials, *tensor.shape[len(shape) :]) for tensor in (mean, cov, prior))
    columns = (*flat, effective_horizon.reshape(-1), price.reshape(-1))
    for row, *problem in zip(ours, *(c.tolist() for c in columns), strict=True):
        m, c, k, lasting, cost = problem
        expected = [oracle.lookahead(m, c, k, i, noise, keep, lasting, cost) for i in picks]
        assert row.tolist() == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert ours.abs().max() > 0.01


def test_in_single_precision_it_is_as_close_as_it_can_be():
    parts = beliefs((6,), 8)
    single = gained(*(tensor.float() for tensor in parts), effective_horizon=20.0)
    assert single.dtype == torch.float32
    torch.testing.assert_close(
        single.double(), gained(*parts, effective_horizon=20.0), rtol=1e-5, atol=1e-4
    )


def test_few_strata_are_close_to_the_expectation():
    effective_horizon, errors, sizes = 5.0, [], []
    for seed in range(5):
        for price in (0.0, 0.5, 2.0):
            many = exact(
                *belief(5, seed), effective_horizon, price, outcomes=FINE, next_outcomes=None
            )
            few = gained(*belief(5, seed), price=price).tolist()
            errors += [a - b for a, b in zip(few, many, strict=True)]
            sizes += [abs(b) for b in many]
    errors = torch.tensor(errors)
    assert errors.abs().max() < 0.02 * effective_horizon
    assert errors.abs().mean() < 0.002 * effective_horizon
    assert max(sizes) > 0.15 * effective_horizon


def test_more_strata_find_the_expectation(monkeypatch):
    monkeypatch.setattr(lookahead, "OUTCOMES", FINE)
    monkeypatch.setattr(knowledge_gradient.mean_maximum, "__defaults__", (FINE,))
    for seed in range(2):
        expected = exact(*belief(4, seed), 5.0, 0.5, outcomes=FINE, next_outcomes=None)
        assert gained(*belief(4, seed)).tolist() == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("price", [0.0, 1.0, 3.0])
def test_of_two_questions_one_is_answered(price, monkeypatch):
    """A query at one of two independent points tells all of it: the next one is at the other."""
    monkeypatch.setattr(lookahead, "OUTCOMES", FINE)
    monkeypatch.setattr(knowledge_gradient.mean_maximum, "__defaults__", (FINE,))
    mean, cov, effective_horizon = torch.zeros(2).double(), torch.eye(2).double(), 9.0
    ours = gained(
        mean, cov, cov, [0], noise=0.0, keep=1.0, effective_horizon=effective_horizon, price=price
    )
    after = 0.0
    for i in range(-800, 801):
        z = 0.01 * i
        density = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        gain = oracle.expected_rise([z, 0.0], [0.0, 1.0])
        after += 0.01 * density * max(effective_horizon * gain - max(z, 0.0) - price, 0.0)
    waiting = max(effective_horizon / math.sqrt(2 * math.pi) - price, 0.0)
    assert ours.item() == pytest.approx(after - waiting, abs=0.01 * effective_horizon)


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("keep", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("noise", [0.0, NOISE])
def test_for_an_infinite_price_there_is_no_next_query(dtype, keep, noise):
    parts = (tensor.to(dtype) for tensor in belief(6))
    assert gained(*parts, noise=noise, keep=keep, price=math.inf).tolist() == [0.0] * 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("keep", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("known", ["nothing", "everything", "one point", "twins"])
def test_without_noise_and_price_it_is_a_number(dtype, keep, known):
    mean, cov, prior = (tensor.to(dtype) for tensor in belief(6))
    cov = {"nothing": prior, "everything": 0 * cov}.get(known, cov)
    if known == "one point":
        cov = cov - torch.outer(cov[2], cov[2]) / cov[2, 2]
    if known == "twins":
        cov, prior = (torch.ones(6, 6, dtype=dtype) for _ in range(2))
    options = gained(mean, cov, prior, noise=0.0, keep=keep, effective_horizon=50.0, price=0.0)
    assert options.isfinite().all()
    assert options.dtype == dtype
    largest = 50 * math.sqrt(2 * math.log(6)) * prior.max()  # of E max of so many deviations
    assert (options.abs() <= largest).all()


def test_a_query_that_tells_nothing_changes_nothing():
    mean, cov, prior = beliefs((4,), 6)
    slope, number = torch.zeros(4, 1, 6).double(), torch.ones(4).double()
    options = lookahead_value(mean, cov, prior, slope, NOISE, 0.9, 9 * number, 0.1 * number)
    assert (options.abs() < 1e-9).all()
    # Nor does one that is forgotten a round later,
    assert (gained(mean, cov, prior, keep=0.0, effective_horizon=9.0, price=0.1).abs() < 1e-9).all()
    # or that earns nothing.
    assert (gained(mean, cov, prior, effective_horizon=0.0, price=0.0).abs() < 1e-9).all()
    assert (gained(mean, cov, prior, effective_horizon=9.0, price=0.1).abs() > 0.01).any()


# -- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("one_prior", [False, True])
def test_a_batch_is_a_loop(one_prior):
    mean, cov, prior = beliefs((2, 3), 5)
    prior = prior[0, 0] if one_prior else prior
    effective_horizon, price = torch.rand(
        2, 2, 3, generator=torch.Generator().manual_seed(1)
    ).double()
    together = gained(
        mean, cov, prior, [3, 1], effective_horizon=9 * effective_horizon, price=price
    )
    assert together.shape == (2, 3, 2)
    for i in range(2):
        for j in range(3):
            mine = prior if one_prior else prior[i, j]
            terms = {"effective_horizon": 9 * effective_horizon[i, j], "price": price[i, j]}
            alone = gained(mean[i, j], cov[i, j], mine, [3, 1], **terms)
            torch.testing.assert_close(together[i, j], alone, rtol=1e-12, atol=1e-12)
            each = [gained(mean[i, j], cov[i, j], mine, [k], **terms).item() for k in (3, 1)]
            assert alone.tolist() == pytest.approx(each, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_neither_order_nor_level_nor_unit_matters(seed):
    mean, cov, prior = belief(7, seed)
    options = gained(mean, cov, prior)
    close = {"rtol": 1e-9, "atol": 1e-11}
    order = torch.randperm(7, generator=torch.Generator().manual_seed(seed))
    shuffled = (mean[order], cov[order][:, order], prior[order][:, order])
    torch.testing.assert_close(gained(*shuffled), options[order], **close)
    torch.testing.assert_close(gained(mean + 8, cov, prior), options, **close)
    for unit in (1e-3, 1e3):
        scaled = (unit * mean, unit**2 * cov, unit**2 * prior)
        ours = gained(*scaled, noise=unit**2 * NOISE, price=0.5 * unit)
        torch.testing.assert_close(ours / unit, options, **close)
    one_number = torch.tensor(NOISE, dtype=torch.float64)
    torch.testing.assert_close(gained(mean, cov, prior, noise=one_number), options, **close)


def test_it_does_not_matter_which_way_a_query_turns_out_high():
    mean, cov, prior = beliefs((5,), 6)
    slope, number = slopes(cov, cov.diagonal(dim1=-2, dim2=-1), NOISE), torch.ones(5).double()
    terms = (NOISE, 0.9, 9 * number, 0.1 * number)
    torch.testing.assert_close(
        lookahead_value(mean, cov, prior, -slope, *terms),
        lookahead_value(mean, cov, prior, slope, *terms),
    )


def test_it_moves_no_faster_than_the_price():
    parts = beliefs((8,), 6)
    prices = torch.linspace(0, 12, 40, dtype=torch.float64).tolist()
    options = torch.stack([gained(*parts, effective_horizon=9.0, price=price) for price in prices])
    assert (options.diff(dim=0).abs() <= prices[1] - prices[0] + 1e-12).all()
    assert (options[-1].abs() < 1e-12).all()  # nothing is worth that much


def test_where_waiting_earns_nothing_it_is_a_chance_and_the_smaller_the_dearer():
    mean, cov, prior = beliefs((8,), 6)
    # For nothing, a query that tells nothing leaves what the next one earns.
    earns = lookahead._net_value(
        0.95 * mean[:, None, :, None],
        (0.95**2 * cov + (1 - 0.95**2) * prior).unsqueeze(-3),
        NOISE,
        torch.full((8,), 9.0).double(),
        torch.zeros(8).double(),
    ).view(8)
    dear = [
        gained(mean, cov, prior, effective_horizon=9.0, price=earns + more)
        for more in (0.0, 0.1, 0.5)
    ]
    assert (torch.stack(dear) >= 0).all()
    assert (torch.stack(dear).diff(dim=0) <= 0).all()
    assert (dear[0].amax(-1) > dear[2].amax(-1)).all()
