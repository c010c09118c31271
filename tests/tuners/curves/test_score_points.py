"""Which points of curves are data of the scores, and how long they stay."""

import copy
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.numerics import augmentation
from botorch_costly.tuners.curves import scores
from botorch_costly.tuners.curves.score_points import ScorePoints, point_of, resampled
from botorch_costly.tuners.curves.trainings import Training
from tests.cases import quick
from tests.tuners.curves.playing import LENGTH, SPACE, curve_of, made, reward
from tests.tuners.online.states import same

FEW = [{"lr": 10.0**-k, "width": w} for k in (1, 2, 3, 4) for w in (1, 3, 5, 7)]


def made_few(**options):
    options = {"compression": bc.Compression(), "candidates": FEW, **options}
    return bc.CurveOptimizer(SPACE, LENGTH, **options)


def data_of(optimizer):
    """Return the points that are data: pairs of a training and an iteration."""
    return {tuple(pair) for pair in optimizer._strategy._chooser.state_dict()["data"].tolist()}


def told(optimizer, segments=1):
    """Play segments; return the last one."""
    for _ in range(segments):
        segment = optimizer.ask()
        optimizer.tell(segment, curve_of(segment), cost=float(segment.iterations))
    return segment


@pytest.mark.parametrize("resumes", quick([True, False], True))
def test_points_stay_and_only_the_newest_curve_gets_more(resumes, monkeypatch):
    monkeypatch.setattr(augmentation, "FIXED_NOISE", 1e-5)  # the bound is far
    optimizer = made_few(resumes=resumes)
    told(optimizer, 4)
    optimizer.cancel(optimizer.ask())
    added = []
    for _ in range(5):
        before = data_of(optimizer)
        newest = told(optimizer)
        optimizer.cancel(optimizer.ask())
        after = data_of(optimizer)
        assert before < after
        new = after - before
        assert {training for training, _ in new} == {newest.training}
        assert (newest.training, newest.until) in new
        added.append(len(new) - 1)
    assert max(added) == 15  # as many as are published


def test_at_the_bound_only_ends_join_the_data(monkeypatch):
    monkeypatch.setattr(augmentation, "FIXED_NOISE", 1e-9)
    optimizer = made_few()
    told(optimizer, 5)
    optimizer.ask()
    before = data_of(optimizer)
    ends = {(s.training, s.until) for s in (told(optimizer) for _ in range(4))}
    optimizer.ask()
    assert data_of(optimizer) == before | ends


def test_all_curves_that_are_new_get_points_at_once():
    optimizer = made_few()
    told(optimizer, 4)
    asked = [optimizer.ask() for _ in range(3)]
    for segment in asked:
        optimizer.tell(segment, curve_of(segment), cost=1.0)
    before = data_of(optimizer)
    optimizer.ask()
    new = {training for training, _ in data_of(optimizer) - before}
    assert new == {segment.training for segment in asked}


def test_without_augmentation_the_latest_ends_are_the_data():
    optimizer = made_few(compression=bc.Compression(augments=False))
    asked = [told(optimizer) for _ in range(9)]
    optimizer.ask()
    latest = {segment.training: segment.until for segment in asked}
    assert data_of(optimizer) == set(latest.items())
    assert len(latest) < len(asked)


def test_points_belong_to_a_state_and_older_states_lack_them():
    optimizer = made_few()
    told(optimizer, 7)
    optimizer.ask()
    state = optimizer.state_dict()
    other = made_few()
    other.load_state_dict(copy.deepcopy(state))
    assert data_of(other) == data_of(optimizer)
    assert same(other.state_dict(), state)
    assert (told(other, 2), other.ask()) == (told(optimizer, 2), optimizer.ask())
    del state["chooser"]["data"]
    older = made_few()
    older.load_state_dict(state)
    assert data_of(older) == set()
    told(older)
    ends = {(t.number, t.done) for t in older.trainings if t.known and t.until is None}
    older.ask()
    assert ends < data_of(older)


def test_a_question_or_an_error_leaves_the_points_as_they_were(monkeypatch):
    optimizer = made_few()
    told(optimizer, 5)
    segment = optimizer.ask()
    before = data_of(optimizer)
    optimizer.should_stop(segment, curve_of(segment)[:1], cost=1.0)
    assert data_of(optimizer) == before
    optimizer.tell(segment, curve_of(segment), cost=1.0)
    with monkeypatch.context() as broken:
        broken.setattr(scores, "best_mean", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            optimizer.ask()
    assert data_of(optimizer) == before
    optimizer.ask()
    assert before < data_of(optimizer)


def test_forgotten_trainings_take_their_points_along(monkeypatch):
    """The kind: points numbered by place belong to other curves once the first is forgotten."""
    monkeypatch.setattr(scores, "_MOST_CURVES", 4)
    optimizer = made_few()
    strategy = optimizer._strategy
    for config in FEW[:9]:
        segment = optimizer.enqueue(config, LENGTH)
        optimizer.tell(segment, curve_of(segment))
        model = strategy._chooser._model(strategy.trainings)
        kept = [training.number for training in strategy.trainings][-4:]
        assert {number for number, _ in data_of(optimizer)} == set(kept)
        assert model.configs.tolist() == [t.point.tolist() for t in strategy.trainings][-4:]
        marks = {(kept[place], point) for place, point in model.marks.tolist()}
        assert marks == data_of(optimizer)  # here a point is an iteration


def test_the_data_are_limited(monkeypatch):
    monkeypatch.setattr(augmentation, "FIXED_NOISE", 1e-5)  # the bound is far
    monkeypatch.setattr(scores, "_MOST_ROWS", 50)
    monkeypatch.setattr(scores, "_MOST_CURVES", 10)
    optimizer = made_few()
    strategy, sizes, kept = optimizer._strategy, [], []
    for config in FEW[:12]:
        segment = optimizer.enqueue(config, LENGTH)
        optimizer.tell(segment, curve_of(segment))
        sizes.append(len(strategy._chooser._model(strategy.trainings).marks))
        kept.append({number for number, _ in data_of(optimizer)})
    assert sizes[:3] == [16, 32, 48]  # points join while ten ends have room
    assert sizes[3:5] == [49, 50]
    assert max(sizes) == 50
    assert kept[4] == {0, 1, 2, 3, 4}
    assert kept[5] == {1, 2, 3, 4, 5}  # the oldest was forgotten, and room is made
    assert kept[-1] == set(range(min(kept[-1]), 12))


def training(curve, length, number=0, **more):
    point = torch.zeros(2, dtype=torch.float64)
    return Training(number, {}, point, length, tuple(curve), **more)


@pytest.mark.parametrize("length", [1, 2, 7, 30, 59, 60, 61, 100, 119, 120, 1000])
@pytest.mark.parametrize("finest", [1, 7, 60])
def test_a_point_shows_its_iteration_on_every_grid(length, finest):
    """The naive twin walks the grid; ends are where curves end."""
    shown = [k * length // finest for k in range(1, finest + 1)]  # the iteration at each point
    for iteration in range(1, length + 1):
        latest = [k for k, at in enumerate(shown, 1) if at <= iteration]
        exact = [k for k, at in enumerate(shown, 1) if at == iteration]
        expected = exact[0] if exact else max(latest, default=0)
        assert point_of(iteration, length, finest) == expected
    curve = resampled(training([1.0] * length, length), finest, lowest=0.0)
    assert point_of(length, length, finest) == len(curve)


def test_points_survive_a_longer_training_and_a_late_first_value():
    nan = math.nan
    first, later = training(range(30), 30), training([nan, nan, 1.0, *range(57)], 120, number=4)
    points, seen = ScorePoints(stay=True), [first]
    assert points.enter_ends(seen) == [0]
    points.add(seen, torch.tensor([[0, 3], [0, 8]]), finest=15)
    again = ScorePoints(stay=True)
    again.load(points.to_tensor())
    assert points.to_tensor().tolist() == [[0, 6], [0, 16], [0, 30]] == again.to_tensor().tolist()
    seen.append(later)
    assert points.enter_ends(seen) == [1]
    curves = torch.stack([resampled(t, 60, lowest=0.0) for t in seen])
    assert points.marks(seen, curves).tolist() == [[0, 12], [0, 32], [0, 60], [1, 30]]
    late = training([nan, nan, 1.0], 120, number=4)
    points = ScorePoints(stay=True)
    points.enter_ends([late])
    curve = resampled(late, 60, lowest=0.0).unsqueeze(0)
    assert points.marks([late], curve).tolist() == [[0, 1]]
    curve = resampled(later, 60, lowest=0.0).unsqueeze(0)
    points.enter_ends([later])
    assert points.marks([later], curve).tolist() == [[0, 2], [0, 30]]  # none before a value


def test_a_training_that_diverges_is_new_once_more():
    points, before = ScorePoints(stay=True), training([1.0, 2.0], 8)
    assert points.enter_ends([before]) == [0]
    assert points.enter_ends([before]) == []
    broken = training([1.0, 2.0, math.nan], 8, broken=True)
    assert points.enter_ends([broken]) == [0]
    curve = resampled(broken, 8, lowest=0.0).unsqueeze(0)
    assert points.marks([broken], curve).tolist() == [[0, 2], [0, 8]]
    assert points.enter_ends([]) == []
    assert len(points.to_tensor()) == 0


def test_a_training_begun_anew_brings_no_data_before_it_is_longer():
    optimizer = made_few(resumes=False)
    told(optimizer, 4)
    optimizer.cancel(optimizer.ask())
    before = data_of(optimizer)
    short = next(t for t in optimizer.trainings if 1 < t.done < LENGTH)
    again = optimizer.enqueue(short.config, training=short.number)
    optimizer.tell(again, [reward(short.config, 1)], cost=1.0)
    optimizer.ask()
    assert data_of(optimizer) == before


def test_points_that_are_no_points_are_refused():
    state = made_few().state_dict()
    state["chooser"]["data"] = torch.zeros(3, 3)
    with pytest.raises(errors.CostlyError):
        made(compression=bc.Compression()).load_state_dict(state)
