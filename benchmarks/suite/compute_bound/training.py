"""Training of any kind of network, round by round: the recipe, and one run of it."""

import copy
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import Optimizer
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.suite.compute_bound.optimizers import OPTIMIZERS, switch
from benchmarks.suite.networks import set_dropout
from benchmarks.suite.protocol import Metrics
from benchmarks.suite.training import SeededRun
from botorch_costly import SearchSpace
from botorch_costly.errors import check, check_count

Settings = Mapping[str, Any]
# What a round needs to know and a problem neither tunes nor sets.
SETTINGS: Settings = {
    "learning_rate": 1e-3,
    "body_share": 1.0,  # learning rate of all but the head, as a share
    "momentum": 0.9,  # beta1 of Adam
    "beta2": 0.99,  # alpha of RMSprop
    "weight_decay": 0.0,
    "dropout": 0.0,
}
_MEASURED = 512  # rows at a time


class Batch(NamedTuple):
    """Inputs and what a network should make of them."""

    inputs: Tensor
    targets: Tensor


class Work(ABC):
    """What a network is to learn: the rows of each part, and how well it does."""

    # Whether the loss is a logarithm already, so that differences of it mean the same
    in_nats = True

    @abstractmethod
    def parts(self, generator: Generator) -> dict[str, Batch]:
        """Return the rows of ``"train"``, ``"validation"`` and ``"test"``."""

    @abstractmethod
    def network(self, generator: Generator) -> nn.Module:
        """Return a network that has learnt nothing of this yet."""

    @abstractmethod
    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each row, shape ``n``."""

    @abstractmethod
    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the share of each row that is right, shape ``n``."""

    def altered(self, batch: Batch, settings: Settings, generator: Generator) -> Batch:
        """Return what is trained on in place of a batch."""
        return batch

    def judged(self, batch: Batch) -> Batch:
        """Return what is measured in place of the rows of a part."""
        return batch


@dataclass(frozen=True)
class LongProblem:
    """A recipe for training a network that has not converged at the end."""

    name: str  # what reports call it
    space: SearchSpace  # what is tuned: names of ``SETTINGS``, or what the work reads
    default: Settings  # what a user would start from, who knows what is sensible
    strong: Settings  # the settings of a user who regularizes or augments far too much
    work: Work  # what is to be learnt
    # One of ``optimizers.OPTIMIZERS``, such as ``"adamw"`` or ``"sgd"``
    optimizer: str = "adamw"
    settings: Settings = field(default_factory=dict)  # what is not tuned and not as in ``SETTINGS``
    horizon: int = 200  # rounds of a run
    steps: int = 5  # minibatches of a round
    batch: int = 32  # rows of a minibatch
    # The program's own learning rate, if what is tuned is its multiple, ``lr_mult``
    own_rate: float | None = None
    warmup: int = 0  # rounds in which the program's own rate rises to that
    clip: float = math.inf  # largest norm of the gradient

    def __post_init__(self) -> None:
        for config in (self.default, {**self.default, **self.strong}):
            self.space.check(config)
        for name in ("horizon", "steps", "batch"):
            check_count(name, getattr(self, name), minimum=1)
        tuned = self.rate_name in self.space.names
        check(tuned, "space", f"a space with the rate {self.rate_name!r}", list(self.space.names))
        known = self.optimizer in OPTIMIZERS
        check(known, "optimizer", f"one of {list(OPTIMIZERS)}", self.optimizer)

    @property
    def rate_name(self) -> str:
        """The tuned learning rate, or multiple of the program's own, as the space calls it."""
        return "learning_rate" if self.own_rate is None else "lr_mult"

    @property
    def rates(self) -> tuple[float, float]:
        """The least and the largest value of ``rate_name`` in the space."""
        bounds: Any = dict(self.space.parameters)[self.rate_name]
        return bounds.low, bounds.high

    def settings_of(self, config: Settings, round: int) -> Settings:
        """Return all that a round needs to know, the learning rate itself among it."""
        settings = {**SETTINGS, **self.settings, **config}
        if self.own_rate is not None:
            warmth = min(1.0, (round + 1) / max(1, self.warmup))
            settings["learning_rate"] = self.own_rate * warmth * config[self.rate_name]
        return settings

    def rate_of(self, config: Settings) -> float:
        """Return the learning rate of a configuration after warm-up."""
        return float(self.settings_of(config, self.warmup)["learning_rate"])

    def setup(self, seed: int) -> "LongRun":
        """Draw the rows and the weights, all from ``seed``."""
        return LongRun(self, check_count("seed", seed))

    def data(self) -> Any:
        """Load the data.

        Raises:
            MissingDataError: If they are not here.
        """
        return self.work.parts(Generator())


class LongRun(SeededRun[LongProblem]):
    """One network in training: see ``LongProblem.setup``."""

    def __init__(self, problem: LongProblem, seed: int) -> None:
        super().__init__(problem, seed)
        self._parts, state = _drawn(problem.work, seed)
        self._generator.set_state(state)
        self._network = problem.work.network(self._generator)
        self._recipe = OPTIMIZERS[problem.optimizer]
        self._optimizer = self._recipe.make(_groups(self._network))
        # One pass over the rows in an order of their own, and a further one if a run is longer.
        self._order_seed = int(torch.randint(2**31, (), generator=self._generator))

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer, whose steps and rate a session sees; the state of the run holds its state."""
        return self._optimizer

    def train_round(
        self, config: Settings, *, rate_factor: float | Sequence[float] = 1.0
    ) -> list[float]:
        """Train the minibatches of a round with the settings of ``config``; return their losses.

        The learning rate times ``rate_factor``, that of a schedule, may lie outside the space. It is one
        for the round, or one for each minibatch. Losses are those that are trained on, before the step.

        Raises:
            InvalidConfigError: If ``config`` does not belong to the space of the problem.
            ValueError: If there are more or fewer factors than minibatches.
        """
        problem, work = self.problem, self.problem.work
        problem.space.check(config)
        settings = problem.settings_of(config, self._round)
        set_dropout(self._network, settings["dropout"])
        self._network.train()
        switch(self._optimizer, "train")
        factors, losses = rate_factor, []
        if not isinstance(factors, Sequence):
            factors = [factors] * problem.steps
        for rows, factor in zip(self._rows().split(problem.batch), factors, strict=True):
            self._recipe.apply(self._optimizer, settings, factor)
            batch = Batch(*(part[rows] for part in self._parts["train"]))
            inputs, targets = work.altered(batch, settings, self._generator)
            self._optimizer.zero_grad()
            loss = work.losses(self._network(inputs), targets).mean()
            loss.backward()
            losses.append(loss.detach())
            if problem.clip < math.inf:
                nn.utils.clip_grad_norm_(self._network.parameters(), problem.clip)
            self._optimizer.step()
        self._round += 1
        return torch.stack(losses).tolist()

    def operations(self) -> int:
        """Return how many multiplications and additions two rows take, there and back.

        Only products of matrices and convolutions count. No training depends on it.
        """
        work, part = self.problem.work, self._parts["validation"]
        inputs, targets = work.judged(Batch(part.inputs[:2], part.targets[:2]))
        self._network.eval()
        # Fused recurrence and attention are not seen by the counter; to switch them off warns.
        with (
            warnings.catch_warnings(action="ignore"),
            torch.backends.mkldnn.flags(enabled=False),
            sdpa_kernel(SDPBackend.MATH),
            FlopCounterMode(display=False) as counter,
        ):
            work.losses(self._network(inputs), targets).mean().backward()
        self._network.zero_grad()
        return counter.get_total_flops()

    def _rows(self) -> Tensor:
        """Return which rows the round trains on, without repetition within a pass."""
        size = self.problem.steps * self.problem.batch
        many = len(self._parts["train"].inputs)
        first = self._round * size
        index = torch.arange(first, first + size)
        passes = (index // many).unique().tolist()
        orders = {p: _order(self._order_seed + p, many) for p in passes}
        return torch.cat([orders[p][index[index // many == p] % many] for p in passes])

    def _measure(self, part: str) -> Metrics:
        work, found = self.problem.work, []
        self._network.eval()
        switch(self._optimizer, "eval")
        inputs, targets = work.judged(self._parts[part])
        with torch.no_grad():
            for rows in torch.arange(len(inputs)).split(_MEASURED):
                outputs = self._network(inputs[rows])
                target = targets[rows]
                found.append(
                    torch.stack([work.losses(outputs, target), work.hits(outputs, target)])
                )
        loss, hits = torch.cat(found, -1).double().mean(-1).tolist()
        return Metrics(loss if math.isfinite(loss) else math.inf, hits)

    def save(self) -> dict[str, Any]:
        return {"network": self._network.state_dict(), "optimizer": self._optimizer.state_dict()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self._network.load_state_dict(saved["network"])
        # The optimizer would keep the caller's tensors, and train them.
        self._optimizer.load_state_dict(copy.deepcopy(saved["optimizer"]))


@lru_cache(maxsize=1)  # the runs of a population have the same rows, which are large
def _drawn(work: Work, seed: int) -> tuple[dict[str, Batch], Tensor]:
    """Return the parts of the rows, and the state of the generator that drew them."""
    generator = Generator().manual_seed(seed)
    return work.parts(generator), generator.get_state()


def _order(seed: int, many: int) -> Tensor:
    return torch.randperm(many, generator=Generator().manual_seed(seed))


def _groups(network: nn.Module) -> list[dict[str, Any]]:
    """Return the parameters of the body, and those of the head, which is the last module."""
    modules = list(network.children())
    head = list(modules[-1].parameters())
    heads = {id(parameter) for parameter in head}
    body = [parameter for parameter in network.parameters() if id(parameter) not in heads]
    return [{"params": body}, {"params": head}]
