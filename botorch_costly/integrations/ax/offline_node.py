"""What the generation nodes of Ax share: an optimizer is kept in step with an experiment."""

import base64
import io
import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch

from botorch_costly.device import check_tkwargs
from botorch_costly.errors import HorizonExceededError, StateMismatchError, check
from botorch_costly.integrations.ax.arms import Arms
from botorch_costly.integrations.ax.parameters import Parameters
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.offline import OfflineTrials
from botorch_costly.randomness import check_seed

try:
    from ax.exceptions.core import SearchSpaceExhausted
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
except ImportError:
    ExternalGenerationNode = object

_logger = logging.getLogger(__name__)


class OfflineNode(ExternalGenerationNode):
    """A node whose optimizer learns from all arms of an experiment that belong to the search space.

    Args:
        name: Of the node.
        seed: The one source of randomness.
        dtype: Precision of what is computed.
        device: Where it is computed.
        should_deduplicate: As for Ax's nodes.
        transition_criteria: As for Ax's nodes.
        suggested_experiment_status: As for Ax's nodes.
        state: Of the node, as text; the JSON storage hands it in.
        cost: Metric that says what an arm has cost; None if costs do not count or are not told.

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
        self._state = state  # of arms that are to be

    @property
    def optimizer(self) -> Any:
        """The optimizer that is asked; None before the first trial is generated."""
        return None if self._arms is None else self._arms.optimizer

    def update_generator_state(self, experiment: Any, data: Any) -> None:
        """Learn what the trials of the experiment have come to."""
        parameters = Parameters(experiment.search_space)
        metric, sign = _objective(experiment)
        if self._arms is None or not self._arms.fits(parameters, metric, sign):
            self._arms = self._begun(parameters, metric, sign)
        self._arms.read(experiment, data)

    def get_next_candidate(self, pending_parameters: list[Any]) -> dict[str, Any]:
        """Return the parameters of the next arm.

        Args:
            pending_parameters: Of arms under way, and of those generated for trials to come.

        Raises:
            SearchSpaceExhausted: If all configurations have been asked for.
        """
        check(
            self._arms is not None, "get_next_candidate", "an experiment to be read first", "none"
        )
        assert self._arms is not None
        try:
            return self._arms.ask(pending_parameters)
        except HorizonExceededError as error:
            raise SearchSpaceExhausted(str(error)) from error

    def best_parameters(self) -> dict[str, Any] | None:
        """Return the parameters that are believed best; None before a value is known."""
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
    def _own_arguments(self) -> dict[str, Any]:
        """Return the arguments that nodes of this kind have beside those of all, in plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Return what Ax's JSON storage keeps: arguments of the node."""
        state = self._state if self._arms is None else _to_text(self._arms.state_dict())
        return {
            "__type": type(self).__name__,
            **self._own_arguments(),
            "name": self.name,
            "seed": self._seed,
            "dtype": str(self._tkwargs["dtype"]).removeprefix("torch."),
            "device": str(self._tkwargs["device"]),
            "should_deduplicate": self.should_deduplicate,
            "transition_criteria": list(self.transition_criteria),
            "suggested_experiment_status": self.suggested_experiment_status,
            "state": state,
        }


def dtype_named(name: str) -> torch.dtype:
    """Return the dtype of a name that ``to_dict`` has written."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _objective(experiment: Any) -> tuple[str, int]:
    """Return the metric of the objective, and the sign after which larger values are better."""
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
        state: dict[str, Any] = torch.load(file, weights_only=True)
    except Exception as error:
        raise StateMismatchError("state", f"that of a {kind}", f"{text[:20]}..") from error
    return state
