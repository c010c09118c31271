"""A population whose new settings a drifting Gaussian process chooses: population based bandits."""

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from benchmarks.suite.population import Explorer, PopulationTraining
from botorch_costly.models import StreamingGP
from botorch_costly.models.fitting import Hyperparameters, fit
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.space import SearchSpace

_FAMILY = "rbf"
_CANDIDATES = 2000
_LARGEST = 1.0  # nats: a network that has diverged is no worse than this
_EXPLORATION = (0.2, 0.4)  # c1 and c2 of the authors' program


class BanditExplorer:
    """Chooses the setting of the highest upper confidence bound of the gain until the next comparison.

    A gain is how much the log of a member's validation loss fell since the comparison before. The belief
    is a Gaussian process over setting and time that forgets; settings that other members are about to
    play count as observed where the variance is concerned.

    References:
        J. Parker-Holder, V. Nguyen, S. J. Roberts. Provably efficient online hyperparameter
        optimization with population-based bandits. NeurIPS 2020, Algorithm 1 and equations 4 to 7.
    """

    def __init__(self, space: SearchSpace, generator: Generator) -> None:
        self._space, self._generator = space, generator
        self._inputs: list[Tensor] = []
        self._gains: list[float] = []
        self._before: list[float] = []
        self._now = 0

    def hear(self, round: int, settings: Sequence[Tensor], losses: Sequence[float]) -> None:
        """Learn the gains of the members since the comparison before, of which the first has none."""
        levels = [math.log(max(loss, 1e-300)) for loss in losses]
        for setting, before, after in zip(settings, self._before, levels, strict=False):
            self._inputs.append(torch.cat([setting, setting.new_tensor([float(self._now)])]))
            self._gains.append(_gain(before, after))
        self._before, self._now = levels, self._now + 1

    def explored(self, settings: Sequence[Tensor], best: int, worst: int) -> Tensor:
        """Return the setting of the highest bound, or any while there are no gains."""
        self._before[worst] = self._before[best]  # the member goes on as a copy
        candidates = self._space.sample(_CANDIDATES, self._generator)
        if not self._gains:
            return candidates[0]
        others = [setting for member, setting in enumerate(settings) if member != worst]
        belief = self._belief()
        mean, _ = belief.in_round(candidates, self._now)
        for setting in others:
            row = torch.cat([setting, setting.new_tensor([float(self._now)])])
            belief.observe(row, 0.0)  # a variance does not depend on what is seen
        _, variance = belief.in_round(candidates, self._now)
        c1, c2 = _EXPLORATION
        beta = c1 + max(math.log(c2 * len(self._gains)), 0.0)
        return candidates[(mean + math.sqrt(beta) * variance.sqrt()).argmax()]

    def _belief(self) -> StreamingGP:
        """Fit the belief to all gains, in units of their deviation."""
        inputs = torch.stack(self._inputs)
        gains = torch.tensor(self._gains, dtype=inputs.dtype)
        targets = (gains - gains.mean()) / gains.std(correction=0).clamp_min(1e-9)
        number = inputs.new_tensor
        first = Hyperparameters(number([0.5]), number(1.0), number(0.1), number(0.05))
        lengthscale, outputscale, noise, forgetting = fit(
            _FAMILY, inputs, targets, first, learn_forgetting=True
        )[0]
        kernel = Stationary(_FAMILY, lengthscale, outputscale)
        belief = StreamingGP(kernel, float(forgetting), float(noise))
        for row, target in zip(inputs, targets.tolist(), strict=True):
            belief.observe(row, target)
        return belief


def _gain(before: float, after: float) -> float:
    """Return the fall of the log loss, within bounds; a member that stays diverged gained nothing."""
    if before == after:
        return 0.0
    return min(max(before - after, -_LARGEST), _LARGEST)


class BanditPopulation(PopulationTraining):
    """Population based bandits (PB2): as ``PopulationTraining``, with settings from a belief."""

    def explorer(self, space: SearchSpace, generator: Generator) -> Explorer:
        return BanditExplorer(space, generator)
