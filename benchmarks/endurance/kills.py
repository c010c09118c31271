"""A tuned run that is killed at random moments: ``python -m benchmarks kills``.

A network learns digits, tuned and saved after each round by ``botorch_costly.save``. A process that plays
it is ended by SIGKILL at a random moment, writes included, and another one continues, and is killed as
well. What each kill leaves is compared with an undisturbed run of that seed, bit for bit: the file with
what that run had saved after as many rounds, and the end of a copy that is left in peace. Such a file
holds all decisions, rewards, weights, and the states of the optimizer and of the global generators.

Processes are forked from one that has imported everything and trained nothing.
"""

import hashlib
import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

import botorch_costly as bc
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.suite.data import digits
from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.plain import as_number

SPACE = bc.SearchSpace(
    {"lr": bc.Real(1e-3, 0.5, log=True), "dropout": bc.Real(0.0, 0.6), "noise": bc.Real(0.0, 0.5)}
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
        return {"rounds": self.rounds, "generators": global_generators()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rounds = state["rounds"]
        set_global_generators(state["generators"])


class Training:
    """A network with noise on its pictures, and what tunes it.

    The order of the data, the noise and the dropout come from the global generators, whose states are
    saved with the rest: so a run that continues from its file can be compared bit for bit.
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


NAME = "kills"
_PHASES = {LOADING: "loading", TRAINING: "training", WRITING: "writing"}


class Task(NamedTuple):
    """How often a run is killed, and the key of its row."""

    rounds: int
    kills: int
    seed: int


class Watched:
    """What a process is at and has saved, in memory that is left when it is killed."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8)  # shared with processes that are forked

    def at(self, phase: int) -> None:
        self._memory[0] = phase

    def saved(self, rounds: int) -> None:
        self._memory[1:3] = rounds.to_bytes(2, "little")

    @property
    def phase(self) -> int:
        """What the process was at last."""
        return self._memory[0]

    @property
    def rounds(self) -> int:
        """How many rounds were saved for certain."""
        return int.from_bytes(self._memory[1:3], "little")


class Noted:
    """Digests of what an undisturbed run saves, one a round, written into its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def at(self, phase: int) -> None:
        """Note nothing: this run is not killed."""

    def saved(self, rounds: int) -> None:
        """Write the digest of the file as it is now."""
        with open(self._folder / "digests", "a", encoding="utf-8") as file:
            file.write(digest_of(self._folder / FILE) + "\n")


def measure(task: Task) -> Row:
    """Return what the kills of a run left."""
    Training(task.seed, task.rounds)  # so that processes need not import what is imported late
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole"
        whole.mkdir()
        began = time.monotonic()
        _finish(_forked(whole, task, Noted(whole)))
        seconds = time.monotonic() - began
        expected = (whole / "digests").read_text(encoding="utf-8").splitlines()
        random, seen, run = Random(task.seed), list[Row](), Path(folder) / "run"
        while len(seen) < task.kills:
            run.mkdir(exist_ok=True)
            kill = _killed(run, task, seconds, expected, random)
            if kill is None:
                shutil.rmtree(run)  # it came to its end: from the beginning again
            else:
                seen.append(kill)
    return {**task._asdict(), "seconds": seconds, **summed(seen)}


def summed(seen: Sequence[Row]) -> Row:
    """Return the row of some kills."""
    parts = {name: sum(kill["phase"] == name for kill in seen) for name in _PHASES.values()}
    told = ("whole", "identical", "unfinished", "ahead")
    return {**parts, **{name: sum(kill[name] for kill in seen) for name in told}}


def digest_of(file: Path) -> str:
    """Return a digest of all bits of a saved file's states; an empty one of a file that is not there."""
    if not file.exists():
        return ""
    hashed = hashlib.sha256()
    _hash(torch.load(file, weights_only=True), hashed.update)
    return hashed.hexdigest()


def _hash(value: Any, update: Callable[[bytes], None]) -> None:
    update(type(value).__name__.encode())
    if isinstance(value, Tensor):
        update(f"{value.dtype} {tuple(value.shape)}".encode())
        update(value.contiguous().numpy().tobytes())
    elif isinstance(value, Mapping):
        for name, one in value.items():
            _hash(name, update)
            _hash(one, update)
    elif isinstance(value, list | tuple):
        update(str(len(value)).encode())
        for one in value:
            _hash(one, update)
    else:
        update(repr(value).encode())  # of a float, all of its digits


def _killed(
    run: Path, task: Task, seconds: float, expected: Sequence[str], random: Random
) -> Row | None:
    """Continue a run and kill it at a random moment; None if it came to its end before."""
    digests, file, watched = ["", *expected], run / FILE, Watched()
    before = digests.index(digest_of(file))
    watched.saved(before)
    process = _forked(run, task, watched)
    time.sleep(random.uniform(0, seconds * (1 - before / task.rounds)))
    os.kill(process, signal.SIGKILL)
    if os.WIFEXITED(os.waitpid(process, 0)[1]):
        return None
    left = digest_of(file)
    after = digests.index(left) if left in digests else -1
    copy = run / "copy"
    copy.mkdir()
    if left:
        shutil.copy2(file, copy / FILE)
    _finish(_forked(copy, task, Watched()))
    kill = {
        "phase": _PHASES[watched.phase],
        "whole": after in (watched.rounds, watched.rounds + 1),  # nothing that was saved is lost
        "ahead": after == watched.rounds + 1,  # it was replaced, and save had not returned
        "unfinished": len(list(run.glob(".*.part"))),
        "identical": digest_of(copy / FILE) == expected[-1],
    }
    shutil.rmtree(copy)
    for part in run.glob(".*.part"):
        part.unlink()  # so that each kill's own are counted
    return kill


def _forked(folder: Path, task: Task, log: Log) -> int:
    """Return the number of a process that plays the run in this folder."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            play(folder, task.seed, task.rounds, log)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return process


def _finish(process: int) -> None:
    status = os.waitpid(process, 0)[1]
    if status:
        raise RuntimeError(f"A run that was left in peace has failed, with status {status}.")


def text(rows: Sequence[Row]) -> str:
    """Return one line for each run, and one for all of them."""
    names = ("kills", *_PHASES.values(), "unfinished", "ahead", "whole", "identical")
    lines = [f"{'seed':>5}" + "".join(f"{name:>11}" for name in names)]
    for row in rows:
        lines.append(f"{row['seed']:>5}" + "".join(f"{row[name]:>11}" for name in names))
    lines.append(f"{'all':>5}" + "".join(f"{sum(r[n] for r in rows):>11}" for n in names))
    if rows:
        seconds = mean(row["seconds"] for row in rows)
        lines.append(
            f"A run of {rows[0]['rounds']} rounds takes {seconds:.1f} s. Killed while loading, training, "
            "writing; left behind: files that were not\nfinished, files that were ahead of what save had "
            "confirmed, whole files, and ends identical to those of the\nundisturbed run."
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print them."""
    parser = sweep_parser(NAME, "a tuned run that is killed at random moments", seeds=20)
    parser.add_argument("--rounds", type=int, default=30, help="of a run")
    parser.add_argument("--kills", type=int, default=25, help="of each seed's run")
    parser.set_defaults(processes=1)
    options = parser.parse_args(arguments)
    wanted = tasks_of(Task, options, [options.rounds], [options.kills])
    print(text(measured(NAME, wanted, measure, options)))
