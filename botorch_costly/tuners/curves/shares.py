r"""Which of several beliefs decides: each has a share of the asks, by what it foretold.

Before a training continues, each belief says how probably its next value will exceed the best one so far.
When the value arrives, belief ``m``, which gave the probability ``p`` to what then happened, has the loss

    l_m = -log(0.9 p + 0.05),        w_m = exp(-eta sum l_m) / sum_k exp(-eta sum l_k),

and the next ask is decided by the belief that lags most behind its share, ``argmax_m w_m n - n_m`` with
``n_m`` of ``n`` asks so far.

The floor. A loss is the log loss of a forecast of which a tenth is an even chance, hence exp-concave
for ``eta <= 1``: after any outcomes the mixture of ``M`` forecasts has at most ``log(M) / eta`` more loss
than the best of them (Vovk 1998; Cesa-Bianchi and Lugosi 2006, proposition 3.1). A belief whose loss is
lower than every other by ``D`` decides all but a share ``(M - 1) e^{-eta D}`` of the asks, and while none
foretells better than the others, each decides an equal share.

References:
    V. Vovk. A game of prediction with expert advice. Journal of Computer and System Sciences 56, 1998.
    N. Cesa-Bianchi, G. Lugosi. Prediction, learning, and games. Cambridge University Press 2006.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from botorch_costly.numerics.online_weights import entropic_weights
from botorch_costly.tuners.curves.trainings import Training, Trainings

_RATE = 0.5  # eta
_CAUTION = 0.1  # share of the forecast that is an even chance


class Forecast(NamedTuple):
    """The forecasts of all beliefs before a training continued."""

    since: int  # iteration before the segment
    until: int  # iteration whose value was foretold
    bar: float  # best latest value then
    chances: tuple[float, ...]  # probability of each belief that the value would exceed it

    def is_decided_by(self, training: Training) -> bool:
        """Return whether the segment went to its end with a value, or the training diverged."""
        measured = training.done >= self.until and training.known[-1:] > [self.since]
        return measured or training.broken


class Shares:
    """The shares of several beliefs, and whose turn it is.

    Args:
        members: Number of beliefs.
    """

    def __init__(self, members: int) -> None:
        self._losses, self._turns = [0.0] * members, [0] * members
        self._open: dict[int, Forecast] = {}  # by the number of the training

    @property
    def weights(self) -> list[float]:
        """The share of each belief; they sum to 1."""
        losses = torch.tensor(self._losses, dtype=torch.float64)
        return entropic_weights(losses, _RATE).tolist()

    def turn(self) -> int:
        """Return the belief that decides the next ask, and count it."""
        number = sum(self._turns) + 1
        lags = [w * number - n for w, n in zip(self.weights, self._turns, strict=True)]
        member = lags.index(max(lags))
        self._turns[member] += 1
        return member

    def foretell(
        self, training: Training, until: int, bar: float, chances: Sequence[float]
    ) -> None:
        """Note the probabilities that a training's value after an iteration will exceed a bar."""
        self._open[training.number] = Forecast(training.done, until, bar, tuple(chances))

    def learn(self, trainings: Trainings) -> None:
        """Add the losses of forecasts whose value has arrived, and forget those that get none."""
        found = {training.number: training for training in trainings}
        for number, forecast in list(self._open.items()):
            training = found.get(number)
            if training is not None and training.until is not None:
                continue  # pending
            del self._open[number]
            if training is not None and forecast.is_decided_by(training):
                exceeded = not training.broken and training.latest > forecast.bar
                self._score(forecast.chances, exceeded)

    def _score(self, chances: tuple[float, ...], exceeded: bool) -> None:
        for member, chance in enumerate(chances):
            right = chance if exceeded else 1 - chance
            self._losses[member] -= math.log((1 - _CAUTION) * right + _CAUTION / 2)

    def state_dict(self) -> dict[str, Any]:
        """Return plain values."""
        opened = [[number, *forecast] for number, forecast in self._open.items()]
        return {"losses": list(self._losses), "turns": list(self._turns), "open": opened}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._losses, self._turns = list(state["losses"]), list(state["turns"])
        opened = ((number, Forecast(*rest)) for number, *rest in state["open"])
        self._open = {number: f._replace(chances=tuple(f.chances)) for number, f in opened}
