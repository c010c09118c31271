"""A generation node of Ax that says how much of the data each arm trains on."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from botorch_costly.errors import InvalidSpaceError, check, check_nonnegative
from botorch_costly.integrations.ax.offline_node import OfflineNode, dtype_named
from botorch_costly.integrations.ax.parameters import Parameters
from botorch_costly.integrations.offline import ValueTrials
from botorch_costly.parameters import Choice, Parameter, Real
from botorch_costly.space import SearchSpace
from botorch_costly.tuners import Sampling, SubsetOptimizer


class SubsetNode(OfflineNode):
    """Generate configurations together with how much data they train on, to learn of the whole by parts.

    The share of the data, or how many rows there are, is a range parameter of the experiment, whose upper
    bound is the whole. Ax's ``is_fidelity``, which its ``Client`` cannot set, is not needed. Values of
    different parts cannot be compared: ``best_parameters``, not the client's, is best for the whole.
    Otherwise as ``TransferNode``, also for trials under way, failures and the storage.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017.

    Args:
        fidelities: Name of the parameter with the share; or the names of several fidelities.
        name: Of the node.
        cost: Metric that says what an arm has cost, in any unit, of all arms that complete; the product
            of its fidelities, as shares of the whole, if omitted.
        overhead: What each arm costs beside that, in that unit.
        sampling: How hyperparameters are drawn, and the optimum looked for.
        seed: The one source of randomness.
        dtype: Precision of what is computed.
        device: Where it is computed.
        should_deduplicate: As for Ax's nodes.
        transition_criteria: As for Ax's nodes.
        suggested_experiment_status: As for Ax's nodes.
        state: Of the node, as text; the JSON storage hands it in.

    Raises:
        InvalidArgumentError: If an argument is outside its range; when a trial is generated, if the
            experiment has no single objective.
        InvalidSpaceError: When a trial is generated, if a fidelity is no range above 0, or nothing else
            is to be chosen, or as for ``TransferNode``.
        MissingExtraError: If Ax is missing, or older than 1.3.1.

    Example::

        node = SubsetNode("fraction", cost="seconds")
        client.configure_tracking_metrics(["seconds"])
        client.set_generation_strategy(GenerationStrategy(nodes=[node]))
    """

    def __init__(
        self,
        fidelities: str | Sequence[str] = "fraction",
        *,
        name: str = "SubsetNode",
        cost: str | None = None,
        overhead: float = 0.0,
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
        names = [fidelities] if isinstance(fidelities, str) else fidelities
        listed = isinstance(names, Sequence) and all(isinstance(one, str) for one in names)
        distinct = listed and len(names) == len(set(names)) > 0
        check(distinct, "fidelities", "the name of a parameter, or distinct names", fidelities)
        known = sampling is None or isinstance(sampling, Sampling)
        check(known, "sampling", "a Sampling or None", sampling)
        self._fidelities = list(names)
        self._overhead = check_nonnegative("overhead", overhead)
        self._sampling = Sampling() if sampling is None else sampling

    def _trials_of(self, parameters: Parameters) -> ValueTrials:
        given = dict(parameters.space.parameters)
        parts = {name: _bounds(name, given.pop(name, None)) for name in self._fidelities}
        check(len(given) > 0, "search_space", "a parameter beside", parts, InvalidSpaceError)
        optimizer = SubsetOptimizer(
            SearchSpace(given),
            SearchSpace(parts),
            overhead=self._overhead,
            sampling=self._sampling,
            seed=self._seed,
            **self._tkwargs,
        )
        return ValueTrials(optimizer)

    def _own_arguments(self) -> dict[str, Any]:
        return {
            "fidelities": self._fidelities,
            "cost": self._cost,
            "overhead": self._overhead,
            "sampling": asdict(self._sampling),
        }

    @classmethod
    def from_dict(cls, **arguments: Any) -> "SubsetNode":
        """Rebuild a node from ``to_dict``, once Ax has decoded what is its own."""
        dtype = dtype_named(arguments.pop("dtype", "float64"))
        return cls(sampling=Sampling(**arguments.pop("sampling")), dtype=dtype, **arguments)


def _bounds(name: str, parameter: Parameter | None) -> Real:
    """Return a fidelity over the bounds of a parameter, in logarithms as it is believed in."""
    if parameter is None or isinstance(parameter, Choice) or parameter.low <= 0:
        expected = "a range parameter with bounds above 0"
        raise InvalidSpaceError(name, expected, parameter)
    return Real(float(parameter.low), float(parameter.high), log=True)
