"""Posteriors over a grid, and their comparison with the oracle."""

import torch

from botorch_costly.numerics.drift import Belief, predict, update
from tests.oracles import dense_gp

NOISE = 0.05


EXACT = {"rtol": 1e-8, "atol": 1e-8}


def prior_cov(n=12, **tkwargs):
    x = torch.linspace(0, 1, n, dtype=torch.float64)[:, None]
    return dense_gp.matern(x, x, 0.3, 1.4).to(**tkwargs)


def run(belief, rounds, seed=0, queries=0.7, oracle=None, at_once=1):
    """Play random rounds; ``oracle`` is a Belief that is filtered along, of an unbatched grid."""
    generator = torch.Generator().manual_seed(seed)
    batch, n = belief.batch_shape, belief.num_points
    rate = torch.as_tensor(belief.forgetting, dtype=torch.float64)
    noise = torch.tensor(belief.noise, dtype=torch.float64)
    for _ in range(rounds):
        for _ in range(at_once):
            index = torch.randint(n, batch, generator=generator)
            y = torch.randn(batch, generator=generator, dtype=torch.float64)
            query = torch.rand(batch, generator=generator) < queries
            belief.observe(index, y, query)
            if oracle is not None and query:
                oracle, _ = update(oracle, index, y, noise)
        elapsed = float(torch.randint(0, 4, (), generator=generator))
        belief.wait(elapsed)
        if oracle is not None:
            oracle = predict(oracle, belief.prior_cov, rate, torch.tensor(elapsed).double())
    return oracle


def fresh_oracle(prior):
    return Belief(torch.zeros(len(prior), dtype=prior.dtype), prior)


def assert_is_the_oracle(belief, oracle):
    torch.testing.assert_close(belief.mean, oracle.mean, **EXACT)
    torch.testing.assert_close(belief.variance, oracle.cov.diagonal(), **EXACT)
    columns = torch.stack([belief.covariance(torch.tensor(i)) for i in range(belief.num_points)])
    torch.testing.assert_close(columns, oracle.cov, **EXACT)
