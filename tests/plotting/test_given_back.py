"""The rounds that a picture of twins shades are those whose training was undone.

The kind: a picture shows trials that were given back as if they were part of the run.
"""

import pytest

import botorch_costly as bc
from botorch_costly import plotting
from botorch_costly.plotting.given_back import segments_given_back
from botorch_costly.records import Decision, TwinDecision
from tests.tuners.twins.running import GOOD, RATE, Run, play

ROUNDS = 150


class Counted(Run):
    """A run whose state has the numbers of the rounds that it has been trained for."""

    def __init__(self, **options):
        super().__init__(**options)
        self.round = -1

    def train(self, config):
        self.round += 1  # of compute: going back does not lower it
        super().train(config)
        self.played[-1] = self.round


def rounds_in(segments):
    return [n for left, right in segments for n in range(round(left + 0.5), round(right + 0.5))]


@pytest.mark.parametrize("start", [GOOD / 300, GOOD / 3, GOOD, 10 * GOOD])
@pytest.mark.parametrize("rounds", [9, 40, ROUNDS])
def test_they_are_those_that_the_state_does_not_come_from(start, rounds):
    tuner, run = bc.TwinTuner(RATE, ROUNDS, start={"lr": start}, seed=1), Counted(noise=0.02)
    play(tuner, run, rounds=rounds)
    shaded = rounds_in(segments_given_back(tuner.decisions))
    undone = [n for n in range(rounds) if n not in run.played]
    assert len(shaded) == tuner.given_back
    assert set(shaded) <= set(undone)
    assert (shaded == undone and shaded) or rounds < ROUNDS


def test_a_run_without_a_way_back_has_none():
    decisions = [Decision(n, {"lr": 0.1}, query=True, reason="") for n in range(5)]
    assert segments_given_back(decisions) == []
    assert segments_given_back([]) == []


def test_rounds_before_a_state_of_forgotten_ones_are_unknown():
    told = {"query": True, "reason": "a trial"}
    names = [{}, {"keep": 1}, {"restore": 0, "drop": (0, 1)}]
    names += [{"keep": 2}, {}, {"restore": 2, "drop": (2,)}]
    decisions = [TwinDecision(n, {"lr": 0.1}, **told, **named) for n, named in enumerate(names)]
    assert segments_given_back(decisions) == [(2.5, 4.5)]


def test_a_session_that_is_finished_in_a_trial_shades_nothing_of_its_network():
    run = Counted()
    tuner = bc.TwinTuner(RATE, ROUNDS, start={"lr": GOOD / 300}, seed=1)
    session = play(tuner, run, rounds=5)
    session.finish()
    assert set(run.played).isdisjoint(rounds_in(segments_given_back(tuner.decisions)))


def test_pictures_shade_them_and_say_so():
    pytest.importorskip("matplotlib")
    tuner = bc.TwinTuner(RATE, ROUNDS, start={"lr": GOOD / 300}, seed=1)
    play(tuner, Run())
    axes = plotting.plot_schedule(tuner.decisions, observations=tuner.observations, metric="loss")
    segments = segments_given_back(tuner.decisions)
    for ax in axes:
        boxes = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches]
        assert [(round(b.x0, 6), round(b.x1, 6)) for b in boxes] == segments
    assert "shaded: rounds given back" in axes[0].get_title(loc="right")


def test_the_interactive_page_shades_them():
    pytest.importorskip("plotly")
    tuner = bc.TwinTuner(RATE, ROUNDS, start={"lr": GOOD / 300}, seed=1)
    play(tuner, Run())
    figure = plotting.explore_run(tuner.decisions, tuner.observations, metric="loss")
    boxes = {(shape.x0, shape.x1) for shape in figure.layout.shapes if shape.type == "rect"}
    assert boxes == set(segments_given_back(tuner.decisions))
    assert "shaded: rounds given back" in figure.layout.title.text
