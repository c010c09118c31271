"""The arms that drift: the formulas at the head of the module, and every arm is best for a while."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.problems import DriftingArms


def test_the_curves_are_those_of_the_head():
    sine, bump, steps = (DriftingArms(kind).values(1000) for kind in ("sine", "bump", "steps"))
    assert sine[250, 0] == pytest.approx(1.0)
    assert sine[100, 1] == pytest.approx(0.5 + 0.5 * math.sin(2 * math.pi * (0.1 + 1 / 3)))
    assert bump[[200, 500, 800], [0, 1, 2]].tolist() == pytest.approx([0.8] * 3)
    assert bump[320, 0] == pytest.approx(0.2 + 0.6 * math.exp(-0.5))
    assert steps[[0, 249, 250, 999], [0, 0, 0, 2]].tolist() == [0.9, 0.9, 0.2, 0.2]


@pytest.mark.parametrize("kind", ["sine", "bump", "steps"])
def test_every_arm_is_best_for_a_while_and_none_leaves_the_range(kind):
    values = DriftingArms(kind).values(2000)
    assert values.shape == (2000, 3)
    assert values.dtype == torch.float64
    assert ((values >= 0) & (values <= 1)).all()
    assert (values.argmax(-1).bincount(minlength=3) > 300).all()
    at_random = float((values.amax(-1) - values.mean(-1)).mean())
    assert at_random == pytest.approx({"sine": 0.41, "bump": 0.28, "steps": 0.45}[kind], abs=0.01)


def test_bad_arms_are_refused():
    for make in (lambda: DriftingArms("saw"), lambda: DriftingArms("sine", noise=0.0)):
        with pytest.raises(InvalidArgumentError, match=r"Expected .*; Received"):
            make()
    with pytest.raises(InvalidArgumentError, match="horizon"):
        DriftingArms("sine").values(0)
