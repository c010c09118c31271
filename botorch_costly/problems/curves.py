"""Recorded learning curves: what a training would show, and what it would cost, known beforehand."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check, check_count


class Stretch(NamedTuple):
    """What a training shows when it goes on."""

    curve: Tensor  # rewards from the first iteration to the last one trained, shape: (t,)
    cost: float  # of this stretch
    broken: bool  # whether it diverged on the way, and cannot go on


class CurveProblem:
    """Learning curves of finitely many configurations, each with its cost.

    A training may be stopped anywhere and continued from there. One that diverges is broken: it keeps
    what it showed, and has cost the time until then.

    Args:
        inputs: Configurations in the unit cube, ``n x d``.
        rewards: Larger is better, ``n x T``; NaN after the end of a training, and where it broke.
        elapsed: Cost since the first iteration, ``n x T``, increasing; NaN where no reward is known.
        lengths: Iterations of a whole training of each configuration, ``n`` integers in 1 .. T.
        startup: What a training costs that breaks before its first reward.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a length is out of range, no training is whole, or costs do not increase.

    Example:
        >>> rewards = torch.tensor([[0.1, 0.5], [0.2, torch.nan]])
        >>> elapsed = torch.tensor([[3.0, 7.0], [3.0, torch.nan]])
        >>> problem = CurveProblem(torch.rand(2, 1), rewards, elapsed, [2, 2])
        >>> problem.advance(0, since=1, until=2).cost, problem.advance(1, since=0, until=2).broken
        (4.0, True)
    """

    def __init__(
        self,
        inputs: Tensor,
        rewards: Tensor,
        elapsed: Tensor,
        lengths: Sequence[int] | Tensor,
        *,
        startup: float = 0.0,
    ) -> None:
        shape = tuple(rewards.shape)
        check(rewards.dim() == 2 and rewards.numel() > 0, "rewards", "shape (n, T)", shape)
        rows = inputs.dim() == 2 and len(inputs) == len(rewards)
        check(rows, "inputs", f"{shape[0]} rows", tuple(inputs.shape), InvalidShapeError)
        fits = elapsed.shape == rewards.shape
        check(fits, "elapsed", f"shape {shape}", tuple(elapsed.shape), InvalidShapeError)
        self.inputs, self.rewards, self.elapsed = inputs, rewards, elapsed
        self.lengths = torch.as_tensor(lengths)
        counts = self.lengths.shape == (shape[0],)
        check(counts, "lengths", f"{shape[0]}", tuple(self.lengths.shape), InvalidShapeError)
        inside = bool(((self.lengths >= 1) & (self.lengths <= shape[1])).all())
        check(inside, "lengths", f"integers in 1 .. {shape[1]}", self.lengths)
        self.startup = startup
        self._known = self._counted()
        self._costs = self._paid()
        self._check_costs()

    def _counted(self) -> Tensor:  # shape: (n,)
        """Return how many iterations each training shows before its end or before it breaks."""
        at = torch.arange(self.rewards.shape[1])
        missing = self.rewards.isnan() | (at >= self.lengths.unsqueeze(-1))
        return torch.where(missing.any(-1), missing.int().argmax(-1), self.rewards.shape[1])

    def _paid(self) -> Tensor:  # shape: (n, T + 1)
        """Return the cost of the first ``t`` iterations, ``t = 0 .. T``; beyond the known ones theirs."""
        first = torch.zeros_like(self.elapsed[:, :1])
        costs = torch.cat([first, self.elapsed.nan_to_num(0.0)], -1)
        beyond = torch.arange(costs.shape[1]) > self._known.unsqueeze(-1)
        last = costs.gather(-1, self._known.unsqueeze(-1))
        return torch.where(beyond, last + self.startup * (self._known.unsqueeze(-1) == 0), costs)

    def _check_costs(self) -> None:
        good = bool((self._costs.diff(dim=-1) >= 0).all()) and bool(self._costs.isfinite().all())
        check(good, "elapsed", "costs that increase, wherever a reward is known", self.elapsed)
        whole = bool(self.whole.any())
        check(whole, "rewards", "at least one training that is whole", int(self.whole.sum()))

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def whole(self) -> Tensor:
        """Which trainings reach their end, shape ``n``, bool."""
        return self._known == self.lengths

    @property
    def ends(self) -> Tensor:
        """The last reward of each training, NaN without any, shape ``n``."""
        last = (self._known - 1).clamp_min(0).unsqueeze(-1)
        ends = self.rewards.gather(-1, last).squeeze(-1)
        return torch.where(self._known > 0, ends, torch.nan)

    @property
    def costs(self) -> Tensor:
        """What each training costs until its end or until it breaks, shape ``n``."""
        return self._costs[:, -1]

    @property
    def best(self) -> float:
        """The largest last reward."""
        return float(self.ends.nan_to_num(-torch.inf).max())

    @property
    def worst(self) -> float:
        """The least reward of all."""
        return float(self.rewards.nan_to_num(torch.inf).min())

    def advance(self, config: int, since: int, until: int) -> Stretch:
        """Train a configuration from one iteration to another.

        Args:
            config: Its number.
            since: Iterations that it has been trained for.
            until: Iterations that it is to be trained for, at most its length.

        Raises:
            InvalidArgumentError: If it does not go on, goes on beyond its end, or has broken before.
        """
        length, known = int(self.lengths[config]), int(self._known[config])
        check_count("since", since)
        check(since < until <= length, "until", f"in {since + 1} .. {length}", until)
        if since > known:
            raise InvalidArgumentError("since", f"at most {known}, where it broke", since)
        shown = min(until, known)
        cost = float(self._costs[config, until] - self._costs[config, since])
        return Stretch(self.rewards[config, :shown], cost, shown < until)
