"""Recorded learning curves: the rewards and costs of trainings, known beforehand."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_count


class Segment(NamedTuple):
    """Rewards and cost of a segment of a training."""

    curve: Tensor  # rewards from the first iteration to the last trained one, shape: (t,)
    cost: float  # cost of this segment
    broken: bool  # whether the training diverged in this segment, and cannot go on


class CurveProblem:
    """Learning curves of finitely many configurations, each with its cost.

    A training may be stopped after any iteration and continued from there. A training that diverges is
    broken: it keeps its rewards and its cost up to that iteration.

    Args:
        inputs: Configurations in the unit cube, ``n x d``.
        rewards: Rewards, larger is better, ``n x T``; NaN after a training has ended or diverged.
        elapsed: Cost from the start of a training, ``n x T``, increasing; NaN without a reward.
        lengths: Iterations of a whole training of each configuration, ``n`` integers in 1 .. T.
        startup: Cost of a training that diverges before its first reward.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a length is out of range, no training is whole, or costs decrease.

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
        self._recorded = self._recorded_iterations()
        self._costs = self._cumulative_costs()
        increase = bool((self._costs.diff(dim=-1) >= 0).all() and self._costs.isfinite().all())
        check(increase, "elapsed", "costs that increase, wherever there is a reward", elapsed)
        whole = int(self.whole.sum())
        check(whole > 0, "rewards", "at least one training that is whole", whole)

    def _recorded_iterations(self) -> Tensor:  # shape: (n,)
        """Return the number of iterations of each training before it ends or diverges."""
        iterations = torch.arange(self.rewards.shape[1])
        missing = self.rewards.isnan() | (iterations >= self.lengths.unsqueeze(-1))
        return torch.where(missing.any(-1), missing.int().argmax(-1), self.rewards.shape[1])

    def _cumulative_costs(self) -> Tensor:  # shape: (n, T + 1)
        """Return the cost of the first ``t`` iterations, ``t = 0 .. T``, constant after the last one."""
        recorded = self._recorded.unsqueeze(-1)
        first = torch.zeros_like(self.elapsed[:, :1])
        costs = torch.cat([first, self.elapsed.nan_to_num(0.0)], -1)
        beyond = torch.arange(costs.shape[1]) > recorded
        last = costs.gather(-1, recorded)
        return torch.where(beyond, last + self.startup * (recorded == 0), costs)

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def whole(self) -> Tensor:
        """Whether each training reaches its full length, shape ``n``, bool."""
        return self._recorded == self.lengths

    @property
    def ends(self) -> Tensor:
        """The last reward of each training, NaN if it has none, shape ``n``."""
        last = (self._recorded - 1).clamp_min(0).unsqueeze(-1)
        ends = self.rewards.gather(-1, last).squeeze(-1)
        return torch.where(self._recorded > 0, ends, torch.nan)

    @property
    def costs(self) -> Tensor:
        """The cost of each training until it ends or diverges, shape ``n``."""
        return self._costs[:, -1]

    @property
    def best(self) -> float:
        """The largest last reward."""
        return float(self.ends.nan_to_num(-torch.inf).max())

    @property
    def worst(self) -> float:
        """The smallest of all rewards."""
        return float(self.rewards.nan_to_num(torch.inf).min())

    def advance(self, config: int, since: int, until: int) -> Segment:
        """Train a configuration from one iteration to another.

        Args:
            config: Row of the configuration.
            since: Iterations before this segment.
            until: Iterations after this segment, at most the length of the training.

        Raises:
            InvalidArgumentError: If ``until`` is not after ``since`` or beyond the length, or the
                training diverged before ``since``.
        """
        length, recorded = int(self.lengths[config]), int(self._recorded[config])
        check_count("since", since)
        check(since < until <= length, "until", f"in {since + 1} .. {length}", until)
        expected = f"at most {recorded}, where the training diverged"
        check(since <= recorded, "since", expected, since)
        end = min(until, recorded)
        cost = float(self._costs[config, until] - self._costs[config, since])
        return Segment(self.rewards[config, :end], cost, end < until)
