"""What to train next: a training that goes on, or a new configuration, whichever promises more."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from botorch_costly.ask_tell.design import sobol
from botorch_costly.ask_tell.search import CLOSE, SAME, Search, among, is_listed
from botorch_costly.device import Tkwargs
from botorch_costly.errors import HorizonExceededError, check
from botorch_costly.numerics.robust import rewards_at
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.smooth import by_autograd
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.curves.ends import EndBelief, EndOutlook
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.trainings import Training, Trainings

_AT_FIRST = 3  # new configurations that did not diverge before there is a belief ...
_MOST_AT_FIRST = 9  # ... and of all together, at most
_SPREAD = 512  # points that stand for a large space
_AROUND, _NEAR = 4, 0.05  # points around each that has been trained, and how far they are from it
_CLIMBS = 25  # steps from the best of all these


class Choice(NamedTuple):
    """What is trained next."""

    point: Tensor  # encoded, shape: (d,)
    training: Training | None  # that goes on; None for a new one
    reason: str
    share: float | None = None  # of the whole training, until which; None for the next rung


class Outlook(Protocol):
    """What is believed of configurations."""

    def of(self, X: Tensor) -> Tensor:
        """Return what new configurations (``batch_shape x d``) promise by their cost, in logarithms."""


class Chooser(Protocol):
    """Decides what is trained next."""

    def choose(self, trainings: Trainings) -> Choice:
        """Return the choice; it depends on the trainings and on the state of this."""

    def predict(self, trainings: Trainings, points: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return mean and standard deviation of rewards at the end, ``(n,)``; None if not known."""

    def early_signal(self, share: float) -> float | None:
        """Return how well ranks after a share of a training foretell those at its end."""

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


class NewPoints:
    """Configurations that have not been trained: those of a list, or of the whole space.

    A large space is looked at where representatives of it lie, at what has been trained, and around
    that; the best of these are climbed from.

    Args:
        space: Of the configurations.
        listed: Encodings of those to choose from, shape ``(n, d)``; None for the whole space.
        search: How the space is searched: from how many of the best.
        generator: Of random configurations, on the CPU.
        tkwargs: Dtype and device of the points.
    """

    def __init__(
        self,
        space: SearchSpace,
        listed: Tensor | None,
        search: Search,
        generator: torch.Generator,
        tkwargs: Tkwargs,
    ) -> None:
        self.empty = torch.empty(0, space.dim, **tkwargs)
        self._space, self._generator, self._starts = space, generator, search.num_restarts
        if listed is None and is_listed(space):
            listed = torch.stack([space.encode(config) for config in space.configurations()])
        self._listed = None if listed is None else listed.to(**tkwargs)
        self._spread = self.empty if listed is not None else self._drawn(sobol(space, _SPREAD, 0))

    def random(self, trainings: Trainings) -> Tensor | None:
        """Return one at random, shape ``(d,)``; None if all have been trained."""
        if self._listed is None:
            return self._drawn(self._space.sample(1, self._generator)[0])
        left = self._listed[~_trained(self._listed, trainings, SAME)]
        if not len(left):
            return None
        return left[int(torch.randint(len(left), (1,), generator=self._generator))]

    def _drawn(self, points: Tensor) -> Tensor:
        return points.to(self.empty)

    def best(self, outlook: Outlook, trainings: Trainings) -> Tensor | None:
        """Return one that promises most, shape ``(d,)``; None if all have been trained."""
        if self._listed is None:
            points, distance = self._climbed(outlook, trainings), CLOSE
        else:
            points, distance = self._listed, SAME
        left = points[~_trained(points, trainings, distance)]
        with torch.no_grad():
            return left[outlook.of(left).argmax()] if len(left) else self.random(trainings)

    def _climbed(self, outlook: Outlook, trainings: Trainings) -> Tensor:
        """Return the best points looked at, and where they lead, as configurations."""
        seen = trainings.points
        near = seen.repeat_interleave(_AROUND, 0)
        away = torch.randn(near.shape, generator=self._generator, dtype=torch.float64).to(near)
        points = torch.cat([self._spread, self._space.round((near + _NEAR * away).clamp(0, 1))])
        with torch.no_grad():
            best = outlook.of(points).topk(min(self._starts, len(points))).indices
        starts = points[best]
        cube = torch.stack([torch.zeros_like(starts[0]), torch.ones_like(starts[0])])
        loss = by_autograd(lambda X: -outlook.of(X))
        end = minimize_batch(loss, starts, cube, max_iter=_CLIMBS)
        return torch.cat([starts, self._space.round(end.point)])

    def state_dict(self) -> dict[str, Any]:
        """Return what the next call depends on."""
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._generator.set_state(state["generator"].cpu())


class EndChooser:
    """Chooses by the expected improvement at the end, by unit of cost until then.

    Args:
        new: Configurations that have not been trained.
        ladder: Where the rewards of a training count.
        generator: Of random draws.
        resumes: Whether a training can go on; otherwise it begins anew.
    """

    def __init__(
        self,
        new: NewPoints,
        ladder: Ladder,
        generator: torch.Generator,
        *,
        resumes: bool,
    ) -> None:
        self._new, self._generator = new, generator
        self._belief, self._resumes = EndBelief(new.empty, ladder), resumes

    def choose(self, trainings: Trainings) -> Choice:
        """Return what is trained next.

        Raises:
            HorizonExceededError: If every configuration has been trained to its end, is in training, or
                is left.
        """
        opening = opening_of(self._new, trainings)
        if opening is not None:
            return opening
        going_on = trainings.going_on
        outlook = self._belief.outlook(trainings, self._generator)
        with torch.no_grad():
            new = self._new.best(outlook, trainings)
            promise = -math.inf if new is None else float(outlook.of(new))
            promises = self._promises(outlook, going_on)
        if new is not None and promise > max(promises, default=-math.inf):
            return Choice(new, None, "a new configuration promises most by its cost")
        if not going_on:
            return first_of(going_on)
        training = going_on[promises.index(max(promises))]
        return Choice(training.point, training, "its end promises most by the cost until then")

    def _promises(self, outlook: EndOutlook, trainings: list[Training]) -> list[float]:
        if not trainings:
            return []
        done = [t.done / t.length if self._resumes else 0.0 for t in trainings]
        points = torch.stack([t.point for t in trainings])
        left = 1 - points.new_tensor(done)
        return outlook.of(points, left).tolist()

    def predict(self, trainings: Trainings, points: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return median and half of the central 68 % of rewards at the end, each of shape ``(n,)``.

        The model predicts normal scores; the rewards so far turn these back into rewards.
        """
        if not len(trainings.rewards):
            return None
        outlook = self._belief.outlook(trainings, self._generator)
        with torch.no_grad():
            mean, variance = outlook.end.mean_and_variance(points.unsqueeze(-2))
        mean, std = mean.squeeze(-1), variance.squeeze(-1).sqrt()
        middle, high, low = (
            rewards_at(score, trainings.rewards) for score in (mean, mean + std, mean - std)
        )
        return middle, (high - low) / 2

    def early_signal(self, share: float) -> float | None:
        """Return how well ranks after a share of a training foretell those at its end."""
        return self._belief.early_signal(share)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""
        return {"belief": self._belief.state_dict(), "new": self._new.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._belief.load_state_dict(state["belief"])
        self._new.load_state_dict(state["new"])


def opening_of(new: NewPoints, trainings: Trainings) -> Choice | None:
    """Return what is trained before there is a belief; None if there is one."""
    blind = not len(trainings.rewards)
    sound = len(trainings) - trainings.broken
    if not blind and (sound >= _AT_FIRST or len(trainings) >= _MOST_AT_FIRST):
        return None
    point = new.random(trainings)
    if point is not None:
        return Choice(point, None, "a first look, at random")
    return first_of(trainings.going_on) if blind else None


def first_of(trainings: list[Training]) -> Choice:
    """Return the first training that may go on, where nothing tells one from another."""
    expected = "a configuration that is neither trained to its end nor in training nor left"
    check(len(trainings) > 0, "ask", expected, "none", HorizonExceededError)
    return Choice(trainings[0].point, trainings[0], "the first that may go on")


def _trained(points: Tensor, trainings: Trainings, distance: float) -> Tensor:
    """Return which points are no further from one that has been trained, bool of shape ``(n,)``."""
    if not len(trainings):
        return torch.zeros(len(points), dtype=torch.bool, device=points.device)
    return among(points, trainings.points, distance)
