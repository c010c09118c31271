"""A generation node of Ax that starts from earlier studies."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from botorch_costly.calls import advised
from botorch_costly.integrations.ax.offline_node import OfflineNode
from botorch_costly.integrations.ax.parameters import Parameters
from botorch_costly.integrations.offline import ValueTrials
from botorch_costly.integrations.offline.options import TransferOptions
from botorch_costly.task_records import Task, check_tasks
from botorch_costly.tuners.transfer import ByEvidence, ByGaps

_KINDS = {kind.__name__: kind for kind in (ByEvidence, ByGaps)}


class TransferNode(OfflineNode):
    """Generate from earlier studies; misleading ones do no harm for long.

    A node of a ``GenerationStrategy``, alone or among others. It learns from all arms of the experiment
    that belong to the search space, whichever node generated them; running trials are pending. A trial
    that failed, was abandoned or was stopped early counts less than expected. After ``register()``
    Ax's JSON storage saves and loads the node with everything that it has learnt.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022.

    Args:
        tasks: Earlier studies, such as ``task_from_ax(client, "loss")``, in the parameters of the
            experiment. Their larger values are better, whatever the objective's direction.
        name: Name of the node.
        robust: How the weight of the earlier studies is decided.
        warm_start: Number of first trials from a portfolio of the earlier studies' best configurations.
        seed: Seed of the random generator.
        dtype: Precision of the computations.
        device: Device of the computations.
        should_deduplicate: Option of Ax's nodes. A noisy evaluation may be worth repeating.
        transition_criteria: Option of Ax's nodes.
        suggested_experiment_status: Option of Ax's nodes.
        state: State of the node as text, which the JSON storage passes.

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

    @advised
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
        robust = ByEvidence() if robust is None else robust
        self._options = TransferOptions(list(check_tasks(tasks, fewest=1)), robust, warm_start)

    def _trials_of(self, parameters: Parameters) -> ValueTrials:
        return self._options.trials("tasks", parameters, seed=self._seed, **self._tkwargs)

    def _arguments(self) -> dict[str, Any]:
        options = self._options
        return {
            "tasks": [task.to_dict() for task in options.tasks],
            "robust": {"kind": type(options.robust).__name__, **asdict(options.robust)},
            "warm_start": options.warm_start,
        }

    @staticmethod
    def _decoded(arguments: dict[str, Any]) -> dict[str, Any]:
        robust = dict(arguments["robust"])
        kind = _KINDS[robust.pop("kind")]
        tasks = [Task.from_dict(task) for task in arguments["tasks"]]
        return {**arguments, "tasks": tasks, "robust": kind(**robust)}
