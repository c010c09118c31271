r"""What all members of a population taught, and which configurations are worth a try beside each other.

Members of one round share how far training has come, so a gain counts by how much it exceeds what its
round gave to all of them. With :math:`g_i` the gains of the members told in a round and :math:`m(x_i)`
what is believed of their configurations, the level of the round and the rewards are

.. math:: c = \operatorname{median}_i \left(g_i - m(x_i)\right), \qquad r_i = g_i - c .

Without it the falling gains of a run would credit whatever was played early; a mean in place of the
median would credit all others with the fall of a member that diverged.

Configurations for several members are chosen one after the other: an upper confidence bound whose
deviation knows of those that are being played, and whose mean does not (GP-BUCB). Conditioning on a
reward equal to the mean does both.

References:
    T. Desautels, A. Krause, J. Burdick. Parallelizing exploration-exploitation tradeoffs in Gaussian
    process bandit optimization. JMLR 15, 2014, section 4.

    J. Parker-Holder, V. Nguyen, S. Roberts. Provably efficient online hyperparameter optimization with
    population-based bandits. NeurIPS 2020. The level of a round is ours.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from botorch_costly.acquisition import TimeVaryingUCB, at_round
from botorch_costly.ask_tell.search import Search, is_listed, search_of
from botorch_costly.errors import InvalidSpaceError, check
from botorch_costly.models import StreamingGP
from botorch_costly.models.covariance import ProjectedRows
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.randomness import generator_of
from botorch_costly.rewards.scale import RewardScale
from botorch_costly.space import SearchSpace

_FORGETTING, _NOISE = 0.02, 0.3  # per round, and of a reward as a share of their variance
_LENGTHSCALE = 0.5  # times the root of the dimension
_SEARCH = Search(num_restarts=20)
_SCALE = RewardScale(center=0.0)  # rewards have a mean of 0 in every round


class PopulationBelief:
    """One belief over ``[configuration, round]`` from the gains of all members.

    Args:
        space: Of the configurations.
        beta: Of the upper confidence bound, at least 0.
        seed: Of the search.

    Raises:
        InvalidSpaceError: If the space holds a single configuration, or a schedule.
    """

    def __init__(self, space: SearchSpace, *, beta: float = 1.0, seed: int = 0) -> None:
        tunable = isinstance(space, SearchSpace) and space.dim > 0 and not space.is_scheduled
        wanted = "a SearchSpace with something to tune, and without schedules"
        check(tunable, "space", wanted, space, InvalidSpaceError)
        self._space, self._beta = space, beta
        tkwargs: dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}
        family = "arms" if space.is_arms and is_listed(space) else "matern52"
        lengthscale = torch.tensor([_LENGTHSCALE * math.sqrt(space.dim)], **tkwargs)
        kernel = Stationary(family, lengthscale, torch.ones((), **tkwargs))
        self.model = StreamingGP(kernel, _FORGETTING, _NOISE)
        self._search = search_of(space, _SEARCH, tkwargs)
        self._generator = generator_of(seed)

    def learn(self, now: int, points: Tensor, gains: Sequence[float]) -> None:
        """Learn what members gained in a round.

        Args:
            now: The round.
            points: Their configurations, encoded, ``n x d``; one alone says nothing, for it is compared
                with none.
            gains: Finite, ``n`` of them.
        """
        if len(gains) < 2:
            return
        new = points.new_tensor(list(gains))
        mean, _ = self.mean_and_variance(points, now)
        rewards = new - (new - mean).quantile(0.5)
        model = copy.copy(self.model)
        for x, reward in zip(points, rewards.tolist(), strict=True):
            model.observe(torch.cat([x, x.new_tensor([float(now)])]), reward)
        weights = model.weights(float(now)).tolist()
        affine = _SCALE.fit(model.rewards.tolist(), weights)
        model.rescale(*affine, _SCALE.targets(model.rewards, affine))
        self.model = model

    def mean_and_variance(self, points: Tensor, now: int) -> tuple[Tensor, Tensor]:
        """Return what is believed of configurations (``n x d``) in a round, each of shape ``(n,)``."""
        rows = at_round(points, points.new_tensor(float(now)))
        mean, variance = self.model.mean_and_variance(rows)
        return mean.detach(), variance.detach()

    def are_apart(self, points: Tensor) -> Tensor:
        """Return which configurations (``n x d``) are farther apart than the bandwidth, ``n x n``."""
        return torch.cdist(points, points) > _SEARCH.bandwidth

    def incumbent(self, now: int, start: Tensor) -> Tensor:
        """Return the configuration to rely on, encoded, shape ``(d,)``.

        It is the one seen whose advantage over the start has the largest lower bound, by a standard
        deviation, or the start if no such bound is above 0.

        Args:
            now: The round.
            start: Encoded, shape ``(d,)``.
        """
        if not self.model.num_rows:
            return start
        points = torch.cat([start.unsqueeze(0), self.model.inputs[:, :-1].unique(dim=0)])
        prepared = self.model.project(at_round(points, points.new_tensor(float(now))))
        first = ProjectedRows(prepared.rows[:1], prepared.projected[:1])
        mean, variance, shared = self.model.covariance_with(prepared, first)
        apart = (variance + variance[0] - 2 * shared[:, 0]).clamp_min(0)
        surely = mean - mean[0] - apart.sqrt()
        surely[0] = 0.0
        return points[int(surely.argmax())]  # the start, where bounds are equal

    def choose(self, now: int, playing: Tensor) -> Tensor:
        """Return the next configuration to try, encoded, shape ``(d,)``.

        Args:
            now: The round.
            playing: Those that other members play in it, ``k x d``.
        """
        believed = self.model.in_prior_units()
        if len(playing):
            rows = at_round(playing, playing.new_tensor(float(now)))
            mean, _ = believed.mean_and_variance(rows)
            believed = believed.condition_on_observations(rows, mean.detach().unsqueeze(-1))
        bound = TimeVaryingUCB(believed, self._beta, now)
        found = self._search.local_optima(bound, self._generator, others=False)
        return found.points[0]

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""
        return {
            "model": self.model.get_extra_state(),
            "search": self._search.state_dict(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        model = copy.copy(self.model)
        model.set_extra_state(dict(state["model"]))
        self.model = model
        self._search.load_state_dict(state["search"])
        self._generator.set_state(state["generator"].cpu())
