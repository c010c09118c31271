"""One self-tuning network in training, stopped between two rounds; tuning is an arm of its rounds."""

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from benchmarks.harness.clock import synchronize
from benchmarks.suite.data import Part
from benchmarks.suite.protocol import Metrics
from benchmarks.training import stn
from benchmarks.training.picture_run import Batches, PictureProblem, PictureRun
from benchmarks.training.schedule.recipes import PACES, TRAIN, TUNE, Recipe
from botorch_costly import Choice, SearchSpace
from botorch_costly.errors import InvalidConfigError, check, check_count

_CHUNK = 500  # pictures that are measured at once
_DIVERGED = 100.0  # nats: what a loss counts that is larger or no number


def measured(logits_of: Callable[[Tensor], Tensor], part: Part) -> Metrics:
    """Measure a network on all pictures of a part.

    A network whose loss is not finite has diverged: it has the largest loss and no hit, the worst there
    is, so that a reward of either is finite and a tuner hears of it.
    """
    pictures, targets = part
    loss, hits = 0.0, 0
    for some, right in zip(pictures.split(_CHUNK), targets.split(_CHUNK), strict=True):
        logits = logits_of(some)
        loss += float(F.cross_entropy(logits.float(), right, reduction="sum"))
        hits += int((logits.argmax(-1) == right).sum())
    return Metrics(*storable(loss / len(targets), hits / len(targets)))


def storable(loss: float, accuracy: float) -> tuple[float, float]:
    """Return a loss and an accuracy as they are stored, those of a network that diverged as the worst."""
    if not math.isfinite(loss):
        return _DIVERGED, 0.0
    return min(loss, _DIVERGED), accuracy


class TuningRun(PictureRun[Recipe]):
    """A run of a recipe: see ``ScheduleProblem.setup``.

    Every ``test`` adds a line to ``reports``: where training, validation, test and hyperparameters
    stand. It is for tables and figures; no tuner sees it, and its time is not counted.
    """

    def __init__(self, recipe: Recipe, seed: int) -> None:
        super().__init__(recipe, seed)
        self.tunings = self._batches = 0
        self.reports: list[dict[str, Any]] = []
        self.hyperparameters = stn.Hyperparameters(recipe.hyperparameters, recipe.scale)
        many = len(self.hyperparameters.names)
        self.network = stn.SelfTuningNetwork(
            recipe.plan, hyperparameters=many, generator=self._generator
        ).to(self.device)
        self.hyperparameters.to(self.device)
        self._tuned = stn.SelfTuning(self.network, self.hyperparameters, self._normalized)
        self._training = Batches(self._parts["train"], recipe.batch, self._generator)
        validation = self._parts["validation"]
        size = min(recipe.batch, len(validation.targets))
        self._validation = Batches(validation, size, self._generator)
        self._weights = torch.optim.SGD(
            self.network.parameters(), recipe.learning_rate, recipe.momentum
        )
        self._tuning = torch.optim.Adam(self.hyperparameters.parameters(), recipe.tuning_rate)
        self._sums = torch.zeros(3, device=self.device)  # loss, hits, pictures since a report

    def train_round(self, config: Mapping[str, Any]) -> None:
        """Train the batches of a round, with tuning batches at the pace of ``config["arm"]``.

        Raises:
            InvalidConfigError: If there is no such arm.
        """
        arm = config.get("arm")
        check(arm in PACES, "arm", f"one of {list(PACES)}", arm, InvalidConfigError)
        began, pace = self.clock(), PACES[str(arm)]
        for group in self._weights.param_groups:
            group["lr"] = self.recipe.rate(self._round)
            group["weight_decay"] = self.recipe.weight_decay
        for _ in range(self.recipe.steps):
            pictures, targets = self._training.next()
            with self._in_precision():
                loss, logits = stn.training_loss(self._tuned, pictures, targets, self._draws)
            self._weights.zero_grad()
            loss.backward()
            self._weights.step()
            hits, count = (logits.argmax(-1) == targets).sum(), len(targets)
            self._sums += torch.stack([loss.detach() * count, hits, torch.ones_like(hits) * count])
            self._batches += 1
            if pace is not None and self._batches % pace == 0:
                self._tune()
        self._round += 1
        synchronize(self.device)  # the time of a round is its own
        self.training_seconds += self.clock() - began

    def _tune(self) -> None:
        pictures, targets = self._validation.next()
        with self._in_precision():
            loss = stn.tuning_loss(self._tuned, pictures, targets, self._draws)
        objective = stn.tuning_objective(loss, self.hyperparameters, self.recipe.tau)
        stn.hypergradient(objective, self.hyperparameters)
        self._tuning.step()
        self.tunings += 1

    def validate(self) -> Metrics:
        began = self.clock()
        metrics = self._measure("validation")
        self.query_seconds += self.clock() - began
        return metrics

    def test(self) -> Metrics:
        """Measure the network on the test pictures, and add a line to the reports."""
        found, validation = self._measure("test"), self._measure("validation")
        loss, hits, count = self._sums.tolist()
        self.reports.append(
            {
                "round": self._round,
                "tunings": self.tunings,
                "training": storable(loss / max(count, 1), hits / max(count, 1)),
                "validation": [validation.loss, validation.accuracy],
                "test": [found.loss, found.accuracy],
                "hyperparameters": [round(v, 4) for v in self.hyperparameters.current().values()],
            }
        )
        self._sums.zero_()
        return found

    def _logits(self, pictures: Tensor) -> Tensor:
        with self._in_precision():
            return stn.unperturbed_logits(self._tuned, pictures)

    def _measure(self, part: str) -> Metrics:
        return measured(self._logits, self._parts[part])

    def save(self) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "hyperparameters": self.hyperparameters.state_dict(),
            "weights": self._weights.state_dict(),
            "tuned": self._tuning.state_dict(),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.network.load_state_dict(saved["network"])
        self.hyperparameters.load_state_dict(saved["hyperparameters"])
        # The optimizers would keep the caller's tensors, and change them.
        self._weights.load_state_dict(copy.deepcopy(saved["weights"]))
        self._tuning.load_state_dict(copy.deepcopy(saved["tuned"]))

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "places": [self._training.state_dict(), self._validation.state_dict()],
            "counts": [self._round, self.tunings, self._batches],
            "sums": self._sums,
            "reports": self.reports,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        for batches, found in zip((self._training, self._validation), state["places"], strict=True):
            batches.load_state_dict(found)
        self._round, self.tunings, self._batches = state["counts"]
        self.reports = list(state["reports"])
        self._sums.copy_(state["sums"])


class ScheduleProblem(PictureProblem[Recipe]):
    """A recipe as a problem whose rounds tune, or do not."""

    @property
    def space(self) -> SearchSpace:
        return SearchSpace({"arm": Choice([TRAIN, TUNE])})

    @property
    def default(self) -> Mapping[str, Any]:
        """Dense tuning, as the authors of self-tuning networks do it."""
        return {"arm": TUNE}

    def setup(self, seed: int) -> TuningRun:
        return TuningRun(self.recipe, check_count("seed", seed))
