"""A real trainer of Lightning goes back with its twins: states, batches, checkpoints, and its end."""

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, RestoreError, StateMismatchError
from botorch_costly.integrations import Rewindable, RoundLength
from botorch_costly.integrations.loggers import LoggedTuner
from tests.cases import quick
from tests.integrations import twins
from tests.integrations.launching import launched
from tests.integrations.loggers.playing import Memory
from tests.integrations.twins import BATCH, HORIZON, STEPS

pytest.importorskip("lightning.pytorch", reason="needs the extra botorch_costly[lightning]")
from lightning.pytorch.callbacks import EarlyStopping, LearningRateFinder

from tests.integrations import twins_program as program
from tests.integrations.twins_program import Watch, fit, loaders, saving, weights_of

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own, on small machines


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A fit that was never stopped, with checkpoints every 5 steps, also at the end of an epoch of 10."""
    folder, tuner = tmp_path_factory.mktemp("whole"), twins.tuner()
    return fit(tuner, saving(folder, 5), enable_checkpointing=True), tuner, folder


def test_twins_start_from_one_state_on_the_same_batches(whole, warned):
    (callback, journal, _), tuner, _ = whole
    assert len(journal.batches) == HORIZON * STEPS
    assert len(tuner.decisions) == HORIZON
    assert journal.check(tuner.decisions) == callback.driver.restores >= 3


def test_in_rounds_of_epochs_too(warned):
    tuner = twins.tuner(20)
    length = RoundLength(epochs=1)
    _, journal, _ = fit(tuner, length=length, steps=-1, max_epochs=20)
    assert journal.check(tuner.decisions, 10) >= 1
    assert warned() == []


def test_a_scheduler_goes_back(warned):
    tuner = twins.tuner(space=twins.FACTOR)
    _, journal, _ = fit(tuner, module=program.Scheduled(), rates="multipliers")
    assert journal.check(tuner.decisions) >= 3
    assert warned() == []


@pytest.mark.parametrize("step", quick([15, 20, 45, 50, 80], 15, 50))
def test_a_resumed_fit_goes_on_identically(whole, step, warned):
    (_, journal, module), tuner, folder = whole
    again = twins.tuner()
    _, resumed, other = fit(again, checkpoint=folder / f"step={step}.ckpt")
    assert again.decisions == tuner.decisions
    assert resumed.batches == journal.batches[step:]
    assert weights_of(other) == weights_of(module)
    assert warned() == []


def test_a_checkpoint_is_resumed_without_the_callback(whole):
    """The kind: a checkpoint that needs what only the tuner has made."""
    settings = {**program.QUIET, **program.DEVICE, "max_steps": 30}
    trainer = program.Trainer(**settings)
    trainer.fit(program.Module(), *loaders(), ckpt_path=whole[2] / "step=25.ckpt")
    assert trainer.global_step == 30


@pytest.mark.parametrize("every", [{"save_on_train_epoch_end": True}, {"monitor": "val_loss"}])
def test_a_checkpoint_of_an_epoch_or_of_a_validation_goes_on_identically(every, tmp_path):
    kept = program.ModelCheckpoint(tmp_path, filename="{step}", save_top_k=-1, **every)
    tuner, again = twins.tuner(), twins.tuner()
    limit = {"limit_train_batches": 0.7}  # batches of an epoch that are never read
    _, journal, module = fit(tuner, kept, enable_checkpointing=True, steps=60, **limit)
    path = sorted(tmp_path.glob("*.ckpt"), key=lambda file: file.stat().st_mtime_ns)[2]
    _, resumed, other = fit(again, checkpoint=path, steps=60, **limit)
    assert again.decisions == tuner.decisions
    assert resumed.batches == journal.batches[-len(resumed.batches) :]
    assert weights_of(other) == weights_of(module)


def test_two_ranks_go_back_together(tmp_path):
    first, second = launched("twins_program.py", tmp_path, "twins")
    for case in ("whole", "resumed", "early"):
        assert first[case]["weights"] == second[case]["weights"]
        assert first[case]["config"] == second[case]["config"]
        assert first[case]["restores"] == second[case]["restores"] > 0
        assert second[case]["decisions"] == []
    whole, resumed = first["whole"], first["resumed"]
    assert resumed["decisions"] == whole["decisions"]
    assert resumed["weights"] == whole["weights"]
    for rank in (first, second):
        assert rank["resumed"]["batches"] == rank["whole"]["batches"][10:]
        assert rank["resumed"]["generator"] == rank["whole"]["generator"]
        check_batches(rank["whole"]["batches"], whole["decisions"])
    assert first["whole"]["batches"] != second["whole"]["batches"]  # each reads its share
    # Stopped within a trial of a rate: the network is that of the incumbent.
    assert first["early"]["config"] != first["early"]["decisions"][-1]["peak"]


def check_batches(batches, decisions):
    kept, seen, at = {}, {}, 0
    for decision in decisions:
        if decision["keep"] is not None:
            kept[decision["keep"]] = at
        at = at if decision["restore"] is None else kept[decision["restore"]]
        for batch in batches[decision["round"] * STEPS :][:STEPS]:
            assert seen.setdefault(at, batch) == batch
            at += 1


def state_of_incumbent(decisions, observations):
    """Number of the state that the incumbent goes on from after some decisions."""
    again, told = twins.tuner(), {one.round: one.reward for one in observations}
    for decision in decisions:
        with again.asking():
            pass
        if decision.round in told:
            again.tell(decision, told[decision.round])
    return again.state_of_incumbent


@pytest.mark.parametrize("end", twins.ENDS)
def test_a_fit_that_ends_early_hands_over_the_incumbent(end):
    steps, stop, how = twins.ENDS[end]
    tuner, module, watch = twins.tuner(), program.Module(), Watch(stop, how)
    try:
        fit(tuner, watch, module=module, steps=steps)
    except (ZeroDivisionError, SystemExit):
        assert how is not None
    assert tuner.is_settled
    assert tuner.incumbent != dict(tuner.decisions[-1].peak)  # a trial was running
    number = state_of_incumbent(tuner.decisions, tuner.observations)
    kept = next(one for one in tuner.decisions if one.keep == number)
    state = watch.journal.after[kept.round * STEPS - 1]
    expected = [leaf.flatten().tolist() for leaf in state if isinstance(leaf, torch.Tensor)]
    assert weights_of(module) == expected[:4]


def test_patience_counts_queries_and_a_trial_that_diverged_does_not_stop_the_fit():
    class Diverges(program.Module):
        def validation_step(self, batch, index):
            rate = self.trainer.optimizers[0].param_groups[0]["lr"]
            self.log("val_loss", torch.tensor(float("nan") if rate > 5e-4 else 1.0))

    tuner = twins.tuner()
    stopping = EarlyStopping("val_loss", patience=50)
    fit(tuner, stopping, module=Diverges())
    assert len(tuner.decisions) == HORIZON
    assert tuner.failed_queries > 0
    assert stopping.check_finite  # given back


def test_each_round_is_logged():
    memory = Memory()
    tuner = twins.tuner()
    fit(LoggedTuner(tuner, memory))
    assert [entry.round for entry in memory.entries] == list(range(HORIZON))
    assert sum(entry.observation is not None for entry in memory.entries) == tuner.queries
    assert not tuner.diagnose().by_hand


def test_several_loaders_go_back_together():
    class Two(program.Module):
        def training_step(self, batch, index):
            return sum(twins.loss(self.network, *part) for part in batch.values())

    class First(Watch):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            both = torch.cat([batch["a"][0], batch["b"][0]])
            super().on_train_batch_start(trainer, pl_module, [both], batch_idx)

    watch, tuner = First(), twins.tuner()
    both = {"a": loaders()[0], "b": DataLoader(twins.data(), 30, shuffle=True)}
    fit(tuner, watch, module=Two(), data=(both, loaders()[1]))
    assert watch.journal.check(tuner.decisions) >= 3


def test_a_loader_that_the_user_has_wrapped_is_used():
    batches, tuner = Rewindable(loaders()[0], gigabytes=0.1), twins.tuner()
    _, journal, _ = fit(tuner, data=(batches, loaders()[1]))
    assert journal.check(tuner.decisions) >= 3
    assert batches.before is None  # given back
    assert batches.state_dict()["frontier"] == (HORIZON - tuner.given_back) * STEPS


def test_accumulated_gradients_end_with_a_round():
    tuner = twins.tuner()
    _, journal, _ = fit(tuner, accumulate_grad_batches=4, steps=HORIZON * STEPS)
    # Ten batches an epoch are steps of 4, 4 and 2.
    assert len(journal.batches) == HORIZON * 10
    assert journal.check(tuner.decisions, 10) >= 1


class Unsized(IterableDataset):
    def __iter__(self):
        x, y = twins.data().tensors
        return iter([(x[row], y[row]) for row in torch.randperm(120).tolist()])


def test_of_data_without_a_length_only_the_first_two_batches_of_a_trial_are_others():
    tuner = twins.tuner()
    data = (DataLoader(Unsized(), BATCH), loaders()[1])
    _, journal, _ = fit(tuner, data=data)
    kept, seen, at, others = {}, {}, 0, []
    for decision in tuner.decisions:
        if decision.keep is not None:
            kept[decision.keep] = at
        goes_back = decision.restore is not None
        at = kept[decision.restore] if goes_back else at
        for number, batch in enumerate(journal.batches[decision.round * STEPS :][:STEPS]):
            if seen.setdefault(at + number, batch) != batch:
                others.append((goes_back, number))
        at += STEPS
    assert set(others) <= {(True, 0), (True, 1)}  # fetched ahead


def test_loaders_that_are_reloaded_are_told(warned):
    fit(twins.tuner(), steps=20, reload_dataloaders_every_n_epochs=1)
    assert sum("loaded again every 1 epochs" in line for line in warned()) == 1


def test_trials_of_a_program_leave_the_tuner_as_it_was(warned):
    tuner = twins.tuner()
    fit(tuner, fast_dev_run=True)
    assert tuner.decisions == ()
    module = program.Module()
    module.lr = 0.1
    _, journal, _ = fit(tuner, LearningRateFinder(num_training_steps=15), module=module)
    assert len(tuner.decisions) == HORIZON
    assert journal.check(tuner.decisions) >= 3
    assert warned() == []


def test_a_part_that_cannot_go_back_is_named(whole):
    class Part:
        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            raise ValueError("no way")

    with pytest.raises(RestoreError, match="Part"):
        fit(twins.tuner(), parts=[Part()])
    with pytest.raises(StateMismatchError, match="parts"):
        fit(twins.tuner(), parts=[Part()], checkpoint=whole[2] / "step=25.ckpt")


def test_an_optimizer_that_is_exchanged_is_refused():
    class Exchange(Watch):
        def on_train_batch_end(self, trainer, pl_module, *arguments):
            if trainer.global_step == 10:
                trainer.optimizers = [torch.optim.SGD(pl_module.parameters(), lr=0.1)]

    with pytest.raises(InvalidArgumentError, match="the one that the fit started with"):
        fit(twins.tuner(), Exchange())


def test_a_gradient_scaler_goes_back():
    from lightning.pytorch.plugins import MixedPrecision

    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=5)
    plugin = MixedPrecision("16-mixed", "cpu", scaler=scaler)
    scales = []

    class Scales(Watch):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            scales.append(scaler.get_scale())

        def on_train_batch_end(self, *arguments):
            pass

    tuner = twins.tuner()
    fit(tuner, Scales(), steps=60, plugins=[plugin])
    back = [one for one in tuner.decisions if one.restore == 0]
    assert back
    assert {scales[one.round * STEPS] for one in back} == {4.0}
    assert max(scales) > 4.0


def test_space_of_a_rate_beside_a_scheduler_of_ones_own_earns_the_warning_of_a_session(warned):
    space = bc.SearchSpace({"lr": bc.Real(0.01, 100, log=True)})
    tuner = bc.TwinTuner(space, HORIZON, start={"lr": 1.0})
    fit(tuner, module=program.Scheduled(), rates="multipliers", steps=10)
    assert sum("A scheduler is among the parts" in line for line in warned()) == 1
