"""The share of the clock: paced over a planned run, divided among readings, and warned of."""

import pytest
import torch

import botorch_costly as bc
from botorch_costly.ask_tell.tariff import Tariff
from tests.validation.clock import Clock, Run, falling


@pytest.fixture
def tariff():
    clock = Clock()
    tariff = Tariff(0.2, clock)
    tariff.mark()
    for _ in range(10):
        clock.seconds += 1.0
        tariff.end(tariff.training)
    return tariff


def test_the_budget_is_the_share_of_the_clock_with_validation(tariff):
    assert tariff.budget() == pytest.approx(2.5)  # of 12.5 s, of which 10 are training
    assert tariff.budget(30) == pytest.approx(10.0)


@pytest.mark.parametrize(("pace", "seconds"), [(0.0, 10.0), (0.5, 5.0), (1.0, 2.5)])
def test_early_readings_run_ahead_of_the_share_by_the_pace(tariff, pace, seconds):
    assert tariff.allowance(30, pace) == pytest.approx(seconds)
    tariff._clock.seconds += 2.0
    tariff.end(tariff.validation)
    assert tariff.allowance(30, pace) == pytest.approx(seconds - 2.0)


def test_at_no_moment_more_than_twice_the_share_is_taken(tariff):
    """However far off the end is said to be."""
    assert tariff.allowance(990, 0.5) == pytest.approx(2 * 2.5)
    run = Run(falling, price=2.0, overhead=0.05, steps=10**6).play(2001)
    assert run.validation.counts["share"] <= 2 * 0.05


def test_a_planned_run_reads_more_of_its_beginning_and_keeps_to_the_share():
    planned = Run(falling, price=2.0, overhead=0.05, steps=2000).play(2001)
    endless = Run(falling, price=2.0, overhead=0.05).play(2001)
    early = [sum(step < 500 for step in run.read) for run in (planned, endless)]
    assert early[0] > early[1]
    assert planned.validation.counts["share"] <= 0.05


def test_the_share_is_divided_among_readings_of_part_of_the_examples():
    """However few seconds there are: no reading takes more than a twentieth of those of the run."""
    run = Run(falling, price=20.0, noise=1.0, overhead=0.05, steps=2000, examples=4000)
    read = []
    tell = run.validation.tell

    def counted(losses):
        read.append(len(losses))
        tell(losses)

    run.validation.tell = counted
    run.play(2001)
    assert len(run.read) >= 10
    budget = 0.05 / 0.95 * 2001
    assert max(read) * 20.0 / 4000 <= budget / 20 + 20.0 * 64 / 4000


def test_a_clear_comparison_ends_with_the_first_shard_of_a_reading():
    clock = Clock()
    validation = bc.Validation(0.5, examples=2000, steps=1000, clock=clock)
    base = torch.linspace(1.0, 2.0, 2000, dtype=torch.float64)
    read, verdicts = [], []
    for step in range(300):
        clock.seconds += 1.0
        if validation.due(step):
            read.append(0)
            while wanted := validation.examples:
                clock.seconds += 0.001 * len(wanted)
                read[-1] += len(wanted)
                validation.tell(base[wanted] + 10.0 * (len(read) > 1))
            verdicts.append(validation.verdict)
    assert set(verdicts[1:]) == {"worse"}
    assert max(read[1:]) <= read[0]


def test_a_reading_that_the_whole_run_does_not_afford_warns_once(caplog):
    Run(falling, price=300.0, overhead=0.05, steps=500).play(501)
    warnings = [record.message for record in caplog.records if "Raise overhead" in record.message]
    assert len(warnings) == 1
    assert "A reading took 300 s" in warnings[0]


def test_readings_that_are_affordable_do_not_warn(caplog):
    Run(falling, price=3.0, overhead=0.05, steps=500).play(501)
    assert not caplog.records


def test_an_accuracy_that_is_declared_as_a_loss_warns(caplog):
    Run(lambda step: 1 - falling(step) / 2, overhead=0.2).play(400)
    assert "declare them as accuracy" in caplog.text


@pytest.mark.parametrize(("watching", "taken"), [(0.25, 0.25), (5.0, 0.625)])
def test_watching_takes_from_readings_up_to_a_quarter_of_the_share(tariff, watching, taken):
    before, used = tariff.allowance(), tariff.used
    tariff._clock.seconds += watching
    tariff.end(tariff.watching)
    assert tariff.allowance() == pytest.approx(before - taken)
    assert tariff.used == pytest.approx(used + watching / (10 + watching))


def test_seconds_of_all_calls_count():
    """Each look at the clock takes a second of it, so that deciding is most of the run."""

    class Slow(Clock):
        def __call__(self):
            self.seconds += 1.0
            return self.seconds

    validation = bc.Validation(0.9, clock=Slow())
    for step in range(100):
        validation.due(step)
    assert validation.counts["share"] >= 0.4
