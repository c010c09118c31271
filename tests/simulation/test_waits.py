"""A step of the simulator never waits for its device.

The kind: a step asks its device whether there is work to save, or checks values that are known to be
valid. On a CPU that is free, so the counts are made where a device is, with ``--device far`` or
``--device cuda``.
"""

import pytest
import torch

from benchmarks.speed.waits import counting
from botorch_costly import GridPolicy
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    ConfidenceQuery,
    MixedQuery,
    PricedQuery,
)
from botorch_costly.simulation import draw, play

HORIZON = 8  # more than a grid of three points has slots for: terms are compressed on the way

POLICIES = [
    GridPolicy("always", AlwaysQuery()),
    GridPolicy("confidence", ConfidenceQuery(0.8)),
    GridPolicy("joint", ConfidenceQuery(0.8, joint=True), joint=True),
    GridPolicy("price", PricedQuery(0.05)),
    GridPolicy("budget", PricedQuery(budget=2)),
    GridPolicy("quota", MixedQuery(1, 3, HORIZON, hard=True)),
    GridPolicy("restarts", BernoulliQuery(0.5), restart_every=3),
    GridPolicy("clock of queries", BernoulliQuery(0.5), ages=False),
    GridPolicy("own rate", BernoulliQuery(0.5), forgetting=0.2, unqueried_play="mean"),
]


@pytest.fixture
def device(tkwargs):
    if tkwargs["device"].type not in ("far", "cuda"):
        pytest.skip("a CPU is not waited for: counted with --device far or cuda")
    return str(tkwargs["device"])


@pytest.mark.parametrize("forgetting", [0.0, 0.03])
def test_a_step_never_waits(device, forgetting):
    problem, trials = DriftingFunction.on_unit_interval(3, forgetting=forgetting), 2
    totals, runs = [], []
    for horizon in (HORIZON // 2, HORIZON):
        draws = draw(problem, range(trials), horizon).to(device)
        with counting(device) as count:
            runs.append(play(problem, POLICIES, draws))
            totals.append(count())
    assert totals[0] == totals[1]  # tensors that are built before the first step
    near = play(problem, POLICIES, draw(problem, range(trials), HORIZON))
    assert torch.equal(runs[-1].query.cpu(), near.query)
