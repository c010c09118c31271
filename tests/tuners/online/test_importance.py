"""What a run depended on: found where it is known, and honest where nothing is."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.numerics.sensitivity import sensitivity
from botorch_costly.tuners import importance

SPACE = bc.SearchSpace(
    {
        "a": bc.Real(0.0, 1.0),
        "policy": bc.Choice(["none", "light", "strong"]),
        "idle": bc.Real(0.0, 1.0),
        "fixed": bc.Choice(["only"]),
    }
)


def run(reward, rounds=60, **options):
    tuner = bc.OnlineTuner(
        SPACE,
        rounds,
        design=bc.Design(kind="sobol", rounds=rounds, start_rounds=1),
        hold=bc.Hold(share=0.0),
        rewards=bc.RewardScale(),
        prior=bc.Prior(noise=0.01, forgetting=0.1),
        **options,
    )
    for round in range(rounds):
        decision = tuner.ask()
        tuner.tell(decision, reward(decision.config, round))
    return tuner


def drifting(config, round):
    """In the first half the policy matters, in the second the number."""
    return float(config["policy"] == "strong") if round < 30 else 2 * config["a"]


def test_it_is_the_share_of_what_mattered_then():
    found = importance(run(drifting), [5, 55])
    assert found.names == ("a", "policy", "idle")
    assert found.rounds == (5, 55)
    early, late = ([round(share, 2) for share in row] for row in found.total)
    assert early[1] > 0.8
    assert early[0] < 0.2
    assert late[0] > 0.8
    assert late[1] < 0.2
    assert early[2] < 0.15
    assert late[2] < 0.15
    for row in found.alone:
        assert sum(row) <= 1.05


def test_what_matters_together_explains_less_alone():
    """The better policy is another one on each side of the middle."""

    def crossed(config, round):
        return float((config["a"] > 0.5) == (config["policy"] == "strong"))

    found = importance(run(crossed), [59])
    (alone,), (total,) = found.alone, found.total
    assert total[0] > alone[0] + 0.2
    assert total[1] > alone[1] + 0.2


def test_it_is_by_definition_over_the_configurations_that_can_be_played():
    """The pairs of a design, as what they decode to."""
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "depth": bc.Integer(1, 3)})
    start = {"lr": 1e-2, "depth": 2}
    tuner = bc.OnlineTuner(space, 30, start=start, hold=bc.Hold(share=0.0), seed=2)
    for _ in range(20):
        decision = tuner.ask()
        lr = math.log10(decision.config["lr"])
        tuner.tell(decision, decision.config["depth"] * lr)
    found = importance(tuner, [19], points=64)
    drawn = torch.quasirandom.SobolEngine(4, scramble=True, seed=0).draw(64, dtype=torch.float64)
    pairs = [
        torch.stack([space.encode(space.decode(x)) for x in half])
        for half in (drawn[:, :2], drawn[:, 2:])
    ]

    def mean(points):
        configs = [space.decode(x) for x in points]
        return tuner.predict(configs, 19)[0]

    expected = sensitivity(mean, *pairs, [slice(0, 1), slice(1, 2)])
    assert found.alone[0] == pytest.approx(expected.first_order.tolist(), abs=1e-6)
    assert found.total[0] == pytest.approx(expected.total.tolist(), abs=1e-6)


def test_rounds_are_spread_over_the_run():
    found = importance(run(drifting, 64), points=16)
    assert found.rounds == tuple(range(0, 64, 2))
    assert len(found.alone) == len(found.total) == 32


def test_where_nothing_is_known_nothing_matters():
    tuner = bc.OnlineTuner(SPACE, 20)
    tuner.ask()
    assert importance(tuner).total == ((0.0, 0.0, 0.0),)


def test_it_depends_on_its_seed_alone_and_changes_nothing():
    tuner, other = run(drifting, 12), run(drifting, 12)
    state = torch.get_rng_state()
    first, again = (importance(tuner, [3], points=64) for _ in range(2))
    assert torch.equal(state, torch.get_rng_state())
    assert first == again != importance(tuner, [3], points=64, seed=1)
    assert repr(tuner.state_dict()) == repr(other.state_dict())


@pytest.mark.parametrize("rounds", [[], [0, 99]])
def test_rounds_that_were_not_decided_on_are_refused(rounds):
    with pytest.raises(InvalidArgumentError, match="rounds"):
        importance(run(drifting, 3), rounds)
    with pytest.raises(InvalidArgumentError, match="points"):
        importance(run(drifting, 3), points=1)
