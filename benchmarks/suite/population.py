"""Rivals that train several networks, with the compute of one run or each to the full length."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Generator, Tensor

from benchmarks.suite.protocol import OnlineProblem, Outcome, TrainingRun
from botorch_costly.errors import check_count
from botorch_costly.space import SearchSpace


class Trained(NamedTuple):
    """What a method hands over, and what it paid."""

    run: TrainingRun
    queries: int
    rounds: int  # of all networks
    seconds: float

    def outcome(self) -> Outcome:
        """Measure the network that is handed over."""
        return Outcome(self.run.test().accuracy, self.queries, self.rounds, self.seconds)


class Explorer(Protocol):
    """Says what a member plays after it has copied the best one."""

    def hear(self, round: int, settings: Sequence[Tensor], losses: Sequence[float]) -> None:
        """Learn which losses the members have after a round they played these settings up to."""

    def explored(self, settings: Sequence[Tensor], best: int, worst: int) -> Tensor:
        """Return the setting of the worst member, which is now a copy of the best one."""


class Perturbation:
    """Changes the setting of the best member a little, and draws parts of it anew.

    A setting moves by ``step`` in the unit cube; ``anew`` is the chance that it is drawn anew instead.
    """

    def __init__(
        self, space: SearchSpace, generator: Generator, step: float = 0.2, anew: float = 0.25
    ) -> None:
        self._space, self._generator, self._step = space, generator, step
        self._anew = 1.0 if space.is_arms else anew  # no step leads from one choice to another

    def hear(self, round: int, settings: Sequence[Tensor], losses: Sequence[float]) -> None:
        """Nothing is learnt."""

    def explored(self, settings: Sequence[Tensor], best: int, worst: int) -> Tensor:
        """Return the setting of the best member, changed at random."""
        setting = settings[best]
        coins = torch.rand(2, len(setting), generator=self._generator, dtype=setting.dtype)
        moved = setting + self._step * torch.where(coins[0] < 0.5, -1.0, 1.0)
        fresh = self._space.sample(1, self._generator)[0]
        return self._space.round(torch.where(coins[1] < self._anew, fresh, moved.clamp(0, 1)))


class PopulationTraining:
    """Population based training: the worst copies the best, and changes its settings a little.

    References:
        M. Jaderberg et al. Population based training of neural networks. 2017: truncation selection,
        settings perturbed or drawn anew.

    Args:
        members: Networks.
        ready: Rounds of a member between two comparisons.
        step: How far a setting moves in the unit cube when it is perturbed.
        anew: Chance that it is drawn anew instead.
        full_length: Whether each network trains through the horizon; they share it otherwise.
    """

    def __init__(
        self,
        members: int = 4,
        ready: int = 5,
        step: float = 0.2,
        anew: float = 0.25,
        *,
        full_length: bool = False,
    ) -> None:
        self.members, self.ready, self.step, self.anew = members, ready, step, anew
        self.full_length = full_length

    def __call__(self, problem: OnlineProblem, seed: int) -> Outcome:
        return self.train(problem, seed).outcome()

    def explorer(self, space: SearchSpace, generator: Generator) -> Explorer:
        """Return what chooses new settings."""
        return Perturbation(space, generator, self.step, self.anew)

    def train(self, problem: OnlineProblem, seed: int) -> Trained:
        """Train the population and return the best by validation."""
        check_count("horizon", problem.horizon, minimum=self.members)
        generator, queries = Generator().manual_seed(seed), 0
        runs = [problem.setup(seed) for _ in range(self.members)]
        others = problem.space.sample(self.members - 1, generator)
        settings = [problem.space.encode(problem.default), *others]
        explorer = self.explorer(problem.space, generator)
        rounds = problem.horizon // (1 if self.full_length else self.members)
        began = time.perf_counter()
        for done in range(1, rounds + 1):
            for run, setting in zip(runs, settings, strict=True):
                run.train_round(problem.space.decode(setting))
            if done % self.ready == 0 or done == rounds:
                losses = [run.validate().loss for run in runs]
                queries += self.members
                explorer.hear(done, settings, losses)
                order = sorted(range(len(losses)), key=losses.__getitem__)
                best, worst = order[0], order[-1]
                if done < rounds and best != worst:
                    runs[worst].restore(runs[best].save())
                    settings[worst] = explorer.explored(settings, best, worst)
        seconds = time.perf_counter() - began
        return Trained(runs[best], queries, rounds * self.members, seconds)


class SuccessiveHalving:
    """Fixed configurations, the worse half of which is given up again and again.

    References:
        K. Jamieson, A. Talwalkar. Non-stochastic best arm identification and hyperparameter
        optimization. AISTATS 2016.

    Args:
        configurations: How many begin, the default among them; each rung gets about as many rounds.
        full_length: Whether the last configuration trains through the horizon, which costs up to four
            times its rounds; all configurations share it otherwise.
    """

    def __init__(self, configurations: int = 8, *, full_length: bool = False) -> None:
        self.configurations, self.full_length = configurations, full_length

    def __call__(self, problem: OnlineProblem, seed: int) -> Outcome:
        return self.train(problem, seed).outcome()

    def train(self, problem: OnlineProblem, seed: int) -> Trained:
        """Train the rungs and return the last configuration standing."""
        lengths = self._lengths(problem.horizon)
        generator, queries, rounds = Generator().manual_seed(seed), 0, 0
        others = problem.space.sample(self.configurations - 1, generator)
        configs = [problem.default, *(problem.space.decode(x) for x in others)]
        alive: list[tuple[Mapping[str, Any], TrainingRun]] = [
            (config, problem.setup(seed)) for config in configs
        ]
        began = time.perf_counter()
        for length in lengths:
            for config, run in alive:
                for _ in range(length):
                    run.train_round(config)
                    rounds += 1
            if len(alive) > 1:
                losses = [run.validate().loss for _, run in alive]
                queries += len(alive)
                order = sorted(range(len(alive)), key=losses.__getitem__)
                alive = [alive[i] for i in order[: len(alive) // 2]]
        return Trained(alive[0][1], queries, rounds, time.perf_counter() - began)

    def _lengths(self, horizon: int) -> list[int]:
        """Return how many rounds a configuration trains in each rung.

        Raises:
            InvalidArgumentError: If the horizon is too short for a round in the first rung.
        """
        rungs = self.configurations.bit_length()
        alive = [self.configurations >> rung for rung in range(rungs)]
        if not self.full_length:
            check_count("horizon", horizon, minimum=rungs * self.configurations)
            return [horizon // rungs // many for many in alive]
        shares = sum(1 << rung for rung in range(rungs))
        check_count("horizon", horizon, minimum=shares)
        lengths = [(horizon // shares) << rung for rung in range(rungs)]
        return [*lengths[:-1], horizon - sum(lengths[:-1])]
