"""The run that ``python -m benchmarks kills`` kills: a network learns digits, and is saved each round.

What is random in training, an order of the data, noise and dropout, comes from the global generators,
whose states are saved with the rest: so a run that continues from its file can be compared bit for bit.
"""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

import botorch_costly as bc
from benchmarks.suite.data import digits
from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.plain import as_number

SPACE = bc.SearchSpace(
    {
        "lr": bc.Real(1e-3, 0.5, log=True),
        "dropout": bc.Real(0.0, 0.6),
        "noise": bc.Real(0.0, 0.5),
    }
)
START = {"lr": 0.02, "dropout": 0.5, "noise": 0.3}
FILE = "run.pt"
LOADING, TRAINING, WRITING = range(3)  # what a run is at
_STEPS, _BATCH, _WIDTH, _TRAINED = 4, 48, 384, 1200


class Log(Protocol):
    """What a run tells to who watches it, at once and without a call of the system."""

    def at(self, phase: int) -> None:
        """Take up what the run begins."""

    def saved(self, rounds: int) -> None:
        """Take up that a write of these rounds has returned."""


class Progress:
    """How many rounds are done, and the global generators then."""

    def __init__(self) -> None:
        self.rounds = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the state, the generators' included."""
        return {"rounds": self.rounds, "generators": global_generators()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, and so do the global generators."""
        self.rounds = state["rounds"]
        set_global_generators(state["generators"])


class Training:
    """A network with noise on its pictures, and what tunes it.

    Args:
        seed: Of everything.
        rounds: Of the run.
    """

    def __init__(self, seed: int, rounds: int) -> None:
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002  nothing here draws from it or the next; they are saved, too
        random.seed(seed)
        self.rounds, self._data = rounds, digits()
        self.network = nn.Sequential(
            nn.Linear(64, _WIDTH), nn.ReLU(), nn.Dropout(), nn.Linear(_WIDTH, _WIDTH),
            nn.ReLU(), nn.Linear(_WIDTH, 10),
        )  # fmt: skip
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.02, momentum=0.9)
        self.reward = bc.GuardedReward.of(bc.GainReward("loss"), self.network, self.optimizer)
        self.tuner = bc.OnlineTuner(
            SPACE, rounds, start=START, design=bc.Design(rounds=3), seed=seed
        )
        self.progress = Progress()

    @property
    def parts(self) -> dict[str, Any]:
        """What is saved, by name."""
        return {
            "tuner": self.tuner,
            "reward": self.reward,
            "network": self.network,
            "optimizer": self.optimizer,
            "progress": self.progress,
        }

    def play(self) -> None:
        """Train a round, and query if that is decided."""
        decision = self.tuner.ask()
        values = {name: as_number(name, value) for name, value in decision.config.items()}
        self.optimizer.param_groups[0]["lr"] = values["lr"]
        next(m for m in self.network if isinstance(m, nn.Dropout)).p = values["dropout"]
        self.network.train()
        for _ in range(_STEPS):
            rows = torch.randint(_TRAINED, (_BATCH,))
            pictures = self._pictures(rows)
            self.optimizer.zero_grad()
            self._loss(pictures + values["noise"] * torch.randn_like(pictures), rows).backward()
            self.optimizer.step()
        if decision.query:
            self.network.eval()
            rows = torch.arange(_TRAINED, len(self._data.targets))
            with torch.no_grad():
                loss = self._loss(self._pictures(rows), rows).item()
            self.tuner.tell(decision, self.reward(loss, decision))
        self.progress.rounds += 1

    def _pictures(self, rows: Tensor) -> Tensor:
        return self._data.inputs[rows].flatten(1).float()

    def _loss(self, pictures: Tensor, rows: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.network(pictures), self._data.targets[rows])


def play(folder: Path, seed: int, rounds: int, log: Log) -> None:
    """Play a run to its end, from its file if there is one, and save it after each round."""
    log.at(LOADING)
    training, file = Training(seed, rounds), folder / FILE
    if file.exists():
        bc.load(file, **training.parts)
    while training.progress.rounds < rounds:
        log.at(TRAINING)
        training.play()
        log.at(WRITING)
        bc.save(file, **training.parts)
        log.saved(training.progress.rounds)
