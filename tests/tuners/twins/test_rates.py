"""The search of the learning rate on recorded short trainings of seven programs.

Validation losses after 1, 2, 3, 4, 6, 8 and 12 rounds of 180 or 200, from the first state, by decades
from the program's own rate, and the rate that ended best with a late decay (seed 100 of the programs in
``benchmarks.suite.compute_bound``).
"""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.curve import Slope
from botorch_costly.tuners.twins.rate_belief import estimated
from botorch_costly.tuners.twins.rates import RateSearch
from botorch_costly.tuners.twins.run_budget import RunBudget
from botorch_costly.tuners.twins.trials import Side, Start
from tests.oracles import rate_belief as oracle

ROUNDS = (1, 2, 3, 4, 6, 8, 12)
BEST = {
    "transformer_text": 0.5,
    "cifar_one_pass": 0.0,
    "recurrent_text": 0.5,
    "diffusion": 1.0,
    "tones": 1.0,
    "ratings": 0.5,
    "vae": 0.5,
}
LOSSES = {
    "diffusion": {
        -1.0: (0.9874, 0.9711, 0.9569, 0.9436, 0.9179, 0.8921, 0.8408),
        -0.5: (0.9556, 0.9161, 0.8772, 0.8394, 0.7642, 0.6858, 0.5412),
        0.0: (0.8809, 0.7781, 0.6752, 0.5798, 0.4704, 0.3902, 0.3173),
        0.5: (0.7729, 0.5604, 0.4742, 0.3879, 0.3222, 0.2801, 0.2252),
        1.0: (0.7211, 0.5611, 0.4599, 0.385, 0.3237, 0.2766, 0.2264),
        1.5: (3.011, 1.566, 1.28, 1.019, 1.006, 0.9911, 0.9214),
        2.0: (1163, 2605, 2316, 1231, 2768, 9.329, 6.668),
    },
    "tones": {
        -1.0: (2.907, 2.906, 2.906, 2.906, 2.906, 2.905, 2.901),
        -0.5: (2.907, 2.906, 2.904, 2.904, 2.902, 2.899, 2.882),
        0.0: (2.906, 2.903, 2.901, 2.899, 2.893, 2.874, 2.73),
        0.5: (2.904, 2.899, 2.894, 2.889, 2.821, 2.485, 2.17),
        1.0: (2.902, 2.892, 2.87, 2.743, 2.499, 2.299, 2.126),
        1.5: (2.899, 2.861, 3.736, 4.79, 5.387, 3.365, 2.51),
        2.0: (33.11, 644.5, math.inf, math.inf, math.inf, math.inf, math.inf),
    },
    "ratings": {
        -1.0: (1.418, 1.408, 1.4, 1.392, 1.378, 1.362, 1.327),
        -0.5: (1.373, 1.331, 1.281, 1.226, 1.12, 1.039, 0.937),
        0.0: (1.204, 1.063, 0.9795, 0.9271, 0.8694, 0.8486, 0.8199),
        0.5: (1.067, 0.9744, 0.9209, 0.884, 0.8522, 0.8368, 0.8194),
        1.0: (1.128, 1.006, 0.9483, 0.9126, 0.8624, 0.8494, 0.8403),
        1.5: (33.12, 9.621, 4.891, 3.347, 1.993, 1.551, 1.32),
        2.0: (math.inf, 5402, 2022, 1140, 478.5, 319.9, 165.5),
    },
    "vae": {
        -1.0: (533.4, 519.4, 505.1, 489.9, 454.5, 409.5, 329.3),
        -0.5: (503.2, 454.5, 395.4, 339, 285.1, 257.3, 236.6),
        0.0: (399.6, 302, 251.4, 238.5, 224, 217.2, 205.8),
        0.5: (261.4, 227.3, 219.1, 213.4, 202.8, 193.5, 178.8),
        1.0: (224.3, 224.3, 221.3, 216.9, 210.7, 205.2, 199.7),
        1.5: (264.5, 267, 245.2, 231.6, 220.8, 217, 216.3),
        2.0: (1416, 438.9, 293.8, 296.5, 259, 226.7, 222.4),
    },
    "transformer_text": {
        -2.0: (5.053, 5.01, 4.966, 4.923, 4.837, 4.754, 4.597),
        -1.5: (4.957, 4.822, 4.69, 4.564, 4.344, 4.176, 3.973),
        -1.0: (4.664, 4.311, 4.077, 3.958, 3.798, 3.652, 3.468),
        -0.5: (4.057, 3.834, 3.599, 3.48, 3.299, 3.184, 3.043),
        0.0: (3.657, 3.378, 3.201, 3.084, 2.961, 2.886, 2.765),
        0.5: (3.262, 3.035, 2.935, 2.872, 2.773, 2.677, 2.576),
        1.0: (3.159, 3.119, 3.049, 2.94, 2.865, 2.8, 2.7),
        1.5: (3.506, 3.186, 3.17, 3.139, 3.145, 3.125, 3.116),
    },
    "cifar_one_pass": {
        -2.0: (3.395, 3.029, 2.849, 2.787, 2.717, 2.649, 2.56),
        -1.5: (3.024, 2.784, 2.792, 2.751, 2.575, 2.446, 2.31),
        -1.0: (2.779, 2.846, 2.658, 2.392, 2.293, 2.182, 2.067),
        -0.5: (2.987, 2.572, 2.289, 2.201, 2.074, 1.987, 1.919),
        0.0: (3.175, 2.306, 2.184, 2.164, 2.034, 1.949, 1.854),
        0.5: (2.546, 2.312, 2.292, 2.279, 2.235, 2.195, 2.1),
        1.0: (2.387, 2.305, 2.302, 2.298, 2.303, 2.305, 2.333),
        1.5: (29.95, 2.379, 2.883, 3.712, 5.389, 6.452, 7.037),
    },
    "recurrent_text": {
        -1.5: (4.555, 4.545, 4.535, 4.525, 4.503, 4.478, 4.422),
        -1.0: (4.536, 4.503, 4.467, 4.426, 4.295, 3.973, 3.402),
        -0.5: (4.472, 4.318, 3.968, 3.463, 3.312, 3.193, 3.052),
        0.0: (4.068, 3.406, 3.274, 3.158, 2.919, 2.674, 2.453),
        0.5: (3.493, 3.218, 2.919, 2.799, 2.44, 2.299, 2.132),
        1.0: (3.02, 2.539, 2.401, 2.335, 2.15, 2.032, 1.895),
        1.5: (3.722, 2.761, 2.661, 2.502, 2.401, 2.389, 2.346),
    },
}
RATE = bc.SearchSpace({"lr": bc.Real(1e-6, 10.0, log=True)})
OWN = 1e-3


class Recorded:
    """A run whose loss is that of its rate after as many rounds; between recorded rates by a line."""

    def __init__(self, name):
        self.losses, self.played = LOSSES[name], []

    def train(self, config):
        self.played.append(math.log10(config["lr"] / OWN))

    def loss(self):
        at = min(range(len(ROUNDS)), key=lambda i: abs(ROUNDS[i] - len(self.played)))
        rates, rate = sorted(self.losses), self.played[-1]
        rate = min(max(rate, rates[0]), rates[-1])
        above = next(i for i, other in enumerate(rates) if other >= rate - 1e-9)
        low, high = rates[max(above - 1, 0)], rates[above]
        share = 1.0 if high == low else (rate - low) / (high - low)
        below, over = math.log(self.losses[low][at]), math.log(self.losses[high][at])
        # Beyond the recorded rates trainings are slower, or diverge.
        beyond = 0.3 * max(rates[0] - self.played[-1], 0.0)
        level = over if share > 1 - 1e-9 else (1 - share) * below + share * over
        return math.inf if self.played[-1] > rates[-1] + 0.1 else math.exp(level + beyond)

    def state_dict(self):
        return {"played": list(self.played)}

    def load_state_dict(self, state):
        self.played = list(state["played"])


def found(name, start):
    """The rate that is found from a start, in decades from the own one, and the rounds given back."""
    run = Recorded(name)
    tuner = bc.TwinTuner(RATE, 200, start={"lr": OWN * 10**start})
    session = bc.Session.of(tuner, run)
    while not session.tuner.given_back:
        decision = session.ask()
        run.train(decision.config)
        if decision.query:
            session.tell(decision, run.loss())
    return math.log10(tuner.incumbent["lr"] / OWN), tuner.given_back


@pytest.mark.parametrize("name", LOSSES)
def test_the_rate_of_a_recorded_program_is_found_from_any_start(name):
    answers = [found(name, start) for start in (0.0, -1.477, 1.0)]
    rates = [rate for rate, _ in answers]
    assert max(abs(rate - BEST[name]) for rate in rates) < 0.7
    assert max(rates) - min(rates) < 0.7
    assert max(lost for _, lost in answers) <= 30


@pytest.mark.parametrize("start", [0.0, -1.477, 1.0, -0.7, 0.3])
@pytest.mark.parametrize("name", LOSSES)
def test_rates_are_compared_after_equal_rounds(name, start, monkeypatch):
    """All rates of a bracket that have not diverged were trained for as long when it is judged."""
    judged, vertex = [], RateSearch._vertex

    def watched(self, *, early=False):
        sides = [self._sides[rate] for rate in self._bracket]
        alive = [side for side in sides if side.level > -math.inf]
        trained = self._budget.trained_of  # a rate without a state was trained for the first rounds
        judged.append({self._rounds if s.state is None else trained(s.state) for s in alive})
        return vertex(self, early=early)

    monkeypatch.setattr(RateSearch, "_vertex", watched)
    found(name, start)
    assert judged
    assert all(len(lengths) == 1 for lengths in judged)


def searched(levels, trained=0):
    """A search that knows the levels of three rates half a decade apart."""
    point = torch.zeros(1).double()
    sides = {
        rate: Side(point, level, None) for rate, level in zip((-0.5, 0, 0.5), levels, strict=True)
    }
    start = Start(0, sides[0], 3, Slope(0.1, 0.1), trained, 0)
    search = RateSearch(RunBudget(200, 0.3), start, 0, 0.1, 24, lambda side: None)
    search._sides, search._bracket = sides, list(sides)
    search._before = search._vertex()  # it stands still
    return search


def vertex_of(levels):
    return searched(levels)._vertex()


@pytest.mark.parametrize("best", [-0.3, 0.0, 0.12, 0.45])
@pytest.mark.parametrize("bend", [0.2, 1.0])
def test_the_maximizer_of_a_parabola(best, bend):
    assert vertex_of([-bend * (rate - best) ** 2 for rate in (-0.5, 0.0, 0.5)]) == pytest.approx(
        best
    )


@pytest.mark.parametrize("levels", [(0.0, -0.0175, 0.0), (0.0, 0.0, 0.0), (0.0, 0.001, -0.001)])
def test_rates_that_are_level_are_best_in_their_middle(levels):
    """Kind: the noise of levels sends the maximizer to an edge, or beyond it."""
    assert abs(vertex_of(levels)) < 0.05


@pytest.mark.parametrize(
    ("levels", "trained", "goes_down"),
    [
        ((-0.97, -0.975, -1.3), 0, True),
        ((-0.97, -0.975, -1.3), 30, False),  # late, small rates look better than they end
        ((-0.97, -1.1, -1.3), 30, True),
    ],
)
def test_a_late_search_takes_smaller_rates_only_without_a_doubt(levels, trained, goes_down):
    assert (searched(levels, trained)._change < 0) == goes_down


@pytest.mark.parametrize(("levels", "sign"), [((-0.3, -0.2, 0.0), 1), ((0.0, -0.2, -0.3), -1)])
def test_a_best_rate_at_an_edge_is_approached(levels, sign):
    assert 0.25 <= sign * vertex_of(levels) <= 0.75


@pytest.mark.parametrize("value", [-2.5, -0.4, 0.0, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("movement", [0.0, 0.3, -1.0])
def test_an_estimate_is_the_posterior(value, movement):
    mean, sd = oracle.posterior(
        value,
        movement,
        noise=CONSTANTS.rate_noise,
        near=CONSTANTS.rate_spread,
        far=3.0,
        share=0.5,
    )
    assert estimated(value, movement) == pytest.approx((mean, sd), abs=1e-6)


def test_what_still_moves_is_hardly_believed_and_what_is_far_is_not_drawn_back():
    assert estimated(0.8, 1.0).mean < 0.6 * estimated(0.8, 0.0).mean
    assert estimated(2.5, 0.0).mean > 0.9 * 2.5
    assert estimated(0.5, 0.0).mean < 0.8 * 0.5


def test_a_bracket_moves_to_no_rate_that_was_left_behind():
    search = searched((-0.2, -0.1, -0.3))
    for number, rate in enumerate(search._bracket):
        search._sides[rate] = search._sides[rate]._replace(state=number)
    search._sides[1.5] = search._sides[0.0]._replace(level=0.0, state=None)
    search._move()
    assert search._bracket == [0.0, 0.5]  # there is none below
    assert all(search._sides[rate].state is not None for rate in search._bracket)
