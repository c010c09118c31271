"""A network that diverged is rolled back; the tuner is told how bad it was, and no repair is rewarded."""

import io
import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, RestoreError, StateMismatchError
from botorch_costly.records import Decision
from botorch_costly.rewards import BeforeAfterReward, GainReward, GuardedReward
from tests.rewards.guarding import Weights, guarded


def test_a_network_that_diverged_is_rolled_back_to_a_copy():
    weights = Weights(1.0)
    reward = guarded(weights)
    assert reward(0.5, 0) is None
    weights.tensor.fill_(99.0)  # in place, as an optimizer does
    assert reward(0.9, 1) == pytest.approx(-math.log(0.9 / 0.5))
    assert weights.tensor.item() == 1.0
    assert reward.restores == 1
    weights.tensor.fill_(98.0)  # what was restored is no alias of what is kept
    reward(0.9, 2)
    assert weights.tensor.item() == 1.0
    assert reward.restores == 2


def test_a_restore_that_takes_what_it_is_given_does_not_get_the_only_copy():
    held = {"w": torch.ones(1)}

    def restore(state):
        held["w"] = state["w"]  # trained on in place from here

    reward = GuardedReward(GainReward("loss"), lambda: held, restore)
    reward(0.5, 0)
    for round in (1, 2):
        held["w"].fill_(99.0)
        reward(0.9, round)
        assert held["w"].item() == 1.0


def test_the_rounds_of_a_divergence_are_not_those_of_what_follows():
    reward = guarded(Weights())
    reward(0.5, 0)
    reward(5.0, 40)
    reward(0.45, 41)  # one round after the return, not 41
    assert reward._kept.smooth == pytest.approx(-math.log(0.5) + 0.3 * math.log(0.5 / 0.45))


def test_the_next_gain_counts_from_the_state_restored():
    reward = guarded(Weights())
    reward(0.5, 0)
    reward(5.0, 3)
    assert reward(0.4, 5) == pytest.approx(math.log(0.5 / 0.4) / 2)  # not 5.0 / 0.4


def test_within_the_margin_nothing_is_rolled_back():
    weights = Weights()
    reward = guarded(weights, margin=0.3)
    reward(0.5, 0)
    weights.tensor.fill_(2.0)
    reward(0.5 * math.exp(0.29), 1)
    assert weights.tensor.item() == 2.0
    assert reward.restores == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_metric_that_is_not_finite_is_the_worst_gain_and_no_failed_query(bad):
    weights = Weights(1.0)
    reward = guarded(weights, clip=2.0)
    reward(0.5, 0)
    weights.tensor.fill_(math.nan)
    assert reward(bad, 1) == -2.0
    assert weights.tensor.item() == 1.0


def test_a_network_broken_before_the_first_good_query_stays_as_it_is():
    weights = Weights(7.0)
    reward = guarded(weights)
    assert math.isnan(reward(math.nan, 0))
    assert weights.tensor.item() == 7.0
    assert reward(0.5, 1) is None
    weights.tensor.fill_(9.0)
    reward(5.0, 2)
    assert weights.tensor.item() == 7.0


def test_what_is_kept_follows_what_is_nearly_best():
    weights = Weights()
    reward = guarded(weights, margin=0.3)
    for round, (loss, value) in enumerate([(0.5, 1.0), (0.4, 2.0), (0.45, 3.0), (0.58, 4.0)]):
        weights.tensor.fill_(value)
        reward(loss, round)
    assert reward.restores == 0
    weights.tensor.fill_(5.0)
    reward(2.0, 4)
    assert weights.tensor.item() == 3.0  # the fourth was further below the best than two thirds


def same(one, other, but_for):
    """Compare two states of guards but for what they keep."""
    drop = [{k: v for k, v in state["kept"].items() if k != but_for} for state in (one, other)]
    return drop[0] == drop[1] and one["reward"] == other["reward"]


def test_a_divergence_after_a_quick_improvement_is_noticed_and_not_kept():
    weights = Weights()
    reward = guarded(weights, margin=0.3)
    for round, loss in enumerate([2.3, 0.5, 0.12, 0.1]):
        weights.tensor.fill_(float(round))
        reward(loss, round)
    weights.tensor.fill_(9.0)
    reward(0.2, 4)
    assert reward.restores == 1
    assert weights.tensor.item() == 3.0


def test_one_query_far_below_what_is_kept_does_not_replace_it():
    weights = Weights()
    reward = guarded(weights, margin=0.3)
    reward(1.0, 0)
    weights.tensor.fill_(1.0)
    reward(0.1, 1)
    weights.tensor.fill_(2.0)
    reward(0.6, 2)  # lucky before or diverged now: neither can be told, and the better copy is kept
    assert reward.restores == 0
    weights.tensor.fill_(3.0)
    reward(5.0, 3)
    assert weights.tensor.item() == 1.0


def test_rare_queries_are_smoothed_by_the_rounds_between():
    often, seldom = guarded(Weights()), guarded(Weights())
    for round in range(41):
        often(0.5 if round == 0 else 0.4, round)
    seldom(0.5, 0)
    seldom(0.4, 40)
    assert seldom._kept.smooth == pytest.approx(often._kept.smooth, abs=1e-6)


def test_one_lucky_query_does_not_make_the_usual_level_a_divergence():
    reward = guarded(Weights(), margin=0.3)
    levels = [0.0, 0.0, 0.8, 0.0, 0.0, 0.0]  # nats above the usual
    for round, level in enumerate(levels):
        reward(math.exp(-level), round)
    assert reward.restores == 0


def test_a_slow_decline_is_caught_as_well():
    """Each step is small; together they are a divergence."""
    weights = Weights()
    reward = guarded(weights, margin=0.3)
    for round in range(7):  # down to 0.5 exp(0.3), on the brink
        weights.tensor.fill_(float(round))
        reward(0.5 * math.exp(0.0499 * round), round)
    assert reward.restores == 0
    reward(0.5 * math.exp(0.35), 7)
    assert weights.tensor.item() == 4.0  # the last within two thirds of the margin


def test_accuracies_fall_by_points():
    weights = Weights()
    reward = guarded(weights, kind="accuracy")
    reward(0.80, 0)
    weights.tensor.fill_(3.0)
    reward(0.71, 1)
    assert weights.tensor.item() == 3.0
    reward(0.69, 2)
    assert reward.restores == 1


def test_networks_and_optimizers_come_back_together():
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(network.parameters())
    reward = GuardedReward.of(GainReward("loss"), network, optimizer)

    def step():
        network(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    step()
    reward(0.5, 0)
    weight, count = network.weight.clone(), optimizer.state[network.weight]["step"].clone()
    step()
    assert not torch.equal(network.weight, weight)
    reward(3.0, 1)
    assert torch.equal(network.weight, weight)
    assert optimizer.state[network.weight]["step"] == count
    step()  # the optimizer still holds the network
    assert not torch.equal(network.weight, weight)


def test_a_restore_that_raises_is_named_and_can_be_tried_again():
    weights, broken = Weights(1.0), [True]

    def restore(state):
        if broken:
            raise OSError("the disk is gone")
        weights.load_state_dict(state)

    reward = GuardedReward(GainReward("loss"), weights.state_dict, restore)
    reward(0.5, 0)
    weights.tensor.fill_(9.0)
    before = reward.state_dict()["reward"]
    with pytest.raises(RestoreError, match=r"restore: Expected .* Received OSError\('the disk"):
        reward(5.0, 1)
    assert reward.state_dict()["reward"] == before
    assert reward.restores == 0
    broken.clear()
    assert reward(5.0, 1) == -1.0
    assert weights.tensor.item() == 1.0


@pytest.mark.parametrize("when", ["first", "later"])
def test_a_copy_that_cannot_be_made_loses_nothing(when):
    weights, full = Weights(), [True]

    def save():
        if full and (when == "first" or weights.tensor.item() == 2.0):
            raise MemoryError
        return weights.state_dict()

    reward = GuardedReward(GainReward("loss"), save, weights.load_state_dict)
    if when == "later":
        reward(0.5, 0)
        weights.tensor.fill_(2.0)
    before = reward.state_dict()
    with pytest.raises(MemoryError):
        reward(0.4, 1)
    assert reward.state_dict() == before
    full.clear()
    expected = None if when == "first" else pytest.approx(math.log(0.5 / 0.4))
    assert reward(0.4, 1) == expected


def test_an_interrupted_restore_can_be_tried_again():
    weights, interrupted = Weights(), [True]

    def restore(state):
        if interrupted:
            raise KeyboardInterrupt
        weights.load_state_dict(state)

    reward = GuardedReward(GainReward("loss"), weights.state_dict, restore)
    reward(0.5, 0)
    with pytest.raises(KeyboardInterrupt):
        reward(5.0, 1)
    interrupted.clear()
    assert reward(5.0, 1) == -1.0


def test_a_metric_may_be_a_tensor_with_a_gradient():
    reward = guarded(Weights())
    reward(torch.tensor(0.5, requires_grad=True), 0)
    assert reward(torch.tensor(0.4, requires_grad=True), 1) == pytest.approx(math.log(0.5 / 0.4))


def test_a_guard_resumes_from_its_state():
    one, two = Weights(), Weights()
    first, second = guarded(one), guarded(two)
    first(0.5, 0)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    two.tensor.fill_(9.0)
    gain = pytest.approx(-math.log(0.8 / 0.5))
    assert second(0.8, 1) == gain
    assert first(0.8, 1) == gain
    assert two.tensor.item() == 1.0
    assert second.restores == 1
    two.tensor.fill_(5.0)
    assert second(0.45, 2) == first(0.45, 2)
    assert same(first.state_dict(), {**second.state_dict()}, but_for="state")


def test_training_on_leaves_a_loaded_state_as_it_was():
    weights = Weights()
    reward, other = guarded(weights), guarded(Weights())
    reward(0.5, 0)
    state = reward.state_dict()
    other.load_state_dict(state)
    state["kept"]["state"][0]["w"].fill_(77.0)
    other(5.0, 1)
    assert other._kept.state[0]["w"].item() == 1.0


def test_a_state_of_other_options_is_refused_and_nothing_changes():
    reward = guarded(Weights(), margin=0.5)
    reward(0.5, 0)
    before = reward.state_dict()
    for state in (guarded(Weights()).state_dict(), {}, {"kept": {}}):
        with pytest.raises(StateMismatchError):
            reward.load_state_dict(state)
    other = GuardedReward.of(GainReward("loss", scale=2.0), Weights(), margin=0.5)
    with pytest.raises(StateMismatchError):
        reward.load_state_dict(other.state_dict())
    assert reward.state_dict() == before


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((BeforeAfterReward("loss"), dict, print), "reward"),
        (("loss", dict, print), "reward"),
        ((GainReward(clip=math.inf), dict, print), "reward"),
        ((GainReward(), 3, print), "save"),
        ((GainReward(), dict, None), "restore"),
    ],
)
def test_bad_options_are_named(arguments, name):
    with pytest.raises(InvalidArgumentError, match=f"{name}: Expected"):
        GuardedReward(*arguments)


@pytest.mark.parametrize("margin", [0.0, -1.0, math.nan, math.inf, "0.1"])
def test_a_margin_that_is_none_is_named(margin):
    with pytest.raises(InvalidArgumentError, match="margin: Expected"):
        GuardedReward(GainReward(), dict, print, margin=margin)
    with pytest.raises(TypeError):
        GuardedReward(GainReward(), dict, print, margin)


def test_something_must_be_guarded():
    with pytest.raises(InvalidArgumentError, match="parts: Expected at least one"):
        GuardedReward.of(GainReward())
    with pytest.raises(InvalidArgumentError, match=r"parts: Expected parts with a .* 3"):
        GuardedReward.of(GainReward(), Weights(), 3)


def test_a_class_is_no_part():
    expected = "parts: Expected networks, .* themselves, and no class; Received <class .*AdamW"
    with pytest.raises(InvalidArgumentError, match=expected):
        GuardedReward.of(GainReward(), Weights(), torch.optim.AdamW)


@pytest.mark.parametrize("bad", [-1.0, "0.5", None])
def test_a_metric_that_is_none_is_refused_and_nothing_is_rolled_back(bad):
    weights = Weights()
    reward = guarded(weights)
    reward(0.5, 0)
    weights.tensor.fill_(2.0)
    with pytest.raises(InvalidArgumentError, match="metric"):
        reward(bad, 1)
    assert weights.tensor.item() == 2.0
    assert reward(0.4, 1) == pytest.approx(math.log(0.5 / 0.4))


def test_a_guard_does_not_mix_decisions_and_bare_rounds():
    reward = guarded(Weights())
    reward(0.5, 0)
    before = reward.state_dict()
    with pytest.raises(InvalidArgumentError, match="bare rounds, as in the calls before"):
        reward(0.4, Decision(1, {"lr": 0.1}, query=True, reason=""))
    assert reward.state_dict() == before


def test_a_state_that_cannot_be_loaded_changes_nothing():
    reward = guarded(Weights())
    reward(0.5, 0)
    before = reward.state_dict()
    state = {**before, "reward": {**before["reward"], "last": 3}}
    state["kept"] = {**before["kept"], "best": 7.0}
    with pytest.raises(StateMismatchError):
        reward.load_state_dict(state)
    assert reward.state_dict() == before
