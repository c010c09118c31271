"""A generation node of Ax that begins where earlier studies ended."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from botorch_costly.errors import check, check_count
from botorch_costly.integrations.ax.offline_node import OfflineNode, dtype_named
from botorch_costly.integrations.ax.parameters import Parameters
from botorch_costly.integrations.earlier import translated
from botorch_costly.integrations.offline import ValueTrials
from botorch_costly.task_records import Task
from botorch_costly.tuners import ByEvidence, ByGaps, TransferOptimizer

_KINDS = {kind.__name__: kind for kind in (ByEvidence, ByGaps)}


class TransferNode(OfflineNode):
    """Generate with what earlier studies found, and without harm for long if they mislead.

    A node of a ``GenerationStrategy``, alone or among others. It learns from all arms of the experiment
    that belong to the search space, whichever node they are of; trials under way count as such. A trial
    that failed, was abandoned or was stopped early counts less than expected. After ``register()``
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
        dtype: Precision of what is computed.
        device: Where it is computed.
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
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
        should_deduplicate: bool = False,
        transition_criteria: Sequence[Any] | None = None,
        suggested_experiment_status: Any = None,
        state: str | None = None,
    ) -> None:
        super().__init__(
            name=name,
            seed=seed,
            dtype=dtype,
            device=device,
            should_deduplicate=should_deduplicate,
            transition_criteria=transition_criteria,
            suggested_experiment_status=suggested_experiment_status,
            state=state,
        )
        listed = isinstance(tasks, Sequence) and len(tasks) > 0
        listed = listed and all(isinstance(one, Task) for one in tasks)
        check(listed, "tasks", "at least one Task in a list", tasks)
        robust = ByEvidence() if robust is None else robust
        check(type(robust) in _KINDS.values(), "robust", "ByEvidence or ByGaps", robust)
        self._tasks, self._robust = list(tasks), robust
        self._warm_start = check_count("warm_start", warm_start)

    def _trials_of(self, parameters: Parameters) -> ValueTrials:
        optimizer = TransferOptimizer(
            parameters.space,
            translated("tasks", self._tasks, parameters),
            robust=self._robust,
            warm_start=self._warm_start,
            seed=self._seed,
            **self._tkwargs,
        )
        return ValueTrials(optimizer)

    def _own_arguments(self) -> dict[str, Any]:
        return {
            "tasks": [task.to_dict() for task in self._tasks],
            "robust": {"kind": type(self._robust).__name__, **asdict(self._robust)},
            "warm_start": self._warm_start,
        }

    @classmethod
    def from_dict(cls, **arguments: Any) -> "TransferNode":
        """Rebuild a node from ``to_dict``, once Ax has decoded what is its own."""
        tasks = [Task.from_dict(one) for one in arguments.pop("tasks")]
        robust = dict(arguments.pop("robust"))
        kind = _KINDS[robust.pop("kind")]
        dtype = dtype_named(arguments.pop("dtype", "float64"))
        return cls(tasks, robust=kind(**robust), dtype=dtype, **arguments)
