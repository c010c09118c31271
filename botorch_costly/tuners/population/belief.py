r"""The model of a population: one Gaussian process of the gains of all members.

All members of a round are equally far in their training, so a gain counts relative to the round's level.
With :math:`g_i` the gains of the members in a round and :math:`m(x_i)` the posterior means of their
configurations, the level of the round and the rewards are

.. math:: c = \operatorname{median}_i \left(g_i - m(x_i)\right), \qquad r_i = g_i - c .

Without the level, gains that fall in the course of a run would favour the configurations of its first
rounds. A mean in place of the median would favour all other members if one diverged.

Configurations for several members are chosen one after the other by an upper confidence bound (GP-BUCB):
its standard deviation is conditioned on the configurations that other members play, its mean is not.
Conditioning on a reward equal to the mean achieves both.

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
from botorch_costly.rewards.scale import RewardScale, trusts
from botorch_costly.space import SearchSpace

_FORGETTING, _NOISE = 0.02, 0.3  # forgetting per round; noise as a share of the variance of rewards
_LENGTHSCALE = 0.5  # times the square root of the dimension
_SEARCH = Search(num_restarts=20)
_SCALE = RewardScale(center=0.0)  # rewards have a mean of 0 in every round


class PopulationBelief:
    """A Gaussian process over ``[configuration, round]``, conditioned on the gains of all members.

    Args:
        space: Search space of the configurations.
        beta: Factor of the upper confidence bound, at least 0.
        seed: Seed of the search.

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

    def learn(
        self,
        now: int,
        points: Tensor,
        gains: Sequence[float],
        variances: Sequence[float] | None = None,
    ) -> None:
        """Learn the gains of members in a round.

        Args:
            now: Number of the round.
            points: Encoded configurations, ``n x d``; nothing is learnt from a single one.
            gains: Finite gains, ``n`` of them.
            variances: Variance of each gain beyond that of a whole validation set; 0 if omitted.
        """
        if len(gains) < 2:
            return
        new = points.new_tensor(list(gains))
        mean, _ = self.mean_and_variance(points, now)
        rewards = new - (new - mean).quantile(0.5)
        model = copy.copy(self.model)
        beyond = [0.0] * len(gains) if variances is None else variances
        for x, reward, variance in zip(points, rewards.tolist(), beyond, strict=True):
            model.observe(torch.cat([x, x.new_tensor([float(now)])]), reward, variance)
        weights, rewards = model.weights(float(now)), model.rewards
        affine = _SCALE.fit(rewards.tolist(), weights.tolist())
        slopes = None
        if bool(model.variances.any()):
            weights = weights * trusts(model.variances, affine.scale)
            affine = _SCALE.fit(rewards.tolist(), weights.tolist())
            slopes = _SCALE.slopes(rewards, _SCALE.targets(rewards, affine), affine)
        model.rescale(*affine, _SCALE.targets(rewards, affine), slopes)
        self.model = model

    def mean_and_variance(self, points: Tensor, now: int) -> tuple[Tensor, Tensor]:
        """Return the posterior of configurations (``n x d``) in a round, each of shape ``(n,)``."""
        rows = at_round(points, points.new_tensor(float(now)))
        mean, variance = self.model.mean_and_variance(rows)
        return mean.detach(), variance.detach()

    def are_apart(self, points: Tensor) -> Tensor:
        """Return which pairs of configurations (``n x d``) are farther apart than the bandwidth."""
        return torch.cdist(points, points) > _SEARCH.bandwidth

    def incumbent(self, now: int, start: Tensor) -> Tensor:
        """Return the incumbent, encoded, shape ``(d,)``.

        It has the largest lower confidence bound, of one standard deviation, of its advantage over the
        start; the start if no bound is above 0.

        Args:
            now: Number of the round.
            start: Encoded start, shape ``(d,)``.
        """
        if not self.model.num_rows:
            return start
        points = torch.cat([start.unsqueeze(0), self.model.inputs[:, :-1].unique(dim=0)])
        prepared = self.model.project(at_round(points, points.new_tensor(float(now))))
        first = ProjectedRows(prepared.rows[:1], prepared.projected[:1])
        mean, variance, shared = self.model.covariance_with(prepared, first)
        difference = (variance + variance[0] - 2 * shared[:, 0]).clamp_min(0)
        bound = mean - mean[0] - difference.sqrt()
        bound[0] = 0.0
        return points[int(bound.argmax())]  # the start if bounds are equal

    def choose(self, now: int, playing: Tensor) -> Tensor:
        """Return the next configuration to try, encoded, shape ``(d,)``.

        Args:
            now: Number of the round.
            playing: Encoded configurations that other members play in it, ``k x d``.
        """
        model = self.model.in_prior_units()
        if len(playing):
            model.maximum_rows += len(playing)  # an observation is not dropped for what is assumed
            rows = at_round(playing, playing.new_tensor(float(now)))
            mean, _ = model.mean_and_variance(rows)
            model = model.condition_on_observations(rows, mean.detach().unsqueeze(-1))
        bound = TimeVaryingUCB(model, self._beta, now)
        return self._search.local_optima(bound, self._generator, others=False).points[0]

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
