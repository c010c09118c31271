"""The command ``botorch-costly demo``: a network is tuned from a bad setting while it trains, in seconds.

Everything it needs comes with the package: ten shapes of 8 x 8 pixels are drawn, moved and covered with
noise, and a network of one hidden layer learns to tell them apart.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from botorch_costly.ask_tell.state import save
from botorch_costly.errors import check_count
from botorch_costly.integrations.loggers import LogEntry
from botorch_costly.integrations.loggers.progress_bar import line_of
from botorch_costly.parameters import Real
from botorch_costly.query import PricedQuery
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import Decision, Observation
from botorch_costly.reports.text import config_text
from botorch_costly.rewards import GainReward, GuardedReward
from botorch_costly.space import SearchSpace
from botorch_costly.tuners import FixedTuner, OnlineTuner

ROUNDS = 240
_SHARE = 4  # rounds for each query that may be paid for
_CLASSES, _SIDE = 10, 8
_STEPS, _BATCH = 10, 50  # of a round
_NOISE = 0.25  # of the pictures themselves

SPACE = SearchSpace(
    {"lr": Real(1e-3, 1.0, log=True), "dropout": Real(0.0, 0.8), "noise": Real(0.0, 1.5)}
)
BAD = {"lr": 0.005, "dropout": 0.7, "noise": 1.2}
GOOD = {"lr": 0.05, "dropout": 0.2, "noise": 0.3}


Show = Callable[[Decision, Observation], None]


class Examples(NamedTuple):
    """Pictures and what they show."""

    pictures: Tensor  # shape: (n, 64)
    labels: Tensor  # shape: (n,)


class Training:
    """One run of the network, with whatever a tuner says.

    Args:
        examples: For training, for validation and for the test.
        seed: Of the weights, of what each step draws, and of dropout.
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
        """Train for some rounds, show each that is queried, and query that of the horizon in any case."""
        for _ in range(rounds):
            decision = tuner.ask()
            self._train_one_round(**decision.config)
            if decision.query:
                show(decision, tuner.tell(decision, self.reward(self._loss(), decision)))

    def accuracy(self) -> float:
        """Return the share of test pictures that are recognized."""
        found = self._answers(self._test).argmax(-1)
        return (found == self._test.labels).double().mean().item()

    def _train_one_round(self, lr: Any, dropout: Any, noise: Any) -> None:
        self.optimizer.param_groups[0]["lr"] = lr
        self._dropout.p = dropout
        self.network.train()
        for _ in range(_STEPS):
            rows = torch.randint(len(self._train.labels), (_BATCH,))
            pictures = self._train.pictures[rows]
            answers = self.network(pictures + noise * torch.randn_like(pictures))
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(answers, self._train.labels[rows]).backward()
            self.optimizer.step()

    @torch.no_grad()
    def _answers(self, examples: Examples) -> Tensor:
        self.network.eval()
        answers: Tensor = self.network(examples.pictures)
        return answers

    def _loss(self) -> float:
        answers = self._answers(self._validation)
        return nn.functional.cross_entropy(answers, self._validation.labels).item()


def demo(
    say: Callable[[str], None],
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
) -> None:
    """Train with a bad setting, with a good one, and with a tuner that starts from the bad one.

    Args:
        say: Is called with each line of what happens.
        rounds: Of each of the three runs; a quarter of them may be queried.
        seed: Of the pictures, the network and the tuner.
        path: Where the tuned run is saved, if anywhere.

    Raises:
        InvalidArgumentError: If ``rounds`` is no integer of at least 4, or ``seed`` none of at least 0.
    """
    rounds, seed = check_count("rounds", rounds, _SHARE), check_seed(seed)
    say(
        f"A network learns ten shapes in {rounds} rounds. Its setting is bad, and a tuner changes it"
    )
    say(
        f"while it trains. A query is a validation pass; {rounds // _SHARE} of them may be paid for."
    )
    say(f"The bad setting: {config_text(BAD)}\n")
    tuner = OnlineTuner(
        SPACE, rounds, start=BAD, query=PricedQuery(budget=rounds // _SHARE), seed=seed
    )

    def show(decision: Decision, told: Observation) -> None:
        entry = LogEntry(
            decision=decision,
            observation=told,
            queries=tuner.queries,
            budget=rounds // _SHARE,
            horizon=rounds,
        )
        say(f"{line_of(entry)}  {config_text(decision.config)}")

    with torch.random.fork_rng(devices=()):  # the caller's generator stays as it is
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
    say(f"{fixed[0]:7.1%}  with the bad setting all along")
    say(f"{tuned.accuracy():7.1%}  tuned within one run that began with it")
    say(f"{fixed[1]:7.1%}  with a good setting all along, which the tuner was not told")
    say(f"\nAt the end: {tuner.diagnose()}")


def _accuracy_of(
    config: dict[str, float], examples: tuple[Examples, Examples, Examples], rounds: int, seed: int
) -> float:
    """Return the test accuracy of the network that is trained with one setting."""
    training = Training(examples, seed)
    training.run(FixedTuner(SPACE, config, horizon=rounds), rounds, lambda decision, told: None)
    return training.accuracy()


def examples_of(seed: int) -> tuple[Examples, Examples, Examples]:
    """Return pictures for training, for validation and for the test."""
    generator = generator_of(seed)
    shapes = torch.rand(_CLASSES, _SIDE, _SIDE, generator=generator)
    train, validation, test = (_draw(shapes, count, generator) for count in (1000, 1000, 2000))
    return train, validation, test


def _draw(shapes: Tensor, count: int, generator: torch.Generator) -> Examples:
    """Return shapes that are moved by a pixel or not at all, and their numbers."""
    labels = torch.randint(_CLASSES, (count,), generator=generator)
    rows, columns = torch.randint(-1, 2, (2, count, 1), generator=generator)
    at = torch.arange(_SIDE)
    down, right = (at + rows) % _SIDE, (at + columns) % _SIDE  # shape: (n, 8)
    moved = shapes[labels[:, None, None], down[:, :, None], right[:, None, :]]
    noise = _NOISE * torch.randn(count, _SIDE**2, generator=generator)
    return Examples(moved.flatten(1) + noise, labels)
