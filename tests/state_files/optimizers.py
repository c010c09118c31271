"""Optimizers whose states are kept. Options are never changed here: a file is of these ones."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch

import botorch_costly as bc
from botorch_costly import bandits
from botorch_costly.query import BernoulliQuery, ConfidenceQuery, MixedQuery, PricedQuery

ROUNDS = 8
_SPACE = bc.SearchSpace(
    {
        "lr": bc.Real(1e-4, 1e-1, log=True),
        "depth": bc.Integer(1, 4),
        "kind": bc.Choice(["plain", "other"]),
    }
)
_ARMS = bc.SearchSpace({"arm": bc.Choice(["left", "middle", "right"])})
_TASK = bc.Task(
    [{"lr": 10.0**-k, "depth": d, "kind": "plain"} for k in (1, 2, 3) for d in (1, 2, 4)],
    [math.sin(3 * k) + 0.1 * d for k in (1, 2, 3) for d in (1, 2, 4)],
)
_SEARCH = bc.Search(num_restarts=4)
_ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=12)


def _bandit(strategy: Any, rule: Any) -> bc.BanditTuner:
    return bc.BanditTuner(_ARMS, 20, strategy=strategy, query=rule, seed=1)


def _transfer(robust: Any) -> bc.TransferOptimizer:
    return bc.TransferOptimizer(_SPACE, [_TASK], horizon=20, robust=robust, seed=1)


MAKERS: dict[str, Callable[[], Any]] = {
    "online": lambda: bc.OnlineTuner(_SPACE, 20, seed=1, search=_SEARCH),
    "online_published": lambda: bc.OnlineTuner.as_published(_SPACE, 20, seed=1, search=_SEARCH),
    "online_priced": lambda: bc.OnlineTuner(
        _SPACE, 20, seed=1, search=_SEARCH, query=PricedQuery(price=0.1)
    ),
    "online_mixed": lambda: bc.OnlineTuner(
        _ARMS, 20, seed=1, query=MixedQuery(5, 10, 20, ConfidenceQuery(0.8))
    ),
    "bandit_gp_ucb": lambda: _bandit(bandits.GPUCB(), ConfidenceQuery(0.95)),
    "bandit_exp3s": lambda: _bandit(bandits.EXP3S(0.3), BernoulliQuery(0.5)),
    "bandit_softmax": lambda: _bandit(bandits.Softmax(0.2), ConfidenceQuery(0.9)),
    "twins": lambda: bc.TwinTuner(_SPACE, 40, seed=1),
    "population": lambda: bc.PopulationTuner(_SPACE, 20, members=3, seed=1),
    "curves": lambda: bc.CurveOptimizer(_SPACE, 27, horizon=20, seed=1, search=_SEARCH),
    "curves_by_scores": lambda: bc.CurveOptimizer(
        _SPACE, 27, horizon=20, seed=1, search=_SEARCH, compression=bc.Compression()
    ),
    "subsets": lambda: bc.SubsetOptimizer(_SPACE, horizon=15, sampling=_ROUGH, seed=1),
    "subsets_published": lambda: bc.SubsetOptimizer.as_published(
        _SPACE,
        horizon=15,
        sampling=dataclasses.replace(_ROUGH, first=None),
        fabolas=bc.Fabolas(levels=(1 / 64, 1 / 8)),
        seed=1,
    ),
    "transfer": lambda: _transfer(bc.ByEvidence()),
    "transfer_by_gaps": lambda: _transfer(bc.ByGaps()),
    "random": lambda: bc.RandomTuner(_SPACE, 20, seed=1),
}


def value_of(number: int) -> float:
    """Return the value that is told after a decision."""
    return 1.0 + 0.5 * math.sin(2.3 * number)


def play(optimizer: Any, rounds: int) -> None:
    """Ask and tell so many rounds."""
    for number in range(rounds):
        decision = optimizer.ask()
        if not decision.query:
            continue
        if isinstance(optimizer, bc.CurveOptimizer):
            values = [value_of(number + i) for i in range(decision.iterations)]
            optimizer.tell(decision, values, cost=2.0)
        elif isinstance(optimizer, bc.PopulationTuner):
            optimizer.tell(decision, [value_of(number + i) for i in range(optimizer.members)])
        elif isinstance(optimizer, bc.SubsetOptimizer):
            optimizer.tell(decision, value_of(number), cost=2.0)
        else:
            optimizer.tell(decision, value_of(number))


def facts_of(optimizer: Any) -> dict[str, Any]:
    """Return what a state has to hold, in plain values that hang on no last bits."""
    told = [
        torch.as_tensor(_number_of(seen), dtype=torch.float64) for seen in optimizer.observations
    ]
    return {
        "decisions": len(optimizer.decisions),
        "queries": optimizer.queries,
        "configs": [dict(_config_of(decision)) for decision in optimizer.decisions],
        "values": [value.reshape(-1).tolist() for value in told],
    }


def _config_of(decision: Any) -> Any:
    return decision.config if hasattr(decision, "config") else decision.configs[0]


def _number_of(seen: Any) -> Any:
    names = ("reward", "rewards", "value", "losses", "loss")
    return next(getattr(seen, name) for name in names if hasattr(seen, name))
