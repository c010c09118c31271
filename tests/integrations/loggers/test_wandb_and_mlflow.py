"""The loggers for W&B and MLflow: what stand-ins are sent, and what the libraries read back."""

import math
import pickle
import sys
import types

import pytest

import botorch_costly as bc
from botorch_costly.integrations.loggers import (
    LoggedTuner,
    MlflowLogger,
    WandbLogger,
    mlflow as mlflow_module,
    wandb as wandb_module,
)
from tests.integrations.loggers.playing import Memory, cheap, history, play_cheap


class Run:
    """Records what a run of W&B is asked for."""

    def __init__(self):
        self.rows, self.axes, self.finished = [], {}, False

    def define_metric(self, name, step_metric=None, hidden=None):
        self.axes[name] = step_metric

    def log(self, row):
        self.rows.append(row)


class Mlflow(types.ModuleType):
    """Records the metrics that MLflow is sent."""

    def __init__(self):
        super().__init__("mlflow")
        self.sent = []

    def log_metrics(self, metrics, step, run_id):
        self.sent.append((step, run_id, metrics))


@pytest.fixture
def wandb(monkeypatch):
    monkeypatch.setattr(wandb_module, "require", lambda *names: None)
    fake = types.ModuleType("wandb")
    fake.run = None
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


@pytest.fixture
def mlflow(monkeypatch):
    monkeypatch.setattr(mlflow_module, "require", lambda *names: None)
    fake = Mlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    return fake


def failing(*loggers, names=("lr",)):
    """A run of three rounds: one told, one of which the metric is NaN, one that is not told."""
    space = bc.SearchSpace({name: bc.Real(0.1, 1.0) for name in names})
    tuner = LoggedTuner(bc.RandomTuner(space, 3), loggers)
    for outcome in (1.5, math.nan, None):
        decision = tuner.ask()
        if outcome is not None:
            tuner.tell(decision, outcome, metric=2 * outcome)
    tuner.close()


def test_wandb_is_sent_numbers_and_texts_over_the_round_of_the_tuner(wandb):
    run, memory = Run(), Memory()
    with cheap(WandbLogger(run), memory) as tuner:
        play_cheap(tuner, 5)
    assert run.axes == {"tuning/round": None, "tuning/*": "tuning/round"}
    for row, entry in zip(run.rows, memory.entries, strict=True):
        numbers = {f"tuning/{name}": value for name, value in entry.numbers().items()}
        policy = entry.decision.config["policy"]
        texts = {"tuning/reason": "RandomTuner", "tuning/config/policy": policy}
        assert row == {"tuning/round": entry.round, **numbers, **texts}
    assert not run.finished


def test_wandb_logs_to_the_active_run_and_says_so_where_none_is(wandb, caplog):
    with cheap(WandbLogger(prefix="mine")) as tuner:
        play_cheap(tuner, 2)
    (message,) = caplog.messages
    assert "wandb.init()" in message
    wandb.run = Run()
    with cheap(WandbLogger(prefix="mine")) as tuner:
        play_cheap(tuner, 2)
    assert [row["mine/round"] for row in wandb.run.rows] == [0, 1]


def test_mlflow_is_sent_numbers_at_the_step_of_their_round(mlflow):
    memory = Memory()
    with cheap(MlflowLogger("a run"), memory) as tuner:
        play_cheap(tuner, 5)
    for (step, run, metrics), entry in zip(mlflow.sent, memory.entries, strict=True):
        assert (step, run) == (entry.round, "a run")
        assert metrics == {f"tuning/{name}": value for name, value in entry.numbers().items()}


def test_nan_and_missing_values_are_left_out_and_failures_are_said(wandb, mlflow):
    run = Run()
    failing(WandbLogger(run), MlflowLogger())
    for rows in (run.rows, [metrics for _, _, metrics in mlflow.sent]):
        told, diverged, silent = rows
        assert (told["tuning/reward"], told["tuning/metric"]) == (1.5, 3.0)
        assert told["tuning/failed"] == 0.0
        assert diverged["tuning/failed"] == 1.0
        for row in (diverged, silent):
            assert not {"tuning/reward", "tuning/metric"} & row.keys()
        assert all(
            not isinstance(v, float) or math.isfinite(v) for row in rows for v in row.values()
        )


def test_names_that_mlflow_refuses_are_changed(mlflow):
    failing(MlflowLogger(prefix="a/b"), names=("weight decay", "größe[2]", "lr:head"))
    _, _, metrics = mlflow.sent[0]
    changed = {"a/b/config/weight decay", "a/b/config/gr__e_2_", "a/b/config/lr_head"}
    assert changed <= metrics.keys()


def test_a_logger_of_another_process_takes_the_run_that_is_active_there(wandb, mlflow):
    logger = WandbLogger(types.SimpleNamespace(no="pickle"), prefix="mine")
    copied = pickle.loads(pickle.dumps(logger))
    assert (copied.run, copied.prefix) == (None, "mine")
    copied = pickle.loads(pickle.dumps(MlflowLogger("a run")))
    assert (copied.run_id, copied.prefix) == ("a run", "tuning")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the library's own
def test_weights_and_biases_takes_it_offline(tmp_path, monkeypatch):
    library = pytest.importorskip("wandb", reason="needs the extra botorch_costly[wandb]")
    monkeypatch.chdir(tmp_path)
    memory = Memory()
    run = library.init(mode="offline", dir=tmp_path, settings=library.Settings(silent=True))
    run.log({"train_loss": 0.1})  # the user's own, over W&B's step
    with cheap(WandbLogger(), memory) as tuner:
        play_cheap(tuner, 6)
    run.log({"train_loss": 0.05})
    expected = {"tuning/round": 5, "train_loss": 0.05, "tuning/reason": "RandomTuner"}
    for entry in memory.entries:
        expected |= {f"tuning/{name}": value for name, value in entry.numbers().items()}
    try:
        assert {name: run.summary[name] for name in expected} == expected
    finally:
        run.finish()
    assert len(list(tmp_path.glob("wandb/offline-run-*/*.wandb"))) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the library's own
def test_mlflow_reads_back_what_was_logged(store):
    library, client = store
    memory = Memory()
    run = library.start_run().info.run_id
    library.end_run()
    with cheap(MlflowLogger(run), memory) as tuner:
        play_cheap(tuner, 6)
    failing(MlflowLogger(run, prefix="second"), names=("größe[2]",))
    assert library.active_run() is None
    for name in {name for entry in memory.entries for name in entry.numbers()}:
        sent = [(e.round, e.numbers()[name]) for e in memory.entries if name in e.numbers()]
        assert history(client, run, f"tuning/{name}") == sent
    assert client.get_metric_history(run, "second/config/gr__e_2_")
