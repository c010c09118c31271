"""A diagnosis of a run: whether compute binds, the cost of exploration, and whether it has paid."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.told import Passed, noun_of
from botorch_costly.tuners.twins.untried import Why, sentences_on

_FEWEST = 3  # queries with a metric before there is a verdict
_FAILED = 2 / 3  # share of failed or untold queries that suggests a mistake
_HALF = 0.5  # share of the run after which it counts that a hyperparameter was never tried
_TRIALS = 0.8  # share of the run in which there are trials
_LEAST = 0.01  # log loss; less may be chance
_ROUNDED = 5e-4  # log loss that is 0.0 %
_FAR = 10.0  # largest share by which a loss is said to be higher
_WORSENING = 0.5  # log loss by which a metric got worse that should perhaps be maximized
_WORSENED = {
    "loss": "The metric is worse than it was at first. It should be a loss, or an accuracy with "
    "metric='accuracy', and no gain.",
    "accuracy": "The accuracy is lower than it was at first. A loss or an error rate needs "
    "metric='loss'.",
}
_OTHER_KIND = {
    "loss": ", or the metric is no loss: an accuracy needs metric='accuracy', and a gain is neither",
    "accuracy": ", or the metric is no accuracy: a loss or an error rate needs metric='loss'",
}


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
        cost: Expected cost of these rounds at the end, as the run learns lately, in log loss.
        gained: Log loss by which the run should be ahead of the start after as many rounds of compute,
            those given back included, if the start had learnt as the run did; NaN if it cannot be told.
        changes: Number of these changes.
        by_hand: Whether a decision to go back was handed out without a session to carry it out.
        constant: Whether all metrics were equal.
        worsened: Log loss by which the latest level is below the first one; negative where it is better.
        untried: Hyperparameters that have had one value throughout, and why.
        metric: Kind of the metric.
        examples: Number of examples of which the losses are shares, as error rates are; None if not.
        passed: The best metric, where the run is clearly worse by now; None if it is not.
        most: Log loss by which the run is ahead if the start had learnt no more; ``gained`` if the run is
            the start itself, or if omitted.
        compared: Rounds that the start was trained for.
        tried: Whether more than one configuration was played.
        has_rate: Whether a learning rate is among the hyperparameters.
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
    untried: Mapping[str, Why] = field(default_factory=dict)
    metric: Kind = "loss"
    examples: int | None = None
    passed: Passed | None = None
    most: float = math.nan
    compared: int = 0
    tried: bool = True
    has_rate: bool = True

    @property
    def binds(self) -> bool | None:
        """Whether compute binds, so that more of it would lower the loss; None if not known."""
        return None if math.isnan(self.slope) else self.slope > CONSTANTS.typical_slope / 2

    @property
    def paid(self) -> bool | None:
        """Whether the run is ahead of the start; None if nothing was given back, or it cannot be told."""
        unknown = self.given_back == 0 or math.isnan(self.gained)
        return None if unknown else self.gained > _LEAST

    def __str__(self) -> str:
        return "\n".join([self._verdict(), *self._numbers(), *self._warnings()])

    def _verdict(self) -> str:
        if self.told < _FEWEST:
            return self._verdict_of_few()
        if self.constant:
            return "Nothing can be compared: all metrics told so far are the same."
        if self.by_hand:
            return (
                "Whether exploring has paid is not known: no Session carried out the decisions to go "
                "back to earlier states. Unless your loop does, the comparisons mean nothing."
            )
        if self.given_back > 0 and self.paid is None:
            return (
                "Whether exploring has paid cannot be told: the run was faster than the start, but has "
                "learnt nothing in the time that it was ahead by, and the start may have come as far."
            )
        if self.paid is None:
            if self.tried:
                return "No trial is over yet, and nothing was given back."
            return "Nothing has been tried so far, and nothing given back."
        if self.paid:
            kind = "a loss" if self.metric == "loss" else "an accuracy"
            perhaps = f", if the metric is {kind}" if self._is_worse else ""
            return (
                f"Exploring has paid{perhaps}: the start would be behind, in spite of the rounds given "
                "back."
            )
        if self.changes:
            return (
                "Exploring has not paid so far: the start would be as good after as many rounds, if it "
                "had learnt as the run did."
            )
        return "Exploring has not paid so far: it found nothing better for the rounds given back."

    def _verdict_of_few(self) -> str:
        told = "1 query" if self.told == 1 else f"{self.told} queries"
        if self.rounds < self.horizon:
            return f"Too early to say: {told} told, and {_FEWEST} are the fewest."
        if self.queries >= _FEWEST:
            of = f"{told} of {self.queries} told"
            return f"Nothing can be compared: {of}, and {_FEWEST} are the fewest."
        return (
            f"The run was too short to compare settings, and was trained with its start: {told} "
            f"told, and {_FEWEST} are the fewest."
        )

    @property
    def _fails(self) -> bool:
        """Whether most queries fail."""
        return self.failed > _FAILED * self.told and self.told >= _FEWEST

    @property
    def _noun(self) -> str:
        return noun_of(self.metric)

    @property
    def _is_worse(self) -> bool:
        """Whether the metric got so much worse that it may be of the other kind."""
        return self.worsened > _WORSENING

    def _numbers(self) -> list[str]:
        if self.told < _FEWEST or self.constant:
            return []
        return [*self._given_back(), *self._untried(), *self._compute()]

    def _given_back(self) -> list[str]:
        if self.given_back == 0:
            return []
        given = f"{self.given_back} of {self.rounds} rounds were given back"
        if self.by_hand:
            return [f"{given}; the configuration changed {_times(self.changes)}."]
        # Without a change, the distance to the start is that cost.
        is_cost = self.changes > 0 and not math.isnan(self.gained)
        cost = f"{self._noun} at the end would be {1 - math.exp(-self.cost):.1%} lower"
        return [
            f"{given}{f', without which the {cost}' if is_cost else ''}; the configuration changed "
            f"{_times(self.changes)}{self._lead()}."
        ]

    def _lead(self) -> str:
        """Return the range of the lead over the start; its ends agree where the start was trained on."""
        if self.paid is None:
            return ""
        least, most = self.gained, self.gained if math.isnan(self.most) else self.most
        if max(abs(least), abs(most)) < _ROUNDED:
            return f", and the {self._noun} should be as with the start"
        found = f", and the {self._noun} should be {_range(least, most)} than with the start"
        if most - least < _LEAST:
            return found
        rounds = "1 round" if self.compared == 1 else f"{self.compared} rounds"
        return (
            f"{found} (the first if that had learnt as the run did, the second if it had learnt nothing "
            f"after its {rounds})"
        )

    def _untried(self) -> list[str]:
        if self.rounds < _HALF * self.horizon:
            return []
        return sentences_on(self.untried, self._noun, has_rate=self.has_rate)

    def _compute(self) -> list[str]:
        """Return whether compute binds, unless another sentence says that the levels tell no slope."""
        if self.binds is None or self.by_hand or self._fails:
            return []
        share = 1 - 0.5 ** max(self.slope, -1.0)  # capped because the loss may grow
        if self.binds:
            is_doubtful = self.passed is not None or self._is_worse or math.isnan(self.gained)
            more = f"Compute binds: twice the rounds would lower the {self._noun} by about {share:.0%}."
            return [] if is_doubtful else [more]
        by_now = " by now" if self._untried() else ""
        is_open = self.rounds < _TRIALS * self.horizon
        is_cheap = is_open and not {"costly", "settled"} & set(self.untried.values())
        return [
            f"Compute hardly binds{by_now} (twice the rounds: {max(share, 0.0):.1%} of the {self._noun})"
            f"{'; exploring is cheap' if is_cheap else ''}."
        ]

    def _warnings(self) -> list[str]:
        messages, untold = [], self.queries - self.told
        if untold > _FAILED * self.queries and self.queries >= _FEWEST:
            messages.append(
                f"{untold} of {self.queries} queries were never told: call tell after them."
            )
        if self._fails:
            messages.append(f"Most queries fail ({self.failed} of {self.told}): training diverges.")
        if self.passed is not None:
            messages.append(self._said_of(self.passed))
        elif self._is_worse:
            messages.append(_WORSENED[self.metric])
        if self.examples is not None:
            messages.append(
                f"The metrics are shares of {self.examples} examples, and count as error rates, of which "
                "smaller ones are better: accuracies need metric='accuracy'."
            )
        return messages

    def _said_of(self, passed: Passed) -> str:
        best = "lowest" if self.metric == "loss" else "highest"
        kind = _OTHER_KIND[self.metric] if self._is_worse else ""
        return (
            f"The {self.metric} was {best} in round {passed.round} ({passed.best:.4g}) and is "
            f"{passed.now:.4g} now: the network overfits, or the rate is too large{kind}. "
            "`Session(.., keep_best=True)` keeps the best state."
        )


def _range(least: float, most: float) -> str:
    """Return how much lower or higher a loss is, from the smaller to the larger lead in log loss.

    Example:
        >>> _range(0.1, 0.5), _range(-0.1, 0.5), _range(0.1, 0.1)
        ('9.5% to 39.3% lower', '10.5% higher to 39.3% lower', '9.5% lower')
    """
    first, second = (
        f"over {_FAR:.0%}" if lead < -math.log1p(_FAR) else f"{abs(math.expm1(-lead)):.1%}"
        for lead in (least, most)
    )
    sides = ["lower" if lead > -_ROUNDED else "higher" for lead in (least, most)]
    if most - least < _LEAST:
        return f"{first} {sides[0]}"
    if sides[0] == sides[1]:
        return f"{first} to {second} {sides[0]}"
    return f"{first} {sides[0]} to {second} {sides[1]}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
