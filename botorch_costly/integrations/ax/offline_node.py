"""Base of the generation nodes of Ax: an optimizer is kept in step with an experiment."""

import base64
import io
import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import torch

from botorch_costly.device import check_tkwargs
from botorch_costly.errors import (
    HorizonExceededError,
    InvalidArgumentError,
    StateMismatchError,
    UnsafeVersionError,
    check,
)
from botorch_costly.integrations.ax.arms import Arms
from botorch_costly.integrations.ax.parameters import Parameters
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.offline import OfflineTrials
from botorch_costly.randomness import check_seed
from botorch_costly.states import read_plain

try:
    from ax.exceptions.core import SearchSpaceExhausted
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
except ImportError:
    ExternalGenerationNode = object

_logger = logging.getLogger(__name__)


class OfflineNode(ExternalGenerationNode):
    """A node whose optimizer learns from all arms of an experiment that belong to the search space.

    The arguments are those of the derived nodes. ``cost`` names the metric with the costs, if these are
    told.

    Raises:
        InvalidArgumentError: If the seed is no count.
        MissingExtraError: If Ax is missing, or older than 1.3.1.
    """

    def __init__(
        self,
        *,
        name: str,
        seed: int,
        dtype: torch.dtype,
        device: torch.device | str,
        should_deduplicate: bool,
        transition_criteria: Sequence[Any] | None,
        suggested_experiment_status: Any,
        state: str | None,
        cost: str | None = None,
    ) -> None:
        require("ax-platform", "1.3.1", "ax")
        super().__init__(
            name=name,
            suggested_experiment_status=suggested_experiment_status,
            should_deduplicate=should_deduplicate,
            transition_criteria=transition_criteria,
        )
        self._seed, self._cost = check_seed(seed), cost
        self._tkwargs = check_tkwargs(dtype, device)
        self._arms: Arms | None = None
        self._state = state  # of arms that do not exist yet

    @property
    def optimizer(self) -> Any:
        """The optimizer; None before the first trial is generated."""
        return None if self._arms is None else self._arms.optimizer

    def update_generator_state(self, experiment: Any, data: Any) -> None:
        """Learn from the trials of the experiment."""
        parameters = Parameters(experiment.search_space)
        metric, sign = _objective(experiment)
        if self._arms is None or not self._arms.fits(parameters, metric, sign):
            self._arms = self._begun(parameters, metric, sign)
        self._arms.read(experiment, data)

    def get_next_candidate(self, pending_parameters: list[Any]) -> dict[str, Any]:
        """Return the parameters of the next arm.

        Args:
            pending_parameters: Parameters of running arms, and of arms generated for future trials.

        Raises:
            SearchSpaceExhausted: If all configurations have been asked for.
        """
        if self._arms is None:
            expected = "an experiment to be read first"
            raise InvalidArgumentError("get_next_candidate", expected, "none")
        try:
            return self._arms.ask(pending_parameters)
        except HorizonExceededError as error:
            raise SearchSpaceExhausted(str(error)) from error

    def best_parameters(self) -> dict[str, Any] | None:
        """Return the parameters of the incumbent; None before a value is known."""
        return None if self._arms is None else self._arms.best()

    def _begun(self, parameters: Parameters, metric: str, sign: int) -> Arms:
        trials = self._trials_of(parameters)
        arms = Arms(parameters, trials, metric, sign, self._cost)
        saved, self._state = self._state, None
        if saved is not None:
            try:
                arms.load_state_dict(_from_text(saved, type(self).__name__))
            except StateMismatchError as error:
                _logger.warning(
                    "%s begins anew from the trials of the experiment: %s", self.name, error
                )
        return arms

    @abstractmethod
    def _trials_of(self, parameters: Parameters) -> OfflineTrials[Any]:
        """Return the trials of a new optimizer that maximizes."""

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of this kind of node, in plain values."""

    @staticmethod
    @abstractmethod
    def _decoded(arguments: dict[str, Any]) -> dict[str, Any]:
        """Return all arguments, with those of ``_arguments`` rebuilt from their plain values."""

    @classmethod
    def from_dict(cls, **arguments: Any) -> Self:
        """Rebuild a node from ``to_dict``, after Ax has decoded its own types."""
        dtype = getattr(torch, arguments.pop("dtype", "float64"))
        return cls(dtype=dtype, **cls._decoded(arguments))

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments of the node, which Ax's JSON storage keeps."""
        state = self._state if self._arms is None else _to_text(self._arms.state_dict())
        return {
            "__type": type(self).__name__,
            **self._arguments(),
            "name": self.name,
            "seed": self._seed,
            "dtype": str(self._tkwargs["dtype"]).removeprefix("torch."),
            "device": str(self._tkwargs["device"]),
            "should_deduplicate": self.should_deduplicate,
            "transition_criteria": list(self.transition_criteria),
            "suggested_experiment_status": self.suggested_experiment_status,
            "state": state,
        }


def _objective(experiment: Any) -> tuple[str, int]:
    """Return the name of the objective, and the sign by which its larger values become better."""
    config = experiment.optimization_config
    check(config is not None, "experiment", "an experiment with an objective", "none")
    names = list(config.objective.metric_names)
    check(len(names) == 1, "experiment", "an experiment with one objective", names)
    constraints = list(config.outcome_constraints)
    check(not constraints, "experiment", "no outcome constraints", constraints)
    return names[0], -1 if config.objective.minimize else 1


def _to_text(state: dict[str, Any]) -> str:
    file = io.BytesIO()
    torch.save(state, file)
    return base64.b64encode(file.getvalue()).decode()


def _from_text(text: str, kind: str) -> dict[str, Any]:
    try:
        file = io.BytesIO(base64.b64decode(text, validate=True))
        state: dict[str, Any] = read_plain(file)
    except UnsafeVersionError:
        raise
    except Exception as error:
        raise StateMismatchError("state", f"that of a {kind}", f"{text[:20]}..") from error
    return state
