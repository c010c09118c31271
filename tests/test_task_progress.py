"""Earlier studies with curves: the progress of each value."""

import math

import numpy as np
import pytest

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.parameters import Real
from botorch_costly.space import SearchSpace
from botorch_costly.task_records import Task
from botorch_costly.tuners import TransferOptimizer


def test_progress_is_a_share_of_a_training():
    task = Task([{"lr": 0.1}, {"lr": 0.1}], [0.5, 0.8], progress=np.array([0.5, 1.0]))
    assert task.progress == (0.5, 1.0)
    assert Task.from_dict(task.to_dict()) == task
    assert task != Task(task.configs, task.values)
    assert Task(task.configs, task.values, progress=[1, 1.0]) == Task(task.configs, task.values)


@pytest.mark.parametrize("progress", [[0.5], [0.0, 1.0], [0.5, 1.5], [None, 1.0], [math.nan, 1.0]])
def test_what_is_no_progress_is_refused(progress):
    with pytest.raises((InvalidArgumentError, InvalidShapeError), match="progress: Expected"):
        Task([{"lr": 0.1}, {"lr": 0.2}], [0.5, 0.8], progress=progress)


def test_curves_are_no_final_values():
    task = Task([{"lr": 0.1}, {"lr": 0.2}], [0.5, 0.8], progress=[0.5, 1.0])
    space = SearchSpace({"lr": Real(0.0, 1.0)})
    with pytest.raises(InvalidArgumentError, match="tasks: Expected final values; CurveOptimizer"):
        TransferOptimizer(space, [task])


@pytest.mark.parametrize(("progress", "message"), [(["a"], r"progress\[0\]"), (0.5, "progress")])
def test_errors_of_progress_name_it(progress, message):
    with pytest.raises((InvalidArgumentError, InvalidShapeError), match=f"^{message}: Expected"):
        Task([{"lr": 0.1}], [0.5], progress=progress)
