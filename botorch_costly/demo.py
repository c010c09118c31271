"""The command ``botorch-costly demo``: a small network is tuned from a bad setting while it trains.

It needs no data: ten random shapes of 8 x 8 pixels are shifted and covered with noise, and a network with
one hidden layer learns to classify them.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from botorch_costly.ask_tell.saving import save
from botorch_costly.errors import check_count
from botorch_costly.integrations.loggers import LogEntry
from botorch_costly.integrations.loggers.progress_bar import line_of
from botorch_costly.parameters import Real
from botorch_costly.plain import config_text
from botorch_costly.query import PricedQuery
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import Decision, Observation
from botorch_costly.rewards import GainReward, GuardedReward
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.baselines import FixedTuner
from botorch_costly.tuners.online import OnlineTuner

ROUNDS = 240
_SHARE = 4  # rounds per query of the budget
_CLASSES, _SIDE = 10, 8
_STEPS, _BATCH = 10, 50  # optimizer steps of a round, and their batch size
_NOISE = 0.25  # standard deviation of the noise of the pictures

SPACE = SearchSpace(
    {"lr": Real(1e-3, 1.0, log=True), "dropout": Real(0.0, 0.8), "noise": Real(0.0, 1.5)}
)
BAD = {"lr": 0.005, "dropout": 0.7, "noise": 1.2}
GOOD = {"lr": 0.05, "dropout": 0.2, "noise": 0.3}


Show = Callable[[Decision, Observation], None]


class Examples(NamedTuple):
    """Pictures and their labels."""

    pictures: Tensor  # shape: (n, 64)
    labels: Tensor  # shape: (n,)


class Training:
    """A run of the network, with the hyperparameters that a tuner chooses.

    Args:
        examples: Examples for training, validation and test.
        seed: Seed of the weights, the batches, the noise and the dropout.
    """

    def __init__(self, examples: tuple[Examples, Examples, Examples], seed: int) -> None:
        torch.manual_seed(check_seed(seed))
        self._train, self._validation, self._test = examples
        self._dropout = nn.Dropout()
        hidden = nn.Linear(_SIDE**2, 128)
        self.network = nn.Sequential(hidden, nn.ReLU(), self._dropout, nn.Linear(128, _CLASSES))
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1, momentum=0.9)
        self.reward = GuardedReward.of(GainReward("loss"), self.network, self.optimizer)

    def run(self, tuner: OnlineTuner | FixedTuner, rounds: int, show: Show) -> None:
        """Train for ``rounds`` rounds; query as decided, and in the last round of the horizon."""
        for _ in range(rounds):
            decision = tuner.ask()
            self._train_one_round(**decision.config)
            if decision.query:
                loss = self._loss()
                told = tuner.tell(decision, self.reward(loss, decision), metric=loss)
                show(decision, told)

    def accuracy(self) -> float:
        """Return the test accuracy."""
        predicted = self._logits(self._test).argmax(-1)
        return (predicted == self._test.labels).double().mean().item()

    def _train_one_round(self, lr: Any, dropout: Any, noise: Any) -> None:
        self.optimizer.param_groups[0]["lr"] = lr
        self._dropout.p = dropout
        self.network.train()
        for _ in range(_STEPS):
            rows = torch.randint(len(self._train.labels), (_BATCH,))
            pictures = self._train.pictures[rows]
            logits = self.network(pictures + noise * torch.randn_like(pictures))
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(logits, self._train.labels[rows]).backward()
            self.optimizer.step()

    @torch.no_grad()
    def _logits(self, examples: Examples) -> Tensor:
        self.network.eval()
        logits: Tensor = self.network(examples.pictures)
        return logits

    def _loss(self) -> float:
        logits = self._logits(self._validation)
        return nn.functional.cross_entropy(logits, self._validation.labels).item()


def demo(
    say: Callable[[str], None],
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
) -> None:
    """Train with a bad setting, with a good one, and with a tuner that starts from the bad one.

    Args:
        say: Function that prints a line of text.
        rounds: Rounds of each of the three runs; a quarter of them may be queried.
        seed: Seed of the pictures, the network and the tuner.
        path: Path to save the tuned run to; it is not saved if omitted.

    Raises:
        InvalidArgumentError: If ``rounds`` is not an integer >= 4, or ``seed`` not an integer >= 0.
    """
    rounds, seed = check_count("rounds", rounds, _SHARE), check_seed(seed)
    budget = rounds // _SHARE
    say(
        f"A network learns ten shapes in {rounds} rounds. It starts with a bad setting, which a tuner"
    )
    say(f"changes during training. A query is a validation pass; the budget is {budget} queries.")
    say(f"The bad setting: {config_text(BAD)}\n")
    tuner = OnlineTuner(SPACE, rounds, start=BAD, query=PricedQuery(budget=budget), seed=seed)

    def show(decision: Decision, observation: Observation) -> None:
        entry = LogEntry(
            decision=decision,
            observation=observation,
            queries=tuner.queries,
            budget=budget,
            horizon=rounds,
        )
        say(f"{line_of(entry)}  {config_text(decision.config)}")

    with torch.random.fork_rng(devices=()):
        examples = examples_of(seed)
        tuned = Training(examples, seed)
        tuned.run(tuner, rounds // 2, show)
        say(f"\nHalfway: {tuner.diagnose()}\n")
        tuned.run(tuner, rounds - rounds // 2, show)
        fixed = [_accuracy_of(config, examples, rounds, seed) for config in (BAD, GOOD)]
    if path is not None:
        save(
            path, tuner=tuner, reward=tuned.reward, network=tuned.network, optimizer=tuned.optimizer
        )
    say("\nTest accuracy:")
    say(f"{fixed[0]:7.1%}  with the bad setting throughout")
    say(f"{tuned.accuracy():7.1%}  tuned within one run that started with the bad setting")
    say(f"{fixed[1]:7.1%}  with a good setting throughout, which the tuner does not know")
    say(f"\nAt the end: {tuner.diagnose()}")


def _accuracy_of(
    config: dict[str, float], examples: tuple[Examples, Examples, Examples], rounds: int, seed: int
) -> float:
    """Return the test accuracy after training with a fixed setting."""
    training = Training(examples, seed)
    training.run(FixedTuner(SPACE, config, horizon=rounds), rounds, lambda *_: None)
    return training.accuracy()


def examples_of(seed: int) -> tuple[Examples, Examples, Examples]:
    """Return examples for training, validation and test."""
    generator = generator_of(seed)
    shapes = torch.rand(_CLASSES, _SIDE, _SIDE, generator=generator)
    train, validation, test = (_draw(shapes, count, generator) for count in (1000, 1000, 2000))
    return train, validation, test


def _draw(shapes: Tensor, count: int, generator: torch.Generator) -> Examples:
    """Return noisy pictures of random shapes, each shifted by at most a pixel in each direction."""
    labels = torch.randint(_CLASSES, (count,), generator=generator)
    down, right = torch.randint(-1, 2, (2, count, 1), generator=generator)
    pixel = torch.arange(_SIDE)
    rows, columns = (pixel + down) % _SIDE, (pixel + right) % _SIDE  # shape: (n, 8)
    shifted = shapes[labels[:, None, None], rows[:, :, None], columns[:, None, :]]
    noise = _NOISE * torch.randn(count, _SIDE**2, generator=generator)
    return Examples(shifted.flatten(1) + noise, labels)
