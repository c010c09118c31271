"""Runs of Weights & Biases and MLflow as earlier tasks."""

import logging
from types import SimpleNamespace as Fake

import numpy as np
import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1.0, log=True), "depth": bc.Choice(["3.10", "3.1"])})


class Summary:
    """The summary of a run of W&B, which is no mapping."""

    def __init__(self, **entries):
        self._entries = entries

    def get(self, name, default=None):
        return self._entries.get(name, default)


def of_wandb(config, state="finished", project="digits", **summary):
    return Fake(config=config, state=state, project=project, summary=Summary(**summary))


def of_mlflow(params, metrics, status="FINISHED", experiment="1", seconds=2.0):
    info = Fake(
        status=status, experiment_id=experiment, start_time=500, end_time=500 + 1000 * seconds
    )
    return Fake(data=Fake(params=params, metrics=metrics), info=info)


def test_runs_of_wandb_are_a_task_for_each_study(caplog):
    caplog.set_level(logging.WARNING)
    runs = [
        of_wandb(
            {"data": "iris", "optimizer": {"lr": 0.1, "betas": [0.9, 0.99]}}, loss=0.3, _runtime=9
        ),
        of_wandb({"data": "wine", "optimizer": {"lr": 0.2}, "on": True}, loss="NaN"),
        of_wandb(
            {"data": "iris", "optimizer": {"lr": 0.3}, "file": object()}, loss=np.float32(0.5)
        ),
    ]
    iris, wine = bc.tasks_from_wandb(runs, "loss", task="data")
    betas = {"optimizer.lr": 0.1, "optimizer.betas": (0.9, 0.99)}
    configs = [betas, {"optimizer.lr": 0.3}]
    assert iris == bc.Task(configs, [0.3, 0.5], name="iris", costs=[9.0, None])
    assert wine == bc.Task([{"optimizer.lr": 0.2, "on": True}], [None], name="wine", costs=[None])
    assert caplog.records == []


def test_runs_of_a_project_are_one_study():
    runs = [
        of_wandb({"lr": 0.1}, loss={"min": 0.3}),
        of_wandb({"lr": 0.2}, project="other", loss=0.1),
    ]
    assert [task.name for task in bc.tasks_from_wandb(runs[1:], "loss")] == ["other"]
    (nested,) = bc.tasks_from_wandb(runs[:1], "loss.min")
    assert (nested.name, nested.values) == ("digits", (0.3,))


@pytest.mark.parametrize(
    "other",
    [
        of_wandb({"lr": 0.1}, state="crashed", loss=0.3),
        of_wandb({"lr": 0.1}, state="running", loss=0.3),
        of_wandb({"lr": 0.1}, accuracy=0.3),
        of_wandb({"lr": 0.1}, loss="broken"),
        of_wandb({"depth": 2}, loss=0.3),
    ],
)
def test_a_run_that_is_not_complete_is_left_out_with_a_warning(other, caplog):
    caplog.set_level(logging.WARNING)
    (task,) = bc.tasks_from_wandb([of_wandb({"lr": 0.5}, loss=0.1), other], "loss", names=["lr"])
    assert task.values == (0.1,)
    (record,) = caplog.records
    assert record.getMessage().startswith("1 of 2 runs are not finished or lack 'loss'")


def test_runs_of_mlflow_are_a_task_for_each_experiment():
    runs = [
        of_mlflow({"lr": "1e-2", "depth": "3.10"}, {"acc": 0.9}),
        of_mlflow({"lr": "0.1", "depth": "3.1"}, {"acc": 0.8}, experiment="2", seconds=0.0),
        of_mlflow({"lr": "0.2", "depth": "3.10"}, {"acc": float("nan")}),
    ]
    first, second = bc.tasks_from_mlflow(runs, "acc")
    assert (first.name, first.values, first.costs) == ("1", (0.9, None), (2.0, 2.0))
    assert (second.name, second.costs) == ("2", None)
    assert first.configs[0]["lr"] == 0.01
    encoded = first.in_space(SPACE)  # by the texts 3.10 is not 3.1
    assert encoded.kept == (0,)
    assert not second.in_space(SPACE).points[0].equal(encoded.points[0])


def test_a_parameter_of_mlflow_names_the_study():
    runs = [of_mlflow({"lr": "0.1", "data": name}, {"acc": 0.9}) for name in ("iris", "wine")]
    names = [
        (task.name, dict(task.configs[0]))
        for task in bc.tasks_from_mlflow(runs, "acc", task="data")
    ]
    assert names == [("iris", {"lr": 0.1}), ("wine", {"lr": 0.1})]


@pytest.mark.parametrize("read", [bc.tasks_from_wandb, bc.tasks_from_mlflow])
@pytest.mark.parametrize("runs", ["team/project", None, [1], [], {"lr": 1}])
def test_other_things_are_refused(read, runs):
    with pytest.raises(InvalidArgumentError, match="runs: Expected"):
        read(runs, "loss")


@pytest.mark.parametrize("metric", [None, 3, ["loss"]])
@pytest.mark.parametrize(
    ("read", "run"),
    [
        (bc.tasks_from_wandb, of_wandb({"lr": 0.1}, loss=0.3)),
        (bc.tasks_from_mlflow, of_mlflow({"lr": "0.1"}, {"loss": 0.3})),
    ],
)
def test_a_metric_is_a_name(read, run, metric):
    with pytest.raises(InvalidArgumentError, match="metric: Expected the name of a metric"):
        read([run], metric)


@pytest.mark.parametrize("names", [[], (), "lr", ["data"], ["lr", "data"]])
def test_names_without_a_parameter_are_refused(names):
    for_both = {"data": "iris", "lr": 0.1}
    with pytest.raises(InvalidArgumentError, match="names: Expected"):
        bc.tasks_from_wandb([of_wandb(for_both, loss=0.3)], "loss", task="data", names=names)
    with pytest.raises(InvalidArgumentError, match="names: Expected"):
        bc.tasks_from_mlflow([of_mlflow(for_both, {"loss": 0.3})], "loss", task="data", names=names)


@pytest.mark.parametrize("options", [{"names": "lr"}, {"task": "data"}, {"names": ["rate"]}])
def test_what_no_run_has_is_said(options):
    with pytest.raises(InvalidArgumentError, match=r"names|data|rate"):
        bc.tasks_from_wandb([of_wandb({"lr": 0.1}, loss=0.3)], "loss", **options)


def test_an_optimizer_learns_from_them():
    runs = [of_wandb({"lr": 10.0**-k, "depth": "3.1"}, loss=abs(k - 2.0)) for k in (1, 2, 3)]
    tasks = bc.tasks_from_wandb(runs, "loss")
    optimizer = bc.TransferOptimizer(SPACE, tasks, maximize=False, horizon=5, seed=0)
    assert optimizer.ask().config["lr"] == pytest.approx(0.01)
