"""States that an earlier version has written are opened for ever, and what a file cannot do."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch.torch_version import TorchVersion

import botorch_costly as bc
from botorch_costly.ask_tell.state import STATE_VERSION
from botorch_costly.errors import StateMismatchError, UnsafeVersionError
from tests.state_files.optimizers import MAKERS, facts_of, play

FOLDER = Path(__file__).parent / "state_files"
FILES = sorted(FOLDER.glob("*/*.pt"))


def test_this_version_has_a_file_of_each_optimizer():
    assert {path.stem for path in FILES if path.parent.name == str(STATE_VERSION)} == set(MAKERS)


@pytest.mark.filterwarnings("ignore")  # the values are no curves, and nothing goes back to a state
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}, {path.stem}")
def test_a_state_of_each_version_is_opened_and_continued(path):
    optimizer = MAKERS[path.stem]()
    bc.load(path, optimizer=optimizer)
    facts = json.loads(path.with_suffix(".json").read_text())
    assert json.loads(json.dumps(facts_of(optimizer))) == facts
    play(optimizer, 2)
    assert len(optimizer.decisions) == facts["decisions"] + 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}, {path.stem}")
def test_a_state_holds_tensors_and_plain_values_alone(path):
    def check(value):
        if isinstance(value, dict):
            value = [*value, *value.values()]
        if isinstance(value, list | tuple):
            for part in value:
                check(part)
        else:
            assert value is None or isinstance(value, torch.Tensor | bool | int | float | str)

    check(torch.load(path, weights_only=True))


def test_a_state_of_another_optimizer_is_refused():
    tuner = MAKERS["online"]()
    with pytest.raises(StateMismatchError, match="kind"):
        bc.load(FOLDER / str(STATE_VERSION) / "random.pt", optimizer=tuner)
    assert len(tuner.decisions) == 0


@pytest.mark.parametrize(
    ("version", "read"),
    [("2.5.1", False), ("2.9.1", False), ("2.10.0", True), ("2.11.0+cu130", True)],
)
def test_a_torch_that_reads_files_unsafely_reads_none(version, read, monkeypatch):
    tuner = MAKERS["random"]()
    monkeypatch.setattr(torch, "__version__", TorchVersion(version))
    wanted = nullcontext() if read else pytest.raises(UnsafeVersionError, match="torch: Expected")
    with wanted:
        bc.load(FOLDER / str(STATE_VERSION) / "random.pt", optimizer=tuner)
    assert bool(len(tuner.decisions)) == read


def test_files_are_read_in_one_place():
    package = Path(bc.__file__).parent
    found = [
        path.name
        for path in package.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "torch.load(" in line and "`" not in line
    ]
    assert sorted(found) == [
        "states.py",
        "trials.py",
        "written.py",
    ]  # an example, and what was just written


class Opens:
    """Runs code where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_nothing_in_a_file_is_executed(tmp_path):
    torch.save({"optimizer": Opens(str(tmp_path / "made"))}, tmp_path / "state.pt")
    with pytest.raises(StateMismatchError, match="tensors and plain values"):
        bc.load(tmp_path / "state.pt", optimizer=MAKERS["random"]())
    assert not (tmp_path / "made").exists()
