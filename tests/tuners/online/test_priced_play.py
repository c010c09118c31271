"""The best query and the best play of a cube, against all points of a fine lattice."""

import math

import pytest
import torch

from botorch_costly.ask_tell.search import Search, search_of
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.query import Outlook
from botorch_costly.space import Real, SearchSpace
from botorch_costly.tuners.online.priced_play import best_among, best_play, best_query

DOUBLE = {"dtype": torch.float64, "device": torch.device("cpu")}
SQUARE = SearchSpace({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})
LATTICE, FINE = (
    torch.cartesian_prod(*[torch.linspace(0, 1, n, dtype=torch.float64)] * 2) for n in (12, 25)
)
NOW, PRICE = 20, 0.2


def belief_after(queries, seed):
    """A belief about waves, some queries old."""
    generator = torch.Generator().manual_seed(seed)
    one = torch.ones((), dtype=torch.float64)
    belief = StreamingGP(Stationary("matern52", 0.35 * one.reshape(1), one), 0.02, 0.01)
    for now in torch.randperm(NOW, generator=generator)[:queries].sort().values.tolist():
        x = torch.rand(2, generator=generator).double()
        reward = float((7 * x + seed).sin().sum() / 1.4)
        belief.observe(torch.cat([x, one.new_tensor([now])]), reward)
    return belief


def outlook(effective_horizon, lookahead_weight=0.0):
    return Outlook(
        torch.tensor(effective_horizon).double(), torch.tensor(PRICE).double(), lookahead_weight
    )


@pytest.mark.parametrize("effective_horizon", [3.0, 40.0])
@pytest.mark.parametrize("queries", [1, 4, 15])
def test_no_point_of_a_fine_lattice_is_much_better(effective_horizon, queries):
    shortfalls = []
    for seed in range(4):
        belief, search = belief_after(queries, seed), search_of(SQUARE, Search(4, 0.2), DOUBLE)
        found = best_query(belief, search, NOW, outlook(effective_horizon), beta=1.0)
        lattice = best_among(belief, LATTICE, FINE, NOW, outlook(effective_horizon))
        assert found.mean >= lattice.mean - 1e-9  # and it lies between them
        play = best_play(belief, search, NOW)
        mean, _ = belief.mean_and_variance(torch.cat([play, play.new_tensor([NOW])]))
        assert mean >= lattice.mean - 1e-9
        # With the same discretization.
        at = found.query_at.unsqueeze(0)
        ours = best_among(
            belief, at, torch.cat([FINE, found.play.unsqueeze(0)]), NOW, outlook(effective_horizon)
        )
        best, earned = (
            p.mean + effective_horizon * p.gain for p in (lattice.prospect, ours.prospect)
        )
        claimed = found.prospect.mean + effective_horizon * found.prospect.gain
        assert (
            claimed <= earned + 0.002 * effective_horizon
        )  # what discretization between those of the lattice add
        assert claimed >= earned - 0.1 * (earned - found.mean) - 0.002 * effective_horizon
        shortfalls.append(float((best - earned) / (best - lattice.mean)))
    assert max(shortfalls) < 0.1
    assert sum(shortfalls) / len(shortfalls) < 0.03


def test_the_lookahead_is_weighed_by_the_lookahead_weight():
    """Of what the rule hears it is the sum that is largest."""
    for seed in range(4):
        belief, heights = belief_after(6, seed), {}
        for lookahead_weight in (0.0, 0.5, 1.0):
            search = search_of(SQUARE, Search(4, 0.2), DOUBLE)  # another one starts where it ended
            p = best_query(belief, search, NOW, outlook(9.0, lookahead_weight), beta=1.0).prospect
            heights[lookahead_weight] = float(p.mean + 9.0 * p.gain), float(p.lookahead)
        near, far = heights[0.0], heights[1.0]
        assert near[1] == 0
        assert near[0] >= heights[0.5][0] - 1e-6
        assert near[0] >= far[0] - 1e-6
        assert math.isfinite(far[1])
        half = heights[0.5]
        assert half[0] + 0.5 * half[1] >= far[0] + 0.5 * far[1] - 1e-3
