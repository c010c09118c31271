"""The choice of the next training: one that continues, or a new configuration."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from botorch_costly.ask_tell.design import sobol
from botorch_costly.ask_tell.points import SAME, among, perturbed
from botorch_costly.ask_tell.search import CLOSE, Search, all_points
from botorch_costly.device import Tkwargs
from botorch_costly.errors import HorizonExceededError, check
from botorch_costly.numerics.robust import rewards_at, tempered
from botorch_costly.optim import maximize
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.curves.ends import Belief, Common, Outlook
from botorch_costly.tuners.curves.growth import GrowthBelief
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.ranks import RankBelief
from botorch_costly.tuners.curves.shares import Shares
from botorch_costly.tuners.curves.trainings import Training, Trainings
from botorch_costly.tuners.earlier.studies import EarlierStudies

_FIRST = 3  # random configurations without divergence before the model decides ...
_MOST_FIRST = 9  # ... and the largest number of random configurations
_SPREAD = 512  # Sobol points that represent a large space
_AROUND, _DISTANCE = 4, 0.05  # points around each trained configuration, and their distance to it
_STEPS = 25  # steps of the local search, which ends at this slope or relative gain of the logarithm
_SLOPE, _GAIN = 1e-2, 1e-3


class Choice(NamedTuple):
    """The next training, and how far it is trained."""

    point: Tensor  # encoded configuration, shape: (d,)
    training: Training | None  # training to continue; None for a new one
    reason: str
    share: float | None = None  # share of the whole training to stop at; None for the next rung


class Promises(Protocol):
    """Acquisition function of new configurations."""

    def promise(self, X: Tensor) -> Tensor:
        """Return the logarithm of the expected improvement per cost of configurations ``batch x d``."""


class Chooser(Protocol):
    """Decides which training is next."""

    def choose(self, trainings: Trainings) -> Choice:
        """Return the next training; it depends on the trainings and on the chooser's state."""

    def predict(self, trainings: Trainings, points: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return means and standard deviations of final rewards, each ``(n,)``; None without a model."""

    def early_signal(self, share: float) -> float | None:
        """Return the correlation of rewards after a share of a training with the final rewards."""

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


class NewPoints:
    """Configurations that have not been trained yet, from a list or from the whole space.

    In a large space, a local search starts from the best of a Sobol set and of random points around the
    trained configurations.

    Args:
        space: Search space of the configurations.
        listed: Encoded candidates, shape ``(n, d)``; None for the whole space.
        search: Settings of the search; the number of starts is read.
        generator: Source of randomness, on the CPU.
        tkwargs: Dtype and device of the points.
        earlier: Earlier studies, perhaps none, with whose portfolio a search begins.
    """

    def __init__(
        self,
        space: SearchSpace,
        listed: Tensor | None,
        search: Search,
        generator: torch.Generator,
        tkwargs: Tkwargs,
        earlier: EarlierStudies,
    ) -> None:
        self.empty = torch.empty(0, space.dim, **tkwargs)
        self._space, self._generator, self._starts = space, generator, search.num_restarts
        listed = all_points(space) if listed is None else listed
        self._listed = None if listed is None else listed.to(**tkwargs)
        self._portfolio = earlier.portfolio(self._listed)
        self._spread = self.empty if listed is not None else self._drawn(sobol(space, _SPREAD, 0))

    def first(self, trainings: Trainings) -> Tensor | None:
        """Return the next configuration of the portfolio of earlier studies; None after the last."""
        left = self._portfolio[~_trained(self._portfolio, trainings, CLOSE)]
        return left[0] if len(left) else None

    def others(self, trainings: Trainings) -> list[Training]:
        """Return the trainings whose configurations are not of the portfolio."""
        if not len(self._portfolio):
            return list(trainings)
        first = among(trainings.points, self._portfolio, CLOSE).tolist()
        return [t for t, is_first in zip(trainings, first, strict=True) if not is_first]

    def random(self, trainings: Trainings) -> Tensor | None:
        """Return a random new configuration, shape ``(d,)``; None if all have been trained."""
        if self._listed is None:
            return self._drawn(self._space.sample(1, self._generator)[0])
        left = self._listed[~_trained(self._listed, trainings, SAME)]
        if not len(left):
            return None
        return left[int(torch.randint(len(left), (1,), generator=self._generator))]

    def _drawn(self, points: Tensor) -> Tensor:
        return points.to(self.empty)

    def best(self, outlook: Promises, trainings: Trainings) -> Tensor | None:
        """Return the most promising new configuration, shape ``(d,)``; None if all have been trained."""
        points, distance = self._listed, SAME
        if points is None:
            near = trainings.points.repeat_interleave(_AROUND, 0)
            around = perturbed(self._space, near, _DISTANCE, self._generator)
            points, distance = torch.cat([self._spread, around]), CLOSE
        best = maximize(
            lambda X: outlook.promise(X.squeeze(-2)),
            points,
            num_starts=self._starts,
            max_iter=_STEPS if self._listed is None else 0,
            gradient_tolerance=_SLOPE,
            value_tolerance=_GAIN,
            round_points=self._space.round,
            excluded=lambda X: _trained(X, trainings, distance),
        )
        return best.point if bool(best.value > -torch.inf) else self.random(trainings)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator."""
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._generator.set_state(state["generator"].cpu())


class EndChooser:
    """Chooses by the expected improvement at the end of a training, per unit of remaining cost.

    Two beliefs take turns, by how well each foretold what came (``curves.shares``): that of ranks and
    that of values. Both see all trainings, whichever belief began them.

    Args:
        new: Configurations that have not been trained.
        ladder: Iterations whose rewards enter the model.
        generator: Source of randomness.
        resumes: Whether a training can be resumed; otherwise it restarts from scratch.
        earlier: Earlier studies, perhaps none.
    """

    def __init__(
        self,
        new: NewPoints,
        ladder: Ladder,
        generator: torch.Generator,
        *,
        resumes: bool,
        earlier: EarlierStudies,
    ) -> None:
        self._new, self._ladder, self._resumes = new, ladder, resumes
        self._ranks = RankBelief(new.empty, ladder, generator)
        self._growth = GrowthBelief(new.empty, ladder, earlier)
        self._shares = Shares(len(self._beliefs))

    @property
    def _beliefs(self) -> dict[str, Belief]:
        return {"ranks": self._ranks, "growth": self._growth}

    def choose(self, trainings: Trainings) -> Choice:
        """Return the next training.

        Raises:
            HorizonExceededError: If every configuration has been trained to its end, is in training, or
                has been abandoned.
        """
        opening = opening_of(self._new, trainings)
        if opening is not None:
            return opening
        self._shares.learn(trainings)
        with torch.no_grad():
            common = Common.of(trainings, self._ladder)
            outlooks = [belief.outlook(trainings, common) for belief in self._beliefs.values()]
            choice = self._by(outlooks[self._shares.turn()], trainings)
            training = choice.training
            if training is not None:
                until = self._ladder.after(training.done, training.length)
                chances = [outlook.chance(training, until) for outlook in outlooks]
                self._shares.foretell(training, until, trainings.best_latest, chances)
        return choice

    def _by(self, outlook: Outlook, trainings: Trainings) -> Choice:
        """Return the choice of one belief."""
        going_on = trainings.going_on
        new = self._new.best(outlook, trainings)
        promise = -math.inf if new is None else float(outlook.promise(new))
        promises = outlook.promises(going_on, resumes=self._resumes)
        if new is not None and promise > max(promises, default=-math.inf):
            return Choice(new, None, "a new configuration promises most by its cost")
        if not going_on:
            return first_of(going_on)
        training = going_on[promises.index(max(promises))]
        return Choice(training.point, training, "its end promises most by the cost until then")

    def predict(self, trainings: Trainings, points: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the median and half the width of the central 68 % of final rewards, each ``(n,)``.

        The model predicts normal scores, which the quantiles of the rewards so far convert to rewards;
        between an outlier and the others there is nothing to interpolate.
        """
        if not len(trainings.rewards):
            return None
        rewards = tempered(trainings.rewards)
        outlook = self._ranks.outlook(trainings, Common.of(trainings, self._ladder))
        with torch.no_grad():
            mean, variance = outlook.end.mean_and_variance(points.unsqueeze(-2))
        mean, std = mean.squeeze(-1), variance.squeeze(-1).sqrt()
        scores = (mean, mean + std, mean - std)
        middle, high, low = (rewards_at(score, rewards) for score in scores)
        return middle, (high - low) / 2

    def early_signal(self, share: float) -> float | None:
        """Return the correlation of a reward after a share of a training with the final reward."""
        return self._growth.early_signal(share)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""
        beliefs = {name: belief.state_dict() for name, belief in self._beliefs.items()}
        return {**beliefs, "shares": self._shares.state_dict(), "new": self._new.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        for name, belief in self._beliefs.items():
            belief.load_state_dict(state[name])
        self._shares.load_state_dict(state["shares"])
        self._new.load_state_dict(state["new"])


def opening_of(new: NewPoints, trainings: Trainings) -> Choice | None:
    """Return the next training before the model decides; None once it does."""
    first = new.first(trainings)
    if first is not None:
        return Choice(first, None, "of the portfolio of the earlier studies' best")
    unmeasured = not len(trainings.rewards)
    others = new.others(trainings)
    sound = sum(not training.broken for training in others)
    if not unmeasured and (sound >= _FIRST or len(others) >= _MOST_FIRST):
        return None
    point = new.random(trainings)
    if point is not None:
        return Choice(point, None, "a first look, at random")
    return first_of(trainings.going_on) if unmeasured else None


def first_of(trainings: list[Training]) -> Choice:
    """Return the first training that may go on, for lack of any information about them."""
    expected = "a configuration that is neither trained to its end nor in training nor left"
    check(len(trainings) > 0, "ask", expected, "none", HorizonExceededError)
    return Choice(trainings[0].point, trainings[0], "the first that may go on")


def _trained(points: Tensor, trainings: Trainings, distance: float) -> Tensor:
    """Return which points lie within a distance of a trained configuration, bool, ``(n,)``."""
    if not len(trainings):
        return torch.zeros(len(points), dtype=torch.bool, device=points.device)
    return among(points, trainings.points, distance)
