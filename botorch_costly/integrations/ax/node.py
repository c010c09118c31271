"""A generation node of Ax that begins where earlier studies ended."""

import base64
import io
import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from botorch_costly.errors import (
    HorizonExceededError,
    StateMismatchError,
    check,
    check_count,
)
from botorch_costly.integrations.ax.arms import Arms
from botorch_costly.integrations.ax.parameters import Parameters
from botorch_costly.integrations.earlier import translated
from botorch_costly.integrations.extras import require
from botorch_costly.task_records import Task
from botorch_costly.tuners import ByEvidence, ByGaps, TransferOptimizer

try:
    from ax.exceptions.core import SearchSpaceExhausted
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
except ImportError:
    ExternalGenerationNode = object

_logger = logging.getLogger(__name__)
_KINDS = {kind.__name__: kind for kind in (ByEvidence, ByGaps)}


class TransferNode(ExternalGenerationNode):
    """Generate with what earlier studies found, and without harm for long if they mislead.

    A node of a ``GenerationStrategy``, alone or among others. It learns from all arms of the experiment
    that belong to the search space, whichever node they are of; trials under way count as such. A trial
    that failed, was abandoned or was stopped early counts as the worst value seen. After ``register()``
    Ax's JSON storage saves and loads it, with all that it has learnt.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022.

    Args:
        tasks: Earlier studies, such as ``task_from_ax(client, "loss")``, in the parameters of the
            experiment. Of their values larger ones are better, whatever the objective's direction.
        name: Of the node.
        robust: How the share of the earlier studies is decided.
        warm_start: Trials that begin with a portfolio of the earlier studies' best.
        seed: The one source of randomness.
        should_deduplicate: As for Ax's nodes. A noisy evaluation may be worth repeating.
        transition_criteria: As for Ax's nodes.
        suggested_experiment_status: As for Ax's nodes.
        state: Of the node, as text; the JSON storage hands it in.

    Raises:
        InvalidArgumentError: If there is no task, or an argument is outside its range; when a trial is
            generated, if no task fits the search space, or the experiment has no single objective.
        InvalidSpaceError: When a trial is generated, if the search space has constraints, or parameters
            that depend on others.
        MissingExtraError: If Ax is missing, or older than 1.3.1.

    Example::

        strategy = GenerationStrategy(nodes=[TransferNode([task_from_ax(earlier, "loss")])])
        client.set_generation_strategy(strategy)
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        name: str = "TransferNode",
        robust: ByEvidence | ByGaps | None = None,
        warm_start: int = 0,
        seed: int = 0,
        should_deduplicate: bool = False,
        transition_criteria: Sequence[Any] | None = None,
        suggested_experiment_status: Any = None,
        state: str | None = None,
    ) -> None:
        require("ax-platform", "1.3.1", "ax")
        listed = isinstance(tasks, Sequence) and len(tasks) > 0
        listed = listed and all(isinstance(one, Task) for one in tasks)
        check(listed, "tasks", "at least one Task in a list", tasks)
        robust = ByEvidence() if robust is None else robust
        check(type(robust) in _KINDS.values(), "robust", "ByEvidence or ByGaps", robust)
        super().__init__(
            name=name,
            suggested_experiment_status=suggested_experiment_status,
            should_deduplicate=should_deduplicate,
            transition_criteria=transition_criteria,
        )
        self._tasks, self._robust = list(tasks), robust
        self._warm_start = check_count("warm_start", warm_start)
        self._seed = check_count("seed", seed)
        self._arms: Arms | None = None
        self._state = state  # of arms that are to be

    @property
    def optimizer(self) -> TransferOptimizer | None:
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

    def _begun(self, parameters: Parameters, metric: str, sign: int) -> Arms:
        optimizer = TransferOptimizer(
            parameters.space,
            translated("tasks", self._tasks, parameters),
            robust=self._robust,
            warm_start=self._warm_start,
            seed=self._seed,
        )
        arms = Arms(parameters, optimizer, metric, sign)
        saved, self._state = self._state, None
        if saved is not None:
            try:
                arms.load_state_dict(_from_text(saved))
            except StateMismatchError as error:
                _logger.warning(
                    "%s begins anew from the trials of the experiment: %s", self.name, error
                )
        return arms

    def to_dict(self) -> dict[str, Any]:
        """Return what Ax's JSON storage keeps: arguments of the node."""
        state = self._state if self._arms is None else _to_text(self._arms.state_dict())
        return {
            "__type": type(self).__name__,
            "tasks": [task.to_dict() for task in self._tasks],
            "name": self.name,
            "robust": {"kind": type(self._robust).__name__, **asdict(self._robust)},
            "warm_start": self._warm_start,
            "seed": self._seed,
            "should_deduplicate": self.should_deduplicate,
            "transition_criteria": list(self.transition_criteria),
            "suggested_experiment_status": self.suggested_experiment_status,
            "state": state,
        }

    @classmethod
    def from_dict(cls, **arguments: Any) -> "TransferNode":
        """Rebuild a node from ``to_dict``, once Ax has decoded what is its own."""
        tasks = [Task.from_dict(one) for one in arguments.pop("tasks")]
        robust = dict(arguments.pop("robust"))
        kind = _KINDS[robust.pop("kind")]
        return cls(tasks, robust=kind(**robust), **arguments)


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


def _from_text(text: str) -> dict[str, Any]:
    try:
        file = io.BytesIO(base64.b64decode(text, validate=True))
        state: dict[str, Any] = torch.load(file, weights_only=True)
    except Exception as error:
        raise StateMismatchError("state", "that of a TransferNode", f"{text[:20]}..") from error
    return state
