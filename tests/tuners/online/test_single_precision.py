"""Decisions in single precision beside those in double, on the same history."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.ask_tell.search import Search
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.query import Progress
from botorch_costly.tuners.online.decider import Decider
from botorch_costly.tuners.online.rivals import rivals_of
from tests.cases import quick
from tests.counting import least_successes

PRECISIONS = (torch.float64, torch.float32)
ROUNDS, SEEDS = 35, 2


def believer(dim, dtype):
    space = bc.SearchSpace({f"x{k}": bc.Real(0, 1) for k in range(dim)})
    one = torch.ones((), dtype=dtype)
    kernel = Stationary("matern52", (0.3 * math.sqrt(dim) * one).reshape(1), one)
    rivals = rivals_of(space, Search(), {"dtype": dtype, "device": torch.device("cpu")})
    strategy = Decider(rivals, bc.ConfidenceQuery(0.8), bc.UCB(), "acquisition")
    return StreamingGP(kernel, 0.02, 0.1), strategy


@pytest.mark.parametrize("dim", quick([1, 2, 8], 2))
def test_single_precision_decides_the_same(dim):
    """Queries are the same, and so is the place, or its upper bound to five digits."""
    alike = []
    for seed in range(SEEDS):
        generator = torch.Generator().manual_seed(seed)
        believers = [believer(dim, dtype) for dtype in PRECISIONS]
        x = torch.rand(dim, generator=generator, dtype=torch.float64)
        for now in range(ROUNDS):
            if now > 0:
                progress, draws = Progress(now + 1, now, 500, 0.02), 1000 * seed + now
                double, single = (
                    strategy.decide(belief, progress, True, torch.Generator().manual_seed(draws))
                    for belief, strategy in believers
                )
                x, other = double.query_at, single.query_at.double()
                value = TimeVaryingUCB(believers[0][0], 1.0, now)
                gap = float(value(x[None, None]) - value(other[None, None]))
                place = float((x - other).abs().max()) < 1e-2 or abs(gap) < 1e-5
                alike.append(place and bool(double.verdict.query == single.verdict.query))
            noise = 0.3 * float(torch.randn((), generator=generator))
            reward = float(torch.sin(6 * x).sum()) / dim**0.5 + noise
            for (belief, _), dtype in zip(believers, PRECISIONS, strict=True):
                belief.observe(torch.cat([x, x.new_tensor([now])]).to(dtype), reward)
    assert sum(alike) >= least_successes(len(alike), 0.99)
