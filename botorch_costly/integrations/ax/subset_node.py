"""A generation node of Ax that chooses how much of the data each arm trains on."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from botorch_costly.calls import advised
from botorch_costly.errors import InvalidSpaceError, check
from botorch_costly.integrations.ax.offline_node import OfflineNode
from botorch_costly.integrations.ax.parameters import Parameters
from botorch_costly.integrations.offline import ValueTrials
from botorch_costly.integrations.offline.options import SubsetOptions
from botorch_costly.parameters import Choice
from botorch_costly.space import SearchSpace
from botorch_costly.task_records import Task
from botorch_costly.tuners.subsets import Sampling


class SubsetNode(OfflineNode):
    """Generate configurations and the size of the data that they train on, to learn about the whole data.

    The share of the data, or the number of rows, is a range parameter of the experiment, whose upper
    bound is the whole data. Ax's ``is_fidelity``, which its ``Client`` cannot set, is not needed. Values
    on subsets of different sizes cannot be compared: use ``best_parameters`` of this node, which is for
    the whole data, not the client's. Running trials, failures and storage are as in ``TransferNode``.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017.

    Args:
        fidelities: Name of the parameter with the share; or the names of several fidelities.
        name: Name of the node.
        cost: Name of the metric with the cost of each completed arm, in any unit; if omitted, the cost is
            the product of the fidelities as shares of the whole.
        overhead: Additional cost of each arm, in the same unit.
        tasks: Earlier studies, such as ``task_from_ax(client, "accuracy")``, in the parameters of the
            experiment; their larger values are better. One without the fidelities was on all of the data.
        sampling: How hyperparameters are sampled, and how the optimum is searched.
        seed: Seed of the random generator.
        dtype: Precision of the computations.
        device: Device of the computations.
        should_deduplicate: Option of Ax's nodes.
        transition_criteria: Option of Ax's nodes.
        suggested_experiment_status: Option of Ax's nodes.
        state: State of the node as text, which the JSON storage passes.

    Raises:
        InvalidArgumentError: If an argument is outside its range; when a trial is generated, if the
            experiment has no single objective.
        InvalidSpaceError: When a trial is generated, if a fidelity is no range above 0, there is no other
            parameter, the search space has constraints, or parameters depend on others.
        MissingExtraError: If Ax is missing, or older than 1.3.1.

    Example::

        node = SubsetNode("fraction", cost="seconds")
        client.configure_tracking_metrics(["seconds"])
        client.set_generation_strategy(GenerationStrategy(nodes=[node]))
    """

    @advised
    def __init__(
        self,
        fidelities: str | Sequence[str] = "fraction",
        *,
        name: str = "SubsetNode",
        cost: str | None = None,
        overhead: float = 0.0,
        tasks: Sequence[Task] = (),
        sampling: Sampling | None = None,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
        should_deduplicate: bool = False,
        transition_criteria: Sequence[Any] | None = None,
        suggested_experiment_status: Any = None,
        state: str | None = None,
    ) -> None:
        check(cost is None or isinstance(cost, str), "cost", "the name of a metric, or None", cost)
        super().__init__(
            name=name,
            seed=seed,
            dtype=dtype,
            device=device,
            should_deduplicate=should_deduplicate,
            transition_criteria=transition_criteria,
            suggested_experiment_status=suggested_experiment_status,
            state=state,
            cost=cost,
        )
        sampling = Sampling() if sampling is None else sampling
        self._options = SubsetOptions(fidelities, overhead, sampling, tasks)

    def _trials_of(self, parameters: Parameters) -> ValueTrials:
        others = dict(parameters.space.parameters)
        bounds = {name: others.pop(name, None) for name in self._options.names}
        for name, parameter in bounds.items():
            if parameter is None or isinstance(parameter, Choice) or parameter.low <= 0:
                expected = "a range parameter with bounds above 0"
                raise InvalidSpaceError(name, expected, parameter)
        expected = "a parameter that is no fidelity"
        check(len(others) > 0, "search_space", expected, list(bounds), InvalidSpaceError)
        space = SearchSpace(others)
        return self._options.trials(space, bounds, parameters, seed=self._seed, **self._tkwargs)

    def _arguments(self) -> dict[str, Any]:
        return {
            "fidelities": list(self._options.names),
            "cost": self._cost,
            "overhead": self._options.overhead,
            "tasks": [task.to_dict() for task in self._options.tasks],
            "sampling": asdict(self._options.sampling or Sampling()),
        }

    @staticmethod
    def _decoded(arguments: dict[str, Any]) -> dict[str, Any]:
        tasks = [Task.from_dict(task) for task in arguments.get("tasks", ())]
        return {**arguments, "tasks": tasks, "sampling": Sampling(**arguments["sampling"])}
