r"""A batch of Gaussian processes over arms and rounds, one for each trial, with its own hyperparameters.

The reward of arm ``i`` in round ``t`` is ``y = f_i(t) + noise``, and

    E f_i(t) = level,    Cov[f_i(t), f_j(t')] = s B_ij phi(|t - t'| / lengthscale),

with a covariance ``B`` of the arms (the identity for independent arms) and a profile ``phi`` of
``numerics.radial``: Matérn-1/2 is the forgetting kernel, with rate ``1 - exp(-2 / lengthscale)``. The
prior of the level is ``N(1/2, 0.3^2)`` in units of the reward range; its estimate is that of generalized
least squares,

    level = (1'K^{-1}y + 0.5 / 0.3^2) / (1'K^{-1}1 + 1 / 0.3^2).

Observations are appended to a padded inverse factor ``X = L^{-1}`` of ``K = L L'`` (see
``numerics.cholesky``); trials without a query keep their rows. When a trial has no free place, its oldest
quarter of observations is dropped and its factor is recomputed.

Convention: a padded row has variance 1 and covariance 0 with all others, and adds no information. All
computations are in float64.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.strategy import ArmBelief, Told
from botorch_costly.numerics.cholesky import inverse_root, sure_root
from botorch_costly.numerics.radial import PROFILES

LEVEL, LEVEL_STD = 0.5, 0.3
_FIRST_ROWS = 16
_LEAST = 1e-12  # least posterior variance, as a share of the prior variance
# Integral of phi from 0 to infinity in lengthscales: the correlation time.
_MEMORY = {
    "matern12": 1.0,
    "matern32": 2 / math.sqrt(3),
    "matern52": 8 / (3 * math.sqrt(5)),
    "rbf": math.sqrt(math.pi / 2),
}


class ArmRows(NamedTuple):
    """The observations of ``m`` trials in ``w`` places, with hyperparameters and factors."""

    arm: Tensor  # long, shape: (m, w)
    round: Tensor  # shape: (m, w)
    reward: Tensor  # shape: (m, w)
    taken: Tensor  # number of leading places in use, long, shape: (m,)
    arms: Tensor  # covariance B of the arms, shape: (m, n, n)
    theta: Tensor  # [log lengthscale, log s, log noise], shape: (m, 3)
    inverse: Tensor  # X, shape: (m, w, w)
    whitened: Tensor  # X [y, 1], shape: (m, w, 2)
    told: Tensor  # observations so far, including dropped ones, long, shape: (m,)
    fitted: Tensor  # observations at the last fit of the hyperparameters, long, shape: (m,)

    @property
    def seen(self) -> Tensor:
        """Mask of the places in use, bool, shape ``(m, w)``."""
        return torch.arange(self.arm.shape[-1], device=self.arm.device) < self.taken[:, None]

    @property
    def level(self) -> Tensor:
        """Estimate of the mean of the process, shape ``(m,)``."""
        reward, ones = self.whitened.unbind(-1)
        precision = 1 / LEVEL_STD**2
        weighted = (ones * reward).sum(-1) + precision * LEVEL
        return weighted / (ones.square().sum(-1) + precision)


def no_rows(
    trials: int,
    arms: Tensor,  # shape: (n, n)
    theta: Tensor,  # shape: (3,)
) -> ArmRows:
    """Return rows without observations, with the same covariance and hyperparameters in all trials."""
    w, device = _FIRST_ROWS, theta.device
    integers = torch.zeros(trials, w, dtype=torch.long, device=device)
    reals = torch.zeros(trials, w, dtype=theta.dtype, device=device)
    eye = torch.eye(w, dtype=theta.dtype, device=device).repeat(trials, 1, 1)
    none = integers[:, 0]
    repeated = arms.repeat(trials, 1, 1), theta.repeat(trials, 1)
    whitened = eye.new_zeros(trials, w, 2)
    return ArmRows(integers, reals, reals, none, *repeated, eye, whitened, none, none)


def arms_of_pairs(rows: ArmRows) -> Tensor:
    """Return ``B_ij`` of all pairs of observations, 0 for free places, ``(m, w, w)``."""
    both = rows.seen[:, :, None] & rows.seen[:, None, :]
    n, width = rows.arms.shape[-1], rows.arm.shape[-1]
    arms = rows.arms.gather(-2, rows.arm[:, :, None].expand(-1, -1, n))
    return torch.where(both, arms.gather(-1, rows.arm[:, None, :].expand(-1, width, -1)), 0.0)


def refactored(rows: ArmRows, family: str) -> ArmRows:
    """Return the rows with a new factor, as needed after a change of hyperparameters."""
    seen = rows.seen
    noise = torch.where(seen, rows.theta[:, 2:].exp(), 1.0)
    lag = (rows.round[:, :, None] - rows.round[:, None, :]).abs()
    cov = _time(family, rows.theta, lag) * arms_of_pairs(rows)
    inverse = inverse_root(sure_root(cov + torch.diag_embed(noise)))
    return rows._replace(inverse=inverse, whitened=inverse @ _right_hand_sides(rows))


def appended(rows: ArmRows, family: str, observed: Told, capacity: int) -> ArmRows:
    """Return the rows with new observations; trials without one keep their rows.

    Args:
        rows: Rows before the observations.
        family: A key of ``radial.PROFILES`` with a lengthscale.
        observed: At most one observation of each trial.
        capacity: Largest number of observations of a trial.
    """
    rows = _with_room(rows, family, observed.query, capacity)
    n = rows.arms.shape[-1]
    arms = rows.arms.gather(-2, observed.arm[:, None, None].expand(-1, 1, n))
    cross = _cross(rows, family, arms, observed.round)  # (m, 1, w)
    white = (cross @ rows.inverse.mT).squeeze(-2)
    prior = rows.theta[:, 1].exp() * arms[:, 0].gather(-1, observed.arm[:, None]).squeeze(-1)
    noise = rows.theta[:, 2].exp()
    pivot = (prior - white.square().sum(-1)).clamp_min(_LEAST * prior) + noise
    place, query = rows.taken[:, None], observed.query[:, None]
    row = -(white[:, None, :] @ rows.inverse).squeeze(-2) / pivot.sqrt()[:, None]
    row = row.scatter(-1, place.clamp_max(row.shape[-1] - 1), pivot.rsqrt()[:, None])
    sides = torch.stack([observed.reward, torch.ones_like(observed.reward)], -1)
    new = (sides - (white[:, None, :] @ rows.whitened).squeeze(-2)) / pivot.sqrt()[:, None]
    return rows._replace(
        arm=_written(rows.arm, place, observed.arm, query),
        round=_written(rows.round, place, observed.round, query),
        reward=_written(rows.reward, place, observed.reward, query),
        taken=rows.taken + observed.query,
        inverse=_row_written(rows.inverse, place, row, query),
        whitened=_row_written(rows.whitened, place, new, query),
        told=rows.told + observed.query,
    )


def belief_at(rows: ArmRows, family: str, now: float) -> ArmBelief:
    """Return the posterior of all arms in a round."""
    rounds = torch.full_like(rows.level, now)
    white = _cross(rows, family, rows.arms, rounds) @ rows.inverse.mT
    level = rows.level
    residual = rows.whitened[..., 0] - level[:, None] * rows.whitened[..., 1]
    mean = level[:, None] + (white @ residual[..., None]).squeeze(-1)
    prior_cov = rows.theta[:, 1].exp()[:, None, None] * rows.arms
    cov = prior_cov - white @ white.mT
    least = _LEAST * prior_cov.diagonal(dim1=-2, dim2=-1)
    short = (least - cov.diagonal(dim1=-2, dim2=-1)).clamp_min(0)
    memory = _MEMORY[family] * rows.theta[:, 0].exp()
    forgetting = -torch.expm1(-2 / memory)
    return ArmBelief(
        mean, cov + torch.diag_embed(short), prior_cov, rows.theta[:, 2].exp(), forgetting
    )


def _time(family: str, theta: Tensor, lag: Tensor) -> Tensor:
    """Return ``s phi`` of lags ``(m, a, b)``."""
    profile = PROFILES[family]
    unit = profile.constant / theta[:, 0].exp()
    return theta[:, 1].exp()[:, None, None] * profile.phi(lag * unit[:, None, None])


def _cross(rows: ArmRows, family: str, arms: Tensor, now: Tensor) -> Tensor:
    """Return the covariances of ``k`` arms in a round with the observations, ``(m, k, w)``.

    Args:
        rows: Observations of all trials.
        family: Family of the profile.
        arms: Rows of ``B``, ``(m, k, n)``.
        now: The round, ``(m,)``.
    """
    lag = (now[:, None] - rows.round).abs()[:, None, :]
    columns = rows.arm[:, None, :].expand(-1, arms.shape[1], -1)
    cov = _time(family, rows.theta, lag) * arms.gather(-1, columns)
    return torch.where(rows.seen[:, None, :], cov, 0.0)


def _right_hand_sides(rows: ArmRows) -> Tensor:
    seen = rows.seen
    return torch.stack([torch.where(seen, rows.reward, 0.0), seen.to(rows.reward)], -1)


def _with_room(rows: ArmRows, family: str, query: Tensor, capacity: int) -> ArmRows:
    """Return the rows with a free place in each trial that has a query."""
    width = rows.arm.shape[-1]
    full = query & (rows.taken == width)
    if not bool(full.any()):
        return rows
    if width < capacity:
        return _wider(rows, min(2 * width, capacity) - width)
    return _without_oldest(rows, family, full, max(capacity // 4, 1))


def _wider(rows: ArmRows, more: int) -> ArmRows:
    width, pad = rows.arm.shape[-1], torch.nn.functional.pad
    inverse = pad(rows.inverse, (0, more, 0, more))
    inverse[:, range(width, width + more), range(width, width + more)] = 1.0
    arm, rounds, reward = (pad(field, (0, more)) for field in (rows.arm, rows.round, rows.reward))
    whitened = pad(rows.whitened, (0, 0, 0, more))
    return rows._replace(arm=arm, round=rounds, reward=reward, inverse=inverse, whitened=whitened)


def _without_oldest(rows: ArmRows, family: str, full: Tensor, fewer: int) -> ArmRows:
    """Return the rows without the oldest observations of full trials."""
    trials = full.nonzero().squeeze(-1)
    selected = of_trials(rows, trials)
    moved = {n: getattr(selected, n).roll(-fewer, -1) for n in ("arm", "round", "reward")}
    selected = selected._replace(taken=selected.taken - fewer, **moved)
    return put(rows, trials, refactored(selected, family))


def of_trials(rows: ArmRows, trials: Tensor) -> ArmRows:
    """Return the rows of the trials with the given numbers, long, ``(k,)``."""
    return ArmRows(*(field[trials] for field in rows))


def put(rows: ArmRows, trials: Tensor, new: ArmRows) -> ArmRows:
    """Return the rows with new ones for the trials with the given numbers, long, ``(k,)``."""
    fields = zip(rows, new, strict=True)
    return ArmRows(*(field.index_copy(0, trials, value) for field, value in fields))


def _written(field: Tensor, place: Tensor, value: Tensor, query: Tensor) -> Tensor:
    place = place.clamp_max(field.shape[-1] - 1)  # beyond the end in a full trial without a query
    old = field.gather(-1, place)
    return field.scatter(-1, place, torch.where(query, value[:, None].to(field.dtype), old))


def _row_written(field: Tensor, place: Tensor, row: Tensor, query: Tensor) -> Tensor:
    place = place.clamp_max(field.shape[-2] - 1)[..., None].expand(-1, 1, field.shape[-1])
    old = field.gather(-2, place)
    return field.scatter(-2, place, torch.where(query[..., None], row[:, None, :], old))
