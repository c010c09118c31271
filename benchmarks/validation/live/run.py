"""A run of a program: its training step, its validation losses, and a digest of all that it left."""

import hashlib
import math
import random
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from benchmarks.validation.live.programs import Program
from botorch_costly.parameters import BASES


class Run:
    """A program in training under one seed."""

    def __init__(self, program: Program, seed: int) -> None:
        self.program = program
        program.parts()  # loading libraries may draw from generators
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 (global generators are what is compared)
        torch.manual_seed(seed)
        self._train, self._validation = program.parts()
        self._network = program.network()
        parameters = list(self._network.parameters())
        self._optimizer: torch.optim.Optimizer = (
            torch.optim.Adam(parameters, lr=program.rate)
            if program.momentum is None
            else torch.optim.SGD(parameters, lr=program.rate, momentum=program.momentum)
        )
        self._order: Iterator[Tensor] = iter(())
        self._seen = hashlib.sha256()
        self._step = 0
        self._network.train()

    @property
    def examples(self) -> int:
        """Number of validation examples."""
        return len(self._validation.targets)

    @property
    def epoch(self) -> int:
        """Steps of an epoch, a multiple of its recorded points."""
        program = self.program
        steps = program.steps or math.ceil(len(self._train.targets) / program.batch)
        return max(round(steps / program.points), 1) * program.points

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.epoch * self.program.epochs

    def step(self) -> Tensor:
        """Train on the next batch; return its loss."""
        rows = self._next_rows()
        self._seen.update(rows.numpy().tobytes())
        if self.program.decays:
            share = BASES["cosine"](self._step / self.steps)
            self._optimizer.param_groups[0]["lr"] = self.program.rate * share
        self._optimizer.zero_grad()
        outputs = self._network(self._train.inputs[rows])
        loss = self.program.losses(outputs, self._train.targets[rows]).mean()
        loss.backward()
        self._optimizer.step()
        self._step += 1
        return loss.detach()

    def _next_rows(self) -> Tensor:
        rows = next(self._order, None)
        if rows is None:
            order = torch.randperm(len(self._train.targets))
            self._order = iter(order.split(self.program.batch))
            rows = next(self._order)
        return rows

    def losses(self, examples: Sequence[int] | None = None) -> Tensor:
        """Return the losses of validation examples, of all without an argument."""
        inputs, targets = self._validation
        if examples is not None:
            rows = torch.as_tensor(examples)
            inputs, targets = inputs[rows], targets[rows]
        self._network.eval()
        with torch.no_grad():
            losses = torch.cat(
                [
                    self.program.losses(self._network(part), target)
                    for part, target in zip(inputs.split(256), targets.split(256), strict=True)
                ]
            )
        self._network.train()
        return losses

    def digest(self) -> str:
        """Return a hash of weights, modes, order of the data, and the states of all global generators."""
        found = self._seen.copy()
        for tensor in self._network.state_dict().values():
            found.update(tensor.numpy().tobytes())
        found.update(torch.get_rng_state().numpy().tobytes())
        modes = [module.training for module in self._network.modules()]
        states = random.getstate(), np.random.get_state()  # noqa: NPY002
        found.update(repr((*states, modes)).encode())
        return found.hexdigest()
