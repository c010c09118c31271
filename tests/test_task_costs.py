"""Earlier studies with the costs of their observations."""

import math

import pytest

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.task_records import Task


def test_costs_are_kept_beside_the_values():
    task = Task([{"lr": 0.1}, {"lr": 0.2}], [0.5, 0.8], costs=[3, None])
    assert task.costs == (3.0, None)
    assert Task.from_dict(task.to_dict()) == task
    assert task != Task(task.configs, task.values)
    assert Task(task.configs, task.values, costs=[None, math.nan]) == Task(
        task.configs, task.values
    )


@pytest.mark.parametrize("costs", [[1.0], [0.0, 1.0], [-1.0, 1.0], ["a", 1.0], [True, 1.0], 3.0])
def test_what_is_no_cost_is_refused(costs):
    with pytest.raises((InvalidArgumentError, InvalidShapeError), match=r"costs.*: Expected"):
        Task([{"lr": 0.1}, {"lr": 0.2}], [0.5, 0.8], costs=costs)


def test_advice_has_no_costs():
    with pytest.raises(InvalidArgumentError, match="proposals were not trained"):
        Task([{"lr": 0.1}], [0.0], costs=[1.0], is_advice=True)
