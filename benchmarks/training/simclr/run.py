"""SimCLR in one training, stopped between two rounds; each round has probabilities of its own.

Read from top to bottom: what a run is made of, a round, a step, a query, the end, states.

References:
    T. Chen, S. Kornblith, M. Norouzi, G. Hinton. A simple framework for contrastive learning of visual
    representations. ICML 2020, appendix B.9 for CIFAR-10.
"""

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.harness.clock import synchronize
from benchmarks.suite.data import Part
from benchmarks.suite.protocol import Metrics
from benchmarks.training.picture_run import CLASSES, Batches, PictureProblem, PictureRun
from benchmarks.training.simclr import ranks
from benchmarks.training.simclr.augmentation import AUGMENTATIONS, augment, draw, one_operation
from benchmarks.training.simclr.lars import LARS, groups_of
from benchmarks.training.simclr.loss import nt_xent
from benchmarks.training.simclr.networks import Contrasting
from benchmarks.training.simclr.readout import READOUTS, linear_readout
from benchmarks.training.simclr.recipes import Recipe
from benchmarks.training.stn.augmentation import axes_of
from botorch_costly import Real, SearchSpace
from botorch_costly.errors import NumericalError, check, check_count

# Without a crop there is little to learn: at least every other view is cropped, as in the paper.
SPACE = SearchSpace({name: Real(0.5 if name == "crop" else 0.0, 1.0) for name in AUGMENTATIONS})
START = dict.fromkeys(AUGMENTATIONS, 0.5)
# No probabilities at all: one way a picture, drawn evenly.
ONE_OPERATION = {"sampler": "one operation"}
_CHUNK = 1_000  # pictures that are encoded at once
_FAILURES = 3  # rounds in a row without a finite loss: then a run stops


class ContrastiveProblem(PictureProblem[Recipe]):
    """A recipe as a problem whose rounds have eight probabilities."""

    @property
    def space(self) -> SearchSpace:
        return SPACE

    @property
    def default(self) -> Mapping[str, Any]:
        return START

    def setup(self, seed: int) -> "ContrastiveRun":
        return ContrastiveRun(self.recipe, check_count("seed", seed))


class ContrastiveRun(PictureRun[Recipe]):
    """A run of a recipe: see ``ContrastiveProblem.setup``.

    A round whose loss is not finite has ``failed``: the run is back at the state before it, and its next
    ``validate`` says so. After three such rounds in a row it stops, and what was saved is a state before.

    Under ``torch.distributed.run`` each process has a share of every batch, and all do the same.
    """

    def __init__(self, recipe: Recipe, seed: int) -> None:
        super().__init__(recipe, seed)
        self.failures, self._in_a_row = 0, 0
        self.failed, self.loss = False, math.nan
        self.last_query_seconds = 0.0
        self._batches = Batches(self._parts["train"], recipe.batch, self._generator)
        # An encoder and a head, in the precision and layout of the recipe.
        self._layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
        network: nn.Module = Contrasting(
            recipe.encoder, generator=self._generator, projection=recipe.projection
        )
        if ranks.many() > 1 and self.device.type == "cuda":
            network = nn.SyncBatchNorm.convert_sync_batchnorm(network)
        layout: dict[str, Any] = {"memory_format": self._layout}
        self.network = network.to(self.device).to(**layout)
        self._optimizer = LARS(
            groups_of(self.network, recipe.weight_decay), recipe.rate(0), momentum=recipe.momentum
        )
        compiled: Callable[..., Any] = torch.compile if recipe.compiled else lambda part: part
        self._axes = axes_of(self.device, torch.float32)
        self._project, self._augment = compiled(self.network), compiled(augment)
        self._good = copy.deepcopy(self.save())

    def train_round(self, config: Mapping[str, Any]) -> None:
        """Train the batches of a round under the probabilities of ``config``, or ``ONE_OPERATION``.

        Raises:
            InvalidConfigError: If a probability is missing, unknown or outside its bounds.
            NumericalError: If the loss was not finite in the last three rounds, this one included.
        """
        probabilities = self._probabilities(config)
        began = self.clock()
        self.network.train()
        losses = torch.zeros((), device=self.device)
        first = self._round * self.recipe.steps
        for step in range(first, first + self.recipe.steps):
            losses += self._step(probabilities, self.recipe.rate(step))
        self._round += 1
        # Keep a good state, or go back to the last one; stop where that does not help.
        loss = ranks.total(losses).item() / ranks.many() / self.recipe.steps
        self.loss, self.failed = loss, not math.isfinite(loss)
        self.failures += self.failed
        self._in_a_row = self._in_a_row + 1 if self.failed else 0
        if self.failed:
            self.restore(self._good)
        else:
            self._good = copy.deepcopy(self.save())
        often = f"a finite loss in one of {_FAILURES} rounds"
        check(self._in_a_row < _FAILURES, "loss", often, loss, NumericalError)
        self.training_seconds += self.clock() - began

    def _sized(self, pictures: Tensor) -> Tensor:
        """Return pictures of the side of the recipe: means of squares of pixels."""
        return F.avg_pool2d(pictures, pictures.shape[-1] // self.recipe.side)

    def _probabilities(self, config: Mapping[str, Any]) -> Tensor | None:
        if config == ONE_OPERATION:
            return None
        SPACE.check(config)
        numbers = [float(config[name]) for name in AUGMENTATIONS]
        return torch.tensor(numbers, device=self.device)

    def _step(self, probabilities: Tensor | None, rate: float) -> Tensor:
        """Make two views of each picture of a batch, compare them, and change the weights."""
        pictures = self._batches.next().inputs
        # All processes draw for the whole batch, so that one alone would see the same views.
        draws = [ranks.mine(draw(len(pictures), self._draws)) for _ in range(2)]
        pictures = ranks.mine(pictures)
        views = torch.cat([self._view(pictures, some, probabilities) for some in draws])
        views = self._normalized(views).contiguous(memory_format=self._layout)
        with self._in_precision():
            projections = self._project(views)
        first, second = projections.float().chunk(2)
        loss = nt_xent(first, second, self.recipe.temperature)
        self._optimizer.zero_grad()
        loss.backward()
        ranks.average_gradients(self.network.parameters())
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        return loss.detach()

    def _view(self, pictures: Tensor, draws: Tensor, probabilities: Tensor | None) -> Tensor:
        if probabilities is None:
            probabilities = one_operation(draws)
        return self._augment(pictures, probabilities, draws, axes=self._axes)

    def validate(self) -> Metrics:
        """Read out the validation pictures: the query that costs.

        A loss of infinity says that the round before failed, or that features are not finite; the run
        is back at its last good state then.
        """
        began = self.clock()
        try:
            found = READOUTS[self.recipe.readout](self.features("validation"), CLASSES)
        except NumericalError:
            found, self.failed = Metrics(math.inf, 0.0), True
            self.restore(self._good)
        if self.failed:
            found = Metrics(math.inf, 0.0)
        metrics = Metrics(*ranks.of_first([found.loss, found.accuracy], self.device))
        synchronize(self.device)
        self.last_query_seconds = self.clock() - began
        self.query_seconds += self.last_query_seconds
        return metrics

    def test(self) -> Metrics:
        """Fit a linear readout to the training pictures, and measure it on the test."""
        return linear_readout(self.features("train"), self.features("test"), CLASSES)

    @torch.no_grad()
    def features(self, part: str) -> Part:
        """Return the features of the pictures of a part, unaltered, and their classes."""
        pictures, targets = self._parts[part]
        self.network.eval()
        encoder, found = self.network.get_submodule("encoder"), []
        for some in pictures.split(_CHUNK):
            with self._in_precision():
                some = self._normalized(some).contiguous(memory_format=self._layout)
                found.append(encoder(some).float())
        return Part(torch.cat(found), targets)

    def pictures(self, count: int) -> Tensor:
        """Return some of the training pictures."""
        return self._parts["train"].inputs[:count]

    def save(self) -> dict[str, Any]:
        return {"network": self.network.state_dict(), "optimizer": self._optimizer.state_dict()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.network.load_state_dict(saved["network"])
        # The optimizer would keep the caller's tensors, and change them.
        self._optimizer.load_state_dict(copy.deepcopy(saved["optimizer"]))
        self._good = copy.deepcopy(self.save())

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "place": self._batches.state_dict(),
            "counts": [self._round, self.failures, self._in_a_row],
            "last": [self.loss, self.failed],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._batches.load_state_dict(state["place"])
        self._round, self.failures, self._in_a_row = state["counts"]
        self.loss, self.failed = state["last"]
