"""The worth of the rest of a training, beside sums over hypotheses and points in plain terms."""

import math

import torch

import botorch_costly as bc
from botorch_costly.ask_tell.design import sobol
from botorch_costly.models import LogLinearCost
from botorch_costly.models.growth import GrowthModel
from botorch_costly.numerics.growth import Marks
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.rest_value import RestValue
from botorch_costly.tuners.curves.trainings import Training, Trainings

SPACE, LENGTH = bc.SearchSpace({"a": bc.Real(0.0, 1.0), "b": bc.Real(0.0, 1.0)}), 16


def trainings_of(dones, costs):
    """Trainings that grow to the sum of their parameters."""
    found = Trainings(SPACE.encode, lambda config: LENGTH)
    points = sobol(SPACE, len(dones), 3)
    for number, (done, cost) in enumerate(zip(dones, costs, strict=True)):
        end = float(points[number].sum())
        curve = tuple(end * (k + 1) / LENGTH for k in range(done))
        config = SPACE.decode(points[number])
        of_it = {"paid": cost * done, "iterations": done}
        found = found.with_one(Training(number, config, points[number], LENGTH, curve, **of_it))
    return found


def improvement(model, x, best):
    """The expected improvement at the ends of configurations, averaged over the hypotheses."""
    ends = Marks(x, torch.ones(len(x), dtype=x.dtype), x[:, :0])
    mean, variance = model.mean_and_variance(ends)
    normal = torch.distributions.Normal(0.0, 1.0)
    std = variance.sqrt()
    z = (mean - best) / std
    each = std * (z * normal.cdf(z) + normal.log_prob(z).exp())
    return model.log_shares.exp() @ each


def test_both_sides_are_improvements_by_costs():
    trainings = trainings_of([16, 16, 16, 4, 8], [1.0, 2.0, 1.5, 1.0, 3.0])
    value, own = RestValue(SPACE, Ladder(1)), list(trainings)[3]
    ratio = value.log_ratio(trainings, own)
    belief = value._belief  # its parameters, as they were fitted
    rows = belief.rows(trainings, {})
    model = GrowthModel.conditioned(rows.marks, rows.targets, belief._theta)
    points = torch.stack([t.point for t in trainings])
    paid = torch.tensor([[t.paid / t.done * LENGTH] for t in trainings], dtype=torch.float64)
    cost = LogLinearCost(points, paid)
    spread = sobol(SPACE, 256, 0)
    new = improvement(model, spread, rows.best).mean() / cost.logarithm(spread).exp().mean()
    rest = improvement(model, own.point[None], rows.best)[0]
    rest = rest / (cost.logarithm(own.point[None]).exp()[0] * (1 - 4 / LENGTH))
    assert math.isclose(ratio, float((rest / new).log()), rel_tol=1e-6)
