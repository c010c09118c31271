"""Advantage actor-critic on InvertedPendulum, by the settings of the paper's Tables 3 and 5.

References:
    - V. Mnih and others. Asynchronous methods for deep reinforcement learning. ICML 2016.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
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
_STRONGEST = 3.0  # force
_ENTROPY = 0.01
_STEPS = 32  # between updates; the paper does not say


class Step(NamedTuple):
    """One step of an episode."""

    state: Tensor  # shape: (4,)
    force: float
    reward: float


class Pendulum:
    """A training; a round is an episode, its reward the mean return of the latest hundred."""

    def __init__(self, config: Mapping[str, Plain], seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._gamma = as_number("gamma", config["gamma"])
        sizes = (4, _HIDDEN, _HIDDEN, 1)
        self._actor, self._critic = perceptron(sizes, generator), perceptron(sizes, generator)
        self._log_sd = torch.zeros((), requires_grad=True)
        rates = {name: as_number(name, config[name]) for name in ("actor_lr", "critic_lr")}
        actor = {"params": [*self._actor.parameters(), self._log_sd], "lr": rates["actor_lr"]}
        critic = {"params": list(self._critic.parameters()), "lr": rates["critic_lr"]}
        self._optimizer = torch.optim.Adam([actor, critic], foreach=True)
        self._draws, self._average = np.random.default_rng(seed), Average()
        self._environment = environment("InvertedPendulum-v5")
        self._environment.reset(seed=seed)

    def play(self) -> float:
        """Play an episode, learning on the way; NaN once the network has diverged."""
        state, total, over = observed(self._environment.reset()[0]), 0.0, False
        steps: list[Step] = []
        while not over:
            force = self._act(state)
            if not math.isfinite(force):
                return math.nan
            shown, reward, fell, ended, _ = self._environment.step(
                [max(-_STRONGEST, min(force, _STRONGEST))]
            )
            steps.append(Step(state, force, reward))
            state, total, over = observed(shown), total + reward, fell or ended
            if over or len(steps) == _STEPS:
                self._learn(steps, None if fell else state)
                steps = []
        return self._average.after(total)

    @torch.inference_mode()
    def _act(self, state: Tensor) -> float:
        return float(self._actor(state)) + float(self._log_sd.exp()) * self._draws.normal()

    def _learn(self, steps: list[Step], after: Tensor | None) -> None:
        """Learn from the latest steps, and what the critic expects after them, if they go on."""
        with torch.no_grad():
            future = 0.0 if after is None else float(self._critic(after))
        wanted = torch.tensor(returns([step.reward for step in steps], self._gamma, future))
        states = torch.stack([step.state for step in steps])
        forces = torch.tensor([step.force for step in steps])
        advantage = wanted - self._critic(states).squeeze(-1)
        policy = torch.distributions.Normal(
            self._actor(states).squeeze(-1), self._log_sd.exp(), False
        )
        gain = (policy.log_prob(forces) * advantage.detach()).mean() + _ENTROPY * self._log_sd
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


PENDULUM = Program(SPACE, Pendulum, Length(100, 6))  # which ends in minutes
PUBLISHED_PENDULUM = PENDULUM._replace(length=Length(100, 15))
