"""A real trainer of Transformers goes back with its twins: states, batches, checkpoints, and its end."""

import pytest
import torch

from botorch_costly.errors import StateMismatchError
from botorch_costly.integrations import Rewindable, RoundLength
from botorch_costly.integrations.loggers import LoggedTuner
from tests.cases import quick
from tests.integrations import twins
from tests.integrations.launching import launched
from tests.integrations.loggers.playing import Memory
from tests.integrations.twins import BATCH, HORIZON, STEPS

pytest.importorskip("transformers", reason="needs the extra botorch_costly[transformers]")
pytest.importorskip("accelerate", reason="needs the extra botorch_costly[transformers]")
from botorch_costly.integrations.transformers import TunerCallback
from tests.integrations import transformers_twins_program as program
from tests.integrations.transformers_twins_program import Watch, train, weights_of

pytestmark = pytest.mark.filterwarnings("ignore")  # Transformers' own, on small machines


def tuner(horizon=HORIZON):
    return twins.tuner(horizon, space=twins.FACTOR)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never stopped, with checkpoints every 5 steps, also at the end of an epoch of 10."""
    folder, tuned = tmp_path_factory.mktemp("whole"), tuner()
    saves = {"save_strategy": "steps", "save_steps": 5}
    return train(folder, tuned, **saves), tuned, folder


def test_twins_start_from_one_state_on_the_same_batches(whole):
    (callback, journal, trainer), tuned, _ = whole
    assert len(journal.batches) == HORIZON * STEPS
    assert journal.check(tuned.decisions) == callback.driver.restores >= 3
    counted = HORIZON * STEPS - STEPS * tuned.given_back
    assert trainer.lr_scheduler.last_epoch == counted  # of the trainer's own linear schedule
    assert trainer.state.global_step == HORIZON * STEPS
    assert trainer.args.ignore_data_skip is False  # given back


@pytest.mark.parametrize("step", quick([15, 20, 45, 50, 80], 15, 50))
def test_a_resumed_run_goes_on_identically(whole, step, tmp_path, warned):
    (_, journal, trainer), tuned, folder = whole
    again = tuner()
    _, resumed, other = train(tmp_path, again, resumed=folder / f"checkpoint-{step}")
    assert again.decisions == tuned.decisions
    assert resumed.batches == journal.batches[step:]
    assert weights_of(other) == weights_of(trainer)
    assert warned() == []


@pytest.mark.slow
def test_two_ranks_go_back_together(tmp_path):
    first, second = launched("transformers_twins_program.py", tmp_path, "twins")
    for case in ("whole", "resumed"):
        assert first[case]["weights"] == second[case]["weights"]
        assert first[case]["restores"] == second[case]["restores"] > 0
        assert second[case]["decisions"] == []
    assert first["resumed"]["decisions"] == first["whole"]["decisions"]
    assert first["resumed"]["weights"] == first["whole"]["weights"]
    for rank in (first, second):
        assert rank["resumed"]["batches"] == rank["whole"]["batches"][25:]


@pytest.mark.parametrize("end", twins.ENDS)
def test_a_run_that_ends_early_hands_over_the_incumbent(end, tmp_path):
    steps, stop, how = twins.ENDS[end]
    tuned = tuner()
    callback, journal, trainer = train(tmp_path, tuned, Watch(stop, how), max_steps=steps)
    assert tuned.is_settled
    assert tuned.incumbent != dict(tuned.decisions[-1].peak)  # a trial was running
    assert callback.config == tuned.incumbent
    ends = [
        [leaf.flatten().tolist() for leaf in state if isinstance(leaf, torch.Tensor)][:4]
        for state in journal.after
    ]
    # The state after the last step of the incumbent, the best rate so far.
    last = max(one.round for one in tuned.decisions if one.peak == tuned.incumbent)
    assert ends.index(weights_of(trainer)) == (last + 1) * STEPS - 1


def test_the_best_model_that_the_trainer_loads_stands(tmp_path):
    best = {"load_best_model_at_end": True, "metric_for_best_model": "eval_loss"}
    saves = {"save_strategy": "steps", "save_steps": 6, "eval_strategy": "steps", "eval_steps": 6}
    tuned = tuner()
    _, journal, trainer = train(tmp_path, tuned, max_steps=20, **best, **saves)
    step = int(trainer.state.best_model_checkpoint.rpartition("-")[2])
    state = journal.after[step - 1]
    expected = [leaf.flatten().tolist() for leaf in state if isinstance(leaf, torch.Tensor)]
    assert weights_of(trainer) == expected[:4]


def test_without_the_trainer_twins_see_other_batches_and_a_warning_says_so(tmp_path, warned):
    tuned = tuner()
    callback, _, _ = train(tmp_path, tuned, wraps=False)
    (line,) = warned()
    assert "twins see other batches" in line
    assert callback.driver.restores >= 3


def test_a_loader_that_the_user_has_wrapped_is_used(tmp_path, warned):
    class Own(program.Trainer):
        def get_train_dataloader(self):
            return Rewindable(super().get_train_dataloader())

    tuned = tuner()
    plain = program.trainer_of(tmp_path, Watch())
    callback = TunerCallback(tuned, length=RoundLength(steps=STEPS))
    trainer = Own(
        plain.model,
        plain.args,
        train_dataset=program.data(),
        eval_dataset=program.data(),
        callbacks=[Watch(), callback],
    )
    trainer.train()
    assert trainer.model.journal.check(tuned.decisions) >= 3
    assert warned() == []


def test_accumulated_gradients_end_with_a_round(tmp_path):
    tuned = tuner()
    options = {"gradient_accumulation_steps": 2, "per_device_train_batch_size": BATCH // 2}
    _, journal, trainer = train(tmp_path, tuned, **options)
    assert trainer.state.global_step == HORIZON * STEPS
    assert journal.check(tuned.decisions) >= 3  # of the first batch of each step


def test_in_rounds_of_epochs_too(tmp_path, warned):
    tuned = tuner(20)
    options = {"length": RoundLength(epochs=1), "max_steps": -1, "num_train_epochs": 20}
    _, journal, _ = train(tmp_path, tuned, **options)
    assert journal.check(tuned.decisions, 10) >= 1
    assert warned() == []


def test_each_round_is_logged(tmp_path):
    memory, tuned = Memory(), tuner()
    train(tmp_path, LoggedTuner(tuned, memory))
    assert [entry.round for entry in memory.entries] == list(range(HORIZON))
    assert not tuned.diagnose().by_hand


def test_a_run_with_other_parts_is_refused(whole, tmp_path):
    with pytest.raises(StateMismatchError, match="parts"):
        train(tmp_path, tuner(), resumed=whole[2] / "checkpoint-25", wraps=False)
