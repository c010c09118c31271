"""What a tuner takes of the time of a trainer is told from the fits."""

import time

import pytest

from benchmarks.endurance import trainers
from benchmarks.endurance.trainers import Clock, Task, in_lightning, in_transformers, text

ROW = {
    **Task("Lightning", 100, 10, 0)._asdict(),
    "seconds": 40.0,
    "processor": 20.0,
    "within_processor": 0.1,
    "deciding": 0.07,
    "queries": 4,
}


def test_shares_are_of_the_processor():
    worse = {**ROW, "seed": 1, "within_processor": 0.4}
    line = text([ROW, {**ROW, "seed": 2}, worse]).splitlines()[1]
    said = ["Lightning", "100", "3", "4/10", "2.00", "10.00", "3.00", "0.50", "2.00", "1.00"]
    assert line.split() == said


def test_the_time_beside_the_decision_is_judged():
    slow, quick = {**ROW, "deciding": 0.079}, {**ROW, "deciding": 0.081}
    assert "2 ms beside the decision: in 1 of 2 fits" in text([slow, quick])


class Counted:
    """A tuner that has paid for queries, and a callback."""

    queries = 3

    def hook(self, seconds):
        return self.ask(seconds)

    def ask(self, seconds):
        until = time.process_time() + seconds
        while time.process_time() < until:
            pass
        return seconds

    tell = ask


def test_the_time_within_hooks_is_added_up():
    callback = Counted()
    clock = Clock(callback, ("hook",), callback)
    fit = clock.fit(
        lambda: [callback.hook(0.02), callback.hook(0.03), Counted().hook(0.05)], callback
    )
    assert 0.05 <= fit.within_processor < 0.09
    assert 0.05 <= fit.deciding <= fit.within_processor
    assert fit.processor >= 0.1
    assert fit.seconds > 0
    assert fit.queries == 3


def test_the_hooks_that_are_timed_are_those_of_the_callbacks():
    """A hook that is not timed would not be counted."""
    from botorch_costly.integrations import lightning, transformers

    clocked = {}

    class Noting(Clock):
        def __init__(self, callback, hooks, tuner):
            clocked[type(callback)] = set(hooks)
            raise StopIteration

    for module, fit in ((lightning, in_lightning), (transformers, in_transformers)):
        pytest.importorskip(module.__name__.rsplit(".", 1)[-1])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("benchmarks.endurance.trainers.Clock", Noting)
            with pytest.raises(StopIteration):
                fit(5, 10, 0)
        kind = module.TunerCallback
        own = {name for name in vars(kind) if name.startswith("on_") or name == "setup"}
        saving = {"on_save", "on_train_end"}  # nothing is saved in these fits
        assert clocked[kind] == own - saving


@pytest.mark.slow
@pytest.mark.parametrize("name", trainers.FITS)
def test_a_fit_is_timed(name):
    pytest.importorskip("transformers" if name == "Transformers" else "lightning")
    row = trainers.measure(Task(name, 3, 10, 0))
    assert 0 < row["deciding"] < row["within_processor"] < row["processor"]
    assert 0 < row["queries"] <= 10
