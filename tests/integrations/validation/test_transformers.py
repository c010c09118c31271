"""A trainer of Transformers evaluates when a reading is worth its price, and trains as without it."""

import math

import pytest
import torch
from torch.utils.data import IterableDataset

from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from tests.integrations.validation.readings import readings, validation

pytest.importorskip("transformers", reason="needs the extra botorch_costly[transformers]")
pytest.importorskip("accelerate", reason="needs the extra botorch_costly[transformers]")
from transformers import Trainer, TrainerCallback, TrainingArguments

from botorch_costly.integrations.validation.transformers import STATE_FILE, ValidationCallback
from tests.integrations import transformers_program as program
from tests.rewards.guarding import Weights

pytestmark = pytest.mark.filterwarnings("ignore")  # Transformers' own, on small machines
STEPS = 24


class Scored(Trainer):
    """Evaluations return the values of a list in place of the loss; none for None."""

    values = None

    def evaluate(self, *arguments, **options):
        self.evaluations = getattr(self, "evaluations", 0) + 1
        return super().evaluate(*arguments, **options)

    def evaluation_loop(self, *arguments, **options):
        output = super().evaluation_loop(*arguments, **options)
        if self.values:
            value = self.values.pop(0)
            output.metrics.pop("eval_loss")
            output.metrics.update({} if value is None else {"eval_loss": value})
        return output


def train(folder, *callbacks, data=None, values=None, resume=None, **options):
    """Train; return the trainer."""
    torch.manual_seed(0)
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True}
    plain = {"max_steps": STEPS, "per_device_train_batch_size": 16, "save_strategy": "no"}
    plain |= {"logging_steps": 1, "learning_rate": 3e-3}
    trainer = Scored(
        program.network(),
        TrainingArguments(output_dir=str(folder), **{**quiet, **plain, **options}),
        train_dataset=program.data("train") if data is None else data,
        eval_dataset=program.data("val"),
        callbacks=list(callbacks),
    )
    trainer.values = values
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def weights(trainer):
    return torch.cat([weight.detach().flatten() for weight in trainer.model.parameters()])


def callback(overhead=0.3, **options):
    return ValidationCallback(validation(overhead), **options)


def test_training_is_the_same_with_any_number_of_readings(tmp_path):
    plain = train(tmp_path)
    drawn, counts = torch.rand(3), set()
    for overhead in (0.1, 1.0):
        ours = callback(overhead)
        trainer = train(tmp_path, ours)
        assert torch.equal(torch.rand(3), drawn)
        assert torch.equal(weights(trainer), weights(plain))
        counts.add(ours.validation.readings)
    assert len(counts) == 2


@pytest.mark.parametrize("strategy", ["no", "steps", "epoch"])
def test_the_trainer_evaluates_when_the_validation_says_so(tmp_path, strategy):
    ours = callback()
    trainer = train(tmp_path, ours, eval_strategy=strategy)
    history = trainer.state.log_history
    losses = {log["step"]: log["loss"] for log in history if "loss" in log}
    evaluated = {log["step"]: log["eval_loss"] for log in history if "eval_loss" in log}
    asked = validation()
    asked.expect(STEPS)
    asked.start()
    for step in range(1, STEPS + 1):  # the loss of a step is logged after it
        if asked.due(step, train_loss=losses.get(step - 1), last=step == STEPS):
            asked.tell(evaluated[step])
    assert readings(ours.validation) == readings(asked)
    assert list(evaluated) == [step for step, _ in readings(asked)]
    assert trainer.evaluations == len(evaluated)
    assert list(evaluated)[-1] == STEPS


class Stop(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop |= state.global_step == 11


def test_a_run_that_a_callback_cuts_short_is_read_at_its_end(tmp_path):
    ours = callback()
    trainer = train(tmp_path, ours, Stop())
    assert trainer.state.global_step == 11
    assert readings(ours.validation)[-1][0] == 11


class Unsized(IterableDataset):
    def __iter__(self):
        return iter(program.data("train"))


def test_data_without_a_length_and_without_logged_losses(tmp_path):
    ours = callback()
    train(tmp_path, ours, data=Unsized(), logging_strategy="no")
    assert readings(ours.validation)[-1][0] == STEPS
    assert math.isnan(ours.validation.state_dict()["training"]["level"])


@pytest.mark.parametrize("values", [[math.nan, 0.9], [0.9, math.nan]])
def test_a_metric_that_is_not_finite_is_a_failed_reading(tmp_path, values):
    ours = callback(1.0)
    train(tmp_path, ours, values=values)
    summary = ours.validation.counts
    assert (summary["failed"], summary["readings"] > 2) == (1, True)


def test_an_evaluation_without_the_metric_is_refused_at_first_and_fails_later(tmp_path):
    with pytest.raises(InvalidArgumentError, match="eval_runtime"):
        train(tmp_path, callback(), values=[None])
    ours = callback(1.0, guard=True)
    train(tmp_path, ours, values=[0.9, None, *30 * [0.9]])
    assert ours.validation.counts["failed"] == 1
    assert ours.run.restores == 0


def test_the_best_checkpoint_is_saved_if_asked(tmp_path):
    ours = callback(1.0, save_best=True)
    train(tmp_path, ours, values=[0.9, 0.5, *20 * [0.7]])
    saved = {int(path.name.split("-")[1]) for path in tmp_path.glob("checkpoint-*")}
    steps = [step for step, _ in readings(ours.validation)]
    assert saved == set(steps[:2])
    assert ours.validation.best.step == steps[1]


def test_the_trainer_stops_when_the_validation_does(tmp_path):
    flat = validation(1.0, steps=200, false_stop=0.2, min_delta=0.05)
    trainer = train(tmp_path, ValidationCallback(flat), values=200 * [0.5], max_steps=200)
    assert trainer.state.global_step < 200
    assert readings(flat)[-1][0] == trainer.state.global_step


@pytest.mark.parametrize("guard", [True, False])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, guard):
    whole = callback(guard=guard)
    trainer = train(tmp_path / "whole", whole, save_strategy="steps", save_steps=4)
    for step in (4, 12):
        resumed, folder = callback(guard=guard), tmp_path / "whole" / f"checkpoint-{step}"
        ours = train(tmp_path / "again", resumed_from(resumed, folder), resume=str(folder))
        assert readings(resumed.validation) == readings(whole.validation)
        assert torch.equal(weights(ours), weights(trainer))


def resumed_from(ours, folder):
    ours._resume_from = folder
    return ours


def test_a_resumed_run_with_other_options_is_refused_and_one_without_a_state_is_not(tmp_path, said):
    train(tmp_path, callback(), save_strategy="steps", save_steps=12)
    with pytest.raises(StateMismatchError, match="overhead"):
        train(tmp_path, callback(0.5), resume=str(tmp_path / "checkpoint-12"))
    (tmp_path / "checkpoint-12" / STATE_FILE).unlink()
    ours = callback()
    train(tmp_path, ours, resume=str(tmp_path / "checkpoint-12"))
    assert readings(ours.validation)[0][0] > 12
    assert sum("begins anew" in line for line in said()) == 1


class Spike(TrainerCallback):
    """Breaks the weights once."""

    def __init__(self, step, value):
        self.step, self.value = step, value

    def on_step_begin(self, args, state, control, model=None, **kwargs):
        if state.global_step == self.step:
            with torch.no_grad():
                for weight in model.parameters():
                    weight.mul_(self.value)


@pytest.mark.parametrize("value", [math.nan, -5.0])
def test_a_broken_run_goes_back_to_its_good_state(tmp_path, value, said):
    ours = callback(guard=True)
    trainer = train(tmp_path, ours, Spike(12, value))
    assert ours.run.restores == 1
    assert torch.isfinite(weights(trainer)).all()
    assert trainer.lr_scheduler.last_epoch == STEPS
    assert all(v < 5 for _, v in readings(ours.validation))
    assert sum("goes on from its state of step" in line for line in said()) == 1


def test_the_scaler_and_further_parts_go_back_with_the_network(tmp_path, monkeypatch):
    counter, scaler = Weights(0.0), Weights(0.0)

    class Count(TrainerCallback):
        def on_step_end(self, *arguments, **kwargs):
            counter.tensor.add_(1.0)
            scaler.tensor.add_(1.0)

    monkeypatch.setattr(
        "botorch_costly.integrations.validation.transformers.optimizer_and_scaler",
        lambda optimizer: (optimizer.optimizer, (scaler,)),
    )
    ours = callback(guard=True, parts=[counter])
    train(tmp_path, Count(), ours, Spike(12, math.nan))
    assert ours.run.restores == 1
    assert counter.tensor.item() == scaler.tensor.item() < STEPS


def test_a_second_training_begins_anew(tmp_path):
    ours = callback()
    train(tmp_path, ours)
    first = readings(ours.validation)
    train(tmp_path, ours)
    assert readings(ours.validation) == first


def test_what_does_not_fit_is_refused():
    with pytest.raises(InvalidArgumentError, match="save_best"):
        callback(save_best="yes")
    with pytest.raises(InvalidArgumentError, match="device"):
        callback(guard=True, device="abacus")


@pytest.mark.parametrize(
    ("saves", "options", "warns"),
    [
        ("steps", {}, True),
        ("steps", {"save_best": True}, False),
        ("best", {}, False),
    ],
)
def test_a_best_model_of_which_there_is_no_checkpoint_earns_a_warning(
    tmp_path, saves, options, warns, caplog
):
    best = {"load_best_model_at_end": True, "eval_strategy": "steps", "eval_steps": 5}
    trainer = train(tmp_path, callback(**options), save_strategy=saves, save_steps=5, **best)
    lines = [line for line in caplog.messages if "load_best_model_at_end" in line]
    assert len(lines) == warns
    assert all("or save_best=True" in line for line in lines)
    if not warns:
        step = trainer.state.best_model_checkpoint.rpartition("-")[2]
        assert int(step) == trainer.state.best_global_step
