"""The kind: what a trainer of Transformers does as it comes, or when it trains again, beside a tuner."""

import logging

import pytest
from torch.utils.data import IterableDataset

import botorch_costly as bc
from botorch_costly.errors import HorizonExceededError, InvalidArgumentError
from botorch_costly.integrations import RoundLength

pytest.importorskip("transformers", reason="needs the extra botorch_costly[transformers]")
pytest.importorskip("accelerate", reason="needs the extra botorch_costly[transformers]")
from transformers import Trainer, TrainerCallback, TrainingArguments

from botorch_costly.integrations.loggers import LoggedTuner
from botorch_costly.integrations.transformers import TunerCallback
from tests.integrations import transformers_program as program
from tests.integrations.loggers.playing import Memory

pytestmark = pytest.mark.filterwarnings("ignore")  # Transformers' own, on small machines
OURS = "botorch_costly"
STEPS = RoundLength(steps=3)


def tuner(horizon=4, space=program.SPACE, start=program.START):
    options = {"query": bc.AlwaysQuery(), "hold": bc.Hold(share=0.0), "design": bc.Design(rounds=1)}
    return bc.OnlineTuner(space, horizon, start=start, **options)


def trainer_of(folder, *callbacks, train=None, **options):
    """A trainer with the arguments that it comes with, but for what a small machine wants."""
    quiet = {"logging_strategy": "no", "report_to": [], "disable_tqdm": True, "use_cpu": True}
    plain = {"max_steps": 12, "per_device_train_batch_size": 16, "save_strategy": "no"}
    return Trainer(
        program.network(),
        TrainingArguments(output_dir=str(folder), **{**quiet, **plain, **options}),
        train_dataset=program.data("train") if train is None else train,
        eval_dataset=program.data("val"),
        callbacks=list(callbacks),
    )


def rounds(callback):
    return [one.round for one in callback.driver.tuner.observations]


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, OURS)
    return lambda: [one.getMessage() for one in caplog.records if one.name.startswith(OURS)]


class Unsized(IterableDataset):
    def __iter__(self):
        return iter(program.data("train") * 5)


def test_data_without_a_length_have_rounds_of_steps(tmp_path, said):
    callback = TunerCallback(tuner(), length=STEPS)
    trainer_of(tmp_path, callback, train=Unsized()).train()
    assert rounds(callback) == [0, 1, 2, 3]
    assert said() == []
    with pytest.raises(InvalidArgumentError, match="steps or seconds"):
        trainer_of(tmp_path, TunerCallback(tuner()), train=Unsized()).train()


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_biases_and_norms_have_no_decay_whatever_the_arguments_say(tmp_path, decay):
    callback = TunerCallback(tuner(), length=STEPS)
    trainer = trainer_of(tmp_path, callback, weight_decay=decay)
    trainer.train()
    decays = [group["weight_decay"] for group in trainer.optimizer.param_groups]
    assert decays == [callback.config["weight_decay"], 0.0]
    assert decays[0] > 0


def test_a_range_of_rates_is_refused_at_the_door():
    space = bc.SearchSpace({"lr": bc.Real(1e-5, 1e-1, log=True)})
    with pytest.raises(InvalidArgumentError, match="multiplies the scheduler's rate"):
        TunerCallback(bc.OnlineTuner(space, 4, start={"lr": 1e-3}))


def test_a_round_that_is_longer_than_the_run_is_told(tmp_path, said):
    trainer_of(tmp_path, TunerCallback(tuner())).train()
    (line,) = said()
    assert "ends before its first round" in line


def test_steps_at_the_end_that_no_query_has_seen_are_said(tmp_path, said):
    """The kind: training that no query has seen, when nothing comes after it."""
    trainer_of(tmp_path, TunerCallback(tuner(3), length=RoundLength(steps=5))).train()
    assert ["last steps (2)" in one for one in said()] == [True]


@pytest.mark.parametrize("accumulated", [1, 4])
def test_rounds_of_epochs_that_fit_are_not_told(tmp_path, said, accumulated):
    callback = TunerCallback(tuner(2))
    options = {"max_steps": -1, "num_train_epochs": 2, "gradient_accumulation_steps": accumulated}
    trainer_of(tmp_path, callback, **options).train()
    assert rounds(callback) == [0, 1]
    assert said() == []


def test_a_trainer_that_trains_again(tmp_path, said):
    callback = TunerCallback(tuner(8), length=STEPS)
    trainer = trainer_of(tmp_path, callback)
    trainer.evaluate()
    trainer.train()
    trainer.train()
    rewards = [one.reward is None for one in callback.driver.tuner.observations]
    assert rewards == [True, *3 * [False], True, *3 * [False]]
    assert len(said()) == 2
    with pytest.raises(HorizonExceededError, match="all 8 rounds played"):
        trainer.train()


def test_each_round_of_each_run_is_logged(tmp_path):
    """The kind: the last round, which no other one follows, lost on its way to a log."""
    memory = Memory()
    trainer = trainer_of(tmp_path, TunerCallback(LoggedTuner(tuner(8), memory), length=STEPS))
    for run in (1, 2):
        trainer.train()
        assert [entry.round for entry in memory.entries] == list(range(4 * run))


class Interrupt(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 5:
            raise KeyboardInterrupt


def test_an_interrupted_run_is_begun_again(tmp_path):
    callback, interrupt = TunerCallback(tuner(6), length=STEPS), Interrupt()
    trainer = trainer_of(tmp_path, callback, interrupt)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    trainer.remove_callback(interrupt)
    trainer.train()
    assert rounds(callback) == [0, 2, 3, 4, 5]


def test_two_tuners_are_refused(tmp_path):
    callbacks = [TunerCallback(tuner(), length=STEPS) for _ in range(2)]
    with pytest.raises(InvalidArgumentError, match="one that decides when to evaluate"):
        trainer_of(tmp_path, *callbacks).train()


class Watch(TrainerCallback):
    def on_step_begin(self, args, state, control, optimizer=None, model=None, **kwargs):
        self.multipliers = [group["lr_multiplier"] for group in optimizer.param_groups]
        self.dropout = model.transformer.drop.p


def test_a_resume_past_the_horizon_has_what_the_incumbent_says(tmp_path):
    saves = {"save_strategy": "steps", "save_steps": 8}
    whole = trainer_of(tmp_path, TunerCallback(tuner(2), length=STEPS), **saves)
    whole.train()
    callback, watch = TunerCallback(tuner(2), length=STEPS), Watch()
    resumed = trainer_of(tmp_path, callback, watch)
    assert resumed.model.transformer.drop.p == 0.1
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-8"))
    best = callback.driver.tuner.best()
    assert callback.config == best
    assert watch.dropout == whole.model.transformer.drop.p == best["dropout"]
    assert watch.multipliers == 2 * [best["lr"]]
    longer = TunerCallback(tuner(4), length=STEPS, changed=["horizon"])
    trainer_of(tmp_path, longer, max_steps=18).train(
        resume_from_checkpoint=str(tmp_path / "checkpoint-8")
    )
    assert rounds(longer) == [0, 1, 2, 3]


def test_a_dropout_of_a_compiled_network_is_told(tmp_path, said):
    options = {"torch_compile": True, "torch_compile_backend": "eager", "max_steps": 1}
    trainer_of(tmp_path, TunerCallback(tuner(), length=RoundLength(seconds=9)), **options).train()
    assert sum("compiled" in line for line in said()) == 1


BEST = {"load_best_model_at_end": True, "eval_strategy": "steps", "eval_steps": 5}


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ({**BEST, "save_strategy": "steps", "save_steps": 5}, True),
        ({**BEST, "save_strategy": "steps", "save_steps": 3, "eval_steps": 3}, False),
        ({**BEST, "save_strategy": "epoch", "eval_strategy": "epoch"}, True),  # rounds have steps
        ({**BEST, "save_strategy": "best"}, False),
        ({"save_strategy": "steps", "save_steps": 5}, False),
    ],
)
def test_a_best_model_of_which_there_is_no_checkpoint_earns_a_warning(
    tmp_path, said, options, warns
):
    trainer = trainer_of(tmp_path, TunerCallback(tuner(), length=STEPS), **options)
    trainer.train()
    lines = [line for line in said() if "load_best_model_at_end" in line]
    assert len(lines) == warns
    assert all("save_strategy='best'" in line for line in lines)
    if options.get("load_best_model_at_end") and not warns:
        best = trainer.state.best_model_checkpoint
        assert best.endswith(f"checkpoint-{trainer.state.best_global_step}")


def test_rounds_of_epochs_have_checkpoints_of_epochs(tmp_path, said):
    epochs = {"save_strategy": "epoch", "eval_strategy": "epoch", "max_steps": -1}
    options = {**BEST, **epochs, "num_train_epochs": 4}
    trainer_of(tmp_path, TunerCallback(tuner()), **options).train()
    assert said() == []
