"""What a tuner makes of runs whose level is known."""

import math

import pytest

import botorch_costly as bc
from tests.tuners.twins.running import GOOD, RATE, Run, alone, by_rate, play

HORIZON = 200
TRIED_UNTIL = 0.8  # of a run, as promised
MODERATE = math.sqrt(0.8 * 0.09)  # between a dropout of 0.8 and a weak one

REGULARIZED = bc.SearchSpace(
    {
        "lr": bc.Real(1e-4, 1.0, log=True),
        "decay": bc.Real(1e-6, 1e-1, log=True),
        "dropout": bc.Real(0.0, 0.9),
        "smoothing": bc.Real(0.0, 0.5),
    }
)


def by_dropout(config):
    return by_rate(config) * math.exp(-6 * abs(config["dropout"] - 0.1))


def trials(tuner):
    return [decision for decision in tuner.decisions if "trial" in decision.reason]


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("factor", [1 / 30, 10, 100])
def test_from_a_bad_learning_rate_most_of_the_way_to_a_good_one(factor, noise):
    start = {"lr": GOOD * factor}
    run = Run(noise=noise)
    play(bc.TwinTuner(RATE, HORIZON, start=start), run)
    good = alone({"lr": GOOD}, HORIZON).level
    bad = alone(start, HORIZON).level if factor < 20 else 0.0  # one that diverges
    assert run.level > bad + 0.5 * (good - bad)


@pytest.mark.parametrize("horizon", [60, 300])
def test_from_a_good_default_few_rounds_are_given_back(horizon):
    run = Run(noise=0.01)
    tuner = bc.TwinTuner(RATE, horizon, start={"lr": GOOD})
    play(tuner, run)
    assert tuner.given_back <= 0.15 * horizon
    assert run.level > alone({"lr": GOOD}, horizon).level - 0.1


@pytest.mark.parametrize("space", [RATE, REGULARIZED], ids=["rate", "four"])
@pytest.mark.parametrize("factor", [1 / 30, 1, 10])
@pytest.mark.parametrize("horizon", [12, 20, 27, 40, 150])
def test_the_books_of_a_run(space, factor, horizon):
    """Rounds given back and rounds of the state add up; late rounds try nothing; queries are few."""
    start = {**bc.TwinTuner(space, 1).incumbent, "lr": GOOD * factor}
    speed = by_rate if space is RATE else by_dropout
    run, tuner = Run(speed, noise=0.02), bc.TwinTuner(space, horizon, start=start, seed=3)
    play(tuner, run)
    assert tuner.given_back + len(run.played) == horizon
    assert tuner.queries <= 0.3 * horizon
    assert max([d.round for d in trials(tuner)], default=0) < TRIED_UNTIL * horizon
    assert len(tuner.decisions) == horizon
    assert tuner.decisions[-1].trained == len(run.played) - 1


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.5])
def test_the_share_of_queries_is_kept(share):
    tuner = bc.TwinTuner(REGULARIZED, 150, queries=share)
    play(tuner, Run(by_dropout, noise=0.02))
    assert tuner.queries <= share * 150


@pytest.mark.parametrize("seed", [0, 1])
def test_a_configuration_that_breaks_the_run_never_stays(seed):
    """Dropout below 0.2 breaks the network, as do large rates."""

    def speed(config):
        return by_rate(config) if config["dropout"] > 0.2 else math.nan

    start = {"lr": GOOD, "decay": 1e-3, "dropout": 0.45, "smoothing": 0.1}
    run, tuner = Run(speed, slope=0.05), bc.TwinTuner(REGULARIZED, HORIZON, start=start, seed=seed)
    play(tuner, run)
    tried = [decision.config["dropout"] for decision in tuner.decisions]
    assert tuner.failed_queries > 0
    assert min(tried) <= 0.2
    assert all(config["dropout"] > 0.2 for config in run.played)
    assert math.isfinite(run.level)


def test_a_start_that_diverges_is_left_behind():
    run = Run()
    tuner = bc.TwinTuner(RATE, 60, start={"lr": 1.0})
    play(tuner, run)
    assert math.isfinite(run.level)
    assert tuner.incumbent["lr"] <= 20 * GOOD


@pytest.mark.parametrize("seed", range(4))
def test_what_only_calms_a_network_is_not_taken(seed):
    """A small share of the rate for a part of the network lowers the loss at once, and learns less."""
    space = bc.SearchSpace(
        {"lr": bc.Real(1e-4, 1.0, log=True), "share": bc.Real(0.01, 1.0, log=True)}
    )

    class Calmed(Run):
        @property
        def level(self):
            calm = 0.0 if not self.played else -0.02 * math.log(self.played[-1]["share"])
            return super().level + calm

    def speed(config):
        return by_rate(config) * config["share"] ** 0.08

    start = {"lr": GOOD, "share": 1.0}
    tuner = bc.TwinTuner(space, HORIZON, start=start, seed=seed)
    play(tuner, Calmed(speed))
    assert tuner.incumbent["share"] > 0.5


def test_bad_regularization_is_found_where_it_matters():
    start = {"lr": GOOD, "decay": 1e-3, "dropout": 0.7, "smoothing": 0.1}
    gained = 0
    for seed in range(4):
        run = Run(by_dropout)
        tuner = bc.TwinTuner(REGULARIZED, 300, start=start, seed=seed)
        play(tuner, run)
        gained += run.level > alone(start, 300, speed=by_dropout).level + 0.2
    assert gained >= 3


def test_what_is_far_too_strong_is_weakened_at_once():
    """All that can be off is tried at a tenth, before anything else; choices and floors stay."""
    others = {"floor": bc.Real(0.1, 0.9), "policy": bc.Choice(["one", "two"])}
    space = bc.SearchSpace(
        {"lr": bc.Real(1e-4, 1.0, log=True), "dropout": bc.Real(0.0, 0.9), **others}
    )
    start = {"lr": GOOD, "dropout": 0.8, "floor": 0.8, "policy": "two"}
    tuner = bc.TwinTuner(space, HORIZON, start=start)
    play(tuner, Run(by_dropout))
    assert trials(tuner)[0].config == pytest.approx({**start, "dropout": 0.09}, abs=1e-9)
    assert tuner.incumbent["dropout"] < 0.4


@pytest.mark.parametrize(
    ("best", "expected"), [(0.8, 0.8), (0.5, MODERATE), (0.3, MODERATE), (0.09, 0.09), (0.0, 0.0)]
)
def test_strengths_end_on_the_rung_that_is_best(best, expected):
    """As given, moderate, weak or off."""

    def speed(config):
        return by_rate(config) * math.exp(-6 * abs(config["dropout"] - best))

    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1.0, log=True), "dropout": bc.Real(0.0, 0.9)})
    tuner = bc.TwinTuner(space, HORIZON, start={"lr": GOOD, "dropout": 0.8})
    session = bc.Session.of(tuner, run := Run(speed))
    for _ in range(40):  # before trials of single numbers
        decision = session.ask()
        run.train(decision.config)
        if decision.query:
            session.tell(decision, run.loss())
    assert tuner.incumbent["dropout"] == pytest.approx(expected)


def test_a_rate_that_the_search_left_alone_is_not_made_smaller_later():
    """A run that stalls at the user's own rate: the rate falls at the end anyway."""

    class Stalled(Run):
        @property
        def level(self):
            return min(super().level, 0.8)

    tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": GOOD})
    play(tuner, Stalled())
    assert all(decision.round < 30 for decision in trials(tuner))


def test_what_is_hardly_on_is_not_weakened():
    start = {"lr": GOOD, "decay": 1e-3, "dropout": 0.2, "smoothing": 0.1}
    tuner = bc.TwinTuner(REGULARIZED, HORIZON, start=start)
    play(tuner, Run(by_dropout))
    assert "learning rate" in trials(tuner)[0].reason


def test_a_tenfold_rate_that_leads_by_a_hair_is_not_taken():
    def speed(config):  # 0.1 is on the verge of diverging, as it is half a step below
        return {-2: 1.01, -3: 0.4, -4: 1.0, -6: 0.3}.get(round(2 * math.log10(config["lr"])), 0.2)

    tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": 1e-3})
    play(tuner, Run(speed))
    assert 0.999e-3 <= tuner.incumbent["lr"] <= 1.001e-2


def test_rates_that_are_level_leave_the_present_one():
    tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": 1e-3})
    play(tuner, Run(lambda config: 1.0 if config["lr"] < 0.5 else math.nan))
    assert tuner.incumbent["lr"] == pytest.approx(1e-3)


def test_where_nothing_is_learnt_at_first_trials_go_on_until_they_tell():
    class Late(Run):
        """A run whose level does not move for the first four rounds' worth of progress."""

        @property
        def level(self):
            return self.slope * math.log1p(max(self.progress - 4, 0))

    tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": 10 * GOOD})
    play(tuner, Late())
    assert GOOD / 3.5 < tuner.incumbent["lr"] < 3.5 * GOOD


def test_smaller_rates_that_are_only_level_leave_the_present_one():
    tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": 1e-3})
    play(tuner, Run(lambda config: 1.0 if config["lr"] < 2e-3 else 0.5))
    assert 0.5e-3 < tuner.incumbent["lr"] <= 1e-3  # somewhat further from the rate that is worse


def test_a_smaller_rate_that_only_calms_a_run_that_stalls_is_not_taken():
    class Calmed(Run):
        """A run that stalls for good; a smaller step lowers its loss at once, and no further."""

        @property
        def level(self):
            noisy = self.played and self.played[-1]["lr"] > 0.5 * GOOD
            return min(super().level, 1.0) - 0.2 * bool(noisy)

    tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": 10 * GOOD})
    play(tuner, Calmed())
    assert len([d for d in trials(tuner) if d.peak["lr"] < 0.5 * GOOD and d.round > 30]) > 5
    assert tuner.incumbent["lr"] > 0.5 * GOOD


def test_a_run_that_stalls_gets_a_smaller_rate_if_that_lasts():
    def speed_of(falls):
        def speed(config):
            late, small = run.progress > 30, config["lr"] < 0.5 * GOOD
            return (2.0 if small else 0.0) if late and falls else by_rate(config)

        return speed

    for falls in (True, False):
        run = Run()
        run.speed = speed_of(falls)
        tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": 10 * GOOD})
        play(tuner, run)
        assert (tuner.incumbent["lr"] < 0.5 * GOOD) == falls


def test_a_rate_that_diverges_does_not_hide_what_others_differ_by():
    class Diverging(Run):
        """Ten times the start is lost within a round, with a loss that is huge but finite."""

        @property
        def level(self):
            lost = any(config["lr"] > 20 * GOOD for config in self.played)
            return -12.0 if lost else super().level

    tuner = bc.TwinTuner(RATE, HORIZON, start={"lr": 10 * GOOD})
    play(tuner, Diverging(slope=0.2), rounds=HORIZON // 5)
    assert tuner.incumbent["lr"] < 5 * GOOD


def test_a_learning_rate_falls_in_the_last_fifth_within_its_range():
    space = bc.SearchSpace({"lr": bc.Real(3e-3, 1.0, log=True)})
    tuner = bc.TwinTuner(space, 100, start={"lr": GOOD})
    play(tuner, Run())
    rates = [decision.config["lr"] for decision in tuner.decisions]
    peaks = [decision.peak["lr"] for decision in tuner.decisions]
    assert rates[:80] == peaks[:80]
    assert rates[90] == pytest.approx(peaks[90] / 2, rel=1e-6)
    assert min(rates) == rates[-1] == 3e-3
    constant = bc.SearchSpace({"lr": bc.Scheduled(3e-3, 1.0, base="constant")})
    tuner = bc.TwinTuner(constant, 100, start={"lr": GOOD})
    play(tuner, Run())
    assert tuner.decisions[-1].config == tuner.decisions[-1].peak


def test_what_a_schedule_makes_of_a_peak_is_played():
    space = bc.SearchSpace(
        {"lr": bc.Scheduled(1e-5, 1.0), "warm": bc.Scheduled(0.1, 1, base="cosine")}
    )
    tuner = bc.TwinTuner(space, 100, start={"lr": 1e-3, "warm": 0.5})
    play(tuner, Run())
    last = tuner.decisions[-1]
    assert last.peak == tuner.incumbent
    assert last.config["lr"] == pytest.approx(last.peak["lr"] * 0.05)
    assert last.config["warm"] == pytest.approx(
        last.peak["warm"] * (1 + math.cos(0.99 * math.pi)) / 2
    )
    first = tuner.decisions[0]
    assert first.config == first.peak == {"lr": pytest.approx(1e-3), "warm": pytest.approx(0.5)}


@pytest.mark.parametrize("highest", [0.01001, 1.0])  # without and with a search of the rate
def test_twins_of_a_schedule_meet_the_same_factors(highest):
    """A trial is played at the place in the schedule that what it is compared with was played at."""
    rate = bc.Scheduled(0.001 if highest == 1.0 else 0.01, highest, base="cosine")
    space = bc.SearchSpace({"lr": rate, "dropout": bc.Real(0.0, 0.9)})
    tuner = bc.TwinTuner(space, 100, start={"lr": 0.01, "dropout": 0.7})
    play(tuner, Run(by_dropout))
    met, twins = {}, 0
    for decision in tuner.decisions:
        factor = decision.config["lr"] / decision.peak["lr"]
        if decision.reason.startswith("the incumbent"):
            met[decision.trained] = factor
        elif "goes on" not in decision.reason and decision.trained in met and decision.round < 9:
            assert factor == pytest.approx(met[decision.trained], rel=1e-9)
            twins += 1
    assert twins


@pytest.mark.parametrize("seed", [0, 1])
def test_a_start_that_diverges_by_another_hyperparameter_is_left_behind(seed):
    def speed(config):
        return by_rate(config) if config["dropout"] < 0.6 else math.nan

    start = {"lr": GOOD, "decay": 1e-3, "dropout": 0.65, "smoothing": 0.1}
    run = Run(speed)
    play(bc.TwinTuner(REGULARIZED, HORIZON, start=start, seed=seed), run)
    assert math.isfinite(run.level)
