"""A run that did not begin with the file of an earlier process keeps it, whatever is saved.

Kind: what an earlier run was told is gone with the first save of a run that was to go on from it.
"""

import math
import os
from types import SimpleNamespace

import pytest
import torch

import botorch_costly as bc
from botorch_costly.ask_tell import earlier_files
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.loggers import LoggedTuner
from botorch_costly.integrations.validation.shared import SharedValidation
from tests.cases import quick
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS

SPACE = bc.SearchSpace({"lr": bc.Real(1e-3, 1e-1, log=True)})


@pytest.fixture(params=quick(OPTIMIZERS, *BY_DEFAULT))
def case(request):
    return OPTIMIZERS[request.param]


@pytest.fixture
def process(monkeypatch):
    """Begin another process: it has written and loaded nothing, and has warned of nothing."""

    def begin():
        monkeypatch.setattr(earlier_files, "_owned", set())
        monkeypatch.setattr(earlier_files, "_named", set())

    begin()
    return begin


def told(case, *numbers):
    """Return an optimizer that has been told these numbers."""
    optimizer = case.make(0)
    for number in numbers:
        case.tell(optimizer, optimizer.ask(), number)
    return optimizer


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def raising(error):
    def call(*_):
        raise error

    return call


def said_of(caplog):
    return [text for text in caplog.messages if "is kept as" in text]


def test_the_file_of_an_earlier_run_is_kept_beside_that_of_a_fresh_one(
    case, process, tmp_path, caplog
):
    path, fresh = tmp_path / "run.pt", case.make(0)
    told(case, 0.2, 0.5, 0.3).save(path)
    first = path.read_bytes()
    process()
    for number in (0.6, 0.7):  # the second file of this process is its own
        case.tell(fresh, fresh.ask(), number)
        fresh.save(path)
    assert names_in(tmp_path) == ["run.pt", "run.pt.1"]
    assert (tmp_path / "run.pt.1").read_bytes() == first
    (text,) = said_of(caplog)
    assert f"{path} held 3 outcomes of an earlier run" in text
    assert ", which this run has not loaded: it is kept as run.pt.1. To go on with " in text
    process()
    case.make(2).save(path)  # and the file that was kept is never replaced
    assert names_in(tmp_path) == ["run.pt", "run.pt.1", "run.pt.2"]
    assert (tmp_path / "run.pt.1").read_bytes() == first


@pytest.mark.parametrize("resumed", ["load", "bc.load", "load_state_dict"])
def test_a_run_that_goes_on_from_its_file_replaces_it(case, process, tmp_path, caplog, resumed):
    path, again = tmp_path / "run.pt", case.make(0)
    told(case, 0.2, 0.5, 0.3).save(path)
    process()
    if resumed == "load":
        again.load(path)
    elif resumed == "bc.load":
        bc.load(path, tuner=again)
    else:
        again.load_state_dict(torch.load(path, weights_only=True)["tuner"])
    case.tell(again, again.ask(), 0.4)
    again.save(path)
    assert names_in(tmp_path) == ["run.pt"]
    assert not said_of(caplog)


def test_a_file_of_nothing_told_is_replaced(case, process, tmp_path, caplog):
    path, untold = tmp_path / "run.pt", case.make(0)
    untold.ask()
    untold.save(path)
    process()
    told(case, 0.2).save(path)
    assert names_in(tmp_path) == ["run.pt"]
    assert not said_of(caplog)


def a_session(loss=1.0):
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    session = bc.Session(SPACE, 20, network, optimizer)
    for _ in range(8):
        decision = session.ask()
        if decision.query:
            session.tell(decision, loss)
    return {"session": session, "network": network}


def a_validation(loss=1.0):
    validation = bc.Validation(steps=9)
    for number in range(10):
        if validation.due(number, train_loss=loss):
            validation.tell(loss)
    return validation


def a_tuner(reward=1.0):
    tuner = bc.RandomTuner(SPACE, 20)
    tuner.tell(tuner.ask(), reward)
    return tuner


PARTS = {
    "a session": a_session,
    "a validation": lambda value=1.0: {"validation": a_validation(value)},
    "a shared validation": lambda value=1.0: {"shared": SharedValidation(a_validation(value))},
    "loggers": lambda value=1.0: {"tuner": LoggedTuner(a_tuner(value), [])},
    "ranks": lambda value=1.0: {"tuner": SharedTuner(a_tuner(value))},
    "several runs": lambda value=1.0: {"one": a_tuner(3.0), "two": a_tuner(value)},
}


@pytest.mark.parametrize("name", PARTS)
def test_so_is_one_of_other_parts(name, process, tmp_path, caplog):
    bc.save(tmp_path / "run.pt", **PARTS[name]())
    process()
    bc.save(tmp_path / "run.pt", **PARTS[name](2.0))
    assert names_in(tmp_path) == ["run.pt", "run.pt.1"]
    assert len(said_of(caplog)) == 1
    process()
    caplog.clear()
    parts = PARTS[name]()
    bc.load(tmp_path / "run.pt.1", **parts)
    bc.save(tmp_path / "run.pt.1", **parts)
    assert names_in(tmp_path) == ["run.pt", "run.pt.1"]
    assert not said_of(caplog)


def test_parts_that_are_told_nothing_are_replaced(process, tmp_path, caplog):
    """A best network that is written in each run of a program is no run that goes on."""
    bc.save(tmp_path / "best.pt", network=torch.nn.Linear(1, 1))
    process()
    bc.save(tmp_path / "best.pt", network=torch.nn.Linear(1, 1))
    assert names_in(tmp_path) == ["best.pt"]
    assert not caplog.messages


def test_a_file_of_another_kind_is_kept(process, tmp_path, caplog):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n", encoding="utf-8")
    a_tuner().save(path)
    assert (tmp_path / "table.csv.1").read_text(encoding="utf-8") == "a,b\n"
    (text,) = said_of(caplog)
    assert "held something other than states of this package" in text


def test_checkpoints_of_one_name_are_all_kept_and_named_once(process, tmp_path, caplog):
    """Of a trainer whose run begins anew in the folder of an earlier one."""
    folders = [tmp_path / f"checkpoint-{number}" for number in (5, 10)]
    for reward in (1.0, 2.0):
        process()
        for folder in folders:
            bc.save(folder / "tuning.pt", tuning=a_tuner(reward))
    assert [names_in(folder) for folder in folders] == [["tuning.pt", "tuning.pt.1"]] * 2
    assert len(said_of(caplog)) == 1


def test_an_outcome_that_is_no_number_is_known_again(process, tmp_path, caplog):
    path, tuner, again = tmp_path / "run.pt", a_tuner(math.nan), bc.RandomTuner(SPACE, 20)
    tuner.save(path)
    again.load_state_dict(torch.load(path, weights_only=True)["tuner"])
    process()
    again.save(path)
    assert names_in(tmp_path) == ["run.pt"]


@pytest.mark.parametrize("text", ["two of three", "3", "null", '{"a": 1}'])
def test_a_part_may_have_words_where_tuners_have_outcomes(text, process, tmp_path, caplog):
    mine = SimpleNamespace(state_dict=lambda: {"outcomes": text}, load_state_dict=print)
    a_tuner().save(tmp_path / "run.pt")
    for number in (1, 2):
        process()
        bc.save(tmp_path / "run.pt", tuner=a_tuner(2.0 + number), mine=mine)
        assert (tmp_path / f"run.pt.{number}").exists()
    assert "held 1 outcome of an earlier run" in said_of(caplog)[1]


def test_a_last_outcome_that_is_equal_by_chance(process, tmp_path):
    """As accuracies on few examples are."""
    for seed in (0, 1):
        process()
        tuner = bc.RandomTuner(SPACE, 20)
        for reward in (0.25, 0.5 + seed / 8, 0.75):
            tuner.tell(tuner.ask(), reward)
        tuner.save(tmp_path / "run.pt")
    assert names_in(tmp_path) == ["run.pt", "run.pt.1"]


def test_a_save_that_was_interrupted_and_is_repeated_keeps_one_file(process, tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    a_tuner().save(path)
    first = path.read_bytes()
    process()
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            a_tuner(2.0).save(path)
    process()
    a_tuner(2.0).save(path)
    assert names_in(tmp_path) == ["run.pt", "run.pt.1"]
    assert (tmp_path / "run.pt.1").read_bytes() == first


def test_a_disk_without_links_has_a_copy(process, tmp_path, monkeypatch):
    a_tuner().save(tmp_path / "run.pt")
    first = (tmp_path / "run.pt").read_bytes()
    monkeypatch.setattr(
        earlier_files.backup_of.__globals__["os"], "link", raising(OSError("no links here"))
    )
    for number in (1, 2):
        process()
        a_tuner(2.0 + number).save(tmp_path / "run.pt")
        assert (tmp_path / f"run.pt.{number}").exists()
    assert (tmp_path / "run.pt.1").read_bytes() == first


def test_a_save_that_fails_keeps_nothing_beside(process, tmp_path, monkeypatch, caplog):
    path = tmp_path / "run.pt"
    a_tuner().save(path)
    first = path.read_bytes()
    process()
    with monkeypatch.context() as broken:
        broken.setattr(torch, "save", raising(OSError("no space left")))
        with pytest.raises(OSError, match="no space"):
            a_tuner(2.0).save(path)
    assert (names_in(tmp_path), path.read_bytes()) == (["run.pt"], first)
    a_tuner(2.0).save(path)  # it is still not this process's own
    assert len(said_of(caplog)) == 1
