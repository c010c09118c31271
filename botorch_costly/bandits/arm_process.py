r"""A Gaussian process over arms and rounds, of many trials at once, each with its own hyperparameters.

The reward of arm ``i`` in round ``t`` is ``y = f_i(t) + noise``, and

    E f_i(t) = level,    Cov[f_i(t), f_j(t')] = s B_ij phi(|t - t'| / lengthscale),

with a covariance ``B`` of the arms (the identity where they are independent) and a profile ``phi`` of
``numerics.radial``: Matérn-1/2 is the forgetting kernel, with rate ``1 - exp(-2 / lengthscale)``. The
level is not known either: its own prior is ``N(1/2, 0.3^2)``, in units of the reward range, and it is
put at its best guess by generalized least squares,

    level = (1'K^{-1}y + 0.5 / 0.3^2) / (1'K^{-1}1 + 1 / 0.3^2).

Observations are appended to a padded inverse factor ``X = L^{-1}`` of ``K = L L'`` (see
``numerics.cholesky``): trials that were not queried keep their rows. Where a trial has as many
observations as fit, the oldest quarter is dropped and its factor made anew.

Convention: a padded row has covariance 1 with itself and 0 with all others, and tells nothing. All in
float64.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.strategy import ArmBelief, Told
from botorch_costly.numerics.cholesky import sure_root
from botorch_costly.numerics.radial import PROFILES

LEVEL, LEVEL_STD = 0.5, 0.3
_FIRST_ROWS = 16
_LEAST = 1e-12  # of the prior variance, which is left whatever was observed
# Integral of phi from 0 on, in lengthscales: for how long a value says something about later ones.
_MEMORY = {
    "matern12": 1.0,
    "matern32": 2 / math.sqrt(3),
    "matern52": 8 / (3 * math.sqrt(5)),
    "rbf": math.sqrt(math.pi / 2),
}


class ArmRows(NamedTuple):
    """What was observed in ``m`` trials, in ``w`` places, and what moments are computed from."""

    arm: Tensor  # long, shape: (m, w)
    round: Tensor  # shape: (m, w)
    reward: Tensor  # shape: (m, w)
    taken: Tensor  # how many of the places, from the first, long, shape: (m,)
    arms: Tensor  # covariance B of the arms, shape: (m, n, n)
    theta: Tensor  # [log lengthscale, log s, log noise], shape: (m, 3)
    inverse: Tensor  # X, shape: (m, w, w)
    whitened: Tensor  # X [y, 1], shape: (m, w, 2)
    told: Tensor  # observations so far, those that were dropped among them, long, shape: (m,)
    fitted: Tensor  # observations when hyperparameters were last learnt, long, shape: (m,)

    @property
    def seen(self) -> Tensor:
        """Which places are taken, bool, shape ``(m, w)``."""
        return torch.arange(self.arm.shape[-1], device=self.arm.device) < self.taken[:, None]

    @property
    def level(self) -> Tensor:
        """The best guess at the mean of the process, shape ``(m,)``."""
        reward, ones = self.whitened.unbind(-1)
        precision = 1 / LEVEL_STD**2
        told = (ones * reward).sum(-1) + precision * LEVEL
        return told / (ones.square().sum(-1) + precision)


def no_rows(
    trials: int,
    arms: Tensor,  # shape: (n, n)
    theta: Tensor,  # shape: (3,)
) -> ArmRows:
    """Return trials without an observation, alike in all else."""
    w, device = _FIRST_ROWS, theta.device
    whole = torch.zeros(trials, w, dtype=torch.long, device=device)
    real = torch.zeros(trials, w, dtype=theta.dtype, device=device)
    eye = torch.eye(w, dtype=theta.dtype, device=device).repeat(trials, 1, 1)
    none = whole[:, 0]
    given = arms.repeat(trials, 1, 1), theta.repeat(trials, 1)
    return ArmRows(whole, real, real, none, *given, eye, eye.new_zeros(trials, w, 2), none, none)


def arms_of_pairs(rows: ArmRows) -> Tensor:
    """Return ``B_ij`` of all pairs of observations, 0 where one is missing, ``(m, w, w)``."""
    both = rows.seen[:, :, None] & rows.seen[:, None, :]
    n, width = rows.arms.shape[-1], rows.arm.shape[-1]
    lines = rows.arms.gather(-2, rows.arm[:, :, None].expand(-1, -1, n))
    return torch.where(both, lines.gather(-1, rows.arm[:, None, :].expand(-1, width, -1)), 0.0)


def refactored(rows: ArmRows, family: str) -> ArmRows:
    """Return the rows with a factor made from nothing, as after a change of hyperparameters."""
    seen = rows.seen
    noise = torch.where(seen, rows.theta[:, 2:].exp(), 1.0)
    lag = (rows.round[:, :, None] - rows.round[:, None, :]).abs()
    cov = _time(family, rows.theta, lag) * arms_of_pairs(rows)
    root = sure_root(cov + torch.diag_embed(noise))
    eye = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device)
    inverse = torch.linalg.solve_triangular(root, eye.expand_as(root), upper=False)
    return rows._replace(inverse=inverse, whitened=inverse @ _right_hand_sides(rows))


def appended(rows: ArmRows, family: str, told: Told, capacity: int) -> ArmRows:
    """Return the rows with what queries told; trials without one keep theirs.

    Args:
        rows: Before.
        family: A key of ``radial.PROFILES`` with a lengthscale.
        told: One query of each trial, or none.
        capacity: Observations of a trial that are kept at most.
    """
    rows = _with_room(rows, family, told.query, capacity)
    n = rows.arms.shape[-1]
    line = rows.arms.gather(-2, told.arm[:, None, None].expand(-1, 1, n))
    cross = _cross(rows, family, line, told.round)  # (m, 1, w)
    white = (cross @ rows.inverse.mT).squeeze(-2)
    prior = rows.theta[:, 1].exp() * line[:, 0].gather(-1, told.arm[:, None]).squeeze(-1)
    noise = rows.theta[:, 2].exp()
    pivot = (prior - white.square().sum(-1)).clamp_min(_LEAST * prior) + noise
    place, query = rows.taken[:, None], told.query[:, None]
    row = -(white[:, None, :] @ rows.inverse).squeeze(-2) / pivot.sqrt()[:, None]
    row = row.scatter(-1, place.clamp_max(row.shape[-1] - 1), pivot.rsqrt()[:, None])
    sides = torch.stack([told.reward, torch.ones_like(told.reward)], -1)
    new = (sides - (white[:, None, :] @ rows.whitened).squeeze(-2)) / pivot.sqrt()[:, None]
    return rows._replace(
        arm=_written(rows.arm, place, told.arm, query),
        round=_written(rows.round, place, told.round, query),
        reward=_written(rows.reward, place, told.reward, query),
        taken=rows.taken + told.query,
        inverse=_row_written(rows.inverse, place, row, query),
        whitened=_row_written(rows.whitened, place, new, query),
        told=rows.told + told.query,
    )


def belief_at(rows: ArmRows, family: str, now: float) -> ArmBelief:
    """Return what is believed of all arms in a round."""
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
        rows: The observations.
        family: Of the profile.
        arms: Rows of ``B``, ``(m, k, n)``.
        now: The round, ``(m,)``.
    """
    lag = (now[:, None] - rows.round).abs()[:, None, :]
    places = rows.arm[:, None, :].expand(-1, arms.shape[1], -1)
    cov = _time(family, rows.theta, lag) * arms.gather(-1, places)
    return torch.where(rows.seen[:, None, :], cov, 0.0)


def _right_hand_sides(rows: ArmRows) -> Tensor:
    seen = rows.seen
    return torch.stack([torch.where(seen, rows.reward, 0.0), seen.to(rows.reward)], -1)


def _with_room(rows: ArmRows, family: str, query: Tensor, capacity: int) -> ArmRows:
    """Return the rows with a free place in each trial that was queried."""
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
    parts = (pad(part, (0, more)) for part in (rows.arm, rows.round, rows.reward))
    arm, rounds, reward = parts
    whitened = pad(rows.whitened, (0, 0, 0, more))
    return rows._replace(arm=arm, round=rounds, reward=reward, inverse=inverse, whitened=whitened)


def _without_oldest(rows: ArmRows, family: str, full: Tensor, fewer: int) -> ArmRows:
    """Return the rows of which full trials have lost what was told first."""
    some = full.nonzero().squeeze(-1)
    part = ArmRows(*(field[some] for field in rows))
    moved = {name: getattr(part, name).roll(-fewer, -1) for name in ("arm", "round", "reward")}
    part = refactored(part._replace(taken=part.taken - fewer, **moved), family)
    return put(rows, some, part)


def put(rows: ArmRows, some: Tensor, part: ArmRows) -> ArmRows:
    """Return the rows with those of some trials in place of theirs."""
    fields = zip(rows, part, strict=True)
    return ArmRows(*(field.index_copy(0, some, new) for field, new in fields))


def _written(field: Tensor, place: Tensor, value: Tensor, query: Tensor) -> Tensor:
    place = place.clamp_max(field.shape[-1] - 1)  # a trial that is full, and was not queried
    old = field.gather(-1, place)
    return field.scatter(-1, place, torch.where(query, value[:, None].to(field.dtype), old))


def _row_written(field: Tensor, place: Tensor, row: Tensor, query: Tensor) -> Tensor:
    place = place.clamp_max(field.shape[-2] - 1)[..., None].expand(-1, 1, field.shape[-1])
    old = field.gather(-2, place)
    return field.scatter(-2, place, torch.where(query[..., None], row[:, None, :], old))
