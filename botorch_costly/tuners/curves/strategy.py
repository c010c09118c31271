"""The strategy of ``CurveOptimizer``: it turns a chooser's training into the next segment."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.state import Undo, attributes_of, both, states_of, without_trace
from botorch_costly.ask_tell.strategy import ENQUEUED, START, Action, Proposal, Strategy
from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.errors import check, check_count
from botorch_costly.parameters import Plain
from botorch_costly.tuners.curves.choice import Chooser
from botorch_costly.tuners.curves.lengths import Ladder, Lengths
from botorch_costly.tuners.curves.trainings import Training, Trainings


class CurveStrategy(Strategy):
    """Starts, continues and abandons trainings, as a chooser decides.

    Args:
        domain: Domain of the configurations.
        lengths: Iterations of whole trainings.
        ladder: Iterations at which a training may stop.
        chooser: Chooser of the next training.
        sign: 1.0, or -1.0 if smaller values are better.
        resumes: Whether a training can go on from where it stopped.

    Attributes:
        trainings: All trainings so far.
        priced: Whether outcomes have costs; None before the first outcome.
    """

    def __init__(
        self,
        domain: Domain,
        lengths: Lengths,
        ladder: Ladder,
        chooser: Chooser,
        sign: float,
        *,
        resumes: bool,
    ) -> None:
        self._domain, self._lengths, self._ladder = domain, lengths, ladder
        self._chooser, self._sign, self._resumes = chooser, sign, resumes
        self.trainings = self._no_trainings()
        self.priced: bool | None = None

    def _no_trainings(self) -> Trainings:
        return Trainings(self._encode, self._lengths.length_of, self._sign)

    def _encode(self, config: Mapping[str, Plain]) -> Tensor:
        return self._domain.space.encode(config).to(**self._domain.tkwargs)

    def suggest(self, seen: Evaluations[Any, Any]) -> Proposal:
        """Return the next segment.

        Raises:
            HorizonExceededError: If every configuration of a finite space has been trained to its end, is
                in training or has been abandoned.
        """
        choice = self._chooser.choose(self.trainings)
        training = choice.training
        config = self._lengths.config_of(choice.point) if training is None else training.config
        done, length = 0 if training is None else training.done, self._lengths.length_of(config)
        rung = self._ladder.after(done, length)
        share = choice.share
        until = rung if share is None else max(self._ladder.at(share, length), done + 1)
        return self._proposal(len(seen), config, training, until, choice.reason)

    def segment(
        self, number: int, config: Mapping[str, Plain], until: int | None, training: int | None
    ) -> Proposal:
        """Return a segment of the user's choice; see ``CurveOptimizer.enqueue``."""
        config = self._lengths.canonical(config)
        before = None if training is None else self.trainings.going_on_with(training, config)
        done, length = 0 if before is None else before.done, self._lengths.length_of(config)
        end = length if until is None else check_count("until", until)
        check(done < end <= length, "until", f"more than {done}, at most {length}", until)
        return self._proposal(number, config, before, end, ENQUEUED)

    def started(self, seen: Evaluations[Any, Any], config: Mapping[str, Plain]) -> Proposal:
        """Return the shortest segment of a training of the start."""
        config = self._lengths.canonical(config)
        until = self._ladder.after(0, self._lengths.length_of(config))
        return self._proposal(len(seen), config, None, until, START)

    def _proposal(
        self,
        number: int,
        config: Mapping[str, Plain],
        training: Training | None,
        until: int,
        reason: str,
    ) -> Proposal:
        since = training.done if training is not None and self._resumes else 0
        first = number if training is None else training.number
        return Proposal(config, reason, details={"training": first, "since": since, "until": until})

    def leaves(self, decision: CurveDecision, outcome: CurveObservation) -> bool:
        """Return whether another training would be next if a segment ended with this outcome."""
        after = self.trainings.after(decision, outcome)
        if not after.may_go_on:
            return True
        with without_trace(self._chooser):
            choice = self._chooser.choose(self.trainings.with_one(after))
        return choice.training is None or choice.training.number != after.number

    def predict(self, seen: Evaluations[Any, Any], points: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the posterior of the value at the end of a whole training; None before a value.

        No later choice depends on it.
        """
        with without_trace(self._chooser):
            return self._chooser.predict(self.trainings, points)

    def early_signal(self, share: float) -> float | None:
        """Return the correlation of values after a share of a training with those at its end."""
        return self._chooser.early_signal(share)

    def entered(self, suggestion: CurveDecision, seen: Evaluations[Any, Any]) -> None:
        """Add a pending segment."""
        self.trainings.start(suggestion)

    def cancelled(self, suggestion: CurveDecision, seen: Evaluations[Any, Any]) -> None:
        """Restore the training as it was before a segment."""
        self.trainings.cancel(suggestion)

    def learn(self, outcome: CurveObservation, seen: Evaluations[Any, Any], *details: Any) -> None:
        """Extend the curve of a training; the detail is whether a cost was told."""
        (self.priced,) = details
        self.trainings.finish(seen.suggestion(outcome.round), outcome)

    def snapshot(self, action: Action, seen: Evaluations[Any, Any]) -> Undo:
        """Return a function that restores the trainings, and the chooser if it can have changed."""
        trainings = attributes_of(self, self.trainings)
        return trainings if action == "note" else both(states_of(self._chooser), trainings)

    def state_dict(self) -> dict[str, Any]:
        """Return the chooser's state and whether outcomes have costs; the ledger holds the rest."""
        return {"chooser": self._chooser.state_dict(), "priced": self.priced}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._chooser.load_state_dict(state["chooser"])
        self.priced = state["priced"]

    def restored(self, seen: Evaluations[Any, Any], *, same_options: bool) -> None:
        """Replay the trainings."""
        expected = "a bool after the first outcome, None before"
        valid = isinstance(self.priced, bool) if seen.outcomes else self.priced is None
        check(valid, "priced", expected, self.priced)
        trainings = self._no_trainings()
        trainings.replay(seen.suggestions, seen.outcomes)
        self.trainings = trainings
