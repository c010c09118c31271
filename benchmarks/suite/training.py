"""One network in training whose settings may change between two rounds, and the recipe for it."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite.data import Part, split
from benchmarks.suite.networks import set_dropout
from benchmarks.suite.protocol import Metrics, check_state
from botorch_costly import SearchSpace
from botorch_costly.errors import check_count

Alter = Callable[[Tensor, Mapping[str, Any], Generator], Tensor]
Parameters = list[dict[str, Any]]

OPTIMIZERS: dict[str, Callable[[Parameters], torch.optim.Optimizer]] = {
    "adam": lambda groups: torch.optim.AdamW(groups, weight_decay=0.0, fused=True),
    "sgd": lambda groups: torch.optim.SGD(groups, lr=0.0),
}
# What a round needs to know and a problem neither tunes nor sets.
SETTINGS: dict[str, Any] = {
    "optimizer": "adam",
    "learning_rate": 3e-3,
    "body_share": 1.0,  # learning rate of all but the head, as a share
    "momentum": 0.0,  # of sgd
    "weight_decay": 0.0,
    "dropout": 0.0,
    "label_smoothing": 0.0,
}


@dataclass(frozen=True)
class NetworkProblem:
    """A recipe for training a network, some of whose settings are tuned while it trains."""

    name: str  # what reports call it
    space: SearchSpace  # what is tuned: names of ``SETTINGS``, or what ``alter`` reads
    default: Mapping[str, Any]  # what a user would start from
    data: Callable[[], Part]  # all rows, from which each run draws its parts
    network: Callable[[Generator], nn.Sequential]  # builds the network from a generator
    train: float  # rows of a class to train on, a number or a share below 1
    validation: float  # rows of a class to query at
    # What is not tuned and not as in ``SETTINGS``
    settings: Mapping[str, Any] = field(default_factory=dict)
    alter: Alter | None = None  # augments the inputs of a round
    horizon: int = 200  # rounds of a run
    steps: int = 6  # minibatches of a round
    batch: int = 32  # rows of a minibatch

    def __post_init__(self) -> None:
        self.space.check(self.default)
        for name in ("horizon", "steps", "batch"):
            check_count(name, getattr(self, name), minimum=1)

    def setup(self, seed: int) -> "NetworkRun":
        return NetworkRun(self, check_count("seed", seed))


P = TypeVar("P", bound=Any)


class SeededRun(ABC, Generic[P]):
    """A network in training: rows, first weights, batches and all noise come from one seed."""

    def __init__(self, problem: P, seed: int) -> None:
        self.problem, self.seed, self._round = problem, seed, 0
        self._generator = Generator().manual_seed(seed)

    @property
    def round(self) -> int:
        """Rounds in the history of the network: going back to a state makes it smaller."""
        return self._round

    def validate(self) -> Metrics:
        """Measure the network on the validation rows: the query that costs."""
        return self._measure("validation")

    def test(self) -> Metrics:
        """Measure the network on the test rows: for reports, never for tuning."""
        return self._measure("test")

    @abstractmethod
    def _measure(self, part: str) -> Metrics:
        """Measure the network on the rows of a part."""

    @abstractmethod
    def save(self) -> dict[str, Any]:
        """Return what training changes but the round and the generator, alive, not a copy."""

    @abstractmethod
    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go back to what ``save`` returned, of this run or of another one of the problem."""

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed run needs; loads with ``weights_only=True``.

        Like any ``state_dict``, it shares its tensors with the run: save or copy it before
        training on.
        """
        return {
            "problem": self.problem.name,
            "seed": self.seed,
            "round": self._round,
            **self.save(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state``, bit for bit.

        Raises:
            StateMismatchError: If ``state`` comes from another problem or another seed (whose
                rows are split otherwise), or lacks a part.
        """
        check_state(state, self.state_dict(), ("problem", "seed"))
        self.restore(state)
        self._generator.set_state(state["generator"])
        self._round = state["round"]


class NetworkRun(SeededRun[NetworkProblem]):
    """One network in training: see ``NetworkProblem.setup``."""

    def __init__(self, problem: NetworkProblem, seed: int) -> None:
        super().__init__(problem, seed)
        data = problem.data()
        amounts = {"train": problem.train, "validation": problem.validation}
        parts = split(data.targets, amounts, self._generator)
        self._parts = {k: Part(data.inputs[v], data.targets[v]) for k, v in parts.items()}
        self._mean, self._std = _moments(self._parts["train"].inputs)
        self._network = problem.network(self._generator)
        self._optimizers: dict[str, torch.optim.Optimizer] = {}

    def train_round(self, config: Mapping[str, Any]) -> None:
        """Train the minibatches of a round with the settings of ``config``.

        Raises:
            InvalidConfigError: If ``config`` does not belong to the space of the problem.
        """
        problem = self.problem
        problem.space.check(config)
        settings = {**SETTINGS, **problem.settings, **config}
        optimizer = self._apply(settings)
        inputs, targets = self._parts["train"]
        order = self._order(len(targets))
        inputs, targets = inputs[order], targets[order]
        if problem.alter is not None:
            inputs = problem.alter(inputs, settings, self._generator)
        smoothing = settings["label_smoothing"]
        self._network.train()
        for rows, target in zip(
            inputs.split(problem.batch), targets.split(problem.batch), strict=True
        ):
            optimizer.zero_grad()
            F.cross_entropy(self._logits(rows), target, label_smoothing=smoothing).backward()
            optimizer.step()
        self._round += 1

    def _order(self, rows: int) -> Tensor:
        """Draw which rows a round trains on; a round longer than the data goes through it again."""
        wanted = self.problem.steps * self.problem.batch
        passes = [
            torch.randperm(rows, generator=self._generator) for _ in range(-(-wanted // rows))
        ]
        return torch.cat(passes)[:wanted]

    def _apply(self, settings: Mapping[str, Any]) -> torch.optim.Optimizer:
        """Set what the settings say, and return the optimizer they name."""
        set_dropout(self._network, settings["dropout"])
        optimizer = self._optimizer(settings["optimizer"])
        body, head = optimizer.param_groups
        body["lr"] = settings["learning_rate"] * settings["body_share"]
        head["lr"] = settings["learning_rate"]
        for group in (body, head):
            group["weight_decay"] = settings["weight_decay"]
            if "momentum" in group:
                group["momentum"] = settings["momentum"]
        return optimizer

    def _optimizer(self, name: str) -> torch.optim.Optimizer:
        """Return an optimizer of this run, with the state it had when it was used last."""
        if name not in self._optimizers:
            body, head = self._network[:-1], self._network[-1]
            groups = [{"params": list(part.parameters())} for part in (body, head)]
            self._optimizers[name] = OPTIMIZERS[name](groups)
        return self._optimizers[name]

    def _logits(self, inputs: Tensor) -> Tensor:
        return self._network((inputs - self._mean) / self._std)

    def _measure(self, part: str) -> Metrics:
        inputs, targets = self._parts[part]
        self._network.eval()
        with torch.no_grad():
            logits = self._logits(inputs)
            loss = F.cross_entropy(logits, targets).nan_to_num(torch.inf, posinf=torch.inf)
            accuracy = (logits.argmax(-1) == targets).double().mean()
        return Metrics(loss.item(), accuracy.item())

    def save(self) -> dict[str, Any]:
        return {
            "network": self._network.state_dict(),
            "optimizers": {n: optimizer.state_dict() for n, optimizer in self._optimizers.items()},
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        self._network.load_state_dict(saved["network"])
        self._optimizers = {}
        for name, optimizer in saved["optimizers"].items():
            # The optimizer would keep the caller's tensors, and train them.
            self._optimizer(name).load_state_dict(copy.deepcopy(optimizer))


def _moments(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return by what inputs are normalized: pictures as a whole, tables column by column."""
    if inputs.dim() > 2:
        return inputs.mean(), inputs.std()
    return inputs.mean(0), inputs.std(0).clamp_min(1e-6)
