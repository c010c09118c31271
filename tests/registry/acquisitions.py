"""Acquisition functions, each made of a model over ``[x_1, x_2, round]``."""

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction

from botorch_costly.acquisition import (
    PBGI,
    RMGPTS,
    RMGPUCB,
    Blend,
    EntropySearch,
    EntropySearchPerCost,
    LogEIPerCost,
    TaskUCB,
    TimeVaryingEI,
    TimeVaryingKG,
    TimeVaryingLogEI,
    TimeVaryingPI,
    TimeVaryingUCB,
)
from botorch_costly.baselines import TAF
from botorch_costly.models import LinearCost, StreamingGP, TaskEnsemble, TaskPaths
from tests.registry.inputs import unit


def _inputs_of(model):
    return model.inputs if isinstance(model, StreamingGP) else model.train_inputs[0]


def _knowledge_gradient(model):
    """Over five discretization in the dtype and on the device of the model."""
    generator = torch.Generator().manual_seed(12)
    points = unit(5, generator).to(_inputs_of(model))
    return TimeVaryingKG(model, points, now=31.0, effective_horizon=20.0)


def _candidates(model):
    """Points of which one is the optimum, in round 31."""
    x = torch.rand(6, 2, generator=torch.Generator().manual_seed(17), dtype=torch.float64)
    return torch.cat([x, torch.full((6, 1), 31.0, dtype=torch.float64)], -1).to(_inputs_of(model))


def _in_a_round(make):
    """Of an acquisition function over all columns: in round 31, at a cost linear in the first."""

    def made(model):
        X = torch.rand(6, 3, generator=torch.Generator().manual_seed(13), dtype=torch.float64)
        X = X.to(_inputs_of(model))
        cost = LinearCost(X, 1 + X[:, :1])
        return FixedFeatureAcquisitionFunction(make(model, cost), 3, [2], [31.0])

    return made


def _taf(model):
    """Of two tasks over configuration and round, and five observations."""
    generator = torch.Generator().manual_seed(14)
    X = torch.rand(3, 8, 3, generator=generator, dtype=torch.float64).to(_inputs_of(model))
    tasks = TaskEnsemble(list(X[:2]), [X[0].sum(-1).sin(), X[1, :, 0]])
    return TAF(model, tasks, X[2, :5], X[2, :5].sum(-1, keepdim=True).cos(), bandwidth=2.0)


def _earlier(model):
    """Two earlier tasks in the dtype and on the device of the model, and their weights."""
    draws = torch.Generator().manual_seed(15)
    X = torch.rand(2, 8, 3, generator=draws, dtype=torch.float64).to(_inputs_of(model))
    tasks = TaskEnsemble(list(X), [X[0].sum(-1).sin(), X[1, :, 0]])
    return tasks, X.new_tensor([0.7, 0.3])


def _own(X):
    return -X.square().sum(-1)


def _thompson(model):
    tasks, weights = _earlier(model)
    draws = torch.Generator().manual_seed(16)
    return RMGPTS(_own, TaskPaths(tasks, 2, draws), weights, 0.9, draws)


def _blend(model):
    first, second = TaskUCB(*_earlier(model)), UpperConfidenceBound(model, 2.0)
    return Blend(first, second, 0.4)


ACQUISITIONS = {
    "TaskUCB": _in_a_round(lambda model, _: TaskUCB(*_earlier(model))),
    "Blend": _in_a_round(lambda model, _: _blend(model)),
    "RMGPUCB": _in_a_round(lambda model, _: RMGPUCB(model, *_earlier(model), 0.4)),
    "RMGPTS": _in_a_round(lambda model, _: _thompson(model)),
    "LogEIPerCost": _in_a_round(lambda model, cost: LogEIPerCost(model, cost, 0.3)),
    "TAF": _in_a_round(lambda model, _: _taf(model)),
    "PBGI": _in_a_round(lambda model, cost: PBGI(model, cost, price=0.1)),
    "EntropySearch": _in_a_round(lambda model, _: EntropySearch(model, _candidates(model))),
    "EntropySearchPerCost": _in_a_round(
        lambda model, cost: EntropySearchPerCost(model, _candidates(model), cost)
    ),
    "TimeVaryingUCB": lambda model: TimeVaryingUCB(model, 1.5, now=31.0),
    "TimeVaryingEI": lambda model: TimeVaryingEI(model, 0.3, now=31.0),
    "TimeVaryingLogEI": lambda model: TimeVaryingLogEI(model, 0.3, now=31.0),
    "TimeVaryingPI": lambda model: TimeVaryingPI(model, 0.3, now=31.0),
    "TimeVaryingKG": _knowledge_gradient,
}
