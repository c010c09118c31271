"""A dueling double DQN on CartPole, by the settings of the paper's Tables 2 and 5.

References:
    - Z. Wang, T. Schaul, M. Hessel, H. van Hasselt, M. Lanctot, N. de Freitas. Dueling network
      architectures for deep reinforcement learning. ICML 2016.
    - T. Schaul, J. Quan, I. Antonoglou, D. Silver. Prioritized experience replay. ICLR 2016.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from benchmarks.curves.live.program import (
    Average,
    Length,
    Program,
    environment,
    observed,
    perceptron,
)
from botorch_costly import Real, SearchSpace
from botorch_costly.parameters import Plain
from botorch_costly.plain import as_number

SPACE = SearchSpace({"gamma": Real(0.8, 1.0), "lr": Real(1e-6, 1e-2, log=True)})

_LONGEST = 200  # steps of an episode
_HIDDEN = 50
_GREED = (1.0, 0.05, 10_000)  # probability of a random action: first, last, steps between them
_CORRECTION = (1.0, 0.6, 1_000)  # exponent of importance weights: first, last, steps between them
_STORED, _BATCH = 10_000, 64
_LEARNS_EVERY, _COPIES_EVERY = 2, 200  # steps; the paper does not say
_LEAST_PRIORITY = 1e-3


class Batch(NamedTuple):
    """Transitions drawn from the memory."""

    rows: NDArray[np.int64]
    before: Tensor  # shape: (b, 4)
    action: Tensor  # shape: (b,)
    after: Tensor  # shape: (b, 4)
    goes_on: Tensor  # 1, or 0 where the pole fell, shape: (b,)
    weight: Tensor  # of importance, shape: (b,)


class Memory:
    """The latest transitions, drawn in proportion to their last temporal-difference errors."""

    def __init__(self, draws: np.random.Generator) -> None:
        self._draws, self._count = draws, 0
        self._rows = np.zeros((_STORED, 10), dtype=np.float32)
        self._priority = np.zeros(_STORED)

    def __len__(self) -> int:
        return min(self._count, _STORED)

    def add(self, before: Tensor, action: int, after: Tensor, fell: bool) -> None:
        """Store a transition, which is as likely to be drawn as the likeliest."""
        row = self._count % _STORED
        self._rows[row] = [*before.tolist(), action, *after.tolist(), not fell]
        self._priority[row] = self._priority[: max(len(self), 1)].max() or 1.0
        self._count += 1

    def draw(self, exponent: float) -> Batch:
        """Draw transitions; ``exponent`` is how far their weights undo the drawing."""
        total = np.cumsum(self._priority[: len(self)])
        rows = np.searchsorted(total, self._draws.random(_BATCH) * total[-1]).clip(0, len(self) - 1)
        share = self._priority[rows] / total[-1]
        weight = (len(self) * share) ** -exponent
        data = torch.from_numpy(self._rows[rows])
        weights = torch.from_numpy((weight / weight.max()).astype(np.float32))
        return Batch(rows, data[:, :4], data[:, 4].long(), data[:, 5:9], data[:, 9], weights)

    def learnt(self, rows: NDArray[np.int64], errors: Tensor) -> None:
        """Take the errors of drawn transitions as their priorities."""
        self._priority[rows] = errors.abs().numpy().astype(np.float64) + _LEAST_PRIORITY


class DuelingNetwork(nn.Module):
    """The value of a state, and by how much each action is better than the average one."""

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        self.body = nn.Sequential(perceptron((4, _HIDDEN, _HIDDEN), generator), nn.ReLU())
        self.value = perceptron((_HIDDEN, 1), generator)
        self.advantage = perceptron((_HIDDEN, 2), generator)

    def forward(self, state: Tensor) -> Tensor:
        """Return the values of both actions, shape ``(..., 2)``."""
        hidden = self.body(state)
        advantage = self.advantage(hidden)
        return self.value(hidden) + advantage - advantage.mean(-1, keepdim=True)


class CartPole:
    """A training; a round is an episode, its reward the mean return of the latest hundred."""

    def __init__(self, config: Mapping[str, Plain], seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._gamma = as_number("gamma", config["gamma"])
        self._network, self._target = DuelingNetwork(generator), DuelingNetwork(generator)
        self._target.load_state_dict(self._network.state_dict())
        rate = as_number("lr", config["lr"])
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=rate, foreach=True)
        self._draws = np.random.default_rng(seed)
        self._memory, self._average, self._steps = Memory(self._draws), Average(), 0
        self._environment = environment("CartPole-v1", max_episode_steps=_LONGEST)
        self._environment.reset(seed=seed)

    def play(self) -> float:
        state, total, over = observed(self._environment.reset()[0]), 0.0, False
        while not over:
            action = self._act(state)
            shown, reward, fell, ended, _ = self._environment.step(action)
            after = observed(shown)
            self._memory.add(state, action, after, fell)
            self._steps += 1
            if self._steps % _LEARNS_EVERY == 0 and len(self._memory) >= _BATCH:
                self._learn()
            state, total, over = after, total + reward, fell or ended
        return self._average.after(total)

    @torch.inference_mode()
    def _act(self, state: Tensor) -> int:
        if self._draws.random() < _between(_GREED, self._steps):
            return int(self._draws.integers(2))
        return int(self._network(state).argmax())

    def _learn(self) -> None:
        batch = self._memory.draw(_between(_CORRECTION, self._steps))
        with torch.no_grad():
            future = double_values(self._network(batch.after), self._target(batch.after))
            wanted = 1 + self._gamma * batch.goes_on * future
        value = self._network(batch.before).gather(-1, batch.action.unsqueeze(-1)).squeeze(-1)
        errors = wanted - value
        self._optimizer.zero_grad()
        (batch.weight * errors.square()).mean().backward()
        self._optimizer.step()
        self._memory.learnt(batch.rows, errors.detach())
        if self._steps % _COPIES_EVERY == 0:
            self._target.load_state_dict(self._network.state_dict())


def double_values(network: Tensor, target: Tensor) -> Tensor:
    """Return the target's values of the actions that the network would take, from ``b x 2`` each."""
    best = network.argmax(-1, keepdim=True)
    return target.gather(-1, best).squeeze(-1)


def _between(schedule: tuple[float, float, int], step: int) -> float:
    """Return what goes from a first value to a last one within some steps."""
    first, last, steps = schedule
    return first + (last - first) * min(step / steps, 1.0)


CARTPOLE = Program(SPACE, CartPole, Length(100, 3))  # which ends in minutes
PUBLISHED_CARTPOLE = CARTPOLE._replace(length=Length(100, 8))
