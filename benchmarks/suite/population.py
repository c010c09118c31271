"""Rivals that train several networks with the compute of one run: their rounds share its horizon."""

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor

from benchmarks.suite.protocol import OnlineProblem, Outcome, TrainingRun
from botorch_costly.errors import check_count
from botorch_costly.space import SearchSpace


class PopulationTraining:
    """Population based training: the worst copies the best, and changes its settings a little.

    References:
        M. Jaderberg et al. Population based training of neural networks. 2017: truncation selection,
        settings perturbed or drawn anew.

    Args:
        members: Networks, which share the rounds of a run.
        ready: Rounds of a member between two comparisons.
        step: How far a setting intervals in the unit cube when it is perturbed.
        anew: Chance that it is drawn anew instead.
    """

    def __init__(
        self, members: int = 4, ready: int = 5, step: float = 0.2, anew: float = 0.25
    ) -> None:
        self.members, self.ready, self.step, self.anew = members, ready, step, anew

    def __call__(self, problem: OnlineProblem, seed: int) -> Outcome:
        """Train the population; the best by validation is handed over."""
        check_count("horizon", problem.horizon, minimum=self.members)
        generator, queries = Generator().manual_seed(seed), 0
        runs = [problem.setup(seed) for _ in range(self.members)]
        others = problem.space.sample(self.members - 1, generator)
        settings = [problem.space.encode(problem.default), *others]
        rounds = problem.horizon // self.members
        began = time.perf_counter()
        for done in range(1, rounds + 1):
            for run, setting in zip(runs, settings, strict=True):
                run.train_round(problem.space.decode(setting))
            if done % self.ready == 0 or done == rounds:
                losses = [run.validate().loss for run in runs]
                queries += self.members
                best, worst = _extremes(losses)
                if done < rounds and best != worst:
                    runs[worst].restore(runs[best].save())
                    settings[worst] = self._explored(problem.space, settings[best], generator)
        seconds = time.perf_counter() - began
        accuracy = runs[best].test().accuracy
        return Outcome(accuracy, queries, rounds * self.members, seconds)

    def _explored(self, space: SearchSpace, setting: Tensor, generator: Generator) -> Tensor:
        coins = torch.rand(2, len(setting), generator=generator, dtype=setting.dtype)
        moved = setting + self.step * torch.where(coins[0] < 0.5, -1.0, 1.0)
        fresh = space.sample(1, generator)[0]
        anew = 1.0 if space.is_arms else self.anew  # a step never leads from one choice to another
        return space.round(torch.where(coins[1] < anew, fresh, moved.clamp(0, 1)))


class SuccessiveHalving:
    """Fixed configurations, the worse half of which is given up again and again.

    References:
        K. Jamieson, A. Talwalkar. Non-stochastic best arm identification and hyperparameter
        optimization. AISTATS 2016.

    Args:
        configurations: How many begin, the default among them; each rung gets as many rounds.
    """

    def __init__(self, configurations: int = 8) -> None:
        self.configurations = configurations

    def __call__(self, problem: OnlineProblem, seed: int) -> Outcome:
        """Train the rungs; the last configuration standing is handed over."""
        rungs = self.configurations.bit_length()
        check_count("horizon", problem.horizon, minimum=rungs * self.configurations)
        generator, queries, rounds = Generator().manual_seed(seed), 0, 0
        others = problem.space.sample(self.configurations - 1, generator)
        configs = [problem.default, *(problem.space.decode(x) for x in others)]
        alive: list[tuple[Mapping[str, Any], TrainingRun]] = [
            (config, problem.setup(seed)) for config in configs
        ]
        began = time.perf_counter()
        while True:
            for config, run in alive:
                for _ in range(problem.horizon // rungs // len(alive)):
                    run.train_round(config)
                    rounds += 1
            if len(alive) == 1:
                break
            losses = [run.validate().loss for _, run in alive]
            queries += len(alive)
            order = sorted(range(len(alive)), key=losses.__getitem__)
            alive = [alive[i] for i in order[: len(alive) // 2]]
        seconds = time.perf_counter() - began
        return Outcome(alive[0][1].test().accuracy, queries, rounds, seconds)


def _extremes(losses: list[float]) -> tuple[int, int]:
    """Return which loss is the least and which the largest."""
    order = sorted(range(len(losses)), key=losses.__getitem__)
    return order[0], order[-1]
