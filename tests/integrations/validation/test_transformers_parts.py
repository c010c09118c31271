"""A trainer of Transformers reads as many batches as are worth it, in a fixed random order."""

import logging
import math

import pytest
import torch
from torch.utils.data import IterableDataset

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from tests.integrations.validation.readings import readings, validation

pytest.importorskip("transformers", reason="needs the extra botorch_costly[transformers]")
pytest.importorskip("accelerate", reason="needs the extra botorch_costly[transformers]")
from transformers import Trainer, TrainerCallback, TrainingArguments

from botorch_costly.integrations.transformers import TunerCallback
from botorch_costly.integrations.validation.transformers import ValidationCallback
from tests.integrations import transformers_program as program
from tests.integrations.validation.test_transformers import Spike, train, weights

pytestmark = pytest.mark.filterwarnings("ignore")  # Transformers' own, on small machines
STEPS, COUNT = 24, 150
VAL = [{**row, "number": k} for k, row in enumerate(program.data("train")[:COUNT])]


class Numbered(Trainer):
    """Losses of examples in evaluation are a function of the step and the example."""

    size, form = 1, "losses"

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        numbers = inputs.pop("number")
        self.read[-1] += numbers.tolist()
        if self.form == "own":
            return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        loss = losses_at(self.state.global_step)[numbers].mean()
        return (None if self.form == "none" else loss), None, None

    def evaluation_loop(self, dataloader, *arguments, **options):
        self.read = [*getattr(self, "read", []), []]
        return super().evaluation_loop(dataloader, *arguments, **options)


def losses_at(step):
    base = torch.randn(COUNT, generator=torch.Generator().manual_seed(3)).exp()
    own = torch.randn(COUNT, generator=torch.Generator().manual_seed(step))
    return base * (0.5 + abs(step - 15) / 30) + 0.03 * own


def trainer_of(folder, *, size=1, form="losses", eval_dataset=None, kind=Numbered, **options):
    torch.manual_seed(0)
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True}
    plain = {"max_steps": STEPS, "per_device_train_batch_size": 16, "save_strategy": "no"}
    plain |= {"logging_steps": 1, "learning_rate": 3e-3, "per_device_eval_batch_size": size}
    plain |= {"remove_unused_columns": False}
    metrics = options.pop("compute_metrics", None)
    trainer = kind(
        program.network(),
        TrainingArguments(output_dir=str(folder), **{**quiet, **plain, **options}),
        train_dataset=program.data("train"),
        eval_dataset=VAL if eval_dataset is None else eval_dataset,
        compute_metrics=metrics,
    )
    trainer.form = form
    return trainer


def run(folder, *others, examples=COUNT, overhead=1.0, resume=None, given=None, **options):
    """Train; return the trainer and our callback."""
    trainer = trainer_of(folder, **options)
    given = {"monitor": "eval_loss", **(given or {})}
    ours = ValidationCallback(validation(overhead, examples=examples), trainer=trainer, **given)
    for one in (*others, ours):
        trainer.add_callback(one)
    trainer.train(resume_from_checkpoint=resume)
    return trainer, ours


def logged(trainer, name):
    return {log["step"]: log[name] for log in trainer.state.log_history if name in log}


@pytest.mark.parametrize("workers", [0, 2])
def test_readings_are_those_of_a_loop(tmp_path, workers):
    trainer, ours = run(tmp_path, dataloader_num_workers=workers)
    losses = logged(trainer, "loss")
    asked = validation(1.0, examples=COUNT)
    asked.expect(STEPS)
    asked.start()
    for step in range(1, STEPS + 1):
        if asked.due(step, train_loss=losses.get(step - 1), last=step == STEPS):
            while asked.examples:
                asked.tell(losses_at(step)[asked.examples])
    assert readings(ours.validation) == readings(asked)
    assert readings(asked)[-1][0] == STEPS
    assert asked.counts["saved"] > 0.1
    assert list(logged(trainer, "eval_loss")) == [step for step, _ in readings(asked)]
    longest = max(trainer.read, key=len)
    assert all(read == longest[: len(read)] for read in trainer.read)
    needed = asked.counts["examples"]
    assert needed <= sum(map(len, trainer.read)) <= needed + len(trainer.read)
    assert longest != sorted(longest)


def test_means_of_batches_are_drawn(tmp_path):
    trainer, ours = run(tmp_path, size=2, examples=75)
    assert ours.validation.counts["saved"] > 0
    counts = ours.validation.counts
    assert 2 * counts["examples"] <= sum(map(len, trainer.read)) <= 2 * counts["examples"] + 48


def test_training_is_the_same_with_partial_readings(tmp_path):
    plain = trainer_of(tmp_path)
    plain.train()
    drawn = torch.rand(3)
    for overhead in (0.2, 1.0):
        trainer, _ = run(tmp_path, overhead=overhead, form="own")
        assert torch.equal(torch.rand(3), drawn)
        assert torch.equal(weights(trainer), weights(plain))


def test_training_is_the_same_when_steps_are_accumulated(tmp_path):
    options = {"gradient_accumulation_steps": 3, "max_steps": 8}
    plain = trainer_of(tmp_path, **options)
    plain.train()
    trainer, _ = run(tmp_path, form="own", **options)
    assert torch.equal(weights(trainer), weights(plain))


def test_the_trainer_keeps_the_best_checkpoint_by_the_estimates(tmp_path):
    options = {"metric_for_best_model": "eval_loss", "greater_is_better": False}
    trainer, ours = run(
        tmp_path, given={"save_best": True}, save_strategy="steps", save_steps=99, **options
    )
    best = ours.validation.best.step
    assert trainer.state.best_model_checkpoint.endswith(f"checkpoint-{best}")
    shown = logged(trainer, "eval_loss")
    assert min(shown, key=shown.get) == best
    assert list(shown.values()) == pytest.approx(
        [value for _, value in readings(ours.validation)], abs=0.02
    )


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path):
    saving = {"save_strategy": "steps", "save_steps": 6, "given": {"guard": True, "margin": 9.0}}
    trainer, whole = run(tmp_path / "whole", **saving)
    folder = tmp_path / "whole" / "checkpoint-12"
    saving["given"]["resume_from"] = folder
    again, resumed = run(tmp_path / "again", resume=str(folder), **saving)
    assert readings(resumed.validation) == readings(whole.validation)
    assert torch.equal(weights(again), weights(trainer))
    assert resumed.run.state_dict()["level"] == whole.run.state_dict()["level"]


def test_a_broken_run_goes_back_after_a_partial_reading(tmp_path):
    trainer, ours = run(tmp_path, Spike(12, math.nan), form="own", given={"guard": True})
    assert ours.run.restores == 1
    assert torch.isfinite(weights(trainer)).all()
    assert min(map(len, trainer.read)) < COUNT


def test_evaluations_of_others_are_whole_and_the_trainer_is_given_back(tmp_path):
    trainer, ours = run(tmp_path)
    assert "evaluation_loop" not in vars(trainer)
    assert "prediction_step" not in vars(trainer)
    count = ours.validation.readings
    assert trainer.evaluate()["eval_loss"] == pytest.approx(losses_at(STEPS).mean().item())
    assert trainer.read[-1] == list(range(COUNT))
    assert ours.validation.readings == count


class Whole(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        control.should_evaluate |= state.global_step % 2 == 0


def test_an_evaluation_that_is_not_ours_is_whole_and_no_reading(tmp_path):
    trainer = trainer_of(tmp_path)
    ours = ValidationCallback(validation(0.2, examples=COUNT), trainer=trainer)
    for one in (ours, Whole()):
        trainer.add_callback(one)
    trainer.train()
    read = {step for step, _ in readings(ours.validation)}
    steps = list(logged(trainer, "eval_loss"))
    assert set(steps) > read
    for step, numbers in zip(steps, trainer.read, strict=True):
        assert step in read or len(numbers) == COUNT


def test_a_training_after_one_that_failed(tmp_path):
    class Stop(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 5:
                raise KeyboardInterrupt

    trainer = trainer_of(tmp_path)
    ours, stop = ValidationCallback(validation(1.0, examples=COUNT), trainer=trainer), Stop()
    trainer.add_callback(ours)
    trainer.add_callback(stop)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    trainer.remove_callback(stop)
    trainer.train()
    _, expected = run(tmp_path)
    assert readings(ours.validation)[:3] == readings(expected.validation)[:3]
    assert "evaluation_loop" not in vars(trainer)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(VAL)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"compute_metrics": lambda prediction: {}}, "compute_metrics"),
        ({"given": {"monitor": "eval_accuracy"}}, "monitor: Expected eval_loss"),
        ({"eval_dataset": {"a": VAL, "b": VAL}}, "one data set"),
        ({"eval_dataset": Stream()}, "indices"),
        ({"examples": 77}, "Expected 150, the number of batches"),
        ({"size": 4}, "Expected 38, the number of batches"),
    ],
)
def test_evaluations_that_must_be_whole_are_refused(tmp_path, options, expected):
    with pytest.raises(InvalidArgumentError, match=expected):
        run(tmp_path, **options)


def test_an_evaluation_without_a_loss_and_one_without_the_trainer_are_refused(tmp_path):
    with pytest.raises(InvalidShapeError, match="the mean loss of the batch"):
        run(tmp_path, form="none", size=2, examples=75)
    with pytest.raises(InvalidArgumentError, match="trainer: Expected the trainer"):
        ValidationCallback(validation(examples=COUNT))


# -- one callback, the end of a run, and its log ---------------------------------------------------


def test_two_callbacks_that_decide_are_refused(tmp_path):
    second, tuner = ValidationCallback(validation()), TunerCallback(program.tuner())
    for others in ([second], [tuner], [tuner, second]):
        with pytest.raises(InvalidArgumentError, match="one that decides when to evaluate"):
            train(tmp_path, ValidationCallback(validation()), *others)
    with pytest.raises(InvalidArgumentError, match="one that decides when to evaluate"):
        train(tmp_path, tuner, TunerCallback(program.tuner()))


def test_the_last_step_is_the_one_of_the_trainer_unless_it_is_named(tmp_path):
    ours = ValidationCallback(validation())
    train(tmp_path, ours)
    assert ours.validation.steps == STEPS
    train(tmp_path, ours, max_steps=11)
    assert ours.validation.steps == 11
    ours = ValidationCallback(validation(steps=9))
    train(tmp_path, ours, max_steps=11)
    assert ours.validation.steps == 9


def test_a_run_of_another_length_is_resumed_without_a_word(tmp_path):
    train(tmp_path, ValidationCallback(validation()), save_strategy="steps", save_steps=12)
    ours = ValidationCallback(validation())
    train(tmp_path, ours, resume=str(tmp_path / "checkpoint-12"), max_steps=30)
    assert ours.validation.steps == 30
    assert readings(ours.validation)[-1][0] == 30


class Tracker(TrainerCallback):
    """Notes what the trainer logs."""

    def __init__(self):
        self.logs = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.logs.append({"at": state.global_step, **logs})


def test_the_log_and_the_trackers_say_how_much_was_saved(tmp_path, caplog):
    caplog.set_level(logging.INFO, "botorch_costly")
    tracker = Tracker()
    _, ours = run(tmp_path, tracker)
    said = [one.getMessage() for one in caplog.records if "validation" in one.name]
    assert said == [f"Validation: {ours.validation.summary()}."]
    rows = [log for log in tracker.logs if "validation/readings" in log]
    assert [row["at"] for row in rows] == [step for step, _ in ours.validation.history]
    counts, best = ours.validation.counts, ours.validation.best
    last = {name: rows[-1][f"validation/{name}"] for name in ("readings", "saved", "best_step")}
    assert last == {
        "readings": counts["readings"],
        "saved": counts["saved"],
        "best_step": best.step,
    }
    assert 0 < rows[-1]["validation/share"] < 1
