"""The face of an object around an optimizer, such as its loggers or its session."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from torch import Tensor

from botorch_costly.ask_tell.protocol import Suggestion, Tells
from botorch_costly.calls import advised
from botorch_costly.lookups import Advising
from botorch_costly.parameters import Plain
from botorch_costly.space import SearchSpace

D = TypeVar("D", bound=Suggestion)
_logger = logging.getLogger(__name__)


@advised
class Around(Advising, Generic[D]):
    """Answers as the optimizer within: ``ask``, ``tell`` and states are for the derived class.

    Attributes:
        tuner: The optimizer.
    """

    tuner: Any

    def _instead(self, name: str) -> list[str]:
        """Return the attribute of the tuner, if it has it."""
        is_whole = name in ("save", "load")  # of more than the tuner
        within = hasattr(type(self.tuner), name) and not is_whole
        return [f"tuner.{name}"] if within else super()._instead(name)

    @property
    def space(self) -> SearchSpace:
        """Search space of the tuner."""
        space: SearchSpace = self.tuner.space
        return space

    @property
    def horizon(self) -> int | None:
        """Rounds of the run, if known."""
        horizon: int | None = self.tuner.horizon
        return horizon

    @property
    def is_over(self) -> bool:
        """Whether ``ask`` has nothing left."""
        return bool(self.tuner.is_over)

    @property
    def maximize(self) -> bool:
        """Whether larger values are better."""
        return bool(self.tuner.maximize)

    @property
    def tells(self) -> Tells:
        """Kind of the outcome that ``tell`` takes."""
        tells: Tells = self.tuner.tells
        return tells

    @property
    def predicts(self) -> bool:
        """Whether ``predict`` has a model."""
        return bool(self.tuner.predicts)

    @property
    def queries_last(self) -> bool:
        """Whether the last round of a horizon is always queried."""
        return bool(self.tuner.queries_last)

    @property
    def queries(self) -> int:
        """Number of queries paid for."""
        return int(self.tuner.queries)

    @property
    def decisions(self) -> tuple[D, ...]:
        """The decisions so far, as far as they are kept."""
        decisions: tuple[D, ...] = self.tuner.decisions
        return decisions

    @property
    def observations(self) -> tuple[Any, ...]:
        """The observations so far, as far as their decisions are kept."""
        observations: tuple[Any, ...] = self.tuner.observations
        return observations

    @property
    def history(self) -> list[dict[str, Any]]:
        """One plain dictionary per round, ready for a data frame."""
        history: list[dict[str, Any]] = self.tuner.history
        return history

    @property
    def changeable(self) -> frozenset[str]:
        """Names of the options that may change when a run is continued."""
        changeable: frozenset[str] = self.tuner.changeable
        return changeable

    def enqueue(self, config: Mapping[str, Plain], *args: Any, **options: Any) -> D:
        """Enter a suggestion of the user's; arguments and errors are those of the tuner."""
        suggestion: D = self.tuner.enqueue(config, *args, **options)
        return suggestion

    def cancel(self, suggestion: D) -> None:
        """Cancel a pending suggestion; errors are those of the tuner."""
        self.tuner.cancel(suggestion)

    def best(self) -> Mapping[str, Plain] | None:
        """Return the incumbent of the tuner; None if there is none yet."""
        best: Mapping[str, Plain] | None = self.tuner.best()
        return best

    def predict(
        self, configs: Sequence[Mapping[str, Plain]], *args: Any, **options: Any
    ) -> tuple[Tensor, Tensor] | None:
        """Return the posterior of the tuner; arguments and errors are its own."""
        posterior: tuple[Tensor, Tensor] | None = self.tuner.predict(configs, *args, **options)
        return posterior

    def flush(self) -> None:
        """Log the last round, if there are loggers within; they stay open."""
        if isinstance(self.tuner, Around):
            self.tuner.flush()

    def close(self) -> None:
        """Log the last round and close the loggers within, if there are any."""
        if isinstance(self.tuner, Around):
            self.tuner.close()


def warn_if_over(tuner: Any) -> None:
    """Warn that a loop over the rounds of a tuner does nothing, if none are left."""
    if tuner.is_over:
        _logger.warning(
            "No round is left after %d: this loop does nothing. Make a new tuner for another run, or "
            "load this run with a longer horizon and changed=['horizon'].",
            len(tuner.decisions),
        )
