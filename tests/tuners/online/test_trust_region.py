"""Where a run cannot go back, it steps away from its start in small steps, and further by success."""

import math
import statistics

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.tuners.online.trust_region import RECENT, StepLimits, TrustRegion
from tests.cases import slow

SPACE = bc.SearchSpace(
    {
        "lr": bc.Real(1e-6, 1e-1, log=True),
        "momentum": bc.Real(0.0, 0.99),
        "wd": bc.Real(0.0, 0.1),
        "dropout": bc.Real(0.0, 0.6),
    }
)
START = {"lr": 1e-3, "momentum": 0.9, "wd": 0.0, "dropout": 0.1}
LASTING = ("lr", "momentum", "wd")


def play(tuner, rounds, reward):
    """Play rounds, tell rewards of round and configuration, and check each against its region."""
    for _ in range(rounds):
        decision = tuner.ask()
        for name, (low, high) in tuner.trust_region.items():
            assert low - 1e-12 <= decision.config[name] <= high * (1 + 1e-9)
        if decision.query:
            tuner.tell(decision, reward(decision.round, decision.config))
    return tuner


def climb(round, config):
    """A gain that grows with the learning rate, up to 3e-2, above which it is poor."""
    rate = config["lr"]
    return math.log10(rate / 1e-7) if rate <= 3e-2 else -1.0


# -- the rule, against one that keeps all it was told -----------------------------------------------


class Naive:
    """The rule in plain words, from the list of all that happened."""

    def __init__(self):
        self.lr, self.told, self.widened, self.failures, self.waits = 1e-3, [], 0, 0, 0
        self.calmed = self.moved = False

    def tell(self, is_away, reward, lr):
        calmed, self.calmed = self.calmed, False
        at_home = [r for kind, r in self.told if kind == "home"][-RECENT:]
        debt = self.told[-1][1] if self.told and self.told[-1][0] == "debt" else 0.0
        if not is_away:
            self.waits = max(self.waits - 1, 0)
            counts = reward is not None and not calmed
            self.told.append(("home", reward - debt) if counts else ("nothing", 0.0))
        elif reward is not None and at_home and all(reward - debt > r for r in at_home):
            falls = lr < self.lr and statistics.median(at_home) > 0
            self.lr = self.lr if falls else lr
            self.calmed = self.moved = True
            self.widened, self.failures, self.waits = min(self.widened + 1, 9), 0, 0
            self.told.append(("success", reward))
        else:
            counts = reward is not None and bool(at_home)
            usual = statistics.median(at_home) if counts else 0.0
            self.calmed = counts and reward - debt > usual
            self.told.append(("debt", max(usual - reward, 0.0) if counts else 0.0))
            self.failures = min(self.failures + 1, 5)
            self.widened, self.waits = self.widened // 2, 2**self.failures - 1


@pytest.mark.parametrize("seed", range(20))
def test_the_rule_is_that_of_the_list(seed):
    generator = torch.Generator().manual_seed(seed)
    region, naive = TrustRegion(START, ("lr",)), Naive()
    for interval in range(60):
        away, fails, draw, rate = torch.rand(4, generator=generator, dtype=torch.float64).tolist()
        lr = 10 ** (-4 + 2 * rate)
        reward = None if fails < 0.1 else draw - (0.2 if seed % 2 else 0.8)
        region = region.chosen(interval, is_away=away < 0.4, in_design=False)
        region = region.learned(interval, reward, {**START, "lr": lr})
        naive.tell(away < 0.4, reward, lr)
        assert (region.center["lr"], region.has_moved) == (naive.lr, naive.moved)
        assert (region.widened, region.failures, region.waits) == (
            naive.widened,
            naive.failures,
            naive.waits,
        )


def after(*events, region=None):
    """Return the region after events: ``("home" or "away", reward)``; the rate away is twice as high."""
    region = TrustRegion(START, ("lr",)) if region is None else region
    for interval, (where, reward) in enumerate(events):
        region = region.chosen(interval, is_away=where == "away", in_design=False)
        region = region.learned(interval, reward, {**START, "lr": 2e-3})
    return region


HOME = [("home", 0.1), ("home", 0.3), ("home", 0.2)]


def test_a_success_moves_and_widens_and_a_failure_narrows():
    won = after(*HOME, ("away", 0.31))
    assert (won.center["lr"], won.widened, won.waits) == (2e-3, 1, 0)
    lost = after(*HOME, ("away", 0.3))
    assert (lost.center["lr"], lost.widened, lost.waits) == (1e-3, 0, 1)
    assert after(*HOME, ("away", 0.0), ("home", 0.2), ("away", 0.0)).waits == 3
    assert after(("away", 9.0)).widened == 0  # nothing to compare with


@pytest.mark.parametrize("reward", [None, -1e300, -1.0])
def test_a_failed_query_or_a_huge_loss_never_widens(reward):
    region = after(*HOME, *[("away", reward)] * 5)
    assert (region.widened, region.center["lr"]) == (0, 1e-3)


def test_a_recovery_is_no_success():
    """The kind: after a round that broke the network, the next one gains whatever it plays."""
    region = after(*HOME, ("away", -0.5), ("away", 0.5))
    assert region.widened == 0
    assert after(*HOME, ("away", -0.5), ("away", 1.1)).widened == 1  # 0.7 were owed


def test_a_lower_rate_counts_only_where_home_gains_nothing():
    for rewards, moved in ((0.1, 1e-3), (-0.1, 1e-4)):
        region = after(*[("home", rewards)] * 3).chosen(9, is_away=True, in_design=False)
        assert region.learned(9, 1.0, {**START, "lr": 1e-4}).center["lr"] == moved


def test_what_home_loses_after_a_calm_is_no_sign_that_it_gains_nothing():
    """The kind: a smaller rate gains at once, and the larger one at home takes that back."""
    for events in ([("away", 0.29)], [("away", 0.31)]):
        region = after(*HOME, *events, ("home", -9.0))
        assert region.rewards == (0.1, 0.3, 0.2)


def test_home_is_the_start_until_an_excursion_succeeds():
    """The kind: while a network learns, each configuration gains, and an early round gains most."""
    tuner = bc.OnlineTuner(SPACE, 120, start=START)
    play(tuner, 120, lambda round, config: 1 / (1 + round) - (config["dropout"] - 0.1) ** 2)
    assert sum(d.config == START for d in tuner.decisions) > 80


def test_an_interval_without_a_query_is_played_at_home():
    tuner = bc.OnlineTuner(SPACE, 120, start=START, limits=bc.Limits(max_queries=20))
    play(tuner, 120, lambda round, config: -abs(config["dropout"] - 0.1) - round / 100)
    assert tuner.queries == 20
    assert all(d.config == START for d in tuner.decisions[-40:])


def test_an_interval_of_the_users_counts_for_nothing():
    region = after(*HOME)
    assert region.learned(7, 99.0, START) == region


# -- how far it reaches ------------------------------------------------------------------------------


def test_it_reaches_a_factor_around_rates_and_decays_and_one_less_a_momentum():
    limits = StepLimits(SPACE, LASTING, 1.5).limits(START, 0)
    assert limits["lr"] == pytest.approx((1e-3 / 1.5, 1.5e-3))
    assert limits["momentum"] == pytest.approx((0.85, 1 - 0.1 / 1.5))
    assert limits["wd"] == (0.0, 0.0)
    wider = StepLimits(SPACE, LASTING, 1.5).limits(START, 2)
    assert wider["lr"] == pytest.approx((1e-3 / 1.5**3, 1e-3 * 1.5**3))


@pytest.mark.parametrize("rate", [1e-6, 1e-1])
def test_a_start_at_a_bound_stays_in_the_space(rate):
    start = {**START, "lr": rate, "momentum": 0.99}
    tuner = play(bc.OnlineTuner(SPACE, 40, start=start), 40, climb)
    for decision in tuner.decisions:
        SPACE.check(decision.config)
    low, high = StepLimits(SPACE, LASTING, 1.5).limits(start, 0)["lr"]
    assert low < high


# -- whole runs --------------------------------------------------------------------------------------


def test_it_widens_far_beyond_the_start_where_larger_rates_gain_more():
    start = {**START, "lr": 3e-5}
    tuner = play(bc.OnlineTuner(SPACE, 80, start=start), 80, climb)
    assert max(d.config["lr"] for d in tuner.decisions[-20:]) > 1e-3
    assert tuner.decisions[0].config == start


def test_where_nothing_is_better_a_run_stays_at_home():
    tuner = bc.OnlineTuner(SPACE, 200, start=START)
    play(tuner, 200, lambda round, config: -abs(math.log(config["lr"] / 1e-3)) - config["dropout"])
    rates = [d.config["lr"] for d in tuner.decisions]
    assert sum(rate == 1e-3 for rate in rates[40:]) > 120
    assert 1e-3 / 3 < min(rates) <= max(rates) < 3e-3


def test_decays_of_zero_stay_zero_and_free_parameters_have_half_their_range():
    tuner = play(bc.OnlineTuner(SPACE, 60, start=START), 60, lambda round, config: 1.0)
    assert {d.config["wd"] for d in tuner.decisions} == {0.0}
    assert 0.3 < max(d.config["dropout"] for d in tuner.decisions) <= 0.4 + 1e-12


@pytest.mark.parametrize(
    ("when", "query"), [slow((7, None)), (26, None), (31, bc.ConfidenceQuery(0.8))]
)
def test_a_resumed_run_goes_on_alike(when, query):
    """Also where the region has changed since the last choice."""
    tuner, other = (bc.OnlineTuner(SPACE, 40, start=START, query=query, seed=4) for _ in range(2))
    play(tuner, when, climb)
    other.load_state_dict(tuner.state_dict())
    assert other.trust_region == tuner.trust_region
    assert play(other, 40 - when, climb).decisions == play(tuner, 40 - when, climb).decisions


@pytest.mark.parametrize(
    "options", [{}, {"start": START, "limits": bc.Limits(rate_factor=math.inf)}]
)
def test_without_a_start_or_limit_there_is_no_region(options):
    tuner = bc.OnlineTuner(SPACE, 60, **options)
    assert tuner.trust_region == {}
    assert "region" not in tuner.summary()
    rates = [d.config["lr"] for d in play(tuner, 60, lambda round, config: 0.0).decisions]
    assert max(rates) / min(rates) > 1e3
    published = bc.OnlineTuner.as_published(SPACE, 60, start=START)
    assert published.trust_region == {}


def test_a_space_without_rates_has_no_region():
    """What probabilities do to a network passes: a run that hardly left its home stayed at a poor one."""
    space = bc.SearchSpace({"flip": bc.Real(0, 1), "noise": bc.Real(0, 1)})
    start, played = {"flip": 0.5, "noise": 0.5}, []
    for limits in (bc.Limits(), bc.Limits(rate_factor=math.inf)):
        tuner = bc.OnlineTuner(space, 60, start=start, limits=limits, seed=3)
        for _ in range(60):
            decision = tuner.ask()
            if decision.query:
                tuner.tell(decision, -decision.config["flip"])
        assert tuner.trust_region == {}
        played.append([decision.config for decision in tuner.decisions])
    assert played[0] == played[1]


def test_the_summary_names_the_region_and_its_edge():
    tuner = bc.OnlineTuner(SPACE, 60, start=START)
    assert "trust region, widened by success: lr 0.000667 to 0.0015" in tuner.summary()
    assert "at the edge" not in tuner.summary()
    tuner.enqueue({**START, "lr": 1.5e-3})
    assert "at the edge of its trust region: lr" in tuner.summary()


def test_a_limit_of_another_factor_is_another_option():
    one = bc.OnlineTuner(SPACE, 60, start=START)
    changed = bc.OnlineTuner(SPACE, 60, start=START, limits=bc.Limits(rate_factor=2.0))
    with pytest.raises(errors.StateMismatchError, match="limits"):
        changed.load_state_dict(one.state_dict())


def test_a_parameter_of_another_role_is_free():
    other = bc.SearchSpace({"temperature": bc.Real(1e-5, 1e-1, log=True)})
    tuner = bc.OnlineTuner(other, 60, start={"temperature": 1e-3})
    found = [
        decision.config["temperature"] for decision in play(tuner, 60, lambda *_: 0.0).decisions
    ]
    assert max(found) / min(found) > 1e2


@pytest.mark.parametrize("factor", [1.0, 0.5, -3, math.nan, "3", None, True])
def test_a_limit_is_a_factor_above_one(factor):
    with pytest.raises(errors.InvalidArgumentError, match="rate_factor"):
        bc.Limits(rate_factor=factor)


def test_a_scheduled_rate_is_refused():
    space = bc.SearchSpace({"lr": bc.Scheduled(1e-5, 1e-1)})
    with pytest.raises(errors.InvalidSpaceError, match="TwinTuner"):
        bc.OnlineTuner(space, 60)
