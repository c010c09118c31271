"""What TensorBoard is sent; with the library itself where it is installed."""

import sys
import types

import pytest

from botorch_costly.errors import MissingExtraError
from botorch_costly.integrations.loggers import TensorBoardLogger, tensorboard as module
from tests.integrations.loggers.playing import Memory, cheap, play_cheap


class Writer:
    """Records what a SummaryWriter is asked for."""

    made = None

    def __init__(self, folder, purge_step):
        self.folder, self.purge_step = folder, purge_step
        self.scalars, self.texts, self.closed = {}, {}, False
        Writer.made = self

    def add_scalar(self, name, value, step):
        self.scalars[name, step] = value

    def add_text(self, name, value, step):
        self.texts[name, step] = value

    def close(self):
        self.closed = True


@pytest.fixture
def writer(monkeypatch):
    monkeypatch.setattr(module, "require", lambda *names: None)
    fake = types.ModuleType("torch.utils.tensorboard")
    fake.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    return Writer


def test_scalars_are_the_numbers_of_the_entries_and_texts_say_what_changed(writer, tmp_path):
    memory = Memory()
    with cheap(TensorBoardLogger(tmp_path), memory) as tuner:
        play_cheap(tuner, 5)
    made = writer.made
    expected = {
        (f"tuning/{name}", entry.round): value
        for entry in memory.entries
        for name, value in entry.numbers().items()
    }
    assert made.scalars == expected
    assert made.texts["tuning/reason", 0] == "RandomTuner"
    assert ("tuning/reason", 1) not in made.texts
    assert made.closed
    assert made.purge_step == 0  # whatever another run wrote there is hidden


def test_a_resumed_run_hides_the_rounds_that_are_played_again(writer, tmp_path):
    state = play_cheap(cheap(), 5).state_dict()
    resumed = cheap(TensorBoardLogger(tmp_path, prefix="second"))
    resumed.load_state_dict(state)
    play_cheap(resumed, 3)
    resumed.close()
    assert writer.made.purge_step == 4  # the last round before the state was not told
    assert ("second/queries", 4) in writer.made.scalars


def test_the_missing_extra_is_named(monkeypatch, tmp_path):
    from botorch_costly.integrations import extras

    def missing(package):
        raise extras.PackageNotFoundError(package)

    monkeypatch.setattr(extras, "version", missing)
    with pytest.raises(MissingExtraError, match="pip install 'tensorboard"):
        TensorBoardLogger(tmp_path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_what_was_written(tmp_path):
    pytest.importorskip("tensorboard", reason="needs the extra botorch_costly[tensorboard]")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    memory = Memory()
    killed = cheap(TensorBoardLogger(tmp_path))
    state = play_cheap(killed, 5).state_dict()
    play_cheap(killed, 3)
    killed.close()
    resumed = cheap(TensorBoardLogger(tmp_path), memory, seed=0)
    resumed.load_state_dict(state)
    play_cheap(resumed, 4)
    resumed.close()
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    scalars = [(event.step, event.value) for event in read.Scalars("tuning/config/lr")]
    assert [step for step, _ in scalars] == list(range(9))
    lr = [decision.config["lr"] for decision in resumed.decisions]
    assert [value for _, value in scalars] == pytest.approx(lr, rel=1e-6)
