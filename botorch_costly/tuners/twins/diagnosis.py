"""A diagnosis of a run: whether compute binds, the cost of exploration, and whether it has paid."""

import math
from dataclasses import dataclass

from botorch_costly.tuners.twins.constants import CONSTANTS

_FEWEST = 3  # queries with a metric before there is a verdict
_FAILED = 2 / 3  # share of failed or untold queries that suggests a mistake
_WORSENING = 0.5  # log loss by which a metric got worse that should perhaps be maximized


@dataclass(frozen=True)
class TwinDiagnosis:
    """A diagnosis of a run of twins; ``str`` puts it into words.

    Args:
        rounds: Rounds of compute so far.
        horizon: Rounds of compute in all.
        queries: Queries decided on so far.
        told: Queries whose metric was told.
        failed: Queries whose metric was not finite.
        slope: Log loss gained per unit of log-time, lately; NaN if it is not known yet.
        given_back: Rounds of compute that are not part of the final run.
        cost: Expected cost of these rounds at the end, in log loss.
        gained: Total advantage of the changes of the configuration when they were made, in log loss.
        changes: Number of these changes.
        by_hand: Whether a decision to go back was handed out without a session to carry it out.
        constant: Whether all metrics were equal.
        worsened: Log loss by which the latest level is below the first one; negative where it is better.
    """

    rounds: int
    horizon: int
    queries: int
    told: int
    failed: int
    slope: float
    given_back: int
    cost: float
    gained: float
    changes: int
    by_hand: bool
    constant: bool
    worsened: float

    @property
    def binds(self) -> bool | None:
        """Whether compute binds, so that more of it would lower the loss; None if not known."""
        return None if math.isnan(self.slope) else self.slope > CONSTANTS.typical_slope / 2

    @property
    def paid(self) -> bool | None:
        """Whether exploration has gained more than it costs; None if nothing has been given back."""
        return None if self.given_back == 0 else self.gained > self.cost

    def __str__(self) -> str:
        return "\n".join([self._verdict(), *self._numbers(), *self._warnings()])

    def _verdict(self) -> str:
        if self.told < _FEWEST:
            fewest = _FEWEST
            return f"Too early to say: {self.told} queries told, and {fewest} are the fewest."
        if self.constant:
            return "Nothing can be compared: all metrics told so far are the same."
        if self.by_hand:
            return (
                "Whether exploring has paid is not known: no Session carried out the decisions to go "
                "back to earlier states. Unless your loop does, the comparisons mean nothing."
            )
        if self.paid is None:
            return "Nothing has been tried so far, and nothing given back."
        if self.paid:
            return "Exploring has paid: it gained more than the rounds given back cost."
        result = "it gained less than" if self.changes else "it found nothing better for"
        return f"Exploring has not paid so far: {result} the rounds given back."

    def _numbers(self) -> list[str]:
        if self.told < _FEWEST:
            return []
        return [
            f"{self.given_back} of {self.rounds} rounds were given back, which costs {self.cost:.3g} in "
            f"log loss at the end; the configuration changed {self.changes} times, and gained "
            f"{self.gained:.3g} when it did.",
            *self._compute(),
        ]

    def _compute(self) -> list[str]:
        if self.binds is None:
            return []
        share = 1 - 0.5 ** max(self.slope, -1.0)  # capped because the loss may grow
        if self.binds:
            return [f"Compute binds: twice the rounds would lower the loss by about {share:.0%}."]
        share = max(share, 0.0)
        return [
            f"Compute hardly binds (twice the rounds: {share:.1%} of the loss); exploring is cheap."
        ]

    def _warnings(self) -> list[str]:
        messages, untold = [], self.queries - self.told
        share, fewest = _FAILED, _FEWEST
        if untold > share * self.queries and self.queries >= fewest:
            messages.append(
                f"{untold} of {self.queries} queries were never told: call tell after them."
            )
        if self.failed > share * self.told and self.told >= fewest:
            messages.append(f"Most queries fail ({self.failed} of {self.told}): training diverges.")
        if self.worsened > _WORSENING:
            messages.append(
                "The metric is worse than it was at first. It should be a loss, or an accuracy with "
                "metric='accuracy', and no gain."
            )
        return messages
