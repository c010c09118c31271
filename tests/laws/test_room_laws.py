"""Every optimizer in every generic room: reports, pictures, logs, ranks, drivers, files, earlier tasks.

The kind: a room that knows the records of one optimizer, or a run with values, and meets another one.
Each cell is right, or an error of ``errors.py`` that says what was expected.
"""

import copy
import csv
import io
import json
import math
import re

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors, plotting
from botorch_costly.command_line import main
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.loggers import CsvLogger, LoggedTuner, ProgressBar
from botorch_costly.integrations.rounds import RoundLength
from botorch_costly.integrations.training import Trained, TrainerOptions
from botorch_costly.reports import (
    SavedRun,
    csv_of,
    html_of,
    picture_of,
    raster_of,
    saved_runs,
    text_of,
)
from botorch_costly.reports.terminal import print_tables
from botorch_costly.tuners import best_values, importance, slice_of
from tests.cases import quick
from tests.registry.optimizers import OPTIMIZERS
from tests.registry.stories import STORIES, told_of
from tests.tuners.online.states import same

# One of each class; the others of the registry differ in options.
CLASSES = list({name.split()[0]: name for name in reversed(OPTIMIZERS)}.values())


@pytest.fixture(params=STORIES)
def story(request):
    return request.param


@pytest.fixture(params=quick(OPTIMIZERS, *CLASSES))
def played(request, story):
    return copy.deepcopy(told_of(request.param, story))


def saved(played, folder):
    path = folder / "run.pt"
    bc.save(path, tuner=played.optimizer)
    return path


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


# -- reports of a saved run ------------------------------------------------------------------------


def test_a_saved_run_is_read_as_it_was(played, tmp_path):
    (run,) = saved_runs(saved(played, tmp_path))
    optimizer = played.optimizer
    assert run.decisions == optimizer.decisions
    assert same(
        [o.to_dict() for o in run.observations], [o.to_dict() for o in played.told.values()]
    )
    counts = optimizer.queries, optimizer.failed_queries, optimizer.pending
    assert (run.queries, run.failed_queries, run.pending) == counts
    assert (run.kind, run.space) == (played.kind, optimizer.space)
    assert run.best is None if played.best is None else run.best == played.best


def test_a_population_is_told_with_the_configuration_of_its_best_member(tmp_path):
    """Kind: the best value of several stands beside the configuration of another one of them."""
    optimizer = bc.PopulationTuner(bc.SearchSpace({"lr": bc.Real(0.0, 1.0)}), members=3)
    decision = optimizer.ask()
    optimizer.tell(decision, [0.3, 0.1, math.nan])
    best = decision.configs[1]
    assert best != decision.config
    bc.save(tmp_path / "run.pt", tuner=optimizer)
    (run,) = saved_runs(tmp_path / "run.pt")
    assert run.best.config == best
    said = f"lr={best['lr']:.4g}"
    assert f"best loss told: 0.1 in round 0, with {said}" in text_of(run)
    assert f"round 0: {said}; 0.1" in text_of(run)
    assert f"<td>{best['lr']:.4g}</td><td>0.1</td>" in html_of([run])
    stream = Terminal()
    if print_tables([run], stream):
        assert stream.getvalue().count(said) == 2
    task = bc.task_from_history(json.loads(json.dumps(optimizer.history)))
    assert task == bc.Task([dict(one) for one in decision.configs], [0.3, 0.1, None])


def test_a_saved_run_is_told_in_words_and_tables(played, tmp_path):
    (run,) = saved_runs(saved(played, tmp_path))
    text, rounds = text_of(run), len(run.decisions)
    assert f"{run.name} ({played.kind})" in text
    counted = run.queried if run.is_search else "rounds"
    assert f"\n{counted}: {rounds}" in text
    assert bool(re.search(r"best \S+ told", text)) == (played.best is not None)
    table = list(csv.DictReader(io.StringIO(csv_of(run))))
    assert [int(row["round"]) for row in table] == [one.round for one in run.decisions]
    told = {r: one.reward for r, one in played.told.items() if one.reward is not None}
    assert {int(row["round"]): float(row["reward"]) for row in table if row["reward"]} == told
    try:
        schedule = run.schedule()
    except (errors.StateMismatchError, errors.InvalidArgumentError) as error:
        refused = "plays each round once" in str(error) and not played.is_told_gains
        assert refused or rounds == 0
    else:
        assert [dict(one) for one in schedule] == [dict(one.config) for one in run.decisions]


def test_the_command_tells_a_run(played, tmp_path, capsys):
    path = saved(played, tmp_path)
    assert main(["report", str(path)]) == 0
    assert played.kind in capsys.readouterr().out
    assert main(["export", str(path), "-o", str(tmp_path / "run.csv")]) == 0
    code = main(["export", str(path), "-o", str(tmp_path / "run.json")])
    plain = played.is_told_gains and len(played.optimizer.decisions) > 0
    assert code == (0 if plain else 2)
    assert plain or "Expected" in capsys.readouterr().err


# -- pictures --------------------------------------------------------------------------------------

PICTURES = {
    "schedule": lambda one: plotting.plot_schedule(one.decisions, observations=one.observations),
    "queries": lambda one: plotting.plot_queries(one.decisions),
    "raster": lambda one: plotting.plot_query_raster({"run": one.decisions}),
    "map": lambda one: plotting.plot_schedule_map(one.decisions),
    "transfer": lambda one: plotting.plot_transfer(one.decisions, one.observations),
    "trainings": lambda one: plotting.plot_trainings(getattr(one, "trainings", one.decisions)),
    "slice": lambda one: plotting.plot_slice(slice_of(one, one.space.names[0])),
    "best values": lambda one: plotting.plot_schedule(
        one.decisions, best=[best_values(one, one.space.names[0], points=9)]
    ),
    "importance": lambda one: plotting.plot_importance(importance(one, points=16)),
}
# What a picture of some optimizers alone says of the others.
OF_ONE = {
    "transfer": ("TransferOptimizer", "decisions of a TransferOptimizer"),
    "trainings": ("CurveOptimizer", "trainings of a CurveOptimizer"),
    "slice": ("OnlineTuner", "an OnlineTuner"),
    "best values": ("OnlineTuner", "an OnlineTuner"),
    "importance": ("OnlineTuner", "an OnlineTuner"),
}


def refusal(room, played):
    """Return what the error of a picture says; None of a picture that has to be drawn."""
    kind, expected = OF_ONE.get(room, (played.kind, ""))
    if played.kind != kind:
        return f"Expected ({expected}|at least one)"
    if not played.optimizer.decisions:
        return "at least one|that were decided on|nothing has been asked for"
    if room == "map" and "arm" in played.optimizer.space.names:
        return "whose values are numbers"
    return "with a reward" if room == "trainings" and played.best is None else None


@pytest.mark.parametrize("room", PICTURES)
@pytest.mark.parametrize("name", quick(OPTIMIZERS, *CLASSES))
@pytest.mark.parametrize("story", quick(STORIES, "failed", "values and failures"))
def test_a_picture_is_drawn_or_says_of_which_optimizer_it_is(room, name, story):
    played = told_of(name, story)
    expected = refusal(room, played)
    if expected is None:
        assert PICTURES[room](played.optimizer)
        return
    with pytest.raises(errors.InvalidArgumentError, match=expected):
        PICTURES[room](played.optimizer)


@pytest.mark.parametrize("name", quick(OPTIMIZERS, *CLASSES))
@pytest.mark.parametrize("story", quick(STORIES, "failed", "without a round"))
def test_a_saved_run_is_a_picture_and_a_page(name, story, tmp_path):
    (run,) = saved_runs(saved(told_of(name, story), tmp_path))
    assert html_of([run]).count("<img") == (1 if run.decisions else 0)
    if run.decisions:
        return
    with pytest.raises(errors.InvalidArgumentError, match=f"at least one {run.unit} to draw"):
        picture_of(run)
    with pytest.raises(errors.InvalidArgumentError, match="a run with at least one decision"):
        raster_of([run])


@pytest.mark.parametrize("name", quick(OPTIMIZERS, *CLASSES))
@pytest.mark.parametrize("story", STORIES)
def test_a_saved_run_is_a_page_to_look_into(name, story, tmp_path, capsys):
    pytest.importorskip("plotly", reason="needs the extra botorch_costly[plotly]")
    played = told_of(name, story)
    page = tmp_path / "run.html"
    code = main(["plot", str(saved(played, tmp_path)), "-o", str(page)])
    if not played.optimizer.decisions:
        assert code == 2
        assert " to draw" in capsys.readouterr().err
        return
    assert code == 0
    text = page.read_text(encoding="utf-8")
    assert all(f'"text":"{name}"' in text for name in played.optimizer.space.names)
    told_as = SavedRun.from_state(played.optimizer.state_dict()).told_as
    assert (f'"text":"{told_as}"' in text) == (played.best is not None)


def test_a_picture_that_is_handed_something_else_names_what_it_draws():
    for draw, expected in ((plotting.plot_slice, "a Slice"), (plotting.plot_importance, "Import")):
        with pytest.raises(errors.InvalidArgumentError, match=f"Expected .*{expected}"):
            draw({"lr": 0.1})


# -- logs, ranks, drivers, files -------------------------------------------------------------------


class Around:
    """What the registry tells, told to what is around an optimizer."""

    def __init__(self, around, optimizer):
        self.tell, self.members = around.tell, getattr(optimizer, "members", None)


def test_a_run_goes_on_with_logs(played, tmp_path, caplog):
    optimizer, path = played.optimizer, tmp_path / "log.csv"
    expected = len(optimizer.decisions) + 1
    with LoggedTuner(optimizer, [CsvLogger(path), ProgressBar(io.StringIO())]) as logged:
        decision = logged.ask()
        told = OPTIMIZERS[played.name].tell(Around(logged, optimizer), decision, 0.25)
        for name in ("summary", "best", "horizon", "history", "pending"):
            ours, theirs = (getattr(one, name, None) for one in (logged, optimizer))
            assert (ours() if callable(ours) else ours) == (
                theirs() if callable(theirs) else theirs
            )
    assert len(optimizer.decisions) == expected
    *_, last = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    assert (int(last["round"]), float(last["reward"])) == (decision.round, told.reward)
    assert not [one for one in caplog.messages if "could not log" in one]


def test_a_run_goes_on_with_ranks(played, tmp_path):
    case, optimizer = OPTIMIZERS[played.name], played.optimizer
    shared = SharedTuner(LoggedTuner(optimizer, []))
    assert shared.best() == optimizer.best()
    path = tmp_path / "shared.pt"
    bc.save(path, tuner=shared)
    assert [run.decisions for run in saved_runs(path)] == [optimizer.decisions]
    again = SharedTuner(LoggedTuner(case.make(0), []))
    bc.load(path, tuner=again)
    assert again.ask() == shared.ask()
    assert same(again.tuner.tuner.state_dict(), optimizer.state_dict())


def test_a_run_goes_on_in_a_trainer_or_is_named(played):
    options = TrainerOptions(RoundLength(steps=1), others=["depth", "arm"])
    if not (played.is_told_gains or isinstance(played.optimizer, bc.TwinTuner)):
        with pytest.raises(errors.InvalidArgumentError, match="a tuner that is told gains"):
            Driver(played.optimizer, options)
        return
    network = torch.nn.Linear(1, 1)
    trained = Trained(network, torch.optim.SGD(network.parameters(), lr=0.1))
    driver, before = (
        Driver(LoggedTuner(played.optimizer, []), options),
        len(played.optimizer.decisions),
    )
    driver.prepare()
    driver.start(trained)
    for metric in (0.5, 0.4, math.nan, 0.3):
        driver.before_step()
        if driver.after_step():
            driver.validated(metric)
    assert driver.decision == played.optimizer.decisions[-1]
    assert len(played.optimizer.decisions) == before + 4


def test_a_run_is_an_earlier_task_or_says_why_not(played):
    history = json.loads(json.dumps(played.optimizer.history))
    outcomes = [one for one in played.told.values() if one.reward is not None or one.failed]
    if not outcomes:
        with pytest.raises(errors.InvalidArgumentError, match="a row with an outcome"):
            bc.task_from_history(history)
        return
    try:
        task = bc.task_from_history(history)
    except errors.InvalidArgumentError as error:
        assert "equal fidelities" in str(error)  # noqa: PT017
        assert played.kind == "SubsetOptimizer"
        return
    values = {value for value in task.values if value is not None}
    told = {one.reward for one in played.told.values() if one.reward is not None}
    # Of a training the last value counts, and none if it diverged; of a population all members do.
    assert values <= told or played.kind == "PopulationTuner"
    assert values >= told or played.kind == "CurveOptimizer"
    if played.best is not None and played.kind not in ("TwinTuner", "CurveOptimizer"):
        assert task.configs[task.values.index(played.best.reward)] == played.best.config
