"""Rounds without a step of the optimizers among the parts of a run: several of them earn one warning.

What a tuner decides then reaches no training: another optimizer trains, or a round was asked for twice.
Readings before the first step of their rounds earn one, too: they are of the round before.
"""

import logging
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from botorch_costly.rewards.fingerprint import are_plain
from botorch_costly.rewards.outside_optimizers import OutsideOptimizers, may_restore
from botorch_costly.rewards.step_hook import Watch, unwatch, watch

_logger = logging.getLogger(__name__)
_ENOUGH = 3  # idle rounds before a warning
_WATCHED = 12  # rounds that are watched
_FEWEST = 3  # steps of other rounds, from which gradients are not accumulated over rounds


class IdleRounds(Watch):
    """Counts the steps of optimizers in the first rounds of a run.

    A round is idle if the optimizers among the parts made no step and either another one trained their
    parameters, or these have not changed: steps that are not seen, such as compiled ones, change them.
    Rounds that accumulate gradients are no reason for a warning: some have a step or two. Without any
    step a run may begin slowly, so that all rounds are awaited, unless another optimizer trains the same
    parameters.

    Args:
        parts: Parts of a run. Without an optimizer among them nothing is watched.
        outside: Another watch over them, whose warning makes this one superfluous.
    """

    def __init__(self, parts: Iterable[Any], outside: OutsideOptimizers | None = None) -> None:
        self._outside = outside
        self._parts = list(parts)
        self._optimizers = [part for part in self._parts if isinstance(part, Optimizer)]
        self._steps, self._is_trained_elsewhere = 0, False  # in the present round
        self._counts: list[int] = []  # steps of the rounds so far
        self._idle = self._elsewhere = (
            0  # idle rounds, and those of them that another one has trained
        )
        self._is_read_early = False  # whether the present round was read before its first step
        self._early = 0  # rounds so far that were
        self._before: list[Tensor] | None = None  # fingerprint of the parameters, if it is needed
        self._others: dict[str, None] = {}  # kinds of other optimizers, in their order
        self._is_over = not self._optimizers
        if not self._is_over:
            watch(self)

    @property
    def are_trained_elsewhere(self) -> bool:
        """Whether other optimizers have trained so far, and those among the parts have not."""
        is_known = self._outside is not None and self._outside.has_warned
        return is_known or (bool(self._others) and not (self._steps or any(self._counts)))

    def note(self, optimizer: Optimizer) -> None:
        """Take note of a step."""
        if any(optimizer.param_groups is own.param_groups for own in self._optimizers):
            self._steps += 1
        elif not any(may_restore(part, optimizer) for part in self._parts):
            self._others[type(optimizer).__name__] = None
            if not self._is_trained_elsewhere:
                own = {id(parameter) for parameter in self._parameters()}
                params = (p for group in optimizer.param_groups for p in group["params"])
                self._is_trained_elsewhere = any(id(p) in own for p in params)

    def begin_round(self) -> None:
        """Begin a round, with the parts in its first state."""
        if not self._is_over:
            self._steps, self._is_trained_elsewhere, self._is_read_early = 0, False, False
            self._before = self._fingerprint() if 0 in self._counts else None

    def note_reading(self, *, is_latest: bool) -> None:
        """Take note that a round is told, the latest one or one before it."""
        self._is_read_early |= is_latest and not self._steps

    def end_round(self) -> None:
        """End a round that has been trained; warn once there are enough idle ones."""
        if self._outside is not None and self._outside.has_warned:
            self.end()
        if self._is_over:
            return
        if self._steps and not any(self._counts):
            self._idle = self._elsewhere  # the others were a slow beginning
        self._counts.append(self._steps)
        self._early += self._is_read_early and self._steps > 0
        if not self._steps:
            self._idle += self._is_trained_elsewhere or self._is_unchanged()
            self._elsewhere += self._is_trained_elsewhere
        is_last, steps = len(self._counts) == _WATCHED, [count for count in self._counts if count]
        is_sure = min(steps) >= _FEWEST if steps else self._elsewhere >= _ENOUGH or is_last
        is_idle = self._idle >= _ENOUGH and is_sure
        self._is_over = is_idle or is_last
        if is_idle:
            _logger.warning(
                "%d of %d rounds had no step of the optimizer among the parts: %s",
                *(self._counts.count(0), len(self._counts), self._reason()),
            )
        elif self._early >= _ENOUGH:
            self._is_over = True
            _logger.warning(
                "%d rounds were told before they were trained: what is told is of the setting of the "
                "round before. Train the round first, then measure and tell.",
                self._early,
            )
        if self._is_over:
            unwatch(self)

    def end(self) -> None:
        """Watch no longer."""
        self._is_over = True
        unwatch(self)

    def _reason(self) -> str:
        if self._others:
            return (
                f"{' and '.join(self._others)} trains instead, which is another one. What is decided "
                "does not reach it, and it does not go back. Make network and optimizer once, before "
                "they are named as parts, and train these; a copied run has copies of them."
            )
        return "was ask called twice for a round (a for loop over a session calls it), or step forgotten?"

    def _parameters(self) -> list[Tensor]:
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        return [parameter for group in groups for parameter in group["params"]]

    def _fingerprint(self) -> list[Tensor] | None:
        """Return sums of the parameters, on their device; None if they cannot be compared."""
        parameters = self._parameters()
        if not are_plain(parameters) or any(p.is_meta or not p.numel() for p in parameters):
            return None  # a sum of what is sharded would wait for other processes
        return [parameter.detach().sum() for parameter in parameters]

    def _is_unchanged(self) -> bool:
        before, after = self._before, None
        if before is not None:
            after = self._fingerprint()
        if before is None or after is None or len(before) != len(after):
            return False
        return all(torch.equal(*pair) for pair in zip(before, after, strict=True))
