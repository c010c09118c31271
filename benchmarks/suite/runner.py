"""One training run under one policy: resumable after every round, timed, its queries counted."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.suite.policies import Policy
from benchmarks.suite.protocol import OnlineProblem, TrainingRun
from botorch_costly import Decision

REPORT_EVERY = 5  # rounds between test accuracies; for the plot alone, no policy sees them


@dataclass
class Record:
    """What happened so far. Seconds count training, queries and decisions, not the report."""

    decisions: list[Decision] = field(default_factory=list)
    test_accuracy: list[tuple[int, float]] = field(default_factory=list)
    queries: int = 0
    seconds: float = 0.0

    def to_json(self) -> str:
        """Return the record as text."""
        plain = {**asdict(self), "decisions": [d.to_dict() for d in self.decisions]}
        return json.dumps(plain)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Read a record back."""
        plain = json.loads(text)
        decisions = [Decision.from_dict(d) for d in plain.pop("decisions")]
        accuracy = [(r, a) for r, a in plain.pop("test_accuracy")]
        return cls(decisions=decisions, test_accuracy=accuracy, **plain)


def run_online(
    problem: OnlineProblem,
    policy: Policy,
    seed: int,
    checkpoint: Path | None = None,
    after_round: Callable[[Record], None] = lambda record: None,
    rounds: int | None = None,
    report_every: int = REPORT_EVERY,
    save_every: int = 1,
    saves: bool = True,
) -> Record:
    """Train through the horizon, or as many ``rounds``.

    With a ``checkpoint``, resume from it if it is there, and save after every round, or after every
    ``save_every`` rounds and at the end. Of processes that train together, one ``saves``, and all resume.
    """
    rounds = problem.horizon if rounds is None else rounds
    run, record = problem.setup(seed), Record()
    policy.start(run)
    if checkpoint is not None and checkpoint.exists():
        record = _load(checkpoint, run, policy)
    while run.round < rounds:
        _one_round(run, policy, record)
        if run.round % report_every == 0 or run.round == rounds:
            record.test_accuracy.append((run.round, run.test().accuracy))
        if (
            checkpoint is not None
            and saves
            and (run.round % save_every == 0 or run.round == rounds)
        ):
            _save(checkpoint, run, policy, record)
        after_round(record)
    return record


def _one_round(run: TrainingRun, policy: Policy, record: Record) -> None:
    began = time.perf_counter()
    decision = policy.decide()
    run.train_round(decision.config)
    if decision.query:
        policy.query(decision, run.validate())
        record.queries += 1
    record.decisions.append(decision)
    record.seconds += time.perf_counter() - began


def _save(path: Path, run: TrainingRun, policy: Policy, record: Record) -> None:
    """Replace the file in one step: a process that is killed meanwhile leaves the former one whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    state: dict[str, Any] = {
        "run": run.state_dict(),
        "policy": policy.state_dict(),
        "record": record.to_json(),
    }
    unfinished = path.with_suffix(".partial")
    torch.save(state, unfinished)
    os.replace(unfinished, path)


def _load(path: Path, run: TrainingRun, policy: Policy) -> Record:
    state = torch.load(path, weights_only=True)
    run.load_state_dict(state["run"])
    policy.load_state_dict(state["policy"])
    return Record.from_json(state["record"])
