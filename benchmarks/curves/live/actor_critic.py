"""Advantage actor-critic on InvertedPendulum and Reacher, by the settings of the paper's Tables 3 and 5.

References:
    - V. Mnih and others. Asynchronous methods for deep reinforcement learning. ICML 2016.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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

SPACE = SearchSpace(
    {
        "gamma": Real(0.8, 1.0),
        "actor_lr": Real(1e-6, 1e-2, log=True),
        "critic_lr": Real(1e-6, 1e-2, log=True),
    }
)

_HIDDEN = 32
_ENTROPY = 0.01
_STEPS = 32  # between updates; the paper does not say


class Step(NamedTuple):
    """One step of an episode."""

    state: Tensor
    action: NDArray[np.float64]
    reward: float


class ActorCritic:
    """A training; a round is an episode, its reward the mean return of the latest hundred."""

    def __init__(self, name: str, config: Mapping[str, Plain], seed: int) -> None:
        self._environment = environment(name)
        self._environment.reset(seed=seed)
        (states,), (actions,) = (
            space.shape
            for space in (self._environment.observation_space, self._environment.action_space)
        )
        self._strongest = np.float64(self._environment.action_space.high)
        generator = torch.Generator().manual_seed(seed)
        self._gamma = as_number("gamma", config["gamma"])
        hidden = (states, _HIDDEN, _HIDDEN)
        self._actor = perceptron((*hidden, actions), generator)
        self._critic = perceptron((*hidden, 1), generator)
        self._log_sd = torch.zeros(actions, requires_grad=True)
        rates = {name: as_number(name, config[name]) for name in ("actor_lr", "critic_lr")}
        actor = {"params": [*self._actor.parameters(), self._log_sd], "lr": rates["actor_lr"]}
        critic = {"params": list(self._critic.parameters()), "lr": rates["critic_lr"]}
        self._optimizer = torch.optim.Adam([actor, critic], foreach=True)
        self._draws, self._average = np.random.default_rng(seed), Average()

    def play(self) -> float:
        """Play an episode, learning on the way; NaN once the network has diverged."""
        state, total, over = observed(self._environment.reset()[0]), 0.0, False
        steps: list[Step] = []
        while not over:
            action = self._act(state)
            if not np.isfinite(action).all():
                return math.nan
            shown, reward, fell, ended, _ = self._environment.step(
                action.clip(-self._strongest, self._strongest)
            )
            steps.append(Step(state, action, float(reward)))
            state, total, over = observed(shown), total + float(reward), fell or ended
            if over or len(steps) == _STEPS:
                self._learn(steps, None if fell else state)
                steps = []
        return self._average.after(total)

    @torch.inference_mode()
    def _act(self, state: Tensor) -> NDArray[np.float64]:
        sd = self._log_sd.exp().double().numpy()
        mean: NDArray[np.float64] = self._actor(state).double().numpy()
        return mean + sd * self._draws.normal(size=len(sd))

    def _learn(self, steps: list[Step], after: Tensor | None) -> None:
        """Learn from the latest steps, and what the critic expects after them, if they go on."""
        with torch.no_grad():
            future = 0.0 if after is None else float(self._critic(after))
        wanted = torch.tensor(returns([step.reward for step in steps], self._gamma, future))
        states = torch.stack([step.state for step in steps])
        actions = torch.from_numpy(np.stack([step.action for step in steps])).float()
        advantage = wanted - self._critic(states).squeeze(-1)
        policy = torch.distributions.Normal(self._actor(states), self._log_sd.exp(), False)
        log_density = policy.log_prob(actions).sum(-1)
        gain = (log_density * advantage.detach()).mean() + _ENTROPY * self._log_sd.sum()
        self._optimizer.zero_grad()
        (advantage.square().mean() - gain).backward()
        self._optimizer.step()


def returns(rewards: Sequence[float], gamma: float, future: float) -> list[float]:
    """Return the discounted sum of rewards from each step on, and of what is expected after them."""
    sums: list[float] = []
    for reward in reversed(rewards):
        future = reward + gamma * future
        sums.append(future)
    return sums[::-1]


_PENDULUM, _REACHER = (
    partial(ActorCritic, f"{name}-v5") for name in ("InvertedPendulum", "Reacher")
)
PENDULUM = Program(SPACE, _PENDULUM, Length(100, 6))  # which ends in minutes
PUBLISHED_PENDULUM = PENDULUM._replace(length=Length(100, 15))
REACHER = Program(SPACE, _REACHER, Length(100, 5))  # of the paper's length
