"""Trials of a batch of beliefs on a grid, each of which queries and forgets by itself."""

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import DriftingGrid
from tests.models.grids import EXACT, NOISE, prior_cov, run


@pytest.mark.parametrize("forgetting", [0.0, 0.05, 0.9])
def test_a_batch_is_a_loop(forgetting):
    prior, batch = prior_cov(8), torch.Size([2, 3])
    many = DriftingGrid(prior, forgetting, NOISE, batch)
    alone = [DriftingGrid(prior, forgetting, NOISE) for _ in range(6)]
    generator = torch.Generator().manual_seed(2)
    for r in range(60):
        index = torch.randint(8, batch, generator=generator)
        y = torch.randn(batch, generator=generator, dtype=torch.float64)
        query = torch.rand(batch, generator=generator) < torch.linspace(0.1, 1, 6).view(batch)
        y[~query] = torch.nan  # ignored
        log_prob = many.observe(index, y, query)
        for grid, i, value, queries, expected in zip(
            alone, index.view(-1), y.view(-1), query.view(-1), log_prob.view(-1), strict=True
        ):
            step = grid.observe(i, value) if queries else torch.zeros(()).double()
            torch.testing.assert_close(step, expected)
        if r == 30:
            which = torch.tensor([[True, False, False], [False, True, False]])
            many.restart(which)
            alone[0].restart()
            alone[4].restart()
        for model in (many, *alone):
            model.wait(r % 3)
    for name in ("mean", "variance"):
        expected = torch.stack([getattr(grid, name) for grid in alone]).view(2, 3, 8)
        torch.testing.assert_close(getattr(many, name), expected, **EXACT)
    columns = torch.stack([grid.covariance(torch.tensor(5)) for grid in alone]).view(2, 3, 8)
    torch.testing.assert_close(many.covariance(torch.full(batch, 5)), columns, **EXACT)
    X = torch.tensor([[1.0], [5.0]]).expand(4, 1, 1, 2, 1)  # four questions to each trial
    joint = many.posterior(X)
    assert joint.mean.shape == (4, 2, 3, 2, 1)
    last = alone[5].posterior(X[0, 0, 0], observation_noise=True)
    torch.testing.assert_close(joint.mean[3, 1, 2], last.mean)
    noisy = many.posterior(X, observation_noise=True).mvn.covariance_matrix[3, 1, 2]
    torch.testing.assert_close(noisy, last.mvn.covariance_matrix)
    plain = joint.mvn.covariance_matrix[3, 1, 2]
    torch.testing.assert_close(noisy - plain, NOISE * torch.eye(2).double(), rtol=0, atol=1e-15)


def test_every_trial_may_forget_at_its_own_rate():
    rates = torch.tensor([[0.0, 0.05], [0.3, 1.0]], dtype=torch.float64)
    many = DriftingGrid(prior_cov(), rates, NOISE, torch.Size([2, 2]))
    alone = [DriftingGrid(prior_cov(), rate, NOISE) for rate in rates.flatten().tolist()]
    generator = torch.Generator().manual_seed(4)
    for r in range(90):
        index = torch.randint(12, (2, 2), generator=generator)
        y = torch.randn(2, 2, generator=generator, dtype=torch.float64)
        query = torch.rand(2, 2, generator=generator) < 0.7
        which = torch.rand(2, 2, generator=generator) < 0.5 if r % 3 == 0 else None
        many.observe(index, y, query)
        many.wait(1 + r % 2, which)
        for i, grid in enumerate(alone):
            if query.view(-1)[i]:
                grid.observe(index.view(-1)[i], y.view(-1)[i])
            if which is None or which.view(-1)[i]:
                grid.wait(1 + r % 2)
    for name in ("mean", "variance"):
        expected = torch.stack([getattr(grid, name) for grid in alone]).view(2, 2, 12)
        torch.testing.assert_close(getattr(many, name), expected, **EXACT)
    columns = torch.stack([grid.covariance(torch.tensor(5)) for grid in alone]).view(2, 2, 12)
    torch.testing.assert_close(many.covariance(torch.full((2, 2), 5)), columns, **EXACT)


@pytest.mark.parametrize(
    ("rates", "error"),
    [(torch.zeros(3), InvalidShapeError), (torch.tensor([0.1, 1.1]), InvalidArgumentError)],
)
def test_rates_that_do_not_fit_are_named(rates, error):
    with pytest.raises(error, match=r"forgetting: Expected .*; Received"):
        DriftingGrid(torch.eye(3), rates, NOISE, torch.Size([2]))


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("forgetting", [0.0, 0.05, 0.9])
def test_trials_that_query_seldom_among_others_that_query_often(share, forgetting):
    """However the terms of those that query are summed, and whenever their rings come round."""
    prior, batch = prior_cov(8), torch.Size([6])
    many = DriftingGrid(prior, forgetting, NOISE, batch, capacity=5)
    alone = [DriftingGrid(prior, forgetting, NOISE) for _ in range(6)]
    rates = share * torch.linspace(0.2, 1, 6)
    generator = torch.Generator().manual_seed(2)
    for _ in range(120):
        index = torch.randint(8, batch, generator=generator)
        y = torch.randn(batch, generator=generator, dtype=torch.float64)
        query = torch.rand(batch, generator=generator) < rates
        many.take_in(index, y, query)
        many.wait()
        for grid, i, value, queries in zip(alone, index, y, query, strict=True):
            if queries:
                grid.observe(i, value)
            grid.wait()
    for name in ("mean", "variance"):
        expected = torch.stack([getattr(grid, name) for grid in alone])
        torch.testing.assert_close(getattr(many, name), expected, **EXACT)
    everywhere = torch.arange(8)
    joint = many.covariance_on_sublattice(everywhere.expand(6, 8), 1)
    expected = torch.stack([grid.covariance_on_sublattice(everywhere, 1) for grid in alone])
    torch.testing.assert_close(joint, expected, rtol=0, atol=1e-5)


def test_one_entry_of_the_batch_is_a_belief():
    many = DriftingGrid(prior_cov(), torch.full((2, 3), 0.1).double(), NOISE, torch.Size([2, 3]))
    run(many, 40)
    grid, at = many.select(1), torch.tensor([4, 0, 7])
    assert grid.batch_shape == (3,)
    assert torch.equal(grid.mean, many.mean[1])
    assert torch.equal(grid.variance, many.variance[1])
    both = torch.stack([torch.zeros_like(at), at])
    torch.testing.assert_close(grid.covariance(at), many.covariance(both)[1], rtol=0, atol=1e-14)
    assert torch.equal(grid.forgetting, many.forgetting[1])
    with pytest.raises(InvalidArgumentError, match=r"index: Expected a number in 0\.\.1"):
        many.select(2)


@pytest.mark.parametrize("rates", [0.1, [0.1, 0.5]], ids=["one rate", "rates of trials"])
@pytest.mark.parametrize("waited", [False, True])
def test_an_entry_goes_on_by_itself(rates, waited):
    """Caches of a batch are not used for a selection, and updates of a selection do not change the batch.

    The kind: a cache that outlives a change of what it was computed for.
    """
    rates = torch.tensor(rates, dtype=torch.float64) if isinstance(rates, list) else rates
    many = DriftingGrid(prior_cov(), rates, NOISE, torch.Size([2]))
    index, y = torch.tensor([3, 3]), torch.tensor([1.0, -1.0], dtype=torch.float64)
    many.observe(index, y)
    if waited:
        many.wait(1)
    before = {name: tensor.clone() for name, tensor in many.get_extra_state().items()}
    for i in range(2):
        rate = float(rates[i]) if isinstance(rates, torch.Tensor) else rates
        alone = DriftingGrid(prior_cov(), rate, NOISE)
        alone.observe(index[i], y[i])
        grid = many.select(i)
        if waited:
            alone.wait(1)
        for belief in (grid, alone):
            belief.wait(1)
            belief.observe(torch.tensor(5), torch.tensor(2.0))
            belief.wait(2)
        for name in ("mean", "variance"):
            torch.testing.assert_close(getattr(grid, name), getattr(alone, name), **EXACT)
        many.select(i).restart()
    for name, tensor in many.get_extra_state().items():
        assert torch.equal(tensor, before[name])


def test_rates_that_are_replaced_count_at_once():
    belief = DriftingGrid(prior_cov(), torch.tensor([0.1]).double(), NOISE, torch.Size([1]))
    belief.observe(torch.tensor([3]), torch.tensor([1.0]))
    belief.wait(1)
    belief.forgetting = torch.tensor([1.0]).double()
    belief.wait(1)
    assert belief.mean.abs().max() == 0
