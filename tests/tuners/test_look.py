"""The best look and the best play of a cube, against all points of a fine lattice."""

import math

import pytest
import torch

from botorch_costly.models import StreamingGP
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.query import Outlook
from botorch_costly.space import Real, SearchSpace
from botorch_costly.tuners.domain import domain_of
from botorch_costly.tuners.look import best_look, best_play, weigh

DOUBLE = {"dtype": torch.float64, "device": torch.device("cpu")}
SQUARE = SearchSpace({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})
LATTICE, FINE = (
    torch.cartesian_prod(*[torch.linspace(0, 1, n, dtype=torch.float64)] * 2) for n in (12, 25)
)
NOW, PRICE = 20, 0.2


def belief_after(looks, seed):
    """A belief about waves, some looks old."""
    generator = torch.Generator().manual_seed(seed)
    one = torch.ones((), dtype=torch.float64)
    belief = StreamingGP(Stationary("matern52", 0.35 * one.reshape(1), one), 0.02, 0.01)
    for now in torch.randperm(NOW, generator=generator)[:looks].sort().values.tolist():
        x = torch.rand(2, generator=generator).double()
        reward = float((7 * x + seed).sin().sum() / 1.4)
        belief.observe(torch.cat([x, one.new_tensor([now])]), reward)
    return belief


def outlook(reach, foresight=0.0):
    return Outlook(torch.tensor(reach).double(), torch.tensor(PRICE).double(), foresight)


@pytest.mark.parametrize("reach", [3.0, 40.0])
@pytest.mark.parametrize("looks", [1, 4, 15])
def test_no_point_of_a_fine_lattice_is_much_better(reach, looks):
    shortfalls = []
    for seed in range(4):
        belief, domain = belief_after(looks, seed), domain_of(SQUARE, 4, 0.2, DOUBLE)
        found = best_look(belief, domain, NOW, outlook(reach), beta=1.0)
        lattice = weigh(belief, LATTICE, FINE, NOW, outlook(reach))
        assert found.mean >= lattice.mean - 1e-9  # and it lies between them
        play = best_play(belief, domain, NOW)
        mean, _ = belief.mean_and_variance(torch.cat([play, play.new_tensor([NOW])]))
        assert mean >= lattice.mean - 1e-9
        # With the same anchors.
        at = found.look_at.unsqueeze(0)
        ours = weigh(belief, at, torch.cat([FINE, found.play.unsqueeze(0)]), NOW, outlook(reach))
        best, earned = (p.mean + reach * p.gain for p in (lattice.prospect, ours.prospect))
        claimed = found.prospect.mean + reach * found.prospect.gain
        assert claimed <= earned + 0.002 * reach  # what anchors between those of the lattice add
        assert claimed >= earned - 0.1 * (earned - found.mean) - 0.002 * reach
        shortfalls.append(float((best - earned) / (best - lattice.mean)))
    assert max(shortfalls) < 0.1
    assert sum(shortfalls) / len(shortfalls) < 0.03


def test_the_option_is_weighed_by_the_foresight():
    """Of what the rule hears it is the sum that is largest."""
    for seed in range(4):
        belief, heights = belief_after(6, seed), {}
        for foresight in (0.0, 0.5, 1.0):
            domain = domain_of(SQUARE, 4, 0.2, DOUBLE)  # another one starts where it ended
            p = best_look(belief, domain, NOW, outlook(9.0, foresight), beta=1.0).prospect
            heights[foresight] = float(p.mean + 9.0 * p.gain), float(p.option)
        near, far = heights[0.0], heights[1.0]
        assert near[1] == 0
        assert near[0] >= heights[0.5][0] - 1e-6
        assert near[0] >= far[0] - 1e-6
        assert math.isfinite(far[1])
        half = heights[0.5]
        assert half[0] + 0.5 * half[1] >= far[0] + 0.5 * far[1] - 1e-3
