"""Optimizers: ``make(seed)`` makes one, ``tell(optimizer, suggestion, number)`` tells it a number."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import botorch_costly as bc
from botorch_costly import bandits
from botorch_costly.query import AlwaysQuery, BernoulliQuery, ConfidenceQuery, PricedQuery


class OptimizerCase(NamedTuple):
    make: Callable  # from a seed
    tell: Callable  # of an optimizer, a suggestion and a number
    horizon: int


def _tell(optimizer, decision, reward):
    return optimizer.tell(decision, reward)


def _tell_loss(optimizer, decision, number):
    """Tell a positive loss in place of a finite number, and NaN in place of none."""
    finite = isinstance(number, float) and math.isfinite(number)
    told = _loss(number) if finite else math.nan if number is None else number
    return optimizer.tell(decision, told)


def _loss(number):
    """Return a positive loss that grows with a number of any size."""
    return math.exp(min(max(number, -99.0), 99.0))


def _tell_curve(optimizer, decision, number):
    """Tell a number at the end of a segment, and a training that diverged in place of none."""
    gaps = [math.nan] * (getattr(decision, "iterations", 1) - 1)
    return optimizer.tell(decision, [*gaps, math.nan if number is None else number], cost=2.0)


def _tell_plain(optimizer, decision, number):
    """Tell a number, and a failure in place of none."""
    return optimizer.tell(decision, math.nan if number is None else number)


def _tell_value(optimizer, decision, number):
    """Tell a value, and a failure in place of none."""
    return optimizer.tell(decision, math.nan if number is None else number, cost=2.0)


def _tell_members(optimizer, decision, number):
    """Tell each member a loss near one, and a failure of all in place of no finite number."""
    finite = isinstance(number, float) and math.isfinite(number)
    told = math.nan if number is None else number
    losses = [_loss(number + 0.1 * i) if finite else told for i in range(optimizer.members)]
    return optimizer.tell(decision, losses)


def _still():
    """A clock that stands still: only the whole of it affords a query."""
    return 0.0


_SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "depth": bc.Integer(1, 4)})
_CHOICES = bc.SearchSpace({"arm": bc.Choice(["left", "middle", "right"])})
_ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=12)
_FAST = {"search": bc.Search(num_restarts=4)}

_STUDY = bc.Task(
    [{"lr": 10.0**-k, "depth": d} for k in (1, 2, 3, 4) for d in (1, 2, 4)],
    [math.sin(3 * k) + 0.1 * d for k in (1, 2, 3, 4) for d in (1, 2, 4)],
)
_OTHER = bc.Task([{"lr": 10.0**-k, "depth": 2} for k in (1, 2, 3)], [0.1, 0.4, 0.2])


def _transfer(robust, seed):
    return bc.TransferOptimizer(_SPACE, [_STUDY, _OTHER], horizon=20, robust=robust, seed=seed)


BANDITS = {
    "GPUCB": (bandits.GPUCB(fit=bandits.FitSchedule(first=3, every=2)), ConfidenceQuery(0.95)),
    "GPUCB priced": (bandits.GPUCB(), PricedQuery(price=0.1)),
    "EXP3S": (bandits.EXP3S(0.3), BernoulliQuery(0.5)),
    "EXP3R": (bandits.EXP3R(0.5, interval=10.0), PricedQuery(price=0.1)),
    "EpsilonGreedy": (bandits.EpsilonGreedy(0.3), ConfidenceQuery(0.9)),
    "Softmax": (bandits.Softmax(0.2), AlwaysQuery()),
    "UCB1": (bandits.UCB1(forgetting=0.05), PricedQuery(budget=9)),
}


def _bandit(strategy, rule, seed):
    return bc.BanditTuner(_CHOICES, 20, strategy=strategy, query=rule, seed=seed)


OPTIMIZERS = {
    "TransferOptimizer": OptimizerCase(
        lambda seed: _transfer(bc.ByEvidence(), seed), _tell_plain, 20
    ),
    "TransferOptimizer by gaps": OptimizerCase(
        lambda seed: _transfer(bc.ByGaps(own_units=True), seed), _tell_plain, 20
    ),
    "TransferOptimizer by draws": OptimizerCase(
        lambda seed: _transfer(bc.ByGaps(thompson=True, paths=4), seed), _tell_plain, 20
    ),
    "OnlineTuner": OptimizerCase(
        lambda seed: bc.OnlineTuner(_SPACE, 20, seed=seed, start={"lr": 0.01, "depth": 2}, **_FAST),
        _tell,
        20,
    ),
    "OnlineTuner as published": OptimizerCase(
        lambda seed: bc.OnlineTuner.as_published(_SPACE, 20, seed=seed, **_FAST), _tell, 20
    ),
    "OnlineTuner with a price": OptimizerCase(
        lambda seed: bc.OnlineTuner(_SPACE, 20, seed=seed, query=PricedQuery(price=0.1), **_FAST),
        _tell,
        20,
    ),
    "OnlineTuner of arms": OptimizerCase(
        lambda seed: bc.OnlineTuner(_CHOICES, 20, seed=seed, acquisition=bc.LogEI()), _tell, 20
    ),
    **{
        f"BanditTuner {name}": OptimizerCase(partial(_bandit, strategy, rule), _tell, 20)
        for name, (strategy, rule) in BANDITS.items()
    },
    "FixedTuner": OptimizerCase(
        lambda seed: bc.FixedTuner(_CHOICES, {"arm": "left"}, horizon=20), _tell, 20
    ),
    "PopulationTuner": OptimizerCase(
        lambda seed: bc.PopulationTuner(_SPACE, 20, members=3, seed=seed), _tell_members, 20
    ),
    "PopulationTuner with a query rule": OptimizerCase(
        lambda seed: bc.PopulationTuner(_CHOICES, 20, query=ConfidenceQuery(0.7), seed=seed),
        _tell_members,
        20,
    ),
    "TwinTuner": OptimizerCase(lambda seed: bc.TwinTuner(_SPACE, 40, seed=seed), _tell_loss, 40),
    "OnlineTuner within a share of the clock": OptimizerCase(
        lambda seed: bc.OnlineTuner(_SPACE, 20, overhead=1.0, clock=_still, seed=seed, **_FAST),
        _tell,
        20,
    ),
    "PopulationTuner within a share of the clock": OptimizerCase(
        lambda seed: bc.PopulationTuner(_SPACE, 20, overhead=1.0, clock=_still, seed=seed),
        _tell_members,
        20,
    ),
    "TwinTuner within a share of the clock": OptimizerCase(
        lambda seed: bc.TwinTuner(_SPACE, 40, overhead=1.0, clock=_still, seed=seed),
        _tell_loss,
        40,
    ),
    "CurveOptimizer": OptimizerCase(
        lambda seed: bc.CurveOptimizer(_SPACE, 27, horizon=20, seed=seed, **_FAST), _tell_curve, 20
    ),
    "CurveOptimizer of candidates": OptimizerCase(
        lambda seed: bc.CurveOptimizer(
            _SPACE,
            "depth",
            horizon=20,
            candidates=[{"lr": 10.0**-k, "depth": d} for k in (1, 2, 3) for d in (1, 3, 4)],
            resumes=False,
            seed=seed,
        ),
        _tell_curve,
        20,
    ),
    "CurveOptimizer of scores": OptimizerCase(
        lambda seed: bc.CurveOptimizer(
            _SPACE,
            27,
            horizon=20,
            compression=bc.Compression(augments=False),
            search=bc.Search(num_restarts=1),
            seed=seed,
        ),
        _tell_curve,
        20,
    ),
    "CurveOptimizer as published": OptimizerCase(
        lambda seed: bc.CurveOptimizer.as_published(
            _SPACE,
            27,
            horizon=20,
            candidates=[{"lr": 10.0**-k, "depth": d} for k in (1, 2, 3, 4) for d in (1, 2, 3, 4)],
            seed=seed,
        ),
        _tell_curve,
        20,
    ),
    "SubsetOptimizer": OptimizerCase(
        lambda seed: bc.SubsetOptimizer(_SPACE, horizon=15, sampling=_ROUGH, seed=seed),
        _tell_value,
        15,
    ),
    "SubsetOptimizer as published": OptimizerCase(
        lambda seed: bc.SubsetOptimizer.as_published(
            _SPACE,
            horizon=15,
            sampling=_ROUGH,
            fabolas=bc.Fabolas(configs=2, levels=(1 / 64, 1 / 8)),
            seed=seed,
        ),
        _tell_value,
        15,
    ),
    "SubsetOptimizer of candidates": OptimizerCase(
        lambda seed: bc.SubsetOptimizer(
            _SPACE,
            bc.SearchSpace({"data": bc.Real(0.1, 1.0), "width": bc.Real(8, 64, log=True)}),
            candidates=[
                ({"lr": 10.0**-k, "depth": d}, {"data": s, "width": w})
                for k in (1, 2, 3)
                for d in (1, 4)
                for s, w in ((0.2, 8), (0.5, 16), (1.0, 64))
            ],
            maximize=False,
            overhead=0.1,
            horizon=16,
            sampling=_ROUGH,
            seed=seed,
        ),
        _tell_value,
        16,
    ),
    "RandomTuner": OptimizerCase(lambda seed: bc.RandomTuner(_SPACE, 20, seed=seed), _tell, 20),
}

# The others take long, and differ from one of these in options alone.
_SLOW = {
    "TransferOptimizer by gaps",
    "TransferOptimizer by draws",
    "OnlineTuner within a share of the clock",
    "PopulationTuner within a share of the clock",
    "TwinTuner within a share of the clock",
    "CurveOptimizer of candidates",
    "CurveOptimizer of scores",
    "CurveOptimizer as published",
    "SubsetOptimizer as published",
    "SubsetOptimizer of candidates",
}
BY_DEFAULT = [name for name in OPTIMIZERS if name not in _SLOW]
