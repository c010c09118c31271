r"""Posterior covariances of configurations with each other, from the closed form of a posterior.

With ``phi`` the profiles of a configuration with the observations, and ``B`` the solver of the closed
form, a *projection* is ``B phi``: two projections say how much the observations explain of a covariance,

    cov(x, x') = s phi(|u - u'|) - a^2 (B phi)' (B phi').

A projection holds for all rounds until the next observation; only the retention ``a`` differs.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.closed_form import ClosedForm, distances, distances_between, scaled
from botorch_costly.numerics.radial import PROFILES


class Projection(NamedTuple):
    """Configurations projected on the observations, in the round of the closed form."""

    points: Tensor  # scaled configurations, shape: (q, d)
    mean: Tensor  # shape: (q,)
    explained: Tensor  # explained variance, shape: (q,)
    projected: Tensor  # B phi, shape: (q, n)

    def at(self, index: Tensor) -> "Projection":
        """Return the projections of some of the configurations, by their indices ``(k,)``."""
        return Projection(*(field[index] for field in self))


class Joint(NamedTuple):
    """Joint moments of the function at ``q`` configurations."""

    mean: Tensor  # shape: (q,)
    cov: Tensor  # shape: (q, q)
    prior_cov: Tensor  # before the observations, shape: (q, q)


def project(form: ClosedForm, X: Tensor) -> Projection:
    """Return the projection of configurations, ``q x d``."""
    points = scaled(form, X)
    phi = PROFILES[form.family].phi(distances(form, points))
    projected, mean = phi @ form.solver.mT, (phi @ form.alpha).squeeze(-1)
    return Projection(points, mean, projected.square().sum(-1), projected)


def together(*projections: Projection) -> Projection:
    """Return one projection of all configurations."""
    return Projection(*map(torch.cat, zip(*projections, strict=True)))


def prior_between(form: ClosedForm, left: Projection, right: Projection) -> Tensor:
    """Return the covariances before the observations, ``(q, m)``."""
    apart = distances_between(form.family, left.points, right.points)
    return form.prior * PROFILES[form.family].phi(apart)


def joint(form: ClosedForm, here: Projection, retained: float) -> Joint:
    """Return the joint moments of the function after waiting."""
    prior = prior_between(form, here, here)
    explained = here.projected @ here.projected.mT
    return Joint(retained * here.mean, torch.sub(prior, explained, alpha=retained**2), prior)
