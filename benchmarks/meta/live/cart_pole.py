"""Policy search for the cart and its pole, by eight weights of a linear softmax policy.

The tasks differ in the state in which an episode begins. Three of them begin near the state of the
target, eight anywhere from where a pole can be caught. A policy takes the action with the larger logit;
its value is the number of steps until the pole falls or the cart leaves, at most 200, divided by 200
and averaged over ten episodes, each of which begins a little beside the state of the task. The numbers
of tasks and episodes are ours. The physics are those of gymnasium's CartPole, for many episodes at
once.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.meta.live.family import Config, Family
from botorch_costly import Real, SearchSpace

_STATES, _ACTIONS = ("x", "velocity", "angle", "spin"), ("left", "right")
SPACE = SearchSpace({f"{a} {s}": Real(-1.0, 1.0) for a in _ACTIONS for s in _STATES})

LONGEST = 200  # steps of an episode
_EPISODES, _BESIDE = 10, 0.02
_SIMILAR, _DISSIMILAR, _NEAR = 3, 8, 0.05
_WIDEST = (1.5, 0.5, 0.12, 0.5)  # of states at random
_TARGET = (0.8, 0.2, -0.06, -0.1)

_GRAVITY, _CART, _POLE, _HALF_LENGTH, _FORCE, _SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
_MASS = _CART + _POLE
_FARTHEST, _STEEPEST = 2.4, math.radians(12)


def beginnings(times: int = 1) -> dict[str, Tensor]:
    """Return the state in which each task begins, of ``times`` as many tasks as are recorded."""
    generator = torch.Generator().manual_seed(0)

    def drawn(count: int) -> Tensor:
        return 2 * torch.rand(count, 4, generator=generator, dtype=torch.float64) - 1

    target = torch.tensor(_TARGET, dtype=torch.float64)
    similar = target + _NEAR * drawn(times * _SIMILAR)
    dissimilar = torch.tensor(_WIDEST, dtype=torch.float64) * drawn(times * _DISSIMILAR)
    named = {f"similar {k + 1}": state for k, state in enumerate(similar)}
    return {
        "target": target,
        **named,
        **{f"dissimilar {k + 1}": state for k, state in enumerate(dissimilar)},
    }


BEGINNINGS = beginnings()


def stepped(state: Tensor, right: Tensor) -> Tensor:
    """Return the states after a step of Euler's method, shape ``(*batch, 4)``.

    A state is place and velocity of the cart, angle and spin of the pole; ``right`` says whether the cart
    is pushed to the right, shape ``(*batch,)``.

    References:
        R. V. Florian. Correct equations for the dynamics of the cart-pole system. 2007, equations
        (23) and (24), without friction.
    """
    _, velocity, angle, spin = state.unbind(-1)
    sine, cosine = angle.sin(), angle.cos()
    force = torch.where(right, _FORCE, -_FORCE)
    push = (force + _POLE * _HALF_LENGTH * spin.square() * sine) / _MASS
    turned = (_GRAVITY * sine - cosine * push) / (
        _HALF_LENGTH * (4 / 3 - _POLE * cosine.square() / _MASS)
    )
    moved = push - _POLE * _HALF_LENGTH * turned * cosine / _MASS
    change = torch.stack([velocity, moved, spin, turned], dim=-1)
    return state + _SECONDS * change


def over(state: Tensor) -> Tensor:
    """Return whether the cart left or the pole fell, shape ``(*batch,)``."""
    return (state[..., 0].abs() > _FARTHEST) | (state[..., 2].abs() > _STEEPEST)


def survived(weights: Tensor, state: Tensor) -> Tensor:
    """Return how many steps episodes took, the last one included, shape ``(*batch,)``.

    Policies have a row of weights for each action, shape ``(*batch, 2, 4)``; episodes begin in the
    states, shape ``(*batch, 4)``.
    """
    preferred = weights[..., 1, :] - weights[..., 0, :]
    going = torch.ones(state.shape[:-1], dtype=torch.bool)
    steps = torch.zeros(state.shape[:-1], dtype=torch.float64)
    for _ in range(LONGEST):
        state = stepped(state, (preferred * state).sum(-1) > 0)
        steps += going
        going = going & ~over(state)
    return steps


def evaluate_all(task: str, configs: Sequence[Config], seeds: Sequence[int]) -> list[float]:
    """Return the values of policies, each on episodes of its own seed."""
    return values_from(BEGINNINGS[task], configs, seeds)


def values_from(beginning: Tensor, configs: Sequence[Config], seeds: Sequence[int]) -> list[float]:
    """Return the values of policies whose episodes begin beside a state, shape ``(4,)``."""
    rows = [[config[name] for name in SPACE.names] for config in configs]
    weights = torch.tensor(rows, dtype=torch.float64)
    beside = torch.stack([_perturbations(seed) for seed in seeds])
    policies = weights.reshape(-1, 1, 2, 4).expand(-1, _EPISODES, -1, -1)
    return (survived(policies, beginning + beside).mean(-1) / LONGEST).tolist()


def _perturbations(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(_EPISODES, 4, generator=generator, dtype=torch.float64)
    return _BESIDE * (2 * drawn - 1)


CART_POLE = Family(
    "cart-pole", SPACE, tuple(BEGINNINGS), ("target",), evaluate_all, block=2000, recorded=2000
)
