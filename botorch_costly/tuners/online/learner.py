"""The belief of a tuner: rewards scaled to prior units, hyperparameters refitted on a schedule."""

import copy
import logging
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from botorch_costly.acquisition import at_round
from botorch_costly.ask_tell.state import unchanged_on_error
from botorch_costly.errors import NumericalError, check
from botorch_costly.models import StreamingGP
from botorch_costly.models.fitting import FitReport, Hyperparameters, fit
from botorch_costly.numerics.radial import SMOOTHNESS
from botorch_costly.numerics.robust import Affine
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.rewards.scale import RewardScale, trusts
from botorch_costly.tuners.online.options import Refit, ResolvedPrior

_logger = logging.getLogger(__name__)
_ALIVE = 1e-3  # weight above which a reward counts for the scale
_LOWEST_RATE = 1e-6  # first value of a learnt forgetting rate, which has no gradient at 0 and 1
_MAX_EVALUATIONS = 100  # per refit


class Learner:
    """A ``StreamingGP`` that scales its rewards to prior units and may be refitted."""

    def __init__(
        self,
        prior: ResolvedPrior,
        refit: Refit,
        scale: RewardScale,
        tkwargs: dict[str, Any],
        max_rows: int = 1000,
        units: Tensor | None = None,  # of the lengthscale, by column, shape: (d,)
    ) -> None:
        fits = prior.kernel in SMOOTHNESS or refit.every is None
        expected = f"None, or a kernel that can be refitted ({sorted(SMOOTHNESS)})"
        check(fits, "refit.every", expected, (refit.every, prior.kernel))
        self.refit, self.scale = refit, scale
        lengthscale = torch.tensor([prior.lengthscale], **tkwargs)
        if units is not None:
            lengthscale = lengthscale * units.to(lengthscale)
        kernel = Stationary(prior.kernel, lengthscale, torch.ones((), **tkwargs))
        self.model = StreamingGP(kernel, prior.forgetting, prior.noise, maximum_rows=max_rows)
        self.model.rescale(*scale.fit([]))
        self._num_told = 0
        self._belief: tuple[StreamingGP, StreamingGP] | None = None  # a model, and its view

    @property
    def belief(self) -> StreamingGP:
        """Belief in prior units, on which decisions are based."""
        if self._belief is None or self._belief[0] is not self.model:
            self._belief = self.model, self.model.in_prior_units()
        return self._belief[1]

    @property
    def num_told(self) -> int:
        """Number of rewards learnt so far; the belief changes only with it."""
        return self._num_told

    def incumbent(self, now: int) -> Tensor | None:
        """Return the row of highest mean in interval ``now``, ``(d + 1,)``; None without rewards."""
        inputs = self.model.inputs
        if not len(inputs):
            return None
        mean, _ = self.model.mean_and_variance(
            at_round(inputs[:, :-1], inputs.new_tensor(float(now)))
        )
        return inputs[mean.argmax()]

    def rescaled_by(self, scale: RewardScale) -> StreamingGP:
        """Return the belief with another scale of the rewards; there has to be at least one reward."""
        model = copy.copy(self.model)
        model.rescale(*self._units(scale))
        return model

    def reward_rate(self, now: int, lengths: Callable[[Iterable[int]], list[int]]) -> float | None:
        """Return the average reward of a round, weighted by forgetting; None without rewards.

        Args:
            now: Current interval.
            lengths: Function from intervals to the number of rounds of each.
        """
        if not self.model.num_rows:
            return None
        weights, near = self.model.near_weights(now), self.model.near
        weights = weights.clamp_min(torch.finfo(weights.dtype).tiny)
        rounds = lengths(near[:, -2].long().tolist())
        return float((weights * near[:, -1]).sum() / (weights @ weights.new_tensor(rounds)))

    def observe(self, x: Tensor, now: float, reward: float, variance: float = 0.0) -> None:
        """Learn a finite reward of configuration ``x``, shape ``(d,)``, played in round ``now``.

        Its variance, in its units squared, is beyond that of other rewards. A configuration on the CPU
        does not wait for the device, unless a variance is above 0. An error or an interrupt leaves the
        belief unchanged.
        """
        with unchanged_on_error(self, copies=False):
            self.model = copy.copy(self.model)  # so that a belief read earlier does not change
            self.model.observe(torch.cat([x, x.new_full((1,), now)]), reward, variance)
            self._num_told += 1
            self.model.rescale(*self._units(self.scale))
            if self.refit.every is not None and self._num_told % self.refit.every == 0:
                self._refit()

    def _units(self, scale: RewardScale) -> tuple[float, float, Tensor, Tensor | None]:
        """Return center, scale, targets and slopes of the stored rewards; None where slopes do not count.

        A reward with a variance of its own counts less for center, scale and ranks, see ``trusts``.
        """
        # The weights of the model: forgotten rewards must not determine the scale.
        near = self.model.near
        weights = self.model.near_weights(float(near[:, -2].max())).tolist()
        rewards, variances = near[:, -1], self.model.variances
        affine = _fitted_scale(scale, rewards, weights)
        if not bool(variances.any()):
            return *affine, scale.targets(rewards, affine), None
        weight = trusts(variances, affine.scale)
        both = [w * trust for w, trust in zip(weights, weight.tolist(), strict=True)]
        affine = _fitted_scale(scale, rewards, both)
        targets = scale.targets(rewards, affine, weight.to(rewards))
        return *affine, targets, scale.slopes(rewards, targets, affine)

    def _refit(self) -> None:
        try:
            fitted, report = self._fitted()
            if not bool(report.skipped):
                self.model = self.model.with_hyperparameters_of(self._belief_of(fitted))
        except (ArithmeticError, RuntimeError, ValueError) as error:
            _logger.warning("A refit failed and the hyperparameters stay as they were: %s", error)

    def _fitted(self) -> tuple[Hyperparameters, FitReport]:
        """Fit the stored rows from the current hyperparameters, in double precision.

        A current value outside the bounds of a fit starts on the bound. A learnt forgetting rate starts
        slightly away from 0 and 1.
        """
        model, rate = self.model, self.model.forgetting
        if self.refit.forgetting:
            rate = min(max(rate, _LOWEST_RATE), 1 - _LOWEST_RATE)
        family, lengthscale, outputscale = model.kernel
        noise, forgetting = model.inputs.double().new_tensor([model.noise, rate])
        fitted, report = fit(
            family,
            model.inputs,
            model.targets,
            Hyperparameters(lengthscale, outputscale, noise, forgetting),
            variances=model.extra_noise if bool(model.extra_noise.any()) else None,
            learn_forgetting=self.refit.forgetting,
            max_iter=_MAX_EVALUATIONS,
            seconds=self.refit.seconds,
        )
        is_finite = bool(report.after.isfinite())
        check(is_finite, "targets", "a finite log evidence", report.after.item(), NumericalError)
        return fitted, report

    def _belief_of(self, fitted: Hyperparameters) -> StreamingGP:
        """Return an empty belief with the fitted hyperparameters, in the dtype of the model."""
        like = self.model.inputs
        lengthscale, outputscale = fitted.lengthscale.to(like), fitted.outputscale.to(like)
        kernel = Stationary(self.model.kernel.family, lengthscale, outputscale)
        rate, noise = fitted.forgetting.item(), fitted.noise.item()
        return StreamingGP(kernel, rate, noise, maximum_rows=self.model.maximum_rows)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""
        return {"model": self.model.get_extra_state(), "num_told": self._num_told}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._belief = None  # the model changes in place
        self.model.set_extra_state(state["model"])
        self._num_told = state["num_told"]


def _fitted_scale(scale: RewardScale, rewards: Tensor, weights: list[float]) -> Affine:
    """Return center and scale of rewards, ``(n,)``; a single reward that counts has no scale."""
    if sum(w > _ALIVE for w in weights) < 2:
        weights = [1.0] * len(weights)
    return scale.fit(rewards.tolist(), weights)
